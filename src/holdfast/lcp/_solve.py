"""One solve from matrices to certified forces: the kernel behind `solve_factored`.

Rounds of: pivot on the candidate rows, rebuild the motion on the original data, one pass over
*all* rows to see whether any is violated, add the worst of each kind to the candidates. With few
rows all of them are candidates at once and there is one round; with many the number of passes
over N is the number of rounds, about four, not the number of pivots. The loaded rows are never
dropped between rounds, so the objective falls strictly from round to round and the method is
finite for the same reason as its inner loop.

All state lives in one work array, so that the kernel can return PAUSED and be called again.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from holdfast.lcp._certify import CHUNK, SURE, finish, longest_row, price
from holdfast.lcp._envelope import cholesky, multiply_upper
from holdfast.lcp._kernel import entry, kernel
from holdfast.lcp._pivoting import (
    FREE,
    INFEASIBLE,
    PAUSED,
    SOLVED,
    Candidates,
    Loaded,
    install,
    norm,
    pivot,
    settle,
    stiff,
)
from holdfast.lcp._rows import whiten

# What the kernel can say beyond the codes of `pivot`: no certificate, or unusable input.
UNCERTIFIED = 4
NOT_SYMMETRIC, NOT_DEFINITE, NOT_FINITE, BAD_BOUNDS = 10, 11, 12, 13

DENSE = 48  # up to this many coordinates, candidates are stored dense: loops over blocks cost more
ALL_ROWS = 16  # up to this many rows per coordinate, all are candidates at once
BUCKETS = 127  # at most this many new candidates in a round; prime, as the hash of `_bucket` likes
SAMPLE, THINNING = 16, 17  # see `first_stride`
COUNTERS = 8  # integers at the head of the integer part of the work array
CANDIDATES, LOADED, PIVOTS, STAGE, ROUNDS, STRIDE, READY, WHITE = 0, 1, 2, 3, 4, 5, 6, 7
INSTALL, RUNNING = 0, 1  # values of STAGE

MAX_ATTEMPTS = 3  # how often to go on after rounding hid a violated row
DEFAULT_PIVOTS = 50  # far above the 3 (n + m) ever seen
WORK_PER_CALL = 2 * 10**8  # multiplications between two looks at Ctrl-C: tens of milliseconds

HUGE, TINY = 1e150, 1e-150  # sizes whose squares are still numbers
LOOK_AT_ALL = 4096  # up to this many rows, the longest is looked for among all, else in a sample

# scalars at the end of the output: z (n), w (n), motion (m), loaded rows (min(m, n)), these
SCALARS = 8
PRIMAL, DUAL, COMPLEMENTARITY, STATIONARITY, PIVOT_COUNT, RANK, ROUND_COUNT = 0, 1, 2, 3, 4, 5, 6


class Shape(NamedTuple):
    """Sizes that fix the work arrays."""

    n: int  # rows
    m: int  # coordinates
    s: int  # size of a block of M (m if dense)
    width: int  # entries kept of a candidate row
    K: int  # blocks of a candidate row; 0: dense layout
    capacity: int  # candidates
    loaded: int  # most rows that can be loaded
    buckets: int
    everything: bool  # whether all rows are candidates from the start


@kernel
def shape_of(n: int, width: int, K: int, m: int, nb: int, s: int, pinned: int, warm: int) -> Shape:
    """Return the sizes of a solve.

    Args:
        n, width, K: of the rows; K = 0 if they are dense.
        m, nb, s: coordinates, number and size of the blocks of M; nb = 0 for the identity.
        pinned: rows with bounds of their own, always candidates.
        warm: rows in the warm start, the first candidates.
    """
    if m <= DENSE or (nb > 0 and width != K * s):  # small, or the blocks are not those of M
        K = 0
    if K == 0:
        width = m
    if nb == 0:
        s = 0
    everything = warm == 0 and n <= ALL_ROWS * m
    capacity = n
    buckets = 1
    if not everything:
        buckets = max(1, min(BUCKETS, n // 8))
        capacity = pinned + min(warm, n) + min(m, n) + 4 * buckets
    return Shape(n, m, s, width, K, capacity, min(m, n), buckets, everything)


@entry
def work_size(n: int, width: int, K: int, m: int, nb: int, s: int, pinned: int, warm: int) -> int:
    """Return the size of the work array of `advance`; the arguments are those of `shape_of`."""
    sh = shape_of(n, width, K, m, nb, s, pinned, warm)
    return float_size(sh) + integer_size(sh)


@kernel
def float_size(sh: Shape) -> int:
    """Return how many floats `carve` hands out."""
    vectors = 9 * sh.m + 6 * sh.capacity + 2 * sh.loaded + sh.buckets + 2 * CHUNK
    return vectors + sh.m * sh.s + sh.capacity * sh.width + sh.loaded * (sh.m + sh.loaded)


@kernel
def integer_size(sh: Shape) -> int:
    """Return how many integers `carve` hands out."""
    return COUNTERS + sh.m + sh.capacity * (3 + sh.K) + sh.loaded + sh.buckets


class State(NamedTuple):
    """Views into the work array."""

    counters: np.ndarray
    L: np.ndarray
    first: np.ndarray
    y0: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    a: np.ndarray
    g: np.ndarray
    chunk: np.ndarray
    vectors: np.ndarray
    violation: np.ndarray
    bucket: np.ndarray
    wanted: np.ndarray
    cand: Candidates
    loaded: Loaded


@kernel
def carve(work: np.ndarray, sh: Shape) -> State:
    """Return the views of a solve's state into its work array."""
    m, cap, k = sh.m, sh.capacity, sh.loaded
    p = 0
    nb = m // sh.s if sh.s > 0 else 0
    L = work[p : p + nb * sh.s * sh.s].reshape(nb, sh.s, sh.s)
    p += m * sh.s
    y0 = work[p : p + m]
    y = work[p + m : p + 2 * m]
    weight = work[p + 2 * m : p + 3 * m]
    a = work[p + 3 * m : p + 4 * m]
    vectors = work[p + 4 * m : p + 9 * m].reshape(5, m)
    p += 9 * m
    A = work[p : p + cap * sh.width].reshape(cap, sh.width)
    p += cap * sh.width
    d = work[p : p + cap]
    beta = work[p + cap : p + 2 * cap]
    lo = work[p + 2 * cap : p + 3 * cap]
    hi = work[p + 3 * cap : p + 4 * cap]
    z = work[p + 4 * cap : p + 5 * cap]
    w = work[p + 5 * cap : p + 6 * cap]
    p += 6 * cap
    violation = work[p : p + sh.buckets]
    p += sh.buckets
    Q = work[p : p + k * m].reshape(k, m)
    p += k * m
    R = work[p : p + k * k].reshape(k, k)
    p += k * k
    g = work[p : p + 2 * k]
    chunk = work[p + 2 * k : p + 2 * k + 2 * CHUNK].reshape(2, CHUNK)

    integers = work[float_size(sh) :].view(np.int64)
    counters = integers[:COUNTERS]
    p = COUNTERS
    first = integers[p : p + m]
    p += m
    rows = integers[p : p + cap]
    place = integers[p + cap : p + 2 * cap]
    wanted = integers[p + 2 * cap : p + 3 * cap]
    p += 3 * cap
    layout = cap if sh.K > 0 else 0
    offset = integers[p : p + layout * sh.K].reshape(layout, sh.K)
    p += cap * sh.K
    which = integers[p : p + k]
    bucket = integers[p + k : p + k + sh.buckets]
    cand = Candidates(A, offset, rows, d, beta, lo, hi, z, w, place)
    loaded = Loaded(which, Q, R)
    return State(
        counters,
        L,
        first,
        y0,
        y,
        weight,
        a,
        g,
        chunk,
        vectors,
        violation,
        bucket,
        wanted,
        cand,
        loaded,
    )


