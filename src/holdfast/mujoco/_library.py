"""MuJoCo's library itself, for compiled code that calls its functions."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from holdfast._jit import CEntry
from holdfast.mujoco import _memory as mem
from holdfast.mujoco._mj import mujoco, without_callbacks

_DAMPED = """<mujoco><option integrator="implicitfast" density="2" viscosity="3"/><worldbody>
  <body><freejoint/><geom size=".1 .2 .3" type="box"/><body pos="1 0 0">
    <joint name="a" axis="0 1 0" damping="2"/><geom size=".1 .3" type="capsule"/><body pos="0 0 1">
      <joint name="b" axis="1 0 0"/><geom size=".1"/></body></body></body></worldbody>
  <tendon><fixed name="t" damping="3"><joint joint="a" coef="1"/><joint joint="b" coef="2"/></fixed>
  </tendon><actuator><velocity joint="b" kv="5"/><damper tendon="t" kv="7" ctrlrange="0 1"/>
  </actuator></mujoco>"""

_pointer, _int = ctypes.c_void_p, ctypes.c_int


@cache
def library() -> Any:
    """The library that the package `mujoco` has loaded; None if it is not found."""
    folder = Path(mujoco.__file__).parent
    for pattern in ("libmujoco.so*", "libmujoco.*dylib", "mujoco.dll"):
        for path in sorted(folder.glob(pattern)):
            found = ctypes.CDLL(str(path))
            if hasattr(found, "mjb_apply") and found.mj_version() == mujoco.mj_version():
                return found
    return None


def address(name: str) -> int:
    """Of a function of the library."""
    return ctypes.cast(getattr(library(), name), _pointer).value or 0


def variable(name: str) -> int:
    """Address of a global variable of the library."""
    return ctypes.addressof(_pointer.in_dll(library(), name))


@cache
def derivative_function() -> int:
    """Address of the function that fills qDeriv; 0 if it is not what it is taken for.

    `mjd_smooth_vel` is not among the functions that MuJoCo documents: it is believed if it does
    what `mj_implicit` does before it solves. That would do as well, and takes three times as long.
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


class _Config(ctypes.Structure):
    """mjBatchConfig."""

    _fields_ = (("nthread", _int), ("persistent", ctypes.c_bool))


@cache
def _nothing() -> Any:
    """A model of nothing."""
    with without_callbacks():
        return mujoco.MjModel.from_xml_string('<mujoco><size memory="4K"/></mujoco>')


def _apply(at: int) -> None:
    """Call `mjb_apply` with what stands at an address: where it is, a batch, function, argument."""
    words = mem.words(at, 1, 4)[0]
    mem.call_batch(words[0], words[1], words[2], words[3])


_apply_at = CEntry(_apply)


def guarded(function: CEntry, argument: int) -> Callable[[], object]:
    """A call of compiled code so that an error of MuJoCo ends the call and not the process.

    MuJoCo's functions end the process when something is wrong, as memory that does not suffice,
    unless the caller sees to it; its batches do. This is a batch of one simulation of nothing:
    the function that it applies finds its model and data by itself. Python calls it with a single
    argument, converted for C once: each one takes it a twentieth of a microsecond.

    Args:
        function: is called, as ``function(model, data, 0, argument)``.
        argument: of it.
    """
    found = library()
    make, delete = found.mjb_makeBatch, found.mjb_deleteBatch
    make.restype, make.argtypes = _pointer, (_pointer, _int, _pointer, _pointer, _int)
    delete.restype, delete.argtypes = None, (_pointer,)
    config = _Config(1, True)
    batch = make(_nothing()._address, 1, ctypes.addressof(config), None, 0)
    if not batch:
        raise MemoryError("MuJoCo could not make a batch")
    words = np.array([address("mjb_apply"), batch, function.address, argument], dtype=np.int64)
    call = partial(ctypes.CFUNCTYPE(None)(_apply_at.address), _pointer(words.ctypes.data))
    # What a thread may need in the middle of a step when modules are taken down.
    call.kept = words, function, _apply_at  # pyright: ignore[reportAttributeAccessIssue]
    gone = weakref.finalize(call, delete, batch)
    gone.atexit = False  # a thread may be in the middle of a step when the process ends
    return call
