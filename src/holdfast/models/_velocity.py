"""Contact at velocity level: stick, viscous drag and frictionless contacts in one solve.

With ``C = S' mu S + T' mu T`` over the viscous contacts, implicit drag makes the step

    (M + h C) v+ = M v + h f + N' f_n + J' f_J + (tangents of the contacts that stick)

which is the projection of `holdfast.models._projection` in the metric M + h C. It stays positive
definite and is stable for any h, where explicit drag needs h mu / mass < 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from holdfast import lcp
from holdfast.errors import InfeasibleError, SolveError
from holdfast.lcp.inertia import InertiaFactor
from holdfast.models._projection import Projection, Rows, by_part, project
from holdfast.models._reduction import RANK_TOL
from holdfast.problem import ContactProblem
from holdfast.solution import ContactSolution


def solve_velocity(
    problem: ContactProblem,
    sticking: np.ndarray,
    mu_v: np.ndarray,
    *,
    solver: str = "ppm",
    options: lcp.Options | None = None,
    rank_tol: float = RANK_TOL,
    warm_start: Any = None,
) -> ContactSolution:
    """Velocity after the step.

    Args:
        problem: what is known before.
        sticking: (n,) contacts whose tangents are equality rows.
        mu_v: (n,) viscous coefficients [N s/m]; 0 for contacts without drag.
        solver: "ppm", "qp" or "lemke".
        options: tolerances of the solver.
        rank_tol: of Find-Indices.
        warm_start: rows of [N; U] expected to be loaded.
    """
    p = problem
    drag = drag_matrix(p, mu_v)
    M, v_free = p.M, p.free_velocity
    if mu_v.any():
        M = p.inertia + p.step * drag
        v_free = InertiaFactor(M[None]).solve(p.impulse)  # unlike LU, the same in any units
    elif solver != "ppm":
        M = p.inertia
    some = not sticking.all()
    rows = Rows(
        J=p.J,
        S=p.S[sticking] if some and len(p.S) else p.S,
        T=p.T[sticking] if some and len(p.T) else p.T,
        R=p.R[sticking[p.R_contact]] if some else p.R,
        c_J=p.c_J,
        A=np.concatenate([p.N, p.U]) if len(p.U) else p.N,
        c_A=np.concatenate([p.c_N, p.c_U]) if len(p.U) else p.c_N,
        D=p.D,
        D_bound=p.D_bound,
    )
    with errors_about(problem, rows, sticking):
        answer = project(
            M, v_free, rows, solver=solver, options=options, rank_tol=rank_tol,
            warm_start=warm_start,
        )  # fmt: skip
    return solution_of(problem, answer, "velocity", sticking, drag, drag_forces(p, mu_v, answer))


@contextmanager
def errors_about(problem: ContactProblem, rows: Rows, sticking: np.ndarray) -> Iterator[None]:
    """Make errors of the solver speak of contacts, and carry the contact problem."""
    try:
        yield
    except InfeasibleError as error:
        J, S, T, R, A, _ = by_part(error.certificate, rows)
        held = {"S": sticking, "T": sticking, "R": sticking[problem.R_contact]}
        weights = {"J": J}
        for (name, which), part in zip(held.items(), (S, T, R), strict=True):
            weights[name] = np.zeros(len(getattr(problem, name)))
            if len(part):
                weights[name][which] = part
        raise InfeasibleError(
            _contradiction(problem, A, weights), status=error.status, problem=problem,
            certificate=A, equality_weights=weights,
        ) from error  # fmt: skip
    except SolveError as error:
        error.problem = problem
        raise


def _contradiction(problem: ContactProblem, A: np.ndarray, weights: dict[str, np.ndarray]) -> str:
    """Which rows contradict each other, in words."""
    held = [np.flatnonzero(weights["S"]), np.flatnonzero(weights["T"])]
    held.append(problem.R_contact[weights["R"] != 0.0])
    contacts, joints, tangents = (
        which.tolist() for which in (np.flatnonzero(A), np.flatnonzero(weights["J"]),
                                     np.unique(np.concatenate(held)))
    )  # fmt: skip
    text = f"infeasible: no motion satisfies contacts {contacts}"
    text += f", bilateral rows J {joints}" if joints else ""
    text += f", no slip at contacts {tangents}" if tangents else ""
    text += f" at once (numbers from {problem.n} on are rows of U); see .certificate, their weights"
    return text + (", and .equality_weights" if joints or tangents else "")


def drag_matrix(problem: ContactProblem, mu_v: np.ndarray) -> np.ndarray:
    """``S' mu S + T' mu T``."""
    drag = np.zeros((problem.m, problem.m))
    if mu_v.any():
        for rows in (problem.S, problem.T):
            if len(rows):
                drag += rows.T @ (mu_v[:, None] * rows)
    return drag


def drag_forces(problem: ContactProblem, mu_v: np.ndarray, answer: Projection) -> np.ndarray:
    """(n, 2) impulses of implicit viscous drag, ``-h mu S v+`` and ``-h mu T v+``."""
    forces = np.zeros((problem.n, 2))
    if mu_v.any():
        for k, rows in enumerate((problem.S, problem.T)):
            if len(rows):
                forces[:, k] = -problem.step * mu_v * (rows @ answer.motion)
    return forces


def solution_of(
    problem: ContactProblem,
    answer: Projection,
    level: Any,
    sticking: np.ndarray,
    drag: np.ndarray,
    tangent: np.ndarray,
) -> ContactSolution:
    """The projection's forces, put back in their places; `tangent` holds the viscous ones."""
    n = problem.n
    extra = np.zeros(len(problem.R))
    extra[sticking[problem.R_contact]] = answer.f_R
    for k, forces in enumerate((answer.f_S, answer.f_T)):
        if len(forces):
            tangent[sticking, k] += forces
    return ContactSolution(
        problem=problem,
        level=level,
        motion=answer.motion,
        normal=answer.f_A[:n],
        tangent=tangent,
        bilateral=answer.f_J,
        extra=extra,
        unilateral=answer.f_A[n:],
        dry=answer.f_D,
        sticking=sticking,
        pivots=answer.pivots,
        loaded=answer.loaded,
        active=answer.active,
        drag=drag,
        bilateral_rows=answer.indices.J_rows,
        rank=answer.rank,
        rank_gap=answer.indices.gap,
        rank_ambiguous=answer.indices.ambiguous,
    )
