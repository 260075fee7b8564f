r"""Primal-dual interior-point method for an island, from nothing or from an answer nearby.

A contact with friction has the normal impulse :math:`N`, the part :math:`\rho`, :math:`|\rho| < 1`,
of the friction that it may carry, :math:`r_T = \mu N \rho`, the normal speed :math:`s` and the
speed :math:`\sigma` of sliding. Coulomb's law is

.. math::

    u_N = s, \quad u_T = -\sigma \rho, \quad
    N s = \tau, \quad \sigma \kappa = \tau, \quad \kappa = \mu N (1 - |\rho|^2) / 2

for :math:`\tau = 0`: where it slides :math:`|\rho| = 1`, else :math:`\sigma = 0`. For
:math:`\tau > 0` everything is smooth, and as it vanishes the solutions follow the central path.
Mehrotra's predictor and corrector do, with all second-order terms, those of :math:`N \rho` and
:math:`\sigma \rho` included. A step eliminates all but the motion: each constraint contributes its
derivative :math:`C = -\partial r/\partial u` to the Newton matrix, as elsewhere.

It is the choice of unknowns that makes long steps possible. At a contact that opens all of them
converge, to :math:`N = 0` and to what :math:`\rho` and :math:`\sigma` then are. In the unknowns
:math:`r_T` and :math:`\sigma / \mu N` the latter grows beyond all bounds; and in De Saxcé's form
of the law the length :math:`|u_T|` has no derivative where a contact sticks.

In a step rigid rows have a compliance :math:`\epsilon` about the impulses at hand. It keeps the
matrix regular where impulses are redundant, and takes no part in the law. Compliance about zero,
:math:`u_N + c N = s`, falls with the gap: constant, it would draw impulses out of the middle of
their cones at the end of the path, for equal shares of the load, which they may not be able to
have; without any, impulses that cancel each other grow as long as they can.

Complementarity must not run ahead of the law: where the gap is small beside the square of the
residual, half of it is kept. Where a step is short, or brings nothing, the next ones follow the
tangent of the path.

From impulses r nearby the method begins on the path, at the gap that their residual asks for. Of
the point with :math:`N - s = r_N - u_N` and :math:`(\mu N + \sigma) \rho = r_T - u_T` all
products are equal.

Normals without friction have the first two equations of each kind, dry friction a box, other rows
are linear.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from holdfast._jit import inlined, kernel
from holdfast.contact.cone import natural_map
from holdfast.contact.newton import (
    Island,
    Vectors,
    assemble,
    combine,
    constraint_speeds,
    fill,
    norm,
    rebuild,
    relative_speeds,
)
from holdfast.contact.proximal import store
from holdfast.contact.system import DISC, LINEAR, NOTHING, POINT, System, add_impulse, speeds
from holdfast.linalg import block_lu
from holdfast.linalg.vectors import square
from holdfast.linalg.views import vector

FRICTION, NORMAL, BOX, PLAIN = range(4)  # kinds of constraints
TINY = 1e-14  # pivots of the Newton matrix, whose diagonal is at least about one
KEEP = 0.99  # part of the way to the boundary that a step may take, and more as the gap vanishes
SHORT = 0.15  # steps to the boundary that are too short, and those after which the path may turn
BEGIN_NEAR = 0.01  # gap to begin with nearby, over the residual there and the scale
SHARE_STEPS = 40  # of a safeguarded Newton method for the share of friction
TURNS = 2  # steps along its tangent, at least, that follow
LONG = 0.9  # change of the gap along the tangent, relative
MOST, NEAR = 0.9, 0.9  # part of the way to the boundary of such steps, and of their sum
STALLED = 25  # iterations without progress, most of them round folds, after which there is none
PATIENT = 60  # the same where there is no other way but longer ones
LATE, LATE_STALLED = 1e-4, 4  # near the end of the path Newton's method goes on
PULL = 1e-3  # compliance about zero over the gap, both relative to the scale
LAGS = 30.0  # square of the residual over the gap above which the latter has run ahead
CENTRE = 0.5  # part of the gap that is to be left then, at least
NO_GAIN = 0.9  # factor of the gap that is no progress: second-order terms mislead, too
HARDLY = 0.95  # factor of the residual that counts as progress
SMALLEST = 1e-300
ROUNDING = 1e-15  # of 1 - |rho|^2
HARDLY_MOVES = 1e-12  # relative step of that Newton method after which there is none


class Interior(NamedTuple):
    """Work arrays by row; what a constraint has only one of is in the place of its first row."""

    x: np.ndarray  # impulses; of a contact with friction N and rho
    s: np.ndarray  # normal speed; of a box the multiplier of its lower side
    w: np.ndarray  # speed of sliding; of a box the multiplier of its upper side
    dx: np.ndarray
    ds: np.ndarray
    dw: np.ndarray
    p: np.ndarray  # residual
    b: np.ndarray  # speeds that the step is to make, by what impulses alone answer
    e: np.ndarray  # second-order terms of the impulses
    t: np.ndarray  # right-hand side of the complementarity of s
    a: np.ndarray  # the same of w
    tx: np.ndarray  # tangent of the path, by the logarithm of the gap: of x
    ts: np.ndarray
    tw: np.ndarray


@inlined
def kind_of(sy: System, i: int) -> int:
    """Return the kind of a constraint."""
    if sy.normal[i] == 1:
        return FRICTION if sy.tangent[i] == DISC else NORMAL
    return BOX if sy.tangent[i] == DISC and sy.bound[i] > 0.0 else PLAIN


@inlined
def compliance_of(sy: System, i: int, k: int, epsilon: float) -> float:
    """Return the compliance of row k, which is linear."""
    return sy.R[k] if sy.tangent[i] == LINEAR and sy.R[k] > 0.0 else epsilon


@inlined
def tangent_product(a: np.ndarray, b: np.ndarray, first: int, end: int) -> float:
    """Return the product of two tangential parts."""
    if end == first + POINT:
        return a[first + 1] * b[first + 1] + a[first + 2] * b[first + 2]
    total = 0.0
    for k in range(first + 1, end):
        total += a[k] * b[k]
    return total


@inlined
def square_length(x: np.ndarray, first: int, end: int) -> float:
    """Return the sum of squares of a tangential part."""
    return tangent_product(x, x, first, end)


@inlined
def spare_friction(sy: System, it: Interior, i: int) -> float:
    """Return kappa: how far friction is from its limit."""
    first = sy.row[i]
    spare = max(1.0 - square_length(it.x, first, sy.row[i + 1]), ROUNDING)
    return 0.5 * sy.mu[i] * it.x[first] * spare


@kernel
def begin(sy: System, isl: Island, it: Interior, v: Vectors, start: float) -> float:
    """Fill a starting point far from all boundaries; return its scale, a speed."""
    combine(isl, sy.y0, 0.0, sy.y0, v.y)
    relative_speeds(sy, isl, v.y, v.u)
    size = 0.0
    for i in isl.member:  # however tangents are turned
        first, end = sy.row[i], sy.row[i + 1]
        if end > first:
            size = max(size, square(v.u[first]), square_length(v.u, first, end))
    size = np.sqrt(size)
    size = max(size, TINY * isl.size, SMALLEST)
    for i in isl.member:
        kind, first = kind_of(sy, i), sy.row[i]
        for k in range(first, sy.row[i + 1]):
            it.x[k] = it.s[k] = it.w[k] = it.dx[k] = it.ds[k] = it.dw[k] = it.e[k] = 0.0
        if kind == FRICTION:
            it.x[first], it.s[first], it.w[first] = start * size, size, 2.0 * size / sy.mu[i]
        elif kind == NORMAL:
            it.x[first], it.s[first] = start * size, size
        elif kind == BOX:
            it.s[first] = it.w[first] = size
    return size


@inlined
def share_of_friction(limit: float, pull: float, tau: float) -> float:
    """Return the length x of rho for which ``(pull / x - limit) limit (1 - x^2) / 2 = tau``."""
    low, high = 0.0, min(1.0, pull / limit)
    x = 0.5 * high
    for _ in range(SHARE_STEPS):
        spare = 1.0 - x * x
        miss = (pull - limit * x) * limit * spare - 2.0 * tau * x
        if miss > 0.0:
            low = x
        else:
            high = x
        slope = limit * (limit * spare + 2.0 * x * (pull - limit * x)) + 2.0 * tau
        new = x + miss / slope
        if not low < new < high:
            new = 0.5 * (low + high)
        settled = abs(new - x) <= HARDLY_MOVES * new
        x = new
        if settled:
            break
    return x


@kernel
def begin_near(sy: System, isl: Island, it: Interior, v: Vectors) -> float:
    """Fill a starting point on the path, near the impulses v.r; return the scale of `begin`."""
    scale = begin(sy, isl, it, v, 1.0)
    rebuild(sy, isl, v.r, v.y, v.u)
    least = max(residual(sy, isl, v.r, v.u), TINY * scale)
    tau = BEGIN_NEAR * scale * least
    for i in isl.member:
        kind, first, end = kind_of(sy, i), sy.row[i], sy.row[i + 1]
        if kind == PLAIN:
            for k in range(first, end):
                it.x[k] = v.r[k]
        elif kind == BOX:
            x, bound = v.r[first], KEEP * sy.bound[i]
            it.x[first] = min(max(x, -bound), bound)
            it.s[first] = tau / (sy.bound[i] + it.x[first])
            it.w[first] = tau / (sy.bound[i] - it.x[first])
        else:
            pull = v.r[first] - v.u[first]
            root = np.sqrt(pull * pull + 4.0 * tau)
            large = 0.5 * (abs(pull) + root)
            it.x[first] = large if pull > 0.0 else tau / large
            it.s[first] = tau / it.x[first]
        if kind == FRICTION:
            limit, pull, share = sy.mu[i] * it.x[first], 0.0, 0.0
            for k in range(first + 1, end):
                pull += square(v.r[k] - v.u[k])
            pull = np.sqrt(pull)
            if pull > TINY * scale:
                share = share_of_friction(limit, pull, tau)
                for k in range(first + 1, end):
                    it.x[k] = (v.r[k] - v.u[k]) * share / pull
            it.w[first] = 2.0 * tau / (limit * max(1.0 - share * share, ROUNDING))
    return scale


@inlined
def linearise_friction(sy: System, i: int, it: Interior, u: np.ndarray, epsilon: float,
                       pull: float, C_out: np.ndarray, at: int) -> None:  # fmt: skip
    """Fill residual and derivative of a contact with friction."""
    first, end, mu = sy.row[i], sy.row[i + 1], sy.mu[i]
    dim, N, s, w = end - first, it.x[first], it.s[first], it.w[first]
    length2 = square_length(it.x, first, end)
    it.p[first] = u[first] + pull * N - s
    slide = w + pull * mu * N
    part = 1.0 / (1.0 + length2)
    head, across = N / (s + epsilon * N), mu * N / (w + epsilon * mu * N)
    soft = w / (w + epsilon * mu * N * max(1.0 - length2, 0.0) * part)
    press, bend = 2.0 * mu * part * head * soft, -2.0 * part * across * soft
    if dim == POINT:
        y, z = it.x[first + 1], it.x[first + 2]
        it.p[first + 1], it.p[first + 2] = u[first + 1] + slide * y, u[first + 2] + slide * z
        C = vector(C_out, at, POINT * POINT)
        C[0], C[1], C[2] = head, 0.0, 0.0
        C[3], C[4], C[5] = press * y, bend * y * y + across, bend * y * z
        C[6], C[7], C[8] = press * z, bend * y * z, bend * z * z + across
        return
    C_out[at] = head
    for e in range(1, dim):
        it.p[first + e] = u[first + e] + slide * it.x[first + e]
        C_out[at + e] = 0.0
        C_out[at + e * dim] = press * it.x[first + e]
        for f in range(1, dim):
            C_out[at + e * dim + f] = bend * it.x[first + e] * it.x[first + f]
        C_out[at + e * (dim + 1)] += across


@inlined
def linearise(sy: System, isl: Island, i: int, it: Interior, u: np.ndarray, epsilon: float,
              pull: float) -> None:  # fmt: skip
    """Fill residual and derivative C of a constraint."""
    first, dim = sy.row[i], sy.row[i + 1] - sy.row[i]
    kind, at = kind_of(sy, i), isl.C_at[i]
    if kind == FRICTION:
        linearise_friction(sy, i, it, u, epsilon, pull, isl.C, at)
        return
    for k in range(at, at + dim * dim):
        isl.C[k] = 0.0
    for e in range(dim):
        k = first + e
        it.p[k] = 0.0
        if sy.tangent[i] != NOTHING and kind != BOX and e >= sy.normal[i]:
            soft = compliance_of(sy, i, k, epsilon)
            it.p[k] = u[k] + sy.R[k] * it.x[k]
            isl.C[at + e * (dim + 1)] = 1.0 / soft
    x = it.x[first] if dim > 0 else 0.0
    if kind == NORMAL:
        it.p[first] = u[first] + pull * x - it.s[first]
        isl.C[at] = x / (it.s[first] + epsilon * x)
    elif kind == BOX:
        low, high = x + sy.bound[i], sy.bound[i] - x
        it.p[first] = u[first] - it.s[first] + it.w[first]
        isl.C[at] = 1.0 / (it.s[first] / low + it.w[first] / high + epsilon)


@inlined
def products_after(sy: System, i: int, it: Interior, t: float) -> tuple[float, int]:
    """Return the sum of a constraint's complementary products after a step, and their number."""
    first, kind = sy.row[i], kind_of(sy, i)
    if kind == PLAIN:
        return 0.0, 0
    x, s = it.x[first] + t * it.dx[first], it.s[first] + t * it.ds[first]
    if kind == NORMAL:
        return s * x, 1
    w = it.w[first] + t * it.dw[first]
    if kind == BOX:
        return s * (x + sy.bound[i]) + w * (sy.bound[i] - x), 2
    end = sy.row[i + 1]
    spare = 1.0 - square_length(it.x, first, end)
    if t > 0.0:
        inner = tangent_product(it.x, it.dx, first, end)
        spare -= t * (2.0 * inner + t * square_length(it.dx, first, end))
    return s * x + 0.5 * w * sy.mu[i] * x * max(spare, ROUNDING), 2


