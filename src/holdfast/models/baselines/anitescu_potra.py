"""The time-stepping model of Anitescu and Potra."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from holdfast.contact.problem import ContactProblem
from holdfast.errors import InputError
from holdfast.models._choices import check_problem
from holdfast.models.baselines._pyramid import PyramidLCP
from holdfast.models.baselines._time_stepping import TimeStepping


@dataclass(frozen=True)
class AnitescuPotra(TimeStepping):
    r"""Coulomb friction with a friction pyramid, contacts at velocity level only.

    The equations are those of `StewartTrinkle` with one difference, the normal condition

    .. math:: 0 \le f_n \perp N v^+ \ge 0

    It says nothing of gaps: every listed contact is taken to touch (Anitescu and Potra 1997). So
    the LCP is that of Stewart and Trinkle with all targets zero. Its matrix is copositive, and it
    has a solution whatever M, N, S, T, mu, v and f are, which Lemke's method finds.

    Targets c_N and c_U are therefore refused, not ignored: list only contacts that touch, or use
    `StewartTrinkle`. Bilateral targets c_J are taken; if they are not zero, the guarantee is gone.

    Attributes:
        mu: see `StewartTrinkle`, like all others.
        directions: of the pyramid.
        solver: "lemke".
        regularization: Tikhonov schedule after a failure.
        tolerance: "tight" or "paper".
        options: further tolerances of the solver.
    """

    def build(self, problem: ContactProblem) -> PyramidLCP:
        """The complementarity problem, to look at or to hand to another solver."""
        check_problem(problem)
        for name, rows in (("c_N", "contact"), ("c_U", "unilateral row")):
            target = getattr(problem, name)
            bad = np.flatnonzero(target)
            if bad.size:
                raise InputError(
                    name, f"is {target[bad[0]]:.6g} at [{bad[0]}], but AnitescuPotra knows only "
                    f"{rows}s that touch, with target 0; leave out those that do not, or use "
                    "StewartTrinkle"
                )  # fmt: skip
        return super().build(problem)
