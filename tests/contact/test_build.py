"""From problems to arrays: nothing is lost, and trees are as small as they may be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contact_cases import Fields, contact_fields, with_extras
from holdfast import ContactProblem
from holdfast.contact.arrays import Answer, Arrays, LawKind
from holdfast.contact.build import DEFAULT_NUMBERS, LEFT_OUT, Laws, build_arrays, solve_laws
from holdfast.contact.ladder import BY_RUNG, FACTORISATIONS, REPORT, Rung
from holdfast.contact.solve import solve
from holdfast.models._newton import make_laws

COULOMB, NO_SLIP, FRICTIONLESS = (
    int(kind) for kind in (LawKind.COULOMB, LawKind.NO_SLIP, LawKind.FRICTIONLESS)
)
seeds = st.integers(0, 2**32 - 1)


def rows_of(a: Arrays) -> np.ndarray:
    """All rows, dense."""
    rows = np.zeros((len(a.target), len(a.free)))
    for i in range(len(a.law)):
        first, end = a.row[i], a.row[i + 1]
        for p in range(a.panel[i], a.panel[i + 1]):
            begin, stop = a.tree[a.panel_tree[p]], a.tree[a.panel_tree[p] + 1]
            size = (end - first) * (stop - begin)
            values = a.values[a.panel_at[p] : a.panel_at[p] + size]
            rows[first:end, begin:stop] = values.reshape(end - first, -1)
    return rows


def inertia_of(a: Arrays) -> np.ndarray:
    M = np.zeros((len(a.free), len(a.free)))
    for t in range(len(a.tree) - 1):
        begin, end = a.tree[t], a.tree[t + 1]
        M[begin:end, begin:end] = a.inertia[a.block[t] : a.block[t + 1]].reshape(end - begin, -1)
    return M


def laws_of(problem: ContactProblem, law: int, **more: Any) -> Laws:
    return make_laws(problem, np.full(problem.n, law), **more)


@given(contact_fields(targets=True), seeds)
def test_nothing_is_lost(fields: Fields, seed: int) -> None:
    """Rows N, S, T, R of each contact, then U, D and J; inertia, targets and bounds."""
    rng = np.random.default_rng(seed)
    p = ContactProblem(**with_extras(rng, fields))
    a = build_arrays(p, laws_of(p, NO_SLIP))
    rows, target = [], []
    for i in range(p.n):
        turning = p.R[p.R_contact == i]
        rows += [p.N[i], p.S[i], p.T[i], *turning]
        target += [p.c_N[i], 0.0, 0.0, *np.zeros(len(turning))]
    rows += [*p.U, *p.D, *p.J]
    target += [*p.c_U, *np.zeros(len(p.D)), *p.c_J]
    np.testing.assert_array_equal(rows_of(a), np.reshape(rows, (-1, p.m)))
    np.testing.assert_array_equal(a.target, target)
    np.testing.assert_array_equal(inertia_of(a), p.inertia)
    np.testing.assert_array_equal(a.free, p.free_velocity)
    brakes = a.row[p.n + len(p.U) : p.n + len(p.U) + len(p.D)]
    np.testing.assert_array_equal(a.bound[brakes], p.D_bound)


def test_rows_that_carry_nothing_are_left_out() -> None:
    rng = np.random.default_rng(0)
    N, S, T = rng.normal(size=(3, 3, 6))
    p = ContactProblem(
        M=np.eye(6), v=np.zeros(6), N=N, S=S, T=T, R=rng.normal(size=(2, 6)), R_contact=[0, 2],
        mu_R=[0.0, 0.1], J=rng.normal(size=(2, 6)), compliance_J=[0.0, 0.5],
    )  # fmt: skip
    mu = np.array([[0.5, 0.5], [0.0, 0.0], [0.3, 0.0]])
    laws = laws_of(p, COULOMB, mu=mu)
    a = build_arrays(p, laws)
    np.testing.assert_array_equal(np.diff(a.row), [3, 1, 3, 1, 1])
    rigid, soft = int(LawKind.RIGID), int(LawKind.COMPLIANT)
    np.testing.assert_array_equal(a.law, [COULOMB, FRICTIONLESS, COULOMB, rigid, soft])
    np.testing.assert_array_equal(a.friction[4:7], [0.0, 0.3, 0.1])
    assert a.compliance[-1] == 0.5
    fewer = build_arrays(p, laws._replace(joint=np.array([LEFT_OUT, soft])))
    np.testing.assert_array_equal(np.diff(fewer.row), [3, 1, 3, 0, 1])
    free = build_arrays(p, laws_of(p, FRICTIONLESS))
    np.testing.assert_array_equal(np.diff(free.row), [1, 1, 1, 1, 1])


def trees(p: ContactProblem) -> list[int]:
    return build_arrays(p, laws_of(p, NO_SLIP)).tree.tolist()


def test_a_tree_for_each_block() -> None:
    rng = np.random.default_rng(1)
    blocks = np.tile(np.eye(3), (4, 1, 1))
    N = np.zeros((2, 12))
    N[0, :6], N[1, 6:] = rng.normal(size=(2, 6))
    assert trees(ContactProblem(M=blocks, v=np.zeros(12), N=N)) == [0, 3, 6, 9, 12]


def test_a_dense_inertia_is_split_into_bodies() -> None:
    """Free bodies with a diagonal inertia: each is one tree, not six."""
    rng = np.random.default_rng(2)
    N, S, T = np.zeros((3, 3, 18))
    for rows in (N, S, T):
        rows[0, :12], rows[1, 6:], rows[2, :6] = rng.normal(size=12), rng.normal(size=12), 1.0
    assert trees(ContactProblem(M=np.eye(18), v=np.zeros(18), N=N, S=S, T=T)) == [0, 6, 12, 18]


def test_a_row_that_touches_everything_makes_one_tree() -> None:
    N = np.vstack([np.ones(9), np.eye(9)])
    assert trees(ContactProblem(M=np.eye(9), v=np.zeros(9), N=N)) == [0, 9]


def test_interleaved_coordinates_are_one_tree() -> None:
    M = np.eye(4)
    M[0, 2] = M[2, 0] = M[1, 3] = M[3, 1] = 0.1
    N = np.diag([1.0, 2.0, 3.0, 4.0])
    assert trees(ContactProblem(M=M, v=np.zeros(4), N=N)) == [0, 4]


@pytest.mark.parametrize("m", [0, 3])
def test_no_contacts(m: int) -> None:
    p = ContactProblem(M=np.eye(m), v=np.ones(m))
    a = build_arrays(p, laws_of(p, COULOMB))
    assert len(a.law) == 0 and a.row.tolist() == [0] and a.panel.tolist() == [0]


# --- the solve ------------------------------------------------------------------------------------


@given(seeds, st.integers(1, 7), st.booleans())
def test_few_rows_of_a_large_tree(seed: int, n: int, joints: bool) -> None:
    """The tree is reduced to what its rows see; its motion is that of the whole problem."""
    rng, m = np.random.default_rng(seed), 40
    A = rng.normal(size=(m, m))
    N, S, T = rng.normal(size=(3, n, m))
    p = ContactProblem(
        M=A @ A.T + np.eye(m), v=rng.normal(size=m), N=N, S=S, T=T,
        J=rng.normal(size=(2 if joints else 0, m)),
    )  # fmt: skip
    laws = laws_of(p, COULOMB, mu=np.full(n, 0.6))
    reduced = solve_laws(p, laws, DEFAULT_NUMBERS)
    a, work = build_arrays(p, laws), np.zeros(20_000)
    count = len(a.law)
    whole = Answer(np.array(p.v), np.zeros(len(a.target)), np.full(count, -1), np.zeros(REPORT))
    assert solve(a, whole, work, work.view(np.int64), DEFAULT_NUMBERS) == 0
    assert reduced.status == 0
    scale = np.sqrt(p.v @ p.M @ p.v)
    d = reduced.velocity - whole.velocity
    assert np.sqrt(d @ p.M @ d) <= 1e-9 * scale


@pytest.mark.parametrize("push", [0.0, 0.2])
def test_what_can_stick_is_found_at_once(push: float) -> None:
    """A box on its corners under gravity: one linear system, or two."""
    corners = np.array([[x, y, -0.1] for x in (-0.1, 0.1) for y in (-0.1, 0.1)])
    rows = [[np.r_[axis, np.cross(at, axis)] for at in corners] for axis in np.eye(3)]
    p = ContactProblem(
        M=np.diag([1.0, 1.0, 1.0, 0.01, 0.01, 0.01]), v=np.zeros(6), h=0.01,
        f=[9.81 * push, 0.0, -9.81, 0.0, 0.0, 0.0], N=rows[2], S=rows[0], T=rows[1],
    )  # fmt: skip
    solved = solve_laws(p, laws_of(p, COULOMB, mu=np.full(4, 0.5)), DEFAULT_NUMBERS)
    assert solved.report[FACTORISATIONS] <= 2
    assert solved.report[BY_RUNG + Rung.STATES] == 1
    np.testing.assert_allclose(solved.velocity, 0.0, atol=1e-15)
