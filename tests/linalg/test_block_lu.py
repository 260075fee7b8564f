"""Sparse LU of dense blocks, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from holdfast._jit import entry
from holdfast.linalg import block_lu
from holdfast.linalg.block_lu import Pattern


@entry
def solved(adjacent, count, tree, begin, degree, place, pattern, dense, values, x):
    """Order, fill in the blocks of a dense matrix, factor and solve."""
    total = block_lu.order_trees(adjacent, count, tree, begin, degree, place, pattern)
    for k in range(count):
        for j in range(count):
            at = pattern.at[k, j]
            if at >= 0:
                for a in range(pattern.size[k]):
                    for b in range(pattern.size[j]):
                        values[at + a * pattern.size[j] + b] = dense[
                            pattern.first[k] + a, pattern.first[j] + b
                        ]
    good = block_lu.factor(pattern, count, values, 1e-14)
    block_lu.solve(pattern, count, values, x)
    return total if good else -1


def pattern_of(count: int) -> Pattern:
    integers = [np.zeros(count, dtype=np.int64) for _ in range(4)]
    tables = [np.zeros((count, count), dtype=np.int64) for _ in range(2)]
    return Pattern(integers[0], integers[1], integers[2], tables[0], tables[1], integers[3])


def chain(count: int) -> np.ndarray:
    return np.eye(count, k=1, dtype=np.int64) + np.eye(count, k=-1, dtype=np.int64)


def star(count: int) -> np.ndarray:
    adjacent = np.zeros((count, count), dtype=np.int64)
    adjacent[0, 1:] = adjacent[1:, 0] = 1
    return adjacent


def random_graph(count: int) -> np.ndarray:
    upper = np.triu(np.random.default_rng(count).random((count, count)) < 0.2, 1)
    return (upper | upper.T).astype(np.int64)


def full(count: int) -> np.ndarray:
    return 1 - np.eye(count, dtype=np.int64)


@pytest.mark.parametrize("graph", [chain, star, random_graph, full])
@pytest.mark.parametrize("count", [1, 2, 5, 20])
@pytest.mark.parametrize("six", [True, False])
def test_solves_what_numpy_solves(graph, count: int, six: bool) -> None:
    """The identity plus couplings with an unsymmetric part, as Newton's matrices are."""
    rng = np.random.default_rng(7)
    sizes = np.full(count, 6) if six else rng.integers(1, 8, count)
    begin = np.concatenate([[0], np.cumsum(sizes)])
    adjacent, m = graph(count), int(begin[-1])
    A = np.eye(m)
    for i in range(count):
        for j in range(i + 1):
            if i == j or adjacent[i, j]:
                both = np.r_[begin[i] : begin[i + 1], begin[j] : begin[j + 1]]
                G = rng.normal(size=(3, len(both)))
                C = np.diag([10.0, 1.0, 1.0])
                C[1:, 0] = rng.uniform(-1.0, 1.0, 2)
                A[np.ix_(both, both)] += G.T @ C @ G
    x = rng.normal(size=m)
    exact = np.linalg.solve(A, x)
    zeros = np.zeros((2, count), dtype=np.int64)
    pattern = pattern_of(count)
    total = solved(
        adjacent.copy(), count, np.arange(count), begin, zeros[0], zeros[1], pattern, A,
        np.zeros(m * m), x,
    )  # fmt: skip
    np.testing.assert_allclose(x, exact, atol=1e-12 * np.abs(exact).max() * np.linalg.cond(A))
    assert 0 < total <= m * m
    if six and graph in (chain, star):  # nothing fills in
        blocks = int((sizes**2).sum() + 2 * (sizes[:, None] * sizes * np.triu(adjacent)).sum())
        assert total == blocks


def test_a_pivot_that_is_not_positive_is_reported() -> None:
    x, zeros = np.ones(2), np.zeros((2, 1), dtype=np.int64)
    total = solved(
        np.zeros((1, 1), dtype=np.int64), 1, np.zeros(1, dtype=np.int64), np.array([0, 2]),
        zeros[0], zeros[1], pattern_of(1), np.diag([1.0, -1.0]), np.zeros(4), x,
    )  # fmt: skip
    assert total == -1


@entry
def sign_of(pattern, count, values):
    return block_lu.determinant_sign(pattern, count, values)


@pytest.mark.parametrize("graph", [chain, random_graph, full])
def test_the_sign_of_the_determinant(graph) -> None:
    """Of matrices with pivots of both signs, against NumPy."""
    count, seen = 5, set()
    for seed in range(12):
        rng, begin = np.random.default_rng(seed), 3 * np.arange(count + 1)
        adjacent = graph(count)
        mask = np.kron(adjacent + np.eye(count), np.ones((3, 3))) > 0
        dense = np.where(mask, rng.normal(size=(15, 15)), 0.0) + np.diag(rng.choice([-4, 4], 15))
        pattern, values = pattern_of(count), np.zeros(15 * 15)
        tree, degree, place = (np.arange(count), *np.zeros((2, count), dtype=np.int64))
        solved(adjacent.copy(), count, tree, begin, degree, place, pattern, dense, values,
               rng.normal(size=15))  # fmt: skip
        expected = np.linalg.slogdet(dense)[0]
        assert sign_of(pattern, count, values) == expected
        seen.add(expected)
    assert seen == {-1.0, 1.0}
