"""Compiled kernels are what they are in Python, and hand over no more than they need."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from numba import types

from holdfast import _jit, _lowering
from holdfast._jit import COMPILED, entry, kernel
from holdfast.linalg.views import blocks, part, vector

pytestmark = [pytest.mark.jit, pytest.mark.skipif(not COMPILED, reason="nothing is compiled")]


class Inner(NamedTuple):
    a: np.ndarray
    n: int


class Outer(NamedTuple):
    inner: Inner
    b: np.ndarray
    x: float


@kernel
def first_and_rest(outer: Outer, k: int) -> tuple[Inner, np.ndarray]:
    """Return a record within a record, and one that is made here."""
    inner = Inner(outer.b[0], k)
    if k > 0:
        inner = outer.inner
    return inner, outer.b


@kernel
def nothing(outer: Outer) -> None:
    """Write into an array of a record."""
    outer.b[0, 0] += 1.0


@entry
def records(a: np.ndarray, b: np.ndarray, k: int) -> float:
    """Sum what records hand over, in branches and loops."""
    outer = Outer(Inner(a, a.shape[0]), b, 0.5)
    total = outer.x
    given = (outer, k)
    for _ in range(2):
        inner, rest = first_and_rest(*given)
        nothing(outer)
        for value in inner.a:
            total += value
        total += inner.n + rest[1, 1] + rest.shape[1]
    return total


@entry
def ranges(n: int, m: int, step: int, out: np.ndarray) -> int:
    """Write the numbers of ranges."""
    k = 0
    for i in range(n):
        out[k] = i
        k += 1
    for i in range(n, m):
        out[k] = i
        k += 1
    for i in range(m - 1, -1, -1):
        out[k] = i
        k += 1
    for i in range(m, n, -3):
        out[k] = i
        k += 1
    for i in range(n, m, step):
        out[k] = i
        k += 1
    return k


@entry
def parts(a: np.ndarray, i: int, j: int) -> tuple[float, int]:
    """Sum parts of an array."""
    total, count = 0.0, 0
    view = a[i:j]
    for value in view:
        total += value
    for value in a[:j]:
        total += 10.0 * value
    for value in a[i:]:
        total += 100.0 * value
    count = view.shape[0]
    if i > 1:
        view = a[: i - 1]
    square, cube = part(a, 1, 2, 2), blocks(a, 0, 2, 2, 2)
    square[1, 1] += cube[1, 0, 1] + cube[1][1][0] + vector(a, i, 1)[0]
    return total + view.shape[0] + square[1][0] + square[0:1][0, 1], count


@kernel
def of_three(k: int) -> int:
    """Look up a tuple by a number that is not known; it raises where there is none."""
    return (5, 6, 7)[k]


@entry
def raising(k: int) -> int:
    """Hand an exception on."""
    return 2 * of_three(k)


def test_records_are_handed_over_and_returned() -> None:
    a, b = np.arange(3.0), np.arange(8.0).reshape(2, 4)
    assert records(a, b, 1) == 0.5 + 2 * (a.sum() + 3 + b[1, 1] + 4)
    assert b[0, 0] == 2.0
    assert records(a, b, 0) == 0.5 + 9.0 + 10.0 + 2 * (b[1, 1] + 4)


def test_nothing_is_read_of_an_empty_array() -> None:
    b = np.zeros((2, 2))
    assert records(np.empty(0), b, 1) == 0.5 + 2 * 2


@pytest.mark.parametrize(("n", "m", "step"), [(0, 0, 1), (2, 7, 2), (5, 1, -2), (3, 3, 5)])
def test_ranges(n: int, m: int, step: int) -> None:
    ours, theirs = np.full(60, -1), np.full(60, -1)
    assert ranges(n, m, step, ours) == ranges.py_func(n, m, step, theirs)
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(("i", "j"), [(0, 0), (1, 4), (3, 2), (2, 99), (7, 8)])
def test_parts_of_arrays(i: int, j: int) -> None:
    a = np.arange(9.0)
    again = a.copy()
    assert parts(a, i, j) == parts.py_func(again, i, j)
    np.testing.assert_array_equal(a, again)


def test_exceptions_are_handed_on() -> None:
    assert raising(1) == 12
    with pytest.raises(IndexError):
        raising(3)


def test_a_part_says_whether_it_may_raise() -> None:
    raising(0)
    records(np.ones(1), np.ones((2, 2)), 0)
    (some,) = of_three.overloads.values()
    (none,) = nothing.overloads.values()
    assert some.library.raises
    assert not none.library.raises


def test_an_array_is_handed_over_as_its_address_and_shape() -> None:
    context = _jit.njit(lambda: None).targetctx
    array = types.Array(types.float64, 2, "C")
    strided = types.Array(types.float64, 2, "A")
    for kind, words in ((array, 3), (strided, 5), (types.Tuple((array, types.int64)), 4)):
        assert len(_lowering.leaf_types(context, kind)) == words
