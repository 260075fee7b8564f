"""MuJoCo's C functions for compiled code: their addresses, calls of them, and a guard."""

# pyright: reportAttributeAccessIssue=false, reportRedeclaration=false, reportCallIssue=false
# (Numba's configuration and intrinsics have no types.)

from __future__ import annotations

import ctypes
import sys
import time
import weakref
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from llvmlite.ir import FunctionType, VoidType
from numba import types
from numba.extending import intrinsic

from holdfast._jit import COMPILED, CEntry, entry
from holdfast.errors import UnsupportedError
from holdfast.mujoco import structs
from holdfast.mujoco._mj import CALLBACKS, mujoco, without_callbacks

FUNCTIONS = (
    "mj_getState", "mj_setState", "mj_fwdKinematics", "mj_fwdPosition", "mj_makeM", "mj_factorM",
    "mj_comVel", "mj_collision", "mj_makeConstraint", "mj_referenceConstraint", "mj_transmission",
    "mj_sensorPos", "mj_energyPos", "mj_fwdVelocity", "mj_sensorVel", "mj_energyVel",
    "mj_fwdActuation", "mj_fwdAcceleration", "mj_fwdConstraint", "mj_forwardSkip", "mj_implicit",
    "mj_Euler", "mj_RungeKutta", "mj_sensorAcc", "mj_integratePos", "mj_kinematics",
    "mj_addContact", "mj_isSparse", "mj_comPos", "mj_resetData", "mj_island", "mj_geomDistance",
)  # fmt: skip

# Addresses of functions, of MuJoCo's pointers to callbacks, and of `mjd_smooth_vel` or 0; the
# address of `clock_gettime` or 0, and the number of its clock; whether smooth forces are the sum
# of those that are named.
API = np.dtype(
    [(name, np.int64) for name in (*FUNCTIONS, *(f"mjcb_{name}" for name in CALLBACKS))]
    + [(name, np.int64) for name in ("mjd_smooth_vel", "clock_gettime", "clock", "sums")]
)
api_at: Any = structs.record_reader(API)

_COARSE = 6  # CLOCK_MONOTONIC_COARSE of Linux

_DAMPED = """<mujoco><option integrator="implicitfast" density="2" viscosity="3"/><worldbody>
  <body><freejoint/><geom size=".1 .2 .3" type="box"/><body pos="1 0 0">
    <joint name="a" axis="0 1 0" damping="2"/><geom size=".1 .3" type="capsule"/><body pos="0 0 1">
      <joint name="b" axis="1 0 0"/><geom size=".1"/></body></body></body></worldbody>
  <tendon><fixed name="t" damping="3"><joint joint="a" coef="1"/><joint joint="b" coef="2"/></fixed>
  </tendon><actuator><velocity joint="b" kv="5"/><damper tendon="t" kv="7" ctrlrange="0 1"/>
  </actuator></mujoco>"""

_pointer, _int = ctypes.c_void_p, ctypes.c_int
_word, _number = types.int64, types.int32

# Calls of the function at the first argument, by the kinds of the others.
_CALLS: dict[str, tuple[Any, ...]] = {
    "call": (_word, _word),  # model, data
    "call_flag": (_word, _word, _number),  # model, data, an integer
    "call_flags": (_word, _word, _number, _number),
    "call_state": (_word, _word, _word, _number),  # model, data, state, which one
    "call_pointer": (_word, _word, _word),  # model, data, a pointer
    "call_integrate": (_word, _word, _word, types.float64),  # model, qpos, qvel, time
    "call_clock": (_number, _word),  # a clock, a time
    "call_batch": (_word, _word, _number, _word, _word, _number),  # see `guarded`
}
# The same for a function that returns a distance: model, data, two geoms, the largest, a segment.
_DISTANCE = (_word, _word, _number, _number, types.float64, _word)
_C_KINDS = {_word: _pointer, _number: _int, types.float64: ctypes.c_double, types.void: None}


