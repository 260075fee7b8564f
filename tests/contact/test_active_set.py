"""Searches for states that are cheap where the law does not force them to be dear."""

from __future__ import annotations

import numpy as np
import pytest

import holdfast as hf


def grip(gaps: list[float], force: float = 10.0, h: float = 0.002) -> hf.ContactProblem:
    """A box held by two fingers that slide along x, each with four points of its face."""
    m, half, corners = 8, 0.03, [(y, z) for y in (-0.02, 0.02) for z in (-0.02, 0.02)]
    rows = np.zeros((3, len(gaps), m))
    points = [(side, finger, *yz) for side, finger in ((1.0, 6), (-1.0, 7)) for yz in corners]
    for k, (side, finger, y, z) in enumerate(points):
        for along, direction in enumerate(([-side, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0])):
            rows[along, k, :3] = direction
            rows[along, k, 3:6] = np.cross([side * half, y, z], direction)
        rows[0, k, finger] = side
    f = np.zeros(m)
    f[2], f[6], f[7] = -0.5 * 9.81, -force, force
    M = np.diag([0.5] * 3 + [0.002] * 3 + [0.3] * 2)
    return hf.ContactProblem(
        M=M, v=np.zeros(m), N=rows[0], S=rows[1], T=rows[2], f=f, h=h, c_N=-np.array(gaps) / h,
        mu=np.ones(len(gaps)),
    )  # fmt: skip


def test_points_that_do_not_quite_touch_do_not_send_a_grip_on_the_path() -> None:
    """Rows for all points of a face ask for a motion that no rigid body has."""
    problem = grip([0.0, 2e-6, 0.0, 1e-6, 0.0, 3e-6, 1e-6, 2e-6])
    solution = hf.Coulomb().solve(problem)
    assert solution.pivots <= 10
    assert np.abs(solution.velocity).max() <= 1e-12  # held
    assert solution.is_exact()


@pytest.mark.parametrize("seed", [464, 1062, 1783, 1842, 2175])
def test_a_search_that_converges_is_not_cut_short(seed: int) -> None:
    """The direction of sliding converges quadratically, at the same states and compliance."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(3, 9)), int(rng.integers(3, 10))
    N, S, T = (rng.normal(size=(n, m)) for _ in range(3))
    v, mu = rng.normal(size=m), np.full(n, 0.3 + 0.7 * rng.random())
    h = 0.01 if seed % 2 else 1.0
    problem = hf.ContactProblem(M=np.eye(m), v=v, N=N, S=S, T=T, mu=mu, f=rng.normal(size=m), h=h)
    solution = hf.Coulomb().solve(problem)
    assert solution.pivots <= 15
    assert solution.law_residual() <= 1e-12
