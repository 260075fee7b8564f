"""MuJoCo's library itself, for compiled code that calls its functions."""

from __future__ import annotations

import ctypes
import weakref
from functools import cache
from pathlib import Path
from typing import Any

from holdfast.lcp._kernel import CEntry
from holdfast.mujoco._mj import mujoco, without_callbacks

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


class _Config(ctypes.Structure):
    """mjBatchConfig."""

    _fields_ = (("nthread", _int), ("persistent", ctypes.c_bool))


@cache
def _nothing() -> Any:
    """A model of nothing."""
    with without_callbacks():
        return mujoco.MjModel.from_xml_string('<mujoco><size memory="4K"/></mujoco>')


class Guard:
    """Calls compiled code so that an error of MuJoCo ends the call and not the process.

    MuJoCo's functions end the process when something is wrong, as memory that does not suffice,
    unless the caller sees to it; its batches do. This is a batch of one simulation of nothing:
    the function that it applies finds its model and data by itself.

    Args:
        function: is called.
    """

    def __init__(self, function: CEntry) -> None:
        self._function = function
        found = library()
        make, delete, self._apply = found.mjb_makeBatch, found.mjb_deleteBatch, found.mjb_apply
        make.restype, make.argtypes = _pointer, (_pointer, _int, _pointer, _pointer, _int)
        delete.restype, delete.argtypes = None, (_pointer,)
        self._apply.argtypes = (_pointer, _pointer, _int, _pointer, _pointer, _int)
        config = _Config(1, True)
        self._batch = make(_nothing()._address, 1, ctypes.addressof(config), None, 0)
        if not self._batch:
            raise MemoryError("MuJoCo could not make a batch")
        gone = weakref.finalize(self, delete, self._batch)
        gone.atexit = False  # a thread may be in the middle of a step when the process ends

    def __call__(self, argument: int) -> None:
        """Call ``function(model, data, 0, argument)``."""
        self._apply(self._batch, None, 1, self._function.address, argument, 0)
