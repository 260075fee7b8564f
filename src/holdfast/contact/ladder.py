"""The ladder: ways to solve an island, the cheapest first.

1. the impulses of the last step, as they are, if all goes on as it was (`take_last`);
2. the states that are given (`active_set.solve_states`); in a small island first those in which
   all contacts stick that are to be pressed, because where they can, they do; at last those in
   which only contacts are pressed that touch already;
3. small islands: the path of vanishing compliance (`continuation.follow_compliance`), the states
   that it ends in, and Newton's method from its end (`proximal.approach`); in a step that looks
   ahead and is solved several times, 5 and the states that this ends in come before it, but in
   islands of very few constraints (`goes_inside`);
4. small islands: convex problems that come nearer to Coulomb's law (`relaxation.solve_relaxed`),
   and Newton's method from their answers: contacts that jam;
5. the interior-point method (`interior_point`) and Newton's method from where it ends; in a resumed
   solve first from its impulses, then from nothing, twice;
6. splitting (`splitting.iterate_splitting`), the states that it ends in, as in 2, and Newton's
   method from there; both again, with ever more iterations, and with Gauss-Seidel sweeps
   (`gauss_seidel.iterate_sweeps`) in the place of splitting every other time. Sweeps depend on the
   order of constraints; nothing else does;
7. large islands: the path of vanishing compliance, as small ones in 3.

A caller that only wants to know roughly where a motion leads gets an answer of residual
`Numbers.rough` from large islands, as soon as there is one, or what one attempt comes to.

Where given states are certified, the answer depends on nothing else. It never depends on the last
step: its impulses are taken only where bodies rest or move on with the very velocities that they
had, which is one motion whatever the impulses. In large islands contacts may be so many that equal
sharing of the load would leave their cones; impulses then stay near those that Newton's method
began with.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from holdfast._jit import kernel
from holdfast.contact.active_set import (
    PATIENCE,
    read_states,
    rounding,
    search_states,
    solve_states,
)
from holdfast.contact.cone import OPEN, SLIDE, STICK
from holdfast.contact.continuation import first_compliance, follow_compliance
from holdfast.contact.gauss_seidel import iterate_sweeps
from holdfast.contact.interior_point import Interior, begin, begin_near, follow_path
from holdfast.contact.newton import (
    Island,
    Vectors,
    certify,
    certify_within,
    combine,
    norm,
    rebuild,
    relative_speeds,
    residual_within,
    scale_of,
)
from holdfast.contact.options import Numbers
from holdfast.contact.prediction import predict_states
from holdfast.contact.proximal import INNER, approach, store
from holdfast.contact.relaxation import solve_relaxed, take_shifts
from holdfast.contact.splitting import Splitting, iterate_splitting
from holdfast.contact.system import DISC, System, add_sizes
from holdfast.linalg.vectors import square


class Rung(IntEnum):
    """Where on the ladder an island was solved."""

    IMPULSES = 0
    STATES = 1
    SPLITTING = 2
    NEWTON = 3
    AGAIN = 4
    INTERIOR = 5
    COMPLIANCE = 6
    RELAXATION = 7


IMPULSES, STATES = int(Rung.IMPULSES), int(Rung.STATES)
SPLITTING, NEWTON, AGAIN = int(Rung.SPLITTING), int(Rung.NEWTON), int(Rung.AGAIN)
INTERIOR, COMPLIANCE = int(Rung.INTERIOR), int(Rung.COMPLIANCE)
RELAXATION = int(Rung.RELAXATION)

# What is reported, by its place: memory that is needed, the largest residual, factorisations,
# islands, islands with contacts that jam, the farthest rung, and islands by rung.
NEEDED, RESIDUAL, FACTORISATIONS, ISLANDS, JAMMED, RUNG, BY_RUNG = range(7)
REPORT = BY_RUNG + len(Rung)

STATE_CHANGES = 8  # systems of given states, before other ways to find them
LARGE = 40  # constraints up to which an island gets the limit of vanishing compliance
FEW = 4  # the same in a step that looks ahead, where the interior-point method comes before it
LARGE_CHANGES = 3  # systems of given states there, where it seems to come to rest
SLOWLY = 0.1  # part of its free motion up to which it seems to
PATH = 1e-8  # residual at which Newton's method is faster than the interior-point method
PATH_ROUGH = 0.1  # the same over the residual of a rough answer
STARTS = (1.0, 100.0)  # impulses over speeds to begin with: one way may be lost, the other not
PATH_STEPS = 150  # of the interior-point method
PATH_NEWTON, PATH_INNER = 80, 8  # Newton steps from there
WORTH = 1e-4  # residual up to which they lead to an answer
ENOUGH = 0.3  # part of the certificate that the Newton steps aim at
RESTS = 1e-6  # part of its free motion below which a large island gets all digits: it may rest
AT_REST = 4.0  # rounding of the motion of bodies at rest, over that of a residual: some are light
CLEARLY = 1e6  # motion over rounding that is no rest, however badly the rows see it
POLISH_STEPS = 8  # Newton steps from an answer that is certified
ROUNDS = 6  # of splitting or sweeps, and Newton's method
EARLY = 2  # last of the rounds without sweeps, which take long
COMPLIANCE_STEPS = 2000  # Newton steps along the path of vanishing compliance, whole
RELAXED = 24  # convex problems, each nearer to the law
SPLITTINGS, MORE_SPLITTINGS = 30, 3  # iterations in the first round, times this in the next
SWEEPS = 200  # of Gauss and Seidel
NEWTON_STEPS, MORE_NEWTON_STEPS = 60, 2  # the same of Newton steps
MOST_INNER = 25  # Newton steps of one proximal step, in later rounds
COUPLING = 3.0  # weight of the splitting: with rows of length one a few constraints meet in a body
FIRMER = 3.0  # factor of that weight from round to round


class Work(NamedTuple):
    """Work arrays of an island."""

    v: Vectors
    kept: np.ndarray  # (rows,) impulses of the best answer
    start: np.ndarray  # (rows,) impulses that Newton's method begins with
    digits: np.ndarray  # (rows,) a certified answer, while more digits are sought
    splitting: Splitting
    interior: Interior
    CG: np.ndarray
    shift: np.ndarray  # (n,)


@kernel
def goes_inside(isl: Island, o: Numbers) -> bool:
    """Return whether the interior-point method comes next where given states do not solve."""
    return isl.member.shape[0] > (FEW if o.rough > 0.0 or o.resumed else LARGE)


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
def guess_states(sy: System, isl: Island, u: np.ndarray, state_inout: np.ndarray) -> None:
    """Guess the states that are not known: what closes sticks."""
    for i in isl.member:
        if state_inout[i] < 0:
            closes = sy.normal[i] == 0 or u[sy.row[i]] < 0.0
            state_inout[i] = STICK if closes else OPEN


@kernel
def sum_sizes(sy: System, isl: Island, r: np.ndarray, terms_out: np.ndarray) -> None:
    """Fill the sizes of all terms of the sum that makes the motion of an island."""
    for k in range(isl.trees):
        for j in range(isl.pattern.first[k], isl.pattern.first[k] + isl.pattern.size[k]):
            terms_out[j] = abs(sy.y0[j])
    for i in isl.member:
        add_sizes(sy, i, r, terms_out)


@kernel
def is_rounding(isl: Island, k: int, terms: np.ndarray, x: np.ndarray, y: np.ndarray, t: float,
                part: float) -> bool:  # fmt: skip
    """Return whether ``x - t y``, of tree k, is at most this part of the sum of a motion."""
    all_terms = rest = 0.0
    for j in range(isl.pattern.first[k], isl.pattern.first[k] + isl.pattern.size[k]):
        all_terms += terms[j] * terms[j]
        rest += square(x[j] - t * y[j])
    return rest <= part * part * all_terms


@kernel
def goes_on(sy: System, isl: Island, v: Vectors) -> bool:
    """Return whether every tree rests or moves on as it did before the step, but for rounding.

    It has either rested exactly, or moved so fast that this is no rest but for rounding: what is in
    between may be brought to rest, and that is found out by solving.

    The residual is relative to the motion of the whole island: next to a heavy body, a light one
    might be off by much of its own.
    """
    part, same = rounding(isl), norm(isl, sy.before) == 0.0
    part *= AT_REST if same else 1.0
    for k in range(isl.trees):  # at rest the free motion, one of the terms, may suffice
        same = same and is_rounding(isl, k, sy.y0, v.y, sy.before, 1.0, part)
    if same:
        return True
    sum_sizes(sy, isl, v.r, v.d)
    same = True
    for k in range(isl.trees):
        same = same and is_rounding(isl, k, v.d, v.y, sy.before, 1.0, part)
        same = same and (
            is_rounding(isl, k, v.d, sy.before, sy.before, 0.0, 0.0)
            or not is_rounding(isl, k, v.d, sy.before, sy.before, 0.0, CLEARLY * part)
        )
    return same


@kernel
def nothing_acts(sy: System, isl: Island, r: np.ndarray) -> bool:
    """Return whether all impulses of an island are zero."""
    for i in isl.member:
        for k in range(sy.row[i], sy.row[i + 1]):
            if r[k] != 0.0:
                return False
    return True


@kernel
def all_sticks(sy: System, isl: Island, r: np.ndarray, u: np.ndarray, tolerance: float) -> bool:
    """Return whether nothing slides, and nothing that touches parts.

    There is only one such motion, whatever the impulses that make it: the one next to the free
    motion in which all rows of what touches hold.
    """
    for i in isl.member:
        first, begin, kind = sy.row[i], sy.row[i] + sy.normal[i], sy.tangent[i]
        if sy.normal[i] == 1:
            if sy.c[first] < 0.0 and r[first] == 0.0:
                continue
            if not abs(u[first]) <= tolerance:
                return False
        for k in range(begin, sy.row[i + 1]):
            if kind == DISC and not abs(u[k]) <= tolerance:
                return False
    return True


@kernel
def has_friction(sy: System, isl: Island) -> bool:
    """Return whether there is Coulomb friction: without it an island is a convex problem."""
    some = False
    for i in isl.member:
        some = some or (sy.normal[i] == 1 and sy.tangent[i] == DISC)
    return some


@kernel
def any_slides(isl: Island, state: np.ndarray) -> bool:
    """Return whether anything slides, be it a contact or a joint with dry friction."""
    some = False
    for i in isl.member:
        some = some or state[i] == SLIDE
    return some


@kernel
def slides(sy: System, isl: Island, state: np.ndarray) -> bool:
    """Return whether a contact with Coulomb friction slides, or is about to."""
    some = False
    for i in isl.member:
        some = some or (sy.normal[i] == 1 and sy.tangent[i] == DISC and state[i] == SLIDE)
    return some


@kernel
def make_stick(sy: System, isl: Island, state_inout: np.ndarray) -> None:
    """Let contacts stick that slide."""
    for i in isl.member:
        if sy.normal[i] == 1 and state_inout[i] == SLIDE:
            state_inout[i] = STICK


@kernel
def open_apart(sy: System, isl: Island, state_inout: np.ndarray) -> bool:
    """Open the contacts and limits that do not touch yet; return whether there are any.

    Of a face that rests on points at slightly different heights few carry. Rows for all of them ask
    for a motion that no rigid body has, and its impulses say nothing about who does.
    """
    some = False
    for i in isl.member:
        if sy.normal[i] == 1 and sy.c[sy.row[i]] < 0.0 and state_inout[i] != OPEN:
            state_inout[i] = OPEN
            some = True
    return some


@kernel
def try_sticking(sy: System, isl: Island, size: int, wk: Work, state: np.ndarray, o: Numbers,
                 sigma: float, least: float) -> tuple[float, int]:  # fmt: skip
    """Take the answer of states in which nothing slides, if it is one: it comes first.

    Returns:
        The residual of the impulses that are kept then, left in v.r, and the factorisations;
        `least` is that of those that were kept before.
    """
    v = wk.v
    miss, count = solve_states(sy, isl, size, v, wk.CG, state, o, sigma, 1, wk.digits)
    if miss <= o.certificate:
        store(sy, isl, v.r, wk.kept)
        return miss, count
    store(sy, isl, wk.kept, v.r)
    rebuild(sy, isl, v.r, v.y, v.u)
    return least, count


@kernel
def try_states(sy: System, isl: Island, size: int, wk: Work, state: np.ndarray, o: Numbers,
               sigma: float, least: float) -> tuple[bool, float, int]:  # fmt: skip
    """Search from these states on as long as the residual falls; keep what is better.

    Returns:
        Whether the answer is certified, the residual of the impulses that are kept, and the
        factorisations.
    """
    v = wk.v
    miss, count = search_states(
        sy, isl, size, v, wk.CG, state, o, sigma, o.active_compliance, STATE_CHANGES, 0, wk.digits
    )
    found = miss <= o.certificate
    return found, keep_better(sy, isl, wk, miss, np.inf if found else least), count


@kernel
def was_tried(sy: System, isl: Island, state: np.ndarray, before: np.ndarray) -> bool:
    """Return whether these states, with contacts stuck that slide, are those before, likewise."""
    same = True
    for i in isl.member:
        if sy.normal[i] == 1:
            same = same and (state[i] == OPEN) == (before[i] == OPEN)
        else:
            same = same and state[i] == before[i]
    return same


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
def open_parting(sy: System, isl: Island, u: np.ndarray, r: np.ndarray) -> bool:
    """Take away what the interior-point method leaves of impulses where contacts part.

    Returns:
        Whether there was any.
    """
    some = False
    for i in isl.member:
        if sy.normal[i] == 1 and 0.0 < r[sy.row[i]] < u[sy.row[i]]:
            some = True
            end = sy.row[i + 1] if sy.tangent[i] == DISC else sy.row[i] + 1
            for k in range(sy.row[i], end):
                r[k] = 0.0
    return some


@kernel
def recall(sy: System, isl: Island, wk: Work, state: np.ndarray, o: Numbers) -> float:
    """Bring the impulses that were kept back to v.r, and read their states; return the residual."""
    v = wk.v
    store(sy, isl, wk.kept, v.r)
    least = certify(sy, isl, v.r, v.y, v.u)
    read_states(sy, isl, v.r, v.u, o.on_limit, state)
    return least


@kernel
def polish(sy: System, isl: Island, size: int, wk: Work, o: Numbers, sigma: float,
           exact: float) -> tuple[float, int]:  # fmt: skip
    """Improve certified impulses v.r down to rounding; return their residual and the steps."""
    v = wk.v
    _, count = approach(sy, isl, size, v, wk.CG, o, sigma, exact, POLISH_STEPS, INNER, False)
    return certify(sy, isl, v.r, v.y, v.u), count


@kernel
def try_law(sy: System, isl: Island, size: int, wk: Work, state: np.ndarray, o: Numbers,
            sigma: float, compliance: float, least: float) -> tuple[float, int]:  # fmt: skip
    """Solve for the states that the law asks for at the impulses v.r; keep what is better.

    A certified answer of states is preferred to any other.
    """
    v = wk.v
    certify(sy, isl, v.r, v.y, v.u)
    read_states(sy, isl, v.r, v.u, 0.0, state)
    miss, count = search_states(
        sy, isl, size, v, wk.CG, state, o, sigma, compliance, STATE_CHANGES, PATIENCE, wk.digits
    )
    if miss <= o.certificate:
        least = np.inf
    return keep_better(sy, isl, wk, miss, least), count


@kernel
def solve_compliant(sy: System, isl: Island, size: int, wk: Work, state: np.ndarray, o: Numbers,
                    sigma: float, exact: float,
                    least: float) -> tuple[int, float, int]:  # fmt: skip
    """Solve an island as the limit of vanishing compliance, whatever was before.

    Returns:
        As `solve_afresh`; wk.start is where Newton's method may go on.
    """
    v, total, steps, first, begins = wk.v, 0, 0, first_compliance(sy, isl), True
    clear(sy, isl, wk.start)
    between = np.sqrt(o.little_compliance * o.last_compliance)
    stages = (
        o.canonical_compliance, o.active_compliance, o.little_compliance, between,
        o.last_compliance,
    )  # fmt: skip
    for last in stages:
        store(sy, isl, wk.start, v.r)
        reached, count = follow_compliance(
            sy, isl, size, v, wk.CG, o, sigma, begins, first, last, COMPLIANCE_STEPS - steps
        )
        steps += count
        total += count
        store(sy, isl, v.r, wk.start)
        compliance = min(last, o.active_compliance)
        least, count = try_law(sy, isl, size, wk, state, o, sigma, compliance, least)
        total += count
        if least <= o.certificate:
            return COMPLIANCE, least, total
        if reached > last:
            break
        first, begins = reached, False
    store(sy, isl, wk.start, v.r)
    miss, count = approach(sy, isl, size, v, wk.CG, o, sigma, exact, NEWTON_STEPS, PATH_INNER, True)
    total += count
    return NEWTON, keep_better(sy, isl, wk, miss, least), total


@kernel
def solve_afresh(sy: System, isl: Island, size: int, wk: Work, state: np.ndarray, o: Numbers,
                 sigma: float, exact: float, least: float) -> tuple[int, float, int]:  # fmt: skip
    """Solve from the impulses wk.start on, by splitting and Newton's method in turns.

    Returns:
        The rung, the residual of the best impulses, which are kept, and the factorisations.
    """
    v, total = wk.v, 0
    iterations, steps, coupling, inner = SPLITTINGS, NEWTON_STEPS, COUPLING, INNER
    for turn in range(ROUNDS):
        store(sy, isl, wk.start, v.r)
        far = o.split * sigma
        late = turn > EARLY
        if turn % 2 == 0 or not late:
            iterate_splitting(
                sy, isl, size, v, wk.CG, wk.shift, wk.splitting, coupling, far, iterations
            )
            iterations *= MORE_SPLITTINGS
            coupling *= FIRMER
            total += 1
        else:
            iterate_sweeps(sy, isl, v, wk.splitting, o.stop * sigma, SWEEPS)
        store(sy, isl, v.r, wk.start)
        least, count = try_law(sy, isl, size, wk, state, o, sigma, o.active_compliance, least)
        total += count
        if least <= o.certificate:
            return (SPLITTING if turn == 0 else AGAIN), least, total
        store(sy, isl, wk.start, v.r)
        miss, count = approach(sy, isl, size, v, wk.CG, o, sigma, exact, steps, inner, False)
        least = keep_better(sy, isl, wk, miss, least)
        total += count
        if least <= o.certificate:
            return (NEWTON if turn == 0 else AGAIN), least, total
        store(sy, isl, v.r, wk.start)
        steps *= MORE_NEWTON_STEPS
        if late:
            inner = min(2 * inner, MOST_INNER)
    return AGAIN, least, total


@kernel
def solve_by_relaxation(sy: System, isl: Island, size: int, wk: Work, state: np.ndarray, o: Numbers,
                        sigma: float, exact: float,
                        least: float) -> tuple[float, int]:  # fmt: skip
    """Solve a series of convex problems that come nearer to Coulomb's law; keep what is better.

    Returns:
        The residual of the best impulses, which are kept, and the factorisations.
    """
    v, total = wk.v, 0
    clear(sy, isl, wk.start)
    for i in isl.member:
        wk.shift[i] = 0.0
    for turn in range(RELAXED):
        store(sy, isl, wk.start, v.r)
        total += solve_relaxed(sy, isl, size, v, wk.CG, wk.shift, o, sigma, turn == 0)
        store(sy, isl, v.r, wk.start)
        take_shifts(sy, isl, v.u, wk.shift)
        miss = certify(sy, isl, v.r, v.y, v.u)
        least = keep_better(sy, isl, wk, miss, least)
        if least > o.certificate:
            least, count = try_law(sy, isl, size, wk, state, o, sigma, o.active_compliance, least)
            total += count
        if least > o.certificate:
            store(sy, isl, wk.start, v.r)
            miss, count = approach(
                sy, isl, size, v, wk.CG, o, sigma, exact, NEWTON_STEPS, INNER, False
            )
            total += count
            least = keep_better(sy, isl, wk, miss, least)
        if least <= o.certificate:
            break
    return least, total


@kernel
def solve_by_path(sy: System, isl: Island, size: int, wk: Work, near: bool, o: Numbers,
                  sigma: float, least: float, goal: float) -> tuple[float, int]:  # fmt: skip
    """Solve an island by the interior-point method, and by Newton's method from where it ends.

    It begins at the impulses that are kept, if these are `near` an answer, and from nothing
    otherwise, or where that fails; for an exact answer twice, if need be. A residual of `goal`
    suffices if it is not more than that part of the motion that is found.

    Returns:
        The residual of the best impulses, which are kept, and the factorisations.
    """
    v, total = wk.v, 0
    rough = PATH_ROUGH * goal if goal > o.certificate else 0.0
    for turn in range(0 if near else 1, 2 if rough > 0.0 else 3):
        if turn == 0:
            store(sy, isl, wk.kept, v.r)
            scale = begin_near(sy, isl, wk.interior, v)
        else:
            scale = begin(sy, isl, wk.interior, v, STARTS[0] if turn == 1 else STARTS[1])
        count, _ = follow_path(
            sy, isl, size, v, wk.interior, wk.CG, scale, o.little_compliance, PATH, rough,
            turn > 0 and rough == 0.0, PATH_STEPS,
        )  # fmt: skip
        total += count
        store(sy, isl, v.best, v.r)
        miss = certify(sy, isl, v.r, v.y, v.u)
        least = keep_better(sy, isl, wk, miss, least)
        last = miss <= (o.certificate if rough > 0.0 else WORTH)  # of the path
        if last and open_parting(sy, isl, v.u, v.r):
            miss = certify(sy, isl, v.r, v.y, v.u)
            enough = miss <= max(least, ENOUGH * o.certificate)
            least = keep_better(sy, isl, wk, miss, np.inf if enough else least)
        if rough > 0.0 and miss * scale_of(sy, isl, v.y, v.r) <= goal * norm(isl, v.y):
            break
        if miss > WORTH:
            continue
        store(sy, isl, wk.kept, v.r)
        miss, count = approach(
            sy, isl, size, v, wk.CG, o, sigma, ENOUGH * o.certificate, PATH_NEWTON, PATH_INNER, True
        )
        total += count
        least = keep_better(sy, isl, wk, miss, least)
        if least <= o.certificate:
            break
    return least, total


@kernel
def take_last(sy: System, isl: Island, v: Vectors, state: np.ndarray,
              o: Numbers) -> tuple[bool, float]:  # fmt: skip
    """Take the impulses v.r as they are, if they are an answer: of the last step, or resumed.

    Those of the last step are taken where all goes on as it was; the motion then is the one before
    the step, not what rounding makes of it. No order of elimination is needed for it.

    Returns:
        Whether they are, and their residual; of large islands also if not, with their motion and
        speeds in v.y and v.u.
    """
    exact = rounding(isl)
    large = isl.member.shape[0] > LARGE
    limit = np.inf if large or o.resumed else max(exact, o.stop)
    least = certify_within(sy, isl, v.r, v.y, v.u, limit)
    if o.resumed and least <= o.certificate:
        read_states(sy, isl, v.r, v.u, o.on_limit, state)
        return True, least
    if least <= max(exact, o.stop):
        still = 2.0 * max(exact, o.stop) * scale_of(sy, isl, v.y, v.r)
        same = all_sticks(sy, isl, v.r, v.u, still) and goes_on(sy, isl, v)
        if same or (least <= exact and nothing_acts(sy, isl, v.r)):
            read_states(sy, isl, v.r, v.u, o.on_limit, state)
            return True, least
    return False, least


@kernel
def solve_small(sy: System, isl: Island, size: int, wk: Work, state: np.ndarray, warm: bool,
                o: Numbers, sigma: float, exact: float,
                least: float) -> tuple[int, float, int]:  # fmt: skip
    """Solve a small island: impulses of the last step do not matter.

    Args:
        sy, isl, size, wk: the island; impulses v.r are kept, speeds v.u are theirs. They are zero,
            unless a solve is resumed that `goes_inside`.
        state: states to begin with, if they are given; filled.
        warm: whether they are.
        o, sigma, exact: tolerances, size of the motion, rounding.
        least: residual of these impulses.

    Returns:
        The rung, the residual of the impulses, left in v.r, and the factorisations.
    """
    v, rung, total, found = wk.v, STATES, 0, False
    inside = goes_inside(isl, o)
    tried = inside and o.resumed  # states that the last motion suggests hardly ever hold then
    guess_states(sy, isl, v.u, state)
    for i in isl.member:
        wk.shift[i] = state[i]
    if not tried and (not warm or slides(sy, isl, state)):
        make_stick(sy, isl, state)
        miss, total = try_sticking(sy, isl, size, wk, state, o, sigma, np.inf)
        found = miss <= o.certificate
        least = miss if found else least
        for i in isl.member:
            state[i] = state[i] if found else int(wk.shift[i])
    if warm and not found and not tried:
        if any_slides(isl, state):  # as they did
            relative_speeds(sy, isl, sy.before, v.u)
        found, least, count = try_states(sy, isl, size, wk, state, o, sigma, least)
        total += count
    if warm and not found and not tried:
        for i in isl.member:
            state[i] = int(wk.shift[i])
        if open_apart(sy, isl, state):
            clear(sy, isl, v.r)
            relative_speeds(sy, isl, sy.before, v.u)
            found, least, count = try_states(sy, isl, size, wk, state, o, sigma, least)
            total += count
    if inside and not found and least > o.certificate:
        rung = INTERIOR
        least, count = solve_by_path(sy, isl, size, wk, tried, o, sigma, least, o.certificate)
        total += count
        if least <= o.certificate:
            store(sy, isl, wk.kept, v.r)
            least, count = try_law(sy, isl, size, wk, state, o, sigma, o.active_compliance, least)
            total += count
    if not found and least > o.certificate:
        rung, least, count = solve_compliant(sy, isl, size, wk, state, o, sigma, exact, least)
        total += count
    tested = not tried  # whether wk.shift still says which contacts were tried as stuck
    if not found and least > o.certificate:
        tested = False
        rung = RELAXATION
        least, count = solve_by_relaxation(sy, isl, size, wk, state, o, sigma, exact, least)
        total += count
    if not found and least > o.certificate and not inside:
        rung = INTERIOR
        least, count = solve_by_path(sy, isl, size, wk, False, o, sigma, least, o.certificate)
        total += count
    if not found and least > o.certificate:
        clear(sy, isl, wk.start)
        rung, least, count = solve_afresh(sy, isl, size, wk, state, o, sigma, exact, least)
        total += count
    if not found:  # v does not hold the answer that was kept
        least = recall(sy, isl, wk, state, o)
    tested = tested and was_tried(sy, isl, state, wk.shift)
    if least <= o.certificate and slides(sy, isl, state) and not tested:
        make_stick(sy, isl, state)
        least, count = try_sticking(sy, isl, size, wk, state, o, sigma, least)
        total += count
    if exact < least <= o.certificate:
        least, count = polish(sy, isl, size, wk, o, sigma, exact)
        total += count
    return rung, least, total


@kernel
def solve_large(sy: System, isl: Island, size: int, wk: Work, state: np.ndarray, warm: bool,
                o: Numbers, sigma: float, exact: float,
                least: float) -> tuple[int, float, int]:  # fmt: skip
    """Solve a large island from the impulses v.r on, which are kept, with speeds v.u.

    Arguments and results are those of `solve_small`.
    """
    v, rung, total, at_hand = wk.v, STATES, 0, False
    goal = max(o.certificate, o.rough)
    slow = norm(isl, sy.before) <= SLOWLY * isl.size
    if warm and (slow or not o.resumed):
        guess_states(sy, isl, v.u, state)
        limit = LARGE_CHANGES if slow else 1
        miss, total = solve_states(sy, isl, size, v, wk.CG, state, o, sigma, limit, wk.digits)
        at_hand = miss <= o.certificate
        if at_hand:
            least = np.inf  # preferred to the impulses that were given
        least = keep_better(sy, isl, wk, miss, least)
    clear(sy, isl, wk.start)  # what was before does not matter
    if least > goal:
        rung = INTERIOR
        least, count = solve_by_path(sy, isl, size, wk, o.resumed, o, sigma, least, goal)
        total += count
    if least > goal and o.rough == 0.0:
        rung, least, count = solve_afresh(sy, isl, size, wk, state, o, sigma, exact, least)
        total += count
    if least > goal and o.rough == 0.0:
        rung, least, count = solve_compliant(sy, isl, size, wk, state, o, sigma, exact, least)
        total += count
    if not at_hand:  # v does not hold the answer that was kept
        least = recall(sy, isl, wk, state, o)
    if least <= o.certificate and slides(sy, isl, state):
        make_stick(sy, isl, state)
        least, count = try_sticking(sy, isl, size, wk, state, o, sigma, least)
        total += count
    moves = rung == INTERIOR and norm(isl, v.y) > RESTS * isl.size
    if exact < least <= o.certificate and not moves:
        least, count = polish(sy, isl, size, wk, o, sigma, exact)
        total += count
    return rung, least, total


@kernel
def solve_island(sy: System, isl: Island, size: int, wk: Work, state: np.ndarray, warm: bool,
                 least: float, o: Numbers, report: np.ndarray) -> float:  # fmt: skip
    """Solve one island whose impulses v.r, of residual `least`, are no answer; see `take_last`.

    They do not matter, unless they are those of a resumed solve that `goes_inside`: then they may
    be close. Impulses are left in v.r. Return their relative residual.
    """
    v = wk.v
    exact = rounding(isl)
    large = isl.member.shape[0] > LARGE
    from_nothing = not (o.resumed and goes_inside(isl, o))
    if from_nothing:
        clear(sy, isl, v.r)
    relative_speeds(sy, isl, sy.y0, v.free)
    sigma = scale_of(sy, isl, sy.y0, v.r)
    if from_nothing:
        store(sy, isl, v.free, v.u)
        least = residual_within(sy, isl, v.r, v.u, sigma, o.approximate)
        if least <= exact:
            combine(isl, sy.y0, 0.0, sy.y0, v.y)
            read_states(sy, isl, v.r, v.u, o.on_limit, state)
            return least
    predict_states(sy, isl, v.free, v.d, v.uk, state)
    store(sy, isl, v.r, wk.kept)
    if large:
        rung, least, total = solve_large(sy, isl, size, wk, state, warm, o, sigma, exact, least)
    else:
        rung, least, total = solve_small(sy, isl, size, wk, state, warm, o, sigma, exact, least)
    if open_unpressed(sy, isl, v.r):
        least = certify(sy, isl, v.r, v.y, v.u)
    read_states(sy, isl, v.r, v.u, o.on_limit, state)
    report[FACTORISATIONS] += total
    report[RUNG] = max(report[RUNG], rung)
    report[BY_RUNG + rung] += 1.0
    return least


@kernel
def solve_roughly(sy: System, isl: Island, size: int, wk: Work, state: np.ndarray, o: Numbers,
                  report: np.ndarray) -> float:  # fmt: skip
    """Solve a large island without Coulomb friction roughly, by the interior-point method.

    Impulses are left in v.r. Return their relative residual; infinite if `Numbers.rough` of the
    motion is not reached.
    """
    v = wk.v
    clear(sy, isl, wk.kept)
    sigma = scale_of(sy, isl, sy.y0, wk.kept)
    _, total = solve_by_path(sy, isl, size, wk, False, o, sigma, np.inf, o.rough)
    report[FACTORISATIONS] += total
    store(sy, isl, wk.kept, v.r)
    least = certify(sy, isl, v.r, v.y, v.u)
    if least * scale_of(sy, isl, v.y, v.r) > o.rough * norm(isl, v.y):
        return np.inf  # states stay those that are likely
    read_states(sy, isl, v.r, v.u, o.on_limit, state)
    report[RUNG] = max(report[RUNG], INTERIOR)
    report[BY_RUNG + INTERIOR] += 1.0
    return least
