"""Sensors of how far joints and tendons are beyond their limits, and of how fast they get there.

MuJoCo reads them off its list of constraints, in the stages before contact. At that time the list
has our margins, which are wide; here they are read off the list with the user's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast.mujoco._mj import mujoco

_KINDS, _LIMITS = mujoco.mjtSensor, mujoco.mjtConstraint
_READ = {  # kind of constraint, and what is read
    int(_KINDS.mjSENS_JOINTLIMITPOS): (int(_LIMITS.mjCNSTR_LIMIT_JOINT), "pos"),
    int(_KINDS.mjSENS_JOINTLIMITVEL): (int(_LIMITS.mjCNSTR_LIMIT_JOINT), "vel"),
    int(_KINDS.mjSENS_TENDONLIMITPOS): (int(_LIMITS.mjCNSTR_LIMIT_TENDON), "pos"),
    int(_KINDS.mjSENS_TENDONLIMITVEL): (int(_LIMITS.mjCNSTR_LIMIT_TENDON), "vel"),
}


def limit_sensors(model: Any) -> list[int]:
    """Numbers of these sensors."""
    return np.flatnonzero(np.isin(model.sensor_type, list(_READ))).tolist()


def show_limits(user: Any, data: Any, sensors: list[int]) -> None:
    """Write what these sensors show, at the start of the step.

    Args:
        user: the user's model.
        data: with the limits that the user's model lists.
        sensors: see `limit_sensors`.
    """
    if user.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_SENSOR:
        return
    for i in sensors:
        kind, what = _READ[int(user.sensor_type[i])]
        which, cutoff, value = user.sensor_objid[i], user.sensor_cutoff[i], 0.0
        rows = np.flatnonzero((data.efc_type == kind) & (data.efc_id == which))
        if rows.size and what == "pos":
            joint = kind == int(_LIMITS.mjCNSTR_LIMIT_JOINT)
            margin = user.jnt_margin if joint else user.tendon_margin
            value = data.efc_pos[rows[0]] - margin[which]
        elif rows.size:
            value = data.efc_vel[rows[0]]
        if cutoff > 0.0:
            value = min(max(value, -cutoff), cutoff)
        data.sensordata[user.sensor_adr[i]] = value
