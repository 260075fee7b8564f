"""Drift of sustained contacts taken out: positions onto the surfaces, velocities along them.

The smallest displacement, as the inertia measures it, that closes the contacts that are kept,
leaves nothing in anything else, and does not move held contacts sideways; repeated as Newton's
method until the gaps are rounding.
"""

from __future__ import annotations

import numpy as np

from holdfast import lcp
from holdfast.errors import InfeasibleError, SolveError
from holdfast.mujoco.events._listing import Listing
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
    for _ in range(ROUNDS):
        drift = np.where(listed.target == 0.0, listed.error, 0.0)
        off = np.where(keep, np.abs(listed.gap), -listed.gap)
        worst = max(off.max(initial=0.0), np.abs(drift).max(initial=0.0))
        if worst <= ON * touch:
            break
        dq = _displacement(probe, listed, keep, held, drift, NEAR * touch + 10.0 * worst)
        if dq is None:
            break
        state = state._replace(qpos=probe.move(state.qpos, dq))
        after = probe.list(state)
        where = listed.match(after)
        keep, held = _moved(keep, where, len(after)), _moved(held, where, len(after))
        listed = after
    return state, listed, keep, held


def _displacement(
    probe: Probe, listed: Listing, keep: np.ndarray, held: np.ndarray, drift: np.ndarray,
    near: float,
) -> np.ndarray | None:  # fmt: skip
    M = probe.inertia()
    sideways = listed.rows[listed.friction_rows(np.flatnonzero(held))]
    nothing = np.zeros_like(keep)
    for kept, tangents in ((keep, sideways), (keep, sideways[:0]), (nothing, sideways[:0])):
        G = np.vstack([listed.J, listed.N[kept], tangents])
        c_G = np.concatenate([-drift, -listed.gap[kept], np.zeros(len(tangents))])
        others = ~kept & (listed.gap < near)
        try:
            return solve(M, np.zeros(M.shape[0]), G, c_G, listed.N[others], -listed.gap[others])
        except InfeasibleError:  # kept contacts contradict each other: close fewer
            continue
    return None


def velocity(
    M: np.ndarray, v: np.ndarray, listed: Listing, keep: np.ndarray, held: np.ndarray
) -> np.ndarray:
    """The velocity nearest to v that keeps contacts closed, and held ones in place."""
    rows = listed.friction_rows(np.flatnonzero(held))
    G = np.vstack([listed.J, listed.N[keep], listed.rows[rows]])
    if len(G) == 0:
        return v
    target = np.where(listed.target == 0.0, 0.0, listed.J @ v)
    c_G = np.concatenate([target, np.zeros(len(G) - len(target))])
    none = np.zeros((0, len(v)))
    try:
        return solve(M, v, G, c_G, none, np.zeros(0))
    except SolveError:  # rows too nearly dependent to certify: the drift stays, and is small
        return v


def solve(
    M: np.ndarray, x0: np.ndarray, G: np.ndarray, c_G: np.ndarray, A: np.ndarray, c_A: np.ndarray
) -> np.ndarray:
    """The motion nearest to x0 with ``G x = c_G``, as far as independent, and ``A x >= c_A``."""
    kept = lcp.find_indices(M, G).J_rows if len(G) else np.zeros(0, dtype=np.int64)
    answer = lcp.solve_factored(
        np.vstack([G[kept], A]),
        M,
        x0,
        -np.concatenate([c_G[kept], c_A]),
        lo=np.concatenate([np.full(len(kept), -np.inf), np.zeros(len(A))]),
    )
    return np.array(answer.motion)


def _moved(mask: np.ndarray, where: np.ndarray, count: int) -> np.ndarray:
    there = where[mask]
    moved = np.zeros(count, dtype=bool)
    moved[there[there >= 0]] = True
    return moved
