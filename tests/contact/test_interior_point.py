"""The interior-point method: Nesterov and Todd's scaling, steps within the cone, large islands."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from holdfast import ContactProblem
from holdfast._jit import entry
from holdfast.contact.arrays import LawKind
from holdfast.contact.build import DEFAULT_NUMBERS, Solved, solve_laws
from holdfast.contact.interior_point import apply_scaling, reach
from holdfast.contact.ladder import BY_RUNG, FACTORISATIONS, LARGE, Rung
from holdfast.models._newton import make_laws


@entry
def scaled(w, dim, eta, sign, x, out):
    apply_scaling(w, 0, dim, eta, sign, x, 0, out, 0)


@entry
def reached(x, dx, dim):
    return reach(x, dx, 0, dim)


def inside(rng: np.random.Generator, dim: int, margin: float) -> np.ndarray:
    x = rng.normal(size=dim)
    x[0] = np.linalg.norm(x[1:]) * (1.0 + margin)
    return x


@given(st.integers(0, 2**32 - 1), st.integers(2, 6), st.sampled_from([1e-6, 1e-2, 1.0]))
def test_scaling_maps_impulses_to_speeds(seed: int, dim: int, margin: float) -> None:
    """``W z = W^-1 s`` is what defines it, and the two scalings undo each other."""
    rng = np.random.default_rng(seed)
    s, z = inside(rng, dim, margin), inside(rng, dim, 1.0)
    J = np.diag([1.0] + [-1.0] * (dim - 1))
    a, c = np.sqrt(s @ J @ s), np.sqrt(z @ J @ z)
    gamma = np.sqrt(0.5 * (1.0 + s @ z / (a * c)))
    w, eta = (s / a + J @ z / c) / (2.0 * gamma), np.sqrt(a / c)
    Wz, Ws, back = np.zeros((3, dim))
    scaled(w, dim, eta, 1.0, z, Wz)
    scaled(w, dim, 1.0 / eta, -1.0, s, Ws)
    np.testing.assert_allclose(Wz, Ws, rtol=1e-6, atol=1e-6 * np.abs(Wz).max())
    scaled(w, dim, 1.0 / eta, -1.0, Wz, back)
    np.testing.assert_allclose(back, z, rtol=1e-6, atol=1e-6)


@given(st.integers(0, 2**32 - 1), st.integers(2, 6))
def test_the_longest_step_ends_on_the_boundary(seed: int, dim: int) -> None:
    rng = np.random.default_rng(seed)
    x, dx = inside(rng, dim, 0.5), 3.0 * rng.normal(size=dim)
    t = reached(x, dx, dim)
    for part in (0.3, 0.9, 0.999):
        y = x + part * min(t, 100.0) * dx
        assert y[0] > np.linalg.norm(y[1:])
    if t < 1e300:
        y = x + 1.001 * t * dx
        assert y[0] < np.linalg.norm(y[1:])


def tumbling(count: int, seed: int) -> ContactProblem:
    """Unit bodies in a chain of random contacts, four to a pair, that collide at once."""
    rng = np.random.default_rng(seed)
    rows = np.zeros((3, 4 * count, 6 * count))
    for i in range(count):
        normal = rng.normal(size=3)
        first, second = np.linalg.svd(normal[None])[2][1:]
        for k in range(4):
            point = rng.normal(size=3)
            for row, axis in zip(
                rows, (normal / np.linalg.norm(normal), first, second), strict=True
            ):
                for body, sign in ((i, 1.0), (i - 1, -1.0)):
                    if body >= 0:
                        row[4 * i + k, 6 * body : 6 * body + 3] = sign * axis
                        row[4 * i + k, 6 * body + 3 : 6 * body + 6] = sign * np.cross(point, axis)
    return ContactProblem(
        M=np.eye(6 * count), v=rng.normal(size=6 * count), N=rows[0], S=rows[1], T=rows[2],
        mu=np.full(4 * count, 0.7),
    )  # fmt: skip


def solve(problem: ContactProblem, rough: float = 0.0) -> Solved:
    law = np.full(problem.n, int(LawKind.COULOMB))
    laws = make_laws(problem, law, problem.mu, None)
    return solve_laws(problem, laws, DEFAULT_NUMBERS._replace(rough=rough))


def test_large_islands_are_solved_by_it() -> None:
    """Most of them; what it does not solve goes on to splitting. A rough answer takes less."""
    by_path = 0
    for seed in range(20):
        problem = tumbling(LARGE // 4 + 3, seed)
        solved, rough = solve(problem), solve(problem, 1e-3)
        assert solved.residual <= DEFAULT_NUMBERS.certificate
        assert rough.report[FACTORISATIONS] <= solved.report[FACTORISATIONS]
        by_path += int(solved.report[BY_RUNG + Rung.INTERIOR])
    assert by_path >= 10
