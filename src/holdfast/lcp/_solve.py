"""One solve from matrices to certified forces: the kernel behind `solve_factored`.

Rounds of: pivot on the candidate rows, rebuild the motion on the original data, one pass over
*all* rows to see whether any is violated, add the worst of each kind to the candidates. With few
rows all of them are candidates at once and there is one round; with many the number of passes
over N is the number of rounds, about four, not the number of pivots. The loaded rows are never
dropped between rounds, so the objective falls strictly from round to round and the method is
finite for the same reason as its inner loop.

All state lives in two work arrays, so that the kernel can return PAUSED and be called again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from holdfast.lcp._certify import CHUNK, SURE, finish, price
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
)
from holdfast.lcp._rows import whiten

# What the kernel can say beyond the codes of `pivot`: no certificate, or unusable input.
UNCERTIFIED = 4
NOT_SYMMETRIC, NOT_DEFINITE, NOT_FINITE, BAD_BOUNDS = 10, 11, 12, 13

ALL_ROWS = 256  # up to this many rows (or 4 m, or ALL_ENTRIES entries) all are candidates
ALL_ENTRIES = 8192
BUCKETS = 128  # at most this many new candidates in a round
SAMPLE, THINNING = 2048, 17  # see `first_stride`
COUNTERS = 8  # integers kept at the head of the integer work array
CANDIDATES, LOADED, PIVOTS, STAGE, ROUNDS, STRIDE, READY, WHITE = 0, 1, 2, 3, 4, 5, 6, 7
NEW, INSTALL, RUNNING = 0, 1, 2  # values of STAGE

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


@kernel
def shape_of(
    values: np.ndarray, offsets: np.ndarray, M: np.ndarray, m: int, pinned: int
) -> Shape:
    """Return the sizes of a solve; `pinned` rows have bounds of their own or are wanted."""
    n = values.shape[0]
    K = 0
    width = m
    s = M.shape[1] if M.shape[0] > 0 else m
    if offsets.shape[0] > 0 and (M.shape[0] == 0 or values.shape[1] == offsets.shape[1] * s):
        K = offsets.shape[1]
        width = values.shape[1]
    capacity = n
    buckets = 1
    if n > max(ALL_ROWS, 4 * m) and n * width > ALL_ENTRIES:
        buckets = BUCKETS
        capacity = min(n, pinned + min(m, n) + 8 * BUCKETS)
    return Shape(n, m, s, width, K, capacity, min(m, n), buckets)


@entry
def work_size(
    values: np.ndarray, offsets: np.ndarray, M: np.ndarray, m: int, pinned: int
) -> tuple[int, int]:
    """Return how many floats and integers the work arrays of `advance` need."""
    sh = shape_of(values, offsets, M, m, pinned)
    floats = sh.m * sh.s + 9 * sh.m + sh.capacity * (sh.width + 6) + sh.buckets
    floats += sh.loaded * (sh.m + sh.loaded + 2) + CHUNK
    integers = COUNTERS + 3 * sh.m + sh.capacity * (4 + sh.K) + sh.loaded + sh.buckets
    return floats, integers


class State(NamedTuple):
    """Views into the work arrays."""

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
def carve(work: np.ndarray, integers: np.ndarray, sh: Shape, identity: bool) -> State:
    """Return the views of a solve's state into its two work arrays."""
    m, cap, k = sh.m, sh.capacity, sh.loaded
    p = 0
    nb = 0 if identity else m // max(sh.s, 1)
    L = work[p : p + nb * sh.s * sh.s].reshape(nb, sh.s, sh.s)
    p += m * sh.s
    y0 = work[p : p + m]
    y = work[p + m : p + 2 * m]
    weight = work[p + 2 * m : p + 3 * m]
    a = work[p + 3 * m : p + 4 * m]
    vectors = work[p + 4 * m : p + 9 * m].reshape(5, m)
    p += 9 * m
    if sh.K > 0:
        A = work[p : p + cap * sh.width].reshape(cap, sh.width)
    else:
        A = work[p : p + cap * sh.width].reshape(sh.width, cap)
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
    chunk = work[p + 2 * k : p + 2 * k + CHUNK]

    p = COUNTERS
    first = integers[p : p + m]
    low = integers[p + m : p + 2 * m]
    high = integers[p + 2 * m : p + 3 * m]
    p += 3 * m
    rows = integers[p : p + cap]
    place = integers[p + cap : p + 2 * cap]
    wanted = integers[p + 2 * cap : p + 4 * cap]
    p += 4 * cap
    layout = cap if sh.K > 0 else 0
    offset = integers[p : p + layout * sh.K].reshape(layout, sh.K)
    p += cap * sh.K
    which = integers[p : p + k]
    bucket = integers[p + k : p + k + sh.buckets]
    cand = Candidates(A, offset, low, high, rows, d, beta, lo, hi, z, w, place)
    loaded = Loaded(which, Q, R)
    return State(
        L, first, y0, y, weight, a, g, chunk, vectors, violation, bucket, wanted, cand, loaded
    )


