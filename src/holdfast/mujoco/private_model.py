"""The stepper's own copy of a model, kept up to date with the original.

The copy differs from the user's model in what exact contact needs: margins that reach as far as
bodies can move in one step, no islands, rows along the axes of contact frames. Everything else
follows the user's model: numbers that are edited while a simulation runs (masses, gains, gravity,
the time step) take effect in the next step. Nothing sleeps in the copy, except in steps
(`holdfast.mujoco.sleep`).

A copy would have to be copied again before every step. But a model is a struct of pointers, and all
its arrays lie in one buffer, which is what is freed when a model is deleted. So the pointers of the
copy lead to the arrays of the original, where every change is seen at once; where they stand,
MuJoCo's description of the struct says, and it is believed only if each one leads where the
attribute of its name does.
"""

from __future__ import annotations

import copy
import ctypes
from typing import Any

import numpy as np

from holdfast.errors import UnsupportedError
from holdfast.mujoco import smooth, structs
from holdfast.mujoco._mj import mujoco
from holdfast.mujoco.options import DEFAULT
from holdfast.mujoco.reach import LIMIT_REACH, set_margins
from holdfast.mujoco.support import refuse

_ANCHOR = "body_parentid"  # in every model, and never empty
_WRITTEN = ["geom_margin", "geom_gap", "body_margin", "pair_margin", "pair_gap", "jnt_margin",
            "tendon_margin"]  # fmt: skip
_BULK = ("mesh_", "tex_", "skin_", "hfield_data", "flex", "bvh_", "oct_", "names", "paths", "text_")


class PrivateModel:
    """A private copy of a model that keeps up with the original.

    Attributes:
        user: the original; never written.
        model: the copy.
        size: mean size of the model's bodies [m].
        radius: of a ball about each geom [m]; 0 for one without end.
        adhesive: whether contacts attract: then forces need the user's own margins.
        spins: whether MuJoCo's integrator `implicitfast` has gyroscopic terms for some bodies:
            those that are free, and carry no joints.
        segments: what to copy from the user's model so that MuJoCo's functions see it, (k, 3)
            target, source and size; most arrays they see in that model itself.
        h, integrator, cone: options of the user's model, as `follow` found them; RK4 is Euler.
        user_flags, enabled: what the user disabled; what is enabled in the copy.
    """

    def __init__(self, model: Any) -> None:
        refuse(model)
        structs.verify()
        self.user = model
        self.model = own = copy.copy(model)
        names = [name for name in dir(model) if not name.startswith(("_", *_BULK))]
        names = [name for name in names if array_of(model, name) is not None]
        shared = [name for name in names if name not in _WRITTEN]
        share(model, own, shared)
        self._shown = np.array(_segments(model, own, shared, slack=1)).reshape(-1, 3)
        options = (structs.option_address(own), structs.option_address(model),
                   ctypes.sizeof(structs.structure("mjOption")))  # fmt: skip
        self.segments = np.array([*_segments(model, own, _WRITTEN), options], dtype=np.int64)
        body = mujoco.mjtTrn.mjTRN_BODY
        self.adhesive = bool(np.any(model.geom_adhesion) or np.any(model.actuator_trntype == body))
        free = model.jnt_dofadr[model.jnt_type == mujoco.mjtJoint.mjJNT_FREE]
        alone = np.bincount(model.dof_treeid, minlength=1) == 6
        self.spins = bool(alone[model.dof_treeid[free]].any())
        self.geom_body = np.array(model.geom_bodyid)
        self.root = np.array(model.body_rootid)[self.geom_body]
        self.moving = np.flatnonzero(model.body_weldid[self.geom_body] > 0)
        self.radius = np.where(np.isfinite(model.geom_rbound), model.geom_rbound, 0.0)
        self.size = float(model.stat.meansize)
        self.sensors = model.nsensor > 0
        self._opt = own.opt
        self._margins = (own.pair_geom1, own.pair_geom2, own.geom_margin, own.geom_gap,
                         own.body_margin, own.pair_margin, own.pair_gap)  # fmt: skip
        self._drift = np.zeros(3)
        self.h, self.integrator, self.user_flags, self.enabled, self.cone = 0.0, 0, 0, 0, 0
        self.follow()

    def follow(self) -> None:
        """Take over whatever changed in the user's model, and set what exact contact needs."""
        smooth.copy_segments(self.segments)
        smooth.copy_segments(self._shown)  # attributes of the copy show shared arrays as they are
        given, own = self.user.opt, self._opt
        self.h, self.cone, self.user_flags = given.timestep, given.cone, given.disableflags
        self.enabled = given.enableflags & smooth.KEPT
        rk4 = given.integrator == smooth.RK4
        self.integrator = smooth.EULER if rk4 else given.integrator
        own.disableflags = self.user_flags | smooth.DISABLED
        own.enableflags, own.integrator = self.enabled, self.integrator
        own.solver, own.noslip_iterations, own.cone = smooth.NEWTON, 0, smooth.ELLIPTIC
        own.ccd_tolerance = min(own.ccd_tolerance, DEFAULT.sunk * self.size)

    @property
    def discrete(self) -> bool:
        """Whether MuJoCo's discrete integrator is in use; its metric is built by its pipeline."""
        return self.integrator == smooth.DISCRETE

    def collide(self, data: Any) -> None:
        """Kinematics, inertia, contacts within reach and their rows; see `mj_fwdPosition`."""
        own = self.model
        if self.adhesive:  # attraction acts within the user's margins
            for margin in (own.geom_margin, own.body_margin, own.pair_margin):
                margin += DEFAULT.adhesion_margin * self.size
        mujoco.mj_fwdKinematics(own, data)
        if self.discrete:
            if not self.adhesive:
                self.widen_margins(data)
            mujoco.mj_fwdPosition(own, data)
            return
        mujoco.mj_makeM(own, data)
        mujoco.mj_factorM(own, data)
        if self.adhesive:
            mujoco.mj_collision(own, data)
            mujoco.mj_makeConstraint(own, data)
        else:
            self.list_reachable(data)
        mujoco.mj_transmission(own, data)

    def list_reachable(self, data: Any) -> None:
        """List the contacts and limits that can be reached in this step."""
        self.widen_margins(data)
        mujoco.mj_collision(self.model, data)
        mujoco.mj_makeConstraint(self.model, data)

    def widen_margins(self, data: Any) -> None:
        """Set margins that reach as far as bodies can move in this step; `follow` resets them."""
        mujoco.mj_comVel(self.model, data)
        self._set_margins(data, self.h)
        self.model.jnt_margin[:] = self.model.tendon_margin[:] = LIMIT_REACH

    def narrow_margins(self, data: Any) -> None:
        """Set margins that reach hardly beyond the surfaces, wherever bodies are in `data`."""
        self._set_margins(data, 0.0)

    def _set_margins(self, data: Any, h: float) -> None:
        own = self.model
        self._opt.o_margin = set_margins(
            data.cvel, data.geom_xpos, data.subtree_com, self._opt.gravity, self.geom_body,
            self.root, self.moving, self.radius, own.geom_contype, own.geom_conaffinity,
            *self._margins, self.user.geom_margin, self.user.pair_margin, self._drift, h,
            DEFAULT.speed_reserve, DEFAULT.gravity_reserve, DEFAULT.size_reserve,
        )  # fmt: skip