@kernel
def gap_after(sy: System, isl: Island, it: Interior, t: float) -> float:
    """Return the mean product of complementary variables after a step of length t."""
    total, count = 0.0, 0
    for i in isl.member:
        sum_of, number = products_after(sy, i, it, t)
        total += sum_of
        count += number
    return total / max(count, 1)


@inlined
def aim(sy: System, i: int, it: Interior, part: float, products: float, tau: float,
        corrector: bool) -> None:  # fmt: skip
    """Fill it.t, it.a and it.b of a constraint, what the step is to bring.

    Args:
        sy, i, it: the constraint and its variables.
        part: of the residual that is to vanish.
        products, tau: complementary products are to change by tau less this part of them.
        corrector: whether second-order terms are taken from the step before.
    """
    first, end, kind = sy.row[i], sy.row[i + 1], kind_of(sy, i)
    for k in range(first, end):
        it.b[k] = -part * it.p[k]
    if kind == PLAIN:
        return
    x, dx = it.x[first], it.dx[first]
    second = it.ds[first] * dx if corrector else 0.0
    if kind == BOX:
        low, high = x + sy.bound[i], sy.bound[i] - x
        it.t[first] = tau - products * it.s[first] * low - second
        it.a[first] = tau - products * it.w[first] * high
        it.a[first] += it.dw[first] * dx if corrector else 0.0
        it.b[first] += it.t[first] / low - it.a[first] / high
        return
    it.t[first] = tau - products * it.s[first] * x - second
    it.b[first] += it.t[first] / x
    if kind == NORMAL:
        return
    mu, w, dw = sy.mu[i], it.w[first], it.dw[first]
    spare = spare_friction(sy, it, i)
    it.a[first] = tau - products * w * spare
    if corrector:
        inner = tangent_product(it.x, it.dx, first, end)
        change2 = square_length(it.dx, first, end)
        for k in range(first + 1, end):
            it.b[k] -= dw * it.dx[k]
            it.e[k] = mu * dx * it.dx[k]
        it.a[first] -= dw * dx * spare / x
        it.a[first] += mu * ((w * dx + dw * x) * inner + 0.5 * w * x * change2)
    share = it.a[first] / spare
    for k in range(first + 1, end):
        if not corrector:
            it.e[k] = 0.0
        it.b[k] -= it.x[k] * share


