"""The motion of one step, and its forces along MuJoCo's rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from holdfast import lcp
from holdfast.contact.solution import ContactSolution
from holdfast.models._grip import let_go
from holdfast.mujoco._forces import EXCEEDED
from holdfast.mujoco._publish import impulses
from holdfast.mujoco._scene import (
    CONSISTENT,
    EXCESS,
    PIVOTS,
    RANK_TOL,
    ROUNDS,
    SLIP,
    Found,
)
from holdfast.mujoco.assemble import Rows

LOADED = 1e-9  # part of the largest normal impulse that counts as pressing


@dataclass(eq=False)
class Answer:
    """What a step found.

    Attributes:
        list_rows: makes the rows of the step, or knows them.
        velocity: (nv,) after the step.
        impulse: (nefc,) along the rows [N s, N m s].
        contacts, limits: masks of what was in the problem.
        grips: (n,) contacts that are pressed and stick.
        slip: fastest sliding of a pressed contact whose law is to stick [m/s].
        excess: whether a contact that sticks needs more friction than the model declares.
        consistent: see `ContactSolution.consistent`.
        make: makes the solution.
        parts: coordinates, contacts and answer of each island, if there are several.
    """

    list_rows: Callable[[], Rows]
    velocity: np.ndarray
    impulse: np.ndarray
    contacts: np.ndarray
    limits: np.ndarray
    grips: np.ndarray
    slip: float
    excess: bool
    consistent: bool
    make: Callable[[], ContactSolution]
    parts: list[tuple[np.ndarray, np.ndarray, Answer]] = field(default_factory=list)

    @cached_property
    def rows(self) -> Rows:
        """Of the step; those of an island are made when somebody asks."""
        return self.list_rows()

    @cached_property
    def solution(self) -> ContactSolution:
        """The same as a `ContactSolution`, made when somebody asks."""
        return self.make()


def from_found(list_rows: Callable[[], Rows], found: Found) -> Answer:
    """The answer that the kernels found."""
    return Answer(
        list_rows=list_rows,
        velocity=found.motion,
        impulse=found.impulse,
        contacts=found.contacts,
        limits=found.limits,
        grips=found.grips,
        slip=float(found.numbers[SLIP]),
        excess=bool(found.numbers[EXCESS] > 0.0),
        consistent=bool(found.numbers[CONSISTENT] > 0.0),
        make=lambda: solution_of(list_rows(), found),
    )


def from_solution(
    rows: Rows,
    solution: ContactSolution,
    contacts: np.ndarray,
    limits: np.ndarray,
    sticks: np.ndarray,
    landing: np.ndarray,
) -> Answer:
    """The answer that a contact model gave.

    Args:
        rows: of the step.
        solution: of the problem of these contacts and limits.
        contacts, limits: masks.
        sticks: contacts of the problem whose law is to stick; none if the model has no such law.
        landing: contacts of the problem that touch only at the end of the step.
    """
    normal, holding = solution.normal, solution.sticking
    pressed = normal > LOADED * normal.max(initial=0.0)
    slides = sticks & (holding | ~landing) & pressed
    speed = np.linalg.norm(solution.sliding[slides], axis=1).max(initial=0.0)
    excess = holding & (solution.required_friction() > rows.mu[contacts] * (1 + EXCEEDED))
    grips = np.zeros(len(rows.contact), dtype=bool)
    grips[contacts] = holding & (normal > 0.0)
    return Answer(
        list_rows=lambda: rows,
        velocity=solution.velocity,
        impulse=impulses(rows, solution, contacts, limits),
        contacts=contacts,
        limits=limits,
        grips=grips,
        slip=float(speed),
        excess=bool(excess.any()),
        consistent=solution.consistent,
        make=lambda: solution,
    )


def solution_of(rows: Rows, found: Found) -> ContactSolution:
    """What the kernel found, as a solution of the contact problem."""
    contacts, limits = found.contacts, found.limits
    problem = rows.problem(contacts, limits, found.closed)
    first, dim = rows.first[contacts], rows.dim[contacts]
    held, impulse, numbers = found.held[contacts], found.impulse, found.numbers
    slides = dim >= 3
    tangent = np.zeros((len(first), 2))
    tangent[slides, 0], tangent[slides, 1] = impulse[first[slides] + 1], impulse[first[slides] + 2]
    R_row, R_contact = rows.extra(first, dim)
    joints = np.arange(rows.equality.stop)
    both = np.column_stack([first + 1, first + 2])[held].ravel()
    equal = np.concatenate([joints, both, R_row[held[R_contact]]])
    chosen = lcp.find_indices(rows.A, rows.efc_J[equal], rank_tol=float(numbers[RANK_TOL]))
    equal = equal[chosen.J_rows]
    unilateral = np.concatenate([first, rows.limit[limits]])
    loaded = np.flatnonzero(found.loaded[unilateral])
    both = np.concatenate([equal, unilateral[loaded]])
    kept = lcp.find_indices(rows.A, rows.efc_J[both]).J_rows
    loaded = loaded[kept[kept >= len(equal)] - len(equal)]
    dry = np.arange(rows.dry.start, rows.dry.stop)
    stuck = dry[np.abs(impulse[dry]) < rows.loss]
    solution = ContactSolution(
        problem=problem,
        level="velocity",
        motion=found.motion,
        normal=impulse[first],
        tangent=tangent,
        bilateral=impulse[rows.equality],
        extra=impulse[R_row],
        unilateral=impulse[rows.limit[limits]],
        dry=impulse[dry],
        sticking=held,
        pivots=int(numbers[PIVOTS]),
        loaded=loaded,
        active=rows.efc_J[np.concatenate([equal, unilateral[loaded], stuck])],
        drag=np.zeros((problem.m, problem.m)),
        bilateral_rows=equal[equal < rows.equality.stop],
        rank=len(equal),
        rank_gap=chosen.gap,
        rank_ambiguous=chosen.ambiguous,
        rounds=int(numbers[ROUNDS]),
    )
    if numbers[CONSISTENT] == 0.0:
        return replace(solution, consistent=False)
    return let_go(solution, found.grips[contacts])
