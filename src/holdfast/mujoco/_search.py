"""The search for the motion of a step, where it is not a usual one.

What `holdfast.models.Mixed` does with a `ContactProblem`, on MuJoCo's own rows and without making
either: list the contacts that the motion would close, hold those that want to stick, solve, share
the forces out, release what nothing presses and take back what is pressed and slides, until the
two agree; then see whether the motion closes further contacts. It goes in rounds of `pose`, a
solve, and `weigh`, see `holdfast.mujoco._rounds`, and gives up where anything is in doubt; the
stepper then takes the long way, which has more to try and can explain itself.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

import numpy as np

from holdfast._jit import kernel
from holdfast.lcp._solve import INFEASIBLE, UNCERTIFIED
from holdfast.lcp.status import Status
from holdfast.models._grip import SLIDING
from holdfast.models._sharing import SHARED
from holdfast.mujoco._forces import (
    balanced,
    closing,
    dot,
    judge,
    length2,
    measure,
    share,
    tied_as_solved,
    whiten,
)
from holdfast.mujoco._scene import (
    CONSISTENT,
    FREE,
    PIVOTS,
    RANK_TOL,
    ROUNDS,
    SCALE,
    SOLVES,
    Found,
    Numbers,
    Scene,
    Work,
)
from holdfast.mujoco._usual import (
    FOUND,
    NOT_BALANCED,
    NOT_SETTLED,
    NOT_SOLVED,
    hold_all,
    hold_new,
    list_closing,
    prepare,
)

AGAIN, JAMS = 4, 5  # what else `weigh` returns
PIVOT_LIMIT = int(Status.PIVOT_LIMIT)

# Collision detectors place points to about 1e-7. Tangents that differ by no more than that are
# the same tangent; held apart, they ask for friction a million times the load. Where rows are too
# nearly dependent to certify, the rank tolerance grows by steps.
COARSER, COARSEST = 100.0, 1e-3
STRAINED = 1e3  # friction that shows such tangents, relative to one that would stop the motion,
STEEP = 10.0  # and relative to the largest normal impulse
MAX_SOLVES = 40  # rounds of releasing, taking back and listing what the motion would still close


@kernel
def _put(sc: Scene, wk: Work, k: int, row: int, b: float, lo: float, hi: float) -> int:
    """Make a row of MuJoCo's list row k of the problem; return k + 1."""
    for j in range(sc.v.shape[0]):
        wk.values[k, j] = sc.rows[row, j]
    wk.at[k] = row
    wk.bounds[0, k], wk.bounds[1, k], wk.bounds[2, k] = b, lo, hi
    return k + 1


@kernel
def collect(sc: Scene, nr: Numbers, ne: int, nf: int, held: np.ndarray, wk: Work,
            out: Found) -> tuple[int, int]:  # fmt: skip
    """Fill the problem's rows: J, then S and T by contact, R, N, U, D; return equalities, all."""
    n, inf = sc.gap.shape[0], np.inf
    k = 0
    for i in range(ne):
        k = _put(sc, wk, k, i, -sc.target[i], -inf, inf)
    for i in range(n):
        if out.contacts[i] and held[i]:
            k = _put(sc, wk, k, sc.first[i] + 1, 0.0, -inf, inf)
            k = _put(sc, wk, k, sc.first[i] + 2, 0.0, -inf, inf)
    for i in range(n):
        if out.contacts[i] and held[i]:
            for e in range(3, sc.dim[i]):
                k = _put(sc, wk, k, sc.first[i] + e, 0.0, -inf, inf)
    equalities = k
    for i in range(n):
        if out.contacts[i]:
            k = _put(sc, wk, k, sc.first[i], closing(sc, nr, i, out), 0.0, inf)
    for i in range(sc.limit_gap.shape[0]):
        if out.limits[i]:
            k = _put(sc, wk, k, ne + nf + i, max(sc.limit_gap[i], 0.0) / nr.h, 0.0, inf)
    for i in range(nf):
        k = _put(sc, wk, k, ne + i, 0.0, -sc.loss[i], sc.loss[i])
    return equalities, k


@kernel
def list_expected(expected: np.ndarray, begin: int, end: int, wk: Work) -> int:
    """Fill wk.warm with those of the rows from begin to end that are expected to be loaded."""
    warm = 0
    for r in range(begin, end):
        if expected[wk.at[r]]:
            wk.warm[warm] = r
            warm += 1
    return warm


