"""Stage 2: MuJoCo's constraint list as the arrays of the contact solve, each row with its law.

==========================  ==========================================================
MuJoCo                      constraint
==========================  ==========================================================
equality                    COMPLIANT: ``J v+ + R p = J v + h a_ref`` with MuJoCo's own
                            ``efc_R`` and ``efc_aref``; or RIGID: ``J v+ = 0``
friction loss               DRY, bounded by h times the loss
joint and tendon limits     rigid: FRICTIONLESS, ``U v+ >= -pos / h`` until the limit is
                            reached; or compliant: ``0 <= p``, ``U v+ + R p >= U v + h a_ref``,
                            at least one of them equal, with MuJoCo's own numbers
contact, first row          ``N v+ >= -dist / h`` until the surfaces touch
contact, other rows         sliding, torsion and rolling, by the law of the pair
compliant contact           the same laws of ``u + R p`` in the place of u, with the target
                            ``J v + h a_ref`` and MuJoCo's own numbers, see
                            `holdfast.contact.giving`
==========================  ==========================================================

MuJoCo finds ``J a + R f = a_ref`` for a compliant row; with ``p = h f`` and ``v+ = v + h a`` that
is the row above. A compliant limit that presses is such a row, too, and one that does not carries
nothing: `choose_limits` begins with those that the motion before the step or the free motion
exceeds, `revise_limits` releases those that pull and loads those that should press.

Rows of contacts are made in `contact_rows`, all others are read from MuJoCo's list. A row that is
shorter than the rounding of the geometry, as that of a contact whose normal passes through a joint
axis, is zero.
Links that overlap for good, deeper than a turn of their joints could undo, are no contact.
"""

# pyright: reportArgumentType=false, reportReturnType=false, reportAssignmentType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from holdfast._jit import inlined, kernel
from holdfast.contact.arrays import Answer, Arrays, ContactState, LawKind, row_speed
from holdfast.contact.ladder import REPORT
from holdfast.linalg.views import vector
from holdfast.mujoco._mj import mujoco
from holdfast.mujoco.contact_rows import fill_panel, tree_of_geom
from holdfast.mujoco.record import Status
from holdfast.mujoco.structs import (
    CONTACT_SIZE,
    booleans,
    contact_at,
    data_at,
    floats,
    integers,
    words,
)

NO_FRICTION = 1e-5  # MuJoCo's smallest coefficient, which it puts in place of 0
COLUMNS = 6  # most rows of a contact
MOST = 1 << 20  # more than the contacts of a pair of geoms
LEAST = float(mujoco.mjMINVAL)  # what MuJoCo takes for the compliance of bodies without weight
DAMPING = 1  # where MuJoCo has it among stiffness, damping and impedance of a row

FRICTIONLESS, COULOMB = int(LawKind.FRICTIONLESS), int(LawKind.COULOMB)
NO_SLIP, VISCOUS = int(LawKind.NO_SLIP), int(LawKind.VISCOUS)
DRY, RIGID, COMPLIANT = int(LawKind.DRY), int(LawKind.RIGID), int(LawKind.COMPLIANT)
OPEN, STICK = int(ContactState.OPEN), int(ContactState.STICK)
DECLARED = -1.0  # value of a Coulomb law: the coefficient that the model declares


class Kind(IntEnum):
    """What a constraint is in MuJoCo."""

    EQUALITY = 0
    FRICTION = 1
    LIMIT = 2
    CONTACT = 3


EQUALITY, FRICTION = int(Kind.EQUALITY), int(Kind.FRICTION)
LIMIT, CONTACT = int(Kind.LIMIT), int(Kind.CONTACT)


class Constraints(NamedTuple):
    """What the step knows of each constraint beside the arrays of the solve."""

    kind: np.ndarray  # (n,) Kind
    source: np.ndarray  # (n,) number of the contact in mjData, or row in MuJoCo's list
    key: np.ndarray  # (n,) identity from step to step
    dim: np.ndarray  # (n,) rows that the contact has in MuJoCo
    geom: np.ndarray  # (n, 2) geoms of a contact; type and joint or tendon of a limit
    gap: np.ndarray  # (n,) distance; violation of an equality [m, rad]
    sunk: np.ndarray  # (n,) how far below what its row says a contact ends the step [m]
    mu: np.ndarray  # (n,) declared coefficient of sliding friction
    place: np.ndarray  # (n, 12) position and frame of a contact


