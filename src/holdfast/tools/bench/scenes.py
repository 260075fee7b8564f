"""Scenes that are stepped, settled and made ready once."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from holdfast.mujoco._mj import mujoco
from holdfast.mujoco.stepper import Stepper
from holdfast.tools import scenes

NOSLIP = {"cone": "mjCONE_ELLIPTIC", "impratio": 10.0, "noslip_iterations": 50}
STATE = int(mujoco.mjtState.mjSTATE_INTEGRATION)


@dataclass(frozen=True)
class Scene:
    """A scene at rest, or nearly so.

    Attributes:
        name: in tables.
        xml: as MJCF.
        model: compiled.
        data: where all begin.
        servos: whether position servos hold it, which Drake does not read from MJCF.
    """

    name: str
    xml: str
    model: Any
    data: Any
    servos: bool = False

    def with_noslip(self) -> Any:
        """The model with MuJoCo's recipe against slip."""
        model = copy.copy(self.model)
        for name, value in NOSLIP.items():
            value = getattr(mujoco.mjtCone, value) if isinstance(value, str) else value
            setattr(model.opt, name, value)
        return model


def load(name: str) -> Scene:
    """A scene by name, after the steps that it takes to settle."""
    make, settle, servos = SCENES[name]
    spec = mujoco.MjSpec.from_string(make())
    spec.modelname = spec.modelname or name
    for i, body in enumerate(spec.bodies):
        body.name = body.name or f"body{i}"
    model = spec.compile()
    data = mujoco.MjData(model)
    if model.nkey:
        mujoco.mj_resetDataKeyframe(model, data, 0)
    Stepper(model, warn=False).step(data, settle)
    return Scene(name, spec.to_xml(), model, data, servos)


# How to make it, steps to settle, and whether it has servos.
SCENES: dict[str, Any] = {
    "grasp": (scenes.row_of_boxes, 10, False),
    "quadruped": (scenes.quadruped, 200, True),
    "pile of 20": (lambda: scenes.pile(20), 800, False),
}
