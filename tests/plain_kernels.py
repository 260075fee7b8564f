"""Kernels as plain Python: what compiled code cannot be asked for can be looked at."""

from __future__ import annotations

import ctypes
from types import FunctionType
from typing import Any

from holdfast.mujoco import structs

_KINDS = {"integers": ctypes.c_int32, "singles": ctypes.c_float, "floats": ctypes.c_double,
          "words": ctypes.c_int64}  # fmt: skip


def _view(kind: Any) -> Any:
    return lambda at, rows, columns: structs.plain_view(int(at), int(rows), int(columns), kind)


VIEWS: dict[str, Any] = {name: _view(kind) for name, kind in _KINDS.items()}


def plain(kernel: Any, **instead: Any) -> Any:
    """A kernel as it is written, with all that it calls.

    Args:
        kernel: compiled or not.
        instead: what names stand for in all of them; views of memory are plain ones anyway.
    """
    return _plain(kernel, {**VIEWS, **instead}, {})


def _plain(kernel: Any, instead: dict[str, Any], made: dict[Any, Any]) -> Any:
    code = getattr(kernel, "py_func", kernel)
    if code not in made:
        scope = {**code.__globals__, **instead}
        made[code] = FunctionType(code.__code__, scope, code.__name__, code.__defaults__)
        for name in code.__code__.co_names:
            if name not in instead and _is_kernel(scope.get(name)):
                scope[name] = _plain(scope[name], instead, made)
    return made[code]


def _is_kernel(each: Any) -> bool:
    ours = isinstance(each, FunctionType) and each.__module__.startswith("holdfast.")
    return hasattr(each, "py_func") or (ours and not each.__code__.co_freevars)
