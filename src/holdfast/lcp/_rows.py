"""Contact rows as the kernels see them: the original ones, and the whitened candidates.

Original rows are `values` (n, width) with `offsets`: empty for dense rows (width m), else (n, K),
the coordinate at which each of the K blocks (bodies) that a row touches begins (width K s).

Whitening turns row N_i into a_i = L^-1 N_i' / d_i, of length 1, so that the LCP becomes a
projection in plain Euclidean space and all rows can be judged by one tolerance. Candidates are
kept in one of two layouts:

* dense: `A` is (m, capacity), transposed, so that the loops over contacts vectorise; coordinate
  j is zero outside the contacts [low[j], high[j]) and is not visited there.
* blocks: `A` is (capacity, K s), a row keeps only the blocks that it touches, and `offset`
  (capacity, K) says where in the motion they begin. Used where the blocks are those of M.
"""

from __future__ import annotations

import numpy as np

from holdfast.lcp._envelope import solve_lower_block
from holdfast.lcp._kernel import fast_kernel, kernel

BODY = 6  # coordinates of a free rigid body: the block size with an unrolled loop


@fast_kernel
def rows_dot(
    values: np.ndarray,
    offsets: np.ndarray,
    x: np.ndarray,
    begin: int,
    end: int,
    stride: int,
    w_out: np.ndarray,
) -> None:
    """Fill w_out[i] with row i times x, for i in range(begin, end, stride)."""
    if offsets.shape[0] == 0:
        i = begin
        while i + 3 * stride < end:  # four rows share each load of x
            p, q, r = i + stride, i + 2 * stride, i + 3 * stride
            t0, t1, t2, t3 = 0.0, 0.0, 0.0, 0.0
            for j in range(values.shape[1]):
                t0 += values[i, j] * x[j]
                t1 += values[p, j] * x[j]
                t2 += values[q, j] * x[j]
                t3 += values[r, j] * x[j]
            w_out[i], w_out[p], w_out[q], w_out[r] = t0, t1, t2, t3
            i += 4 * stride
        while i < end:
            t0 = 0.0
            for j in range(values.shape[1]):
                t0 += values[i, j] * x[j]
            w_out[i] = t0
            i += stride
        return
    K = offsets.shape[1]
    s = values.shape[1] // K
    if s == BODY and K == 2:
        for i in range(begin, end, stride):
            p, q = offsets[i, 0], offsets[i, 1]
            w_out[i] = (
                (values[i, 0] * x[p] + values[i, 1] * x[p + 1])
                + (values[i, 2] * x[p + 2] + values[i, 3] * x[p + 3])
                + (values[i, 4] * x[p + 4] + values[i, 5] * x[p + 5])
            ) + (
                (values[i, 6] * x[q] + values[i, 7] * x[q + 1])
                + (values[i, 8] * x[q + 2] + values[i, 9] * x[q + 3])
                + (values[i, 10] * x[q + 4] + values[i, 11] * x[q + 5])
            )
        return
    for i in range(begin, end, stride):
        t0 = 0.0
        for k in range(K):
            o = offsets[i, k]
            for j in range(s):
                t0 += values[i, k * s + j] * x[o + j]
        w_out[i] = t0


@fast_kernel
def rows_length2(
    values: np.ndarray,
    offsets: np.ndarray,
    weight: np.ndarray,
    begin: int,
    end: int,
    stride: int,
    length2_out: np.ndarray,
) -> None:
    """Fill length2_out[0, 1, ...] with the squared length of rows begin, begin + stride, ...

    The length is in the metric of `weight`, 1 / diagonal of M: cheap, and never more than
    sqrt(m) times the true one.
    """
    r = 0
    if offsets.shape[0] == 0:
        for i in range(begin, end, stride):
            t = 0.0
            for j in range(values.shape[1]):
                t += values[i, j] * values[i, j] * weight[j]
            length2_out[r] = t
            r += 1
        return
    K = offsets.shape[1]
    s = values.shape[1] // K
    for i in range(begin, end, stride):
        t = 0.0
        for k in range(K):
            o = offsets[i, k]
            for j in range(s):
                t += values[i, k * s + j] * values[i, k * s + j] * weight[o + j]
        length2_out[r] = t
        r += 1


