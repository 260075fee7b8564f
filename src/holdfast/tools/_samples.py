"""States of a saved run, as MuJoCo sees them: rows, forces, energies. For `verify`."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np

from holdfast.contact.laws import Law
from holdfast.mujoco._mj import mujoco
from holdfast.mujoco.pair_laws import PairLaws

REACH = 1e-6  # [m over the mean size] surfaces closer than this may push
EXACT_DISTANCE = 1e-12
CORRECTED = 1e-4  # mean sizes or radians that corrections of positions may add up to in a run
THROUGH = 16  # places on the way between two samples where a body that changed sides is looked at
DOUBT = 0.125  # part of a change of smooth forces that their mean over a step may be off by

_ROUND = (int(mujoco.mjtGeom.mjGEOM_SPHERE), int(mujoco.mjtGeom.mjGEOM_CAPSULE),
          int(mujoco.mjtGeom.mjGEOM_CYLINDER))  # fmt: skip


class Sample(NamedTuple):
    """What MuJoCo says of one state."""

    time: float
    q: np.ndarray
    v: np.ndarray
    M: np.ndarray
    f: np.ndarray  # smooth forces, with the controls from here on
    f_end: np.ndarray  # with the controls up to here
    power: float  # of the actuators, likewise
    power_end: float
    energy: float
    kinetic: float
    distance: float
    gap: np.ndarray  # (n,) distance of the surfaces
    turn: np.ndarray  # (n,) how fast surfaces curve away by spin [m/s^2]
    around: np.ndarray  # (n,) and by motion along round surfaces [m/s^2]
    mu: np.ndarray  # (n,) declared coefficient
    law: list[Law]  # (n,) of the contacts
    touching: np.ndarray  # (n,) contacts whose surfaces meet
    geoms: np.ndarray  # (n, 2)
    point: np.ndarray  # (n, 3)
    frame: np.ndarray  # (n, 3, 3) normal and tangents
    N: np.ndarray
    S: np.ndarray
    T: np.ndarray
    spin: list[np.ndarray]  # (n,) of (0, nv), (1, nv) or (3, nv): rows of torsion and rolling
    mu_spin: list[np.ndarray]  # (n,) their coefficients [m]
    E: np.ndarray  # equalities
    E_soft: np.ndarray  # their compliance, as MuJoCo declares it
    E_wanted: np.ndarray  # and the acceleration along them that it asks for
    E_slow: float  # time constant of the quickest one [s]
    D: np.ndarray  # dry friction of joints and tendons
    D_most: np.ndarray  # largest force
    U: np.ndarray  # limits within reach
    U_gap: np.ndarray


def same(a: Sample, b: Sample) -> np.ndarray:
    """(n,) the nearest contact of the same geoms in another sample; -1 for none."""
    found = np.full(len(a.N), -1)
    for i in range(len(a.N)):
        same = np.flatnonzero((b.geoms == a.geoms[i]).all(axis=1))
        if same.size:
            found[i] = same[np.linalg.norm(b.point[same] - a.point[i], axis=1).argmin()]
    return found


def lasting(a: Sample, b: Sample, other: np.ndarray) -> np.ndarray:
    """(n,) which contacts of a sample touch in it and in the other one."""
    lasts = (other >= 0) & a.touching
    lasts[lasts] = b.touching[other[lasts]]
    return lasts


def part_of(s: Sample, some: np.ndarray) -> Sample:
    """The sample with some of its contacts."""
    names = ("gap", "turn", "around", "mu", "touching", "geoms", "point", "frame", "N", "S", "T")
    lists = {name: [x for x, kept in zip(getattr(s, name), some, strict=True) if kept]
             for name in ("law", "spin", "mu_spin")}  # fmt: skip
    return s._replace(**{name: getattr(s, name)[some] for name in names}, **lists)


class Eye:
    """Looks at states with a model and data of its own."""

    def __init__(self, model: Any, step: float, law: Law | None) -> None:
        own = self.model = copy.copy(model)
        own.opt.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
        own.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
        own.opt.ccd_tolerance = min(own.opt.ccd_tolerance, EXACT_DISTANCE)
        own.opt.ccd_iterations = max(own.opt.ccd_iterations, 200)
        self.reach = REACH * max(own.stat.meansize, 1e-6)
        own.geom_gap[:] = 0.0
        own.pair_gap[:] = 0.0
        self.step = step
        self._body = np.array(model.geom_bodyid)
        self._size = np.where(np.isfinite(own.geom_rbound), own.geom_rbound, 0.0)
        self._flat = model.geom_type == mujoco.mjtGeom.mjGEOM_PLANE
        self._curvature = _curvatures(model)
        self.data = mujoco.MjData(own)
        self.laws = PairLaws(model, None, law or Law("stick"))
        self.any = law is None  # any friction
        self.tree_of = np.array(model.dof_treeid)
        self.pull = float(np.linalg.norm(model.opt.gravity)) or 1.0
        of_trees = np.bincount(model.body_treeid[model.body_treeid >= 0],
                               model.body_mass[model.body_treeid >= 0], model.ntree)  # fmt: skip
        self.mass_of_tree = of_trees[self.tree_of]  # of each coordinate
        self.joint = _groups(model)
        self.first_of_group = np.unique(self.joint, return_index=True)[1]
        self.turns = _is_turn(model)
        time = model.eq_solref[:, 0] if model.neq else np.zeros(0)
        self._slow = float(np.where(time > 0.0, time, 0.0).min(initial=np.inf))

    def mass_of_trees(self, some: np.ndarray) -> float:
        """Mass of the trees of coordinates that are chosen [kg]."""
        trees = np.unique(self.tree_of[some])
        return float(self.model.body_mass[np.isin(self.model.body_treeid, trees)].sum())

    def turned(self, a: Sample, b: Sample) -> np.ndarray:
        """(nv,) by how much the tree of each coordinate turns between two samples [rad].

        What turns with a body is known to its square: at the samples it may look the same.
        """
        speed = np.where(self.turns, np.maximum(np.abs(a.v), np.abs(b.v)), 0.0)
        most = np.zeros(self.tree_of.max(initial=-1) + 1)
        np.maximum.at(most, self.tree_of, (b.time - a.time) * speed)
        return np.minimum(most, 1.0)[self.tree_of]

    def look(
        self,
        time: float,
        qpos: np.ndarray,
        qvel: np.ndarray,
        controls: tuple[np.ndarray, np.ndarray] | None,
    ) -> Sample:
        """Measure one state, with the controls up to it and those from it on."""
        own, data = self.model, self.data
        data.time = time
        data.qpos[:], data.qvel[:] = qpos, qvel
        if controls is not None:
            data.ctrl[:] = controls[-1]
        late = self._late_law()
        self._widen()
        mujoco.mj_fwdPosition(own, data)
        mujoco.mj_fwdVelocity(own, data)
        acting = [self._forces(ctrl) for ctrl in controls or (None,)]
        mujoco.mj_energyPos(own, data)
        mujoco.mj_energyVel(own, data)
        M = np.empty((own.nv, own.nv))
        mujoco.mj_fullM(own, data, M)
        J = data.efc_J.reshape(data.nefc, own.nv)
        listed = np.flatnonzero(data.contact.efc_address >= 0)
        first, friction = data.contact.efc_address[listed], data.contact.friction[listed]
        friction = friction.reshape(len(listed), 5)
        dim = _with_friction(data.contact.dim[listed], friction)
        S, T = np.zeros((2, len(listed), own.nv))
        S[dim >= 3], T[dim >= 3] = J[first[dim >= 3] + 1], J[first[dim >= 3] + 2]
        geoms = data.contact.geom[listed].reshape(-1, 2)
        slides = np.hypot(S @ data.qvel, T @ data.qvel)
        slides[dim < 3] = self._speed[geoms[dim < 3]].sum(axis=1)
        laws = [self.laws.of_pair(int(i), int(j)) for i, j in geoms]
        declared = np.where(dim >= 3, friction[:, 0] if len(listed) else 0.0, 0.0)
        named = np.array([np.nan if law.mu is None else law.mu for law in laws])
        kind, kinds = data.efc_type, mujoco.mjtConstraint
        limits = (kind == int(kinds.mjCNSTR_LIMIT_JOINT)) | (
            kind == int(kinds.mjCNSTR_LIMIT_TENDON)
        )
        ne, dry = data.ne, slice(data.ne, data.ne + data.nf)
        soft, wanted = late or (data.efc_R[:ne].copy(), data.efc_aref[:ne].copy())
        return Sample(
            time=float(time),
            q=np.array(qpos),
            v=np.array(qvel),
            M=M,
            f=acting[-1][0],
            f_end=acting[0][0],
            power=acting[-1][1],
            power_end=acting[0][1],
            energy=float(data.energy.sum()),
            kinetic=float(data.energy[1]),
            distance=float(data.contact.dist.min(initial=self.reach)),
            gap=data.contact.dist[listed].copy(),
            turn=self._turn[geoms].sum(axis=1) if len(geoms) else np.zeros(0),
            around=slides**2
            * np.where(self._flat[geoms].any(axis=1), 0.0, self._curvature[geoms].sum(axis=1)),
            mu=np.where(np.isnan(named), declared, named),
            law=laws,
            touching=data.contact.dist[listed] <= self.reach,
            geoms=geoms,
            point=data.contact.pos[listed],
            frame=data.contact.frame[listed].reshape(-1, 3, 3).copy(),
            N=J[first].copy(),
            S=S,
            T=T,
            spin=[J[i + 3 : i + k].copy() for i, k in zip(first, dim, strict=True)],
            mu_spin=[friction[i, 2 : k - 1].copy() for i, k in enumerate(dim)],
            E=J[:ne].copy(),
            E_soft=soft,
            E_wanted=wanted,
            E_slow=self._slow,
            D=J[dry].copy(),
            D_most=data.efc_frictionloss[dry].copy(),
            U=J[limits].copy(),
            U_gap=data.efc_pos[limits].copy(),
        )

    def unexplained(self, a: Sample, b: Sample) -> float:
        """Part of the way between two samples that no velocities between theirs can have gone.

        Smooth motion goes about the mean way. Where something may have been hit in between, its
        impulses may have turned the velocity as far as the energy lost allows.
        """
        own, dt, L = self.model, b.time - a.time, np.linalg.cholesky(b.M)
        reached, off = a.q.copy(), np.empty(own.nv)
        mujoco.mj_integratePos(own, reached, 0.5 * (a.v + b.v), dt)
        mujoco.mj_differentiatePos(own, off, 1.0, reached, b.q)
        first, last, change, missed = (
            float(np.linalg.norm(L.T @ x)) for x in (a.v, b.v, b.v - a.v, off)
        )
        pull = dt * float(np.linalg.norm(np.linalg.solve(L, a.f)))
        allowed = (0.5 + DOUBT) * change
        steady = lasting(a, b, same(a, b)).all() and lasting(b, a, same(b, a)).all()
        if not steady or len(a.U) or len(b.U):
            allowed += change + pull + np.sqrt(max(first**2 - last**2, 0.0))
        slack = self.reach * float(np.sqrt(b.M.diagonal().max(initial=0.0)))
        whole = dt * max(first, last, pull) + slack
        return max(missed - dt * allowed - slack, 0.0) / whole if whole > 0.0 else 0.0

    def through(self, a: Sample, b: Sample) -> float:
        """How deep bodies that changed sides have gone through each other between two samples [m].

        Where normals turn around, the way in between is looked at; what bodies can have gone
        around, with the change of their velocity, is not counted.
        """
        other, own = same(a, b), self.model
        known = np.flatnonzero(other >= 0)
        turned = known[(a.frame[known, 0] * b.frame[other[known], 0]).sum(axis=1) < 0.0]
        pairs = {tuple(map(int, a.geoms[i])) for i in turned}
        if not pairs:
            return 0.0
        data, dt, deepest = mujoco.MjData(own), b.time - a.time, 0.0
        for part in np.arange(1, THROUGH) / THROUGH:
            data.qpos[:] = a.q
            mujoco.mj_integratePos(own, data.qpos, 0.5 * (a.v + b.v), part * dt)
            mujoco.mj_kinematics(own, data)
            for pair in pairs:
                distance = float(mujoco.mj_geomDistance(own, data, *pair, self.reach, None))
                deepest = max(deepest, -distance)
        pull = float(np.linalg.norm(own.opt.gravity))
        around = 0.5 * dt * (float(np.abs(b.v - a.v).max()) + dt * pull)
        return max(deepest - around, 0.0)

    def taken_back(self, a: Sample, b: Sample, some: np.ndarray) -> Sample:
        """The second sample, with rows of some contacts at the points of the bodies that they join.

        Those points are where the bodies had them at the first sample. Time stepping that looks
        where a step leads pushes there: on a body that rolls it is neither point of contact.
        """
        own, data = self.model, self.data
        data.qpos[:] = b.q
        mujoco.mj_kinematics(own, data)
        bodies = self._body[b.geoms]
        local = [[data.xmat[k].reshape(3, 3).T @ (b.point[i] - data.xpos[k]) for k in bodies[i]]
                 for i in np.flatnonzero(some)]  # fmt: skip
        data.qpos[:] = a.q
        mujoco.mj_kinematics(own, data)
        mujoco.mj_comPos(own, data)
        N, S, T, spin = b.N.copy(), b.S.copy(), b.T.copy(), list(b.spin)
        shift, turn = np.zeros((2, 2, 3, own.nv))
        for i, places in zip(np.flatnonzero(some), local, strict=True):
            for side, (k, place) in enumerate(zip(bodies[i], places, strict=True)):
                point = data.xpos[k] + data.xmat[k].reshape(3, 3) @ place
                mujoco.mj_jac(own, data, shift[side], turn[side], point, k)
            along, about = (b.frame[i] @ (jac[1] - jac[0]) for jac in (shift, turn))
            N[i] = along[0]
            if S[i].any() or T[i].any():
                S[i], T[i] = along[1:]
            spin[i] = about[: len(spin[i])]
        return b._replace(N=N, S=S, T=T, spin=spin)

    def ahead(self, a: Sample, dt: float) -> Sample:
        """The state to which smooth forces alone lead: what is hit on the way overlaps there."""
        own, q = self.model, a.q.copy()
        v = a.v + dt * np.linalg.solve(a.M, a.f)
        mujoco.mj_integratePos(own, q, v, dt)
        return self.look(a.time + dt, q, v, None)

    def _late_law(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Compliance of the equalities, and the acceleration along them that they ask for.

        With the discrete integrator MuJoCo has them at the end of its pipeline only; None with
        others.
        """
        own, data = self.model, self.data
        if not own.neq or own.opt.integrator != mujoco.mjtIntegrator.mjINT_DISCRETE:
            return None
        given = own.opt.disableflags
        own.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
        mujoco.mj_forward(own, data)
        own.opt.disableflags = given
        return data.efc_R[: data.ne].copy(), data.efc_aref[: data.ne].copy()

    def _forces(self, ctrl: np.ndarray | None) -> tuple[np.ndarray, float]:
        """Smooth forces under these controls, and the power of the actuators."""
        own, data = self.model, self.data
        if ctrl is not None:
            data.ctrl[:] = ctrl
        mujoco.mj_fwdActuation(own, data)
        mujoco.mj_fwdAcceleration(own, data)
        return np.array(data.qfrc_smooth), float(data.qfrc_actuator @ data.qvel)

    def _widen(self) -> None:
        """Margins as wide as bodies move between samples: what they may have hit is listed."""
        own, data = self.model, self.data
        mujoco.mj_fwdKinematics(own, data)
        mujoco.mj_fwdVelocity(own, data)
        both = data.cvel[self._body]
        arm = data.geom_xpos - data.subtree_com[own.body_rootid[self._body]]
        speed = np.linalg.norm(both[:, 3:] + np.cross(both[:, :3], arm), axis=1)
        spin = np.linalg.norm(both[:, :3], axis=1)
        speed += spin * self._size
        self._turn, self._speed = spin**2 * self._size, speed
        pull = float(np.linalg.norm(own.opt.gravity))
        reach = self.reach + self.step * (speed + self.step * pull)
        own.geom_margin[:] = reach
        own.body_margin[:] = 0.0
        np.maximum.at(own.body_margin, self._body, reach)
        own.pair_margin[:] = reach[own.pair_geom1] + reach[own.pair_geom2]
        own.jnt_margin[:] = self.reach + self.step * np.abs(data.qvel).max(initial=0.0)
        own.tendon_margin[:] = self.reach + self.step * np.abs(data.ten_velocity)


