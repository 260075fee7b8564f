"""A step in parts: bodies that no row connects do not know of each other.

What `holdfast.mujoco._islands` does, in compiled code and for the usual case. Each part has a scene
of its own in the second half of the work arrays, and finds there what it left in the last step.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

import numpy as np

from holdfast._jit import entry, inlined, kernel
from holdfast.mujoco._correct import violations
from holdfast.mujoco._listed import Listed, take_contact, take_row
from holdfast.mujoco._recall import note, recall, renew
from holdfast.mujoco._scene import (
    CONSISTENT,
    EXCESS,
    PIVOTS,
    RANK_TOL,
    REPORTED,
    ROUNDS,
    SLIP,
    Found,
    Numbers,
    Scene,
    Sizes,
    Work,
    carve,
    room,
)
from holdfast.mujoco._usual import FOUND, NOT_SETTLED, find_usual

# Columns of the table of parts. Of each tree: one that it is connected to, and its part. Of each
# part: how its motion was found, where its arrays begin, and their sizes; its first coordinate, row
# and contact.
ROOT, PART, STATUS, AT, FLAGS_AT, SIZES = range(6)
DOF, ROW, CONTACT, COLUMNS = range(11, 15)


@kernel
def root_of(table: np.ndarray, tree: int) -> int:
    """Return the tree that stands for all that a tree is connected to."""
    while table[tree, ROOT] != tree:
        tree = table[tree, ROOT]
    return tree


@kernel
def join(table_inout: np.ndarray, a: int, b: int) -> None:
    """Connect two trees; the lower one stands for both."""
    a, b = root_of(table_inout, a), root_of(table_inout, b)
    table_inout[max(a, b), ROOT] = min(a, b)


@kernel
def connect(
    A: np.ndarray, rows: np.ndarray, first: np.ndarray, bodies: np.ndarray, other: int,
    tree_of_dof: np.ndarray, tree_of_body: np.ndarray, of_dof_out: np.ndarray,
    of_row_out: np.ndarray, of_contact_out: np.ndarray, table_out: np.ndarray,
) -> int:  # fmt: skip
    """Number the parts, in the order of their trees; return how many there are.

    All trees without a row are one part: there is nothing to find out.

    Args:
        A: inertia if it may connect trees, or none of its rows.
        rows, first: all rows, and the first one of each contact.
        bodies: (2, n) of each contact.
        other: rows that belong to no contact.
        tree_of_dof, tree_of_body: trees of coordinates and bodies.
        of_dof_out, of_row_out, of_contact_out: parts of coordinates, rows and contacts.
        table_out: of the trees.
    """
    m, n, trees = rows.shape[1], first.shape[0], table_out.shape[0]
    for t in range(trees):
        table_out[t, ROOT], table_out[t, PART] = t, -1
    for i in range(n):
        last = -1
        for e in range(2):
            tree = tree_of_body[bodies[e, i]] if bodies[e, i] >= 0 else -1
            if tree >= 0:
                table_out[tree, PART] = 0
                if last >= 0:
                    join(table_out, last, tree)
                last = tree
        of_contact_out[i] = last
    for r in range(other):
        last = -1
        for j in range(m):
            if rows[r, j] != 0.0:
                table_out[tree_of_dof[j], PART] = 0
                if last >= 0:
                    join(table_out, last, tree_of_dof[j])
                last = tree_of_dof[j]
        of_row_out[r] = last
    for i in range(A.shape[0]):
        for j in range(i):
            if A[i, j] != 0.0:
                join(table_out, tree_of_dof[i], tree_of_dof[j])
    alone, parts = -1, 0
    for t in range(trees):
        if table_out[t, PART] < 0:
            alone = t if alone < 0 else alone
            join(table_out, alone, t)
    for t in range(trees):  # a root comes before all that it stands for
        root = root_of(table_out, t)
        table_out[t, PART] = table_out[root, PART] if root < t else parts
        parts += int(root == t)
    for r in range(other):
        of_row_out[r] = table_out[of_row_out[r], PART] if of_row_out[r] >= 0 else 0
    for i in range(n):
        tree = of_contact_out[i]
        of_contact_out[i] = table_out[tree, PART] if tree >= 0 else 0
        for r in range(first[i], first[i + 1] if i + 1 < n else rows.shape[0]):
            of_row_out[r] = of_contact_out[i]
    for j in range(m):
        of_dof_out[j] = table_out[tree_of_dof[j], PART]
    return parts


@kernel
def whole(sc: Scene) -> Sizes:
    """Return the sizes of a scene."""
    return Sizes(
        sc.v.shape[0], sc.gap.shape[0], sc.rows.shape[0], sc.target.shape[0], sc.loss.shape[0],
        sc.limit_gap.shape[0],
    )  # fmt: skip


@kernel
def sizes_of(sc: Scene, k: int, table: np.ndarray, wk: Work) -> Sizes:
    """Return the sizes of part k."""
    nefc = ne = nf = nl = 0
    equal, dry = sc.target.shape[0], sc.target.shape[0] + sc.loss.shape[0]
    r = table[k, ROW]
    while r >= 0:
        nefc += 1
        ne += int(r < equal)
        nf += int(equal <= r < dry)
        nl += int(dry <= r < dry + sc.limit_gap.shape[0])
        r = wk.of_row[r]
    m, n = count(table[k, DOF], wk.of_dof), count(table[k, CONTACT], wk.of_contact)
    return Sizes(m, n, nefc, ne, nf, nl)


@kernel
def chain(of_inout: np.ndarray, first_out: np.ndarray) -> None:
    """Put in place of each member's part the next member of that part, or -1; fill the first."""
    for k in range(first_out.shape[0]):
        first_out[k] = -1
    for i in range(of_inout.shape[0] - 1, -1, -1):
        k = of_inout[i]
        of_inout[i] = first_out[k]
        first_out[k] = i


