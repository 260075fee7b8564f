"""What a model or a state may not contain, refused by name."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

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


MOST = 2**62  # a number that compiled code can count to

_SIZES = (
    ("qpos", "nq"), ("qvel", "nv"), ("act", "na"), ("ctrl", "nu"), ("xpos", "nbody"),
    ("geom_xpos", "ngeom"), ("site_xpos", "nsite"), ("mocap_pos", "nmocap"),
    ("sensordata", "nsensordata"), ("ten_length", "ntendon"), ("eq_active", "neq"),
    ("userdata", "nuserdata"), ("cam_xpos", "ncam"), ("light_xpos", "nlight"),
    ("M", "nC"), ("bvh_active", "nbvh"),
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
            raise UnsupportedError(
                f"equality/{name}", "constrains a flex, and flexes are not supported"
            )
    if model.flg_surfacevel and np.any(model.geom_surfacevel):
        geoms = np.flatnonzero(np.any(model.geom_surfacevel != 0.0, axis=1))
        names = ", ".join(repr(model.geom(i).name or int(i)) for i in geoms[:3])
        raise UnsupportedError("geom/surfacevel", f"is set at {names}: a surface that moves "
                               "without its body is not supported yet; give the belt a slide "
                               "joint")  # fmt: skip


def belongs(model: Any, data: Any) -> bool:
    """Whether data are of a model.

    MuJoCo's signature says so; models that were pickled have none, and are known by their sizes.
    """
    if data.signature != model.signature:
        return False
    return model.signature != 0 or all(
        len(getattr(data, array)) == getattr(model, size) for array, size in _SIZES
    )


def check_data(model: Any, data: Any) -> None:
    """Refuse what are not data of the model: MuJoCo would read and write beyond their arrays."""
    if not isinstance(data, mujoco.MjData):
        raise InputError("data", f"is {type(data).__name__}; expected mujoco.MjData")
    if not belongs(model, data):
        raise InputError("data", "belong to another model; make them with MjData(model)")


def whole_number(name: str, value: Any) -> int:
    """A whole number that is not negative, as an int; anything else is refused by name."""
    try:
        number = operator.index(value)
    except TypeError:
        number = -1
    if number < 0 or isinstance(value, bool | np.bool_):
        raise InputError(name, f"is {value!r}; expected a whole number of at least 0")
    if number > MOST:
        raise InputError(name, f"is {value!r}; expected a whole number of at most {MOST}")
    return number


def check_timestep(model: Any) -> None:
    """Refuse a time step that is no length of time."""
    h = model.opt.timestep
    if not 0.0 < h < np.inf:
        raise InputError("model.opt.timestep", f"is {h}; it must be positive and finite")


def check_finite(data: Any) -> None:
    """Refuse a state with NaN or infinity, by name."""
    for name in _STATE:
        if not np.isfinite(getattr(data, name)).all():
            raise InputError(f"data.{name}", "is not finite; set a valid state before stepping")
