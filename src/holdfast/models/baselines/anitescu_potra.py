"""The time-stepping model of Anitescu and Potra."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from holdfast.contact.problem import ContactProblem
from holdfast.errors import InputError
from holdfast.models._choices import check_problem
from holdfast.models.baselines._coulomb import CoulombSolution
from holdfast.models.baselines._pyramid import PyramidLCP
from holdfast.models.baselines._time_stepping import TimeStepping

ROUNDING = 1e-9  # targets below this part of the speed that the motion can have along a row


@dataclass(frozen=True)
class AnitescuPotra(TimeStepping):
    r"""Coulomb friction with a friction pyramid, contacts at velocity level only.

    The equations are those of `StewartTrinkle` with one difference, the normal condition

    .. math:: 0 \le f_n \perp N v^+ \ge 0

    It ignores gaps: every listed contact is assumed to touch (Anitescu and Potra 1997). So
    the LCP is that of Stewart and Trinkle with all targets zero. Its matrix is copositive, and it
    has a solution whatever M, N, S, T, mu, v and f are, which Lemke's method finds.

    Targets c_N and c_U are therefore refused, not ignored: list only contacts that touch, or use
    `StewartTrinkle`. Gaps of rounding errors are accepted: those that the motion closes within
    1e-9 of the step. Bilateral targets c_J are allowed; if they are not zero, a solution is no
    longer guaranteed.

    Attributes:
        mu: see `StewartTrinkle`, like all others.
        directions: number of directions of the pyramid.
        solver: "lemke".
        regularization: Tikhonov schedule after a failure.
        tolerance: "tight" or "paper".
        options: further tolerances of the solver.
    """

    def advance(self, problem: ContactProblem, warm_start: Any = None) -> CoulombSolution:
        """Solve one step; see `ContactModel.advance`. Listed contacts are assumed to touch.

        A simulator lists contacts whose gap the motion would close within the step: here a body
        stops as soon as it is listed, above the ground by less than one step of its motion.
        """
        check_problem(problem)
        touching = replace(problem, c_N=None, c_U=None)
        return replace(self.solve(touching, warm_start), problem=problem)

    def build(self, problem: ContactProblem) -> PyramidLCP:
        """The complementarity problem, to look at or to hand to another solver."""
        check_problem(problem)
        scale = max(problem.factor.size(v) for v in (problem.v, problem.free_velocity))
        for name, rows in (("c_N", "contact"), ("c_U", "unilateral row")):
            target = getattr(problem, name)
            reach = problem.lengths[name[-1]] * scale  # the fastest that the motion can move a row
            bad = np.flatnonzero(np.abs(target) > ROUNDING * reach)
            if bad.size:
                raise InputError(
                    name, f"is {target[bad[0]]:.6g} at [{bad[0]}], but AnitescuPotra knows only "
                    f"{rows}s that touch, with target 0; leave out those that do not, or use "
                    "StewartTrinkle"
                )  # fmt: skip
        return super().build(problem)
