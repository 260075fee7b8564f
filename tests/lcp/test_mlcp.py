"""Mixed problems: the reduction, the way back, and what is refused."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InputError
from holdfast.lcp.lemke import lemke
from holdfast.lcp.mlcp import MLCP
from holdfast.lcp.status import Status


def random_problem(seed: int, n: int, m: int) -> dict[str, Any]:
    """Equations and inequalities whose LCP is positive definite."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, n)) + 3.0 * np.eye(n)
    C, D = rng.normal(size=(n, m)), rng.normal(size=(m, n))
    R = rng.normal(size=(m, m))
    B = R @ R.T + np.eye(m) + D @ np.linalg.solve(A, C)
    return dict(A=A, C=C, D=D, B=B, g=rng.normal(size=n), h=rng.normal(size=m))


@given(st.integers(0, 2**32 - 1), st.integers(0, 12), st.integers(0, 8))
def test_solution_of_the_reduction_solves_the_mixed_problem(seed: int, n: int, m: int) -> None:
    problem = MLCP(**random_problem(seed, n, m))
    lcp = problem.reduce()
    outcome = lemke(lcp.F, lcp.e)
    assert outcome.status is Status.SOLVED
    y = outcome.z
    x = lcp.free(y)
    scale = 1.0 + np.abs(x).max(initial=0.0) + np.abs(y).max(initial=0.0)
    scale *= 1.0 + max(np.abs(problem.A).max(initial=0.0), np.abs(problem.B).max(initial=0.0))
    slack = problem.slack(x, y)
    assert np.abs(problem.equations(x, y)).max(initial=0.0) <= 1e-13 * scale
    assert slack.min(initial=0.0) >= -1e-11 * scale
    assert np.abs(y * slack).max(initial=0.0) <= 1e-11 * scale**2


def test_formulas() -> None:
    given_ = random_problem(1, 7, 4)
    lcp = MLCP(**given_).reduce()
    A, C, D, B, g, h = given_.values()
    np.testing.assert_allclose(lcp.F, B - D @ np.linalg.solve(A, C), rtol=1e-12)
    np.testing.assert_allclose(lcp.e, h - D @ np.linalg.solve(A, g), rtol=1e-12)
    y = np.arange(4.0)
    np.testing.assert_allclose(lcp.free(y), -np.linalg.solve(A, C @ y + g), rtol=1e-12)


def test_contact_of_the_paper() -> None:
    """A no-slip contact: A = [M, -G'; G, 0] gives F = N P N' with the projected inertia P."""
    rng = np.random.default_rng(3)
    R = rng.normal(size=(6, 6))
    M, N, G = R @ R.T + np.eye(6), rng.normal(size=(4, 6)), rng.normal(size=(2, 6))
    v = rng.normal(size=6)
    problem = MLCP(
        A=np.block([[M, -G.T], [G, np.zeros((2, 2))]]),
        C=np.vstack([-N.T, np.zeros((2, 4))]),
        D=np.hstack([N, np.zeros((4, 2))]),
        B=np.zeros((4, 4)),
        g=np.concatenate([-M @ v, np.zeros(2)]),
        h=np.zeros(4),
    )
    W = np.linalg.inv(M)
    P = W - W @ G.T @ np.linalg.solve(G @ W @ G.T, G @ W)
    lcp = problem.reduce()
    np.testing.assert_allclose(lcp.F, N @ P @ N.T, atol=1e-13)
    np.testing.assert_allclose(lcp.e, N @ P @ M @ v, atol=1e-13)
    after = lcp.free(lemke(lcp.F, lcp.e).z)[:6]
    np.testing.assert_allclose(G @ after, 0.0, atol=1e-13)
    assert (N @ after >= -1e-12).all()


def test_units_of_the_equations_do_not_make_them_singular() -> None:
    given_ = random_problem(5, 6, 3)
    units = 10.0 ** np.array([-12, 8, 0, 12, -6, 3])
    scaled = given_ | {key: (units * given_[key].T).T for key in "ACg"}
    np.testing.assert_allclose(
        MLCP(**scaled).reduce().F, MLCP(**given_).reduce().F, rtol=1e-11, atol=1e-12
    )


@pytest.mark.parametrize("defect", ["copy", "sum", "zero"])
def test_singular_equations_are_named(defect: str) -> None:
    given_ = random_problem(2, 5, 2)
    A = given_["A"]
    A[4] = {"copy": A[0], "sum": 0.1 * A[0] + 0.7 * A[1] - A[3], "zero": 0.0 * A[0]}[defect]
    with pytest.raises(InputError, match=r"A: is singular .* condition .*find_indices") as caught:
        MLCP(**given_).reduce()
    assert caught.value.argument == "A"


@pytest.mark.parametrize(
    ("name", "shape", "other"),
    [
        ("C", (4, 2), "A"),
        ("C", (5, 3), "B"),
        ("D", (2, 4), "A"),
        ("D", (3, 5), "B"),
        ("g", (4,), "A"),
        ("h", (3,), "B"),
    ],
)
def test_shapes_that_disagree_are_both_named(name: str, shape: tuple[int, ...], other: str) -> None:
    given_ = random_problem(2, 5, 2) | {name: np.ones(shape)}
    with pytest.raises(InputError, match=rf"{name}: .* but {other} is") as caught:
        MLCP(**given_)
    assert caught.value.argument == name


@pytest.mark.parametrize("name", ["A", "B"])
def test_square_matrices(name: str) -> None:
    with pytest.raises(InputError, match=f"{name}: is 5 x 4; expected a square matrix"):
        MLCP(**(random_problem(2, 5, 2) | {name: np.ones((5, 4))}))


@pytest.mark.parametrize("name", "ACDBgh")
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_entries_that_are_not_finite_are_located(name: str, value: float) -> None:
    given_ = random_problem(2, 5, 2)
    given_[name].flat[1] = value
    with pytest.raises(InputError, match=rf"{name}: contains {value} at \[.*1\]"):
        MLCP(**given_)


def test_lists_and_single_precision_are_taken() -> None:
    problem = MLCP([[2]], np.float32([[-1]]), [[1]], [[0]], [19.62], [0])  # type: ignore[arg-type]
    assert problem.A.dtype == problem.C.dtype == np.float64
    assert problem.reduce().F.tolist() == [[0.5]]


@pytest.mark.jit
def test_scipy_is_imported_when_it_is_needed() -> None:
    code = "import sys, holdfast.lcp.mlcp; print('scipy.linalg' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "False\n"
