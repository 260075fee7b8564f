"""Coulomb friction at velocity level: build the pyramid LCP of a problem, solve it by Lemke."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from holdfast import lcp
from holdfast.contact.problem import ContactProblem
from holdfast.errors import InfeasibleError, RayTerminationError, SolveError
from holdfast.lcp.checks import check_choice
from holdfast.lcp.lemke import lemke
from holdfast.models._choices import check_options, check_problem, coefficients
from holdfast.models._reduction import Reduction
from holdfast.models.base import ContactModel
from holdfast.models.baselines._coulomb import INSIDE, CoulombSolution
from holdfast.models.baselines._pyramid import (
    PyramidLCP,
    assemble,
    check_directions,
    check_friction_rows,
    friction,
)
from holdfast.models.frictionless import Frictionless

PAPER_ZERO_TOL = 1e-5  # what the paper's simulator took for zero,
PAPER_PIVOT_TOL = 1e-4  # and for too small a pivot
BLOWN_UP = 1e3  # residuals are relative to the forces; the motion may miss by so many times more
PAPER_CERTIFICATE = 1e-4  # all that an answer found with such pivots can be held to


class Found(NamedTuple):
    """Answer of the complementarity problem."""

    z: np.ndarray
    pivots: int
    residual: float
    certificate: float
    regularization: float


@dataclass(frozen=True)
class TimeStepping(ContactModel):
    """What Stewart-Trinkle and Anitescu-Potra share; see those."""

    mu: Any = None
    directions: int = 4
    solver: Literal["lemke"] = "lemke"
    regularization: tuple[float, float] | None = (1e-16, 1e-6)
    tolerance: Literal["tight", "paper"] = "tight"
    options: lcp.Options | None = None

    def __post_init__(self) -> None:
        check_directions(self.directions)
        check_choice("solver", self.solver, ("lemke",))
        check_choice("tolerance", self.tolerance, ("tight", "paper"))
        check_options(self.options)

    def build(self, problem: ContactProblem) -> PyramidLCP:
        """The complementarity problem, to look at or to hand to another solver."""
        check_problem(problem)
        p = problem
        mu = coefficients("mu", self.mu, p)
        check_friction_rows(p, mu, type(self).__name__)
        fr = friction(p, np.flatnonzero(mu > 0.0), mu, self.directions, p.D_bound)
        A = np.vstack([p.N, p.U])
        reduction = Reduction(p, p.free_velocity, p.c_J)
        return assemble(reduction, A, A, np.concatenate([p.c_N, p.c_U]), fr)

    def solve(self, problem: ContactProblem, warm_start: Any = None) -> CoulombSolution:
        """Solve one problem; see `ContactModel.solve`. Lemke's method has no warm start."""
        built = self.build(problem)
        options = self.options or lcp.Options()
        options = replace(options, regularization=self.regularization)
        found = solve_lcp(built, problem, options, self.tolerance)
        mu = coefficients("mu", self.mu, problem)
        solution = coulomb_solution(built, found, "velocity", mu, self.directions)
        if solution.penetration_speed() > BLOWN_UP * found.certificate:
            raise _infeasible(problem) or SolveError(
                f"the forces grew until they hid that contacts still close by a relative speed of "
                f"{solution.penetration_speed():.1e}", status=lcp.Status.UNCERTIFIED,
                problem=problem, result=solution,
            )  # fmt: skip
        return solution


def solve_lcp(
    built: PyramidLCP,
    problem: ContactProblem,
    options: lcp.Options,
    tolerance: str,
    on_ray: Callable[[RayTerminationError], Found] | None = None,
) -> Found:
    """Lemke's method, certified; its failures carry the contact problem.

    Args:
        built: what to solve.
        problem: what it came from.
        options: tolerances, and the Tikhonov schedule.
        tolerance: "tight", or "paper" for the loose tolerances of the paper's simulator.
        on_ray: what to do when the path ends on a ray: finds an answer in another way, or raises.
    """
    try:
        if tolerance == "tight":
            answer = lcp.solve(built.F, built.e, "lemke", options)
            residual = answer.residuals.largest
            return Found(
                answer.z, answer.pivots, residual, options.certificate, answer.regularization
            )
        options = replace(options, certificate=PAPER_CERTIFICATE)
        loose = lemke(built.F, built.e, options, zero_tol=PAPER_ZERO_TOL, pivot_tol=PAPER_PIVOT_TOL)
        if loose.status is lcp.Status.RAY:
            assert loose.ray is not None
            message = loose.status.message
            raise RayTerminationError(message, status=loose.status, problem=built, ray=loose.ray)
        if loose.status is not lcp.Status.SOLVED:
            message = f"{loose.status.message} (residual {loose.residual:.1e})"
            raise SolveError(message, status=loose.status, problem=built, result=loose)
        return Found(
            loose.z, loose.pivots, loose.residual, options.certificate, loose.regularization
        )
    except RayTerminationError as error:
        if on_ray is not None:
            return on_ray(error)
        raise _ray_error(problem, error, tolerance) from error
    except SolveError as error:
        raise SolveError(
            str(error), status=error.status, problem=problem, result=error.result
        ) from error