@kernel
def scatter(values: np.ndarray, offsets: np.ndarray, i: int, a_out: np.ndarray) -> None:
    """Fill a_out (m) with row i."""
    if offsets.shape[0] == 0:
        for j in range(a_out.shape[0]):
            a_out[j] = values[i, j]
        return
    for j in range(a_out.shape[0]):
        a_out[j] = 0.0
    K = offsets.shape[1]
    s = values.shape[1] // K
    for k in range(K):
        o = offsets[i, k]
        for j in range(s):
            a_out[o + j] += values[i, k * s + j]


@fast_kernel
def whitened_norm(
    values: np.ndarray,
    offsets: np.ndarray,
    i: int,
    L: np.ndarray,
    first: np.ndarray,
    a_work: np.ndarray,
) -> float:
    """Return d_i = |L^-1 N_i'|, the length of row i in the metric of M^-1."""
    scatter(values, offsets, i, a_work)
    s = L.shape[1]
    for k in range(L.shape[0]):
        for j in range(k * s, k * s + s):
            if a_work[j] != 0.0:
                solve_lower_block(L, first, k, k * s, a_work)
                break
    d = 0.0
    for j in range(a_work.shape[0]):
        d += a_work[j] * a_work[j]
    return np.sqrt(d)


@fast_kernel
def whiten(
    values: np.ndarray,
    offsets: np.ndarray,
    L: np.ndarray,
    first: np.ndarray,
    rows: np.ndarray,
    begin: int,
    end: int,
    A_out: np.ndarray,
    offset_out: np.ndarray,
    low_out: np.ndarray,
    high_out: np.ndarray,
    d_out: np.ndarray,
) -> None:
    """Fill candidates begin..end of A_out with the whitened unit rows, d_out with their lengths.

    `rows[r]` is the original row of candidate r. A row of zeros gets d = 0 and stays zero.
    """
    if offset_out.shape[0] > 0:
        _whiten_blocks(values, offsets, L, first, rows, begin, end, A_out, offset_out, d_out)
    else:
        _copy_columns(values, offsets, rows, begin, end, A_out, low_out, high_out)
        _whiten_columns(L, first, begin, end, A_out, low_out, high_out, d_out)


