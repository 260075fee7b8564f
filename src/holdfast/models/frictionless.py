"""Contact without friction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from holdfast import lcp
from holdfast.contact.arrays import LawKind
from holdfast.contact.options import Options
from holdfast.contact.problem import ContactProblem
from holdfast.contact.solution import ContactSolution
from holdfast.models._choices import check_problem, check_solver, lcp_options
from holdfast.models._newton import solve_newton
from holdfast.models._velocity import solve_velocity
from holdfast.models.base import ContactModel


@dataclass(frozen=True)
class Frictionless(ContactModel):
    """Contact without friction: bodies do not penetrate and slide freely.

    Attributes:
        solver: "newton", the contact solver that all laws share, or one of `holdfast.lcp`: "ppm",
            "qp" or "lemke".
        options: tolerances of the solver: `holdfast.contact.Options` for "newton",
            `holdfast.lcp.Options` for the others.
    """

    solver: str = "newton"
    options: Options | lcp.Options | None = None

    def __post_init__(self) -> None:
        check_solver(self.solver, self.options)

    def solve(self, problem: ContactProblem, warm_start: Any = None) -> ContactSolution:
        """Solve one problem; see `ContactModel.solve`."""
        check_problem(problem)
        if self.solver == "newton":
            law = np.full(problem.n, int(LawKind.FRICTIONLESS))
            return solve_newton(problem, law, options=self.options, warm_start=warm_start)
        return solve_velocity(
            problem, np.zeros(problem.n, dtype=bool), solver=self.solver,
            options=lcp_options(self.options), warm_start=warm_start,
        )  # fmt: skip
