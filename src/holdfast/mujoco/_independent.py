"""Motion and forces where the rows that hold are independent, as those of point feet are.

Then forces are unique, there is nothing to share out, and one small system gives all of them:

    G s = c - B v_free,    G = B A^-1 B',    v = v_free + A^-1 B' s
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

import numpy as np

from holdfast.lcp._envelope import solve_lower, solve_upper
from holdfast.lcp._kernel import fast_kernel, kernel
from holdfast.models._sharing import PRESSED
from holdfast.mujoco._forces import add, dot
from holdfast.mujoco._scene import Found, Play, Scene, Work

INDEPENDENT = 1e-6  # part of a row's squared length that must be left outside of those before it
REFINEMENTS = 2  # solves of the system, each with what the last one left

# What `solve_independent` returns.
UNIQUE, DEPENDENT, PULLS = range(3)


@fast_kernel
def factor_rows(rows: np.ndarray, L: np.ndarray, envelope: np.ndarray, play: Play, count: int,
                white_out: np.ndarray, G_out: np.ndarray) -> bool:  # fmt: skip
    """Whiten the rows in play, fill G_out with the factor of G; return if they are independent.

    The diagonal of the factor holds reciprocals.
    """
    m = rows.shape[1]
    for k in range(count):
        white, row = white_out[k], rows[play.at[k]]
        for j in range(m):
            white[j] = row[j]
        solve_lower(L, envelope, white)
        for i in range(k):
            G_out[k, i] = (dot(white, white_out[i]) - dot(G_out[k, :i], G_out[i, :i])) * G_out[i, i]
        length2 = dot(white, white)
        left = length2 - dot(G_out[k, :k], G_out[k, :k])
        if not left > INDEPENDENT * length2:
            return False
        G_out[k, k] = 1.0 / np.sqrt(left)
    return True


@fast_kernel
def solve_rows(G: np.ndarray, count: int, x_inout: np.ndarray) -> None:
    """Overwrite x with G^-1 x, by the factor of G."""
    for i in range(count):
        x_inout[i] = (x_inout[i] - dot(G[i, :i], x_inout[:i])) * G[i, i]
    for i in range(count - 1, -1, -1):
        x_inout[i] *= G[i, i]
        add(-x_inout[i], G[i, :i], x_inout[:i])


@kernel
def solve_independent(sc: Scene, ne: int, count: int, wk: Work, out: Found) -> int:
    """Fill motion, impulses and wk.masks[1] (pressed) from the rows in play, if they are that.

    Returns:
        UNIQUE, or DEPENDENT, or PULLS: the forces are unique, but a contact would have to pull, or
        hold without being pressed, or dry friction does not suffice.
    """
    m, nf, play, pressed, u = sc.v.shape[0], sc.loss.shape[0], wk.play, wk.masks[1], wk.x[5]
    white, G = wk.white, wk.square[1]
    if count > m or not factor_rows(sc.rows, wk.L, wk.envelope, play, count, white, G):
        return DEPENDENT
    for j in range(m):
        out.motion[j] = out.v_free[j]
    for k in range(count):
        play.s[k] = 0.0
    for _ in range(REFINEMENTS):
        for j in range(m):
            u[j] = 0.0
        for k in range(count):
            play.miss[k] = play.c[k] - dot(sc.rows[play.at[k]], out.motion)
        solve_rows(G, count, play.miss)
        for k in range(count):
            play.s[k] += play.miss[k]
            add(play.miss[k], white[k], u)
        solve_upper(wk.L, wk.envelope, u)
        add(1.0, u, out.motion)
    for k in range(count):
        out.impulse[play.at[k]] = play.s[k]
        out.loaded[play.at[k]] = True
    for i in range(nf):
        if not abs(out.impulse[ne + i]) <= sc.loss[i]:
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
