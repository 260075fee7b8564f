"""What happened, and when."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

Kind = Literal["impact", "made", "broken", "settled"]


@dataclass(frozen=True)
class Event:
    """One event.

    Attributes:
        time: time of the event [s].
        kind: "impact"; "made" and "broken" for sustained contact; "settled" if a step was ended by
            the rule against infinitely many impacts.
        bodies: names of the two bodies; a limit has its joint or tendon first.
        impulse: normal impulse of an impact, summed over the points of the pair [N s].
        speed: approach speed before an impact [m/s].
        energy_before, energy_after: energy of the whole model [J].
    """

    time: float
    kind: Kind
    bodies: tuple[str, str]
    impulse: float
    speed: float
    energy_before: float
    energy_after: float

    def __str__(self) -> str:
        text = f"{self.time:14.9f} s  {self.kind:8}  {self.bodies[0]} / {self.bodies[1]}"
        if self.kind != "impact":
            return text
        lost = self.energy_before - self.energy_after
        return f"{text}  {self.impulse:.6g} N s at {self.speed:.6g} m/s, {lost:.6g} J lost"


@dataclass
class EventLog:
    """A list of events that can be printed as a table and saved.

    Example:
        >>> log = EventLog()
        >>> log.add(Event(0.5, "impact", ("ball", "world"), 2.0, 1.0, 3.0, 2.0))
        >>> print(log)
           0.500000000 s  impact    ball / world  2 N s at 1 m/s, 1 J lost
        >>> len(log), len(log.impacts)
        (1, 1)
    """

    events: list[Event] = field(default_factory=list)

    def add(self, event: Event) -> None:
        """Append one event."""
        self.events.append(event)

    def clear(self) -> None:
        """Remove all events."""
        self.events.clear()

    @property
    def impacts(self) -> list[Event]:
        """The impacts alone."""
        return [event for event in self.events if event.kind == "impact"]

    def arrays(self) -> dict[str, np.ndarray]:
        """Columns for a file: ``event_time``, ``event_kind`` and so on."""
        columns = {
            "time": np.array([e.time for e in self.events]),
            "kind": np.array([e.kind for e in self.events], dtype="U8"),
            "bodies": np.array([e.bodies for e in self.events], dtype="U64").reshape(-1, 2),
            "impulse": np.array([e.impulse for e in self.events]),
            "speed": np.array([e.speed for e in self.events]),
            "energy_before": np.array([e.energy_before for e in self.events]),
            "energy_after": np.array([e.energy_after for e in self.events]),
        }
        return {f"event_{name}": column for name, column in columns.items()}

    def __len__(self) -> int:
        return len(self.events)

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events)

    def __getitem__(self, i: int) -> Event:
        return self.events[i]

    def __str__(self) -> str:
        return "\n".join(map(str, self.events))
