"""Whether the machine is quiet enough to measure on."""

from __future__ import annotations

import hashlib
import os
import time
from concurrent.futures import ThreadPoolExecutor

QUIET = 0.95  # part of a core that a lone thread gets on a quiet machine
CHUNK = bytes(1 << 22)  # hashed by C code without the GIL: about 10 ms


def usable_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def core_share(seconds: float = 0.3) -> float:
    """Part of a core that a thread gets which only counts."""
    cpu, begin = time.thread_time(), time.perf_counter()
    while time.perf_counter() - begin < seconds:
        hashlib.sha256(CHUNK)
    return min(1.0, (time.thread_time() - cpu) / (time.perf_counter() - begin))


def parallel_speedup(threads: int, seconds: float = 0.3) -> float:
    """How many times more a plain C loop does on so many threads than on one."""

    def rate(count: int) -> float:
        def work(_: int) -> int:
            done, end = 0, time.perf_counter() + seconds
            while time.perf_counter() < end:
                hashlib.sha256(CHUNK)
                done += 1
            return done

        begin = time.perf_counter()
        with ThreadPoolExecutor(count) as pool:
            done = sum(pool.map(work, range(count)))
        return done / (time.perf_counter() - begin)

    return rate(threads) / rate(1)


def load_average() -> float | None:
    """Of the last minute; None where the system does not tell."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None
