"""`holdfast.sweep`: run one task on many cases, on all cores or a cluster, saving each result."""

from __future__ import annotations

import functools
import hashlib
import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import holdfast
from holdfast.batch.sweep import table as tables
from holdfast.batch.sweep.backends import Backend, Row, run_case, workers
from holdfast.batch.sweep.cases import Case, key_of, with_seeds
from holdfast.batch.sweep.journal import Journal
from holdfast.batch.sweep.progress import Advance, case_bar
from holdfast.batch.sweep.table import SweepTable
from holdfast.errors import InputError, SweepError

Task = Callable[..., Any]


def sweep(
    task: Task,
    cases: Iterable[Mapping[str, Any]],
    out: Path | str | None = None,
    *,
    workers: int | None = None,
    backend: Backend = "processes",
    scheduler: str | None = None,
    seed: int = 0,
    retry_failed: bool = False,
    fresh: bool = False,
    warmup: bool = True,
    progress: bool = True,
) -> SweepTable:
    """Call a task with each case and return a table with one row per case, in the given order.

    Each finished case is appended to a journal next to `out` and synced to the disk at once; the
    table is written when all cases are finished. After a crash or an interrupt, the same call
    continues with the missing cases, even if cases were added. The table is the same, byte for
    byte, for any number of workers and interruptions.

    Args:
        task: called as ``task(**case)``. It returns a dictionary (or dataclass) of numbers,
            strings and booleans, which become columns. An exception becomes the `error` of its
            row. All randomness of the task must come from its argument `seed`.
        cases: dictionaries of parameters, for example from `holdfast.cases`. A case without a
            "seed" gets one, derived from its parameters and `seed`.
        out: table to write, .parquet or .csv; its journal has the same name plus .journal. A link
            is followed. None saves nothing.
        workers: number of cases to run at the same time; by default as many as there are cores,
            or workers in the cluster.
        backend: "processes" or "threads" on this machine, "dask" or "ray".
        scheduler: address of a Dask scheduler or a Ray cluster; None starts a local one.
        seed: random seed from which the seeds of cases are derived.
        retry_failed: run failed cases again.
        fresh: discard the results of an earlier sweep, or a file that has the name of the table.
        warmup: compile a step before workers start, so that they find it in the cache.
        progress: show a progress bar on stderr, with the rate and the remaining time.

    Returns:
        The table; failed cases have a row, too.

    Raises:
        InputError: the cases do not fit the task, or the journal belongs to another task.
        SweepError: the disk is full, or the cluster failed. Finished cases are saved.

    Example:
        >>> import holdfast as hf
        >>> def fall(height, gravity):
        ...     return {"time": (2 * height / gravity) ** 0.5}
        >>> cases = hf.cases.grid({"height": [1.0, 2.0], "gravity": [1.62, 9.81]})
        >>> table = hf.sweep(fall, cases, workers=1, progress=False)
        >>> table["time"].round(3).tolist()
        [1.111, 0.452, 1.571, 0.639]
    """
    listed = with_seeds(cases, seed)
    if not listed:
        raise InputError("cases", "is empty; expected at least one case")
    arguments = arguments_of(task, listed)
    path = None if out is None else tables.place_of(out)
    if path is not None:
        tables.check_format(path)
        tables.check_place(path, journal_of(path), fresh=fresh)
    store = _Memory() if path is None else Journal(journal_of(path), _stamp(task), fresh=fresh)
    work = {key_of(case): (case, given) for case, given in zip(listed, arguments, strict=True)}
    try:
        done = {key for key, row in store.rows.items() if not (retry_failed and row["error"])}
        missing = {key: each for key, each in work.items() if key not in done}
        if missing:
            if warmup and backend == "processes" and workers != 1:
                compile_step()
            pool = _Pool(task, missing, store, backend, workers, scheduler)
            with case_bar("sweep", len(work), len(work) - len(missing), quiet=not progress) as bar:
                pool.run(bar)
        return _finish([store.rows[key] for key in work], path)
    except SweepError as error:
        finished = len(work.keys() & store.rows.keys())
        raise SweepError(_advice(error, store, finished, len(work))) from error
    finally:
        store.close()


def journal_of(out: Path) -> Path:
    """The journal of a table."""
    return out.with_name(out.name + ".journal")


@dataclass
class _Memory:
    """Rows of a sweep that keeps nothing."""

    rows: dict[str, Row] = field(default_factory=dict)
    full: str = ""
    path: None = None

    def append(self, row: Row) -> None:
        self.rows[row["key"]] = row

    def close(self) -> None:
        """Nothing is open."""


def arguments_of(task: Task, cases: list[Case]) -> list[Case]:
    """What to call the task with in each case: without the seed if it takes none."""
    if not callable(task):
        raise InputError("task", f"is {task!r}; expected a function")
    try:
        signature = inspect.signature(task)
    except ValueError:  # some functions in C do not tell
        return cases
    kinds = [each.kind for each in signature.parameters.values()]
    seeded = "seed" in signature.parameters or inspect.Parameter.VAR_KEYWORD in kinds
    result = [
        case if seeded else {name: value for name, value in case.items() if name != "seed"}
        for case in cases
    ]
    for i, given in enumerate(result):
        try:
            signature.bind(**given)
        except TypeError as error:
            raise InputError("cases", f"case {i} ({', '.join(given)}) does not fit the task "
                             f"{_name(task)}{signature}: {error}") from error  # fmt: skip
    return result


