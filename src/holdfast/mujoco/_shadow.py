"""The stepper's own copy of a model, and the stages of MuJoCo's pipeline run on it.

The copy differs from the user's model in what exact contact needs: the elliptic cone, whose rows
are the contact's own axes; margins that reach as far as bodies can move in one step; no islands, no
sleep. Everything else follows the user's model: numbers that are edited while a
simulation runs (masses, gains, gravity, the time step) are taken over at every step.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from holdfast._jit import entry
from holdfast.mujoco import _memory as mem
from holdfast.mujoco._borrow import array_of, borrow
from holdfast.mujoco._limit_sensors import limit_sensors
from holdfast.mujoco._memory import Memory, copy_segments
from holdfast.mujoco._mj import mujoco
from holdfast.mujoco._options import option_copier, option_segment
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
DISABLED, KEPT = int(_DISABLED), ~int(_ENABLED)  # flags that are set, and those left as they are
ELLIPTIC, PYRAMIDAL = int(mujoco.mjtCone.mjCONE_ELLIPTIC), int(mujoco.mjtCone.mjCONE_PYRAMIDAL)
SPARSE, AUTO = int(mujoco.mjtJacobian.mjJAC_SPARSE), int(mujoco.mjtJacobian.mjJAC_AUTO)
NEWTON = int(mujoco.mjtSolver.mjSOL_NEWTON)
EULER, RK4 = int(mujoco.mjtIntegrator.mjINT_EULER), int(mujoco.mjtIntegrator.mjINT_RK4)
IMPLICITFAST = int(mujoco.mjtIntegrator.mjINT_IMPLICITFAST)
_DISCRETE = int(mujoco.mjtIntegrator.mjINT_DISCRETE)
_WRITTEN = ["geom_margin", "geom_gap", "body_margin", "pair_margin", "pair_gap", "jnt_margin",
            "tendon_margin"]  # fmt: skip
_BULK = ("mesh_", "tex_", "skin_", "hfield_data", "flex", "bvh_", "oct_", "names", "paths", "text_")


class Shadow:
    """A private copy of a model that keeps up with the original.

    Attributes:
        user: the original; never written.
        model: the copy.
        radius: of a ball about each geom [m]; 0 for one without end.
        adhesive: whether contacts attract: then forces need the user's own margins.
        pyramids: whether rows may be listed as edges of friction pyramids, as the user's model may
            want them; else they are listed again when the forces are known.
        pyramidal: whether rows are listed so.
        spins: whether MuJoCo's integrator `implicitfast` has gyroscopic terms for some bodies:
            those that are free, and carry no joints.
        sensors: whether there are any.
        limit_sensors: those that MuJoCo does not read as the user's model says.
        memory: where data keeps its arrays.
        segments: what to copy from the user's model so that MuJoCo's functions see it, see
            `copy_segments`; most arrays they see in that model itself.
        root, moving, addresses, counts: see `set_margins_at`.
    """

    def __init__(self, model: Any) -> None:
        refuse(model)
        self.user = model
        self.model = copy.copy(model)
        names, options = _numbers(model), option_segment(model, self.model)
        borrowed = [name for name in names if name not in _WRITTEN]
        own = _WRITTEN if borrow(model, self.model, borrowed) else names
        shown = [name for name in names if name not in own]
        self._shown = np.array(_segments(model, self.model, shown, slack=1)).reshape(-1, 3)
        own_segments = _segments(model, self.model, own)
        self.segments = np.array(own_segments + ([] if options is None else [options]))
        body = mujoco.mjtTrn.mjTRN_BODY
        self.adhesive = bool(np.any(model.geom_adhesion) or np.any(model.actuator_trntype == body))
        free = model.jnt_dofadr[model.jnt_type == mujoco.mjtJoint.mjJNT_FREE]
        alone = np.bincount(model.dof_treeid, minlength=1) == 6
        self.spins = bool(alone[model.dof_treeid[free]].any())
        self._copy_options = option_copier(model, self.model) if options is None else None
        self.geom_body = np.array(model.geom_bodyid)
        self.root = np.array(model.body_rootid)[self.geom_body]
        self.moving = np.flatnonzero(model.body_weldid[self.geom_body] > 0)
        self.radius = np.where(np.isfinite(model.geom_rbound), model.geom_rbound, 0.0)
        own = self.model
        self._opt = own.opt
        self._margins = (own.pair_geom1, own.pair_geom2, own.geom_margin, own.geom_gap,
                         own.body_margin, own.pair_margin, own.pair_gap)  # fmt: skip
        self.memory, self.sensors = Memory(), own.nsensor > 0
        self.limit_sensors = limit_sensors(own)
        written = (own.opt.gravity, *self._margins, model.geom_contype, model.geom_conaffinity)
        self.addresses = np.array([array.ctypes.data for array in written])
        self.counts = np.array([own.nbody, own.ngeom, own.npair])
        self._limit_margins = [a for a in (own.jnt_margin, own.tendon_margin) if a.size]
        self.size = float(own.stat.meansize)
        self.h, self.integrator, self.user_flags, self.enabled, self.cone = 0.0, 0, 0, 0, 0
        self.pyramids, self.pyramidal = not self.adhesive, False
        self.follow()

    def follow(self) -> None:
        """Take over whatever changed in the user's model, and set what exact contact needs."""
        copy_segments(self.segments)
        if self._copy_options is not None:
            self._copy_options()
        self.read()
        own = self._opt
        own.disableflags = self.user_flags | DISABLED
        own.enableflags, own.integrator = self.enabled, self.integrator
        own.solver, own.noslip_iterations = NEWTON, 0

    def read(self) -> None:
        """Read the user's options.

        Sets `h`, the step length [s], `integrator`, `user_flags`, what the user disabled,
        `enabled`, and `cone`. Attributes of the copy show borrowed arrays as they are now.
        """
        copy_segments(self._shown)
        given = self.user.opt
        self.h, self.cone, self.user_flags = given.timestep, given.cone, given.disableflags
        self.enabled = given.enableflags & KEPT
        self.integrator = EULER if given.integrator == RK4 else given.integrator

    @property
    def discrete(self) -> bool:
        """Whether MuJoCo's discrete integrator is in use; its metric is built by its pipeline."""
        return self.integrator == _DISCRETE

    def collide(self, data: Any, *, pyramidal: bool = False) -> None:
        """Kinematics, inertia, contacts within reach and their rows; see `mj_fwdPosition`."""
        own = self.model
        self.pyramidal = pyramidal
        self._opt.cone = PYRAMIDAL if pyramidal else ELLIPTIC
        if self.adhesive:
            self._touching_margins()
        mujoco.mj_fwdKinematics(own, data)
        if self.discrete:
            if not self.adhesive:
                self.widen_margins(data)
            mujoco.mj_fwdPosition(own, data)
            return
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
        self.widen_margins(data)
        mujoco.mj_collision(self.model, data)
        mujoco.mj_makeConstraint(self.model, data)

    def list_elliptic(self, data: Any) -> None:
        """List the rows again as axes of the contact frames, now and in later steps."""
        self.pyramids = self.pyramidal = False
        self._opt.cone = ELLIPTIC
        mujoco.mj_makeConstraint(self.model, data)

    def widen_margins(self, data: Any) -> None:
        """Set margins that reach as far as bodies can move in this step; `follow` resets them."""
        own = self.model
        mujoco.mj_comVel(own, data)
        if self.memory.known:
            self._opt.o_margin = set_margins_at(
                self.memory.places(data), self.addresses, self.counts, self.geom_body,
                self.root, self.moving, self.radius, self.h,
            )  # fmt: skip
        else:
            self._opt.o_margin = set_margins(
                data.cvel, data.geom_xpos, data.subtree_com, self._opt.gravity, self.geom_body,
                self.root, self.moving, self.radius, own.geom_contype, own.geom_conaffinity,
                *self._margins, self.h,
            )  # fmt: skip
        for margin in self._limit_margins:
            margin[:] = LIMIT_REACH

    def narrow_margins(self, data: Any) -> None:
        """Set margins that reach hardly beyond the surfaces, wherever bodies are in `data`."""
        self._opt.o_margin = set_margins(
            data.cvel, data.geom_xpos, data.subtree_com, self._opt.gravity, self.geom_body,
            self.root, self.moving, self.radius, self.model.geom_contype,
            self.model.geom_conaffinity, *self._margins, 0.0,
        )  # fmt: skip


