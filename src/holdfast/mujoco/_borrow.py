"""Arrays of a model that another model uses, too.

A copy of a model that shall keep up with the original would have to be copied again before every
step: more memory than all else that a small step touches. But a model is a struct of pointers, and
all arrays lie in one buffer, which is what is freed when a model is deleted. So the copy's pointers
may lead to the original's arrays, where every change is seen at once.

Where the pointers stand, MuJoCo's description of the struct says; it is believed only if each one
leads where the attribute of its name does.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

_ANCHOR = "body_parentid"  # in every model, and not where the buffer begins: its pointer is unique


def array_of(model: Any, name: str) -> np.ndarray | None:
    """An array of a model; None if there is none of that name, or nothing in it."""
    array = getattr(model, name, None)
    usable = isinstance(array, np.ndarray) and array.nbytes > 0 and array.flags.c_contiguous
    return array if usable else None


def borrow(lender: Any, borrower: Any, names: list[str]) -> bool:
    """Let arrays of these names be those of the lender, for MuJoCo's functions; whether it could.

    The borrower's attributes go on showing the arrays that it had. The lender must outlive every
    use of the borrower but its deletion.
    """
    theirs, ours = _pointers(lender), _pointers(borrower)
    if theirs is None or ours is None or not all(name in ours for name in names):
        return False
    for name in names:
        if array_of(lender, name) is not None:
            ours[name].value = theirs[name].value
    return True


def _pointers(model: Any) -> dict[str, ctypes.c_void_p] | None:
    """The pointers to the arrays of a model, as they stand in its struct; None if unknown."""
    try:
        from mujoco.introspect.structs import STRUCTS

        described: Any = STRUCTS["mjModel"].fields
        fields = [field.name for field in described if str(field.type).endswith("*")]
        names = fields[fields.index("buffer") + 1 :]
        before = names.index(_ANCHOR)
    except (ImportError, KeyError, ValueError):
        return None
    first = array_of(model, _ANCHOR)
    if first is None or not hasattr(model, "_address"):
        return None
    # They stand side by side at the end of the struct, which is no shorter than they are.
    size = ctypes.sizeof(ctypes.c_void_p)
    begin = list((ctypes.c_size_t * len(names)).from_address(model._address))
    if first.ctypes.data not in begin:
        return None
    at = model._address + size * (begin.index(first.ctypes.data) - before)
    found = {name: ctypes.c_void_p.from_address(at + k * size) for k, name in enumerate(names)}
    for name, pointer in found.items():
        array = array_of(model, name)
        if array is not None and pointer.value != array.ctypes.data:
            return None
    return found
