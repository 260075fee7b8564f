"""Given states solved in the impulses: against NumPy, and against the system in the motion."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from holdfast._jit import entry
from holdfast.contact import delassus
from holdfast.contact.active_set import solve_linear
from holdfast.contact.cone import OPEN, SLIDE, STICK
from holdfast.contact.newton import Island, Vectors, relative_speeds
from holdfast.contact.system import DISC, HELD, LINEAR, NOTHING, System
from holdfast.linalg.block_lu import Pattern

RHO, TINY = 1e-6, 1e-14


@entry
def by_rows(sy, isl, v, state, rows):
    relative_speeds(sy, isl, sy.y0, v.free)
    delassus.solve_rows(sy, isl, v, state, RHO, rows, 1e-15, 8, TINY, False)


@entry
def by_motion(sy, isl, size, v, CG, state):
    relative_speeds(sy, isl, sy.y0, v.free)
    solve_linear(sy, isl, size, v, CG, state, RHO, 1e-15)


@entry
def rows_that_carry(sy, isl, state):
    return delassus.count_rows(sy, isl, state)


class Problem:
    """Constraints of one tree, with kinds (normal, tangent, rows), all in given states."""

    def __init__(self, rng, m: int, kinds: list[tuple[int, int, int]], states: list[int]) -> None:
        n, row = len(kinds), np.cumsum([0] + [dim for *_, dim in kinds])
        rows = row[-1]
        self.G = rng.normal(size=(rows, m))
        self.G /= np.linalg.norm(self.G, axis=1)[:, None]
        self.m, self.row, self.state = m, row, np.array(states, dtype=np.int64)
        self.c, self.R = 0.3 * rng.normal(size=rows), np.zeros(rows)
        self.y0 = rng.normal(size=m)
        self.normal = np.array([k[0] for k in kinds], dtype=np.int64)
        self.tangent = np.array([k[1] for k in kinds], dtype=np.int64)
        for i in range(n):
            if self.tangent[i] == LINEAR:
                self.R[row[i] + self.normal[i] : row[i + 1]] = 0.5
        self.mu, self.bound = rng.uniform(0.1, 0.4, n), rng.uniform(0.1, 1.0, n)
        self.r, self.u = rng.normal(size=(2, rows))
        self.r[row[:-1]] = np.abs(self.r[row[:-1]])

    def system(self) -> tuple[System, Island, Vectors, np.ndarray]:
        n, m, rows = len(self.normal), self.m, self.row[-1]
        whole, one = np.arange(n + 1), np.zeros(1, dtype=np.int64)
        sy = System(
            np.array([0, m]), self.row, whole, np.zeros(n, dtype=np.int64), self.row[:-1] * m,
            self.y0, self.y0.copy(), self.G.ravel(), self.c, self.R, self.normal, self.tangent,
            self.mu, self.bound, np.ones(rows),
        )  # fmt: skip
        pattern = Pattern(one, np.array([m]), one, one.reshape(1, 1), one.reshape(1, 1), one)
        dims = np.diff(self.row)
        memory = np.zeros(2 * rows * rows + 5 * rows)
        isl = Island(whole[:-1], pattern, 1, one, np.zeros(m * m), memory,
                     np.zeros((dims**2).sum()), np.cumsum([0, *dims**2]),
                     float(np.linalg.norm(self.y0)))  # fmt: skip
        motions, by_row = np.zeros((6, m)), np.zeros((6, rows))
        by_row[0], by_row[2] = self.u, self.r
        return sy, isl, Vectors(*motions, *by_row), np.zeros(m * 6)

    def equations(self, r: np.ndarray) -> np.ndarray:
        """What is left of the law of the states, row by row, without compliance."""
        u = self.G @ (self.y0 + self.G.T @ r) - self.c
        left = r.copy()  # what carries nothing
        for i in range(len(self.normal)):
            first, end, kind = self.row[i], self.row[i + 1], self.tangent[i]
            begin, state = first + self.normal[i], self.state[i]
            if self.normal[i] and state != OPEN:
                left[first] = u[first]
            here = slice(begin, end)
            if kind == HELD or (kind == DISC and state == STICK):
                left[here] = u[here]
            elif kind == LINEAR:
                left[here] = u[here] + self.R[here] * r[here]
            elif kind == DISC and not self.normal[i]:
                left[first] = r[first] - np.copysign(self.bound[i], self.r[first] - self.u[first])
            elif kind == DISC and state == SLIDE:
                pull = self.r[here] - self.u[here]
                size, limit = np.linalg.norm(pull), self.mu[i] * self.r[first]
                q = pull / size
                kappa = 1.0 / RHO
                if size > limit * (1.0 + RHO):
                    kappa = min(kappa, limit / (size - limit))
                across = u[here] - q * (q @ u[here])
                left[here] = r[here] - self.mu[i] * r[first] * q + kappa * across
        return left


CONSTRAINTS = st.sampled_from([
    ((1, DISC, 3), STICK), ((1, DISC, 3), SLIDE), ((1, DISC, 3), OPEN), ((1, DISC, 4), SLIDE),
    ((1, NOTHING, 1), STICK), ((0, DISC, 1), STICK), ((0, DISC, 1), SLIDE), ((0, HELD, 1), STICK),
    ((0, LINEAR, 1), STICK), ((1, LINEAR, 3), SLIDE), ((1, LINEAR, 3), OPEN), ((1, HELD, 3), STICK),
])  # fmt: skip


@given(st.integers(0, 2**32 - 1), st.lists(CONSTRAINTS, min_size=1, max_size=6))
def test_the_law_of_given_states_holds(seed: int, drawn: list) -> None:
    rows = sum(kind[2] for kind, _ in drawn)
    p = Problem(np.random.default_rng(seed), rows + 4, [k for k, _ in drawn], [s for _, s in drawn])
    columns = np.stack([p.equations(e) - p.equations(np.zeros(rows)) for e in np.eye(rows)], axis=1)
    assume(np.linalg.cond(columns) < 1e4)
    expected = np.linalg.solve(columns, -p.equations(np.zeros(rows)))
    sy, isl, v, _ = p.system()
    by_rows(sy, isl, v, p.state, rows_that_carry(sy, isl, p.state))
    np.testing.assert_allclose(v.new, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


@given(st.integers(0, 2**32 - 1), st.integers(1, 3), st.booleans())
def test_the_answer_is_that_of_the_system_in_the_motion(seed: int, copies: int, slides: bool):
    """Also where rows depend on each other: copies of a contact share its load equally.

    Also where rows are independent, and the answer is found without compliance, impulses are told
    as compliance changes them: that decides about constraints which only touch.
    """
    rng = np.random.default_rng(seed)
    kinds, states = [(1, DISC, 3)] * (2 * copies), [STICK] * (2 * copies)
    if slides:
        states[:copies] = [SLIDE] * copies
    p = Problem(rng, 6 * copies + 3, kinds, states)
    for array in (p.G, p.c, p.r, p.u):
        for k in range(1, copies):
            array[3 * k : 3 * k + 3] = array[:3]
            array[3 * (copies + k) : 3 * (copies + k) + 3] = array[3 * copies : 3 * copies + 3]
    p.mu[:copies], p.mu[copies:] = p.mu[0], p.mu[copies]
    columns = np.linalg.svd(p.G[[*range(3), *range(3 * copies, 3 * copies + 3)]], compute_uv=False)
    assume(columns[-1] > 0.1)
    sy, isl, v, _ = p.system()
    by_rows(sy, isl, v, p.state, rows_that_carry(sy, isl, p.state))
    other_sy, other_isl, other, CG = p.system()
    by_motion(other_sy, other_isl, p.m * p.m, other, CG, p.state)
    size = np.abs(other.new).max()
    np.testing.assert_allclose(v.new, other.new, atol=1e-7 * size)
    np.testing.assert_allclose(p.G.T @ v.new, p.G.T @ other.new, atol=1e-11 * size)
    if copies == 1:
        gives = p.G.T @ (v.r - v.new)
        np.testing.assert_allclose(gives, p.G.T @ (other.r - other.new), atol=0.01 * RHO * size)
    shares = v.new.reshape(2, copies, 3)
    np.testing.assert_allclose(shares, shares[:, :1].repeat(copies, axis=1), atol=1e-7 * size)


@pytest.mark.parametrize(("kind", "state", "carries"), [
    ((1, DISC, 3), OPEN, 0), ((1, DISC, 3), SLIDE, 3), ((0, DISC, 1), SLIDE, 1),
    ((1, NOTHING, 1), OPEN, 0), ((1, LINEAR, 3), OPEN, 3),
])  # fmt: skip
def test_rows_that_carry_nothing_are_left_out(kind, state: int, carries: int) -> None:
    p = Problem(np.random.default_rng(0), 8, [kind], [state])
    sy, isl, *_ = p.system()
    assert rows_that_carry(sy, isl, p.state) == carries
