"""Every solver on every recorded problem: right, honest about failing, or silently wrong."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from accuracy import ACCURATE
from isolation import Limits, run_isolated
from peers import ACCURACY_ONLY, OURS, PEERS, Solver
from recorded import Recorded

ACCURATE_ANSWER = "accurate"
REPORTED = "reported failure"
CRASHED = "crashed or hung"
WRONG = "silently wrong"
VERDICTS = (ACCURATE_ANSWER, REPORTED, CRASHED, WRONG)


@dataclass(frozen=True)
class Verdict:
    """One solver on one recorded problem.

    Attributes:
        solver: the solver's name.
        group: the problem's group.
        problem: its name.
        verdict: one of `VERDICTS`.
        residual: largest relative residual; not a number without an answer.
        note: what the solver said, if it failed.
    """

    solver: str
    group: str
    problem: str
    verdict: str
    residual: float = math.nan
    note: str = ""


@dataclass(frozen=True)
class PivotCount:
    """How many pivots ours took on a recorded problem.

    Attributes:
        problem: its name.
        pivots: how many.
        size: n + m, with m the rank for a dense LCP.
    """

    problem: str
    pivots: int
    size: int


def measure(problems: Sequence[Recorded], limits: Limits) -> list[Verdict]:
    """Judge every solver that is installed on all problems."""
    solvers = [each for each in (OURS, *PEERS, *ACCURACY_ONLY) if each.missing() is None]
    return [verdict for solver in solvers for verdict in judge(solver, problems, limits)]


def judge(solver: Solver, problems: Sequence[Recorded], limits: Limits) -> list[Verdict]:
    """Judge one solver on all problems, in a child process."""

    def residual(recorded: Recorded) -> float:
        return _residual(solver, recorded)

    outcomes = run_isolated(residual, problems, limits)
    return [
        _verdict(solver, recorded, outcome.value, outcome.failure)
        for recorded, outcome in zip(problems, outcomes, strict=True)
    ]


def _residual(solver: Solver, recorded: Recorded) -> float:
    if solver.solve_lcp is not None and recorded.F is not None and recorded.e is not None:
        z = solver.solve_lcp(recorded.F, recorded.e)
        return recorded.residual(z, z)
    return recorded.residual(*solver.solve(recorded.problem))


def _verdict(solver: Solver, recorded: Recorded, residual: float, failure: str) -> Verdict:
    base = (solver.name, recorded.group, recorded.name)
    if failure:
        dead = failure.startswith(("more than", "crashed", "out of memory"))
        return Verdict(*base, CRASHED if dead else REPORTED, note=failure)
    return Verdict(*base, ACCURATE_ANSWER if residual <= ACCURATE else WRONG, residual)


def counts(verdicts: Sequence[Verdict]) -> dict[str, Counter[tuple[str, str]]]:
    """Number of verdicts by solver, then by group and verdict."""
    table: dict[str, Counter[tuple[str, str]]] = {}
    for each in verdicts:
        table.setdefault(each.solver, Counter())[each.group, each.verdict] += 1
    return table


def count_pivots(problems: Sequence[Recorded]) -> list[PivotCount]:
    """Pivots of ours on all recorded problems that it solves."""
    found = []
    for recorded in problems:
        try:
            pivots = _pivots(recorded)
        except ArithmeticError:
            continue
        found.append(PivotCount(recorded.name, pivots, recorded.problem.n + recorded.problem.m))
    return found


def _pivots(recorded: Recorded) -> int:
    from holdfast.lcp import solve, solve_factored

    if recorded.F is not None and recorded.e is not None:
        return int(solve(recorded.F, recorded.e, method="ppm").pivots)
    p = recorded.problem
    return int(solve_factored(p.rows, p.M, p.v, p.b).pivots)
