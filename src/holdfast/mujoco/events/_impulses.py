"""Contact at velocity level for the event-driven simulation: impacts, and steps of no-slip contact.

Impacts are inelastic and take no time, so only impulses act: a viscous contact, whose force is
finite, gives none along its tangents. Sustained contact without slip is decided at velocity level,
as the paper argues it must be: at acceleration level a contact may slide under unlimited friction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from holdfast import lcp
from holdfast.errors import InputError, SolveError
from holdfast.models import ContactModel, NoSlip, Viscous
from holdfast.models.laws import Law, frictionless, stick
from holdfast.mujoco._laws import Laws
from holdfast.mujoco._motion import Motion
from holdfast.mujoco.events._listing import Listing
from holdfast.mujoco.events._sustained import Grip, drag
from holdfast.problem import ContactProblem

PRESSED = 1e-9  # impulse, as part of the largest, that counts as pressing


class Impulses(NamedTuple):
    """Velocity afterwards, and what the contacts gave."""

    velocity: np.ndarray
    normal: np.ndarray  # (k,) [N s]
    held: np.ndarray  # (k,) contacts that stick


class VelocityLevel:
    """Solves impacts and steps by one contact model and laws per pair.

    Attributes:
        coulomb: whether the model is no single law: then it solves by itself, at velocity level.
    """

    def __init__(
        self, model: Any, contact: ContactModel, laws: Mapping[tuple[str, str], Law] | None
    ) -> None:
        self.contact = contact
        self.per_pair = False
        if isinstance(contact, Viscous):
            if np.ndim(contact.mu_v) != 0:
                raise InputError("contact", "has one mu_v per contact; in a simulation contacts "
                                 "come and go: give one number, and laws per pair")  # fmt: skip
            self.per_pair = contact.per_pair
            contact = replace(contact, level="velocity", per_pair=False)
        self._motion = Motion(contact)
        self._model = contact
        self.coulomb = self._motion.law is None
        self._laws = Laws(model, laws, self._motion.law or stick())
        self._body = np.array(model.geom_bodyid)
        self._letter = isinstance(contact, NoSlip) and contact.grip == "all"
        if self.coulomb and not self._laws.uniform:
            raise InputError("laws", f"cannot be mixed with {type(contact).__name__}")

    def laws(self, listed: Listing, some: np.ndarray) -> list[Law]:
        """Law of each of the chosen contacts."""
        free = frictionless()
        return [
            law if dim > 1 else free
            for law, dim in zip(
                self._laws.of(listed.geoms[some]), listed.dim[some].tolist(), strict=True
            )
        ]

    def grip(self, listed: Listing, some: np.ndarray, held: np.ndarray | None) -> Grip:
        """The chosen contacts as sustained ones; `held` are those that stick."""
        laws = self.laws(listed, some)
        mu_v = np.array([law.mu_v if law.kind == "viscous" else 0.0 for law in laws])
        if self.per_pair and len(some):
            bodies = np.sort(self._bodies(listed, some), axis=1)
            _, which, count = np.unique(bodies, axis=0, return_inverse=True, return_counts=True)
            mu_v = mu_v / count[which.ravel()]
        return Grip(some, np.zeros(len(some), dtype=bool) if held is None else held, mu_v)

    def sticks(self, listed: Listing, some: np.ndarray) -> np.ndarray:
        """(k,) whether the law of each of the chosen contacts is to stick."""
        return np.array([law.kind == "stick" for law in self.laws(listed, some)], dtype=bool)

    def impact(self, M: np.ndarray, v: np.ndarray, listed: Listing, some: np.ndarray) -> Impulses:
        """Velocity after an inelastic impact at the chosen contacts."""
        free = frictionless()
        laws = [free if law.kind == "viscous" else law for law in self.laws(listed, some)]
        problem = self._problem(M, v, None, None, listed, some, None)
        return self._solved(problem, laws)

    def step(
        self,
        A: np.ndarray,
        f: np.ndarray,
        v: np.ndarray,
        h: float,
        listed: Listing,
        some: np.ndarray,
        gap: np.ndarray | None = None,
    ) -> Impulses:
        """Velocity after h seconds; with `gap`, contacts may close it within the step."""
        if not self.coulomb and not self._letter and gap is None:
            quick = self._all_pressed(A, f, v, h, listed, some)
            if quick is not None:
                return quick
        c_N = None if gap is None else np.minimum(-gap / h, 0.0)
        problem = self._problem(A, v, f, h, listed, some, c_N)
        return self._solved(problem, self.laws(listed, some))

    def _bodies(self, listed: Listing, some: np.ndarray) -> np.ndarray:
        """(k, 2) bodies of the chosen contacts; the world for limits."""
        geoms = listed.geoms[some]
        return np.where(geoms >= 0, self._body[np.maximum(geoms, 0)], 0)

    def _all_pressed(
        self, A: np.ndarray, f: np.ndarray, v: np.ndarray, h: float, listed: Listing,
        some: np.ndarray,
    ) -> Impulses | None:  # fmt: skip
        """The answer if every contact that is to stick turns out to be pressed: the usual case."""
        sticks = self.sticks(listed, some)
        viscous = not sticks.all()
        friction = listed.rows[listed.friction_rows(some[sticks])]
        G = np.vstack([listed.J, friction])
        c_G = np.concatenate([listed.target, np.zeros(len(friction))])
        kept = lcp.find_indices(A, G).J_rows if len(G) else np.zeros(0, dtype=np.int64)
        momentum = A @ v + h * f
        if viscous:
            A = A + h * drag(listed, self.grip(listed, some, sticks))
        bound, free = h * listed.loss, np.full(len(kept), np.inf)
        k = len(some)
        try:
            answer = lcp.solve_factored(
                np.vstack([G[kept], listed.N[some], listed.rows[listed.dry]]),
                A,
                np.linalg.solve(A, momentum),
                -np.concatenate([c_G[kept], np.zeros(k + len(bound))]),
                lo=np.concatenate([-free, np.zeros(k), -bound]),
                hi=np.concatenate([free, np.full(k, np.inf), bound]),
            )
        except SolveError:
            return None
        normal = answer.z[len(kept) : len(kept) + k]
        if (normal[sticks] <= PRESSED * normal.max(initial=0.0)).any():
            return None
        return Impulses(np.array(answer.motion), np.array(normal), sticks)

    def _solved(self, problem: ContactProblem, laws: list[Law]) -> Impulses:
        if self.coulomb:
            solution = self._model.solve(problem)
        else:
            solution = self._motion(problem, laws, np.zeros(problem.n, dtype=bool), None)
        held = solution.sticking & (solution.normal > PRESSED * solution.normal.max(initial=0.0))
        return Impulses(solution.velocity, solution.normal, held)

    def _problem(
        self, A: np.ndarray, v: np.ndarray, f: np.ndarray | None, h: float | None,
        listed: Listing, some: np.ndarray, c_N: np.ndarray | None,
    ) -> ContactProblem:  # fmt: skip
        S, T = listed.tangents(some)
        R, R_contact = listed.extra(some)
        dry = listed.dry if h is not None else listed.dry[:0]
        return ContactProblem(
            M=A,
            v=v,
            f=f,
            h=h,
            N=listed.N[some],
            S=S,
            T=T,
            R=R,
            R_contact=R_contact,
            J=listed.J,
            c_J=listed.target if h is not None else np.where(listed.target, listed.J @ v, 0.0),
            c_N=c_N,
            D=listed.rows[dry],
            D_bound=(h or 0.0) * listed.loss if h is not None else None,
            mu=listed.mu[some],
            bodies=self._bodies(listed, some),
        )
