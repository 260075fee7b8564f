"""Many simulations at once: open-loop rollouts as those of `mujoco.rollout`, with exact contact.

Each thread has a stepper and data of its own. A run is taken by one thread from its beginning to
its end, and begins as if its stepper was new: results are the same bits for any number of threads,
and those of a new `Stepper` for each run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from holdfast.batch.rollout_arrays import CONTROL, RolloutArrays
from holdfast.batch.rollout_result import Rollout
from holdfast.batch.rollout_workers import Worker
from holdfast.batch.threads import Work, thread_count
from holdfast.contact.laws import Law
from holdfast.errors import InputError, StepWarning
from holdfast.models import ContactModel
from holdfast.mujoco.step_warnings import warn as warn_user

_NAMED = 5  # failed runs that a warning names


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
    contacts: Literal["compliant", "rigid"] = "rigid",
    correct: bool = True,
    warn: bool = True,
    strict: bool = False,
    control_spec: int = CONTROL,
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
        contacts: "compliant" or "rigid", as for `Stepper`.
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
    batch = RolloutArrays(model, initial_state, control, control_spec, nstep, initial_warmstart,
                          state, sensordata, given[0] if given else None)  # fmt: skip
    threads = thread_count(nthread, batch.nbatch, len(given) if len(given) > 1 else None)
    choices = {"contact": contact, "laws": laws, "equalities": equalities, "limits": limits,
               "contacts": contacts, "correct": correct, "warn": warn,
               "strict": strict}  # fmt: skip
    chunks = _chunks(batch.nbatch, threads, chunk_size) if batch.nstep else []
    workers = [Worker(batch, choices, given[k] if k < len(given) else None)
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


def _warn(batch: RolloutArrays) -> None:
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
