"""``holdfast reproduce``: the paper's experiments, as a report with tables and pictures."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from holdfast.cli._common import exit_code, plain, text
from holdfast.cli._interrupt import INTERRUPTED, note_saved, saving, say_interrupted
from holdfast.errors import InputError


@dataclass(frozen=True)
class Reproduce:
    """Run the experiments of the paper and write a report: one HTML page, JSON, CSV, pictures.

    The result of each trial is saved when it is done. After Ctrl-C, the same command with --resume
    continues with the next one.
    """

    what: Annotated[
        Literal["grasp", "locomotion", "scaling", "robustness", "all"], tyro.conf.Positional
    ] = "all"
    """Experiment to run."""
    out: Path = Path("report")
    """Folder of the report: a new folder, or that of an earlier report."""
    quick: bool = False
    """Fewer and shorter trials: about a minute, once kernels are compiled."""
    resume: bool = False
    """Reuse finished trials of an earlier run with the same settings, versions and machine."""
    seed: int = 0
    """Random seed."""
    format: Literal["human", "json"] = "human"
    """Output format of the result: where the files are, and which targets are met."""

    @exit_code
    def run(self) -> int:
        """Run the trials, write the report; return the exit code, 130 if interrupted."""
        from holdfast.experiments import provenance, registry, runner
        from holdfast.experiments.report import writer

        if self.seed < 0:
            raise InputError("seed", f"is {self.seed}; expected a whole number of at least 0")
        experiments = [registry.load(name, seed=self.seed) for name in registry.names_of(self.what)]
        settings = {"quick": self.quick, "seed": self.seed}
        folder = runner.Folder(self.out, provenance.stamp(**settings), self.resume)
        try:
            with runner.bars(quiet=self.format == "json") as progress:
                results = runner.run(experiments, folder, quick=self.quick, progress=progress)
        except KeyboardInterrupt:
            self._note(folder.count())
            say_interrupted()
            return INTERRUPTED
        self._note(folder.count())
        sections = [
            section for each in experiments for section in each.sections(results[each.name])
        ]
        origin = writer.Origin(
            self._command(), provenance.machine(), provenance.versions(), settings,
            folder.seconds(results),
        )  # fmt: skip
        with saving():
            page = writer.write(self.out, sections, origin)
        self._print(page, writer.targets(sections))
        return 0

    def _note(self, count: int) -> None:
        note_saved(f"{count} finished trials are saved in {plain(self.out)}; run the same command "
                   "with --resume to continue")  # fmt: skip

    def _command(self) -> str:
        """This command, without what only says how to get there."""
        words = ["holdfast", "reproduce", self.what, "--out", str(self.out)]
        words += ["--quick"] * self.quick
        words += ["--seed", str(self.seed)] * (self.seed != 0)
        return shlex.join(words)

    def _print(self, page: Path, targets: list[dict[str, Any]]) -> None:
        if self.format == "json":
            json.dump({"page": str(page), "targets": targets}, sys.stdout, indent=1)
            print()
            return
        from rich.console import Console
        from rich.table import Table

        from holdfast.experiments.report.page import shown

        console = Console()
        if targets:
            table = Table(title="Targets")
            for name in ("target", "asked", "measured", "met"):
                table.add_column(name, justify="right" if name == "measured" else "left")
            for row in targets:
                table.add_row(*(text(shown(row[name]).strip("*")) for name in
                                ("target", "asked", "measured", "met")))  # fmt: skip
            console.print(table)
        console.print(text(page), soft_wrap=True)
