"""Exact contact for MuJoCo models, step by step."""

from holdfast.errors import FrictionWarning, UnsupportedError
from holdfast.mujoco.contacts import Contacts
from holdfast.mujoco.stepper import Stepper, forward, step

__all__ = [
    "Contacts",
    "FrictionWarning",
    "Stepper",
    "UnsupportedError",
    "forward",
    "step",
]
