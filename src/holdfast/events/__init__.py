"""Event-driven simulation: impacts at their time, sustained contact as an ODE."""

from holdfast.events.log import Event, EventLog
from holdfast.events.simulation import EventDriven

__all__ = ["Event", "EventDriven", "EventLog"]
