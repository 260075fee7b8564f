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

from typing import NamedTuple

import numpy as np

from holdfast.lcp._envelope import cholesky, multiply_upper, solve_lower, solve_upper
from holdfast.lcp._kernel import entry, fast_kernel, kernel
from holdfast.lcp._solve import INFEASIBLE, SCALARS, SURVEY, UNCERTIFIED, advance, survey
from holdfast.lcp.status import Status
from holdfast.models._grip import SLIDING
from holdfast.models._sharing import PRESSED, SHARED, share_normals, share_tangents
from holdfast.models._spread import TOUCHING
from holdfast.mujoco._balance import BALANCED

# What `find_motion` returns: all is well, or what is in doubt.
FOUND, NOT_SOLVED, NOT_BALANCED, NOT_SETTLED = 0, 1, 2, 3
PIVOT_LIMIT = int(Status.PIVOT_LIMIT)
# Collision detectors place points to about 1e-7. Tangents that differ by no more than that are
# the same tangent; held apart, they ask for friction a million times the load. Where rows are too
# nearly dependent to certify, the rank tolerance grows by steps.
COARSER, COARSEST = 100.0, 1e-3
WEDGED = 1e-2  # normal impulse of a contact that jams, as a part of the largest one
MAX_SOLVES = 40  # rounds of releasing, taking back and listing what the motion would still close
NO_FORCE = 1e-12  # as in `holdfast.solution`
EXCEEDED = 1e-6  # as in `holdfast.mujoco.contacts`

# Numbers that `find_motion` reports.
SLIP, EXCESS, PIVOTS, RANK_KEPT, RANK_REJECTED, RANK_TOL, ROUNDS, CONSISTENT, REPORTED = range(9)


class Scene(NamedTuple):
    """Rows of a step and what they shall do; see `holdfast.mujoco.assemble.Rows`."""

    A: np.ndarray  # (1, m, m)
    v: np.ndarray
    f: np.ndarray
    rows: np.ndarray  # (nefc, m): equalities, dry friction, limits, contacts
    target: np.ndarray
    loss: np.ndarray
    limit_gap: np.ndarray
    first: np.ndarray
    dim: np.ndarray
    gap: np.ndarray
    mu: np.ndarray
    sticks: np.ndarray


class Numbers(NamedTuple):
    """Step length, when surfaces touch and when a gap is open; tolerances of the solver."""

    h: float
    touch: float
    open: float
    symmetry: float
    feasibility: float
    rank: float
    zero_row: float
    certificate: float
    max_pivots: int
    rank_tol: float


class Work(NamedTuple):
    """Work arrays, for n contacts, m coordinates and nefc rows."""

    L: np.ndarray  # (1, m, m)
    envelope: np.ndarray  # (m,) integers
    x: np.ndarray  # (8, m)
    values: np.ndarray  # (nefc, m)
    bounds: np.ndarray  # (3 nefc,)
    at: np.ndarray  # (nefc,) integers
    offsets: np.ndarray  # none: rows are dense
    warm: np.ndarray  # (2 n + limits,) integers
    solver: np.ndarray
    solver_integers: np.ndarray
    out: np.ndarray
    white: np.ndarray  # (nefc + n + m, m)
    which: np.ndarray  # (1, n) integers
    each: np.ndarray  # (5, n)
    masks: np.ndarray  # (7, n) booleans: touching, pressed, none, and see `exchange`, `hold_new`
    square: np.ndarray  # the rest: see `share_normals` and `share_tangents`
    vector: np.ndarray
    columns: np.ndarray
    long: np.ndarray
    E: np.ndarray
    pivots: np.ndarray


class Found(NamedTuple):
    """What is found: impulses by row, and who takes part."""

    v_free: np.ndarray
    motion: np.ndarray
    impulse: np.ndarray  # (nefc,)
    contacts: np.ndarray  # (n,) contacts in the problem
    closed: np.ndarray  # (n,) contacts whose gap is taken for zero
    grips: np.ndarray  # (n,) contacts that are pressed and stick
    held: np.ndarray  # (n,) contacts whose tangents were equality rows
    limits: np.ndarray
    loaded: np.ndarray  # (nefc,) rows that hold with equality
    numbers: np.ndarray  # (REPORTED,)


@fast_kernel
def dot(a: np.ndarray, b: np.ndarray) -> float:
    """Return the scalar product."""
    t = 0.0
    for j in range(a.shape[0]):
        t += a[j] * b[j]
    return t


