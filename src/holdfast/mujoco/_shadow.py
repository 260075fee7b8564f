"""The stepper's own copy of a model, and the stages of MuJoCo's pipeline run on it.

The copy differs from the user's model in what exact contact needs: the elliptic cone, whose rows
are the contact's own axes; dense rows; margins that reach as far as bodies can move in one step;
no islands, no sleep. Everything else follows the user's model: numbers that are edited while a
simulation runs (masses, gains, gravity, the time step) are taken over at every step.
"""

from __future__ import annotations

import copy
import ctypes
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np

from holdfast.mujoco._mj import mujoco
from holdfast.mujoco._support import refuse

# How far beyond its present speed a geom may get in one step before a contact is listed too late.
# A contact listed too late costs a position correction in the next step, one listed in vain costs
# a row that is not used.
SPEED_RESERVE = 1.5
GRAVITY_RESERVE = 4.0  # times h^2 |g|
SIZE_RESERVE = 1e-3  # times the radius of the geom, for motion that starts within the step
LIMIT_REACH = 1e6  # margin of joint and tendon limits [m, rad]: all are listed, few are used

ATTRACTED = 1e-7  # surfaces closer than this part of the mean size touch, for adhesion

_DISABLED = mujoco.mjtDisableBit.mjDSBL_ISLAND | mujoco.mjtDisableBit.mjDSBL_EULERDAMP
_ENABLED = (
    mujoco.mjtEnableBit.mjENBL_SLEEP
    | mujoco.mjtEnableBit.mjENBL_SPECULATIVE
    | mujoco.mjtEnableBit.mjENBL_FWDINV
    | mujoco.mjtEnableBit.mjENBL_DIAGEXACT
    | mujoco.mjtEnableBit.mjENBL_INVDISCRETE
)
_OPTIONS = ("timestep", "density", "viscosity", "disableactuator", "ccd_tolerance",
            "ccd_iterations", "sdf_initpoints", "sdf_iterations")  # fmt: skip
_OPTION_ARRAYS = ("gravity", "wind", "magnetic", "o_friction", "o_solref", "o_solimp")
_BULK = ("mesh_", "tex_", "skin_", "hfield_data", "flex", "bvh_", "oct_", "names", "paths", "text_")


_MARGINS = ("geom_margin", "geom_gap", "body_margin", "pair_margin", "pair_gap", "jnt_margin",
            "tendon_margin")  # fmt: skip


