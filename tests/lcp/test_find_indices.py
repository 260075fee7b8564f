"""Find-Indices: laws, textbook scenes, recorded problems, bad input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import nnls

from holdfast.errors import InputError, NotPositiveDefiniteError, NotSymmetricError
from holdfast.lcp._candidates import row_at
from holdfast.lcp.checks import as_matrix, as_vector
from holdfast.lcp.find_indices import Indices, find_indices
from scenes import cube_on_floor, four_bar, grasp

DATA = Path(__file__).parents[1] / "data" / "contact_problems"

# --- the dense, obvious reference ---------------------------------------------------------


def reference(M: np.ndarray, rows: list[np.ndarray], tol: float = 1e-6) -> tuple[list, list]:
    """Indices of the rows that are kept, and the pivot of every row that is not zero."""
    L = np.linalg.cholesky(M)
    kept, basis, pivots = [], np.zeros((len(M), 0)), []
    for i, row in enumerate(rows):
        if not row.any() or basis.shape[1] == len(M):
            continue
        a = np.linalg.solve(L, row)
        a /= np.linalg.norm(a)
        pivots.append(np.linalg.norm(a - basis @ np.linalg.lstsq(basis, a)[0]))
        if pivots[-1] > tol:
            kept, basis = [*kept, i], np.column_stack([basis, a])
    return kept, pivots


def in_paper_order(J: np.ndarray, S: np.ndarray, T: np.ndarray) -> list[tuple[str, int]]:
    """J first, then S_i and T_i contact by contact."""
    contacts = [
        (name, i)
        for i in range(max(len(S), len(T)))
        for name, rows in (("S", S), ("T", T))
        if i < len(rows)
    ]
    return [("J", i) for i in range(len(J))] + contacts


def labels(result: Indices) -> set[tuple[str, int]]:
    return {(name, int(i)) for name, kept in zip("JST", result, strict=True) for i in kept}


def kept_rows(result: Indices, *matrices: np.ndarray) -> np.ndarray:
    return np.vstack([rows[kept] for rows, kept in zip(matrices, result, strict=True)])


def whitened(M: np.ndarray, rows: np.ndarray) -> np.ndarray:
    return np.linalg.solve(np.linalg.cholesky(M), rows.T).T


def null_projector(M: np.ndarray, rows: np.ndarray, rcond: float = 1e-9) -> np.ndarray:
    """Projector onto the motions that `rows` allow, in whitened coordinates."""
    W = whitened(M, rows)
    return np.eye(len(M)) - np.linalg.pinv(W, rcond=rcond) @ W


def no_slip(
    M: np.ndarray, G: np.ndarray, N: np.ndarray, v: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The no-slip motion on independent rows G, and its part of the kinetic energy before."""
    L = np.linalg.cholesky(M)
    Q = np.linalg.qr(whitened(M, G).T)[0]
    y = L.T @ v
    normals = whitened(M, N)
    lengths = np.linalg.norm(normals, axis=1)
    normals = normals - (normals @ Q) @ Q.T
    # What rounding leaves of a normal in the span of G points anywhere and must not push.
    normals = normals[np.linalg.norm(normals, axis=1) > 1e-10 * lengths]
    x = y - Q @ (Q.T @ y)
    if len(normals):
        x = x + normals.T @ nnls(normals.T, -x)[0]
    return np.linalg.solve(L.T, x), (x @ x) / (y @ y)


# --- laws ---------------------------------------------------------------------------------