class Listed(NamedTuple):
    """MuJoCo's list of rows as it stands in mjData; those of contacts are not looked at."""

    values: np.ndarray  # row by row
    begin: np.ndarray  # of each row, if rows are listed by their entries
    length: np.ndarray
    column: np.ndarray
    tree_of: np.ndarray  # tree of each coordinate
    tree: np.ndarray
    nv: int
    sparse: bool


@kernel
def listed(s: Any) -> Listed:
    """Return MuJoCo's list."""
    d = data_at(s.data)
    rows = np.int64(d.nefc)
    begin, length = integers(d.efc_J_rowadr, 1, rows)[0], integers(d.efc_J_rownnz, 1, rows)[0]
    entries = rows * s.nv
    sparse = s.sparse == 1
    if sparse:
        entries = np.int64(begin[rows - 1] + length[rows - 1]) if rows > 0 else np.int64(0)
    return Listed(
        floats(d.efc_J, 1, entries)[0], begin, length,
        integers(d.efc_J_colind, 1, entries if sparse else 0)[0], words(s.tree_of, 1, s.nv)[0],
        words(s.tree, 1, s.ntree + 1)[0], s.nv, sparse,
    )  # fmt: skip


@kernel
def next_tree(li: Listed, row: int, after: int) -> int:
    """Return the first tree beyond `after` that a row touches, or -1."""
    found = -1
    if li.sparse:
        begin = np.int64(li.begin[row])
        for p in range(begin, begin + li.length[row]):
            t = li.tree_of[li.column[p]]
            if t > after and (found < 0 or t < found) and li.values[p] != 0.0:
                found = t
        return found
    for j in range(li.tree[after + 1] if after >= 0 else 0, li.nv):
        if li.values[row * li.nv + j] != 0.0:
            return li.tree_of[j]
    return -1


@inlined
def find_tree(li: Listed, row: int, t: int) -> tuple[int, bool]:
    """Return where a row has the coordinates of a tree, and whether it has all, in their order.

    If it has not, this is 0: entries have to be looked at one by one.
    """
    begin, size = li.tree[t], li.tree[t + 1] - li.tree[t]
    if not li.sparse:
        return begin, True
    first, length, at = np.int64(li.begin[row]), np.int64(li.length[row]), 0
    while at < length and li.column[first + at] < begin:
        at += 1
    if at + size > length:
        return 0, False
    for j in range(size):
        if li.column[first + at + j] != begin + j:
            return 0, False
    return at, True


@inlined
def take_row(li: Listed, r: int, t: int, at: int, whole: bool, row_out: np.ndarray) -> None:
    """Fill the coordinates of row r that are of tree t."""
    p = at + (np.int64(li.begin[r]) if li.sparse else r * li.nv)
    if whole:
        for j in range(row_out.shape[0]):
            row_out[j] = li.values[p + j]
        return
    for j in range(row_out.shape[0]):
        row_out[j] = 0.0
    for e in range(li.length[r]):
        j = np.int64(li.column[p + e]) - li.tree[t]
        if 0 <= j < row_out.shape[0]:
            row_out[j] = li.values[p + e]


@kernel
def contact_dim(c: Any) -> int:
    """Return the rows that a contact really has: those with friction."""
    dim = np.int64(c.dim)
    if dim == 6 and c.friction[3] <= NO_FRICTION and c.friction[4] <= NO_FRICTION:
        dim = 4
    if dim == 4 and c.friction[2] <= NO_FRICTION:
        dim = 3
    if dim == 3 and c.friction[0] <= NO_FRICTION and c.friction[1] <= NO_FRICTION:
        dim = 1
    return dim


