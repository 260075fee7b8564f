"""Stage 5: motion and forces written where MuJoCo keeps its own.

Viewers, sensors and scripts then show what was solved for. The user's model lists only contacts
within its own margins; contacts that were listed because the step might reach them, carry no force
and lie outside these margins are marked as MuJoCo marks contacts in the gap: inactive. With the
user's pyramidal cone forces are encoded as MuJoCo encodes them, so that `mj_contactForce` decodes
what was solved for. Of the steps that are taken in one call, forces and contacts are written where
somebody may look at them, see `is_seen`; the state is complete after each.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast._jit import kernel
from holdfast.contact.arrays import Answer, Arrays
from holdfast.contact.system import add_point
from holdfast.linalg.ltl import POINT
from holdfast.linalg.views import vector
from holdfast.mujoco import c_api, structs
from holdfast.mujoco._mj import mujoco
from holdfast.mujoco.constraints import CONTACT, LIMIT, Constraints
from holdfast.mujoco.reach import pair_margin
from holdfast.mujoco.smooth import DISCRETE, PYRAMIDAL, is_seen, make_rows
from holdfast.mujoco.structs import CONTACT_SIZE, contact_at, data_at, floats, integers, words

_LIMIT_JOINT = int(mujoco.mjtConstraint.mjCNSTR_LIMIT_JOINT)
_NO_SENSORS = int(mujoco.mjtDisableBit.mjDSBL_SENSOR)
_SENSORS = mujoco.mjtSensor
JOINT_LIMIT_POS = int(_SENSORS.mjSENS_JOINTLIMITPOS)
JOINT_LIMIT_VEL = int(_SENSORS.mjSENS_JOINTLIMITVEL)
TENDON_LIMIT_POS = int(_SENSORS.mjSENS_TENDONLIMITPOS)
TENDON_LIMIT_VEL = int(_SENSORS.mjSENS_TENDONLIMITVEL)
LIMIT_SENSORS = (JOINT_LIMIT_POS, JOINT_LIMIT_VEL, TENDON_LIMIT_POS, TENDON_LIMIT_VEL)


@kernel
def write_acceleration(s: Any, answer: Answer) -> None:
    """Write qacc, the mean acceleration over the step."""
    d, nv, h = data_at(s.data), s.nv, s.h
    qvel, qacc = floats(d.qvel, 1, nv)[0], floats(d.qacc, 1, nv)[0]
    warmstart, kept = floats(d.qacc_warmstart, 1, nv)[0], floats(s.qacc, 1, nv)[0]
    for j in range(nv):
        qacc[j] = warmstart[j] = kept[j] = (answer.velocity[j] - qvel[j]) / h


@kernel
def write_joint_forces(s: Any, arrays: Arrays, answer: Answer) -> None:
    """Write qfrc_constraint."""
    force, rate = floats(data_at(s.data).qfrc_constraint, 1, s.nv)[0], 1.0 / s.h
    for j in range(s.nv):
        force[j] = 0.0
    for i in range(arrays.law.shape[0]):
        for k in range(arrays.panel[i], arrays.panel[i + 1]):
            t = arrays.panel_tree[k]
            begin, size = arrays.tree[t], arrays.tree[t + 1] - arrays.tree[t]
            at, first = arrays.panel_at[k], arrays.row[i]
            if arrays.row[i + 1] - first == POINT:
                p = vector(answer.impulse, first, POINT)
                x, y, z = p[0] * rate, p[1] * rate, p[2] * rate
                add_point(arrays.values, at, size, x, y, z, force, begin)
                continue
            for r in range(first, arrays.row[i + 1]):
                push = answer.impulse[r] * rate
                if push != 0.0:
                    for j in range(size):
                        force[begin + j] += arrays.values[at + j] * push
                at += size


@kernel
def mark_contacts(s: Any, arrays: Arrays, cs: Constraints, answer: Answer) -> None:
    """Keep contacts within the user's margins or with force, leave out others.

    Compliant contacts are listed as MuJoCo lists them.
    """
    if s.rigid_contacts == 0:
        return
    d = data_at(s.data)
    for i in range(d.ncon):
        c = contact_at(d.contact + i * CONTACT_SIZE)
        c.includemargin = pair_margin(s, c.geom[0], c.geom[1])
    for k in range(cs.kind.shape[0]):
        if cs.kind[k] != CONTACT:
            continue
        c = contact_at(d.contact + cs.source[k] * CONTACT_SIZE)
        pushes = False
        for r in range(arrays.row[k], arrays.row[k + 1]):
            pushes = pushes or answer.impulse[r] != 0.0
        if pushes and c.includemargin <= c.dist:
            c.includemargin = np.nextafter(c.dist, np.inf)
        c.exclude = 1 if c.dist >= c.includemargin else 0


@kernel
def is_listed(s: Any, d: Any) -> bool:
    """Return whether the list has only rows that do not depend on margins, and all of them."""
    if d.nefc == 0 or d.nl > 0 or s.adhesive == 1 or s.integrator == DISCRETE:
        return False
    some = False
    for i in range(d.ncon):
        some = some or contact_at(d.contact + i * CONTACT_SIZE).exclude == 0
    return not some


@kernel
def list_as_user(s: Any, api: Any, arrays: Arrays, cs: Constraints, answer: Answer) -> None:
    """List the constraints as the user's model has them, and limits that are loaded."""
    d, opt = data_at(s.data), structs.option_at(s.opt)
    for i in range(d.ncon):
        contact_at(d.contact + i * CONTACT_SIZE).efc_address = -1
    joint, tendon = floats(s.jnt_margin, 1, s.njnt)[0], floats(s.tendon_margin, 1, s.ntendon)[0]
    structs.copy(s.jnt_margin, s.user_jnt_margin, 8 * s.njnt)
    structs.copy(s.tendon_margin, s.user_tendon_margin, 8 * s.ntendon)
    for k in range(cs.kind.shape[0]):
        if cs.kind[k] == LIMIT and answer.impulse[arrays.row[k]] != 0.0:
            margin = joint if cs.geom[k, 0] == _LIMIT_JOINT else tendon
            which = cs.geom[k, 1]
            margin[which] = max(margin[which], np.nextafter(cs.gap[k], np.inf))
    opt.cone = s.cone
    if is_listed(s, d):
        return
    make_rows(s, api, True)
    c_api.call(api.mj_referenceConstraint, s.model, s.data)


