"""The recorded problems of `holdfast.experiments.robustness` as the benchmarks hold problems.

A dense LCP ``w = F z + e`` is given to holdfast and Lemke as it is. QP and least-squares
peers get a factor of F: with ``F = N N'`` it is the projection of the origin onto
``N x + e >= 0``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from accuracy import Yardstick
from holdfast.experiments.robustness import recorded
from holdfast.experiments.robustness.recorded import GROUPS, lcp_residual
from problem import Array, Problem

__all__ = ["GROUPS", "Recorded", "load"]


@dataclass(frozen=True)
class Recorded:
    """A recorded problem.

    Attributes:
        group: which of the four groups.
        name: its name.
        problem: the factored form.
        F: LCP matrix, where the problem was recorded as a dense LCP.
        e: LCP vector, likewise.
    """

    group: str
    name: str
    problem: Problem
    F: Array | None = None
    e: Array | None = None

    def residual(self, x: Array, z: Array) -> float:
        """Largest relative residual of an answer, on the data as they were recorded."""
        if self.F is not None and self.e is not None:
            return lcp_residual(self.F, self.e, z)
        return Yardstick.of(self.problem).residuals(x, z).worst


def load(folder: Path) -> list[Recorded]:
    """All recorded problems of a data folder; groups that are not there are left out."""
    return [
        Recorded(each.group, each.name, Problem(each.M, each.N, each.v, b=each.b), each.F, each.e)
        for each in recorded.load(folder)
    ]
