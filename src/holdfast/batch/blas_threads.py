"""One thread of BLAS: for times that can be compared, and for results of the same bits.

OpenBLAS, MKL and OpenMP start a thread per core by themselves. On small matrices that slows a call
down, by much on a busy machine, and the number of threads changes how sums are rounded.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class _Keeper:
    """A thread that limits the libraries whose number of threads is that of the whole process.

    Several threads may want one thread of BLAS at the same time. The limit is set when the first
    one comes and lifted when the last one goes. threadpoolctl lets only one thread control
    OpenBLAS; here it is one that stays as long as the limit.
    """

    def __init__(self) -> None:
        self._lock, self._count = threading.Lock(), 0
        self._thread: threading.Thread | None = None
        self._ready, self._over = threading.Event(), threading.Event()

    def enter(self) -> None:
        with self._lock:
            self._count += 1
            if self._count == 1:
                self._ready, self._over = threading.Event(), threading.Event()
                self._thread = threading.Thread(target=self._keep, daemon=True)
                self._thread.start()
                self._ready.wait()

    def _keep(self) -> None:
        from threadpoolctl import threadpool_limits

        with threadpool_limits(limits=1):
            self._ready.set()
            self._over.wait()

    def leave(self) -> None:
        with self._lock:
            self._count -= 1
            if self._count == 0 and self._thread is not None:
                self._over.set()
                self._thread.join()


_KEEPER = _Keeper()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let the BLAS and OpenMP libraries that are loaded use one thread.

    Import what is to be limited before: a library that is loaded later is not. Nested calls and
    calls from several threads are fine.
    """
    import scipy.linalg  # noqa: F401  brings a BLAS of its own
    from threadpoolctl import threadpool_limits

    _KEEPER.enter()
    try:
        with threadpool_limits(limits=1):  # where the number is one of the thread
            yield
    finally:
        _KEEPER.leave()
