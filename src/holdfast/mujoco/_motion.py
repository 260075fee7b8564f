"""The velocity after a step, for contacts of several laws."""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast.contact.laws import Law, frictionless, stick, viscous
from holdfast.contact.problem import ContactProblem
from holdfast.contact.solution import ContactSolution
from holdfast.errors import InfeasibleError, SolveError, UncertifiedError
from holdfast.lcp import Status
from holdfast.models import ContactModel, Frictionless, Mixed, NoSlip, Viscous
from holdfast.mujoco._release import balances, released

# Collision detectors place points to about 1e-7. Tangents that differ by no more than that are
# the same tangent; held apart, they ask for friction a million times the load.
COARSER = (1e-4, 1e-2)


class Motion:
    """Solves contact problems by one contact model, with a law for each contact.

    Attributes:
        law: what the model gives every contact; None if it is no single law, and then the model
            solves by itself.
    """

    def __init__(self, contact: ContactModel) -> None:
        self.contact = contact
        self.law = default_law(contact)
        c: Any = contact
        self._shared: dict[str, Any] = {}
        if self.law is not None:
            self._shared = {"solver": c.solver, "options": c.options}
        if isinstance(c, NoSlip):
            self._shared |= {"grip": c.grip, "rank_tol": c.rank_tol}

    def __call__(
        self,
        problem: ContactProblem,
        laws: list[Law],
        landing: np.ndarray,
        warm: np.ndarray | None,
    ) -> ContactSolution:
        """Solve one problem; where the contacts that stick are in doubt, release some.

        Args:
            problem: of this step.
            laws: one per contact.
            landing: (n,) contacts whose surfaces will touch only at the end of the step. If it
                is these that hold a body in the air, they have no friction in this step.
            warm: contacts expected to be loaded, or None.
        """
        if self.law is None:
            return self.contact.solve(problem, warm_start=warm)
        solution = self._consistent(problem, laws, warm)
        if solution is None and landing.any():
            free = frictionless()
            laws = [free if up else law for law, up in zip(laws, landing.tolist(), strict=True)]
            solution = self._consistent(problem, laws, None)
        for rank_tol in COARSER:
            if solution is None:
                found = self._released(problem, laws, rank_tol)
                solution = found if balances(found) else None
        if solution is None:
            raise UncertifiedError(
                "the forces do not add up to the motion", status=Status.UNCERTIFIED,
                problem=problem,
            )  # fmt: skip
        return solution

    def _consistent(
        self, problem: ContactProblem, laws: list[Law], warm: np.ndarray | None
    ) -> ContactSolution | None:
        """The answer in which exactly the pressed contacts stick, if it is found."""
        to_the_letter = self._shared.get("grip") == "all"
        try:
            solution = Mixed(laws, **self._shared).solve(problem, warm_start=warm)
        except InfeasibleError:
            raise
        except (SolveError, np.linalg.LinAlgError):
            if to_the_letter:
                raise
            return None
        return solution if (solution.consistent or to_the_letter) and balances(solution) else None

    def _released(
        self, problem: ContactProblem, laws: list[Law], rank_tol: float
    ) -> ContactSolution:
        free = frictionless()
        options: dict[str, Any] = {**self._shared, "grip": "all", "rank_tol": rank_tol}

        def held(some: np.ndarray) -> ContactSolution:
            chosen = [
                free if law.kind == "stick" and not on else law
                for law, on in zip(laws, some.tolist(), strict=True)
            ]
            return Mixed(chosen, **options).solve(problem)

        return released(held, np.array([law.kind == "stick" for law in laws], dtype=bool))


def default_law(contact: ContactModel) -> Law | None:
    """The law that a contact model gives every contact; None if it is no single law."""
    if isinstance(contact, NoSlip):
        return stick()
    if isinstance(contact, Frictionless):
        return frictionless()
    if isinstance(contact, Viscous) and contact.level == "velocity" and not contact.per_pair:
        return viscous(contact.mu_v) if np.ndim(contact.mu_v) == 0 else None
    return None
