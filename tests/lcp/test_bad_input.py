"""Bad input: one test per row of the table, with the message that a person gets.

Every message names the argument; `InputError.argument` is the same name for programs.
"""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from holdfast.errors import (
    HoldfastError,
    InfeasibleError,
    InputError,
    NotPositiveDefiniteError,
    NotSymmetricError,
    SolveError,
    UncertifiedError,
)
from holdfast.lcp import BlockRows, LCPResult, Options, Status, solve, solve_factored
from reference import Problem, feasible_offset, inertia, is_farkas, motion_error

# Plain Python warns where the compiled kernels follow IEEE arithmetic in silence.
pytestmark = pytest.mark.filterwarnings("ignore:.*encountered in scalar:RuntimeWarning")

I3, DOWN = np.eye(3), -np.ones(3)


def put(array: Any, index: Any, value: Any) -> np.ndarray:
    """A copy with one other entry."""
    array = np.array(array, dtype=float)
    array[index] = value
    return array


def refused(argument: str, message: str, *args: Any, **kwargs: Any) -> InputError:
    """Call `solve_factored`; it must refuse `argument` with a message that contains this."""
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        solve_factored(*args, **kwargs)
    assert caught.value.argument == argument
    assert str(caught.value).startswith(f"{argument}: ")
    assert isinstance(caught.value, ValueError)  # the usual except clause works
    return caught.value


# --- not a number -------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
class TestNotFinite:
    """The message holds the value and the index of the first."""

    def test_dense_rows(self, value: float) -> None:
        N = put(put(I3, (2, 0), np.nan), (1, 2), value)
        refused("N", f"contains {value} at [1, 2]", N, I3, DOWN)

    def test_rows_when_nothing_moves(self, value: float) -> None:
        refused("N", f"contains {value} at [1, 2]", put(I3, (1, 2), value), None, np.zeros(3))

    def test_block_rows(self, value: float) -> None:
        rows = BlockRows([[0, 1], [1, 2]], put(np.ones((2, 2, 1)), (1, 1, 0), value))
        refused("N", f"contains {value} at [1, 1, 0]", rows, I3, DOWN)

    def test_block_rows_are_refused(self, value: float) -> None:
        rows = BlockRows([[0, 1], [1, 2]], put(np.ones((2, 2, 1)), (1, 1, 0), value))
        refused("N", f"contains {value} at [1, 1", rows, I3, DOWN)

    def test_sparse_rows(self, value: float) -> None:
        rows = scipy.sparse.csr_array(put(I3, (1, 2), value))
        refused("N", f"contains {value} at [1, 2]", rows, I3, DOWN)

    @pytest.mark.jit
    @pytest.mark.parametrize("speed", [-1.0, 0.0, 1.0])
    def test_a_row_far_down_the_list(self, value: float, speed: float) -> None:
        N = np.abs(np.random.default_rng(0).normal(size=(40000, 6)))
        N = put(N, (39998, 3), value)
        refused("N", f"contains {value} at [39998, 3]", N, None, np.full(6, speed))

    def test_inertia_on_the_diagonal(self, value: float) -> None:
        refused("M", f"contains {value} at [1, 1]", I3, put(I3, (1, 1), value), DOWN)

    def test_inertia_below_the_diagonal(self, value: float) -> None:
        refused("M", f"contains {value} at [2, 0]", I3, put(I3, (2, 0), value), DOWN)

    def test_inertia_above_the_diagonal(self, value: float) -> None:
        refused("M", f"contains {value} at [0, 2]", I3, put(I3, (0, 2), value), DOWN)

    def test_inertia_blocks(self, value: float) -> None:
        M = put(np.ones((3, 1, 1)), (1, 0, 0), value)
        refused("M", f"contains {value} at [1, 0, 0]", I3, M, DOWN)

    def test_motion(self, value: float) -> None:
        refused("v", f"contains {value} at [1]", I3, I3, put(put(DOWN, 2, np.nan), 1, value))

    def test_offset(self, value: float) -> None:
        refused("b", f"contains {value} at [2]", I3, I3, DOWN, put(np.zeros(3), 2, value))

    @pytest.mark.jit
    def test_offset_far_down_the_list(self, value: float) -> None:
        N = np.abs(np.random.default_rng(0).normal(size=(5000, 6)))
        b = put(np.zeros(5000), 4999, value)
        refused("b", f"contains {value} at [4999]", N, None, np.ones(6), b)

    @pytest.mark.parametrize("method", ["ppm", "qp", "lemke"])
    def test_dense_lcp(self, value: float, method: str) -> None:
        with pytest.raises(InputError, match=re.escape(f"F: contains {value} at [1, 2]")):
            solve(put(I3, (1, 2), value), DOWN, method)
        with pytest.raises(InputError, match=re.escape(f"e: contains {value} at [1]")):
            solve(I3, put(DOWN, 1, value), method)


