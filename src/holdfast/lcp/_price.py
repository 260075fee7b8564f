"""One pass over all rows: is any contact violated, and which are worth pivoting on?

The name is that of linear programming, where looking for a variable worth entering is called
pricing. A pass costs one product of N with the motion and, where some w are negative, the lengths
of those rows; everything else touches the few rows that are really violated.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

import numpy as np

from holdfast._jit import fast_kernel, kernel
from holdfast.lcp._pivoting import Candidates
from holdfast.lcp._rows import rows_dot, rows_length2, whitened_norm
from holdfast.lcp._state import CANDIDATES, CHUNK

FAIRLY_SURE = 1e3  # ratio of a row's true length to its estimate that only a very stiff M exceeds


@fast_kernel
def price(
    values: np.ndarray,
    offsets: np.ndarray,
    b: np.ndarray,
    lo: np.ndarray,
    hi: np.ndarray,
    L: np.ndarray,
    first: np.ndarray,
    weight: np.ndarray,
    x: np.ndarray,
    a_work: np.ndarray,
    w_work: np.ndarray,
    length2_work: np.ndarray,
    w_out: np.ndarray,
    row_out: np.ndarray,
    violation_out: np.ndarray,
    tol: float,
    shortest: float,
    stride: int,
    sure: float,
) -> float:
    """One pass over every stride-th row: fill w_out = N x + b there, and pick violated contacts.

    Violated contacts are sorted into buckets; bucket k keeps in row_out[k] the contact of its
    kind (same bodies, or same stretch of the list) that is violated most, and by how much in
    violation_out[k]. So a pass brings back many different rows instead of many copies of one.

    Args:
        weight: 1 / diagonal of M, for a cheap estimate of a row's length.
        tol: smallest violation per unit of row length that counts.
        shortest: rows without an offset up to this length are rounding, and are ignored.
        sure: a violation above `sure * tol` by the estimate is taken for one; below, the true
            length of the row decides.

    Returns:
        The largest violation, or NaN if some row holds a number that is not finite.
    """
    n = values.shape[0]
    buckets = row_out.shape[0]
    largest = 0.0
    threshold = tol * tol / x.shape[0] if x.shape[0] > 0 else 0.0  # lengths may be sqrt(m) too long
    for k in range(buckets):
        row_out[k] = -1
        violation_out[k] = 0.0
    begin = np.int64(0)  # not a literal: one compiled version of what it is passed to
    while begin < n:
        end = min(n, begin + CHUNK * stride)
        count = (end - begin + stride - 1) // stride
        rows_dot(values, offsets, x, begin, end, stride, w_work)
        if b.shape[0] > 0:
            for r in range(count):
                w_work[r] += b[begin + r * stride]
        # Two looks without a branch, so that they vectorise: is any w negative or not a number,
        # and is any of them more than rounding of its row?
        suspects = 0
        not_finite = 0.0
        for r in range(count):
            w_out[begin + r * stride] = w_work[r]
            suspects += 1 if w_work[r] < 0.0 else 0
            not_finite += w_work[r] - w_work[r]
        if not_finite != 0.0:
            return np.nan
        if suspects > 0:
            rows_length2(values, offsets, weight, begin, end, stride, length2_work)
            suspects = 0
            for r in range(count):
                if b.shape[0] == 0 or b[begin + r * stride] == 0.0:
                    w_work[r] = w_work[r] if length2_work[r] > shortest * shortest else 0.0
                w = w_work[r] if w_work[r] < 0.0 else 0.0
                suspects += 1 if w * w > threshold * length2_work[r] else 0
        if suspects > 0:
            for r in range(count):
                i, w, length2 = begin + r * stride, w_work[r], length2_work[r]
                if w < 0.0 and w * w > threshold * length2:
                    violation = _violation(
                        values, offsets, lo, hi, L, first, a_work, i, w, length2, tol, sure
                    )
                    if violation > 0.0:
                        largest = max(largest, violation)
                        k = _bucket(offsets, i, n, buckets, L.shape[0], max(1, L.shape[1]))
                        if violation > violation_out[k]:
                            violation_out[k] = violation
                            row_out[k] = i
        begin = end
    return largest


@fast_kernel
def longest_row(values: np.ndarray, offsets: np.ndarray, weight: np.ndarray, stride: int) -> float:
    """Return the largest length of every stride-th row, in the metric of `rows_length2`."""
    longest = 0.0
    if offsets.shape[0] == 0:
        for i in range(0, values.shape[0], stride):
            length2 = 0.0
            for j in range(values.shape[1]):
                length2 += values[i, j] * values[i, j] * weight[j]
            longest = max(longest, length2)
        return np.sqrt(longest)
    K = offsets.shape[1]
    s = values.shape[1] // K
    for i in range(0, values.shape[0], stride):
        length2 = 0.0
        for k in range(K):
            o = offsets[i, k]
            for j in range(s):
                length2 += values[i, k * s + j] * values[i, k * s + j] * weight[o + j]
        longest = max(longest, length2)
    return np.sqrt(longest)


@kernel
def look(
    values: np.ndarray,
    offsets: np.ndarray,
    b: np.ndarray,
    lo: np.ndarray,
    hi: np.ndarray,
    L: np.ndarray,
    first: np.ndarray,
    x: np.ndarray,
    a_work: np.ndarray,
    cand: Candidates,
    counters: np.ndarray,
    chosen: np.ndarray,
    w_out: np.ndarray,
    tol: float,
    shortest: float,
) -> float:
    """The same where there is room for all rows: make candidates of all that are violated.

    Returns:
        The largest violation of a row without bounds of its own, or NaN.
    """
    n, count = values.shape[0], counters[CANDIDATES]
    rows_dot(values, offsets, x, np.int64(0), n, np.int64(1), w_out)
    not_finite = 0.0
    for i in range(n):
        if b.shape[0] > 0:
            w_out[i] += b[i]
        not_finite += w_out[i] - w_out[i]
    if not_finite != 0.0:
        return np.nan
    largest = 0.0
    for r in range(count):
        if cand.lo[r] == 0.0 and cand.hi[r] == np.inf:
            largest = max(largest, -w_out[cand.rows[r]] / cand.d[r])
    if largest <= tol:
        largest = 0.0
    for i in range(n if count < n else 0):
        if w_out[i] < 0.0 and chosen[i] == 0.0:
            if lo.shape[0] > 0 and (lo[i] != 0.0 or hi[i] != np.inf):
                continue  # an equality row that was left out
            d = whitened_norm(values, offsets, i, L, first, a_work)
            if d <= shortest and (b.shape[0] == 0 or b[i] == 0.0):
                continue
            if -w_out[i] > tol * d:
                largest = max(largest, -w_out[i] / d if d > 0.0 else np.inf)
                chosen[i] = 1.0
                cand.rows[counters[CANDIDATES]] = i
                counters[CANDIDATES] += 1
    return largest


@fast_kernel
def _violation(
    values: np.ndarray,
    offsets: np.ndarray,
    lo: np.ndarray,
    hi: np.ndarray,
    L: np.ndarray,
    first: np.ndarray,
    a_work: np.ndarray,
    i: int,
    w: float,
    length2: float,
    tol: float,
    sure: float,
) -> float:
    """Return -w per unit length of row i if that exceeds tol, else 0."""
    if lo.shape[0] > 0 and (lo[i] != 0.0 or hi[i] != np.inf):
        return 0.0  # rows with bounds of their own are always candidates
    d = np.sqrt(length2)
    if -w <= sure * tol * d:
        d = whitened_norm(values, offsets, i, L, first, a_work)
        if -w <= tol * d:
            return 0.0
    return -w / d if d > 0.0 else np.inf


@kernel
def _bucket(offsets: np.ndarray, i: int, n: int, buckets: int, blocks: int, s: int) -> int:
    """Return the bucket of row i: by its place in the list, and by the bodies that it touches."""
    if offsets.shape[0] == 0:
        return i * buckets // n
    k = 0
    for c in range(offsets.shape[1]):
        k = k * 31 + offsets[i, c] // s
    stretches = max(1, buckets // max(1, blocks))
    return (k * stretches + i * stretches // n) % buckets
