"""Steps in stages: stop after the constraints and look, or let another contact model solve them."""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast.contact.problem import ContactProblem
from holdfast.contact.solution import ContactSolution
from holdfast.models import AnitescuPotra, ContactModel
from holdfast.mujoco.constraints import Kind
from holdfast.mujoco.options import DEFAULT
from holdfast.mujoco.outcome import Outcome
from holdfast.mujoco.stepper import Stepper


def build_problem(model: Any, data: Any) -> ContactProblem:
    """Return the contact problem of the next step, without solving it.

    Runs MuJoCo's pipeline up to the smooth acceleration, as `mujoco.mj_forward` would; the state
    in `data` stays as it is. All contacts and limits that the step may reach are in the problem,
    including those that turn out not to matter. Equality constraints and limits are rigid.

    Args:
        model: `mujoco.MjModel`; not changed.
        data: `mujoco.MjData`.

    Example:
        >>> import mujoco, holdfast as hf
        >>> model = mujoco.MjModel.from_xml_string('''<mujoco><worldbody>
        ...   <geom type="plane" size="1 1 1"/>
        ...   <body pos="0 0 0.1"><freejoint/><geom type="box" size="0.1 0.1 0.1"/></body>
        ... </worldbody></mujoco>''')
        >>> problem = hf.build_problem(model, mujoco.MjData(model))
        >>> problem
        ContactProblem(m=6, n=4, j=0, h=0.002)
        >>> hf.NoSlip().solve(problem).is_exact()
        True
    """
    return Stepper(model, equalities="rigid", limits="rigid").constraints(data).problem()


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