# --- wrong shapes: the two that disagree are named ----------------------------------------------


def test_rows_and_motion() -> None:
    error = refused("N", "is 2 x 4", np.ones((2, 4)), I3, DOWN)
    assert re.search(r"but (v has 3 entries|M is 3 x 3)", str(error))


@pytest.mark.parametrize(
    ("argument", "message", "args"),
    [
        ("v", "has 3 entries but M is 4 x 4", (I3, np.eye(4), DOWN)),
        ("v", "has 3 entries but M has 2 blocks of 2 x 2", (I3, np.ones((2, 2, 2)), DOWN)),
        ("b", "has 4 entries but N is 3 x 3", (I3, I3, DOWN, np.zeros(4))),
        ("N", "is 2 x 4 but v has 3", (scipy.sparse.csr_array(np.ones((2, 4))), I3, DOWN)),
        (
            "N",
            "blocks of 1 coordinates up to number 3 but v has 3 entries",
            (BlockRows([[0, 3]], np.ones((1, 2, 1))), I3, DOWN),
        ),
        ("M", "has shape (3, 2); expected (m, m)", (I3, np.ones((3, 2)), DOWN)),
        ("M", "has shape (3,)", (I3, np.ones(3), DOWN)),
        ("N", "has 3 entries, but a matrix has two dimensions; write N[None, :]", (DOWN, I3, DOWN)),
        ("v", "is 3 x 1, but a vector has one dimension; v.ravel()", (I3, I3, DOWN[:, None])),
        ("b", "is a single number", (I3, I3, DOWN, 0.0)),
    ],
)
def test_shapes(argument: str, message: str, args: tuple[Any, ...]) -> None:
    refused(argument, message, *args)


@pytest.mark.parametrize("bound", ["lo", "hi"])
def test_shapes_of_bounds(bound: str) -> None:
    refused(bound, "has 4 entries but N is 3 x 3", I3, I3, DOWN, **{bound: np.ones(4)})
    refused(bound, "is 3 x 1, but a vector", I3, I3, DOWN, **{bound: np.ones((3, 1))})


def test_shapes_of_a_dense_lcp() -> None:
    with pytest.raises(InputError, match="F: is 2 x 3; expected a square matrix"):
        solve(np.ones((2, 3)), DOWN)
    with pytest.raises(InputError, match="e: has 2 entries but F is 3 x 3"):
        solve(I3, np.ones(2))
    with pytest.raises(InputError, match="lo: has 2 entries but F is 3 x 3"):
        solve(I3, DOWN, lo=np.zeros(2))


@pytest.mark.parametrize(
    ("argument", "message", "blocks", "values"),
    [
        ("blocks", "(1, 3) but values has shape (1, 2, 1)", [[0, 1, 2]], np.ones((1, 2, 1))),
        ("blocks", "is -1 at [0, 1]; block numbers start at 0", [[0, -1]], np.ones((1, 2, 1))),
        ("blocks", "has dtype float64; expected integers", [[0.0, 1.0]], np.ones((1, 2, 1))),
        ("values", "has shape (1, 2); expected (n, K, s)", [[0, 1]], np.ones((1, 2))),
        ("values", "has dtype complex128", [[0, 1]], 1j * np.ones((1, 2, 1))),
    ],
)
def test_block_rows(argument: str, message: str, blocks: Any, values: Any) -> None:
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        BlockRows(blocks, values)
    assert caught.value.argument == argument


