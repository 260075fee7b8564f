"""Recorded problems with Coulomb friction, mixtures of laws, and problems without an answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast as hf
from contact_cases import Fields, contact_fields
from contact_generators import generate
from holdfast import (
    ContactProblem,
    Coulomb,
    InfeasibleError,
    InputError,
    Mixed,
    UncertifiedError,
)
from recorded_cases import CASES, DATA, recorded
from reference import Problem, is_farkas

CERTIFICATE = 1e-10
X, Y, Z = np.eye(3)


def problem_of(case: str, **more: Any) -> ContactProblem:
    data = recorded(case)
    rows = {name: data[name] for name in ("M", "v", "N", "S", "T", "J")}
    return ContactProblem(**rows, h=float(data["h"]), **more)


@pytest.mark.parametrize("mu", [0.05, 0.2, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("case", CASES)
def test_recorded_problem(case: str, mu: float) -> None:
    """Certified by the solve, and by the solution's own check of the law."""
    solution = Coulomb(mu=mu).solve(problem_of(case))
    assert solution.law_residual() <= CERTIFICATE
    assert solution.is_exact(CERTIFICATE)
    p = solution.problem
    before = 0.5 * p.v @ p.inertia @ p.v
    assert solution.kinetic_energy() <= before * (1.0 + 1e-9)


@pytest.mark.parametrize("case", CASES)
def test_recorded_problem_with_mixed_laws(case: str) -> None:
    problem = problem_of(case, mu=0.4)
    rng = np.random.default_rng(len(case))
    kinds = [hf.coulomb(), hf.coulomb(0.8), hf.viscous(0.1), hf.frictionless()]
    laws = [kinds[k] for k in rng.integers(0, len(kinds), problem.n)]
    solution = Mixed(laws).solve(problem)
    assert solution.is_exact(CERTIFICATE)


# --- mixtures -----------------------------------------------------------------------------------


@given(contact_fields(targets=True), st.integers(0, 2**32 - 1))
def test_mixtures_of_all_laws(fields: Fields, seed: int) -> None:
    """Each contact by its own law."""
    rng = np.random.default_rng(seed)
    n = len(fields["N"])
    kinds = rng.integers(0, 4, n)
    mu = rng.uniform(0.1, 1.0, n)
    laws = [
        (hf.coulomb(), hf.coulomb(0.3), hf.viscous(0.5), hf.frictionless())[kind] for kind in kinds
    ]
    solution = Mixed(laws).solve(ContactProblem(**fields, mu=mu))
    assert solution.is_exact(CERTIFICATE)
    limit = np.where(kinds == 0, mu, 0.3) * solution.normal
    friction = np.linalg.norm(solution.tangent, axis=1)
    p, coulomb = solution.problem, kinds <= 1
    length = np.maximum(p.lengths["S"], p.lengths["T"])
    excess = (friction - limit) * length / solution.scale
    assert excess[coulomb].max(initial=0.0) <= 1e-9
    assert not friction[kinds == 3].any()


@given(contact_fields(targets=True))
def test_mixed_with_one_law_is_coulomb(fields: Fields) -> None:
    problem = ContactProblem(**fields, mu=0.4)
    alone = Coulomb().solve(problem)
    for laws in (hf.coulomb(), hf.coulomb(0.4), [hf.coulomb()] * problem.n):
        mixed = Mixed(laws).solve(problem)
        np.testing.assert_array_equal(mixed.velocity, alone.velocity)


def test_one_foot_slips_and_the_other_does_not() -> None:
    """Two points on a floor: ice under one of them."""
    N, S = np.zeros((2, 2, 4))
    for i in range(2):
        N[i, 2 * i + 1], S[i, 2 * i] = 1.0, 1.0
    problem = ContactProblem(M=np.eye(4), v=[1.0, -1.0, 1.0, -1.0], N=N, S=S, mu=[0.1, 5.0])
    for laws in ([hf.coulomb(), hf.coulomb()], [hf.coulomb(0.1), hf.stick()]):
        solution = Mixed(laws).solve(problem)
        np.testing.assert_allclose(solution.velocity, [0.9, 0.0, 0.0, 0.0], atol=1e-11)
        np.testing.assert_array_equal(solution.sticking, [False, True])


