"""Random contact problems with Coulomb friction: how many holdfast solves, and which it does not.

    python benchmarks/random_problems.py [--count 10000] [--seeds 17 4711] [--out DIR]

Problems come from `tests/contact_generators.py` by seed; `--seeds` runs single ones again. Answers
are judged by `coulomb_residual.py`, whatever the solver says of itself. Every failure is printed
with its seed. Times are of one solve each, from matrices to forces; the first solves compile.
"""

# ruff: noqa: E402  (threads are limited before NumPy loads)

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import holdfast as hf
from contact_generators import FAMILIES, family, generate
from coulomb_residual import CERTIFIED, Impulses, Judge


@dataclass(frozen=True)
class Outcome:
    """What became of one problem.

    Attributes:
        seed: of the problem.
        family: it belongs to.
        n: contacts and limits.
        residual: of the answer; nan where there is none.
        seconds: of the solve.
        silent: whether it fails without having been reported.
        note: what the solver said, where it failed.
    """

    seed: int
    family: str
    n: int
    residual: float
    seconds: float
    silent: bool
    note: str

    @property
    def certified(self) -> bool:
        """Whether the answer obeys the law."""
        return self.residual <= CERTIFIED


def run(seed: int) -> Outcome:
    """Solve and judge one problem."""
    problem, model, note = generate(seed), hf.Coulomb(), ""
    start = time.perf_counter()
    try:
        solution = model.solve(problem)
    except hf.HoldfastError as error:
        solution = getattr(error, "result", None)
        note = f"{type(error).__name__}: {error}"
    seconds = time.perf_counter() - start
    residual = np.nan
    if hasattr(solution, "normal"):
        residual = Judge(problem).residual(Impulses.of(solution))
    silent = not note and not residual <= CERTIFIED
    size = problem.n + len(problem.U)
    return Outcome(seed, family(seed), size, residual, seconds, silent, note)


def warm_up() -> None:
    """Compile kernels."""
    for seed in range(3 * len(FAMILIES)):
        run(seed)


HEADINGS = ("family", "problems", "certified", "silent failures", "largest residual certified",
            "median, µs", "90 %", "slowest")  # fmt: skip


def line(name: str, outcomes: list[Outcome]) -> tuple[str, ...]:
    """One line of the table."""
    good = [o for o in outcomes if o.certified]
    middle, high, most = np.percentile([1e6 * o.seconds for o in outcomes], (50, 90, 100))
    worst = max((o.residual for o in good), default=np.nan)
    silent = sum(o.silent for o in outcomes)
    return (name, str(len(outcomes)), str(len(good)), str(silent), f"{worst:.0e}",
            f"{middle:.0f}", f"{high:.0f}", f"{most:.0f}")  # fmt: skip


def table(outcomes: list[Outcome]) -> str:
    """Markdown, one line per family and one for all."""
    lines = [HEADINGS, ("---", *["---:"] * (len(HEADINGS) - 1))]
    for name in FAMILIES:
        mine = [o for o in outcomes if o.family == name]
        if mine:
            lines.append(line(name, mine))
    lines.append(line("all", outcomes))
    title = "**Random problems with Coulomb friction**"
    return "\n".join([title, "", *("| " + " | ".join(each) + " |" for each in lines)]) + "\n"


def solve_all(seeds: Iterable[int]) -> list[Outcome]:
    """Run problems; print each failure."""
    outcomes = []
    for seed in seeds:
        outcome = run(seed)
        outcomes.append(outcome)
        if not outcome.certified:
            said = outcome.note or "said nothing"
            print(f"seed {seed} ({outcome.family}, {outcome.n} contacts and limits): "
                  f"{outcome.residual:.1e}, {said[:160]}", flush=True)  # fmt: skip
    return outcomes


def main() -> None:
    """Run, print failures and a table, write both."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--seeds", type=int, nargs="*", help="only these")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    given = parser.parse_args()
    if not hasattr(hf, "Coulomb"):
        print("left out: this holdfast has no Coulomb")
        return
    warm_up()
    outcomes = solve_all(given.seeds or range(given.first, given.first + given.count))
    text = table(outcomes)
    print(text)
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "random_problems.md").write_text(text)
    failures = [asdict(o) for o in outcomes if not o.certified]
    slowest = sorted(outcomes, key=lambda o: -o.seconds)[:20]
    print("slowest seeds:", ", ".join(f"{o.seed} ({1e3 * o.seconds:.3g} ms)" for o in slowest[:8]))
    slow = [asdict(o) for o in slowest]
    numbers = {"problems": len(outcomes), "failures": failures, "slowest": slow}
    (given.out / "random_problems.json").write_text(json.dumps(numbers, indent=1))


if __name__ == "__main__":
    main()
