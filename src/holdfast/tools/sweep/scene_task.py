"""The task of a plan that names a scene: simulate and measure it with the values of a case."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.batch.sweep.cases import Case
from holdfast.errors import InputError
from holdfast.mujoco._mj import mujoco
from holdfast.mujoco.stepper import Stepper
from holdfast.tools import files
from holdfast.tools.contact_names import contact_model
from holdfast.tools.sweep.targets import Target, compile_scene

EVERY = 10  # steps between two looks at the friction that contacts need
SETTINGS = ("scene", "duration", "contact", "keyframe", "control")  # parameters may set them, too
NOISE = ("qpos", "qvel", "ctrl")
Watch = Callable[[Any, Any], None]


@dataclass(frozen=True)
class Until:
    """Ends a run when a sensor leaves a range.

    Attributes:
        sensor: name of the sensor.
        below: lower bound of its (first) value.
        above: upper bound.
    """

    sensor: str
    below: float = -math.inf
    above: float = math.inf

    def reached(self, data: Any) -> bool:
        """Whether the sensor is beyond."""
        value = data.sensor(self.sensor).data[0]
        return bool(value < self.below or value > self.above)


@dataclass(frozen=True)
class SceneTask:
    """Simulates a scene once per case.

    Attributes:
        scene: MJCF or URDF file.
        duration: seconds to simulate.
        contact: name of the contact law.
        mu_v: coefficient of the viscous law [N s/m].
        keyframe: name or number of the initial keyframe; the first one by default.
        control: file with controls over time, as for ``holdfast simulate``.
        targets: maps the name of a parameter to the places in the scene that it sets (see
            `targets`); a parameter that is not listed is a place itself.
        noise: standard deviations of the noise added to the initial "qpos", "qvel" and "ctrl",
            drawn with the seed of the case.
        until: condition that ends a run early.
    """

    scene: Path
    duration: float = 1.0
    contact: str = "coulomb"
    mu_v: float = 0.1
    keyframe: str | None = None
    control: Path | None = None
    targets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    noise: Mapping[str, float] = field(default_factory=dict)
    until: Until | None = None

    def __call__(
        self, *, seed: int, watch: Watch | None = None, **parameters: Any
    ) -> dict[str, Any]:
        """Simulate one case and return its results as columns; `watch` is called every step."""
        given = self._settings(parameters)
        model, data = self._start(given, parameters, seed)
        control = None
        if given["control"]:
            control = files.load_control(Path(given["control"]), model)
        contact = contact_model(given["contact"], self.mu_v)
        stepper = Stepper(model, contact, warn=False)
        needed, ended = self._run(
            stepper, data, given["duration"], control, self._held(parameters), watch
        )
        columns = {
            "time": data.time,
            "ended": ended,
            "required_friction": needed,
            "largest_penetration": stepper.largest_penetration,
            "fastest_slip": stepper.fastest_slip,
            "inconsistent_steps": stepper.inconsistent_steps,
            "uncertified_steps": stepper.uncertified_steps,
        }
        if model.nsensor:
            stepper.forward(data)  # a step leaves the sensors of the state before it
        return columns | _sensors(model, data)

    @property
    def stamp(self) -> dict[str, Any]:
        """What results depend on, beside the case."""
        settings = asdict(self) | {"targets": {k: list(v) for k, v in self.targets.items()}}
        settings |= {"scene": self.scene.name, "noise": dict(self.noise)}
        settings["control"] = self.control and self.control.name
        texts = [mujoco.MjSpec.from_file(str(self.scene)).to_xml().encode()]
        texts += [self.control.read_bytes()] if self.control else []
        return settings | {"files": hashlib.sha256(b"\0".join(texts)).hexdigest()[:16]}

    def check(self, case: Case) -> Any:
        """Refuse a case that does not fit the scene, before workers start; return its model."""
        parameters = {name: value for name, value in case.items() if name != "seed"}
        given = self._settings(parameters)
        model, _ = self._start(given, parameters, 0)
        if given["control"]:
            files.load_control(Path(given["control"]), model)
        contact_model(given["contact"], self.mu_v)
        if self.until is not None:
            names = [model.sensor(i).name for i in range(model.nsensor)]
            if self.until.sensor not in names:
                raise InputError("until", f"the scene has no sensor {self.until.sensor!r}; it has "
                                 + (", ".join(names) or "none"))  # fmt: skip
        unknown = self.noise.keys() - NOISE
        if unknown:
            raise InputError("noise", f"{min(unknown)!r} is none of {', '.join(NOISE)}")
        return model

    def _settings(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Settings of the plan, or of the case where it has them."""
        given = {name: parameters.get(name, getattr(self, name)) for name in SETTINGS}
        for name in ("scene", "control"):
            if name in parameters:  # beside the scene of the plan
                given[name] = self.scene.parent / str(parameters[name])
        if not isinstance(given["duration"], int | float) or not 0 < given["duration"] < math.inf:
            raise InputError("duration", f"is {given['duration']}; expected seconds above 0")
        return given

    def _places(self, name: str) -> tuple[Target, ...]:
        return _parsed(tuple(self.targets.get(name, (name,))))

    def _values(self, parameters: Mapping[str, Any]) -> dict[Target, Any]:
        return {
            target: value
            for name, value in parameters.items() if name not in SETTINGS
            for target in self._places(name)
        }  # fmt: skip

    def _held(self, parameters: Mapping[str, Any]) -> dict[Target, Any]:
        values = self._values(parameters)
        return {target: value for target, value in values.items() if target.kind == "ctrl"}

    def _start(self, given: Mapping[str, Any], parameters: Mapping[str, Any], seed: int) -> Any:
        """Model and data of a case, before the first step."""
        values = self._values(parameters)
        model = compile_scene(given["scene"], {t: v for t, v in values.items() if t.in_model})
        data = mujoco.MjData(model)
        key = given["keyframe"]
        files.set_keyframe(model, data, None if key is None else str(key))
        rng = np.random.default_rng(seed)
        noise = {
            name: self.noise.get(name, 0.0) * rng.normal(size=size)
            for name, size in (("qpos", model.nv), ("qvel", model.nv), ("ctrl", model.nu))
        }
        mujoco.mj_integratePos(model, data.qpos, noise["qpos"], 1.0)
        data.qvel += noise["qvel"]
        data.ctrl += noise["ctrl"]
        for target, value in values.items():
            if not target.in_model:
                target.set_in_data(model, data, value)
        mujoco.mj_normalizeQuat(model, data.qpos)
        return model, data

    def _run(
        self,
        stepper: Stepper,
        data: Any,
        duration: float,
        control: Any,
        held: dict[Target, Any],
        watch: Watch | None,
    ) -> tuple[float, bool]:
        """Simulate; the most friction that a pair of bodies needed, and whether it ended early."""
        steps = files.step_count(duration, stepper.model)
        stride = 1 if control or self.until or watch else EVERY
        needed = 0.0
        for k in range(0, steps, stride):
            if control is not None:
                data.ctrl[:] = control(data.time)
                for target, value in held.items():
                    target.set_in_data(stepper.model, data, value)
            done = min(k + stride, steps)
            stepper.step(data, done - k)
            if watch is not None:
                watch(stepper.model, data)
            if done % EVERY == 0 or done == steps:
                needs = [need for need, _ in stepper.contacts.pairs().values()]
                needed = max([needed, *needs])
            if self.until is not None and self.until.reached(data):
                return needed, True
        return needed, False


@lru_cache(maxsize=1024)
def _parsed(texts: tuple[str, ...]) -> tuple[Target, ...]:
    return tuple(Target.parse(text) for text in texts)


def _sensors(model: Any, data: Any) -> dict[str, float]:
    """Values of the sensors at the end."""
    columns: dict[str, float] = {}
    for i in range(model.nsensor):
        values = data.sensor(i).data
        name = f"sensor.{model.sensor(i).name or i}"
        many = len(values) > 1
        columns |= {f"{name}[{k}]" if many else name: float(x) for k, x in enumerate(values)}
    return columns
