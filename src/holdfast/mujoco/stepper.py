"""Stepping a MuJoCo model with exact contact.

`step` and `forward` are called like `mujoco.mj_step` and `mujoco.mj_forward`. A `Stepper` is the
same with choices, and with tables of what a step has found.
"""

from __future__ import annotations

import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal
from weakref import WeakKeyDictionary

import numpy as np

from holdfast._jit import COMPILED
from holdfast.contact.arrays import SolveStatus
from holdfast.contact.laws import Law, coulomb
from holdfast.contact.solution import ContactSolution
from holdfast.errors import (
    FrictionWarning,
    HoldfastError,
    InputError,
    SolveError,
    StepWarning,
    UnsupportedError,
)
from holdfast.models import ContactModel
from holdfast.mujoco import c_api, smooth, structs
from holdfast.mujoco._mj import mujoco
from holdfast.mujoco.claim import Claim
from holdfast.mujoco.constraints import COLUMNS, Kind
from holdfast.mujoco.contacts import Contacts, name_of
from holdfast.mujoco.options import DEFAULT, StepOptions
from holdfast.mujoco.outcome import Outcome, copy_outcome
from holdfast.mujoco.pair_laws import PairLaws, law_kind, law_of_model
from holdfast.mujoco.pipeline import forward_in_python
from holdfast.mujoco.private_model import PrivateModel
from holdfast.mujoco.record import RECORD, Stage, Status
from holdfast.mujoco.step import carve_in_python, step_at
from holdfast.mujoco.support import check_data, check_finite, check_timestep, whole_number
from holdfast.mujoco.warm_start import MOST
from holdfast.mujoco.writeback import LIMIT_SENSORS

_PACKAGE = str(Path(__file__).parents[1])
_STATE = smooth.STATE_KIND
_SINGLE = (int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE))
_BODY_EQUALITIES = (int(mujoco.mjtEq.mjEQ_CONNECT), int(mujoco.mjtEq.mjEQ_WELD))
_REDUCED = (int(mujoco.mjtGeom.mjGEOM_CYLINDER), int(mujoco.mjtGeom.mjGEOM_MESH))
_NO_RESET = int(mujoco.mjtDisableBit.mjDSBL_AUTORESET)
_DONE, _PAUSED = int(Status.DONE), int(Status.PAUSED)


class History:
    """What is remembered of one `mujoco.MjData` between its steps.

    Warm starts, the position and time that the last step left, poses of mocap bodies, and how
    corrections of the position went.
    """

    scalars = ("left_time", "memo_count", "kept_count", "retry", "stuck", "last_left_over")

    def __init__(self, model: Any) -> None:
        self.left = np.full(model.nq, np.nan)
        self.mocap_pose = np.full((model.nmocap, 7), np.nan)
        self.values: dict[str, Any] = dict.fromkeys(self.scalars, 0) | {"left_time": np.nan}
        self.memo_key, self.memo_state = np.zeros((2, 64), dtype=np.int64)
        self.memo_impulse = np.zeros((64, COLUMNS))
        self.kept_contacts = np.zeros(MOST * structs.CONTACT_SIZE, dtype=np.uint8)

    def grow(self, size: int) -> None:
        """Make room for so many constraints; what is remembered stays."""
        old = self.memo_key, self.memo_state, self.memo_impulse
        new = np.zeros(size, np.int64), np.zeros(size, np.int64), np.zeros((size, COLUMNS))
        for before, after in zip(old, new, strict=True):
            after[: len(before)] = before
        self.memo_key, self.memo_state, self.memo_impulse = new


