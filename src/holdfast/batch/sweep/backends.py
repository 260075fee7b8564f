"""Where the cases of a sweep run: joblib over processes, threads, Dask or Ray."""

from __future__ import annotations

import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from importlib import import_module
from typing import Any, Literal

from holdfast.batch.blas_threads import one_blas_thread
from holdfast.batch.sweep.cases import Case, scalar
from holdfast.errors import InputError

Backend = Literal["processes", "threads", "dask", "ray"]
Row = dict[str, Any]
WAIT = 60  # [s] for the first worker of a cluster


def run_case(task: Callable[..., Any], key: str, case: Case, arguments: Case, parent: int) -> Row:
    """Run one case, here, and return its row of the journal; an error is a row, too.

    Args:
        task: is called with the arguments.
        key: of the case.
        case: goes into the row.
        arguments: the case, without the seed if the task takes none.
        parent: process that waits for the row, on the same machine; 0 if it may be on another.
    """
    _end_with(parent)
    start, result, error, trace = time.perf_counter(), None, None, ""
    try:
        with one_blas_thread():
            result = _named(task(**arguments), case)
    except Exception as problem:
        error = " ".join(f"{type(problem).__name__}: {problem}".split())
        trace = traceback.format_exc()
    seconds = round(time.perf_counter() - start, 6)
    row = {"key": key, "case": case, "result": result, "error": error, "seconds": seconds}
    return row | ({"traceback": trace} if trace else {})


def _named(returned: Any, case: Case) -> dict[str, Any]:
    """What a task returned, as columns."""
    if is_dataclass(returned) and not isinstance(returned, type):
        returned = asdict(returned)
    if not isinstance(returned, Mapping):
        returned = {"result": returned}
    taken = sorted({*case, "seed", "error"} & {str(name) for name in returned})
    if taken:
        raise InputError("task", f"returned {taken[0]!r}, which is already a column of the case")
    return {str(name): scalar(str(name), value) for name, value in returned.items()}


_watched: set[int] = set()


def _end_with(parent: int) -> None:
    """End this worker when the process that it works for has died, as by kill -9."""
    if parent in (0, os.getpid()) or parent in _watched or sys.platform == "win32":
        return
    _watched.add(parent)

    def watch() -> None:
        while True:
            try:
                os.kill(parent, 0)
            except ProcessLookupError:
                os._exit(1)
            except PermissionError:
                return
            time.sleep(1.0)

    threading.Thread(target=watch, daemon=True).start()


Run = Callable[[Iterable[tuple[Any, ...]]], Iterator[Row]]
"""Runs `run_case` with each of several arguments and yields the rows as they finish."""


@contextmanager
def workers(backend: Backend, count: int | None, scheduler: str | None) -> Iterator[Run]:
    """Start workers and yield a function that runs cases on them.

    Args:
        backend: by name.
        count: number of workers; None is all cores, or all workers of a cluster.
        scheduler: address of a running Dask scheduler or Ray cluster; None starts one here.
    """
    if backend not in _BACKENDS:
        raise InputError("backend", f"is {backend!r}; expected {', '.join(_BACKENDS)}")
    if scheduler and backend in ("processes", "threads"):
        raise InputError("scheduler", f"applies to the backends dask and ray, not to {backend}")
    if count is not None and count < 1:
        raise InputError("workers", f"is {count}; expected at least 1")
    with _BACKENDS[backend](count, scheduler) as run:
        yield run


@contextmanager
def _joblib(name: str, count: int | None, **options: Any) -> Iterator[Run]:
    from joblib import Parallel, delayed, parallel_config

    def run(cases: Iterable[tuple[Any, ...]]) -> Iterator[Row]:
        calls = (delayed(run_case)(*each) for each in cases)
        rows: Any = Parallel(return_as="generator_unordered")(calls)
        return iter(rows)

    with parallel_config(name, n_jobs=-1 if count is None else count, **options):
        yield run


@contextmanager
def _processes(count: int | None, scheduler: str | None) -> Iterator[Run]:
    with _joblib("loky", count, inner_max_num_threads=1) as run:
        yield run


@contextmanager
def _threads(count: int | None, scheduler: str | None) -> Iterator[Run]:
    with _joblib("threading", count) as run:
        yield run


@contextmanager
def _dask(count: int | None, scheduler: str | None) -> Iterator[Run]:
    try:
        distributed: Any = import_module("distributed")
    except ImportError as error:
        raise InputError(
            "backend", "dask is not installed: pip install 'holdfast[dask]'"
        ) from error
    here = {"n_workers": count or os.cpu_count(), "threads_per_worker": 1,
            "dashboard_address": None}  # fmt: skip
    try:
        client = (
            distributed.Client(scheduler, timeout=WAIT) if scheduler else distributed.Client(**here)
        )
    except (OSError, ValueError) as error:
        raise InputError("scheduler", f"{scheduler} does not answer ({error}); start it with dask "
                         "scheduler, and its workers with dask worker") from error  # fmt: skip
    with client, _joblib("dask", count, client=client, wait_for_workers_timeout=WAIT) as run:
        yield run


@contextmanager
def _ray(count: int | None, scheduler: str | None) -> Iterator[Run]:
    """Ray without joblib: its backend for joblib returns nothing before everything is done."""
    try:
        ray: Any = import_module("ray")
    except ImportError as error:
        raise InputError("backend", "ray is not installed: pip install 'holdfast[ray]'") from error
    ours = not ray.is_initialized()
    if ours:
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
        paths = os.pathsep.join(path or os.getcwd() for path in sys.path)
        here = {} if scheduler else {
            "num_cpus": count, "include_dashboard": False,
            "runtime_env": {"env_vars": {"PYTHONPATH": paths}},  # workers import as we do
        }  # fmt: skip
        try:
            ray.init(address=scheduler or "local", **options, **here)
        except (ConnectionError, ValueError) as error:
            raise InputError("scheduler", f"{scheduler} does not answer ({error}); start it with "
                             "ray start --head") from error  # fmt: skip
    remote = ray.remote(run_case)
    limit = count or 2 * int(ray.cluster_resources().get("CPU", 1))  # under way at the same time

    def run(cases: Iterable[tuple[Any, ...]]) -> Iterator[Row]:
        task, waiting = None, []
        for given, *others in cases:
            task = ray.put(given) if task is None else task  # once for all cases
            waiting.append(remote.remote(task, *others))
            if len(waiting) >= limit:
                (first,), waiting = ray.wait(waiting)
                yield ray.get(first)
        while waiting:
            (first,), waiting = ray.wait(waiting)
            yield ray.get(first)

    try:
        yield run
    finally:
        if ours:
            ray.shutdown()


_BACKENDS = {"processes": _processes, "threads": _threads, "dask": _dask, "ray": _ray}
