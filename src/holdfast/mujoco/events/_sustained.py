r"""Sustained contact at acceleration level, with the rate and curvature terms.

.. math::

    M a = f - C v + N^T f_n + G^T f_G, \quad G a = -\dot G v, \quad
    0 \le f_n \perp N a + \dot N v \ge 0

N are the normals of all sustained contacts, C is the drag of the viscous ones, and G are the
equality rows and the friction rows of the contacts that are held. ``Ndot v`` is the derivative of
``N(q) v`` along the motion with v kept: it holds both ``n . (Jdot_1 - Jdot_2) v`` and the curvature
term ``ndot . (v_1 - v_2)``, whatever the two surfaces are, because the contact itself is found anew
a little before and a little behind. Its error is about 1e-10 of v^2 over the size of the bodies.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from holdfast import lcp
from holdfast.mujoco.events._listing import Listing
from holdfast.mujoco.events._probe import Probe, Smooth, State

NUDGE = 1e-5  # displacement of the difference quotients [m over the mean size, rad]
JUMP = 10.0  # ratio of the difference quotients of both sides beyond which a feature changes
MOVING = 1e-12  # part of the speeds in a row of dry friction below which it rests


class Grip(NamedTuple):
    """Which contacts of a listing are sustained, and how."""

    sustained: np.ndarray  # (k,) numbers in the listing
    held: np.ndarray  # (k,) whether the friction rows are equalities
    mu_v: np.ndarray  # (k,) viscous coefficients [N s/m]

    def moved(self, where: np.ndarray) -> Grip:
        """The same contacts in another listing; `where` says where each is, -1 nowhere."""
        there = where[self.sustained]
        kept = there >= 0
        return Grip(there[kept], self.held[kept], self.mu_v[kept])


NO_GRIP = Grip(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=bool), np.zeros(0))


class Answer(NamedTuple):
    """Acceleration, and what the sustained contacts do."""

    a: np.ndarray
    normal: np.ndarray  # (k,) forces [N]
    separation: np.ndarray  # (k,) N a + Ndot v


def accelerate(probe: Probe, state: State, listed: Listing, smooth: Smooth, grip: Grip) -> Answer:
    """Solve for the acceleration at a state."""
    M, f, _ = smooth
    v, some = state.qvel, grip.sustained
    nothing = np.zeros(0)
    if len(v) == 0:
        return Answer(nothing, nothing, nothing)
    if some.size == 0 and not listed.equality.size and not listed.dry.size:
        return Answer(np.linalg.solve(M, f), nothing, nothing)
    G = np.concatenate([listed.equality, listed.friction_rows(some[grip.held])])
    normals = listed.first[some]
    rate = _rates(probe, state, listed, grip, len(G))
    f = f - drag(listed, grip) @ v
    target = -rate[: len(G)]
    j = len(listed.equality)
    target[:j] += _drive(probe, listed, v)
    dry, bound, D = _dry(listed, v)
    f = f + listed.rows[listed.dry].T @ dry
    rows = listed.rows[G]
    kept = lcp.find_indices(M, rows).J_rows if len(G) else np.zeros(0, dtype=np.int64)
    A = np.vstack([rows[kept], listed.rows[normals], listed.rows[listed.dry[D]]])
    b = np.concatenate([-target[kept], rate[len(G) :], np.zeros(D.sum())])
    free = np.full(len(kept), np.inf)
    answer = lcp.solve_factored(
        A,
        M,
        np.linalg.solve(M, f),
        b,
        lo=np.concatenate([-free, np.zeros(len(some)), -bound]),
        hi=np.concatenate([free, np.full(len(some), np.inf), bound]),
    )
    mine = slice(len(kept), len(kept) + len(some))
    return Answer(np.array(answer.motion), answer.z[mine], answer.w[mine])


def drag(listed: Listing, grip: Grip) -> np.ndarray:
    """``S' mu S + T' mu T`` of the viscous contacts."""
    slides = grip.mu_v > 0.0
    if not slides.any():
        return np.zeros((listed.rows.shape[1],) * 2)
    mu = grip.mu_v[slides, None]
    S, T = listed.tangents(grip.sustained[slides])
    return S.T @ (mu * S) + T.T @ (mu * T)


def _rates(probe: Probe, state: State, listed: Listing, grip: Grip, count: int) -> np.ndarray:
    """Rates of the rows G, then of the normals, times v: by central differences of ``row(q) v``."""
    none = np.zeros(count + len(grip.sustained))
    fastest = np.abs(state.qvel).max(initial=0.0)
    if none.size == 0 or fastest == 0.0:
        return none
    span = NUDGE * min(1.0, probe.model.stat.meansize) / fastest
    here, _ = _speeds(listed, listed, grip, state.qvel)
    sides = []
    for side in (span, -span):
        near = probe.list(state._replace(qpos=probe.move(state.qpos, state.qvel, side)))
        speeds, found = _speeds(listed, near, grip, state.qvel)
        sides.append((np.where(found, speeds, here), found))
    probe.list(state)
    (ahead, in_front), (behind, at_back) = sides
    forward, backward = (ahead - here) / span, (here - behind) / span
    both, one = 0.5 * (forward + backward), np.where(in_front, forward, backward)
    # Where the nearest feature changes within the difference the normal jumps on one side; and
    # where a contact ends there, it is missing. Then the other side serves alone.
    small = np.where(np.abs(forward) < np.abs(backward), forward, backward)
    jumps = np.maximum(np.abs(forward), np.abs(backward)) > JUMP * np.abs(small) + span * fastest
    return np.where(in_front & at_back, np.where(jumps, small, both), one)


def _speeds(
    listed: Listing, near: Listing, grip: Grip, v: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Speeds of the rows G and of the normals as they are nearby, and whether they are there."""
    where = np.arange(len(listed)) if near is listed else listed.match(near)
    there = where[grip.sustained]
    found = there >= 0
    at = np.where(found, there, 0)
    j = len(listed.equality)
    count = np.maximum(listed.dim[grip.sustained[grip.held]] - 1, 0)
    first = np.repeat(near.first[at[grip.held]], count) if len(near) else np.zeros(0, dtype=int)
    offset = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    present = np.concatenate([np.ones(j, dtype=bool), np.repeat(found[grip.held], count), found])
    if len(near) == 0:
        rows = np.concatenate([near.equality, np.zeros(len(present) - j, dtype=np.int64)])
    else:
        rows = np.concatenate([near.equality, first + 1 + offset, near.first[at]])
    if len(near.rows) == 0:
        return np.zeros(len(present)), present
    return (near.rows @ v)[rows], present


def _drive(probe: Probe, listed: Listing, v: np.ndarray) -> np.ndarray:
    """Acceleration that carries bodies to the mocap bodies they are tied to: critically damped."""
    driven = listed.target != 0.0
    if not driven.any():
        return np.zeros(len(listed.equality))
    rate = np.where(driven, -listed.target / np.where(driven, listed.error, 1.0), 0.0)
    return np.where(driven, -rate * rate * listed.error - 2.0 * rate * (listed.J @ v), 0.0)


def _dry(listed: Listing, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Dry friction: forces of rows that move, bounds of those that rest, and which rest."""
    D = listed.rows[listed.dry]
    speed = D @ v
    moving = np.abs(speed) > MOVING * (np.abs(D) @ np.abs(v))
    return np.where(moving, -np.sign(speed) * listed.loss, 0.0), listed.loss[~moving], ~moving
