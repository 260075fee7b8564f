"""Our forces put where MuJoCo's stand, so that viewers, sensors and scripts show the truth.

Contacts that were listed because a step might reach them, but carry no force and lie outside the
user's own margin, are marked as MuJoCo marks contacts in the gap: inactive. With the user's
pyramidal cone the forces are encoded as MuJoCo encodes them, so that `mj_contactForce` decodes
what was solved for.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast._jit import entry
from holdfast.contact.solution import ContactSolution
from holdfast.mujoco._limit_sensors import show_limits
from holdfast.mujoco._mj import mujoco
from holdfast.mujoco._shadow import Shadow
from holdfast.mujoco.assemble import Rows

_PYRAMIDAL = int(mujoco.mjtCone.mjCONE_PYRAMIDAL)


def publish(
    shadow: Shadow, data: Any, rows: Rows, velocity: np.ndarray, impulse: np.ndarray
) -> None:
    """Write qacc, efc_force, qfrc_constraint and the sensors of the acceleration stage.

    Args:
        shadow: own model.
        data: at the start of the step, after `gather`.
        rows: of this step.
        velocity: after the step.
        impulse: (nefc,) along ``rows.efc_J``.
    """
    user, contact = shadow.user, data.contact
    show_motion(
        rows.efc_J, rows.v, velocity, impulse, data.qacc, data.qacc_warmstart,
        data.qfrc_constraint, rows.h,
    )  # fmt: skip
    left_out = mark_contacts(
        contact.geom, contact.dist, user.geom_margin, rows.contact, rows.first, rows.dim, impulse,
        contact.includemargin, contact.exclude,
    )  # fmt: skip
    show(shadow, data, rows.contact, rows.first, rows.limit, impulse, left_out=left_out > 0)


def show(
    shadow: Shadow,
    data: Any,
    listed: np.ndarray,
    first: np.ndarray,
    limits: np.ndarray,
    impulse: np.ndarray,
    *,
    left_out: bool,
) -> None:
    """Write efc_force, for the constraints as the user's model lists them, and the sensors.

    Args:
        shadow: own model.
        data: with contacts marked.
        listed, first: number of each contact in MuJoCo's list, and its first row.
        limits: rows of limits.
        impulse: along the rows.
        left_out: whether contacts are listed that shall not be.
    """
    pyramidal = shadow.cone == _PYRAMIDAL
    force = limits
    if left_out or pyramidal != shadow.pyramidal or limits.size:
        limits, force = _list_again(shadow, data, limits, impulse)
    contact, out = data.contact, data.efc_force
    show_forces(
        contact.efc_address, contact.dim, contact.friction, listed, first, impulse, out,
        data.ne + data.nf, shadow.h, pyramidal,
    )  # fmt: skip
    if limits.size:
        out[limits] = force
    show_sensors(shadow, data)


def show_sensors(shadow: Shadow, data: Any) -> None:
    """Write what sensors show of forces and limits."""
    if shadow.sensors:
        mujoco.mj_sensorAcc(shadow.model, data)
    if shadow.limit_sensors:
        show_limits(shadow.user, data, shadow.limit_sensors)


def _list_again(
    shadow: Shadow, data: Any, limits: np.ndarray, impulse: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """List the constraints as the user's model has them; where limits stand then, their forces."""
    own = shadow.model
    loaded = limits[impulse[limits] > 0.0]
    before = _limits(data, loaded)
    data.contact.efc_address[:] = -1
    own.opt.cone = shadow.cone
    if limits.size:
        _set_limit_margins(own, shadow.user, before)
    mujoco.mj_makeConstraint(own, data)
    mujoco.mj_referenceConstraint(own, data)
    where = _find_limits(data, before) if loaded.size else loaded
    return where, impulse[loaded] / shadow.h


@entry
def show_motion(
    rows: np.ndarray,
    v: np.ndarray,
    velocity: np.ndarray,
    impulse: np.ndarray,
    qacc_out: np.ndarray,
    warmstart_out: np.ndarray,
    force_out: np.ndarray,
    h: float,
) -> None:
    """Fill in the acceleration, twice, and the generalised force of all rows."""
    for j in range(v.shape[0]):
        qacc_out[j] = warmstart_out[j] = (velocity[j] - v[j]) / h
        force_out[j] = 0.0
    for r in range(rows.shape[0]):
        if impulse[r] != 0.0:
            force = impulse[r] / h
            for j in range(v.shape[0]):
                force_out[j] += rows[r, j] * force


