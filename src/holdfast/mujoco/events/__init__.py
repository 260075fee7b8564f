"""Event-driven simulation: impacts at their time, sustained contact as an ODE."""

from holdfast.mujoco.events.log import Event, EventLog
from holdfast.mujoco.events.simulation import EventDriven

__all__ = ["Event", "EventDriven", "EventLog"]
