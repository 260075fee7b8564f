"""No slip where pressed against the enumeration of all sets of held contacts."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

import holdfast as hf
from holdfast import ContactProblem, Mixed, NoSlip, frictionless, stick

SMALL = 1e-8  # relative speeds that are none
PRESSED = 1e-6  # normal impulse, relative to the motion, that presses for certain


def rows_of(name: str, problem: ContactProblem) -> np.ndarray:
    """Whitened rows."""
    rows = getattr(problem, name)
    return np.linalg.solve(problem.cholesky, rows.T).T if len(rows) else rows


def is_consistent(p: ContactProblem, held: np.ndarray, v: np.ndarray) -> bool:
    """Whether some impulses make this motion that press every held contact and none that slides."""
    size = np.linalg.norm(p.cholesky.T @ np.array([p.free_velocity, v]).T, axis=0).max()
    N = rows_of("N", p)
    touches = p.N @ v - p.c_N <= SMALL * size * np.linalg.norm(N, axis=1)
    slides = np.zeros(p.n, dtype=bool)
    for name in "ST":
        length = np.linalg.norm(rows_of(name, p), axis=1)
        slides |= np.abs(getattr(p, name) @ v) > SMALL * size * length
    if (held & (slides | ~touches)).any():
        return False
    acts = np.flatnonzero(touches & ~(slides & ~held))
    tangents = [rows_of(name, p)[held] for name in "ST"]
    rows = np.vstack([N[acts], *tangents, rows_of("J", p)])
    change = p.cholesky.T @ (v - p.free_velocity)
    if not len(rows):
        return bool(np.linalg.norm(change) <= 10.0 * SMALL * size)
    U, values, _ = np.linalg.svd(rows.T, full_matrices=False)
    basis = U[:, values > 1e-12 * values.max(initial=0.0)]
    if np.linalg.norm(change - basis @ (basis.T @ change)) > 10.0 * SMALL * size:
        return False
    # largest t such that every held contact is pressed by t
    k, least = len(rows), np.flatnonzero(np.isin(acts, np.flatnonzero(held)))
    at_least = np.zeros((len(least), k + 1))
    at_least[np.arange(len(least)), least], at_least[:, -1] = -1.0, 1.0
    bounds = [(0.0, None)] * len(acts) + [(None, None)] * (k - len(acts)) + [(None, 1.0)]
    found = linprog(
        np.append(np.zeros(k), -1.0), A_ub=at_least, b_ub=np.zeros(len(least)),
        A_eq=basis.T @ np.hstack([rows.T, np.zeros((p.m, 1))]), b_eq=basis.T @ change,
        bounds=bounds,
    )  # fmt: skip
    return bool(found.status == 0 and (-found.fun > PRESSED * size or not len(least)))


def consistent_motions(p: ContactProblem) -> list[np.ndarray]:
    """The motions of all consistent sets, each found by pivoting."""
    motions = []
    for bits in itertools.product((False, True), repeat=p.n):
        model = Mixed([stick() if bit else frictionless() for bit in bits], grip="all")
        try:
            v = model.solve(p).velocity
        except hf.SolveError:
            continue
        if is_consistent(p, np.array(bits, dtype=bool), v):
            motions.append(v)
    return motions


def body(points: np.ndarray, frames: np.ndarray) -> dict[str, np.ndarray]:
    """Contacts of one free body with the world."""
    rows = {
        name: np.array(
            [np.append(f[k], np.cross(x, f[k])) for x, f in zip(points, frames, strict=True)]
        )
        for k, name in enumerate("NST")
    }
    return {"M": np.diag([1.0, 1.0, 1.0, 0.1, 0.1, 0.1]), **rows}


def small_problem(kind: str, seed: int) -> ContactProblem:
    rng = np.random.default_rng([7, seed])
    n, m = int(rng.integers(1, 5)), int(rng.integers(2, 7))
    fields: dict[str, Any] = {"M": np.eye(m)}
    if kind == "body":
        frames = np.array([np.linalg.qr(rng.normal(size=(3, 3)))[0] for _ in range(n)])
        fields = body(rng.normal(size=(n, 3)), frames)
    elif kind == "face":
        frames = np.tile(np.eye(3)[[2, 0, 1]], (n, 1, 1))
        fields = body(np.column_stack([rng.normal(size=(n, 2)), -np.ones(n)]), frames)
    elif kind == "whole numbers":
        fields |= dict(zip("NST", rng.integers(-1, 2, size=(3, n, m)).astype(float), strict=True))
    else:
        fields |= dict(zip("NST", rng.normal(size=(3, n, m)), strict=True))
    if kind == "joint":
        fields["J"] = rng.normal(size=(1, m))
    if kind == "gaps":
        fields["c_N"] = -np.abs(rng.normal(size=n)) * (rng.random(n) < 0.5)
    return ContactProblem(v=rng.normal(size=len(fields["M"])), h=1.0, **fields)


KINDS = ("random", "body", "face", "whole numbers", "joint", "gaps")


@pytest.mark.parametrize("kind", KINDS)
def test_consistent_wherever_a_set_of_contacts_is(kind: str) -> None:
    """Before loads were shared in other ways, this failed in 77 of 1092 problems."""
    some = 0
    for seed in range(40):
        problem = small_problem(kind, seed)
        motions, solution = consistent_motions(problem), NoSlip().solve(problem)
        assert solution.consistent == bool(motions), seed
        if motions:  # and it is the motion of one of them
            size = solution.scale
            error = [np.linalg.norm(problem.cholesky.T @ (solution.velocity - v)) for v in motions]
            assert min(error) <= 1e-8 * size, seed
            some += 1
    assert some >= 25


@pytest.mark.parametrize("seed", range(20))
def test_order_of_contacts_does_not_matter(seed: int) -> None:
    problem = small_problem("random", seed)
    order = np.random.default_rng(seed).permutation(problem.n)
    rows = {name: getattr(problem, name)[order] for name in ("N", "S", "T")}
    other = ContactProblem(M=problem.M, v=problem.v, h=1.0, **rows)
    one, two = NoSlip().solve(problem), NoSlip().solve(other)
    assert one.consistent == two.consistent
    np.testing.assert_allclose(one.velocity, two.velocity, atol=1e-9 * one.scale)


@pytest.mark.parametrize("seed", range(20))
def test_warm_start_does_not_matter(seed: int) -> None:
    """Nor does what was solved before, where several sets are consistent."""
    problem = small_problem("body", seed)
    other = ContactProblem(**{name: getattr(problem, name) for name in ("M", "N", "S", "T")},
                           v=-problem.v, h=1.0)  # fmt: skip
    cold = NoSlip().solve(problem)
    warm = NoSlip().solve(problem, warm_start=NoSlip().solve(other))
    np.testing.assert_allclose(warm.velocity, cold.velocity, atol=1e-10 * cold.scale)