@inlined
def respond(sy: System, isl: Island, it: Interior, i: int, epsilon: float,
            out: np.ndarray) -> None:  # fmt: skip
    """Fill the change of the impulses of constraint i, while its speeds stay as they are."""
    first, dim, at = sy.row[i], sy.row[i + 1] - sy.row[i], isl.C_at[i]
    if dim == POINT:
        C = vector(isl.C, at, POINT * POINT)
        x, y, z = it.e[first], it.e[first + 1], it.e[first + 2]
        a, b, c = it.b[first], it.b[first + 1], it.b[first + 2]
        a, b, c = a - epsilon * x, b - epsilon * y, c - epsilon * z
        out[first] = x + (C[0] * a + C[1] * b + C[2] * c)
        out[first + 1] = y + (C[3] * a + C[4] * b + C[5] * c)
        out[first + 2] = z + (C[6] * a + C[7] * b + C[8] * c)
        return
    for e in range(dim):
        total = it.e[first + e]
        for f in range(dim):
            k = first + f
            total += isl.C[at + e * dim + f] * (it.b[k] - epsilon * it.e[k])
        out[first + e] = total


@inlined
def follow_speeds(sy: System, isl: Island, i: int, g: np.ndarray, change: np.ndarray) -> None:
    """Take from the change of the impulses what the change g of the speeds makes of them."""
    first, dim, at = sy.row[i], sy.row[i + 1] - sy.row[i], isl.C_at[i]
    if dim == POINT:
        C = vector(isl.C, at, POINT * POINT)
        a, b, c = g[first], g[first + 1], g[first + 2]
        change[first] -= C[0] * a + C[1] * b + C[2] * c
        change[first + 1] -= C[3] * a + C[4] * b + C[5] * c
        change[first + 2] -= C[6] * a + C[7] * b + C[8] * c
        return
    for e in range(dim):
        for f in range(dim):
            change[first + e] -= isl.C[at + e * dim + f] * g[first + f]


