"""Runs trials and keeps each result in a file of its own, so that a run can be interrupted.

A trial's file is written whole or not at all, when the trial is done. It holds the stamp of the
run (settings, versions, sources, machine); `resume` takes results with the same stamp only.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from holdfast.batch.blas_threads import one_blas_thread
from holdfast.errors import InputError
from holdfast.experiments.parts import Experiment, Report, Trial
from holdfast.tools import files

MARK = "run.json"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
Results = dict[str, dict[str, Any]]


class Progress(Protocol):
    """Is told how a run is going."""

    def start(self, trials: int) -> None:
        """How many trials there are."""

    def trial(self, name: str) -> Report:
        """A trial begins; returns what is told the part of it that is done."""
        ...

    def done(self) -> None:
        """A trial has ended, or was there already."""


class Silent:
    """Progress that nobody sees."""

    def start(self, trials: int) -> None:
        """Nothing."""

    def trial(self, name: str) -> Report:
        """Nothing."""
        return lambda _: None

    def done(self) -> None:
        """Nothing."""


@dataclass
class Folder:
    """Where a run is kept.

    Args:
        path: made if it is not there. A folder that holds anything else is refused.
        stamp: of the run.
        resume: keep results with the same stamp; otherwise they are removed as they are met.
    """

    path: Path
    stamp: dict[str, Any]
    resume: bool = False

    def __post_init__(self) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise InputError("out", f"{self.path} is a file; expected a folder")
        mark = self.path / MARK
        try:
            if self.path.exists() and any(self.path.iterdir()) and not mark.exists():
                raise InputError(
                    "out", f"{self.path} holds other files; name a new folder, or one of an "
                    "earlier report"
                )  # fmt: skip
            self.path.mkdir(parents=True, exist_ok=True)
            write_whole(mark, json.dumps(self.stamp, indent=1))
        except OSError as error:
            raise InputError("out", f"{self.path} cannot be used: {error}") from error

    def file(self, experiment: str, trial: str) -> Path:
        """Where a trial's result is kept."""
        return self.path / "trials" / experiment / f"{trial}.json"

    def load(self, experiment: str, trial: str) -> dict[str, Any] | None:
        """The result of a trial that is done and has this run's stamp."""
        try:
            kept = json.loads(self.file(experiment, trial).read_text())
        except (FileNotFoundError, json.JSONDecodeError):  # none, or not a file of ours
            return None
        if not isinstance(kept, dict) or kept.get("stamp") != json.loads(json.dumps(self.stamp)):
            return None
        return kept["result"]

    def save(self, experiment: str, trial: str, result: dict[str, Any], seconds: float) -> None:
        """Keep a result."""
        kept = {"stamp": self.stamp, "seconds": seconds, "result": result}
        try:
            text = json.dumps(kept, indent=1, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise InputError(
                "trial", f"{experiment}/{trial} returned what JSON cannot hold: {error}"
            ) from error
        file = self.file(experiment, trial)
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, text)

    def count(self) -> int:
        """How many trials are kept with this run's stamp."""
        files = (self.path / "trials").glob("*/*.json")
        return sum(self.load(file.parent.name, file.stem) is not None for file in files)

    def seconds(self, results: Mapping[str, Iterable[str]]) -> float:
        """Time that the trials of these results took."""
        return sum(
            json.loads(self.file(experiment, trial).read_text())["seconds"]
            for experiment, trials in results.items()
            for trial in trials
        )

    def forget(self, experiment: str) -> None:
        """Remove the results of an experiment."""
        for file in (self.path / "trials" / experiment).glob("*.json"):
            file.unlink()


def write_whole(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    files.write_whole(path, lambda stream: stream.write(text.encode()))


def run(
    experiments: Sequence[Experiment],
    folder: Folder,
    *,
    quick: bool,
    progress: Progress | None = None,
) -> dict[str, Results]:
    """Run all trials that are not done yet.

    Returns:
        Results by experiment and trial.

    Raises:
        InputError: names of trials are not unique, or cannot name files.
    """
    progress = progress or Silent()
    work = [(each.name, each.trials(quick=quick)) for each in experiments]
    for name, trials in work:
        _check_names(name, trials)
        if not folder.resume:
            folder.forget(name)
    progress.start(sum(len(trials) for _, trials in work))
    return {name: _run(name, trials, folder, progress) for name, trials in work}


def _run(name: str, trials: Sequence[Trial], folder: Folder, progress: Progress) -> Results:
    results = {}
    for trial in trials:
        result = folder.load(name, trial.name)
        if result is None:
            begin = time.perf_counter()
            with one_blas_thread():  # trials are timed: the same numbers whoever starts them
                result = trial.run(progress.trial(f"{name}: {trial.name}"))
            folder.save(name, trial.name, result, time.perf_counter() - begin)
        results[trial.name] = result
        progress.done()
    return results


def _check_names(experiment: str, trials: Sequence[Trial]) -> None:
    names = [experiment, *(trial.name for trial in trials)]
    bad = [name for name in names if not NAME.fullmatch(name)]
    if bad:
        raise InputError("trial", f"{bad[0]!r} cannot name a file; use letters, digits, . _ -")
    twice = {name for name in names[1:] if names[1:].count(name) > 1}
    if twice:
        raise InputError("trial", f"{min(twice)!r} appears twice in {experiment}")


@contextmanager
def bars(*, quiet: bool = False) -> Iterator[Progress]:
    """Two bars on stderr: all trials, and the one that runs."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        TextColumn,
        TimeElapsedColumn,
    )
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    console = Console(stderr=True, quiet=quiet)
    with Bars(*columns, TimeElapsedColumn(), console=console, disable=quiet) as progress:
        yield _Bars(progress.add_task, progress.update, progress.advance)


class _Bars:
    def __init__(
        self, add: Callable[..., Any], update: Callable[..., Any], advance: Callable[..., Any]
    ) -> None:
        self._update, self._advance = update, advance
        self._all, self._one = add("trials", total=None), add("", total=100)

    def start(self, trials: int) -> None:
        self._update(self._all, total=trials)

    def trial(self, name: str) -> Report:
        self._update(self._one, description=name, completed=0)
        return lambda part: self._update(self._one, completed=round(100 * part))

    def done(self) -> None:
        self._advance(self._all)
