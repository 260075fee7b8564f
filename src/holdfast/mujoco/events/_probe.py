"""A private copy of the simulation on which states are tried out; the user's data is not touched.

Everything that MuJoCo is asked for between events is asked here: kinematics, contacts within
reach, inertia, smooth forces, energy.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from holdfast.mujoco._inertia import effective_inertia
from holdfast.mujoco._mj import mujoco
from holdfast.mujoco._shadow import Shadow
from holdfast.mujoco.events._listing import Listing, listing

_EXACT_DISTANCE = 1e-12  # relative tolerance of MuJoCo's iterative distances; its own is 1e-6
_ITERATIONS = 200
_EULER = int(mujoco.mjtIntegrator.mjINT_EULER)


class State(NamedTuple):
    """Time, position, velocity and activation."""

    time: float
    qpos: np.ndarray
    qvel: np.ndarray
    act: np.ndarray


class Smooth(NamedTuple):
    """Inertia and what acts but constraints."""

    M: np.ndarray
    f: np.ndarray
    act_dot: np.ndarray


class Probe:
    """MuJoCo's pipeline on data of its own."""

    def __init__(self, shadow: Shadow) -> None:
        self.shadow = shadow
        self.model = shadow.model
        self.data = mujoco.MjData(shadow.user)
        self._turns = _turns(shadow.user)
        moves = np.array(shadow.user.geom_bodyid)
        self._geom_body = moves
        self._root = np.array(shadow.user.body_rootid)[moves]
        self.radius = np.array(shadow.user.geom_rbound)

    def follow(self, user_data: Any) -> None:
        """Take over the user's model and data, and set what exact contact needs."""
        self.shadow.follow()
        opt = self.model.opt
        if self.shadow.discrete:
            opt.integrator = self.shadow.integrator = _EULER
        opt.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
        opt.ccd_tolerance = min(opt.ccd_tolerance, _EXACT_DISTANCE)
        opt.ccd_iterations = max(opt.ccd_iterations, _ITERATIONS)
        mujoco.mj_copyState(self.model, user_data, self.data, mujoco.mjtState.mjSTATE_INTEGRATION)

    def state(self) -> State:
        """The present state."""
        d = self.data
        return State(float(d.time), np.array(d.qpos), np.array(d.qvel), np.array(d.act))

    def place(self, state: State) -> None:
        """Put the data into a state."""
        d = self.data
        d.time = state.time
        d.qpos[:], d.qvel[:] = state.qpos, state.qvel
        if state.act.size:
            d.act[:] = state.act

    def move(self, qpos: np.ndarray, along: np.ndarray, scale: float = 1.0) -> np.ndarray:
        """A position moved along a velocity, quaternions on their sphere."""
        moved = np.array(qpos)
        mujoco.mj_integratePos(self.model, moved, along, scale)
        return moved

    def chart_rate(self, x: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Rate of the chart ``q = q0 + x`` for a velocity v at q.

        Rotations: ``q = q0 exp(x)`` gives ``x' = v + x cross v / 2 + c x cross (x cross v)``, the
        inverse of the right Jacobian; without it Runge-Kutta is of second order in space.
        """
        if not self._turns:
            return v
        rate = np.array(v)
        for at in self._turns:
            x0, x1, x2 = x[at : at + 3].tolist()
            angle2 = x0 * x0 + x1 * x1 + x2 * x2
            if angle2 == 0.0:
                continue
            y, w = x[at : at + 3], v[at : at + 3]
            once = _cross(y, w)
            rate[at : at + 3] = w + 0.5 * once + _third(angle2) * _cross(y, once)
        return rate

    def look(self, state: State) -> None:
        """Kinematics alone."""
        self.place(state)
        mujoco.mj_fwdKinematics(self.model, self.data)

    def list(self, state: State) -> Listing:
        """Constraints within the present margins at a state."""
        self.place(state)
        own, data = self.model, self.data
        mujoco.mj_fwdKinematics(own, data)
        mujoco.mj_collision(own, data)
        mujoco.mj_makeConstraint(own, data)
        return listing(self.shadow, data)

    def inertia(self) -> np.ndarray:
        """Inertia at the state that was listed last."""
        own, data = self.model, self.data
        mujoco.mj_makeM(own, data)
        M = np.empty((own.nv, own.nv))
        mujoco.mj_fullM(own, data, M)
        return M

    def smooth(self) -> Smooth:
        """Inertia and smooth forces at the state that was listed last."""
        own, data = self.model, self.data
        M = self.inertia()
        mujoco.mj_factorM(own, data)
        mujoco.mj_transmission(own, data)
        mujoco.mj_fwdVelocity(own, data)
        mujoco.mj_fwdActuation(own, data)
        mujoco.mj_fwdAcceleration(own, data)
        return Smooth(M, np.array(data.qfrc_smooth), np.array(data.act_dot))

    def implicit(self, h: float) -> Smooth:
        """Inertia with the implicit damping of the model's integrator, for a step of h seconds."""
        shadow, opt, smooth = self.shadow, self.model.opt, self.smooth()
        whole = shadow.h
        shadow.h = opt.timestep = h
        A, f = effective_inertia(shadow, self.data)
        shadow.h = opt.timestep = whole
        return Smooth(A, f, smooth.act_dot)

    def energy(self, state: State) -> float:
        """Kinetic and potential energy [J]."""
        self.place(state)
        own, data = self.model, self.data
        mujoco.mj_fwdKinematics(own, data)
        mujoco.mj_makeM(own, data)
        mujoco.mj_comVel(own, data)
        mujoco.mj_energyPos(own, data)
        mujoco.mj_energyVel(own, data)
        return float(data.energy[0] + data.energy[1])

    def geom_speeds(self, state: State) -> tuple[np.ndarray, np.ndarray]:
        """(ngeom, 3) velocity of the centre of each geom, and (ngeom, 3) its spin."""
        self.place(state)
        own, data = self.model, self.data
        mujoco.mj_fwdKinematics(own, data)
        mujoco.mj_comVel(own, data)
        both = data.cvel[self._geom_body]
        arm = data.geom_xpos - data.subtree_com[self._root]
        return both[:, 3:] + np.cross(both[:, :3], arm), both[:, :3].copy()


def _turns(model: Any) -> list[int]:
    """First coordinate of each rotation in space."""
    free, ball = int(mujoco.mjtJoint.mjJNT_FREE), int(mujoco.mjtJoint.mjJNT_BALL)
    turns = []
    for kind, at in zip(model.jnt_type.tolist(), model.jnt_dofadr.tolist(), strict=True):
        if kind in (free, ball):
            turns.append(at + 3 if kind == free else at)
    return turns


def _cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    (a0, a1, a2), (b0, b1, b2) = a.tolist(), b.tolist()
    return np.array([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0])


def _third(angle2: float) -> float:
    """Coefficient c of `Probe.chart_rate`; 1/12 for small angles."""
    if angle2 < 1e-4:
        return 1.0 / 12.0 + angle2 / 720.0 + angle2 * angle2 / 30240.0
    angle = float(np.sqrt(angle2))
    return 1.0 / angle2 - 0.5 / (angle * np.tan(0.5 * angle))
