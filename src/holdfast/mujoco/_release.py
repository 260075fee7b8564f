"""Where the contacts that stick are in doubt: let go of what nothing presses, keep what jams.

Unlimited friction does not always have an answer in which exactly the pressed contacts stick: held,
a contact is not pressed, and released, it is. That is jamming. As Coulomb friction grows without
limit such a contact sticks with a normal force that tends to zero, so it is held. All other
contacts that nothing presses are released. At the end no pressed contact slides, and
``consistent=False`` says that some contact holds by jamming.

Rows of contacts about to part can be too nearly dependent to certify. Then fewer are held: those
that are pressed without friction, or none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from holdfast.contact.solution import ContactSolution
from holdfast.errors import SolveError

PRESSED = 1e-9  # normal impulse, relative to the largest one, that counts as pressing
SLIDING = 1e-9  # relative speed that counts as sliding
BALANCED = 1e-9  # relative momentum residual of forces that may be published


def released(
    solve: Callable[[np.ndarray], ContactSolution], wants_stick: np.ndarray
) -> ContactSolution:
    """Solve with contacts held only where they are pressed.

    Args:
        solve: solves with the given contacts (n,) held, whatever presses them.
        wants_stick: (n,) contacts whose law is to stick.
    """
    try:
        return _jammed(solve, wants_stick)
    except SolveError:  # not certified with so many held
        free = _spread(solve(np.zeros_like(wants_stick)))
    held = wants_stick & _pressed(free)
    try:
        while True:
            solution = _spread(solve(held))
            loose = _loose(solution, held)
            if not loose.any():
                return _judged(solution, wants_stick)
            held &= ~loose
    except SolveError:
        return _judged(free, wants_stick)


def _jammed(
    solve: Callable[[np.ndarray], ContactSolution], wants_stick: np.ndarray
) -> ContactSolution:
    """Release what is not pressed; take back, for good, what is pressed then and slides."""
    held, jams = wants_stick.copy(), np.zeros_like(wants_stick)
    while True:  # every contact is released and taken back at most once
        solution = _spread(solve(held))
        back = wants_stick & ~held & _pressed(solution) & (solution.relative_sliding() > SLIDING)
        loose = _loose(solution, held) & ~jams
        if not back.any() and not loose.any():
            return _judged(solution, wants_stick)
        jams |= back
        held = (held & ~loose) | back


def balances(solution: ContactSolution) -> bool:
    """Whether the forces add up to the motion, so that they may be published."""
    return solution.momentum_residual() <= BALANCED


def _spread(solution: ContactSolution) -> ContactSolution:
    """The forces spread out, if they still add up; else as the solver has them."""
    spread = solution.spread()
    return spread if balances(spread) else solution


def _loose(solution: ContactSolution, held: np.ndarray) -> np.ndarray:
    """Contacts that hold without being pressed."""
    carries = np.abs(solution.tangent).max(axis=1, initial=0.0)
    if len(solution.extra):
        np.maximum.at(carries, solution.problem.R_contact, np.abs(solution.extra))
    return held & ~_pressed(solution) & (carries > PRESSED * carries.max(initial=0.0))


def _pressed(solution: ContactSolution) -> np.ndarray:
    return solution.normal > PRESSED * solution.normal.max(initial=0.0)


def _judged(solution: ContactSolution, wants_stick: np.ndarray) -> ContactSolution:
    """Say whether exactly the pressed contacts stick."""
    slides = (
        wants_stick
        & ~solution.sticking
        & _pressed(solution)
        & (solution.relative_sliding() > SLIDING)
    )
    holds = _loose(solution, solution.sticking)
    return replace(solution, consistent=not (slides.any() or holds.any()))
