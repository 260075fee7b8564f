"""Tangential force only where a contact is pressed: the limit of infinite Coulomb friction.

The paper holds the tangents of every listed contact, also of one that merely grazes: a ball that
flies past a wall would be stopped by the wall. Here contacts are released and taken back until
the two agree:

1. solve with the tangents of the held contacts as equality rows;
2. spread the forces out (`holdfast.models._spread`). If tangential forces at the contacts that are
   pressed suffice, this is the answer;
3. else release the contacts that are not pressed, take back released ones that are pressed and
   slide, and solve again.

When the same set comes back, or after a bounded number of rounds, there is no consistent set this
way: the paper's answer is kept and marked `consistent=False`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from holdfast.errors import InfeasibleError
from holdfast.models._spread import spread_forces
from holdfast.solution import ContactSolution

SLIDING = 1e-9  # relative sliding speed of a pressed contact that counts as slip


def grip_loaded(
    solve: Callable[[np.ndarray], ContactSolution], wants_stick: np.ndarray
) -> ContactSolution:
    """Solve with tangential force only at pressed contacts.

    Args:
        solve: solves with the given contacts held.
        wants_stick: (n,) contacts whose law is to stick.
    """
    held = wants_stick.copy()
    infeasible = None
    try:
        paper = solution = solve(held)
    except InfeasibleError as error:  # with everything held; perhaps not where contacts may slide
        infeasible = error
        held = np.zeros_like(wants_stick)
        paper = solution = solve(held)
    seen = {held.tobytes()}
    pivots = solution.pivots
    for rounds in range(2 * len(held) + 1):
        spread = spread_forces(solution)
        take = wants_stick & ~held & spread.pressed & (_sliding(solution) > SLIDING)
        if spread.tied and not take.any():
            return replace(
                solution, normal=spread.normal, tangent=spread.tangent,
                bilateral=spread.bilateral, extra=spread.extra, rounds=rounds, pivots=pivots,
            )  # fmt: skip
        held = take | (held if spread.tied else held & spread.pressed)
        if held.tobytes() in seen:
            break
        seen.add(held.tobytes())
        solution = solve(held)
        pivots += solution.pivots
    if infeasible is not None:
        raise infeasible
    return replace(paper, consistent=False, rounds=len(seen), pivots=pivots)


def _sliding(solution: ContactSolution) -> np.ndarray:
    """(n,) relative sliding speed of each contact."""
    p = solution.problem
    fastest = np.zeros(p.n)
    for name, rows in (("S", p.S), ("T", p.T)):
        if len(rows):
            speed = np.abs(rows @ solution.motion) / (solution.lengths(name) * solution.scale)
            fastest = np.maximum(fastest, speed)
    return fastest
