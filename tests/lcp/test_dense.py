"""`hf.lcp.solve`: three methods, one answer, one certificate."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.errors import RayTerminationError
from holdfast.lcp import LCPResult, Options, Status, solve
from holdfast.lcp.dense import DenseLCP, _residuals
from reference import KINDS, Problem, brute_force, dense_problems, integer_problems

METHODS = ("ppm", "qp", "lemke")
CERTIFICATE = 1e-10  # what every answer promises

# w = F z + e is unique for semidefinite F. Each method has it to 1e-10 of the terms of its row
# (the certificate); where terms cancel, that is more in units of w.
SAME = 1e-9

seeds = st.integers(0, 2**32 - 1)


def assert_solves(
    result: LCPResult, F: np.ndarray, e: np.ndarray, lo: np.ndarray, hi: np.ndarray
) -> None:
    """Bounds, signs and complementarity, row by row, in extended precision."""
    z = result.z.astype(np.longdouble)
    size = np.abs(F) @ np.abs(z) + np.abs(e)
    w = F @ z + e
    tol = CERTIFICATE * size
    assert result.certified and result.status is Status.SOLVED
    assert result.residuals.largest <= CERTIFICATE
    assert (lo <= z).all() and (z <= hi).all()
    assert (w[z < hi] >= -tol[z < hi]).all()
    assert (w[z > lo] <= tol[z > lo]).all()
    np.testing.assert_allclose(result.w, w.astype(float), rtol=0, atol=1e-14 * size.max(initial=0))


def plain(n: int) -> tuple[np.ndarray, np.ndarray]:
    return np.zeros(n), np.full(n, np.inf)


def scale_of(F: np.ndarray, e: np.ndarray, *results: LCPResult) -> float:
    """The largest term in any row of F z + e."""
    return max(float((np.abs(F) @ np.abs(r.z) + np.abs(e)).max(initial=1e-300)) for r in results)


@st.composite
def semidefinite(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """F = N N', e = N v + b of a feasible contact problem: rank deficient more often than not."""
    p = draw(st.one_of(dense_problems(), integer_problems()))
    kept = p.N.any(axis=1)  # for rows of zeros see below
    N = p.N[kept]
    return N @ N.T, N @ p.v + p.offset[kept]


# --- plain LCPs ---------------------------------------------------------------------------------


@given(semidefinite())
def test_methods_agree(lcp: tuple[np.ndarray, np.ndarray]) -> None:
    F, e = lcp
    results = [solve(F, e, method) for method in METHODS]
    for result in results:
        assert_solves(result, F, e, *plain(len(e)))
        assert result.regularization == 0.0
        assert result.motion.size == 0
    scale = scale_of(F, e, *results)
    for result in results[1:]:
        np.testing.assert_allclose(result.w, results[0].w, rtol=0, atol=SAME * scale)


@given(st.integers(0, 8), seeds)
def test_lemke_on_general_matrices(n: int, seed: int) -> None:
    """A P-matrix that is not symmetric: the solution exists and is unique."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, n))
    skew = rng.normal(size=(n, n))
    F = A @ A.T + 0.1 * np.eye(n) + skew - skew.T
    e = rng.normal(size=n)
    result = solve(F, e, "lemke")
    assert_solves(result, F, e, *plain(n))
    # the order of the variables must not matter
    order = rng.permutation(n)
    shuffled = solve(F[np.ix_(order, order)], e[order], "lemke")
    np.testing.assert_allclose(shuffled.z, result.z[order], rtol=1e-8, atol=1e-8 / (1 + n))


unit = st.sampled_from([1e-6, 1.0, 1e6])


@pytest.mark.parametrize(
    "method",
    [
        "ppm",
        "qp",
        "lemke",
    ],
)
@given(semidefinite(), unit, unit)
def test_units(
    method: str, lcp: tuple[np.ndarray, np.ndarray], matrix: float, vector: float
) -> None:
    F, e = lcp
    expected = solve(F, e, method)
    scaled = solve(matrix * F, vector * e, method)
    atol = SAME * scale_of(F, e, expected)
    np.testing.assert_allclose(scaled.w / vector, expected.w, rtol=0, atol=atol)


@pytest.mark.parametrize("method", METHODS)
def test_edges(method: str) -> None:
    empty = solve(np.zeros((0, 0)), [], method)
    assert empty.certified and empty.z.size == 0
    nothing_pushes = solve(np.eye(3), np.array([1.0, 0.0, 2.0]), method)
    np.testing.assert_array_equal(nothing_pushes.z, 0.0)
    zero_matrix = solve(np.zeros((2, 2)), [1.0, 0.0], method)
    np.testing.assert_array_equal(zero_matrix.z, 0.0)
    single = solve([[4.0]], [-2.0], method)
    assert (single.z[0], single.w[0], single.rank) == (0.5, 0.0, 1)
    integers = solve(np.array([[2, 1], [1, 2]]), np.array([-5, -6]), method)
    np.testing.assert_allclose(integers.z, [4 / 3, 7 / 3], rtol=1e-15)


@pytest.mark.parametrize(
    "method",
    [
        "ppm",
        "qp",
        "lemke",
    ],
)
def test_rows_of_zeros(method: str) -> None:
    c = np.array([0.34309058470100834, 0.0, -0.18708582428680418, -0.33946459566997783])
    F, e = 1e-6 * np.outer(c, c), -1e-6 * c
    assert_solves(solve(F, e, method), F, e, *plain(4))


@pytest.mark.parametrize("method", METHODS)
def test_inputs_are_never_written(method: str) -> None:
    rng = np.random.default_rng(0)
    A = rng.normal(size=(6, 3))
    arrays = [A @ A.T, A @ rng.normal(size=3), np.full(6, -0.25), np.full(6, 0.5)]
    before = [a.tobytes() for a in arrays]
    for a in arrays:
        a.setflags(write=False)
    F, e, lo, hi = arrays
    first, again = (solve(F, e, method, lo=lo, hi=hi) for _ in range(2))
    assert [a.tobytes() for a in arrays] == before
    assert first.z.tobytes() == again.z.tobytes()
    solve(F, e, method)
    assert [a.tobytes() for a in arrays] == before


# --- bounds -------------------------------------------------------------------------------------


@st.composite
def bounded(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Positive definite F, bounds of every kind."""
    rng = np.random.default_rng(draw(seeds))
    kinds = draw(st.lists(st.sampled_from(sorted(KINDS)), max_size=5))
    n = len(kinds)
    A = rng.normal(size=(n, n + 1))
    lo, hi = np.array([KINDS[kind](rng.normal()) for kind in kinds]).reshape(n, 2).T
    return A @ A.T + 0.1 * np.eye(n), rng.normal(size=n), lo.copy(), hi.copy()