@inlined
def step_of_friction(sy: System, it: Interior, i: int, g: np.ndarray, change: np.ndarray,
                     epsilon: float, part: float) -> None:  # fmt: skip
    """Fill the step of a contact with friction whose impulses change by this much."""
    first, end, mu = sy.row[i], sy.row[i + 1], sy.mu[i]
    N, w, dN = it.x[first], it.w[first], change[first]
    it.dx[first] = dN
    it.ds[first] = g[first] + epsilon * dN + part * it.p[first]
    inverse, longer = 1.0 / w, dN / N
    for k in range(first + 1, end):
        it.dx[k] = (it.b[k] - g[k] - epsilon * change[k]) * inverse + it.x[k] * longer
    length2 = square_length(it.x, first, end)
    inner = tangent_product(it.x, it.dx, first, end)
    fewer = 2.0 * inner / (1.0 + length2)
    for k in range(first + 1, end):
        it.dx[k] -= it.x[k] * fewer
    turn = inner - length2 * fewer
    spare = 0.5 * mu * N * max(1.0 - length2, ROUNDING)
    it.dw[first] = (it.a[first] + w * mu * N * turn) / spare - w * longer


@kernel
def find_step(sy: System, isl: Island, it: Interior, v: Vectors, epsilon: float, part: float,
              products: float, tau: float, corrector: bool) -> float:  # fmt: skip
    """Fill v.step, it.dx, it.ds and it.dw; return how long the step may be, see `longest_step`.

    A holds its factors; what the step is to bring is that of `aim`.
    """
    fill(isl, v.step, 0.0)
    for i in isl.member:
        aim(sy, i, it, part, products, tau, corrector)
        respond(sy, isl, it, i, epsilon, v.new)
        add_impulse(sy, i, v.new, v.step)
    block_lu.solve(isl.pattern, isl.trees, isl.A, v.step)
    longest = 1.0 / KEEP
    for i in isl.member:
        first, end, kind = sy.row[i], sy.row[i + 1], kind_of(sy, i)
        speeds(sy, i, v.step, v.uk)
        follow_speeds(sy, isl, i, v.uk, v.new)
        if kind == FRICTION:
            step_of_friction(sy, it, i, v.uk, v.new, epsilon, part)
        else:
            for k in range(first, end):
                it.dx[k] = v.new[k]
            if kind == NORMAL:
                it.ds[first] = v.uk[first] + epsilon * it.dx[first] + part * it.p[first]
            elif kind == BOX:
                low, high = it.x[first] + sy.bound[i], sy.bound[i] - it.x[first]
                it.ds[first] = (it.t[first] - it.s[first] * it.dx[first]) / low
                it.dw[first] = (it.a[first] + it.w[first] * it.dx[first]) / high
        longest = until_boundary(sy, i, it, longest)
    return longest


