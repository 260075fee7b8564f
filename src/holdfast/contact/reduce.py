r"""Trees with more coordinates than constraint rows, reduced to the motions that the rows see.

A robot of a hundred joints that stands on two feet has a dozen rows. Whitened, with
:math:`A = L^T L` and :math:`y = L v`, the problem of a tree knows its motion only along the rows
:math:`w = L^{-T} g`: with an orthonormal basis Q of these,

.. math:: G y = (G Q^T) z, \qquad z = Q y, \qquad y^+ = y + Q^T (z^+ - z)

and z has unit inertia. The reduced problem has the same impulses, and its matrices are as small as
the number of rows.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

import numpy as np

from holdfast._jit import kernel
from holdfast.contact.arrays import Answer, Arrays, Factors, SolveStatus
from holdfast.contact.islands import takes_part
from holdfast.contact.ladder import NEEDED
from holdfast.contact.options import Numbers
from holdfast.contact.solve import factors_size, no_factors, solve_factored
from holdfast.contact.system import factor_of
from holdfast.linalg import ltl
from holdfast.linalg.vectors import add, dot
from holdfast.linalg.views import part, vector

WORTH = 0.6  # a tree is reduced if it has fewer rows than this part of its coordinates
SMALLEST = 12  # coordinates of a tree that is reduced
DEPENDENT = 1e-14  # part of a row that is not in the basis, and is rounding

_MORE_MEMORY, _NOT_DEFINITE = int(SolveStatus.MORE_MEMORY), int(SolveStatus.NOT_DEFINITE)


@kernel
def solve_reduced(a: Arrays, f: Factors, out: Answer, work: np.ndarray, words: np.ndarray,
                  o: Numbers) -> int:  # fmt: skip
    """Solve as `solve_factored` does, with trees reduced where that is worth it.

    `words` is the memory of `work`, as integers. Where it does not suffice, ``out.report[NEEDED]``
    says how much does.
    """
    trees, n = a.tree.shape[0] - 1, a.law.shape[0]
    if trees > work.shape[0]:
        out.report[NEEDED] = trees
        return _MORE_MEMORY
    rows = words[:trees]
    if not count_rows(a, out.state, rows):
        return solve_factored(a, f, out, work, words, o)
    panels, entries, square, total, bases = a.panel[n], 0, 0, 0, 0
    for t in range(trees):
        m, s = a.tree[t + 1] - a.tree[t], reduced_size(a, t, rows[t])
        square += s * s
        total += s
        if s < m and s > 0:
            bases += s * m + 2 * m
    for i in range(n):
        for p in range(a.panel[i], a.panel[i + 1]):
            t = a.panel_tree[p]
            entries += (a.row[i + 1] - a.row[i]) * reduced_size(a, t, rows[t])
    used = 3 * trees + 2 + panels + entries + square + 2 * total + bases
    if used > work.shape[0]:
        out.report[NEEDED] = used
        return _MORE_MEMORY
    at = trees
    tree, block = words[at : at + trees + 1], words[at + trees + 1 : at + 2 * trees + 2]
    at += 2 * trees + 2
    panel_at = words[at : at + panels]
    at += panels
    values = work[at : at + entries]
    at += entries
    inertia = work[at : at + square]
    at += square
    free, velocity = work[at : at + total], work[at + total : at + 2 * total]
    at += 2 * total
    small = Arrays(tree, block, inertia, free, a.law, a.row, a.panel, a.panel_tree, panel_at,
                   values, a.target, a.friction, a.bound, a.compliance)  # fmt: skip
    basis = work[at : at + bases]
    at += bases
    if not reduce_trees(a, f, out, rows, small, basis, velocity):
        return _NOT_DEFINITE
    used = at + factors_size(small)
    if used > work.shape[0]:
        out.report[NEEDED] = used
        return _MORE_MEMORY
    status = solve_factored(
        small, no_factors(small, work[at:], words[at:]),
        Answer(velocity, out.impulse, out.state, out.report), work[used:], words[used:], o,
    )  # fmt: skip
    out.report[NEEDED] += used
    if status == _MORE_MEMORY:
        return status
    expand(a, f, rows, small, velocity, basis, out.velocity)
    return status


@kernel
def copy(x: np.ndarray, out: np.ndarray) -> None:
    """Copy a vector."""
    for j in range(x.shape[0]):
        out[j] = x[j]


@kernel
def count_rows(a: Arrays, state: np.ndarray, rows_out: np.ndarray) -> bool:
    """Count the rows of each tree; return whether any is to be reduced."""
    for t in range(rows_out.shape[0]):
        rows_out[t] = 0
    for i in range(a.law.shape[0]):
        if takes_part(a, state, i):
            for p in range(a.panel[i], a.panel[i + 1]):
                rows_out[a.panel_tree[p]] += a.row[i + 1] - a.row[i]
    for t in range(rows_out.shape[0]):
        m = a.tree[t + 1] - a.tree[t]
        if rows_out[t] > 0 and reduced_size(a, t, rows_out[t]) < m:
            return True
    return False


@kernel
def reduced_size(a: Arrays, t: int, rows: int) -> int:
    """Return how many coordinates a tree has in the reduced problem; 0 if no row is about it."""
    m = a.tree[t + 1] - a.tree[t]
    if rows == 0 or (m >= SMALLEST and rows < WORTH * m):
        return rows
    return m


@kernel
def reduce_trees(a: Arrays, f: Factors, out: Answer, rows: np.ndarray, small: Arrays,
                 basis_out: np.ndarray, velocity_out: np.ndarray) -> bool:  # fmt: skip
    """Fill the reduced problem, the factors of trees that are reduced, and their bases.

    The velocity before the step, which stands in the answer, is reduced, too.

    Returns:
        Whether their inertia is definite.
    """
    trees, at = rows.shape[0], 0
    small.tree[0] = small.block[0] = 0
    place = 0
    for i in range(a.law.shape[0]):
        for p in range(a.panel[i], a.panel[i + 1]):
            t = a.panel_tree[p]
            small.panel_at[p] = place
            place += (a.row[i + 1] - a.row[i]) * reduced_size(a, t, rows[t])
    for t in range(trees):
        first, m = a.tree[t], a.tree[t + 1] - a.tree[t]
        s = reduced_size(a, t, rows[t])
        begin, square = small.tree[t], small.block[t]
        small.tree[t + 1], small.block[t + 1] = begin + s, square + s * s
        if s == m:
            copy(vector(a.inertia, a.block[t], m * m), vector(small.inertia, square, m * m))
            copy(a.free[first : first + m], small.free[begin : begin + m])
            copy(out.velocity[first : first + m], velocity_out[begin : begin + m])
            continue
        if s == 0:
            continue
        L, below = factor_of(a, f, t)
        if f.known[t] == 0 and not ltl.factor(part(a.inertia, a.block[t], m, m), L, below):
            return False
        f.known[t] = 1
        _, y, before, at = basis_at(basis_out, at, m, s)
        ltl.motion_to_white(L, below, a.free[first : first + m], y)
        ltl.motion_to_white(L, below, out.velocity[first : first + m], before)
        for j in range(s * s):
            small.inertia[square + j] = 1.0 if j % (s + 1) == 0 else 0.0
    take_rows(a, f, out.state, rows, small, basis_out)
    at = 0
    for t in range(trees):
        m, s = a.tree[t + 1] - a.tree[t], reduced_size(a, t, rows[t])
        if 0 < s < m:
            Q, y, before, at = basis_at(basis_out, at, m, s)
            for j in range(s):
                small.free[small.tree[t] + j] = dot(Q[j], y)
                velocity_out[small.tree[t] + j] = dot(Q[j], before)
    return True


@kernel
def basis_at(
    basis: np.ndarray, at: int, m: int, s: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Return basis and whitened motions of a tree, free and before; and where the next ones are."""
    end = at + s * m
    return part(basis, at, s, m), vector(basis, end, m), vector(basis, end + m, m), end + 2 * m


