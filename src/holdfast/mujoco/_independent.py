"""Motion and forces where the rows that hold are independent, as those of point feet are.

Then forces are unique, there is nothing to share out, and one small system gives all of them:

    WW' s = c - B v_free,    W = B L^-1,    v = v_free + L^-1 W's,    A = L'L
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

import numpy as np

from holdfast._jit import fast_kernel, inlined
from holdfast.linalg.ltl import all_to_white, from_white
from holdfast.models._sharing import PRESSED
from holdfast.mujoco._forces import add, dot, nothing
from holdfast.mujoco._scene import SCALE, Found, Play, Scene, Work

INDEPENDENT = 1e-6  # part of a row's squared length that must be left outside of those before it
REFINEMENTS = 2  # solves of the system at most, each with what the last one left, unless that
ROUNDED = 1e-15  # is rounding: relative to what the rows make of a motion of this size

# What `solve_independent` returns.
UNIQUE, DEPENDENT, PULLS = range(3)


@fast_kernel
def factor_rows(
    rows: np.ndarray, L: np.ndarray, below: np.ndarray, play: Play, count: int,
    columns_work: np.ndarray, white_out: np.ndarray, G_out: np.ndarray,
) -> bool:  # fmt: skip
    """Fill white_out with the whitened rows in play, G_out with the upper factor of WW'.

    The diagonal of G_out holds reciprocals; play.miss is used.

    Returns:
        Whether the rows are independent.
    """
    m, length2, columns = rows.shape[1], play.miss, columns_work
    for k in range(count):
        row = rows[play.at[k]]
        for j in range(m):
            columns[j, k] = row[j]
    all_to_white(L, below, count, columns)
    for k in range(count):
        white = white_out[k]
        for j in range(m):
            white[j] = columns[j, k]
        for i in range(k + 1):
            G_out[i, k] = dot(white, white_out[i])
        length2[k] = G_out[k, k]
    for k in range(count):
        left, row = G_out[k, k], G_out[k, k + 1 : count]
        if not left > INDEPENDENT * length2[k]:
            return False
        inverse = 1.0 / left
        for i in range(row.shape[0]):
            add(-row[i] * inverse, row, G_out[k + 1 + i, k + 1 : count])  # half of it is needed
        scale = np.sqrt(inverse)
        for i in range(row.shape[0]):
            row[i] *= scale
        G_out[k, k] = scale
    return True


@fast_kernel
def solve_rows(G: np.ndarray, count: int, x_inout: np.ndarray) -> None:
    """Overwrite x with (WW')^-1 x, by the factor."""
    for k in range(count):
        x_inout[k] *= G[k, k]
        add(-x_inout[k], G[k, k + 1 : count], x_inout[k + 1 : count])
    for k in range(count - 1, -1, -1):
        x_inout[k] = (x_inout[k] - dot(G[k, k + 1 : count], x_inout[k + 1 : count])) * G[k, k]


@inlined
def solve_independent(sc: Scene, ne: int, count: int, wk: Work, out: Found) -> int:
    """Fill motion, impulses and wk.masks[1] (pressed) from the rows in play, if they are that.

    Returns:
        UNIQUE, or DEPENDENT, or PULLS: the forces are unique, but a contact or a limit would have
        to pull, or a contact to hold without being pressed, or dry friction does not suffice.
    """
    m, nf, play, pressed, u = sc.v.shape[0], sc.loss.shape[0], wk.play, wk.masks[1], wk.x[5]
    white, W, G, miss = wk.white, wk.square[1], wk.square[2], wk.play.miss
    if count > m or not factor_rows(sc.rows, wk.L, wk.below, play, count, W, white, G):
        return DEPENDENT
    for j in range(m):
        out.motion[j] = out.v_free[j]
    for k in range(count):
        play.s[k] = 0.0
    rounding = ROUNDED * out.numbers[SCALE]
    for solves in range(REFINEMENTS):
        done = solves > 0
        for k in range(count):
            r = play.at[k]
            miss[k] = play.c[k] - dot(sc.rows[r], out.motion)
            done = done and miss[k] * miss[k] <= rounding * rounding * play.length2[r]
        if done:
            break
        solve_rows(G, count, miss)
        for j in range(m):
            u[j] = 0.0
        for k in range(count):
            play.s[k] += miss[k]
            add(miss[k], white[k], u)
        from_white(wk.L, wk.below, u)
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
    normal = friction = longest = 0.0
    for i in range(sc.gap.shape[0]):
        if out.contacts[i]:
            longest = max(longest, play.length2[sc.first[i]])
            normal = max(normal, abs(out.impulse[sc.first[i]]))
            for r in range(sc.first[i] + 1, sc.first[i] + sc.dim[i]):
                friction = max(friction, abs(out.impulse[r]))
    least = max(PRESSED * normal, nothing(longest, out))
    for i in range(sc.gap.shape[0]):
        if not out.contacts[i]:
            continue
        first = sc.first[i]
        pressed[i] = out.impulse[first] > least
        if pressed[i]:
            continue
        if not out.impulse[first] >= -least:
            return PULLS
        for r in range(first, first + sc.dim[i]):
            if r > first and abs(out.impulse[r]) > PRESSED * friction:
                return PULLS
            out.impulse[r] = 0.0
    return UNIQUE
