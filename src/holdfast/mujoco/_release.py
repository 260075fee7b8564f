"""Where no consistent set of sticking contacts is found: let go of what nothing presses.

Unlimited friction does not always have an answer in which exactly the pressed contacts stick, and
rows of contacts about to part can be too nearly dependent to certify. A contact that holds a body
which nothing presses is worse than one that slides: here contacts that are not pressed are
released, one round after the other, and never taken back. At the end every contact that sticks is
pressed; some that are pressed may slide, and then the solution says ``consistent=False``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from holdfast.errors import SolveError
from holdfast.solution import ContactSolution

PRESSED = 1e-9  # normal impulse, relative to the largest one, that counts as pressing
SLIDING = 1e-9  # relative speed that counts as sliding


def released(
    solve: Callable[[np.ndarray], ContactSolution], wants_stick: np.ndarray
) -> ContactSolution:
    """Solve with contacts held only where they are pressed.

    Args:
        solve: solves with the given contacts (n,) held, whatever presses them.
        wants_stick: (n,) contacts whose law is to stick.
    """
    free = solve(np.zeros_like(wants_stick)).spread()
    for start in (wants_stick, wants_stick & _pressed(free)):
        held = start.copy()
        try:
            while True:
                solution = solve(held).spread()
                loose = held & ~_pressed(solution)
                if not (loose & (np.abs(solution.tangent).max(axis=1, initial=0.0) > 0.0)).any():
                    return _judged(solution, wants_stick)
                held &= ~loose
        except SolveError:  # not certified with these contacts held: try with fewer
            continue
    return _judged(free, wants_stick)


def _pressed(solution: ContactSolution) -> np.ndarray:
    return solution.normal > PRESSED * solution.normal.max(initial=0.0)


def _judged(solution: ContactSolution, wants_stick: np.ndarray) -> ContactSolution:
    """Say whether a pressed contact that should stick slides."""
    p = solution.problem
    speed = np.zeros(p.n)
    for name, rows in (("S", p.S), ("T", p.T)):
        if len(rows):
            along = np.abs(rows @ solution.motion) / (solution.lengths(name) * solution.scale)
            speed = np.maximum(speed, along)
    slides = wants_stick & ~solution.sticking & _pressed(solution) & (speed > SLIDING)
    return replace(solution, consistent=not slides.any())
