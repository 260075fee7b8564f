"""The arguments of `rollout`: shapes inferred and checked by MuJoCo's rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from holdfast.batch.rollout_result import Rollout, RunFailure
from holdfast.errors import InputError
from holdfast.mujoco._mj import mujoco
from holdfast.mujoco.loop import FULL_PHYSICS, RUNS
from holdfast.mujoco.support import belongs, whole_number

CONTROL = int(mujoco.mjtState.mjSTATE_CTRL)
_USER = int(mujoco.mjtState.mjSTATE_USER)


class RolloutArrays:
    """The arrays of a rollout, with shapes inferred and checked by MuJoCo's rules."""

    def __init__(self, model: Any, initial_state: Any, control: Any, control_spec: int,
                 nstep: Any, warmstart: Any, state: Any, sensordata: Any, data: Any
                 ) -> None:  # fmt: skip
        models = [model] if isinstance(model, mujoco.MjModel) else _sequence(model)
        self.control_spec = whole_number("control_spec", control_spec)
        if self.control_spec & ~_USER:
            raise InputError("control_spec", "can only contain bits in mjSTATE_USER")
        nstep = None if nstep is None else whole_number("nstep", nstep)
        self.initial: Any = _array("initial_state", initial_state, 2)
        self.warmstart = _array("initial_warmstart", warmstart, 2)
        self.control = _array("control", control, 3)
        for name, out in (("state", state), ("sensordata", sensordata)):
            _check_output(name, out)
        if self.initial is None:
            raise InputError("initial_state", "is None; expected an array of states")
        inputs = {"initial_state": self.initial, "initial_warmstart": self.warmstart,
                  "control": self.control, "state": state, "sensordata": sensordata}  # fmt: skip
        nbatch = _infer("runs", 0, 1, inputs)
        if nbatch == 1:
            nbatch = len(models)
        if len(models) not in (1, nbatch):
            raise InputError("model", f"is a list of {len(models)} for {nbatch} runs")
        timed = {name: inputs[name] for name in ("control", "state", "sensordata")}
        self.nbatch, self.nstep = (
            nbatch,
            _infer("steps", 1, 1 if nstep is None else nstep, timed),
        )
        self.models = models * nbatch if len(models) == 1 else models
        self._check_sizes(inputs)
        if control is None and isinstance(data, mujoco.MjData):
            self.control = _held_controls(self.models[0], data, self.control_spec)
        shape = nbatch, self.nstep
        self.state = _zeros((*shape, self.nstate)) if state is None else state
        self.sensordata = _zeros((*shape, self.nsensordata)) if sensordata is None else sensordata
        for name, out in (("state", self.state), ("sensordata", self.sensordata)):
            if out.shape[:2] != shape:
                raise InputError(name, f"has shape {out.shape}; expected {nbatch} runs of "
                                 f"{self.nstep} steps")  # fmt: skip
        self.uncertified = np.zeros(nbatch, dtype=np.int64)
        self.failures: list[RunFailure] = []
        self.warnings: list[tuple[int, str, type[Warning], Any]] = []

    def _check_sizes(self, inputs: Mapping[str, Any]) -> None:
        sizes = [_sizes(model, self.control_spec) for model in dict.fromkeys(self.models)]
        if any(each != sizes[0] for each in sizes):
            raise InputError("model", "are not compatible: states, controls, nv and sensors of all "
                             "must have the same sizes")  # fmt: skip
        self.nstate, ncontrol, nv, self.nsensordata = sizes[0]
        last = {"initial_state": self.nstate, "state": self.nstate, "control": ncontrol,
                "initial_warmstart": nv, "sensordata": self.nsensordata}  # fmt: skip
        for name, size in last.items():
            array = inputs[name]
            if array is not None and array.shape[-1] != size:
                raise InputError(name, f"has {array.shape[-1]} entries for each state; expected "
                                 f"{size}")  # fmt: skip

    def record(self, first: int) -> np.ndarray:
        """The record `RUNS` of runs that begin with the first one given."""
        made = np.zeros(1, dtype=RUNS)
        made["run"], made["nstep"], made["control_spec"] = first, self.nstep, self.control_spec
        made["nstate"], made["nsensordata"] = self.nstate, self.nsensordata
        for name, array in (("initial", self.initial), ("warmstart", self.warmstart),
                            ("control", self.control)):  # fmt: skip
            if array is not None and array.size:
                made[name] = array.ctypes.data
                made[f"{name}_stride"] = array.strides[0] if array.shape[0] > 1 else 0
        if self.control is not None and self.control.shape[1] > 1:
            made["control_step"] = self.control.strides[1]
        for name in ("state", "sensordata"):
            array = getattr(self, name)
            made[name] = array.ctypes.data if array.size else 0
        made["uncertified"] = self.uncertified.ctypes.data
        return made

    def of_run(self, array: np.ndarray, run: int) -> np.ndarray:
        """The part of an input that is for a run."""
        return array[run if array.shape[0] > 1 else 0]

    def controls(self, run: int, step: int) -> np.ndarray | None:
        """The controls of a step."""
        if self.control is None or not self.control.size:
            return None
        part = self.of_run(self.control, run)
        return part[step if part.shape[0] > 1 else 0]

    def write(self, model: Any, data: Any, run: int, step: int) -> None:
        """Write state and sensor readings after a step that Python has finished."""
        mujoco.mj_getState(model, data, self.state[run, step], FULL_PHYSICS)
        self.sensordata[run, step] = data.sensordata

    def fail(self, run: int, step: int, error: Exception) -> None:
        """Let a run rest at its last state."""
        last = self.state[run, step - 1] if step else self.of_run(self.initial, run)
        readings = self.sensordata[run, step - 1] if step else 0.0
        self.state[run, step:], self.sensordata[run, step:] = last, readings
        self.failures.append(RunFailure(run, step, error, np.array(last)))

    def result(self) -> Rollout:
        """State, sensor readings and how runs ended."""
        self.failures.sort(key=lambda failure: failure.run)
        return Rollout(self.state, self.sensordata, self.uncertified, self.failures)


