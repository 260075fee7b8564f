"""From pivoting state to an answer on the original data, with residuals that can be trusted.

The pivoting kernel works on whitened rows; its own view of the residuals is not evidence. Here
the motion is rebuilt from the forces and the *original* M, N, v, b:

    M (x - v) = N' z,     w = N x + b,

with residuals accumulated in twice the working precision, and both are polished by iterative
refinement against those residuals.
"""

from __future__ import annotations

import numpy as np

from holdfast.lcp import _factor as factor
from holdfast.lcp._compensated import add_product
from holdfast.lcp._envelope import solve_lower, solve_upper
from holdfast.lcp._kernel import fast_kernel, kernel
from holdfast.lcp._pivoting import Candidates, Loaded, norm
from holdfast.lcp._rows import rows_dot, rows_length2, whitened_norm

REFINED = 1e-14  # stop polishing at this relative residual
MAX_REFINEMENTS = 3
CHUNK = 512  # rows whose w stays in the first-level cache between two looks
SURE = 1e3  # ratio of a row's true length to its estimate that only a very stiff M exceeds


@kernel
def exact_dot(
    values: np.ndarray, offsets: np.ndarray, i: int, x: np.ndarray, constant: float
) -> float:
    """Return N_i x + constant, rounded once."""
    high = constant
    low = 0.0
    if offsets.shape[0] == 0:
        for j in range(values.shape[1]):
            high, low = add_product(high, low, values[i, j], x[j])
        return high + low
    K = offsets.shape[1]
    s = values.shape[1] // K
    for k in range(K):
        o = offsets[i, k]
        for j in range(s):
            high, low = add_product(high, low, values[i, k * s + j], x[o + j])
    return high + low


@kernel
def total_impulse(
    values: np.ndarray,
    offsets: np.ndarray,
    rows: np.ndarray,
    z: np.ndarray,
    d: np.ndarray,
    count: int,
    high_out: np.ndarray,
    low_out: np.ndarray,
) -> None:
    """Fill high_out + low_out (m) with N' z, for z_hat = z d given per candidate."""
    for j in range(high_out.shape[0]):
        high_out[j] = 0.0
        low_out[j] = 0.0
    dense = offsets.shape[0] == 0
    K = 1 if dense else offsets.shape[1]
    s = values.shape[1] // K
    for r in range(count):
        if z[r] == 0.0:
            continue
        i = rows[r]
        f = z[r] / d[r]
        for k in range(K):
            o = 0 if dense else offsets[i, k]
            for j in range(s):
                high_out[o + j], low_out[o + j] = add_product(
                    high_out[o + j], low_out[o + j], f, values[i, k * s + j]
                )


@kernel
def momentum_residual(
    M: np.ndarray,
    first: np.ndarray,
    high: np.ndarray,
    low: np.ndarray,
    dx: np.ndarray,
    r_out: np.ndarray,
) -> None:
    """Fill r_out with (high + low) - M dx; the lower triangle of M stands for both."""
    nb, s, _ = M.shape
    if nb == 0:
        for j in range(dx.shape[0]):
            r_out[j] = (high[j] - dx[j]) + low[j]
    for k in range(nb):
        o = k * s
        for i in range(s):
            h, e = high[o + i], low[o + i]
            for j in range(first[o + i], i + 1):
                h, e = add_product(h, e, -M[k, i, j], dx[o + j])
            for j in range(i + 1, s):
                if first[o + j] <= i:
                    h, e = add_product(h, e, -M[k, j, i], dx[o + j])
            r_out[o + i] = h + e


@kernel
def rebuild(
    values: np.ndarray,
    offsets: np.ndarray,
    M: np.ndarray,
    v: np.ndarray,
    L: np.ndarray,
    first: np.ndarray,
    cand: Candidates,
    count: int,
    work: np.ndarray,
    x_out: np.ndarray,
    scale: float,
) -> float:
    """Fill x_out with v + M^-1 N' z; return the relative residual of M (x - v) = N' z."""
    high, low, dx, step, r = work[0], work[1], work[2], work[3], work[4]
    m = v.shape[0]
    total_impulse(values, offsets, cand.rows, cand.z, cand.d, count, high, low)
    for j in range(m):
        dx[j] = high[j]
    solve_lower(L, first, dx)
    size = max(scale, norm(dx))
    solve_upper(L, first, dx)
    residual = 0.0
    for attempt in range(MAX_REFINEMENTS + 1):
        for j in range(m):
            x_out[j] = v[j] + dx[j]
            step[j] = x_out[j] - v[j]
        momentum_residual(M, first, high, low, step, r)
        solve_lower(L, first, r)
        before = residual
        residual = norm(r)
        if residual <= REFINED * size or attempt == MAX_REFINEMENTS:
            break
        if attempt > 0 and residual > 0.5 * before:  # as good as x can be in working precision
            break
        solve_upper(L, first, r)
        for j in range(m):
            dx[j] += r[j]
    return residual / size if size > 0.0 else 0.0


