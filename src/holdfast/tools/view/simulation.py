"""A simulation whose law can be switched while it runs."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from holdfast.errors import HoldfastError
from holdfast.mujoco._mj import mujoco
from holdfast.tools.observe import Forces, Observer
from holdfast.tools.view.laws import LawStepper

_STATE = mujoco.mjtState.mjSTATE_INTEGRATION


@dataclass
class Push:
    """A force on a body for a while."""

    body: int
    force: np.ndarray  # (3,) in the world frame [N]
    until: float  # [s] of the simulation


@dataclass(frozen=True)
class Sample:
    """One point of each plot."""

    time: float  # [s] of the simulation
    creep: float  # [m/s]
    penetration: float  # [m]
    required: float  # coefficient of friction
    step: float  # mean time of the last steps [s]


class Simulation:
    """State and law of one run.

    Attributes:
        model: of the scene.
        data: its state.
        problem: why stepping has stopped; empty while all is well.
    """

    def __init__(self, model: Any, law: str, mu_v: float, keyframe: int | None = None) -> None:
        self.model, self.data = model, mujoco.MjData(model)
        self.observer = Observer(model)
        self.push: Push | None = None
        self.problem = ""
        self._spent, self._steps, self._mean = 0.0, 0, 0.0
        self._stepper = LawStepper(model, law, mu_v)
        self.reset(keyframe)

    @property
    def law(self) -> str:
        """The law in force."""
        return self._stepper.law

    def set_law(self, law: str, mu_v: float) -> None:
        """Go on by another law, from the present state."""
        self._stepper = LawStepper(self.model, law, mu_v)
        self.problem = ""
        self._spent, self._steps = 0.0, 0

    def reset(self, keyframe: int | None = None) -> None:
        """Start again, from a keyframe or from the model's own state."""
        if keyframe is None:
            mujoco.mj_resetData(self.model, self.data)
        else:
            mujoco.mj_resetDataKeyframe(self.model, self.data, keyframe)
        self.push, self.problem = None, ""
        self._forward()

    def copy_state(self, other: Simulation) -> None:
        """Take over the state of another simulation of the same model."""
        mujoco.mj_copyState(self.model, other.data, self.data, _STATE)
        self.push, self.problem = other.push, other.problem
        self._forward()

    def _forward(self) -> None:
        try:
            self._stepper.forward(self.data)
        except (HoldfastError, mujoco.FatalError) as error:
            self.problem = f"{type(error).__name__}: {error}"
            mujoco.mj_forward(self.model, self.data)

    def step(self) -> bool:
        """Take one step; return whether it could be taken."""
        if self.problem:
            return False
        self._apply_push()
        begin = time.perf_counter()
        try:
            self._stepper.step(self.data)
        except (HoldfastError, mujoco.FatalError) as error:
            self.problem = f"{type(error).__name__}: {error}"
            return False
        self._spent += time.perf_counter() - begin
        self._steps += 1
        if not np.isfinite(self.data.qpos).all():
            self.problem = "the simulation has diverged; reset it"
        return not self.problem

    def _apply_push(self) -> None:
        if self.push is None:
            return
        over = self.data.time > self.push.until - 0.5 * self.model.opt.timestep
        self.data.xfrc_applied[self.push.body, :3] = 0.0 if over else self.push.force
        if over:
            self.push = None

    def start_push(self, body: int, force: np.ndarray, seconds: float) -> None:
        """Push a body from now on for so many seconds."""
        if self.push is not None:
            self.data.xfrc_applied[self.push.body, :3] = 0.0
        self.push = Push(body, force, self.data.time + seconds)

    def forces(self) -> Forces:
        """Contact forces of the last step."""
        return Forces.of(self._stepper.model, self.data)

    def sample(self, required: float) -> Sample:
        """Measure the present state; `required` is what `forces` says of friction."""
        seen = self.observer.measure(self.data)
        if self._steps:
            self._mean = self._spent / self._steps
            self._spent, self._steps = 0.0, 0
        return Sample(float(self.data.time), seen.creep, seen.penetration, required, self._mean)


def drift(a: Simulation, b: Simulation) -> float:
    """Largest distance between the same body in two simulations [m]."""
    return float(np.linalg.norm(a.data.xpos - b.data.xpos, axis=1).max())