@fast_kernel
def add(t: float, a: np.ndarray, y_inout: np.ndarray) -> None:
    """Add t a to y."""
    for j in range(a.shape[0]):
        y_inout[j] += t * a[j]


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
def closing(sc: Scene, nr: Numbers, i: int, out: Found) -> float:
    """Return the speed that closes the gap of contact i within the step."""
    return 0.0 if out.closed[i] else max(sc.gap[i], 0.0) / nr.h


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
    if expected.shape[0] > 0:
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
    out.numbers[RANK_KEPT], out.numbers[RANK_REJECTED] = scalars[7], scalars[8]


@kernel
def whiten(sc: Scene, wk: Work, row: int, y_out: np.ndarray) -> float:
    """Fill y_out with a whitened row; return its length."""
    for j in range(y_out.shape[0]):
        y_out[j] = sc.rows[row, j]
    solve_lower(wk.L, wk.envelope, y_out)
    return np.sqrt(dot(y_out, y_out))


@kernel
def size_of(wk: Work, x: np.ndarray) -> float:
    """Return the size of a motion in the metric of the inertia."""
    multiply_upper(wk.L, wk.envelope, x, wk.x[7])
    return np.sqrt(dot(wk.x[7], wk.x[7]))


@kernel
def measure(sc: Scene, nr: Numbers, wk: Work, out: Found) -> tuple[int, float]:
    """Fill the whitened normals of the problem's contacts, and their relative separation.

    Writes wk.which[0] (the contacts), wk.white (their normals), wk.each[0] (separation speed),
    wk.each[1] (normal impulse).

    Returns:
        How many contacts there are, and the scale of the motion.
    """
    scale = max(size_of(wk, sc.v), size_of(wk, out.v_free), size_of(wk, out.motion))
    if scale == 0.0:
        scale = 1.0
    n, longest = 0, 0.0
    for i in range(sc.gap.shape[0]):
        if out.contacts[i]:
            wk.which[0, n] = i
            wk.each[2, n] = whiten(sc, wk, sc.first[i], wk.white[n])
            longest = max(longest, wk.each[2, n])
            n += 1
    for c in range(n):
        i = wk.which[0, c]
        length = wk.each[2, c]
        if length <= nr.zero_row * longest:
            length = longest if longest > 0.0 else 1.0
        away = dot(sc.rows[sc.first[i]], out.motion) + closing(sc, nr, i, out)
        wk.each[0, c] = away / (length * scale)
        wk.each[1, c] = out.impulse[sc.first[i]]
    return n, scale


@kernel
def drive_in(sc: Scene, n: int, wedge: float, wk: Work, out: Found) -> bool:
    """Fill wk.each[4] with impulses that press contacts that jam, wk.each[1] with what is left.

    Held, such a contact is wedged in between others, and forces of least squares do not show it.

    Returns:
        Whether there is any.
    """
    some = False
    for c in range(n):
        i = wk.which[0, c]
        jams = wedge > 0.0 and wk.masks[4, i] and wk.masks[0, c]
        some = some or jams
        wk.each[4, c] = wedge if jams else 0.0
        wk.each[1, c] = out.impulse[sc.first[i]] - wk.each[4, c]
    return some


