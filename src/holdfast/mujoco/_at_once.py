"""A usual step in one call: rows taken over from MuJoCo, solved, and forces put back."""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

import numpy as np

from holdfast._jit import entry, inlined, kernel
from holdfast.mujoco import _memory as mem
from holdfast.mujoco._forces import dot
from holdfast.mujoco._inertia import DAMPED, GIVEN, IMPLICIT, SPINNING, add_damping
from holdfast.mujoco._lacking import lacks
from holdfast.mujoco._landing import may_land
from holdfast.mujoco._listed import list_rows, listed_at
from holdfast.mujoco._parts import (
    connect,
    find_parts,
    gather_parts,
    show_parts,
    take_contacts,
    take_others,
    violated_by,
)
from holdfast.mujoco._publish import mark_contacts, show_forces, show_motion
from holdfast.mujoco._recall import find_lines, note, renew
from holdfast.mujoco._scene import (
    CONSISTENT,
    EXCESS,
    SLIP,
    Found,
    Scene,
    Sizes,
    carve,
    numbers_of,
    room,
)
from holdfast.mujoco._usual import FOUND

# What is returned beside what `find_parts` does.
GROW, NARROW, LANDS = 10, 11, 12

# What `put_motion` returns.
NOT_HERE, AS_WANTED, AGAIN = range(3)

# Settings, by their place in the array of them.
# IN_M, IN_D, PAIRS_IN_D: entries of MuJoCo's sparse matrices; SPARSE: whether rows are listed by
# their entries; AUTO: whether MuJoCo would choose to; QUIET: whether nobody wants to be told of
# friction that does not suffice.
(INERTIA, NGEOM, POLY, LISTED, WANTED, STICK, NBODY, IN_M, IN_D, PAIRS_IN_D, SPARSE, AUTO, QUIET,
 SETTINGS) = range(14)  # fmt: skip

SIZE = 10  # place of the mean size of bodies among the options

# Arrays of the model, by their place in the array of addresses.
(M_AT, D_AT, DAMPING, DAMPING_POLY, GEOM_BODY, USER_MARGIN, TREE_OF_DOF, TREE_OF_BODY,
 MODEL) = range(9)  # fmt: skip

# What is reported, by its place; the last two are the largest of all whole steps.
(DEEPEST, LEFT, WORST_SLIP, LACKS, TIED, PUBLISHED, NUMBERS, FLAGS, COUNT, PARTS, SLIPPED, SUNK,
 REPORT) = range(13)  # fmt: skip


@inlined
def fill_inertia(places: np.ndarray, model: np.ndarray, settings: np.ndarray, h: float,
                 v_free: np.ndarray, rate: np.ndarray, sc: Scene) -> None:  # fmt: skip
    """Fill A, v and f of the smooth step, see `holdfast.mujoco._inertia`."""
    m, kind = sc.v.shape[0], settings[INERTIA]
    qvel, force = (
        mem.floats(mem.word(places[mem.QVEL]), 1, m)[0],
        mem.floats(mem.word(places[mem.SMOOTH]), 1, m)[0],
    )
    A, flat = sc.A[0], sc.A.reshape(m * m)
    for j in range(m):
        sc.v[j], sc.f[j] = qvel[j], force[j]
    for k in range(m * m):
        flat[k] = 0.0
    at = mem.words(model[M_AT], settings[IN_M], 2)
    M = mem.floats(mem.word(places[mem.M]), 1, settings[IN_M])[0]
    for k in range(M.shape[0]):
        flat[at[k, 0]] = flat[at[k, 1]] = M[k]
    if kind in (IMPLICIT, SPINNING):  # as `subtract_derivative` does it
        at = mem.words(model[D_AT], settings[PAIRS_IN_D], 4)
        D = mem.floats(mem.word(places[mem.DERIVATIVE]), 1, settings[IN_D])[0]
        for k in range(at.shape[0]):
            x = flat[at[k, 0]] - 0.5 * h * D[at[k, 2]] - 0.5 * h * D[at[k, 3]]
            flat[at[k, 0]] = flat[at[k, 1]] = x
    if kind == DAMPED:
        poly = settings[POLY]
        damping = mem.floats(model[DAMPING], 1, m)[0]
        add_damping(damping, mem.floats(model[DAMPING_POLY], m, poly), qvel, A, h)
    elif kind == SPINNING:
        for j in range(m):
            rate[j] = (v_free[j] - qvel[j]) / h
        for i in range(m):
            sc.f[i] = dot(A[i], rate)


