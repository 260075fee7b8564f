"""Interleaved timing: calls take turns, so that a busy moment of the machine hits them all.

In each round every call runs a short batch, in turns that begin with another one each time. A
ratio of two calls is the median of their ratios in each round, with its quartiles. All BLAS
libraries have one thread, and Python's cycle collector rests.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from holdfast.batch.blas_threads import one_blas_thread

BATCH = 1e-3  # [s] of one sample, at least
MOST = 200  # calls in one sample
FEWEST = 5  # rounds, whatever they take


@dataclass
class Call:
    """Something to time.

    Attributes:
        run: is timed.
        prepare: is called before each sample, untimed.
        unit: what one call does, as a number of steps; times are per step.
        inner: whether it times itself, and `run` returns seconds.
    """

    run: Callable[[], object]
    prepare: Callable[[], object] = lambda: None
    unit: int = 1
    inner: bool = False
    repeats: int = 1
    samples: list[float] = field(default_factory=list)
    wall: float = 0.0
    cpu: float = 0.0

    def sample(self) -> None:
        """Run a batch and keep its mean."""
        self.prepare()
        if self.inner:
            seconds = self.run()
            assert isinstance(seconds, float)
            self.samples.append(seconds / self.unit)
            return
        run = self.run
        cpu, begin = time.process_time(), time.perf_counter()
        for _ in range(self.repeats):
            run()
        wall = time.perf_counter() - begin
        self.wall, self.cpu = self.wall + wall, self.cpu + time.process_time() - cpu
        self.samples.append(wall / (self.repeats * self.unit))


@dataclass(frozen=True)
class Spread:
    """Median and quartiles."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: np.ndarray | list[float]) -> Spread:
        """Of at least one value."""
        low, median, high = np.percentile(np.asarray(values, dtype=float), (25, 50, 75))
        return cls(float(median), float(low), float(high))


@dataclass(frozen=True)
class Times:
    """What a round of measurements gave.

    Attributes:
        seconds: of each call.
        ratios: of each call over the first one, that is how much longer it takes.
        share: part of a core that this process got while it was measured; 1 on a quiet machine.
    """

    seconds: dict[str, Spread]
    ratios: dict[str, Spread]
    share: float


def interleave(calls: Mapping[str, Call], seconds: float) -> Times:
    """Time calls in turns, for about so many seconds in all."""
    order = list(calls.values())
    with one_blas_thread():
        for call in order:
            _choose_batch(call)
        collecting = gc.isenabled()
        gc.disable()
        try:
            end, turn = time.perf_counter() + seconds, 0
            while turn < FEWEST or time.perf_counter() < end:
                for k in range(len(order)):
                    order[(k + turn) % len(order)].sample()
                turn += 1
        finally:
            if collecting:
                gc.enable()
    samples = {name: np.array(call.samples) for name, call in calls.items()}
    first = next(iter(samples.values()))
    wall = sum(call.wall for call in order)
    return Times(
        {name: Spread.of(each) for name, each in samples.items()},
        {name: Spread.of(each / first) for name, each in samples.items()},
        min(1.0, sum(call.cpu for call in order) / wall) if wall else 1.0,
    )


def _choose_batch(call: Call) -> None:
    """Warm up, then choose how many calls are one sample; nothing of it counts."""
    call.sample()
    call.sample()
    each = call.samples[-1] * call.unit
    call.repeats = 1 if call.inner else int(max(1, min(MOST, BATCH / max(each, 1e-7))))
    call.samples, call.wall, call.cpu = [], 0.0, 0.0
