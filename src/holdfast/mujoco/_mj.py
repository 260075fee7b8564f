"""MuJoCo itself, which has no type stubs: imported here once, as Any."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

mujoco: Any = import_module("mujoco")

# Functions of the user that MuJoCo's stages call.
CALLBACKS = ("passive", "control", "contactfilter", "sensor", "act_dyn", "act_gain", "act_bias")


@contextmanager
def without_callbacks() -> Iterator[None]:
    """Models of our own may be made here: the user's callbacks do not get to see them."""
    kept = [getattr(mujoco, f"get_mjcb_{name}")() for name in CALLBACKS]
    try:
        for name in CALLBACKS:
            getattr(mujoco, f"set_mjcb_{name}")(None)
        yield
    finally:
        for name, callback in zip(CALLBACKS, kept, strict=True):
            getattr(mujoco, f"set_mjcb_{name}")(callback)
