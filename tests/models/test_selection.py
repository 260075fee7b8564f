"""Of several motions that obey Coulomb's law one is taken, whatever the order, frames and start."""

from __future__ import annotations

import numpy as np
import pytest

import holdfast as hf
from contact_generators import generate
from contact_variants import changed, differ, doubled, reordered, turned
from holdfast.contact.arrays import LawKind
from holdfast.contact.build import DEFAULT_NUMBERS, Solved, solve_laws
from holdfast.contact.ladder import LARGE, RUNG, Rung
from holdfast.models._newton import make_laws, nearly_equal

SAME = 1e-7  # relative difference of motions up to which they are one

# Problems with several answers, of each family. Each was solved differently in another order, in
# other frames or from another answer before the path of vanishing compliance was followed.
SEVERAL = (168, 237, 299, 362, 481, 495, 496, 630, 795, 1021, 1129, 1145, 1467, 1939, 2557, 2619)
FOLDS = (50043, 50126, 50182, 50352, 50478, 50497, 50515, 50632, 50773, 50801, 50839, 50917)
# At corners of the path where boxes that fall together are hit, or copies change at once; with less
# compliance than rounding of all speeds allows; and with contacts that touch exactly, without load.
CORNERS = (120_039, 122_402, 122_990, 500_084, 500_318, 501_097, 501_507, 501_675, 503_019)
# Where the path is lost, between bodies of very different masses, and in generalized coordinates.
LOST = (731_884, 732_790)
UNSEEN = tuple(range(300_000, 300_036))


def small(seed: int) -> bool:
    p = generate(seed)
    return p.n + len(p.U) + len(p.D) + p.j <= LARGE


SEEDS = [seed for seed in SEVERAL + FOLDS + CORNERS + LOST + UNSEEN if small(seed)]


@pytest.mark.parametrize("seed", SEEDS)
def test_order_frames_and_warm_starts_do_not_matter(seed: int) -> None:
    p, rng, coulomb = generate(seed), np.random.default_rng(seed), hf.Coulomb()
    own = coulomb.solve(p)
    again = coulomb.solve(reordered(p, rng))
    assert differ(p, own.velocity, again.velocity) <= SAME
    q, Q = turned(p, rng)
    back = np.einsum("bij,bj->bi", Q, coulomb.solve(q).velocity.reshape(len(Q), -1)).ravel()
    assert differ(p, own.velocity, back) <= SAME
    for other in (p, changed(p, mu=0.5 * p.mu), changed(p, mu=2.0 * p.mu)):
        warm = coulomb.solve(p, warm_start=coulomb.solve(other))
        np.testing.assert_array_equal(own.velocity, warm.velocity)


def only_contacts(seed: int) -> bool:
    p = generate(seed)
    return p.j + len(p.U) + len(p.D) == 0 and 2 * p.n <= LARGE


@pytest.mark.parametrize("seed", [seed for seed in SEEDS if only_contacts(seed)])
def test_contacts_may_be_listed_twice(seed: int) -> None:
    """Equal compliances stay equal if each is halved; joints and limits would not be."""
    p = generate(seed)
    twice = doubled(p)
    one, two = hf.Coulomb().solve(p), hf.Coulomb().solve(twice)
    assert differ(p, one.velocity, two.velocity) <= SAME


def solve(p: hf.ContactProblem) -> Solved:
    return solve_laws(p, make_laws(p, np.full(p.n, int(LawKind.COULOMB)), p.mu), DEFAULT_NUMBERS)


def compliant(p: hf.ContactProblem, y: np.ndarray, rho: float) -> tuple[np.ndarray, np.ndarray]:
    """Dense reference: what a motion misses with compliance, and its impulses; contacts only."""
    L = np.linalg.cholesky(p.inertia)
    N, S, T = (np.linalg.solve(L, rows.T).T for rows in (p.N, p.S, p.T))
    mu = p.mu
    tangents = (np.einsum("ij,ij->i", S, S) + np.einsum("ij,ij->i", T, T)) / 2
    length = np.sqrt(np.maximum(np.einsum("ij,ij->i", N, N), tangents))
    N, S, T = (rows / length[:, None] for rows in (N, S, T))
    normal = np.maximum(0.0, -(N @ y - p.c_N / length) / rho)
    pull = -np.column_stack([S @ y, T @ y]) / rho
    size = np.linalg.norm(pull, axis=1)
    share = np.minimum(1.0, mu * normal / np.maximum(size, 1e-300))
    r = np.column_stack([normal, share[:, None] * pull])
    return y - L.T @ p.free_velocity - N.T @ r[:, 0] - S.T @ r[:, 1] - T.T @ r[:, 2], r