@inlined
def until_zero(x: float, dx: float) -> float:
    """Return how long a step may be for x to stay positive."""
    return -x / dx if dx < 0.0 else np.inf


@inlined
def until_sliding(x: np.ndarray, dx: np.ndarray, first: int, end: int) -> float:
    """Return how long a step may be for rho to stay within the unit ball."""
    a, b = square_length(dx, first, end), tangent_product(x, dx, first, end)
    c = max(1.0 - square_length(x, first, end), ROUNDING)
    root = b + np.sqrt(b * b + a * c)
    return c / root if root > 0.0 else np.inf


@inlined
def until_boundary(sy: System, i: int, it: Interior, t: float) -> float:
    """Return how long a step may be for a constraint to stay within its boundaries, at most t."""
    first, kind = sy.row[i], kind_of(sy, i)
    if kind == PLAIN:
        return t
    t = min(t, until_zero(it.s[first], it.ds[first]))
    if kind == BOX:
        low, high = it.x[first] + sy.bound[i], sy.bound[i] - it.x[first]
        t = min(t, until_zero(low, it.dx[first]), until_zero(high, -it.dx[first]))
        return min(t, until_zero(it.w[first], it.dw[first]))
    t = min(t, until_zero(it.x[first], it.dx[first]))
    if kind == FRICTION:
        t = min(t, until_zero(it.w[first], it.dw[first]))
        t = min(t, until_sliding(it.x, it.dx, first, sy.row[i + 1]))
    return t