def _caller(kinds: tuple[Any, ...], returned: Any = types.void) -> Any:
    """A function for kernels that calls a C function with arguments of these kinds."""
    if not COMPILED:
        made = ctypes.CFUNCTYPE(_C_KINDS[returned], *(_C_KINDS[kind] for kind in kinds))

        def plain(function: int, *args: Any) -> Any:
            whole = (float(a) if k is types.float64 else int(a)
                     for k, a in zip(kinds, args, strict=True))  # fmt: skip
            return made(int(function))(*whole)

        return plain

    def codegen(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        given = [context.get_value_type(kind) for kind in kinds]
        nothing = returned is types.void
        result = VoidType() if nothing else context.get_value_type(returned)
        pointer = FunctionType(result, given).as_pointer()
        found = builder.call(builder.inttoptr(args[0], pointer), args[1:])
        return context.get_dummy_value() if nothing else found

    signature = returned(_word, *kinds)
    names = ", ".join(f"a{k}" for k in range(len(kinds)))
    scope: dict[str, Any] = {"made": (signature, codegen)}
    exec(f"def _call(typingctx, function, {names}):\n    return made", scope)
    return intrinsic(scope["_call"])


(
    call, call_flag, call_flags, call_state, call_pointer, call_integrate, call_clock,
    call_batch,
) = (_caller(kinds) for kinds in _CALLS.values())  # fmt: skip
call_distance = _caller(_DISTANCE, types.float64)


@cache
def library() -> Any:
    """The library that the package `mujoco` has loaded.

    Raises:
        UnsupportedError: it is not found, or is too old to have batches.
    """
    folder = Path(mujoco.__file__).parent
    for pattern in ("libmujoco.so*", "libmujoco.*dylib", "mujoco.dll"):
        for path in sorted(folder.glob(pattern)):
            found = ctypes.CDLL(str(path))
            if hasattr(found, "mjb_apply") and found.mj_version() == mujoco.mj_version():
                return found
    raise UnsupportedError("mujoco", f"{mujoco.__version__} has no library with mjb_apply in "
                           f"{folder}; install mujoco 4.0 or newer")  # fmt: skip


def address(name: str) -> int:
    """Address of a function of the library; 0 if it has none of that name."""
    found = getattr(library(), name, None)
    return 0 if found is None else ctypes.cast(found, _pointer).value or 0


@cache
def functions() -> np.ndarray:
    """The record `API` of this process, (1,)."""
    api = np.zeros(1, dtype=API)
    for name in FUNCTIONS:
        api[name] = address(name)
        if api[name][0] == 0:
            raise UnsupportedError("mujoco", f"{mujoco.__version__} has no {name}; install "
                                   "mujoco 4.0")  # fmt: skip
    for name in CALLBACKS:
        api[f"mjcb_{name}"] = ctypes.addressof(_pointer.in_dll(library(), f"mjcb_{name}"))
    api["mjd_smooth_vel"] = derivative_function()
    api["clock_gettime"], api["clock"] = _clock()
    api["sums"] = sums_forces()
    return api


def _clock() -> tuple[int, int]:
    """Address of `clock_gettime` and its monotonic clock; zeros where there is none (Windows).

    Linux has a coarse one that takes a tenth of the time, and is good to a few milliseconds.
    """
    number = _COARSE if sys.platform == "linux" else getattr(time, "CLOCK_MONOTONIC", None)
    if number is None:
        return 0, 0
    found = getattr(ctypes.CDLL(None), "clock_gettime", None)
    return (0, 0) if found is None else (ctypes.cast(found, _pointer).value or 0, number)


@cache
def derivative_function() -> int:
    """Address of the function that fills qDeriv; 0 if it is not what it is taken for.

    `mjd_smooth_vel` is not among the functions that MuJoCo documents: it is used only if it does
    what `mj_implicit` does before it solves, which takes three times as long.
    """
    if not hasattr(library(), "mjd_smooth_vel"):
        return 0
    with without_callbacks():
        model = mujoco.MjModel.from_xml_string(_DAMPED)
        data = mujoco.MjData(model)
        data.qvel[:], data.ctrl[:] = np.arange(1, 1 + model.nv), 1.0
        mujoco.mj_forward(model, data)
        data.qDeriv[:] = np.nan
        function = library()["mjd_smooth_vel"]
        function(_pointer(model._address), _pointer(data._address), _int(0))
        found = data.qDeriv.copy()
        mujoco.mj_implicit(model, data)
    return address("mjd_smooth_vel") if np.array_equal(found, data.qDeriv) else 0


@cache
def sums_forces() -> bool:
    """Whether `mj_fwdAcceleration` adds up forces as `smooth.sum_forces` does, to the last bit."""
    with without_callbacks():
        model = mujoco.MjModel.from_xml_string(_DAMPED)
        data = mujoco.MjData(model)
        data.qvel[:], data.ctrl[:] = np.arange(1, 1 + model.nv), 1.0
        data.qfrc_applied[:] = 1.0 / np.arange(1, 1 + model.nv)
        mujoco.mj_forward(model, data)
    total = data.qfrc_passive - data.qfrc_bias + data.qfrc_applied + data.qfrc_actuator
    return np.array_equal(total, data.qfrc_smooth)


class _Config(ctypes.Structure):
    """mjBatchConfig."""

    _fields_ = (("nthread", _int), ("persistent", ctypes.c_bool))


@cache
def _empty_model() -> Any:
    with without_callbacks():
        return mujoco.MjModel.from_xml_string('<mujoco><size memory="4K"/></mujoco>')


@entry
def _apply_at(at: int) -> None:
    """Call `mjb_apply` with its address, a batch, a function and an argument, stored at `at`.

    Numba's way from Python to compiled code is half as long as that of ctypes.
    """
    words = structs.words(at, 1, 4)[0]
    call_batch(words[0], words[1], 0, np.int32(1), words[2], words[3], np.int32(0))


def guarded(function: CEntry, argument: int) -> Callable[[], object]:
    """A call of compiled code in which an error of MuJoCo ends the call and not the process.

    MuJoCo's functions end the process when something is wrong, for example when memory does not
    suffice, unless the caller catches the error; its batches do. This is a batch of one simulation
    of an empty model: the function that it applies finds its model and data by itself.

    Args:
        function: is called as ``function(model, data, 0, argument)``.
        argument: of it.
    """
    found = library()
    make, delete = found.mjb_makeBatch, found.mjb_deleteBatch
    make.restype, make.argtypes = _pointer, (_pointer, _int, _pointer, _pointer, _int)
    delete.restype, delete.argtypes = None, (_pointer,)
    config = _Config(1, True)
    batch = make(_empty_model()._address, 1, ctypes.addressof(config), None, 0)
    if not batch:
        raise MemoryError("MuJoCo could not make a batch")
    words = np.array([address("mjb_apply"), batch, function.address, argument], dtype=np.int64)
    run = partial(_apply_at, words.ctypes.data)
    # What a thread may need in the middle of a step when modules are taken down.
    run.kept = words, function, _apply_at
    gone = weakref.finalize(run, delete, batch)
    gone.atexit = False  # a thread may be in the middle of a step when the process ends
    return run
