"""Where a solve keeps its state: views into one work array, so that it can pause and go on."""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from holdfast._jit import kernel
from holdfast.lcp._pivoting import Candidates, Loaded
from holdfast.linalg.views import blocks, part, vector

DENSE = 48  # up to this many coordinates, candidates are stored dense: loops over blocks cost more
ALL_ROWS = 16  # up to this many rows per coordinate, all can be candidates at once
BUCKETS = 127  # at most this many new candidates in a round; prime, as the hash of `_bucket` likes
CHUNK = 512  # rows priced at a time: their w stays in the first-level cache between two looks

COUNTERS = 8  # integers at the head of the integer part of the work array
CANDIDATES, LOADED, PIVOTS, STAGE, ROUNDS, STRIDE, READY, WHITE = 0, 1, 2, 3, 4, 5, 6, 7
INSTALL, RUNNING = 0, 1  # values of STAGE

NUMBERS = 9  # floats at the head of the work array
SCALE, PRIMAL, GAP, STATIONARITY = 0, 1, 2, 3  # size of the motion, residuals
SHORTEST, SURE = 4, 5  # tolerances of `price`
KEPT, REJECTED = 6, 7  # smallest kept and largest rejected pivot of the equality rows
ROUNDED = 8  # part of the residual of the momentum balance that is the rounding of forces


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


@kernel
def work_size(sh: Shape) -> int:
    """Return the size of the work array of `proceed`."""
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
    numbers = vector(work, 0, NUMBERS)
    p = NUMBERS
    nb = m // sh.s if sh.s > 0 else 0
    L = blocks(work, p, nb, sh.s, sh.s)
    p += m * sh.s
    y0, y, weight = vector(work, p, m), vector(work, p + m, m), vector(work, p + 2 * m, m)
    a = vector(work, p + 3 * m, m)
    vectors = part(work, p + 4 * m, 5, m)
    p += 9 * m
    A = part(work, p, cap, sh.width)
    p += cap * sh.width
    d, beta = vector(work, p, cap), vector(work, p + cap, cap)
    lo, hi = vector(work, p + 2 * cap, cap), vector(work, p + 3 * cap, cap)
    z, w = vector(work, p + 4 * cap, cap), vector(work, p + 5 * cap, cap)
    p += 6 * cap
    violation = vector(work, p, sh.buckets)
    p += sh.buckets
    Q, R = part(work, p, k, m), part(work, p + k * m, k, k)
    p += k * (m + k)
    g = vector(work, p, 2 * k)
    chunk = part(work, p + 2 * k, 2, CHUNK)

    p = float_size(sh)
    counters = vector(as_integers, p, COUNTERS)
    p += COUNTERS
    first = vector(as_integers, p, m)
    p += m
    rows, place = vector(as_integers, p, cap), vector(as_integers, p + cap, cap)
    wanted = vector(as_integers, p + 2 * cap, cap)
    p += 3 * cap
    offset = part(as_integers, p, cap if sh.K > 0 else 0, sh.K)
    p += cap * sh.K
    which = vector(as_integers, p, k)
    bucket = vector(as_integers, p + k, sh.buckets)
    cand = Candidates(A, offset, rows, d, beta, lo, hi, z, w, place)
    loaded = Loaded(which, Q, R)
    return State(
        counters, numbers, L, first, y0, y, weight, a, g, chunk, vectors, violation, bucket,
        wanted, cand, loaded,
    )  # fmt: skip
