"""Drift of sustained contacts taken out: positions onto the surfaces, velocities along them.

The smallest displacement, as the inertia measures it, that closes the contacts that are kept,
leaves nothing in anything else, and does not move held contacts sideways; repeated as Newton's
method until the gaps are rounding. Where a face lands on another, MuJoCo may list one point of it
at a time: points that were listed in an earlier round must stay outside, too.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from holdfast._jit import entry
from holdfast.errors import InfeasibleError, SolveError
from holdfast.events.contact_set import Listing
from holdfast.events.nearest_motion import nearest
from holdfast.events.state import Probe, State

ON = 1e-2  # part of the touching distance within which a gap is zero
ROUNDS = 12
NEAR = 1e3  # touching distances, or ten times the correction, within which others are watched
OTHER = 0.1  # part of a correction by which a gap may miss its prediction; else it is another point


class Points(NamedTuple):
    """Points that were close before, and are no longer listed: MuJoCo shows some at a time.

    Attributes:
        rows: (k, nv) along which their gaps change.
        gap: (k,) that are left by the displacements since.
    """

    rows: np.ndarray
    gap: np.ndarray

    @classmethod
    def none(cls, nv: int) -> Points:
        """No points."""
        return cls(np.empty((0, nv)), np.empty(0))

    def moved(
        self, dq: np.ndarray, listed: Listing, after: Listing, where: np.ndarray, worst: float
    ) -> Points:
        """Those after a displacement, with points of the listing before it that have gone.

        A gap that is not what its row has predicted belongs to another point of the same bodies.
        """
        predicted = listed.gap + listed.N @ dq
        seen = np.append(after.gap, np.inf)[where]
        gone = (listed.gap <= 10.0 * worst) & ~(np.abs(seen - predicted) <= OTHER * worst)
        return Points(
            np.concatenate([self.rows, listed.N[gone]]),
            np.concatenate([self.gap + self.rows @ dq, predicted[gone]]),
        )


def position(
    probe: Probe,
    state: State,
    listed: Listing,
    keep: np.ndarray,
    held: np.ndarray,
    touch: float,
    farthest: float = np.inf,
) -> tuple[State, Listing, np.ndarray, np.ndarray]:
    """The state with its kept contacts closed; its listing, and both masks there.

    Args:
        probe: where states are tried.
        state: to correct.
        listed: contacts there.
        keep: (n,) contacts whose gap shall be zero.
        held: (n,) contacts that shall not move sideways.
        touch: gaps below are closed [m].
        farthest: no coordinate is moved by more [m, rad]; what would be stays as it is.
    """
    M, left, given = None, farthest, (state, listed, keep, held)
    before = Points.none(len(state.qvel))
    for _ in range(ROUNDS):
        drift = listed.drift
        off = np.where(keep, np.abs(listed.gap), -listed.gap)
        worst = max(off.max(initial=0.0), np.abs(drift).max(initial=0.0))
        if worst <= ON * touch:
            break
        if M is None:  # changes little from round to round
            probe.look(state)
            M = probe.inertia()
        near = NEAR * touch + 10.0 * worst
        dq = _displacement(M, listed, keep, held, drift, near, before)
        if dq is None or not np.abs(dq).max(initial=0.0) <= left:
            break
        left -= float(np.abs(dq).max(initial=0.0))
        state = state._replace(qpos=probe.move(state.qpos, dq))
        after = probe.list(state)
        where = listed.match(after)
        before = before.moved(dq, listed, after, where, worst)
        same = np.append(after.gap <= near, False)[where]  # else another point of the same bodies
        keep, held = (_there(each & same, where, len(after)) for each in (keep, held))
        listed = after
    if -listed.gap.min(initial=0.0) > max(touch, -given[1].gap.min(initial=0.0)):
        return given  # Newton's method has led into something: drift stays, and is taken out later
    return state, listed, keep, held


def _there(mask: np.ndarray, where: np.ndarray, count: int) -> np.ndarray:
    """The chosen contacts in another listing."""
    there = where[mask]
    moved = np.zeros(count, dtype=bool)
    moved[there[there >= 0]] = True
    return moved


def _displacement(
    M: np.ndarray, listed: Listing, keep: np.ndarray, held: np.ndarray, drift: np.ndarray,
    near: float, before: Points,
) -> np.ndarray | None:  # fmt: skip
    x, nothing = np.zeros(M.shape[0]), np.zeros_like(keep)
    for kept, still in ((keep, held), (keep, nothing), (nothing, nothing)):
        try:
            return _projected(M, x, listed, kept, still, drift, listed.gap, near, before)
        except InfeasibleError:  # kept contacts contradict each other: close fewer
            continue
    return None


def velocity(
    M: np.ndarray, v: np.ndarray, listed: Listing, keep: np.ndarray, held: np.ndarray
) -> np.ndarray:
    """The velocity nearest to v that keeps contacts closed, and held ones in place."""
    driven = np.where(listed.target == 0.0, 0.0, -(listed.J @ v))
    try:
        return _projected(M, v, listed, keep, held, driven, np.zeros(len(listed)), 0.0,
                          Points.none(len(v)))  # fmt: skip
    except SolveError:  # rows too nearly dependent to certify: the drift stays, and is small
        return v


def _projected(
    M: np.ndarray, x: np.ndarray, listed: Listing, keep: np.ndarray, held: np.ndarray,
    drift: np.ndarray, gap: np.ndarray, near: float, before: Points,
) -> np.ndarray:  # fmt: skip
    """The motion nearest to x that takes out drift and gaps, see `put_rows`."""
    most = len(listed.rows) + len(before.gap)
    values, b, lo, hi = np.empty((most, len(x))), np.empty(most), np.empty(most), np.empty(most)
    n = put_rows(listed.rows, listed.first, listed.dim, gap, drift, keep, held, values, b, lo, hi,
                 near)  # fmt: skip
    end = n + len(before.gap)
    values[n:end], b[n:end], lo[n:end], hi[n:end] = before.rows, before.gap, 0.0, np.inf
    return nearest(M, x, values[:end], b[:end], lo[:end], hi[:end]).motion if end else x


@entry
def put_rows(
    rows: np.ndarray,
    first: np.ndarray,
    dim: np.ndarray,
    gap: np.ndarray,
    drift: np.ndarray,
    keep: np.ndarray,
    held: np.ndarray,
    values_out: np.ndarray,
    b_out: np.ndarray,
    lo_out: np.ndarray,
    hi_out: np.ndarray,
    near: float,
) -> int:
    """Fill in rows with ``row x + b = 0``, or ``>= 0`` for other gaps below `near`; how many.

    Equalities lose their drift, kept contacts their gap; those that are held do not move sideways.
    """
    n, ne, m = 0, drift.shape[0], rows.shape[1]
    for part in range(4):  # equalities, normals, tangents, others
        for i in range(ne if part == 0 else first.shape[0]):
            start, stop = i, i + 1
            if part > 0:
                start, stop = first[i], first[i] + 1
            if part == 2:
                start, stop = first[i] + 1, first[i] + dim[i]
            if (part == 1 and not keep[i]) or (part == 2 and not held[i]):
                continue
            if part == 3 and (keep[i] or gap[i] >= near):
                continue
            for row in range(start, stop):
                for j in range(m):
                    values_out[n, j] = rows[row, j]
                b_out[n] = drift[i] if part == 0 else 0.0 if part == 2 else gap[i]
                lo_out[n], hi_out[n] = 0.0 if part == 3 else -np.inf, np.inf
                n += 1
    return n
