"""Which rows are candidates for pivoting: the first ones, new ones, and those that make room."""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

import numpy as np

from holdfast._jit import kernel
from holdfast.lcp._pivoting import FREE, INFEASIBLE, SOLVED, Candidates
from holdfast.lcp._state import CANDIDATES, COUNTERS, INSTALL, READY, STAGE, STRIDE, WHITE
from holdfast.linalg.cholesky import cholesky, multiply_upper, solve_lower, solve_upper
from holdfast.linalg.vectors import norm

# Codes beyond those of `pivot`: the input cannot be used.
NOT_SYMMETRIC, NOT_DEFINITE, NOT_FINITE, BAD_BOUNDS = 10, 11, 12, 13

SAMPLE, THINNING = 16, 17  # see `first_stride`
HUGE, TINY = 1e150, 1e-150  # sizes whose squares are still numbers


@kernel
def start(
    M: np.ndarray,
    v_inout: np.ndarray,
    counters: np.ndarray,
    L_out: np.ndarray,
    first_out: np.ndarray,
    weight_out: np.ndarray,
    y0_out: np.ndarray,
    y_out: np.ndarray,
    chosen_out: np.ndarray,
    symmetry: float,
    f: np.ndarray,
    h: float,
) -> int:
    """Factor M and find the free motion; there are no candidates yet."""
    n, m = chosen_out.shape[0], v_inout.shape[0]
    for c in range(COUNTERS):
        counters[c] = 0
    counters[STAGE] = INSTALL
    counters[STRIDE] = 1
    for j in range(m):
        first_out[j] = 0
        weight_out[j] = 1.0
    if M.shape[0] > 0:
        code = cholesky(M, first_out, L_out, symmetry)
        if code > 0:
            return NOT_SYMMETRIC if code == 1 else NOT_DEFINITE
        s = M.shape[1]
        for j in range(m):
            weight_out[j] = 1.0 / M[j // s, j % s, j % s]
    if f.shape[0] > 0:
        for j in range(m):
            y0_out[j] = f[j]
        solve_lower(L_out, first_out, y0_out)
        solve_upper(L_out, first_out, y0_out)
        for j in range(m):
            v_inout[j] += h * y0_out[j]
    multiply_upper(L_out, first_out, v_inout, y0_out)
    for j in range(m):
        y_out[j] = y0_out[j]
    size = norm(y0_out)
    if not size < HUGE or (size < TINY and largest_entry(v_inout) > 0.0):
        return NOT_FINITE  # or not to be squared: the caller looks which
    for i in range(n):
        chosen_out[i] = 0.0
    return SOLVED


@kernel
def list_first(
    lo: np.ndarray,
    hi: np.ndarray,
    warm: np.ndarray,
    counters: np.ndarray,
    rows_out: np.ndarray,
    chosen_out: np.ndarray,
    small: bool,
    equalities: bool,
) -> None:
    """List the first candidates: all rows, or those with bounds or a warm start.

    Args:
        equalities: whether equality rows are among them, not dealt with before.
    """
    n, count = chosen_out.shape[0], counters[CANDIDATES]
    everything = small and warm.shape[0] == 0
    for i in range(n):
        pinned = lo.shape[0] > 0 and (lo[i] != 0.0 or hi[i] != np.inf)
        if pinned and not equalities and lo[i] == -np.inf and hi[i] == np.inf:
            continue
        if everything or pinned:
            chosen_out[i] = 1.0
            rows_out[count] = i
            count += 1
    for t in range(warm.shape[0]):
        i = warm[t]
        if 0 <= i < n and chosen_out[i] == 0.0:
            chosen_out[i] = 1.0
            rows_out[count] = i
            count += 1
    if not small and warm.shape[0] == 0:
        counters[STRIDE] = first_stride(n)
    counters[CANDIDATES] = count


@kernel
def row_at(q: int, pairs: int, ahead: int, behind: int) -> int:
    """Return the row that comes q-th where Algorithm 2 has an order of its own.

    Rows ahead..behind (joints) come first, then the first two times `pairs` rows (tangents S, then
    T) in turns, then the others as they stand.
    """
    if q < behind - ahead:
        return ahead + q
    if q >= behind:
        return q
    q -= behind - ahead
    return q // 2 + (q % 2) * pairs if q < 2 * pairs else q


@kernel
def largest_entry(flat: np.ndarray) -> float:
    """Return the largest absolute value."""
    largest = 0.0
    for j in range(flat.shape[0]):
        largest = max(largest, abs(flat[j]))
    return largest


@kernel
def first_stride(n: int) -> int:
    """Return how thinly to look at n rows at first.

    Solving for a sample of n / t rows leaves about t m of all rows violated (Clarkson 1995), so
    the expensive passes over all rows start when nearly all of the work is done. THINNING is a
    prime so that a sample does not fall in step with a regular order of the contacts.
    """
    stride = 1
    while n // (stride * THINNING) >= SAMPLE:
        stride *= THINNING
    return stride


@kernel
def prepare(
    b: np.ndarray,
    lo: np.ndarray,
    hi: np.ndarray,
    cand: Candidates,
    counters: np.ndarray,
    shortest: float,
) -> int:
    """Initialise the variables of the candidates that are whitened but not ready yet.

    Args:
        shortest: rows without an offset up to this length are rounding, and get no force.

    Returns:
        SOLVED, NOT_FINITE, BAD_BOUNDS, or INFEASIBLE for a row of zeros that cannot hold; then
        cand.w is its certificate.
    """
    for r in range(counters[READY], counters[CANDIDATES]):
        i = cand.rows[r]
        d = cand.d[r]
        beta = b[i] if b.shape[0] > 0 else 0.0
        low = lo[i] if lo.shape[0] > 0 else 0.0
        high = hi[i] if hi.shape[0] > 0 else np.inf
        if not d < HUGE or not np.isfinite(beta) or (d > 0.0 and abs(beta) >= HUGE * d):
            return NOT_FINITE
        if not (low <= high and low < np.inf and high > -np.inf):
            return BAD_BOUNDS
        if d == 0.0:  # w = b whatever the motion: z sits on the bound that b asks for
            d = 1.0
            cand.d[r] = 1.0
            bound = high if beta < 0.0 else low
            if beta != 0.0 and np.isinf(bound):
                for q in range(counters[CANDIDATES]):
                    cand.w[q] = 0.0
                    cand.d[q] = cand.d[q] if cand.d[q] > 0.0 else 1.0  # rows yet to come
                cand.w[r] = 1.0 if beta < 0.0 else -1.0
                return INFEASIBLE
            if beta != 0.0:
                low = bound
                high = bound
        elif d <= shortest and beta == 0.0:  # what cancellation left of a row of zeros
            low = min(max(0.0, low), high)
            high = low
        cand.place[r] = FREE
        cand.beta[r] = beta / d
        cand.lo[r] = low * d
        cand.hi[r] = high * d
        cand.z[r] = min(max(0.0, cand.lo[r]), cand.hi[r])
    counters[READY] = counters[CANDIDATES]
    return SOLVED


@kernel
def first_guess(cand: Candidates, wanted_out: np.ndarray, counters: np.ndarray, warm: bool) -> int:
    """Fill wanted_out with the candidates to load at once: equality rows, then the warm start.

    Returns:
        How many; -1 if none is wanted and all forces start from zero.
    """
    wanted = 0
    moved = False
    for r in range(counters[CANDIDATES]):
        if cand.lo[r] == -np.inf and cand.hi[r] == np.inf:
            wanted_out[wanted] = r
            wanted += 1
        moved = moved or cand.z[r] != 0.0
    if warm:  # the plain candidates are the warm start
        for r in range(counters[CANDIDATES]):
            if cand.lo[r] == 0.0 and cand.hi[r] == np.inf:
                wanted_out[wanted] = r
                wanted += 1
    return wanted if wanted > 0 or moved else -1


@kernel
def make_room(
    cand: Candidates, which: np.ndarray, counters: np.ndarray, chosen: np.ndarray, buckets: int
) -> None:
    """Drop plain candidates that carry no force, if the buckets might not fit any more.

    Kept candidates move to the front; their rows must be whitened again.
    """
    count = counters[CANDIDATES]
    if count + buckets <= cand.rows.shape[0]:
        return
    kept = 0
    for r in range(count):
        idle = cand.place[r] == FREE and cand.z[r] == 0.0
        plain = cand.lo[r] == 0.0 and cand.hi[r] == np.inf
        if idle and (plain or cand.lo[r] == cand.hi[r]):
            chosen[cand.rows[r]] = 0.0
            continue
        if cand.place[r] != FREE:
            which[cand.place[r]] = kept
        cand.rows[kept] = cand.rows[r]
        cand.beta[kept] = cand.beta[r]
        cand.lo[kept] = cand.lo[r]
        cand.hi[kept] = cand.hi[r]
        cand.z[kept] = cand.z[r]
        cand.place[kept] = cand.place[r]
        kept += 1
    counters[CANDIDATES] = kept
    counters[READY] = kept
    counters[WHITE] = 0


@kernel
def gather(rows: np.ndarray, bucket: np.ndarray, counters: np.ndarray, chosen: np.ndarray) -> bool:
    """Append the rows that `price` found to the candidates; return whether any is new."""
    count = counters[CANDIDATES]
    for k in range(bucket.shape[0]):
        i = bucket[k]
        if i >= 0 and chosen[i] == 0.0 and count < rows.shape[0]:
            chosen[i] = 1.0
            rows[count] = i
            count += 1
    grown = count > counters[CANDIDATES]
    counters[CANDIDATES] = count
    return grown