@inlined
def trees_of_contact(s: Any, c: Any) -> tuple[int, int]:
    """Return the trees of the two bodies of a contact, in rising order; -1 for what is fixed."""
    a, b = tree_of_geom(s, c.geom[0]), tree_of_geom(s, c.geom[1])
    if a == b:
        b = -1
    return (a, b) if a < b or b < 0 else (b, a)


@kernel
def count_constraints(s: Any) -> None:
    """Count constraints, rows, panels and entries."""
    d, li = data_at(s.data), listed(s)
    others = np.int64(d.ne) + np.int64(d.nf) + np.int64(d.nl)
    n, rows, panels, entries = others, others, 0, 0
    for r in range(others):
        t = next_tree(li, r, -1)
        while t >= 0:
            panels += 1
            entries += li.tree[t + 1] - li.tree[t]
            t = next_tree(li, r, t)
    for i in range(d.ncon):
        c = contact_at(d.contact + i * CONTACT_SIZE)
        if c.exclude != 0:
            continue
        dim = contact_dim(c)
        n += 1
        rows += dim
        for t in trees_of_contact(s, c):
            if t >= 0:
                panels += 1
                entries += dim * (li.tree[t + 1] - li.tree[t])
    s.constraints, s.rows, s.panels, s.entries = n, rows, panels, entries


@kernel
def size_needed(s: Any) -> int:
    """Return how long the work array must be for the arrays that `carve` cuts from it."""
    n, rows = s.constraints, s.rows
    ints = 3 * (n + 1) + 2 * s.panels + 2 * n + 7 * n
    return s.nblock + 2 * s.nv + ints + 16 * n + s.entries + 6 * rows + REPORT + 64


@kernel
def carve(s: Any) -> tuple[Arrays, Answer, Constraints, int]:
    """Cut the work array into the arrays of a step; return them and the address of the rest."""
    n, nr, nv, at = s.constraints, s.rows, s.nv, s.work
    law = words(at, 1, n)[0]
    at += 8 * n
    row = words(at, 1, n + 1)[0]
    at += 8 * (n + 1)
    panel = words(at, 1, n + 1)[0]
    at += 8 * (n + 1)
    panel_tree = words(at, 1, s.panels)[0]
    at += 8 * s.panels
    panel_at = words(at, 1, s.panels)[0]
    at += 8 * s.panels
    state = words(at, 1, n)[0]
    at += 8 * n
    kind = words(at, 1, n)[0]
    at += 8 * n
    source = words(at, 1, n)[0]
    at += 8 * n
    key = words(at, 1, n)[0]
    at += 8 * n
    dim = words(at, 1, n)[0]
    at += 8 * n
    geom = words(at, n, 2)
    at += 16 * n
    gap = floats(at, 1, n)[0]
    at += 8 * n
    sunk = floats(at, 1, n)[0]
    at += 8 * n
    mu = floats(at, 1, n)[0]
    at += 8 * n
    place = floats(at, n, 12)
    at += 96 * n
    values = floats(at, 1, s.entries)[0]
    at += 8 * s.entries
    target = floats(at, 1, nr)[0]
    at += 8 * nr
    friction = floats(at, 1, nr)[0]
    at += 8 * nr
    bound = floats(at, 1, nr)[0]
    at += 8 * nr
    compliance = floats(at, 1, nr)[0]
    at += 8 * nr
    impulse = floats(at, 1, nr)[0]
    at += 8 * nr
    report = floats(at, 1, REPORT)[0]
    at += 8 * REPORT
    arrays = Arrays(
        words(s.tree, 1, s.ntree + 1)[0], words(s.block, 1, s.ntree + 1)[0],
        floats(s.inertia, 1, s.nblock)[0], floats(s.free, 1, nv)[0], law, row, panel, panel_tree,
        panel_at, values, target, friction, bound, compliance,
    )  # fmt: skip
    answer = Answer(floats(s.velocity, 1, nv)[0], impulse, state, report)
    return arrays, answer, Constraints(kind, source, key, dim, geom, gap, sunk, mu, place), at


