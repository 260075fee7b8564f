"""Steps of models at acceleration level: ``v+ = v + h a``."""

from __future__ import annotations

from dataclasses import replace

from holdfast.contact.problem import ContactProblem
from holdfast.contact.solution import ContactSolution


def with_rates(problem: ContactProblem) -> ContactProblem:
    """The problem whose accelerations lead to the targets of the velocity level in one step."""
    p, h = problem, problem.step
    return replace(
        p, Ndot_v=(p.N @ p.v - p.c_N) / h, Udot_v=(p.U @ p.v - p.c_U) / h,
        Jdot_v=(p.J @ p.v - p.c_J) / h,
    )  # fmt: skip


def integrated(solution: ContactSolution, problem: ContactProblem) -> ContactSolution:
    """The same motion and forces as velocity and impulses after a step of the problem."""
    s, h = solution, problem.step
    return replace(
        s, problem=problem, level="velocity", motion=problem.v + h * s.motion, normal=h * s.normal,
        tangent=h * s.tangent, bilateral=h * s.bilateral, extra=h * s.extra,
        unilateral=h * s.unilateral, dry=h * s.dry,
    )  # fmt: skip
