"""No slip where pressed, against every set of contacts that may hold.

A set is consistent if, with its tangents held, exactly the contacts that are pressed do not slide.
On small problems all sets can be tried; `ContactSolution.consistent` may be False only where none
of them is consistent.
"""

from __future__ import annotations

from itertools import chain, combinations
from typing import NamedTuple

import numpy as np
import pytest

from holdfast import ContactProblem, InfeasibleError, NoSlip

NONE = 1e-9  # impulses and speeds of rounding
UNCLEAR = 1e-6  # those that are neither rounding nor clearly more


class Held(NamedTuple):
    """The motion with some tangents held."""

    velocity: np.ndarray
    normal: np.ndarray


def subsets(n: int) -> list[list[int]]:
    return [list(each) for each in chain.from_iterable(combinations(range(n), k)
                                                       for k in range(n + 1))]  # fmt: skip


def solve_held(p: ContactProblem, held: list[int]) -> Held | None:
    """Nearest motion that closes no gap, with tangents held, by trying every set of loaded rows.

    None if there is no such motion, or if multipliers are not unique.
    """
    M, fixed = p.inertia, np.vstack([p.J, p.S[held], p.T[held] if len(p.T) else p.S[:0]])
    b = np.concatenate([p.c_J, np.zeros(len(fixed) - len(p.J))])
    for loaded in subsets(p.n):
        rows = np.vstack([fixed, p.N[loaded]])
        wanted = np.concatenate([b, p.c_N[loaded]])
        A = rows @ np.linalg.solve(M, rows.T)
        if len(rows) > p.m or (len(rows) and np.linalg.cond(A) > 1e8):
            continue
        z = np.linalg.solve(A, wanted - rows @ p.free_velocity)
        v = p.free_velocity + np.linalg.solve(M, rows.T @ z)
        normal = np.zeros(p.n)
        normal[loaded] = z[len(fixed) :]
        if (normal >= 0.0).all() and (p.N @ v - p.c_N >= -NONE).all():
            return Held(v, normal)
    return None


def agrees(p: ContactProblem, held: list[int], found: Held) -> bool | None:
    """Whether the held contacts are those that are pressed; None if rounding decides."""
    holds = np.isin(np.arange(p.n), held)
    slides = np.abs(p.S @ found.velocity)
    if len(p.T):
        slides = np.maximum(slides, np.abs(p.T @ found.velocity))
    for x in (found.normal, slides):
        if ((x > NONE) & (x < UNCLEAR)).any():
            return None
    pressed, still = found.normal > NONE, slides <= NONE
    return bool((pressed[holds]).all() and not (pressed & ~still)[~holds].any())


def random_problem(seed: int) -> ContactProblem:
    """One to four contacts of a few coordinates; some with targets, one tangent, or a joint."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 5)), int(rng.integers(2, 7))
    G = rng.normal(size=(m, m))
    N, S, T = rng.normal(size=(3, n, m))
    more = {}
    if rng.random() < 0.5 and m > 2:
        more["T"] = T
    if rng.random() < 0.3 and m > 3:
        more |= {"J": rng.normal(size=(1, m)), "c_J": rng.normal(size=1)}
    if rng.random() < 0.5:
        more["c_N"] = -0.5 * rng.random(n)
    return ContactProblem(M=G @ G.T + np.eye(m), v=rng.normal(size=m), N=N, S=S, **more)


def consistent_set(p: ContactProblem) -> bool | None:
    """Whether any set of contacts is consistent; None if rounding or redundant rows decide."""
    unclear = False
    for held in subsets(p.n):
        found = solve_held(p, held)
        answer = None if found is None else agrees(p, held, found)
        if answer:
            return True
        unclear |= answer is None
    return None if unclear else False


@pytest.mark.parametrize("first", range(0, 600, 25))
def test_inconsistent_only_where_no_set_is(first: int) -> None:
    """Where none is, contacts jam; with targets of J they may contradict each other, proven."""
    some = 0
    for seed in range(first, first + 25):
        p = random_problem(seed)
        there = consistent_set(p)
        try:
            solution = NoSlip().solve(p)
        except InfeasibleError as error:
            assert not there and p.j, seed
            assert_proof(p, error)
            continue
        assert solution.is_exact(1e-8), seed
        if there:
            some += 1
            assert solution.consistent, seed
    assert some >= 12


def assert_proof(p: ContactProblem, error: InfeasibleError) -> None:
    """Rows that cancel each other, but not what they ask for."""
    w, u = error.equality_weights, error.certificate
    S, T = p.S.T @ w["S"], p.T.T @ w["T"] if len(p.T) else 0.0
    rows = p.N.T @ u[: p.n] + p.J.T @ w["J"] + S + T
    asked = p.c_N @ u[: p.n] + p.c_J @ w["J"]
    size = max(np.abs(x).max(initial=0.0) for x in (u, w["J"], w["S"], w["T"]))
    assert (u >= 0.0).all() and asked > 0.0
    assert np.abs(rows).max() <= 1e-8 * size
