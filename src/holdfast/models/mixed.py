"""A law for each contact, all in one solve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from holdfast import lcp
from holdfast.contact.laws import Law
from holdfast.contact.problem import ContactProblem
from holdfast.contact.solution import ContactSolution
from holdfast.errors import InputError
from holdfast.lcp.checks import check_choice
from holdfast.lcp.find_indices import RANK_TOL, check_rank_tol
from holdfast.models._choices import check_options, check_problem
from holdfast.models._grip import grip_loaded
from holdfast.models._velocity import solve_velocity
from holdfast.models.base import ContactModel


@dataclass(frozen=True)
class Mixed(ContactModel):
    """Stick, viscous or frictionless per contact, at velocity level.

    Attributes:
        laws: one `Law` per contact, or a single one for all.
        grip: for the contacts that stick, see `NoSlip`.
        solver: "ppm", "qp" or "lemke".
        rank_tol: of Find-Indices.
        options: tolerances of the solver.
    """

    laws: Sequence[Law] | Law
    grip: Literal["loaded", "all"] = "loaded"
    solver: str = "ppm"
    rank_tol: float = RANK_TOL
    options: lcp.Options | None = None

    def __post_init__(self) -> None:
        check_choice("grip", self.grip, ("loaded", "all"))
        check_choice("solver", self.solver, ("ppm", "qp", "lemke"))
        check_options(self.options)
        check_rank_tol(self.rank_tol)
        for i, law in enumerate([self.laws] if isinstance(self.laws, Law) else self.laws):
            if not isinstance(law, Law):
                raise InputError(
                    "laws", f"entry {i} is {law!r}; use stick(), viscous(mu_v) or frictionless()"
                )

    def solve(self, problem: ContactProblem, warm_start: Any = None) -> ContactSolution:
        """Solve one problem; see `ContactModel.solve`."""
        check_problem(problem)
        laws = [self.laws] * problem.n if isinstance(self.laws, Law) else list(self.laws)
        if len(laws) != problem.n:
            raise InputError("laws", f"has {len(laws)} entries but there are {problem.n} contacts")
        wants_stick = np.array([law.kind == "stick" for law in laws], dtype=bool)
        mu_v = np.array([law.mu_v for law in laws], dtype=float)

        def held(sticking: np.ndarray) -> ContactSolution:
            return solve_velocity(
                problem, sticking, mu_v, solver=self.solver, options=self.options,
                rank_tol=self.rank_tol, warm_start=warm_start,
            )  # fmt: skip

        return held(wants_stick) if self.grip == "all" else grip_loaded(problem, held, wants_stick)
