"""Exact contact for MuJoCo models, step by step."""

from holdfast.errors import FrictionWarning, UnsupportedError
from holdfast.mujoco._kept import step
from holdfast.mujoco.assemble import build_problem
from holdfast.mujoco.contacts import Contacts
from holdfast.mujoco.stepper import Stepper

__all__ = [
    "Contacts",
    "FrictionWarning",
    "Stepper",
    "UnsupportedError",
    "build_problem",
    "step",
]