class Stepper:
    """Steps a model like `mujoco.mj_step`, with exact rigid contact.

    The stepper works on a copy of the model, kept up to date with it, and on the user's data.
    If anything goes wrong in a step, the state in `data` is as it was before that step. One
    stepper may serve several data in turn. Threads that step at the same time need a stepper each.

    Args:
        model: `mujoco.MjModel`.
        contact: law of all contacts for which `laws` has no entry: `Coulomb` (the default, with
            the friction that the model declares), `NoSlip`, `Viscous`, `Frictionless`, a law such
            as ``hf.coulomb(0.5)``, or any other `ContactModel`.
        laws: laws of pairs of geoms or bodies, ``{("finger", "cube"): hf.viscous(0.1)}``;
            ``"*"`` matches any name. They can also be set in the MJCF, see
            `holdfast.mujoco.pair_laws`.
        equalities: "compliant": equality constraints have the compliance that `solref` and `solimp`
            give them in MuJoCo; "rigid": they have none, and drift is corrected.
        limits: "rigid": joints and tendons stop at their limits; "compliant": limits give way as in
            MuJoCo, by `solreflimit` and `solimplimit`, from the joint's `margin` on.
        correct: whether to correct penetration and drift of the position.
        warn: whether to warn, once per pair of bodies, when a no-slip contact needs more friction
            than the model declares.
        strict: raise an error if an answer misses the certificate or the state diverges. Otherwise
            such answers are counted, MuJoCo's reset applies to states that diverge, and a
            `StepWarning` is issued once.
        options: tolerances of the step.

    Example:
        >>> import mujoco, holdfast as hf
        >>> model = mujoco.MjModel.from_xml_string('''<mujoco><worldbody>
        ...   <geom type="plane" size="1 1 1" euler="0 20 0"/>
        ...   <body euler="0 20 0"><freejoint/>
        ...     <geom type="box" pos="0 0 0.1" size="0.1 0.1 0.1"/></body>
        ... </worldbody></mujoco>''')
        >>> data, stepper = mujoco.MjData(model), hf.Stepper(model)
        >>> stepper.step(data, nstep=500)
        >>> bool(abs(data.qpos[0]) < 1e-12), stepper.solution.is_exact()
        (True, True)
    """

    def __init__(
        self,
        model: Any,
        contact: ContactModel | Law | None = None,
        laws: Mapping[tuple[str, str], Law] | None = None,
        *,
        equalities: Literal["compliant", "rigid"] = "compliant",
        limits: Literal["compliant", "rigid"] = "rigid",
        correct: bool = True,
        warn: bool = True,
        strict: bool = False,
        options: StepOptions = DEFAULT,
    ) -> None:
        if not isinstance(model, mujoco.MjModel):
            raise InputError("model", f"is {type(model).__name__}; expected mujoco.MjModel")
        for name, choice in (("equalities", equalities), ("limits", limits)):
            if choice not in ("compliant", "rigid"):
                raise InputError(name, f"is {choice!r}; expected 'compliant' or 'rigid'")
        if not isinstance(options, StepOptions):
            raise InputError("options", f"is {options!r}; expected holdfast.mujoco.StepOptions")
        default = law_of_model(contact)
        self.contact, self.options = contact, options
        self._choices = {"laws": None if laws is None else dict(laws), "equalities": equalities,
                         "limits": limits, "correct": correct, "strict": strict,
                         "options": options}  # fmt: skip
        self._tell: Callable[[str, type[Warning], Any], None] = _warn  # what warns
        self._resets = True  # whether MuJoCo's reset applies to a state that diverges
        self._laws = PairLaws(model, laws, default or coulomb())
        if default is None and self._laws.laws:
            raise InputError("laws", f"cannot be mixed with {type(contact).__name__}")
        self._own_way = default is None  # the contact model solves problems itself
        self.private = PrivateModel(model)
        self.record = np.zeros(1, dtype=RECORD)
        self._keep: dict[str, Any] = {}  # arrays whose addresses the record has
        self._histories: dict[int, tuple[weakref.ref[Any], History]] = {}
        self._history: History | None = None
        self._data: Any = _nothing
        self._outcome: Outcome | None = None
        self._stepped = False
        self._in_use = Claim()
        self._whole = False  # whether the record is complete, and no step is under way
        self._fill_record(model)
        self._set(rigid_equalities=equalities == "rigid" or self._own_way,
                  rigid_limits=limits == "rigid" or self._own_way, correct=correct,
                  quiet=not warn, strict=strict, integrate=1, stop=Stage.NONE,
                  **asdict(options))  # fmt: skip
        self._status, self._more = self.record["status"], self.record["more"]
        self._call = (
            c_api.guarded(step_at, self.record.ctypes.data) if COMPILED
            else lambda: step_at.call(self.record.ctypes.data)
        )  # fmt: skip
        self._whole = True

    # --- the record ------------------------------------------------------------------------------

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            self.record[name] = value

    def _get(self, name: str) -> Any:
        return self.record[name][0]

    def _put(self, **arrays: Any) -> None:
        """Let the record have the addresses of arrays of ours."""
        for name, array in arrays.items():
            array = np.ascontiguousarray(array)
            self._keep[name] = array
            self.record[name] = array.ctypes.data

    def _fill_record(self, model: Any) -> None:
        """Tell compiled code all that does not change from step to step."""
        private, own = self.private, self.private.model
        self._set(
            **{name: getattr(own, name) for name in (
                "nq", "nv", "na", "nbody", "ngeom", "npair", "njnt", "ntendon", "nmocap", "nsensor",
                "neq",
            )},
            nM=len(own.M_colind), entries_of_D=len(own.D_colind),
            poly=own.dof_dampingpoly.shape[1], nsegment=len(private.segments),
            nmoving=len(private.moving), nstate=mujoco.mj_stateSize(own, _STATE),
            adhesive=private.adhesive, spins=private.spins, pyramids=not private.adhesive,
            chooses_sparse=_chooses_sparse(own), size=private.size, left_time=np.nan,
            api=c_api.functions().ctypes.data, model=own._address,
            opt=structs.option_address(own),
        )  # fmt: skip
        for name in ("geom_margin", "pair_margin", "jnt_margin", "tendon_margin"):
            self._set(**{f"user_{name}": getattr(model, name).ctypes.data})  # keeps no model
        for name in ("dof_damping", "dof_dampingpoly", "jnt_limited", "jnt_range", "geom_contype",
                     "geom_conaffinity", "eq_solref", "ten_J_rownnz", "ten_J_rowadr",
                     "ten_J_colind", "tendon_limited", "tendon_range", "sensor_type",
                     "sensor_objid", "sensor_cutoff",
                     "sensor_adr"):  # fmt: skip
            self._set(**{name: getattr(model, name).ctypes.data})
        for name in ("geom_margin", "geom_gap", "body_margin", "pair_margin", "pair_gap",
                     "jnt_margin", "tendon_margin", "pair_geom1", "pair_geom2"):  # fmt: skip
            self._set(**{name: getattr(own, name).ctypes.data})
        root = np.array(model.body_rootid)[private.geom_body]
        mocap = np.array(model.body_mocapid)
        of_geom = np.where(root > 0, mocap[root], -1) if model.ngeom else root
        single = np.isin(model.jnt_type, _SINGLE)
        sensors = np.flatnonzero(np.isin(model.sensor_type, LIMIT_SENSORS))
        curved = np.isin(model.geom_type, _REDUCED)
        kind, value = law_kind(self._laws.default)
        kinds, values = self._laws.numbers()
        self._set(default_law=kind, default_value=value, nrule=len(kinds),
                  nlimit_sensor=len(sensors), curved=bool(curved.any()))  # fmt: skip
        self._put(
            segments=private.segments, geom_body=private.geom_body.astype(np.int32),
            geom_root=root.astype(np.int32), geom_curved=curved.astype(np.int64),
            moving=private.moving.astype(np.int64), radius=private.radius,
            geom_mocap=of_geom.astype(np.int64),
            mocap_body=_bodies_of_mocaps(mocap), mocap_size=_sizes_of_mocaps(model, of_geom),
            joints=np.stack([single, model.jnt_qposadr, model.jnt_dofadr], axis=1).astype(np.int64),
            eq_driven=_driven(model), rule_first=self._laws.first, rule_second=self._laws.second,
            rule_law=kinds, rule_value=values, limit_sensors=sensors.astype(np.int64),
            before=np.zeros(self._get("nstate")), velocity=np.zeros(own.nv),
            qacc=np.zeros(own.nv), mocap_velocity=np.zeros((own.nmocap, 6)),
            warned=np.zeros((0, 2), dtype=np.int64), free=np.zeros(own.nv),
            potential=np.zeros(2 * own.nv + 6 * own.nbody), displacement=np.zeros(own.nv),
            now=np.zeros(2, dtype=np.int64),
        )  # fmt: skip
        self._uncouple()
        self._grow(0, 16)
        self._trial = mujoco.MjData(own)
        self._set(trial=self._trial._address)

    def _uncouple(self) -> None:
        """Let the inertia have one block for each kinematic tree."""
        own = self.private.model
        tree = np.searchsorted(own.dof_treeid, np.arange(own.ntree + 1))
        self._set_blocks(tree.astype(np.int64))
        self._set(coupled=0)

    def _renew(self) -> None:
        """Make the record as new, after a step or a change of it that did not come to its end.

        Ctrl-C may come between any two lines. What compiled code reads is changed while `_whole` is
        False, and nothing is stepped before it is made anew. Choices and statistics are numbers
        of the record that no change is ever half of; histories are forgotten.
        """
        self._data, self._history, self._outcome = _nothing, None, None
        self._histories = {}
        self._stepped = False
        self._set(work_size=0, capacity=0, memo_size=0, memo_count=0, kept_count=0, nwarned=0)
        self._fill_record(self.private.user)
        self._end_step()
        self._set(**dict.fromkeys(History.scalars, 0) | {"left_time": np.nan})
        self._whole = True

    def _end_step(self) -> None:
        """No step is under way."""
        self._set(stage=Stage.SMOOTH, stop=Stage.NONE, begun=0, callbacks=0, only_read=0,
                  integrate=1, more=0, runs=0)  # fmt: skip

    def _set_blocks(self, tree: np.ndarray) -> None:
        """Lay out the inertia: one dense block for the coordinates between entries of `tree`."""
        model = self.private.model
        size = np.diff(tree)
        block = np.concatenate([[0], np.cumsum(size**2)]).astype(np.int64)
        of_dof = np.searchsorted(tree, np.arange(model.nv), side="right") - 1
        body_tree = np.array(model.body_treeid, dtype=np.int64)
        if len(tree) != model.ntree + 1:
            body_tree = np.where(body_tree >= 0, 0, -1)
        in_M, in_D = smooth.places_of_entries(model, tree, block)
        largest = int(size.max(initial=0))
        scratch = np.zeros(2 * largest * (largest + 1) + model.nv + len(tree) + 256)
        self._put(tree=tree, block=block, tree_of=of_dof.astype(np.int64), tree_of_body=body_tree,
                  M_at=in_M, D_at=in_D, inertia=np.zeros(block[-1]), scratch=scratch)  # fmt: skip
        self._set(ntree=len(size), nblock=block[-1], nD=len(in_D), nscratch=len(scratch))

    def _grow(self, work: int, contacts: int) -> None:
        """Make room for constraints; whatever is read is complete before its size is known."""
        size, capacity = int(self._get("work_size")), int(self._get("capacity"))
        if work >= size:
            made = np.zeros(int(1.5 * work) + 1024)
            self._set(work_size=0)
            self._put(work=made)
            self._set(work_size=len(made))
        if contacts >= capacity:
            gaps = np.zeros(2 * contacts + 64)
            gaps[:capacity] = self._keep["gaps"][:capacity] if capacity else 0.0
            self._set(capacity=0)
            self._put(gaps=gaps)
            self._set(capacity=len(gaps))
        if self._history is not None:
            self._history_room()

    def _history_room(self) -> None:
        """Let the history of the present data be as long as the list of constraints may be."""
        history, wanted = self._history, int(self._get("constraints")) + self._get("capacity")
        if history is not None and wanted > len(history.memo_key):
            self._set(memo_size=0)
            history.grow(int(wanted))
            self._put_history(history)

    def _put_history(self, history: History) -> None:
        self._put(memo_key=history.memo_key, memo_state=history.memo_state,
                  memo_impulse=history.memo_impulse, left=history.left,
                  mocap_pose=history.mocap_pose, kept_contacts=history.kept_contacts)  # fmt: skip
        self._set(memo_size=len(history.memo_key))

    def _attach(self, data: Any) -> None:
        """Step these data from now on, with their own history."""
        check_data(self.private.model, data)
        if self._history is not None:
            self._history.values = {name: self._get(name) for name in History.scalars}
        self._data, self._history = _nothing, None
        self._histories = {k: v for k, v in self._histories.items() if v[0]() is not None}
        found = self._histories.get(id(data))
        if found is None or found[0]() is not data:
            found = weakref.ref(data), History(self.private.model)
            self._histories[id(data)] = found
        self._set(memo_size=0, data=data._address)
        self._put_history(found[1])
        self._set(**found[1].values)
        self._history = found[1]
        self._data = found[0]

    def detach(self) -> None:
        """Forget all data stepped so far, and the results of the last step."""
        self._data, self._history, self._outcome = _nothing, None, None
        self._histories.clear()
        self._stepped = False

    def reset(self) -> None:
        """Forget all histories and statistics, as if the stepper were new."""
        self._whole = False
        self._data, self._history, self._outcome = _nothing, None, None
        self._histories.clear()
        self._stepped = False
        self._set(deepest=0.0, fastest=0.0, corrected=0.0, redone=0, uncertified=0, inconsistent=0,
                  told_overlap=0, told_rk4=0, told_uncertified=0, nwarned=0)  # fmt: skip
        self._renew()

    def _warn_again(self) -> None:
        """Forget what was warned of."""
        self._set(told_overlap=0, told_rk4=0, told_uncertified=0, nwarned=0)
        self._put(warned=np.zeros((0, 2), dtype=np.int64))

    def __getstate__(self) -> dict[str, Any]:
        return {"model": self.model, "contact": self.contact, "warn": self.warn, **self._choices}

    def __setstate__(self, given: dict[str, Any]) -> None:
        """Make a copy: a new stepper of the same model and choices, without histories."""
        self.__init__(**given)

    # --- a step ----------------------------------------------------------------------------------

    @property
    def model(self) -> Any:
        """The model that is stepped."""
        return self.private.user

    def step(self, data: Any, nstep: int = 1) -> None:
        """Advance `data` by `nstep` steps.

        Raises:
            SolveError: no certified motion was found; the state is as before the failing step.
            InputError: the time step or the state is invalid, for example NaN.
            HoldfastError: the stepper is in the middle of a step, in another thread or because a
                callback calls it.
        """
        count, frame = whole_number("nstep", nstep), sys._getframe()
        try:
            self._in_use.take(frame)
            self._ready(data)
            if self._own_way:
                for _ in range(count):
                    self._step_in_stages(data)
                return
            if count > 0:
                self._outcome, self._stepped = None, False
                self._whole = False
                self._take_steps(data, count)
                self._stepped = self._whole = True
        finally:
            self._in_use.leave(frame)

    def _ready(self, data: Any) -> None:
        """Make sure that the record is whole, and describes these data."""
        if not self._whole:
            self._renew()
        if data is None or self._data() is not data:  # None is also what is left of old data
            self._attach(data)

    def _take_steps(self, data: Any, nstep: int) -> None:
        """Take steps in one compiled call, or in several where Python has something to do."""
        call, status, more = self._call, self._status, self._more
        more[0] = nstep - 1
        call()
        while status[0] != _DONE:
            if status[0] != _PAUSED:  # signals are handled between calls
                left, more[0] = int(more[0]), 0
                self._go_on(data)
                if left == 0:
                    return
                self._outcome, self._stepped = None, False
                more[0] = left - 1
            call()

    def forward(self, data: Any) -> None:
        """Compute contact forces, accelerations and sensors at the present state; no time passes.

        Like `mujoco.mj_forward`, which finds no force in contacts at distance zero.
        """
        frame = sys._getframe()
        try:
            self._in_use.take(frame)
            self._ready(data)
            self._outcome, self._stepped = None, False
            self._whole = False
            self._set(integrate=0)
            if self._own_way:
                self._step_in_stages(data)
            else:
                self._call()
                if self._status[0] != _DONE:
                    self._go_on(data)
            self._end_step()
            self._stepped = self._whole = True
        finally:
            self._in_use.leave(frame)

    def _run(self, stage: Stage) -> int:
        self._set(stage=stage)
        self._call()
        return int(self._status[0])

    def _go_on(self, data: Any) -> None:
        """Finish a step that one call did not; if that fails, restore the state."""
        status = int(self._status[0])
        if status == Status.CALLBACKS:
            mujoco.mj_getState(self.private.model, data, self._keep["before"], _STATE)
        try:
            status = self._finish(data, status)
            if status == Status.REPORT:
                self._report(data)
        except HoldfastError:
            self._stepped = False
            self._restore(data)
            self._end_step()
            self._whole = True
            raise
        except BaseException:  # Ctrl-C, too; the next step makes the record anew
            self._stepped = False
            self._restore(data)
            raise
        self._set(stage=Stage.SMOOTH, begun=0, callbacks=0)

    def _restore(self, data: Any) -> None:
        mujoco.mj_setState(self.private.model, data, self._keep["before"], _STATE)

    def _finish(self, data: Any, status: int) -> int:
        resets = 0
        while status not in (Status.DONE, Status.REPORT, Status.STOPPED):
            if status == Status.MORE_MEMORY:
                self._grow(int(self._get("work_needed")), int(self._get("capacity_needed")))
                status = self._run(Stage.CONSTRAINTS)
            elif status == Status.MORE_BLOCKS:
                self._set_blocks(np.array([0, self.private.model.nv]))
                self._set(coupled=1)
                status = self._run(Stage.CONSTRAINTS)
            elif status == Status.CALLBACKS:
                status = self._smooth_in_python(data)
                if status == Status.DONE:
                    status = self._run(Stage.CONSTRAINTS)
            elif status == Status.WRITTEN:
                if self.private.sensors:
                    mujoco.mj_sensorAcc(self.private.model, data)
                status = self._run(Stage.INTEGRATE)
            elif status == Status.FREE:
                self._step_freely_in_python(data)
                status = self._run(Stage.LEAVE)
            elif status == Status.DIVERGED and resets == 0:
                resets += 1
                self._reset_diverged(data)
                self._set(begun=0)
                status = self._run(Stage.SMOOTH)
            else:
                self._raise(data, status)
        return status

    def _smooth_in_python(self, data: Any) -> int:
        """Stage 1 from Python, where callbacks are called; return a `Status`."""
        self._set(callbacks=1, begun=0)
        at = self.record.ctypes.data
        status = int(smooth.begin_at(at))
        if status == Status.DONE:
            forward_in_python(self.private, data, widen=lambda: smooth.widen_at(at),
                              complete=lambda: smooth.complete_contacts_at(at))  # fmt: skip
        return status

    def _step_freely_in_python(self, data: Any) -> None:
        """Sensors and integration of a step in which nothing touches, with callbacks."""
        own, integrator = self.private.model, int(self._get("integrator"))
        if self.private.sensors:
            mujoco.mj_sensorAcc(own, data)
        if not self._get("integrate"):
            return
        if integrator != smooth.DISCRETE:
            own.opt.disableflags = int(self._get("disabled"))
        if integrator == smooth.RK4:
            smooth.copy_segments(self.private.segments)
            mujoco.mj_RungeKutta(own, data, 4)
        elif integrator in (smooth.IMPLICIT, smooth.IMPLICITFAST):
            mujoco.mj_implicit(own, data)
        else:
            mujoco.mj_Euler(own, data)

    def _check_timestep(self) -> None:
        check_timestep(self.model)

    def _reset_diverged(self, data: Any) -> None:
        """What MuJoCo does with a state that is out of bounds: warn, and reset it."""
        text, kind, which = self._diverged(data)
        no_reset = self._get("strict") or self.model.opt.disableflags & _NO_RESET
        if no_reset or not self._resets:
            raise HoldfastError(f"the simulation has diverged: {text}")
        self._tell(f"the simulation has diverged: {text}; the state is reset, as MuJoCo does",
                   StepWarning, "diverged")  # fmt: skip
        mujoco.mj_resetData(self.private.model, data)
        data.warning[kind].lastinfo, data.warning[kind].number = (
            which,
            data.warning[kind].number + 1,
        )
        assert self._history is not None
        self._set(left_time=np.nan, memo_count=0, kept_count=0)

    def _diverged(self, data: Any) -> tuple[str, int, int]:
        """Which coordinate is out of bounds: in words, MuJoCo's warning, its number."""
        kinds = mujoco.mjtWarning
        velocity = self._keep["velocity"]
        for name, values, kind in (
            ("qpos", data.qpos, kinds.mjWARN_BADQPOS), ("qvel", data.qvel, kinds.mjWARN_BADQVEL),
            ("the velocity after the step", velocity, kinds.mjWARN_BADQACC),
            ("act", data.act, kinds.mjWARN_BADQACC),
        ):  # fmt: skip
            bad = np.flatnonzero(~(np.abs(values) <= smooth.LARGEST))
            if bad.size:
                i = int(bad[0])
                who = _who_has(self.model, name, i)
                return f"{name}[{i}] is {values[i]:.3g} ({who})", int(kind), i
        return "a number is out of bounds", int(kinds.mjWARN_BADQACC), 0

    def _raise(self, data: Any, status: int) -> None:
        """Raise the error that a status stands for."""
        if status == Status.BAD_TIMESTEP:
            self._check_timestep()
        if status == Status.NOT_FINITE:
            check_finite(data)
        if status == Status.FULL:
            raise UnsupportedError("size/memory", "is too small for the contacts of this step, and "
                                   f"MuJoCo has left some out: {data.narena} bytes; increase "
                                   '<size memory="..."/> in the model')  # fmt: skip
        if status == Status.DIVERGED:
            raise HoldfastError(f"the simulation has diverged: {self._diverged(data)[0]}")
        if status == Status.UNSOLVED:
            self._raise_unsolved()
        if status == Status.MUJOCO_ERROR:
            self._restore(data)
            self.private.follow()
            forward_in_python(self.private, data)  # raises what MuJoCo has to say
            raise HoldfastError("MuJoCo has reported an error in the middle of the step")
        raise HoldfastError(f"the step ended with {Status(status).name}")

    def _raise_unsolved(self) -> None:
        outcome, residual = self._copy_outcome(), float(self._get("residual"))
        status = SolveStatus(int(self._get("solve_status")))
        try:
            problem = outcome.problem()
        except InputError as error:  # what MuJoCo has listed is no problem: say that, too
            raise SolveError(
                f"no motion was found: {error}; {_who(self.model, outcome)}", status=status,
                problem=None,
            ) from error  # fmt: skip
        raise SolveError(
            f"no certified motion was found ({status.name}, residual {residual:.1e}); "
            f"{_who(self.model, outcome)}",
            status=status, problem=problem,
        )  # fmt: skip

    def _report(self, data: Any) -> None:
        """Say what a step that was taken has to say."""
        if self._get("integrator") == smooth.RK4 and not self._get("told_rk4"):
            self._set(told_rk4=1)
            self._tell("the integrator RK4 has no stages where bodies touch: steps with contact "
                       "are taken at velocity level, as with Euler", StepWarning,
                       "rk4")  # fmt: skip
        if self._get("stuck") >= self.options.hopeless_after and not self._get("told_overlap"):
            self._set(told_overlap=1)
            self._tell(f"{self._deepest_pair()} overlap, and no motion removes it; it is left",
                       StepWarning, "overlap")  # fmt: skip
        if self._get("solve_status") == SolveStatus.APPROXIMATE and not self._get(
            "told_uncertified"
        ):
            self._set(told_uncertified=1)
            self._tell(f"a step obeys the laws of contact within {self._get('residual'):.1e} "
                       "only; stepper.uncertified_steps counts them", StepWarning,
                       "uncertified")  # fmt: skip
        if self._get("lacks"):
            self._stepped = True
            self._warn_of_friction()

    def _deepest_pair(self) -> str:
        outcome = self._copy_outcome()
        contacts = np.flatnonzero(outcome.kind == Kind.CONTACT)
        if not contacts.size:
            return "joints"
        k = contacts[np.argmin(outcome.gap[contacts])]
        names = [name_of(self.model, "geom", int(g)) for g in outcome.geom[k]]
        return f"{names[0]} and {names[1]}"

    def _warn_of_friction(self) -> None:
        """Warn about pairs that need more friction than the model declares, once each."""
        warned, table = self._keep["warned"], self.contacts
        new, texts = [], []
        outcome = self._copy_outcome()
        bodies = {tuple(table.bodies[i]): np.sort(outcome.bodies[k])
                  for i, k in enumerate(outcome.contacts)}  # fmt: skip
        for pair, (need, declared) in table.pairs("stick").items():
            numbers = bodies[pair]
            if (
                need > declared * (1 + self.options.friction_excess)
                and not (warned == numbers).all(axis=1).any()
            ):
                new.append(numbers)
                names = [name_of(self.model, "body", int(body)) for body in numbers]
                texts.append(f"{names[0]} and {names[1]} hold on unlimited friction: they need a "
                             f"coefficient of {need:.3g}, the model declares "
                             f"{declared:.3g}")  # fmt: skip
        if new:
            self._set(nwarned=0)
            self._put(warned=np.vstack([warned, new]).astype(np.int64))
            self._set(nwarned=len(self._keep["warned"]))
        for text, numbers in zip(texts, new, strict=True):
            self._tell(text, FrictionWarning, tuple(numbers.tolist()))

    # --- stage by stage --------------------------------------------------------------------------

    def smooth(self, data: Any) -> None:
        """Stage 1 of a step alone: kinematics, contacts within reach, smooth forces."""
        self._ready(data)
        self._whole = False
        self._smooth(data)

    def _smooth(self, data: Any) -> None:
        self._outcome, self._stepped = None, False
        mujoco.mj_getState(self.private.model, data, self._keep["before"], _STATE)
        self._set(begun=0, stop=Stage.SMOOTH)
        try:
            status = self._run(Stage.SMOOTH)
            if status == Status.CALLBACKS:
                status = self._smooth_in_python(data)
                if status != Status.DONE:
                    self._raise(data, status)
                self._set(begun=1)
            elif status != Status.STOPPED:
                self._finish(data, status)
        finally:
            self._set(stop=Stage.NONE)

    def solve(self, data: Any) -> None:
        """Stages 2 to 4, after `smooth`: constraints, solve and look-ahead."""
        by_model = self._own_way and not self._get("only_read")
        self._set(stop=Stage.CONSTRAINTS, has_inertia=0, has_gaps=0, contact_free=0,
                  lookaheads=0)  # fmt: skip
        if by_model:
            self._set(only_read=1)
        try:
            self._finish(data, self._run(Stage.CONSTRAINTS))
        finally:
            self._set(stop=Stage.NONE)
            if by_model:
                self._set(only_read=0)
        if by_model:
            self._solve_by_model()

    def finish(self, data: Any) -> None:
        """Stages 5 and 6, after `solve`: forces, sensors, integration, position correction."""
        self._set(stage=Stage.WRITE)
        self._call()
        self._go_on(data)
        self._stepped = self._whole = True

    def constraints(self, data: Any) -> Outcome:
        """The constraints of the next step and its free motion, as arrays; nothing is solved.

        The state in `data` stays as it is.
        """
        self._ready(data)
        self._whole = False
        self._set(only_read=1)
        try:
            self._smooth(data)
            self.solve(data)
        finally:
            self._end_step()
        self._whole = True
        return self._free_motion()

    def _free_motion(self) -> Outcome:
        """Constraints that were read, with the free motion and no forces."""
        _, answer, *_ = carve_in_python(self.record)
        answer.impulse[:], answer.state[:], answer.velocity[:] = 0.0, 0, self._keep["free"]
        return self._copy_outcome()

    def _step_in_stages(self, data: Any) -> None:
        """Take a step stage by stage; if that fails, restore the state."""
        self._check_timestep()
        self._whole = False
        mujoco.mj_getState(self.private.model, data, self._keep["before"], _STATE)
        try:
            self._smooth(data)
            self.solve(data)
            self.finish(data)
        except BaseException:  # the next step makes the record anew
            self._outcome, self._stepped = None, False
            self._restore(data)
            raise

    def _solve_by_model(self) -> None:
        """Let another contact model find the motion."""
        from holdfast.mujoco.stagewise import solve_by_model

        outcome = self._free_motion()
        contact: Any = self.contact
        solve_by_model(outcome, contact, self.private.size)
        _, answer, *_ = carve_in_python(self.record)
        answer.impulse[:], answer.velocity[:] = outcome.impulse, outcome.velocity
        answer.state[:] = outcome.state

    # --- what a step has found -------------------------------------------------------------------

    def _copy_outcome(self) -> Outcome:
        """What the last compiled step found, copied when somebody asks."""
        if self._outcome is None:
            own = self.private.model
            arrays, answer, cs, _ = carve_in_python(self.record)
            v = self._keep["before"][1 + own.nq : 1 + own.nq + own.nv]
            self._outcome = copy_outcome(arrays, answer, cs, v, float(self._get("h")),
                                         self.private.geom_body)  # fmt: skip
            data = self._data()
            if not self._get("has_inertia") and isinstance(data, mujoco.MjData):
                mujoco.mj_fullM(own, data, self._outcome.A)  # nothing touched: nobody needed it
                self._outcome.free[:] = self._outcome.velocity
        return self._outcome

    @property
    def solution(self) -> ContactSolution | None:
        """Motion and forces of the last step; None before the first, and after one that failed."""
        return self._copy_outcome().solution if self._stepped else None

    @property
    def contacts(self) -> Contacts:
        """The contacts of the last step, as a table."""
        if not self._stepped:
            return Contacts.none()
        return Contacts.of(self.model, self._copy_outcome(), self._laws)

    @property
    def contact_count(self) -> int:
        """Number of contacts that mattered in the last step: those that its motion has closed."""
        return len(self._copy_outcome().contacts) if self._stepped else 0

    @property
    def largest_penetration(self) -> float:
        """Deepest penetration at the start of any step so far [m]."""
        return float(self._get("deepest"))

    @property
    def fastest_slip(self) -> float:
        """Fastest sliding speed so far of a loaded no-slip contact [m/s]."""
        return float(self._get("fastest"))

    @property
    def largest_correction(self) -> float:
        """Largest displacement of a coordinate by position correction so far [m, rad]."""
        return float(self._get("corrected"))

    @property
    def resolved_steps(self) -> int:
        """How often a step was solved again so far, with the contacts found at its end."""
        return int(self._get("redone"))

    @property
    def inconsistent_steps(self) -> int:
        """Number of steps so far in which a no-slip contact jams: loaded only if it is let go."""
        return int(self._get("inconsistent"))

    @property
    def uncertified_steps(self) -> int:
        """Number of steps so far that missed the certificate but obey the laws within 1e-6."""
        return int(self._get("uncertified"))

    @property
    def warn(self) -> bool:
        """Whether to warn of no-slip contacts that need more friction than the model declares."""
        return not self._get("quiet")

    @warn.setter
    def warn(self, wanted: bool) -> None:
        self._set(quiet=not wanted)