@kernel
def start(
    M: np.ndarray,
    v: np.ndarray,
    lo: np.ndarray,
    hi: np.ndarray,
    warm: np.ndarray,
    counters: np.ndarray,
    L_out: np.ndarray,
    first_out: np.ndarray,
    weight_out: np.ndarray,
    y0_out: np.ndarray,
    y_out: np.ndarray,
    rows_out: np.ndarray,
    chosen_out: np.ndarray,
    everything: bool,
    symmetry: float,
) -> int:
    """Factor M and list the first candidates: all rows, or those with bounds or a warm start."""
    n, m = chosen_out.shape[0], v.shape[0]
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
    multiply_upper(L_out, first_out, v, y0_out)
    for j in range(m):
        y_out[j] = y0_out[j]
    size = norm(y0_out)
    if not size < HUGE or (size < TINY and largest_entry(v) > 0.0):
        return NOT_FINITE  # or not to be squared: the caller looks which

    count = 0
    for i in range(n):
        pinned = lo.shape[0] > 0 and (lo[i] != 0.0 or hi[i] != np.inf)
        chosen_out[i] = 1.0 if everything or pinned else 0.0
        if everything or pinned:
            rows_out[count] = i
            count += 1
    for t in range(warm.shape[0]):
        i = warm[t]
        if 0 <= i < n and chosen_out[i] == 0.0:
            chosen_out[i] = 1.0
            rows_out[count] = i
            count += 1
    if not everything and warm.shape[0] == 0:
        counters[STRIDE] = first_stride(n)
    counters[CANDIDATES] = count
    return SOLVED


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
def first_guess(
    cand: Candidates, wanted_out: np.ndarray, counters: np.ndarray, everything: bool
) -> int:
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
    if not everything:  # the plain candidates are the warm start
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


