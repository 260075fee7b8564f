"""The interior-point method: its derivatives, steps up to the boundary, gaps, large islands."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq, root

from contact_cases import one_contact
from holdfast import ContactProblem
from holdfast._jit import entry
from holdfast.contact.arrays import LawKind
from holdfast.contact.build import DEFAULT_NUMBERS, Solved, solve_laws
from holdfast.contact.interior_point import (
    Interior,
    aim,
    gap_after,
    linearise_friction,
    move,
    share_of_friction,
    until_sliding,
)
from holdfast.contact.ladder import (
    BY_RUNG,
    FACTORISATIONS,
    LARGE,
    Rung,
    open_parting,
    open_unpressed,
)
from holdfast.contact.newton import Island
from holdfast.contact.system import DISC, HELD, NOTHING, System
from holdfast.linalg.block_lu import Pattern
from holdfast.models._newton import make_laws


@entry
def linearised(sy, it, u, epsilon, pull, C):
    linearise_friction(sy, 0, it, u, epsilon, pull, C, 0)


@entry
def sliding_after(x, dx, dim):
    return until_sliding(x, dx, 0, dim)


def smoothed(unknowns: np.ndarray, u: np.ndarray, mu: float, tau: float, epsilon: float):
    """What vanishes on the central path, for N, rho, s and sigma at these speeds."""
    N, rho, s, sigma = unknowns[0], unknowns[1:-2], unknowns[-2], unknowns[-1]
    return np.concatenate([
        [u[0] + epsilon * N - s],
        u[1:] + epsilon * mu * N * rho + sigma * rho,
        [N * s - tau, sigma * mu * N * (1.0 - rho @ rho) / 2.0 - tau],
    ])  # fmt: skip


@given(
    st.integers(0, 2**32 - 1), st.integers(2, 6), st.sampled_from([0.1, 1.0, 3.0]),
    st.sampled_from([1e-3, 1.0]),
)  # fmt: skip
def test_the_derivative_is_that_of_the_smoothed_law(
    seed: int, dim: int, mu: float, epsilon: float
) -> None:
    """Speeds are changed a little, and the smoothed law is solved again."""
    rng = np.random.default_rng(seed)
    N, s = rng.uniform(0.5, 2.0, 2)
    rho = rng.normal(size=dim - 1)
    rho *= rng.uniform(0.1, 0.9) / np.linalg.norm(rho)
    tau = N * s
    sigma = 2.0 * tau / (mu * N * (1.0 - rho @ rho))
    u = np.concatenate([[s - epsilon * N], -(sigma + epsilon * mu * N) * rho])
    work = np.zeros((14, dim))
    work[0] = np.concatenate([[N], rho])
    work[1, 0], work[2, 0] = s, sigma
    C = np.zeros(dim * dim)
    pull = 0.25 * epsilon  # of the compliance, what is about zero
    given_speeds = u + (epsilon - pull) * np.concatenate([[N], mu * N * rho])
    linearised(one_contact(dim, mu), Interior(*work), given_speeds, epsilon, pull, C)
    np.testing.assert_allclose(work[6], 0.0, atol=1e-12)
    start = np.concatenate([[N], rho, [s, sigma]])
    step = 1e-5
    for k in range(dim):
        r = []
        for sign in (1.0, -1.0):
            moved = u + sign * step * np.eye(dim)[k]
            found = root(smoothed, start, args=(moved, mu, tau, epsilon), tol=1e-14)
            r.append(np.concatenate([[found.x[0]], mu * found.x[0] * found.x[1:-2]]))
        numeric = -(r[0] - r[1]) / (2.0 * step)
        scale = np.abs(C).max()
        np.testing.assert_allclose(C.reshape(dim, dim)[:, k], numeric, atol=1e-6 * scale)


@given(st.integers(0, 2**32 - 1), st.integers(2, 6))
def test_the_longest_step_ends_where_all_friction_is_used(seed: int, dim: int) -> None:
    rng = np.random.default_rng(seed)
    x, dx = rng.normal(size=dim), 3.0 * rng.normal(size=dim)
    x[1:] *= rng.uniform(0.0, 0.99) / np.linalg.norm(x[1:])
    t = sliding_after(x, dx, dim)
    assert t > 0.0
    np.testing.assert_allclose(np.linalg.norm(x[1:] + t * dx[1:]), 1.0, rtol=1e-9)


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


def solve(problem: ContactProblem, rough: float = 0.0, kind: LawKind = LawKind.COULOMB) -> Solved:
    law = np.full(problem.n, int(kind))
    laws = make_laws(problem, law, problem.mu, None)
    return solve_laws(problem, laws, DEFAULT_NUMBERS._replace(rough=rough))


def test_large_islands_without_friction_are_solved_roughly_by_it() -> None:
    """The motion is off by about what is allowed, not by what stops the exact method."""
    for seed in range(10):
        problem = tumbling(LARGE // 2, seed)
        exact = solve(problem, kind=LawKind.FRICTIONLESS)
        rough = solve(problem, 1e-3, LawKind.FRICTIONLESS)
        assert exact.residual <= DEFAULT_NUMBERS.certificate < rough.residual <= 1e-3
        off = np.linalg.norm(rough.velocity - exact.velocity)
        assert off <= 1e-2 * np.linalg.norm(exact.velocity)


def test_large_islands_are_solved_by_it() -> None:
    """Nearly all; what it does not solve goes on to splitting. A rough answer takes less."""
    for size in (LARGE // 4 + 3, LARGE // 2):
        by_path = otherwise = 0
        for seed in range(20):
            problem = tumbling(size, seed)
            solved, rough = solve(problem), solve(problem, 1e-3)
            assert solved.residual <= DEFAULT_NUMBERS.certificate
            assert rough.report[FACTORISATIONS] <= solved.report[FACTORISATIONS]
            by_path += int(solved.report[BY_RUNG + Rung.INTERIOR])
            otherwise += int(solved.report[BY_RUNG + Rung.AGAIN])
        assert by_path >= 10
        assert otherwise <= 2


@entry
def mean_product(sy, isl, it, t):
    return gap_after(sy, isl, it, t)


@entry
def moved(sy, isl, it, t):
    move(sy, isl, it, t)


@entry
def aimed(sy, isl, it, part, products, tau, corrector):
    for i in isl.member:
        aim(sy, i, it, part, products, tau, corrector)


@entry
def share(limit, pull, tau):
    return share_of_friction(limit, pull, tau)


@entry
def parted(sy, isl, u, r):
    return open_parting(sy, isl, u, r)


@entry
def unpressed(sy, isl, r):
    return open_unpressed(sy, isl, r)


# Normal, tangent, rows: contacts with friction, one without, dry friction, and an equality.
SEVERAL = [(1, DISC, 3), (1, NOTHING, 1), (0, HELD, 2), (1, DISC, 4), (0, DISC, 1), (1, DISC, 3)]


def several(rng: np.random.Generator, chosen: list[int]) -> tuple[System, Island, Interior]:
    """Some of these constraints, without bodies, within their boundaries, and a step."""
    row = np.cumsum([0] + [dim for *_, dim in SEVERAL])
    numbers = rng.uniform(0.1, 0.5, (14, row[-1]))
    mu, bound = rng.uniform(0.2, 1.0, (2, len(SEVERAL)))
    rows = np.concatenate([np.arange(row[i], row[i + 1]) for i in chosen])
    normal, tangent, dims = np.transpose([SEVERAL[i] for i in chosen])
    none, no_index, n = np.zeros(0), np.zeros(0, dtype=np.int64), len(chosen)
    sy = System(
        no_index, np.cumsum([0, *dims]), np.zeros(n + 1, dtype=np.int64), no_index, no_index, none,
        none, none, np.zeros(len(rows)), np.zeros(len(rows)), normal, tangent, mu[chosen],
        np.where(normal == 0, bound[chosen], 0.0), np.ones(len(rows)),
    )  # fmt: skip
    one = np.zeros(1, dtype=np.int64)
    pattern = Pattern(one, one, one, one.reshape(1, 1), one.reshape(1, 1), one)
    isl = Island(
        np.arange(n), pattern, 0, no_index, none, none, none, np.zeros(n + 1, np.int64), 1.0
    )
    return sy, isl, Interior(*np.ascontiguousarray(numbers[:, rows]))


def products(sy: System, it: Interior) -> np.ndarray:
    """Of complementary variables: N s and kappa sigma of contacts, of boxes at either side."""
    found = []
    for i, kind in enumerate(zip(sy.normal, sy.tangent, strict=True)):
        x, s, w = (each[sy.row[i] : sy.row[i + 1]] for each in (it.x, it.s, it.w))
        if kind == (0, DISC):
            found += [s[0] * (x[0] + sy.bound[i]), w[0] * (sy.bound[i] - x[0])]
        elif kind[0] == 1:
            found.append(x[0] * s[0])
        if kind == (1, DISC):
            found.append(w[0] * sy.mu[i] * x[0] * (1.0 - x[1:] @ x[1:]) / 2.0)
    return np.array(found)


@pytest.mark.parametrize("seed", range(5))
def test_the_gap_is_the_mean_of_the_products(seed: int) -> None:
    """Where the step leads, too."""
    sy, isl, it = several(np.random.default_rng(seed), [*range(len(SEVERAL))])
    for t in (0.0, 0.3):
        expected = mean_product(sy, isl, it, t)
        moved(sy, isl, it, t)
        assert expected == pytest.approx(products(sy, it).mean(), rel=1e-12)


@pytest.mark.parametrize("corrector", [False, True])
def test_what_a_step_brings_a_constraint_does_not_depend_on_others(corrector: bool) -> None:
    whole, isl, together = several(np.random.default_rng(7), [*range(len(SEVERAL))])
    aimed(whole, isl, together, 1.0, 1.0, 0.2, corrector)
    for i in range(len(SEVERAL)):
        sy, isl, alone = several(np.random.default_rng(7), [i])
        aimed(sy, isl, alone, 1.0, 1.0, 0.2, corrector)
        for one, all_of_them in zip(alone, together, strict=True):
            assert np.array_equal(one, all_of_them[whole.row[i] : whole.row[i + 1]])


@given(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3), st.floats(1e-9, 1.0))
def test_the_share_of_friction_is_that_of_the_path(limit: float, pull: float, tau: float) -> None:
    """Sliding and spare friction have the product tau there, more before, and less beyond."""

    def more(x: float) -> float:
        sliding, spare = pull - limit * x, limit * (1.0 - x) * (1.0 + x) / 2.0
        return sliding * spare - tau * x

    expected = brentq(more, 0.0, min(1.0, pull / limit), xtol=1e-300)
    assert share(limit, pull, tau) == pytest.approx(expected, rel=1e-9)


def test_contacts_that_part_or_are_not_pressed_carry_nothing() -> None:
    """Whatever the size of the impulses, and all that a contact has: friction, but no drag."""
    for scale in (1e-3, 1.0, 1e3):
        sy, isl, it = several(np.random.default_rng(1), [0, 1, 3])
        r, u = scale * it.x, scale * (it.x + it.s)  # they part more than they press
        assert parted(sy, isl, u, r) and not r.any()
        r = scale * it.x
        kept = r.copy()
        assert not parted(sy, isl, 0.5 * r, r) and np.array_equal(r, kept)
        r[sy.row[:-1]] = [0.0, 0.0, scale]
        assert unpressed(sy, isl, r)
        assert not r[:4].any() and np.array_equal(r[5:], kept[5:]) and r[4] == scale
        assert not unpressed(sy, isl, r)
