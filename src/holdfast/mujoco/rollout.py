"""Many simulations at once: open-loop rollouts as those of `mujoco.rollout`, with exact contact.

Each thread has a stepper and data of its own. A run is taken by one thread from its beginning to
its end, and begins as if its stepper was new: results are the same bits for any number of threads,
and those of a new `Stepper` for each run.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Literal
from weakref import WeakKeyDictionary

import numpy as np

from holdfast.contact.laws import Law
from holdfast.errors import HoldfastError, InputError, StepWarning
from holdfast.models import ContactModel
from holdfast.mujoco._mj import mujoco
from holdfast.mujoco.loop import FULL_PHYSICS, RUNS
from holdfast.mujoco.record import Status
from holdfast.mujoco.step_warnings import warn as warn_user
from holdfast.mujoco.stepper import Stepper
from holdfast.mujoco.threads import Work, thread_count

_CONTROL = int(mujoco.mjtState.mjSTATE_CTRL)
_USER = int(mujoco.mjtState.mjSTATE_USER)
_DONE, _PAUSED, _UNCOUPLE = int(Status.DONE), int(Status.PAUSED), int(Status.UNCOUPLE)
_KEPT = 8  # models whose steppers a thread keeps
_NAMED = 5  # failed runs that a warning names


class RunStatus(IntEnum):
    """How a run of `rollout` ended."""

    DONE = 0  # all steps are taken and certified
    UNCERTIFIED = 1  # all are taken; some missed the certificate, and were within 1e-6 of the law
    FAILED = 2  # a step could not be taken; the run rests at the state before it


@dataclass(frozen=True, eq=False)
class RunFailure:
    """Why a run of `rollout` ended before its last step.

    Attributes:
        run: index of the run.
        step: number of steps that were taken before.
        error: the exception.
        state: (nstate,) the state before the step that failed, `mjSTATE_FULLPHYSICS`.
    """

    run: int
    step: int
    error: Exception
    state: np.ndarray

    def __str__(self) -> str:
        return f"run {self.run} failed at step {self.step}: {self.error}"


class Rollout(tuple[np.ndarray, np.ndarray]):
    """What `rollout` returns: the pair (state, sensordata), and how each run ended.

    Attributes:
        status: (nbatch,) a `RunStatus` of each run.
        failures: a `RunFailure` of each run that failed, by index.
        uncertified_steps: (nbatch,) steps of each run that missed the certificate.
    """

    status: np.ndarray
    failures: tuple[RunFailure, ...]
    uncertified_steps: np.ndarray

    def __new__(cls, state: np.ndarray, sensordata: np.ndarray, uncertified: np.ndarray,
                failures: Sequence[RunFailure]) -> Rollout:  # fmt: skip
        """Make the pair, and tell how runs ended."""
        made = super().__new__(cls, (state, sensordata))
        made.uncertified_steps = uncertified
        made.failures = tuple(sorted(failures, key=lambda failure: failure.run))
        made.status = np.where(uncertified > 0, RunStatus.UNCERTIFIED, RunStatus.DONE).astype(int)
        made.status[[failure.run for failure in made.failures]] = RunStatus.FAILED
        return made

    def __getnewargs__(self) -> Any:
        return self.state, self.sensordata, self.uncertified_steps, self.failures

    def __repr__(self) -> str:
        nbatch, nstep = self.state.shape[:2]
        return f"Rollout({nbatch} runs of {nstep} steps, {len(self.failures)} failed)"

    @property
    def state(self) -> np.ndarray:
        """(nbatch, nstep, nstate) states after each step, `mjSTATE_FULLPHYSICS`."""
        return self[0]

    @property
    def sensordata(self) -> np.ndarray:
        """(nbatch, nstep, nsensordata) sensor readings of each step."""
        return self[1]


def rollout(
    model: Any,
    data: Any,
    initial_state: Any,
    control: Any = None,
    *,
    contact: ContactModel | Law | None = None,
    laws: Mapping[tuple[str, str], Law] | None = None,
    equalities: Literal["compliant", "rigid"] = "compliant",
    limits: Literal["compliant", "rigid"] = "rigid",
    correct: bool = True,
    warn: bool = True,
    strict: bool = False,
    control_spec: int = _CONTROL,
    skip_checks: bool = False,
    nstep: int | None = None,
    initial_warmstart: Any = None,
    state: Any = None,
    sensordata: Any = None,
    chunk_size: int | None = None,
    nthread: int | None = None,
    persistent_pool: bool = True,
) -> Rollout:
    """Roll out open-loop trajectories as `mujoco.rollout.rollout` does, with exact contact.

    ``state, sensordata = hf.rollout(...)`` is what MuJoCo's function returns; the result has
    further attributes, see `Rollout`. Each run starts from the given state, in data as
    `mj_resetData` leaves it. A run that fails stays in its last state, as in MuJoCo after a
    warning, and a `StepWarning` lists the failed runs; other runs are not affected.

    Args:
        model: `mujoco.MjModel`, or one for each run, all of the same sizes.
        data: `mujoco.MjData` or a list of them to work with, one per thread; None, or fewer than
            there are threads: the others are created here. Their final contents are unspecified.
        initial_state: ([nbatch or 1], nstate) initial states, `mjSTATE_FULLPHYSICS`.
        control: ([nbatch or 1], [nstep or 1], ncontrol) controls; by default those that the (first)
            data hold, or zero.
        contact: law of contacts, as for `Stepper`.
        laws: laws of pairs of geoms or bodies, as for `Stepper`.
        equalities: "compliant" or "rigid", as for `Stepper`.
        limits: "compliant" or "rigid", as for `Stepper`.
        correct: whether to correct penetration and drift of the position.
        warn: whether to issue warnings, each once for all runs, and one that lists failed runs.
        strict: whether an answer that misses the certificate fails its run.
        control_spec: what the controls are, an `mjtState`.
        skip_checks: accepted as in MuJoCo; shapes are checked all the same.
        nstep: number of steps; inferred from other arguments by default.
        initial_warmstart: ([nbatch or 1], nv) initial `qacc_warmstart`; written to the data
            for callbacks and plugins that look at it. Contact is warm started by its own impulses.
        state: array for the states, (nbatch, nstep, nstate).
        sensordata: array for the sensor readings, (nbatch, nstep, nsensordata).
        chunk_size: runs that a thread takes at a time; max(1, nbatch / (10 nthread)) by default.
        nthread: number of threads; by default that of `data` if they are several, else of cores.
        persistent_pool: accepted as in MuJoCo; threads are always created once.

    Raises:
        InputError: bad shapes or sizes, or what `Stepper` does not accept. It is a `ValueError`.

    Example:
        Boxes pushed with more and more of their weight; the friction coefficient is 0.5:

        >>> import mujoco, numpy as np, holdfast as hf
        >>> model = mujoco.MjModel.from_xml_string('''<mujoco><worldbody>
        ...   <geom type="plane" size="9 9 1" friction="0.5"/>
        ...   <body pos="0 0 0.1"><joint name="x" type="slide" axis="1 0 0"/>
        ...     <joint type="slide" axis="0 0 1"/>
        ...     <geom type="box" size="0.1 0.1 0.1" mass="1" friction="0.5"/></body>
        ... </worldbody><actuator><motor joint="x"/></actuator></mujoco>''')
        >>> data, start = mujoco.MjData(model), np.zeros(5)
        >>> push = 9.81 * np.array([0.4, 0.49, 0.51, 0.6])
        >>> state, sensordata = hf.rollout(model, data, start, push[:, None, None], nstep=500)
        >>> state.shape, np.abs(state[:, -1, 1]).round(6).tolist()  # x after 1 s [m]
        ((4, 500, 5), [0.0, 0.0, 0.049148, 0.491481])
    """
    del skip_checks, persistent_pool
    given = [] if data is None else list(data) if isinstance(data, list | tuple) else [data]
    batch = _Batch(model, initial_state, control, control_spec, nstep, initial_warmstart, state,
                   sensordata, given[0] if given else None)  # fmt: skip
    threads = thread_count(nthread, batch.nbatch, len(given) if len(given) > 1 else None)
    choices = {"contact": contact, "laws": laws, "equalities": equalities, "limits": limits,
               "correct": correct, "warn": warn, "strict": strict}  # fmt: skip
    chunks = _chunks(batch.nbatch, threads, chunk_size) if batch.nstep else []
    workers = [_Worker(batch, choices, given[k] if k < len(given) else None)
               for k in range(threads)]  # fmt: skip
    workers[0].stepper(batch.models[0])  # refuses what cannot be stepped, and compiles
    work = Work(chunks)
    work.run(threads, lambda k: workers[k].run(work))
    for worker in workers:  # after Ctrl-C steppers may be in the middle of a step: none is kept
        worker.close()
    result = batch.result()
    if warn:
        _warn(batch)
    return result


def _chunks(nbatch: int, nthread: int, size: int | None) -> list[tuple[int, int]]:
    """Runs that a thread takes at a time: the first one, and the one after the last."""
    if size is None:
        size = max(1, nbatch // (10 * nthread))
    elif isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
        raise InputError("chunk_size", f"is {size!r}; expected a whole number of runs")
    return [(k, min(k + int(size), nbatch)) for k in range(0, nbatch, int(size))]


def _warn(batch: _Batch) -> None:
    """Warn of what steppers had to say, of the first run of each kind, and of failures."""
    said: dict[Any, str] = {}
    for _run, text, kind, about in sorted(batch.warnings, key=lambda each: each[0]):
        if (kind, about) not in said:
            said[kind, about] = text
            warn_user(text, kind)
    failures = batch.failures
    if failures:
        named = "; ".join(str(failure) for failure in failures[:_NAMED])
        more = f"; and {len(failures) - _NAMED} more" if len(failures) > _NAMED else ""
        warn_user(f"{len(failures)} of {batch.nbatch} runs failed, see `failures` of the result: "
                  f"{named}{more}", StepWarning)  # fmt: skip


class _Batch:
    """The arrays of a rollout, with shapes inferred and checked by MuJoCo's rules."""

    def __init__(self, model: Any, initial_state: Any, control: Any, control_spec: int,
                 nstep: Any, warmstart: Any, state: Any, sensordata: Any, data: Any
                 ) -> None:  # fmt: skip
        models = [model] if isinstance(model, mujoco.MjModel) else _sequence(model)
        if int(control_spec) & ~_USER:
            raise InputError("control_spec", "can only contain bits in mjSTATE_USER")
        if nstep is not None and (
            isinstance(nstep, bool) or not isinstance(nstep, int | np.integer) or nstep < 0
        ):
            raise InputError("nstep", f"is {nstep!r}; expected a whole number of at least 0")
        self.control_spec = int(control_spec)
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
            _infer("steps", 1, 1 if nstep is None else int(nstep), timed),
        )
        self.models = models * nbatch if len(models) == 1 else models
        self._check_sizes(inputs)
        if control is None and isinstance(data, mujoco.MjData):
            self.control = _held_controls(self.models[0], data, self.control_spec)
        shape = nbatch, self.nstep
        self.state = np.zeros((*shape, self.nstate)) if state is None else state
        self.sensordata = np.zeros((*shape, self.nsensordata)) if sensordata is None else sensordata
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