# --- not real numbers ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argument", "message", "args"),
    [
        ("N", "has dtype complex128 (from ndarray); expected real", (1j * I3, I3, DOWN)),
        ("N", "has dtype object (from ndarray)", (I3.astype(object), I3, DOWN)),
        ("N", "has dtype object (from NoneType)", (None, I3, DOWN)),
        ("N", "has dtype <U1 (from list)", ([["a"]], I3, DOWN)),
        ("N", "is not a rectangular array of numbers", ([[1, 2, 3], [1, 2]], I3, DOWN)),
        ("M", "has dtype complex128", (I3, I3 + 0j, DOWN)),
        ("M", "has dtype object (from dia_array)", (I3, scipy.sparse.eye_array(3), DOWN)),
        ("v", "has dtype complex128", (I3, I3, 1j * DOWN)),
        ("v", "has dtype object", (I3, I3, np.array([None] * 3))),
        ("v", "has dtype datetime64", (I3, I3, np.array([1, 2, 3], dtype="M8[s]"))),
        ("b", "has dtype complex128", (I3, I3, DOWN, 1j * DOWN)),
        ("N", "has dtype complex128", (scipy.sparse.csr_array(1j * I3), I3, DOWN)),
    ],
)
@pytest.mark.filterwarnings("ignore:Casting complex values")
def test_types(argument: str, message: str, args: tuple[Any, ...]) -> None:
    refused(argument, message, *args)


@pytest.mark.parametrize("bound", ["lo", "hi"])
@pytest.mark.parametrize("value", [np.array([1j] * 3), np.array([None] * 3)])
def test_types_of_bounds(bound: str, value: Any) -> None:
    refused(bound, f"has dtype {value.dtype}", I3, I3, DOWN, **{bound: value})


@pytest.mark.filterwarnings("ignore:Casting complex values")
@pytest.mark.parametrize("value", [1j, "a"])
def test_type_of_a_single_bound(value: Any) -> None:
    refused("lo", "has dtype", I3, I3, DOWN, lo=value)


@pytest.mark.parametrize("method", ["ppm", "qp", "lemke"])
def test_types_of_a_dense_lcp(method: str) -> None:
    with pytest.raises(InputError, match="F: has dtype complex128"):
        solve(1j * I3, DOWN, method)
    with pytest.raises(InputError, match="e: has dtype object"):
        solve(I3, DOWN.astype(object), method)


# --- inertia ------------------------------------------------------------------------------------


def test_asymmetric_inertia() -> None:
    M = put(I3, (0, 2), 1e-7)
    with pytest.raises(
        NotSymmetricError,
        match=r"^M: not symmetric: entries \[0, 2\] and \[2, 0\] differ by 1e-07 .* \(M \+ M.T\)",
    ) as caught:
        solve_factored(I3, M, DOWN)
    assert caught.value.index == (0, 2)
    assert caught.value.asymmetry == pytest.approx(1e-7)


def test_asymmetry_of_rounding_is_accepted() -> None:
    result = solve_factored(I3, put(I3, (0, 2), 1e-9), DOWN)
    np.testing.assert_allclose(result.motion, 0.0, atol=1e-9)


def test_asymmetric_blocks_are_named_by_rows_of_the_whole() -> None:
    M = put(np.array([np.eye(2)] * 3), (1, 0, 1), 0.5)
    with pytest.raises(NotSymmetricError) as caught:
        solve_factored(np.eye(6), M, -np.ones(6))
    assert caught.value.index == (2, 3)


def test_asymmetry_beside_a_heavy_body() -> None:
    M = np.diag([1e10, 1.0, 1.0])
    M[1, 2], M[2, 1] = 0.5, -0.5
    with pytest.raises(NotSymmetricError, match=r"\[1, 2\] and \[2, 1\]"):
        solve_factored(I3, M, DOWN)


@pytest.mark.parametrize(
    ("M", "smallest", "largest"),
    [
        (np.diag([1.0, -2.0, 3.0]), -2.0, 3.0),
        (np.array([[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 1.0]]), -1.0, 3.0),
        (np.ones((3, 3)), 0.0, 3.0),
        (np.zeros((3, 3)), 0.0, 0.0),
        (np.array([1.0, 2.0, -1.0]).reshape(3, 1, 1), -1.0, 2.0),
    ],
)
def test_indefinite_inertia(M: np.ndarray, smallest: float, largest: float) -> None:
    with pytest.raises(
        NotPositiveDefiniteError,
        match=r"^M: not positive definite: smallest eigenvalue .*, largest .* massless bodies",
    ) as caught:
        solve_factored(I3, M, DOWN)
    # to rounding: eps times the size of the matrix
    assert caught.value.smallest_eigenvalue == pytest.approx(smallest, abs=1e-14)
    assert caught.value.largest_eigenvalue == pytest.approx(largest, abs=1e-14)
    assert caught.value.argument == "M"


