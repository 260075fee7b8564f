"""Exact contact for MuJoCo models, step by step."""

from holdfast.errors import FrictionWarning, UnsupportedError
from holdfast.mujoco.contacts import Contacts
from holdfast.mujoco.functions import build_problem, forward, step
from holdfast.mujoco.options import StepOptions
from holdfast.mujoco.stepper import Stepper

__all__ = [
    "Contacts",
    "FrictionWarning",
    "StepOptions",
    "Stepper",
    "UnsupportedError",
    "build_problem",
    "forward",
    "step",
]
