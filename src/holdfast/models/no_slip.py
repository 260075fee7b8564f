"""Contact without slip: the paper's velocity-level model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from holdfast import lcp
from holdfast.contact.arrays import LawKind
from holdfast.contact.options import Options
from holdfast.contact.problem import ContactProblem
from holdfast.contact.solution import ContactSolution
from holdfast.lcp.checks import check_choice
from holdfast.lcp.find_indices import RANK_TOL, check_rank_tol
from holdfast.models._choices import (
    check_grip,
    check_problem,
    check_solver,
    lcp_options,
    pivoting,
)
from holdfast.models._newton import solve_newton
from holdfast.models._velocity import solve_velocity
from holdfast.models.base import ContactModel


@dataclass(frozen=True)
class NoSlip(ContactModel):
    r"""Contacts do not slide: ``S v+ = T v+ = 0`` where a contact is pressed.

    .. math::

        M (v^+ - v) = h f + N^T f_n + S^T f_s + T^T f_t + J^T f_J, \qquad
        J v^+ = c_J, \quad S v^+ = T v^+ = 0, \quad 0 \le f_n \perp N v^+ - c_N \ge 0

    (the no-slip section of the paper; its printed g lacks h f, and its printed F and e need the
    projector P). Further friction rows R of a contact stick with it.

    Attributes:
        grip: "all" is exactly the paper's model: every listed contact sticks, including those that
            separate or graze. "loaded" (default): tangential force only where a contact is
            pressed, the limit of infinite Coulomb friction; see `ContactSolution.consistent`.
            Redundant contacts share a load as equal springs do.
        solver: ``grip="loaded"`` is solved by "newton", the contact solver that all laws share;
            ``grip="all"`` by one of `holdfast.lcp`: "ppm" (Algorithm 1 with fixes), for which
            "newton" also stands here, "qp" (daqp) or "lemke". The latter two solve a dense LCP;
            where that loses the digits needed for the certificate, "ppm" continues from their
            loaded set.
        rank_tol: rank tolerance of Algorithm 2 (Find-Indices), for ``grip="all"``.
        options: tolerances of the solver: `holdfast.contact.Options` for "newton",
            `holdfast.lcp.Options` for the others.
    """

    grip: Literal["loaded", "all"] = "loaded"
    solver: str = "newton"
    rank_tol: float = RANK_TOL
    options: Options | lcp.Options | None = None

    def __post_init__(self) -> None:
        check_choice("grip", self.grip, ("loaded", "all"))
        check_solver(self.solver, self.options)
        check_grip(self.grip, self.solver)
        check_rank_tol(self.rank_tol)

    def solve(self, problem: ContactProblem, warm_start: Any = None) -> ContactSolution:
        """Solve one problem; see `ContactModel.solve`."""
        check_problem(problem)
        if self.grip == "loaded":
            law = np.full(problem.n, int(LawKind.NO_SLIP))
            return solve_newton(problem, law, None, None, self.options, warm_start)
        return solve_velocity(
            problem, problem.stack.everywhere, None, pivoting(self.solver),
            lcp_options(self.options), self.rank_tol, warm_start,
        )  # fmt: skip