def test_dense_lcp_not_symmetric_or_indefinite() -> None:
    for method in ("ppm", "qp"):
        with pytest.raises(NotSymmetricError, match=r"^F: not symmetric"):
            solve(put(I3, (0, 1), 1e-7), DOWN, method)
        with pytest.raises(NotPositiveDefiniteError, match=r"^F: not positive semidefinite") as e:
            solve(np.diag([1.0, 2.0, -1e-3]), DOWN, method)
        assert e.value.smallest_eigenvalue == pytest.approx(-1e-3, rel=1e-12)


# --- bounds -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lo", "hi", "message"),
    [
        (1.0, 0.0, "is 1.0 at [0] while hi is 0.0"),
        ([0.0, 0.0, 2.0], [1.0, 1.0, 1.0], "is 2.0 at [2] while hi is 1.0"),
        (np.inf, None, "is inf at [0]"),
        ([0.0, np.inf, 0.0], np.inf, "is inf at [1] while hi is inf"),
        (-np.inf, -np.inf, "is -inf at [0] while hi is -inf"),
        ([0.0, np.nan, 0.0], None, "is nan at [1]"),
        (None, [1.0, 1.0, np.nan], "while hi is nan"),
    ],
)
def test_bounds(lo: Any, hi: Any, message: str) -> None:
    refused("lo", message, I3, I3, DOWN, lo=lo, hi=hi)
    for method in ("ppm", "qp", "lemke"):
        with pytest.raises(InputError, match=re.escape(message)):
            solve(I3, DOWN, method, lo=lo, hi=hi)


@pytest.mark.jit
def test_bounds_far_down_the_list() -> None:
    N = np.abs(np.random.default_rng(0).normal(size=(5000, 6)))
    hi = put(np.ones(5000), 4000, -1.0)
    refused("lo", "at [4000] while hi is -1.0", N, None, np.ones(6), hi=hi)


# --- infeasible: the certificate is a proof -----------------------------------------------------

INF = np.inf
WALLS = np.array([[1.0, 0.0], [-1.0, 0.0]])


def contradiction(N: Any, b: Any, lo: Any = None, hi: Any = None) -> Problem:
    lo, hi = (None if bound is None else np.array(bound) for bound in (lo, hi))
    return Problem(np.array(N), np.eye(2), np.array([0.3, -0.2]), np.array(b), lo, hi)


CONTRADICTIONS = {
    "closing walls": contradiction(WALLS, [-1.0, 0.5]),
    "a row of zeros": contradiction([[0.0, 0.0]], [-1.0]),
    "equalities": contradiction([[1.0, 2.0], [2.0, 4.0]], [1.0, 1.0], [-INF, -INF]),
    "an equality of zeros": contradiction([[0.0, 0.0]], [1.0], [-INF]),
    "a joint and a wall": contradiction(WALLS, [-1.0, 0.5], [-INF, 0.0]),
    # w >= 0 and w <= 0, one of them as a row that pulls
    "a rope": contradiction([[1.0, 0.0], [1.0, 0.0]], [-2.0, -1.0], [0.0, -INF], [INF, 0.0]),
}


def assert_infeasible(p: Problem) -> InfeasibleError:
    message = r"^infeasible: rows? .* (contradict|cannot hold)"
    with pytest.raises(InfeasibleError, match=message) as caught:
        solve_factored(**p.arguments)
    error = caught.value
    assert error.certificate.shape == (len(p.N),)
    assert is_farkas(p, error.certificate)
    assert error.status is Status.INFEASIBLE
    assert error.problem.N is p.N
    return error


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_contradictions(name: str) -> None:
    assert_infeasible(CONTRADICTIONS[name])