@kernel
def write_forces(s: Any, arrays: Arrays, cs: Constraints, answer: Answer) -> None:
    """Write efc_force, along axes of the contact frames or edges of the friction pyramids."""
    d, h = data_at(s.data), s.h
    force = floats(d.efc_force, 1, d.nefc)[0]
    for r in range(d.nefc):
        force[r] = 0.0
    kept = np.int64(d.ne) + np.int64(d.nf)
    for k in range(cs.kind.shape[0]):
        r = arrays.row[k]
        if cs.kind[k] == CONTACT:
            c = contact_at(d.contact + cs.source[k] * CONTACT_SIZE)
            if c.efc_address >= 0:
                dim = arrays.row[k + 1] - r
                edges = s.cone == PYRAMIDAL
                encode(c, answer.impulse[r : r + dim], h, edges, force)
        elif cs.kind[k] == LIMIT:
            if answer.impulse[r] != 0.0:
                row = find_limit(d, kept, cs.geom[k], cs.gap[k])
                if row >= 0:
                    force[row] = answer.impulse[r] / h
        elif cs.source[k] < kept:
            force[cs.source[k]] = answer.impulse[r] / h


@kernel
def encode(c: Any, impulse: np.ndarray, h: float, edges: bool, force: np.ndarray) -> None:
    """Write the force of one contact as MuJoCo encodes it."""
    start, dim = np.int64(c.efc_address), np.int64(c.dim)
    rate = 1.0 / h
    if not edges or dim == 1:
        for e in range(impulse.shape[0]):
            force[start + e] = impulse[e] * rate
        return
    each = impulse[0] * rate / (dim - 1)
    for e in range(dim - 1):  # edges 2 e and 2 e + 1 lean along tangent e, to and fro
        along = impulse[e + 1] * rate / c.friction[e] if e + 1 < impulse.shape[0] else 0.0
        force[start + 2 * e] = 0.5 * (each + along)
        force[start + 2 * e + 1] = 0.5 * (each - along)


