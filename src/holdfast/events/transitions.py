"""Which contacts last from one piece of a simulation to the next, and what is logged of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from holdfast.events.contact_set import Listing
from holdfast.events.log import Event, EventLog, Kind
from holdfast.events.state import Probe, State
from holdfast.mujoco._mj import mujoco

_LIMIT_JOINT = -1 - int(mujoco.mjtConstraint.mjCNSTR_LIMIT_JOINT)


class Touching(NamedTuple):
    """A listing, and which of its contacts were loaded in the piece that ended there."""

    listed: Listing | None
    loaded: np.ndarray

    @classmethod
    def none(cls, listed: Listing | None) -> Touching:
        """No contact is loaded."""
        return cls(listed, np.zeros(0 if listed is None else len(listed), dtype=bool))

    def moved(self, listed: Listing) -> Touching:
        """The same contacts in a new listing of the same state."""
        if self.listed is None or not self.loaded.any():
            return Touching.none(listed)
        return Touching(listed, self.listed.moved(self.loaded, listed))


class Memory(NamedTuple):
    """Pairs of bodies in sustained contact (None: not known), what is loaded, the last state."""

    pairs: set[tuple[int, int]] | None
    touching: Touching
    last: State | None


NOTHING = Memory(None, Touching.none(None), None)


class Transitions:
    """Remembers pairs in sustained contact and logs what changes."""

    def __init__(self, model: Any, probe: Probe, log: EventLog) -> None:
        self._model, self._probe, self._log = model, probe, log
        self.memory = NOTHING

    def recall(self, state: State) -> Touching:
        """What was loaded, if this is the state that was left; else nothing."""
        last = self.memory.last
        if last is None or not (
            np.array_equal(last.qpos, state.qpos) and np.array_equal(last.qvel, state.qvel)
        ):
            self.memory = NOTHING
        return self.memory.touching

    def remember(self, state: State, touching: Touching) -> None:
        """What a step ended with."""
        self.memory = self.memory._replace(last=state, touching=touching)

    def note(self, state: State, listed: Listing, sustained: np.ndarray) -> None:
        """Log pairs that came into sustained contact, and pairs that left it."""
        pairs = {self._pair(geoms) for geoms in listed.geoms[sustained].tolist()}
        before = self.memory.pairs
        if before is not None and pairs != before:
            energy = self._probe.energy(state)
            for kind, changed in (("broken", before - pairs), ("made", pairs - before)):
                for pair in sorted(changed):
                    self._add(state.time, kind, pair, 0.0, 0.0, energy, energy)
        self.memory = self.memory._replace(pairs=pairs)

    def impact(
        self, before: State, after: State, listed: Listing, some: np.ndarray, normal: np.ndarray,
        speed: np.ndarray,
    ) -> None:  # fmt: skip
        """Log an impact, pair by pair."""
        if self.memory.pairs is None:
            self.memory = self.memory._replace(pairs=set())
        energies = self._probe.energy(before), self._probe.energy(after)
        sums: dict[tuple[int, int], list[float]] = {}
        for geoms, impulse, rate in zip(listed.geoms[some].tolist(), normal, speed, strict=True):
            both = sums.setdefault(self._pair(geoms), [0.0, 0.0])
            both[0] += float(impulse)
            both[1] = max(both[1], float(-rate))
        for pair, (impulse, approach) in sums.items():
            if impulse > 0.0:
                self._add(before.time, "impact", pair, impulse, approach, *energies)

    def settled(self, state: State, listed: Listing, loaded: np.ndarray) -> None:
        """Log that the rule against endless impacts ended a step."""
        energy = self._probe.energy(state)
        for pair in sorted({self._pair(geoms) for geoms in listed.geoms[loaded].tolist()}):
            self._add(state.time, "settled", pair, 0.0, 0.0, energy, energy)

    def _add(
        self, time: float, kind: Any, pair: tuple[int, int], impulse: float, speed: float,
        before: float, after: float,
    ) -> None:  # fmt: skip
        known: Kind = kind
        self._log.add(Event(time, known, self._names(pair), impulse, speed, before, after))

    def _pair(self, geoms: list[int]) -> tuple[int, int]:
        """Two bodies in order; a limit stays as it is labelled."""
        if geoms[0] < 0:
            return geoms[0], geoms[1]
        a, b = (int(self._model.geom_bodyid[g]) for g in geoms)
        return (a, b) if a <= b else (b, a)

    def _names(self, pair: tuple[int, int]) -> tuple[str, str]:
        if pair[0] < 0:
            kind = "joint" if pair[0] == _LIMIT_JOINT else "tendon"
            number = -1 - pair[1]
            return getattr(self._model, kind)(number).name or f"{kind} {number}", "limit"
        return self._body(pair[0]), self._body(pair[1])

    def _body(self, i: int) -> str:
        return "world" if i == 0 else self._model.body(i).name or f"body {i}"
