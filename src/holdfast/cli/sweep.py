"""``holdfast sweep``: a plan of many cases, on all cores or a cluster."""

from __future__ import annotations

import json
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from holdfast.cli._common import exit_code
from holdfast.cli._interrupt import INTERRUPTED


@contextmanager
def _said_when_interrupted(text: str) -> Iterator[None]:
    """Print a text at once when Ctrl-C comes: workers may take a while to end."""
    before: Any = signal.getsignal(signal.SIGINT)

    def interrupted(number: int, frame: Any) -> None:
        signal.signal(signal.SIGINT, before)
        print(text, file=sys.stderr, flush=True)
        before(number, frame)

    if not callable(before):  # ignored, as in the background of some shells
        yield
        return
    signal.signal(signal.SIGINT, interrupted)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@dataclass(frozen=True)
class Sweep:
    """Run the cases of a plan and write one table, Parquet or CSV, with a row for each.

    A plan is a TOML file that names a scene or a Python function, and cases from a grid, random
    draws or a CSV file. Every finished case is kept at once, in a journal beside the table. Killed
    or stopped by Ctrl-C, the same command goes on with what is missing.
    """

    plan: Annotated[Path, tyro.conf.Positional]
    """TOML file."""
    out: Path | None = None
    """Table to write, .parquet or .csv, instead of the one that the plan names."""
    workers: int | None = None
    """Cases at the same time; all cores by default, or all workers of a cluster."""
    backend: Literal["processes", "threads", "dask", "ray"] = "processes"
    """Where cases run."""
    scheduler: str | None = None
    """Address of a Dask scheduler, tcp://…, or of a Ray cluster; one is started here otherwise."""
    retry_failed: bool = False
    """Run cases again that failed."""
    fresh: bool = False
    """Discard the results of an earlier sweep."""
    dry_run: bool = False
    """Only print how many cases there are, and the first of them."""
    format: Literal["human", "json"] = "human"
    """How to print the summary."""

    @exit_code
    def run(self) -> int:
        """Run the missing cases, write the table; return the exit code.

        It is 0 if there is a table, 1 if all its cases failed, 130 if interrupted.
        """
        from holdfast.tools.sweep import sweep
        from holdfast.tools.sweep.plan import load_plan
        from holdfast.tools.sweep.run import journal_of

        plan = load_plan(self.plan)
        out = self.out or plan.out
        if self.dry_run:
            return self._show(plan)
        begin = time.monotonic()
        advice = (f"holdfast: interrupted; finished cases are kept in {journal_of(out)}; the same "
                  "command goes on")  # fmt: skip
        try:
            with _said_when_interrupted(advice):
                table = sweep(
                    plan.task, plan.cases, out, workers=self.workers, backend=self.backend,
                    scheduler=self.scheduler, seed=plan.seed, retry_failed=self.retry_failed,
                    fresh=self.fresh, progress=self.format == "human",
                )  # fmt: skip
        except KeyboardInterrupt:
            return INTERRUPTED
        self._print(table, time.monotonic() - begin)
        return 1 if len(table.failed) == len(table) else 0

    def _show(self, plan: Any) -> int:
        from holdfast.tools.sweep.cases import with_seeds

        cases = with_seeds(plan.cases, plan.seed)
        if self.format == "json":
            print(json.dumps({"cases": len(cases), "first": cases[:3]}, indent=1))
        else:
            print(f"{len(cases)} cases; the first:")
            for case in cases[:3]:
                print("  " + ", ".join(f"{name} = {value}" for name, value in case.items()))
        return 0

    def _print(self, table: Any, seconds: float) -> None:
        errors = Counter(str(row["error"]) for row in table.failed)
        if self.format == "json":
            print(json.dumps({
                "table": str(table.path), "cases": len(table), "failed": len(table.failed),
                "errors": dict(errors.most_common(10)), "seconds": round(seconds, 3),
            }, indent=1))  # fmt: skip
            return
        print(f"{table.path}: {len(table)} cases, {len(table.failed)} failed, {seconds:.1f} s")
        for error, count in errors.most_common(3):
            print(f"  {count} × {error}")
