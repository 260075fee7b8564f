"""Bodies of a part that the contacts in its problem connect.

A part is connected by all contacts within reach; those that matter in a round of a search connect
fewer bodies. Forces of what they do not connect have nothing to do with each other, and it takes
less time to share them out one by one: the time grows with the cube of the size.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

import numpy as np

from holdfast._jit import fast_kernel, kernel
from holdfast.mujoco._scene import Found, Play, Scene, Work


@fast_kernel
def find_ends(rows: np.ndarray, play: Play) -> None:
    """Fill in where each row begins and ends."""
    m = rows.shape[1]
    for r in range(rows.shape[0]):
        lo, hi = m, 0
        for j in range(m):
            if rows[r, j] != 0.0:
                lo = j
                break
        for j in range(m - 1, lo - 1, -1):
            if rows[r, j] != 0.0:
                hi = j + 1
                break
        play.lo[r], play.hi[r] = lo, hi


@kernel
def find_root(label: np.ndarray, j: int) -> int:
    """Return the coordinate that stands for all that j is connected to."""
    while label[j] != j:
        j = label[j]
    return j


@kernel
def connect(label_inout: np.ndarray, row: np.ndarray, begin: int, end: int) -> None:
    """Connect the coordinates of a row from begin on; the lowest one stands for all."""
    last = -1
    for j in range(begin, end):
        if row[j] != 0.0:
            root = find_root(label_inout, j)
            if last >= 0 and root != last:
                label_inout[max(root, last)] = min(root, last)
                root = min(root, last)
            last = root


@kernel
def split(sc: Scene, ne: int, wk: Work, out: Found) -> int:
    """Fill wk.component with the number of each coordinate's component; return how many there are.

    Coordinates are connected by the inertia, and by the rows that are in the problem: equalities,
    dry friction, limits and contacts.
    """
    label, m, nf, lo, hi = wk.component, sc.v.shape[0], sc.loss.shape[0], wk.play.lo, wk.play.hi
    find_ends(sc.rows, wk.play)
    for j in range(m):
        label[j] = j
    for i in range(m):
        connect(label, sc.A[0, i], wk.below[i, 1], i + 1)
    for r in range(ne + nf):
        connect(label, sc.rows[r], lo[r], hi[r])
    for i in range(sc.limit_gap.shape[0]):
        r = ne + nf + i
        if out.limits[i]:
            connect(label, sc.rows[r], lo[r], hi[r])
    for i in range(sc.gap.shape[0]):
        if out.contacts[i]:
            for r in range(sc.first[i], sc.first[i] + (sc.dim[i] if out.held[i] else 1)):
                connect(label, sc.rows[r], lo[r], hi[r])
    count = 0
    for j in range(m):  # a coordinate that stands for others comes before them
        if label[j] == j:
            label[j] = -1 - count
            count += 1
        else:
            label[j] = label[find_named(label, j)]
    for j in range(m):
        label[j] = -1 - label[j]
    return count


@kernel
def find_named(label: np.ndarray, j: int) -> int:
    """Return a coordinate that j is connected to and whose component has a number already."""
    while label[j] >= 0:
        j = label[j]
    return j


@kernel
def component_of(row: int, wk: Work) -> int:
    """Return the component of a row that is in the problem; -1 for one without entries."""
    first = wk.play.lo[row]
    return wk.component[first] if first < wk.component.shape[0] else -1


@kernel
def list_dofs(k: int, wk: Work) -> int:
    """Fill wk.dofs with the coordinates of component k; return how many there are."""
    count = 0
    for j in range(wk.component.shape[0]):
        if wk.component[j] == k:
            wk.dofs[count] = j
            count += 1
    return count


@kernel
def compress(row: np.ndarray, dofs: np.ndarray, count: int, row_out: np.ndarray) -> None:
    """Fill in the entries of a row at some coordinates; row_out may be where row begins."""
    for a in range(count):
        row_out[a] = row[dofs[a]]
