"""MuJoCo itself, which has no type stubs: imported here once, as Any."""

from importlib import import_module
from typing import Any

mujoco: Any = import_module("mujoco")
