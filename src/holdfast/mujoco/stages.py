"""The stages of a step, called from Python.

A step is one compiled call. Where that does not come to its end (memory is too small, callbacks are
to be called, the state has diverged), it goes on from here. Stages can also be called one by one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast._jit import COMPILED
from holdfast.contact.arrays import SolveStatus
from holdfast.contact.ladder import JAMMED
from holdfast.contact.laws import Law
from holdfast.errors import HoldfastError, InputError, StepWarning
from holdfast.models import ContactModel
from holdfast.mujoco import c_api, smooth
from holdfast.mujoco._mj import mujoco
from holdfast.mujoco.claim import Claim, alone
from holdfast.mujoco.history import History, no_data
from holdfast.mujoco.memory import StepMemory
from holdfast.mujoco.options import StepOptions
from holdfast.mujoco.outcome import Outcome, copy_outcome
from holdfast.mujoco.pair_laws import PairLaws
from holdfast.mujoco.pipeline import forward_in_python
from holdfast.mujoco.record import Stage, Status
from holdfast.mujoco.solve_by_model import solve_by_model
from holdfast.mujoco.step import carve_in_python, step_at
from holdfast.mujoco.step_errors import diverged, raise_memory_full, raise_unsolved
from holdfast.mujoco.step_warnings import Tell, report, tell_user, warn_of_friction
from holdfast.mujoco.support import check_finite, check_timestep

_STATE = smooth.STATE_KIND
_NO_RESET = int(mujoco.mjtDisableBit.mjDSBL_AUTORESET)


class Stages(StepMemory):
    """A step of a model, stage by stage; `Stepper` is this with choices and tables.

    Args:
        model: `mujoco.MjModel`.
        contact: law of contacts, or the contact model that solves problems itself.
        laws: laws of contacts by pair.
        options: tolerances of the step.
        own_way: whether the contact model solves problems itself.
    """

    def __init__(self, model: Any, contact: ContactModel | Law | None, laws: PairLaws,
                 options: StepOptions, own_way: bool) -> None:  # fmt: skip
        self.contact, self.options = contact, options
        self._in_use = Claim()
        self._own_way = own_way
        self._tell: Tell = tell_user  # what warns
        self._resets = True  # whether MuJoCo's reset applies to a state that diverges
        self._outcome: Outcome | None = None
        self._stepped = False
        self._whole = False  # whether the record is complete, and no step is under way
        self._reached: Stage | None = None  # of a step that is taken in parts
        super().__init__(model, laws)
        shown: Any = self.record
        self._status, self._more = memoryview(shown["status"]), memoryview(shown["more"])
        self._call = (
            c_api.guarded(step_at, self.record.ctypes.data) if COMPILED
            else lambda: step_at.call(self.record.ctypes.data)
        )  # fmt: skip

    # --- between steps ---------------------------------------------------------------------------

    @property
    def model(self) -> Any:
        """The model that is stepped."""
        return self.private.user

    def _ready(self, data: Any) -> None:
        """Make sure that the record is whole, and describes these data."""
        if not self._whole:
            self._renew()
        if data is None or self._data() is not data:  # None is also what is left of old data
            self._attach(data)

    def _renew(self) -> None:
        """Make the record as new, after a step or a change of it that did not come to its end.

        Ctrl-C may come between any two lines. What compiled code reads is changed while `_whole` is
        False, and nothing is stepped before it is made anew. Choices and statistics are numbers
        of the record that no change is ever half of; histories are forgotten.
        """
        self._data, self._history, self._outcome, self._reached = no_data, None, None, None
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

    # --- a step that one call does not finish ----------------------------------------------------

    def _run(self, stage: Stage) -> int:
        self._set(stage=stage)
        self._call()
        return self._status[0]

    def _go_on(self, data: Any) -> None:
        """Finish a step that one call did not; if that fails, restore the state."""
        status = self._status[0]
        if status == Status.CALLBACKS:
            mujoco.mj_getState(self.private.model, data, self._keep["before"], _STATE)
        try:
            status = self._finish(data, status)
            if status == Status.REPORT:
                self._report()
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
            own.opt.disableflags |= smooth.UNCONSTRAINED
            own.opt.enableflags &= ~smooth.SLEEP
            mujoco.mj_RungeKutta(own, data, 4)
        elif integrator in (smooth.IMPLICIT, smooth.IMPLICITFAST):
            mujoco.mj_implicit(own, data)
        else:
            mujoco.mj_Euler(own, data)

    def _check_timestep(self) -> None:
        check_timestep(self.model)

    def _reset_diverged(self, data: Any) -> None:
        """What MuJoCo does with a state that is out of bounds: warn, and reset it."""
        text, kind, which = diverged(self.model, data, self._keep["velocity"])
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

    def _raise(self, data: Any, status: int) -> None:
        """Raise the error that a status stands for."""
        if status == Status.BAD_TIMESTEP:
            self._check_timestep()
        if status == Status.NOT_FINITE:
            check_finite(data)
        if status == Status.FULL:
            raise_memory_full(data)
        if status == Status.DIVERGED:
            text = diverged(self.model, data, self._keep["velocity"])[0]
            raise HoldfastError(f"the simulation has diverged: {text}")
        if status == Status.UNSOLVED:
            raise_unsolved(self.model, self._copy_outcome(),
                           SolveStatus(int(self._get("solve_status"))),
                           float(self._get("residual")))  # fmt: skip
        if status == Status.MUJOCO_ERROR:
            self._restore(data)
            self.private.follow()
            forward_in_python(self.private, data)  # raises what MuJoCo has to say
            raise HoldfastError("MuJoCo has reported an error in the middle of the step")
        raise HoldfastError(f"the step ended with {Status(status).name}")

    def _report(self) -> None:
        """Say what a step that was taken has to say."""
        report(self, self._copy_outcome, self.options, self._tell)
        if self._get("lacks"):
            self._stepped = True
            warn_of_friction(self, self._copy_outcome(), self.options, self._tell)

    # --- stage by stage --------------------------------------------------------------------------

    @alone
    def smooth(self, data: Any) -> None:
        """Stage 1 of a step alone: kinematics, contacts within reach, smooth forces."""
        self._ready(data)
        self._whole, self._reached = False, None
        self._smooth(data)
        self._reached = Stage.SMOOTH

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

    @alone
    def solve(self, data: Any) -> None:
        """Stages 2 to 4, after `smooth`: constraints, solve and look-ahead."""
        self._goes_on(data, "solve", "smooth", Stage.SMOOTH)
        self._reached = None
        self._solve(data)
        self._reached = Stage.CONSTRAINTS

    def _goes_on(self, data: Any, stage: str, before: str, reached: Stage) -> None:
        """Raise an error unless a stage follows the one before it, with the same data."""
        if self._whole or self._reached != reached:
            raise HoldfastError(f"{stage} takes a step on where {before} ends; call {before} first")
        if self._data() is not data:
            raise InputError("data", f"is not what {before} was called with")

    def _solve(self, data: Any) -> None:
        by_model = self._own_way and not self._get("only_read")
        self._set(stop=Stage.CONSTRAINTS, has_inertia=0, has_gaps=0, contact_free=0,
                  lookaheads=0, precise=0)  # fmt: skip
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

    @alone
    def finish(self, data: Any) -> None:
        """Stages 5 and 6, after `solve`: forces, sensors, integration, position correction."""
        self._goes_on(data, "finish", "solve", Stage.CONSTRAINTS)
        self._reached = None
        self._write(data)

    def _write(self, data: Any) -> None:
        self._set(stage=Stage.WRITE)
        self._call()
        self._go_on(data)
        self._stepped = self._whole = True

    @alone
    def constraints(self, data: Any) -> Outcome:
        """The constraints of the next step and its free motion, as arrays; nothing is solved.

        The state in `data` stays as it is.
        """
        self._ready(data)
        self._whole = False
        self._set(only_read=1)
        try:
            self._smooth(data)
            self._solve(data)
        finally:
            self._end_step()
        self._whole = True
        return self._free_motion()

    def _free_motion(self) -> Outcome:
        """Constraints that were read, with the free motion and no forces."""
        _, answer, *_ = carve_in_python(self.record)
        answer.impulse[:], answer.state[:], answer.velocity[:] = 0.0, 0, self._keep["free"]
        answer.report[:] = 0.0
        return self._copy_outcome()

    def _step_in_stages(self, data: Any) -> None:
        """Take a step stage by stage; if that fails, restore the state."""
        self._check_timestep()
        self._whole = False
        mujoco.mj_getState(self.private.model, data, self._keep["before"], _STATE)
        try:
            self._smooth(data)
            self._solve(data)
            self._write(data)
        except BaseException:  # the next step makes the record anew
            self._outcome, self._stepped = None, False
            self._restore(data)
            raise

    def _solve_by_model(self) -> None:
        """Let another contact model find the motion."""
        outcome = self._free_motion()
        contact: Any = self.contact
        with np.errstate(over="ignore", invalid="ignore"):  # of what diverges: that is told
            solve_by_model(outcome, contact, self.private.size)
        _, answer, *_ = carve_in_python(self.record)
        answer.impulse[:], answer.velocity[:] = outcome.impulse, outcome.velocity
        answer.state[:] = outcome.state

    def _copy_outcome(self) -> Outcome:
        """What the last compiled step found, copied when somebody asks."""
        if self._outcome is None:
            own = self.private.model
            arrays, answer, cs, _ = carve_in_python(self.record)
            v = self._keep["before"][1 + own.nq : 1 + own.nq + own.nv]
            self._outcome = copy_outcome(arrays, answer, cs, v, float(self._get("h")),
                                         self.private.geom_body)  # fmt: skip
            solved = not self._get("contact_free")
            self._outcome.consistent = not (solved and answer.report[JAMMED] > 0.0)
            data = self._data()
            if not self._get("has_inertia") and isinstance(data, mujoco.MjData):
                mujoco.mj_fullM(own, data, self._outcome.A)  # nothing touched: nobody needed it
                self._outcome.free[:] = self._outcome.velocity
        return self._outcome
