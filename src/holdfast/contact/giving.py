r"""Contacts that give way, solved as rigid ones that have coordinates of their own.

A contact whose rows have a compliance R answers by

.. math::

    0 \le r_N \perp u_N + R_N r_N \ge 0, \qquad |r_T| \le \mu r_N, \qquad
    u_T + R_T r_T \ne 0 \Rightarrow r_T = -\mu r_N \frac{u_T + R_T r_T}{|u_T + R_T r_T|} :

where it sticks it creeps by :math:`-R_T r_T`, and where it slides friction is that of Coulomb's
law. Let each row have a coordinate w of unit inertia, which nothing but this row moves, and by
:math:`\sqrt R`. In this larger problem it sees :math:`u + \sqrt R\, w = u + R r`, and the law above
is that of a rigid contact. So nothing else of the solve knows of it. The coordinates of a contact
are a tree, which elimination begins with: the matrix of the bodies is no larger than before.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

import numpy as np

from holdfast._jit import kernel
from holdfast.contact.arrays import (
    Answer,
    Arrays,
    Factors,
    LawKind,
    SolveStatus,
    row_speed,
)
from holdfast.contact.ladder import NEEDED
from holdfast.contact.near import memory_needed, solve_near
from holdfast.contact.options import Numbers
from holdfast.contact.reduce import copy
from holdfast.linalg.vectors import square

_COULOMB, _VISCOUS = int(LawKind.COULOMB), int(LawKind.VISCOUS)
_MORE_MEMORY = int(SolveStatus.MORE_MEMORY)


@kernel
def solve_giving(a: Arrays, f: Factors, answer: Answer, work: np.ndarray, words: np.ndarray,
                 near: float, o: Numbers) -> int:  # fmt: skip
    """Solve as `solve_near` does, where contacts may give way.

    A contact does if its first row has a compliance: along all rows if it has Coulomb friction,
    otherwise along its normal alone.
    """
    more = count_own(a)
    if more[0] == 0:
        return solve_near(a, f, answer, work, words, near, o)
    used = size_enlarged(a, more)
    if used > work.shape[0]:
        answer.report[NEEDED] = used
        return _MORE_MEMORY
    big, factors, velocity = enlarge(a, f, answer, more, work, words)
    status = solve_near(
        big, factors, Answer(velocity, answer.impulse, answer.state, answer.report), work[used:],
        words[used:], near, o,
    )  # fmt: skip
    answer.report[NEEDED] += used
    copy(velocity[: a.free.shape[0]], answer.velocity)
    return status


@kernel
def memory_if_giving(a: Arrays, f: Factors, answer: Answer, work: np.ndarray,
                     words: np.ndarray) -> int:  # fmt: skip
    """Return the memory that a solve needs; if there is too little to find out, what that needs.

    The memory at hand may be written to.
    """
    more = count_own(a)
    if more[0] == 0:
        return memory_needed(a)
    used = size_enlarged(a, more)
    if used > work.shape[0]:
        return used
    return used + memory_needed(enlarge(a, f, answer, more, work, words)[0])


@kernel
def own_rows(a: Arrays, i: int) -> int:
    """Return how many rows of constraint i give way, as rows of a contact."""
    rows = a.row[i + 1] - a.row[i]
    if a.law[i] > _VISCOUS or rows == 0 or a.panel[i + 1] == a.panel[i]:
        return 0
    if not a.compliance[a.row[i]] > 0.0:
        return 0
    return rows if a.law[i] == _COULOMB else 1


@kernel
def count_own(a: Arrays) -> tuple[int, int, int, int]:
    """Return how many more trees, coordinates and entries of inertia and panels are needed."""
    trees = coordinates = entries = values = 0
    for i in range(a.law.shape[0]):
        s = own_rows(a, i)
        trees += s > 0
        coordinates += s
        entries += s * s
        values += s * (a.row[i + 1] - a.row[i])
    return trees, coordinates, entries, values


@kernel
def size_enlarged(a: Arrays, more: tuple[int, int, int, int]) -> int:
    """Return the memory of the larger problem, its factors and its velocity."""
    trees, m = a.tree.shape[0] - 1 + more[0], a.free.shape[0] + more[1]
    n, panels = a.law.shape[0], a.panel[a.law.shape[0]] + more[0]
    entries, values = a.inertia.shape[0] + more[2], a.values.shape[0] + more[3]
    return 3 * trees + 2 + n + 1 + 2 * panels + 3 * entries + 3 * m + values


@kernel
def answer_motion(a: Arrays, i: int, motion: np.ndarray, own_out: np.ndarray) -> None:
    """Fill the coordinates of contact i with what its law answers to a motion.

    So states that are read from the motion before a step are those of the law at this motion.
    """
    first, push, pull = a.row[i], 0.0, 0.0
    for e in range(own_out.shape[0]):
        u = row_speed(a, i, e, motion) - a.target[first + e]
        own_out[e] = -u / a.compliance[first + e]
        if e == 0:
            push = own_out[0] = max(own_out[0], 0.0)
        elif a.friction[first + e] > 0.0:
            pull += square(own_out[e] / a.friction[first + e])
    part = min(1.0, push / np.sqrt(pull)) if pull > 0.0 else 0.0
    for e in range(own_out.shape[0]):
        own_out[e] *= np.sqrt(a.compliance[first + e]) * (1.0 if e == 0 else part)


@kernel
def enlarge(
    a: Arrays, f: Factors, answer: Answer, more: tuple[int, int, int, int], work: np.ndarray,
    words: np.ndarray,
) -> tuple[Arrays, Factors, np.ndarray]:  # fmt: skip
    """Make the larger problem in this memory; return it, its factors, and the velocity before.

    Factors that are known are taken over.
    """
    old, n = a.tree.shape[0] - 1, a.law.shape[0]
    trees, m = old + more[0], a.free.shape[0] + more[1]
    size, count, panels = a.inertia.shape[0] + more[2], a.values.shape[0] + more[3], a.panel[n]
    at = 0
    tree, block = words[at : at + trees + 1], words[at + trees + 1 : at + 2 * trees + 2]
    at += 2 * trees + 2
    known, panel = words[at : at + trees], words[at + trees : at + trees + n + 1]
    at += trees + n + 1
    panels += more[0]
    panel_tree, panel_at = words[at : at + panels], words[at + panels : at + 2 * panels]
    at += 2 * panels
    inertia, L = work[at : at + size], work[at + size : at + 2 * size]
    at += 2 * size
    below = words[at : at + size + m]
    at += size + m
    free, velocity = work[at : at + m], work[at + m : at + 2 * m]
    at += 2 * m
    values = work[at : at + count]
    copy(a.tree, tree[: old + 1])
    copy(a.block, block[: old + 1])
    copy(f.known, known[:old])
    copy(a.inertia, inertia[: a.inertia.shape[0]])
    copy(f.L, L[: a.inertia.shape[0]])
    copy(f.below, below[: f.below.shape[0]])
    copy(a.free, free[: a.free.shape[0]])
    copy(answer.velocity, velocity[: a.free.shape[0]])
    copy(a.values, values[: a.values.shape[0]])
    t, p, entry = old, 0, a.values.shape[0]
    for i in range(n):
        panel[i] = p
        for k in range(a.panel[i], a.panel[i + 1]):
            panel_tree[p], panel_at[p] = a.panel_tree[k], a.panel_at[k]
            p += 1
        s, first, dim = own_rows(a, i), a.row[i], a.row[i + 1] - a.row[i]
        if s == 0:
            continue
        panel_tree[p], panel_at[p] = t, entry
        p += 1
        tree[t + 1], block[t + 1], known[t] = tree[t] + s, block[t] + s * s, 0
        for j in range(s * s):
            inertia[block[t] + j] = 1.0 if j % (s + 1) == 0 else 0.0
        for j in range(dim * s):
            values[entry + j] = 0.0
        for e in range(s):
            values[entry + e * s + e] = np.sqrt(a.compliance[first + e])
            free[tree[t] + e] = 0.0
        answer_motion(a, i, answer.velocity, velocity[tree[t] : tree[t] + s])
        entry += dim * s
        t += 1
    panel[n] = p
    big = Arrays(tree, block, inertia, free, a.law, a.row, panel, panel_tree, panel_at, values,
                 a.target, a.friction, a.bound, a.compliance)  # fmt: skip
    return big, Factors(L, below, known), velocity
