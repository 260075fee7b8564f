"""Where a solve keeps its state: views into one work array, so that it can pause and go on."""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from holdfast.lcp._kernel import entry, kernel
from holdfast.lcp._pivoting import Candidates, Loaded

DENSE = 48  # up to this many coordinates, candidates are stored dense: loops over blocks cost more
ALL_ROWS = 16  # up to this many rows per coordinate, all can be candidates at once
BUCKETS = 127  # at most this many new candidates in a round; prime, as the hash of `_bucket` likes
CHUNK = 512  # rows priced at a time: their w stays in the first-level cache between two looks

COUNTERS = 8  # integers at the head of the integer part of the work array
CANDIDATES, LOADED, PIVOTS, STAGE, ROUNDS, STRIDE, READY, WHITE = 0, 1, 2, 3, 4, 5, 6, 7
INSTALL, RUNNING = 0, 1  # values of STAGE

NUMBERS = 8  # floats at the head of the work array
SCALE, PRIMAL, GAP, STATIONARITY = 0, 1, 2, 3  # size of the motion, residuals
SHORTEST, SURE = 4, 5  # tolerances of `price`
KEPT, REJECTED = 6, 7  # smallest kept and largest rejected pivot of the equality rows


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
    small: bool  # whether there is room for all rows among the candidates


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
    small = n <= ALL_ROWS * m
    capacity = n
    buckets = 0
    if not small:
        buckets = max(1, min(BUCKETS, n // 8))
        capacity = pinned + min(warm, n) + min(m, n) + 4 * buckets
    return Shape(n, m, s, width, K, capacity, min(m, n), buckets, small)


@entry
def work_size(n: int, width: int, K: int, m: int, nb: int, s: int, pinned: int, warm: int) -> int:
    """Return the size of the work array of `proceed`; the arguments are those of `shape_of`."""
    sh = shape_of(n, width, K, m, nb, s, pinned, warm)
    return float_size(sh) + integer_size(sh)


@kernel
def float_size(sh: Shape) -> int:
    """Return how many floats `carve` hands out."""
    vectors = NUMBERS + 9 * sh.m + 6 * sh.capacity + 2 * sh.loaded + sh.buckets + 2 * CHUNK
    return vectors + sh.m * sh.s + sh.capacity * sh.width + sh.loaded * (sh.m + sh.loaded)


@kernel
def integer_size(sh: Shape) -> int:
    """Return how many integers `carve` hands out."""
    return COUNTERS + sh.m + sh.capacity * (3 + sh.K) + sh.loaded + sh.buckets


class State(NamedTuple):
    """Views into the work array."""

    counters: np.ndarray
    numbers: np.ndarray
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
def carve(work: np.ndarray, as_integers: np.ndarray, sh: Shape) -> State:
    """Return the views of a solve's state into its work array, given as floats and integers."""
    m, cap, k = sh.m, sh.capacity, sh.loaded
    numbers = work[:NUMBERS]
    p = NUMBERS
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

    integers = as_integers[float_size(sh) :]
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
        counters, numbers, L, first, y0, y, weight, a, g, chunk, vectors, violation, bucket,
        wanted, cand, loaded,
    )  # fmt: skip