def _infeasible(problem: ContactProblem) -> InfeasibleError | None:
    """The proof that no velocity satisfies all rows, whatever forces cause it; None if one does."""
    try:
        Frictionless().solve(problem)
    except InfeasibleError as error:
        return error
    except SolveError:  # nothing is proven
        return None
    return None


def _ray_error(problem: ContactProblem, error: RayTerminationError, tolerance: str) -> SolveError:
    """A Farkas certificate if no velocity satisfies all rows, else the ray."""
    infeasible = _infeasible(problem)
    if infeasible is not None:
        return infeasible
    reason = (
        "its loose tolerances may have lost the path, tolerance='tight' does not"
        if tolerance == "paper"
        else "with targets c_N or c_U above zero, or bilateral targets, a problem with friction "
        "may have none"
    )
    return RayTerminationError(
        f"Lemke's method {error.status.message}; {reason}",
        status=error.status, problem=problem, ray=error.ray,
    )  # fmt: skip


def coulomb_solution(
    built: PyramidLCP,
    found: Found,
    level: Literal["velocity", "acceleration"],
    mu: np.ndarray,
    directions: int,
    *,
    tangent: np.ndarray | None = None,
    viscous: np.ndarray | None = None,
    was_sliding: np.ndarray | None = None,
    drag: np.ndarray | None = None,
    dry: np.ndarray | None = None,
) -> CoulombSolution:
    """The forces of an LCP, put back in their places.

    Args:
        built: the LCP.
        found: its answer.
        level: of the problem.
        mu: (n,) coefficients.
        directions: of the pyramid.
        tangent: (n, 2) tangential forces that are not variables of the LCP.
        viscous: (n, 2) the viscous part of those.
        was_sliding: (n,) contacts whose friction is among those.
        drag: (m, m) viscous drag.
        dry: (d,) dry friction that is not a variable of the LCP.
    """
    r, fr = built.reduction, built.friction
    p, n, z = r.problem, r.problem.n, found.z
    forces, beta, _ = built.split(z)
    effect = built.effect(z)
    contact = np.flatnonzero(fr.normal >= 0)
    slack, limit = built.slack(z)
    inside = slack > INSIDE * limit
    sticking = np.zeros(n, dtype=bool)
    sticking[fr.normal[contact]] = inside[contact]
    along = fr.forces(beta)
    none = np.zeros((n, 2))
    tangent = none.copy() if tangent is None else tangent.copy()
    tangent[fr.normal[contact]] += along[contact]
    loaded = np.flatnonzero(forces > 0.0)
    held = [rows[sticking] for rows in (p.S, p.T) if len(rows)]
    A = np.vstack([p.N, p.U])
    rows = np.vstack([p.J, A[loaded], *held, p.D[inside[len(contact) :]]])
    return CoulombSolution(
        problem=p,
        level=level,
        motion=r.motion(effect),
        normal=forces[:n].copy(),
        tangent=tangent,
        bilateral=r.bilateral(effect),
        extra=np.zeros(0),
        unilateral=forces[n:].copy(),
        dry=along[len(contact) :, 0] + (0.0 if dry is None else dry),
        sticking=sticking,
        pivots=found.pivots,
        loaded=loaded,
        active=rows[lcp.find_indices(p.M, rows).J_rows],
        drag=np.zeros((p.m, p.m)) if drag is None else drag,
        bilateral_rows=r.indices.J_rows,
        rank=r.indices.rank,
        rank_gap=r.indices.gap,
        rank_ambiguous=r.indices.ambiguous,
        mu=mu,
        bound=np.zeros(n),
        viscous=none if viscous is None else viscous,
        was_sliding=np.zeros(n, dtype=bool) if was_sliding is None else was_sliding,
        residual=found.residual,
        certificate=found.certificate,
        directions=directions,
        regularization=found.regularization,
        lcp=built,
        z=z,
    )
