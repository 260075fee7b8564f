"""MuJoCo's constraint list as a contact problem.

One pass over the rows of ``efc_J`` (elliptic cone, dense) sorts them by what they are:

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

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from holdfast.mujoco._inertia import effective_inertia
from holdfast.mujoco._mj import mujoco
from holdfast.mujoco._shadow import Shadow
from holdfast.problem import ContactProblem

_TYPE = mujoco.mjtConstraint
_EQUALITY = int(_TYPE.mjCNSTR_EQUALITY)
_DRY = (int(_TYPE.mjCNSTR_FRICTION_DOF), int(_TYPE.mjCNSTR_FRICTION_TENDON))
_LIMIT = (int(_TYPE.mjCNSTR_LIMIT_JOINT), int(_TYPE.mjCNSTR_LIMIT_TENDON))
_CONTACT = int(_TYPE.mjCNSTR_CONTACT_FRICTIONLESS)
_BODY_EQUALITIES = (int(mujoco.mjtEq.mjEQ_CONNECT), int(mujoco.mjtEq.mjEQ_WELD))
NO_FRICTION = 1e-5  # MuJoCo's smallest coefficient, which it puts in place of 0
TOUCHING = 1e-9  # gaps below this part of the model's mean size are closed


@dataclass(eq=False)
class Rows:
    """All rows within reach, by kind, with where they stand in MuJoCo's list.

    Attributes:
        A, f, v, h: the smooth step, ``A (v_free - v) = h f``.
        v_free: velocity without constraints.
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
        touch: gaps below this are closed [m].
    """

    A: np.ndarray
    f: np.ndarray
    v: np.ndarray
    h: float
    v_free: np.ndarray
    efc_J: np.ndarray
    equality: np.ndarray
    dry: np.ndarray
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
    geoms: np.ndarray
    bodies: np.ndarray
    N: np.ndarray = field(init=False)
    U: np.ndarray = field(init=False)
    touch: float = field(init=False)

    def __post_init__(self) -> None:
        self.N = self.efc_J[self.first]
        self.U = self.efc_J[self.limit]
        self.touch = TOUCHING * self.size

    def within_reach(self, velocity: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Contacts and limits that a motion would close."""
        contacts = self.gap + self.h * (self.N @ velocity) <= self.touch
        limits = self.limit_gap + self.h * (self.U @ velocity) <= self.touch
        return contacts, limits

    def problem(self, contacts: np.ndarray, limits: np.ndarray) -> ContactProblem:
        """The contact problem of the chosen contacts and limits (boolean masks)."""
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
            R_contact=R_contact,
            U=self.U[limits],
            c_U=np.minimum(-self.limit_gap[limits] / self.h, 0.0),
            c_N=np.minimum(-self.gap[contacts] / self.h, 0.0),
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


def gather(shadow: Shadow, data: Any) -> Rows:
    """Sort MuJoCo's rows; `data` has been through `mj_fwdAcceleration`."""
    own = shadow.model
    A, f = effective_inertia(own, data, shadow.user.opt.disableflags)
    if shadow.adhesive:
        shadow.list_reachable(data)
    h, v = own.opt.timestep, np.array(data.qvel)
    kind, position = data.efc_type, data.efc_pos
    equality = np.flatnonzero(kind == _EQUALITY)
    dry = np.flatnonzero((kind == _DRY[0]) | (kind == _DRY[1]))
    limit = np.flatnonzero((kind == _LIMIT[0]) | (kind == _LIMIT[1]))
    error = position[equality]
    contact = data.contact
    listed = np.flatnonzero(contact.efc_address >= 0)
    geoms = contact.geom[listed]
    dim, mu = _friction(contact.dim[listed], contact.friction[listed])
    return Rows(
        A=A,
        f=f,
        v=v,
        h=h,
        v_free=v + h * np.linalg.solve(A, f) if own.nv else v,
        efc_J=data.efc_J.reshape(data.nefc, own.nv).copy(),
        equality=equality,
        dry=dry,
        limit=limit,
        contact=listed,
        first=contact.efc_address[listed].astype(np.int64),
        dim=dim,
        gap=contact.dist[listed],
        limit_gap=position[limit],
        error=error,
        target=_drive(own, data, data.efc_id[equality], error, h),
        loss=h * data.efc_frictionloss[dry],
        size=own.stat.meansize,
        mu=mu,
        geoms=geoms,
        bodies=own.geom_bodyid[geoms].reshape(-1, 2).astype(np.int64),
    )


def _friction(dim: np.ndarray, friction: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows that each contact really has, and its declared coefficient of sliding friction.

    MuJoCo puts 1e-5 where the coefficient is 0; such a direction is free.
    """
    rolls = friction[:, 3] > NO_FRICTION
    spins = friction[:, 2] > NO_FRICTION
    slides = friction[:, 0] > NO_FRICTION
    dim = np.where((dim == 6) & ~rolls, 4, dim)
    dim = np.where((dim == 4) & ~spins, 3, dim)
    dim = np.where((dim == 3) & ~slides, 1, dim)
    return dim, np.where(dim == 1, 0.0, friction[:, :2].min(axis=1, initial=np.inf))


def _drive(own: Any, data: Any, which: np.ndarray, error: np.ndarray, h: float) -> np.ndarray:
    """Speeds of the equality rows: 0, or what carries a body to the mocap body it is tied to.

    The distance to a mocap body is not drift but the user's command. It is closed with the time
    constant of the constraint's solref, so that a jump of the mocap body is no explosion.
    """
    target = np.zeros(len(error))
    if own.nmocap == 0 or len(error) == 0:
        return target
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


def build_problem(model: Any, data: Any) -> ContactProblem:
    """The contact problem of the next step: stop here and look.

    Runs MuJoCo's pipeline up to the smooth acceleration, as `mujoco.mj_forward` would; the state
    in `data` stays as it is. All contacts and limits that the step may reach are in the problem,
    also those that turn out not to matter.

    Args:
        model: `mujoco.MjModel`; not changed.
        data: `mujoco.MjData`.

    Example:
        >>> import mujoco, holdfast as hf
        >>> model = mujoco.MjModel.from_xml_string('''<mujoco><worldbody>
        ...   <geom type="plane" size="1 1 1"/>
        ...   <body pos="0 0 0.1"><freejoint/><geom type="box" size="0.1 0.1 0.1"/></body>
        ... </worldbody></mujoco>''')
        >>> problem = hf.build_problem(model, mujoco.MjData(model))
        >>> problem
        ContactProblem(m=6, n=4, j=0, h=0.002)
        >>> hf.NoSlip().solve(problem).is_exact()
        True
    """
    from holdfast.mujoco._pipeline import forward

    shadow = Shadow(model)
    shadow.follow()
    forward(shadow, data)
    rows = gather(shadow, data)
    near = rows.limit_gap <= rows.touch + np.abs(rows.h * (rows.U @ rows.v_free))
    return rows.problem(np.ones(len(rows.contact), dtype=bool), near)
