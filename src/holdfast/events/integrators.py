"""Motion from one event towards the next: a state for every time up to the end of a step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from holdfast.events.contact_set import Listing
from holdfast.events.nearest_motion import Solve
from holdfast.events.state import Probe, Smooth, State
from holdfast.events.sustained import Grip, accelerate

Path = Callable[[float], State]


class Flow(Protocol):
    """A motion that starts at a state.

    Attributes:
        a: acceleration at the start.
        force: (nefc,) along all rows there.
        loaded: (k,) sustained contacts that carry load.
        rough: change of velocity that is not known well in the last step, as part of the speed.
        longest: time for which it holds [s].
        start: state.
        name: of the integrator.
    """

    name: str
    start: State
    a: np.ndarray
    force: np.ndarray
    loaded: np.ndarray
    rough: float
    longest: float

    def at(self, s: float) -> State:
        """The state after s seconds."""
        ...

    def path(self, s: float, end: State) -> Path:
        """States on the way to `end`, which is `at(s)`, to the same order and with less work."""
        ...


class RungeKutta:
    """Four stages, each with its own contact forces at acceleration level.

    Positions are integrated in a chart at the start (`Probe.chart_rate`), so that rotations in
    space are of fourth order, too. The first stage serves all lengths of a step.

    Attributes:
        a, force: of the first stage.
        loaded: (k,) sustained contacts that carried force in the last stage that was computed.
        rough: change of velocity that the two middle stages of the last step disagree about, as
            part of the speed; they agree to second order in its length where the motion is smooth.
    """

    name, longest = "rk4", np.inf

    def __init__(
        self, probe: Probe, start: State, listed: Listing, smooth: Smooth, grip: Grip, solve: Solve
    ) -> None:
        self.probe, self.start, self.listed, self.grip = probe, start, listed, grip
        self.act_dot, self.solve = smooth.act_dot, solve
        self.a, normal, self.force = accelerate(probe, start, listed, smooth, grip, solve)
        self.loaded, self.rough = normal > 0.0, 0.0
        self._free = not (len(grip.sustained) or listed.ne or listed.nf)
        self._x = np.zeros_like(start.qvel)
        self._speed = max(float(np.abs(start.qvel).max(initial=0.0)), float(np.sqrt(listed.size)))

    def at(self, s: float) -> State:
        """One step of length s from the start."""
        if s == 0.0:
            return self.start
        start, rate = self.start, self.probe.chart_rate
        v1, a1, u1 = start.qvel, self.a, self.act_dot
        x2, v2 = 0.5 * s * v1, v1 + 0.5 * s * a1
        a2, u2 = self._stage(0.5 * s, x2, v2, start.act + 0.5 * s * u1)
        kx2 = rate(x2, v2)
        x3, v3 = 0.5 * s * kx2, v1 + 0.5 * s * a2
        a3, u3 = self._stage(0.5 * s, x3, v3, start.act + 0.5 * s * u2)
        kx3 = rate(x3, v3)
        self.rough = s * float(np.abs(a3 - a2).max(initial=0.0)) / self._speed
        x4, v4 = s * kx3, v1 + s * a3
        a4, u4 = self._stage(s, x4, v4, start.act + s * u3)
        kx4 = rate(x4, v4)
        self._x = s / 6.0 * (v1 + 2.0 * (kx2 + kx3) + kx4)
        v = v1 + s / 6.0 * (a1 + 2.0 * (a2 + a3) + a4)
        act = self.probe.clamp(start.act + s / 6.0 * (u1 + 2.0 * (u2 + u3) + u4))
        return State(start.time + s, self.probe.move(start.qpos, self._x), v, act)

    def _stage(
        self, s: float, x: np.ndarray, v: np.ndarray, act: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        probe, start = self.probe, self.start
        state = State(start.time + s, probe.move(start.qpos, x), v, act)
        if self._free:
            probe.look(state)
            smooth = probe.smooth()
            return probe.accelerate(smooth.f), smooth.act_dot
        listed = probe.list(state)
        smooth = probe.smooth()
        grip = self.grip.moved(self.listed.match(listed))
        push = accelerate(probe, state, listed, smooth, grip, self.solve)
        self.loaded = push.normal > 0.0
        return push.a, smooth.act_dot

    def path(self, s: float, end: State) -> Path:
        """Cubics through position and velocity at both ends."""
        start, move, x = self.start, self.probe.move, self._x
        from_rate, to_rate = s * start.qvel, s * self.probe.chart_rate(x, end.qvel)

        def at(part: float) -> State:
            t = part / s
            along = t * t * (3.0 - 2.0 * t) * x
            along += t * (1.0 - t) * ((1.0 - t) * from_rate - t * to_rate)
            v = start.qvel + t * (end.qvel - start.qvel)
            return State(start.time + part, move(start.qpos, along), v, start.act)

        return at


class SymplecticEuler:
    """Along the velocity after the step, which was solved for at velocity level.

    Within the step the velocity grows in proportion to time, as the impulse of a constant force
    does; at its end the step is that of symplectic Euler.

    Attributes:
        rough: change of velocity by inertial forces, see `Gyroscopic.correct`.
    """

    name = "symplectic_euler"

    def __init__(
        self, probe: Probe, start: State, act_dot: np.ndarray, after: np.ndarray, h: float,
        impulse: np.ndarray, loaded: np.ndarray, turned: float,
    ) -> None:  # fmt: skip
        self.probe, self.start, self.act_dot, self.after, self.h = probe, start, act_dot, after, h
        self.a, self.force = (after - start.qvel) / h, impulse / h
        self.loaded, self.rough, self.longest = loaded, turned, h

    def at(self, s: float) -> State:
        """The state after s seconds."""
        start = self.start
        v = start.qvel + (s / self.h) * (self.after - start.qvel) if s < self.h else self.after
        act = self.probe.clamp(start.act + s * self.act_dot)
        return State(start.time + s, self.probe.move(start.qpos, v, s), v, act)

    def path(self, s: float, end: State) -> Path:
        """The motion itself."""
        return self.at
