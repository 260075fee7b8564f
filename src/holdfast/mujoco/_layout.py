"""Layouts of MuJoCo's structs, as its package describes them."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

_TYPES = {
    "mjtNum": ctypes.c_double,
    "int": ctypes.c_int,
    "mjtSize": ctypes.c_int64,
    "mjtBool": ctypes.c_bool,
    "size_t": ctypes.c_size_t,
    "uintptr_t": ctypes.c_size_t,
    "uint64_t": ctypes.c_uint64,
}


@cache
def structure(name: str) -> Any:
    """A struct of MuJoCo as a ctypes structure; None if its description has gaps.

    The description is not evidence: whoever uses a layout checks it against known values.
    """
    try:
        from mujoco.introspect.structs import STRUCTS

        described: Any = STRUCTS[name].fields
    except (ImportError, KeyError):
        return None
    fields = []
    for field in described:
        kind = _type(str(field.type))
        if kind is None:
            return None
        fields.append((field.name, kind))
    return type(name, (ctypes.Structure,), {"_fields_": fields})


def _type(text: str) -> Any:
    if text.endswith("*"):
        return ctypes.c_void_p
    name, _, count = text.partition(" [")
    kind: Any = _TYPES.get(name) or structure(name)
    if kind is None or not count:
        return kind
    return kind * int(count[:-1])