def test_the_message_names_the_rows_that_contradict_each_other() -> None:
    N = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 2.0], [-2.0, 0.0]])
    error = assert_infeasible(Problem(N, np.eye(2), np.ones(2), np.array([0.0, -1.0, 0.0, 1.0])))
    assert "rows 1, 3 contradict" in str(error)
    assert np.flatnonzero(error.certificate).tolist() == [1, 3]


@pytest.mark.parametrize("seed", range(10))
def test_a_contradiction_among_many_dependent_rows(seed: int) -> None:
    """u >= 0 with N'u = 0 is built in, and b'u = -1."""
    rng = np.random.default_rng(seed)
    m, n = 6, 12
    N = rng.normal(size=(n, m))
    u = rng.uniform(0.1, 1.0, n)
    N[-1] = -(u[:-1] @ N[:-1]) / u[-1]
    b = feasible_offset(rng, N)
    b -= u * (b @ u + 1.0) / (u @ u)
    assert_infeasible(Problem(N, inertia(rng, m), rng.normal(size=m), b))


@pytest.mark.jit
def test_a_contradiction_among_thousands() -> None:
    rng = np.random.default_rng(0)
    N = rng.normal(size=(6000, 8))
    b = feasible_offset(rng, N)
    N[4321], b[4321] = -N[17], -b[17] - 1.0
    error = assert_infeasible(Problem(N, inertia(rng, 8), rng.normal(size=8), b))
    assert np.count_nonzero(error.certificate) <= 9  # at most m + 1 rows are needed


def test_infeasible_dense_lcp() -> None:
    """w = F z + e < 0 for every z: u'F = 0, u'e < 0."""
    F, e = np.array([[1.0, -1.0], [-1.0, 1.0]]), np.array([-1.0, -1.0])
    with pytest.raises(InfeasibleError) as caught:
        solve(F, e)
    u = caught.value.certificate
    assert (u >= 0.0).all() and e @ u < 0.0
    np.testing.assert_allclose(F @ u, 0.0, atol=1e-15 * u.max())
    np.testing.assert_array_equal(caught.value.problem.F, F)
    with pytest.raises(SolveError) as caught_qp:
        solve(F, e, "qp")
    assert caught_qp.value.status is Status.INFEASIBLE


# --- without b every row can be met by standing still -------------------------------------------


@pytest.mark.parametrize("tilt", [3e-8, 1e-6, 1e-5])
def test_nearly_equal_joints_are_not_infeasible(tilt: float) -> None:
    N = [[1.0, 0.1], [1.0, 0.1 + tilt], [0.3, -0.1]]
    result = solve_factored(N, None, [0.3, -0.7], lo=[-np.inf, -np.inf, 0.0])
    np.testing.assert_allclose(result.motion, 0.0, atol=1e-9)


@pytest.mark.parametrize("tilt", [1e-8, 3e-8, 1e-7])
def test_nearly_opposite_walls(tilt: float) -> None:
    """A wedge: both walls push hard and nearly cancel. The motion is zero, and well defined."""
    result = solve_factored([[1.0, 0.0], [-1.0, tilt]], None, [0.3, -0.7])
    np.testing.assert_allclose(result.motion, 0.0, atol=1e-9)


@pytest.mark.parametrize(
    "tilt",
    [
        pytest.param(
            tilt,
            marks=pytest.mark.xfail(
                raises=UncertifiedError, reason="exact forces of 1e15 and more cancel"
            )
            if tilt < 1e-7
            else (),
        )
        for tilt in (1e-9, 1e-8, 1e-7, 1e-6, 1e-5)
    ],
)
def test_a_box_between_two_plates_with_noisy_normals(tilt: float) -> None:
    """What a collision detector makes of a grasped cube: eight corners, normals off by noise.

    Without friction the noise decides whether the cube may slide. In exact arithmetic it may not.
    """
    corners = np.array(list(itertools.product((-0.5, 0.5), repeat=3)))
    M = np.diag([1.0, 1.0, 1.0, 1 / 6, 1 / 6, 1 / 6])
    for seed in range(20):
        normals = -np.sign(corners[:, 2:]) * [0.0, 0.0, 1.0]
        normals = normals + tilt * np.random.default_rng(seed).normal(size=(8, 3))
        N = np.hstack([normals, np.cross(corners, normals)])
        assert solve_factored(N, M, [1.0, 0.1, -0.1, 0.3, 0.0, 0.0]).certified


