"""One contact solve: any mixture of laws, island by island."""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

import numpy as np

from holdfast._jit import entry, fast_kernel, kernel
from holdfast.contact import delassus
from holdfast.contact.active_set import rounding
from holdfast.contact.arrays import Answer, Arrays, ContactState, Factors, SolveStatus
from holdfast.contact.convex import solve_convex
from holdfast.contact.interior_point import Interior
from holdfast.contact.islands import find_islands
from holdfast.contact.ladder import (
    AT_REST,
    BY_RUNG,
    FACTORISATIONS,
    ISLANDS,
    JAMMED,
    LARGE,
    NEEDED,
    REPORT,
    RESIDUAL,
    STATES,
    Work,
    clear,
    has_friction,
    is_rounding,
    solve_island,
    solve_roughly,
    sum_sizes,
    take_last,
)
from holdfast.contact.newton import Island, Vectors, relative_speeds
from holdfast.contact.no_slip import has_no_slip, search
from holdfast.contact.options import Numbers
from holdfast.contact.prediction import predict_states
from holdfast.contact.splitting import MEMORY, ROWS, SMALL, Splitting
from holdfast.contact.system import (
    System,
    apply_laws,
    drop_rounding,
    factor_inertia,
    recover_velocity,
    whiten,
)
from holdfast.linalg.block_lu import Pattern, order_trees
from holdfast.linalg.vectors import square
from holdfast.linalg.views import blocks, part, vector

SOLVED, APPROXIMATE = int(SolveStatus.SOLVED), int(SolveStatus.APPROXIMATE)
FAILED, NOT_DEFINITE = int(SolveStatus.FAILED), int(SolveStatus.NOT_DEFINITE)
MORE_MEMORY = int(SolveStatus.MORE_MEMORY)
UNKNOWN = int(ContactState.UNKNOWN)
ANY_WAY = 2.0  # rounding of any way to find that a tree goes on, over that of `take_last`
LONGEST = 3.0  # more than the length of any row: of five tangents the mean square is one at most


@kernel
def couple(sy: System, members: np.ndarray, place: np.ndarray, adjacent_out: np.ndarray,
           count: int) -> None:  # fmt: skip
    """Mark the trees that constraints couple."""
    for a in range(count):
        for b in range(count):
            adjacent_out[a, b] = 0
    for i in members:
        for p in range(sy.panel[i], sy.panel[i + 1]):
            for q in range(sy.panel[i], p):
                a, b = place[sy.panel_tree[p]], place[sy.panel_tree[q]]
                adjacent_out[a, b] = adjacent_out[b, a] = 1


MOTIONS, BY_ROW, BY_CONSTRAINT = 8, 12 + ROWS, 3


@kernel
def fixed_size(a: Arrays) -> tuple[int, int, int]:
    """Return the memory that does not depend on islands, and what of it small arrays take."""
    m, n, rows = a.free.shape[0], a.law.shape[0], a.target.shape[0]
    trees = a.tree.shape[0] - 1
    C_size, widest, most = 0, 1, 1
    for t in range(trees):
        widest = max(widest, a.tree[t + 1] - a.tree[t])
    for i in range(n):
        dim = a.row[i + 1] - a.row[i]
        C_size += dim * dim
        most = max(most, dim)
    fixed = MOTIONS * m + BY_ROW * rows + a.values.shape[0] + C_size
    fixed += BY_CONSTRAINT * n + SMALL + widest * most + 7 * trees + 6 * n + 3
    return fixed, C_size, widest * most


@kernel
def factors_size(a: Arrays) -> int:
    """Return the memory of the factors of an inertia."""
    return 2 * a.inertia.shape[0] + a.free.shape[0] + a.tree.shape[0] - 1


@kernel
def no_factors(a: Arrays, work: np.ndarray, words: np.ndarray) -> Factors:
    """Return factors of which none is known, at the beginning of this memory."""
    m, size, trees = a.free.shape[0], a.inertia.shape[0], a.tree.shape[0] - 1
    known = vector(words, 2 * size + m, trees)
    for t in range(trees):
        known[t] = 0
    return Factors(vector(work, 0, size), vector(words, size, size + m), known)