@kernel
def keep(sc: Scene, k: int, y: np.ndarray, wk: Work, out: Found) -> None:
    """Fill motion, impulse and loaded from what the solver wrote for k rows."""
    m = sc.v.shape[0]
    for r in range(out.impulse.shape[0]):
        out.impulse[r] = 0.0
        out.loaded[r] = False
    if k == 0:
        for j in range(m):
            out.motion[j] = out.v_free[j]
        return
    for r in range(k):
        out.impulse[wk.at[r]] = y[r]
    for j in range(m):
        out.motion[j] = y[2 * k + j]
    scalars = y[2 * k + m + min(m, k) :]
    for l in range(int(scalars[5])):
        out.loaded[wk.at[int(y[2 * k + m + l])]] = True
    out.numbers[PIVOTS] += scalars[4]


@kernel
def sliding(sc: Scene, nr: Numbers, wk: Work, i: int, x: np.ndarray, scale: float) -> float:
    """Return the relative sliding speed of contact i."""
    speed = 0.0
    for e in range(1, 3):
        row = sc.first[i] + e
        length = whiten(sc, wk, row, wk.x[6])
        if length > 0.0:
            speed = max(speed, abs(dot(sc.rows[row], x)) / (length * scale))
    return speed


@kernel
def exchange(sc: Scene, nr: Numbers, n: int, scale: float, tied: bool, wk: Work,
             out: Found) -> bool:  # fmt: skip
    """Release what is not pressed, take back what is pressed and slides; return if nothing is.

    No contact goes to and fro for long. What is released and then slides is taken back once: it
    may have been others, released at the same time, that kept it from being pressed. When that
    happens again, it jams, and is held for good; its gap, which is below the detector's accuracy,
    is taken for zero: wedged in by others it cannot close it. If it is about to land, it has no
    friction in this step instead: in the air nothing jams.
    """
    freed, jams, slippery, taken = wk.masks[3], wk.masks[4], wk.masks[5], wk.masks[6]
    settled = True
    for c in range(n):
        i = wk.which[0, c]
        pressed = wk.masks[1, c]
        if out.held[i]:
            if not tied and not pressed and not jams[i]:
                out.held[i] = settled = False
                freed[i] = True
        elif pressed and sc.sticks[i] and not slippery[i]:
            if sliding(sc, nr, wk, i, out.motion, scale) <= SLIDING:
                continue
            again = freed[i] and taken[i]
            if again and sc.gap[i] > nr.open:
                slippery[i] = True
                continue
            out.held[i] = True
            jams[i] = out.closed[i] = again
            taken[i] = freed[i]
            settled = False
    return settled


@kernel
def conclude(sc: Scene, n: int, tied: bool, wk: Work, out: Found) -> None:
    """Say which contacts stick, and whether exactly the pressed ones do."""
    out.numbers[CONSISTENT] = 1.0 if tied else 0.0
    for i in range(sc.gap.shape[0]):
        out.grips[i] = False
    for c in range(n):
        i = wk.which[0, c]
        out.grips[i] = out.held[i] and (wk.masks[1, c] or not tied)


@kernel
def strained(sc: Scene, wk: Work, out: Found) -> int:
    """Return a contact that strains against others, with tangents that are all but the same.

    Of those that do it is the one with the least pressure, one that does not jam if possible; -1
    if there is none.
    """
    jams, found, normal = wk.masks[4], -1, 0.0
    for i in range(sc.gap.shape[0]):
        if out.contacts[i]:
            normal = max(normal, out.impulse[sc.first[i]])
    for i in range(sc.gap.shape[0]):
        if not (out.contacts[i] and out.held[i]):
            continue
        friction = stop2 = 0.0
        for row in range(sc.first[i] + 1, sc.first[i] + 3):
            friction = max(friction, abs(out.impulse[row]))
            stop2 = max(stop2, out.impulse[row] ** 2 * length2(sc, row))
        if friction <= STEEP * normal or stop2 <= (STRAINED * out.numbers[SCALE]) ** 2:
            continue
        better = found < 0 or (jams[found] and not jams[i])
        if not better and jams[i] == jams[found]:
            better = out.impulse[sc.first[i]] < out.impulse[sc.first[found]]
        if better:
            found = i
    return found


@kernel
def ease(sc: Scene, nr: Numbers, settled: bool, wk: Work, out: Found) -> bool:
    """Ease what strains, by a coarser rank tolerance or by releasing it; return if that is done.

    What jams cannot be released. The tolerance that eases it lets contacts slide a little, so it
    is for motions alone that the search has settled on.
    """
    tense, rank_tol = strained(sc, wk, out), out.numbers[RANK_TOL]
    if tense < 0:
        return False
    if rank_tol > nr.rank_tol and not wk.masks[4, tense]:
        out.held[tense] = False
        wk.masks[3, tense] = True
        return True
    if rank_tol == nr.rank_tol or (settled and rank_tol < COARSEST):
        out.numbers[RANK_TOL] *= COARSER
        return True
    return False


