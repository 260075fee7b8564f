"""One solve from matrices to certified forces: the kernel behind `solve_factored`.

Rounds of: pivot on the candidate rows, rebuild the motion on the original data (`run`), one
pass over *all* rows to see whether any is violated, add the worst of each kind to the candidates
(`survey`). With few rows all of them are candidates at once and `run` does it all; with many
the number of passes over N is the number of rounds, about four, not the number of pivots. The
loaded rows are never dropped between rounds, so the objective falls strictly from round to round
and the method is finite for the same reason as its inner loop.

All state lives in one work array, so that the kernels can return and be called again.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

import numpy as np

from holdfast._jit import entry, kernel
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
    list_first,
    make_room,
    prepare,
    start,
)
from holdfast.lcp._certify import UNCERTIFIED, finish, report
from holdfast.lcp._loading import install, settle, stiff, take_equalities
from holdfast.lcp._pivoting import (
    INFEASIBLE,
    PAUSED,
    SOLVED,
    pivot,
)
from holdfast.lcp._price import FAIRLY_SURE, longest_row, look, price
from holdfast.lcp._rows import whiten
from holdfast.lcp._state import (
    CANDIDATES,
    GAP,
    INSTALL,
    KEPT,
    LOADED,
    NUMBERS,
    PIVOTS,
    PRIMAL,
    REJECTED,
    ROUNDED,
    ROUNDS,
    RUNNING,
    SCALE,
    SHORTEST,
    STAGE,
    STATIONARITY,
    STRIDE,
    SURE,
    WHITE,
    carve,
    shape_of,
    work_size,
)
from holdfast.lcp.result import SCALARS
from holdfast.linalg.cholesky import multiply_upper
from holdfast.linalg.vectors import norm
from holdfast.linalg.views import vector

__all__ = [
    "BAD_BOUNDS", "INFEASIBLE", "LEFT_OUT", "NOT_DEFINITE", "NOT_FINITE", "NOT_SYMMETRIC", "PAUSED",
    "SCALARS", "SOLVED", "SURVEY", "TOO_SMALL", "UNCERTIFIED", "run", "survey",
]  # fmt: skip

MAX_ATTEMPTS = 3  # how often to go on after rounding hid a violated row
DEFAULT_PIVOTS = 50  # far above the 3 (n + m) ever seen
WORK_PER_CALL = 2 * 10**8  # multiplications between two looks at Ctrl-C: tens of milliseconds
LOOK_AT = 1024  # among about so many rows the longest one is looked for

# Further states of `run`: the candidates are solved, the other rows are to be looked at; all is
# solved, but some of the equality rows that come first were left out; nothing was done, as the
# work array must be larger, as large as out[0].
SURVEY, LEFT_OUT, TOO_SMALL = 20, 21, 22


@entry
def run(
    values: np.ndarray,
    offsets: np.ndarray,
    M: np.ndarray,
    v: np.ndarray,
    f: np.ndarray,
    b: np.ndarray,
    lo: np.ndarray,
    hi: np.ndarray,
    warm: np.ndarray,
    work: np.ndarray,
    out: np.ndarray,
    fresh: bool,
    pinned: int,
    h: float,
    options: np.ndarray,
    equality_rank: float,
    pairs: int,
    ahead: int,
    behind: int,
) -> int:
    """Do as `proceed` does; work has m more entries, where v is kept.

    Options are in one array (`Options.kernel_arguments`): each argument costs time to pass.
    """
    m, K = v.shape[0], offsets.shape[1] if offsets.shape[0] > 0 else 0
    if fresh:
        sh = shape_of(
            values.shape[0], values.shape[1], K, m, M.shape[0], M.shape[1], pinned, warm.shape[0]
        )
        if work.shape[0] < m + work_size(sh):
            out[0] = m + work_size(sh)
            return TOO_SMALL
    x0 = vector(work, 0, m)
    if fresh:
        for j in range(m):
            x0[j] = v[j]
    status = proceed(
        values, offsets, M, x0, b, lo, hi, warm, work[m:], work.view(np.int64)[m:], out, fresh,
        pinned, options[0], options[1], options[2], options[3], options[4], np.int64(options[5]),
        equality_rank, pairs, ahead, behind, f, h,
    )  # fmt: skip
    return judge(status, out, values.shape[0], m, ahead, behind)


@kernel
def judge(status: int, out: np.ndarray, n: int, m: int, ahead: int, behind: int) -> int:
    """Return LEFT_OUT for a solved problem where not all rows ahead..behind are loaded.

    They were taken first, so the last of those that are loaded shows how many are.
    """
    if status != SOLVED or behind == ahead:
        return status
    last = behind - ahead - 1
    if last < min(n, m) and ahead <= out[2 * n + m + last] < behind:
        return status
    return LEFT_OUT


@kernel
def proceed(
    values: np.ndarray,
    offsets: np.ndarray,
    M: np.ndarray,
    v: np.ndarray,
    b: np.ndarray,
    lo: np.ndarray,
    hi: np.ndarray,
    warm: np.ndarray,
    work: np.ndarray,
    as_integers: np.ndarray,
    out: np.ndarray,
    fresh: bool,
    pinned: int,
    symmetry: float,
    feasibility: float,
    rank: float,
    zero_row: float,
    certificate: float,
    max_pivots: int,
    equality_rank: float,
    pairs: int,
    ahead: int,
    behind: int,
    f: np.ndarray,
    h: float,
) -> int:
    """Solve, or go on solving; fill out (layout: see `result.SCALARS`) when done.

    Args:
        values, offsets: the rows N (see `_rows`).
        M: inertia as blocks (nb, s, s); no blocks at all stand for the identity.
        b, lo, hi: empty arrays stand for 0, 0 and inf.
        warm: rows that were loaded in an earlier solve.
        work, as_integers: of `work_size`, the same memory twice; keeps the state between calls.
        fresh: whether this is the first call.
        max_pivots: negative for the default, DEFAULT_PIVOTS per row and coordinate.
        equality_rank: if positive, of Find-Indices for the equality rows; see `take_equalities`.
        pairs, ahead, behind: the order in which they are taken; see `row_at`.
        f, h: forces that are yet to act, or an empty array; h M^-1 f is added to v at first.
    """
    n, m = values.shape[0], v.shape[0]
    K = offsets.shape[1] if offsets.shape[0] > 0 else 0
    sh = shape_of(n, values.shape[1], K, m, M.shape[0], M.shape[1], pinned, warm.shape[0])
    st = carve(work, as_integers, sh)
    counters, numbers, cand = st.counters, st.numbers, st.cand
    chosen = vector(out, 0, n)  # until the end: 1 for rows that are candidates, 0 for the others
    w, x = vector(out, n, n), vector(out, 2 * n, m)
    if max_pivots < 0:
        max_pivots = 100 + DEFAULT_PIVOTS * (n + m)
    budget = 10 + WORK_PER_CALL // (1 + m * m + cand.A.size)
    status = SOLVED
    attempts, settled, settled_at = 0, 0, np.int64(0)
    unsettled = False
    if fresh:
        status = start(
            M, v, counters, st.L, st.first, st.weight, st.y0, st.y, chosen, symmetry, f, h
        )
        for k in range(NUMBERS):
            numbers[k] = 0.0
        numbers[KEPT] = np.inf
        if status == SOLVED:
            longest = longest_row(values, offsets, st.weight, 1 + n // LOOK_AT)
            if longest < TINY:  # hardly: only rows of zeros in the sample
                longest = longest_row(values, offsets, st.weight, np.int64(1))
            numbers[SHORTEST] = zero_row * longest
            numbers[SURE] = FAIRLY_SURE
            if not longest < HUGE:
                status = NOT_FINITE
            if longest < TINY and largest_entry(values.reshape(values.size)) > 0.0:
                status = NOT_FINITE
        if status == SOLVED and equality_rank > 0.0:
            status, numbers[KEPT], numbers[REJECTED] = take_equalities(
                values, offsets, b, lo, hi, st.L, st.first, cand, st.loaded, counters, chosen,
                st.a, st.g, numbers[SHORTEST], max(rank, equality_rank), pairs, ahead, behind,
            )  # fmt: skip
        if status == SOLVED:
            list_first(lo, hi, warm, counters, cand.rows, chosen, sh.small, not equality_rank > 0.0)
    while status == SOLVED:
        if counters[WHITE] < counters[CANDIDATES]:
            whiten(
                values, offsets, st.L, st.first, cand.rows, counters[WHITE],
                counters[CANDIDATES], cand.A, cand.offset, cand.d,
            )  # fmt: skip
            counters[WHITE] = counters[CANDIDATES]
            status = prepare(b, lo, hi, cand, counters, numbers[SHORTEST])
            if status != SOLVED:
                break
        if counters[STAGE] == INSTALL:
            counters[STAGE] = RUNNING
            wanted = first_guess(cand, st.wanted, counters, warm.shape[0] > 0)
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
        numbers[STATIONARITY], numbers[GAP], numbers[ROUNDED] = finish(
            values, offsets, M, v, b, st.L, st.first, cand, st.loaded, counters, st.vectors,
            st.g, x, scale if scale > 0.0 else norm(st.y),
        )  # fmt: skip
        # The motion as rebuilt, and its size: st.y may have wandered off while forces were huge.
        multiply_upper(st.L, st.first, x, st.y)
        numbers[SCALE] = max(scale, norm(st.y))
        if not sh.small:
            return SURVEY
        before = counters[CANDIDATES]
        numbers[PRIMAL] = look(
            values, offsets, b, lo, hi, st.L, st.first, x, st.a, cand, counters, chosen, w,
            feasibility * numbers[SCALE], numbers[SHORTEST],
        )  # fmt: skip
        if np.isnan(numbers[PRIMAL]):
            status = NOT_FINITE
        elif counters[CANDIDATES] == before:
            if numbers[PRIMAL] == 0.0 or attempts == MAX_ATTEMPTS:
                break
            attempts += 1  # rounding in the whitened rows: go on from the motion as rebuilt
    if status == PAUSED:
        return status
    return report(cand, st.loaded.which, counters, numbers, lo, hi, out, m, status, certificate)


@entry
def survey(
    values: np.ndarray,
    offsets: np.ndarray,
    M: np.ndarray,
    m: int,
    b: np.ndarray,
    lo: np.ndarray,
    hi: np.ndarray,
    warm: np.ndarray,
    work: np.ndarray,
    as_integers: np.ndarray,
    out: np.ndarray,
    pinned: int,
    feasibility: float,
    certificate: float,
    ahead: int,
    behind: int,
) -> int:
    """Look at all rows after `proceed` returned SURVEY, for rows that are violated.

    Returns:
        SURVEY if there are new candidates for `run`, else the status of the answer in out.
    """
    n = values.shape[0]
    K = offsets.shape[1] if offsets.shape[0] > 0 else 0
    sh = shape_of(n, values.shape[1], K, m, M.shape[0], M.shape[1], pinned, warm.shape[0])
    st = carve(work, as_integers, sh)
    counters, numbers, cand = st.counters, st.numbers, st.cand
    chosen = out[:n]
    x = out[2 * n : 2 * n + m]
    status = SOLVED
    while status == SOLVED:
        numbers[PRIMAL] = price(
            values, offsets, b, lo, hi, st.L, st.first, st.weight, x, st.a, st.chunk[0],
            st.chunk[1], out[n : 2 * n], st.bucket, st.violation, feasibility * numbers[SCALE],
            numbers[SHORTEST], counters[STRIDE], numbers[SURE],
        )  # fmt: skip
        if np.isnan(numbers[PRIMAL]):
            status = NOT_FINITE
        elif numbers[PRIMAL] > 0.0:
            make_room(cand, st.loaded.which, counters, chosen, sh.buckets)
            if gather(cand.rows, st.bucket, counters, chosen):
                return SURVEY
            if numbers[SURE] == np.inf:
                break
            numbers[SURE] = np.inf  # no new row: estimated lengths misled, judge by the true ones
        elif counters[STRIDE] > 1:
            counters[STRIDE] //= THINNING
        else:
            break
    status = report(cand, st.loaded.which, counters, numbers, lo, hi, out, m, status, certificate)
    return judge(status, out, n, m, ahead, behind)
