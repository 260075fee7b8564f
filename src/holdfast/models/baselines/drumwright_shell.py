"""The model of Drumwright and Shell: friction by maximum dissipation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from holdfast import lcp
from holdfast.contact.problem import ContactProblem
from holdfast.errors import UncertifiedError
from holdfast.lcp.checks import check_choice
from holdfast.models._choices import check_options, check_problem, coefficients
from holdfast.models.base import ContactModel
from holdfast.models.baselines._coulomb import INSIDE, CoulombSolution, gauge
from holdfast.models.baselines._dissipation import Answer, Program
from holdfast.models.baselines._pyramid import check_directions, check_friction_rows
from holdfast.models.frictionless import Frictionless


@dataclass(frozen=True)
class DrumwrightShell(ContactModel):
    r"""Of all admissible impulses, those that leave the least kinetic energy.

    .. math::

        \min \; \tfrac12 {v^+}^T M v^+ \quad \text{subject to} \quad
        & N v^+ \ge c_N, \quad J v^+ = c_J, \quad f_n \ge 0, \\
        & |f_t| \le \mu f_n + h \mu_v |v_t|, \\
        & 1^T (N v^+ - c_N) \le \kappa

    (Drumwright and Shell 2010). A convex problem: it has a solution wherever the one without
    friction has, and its motion is unique. Complementarity is not asked for. Instead a first solve
    without friction gives :math:`\kappa`, how fast its contacts separate in sum, and friction must
    not make them separate faster. Without that bound normal impulses would grow just to allow for
    more friction. As most contacts that touch do not separate, :math:`\kappa` is mostly zero, and
    complementarity holds.

    Friction opposes not the sliding velocity itself but its sum with what the bound and the
    non-penetration rows add, so at mu -> large this is not `NoSlip`: a cube that slides is not
    tripped, since its rear contacts must not separate. Nor need `CoulombSolution.is_exact` hold,
    which asks for complementarity and Coulomb's law; what is certified is that the energy is least
    (`CoulombSolution.residual`).

    With targets c that are not zero the energy becomes ``1/2 v+' M v+ - c_N' f_n``, whose solution
    at mu = 0 is the frictionless one: an open gap (c_N < 0) is not a reason to brake. Rows of U are
    unilateral without friction; rows of D (dry joint friction) dissipate within their bounds.

    Attributes:
        mu: Coulomb coefficient, one number or one per contact; None uses that of the problem.
        mu_v: viscous coefficient [N s/m]: widens the limit of friction by ``h mu_v |v_t|`` with the
            sliding speed before the step, at every listed contact. None uses that of the problem.
        cone: "linear": the polygon of `StewartTrinkle`. "true": the round cone, by polygons whose
            directions turn to where friction acts. In the plane there is no difference.
        directions: number of directions of the polygon.
        solver: solver of the quadratic programs: "lemke" (on the optimality conditions) or "qp"
            (daqp, not always able to reach the certificate).
        options: `certificate` is used.
    """

    mu: Any = None
    mu_v: Any = 0.0
    cone: Literal["linear", "true"] = "linear"
    directions: int = 4
    solver: Literal["lemke", "qp"] = "lemke"
    options: lcp.Options | None = None

    def __post_init__(self) -> None:
        check_choice("cone", self.cone, ("linear", "true"))
        check_choice("solver", self.solver, ("lemke", "qp"))
        check_directions(self.directions)
        check_options(self.options)

    def solve(self, problem: ContactProblem, warm_start: Any = None) -> CoulombSolution:
        """Solve one problem; see `ContactModel.solve`. `warm_start` serves the first solve."""
        check_problem(problem)
        p = problem
        mu, extra = coefficients("mu", self.mu, p), self._viscous_limit(p)
        check_friction_rows(p, np.maximum(mu, extra), type(self).__name__)
        program = Program(p, mu, extra, Frictionless(solver="ppm").solve(p, warm_start))
        certificate = (self.options or lcp.Options()).certificate
        if self.cone == "linear" or len(p.T) == 0:
            answer = program.solve(program.fan(self.directions), self.solver, certificate)
        else:
            answer = program.solve_cones(self.solver, certificate)
        if not answer.residual <= certificate:
            status = lcp.Status.UNCERTIFIED
            raise UncertifiedError(
                f"{status.message}: {answer.residual:.1e} > {certificate:.1e}", status=status,
                problem=p, result=answer,
            )  # fmt: skip
        corners = 0 if self.cone == "true" else self.directions
        return _solution(program, answer, corners, certificate)

    def _viscous_limit(self, problem: ContactProblem) -> np.ndarray:
        """(n,) ``h mu_v |v_t|``."""
        p = problem
        mu_v = coefficients("mu_v", self.mu_v, p)
        if not mu_v.any():
            return np.zeros(p.n)
        speeds = [rows @ p.v for rows in (p.S, p.T) if len(rows)]
        return p.step * mu_v * (np.linalg.norm(speeds, axis=0) if speeds else 1.0)


def _solution(
    program: Program, answer: Answer, corners: int, certificate: float
) -> CoulombSolution:
    """The forces of a program, put back in their places."""
    p, r, n, x = program.problem, program.reduction, program.problem.n, answer.x
    tangent = np.zeros((n, 2))
    tangent[program.contacts] = program.pair(x).T
    size = gauge(tangent, 2 if len(p.T) == 0 else corners)
    limit = program.mu * x[:n] + program.extra
    loaded = np.flatnonzero(x[: program.a] > 0.0)
    rows = np.vstack([p.J, np.vstack([p.N, p.U])[loaded]])
    effect = program.columns @ x
    return CoulombSolution(
        problem=p,
        level="velocity",
        motion=r.motion(effect),
        normal=x[:n].copy(),
        tangent=tangent,
        bilateral=r.bilateral(effect),
        extra=np.zeros(0),
        unilateral=x[n : program.a].copy(),
        dry=x[program.a + 2 * program.c :].copy(),
        sticking=size < (1.0 - INSIDE) * limit,
        pivots=answer.pivots,
        loaded=loaded,
        active=rows[lcp.find_indices(p.M, rows).J_rows],
        drag=np.zeros((p.m, p.m)),
        bilateral_rows=r.indices.J_rows,
        rank=r.indices.rank,
        rank_gap=r.indices.gap,
        rank_ambiguous=r.indices.ambiguous,
        mu=program.mu,
        bound=program.extra,
        viscous=np.zeros((n, 2)),
        was_sliding=np.zeros(n, dtype=bool),
        residual=answer.residual,
        certificate=certificate,
        directions=corners,
    )
