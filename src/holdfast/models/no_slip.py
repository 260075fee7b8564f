"""Contact without slip: the paper's velocity-level model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from holdfast import lcp
from holdfast.contact.arrays import LawKind
from holdfast.contact.options import Options
from holdfast.contact.problem import ContactProblem
from holdfast.contact.solution import ContactSolution
from holdfast.errors import InfeasibleError
from holdfast.lcp.checks import check_choice
from holdfast.lcp.find_indices import RANK_TOL, check_rank_tol
from holdfast.lcp.status import Status
from holdfast.models._choices import check_problem, check_solver, lcp_options
from holdfast.models._grip import grip_loaded
from holdfast.models._newton import solve_newton
from holdfast.models._velocity import solve_velocity
from holdfast.models.base import ContactModel

SLIDES = 1e-6  # part of the speed of its body at which a contact slides that should be held


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
            Forces are then distributed as by `ContactSolution.spread`.
        solver: "newton", the contact solver that all laws share (``grip="all"`` is always solved by
            pivoting), or one of `holdfast.lcp`: "ppm" (Algorithm 1 with fixes), "qp" (daqp) or
            "lemke". The latter two solve a dense LCP; where that loses the digits needed for the
            certificate, "ppm" continues from their loaded set.
        rank_tol: rank tolerance of Algorithm 2 (Find-Indices).
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
        check_rank_tol(self.rank_tol)

    def solve(self, problem: ContactProblem, warm_start: Any = None) -> ContactSolution:
        """Solve one problem; see `ContactModel.solve`."""
        check_problem(problem)
        everywhere = problem.stack.everywhere
        if self.grip == "all":
            solution = self._hold(problem, warm_start, everywhere)
        elif self.solver == "newton":
            law = np.full(problem.n, int(LawKind.NO_SLIP))
            solution = solve_newton(problem, law, None, None, self.options, warm_start)
        else:
            hold = partial(self._hold, problem, warm_start)
            solution = grip_loaded(problem, hold, everywhere)
        _check_held(problem, solution)
        return solution

    def _hold(
        self, problem: ContactProblem, warm_start: Any, sticking: np.ndarray
    ) -> ContactSolution:
        """The solution in which these contacts stick, wherever they are pressed."""
        solver = "ppm" if self.solver == "newton" else self.solver
        options = lcp_options(self.options)
        return solve_velocity(problem, sticking, None, solver, options, self.rank_tol, warm_start)


def _check_held(problem: ContactProblem, solution: ContactSolution) -> None:
    """Refuse an answer in which a contact that is held slides, because joints drive it.

    Tangents that depend on rows of J cannot be held where these have other targets. Then the
    residual r of ``(J, S, T) v = (c_J, 0, 0)`` proves it: it cancels the rows and not the targets.

    Raises:
        InfeasibleError: joints and held contacts contradict each other; carries the proof.
    """
    held = np.flatnonzero(solution.sticking & (solution.normal > 0.0))
    if not held.size or not len(problem.J) or not np.any(problem.c_J):
        return
    S, T = (each if len(each) else np.zeros_like(problem.N) for each in (problem.S, problem.T))
    sides = np.vstack([S[held], T[held]])
    scale = np.abs(sides) @ np.abs(solution.velocity)
    if not (np.abs(sides @ solution.velocity) > SLIDES * scale).any():
        return
    rows = np.vstack([problem.J, sides])
    target = np.concatenate([problem.c_J, np.zeros(len(sides))])
    length = np.linalg.norm(rows, axis=1)
    length[length == 0.0] = 1.0
    v = np.linalg.lstsq(rows / length[:, None], target / length, rcond=None)[0]
    left = target / length - rows / length[:, None] @ v
    if not np.linalg.norm(left) > SLIDES * np.linalg.norm(target / length):
        return
    weight = left / length
    j, k = len(problem.J), len(held)
    weights = {name: np.zeros(len(getattr(problem, name))) for name in ("J", "S", "T", "R")}
    weights["J"] = weight[:j]
    for name, part in (("S", weight[j : j + k]), ("T", weight[j + k :])):
        if len(weights[name]):
            weights[name][held] = part
    raise InfeasibleError(
        f"infeasible: joints drive contacts {', '.join(map(str, held[:8]))} sideways, which are "
        "pressed and must not slip; see .equality_weights",
        status=Status.INFEASIBLE, problem=problem,
        certificate=np.zeros(problem.n + len(problem.U)), equality_weights=weights,
    )  # fmt: skip
