"""A usual step from MuJoCo's own arrays to MuJoCo's own arrays."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from holdfast._jit import COMPILED
from holdfast.mujoco import _at_once as kernels
from holdfast.mujoco import _library as lib
from holdfast.mujoco import _whole as whole
from holdfast.mujoco._inertia import entries, quick_kind
from holdfast.mujoco._lacking import Grip
from holdfast.mujoco._landing import Landing
from holdfast.mujoco._laws import Laws
from holdfast.mujoco._memory import Memory
from holdfast.mujoco._mj import CALLBACKS, mujoco
from holdfast.mujoco._options import option_addresses
from holdfast.mujoco._parts import gather_numbers, gather_rows
from holdfast.mujoco._publish import show
from holdfast.mujoco._quick import OPEN, Quick
from holdfast.mujoco._scene import REPORTED, Found, Scene
from holdfast.mujoco._shadow import AUTO, PYRAMIDAL, Shadow
from holdfast.mujoco._support import check_data
from holdfast.mujoco._usual import FOUND, NOT_SETTLED
from holdfast.mujoco.assemble import TOUCHING, Rows

_STATUS, _DONE = whole.STATUS, whole.DONE
_STEPPED = (whole.DONE, whole.LOOK)
_SINGLE = (int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE))


def _nothing() -> object:
    """No data yet, and none that anybody has."""
    return _nothing


def _listed_by_entries(own: Any) -> bool:
    """Whether MuJoCo lists rows by their entries where it is free to choose."""
    given, own.opt.jacobian = own.opt.jacobian, AUTO
    chosen = bool(mujoco.mj_isSparse(own))
    own.opt.jacobian = given
    return chosen


class Direct(Quick):
    """Steps that are usual, from MuJoCo's own arrays to MuJoCo's own arrays.

    Args:
        contact: the contact model.
        shadow: the model that is stepped, and where its data keep things.
        laws: of pairs.
        landing: looks where motions lead.
        before, left: filled with the state before a whole step, and with the position after it.

    Attributes:
        data: returns the data that are stepped.
        in_one_call: whether a usual step is one.
    """

    def __init__(
        self, contact: Any, shadow: Shadow, laws: Laws, landing: Landing, before: np.ndarray,
        left: np.ndarray,
    ) -> None:  # fmt: skip
        own, user = shadow.model, shadow.user
        super().__init__(contact, max(1, own.ntree))
        settings = self._settings
        self._shadow, self._memory, self._landing = shadow, shadow.memory, landing
        driven = own.nmocap > 0 and own.neq > 0
        drags = laws.only not in ("stick", "frictionless")
        self.applies = self.applies and self._memory.known and not (
            shadow.adhesive or driven or drags
        )  # fmt: skip
        self._options[1:3] = TOUCHING * shadow.size, OPEN * shadow.size
        self._options[kernels.SIZE] = shadow.size
        settings[kernels.NGEOM], settings[kernels.POLY] = own.ngeom, own.dof_dampingpoly.shape[1]
        settings[kernels.STICK] = laws.only == "stick"
        settings[kernels.NBODY], settings[kernels.AUTO] = own.nbody, _listed_by_entries(own)
        settings[kernels.IN_M], settings[kernels.IN_D] = len(own.M_colind), len(own.D_colind)
        self._entries = entries(own)
        settings[kernels.PAIRS_IN_D] = len(self._entries[1])
        arrays = (
            *self._entries, user.dof_damping, user.dof_dampingpoly, shadow.geom_body,
            user.geom_margin, user.dof_treeid, user.body_treeid,
        )  # fmt: skip
        self._sizes[0] = own.nv
        self._state = np.zeros((2, own.nv))
        self._now: tuple[Any, ...] = ()  # what settings and options say
        self.data: Callable[[], object] = _nothing
        for field, array in (
            (whole.ARRAYS, np.array([array.ctypes.data for array in arrays])),  # keeps no model
            (whole.CONTACT, self._memory.contact), (whole.STATE, self._state),
            (whole.BEFORE, before), (whole.LEFT, left),
        ):  # fmt: skip
            self._put(field, array)
        single = np.isin(own.jnt_type, _SINGLE)
        joints = np.flatnonzero(single), own.jnt_qposadr[single], own.jnt_dofadr[single]
        self._joints = np.stack(joints, axis=1).astype(np.int64)  # that have one coordinate
        may = self.applies and COMPILED and not shadow.limit_sensors
        self.in_one_call = may and self._prepare_whole()

    def _prepare_whole(self) -> bool:
        """Tell the kernels where the model and MuJoCo's functions are; whether that is known."""
        shadow, desk = self._shadow, self._desk
        own = shadow.model
        options = option_addresses(own, whole.FIELDS)
        if lib.library() is None or options is None:
            return False
        desk[whole.MODEL], desk[whole.SENSORS] = own._address, shadow.sensors
        desk[whole.PYRAMIDS] = shadow.pyramids
        desk[whole.SPINS], desk[whole.DERIVATIVE] = shadow.spins, lib.derivative_function()
        desk[whole.GET_STATE : whole.DESK] = [
            *map(lib.address, whole.FUNCTIONS),
            *(lib.variable(f"mjcb_{name}") for name in CALLBACKS), *options,
        ]  # fmt: skip
        for field, array in (
            (whole.SEGMENTS, shadow.segments), (whole.WRITTEN, shadow.addresses),
            (whole.COUNTS, shadow.counts), (whole.GEOM_BODY, shadow.geom_body),
            (whole.ROOT, shadow.root), (whole.MOVING, shadow.moving),
            (whole.RADIUS, shadow.radius), (whole.JOINTS, self._joints),
            (whole.JOINT_MARGIN, own.jnt_margin), (whole.TENDON_MARGIN, own.tendon_margin),
        ):  # fmt: skip
            self._put(field, array)
        for field, array in (
            (whole.LIMITED, shadow.user.jnt_limited), (whole.RANGE, shadow.user.jnt_range),
        ):  # fmt: skip
            desk[field : field + 2] = array.ctypes.data, array.size  # keeps no model
        self._guarded = lib.guarded(whole.step_at, desk.ctypes.data)
        return True

    def whole(self, data: Any) -> int:
        """Take a whole step in one call, if it is a usual one.

        Returns:
            DONE; or LOOK if contacts lack friction and somebody wants to be warned, or if they have
            sunk in; or NOT_TRIED; or what `step` does after the stages before contact.
        """
        if not self.in_one_call:
            return whole.NOT_TRIED
        self._guarded()
        status = self._view[_STATUS]
        return status if status == _DONE else self._look_after(data, status)

    @property
    def warn(self) -> bool:
        """Whether somebody wants to be told of friction that does not suffice."""
        return not self._settings[kernels.QUIET]

    @warn.setter
    def warn(self, wanted: bool) -> None:
        self._settings[kernels.QUIET] = not wanted

    def _look_after(self, data: Any, status: int) -> int:
        """Go on with a whole step that has not been done."""
        desk, shadow = self._view, self._shadow
        own = shadow.model
        if status == kernels.GROW:
            status = self._run_on(guarded=True)
        if status == kernels.NARROW:
            desk[whole.PYRAMIDS] = 0  # from now on
        if status in _STEPPED:
            return status
        if status == NOT_SETTLED:
            status = self._search_parts(guarded=True)
        if status == kernels.LANDS and not desk[whole.TRIAL] and not own.nmocap:
            trial = self._landing.trial  # from now on the kernels look by themselves
            desk[whole.TRIAL] = trial._address
            self._put(whole.THERE, Memory().places(trial))
            status = self._run(whole.SEARCHED, guarded=True)
        if status == whole.FAILED:  # MuJoCo has something to say: it is told where Python calls it
            mujoco.mj_setState(own, data, self._on_desk[whole.BEFORE], whole.STATE_KIND)
            return whole.NOT_TRIED
        if status in _STEPPED or status == whole.NOT_TRIED:
            return status
        if status != FOUND and shadow.user.jnt_limited.any():
            return whole.NOT_TRIED  # limits that are not listed may matter
        shadow.read()
        shadow.pyramidal = bool(self._settings[kernels.LISTED])
        return status

    def step(self, data: Any) -> int:
        """Solve and publish, after the stages before contact.

        Returns:
            FOUND; or LANDS if a motion was found and is yet to be looked at and published; or what
            is in doubt, or NOT_TRIED: then the rows have to be gathered first.
        """
        shadow, settings = self._shadow, self._settings
        if not self.applies:
            return whole.NOT_TRIED
        kind = quick_kind(shadow, data, self._state[0])
        if kind is None:
            return whole.NOT_TRIED
        settings[kernels.INERTIA], settings[kernels.LISTED] = kind, shadow.pyramidal
        settings[kernels.WANTED] = shadow.cone == PYRAMIDAL
        settings[kernels.SPARSE] = mujoco.mj_isSparse(shadow.model)
        self._options[0] = shadow.h
        status = self._run(whole.ROWS)
        return self._search_parts() if status == NOT_SETTLED else status

    def attach(self, data: Any) -> None:
        """Step these data from now on; tell the kernels where they are."""
        check_data(self._shadow.model, data)
        if self._memory.known:
            self._desk[whole.DATA] = data._address
            self._put(whole.PLACES, self._memory.places(data))
        self.data = weakref.ref(data)

    def _search_parts(self, *, guarded: bool = False) -> int:
        """Search for the motion of the parts that are not usual; then go on."""
        status = self._search()
        return self._run(whole.SEARCHED, guarded=guarded) if status == FOUND else status

    def publish(self) -> int:
        """Publish what was found and has been looked at; FOUND."""
        return self._run(whole.LOOKED)

    def publish_again(self, data: Any) -> None:
        """Do what is left of that, where MuJoCo's list is not as the user wants it."""
        scene, _, out = self._carved()
        _, _, _, ne, nf, nl = self._sizes.tolist()
        limits = np.arange(ne + nf, ne + nf + nl)
        contact, first = scene.listed[0], scene.first
        show(self._shadow, data, contact, first, limits, out.impulse, left_out=True)

    @property
    def velocity(self) -> np.ndarray:
        """After the step, as it was found."""
        return self._carved()[2].motion

    def finish(self, data: Any) -> None:
        """Integrate with exactly the velocity that was solved for."""
        places = self._memory.places(data)
        kernels.hand_over(places, self._state)
        mujoco.mj_Euler(self._shadow.model, data)
        kernels.take_back(places, self._state)

    def found(self) -> tuple[Found, np.ndarray]:
        """What the last step found, copied, and the numbers of each of its parts."""
        numbers = np.empty((int(self.report[kernels.PARTS]), REPORTED))
        if len(numbers) > 1:
            gather_numbers(self._work, self._words, self._flags, self._table, numbers)
        return self._found(), numbers

    def mute(self, pairs: np.ndarray) -> None:
        """Steps in which no other pairs of bodies lack friction are done in one call."""
        self._put(whole.WARNED, pairs)

    def grip(self) -> Grip:
        """What holds what in the last step; not copied."""
        sc, _, out = self._carved()
        return Grip(
            sc.listed[5:7], sc.place, sc.first, sc.dim, sc.mu, out.impulse, out.contacts,
            out.grips,
        )  # fmt: skip

    def rows(self) -> Rows:
        """The scene of the last step as rows, copied."""
        parts = int(self.report[kernels.PARTS])
        if parts > 1:
            gather_rows(self._work, self._words, self._flags, self._sizes, self._table, parts)
        sc = Scene(*map(np.copy, self._carved()[0]))
        _, _, _, ne, nf, nl = self._sizes.tolist()
        return Rows(
            A=sc.A[0], f=sc.f, v=sc.v, h=float(self._options[0]), efc_J=sc.rows,
            equality=slice(0, ne), dry=slice(ne, ne + nf), limit=np.arange(ne + nf, ne + nf + nl),
            contact=sc.listed[0], first=sc.first, dim=sc.dim, gap=sc.gap, limit_gap=sc.limit_gap,
            error=sc.error, target=sc.target, loss=sc.loss, size=self._shadow.size, mu=sc.mu,
            geoms=sc.listed[3:5].T, bodies=sc.listed[5:7].T, place=sc.place,
            sunk=np.zeros(len(sc.gap)),
        )  # fmt: skip
