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

import numpy as np

from holdfast.lcp._candidates import (
    BAD_BOUNDS,
    HUGE,
    NOT_DEFINITE,
    NOT_FINITE,
    NOT_SYMMETRIC,
    THINNING,
    TINY,
    first_guess,
    gather,
    largest_entry,
    make_room,
    prepare,
    start,
)
from holdfast.lcp._certify import finish
from holdfast.lcp._envelope import multiply_upper
from holdfast.lcp._kernel import entry, kernel
from holdfast.lcp._pivoting import (
    FREE,
    INFEASIBLE,
    PAUSED,
    SOLVED,
    Candidates,
    install,
    norm,
    pivot,
    settle,
    stiff,
)
from holdfast.lcp._price import SURE, longest_row, price
from holdfast.lcp._rows import whiten
from holdfast.lcp._state import (
    CANDIDATES,
    INSTALL,
    LOADED,
    PIVOTS,
    READY,
    ROUNDS,
    RUNNING,
    STAGE,
    STRIDE,
    WHITE,
    carve,
    shape_of,
    work_size,
)

__all__ = [
    "BAD_BOUNDS", "INFEASIBLE", "NOT_DEFINITE", "NOT_FINITE", "NOT_SYMMETRIC", "PAUSED",
    "SCALARS", "SOLVED", "advance", "work_size",
]  # fmt: skip

UNCERTIFIED = 4  # as in `holdfast.lcp.Status`

MAX_ATTEMPTS = 3  # how often to go on after rounding hid a violated row
DEFAULT_PIVOTS = 50  # far above the 3 (n + m) ever seen
WORK_PER_CALL = 2 * 10**8  # multiplications between two looks at Ctrl-C: tens of milliseconds
LOOK_AT_ALL = 4096  # up to this many rows, the longest is looked for among all, else in a sample

# scalars at the end of the output: z (n), w (n), motion (m), loaded rows (min(m, n)), these
SCALARS = 8
PRIMAL, DUAL, COMPLEMENTARITY, STATIONARITY, PIVOT_COUNT, RANK, ROUND_COUNT = 0, 1, 2, 3, 4, 5, 6


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
