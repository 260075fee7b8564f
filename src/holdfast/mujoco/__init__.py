"""Exact contact for MuJoCo models: the one package that knows MuJoCo."""

from holdfast.errors import FrictionWarning, UnsupportedError
from holdfast.mujoco._kept import step
from holdfast.mujoco.assemble import build_problem
from holdfast.mujoco.contacts import Contacts
from holdfast.mujoco.events import Event, EventDriven, EventLog
from holdfast.mujoco.stepper import Stepper

__all__ = [
    "Contacts",
    "Event",
    "EventDriven",
    "EventLog",
    "FrictionWarning",
    "Stepper",
    "UnsupportedError",
    "build_problem",
    "step",
]
