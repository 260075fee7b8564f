"""From a contact problem and a law for each contact to the arrays of the solve, and back.

Constraints stand in the order contacts, rows of U, rows of D, rows of J; the rows of a contact are
N, S, T, then its rows of R. Rows that carry nothing under their law are left out.

Trees are the blocks of M. A dense M is split into the connected components of its pattern, which
must be consecutive coordinates. Neighbouring ones that the same constraints touch are one tree
again, and so are all that stand between the first and the last one of a constraint that touches
more than `MOST_PANELS`: many tiny blocks would cost more than a few with zeros in them.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from holdfast._jit import COMPILED, entry, kernel
from holdfast.contact.arrays import Answer, Arrays, LawKind, SolveStatus
from holdfast.contact.ladder import NEEDED, REPORT, RESIDUAL
from holdfast.contact.options import Numbers, Options
from holdfast.contact.prediction import FROM_MOTION
from holdfast.contact.problem import ContactProblem
from holdfast.contact.reduce import solve_reduced
from holdfast.contact.solve import factors_size, no_factors

MOST_PANELS = 4  # trees that a constraint touches before they are made one
ULPS = 4.0 * np.finfo(float).eps  # relative rounding of an impulse that was scaled and back
LEFT_OUT = -1  # law of a row of J that takes no part

FRICTIONLESS, COULOMB = int(LawKind.FRICTIONLESS), int(LawKind.COULOMB)
NO_SLIP, VISCOUS, DRY = int(LawKind.NO_SLIP), int(LawKind.VISCOUS), int(LawKind.DRY)
RIGID, COMPLIANT = int(LawKind.RIGID), int(LawKind.COMPLIANT)
MORE_MEMORY = int(SolveStatus.MORE_MEMORY)

# Places of the lists below, and of their sizes, in the first words of the work array.
TREES, CONSTRAINTS, ROWS, PANELS, INERTIA, VALUES, WORDS, NUMBERS, END, SIZES = range(10)


class Laws(NamedTuple):
    """What is asked of a problem beside its rows: a law for each contact, and its numbers."""

    contact: np.ndarray  # (n,) LawKind
    joint: np.ndarray  # (j,) RIGID, COMPLIANT or LEFT_OUT
    friction: np.ndarray  # (rows of the stack,) Coulomb coefficients of S, T and R
    compliance: np.ndarray  # (rows of the stack,) of S and T of viscous contacts, and of J


class Given(NamedTuple):
    """A problem and its laws, as the kernels below read them."""

    values: np.ndarray  # (k, m) rows of the stack
    ends: tuple[int, int, int, int, int, int, int]
    R_contact: np.ndarray
    M: np.ndarray  # (nb, s, s)
    free: np.ndarray  # (m,)
    b: np.ndarray  # (k,) minus the targets
    hi: np.ndarray  # (k,) largest impulses
    contact: np.ndarray
    joint: np.ndarray
    friction: np.ndarray
    compliance: np.ndarray


class Solved(NamedTuple):
    """What the solve found."""

    status: SolveStatus
    velocity: np.ndarray  # (m,)
    impulse: np.ndarray  # (k,) by the rows of the stack
    state: np.ndarray  # (n + u + d + j,) ContactState
    report: np.ndarray

    @property
    def residual(self) -> float:
        """Largest relative residual of a law."""
        return float(self.report[RESIDUAL])


@kernel
def list_rows(g: Given, law_out: np.ndarray, row_out: np.ndarray, source_out: np.ndarray,
              head_work: np.ndarray, next_work: np.ndarray) -> int:  # fmt: skip
    """Fill law and rows of each constraint, by their numbers in the stack; return how many rows."""
    s, t, r, j, n_end, u, k = g.ends
    n = n_end - j
    for i in range(n):
        head_work[i] = -1
    for q in range(r - t - 1, -1, -1):
        i = g.R_contact[q]
        next_work[q] = head_work[i]
        head_work[i] = q
    at = 0
    for i in range(n):
        law = g.contact[i]
        row_out[i] = at
        source_out[at] = j + i
        at += 1
        for first, end in ((0, s), (s, t)):
            acts = law != COULOMB or (end > first and g.friction[first + i] > 0.0)
            if end > first and law != FRICTIONLESS and acts:
                source_out[at] = first + i
                at += 1
        q = head_work[i]
        while q >= 0:
            if law == NO_SLIP or (law == COULOMB and g.friction[t + q] > 0.0):
                source_out[at] = t + q
                at += 1
            q = next_work[q]
        law_out[i] = law
        if at == row_out[i] + 1:
            law_out[i] = FRICTIONLESS
    i = n
    for first, end, law in ((n_end, u, FRICTIONLESS), (u, k, DRY), (r, j, RIGID)):
        for x in range(first, end):
            row_out[i] = at
            law_out[i] = law
            if law == RIGID:
                law_out[i] = g.joint[x - first]
            if law_out[i] == LEFT_OUT:
                law_out[i] = FRICTIONLESS  # with no rows
            else:
                source_out[at] = x
                at += 1
            i += 1
    row_out[i] = at
    return at


@kernel
def split_inertia(M: np.ndarray, tree_out: np.ndarray) -> int:
    """Fill where trees begin, the blocks of M or the components of a single one; return how many.

    Components must be consecutive coordinates; where they are interleaved they count as one.
    """
    nb, s = M.shape[0], M.shape[1]
    tree_out[0] = 0
    if nb != 1:
        for t in range(nb):
            tree_out[t + 1] = (t + 1) * s
        return nb
    count, last = 0, 0
    for i in range(s):
        for j in range(s - 1, max(i, last), -1):
            if M[0, i, j] != 0.0:
                last = j
                break
        if last <= i:
            count += 1
            tree_out[count] = i + 1
            last = i + 1
    return count


@kernel
def touch(g: Given, source: np.ndarray, first: int, end: int, tree: np.ndarray, trees: int,
          touched_out: np.ndarray) -> int:  # fmt: skip
    """Mark the trees in which some of these rows have entries; return how many."""
    count = 0
    for t in range(trees):
        touched_out[t] = 0
        for r in range(first, end):
            x = source[r]
            for c in range(tree[t], tree[t + 1]):
                if g.values[x, c] != 0.0:
                    touched_out[t] = 1
                    break
            if touched_out[t] == 1:
                count += 1
                break
    return count


@kernel
def join_trees(tree_inout: np.ndarray, trees: int, apart: np.ndarray) -> int:
    """Make neighbouring trees one unless they are apart; return how many are left."""
    count = 0
    for t in range(trees):
        if t == trees - 1 or apart[t] == 1:
            count += 1
            tree_inout[count] = tree_inout[t + 1]
    return count


@kernel
def merge_trees(g: Given, source: np.ndarray, row: np.ndarray, constraints: int,
                tree_inout: np.ndarray, trees: int, apart_work: np.ndarray,
                touched_work: np.ndarray) -> int:  # fmt: skip
    """Merge trees of a dense inertia, see the module; return how many are left."""
    for t in range(trees):
        apart_work[t] = 0
    for i in range(constraints):
        touch(g, source, row[i], row[i + 1], tree_inout, trees, touched_work)
        for t in range(trees - 1):
            if touched_work[t] != touched_work[t + 1]:
                apart_work[t] = 1
    trees = join_trees(tree_inout, trees, apart_work)
    for t in range(trees):
        apart_work[t] = 1
    for i in range(constraints):
        if touch(g, source, row[i], row[i + 1], tree_inout, trees, touched_work) > MOST_PANELS:
            first, last = trees, 0
            for t in range(trees):
                if touched_work[t] == 1:
                    first, last = min(first, t), t
            for t in range(first, last):
                apart_work[t] = 0
    return join_trees(tree_inout, trees, apart_work)


@kernel
def fill_inertia(M: np.ndarray, tree: np.ndarray, trees: int, block_out: np.ndarray,
                 inertia_out: np.ndarray) -> None:  # fmt: skip
    """Fill the inertia of each tree, row by row, and where it begins."""
    s, at = M.shape[1], 0
    for t in range(trees):
        block_out[t] = at
        for i in range(tree[t], tree[t + 1]):
            for j in range(tree[t], tree[t + 1]):
                inertia_out[at] = M[i // s, i % s, j % s] if i // s == j // s else 0.0
                at += 1
    block_out[trees] = at


@kernel
def lay_out(g: Given, work: np.ndarray, words: np.ndarray) -> int:
    """Write the arrays of a problem to the work array; return how many numbers that takes.

    Where that is more than there are, nothing but the number is right. `views` finds them again.
    """
    _, t, r, j, n_end, u, k = g.ends
    n, m = n_end - j, g.free.shape[0]
    constraints = k - r
    needed = SIZES + k + 2 * constraints + 1 + n + (r - t) + 3 * (m + 1)
    if needed > work.shape[0]:
        return needed
    at = SIZES
    source = words[at : at + k]
    at += k
    law = words[at : at + constraints]
    at += constraints
    row = words[at : at + constraints + 1]
    at += constraints + 1
    tree = words[at : at + m + 1]
    at += m + 1
    apart, touched = words[at : at + m + 1], words[at + m + 1 : at + 2 * m + 2]
    at += 2 * m + 2
    rows = list_rows(g, law, row, source, words[at : at + n], words[at + n : at + n + r - t])
    trees = split_inertia(g.M, tree)
    if trees > 1 and g.M.shape[0] == 1:
        trees = merge_trees(g, source, row, constraints, tree, trees, apart, touched)
    panels, values, inertia = 0, 0, 0
    for i in range(constraints):
        dim = row[i + 1] - row[i]
        panels += touch(g, source, row[i], row[i + 1], tree, trees, touched)
        for x in range(trees):
            if touched[x] == 1:
                values += dim * (tree[x + 1] - tree[x])
    for x in range(trees):
        size = tree[x + 1] - tree[x]
        inertia += size * size
    size = words[:SIZES]
    size[TREES], size[CONSTRAINTS], size[ROWS], size[PANELS] = trees, constraints, rows, panels
    size[INERTIA], size[VALUES] = inertia, values
    size[WORDS] = at
    at += trees + 1 + constraints + 1 + 2 * panels
    size[NUMBERS] = at
    at += inertia + values + m + 5 * rows
    size[END] = at
    if at > work.shape[0]:
        return at
    a, impulse = views(g.free, k, work, words)
    fill_inertia(g.M, tree, trees, a.block, a.inertia)
    for x in range(rows):
        y = source[x]
        a.target[x] = -g.b[y]
        a.friction[x], a.compliance[x] = g.friction[y], g.compliance[y]
        a.bound[x] = g.hi[y] if y >= u else 0.0
        impulse[x] = 0.0
    p, at = 0, 0
    for i in range(constraints):
        a.panel[i] = p
        touch(g, source, row[i], row[i + 1], tree, trees, touched)
        for x in range(trees):
            if touched[x] == 1:
                a.panel_tree[p], a.panel_at[p] = x, at
                p += 1
                for y in range(row[i], row[i + 1]):
                    for c in range(tree[x], tree[x + 1]):
                        a.values[at] = g.values[source[y], c]
                        at += 1
    a.panel[constraints] = p
    return size[END]


@kernel
def views(free: np.ndarray, k: int, work: np.ndarray, words: np.ndarray,
          ) -> tuple[Arrays, np.ndarray]:  # fmt: skip
    """Return what `lay_out` wrote for a stack of k rows: the arrays, and room for impulses."""
    trees, constraints, rows, panels = words[TREES], words[CONSTRAINTS], words[ROWS], words[PANELS]
    law = SIZES + k
    row = law + constraints
    tree = row + constraints + 1
    block = words[WORDS]
    panel = block + trees + 1
    panel_tree = panel + constraints + 1
    panel_at = panel_tree + panels
    inertia = words[NUMBERS]
    values = inertia + words[INERTIA]
    motion = values + words[VALUES]
    by_row = motion + free.shape[0]
    target, friction = by_row, by_row + rows
    bound, compliance, impulse = by_row + 2 * rows, by_row + 3 * rows, by_row + 4 * rows
    for i in range(free.shape[0]):
        work[motion + i] = free[i]
    a = Arrays(
        words[tree : tree + trees + 1], words[block : block + trees + 1],
        work[inertia : inertia + words[INERTIA]], work[motion : motion + free.shape[0]],
        words[law : law + constraints], words[row : row + constraints + 1],
        words[panel : panel + constraints + 1], words[panel_tree : panel_tree + panels],
        words[panel_at : panel_at + panels], work[values : values + words[VALUES]],
        work[target : target + rows], work[friction : friction + rows],
        work[bound : bound + rows], work[compliance : compliance + rows],
    )  # fmt: skip
    return a, work[impulse : impulse + rows]


@entry
def write_arrays(g: Given, work: np.ndarray, words: np.ndarray) -> int:
    """Write the arrays of a problem to the work array; see `lay_out`."""
    return lay_out(g, work, words)


@kernel
def is_known(state: np.ndarray) -> bool:
    """Return whether any state is known."""
    some = False
    for x in state:
        some = some or x >= 0
    return some


@kernel
def has_law(a: Arrays, law: int) -> bool:
    """Return whether any constraint has this law."""
    some = False
    for x in a.law:
        some = some or x == law
    return some


@entry
def solve_given(g: Given, work: np.ndarray, words: np.ndarray, o: Numbers,
                velocity_inout: np.ndarray, impulse_inout: np.ndarray, state_inout: np.ndarray,
                report_out: np.ndarray) -> int:  # fmt: skip
    """Solve a problem with a law for each contact; return a `SolveStatus`.

    Args:
        g: the problem.
        work: memory.
        words: the same as integers.
        o: tolerances.
        velocity_inout: (m,) before and after.
        impulse_inout: (k,) by the rows of the stack; read for a warm start.
        state_inout: (constraints,) likewise. If none is known, and there is Coulomb friction, those
            are taken that the velocity before suggests.
        report_out: see `holdfast.contact.solve`.
    """
    end = lay_out(g, work, words)
    report_out[NEEDED] = end
    if end > work.shape[0]:
        return MORE_MEMORY
    k = g.values.shape[0]
    a, impulse = views(g.free, k, work, words)
    source = words[SIZES : SIZES + k]
    for x in range(impulse.shape[0]):
        impulse[x] = impulse_inout[source[x]]
    if not is_known(state_inout) and has_law(a, COULOMB):
        for i in range(state_inout.shape[0]):
            state_inout[i] = FROM_MOTION
    answer = Answer(velocity_inout, impulse, state_inout, report_out)
    used = end + factors_size(a)
    report_out[NEEDED] = used
    if used > work.shape[0]:
        return MORE_MEMORY
    factors = no_factors(a, work[end:], words[end:])
    status = solve_reduced(a, factors, answer, work[used:], words[used:], o)
    report_out[NEEDED] += used
    if status == MORE_MEMORY:
        return status
    for y in range(k):
        impulse_inout[y] = 0.0
    for x in range(impulse.shape[0]):
        impulse_inout[source[x]] = impulse[x]
    for i in range(a.law.shape[0]):  # nothing pulls, not by rounding either
        first, end = a.row[i], a.row[i + 1]
        if a.law[i] <= VISCOUS and end > first and impulse[first] <= 0.0:
            for x in range(first, end if a.law[i] == COULOMB else first + 1):
                impulse_inout[source[x]] = 0.0
    for y in range(g.ends[5], k):  # dry friction on its bound, not an ulp beyond or below
        if abs(impulse_inout[y]) >= (1.0 - ULPS) * g.hi[y]:
            impulse_inout[y] = g.hi[y] if impulse_inout[y] > 0.0 else -g.hi[y]
    return status


_NONE = np.empty(0)
_spare: list[np.ndarray] = []  # work arrays of solves that have ended, one per thread
_FIRST = 4096  # numbers in a new one, and by row: what a row takes that moves two free bodies
_BY_ROW = 85
_MOST_SPARED = 2**22  # numbers in one that is kept, 32 MB


def given_of(problem: ContactProblem, laws: Laws) -> Given:
    """The problem and its laws, as the kernels read them."""
    arrays = problem.stack.arrays
    return Given(
        arrays.values, problem.stack.ends, problem.stack.R_contact, arrays.M, problem.free_motion,
        arrays.b, arrays.hi, *laws,
    )  # fmt: skip


def build_arrays(problem: ContactProblem, laws: Laws) -> Arrays:
    """A problem and its laws as the solve takes them, to look at or to solve by other means."""
    given = given_of(problem, laws)
    work = np.zeros(_FIRST)
    while (needed := write_arrays(given, work, work.view(np.int64))) > len(work):
        work = np.zeros(needed)
    view = views.py_func if COMPILED else views
    arrays, _ = view(given.free, len(given.values), work, work.view(np.int64))
    return arrays


def solve_laws(
    problem: ContactProblem,
    laws: Laws,
    options: Numbers,
    impulse: np.ndarray | None = None,
    state: np.ndarray | None = None,
) -> Solved:
    """Solve a problem with a law for each contact; whether it succeeded stands in the status.

    Args:
        problem: what is solved.
        laws: of contacts and joints.
        options: tolerances.
        impulse: (k,) by the rows of the stack, of an earlier, similar problem; None if unknown.
        state: (n + u + d + j,) `ContactState`, likewise.
    """
    given = given_of(problem, laws)
    k = len(given.b)
    count = k - given.ends[2]  # all but the rows of S, T and R
    z = np.zeros(k) if impulse is None else np.array(impulse)
    report = np.zeros(REPORT)
    work = _spare.pop() if _spare else _NONE
    if len(work) < _BY_ROW * k:
        work = np.empty(_FIRST + _BY_ROW * k)
    while True:
        velocity = np.array(problem.v)
        states = np.full(count, -1) if state is None else np.array(state)
        status = solve_given(given, work, work.view(np.int64), options, velocity, z, states, report)
        if status != MORE_MEMORY:
            break
        work = np.empty(int(1.2 * report[NEEDED]) + 64)
    if len(work) <= _MOST_SPARED:
        _spare.append(work)
    return Solved(SolveStatus(status), velocity, z, states, report)


DEFAULT_NUMBERS = Options().numbers()