@kernel
def read_constraints(s: Any) -> int:
    """Fill the arrays of the solve; return DONE or MORE_MEMORY.

    Gaps are MuJoCo's distances, or those that the look-ahead has put in their place.
    """
    count_constraints(s)
    d = data_at(s.data)
    if size_needed(s) > s.work_size or d.ncon > s.capacity:
        s.work_needed, s.capacity_needed = size_needed(s), d.ncon
        return Status.MORE_MEMORY
    arrays, _, cs, _ = carve(s)
    li = listed(s)
    arrays.row[0] = arrays.panel[0] = 0
    others = np.int64(d.ne) + np.int64(d.nf) + np.int64(d.nl)
    entry = s.overlaps = 0
    for r in range(others):
        entry = read_row(s, d, li, r, entry, arrays, cs)
    k = others
    for i in range(d.ncon):
        c = contact_at(d.contact + i * CONTACT_SIZE)
        if c.exclude == 0:
            entry = read_contact(s, d, c, i, k, entry, arrays, cs)
            k += 1
    for p in range(arrays.panel[k], s.panels):  # of contacts that are left alone
        arrays.panel_tree[p] = arrays.panel_at[p] = 0
    return Status.DONE


@inlined
def read_row(
    s: Any, d: Any, li: Listed, r: int, entry: int, arrays: Arrays, cs: Constraints
) -> int:
    """Read an equality, a row of dry friction or a limit; return where the next panel begins."""
    ne, nf = np.int64(d.ne), np.int64(d.nf)
    position, which = floats(d.efc_pos, 1, d.nefc)[0], integers(d.efc_id, 1, d.nefc)[0]
    kinds = integers(d.efc_type, 1, d.nefc)[0]
    cs.source[r], cs.dim[r], cs.gap[r], cs.sunk[r], cs.mu[r] = r, 1, position[r], 0.0, 0.0
    cs.geom[r, 0] = cs.geom[r, 1] = -1
    arrays.row[r + 1] = r + 1
    arrays.friction[r] = arrays.bound[r] = arrays.compliance[r] = arrays.target[r] = 0.0
    side = 0
    if r < ne:
        cs.kind[r] = EQUALITY
        side = r - first_of(which, r, 0)
        if s.rigid_equalities == 1:
            arrays.law[r] = RIGID
            arrays.target[r] = driven_speed(s, which[r], position[r])
        else:
            arrays.law[r] = COMPLIANT
            give_way(s, d, r, r, arrays)
    elif r < ne + nf:
        cs.kind[r], arrays.law[r] = FRICTION, DRY
        arrays.bound[r] = s.h * floats(d.efc_frictionloss, 1, d.nefc)[0, r]
        side = kinds[r]
    else:
        cs.kind[r], arrays.law[r] = LIMIT, FRICTIONLESS
        cs.geom[r, 0], cs.geom[r, 1] = kinds[r], which[r]
        if s.rigid_limits == 1:
            arrays.target[r] = closing_speed(s, position[r])
        else:
            give_way(s, d, r, r, arrays)
        side = 2 * kinds[r]
    k, t, start = arrays.panel[r], next_tree(li, r, -1), entry
    while t >= 0:
        size = li.tree[t + 1] - li.tree[t]
        arrays.panel_tree[k], arrays.panel_at[k] = t, entry
        at, whole = find_tree(li, r, t)
        take_row(li, r, t, at, whole, vector(arrays.values, entry, size))
        entry += size
        k += 1
        t = next_tree(li, r, t)
    arrays.panel[r + 1] = k
    if cs.kind[r] == LIMIT:  # the lower one pushes up
        side += first_sign(arrays.values[start:entry])
        if s.rigid_limits == 0:
            exceeds = row_speed(arrays, r, 0, arrays.free) < arrays.target[r]
            arrays.law[r] = COMPLIANT if exceeds else DRY
    cs.key[r] = -((4 * np.int64(which[r]) + cs.kind[r]) * 64 + side) - 1
    return entry