@kernel
def most_memory(a: Arrays) -> int:
    """Return memory that suffices for a problem and for every part of it."""
    trees, coordinates = a.tree.shape[0] - 1, 0
    for t in a.panel_tree:
        coordinates += a.tree[t + 1] - a.tree[t]
    coordinates = min(coordinates, a.free.shape[0])
    islands = 3 * trees * trees + 6 * trees + coordinates * coordinates
    islands += delassus.memory(delassus.most_rows(a.target.shape[0], coordinates))
    return factors_size(a) + fixed_size(a)[0] + islands


@kernel
def size_by_rows(sy: System, members: np.ndarray, pattern: Pattern, trees: int) -> int:
    """Return the memory with which an island is solved by its rows."""
    rows = coordinates = 0
    for i in members:
        rows += sy.row[i + 1] - sy.row[i]
    for k in range(trees):
        coordinates += pattern.size[k]
    return delassus.memory(delassus.most_rows(rows, coordinates))


@fast_kernel
def length_of(a: Arrays, trees: np.ndarray, y: np.ndarray) -> float:
    """Return the length of the coordinates of some trees in y."""
    total = 0.0
    for t in trees:
        for j in range(a.tree[t], a.tree[t + 1]):
            total += y[j] * y[j]
    return np.sqrt(total)


@kernel
def let_go_on(sy: System, isl: Island, r: np.ndarray, terms_work: np.ndarray,
              y_inout: np.ndarray) -> None:  # fmt: skip
    """Stop the trees whose motion is rounding; let those go on as before whose change is.

    Impulses stop a body at rest by cancelling its free motion and each other, and leave the
    rounding of all of them. If that were integrated, bodies would never rest: contacts that depend
    on the last digit of a position would come and go from step to step. Bodies that go on as they
    were do so whatever the impulses that make them.
    """
    part = ANY_WAY * rounding(isl)
    rest = AT_REST * part
    if not may_go_on(sy, isl, r, rest, part, y_inout):
        return
    sum_sizes(sy, isl, r, terms_work)
    for k in range(isl.trees):
        if is_rounding(isl, k, terms_work, y_inout, y_inout, 0.0, rest):
            take_motion(isl, k, sy.before, False, y_inout)
        elif is_rounding(isl, k, terms_work, y_inout, sy.before, 1.0, part):
            take_motion(isl, k, sy.before, True, y_inout)


@kernel
def take_motion(isl: Island, k: int, x: np.ndarray, moves: bool, y_out: np.ndarray) -> None:
    """Let tree k have the motion x, or rest."""
    for j in range(isl.pattern.first[k], isl.pattern.first[k] + isl.pattern.size[k]):
        y_out[j] = x[j] if moves else 0.0


@fast_kernel
def may_go_on(sy: System, isl: Island, r: np.ndarray, rest: float, part: float,
              y_inout: np.ndarray) -> bool:  # fmt: skip
    """Do so with trees that the free motion alone decides about; whether there may be others.

    The terms of the sum are not looked at one by one: together they are at least the free motion,
    and at most that and all impulses, whose rows have about length one.
    """
    most = isl.size
    for i in isl.member:
        for k in range(sy.row[i], sy.row[i + 1]):
            most += LONGEST * abs(r[k])
    some = False
    for k in range(isl.trees):
        least = after = change = 0.0
        for j in range(isl.pattern.first[k], isl.pattern.first[k] + isl.pattern.size[k]):
            least += square(sy.y0[j])
            after += square(y_inout[j])
            change += square(y_inout[j] - sy.before[j])
        if after <= rest * rest * least:
            take_motion(isl, k, sy.before, False, y_inout)
        elif after > square(rest * most) and change <= part * part * least:
            take_motion(isl, k, sy.before, True, y_inout)
        elif after <= square(rest * most) or change <= square(part * most):
            some = True
    return some


@kernel
def finish(a: Arrays, sy: System, isl: Island, v: Vectors, miss: float, out: Answer) -> None:
    """Write the impulses of an island, whose residual is `miss`; let go on what does."""
    out.report[RESIDUAL] = max(out.report[RESIDUAL], miss)
    let_go_on(sy, isl, v.r, v.d, v.y)
    for i in isl.member:
        for r in range(a.row[i], a.row[i + 1]):
            out.impulse[r] = v.r[r] * sy.scale[r]