class _Worker:
    """What a thread works with: a stepper for each model, and data."""

    def __init__(self, batch: _Batch, choices: Mapping[str, Any], data: Any) -> None:
        self.batch, self.choices, self.data = batch, choices, data
        self.run_now = 0
        self._in_hand: OrderedDict[Any, tuple[Stepper, Any]] = OrderedDict()

    def stepper(self, model: Any) -> tuple[Stepper, Any]:
        """A stepper of the model that nobody else has, and data to step."""
        found = self._in_hand.get(model)
        if found is None:
            stepper = _kept.take(model, self.choices)
            stepper.private.user = model
            stepper._warn_again()
            stepper._tell, stepper._resets = self._note, False
            found = self._in_hand[model] = stepper, self._data_for(model, stepper)
            if len(self._in_hand) > _KEPT:
                self._give_back(*self._in_hand.popitem(last=False))
        return found

    def _data_for(self, model: Any, stepper: Stepper) -> Any:
        given = self.data
        if given is not None and not isinstance(given, mujoco.MjData):
            raise InputError("data", f"has {type(given).__name__}; expected mujoco.MjData")
        if given is not None and given.signature == model.signature:
            return given
        several = len(set(map(id, self.batch.models))) > 1
        if given is not None and not several:
            raise InputError("data", "belong to another model; make them with MjData(model)")
        own = _kept.data.get(stepper)
        if own is None:  # of the stepper's own model: data keep their model alive
            own = _kept.data[stepper] = mujoco.MjData(stepper.private.model)
        return own

    def _note(self, text: str, kind: type[Warning], about: Any) -> None:
        self.batch.warnings.append((self.run_now, text, kind, about))

    def close(self) -> None:
        """Let others have the steppers."""
        while self._in_hand:
            self._give_back(*self._in_hand.popitem())

    def _give_back(self, model: Any, pair: tuple[Stepper, Any]) -> None:
        _kept.give_back(model, self.choices, pair[0])

    def run(self, work: Work) -> None:
        """Take chunks of runs until there are none."""
        chunk = work.next()
        while chunk is not None:
            first, last = chunk
            models = self.batch.models
            while first < last and not work.stopped:
                end = first + 1
                while end < last and models[end] is models[first]:
                    end += 1
                stepper, data = self.stepper(models[first])
                if stepper._own_way:
                    self._run_in_python(work, stepper, data, first, end)
                    first = end
                else:
                    first = self._run_compiled(work, stepper, data, first, end)
            chunk = work.next()

    def _run_compiled(self, work: Work, stepper: Stepper, data: Any, first: int, end: int) -> int:
        """Take runs in one compiled call, or in several where Python has something to do.

        Return the run to go on with: the end, or the one after a run that broke its stepper.
        """
        batch, runs = self.batch, self.batch.record(first)
        stepper._ready(data)
        stepper._whole = False
        more, left = stepper._more, (end - first) * batch.nstep - 1
        try:
            while left >= 0 and not work.stopped:
                more[0] = left
                stepper._set(runs=runs.ctypes.data)
                stepper._call()
                left, status = int(more[0]), int(stepper._status[0])
                if status == _DONE:
                    break
                if status == _UNCOUPLE:
                    stepper._uncouple()
                elif status != _PAUSED:
                    left, whole = self._finish_step(stepper, data, runs, left)
                    if not whole:
                        del self._in_hand[batch.models[first]]
                        return int(runs["run"][0])
        finally:
            more[0] = 0
            stepper._set(runs=0)
        stepper._whole = not work.stopped
        return end

    def _finish_step(self, stepper: Stepper, data: Any, runs: np.ndarray, left: int
                     ) -> tuple[int, bool]:  # fmt: skip
        """Finish a step that compiled code did not.

        Return how many are left, less one, and whether the stepper can go on.
        """
        batch, run, step = self.batch, int(runs["run"][0]), int(runs["step"][0])
        self.run_now, whole = run, True
        stepper._more[0] = 0
        stepper._set(runs=0)
        try:
            stepper._go_on(data)
        except Exception as error:  # also of the user's callbacks
            whole = isinstance(error, HoldfastError)
            batch.fail(run, step, error)
            left -= batch.nstep - 1 - step
            step = batch.nstep - 1
        else:
            batch.write(stepper.private.model, data, run, step)
        if step + 1 == batch.nstep:
            batch.uncertified[run] = stepper.uncertified_steps
            runs["run"], runs["step"] = run + 1, 0
        else:
            runs["step"] = step + 1
        return left - 1, whole

    def _run_in_python(self, work: Work, stepper: Stepper, data: Any, first: int,
                       end: int) -> None:  # fmt: skip
        """Take runs step by step, for contact models that solve problems in their own way."""
        batch, own = self.batch, stepper.private.model
        for run in range(first, end):
            self.run_now = run
            stepper.reset()
            mujoco.mj_resetData(own, data)
            mujoco.mj_setState(own, data, batch.of_run(batch.initial, run), FULL_PHYSICS)
            if batch.warmstart is not None:
                data.qacc_warmstart[:] = batch.of_run(batch.warmstart, run)
            for step in range(batch.nstep):
                if work.stopped:
                    return
                control = batch.controls(run, step)
                if control is not None:
                    mujoco.mj_setState(own, data, control, batch.control_spec)
                try:
                    stepper.step(data)
                except Exception as error:
                    batch.fail(run, step, error)
                    break
                batch.write(own, data, run, step)
            batch.uncertified[run] = stepper.uncertified_steps


