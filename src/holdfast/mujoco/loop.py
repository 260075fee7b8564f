"""Many steps in one compiled call: of one simulation, or of runs that follow each other.

`Stepper.step(data, nstep)` takes its steps here, and so does `rollout`, whose runs begin with
states that are given, get controls, and leave states and sensor readings in the caller's arrays.

The loop returns to Python when a step needs it, and from time to time so that Ctrl-C is noticed.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast._jit import kernel
from holdfast.mujoco import c_api, structs
from holdfast.mujoco._mj import mujoco
from holdfast.mujoco.record import Status
from holdfast.mujoco.smooth import follow_user
from holdfast.mujoco.structs import data_at, floats, words

FULL_PHYSICS = int(mujoco.mjtState.mjSTATE_FULLPHYSICS)
SLICE = 0.05  # [s] between returns to Python
STEPS = 100  # the same in steps, where there is no clock

# The runs that one call works on: addresses of the arrays of `rollout` and where the call is. An
# address is 0 where nothing is given or wanted; a stride [bytes] is 0 where all have the same.
RUNS = np.dtype([(name, np.int64) for name in (
    "run", "step", "nstep",
    "initial", "initial_stride", "warmstart", "warmstart_stride",
    "control", "control_stride", "control_step", "control_spec",
    "state", "nstate", "sensordata", "nsensordata", "uncertified",
)])  # fmt: skip
runs_at: Any = structs.record_reader(RUNS)


@kernel
def seconds(s: Any, api: Any) -> float:
    """Return the time of a clock that never goes back [s]."""
    now = words(s.now, 1, 2)[0]
    c_api.call_clock(api.clock_gettime, np.int32(api.clock), s.now)
    return now[0] + 1e-9 * now[1]


@kernel
def set_pause(s: Any, api: Any) -> None:
    """Note when the loop has to return to Python."""
    if api.clock_gettime != 0:
        s.until = seconds(s, api) + SLICE


@kernel
def must_pause(s: Any, api: Any, steps: int) -> bool:
    """Return whether the loop has to return to Python."""
    if api.clock_gettime == 0:
        return steps >= STEPS
    return seconds(s, api) >= s.until


@kernel
def begin_step(s: Any, api: Any) -> int:
    """Begin a run, if one begins, and set the controls; return DONE or UNCOUPLE."""
    r = runs_at(s.runs)
    if r.step == 0:
        if s.coupled == 1:
            return Status.UNCOUPLE
        begin_run(s, api, r)
    if r.control != 0:
        control = r.control + r.run * r.control_stride + r.step * r.control_step
        c_api.call_state(api.mj_setState, s.model, s.data, control, np.int32(r.control_spec))
    return Status.DONE


@kernel
def begin_run(s: Any, api: Any, r: Any) -> None:
    """Set the state that a run begins with; nothing is left of the run before."""
    follow_user(s)
    c_api.call(api.mj_resetData, s.model, s.data)
    c_api.call_state(
        api.mj_setState, s.model, s.data, r.initial + r.run * r.initial_stride,
        np.int32(FULL_PHYSICS),
    )  # fmt: skip
    if r.warmstart != 0:
        given = r.warmstart + r.run * r.warmstart_stride
        structs.copy(data_at(s.data).qacc_warmstart, given, 8 * s.nv)
    forget(s)


@kernel
def forget(s: Any) -> None:
    """Make the record's history and statistics as those of a new stepper."""
    left, pose = floats(s.left, 1, s.nq)[0], floats(s.mocap_pose, 1, 7 * s.nmocap)[0]
    for k in range(left.shape[0]):
        left[k] = np.nan
    for k in range(pose.shape[0]):
        pose[k] = np.nan
    s.left_time = np.nan
    s.memo_count = s.kept_count = s.stuck = 0
    s.uncertified = s.inconsistent = s.redone = 0
    s.deepest = s.fastest = s.corrected = 0.0


@kernel
def end_step(s: Any, api: Any) -> None:
    """Write state and sensor readings after a step, and go on to the next one."""
    r, d = runs_at(s.runs), data_at(s.data)
    at = r.run * r.nstep + r.step
    if r.state != 0:
        out = r.state + 8 * at * r.nstate
        c_api.call_state(api.mj_getState, s.model, s.data, out, np.int32(s.physics_kind))
    if r.sensordata != 0:
        structs.copy(r.sensordata + 8 * at * r.nsensordata, d.sensordata, 8 * r.nsensordata)
    r.step += 1
    if r.step == r.nstep:
        words(r.uncertified + 8 * r.run, 1, 1)[0, 0] = s.uncertified
        r.run += 1
        r.step = 0
