"""`solve_factored`: laws of a projection, invariances, agreement with other solvers, edge cases.

The motion is the point nearest to v, in the metric of M, that the rows allow. It is unique, so
motions are compared and forces are not.
"""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy.optimize import lsq_linear

import holdfast as hf
from holdfast.lcp import BlockRows, LCPResult, _state, solve_factored
from reference import (
    Problem,
    block_diagonal,
    block_inertia,
    body_problems,
    bounded_problems,
    brute_force,
    dense_problems,
    energy_norm,
    feasible_offset,
    inertia,
    kkt,
    motion_error,
    nearly_degenerate_problems,
    nnls_motion,
    problems,
)

CERTIFICATE = 1e-10  # what every answer promises

# Two solves of one problem in different words. Each is feasible to 1e-12 (Options.feasibility),
# and near a vertex with a sharp angle that is an error of the motion of 1e-12 over the angle;
# random rows in up to 24 dimensions have angles down to 1e-3.
SAME = 1e-9

seeds = st.integers(0, 2**32 - 1)


def solve(p: Problem, **more: Any) -> LCPResult:
    return solve_factored(**p.arguments, **more)


def assert_same_motion(p: Problem, x: np.ndarray, y: np.ndarray, tol: float = SAME) -> None:
    assert motion_error(p, x, y) <= tol


def assert_solved(result: LCPResult, p: Problem) -> None:
    """Certified, and proven by an independent check; few pivots; independent loaded rows."""
    n, m = p.N.shape
    assert result.certified and result.status is hf.lcp.Status.SOLVED
    assert result.residuals.largest <= CERTIFICATE
    assert max(kkt(p, result.z, result.motion)) <= CERTIFICATE
    assert result.pivots <= 3 * (n + m)
    assert result.z.shape == result.w.shape == (n,)
    assert result.motion.shape == (m,)
    assert result.loaded.shape == (result.rank,)
    assert len(set(result.loaded.tolist())) == result.rank <= min(n, m)
    if p.lo is None and p.hi is None:
        assert set(np.flatnonzero(result.z)) <= set(result.loaded.tolist())


# --- the answer ---------------------------------------------------------------------------------


@given(problems())
def test_feasible_complementary_and_stationary(p: Problem) -> None:
    result = solve(p)
    assert_solved(result, p)
    assert (result.z >= 0.0).all()
    # w is N x + b of the motion that is returned, to the rounding of a dot product
    terms = np.abs(p.N) @ np.abs(result.motion) + np.abs(p.offset)
    assert (np.abs(p.N @ result.motion + p.offset - result.w) <= 1e-14 * terms).all()


@given(problems())
def test_residuals_are_honest(p: Problem) -> None:
    """What the result says of itself is what an independent check in more precision finds."""
    result = solve(p)
    measured = kkt(p, result.z, result.motion)
    # w itself is a rounded sum of m products, in units of the motion's size
    np.testing.assert_array_less(np.array(measured), np.array(result.residuals) + 1e-14)


@given(problems(offsets=False))
def test_agrees_with_nnls(p: Problem) -> None:
    assert_same_motion(p, solve(p).motion, nnls_motion(p))


@given(dense_problems(max_rows=2, max_size=4))
def test_agrees_with_brute_force(p: Problem) -> None:
    assert_same_motion(p, solve(p).motion, brute_force(p))


@settings(max_examples=300)
@given(nearly_degenerate_problems())
def test_nearly_dependent_rows_are_never_answered_wrongly(p: Problem) -> None:
    """Some motion satisfies all rows. If the forces are too large to certify, that is said."""
    try:
        result = solve(p)
    except hf.errors.UncertifiedError:
        return
    # Rounding of the forces themselves shows in the balance of momentum, and is allowed for.
    length = np.sqrt(np.einsum("ij,ij->i", p.N, np.linalg.solve(p.M, p.N.T).T))
    size = max(energy_norm(p.M, p.v), energy_norm(p.M, result.motion)) or 1.0
    rounding = 1e-14 * float(np.abs(result.z) @ length) / size
    residuals = result.residuals
    assert max(residuals[:3]) <= CERTIFICATE
    assert residuals.stationarity <= CERTIFICATE + result.allowance
    assert result.allowance * (energy_norm(p.M, p.v) or size) <= 1.01 * rounding * size
    assert ("allowed as rounding" in repr(result)) == (result.allowance > 0.0)
    assert max(kkt(p, result.z, result.motion)) <= CERTIFICATE + rounding


# --- laws of a projection -----------------------------------------------------------------------


@given(problems())
def test_idempotent(p: Problem) -> None:
    once = solve(p).motion
    assert_same_motion(p, solve(p.but(v=once)).motion, once)


@given(problems(), st.floats(1e-6, 1e6))
def test_positively_homogeneous(p: Problem, t: float) -> None:
    scaled = p.but(v=t * p.v, b=None if p.b is None else t * p.b)
    assert_same_motion(p, solve(scaled).motion / t, solve(p).motion)


@given(problems(), seeds, st.sampled_from([1e-6, 1e-3, 1.0]))
def test_non_expansive(p: Problem, seed: int, distance: float) -> None:
    other = p.v + distance * np.random.default_rng(seed).normal(size=p.v.shape)
    x, y = solve(p).motion, solve(p.but(v=other)).motion
    scale = max(energy_norm(p.M, u) for u in (x, y, p.v, other))
    assert energy_norm(p.M, x - y) <= energy_norm(p.M, p.v - other) + SAME * scale