def array_of(model: Any, name: str) -> np.ndarray | None:
    """An array of a model; None if there is none of that name, or nothing in it."""
    array = getattr(model, name, None)
    usable = isinstance(array, np.ndarray) and array.nbytes > 0 and array.flags.c_contiguous
    return array if usable else None


def share(lender: Any, borrower: Any, names: list[str]) -> None:
    """Let arrays of these names be those of the lender, for MuJoCo's functions.

    The borrower's attributes go on showing the arrays that it had. The lender must outlive every
    use of the borrower but its deletion.
    """
    theirs, ours = _pointers(lender), _pointers(borrower)
    if theirs is None or ours is None or not all(name in ours for name in names):
        raise UnsupportedError("mujoco", f"{mujoco.__version__} lays out mjModel in a way that "
                               "this version does not know; install mujoco 4.0")  # fmt: skip
    for name in names:
        ours[name].value = theirs[name].value


def _pointers(model: Any) -> dict[str, ctypes.c_void_p] | None:
    """The pointers to the arrays of a model, as they stand in its struct; None if unknown."""
    try:
        from mujoco.introspect.structs import STRUCTS

        described: Any = STRUCTS["mjModel"].fields
        fields = [field.name for field in described if str(field.type).endswith("*")]
        names = fields[fields.index("buffer") + 1 :]
        before = names.index(_ANCHOR)
    except (ImportError, KeyError, ValueError):
        return None
    first = array_of(model, _ANCHOR)
    if first is None or not hasattr(model, "_address"):
        return None
    # They stand side by side at the end of the struct, which is no shorter than they are.
    size = ctypes.sizeof(ctypes.c_void_p)
    begin = list((ctypes.c_size_t * len(names)).from_address(model._address))
    if first.ctypes.data not in begin:
        return None
    # Arrays without entries before the anchor lead to the same place: it is the last of them.
    found = len(begin) - 1 - begin[::-1].index(first.ctypes.data)
    at = model._address + size * (found - before)
    pointers = {name: ctypes.c_void_p.from_address(at + k * size) for k, name in enumerate(names)}
    for name, pointer in pointers.items():
        array = array_of(model, name)
        if array is not None and pointer.value != array.ctypes.data:
            return None
    return pointers


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