@kernel
def longest_step(sy: System, isl: Island, it: Interior) -> float:
    """Return the length of the longest step, at most 1/KEEP, to a boundary."""
    t = 1.0 / KEEP
    for i in isl.member:
        t = until_boundary(sy, i, it, t)
    return t


@kernel
def move(sy: System, isl: Island, it: Interior, t: float) -> None:
    """Take a step of length t."""
    for i in isl.member:
        first = sy.row[i]
        for k in range(first, sy.row[i + 1]):
            it.x[k] += t * it.dx[k]
        if kind_of(sy, i) != PLAIN:
            it.s[first] += t * it.ds[first]
            it.w[first] += t * it.dw[first]


@inlined
def fill_impulses(sy: System, i: int, it: Interior, r_out: np.ndarray) -> None:
    """Fill the impulses along the rows of a constraint."""
    first, end = sy.row[i], sy.row[i + 1]
    for k in range(first, end):
        r_out[k] = it.x[k]
    if kind_of(sy, i) == FRICTION:
        limit = sy.mu[i] * it.x[first]
        for k in range(first + 1, end):
            r_out[k] *= limit


@kernel
def residual(sy: System, isl: Island, r: np.ndarray, u: np.ndarray) -> float:
    """Return the largest residual of a law; infinite if one is NaN."""
    worst = 0.0
    for i in isl.member:
        miss = natural_map(sy, i, u, r)
        if not miss <= worst:
            worst = miss
    return worst if worst < np.inf else np.inf


