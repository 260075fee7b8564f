"""From pivoting state to an answer on the original data, with residuals that can be trusted.

The pivoting kernel works on whitened rows; its own view of the residuals is not evidence. Here
the motion is rebuilt from the forces and the *original* M, N, v, b:

    M (x - v) = N' z,     w = N x + b,

with residuals accumulated in twice the working precision, and both are polished by iterative
refinement against those residuals.

Where the loaded rows are nearly dependent, forces are huge and cancel, and a motion rebuilt from
them is no better than their rounding. Then the motion is corrected by itself, orthogonally to the
loaded rows, and what the rounding of the given z amounts to is not counted against the balance of
momentum: no z in working precision could do better.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

import numpy as np

from holdfast._jit import fast_kernel, kernel
from holdfast.lcp._pivoting import FREE, INFEASIBLE, ROUNDING, SOLVED, Candidates, Loaded
from holdfast.lcp._state import (
    CANDIDATES,
    GAP,
    KEPT,
    LOADED,
    PIVOTS,
    PRIMAL,
    REJECTED,
    ROUNDED,
    ROUNDS,
    SCALE,
    STATIONARITY,
)
from holdfast.lcp.result import SCALARS
from holdfast.linalg import qr_update as factor
from holdfast.linalg.cholesky import solve_lower, solve_upper
from holdfast.linalg.compensated import add_product
from holdfast.linalg.vectors import norm

REFINED = 1e-14  # stop polishing at this relative residual
CANCELLED = 1e-12  # a relative residual that refinement of z leaves only where forces cancel
MAX_REFINEMENTS = 3

UNCERTIFIED = 4  # as in `holdfast.lcp.Status`


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
    rows: np.ndarray,
    z: np.ndarray,
    d: np.ndarray,
    count: int,
    work: np.ndarray,
    x_out: np.ndarray,
    scale: float,
) -> float:
    """Fill x_out with v + M^-1 N' z, for z_hat = z d given per candidate.

    Returns:
        The relative residual of M (x - v) = N' z.
    """
    high, low, dx = work[0], work[1], work[2]
    m = v.shape[0]
    total_impulse(values, offsets, rows, z, d, count, high, low)
    for j in range(m):
        dx[j] = high[j]
    solve_lower(L, first, dx)
    size = max(scale, norm(dx))
    solve_upper(L, first, dx)
    residual = np.inf
    for attempt in range(MAX_REFINEMENTS + 1):
        for j in range(m):
            x_out[j] = v[j] + dx[j]
        before = residual
        residual = imbalance(M, v, L, first, x_out, work)
        # the second test: as good as x can be in working precision
        if residual <= REFINED * size or attempt == MAX_REFINEMENTS or residual > 0.5 * before:
            break
        solve_upper(L, first, work[4])
        for j in range(m):
            dx[j] += work[4, j]
    return residual / size if size > 0.0 else 0.0


@kernel
def imbalance(
    M: np.ndarray,
    v: np.ndarray,
    L: np.ndarray,
    first: np.ndarray,
    x: np.ndarray,
    work: np.ndarray,
) -> float:
    """Return |M (x - v) - N' z| in the metric of M^-1, for N' z in the first two rows of work.

    The whitened residual is left in work[4].
    """
    for j in range(v.shape[0]):
        work[3, j] = x[j] - v[j]
    momentum_residual(M, first, work[0], work[1], work[3], work[4])
    solve_lower(L, first, work[4])
    return norm(work[4])


@kernel
def loaded_residual(
    values: np.ndarray,
    offsets: np.ndarray,
    b: np.ndarray,
    rows: np.ndarray,
    d: np.ndarray,
    which: np.ndarray,
    k: int,
    x: np.ndarray,
    g_out: np.ndarray,
) -> float:
    """Fill g_out[:k] with w / d of the loaded rows at motion x; return the largest."""
    largest = 0.0
    for l in range(k):
        r = which[l]
        i = rows[r]
        constant = b[i] if b.shape[0] > 0 else 0.0
        g_out[l] = exact_dot(values, offsets, i, x, constant) / d[r]
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


@fast_kernel
def move(
    Q: np.ndarray,
    R: np.ndarray,
    k: int,
    L: np.ndarray,
    first: np.ndarray,
    g_inout: np.ndarray,
    dy_work: np.ndarray,
    x_inout: np.ndarray,
) -> None:
    """Correct the motion x_inout so that the loaded rows, now at w / d = g_inout, come to zero."""
    factor.solve_lower_factor(R, k, g_inout)
    for j in range(x_inout.shape[0]):
        dy_work[j] = 0.0
    for l in range(k):
        for j in range(x_inout.shape[0]):
            dy_work[j] -= g_inout[l] * Q[l, j]
    solve_upper(L, first, dy_work)
    for j in range(x_inout.shape[0]):
        x_inout[j] += dy_work[j]


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
) -> tuple[float, float, float]:
    """Fill x_out with the motion, polished on the original data.

    Returns:
        Relative residual of the momentum balance, the largest normalised |w| of a loaded row (not
        divided by the motion's size), and the part of the first that is the rounding of forces.
    """
    count, k = counters[0], counters[1]
    stationarity, gap, rounded = 0.0, np.inf, 0.0
    for attempt in range(MAX_REFINEMENTS + 1):
        if attempt > 0:
            correct(cand, loaded, k, g_work)
        before = gap
        stationarity = rebuild(
            values, offsets, M, v, L, first, cand.rows, cand.z, cand.d, count, work, x_out, scale
        )
        gap = loaded_residual(values, offsets, b, cand.rows, cand.d, loaded.which, k, x_out, g_work)
        if gap <= REFINED * scale or gap > 0.5 * before:
            break
    if gap > CANCELLED * scale:
        for _ in range(MAX_REFINEMENTS):
            move(loaded.Q, loaded.R, k, L, first, g_work, work[2], x_out)
            gap = loaded_residual(
                values, offsets, b, cand.rows, cand.d, loaded.which, k, x_out, g_work
            )
            if gap <= REFINED * scale:
                break
        total = 0.0
        for r in range(count):
            total += abs(cand.z[r])
        stationarity = imbalance(M, v, L, first, x_out, work) / scale
        rounded = ROUNDING * total / scale
    return stationarity, gap, rounded


@kernel
def report(
    cand: Candidates,
    which: np.ndarray,
    counters: np.ndarray,
    numbers: np.ndarray,
    lo: np.ndarray,
    hi: np.ndarray,
    out: np.ndarray,
    m: int,
    status: int,
    certificate: float,
) -> int:
    """Fill out with z, the loaded rows and the residuals; w and the motion are there already.

    For an infeasible problem z is the Farkas vector that `pivot` or `prepare` left in cand.w.

    Returns:
        The status, UNCERTIFIED if a residual of a solved problem is too large.
    """
    n = (out.shape[0] - m - which.shape[0] - SCALARS) // 2
    scalars = out[2 * n + m + which.shape[0] :]
    primal, dual = numbers[PRIMAL], 0.0
    for r in range(counters[CANDIDATES]):
        i = cand.rows[r]
        if status == INFEASIBLE:
            out[i] = cand.w[r] / cand.d[r]
            continue
        z = cand.z[r]
        out[i] = z / cand.d[r]
        if lo.shape[0] > 0:  # on a bound means exactly on it, whatever the scaling
            if z == cand.lo[r] and cand.lo[r] < cand.hi[r]:
                out[i] = lo[i]
            elif z == cand.hi[r] and cand.lo[r] < cand.hi[r]:
                out[i] = hi[i]
            out[i] = min(max(out[i], lo[i]), hi[i])
        dual = max(dual, cand.lo[r] - z, z - cand.hi[r])
        if cand.place[r] == FREE:
            w = out[n + i] / cand.d[r]
            if z < cand.hi[r]:
                primal = max(primal, -w)
            if z > cand.lo[r]:
                primal = max(primal, w)
    for l in range(which.shape[0]):
        out[2 * n + m + l] = cand.rows[which[l]] if l < counters[LOADED] else -1
    size = numbers[SCALE] if numbers[SCALE] > 0.0 else 1.0
    scalars[0], scalars[1] = primal / size + 0.0, dual / size + 0.0  # no -0.0
    scalars[2], scalars[3] = numbers[GAP] / size, numbers[STATIONARITY]
    scalars[4], scalars[5], scalars[6] = counters[PIVOTS], counters[LOADED], counters[ROUNDS]
    scalars[7], scalars[8] = numbers[KEPT], numbers[REJECTED]
    scalars[9] = 0.0
    for l in range(counters[LOADED]):
        r = which[l]
        scalars[9] += 1.0 if cand.lo[r] == -np.inf and cand.hi[r] == np.inf else 0.0
    scalars[10] = numbers[ROUNDED]
    worst = max(scalars[0], scalars[1], scalars[2], scalars[3] - scalars[10])
    return UNCERTIFIED if status == SOLVED and not worst <= certificate else status
