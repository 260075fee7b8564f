"""The threads that `rollout` and vectorised environments share, made once.

Compiled steps run without Python's lock, so threads suffice to use all cores. Who hands out work
waits for it and stays interruptible: after Ctrl-C the tasks that have not begun are dropped, and
those that run are told by `Work.stopped`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from typing import Any

from holdfast.errors import InputError

_PATIENCE = 0.2  # [s] after which a thread that waits looks for signals, where nothing wakes it


class _Pool:
    """An executor that grows to the largest number of threads that was asked for."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.executor: ThreadPoolExecutor | None = None
        self.size = 0

    def submit(self, count: int, task: Callable[[int], None]) -> list[Future[None]]:
        with self.lock:
            if self.executor is None or self.size < count:
                if self.executor is not None:
                    self.executor.shutdown(wait=False)  # its tasks go on
                self.executor = ThreadPoolExecutor(count, thread_name_prefix="holdfast")
                self.size = count
            return [self.executor.submit(task, k) for k in range(count)]


_pool = _Pool()


def _forget_threads() -> None:
    """A forked process has none of the threads of its parent."""
    global _pool
    _pool = _Pool()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)


class Work:
    """Tasks that threads take one after the other, in their order.

    Attributes:
        stopped: whether to leave what is left of the work: after Ctrl-C, or an error in a task.
    """

    def __init__(self, tasks: Sequence[Any]) -> None:
        self.stopped = False
        self._tasks = iter(tasks)
        self._lock = threading.Lock()

    def next(self) -> Any:
        """The next task; None if there is none, or the work is to be left."""
        with self._lock:
            return None if self.stopped else next(self._tasks, None)

    def run(self, nthread: int, worker: Callable[[int], None]) -> None:
        """Call ``worker(k)`` in so many threads; one is the thread that calls."""
        if nthread == 1:
            worker(0)
            return
        futures = _pool.submit(nthread, worker)
        try:
            pending: Any = futures
            while pending:
                done, pending = wait(pending, _PATIENCE, FIRST_EXCEPTION)
                if any(future.exception() is not None for future in done):
                    self.stopped = True
        except BaseException:  # Ctrl-C
            self.stopped = True
            wait(futures)
            raise
        for future in futures:
            future.result()


def available_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def thread_count(nthread: int | None, tasks: int, default: int | None = None) -> int:
    """Number of threads to use for so many tasks, at least 1.

    Args:
        nthread: what the user asked for; None for `default`, and None there for all cores.
        tasks: more threads than these are of no use.
        default: see `nthread`.
    """
    if nthread is None:
        nthread = available_cores() if default is None else default
    if isinstance(nthread, bool) or not hasattr(nthread, "__index__") or nthread < 0:
        raise InputError("nthread", f"is {nthread!r}; expected a whole number of threads, or None "
                         "for all cores")  # fmt: skip
    return max(1, min(int(nthread), tasks))
