"""Tangential force only where a contact is pressed: the limit of infinite Coulomb friction.

The paper holds the tangents of every listed contact, also of one that merely grazes: a ball that
flies past a wall would be stopped by the wall. Here contacts are released and taken back until
the two agree:

1. hold all contacts but those that separate when nothing is held: what leaves by itself needs no
   force, though held it might turn, press, and so justify that it is held;
2. solve with the tangents of the held contacts as equality rows;
3. spread the forces out (`holdfast.models._spread`). If tangential forces at the contacts that are
   pressed suffice, this is the answer;
4. else release the contacts that are not pressed, take back released ones that are pressed and
   slide, and solve again.

When a set comes back that was tried before, after a bounded number of rounds, or where a set is
infeasible, the search begins anew: with every contact held, then with none, then, if there are few
contacts, with each single one, in an order that does not depend on how they are listed: those
first that slide fastest when nothing is held. If all of these fail, the paper's answer is kept and
marked `consistent=False`. That is no proof that there is no consistent set: not all sets are tried,
as their number grows like 2^n, and there may be one that no start leads to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from holdfast import lcp
from holdfast.contact.problem import ContactProblem
from holdfast.contact.solution import ContactSolution
from holdfast.errors import InfeasibleError
from holdfast.models._spread import spread_forces

SLIDING = 1e-9  # relative speed of sliding, or of separation, that counts as such
FEW = 6  # different normals up to which the search begins with each single one, too

Solve = Callable[[np.ndarray], ContactSolution]


def grip_loaded(problem: ContactProblem, solve: Solve, wants_stick: np.ndarray) -> ContactSolution:
    """Solve with tangential force only at pressed contacts.

    Args:
        problem: what is solved.
        solve: solves it with the given contacts held.
        wants_stick: (n,) contacts whose law is to stick.
    """
    solved: dict[bytes, ContactSolution] = {}

    def once(held: np.ndarray) -> ContactSolution:
        key = held.tobytes()
        if key not in solved:
            solved[key] = solve(held)
        return solved[key]

    def pivots() -> int:
        return sum(solution.pivots for solution in solved.values())

    leaving = _leaving(problem, once, wants_stick)
    seen: set[bytes] = set()
    try:
        for held in _starts(problem, once, wants_stick, leaving):
            found = _search(once, wants_stick, held, seen)
            if found is not None:
                rounds = found.rounds + int((held != wants_stick).any())
                return replace(found, rounds=rounds, pivots=pivots())
    except InfeasibleError:  # with nothing held, so with all held, too, but perhaps for rounding
        if wants_stick.tobytes() not in solved:
            raise
    paper = once(wants_stick)
    return replace(paper, consistent=False, rounds=len(solved), pivots=pivots())


def _starts(
    problem: ContactProblem, solve: Solve, wants_stick: np.ndarray, leaving: np.ndarray
) -> Iterator[np.ndarray]:
    """Sets of held contacts to begin with, likely ones first."""
    p, none = problem, np.zeros_like(wants_stick)
    yield wants_stick & ~leaving
    yield wants_stick
    yield none
    contacts = np.flatnonzero(wants_stick)
    normals = np.column_stack([p.N, p.c_N])[contacts]  # copies of a contact lead to the same
    contacts = contacts[np.unique(normals, axis=0, return_index=True)[1]]
    if len(contacts) <= FEW:
        free = solve(none)  # speed over length, whichever way the tangents are turned
        lengths = [p.lengths[name] for name in "ST" if len(getattr(p, name))]
        length = np.linalg.norm(lengths, axis=0) if lengths else np.ones(p.n)
        speed = (np.linalg.norm(free.sliding, axis=1) / length)[contacts]
        for contact in contacts[np.argsort(-speed, kind="stable")]:
            yield np.arange(p.n) == contact


def _leaving(problem: ContactProblem, solve: Solve, wants_stick: np.ndarray) -> np.ndarray:
    """(n,) contacts that separate when nothing is held.

    Where joints allow the free motion, nothing can separate that does not in it, or is pushed by
    a contact that closes: then a solve is spared, and the contact is released later if nothing
    presses it.
    """
    p = problem
    none = np.zeros_like(wants_stick)
    if not ((p.N @ p.free_velocity > p.c_N) & wants_stick).any():
        miss = np.abs(p.J @ p.free_velocity - p.c_J)
        if (miss <= SLIDING * p.lengths["J"] * p.factor.size(p.free_velocity)).all():
            return none
    free = solve(none)
    speed = free.separation / (free.lengths("N") * free.scale)
    return wants_stick & (speed > SLIDING)


def _search(
    solve: Solve, wants_stick: np.ndarray, held: np.ndarray, seen: set[bytes]
) -> ContactSolution | None:
    """Release contacts and take them back, from a set that is held.

    None if that leads to a set that was seen before, or that is infeasible, or does not end.
    """
    for rounds in range(2 * len(held) + 1):
        if held.tobytes() in seen:
            return None
        seen.add(held.tobytes())
        try:
            solution = solve(held)
        except InfeasibleError:  # perhaps not where contacts may slide
            if not held.any():
                raise
            return None
        spread = spread_forces(solution)
        take = wants_stick & ~held & spread.pressed & (solution.relative_sliding() > SLIDING)
        if spread.tied and not take.any():
            solution = replace(
                solution, normal=spread.normal, tangent=spread.tangent,
                bilateral=spread.bilateral, extra=spread.extra, rounds=rounds,
            )  # fmt: skip
            return let_go(solution, held & spread.pressed)
        held = take | (held if spread.tied else held & spread.pressed)
    return None


def let_go(solution: ContactSolution, grips: np.ndarray) -> ContactSolution:
    """The same without the tangents of contacts that are held but carry nothing."""
    if (grips == solution.sticking).all():
        return solution
    p = solution.problem
    tangents = [rows[grips] for rows in (p.S, p.T) if len(rows)]
    rows = np.vstack([p.J[solution.bilateral_rows], *tangents, p.R[grips[p.R_contact]]])
    equal = rows[lcp.find_indices(p.M, rows).J_rows]
    active = np.vstack([equal, solution.active[solution.rank :]])
    return replace(solution, sticking=grips, active=active, rank=len(equal))