def _nothing() -> object:
    """No data yet, and none that anybody has."""
    return _nothing


def _chooses_sparse(own: Any) -> bool:
    """Whether MuJoCo lists rows by their entries where it is free to choose."""
    given, own.opt.jacobian = own.opt.jacobian, smooth.AUTO
    chosen = bool(mujoco.mj_isSparse(own))
    own.opt.jacobian = given
    return chosen


def _bodies_of_mocaps(mocap: np.ndarray) -> np.ndarray:
    """Body of each mocap number."""
    bodies = np.flatnonzero(mocap >= 0)
    return bodies[np.argsort(mocap[bodies])].astype(np.int64)


def _sizes_of_mocaps(model: Any, of_geom: np.ndarray) -> np.ndarray:
    """How far the geoms of each mocap body reach [m]: a longer jump is no motion."""
    sizes = np.full(model.nmocap, float(model.stat.meansize))
    for g in np.flatnonzero(of_geom >= 0):
        reach = 2.0 * float(model.geom_rbound[g]) + float(np.linalg.norm(model.geom_pos[g]))
        sizes[of_geom[g]] = max(sizes[of_geom[g]], reach)
    return sizes


def _driven(model: Any) -> np.ndarray:
    """(neq,) whether an equality ties a body to a mocap body."""
    mocap = np.append(model.body_mocapid, -1) >= 0
    of_bodies = np.isin(model.eq_type, _BODY_EQUALITIES)
    bodies = np.stack([model.eq_obj1id, model.eq_obj2id], axis=1)
    sites = of_bodies & (model.eq_objtype == int(mujoco.mjtObj.mjOBJ_SITE))
    if model.nsite:
        bodies[sites] = model.site_bodyid[bodies[sites]]
    return of_bodies & mocap[np.where(of_bodies[:, None], bodies, -1)].any(axis=1)


