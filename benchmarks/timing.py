"""Interleaved timing: solvers take turns, so that a busy moment of the machine hits them all.

In each round every solver runs a short batch; a sample is the mean of a batch, a result the
median of the samples. Batches keep a call of microseconds above the clock's resolution and in
its own caches, as in a simulation loop; they are short, so that neighbours see the same machine.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Effort:
    """How long to measure.

    Attributes:
        rounds: most samples per solver.
        seconds: a solver that has used this much time is measured enough.
        batch: aim of a batch in seconds.
    """

    rounds: int = 101
    seconds: float = 2.0
    batch: float = 1e-3


QUICK = Effort(rounds=41, seconds=0.4, batch=5e-4)
FULL = Effort()


@dataclass(frozen=True)
class Timing:
    """Seconds per call.

    Attributes:
        median: the result.
        low: first quartile.
        high: third quartile; far from the first on a busy machine.
    """

    median: float
    low: float
    high: float


@dataclass
class _Runner:
    """One call with its samples."""

    call: Callable[[], object]
    repeats: int
    samples: list[float]
    used: float = 0.0

    def sample(self) -> None:
        """Run a batch and keep its mean."""
        call = self.call
        start = time.perf_counter()
        for _ in range(self.repeats):
            call()
        elapsed = time.perf_counter() - start
        self.used += elapsed
        self.samples.append(elapsed / self.repeats)


def round_robin(calls: Mapping[str, Callable[[], object]], effort: Effort) -> dict[str, Timing]:
    """Time of each call, measured in turns.

    Every call is run once or twice beforehand, untimed, to compile, to touch its memory and
    to choose the length of its batches.
    """
    runners = {name: _prepare(call, effort) for name, call in calls.items()}
    collecting = gc.isenabled()
    gc.disable()
    try:
        for _ in range(effort.rounds):
            for runner in runners.values():
                if runner.used < effort.seconds:
                    runner.sample()
    finally:
        if collecting:
            gc.enable()
    return {name: _summary(runner.samples) for name, runner in runners.items()}


def _summary(samples: list[float]) -> Timing:
    low, median, high = np.percentile(samples, (25, 50, 75))
    return Timing(float(median), float(low), float(high))


def _prepare(call: Callable[[], object], effort: Effort) -> _Runner:
    """Warm a call up and choose its batch length."""
    elapsed = _once(call)
    if elapsed < effort.seconds:
        elapsed = _once(call)
    repeats = max(1, min(200, int(effort.batch / max(elapsed, 1e-7))))
    return _Runner(call, repeats, [])


def _once(call: Callable[[], object]) -> float:
    """Seconds of a single call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start
