"""MuJoCo's pipeline up to the smooth acceleration, from Python: the way of steps with callbacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast.errors import UnsupportedError
from holdfast.mujoco._mj import mujoco
from holdfast.mujoco.private_model import PrivateModel
from holdfast.mujoco.smooth import DISCRETE
from holdfast.mujoco.structs import FLAGS, FULL

_ENERGY = int(mujoco.mjtEnableBit.mjENBL_ENERGY)


def _warnings(data: Any) -> int:
    """How often memory did not suffice for contacts or rows."""
    return sum(data.warning[kind].number for kind in FULL)


def _collide(own: Any, data: Any, widen: Callable[[], None], complete: Callable[[], None]) -> None:
    """Kinematics, inertia, contacts and their rows, in the order of the compiled step."""
    mujoco.mj_fwdKinematics(own, data)
    mujoco.mj_comVel(own, data)
    widen()
    if own.opt.integrator == DISCRETE:
        mujoco.mj_fwdPosition(own, data)
        return
    mujoco.mj_makeM(own, data)
    mujoco.mj_factorM(own, data)
    mujoco.mj_collision(own, data)
    complete()
    mujoco.mj_makeConstraint(own, data)
    mujoco.mj_transmission(own, data)


def forward_in_python(
    private: PrivateModel, data: Any, *, control: bool = True,
    widen: Callable[[], None] | None = None, complete: Callable[[], None] = lambda: None,
) -> None:  # fmt: skip
    """Positions, contacts, velocities, the control callback, and forces but those of contact.

    Args:
        private: own model.
        data: is filled.
        control: whether to call the user's control callback.
        complete: adds contacts that are left out of a list with wide margins.
        widen: sets margins once velocities of bodies are known; None for those of `private`.

    Raises:
        UnsupportedError: contacts are left out, because the model has not enough memory for them.
    """
    own = private.model
    energy, sensors = own.opt.enableflags & _ENERGY, private.sensors
    full = _warnings(data)
    for flag in FLAGS:
        setattr(data, flag, False)
    if widen is None:
        private.collide(data)
    else:
        _collide(own, data, widen, complete)
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
    if (
        own.opt.integrator == DISCRETE
    ):  # the metric's actuator terms are built by the whole stage only
        mujoco.mj_forwardSkip(own, data, mujoco.mjtStage.mjSTAGE_VEL, 1)
        return
    callback = mujoco.get_mjcb_control()
    if callback is not None and control:
        callback(private.user, data)
    mujoco.mj_fwdActuation(own, data)
    mujoco.mj_fwdAcceleration(own, data)
