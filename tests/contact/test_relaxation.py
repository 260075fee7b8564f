"""The relaxed law of a contact is a projection; contacts that jam are found by it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast as hf
from contact_cases import one_contact
from contact_generators import generate
from holdfast._jit import entry
from holdfast.contact.build import DEFAULT_NUMBERS
from holdfast.contact.cone import relaxed_answer
from reference import on_cone, solution_residual


@entry
def answered(sy, u, rk, rho, r, C):
    relaxed_answer(sy, 0, u, rk, rho, r, C, 0)


@given(
    st.integers(0, 2**32 - 1), st.integers(2, 6), st.sampled_from([0.05, 0.3, 1.0, 3.0]),
    st.sampled_from([1.0, 1e-3]),
)  # fmt: skip
def test_the_relaxed_law_is_a_projection_on_the_cone(
    seed: int, dim: int, mu: float, rho: float
) -> None:
    """Its derivative is symmetric, as of the gradient of a function, and that of differences."""
    rng, sy = np.random.default_rng(seed), one_contact(dim, mu)
    u, rk = rng.normal(size=(2, dim))
    r, C, step = np.zeros(dim), np.zeros((dim, dim)), 1e-6 * rho
    answered(sy, u, rk, rho, r, C.ravel())
    expected = on_cone(rk - u / rho, mu)
    np.testing.assert_allclose(r, expected, rtol=1e-12, atol=1e-12 / rho)
    np.testing.assert_allclose(C, C.T, rtol=1e-12, atol=1e-12 / rho)
    for k, e in enumerate(np.eye(dim)):
        sides = np.zeros((2, dim))
        for side, sign in zip(sides, (1.0, -1.0), strict=True):
            answered(sy, u + sign * step * e, rk, rho, side, np.zeros(dim * dim))
        change = (sides[1] - sides[0]) / (2.0 * step)
        np.testing.assert_allclose(change, C[:, k], atol=1e-4 / rho)


@pytest.mark.parametrize("seed", [1382, 7190, 709_694, 132_062, 101_378, 273_290])
def test_contacts_that_jam_share_the_load(seed: int) -> None:
    """Copies of contacts, on which impulses of equal springs grow to a million times the motion."""
    p = generate(seed)
    solution = hf.Coulomb().solve(p)
    assert solution_residual(solution) <= DEFAULT_NUMBERS.certificate
    assert (solution.normal * solution.lengths("N")).max() <= 1000.0 * solution.scale