# --- scales that cannot be squared --------------------------------------------------------------


@pytest.mark.parametrize(
    "exponents",
    list(itertools.product((-150, 0, 150), repeat=3)),
)
def test_scales(exponents: tuple[int, int, int]) -> None:
    """Solved correctly, or refused clearly; never NaN and never a wrong number."""
    length, mass, speed = (10.0**k for k in exponents)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        p = Problem(rng.normal(size=(6, 4)), inertia(rng, 4), rng.normal(size=4))
        expected = solve_factored(**p.arguments)
        try:
            result = solve_factored(length * p.N, mass * p.M, speed * p.v)
        except InputError as error:
            assert "choose other units" in str(error)
            continue
        assert np.isfinite(result.z).all() and np.isfinite(result.w).all()
        assert motion_error(p, result.motion / speed, expected.motion) <= 1e-9


def test_offsets_too_large_to_be_squared() -> None:
    N, b = np.array([[1.0, 0.5], [0.5, 1.0]]), np.array([-1.0, -1.0])
    try:
        result = solve_factored(N, None, np.zeros(2), 1e156 * b)
    except InputError:
        return
    np.testing.assert_allclose(result.motion, 1e156 * np.array([2 / 3, 2 / 3]), rtol=1e-9)


def test_rows_too_short_to_be_squared() -> None:
    try:
        result = solve_factored(1e-170 * np.eye(2), None, [-1.0, 1.0])
    except InputError:
        return
    np.testing.assert_allclose(result.motion, [0.0, 1.0], atol=1e-9)


@pytest.mark.parametrize(
    ("method", "matrix", "vector"),
    [
        *itertools.product(("ppm", "qp", "lemke"), *[(-150, 0, 150)] * 2),
        *itertools.product(("ppm", "qp", "lemke"), (-12, 12), (-12, 12)),
    ],
)
def test_scales_of_a_dense_lcp(method: str, matrix: int, vector: int) -> None:
    F = np.array([[2.0, 1.0], [1.0, 2.0]]) * 10.0**matrix
    e = np.array([-5.0, -6.0]) * 10.0**vector
    try:
        result = solve(F, e, method)
    except InputError as error:
        assert "choose other units" in str(error)
        return
    z = np.array([4 / 3, 7 / 3]) * 10.0 ** (vector - matrix)
    np.testing.assert_allclose(result.z, z, rtol=1e-12)


# --- options and warm start ---------------------------------------------------------------------


def test_unknown_method_lists_the_known() -> None:
    with pytest.raises(InputError, match=r"method: is 'simplex'; expected one of ppm, qp, lemke"):
        solve(I3, DOWN, "simplex")


@pytest.mark.parametrize("certificate", [0.0, 1e-300])
def test_what_cannot_be_certified_is_an_error_that_carries_all(certificate: float) -> None:
    N = np.array([[0.1, 0.2, 0.3]])
    with pytest.raises(UncertifiedError, match="exceed the certificate") as caught:
        solve_factored(N, I3, DOWN, options=Options(certificate=certificate))
    error = caught.value
    assert error.status is Status.UNCERTIFIED
    assert isinstance(error, SolveError) and isinstance(error, HoldfastError)
    assert error.problem.N is N and error.problem.M is I3 and error.problem.v is DOWN
    assert isinstance(error.result, LCPResult) and not error.result.certified
    assert error.result.residuals.largest > certificate
    # for inspection: the answer itself is as good as ever
    np.testing.assert_allclose(N @ error.result.motion, 0.0, atol=1e-15)


@pytest.mark.parametrize("method", ["ppm", "qp", "lemke"])
def test_dense_lcp_that_cannot_be_certified(method: str) -> None:
    F, e = np.array([[0.11, 0.33], [0.33, 1.1]]), np.array([-0.7, 0.1])
    with pytest.raises(UncertifiedError) as caught:
        solve(F, e, method, Options(certificate=1e-300))
    assert caught.value.status is Status.UNCERTIFIED
    np.testing.assert_array_equal(caught.value.problem.F, F)
    assert isinstance(caught.value.result, LCPResult)


