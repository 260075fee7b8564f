"""Let another contact model, which solves problems in its own way, solve those of a step."""

from __future__ import annotations

import numpy as np

from holdfast.contact.problem import ContactProblem
from holdfast.contact.solution import ContactSolution
from holdfast.models import AnitescuPotra, ContactModel
from holdfast.mujoco.constraints import Kind
from holdfast.mujoco.options import DEFAULT
from holdfast.mujoco.outcome import Outcome


def solve_by_model(outcome: Outcome, contact: ContactModel, size: float) -> None:
    """Fill velocity, impulses and states of a step by another contact model.

    The contacts that the free motion closes come first; what the answer would still close is
    added, until nothing is. Anitescu and Potra's model has no gaps: it gets the contacts that
    touch.
    """
    every = np.flatnonzero(outcome.kind == Kind.CONTACT)
    first = outcome.row[every]
    if isinstance(contact, AnitescuPotra):
        near = outcome.gap[every] <= DEFAULT.touching * size
        outcome.target[first[near]] = 0.0
        limits = outcome.row[np.flatnonzero(outcome.kind == Kind.LIMIT)]
        outcome.target[limits] = np.where(outcome.target[limits] > -1e-6, 0.0, -np.inf)
        _take(outcome, every[near], contact.advance(_without_far_limits(outcome, every[near])))
        return
    chosen = outcome.J[first] @ outcome.free <= outcome.target[first]
    while True:
        solution = contact.advance(outcome.problem(every[chosen]))
        _take(outcome, every[chosen], solution)
        closed = outcome.J[first] @ outcome.velocity < outcome.target[first]
        if not (closed & ~chosen).any():
            return
        chosen |= closed


def _without_far_limits(outcome: Outcome, contacts: np.ndarray) -> ContactProblem:
    """The problem with the limits that are reached alone."""
    limits = np.flatnonzero(outcome.kind == Kind.LIMIT)
    far = limits[np.isinf(outcome.target[outcome.row[limits]])]
    kind = outcome.kind.copy()
    outcome.kind[far] = -1
    try:
        return outcome.problem(contacts)
    finally:
        outcome.kind[:] = kind


def _take(outcome: Outcome, contacts: np.ndarray, solution: ContactSolution) -> None:
    """Write a solution along the rows of a step."""
    outcome.velocity[:] = solution.velocity
    impulse = outcome.impulse
    impulse[:], outcome.state[:] = 0.0, 0
    first, dim = outcome.row[contacts], outcome.row[contacts + 1] - outcome.row[contacts]
    impulse[first] = solution.normal
    slides = dim >= 3
    impulse[first[slides] + 1] = solution.tangent[slides, 0]
    impulse[first[slides] + 2] = solution.tangent[slides, 1]
    extra = [np.arange(f + 3, f + d) for f, d in zip(first, dim, strict=True) if d > 3]
    if extra:
        impulse[np.concatenate(extra)] = solution.extra
    outcome.state[contacts] = np.where(solution.sticking, 1, np.where(solution.normal > 0, 2, 0))
    for kind, values in ((Kind.EQUALITY, solution.bilateral), (Kind.FRICTION, solution.dry)):
        impulse[outcome.row[np.flatnonzero(outcome.kind == kind)]] = values
    limits = np.flatnonzero(outcome.kind == Kind.LIMIT)
    near = limits[np.isfinite(outcome.target[outcome.row[limits]])]
    impulse[outcome.row[near]] = solution.unilateral