@given(problems(offsets=False))
def test_energy_identity(p: Problem) -> None:
    """Resting contacts (b = 0) split the energy: what stays, and what the impulse takes."""
    x = solve(p).motion
    before, stays, taken = (energy_norm(p.M, u) ** 2 for u in (p.v, x, p.v - x))
    assert stays + taken == pytest.approx(before, rel=SAME)


@given(problems(offsets=False))
def test_energy_never_grows(p: Problem) -> None:
    assert energy_norm(p.M, solve(p).motion) <= energy_norm(p.M, p.v) * (1.0 + CERTIFICATE)


# --- invariances --------------------------------------------------------------------------------


@given(problems(), seeds)
def test_order_of_rows(p: Problem, seed: int) -> None:
    order = np.random.default_rng(seed).permutation(len(p.N))
    shuffled = p.but(N=p.N[order], b=None if p.b is None else p.b[order])
    assert_same_motion(p, solve(shuffled).motion, solve(p).motion)


@given(problems())
def test_duplicated_rows(p: Problem) -> None:
    tripled = p.but(N=np.tile(p.N, (3, 1)), b=None if p.b is None else np.tile(p.b, 3))
    result = solve(tripled)
    assert_same_motion(p, result.motion, solve(p).motion)
    assert result.rank <= len(p.v)


@given(problems(max_decades=2.0), seeds)
def test_scale_of_rows(p: Problem, seed: int) -> None:
    """12 decades, and 1 from the masses: a row 14 decades shorter than others is a row of zeros."""
    c = 10.0 ** np.random.default_rng(seed).uniform(-6.0, 6.0, len(p.N))
    scaled = p.but(N=c[:, None] * p.N, b=None if p.b is None else c * p.b)
    assert_same_motion(p, solve(scaled).motion, solve(p).motion)


@given(dense_problems(), seeds)
def test_choice_of_coordinates(p: Problem, seed: int) -> None:
    """v -> T v, M -> T^-T M T^-1, N -> N T^-1 is the same machine in other coordinates."""
    rng = np.random.default_rng(seed)
    m = len(p.v)
    T = rng.normal(size=(m, m)) + 3.0 * np.eye(m)
    assume(np.linalg.cond(T) < 1e3)
    inverse = np.linalg.inv(T)
    M = inverse.T @ p.M @ inverse
    other = p.but(N=p.N @ inverse, M=0.5 * (M + M.T), v=T @ p.v)
    # M and N are rounded: cond(T) times cond(M)^1/2 times eps, over the angle between rows
    assert_same_motion(p, inverse @ solve(other).motion, solve(p).motion, 1e2 * SAME)


unit = st.sampled_from([1e-6, 1.0, 1e6])


@given(problems(), unit, unit, unit)
def test_units(p: Problem, mass: float, length: float, time: float) -> None:
    """Inertia in other units of mass, rows in other units of length, velocities per other time."""
    other = p.but(
        N=length * p.N,
        M=mass * p.M,
        v=p.v / time,
        b=None if p.b is None else p.b * (length / time),
    )
    result, plain = solve(other), solve(p)
    assert_same_motion(p, result.motion * time, plain.motion)
    assert result.pivots <= 3 * sum(p.N.shape)


@given(problems(), st.integers(-60, 60), st.integers(-60, 60), st.integers(-60, 60))
def test_powers_of_two_change_no_bit(p: Problem, i: int, j: int, k: int) -> None:
    """No tolerance is absolute: where scaling is exact the answer scales exactly."""
    mass, length, speed = 4.0**i, 2.0**j, 2.0**k
    b = None if p.b is None else p.b * (length * speed)
    other = solve(p.but(N=length * p.N, M=mass * p.M, v=speed * p.v, b=b))
    plain = solve(p)
    np.testing.assert_array_equal(other.motion, speed * plain.motion)
    np.testing.assert_array_equal(other.z, plain.z * (mass * speed / length))
    assert other.loaded.tolist() == plain.loaded.tolist()


# --- structure is used, not needed --------------------------------------------------------------


def assert_one_problem(p: Problem, blocks: np.ndarray, which: Any, values: Any) -> None:
    """Dense, block and sparse rows, dense and block inertia: the same motion, proven."""
    expected = solve(p)
    assert_solved(expected, p)
    rows = [
        p.N,
        BlockRows(which, values),
        scipy.sparse.csr_matrix(p.N),
        scipy.sparse.csc_array(p.N),
        scipy.sparse.coo_array(p.N),
    ]
    for N in rows:
        for M in (p.M, blocks):
            result = solve_factored(N, M, p.v)
            assert_same_motion(p, result.motion, expected.motion)
            assert max(kkt(p, result.z, result.motion)) <= CERTIFICATE


@given(body_problems())
def test_dense_blocks_and_sparse_are_one_problem(drawn: Any) -> None:
    assert_one_problem(*drawn)


# With many bodies candidates are stored by blocks, too.
pile = body_problems(min_bodies=9, max_bodies=12, max_rows=60, sizes=(6, 7))


@pytest.mark.jit
@given(pile)
def test_a_pile_of_bodies(drawn: Any) -> None:
    assert len(drawn[0].v) > _state.DENSE
    assert_one_problem(*drawn)


@settings(max_examples=3)
@given(pile)
def test_a_pile_of_bodies_in_plain_python(drawn: Any) -> None:
    assert_one_problem(*drawn)