@kernel
def count(first: int, next_: np.ndarray) -> int:
    """Return how many members there are from the first one on."""
    members = 0
    while first >= 0:
        members += 1
        first = next_[first]
    return members


@kernel
def list_members(first: int, next_: np.ndarray, members_out: np.ndarray) -> None:
    """Fill in the members from the first one on."""
    members = 0
    while first >= 0:
        members_out[members] = first
        members += 1
        first = next_[first]


@kernel
def take_others(li: Listed, count: int, wk: Work, sc: Scene) -> None:
    """Fill in the rows that belong to no contact, and places as if there was one part."""
    for j in range(wk.place.shape[0]):
        wk.place[j] = j
    for r in range(count):
        take_row(li, r, sc.rows[r])


@kernel
def take_contacts(
    li: Listed, numbers: np.ndarray, dofs: np.ndarray, place: np.ndarray, sc: Scene
) -> None:
    """Fill in the rows of all contacts of a part, whose numbers in MuJoCo's list are given."""
    for c in range(sc.gap.shape[0]):
        take_contact(li, numbers[c], dofs, place, sc.rows[sc.first[c] :])


@kernel
def cut_out(sc: Scene, li: Listed, place: np.ndarray, part: Scene, wk: Work) -> None:
    """Fill in the scene of a part, whose members wk lists."""
    m, ne, nf = part.v.shape[0], part.target.shape[0], part.loss.shape[0]
    equal, dry = sc.target.shape[0], sc.target.shape[0] + sc.loss.shape[0]
    for a in range(m):
        j = wk.of_dof[a]
        part.v[a], part.f[a] = sc.v[j], sc.f[j]
        for b in range(m):
            part.A[0, a, b] = sc.A[0, j, wk.of_dof[b]]
    others = ne + nf + part.limit_gap.shape[0]
    for r in range(others):
        for a in range(m):
            part.rows[r, a] = sc.rows[wk.of_row[r], wk.of_dof[a]]
    for i in range(ne):
        part.target[i], part.error[i] = sc.target[wk.of_row[i]], sc.error[wk.of_row[i]]
    for i in range(nf):
        part.loss[i] = sc.loss[wk.of_row[ne + i] - equal]
    for i in range(part.limit_gap.shape[0]):
        part.limit_gap[i] = sc.limit_gap[wk.of_row[ne + nf + i] - dry]
    r = others
    for c in range(part.gap.shape[0]):
        i = wk.of_contact[c]
        while wk.of_row[r] < sc.first[i]:
            r += 1
        part.first[c], part.dim[c], part.sticks[c] = r, sc.dim[i], sc.sticks[i]
        part.gap[c], part.mu[c] = sc.gap[i], sc.mu[i]
        part.listed[0, c] = sc.listed[0, i]
    take_contacts(li, part.listed[0], wk.of_dof, place, part)