@kernel
def share(sc: Scene, ne: int, held: np.ndarray, n: int, wk: Work, out: Found) -> int:
    """Share the forces out among the problem's contacts; fill out.impulse, wk.masks[1] (pressed).

    Returns:
        SHARED, or another status if tangential forces at pressed contacts do not suffice (then
        the impulses stay as they are), or -1 if the normal forces could not be shared.
    """
    m, nefc = sc.v.shape[0], wk.at.shape[0]
    total, rest = wk.x[0], wk.x[1]
    for j in range(m):
        total[j] = 0.0
    for r in range(nefc):
        if out.impulse[r] != 0.0:
            add(out.impulse[r], sc.rows[r], total)
    dry_and_limits = ne + (sc.loss.shape[0] + sc.limit_gap.shape[0])
    for r in range(ne, dry_and_limits):
        add(-out.impulse[r], sc.rows[r], total)
    for j in range(m):
        rest[j] = total[j]

    # normals
    k = 0
    for r in range(nefc):
        equality = out.loaded[r] and (r < ne or r >= dry_and_limits)
        if equality:
            wk.at[k] = r
            k += 1
    for c in range(n):  # loaded normals are no equality rows
        row = sc.first[wk.which[0, c]]
        for l in range(k):
            if wk.at[l] == row:
                wk.at[l] = -1
    kept = 0
    for l in range(k):
        if wk.at[l] >= 0:
            wk.at[kept] = wk.at[l]
            whiten(sc, wk, wk.at[l], wk.white[n + kept])
            kept += 1
    flat = wk.white.reshape(wk.white.size)
    largest = 0.0
    for c in range(n):
        wk.masks[0, c] = abs(wk.each[0, c]) <= TOUCHING
        largest = max(largest, wk.each[1, c])
    columns = wk.columns[: 2 * m * n].reshape(2, m, n)
    wedge, wedged = WEDGED * largest, True
    status = -1
    while status != SHARED and wedged:  # the second time without
        wedged = drive_in(sc, n, wedge, wk, out)
        wedge = 0.0
        status = share_normals(
            flat[: n * m].reshape(n, m), flat[n * m : (n + kept) * m].reshape(kept, m),
            wk.masks[0, :n], wk.each[1, :n], wk.square, wk.vector, columns,
            wk.long[: 5 * n].reshape(5, n), wk.E[: n * m].reshape(n, m), wk.pivots,
            wk.each[3, :n],
        )  # fmt: skip
    if status != SHARED:
        return -1
    for c in range(n):
        wk.each[3, c] += wk.each[4, c]
        largest = max(largest, wk.each[3, c])
    for c in range(n):
        wk.masks[1, c] = wk.each[3, c] > PRESSED * largest
        add(-wk.each[3, c], sc.rows[sc.first[wk.which[0, c]]], rest)

    # tangents
    solve_lower(wk.L, wk.envelope, total)
    solve_lower(wk.L, wk.envelope, rest)
    joints = 0
    for l in range(kept):  # joints stand first in MuJoCo's list
        if wk.at[l] < ne:
            wk.at[joints] = wk.at[l]
            whiten(sc, wk, wk.at[l], wk.white[joints])
            joints += 1
    free = joints
    for c in range(n):
        i = wk.which[0, c]
        if held[i] and wk.masks[1, c]:
            for e in range(3, sc.dim[i]):
                wk.at[free] = sc.first[i] + e
                whiten(sc, wk, wk.at[free], wk.white[free])
                free += 1
    t = 0
    for c in range(n):
        i = wk.which[0, c]
        if held[i] and wk.masks[1, c]:
            for e in range(1, 3):
                wk.warm[t] = c  # the solver is done with it
                whiten(sc, wk, sc.first[i] + e, wk.white[free + t])
                t += 1
    contact = wk.warm[:t]
    status = share_tangents(
        flat[free * m : (free + t) * m].reshape(t, m), contact, flat[: free * m].reshape(free, m),
        wk.each[3, :n], rest, np.sqrt(dot(total, total)), wk.square, wk.vector,
        wk.columns[: 2 * m * t].reshape(2, m, t), wk.long[: 5 * t].reshape(5, t),
        wk.E[: t * m].reshape(t, m), wk.pivots, wk.bounds[:t], wk.bounds[t : t + free],
    )  # fmt: skip
    if status != SHARED:
        return status
    for r in range(nefc):
        if r < ne or r >= dry_and_limits:
            out.impulse[r] = 0.0
    for l in range(free):
        out.impulse[wk.at[l]] = wk.bounds[t + l]
    for l in range(t):
        row = sc.first[wk.which[0, contact[l]]] + 1 + l % 2
        out.impulse[row] = wk.bounds[l]
    for c in range(n):
        out.impulse[sc.first[wk.which[0, c]]] = wk.each[3, c]
    return SHARED


@kernel
def tied_as_solved(sc: Scene, held: np.ndarray, shared: bool, n: int, wk: Work,
                   out: Found) -> bool:  # fmt: skip
    """Return whether friction acts at pressed contacts only, forces taken as the solver has them.

    Rows can be so nearly dependent that sharing forces out loses what they add up to, while the
    forces of the solver are good. Where they are all there is, wk.masks[1] (pressed) is filled
    accordingly; a contact that is held and carries nothing needs no release.
    """
    normal = friction = 0.0
    for c in range(n):
        i = wk.which[0, c]
        normal = max(normal, out.impulse[sc.first[i]])
        wk.each[4, c] = 0.0
        for e in range(1, sc.dim[i]):
            wk.each[4, c] = max(wk.each[4, c], abs(out.impulse[sc.first[i] + e]))
        friction = max(friction, wk.each[4, c])
    tied = True
    for c in range(n):
        i = wk.which[0, c]
        pressed = out.impulse[sc.first[i]] > PRESSED * normal
        tied = tied and (pressed or wk.each[4, c] <= PRESSED * friction)
    for c in range(n):
        i = wk.which[0, c]
        pressed = out.impulse[sc.first[i]] > PRESSED * normal
        if tied:
            wk.masks[1, c] = pressed
        elif not shared:
            wk.masks[1, c] = pressed or (held[i] and wk.each[4, c] <= PRESSED * friction)
    return tied


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
    for i in range(sc.gap.shape[0]):
        out.held[i] = out.contacts[i] and sc.sticks[i]
        wk.masks[6, i] = out.contacts[i]
        if out.held[i]:
            least = -max(sc.gap[i], 0.0) / nr.h
            doubt = doubt or dot(sc.rows[sc.first[i]], out.v_free) > least
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
def balanced(sc: Scene, wk: Work, out: Found) -> bool:
    """Return whether the impulses add up to the motion."""
    m = sc.v.shape[0]
    rest, total = wk.x[0], wk.x[1]
    for j in range(m):
        wk.x[2, j] = out.motion[j] - out.v_free[j]
        total[j] = 0.0
    for r in range(out.impulse.shape[0]):
        if out.impulse[r] != 0.0:
            add(out.impulse[r], sc.rows[r], total)
    for j in range(m):
        rest[j] = dot(sc.A[0, j], wk.x[2]) - total[j]
    solve_lower(wk.L, wk.envelope, rest)
    solve_lower(wk.L, wk.envelope, total)
    size = max(size_of(wk, out.motion), size_of(wk, sc.v), size_of(wk, out.v_free))
    size = max(size, np.sqrt(dot(total, total)))
    return np.isfinite(size) and np.sqrt(dot(rest, rest)) <= BALANCED * size