@entry
def mark_contacts(
    geom: np.ndarray,
    dist: np.ndarray,
    geom_margin: np.ndarray,
    listed: np.ndarray,
    first: np.ndarray,
    dim: np.ndarray,
    impulse: np.ndarray,
    includemargin_out: np.ndarray,
    exclude_out: np.ndarray,
) -> int:
    """Keep contacts that lie within the user's margin or carry force; return how many do not.

    Those are inactive in MuJoCo's sense, and have no rows any more.
    """
    for i in range(dist.shape[0]):
        a, b = geom[i, 0], geom[i, 1]
        includemargin_out[i] = (geom_margin[a] if a >= 0 else 0.0) + (
            geom_margin[b] if b >= 0 else 0.0
        )
    for k in range(listed.shape[0]):
        i = listed[k]
        pushes = False  # or drags: a viscous contact does so without load
        for row in range(first[k], first[k] + dim[k]):
            pushes = pushes or impulse[row] != 0.0
        if pushes and includemargin_out[i] <= dist[i]:
            includemargin_out[i] = np.nextafter(dist[i], np.inf)
    left_out = 0
    for k in range(listed.shape[0]):
        i = listed[k]
        exclude_out[i] = dist[i] >= includemargin_out[i]
        left_out += int(exclude_out[i])
    return left_out


@entry
def show_forces(
    address: np.ndarray,
    dims: np.ndarray,
    friction: np.ndarray,
    listed: np.ndarray,
    first: np.ndarray,
    impulse: np.ndarray,
    force_out: np.ndarray,
    kept: int,
    h: float,
    pyramidal: bool,
) -> None:
    """Fill in forces, as axes of the contact frame or as edges of the friction pyramid.

    Args:
        kept: rows that stand first in the list that was solved and in this one: equalities and
            dry friction, and limits if they have not been listed again; else these are left at
            zero.
    """
    force_out[:] = 0.0
    for r in range(kept):
        force_out[r] = impulse[r] / h
    for k in range(listed.shape[0]):
        i = listed[k]
        start, dim = address[i], dims[i]
        if start < 0:
            continue
        if not pyramidal or dim == 1:
            for e in range(dim):
                force_out[start + e] = impulse[first[k] + e] / h
            continue
        each = impulse[first[k]] / h / (dim - 1)
        for e in range(dim - 1):  # edges 2 e and 2 e + 1 lean along tangent e, to and fro
            along = impulse[first[k] + 1 + e] / h / friction[i, e]
            force_out[start + 2 * e] = 0.5 * (each + along)
            force_out[start + 2 * e + 1] = 0.5 * (each - along)


def impulses(
    rows: Rows, solution: ContactSolution, contacts: np.ndarray, limits: np.ndarray
) -> np.ndarray:
    """(nefc,) impulses along the rows of ``rows.efc_J`` [N s, N m s]."""
    impulse = np.zeros(len(rows.efc_J))
    impulse[rows.equality] = solution.bilateral
    impulse[rows.dry] = solution.dry
    impulse[rows.limit[limits]] = solution.unilateral
    first, dim = rows.first[contacts], rows.dim[contacts]
    impulse[first] = solution.normal
    slides = dim >= 3
    impulse[first[slides] + 1] = solution.tangent[slides, 0]
    impulse[first[slides] + 2] = solution.tangent[slides, 1]
    impulse[rows.extra(first, dim)[0]] = solution.extra
    return impulse


def _limits(data: Any, limits: np.ndarray) -> np.ndarray:
    """What tells limits apart: type, joint or tendon, and position."""
    found = np.zeros((len(limits), 3))
    found[:, 0], found[:, 1] = data.efc_type[limits], data.efc_id[limits]
    found[:, 2] = data.efc_pos[limits]
    return found


def _find_limits(data: Any, wanted: np.ndarray) -> np.ndarray:
    """Rows of the wanted limits in the present list."""
    start = data.ne + data.nf
    present = _limits(data, np.arange(start, start + data.nl))
    return np.array(
        [start + np.flatnonzero((present == limit).all(axis=1))[0] for limit in wanted], dtype=int
    )


def _set_limit_margins(own: Any, user: Any, limits: np.ndarray) -> None:
    """The user's margins of limits, but wide enough for those that carry force."""
    joint = int(mujoco.mjtConstraint.mjCNSTR_LIMIT_JOINT)
    own.jnt_margin[:] = user.jnt_margin
    own.tendon_margin[:] = user.tendon_margin
    for kind, which, position in limits:
        margin = own.jnt_margin if kind == joint else own.tendon_margin
        margin[int(which)] = max(margin[int(which)], np.nextafter(position, np.inf))