@st.composite
def problems(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """M, J, S, T with small integer rows of known low rank, some of them zero or repeated."""
    m = draw(st.integers(1, 6))
    n = draw(st.integers(0, 5))
    j = draw(st.integers(0, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rank = draw(st.integers(0, m))
    span = rng.integers(-2, 3, (rank, m)).astype(float)
    J, S, T = (rng.integers(-1, 2, (count, rank)) @ span for count in (j, n, n))
    factor = rng.normal(size=(m, m))
    return factor @ factor.T + 0.5 * np.eye(m), J, S, T


@given(problems())
def test_agrees_with_the_reference(problem: tuple[np.ndarray, ...]) -> None:
    M, *JST = problem
    order = in_paper_order(*JST)
    rows = [dict(zip("JST", JST, strict=True))[name][i] for name, i in order]
    kept, pivots = reference(M, rows)
    result = find_indices(M, *JST)
    assert labels(result) == {order[i] for i in kept}
    assert result.rank == len(kept)
    large = [p for p in pivots if p > 1e-6]
    assert result.smallest_kept == pytest.approx(min(large, default=np.inf), rel=1e-6)
    small = [p for p in pivots if p <= 1e-6]
    assert result.largest_rejected == pytest.approx(max(small, default=0.0), abs=1e-12)


@given(problems())
def test_kept_rows_are_independent_and_span_the_rejected_ones(
    problem: tuple[np.ndarray, ...],
) -> None:
    M, *JST = problem
    W = whitened(M, kept_rows(find_indices(M, *JST), *JST))
    assert np.linalg.matrix_rank(W) == len(W)
    for row in whitened(M, np.vstack(JST)):
        remainder = row - W.T @ np.linalg.lstsq(W.T, row)[0]
        assert np.linalg.norm(remainder) <= 1e-6 * np.linalg.norm(row)


@given(problems())
def test_rank_is_the_matrix_rank(problem: tuple[np.ndarray, ...]) -> None:
    M, *JST = problem
    assert find_indices(M, *JST).rank == np.linalg.matrix_rank(np.vstack(JST))


@given(problems())
def test_first_independent_rows_win(problem: tuple[np.ndarray, ...]) -> None:
    M, *JST = problem
    order = in_paper_order(*JST)
    rows = np.array([dict(zip("JST", JST, strict=True))[name][i] for name, i in order])
    rows = rows.reshape(-1, len(M))
    ranks = [0, *(np.linalg.matrix_rank(rows[: k + 1]) for k in range(len(rows)))]
    grew = {order[k] for k in range(len(rows)) if ranks[k + 1] > ranks[k]}
    assert labels(find_indices(M, *JST)) == grew


@given(problems())
def test_kept_rows_allow_the_same_motions(problem: tuple[np.ndarray, ...]) -> None:
    M, *JST = problem
    G = kept_rows(find_indices(M, *JST), *JST)
    np.testing.assert_allclose(null_projector(M, G), null_projector(M, np.vstack(JST)), atol=1e-8)


@given(problems(), st.integers(0, 2**32 - 1))
def test_units_do_not_matter(problem: tuple[np.ndarray, ...], seed: int) -> None:
    M, *JST = problem
    rng = np.random.default_rng(seed)
    unit = 10.0 ** rng.uniform(-6, 6, len(M))  # of each coordinate
    scaled = [10.0 ** rng.uniform(-6, 6, (len(A), 1)) * A / unit for A in JST]  # and of each row
    mass = 10.0 ** rng.uniform(-6, 6)
    M_scaled = mass * M / np.outer(unit, unit)
    expected, found = find_indices(M, *JST), find_indices((M_scaled + M_scaled.T) / 2, *scaled)
    assert labels(expected) == labels(found)
    assert found.smallest_kept == pytest.approx(expected.smallest_kept, rel=1e-6)


@given(problems(), st.integers(0, 2**32 - 1))
def test_turning_the_frame_does_not_matter(problem: tuple[np.ndarray, ...], seed: int) -> None:
    M, *JST = problem
    R = np.linalg.qr(np.random.default_rng(seed).normal(size=M.shape))[0]
    turned = R @ M @ R.T
    found = find_indices((turned + turned.T) / 2, *(A @ R.T for A in JST))
    assert labels(found) == labels(find_indices(M, *JST))


@given(problems())
def test_duplicates_change_nothing(problem: tuple[np.ndarray, ...]) -> None:
    M, J, S, T = problem
    once = find_indices(M, J, S, T)
    twice = find_indices(M, np.vstack([J, -2 * J]), np.vstack([S, S]), np.vstack([T, 3 * T]))
    assert labels(once) == labels(twice)


@given(problems(), st.integers(0, 2**32 - 1))
def test_order_of_contacts_changes_forces_but_not_motions(
    problem: tuple[np.ndarray, ...], seed: int
) -> None:
    M, J, S, T = problem
    p = np.random.default_rng(seed).permutation(len(S))
    one, other = find_indices(M, J, S, T), find_indices(M, J, S[p], T[p])
    assert one.rank == other.rank
    np.testing.assert_allclose(
        null_projector(M, kept_rows(one, J, S, T)),
        null_projector(M, kept_rows(other, J, S[p], T[p])),
        atol=1e-8,
    )


@pytest.mark.parametrize("boxes", [1, 2, 5])
def test_blocks_and_dense_inertia_agree(boxes: int) -> None:
    p = grasp(boxes)
    blocks = np.array([p["M"][i : i + 6, i : i + 6] for i in range(0, len(p["M"]), 6)])
    blocks += 0.01 * np.ones((6, 6))
    dense = np.zeros_like(p["M"])
    for b, block in enumerate(blocks):
        dense[6 * b : 6 * b + 6, 6 * b : 6 * b + 6] = block
    one = find_indices(dense, p["J"], p["S"], p["T"])
    other = find_indices(blocks, p["J"], p["S"], p["T"])
    assert labels(one) == labels(other)
    assert one.smallest_kept == pytest.approx(other.smallest_kept)


# --- the result ---------------------------------------------------------------------------


def test_result_is_a_frozen_triple() -> None:
    result = find_indices(np.eye(3), S=np.eye(3))
    J_rows, S_rows, T_rows = result
    assert len(result) == 3
    assert result[1] is S_rows
    assert [rows.dtype for rows in result] == [np.int64] * 3
    assert S_rows.tolist() == [0, 1, 2]
    assert J_rows.size == T_rows.size == 0
    with pytest.raises(AttributeError):
        result.ambiguity = 1.0  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        S_rows[0] = 2


def test_nothing_to_choose_from() -> None:
    for result in (
        find_indices(np.eye(3)),
        find_indices(np.zeros((0, 0))),
        find_indices(np.zeros((0, 6, 6)), np.zeros((2, 0))),
        find_indices(np.eye(3), [], [], []),
        find_indices(np.eye(3), np.zeros((2, 3))),
    ):
        assert result.rank == 0
        assert (result.smallest_kept, result.largest_rejected) == (np.inf, 0.0)
        assert result.gap == np.inf
        assert not result.ambiguous


def test_stops_once_every_coordinate_is_held() -> None:
    almost = np.array([[1.0, 0.0], [1.0, 1e-3], [1.0, 1e-8]])
    result = find_indices(np.eye(2), almost)
    assert result.rank == 2
    assert result.largest_rejected == 0.0  # the third row was never looked at


def test_planar_contacts_have_no_second_tangent() -> None:
    _, S_rows, T_rows = find_indices(np.eye(3), None, [[1, 0, 0], [2, 0, 0], [0, 1, 0]])
    assert S_rows.tolist() == [0, 2]
    assert T_rows.size == 0


def test_gap_and_ambiguity() -> None:
    rows = np.array([[1.0, 0.0, 0.0], [1.0, 1e-4, 0.0], [1.0, 0.0, 1e-6]])
    clear = find_indices(np.eye(3), rows[:2], rank_tol=1e-5)
    assert clear.gap == np.inf
    close = find_indices(np.eye(3), rows, rank_tol=1e-5)
    assert close.gap == pytest.approx(100.0, rel=1e-6)
    assert close.ambiguous


# --- textbook scenes ----------------------------------------------------------------------


def test_grasp_of_the_paper() -> None:
    p = grasp()
    assert p["M"].shape == (24, 24)
    assert p["N"].shape == (36, 24)
    assert p["J"].shape == (10, 24)
    assert np.linalg.matrix_rank(p["N"]) == 9
    result = find_indices(p["M"], p["J"], p["S"], p["T"])
    assert result.rank == 18
    assert result.J_rows.tolist() == list(range(10))
    assert not result.ambiguous
    G = kept_rows(result, p["J"], p["S"], p["T"])
    Nh = whitened(p["M"], p["N"]) @ null_projector(p["M"], G)
    assert np.linalg.matrix_rank(Nh @ Nh.T, tol=1e-10) == 5


def test_grasp_obeys_newtons_third_law() -> None:
    p = grasp(3)
    for rows in (p["N"], p["S"], p["T"]):
        assert np.abs(rows.reshape(36 + 12, 5, 6)[:, :, :3].sum(axis=1)).max() == 0.0


def test_four_bar_has_three_redundant_rows() -> None:
    p = four_bar()
    result = find_indices(p["M"], p["J"])
    assert result.rank == 17
    assert p["J"].shape == (20, 18)
    assert not result.ambiguous
    np.testing.assert_allclose(
        null_projector(p["M"], p["J"][result.J_rows]), null_projector(p["M"], p["J"]), atol=1e-10
    )


@pytest.mark.parametrize(
    ("rank_tol", "rank", "energy"), [(1e-6, 3, 3 / 8), (1e-7, 3, 3 / 8), (1e-9, 5, 0.0)]
)
def test_cube_caught_by_its_lower_edge(rank_tol: float, rank: int, energy: float) -> None:
    """Heights that differ by 1e-8 decide whether the cube may tip: 3/8 of the energy or none.

    Tipping about an edge, I = 2/3 and the angular momentum is 1/2, so w = 3/4.
    """
    p = cube_on_floor((0.0, 1e-8, 2e-8, -1e-8))
    result = find_indices(p["M"], p["J"], p["S"], p["T"], rank_tol=rank_tol)
    assert result.rank == rank
    G = kept_rows(result, p["J"], p["S"], p["T"])
    assert no_slip(p["M"], G, p["N"], p["v"])[1] == pytest.approx(energy, abs=1e-6)


def test_cube_is_flagged_when_the_threshold_cuts_through_its_heights() -> None:
    p = cube_on_floor((0.0, 1e-8, 2e-8, -1e-8))
    cut = find_indices(p["M"], p["J"], p["S"], p["T"], rank_tol=1e-8)
    assert cut.gap == pytest.approx(2.0, rel=1e-6)
    assert cut.ambiguous
    # Above the heights the gap is wide; what was left out shows in the pivot alone.
    above = find_indices(p["M"], p["J"], p["S"], p["T"])
    assert above.ambiguous
    assert above.largest_rejected == pytest.approx(1.73e-8, rel=0.01)


# --- recorded problems --------------------------------------------------------------------


def load(name: str) -> dict[str, Any]:
    with np.load(DATA / f"{name}.npz") as data:
        return {key: data[key] for key in data.files}


def choose(p: dict[str, Any], **options: float) -> Indices:
    return find_indices(p["M"], p["J"], p["S"], p["T"], **options)


# name: rank, gap (one digit is enough), relative tolerance of the certified no-slip motion
RECORDED = {
    "contactbench_2cubes_t0": (6, 3e8, 1e-6),
    "fclibG_GFC3D_Example00_badly_scaled": (2, np.inf, 1e-9),
    "fclib_BoxesStack1-i100000-32": (41, 2e6, 2.8e-7),
    "fclib_Confeti-ex13-4contact": (8, np.inf, 1e-9),
    "fclib_FrictionContactProblem00374": (28, np.inf, 8.7e-8),
    "fclib_NESpheres_30_1": (88, np.inf, 3.5e-7),
    "fclib_Rover1039": (8, np.inf, 3.1e-8),
    "fclib_Rover3865": (10, np.inf, 1e-6),
    "mj_anymal_c_200": (8, np.inf, 8.1e-8),
    "mj_cassie_200": (16, np.inf, 1.7e-8),
    "mj_cube3x3x3_5": (66, 13, 1e-9),
    "mj_go1_20": (8, np.inf, 7.8e-8),
    "mj_humanoid_150": (13, 1e11, 7.4e-8),
    "mj_planks_100": (16, 3e9, 2e-9),  # forces cancel: their rounding differs between processors
    "mj_robotiq2f85_50": (5, np.inf, 1e-9),
    "mj_stacked_boxes_30": (33, 5e6, 7.8e-9),
    "mj_talos_300": (16, 2e10, 5.8e-8),
}


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_problem_reaches_its_certified_motion(name: str) -> None:
    rank, gap, rtol = RECORDED[name]
    p = load(name)
    result = choose(p)
    assert result.rank == rank
    # Where only rounding is rejected the gap is known to a decade.
    assert result.gap == pytest.approx(gap, rel=0.5 if gap < 1e9 else 9.0)
    v_plus, _ = no_slip(p["M"], kept_rows(result, p["J"], p["S"], p["T"]), p["N"], p["v"])
    if "vplus_noslip" in p:
        L = np.linalg.cholesky(p["M"])
        error = np.linalg.norm(L.T @ (v_plus - p["vplus_noslip"])) / np.linalg.norm(L.T @ p["v"])
    else:
        expected = np.concatenate([p["un_noslip"], p["us_noslip"], p["ut_noslip"]])
        rows = np.vstack([p["N"], p["S"], p["T"]])
        error = np.abs(rows @ v_plus - expected).max() / np.abs(rows @ p["v"]).max()
    assert error <= rtol


def test_barkour_is_ambiguous() -> None:
    result = choose(load("mj_barkour_vb_20"))
    assert result.rank == 15
    assert result.gap == pytest.approx(21, rel=0.5)
    assert result.ambiguous


def test_sliding_cube_depends_on_the_threshold() -> None:
    p = load("contactbench_sliding_cube")
    for rank_tol, rank, energy in ((1e-6, 3, 0.388), (1e-7, 3, 0.388), (1e-9, 5, 0.0)):
        result = choose(p, rank_tol=rank_tol)
        assert result.rank == rank
        G = kept_rows(result, p["J"], p["S"], p["T"])
        assert no_slip(p["M"], G, p["N"], p["v"])[1] == pytest.approx(energy, abs=1e-3)
    assert choose(p).largest_rejected == pytest.approx(2.85e-8, rel=0.01)
    assert choose(p, rank_tol=1e-8).ambiguous


def test_sliding_cube_is_ambiguous() -> None:
    """Its motion changes between thresholds of 1e-7 and 1e-8, though the gap is wide: near miss."""
    result = choose(load("contactbench_sliding_cube"))
    assert result.gap > 1e6
    assert result.ambiguous


def test_row_left_by_cancellation_is_no_constraint() -> None:
    """Out-of-plane rows of the planar loops of a gripper are 1e-17, not 0; v+ depends on it."""
    p = load("mj_robotiq2f85_50")
    assert 0 < np.abs(p["J"][[1, 4]]).max() < 1e-16
    assert choose(p).J_rows.tolist() == [0, 2, 3, 5, 6]


# --- input --------------------------------------------------------------------------------


def variants(A: np.ndarray) -> list[Any]:
    read_only = A.copy()
    read_only.flags.writeable = False
    strided = np.zeros((2 * A.shape[0], 3 * A.shape[1]))
    strided[::2, ::3] = A
    big_endian = A.astype(">f8")
    return [read_only, strided[::2, ::3], np.asfortranarray(A), A.astype(np.float32), A.tolist(),
            A.astype(int), big_endian]  # fmt: skip


def test_every_kind_of_real_array_is_taken_and_none_is_written() -> None:
    M = np.array([[4.0, 1.0, 0.0], [1.0, 3.0, 0.0], [0.0, 0.0, 2.0]])
    S = np.array([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 0.0, 1.0]])
    for M_given, S_given in zip(variants(M), variants(S), strict=True):
        assert labels(find_indices(M_given, S=S_given)) == {("S", 0), ("S", 2)}
        np.testing.assert_array_equal(M_given, M)
        np.testing.assert_array_equal(S_given, S)
    assert labels(find_indices(M, S=S.astype(bool))) == {("S", 0), ("S", 2)}


def test_ready_arrays_are_not_copied() -> None:
    A = np.ones((3, 4))
    view = as_matrix("A", A, rows=3, cols=4)
    assert np.shares_memory(view, A)
    assert view is A
    assert A.flags.writeable
    x = np.ones(4)
    assert np.shares_memory(as_vector("x", x, 4), x)


def bad(error: type[InputError], match: str, *args: Any, **kwargs: Any) -> InputError:
    with pytest.raises(error, match=match) as caught:
        find_indices(*args, **kwargs)
    return caught.value


def test_nan_is_named_with_its_place() -> None:
    S = np.zeros((4, 3))
    S[2, 1] = np.nan
    assert bad(InputError, r"S: contains nan at \[2, 1\]", np.eye(3), S=S).argument == "S"


def test_infinity_in_a_block_is_named_with_its_place() -> None:
    blocks = np.array([np.eye(2)] * 3)
    blocks[1, 0, 1] = -np.inf
    bad(InputError, r"M: contains -inf at \[1, 0, 1\]", blocks)


def test_huge_numbers_are_finite() -> None:
    assert find_indices(np.eye(2), [[1e200, -1e200]]).rank == 1


def test_wrong_columns_name_both_shapes() -> None:
    bad(InputError, r"J: is 2 x 4 but M is 3 x 3; .* 3 columns", np.eye(3), np.ones((2, 4)))


def test_wrong_columns_name_the_blocks() -> None:
    M = np.array([np.eye(6)] * 2)
    bad(InputError, r"T: is 1 x 4 but M has 2 blocks of 6 x 6", M, T=np.ones((1, 4)))


def test_unequal_tangents_name_both_shapes() -> None:
    bad(InputError, r"T: is 1 x 3 but S is 2 x 3", np.eye(3), S=np.ones((2, 3)), T=np.ones((1, 3)))


def test_inertia_that_is_not_square() -> None:
    bad(InputError, r"M: is 3 x 4; expected square", np.ones((3, 4)))


def test_vector_instead_of_a_row() -> None:
    bad(InputError, r"J: has 3 entries.*J\[None, :\]", np.eye(3), np.ones(3))


def test_complex_dtype_is_named() -> None:
    bad(InputError, r"S: has dtype complex128", np.eye(3), S=np.ones((2, 3)) * 1j)


def test_object_dtype_is_named() -> None:
    bad(InputError, r"J: has dtype object \(from ndarray\)", np.eye(1), np.array([[None]]))


def test_ragged_list() -> None:
    bad(InputError, r"J: is not a rectangular array", np.eye(2), [[1, 2], [3]])


def test_asymmetric_inertia() -> None:
    M = np.eye(3)
    M[0, 2] = 1e-7
    error = bad(NotSymmetricError, r"M: not symmetric: entries \[0, 2\] and \[2, 0\]", M)
    assert isinstance(error, NotSymmetricError)
    assert error.asymmetry == pytest.approx(1e-7)
    M[0, 2] = 1e-9  # rounding
    assert find_indices(M).rank == 0


def test_indefinite_inertia() -> None:
    M = np.array([[1.0, 2.0], [2.0, 1.0]])
    error = bad(NotPositiveDefiniteError, r"M: not positive definite: smallest eigenvalue -1", M)
    assert isinstance(error, NotPositiveDefiniteError)
    assert error.smallest_eigenvalue == pytest.approx(-1.0)
    bad(NotPositiveDefiniteError, r"smallest eigenvalue -1", np.array([np.eye(2), M]))


@pytest.mark.parametrize("rank_tol", [0.0, 1.0, -1e-6, np.nan])
def test_threshold_out_of_range(rank_tol: float) -> None:
    bad(InputError, r"rank_tol: is .* above 0 and below 1", np.eye(2), rank_tol=rank_tol)


def test_wrong_vector_names_both() -> None:
    with pytest.raises(InputError, match=r"v: has 12 entries but M is 14 x 14; they must agree"):
        as_vector("v", np.ones(12), 14, of=("M", np.eye(14)))


def test_a_pivot_just_above_the_threshold_is_ambiguous() -> None:
    rows = [[1.0, 0.0, 0.0], [1.0, 2e-6, 0.0]]
    assert find_indices(np.eye(3), rows).ambiguous
    assert not find_indices(np.eye(3), [[1.0, 0.0, 0.0], [1.0, 2e-3, 0.0]]).ambiguous


@pytest.mark.parametrize("pairs", [0, 1, 3])
@pytest.mark.parametrize("extra", [0, 2])
@pytest.mark.parametrize("joints", [0, 1, 4])
def test_order_of_the_paper(pairs: int, extra: int, joints: int) -> None:
    """Joints first, then S and T contact by contact, then what follows; each row once."""
    ahead = 2 * pairs + extra
    behind = ahead + joints
    plain = getattr(row_at, "py_func", row_at)  # compiled, it is a part of other kernels only
    order = [int(plain(q, pairs, ahead, behind)) for q in range(behind + 5)]
    in_turns = [row for i in range(pairs) for row in (i, pairs + i)]
    rest = list(range(2 * pairs, ahead))
    assert order == [*range(ahead, behind), *in_turns, *rest, *range(behind, behind + 5)]