@kernel
def loaded_residual(
    values: np.ndarray,
    offsets: np.ndarray,
    b: np.ndarray,
    cand: Candidates,
    loaded: Loaded,
    k: int,
    x: np.ndarray,
    g_out: np.ndarray,
) -> float:
    """Fill g_out[:k] with w / d of the loaded rows at motion x; return the largest."""
    largest = 0.0
    for l in range(k):
        r = loaded.which[l]
        i = cand.rows[r]
        constant = b[i] if b.shape[0] > 0 else 0.0
        g_out[l] = exact_dot(values, offsets, i, x, constant) / cand.d[r]
        largest = max(largest, abs(g_out[l]))
    return largest


@fast_kernel
def correct(cand: Candidates, loaded: Loaded, k: int, g_inout: np.ndarray) -> None:
    """Newton step on the loaded forces: cand.z += (A A')^-1 (-g), kept within bounds."""
    factor.solve_lower_factor(loaded.R, k, g_inout)
    factor.solve_upper_factor(loaded.R, k, g_inout)
    for l in range(k):
        r = loaded.which[l]
        cand.z[r] = min(max(cand.z[r] - g_inout[l], cand.lo[r]), cand.hi[r])


@kernel
def finish(
    values: np.ndarray,
    offsets: np.ndarray,
    M: np.ndarray,
    v: np.ndarray,
    b: np.ndarray,
    L: np.ndarray,
    first: np.ndarray,
    cand: Candidates,
    loaded: Loaded,
    counters: np.ndarray,
    work: np.ndarray,
    g_work: np.ndarray,
    x_out: np.ndarray,
    scale: float,
) -> tuple[float, float]:
    """Fill x_out with the motion, polished on the original data.

    Returns:
        Relative residual of the momentum balance, and the largest normalised |w| of a loaded
        row (not divided by the motion's size).
    """
    count, k = counters[0], counters[1]
    stationarity = rebuild(values, offsets, M, v, L, first, cand, count, work, x_out, scale)
    gap = loaded_residual(values, offsets, b, cand, loaded, k, x_out, g_work)
    for _ in range(MAX_REFINEMENTS):
        if gap <= REFINED * scale:
            break
        correct(cand, loaded, k, g_work)
        before = gap
        stationarity = rebuild(values, offsets, M, v, L, first, cand, count, work, x_out, scale)
        gap = loaded_residual(values, offsets, b, cand, loaded, k, x_out, g_work)
        if gap > 0.5 * before:
            break
    return stationarity, gap


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
    length2_work: np.ndarray,
    w_out: np.ndarray,
    row_out: np.ndarray,
    violation_out: np.ndarray,
    tol: float,
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
    begin = 0
    while begin < n:
        end = min(n, begin + CHUNK * stride)
        rows_dot(values, offsets, x, begin, end, stride, w_out)
        if b.shape[0] > 0:
            for i in range(begin, end, stride):
                w_out[i] += b[i]
        negative = 0
        not_finite = 0.0  # stays 0 unless some w is infinite or NaN
        for i in range(begin, end, stride):
            negative += 1 if w_out[i] < 0.0 else 0
            not_finite += w_out[i] - w_out[i]
        if not_finite != 0.0:
            return np.nan
        if negative > 0:
            rows_length2(values, offsets, weight, begin, end, stride, length2_work)
            r = 0
            for i in range(begin, end, stride):
                w, length2 = w_out[i], length2_work[r]
                r += 1
                if w < 0.0 and w * w > threshold * length2:
                    violation = _violation(
                        values, offsets, lo, hi, L, first, a_work, i, w, length2, tol, sure
                    )
                    if violation > 0.0:
                        largest = max(largest, violation)
                        k = _bucket(offsets, i, n, buckets)
                        if violation > violation_out[k]:
                            violation_out[k] = violation
                            row_out[k] = i
        begin = end
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
def _bucket(offsets: np.ndarray, i: int, n: int, buckets: int) -> int:
    """Return the bucket of row i: by the bodies it touches, or by its place in the list."""
    if offsets.shape[0] == 0:
        return i * buckets // n
    k = 0
    for c in range(offsets.shape[1]):
        k = k * 31 + offsets[i, c]
    return k % buckets
