"""What a model or a state may not contain, refused by name."""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast._jit import entry, fast_kernel
from holdfast.errors import InputError, UnsupportedError
from holdfast.mujoco._mj import mujoco

_FLEX_EQUALITIES = {
    int(mujoco.mjtEq.mjEQ_FLEX): "flex",
    int(mujoco.mjtEq.mjEQ_FLEXVERT): "flexvert",
    int(mujoco.mjtEq.mjEQ_FLEXSTRAIN): "flexstrain",
}

_STATE = (
    "time", "qpos", "qvel", "act", "ctrl", "qfrc_applied", "xfrc_applied", "mocap_pos",
    "mocap_quat",
)  # fmt: skip


def refuse(model: Any) -> None:
    """Raise `UnsupportedError` if the model holds what exact contact cannot treat."""
    if model.nflex:
        name = mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_FLEX, 0) or "without a name"
        raise UnsupportedError("flex", f"the model has {model.nflex} (first: {name}): deformable "
                               "bodies are not rigid contact; use mujoco.mj_step")  # fmt: skip
    for kind in np.unique(model.eq_type).tolist():
        if kind in _FLEX_EQUALITIES:
            name = _FLEX_EQUALITIES[kind]
            raise UnsupportedError(f"equality/{name}", "constrains a flex, and flexes are refused")
    if model.flg_surfacevel and np.any(model.geom_surfacevel):
        geoms = np.flatnonzero(np.any(model.geom_surfacevel != 0.0, axis=1))
        names = ", ".join(repr(model.geom(i).name or int(i)) for i in geoms[:3])
        raise UnsupportedError("geom/surfacevel", f"is set at {names}: a surface that moves "
                               "without its body is not supported yet; give the belt a slide "
                               "joint")  # fmt: skip


def check_data(model: Any, data: Any) -> None:
    """Refuse what are not data of the model: MuJoCo would read and write beyond their arrays."""
    if not isinstance(data, mujoco.MjData):
        raise InputError("data", f"is {type(data).__name__}; expected mujoco.MjData")
    if data.signature != model.signature:
        raise InputError("data", "belong to another model; make them with MjData(model)")


@fast_kernel
def _rest(numbers: np.ndarray) -> float:
    """Return 0 if all numbers are finite, else NaN."""
    rest = 0.0
    for x in numbers:
        rest += x - x
    return rest


@entry
def is_finite(numbers: np.ndarray) -> bool:
    """Whether all numbers are finite."""
    return _rest(numbers) == 0.0


def check_finite(data: Any) -> None:
    """Refuse a state with NaN or infinity, by name."""
    for name in _STATE:
        if not np.isfinite(getattr(data, name)).all():
            raise InputError(f"data.{name}", "is not finite; set a valid state before stepping")
