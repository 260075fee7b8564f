"""Islands without Coulomb friction: very many contacts are no harder than a few."""

from __future__ import annotations

import numpy as np
import pytest

from holdfast import ContactProblem, NoSlip, Viscous
from holdfast.contact.arrays import LawKind
from holdfast.contact.build import DEFAULT_NUMBERS, solve_laws
from holdfast.contact.ladder import FACTORISATIONS
from holdfast.models._newton import make_laws


def tower(contacts: int, seed: int) -> ContactProblem:
    """Two cubes on top of each other that press on all of their points, with a little motion."""
    rng, half = np.random.default_rng(seed), contacts // 2
    N, S, T = np.zeros((3, contacts, 12))
    for level in range(2):
        which = slice(level * half, (level + 1) * half)
        points = rng.uniform(-0.1, 0.1, (half, 2))
        for body, sign in ((level, 1.0), (level - 1, -1.0)):
            arm = np.column_stack([points, np.full(half, 0.2 * (level - body) - 0.1)])
            for rows, axis in zip((S, T, N), np.eye(3), strict=True):
                if body >= 0:
                    rows[which, 6 * body : 6 * body + 3] = sign * axis
                    rows[which, 6 * body + 3 : 6 * body + 6] = sign * np.cross(arm, axis)
    M = np.array([np.diag([1.0, 1.0, 1.0, 0.007, 0.007, 0.007])] * 2)
    weight = np.tile([0.0, 0.0, -9.81, 0.0, 0.0, 0.0], 2)
    v = 0.05 * rng.normal(size=12)
    return ContactProblem(M=M, v=v, f=weight, h=0.01, N=N, S=S, T=T)


@pytest.mark.jit
@pytest.mark.parametrize("seed", [0, 1])
def test_a_hundred_thousand_contacts(seed: int) -> None:
    """The stiffness of all together makes rounding large, and it must not release any."""
    problem = tower(100_000, seed)
    laws = make_laws(problem, np.full(problem.n, int(LawKind.FRICTIONLESS)))
    solved = solve_laws(problem, laws, DEFAULT_NUMBERS)
    assert solved.status == 0
    assert solved.report[FACTORISATIONS] <= 10  # 115 and an error before


@pytest.mark.jit
@pytest.mark.parametrize("model", [NoSlip(), Viscous(1.0)])
def test_many_contacts_with_friction(model: NoSlip | Viscous) -> None:
    assert model.solve(tower(10_000, 5)).is_exact()