@inlined
def give_way(s: Any, d: Any, listed: int, r: int, arrays: Arrays) -> None:
    """Give row r the target and the compliance that it has in MuJoCo's list."""
    speed, wanted = floats(d.efc_vel, 1, d.nefc)[0], floats(d.efc_aref, 1, d.nefc)[0]
    arrays.target[r] = speed[listed] + s.h * wanted[listed]
    arrays.compliance[r] = floats(d.efc_R, 1, d.nefc)[0, listed]


@kernel
def first_sign(values: np.ndarray) -> int:
    """Return 1 if the first number that is not zero is positive, else 0."""
    for x in values:
        if x != 0.0:
            return 1 if x > 0.0 else 0
    return 0


@kernel
def first_of(which: np.ndarray, r: int, begin: int) -> int:
    """Return the first row that belongs to the same equality as row r."""
    while r > begin and which[r - 1] == which[r]:
        r -= 1
    return r


@kernel
def driven_speed(s: Any, equality: int, error: float) -> float:
    """Return the speed of a rigid equality row: 0, or what carries a body to its mocap body.

    The distance to a mocap body is not drift but the user's command. It is closed with the time
    constant of the constraint's solref, so that a jump of the mocap body is no explosion.
    """
    if s.nmocap == 0 or not booleans(s.eq_driven, 1, s.neq)[0, equality]:
        return 0.0
    constant = floats(s.eq_solref, s.neq, 2)[equality, 0]
    return -error / max(constant, s.h)


@inlined
def closing_speed(s: Any, gap: float) -> float:
    """Return the speed, negative, that closes a gap within the step; 0 for what touches.

    Gaps that differ by rounding alone would have to be closed one by one, by impulses that only
    they explain.
    """
    return -gap / s.h if gap > s.touching * s.size else 0.0


@inlined
def law_of(s: Any, a: int, b: int) -> tuple[int, float]:
    """Return the law of a pair of geoms, and its coefficient."""
    one = booleans(s.rule_first, s.nrule, s.ngeom)
    two = booleans(s.rule_second, s.nrule, s.ngeom)
    for k in range(s.nrule):
        if a >= 0 and b >= 0 and ((one[k, a] and two[k, b]) or (one[k, b] and two[k, a])):
            return words(s.rule_law, 1, s.nrule)[0, k], floats(s.rule_value, 1, s.nrule)[0, k]
    return s.default_law, s.default_value


@inlined
def read_contact(
    s: Any, d: Any, c: Any, i: int, k: int, entry: int, arrays: Arrays, cs: Constraints
) -> int:
    """Read contact i as constraint k; return where the next panel begins."""
    row, dim, given, start = arrays.row[k], contact_dim(c), np.int64(c.dim), entry
    a, b = np.int64(c.geom[0]), np.int64(c.geom[1])
    gap = floats(s.gaps, 1, s.capacity)[0, i]
    cs.kind[k], cs.source[k], cs.dim[k] = CONTACT, i, given
    cs.geom[k, 0], cs.geom[k, 1], cs.gap[k], cs.sunk[k] = a, b, gap, 0.0
    cs.mu[k] = 0.0 if dim == 1 else min(c.friction[0], c.friction[1])
    order = 0
    if k > 0 and cs.kind[k - 1] == CONTACT and cs.geom[k - 1, 0] == a and cs.geom[k - 1, 1] == b:
        order = cs.key[k - 1] % MOST + 1
    cs.key[k] = ((a + 1) * (s.ngeom + 1) + b + 1) * MOST + order
    for e in range(3):
        cs.place[k, e] = c.pos[e]
    for e in range(9):
        cs.place[k, 3 + e] = c.frame[e]
    arrays.row[k + 1] = row + dim
    p = arrays.panel[k]
    for t in trees_of_contact(s, c):
        if t >= 0:
            arrays.panel_tree[p], arrays.panel_at[p] = t, entry
            entry = fill_panel(s, d, c, t, dim, entry, arrays.values)
            p += 1
    arrays.panel[k + 1] = p
    drop_rounding(s, c, k, dim, arrays)
    rigid, listed = s.rigid_contacts == 1, np.int64(c.efc_address)
    gives = not rigid and listed >= 0 and floats(d.efc_R, 1, d.nefc)[0, listed] > LEAST
    overlaps = not gives and overlaps_for_good(s, arrays, k, gap)
    if overlaps or not (rigid or listed >= 0):  # without panels it takes no part
        arrays.panel[k + 1], entry = arrays.panel[k], start
        s.overlaps += overlaps
    law, value = law_of(s, a, b)
    apart = rigid and gap > s.touching * s.size
    if dim == 1 or (law == VISCOUS and (value == 0.0 or apart)):
        law = FRICTIONLESS
    arrays.law[k] = law
    for e in range(dim):
        r = row + e
        arrays.target[r] = arrays.friction[r] = arrays.bound[r] = arrays.compliance[r] = 0.0
        if e > 0 and law == COULOMB:
            mu = c.friction[e - 1] if c.friction[e - 1] > NO_FRICTION else 0.0
            arrays.friction[r] = value if e <= 2 and value >= 0.0 else mu
        elif e > 0 and law == VISCOUS:
            arrays.compliance[r] = 1.0 / (s.h * value)
        if listed >= 0 and not rigid and (e == 0 or law == COULOMB):
            give_way(s, d, listed + e, r, arrays)
    if rigid:
        arrays.target[row] = closing_speed(s, gap)
    if s.nmocap > 0:
        add_mocap_speed(s, c, 1.0, b, row, dim, arrays)
        add_mocap_speed(s, c, -1.0, a, row, dim, arrays)
    return entry


