"""Time and accuracy of every solver on the problem families."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass

from accuracy import ACCURATE, Yardstick
from families import Case, Family
from isolation import Limits, run_isolated
from peers import OURS, PEERS, Solver
from problem import Array, Problem
from timing import Effort, Timing, round_robin


@dataclass(frozen=True)
class Entry:
    """One solver on one case.

    Attributes:
        family: the family's name.
        m: generalized coordinates.
        n: contacts.
        solver: the solver's name.
        rival: whether it counts for "the best peer".
        status: "solved", "failed" (it said so, or died) or "skipped".
        note: the reason if not solved.
        seconds: median time of a solve.
        quartiles: first and third quartile of that time.
        residual: largest relative residual of its answer.
        distance: relative distance of its motion from ours, energy norm.
        loaded: contacts that carry an impulse.
        pivots: ours only.
    """

    family: str
    m: int
    n: int
    solver: str
    rival: bool
    status: str
    note: str = ""
    seconds: float = math.nan
    quartiles: tuple[float, float] = (math.nan, math.nan)
    residual: float = math.nan
    distance: float = math.nan
    loaded: int = 0
    pivots: int | None = None

    @property
    def accurate(self) -> bool:
        """Solved, and it is true."""
        return self.status == "solved" and self.residual <= ACCURATE


@dataclass(frozen=True)
class Probe:
    """First run of a solver on a problem, judged.

    Attributes:
        seconds: time it took.
        residual: largest relative residual.
        distance: relative distance of its motion from the reference.
        loaded: contacts with an impulse.
    """

    seconds: float
    residual: float
    distance: float
    loaded: int


def measure_family(
    family: Family, quick: bool, effort: Effort, limits: Limits
) -> Iterator[list[Entry]]:
    """Measure the cases of a family, one list of entries per case.

    A peer that exceeds a limit on one case is not tried on larger ones of the family.
    """
    gave_up: dict[str, str] = {}
    for case in family.cases():
        if quick and not case.quick:
            continue
        yield measure_case(case, effort, limits, gave_up)


def measure_case(
    case: Case, effort: Effort, limits: Limits, gave_up: dict[str, str]
) -> list[Entry]:
    """Measure one case: ours, then every peer in a child of its own, then all in turns."""
    problem = case.generate()
    judge = _Judge(problem)
    ours = judge.ours()
    entries = {OURS.name: (OURS, ours)}
    for solver in PEERS:
        entries[solver.name] = (solver, _probe(solver, judge, limits, gave_up))
    solved = {
        name: _bind(solver.solve, problem)
        for name, (solver, outcome) in entries.items()
        if isinstance(outcome, Probe)
    }
    timings = round_robin(solved, effort)
    pivots = judge.pivots
    return [
        _entry(case, problem, solver, outcome, timings.get(name), pivots)
        for name, (solver, outcome) in entries.items()
    ]


def _bind(solve: Callable, problem: Problem) -> Callable[[], object]:
    return lambda: solve(problem)


class _Judge:
    """Runs a solver on a problem and judges its answer against ours."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.yardstick = Yardstick.of(problem)
        self.reference: Array | None = None
        self.pivots: int | None = None

    def ours(self) -> Probe | str:
        """Solve with holdfast, keeping the answer as the reference."""
        from holdfast.lcp import solve_factored

        try:
            result = solve_factored(
                self.problem.rows, self.problem.M, self.problem.v, self.problem.b
            )
        except ArithmeticError as error:
            return f"failed: {error}"
        self.reference = result.motion
        self.pivots = int(result.pivots)
        return self(OURS)

    def __call__(self, solver: Solver) -> Probe:
        """Run a solver once and judge it."""
        start = time.perf_counter()
        x, z = solver.solve(self.problem)
        seconds = time.perf_counter() - start
        far = math.nan if self.reference is None else self.yardstick.distance(self.reference, x)
        residual = self.yardstick.residuals(x, z).worst
        return Probe(seconds, residual, far, int((z > 0).sum()))


def _probe(solver: Solver, judge: _Judge, limits: Limits, gave_up: dict[str, str]) -> Probe | str:
    """Run a peer once under the limits; a string says why there is no answer."""
    reason = gave_up.get(solver.name) or solver.missing()
    reason = reason or solver.too_large(judge.problem, limits.bytes)
    if reason:
        return f"skipped: {reason}"
    judge.problem.dense()
    (outcome,) = run_isolated(judge, [solver], limits)
    if not outcome.failure:
        return outcome.value
    if outcome.failure.startswith(("more than", "crashed", "out of memory")):
        gave_up[solver.name] = f"{outcome.failure} on a smaller case"
    return f"failed: {outcome.failure}"


def _entry(
    case: Case,
    problem: Problem,
    solver: Solver,
    outcome: Probe | str,
    timing: Timing | None,
    pivots: int | None,
) -> Entry:
    base = (case.family, problem.m, problem.n, solver.name, solver.rival)
    if isinstance(outcome, str) or timing is None:
        status, _, note = str(outcome).partition(": ")
        return Entry(*base, status, note)
    return Entry(
        *base,
        "solved",
        seconds=timing.median,
        quartiles=(timing.low, timing.high),
        residual=outcome.residual,
        distance=outcome.distance,
        loaded=outcome.loaded,
        pivots=pivots if solver is OURS else None,
    )


@dataclass(frozen=True)
class CaseSummary:
    """Ours against the best peer on one case.

    Attributes:
        family: the family's name.
        m: generalized coordinates.
        n: contacts.
        seconds: our time.
        best: fastest rival whose answer is accurate.
        best_seconds: its time.
        ratio: our time over its.
        fastest: fastest rival that says solved, accurate or not.
        fastest_ratio: our time over its.
        pivots: ours.
        loaded: contacts with an impulse in our answer.
        inaccurate: rivals that say solved and are not.
    """

    family: str
    m: int
    n: int
    seconds: float
    best: str
    best_seconds: float
    ratio: float
    fastest: str
    fastest_ratio: float
    pivots: int | None
    loaded: int
    inaccurate: tuple[str, ...]


def summarise(entries: Sequence[Entry]) -> CaseSummary:
    """Compare ours with the best peer on one case."""
    ours = next(each for each in entries if each.solver == OURS.name)
    rivals = [each for each in entries if each.rival and each.status == "solved"]
    best = _fastest([each for each in rivals if each.accurate])
    fastest = _fastest(rivals)
    return CaseSummary(
        ours.family,
        ours.m,
        ours.n,
        ours.seconds,
        best.solver if best else "none",
        best.seconds if best else math.nan,
        ours.seconds / best.seconds if best else math.nan,
        fastest.solver if fastest else "none",
        ours.seconds / fastest.seconds if fastest else math.nan,
        ours.pivots,
        ours.loaded,
        tuple(each.solver for each in rivals if not each.accurate),
    )


def _fastest(entries: Sequence[Entry]) -> Entry | None:
    return min(entries, key=lambda each: each.seconds, default=None)


def geometric_mean(ratios: Sequence[float]) -> float:
    """Geometric mean of the numbers among the ratios; not a number if there are none."""
    known = [math.log(ratio) for ratio in ratios if math.isfinite(ratio)]
    return math.exp(sum(known) / len(known)) if known else math.nan


def as_records(entries: Sequence[Entry]) -> list[dict]:
    """Entries as plain dictionaries."""
    return [asdict(entry) for entry in entries]
