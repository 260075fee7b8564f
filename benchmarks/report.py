"""Tables of the results, once for the terminal and once as Markdown for the documentation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import rich.table
from rich.console import Console

import linearity
import robustness
from speed import CaseSummary, Entry, geometric_mean
from warm import WarmEntry


@dataclass(frozen=True)
class Table:
    """A titled table of strings.

    Attributes:
        name: stem of its file.
        title: what it shows.
        columns: headings; the first column is a label, the others are numbers.
        rows: cells.
        notes: sentences below it.
    """

    name: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = field(default_factory=tuple)

    def print(self, console: Console) -> None:
        """Print to the terminal."""
        table = rich.table.Table(title=self.title)
        for number, column in enumerate(self.columns):
            table.add_column(column, justify="left" if number == 0 else "right")
        for row in self.rows:
            table.add_row(*row)
        console.print(table)
        for note in self.notes:
            console.print(f"  {note}")
        console.print()

    def markdown(self) -> str:
        """The table in Markdown."""
        marks = ["---"] + ["---:"] * (len(self.columns) - 1)
        lines = [_line(self.columns), _line(marks), *map(_line, self.rows)]
        notes = [f"\n{note}" for note in self.notes]
        return "\n".join([f"**{self.title}**\n", *lines, *notes]) + "\n"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def duration(seconds: float) -> str:
    """A time with a readable unit."""
    if not math.isfinite(seconds):
        return "-"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def number(value: float) -> str:
    """A ratio with two digits after the point."""
    return f"{value:.2f}" if math.isfinite(value) else "-"


def cases_table(summaries: Sequence[CaseSummary]) -> Table:
    """Ours against the best peer, case by case."""
    rows = [
        [
            each.family,
            str(each.m),
            str(each.n),
            str(each.loaded),
            duration(each.seconds),
            duration(each.best_seconds),
            each.best,
            number(each.ratio),
            "-" if each.pivots is None else str(each.pivots),
            ", ".join(each.inaccurate) or "-",
        ]
        for each in summaries
    ]
    columns = ["family", "m", "n", "loaded", "holdfast", "best peer", "which", "ratio", "pivots"]
    return Table(
        "speed_cases",
        "Cold solve, holdfast against the fastest accurate peer (ratio below 1: holdfast faster)",
        [*columns, "silently wrong"],
        rows,
    )


def families_table(summaries: Sequence[CaseSummary]) -> Table:
    """Geometric means by family and over the families."""
    names = list(dict.fromkeys(each.family for each in summaries))
    means = {name: _family_means(summaries, name) for name in names}
    rows = [[name, *(number(value) for value in means[name])] for name in names]
    overall = [geometric_mean([means[name][column] for name in names]) for column in (0, 1)]
    worst = max((means[name][0], name) for name in names) if names else (math.nan, "none")
    largest = max((each.ratio for each in summaries), default=math.nan)
    rows.append(["all families", number(overall[0]), number(overall[1]), number(largest)])
    note = f"Worst family: {worst[1]} ({number(worst[0])})."
    columns = ["family", "against best accurate", "against fastest of any accuracy", "worst case"]
    return Table("speed_families", "Ratio of times, geometric means", columns, rows, [note])


def _family_means(summaries: Sequence[CaseSummary], name: str) -> tuple[float, float, float]:
    mine = [each for each in summaries if each.family == name]
    return (
        geometric_mean([each.ratio for each in mine]),
        geometric_mean([each.fastest_ratio for each in mine]),
        max(each.ratio for each in mine),
    )


def solvers_table(entries: Sequence[Entry]) -> Table:
    """Time of every solver on every case; a mark where the answer is wrong."""
    names = list(dict.fromkeys(each.solver for each in entries))
    cells: dict[tuple[str, int, int], dict[str, str]] = {}
    for each in entries:
        cells.setdefault((each.family, each.m, each.n), {})[each.solver] = _solver_cell(each)
    rows = [[family, str(m), str(n), *(row[name] for name in names)]
            for (family, m, n), row in cells.items()]  # fmt: skip
    notes = ["(!) says solved, but a relative residual exceeds 1e-6."]
    return Table("speed_solvers", "Cold solve, all", ["family", "m", "n", *names], rows, notes)


def _solver_cell(entry: Entry) -> str:
    if entry.status != "solved":
        return entry.status
    return duration(entry.seconds) + ("" if entry.accurate else " (!)")


def accuracy_table(entries: Sequence[Entry]) -> Table:
    """Worst residual and distance of every solver over all cases."""
    names = list(dict.fromkeys(each.solver for each in entries))
    rows = []
    for name in names:
        mine = [each for each in entries if each.solver == name]
        solved = [each for each in mine if each.status == "solved"]
        rows.append(
            [
                name,
                str(sum(each.accurate for each in solved)),
                str(sum(not each.accurate for each in solved)),
                str(sum(each.status == "failed" for each in mine)),
                str(sum(each.status == "skipped" for each in mine)),
                f"{max((each.residual for each in solved), default=math.nan):.0e}",
                f"{max((each.distance for each in solved), default=math.nan):.0e}",
            ]
        )
    columns = ["solver", "accurate", "silently wrong", "failed", "skipped"]
    columns += ["worst residual", "worst distance from holdfast"]
    return Table("speed_accuracy", "Accuracy on the families", columns, rows)


def linearity_table(points: Sequence[linearity.Point]) -> Table:
    """Time over n, in seconds and in passes over the rows."""
    rows = [
        [
            each.form,
            str(each.n),
            duration(each.seconds),
            duration(each.pass_seconds),
            number(each.passes),
            duration(each.sum_seconds),
            duration(each.wrap_seconds) if each.wrap_seconds else "-",
            f"{each.pivots:.1f}",
        ]
        for each in points
    ]
    notes = []
    for form in dict.fromkeys(each.form for each in points):
        mine = [each for each in points if each.form == form]
        at = next((each for each in mine if each.n == linearity.PASS_SIZE), None)
        notes.append(
            f"{form}: fitted exponent {linearity.exponent(mine):.3f}, "
            f"steepest between neighbours {linearity.steepest(mine):.3f}"
            + (f"; at n = {at.n}: {at.passes:.1f} passes over the rows." if at else ".")
        )
    columns = ["rows", "n", "solve", "one pass", "passes", "sum", "wrap", "pivots"]
    return Table("linearity", "Cost over the number of contacts, m = 12", columns, rows, notes)


def warm_table(entries: Sequence[WarmEntry]) -> Table:
    """Warm against cold."""
    rows = [
        [
            each.family,
            str(each.m),
            str(each.n),
            duration(each.cold),
            duration(each.warm),
            number(each.ratio),
            str(each.cold_pivots),
            str(each.warm_pivots),
        ]
        for each in entries
    ]
    mean = geometric_mean([each.ratio for each in entries])
    columns = ["family", "m", "n", "cold", "warm", "ratio", "pivots cold", "pivots warm"]
    title = "Warm start on a motion perturbed by 1 %"
    return Table("warm", title, columns, rows, [f"Geometric mean: {number(mean)}."])


def robustness_table(
    verdicts: Sequence[robustness.Verdict], pivots: Sequence[robustness.PivotCount]
) -> Table:
    """How every solver fares on the recorded problems."""
    groups = list(dict.fromkeys(each.group for each in verdicts))
    rows = []
    for solver, count in robustness.counts(verdicts).items():
        totals = [sum(count[group, verdict] for group in groups) for verdict in robustness.VERDICTS]
        by_group = [
            f"{count[group, robustness.ACCURATE_ANSWER]}/"
            f"{sum(count[group, verdict] for verdict in robustness.VERDICTS)}"
            for group in groups
        ]
        rows.append([solver, *map(str, totals), *by_group])
    notes = ["The last columns: accurate answers by group of problems."]
    if pivots:
        most = max(pivots, key=lambda each: each.pivots / each.size)
        notes.append(
            f"holdfast: at most {most.pivots / most.size:.2f} (n + m) pivots ({most.problem})."
        )
    columns = ["solver", *robustness.VERDICTS, *groups]
    return Table("robustness", "Recorded problems", columns, rows, notes)