@given(body_problems(max_decades=2.0, max_bodies=3))
def test_blocks_of_rows_may_differ_from_those_of_the_inertia(drawn: Any) -> None:
    p, blocks, which, values = drawn
    s = values.shape[2]
    assume(s > 1)
    entries = (which[:, :, None] * s + np.arange(s)).reshape(len(which), 2 * s)
    single = BlockRows(entries, values.reshape(len(which), 2 * s, 1))
    for M in (p.M, blocks):
        assert_same_motion(p, solve_factored(single, M, p.v).motion, solve(p).motion)


@given(body_problems(max_decades=0.0))
def test_no_inertia_is_the_identity(drawn: Any) -> None:
    p, _, which, values = drawn
    p = p.but(M=np.eye(len(p.v)))
    for N in (p.N, BlockRows(which, values), scipy.sparse.csr_array(p.N)):
        # the same arithmetic but for multiplications by one and zero
        assert_same_motion(p, solve_factored(N, None, p.v).motion, solve(p).motion, 1e-12)


# --- warm start ---------------------------------------------------------------------------------


@given(problems(), seeds)
def test_warm_start_changes_no_answer(p: Problem, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = len(p.N)
    cold = solve(p)
    wrong = rng.permutation(n)[: rng.integers(0, n + 1)]
    stale = np.array([n + 3, -1, *wrong, *wrong, 10**9])
    for warm in (cold, cold.loaded, wrong, [], (), stale, np.arange(n), list(range(n))):
        result = solve(p, warm_start=warm)
        assert_solved(result, p)
        assert_same_motion(p, result.motion, cold.motion)


@given(bounded_problems(), seeds)
def test_warm_start_with_bounds(p: Problem, seed: int) -> None:
    cold = solve(p)
    wrong = np.random.default_rng(seed).permutation(len(p.N))[: len(p.N) // 2]
    for warm in (cold, wrong, np.arange(len(p.N))):
        assert_same_motion(p, solve(p, warm_start=warm).motion, cold.motion)


def test_warm_start_from_another_problem() -> None:
    rng = np.random.default_rng(5)
    small = Problem(rng.normal(size=(4, 6)), inertia(rng, 6), rng.normal(size=6))
    large = Problem(rng.normal(size=(20, 6)), inertia(rng, 6), rng.normal(size=6))
    for p, other in ((small, large), (large, small)):
        assert_same_motion(p, solve(p, warm_start=solve(other)).motion, solve(p).motion)


def test_warm_start_from_the_answer_loads_each_row_once() -> None:
    rng = np.random.default_rng(3)
    p = Problem(rng.normal(size=(30, 12)), inertia(rng, 12), rng.normal(size=12))
    cold = solve(p)
    warm = solve(p, warm_start=cold)
    assert warm.pivots == warm.rank == cold.rank


# --- bounds -------------------------------------------------------------------------------------


@given(bounded_problems())
def test_bounds(p: Problem) -> None:
    result = solve(p)
    assert_solved(result, p)
    lo, hi = p.bounds
    slack = 4.0 * np.finfo(float).eps * np.abs(result.z)
    assert (lo - slack <= result.z).all() and (result.z <= hi + slack).all()


@given(bounded_problems(max_rows=2))
def test_bounds_agree_with_brute_force(p: Problem) -> None:
    assume(len(p.N) <= 6)
    assert_same_motion(p, solve(p).motion, brute_force(p))


@given(dense_problems(offsets=False), seeds)
def test_boxes_agree_with_lsq_linear(p: Problem, seed: int) -> None:
    """Dry friction alone: ``min |A' z + y|`` over a box."""
    assume(len(p.N) > 0)
    width = np.random.default_rng(seed).uniform(0.1, 2.0, len(p.N))
    L = np.linalg.cholesky(p.M)
    A, y = np.linalg.solve(L, p.N.T), L.T @ p.v
    z = lsq_linear(A, -y, bounds=(-width, width), method="bvls", tol=1e-14).x
    result = solve(p.but(lo=-width, hi=width))
    assert_same_motion(p, result.motion, np.linalg.solve(L.T, y + A @ z), 1e2 * SAME)


@given(dense_problems(offsets=False, max_size=8), seeds)
def test_free_rows_are_eliminated(p: Problem, seed: int) -> None:
    """Equality rows leave the same problem in the coordinates that they allow."""
    rng = np.random.default_rng(seed)
    m = len(p.v)
    j = int(rng.integers(0, m))
    J = rng.normal(size=(j, m))
    lo = np.concatenate([np.full(j, -np.inf), np.zeros(len(p.N))])
    both = Problem(np.vstack([J, p.N]), p.M, p.v, lo=lo)
    Z = np.linalg.svd(J)[2][j:].T  # J Z = 0
    reduced = Z.T @ p.M @ Z
    inside = Problem(p.N @ Z, 0.5 * (reduced + reduced.T), np.zeros(m - j))
    inside = inside.but(v=np.linalg.solve(inside.M, Z.T @ (p.M @ p.v)))
    result = solve(both)
    assert_solved(result, both)
    # cond(M) up to 1e6 enters with its square root twice, in J and in the reduced inertia
    assert_same_motion(p, result.motion, Z @ solve(inside).motion, 1e2 * SAME)


def test_equality_rows_alone() -> None:
    rng = np.random.default_rng(0)
    M, J, v = inertia(rng, 6), rng.normal(size=(4, 6)), rng.normal(size=6)
    result = solve_factored(J, M, v, lo=-np.inf)
    W = np.linalg.solve(M, J.T)
    z = np.linalg.solve(J @ W, -J @ v)
    np.testing.assert_allclose(result.z, z, rtol=1e-12)
    np.testing.assert_allclose(result.motion, v + W @ z, atol=1e-14)


def test_dependent_equality_rows() -> None:
    rng = np.random.default_rng(0)
    J = rng.normal(size=(3, 6))
    p = Problem(np.vstack([J, J[::-1], 2.0 * J]), np.eye(6), rng.normal(size=6))
    p = p.but(lo=np.full(9, -np.inf))
    result = solve(p)
    assert_solved(result, p)
    assert result.rank == 3


def test_dry_friction_sticks_or_slides() -> None:
    """A 2 kg block pushed along a line: friction stops it, or takes what it can."""
    for limit, impulse, motion in ((10.0, -6.0, 0.0), (4.0, -4.0, 1.0)):
        result = solve_factored([[1.0]], [[2.0]], [3.0], lo=-limit, hi=limit)
        assert result.z[0] == pytest.approx(impulse, rel=1e-15)
        assert result.motion[0] == pytest.approx(motion, abs=1e-15)


def test_given_forces_act_whatever_the_motion() -> None:
    result = solve_factored(np.eye(2), np.diag([2.0, 4.0]), [1.0, 1.0], lo=[3.0, 0.0], hi=[3.0, 0])
    np.testing.assert_array_equal(result.z, [3.0, 0.0])
    np.testing.assert_array_equal(result.motion, [2.5, 1.0])


def test_z_on_a_bound_is_exactly_the_bound() -> None:
    """Whether a row is saturated is a question of equality; and z is never outside."""
    result = solve_factored([[3.0]], None, [100.0], lo=-0.1, hi=0.1)
    assert result.z[0] == -0.1


# --- edges --------------------------------------------------------------------------------------


@pytest.mark.parametrize("m", [0, 1, 5])
def test_no_rows(m: int) -> None:
    v = np.arange(1.0, m + 1.0)
    for N in (np.zeros((0, m)), [], BlockRows(np.zeros((0, 1), int), np.zeros((0, 1, 1)))):
        for M in (None, np.eye(m)):
            result = solve_factored(N, M, v)
            assert result.certified and result.z.size == result.w.size == result.rank == 0
            np.testing.assert_array_equal(result.motion, v)


def test_no_coordinates() -> None:
    """Rows without coordinates are rows of zeros: w = b."""
    for M in (None, np.zeros((0, 0)), np.zeros((0, 6, 6))):
        result = solve_factored(np.zeros((3, 0)), M, [], [0.0, 1.0, 2.0])
        assert result.certified and result.motion.size == 0
        np.testing.assert_array_equal(result.w, [0.0, 1.0, 2.0])
        np.testing.assert_array_equal(result.z, 0.0)


def test_rows_of_zeros() -> None:
    N = np.zeros((4, 3))
    N[1] = [0.0, 0.0, 1.0]
    result = solve_factored(N, None, [1.0, 2.0, -3.0], [0.0, 0.0, 1.0, 0.0])
    np.testing.assert_array_equal(result.motion, [1.0, 2.0, 0.0])
    np.testing.assert_array_equal(result.z, [0.0, 3.0, 0.0, 0.0])
    np.testing.assert_array_equal(result.w, [0.0, 0.0, 1.0, 0.0])


def test_rows_of_zeros_with_bounds_rest_where_b_pushes_them() -> None:
    b = np.array([-1.0, 1.0, 0.0])
    result = solve_factored(np.zeros((3, 2)), None, [1.0, 1.0], b, lo=-2.0, hi=[5.0, 5.0, 5.0])
    np.testing.assert_array_equal(result.z, [5.0, -2.0, 0.0])
    np.testing.assert_array_equal(result.w, b)


def test_what_cancellation_left_of_a_row_of_zeros_is_ignored() -> None:
    """`Options.zero_row`: contacts between bodies that cannot move, after some arithmetic."""
    result = solve_factored([[1.0, 0.0], [0.0, -1e-17]], None, [-1.0, 1.0])
    np.testing.assert_array_equal(result.motion, [0.0, 1.0])


@pytest.mark.parametrize("seed", range(3))
def test_what_cancellation_left_is_ignored_among_many_rows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    N = 1e-17 * rng.normal(size=(1000, 3))
    good = rng.permutation(1000)[:100]
    N[good] = rng.normal(size=(100, 3)) + 3.0 * np.eye(3)[0]
    p = Problem(N, np.eye(3), np.array([-0.1, 1.0, 1.0]))
    assert_same_motion(p, solve(p).motion, solve(p.but(N=N[good])).motion)


@given(dense_problems(offsets=False, max_rows=4))
def test_opposite_rows_are_equalities(p: Problem) -> None:
    both = p.but(N=np.vstack([p.N, -p.N]))
    equal = p.but(lo=np.full(len(p.N), -np.inf))
    assert_same_motion(p, solve(both).motion, solve(equal).motion)


def test_at_rest_stays_at_rest() -> None:
    result = solve_factored(np.array([[1.0, 2.0], [0.0, -1.0]]), np.eye(2), np.zeros(2))
    assert result.certified and result.pivots == 0
    np.testing.assert_array_equal(result.motion, 0.0)


@given(problems())
@example(Problem(np.array([[1.0]]), np.array([[1.0]]), np.array([-1.0])))
def test_a_motion_that_is_allowed_is_returned_as_it_is(p: Problem) -> None:
    n = len(p.N)
    p = p.but(b=np.abs(p.N @ p.v) - p.N @ p.v)
    result = solve(p)
    np.testing.assert_array_equal(result.motion, p.v)
    np.testing.assert_array_equal(result.z, np.zeros(n))


# --- inputs: any layout, never written ----------------------------------------------------------


def exact_problem() -> dict[str, np.ndarray]:
    """Entries that float32 holds exactly."""
    rng = np.random.default_rng(11)
    N = rng.integers(-8, 9, (9, 6)) / 4.0
    A = rng.integers(-4, 5, (6, 6)) / 2.0
    given = {"N": N, "M": A @ A.T + 2.0 * np.eye(6), "v": rng.integers(-8, 9, 6) / 2.0}
    return given | {"b": 1.0 - N @ np.ones(6), "lo": np.zeros(9), "hi": np.full(9, 50.0)}


def strided(a: np.ndarray) -> np.ndarray:
    wide = np.full(tuple(3 * k for k in a.shape), np.nan)
    view = wide[tuple(slice(1, None, 3) for _ in a.shape)]
    view[...] = a
    return view


def reversed_view(a: np.ndarray) -> np.ndarray:
    return a[::-1].copy()[::-1]


def read_only(a: np.ndarray) -> np.ndarray:
    a = a.copy()
    a.setflags(write=False)
    return a


def unaligned(a: np.ndarray) -> np.ndarray:
    raw = np.zeros(a.nbytes + 1, dtype=np.uint8)[1:]
    view = raw.view(a.dtype).reshape(a.shape)
    view[...] = a
    assert not view.flags.aligned
    return view


class Subclass(np.ndarray):
    pass


LAYOUTS = {
    "float32": lambda a: a.astype(np.float32),
    "float16": lambda a: a.astype(np.float16),
    "longdouble": lambda a: a.astype(np.longdouble),
    "big endian": lambda a: a.astype(">f8"),
    "lists": lambda a: a.tolist(),
    "strided": strided,
    "reversed": reversed_view,
    "fortran": np.asfortranarray,
    "read-only": read_only,
    "unaligned": unaligned,
    "subclass": lambda a: a.view(Subclass),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_any_layout_gives_the_same_bits(layout: str) -> None:
    given = exact_problem()
    expected = solve_factored(**given)
    converted = {name: LAYOUTS[layout](array) for name, array in given.items()}
    result = solve_factored(**converted)
    for ours, theirs in ((result.z, expected.z), (result.motion, expected.motion)):
        np.testing.assert_array_equal(ours, theirs)
        assert type(ours) is np.ndarray and ours.dtype == np.float64


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint8, bool])
def test_integers(dtype: Any) -> None:
    N, v = np.array([[1, 0], [1, 1]], dtype=dtype), np.array([1, 0], dtype=dtype)
    b = np.array([-3, 0], dtype=np.int64)
    result = solve_factored(N, np.eye(2, dtype=dtype), v, b)
    np.testing.assert_array_equal(result.motion, [3.0, 0.0])


@pytest.mark.parametrize("layout", [np.array, np.asfortranarray, strided])
def test_inputs_are_never_written(layout: Any) -> None:
    rng = np.random.default_rng(2)
    blocks = block_inertia(rng, 3, 6)
    which = rng.integers(0, 3, (20, 2))
    values = layout(rng.normal(size=(20, 2, 6)))
    rows = BlockRows(which, values)
    sparse = scipy.sparse.csr_array(rows.dense(18))
    warm = np.arange(5)
    vectors = [layout(a) for a in (rng.normal(size=18), np.zeros(20), np.ones(20))]
    v, lo, hi = vectors
    b = layout(feasible_offset(rng, rows.dense(18)))
    dense_rows, dense_inertia = layout(rows.dense(18)), layout(block_diagonal(blocks))
    arrays = [blocks, which, values, sparse.data, sparse.indices, warm, *vectors, b]
    arrays += [dense_rows, dense_inertia]
    before = [a.tobytes() for a in arrays]
    for N in (dense_rows, rows, sparse):
        for M in (dense_inertia, blocks):
            solve_factored(N, M, v, b, warm, lo=lo, hi=hi)
            solve_factored(N, M, v, b, warm)
    assert [a.tobytes() for a in arrays] == before


def test_result_is_its_own() -> None:
    """A result shares memory neither with the inputs nor with a later result; it is read-only."""
    N, M, v = np.eye(3), np.eye(3), -np.ones(3)
    first = solve_factored(N, M, v)
    second = solve_factored(N, M, v)
    for array in (first.z, first.w, first.motion):
        assert not any(
            np.shares_memory(array, other) for other in (N, M, v, second.z, second.motion)
        )
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7.0


# --- determinism --------------------------------------------------------------------------------


def bits(result: LCPResult) -> tuple[Any, ...]:
    return (
        result.z.tobytes(),
        result.w.tobytes(),
        result.motion.tobytes(),
        result.loaded.tobytes(),
        result.residuals,
        result.pivots,
        result.rounds,
    )


@given(problems())
def test_same_input_same_bits(p: Problem) -> None:
    first = bits(solve(p))
    assert bits(solve(p)) == first
    copies = {name: np.array(array, copy=True) for name, array in p.arguments.items()}
    assert bits(solve_factored(**copies)) == first


def assert_same_bits_in_threads(tasks: list[dict[str, Any]], repeats: int) -> None:
    expected = [bits(solve_factored(**task)) for task in tasks]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda task: bits(solve_factored(**task)), tasks * repeats))
    assert found == expected * repeats


