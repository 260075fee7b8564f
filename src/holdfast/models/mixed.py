"""A law for each contact, all in one solve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from holdfast import lcp
from holdfast.contact.arrays import LawKind
from holdfast.contact.laws import Law
from holdfast.contact.options import Options
from holdfast.contact.problem import ContactProblem
from holdfast.contact.solution import ContactSolution
from holdfast.errors import InputError
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

KINDS = {
    "coulomb": int(LawKind.COULOMB), "stick": int(LawKind.NO_SLIP),
    "viscous": int(LawKind.VISCOUS), "frictionless": int(LawKind.FRICTIONLESS),
}  # fmt: skip


@dataclass(frozen=True)
class Mixed(ContactModel):
    """Coulomb, stick, viscous or frictionless per contact, at velocity level.

    Attributes:
        laws: one `Law` per contact, or a single one for all.
        grip: for the contacts that stick, see `NoSlip`.
        solver: "newton", the contact solver that all laws share, or one of `holdfast.lcp`: "ppm",
            "qp" or "lemke". These support neither Coulomb friction nor ``grip="loaded"`` where a
            contact sticks.
        rank_tol: rank tolerance of Algorithm 2 (Find-Indices).
        options: tolerances of the solver: `holdfast.contact.Options` for "newton",
            `holdfast.lcp.Options` for the others.
    """

    laws: Sequence[Law] | Law
    grip: Literal["loaded", "all"] = "loaded"
    solver: str = "newton"
    rank_tol: float = RANK_TOL
    options: Options | lcp.Options | None = None

    def __post_init__(self) -> None:
        check_choice("grip", self.grip, ("loaded", "all"))
        check_solver(self.solver, self.options)
        check_rank_tol(self.rank_tol)
        for i, law in enumerate([self.laws] if isinstance(self.laws, Law) else self.laws):
            if not isinstance(law, Law):
                raise InputError(
                    "laws", f"entry {i} is {law!r}; use coulomb(), stick(), viscous(mu_v) or "
                    "frictionless()"
                )  # fmt: skip

    def solve(self, problem: ContactProblem, warm_start: Any = None) -> ContactSolution:
        """Solve one problem; see `ContactModel.solve`."""
        check_problem(problem)
        laws = [self.laws] * problem.n if isinstance(self.laws, Law) else list(self.laws)
        if len(laws) != problem.n:
            raise InputError("laws", f"has {len(laws)} entries but there are {problem.n} contacts")
        kinds = {law.kind for law in laws}
        drags = [law.mu_v for law in laws]
        mu_v = np.array(drags, dtype=float) if any(drags) else None
        if "coulomb" in kinds and self.solver != "newton":
            raise InputError("solver", f"is {self.solver!r}; Coulomb friction needs 'newton'")
        to_the_letter = "stick" in kinds and self.grip == "all"
        if "coulomb" in kinds and to_the_letter:
            raise InputError("grip", "is 'all', which cannot be combined with coulomb()")
        if "stick" in kinds:
            check_grip(self.grip, self.solver)
        if self.solver == "newton" and not to_the_letter:
            law = np.array([KINDS[law.kind] for law in laws], dtype=np.int64)
            mu = _coefficients(laws, problem) if "coulomb" in kinds else None
            return solve_newton(problem, law, mu, mu_v, self.options, warm_start)
        sticking = np.array([law.kind == "stick" for law in laws], dtype=bool)
        return solve_velocity(
            problem, sticking, mu_v, pivoting(self.solver), lcp_options(self.options),
            self.rank_tol, warm_start,
        )  # fmt: skip


def _coefficients(laws: list[Law], problem: ContactProblem) -> np.ndarray:
    """Coulomb coefficients, (n,) or (n, 2): of the laws, or where they have none the problem's."""
    given = np.array([np.nan if law.mu is None else law.mu for law in laws])
    limited = np.array([law.kind == "coulomb" for law in laws])
    given[~limited] = 0.0
    declared = np.isnan(given)
    if not declared.any():
        return given
    if problem.mu is None:
        raise InputError(
            "mu", f"of contact {int(np.flatnonzero(declared)[0])} is missing: give it to coulomb() "
            "or to ContactProblem.mu"
        )  # fmt: skip
    if problem.mu.ndim == 1:
        return np.where(declared, problem.mu, given)
    return np.where(declared[:, None], problem.mu, given[:, None])