class Shadow:
    """A private copy of a model that keeps up with the original.

    Attributes:
        user: the original; never written.
        model: the copy.
        adhesive: whether contacts attract: then forces need the user's own margins.
    """

    def __init__(self, model: Any) -> None:
        refuse(model)
        self.user = model
        self.model = copy.copy(model)
        self._segments = _segments(model, self.model)
        body = mujoco.mjtTrn.mjTRN_BODY
        self.adhesive = bool(np.any(model.geom_adhesion) or np.any(model.actuator_trntype == body))
        own = self.model
        own.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
        own.opt.solver = mujoco.mjtSolver.mjSOL_NEWTON
        own.opt.noslip_iterations = 0
        self._geom_body = np.array(model.geom_bodyid)
        self._root = np.array(model.body_rootid)[self._geom_body]
        self._moving = np.flatnonzero(model.body_weldid[self._geom_body] > 0)
        self._small = np.where(np.isfinite(model.geom_rbound), model.geom_rbound, 0.0)

    @property
    def h(self) -> float:
        """Step length [s]."""
        return self.model.opt.timestep

    def follow(self) -> None:
        """Take over whatever changed in the user's model, and set what exact contact needs."""
        for target, source, size in self._segments:
            ctypes.memmove(target, source, size)
        own, user = self.model.opt, self.user.opt
        for name in _OPTIONS:
            setattr(own, name, getattr(user, name))
        for name in _OPTION_ARRAYS:
            getattr(own, name)[:] = getattr(user, name)
        own.disableflags = user.disableflags | _DISABLED
        own.enableflags = user.enableflags & ~_ENABLED
        rk4 = user.integrator == mujoco.mjtIntegrator.mjINT_RK4
        own.integrator = mujoco.mjtIntegrator.mjINT_EULER if rk4 else user.integrator

    @property
    def discrete(self) -> bool:
        """Whether MuJoCo's discrete integrator is in use; its metric is built by its pipeline."""
        return self.model.opt.integrator == mujoco.mjtIntegrator.mjINT_DISCRETE

    def collide(self, data: Any) -> None:
        """Kinematics, inertia, contacts within reach and their rows; see `mj_fwdPosition`."""
        own = self.model
        own.opt.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
        if self.adhesive:
            self._touching_margins()
        if self.discrete:
            mujoco.mj_fwdKinematics(own, data)
            with self.wide_margins(data) if not self.adhesive else nullcontext():
                mujoco.mj_fwdPosition(own, data)
            return
        mujoco.mj_fwdKinematics(own, data)
        mujoco.mj_makeM(own, data)
        mujoco.mj_factorM(own, data)
        if self.adhesive:  # attraction acts within the user's margins, not within ours
            mujoco.mj_collision(own, data)
            mujoco.mj_makeConstraint(own, data)
        else:
            self.list_reachable(data)
        mujoco.mj_transmission(own, data)

    def _touching_margins(self) -> None:
        """The user's margins, and a hair: bodies that touch without sinking in do attract."""
        own = self.model
        for margin in (own.geom_margin, own.body_margin, own.pair_margin):
            margin += ATTRACTED * own.stat.meansize

    def list_reachable(self, data: Any) -> None:
        """List the contacts and limits that can be reached in this step."""
        with self.wide_margins(data):
            mujoco.mj_collision(self.model, data)
            mujoco.mj_makeConstraint(self.model, data)

    @contextmanager
    def wide_margins(self, data: Any) -> Iterator[None]:
        """Margins that reach as far as bodies can move in this step; the user's afterwards."""
        own, user = self.model, self.user
        reach = self._reach(data)
        own.geom_margin[:] = reach
        own.geom_gap[:] = 0.0
        own.body_margin[:] = 0.0
        np.maximum.at(own.body_margin, self._geom_body, reach)
        if own.npair:
            own.pair_margin[:] = reach[own.pair_geom1] + reach[own.pair_geom2]
            own.pair_gap[:] = 0.0
        own.opt.o_margin = 2.0 * reach.max(initial=0.0)
        own.jnt_margin[:] = LIMIT_REACH
        own.tendon_margin[:] = LIMIT_REACH
        yield
        for name in _MARGINS:
            getattr(own, name)[:] = getattr(user, name)

    def _reach(self, data: Any) -> np.ndarray:
        """(ngeom,) how far any point of a geom can get in this step [m]."""
        h, some = self.h, self._moving
        reach = np.zeros(self.model.ngeom)
        if some.size == 0:
            return reach
        mujoco.mj_comVel(self.model, data)
        velocity = data.cvel[self._geom_body[some]]
        spin = velocity[:, :3]
        arm = data.geom_xpos[some] - data.subtree_com[self._root[some]]
        speed = np.sqrt(np.square(velocity[:, 3:] + np.cross(spin, arm)).sum(axis=1))
        speed += np.sqrt(np.square(spin).sum(axis=1)) * self._small[some]
        pull = float(np.linalg.norm(self.model.opt.gravity))
        reach[some] = SPEED_RESERVE * h * speed + GRAVITY_RESERVE * h * h * pull
        reach[some] += SIZE_RESERVE * self._small[some]
        return reach


def _segments(user: Any, own: Any) -> list[tuple[int, int, int]]:
    """Stretches of memory (target, source, size) that hold the numbers of a model.

    All arrays of a model lie in one buffer, one after the other. Bulky ones that do not change
    (meshes, textures, names) are left out.
    """
    pieces = []
    for name in dir(user):
        if name.startswith(("_", *_BULK)):
            continue
        array = getattr(user, name)
        if isinstance(array, np.ndarray) and array.nbytes and array.flags.c_contiguous:
            pieces.append((array.ctypes.data, getattr(own, name).ctypes.data, array.nbytes))
    merged: list[list[int]] = []
    for source, target, size in sorted(pieces):
        if merged:
            last = merged[-1]
            skip = source - (last[1] + last[2])
            if 0 <= skip < 64 and target - (last[0] + last[2]) == skip:
                last[2] += skip + size
                continue
        merged.append([target, source, size])
    return [(target, source, size) for target, source, size in merged]
