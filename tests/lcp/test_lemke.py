"""Lemke's method: laws, textbook problems by name, an exact reference, friction, pauses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from holdfast.lcp import lemke as module
from holdfast.lcp.lemke import PIVOT_TOLS, ZERO_TOL, LemkeOutcome, lemke
from holdfast.lcp.options import Options
from holdfast.lcp.status import Status

DATA = json.loads((Path(__file__).parents[1] / "data" / "lcp_small.json").read_text())
PROBLEMS = {problem["name"]: problem for problem in DATA}

# Zero diagonal and no negative entry: once z_r has entered, neither z0 nor any w decreases along
# it, whatever r is, so the path leaves on a ray after its first pivot.
GAMES = ("drake_handbook_10_2_4", "siconos_CPS_3")
UNSOLVABLE = ("drake_unsolvable", "siconos_Pang_isolated_sol_perturbed")


def named(name: str) -> tuple[np.ndarray, np.ndarray]:
    problem = PROBLEMS[name]
    n = problem["n"]
    return np.array(problem["Q"], dtype=float).reshape(n, n), np.array(problem["r"], dtype=float)


def assert_solves(F: np.ndarray, q: np.ndarray, outcome: LemkeOutcome, tol: float = 1e-13) -> None:
    """The laws: z, w >= 0 and z'w = 0 exactly, w = F z + q in rows scaled by their terms."""
    z, w = outcome.z, outcome.w
    assert outcome.status is Status.SOLVED
    assert outcome.ray is None
    assert (z >= 0.0).all() and (w >= 0.0).all() and (z * w == 0.0).all()
    assert outcome.residual <= tol
    size = np.maximum(np.abs(F) @ z + np.abs(q), np.abs(q).max(initial=1e-300))
    assert (np.abs(F @ z + q - w) <= 1e3 * tol * size).all()


# --- textbook problems by name ------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in PROBLEMS if name not in GAMES + UNSOLVABLE])
def test_textbook_problem(name: str) -> None:
    F, q = named(name)
    outcome = lemke(F, q)
    assert_solves(F, q, outcome)
    if "w" in PROBLEMS[name]:
        np.testing.assert_allclose(outcome.w, PROBLEMS[name]["w"], rtol=1e-10, atol=1e-12)
    if "basic_solutions" in PROBLEMS[name] and not PROBLEMS[name]["psd"]:
        known = np.array(PROBLEMS[name]["basic_solutions"])
        assert np.abs(known - outcome.z).max(axis=1).min() <= 1e-10 * np.abs(known).max()


@pytest.mark.parametrize("name", GAMES + UNSOLVABLE)
def test_textbook_problem_that_ends_on_a_ray(name: str) -> None:
    F, q = named(name)
    outcome = lemke(F, q)
    assert outcome.status is Status.RAY
    assert outcome.ray is not None and outcome.ray.max() == 1.0 and outcome.ray.min() >= 0.0
    assert exact_lemke(F, q)[0] == "ray"


def test_murty_is_exponential_for_the_covering_vector_it_is_made_for() -> None:
    """2^6 pivots for d = 1 in the units of the problem, two for d = 1 in the scaled rows."""
    F, q = named("siconos_exp_murty2")
    path = module._Path(F, q, ZERO_TOL)
    path.row_scale[:] = path.column_scale[:] = 1.0
    assert path.walk(0.0, PIVOT_TOLS[0], 10**6).pivots == 2**6
    assert lemke(F, q).pivots == 2


def test_pivot_limit_is_a_status() -> None:
    F, q = named("siconos_tobenna")
    assert lemke(F, q, Options(max_pivots=20)).status is Status.PIVOT_LIMIT


# --- against a tableau of fractions -------------------------------------------------------------


