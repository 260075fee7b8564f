"""Rows in blocks against the dense rows that they stand for, and which candidates are dropped."""

from __future__ import annotations

import numpy as np
import pytest

from holdfast.lcp import BlockRows
from holdfast.lcp._candidates import make_room
from holdfast.lcp._loading import is_copy
from holdfast.lcp._pivoting import FREE, Candidates
from holdfast.lcp._rows import rows_dot, rows_length2, scatter
from holdfast.lcp._state import CANDIDATES, READY, WHITE
from plain_kernels import plain

COUNT = 4  # blocks of coordinates


def random_rows(s: int, K: int, n: int = 7) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values and offsets of rows, and the dense rows; K = 0 for rows that are dense."""
    rng = np.random.default_rng([s, K])
    if K == 0:
        dense = rng.normal(size=(n, COUNT * s))
        return dense, np.empty((0, 0), dtype=np.int64), dense
    which = np.array([rng.choice(COUNT, K, replace=False) for _ in range(n)])
    values = rng.normal(size=(n, K, s))
    dense = BlockRows(which, values).dense(COUNT * s)
    return values.reshape(n, K * s), s * which, dense


SHAPES = [(6, 2), (6, 1), (3, 2), (6, 3), (6, 0), (1, 0)]  # one body pair has a loop of its own


@pytest.mark.parametrize(("s", "K"), SHAPES)
@pytest.mark.parametrize(("begin", "end", "stride"), [(0, 7, 1), (1, 7, 2), (0, 5, 3), (2, 2, 1)])
def test_products_and_lengths(s: int, K: int, begin: int, end: int, stride: int) -> None:
    values, offsets, dense = random_rows(s, K)
    rng = np.random.default_rng(0)
    x, weight = rng.normal(size=COUNT * s), rng.random(COUNT * s)
    some = dense[begin:end:stride]
    dot, length2 = np.full((2, 8), np.nan)
    plain(rows_dot)(values, offsets, x, begin, end, stride, dot)
    plain(rows_length2)(values, offsets, weight, begin, end, stride, length2)
    np.testing.assert_allclose(dot[: len(some)], some @ x, atol=1e-14 * np.abs(x).sum())
    np.testing.assert_allclose(length2[: len(some)], some**2 @ weight, rtol=1e-14)
    assert np.isnan(dot[len(some) :]).all() and np.isnan(length2[len(some) :]).all()


@pytest.mark.parametrize(("s", "K"), SHAPES)
def test_scatter(s: int, K: int) -> None:
    values, offsets, dense = random_rows(s, K)
    for i, row in enumerate(dense):
        found = np.full(COUNT * s, np.nan)
        plain(scatter)(values, offsets, i, found)
        np.testing.assert_array_equal(found, row)


@pytest.mark.parametrize(("s", "K"), SHAPES)
def test_a_copy_has_the_same_values_at_the_same_place(s: int, K: int) -> None:
    values, offsets, _ = random_rows(s, K)
    values[3], values[5] = values[1], values[1]
    if K:
        offsets[3] = offsets[1]
        offsets[5] = (offsets[1] + s) % (COUNT * s)
    copy = plain(is_copy)
    assert copy(values, offsets, 3, 1) and copy(values, offsets, 2, 2)
    assert copy(values, offsets, 5, 1) == (K == 0)  # the same numbers, for other bodies
    assert not copy(values, offsets, 2, 1)
    assert not copy(values, offsets, 1, -1)  # there is no other one


@pytest.mark.parametrize("full", [False, True])
def test_only_idle_candidates_make_room(full: bool) -> None:
    """What carries force, is loaded, or rests on one of two bounds stays."""
    inf = np.inf
    kinds = [  # lo, hi, z, place, stays
        (0.0, inf, 0.0, FREE, False),
        (0.0, inf, 0.7, FREE, True),
        (0.0, inf, 0.0, 0, True),
        (-1.0, inf, 0.0, FREE, True),
        (-1.0, 2.0, 0.0, FREE, True),
        (0.0, 0.0, 0.0, FREE, False),
        (-inf, inf, 0.3, 1, True),
        (0.0, 2.0, 0.0, FREE, True),
    ]
    n, rows = len(kinds), np.arange(10, 10 + len(kinds))
    lo, hi, z = (np.array([kind[k] for kind in kinds]) for k in range(3))
    place = np.array([kind[3] for kind in kinds])
    stays = np.array([kind[4] for kind in kinds]) if full else np.ones(n, dtype=bool)
    size = n if full else n + 2  # room for the two buckets
    pad = [np.append(x, np.zeros(size - n, dtype=x.dtype)) for x in (rows, lo, hi, z, place)]
    cand = Candidates(np.empty((size, 1)), np.empty((0, 0), dtype=np.int64), pad[0],
                      np.ones(size), np.arange(float(size)), pad[1], pad[2], pad[3],
                      np.zeros(size), pad[4])  # fmt: skip
    counters, chosen, which = np.full(8, n), np.ones(20), np.array([2, 6])
    plain(make_room)(cand, which, counters, chosen, 2)
    kept = int(stays.sum())
    assert counters[CANDIDATES] == counters[READY] == kept
    assert counters[WHITE] == (0 if full else n)
    np.testing.assert_array_equal(cand.rows[:kept], rows[stays])
    np.testing.assert_array_equal(cand.beta[:kept], np.flatnonzero(stays))
    np.testing.assert_array_equal(chosen[rows], stays)
    np.testing.assert_array_equal(cand.rows[which], [12, 16])  # the loaded ones are the same
    for name, before in (("lo", lo), ("hi", hi), ("z", z), ("place", place)):
        np.testing.assert_array_equal(getattr(cand, name)[:kept], before[stays])