def _who_has(model: Any, name: str, i: int) -> str:
    """The joint and body, or the actuator, that entry i of qpos, of a velocity or of act is of."""
    if name == "act":
        return "actuator " + name_of(model, "actuator", _last_at(model.actuator_actadr, i))
    joint = _last_at(model.jnt_qposadr, i) if name == "qpos" else int(model.dof_jntid[i])
    body = name_of(model, "body", int(model.jnt_bodyid[joint]))
    return f"joint {name_of(model, 'jnt', joint)} of body {body}"


def _last_at(addresses: np.ndarray, i: int) -> int:
    """Number of the entry with the largest address that is not beyond i."""
    reached = np.flatnonzero((addresses >= 0) & (addresses <= i))
    return int(reached[np.argmax(addresses[reached])])


def _who(model: Any, outcome: Outcome) -> str:
    """The bodies and joints of a problem, by name."""
    pairs = [
        " and ".join(name_of(model, "body", int(b)) for b in outcome.bodies[k])
        for k in np.flatnonzero(outcome.kind == Kind.CONTACT)
    ]
    named = ", ".join(list(dict.fromkeys(pairs))[:4]) or "no contacts"
    others = [f"{np.count_nonzero(outcome.kind == kind)} {text}" for kind, text in (
        (Kind.EQUALITY, "equality rows"), (Kind.LIMIT, "limits"),
        (Kind.FRICTION, "rows of dry friction"),
    ) if np.any(outcome.kind == kind)]  # fmt: skip
    return f"contacts between {named}" + (f"; {', '.join(others)}" if others else "")


