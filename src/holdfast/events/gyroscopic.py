r"""Inertial forces of a step at velocity level, so that they add no energy.

Coriolis, centrifugal and gyroscopic forces taken at the start of a step of h seconds add energy of
order :math:`(h \omega)^2` to a body that spins at :math:`\omega`; where it turns by radians in a
step, each step multiplies its spin. Two rules prevent that:

- A free body without joints turns about its centre of mass by

  .. math:: I (\omega^+ - \omega) = \tfrac h2 (I \omega) \times (\omega + \omega^+),

  which is linear in :math:`\omega^+`, of the same order, and keeps
  :math:`\tfrac12 \omega^T I \omega` for every h.
- Of any other tree whose velocity inertial forces change by more than `CHANGED` of it, what they
  make of the velocity has the kinetic energy at the end of the step that the velocity had at its
  start: :math:`u^T M(q + h u)\, u = v^T M(q)\, v`, as such forces do no work.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from holdfast.mujoco._mj import mujoco
from holdfast.mujoco.private_model import PrivateModel

CHANGED = 0.05  # part of a tree's velocity, as its inertia measures it, that is no small change
ROUNDS = 3  # towards a velocity u of that energy, whose end depends on it
TURNED = 0.5  # the same, beyond which a step is too long to be followed
_IMPLICIT = int(mujoco.mjtIntegrator.mjINT_IMPLICIT)
_IMPLICITFAST = int(mujoco.mjtIntegrator.mjINT_IMPLICITFAST)


class _Body(NamedTuple):
    """A free body without joints."""

    number: int
    dof: int  # first of six
    inertia: np.ndarray  # (3, 3) about the centre of mass, along the axes of the body
    resting: np.ndarray  # (3, 3) armature: inertia that does not turn with the body
    centre: np.ndarray  # (3,) of mass


class Gyroscopic:
    """Corrects the smooth force of a step at velocity level."""

    def __init__(self, private: PrivateModel) -> None:
        self._private = private
        self._tree = np.array(private.user.dof_treeid)
        self._count = int(private.user.ntree)
        self._ahead: Any = None  # data at the end of a step
        model = private.user
        free = model.jnt_type == int(mujoco.mjtJoint.mjJNT_FREE)
        bodies = np.bincount(model.body_treeid[model.body_treeid >= 0], minlength=self._count)
        free &= bodies[np.maximum(model.body_treeid[model.jnt_bodyid], 0)] == 1
        self._dof, self._number = model.jnt_dofadr[free].tolist(), model.jnt_bodyid[free].tolist()

    def correct(self, data: Any, A: np.ndarray, f: np.ndarray) -> tuple[np.ndarray, float]:
        """The force f of ``A (v_free - v) = h f`` without gain of energy, and how much it turns.

        Args:
            data: after `mj_fwdAcceleration`.
            A: inertia of the step.
            f: smooth force.

        Returns:
            The force; and the largest change of a tree's velocity by inertial forces, as part of
            it, but for bodies whose rotation is taken exactly.
        """
        private, v = self._private, data.qvel
        kind, h = private.integrator, private.h
        if kind == _IMPLICIT or (kind == _IMPLICITFAST and private.spins):
            return f, 0.0  # MuJoCo takes them implicitly
        force = self._inertial_force(data)
        if not force.any():
            return f, 0.0
        given = h * np.linalg.solve(A, force)
        kick = given.copy()
        bodies = self._bodies()
        for body in bodies:
            self._turn(body, data, kick, h)
        M = _inertia(private.model, data)
        had, gets = self.double_energy(M, v), self.double_energy(M, kick)
        part = np.sqrt(np.divide(gets, had, out=np.zeros_like(had), where=had > 0.0))
        for body in bodies:  # what is left is the way of its origin about the centre
            part[self._tree[body.dof]] *= bool(body.centre.any())
        if (part > CHANGED).any():
            for _ in range(ROUNDS):
                u = v + kick
                end = self.double_energy(self._inertia_ahead(data, u, h), u)
                large = (part > CHANGED) & (end > 0.0)
                scale = np.ones(self._count)
                scale[large] = np.sqrt(had[large] / end[large])
                kick += (scale[self._tree] - 1.0) * u
        return f + A @ (kick - given) / h, float(part.max(initial=0.0))

    def double_energy(self, M: np.ndarray, v: np.ndarray) -> np.ndarray:
        """(ntree,) twice the kinetic energy of each tree."""
        return np.bincount(self._tree, v * (M @ v), minlength=self._count)

    def limited(self, before: np.ndarray, after: np.ndarray, v: np.ndarray) -> np.ndarray:
        """The velocity v, slower where the inertia `after` gives it more energy than `before`."""
        had, has = self.double_energy(before, v), self.double_energy(after, v)
        scale, more = np.ones(self._count), has > had
        scale[more] = np.sqrt(had[more] / has[more])
        return scale[self._tree] * v

    def _inertia_ahead(self, data: Any, u: np.ndarray, h: float) -> np.ndarray:
        """Inertia where the velocity u leads in h seconds."""
        own = self._private.model
        if self._ahead is None:
            self._ahead = mujoco.MjData(self._private.user)
        ahead = self._ahead
        ahead.qpos[:] = data.qpos
        mujoco.mj_integratePos(own, ahead.qpos, u, h)
        mujoco.mj_fwdKinematics(own, ahead)
        mujoco.mj_makeM(own, ahead)
        return _inertia(own, ahead)

    def _inertial_force(self, data: Any) -> np.ndarray:
        own = self._private.model
        gravity, force = np.array(own.opt.gravity), np.empty(own.nv)
        own.opt.gravity[:] = 0.0
        mujoco.mj_rne(own, data, 0, force)
        own.opt.gravity[:] = gravity
        return -force

    def _bodies(self) -> list[_Body]:
        """Free bodies without joints; masses may change from step to step."""
        model, found = self._private.model, []
        for dof, number in zip(self._dof, self._number, strict=True):
            frame = np.empty(9)
            mujoco.mju_quat2Mat(frame, model.body_iquat[number])
            axes = frame.reshape(3, 3)
            inertia = axes @ (model.body_inertia[number][:, None] * axes.T)
            resting = np.diag(model.dof_armature[dof + 3 : dof + 6])
            found.append(_Body(number, dof, inertia, resting, np.array(model.body_ipos[number])))
        return found

    @staticmethod
    def _turn(body: _Body, data: Any, kick_inout: np.ndarray, h: float) -> None:
        """Add to the change of velocity what the rotation of the body differs by."""
        rotation = slice(body.dof + 3, body.dof + 6)
        w = data.qvel[rotation]
        x, y, z = body.inertia @ w
        cross = 0.5 * h * np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
        whole = body.inertia + body.resting
        change = np.linalg.solve(whole - cross, 2.0 * (cross @ w))
        other = change - np.linalg.solve(whole, 2.0 * (cross @ w))
        kick_inout[rotation] += other
        axes = data.xmat[body.number].reshape(3, 3)
        kick_inout[body.dof : body.dof + 3] -= axes @ np.cross(other, body.centre)


def _inertia(model: Any, data: Any) -> np.ndarray:
    M = np.empty((model.nv, model.nv))
    mujoco.mj_fullM(model, data, M)
    return M
