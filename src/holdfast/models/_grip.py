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

When the same set comes back, or after a bounded number of rounds, the search begins anew with
every contact held. If it fails again, there is no consistent set this way: the paper's answer is
kept and marked `consistent=False`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from holdfast import lcp
from holdfast.errors import InfeasibleError
from holdfast.models._spread import spread_forces
from holdfast.problem import ContactProblem
from holdfast.solution import ContactSolution

SLIDING = 1e-9  # relative speed of sliding, or of separation, that counts as such

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
    starts = [wants_stick & ~leaving, wants_stick] if leaving.any() else [wants_stick]
    for held in starts:
        found = _search(once, wants_stick, held)
        if found is not None:
            rounds = found.rounds + int((held != wants_stick).any())
            return replace(found, rounds=rounds, pivots=pivots())
    paper = once(wants_stick)
    return replace(paper, consistent=False, rounds=len(solved), pivots=pivots())


def _leaving(problem: ContactProblem, solve: Solve, wants_stick: np.ndarray) -> np.ndarray:
    """(n,) contacts that separate when nothing is held.

    Without joints nothing can separate that does not in free motion, or is pushed by a contact
    that closes: then a solve is spared, and the contact is released later if nothing presses it.
    """
    p = problem
    none = np.zeros_like(wants_stick)
    if p.j == 0 and not ((p.N @ p.free_velocity > p.c_N) & wants_stick).any():
        return none
    free = solve(none)
    speed = free.separation / (free.lengths("N") * free.scale)
    return wants_stick & (speed > SLIDING)


def _search(solve: Solve, wants_stick: np.ndarray, held: np.ndarray) -> ContactSolution | None:
    """Release contacts and take them back, from a set that is held; None if that does not end."""
    try:
        solution = solve(held)
    except InfeasibleError:  # perhaps not where contacts may slide
        held = np.zeros_like(wants_stick)
        solution = solve(held)
    seen = {held.tobytes()}
    for rounds in range(2 * len(held) + 1):
        spread = spread_forces(solution)
        take = wants_stick & ~held & spread.pressed & (_sliding(solution) > SLIDING)
        if spread.tied and not take.any():
            solution = replace(
                solution, normal=spread.normal, tangent=spread.tangent,
                bilateral=spread.bilateral, extra=spread.extra, rounds=rounds,
            )  # fmt: skip
            return _let_go(solution, held & spread.pressed)
        held = take | (held if spread.tied else held & spread.pressed)
        if held.tobytes() in seen:
            return None
        seen.add(held.tobytes())
        solution = solve(held)
    return None


def _let_go(solution: ContactSolution, grips: np.ndarray) -> ContactSolution:
    """The same without the tangents of contacts that are held but carry nothing."""
    if (grips == solution.sticking).all():
        return solution
    p = solution.problem
    tangents = [rows[grips] for rows in (p.S, p.T) if len(rows)]
    rows = np.vstack([p.J[solution.bilateral_rows], *tangents, p.R[grips[p.R_contact]]])
    equal = rows[lcp.find_indices(p.M, rows).J_rows]
    active = np.vstack([equal, solution.active[solution.rank :]])
    return replace(solution, sticking=grips, active=active, rank=len(equal))


def _sliding(solution: ContactSolution) -> np.ndarray:
    """(n,) relative sliding speed of each contact."""
    p = solution.problem
    fastest = np.zeros(p.n)
    for name, rows in (("S", p.S), ("T", p.T)):
        if len(rows):
            speed = np.abs(rows @ solution.motion) / (solution.lengths(name) * solution.scale)
            fastest = np.maximum(fastest, speed)
    return fastest