@kernel
def put_together(sz: Sizes, first_limit: int, part: Found, wk: Work, out: Found) -> None:
    """Add what was found for a part, whose members wk lists, to what is found."""
    for a in range(part.motion.shape[0]):
        out.motion[wk.of_dof[a]], out.v_free[wk.of_dof[a]] = part.motion[a], part.v_free[a]
    for r in range(part.impulse.shape[0]):
        out.impulse[wk.of_row[r]] = part.impulse[r]
        out.loaded[wk.of_row[r]] = part.loaded[r]
    for c in range(part.contacts.shape[0]):
        i = wk.of_contact[c]
        out.contacts[i], out.closed[i] = part.contacts[c], part.closed[c]
        out.grips[i], out.held[i] = part.grips[c], part.held[c]
    for i in range(sz.nl):
        out.limits[wk.of_row[sz.ne + sz.nf + i] - first_limit] = part.limits[i]
    for e in (SLIP, EXCESS, RANK_TOL, ROUNDS):
        out.numbers[e] = max(out.numbers[e], part.numbers[e])
    out.numbers[CONSISTENT] = min(out.numbers[CONSISTENT], part.numbers[CONSISTENT])
    out.numbers[PIVOTS] += part.numbers[PIVOTS]


@kernel
def find_at(work: np.ndarray, words: np.ndarray, flags: np.ndarray, sz: Sizes,
            nr: Numbers) -> int:  # fmt: skip
    """Find the motion of the scene of these sizes in these arrays, if it is a usual one."""
    sc, wk, out = carve(work, words, flags, sz)
    return find_usual(sc, nr, wk, out)


@inlined
def find_parts(
    sc: Scene, li: Listed, nr: Numbers, parts: int, work: np.ndarray, words: np.ndarray,
    flags: np.ndarray, memo: np.ndarray, wk: Work, table_inout: np.ndarray,
) -> int:  # fmt: skip
    """Find the motion of each part, if it is a usual one; a single one has no scene of its own.

    Returns:
        FOUND if all are; NOT_SETTLED if a search has to find the others; else what is in doubt.
    """
    status, at, flags_at = FOUND, np.int64(0), np.int64(0)
    if parts > 1:
        at, flags_at = work.shape[0] // 2, flags.shape[0] // 2
        chain(wk.of_dof, table_inout[:, DOF])
        chain(wk.of_row, table_inout[:, ROW])
        chain(wk.of_contact, table_inout[:, CONTACT])
    for k in range(parts):
        sz = whole(sc)
        if parts > 1:
            sz = sizes_of(sc, k, table_inout, wk)
            scene, own, found = carve(work[at:], words[at:], flags[flags_at:], sz)
            same = table_inout[k, AT] == at and table_inout[k, FLAGS_AT] == flags_at
            for e in range(6):
                same = same and table_inout[k, SIZES + e] == sz[e]
            renew(same, own, found)
            list_members(table_inout[k, DOF], wk.of_dof, own.of_dof)
            list_members(table_inout[k, ROW], wk.of_row, own.of_row)
            list_members(table_inout[k, CONTACT], wk.of_contact, own.of_contact)
            for a in range(sz.m):
                wk.place[own.of_dof[a]] = a
            cut_out(sc, li, wk.place, scene, own)
            if not same and memo.shape[0] > 1:
                recall(scene, own.of_contact, wk.which[0], memo, found)
        table_inout[k, AT], table_inout[k, FLAGS_AT] = at, flags_at
        for e in range(6):
            table_inout[k, SIZES + e] = sz[e]
        numbers, booleans = room(sz)
        table_inout[k, STATUS] = find_at(work[at:], words[at:], flags[flags_at:], sz, nr)
        at, flags_at = at + numbers, flags_at + booleans
        if table_inout[k, STATUS] != FOUND and status in (FOUND, NOT_SETTLED):
            status = table_inout[k, STATUS]
    for k in range(parts, table_inout.shape[0]):
        table_inout[k, AT] = -1  # what stood there is gone
    return status