@inlined
def drop_rounding(s: Any, c: Any, k: int, dim: int, arrays: Arrays) -> None:
    """Zero the rows of a contact that are shorter than the rounding of its place."""
    far = abs(c.pos[0]) + abs(c.pos[1]) + abs(c.pos[2])
    limit = s.row_rounding * (s.size + far)
    for e in range(dim):
        if is_longer(arrays, k, e, limit):
            continue
        for p in range(arrays.panel[k], arrays.panel[k + 1]):
            t = arrays.panel_tree[p]
            size = arrays.tree[t + 1] - arrays.tree[t]
            begin = arrays.panel_at[p] + e * size
            for j in range(begin, begin + size):
                arrays.values[j] = 0.0


@inlined
def overlaps_for_good(s: Any, arrays: Arrays, k: int, gap: float) -> bool:
    """Return whether a contact is so deep, and its lever so short, that no motion takes it out.

    Links of a mechanism often overlap where they are joined, and the normal passes near the axis.
    Kept, such a contact would have to carry any force, and its friction would block the joint.
    """
    if -gap <= s.deep * s.size or is_longer(arrays, k, 0, s.overlap_lever * min(1.0, s.size)):
        return False
    lever = 0.0
    for p in range(arrays.panel[k], arrays.panel[k + 1]):
        t, at = arrays.panel_tree[p], arrays.panel_at[p]
        for j in range(at, at + arrays.tree[t + 1] - arrays.tree[t]):
            lever += abs(arrays.values[j])
    return -gap > s.overlap_turn * lever


@inlined
def takes_part(arrays: Arrays, i: int) -> bool:
    """Return whether a constraint has coordinates, and is no overlap that is left alone."""
    return arrays.panel[i + 1] > arrays.panel[i]


@inlined
def is_longer(arrays: Arrays, k: int, e: int, limit: float) -> bool:
    """Return whether an entry of row e of constraint k is beyond a limit."""
    for p in range(arrays.panel[k], arrays.panel[k + 1]):
        t = arrays.panel_tree[p]
        size = arrays.tree[t + 1] - arrays.tree[t]
        begin = arrays.panel_at[p] + e * size
        for j in range(begin, begin + size):
            if abs(arrays.values[j]) > limit:
                return True
    return False


