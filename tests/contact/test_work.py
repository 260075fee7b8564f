"""How islands are solved: which way is taken, how much work and memory it is."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import nnls

from holdfast import ContactProblem
from holdfast.contact import solve as contact_solve
from holdfast.contact.arrays import Answer, Arrays, ContactState, LawKind, SolveStatus
from holdfast.contact.build import DEFAULT_NUMBERS, Solved, solve_laws
from holdfast.contact.dry_friction import dry_forces
from holdfast.contact.ladder import FACTORISATIONS, NEEDED, REPORT, RESIDUAL, RUNG, Rung
from holdfast.models._newton import make_laws

X, Y, Z = np.eye(3)


def points(v: np.ndarray) -> ContactProblem:
    """Points of 1 kg on the floor, which know nothing of each other."""
    n = len(v)
    N, S, T = np.zeros((3, n, 3 * n))
    for i in range(n):
        at = slice(3 * i, 3 * i + 3)
        N[i, at], S[i, at], T[i, at] = Z, X, Y
    return ContactProblem(M=np.tile(np.eye(3), (n, 1, 1)), v=v.ravel(), N=N, S=S, T=T, mu=0.5)


def solve(p: ContactProblem, law: LawKind, state: np.ndarray | None = None) -> Solved:
    mu = p.mu if law == LawKind.COULOMB else None
    return solve_laws(p, make_laws(p, np.full(p.n, int(law)), mu), DEFAULT_NUMBERS, state=state)


@pytest.mark.parametrize("guess", [ContactState.OPEN, ContactState.STICK, ContactState.SLIDE])
def test_wrong_states_are_put_right(guess: ContactState) -> None:
    """States of an earlier step lead to those of this one: no other way is tried."""
    p = points(np.array([[3.0, 4.0, -2.0], [0.5, 0.0, -2.0], [1.0, 0.0, 1.0]]))
    found = solve(p, LawKind.COULOMB, np.full(3, int(guess)))
    assert found.status == SolveStatus.SOLVED
    np.testing.assert_array_equal(
        found.state, [ContactState.SLIDE, ContactState.STICK, ContactState.OPEN]
    )
    np.testing.assert_allclose(found.velocity, [2.4, 3.2, 0, 0, 0, 0, 1, 0, 1], atol=1e-12)
    assert found.report[RUNG] <= Rung.STATES
    assert found.report[FACTORISATIONS] <= 12


def test_a_few_contacts_take_a_few_systems() -> None:
    """Points in pairs, with nothing known of them: given states, or the path's, are the answer."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        N, S, T = np.zeros((3, 4, 12))
        for i in range(4):
            axes = np.linalg.qr(rng.normal(size=(3, 3)))[0]
            for rows, axis in zip((N, S, T), axes, strict=True):
                rows[i, 3 * i : 3 * i + 3] = axis
                if i:
                    rows[i, 3 * i - 3 : 3 * i] = -axis
        p = ContactProblem(M=np.tile(np.eye(3), (4, 1, 1)), v=rng.normal(size=12), N=N, S=S, T=T,
                           mu=0.5)  # fmt: skip
        found = solve(p, LawKind.COULOMB)
        assert found.status == SolveStatus.SOLVED
        assert found.report[RUNG] in (Rung.IMPULSES, Rung.STATES, Rung.COMPLIANCE)
        assert found.report[FACTORISATIONS] <= 15