@kernel
def begin_report(out: Answer) -> None:
    """Clear what several solves of one problem add up."""
    for k in range(REPORT):
        out.report[k] = 0.0


@entry
def solve(a: Arrays, out: Answer, work: np.ndarray, words: np.ndarray, o: Numbers) -> int:
    """Fill the answer of a contact problem; return a `SolveStatus`.

    Args:
        a: the problem.
        out: filled; see there what it begins with.
        work, words: the same memory as numbers and as integers.
        o: tolerances.
    """
    used = factors_size(a)
    begin_report(out)
    if used > work.shape[0]:
        out.report[NEEDED] = used
        return MORE_MEMORY
    status = solve_factored(a, no_factors(a, work, words), out, work[used:], words[used:], o)
    out.report[NEEDED] += used
    return status


@kernel
def solve_factored(a: Arrays, f: Factors, out: Answer, work: np.ndarray, words: np.ndarray,
                   o: Numbers) -> int:  # fmt: skip
    """Solve as `solve` does, with the factors of the inertia that are known.

    Constraints whose state is LEFT_OUT are none; nothing is filled in for them.
    """
    m, n, rows = a.free.shape[0], a.law.shape[0], a.target.shape[0]
    trees = a.tree.shape[0] - 1
    fixed, C_size, CG_size = fixed_size(a)
    out.report[NEEDED] = fixed
    if fixed > work.shape[0]:
        return MORE_MEMORY
    motions = part(work, 0, MOTIONS, m)
    at = MOTIONS * m
    by_row = part(work, at, BY_ROW, rows)
    at += BY_ROW * rows
    G = work[at : at + a.values.shape[0]]
    at += a.values.shape[0]
    C = work[at : at + C_size]
    at += C_size
    each = part(work, at, BY_CONSTRAINT, n)
    at += BY_CONSTRAINT * n
    small = part(work, at, 2 * MEMORY + 1, MEMORY)
    at += SMALL
    CG = work[at : at + CG_size]
    at += CG_size
    by_tree = part(words, at, 5, trees)
    at += 5 * trees
    parent, island_of, island_tree, place, used = (
        by_tree[0], by_tree[1], by_tree[2], by_tree[3], by_tree[4],
    )  # fmt: skip
    island_tree_begin = words[at : at + trees + 1]
    at += trees + 1
    member_begin = words[at : at + trees + 1]
    at += trees + 1
    normal = words[at : at + n]
    at += n
    tangent = words[at : at + n]
    at += n
    C_at = words[at : at + n + 1]
    at += n + 1
    member = words[at : at + n]
    at += n
    held = words[at : at + n]
    at += n
    freed = words[at : at + n]
    at += n
    islands = find_islands(
        a, out.state, parent, island_of, island_tree, island_tree_begin, member, member_begin
    )
    largest = 0
    for k in range(islands):
        largest = max(largest, island_tree_begin[k + 1] - island_tree_begin[k])
    fixed = at + 3 * largest * largest + 6 * largest
    out.report[NEEDED] = fixed
    if fixed > work.shape[0]:
        return MORE_MEMORY
    for t in range(trees):
        used[t] = 1 if island_of[t] >= 0 else 0
    begin = 0
    for i in range(n):
        C_at[i] = begin
        dim = a.row[i + 1] - a.row[i]
        begin += dim * dim
    C_at[n] = begin
    y0, before = motions[0], motions[7]
    if not factor_inertia(a, used, f, out.velocity, y0, before):
        return NOT_DEFINITE
    sy = System(
        a.tree, a.row, a.panel, a.panel_tree, a.panel_at, y0, before, G, by_row[0], by_row[1],
        normal, tangent, each[0], each[1], by_row[2],
    )  # fmt: skip
    everywhere = member[: member_begin[islands]]
    longest = whiten(a, f, everywhere, sy)
    drop_rounding(a, everywhere, sy, o.zero_row, longest)
    apply_laws(a, everywhere, sy)
    v = Vectors(
        motions[1], motions[2], motions[3], motions[4], motions[5], motions[6], by_row[3],
        by_row[4], by_row[5], by_row[6], by_row[7], by_row[11],
    )  # fmt: skip
    by_memory = by_row[16:]
    splitting = Splitting(
        by_row[12], by_row[13], by_row[14], by_row[15], by_memory[:MEMORY], by_memory[MEMORY:],
        small[:MEMORY], small[MEMORY : 2 * MEMORY], small[2 * MEMORY],
    )  # fmt: skip
    z = by_memory  # the interior-point method and the splitting take turns
    interior = Interior(
        z[0], z[1], z[2], z[3], z[4], z[5], z[6], z[7], z[8], z[9], z[10], z[11],
        z[12], z[13],
    )  # fmt: skip
    wk = Work(v, by_row[8], by_row[9], by_row[10], splitting, interior, CG, each[2])
    status = SOLVED
    out.report[RESIDUAL] = out.report[JAMMED] = 0.0
    out.report[ISLANDS] = islands
    for k in range(islands):
        t0, t1 = island_tree_begin[k], island_tree_begin[k + 1]
        count = t1 - t0
        p = at
        tables = blocks(words, p, 3, count, count)
        p += 3 * count * count
        lists = part(words, p, 6, count)
        p += 6 * count
        pattern = Pattern(lists[0], lists[1], lists[2], tables[1], tables[2], lists[3])
        members = member[member_begin[k] : member_begin[k + 1]]
        for j in range(count):
            t = island_tree[t0 + j]
            place[t], lists[0, j] = j, t
            lists[1, j], lists[2, j] = a.tree[t + 1] - a.tree[t], a.tree[t]
        length = length_of(a, island_tree[t0:t1], y0)
        isl = Island(members, pattern, count, place, work[p:p], work[p:p], C, C_at, length)
        warm = False
        for i in members:
            warm = warm or out.state[i] != UNKNOWN
            for r in range(a.row[i], a.row[i + 1]):
                v.r[r] = out.impulse[r] / sy.scale[r] if sy.scale[r] > 0.0 else 0.0
        friction, grips = has_friction(sy, isl), has_no_slip(a, members)
        done, miss = False, np.inf
        if friction and not grips:
            done, miss = take_last(sy, isl, v, out.state, o)
        if done:
            finish(a, sy, isl, v, miss, out)
            continue
        couple(sy, members, place, tables[0], count)
        size = order_trees(
            tables[0], count, island_tree[t0:t1], a.tree, lists[4], lists[5], pattern
        )
        for j in range(count):
            place[pattern.tree[j]] = j
        by_rows = size_by_rows(sy, members, pattern, count)
        out.report[NEEDED] = p + size + by_rows
        if p + size + by_rows > work.shape[0]:
            return MORE_MEMORY
        isl = Island(
            members, pattern, count, place, work[p : p + size],
            work[p + size : p + size + by_rows], C, C_at, length,
        )  # fmt: skip
        if grips or not friction:
            if not o.resumed:
                clear(sy, isl, v.r)
            relative_speeds(sy, isl, sy.y0, v.free)
            predict_states(sy, isl, v.free, v.d, v.uk, out.state)
        enough = o.rough > 0.0 and (grips or friction)  # whatever is found
        if grips:
            miss = search(a, sy, isl, size, wk, out.state, held, freed, o, out.report)
        elif friction:
            miss = solve_island(sy, isl, size, wk, out.state, warm, miss, o, out.report)
        elif o.rough > 0.0 and members.shape[0] > LARGE:
            miss = solve_roughly(sy, isl, size, wk, out.state, o, out.report)
            enough = miss < np.inf
        if not (grips or friction or enough):
            miss, count = solve_convex(sy, isl, size, v, CG, wk.shift, wk.start, out.state, True, o)
            out.report[FACTORISATIONS] += count
            out.report[BY_RUNG + STATES] += 1.0
        if not (enough or miss <= o.certificate):
            status = max(status, APPROXIMATE if miss <= o.approximate else FAILED)
        finish(a, sy, isl, v, miss, out)
    recover_velocity(a, used, f, v.y, out.velocity)
    return status
