"""What is measured of the steps of random scenes."""

from __future__ import annotations

import copy
import time
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import mujoco
import numpy as np

import holdfast as hf
from fuzz.random_scenes import Scene

STATE = mujoco.mjtState.mjSTATE_INTEGRATION
STEPS = 120  # of a scene
DEEP = 1e-5  # penetration that is asked for, relative to the mean size
TOO_DEEP = 1e-4  # the same in all but single steps
ACCURATE = 1e-6  # of distances between surfaces, relative to the mean size
PROBES = 6  # of a scene: states that a stepper without history steps, too


@dataclass
class Spread:
    """Numbers that were seen: how many, the worst and where, and shares above bounds."""

    bounds: tuple[float, ...]
    count: int = 0
    worst: float = 0.0
    where: tuple[int, int] = (-1, -1)  # seed and step
    above: list[int] = field(default_factory=list)
    scenes: list[set[int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.above = [0] * len(self.bounds)
        self.scenes = [set() for _ in self.bounds]

    def see(self, value: float, seed: int, step: int) -> None:
        self.count += 1
        if not value <= self.worst:
            self.worst, self.where = float(value), (seed, step)
        for k, bound in enumerate(self.bounds):
            if not value <= bound:
                self.above[k] += 1
                self.scenes[k].add(seed)

    def __str__(self) -> str:
        shares = ", ".join(
            f"{n} above {bound:g} (in {len(scenes)} scenes)"
            for n, bound, scenes in zip(self.above, self.bounds, self.scenes, strict=True)
        )
        return f"{self.count} seen, {shares}; worst {self.worst:.3g} (seed, step: {self.where})"


@dataclass
class Figures:
    """All that is measured."""

    scenes: int = 0
    steps: int = 0
    seconds: float = 0.0
    uncertified: int = 0
    wild: int = 0  # steps in which a body moves by more than the mean size or turns by a radian,
    # and those after them that begin and end with overlap that such a step has left
    longest: int = 0  # steps in a row with penetration above TOO_DEEP
    penetration: Spread = field(default_factory=lambda: Spread((1e-5, 1e-4, 1e-3)))
    force: Spread = field(default_factory=lambda: Spread((10.0, 100.0)))
    energy: Spread = field(default_factory=lambda: Spread((1e-9, 1e-6)))
    history: Spread = field(default_factory=lambda: Spread((1e-12, 1e-9, 1e-6)))
    exceptions: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    first: dict[str, str] = field(default_factory=dict)  # seed and traceback of each exception
    seeds: dict[str, list[int]] = field(default_factory=dict)

    def failed(self, error: BaseException, seed: int, step: int) -> None:
        """Keep an exception."""
        kind = f"{type(error).__name__}: {str(error)[:90]}"
        box = self.refused if isinstance(error, hf.HoldfastError) else self.exceptions
        name = type(error).__name__
        box[name] += 1
        self.seeds.setdefault(name, []).append(seed)
        if name not in self.first:
            trace = "".join(traceback.format_exception(error)[-2:])
            self.first[name] = f"seed {seed}, step {step}: {kind}\n{trace}"

    def __str__(self) -> str:
        lines = [
            f"{self.scenes} scenes, {self.steps} steps, {self.seconds:.0f} s",
            f"penetration over size           {self.penetration}",
            f"  steps in a row above {TOO_DEEP:g}     {self.longest}",
            f"force over weight + momentum/h  {self.force}",
            f"energy from contact, relative   {self.energy}",
            f"history, relative               {self.history}",
            f"uncertified steps               {self.uncertified}",
            f"wild steps, not judged          {self.wild}",
            f"errors said by name             {dict(self.refused)}",
            f"other exceptions                {dict(self.exceptions)}",
        ]
        return "\n".join(lines)


class Ruler:
    """Measures states on data of its own."""

    def __init__(self, model: Any) -> None:
        self.model = copy.copy(model)
        self.data = mujoco.MjData(self.model)
        self.size = float(model.stat.meansize)
        self.model.opt.ccd_tolerance = min(model.opt.ccd_tolerance, ACCURATE * self.size)
        self.weight = float(np.linalg.norm(model.opt.gravity) * model.body_mass.sum())

    def look(self, data: Any) -> tuple[float, float]:
        """Deepest penetration [m], and energy [J] of a state."""
        own = self.data
        own.qpos[:], own.qvel[:] = data.qpos, data.qvel
        own.mocap_pos[:], own.mocap_quat[:] = data.mocap_pos, data.mocap_quat
        mujoco.mj_fwdPosition(self.model, own)
        mujoco.mj_fwdVelocity(self.model, own)
        mujoco.mj_energyPos(self.model, own)
        mujoco.mj_energyVel(self.model, own)
        deep = 0.0
        for c in own.contact:
            if -c.dist > max(deep, DEEP * self.size):
                deep = max(deep, self.least_depth(c))
            else:
                deep = max(deep, -c.dist)
        return deep, float(own.energy.sum())

    def least_depth(self, contact: Any) -> float:
        """Depth of a contact, or less, if the two geoms are taken apart by less.

        MuJoCo's normals are not always right. If one geom is moved by s, and they are apart by d
        then, to move it by s - d was enough. Where they are nearest then is the next direction.
        """
        (a, b), own, least = contact.geom, self.data, -float(contact.dist)
        n, segment, place = contact.frame[:3].copy(), np.zeros(6), own.geom_xpos[contact.geom[1]]
        before, far = place.copy(), 2.0 * least
        for _ in range(10):
            place += far * n
            apart = mujoco.mj_geomDistance(self.model, own, a, b, 2.0 * far, segment)
            place[:] = before
            if not 0.0 < apart < 2.0 * far:
                break
            least = min(least, far - apart)
            n = segment[3:] - segment[:3]
            n /= np.linalg.norm(n)
        return least

    def gain(self, stepper: hf.Stepper, data: Any, place: np.ndarray, energy: float) -> float:
        """What contact and correction have added in a step, beyond the free motion [J].

        Contact takes energy out of the free motion; a correction may put back what it took.
        """
        outcome = stepper._copy_outcome()
        A, free, v = outcome.A, outcome.free, outcome.velocity
        contact = 0.5 * float(v @ A @ v) - 0.5 * float(free @ A @ free)
        self.data.qpos[:] = place
        mujoco.mj_integratePos(self.model, self.data.qpos, v, float(self.model.opt.timestep))
        self.data.qvel[:] = v
        mujoco.mj_fwdPosition(self.model, self.data)
        mujoco.mj_fwdVelocity(self.model, self.data)
        mujoco.mj_energyPos(self.model, self.data)
        mujoco.mj_energyVel(self.model, self.data)
        return max(contact, 0.0) + max(energy - float(self.data.energy.sum()) + contact, 0.0)

    def momentum(self, speeds: np.ndarray) -> float:
        """Sum of mass times speed [N s]."""
        return float(self.model.body_mass @ speeds)

    def speeds(self) -> np.ndarray:
        """(nbody,) of the last state: speed of centres, and of surfaces by spin [m/s]."""
        twist = np.zeros(6)
        found = np.zeros(self.model.nbody)
        radius = self.size
        for b in range(1, self.model.nbody):
            mujoco.mj_objectVelocity(self.model, self.data, mujoco.mjtObj.mjOBJ_BODY, b, twist, 0)
            found[b] = np.linalg.norm(twist[3:]) + radius * np.linalg.norm(twist[:3])
        return found

    def largest_force(self, data: Any) -> float:
        """Largest contact force [N]."""
        largest, force = 0.0, np.zeros(6)
        for i in range(data.ncon):
            mujoco.mj_contactForce(self.model, data, i, force)
            largest = max(largest, float(np.linalg.norm(force[:3])))
        return largest


def run_scene(scene: Scene, figures: Figures, steps: int = STEPS, probes: int = PROBES) -> None:
    """Step a scene and measure it."""
    begin = time.perf_counter()
    model, data = scene.load()
    rng = np.random.default_rng([scene.seed, 3])
    probed = set(rng.integers(1, steps, size=probes).tolist()) if "mocap" not in scene.kinds else {}
    figures.scenes += 1
    try:
        stepper = hf.Stepper(model, warn=False)
    except hf.HoldfastError as error:
        figures.failed(error, scene.seed, -1)
        return
    ruler = Ruler(model)
    ruler.look(data)
    after, overlaps, in_a_row = ruler.speeds(), False, 0
    h, scale = float(model.opt.timestep), ruler.weight * scene.size
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hf.StepWarning)
        for k in range(steps):
            scene.drive(model, data, k)
            if k in probed:
                probe(model, data, stepper, scene, figures, k)
            try:
                before, place = after, data.qpos.copy()
                stepper.step(data)
            except Exception as error:
                figures.failed(error, scene.seed, k)
                break
            if not (np.isfinite(data.qpos).all() and np.isfinite(data.qvel).all()):
                figures.failed(FloatingPointError("NaN in the state after a step"), scene.seed, k)
                break
            figures.steps += 1
            deep, now = ruler.look(data)
            after = ruler.speeds()
            wild = h * max(before.max(initial=0.0), after.max(initial=0.0)) > ruler.size
            overlaps = (wild or overlaps) and deep > DEEP * ruler.size
            if wild or overlaps:
                figures.wild += 1  # beyond what rows of the start of a step can tell
                continue
            figures.penetration.see(deep / ruler.size, scene.seed, k)
            in_a_row = in_a_row + 1 if deep > TOO_DEEP * ruler.size else 0
            figures.longest = max(figures.longest, in_a_row)
            drive = float(np.abs(data.qfrc_actuator + data.qfrc_passive).sum())
            drive /= min(1.0, ruler.size)
            allowed = ruler.weight + drive + ruler.momentum(before) / h
            figures.force.see(ruler.largest_force(data) / allowed, scene.seed, k)
            if scene.passive and not stepper._get("contact_free"):  # else all is MuJoCo's own
                gain = ruler.gain(stepper, data, place, now)
                figures.energy.see(gain / scale, scene.seed, k)
    figures.uncertified += stepper.uncertified_steps
    figures.seconds += time.perf_counter() - begin


def probe(
    model: Any, data: Any, stepper: hf.Stepper, scene: Scene, figures: Figures, k: int
) -> None:
    """Let a stepper without history take the same step, and compare."""
    fresh, aged = mujoco.MjData(model), mujoco.MjData(model)
    state = np.zeros(mujoco.mj_stateSize(model, STATE))
    mujoco.mj_getState(model, data, state, STATE)
    try:
        for each in (fresh, aged):
            mujoco.mj_setState(model, each, state, STATE)
        hf.Stepper(model, warn=False).step(fresh)
        stepper.step(data)
    except hf.HoldfastError:
        return  # seen by the run itself
    finally:
        mujoco.mj_getState(model, data, np.zeros_like(state), STATE)
        after_q, after_v = data.qpos.copy(), data.qvel.copy()
    h = float(model.opt.timestep)
    speed = float(np.abs(state[1 + model.nq : 1 + model.nq + model.nv]).max(initial=0.0))
    speed = max(speed, 9.81 * h)
    off = float(np.abs(fresh.qvel - after_v).max(initial=0.0)) / speed
    place = float(np.abs(fresh.qpos - after_q).max(initial=0.0)) / (h * speed + scene.size)
    figures.history.see(max(off, place), scene.seed, k)
