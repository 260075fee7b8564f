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

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from holdfast._jit import entry
from holdfast.events.contact_set import Listing
from holdfast.events.nearest_motion import Solve, nearest
from holdfast.events.state import Probe, Smooth, State
from holdfast.linalg.vectors import add, dot

NUDGE = 1e-5  # displacement of the difference quotients [m over the mean size, rad]
JUMP = 10.0  # ratio of the difference quotients of both sides beyond which a feature changes
MOVING = 1e-12  # part of the speeds in a row of dry friction below which it rests


class Grip(NamedTuple):
    """Which contacts of a listing are sustained, and how."""

    sustained: np.ndarray  # (k,) numbers in the listing; -1 for one that is not there
    held: np.ndarray  # (k,) whether the friction rows are equalities
    mu_v: np.ndarray  # (k,) viscous coefficients [N s/m]
    limited: np.ndarray  # (k,) whether they slide when friction does not suffice: Coulomb's law

    def moved(self, where: np.ndarray) -> Grip:
        """The same contacts in another listing; `where` says where each is, -1 nowhere."""
        return self._replace(sustained=where[self.sustained])


class Push(NamedTuple):
    """Acceleration, and the forces that sustained contacts and other rows give."""

    a: np.ndarray
    normal: np.ndarray  # (k,) of the sustained contacts [N]
    force: np.ndarray  # (nefc,) along all rows


def accelerate(
    probe: Probe, state: State, listed: Listing, smooth: Smooth, grip: Grip, solve: Solve = nearest
) -> Push:
    """Solve for the acceleration at a state, whose smooth forces were asked for last."""
    M, f, _ = smooth
    v, some, ne, nf = state.qvel, grip.sustained, listed.ne, listed.nf
    force, normal = np.zeros(len(listed.rows)), np.zeros(len(some))
    if some.size == 0 and ne == 0 and nf == 0:
        return Push(probe.accelerate(f), normal, force)
    most = ne + nf + len(listed.rows)
    which, values = np.empty(most, dtype=np.int64), np.empty((most, len(v)))
    b, lo, hi = np.zeros(most), np.empty(most), np.empty(most)
    g, k, n = put_rows(
        listed.rows, listed.first, listed.dim, listed.loss, v, some, grip.held, grip.mu_v, ne,
        which, values, lo, hi, f, force,
    )  # fmt: skip
    x0 = probe.accelerate(f)
    if n == 0:
        return Push(x0, normal, force)
    b[: g + k] = _rates(probe, state, listed, grip, values[: g + k])
    if listed.target.any():
        b[:ne] -= _drive(listed, v)
    answer = solve(M, x0, values[:n], b[:n], lo[:n], hi[:n])
    force[which[:n]] = answer.z
    normal[some >= 0] = answer.z[g : g + k]
    return Push(answer.motion, normal, force)


def drag(listed: Listing, grip: Grip) -> np.ndarray:
    """``S' mu S + T' mu T`` of the viscous contacts."""
    slides = grip.mu_v > 0.0
    mu = grip.mu_v[slides, None]
    S, T = listed.tangents(grip.sustained[slides])
    return S.T @ (mu * S) + T.T @ (mu * T)


def _rates(
    probe: Probe, state: State, listed: Listing, grip: Grip, values: np.ndarray
) -> np.ndarray:
    """Rates of the rows times v: by central differences of ``row(q) v``."""
    v, rates = state.qvel, np.zeros(len(values))
    fastest = float(np.abs(v).max())
    if fastest == 0.0:
        return rates
    span = NUDGE * min(1.0, listed.size) / fastest
    speeds = np.empty((2, len(values)))
    found = np.empty((2, len(values)), dtype=bool)
    for side, shift in enumerate((span, -span)):
        near = probe.list(state._replace(qpos=probe.move(state.qpos, v, shift)))
        there = listed.match(near)
        row_speeds(near.rows, near.first, listed.dim, v, grip.sustained, grip.held, there,
                   speeds[side], found[side], listed.ne)  # fmt: skip
    difference_quotients(values @ v, speeds, found, rates, span, fastest)
    return rates


def _drive(listed: Listing, v: np.ndarray) -> np.ndarray:
    """Acceleration that carries bodies to the mocap bodies they are tied to: critically damped."""
    driven = listed.target != 0.0
    rate = np.where(driven, -listed.target / np.where(driven, listed.error, 1.0), 0.0)
    return np.where(driven, -rate * rate * listed.error - 2.0 * rate * (listed.J @ v), 0.0)


