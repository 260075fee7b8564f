"""Contact at velocity level for the event-driven simulation: impacts, and steps of no-slip contact.

Impacts are inelastic and take no time, so only impulses act: a viscous contact, whose force is
finite, gives none along its tangents. Sustained contact without slip is decided at velocity level,
as the paper argues it must be: at acceleration level a contact may slide under unlimited friction.

Drag is put into the inertia of the step, ``(A + h C) (v+ - v) = h (f - C v) + ...``: then all that
is left is to stick or to slide freely.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from holdfast.contact.laws import Law, frictionless, stick, viscous
from holdfast.errors import InputError
from holdfast.events.contact_set import Listing
from holdfast.events.sustained import Grip, drag
from holdfast.models import ContactModel, Frictionless, Viscous
from holdfast.mujoco._answer import Answer, from_solution
from holdfast.mujoco._laws import Laws
from holdfast.mujoco._motion import Motion
from holdfast.mujoco._quick import Quick
from holdfast.mujoco._shadow import LIMIT_REACH
from holdfast.mujoco.assemble import Rows
from holdfast.mujoco.stepper import OPEN

PRESSED = 1e-9  # impulse, as part of the largest, that counts as pressing


class Impulses(NamedTuple):
    """Velocity afterwards, and what the contacts gave."""

    velocity: np.ndarray
    impulse: np.ndarray  # (nefc,) along all rows [N s]
    normal: np.ndarray  # (k,) of the chosen contacts [N s]
    held: np.ndarray  # (k,) contacts that stick


class VelocityLevel:
    """Solves impacts and steps by one contact model and laws per pair.

    Attributes:
        coulomb: whether the model is no single law: then it solves by itself, at velocity level.
    """

    def __init__(
        self, model: Any, contact: ContactModel, laws: Mapping[tuple[str, str], Law] | None
    ) -> None:
        default, self._per_pair = None, False
        if isinstance(contact, Viscous):
            if np.ndim(contact.mu_v) != 0:
                raise InputError("contact", "has one mu_v per contact; in a simulation contacts "
                                 "come and go: give one number, and laws per pair")  # fmt: skip
            default, self._per_pair = viscous(contact.mu_v), contact.per_pair
            contact = Frictionless(solver=contact.solver, options=contact.options)
        self._motion, self._quick = Motion(contact), Quick(contact)
        self.coulomb = self._motion.law is None
        self._laws = Laws(model, laws, default or self._motion.law or stick())
        if self.coulomb and not self._laws.uniform:
            raise InputError("laws", f"cannot be mixed with {type(contact).__name__}")

    def grip(self, listed: Listing, some: np.ndarray) -> Grip:
        """The chosen contacts as sustained ones, each by its law; those that may stick are held."""
        dim, laws = listed.dim[some], self._laws.of(listed.geoms[some])
        held = np.array([law.kind == "stick" for law in laws], dtype=bool) & (dim > 1)
        mu_v = np.array([law.mu_v if law.kind == "viscous" else 0.0 for law in laws])
        mu_v[dim < 3] = 0.0
        if self._per_pair and len(some):
            bodies = np.sort(listed.bodies[some], axis=1)
            _, which, count = np.unique(bodies, axis=0, return_inverse=True, return_counts=True)
            mu_v = mu_v / count[which.ravel()]
        return Grip(some, held, mu_v)

    def impact(self, M: np.ndarray, v: np.ndarray, listed: Listing, some: np.ndarray) -> Impulses:
        """Velocity after an inelastic impact at the chosen contacts."""
        grip = self.grip(listed, some)
        driven = np.where(listed.target == 0.0, 0.0, listed.J @ v)
        rows = listed.problem_rows(M, np.zeros(len(v)), v, 1.0, some, np.zeros(len(some)), driven,
                                   np.zeros(listed.nf))  # fmt: skip
        return self._solved(rows, listed, grip)

    def step(
        self, A: np.ndarray, f: np.ndarray, v: np.ndarray, h: float, listed: Listing, grip: Grip,
        gap: np.ndarray | None = None,
    ) -> Impulses:  # fmt: skip
        """Velocity after h seconds; with `gap`, contacts may close it within the step."""
        some = grip.sustained
        slides = grip.mu_v.any()
        if slides:
            C = drag(listed, grip)
            A, f = A + h * C, f - C @ v
        gap = np.zeros(len(some)) if gap is None else gap
        rows = listed.problem_rows(A, f, v, h, some, gap, listed.target, h * listed.loss)
        found = self._solved(rows, listed, grip)
        if slides:
            S, T = listed.tangents(some)
            dragged = np.flatnonzero(grip.mu_v)
            for e, along in ((1, S), (2, T)):
                found.impulse[listed.first[some[dragged]] + e] = (
                    -h * grip.mu_v[dragged] * (along[dragged] @ found.velocity)
                )
        return found

    def _solved(self, rows: Rows, listed: Listing, grip: Grip) -> Impulses:
        answer = self._answer(rows, grip.held[: len(rows.contact)])
        normal = answer.impulse[listed.first[grip.sustained]]
        held = np.zeros(len(normal), dtype=bool)
        held[: len(rows.contact)] = answer.grips
        held &= normal > PRESSED * normal.max(initial=0.0)
        return Impulses(answer.velocity, answer.impulse, normal, held)

    def _answer(self, rows: Rows, sticks: np.ndarray) -> Answer:
        """The usual way, or the long one where that is in doubt."""
        if self._quick.applies:
            answer = self._quick(rows, sticks)
            if answer is not None:
                return answer
        contacts = np.ones(len(rows.contact), dtype=bool)
        limits, landing = rows.limit_gap < LIMIT_REACH, rows.gap > OPEN * rows.size
        laws = [stick() if on else frictionless() for on in sticks.tolist()]
        solution = self._motion(rows.problem(contacts, limits), laws, landing, None)
        return from_solution(rows, solution, contacts, limits, sticks & ~self.coulomb, landing)
