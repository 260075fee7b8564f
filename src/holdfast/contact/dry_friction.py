"""Dry friction of joints: forces of constant size against the motion."""

from __future__ import annotations

import numpy as np

from holdfast.contact.problem import ContactProblem


def dry_forces(problem: ContactProblem) -> tuple[np.ndarray, np.ndarray]:
    """Dry friction at acceleration level: constant against motion, bounded where at rest.

    Returns:
        The force of rows that move, and the bound of those that rest (zero for moving ones).
    """
    if len(problem.D) == 0:
        return np.zeros(0), np.zeros(0)
    loss = problem.D_bound / problem.step
    speed = problem.D @ problem.v
    moving = np.abs(speed) > 1e-12 * (np.abs(problem.D) @ np.abs(problem.v))
    return np.where(moving, -np.sign(speed) * loss, 0.0), np.where(moving, 0.0, loss)
