"""Drift of sustained contacts taken out: positions onto the surfaces, velocities along them.

The smallest displacement, as the inertia measures it, that closes the contacts that are kept,
leaves nothing in anything else, and does not move held contacts sideways; repeated as Newton's
method until the gaps are rounding.
"""

from __future__ import annotations

import numpy as np

from holdfast.errors import InfeasibleError, SolveError
from holdfast.mujoco.events._listing import Listing
from holdfast.mujoco.events._nearest import projected
from holdfast.mujoco.events._probe import Probe, State

ON = 1e-2  # part of the touching distance within which a gap is zero
ROUNDS = 12
NEAR = 1e3  # touching distances, or ten times the correction, within which others are watched


def position(
    probe: Probe,
    state: State,
    listed: Listing,
    keep: np.ndarray,
    held: np.ndarray,
    touch: float,
) -> tuple[State, Listing, np.ndarray, np.ndarray]:
    """The state with its kept contacts closed; its listing, and both masks there.

    Args:
        probe: where states are tried.
        state: to correct.
        listed: contacts there.
        keep: (n,) contacts whose gap shall be zero.
        held: (n,) contacts that shall not move sideways.
        touch: gaps below are closed [m].
    """
    M = None
    for _ in range(ROUNDS):
        drift = listed.drift
        off = np.where(keep, np.abs(listed.gap), -listed.gap)
        worst = max(off.max(initial=0.0), np.abs(drift).max(initial=0.0))
        if worst <= ON * touch:
            break
        if M is None:  # changes little from round to round
            probe.look(state)
            M = probe.inertia()
        dq = _displacement(M, listed, keep, held, drift, NEAR * touch + 10.0 * worst)
        if dq is None:
            break
        state = state._replace(qpos=probe.move(state.qpos, dq))
        after = probe.list(state)
        keep, held = listed.moved(keep, after), listed.moved(held, after)
        listed = after
    return state, listed, keep, held


def _displacement(
    M: np.ndarray, listed: Listing, keep: np.ndarray, held: np.ndarray, drift: np.ndarray,
    near: float,
) -> np.ndarray | None:  # fmt: skip
    sideways = listed.rows[listed.friction_rows(np.flatnonzero(held))]
    nothing = np.zeros_like(keep)
    for kept, tangents in ((keep, sideways), (keep, sideways[:0]), (nothing, sideways[:0])):
        G = np.concatenate([listed.J, listed.N[kept], tangents])
        c_G = np.concatenate([-drift, -listed.gap[kept], np.zeros(len(tangents))])
        others = ~kept & (listed.gap < near)
        try:
            return projected(M, np.zeros(M.shape[0]), G, c_G, listed.N[others], -listed.gap[others])
        except InfeasibleError:  # kept contacts contradict each other: close fewer
            continue
    return None


def velocity(
    M: np.ndarray, v: np.ndarray, listed: Listing, keep: np.ndarray, held: np.ndarray
) -> np.ndarray:
    """The velocity nearest to v that keeps contacts closed, and held ones in place."""
    sideways = listed.rows[listed.friction_rows(np.flatnonzero(held))]
    G = np.concatenate([listed.J, listed.N[keep], sideways])
    if len(G) == 0:
        return v
    c_G = np.zeros(len(G))
    c_G[: listed.ne] = np.where(listed.target == 0.0, 0.0, listed.J @ v)
    try:
        return projected(M, v, G, c_G, G[:0], c_G[:0])
    except SolveError:  # rows too nearly dependent to certify: the drift stays, and is small
        return v
