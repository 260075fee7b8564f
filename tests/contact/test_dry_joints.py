"""Islands without Coulomb friction: joints with dry friction and limits, in few factorisations."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import holdfast as hf

H = 0.002  # [s]


def joints(seed: int, count: int, load: float) -> hf.ContactProblem:
    """Coupled joints with dry friction, at rest; `load` is the largest force over the friction."""
    rng = np.random.default_rng(seed)
    B = rng.normal(size=(count, count)) / np.sqrt(count)
    bound = 10.0 ** rng.uniform(-3.0, 0.0, size=count)
    force = bound * rng.uniform(0.5 * load, load, size=count) * rng.choice([-1.0, 1.0], size=count)
    return hf.ContactProblem(
        M=np.eye(count) + B @ B.T, v=np.zeros(count), f=force / H, h=H, N=np.zeros((0, count)),
        D=np.eye(count), D_bound=bound, mu=np.zeros(0),
    )  # fmt: skip


@given(st.integers(0, 2**32 - 1), st.integers(2, 40))
def test_friction_that_holds_near_its_limit_takes_one_factorisation(seed: int, count: int) -> None:
    problem = joints(seed, count, 0.99)
    solution = hf.Coulomb().solve(problem)
    assert np.abs(solution.motion).max() <= 1e-12 * np.abs(problem.free_velocity).max()
    np.testing.assert_allclose(solution.dry, -H * problem.f, rtol=1e-9)
    assert solution.pivots <= 2


@given(st.integers(0, 2**32 - 1), st.integers(2, 40), st.sampled_from([3.0, 100.0]))
def test_friction_holds_or_opposes_the_motion(seed: int, count: int, load: float) -> None:
    problem = joints(seed, count, load)
    solution = hf.Coulomb().solve(problem)
    speed, size = np.abs(solution.motion), np.abs(solution.motion).max()
    friction, bound = solution.dry, problem.D_bound
    assert np.all(np.abs(friction) <= bound * (1.0 + 1e-9))
    slides = speed > 1e-9 * size
    assert slides.any()
    np.testing.assert_allclose(
        friction[slides], -np.sign(solution.motion[slides]) * bound[slides], rtol=1e-9
    )
    assert solution.is_exact()