def test_same_bits_in_threads() -> None:
    rng = np.random.default_rng(9)
    tasks = [
        Problem(rng.normal(size=(12, 6)), inertia(rng, 6), rng.normal(size=6)).arguments
        for _ in range(4)
    ]
    assert_same_bits_in_threads(tasks, repeats=5)


@pytest.mark.jit
def test_same_bits_in_threads_with_many_rows() -> None:
    tasks = [many_rows(4000, 24, seed).arguments for seed in range(4)]
    assert_same_bits_in_threads(tasks, repeats=5)


# --- many rows: only some of them are candidates ------------------------------------------------


def many_rows(n: int, m: int, seed: int, opening: float = 1.0) -> Problem:
    """Random rows, all tilted one way: the smaller the opening, the more rows are loaded."""
    rng = np.random.default_rng(seed)
    N = rng.normal(size=(n, m))
    N[:, 0] = np.abs(N[:, 0]) + opening
    return Problem(N, inertia(rng, m), rng.normal(size=m))


def assert_loaded_rows_tell_all(p: Problem, result: LCPResult) -> None:
    """Proven, and the same as the solve with few rows, where all are candidates at once."""
    assert_solved(result, p)
    few = np.concatenate([result.loaded, np.arange(0, len(p.N), max(1, len(p.N) // 100))])
    fewer = p.but(N=p.N[few], b=None if p.b is None else p.b[few])
    assert_same_motion(p, solve(fewer).motion, result.motion)


# Just below and above the number of rows that are all taken at once, and up to so many that the
# first looks are at a few of them only.
SIZES = [
    (_state.ALL_ROWS * 8, 8),
    (_state.ALL_ROWS * 8 + 1, 8),
    (3000, 6),
    (20000, 12),
    (5000, 60),
    (40000, 4),
    (600000, 2),
]


@pytest.mark.jit
@pytest.mark.parametrize(("n", "m"), SIZES)
def test_many_rows(n: int, m: int) -> None:
    p = many_rows(n, m, seed=n)
    assert_loaded_rows_tell_all(p, solve(p))


@pytest.mark.jit
@pytest.mark.parametrize("seed", range(3))
def test_many_rows_with_offsets(seed: int) -> None:
    p = many_rows(8000, 20, seed)
    p = p.but(b=feasible_offset(np.random.default_rng(seed), p.N))
    assert_loaded_rows_tell_all(p, solve(p))


@pytest.mark.jit
@pytest.mark.parametrize("order", ["ascending", "descending", "by direction"])
def test_many_rows_in_order(order: str) -> None:
    """A sorted list puts the violated rows side by side, or behind each other."""
    p = many_rows(40000, 12, seed=1)
    key = p.N[:, 1] if order == "by direction" else p.N @ p.v
    rows = np.argsort(key if order != "descending" else -key)
    result = solve(p.but(N=p.N[rows]))
    assert_same_motion(p, result.motion, solve(p).motion)


@pytest.mark.jit
def test_so_many_rounds_that_candidates_are_dropped() -> None:
    """Nearly parallel rows: each round finds new ones until the list of candidates is full."""
    p = many_rows(20000, 60, seed=4, opening=0.2)
    result = solve(p)
    assert_loaded_rows_tell_all(p, result)
    # more than the list holds, if every bucket brings one
    assert result.rounds * _state.BUCKETS > 60 + 8 * _state.BUCKETS


@pytest.mark.jit
def test_many_copies_of_few_rows() -> None:
    rng = np.random.default_rng(0)
    few = many_rows(20, 8, seed=3)
    p = few.but(N=few.N[rng.integers(0, 20, 30000)])
    result = solve(p)
    assert_solved(result, p)
    assert_same_motion(p, result.motion, solve(few).motion)


@pytest.mark.jit
def test_many_rows_of_zeros() -> None:
    p = many_rows(9000, 8, seed=6)
    N = p.N.copy()
    N[::3] = 0.0
    p = p.but(N=N)
    result = solve(p)
    assert_solved(result, p)
    assert not result.z[::3].any()


@pytest.mark.jit
def test_many_rows_that_hold_already() -> None:
    p = many_rows(20000, 6, seed=8)
    v = 100.0 * np.eye(6)[0]
    keep = p.N @ v > 0
    result = solve(p.but(N=p.N[keep], v=v))
    np.testing.assert_array_equal(result.motion, v)
    assert result.pivots == 0


@pytest.mark.jit
@pytest.mark.parametrize("seed", range(3))
def test_many_rows_and_bounds(seed: int) -> None:
    """Joints and dry friction among thousands of contacts, in any place of the list."""
    rng = np.random.default_rng(seed)
    p = many_rows(6000, 24, seed)
    lo, hi = np.zeros(6000), np.full(6000, np.inf)
    joints, dry, fixed = np.split(rng.permutation(6000)[:310], [6, 300])
    lo[joints] = -np.inf
    hi[dry] = rng.uniform(0.0, 0.1, dry.size)
    lo[dry] = -hi[dry]
    lo[fixed] = hi[fixed] = 0.05
    p = p.but(lo=lo, hi=hi)
    result = solve(p)
    assert_solved(result, p)
    assert (result.z[fixed] == pytest.approx(0.05, rel=1e-15)) and len(joints) <= result.rank


@pytest.mark.jit
def test_many_rows_with_a_warm_start() -> None:
    rng = np.random.default_rng(0)
    p = many_rows(20000, 24, seed=2)
    cold = solve(p)
    for warm in (cold, rng.permutation(20000)[:50], np.arange(20000), [19999, 20000, -1]):
        result = solve(p, warm_start=warm)
        assert_solved(result, p)
        assert_same_motion(p, result.motion, cold.motion)
    near = p.but(v=p.v + 1e-3 * rng.normal(size=24))
    assert_same_motion(near, solve(near, warm_start=cold).motion, solve(near).motion)


def body_rows(n: int, bodies: int, seed: int, decades: float) -> tuple[Problem, Any, Any]:
    """Contacts between random pairs of bodies: dense problem, blocks of M, block rows."""
    rng = np.random.default_rng(seed)
    blocks = block_inertia(rng, bodies, 6, decades)
    which = np.sort(rng.integers(0, bodies, (n, 2)), axis=1)
    values = rng.normal(size=(n, 2, 6))
    values[:, 1, 0] = np.abs(values[:, 1, 0]) + 1.0
    values[:, 0, 0] = -values[:, 1, 0] + 0.5
    values[which[:, 0] == which[:, 1], 0] = 0.0  # with the world
    rows = BlockRows(which, values)
    v = rng.normal(size=6 * bodies)
    return Problem(rows.dense(6 * bodies), block_diagonal(blocks), v), blocks, rows


@pytest.mark.jit
@pytest.mark.parametrize("decades", [0.0, 6.0])
@pytest.mark.parametrize(("n", "bodies"), [(3000, 2), (6000, 10), (40000, 5)])
def test_many_block_rows(n: int, bodies: int, decades: float) -> None:
    p, blocks, rows = body_rows(n, bodies, n, decades)
    expected = solve(p)
    assert_loaded_rows_tell_all(p, expected)
    order = np.lexsort(rows.blocks.T)
    by_pair = BlockRows(rows.blocks[order], rows.values[order])
    for N, M in ((rows, blocks), (rows, p.M), (scipy.sparse.csr_array(p.N), blocks), (p.N, blocks)):
        result = solve_factored(N, M, p.v)
        assert_same_motion(p, result.motion, expected.motion)
        assert max(kkt(p, result.z, result.motion)) <= CERTIFICATE
    assert_same_motion(p, solve_factored(by_pair, blocks, p.v).motion, expected.motion)


@pytest.mark.jit
@pytest.mark.parametrize("decades", [6.0, 9.0])
def test_many_rows_and_a_stiff_inertia(decades: float) -> None:
    """The diagonal of M misjudges lengths of rows by up to the root of its condition number."""
    rng = np.random.default_rng(1)
    p = many_rows(5000, 10, seed=5)
    p = p.but(M=inertia(rng, 10, decades))
    assert_solved(solve(p), p)


def box_stack(n: int, boxes: int, ratio: float, seed: int) -> tuple[Problem, Any, Any]:
    """Unit cubes on each other, n points on their faces, every other cube heavier by a factor.

    All rows of one face lie in a space of three, so nearly every choice of rows is dependent.
    """
    rng = np.random.default_rng(seed)
    face = np.arange(n) % boxes
    x, y = rng.uniform(-0.5, 0.5, (2, n))
    which = np.column_stack([np.maximum(face - 1, 0), face])
    values = np.zeros((n, 2, 6))
    values[:, 1, 2], values[:, 1, 3], values[:, 1, 4] = 1.0, y, -x
    values[face > 0, 0] = -values[face > 0, 1]
    mass = np.where(np.arange(boxes) % 2, ratio, 1.0)
    blocks = mass[:, None, None] * np.diag([1.0, 1.0, 1.0, 1 / 6, 1 / 6, 1 / 6])
    v = 0.02 * rng.normal(size=(boxes, 6))
    v[:, 2] -= 0.0981
    rows = BlockRows(which, values)
    return Problem(rows.dense(6 * boxes), block_diagonal(blocks), v.ravel()), blocks, rows


@pytest.mark.parametrize("ratio", [1.0, 1e-6, 1e6])
@pytest.mark.parametrize(
    ("n", "boxes"), [(36, 4), (120, 6), pytest.param(6000, 8, marks=pytest.mark.jit)]
)
def test_stack_of_boxes(n: int, boxes: int, ratio: float) -> None:
    p, blocks, rows = box_stack(n, boxes, ratio, seed=n)
    result = solve(p)
    assert_solved(result, p)
    structured = solve_factored(rows, blocks, p.v)
    assert max(kkt(p, structured.z, structured.motion)) <= CERTIFICATE
    assert_same_motion(p, structured.motion, result.motion)


# --- regressions: nearly opposite rows, some of them joints -------------------------------------

ROUNDING_DECIDES = range(1000)  # seeds; rounding decides for a few of them


def nearly_opposite(seed: int, joints: bool) -> Problem:
    """Rows and their opposites up to noise of 1e-12 to 1e-3; half of them joints, if wanted."""
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(2, 13)), int(rng.integers(1, 10))
    N = rng.normal(size=(n, m))
    N = np.vstack([N, -N + 10.0 ** rng.uniform(-12.0, -3.0) * rng.normal(size=N.shape)])
    v = rng.normal(size=m)
    lo = np.zeros(len(N))
    if joints:
        lo[rng.permutation(len(N))[: len(N) // 2]] = -np.inf
    return Problem(N, inertia(rng, m), v, lo=lo)


@pytest.mark.jit
@pytest.mark.parametrize("seed", [396, 1720, 2125])
def test_certified_by_the_size_of_its_own_motion(seed: int) -> None:
    p = nearly_opposite(seed, joints=True)
    try:
        result = solve(p)
    except hf.errors.UncertifiedError:
        return
    assert max(kkt(p, result.z, result.motion)) <= CERTIFICATE


@pytest.mark.jit
def test_nearly_opposite_rows_do_not_cycle() -> None:
    """Rounding decides which rows are loaded, and which problems need a coarser rank."""
    fallbacks = []
    for seed in ROUNDING_DECIDES:
        for joints in (True, False):
            p = nearly_opposite(seed, joints)
            try:
                result = solve(p)
            except hf.errors.SolveError as error:
                assert error.status in (hf.lcp.Status.PIVOT_LIMIT, hf.lcp.Status.UNCERTIFIED)
                continue
            assert max(kkt(p, result.z, result.motion)) <= CERTIFICATE
            fallbacks.append(result.fallback)
    assert any(fallbacks)


@pytest.mark.jit
@pytest.mark.xfail(reason="some take 5 (n + m) pivots", raises=AssertionError)
def test_nearly_opposite_rows_take_few_pivots() -> None:
    for seed in ROUNDING_DECIDES:
        p = nearly_opposite(seed, joints=False)
        with contextlib.suppress(hf.errors.SolveError):
            assert_solved(solve(p), p)


def test_rows_that_are_taken_for_rounding_are_said() -> None:
    """A row may be 1e-15 long because of its units, or because nothing is left of it: we say so."""
    N = np.array([[1.0, 0.0], [0.0, 1e-15], [0.0, 0.0]])
    result = solve_factored(N, np.eye(2), [-1.0, -1.0])
    assert result.left_out.tolist() == [1]
    assert result.motion[1] == -1.0  # it was ignored
    scaled = solve_factored(N * [[1.0], [1e15], [1.0]], np.eye(2), [-1.0, -1.0])
    assert scaled.left_out.size == 0 and scaled.motion[1] == 0.0
    kept = solve_factored(N, np.eye(2), [-1.0, -1.0], options=hf.lcp.Options(zero_row=0.0))
    assert kept.left_out.size == 0 and kept.motion[1] == 0.0


@pytest.mark.parametrize("place", [1, 2, 777, 1999])
def test_one_row_among_thousands_of_zeros(place: int) -> None:
    """The longest row is looked for in a sample first: wherever it stands, it holds."""
    N = np.zeros((2000, 2))
    N[place] = 0.0, 2.0
    result = solve_factored(N, np.eye(2), [1.0, -1.0])
    np.testing.assert_allclose(result.motion, [1.0, 0.0], atol=1e-15)
    assert result.certified and result.z[place] == pytest.approx(0.5)
    assert np.count_nonzero(result.z) == 1


def spread_lengths(seed: int) -> dict[str, Any]:
    """Rows of lengths from 1 to 1e-18 in a stiff metric; many or few, some with bounds."""
    rng = np.random.default_rng(seed)
    m = int(rng.integers(2, 7))
    n = int(rng.integers(17 * m, 40 * m) if rng.random() < 0.7 else rng.integers(2, 3 * m))
    axes, _ = np.linalg.qr(rng.normal(size=(m, m)))
    M = (axes * np.logspace(-rng.uniform(4, 12), 0, m)) @ axes.T
    N = rng.normal(size=(n, m))
    along = rng.random(n) < rng.random()  # of the motion that is hardest to change
    N[along] = rng.normal(size=(int(along.sum()), 1)) * axes[:, -1]
    N *= np.where(rng.random(n) < 0.5, 10.0 ** rng.uniform(-18, -12, n), 1.0)[:, None]
    lo, hi = np.zeros(n), np.full(n, np.inf)
    free, bounded = rng.random((2, n)) < [[0.05], [0.1]]
    lo[free], lo[bounded], hi[bounded] = -np.inf, -1e9, 1e9
    warm = rng.permutation(n)[: int(rng.integers(0, n))] if rng.random() < 0.4 else None
    return {"N": N, "M": 0.5 * (M + M.T), "v": rng.normal(size=m), "warm_start": warm,
            "lo": lo, "hi": hi}  # fmt: skip


def test_no_row_is_left_out_silently() -> None:
    """Every row of a certified answer holds, by its own length, or is named; and no other is.

    The solver judges many rows by the diagonal of M, few by the metric: rows that are short in one
    of them were left out and not named (seeds 182, 198, 274, 314 and 347)
    """
    found = 0
    for seed in range(180, 350):
        p = spread_lengths(seed)
        result = solve_factored(**p)
        L = np.linalg.cholesky(p["M"])
        length = np.linalg.norm(np.linalg.solve(L, p["N"].T), axis=0)
        size = max(np.linalg.norm(L.T @ x) for x in (p["v"], result.motion))
        w, z = p["N"] @ result.motion, result.z
        wrong = np.where(z < p["hi"], -w, 0.0)
        wrong = np.where(z > p["lo"], np.maximum(w, wrong), wrong) / (length * size)
        assert set(np.flatnonzero(wrong > 1e-7)) <= set(result.left_out), seed
        assert (wrong[result.left_out] > 1e-11).all(), seed
        assert (z[result.left_out] == 0.0).all()
        found += len(result.left_out)
    assert found > 10


def test_answers_in_other_units_say_what_was_left_out() -> None:
    """Numbers whose squares are none are solved in other units: that said nothing."""
    N = np.array([[1e180, 0.0], [0.0, 1e165]])
    result = solve_factored(N, np.eye(2), [-1.0, -1.0])
    assert result.certified and result.motion[1] == -1.0 and result.left_out.tolist() == [1]
