"""Contact without friction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from holdfast import lcp
from holdfast.contact.problem import ContactProblem
from holdfast.contact.solution import ContactSolution
from holdfast.lcp.checks import check_choice
from holdfast.models._choices import check_options, check_problem
from holdfast.models._velocity import solve_velocity
from holdfast.models.base import ContactModel


@dataclass(frozen=True)
class Frictionless(ContactModel):
    """Bodies do not enter each other, and slide freely.

    Attributes:
        solver: "ppm", "qp" or "lemke".
        options: tolerances of the solver.
    """

    solver: str = "ppm"
    options: lcp.Options | None = None

    def __post_init__(self) -> None:
        check_choice("solver", self.solver, ("ppm", "qp", "lemke"))
        check_options(self.options)

    def solve(self, problem: ContactProblem, warm_start: Any = None) -> ContactSolution:
        """Solve one problem; see `ContactModel.solve`."""
        check_problem(problem)
        return solve_velocity(
            problem, np.zeros(problem.n, dtype=bool), solver=self.solver, options=self.options,
            warm_start=warm_start,
        )  # fmt: skip
