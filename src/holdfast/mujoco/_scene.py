"""What the search for a step's motion works on: rows, numbers, work arrays, and what it finds.

All of it lies in two arrays, one of numbers and one of booleans, that `carve` divides: a kernel
takes two arrays faster than sixty.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from holdfast._jit import inlined, kernel
from holdfast.linalg.views import blocks, part

# Numbers that the search reports, by their place in `Found.numbers`.
# FREE: whether the search has yet to see who leaves when nothing is held.
SLIP, EXCESS, PIVOTS, RANK_TOL, ROUNDS, CONSISTENT, FREE, SOLVES, SCALE, REPORTED = range(10)
MASKS = 13  # flags of each contact
STAGES = 5  # systems of `holdfast.mujoco._steady`


class Sizes(NamedTuple):
    """Sizes that fix all arrays."""

    m: int  # coordinates
    n: int  # contacts with rows
    nefc: int  # rows: equalities, dry friction, limits, contacts
    ne: int
    nf: int
    nl: int


class Scene(NamedTuple):
    """Rows of a step and what they shall do; see `holdfast.mujoco.assemble.Rows`."""

    A: np.ndarray  # (1, m, m)
    v: np.ndarray
    f: np.ndarray
    rows: np.ndarray  # (nefc, m): equalities, dry friction, limits, contacts
    target: np.ndarray
    error: np.ndarray
    loss: np.ndarray
    limit_gap: np.ndarray
    listed: np.ndarray  # (7, n) integers, see `list_rows`; two of its rows are
    first: np.ndarray
    dim: np.ndarray
    lengths: np.ndarray  # (2, n), see `list_rows`: it holds
    gap: np.ndarray
    mu: np.ndarray
    place: np.ndarray  # (n, 12) position and frame
    sticks: np.ndarray


class Numbers(NamedTuple):
    """Step length, when surfaces touch and when a gap is open; tolerances of the solver."""

    h: float
    touch: float
    open: float
    symmetry: float
    feasibility: float
    rank: float
    zero_row: float
    certificate: float
    max_pivots: int
    rank_tol: float


class Play(NamedTuple):
    """Rows in play in a system of `holdfast.mujoco._systems`; by row of MuJoCo's list, or of it."""

    lo: np.ndarray  # (nefc,) integers, by row of the list: first entry that is not zero
    hi: np.ndarray  # and the end of these entries
    length2: np.ndarray  # (nefc,) squared length
    at: np.ndarray  # (nefc,) integers, by row of the system: which one it is
    weight: np.ndarray  # (nefc,)
    s: np.ndarray  # (nefc,) force
    c: np.ndarray  # (nefc,)
    miss: np.ndarray  # (nefc,)


class Kept(NamedTuple):
    """What the systems keep for the next step."""

    L: np.ndarray  # (STAGES, m, m) factors
    envelope: np.ndarray  # (STAGES, m) integers
    p: np.ndarray  # (STAGES, m)
    s: np.ndarray  # (STAGES, nefc) by row of MuJoCo's list
    valid: np.ndarray  # (STAGES,) 1 if that is so


class Work(NamedTuple):
    """Work arrays, for n contacts, m coordinates and nefc rows."""

    L: np.ndarray  # (m, m) factor of the inertia, see `holdfast.linalg.ltl`
    below: np.ndarray  # (m, m + 1) integers: where its entries are
    x: np.ndarray  # (8, m)
    values: np.ndarray  # (nefc, m)
    bounds: np.ndarray  # (3, nefc): offset, lower and upper bound of each row of the problem
    at: np.ndarray  # (nefc,) integers
    warm: np.ndarray  # (2 n + limits,) integers
    white: np.ndarray  # (nefc + n + m, m)
    which: np.ndarray  # (1, n) integers
    of_dof: np.ndarray  # (m,) integers, see `holdfast.mujoco._parts`
    place: np.ndarray  # (m,) integers, of a coordinate in its part
    of_row: np.ndarray  # (nefc,)
    of_contact: np.ndarray  # (n,)
    each: np.ndarray  # (5, n)
    masks: np.ndarray  # (8, n) booleans: touching, pressed, none, and see `exchange`, `hold_new`
    square: np.ndarray  # the rest: see `share_normals` and `share_tangents`
    vector: np.ndarray
    columns: np.ndarray
    long: np.ndarray
    E: np.ndarray
    pivots: np.ndarray
    component: np.ndarray  # (m,) integers, see `holdfast.mujoco._components`
    dofs: np.ndarray  # (m,) integers, of one component
    nothing: np.ndarray  # (m,) zeros
    play: Play
    kept: Kept