class _KeptSteppers:
    """Steppers that rollouts keep while their models live, and data of theirs."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.free: WeakKeyDictionary[Any, dict[Any, list[Stepper]]] = WeakKeyDictionary()
        self.data: WeakKeyDictionary[Stepper, Any] = WeakKeyDictionary()

    def take(self, model: Any, choices: Mapping[str, Any]) -> Stepper:
        """A stepper that is not in use, or a new one."""
        key = _key(choices)
        with self.lock:
            free = self.free.get(model, {}).get(key, []) if key is not None else []
            if free:
                return free.pop()
        return Stepper(model, **choices)

    def give_back(self, model: Any, choices: Mapping[str, Any], stepper: Stepper) -> None:
        """Keep a stepper for the next one who asks, without keeping its model alive."""
        key = _key(choices)
        stepper.detach()
        stepper._tell = _silent  # that of the worker keeps the models of its batch alive
        stepper.private.user = None
        if key is not None:
            with self.lock:
                self.free.setdefault(model, {}).setdefault(key, []).append(stepper)


_kept = _KeptSteppers()


def _silent(_text: str, _kind: type[Warning], _about: Any) -> None:
    """Warn nobody: the stepper is not in use."""


def _key(choices: Mapping[str, Any]) -> Any:
    """What tells choices from others; None if they cannot be told, as if they hold arrays."""
    laws = choices["laws"]
    plain = {**choices, "laws": None if laws is None else frozenset(laws.items())}
    key = tuple(plain.values())
    try:
        hash(key)
    except TypeError:
        return None
    return key


def _held_controls(model: Any, data: Any, control_spec: int) -> np.ndarray | None:
    """The controls that data hold, (1, 1, ncontrol); None if data are not of the model."""
    if data.signature != model.signature:
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


def _array(name: str, given: Any, ndim: int) -> np.ndarray | None:
    """An input as doubles with so many dimensions, those missing put before the others."""
    if given is None:
        return None
    try:
        array = np.ascontiguousarray(given, dtype=np.float64)
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
