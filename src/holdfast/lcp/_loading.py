"""Rows that are loaded without a pivot: equality rows, those of a warm start, and what follows."""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

import numpy as np

from holdfast._jit import kernel
from holdfast.lcp._candidates import HUGE, NOT_FINITE, row_at
from holdfast.lcp._pivoting import FREE, SOLVED, STIFF, Candidates, Loaded, unload
from holdfast.lcp._rows import scatter, whitened_norm
from holdfast.lcp._state import CANDIDATES, LOADED, READY, WHITE
from holdfast.linalg import qr_update as factor
from holdfast.linalg.vectors import dot


@kernel
def take_equalities(
    values: np.ndarray,
    offsets: np.ndarray,
    b: np.ndarray,
    lo: np.ndarray,
    hi: np.ndarray,
    L: np.ndarray,
    first: np.ndarray,
    cand: Candidates,
    loaded: Loaded,
    counters: np.ndarray,
    chosen: np.ndarray,
    a_work: np.ndarray,
    g_work: np.ndarray,
    shortest: float,
    tol: float,
    pairs: int,
    ahead: int,
    behind: int,
) -> tuple[int, float, float]:
    """Load an independent set of the equality rows: Algorithm 2 (Find-Indices).

    A row whose part outside the span of those before it is no longer than `tol`, or which is no
    longer than `shortest`, is left out for good: it gets no force, and not to hold is for the
    caller to notice. Only those that stay become candidates; in blocks they are yet to be whitened.

    Returns:
        SOLVED or NOT_FINITE, the smallest such part kept and the largest left out.
    """
    k = 0
    kept, rejected = np.inf, 0.0
    last, last_but_one = np.int64(-1), np.int64(-1)
    dense = cand.offset.shape[0] == 0
    for q in range(values.shape[0] if lo.shape[0] > 0 else 0):
        i = row_at(q, pairs, ahead, behind)
        if lo[i] != -np.inf or hi[i] != np.inf:
            continue
        if k == loaded.which.shape[0]:
            break
        of = last_but_one if i < 2 * pairs else last  # tangents S and T come in turns
        last_but_one, last = last, i
        if is_copy(values, offsets, i, of):
            continue
        d = whitened_norm(values, offsets, i, L, first, a_work)
        beta = b[i] if b.shape[0] > 0 else 0.0
        if not d < HUGE or not np.isfinite(beta) or (d > 0.0 and abs(beta) >= HUGE * d):
            return NOT_FINITE, kept, rejected
        if d <= shortest:
            continue
        for j in range(a_work.shape[0]):
            a_work[j] /= d
        if dense:
            for j in range(a_work.shape[0]):
                cand.A[k, j] = a_work[j]
        rho = np.sqrt(factor.project(loaded.Q, k, a_work, g_work[k : 2 * k], g_work))
        if not rho > tol:
            rejected = max(rejected, rho)
            continue
        kept = min(kept, rho)
        factor.append(a_work, g_work, rho, loaded.Q, loaded.R, k)
        loaded.which[k] = k
        cand.rows[k] = i
        cand.d[k] = d
        cand.place[k] = k
        cand.beta[k] = beta / d
        cand.lo[k], cand.hi[k] = -np.inf, np.inf
        cand.z[k] = 0.0
        chosen[i] = 1.0
        k += 1
    counters[CANDIDATES], counters[LOADED], counters[READY] = k, k, k
    counters[WHITE] = k if dense else 0
    return SOLVED, kept, rejected


@kernel
def is_copy(values: np.ndarray, offsets: np.ndarray, i: int, of: int) -> bool:
    """Return whether row i is that of another row, if there is one.

    Collision detectors list a corner once per face or edge that meets there. A copy has the part
    outside the span that its original had: none if that was kept.
    """
    if of < 0:
        return False
    different = 0
    for j in range(values.shape[1]):  # without a branch, so that it vectorises
        different += 1 if values[i, j] != values[of, j] else 0
    for c in range(offsets.shape[1] if offsets.shape[0] > 0 else 0):
        different += 1 if offsets[i, c] != offsets[of, c] else 0
    return different == 0


@kernel
def install(
    cand: Candidates,
    loaded: Loaded,
    counters: np.ndarray,
    wanted: np.ndarray,
    a_work: np.ndarray,
    g_work: np.ndarray,
    rank: float,
) -> None:
    """Load the wanted candidates at once: a guess from an earlier solve, or equality rows.

    Rows that depend on those before them are passed over. `settle` must follow: it finds the
    forces and lets rows leave that cannot stay, so that `pivot` can go on from a point on its path.
    """
    k = counters[LOADED]
    for t in range(wanted.shape[0]):
        r = wanted[t]
        if cand.place[r] != FREE or k == loaded.which.shape[0]:
            continue
        scatter(cand.A, cand.offset, r, a_work)
        rho = np.sqrt(factor.project(loaded.Q, k, a_work, g_work[k : 2 * k], g_work))
        if rho > rank:
            factor.append(a_work, g_work, rho, loaded.Q, loaded.R, k)
            loaded.which[k] = r
            cand.place[r] = k
            k += 1
    counters[LOADED] = k
    counters[2] += k


@kernel
def settle(
    cand: Candidates,
    loaded: Loaded,
    counters: np.ndarray,
    y0: np.ndarray,
    y: np.ndarray,
    a_work: np.ndarray,
    g_work: np.ndarray,
) -> None:
    """Solve for the loaded forces and the motion afresh, from the factors.

    Rows whose force lies outside its bounds are put on that bound, worst first, until the rest
    are consistent.
    """
    count, k = counters[0], counters[1]
    while True:
        for j in range(y.shape[0]):
            y[j] = y0[j]
        for r in range(count):
            if cand.place[r] == FREE and cand.z[r] != 0.0:
                scatter(cand.A, cand.offset, r, a_work)
                for j in range(y.shape[0]):
                    y[j] += cand.z[r] * a_work[j]
        for l in range(k):
            r = loaded.which[l]
            scatter(cand.A, cand.offset, r, a_work)
            g_work[l] = -(dot(a_work, y) + cand.beta[r])
        factor.solve_lower_factor(loaded.R, k, g_work)
        for l in range(k):
            for j in range(y.shape[0]):
                y[j] += g_work[l] * loaded.Q[l, j]
        factor.solve_upper_factor(loaded.R, k, g_work)
        p = np.int64(-1)
        excess = 0.0
        for l in range(k):
            r = loaded.which[l]
            cand.z[r] = g_work[l]
            outside = max(cand.lo[r] - g_work[l], g_work[l] - cand.hi[r])
            if outside > excess:
                p = l
                excess = outside
        if p < 0:
            break
        r = loaded.which[p]
        cand.z[r] = cand.lo[r] if cand.z[r] < cand.lo[r] else cand.hi[r]
        k = unload(cand, loaded, p, k)
        counters[2] += 1
    counters[1] = k


@kernel
def stiff(R: np.ndarray, k: int) -> bool:
    """Return whether the loaded rows are so nearly dependent that steps lose digits."""
    smallest = 1.0
    for l in range(k):
        smallest = min(smallest, R[l, l])
    return smallest < STIFF