@kernel
def sizes_at(table: np.ndarray, k: int) -> Sizes:
    """Return the sizes of part k, as the table has them."""
    row = table[k, SIZES:]
    return Sizes(row[0], row[1], row[2], row[3], row[4], row[5])


@kernel
def violated_by(sc: Scene, nr: Numbers, out: Found) -> tuple[float, float]:
    """Return the deepest penetration before the step, and the worst violation left after it."""
    return violations(
        sc.rows, sc.first, sc.gap, sc.gap[:0], sc.limit_gap, sc.error, sc.target, out.motion,
        sc.loss.shape[0], nr.h,
    )  # fmt: skip


@kernel
def gather_parts(
    parts: int, nr: Numbers, work: np.ndarray, words: np.ndarray, flags: np.ndarray,
    table: np.ndarray, sc: Scene, memo: np.ndarray, out: Found,
) -> tuple[float, float]:  # fmt: skip
    """Fill out, and memo, with what was found for all parts; return what `violated_by` does."""
    first_limit = sc.target.shape[0] + sc.loss.shape[0]
    for e in range(REPORTED):
        out.numbers[e] = 0.0
    out.numbers[CONSISTENT] = 1.0
    deepest = left = 0.0
    for k in range(parts):
        sz = sizes_at(table, k)
        scene, own, found = carve(work[table[k, AT] :], words[table[k, AT] :],
                                  flags[table[k, FLAGS_AT] :], sz)  # fmt: skip
        put_together(sz, first_limit, found, own, out)
        if memo.shape[0] > 1:
            note(sc, own.of_contact, scene, found, memo)
        deep, rest = violated_by(scene, nr, found)
        deepest, left = max(deepest, deep), max(left, rest)
    return deepest, left


@kernel
def show_parts(
    parts: int, work: np.ndarray, words: np.ndarray, flags: np.ndarray, table: np.ndarray,
    force_out: np.ndarray, h: float,
) -> None:  # fmt: skip
    """Add the generalised forces of all rows of all parts, see `show_motion`."""
    for k in range(parts):
        scene, own, found = carve(work[table[k, AT] :], words[table[k, AT] :],
                                  flags[table[k, FLAGS_AT] :], sizes_at(table, k))  # fmt: skip
        for r in range(found.impulse.shape[0]):
            if found.impulse[r] != 0.0:
                force = found.impulse[r] / h
                for a in range(own.of_dof.shape[0]):
                    force_out[own.of_dof[a]] += scene.rows[r, a] * force


@entry
def gather_numbers(
    work: np.ndarray, words: np.ndarray, flags: np.ndarray, table: np.ndarray,
    numbers_out: np.ndarray,
) -> None:  # fmt: skip
    """Fill in the numbers that were found for each part."""
    for k in range(numbers_out.shape[0]):
        _, _, found = carve(work[table[k, AT] :], words[table[k, AT] :],
                            flags[table[k, FLAGS_AT] :], sizes_at(table, k))  # fmt: skip
        for e in range(REPORTED):
            numbers_out[k, e] = found.numbers[e]


@entry
def gather_rows(
    work: np.ndarray, words: np.ndarray, flags: np.ndarray, sizes: np.ndarray, table: np.ndarray,
    parts: int,
) -> None:  # fmt: skip
    """Fill in the rows of the whole scene from those of its parts; only Python asks for them."""
    sz = Sizes(sizes[0], sizes[1], sizes[2], sizes[3], sizes[4], sizes[5])
    sc, _, _ = carve(work, words, flags, sz)
    sc.rows[:] = 0.0
    for k in range(parts):
        scene, own, _ = carve(work[table[k, AT] :], words[table[k, AT] :],
                              flags[table[k, FLAGS_AT] :], sizes_at(table, k))  # fmt: skip
        for r in range(scene.rows.shape[0]):
            for a in range(own.of_dof.shape[0]):
                sc.rows[own.of_row[r], own.of_dof[a]] = scene.rows[r, a]
