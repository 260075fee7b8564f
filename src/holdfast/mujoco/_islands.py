"""A step in parts: bodies that no row connects do not know of each other.

The floor connects nothing, so a heap falls apart into a few bodies that touch each other here and a
few there. Each such island has its own small problem, whose answer does not depend on how long the
others are searched for, and they are put together again: motion, forces, and what they say about
themselves.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from holdfast._jit import entry
from holdfast.contact.solution import ContactSolution
from holdfast.mujoco._answer import Answer, from_found
from holdfast.mujoco._parts import COLUMNS, PART, connect
from holdfast.mujoco._quick import Quick
from holdfast.mujoco._scene import Found
from holdfast.mujoco.assemble import Rows

REMEMBERED = 64  # islands whose last loads are remembered, as a hint for the next step


@dataclass(eq=False)
class Island:
    """Rows of bodies that are connected, and where they stand among all rows.

    Attributes:
        whole: all rows.
        trees: kinematic trees that it consists of, as bytes.
        dofs, lines, contacts, limits: numbers of its coordinates, rows, contacts and limits.
        gap: of its contacts [m], as it is now; that of all rows may be changed.
    """

    whole: Rows
    trees: bytes
    dofs: np.ndarray
    lines: np.ndarray
    contacts: np.ndarray
    limits: np.ndarray
    gap: np.ndarray

    def is_like(self, other: Island) -> bool:
        """Whether it has the rows of another one, of the same trees and in the same step."""
        return len(self.lines) == len(other.lines) and np.array_equal(self.gap, other.gap)

    def cut_out(self, found: Found, numbers: np.ndarray) -> Found:
        """What was found here, out of what was found everywhere."""
        dofs, lines, contacts = self.dofs, self.lines, self.contacts
        return Found(
            v_free=found.v_free[dofs],
            motion=found.motion[dofs],
            impulse=found.impulse[lines],
            contacts=found.contacts[contacts],
            closed=found.closed[contacts],
            grips=found.grips[contacts],
            held=found.held[contacts],
            limits=found.limits[self.limits],
            loaded=found.loaded[lines],
            numbers=numbers,
            expected=found.expected[lines],
        )

    @cached_property
    def rows(self) -> Rows:
        """With the coordinates and the contacts of these bodies alone, made when needed."""
        rows, dofs, lines, contacts = self.whole, self.dofs, self.lines, self.contacts
        ne, nd = np.searchsorted(lines, [rows.equality.stop, rows.dry.stop])
        equal, dry = lines[:ne], lines[ne:nd] - rows.dry.start
        return Rows(
            A=rows.A[np.ix_(dofs, dofs)],
            f=rows.f[dofs],
            v=rows.v[dofs],
            h=rows.h,
            efc_J=rows.efc_J[np.ix_(lines, dofs)],
            equality=slice(0, int(ne)),
            dry=slice(int(ne), int(nd)),
            limit=np.arange(nd, nd + len(self.limits)),
            contact=rows.contact[contacts],
            first=np.searchsorted(lines, rows.first[contacts]),
            dim=rows.dim[contacts],
            gap=rows.gap[contacts],
            limit_gap=rows.limit_gap[self.limits],
            error=rows.error[equal],
            target=rows.target[equal],
            loss=rows.loss[dry],
            size=rows.size,
            mu=rows.mu[contacts],
            geoms=rows.geoms[contacts],
            bodies=rows.bodies[contacts],
            place=rows.place[contacts],
            sunk=rows.sunk[contacts],
        )


class Islands:
    """Takes the rows of a model's steps apart."""

    def __init__(self, model: Any, contact: Any) -> None:
        self._contact = contact
        self._quicks: dict[bytes, Quick] = {}
        self._tree_of_dof = np.array(model.dof_treeid, dtype=np.int64)
        self._tree_of_body = np.array(model.body_treeid, dtype=np.int64)
        self._trees = int(model.ntree)

    def quick(self, island: Island) -> Quick:
        """The compiled search of an island, which knows what was loaded there in the last step."""
        quick = self._quicks.pop(island.trees, None) or Quick(self._contact)
        self._quicks[island.trees] = quick  # the last ones used stand last
        if len(self._quicks) > REMEMBERED:
            del self._quicks[next(iter(self._quicks))]
        return quick

    def of(self, rows: Rows) -> list[Island]:
        """Islands with rows, in the order of their coordinates; none if all is one island."""
        if self._trees < 2:
            return []
        other = int(rows.limit[-1]) + 1 if rows.limit.size else rows.dry.stop
        table = np.empty((self._trees, COLUMNS), dtype=np.int64)
        of_dof, of_line, of_contact = (
            np.empty(count, dtype=np.int64) for count in (*rows.efc_J.shape[::-1], len(rows.gap))
        )
        parts = number(
            rows.A, rows.efc_J, rows.first, np.ascontiguousarray(rows.bodies.T), other,
            self._tree_of_dof, self._tree_of_body, of_dof, of_line, of_contact, table,
        )  # fmt: skip
        if parts < 2:
            return []
        members = (_members(of, parts) for of in (of_dof, of_line, of_contact, of_line[rows.limit]))
        return [
            Island(rows, (table[:, PART] == k).tobytes(), *who, gap=rows.gap[who[2]])
            for k, who in enumerate(zip(*members, strict=True))
        ]