class Found(NamedTuple):
    """What is found: impulses by row, and who takes part."""

    v_free: np.ndarray
    motion: np.ndarray
    impulse: np.ndarray  # (nefc,)
    contacts: np.ndarray  # (n,) contacts in the problem
    closed: np.ndarray  # (n,) contacts whose gap is taken for zero
    grips: np.ndarray  # (n,) contacts that are pressed and stick
    held: np.ndarray  # (n,) contacts whose tangents were equality rows
    limits: np.ndarray
    loaded: np.ndarray  # (nefc,) rows that hold with equality
    numbers: np.ndarray  # (REPORTED,)
    expected: np.ndarray  # (nefc,) the same in the last step


@kernel
def numbers_of(options: np.ndarray) -> Numbers:
    """Return the numbers that an array lists."""
    return Numbers(
        options[0], options[1], options[2], options[3], options[4], options[5], options[6],
        options[7], int(options[8]), options[9],
    )  # fmt: skip


@kernel
def room(sz: Sizes) -> tuple[int, int]:
    """Return the sizes of the arrays that `carve` divides: numbers and booleans."""
    m, n, nefc = sz.m, sz.n, sz.nefc
    floats = (6 + STAGES) * m * m + (18 + STAGES) * m + 2 * sz.ne + sz.nf + sz.nl
    floats += 24 * n + 6 * m * n + 3 * nefc * m + (9 + STAGES) * nefc + m * (m + n)
    floats += REPORTED + STAGES
    integers = 11 * n + (6 + STAGES + m + 1) * m + 5 * nefc + sz.nl
    return floats + integers, MASKS * n + sz.nl + 2 * nefc


@inlined
def carve(
    work: np.ndarray, words: np.ndarray, flags: np.ndarray, sz: Sizes
) -> tuple[Scene, Work, Found]:
    """Return arrays of these sizes, views into work (also as the integers words) and flags."""
    m, n, nefc, ne, nf, nl = sz
    A, v_free = blocks(work, 0, 1, m, m), work[m * m : m * m + m]
    p = m * m + m
    bounds = part(work, p, 3, nefc)
    p += 3 * nefc
    values = part(work, p, nefc, m)
    p += nefc * m
    warm = words[p : p + 2 * n + nl]
    p += 2 * n + nl
    square = blocks(work, p, 5 + STAGES, m, m)
    p += (5 + STAGES) * m * m
    vectors = part(work, p, 17 + STAGES, m)
    p += (17 + STAGES) * m
    joints = part(work, p, 2, ne)
    p += 2 * ne
    loss = work[p : p + nf]
    p += nf
    limit_gap = work[p : p + nl]
    p += nl
    each = part(work, p, 7, n)
    p += 7 * n
    place = part(work, p, n, 12)
    p += 12 * n
    long = work[p : p + 4 * n]
    p += 4 * n
    columns = work[p : p + 4 * m * n]
    p += 4 * m * n
    E = work[p : p + 2 * m * n]
    p += 2 * m * n
    rows = part(work, p, nefc, m)
    p += nefc * m
    white = part(work, p, nefc + n + m, m)
    p += (nefc + n + m) * m
    by_row = part(work, p, 6 + STAGES, nefc)
    p += (6 + STAGES) * nefc
    numbers, valid = work[p : p + REPORTED], work[p + REPORTED : p + REPORTED + STAGES]
    p += REPORTED + STAGES
    listed = part(words, p, 7, n)
    p += 7 * n
    which = part(words, p, 2, n)
    p += 2 * n
    by_coordinate = part(words, p, 6 + STAGES, m)
    p += (6 + STAGES) * m
    below = part(words, p, m, m + 1)
    p += m * (m + 1)
    at = part(words, p, 5, nefc)
    masks = part(flags, 0, MASKS, n)
    p = MASKS * n
    limits = flags[p : p + nl]
    p += nl
    loaded, expected = flags[p : p + nefc], flags[p + nefc : p + 2 * nefc]
    scene = Scene(
        A, vectors[0], vectors[1], rows, joints[0], joints[1], loss, limit_gap, listed, listed[1],
        listed[2], each[:2], each[0], each[1], place, masks[12],
    )  # fmt: skip
    play = Play(at[1], at[2], by_row[1], at[3], by_row[2], by_row[3], by_row[4], by_row[5])
    kept = Kept(square[5:], by_coordinate[6:], vectors[17:], by_row[6:], valid)
    wk = Work(
        square[0], below, vectors[3:11], values, bounds, at[0], warm, white, which[:1],
        by_coordinate[0], by_coordinate[3], at[4], which[1], each[2:7], masks[:8], square[1:5],
        vectors[11:16], columns, long, E, by_coordinate[1:3], by_coordinate[4],
        by_coordinate[5], vectors[16], play, kept,
    )  # fmt: skip
    found = Found(
        v_free, vectors[2], by_row[0], masks[8], masks[9], masks[10], masks[11], limits, loaded,
        numbers, expected,
    )  # fmt: skip
    return scene, wk, found