@entry
def set_margins(
    cvel: np.ndarray,
    geom_xpos: np.ndarray,
    subtree_com: np.ndarray,
    gravity: np.ndarray,
    geom_body: np.ndarray,
    root: np.ndarray,
    moving: np.ndarray,
    radius: np.ndarray,
    contype: np.ndarray,
    conaffinity: np.ndarray,
    pair_geom1: np.ndarray,
    pair_geom2: np.ndarray,
    geom_margin_out: np.ndarray,
    geom_gap_out: np.ndarray,
    body_margin_out: np.ndarray,
    pair_margin_out: np.ndarray,
    pair_gap_out: np.ndarray,
    h: float,
) -> float:
    """Fill margins with how far any point of a geom can get in this step [m]; return the largest.

    Args:
        moving: geoms that can move at all.
        radius: of a ball about each geom; 0 for one without end.
        contype, conaffinity: geoms without either touch nothing, unless pairs are listed.
    """
    geom_margin_out[:] = 0.0
    geom_gap_out[:] = 0.0
    body_margin_out[:] = 0.0
    pair_gap_out[:] = 0.0
    fall = np.sqrt(gravity[0] ** 2 + gravity[1] ** 2 + gravity[2] ** 2)
    fall *= GRAVITY_RESERVE * h * h
    largest = 0.0
    for g in moving:
        if pair_geom1.shape[0] == 0 and contype[g] == 0 and conaffinity[g] == 0:
            continue
        b = geom_body[g]
        x = geom_xpos[g, 0] - subtree_com[root[g], 0]
        y = geom_xpos[g, 1] - subtree_com[root[g], 1]
        z = geom_xpos[g, 2] - subtree_com[root[g], 2]
        p, q, r = cvel[b, 0], cvel[b, 1], cvel[b, 2]
        u = cvel[b, 3] + q * z - r * y
        v = cvel[b, 4] + r * x - p * z
        w = cvel[b, 5] + p * y - q * x
        speed = np.sqrt(u * u + v * v + w * w) + np.sqrt(p * p + q * q + r * r) * radius[g]
        reach = SPEED_RESERVE * h * speed + fall + SIZE_RESERVE * radius[g]
        geom_margin_out[g] = reach
        body_margin_out[b] = max(body_margin_out[b], reach)
        largest = max(largest, reach)
    for k in range(pair_geom1.shape[0]):
        pair_margin_out[k] = geom_margin_out[pair_geom1[k]] + geom_margin_out[pair_geom2[k]]
    return 2.0 * largest