def test_coulomb_needs_its_own_solver() -> None:
    problem = ContactProblem(M=np.eye(2), v=[1.0, -1.0], N=[[0.0, 1.0]], S=[[1.0, 0.0]])
    with pytest.raises(InputError, match=r"^solver: is 'ppm'; Coulomb friction needs 'newton'"):
        Mixed(hf.coulomb(0.5), solver="ppm").solve(problem)
    with pytest.raises(InputError, match=r"^mu: of contact 0 is missing"):
        Mixed(hf.coulomb()).solve(problem)
    with pytest.raises(InputError, match=r"^mu: is missing"):
        Coulomb().solve(problem)


def test_coulomb_beside_the_model_of_the_paper() -> None:
    N, S = np.eye(4)[[1, 3]], np.eye(4)[[0, 2]]
    problem = ContactProblem(M=np.eye(4), v=-np.ones(4), N=N, S=S)
    with pytest.raises(InputError, match=r"^grip: is 'all'"):
        Mixed([hf.stick(), hf.coulomb(0.5)], grip="all").solve(problem)


# --- no answer ----------------------------------------------------------------------------------


def test_closing_walls() -> None:
    problem = ContactProblem(
        M=np.eye(3), v=np.zeros(3), N=[X, -X], S=[Y, Y], T=[Z, Z], c_N=[0.1, 0.2], mu=0.5
    )
    with pytest.raises(InfeasibleError, match=r"no motion satisfies contacts \[0, 1\]") as caught:
        Coulomb().solve(problem)
    error = caught.value
    assert error.problem is problem
    assert is_farkas(Problem(problem.N, problem.M, problem.v, -problem.c_N), error.certificate)


@pytest.mark.parametrize("model", [Coulomb(), Mixed([hf.coulomb(), hf.stick()])])
def test_a_joint_that_moves_into_a_wall(model: Any) -> None:
    """The proof names the rows, rigid ones only, by their numbers in the problem."""
    problem = ContactProblem(
        M=np.eye(2), v=np.zeros(2), N=[[1.0, 0.0], [0.0, 1.0]], S=[[0.0, 1.0], [1.0, 0.0]], mu=0.5,
        J=[[0.0, 1.0], [1.0, 0.0]], c_J=[0.0, -1.0], compliance_J=[0.3, 0.0],
    )  # fmt: skip
    with pytest.raises(InfeasibleError) as caught:
        model.solve(problem)
    u, w = caught.value.certificate, caught.value.equality_weights["J"]
    assert w[0] == 0.0 and w[1] != 0.0
    np.testing.assert_allclose(problem.N.T @ u[:2] + problem.J.T @ w, 0.0, atol=1e-12)
    assert problem.c_J @ w > 0.0


def test_joints_that_contradict_each_other() -> None:
    problem = ContactProblem(
        M=np.eye(2), v=[0.0, -1.0], N=[[0.0, 1.0]], S=[[1.0, 0.0]], mu=0.5,
        J=[[1.0, 0.0], [2.0, 0.0]], c_J=[1.0, 3.0],
    )  # fmt: skip
    with pytest.raises((InputError, InfeasibleError)):
        Coulomb().solve(problem)


def test_redundant_joints_that_nearly_agree() -> None:
    """Drift of a closed loop, 1e-7: one of the rows is left out, as ever."""
    J = np.array([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    problem = ContactProblem(
        M=np.eye(3), v=[0.0, 1.0, -1.0], N=[Z], S=[X], T=[Y], J=J, c_J=[1.0, 1.0 + 1e-7], mu=0.5
    )
    solution = Coulomb().solve(problem)
    assert abs(solution.velocity[0] - 1.0) <= 2e-7


@pytest.mark.parametrize("seed", [7190, 7418])
def test_a_jam_on_copies_that_differ_in_the_seventh_digit(seed: int) -> None:
    """Solved with less friction; with more, nothing but the digits of the copies limits the jam."""
    problem = generate(seed)
    assert problem.mu is not None
    assert Coulomb(mu=0.5 * problem.mu).solve(problem).is_exact(CERTIFICATE)
    try:
        solution = Coulomb().solve(problem)
    except UncertifiedError as error:
        assert "are copies whose rows differ by" in str(error)
        assert error.result is not None and error.result.law_residual() <= 1e-8
    else:
        assert solution.is_exact(CERTIFICATE)


def test_every_recorded_problem_is_tried() -> None:
    folder = DATA / "contact_problems"
    assert {file.stem for file in folder.glob("*.npz")} == set(CASES)
