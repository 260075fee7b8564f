"""Coulomb baselines, Stewart-Trinkle and Anitescu-Potra, against closed forms and no-slip."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.experiments.grasp import grasp

BASELINES = [hf.StewartTrinkle, hf.AnitescuPotra]
G, H = 9.81, 0.01  # gravity [m/s^2], step [s]


def point_on_a_slope(angle: float, **fields: Any) -> hf.ContactProblem:
    """One kilogram at rest; x points down the slope, z out of it."""
    force = G * np.array([np.sin(angle), 0.0, -np.cos(angle)])
    rows = {"N": [[0.0, 0.0, 1.0]], "S": [[1.0, 0.0, 0.0]], "T": [[0.0, 1.0, 0.0]]}
    return hf.ContactProblem(M=np.eye(3), v=np.zeros(3), f=force, h=H, **rows, **fields)


@pytest.mark.parametrize("model", BASELINES)
@pytest.mark.parametrize("angle", [0.1, 0.4, 0.46, 0.47, 0.8, 1.2])
def test_sticks_or_slides_down_a_slope(model: Any, angle: float) -> None:
    """It holds where tan(angle) <= mu; else one step gives h g (sin - mu cos)."""
    mu = 0.5
    solution = model(mu=mu).solve(point_on_a_slope(angle))
    speed = max(0.0, H * G * (np.sin(angle) - mu * np.cos(angle)))
    # rounding of the free velocity
    np.testing.assert_allclose(solution.velocity, [speed, 0.0, 0.0], atol=1e-16 + 1e-12 * H * G)
    np.testing.assert_allclose(solution.normal_impulse, H * G * np.cos(angle), rtol=1e-12)
    assert solution.momentum_residual() <= 1e-12
    assert solution.complementarity() <= 1e-12


@pytest.mark.parametrize("model", BASELINES)
@pytest.mark.parametrize("directions", [4, 6, 8, 16])
@pytest.mark.parametrize("boxes", [2, 3])
def test_grasp_is_held_as_without_slip(model: Any, directions: int, boxes: int) -> None:
    problem = hf.ContactProblem(**grasp(boxes))
    solution = model(mu=100.0, directions=directions).solve(problem)
    assert np.abs(solution.velocity).max() <= 1e-10
    assert np.abs(hf.NoSlip(grip="all").solve(problem).velocity).max() <= 1e-12
    assert solution.momentum_residual() <= 1e-10
    assert (solution.normal_impulse >= 0.0).all()


@pytest.mark.parametrize("directions", [4, 8, 16])
def test_friction_stays_on_the_pyramid(directions: int) -> None:
    """Sliding at some angle: the pyramid limits the sum of its directions' forces to mu f_n."""
    for angle in np.linspace(0.0, np.pi, 9):
        problem = hf.ContactProblem(
            M=np.eye(3), v=[np.cos(angle), np.sin(angle), -1.0],
            N=[[0.0, 0.0, 1.0]], S=[[1.0, 0.0, 0.0]], T=[[0.0, 1.0, 0.0]],
        )  # fmt: skip
        solution = hf.StewartTrinkle(mu=0.3, directions=directions).solve(problem)
        tangential = np.linalg.norm(solution.tangent_impulse[0])
        assert solution.normal_impulse[0] == pytest.approx(1.0, rel=1e-12)
        # between two directions of the polygon the force is shorter by up to cos(pi / d)
        assert 0.3 * np.cos(np.pi / directions) - 1e-12 <= tangential <= 0.3 + 1e-12
        assert solution.tangent_impulse[0] @ problem.v[:2] < 0.0
        assert solution.kinetic_energy() <= 0.5 * problem.v @ problem.v


@pytest.mark.parametrize("model", BASELINES)
def test_large_friction_is_no_slip_where_both_stick(model: Any) -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        point = rng.normal(size=3)
        rows = [np.concatenate([axis, np.cross(point, axis)]) for axis in np.eye(3)]
        v = rng.normal(size=6)
        v[2] -= 10.0
        problem = hf.ContactProblem(M=np.eye(6), v=v, N=rows[2:], S=rows[:1], T=rows[1:2])
        exact = hf.NoSlip().solve(problem)
        if exact.normal_impulse[0] > 0.0 and exact.consistent:
            solution = model(mu=1e4).solve(problem)
            np.testing.assert_allclose(solution.velocity, exact.velocity, atol=1e-9)


def test_gaps_are_refused_where_the_model_knows_none() -> None:
    problem = point_on_a_slope(0.3, c_N=[-1.0])
    with pytest.raises(hf.InputError, match="c_N: is -1 at \\[0\\], but AnitescuPotra knows only"):
        hf.AnitescuPotra(mu=0.5).solve(problem)
    assert hf.StewartTrinkle(mu=0.5).solve(problem).velocity[2] == pytest.approx(
        -H * G * np.cos(0.3)
    )


@pytest.mark.parametrize("mu", [-0.1, np.nan, np.inf])
def test_coefficients_are_checked(mu: float) -> None:
    with pytest.raises(hf.InputError, match=r"^mu: "):
        hf.StewartTrinkle(mu=mu).solve(point_on_a_slope(0.3))


def test_friction_must_be_given() -> None:
    with pytest.raises(hf.InputError, match="mu: is missing: give it to the model or to Contact"):
        hf.StewartTrinkle().solve(point_on_a_slope(0.3))
    assert hf.StewartTrinkle().solve(point_on_a_slope(0.3, mu=1.0)).velocity[0] == pytest.approx(0)


@pytest.mark.parametrize("directions", [2, 5])
def test_directions_are_checked(directions: int) -> None:
    with pytest.raises(hf.InputError, match="directions"):
        hf.StewartTrinkle(mu=0.5, directions=directions).solve(point_on_a_slope(0.3))