@kernel
def find_limit(d: Any, kept: int, which: np.ndarray, position: float) -> int:
    """Return the row of a limit in the present list, or -1."""
    kinds, ids = integers(d.efc_type, 1, d.nefc)[0], integers(d.efc_id, 1, d.nefc)[0]
    positions = floats(d.efc_pos, 1, d.nefc)[0]
    for r in range(kept, kept + np.int64(d.nl)):
        if kinds[r] == which[0] and ids[r] == which[1] and positions[r] == position:
            return r
    return -1


@kernel
def write_back(s: Any, api: Any, arrays: Arrays, cs: Constraints, answer: Answer) -> None:
    """Write acceleration, forces and contacts as the user's model would list them."""
    write_acceleration(s, answer)
    if not is_seen(s):
        return
    write_joint_forces(s, arrays, answer)
    mark_contacts(s, arrays, cs, answer)
    list_as_user(s, api, arrays, cs, answer)
    write_forces(s, arrays, cs, answer)


@kernel
def read_sensors(s: Any, api: Any) -> None:
    """Sensors of accelerations and forces, and of limits."""
    if s.nsensor == 0:
        return
    c_api.call(api.mj_sensorAcc, s.model, s.data)
    read_limit_sensors(s)


@kernel
def read_limit_sensors(s: Any) -> None:
    """Sensors of limits, which MuJoCo has read off a list with margins that are not the user's."""
    if s.nlimit_sensor > 0 and not s.disabled & _NO_SENSORS:
        sensors = words(s.limit_sensors, 1, s.nlimit_sensor)[0]
        for i in sensors:
            read_limit_sensor(s, i)


@kernel
def read_limit_sensor(s: Any, i: int) -> None:
    """Write what a sensor of a limit shows of the list that the user's margins give."""
    d = data_at(s.data)
    kind = integers(s.sensor_type, 1, s.nsensor)[0, i]
    which = integers(s.sensor_objid, 1, s.nsensor)[0, i]
    cutoff = floats(s.sensor_cutoff, 1, s.nsensor)[0, i]
    joint = kind in (JOINT_LIMIT_POS, JOINT_LIMIT_VEL)
    kinds, ids = integers(d.efc_type, 1, d.nefc)[0], integers(d.efc_id, 1, d.nefc)[0]
    value, begin = 0.0, np.int64(d.ne) + np.int64(d.nf)
    for r in range(begin, begin + np.int64(d.nl)):
        if ids[r] != which or (kinds[r] == _LIMIT_JOINT) != joint:
            continue
        if kind == JOINT_LIMIT_POS:
            value = (
                floats(d.efc_pos, 1, d.nefc)[0, r] - floats(s.user_jnt_margin, 1, s.njnt)[0, which]
            )
        elif kind == TENDON_LIMIT_POS:
            value = (
                floats(d.efc_pos, 1, d.nefc)[0, r]
                - floats(s.user_tendon_margin, 1, s.ntendon)[0, which]
            )
        else:
            value = floats(d.efc_vel, 1, d.nefc)[0, r]
        break
    if cutoff > 0.0:
        value = min(max(value, -cutoff), cutoff)
    address = integers(s.sensor_adr, 1, s.nsensor)[0, i]
    floats(d.sensordata + 8 * np.int64(address), 1, 1)[0, 0] = value


@kernel
def integrate(s: Any, api: Any) -> None:
    """Advance the state with exactly the velocity that was solved for.

    `mj_Euler` of a model without implicit damping integrates the velocity that it finds if the
    acceleration is zero.
    """
    d, nv = data_at(s.data), s.nv
    qvel, qacc = floats(d.qvel, 1, nv)[0], floats(d.qacc, 1, nv)[0]
    warmstart, velocity = floats(d.qacc_warmstart, 1, nv)[0], floats(s.velocity, 1, nv)[0]
    kept = floats(s.qacc, 1, nv)[0]
    for j in range(nv):
        qvel[j], qacc[j] = velocity[j], 0.0
    c_api.call(api.mj_Euler, s.model, s.data)
    for j in range(nv):
        qacc[j] = warmstart[j] = kept[j]
