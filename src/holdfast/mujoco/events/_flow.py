"""Motion from one event towards the next: a state for every time up to the end of a step."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from holdfast.mujoco.events._listing import Listing
from holdfast.mujoco.events._probe import Probe, Smooth, State
from holdfast.mujoco.events._sustained import Answer, Grip, accelerate


class Flow(Protocol):
    """A motion that starts at a state; `loaded` says which sustained contacts carry load."""

    loaded: np.ndarray
    rough: float

    def at(self, s: float) -> State:
        """The state after s seconds."""
        ...


class RungeKutta:
    """Four stages, each with its own contact forces at acceleration level.

    Positions are integrated in a chart at the start (`Probe.chart_rate`), so that rotations in
    space are of fourth order, too. The first stage serves all lengths of a step.

    Attributes:
        answer: of the first stage.
        loaded: (k,) sustained contacts that carried force in the last stage that was computed.
        rough: change of velocity that the two middle stages of the last step disagree about; they
            agree to second order in its length where the motion is smooth.
    """

    def __init__(
        self, probe: Probe, start: State, listed: Listing, smooth: Smooth, grip: Grip
    ) -> None:
        self.probe, self.start, self.listed, self.grip = probe, start, listed, grip
        self.act_dot = smooth.act_dot
        self.answer = accelerate(probe, start, listed, smooth, grip)
        self.loaded = self.answer.normal > 0.0
        self.rough = 0.0

    def at(self, s: float) -> State:
        """One step of length s from the start."""
        if s == 0.0:
            return self.start
        start, rate = self.start, self.probe.chart_rate
        x1, v1, a1, u1 = np.zeros_like(start.qvel), start.qvel, self.answer.a, self.act_dot
        kx1 = v1
        x2, v2 = 0.5 * s * kx1, v1 + 0.5 * s * a1
        a2, u2 = self._stage(0.5 * s, x2, v2, start.act + 0.5 * s * u1)
        kx2 = rate(x2, v2)
        x3, v3 = 0.5 * s * kx2, v1 + 0.5 * s * a2
        a3, u3 = self._stage(0.5 * s, x3, v3, start.act + 0.5 * s * u2)
        kx3 = rate(x3, v3)
        self.rough = s * float(np.abs(a3 - a2).max(initial=0.0))
        x4, v4 = s * kx3, v1 + s * a3
        a4, u4 = self._stage(s, x4, v4, start.act + s * u3)
        kx4 = rate(x4, v4)
        x = x1 + s / 6.0 * (kx1 + 2.0 * kx2 + 2.0 * kx3 + kx4)
        v = v1 + s / 6.0 * (a1 + 2.0 * a2 + 2.0 * a3 + a4)
        act = start.act + s / 6.0 * (u1 + 2.0 * u2 + 2.0 * u3 + u4)
        return State(start.time + s, self.probe.move(start.qpos, x), v, self._clamped(act))

    def _stage(
        self, s: float, x: np.ndarray, v: np.ndarray, act: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        probe, start = self.probe, self.start
        state = State(start.time + s, probe.move(start.qpos, x), v, act)
        listed = probe.list(state)
        smooth = probe.smooth()
        where = self.listed.match(listed) if self.grip.sustained.size else _nowhere(self.listed)
        grip = self.grip.moved(where)
        answer: Answer = accelerate(probe, state, listed, smooth, grip)
        self.loaded = np.zeros(len(self.grip.sustained), dtype=bool)
        self.loaded[where[self.grip.sustained] >= 0] = answer.normal > 0.0
        return answer.a, smooth.act_dot

    def _clamped(self, act: np.ndarray) -> np.ndarray:
        return clamped(self.probe, act)


class SymplecticEuler:
    """Along the velocity after the step, which was solved for at velocity level.

    Within the step the velocity grows in proportion to time, as the impulse of a constant force
    does; at its end the step is that of symplectic Euler.
    """

    def __init__(
        self, probe: Probe, start: State, act_dot: np.ndarray, after: np.ndarray, h: float,
        loaded: np.ndarray,
    ) -> None:  # fmt: skip
        self.probe, self.start, self.act_dot = probe, start, act_dot
        self.after, self.h, self.loaded, self.rough = after, h, loaded, 0.0

    def at(self, s: float) -> State:
        """The state after s seconds."""
        start = self.start
        v = start.qvel + (s / self.h) * (self.after - start.qvel) if s < self.h else self.after
        act = clamped(self.probe, start.act + s * self.act_dot)
        return State(start.time + s, self.probe.move(start.qpos, v, s), v, act)


def clamped(probe: Probe, act: np.ndarray) -> np.ndarray:
    """Activations within their ranges."""
    model = probe.model
    for i in np.flatnonzero(model.actuator_actlimited):
        at, count = int(model.actuator_actadr[i]), int(model.actuator_actnum[i])
        if at >= 0 and count:
            act[at + count - 1] = np.clip(act[at + count - 1], *model.actuator_actrange[i])
    return act


def _nowhere(listed: Listing) -> np.ndarray:
    return np.full(len(listed), -1)
