"""A private copy of the simulation on which states are tried out; the user's data is not touched.

Everything that MuJoCo is asked for between events is asked here: kinematics, contacts within
reach, inertia, smooth forces, energy.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from holdfast._jit import entry
from holdfast.events.contact_set import Listing, listing
from holdfast.events.gyroscopic import Gyroscopic
from holdfast.events.inertia import effective_inertia
from holdfast.mujoco._mj import mujoco
from holdfast.mujoco.private_model import PrivateModel

_EXACT_DISTANCE = 1e-12  # relative tolerance of MuJoCo's iterative distances; its own is 1e-6
_ITERATIONS = 200
_EULER = int(mujoco.mjtIntegrator.mjINT_EULER)
_ELLIPTIC = int(mujoco.mjtCone.mjCONE_ELLIPTIC)
_STATE = int(mujoco.mjtState.mjSTATE_INTEGRATION)
_SMALL = 1e-4  # angle squared below which a series is more accurate than tan


class State(NamedTuple):
    """Time, position, velocity and activation."""

    time: float
    qpos: np.ndarray
    qvel: np.ndarray
    act: np.ndarray


class Smooth(NamedTuple):
    """Inertia, and what acts but constraints."""

    M: np.ndarray
    f: np.ndarray
    act_dot: np.ndarray


class Implicit(NamedTuple):
    """Inertia, force and activation of a step at velocity level."""

    A: np.ndarray
    f: np.ndarray
    act_dot: np.ndarray
    turned: float  # change of velocity by inertial forces, see `Gyroscopic.correct`


class Probe:
    """MuJoCo's pipeline on data of its own."""

    def __init__(self, private: PrivateModel) -> None:
        self.private = private
        self.model = private.model
        self.data = mujoco.MjData(private.user)
        user = private.user
        self._turns = _turns(user)
        self._gyroscopic = Gyroscopic(private)
        self._limited = np.flatnonzero(user.actuator_actlimited)
        self._root = np.array(user.body_rootid)[private.geom_body]
        self.radius = np.array(user.geom_rbound)

    def follow(self, user_data: Any) -> None:
        """Take over the user's model and data, and set what exact contact needs."""
        private, opt = self.private, self.model.opt
        private.follow()
        if private.discrete:
            opt.integrator = private.integrator = _EULER
        opt.cone = _ELLIPTIC
        opt.ccd_tolerance = min(opt.ccd_tolerance, _EXACT_DISTANCE)
        opt.ccd_iterations = max(opt.ccd_iterations, _ITERATIONS)
        mujoco.mj_copyState(self.model, user_data, self.data, _STATE)

    def state(self) -> State:
        """The present state."""
        d = self.data
        return State(float(d.time), d.qpos.copy(), d.qvel.copy(), d.act.copy())

    def place(self, state: State) -> None:
        """Put the data into a state."""
        d = self.data
        d.time = state.time
        d.qpos[:], d.qvel[:] = state.qpos, state.qvel
        if state.act.size:
            d.act[:] = state.act

    def move(self, qpos: np.ndarray, along: np.ndarray, scale: float = 1.0) -> np.ndarray:
        """A position moved along a velocity, quaternions on their sphere."""
        moved = qpos.copy()
        mujoco.mj_integratePos(self.model, moved, along, scale)
        return moved

    def chart_rate(self, x: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Rate of the chart ``q = q0 + x`` for a velocity v at q.

        Rotations: ``q = q0 exp(x)`` gives ``x' = v + x cross v / 2 + c x cross (x cross v)``, the
        inverse of the right Jacobian; without it Runge-Kutta is of second order in space.
        """
        if self._turns.size == 0:
            return v
        rate = v.copy()
        turn_rate(self._turns, x, v, rate)
        return rate

    def look(self, state: State) -> None:
        """Kinematics alone."""
        self.place(state)
        mujoco.mj_fwdKinematics(self.model, self.data)

    def widen(self, state: State) -> None:
        """Set margins that reach as far as bodies can move in a step from a state."""
        self.look(state)
        self.private.widen_margins(self.data)

    def list(self, state: State) -> Listing:
        """Constraints within the present margins at a state."""
        self.look(state)
        own, data = self.model, self.data
        mujoco.mj_collision(own, data)
        mujoco.mj_makeConstraint(own, data)
        return listing(self.private, data)

    def inertia(self) -> np.ndarray:
        """Inertia at the state that was looked at last."""
        own, data = self.model, self.data
        mujoco.mj_makeM(own, data)
        M = np.empty((own.nv, own.nv))
        mujoco.mj_fullM(own, data, M)
        return M

    def smooth(self) -> Smooth:
        """Inertia and smooth forces at the state that was looked at last."""
        own, data = self.model, self.data
        M = self.inertia()
        mujoco.mj_factorM(own, data)
        mujoco.mj_transmission(own, data)
        mujoco.mj_fwdVelocity(own, data)
        mujoco.mj_fwdActuation(own, data)
        mujoco.mj_fwdAcceleration(own, data)
        return Smooth(M, data.qfrc_smooth.copy(), data.act_dot.copy())

    def accelerate(self, f: np.ndarray) -> np.ndarray:
        """What a force does, with the inertia of the last call of `smooth`."""
        a = np.empty((1, f.shape[0]))
        mujoco.mj_solveM(self.model, self.data, a, f.reshape(1, -1))
        return a[0]

    def implicit(self, h: float) -> Implicit:
        """Inertia with the implicit damping of the model's integrator, for a step of h seconds."""
        private, opt, smooth = self.private, self.model.opt, self.smooth()
        whole = private.h
        private.h = opt.timestep = h
        A, f = effective_inertia(private, self.data)
        f, turned = self._gyroscopic.correct(self.data, A, f)
        private.h = opt.timestep = whole
        return Implicit(A, f, smooth.act_dot, turned)

    def limited(self, start: State, end: State) -> State:
        """The end of a step at velocity level, no faster than the motion that was solved for.

        A velocity has another energy where the inertia is another; where bodies turn by radians in
        a step, the difference is no small one.
        """
        self.look(start)
        before = self.inertia()
        self.look(end)
        return end._replace(qvel=self._gyroscopic.limited(before, self.inertia(), end.qvel))

    def clamp(self, act: np.ndarray) -> np.ndarray:
        """Activations, brought into their ranges."""
        model = self.model
        for i in self._limited:
            at, count = int(model.actuator_actadr[i]), int(model.actuator_actnum[i])
            if at >= 0 and count:
                act[at + count - 1] = np.clip(act[at + count - 1], *model.actuator_actrange[i])
        return act

    def energy(self, state: State) -> float:
        """Kinetic and potential energy [J]."""
        self.look(state)
        own, data = self.model, self.data
        mujoco.mj_makeM(own, data)
        mujoco.mj_comVel(own, data)
        mujoco.mj_energyPos(own, data)
        mujoco.mj_energyVel(own, data)
        return float(data.energy[0] + data.energy[1])

    def geom_speeds(self, state: State) -> tuple[np.ndarray, np.ndarray]:
        """(ngeom, 3) velocity of the centre of each geom, and (ngeom, 3) its spin."""
        self.look(state)
        own, data = self.model, self.data
        mujoco.mj_comVel(own, data)
        velocity, spin = np.empty((2, own.ngeom, 3))
        geom_motion(data.cvel, data.geom_xpos, data.subtree_com, self.private.geom_body, self._root,
                    velocity, spin)  # fmt: skip
        return velocity, spin


def _turns(model: Any) -> np.ndarray:
    """First coordinate of each rotation in space."""
    free, ball = int(mujoco.mjtJoint.mjJNT_FREE), int(mujoco.mjtJoint.mjJNT_BALL)
    turns = []
    for kind, at in zip(model.jnt_type.tolist(), model.jnt_dofadr.tolist(), strict=True):
        if kind in (free, ball):
            turns.append(at + 3 if kind == free else at)
    return np.array(turns, dtype=np.int64)


@entry
def turn_rate(turns: np.ndarray, x: np.ndarray, v: np.ndarray, rate_out: np.ndarray) -> None:
    """Fill in the rates of rotations, see `Probe.chart_rate`."""
    for at in turns:
        p, q, r = x[at], x[at + 1], x[at + 2]
        a, b, c = v[at], v[at + 1], v[at + 2]
        angle2 = p * p + q * q + r * r
        if angle2 < _SMALL:
            third = 1.0 / 12.0 + angle2 / 720.0 + angle2 * angle2 / 30240.0
        else:
            angle = np.sqrt(angle2)
            third = 1.0 / angle2 - 0.5 / (angle * np.tan(0.5 * angle))
        d, e, f = q * c - r * b, r * a - p * c, p * b - q * a
        rate_out[at] = a + 0.5 * d + third * (q * f - r * e)
        rate_out[at + 1] = b + 0.5 * e + third * (r * d - p * f)
        rate_out[at + 2] = c + 0.5 * f + third * (p * e - q * d)


@entry
def geom_motion(
    cvel: np.ndarray,
    geom_xpos: np.ndarray,
    subtree_com: np.ndarray,
    geom_body: np.ndarray,
    root: np.ndarray,
    velocity_out: np.ndarray,
    spin_out: np.ndarray,
) -> None:
    """Fill in velocities of the centres of geoms, and spins."""
    for g in range(geom_body.shape[0]):
        both = cvel[geom_body[g]]
        x = geom_xpos[g, 0] - subtree_com[root[g], 0]
        y = geom_xpos[g, 1] - subtree_com[root[g], 1]
        z = geom_xpos[g, 2] - subtree_com[root[g], 2]
        velocity_out[g, 0] = both[3] + both[1] * z - both[2] * y
        velocity_out[g, 1] = both[4] + both[2] * x - both[0] * z
        velocity_out[g, 2] = both[5] + both[0] * y - both[1] * x
        spin_out[g, 0], spin_out[g, 1], spin_out[g, 2] = both[0], both[1], both[2]