def boxed() -> tuple[np.ndarray, ...]:
    """Six variables, some on their upper bound."""
    A = np.random.default_rng(0).normal(size=(6, 3))
    F = A @ A.T + 0.01 * np.eye(6)
    return F, A @ np.array([1.0, -1.0, 0.5]), np.full(6, -0.3), np.full(6, 0.4)


@pytest.mark.parametrize("method", METHODS)
@given(bounded())
@example(boxed())
def test_bounds(method: str, lcp: tuple[np.ndarray, ...]) -> None:
    F, e, lo, hi = lcp
    # z is unique here: w = F (z + F^-1 e) is a contact problem with M = F^-1 and N = I
    L = np.linalg.cholesky(F)
    p = Problem(L, np.eye(len(e)), np.linalg.solve(L, e), lo=lo, hi=hi)
    expected = L @ brute_force(p)
    result = solve(F, e, method, lo=lo, hi=hi)
    assert_solves(result, F, e, lo, hi)
    atol = SAME * scale_of(F, e, result)
    np.testing.assert_allclose(result.w, expected, rtol=0, atol=atol)


def test_one_variable_on_its_bound() -> None:
    result = solve([[2.4]], [1.2], lo=0.4, hi=1.5)
    assert result.z[0] == 0.4


@given(seeds, st.integers(0, 4), st.integers(0, 4))
def test_lemke_with_free_and_boxed_variables(seed: int, free: int, boxed: int) -> None:
    """A mixed LCP that is not symmetric: equations, boxes and plain rows in any order."""
    rng = np.random.default_rng(seed)
    n = free + boxed + 2
    A, skew = rng.normal(size=(2, n, n))
    F = A @ A.T + 0.1 * np.eye(n) + skew - skew.T
    e = rng.normal(size=n)
    lo, hi = plain(n)
    lo[:free] = -np.inf
    lo[free : free + boxed], hi[free : free + boxed] = -0.25, 0.5
    order = rng.permutation(n)
    lo, hi = lo[order], hi[order]
    result = solve(F, e, "lemke", lo=lo, hi=hi)
    assert_solves(result, F, e, lo, hi)


@pytest.mark.parametrize("method", METHODS)
def test_free_variables_alone_are_linear_equations(method: str) -> None:
    rng = np.random.default_rng(1)
    A = rng.normal(size=(5, 5))
    F, e = A @ A.T + np.eye(5), rng.normal(size=5)
    result = solve(F, e, method, lo=-np.inf)
    np.testing.assert_allclose(result.z, np.linalg.solve(F, -e), rtol=1e-12)
    np.testing.assert_allclose(result.w, 0.0, atol=1e-14)


@pytest.mark.parametrize("method", METHODS)
def test_one_number_bounds_all(method: str) -> None:
    result = solve(np.eye(3), [-5.0, 5.0, 0.5], method, lo=-1.0, hi=2.0)
    np.testing.assert_array_equal(result.z, [2.0, -1.0, -0.5])
    np.testing.assert_array_equal(result.w, [-3.0, 4.0, 0.0])


# --- the paper's Tikhonov schedule --------------------------------------------------------------

SCHEDULE = Options(regularization=(1e-16, 1e-6))

# Lemke's path goes off on a ray, and ends in a solution for F + eps I.
RAY = np.array([[0.0, 2.0, -2.0], [0.0, 0.0, 1.0], [2.0, -1.0, -2.0]]), np.array([1.0, -3.0, 1.0])

