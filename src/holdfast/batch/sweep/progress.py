"""A bar on stderr: cases done, rate, remaining time, failures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Advance = Callable[[bool], None]


@contextmanager
def case_bar(what: str, total: int, done: int, *, quiet: bool) -> Iterator[Advance]:
    """Yield what is told, for each finished case, whether it failed.

    Args:
        what: is swept.
        total: number of cases.
        done: how many were finished before.
        quiet: show nothing.
    """
    if quiet:
        yield lambda failed: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Task as Bar
    from rich.text import Text

    class Rate(ProgressColumn):
        """Cases per second."""

        def render(self, task: Bar) -> Text:
            speed = task.finished_speed or task.speed
            return Text("" if speed is None else f"{speed:.3g}/s")

    failures = 0
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Rate(),
               TimeRemainingColumn(), TextColumn("{task.fields[failed]}"))  # fmt: skip
    with Progress(*columns, console=Console(stderr=True)) as progress:
        bar = progress.add_task(what, total=total, completed=done, failed="")

        def advance(failed: bool) -> None:
            nonlocal failures
            failures += failed
            progress.update(bar, advance=1, failed=f"{failures} failed" if failures else "")

        yield advance
