"""The answer of the contact solve, with what a `ContactSolution` wants to know about it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from holdfast import lcp
from holdfast.contact.arrays import LawKind
from holdfast.contact.build import Laws, Solved
from holdfast.contact.ladder import FACTORISATIONS, JAMMED
from holdfast.contact.problem import ContactProblem
from holdfast.contact.solution import NO_FORCE, Level

RESTING = 1e-10  # relative speed along a tangent that is none


@dataclass(frozen=True, eq=False)
class Answered:
    """Fields of a `ContactSolution`, computed when first asked for.

    Attributes:
        problem: what was solved.
        laws: with which laws.
        solved: the answer.
    """

    problem: ContactProblem
    laws: Laws
    solved: Solved
    level: Level = "velocity"

    motion = property(lambda self: self.solved.velocity)
    pivots = property(lambda self: int(self.solved.report[FACTORISATIONS]))
    extra = property(lambda self: self._part(2))
    bilateral = property(lambda self: self._part(3))
    normal = property(lambda self: self._part(4))
    unilateral = property(lambda self: self._part(5))
    dry = property(lambda self: self._part(6))
    bilateral_rows = property(lambda self: self._indices.J_rows)
    rank_gap = property(lambda self: self._indices.gap)
    rank_ambiguous = property(lambda self: self._indices.ambiguous)
    rank = property(lambda self: len(self._equal))

    @property
    def consistent(self) -> bool:
        """Whether no contact is held that nothing presses."""
        return not self.solved.report[JAMMED]

    def _part(self, number: int) -> np.ndarray:
        return self.problem.stack.split(self.solved.impulse)[number]

    @property
    def tangent(self) -> np.ndarray:
        """(n, 2) along S and T."""
        tangent = np.zeros((self.problem.n, 2))
        for k in range(2):
            impulses = self._part(k)
            tangent[: len(impulses), k] = impulses
        return tangent

    @cached_property
    def sticking(self) -> np.ndarray:
        """(n,) contacts that stick: pressed (or jammed), with friction, and at rest along it.

        With Coulomb friction some of them may be on their cones, where they share a load.
        """
        grips = np.isin(self.laws.contact, (int(LawKind.COULOMB), int(LawKind.NO_SLIP)))
        sticks = self.normal > NO_FORCE * self.normal.max(initial=0.0)
        if not self.consistent:
            sticks |= self.tangent.any(axis=1) & (self.laws.contact == int(LawKind.NO_SLIP))
        return grips & sticks & self._has_friction & self._rests

    @property
    def _rests(self) -> np.ndarray:
        """(n,) contacts that do not move along any row of S, T and R that friction acts along."""
        p, rests = self.problem, np.ones(self.problem.n, dtype=bool)
        scale = max(p.factor.size(x) for x in (p.free_velocity, self.motion))
        limited = self.laws.contact == int(LawKind.COULOMB)
        every = np.arange(p.n)
        friction = p.stack.split(self.laws.friction)
        for k, contact in enumerate((every, every, p.R_contact)):
            name, rows = "STR"[k], getattr(p, "STR"[k])
            if len(rows):
                still = np.abs(rows @ self.motion) <= RESTING * p.lengths[name] * scale
                acts = ~limited[contact] | (friction[k] > 0.0)
                np.logical_and.at(rests, contact, still | ~acts)
        return rests

    @property
    def _has_friction(self) -> np.ndarray:
        """(n,) contacts with a row that friction acts along."""
        p, some = self.problem, np.zeros(self.problem.n, dtype=bool)
        friction = p.stack.split(self.laws.friction)
        every = np.arange(p.n)
        for coefficient, contact in zip(friction[:3], (every, every, p.R_contact), strict=True):
            if len(coefficient):
                limited = self.laws.contact[contact] == int(LawKind.COULOMB)
                np.logical_or.at(some, contact, ~limited | (coefficient > 0.0))
        return some

    @property
    def loaded(self) -> np.ndarray:
        """Contacts, and from n on rows of U, that carry force."""
        return np.flatnonzero(np.concatenate([self.normal, self.unilateral]) > 0.0)

    @cached_property
    def _indices(self) -> lcp.Indices:
        """Independent rows among J and the tangents of contacts that stick."""
        p, held = self.problem, self.sticking
        S, T = (rows[held] if len(rows) else rows for rows in (p.S, p.T))
        return lcp.find_indices(p.M, p.J, S, T)

    @cached_property
    def _equal(self) -> np.ndarray:
        """(k, m) independent equality rows: of J, of S and T, and of R."""
        p, held = self.problem, self.sticking
        S, T = (rows[held] if len(rows) else rows for rows in (p.S, p.T))
        kept = [rows[which] for rows, which in zip((p.J, S, T), self._indices, strict=False)]
        rows, R = np.vstack(kept), p.R[held[p.R_contact]]
        if len(R) == 0:
            return rows
        both = np.vstack([rows, R])
        return both[lcp.find_indices(p.M, both).J_rows]

    @property
    def active(self) -> np.ndarray:
        """(k, m) rows that hold with equality, first the independent equality rows."""
        p = self.problem
        stuck = np.abs(self.dry) < p.D_bound
        unilateral = np.vstack([p.N, p.U])[self.loaded]
        return np.vstack([self._equal, unilateral, p.D[stuck]])

    @property
    def drag(self) -> np.ndarray:
        """(m, m) viscous drag."""
        p, drag = self.problem, np.zeros((self.problem.m, self.problem.m))
        softness = p.stack.split(self.laws.compliance)
        viscous = self.laws.contact == int(LawKind.VISCOUS)
        for rows, soft in zip((p.S, p.T), softness, strict=False):
            if len(rows) and viscous.any():
                mu_v = 1.0 / (soft[viscous] * p.step)
                drag += rows[viscous].T @ (mu_v[:, None] * rows[viscous])
        return drag
