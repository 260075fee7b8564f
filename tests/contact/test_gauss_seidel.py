"""One contact with Coulomb friction is solved exactly, whatever the dimension of its cone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast as hf
from contact_generators import generate
from holdfast._jit import entry
from holdfast.contact.gauss_seidel import solve_contact


@entry
def solved(W, dim, b, mu, factor, r):
    solve_contact(W, dim, b, mu, factor, r)


@given(
    st.integers(0, 2**32 - 1), st.integers(2, 6), st.sampled_from([0.05, 0.3, 1.0, 3.0]),
    st.sampled_from([1.0, 1e-3]),
)  # fmt: skip
def test_one_contact_obeys_coulombs_law(seed: int, dim: int, mu: float, thin: float) -> None:
    rng = np.random.default_rng(seed)
    G, b = rng.normal(size=(dim, dim + 1)), rng.normal(size=dim)
    G[1] = thin * G[1] + (1.0 - thin) * G[0]  # nearly dependent rows
    W, r = G @ G.T, np.zeros(dim)
    solved(W.ravel(), dim, b, mu, np.zeros((dim, dim)), r)
    u, pull = W @ r + b, np.linalg.norm(r[1:])
    size, force = np.abs(b).max(), np.abs(r).max()
    slack = 1e-9 * (size + np.trace(W) * force)
    assert u[0] >= -slack
    assert r[0] >= 0.0
    assert abs(r[0] * u[0]) <= slack * force
    assert pull <= mu * r[0] + 1e-12 * force
    if np.linalg.norm(u[1:]) > slack and r[0] > 0.0:  # slides: against the motion, with all it has
        np.testing.assert_allclose(pull, mu * r[0], rtol=1e-9)
        assert r[1:] @ u[1:] <= -(1.0 - 1e-6) * pull * np.linalg.norm(u[1:])


@pytest.mark.parametrize("seed", [82, 4285, 4432, 8125, 21640])
def test_problems_that_once_needed_sweeps_are_solved(seed: int) -> None:
    """Wedged contacts and mass ratios on which Newton's method alone does not settle."""
    assert hf.Coulomb().solve(generate(seed)).is_exact()