@inlined
def add_mocap_speed(
    s: Any, c: Any, sign: float, geom: int, row: int, dim: int, arrays: Arrays
) -> None:
    """Let the surface of a mocap body move with it: subtract its speed from the targets.

    A row that gives way has it in its reference alone, times the damping.
    """
    k = words(s.geom_mocap, 1, s.ngeom)[0, geom] if geom >= 0 else -1
    if k < 0:
        return
    d = data_at(s.data)
    w = floats(s.mocap_velocity, s.nmocap, 6)[k]
    body = words(s.mocap_body, 1, s.nmocap)[0, k]
    centre = floats(d.xpos, s.nbody, 3)[body]
    x, y, z = c.pos[0] - centre[0], c.pos[1] - centre[1], c.pos[2] - centre[2]
    u = w[0] + w[4] * z - w[5] * y
    v = w[1] + w[5] * x - w[3] * z
    q = w[2] + w[3] * y - w[4] * x
    for e in range(dim):
        f, part = 3 * (e % 3), 1.0
        if e < 3:
            speed = c.frame[f] * u + c.frame[f + 1] * v + c.frame[f + 2] * q
        else:
            speed = c.frame[f] * w[3] + c.frame[f + 1] * w[4] + c.frame[f + 2] * w[5]
        if s.rigid_contacts == 0 and arrays.compliance[row + e] > 0.0:
            part = s.h * floats(d.efc_KBIP, d.nefc, 4)[np.int64(c.efc_address) + e, DAMPING]
        arrays.target[row + e] -= sign * part * speed


@kernel
def is_free(s: Any, arrays: Arrays, cs: Constraints) -> bool:
    """Return whether the free motion closes no contact and reaches no limit.

    Then constraints carry nothing, unless there are equalities, dry friction or drag.
    """
    for i in range(cs.kind.shape[0]):
        if cs.kind[i] == EQUALITY or cs.kind[i] == FRICTION or arrays.law[i] == VISCOUS:
            return False
        deep = cs.gap[i] < -s.touching * s.size and takes_part(arrays, i)
        if deep and not is_soft(arrays, cs, i):
            return False
        speed = row_speed(arrays, i, 0, arrays.free)
        if speed < arrays.target[arrays.row[i]]:
            return False
    return True


@inlined
def is_soft(arrays: Arrays, cs: Constraints, i: int) -> bool:
    """Return whether a constraint is a limit or a contact that gives way."""
    either = cs.kind[i] == LIMIT or cs.kind[i] == CONTACT
    return either and arrays.compliance[arrays.row[i]] > 0.0


@kernel
def choose_limits(arrays: Arrays, cs: Constraints, before: np.ndarray) -> None:
    """Load the compliant limits that the motion before the step exceeds, too."""
    for i in range(cs.kind.shape[0]):
        exceeds = row_speed(arrays, i, 0, before) < arrays.target[arrays.row[i]]
        if cs.kind[i] == LIMIT and is_soft(arrays, cs, i) and exceeds:
            arrays.law[i] = COMPLIANT


@kernel
def revise_limits(arrays: Arrays, cs: Constraints, answer: Answer, load: bool) -> bool:
    """Release compliant limits that pull and, if asked to, load those that should press.

    Return whether any has changed.
    """
    changed = False
    for i in range(cs.kind.shape[0]):
        if cs.kind[i] != LIMIT or not is_soft(arrays, cs, i):
            continue
        r = arrays.row[i]
        if arrays.law[i] == COMPLIANT:
            if answer.impulse[r] < 0.0:
                arrays.law[i], answer.state[i], answer.impulse[r] = DRY, OPEN, 0.0
                changed = True
        elif load and row_speed(arrays, i, 0, answer.velocity) < arrays.target[r]:
            arrays.law[i], answer.state[i] = COMPLIANT, STICK
            changed = True
    return changed


@kernel
def take_gaps(s: Any) -> None:
    """Begin with the distances that MuJoCo has found."""
    d, gaps = data_at(s.data), floats(s.gaps, 1, s.capacity)[0]
    for i in range(min(np.int64(d.ncon), s.capacity)):
        gaps[i] = contact_at(d.contact + i * CONTACT_SIZE).dist