def test_frictionless_contact_is_a_projection() -> None:
    """The nearest motion that closes no gap, by nonnegative least squares, in a few systems."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        A, N = rng.normal(size=(6, 3, 3)), np.zeros((16, 18))
        for row in N:
            for body in rng.choice(6, 2, replace=False):
                row[3 * body : 3 * body + 3] = rng.normal(size=3)
        p = ContactProblem(M=A @ A.transpose(0, 2, 1) + np.eye(3), v=rng.normal(size=18), N=N,
                           c_N=-0.1 * rng.random(16))  # fmt: skip
        found = solve(p, LawKind.FRICTIONLESS)
        assert found.status == SolveStatus.SOLVED
        assert found.report[FACTORISATIONS] <= 15
        G = np.linalg.solve(p.cholesky, p.N.T)  # min |G f + y| with f >= 0 has its dual here
        H, b = np.vstack([G, p.c_N]), np.append(np.zeros(18), 1.0)
        free = p.cholesky.T @ p.free_velocity
        H[-1] -= free @ G
        f, _ = nnls(H, b)
        rest = b - H @ f
        assert rest[-1] > 0.0
        np.testing.assert_allclose(
            p.cholesky.T @ found.velocity, free - rest[:-1] / rest[-1], atol=1e-8
        )


def test_memory_of_bodies_that_are_apart() -> None:
    """It grows as their number does."""
    few, many = (
        solve(points(np.tile([1.0, 0.0, -1.0], (n, 1))), LawKind.COULOMB).report[NEEDED]
        for n in (40, 80)
    )
    assert many <= 2.0 * few


def test_no_dry_friction() -> None:
    """Nothing to push and nothing to bound, where no joint has any."""
    force, bound = dry_forces(ContactProblem(M=np.eye(3), v=[1.0, 0.0, 0.0], h=0.1))
    assert force.shape == bound.shape == (0,)


def test_a_time_step_may_be_missing_a_number_or_an_array() -> None:
    """What `from_mapping` makes of h."""
    fields = {"M": np.eye(2), "v": np.ones(2)}
    assert ContactProblem.from_mapping(fields).h is None
    for h in (0.25, np.array(0.25), np.float64(0.25)):
        again = ContactProblem.from_mapping(fields | {"h": h})
        assert type(again.h) is float and again.h == 0.25


def four_legs(lever: float) -> Arrays:
    """A body on four legs that are at their limits, with a joint that moves the feet a little.

    Coordinates are height, two along the floor, the lengths of the legs, and the joint, whose
    motion pulls all feet inwards, by a lever: near a toggle, as ants stand whose body turns.
    """
    m, rows = 8, []
    for k in range(4):
        rows.append(np.eye(m)[[3 + k]])
    for angle in 0.1 + 0.5 * np.pi * np.arange(4):
        c, s, k = np.cos(angle), np.sin(angle), len(rows) - 4
        foot = np.zeros((3, m))
        foot[0, 0] = 1.0
        foot[1, [1, 2, 3 + k, 7]] = c, s, -1.0, lever
        foot[2, 1:3] = -s, c
        rows.append(foot)
    law = np.repeat([int(LawKind.FRICTIONLESS), int(LawKind.COULOMB)], 4)
    row = np.cumsum([0, *map(len, rows)])
    friction = np.concatenate([np.zeros(4), np.tile([0.0, 1.0, 1.0], 4)])
    free = np.array([-0.1, 0.0, 0.0, -0.02, -0.02, -0.02, -0.02, -1e-3])
    return Arrays(
        np.array([0, m]), np.array([0, m * m]), np.eye(m).ravel(), free, law, row, np.arange(9),
        np.zeros(8, dtype=np.int64), row[:-1] * m, np.concatenate(rows).ravel(),
        np.zeros(row[-1]), friction, np.zeros(row[-1]), np.zeros(row[-1]),
    )  # fmt: skip


@pytest.mark.parametrize("lever", [1e-6, 1e-5, 1e-4, 1e-3])
def test_feet_that_creep_near_a_toggle(lever: float) -> None:
    """They slide more slowly than compliance lets them; a few systems find that out."""
    a, work = four_legs(lever), np.zeros(100000)
    answer = Answer(np.zeros(8), np.zeros(16), np.full(8, int(ContactState.STICK)),
                    np.zeros(REPORT))  # fmt: skip
    status = contact_solve.solve(a, answer, work, work.view(np.int64), DEFAULT_NUMBERS)
    assert status == SolveStatus.SOLVED
    assert list(answer.state[4:]) == [ContactState.SLIDE] * 4
    assert answer.report[RESIDUAL] <= 1e-14
    assert answer.report[RUNG] == Rung.STATES
    assert answer.report[FACTORISATIONS] <= 5
    np.testing.assert_allclose(answer.velocity[7], -1e-3 + 4 * 0.025 * lever, rtol=1e-9)
