"""LU factorisation of a matrix of dense blocks, sparse as a graph of trees is.

The Newton matrix of an island couples two kinematic trees only where a constraint touches both.
Its blocks are dense, its pattern is symmetric, its values need not be. Trees are eliminated in an
order of minimum degree (`order_trees`), which also lists the blocks that fill in; `factor` then
overwrites them with L (unit diagonal) and U, of whose diagonal it stores the reciprocals. There is
no pivoting between rows: the matrices are the identity plus terms whose symmetric part is positive
where Newton's method is any good, and a pivot that is not positive is reported.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from holdfast._jit import fast_kernel, kernel

SIX = 6  # coordinates of a free body: loops of this length are written out


class Pattern(NamedTuple):
    """Elimination order and filled pattern of `count` trees; k is a place in that order."""

    tree: np.ndarray  # (k,) which tree is eliminated
    size: np.ndarray  # (k,) its coordinates
    first: np.ndarray  # (k,) the first of them
    at: np.ndarray  # (k, k) where a block begins in the values, -1 if it is zero
    later: np.ndarray  # (k, k) the neighbours of k that are eliminated later, in order
    later_count: np.ndarray  # (k,)


@kernel
def order_trees(adjacent: np.ndarray, count: int, tree: np.ndarray, begin: np.ndarray,
                degree_work: np.ndarray, place_work: np.ndarray, out: Pattern) -> int:  # fmt: skip
    """Fill `out` with an order of minimum degree and its fill; return the number of values.

    Args:
        adjacent: (count, count) 1 where a constraint couples two trees; used up.
        count: how many trees there are.
        tree: (count,) their numbers.
        begin: coordinates of tree t begin at begin[t] and end before begin[t + 1].
        degree_work, place_work: (count,) integers.
        out: filled.
    """
    for a in range(count):
        place_work[a] = -1
        degree = 0
        for b in range(count):
            if b != a and adjacent[a, b] != 0:
                degree += begin[tree[b] + 1] - begin[tree[b]]
        degree_work[a] = degree
    for k in range(count):
        best, least = -1, 0
        for a in range(count):
            if place_work[a] < 0 and (best < 0 or degree_work[a] < least):
                best, least = a, degree_work[a]
        place_work[best] = k
        out.tree[k] = tree[best]
        out.first[k] = begin[tree[best]]
        out.size[k] = begin[tree[best] + 1] - begin[tree[best]]
        found = 0
        for a in range(count):
            if place_work[a] < 0 and adjacent[best, a] != 0:
                out.later[k, found] = a
                found += 1
        out.later_count[k] = found
        for p in range(found):  # what is left of its neighbours becomes a clique
            a = out.later[k, p]
            degree_work[a] -= out.size[k]
            for q in range(found):
                b = out.later[k, q]
                if a != b and adjacent[a, b] == 0:
                    adjacent[a, b] = 1
                    degree_work[a] += begin[tree[b] + 1] - begin[tree[b]]
    for k in range(count):  # neighbours by their place in the order, ascending
        found = out.later_count[k]
        for p in range(found):
            place = place_work[out.later[k, p]]
            q = p
            while q > 0 and out.later[k, q - 1] > place:
                out.later[k, q] = out.later[k, q - 1]
                q -= 1
            out.later[k, q] = place
    total = 0
    for k in range(count):
        for a in range(count):
            out.at[k, a] = -1
    for k in range(count):
        out.at[k, k] = total
        total += out.size[k] * out.size[k]
        for p in range(out.later_count[k]):
            a = out.later[k, p]
            out.at[k, a] = total
            total += out.size[k] * out.size[a]
            out.at[a, k] = total
            total += out.size[k] * out.size[a]
    return total


@fast_kernel
def factor_block(A_inout: np.ndarray, at: int, s: int, tiny: float, ends: bool) -> bool:
    """LU factors of a diagonal block in place; False if a pivot is not positive.

    If asked for, it ends there.
    """
    good = True
    for k in range(s):
        row = A_inout[at + k * s : at + k * s + s]
        if not row[k] > tiny:
            good = False
            if ends:
                break
            if abs(row[k]) <= tiny:
                row[k] = tiny
        inverse = 1.0 / row[k]
        row[k] = inverse
        for i in range(k + 1, s):
            other = A_inout[at + i * s : at + i * s + s]
            t = other[k] * inverse
            other[k] = t
            for j in range(k + 1, s):
                other[j] -= t * row[j]
    return good


@fast_kernel
def _divide_right_by_six(A_inout: np.ndarray, block: int, rows: int, pivot: int) -> None:
    """Overwrite a block B (rows x 6) below the pivot with ``B U^-1``."""
    u = A_inout[pivot : pivot + SIX * SIX]
    for i in range(rows):
        b = A_inout[block + i * SIX : block + i * SIX + SIX]
        p = b[0] * u[0]
        q = (b[1] - p * u[1]) * u[7]
        r = (b[2] - p * u[2] - q * u[8]) * u[14]
        x = (b[3] - p * u[3] - q * u[9] - r * u[15]) * u[21]
        y = (b[4] - p * u[4] - q * u[10] - r * u[16] - x * u[22]) * u[28]
        z = (b[5] - p * u[5] - q * u[11] - r * u[17] - x * u[23] - y * u[29]) * u[35]
        b[0], b[1], b[2], b[3], b[4], b[5] = p, q, r, x, y, z


@fast_kernel
def _divide_left_by_six(A_inout: np.ndarray, block: int, pivot: int) -> None:
    """Overwrite a block B (6 x 6) right of the pivot with ``L^-1 B``."""
    for i in range(1, SIX):
        out = A_inout[block + i * SIX : block + i * SIX + SIX]
        p, q, r, x, y, z = out[0], out[1], out[2], out[3], out[4], out[5]
        for k in range(i):
            t, o = A_inout[pivot + i * SIX + k], block + k * SIX
            p -= t * A_inout[o]
            q -= t * A_inout[o + 1]
            r -= t * A_inout[o + 2]
            x -= t * A_inout[o + 3]
            y -= t * A_inout[o + 4]
            z -= t * A_inout[o + 5]
        out[0], out[1], out[2], out[3], out[4], out[5] = p, q, r, x, y, z


@fast_kernel
def _subtract_product_of_six(A_inout: np.ndarray, c: int, a: int, b: int) -> None:
    """Subtract the product of blocks a and b from block c, all 6 x 6: a row stays in registers.

    One function for this loop and that of `_divide_left_by_six` would take twice as long.
    """
    for i in range(SIX):
        out = A_inout[c + i * SIX : c + i * SIX + SIX]
        p, q, r, x, y, z = out[0], out[1], out[2], out[3], out[4], out[5]
        for k in range(SIX):
            t, o = A_inout[a + i * SIX + k], b + k * SIX
            p -= t * A_inout[o]
            q -= t * A_inout[o + 1]
            r -= t * A_inout[o + 2]
            x -= t * A_inout[o + 3]
            y -= t * A_inout[o + 4]
            z -= t * A_inout[o + 5]
        out[0], out[1], out[2], out[3], out[4], out[5] = p, q, r, x, y, z


@fast_kernel
def _divide_right(A_inout: np.ndarray, block: int, rows: int, pivot: int, s: int) -> None:
    """Overwrite a block B (rows x s) below the pivot with ``B U^-1``."""
    if s == SIX:
        _divide_right_by_six(A_inout, block, rows, pivot)
        return
    for i in range(rows):
        b = A_inout[block + i * s : block + i * s + s]
        for k in range(s):
            u = A_inout[pivot + k * s : pivot + k * s + s]
            t = b[k] * u[k]
            b[k] = t
            for j in range(k + 1, s):
                b[j] -= t * u[j]


@fast_kernel
def _divide_left(A_inout: np.ndarray, block: int, columns: int, pivot: int, s: int) -> None:
    """Overwrite a block B (s x columns) right of the pivot with ``L^-1 B``."""
    if s == SIX and columns == SIX:
        _divide_left_by_six(A_inout, block, pivot)
        return
    for i in range(1, s):
        b = A_inout[block + i * columns : block + i * columns + columns]
        for k in range(i):
            t = A_inout[pivot + i * s + k]
            a = A_inout[block + k * columns : block + k * columns + columns]
            for j in range(columns):
                b[j] -= t * a[j]


@fast_kernel
def _subtract_product(A_inout: np.ndarray, c: int, a: int, b: int, rows: int, s: int,
                      columns: int) -> None:  # fmt: skip
    """Subtract the product of block a (rows x s) and block b (s x columns) from block c."""
    if rows == SIX and s == SIX and columns == SIX:
        _subtract_product_of_six(A_inout, c, a, b)
        return
    for i in range(rows):
        out = A_inout[c + i * columns : c + i * columns + columns]
        left = A_inout[a + i * s : a + i * s + s]
        for k in range(s):
            t = left[k]
            right = A_inout[b + k * columns : b + k * columns + columns]
            for j in range(columns):
                out[j] -= t * right[j]


@kernel
def factor(pattern: Pattern, count: int, A_inout: np.ndarray, tiny: float) -> bool:
    """Overwrite the blocks with L and U; return whether all pivots are positive.

    Args:
        pattern: see `order_trees`.
        count: number of trees.
        A_inout: values of the blocks.
        tiny: pivots below this are taken for it.
    """
    good = True
    for k in range(count):
        s, pivot = pattern.size[k], pattern.at[k, k]
        good = factor_block(A_inout, pivot, s, tiny, False) and good
        for p in range(pattern.later_count[k]):
            i = pattern.later[k, p]
            _divide_right(A_inout, pattern.at[i, k], pattern.size[i], pivot, s)
            _divide_left(A_inout, pattern.at[k, i], pattern.size[i], pivot, s)
        for p in range(pattern.later_count[k]):
            i = pattern.later[k, p]
            for q in range(pattern.later_count[k]):
                j = pattern.later[k, q]
                _subtract_product(
                    A_inout, pattern.at[i, j], pattern.at[i, k], pattern.at[k, j],
                    pattern.size[i], s, pattern.size[j],
                )  # fmt: skip
    return good


@fast_kernel
def _subtract_times(A: np.ndarray, at: int, rows: int, columns: int, x: np.ndarray,
                    y_inout: np.ndarray) -> None:  # fmt: skip
    """Subtract a block times x from y."""
    if columns == SIX:
        p, q, r, u, v, w = x[0], x[1], x[2], x[3], x[4], x[5]
        for i in range(rows):
            a = A[at + i * SIX : at + i * SIX + SIX]
            y_inout[i] -= (a[0] * p + a[1] * q + a[2] * r) + (a[3] * u + a[4] * v + a[5] * w)
        return
    for i in range(rows):
        t = 0.0
        a = A[at + i * columns : at + i * columns + columns]
        for j in range(columns):
            t += a[j] * x[j]
        y_inout[i] -= t


@fast_kernel
def _solve_lower(A: np.ndarray, at: int, s: int, x_inout: np.ndarray) -> None:
    """Overwrite x with the solution of ``L x = x``, of a diagonal block that is factored.

    By columns: what is known is taken from all others at once, and none waits for a sum.
    """
    for k in range(s - 1):
        t = x_inout[k]
        for i in range(k + 1, s):
            x_inout[i] -= A[at + i * s + k] * t


@fast_kernel
def _solve_upper(A: np.ndarray, at: int, s: int, x_inout: np.ndarray) -> None:
    """Overwrite x with the solution of ``U x = x``, of a diagonal block that is factored."""
    for k in range(s - 1, -1, -1):
        t = x_inout[k] * A[at + k * (s + 1)]
        x_inout[k] = t
        for i in range(k):
            x_inout[i] -= A[at + i * s + k] * t


@kernel
def solve_block(A: np.ndarray, at: int, s: int, x_inout: np.ndarray) -> None:
    """Overwrite x with the solution of ``L U x = x``, of a single block that is factored."""
    _solve_lower(A, at, s, x_inout)
    _solve_upper(A, at, s, x_inout)


@kernel
def solve(pattern: Pattern, count: int, A: np.ndarray, x_inout: np.ndarray) -> None:
    """Overwrite the coordinates of these trees in x with the solution of ``L U x = x``."""
    for k in range(count):
        s, at, first = pattern.size[k], pattern.at[k, k], pattern.first[k]
        x = x_inout[first : first + s]
        _solve_lower(A, at, s, x)
        for p in range(pattern.later_count[k]):
            i = pattern.later[k, p]
            o, n = pattern.first[i], pattern.size[i]
            _subtract_times(A, pattern.at[i, k], n, s, x, x_inout[o : o + n])
    for k in range(count - 1, -1, -1):
        s, at, first = pattern.size[k], pattern.at[k, k], pattern.first[k]
        x = x_inout[first : first + s]
        for p in range(pattern.later_count[k]):
            i = pattern.later[k, p]
            o, n = pattern.first[i], pattern.size[i]
            _subtract_times(A, pattern.at[k, i], s, n, x_inout[o : o + n], x)
        _solve_upper(A, at, s, x)


@kernel
def determinant_sign(pattern: Pattern, count: int, A: np.ndarray) -> float:
    """Return the sign of the determinant of blocks that are factored."""
    sign = 1.0
    for k in range(count):
        s, at = pattern.size[k], pattern.at[k, k]
        for j in range(s):
            if A[at + j * (s + 1)] < 0.0:
                sign = -sign
    return sign
