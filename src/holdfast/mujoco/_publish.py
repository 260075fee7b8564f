"""Our forces put where MuJoCo's stand, so that viewers, sensors and scripts show the truth.

Contacts that were listed because a step might reach them, but carry no force and lie outside the
user's own margin, are marked as MuJoCo marks contacts in the gap: inactive. With the user's
pyramidal cone the forces are encoded as MuJoCo encodes them, so that `mj_contactForce` decodes
what was solved for.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from holdfast.mujoco._mj import mujoco
from holdfast.mujoco._shadow import Shadow
from holdfast.mujoco.assemble import Rows
from holdfast.solution import ContactSolution


def publish(
    shadow: Shadow,
    data: Any,
    rows: Rows,
    solution: ContactSolution,
    contacts: np.ndarray,
    limits: np.ndarray,
) -> None:
    """Write qacc, efc_force, qfrc_constraint and the sensors of the acceleration stage.

    Args:
        shadow: own model.
        data: at the start of the step, after `gather`.
        rows: of this step.
        solution: of the problem.
        contacts: mask of the contacts in the problem.
        limits: mask of the limits in the problem.
    """
    own = shadow.model
    force = forces(rows, solution, contacts, limits)
    data.qacc[:] = (solution.velocity - rows.v) / rows.h
    data.qacc_warmstart[:] = data.qacc
    data.qfrc_constraint[:] = rows.efc_J.T @ force
    _relist(shadow, data, rows, force)
    mujoco.mj_sensorAcc(own, data)


def forces(
    rows: Rows, solution: ContactSolution, contacts: np.ndarray, limits: np.ndarray
) -> np.ndarray:
    """(nefc,) forces along the rows of ``rows.efc_J`` [N, N m]."""
    force = np.zeros(len(rows.efc_J))
    force[rows.equality] = solution.bilateral
    force[rows.dry] = solution.dry
    force[rows.limit[limits]] = solution.unilateral
    first, dim = rows.first[contacts], rows.dim[contacts]
    force[first] = solution.normal
    slides = dim >= 3
    force[first[slides] + 1] = solution.tangent[slides, 0]
    force[first[slides] + 2] = solution.tangent[slides, 1]
    force[rows.extra(first, dim)[0]] = solution.extra
    return force / rows.h


def _relist(shadow: Shadow, data: Any, rows: Rows, force: np.ndarray) -> None:
    """List the constraints again as the user's model has them, and fill in their forces."""
    own, user = shadow.model, shadow.user
    _include(user, data.contact, rows.contact[force[rows.first] > 0.0])
    loaded = rows.limit[force[rows.limit] > 0.0]
    before = _limits(data, loaded)
    own.opt.cone = user.opt.cone
    with _margins_up_to(own, user, before):
        mujoco.mj_makeConstraint(own, data)
    mujoco.mj_referenceConstraint(own, data)
    out = np.zeros(data.nefc)
    kept = data.ne + data.nf  # equalities and dry friction stand first, in both lists
    out[:kept] = force[:kept]
    for row, mine in zip(_find_limits(data, before), force[loaded], strict=True):
        out[row] = mine
    pyramidal = user.opt.cone == mujoco.mjtCone.mjCONE_PYRAMIDAL
    _fill_contacts(out, data.contact, rows, force, pyramidal)
    data.efc_force[:] = out


def _include(user: Any, contact: Any, pushed: np.ndarray) -> None:
    """Keep contacts that lie within the user's margin or carry force; the others are inactive."""
    if len(contact.dist) == 0:
        return
    margin = user.geom_margin[contact.geom].sum(axis=1)
    margin[pushed] = np.maximum(margin[pushed], np.nextafter(contact.dist[pushed], np.inf))
    contact.includemargin[:] = margin
    contact.exclude[:] = contact.dist >= margin
    contact.efc_address[:] = -1


def _fill_contacts(
    out: np.ndarray, contact: Any, rows: Rows, force: np.ndarray, pyramidal: bool
) -> None:
    """Forces of the listed contacts, as axes of the contact frame or as edges of the pyramid."""
    address = contact.efc_address[rows.contact]
    dims = contact.dim[rows.contact]
    for dim in np.unique(dims):
        some = np.flatnonzero((dims == dim) & (address >= 0))
        if some.size == 0:
            continue
        mine = force[rows.first[some, None] + np.arange(dim)]
        if pyramidal and dim > 1:  # edge 2 i and 2 i + 1 lean along tangent i, to and fro
            mu = contact.friction[rows.contact[some]][:, : dim - 1]
            each, along = mine[:, :1] / (dim - 1), mine[:, 1:] / mu
            mine = 0.5 * np.stack([each + along, each - along], axis=2).reshape(len(some), -1)
        out[address[some, None] + np.arange(mine.shape[1])] = mine


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


@contextmanager
def _margins_up_to(own: Any, user: Any, limits: np.ndarray) -> Iterator[None]:
    """The user's margins of limits, but wide enough for those that carry force."""
    joint = int(mujoco.mjtConstraint.mjCNSTR_LIMIT_JOINT)
    for kind, which, position in limits:
        margin = own.jnt_margin if kind == joint else own.tendon_margin
        margin[int(which)] = max(margin[int(which)], np.nextafter(position, np.inf))
    yield
    own.jnt_margin[:] = user.jnt_margin
    own.tendon_margin[:] = user.tendon_margin