def _held_controls(model: Any, data: Any, control_spec: int) -> np.ndarray | None:
    """The controls that data hold, (1, 1, ncontrol); None if data are not of the model."""
    if not belongs(model, data):
        return None
    held = np.zeros(mujoco.mj_stateSize(model, control_spec))
    mujoco.mj_getState(model, data, held, control_spec)
    return held[None, None]


def _sizes(model: Any, control_spec: int) -> tuple[int, int, int, int]:
    return (
        mujoco.mj_stateSize(model, FULL_PHYSICS), mujoco.mj_stateSize(model, control_spec),
        model.nv, model.nsensordata,
    )  # fmt: skip


def _sequence(models: Any) -> list[Any]:
    try:
        found = list(models)
    except TypeError:
        found = [models]
    for model in found:
        if not isinstance(model, mujoco.MjModel):
            raise InputError("model", f"is {type(model).__name__}; expected mujoco.MjModel or a "
                             "list of them")  # fmt: skip
    if not found:
        raise InputError("model", "is an empty list; expected one model, or one for each run")
    return found


def _zeros(shape: tuple[int, int, int]) -> np.ndarray:
    """An array for results; more than there is memory for is refused."""
    try:
        return np.zeros(shape)
    except (MemoryError, ValueError) as error:
        raise InputError("nstep", f"is {shape[1]} for {shape[0]} runs: there is no memory for so "
                         "many states") from error  # fmt: skip


def _array(name: str, given: Any, ndim: int) -> np.ndarray | None:
    """An input as doubles with so many dimensions, those missing put before the others."""
    if given is None:
        return None
    try:
        array = np.asarray(given)
        if array.dtype.kind not in "fiub":
            raise TypeError(array.dtype)
        array = np.ascontiguousarray(array, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(name, "is not an array of numbers") from error
    if array.ndim > ndim:
        raise InputError(name, f"has {array.ndim} dimensions; at most {ndim} are expected")
    return array.reshape((1,) * (ndim - array.ndim) + array.shape)


def _check_output(name: str, out: Any) -> None:
    if out is None:
        return
    good = isinstance(out, np.ndarray) and out.dtype == np.float64 and out.flags.c_contiguous
    if not good or out.ndim != 3 or not out.flags.writeable:
        raise InputError(name, "must be an array of doubles with three dimensions, contiguous in "
                         "row-major order, to write to")  # fmt: skip


def _infer(what: str, axis: int, value: int, arrays: Mapping[str, Any]) -> int:
    """The length along an axis that all arrays agree on; those of length 1 agree with any."""
    for name, array in arrays.items():
        if array is None or array.shape[axis] == value:
            continue
        if value == 1:
            value = array.shape[axis]
        elif array.shape[axis] != 1:
            raise InputError(name, f"has {array.shape[axis]} {what}; others have {value}")
    return value
