r"""Primal-dual interior-point method for an island, from nothing.

In the coordinates :math:`z = (\mu r_N, r_T)` and :math:`s = (u_N/\mu + |u_T|, u_T)` the law of a
contact with friction is (De Saxcé)

.. math:: s \in \mathcal L, \quad z \in \mathcal L, \quad s^T z = 0

with the second-order cone :math:`\mathcal L`. Mehrotra's predictor and corrector follow the central
path in Nesterov and Todd's scaling W. A step eliminates s and z: each constraint contributes
:math:`C = W^{-2}` to the Newton matrix. The derivative of :math:`|u_T|` is part of it, which makes
the matrix unsymmetric; without it the method stalls. Normals without friction have a scalar cone,
dry friction a box, other rows are linear.

Friction makes the problem non-monotone. Steps that end close to the boundary of a cone then lead to
where feasibility is lost faster than complementarity is gained; with steps that keep a little more
distance than is usual for convex problems, and that aim at a larger part of the gap where the
predictor is short, that is rare.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from holdfast._jit import inlined, kernel
from holdfast.contact.newton import (
    Island,
    Vectors,
    assemble,
    combine,
    fill,
    rebuild,
    relative_speeds,
)
from holdfast.contact.system import DISC, HELD, LINEAR, System, add_impulse, speeds
from holdfast.linalg import block_lu
from holdfast.linalg.vectors import square

SOC, SCALAR, BOX, PLAIN = range(4)  # kinds of cones
TINY = 1e-14  # pivots of the Newton matrix, whose diagonal is at least about one
MOST = 6  # rows of a constraint
KEEP = 0.95  # part of the way to the boundary that a step may take
STALLED = 15  # iterations without progress after which there will be none
HARDLY = 0.95  # factor of the residual that counts as progress
LATE = 1e-5  # residual from which on steps that gain less than this are too short to be worth it
GAIN = 0.6
SMALLEST = 1e-300  # determinant of a vector on the boundary of its cone


class Interior(NamedTuple):
    """Work arrays by row, and by constraint."""

    z: np.ndarray  # impulses in the coordinates of the cone
    s: np.ndarray  # speeds in them; of a box the multiplier of its lower side
    w: np.ndarray  # scaling point; of a box the multiplier of its upper side
    dz: np.ndarray
    ds: np.ndarray
    p: np.ndarray  # primal residual
    t: np.ndarray  # right-hand side of complementarity
    eta: np.ndarray  # (n,) size of the scaling
    small: np.ndarray  # (4, MOST)


@inlined
def kind_of(sy: System, i: int) -> int:
    """Return the cone of a constraint."""
    if sy.normal[i] == 1:
        return SOC if sy.tangent[i] == DISC else SCALAR
    return BOX if sy.tangent[i] == DISC else PLAIN


@inlined
def apply_scaling(w: np.ndarray, first: int, dim: int, eta: float, sign: float, x: np.ndarray,
                  x_at: int, out: np.ndarray, out_at: int) -> None:  # fmt: skip
    """Fill dim entries of out with ``W x``; with 1/eta and a negative sign with ``W^-1 x``."""
    w0, head, along = w[first], x[x_at], 0.0
    for e in range(1, dim):
        along += w[first + e] * x[x_at + e]
    share = along / (1.0 + w0) + sign * head
    out[out_at] = eta * (w0 * head + sign * along)
    for e in range(1, dim):
        out[out_at + e] = eta * (x[x_at + e] + w[first + e] * share)


@inlined
def determinant(x: np.ndarray, first: int, dim: int) -> float:
    """Return ``x_0^2 - |x_1|^2``, at least almost zero."""
    tail = 0.0
    for e in range(1, dim):
        tail += square(x[first + e])
    tail = np.sqrt(tail)
    return max((x[first] - tail) * (x[first] + tail), SMALLEST)


@kernel
def reach(x: np.ndarray, dx: np.ndarray, first: int, dim: int) -> float:
    """Return the largest t, at most a huge one, with ``x + t dx`` in the second-order cone."""
    a, b = square(dx[first]), x[first] * dx[first]
    for e in range(1, dim):
        a -= square(dx[first + e])
        b -= x[first + e] * dx[first + e]
    c = determinant(x, first, dim)
    longest = -x[first] / dx[first] if dx[first] < 0.0 else 1e300
    root = b * b - a * c
    if root >= 0.0:
        root = np.sqrt(root)
        q = -(b + root) if b >= 0.0 else root - b  # no cancellation
        if a != 0.0 and q / a > 0.0:
            longest = min(longest, q / a)
        if q != 0.0 and c / q > 0.0:
            longest = min(longest, c / q)
    return longest


@kernel
def begin(sy: System, isl: Island, it: Interior, v: Vectors, start: float) -> float:
    """Fill a starting point far from all boundaries; return its scale, a speed.

    Impulses begin with this part of the scale.
    """
    combine(isl, sy.y0, 0.0, sy.y0, v.y)
    relative_speeds(sy, isl, v.y, v.u)
    size = 0.0
    for i in isl.member:
        for k in range(sy.row[i], sy.row[i + 1]):
            if sy.scale[k] > 0.0:
                size = max(size, abs(v.u[k]))
    size = max(size, TINY * isl.size, SMALLEST)
    for i in isl.member:
        kind, first = kind_of(sy, i), sy.row[i]
        for k in range(first, sy.row[i + 1]):
            it.z[k] = it.s[k] = it.w[k] = it.dz[k] = it.ds[k] = it.t[k] = 0.0
        if kind in (SOC, SCALAR):
            it.z[first], it.s[first] = start * size, size
        elif kind == BOX:
            it.s[first] = it.w[first] = size
    return size


@kernel
def scale_contact(sy: System, i: int, it: Interior, u: np.ndarray, C_out: np.ndarray,
                  at: int) -> None:  # fmt: skip
    """Fill the primal residual, the scaling and the derivative C of a contact with friction.

    ``C = D W^-2 D+`` with ``D = diag(1/mu, 1, ...)`` and the derivative of |u_T| in the first row
    of D+.
    """
    first, dim, mu = sy.row[i], sy.row[i + 1] - sy.row[i], sy.mu[i]
    speed = inner = 0.0
    for e in range(1, dim):
        speed += square(u[first + e])
        it.p[first + e] = u[first + e] - it.s[first + e]
    speed = np.sqrt(speed)
    it.p[first] = u[first] / mu + speed - it.s[first]
    a = np.sqrt(determinant(it.s, first, dim))
    c = np.sqrt(determinant(it.z, first, dim))
    for e in range(dim):
        inner += it.s[first + e] / a * (it.z[first + e] / c)
    part, sign = 0.5 / np.sqrt(0.5 * (1.0 + inner)), 1.0
    for e in range(dim):
        it.w[first + e] = (it.s[first + e] / a + sign * it.z[first + e] / c) * part
        sign = -1.0
    it.eta[i] = np.sqrt(a / c)
    inverse, w0 = c / a, it.w[first]
    turn = 1.0 / speed if speed > 0.0 else 0.0
    for e in range(dim):
        if e == 0:
            left, head = 1.0 / mu, (2.0 * w0 * w0 - 1.0) * inverse
        else:
            left, head = 1.0, -2.0 * w0 * it.w[first + e] * inverse
        C_out[at + e * dim] = left * head / mu
        for f in range(1, dim):
            if e == 0:
                entry = -2.0 * w0 * it.w[first + f] * inverse
            else:
                entry = (2.0 * it.w[first + e] * it.w[first + f] + (e == f)) * inverse
            C_out[at + e * dim + f] = left * (entry + head * u[first + f] * turn)


@kernel
def linearise(sy: System, isl: Island, it: Interior, v: Vectors, rho: float) -> None:
    """Fill residuals, scalings and the derivatives C; speeds at v.y are in v.u."""
    for i in isl.member:
        first, dim = sy.row[i], sy.row[i + 1] - sy.row[i]
        kind, at = kind_of(sy, i), isl.C_at[i]
        for k in range(at, at + dim * dim):
            isl.C[k] = 0.0
        if kind == SOC:
            scale_contact(sy, i, it, v.u, isl.C, at)
            continue
        for k in range(first, first + dim):
            it.p[k] = 0.0
        if kind == SCALAR:
            it.p[first] = v.u[first] - it.s[first]
            isl.C[at] = it.z[first] / it.s[first]
        elif kind == BOX:
            b, x = sy.bound[i], it.z[first]
            it.p[first] = v.u[first] - it.s[first] + it.w[first]
            if b > 0.0:
                isl.C[at] = 1.0 / (it.s[first] / (x + b) + it.w[first] / (b - x))
            continue
        if sy.tangent[i] == HELD or sy.tangent[i] == LINEAR:
            for e in range(sy.normal[i], dim):
                k = first + e
                it.p[k] = v.u[k] + sy.R[k] * it.z[k]
                isl.C[at + e * dim + e] = 1.0 / max(sy.R[k], rho)


@kernel
def gap_of(sy: System, isl: Island, it: Interior) -> float:
    """Return the mean product of complementary variables."""
    total, cones = 0.0, 0
    for i in isl.member:
        first, dim, kind = sy.row[i], sy.row[i + 1] - sy.row[i], kind_of(sy, i)
        if kind == SOC:
            for e in range(dim):
                total += it.s[first + e] * it.z[first + e]
            cones += 1
        elif kind == SCALAR:
            total += it.s[first] * it.z[first]
            cones += 1
        elif kind == BOX and sy.bound[i] > 0.0:
            total += it.s[first] * (it.z[first] + sy.bound[i])
            total += it.w[first] * (sy.bound[i] - it.z[first])
            cones += 2
    return total / max(cones, 1)


@kernel
def aim_contact(it: Interior, first: int, dim: int, eta: float, tau: float,
                corrector: bool) -> None:  # fmt: skip
    """Fill it.t of a contact with friction: its right-hand side over lambda."""
    l, a, b = it.small[0], it.small[1], it.small[2]
    apply_scaling(it.w, first, dim, eta, 1.0, it.z, first, l, 0)
    for e in range(dim):
        a[e] = b[e] = 0.0
    if corrector:
        apply_scaling(it.w, first, dim, 1.0 / eta, -1.0, it.ds, first, a, 0)
        apply_scaling(it.w, first, dim, eta, 1.0, it.dz, first, b, 0)
    head = tau
    for e in range(dim):
        head -= l[e] * l[e] + a[e] * b[e]
    inner = l[0] * head
    for e in range(1, dim):
        side = -2.0 * l[0] * l[e] - a[0] * b[e] - b[0] * a[e]
        inner -= l[e] * side
        a[e] = side
    it.t[first] = inner / determinant(l, 0, dim)
    for e in range(1, dim):
        it.t[first + e] = (a[e] - l[e] * it.t[first]) / l[0]


@kernel
def aim(sy: System, isl: Island, it: Interior, tau: float, corrector: bool) -> None:
    """Fill it.t, the right-hand sides of complementarity that aim at a gap of tau."""
    for i in isl.member:
        first, dim, kind = sy.row[i], sy.row[i + 1] - sy.row[i], kind_of(sy, i)
        if kind == SOC:
            aim_contact(it, first, dim, it.eta[i], tau, corrector)
        elif kind == SCALAR:
            t = tau - it.s[first] * it.z[first]
            if corrector:
                t -= it.ds[first] * it.dz[first]
            it.t[first] = t / it.z[first]
        elif kind == BOX and sy.bound[i] > 0.0:
            low, high = it.z[first] + sy.bound[i], sy.bound[i] - it.z[first]
            a, b = tau - it.s[first] * low, tau - it.w[first] * high
            if corrector:
                a -= it.ds[first] * it.dz[first]
                b += it.t[first] * it.dz[first]
            it.t[first] = a / low - b / high
            it.ds[first] = a / low  # of the lower multiplier alone, for `step_of`


@kernel
def respond(sy: System, isl: Island, it: Interior, i: int, x: np.ndarray,
            out: np.ndarray) -> None:  # fmt: skip
    """Fill the impulses of constraint i by which complementarity answers speeds x.

    ``W^-1 (t - W^-1 x)`` for a contact with friction: the two terms nearly cancel, and would lose
    their digits in ``W^-2``.
    """
    first, dim, at = sy.row[i], sy.row[i + 1] - sy.row[i], isl.C_at[i]
    if kind_of(sy, i) != SOC:
        for e in range(dim):
            out[first + e] = isl.C[at + e * dim + e] * (it.t[first + e] - x[first + e])
        return
    y = it.small[3]
    inverse = 1.0 / it.eta[i]
    apply_scaling(it.w, first, dim, inverse, -1.0, x, first, y, 0)
    for e in range(dim):
        y[e] = it.t[first + e] - y[e]
    apply_scaling(it.w, first, dim, inverse, -1.0, y, 0, out, first)


@kernel
def step_of(sy: System, isl: Island, it: Interior, v: Vectors) -> None:
    """Fill v.step, it.dz and it.ds for the right-hand sides it.t; A holds its factors."""
    fill(isl, v.step, 0.0)
    for i in isl.member:
        first = sy.row[i]
        respond(sy, isl, it, i, it.p, v.uk)
        if kind_of(sy, i) == SOC:
            v.uk[first] /= sy.mu[i]
        add_impulse(sy, i, v.uk, v.step)
    block_lu.solve(isl.pattern, isl.trees, isl.A, v.step)
    for i in isl.member:
        first, end, kind = sy.row[i], sy.row[i + 1], kind_of(sy, i)
        speeds(sy, i, v.step, v.uk)
        if kind == SOC:
            speed = rate = 0.0
            for k in range(first + 1, end):
                speed += square(v.u[k])
                rate += v.u[k] * v.uk[k]
            v.uk[first] /= sy.mu[i]
            if speed > 0.0:
                v.uk[first] += rate / np.sqrt(speed)
        for k in range(first, end):
            v.new[k] = it.p[k] + v.uk[k]
        respond(sy, isl, it, i, v.new, it.dz)
        if kind == SOC:
            for k in range(first, end):
                it.ds[k] = v.uk[k] + it.p[k]
        elif kind == SCALAR:
            it.ds[first] = v.uk[first] + it.p[first]
        elif kind == BOX and sy.bound[i] > 0.0:
            low, high = it.z[first] + sy.bound[i], sy.bound[i] - it.z[first]
            lower = it.ds[first]
            upper = lower - it.t[first]
            it.ds[first] = lower - it.s[first] * it.dz[first] / low
            it.t[first] = upper + it.w[first] * it.dz[first] / high  # step of the upper multiplier


@kernel
def longest_step(sy: System, isl: Island, it: Interior) -> float:
    """Return the largest step, at most 1, that keeps all cones."""
    t = 1.0
    for i in isl.member:
        first, dim, kind = sy.row[i], sy.row[i + 1] - sy.row[i], kind_of(sy, i)
        if kind == SOC:
            t = min(t, reach(it.s, it.ds, first, dim), reach(it.z, it.dz, first, dim))
            continue
        if kind == PLAIN or (kind == BOX and not sy.bound[i] > 0.0):
            continue
        if it.ds[first] < 0.0:
            t = min(t, -it.s[first] / it.ds[first])
        low = it.z[first] + sy.bound[i] if kind == BOX else it.z[first]
        if it.dz[first] < 0.0:
            t = min(t, -low / it.dz[first])
        if kind == BOX and it.t[first] < 0.0:
            t = min(t, -it.w[first] / it.t[first])
        if kind == BOX and it.dz[first] > 0.0:
            t = min(t, (sy.bound[i] - it.z[first]) / it.dz[first])
    return t


@kernel
def move(sy: System, isl: Island, it: Interior, t: float) -> None:
    """Take a step of length t."""
    for i in isl.member:
        kind = kind_of(sy, i)
        for k in range(sy.row[i], sy.row[i + 1]):
            it.z[k] += t * it.dz[k]
            it.s[k] += t * it.ds[k]
            if kind == BOX:
                it.w[k] += t * it.t[k]


@kernel
def impulses(sy: System, isl: Island, it: Interior, r_out: np.ndarray) -> None:
    """Fill the impulses along the rows."""
    for i in isl.member:
        for k in range(sy.row[i], sy.row[i + 1]):
            r_out[k] = it.z[k]
        if kind_of(sy, i) == SOC:
            r_out[sy.row[i]] /= sy.mu[i]


@kernel
def residual(sy: System, isl: Island, it: Interior, gap: float) -> float:
    """Return the largest primal residual, or the root of the gap; infinite if one is NaN."""
    worst = np.sqrt(gap)
    for i in isl.member:
        for k in range(sy.row[i], sy.row[i + 1]):
            if not abs(it.p[k]) <= worst:
                worst = abs(it.p[k])
    return worst if worst < np.inf else np.inf


@kernel
def follow_path(sy: System, isl: Island, size: int, v: Vectors, it: Interior, CG_work: np.ndarray,
                start: float, rho: float, tolerance: float,
                limit: int) -> tuple[int, float]:  # fmt: skip
    """Follow the central path to a gap; the impulses of the best point end in v.best.

    The motion always is the one that the impulses make.

    Args:
        sy, isl, size, v, it, CG_work: the island and work arrays.
        start: impulses to begin with, over speeds.
        rho: compliance of steps along rigid rows that are not contacts.
        tolerance: of feasibility and complementarity, relative to the speeds at the beginning.
        limit: iterations.

    Returns:
        Iterations, and what was reached of that tolerance.
    """
    scale = begin(sy, isl, it, v, start)
    impulses(sy, isl, it, v.best)
    least, stalled, count = np.inf, 0, 0
    while True:
        impulses(sy, isl, it, v.new)
        rebuild(sy, isl, v.new, v.y, v.u)
        gap = gap_of(sy, isl, it)
        linearise(sy, isl, it, v, rho)
        miss = residual(sy, isl, it, gap) / scale
        late = least <= LATE and not miss < GAIN * least
        stalled = 0 if miss < HARDLY * least else stalled + 1
        if miss < least:
            least = miss
            impulses(sy, isl, it, v.best)
        done = least <= tolerance or late or stalled > STALLED
        if done or count == limit or not miss < np.inf:
            return count, least
        count += 1
        assemble(sy, isl, size, CG_work)
        block_lu.factor(isl.pattern, isl.trees, isl.A, TINY)
        aim(sy, isl, it, 0.0, False)
        step_of(sy, isl, it, v)
        short = 1.0 - longest_step(sy, isl, it)
        aim(sy, isl, it, short * short * gap, True)
        step_of(sy, isl, it, v)
        move(sy, isl, it, KEEP * longest_step(sy, isl, it))
