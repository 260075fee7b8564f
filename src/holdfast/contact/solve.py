"""One contact solve: any mixture of laws, island by island.

Every island goes down a ladder, and the first certified answer is taken:

1. the impulses of the last step, as they are (`certify`);
2. the states of the last step: one linear system (`active_set.solve_states`);
3. the problem with compliance about zero, by Newton's method from the free motion or, where that
   does not settle, by the interior-point method; its states, as in 2;
4. proximal steps from there (`proximal.refine`); their states, as in 2, or their impulses;
5. the same with friction that grows from zero to what it is.

Rungs 2 to 5 end in the system of given states, so what the answer is does not depend on which of
them found them.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from holdfast._jit import entry, kernel
from holdfast.contact.active_set import read_states, solve_states
from holdfast.contact.arrays import Answer, Arrays, SolveStatus
from holdfast.contact.interior_point import Interior, follow_path
from holdfast.contact.islands import find_islands
from holdfast.contact.newton import Island, Vectors, certify, combine, relative_speeds, scale_of
from holdfast.contact.options import Numbers
from holdfast.contact.proximal import fill, refine, settle, store
from holdfast.contact.system import System, apply_laws, factor_inertia, recover_velocity, whiten
from holdfast.linalg.block_lu import Pattern, order_trees

SOLVED, APPROXIMATE = int(SolveStatus.SOLVED), int(SolveStatus.APPROXIMATE)
FAILED, NOT_DEFINITE = int(SolveStatus.FAILED), int(SolveStatus.NOT_DEFINITE)
MORE_MEMORY = int(SolveStatus.MORE_MEMORY)


class Rung(IntEnum):
    """Where on the ladder an island was solved."""

    IMPULSES = 0
    STATES = 1
    CANONICAL = 2
    INTERIOR = 3
    PROXIMAL = 4
    FROM_ZERO = 5
    HOMOTOPY = 6


IMPULSES, STATES, CANONICAL = int(Rung.IMPULSES), int(Rung.STATES), int(Rung.CANONICAL)
INTERIOR, PROXIMAL = int(Rung.INTERIOR), int(Rung.PROXIMAL)
FROM_ZERO, HOMOTOPY = int(Rung.FROM_ZERO), int(Rung.HOMOTOPY)

# What is reported, by its place: memory that is needed, the largest residual, factorisations,
# islands, and the farthest rung.
NEEDED, RESIDUAL, FACTORISATIONS, ISLANDS, RUNG, RUNGS, REPORT = range(7)  
REPORT = 16

CANONICAL_STEPS = 15  # of Newton's method from the free motion, before the interior point
INTERIOR_STEPS = 60
INTERIOR_TOLERANCE = 1e-6  # from there Newton's method is faster
REFINE_STEPS = 400


class Work(NamedTuple):
    """Work arrays of an island."""

    v: Vectors
    interior: Interior
    kept: np.ndarray  # (rows,) impulses of the best answer
    CG: np.ndarray
    radius: np.ndarray  # (n,)
    small: np.ndarray  # (10, 6)


@kernel
def clear(sy: System, isl: Island, x: np.ndarray) -> None:
    """Set the rows of an island to zero."""
    for i in isl.member:
        for k in range(sy.row[i], sy.row[i + 1]):
            x[k] = 0.0


@kernel
def settle_canonical(sy: System, isl: Island, size: int, wk: Work, o: Numbers,
                     sigma: float) -> tuple[bool, int]:  # fmt: skip
    """Solve the problem with compliance about zero, from the change of motion v.d on.

    Returns:
        Whether it is solved, its impulses in v.r then, and the factorisations.
    """
    v = wk.v
    clear(sy, isl, v.r)
    relative_speeds(sy, isl, sy.y0, v.uk)
    count, left = settle(
        sy, isl, size, v, wk.CG, o.canonical_compliance, wk.radius, 1e-3 * o.stop * sigma,
        CANONICAL_STEPS,
    )  # fmt: skip
    store(sy, isl, v.new, v.r)
    return left <= 1e-8 * sigma, count


@kernel
def keep_better(sy: System, isl: Island, wk: Work, miss: float, least: float) -> float:
    """Keep the impulses v.r if their residual is less than the least so far; return the lesser."""
    if miss < least:
        store(sy, isl, wk.v.r, wk.kept)
        return miss
    return least


@kernel
def finish(sy: System, isl: Island, size: int, wk: Work, state: np.ndarray, o: Numbers,
           sigma: float, least: float) -> tuple[float, int]:  # fmt: skip
    """Solve for the states that the impulses v.r are in; return the least residual, and the work.

    A certified answer of the states is preferred to any other.
    """
    v = wk.v
    read_states(sy, isl, v.r, v.u, state)
    miss, count = solve_states(sy, isl, size, v, wk.CG, wk.radius, state, o, sigma)
    if miss <= o.certificate:
        least = np.inf
    return keep_better(sy, isl, wk, miss, least), count


@kernel
def solve_island(sy: System, isl: Island, size: int, wk: Work, state: np.ndarray, warm: bool,
                 o: Numbers, report: np.ndarray) -> float:  # fmt: skip
    """Solve one island; its impulses are left in v.r. Return their relative residual."""
    v = wk.v
    least = certify(sy, isl, v.r, v.y, v.u)
    if least <= o.stop:
        read_states(sy, isl, v.r, v.u, state)
        return least
    sigma = scale_of(sy, isl, sy.y0, v.r)
    store(sy, isl, v.r, wk.kept)
    rung, total, settled = STATES, 0, False
    if warm:
        miss, total = solve_states(sy, isl, size, v, wk.CG, wk.radius, state, o, sigma)
        least = keep_better(sy, isl, wk, miss, least)
    if least > o.certificate:
        rung = CANONICAL
        fill(isl, v.d, 0.0)
        settled, count = settle_canonical(sy, isl, size, wk, o, sigma)
        total += count
        if settled:
            clear(sy, isl, v.u)
            store(sy, isl, v.r, wk.interior.t)
            least, count = finish(sy, isl, size, wk, state, o, sigma, least)
            total += count
            store(sy, isl, wk.interior.t, v.r)
    if least > o.certificate and not settled:
        rung = INTERIOR
        count, miss = follow_path(
            sy, isl, size, v, wk.interior, wk.CG, wk.small, o.canonical_compliance,
            INTERIOR_TOLERANCE, INTERIOR_STEPS,
        )  # fmt: skip
        total += count
        combine(isl, v.d, -1.0, sy.y0, v.d)
        store(sy, isl, v.best, wk.interior.t)
        settled, count = settle_canonical(sy, isl, size, wk, o, sigma)
        total += count
        if settled:
            clear(sy, isl, v.u)
            store(sy, isl, v.r, wk.interior.t)
            least, count = finish(sy, isl, size, wk, state, o, sigma, least)
            total += count
        store(sy, isl, wk.interior.t, v.r)
    if least > o.certificate:
        rung = PROXIMAL
        least, count = refined(
            sy, isl, size, wk, state, o, o.canonical_compliance, sigma, least, REFINE_STEPS
        )
        total += count
    if least > o.certificate:
        rung = FROM_ZERO
        clear(sy, isl, v.r)
        least, count = refined(sy, isl, size, wk, state, o, 1.0, sigma, least, 4 * REFINE_STEPS)
        total += count
    store(sy, isl, wk.kept, v.r)
    least = certify(sy, isl, v.r, v.y, v.u)
    read_states(sy, isl, v.r, v.u, state)
    report[FACTORISATIONS] += total
    report[RUNG] = max(report[RUNG], rung)
    report[6 + rung] += 1.0
    return least


@kernel
def refined(sy: System, isl: Island, size: int, wk: Work, state: np.ndarray, o: Numbers,
            rho: float, sigma: float, least: float, limit: int) -> tuple[float, int]:  # fmt: skip
    """Refine the impulses v.r by proximal steps, then solve for their states."""
    v = wk.v
    miss, total = refine(sy, isl, size, v, wk.CG, wk.radius, rho, o, sigma, limit)
    least = keep_better(sy, isl, wk, miss, least)
    certify(sy, isl, v.r, v.y, v.u)
    if miss <= o.approximate:
        least, count = finish(sy, isl, size, wk, state, o, sigma, least)
        total += count
    return least, total


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


MOTIONS, BY_ROW = 7, 17


@entry
def solve(a: Arrays, out: Answer, work: np.ndarray, words: np.ndarray, o: Numbers) -> int:
    """Fill the answer of a contact problem; return a `SolveStatus`.

    Args:
        a: the problem.
        out: filled; impulse and state are read for a warm start.
        work, words: the same memory as numbers and as integers.
        o: tolerances.
    """
    m, n, rows = a.free.shape[0], a.law.shape[0], a.target.shape[0]
    trees = a.tree.shape[0] - 1
    below_size, C_size, widest, most = 0, 0, 1, 1
    for t in range(trees):
        s = a.tree[t + 1] - a.tree[t]
        below_size += s * (s + 1)
        widest = max(widest, s)
    for i in range(n):
        dim = a.row[i + 1] - a.row[i]
        C_size += dim * dim
        most = max(most, dim)
    fixed = MOTIONS * m + BY_ROW * rows + a.values.shape[0] + a.inertia.shape[0] + C_size + 4 * n
    fixed += 60 + widest * most + below_size + 9 * trees + 4 * n + 4
    out.report[NEEDED] = fixed
    if fixed > work.shape[0]:
        return MORE_MEMORY
    motions = work[: MOTIONS * m].reshape(MOTIONS, m)
    at = MOTIONS * m
    by_row = work[at : at + BY_ROW * rows].reshape(BY_ROW, rows)
    at += BY_ROW * rows
    G = work[at : at + a.values.shape[0]]
    at += a.values.shape[0]
    L = work[at : at + a.inertia.shape[0]]
    at += a.inertia.shape[0]
    C = work[at : at + C_size]
    at += C_size
    each = work[at : at + 4 * n].reshape(4, n)
    at += 4 * n
    small = work[at : at + 60].reshape(10, 6)
    at += 60
    CG = work[at : at + widest * most]
    at += widest * most
    below = words[at : at + below_size]
    at += below_size
    by_tree = words[at : at + 6 * trees].reshape(6, trees)
    at += 6 * trees
    below_at, parent, island_of, island_tree, place, used = (
        by_tree[0], by_tree[1], by_tree[2], by_tree[3], by_tree[4], by_tree[5],
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
    islands = find_islands(
        a, parent, island_of, island_tree, island_tree_begin, member, member_begin
    )
    largest = 0
    for k in range(islands):
        largest = max(largest, island_tree_begin[k + 1] - island_tree_begin[k])
    fixed = at + 3 * largest * largest + 6 * largest
    out.report[NEEDED] = fixed
    if fixed > work.shape[0]:
        return MORE_MEMORY
    begin = 0
    for t in range(trees):
        used[t] = 1 if island_of[t] >= 0 else 0
        below_at[t] = begin
        s = a.tree[t + 1] - a.tree[t]
        begin += s * (s + 1)
    begin = 0
    for i in range(n):
        C_at[i] = begin
        dim = a.row[i + 1] - a.row[i]
        begin += dim * dim
    C_at[n] = begin
    y0 = motions[0]
    if not factor_inertia(a, used, L, below, y0):
        return NOT_DEFINITE
    sy = System(
        a.tree, a.row, a.panel, a.panel_tree, a.panel_at, y0, G, by_row[0], by_row[1], normal,
        tangent, each[0], each[1], by_row[2],
    )  # fmt: skip
    whiten(a, L, below, below_at, sy)
    apply_laws(a, sy, o.zero_row)
    v = Vectors(
        motions[1], motions[2], motions[3], motions[4], motions[5], motions[6], by_row[3],
        by_row[4], by_row[5], by_row[6], by_row[7],
    )  # fmt: skip
    interior = Interior(
        by_row[8], by_row[9], by_row[10], by_row[11], by_row[12], by_row[13], by_row[14], each[2]
    )
    wk = Work(v, interior, by_row[15], CG, each[3], small)
    status = SOLVED
    out.report[RESIDUAL] = out.report[FACTORISATIONS] = out.report[RUNG] = 0.0
    out.report[ISLANDS] = islands
    out.report[6:] = 0.0
    for k in range(islands):
        t0, t1 = island_tree_begin[k], island_tree_begin[k + 1]
        count = t1 - t0
        p = at
        tables = words[p : p + 3 * count * count].reshape(3, count, count)
        p += 3 * count * count
        lists = words[p : p + 6 * count].reshape(6, count)
        p += 6 * count
        pattern = Pattern(lists[0], lists[1], lists[2], tables[1], tables[2], lists[3])
        for j in range(count):
            place[island_tree[t0 + j]] = j
        members = member[member_begin[k] : member_begin[k + 1]]
        couple(sy, members, place, tables[0], count)
        size = order_trees(
            tables[0], count, island_tree[t0:t1], a.tree, lists[4], lists[5], pattern
        )
        for j in range(count):
            place[pattern.tree[j]] = j
        out.report[NEEDED] = p + size
        if p + size > work.shape[0]:
            return MORE_MEMORY
        isl = Island(members, pattern, count, place, work[p : p + size], C, C_at)
        warm = True
        for i in members:
            warm = warm and out.state[i] >= 0
            for r in range(a.row[i], a.row[i + 1]):
                v.r[r] = out.impulse[r] / sy.scale[r] if sy.scale[r] > 0.0 else 0.0
        miss = solve_island(sy, isl, size, wk, out.state, warm, o, out.report)
        out.report[RESIDUAL] = max(out.report[RESIDUAL], miss)
        if not miss <= o.certificate:
            status = max(status, APPROXIMATE if miss <= o.approximate else FAILED)
        for i in members:
            for r in range(a.row[i], a.row[i + 1]):
                out.impulse[r] = v.r[r] * sy.scale[r]
    recover_velocity(a, used, L, below, v.y, out.velocity)
    return status