@kernel
def look(sy: System, isl: Island, it: Interior, v: Vectors, epsilon: float,
         pull: float) -> tuple[float, float]:  # fmt: skip
    """Fill impulses v.new, their motion v.y and speeds v.u, residuals and derivatives C.

    Returns:
        The largest residual of a law, infinite if one is NaN, and the gap.
    """
    combine(isl, sy.y0, 0.0, sy.y0, v.y)
    for i in isl.member:
        fill_impulses(sy, i, it, v.new)
        add_impulse(sy, i, v.new, v.y)
    worst, total, count = 0.0, 0.0, 0
    for i in isl.member:
        constraint_speeds(sy, i, v.y, v.u)
        miss = natural_map(sy, i, v.u, v.new)
        if not miss <= worst:
            worst = miss
        sum_of, number = products_after(sy, i, it, 0.0)
        total += sum_of
        count += number
        linearise(sy, isl, i, it, v.u, epsilon, pull)
    return (worst if worst < np.inf else np.inf), total / max(count, 1)


@kernel
def local_product(sy: System, isl: Island, it: Interior, ax: np.ndarray, as_: np.ndarray,
                  aw: np.ndarray, bx: np.ndarray, bs: np.ndarray,
                  bw: np.ndarray) -> float:  # fmt: skip
    """Return the inner product of two steps, relative to the distance from all boundaries."""
    total = 0.0
    for i in isl.member:
        first, end, kind = sy.row[i], sy.row[i + 1], kind_of(sy, i)
        if kind == PLAIN:
            continue
        total += as_[first] * bs[first] / square(it.s[first])
        if kind != NORMAL:
            total += aw[first] * bw[first] / square(it.w[first])
        if kind == BOX:
            low, high = it.x[first] + sy.bound[i], sy.bound[i] - it.x[first]
            total += ax[first] * bx[first] * (1.0 / square(low) + 1.0 / square(high))
            continue
        total += ax[first] * bx[first] / square(it.x[first])
        if kind == FRICTION:
            spare = max(1.0 - square_length(it.x, first, end), ROUNDING)
            for k in range(first + 1, end):
                total += ax[k] * bx[k] / spare
    return total


@kernel
def mix(sy: System, isl: Island, it: Interior, a: float, b: float) -> None:
    """Overwrite the step with ``a`` times itself and ``b`` times the tangent of the path."""
    for i in isl.member:
        for k in range(sy.row[i], sy.row[i + 1]):
            it.dx[k] = a * it.dx[k] + b * it.tx[k]
            it.ds[k] = a * it.ds[k] + b * it.ts[k]
            it.dw[k] = a * it.dw[k] + b * it.tw[k]


@kernel
def keep_tangent(sy: System, isl: Island, it: Interior) -> None:
    """Copy the step to the tangent of the path."""
    for i in isl.member:
        for k in range(sy.row[i], sy.row[i + 1]):
            it.tx[k], it.ts[k], it.tw[k] = it.dx[k], it.ds[k], it.dw[k]


