"""Orthogonal factors of the loaded rows, updated by one row per pivot.

The k loaded rows (unit vectors a_1 .. a_k, as columns) are A' = Q R with Q orthonormal and R
upper triangular. Both are kept by columns in memory (`Q[l]` is the l-th basis vector, `R[j]` the
j-th column of R), so every loop below is contiguous. Appending and removing a row cost O(m k);
the Gram matrix R'R is never formed, so the condition number is not squared.
"""

from __future__ import annotations

import numpy as np

from holdfast._jit import fast_kernel

# Gram-Schmidt lost more than this part of a vector: cancellation, so project once more.
# Twice is enough (Giraud, Langou, Rozloznik 2005).
CANCELLATION = 0.5
ROUNDING = 1e-30  # squared length at which nothing but rounding is left of a unit vector


@fast_kernel
def project(
    Q: np.ndarray, k: int, a_inout: np.ndarray, step_work: np.ndarray, g_out: np.ndarray
) -> float:
    """Replace the unit vector a_inout by its part outside the span of Q[:k]; fill g_out = Q a.

    Returns:
        The squared length of that part.
    """
    m = a_inout.shape[0]
    for l in range(k):
        g_out[l] = 0.0
    before = 1.0
    while True:
        after = 0.0
        l = 0
        while l + 3 < k:  # four at a time share each load of a
            t0, t1, t2, t3 = 0.0, 0.0, 0.0, 0.0
            for j in range(m):
                t0 += Q[l, j] * a_inout[j]
                t1 += Q[l + 1, j] * a_inout[j]
                t2 += Q[l + 2, j] * a_inout[j]
                t3 += Q[l + 3, j] * a_inout[j]
            step_work[l], step_work[l + 1], step_work[l + 2], step_work[l + 3] = t0, t1, t2, t3
            l += 4
        while l < k:
            t0 = 0.0
            for j in range(m):
                t0 += Q[l, j] * a_inout[j]
            step_work[l] = t0
            l += 1
        l = 0
        while l + 3 < k:
            t0, t1, t2, t3 = step_work[l], step_work[l + 1], step_work[l + 2], step_work[l + 3]
            for j in range(m):
                a_inout[j] = (
                    ((a_inout[j] - t0 * Q[l, j]) - t1 * Q[l + 1, j]) - t2 * Q[l + 2, j]
                ) - t3 * Q[l + 3, j]
            l += 4
        while l < k:
            t0 = step_work[l]
            for j in range(m):
                a_inout[j] -= t0 * Q[l, j]
            l += 1
        for l in range(k):
            g_out[l] += step_work[l]
        for j in range(m):
            after += a_inout[j] * a_inout[j]
        if after > CANCELLATION * before or k == 0:
            return after
        if after < ROUNDING:
            return 0.0
        before = after


@fast_kernel
def append(
    a: np.ndarray, g: np.ndarray, rho: float, Q_inout: np.ndarray, R_inout: np.ndarray, k: int
) -> None:
    """Append to Q_inout and R_inout the row whose projection left (a, g), rho = |a|."""
    for j in range(a.shape[0]):
        Q_inout[k, j] = a[j] / rho
    for l in range(k):
        R_inout[k, l] = g[l]
    R_inout[k, k] = rho


@fast_kernel
def remove(Q_inout: np.ndarray, R_inout: np.ndarray, p: int, k: int) -> None:
    """Remove loaded row p of k from the factors, with plane rotations."""
    m = Q_inout.shape[1]
    for c in range(p, k - 1):
        for l in range(c + 2):
            R_inout[c, l] = R_inout[c + 1, l]
    for l in range(p, k - 1):
        a = R_inout[l, l]
        b = R_inout[l, l + 1]
        r = np.hypot(a, b)
        cos = a / r
        sin = b / r
        R_inout[l, l] = r
        for c in range(l + 1, k - 1):
            a = R_inout[c, l]
            b = R_inout[c, l + 1]
            R_inout[c, l] = cos * a + sin * b
            R_inout[c, l + 1] = cos * b - sin * a
        for j in range(m):
            a = Q_inout[l, j]
            b = Q_inout[l + 1, j]
            Q_inout[l, j] = cos * a + sin * b
            Q_inout[l + 1, j] = cos * b - sin * a


@fast_kernel
def solve_upper_factor(R: np.ndarray, k: int, g_inout: np.ndarray) -> None:
    """Overwrite g_inout[:k] with R^-1 g."""
    for j in range(k - 1, -1, -1):
        t = g_inout[j] / R[j, j]
        g_inout[j] = t
        for l in range(j):
            g_inout[l] -= t * R[j, l]


@fast_kernel
def solve_lower_factor(R: np.ndarray, k: int, g_inout: np.ndarray) -> None:
    """Overwrite g_inout[:k] with R^-T g."""
    for j in range(k):
        t = g_inout[j]
        for l in range(j):
            t -= R[j, l] * g_inout[l]
        g_inout[j] = t / R[j, j]
