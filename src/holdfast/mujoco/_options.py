"""Copying the options of a model: one stretch of memory if its layout is known, else by name."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from holdfast.mujoco._layout import structure
from holdfast.mujoco._mj import mujoco, without_callbacks


def option_segment(user: Any, own: Any) -> tuple[int, int, int] | None:
    """Target, source and size [bytes] of the options of one model, to be copied to another.

    None if their layout is not known; then `option_copier` does it.
    """
    layout = _layout()
    if layout is None:
        return None
    return _start(layout, own), _start(layout, user), ctypes.sizeof(layout)


def option_addresses(model: Any, names: tuple[str, ...]) -> list[int] | None:
    """Where options of a model stand; None if their layout is not known."""
    layout = _layout()
    if layout is None:
        return None
    return [_start(layout, model) + getattr(layout, name).offset for name in names]


def option_copier(user: Any, own: Any) -> Callable[[], None]:
    """A function that copies all options of one model to another, name by name."""
    names = [name for name in dir(user.opt) if not name.startswith("_")]
    arrays = [name for name in names if isinstance(getattr(user.opt, name), np.ndarray)]
    numbers = [name for name in names if isinstance(getattr(user.opt, name), (int, float))]

    def by_name() -> None:
        for name in numbers:
            setattr(own.opt, name, getattr(user.opt, name))
        for name in arrays:
            getattr(own.opt, name)[:] = getattr(user.opt, name)

    return by_name


@cache
def _layout() -> Any:
    """The struct mjOption as MuJoCo describes it; None if it does not, or wrongly."""
    layout = structure("mjOption")
    return layout if layout is not None and _is_true(layout) else None


def _start(layout: Any, model: Any) -> int:
    """Address of the options, from that of an array within."""
    return model.opt.gravity.ctypes.data - layout.gravity.offset


def _is_true(layout: Any) -> bool:
    """Whether every option stands where the layout says: each is changed and looked up."""
    with without_callbacks():
        model = mujoco.MjModel.from_xml_string("<mujoco/>")
    options = layout.from_address(_start(layout, model))
    for value, (name, kind) in enumerate(layout._fields_, start=1):
        if kind in (ctypes.c_double, ctypes.c_int):
            setattr(model.opt, name, value)
            found = [getattr(options, name)]
        else:
            getattr(model.opt, name)[:] = value
            found = list(getattr(options, name))
        if any(each != value for each in found):
            return False
    return True
