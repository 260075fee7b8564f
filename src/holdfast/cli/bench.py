"""``holdfast bench``: steps, rollouts and contact solves timed against other software."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from holdfast.cli._common import exit_code, plain, progress_bar, say, say_place, text
from holdfast.cli._interrupt import note_saved, saving

SceneName = Literal["grasp", "quadruped", "pile of 20"]
TITLES = {
    "step": "One step from Python",
    "rollout": "One step of a rollout",
    "solve": "One contact solve, cold start",
}
LEGEND = (
    "Ratios are relative to holdfast: 3 means three times as long. Median and quartiles over "
    "interleaved rounds, one BLAS thread each. MuJoCo's contacts are soft and Drake has one "
    "contact point per pair, so they solve different problems. Solves of holdfast are timed as "
    "calls from Python; the other solvers start from the Delassus matrix."
)


@dataclass(frozen=True)
class Bench:
    """Time steps, rollouts and contact solves against MuJoCo, as ratios with quartiles.

    Drake, Pinocchio and Siconos are included if they are installed. Measurements are interleaved,
    with one BLAS thread each; a warning is printed if the machine is busy.
    """

    scenes: tuple[SceneName, ...] = ("grasp", "quadruped", "pile of 20")
    """Scenes to measure."""
    parts: tuple[Literal["step", "rollout", "solve"], ...] = ("step", "rollout", "solve")
    """What to measure."""
    seconds: float = 5.0
    """Approximate time to spend on each part of each scene [s]."""
    quick: bool = False
    """Spend half a second on each part, and skip the pile."""
    out: Path | None = None
    """Also write the results to this file, as JSON."""
    force: bool = False
    """Overwrite the file if it exists."""
    format: Literal["human", "json"] = "human"
    """Output format of the results."""

    @exit_code
    def run(self) -> int:
        """Measure and print; return the exit code."""
        from holdfast.errors import InputError
        from holdfast.experiments import provenance
        from holdfast.tools import files
        from holdfast.tools.bench.run import run

        if not self.scenes or not self.parts or not 0 < self.seconds < 1e5:
            raise InputError("bench", "needs a scene, a part, and a positive number of seconds")
        out = None if self.out is None else files.check_output(self.out, force=self.force)
        scenes = [each for each in self.scenes if not (self.quick and each.startswith("pile"))]
        seconds = min(0.5, self.seconds) if self.quick else self.seconds
        with progress_bar("bench", quiet=self.format == "json") as progress:
            found = run(scenes or self.scenes, self.parts, seconds, progress)
        result = {
            "machine": provenance.machine(),
            "versions": provenance.versions((*provenance.RUNS, *PEERS)),
            "cores": found.cores, "core_share": found.core_share,
            "parallel_speedup": found.parallel_speedup, "load": found.load,
            "warnings": found.warnings,
            "tables": [
                {"part": each.part, "scene": each.scene, "contacts": each.contacts,
                 "rows": each.rows(), "notes": each.notes}
                for each in found.sections
            ],
        }  # fmt: skip
        told = json.dumps(result, indent=1)
        if out is not None:
            content = (told + "\n").encode()
            with saving():
                place = files.write_somewhere(
                    out, lambda stream: stream.write(content), force=self.force
                )
                note_saved(f"the results are saved in {plain(place)}")
            say_place(out, place)
        if self.format == "json":
            print(told)
        else:
            _print(result)
        for warning in found.warnings:
            say(warning)
        return 0


PEERS = ("drake", "pin", "threadpoolctl")


def _print(result: dict[str, Any]) -> None:
    """Tables for people."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    where, versions = result["machine"], result["versions"]
    console.print(f"{where['processor']}, {result['cores']} cores; " + ", ".join(
        f"{name} {number}" for name, number in versions.items() if number != "not installed"
    ), style="dim")  # fmt: skip
    for section in result["tables"]:
        notes = "; ".join(section["notes"])
        if section["rows"]:
            title = f"{TITLES[section['part']]}: {section['scene']}, {section['contacts']} contacts"
            table = Table(title=title, caption=text(notes, "table.caption") if notes else None)
            table.add_column("")
            for heading in ("µs", "ratio", "quartiles", "residual"):
                table.add_column(heading, justify="right", no_wrap=True)
            for row in section["rows"]:
                table.add_row(*_cells(row))
            console.print(table)
        elif notes:
            console.print(text(f"{section['scene']}: {notes}", "dim"))
    console.print(LEGEND, style="dim")


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    ratio = row["ratio"]
    residual = "" if row["residual"] is None else f"{row['residual']:.0e}"
    return (row["who"], _digits(1e6 * row["seconds"]["median"]), _digits(ratio["median"]),
            f"{_digits(ratio['low'])} – {_digits(ratio['high'])}", residual)  # fmt: skip


def _digits(x: float) -> str:
    """Three digits, without an exponent."""
    return f"{x:.0f}" if x >= 100 else f"{x:.3g}"
