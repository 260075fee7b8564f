"""Tangential force only where a contact is pressed: the limit of infinite Coulomb friction.

The paper holds the tangents of every listed contact, also of one that merely grazes: a ball that
flies past a wall would be stopped by the wall. Here contacts are released and taken back until
the two agree:

1. solve with the tangents of the held contacts as equality rows;
2. spread the forces (`holdfast.models._spread`): a contact that no spread-out force presses is
   not pressed;
3. release the contacts that carry tangential but no normal force; take back released ones that
   are pressed and slide.

When the same set comes back, or after a bounded number of rounds, there is no consistent set this
way: the paper's answer is kept and marked `consistent=False`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from holdfast.solution import ContactSolution

PRESSED = 1e-9  # normal force, relative to the largest one, that counts as pressing
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
    paper = solution = solve(held)
    seen = {held.tobytes()}
    pivots = solution.pivots
    for rounds in range(2 * len(held) + 1):
        spread = solution.spread()
        release, take = _mismatch(spread, held, wants_stick)
        if not release.any() and not take.any():
            return replace(spread, rounds=rounds, pivots=pivots)
        held = (held & ~release) | take
        if held.tobytes() in seen:
            break
        seen.add(held.tobytes())
        solution = solve(held)
        pivots += solution.pivots
    return replace(paper, consistent=False, rounds=len(seen), pivots=pivots)


def _mismatch(
    spread: ContactSolution, held: np.ndarray, wants_stick: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Held contacts that pull sideways without being pressed, and released ones that slip."""
    p = spread.problem
    tangential = np.abs(spread.tangent).max(axis=1, initial=0.0)
    if len(p.R):
        np.maximum.at(tangential, p.R_contact, np.abs(spread.extra))
    largest = max(spread.normal.max(initial=0.0), tangential.max(initial=0.0))
    pressed = spread.normal > PRESSED * largest
    release = held & ~pressed & (tangential > PRESSED * largest)

    sliding = np.zeros(p.n)
    for rows in (p.S, p.T):
        if len(rows):
            speed = np.abs(rows @ spread.motion) / (spread._length(rows) * spread.scale)
            sliding = np.maximum(sliding, speed)
    take = wants_stick & ~held & pressed & (sliding > SLIDING)
    return release, take