@kernel
def report(
    cand: Candidates,
    which: np.ndarray,
    counters: np.ndarray,
    lo: np.ndarray,
    hi: np.ndarray,
    out: np.ndarray,
    n: int,
    m: int,
    scale: float,
    primal: float,
    gap: float,
    stationarity: float,
    status: int,
) -> float:
    """Fill out with z, the loaded rows and the residuals; w and the motion are there already.

    For an infeasible problem z is the Farkas vector that `pivot` or `prepare` left in cand.w.

    Returns:
        The largest residual.
    """
    scalars = out[2 * n + m + min(m, n) :]
    dual = 0.0
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
    for l in range(counters[LOADED]):
        out[2 * n + m + l] = cand.rows[which[l]]
    size = scale if scale > 0.0 else 1.0
    scalars[PRIMAL] = primal / size
    scalars[DUAL] = dual / size
    scalars[COMPLEMENTARITY] = gap / size
    scalars[STATIONARITY] = stationarity
    scalars[PIVOT_COUNT] = counters[PIVOTS]
    scalars[RANK] = counters[LOADED]
    scalars[ROUND_COUNT] = counters[ROUNDS]
    return max(scalars[PRIMAL], scalars[DUAL], scalars[COMPLEMENTARITY], stationarity)


@entry
def advance(
    values: np.ndarray,
    offsets: np.ndarray,
    M: np.ndarray,
    v: np.ndarray,
    b: np.ndarray,
    lo: np.ndarray,
    hi: np.ndarray,
    warm: np.ndarray,
    work: np.ndarray,
    out: np.ndarray,
    fresh: bool,
    pinned: int,
    symmetry: float,
    feasibility: float,
    rank: float,
    zero_row: float,
    certificate: float,
    max_pivots: int,
) -> int:
    """Solve, or go on solving; fill out (layout: see SCALARS) when done.

    Args:
        values, offsets: the rows N (see `_rows`).
        M: inertia as blocks (nb, s, s); no blocks at all stand for the identity.
        b, lo, hi: empty arrays stand for 0, 0 and inf.
        warm: rows that were loaded in an earlier solve.
        work: of `work_size`; keeps the state between calls.
        fresh: whether this is the first call.
        max_pivots: negative for the default, DEFAULT_PIVOTS per row and coordinate.
    """
    n, m = values.shape[0], v.shape[0]
    K = offsets.shape[1] if offsets.shape[0] > 0 else 0
    sh = shape_of(n, values.shape[1], K, m, M.shape[0], M.shape[1], pinned, warm.shape[0])
    st = carve(work, sh)
    counters = st.counters
    cand = st.cand
    z = out[:n]  # until the end: 1 for rows that are candidates, 0 for the others
    w = out[n : 2 * n]
    x = out[2 * n : 2 * n + m]
    if max_pivots < 0:
        max_pivots = 100 + DEFAULT_PIVOTS * (n + m)
    budget = 10 + WORK_PER_CALL // (1 + m * m + cand.A.size)
    scale, primal, gap, stationarity = 0.0, 0.0, 0.0, 0.0
    status = SOLVED
    sure = SURE
    attempts, settled, settled_at = 0, 0, np.int64(0)
    unsettled = False
    if fresh:
        status = start(
            M, v, lo, hi, warm, counters, st.L, st.first, st.weight, st.y0, st.y, cand.rows, z,
            sh.everything, symmetry,
        )  # fmt: skip
    shortest = 0.0
    if status == SOLVED:
        stride = np.int64(1) if n <= LOOK_AT_ALL else np.int64(THINNING)
        longest = longest_row(values, offsets, st.weight, stride, st.chunk[1])
        shortest = zero_row * longest
        if not longest < HUGE:
            status = NOT_FINITE
        if longest < TINY and largest_entry(values.reshape(values.size)) > 0.0:
            status = NOT_FINITE
    while status == SOLVED:
        if counters[READY] < counters[CANDIDATES]:
            whiten(
                values, offsets, st.L, st.first, cand.rows, counters[WHITE],
                counters[CANDIDATES], cand.A, cand.offset, cand.d,
            )  # fmt: skip
            counters[WHITE] = counters[CANDIDATES]
            status = prepare(b, lo, hi, cand, counters, shortest)
            if status != SOLVED:
                break
        if counters[STAGE] == INSTALL:
            counters[STAGE] = RUNNING
            wanted = first_guess(cand, st.wanted, counters, sh.everything)
            if wanted >= 0:
                install(cand, st.loaded, counters, st.wanted[:wanted], st.a, st.g, rank)
                unsettled = True
        if unsettled:
            settle(cand, st.loaded, counters, st.y0, st.y, st.a, st.g)
            unsettled = False
            settled_at = counters[PIVOTS]
        scale = norm(st.y0)
        status = pivot(
            cand, st.loaded, counters, st.y, st.a, st.g, scale, feasibility, rank, max_pivots,
            budget,
        )  # fmt: skip
        if status != SOLVED:
            break
        moved = counters[PIVOTS] != settled_at
        if moved and settled < MAX_ATTEMPTS and stiff(st.loaded.R, counters[LOADED]):
            settled += 1
            unsettled = True
            continue
        counters[ROUNDS] += 1
        stationarity, gap = finish(
            values, offsets, M, v, b, st.L, st.first, cand, st.loaded, counters, st.vectors,
            st.g, x, scale if scale > 0.0 else norm(st.y),
        )  # fmt: skip
        # The size of the motion as rebuilt: st.y may have wandered off while forces were huge.
        multiply_upper(st.L, st.first, x, st.a)
        scale = max(scale, norm(st.a))
        primal = price(
            values, offsets, b, lo, hi, st.L, st.first, st.weight, x, st.a, st.chunk[0],
            st.chunk[1], w, st.bucket, st.violation, feasibility * scale, shortest,
            counters[STRIDE], sure,
        )  # fmt: skip
        if np.isnan(primal):
            status = NOT_FINITE
        elif primal > 0.0 and not sh.everything:
            make_room(cand, st.loaded.which, counters, z, sh.buckets)
            if gather(cand.rows, st.bucket, counters, z):
                multiply_upper(st.L, st.first, x, st.y)
            elif sure < np.inf:
                sure = np.inf  # no new row: estimated lengths misled, judge by the true ones
            else:
                break
        elif primal > 0.0 and attempts < MAX_ATTEMPTS:
            attempts += 1  # rounding in the whitened rows: go on from the motion as rebuilt
            multiply_upper(st.L, st.first, x, st.y)
        elif counters[STRIDE] > 1:
            counters[STRIDE] //= THINNING
        else:
            break
    if status != PAUSED:
        worst = report(
            cand,
            st.loaded.which,
            counters,
            lo,
            hi,
            out,
            n,
            m,
            scale,
            primal,
            gap,
            stationarity,
            status,
        )
        if status == SOLVED and not worst <= certificate:
            status = UNCERTIFIED
    return status
