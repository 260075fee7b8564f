"""A solve asks for the memory that it needs, and touches nothing beyond it."""

from __future__ import annotations

import numpy as np
import pytest

from holdfast import ContactProblem
from holdfast.contact.arrays import LawKind, SolveStatus
from holdfast.contact.build import DEFAULT_NUMBERS, given_of, solve_given, solve_laws
from holdfast.contact.ladder import NEEDED, REPORT
from holdfast.models._newton import make_laws

BEYOND = 32  # numbers behind the memory that are looked at
MARK = 1.25e-77


def chain(seed: int, bodies: int, size: int) -> ContactProblem:
    """Bodies in one row that touch their neighbours, and two that are alone.

    Contacts resist turning, some twice; there are a brake, a joint and a limit.
    """
    rng = np.random.default_rng(seed)
    m = bodies * size
    N, S, T = np.zeros((3, bodies - 3, m))
    for i in range(bodies - 3):
        for rows in (N, S, T):
            rows[i, i * size : (i + 2) * size] = rng.normal(size=2 * size)
    D = np.zeros((1, m))
    D[0, -1] = 1.0
    J, U = np.zeros((2, 1, m))
    J[0, :2], U[0, size : size + 2] = rng.normal(size=(2, 2))
    R_contact = np.arange(2 * (bodies - 3)) // 2
    R = np.zeros((len(R_contact), m))
    for row, i in zip(R, R_contact, strict=True):
        row[i * size : (i + 2) * size] = rng.normal(size=2 * size)
    A = rng.normal(size=(bodies, size, size))
    return ContactProblem(M=A @ A.transpose(0, 2, 1) + np.eye(size), v=rng.normal(size=m), N=N, S=S,
                          T=T, R=R[:-1], R_contact=R_contact[:-1], mu=0.5, mu_R=0.1, D=D,
                          D_bound=[0.1], J=J, U=U)  # fmt: skip


@pytest.mark.parametrize("law", [LawKind.COULOMB, LawKind.NO_SLIP, LawKind.FRICTIONLESS])
@pytest.mark.parametrize(("bodies", "size"), [(4, 6), (12, 3), (9, 2)])
def test_no_more_than_it_asks_for(law: LawKind, bodies: int, size: int) -> None:
    for seed in range(3):
        p = chain(seed, bodies, size)
        mu = p.mu if law == LawKind.COULOMB else None
        laws = make_laws(p, np.full(p.n, int(law)), mu)
        given = given_of(p, laws)
        count = len(given.b) - given.ends[2]
        velocity, z, report = np.empty(p.m), np.zeros(len(given.b)), np.zeros(REPORT)
        needed, status = 0, int(SolveStatus.MORE_MEMORY)
        while status == SolveStatus.MORE_MEMORY:
            memory = np.full(needed + BEYOND, MARK)
            work, state = memory[:needed], np.full(count, -1)
            velocity[:], z[:] = p.v, 0.0
            status = solve_given(given, work, work.view(np.int64), DEFAULT_NUMBERS, velocity, z,
                                 state, report)  # fmt: skip
            assert (memory[needed:] == MARK).all()
            assert status != SolveStatus.MORE_MEMORY or report[NEEDED] > needed
            needed = int(report[NEEDED])
        usual = solve_laws(p, laws, DEFAULT_NUMBERS)  # with memory to spare
        assert status == usual.status == SolveStatus.SOLVED
        np.testing.assert_array_equal(velocity, usual.velocity)