@kernel
def let_go(held_inout: np.ndarray) -> bool:
    """Release everything; return whether anything was held."""
    some = False
    for i in range(held_inout.shape[0]):
        some = some or held_inout[i]
        held_inout[i] = False
    return some


@kernel
def lands(sc: Scene, nr: Numbers, out: Found) -> bool:
    """Return whether there is friction where surfaces touch only at the end of the step."""
    some = False
    for i in range(sc.gap.shape[0]):
        some = some or (sc.sticks[i] and out.contacts[i] and sc.gap[i] > nr.open)
    return some


@kernel
def without_landing(sc: Scene, nr: Numbers, wk: Work, out: Found) -> bool:
    """Begin again, without friction where surfaces touch only at the end: in the air nothing jams.

    Returns:
        Whether there is such friction; if not, all stays as it is.
    """
    if not lands(sc, nr, out):
        return False
    for i in range(sc.gap.shape[0]):
        sc.sticks[i] = sc.sticks[i] and sc.gap[i] <= nr.open
    prepare(sc, nr, wk, out)
    out.numbers[FREE] = 1.0 if hold_all(sc, nr, sc.target.shape[0], wk, out) else 0.0
    return True


@kernel
def pose(sc: Scene, nr: Numbers, wk: Work, out: Found) -> tuple[int, int]:
    """Pose the next problem of a search: fill wk.values, wk.bounds and wk.warm.

    Returns:
        How many rows it has, and how many of them are expected to be loaded.
    """
    ne, nf = sc.target.shape[0], sc.loss.shape[0]
    held = wk.masks[2] if out.numbers[FREE] > 0.0 else out.held
    g, k = collect(sc, nr, ne, nf, held, wk, out)
    return k, list_expected(out.expected, g, k - nf, wk)


@kernel
def weigh(sc: Scene, nr: Numbers, y: np.ndarray, k: int, status: int, wk: Work, out: Found) -> int:
    """Take over the answer to the problem that was posed, and say how to go on.

    Args:
        sc, nr, wk, out: of the search.
        y, k, status: what `holdfast.lcp._solve` wrote for k rows, and how that ended.

    Returns:
        FOUND; JAMS, if a motion was found in which contacts hold by jamming; AGAIN, if the search
        goes on; or what is in doubt.
    """
    ne, nf = sc.target.shape[0], sc.loss.shape[0]
    free, rank_tol = out.numbers[FREE] > 0.0, out.numbers[RANK_TOL]
    out.numbers[SOLVES] += 1.0
    if out.numbers[SOLVES] > MAX_SOLVES:
        return NOT_SETTLED
    if status == INFEASIBLE and not free and let_go(out.held):
        return AGAIN  # perhaps not where contacts may slide
    if status in (PIVOT_LIMIT, UNCERTIFIED) and rank_tol < COARSEST:
        out.numbers[RANK_TOL] *= COARSER
        return AGAIN
    if status != 0:
        return NOT_SOLVED
    keep(sc, k, y, wk, out)
    n, scale = measure(sc, nr, wk, out)
    if free:
        out.numbers[FREE] = 0.0
        for c in range(n):
            if wk.each[0, c] > SLIDING:
                out.held[wk.which[0, c]] = False
        return AGAIN
    status = share(sc, ne, out.held, n, wk, out)
    tied = status == SHARED or tied_as_solved(sc, out.held, status >= 0, n, wk, out)
    if ease(sc, nr, False, wk, out):
        return AGAIN
    if 2 * out.numbers[SOLVES] > MAX_SOLVES + 2:  # it takes long: no more second thoughts
        for i in range(sc.gap.shape[0]):
            wk.masks[3, i] = wk.masks[6, i] = True
    if not exchange(sc, nr, n, scale, tied, wk, out):
        out.numbers[ROUNDS] += 1.0
        return AGAIN
    if list_closing(sc, nr, ne, nf, out.motion, -nr.touch, out):
        hold_new(sc, wk, out)
        return AGAIN
    if ease(sc, nr, True, wk, out):
        return AGAIN
    if balanced(sc, wk, out):
        conclude(sc, n, tied, wk, out)
        judge(sc, nr, out)
        return FOUND if tied else JAMS
    if rank_tol < COARSEST:
        out.numbers[RANK_TOL] *= COARSER
        return AGAIN
    return NOT_BALANCED