@kernel
def take_rows(a: Arrays, f: Factors, state: np.ndarray, rows: np.ndarray, small: Arrays,
              basis_out: np.ndarray) -> None:  # fmt: skip
    """Fill the rows of the reduced problem, tree by tree, and the bases."""
    at = 0
    for t in range(rows.shape[0]):
        m, s = a.tree[t + 1] - a.tree[t], reduced_size(a, t, rows[t])
        reduced, known = 0 < s < m, 0
        if s == 0:
            continue
        L, below = factor_of(a, f, t)
        m_basis, s_basis = (m, s) if reduced else (0, 0)
        Q, _, _, at = basis_at(basis_out, at, m_basis, s_basis)
        for i in range(a.law.shape[0]):
            if not takes_part(a, state, i):
                continue
            for p in range(a.panel[i], a.panel[i + 1]):
                if a.panel_tree[p] != t:
                    continue
                for e in range(a.row[i + 1] - a.row[i]):
                    here, there = a.panel_at[p] + e * m, small.panel_at[p] + e * s
                    out = small.values[there : there + s]
                    if not reduced:
                        copy(a.values[here : here + m], out)
                        continue
                    q = Q[known]
                    copy(a.values[here : here + m], q)
                    ltl.to_white(L, below, q)
                    join_basis(Q, known, out)
                    known += 1


@kernel
def join_basis(Q: np.ndarray, known: int, coefficients_out: np.ndarray) -> None:
    """Make row `known` of Q orthonormal to those before it; fill what it was in the basis.

    One that depends on them becomes zero. Gram and Schmidt, twice: that is enough.
    """
    q = Q[known]
    length = np.sqrt(dot(q, q))
    for j in range(coefficients_out.shape[0]):
        coefficients_out[j] = 0.0
    for _ in range(2):
        for j in range(known):
            c = dot(Q[j], q)
            if c != 0.0:
                coefficients_out[j] += c
                add(-c, Q[j], q)
    rest = np.sqrt(dot(q, q))
    new = rest > DEPENDENT * length
    coefficients_out[known] = rest if new else 0.0
    for k in range(q.shape[0]):
        q[k] = q[k] / rest if new else 0.0


@kernel
def expand(a: Arrays, f: Factors, rows: np.ndarray, small: Arrays, velocity: np.ndarray,
           basis: np.ndarray, velocity_out: np.ndarray) -> None:  # fmt: skip
    """Fill the velocity of all coordinates."""
    at = 0
    for t in range(rows.shape[0]):
        first, m = a.tree[t], a.tree[t + 1] - a.tree[t]
        s, begin = reduced_size(a, t, rows[t]), small.tree[t]
        v = velocity_out[first : first + m]
        if s == m:
            copy(velocity[begin : begin + m], v)
        elif s == 0:
            copy(a.free[first : first + m], v)
        else:
            L, below = factor_of(a, f, t)
            Q, y, _, at = basis_at(basis, at, m, s)
            copy(y, v)
            for j in range(s):
                add(velocity[begin + j] - small.free[begin + j], Q[j], v)
            ltl.from_white(L, below, v)
