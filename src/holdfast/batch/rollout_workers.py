"""The threads of a rollout: each takes whole runs, with a stepper and data of its own."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from holdfast.batch.rollout_arrays import RolloutArrays
from holdfast.batch.threads import Work
from holdfast.errors import HoldfastError, InputError
from holdfast.mujoco._mj import mujoco
from holdfast.mujoco.loop import FULL_PHYSICS
from holdfast.mujoco.record import Status
from holdfast.mujoco.stepper import Stepper
from holdfast.mujoco.support import belongs

_DONE, _PAUSED, _UNCOUPLE = int(Status.DONE), int(Status.PAUSED), int(Status.UNCOUPLE)
_KEPT = 8  # models whose steppers a thread keeps


class Worker:
    """What a thread works with: a stepper for each model, and data."""

    def __init__(self, batch: RolloutArrays, choices: Mapping[str, Any], data: Any) -> None:
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
        if given is not None and belongs(model, given):
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
                left, status = more[0], stepper._status[0]
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
