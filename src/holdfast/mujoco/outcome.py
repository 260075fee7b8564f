"""What a step found, as a problem and a solution that judge themselves.

The compiled step leaves its arrays in the stepper's memory. They are copied when somebody asks.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from holdfast.contact.arrays import ContactState, LawKind
from holdfast.contact.problem import ContactProblem
from holdfast.contact.solution import ContactSolution
from holdfast.contact.solved import RESTING
from holdfast.mujoco.constraints import Kind

CLOSED = 1e-9  # part of the terms of a speed up to which a contact that parts counts as closed


@dataclass(eq=False)
class Outcome:
    """Constraints and motion of one step, copied.

    Attributes:
        h: step length [s].
        v: (nv,) velocity before the step.
        free: (nv,) velocity without constraints.
        A: (nv, nv) inertia with implicit terms.
        velocity: (nv,) after the step.
        law, kind, state: (n,) of each constraint: `LawKind`, `Kind`, `ContactState`.
        row: (n + 1,) rows of constraint i: row[i] to row[i + 1].
        J: (rows, nv) all rows.
        target, compliance, bound, friction, impulse: (rows,) see `holdfast.contact.arrays`. What
            compliant contacts give way by is part of their targets: so they are rigid ones.
        gap: (n,) distance; violation of an equality [m, rad].
        mu: (n,) declared coefficient of sliding friction.
        geom: (n, 2) geoms of contacts.
        place: (n, 12) position and frame of contacts.
        bodies: (n, 2).
        consistent: whether no contact jams, see `holdfast.contact.no_slip`.
    """

    h: float
    v: np.ndarray
    free: np.ndarray
    A: np.ndarray
    velocity: np.ndarray
    law: np.ndarray
    kind: np.ndarray
    state: np.ndarray
    row: np.ndarray
    J: np.ndarray
    target: np.ndarray
    compliance: np.ndarray
    bound: np.ndarray
    friction: np.ndarray
    impulse: np.ndarray
    gap: np.ndarray
    mu: np.ndarray
    geom: np.ndarray
    place: np.ndarray
    bodies: np.ndarray
    consistent: bool = True

    @cached_property
    def contacts(self) -> np.ndarray:
        """Numbers of the constraints that are contacts the motion has closed, or that push or drag.

        A contact that jams is held whatever presses it, and may separate.
        """
        contacts = np.flatnonzero(self.kind == Kind.CONTACT)
        first = self.row[contacts]
        scale = np.abs(self.J[first]) @ np.abs(self.velocity) + np.abs(self.target[first])
        closed = self.J[first] @ self.velocity - self.target[first] <= CLOSED * scale
        acts = np.logical_or.reduceat(np.append(self.impulse != 0.0, False), self.row[:-1])
        return contacts[closed | acts[contacts]]

    def _of(self, kind: Kind) -> np.ndarray:
        return self.row[np.flatnonzero(self.kind == kind)]

    @property
    def _joints(self) -> np.ndarray:
        """Rows of equalities, and of compliant limits that press."""
        soft = (self.kind == Kind.LIMIT) & (self.law == LawKind.COMPLIANT)
        return np.append(self._of(Kind.EQUALITY), self.row[np.flatnonzero(soft)])

    @property
    def _limits(self) -> np.ndarray:
        """Rows of rigid limits, and of compliant ones that do not press."""
        hard = (self.kind == Kind.LIMIT) & (self.law != LawKind.COMPLIANT)
        return self.row[np.flatnonzero(hard)]

    def problem(self, contacts: np.ndarray | None = None) -> ContactProblem:
        """The contact problem of some contacts, or of all, at velocity level.

        Friction of contacts with Coulomb's law is that of the law, of others what is declared.
        """
        if contacts is None:
            contacts = np.flatnonzero(self.kind == Kind.CONTACT)
        first, dim = self.row[contacts], self.row[contacts + 1] - self.row[contacts]
        nv, slides = len(self.v), dim >= 3
        S, T = np.zeros((2, len(first), nv))
        S[slides], T[slides] = self.J[first[slides] + 1], self.J[first[slides] + 2]
        R, R_contact = _extra(first, dim)
        joints, limits, dry = self._joints, self._limits, self._of(Kind.FRICTION)
        f = self.A @ (self.free - self.v) / self.h if nv else self.v
        rate = (self.J @ self.v - self.target) / self.h  # so that J (v + h a) = target

        viscous = self.law[contacts] == LawKind.VISCOUS
        mu_v = np.zeros(len(first))
        mu_v[viscous] = 1.0 / (self.h * self.compliance[first[viscous] + 1])
        return ContactProblem(
            M=self.A, v=self.v, f=f, h=self.h, N=self.J[first], S=S, T=T, R=self.J[R],
            R_contact=R_contact, J=self.J[joints],
            c_J=self.target[joints],
            compliance_J=self.compliance[joints] if self.compliance[joints].any() else None,
            U=self.J[limits], c_U=self.target[limits], c_N=self.target[first], D=self.J[dry],
            D_bound=self.bound[dry], mu=self._friction(contacts), mu_R=self.friction[R],
            mu_v=mu_v, bodies=self.bodies[contacts],
            Ndot_v=rate[first], Udot_v=rate[limits], Jdot_v=rate[joints],
        )  # fmt: skip

    def _friction(self, contacts: np.ndarray) -> np.ndarray:
        """(n,) coefficients of sliding friction, or (n, 2) if those of the tangents differ."""
        mu = np.repeat(self.mu[contacts, None], 2, axis=1)
        first = self.row[contacts]
        slides = self.row[contacts + 1] - first >= 3
        slides &= self.law[contacts] == LawKind.COULOMB
        for e in range(2):
            mu[slides, e] = self.friction[first[slides] + 1 + e]
        return mu[:, 0] if np.array_equal(mu[:, 0], mu[:, 1]) else mu

    @property
    def _sticking(self) -> np.ndarray:
        """(n,) contacts that stick; some may be on the limit of friction, and do not move."""
        first, state = self.row[self.contacts], self.state[self.contacts]
        tangents = self.row[self.contacts + 1] - first >= 3
        sticks = tangents & (state == ContactState.STICK)
        on_limit = tangents & (state == ContactState.SLIDE)
        on_limit &= self.law[self.contacts] == LawKind.COULOMB
        motion = np.maximum(np.abs(self.free), np.abs(self.velocity))
        for k in np.flatnonzero(on_limit):
            rows = self.J[first[k] + 1 : first[k] + 3]
            sticks[k] = (np.abs(rows @ self.velocity) <= RESTING * (np.abs(rows) @ motion)).all()
        return sticks

    @cached_property
    def solution(self) -> ContactSolution:
        """Motion and forces of the contacts that mattered."""
        contacts = self.contacts
        problem = self.problem(contacts)
        first, dim = self.row[contacts], self.row[contacts + 1] - self.row[contacts]
        tangent, slides = np.zeros((len(first), 2)), dim >= 3
        tangent[slides, 0] = self.impulse[first[slides] + 1]
        tangent[slides, 1] = self.impulse[first[slides] + 2]
        R, _ = _extra(first, dim)
        joints, limits, dry = self._joints, self._limits, self._of(Kind.FRICTION)
        loaded = np.flatnonzero(np.concatenate([self.impulse[first], self.impulse[limits]]) > 0.0)
        return ContactSolution(
            problem=problem, level="velocity", motion=self.velocity, normal=self.impulse[first],
            tangent=tangent, bilateral=self.impulse[joints], extra=self.impulse[R],
            unilateral=self.impulse[limits], dry=self.impulse[dry], sticking=self._sticking,
            pivots=0, loaded=loaded, active=self.J[:0], drag=np.zeros((len(self.v), len(self.v))),
            bilateral_rows=np.arange(len(joints)), rank=len(joints), rank_gap=np.inf,
            rank_ambiguous=False, law=self.law[contacts], mu=problem.mu, mu_v=problem.mu_v,
            consistent=self.consistent,
        )  # fmt: skip


def _extra(first: np.ndarray, dim: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows of torsion and rolling, and the contact that each belongs to."""
    count = np.maximum(dim - 3, 0)
    contact = np.repeat(np.arange(len(first)), count)
    start = np.repeat(np.cumsum(count) - count, count)
    return first[contact] + 3 + np.arange(len(contact)) - start, contact