def _name(task: Any) -> str:
    while isinstance(task, functools.partial):
        task = task.func
    return getattr(task, "__qualname__", type(task).__qualname__)


def _stamp(task: Any) -> dict[str, Any]:
    """What must be the same for rows to belong into one table.

    A task with an attribute `stamp` says itself what it is; of a function it is its name and
    source, not those of the functions that it calls.
    """
    versions = {"holdfast": holdfast.__version__}
    for name in ("mujoco", "numpy"):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = "none"
    if hasattr(task, "stamp"):
        return {"task": task.stamp, **versions}
    bound = ""
    while isinstance(task, functools.partial):
        bound += repr((task.args, sorted(task.keywords.items())))
        task = task.func
    try:
        source = inspect.getsource(task)
    except (OSError, TypeError):
        source = ""
    digest = hashlib.sha256((source + bound).encode()).hexdigest()[:16]
    return {"task": _name(task), "source of the task": digest, **versions}


def compile_step() -> None:
    """Compile a step, or find it in the cache, so that no worker has to."""
    from holdfast.mujoco._mj import mujoco
    from holdfast.mujoco.stepper import Stepper

    model = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><body><freejoint/><geom size='1'/></body></worldbody></mujoco>"
    )
    Stepper(model).step(mujoco.MjData(model))


@dataclass
class _Pool:
    """Runs the missing cases and stores each row when it is there."""

    task: Task
    missing: dict[str, tuple[Case, Case]]
    store: Journal | _Memory
    backend: Backend
    count: int | None
    scheduler: str | None
    handed: set[str] = field(default_factory=set)  # keys of cases that workers were given

    def run(self, advance: Advance) -> None:
        """Run all, or as many as there is room on the disk for."""
        from pickle import PicklingError

        from joblib.externals.loky.process_executor import BrokenProcessPool, TerminatedWorkerError

        self._check_room()
        with workers(self.backend, self.count, self.scheduler) as run:
            while self.missing:
                try:
                    for row in run(self._calls()):
                        self._keep(row, advance)
                except TerminatedWorkerError:
                    self._run_suspects(advance)
                except (BrokenProcessPool, PicklingError) as error:
                    raise InputError("task", f"{_name(self.task)} cannot be sent to workers "
                                     f"({error.__cause__ or error}); put it into a module that "
                                     "they can import") from error  # fmt: skip
                except (SweepError, InputError):
                    raise
                except Exception as error:  # of a cluster: tasks' own errors are rows
                    raise SweepError(f"{self.backend}: {type(error).__name__}: {error}") from error
                self._check_room()

    def _calls(self) -> Iterator[tuple[Any, ...]]:
        """The missing cases, until there is no more room on the disk."""
        self.handed = set()
        for key in list(self.missing):
            if self.store.full:
                return
            self.handed.add(key)
            yield self._call(key)

    def _call(self, key: str) -> tuple[Any, ...]:
        parent = os.getpid() if self.backend == "processes" else 0
        return self.task, key, *self.missing[key], parent

    def _keep(self, row: Row, advance: Advance) -> None:
        self.store.append(row)
        del self.missing[row["key"]]
        advance(row["error"] is not None)

    def _run_suspects(self, advance: Advance) -> None:
        """Run those cases alone that workers had when one of them died; note which one kills it."""
        from joblib.externals.loky import ProcessPoolExecutor
        from joblib.externals.loky.process_executor import TerminatedWorkerError

        suspects = [key for key in self.missing if key in self.handed]
        executor = ProcessPoolExecutor(max_workers=1)
        try:
            for key in suspects:
                if self.store.full:
                    return
                try:
                    row = executor.submit(run_case, *self._call(key)).result()
                except TerminatedWorkerError as died:
                    executor = ProcessPoolExecutor(max_workers=1)
                    row = {"key": key, "case": self.missing[key][0], "result": None, "seconds": 0.0,
                           "error": f"the worker died: {_cause(died)}"}  # fmt: skip
                self._keep(row, advance)
        finally:
            executor.shutdown(wait=False, kill_workers=True)

    def _check_room(self) -> None:
        if self.store.full:
            raise SweepError(f"no space left on the disk for {self.store.path} ({self.store.full})")


def _cause(died: Exception) -> str:
    """How a worker died, in few words."""
    text = str(died)
    for signal in ("SIGSEGV", "SIGKILL", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL"):
        if signal in text:
            hint = ", perhaps for want of memory" if signal == "SIGKILL" else ""
            return f"{signal}{hint}"
    return "it ended by itself" if "EXIT" in text else "of an unknown cause"


def _finish(rows: list[Row], path: Path | None) -> SweepTable:
    table = tables.make_table(rows, path)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        tables.write(table)
    return table


def _advice(error: SweepError, store: Journal | _Memory, finished: int, total: int) -> str:
    if store.path is None:
        return str(error)
    return (
        f"{error}. {finished} of {total} cases are finished and saved in {store.path}. Free some "
        "space or fix the problem, then run the same sweep again to continue with the missing ones"
    )
