"""Motion and forces where the rows that hold are independent, as those of point feet are.

Then forces are unique, there is nothing to share out, and one small system gives all of them:

    W'W s = c - B v_free,    W = L^-1 B',    v = v_free + L^-T W s,    A = L L'
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

import numpy as np

from holdfast.lcp._envelope import solve_upper
from holdfast.lcp._kernel import fast_kernel, inlined
from holdfast.models._sharing import PRESSED
from holdfast.mujoco._forces import add, dot
from holdfast.mujoco._scene import Found, Play, Scene, Work

INDEPENDENT = 1e-6  # part of a row's squared length that must be left outside of those before it
REFINEMENTS = 2  # solves of the system, each with what the last one left

# What `solve_independent` returns.
UNIQUE, DEPENDENT, PULLS = range(3)


@fast_kernel
def factor_rows(rows: np.ndarray, L: np.ndarray, envelope: np.ndarray, play: Play, count: int,
                W_out: np.ndarray, white_out: np.ndarray, G_out: np.ndarray) -> bool:  # fmt: skip
    """Fill W_out with the whitened rows in play, as columns, white_out with the same as rows.

    G_out is filled with the lower factor of W'W; its diagonal holds reciprocals.

    Returns:
        Whether the rows are independent.
    """
    m = rows.shape[1]
    for i in range(m):
        w = W_out[i, :count]
        for k in range(count):
            w[k] = rows[play.at[k], i]
        for j in range(envelope[i], i):
            add(-L[0, i, j], W_out[j, :count], w)
        for k in range(count):
            w[k] *= L[0, i, i]
            white_out[k, i] = w[k]
    for k in range(count):
        white, g = white_out[k], G_out[k]
        for i in range(k):
            g[i] = (dot(white, white_out[i]) - dot(g[:i], G_out[i, :i])) * G_out[i, i]
        length2 = dot(white, white)
        left = length2 - dot(g[:k], g[:k])
        if not left > INDEPENDENT * length2:
            return False
        g[k] = 1.0 / np.sqrt(left)
    return True


@fast_kernel
def solve_rows(G: np.ndarray, count: int, x_inout: np.ndarray) -> None:
    """Overwrite x with (W'W)^-1 x, by the factor."""
    for i in range(count):
        x_inout[i] = (x_inout[i] - dot(G[i, :i], x_inout[:i])) * G[i, i]
    for i in range(count - 1, -1, -1):
        x_inout[i] *= G[i, i]
        add(-x_inout[i], G[i, :i], x_inout[:i])


@inlined
def solve_independent(sc: Scene, ne: int, count: int, wk: Work, out: Found) -> int:
    """Fill motion, impulses and wk.masks[1] (pressed) from the rows in play, if they are that.

    Returns:
        UNIQUE, or DEPENDENT, or PULLS: the forces are unique, but a contact or a limit would have
        to pull, or a contact to hold without being pressed, or dry friction does not suffice.
    """
    m, nf, play, pressed, u = sc.v.shape[0], sc.loss.shape[0], wk.play, wk.masks[1], wk.x[5]
    W, white, G = wk.square[1], wk.white, wk.square[2]
    if count > m or not factor_rows(sc.rows, wk.L, wk.envelope, play, count, W, white, G):
        return DEPENDENT
    for j in range(m):
        out.motion[j] = out.v_free[j]
    for k in range(count):
        play.s[k] = 0.0
    for _ in range(REFINEMENTS):
        for k in range(count):
            play.miss[k] = play.c[k] - dot(sc.rows[play.at[k]], out.motion)
        solve_rows(G, count, play.miss)
        add(1.0, play.miss[:count], play.s[:count])
        for j in range(m):
            u[j] = dot(W[j, :count], play.miss[:count])
        solve_upper(wk.L, wk.envelope, u)
        add(1.0, u, out.motion)
    for k in range(count):
        out.impulse[play.at[k]] = play.s[k]
        out.loaded[play.at[k]] = True
    for i in range(nf):
        if not abs(out.impulse[ne + i]) <= sc.loss[i]:
            return PULLS
    for i in range(sc.limit_gap.shape[0]):
        if out.limits[i] and not out.impulse[ne + nf + i] >= 0.0:
            return PULLS
    normal = friction = 0.0
    for i in range(sc.gap.shape[0]):
        if out.contacts[i]:
            normal = max(normal, abs(out.impulse[sc.first[i]]))
            for r in range(sc.first[i] + 1, sc.first[i] + sc.dim[i]):
                friction = max(friction, abs(out.impulse[r]))
    for i in range(sc.gap.shape[0]):
        if not out.contacts[i]:
            continue
        first = sc.first[i]
        pressed[i] = out.impulse[first] > PRESSED * normal
        if pressed[i]:
            continue
        if not out.impulse[first] >= -PRESSED * normal:
            return PULLS
        for r in range(first, first + sc.dim[i]):
            if r > first and abs(out.impulse[r]) > PRESSED * friction:
                return PULLS
            out.impulse[r] = 0.0
    return UNIQUE
