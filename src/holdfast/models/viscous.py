"""Contact with purely viscous friction: the paper's other model, at both levels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from holdfast import lcp
from holdfast.contact.arrays import LawKind
from holdfast.contact.dry_friction import dry_forces
from holdfast.contact.options import Options
from holdfast.contact.problem import ContactProblem
from holdfast.contact.solution import ContactSolution
from holdfast.errors import InputError
from holdfast.lcp.checks import check_choice
from holdfast.lcp.find_indices import RANK_TOL
from holdfast.models._acceleration import integrated, with_rates
from holdfast.models._choices import (
    check_problem,
    check_range,
    check_solver,
    coefficients,
    lcp_options,
    pivoting,
)
from holdfast.models._newton import solve_newton
from holdfast.models._projection import project
from holdfast.models._velocity import drag_forces, drag_matrix, solve_velocity
from holdfast.models.base import ContactModel


@dataclass(frozen=True)
class Viscous(ContactModel):
    r"""Friction proportional to sliding speed, whatever the load.

    At velocity level drag is implicit, stable for any step, and valid for impacts as well:

    .. math::

        (M + h C) v^+ = M v + h f + N^T f_n + J^T f_J, \qquad C = S^T \mu_v S + T^T \mu_v T

    At acceleration level (the paper's model, with the missing terms restored) the drag is that of
    the present velocity, and listed contacts are assumed to be sustained:

    .. math::

        M a = f - C v + N^T f_n + J^T f_J, \quad J a = -\dot J v, \quad
        0 \le f_n \perp N a + \dot N v \ge 0

    Each listed contact point drags, loaded or not, so drag grows with the number of points that a
    collision detector returns. To make it belong to the pair of bodies, use `per_pair`.

    Attributes:
        mu_v: coefficient [N s/m], one number or one per contact; None uses that of the problem.
        level: "velocity" or "acceleration".
        solver: "newton", the contact solver that all laws share (velocity level; at acceleration
            level it means "ppm"), or one of `holdfast.lcp`: "ppm", "qp" or "lemke".
        per_pair: divide each coefficient among the contacts of the same pair of bodies
            (needs `ContactProblem.bodies`).
        options: tolerances of the solver: `holdfast.contact.Options` for "newton",
            `holdfast.lcp.Options` for the others.
    """

    mu_v: Any = 0.1
    level: Literal["velocity", "acceleration"] = "velocity"
    solver: str = "newton"
    per_pair: bool = False
    options: Options | lcp.Options | None = None

    def __post_init__(self) -> None:
        check_choice("level", self.level, ("velocity", "acceleration"))
        check_solver(self.solver, self.options)
        check_range("mu_v", self.mu_v)

    def solve(self, problem: ContactProblem, warm_start: Any = None) -> ContactSolution:
        """Solve one problem; see `ContactModel.solve`."""
        check_problem(problem)
        mu_v = coefficients("mu_v", self.mu_v, problem)
        if self.per_pair:
            mu_v = mu_v / contacts_of_pair(problem)
        if self.level == "acceleration":
            return self._accelerate(problem, mu_v, warm_start)
        if self.solver == "newton":
            law = np.full(problem.n, int(LawKind.VISCOUS))
            return solve_newton(problem, law, None, mu_v, self.options, warm_start)
        return solve_velocity(
            problem, np.zeros(problem.n, dtype=bool), mu_v, solver=self.solver,
            options=lcp_options(self.options), warm_start=warm_start,
        )  # fmt: skip

    def advance(self, problem: ContactProblem, warm_start: Any = None) -> ContactSolution:
        """Solve one step; see `ContactModel.advance`."""
        if self.level == "velocity":
            return self.solve(problem, warm_start)
        check_problem(problem)
        return integrated(self.solve(with_rates(problem), warm_start), problem)

    def _accelerate(
        self, problem: ContactProblem, mu_v: np.ndarray, warm_start: Any
    ) -> ContactSolution:
        p = problem
        drag = drag_matrix(p, mu_v)
        dry, bound = dry_forces(p)
        free = p.solve(p.f - drag @ p.v + p.D.T @ dry)
        arrays = p.stack.arrays
        b, lo, hi = np.array([arrays.b, arrays.lo, arrays.hi])
        _, _, _, J, N, U, _ = p.stack.split(b)
        J[:], N[:], U[:] = p.Jdot_v, p.Ndot_v, p.Udot_v
        p.stack.split(lo)[6][:], p.stack.split(hi)[6][:] = -bound, bound
        found = project(
            p, np.zeros(p.n, dtype=bool), arrays._replace(v=free, f=free[:0], b=b, lo=lo, hi=hi),
            pivoting(self.solver), lcp_options(self.options), RANK_TOL, warm_start,
        )  # fmt: skip
        viscous = drag_forces(p, mu_v, p.v)
        found = found._replace(level="acceleration", damping=drag, viscous=viscous)
        return replace(ContactSolution.of(found), dry=found.dry + dry)


def contacts_of_pair(problem: ContactProblem) -> np.ndarray:
    """(n,) how many contacts the pair of bodies of each contact has."""
    if problem.bodies is None:
        raise InputError("bodies", "is missing; per_pair needs the two bodies of each contact")
    pairs = np.sort(problem.bodies, axis=1)  # whichever body comes first
    _, which, counts = np.unique(pairs, axis=0, return_inverse=True, return_counts=True)
    return counts[which.ravel()]