def warn(text: str, kind: type[Warning]) -> None:
    """Warn where the user's own code calls us."""
    frame, count = sys._getframe(0), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, count = frame.f_back, count + 1
    warnings.warn(text, kind, stacklevel=count)


def _warn(text: str, kind: type[Warning], _about: Any) -> None:
    warn(text, kind)


class _Kept(threading.local):
    """Steppers that `step` keeps, by model and contact model; each thread has its own."""

    def __init__(self) -> None:
        self.steppers: WeakKeyDictionary[Any, dict[Any, Stepper]] = WeakKeyDictionary()


_kept = _Kept()


def step(
    model: Any, data: Any, nstep: int = 1, *, contact: ContactModel | Law | None = None
) -> None:
    """Advance `data` as `mujoco.mj_step(model, data, nstep)` does, with exact contact.

    One `Stepper` per thread, model and contact model is kept for as long as the model exists.
    Create a `Stepper` yourself to read its contacts and its solution, or to set laws per pair.

    Example:
        >>> import mujoco, holdfast as hf
        >>> model = mujoco.MjModel.from_xml_string('''<mujoco><worldbody>
        ...   <geom type="plane" size="1 1 1"/>
        ...   <body pos="0 0 0.3"><freejoint/><geom type="sphere" size="0.1"/></body>
        ... </worldbody></mujoco>''')
        >>> data = mujoco.MjData(model)
        >>> for _ in range(500):
        ...     hf.step(model, data)  # was: mujoco.mj_step(model, data)
        >>> float(round(data.qpos[2], 9))  # on the floor, not in it
        0.1
    """
    _with_kept(model, contact, lambda stepper: stepper.step(data, nstep))


def forward(model: Any, data: Any, *, contact: ContactModel | Law | None = None) -> None:
    """Compute contact forces and sensors at the present state, as `mujoco.mj_forward` does.

    Bodies at rest touch at distance zero, where MuJoCo lists no contact: after `mj_forward` their
    contact forces are gone. This function computes them by the law `contact`. No time passes.
    """
    _with_kept(model, contact, lambda stepper: stepper.forward(data))


def _with_kept(model: Any, contact: Any, action: Any) -> None:
    if not isinstance(model, mujoco.MjModel):
        raise InputError("model", f"is {type(model).__name__}; expected mujoco.MjModel")
    steppers = _kept.steppers.setdefault(model, {})
    try:
        hash(contact)
    except TypeError as error:  # it holds arrays
        raise InputError("contact", "is not hashable; create a Stepper with it") from error
    stepper = steppers.pop(contact, None)  # a callback that calls this gets another one
    if stepper is None:
        stepper = Stepper(model, contact)
    stepper.private.user = model
    try:
        action(stepper)
    finally:
        stepper.private.user = None  # or the stepper that is kept would keep its model alive
        steppers[contact] = stepper