@kernel
def start(
    M: np.ndarray,
    v: np.ndarray,
    lo: np.ndarray,
    hi: np.ndarray,
    warm: np.ndarray,
    counters: np.ndarray,
    st: State,
    n: int,
    symmetry: float,
) -> int:
    """Factor M and list the first candidates: all rows, or those with bounds or a warm start."""
    m, capacity = v.shape[0], st.cand.rows.shape[0]
    for c in range(COUNTERS):
        counters[c] = 0
    counters[STAGE] = INSTALL
    counters[STRIDE] = 1
    for j in range(m):
        st.cand.low[j] = capacity
        st.cand.high[j] = 0
        st.first[j] = 0
        st.weight[j] = 1.0
    if M.shape[0] > 0:
        code = cholesky(M, st.first, st.L, symmetry)
        if code > 0:
            return NOT_SYMMETRIC if code == 1 else NOT_DEFINITE
        s = M.shape[1]
        for j in range(m):
            st.weight[j] = 1.0 / M[j // s, j % s, j % s]
    multiply_upper(st.L, st.first, v, st.y0)
    for j in range(m):
        st.y[j] = st.y0[j]
    if not np.isfinite(norm(st.y0)):
        return NOT_FINITE

    count = 0
    everything = capacity == n
    for i in range(n if everything or lo.shape[0] > 0 else 0):
        if everything or lo[i] != 0.0 or hi[i] != np.inf:
            st.cand.rows[count] = i
            count += 1
    if not everything:
        for t in range(warm.shape[0]):
            i = warm[t]
            if lo.shape[0] == 0 or (lo[i] == 0.0 and hi[i] == np.inf):
                st.cand.rows[count] = i
                count += 1
        if warm.shape[0] == 0:
            counters[STRIDE] = first_stride(n)
    counters[CANDIDATES] = count
    return SOLVED


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
    st: State,
    counters: np.ndarray,
    zero_row: float,
) -> int:
    """Initialise the variables of the candidates that are whitened but not ready yet.

    Returns:
        SOLVED, NOT_FINITE, BAD_BOUNDS, or INFEASIBLE for a row of zeros that cannot hold; then
        cand.w is its certificate.
    """
    cand = st.cand
    longest = 0.0
    for r in range(counters[CANDIDATES]):
        longest = max(longest, cand.d[r])
    for r in range(counters[READY], counters[CANDIDATES]):
        i = cand.rows[r]
        d = cand.d[r]
        beta = b[i] if b.shape[0] > 0 else 0.0
        low = lo[i] if lo.shape[0] > 0 else 0.0
        high = hi[i] if hi.shape[0] > 0 else np.inf
        if not (np.isfinite(d) and np.isfinite(beta)):
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
        elif d <= zero_row * longest and beta == 0.0:
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
def first_guess(warm: np.ndarray, st: State, counters: np.ndarray, n: int) -> int:
    """Fill st.wanted with the candidates to load at once: equality rows, then the warm start.

    Returns:
        How many; -1 if none is wanted and all forces start from zero.
    """
    cand = st.cand
    wanted = 0
    moved = False
    for r in range(counters[CANDIDATES]):
        if cand.lo[r] == -np.inf and cand.hi[r] == np.inf:
            st.wanted[wanted] = r
            wanted += 1
        moved = moved or cand.z[r] != 0.0
    if cand.rows.shape[0] == n:  # candidate numbers are row numbers
        for t in range(warm.shape[0]):
            st.wanted[wanted] = warm[t]
            wanted += 1
    elif warm.shape[0] > 0:  # the plain candidates are the warm start
        for r in range(counters[CANDIDATES]):
            if cand.lo[r] == 0.0 and cand.hi[r] == np.inf:
                st.wanted[wanted] = r
                wanted += 1
    return wanted if wanted > 0 or moved else -1


@kernel
def make_room(st: State, counters: np.ndarray) -> None:
    """Drop plain candidates that carry no force, if the buckets might not fit any more.

    Kept candidates move to the front; their rows must be whitened again.
    """
    cand = st.cand
    count, capacity = counters[CANDIDATES], cand.rows.shape[0]
    if count + st.bucket.shape[0] <= capacity or st.bucket.shape[0] == 1:
        return
    kept = 0
    for r in range(count):
        plain = cand.lo[r] == 0.0 and cand.hi[r] == np.inf
        if plain and cand.place[r] == FREE and cand.z[r] == 0.0:
            continue
        if cand.place[r] != FREE:
            st.loaded.which[cand.place[r]] = kept
        cand.rows[kept] = cand.rows[r]
        cand.beta[kept] = cand.beta[r]
        cand.lo[kept] = cand.lo[r]
        cand.hi[kept] = cand.hi[r]
        cand.z[kept] = cand.z[r]
        cand.place[kept] = cand.place[r]
        kept += 1
    for j in range(cand.low.shape[0]):
        cand.low[j] = capacity
        cand.high[j] = 0
    counters[CANDIDATES] = kept
    counters[READY] = kept
    counters[WHITE] = 0


