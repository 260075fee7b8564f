"""Is the cost linear in the number of contacts, and how many passes over the rows is it?

A tower of two boxes (m = 12) with 10^3 to 10^6 contact points, its rows given dense (n x 12)
and as blocks (two bodies of six coordinates: the same n x 12 numbers). A *pass* is a product
of those n x 12 numbers, as they lie in memory, with a vector, on one thread, into an array
that exists: the least any method must do to look at every contact once. It is measured in
turns with the solves. For comparison: ``sum`` adds all the numbers up, ``wrap`` makes the
`BlockRows` that a solve is given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from families import Case
from problem import Array, Problem
from speed import geometric_mean
from timing import Effort, round_robin

BODIES = 2
SIZES = (1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
QUICK_SIZES = (1000, 10_000, 100_000)
SEEDS = (0, 1, 2)
PASS_SIZE = 100_000
"""Size at which a solve is counted in passes."""


@dataclass(frozen=True)
class Point:
    """Times at one size, geometric means over `SEEDS`.

    Attributes:
        form: "dense" or "blocks".
        n: contacts.
        seconds: a solve.
        pass_seconds: a product of all rows with a vector.
        sum_seconds: the sum of all entries.
        wrap_seconds: making `BlockRows` of the arrays; zero for dense rows.
        pivots: mean number of pivots.
    """

    form: str
    n: int
    seconds: float
    pass_seconds: float
    sum_seconds: float
    wrap_seconds: float
    pivots: float

    @property
    def passes(self) -> float:
        """A solve in passes over the rows."""
        return self.seconds / self.pass_seconds


def measure(sizes: tuple[int, ...], effort: Effort) -> list[Point]:
    """Measure both forms at all sizes."""
    return [measure_point(form, n, effort) for form in ("dense", "blocks") for n in sizes]


def measure_point(form: str, n: int, effort: Effort) -> Point:
    """Measure one form at one size."""
    times, pivots = [], []
    for seed in SEEDS:
        problem = _problem(form, n, seed)
        calls = _calls(problem)
        times.append(round_robin(calls, effort))
        pivots.append(_solve(problem).pivots)
    mean = {name: geometric_mean([each[name].median for each in times]) for name in times[0]}
    seconds = (mean["solve"], mean["pass"], mean["sum"], mean.get("wrap", 0.0))
    return Point(form, n, *seconds, pivots=float(np.mean(pivots)))


def exponent(points: list[Point]) -> float:
    """Slope of time over n, fitted in logarithms."""
    slope, _ = np.polyfit(np.log([p.n for p in points]), np.log([p.seconds for p in points]), 1)
    return float(slope)


def steepest(points: list[Point]) -> float:
    """Largest slope between neighbouring sizes: a fit over all can hide a steep end."""
    log_n = np.log([p.n for p in points])
    log_t = np.log([p.seconds for p in points])
    return float(np.max(np.diff(log_t) / np.diff(log_n), initial=-np.inf))


def _problem(form: str, n: int, seed: int) -> Problem:
    blocks = Case("linearity", "stack", BODIES, n, seed=seed).generate()
    if form == "blocks":
        return blocks
    dense = blocks.dense()
    return Problem(dense.M, dense.N, dense.v)


def _calls(problem: Problem) -> dict[str, Callable[[], object]]:
    rows: Array = problem.values.reshape(problem.n, -1)
    x, out = np.ones(rows.shape[1]), np.empty(problem.n)
    calls: dict[str, Callable[[], object]] = {
        "solve": lambda: _solve(problem),
        "pass": lambda: np.dot(rows, x, out=out),
        "sum": rows.sum,
    }
    if problem.blocks is not None:  # then N is its values and the numbers of their blocks
        which = np.asarray(problem.blocks)
        calls["pass"] = lambda: (np.dot(rows, x, out=out), which.sum())
        calls["wrap"] = problem.wrap
    return calls


def _solve(problem: Problem) -> Any:
    from holdfast.lcp import solve_factored

    return solve_factored(problem.rows, problem.M, problem.v, problem.b)