@kernel
def count_rows(dims: np.ndarray, address: np.ndarray, start: int) -> tuple[int, int]:
    """Return how many contacts have rows, and how many rows there are as axes of their frames."""
    n, nefc = 0, start
    for i in range(dims.shape[0]):
        if address[i] >= 0:
            n += 1
            nefc += dims[i]
    return n, nefc


@inlined
def fill_scene(
    places: np.ndarray, of_double: np.ndarray, sz: Sizes, stick: bool, h: float, pos: int,
    sc: Scene, out: Found,
) -> None:  # fmt: skip
    """Fill in what `list_rows` leaves of the scene."""
    listed = mem.count(places, mem.NEFC)
    position = mem.floats(mem.word(places[mem.EFC_POS]), 1, listed)[0]
    loss = mem.floats(mem.word(places[mem.EFC_LOSS]), 1, listed)[0]
    for i in range(sz.ne):
        sc.error[i], sc.target[i] = position[i], 0.0
    for i in range(sz.nf):
        sc.loss[i] = h * loss[sz.ne + i]
    for i in range(sz.nl):
        sc.limit_gap[i] = position[sz.ne + sz.nf + i]
    for c in range(sz.n):
        sc.sticks[c] = stick and sc.dim[c] > 1
        for e in range(12):  # position and frame stand side by side
            sc.place[c, e] = of_double[sc.listed[0, c], pos + e]


@inlined
def report_on(out: Found, report_out: np.ndarray) -> None:
    """Fill in what the stepper keeps."""
    report_out[WORST_SLIP], report_out[LACKS] = out.numbers[SLIP], out.numbers[EXCESS]
    report_out[TIED] = out.numbers[CONSISTENT]
    count = 0
    for i in range(out.contacts.shape[0]):
        count += int(out.contacts[i])
    report_out[COUNT] = count