@kernel
def step_round_fold(sy: System, isl: Island, it: Interior, v: Vectors, epsilon: float, gap: float,
                    direction: float) -> None:  # fmt: skip
    """Fill a step along the path where the gap hardly changes, or grows.

    It goes along the tangent, and back to the path at right angles to it (pseudo-arclength).

    Args:
        sy, isl, it, v: the island; A holds its factors.
        epsilon: compliance.
        gap: complementarity.
        direction: 1 where the gap falls along the path, else -1.
    """
    find_step(sy, isl, it, v, epsilon, 1.0, 0.0, -gap, False)
    keep_tangent(sy, isl, it)
    length2 = local_product(sy, isl, it, it.tx, it.ts, it.tw, it.tx, it.ts, it.tw)
    mix(sy, isl, it, direction, 0.0)
    along = min(LONG, MOST * longest_step(sy, isl, it))
    find_step(sy, isl, it, v, epsilon, 0.0, 1.0, gap, False)
    share = local_product(sy, isl, it, it.dx, it.ds, it.dw, it.tx, it.ts, it.tw)
    mix(sy, isl, it, 1.0, -share / (length2 + 1.0))
    back = min(1.0, MOST * longest_step(sy, isl, it))
    mix(sy, isl, it, back, direction * along)


@kernel
def follow_path(sy: System, isl: Island, size: int, v: Vectors, it: Interior, CG_work: np.ndarray,
                scale: float, epsilon: float, tolerance: float, rough: float, patient: bool,
                limit: int) -> tuple[int, float]:  # fmt: skip
    """Follow the central path to a gap; the impulses of the best point end in v.best.

    The motion always is the one that the impulses make.

    Args:
        sy, isl, size, v, it, CG_work: the island and work arrays; where to begin is in `it`.
        scale: of speeds, see `begin`.
        epsilon: compliance of a step.
        tolerance: of feasibility and complementarity, relative to that scale.
        rough: what suffices relative to the motion that is found.
        patient: whether to go on for longer without progress.
        limit: iterations.

    Returns:
        Iterations, and what was reached of that tolerance.
    """
    least, stalled, count, turns, before = np.inf, 0, 0, 0, np.inf
    soft, gap = epsilon, gap_after(sy, isl, it, 0.0)
    while True:
        pull = PULL * gap / square(scale)  # compliance about zero
        epsilon = soft + pull
        miss, gap = look(sy, isl, it, v, epsilon, pull)
        miss /= scale
        enough = miss <= tolerance or miss * scale <= rough * norm(isl, v.y)
        stalled = 0 if miss < HARDLY * least else stalled + 1
        if miss < least or count == 0:
            least = miss
            store(sy, isl, v.new, v.best)
        stops = stalled > (LATE_STALLED if least <= LATE else (PATIENT if patient else STALLED))
        if enough or stops or count == limit or not miss < np.inf:
            return count, least
        count += 1
        assemble(sy, isl, size, CG_work)
        block_lu.factor(isl.pattern, isl.trees, isl.A, TINY)
        direction = block_lu.determinant_sign(isl.pattern, isl.trees, isl.A)
        if turns == 0 and gap > NO_GAIN * before:
            turns = TURNS
        before = gap
        if direction < 0.0 or turns > 0:
            step_round_fold(sy, isl, it, v, epsilon, gap, direction)
            move(sy, isl, it, min(1.0, NEAR * longest_step(sy, isl, it)))
            turns = turns - 1 if direction > 0.0 else TURNS
            before = np.inf
            continue
        t = min(find_step(sy, isl, it, v, epsilon, 1.0, 1.0, 0.0, False), 1.0)
        left = min(gap_after(sy, isl, it, t) / gap, 1.0) if gap > 0.0 else 0.0
        part = left * left * left
        if square(miss * scale) > LAGS * gap:
            part = max(part, CENTRE)
        t = find_step(sy, isl, it, v, epsilon, 1.0, 1.0, part * gap, True)
        t = min(max(KEEP, 1.0 - left) * t, 1.0)
        if t < SHORT:  # second-order terms mislead where a first-order step is too long by far
            t = min(KEEP * find_step(sy, isl, it, v, epsilon, 1.0, 1.0, gap, False), 1.0)
            turns = TURNS if t < SHORT else 0
        move(sy, isl, it, t)
