"""Warm start against cold: the same contacts, the motion perturbed by one per cent."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from families import Case, Family
from problem import Array
from timing import Effort, round_robin

PERTURBATION = 0.01
SMALLEST = 30
"""Fewest contacts of a case worth a warm start."""


@dataclass(frozen=True)
class WarmEntry:
    """One case, solved cold and from the loaded set of the unperturbed problem.

    Attributes:
        family: the family's name.
        m: generalized coordinates.
        n: contacts.
        cold: seconds of a cold solve.
        warm: seconds of a warm one.
        cold_pivots: pivots of the cold solve.
        warm_pivots: pivots of the warm one.
    """

    family: str
    m: int
    n: int
    cold: float
    warm: float
    cold_pivots: int
    warm_pivots: int

    @property
    def ratio(self) -> float:
        """Warm over cold."""
        return self.warm / self.cold


def measure(families: list[Family], quick: bool, effort: Effort) -> list[WarmEntry]:
    """Measure the cases of the families that are large enough."""
    cases = [case for family in families for case in family.cases()]
    chosen = [case for case in cases if case.contacts >= SMALLEST and (case.quick or not quick)]
    return [measure_case(case, effort) for case in chosen]


def measure_case(case: Case, effort: Effort) -> WarmEntry:
    """Measure one case."""
    from holdfast.lcp import solve_factored

    before = case.generate()
    after = before.with_motion(perturbed(before.v, case.seed))
    rows, M, v, b = after.rows, after.M, after.v, after.b
    loaded = solve_factored(before.rows, before.M, before.v, before.b).loaded
    calls = {
        "cold": lambda: solve_factored(rows, M, v, b),
        "warm": lambda: solve_factored(rows, M, v, b, warm_start=loaded),
    }
    timings = round_robin(calls, effort)
    pivots = {name: int(call().pivots) for name, call in calls.items()}
    return WarmEntry(
        case.family,
        after.m,
        after.n,
        timings["cold"].median,
        timings["warm"].median,
        pivots["cold"],
        pivots["warm"],
    )


def perturbed(v: Array, seed: int) -> Array:
    """A motion changed at random by `PERTURBATION` of its root mean square."""
    rng = np.random.default_rng([seed, len(v)])
    size = np.sqrt(np.mean(np.square(v)))
    return v + PERTURBATION * size * rng.normal(size=len(v))
