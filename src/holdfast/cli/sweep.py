"""``holdfast sweep``: a plan of many cases, on all cores or a cluster."""

from __future__ import annotations

import json
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from holdfast.cli._common import check_camera, check_outputs, exit_code, plain, write_outputs
from holdfast.cli._interrupt import INTERRUPTED, note_saved, say_interrupted
from holdfast.errors import InputError


@contextmanager
def _said_when_interrupted() -> Iterator[None]:
    """Say what is saved as soon as Ctrl-C is pressed: workers may take a while to end."""
    before: Any = signal.getsignal(signal.SIGINT)

    def interrupted(number: int, frame: Any) -> None:
        signal.signal(signal.SIGINT, before)
        say_interrupted()
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
    """Run the cases of a plan and write one table, Parquet or CSV, with a row for each case.

    A plan is a TOML file that names a scene or a Python function, and cases from a grid, random
    samples or a CSV file. Every finished case is saved at once, in a journal next to the table.
    After a crash or Ctrl-C, the same command continues with the missing cases.

    With --video or --picture, two cases (or those given by --case) are simulated once more and
    drawn with their contact forces.
    """

    plan: Annotated[Path, tyro.conf.Positional]
    """TOML file."""
    out: Path | None = None
    """Table to write, .parquet or .csv; by default the one that the plan names."""
    workers: int | None = None
    """Number of cases to run at once; by default one per core, or per worker of the cluster."""
    backend: Literal["processes", "threads", "dask", "ray"] = "processes"
    """Where cases run."""
    scheduler: str | None = None
    """Address of a Dask scheduler (tcp://…) or a Ray cluster; by default a local one is started."""
    retry_failed: bool = False
    """Run failed cases again."""
    fresh: bool = False
    """Discard the results of an earlier sweep, or a file that has the name of the table."""
    dry_run: bool = False
    """Print the number of cases and the first three, without running them."""
    video: Path | None = None
    """Video to write, .mp4 or .gif: the lowest and the highest case (--by) side by side."""
    picture: Path | None = None
    """Picture of the end of both runs to write, .png."""
    by: str | None = None
    """Column whose lowest and highest value select the cases; required_friction by default."""
    case: tuple[int, ...] = ()
    """Draw these cases instead, by their row in the table, counted from 0."""
    camera: str | None = None
    """Camera of the model to draw with; by default one that shows everything that moves."""
    force: bool = False
    """Overwrite the video and the picture if they exist."""
    format: Literal["human", "json"] = "human"
    """Output format of the summary."""

    @exit_code
    def run(self) -> int:
        """Run the missing cases, write the table and what is to be drawn; return the exit code.

        It is 0 if there is a table, 1 if all its cases failed, 130 if interrupted.
        """
        from holdfast.batch.sweep import sweep
        from holdfast.batch.sweep.cases import with_seeds
        from holdfast.batch.sweep.run import journal_of
        from holdfast.batch.sweep.table import place_of
        from holdfast.tools.sweep.plan import load_plan

        plan = load_plan(self.plan)
        out = place_of(self.out or plan.out)
        cases = with_seeds(plan.cases, plan.seed)
        if self.dry_run:
            return self._show(cases)
        video, picture = self._outputs(plan, out)
        begin = time.monotonic()
        note_saved(f"finished cases are saved in {plain(journal_of(out))}; run the same command "
                   "again to continue")  # fmt: skip
        try:
            with _said_when_interrupted():
                table = sweep(
                    plan.task, cases, out, workers=self.workers, backend=self.backend,
                    scheduler=self.scheduler, seed=plan.seed, retry_failed=self.retry_failed,
                    fresh=self.fresh, progress=self.format == "human",
                )  # fmt: skip
        except KeyboardInterrupt:
            say_interrupted()
            return INTERRUPTED
        note_saved(f"{plain(table.path)} is complete; nothing was drawn")
        self._print(table, time.monotonic() - begin)
        if len(table.failed) == len(table) and not self.case:
            return 1
        self._draw(plan.task, cases, table, video, picture)
        return 1 if len(table.failed) == len(table) else 0

    def _outputs(self, plan: Any, out: Path) -> tuple[Path | None, Path | None]:
        """Where to write video and picture; what cannot be drawn is refused before the sweep."""
        if self.video is None and self.picture is None:
            for name in ("by", "case", "camera"):
                if getattr(self, name):
                    raise InputError(name, "is for drawing; add --video or --picture")
            return None, None
        from holdfast.tools.sweep.film import check_numbers, check_watchable
        from holdfast.tools.sweep.scene_task import SceneTask

        check_watchable(plan.task)
        check_numbers(self.case, len(plan.cases))
        if self.by and self.case:
            raise InputError("by", "and --case both select the cases to draw; give one of them")
        if self.camera and isinstance(plan.task, SceneTask):
            check_camera(plan.task.check(plan.cases[0]), self.camera)
        return check_outputs(self.video, self.picture, force=self.force, others=(out,))

    def _draw(
        self, task: Any, cases: list[Any], table: Any, video: Path | None, picture: Path | None
    ) -> None:
        if video is None and picture is None:
            return
        from holdfast.tools.sweep.film import Chosen, film_case, lowest_and_highest

        chosen = [Chosen(number) for number in self.case]
        chosen = chosen or lowest_and_highest(table, self.by)
        films = [film_case(task, cases[i.number], table.rows[i.number], i) for i in chosen]
        for film in films:
            check_camera(film.model, self.camera)
        quiet = self.format == "json"
        write_outputs(films, video, picture, force=self.force, camera=self.camera or "",
                      quiet=quiet)  # fmt: skip
        if not quiet:
            numbers = " and ".join(str(each.number) for each in chosen)
            files = ", ".join(str(path) for path in (self.video, self.picture) if path)
            print(f"{plain(files)}: case{'s' if len(chosen) > 1 else ''} {numbers}")

    def _show(self, cases: list[Any]) -> int:
        if self.format == "json":
            print(json.dumps({"cases": len(cases), "first": cases[:3]}, indent=1))
        else:
            print(f"{len(cases)} cases; the first:")
            for case in cases[:3]:
                print("  " + plain(", ".join(f"{name} = {case[name]}" for name in case)))
        return 0

    def _print(self, table: Any, seconds: float) -> None:
        errors = Counter(str(row["error"]) for row in table.failed)
        if self.format == "json":
            print(json.dumps({
                "table": str(table.path), "cases": len(table), "failed": len(table.failed),
                "errors": dict(errors.most_common(10)), "seconds": round(seconds, 3),
            }, indent=1))  # fmt: skip
            return
        done = f"{len(table)} cases, {len(table.failed)} failed, {seconds:.1f} s"
        print(f"{plain(table.path)}: {done}")
        for error, count in errors.most_common(3):
            print(f"  {count} × {plain(error)}")
