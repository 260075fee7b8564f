"""Recording of a run: trajectory, and statistics of contact."""

from __future__ import annotations

import json
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.errors import InputError
from holdfast.events import EventDriven, EventLog
from holdfast.mujoco.stepper import Stepper
from holdfast.mujoco.support import whole_number
from holdfast.tools.files import Control, step_count, write_somewhere

FORMAT = 1


@dataclass
class Summary:
    """Statistics of a run."""

    steps: int = 0
    simulated: float = 0.0  # [s]
    seconds_per_step: float = 0.0  # wall clock
    largest_penetration: float = 0.0  # [m]
    largest_slip: float = 0.0  # of a pressed contact that sticks [m/s]
    largest_residual: float = 0.0  # of the momentum balance, relative
    contacts: float = 0.0  # mean number in the solve
    inconsistent: int = 0  # steps in which a contact jams, or could not be held
    required_friction: dict[str, list[float]] = field(default_factory=dict)  # pair: needs, declared


@dataclass
class EventSummary:
    """Statistics of an event-driven run."""

    steps: int = 0
    simulated: float = 0.0  # [s]
    seconds_per_step: float = 0.0  # wall clock
    largest_penetration: float = 0.0  # [m]
    events: int = 0
    impacts: int = 0
    settled: int = 0  # pairs of bodies at rest by the rule against endless impacts

    def see(self, log: EventLog, smallest_gap: float) -> None:
        """Count what is new in the log."""
        kinds = [event.kind for event in log.events[self.events :]]
        self.events += len(kinds)
        self.impacts += kinds.count("impact")
        self.settled += kinds.count("settled")
        self.largest_penetration = max(0.0, -smallest_gap)


@dataclass
class Recording:
    """States of a run, and its summary."""

    metadata: dict[str, Any]
    time: list[float] = field(default_factory=list)
    qpos: list[np.ndarray] = field(default_factory=list)
    qvel: list[np.ndarray] = field(default_factory=list)
    ctrl: list[np.ndarray] = field(default_factory=list)
    sensordata: list[np.ndarray] = field(default_factory=list)
    step: list[int] = field(default_factory=list)
    log: EventLog = field(default_factory=EventLog)
    complete: bool = False
    saved: bool = False
    summary: Summary | EventSummary = field(default_factory=Summary)

    def add(self, data: Any, step: int = 0) -> None:
        """Keep the present state, after so many steps."""
        self.time.append(float(data.time))
        for name in ("qpos", "qvel", "ctrl", "sensordata"):
            getattr(self, name).append(np.array(getattr(data, name)))
        self.step.append(step)

    def save(self, path: Path, *, force: bool = True, quick: bool = False) -> Path:
        """Write one .npz file, whole or not at all; see `write_somewhere`. Returns where it is.

        Args:
            path: of the file.
            force: overwrite a file that is there by now.
            quick: do not compress it: somebody waits.
        """
        metadata = self.metadata | {
            "format": FORMAT, "complete": self.complete, "summary": asdict(self.summary),
        }  # fmt: skip
        # Ctrl-C may come between two lines: keep what was recorded whole and is in the summary.
        count = self.count()
        arrays: dict[str, Any] = {name: np.array(getattr(self, name)[:count]) for name in
                  ("time", "qpos", "qvel", "ctrl", "sensordata")}  # fmt: skip
        if len(self.log):
            arrays |= self.log.arrays()
        text = json.dumps(metadata)
        write: Any = np.savez if quick else np.savez_compressed
        place = write_somewhere(path, lambda file: write(file, metadata=text, **arrays),
                                force=force)  # fmt: skip
        self.saved = True
        return place

    def count(self) -> int:
        """How many states `save` writes."""
        return bisect_right(self.step, self.summary.steps)


def run(
    stepper: Stepper | EventDriven,
    data: Any,
    recording: Recording,
    *,
    duration: float,
    control: Control | None = None,
    every: int = 1,
    clock: Callable[[], float] = time.perf_counter,
) -> Iterator[int]:
    """Step, record, and yield the number of steps done; stops cleanly wherever it is left.

    Args:
        stepper: of the model; in steps or from event to event.
        data: state to start from.
        recording: is filled; of each state with the controls that hold from there on.
        duration: [s] to simulate.
        control: controls by time; None leaves them as they are.
        every: record every so many steps.
        clock: seconds.
    """
    if whole_number("every", every) == 0:
        raise InputError("every", "is 0; expected a whole number of at least 1")
    steps = step_count(duration, stepper.model)
    spent, summary = 0.0, recording.summary
    if isinstance(stepper, EventDriven):
        recording.log, recording.summary = stepper.events, (summary := EventSummary())
    if control is not None:
        data.ctrl[:] = control(data.time)
    recording.add(data)
    for k in range(1, steps + 1):
        start = clock()
        stepper.step(data)
        spent += clock() - start
        if control is not None:
            data.ctrl[:] = control(data.time)
        if k % every == 0 or k == steps:
            recording.add(data, k)
        if isinstance(stepper, EventDriven) and isinstance(summary, EventSummary):
            summary.see(stepper.events, stepper.smallest_gap)
        elif isinstance(stepper, Stepper) and isinstance(summary, Summary):
            _note(summary, stepper, k, rarely=k % 10 == 0 or k == steps)
        summary.steps, summary.simulated = k, float(data.time - recording.time[0])
        summary.seconds_per_step = spent / k
        yield k
    recording.complete = True


def _note(summary: Summary, stepper: Stepper, k: int, *, rarely: bool) -> None:
    """Keep how contact fared in step k; what takes time to find out, `rarely`."""
    summary.contacts += (stepper.contact_count - summary.contacts) / k
    summary.largest_penetration = stepper.largest_penetration
    summary.inconsistent = stepper.inconsistent_steps
    summary.largest_slip = stepper.fastest_slip
    if rarely:
        solution = stepper.solution
        assert solution is not None
        summary.largest_residual = max(summary.largest_residual, solution.momentum_residual())
        _friction(summary, stepper)


def _friction(summary: Summary, stepper: Stepper) -> None:
    """Keep the largest friction that each pair of bodies needed."""
    for (a, b), (needs, declared) in stepper.contacts.pairs().items():
        key = f"{a} / {b}"
        if needs > summary.required_friction.get(key, [-1.0])[0]:
            summary.required_friction[key] = [needs, declared]
