"""The motion of a step in compiled code: the kernel behind the stepper's usual path.

What `holdfast.models.Mixed` does with a `ContactProblem`, on MuJoCo's own rows and without making
either: list the contacts that the motion would close, hold those that want to stick, solve, share
the forces out, release what nothing presses and take back what is pressed and slides, until the
two agree; then see whether the motion closes further contacts. The kernel gives up where anything
is in doubt; the stepper then takes the long way, which has more to try and can explain
itself.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

import numpy as np

from holdfast.lcp._envelope import cholesky, solve_lower, solve_upper
from holdfast.lcp._kernel import kernel
from holdfast.lcp._solve import INFEASIBLE, SCALARS, SURVEY, UNCERTIFIED, advance, survey
from holdfast.lcp.status import Status
from holdfast.models._grip import SLIDING
from holdfast.models._sharing import SHARED
from holdfast.mujoco._forces import (
    balanced,
    closing,
    dot,
    judge,
    measure,
    share,
    size_of,
    tied_as_solved,
    whiten,
)
from holdfast.mujoco._scene import (
    CONSISTENT,
    PIVOTS,
    RANK_TOL,
    REPORTED,
    ROUNDS,
    Found,
    Numbers,
    Scene,
    Work,
)
from holdfast.mujoco._steady import stay

# What `find_motion` returns: all is well, or what is in doubt.
FOUND, NOT_SOLVED, NOT_BALANCED, NOT_SETTLED = 0, 1, 2, 3
PIVOT_LIMIT = int(Status.PIVOT_LIMIT)

# Collision detectors place points to about 1e-7. Tangents that differ by no more than that are
# the same tangent; held apart, they ask for friction a million times the load. Where rows are too
# nearly dependent to certify, the rank tolerance grows by steps.
COARSER, COARSEST = 100.0, 1e-3
STRAINED = 1e3  # friction, as a multiple of the largest normal impulse, that shows such tangents
MAX_SOLVES = 40  # rounds of releasing, taking back and listing what the motion would still close


@kernel
def list_closing(sc: Scene, nr: Numbers, ne: int, nf: int, x: np.ndarray, bound: float,
                 out: Found) -> bool:  # fmt: skip
    """Add contacts and limits that the motion x closes beyond `bound`; return if there are any."""
    added = False
    for i in range(sc.gap.shape[0]):
        if not out.contacts[i] and sc.gap[i] + nr.h * dot(sc.rows[sc.first[i]], x) <= bound:
            out.contacts[i] = True
            added = True
    for i in range(sc.limit_gap.shape[0]):
        if not out.limits[i] and sc.limit_gap[i] + nr.h * dot(sc.rows[ne + nf + i], x) <= bound:
            out.limits[i] = True
            added = True
    return added


@kernel
def _put(sc: Scene, wk: Work, k: int, row: int, b: float, lo: float, hi: float) -> int:
    """Make a row of MuJoCo's list row k of the problem; return k + 1."""
    size = wk.at.shape[0]
    for j in range(sc.v.shape[0]):
        wk.values[k, j] = sc.rows[row, j]
    wk.at[k] = row
    wk.bounds[k], wk.bounds[size + k], wk.bounds[2 * size + k] = b, lo, hi
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
def hold_all(sc: Scene, nr: Numbers, ne: int, wk: Work, out: Found) -> bool:
    """Hold all contacts that want to stick; return whether some might leave if they were free."""
    doubt = ne > 0
    scale = max(size_of(wk, sc.v), size_of(wk, out.v_free))
    for i in range(sc.gap.shape[0]):
        out.held[i] = out.contacts[i] and sc.sticks[i]
        wk.masks[6, i] = out.contacts[i]
        if out.held[i] and not doubt:
            away = dot(sc.rows[sc.first[i]], out.v_free) + closing(sc, nr, i, out)
            if away > 0.0:  # by more than rounding, and a detector's noise?
                doubt = away > SLIDING * scale * whiten(sc, wk, sc.first[i], wk.x[6])
    return doubt


@kernel
def exchange(sc: Scene, nr: Numbers, n: int, scale: float, tied: bool, wk: Work,
             out: Found) -> bool:  # fmt: skip
    """Release what is not pressed, take back what is pressed and slides; return if nothing is.

    No contact goes to and fro: one that is pressed and slides after it was released jams, and is
    held for good; its gap, which is below the detector's accuracy, is taken for zero: wedged in by
    others it cannot close it. If it is about to land, it has no friction in this step instead: in
    the air nothing jams.
    """
    freed, jams, slippery = wk.masks[3], wk.masks[4], wk.masks[5]
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
            if freed[i] and sc.gap[i] > nr.open:
                slippery[i] = True
                continue
            out.held[i] = True
            jams[i] = out.closed[i] = freed[i]
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
def hold_new(sc: Scene, wk: Work, out: Found) -> None:
    """Hold contacts that have just been listed."""
    for i in range(sc.gap.shape[0]):
        if out.contacts[i] and not wk.masks[6, i]:
            wk.masks[6, i] = True
            out.held[i] = sc.sticks[i]


@kernel
def strained(sc: Scene, out: Found) -> bool:
    """Return whether tangents that are all but the same are held apart."""
    normal = friction = 0.0
    for i in range(sc.gap.shape[0]):
        if out.contacts[i]:
            normal = max(normal, out.impulse[sc.first[i]])
            if out.held[i]:
                for e in range(1, 3):
                    friction = max(friction, abs(out.impulse[sc.first[i] + e]))
    return friction > STRAINED * normal