@kernel
def judge(sc: Scene, nr: Numbers, out: Found) -> None:
    """Fill in the fastest sliding of a pressed contact that sticks, and whether friction lacks."""
    largest = friction = 0.0
    for i in range(sc.gap.shape[0]):
        if out.contacts[i]:
            largest = max(largest, out.impulse[sc.first[i]])
            if sc.dim[i] >= 3:
                f_s, f_t = out.impulse[sc.first[i] + 1], out.impulse[sc.first[i] + 2]
                friction = max(friction, np.sqrt(f_s * f_s + f_t * f_t))
    slip = excess = 0.0
    for i in range(sc.gap.shape[0]):
        if not (out.contacts[i] and sc.sticks[i]):
            continue
        row = sc.first[i]
        pressed = out.impulse[row] > PRESSED * largest
        if pressed and (out.grips[i] or sc.gap[i] <= nr.open):
            s, t = dot(sc.rows[row + 1], out.motion), dot(sc.rows[row + 2], out.motion)
            slip = max(slip, np.sqrt(s * s + t * t))
        if out.grips[i]:
            f_s, f_t = out.impulse[row + 1], out.impulse[row + 2]
            along = np.sqrt(f_s * f_s + f_t * f_t)
            lacks = along > out.impulse[row] * sc.mu[i] * (1.0 + EXCEEDED)
            if lacks and along > NO_FORCE * max(largest, friction):
                excess = 1.0
    out.numbers[SLIP], out.numbers[EXCESS] = slip, excess


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
    out.numbers[RANK_KEPT], out.numbers[RANK_TOL] = np.inf, nr.rank_tol
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


@entry
def find_motion(sc: Scene, nr: Numbers, expected: np.ndarray, wk: Work, out: Found) -> int:
    """Find the motion of a step and its forces; fill out.

    Args:
        expected: (nefc,) rows that were loaded in the last step, if its rows were the same; or
            empty.

    Returns:
        FOUND, or what is in doubt.
    """
    m, nefc, ne, nf = sc.v.shape[0], wk.at.shape[0], sc.target.shape[0], sc.loss.shape[0]
    if not prepare(sc, nr, wk, out):
        return NOT_SOLVED
    free = hold_all(sc, nr, ne, wk, out)  # first see who leaves when nothing is held
    rank_tol = nr.rank_tol
    for solves in range(MAX_SOLVES):
        # The solver is called in one place: whatever calls it is compiled as long as it is.
        g, k = collect(sc, nr, ne, nf, wk.masks[2] if free else out.held, wk, out)
        y = wk.out[: 2 * k + m + min(m, k) + SCALARS]
        if k > 0:
            warm = wk.warm[: list_expected(expected, g, k - nf, wk)]
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
        if 2 * solves > MAX_SOLVES:  # it takes long: no more second thoughts
            for i in range(sc.gap.shape[0]):
                wk.masks[3, i] = True
        if not exchange(sc, nr, n, scale, tied, wk, out):
            out.numbers[ROUNDS] += 1
        elif list_closing(sc, nr, ne, nf, out.motion, -nr.touch, out):
            hold_new(sc, wk, out)
        elif balanced(sc, wk, out):
            conclude(sc, n, tied, wk, out)
            judge(sc, nr, out)
            return FOUND
        elif rank_tol < COARSEST:
            rank_tol *= COARSER
        else:
            return NOT_BALANCED
    return NOT_SETTLED