@entry
def put_rows(
    rows: np.ndarray,
    first: np.ndarray,
    dim: np.ndarray,
    loss: np.ndarray,
    v: np.ndarray,
    sustained: np.ndarray,
    held: np.ndarray,
    mu_v: np.ndarray,
    ne: int,
    which_out: np.ndarray,
    values_out: np.ndarray,
    lo_out: np.ndarray,
    hi_out: np.ndarray,
    f_inout: np.ndarray,
    force_out: np.ndarray,
) -> tuple[int, int, int]:
    """Fill in rows, their numbers and bounds; add drag and dry friction that moves to the force.

    Returns:
        How many rows are equalities, how many are normals, and how many rows there are with those
        of dry friction that rests.
    """
    n = 0
    for r in range(ne):
        which_out[n] = r
        n += 1
    for k in range(sustained.shape[0]):
        if held[k] and sustained[k] >= 0:
            for e in range(1, dim[sustained[k]]):
                which_out[n] = first[sustained[k]] + e
                n += 1
    g = n
    for r in range(g):
        lo_out[r], hi_out[r] = -np.inf, np.inf
    for k in range(sustained.shape[0]):
        if sustained[k] >= 0:
            which_out[n] = first[sustained[k]]
            lo_out[n], hi_out[n] = 0.0, np.inf
            n += 1
    normals = n - g
    for k in range(sustained.shape[0]):
        if sustained[k] >= 0 and mu_v[k] > 0.0 and dim[sustained[k]] >= 3:
            for row in range(first[sustained[k]] + 1, first[sustained[k]] + 3):
                force_out[row] = -mu_v[k] * dot(rows[row], v)
                add(force_out[row], rows[row], f_inout)
    for r in range(loss.shape[0]):
        row = rows[ne + r]
        speed, size = dot(row, v), 0.0
        for j in range(v.shape[0]):
            size += abs(row[j] * v[j])
        if abs(speed) > MOVING * size:
            force_out[ne + r] = -loss[r] if speed > 0.0 else loss[r]
            add(force_out[ne + r], row, f_inout)
        else:
            which_out[n] = ne + r
            lo_out[n], hi_out[n] = -loss[r], loss[r]
            n += 1
    for r in range(n):
        for j in range(v.shape[0]):
            values_out[r, j] = rows[which_out[r], j]
    return g, normals, n


@entry
def row_speeds(
    rows: np.ndarray,
    first: np.ndarray,
    dim: np.ndarray,
    v: np.ndarray,
    sustained: np.ndarray,
    held: np.ndarray,
    there: np.ndarray,
    speeds_out: np.ndarray,
    found_out: np.ndarray,
    ne: int,
) -> None:
    """Fill in the speeds of the rows of `put_rows` in a listing nearby, and which are there.

    Args:
        there: where each contact of the first listing is in this one, or -1.
    """
    n = 0
    for r in range(ne):
        speeds_out[n], found_out[n] = dot(rows[r], v), True
        n += 1
    for normals in range(2):
        for k in range(sustained.shape[0]):
            i = sustained[k]
            if i < 0 or (normals == 0 and not held[k]):
                continue
            start, stop = (0, 1) if normals == 1 else (1, dim[i])
            for e in range(start, stop):
                found_out[n] = there[i] >= 0
                speeds_out[n] = dot(rows[first[there[i]] + e], v) if there[i] >= 0 else 0.0
                n += 1


@entry
def difference_quotients(
    here: np.ndarray,
    speeds: np.ndarray,
    found: np.ndarray,
    rates_out: np.ndarray,
    span: float,
    fastest: float,
) -> None:
    """Fill in rates from speeds in front (speeds[0]) and at the back (speeds[1]).

    Where the nearest feature changes within the difference, the normal jumps on one side; and
    where a contact ends there, it is missing. Then the other side serves alone.
    """
    for i in range(here.shape[0]):
        forward, backward = (speeds[0, i] - here[i]) / span, (here[i] - speeds[1, i]) / span
        if found[0, i] and found[1, i]:
            small, large = min(abs(forward), abs(backward)), max(abs(forward), abs(backward))
            if large > JUMP * small + span * fastest:
                rates_out[i] = forward if abs(forward) < abs(backward) else backward
            else:
                rates_out[i] = 0.5 * (forward + backward)
        elif found[0, i]:
            rates_out[i] = forward
        else:
            rates_out[i] = backward if found[1, i] else 0.0
