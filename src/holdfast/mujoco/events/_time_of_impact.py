"""When contacts close: conservative advancement on signed distances.

Along the direction of the shortest distance, no point of two bodies can approach faster than their
centres do plus spin times radius. So nothing happens before ``gap / bound``: advance by that, ask
again. Close to an impact the gap is a smooth function of time with a known rate ``N v``, and
Newton's method, kept between a time before and a time behind, ends it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from holdfast.errors import HoldfastError
from holdfast.mujoco.events._flow import Flow
from holdfast.mujoco.events._listing import Listing
from holdfast.mujoco.events._probe import Probe, State

NEAR = 1e-2  # part of the mean size below which a gap closes with its own rate
LANDED = 1e-1  # part of the touching distance at which an impact is found
ROUNDS = 200
BISECTIONS = 60
RESERVE = 1.1  # on speeds, for accelerations that change within the step


Speeds = tuple[np.ndarray, np.ndarray]  # velocity of the centre of each geom, and its spin


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
        if len(listed) == 0:
            return np.zeros(0)
        slow = np.full(len(listed), self.base)
        some = np.flatnonzero(listed.geoms[:, 0] >= 0)
        if some.size:
            S, T = listed.tangents(some)
            along = np.hypot(S @ v, T @ v)
            r = np.where(self.radius > 0.0, self.radius, np.inf)[listed.geoms[some]].min(axis=1)
            slow[some] += np.sqrt(2.0 * self.touch / r) * along
        return slow


class Arrival(NamedTuple):
    """Where a motion was followed to, and whether a contact closed there."""

    s: float
    state: State
    listed: Listing
    hit: bool


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
        end = self._look(h)
        if not self._mask(self.listed).any() and not self._mask(end.listed).any():
            return end
        here = Arrival(0.0, self.flow.at(0.0), self.listed, False)
        bounds = self._speeds(here.state), self._speeds(end.state)
        for _ in range(ROUNDS):
            s = here.s + min(self._wait(here, *bounds), self._newton(here))
            there = end if s >= h else self._look(s)
            if self._deep(there):
                return self._bracket(here, there)
            if there.s >= h:
                return there
            if self._landed(there):
                return there._replace(hit=True)
            here = there
        raise HoldfastError(
            f"no end to the advance towards a contact at {here.state.time:.9g} s after {ROUNDS} "
            f"rounds; smallest gap {self._smallest(here):.3g} m"
        )

    def _newton(self, here: Arrival) -> float:
        """How long until the first of the near contacts closes, at its present rate."""
        gap, speed = self._free(here)
        soon = (gap <= self._near) & (speed < 0.0) & (gap > LANDED * self.touch)
        return float((gap[soon] / -speed[soon]).min(initial=np.inf))

    @property
    def _near(self) -> float:
        return NEAR * self.probe.model.stat.meansize

    def _look(self, s: float) -> Arrival:
        state = self.flow.at(s)
        return Arrival(s, state, self.probe.list(state), False)

    def _free(self, at: Arrival) -> tuple[np.ndarray, np.ndarray]:
        """Gaps and rates of the contacts that are not sustained."""
        free = self._mask(at.listed)
        return at.listed.gap[free], at.listed.N[free] @ at.state.qvel

    def _mask(self, listed: Listing) -> np.ndarray:
        free = np.ones(len(listed), dtype=bool)
        if listed is self.listed:
            return free & ~self.exempt
        if self.exempt.any():
            there = self.listed.match(listed)[self.exempt]
            free[there[there >= 0]] = False
        return free

    def _deep(self, at: Arrival) -> bool:
        """Whether a free contact is in deeper than what counts as touching."""
        gap, _ = self._free(at)
        return bool((gap < -LANDED * self.touch).any())

    def _landed(self, at: Arrival) -> bool:
        """Whether a free contact has closed and approaches: an impact."""
        gap, speed = self._free(at)
        slow = self.slow(at.listed, at.state.qvel)[self._mask(at.listed)]
        return bool(((gap <= LANDED * self.touch) & (speed < -slow)).any())

    def _bracket(self, here: Arrival, end: Arrival) -> Arrival:
        """Where the smallest gap is zero, between here (apart) and the end (in)."""
        low, before, high, best = here.s, self._smallest(here), end.s, end
        behind = self._smallest(end)
        on = LANDED * self.touch
        for k in range(BISECTIONS):
            part = before / (before - behind) if before > on and k % 3 < 2 else 0.5
            there = self._look(low + min(max(part, 1e-9), 1.0 - 1e-9) * (high - low))
            value = self._smallest(there)
            if abs(value) <= on:
                return there._replace(hit=True)
            if value < 0.0:
                high, behind, best = there.s, value, there
            else:
                low, before = there.s, value
        return best._replace(hit=True)

    def _smallest(self, at: Arrival) -> float:
        return float(self._free(at)[0].min(initial=np.inf))

    def _speeds(self, state: State) -> Speeds:
        return self.probe.geom_speeds(state)

    def _wait(self, here: Arrival, first: Speeds, last: Speeds) -> float:
        """How long nothing that is still far can close, by the velocities at both ends."""
        listed = here.listed
        far = self._mask(listed) & (listed.gap > self._near) & (listed.geoms[:, 0] >= 0)
        if not far.any():
            return np.inf
        (a, b), n, size = listed.geoms[far].T, listed.normal[far], self.probe.radius
        early, late = (
            np.einsum("ij,ij->i", n, v[a] - v[b])
            + np.linalg.norm(w[a], axis=1) * size[a]
            + np.linalg.norm(w[b], axis=1) * size[b]
            for v, w in (first, last)
        )
        bound = RESERVE * (np.maximum(early, late) + np.abs(late - early))
        closing = bound > 0.0
        return float((listed.gap[far][closing] / bound[closing]).min(initial=np.inf))
