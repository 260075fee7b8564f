"""MuJoCo's constraint list as a contact problem.

One pass over the rows of ``efc_J`` sorts them by what they are; edges of friction pyramids
are turned into the axes between them:

==========================  ==========================================================
MuJoCo                      problem
==========================  ==========================================================
equality                    J, with ``J v+ = 0`` (drift is corrected in the position)
equality with a mocap body  J, with the speed that closes the gap: the user drives it
friction loss               D, bounded by h times the loss
joint and tendon limits     U, ``U v+ >= -pos / h`` until the limit is reached
contact, first row          N, ``N v+ >= -dist / h`` until the surfaces touch
contact, rows 2 and 3       S, T (zero at frictionless contacts)
contact, rows 4 to 6        R (torsion, rolling)
==========================  ==========================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from holdfast._jit import entry
from holdfast.contact.problem import ContactProblem
from holdfast.events.inertia import effective_inertia
from holdfast.mujoco._mj import mujoco
from holdfast.mujoco.constraints import NO_FRICTION
from holdfast.mujoco.options import DEFAULT
from holdfast.mujoco.private_model import PrivateModel

_BODY_EQUALITIES = (int(mujoco.mjtEq.mjEQ_CONNECT), int(mujoco.mjtEq.mjEQ_WELD))


@dataclass(eq=False)
class Rows:
    """All rows within reach, by kind, with where they stand in MuJoCo's list.

    Attributes:
        A, f, v, h: the smooth step, ``A (v_free - v) = h f``.
        efc_J: (nefc, nv) all rows.
        equality, dry, limit: rows of each kind.
        contact: (n,) numbers in ``data.contact``.
        first: (n,) first row of each contact.
        dim: (n,) 1, 3, 4 or 6; rows that the law or the coefficients leave out do not count.
        gap: (n,) distance between the surfaces [m].
        limit_gap: distance to each limit [m, rad].
        error: violation of each equality row.
        target: speed that each equality row shall have.
        loss: largest impulse of each row with dry friction.
        size: mean size of the model's bodies [m].
        place: (n, 12) position and frame of each contact; (n, 6) without the tangents.
        sunk: (n,) how far below what its row says a contact ends the step [m].
    """

    A: np.ndarray
    f: np.ndarray
    v: np.ndarray
    h: float
    efc_J: np.ndarray
    equality: slice
    dry: slice
    limit: np.ndarray
    contact: np.ndarray
    first: np.ndarray
    dim: np.ndarray
    gap: np.ndarray
    limit_gap: np.ndarray
    error: np.ndarray
    target: np.ndarray
    loss: np.ndarray
    size: float
    mu: np.ndarray
    mu_more: np.ndarray
    geoms: np.ndarray
    bodies: np.ndarray
    place: np.ndarray
    sunk: np.ndarray

    @property
    def touch(self) -> float:
        """Gaps below this are closed [m]."""
        return DEFAULT.touching * self.size

    @cached_property
    def v_free(self) -> np.ndarray:
        """Velocity without constraints."""
        return self.v + self.h * np.linalg.solve(self.A, self.f) if len(self.v) else self.v

    @cached_property
    def N(self) -> np.ndarray:
        """(n, nv) normals."""
        return self.efc_J[self.first]

    @cached_property
    def U(self) -> np.ndarray:
        """(u, nv) limits."""
        return self.efc_J[self.limit]

    def within_reach(self, velocity: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Contacts and limits that a motion would close."""
        contacts = self.gap + self.h * (self.N @ velocity) <= self.touch
        limits = self.limit_gap + self.h * (self.U @ velocity) <= self.touch
        return contacts, limits

    def problem(
        self, contacts: np.ndarray, limits: np.ndarray, closed: np.ndarray | None = None
    ) -> ContactProblem:
        """The contact problem of the chosen contacts and limits (boolean masks).

        Gaps of contacts that are `closed` (a mask, too) are taken for zero.
        """
        gap = self.gap if closed is None else np.where(closed, 0.0, self.gap)
        first, dim = self.first[contacts], self.dim[contacts]
        S, T = np.zeros((2, len(first), len(self.v)))
        slides = dim >= 3
        S[slides] = self.efc_J[first[slides] + 1]
        T[slides] = self.efc_J[first[slides] + 2]
        R_row, R_contact = self.extra(first, dim)
        return ContactProblem(
            M=self.A,
            v=self.v,
            f=self.f,
            h=self.h,
            N=self.N[contacts],
            S=S,
            T=T,
            J=self.efc_J[self.equality],
            c_J=self.target,
            R=self.efc_J[R_row],
            mu_R=self.mu_more[:, contacts][R_row - first[R_contact] - 3, R_contact],
            R_contact=R_contact,
            U=self.U[limits],
            c_U=np.minimum(-self.limit_gap[limits] / self.h, 0.0),
            c_N=np.minimum(-gap[contacts] / self.h, 0.0),
            D=self.efc_J[self.dry],
            D_bound=self.loss,
            mu=self.mu[contacts],
            bodies=self.bodies[contacts],
        )

    @staticmethod
    def extra(first: np.ndarray, dim: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows of torsion and rolling, and the contact that each belongs to."""
        count = np.maximum(dim - 3, 0)
        contact = np.repeat(np.arange(len(first)), count)
        start = np.repeat(np.cumsum(count) - count, count)
        return first[contact] + 3 + np.arange(len(contact)) - start, contact


def gather(
    private: PrivateModel, data: Any, smooth: tuple[np.ndarray, np.ndarray] | None = None
) -> Rows:
    """Sort MuJoCo's rows; `data` has been through `mj_fwdAcceleration`.

    Args:
        private: own model.
        data: with contacts and rows listed.
        smooth: inertia and forces, if they are known: then rows are only listed again.
    """
    own = private.model
    A, f = effective_inertia(private, data) if smooth is None else smooth
    if private.adhesive and smooth is None:
        private.list_reachable(data)
    h = private.h
    ne, nf, nl = data.ne, data.nf, data.nl  # in this order, then contacts
    numbers, lengths = np.empty((7, data.ncon), dtype=np.int64), np.empty((5, data.ncon))
    n, size, efc_J = contact_rows(private, data, ne + nf + nl, numbers, lengths)
    position = data.efc_pos  # only now: rows may have been listed again, elsewhere
    error = position[:ne].copy()
    target = np.zeros(ne)
    if ne and own.nmocap:
        target = driven_speeds(own, data.efc_id[:ne], error, h)
    return Rows(
        A=A,
        f=f,
        v=data.qvel.copy(),
        h=h,
        efc_J=efc_J[:size],
        equality=slice(0, ne),
        dry=slice(ne, ne + nf),
        limit=np.arange(ne + nf, ne + nf + nl),
        contact=numbers[0, :n],
        first=numbers[1, :n],
        dim=numbers[2, :n],
        gap=lengths[0, :n],
        limit_gap=position[ne + nf : ne + nf + nl].copy(),
        error=error,
        target=target,
        loss=h * data.efc_frictionloss[ne : ne + nf],
        size=private.size,
        mu=lengths[1, :n],
        mu_more=lengths[2:, :n],
        geoms=numbers[3:5, :n].T,
        bodies=numbers[5:7, :n].T,
        place=np.column_stack([data.contact.pos, data.contact.frame])[numbers[0, :n]],
        sunk=np.zeros(n),
    )


def contact_rows(
    private: PrivateModel, data: Any, start: int, numbers: np.ndarray, lengths: np.ndarray
) -> tuple[int, int, np.ndarray]:
    """All rows, along the axes of contact frames; see `list_contacts`."""
    contact, rows = data.contact, dense_rows(private.model, data)
    n, count = list_contacts(
        contact.efc_address, contact.dim, contact.friction, contact.dist, contact.geom,
        private.geom_body, numbers, lengths, start,
    )  # fmt: skip
    return n, count, rows.copy()


def dense_rows(own: Any, data: Any) -> np.ndarray:
    """(nefc, nv) MuJoCo's rows."""
    if not mujoco.mj_isSparse(own):
        rows = data.efc_J[: data.nefc * own.nv]  # beyond them, rows of zeros that were left out
        return rows.reshape(data.nefc, own.nv)
    rows = np.zeros((data.nefc, own.nv))
    if data.nefc:
        mujoco.mju_sparse2dense(
            rows, data.efc_J, data.efc_J_rownnz, data.efc_J_rowadr, data.efc_J_colind
        )
    return rows


@entry
def list_contacts(
    address: np.ndarray,
    dims: np.ndarray,
    friction: np.ndarray,
    dist: np.ndarray,
    geom: np.ndarray,
    geom_body: np.ndarray,
    numbers_out: np.ndarray,
    lengths_out: np.ndarray,
    start: int,
) -> tuple[int, int]:
    """List the contacts that have rows; return how many, and the number of all rows.

    Rows before `start` belong to no contact. numbers_out (7, ncon) is filled with the number in
    MuJoCo's list, the first row, the rows with friction (1, 3, 4 or 6), the two geoms, and the two
    bodies; lengths_out (5, ncon) with the gap and the coefficients of sliding friction, of torsion,
    and of rolling about both tangents.
    """
    n, k = 0, start
    for i in range(address.shape[0]):
        if address[i] < 0:
            continue
        dim = int(dims[i])
        if dim == 6 and friction[i, 3] <= NO_FRICTION:
            dim = 4
        if dim == 4 and friction[i, 2] <= NO_FRICTION:
            dim = 3
        if dim == 3 and friction[i, 0] <= NO_FRICTION:
            dim = 1
        numbers_out[0, n], numbers_out[1, n], numbers_out[2, n] = i, k, dim
        for e in range(2):
            g = geom[i, e]
            numbers_out[3 + e, n] = g
            numbers_out[5 + e, n] = geom_body[g] if g >= 0 else -1
        lengths_out[0, n] = dist[i]
        lengths_out[1, n] = 0.0 if dim == 1 else min(friction[i, 0], friction[i, 1])
        for e in range(2, 5):
            lengths_out[e, n] = friction[i, e] if friction[i, e] > NO_FRICTION else 0.0
        n += 1
        k += dims[i]
    return n, k


def driven_speeds(own: Any, which: np.ndarray, error: np.ndarray, h: float) -> np.ndarray:
    """Speeds of the equality rows: 0, or what carries a body to the mocap body it is tied to.

    The distance to a mocap body is not drift but the user's command. It is closed with the time
    constant of the constraint's solref, so that a jump of the mocap body is no explosion.
    """
    target = np.zeros(len(error))
    mocap = np.append(own.body_mocapid, -1) >= 0
    of_bodies = np.isin(own.eq_type, _BODY_EQUALITIES)
    bodies = np.stack([own.eq_obj1id, own.eq_obj2id], axis=1)
    sites = of_bodies & (own.eq_objtype == int(mujoco.mjtObj.mjOBJ_SITE))
    bodies[sites] = own.site_bodyid[bodies[sites]] if own.nsite else bodies[sites]
    driven = of_bodies & mocap[np.where(of_bodies[:, None], bodies, -1)].any(axis=1)
    rows = driven[which]
    time_constant = np.maximum(own.eq_solref[which, 0], h)  # negative: stiffness; then at once
    target[rows] = -error[rows] / time_constant[rows]
    return target