def _with_friction(dim: np.ndarray, friction: np.ndarray) -> np.ndarray:
    """(n,) how many rows of contacts carry anything: MuJoCo's least coefficient stands for none."""
    none = friction <= mujoco.mjMINMU
    dim = np.where((dim == 6) & none[:, 3] & none[:, 4], 4, dim)
    dim = np.where((dim == 4) & none[:, 2], 3, dim)
    return np.where((dim == 3) & none[:, 0] & none[:, 1], 1, dim)


def _curvatures(model: Any) -> np.ndarray:
    """(ngeom,) largest curvature of round surfaces [1/m]; 0 of those with faces."""
    size, kind = np.array(model.geom_size), model.geom_type
    ellipsoid = kind == mujoco.mjtGeom.mjGEOM_ELLIPSOID
    round_ = ellipsoid | np.isin(kind, _ROUND)
    radius = np.where(ellipsoid, size.min(axis=1) ** 2 / size.max(axis=1), size[:, 0])
    return np.where(round_, 1.0 / np.where(round_, radius, 1.0), 0.0)


class Path:
    """How far positions drift from where velocities lead, while nothing happens.

    Small parts that no single interval gives away add up: a body that creeps while its velocity is
    said to be zero. Counted are intervals in which contacts last and no limit or equality acts;
    along contact normals positions may be corrected. Those in which a joint hardly moves are
    counted once more by themselves, or a long way before would hide them.
    """

    def __init__(self, eye: Eye) -> None:
        model, count = eye.model, eye.joint.max(initial=-1) + 1
        self._eye = eye
        self._sum = np.zeros((2, model.nv))
        self._length, self._allowed = np.zeros((2, 2, count))
        turn = eye.turns[eye.first_of_group]
        self._slack = CORRECTED * np.where(turn, 1.0, model.stat.meansize)

    def unexplained(self, a: Sample, b: Sample) -> float:
        """Part of the way so far that velocities do not explain, of the joint that is worst."""
        calm = lasting(a, b, same(a, b)).all() and lasting(b, a, same(b, a)).all()
        if calm and not len(a.U) and not len(b.U):
            self._add(a, b)
        size = np.array([self._of_groups(each) for each in self._sum])
        missed = np.maximum(size - self._allowed - self._slack, 0.0)
        return float((missed / (self._length + self._slack)).max(initial=0.0))

    def _add(self, a: Sample, b: Sample) -> None:
        own, dt, L = self._eye.model, b.time - a.time, np.linalg.cholesky(b.M)
        reached, off, change = a.q.copy(), np.empty(own.nv), b.v - a.v
        mujoco.mj_integratePos(own, reached, 0.5 * (a.v + b.v), dt)
        mujoco.mj_differentiatePos(own, off, 1.0, reached, b.q)
        # Schemes of first order go with the velocity at one end.
        weighted, along = L.T @ off, dt * (L.T @ change)
        # Equalities take their drift out of positions.
        held = np.isin(self._eye.tree_of, self._eye.tree_of[np.vstack([a.E, b.E]).any(axis=0)])
        weighted[held] = along[held] = 0.0
        square = float(along @ along)
        part = np.clip(float(weighted @ along) / square, -0.5, 0.5) if square > 0.0 else 0.0
        weighted -= part * along
        rows = np.vstack([a.N, b.N])
        if len(rows):
            normals = np.linalg.solve(L, rows.T)
            weighted -= normals @ np.linalg.lstsq(normals, weighted, rcond=None)[0]
        drift = np.linalg.solve(L.T, weighted)
        drift[held] = 0.0
        shift = np.linalg.solve(b.M, dt * (b.f_end - a.f))
        speed = np.maximum(self._of_groups(a.v), self._of_groups(b.v))
        changed = self._of_groups(change)
        turn = min(1.0, dt * float(np.abs(a.v[self._eye.turns]).max(initial=0.0)))
        allowed = DOUBT * dt * (self._of_groups(shift) + turn * changed)
        still = dt * speed <= self._slack
        for k, some in enumerate((np.ones_like(still), still)):
            self._sum[k] += np.where(some[self._eye.joint], drift, 0.0)
            self._length[k] += np.where(some, dt * speed, 0.0)
            self._allowed[k] += np.where(some, allowed, 0.0)

    def _of_groups(self, x: np.ndarray) -> np.ndarray:
        """Size of a vector of coordinates, joint by joint."""
        total = np.zeros(len(self._slack))
        np.add.at(total, self._eye.joint, x * x)
        return np.sqrt(total)


def _is_turn(model: Any) -> np.ndarray:
    """(nv,) coordinates that are angles."""
    turn = np.zeros(model.nv, dtype=bool)
    for j in range(model.njnt):
        first, kind = int(model.jnt_dofadr[j]), model.jnt_type[j]
        if kind == mujoco.mjtJoint.mjJNT_FREE:
            turn[first + 3 : first + 6] = True
        elif kind == mujoco.mjtJoint.mjJNT_BALL:
            turn[first : first + 3] = True
        else:
            turn[first] = kind == mujoco.mjtJoint.mjJNT_HINGE
    return turn


def _groups(model: Any) -> np.ndarray:
    """(nv,) coordinates that are measured in one unit: of a joint, shifts and turns apart."""
    group, count = np.zeros(model.nv, dtype=int), 0
    for j in range(model.njnt):
        first = int(model.jnt_dofadr[j])
        free = model.jnt_type[j] == mujoco.mjtJoint.mjJNT_FREE
        ball = model.jnt_type[j] == mujoco.mjtJoint.mjJNT_BALL
        for size in (3, 3) if free else (3,) if ball else (1,):
            group[first : first + size] = count
            first, count = first + size, count + 1
    return group
