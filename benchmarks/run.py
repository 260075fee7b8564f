"""Run the benchmarks: ``python benchmarks/run.py [--quick] [--families ...] [--out DIR]``.

Writes ``results.json``, a Markdown file per table and the plots to the output folder, and
prints the tables. See README.md beside this file for what is measured and how.
"""

# ruff: noqa: E402  (the environment must be set before NumPy is imported)

from __future__ import annotations

import os

# One thread for every BLAS, for us and for the peers alike.
for _variable in ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "VECLIB_MAXIMUM", "NUMBA"):
    os.environ[f"{_variable}_NUM_THREADS"] = "1"

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

import linearity
import plots
import recorded
import report
import robustness
import speed
import warm
from families import FAMILIES, Family
from holdfast.errors import InputError
from holdfast.experiments import provenance
from isolation import Limits
from peers import OURS, PEERS
from timing import FULL, QUICK, Effort

HERE = Path(__file__).resolve().parent
SECTIONS = ("speed", "linearity", "warm", "robustness")
RECORDED = HERE.parent / "tests" / "data"


@dataclass(frozen=True)
class Options:
    """Time holdfast against its peers and check every answer.

    Attributes:
        quick: small cases and few repeats.
        families: problem families to run.
        sections: parts to run.
        out: folder for the results.
        data: folder with the recorded problems, for the robustness part.
        seconds: a peer that takes longer than this on a case is skipped.
        memory: a peer that needs more than this many GB on a case is skipped.
    """

    quick: bool
    families: tuple[str, ...]
    sections: tuple[str, ...]
    out: Path
    data: Path
    seconds: float
    memory: float

    @classmethod
    def parse(cls) -> Options:
        """The options of the command line."""
        known = [family.name for family in FAMILIES]
        shown = argparse.ArgumentDefaultsHelpFormatter
        parser = argparse.ArgumentParser(description="Benchmarks.", formatter_class=shown)
        add = parser.add_argument
        add("--quick", action="store_true", help="small cases and few repeats")
        add("--families", nargs="+", default=known, choices=known, help="families to run")
        add("--sections", nargs="+", default=SECTIONS, choices=SECTIONS, help="parts to run")
        add("--out", type=Path, default=HERE / "results", help="folder for the results")
        add("--data", type=Path, default=RECORDED, help="folder with the recorded problems")
        add("--seconds", type=float, default=20.0, help="time limit of a peer on a case [s]")
        add("--memory", type=float, default=4.0, help="memory limit of a peer on a case [GB]")
        return cls(**vars(parser.parse_args()))

    def effort(self) -> Effort:
        """How long to measure."""
        return QUICK if self.quick else FULL

    def limits(self) -> Limits:
        """What a peer may use."""
        return Limits(self.seconds, self.memory * 1e9)

    def chosen_families(self) -> list[Family]:
        """The families by name."""
        return [family for family in FAMILIES if family.name in self.families]

    def recorded_problems(self) -> list[recorded.Recorded]:
        """The recorded problems.

        Raises:
            SystemExit: there are none in the data folder.
        """
        try:
            return recorded.load(self.data)
        except InputError as error:
            raise SystemExit(str(error)) from error


@dataclass
class Results:
    """What has been measured so far: records for the JSON file, and tables."""

    folder: Path
    console: Console
    records: dict[str, Any] = field(default_factory=dict)

    def add(self, section: str, records: Any, *tables: report.Table) -> None:
        """Keep the records of a section, write everything and print its tables."""
        self.records[section] = records
        text = json.dumps(_without_nan(self.records), indent=1)
        (self.folder / "results.json").write_text(text)
        for table in tables:
            (self.folder / f"{table.name}.md").write_text(table.markdown())
        for table in tables:
            table.print(self.console)


def _without_nan(value: Any) -> Any:
    """JSON has no NaN or infinity: they become null."""
    if isinstance(value, dict):
        return {key: _without_nan(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(each) for each in value]
    if isinstance(value, float) and not (abs(value) < float("inf")):
        return None
    return value


def versions() -> dict[str, str]:
    """Versions of everything that runs."""
    peers = {each.distribution for each in (OURS, *PEERS)}
    return provenance.versions({"numpy", "scipy", "numba", *peers} - {"holdfast"})


def run_speed(options: Options, results: Results) -> None:
    """Time every solver on the families."""
    entries, summaries = [], []
    for family in options.chosen_families():
        measured = speed.measure_family(family, options.quick, options.effort(), options.limits())
        for case in measured:
            entries.extend(case)
            summaries.append(speed.summarise(case))
            results.console.print(_progress(summaries[-1]))
    results.add(
        "speed",
        {"entries": speed.as_records(entries), "summaries": [asdict(each) for each in summaries]},
        report.solvers_table(entries),
        report.accuracy_table(entries),
        report.cases_table(summaries),
        report.families_table(summaries),
    )
    plots.speed_plot(entries, results.folder / "speed.png")
    plots.ratio_plot(summaries, results.folder / "ratios.png")


def _progress(summary: speed.CaseSummary) -> str:
    return (
        f"{summary.family} m {summary.m} n {summary.n}: {report.duration(summary.seconds)}, "
        f"best {summary.best} {report.duration(summary.best_seconds)}"
    )


def run_linearity(options: Options, results: Results) -> None:
    """Time over the number of contacts."""
    sizes = linearity.QUICK_SIZES if options.quick else linearity.SIZES
    points = linearity.measure(sizes, options.effort())
    results.add("linearity", [asdict(each) for each in points], report.linearity_table(points))
    plots.linearity_plot(points, results.folder / "linearity.png")


def run_warm(options: Options, results: Results) -> None:
    """Warm start against cold."""
    entries = warm.measure(options.chosen_families(), options.quick, options.effort())
    results.add("warm", [asdict(each) for each in entries], report.warm_table(entries))


def run_robustness(options: Options, results: Results) -> None:
    """Every solver on the recorded problems."""
    problems = options.recorded_problems()
    for group in recorded.GROUPS:
        if all(each.group != group for each in problems):
            results.console.print(f"no recorded problems of the group {group} in {options.data}")
    verdicts = robustness.measure(problems, options.limits())
    pivots = robustness.count_pivots(problems)
    records = {
        "verdicts": [asdict(each) for each in verdicts],
        "pivots": [asdict(each) for each in pivots],
    }
    results.add("robustness", records, report.robustness_table(verdicts, pivots))


RUNNERS: dict[str, Callable[[Options, Results], None]] = {
    "speed": run_speed,
    "linearity": run_linearity,
    "warm": run_warm,
    "robustness": run_robustness,
}


def main() -> int:
    """Run what the command line asks for."""
    options = Options.parse()
    if "robustness" in options.sections:
        options.recorded_problems()
    options.out.mkdir(parents=True, exist_ok=True)
    results = Results(options.out, Console(width=None if sys.stdout.isatty() else 160))
    for solver in PEERS:
        if reason := solver.missing():
            results.console.print(f"without {solver.name}: {reason}")
    results.records |= {
        "machine": provenance.machine(),
        "versions": versions(),
        "quick": options.quick,
    }
    for section in options.sections:
        RUNNERS[section](options, results)
    results.console.print(f"written to {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
