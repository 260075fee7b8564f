"""Places in a scene that a parameter can set: model fields, controls, initial values.

geom.NAME.FIELD[i]    of a geom, body, joint, site, actuator, tendon, equality, pair, ...: as in
                      MuJoCo's MjSpec, changed before the model is compiled
option.FIELD[i]       of the simulation, as option.timestep or option.gravity[2]
ctrl.ACTUATOR         a control, constant during the run
qpos.JOINT[i]         initial position of a joint; i only for free and ball joints
qvel.JOINT[i]         initial velocity of a joint
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from holdfast.errors import InputError
from holdfast.mujoco._mj import mujoco

ELEMENTS = {
    "geom": "geoms", "body": "bodies", "joint": "joints", "site": "sites",
    "actuator": "actuators", "tendon": "tendons", "equality": "equalities", "pair": "pairs",
    "mesh": "meshes", "sensor": "sensors", "camera": "cameras", "light": "lights",
}  # fmt: skip
STARTS = ("ctrl", "qpos", "qvel")
FORM = re.compile(r"(?P<kind>[a-z]+)\.(?P<rest>.+?)(\[(?P<index>\d+)\])?")


@dataclass(frozen=True)
class Target:
    """A place in a scene.

    Attributes:
        text: as written.
        kind: "geom", "option", "ctrl" and so on.
        name: of the element; empty for options.
        field: of the element; empty for controls and start values.
        index: index into the field, or None.
    """

    text: str
    kind: str
    name: str
    field: str
    index: int | None

    @classmethod
    def parse(cls, text: str) -> Target:
        """Parse the name of a place."""
        match = FORM.fullmatch(text)
        kinds = (*ELEMENTS, "option", *STARTS)
        if match is None or match["kind"] not in kinds:
            raise InputError(text, "is not a place in a scene; expected a name such as "
                             "geom.NAME.friction[0], option.timestep, ctrl.NAME or qpos.NAME[2] "
                             f"(one of {', '.join(kinds)})")  # fmt: skip
        kind, rest = match["kind"], match["rest"]
        index = None if match["index"] is None else int(match["index"])
        if kind == "option":
            return cls(text, kind, "", rest, index)
        if kind in STARTS:
            return cls(text, kind, rest, "", index)
        name, _, field = rest.rpartition(".")
        if not name:
            raise InputError(text, f"names no field; expected {kind}.{rest}.FIELD")
        return cls(text, kind, name, field, index)

    @property
    def in_model(self) -> bool:
        """Whether the model must be compiled again when it changes."""
        return self.kind not in STARTS

    def set_in_spec(self, spec: Any, value: Any) -> None:
        """Set it in an `MjSpec`."""
        element = spec.option if self.kind == "option" else getattr(spec, self.kind)(self.name)
        if element is None:
            names = [each.name for each in getattr(spec, ELEMENTS[self.kind]) if each.name]
            raise InputError(
                self.text,
                f"the scene has no {self.kind} {self.name!r}; it has "
                + (", ".join(names) or f"none with a name (give the {self.kind} one)"),
            )
        if self.field.startswith("_") or not hasattr(element, self.field):
            raise InputError(self.text, f"{self.kind} has no field {self.field!r} in MuJoCo's "
                             "MjSpec")  # fmt: skip
        if self.kind == "body" and self.field == "mass" and not element.explicitinertial:
            raise InputError(self.text, f"the mass of body {self.name!r} is that of its geoms; set "
                             "geom.NAME.mass")  # fmt: skip
        there = getattr(element, self.field)
        if isinstance(there, np.ndarray):
            self._put(there, value)
            return
        if self.index is not None:
            raise InputError(self.text, f"{self.field} is a single value; remove [{self.index}]")
        try:
            setattr(element, self.field, value)
        except (TypeError, ValueError) as error:
            raise InputError(self.text, f"cannot be {value!r}: it is {there!r}") from error

    def set_in_data(self, model: Any, data: Any, value: Any) -> None:
        """Set it in an `MjData`, after a keyframe."""
        kind = "actuator" if self.kind == "ctrl" else "joint"
        try:
            view = getattr(data, kind)(self.name)
        except KeyError:
            count = model.nu if kind == "actuator" else model.njnt
            names = [name for i in range(count) if (name := getattr(model, kind)(i).name)]
            raise InputError(self.text, f"the scene has no {kind} {self.name!r}; it has "
                             + (", ".join(names) or "none with a name")) from None  # fmt: skip
        self._put(getattr(view, self.kind), value)

    def _put(self, array: np.ndarray, value: Any) -> None:
        if self.index is None and array.size != 1:
            raise InputError(
                self.text, f"has {array.size} values; choose one, for example {self.text}[0]"
            )
        index = self.index or 0
        if index >= array.size:
            raise InputError(self.text, f"has only {array.size} values, counted from 0")
        if isinstance(value, bool | str) or value is None:
            raise InputError(self.text, f"is {value!r}; expected a number")
        array.flat[index] = value


def compile_scene(scene: Any, values: dict[Target, Any]) -> Any:
    """Compile a scene file with these values set."""
    try:
        spec = mujoco.MjSpec.from_file(str(scene))
        for target, value in values.items():
            target.set_in_spec(spec, value)
        return spec.compile()
    except (ValueError, FileNotFoundError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError("scene", f"{scene} cannot be compiled: {error}") from error
