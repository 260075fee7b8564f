"""Random contact problems are what their families say, and the same for a seed every time."""

from __future__ import annotations

import numpy as np
import pytest

from contact_generators import FAMILIES, family, generate

COUNT = len(FAMILIES)
HAS = {
    "chains": "J", "limits": "U", "dry": "D", "rolling": "R", "mixed": "JUDR", "planar": "S",
}  # fmt: skip


def test_a_seed_is_a_problem() -> None:
    for seed in range(COUNT):
        first, second = generate(seed), generate(seed)
        for name in ("M", "v", "N", "S", "T", "J", "R", "U", "D", "c_N", "mu"):
            np.testing.assert_array_equal(getattr(first, name), getattr(second, name))


def test_families_take_turns() -> None:
    assert [family(seed) for seed in range(COUNT)] == list(FAMILIES)
    assert family(COUNT) == family(0)


@pytest.mark.parametrize("name", FAMILIES)
def test_problems_have_the_rows_of_their_family(name: str) -> None:
    start = list(FAMILIES).index(name)
    problems = [generate(start + COUNT * k) for k in range(20)]
    for rows in "N" + HAS.get(name, ""):
        assert any(len(getattr(p, rows)) for p in problems)
    assert all(p.n and p.mu.shape in ((p.n,), (p.n, 2)) for p in problems)
    assert all(p.mu_R is not None for p in problems if len(p.R))
    assert all((p.c_N <= 0).all() and (p.c_U <= 0).all() for p in problems)
    if name == "planar":
        assert all(len(p.T) == 0 for p in problems)


def test_masses_differ_by_a_million() -> None:
    start = list(FAMILIES).index("mass ratios")
    problems = [generate(start + COUNT * k) for k in range(200)]
    masses = [p.M[:, 0, 0] for p in problems if p.M.ndim == 3]
    assert 1e5 < max(each.max() / each.min() for each in masses) < 1e6


@pytest.mark.parametrize("name", ["free", "stacks", "rolling"])
def test_tangents_are_square_to_normals(name: str) -> None:
    p = generate(list(FAMILIES).index(name))
    for k in range(p.n):
        body = p.bodies[k, 1]
        axes = [rows[k].reshape(-1, 6)[body, :3] for rows in (p.N, p.S, p.T)]
        np.testing.assert_allclose(np.array(axes) @ np.array(axes).T, np.eye(3), atol=1e-12)
