"""When contacts close: conservative advancement on signed distances.

Along the direction of the shortest distance, no point of two bodies can approach faster than their
centres do plus spin times radius. So nothing happens before ``gap / bound``: advance by that, ask
again. Close to an impact the gap is a smooth function of time with a known rate ``N v``, and
Newton's method, kept between a time before and a time behind, ends it.

The way is followed along a path that is cheap to evaluate (`Flow.path`); the impact itself is
found on the motion.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from holdfast._jit import entry
from holdfast.errors import HoldfastError
from holdfast.events.contact_set import Listing
from holdfast.events.integrators import Flow, Path
from holdfast.events.state import Probe, State

NEAR = 1e-2  # part of the mean size below which a gap closes with its own rate
LANDED = 1e-1  # part of the touching distance at which an impact is found
ROUNDS = 200
BISECTIONS = 60
POLISH = 6
RESERVE = 1.1  # on speeds, for accelerations that change within the step
PROGRESS = 0.75  # part of a gap that is left when an advance towards it went as expected
Speeds = tuple[np.ndarray, np.ndarray]  # velocity of the centre of each geom, and its spin
TURN = 0.1  # change of a normal [rad] between two ends of a step that look at the same feature


class Lost(HoldfastError):
    """A motion that could not be followed to its end."""


class Arrival(NamedTuple):
    """Where a motion was followed to.

    Attributes:
        s: time since the start [s].
        state, listed: there.
        gap, speed: of the contacts that are not sustained.
        free: which contacts of `listed` those are.
        hit: whether one of them closed there.
    """

    s: float
    state: State
    listed: Listing
    gap: np.ndarray
    speed: np.ndarray
    free: np.ndarray
    hit: bool = False

    @property
    def smallest(self) -> float:
        """Smallest gap."""
        return float(self.gap.min(initial=np.inf))


@dataclass
class Slow:
    """Approach that is no impact: rounding, or a grazing contact that its own curvature ends.

    Two surfaces that slide past each other at speed u with a radius r of curvature approach with
    ``u sqrt(2 gap / r)`` while the gap closes to nothing. Where a sphere rolls from one facet on
    to the next, that is all that there is; taken for an impact it would never end.
    """

    base: float  # [m/s]
    touch: float  # [m]
    radius: np.ndarray  # (ngeom,)

    def __call__(self, listed: Listing, v: np.ndarray) -> np.ndarray:
        """(n,) speeds."""
        slow = np.full(len(listed), self.base)
        some = np.flatnonzero(listed.contact >= 0)
        if some.size:
            S, T = listed.tangents(some)
            r = np.where(self.radius > 0.0, self.radius, np.inf)[listed.geoms[some]].min(axis=1)
            slow[some] += np.sqrt(2.0 * self.touch / r) * np.hypot(S @ v, T @ v)
        return slow


@dataclass
class Search:
    """Follows a flow until a contact closes.

    Attributes:
        probe: where states are tried.
        flow: the motion.
        listed: contacts at its start.
        exempt: (n,) those of them that are sustained.
        touch: gaps below are closed [m].
        slow: approach below is no impact, contact by contact.
    """

    probe: Probe
    flow: Flow
    listed: Listing
    exempt: np.ndarray
    touch: float
    slow: Slow

    def run(self, h: float) -> Arrival:
        """Follow the motion for h seconds, or to the first contact that closes."""
        end = self.look(h)
        start = self._seen(0.0, self.flow.start, self.listed)
        if not start.gap.size and not end.gap.size:
            return end
        speeds = self.probe.geom_speeds(start.state)
        if self._clear(start, end, speeds):
            return end
        path = self.flow.path(h, end.state)
        before, there = self._advance(start, end, path, speeds)
        return there if there is end or path == self.flow.at else self._polished(before, there)

    def look(self, s: float) -> Arrival:
        """Where the motion is after s seconds, whatever is in its way."""
        return self._look(s, self.flow.at)

    def _look(self, s: float, at: Path) -> Arrival:
        state = at(s)
        return self._seen(s, state, self.probe.list(state))

    def _seen(self, s: float, state: State, listed: Listing) -> Arrival:
        free = np.ones(len(listed), dtype=bool)
        if listed is self.listed:
            free[self.exempt] = False
        elif self.exempt.any():
            there = self.listed.match(listed)[self.exempt]
            free[there[there >= 0]] = False
        return Arrival(s, state, listed, listed.gap[free], listed.N[free] @ state.qvel, free)

    def _clear(self, start: Arrival, end: Arrival, speeds: Speeds) -> bool:
        """Whether nothing can have closed on the way, by gaps and rates at both ends."""
        if end.s * np.abs(speeds[1]).max(initial=0.0) > TURN:
            return False  # other features may have come and gone
        a, b = start.listed, end.listed
        where = a.match(b) if len(a) and len(b) else np.full(len(a), -1)
        return apart(
            a.gap, a.N @ start.state.qvel, a.place, start.free,
            b.gap, b.N @ end.state.qvel, b.place, end.free, where, end.s, self._on,
        )  # fmt: skip

    @property
    def _on(self) -> float:
        return LANDED * self.touch

    def _advance(
        self, start: Arrival, end: Arrival, path: Path, speeds: Speeds
    ) -> tuple[Arrival, Arrival]:
        """The last place before something closes, and that where it does; or the end."""
        here, least = start, 0.0
        later = self.probe.geom_speeds(end.state)
        for _ in range(ROUNDS):
            step = max(min(self._wait(here, speeds, later), self._newton(here)), least)
            there = end if here.s + step >= end.s else self._look(here.s + step, path)
            if (there.gap < -self._on).any():
                return here, self._bracket(here, there, path)
            if there is end:
                return here, end
            if self._landed(there):
                return here, there._replace(hit=True)
            # A gap that does not close at its rate, as at the edge of a facet, is not waited for.
            least = 2.0 * step if there.smallest > PROGRESS * here.smallest else 0.0
            here = there
        raise Lost(
            f"no end to the advance towards a contact at {here.state.time:.9g} s after {ROUNDS} "
            f"rounds; smallest gap {here.smallest:.3g} m"
        )

    def _newton(self, here: Arrival) -> float:
        """How long until the first of the near contacts closes, at its present rate."""
        gap, speed = here.gap, here.speed
        soon = (gap <= self._near) & (speed < 0.0) & (gap > self._on)
        return float((gap[soon] / -speed[soon]).min(initial=np.inf))

    @property
    def _near(self) -> float:
        return NEAR * self.listed.size

    def _landed(self, at: Arrival) -> bool:
        """Whether a free contact has closed and approaches: an impact."""
        closed = (at.gap <= self._on) & (at.speed < 0.0)
        if not closed.any():
            return False
        return bool((closed & (at.speed < -self.slow(at.listed, at.state.qvel)[at.free])).any())

    def _bracket(self, here: Arrival, end: Arrival, at: Path) -> Arrival:
        """Where the smallest gap is zero, between here (apart) and the end (in)."""
        low, before, high, behind, best = here.s, here.smallest, end.s, end.smallest, end
        for k in range(BISECTIONS):
            part = before / (before - behind) if before > self._on and k % 3 < 2 else 0.5
            there = self._look(low + min(max(part, 1e-9), 1.0 - 1e-9) * (high - low), at)
            value = there.smallest
            if abs(value) <= self._on:
                return there._replace(hit=True)
            if value < 0.0:
                high, behind, best = there.s, value, there
            else:
                low, before = there.s, value
        return best._replace(hit=True)

    def _polished(self, before: Arrival, there: Arrival) -> Arrival:
        """The impact on the motion itself, near where the path has it."""
        exact, latest = self.look(there.s), 2.0 * there.s - before.s
        for _ in range(POLISH):
            if exact.smallest < -self.touch:
                back = -exact.smallest / max(-exact.speed[exact.gap.argmin()], self.slow.base)
                s = max(exact.s - back, 0.5 * exact.s)
            else:
                coming = (exact.speed < 0.0) & (exact.gap > self._on)
                wait = float((exact.gap[coming] / -exact.speed[coming]).min(initial=np.inf))
                s = exact.s + wait
                if exact.smallest <= self._on or s > latest:
                    return exact._replace(hit=self._landed(exact))
            exact = self.look(s)
        if exact.smallest < -self.touch:
            start = self._seen(0.0, self.flow.start, self.listed)
            return self._bracket(start, exact, self.flow.at)
        return exact._replace(hit=self._landed(exact))

    def _wait(self, here: Arrival, first: Speeds, last: Speeds) -> float:
        """How long nothing that is still far can close, by the velocities at both ends."""
        listed = here.listed
        far = here.free & (listed.gap > self._near) & (listed.contact >= 0)
        if not far.any():
            return np.inf
        (a, b), n, size = listed.geoms[far].T, listed.place[far, 3:], self.probe.radius
        early, late = (
            np.einsum("ij,ij->i", n, v[a] - v[b])
            + np.linalg.norm(w[a], axis=1) * size[a]
            + np.linalg.norm(w[b], axis=1) * size[b]
            for v, w in (first, last)
        )
        bound = RESERVE * (np.maximum(early, late) + np.abs(late - early))
        closing = bound > 0.0
        return float((listed.gap[far][closing] / bound[closing]).min(initial=np.inf))


@entry
def apart(
    gap: np.ndarray,
    speed: np.ndarray,
    place: np.ndarray,
    free: np.ndarray,
    end_gap: np.ndarray,
    end_speed: np.ndarray,
    end_place: np.ndarray,
    end_free: np.ndarray,
    where: np.ndarray,
    h: float,
    on: float,
) -> bool:
    """Whether free contacts stay open over h seconds.

    A gap that bends one way only lies above its chord, or above the tangents at both ends. What is
    listed at one end alone must be leaving there, or be coming without having closed.
    """
    for j in range(end_gap.shape[0]):
        if end_free[j] and end_gap[j] < -on:
            return False
    for i in range(gap.shape[0]):
        j = where[i]
        if not free[i]:
            continue
        if j < 0:
            if speed[i] < 0.0:
                return False
            continue
        turn = 0.0
        for e in range(3, 6):
            turn = max(turn, abs(place[i, e] - end_place[j, e]))
        if turn > TURN:
            return False
        if speed[i] >= 0.0 or end_speed[j] <= 0.0:
            continue  # leaving all the way, or coming all the way
        t = (gap[i] - end_gap[j] + end_speed[j] * h) / (end_speed[j] - speed[i])
        if 0.0 < t < h and gap[i] + speed[i] * t < -on:
            return False
    for j in range(end_gap.shape[0]):
        if end_free[j] and end_speed[j] > 0.0:
            known = False
            for i in range(where.shape[0]):
                known = known or where[i] == j
            if not known:
                return False
    return True