@kernel
def gather(st: State, counters: np.ndarray) -> bool:
    """Append the rows that `price` found to the candidates; return whether any is new."""
    cand = st.cand
    count = counters[CANDIDATES]
    for k in range(st.bucket.shape[0]):
        i = st.bucket[k]
        known = i < 0
        for r in range(count):
            known = known or cand.rows[r] == i
        if not known:
            cand.rows[count] = i
            count += 1
    grown = count > counters[CANDIDATES]
    counters[CANDIDATES] = count
    return grown


@kernel
def report(
    st: State,
    counters: np.ndarray,
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
    cand = st.cand
    scalars = out[2 * n + m + min(m, n) :]
    for i in range(n):
        out[i] = 0.0
    dual = 0.0
    for r in range(counters[CANDIDATES]):
        i = cand.rows[r]
        if status == INFEASIBLE:
            out[i] = cand.w[r] / cand.d[r]
            continue
        z = cand.z[r]
        out[i] = z / cand.d[r]
        dual = max(dual, cand.lo[r] - z, z - cand.hi[r])
        if cand.place[r] == FREE:
            w = out[n + i] / cand.d[r]
            if z < cand.hi[r]:
                primal = max(primal, -w)
            if z > cand.lo[r]:
                primal = max(primal, w)
    for l in range(counters[LOADED]):
        out[2 * n + m + l] = cand.rows[st.loaded.which[l]]
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
    integers: np.ndarray,
    out: np.ndarray,
    pinned: int,
    symmetry: float,
    feasibility: float,
    rank: float,
    zero_row: float,
    certificate: float,
    max_pivots: int,
    budget: int,
) -> int:
    """Solve, or go on solving; fill out (layout: see SCALARS) when done.

    Args:
        values, offsets: the rows N (see `_rows`).
        M: inertia as blocks (nb, s, s); no blocks at all stand for the identity.
        b, lo, hi: empty arrays stand for 0, 0 and inf.
        warm: rows that were loaded in an earlier solve.
        integers: its first COUNTERS entries are 0 at the first call.
        budget: pivots until PAUSED is returned.
    """
    n, m = values.shape[0], v.shape[0]
    sh = shape_of(values, offsets, M, m, pinned)
    counters = integers[:COUNTERS]
    st = carve(work, integers, sh, M.shape[0] == 0)
    cand = st.cand
    w = out[n : 2 * n]
    x = out[2 * n : 2 * n + m]
    scale, primal, gap, stationarity = 0.0, 0.0, 0.0, 0.0
    status = SOLVED
    sure = SURE
    if counters[STAGE] == NEW:
        status = start(M, v, lo, hi, warm, counters, st, n, symmetry)
    while status == SOLVED:
        if counters[READY] < counters[CANDIDATES]:
            whiten(
                values, offsets, st.L, st.first, cand.rows, counters[WHITE],
                counters[CANDIDATES], cand.A, cand.offset, cand.low, cand.high, cand.d,
            )  # fmt: skip
            counters[WHITE] = counters[CANDIDATES]
            status = prepare(b, lo, hi, st, counters, zero_row)
            if status != SOLVED:
                break
        if counters[STAGE] == INSTALL:
            counters[STAGE] = RUNNING
            wanted = first_guess(warm, st, counters, n)
            if wanted >= 0:
                install(
                    cand, st.loaded, counters, st.wanted[:wanted], st.y0, st.y, st.a, st.g, rank
                )
        scale = norm(st.y0)
        status = pivot(
            cand, st.loaded, counters, st.y, st.a, st.g, scale, feasibility, rank, max_pivots,
            budget,
        )  # fmt: skip
        if status != SOLVED:
            break
        counters[ROUNDS] += 1
        scale = max(scale, norm(st.y))
        stationarity, gap = finish(
            values, offsets, M, v, b, st.L, st.first, cand, st.loaded, counters, st.vectors,
            st.g, x, scale,
        )  # fmt: skip
        primal = price(
            values, offsets, b, lo, hi, st.L, st.first, st.weight, x, st.a, st.chunk, w,
            st.bucket, st.violation, feasibility * scale, counters[STRIDE], sure,
        )  # fmt: skip
        if np.isnan(primal):
            status = NOT_FINITE
        elif primal > 0.0:
            make_room(st, counters)
            if gather(st, counters):
                multiply_upper(st.L, st.first, x, st.y)
            elif sure < np.inf:
                sure = np.inf  # no new row: estimated lengths misled, judge by the true ones
            else:
                break
        elif counters[STRIDE] > 1:
            counters[STRIDE] //= THINNING
        else:
            break
    if status != PAUSED:
        worst = report(st, counters, out, n, m, scale, primal, gap, stationarity, status)
        if status == SOLVED and not worst <= certificate:
            status = UNCERTIFIED
    return status