def follow_slowly(p: hf.ContactProblem, points: tuple[float, ...]) -> list[np.ndarray]:
    """Motions on the path, by tiny steps and derivatives by differences, as far as these lead."""
    y, rho, found = np.linalg.cholesky(p.inertia).T @ p.free_velocity, 10.0, []
    size = np.linalg.norm(y)
    for last in points:
        while rho > last:
            rho = max(0.8 * rho, last)
            for _ in range(20):
                miss = compliant(p, y, rho)[0]
                if np.linalg.norm(miss) <= 1e-9 * size:
                    break
                h = 1e-7 * size * rho
                A = np.column_stack([
                    (compliant(p, y + h * e, rho)[0] - miss) / h for e in np.eye(len(y))
                ])  # fmt: skip
                step = np.linalg.solve(A, miss)
                y = y - step * min(1.0, 0.3 * size / np.linalg.norm(step))
            else:
                return found  # a fold, or a corner that these steps do not get round
        found.append(y)
    return found


def test_the_answer_is_the_limit_of_vanishing_compliance() -> None:
    """Motions on a path that is followed slowly, by other means, tend to the answer as it falls."""
    compared = 0
    for seed in range(400_000, 401_200, 12):  # free bodies
        p = generate(seed)
        if p.n > 8 or p.mu.ndim > 1 or not p.mu.all():
            continue
        found = solve(p)
        path = follow_slowly(p, (1e-3, 1e-4)) if found.report[RUNG] == Rung.COMPLIANCE else []
        if len(path) == 2:
            answer = np.linalg.cholesky(p.inertia).T @ found.velocity
            far, near = (np.linalg.norm(y - answer) for y in path)
            assert near <= 0.2 * far + 1e-8 * np.linalg.norm(answer)
            compared += 1
    assert compared >= 4


@pytest.mark.parametrize("seed", [seed for seed in FOLDS + CORNERS if seed != 120_039])
def test_paths_that_turn_back_are_followed(seed: int) -> None:
    """Newton's method at ever less compliance ends there: answers meet, and vanish."""
    found = solve(generate(seed))
    assert found.report[RUNG] == Rung.COMPLIANCE


X, Y, Z = np.eye(3)
GRAVITY, H = 9.81, 0.01


def between_walls(mu: float, force: float) -> hf.ContactProblem:
    """A block of 1 kg between a wall and a plate, which moves along X and is pushed to the wall."""
    rows: dict[str, list[np.ndarray]] = {"N": [], "S": [], "T": []}
    for side, plate in ((-1.0, 0.0), (1.0, 1.0)):
        for y, z in ((-1, -1), (-1, 1), (1, -1), (1, 1)):
            point = np.array([0.5 * side, 0.3 * y, 0.3 * z])
            for name, axis in zip("NST", (-side * X, Y, Z), strict=True):
                row = np.r_[axis, np.cross(point, axis), -plate * axis[0]]
                rows[name].append(row)
    f = np.zeros(7)
    f[2], f[6] = -GRAVITY, -force
    M = np.diag([1.0, 1.0, 1.0, 0.1, 0.1, 0.1, 2.0])
    return hf.ContactProblem(M=M, v=np.zeros(7), f=f, h=H, mu=mu, **rows)


@pytest.mark.parametrize("mu", [0.3, 1.0, 30.0])
def test_squeezing_needs_a_load(mu: float) -> None:
    """Walls without a gap hold a block by friction only as far as something presses it.

    Impulses that cancel each other could hold it, and would obey Coulomb's law. But no compliance,
    however small, makes them, and contacts that must not slip do not hold it either.
    """
    loose = between_walls(mu, 0.0)
    falls = hf.Coulomb().solve(loose)
    np.testing.assert_allclose(falls.velocity[2], -GRAVITY * H, rtol=1e-12)
    np.testing.assert_allclose(hf.NoSlip().solve(loose).velocity, falls.velocity, atol=1e-12)
    enough = hf.Coulomb().solve(between_walls(mu, 0.51 * GRAVITY / mu))
    np.testing.assert_allclose(enough.velocity, 0.0, atol=1e-12)
    less = hf.Coulomb().solve(between_walls(mu, 0.4 * GRAVITY / mu))
    assert less.velocity[2] < -0.1 * GRAVITY * H
    after = hf.Coulomb().solve(loose, warm_start=enough)  # what held it does not hold it any more
    np.testing.assert_array_equal(after.velocity, falls.velocity)


@pytest.mark.parametrize("seed", [7670, 23_558, 504_638])
def test_copies_that_need_not_jam_are_solved(seed: int) -> None:
    """Rows differ in the seventh digit, and share no load at the end of the path."""
    p = generate(seed)
    assert nearly_equal(p) is not None
    solution = hf.Coulomb().solve(p)
    assert solution.is_exact()
    assert (solution.normal * solution.lengths("N")).max() <= 100.0 * solution.scale


def test_copies_that_jam_are_named() -> None:
    """Rows that differ in the seventh digit, and no others."""
    p = generate(255_794)
    with pytest.raises(hf.UncertifiedError, match="are copies whose rows differ by"):
        hf.Coulomb().solve(p)
    i, j, distance = nearly_equal(p) or (0, 0, 0.0)
    assert 1e-9 < distance < 1e-5
    np.testing.assert_allclose(p.N[i], p.N[j], rtol=1e-5)
    assert nearly_equal(generate(12)) is None