@kernel
def let_go(held_inout: np.ndarray) -> bool:
    """Release everything; return whether anything was held."""
    some = False
    for i in range(held_inout.shape[0]):
        some = some or held_inout[i]
        held_inout[i] = False
    return some


@kernel
def prepare(sc: Scene, nr: Numbers, wk: Work, out: Found) -> bool:
    """Factor the inertia, find the free velocity and the contacts that it closes."""
    m, ne, nf = sc.v.shape[0], sc.target.shape[0], sc.loss.shape[0]
    for k in range(REPORTED):
        out.numbers[k] = 0.0
    out.numbers[RANK_TOL] = nr.rank_tol
    if cholesky(sc.A, wk.envelope, wk.L, nr.symmetry) != 0:
        return False
    for j in range(m):
        out.v_free[j] = sc.f[j]
    solve_lower(wk.L, wk.envelope, out.v_free)
    solve_upper(wk.L, wk.envelope, out.v_free)
    for j in range(m):
        out.v_free[j] = sc.v[j] + nr.h * out.v_free[j]
    for i in range(sc.gap.shape[0]):
        out.contacts[i] = out.closed[i] = False
        for k in range(2, 6):
            wk.masks[k, i] = False
    for i in range(sc.limit_gap.shape[0]):
        out.limits[i] = False
    list_closing(sc, nr, ne, nf, out.v_free, nr.touch, out)
    return True


@kernel
def find_motion(sc: Scene, nr: Numbers, wk: Work, out: Found, search: bool) -> int:
    """Find the motion of a step and its forces; fill out.

    Args:
        search: whether to search where not all that touches goes on touching and sticks.

    Returns:
        FOUND, or what is in doubt.
    """
    m, nefc, ne, nf = sc.v.shape[0], wk.at.shape[0], sc.target.shape[0], sc.loss.shape[0]
    if not prepare(sc, nr, wk, out):
        return NOT_SOLVED
    free = hold_all(sc, nr, ne, wk, out)  # first see who leaves when nothing is held
    if stay(sc, nr, ne, free, wk, out):
        if not list_closing(sc, nr, ne, nf, out.motion, -nr.touch, out):
            return FOUND
        hold_new(sc, wk, out)
    if not search:
        return NOT_SETTLED
    rank_tol = nr.rank_tol
    for solves in range(MAX_SOLVES):
        # The solver is called in one place: whatever calls it is compiled as long as it is.
        g, k = collect(sc, nr, ne, nf, wk.masks[2] if free else out.held, wk, out)
        y = wk.out[: 2 * k + m + min(m, k) + SCALARS]
        if k > 0:
            warm = wk.warm[: list_expected(out.expected, g, k - nf, wk)]
            values = wk.values.reshape(wk.values.size)[: k * m].reshape(k, m)
            b, lo = wk.bounds[:k], wk.bounds[nefc : nefc + k]
            hi = wk.bounds[2 * nefc : 2 * nefc + k]
            status, fresh = SURVEY, True
            while status == SURVEY:
                status = advance(
                    values, wk.offsets, sc.A, out.v_free, b, lo, hi, warm, wk.solver,
                    wk.solver_integers, y, fresh, g + nf, nr.symmetry, nr.feasibility, nr.rank,
                    nr.zero_row, nr.certificate, nr.max_pivots, rank_tol,
                )  # fmt: skip
                fresh = False
                if status == SURVEY:
                    status = survey(
                        values, wk.offsets, sc.A, m, b, lo, hi, warm, wk.solver,
                        wk.solver_integers, y, g + nf, nr.feasibility, nr.certificate,
                    )  # fmt: skip
            if status == INFEASIBLE and not free and let_go(out.held):
                continue  # perhaps not where contacts may slide
            if status in (PIVOT_LIMIT, UNCERTIFIED) and rank_tol < COARSEST:
                rank_tol *= COARSER
                continue
            if status != 0:  # also a long solve, which goes where Ctrl-C gets through
                return NOT_SOLVED
        keep(sc, k, y, wk, out)
        n, scale = measure(sc, nr, wk, out)
        if free:
            free = False
            for c in range(n):
                if wk.each[0, c] > SLIDING:
                    out.held[wk.which[0, c]] = False
            continue
        status = share(sc, ne, out.held, n, wk, out)
        tied = status == SHARED or tied_as_solved(sc, out.held, status >= 0, n, wk, out)
        if not tied and rank_tol == nr.rank_tol and strained(sc, out):
            rank_tol *= COARSER
            continue
        if 2 * solves > MAX_SOLVES:  # it takes long: no more second thoughts
            for i in range(sc.gap.shape[0]):
                wk.masks[3, i] = True
        if not exchange(sc, nr, n, scale, tied, wk, out):
            out.numbers[ROUNDS] += 1
        elif list_closing(sc, nr, ne, nf, out.motion, -nr.touch, out):
            hold_new(sc, wk, out)
        elif balanced(sc, wk, out):
            out.numbers[RANK_TOL] = rank_tol
            conclude(sc, n, tied, wk, out)
            judge(sc, nr, out)
            return FOUND
        elif rank_tol < COARSEST:
            rank_tol *= COARSER
        else:
            return NOT_BALANCED
    return NOT_SETTLED
