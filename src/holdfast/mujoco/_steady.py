"""The usual case of a step: what touches goes on touching, and what wants to stick sticks.

Then there is nothing to search for: the motion, and the forces shared out as
`holdfast.models._spread` describes, follow from three linear systems (see `_systems`).

========  ===================  =============================  ===============================
find      K                    B                              answer
========  ===================  =============================  ===============================
motion    A                    all rows that hold             p: velocity, -s: impulses
normals   sum of n n'          equalities, held tangents      f = N p
tangents  sum of f t t'        equalities, torsion, rolling   f T p; s: impulses of B
========  ===================  =============================  ===============================

Rows may depend on each other: four contacts of a face have twelve rows and rank six. Where they do
not, one system is enough (see `_independent`). The search has to decide where they nearly do, and
where a contact turns out to pull, to part or to hold without being pressed: every condition of an
answer is looked at here, none is taken from the last step.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

import numpy as np

from holdfast._jit import inlined
from holdfast.models._sharing import PRESSED
from holdfast.mujoco._components import find_ends
from holdfast.mujoco._forces import add, balanced, closing, dot, judge, nothing
from holdfast.mujoco._independent import DEPENDENT, PULLS, UNIQUE, solve_independent
from holdfast.mujoco._scene import CONSISTENT, SCALE, STAGES, Found, Numbers, Scene, Work
from holdfast.mujoco._systems import length, measure_rows, solve, take

SOFT = 1e-9  # e where there is no d, or d where there is no e, relative to the rows
SOFT_D, SOFT_E = 1e-8, 1e-5  # where there are both: the matrix has both scales
MAX_CHANGES = 5  # of the contacts that are pressed

# The systems, by what they find; the last two with nothing held.
VELOCITY, NORMALS, TANGENTS, FREE_VELOCITY, FREE_NORMALS = range(STAGES)


@inlined
def list_held(sc: Scene, ne: int, drive: float, scale: float, begin: int, held: np.ndarray,
              wk: Work) -> int:  # fmt: skip
    """Make equalities and friction rows of held contacts those of B; return how many it has.

    Args:
        drive: part of the target speed that equalities shall have, 1 or 0.
        scale: what a row of length 1 weighs.
        begin: 1 with tangents, 3 without.
    """
    play, k = wk.play, 0
    for r in range(ne):
        if play.length2[r] > 0.0:
            k = take(play, k, r, drive * sc.target[r], scale / play.length2[r])
    for i in range(sc.gap.shape[0]):
        if held[i]:
            for r in range(sc.first[i] + begin, sc.first[i] + sc.dim[i]):
                if play.length2[r] > 0.0:
                    k = take(play, k, r, 0.0, scale / play.length2[r])
    return k


@inlined
def list_all(sc: Scene, nr: Numbers, ne: int, held: np.ndarray, wk: Work, out: Found) -> int:
    """Make all rows that hold those of B; return how many, or -1 if a contact cannot press."""
    play = wk.play
    k = list_held(sc, ne, 1.0, 1.0 / SOFT, 1, held, wk)
    for i in range(sc.loss.shape[0]):
        if play.length2[ne + i] > 0.0:
            k = take(play, k, ne + i, 0.0, 1.0 / (SOFT * play.length2[ne + i]))
    for i in range(sc.gap.shape[0]):
        if out.contacts[i]:
            length2 = play.length2[sc.first[i]]
            if length2 == 0.0:
                return -1
            k = take(play, k, sc.first[i], -closing(sc, nr, i, out), 1.0 / (SOFT * length2))
    for i in range(sc.limit_gap.shape[0]):
        if out.limits[i]:
            row = ne + sc.loss.shape[0] + i
            k = take(play, k, row, -max(sc.limit_gap[i], 0.0) / nr.h, 0.0)
    return k


@inlined
def find_velocity(sc: Scene, ne: int, stage: int, k: int, wk: Work, out: Found) -> bool:
    """Fill out.motion, if all k rows can hold."""
    m, nf, play = sc.v.shape[0], sc.loss.shape[0], wk.play
    q = wk.x[3]
    for j in range(m):
        q[j] = dot(sc.A[0, j], out.v_free)
    size = out.numbers[SCALE]
    if not solve(sc, stage, 0.0, q, out.v_free, k, k, size, wk):
        return False
    for j in range(m):
        out.motion[j] = wk.kept.p[stage, j]
    for l in range(k):  # dry friction keeps its forces; the others are shared out
        r = play.at[l]
        out.loaded[r] = True
        if ne <= r < ne + nf:
            out.impulse[r] = -play.s[l]
            if abs(play.s[l]) > sc.loss[r - ne]:
                return False
    return True


@inlined
def find_effect(sc: Scene, ne: int, wk: Work, out: Found) -> float:
    """Fill wk.x[3] with the momentum that contacts and equalities have to make; return its size."""
    m, nf, q, change = sc.v.shape[0], sc.loss.shape[0], wk.x[3], wk.x[4]
    for j in range(m):
        change[j] = out.motion[j] - out.v_free[j]
    for j in range(m):
        q[j] = dot(sc.A[0, j], change)
    for r in range(ne, ne + nf):
        add(-out.impulse[r], sc.rows[r], q)
    return length(sc.A[0], q)


@inlined
def find_normals(sc: Scene, ne: int, stage: int, held: np.ndarray, size: float, wk: Work,
                 out: Found) -> bool:  # fmt: skip
    """Fill in normal impulses and wk.masks[1] (pressed), if none has to pull."""
    play, pressed, q = wk.play, wk.masks[1], wk.x[3]
    longest = 0.0
    for i in range(sc.gap.shape[0]):
        pressed[i] = out.contacts[i]
        if out.contacts[i]:
            longest = max(longest, play.length2[sc.first[i]])
    for _ in range(MAX_CHANGES):
        equal = list_held(sc, ne, 0.0, longest / SOFT_E, 1, held, wk)
        k = equal
        for i in range(sc.gap.shape[0]):
            if pressed[i]:
                k = take(play, k, sc.first[i], 0.0, 1.0)
        if not solve(sc, stage, SOFT_D * longest, q, wk.nothing, equal, k, size, wk):
            return False
        largest = 0.0
        for i in range(sc.gap.shape[0]):
            if out.contacts[i]:
                out.impulse[sc.first[i]] = dot(sc.rows[sc.first[i]], wk.kept.p[stage])
                largest = max(largest, abs(out.impulse[sc.first[i]]))
        settled = True
        least = max(PRESSED * largest, nothing(longest, out))
        for i in range(sc.gap.shape[0]):
            if not out.contacts[i]:
                continue
            f = out.impulse[sc.first[i]]
            acts = f > least
            settled = settled and not (f < -least if pressed[i] else acts)
            out.impulse[sc.first[i]] = f if pressed[i] and f > 0.0 else 0.0
            pressed[i] = acts
        if settled:
            return True
    return False


@inlined
def find_tangents(sc: Scene, ne: int, size: float, wk: Work, out: Found) -> bool:
    """Fill in the impulses of equalities and of contacts that grip, if they suffice."""
    play, q = wk.play, wk.x[3]
    largest = 0.0
    for i in range(sc.gap.shape[0]):
        if out.contacts[i]:
            add(-out.impulse[sc.first[i]], sc.rows[sc.first[i]], q)
        if out.grips[i]:
            for r in range(sc.first[i] + 1, sc.first[i] + 3):
                largest = max(largest, out.impulse[sc.first[i]] * play.length2[r])
    if largest == 0.0:
        largest = 1.0
    equal = list_held(sc, ne, 0.0, largest / SOFT_E, 3, out.grips, wk)
    k = equal
    for i in range(sc.gap.shape[0]):
        if out.grips[i]:
            for r in range(sc.first[i] + 1, sc.first[i] + 3):
                k = take(play, k, r, 0.0, out.impulse[sc.first[i]])
    soft = (SOFT if equal == 0 else SOFT_D) * largest
    if k > 0 and not solve(sc, TANGENTS, soft, q, wk.nothing, equal, k, size, wk):
        return False
    for l in range(k):
        out.impulse[play.at[l]] = play.s[l]
    return True


@inlined
def stay(sc: Scene, nr: Numbers, ne: int, free: bool, wk: Work, out: Found) -> bool:
    """Try whether all listed contacts go on touching, and stick if they want to; fill out.

    Args:
        free: whether to see first that none of them leaves when nothing is held.

    Returns:
        Whether that is the answer. If not, the search has to begin, and what it needs of out is
        as it was.
    """
    limited = False
    for i in range(sc.limit_gap.shape[0]):
        limited = limited or out.limits[i]
    for r in range(out.impulse.shape[0]):
        out.impulse[r] = 0.0
        out.loaded[r] = False
    measure_rows(sc.rows, sc.A[0], wk.x[6], wk.play)
    size, status, found = 0.0, DEPENDENT, False
    for held_now in range(0 if free else 1, 2):
        held = wk.masks[2] if held_now == 0 else out.held
        stage = FREE_VELOCITY if held_now == 0 else VELOCITY
        k = list_all(sc, nr, ne, held, wk, out)
        if k < 0:
            return False
        known = wk.kept.valid[stage] > 0.0  # to depend on each other
        status = DEPENDENT if known else solve_independent(sc, ne, k, wk, out)
        if status == PULLS or (status == DEPENDENT and limited):
            return False
        if status == UNIQUE:
            continue
        if not found:
            find_ends(sc.rows, wk.play)
            found = True
        if not find_velocity(sc, ne, stage, k, wk, out):
            return False
        size = find_effect(sc, ne, wk, out)
        stage = FREE_NORMALS if held_now == 0 else NORMALS
        if not find_normals(sc, ne, stage, held, size, wk, out):
            return False
    for i in range(sc.gap.shape[0]):
        out.grips[i] = out.held[i] and wk.masks[1, i]
    if status == DEPENDENT and not find_tangents(sc, ne, size, wk, out):
        return False
    if not balanced(sc, wk, out):
        return False
    out.numbers[CONSISTENT] = 1.0
    judge(sc, nr, out)
    return True
