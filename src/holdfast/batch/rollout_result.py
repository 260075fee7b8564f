"""What `rollout` returns: states, sensor readings, and how each run ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np


class RunStatus(IntEnum):
    """How a run of `rollout` ended."""

    DONE = 0  # all steps are taken and certified
    UNCERTIFIED = 1  # all are taken; some missed the certificate, and were within 1e-6 of the law
    FAILED = 2  # a step could not be taken; the run rests at the state before it


@dataclass(frozen=True, eq=False)
class RunFailure:
    """Why a run of `rollout` ended before its last step.

    Attributes:
        run: index of the run.
        step: number of steps that were taken before.
        error: the exception.
        state: (nstate,) the state before the step that failed, `mjSTATE_FULLPHYSICS`.
    """

    run: int
    step: int
    error: Exception
    state: np.ndarray

    def __str__(self) -> str:
        return f"run {self.run} failed at step {self.step}: {self.error}"


class Rollout(tuple[np.ndarray, np.ndarray]):
    """What `rollout` returns: the pair (state, sensordata), and how each run ended.

    Attributes:
        status: (nbatch,) a `RunStatus` of each run.
        failures: a `RunFailure` of each run that failed, by index.
        uncertified_steps: (nbatch,) steps of each run that missed the certificate.
    """

    status: np.ndarray
    failures: tuple[RunFailure, ...]
    uncertified_steps: np.ndarray

    def __new__(cls, state: np.ndarray, sensordata: np.ndarray, uncertified: np.ndarray,
                failures: Sequence[RunFailure]) -> Rollout:  # fmt: skip
        """Make the pair, and tell how runs ended."""
        made = super().__new__(cls, (state, sensordata))
        made.uncertified_steps = uncertified
        made.failures = tuple(sorted(failures, key=lambda failure: failure.run))
        made.status = np.where(uncertified > 0, RunStatus.UNCERTIFIED, RunStatus.DONE).astype(int)
        made.status[[failure.run for failure in made.failures]] = RunStatus.FAILED
        return made

    def __getnewargs__(self) -> Any:
        return self.state, self.sensordata, self.uncertified_steps, self.failures

    def __repr__(self) -> str:
        nbatch, nstep = self.state.shape[:2]
        return f"Rollout({nbatch} runs of {nstep} steps, {len(self.failures)} failed)"

    @property
    def state(self) -> np.ndarray:
        """(nbatch, nstep, nstate) states after each step, `mjSTATE_FULLPHYSICS`."""
        return self[0]

    @property
    def sensordata(self) -> np.ndarray:
        """(nbatch, nstep, nsensordata) sensor readings of each step."""
        return self[1]
