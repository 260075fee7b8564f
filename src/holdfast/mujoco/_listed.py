"""MuJoCo's list of rows, taken over: as dense rows, or as the few entries that are not zero.

MuJoCo lists rows of large models by their entries, as the user's model says or as it chooses
itself. A contact touches two bodies, so its rows have a dozen entries whatever the model's size,
and those of a part (see `_parts`) are read from there without making all of them dense.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from holdfast._jit import entry, kernel
from holdfast.mujoco import _memory as mem
from holdfast.mujoco._mj import mujoco

NARROW = 1e-3  # edges of a pyramid with less friction are too close to tell its axes exactly
NO_FRICTION = 1e-5  # MuJoCo's smallest coefficient, which it puts in place of 0


class Listed(NamedTuple):
    """The list as it stands in mjData."""

    values: np.ndarray  # entries, row by row
    begin: np.ndarray  # of each row, if it is listed by entries: where they begin
    length: np.ndarray  # and how many there are
    column: np.ndarray  # coordinate of each entry
    address: np.ndarray  # first row of each contact
    dims: np.ndarray  # of the contacts
    friction: np.ndarray
    columns: int  # coordinates
    sparse: bool
    pyramidal: bool


@kernel
def listed_at(
    places: np.ndarray, address: np.ndarray, dims: np.ndarray, friction: np.ndarray, m: int,
    there: bool, sparse: bool, pyramidal: bool,
) -> Listed:  # fmt: skip
    """Return the list in mjData, if there are any, and the contacts that it is made for."""
    rows = at = begin_at = length_at = column_at = np.int64(0)
    if there:
        rows, at = mem.count(places, mem.NEFC), mem.word(places[mem.EFC_J])
        begin_at, length_at = mem.word(places[mem.EFC_BEGIN]), mem.word(places[mem.EFC_LENGTH])
        column_at = mem.word(places[mem.EFC_COLUMN])
    begin, length = mem.integers(begin_at, 1, rows)[0], mem.integers(length_at, 1, rows)[0]
    entries = rows * m
    if sparse:
        entries = np.int64(begin[rows - 1] + length[rows - 1]) if rows > 0 else np.int64(0)
    values, column = mem.floats(at, 1, entries)[0], mem.integers(column_at, 1, entries)[0]
    return Listed(values, begin, length, column, address, dims, friction, m, sparse, pyramidal)


@kernel
def take_row(li: Listed, row: int, row_out: np.ndarray) -> None:
    """Fill in a row, with all coordinates."""
    if not li.sparse:
        for j in range(li.columns):
            row_out[j] = li.values[row * li.columns + j]
        return
    for j in range(li.columns):
        row_out[j] = 0.0
    begin = np.int64(li.begin[row])
    for p in range(begin, begin + li.length[row]):
        row_out[li.column[p]] = li.values[p]


@kernel
def take_sum(
    li: Listed, one: int, other: int, sign: float, part: float, dofs: np.ndarray,
    place: np.ndarray, row_out: np.ndarray,
) -> None:  # fmt: skip
    """Fill in ``part (one + sign other)`` of two rows of a contact; see `take_contact`."""
    values = li.values
    if not li.sparse:
        p, q = one * li.columns, other * li.columns
        for e in range(dofs.shape[0]):
            row_out[e] = part * (values[p + dofs[e]] + sign * values[q + dofs[e]])
        return
    for j in range(row_out.shape[0]):
        row_out[j] = 0.0
    p, q = np.int64(li.begin[one]), np.int64(li.begin[other])
    for e in range(li.length[one]):  # all rows of a contact have the same coordinates
        row_out[place[li.column[p + e]]] = part * (values[p + e] + sign * values[q + e])


@kernel
def take_contact(
    li: Listed, i: int, dofs: np.ndarray, place: np.ndarray, rows_out: np.ndarray
) -> None:
    """Fill in the rows of contact i as axes of its frame.

    Args:
        li: MuJoCo's list.
        i: number of the contact there.
        dofs: coordinates of its part.
        place: of each coordinate of the model, its place in its part.
        rows_out: (dim, coordinates of the part).
    """
    a, dim = np.int64(li.address[i]), np.int64(li.dims[i])
    if not li.pyramidal or dim == 1:
        for r in range(dim):
            take_sum(li, a + r, a + r, 0.0, 1.0, dofs, place, rows_out[r])
        return
    take_sum(li, a, a + 1, 1.0, 0.5, dofs, place, rows_out[0])
    for r in range(1, dim):
        part = 0.5 / li.friction[i, r - 1]
        take_sum(li, a + 2 * r - 2, a + 2 * r - 1, -1.0, part, dofs, place, rows_out[r])


@entry
def list_rows(
    listed: np.ndarray,
    address: np.ndarray,
    dims: np.ndarray,
    friction: np.ndarray,
    dist: np.ndarray,
    geom: np.ndarray,
    geom_body: np.ndarray,
    rows_out: np.ndarray,
    numbers_out: np.ndarray,
    lengths_out: np.ndarray,
    start: int,
    pyramidal: bool,
    copies: bool,
) -> tuple[int, int]:
    """Copy MuJoCo's rows, edges of friction pyramids as the axes between them; sort contacts.

    MuJoCo puts 1e-5 where a coefficient of friction is 0; such a direction is free. Rows before
    `start` belong to no contact. numbers_out (7, ncon) is filled with the number in MuJoCo's list,
    the first row in rows_out, the rows that the contact really has (1, 3, 4 or 6), the two geoms,
    and the two bodies; lengths_out (2, ncon) with the gap and the coefficient of sliding friction.
    Unless it `copies`, rows are left for `take_row` and `take_contact`.

    Returns:
        How many contacts and rows there are; (-1, 0) if a pyramid is too narrow to tell its axes.
    """
    n, k, m = 0, start, listed.shape[1]
    for r in range(start if copies else 0):
        for j in range(m):
            rows_out[r, j] = listed[r, j]
    for i in range(address.shape[0]):
        a = address[i]
        if a < 0:
            continue
        dim = int(dims[i])
        if dim == 6 and friction[i, 3] <= NO_FRICTION:
            dim = 4
        if dim == 4 and friction[i, 2] <= NO_FRICTION:
            dim = 3
        if dim == 3 and friction[i, 0] <= NO_FRICTION:
            dim = 1
        numbers_out[0, n], numbers_out[1, n], numbers_out[2, n] = i, k, dim
        for e in range(2):
            g = geom[i, e]
            numbers_out[3 + e, n] = g
            numbers_out[5 + e, n] = geom_body[g] if g >= 0 else -1
        lengths_out[0, n] = dist[i]
        lengths_out[1, n] = 0.0 if dim == 1 else min(friction[i, 0], friction[i, 1])
        n += 1
        edges = pyramidal and dims[i] > 1
        for e in range(1, dim if edges else 0):
            if friction[i, e - 1] < NARROW:
                return -1, 0
        if copies and not edges:
            for e in range(dims[i]):
                for j in range(m):
                    rows_out[k + e, j] = listed[a + e, j]
        elif copies:
            for j in range(m):
                rows_out[k, j] = 0.5 * (listed[a, j] + listed[a + 1, j])
            for e in range(1, dims[i]):
                part = 0.5 / friction[i, e - 1]
                for j in range(m):
                    rows_out[k + e, j] = part * (
                        listed[a + 2 * e - 2, j] - listed[a + 2 * e - 1, j]
                    )
        k += dims[i]
    return n, k


def dense_rows(own: Any, data: Any) -> np.ndarray:
    """(nefc, nv) MuJoCo's rows."""
    if not mujoco.mj_isSparse(own):
        rows = data.efc_J[: data.nefc * own.nv]  # beyond them, rows of zeros that were left out
        return rows.reshape(data.nefc, own.nv)
    rows = np.zeros((data.nefc, own.nv))
    if data.nefc:
        mujoco.mju_sparse2dense(
            rows, data.efc_J, data.efc_J_rownnz, data.efc_J_rowadr, data.efc_J_colind
        )
    return rows
