r"""The answer for given states where rows that carry are few: a system in the impulses.

The matrix of an island in `holdfast.contact.active_set` has as many rows as there are coordinates.
Where fewer rows carry, the Delassus matrix :math:`W = G G^T` of those is smaller, and with
:math:`u = u^0 + W r` the law of given states is

.. math:: \rho\, r + u = 0 \;\text{(what holds)}, \qquad
          r_T - \mu r_N q + \kappa (I - q q^T) u_T = 0 \;\text{(what slides)}

the same equations, with the same compliance, and so the same answer. Steps that take the
compliance out need no motion, only W. Where rows are far from dependent, one answer alone obeys the
law without any compliance, and it is found without.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

import numpy as np

from holdfast._jit import fast_kernel, inlined, kernel
from holdfast.contact.cone import OPEN, SLIDE, STICK
from holdfast.contact.newton import Island, Vectors
from holdfast.contact.system import DISC, HELD, LINEAR, System
from holdfast.linalg import block_lu
from holdfast.linalg.ltl import POINT
from holdfast.linalg.vectors import add, dot, square
from holdfast.linalg.views import part, vector

INDEPENDENT = 1e-3  # pivots of rows, which have length one, that are far from dependent
MOST = 48  # rows that carry, at most: the matrix is dense


@kernel
def carries(sy: System, i: int, state: int) -> bool:
    """Return whether constraint i carries anything in this state."""
    kind = sy.tangent[i]
    if sy.normal[i] == 1 and state != OPEN:
        return True
    if kind == DISC:
        return sy.normal[i] == 0 or state == STICK
    return kind in (HELD, LINEAR)


@kernel
def count_rows(sy: System, isl: Island, state: np.ndarray) -> int:
    """Return how many rows the constraints have that carry in these states."""
    count = 0
    for i in isl.member:
        if carries(sy, i, state[i]):
            count += sy.row[i + 1] - sy.row[i]
    return count


@kernel
def memory(rows: int) -> int:
    """Return the memory of a system of so many rows."""
    return 2 * rows * rows + 5 * rows


@kernel
def most_rows(rows: int, coordinates: int) -> int:
    """Return for how many rows an island that has so many in all should have memory."""
    return min(rows, coordinates, MOST)


@fast_kernel
def _multiply_points(G: np.ndarray, a: int, b: int, size: int, W_inout: np.ndarray, i: int,
                     j: int) -> None:  # fmt: skip
    """Add the products of three rows of a tree with three others."""
    p0, p1, p2 = vector(G, a, size), vector(G, a + size, size), vector(G, a + 2 * size, size)
    q0, q1, q2 = vector(G, b, size), vector(G, b + size, size), vector(G, b + 2 * size, size)
    s00 = s01 = s02 = s10 = s11 = s12 = s20 = s21 = s22 = 0.0
    for k in range(size):
        x, y, z, p, q, r = p0[k], p1[k], p2[k], q0[k], q1[k], q2[k]
        s00 += x * p
        s01 += x * q
        s02 += x * r
        s10 += y * p
        s11 += y * q
        s12 += y * r
        s20 += z * p
        s21 += z * q
        s22 += z * r
    w0, w1, w2 = W_inout[i], W_inout[i + 1], W_inout[i + 2]
    w0[j] += s00
    w0[j + 1] += s01
    w0[j + 2] += s02
    w1[j] += s10
    w1[j + 1] += s11
    w1[j + 2] += s12
    w2[j] += s20
    w2[j + 1] += s21
    w2[j + 2] += s22


@kernel
def _multiply(sy: System, i: int, j: int, a: int, b: int, W_inout: np.ndarray) -> None:
    """Add the products of the rows of two constraints, which begin at a and b in W."""
    rows, columns = sy.row[i + 1] - sy.row[i], sy.row[j + 1] - sy.row[j]
    for p in range(sy.panel[i], sy.panel[i + 1]):
        t = sy.panel_tree[p]
        size = sy.tree[t + 1] - sy.tree[t]
        for q in range(sy.panel[j], sy.panel[j + 1]):
            if sy.panel_tree[q] != t:
                continue
            one, other = sy.panel_at[p], sy.panel_at[q]
            if rows == POINT and columns == POINT:
                _multiply_points(sy.G, one, other, size, W_inout, a, b)
                continue
            for e in range(rows):
                row = vector(sy.G, one + e * size, size)
                for f in range(columns):
                    W_inout[a + e, b + f] += dot(row, vector(sy.G, other + f * size, size))


@kernel
def find_places(sy: System, isl: Island, v: Vectors, state: np.ndarray, place_out: np.ndarray,
                u0_out: np.ndarray) -> None:  # fmt: skip
    """Fill where constraints that carry begin in the system, by their first rows, or -1.

    The speeds of their rows in the free motion are filled, too.
    """
    at = 0
    for i in isl.member:
        first, dim = sy.row[i], sy.row[i + 1] - sy.row[i]
        if dim == 0:
            continue
        place_out[first] = -1.0
        if carries(sy, i, state[i]):
            place_out[first] = at
            for e in range(dim):
                u0_out[at + e] = v.free[first + e]
            at += dim


@kernel
def same_places(sy: System, isl: Island, state: np.ndarray, place: np.ndarray) -> bool:
    """Return whether those constraints carry in these states that the places are of."""
    same = True
    for i in isl.member:
        first = sy.row[i]
        if sy.row[i + 1] > first:
            same = same and (place[first] >= 0.0) == carries(sy, i, state[i])
    return same


@inlined
def place_of(sy: System, i: int, place: np.ndarray) -> int:
    """Return where constraint i begins in the system; -1 if it does not carry."""
    first = sy.row[i]
    return int(place[first]) if sy.row[i + 1] > first else -1


@kernel
def fill_matrix(sy: System, isl: Island, place: np.ndarray, W_out: np.ndarray) -> None:
    """Fill the Delassus matrix of the rows that carry."""
    count = W_out.shape[0]
    for a in range(count):
        for b in range(count):
            W_out[a, b] = 0.0
    for i in isl.member:
        a = place_of(sy, i, place)
        if a < 0:
            continue
        for j in isl.member:
            b = place_of(sy, j, place)
            if b >= 0:
                _multiply(sy, i, j, a, b, W_out)
            if j == i:
                break
    for a in range(count):
        for b in range(a):
            W_out[b, a] = W_out[a, b]


@kernel
def fill_law(sy: System, isl: Island, state: np.ndarray, v: Vectors, place: np.ndarray,
             held: float, rho: float, W: np.ndarray, u0: np.ndarray, B_out: np.ndarray,
             soft_out: np.ndarray, right_out: np.ndarray) -> None:  # fmt: skip
    """Fill the linear law ``B r = right`` with a compliance of rows that hold.

    Impulses v.r and speeds v.u say where contacts slide to; rho is the least compliance across the
    direction of sliding. Of rows that hold, `soft_out` is the
    compliance that belongs to the law; of others it is negative.
    """
    for a in range(W.shape[0]):
        for b in range(W.shape[0]):
            B_out[a, b] = W[a, b]
    for i in isl.member:
        at = place_of(sy, i, place)
        if at < 0:
            continue
        first, dim, kind = sy.row[i], sy.row[i + 1] - sy.row[i], sy.tangent[i]
        begin = sy.normal[i]
        slides = kind == DISC and begin == 1 and state[i] == SLIDE
        for e in range(dim):
            k = at + e
            pressed = e < begin and state[i] != OPEN
            sticks = e >= begin and (kind == HELD or (kind == DISC and state[i] == STICK))
            gives = e >= begin and kind == LINEAR
            if (pressed or sticks or gives) and sy.scale[first + e] > 0.0:
                soft_out[k] = sy.R[first + e] if gives else 0.0
                B_out[k, k] += soft_out[k] if soft_out[k] > 0.0 else held
                right_out[k] = -u0[k]
                continue
            soft_out[k], right_out[k] = -1.0, 0.0  # carries nothing, or what is known
            for j in range(W.shape[0]):
                B_out[k, j] = 0.0
            B_out[k, k] = 1.0
            if kind == DISC and begin == 0:
                right_out[k] = sy.bound[i] if v.r[first] > v.u[first] else -sy.bound[i]
        if slides:
            _slide(sy, i, v, rho, W, u0, at, B_out, right_out)


@kernel
def _slide(sy: System, i: int, v: Vectors, rho: float, W: np.ndarray, u0: np.ndarray, at: int,
           B_inout: np.ndarray, right_out: np.ndarray) -> None:  # fmt: skip
    """Fill the rows of tangents that slide; those of the unit matrix are there."""
    first, dim = sy.row[i], sy.row[i + 1] - sy.row[i]
    size = 0.0
    for k in range(first + 1, first + dim):
        size += square(v.r[k] - v.u[k])
    size = np.sqrt(size)
    limit, stiff = sy.mu[i] * max(v.r[first], 0.0), 1.0 / rho
    inverse = 1.0 / size if size > 0.0 else 0.0
    kappa = stiff if size <= limit * (1.0 + rho) else min(stiff, limit / (size - limit))
    scale = 1.0 / max(1.0, kappa)
    for e in range(1, dim):
        q = (v.r[first + e] - v.u[first + e]) * inverse
        row = B_inout[at + e]
        row[at + e] = scale
        for f in range(1, dim):
            t = (1.0 if e == f else 0.0) - q * (v.r[first + f] - v.u[first + f]) * inverse
            add(scale * kappa * t, W[at + f], row)
            right_out[at + e] -= scale * kappa * t * u0[at + f]
        row[at] -= scale * sy.mu[i] * q


@fast_kernel
def _speeds(W: np.ndarray, u0: np.ndarray, r: np.ndarray, u_out: np.ndarray) -> None:
    """Fill ``u0 + W r``; W is symmetric."""
    count = u0.shape[0]
    for j in range(count):
        u_out[j] = u0[j]
    k = 0
    while k + POINT <= count:
        x, y, z, a, b, c = r[k], r[k + 1], r[k + 2], W[k], W[k + 1], W[k + 2]
        for j in range(count):
            u_out[j] += x * a[j] + y * b[j] + z * c[j]
        k += POINT
    while k < count:
        add(r[k], W[k], u_out)
        k += 1


@kernel
def _misses(soft: np.ndarray, r: np.ndarray, u: np.ndarray, right_out: np.ndarray) -> float:
    """Fill what rows that hold miss, with the other sign; return the largest."""
    worst = 0.0
    for k in range(r.shape[0]):
        right_out[k] = 0.0
        if soft[k] >= 0.0:
            right_out[k] = -(u[k] + soft[k] * r[k])
            worst = max(worst, abs(right_out[k]))
    return worst


@kernel
def spread(sy: System, isl: Island, place: np.ndarray, r: np.ndarray, out: np.ndarray) -> None:
    """Fill the impulses of all rows of an island with those that carry, and zeros."""
    for i in isl.member:
        first, at = sy.row[i], place_of(sy, i, place)
        for e in range(sy.row[i + 1] - first):
            out[first + e] = r[at + e] if at >= 0 else 0.0


@kernel
def solve_rows(sy: System, isl: Island, v: Vectors, state: np.ndarray, rho: float, rows: int,
               enough: float, rounds: int, tiny: float, again: bool) -> None:  # fmt: skip
    """Fill v.new with the impulses of given states, v.r with those before compliance is taken out.

    Args:
        sy, isl: the island.
        v: speeds of the free motion are in v.free; impulses v.r and speeds v.u say where contacts
            slide to.
        state: of all constraints.
        rho: compliance.
        rows: how many carry.
        enough: speed of rows that hold at which refinement ends.
        rounds: of refinement, at most.
        tiny: smallest pivot.
        again: whether memory holds the last system of the same island.
    """
    W, B = part(isl.rows, 0, rows, rows), part(isl.rows, rows * rows, rows, rows)
    vectors = part(isl.rows, 2 * rows * rows, 5, rows)
    u0, soft, x, r, u = vectors[0], vectors[1], vectors[2], vectors[3], vectors[4]
    place = v.best
    if not (again and same_places(sy, isl, state, place)):
        find_places(sy, isl, v, state, place, u0)
        fill_matrix(sy, isl, place, W)
    fill_law(sy, isl, state, v, place, 0.0, rho, W, u0, B, soft, r)
    independent = block_lu.factor_block(isl.rows, rows * rows, rows, INDEPENDENT, True)
    if not independent:
        fill_law(sy, isl, state, v, place, rho, rho, W, u0, B, soft, r)
        block_lu.factor_block(isl.rows, rows * rows, rows, tiny, False)
    block_lu.solve_block(isl.rows, rows * rows, rows, r)
    for k in range(rows):
        x[k] = 0.0
        if independent and soft[k] == 0.0:  # what compliance would take, to first order
            x[k] = -rho * r[k]
    if independent:
        block_lu.solve_block(isl.rows, rows * rows, rows, x)
    add(1.0, r, x)
    spread(sy, isl, place, x, v.r)
    _speeds(W, u0, r, u)
    miss = _misses(soft, r, u, x)
    for _ in range(rounds):
        if miss <= enough:
            break
        block_lu.solve_block(isl.rows, rows * rows, rows, x)
        add(1.0, x, r)
        _speeds(W, u0, r, u)
        before, miss = miss, _misses(soft, r, u, x)
        if not miss < 0.3 * before:
            break
    spread(sy, isl, place, r, v.new)
