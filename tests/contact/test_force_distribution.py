"""Forces of redundant contacts: the same effect, shared as evenly as contact allows."""

from __future__ import annotations

import numpy as np
import pytest

import holdfast as hf
from holdfast import ContactProblem

X, Y, Z = np.eye(3)
FEET = np.array([[1.0, 1.0, -0.5], [1.0, -1.0, -0.5], [-1.0, 1.0, -0.5], [-1.0, -1.0, -0.5]])


def table(v: list[float], torsion: bool) -> ContactProblem:
    """A body on four feet; with torsion, each of them resists turning about its normal, too."""
    N, S, T = (np.array([[*axis, *np.cross(foot, axis)] for foot in FEET]) for axis in (Z, X, Y))
    turns = {"R": np.tile([0, 0, 0, *Z], (4, 1)), "R_contact": np.arange(4)} if torsion else {}
    return ContactProblem(M=np.diag([2.0, 2.0, 2.0, 1.0, 1.0, 1.5]), v=v, N=N, S=S, T=T, **turns)


@pytest.mark.parametrize("torsion", [False, True])
def test_a_table_stands_on_all_feet_alike(torsion: bool) -> None:
    solution = hf.NoSlip().solve(table([0.0, 0.0, -1.0, 0.0, 0.0, 0.0], torsion))
    spread = solution.spread()
    np.testing.assert_allclose(spread.normal, 0.5, atol=1e-9)
    np.testing.assert_allclose(spread.tangent, 0.0, atol=1e-9)
    assert spread.is_exact(1e-9)


@pytest.mark.parametrize("torsion", [False, True])
def test_a_push_is_shared_as_the_load_is(torsion: bool) -> None:
    """Pushed and turned: what the feet do together stays, and all of them take part in it."""
    solution = hf.NoSlip().solve(table([0.3, -0.2, -1.0, 0.0, 0.0, 0.4], torsion))
    spread = solution.spread()
    assert spread.is_exact(1e-9) and spread.momentum_residual() <= 1e-9
    np.testing.assert_allclose(spread.motion, solution.motion, atol=1e-12)
    np.testing.assert_allclose(spread.normal.sum(), 2.0, atol=1e-9)
    assert (spread.normal > 0.1).all() and (np.linalg.norm(spread.tangent, axis=1) > 0.0).all()
    np.testing.assert_allclose(spread.tangent.sum(axis=0), [-0.6, 0.4], atol=1e-9)
