"""The ladder: ways to solve an island, the cheapest first.

1. the impulses of the last step, as they are (`certify`);
2. the states of the last step (`active_set.solve_states`);
3. Newton's method from its impulses (`proximal.approach`), at once if they are nearly an answer;
4. some projected gradient steps; the states that they end in, as in 2;
5. Newton's method from there, as in 3;
6. the interior-point method from nothing; the states that it ends in, as in 2, and proximal steps
   from there (`proximal.refine`);
7. proximal steps from nothing, then with friction that grows from zero to what it is.

Where given states are certified, the answer depends on nothing else. Where contacts are so many
that equal sharing of the load would leave their cones, impulses stay near those that Newton's
method began with.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from holdfast._jit import kernel
from holdfast.contact.active_set import read_states, rounding, solve_states
from holdfast.contact.cone import OPEN, SLIDE, STICK
from holdfast.contact.interior_point import Interior, follow_path
from holdfast.contact.newton import Island, Vectors, certify, relative_speeds, scale_of
from holdfast.contact.options import Numbers
from holdfast.contact.projected_gradient import descend
from holdfast.contact.proximal import approach, refine, store
from holdfast.contact.system import DISC, System


class Rung(IntEnum):
    """Where on the ladder an island was solved."""

    IMPULSES = 0
    STATES = 1
    WARM = 2
    GRADIENT = 3
    PROXIMAL = 4
    INTERIOR = 5
    FROM_ZERO = 6
    HOMOTOPY = 7


IMPULSES, STATES, WARM = int(Rung.IMPULSES), int(Rung.STATES), int(Rung.WARM)
GRADIENT, PROXIMAL, INTERIOR = int(Rung.GRADIENT), int(Rung.PROXIMAL), int(Rung.INTERIOR)
FROM_ZERO, HOMOTOPY = int(Rung.FROM_ZERO), int(Rung.HOMOTOPY)

# What is reported, by its place: memory that is needed, the largest residual, factorisations,
# islands, islands with contacts that jam, the farthest rung, and islands by rung.
NEEDED, RESIDUAL, FACTORISATIONS, ISLANDS, JAMMED, RUNG, BY_RUNG = range(7)
REPORT = BY_RUNG + len(Rung)

GRADIENT_STEPS = 40  # of the projected gradient
INTERIOR_STEPS = 60
INTERIOR_TOLERANCE = 1e-6  # from there Newton's method is faster
REFINE_STEPS = 200  # Newton steps of proximal ones, in all
POLISH_STEPS = 8  # the same from an answer that is certified
HOMOTOPY_PARTS = 8
CONVEX_STEPS = 60  # the same without friction: what takes longer has no answer
STATE_CHANGES = 8  # systems of given states, before other ways to find them
WARM_STEPS = 12  # Newton steps from the last step's impulses
ON_LIMIT = 1e-12  # part of the limit of friction: what is nearer was found sliding, if at no speed
MOVES = 1e-9  # speed, relative, of what slides rather than is about to
CLOSE = 3e-3  # residual up to which it is worth to go on from them
NEAR = 1e-8  # residual up to which other states are not looked for first


class Work(NamedTuple):
    """Work arrays of an island."""

    v: Vectors
    interior: Interior
    kept: np.ndarray  # (rows,) impulses of the best answer
    CG: np.ndarray
    radius: np.ndarray  # (n,)
    small: np.ndarray  # (10, 6)


@kernel
def clear(sy: System, isl: Island, x: np.ndarray) -> None:
    """Set the rows of an island to zero."""
    for i in isl.member:
        for k in range(sy.row[i], sy.row[i + 1]):
            x[k] = 0.0


@kernel
def keep_better(sy: System, isl: Island, wk: Work, miss: float, least: float) -> float:
    """Keep the impulses v.r if their residual is less than the least so far; return the lesser."""
    if miss < least:
        store(sy, isl, wk.v.r, wk.kept)
        return miss
    return least


@kernel
def try_states(sy: System, isl: Island, size: int, wk: Work, state: np.ndarray, o: Numbers,
               sigma: float, least: float, limit: int) -> tuple[float, int]:  # fmt: skip
    """Solve for states, from the impulses v.r and speeds v.u on; keep what is better.

    A certified answer of given states is preferred to any other.
    """
    miss, count = solve_states(sy, isl, size, wk.v, wk.CG, state, o, sigma, limit, wk.interior.p)
    if miss <= o.certificate:
        least = np.inf
    return keep_better(sy, isl, wk, miss, least), count


@kernel
def guess_states(sy: System, isl: Island, u: np.ndarray, state_inout: np.ndarray) -> None:
    """Guess the states that are not known: what closes sticks."""
    for i in isl.member:
        if state_inout[i] < 0:
            closes = sy.normal[i] == 0 or u[sy.row[i]] < 0.0
            state_inout[i] = STICK if closes else OPEN


@kernel
def refined(sy: System, isl: Island, size: int, wk: Work, state: np.ndarray, o: Numbers,
            rho: float, sigma: float, least: float, limit: int) -> tuple[float, int]:  # fmt: skip
    """Refine the impulses v.r by proximal steps, then solve for their states."""
    v = wk.v
    miss, total = refine(sy, isl, size, v, wk.CG, wk.radius, rho, o, sigma, limit)
    least = keep_better(sy, isl, wk, miss, least)
    if miss <= o.approximate:
        certify(sy, isl, v.r, v.y, v.u)
        read_states(sy, isl, v.r, v.u, 0.0, state)
        least, count = try_states(sy, isl, size, wk, state, o, sigma, least, STATE_CHANGES)
        total += count
    return least, total


@kernel
def has_friction(sy: System, isl: Island) -> bool:
    """Return whether there is Coulomb friction: without it an island is a convex problem."""
    some = False
    for i in isl.member:
        some = some or (sy.normal[i] == 1 and sy.tangent[i] == DISC)
    return some


@kernel
def scale_friction(sy: System, isl: Island, part: float, mu_work: np.ndarray) -> None:
    """Set the coefficients of friction to a part of what they are; the part 0 comes first."""
    for i in isl.member:
        if part == 0.0:
            mu_work[i] = sy.mu[i]
        sy.mu[i] = part * mu_work[i]


@kernel
def slides(sy: System, isl: Island, state: np.ndarray, u: np.ndarray, sigma: float) -> bool:
    """Return whether a contact with Coulomb friction slides, and moves."""
    some = False
    for i in isl.member:
        if sy.normal[i] == 1 and sy.tangent[i] == DISC and state[i] == SLIDE:
            for k in range(sy.row[i] + 1, sy.row[i + 1]):
                some = some or abs(u[k]) > MOVES * sigma
    return some


@kernel
def stick_if_possible(sy: System, isl: Island, size: int, wk: Work, state: np.ndarray, o: Numbers,
                      sigma: float, least: float) -> tuple[float, int]:  # fmt: skip
    """Take the answer in which all pressed contacts stick, if it is one: it comes first."""
    v = wk.v
    store(sy, isl, wk.kept, v.r)
    certify(sy, isl, v.r, v.y, v.u)
    for i in isl.member:
        if sy.normal[i] == 1 and state[i] == SLIDE:
            state[i] = STICK
    miss, count = solve_states(sy, isl, size, v, wk.CG, state, o, sigma, 1, wk.interior.p)
    if miss <= o.certificate:
        least = np.inf
    return keep_better(sy, isl, wk, miss, least), count


@kernel
def open_unpressed(sy: System, isl: Island, r: np.ndarray) -> bool:
    """Take away impulses of contacts whose normal impulse is not positive: they are rounding.

    Returns:
        Whether there was one.
    """
    some = False
    for i in isl.member:
        if sy.normal[i] == 1 and not r[sy.row[i]] > 0.0:
            end = sy.row[i + 1] if sy.tangent[i] == DISC else sy.row[i] + 1
            for k in range(sy.row[i], end):
                some = some or r[k] != 0.0
                r[k] = 0.0
    return some


@kernel
def solve_island(sy: System, isl: Island, size: int, wk: Work, state: np.ndarray, warm: bool,
                 o: Numbers, report: np.ndarray) -> float:  # fmt: skip
    """Solve one island; its impulses are left in v.r. Return their relative residual."""
    v = wk.v
    least = certify(sy, isl, v.r, v.y, v.u)
    exact = rounding(isl)
    if least <= exact:  # more would add up, step by step, and be taken out again
        read_states(sy, isl, v.r, v.u, ON_LIMIT, state)
        return least
    sigma = scale_of(sy, isl, sy.y0, v.r)
    store(sy, isl, v.r, wk.kept)
    rung, total = STATES, 0
    if warm:
        guess_states(sy, isl, v.u, state)
        limit = 1 if least <= NEAR else STATE_CHANGES
        miss, total = solve_states(sy, isl, size, v, wk.CG, state, o, sigma, limit, wk.interior.p)
        if miss <= o.certificate:
            least = np.inf  # preferred to the impulses of the last step
        least = keep_better(sy, isl, wk, miss, least)
        if not miss <= o.certificate:
            rung = WARM
            store(sy, isl, wk.kept, v.r)
            limit = WARM_STEPS if least > CLOSE else REFINE_STEPS
            miss, count = approach(sy, isl, size, v, wk.CG, wk.radius, o, sigma, exact, limit)
            least = keep_better(sy, isl, wk, miss, least)
            total += count
    if least > o.certificate:
        rung = GRADIENT
        clear(sy, isl, v.r)  # not from the last step: what was before does not matter
        descend(sy, isl, v, wk.radius, GRADIENT_STEPS)
        certify(sy, isl, v.r, v.y, v.u)
        read_states(sy, isl, v.r, v.u, 0.0, state)
        least, count = try_states(sy, isl, size, wk, state, o, sigma, least, STATE_CHANGES)
        total += count
    if least > o.certificate:
        rung = PROXIMAL
        store(sy, isl, wk.kept, v.r)
        miss, count = approach(sy, isl, size, v, wk.CG, wk.radius, o, sigma, exact, REFINE_STEPS)
        least = keep_better(sy, isl, wk, miss, least)
        total += count
    if least > o.certificate:
        rung = INTERIOR
        count, _ = follow_path(
            sy, isl, size, v, wk.interior, wk.CG, wk.small, o.canonical_compliance,
            o.active_compliance, INTERIOR_TOLERANCE, INTERIOR_STEPS,
        )  # fmt: skip
        total += count
        store(sy, isl, v.best, v.r)
        store(sy, isl, v.best, wk.interior.t)
        relative_speeds(sy, isl, v.d, v.u)
        read_states(sy, isl, v.r, v.u, 0.0, state)
        least, count = try_states(sy, isl, size, wk, state, o, sigma, least, STATE_CHANGES)
        total += count
    if least > o.certificate:
        store(sy, isl, wk.interior.t, v.r)
        least, count = refined(
            sy, isl, size, wk, state, o, o.canonical_compliance, sigma, least,
            2 * REFINE_STEPS if has_friction(sy, isl) else CONVEX_STEPS,
        )  # fmt: skip
        total += count
    if least > o.certificate and has_friction(sy, isl):
        rung = FROM_ZERO
        clear(sy, isl, v.r)
        least, count = refined(sy, isl, size, wk, state, o, 1.0, sigma, least, 4 * REFINE_STEPS)
        total += count
    if least > o.certificate and has_friction(sy, isl):
        rung = HOMOTOPY
        clear(sy, isl, v.r)
        limit = 2 * REFINE_STEPS // HOMOTOPY_PARTS
        for part in range(HOMOTOPY_PARTS + 1):
            scale_friction(sy, isl, part / HOMOTOPY_PARTS, wk.interior.eta)
            _, count = refine(sy, isl, size, v, wk.CG, wk.radius, 0.1, o, sigma, limit)
            total += count
        least, count = refined(
            sy, isl, size, wk, state, o, o.canonical_compliance, sigma, least, 2 * REFINE_STEPS
        )
        total += count
    if rung > STATES or total > 1:  # v does not hold the answer that was kept
        store(sy, isl, wk.kept, v.r)
        least = certify(sy, isl, v.r, v.y, v.u)
        read_states(sy, isl, v.r, v.u, ON_LIMIT, state)
    if least <= o.certificate and slides(sy, isl, state, v.u, sigma):
        least, count = stick_if_possible(sy, isl, size, wk, state, o, sigma, least)
        total += count
        store(sy, isl, wk.kept, v.r)
        least = certify(sy, isl, v.r, v.y, v.u)
    if exact < least <= o.certificate:
        _, count = approach(sy, isl, size, v, wk.CG, wk.radius, o, sigma, exact, POLISH_STEPS)
        total += count
        least = certify(sy, isl, v.r, v.y, v.u)
    if open_unpressed(sy, isl, v.r):
        least = certify(sy, isl, v.r, v.y, v.u)
    read_states(sy, isl, v.r, v.u, ON_LIMIT, state)
    report[FACTORISATIONS] += total
    report[RUNG] = max(report[RUNG], rung)
    report[BY_RUNG + rung] += 1.0
    return least