def exact_lemke(F: np.ndarray, q: np.ndarray, p: np.ndarray | None = None) -> tuple[str, list]:
    """Textbook Lemke in rational arithmetic: columns q, p, w, z, z0; d = 1."""
    n = len(q)
    p = np.ones(n) if p is None else p
    exact = np.vectorize(Fraction, otypes=[object])
    table = np.hstack(
        [exact(q)[:, None], exact(p)[:, None], exact(np.eye(n)), exact(-F), exact(-np.ones((n, 1)))]
    )
    basis, entering = list(range(2, n + 2)), 2 * n + 2
    if min(table[:, 0]) >= 0:
        return "solved", [Fraction(0)] * n
    r = min(range(n), key=lambda i: list(table[i, : n + 2]))
    while True:
        table[r] = table[r] / table[r, entering]
        for i in set(range(n)) - {r}:
            table[i] = table[i] - table[i, entering] * table[r]
        leaving, basis[r] = basis[r], entering
        if leaving == 2 * n + 2:
            values = dict(zip(basis, table[:, 0], strict=True))
            return "solved", [values.get(n + 2 + i, Fraction(0)) for i in range(n)]
        entering = leaving + n if leaving < n + 2 else leaving - n
        rows = [i for i in range(n) if table[i, entering] > 0]
        if not rows:
            return "ray", []
        least = min(table[i, 0] / table[i, entering] for i in rows)
        ended = [i for i in rows if basis[i] == 2 * n + 2]
        if ended and table[ended[0], 0] / table[ended[0], entering] == least:
            r = ended[0]
        else:
            r = min(rows, key=lambda i: list(table[i, : n + 2] / table[i, entering]))


small_integers = st.integers(2, 5).flatmap(
    lambda n: st.tuples(
        hnp.arrays(np.int64, (n, n), elements=st.integers(-2, 3)),
        hnp.arrays(np.int64, n, elements=st.integers(-2, 1)),
    )
)


@given(small_integers)
def test_same_path_as_exact_arithmetic(problem: tuple[np.ndarray, np.ndarray]) -> None:
    """Small integers: ties, singular bases and rays wherever one looks."""
    F, q = problem[0].astype(float), problem[1].astype(float)
    path = module._Path(F, q, ZERO_TOL)
    outcome = path.walk(0.0, PIVOT_TOLS[0], 1000)
    scaled = path.row_scale[:, None] * F * path.column_scale
    ending, z = exact_lemke(scaled, q * path.row_scale, path.p)
    assert outcome.status is (Status.SOLVED if ending == "solved" else Status.RAY)
    if ending == "solved":
        np.testing.assert_allclose(
            outcome.z, np.array(z, dtype=float) * path.column_scale, rtol=1e-10, atol=1e-12
        )


# --- matrix classes that the method can process -------------------------------------------------


