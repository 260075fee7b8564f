"""Contact at velocity level: stick, viscous drag and frictionless contacts in one solve.

With ``C = S' mu S + T' mu T`` over the viscous contacts, implicit drag makes the step

    (M + h C) v+ = M v + h f + N' f_n + J' f_J + (tangents of the contacts that stick)

which is the projection of `holdfast.models._projection` in the metric M + h C. It stays positive
definite and is stable for any h, where explicit drag needs h mu / mass < 2.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast import lcp
from holdfast.contact.problem import ContactProblem
from holdfast.contact.solution import ContactSolution
from holdfast.lcp.find_indices import RANK_TOL
from holdfast.lcp.inertia import InertiaFactor
from holdfast.lcp.options import DEFAULT
from holdfast.models._projection import check_held, project


def solve_velocity(
    problem: ContactProblem,
    sticking: np.ndarray,
    mu_v: np.ndarray | None = None,
    solver: str = "ppm",
    options: lcp.Options | None = None,
    rank_tol: float = RANK_TOL,
    warm_start: Any = None,
) -> ContactSolution:
    """Velocity after the step.

    Args:
        problem: what is known before.
        sticking: (n,) contacts whose tangents are equality rows.
        mu_v: (n,) viscous coefficients [N s/m], 0 for contacts without drag; None for none at all.
        solver: "ppm", "qp" or "lemke".
        options: tolerances of the solver.
        rank_tol: of Find-Indices.
        warm_start: rows of [N; U] expected to be loaded.
    """
    zero_row = (options or DEFAULT).zero_row
    if mu_v is None or not mu_v.any():
        arrays = problem.stack.arrays
        found = project(problem, sticking, arrays, solver, options, rank_tol, warm_start)
        check_held(found)
        return ContactSolution.of(found, zero_row=zero_row)
    p, step = problem, problem.step
    drag = drag_matrix(p, mu_v)
    M = (p.inertia + step * drag)[None]
    free = InertiaFactor(M).solve(p.impulse)  # unlike LU, the same in any units
    arrays = p.stack.arrays._replace(M=M, v=free, f=free[:0])
    found = project(p, sticking, arrays, solver, options, rank_tol, warm_start)
    check_held(found)
    viscous = drag_forces(p, step * mu_v, found.motion)
    return ContactSolution.of(found._replace(damping=drag, viscous=viscous), zero_row=zero_row)


def drag_matrix(problem: ContactProblem, mu_v: np.ndarray) -> np.ndarray:
    """``S' mu S + T' mu T``."""
    drag = np.zeros((problem.m, problem.m))
    if mu_v.any():
        for rows in (problem.S, problem.T):
            if len(rows):
                drag += rows.T @ (mu_v[:, None] * rows)
    return drag


def drag_forces(problem: ContactProblem, mu_v: np.ndarray, motion: np.ndarray) -> np.ndarray:
    """(n, 2) forces of viscous drag, ``-mu S v`` and ``-mu T v``."""
    forces = np.zeros((problem.n, 2))
    for k, rows in enumerate((problem.S, problem.T)):
        if len(rows):
            forces[:, k] = -mu_v * (rows @ motion)
    return forces