def copy_outcome(arrays: Any, answer: Any, cs: Any, v: np.ndarray, h: float,
                 geom_body: np.ndarray) -> Outcome:  # fmt: skip
    """Copy the arrays of a compiled step."""
    nv, n = len(v), len(arrays.law)
    A, J = np.zeros((nv, nv)), np.zeros((len(arrays.target), nv))
    for t in range(len(arrays.tree) - 1):
        i, j = arrays.tree[t], arrays.tree[t + 1]
        A[i:j, i:j] = arrays.inertia[arrays.block[t] : arrays.block[t + 1]].reshape(j - i, j - i)
    for k in range(n):
        first, end = arrays.row[k], arrays.row[k + 1]
        for p in range(arrays.panel[k], arrays.panel[k + 1]):
            t = arrays.panel_tree[p]
            i, j = arrays.tree[t], arrays.tree[t + 1]
            at, size = arrays.panel_at[p], (end - first) * (j - i)
            J[first:end, i:j] = arrays.values[at : at + size].reshape(end - first, j - i)
    contact = cs.kind == Kind.CONTACT
    target = arrays.target - _given_way(arrays, answer, contact)
    geom = np.where(contact[:, None], cs.geom, -1)
    bodies = np.where(geom >= 0, np.append(geom_body, 0)[geom], -1)
    return Outcome(
        h=h, v=v.copy(), free=arrays.free.copy(), A=A, velocity=answer.velocity.copy(),
        law=arrays.law.copy(), kind=cs.kind.copy(), state=answer.state.copy(),
        row=arrays.row.copy(), J=J, target=target,
        compliance=arrays.compliance.copy(), bound=arrays.bound.copy(),
        friction=arrays.friction.copy(), impulse=answer.impulse.copy(), gap=cs.gap.copy(),
        mu=cs.mu.copy(), geom=geom, place=cs.place.copy(), bodies=bodies,
    )  # fmt: skip


def _given_way(arrays: Any, answer: Any, contact: np.ndarray) -> np.ndarray:
    """(rows,) the speeds R r of the rows of contacts that give way, see `contact.giving`."""
    first, dim = arrays.row[:-1], np.diff(arrays.row)
    gives = np.repeat(contact & (dim > 0), dim)
    gives[np.repeat(arrays.law != LawKind.COULOMB, dim)] = False
    gives[first[contact & (dim > 0)]] = True
    return np.where(gives, arrays.compliance * answer.impulse, 0.0)