def complementary(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """z and w, some of them both zero."""
    kind = rng.integers(0, 3, n)
    return np.where(kind == 0, rng.uniform(0.1, 1.0, n), 0.0), np.where(
        kind == 1, rng.uniform(0.1, 1.0, n), 0.0
    )


seeds = st.integers(0, 2**32 - 1)


@given(seeds, st.integers(1, 30))
def test_positive_definite_not_symmetric(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    A, K = rng.normal(size=(2, n, n))
    F = A @ A.T / n + 0.1 * np.eye(n) + (K - K.T)
    z, w = complementary(rng, n)
    outcome = lemke(F, w - F @ z)
    assert_solves(F, w - F @ z, outcome)
    np.testing.assert_allclose(outcome.z, z, rtol=1e-9, atol=1e-10)


@given(seeds, st.integers(1, 25))
def test_strictly_copositive(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    F = rng.uniform(0.0, 1.0, (n, n)) + np.eye(n)
    q = rng.normal(size=n)
    assert_solves(F, q, lemke(F, q))


@given(seeds, st.integers(1, 30), st.integers(1, 6))
def test_semidefinite_with_duplicates(seed: int, n: int, rank: int) -> None:
    """Rank deficient, each row twice, and degenerate: w is unique, z is not."""
    rng = np.random.default_rng(seed)
    A = np.repeat(rng.normal(size=(n, rank)), 2, axis=0)
    F = A @ A.T
    z, w = complementary(rng, 2 * n)
    q = w - F @ z
    outcome = lemke(F, q)
    assert_solves(F, q, outcome, tol=1e-12)
    np.testing.assert_allclose(outcome.w, w, atol=1e-9 * max(1.0, np.abs(q).max()))


@given(seeds, st.integers(2, 20))
def test_ray_proves_infeasibility_of_semidefinite_problems(seed: int, n: int) -> None:
    """y >= 0 with F'y <= 0 and q'y < 0 contradicts F z + q >= 0, z >= 0: the ray is such a y."""
    rng = np.random.default_rng(seed)
    y = rng.uniform(0.5, 1.5, n)
    A = rng.normal(size=(n, n - 1))
    A -= np.outer(y, y @ A) / (y @ y)
    F = A @ A.T
    q = rng.normal(size=n)
    q -= (q @ y + rng.uniform(0.1, 1.0)) * y / (y @ y)
    outcome = lemke(F, q)
    assert outcome.status is Status.RAY and outcome.ray is not None
    assert (F.T @ outcome.ray <= 1e-9 * np.abs(F).max()).all()
    assert q @ outcome.ray < 0.0


@pytest.mark.parametrize("n", [1, 2, 7, 40])
def test_all_ratios_tie(n: int) -> None:
    for F in (np.eye(n), np.ones((n, n)), np.tril(np.ones((n, n)))):
        q = -np.ones(n)
        assert_solves(F, q, lemke(F, q))


def test_nothing_to_do() -> None:
    assert_solves(np.zeros((0, 0)), np.zeros(0), lemke(np.zeros((0, 0)), np.zeros(0)))
    F, q = -np.eye(3), np.array([0.0, 1.0, 2.0])
    outcome = lemke(F, q)
    assert outcome.pivots == 0
    np.testing.assert_array_equal(outcome.w, q)


# --- scale --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["siconos_mmc", "cycle_alg1_m5_n6", "siconos_enum_fails"])
@pytest.mark.parametrize("exponent", [-12, -6, 6, 12])
def test_scaling_q_scales_the_answer(name: str, exponent: int) -> None:
    F, q = named(name)
    scaled = lemke(F, q * 10.0**exponent)
    assert_solves(F, q * 10.0**exponent, scaled)
    np.testing.assert_allclose(scaled.z, lemke(F, q).z * 10.0**exponent, rtol=1e-10)


@given(seeds, st.integers(1, 15), st.sampled_from([2.0, 10.0]))
def test_units_of_rows_and_columns_do_not_matter(seed: int, n: int, base: float) -> None:
    rng = np.random.default_rng(seed)
    A, K = rng.normal(size=(2, n, n))
    F = A @ A.T / n + 0.1 * np.eye(n) + (K - K.T)
    z, w = complementary(rng, n)
    R, C = base ** rng.integers(-8, 9, (2, n))
    outcome = lemke(R[:, None] * F * C, R * (w - F @ z))
    assert outcome.status is Status.SOLVED
    np.testing.assert_allclose(outcome.z * C, z, rtol=1e-9, atol=1e-9)


# --- friction: the Stewart-Trinkle problem ------------------------------------------------------

GRAVITY = 9.81  # [m/s^2]


def contact_rows(
    centres: np.ndarray, pair: tuple[int | None, int | None], point: np.ndarray, axes: np.ndarray
) -> np.ndarray:
    """Velocity of the second body relative to the first at a point, along each axis."""
    rows = np.zeros((len(axes), len(centres), 6))
    for body, sign in zip(pair, (-1.0, 1.0), strict=True):
        if body is not None:
            rows[:, body, :3] = sign * axes
            rows[:, body, 3:] = sign * np.cross(point - centres[body], axes)
    return rows.reshape(len(axes), -1)


def stewart_trinkle(
    N: np.ndarray, D: np.ndarray, inverse_inertia: np.ndarray, v: np.ndarray, mu: float
) -> tuple[np.ndarray, np.ndarray]:
    """LCP in normal impulses, friction impulses along the directions D, and sliding speeds."""
    n = len(N)
    E = np.kron(np.eye(n), np.ones((len(D) // n, 1)))
    rows = np.vstack([N, D])
    W = rows @ inverse_inertia @ rows.T
    cone = np.hstack([mu * np.eye(n), -E.T, np.zeros((n, n))])
    F = np.vstack([np.hstack([W, np.vstack([np.zeros((n, n)), E])]), cone])
    return F, np.concatenate([rows @ v, np.zeros(n)])


def motion(
    N: np.ndarray, D: np.ndarray, inverse_inertia: np.ndarray, v: np.ndarray, z: np.ndarray
) -> np.ndarray:
    return v + inverse_inertia @ np.vstack([N, D]).T @ z[: len(N) + len(D)]


def cube_on_floor() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Unit cube of 1 kg on its four corners; z is up, four friction directions."""
    centres = np.array([[0.0, 0.0, 0.5]])
    axes = np.array([[0, 0, 1], [1, 0, 0], [0, 1, 0], [-1, 0, 0], [0, -1, 0]], dtype=float)
    corners = [np.array([x, y, 0.0]) for x in (-0.5, 0.5) for y in (-0.5, 0.5)]
    rows = np.array([contact_rows(centres, (None, 0), corner, axes) for corner in corners])
    return rows[:, 0], rows[:, 1:].reshape(16, 6), np.diag([1.0, 1, 1, 6, 6, 6])


def test_cube_slides_on_a_floor() -> None:
    """Coulomb friction takes mu g h of its speed, whatever the four corners share out."""
    N, D, W = cube_on_floor()
    h, mu = 0.01, 0.3
    v = np.array([1.0, 0.0, -GRAVITY * h, 0.0, 0.0, 0.0])
    F, q = stewart_trinkle(N, D, W, v, mu)
    outcome = lemke(F, q)
    assert_solves(F, q, outcome)
    after = motion(N, D, W, v, outcome.z)
    np.testing.assert_allclose(after, [1.0 - mu * GRAVITY * h, 0, 0, 0, 0, 0], atol=1e-14)


def test_cube_sticks_below_the_cone() -> None:
    N, D, W = cube_on_floor()
    h, mu = 0.01, 0.5
    v = h * np.array([0.4 * GRAVITY, 0.0, -GRAVITY, 0.0, 0.0, 0.0])
    F, q = stewart_trinkle(N, D, W, v, mu)
    outcome = lemke(F, q)
    assert_solves(F, q, outcome)
    np.testing.assert_allclose(motion(N, D, W, v, outcome.z), 0.0, atol=1e-14)


def grasp(copies: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The paper's grasp: gripper, two unit cubes, gripper in a row along x, pressed by 20 N.

    Grippers slide along x only; each corner of the three faces is listed `copies` times.
    """
    h, centres = 0.01, np.array([[x, 0.0, 0.0] for x in (-1.5, -0.5, 0.5, 1.5)])
    axes = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, -1, 0], [0, 0, -1]], dtype=float)
    mobility = np.array([1.0, 1, 1, 6, 6, 6])
    slider = np.array([1.0, 0, 0, 0, 0, 0])
    W = np.diag(np.concatenate([slider, mobility, mobility, slider]))
    force = np.zeros((4, 6))
    force[0, 0], force[3, 0] = 20.0, -20.0
    force[1:3, 2] = -GRAVITY
    rows = np.array(
        [
            contact_rows(centres, (face, face + 1), np.array([face - 1.0, y, z]), axes)
            for face in range(3)
            for y in (-0.5, 0.5)
            for z in (-0.5, 0.5)
            for _ in range(copies)
        ]
    )
    return rows[:, 0], rows[:, 1:].reshape(-1, 24), W, h * W @ force.ravel()


@pytest.mark.jit
@pytest.mark.parametrize("mu", [1.0, 100.0])
def test_grasp_of_the_paper_is_held(mu: float) -> None:
    """36 contacts, 216 variables, every contact three times: solved to rounding, nothing moves."""
    N, D, W, v = grasp(copies=3)
    F, q = stewart_trinkle(N, D, W, v, mu)
    assert F.shape == (216, 216)
    outcome = lemke(F, q)
    assert_solves(F, q, outcome)
    assert outcome.pivots < 216
    np.testing.assert_allclose(motion(N, D, W, v, outcome.z), 0.0, atol=1e-12)


@pytest.mark.jit
def test_large_semidefinite() -> None:
    rng = np.random.default_rng(7)
    A = rng.normal(size=(400, 150))
    F, z = A @ A.T, complementary(rng, 400)[0]
    assert_solves(F, -F @ z, lemke(F, -F @ z))


@pytest.mark.jit
def test_recorded_semidefinite_to_noise_only() -> None:
    """LCPs of a walking quadruped: eigenvalues down to -1e-10, which defeat an updated inverse."""
    with np.load(Path(__file__).parents[1] / "data" / "quadruped_noslip_lcps.npz") as data:
        names = [name for name in data.files if name.endswith("_F")]
        assert len(names) == 200
        for name in names:
            F, e = np.ascontiguousarray(data[name]), np.ascontiguousarray(data[name[:-2] + "_e"])
            assert lemke(F, e).status is Status.SOLVED, name


# --- options, pauses, determinism ---------------------------------------------------------------


def test_regularization_mends_a_failed_solve() -> None:
    """A pivot of 1e-6 is below the tolerance until eps has grown to its size; F is not changed."""
    F, q = np.array([[1.0, -1.0], [-1.0, 1.0 + 1e-6]]), np.array([-1.0, 0.0])
    plain = lemke(F, q, Options(certificate=1e-2), pivot_tol=1e-3)
    assert plain.status is Status.RAY and plain.regularization == 0.0
    options = Options(certificate=1e-2, regularization=(1e-16, 1e-1))
    mended = lemke(F, q, options, pivot_tol=1e-3)
    assert mended.status is Status.SOLVED
    assert 1e-3 < mended.regularization < 2e-3
    assert np.log2(mended.regularization / 1e-16) == pytest.approx(44)
    assert 1e-4 < mended.residual < 1e-2


def test_regularization_is_tried_after_a_failure_only() -> None:
    options = Options(regularization=(1e-16, 1e-6))
    outcome = lemke(np.eye(2), np.array([-1.0, 1.0]), options)
    assert outcome.status is Status.SOLVED and outcome.regularization == 0.0


def test_regularized_answer_is_judged_by_the_original_problem() -> None:
    """A game with a diagonal of 1e-7 is strictly copositive, but not the game that was asked."""
    F, q = named(GAMES[0])
    options = Options(certificate=1e-5, regularization=(1e-7, 1e-6))
    outcome = lemke(F, q, options)
    assert outcome.status in (Status.UNCERTIFIED, Status.RAY)
    assert outcome.residual > options.certificate


def test_regularization_does_not_depend_on_units() -> None:
    F = np.array([[0.0, 1.0], [-1.0, 0.0]])
    for scale in (1e-9, 1.0, 1e9):
        path = module._Path(scale * F, np.ones(2), ZERO_TOL)
        assert path.unit == scale


def test_loose_tolerances_of_the_original_lose_accuracy() -> None:
    F, q = named("dart_12D_IllFormed")
    loose = lemke(F, q, zero_tol=1e-5, pivot_tol=1e-4)
    assert loose.status is Status.UNCERTIFIED
    assert loose.residual > 1e-8 > 1e-13 > lemke(F, q).residual


@pytest.mark.parametrize("name", ["siconos_tobenna", "siconos_mmc", GAMES[0]])
def test_pauses_do_not_change_a_bit(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    F, q = named(name)
    in_one_go = lemke(F, q)
    monkeypatch.setattr(module, "WORK_PER_CALL", 0.0)
    paused = lemke(F, q)
    assert paused.pivots == in_one_go.pivots
    assert paused.z.tobytes() == in_one_go.z.tobytes()
    assert paused.w.tobytes() == in_one_go.w.tobytes()


def test_inputs_are_not_written_to() -> None:
    F, q = named("siconos_tobenna")
    kept = F.copy(), q.copy()
    lemke(F, q, Options(regularization=(1e-16, 1e-6)), pivot_tol=0.5)
    np.testing.assert_array_equal(F, kept[0])
    np.testing.assert_array_equal(q, kept[1])


@pytest.mark.jit
def test_runs_as_plain_python() -> None:
    code = (
        "import numpy as np; from holdfast.lcp.lemke import lemke;"
        "F = np.array([[2., 1., 0.], [1., 2., 0.], [0., 0., 0.]]);"
        "print(lemke(F, np.array([-5., -6., 0.])).z.tolist(),"
        " lemke(F, np.array([-5., -6., -1.])).status.name)"
    )
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    F = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 0.0]])
    assert run.stdout == f"{lemke(F, np.array([-5.0, -6.0, 0.0])).z.tolist()} RAY\n"