@entry
def set_margins_at(
    places: np.ndarray,
    model: np.ndarray,
    counts: np.ndarray,
    geom_body: np.ndarray,
    root: np.ndarray,
    moving: np.ndarray,
    radius: np.ndarray,
    h: float,
) -> float:
    """Call `set_margins` with the arrays at these addresses, of mjData and of the model.

    Args:
        places: see `Memory`.
        model: addresses of gravity, of what `set_margins` takes from pair_geom1 on, and of
            contype and conaffinity.
        counts: of bodies, geoms and pairs.
    """
    bodies, geoms, pairs = counts[0], counts[1], counts[2]
    return set_margins(
        mem.floats(mem.word(places[mem.CVEL]), bodies, 6),
        mem.floats(mem.word(places[mem.GEOM_XPOS]), geoms, 3),
        mem.floats(mem.word(places[mem.SUBTREE_COM]), bodies, 3),
        mem.floats(model[0], 1, 3)[0], geom_body, root, moving, radius,
        mem.integers(model[8], 1, geoms)[0], mem.integers(model[9], 1, geoms)[0],
        mem.integers(model[1], 1, pairs)[0], mem.integers(model[2], 1, pairs)[0],
        mem.floats(model[3], 1, geoms)[0], mem.floats(model[4], 1, geoms)[0],
        mem.floats(model[5], 1, bodies)[0], mem.floats(model[6], 1, pairs)[0],
        mem.floats(model[7], 1, pairs)[0], h,
    )  # fmt: skip


def _numbers(model: Any) -> list[str]:
    """The arrays that hold the numbers of a model.

    Bulky ones that do not change (meshes, textures, names) are left out.
    """
    names = [name for name in dir(model) if not name.startswith(("_", *_BULK))]
    return [name for name in names if array_of(model, name) is not None]


def _segments(user: Any, own: Any, names: list[str], slack: int = 64) -> list[tuple[int, int, int]]:
    """Stretches of memory (target, source, size) that hold these arrays of a model.

    All arrays of a model lie in one buffer, one after the other. Less than `slack` bytes between
    two of them are copied, too.
    """
    pieces = []
    for name in names:
        array = array_of(user, name)
        if array is not None:
            pieces.append((array.ctypes.data, getattr(own, name).ctypes.data, array.nbytes))
    merged: list[list[int]] = []
    for source, target, size in sorted(pieces):
        if merged:
            last = merged[-1]
            skip = source - (last[1] + last[2])
            if 0 <= skip < slack and target - (last[0] + last[2]) == skip:
                last[2] += skip + size
                continue
        merged.append([target, source, size])
    return [(target, source, size) for target, source, size in merged]
