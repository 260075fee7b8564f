"""Exact contact for MuJoCo models, step by step."""

from holdfast.errors import FrictionWarning, UnsupportedError
from holdfast.mujoco.contacts import Contacts
from holdfast.mujoco.rollout import Rollout, RunFailure, RunStatus, rollout
from holdfast.mujoco.stagewise import build_problem
from holdfast.mujoco.stepper import Stepper, forward, step

__all__ = [
    "Contacts",
    "FrictionWarning",
    "Rollout",
    "RunFailure",
    "RunStatus",
    "Stepper",
    "UnsupportedError",
    "build_problem",
    "forward",
    "rollout",
    "step",
]
