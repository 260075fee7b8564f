r"""Primal-dual interior-point method for an island, from nothing.

With compliance :math:`\rho` about zero the law of a contact with friction is, in the coordinates
:math:`z = (\mu r_N, r_T)` and :math:`s = ((u_N + \rho r_N)/\mu + |u_T|, u_T + \rho r_T)`,

.. math:: s \in \mathcal L, \quad z \in \mathcal L, \quad s^T z = 0

with the second-order cone :math:`\mathcal L` (De Saxcé). Mehrotra's predictor and corrector follow
the central path in Nesterov and Todd's scaling W. A step eliminates s and z: each constraint
contributes :math:`C = (E + W^2)^{-1}` to the Newton matrix, with the compliance E on the diagonal.
The derivative of :math:`|u_T|` is part of it, which makes the matrix unsymmetric; without it the
method stalls. Normals without friction have a scalar cone, dry friction a box, other rows are
linear.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from holdfast._jit import kernel
from holdfast.contact.newton import Island, Vectors, assemble, combine, norm, relative_speeds
from holdfast.contact.system import DISC, HELD, LINEAR, System, add_impulse, speeds
from holdfast.linalg import block_lu

SOC, SCALAR, BOX, PLAIN, NONE = range(5)  # kinds of cones
TINY = 1e-14
MOST = 6  # rows of a constraint
SOFTEN = 0.1  # compliance over distance from the end of the path, both relative
CENTRE = 0.1  # least part of the gap that a corrector aims at
STALLED = 6  # iterations without progress after which there will be none


class Interior(NamedTuple):
    """Work arrays by row, and by constraint."""

    z: np.ndarray  # impulses in the coordinates of the cone
    s: np.ndarray  # speeds in them; of a box the multiplier of its lower side
    w: np.ndarray  # scaling point; of a box the multiplier of its upper side
    dz: np.ndarray
    ds: np.ndarray
    p: np.ndarray  # primal residual
    t: np.ndarray  # right-hand side of complementarity
    eta: np.ndarray  # (n,)


@kernel
def kind_of(sy: System, i: int) -> int:
    """Return the cone of a constraint."""
    if sy.normal[i] == 1:
        return SOC if sy.tangent[i] == DISC else SCALAR
    if sy.tangent[i] == DISC:
        return BOX
    return PLAIN


@kernel
def invert(K_inout: np.ndarray, n: int) -> None:
    """Invert a small positive definite matrix in place, by Gauss and Jordan."""
    for k in range(n):
        inverse = 1.0 / K_inout[k, k]
        K_inout[k, k] = 1.0
        for j in range(n):
            K_inout[k, j] *= inverse
        for i in range(n):
            if i != k:
                t = K_inout[i, k]
                K_inout[i, k] = 0.0
                for j in range(n):
                    K_inout[i, j] -= t * K_inout[k, j]


@kernel
def apply_scaling(it: Interior, first: int, dim: int, eta: float, inverse: bool, x: np.ndarray,
                  x_at: int, out: np.ndarray, out_at: int) -> None:  # fmt: skip
    """Fill dim entries of out with ``W x``, or ``W^-1 x``."""
    sign = -1.0 if inverse else 1.0
    factor = 1.0 / eta if inverse else eta
    w0 = it.w[first]
    along = 0.0
    for e in range(1, dim):
        along += it.w[first + e] * x[x_at + e]
    head = x[x_at]
    share = along / (1.0 + w0) + sign * head
    out[out_at] = factor * (w0 * head + sign * along)
    for e in range(1, dim):
        out[out_at + e] = factor * (x[x_at + e] + it.w[first + e] * share)


@kernel
def determinant(x: np.ndarray, first: int, dim: int) -> float:
    """Return ``x_0^2 - |x_1|^2``, at least almost zero."""
    tail = 0.0
    for e in range(1, dim):
        tail += x[first + e] ** 2
    tail = np.sqrt(tail)
    return max((x[first] - tail) * (x[first] + tail), 1e-300)


@kernel
def reach(x: np.ndarray, dx: np.ndarray, first: int, dim: int) -> float:
    """Return the largest t, at most a huge one, with ``x + t dx`` in the second-order cone."""
    a = dx[first] ** 2
    b = x[first] * dx[first]
    for e in range(1, dim):
        a -= dx[first + e] ** 2
        b -= x[first + e] * dx[first + e]
    c = determinant(x, first, dim)
    longest = 1e300
    if dx[first] < 0.0:
        longest = -x[first] / dx[first]
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
def begin(sy: System, isl: Island, it: Interior, v: Vectors) -> float:
    """Fill a starting point; return its scale."""
    combine(isl, sy.y0, 0.0, sy.y0, v.y)
    relative_speeds(sy, isl, v.y, v.u)
    size = 0.0
    for i in isl.member:
        for k in range(sy.row[i], sy.row[i + 1]):
            if sy.scale[k] > 0.0 and (v.u[k] < 0.0 or sy.normal[i] == 0 or k > sy.row[i]):
                size = max(size, abs(v.u[k]))
    size = max(size, 1e-12 * norm(isl, sy.y0), 1e-300)
    for i in isl.member:
        kind = kind_of(sy, i)
        for k in range(sy.row[i], sy.row[i + 1]):
            it.z[k] = it.s[k] = it.w[k] = it.dz[k] = it.ds[k] = it.t[k] = 0.0
        first = sy.row[i]
        if kind in (SOC, SCALAR):
            it.z[first] = it.s[first] = size
        elif kind == BOX:
            it.s[first] = it.w[first] = size
    return size


@kernel
def linearise(sy: System, isl: Island, it: Interior, v: Vectors, rho: float,
              K_work: np.ndarray) -> None:  # fmt: skip
    """Fill residuals, scalings and the derivatives C; speeds at v.y are in v.u."""
    for i in isl.member:
        first, dim = sy.row[i], sy.row[i + 1] - sy.row[i]
        kind, at = kind_of(sy, i), isl.C_at[i]
        for k in range(at, at + dim * dim):
            isl.C[k] = 0.0
        for k in range(first, first + dim):
            it.p[k] = 0.0
        if kind == SOC:
            mu = sy.mu[i]
            speed = 0.0
            for e in range(1, dim):
                speed += v.u[first + e] ** 2
                it.p[first + e] = v.u[first + e] + rho * it.z[first + e] - it.s[first + e]
            speed = np.sqrt(speed)
            it.p[first] = v.u[first] / mu + speed + rho / (mu * mu) * it.z[first] - it.s[first]
            a = np.sqrt(determinant(it.s, first, dim))
            c = np.sqrt(determinant(it.z, first, dim))
            inner = 0.0
            for e in range(dim):
                inner += it.s[first + e] / a * it.z[first + e] / c
            gamma = np.sqrt(0.5 * (1.0 + inner))
            sign = 1.0
            for e in range(dim):
                it.w[first + e] = (it.s[first + e] / a + sign * it.z[first + e] / c) / (2.0 * gamma)
                sign = -1.0
            eta2 = a / c
            it.eta[i] = np.sqrt(eta2)
            for e in range(dim):
                for f in range(dim):
                    K_work[e, f] = 2.0 * eta2 * it.w[first + e] * it.w[first + f]
                K_work[e, e] += rho + eta2 if e > 0 else rho / (mu * mu) - eta2
            invert(K_work, dim)
            # C = D K D+, D = diag(1/mu, 1, ...), D+ with the derivative of |u_T| in its first row
            for e in range(dim):
                left = 1.0 / mu if e == 0 else 1.0
                isl.C[at + e * dim] = left * K_work[e, 0] / mu
                for f in range(1, dim):
                    turn = v.u[first + f] / speed if speed > 0.0 else 0.0
                    isl.C[at + e * dim + f] = left * (K_work[e, f] + K_work[e, 0] * turn)
        elif kind == SCALAR:
            it.p[first] = v.u[first] + rho * it.z[first] - it.s[first]
            isl.C[at] = 1.0 / (rho + it.s[first] / it.z[first])
            if sy.tangent[i] == HELD or sy.tangent[i] == LINEAR:
                plain_rows(sy, it, v, i, 1, rho, isl.C, at)
        elif kind == BOX:
            b, x = sy.bound[i], it.z[first]
            it.p[first] = v.u[first] + rho * x - it.s[first] + it.w[first]
            if b > 0.0:
                isl.C[at] = 1.0 / (rho + it.s[first] / (x + b) + it.w[first] / (b - x))
        else:
            plain_rows(sy, it, v, i, 0, rho, isl.C, at)


@kernel
def plain_rows(sy: System, it: Interior, v: Vectors, i: int, begin_: int, rho: float,
               C_out: np.ndarray, at: int) -> None:  # fmt: skip
    """Residual and derivative of rows that give way in proportion."""
    first, dim = sy.row[i], sy.row[i + 1] - sy.row[i]
    for e in range(begin_, dim):
        k = first + e
        soft = sy.R[k] if sy.R[k] > 0.0 else rho
        it.p[k] = v.u[k] + soft * it.z[k]
        C_out[at + e * dim + e] = 1.0 / soft


@kernel
def gap_of(sy: System, isl: Island, it: Interior) -> tuple[float, int]:
    """Return the sum of complementarity products, and how many cones there are."""
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
    return total, cones


@kernel
def targets(sy: System, isl: Island, it: Interior, tau: float, corrector: bool,
            x_work: np.ndarray) -> None:  # fmt: skip
    """Fill it.t: of second-order cones ``W x`` with x the right-hand side of complementarity."""
    for i in isl.member:
        first, dim, kind = sy.row[i], sy.row[i + 1] - sy.row[i], kind_of(sy, i)
        if kind == SOC:
            eta = it.eta[i]
            l, a, b, d = x_work[0], x_work[1], x_work[2], x_work[3]
            apply_scaling(it, first, dim, eta, False, it.z, first, l, 0)
            if corrector:
                apply_scaling(it, first, dim, eta, True, it.ds, first, a, 0)
                apply_scaling(it, first, dim, eta, False, it.dz, first, b, 0)
            head = tau
            for e in range(dim):
                head -= l[e] * l[e]
                if corrector:
                    head -= a[e] * b[e]
            d[0] = head
            for e in range(1, dim):
                d[e] = -2.0 * l[0] * l[e]
                if corrector:
                    d[e] -= a[0] * b[e] + b[0] * a[e]
            # divide by lambda
            inner = l[0] * d[0]
            for e in range(1, dim):
                inner -= l[e] * d[e]
            x0 = inner / determinant(l, 0, dim)
            for e in range(1, dim):
                a[e] = (d[e] - l[e] * x0) / l[0]
            a[0] = x0
            apply_scaling(it, first, dim, eta, False, a, 0, it.t, first)
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
            # multipliers' own parts, for `step_of`
            it.ds[first] = a / low


@kernel
def step_of(sy: System, isl: Island, it: Interior, v: Vectors, rho: float) -> None:
    """Fill v.step, it.dz and it.ds for the right-hand sides it.t; A holds its factors.

    v.residual holds ``y0 + G' z - y`` (the dual residual, negative).
    """
    combine(isl, v.residual, 0.0, v.residual, v.step)
    for i in isl.member:
        first, end, kind = sy.row[i], sy.row[i + 1], kind_of(sy, i)
        for k in range(first, end):
            v.new[k] = it.t[k] - it.p[k]
        kick(sy, isl, it, v, i, v.new, v.uk)
        if kind == SOC:
            v.uk[first] /= sy.mu[i]
        add_impulse(sy, i, v.uk, v.step)
    block_lu.solve(isl.pattern, isl.trees, isl.A, v.step)
    for i in isl.member:
        first, dim, kind = sy.row[i], sy.row[i + 1] - sy.row[i], kind_of(sy, i)
        speeds(sy, i, v.step, v.uk)  # du
        if kind == SOC:
            mu, speed, rate = sy.mu[i], 0.0, 0.0
            for e in range(1, dim):
                speed += v.u[first + e] ** 2
                rate += v.u[first + e] * v.uk[first + e]
            head = v.uk[first] / mu
            if speed > 0.0:
                head += rate / np.sqrt(speed)
            v.uk[first] = head
        for k in range(first, first + dim):
            v.new[k] = it.t[k] - it.p[k] - v.uk[k]
        kick(sy, isl, it, v, i, v.new, it.dz)
        if kind == SOC:
            mu = sy.mu[i]
            for e in range(dim):
                soft = rho / (mu * mu) if e == 0 else rho
                it.ds[first + e] = v.uk[first + e] + soft * it.dz[first + e] + it.p[first + e]
        elif kind == SCALAR:
            it.ds[first] = v.uk[first] + rho * it.dz[first] + it.p[first]
        elif kind == BOX and sy.bound[i] > 0.0:
            low, high = it.z[first] + sy.bound[i], sy.bound[i] - it.z[first]
            a = it.ds[first]  # tau_l / low
            b = a - it.t[first]  # tau_u / high
            it.ds[first] = a - it.s[first] * it.dz[first] / low
            it.t[first] = b + it.w[first] * it.dz[first] / high  # step of the upper multiplier


@kernel
def kick(sy: System, isl: Island, it: Interior, v: Vectors, i: int, x: np.ndarray,
         out: np.ndarray) -> None:  # fmt: skip
    """Fill the rows of constraint i in out with K x, in the coordinates of its cone."""
    first, dim, at, kind = sy.row[i], sy.row[i + 1] - sy.row[i], isl.C_at[i], kind_of(sy, i)
    if kind != SOC:
        for e in range(dim):
            out[first + e] = isl.C[at + e * dim + e] * x[first + e]
        return
    mu, speed = sy.mu[i], 0.0
    for f in range(1, dim):
        speed += v.u[first + f] ** 2
    inverse = 1.0 / np.sqrt(speed) if speed > 0.0 else 0.0
    for e in range(dim):
        left = mu if e == 0 else 1.0
        head = left * mu * isl.C[at + e * dim]  # K_e0
        total = head * x[first]
        for f in range(1, dim):
            turn = v.u[first + f] * inverse
            total += (left * isl.C[at + e * dim + f] - head * turn) * x[first + f]
        out[first + e] = total


@kernel
def longest_step(sy: System, isl: Island, it: Interior) -> float:
    """Return the largest step, at most 1, that keeps all cones."""
    t = 1.0
    for i in isl.member:
        first, dim, kind = sy.row[i], sy.row[i + 1] - sy.row[i], kind_of(sy, i)
        if kind == SOC:
            t = min(t, reach(it.s, it.ds, first, dim), reach(it.z, it.dz, first, dim))
        elif kind == SCALAR:
            if it.ds[first] < 0.0:
                t = min(t, -it.s[first] / it.ds[first])
            if it.dz[first] < 0.0:
                t = min(t, -it.z[first] / it.dz[first])
        elif kind == BOX and sy.bound[i] > 0.0:
            if it.ds[first] < 0.0:
                t = min(t, -it.s[first] / it.ds[first])
            if it.t[first] < 0.0:
                t = min(t, -it.w[first] / it.t[first])
            if it.dz[first] < 0.0:
                t = min(t, -(it.z[first] + sy.bound[i]) / it.dz[first])
            if it.dz[first] > 0.0:
                t = min(t, (sy.bound[i] - it.z[first]) / it.dz[first])
    return t


@kernel
def curvature(sy: System, v: Vectors, i: int, t: float) -> float:
    """Return by how much ``|u_T|`` grows beyond its derivative in a step t along v.uk.

    It never shrinks beyond it, so that s stays in its cone when it takes this up. Otherwise it
    would add to the primal residual, and complementarity would run ahead of feasibility.
    """
    before = rate = after = 0.0
    for k in range(sy.row[i] + 1, sy.row[i + 1]):
        before += v.u[k] ** 2
        rate += v.u[k] * v.uk[k]
        after += (v.u[k] + t * v.uk[k]) ** 2
    before, after = np.sqrt(before), np.sqrt(after)
    if before > 0.0:
        rate /= before
    return max(after - before - t * rate, 0.0)


@kernel
def follow_path(sy: System, isl: Island, size: int, v: Vectors, it: Interior, CG_work: np.ndarray,
                small_work: np.ndarray, rho: float, floor: float, tolerance: float,
                limit: int) -> tuple[int, float]:  # fmt: skip
    """Follow the central path with compliance that falls with it; impulses end in v.best.

    The motion ends in v.d. The compliance begins with rho.

    Where friction makes the problem non-monotone the residual may stall; the best point counts.

    Returns:
        Iterations, and the relative residual: of feasibility and of complementarity.
    """
    scale = begin(sy, isl, it, v)
    K, x = small_work[:MOST], small_work[MOST : MOST + 4]
    least, stalled, count = np.inf, 0, 0
    combine(isl, sy.y0, 0.0, sy.y0, v.d)
    for i in isl.member:
        for k in range(sy.row[i], sy.row[i + 1]):
            v.best[k] = 0.0
    soft = rho
    while count < limit:
        total, cones = gap_of(sy, isl, it)
        gap = total / max(cones, 1)
        rho = max(min(soft, SOFTEN * np.sqrt(gap) / scale), floor)
        relative_speeds(sy, isl, v.y, v.u)
        linearise(sy, isl, it, v, rho, K)
        combine(isl, sy.y0, -1.0, v.y, v.residual)
        for i in isl.member:
            for k in range(sy.row[i], sy.row[i + 1]):
                v.new[k] = it.z[k]
            if kind_of(sy, i) == SOC:
                v.new[sy.row[i]] /= sy.mu[i]
            add_impulse(sy, i, v.new, v.residual)
        worst = norm(isl, v.residual)
        for i in isl.member:
            for k in range(sy.row[i], sy.row[i + 1]):
                worst = max(worst, abs(it.p[k]))
        miss = max(worst / scale, np.sqrt(gap) / scale)
        stalled += 1
        if miss < least:
            stalled = 0 if miss < 0.9 * least else stalled
            least = miss
            combine(isl, v.y, 0.0, v.y, v.d)
            for i in isl.member:
                for k in range(sy.row[i], sy.row[i + 1]):
                    v.best[k] = it.z[k]
                if kind_of(sy, i) == SOC:
                    v.best[sy.row[i]] /= sy.mu[i]
        if least <= tolerance or stalled > STALLED or not miss < 1e300:
            break
        count += 1
        assemble(sy, isl, size, CG_work)
        block_lu.factor(isl.pattern, isl.trees, isl.A, TINY)
        targets(sy, isl, it, 0.0, False, x)
        step_of(sy, isl, it, v, rho)
        t = longest_step(sy, isl, it)
        targets(sy, isl, it, max((1.0 - t) ** 3, CENTRE) * gap, True, x)
        step_of(sy, isl, it, v, rho)
        t = longest_step(sy, isl, it)
        t = min(1.0, 0.995 * t) if t < 1.0 else 1.0
        combine(isl, v.y, t, v.step, v.y)
        for i in isl.member:
            kind = kind_of(sy, i)
            for k in range(sy.row[i], sy.row[i + 1]):
                it.z[k] += t * it.dz[k]
                if kind in (SOC, SCALAR, BOX):
                    it.s[k] += t * it.ds[k]
                if kind == BOX:
                    it.w[k] += t * it.t[k]
            if kind == SOC:
                it.s[sy.row[i]] += curvature(sy, v, i, t)
    return count, least