@kernel
def take_over(
    places: np.ndarray, contact: np.ndarray, model: np.ndarray, settings: np.ndarray,
    options: np.ndarray, work: np.ndarray, words: np.ndarray, flags: np.ndarray,
    sizes: np.ndarray, table: np.ndarray, memo: np.ndarray, report: np.ndarray,
    state: np.ndarray,
) -> int:  # fmt: skip
    """Take over the rows of MuJoCo's list, and find the motion if it is a usual one.

    Args:
        places, contact: addresses and offsets, see `Memory`.
        model: addresses of arrays of the model.
        settings, options: integers; the fields of `Numbers`, and the mean size of the bodies.
        work, words, flags: see `carve`.
        sizes: (6,) of the arrays, updated; the rows of the last step hold only if they stay.
        table: of the parts, see `holdfast.mujoco._parts`; updated.
        memo: of contacts in the last step, see `holdfast.mujoco._recall`.
        report: filled.
        state: (2, m) the free velocity if the inertia is SPINNING.

    Returns:
        What `find_parts` does, or GROW if work and flags must have the sizes that are reported,
        or NARROW if pyramids must be listed as axes.
    """
    m = sizes[0]
    nr = numbers_of(options)
    given = settings[INERTIA] == GIVEN
    sz = Sizes(m, sizes[1], sizes[2], sizes[3], sizes[4], sizes[5])
    ncon, width = np.int64(0), contact[mem.STRIDE] // 8
    base = ne = nf = nl = np.int64(0)
    if not given:
        ncon, base = mem.count(places, mem.NCON), mem.word(places[mem.CONTACT])
        ne, nf = mem.count(places, mem.NE), mem.count(places, mem.NF)
        nl = mem.count(places, mem.NL)
    of_double = mem.floats(base, ncon, width)
    of_integer = mem.integers(base, ncon, 2 * width)
    address, dims = of_integer[:, contact[mem.ADDRESS] // 4], of_integer[:, contact[mem.DIM] // 4]
    if not given:
        n, nefc = count_rows(dims, address, ne + nf + nl)
        sz = Sizes(m, n, nefc, ne, nf, nl)
    report[NUMBERS], report[FLAGS] = room(sz)
    halves = 2 if table.shape[0] > 1 else 1  # the second one for parts
    if halves * report[NUMBERS] > work.shape[0] or halves * report[FLAGS] > flags.shape[0]:
        return GROW
    sc, wk, out = carve(work, words, flags, sz)
    later = settings[SPARSE] == 1 or memo.shape[0] > 1  # rows are taken part by part
    same = True
    for k in range(6):
        same = same and sizes[k] == sz[k]
        sizes[k] = sz[k]
    renew(same, wk, out)
    dist = of_double[:, contact[mem.DIST] // 8]
    e = contact[mem.FRICTION] // 8
    friction = of_double[:, e : e + 5]
    e = contact[mem.GEOM] // 4
    geom = of_integer[:, e : e + 2]
    if not given:
        fill_inertia(places, model, settings, nr.h, state[0], wk.x[0], sc)
        rows = 0 if later else mem.count(places, mem.NEFC)
        listed = mem.floats(mem.word(places[mem.EFC_J]), rows, m)
        body = mem.integers(model[GEOM_BODY], 1, settings[NGEOM])[0]
        n, nefc = list_rows(
            listed, address, dims, friction, dist, geom, body, sc.rows, sc.listed, sc.lengths,
            ne + nf + nl, settings[LISTED] == 1, not later,
        )  # fmt: skip
        if n < 0:
            return NARROW
        fill_scene(places, of_double, sz, settings[STICK] == 1, nr.h, contact[mem.POS] // 8, sc,
                   out)  # fmt: skip
    parts = 1
    li = listed_at(
        places, address, dims, friction, m, not given, settings[SPARSE] == 1, settings[LISTED] == 1
    )
    if later:
        take_others(li, ne + nf + nl, wk, sc)
    if table.shape[0] > 1:
        if memo.shape[0] > 1:
            find_lines(sc, memo, wk.which[0])
        coupled = m if settings[INERTIA] in (IMPLICIT, SPINNING) else 0
        parts = connect(
            sc.A[0, :coupled], sc.rows, sc.first, sc.listed[5:], ne + nf + nl,
            mem.integers(model[TREE_OF_DOF], 1, m)[0],
            mem.integers(model[TREE_OF_BODY], 1, settings[NBODY])[0],
            wk.of_dof, wk.of_row, wk.of_contact, table,
        )  # fmt: skip
    report[PARTS] = parts
    if later and parts == 1:
        take_contacts(li, sc.listed[0], wk.place, wk.place, sc)
    return find_parts(sc, li, nr, parts, work, words, flags, memo, wk, table)


@kernel
def conclude(
    options: np.ndarray, work: np.ndarray, words: np.ndarray, flags: np.ndarray,
    sizes: np.ndarray, table: np.ndarray, memo: np.ndarray, report: np.ndarray,
    state: np.ndarray,
) -> int:  # fmt: skip
    """Put together what was found for the parts; report on it, and fill in the velocity.

    Returns:
        FOUND, or LANDS: the motion must be looked at, for what it meets on its way.
    """
    sz = Sizes(sizes[0], sizes[1], sizes[2], sizes[3], sizes[4], sizes[5])
    sc, wk, out = carve(work, words, flags, sz)
    nr, parts = numbers_of(options), int(report[PARTS])
    if memo.shape[0] > 1:
        memo[0, 0] = sz.n
    if parts > 1:
        report[DEEPEST], report[LEFT] = gather_parts(
            parts, nr, work, words, flags, table, sc, memo, out
        )
    else:
        report[DEEPEST], report[LEFT] = violated_by(sc, nr, out)
        if memo.shape[0] > 1:
            for i in range(sz.n):
                wk.of_contact[i] = i
            note(sc, wk.of_contact, sc, out, memo)
    report_on(out, report)
    for j in range(sz.m):
        state[0, j] = out.motion[j]
    return LANDS if may_land(out.motion, sc.v, nr.h, options[SIZE]) else FOUND


@kernel
def put_motion(
    places: np.ndarray, contact: np.ndarray, model: np.ndarray, settings: np.ndarray, h: float,
    work: np.ndarray, words: np.ndarray, flags: np.ndarray, sizes: np.ndarray, table: np.ndarray,
    report: np.ndarray, state: np.ndarray,
) -> int:  # fmt: skip
    """Put the motion where MuJoCo keeps it, and mark contacts, see `holdfast.mujoco._publish`.

    The acceleration is kept in state, too.

    Returns:
        Whether the list of rows is AS_WANTED by the user, or has to be made AGAIN, or NOT_HERE.
    """
    m, ne, nf, nl = sizes[0], sizes[3], sizes[4], sizes[5]
    sc, _, out = carve(work, words, flags, Sizes(m, sizes[1], sizes[2], ne, nf, nl))
    qacc = mem.floats(mem.word(places[mem.QACC]), 1, m)[0]
    warmstart = mem.floats(mem.word(places[mem.WARMSTART]), 1, m)[0]
    force = mem.floats(mem.word(places[mem.CONSTRAINT]), 1, m)[0]
    parts = int(report[PARTS])
    rows = sc.rows if parts == 1 else sc.rows[:0]
    show_motion(rows, sc.v, out.motion, out.impulse, qacc, warmstart, force, h)
    if parts > 1:
        show_parts(parts, work, words, flags, table, force, h)
    for j in range(m):
        state[1, j] = qacc[j]
    ncon, base = mem.count(places, mem.NCON), mem.word(places[mem.CONTACT])
    width = contact[mem.STRIDE] // 8
    of_double, of_integer = mem.floats(base, ncon, width), mem.integers(base, ncon, 2 * width)
    e = contact[mem.GEOM] // 4
    left_out = mark_contacts(
        of_integer[:, e : e + 2], of_double[:, contact[mem.DIST] // 8],
        mem.floats(model[USER_MARGIN], 1, settings[NGEOM])[0], sc.listed[0], sc.first,
        sc.dim, out.impulse, of_double[:, contact[mem.MARGIN] // 8],
        of_integer[:, contact[mem.EXCLUDE] // 4],
    )  # fmt: skip
    for i in range(nl):  # beside those that act, the user's list has those that are exceeded
        if out.impulse[ne + nf + i] == 0.0 and sc.limit_gap[i] >= 0.0:
            return NOT_HERE
    if left_out == 0 and settings[LISTED] == settings[WANTED]:
        return AS_WANTED
    address = of_integer[:, contact[mem.ADDRESS] // 4]
    for i in range(ncon):
        address[i] = -1
    return NOT_HERE if nl > 0 else AGAIN


@kernel
def put_forces(
    places: np.ndarray, contact: np.ndarray, settings: np.ndarray, h: float, work: np.ndarray,
    words: np.ndarray, flags: np.ndarray, sizes: np.ndarray,
) -> None:  # fmt: skip
    """Put the forces where MuJoCo keeps them, if the list of rows is as the user wants it."""
    ne, nf, nl = sizes[3], sizes[4], sizes[5]
    sc, _, out = carve(work, words, flags, Sizes(sizes[0], sizes[1], sizes[2], ne, nf, nl))
    ncon, base = mem.count(places, mem.NCON), mem.word(places[mem.CONTACT])
    width = contact[mem.STRIDE] // 8
    of_double, of_integer = mem.floats(base, ncon, width), mem.integers(base, ncon, 2 * width)
    forces = mem.floats(mem.word(places[mem.EFC_FORCE]), 1, mem.count(places, mem.NEFC))[0]
    e = contact[mem.FRICTION] // 8
    show_forces(
        of_integer[:, contact[mem.ADDRESS] // 4], of_integer[:, contact[mem.DIM] // 4],
        of_double[:, e : e + 5], sc.listed[0], sc.first, out.impulse, forces, ne + nf + nl, h,
        settings[WANTED] == 1,
    )  # fmt: skip


@kernel
def suffices(work: np.ndarray, words: np.ndarray, flags: np.ndarray, sizes: np.ndarray,
             warned: np.ndarray) -> bool:  # fmt: skip
    """Return whether all bodies hold on declared friction, but for pairs that are known."""
    sz = Sizes(sizes[0], sizes[1], sizes[2], sizes[3], sizes[4], sizes[5])
    sc, _, out = carve(work, words, flags, sz)
    return lacks(
        sc.listed[5:7], sc.place, sc.first, sc.dim, sc.mu, out.impulse, out.contacts, out.grips,
        warned, 0,
    ) < 0  # fmt: skip


@entry
def hand_over(places: np.ndarray, state: np.ndarray) -> None:
    """Put the velocity after the step into mjData, where `mj_Euler` integrates it as it is."""
    m = state.shape[1]
    qvel, qacc = (
        mem.floats(mem.word(places[mem.QVEL]), 1, m)[0],
        mem.floats(mem.word(places[mem.QACC]), 1, m)[0],
    )
    for j in range(m):
        qvel[j], qacc[j] = state[0, j], 0.0


@entry
def take_back(places: np.ndarray, state: np.ndarray) -> None:
    """Put the acceleration back into mjData after `mj_Euler`."""
    m = state.shape[1]
    qacc = mem.floats(mem.word(places[mem.QACC]), 1, m)[0]
    warmstart = mem.floats(mem.word(places[mem.WARMSTART]), 1, m)[0]
    for j in range(m):
        qacc[j] = warmstart[j] = state[1, j]