def test_pivot_limit() -> None:
    with pytest.raises(SolveError, match="pivot limit") as caught:
        solve_factored(I3, I3, DOWN, options=Options(max_pivots=1))
    assert caught.value.status is Status.PIVOT_LIMIT
    assert caught.value.problem.N is I3
    for method in ("ppm", "lemke", "qp"):
        with pytest.raises(SolveError, match="pivot limit") as caught:
            solve(I3, DOWN, method, Options(max_pivots=1))
        assert caught.value.status is Status.PIVOT_LIMIT
        np.testing.assert_array_equal(caught.value.problem.F, I3)


def test_pivot_limit_is_not_met_by_an_easy_problem() -> None:
    assert solve_factored(I3, I3, DOWN, options=Options(max_pivots=3)).certified


def test_pivot_limit_of_zero() -> None:
    with pytest.raises(SolveError, match="pivot limit"):
        solve_factored(I3, I3, DOWN, options=Options(max_pivots=0))


@pytest.mark.parametrize(
    "warm", ["abc", [0.5], [[0, 1]], np.array([True, False, True]), 1, [None], {0, 1}, [10**30]]
)
def test_nonsense_as_a_warm_start(warm: Any) -> None:
    refused("warm_start", "expected row numbers or a result", I3, I3, DOWN, None, warm)


def test_errors_can_be_caught_by_family() -> None:
    for kind in (InputError, SolveError):
        assert issubclass(kind, HoldfastError)
    for kind in (NotSymmetricError, NotPositiveDefiniteError):
        assert issubclass(kind, InputError)
    for kind in (InfeasibleError, UncertifiedError):
        assert issubclass(kind, SolveError)


@pytest.mark.parametrize("status", list(Status))
def test_every_status_has_a_sentence(status: Status) -> None:
    assert len(status.message.split()) >= 2


# --- regressions --------------------------------------------------------------------------------


@pytest.mark.parametrize("b", [1.0, 2.0])
def test_a_row_of_zeros_alone(b: float) -> None:
    result = solve_factored([[0.0]], [[0.0625]], [0.0], [b])
    assert (result.z[0], result.w[0], result.motion[0]) == (0.0, b, 0.0)


@pytest.mark.parametrize("scale", [1e155, 1e160, 1e200])
def test_rows_and_inertia_too_large_to_be_squared(scale: float) -> None:
    N, v = np.array([[1.0, 0.5], [-0.2, 1.0]]), np.array([-1.0, 0.3])
    try:
        result = solve_factored(scale * N, scale * np.eye(2), v)
    except InputError:
        return
    np.testing.assert_allclose(result.motion, [-0.32, 0.64], rtol=1e-9)


@pytest.mark.parametrize("bad", [0, 1, 2, 3])
def test_rows_of_zeros_besides_one_that_cannot_hold(bad: int) -> None:
    b = np.zeros(4)
    b[bad] = -1.0
    with pytest.raises(InfeasibleError, match=rf"^infeasible: row {bad} cannot hold") as caught:
        solve_factored(np.zeros((4, 6)), np.eye(6), np.ones(6), b)
    np.testing.assert_array_equal(caught.value.certificate, np.eye(4)[bad])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("feasibility", -1.0), ("feasibility", "small"), ("rank", 2.0), ("certificate", np.nan),
        ("zero_row", np.inf), ("max_pivots", -1), ("max_pivots", 1.5), ("regularization", 3),
        ("regularization", (0.0, 1e-6)), ("regularization", (-1.0, 1e-6)),
        ("regularization", (1e-6, 1e-16)), ("regularization", (1e-16, np.inf)),
    ],
)  # fmt: skip
def test_options_that_cannot_be_used(name: str, value: Any) -> None:
    with pytest.raises(InputError, match=rf"^Options.{name}: is .*; expected"):
        Options(**{name: value})


def test_options_of_another_type() -> None:
    for call in (
        lambda o: solve(I3, DOWN, options=o),
        lambda o: solve_factored(I3, I3, DOWN, options=o),
    ):
        with pytest.raises(InputError, match=r"^options: is dict; expected holdfast.lcp.Options$"):
            call({})


def test_whole_numbers_do_as_tolerances() -> None:
    assert Options(certificate=1).certificate == 1.0
    assert isinstance(Options(certificate=1).kernel_arguments[4], float)