# A game, zero diagonal and no negative entry: off on a ray, whatever eps.
GAME = np.array([[0.0, 0, 10, 20], [0, 0, 30, 15], [10, 20, 0, 0], [30, 15, 0, 0]]), -np.ones(4)


def test_regularization_is_used_only_if_needed() -> None:
    result = solve(np.array([[2.0, 1.0], [1.0, 2.0]]), [-5.0, -6.0], "lemke", SCHEDULE)
    assert result.regularization == 0.0


def test_regularization_is_used_and_reported() -> None:
    F, e = RAY
    with pytest.raises(RayTerminationError) as caught:
        solve(F, e, "lemke")
    assert caught.value.status is Status.RAY
    result = solve(F, e, "lemke", SCHEDULE)
    # certified on F itself, not on F + eps I
    assert_solves(result, F, e, *plain(3))
    assert 1e-16 <= result.regularization <= 1e-6
    doublings = np.log2(result.regularization / 1e-16)
    assert doublings == pytest.approx(round(doublings), abs=1e-9)
    # nothing below that would have done, and the schedule is the one that was asked for
    last = result.regularization
    with pytest.raises(RayTerminationError):
        solve(F, e, "lemke", Options(regularization=(1e-16, 0.9 * last)))
    assert solve(F, e, "lemke", Options(regularization=(last, last))).regularization == last


def test_regularization_that_does_not_help_still_ends_on_the_ray() -> None:
    with pytest.raises(RayTerminationError) as caught:
        solve(*GAME, "lemke", SCHEDULE)
    ray = caught.value.ray
    assert ray.shape == (4,) and (ray >= 0.0).all() and ray.max() == 1.0


# --- the certificate ----------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(5))
def test_a_wrong_answer_is_not_certified(method: str, seed: int) -> None:
    """The residuals of an answer are rounding; of the answer moved by 1e-6 they are not."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(8, 5))
    F, e = A @ A.T, A @ rng.normal(size=5)
    result = solve(F, e, method)
    loaded = np.flatnonzero(result.z)
    assert loaded.size > 0
    problem = DenseLCP(F, e, *plain(8))
    w, right = _residuals(problem, result.z)
    assert max(right) <= 1e-14
    np.testing.assert_array_equal(w, result.w)
    for i in loaded:
        moved = result.z.copy()
        moved[i] *= 1.0 + 1e-6
        assert max(_residuals(problem, moved)[1]) > CERTIFICATE
    outside = result.z.copy()
    outside[np.argmin(outside)] -= 1e-6 * outside.max()
    assert _residuals(problem, outside)[1][1] > CERTIFICATE


def test_residuals_know_which_bound() -> None:
    """w >= 0 at the lower bound, w <= 0 at the upper, w = 0 between, anything where they meet."""
    lo, hi = np.array([0.0, 0.0, 0.0, 1.0]), np.array([2.0, 2.0, 2.0, 1.0])
    z = np.array([0.0, 2.0, 1.0, 1.0])
    for w, residuals in (
        ([1.0, -1.0, 0.0, 1.0], (0.0, 0.0, 0.0)),
        ([-1.0, -1.0, 0.0, 1.0], (1.0, 0.0, 0.0)),
        ([1.0, 1.0, 0.0, 1.0], (1.0, 0.0, 0.0)),
        ([1.0, -1.0, 1.0, 1.0], (0.0, 0.0, 1.0)),
    ):
        found, measured = _residuals(DenseLCP(np.zeros((4, 4)), np.array(w), lo, hi), z)
        np.testing.assert_array_equal(found, w)
        assert tuple(abs(r) for r in measured) == residuals


@pytest.mark.parametrize(
    ("F", "e", "z"),
    [([[0.0, 1.0], [1.0, 0.0]], [1.0, 2.0], [-2.0, -1.0]), ([[-1.0]], [1.0], [1.0])],
)
def test_lemke_solves_a_linear_system(F: Any, e: Any, z: Any) -> None:
    """Free variables alone: w = 0, whatever the matrix, if it is regular."""
    result = solve(F, e, "lemke", lo=-np.inf)
    np.testing.assert_allclose(result.z, z, rtol=1e-15)


def test_bounds_that_are_never_reached_hide_no_residual() -> None:
    """Large finite bounds stood for what forces may be: any answer was within their rounding."""
    F = np.array([[2.0, 1.0, 0.3], [1.0, 2.0, 0.0], [0.3, 0.0, 1.0]])
    e, hi = np.array([-5.0, -6.0, 1.0]), np.full(3, 1e17)
    expected = solve(F, e).z
    problem = DenseLCP(F, e, np.zeros(3), hi)
    assert max(_residuals(problem, expected)[1]) <= 1e-14
    hi[:] = 1e9
    assert max(_residuals(DenseLCP(F, e, np.zeros(3), hi), 1.01 * expected)[1]) > CERTIFICATE
    for method in METHODS:
        np.testing.assert_allclose(solve(F, e, method, hi=hi).z, expected, rtol=1e-9)