def _members(of: np.ndarray, parts: int) -> list[np.ndarray]:
    """Who belongs to each part, in order."""
    order = np.argsort(of, kind="stable")
    return np.split(order, np.searchsorted(of[order], np.arange(parts + 1)))[1:-1]


number: Any = entry(getattr(connect, "py_func", connect))  # the same for Python


def apart(islands: list[Island], found: Found, numbers: np.ndarray) -> list[Answer]:
    """The answers of all islands, out of what was found everywhere and the numbers of each."""
    return [
        from_found(partial(getattr, island, "rows"), island.cut_out(found, each))
        for island, each in zip(islands, numbers, strict=True)
    ]


def together(rows: Rows, islands: list[Island], answers: list[Answer]) -> Answer:
    """The answer of all islands."""
    velocity, impulse = np.empty(len(rows.v)), np.zeros(len(rows.efc_J))
    contacts, grips = np.zeros((2, len(rows.gap)), dtype=bool)
    limits = np.zeros(len(rows.limit_gap), dtype=bool)
    for island, answer in zip(islands, answers, strict=True):
        velocity[island.dofs] = answer.velocity
        impulse[island.lines] = answer.impulse
        contacts[island.contacts], grips[island.contacts] = answer.contacts, answer.grips
        limits[island.limits] = answer.limits
    return Answer(
        list_rows=lambda: rows,
        velocity=velocity,
        impulse=impulse,
        contacts=contacts,
        limits=limits,
        grips=grips,
        slip=max(answer.slip for answer in answers),
        excess=any(answer.excess for answer in answers),
        consistent=all(answer.consistent for answer in answers),
        make=_maker(rows, islands, answers, contacts, limits),
        parts=[(i.dofs, i.contacts, a) for i, a in zip(islands, answers, strict=True)],
    )


def _maker(
    rows: Rows,
    islands: list[Island],
    answers: list[Answer],
    contacts: np.ndarray,
    limits: np.ndarray,
) -> Callable[[], ContactSolution]:
    """What makes the solution of all islands out of theirs."""

    def make() -> ContactSolution:
        parts = [answer.solution for answer in answers]
        closed = np.zeros(len(rows.gap), dtype=bool)
        for island, answer, part in zip(islands, answers, parts, strict=True):
            here = island.contacts[answer.contacts]
            closed[here] = part.problem.c_N > -np.maximum(rows.gap[here], 0.0) / rows.h
        problem = rows.problem(contacts, limits, closed)
        n, m = problem.n, problem.m
        at, at_limit = np.cumsum(contacts) - 1, np.cumsum(limits) - 1
        whole: dict[str, Any] = {
            "motion": np.zeros(m), "normal": np.zeros(n), "tangent": np.zeros((n, 2)),
            "bilateral": np.zeros(len(problem.J)), "extra": np.zeros(len(problem.R)),
            "unilateral": np.zeros(len(problem.U)), "dry": np.zeros(len(problem.D)),
            "sticking": np.zeros(n, dtype=bool), "drag": np.zeros((m, m)),
        }  # fmt: skip
        first: list[np.ndarray] = []
        rest, loaded, joints = [], [], []
        for island, answer, part in zip(islands, answers, parts, strict=True):
            here = at[island.contacts[answer.contacts]]
            there = at_limit[island.limits[answer.limits]]
            equal = island.lines[: part.problem.j]
            where = {
                "motion": island.dofs, "normal": here, "tangent": here, "sticking": here,
                "bilateral": equal, "unilateral": there,
                "extra": np.flatnonzero(np.isin(problem.R_contact, here)),
                "dry": _dry(rows, island), "drag": np.ix_(island.dofs, island.dofs),
            }  # fmt: skip
            for name, places in where.items():
                whole[name][places] = getattr(part, name)
            joints.append(equal[part.bilateral_rows])
            loaded.append(np.concatenate([here, n + there])[part.loaded])
            active = np.zeros((len(part.active), m))
            active[:, island.dofs] = part.active
            first.append(active[: part.rank])
            rest.append(active[part.rank :])
        return replace(
            parts[0],
            problem=problem,
            **whole,
            pivots=sum(part.pivots for part in parts),
            loaded=np.sort(np.concatenate(loaded)),
            active=np.concatenate(first + rest),
            bilateral_rows=np.concatenate(joints),
            rank=sum(part.rank for part in parts),
            rank_gap=min(part.rank_gap for part in parts),
            rank_ambiguous=any(part.rank_ambiguous for part in parts),
            rounds=max(part.rounds for part in parts),
            consistent=all(part.consistent for part in parts),
        )

    return make


def _dry(rows: Rows, island: Island) -> np.ndarray:
    """Numbers of an island's rows among those with dry friction."""
    lines = island.lines
    return lines[(lines >= rows.dry.start) & (lines < rows.dry.stop)] - rows.dry.start
