"""The walking quadruped under several contact models, each walk measured in the same way.

What is measured of a step:

- *slip*: how fast the material points of a foot that are pressed on the ground slide, by the
  velocity after the step and the contact points before it, the fastest contact of a foot; times
  the step, summed up over a stance, from the first step on that begins with the foot on the
  ground, also where the foot has left the ground since;
- *touchdown*: the same in the one step before, with which the foot comes down. It is in the air
  until that step ends, and may meet the ground without friction;
- *aloft*: how many steps of its stances a foot is off the ground;
- *drift*: how far the points that slip is about really moved along the ground, summed up as
  vectors: it has what position correction and the second order of the time step add;
- *time*: CPU time of this thread, of the steps alone;
- *work*: positive mechanical power of the servos, torque times speed at the middle of the step.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from holdfast.errors import HoldfastError
from holdfast.experiments.locomotion.gait import Gait, Trot, heading
from holdfast.experiments.locomotion.terrain import Terrain
from holdfast.experiments.locomotion.walker import KP, KV, walker
from holdfast.mujoco._mj import mujoco
from holdfast.tools.scenes import LEGS

clock = time.thread_time  # [s] CPU time: what else the machine does is not counted
TURN = 25  # steps of one walk before the next has its turn
TORQUE = 4.0  # limit of the servos [N m]
TOPPLED = 0.5  # cosine of the tilt beyond which the robot has fallen


@dataclass(frozen=True)
class Course:
    """Where and how to walk.

    Attributes:
        terrain: the ground.
        gait: how to walk.
        start: of the base [m].
        heading: of the base at the start [rad].
    """

    terrain: Terrain
    gait: Gait
    start: tuple[float, float]
    heading: float = 0.0

    def model(self) -> Any:
        """The scene, compiled."""
        xml = walker(self.terrain, start=self.start, heading=self.heading)
        return mujoco.MjModel.from_xml_string(xml)


@dataclass(frozen=True)
class Press:
    """A foot that is pressed on the ground: which, where, and the normal there."""

    foot: int
    point: np.ndarray
    normal: np.ndarray

    @classmethod
    def of(cls, contact: Any, i: int, foot: int) -> Press:
        """Contact i of a list."""
        return cls(foot, contact.pos[i].copy(), contact.frame[i, :3].copy())


class Walk:
    """One walk, step by step.

    Attributes:
        times: of the steps so far [s].
        solves: times of the contact solves so far [s].
        contacts: how many contacts each of them had.
        failures: solves that ended with an error.
        fallbacks: solves that the method gave to another one.
        jammed: steps in which no consistent grip was found, see `ContactSolution.consistent`.
        problem: why the walk ended early.
    """

    def __init__(self, course: Course) -> None:
        self.model = course.model()
        self.data, self.scratch = mujoco.MjData(self.model), mujoco.MjData(self.model)
        mujoco.mj_resetDataKeyframe(self.model, self.data, 0)
        self.trot = Trot(course.gait, course.terrain, KV / KP)
        self.times: list[float] = []
        self.solves: list[float] = []
        self.contacts: list[int] = []
        self.failures = self.fallbacks = self.jammed = self.falls = self.aloft = 0
        self.problem = ""
        self.work = 0.0
        self.slip: dict[tuple[int, int], float] = {}
        self.touchdown: dict[tuple[int, int], float] = {}
        self.drift: dict[tuple[int, int], np.ndarray] = {}
        self.path: list[list[float]] = []  # of the first foot: x, y, z, slip, touchdown
        self.poses: list[list[float]] = []
        self._start = np.array(self.data.qpos)
        self._feet = np.array([self.model.geom(f"{leg}_foot").id for leg in LEGS])
        self._shanks = np.array(self.model.geom_bodyid)[self._feet]
        self._trunk = self.model.body("trunk").id
        self._touches = np.zeros(4, dtype=bool)
        self._down = False
        self._since = np.zeros(2)
        self._kinematics()

    def _step(self) -> None:
        raise NotImplementedError

    def _pressed(self) -> list[Press]:
        """Feet that were pressed on the ground in the last step, as it began."""
        found, force = [], np.zeros(6)
        contact = self.data.contact
        for i in range(self.data.ncon):
            foot = np.flatnonzero(self._feet == contact.geom[i].max())
            if foot.size and contact.efc_address[i] >= 0:
                mujoco.mj_contactForce(self.model, self.data, i, force)
                if force[0] > 0.0:
                    found.append(Press.of(contact, i, int(foot[0])))
        return found

    def advance(self) -> None:
        """One step, unless the walk has ended."""
        if self.problem:
            return
        data = self.data
        data.ctrl[:] = self.trot(data.time, data.qpos, self._touches)
        q, v = data.qpos[7:].copy(), data.qvel.copy()
        torque = np.clip(KP * (data.ctrl - q) - KV * v[6:], -TORQUE, TORQUE)
        begin = clock()
        try:
            self._step()
        except HoldfastError as error:
            self.failures += 1
            self.problem = f"{type(error).__name__} at {data.time:.3f} s: {error}"
            return
        self.times.append(clock() - begin)
        power = torque * 0.5 * (v[6:] + data.qvel[6:])
        self.work += float(np.maximum(power, 0.0).sum()) * self.model.opt.timestep
        self._measure()

    def sample(self) -> None:
        """Keep the place of the first foot, and how far it slid since then, also touching down."""
        place = np.round(self.scratch.geom_xpos[self._feet[0]], 7).tolist()
        self.path.append([*place, *(float(f"{moved:.4g}") for moved in self._since)])
        self._since[:] = 0.0

    def pose(self) -> None:
        """Keep the position."""
        self.poses.append(self.data.qpos.tolist())

    def _kinematics(self) -> None:
        self.scratch.qpos[:] = self.data.qpos
        mujoco.mj_kinematics(self.model, self.scratch)

    def _measure(self) -> None:
        h, pressed = self.model.opt.timestep, self._pressed()
        speeds = [self._slid(press) for press in pressed]
        place = self.scratch.xpos[self._shanks].copy()
        turn = self.scratch.xmat[self._shanks].reshape(4, 3, 3).copy()
        self._kinematics()
        slid, moved = np.zeros(4), np.zeros((4, 3))
        for press, speed in zip(pressed, speeds, strict=True):
            k, body = press.foot, self._shanks[press.foot]
            local = turn[k].T @ (press.point - place[k])
            now = self.scratch.xpos[body] + self.scratch.xmat[body].reshape(3, 3) @ local
            step = along(now - press.point, press.normal)
            length = float(np.linalg.norm(step)) if speed is None else h * speed
            if length >= slid[k]:
                slid[k], moved[k] = length, step
        self._touches[:] = False
        for k in {press.foot for press in pressed}:
            self._touches[k], stance = True, (k, int(self.trot.cycle[k]))
            if self.trot.lands[k]:
                self.touchdown[stance] = slid[k]
            else:
                self.slip[stance] = self.slip.get(stance, 0.0) + slid[k]
                self.drift[stance] = self.drift.get(stance, np.zeros(3)) + moved[k]
        self._since[int(self.trot.lands[0])] += slid[0]
        stands = (self.trot.cycle > 0) & ~self.trot.swings & ~self.trot.lands
        self.aloft += int(np.count_nonzero(stands & ~self._touches))
        self._look_for_falls()

    def _slid(self, press: Press) -> float | None:
        """Sliding speed of a pressed point; `data` has the kinematics of before the step."""
        J = np.zeros((3, self.model.nv))
        mujoco.mj_jac(self.model, self.data, J, None, press.point, self._shanks[press.foot])
        return float(np.linalg.norm(along(J @ self.data.qvel, press.normal)))

    def _look_for_falls(self) -> None:
        _, x, y, _ = self.data.qpos[3:7].tolist()
        bodies = self.model.geom_bodyid[self.data.contact.geom]
        on_trunk = (bodies == self._trunk).any(axis=1) & (self.data.contact.efc_address >= 0)
        down = bool(on_trunk.any()) or 1.0 - 2.0 * (x * x + y * y) < TOPPLED
        self.falls += down and not self._down
        self._down = down

    @property
    def distance(self) -> float:
        """Walked along x [m]."""
        return float(self.data.qpos[0] - self._start[0])

    def summary(self) -> dict[str, Any]:
        """What the walk was like, as JSON can hold it."""
        stances = [key for key in self.slip if key[1] > 0]  # not the standing before
        slips = [self.slip[key] for key in stances]
        drifts = [float(np.linalg.norm(self.drift[key])) for key in stances]
        return {
            "seconds": float(self.data.time),
            "running": sum(self.times),
            "steps": len(self.times),
            "median_step": median(self.times),
            "solves": len(self.solves),
            "mean_solve": sum(self.solves) / len(self.solves) if self.solves else None,
            "median_solve": median(self.solves),
            "contacts": [min(self.contacts, default=0), mean(self.contacts),
                         max(self.contacts, default=0)],
            "failures": self.failures,
            "fallbacks": self.fallbacks,
            "jammed": self.jammed,
            "problem": self.problem,
            "stances": len(stances),
            "slip_mean": mean(slips),
            "slip_most": max(slips, default=0.0),
            "touchdown_most": max(self.touchdown.values(), default=0.0),
            "aloft": self.aloft,
            "drift_most": max(drifts, default=0.0),
            "distance": self.distance,
            "sideways": float(self.data.qpos[1]),
            "heading": float(np.degrees(heading(self.data.qpos))),
            "falls": self.falls,
            "work": self.work,
            "path": self.path,
            "poses": self.poses,
            "solve_times": histogram(self.solves),
            "step_times": histogram(self.times),
        }  # fmt: skip


def in_turns(
    walks: list[Walk], seconds: float, samples: int, report: Callable[[float], None]
) -> None:
    """Advance all walks, each in its turn, so that their times are comparable.

    Turns are of several steps, so that a method finds its own data in the processor's cache.
    """
    steps = max(1, round(seconds / walks[0].model.opt.timestep))
    every = max(1, steps // samples)
    for walk in walks:
        walk.pose()
    for begin in range(0, steps, TURN):
        report(begin / steps)
        for walk in walks:
            for k in range(begin + 1, min(begin + TURN, steps) + 1):
                walk.advance()
                if k % every == 0:
                    walk.sample()
                if k in (steps // 2, steps):
                    walk.pose()
    report(1.0)


BINS = np.logspace(-6, 0, 181)  # [s] edges of the histograms


def histogram(times: list[float]) -> list[int]:
    """How many times fall between the edges of `BINS`; those outside count at the ends."""
    inside = np.clip(times, BINS[0], np.nextafter(BINS[-1], 0.0))
    return np.histogram(inside, BINS)[0].tolist()


def along(vector: np.ndarray, normal: np.ndarray) -> np.ndarray:
    """The part along a surface."""
    return vector - (vector @ normal) * normal


def median(values: list[float]) -> float | None:
    """None of no values."""
    return float(np.median(values)) if values else None


def mean(values: list[Any]) -> float:
    """Zero of no values."""
    return float(np.mean(values)) if values else 0.0
