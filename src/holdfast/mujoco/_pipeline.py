"""MuJoCo's pipeline up to the smooth acceleration, in the order of `mujoco.mj_step`."""

from __future__ import annotations

from typing import Any

from holdfast.errors import UnsupportedError
from holdfast.mujoco._memory import ASKED_FOR, FULL
from holdfast.mujoco._mj import mujoco
from holdfast.mujoco._shadow import Shadow

_PYRAMIDAL = int(mujoco.mjtCone.mjCONE_PYRAMIDAL)
_ENERGY = int(mujoco.mjtEnableBit.mjENBL_ENERGY)


def _warnings(data: Any) -> int:
    """How often memory did not suffice for contacts or rows."""
    return sum(data.warning[kind].number for kind in FULL)


def forward(shadow: Shadow, data: Any, *, control: bool = True) -> None:
    """Positions, contacts, velocities, the control callback, and forces but those of contact.

    Args:
        shadow: own model.
        data: is filled.
        control: whether to call the user's control callback.

    Raises:
        UnsupportedError: contacts are left out, because the model has not enough memory for them.
    """
    own = shadow.model
    energy, sensors = shadow.enabled & _ENERGY, shadow.sensors
    full = _warnings(data)
    for flag in ASKED_FOR:
        setattr(data, flag, False)
    shadow.collide(data, pyramidal=shadow.pyramids and shadow.cone == _PYRAMIDAL)
    if _warnings(data) != full:
        raise UnsupportedError("size/memory", f"is too small for the contacts of this step, and "
                               f"MuJoCo has left some out: {data.narena} bytes; increase "
                               '<size memory="..."/> in the model')  # fmt: skip
    if sensors:
        mujoco.mj_sensorPos(own, data)
    if energy:
        mujoco.mj_energyPos(own, data)
    mujoco.mj_fwdVelocity(own, data)
    if sensors:
        mujoco.mj_sensorVel(own, data)
    if energy:
        mujoco.mj_energyVel(own, data)
    if shadow.discrete:  # the metric's actuator terms are built by the whole stage only
        mujoco.mj_forwardSkip(own, data, mujoco.mjtStage.mjSTAGE_VEL, 1)
        return
    callback = mujoco.get_mjcb_control()
    if callback is not None and control:
        callback(shadow.user, data)
    mujoco.mj_fwdActuation(own, data)
    mujoco.mj_fwdAcceleration(own, data)