@fast_kernel
def _whiten_blocks(values, offsets, L, first, rows, begin, end, A_out, offset_out, d_out):
    """Fill candidates begin..end in block layout."""
    K = offsets.shape[1]
    s = values.shape[1] // K
    for r in range(begin, end):
        i = rows[r]
        for c in range(K * s):
            A_out[r, c] = values[i, c]
        for k in range(K):
            offset_out[r, k] = offsets[i, k]
            for e in range(k):  # the same body named twice: merge into the first block
                if offsets[i, e] == offsets[i, k]:
                    for j in range(s):
                        A_out[r, e * s + j] += A_out[r, k * s + j]
                        A_out[r, k * s + j] = 0.0
                    break
        t = 0.0
        for k in range(K):
            if L.shape[0] > 0:
                solve_lower_block(L, first, offsets[i, k] // s, k * s, A_out[r])
            for j in range(k * s, k * s + s):
                t += A_out[r, j] * A_out[r, j]
        d_out[r] = np.sqrt(t)
        if t > 0.0:
            scale = 1.0 / d_out[r]
            for j in range(K * s):
                A_out[r, j] *= scale


@kernel
def _copy_columns(values, offsets, rows, begin, end, A_out, low_out, high_out):
    """Fill columns begin..end of A_out with original rows, and note where coordinates are used."""
    m = A_out.shape[0]
    for r in range(begin, end):
        i = rows[r]
        if offsets.shape[0] == 0:
            for j in range(m):
                a = values[i, j]
                A_out[j, r] = a
                if a != 0.0:
                    low_out[j] = min(low_out[j], r)
                    high_out[j] = max(high_out[j], r + 1)
        else:
            for j in range(m):
                A_out[j, r] = 0.0
            K = offsets.shape[1]
            s = values.shape[1] // K
            for k in range(K):
                for j in range(s):
                    o = offsets[i, k] + j
                    A_out[o, r] += values[i, k * s + j]
                    low_out[o] = min(low_out[o], r)
                    high_out[o] = max(high_out[o], r + 1)


@fast_kernel
def _whiten_columns(L, first, begin, end, A_out, low_out, high_out, d_out):
    """Overwrite columns begin..end of A_out with L^-1 times themselves, normalised.

    Forward substitution for all columns at once: the inner loop runs over contacts.
    """
    m = A_out.shape[0]
    s = L.shape[1]
    for r in range(begin, end):
        d_out[r] = 0.0
    for i in range(m):
        if L.shape[0] > 0:
            k = i // s
            o = k * s
            for c in range(first[i], i - o):
                f = L[k, i - o, c]
                lo = max(begin, low_out[o + c])
                hi = min(end, high_out[o + c])
                if f != 0.0 and lo < hi:
                    low_out[i] = min(low_out[i], lo)
                    high_out[i] = max(high_out[i], hi)
                    for r in range(lo, hi):
                        A_out[i, r] -= f * A_out[o + c, r]
            f = 1.0 / L[k, i - o, i - o]
            for r in range(max(begin, low_out[i]), min(end, high_out[i])):
                A_out[i, r] *= f
        for r in range(max(begin, low_out[i]), min(end, high_out[i])):
            d_out[r] += A_out[i, r] * A_out[i, r]
    for r in range(begin, end):
        d_out[r] = np.sqrt(d_out[r])
    for i in range(m):
        for r in range(max(begin, low_out[i]), min(end, high_out[i])):
            A_out[i, r] /= d_out[r] if d_out[r] > 0.0 else 1.0


@kernel
def load(A: np.ndarray, offset: np.ndarray, r: int, a_out: np.ndarray) -> None:
    """Fill a_out (m) with candidate r."""
    if offset.shape[0] > 0:
        scatter(A, offset, r, a_out)
    else:
        for j in range(a_out.shape[0]):
            a_out[j] = A[j, r]


@fast_kernel
def separation(
    A: np.ndarray,
    offset: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    beta: np.ndarray,
    y: np.ndarray,
    w_out: np.ndarray,
    count: int,
) -> None:
    """Fill w_out[:count] with A y + beta: the normalised separation speed of each candidate."""
    if offset.shape[0] > 0:
        begin, stride = count - count, max(1, count - count)  # plain ints: one compiled version
        rows_dot(A, offset, y, begin, count, stride, w_out)
        for r in range(count):
            w_out[r] += beta[r]
        return
    m = A.shape[0]
    for r in range(count):
        w_out[r] = beta[r]
    j = 0
    while j + 4 <= m:  # four coordinates at once: w is read and written a quarter as often
        y0, y1, y2, y3 = y[j], y[j + 1], y[j + 2], y[j + 3]
        begin = min(min(low[j], low[j + 1]), min(low[j + 2], low[j + 3]))
        end = max(max(high[j], high[j + 1]), max(high[j + 2], high[j + 3]))
        for r in range(begin, end):
            w_out[r] += (y0 * A[j, r] + y1 * A[j + 1, r]) + (y2 * A[j + 2, r] + y3 * A[j + 3, r])
        j += 4
    while j < m:
        y0 = y[j]
        for r in range(low[j], high[j]):
            w_out[r] += y0 * A[j, r]
        j += 1
