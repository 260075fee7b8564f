"""Contacts that give way: the law, the limits of little and of much compliance, and memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from holdfast._jit import entry
from holdfast.contact.arrays import Answer, Arrays, ContactState, Factors, LawKind, SolveStatus
from holdfast.contact.giving import memory_if_giving, solve_giving
from holdfast.contact.ladder import REPORT
from holdfast.contact.options import DEFAULT

BEYOND, MARK = 32, 1.25e-77  # numbers behind the memory that are looked at
COULOMB, FRICTIONLESS = int(LawKind.COULOMB), int(LawKind.FRICTIONLESS)
VISCOUS, COMPLIANT = int(LawKind.VISCOUS), int(LawKind.COMPLIANT)


@entry
def solve(a, f, answer, work, words, near, o):
    return solve_giving(a, f, answer, work, words, near, o)


@entry
def needed(a, f, answer, work, words):
    return memory_if_giving(a, f, answer, work, words)


def problem(seed: int, compliance: float, dims: tuple[int, ...] = (1, 3, 3, 4, 6)) -> Arrays:
    """Trees in one row; each contact is between two neighbours. The last row is an equality."""
    rng = np.random.default_rng(seed)
    sizes = rng.choice([2, 3, 6, 7], size=len(dims) + 1)
    tree = np.cumsum([0, *sizes])
    roots = [rng.normal(size=(s, s)) for s in sizes]
    inertia = np.concatenate([(A @ A.T + 2.0 * np.eye(len(A))).ravel() for A in roots])
    law = [COULOMB if d > 1 else FRICTIONLESS for d in dims] + [COMPLIANT]
    counts = [*dims, 1]
    row = np.cumsum([0, *counts])
    panel_tree = [t for i in range(len(dims)) for t in (i, i + 1)] + [0]
    of = [i for i in range(len(dims)) for _ in range(2)] + [len(dims)]
    values = [rng.normal(size=counts[i] * sizes[t]) for i, t in zip(of, panel_tree, strict=True)]
    target = 0.1 * rng.normal(size=row[-1])
    friction = np.full(row[-1], 0.7)
    friction[row[1:-2] + 2] = 0.3  # another coefficient along the second tangent
    soft = compliance * rng.uniform(0.5, 2.0, size=row[-1])
    soft[-1] = 0.2
    for i in range(len(dims)):  # of all tangents of a contact, by their coefficients
        along = slice(row[i] + 1, row[i + 1])
        soft[along] = compliance / friction[along] ** 2
    return Arrays(
        tree, np.cumsum([0, *sizes**2]), inertia, rng.normal(size=tree[-1]), np.array(law), row,
        np.array([*range(0, 2 * len(dims) + 1, 2), 2 * len(dims) + 1]), np.array(panel_tree),
        np.cumsum([0, *map(len, values)])[:-1], np.concatenate(values), target, friction,
        np.zeros(row[-1]), soft,
    )  # fmt: skip


def dense(a: Arrays) -> tuple[np.ndarray, np.ndarray]:
    """Inertia and rows as matrices."""
    m, n = a.tree[-1], len(a.law)
    A, J = np.zeros((m, m)), np.zeros((a.row[-1], m))
    for t in range(len(a.tree) - 1):
        i, j = a.tree[t], a.tree[t + 1]
        A[i:j, i:j] = a.inertia[a.block[t] : a.block[t + 1]].reshape(j - i, j - i)
    for i in range(n):
        for p in range(a.panel[i], a.panel[i + 1]):
            t, dim = a.panel_tree[p], a.row[i + 1] - a.row[i]
            size = a.tree[t + 1] - a.tree[t]
            J[a.row[i] : a.row[i + 1], a.tree[t] : a.tree[t + 1]] = (
                a.values[a.panel_at[p] : a.panel_at[p] + dim * size].reshape(dim, size)
            )  # fmt: skip
    return A, J


def solved(a: Arrays) -> tuple[Answer, int]:
    """The answer, with as much memory as is asked for, and how much that is."""
    size, m = len(a.inertia), len(a.free)
    f = Factors(np.zeros(size), np.zeros(size + m, dtype=np.int64),
                np.zeros(len(a.tree) - 1, dtype=np.int64))  # fmt: skip
    answer = Answer(a.free.copy(), np.zeros(a.row[-1]),
                    np.full(len(a.law), int(ContactState.UNKNOWN)), np.zeros(REPORT))  # fmt: skip
    room, asked = 0, -1
    while asked != room:
        room = max(asked, 0)
        memory = np.full(room + BEYOND, MARK)
        work = memory[:room]
        asked = needed(a, f, answer, work, work.view(np.int64))
        assert (memory[room:] == MARK).all()
    status = solve(a, f, answer, work, work.view(np.int64), 1e-4, DEFAULT.numbers())
    assert status == SolveStatus.SOLVED
    assert (memory[room:] == MARK).all()
    return answer, room


def law_miss(a: Arrays, answer: Answer) -> float:
    """How far an answer is from the law that the module states."""
    A, J = dense(a)
    r = answer.impulse
    motion = a.free + np.linalg.solve(A, J.T @ r)
    worst = np.abs(motion - answer.velocity).max()
    u = J @ motion - a.target + a.compliance * r
    for i, law in enumerate(a.law):
        k, end = a.row[i], a.row[i + 1]
        if law == COMPLIANT:
            worst = max(worst, abs(u[k]))
            continue
        worst = max(worst, -u[k], -r[k], min(u[k], r[k]))
        mu = a.friction[k + 1 : end]
        if law == COULOMB and r[k] > 0.0:
            pull, along = r[k + 1 : end] / mu, u[k + 1 : end] * mu
            speed = np.linalg.norm(along)
            worst = max(worst, np.linalg.norm(pull) - r[k])
            worst = max(worst, pull @ along / r[k] + speed)  # as much against it as can be
    return worst


@pytest.mark.parametrize("compliance", [1e-3, 0.1, 1.0, 30.0])
def test_answers_obey_the_law(compliance: float) -> None:
    pressed = slides = 0
    for seed in range(30):
        a = problem(seed, compliance)
        answer, _ = solved(a)
        assert law_miss(a, answer) <= 1e-9
        pressed += np.count_nonzero(answer.impulse[a.row[:-2]] > 0.0)
        slides += np.count_nonzero(answer.state == ContactState.SLIDE)
    assert pressed > 30
    assert slides > 10


def rigid(a: Arrays) -> Arrays:
    return a._replace(compliance=np.where(np.arange(a.row[-1]) < a.row[-2], 0.0, a.compliance))


def test_little_compliance_tends_to_rigid_contact() -> None:
    for seed in range(20):
        a = problem(seed, 1.0, (1, 3, 3))  # a chain: one motion alone obeys the law
        stiff = a._replace(compliance=np.where(a.law[np.repeat(range(len(a.law)), np.diff(a.row))]
                                               == COMPLIANT, a.compliance, 1e-9))  # fmt: skip
        one, two = solved(rigid(a))[0], solved(stiff)[0]
        speed = 1.0 + np.abs(one.velocity).max()
        assert np.abs(one.velocity - two.velocity).max() <= 1e-6 * speed


def test_without_compliance_nothing_is_added() -> None:
    a = problem(3, 0.0)
    assert solved(a)[1] < solved(problem(3, 0.1))[1]


def test_much_compliance_carries_little() -> None:
    a = problem(5, 1e8)
    answer, _ = solved(a)
    assert np.abs(answer.impulse[:-1]).max() < 1e-6


def test_drag_is_not_compliance_of_the_contact() -> None:
    """Viscous tangents have one of their own; the normal gives way beside them."""
    for seed in range(10):
        a = problem(seed, 0.3, (3, 3))
        a = a._replace(law=np.array([VISCOUS, VISCOUS, COMPLIANT]))
        answer, _ = solved(a)
        A, J = dense(a)
        motion: Any = a.free + np.linalg.solve(A, J.T @ answer.impulse)
        u = J @ motion - a.target + a.compliance * answer.impulse
        assert np.abs(motion - answer.velocity).max() < 1e-10
        for i in range(2):
            k = a.row[i]
            assert np.abs(u[k + 1 : k + 3]).max() < 1e-9
            assert max(-u[k], -answer.impulse[k], min(u[k], answer.impulse[k])) < 1e-9
