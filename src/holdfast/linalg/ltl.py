"""Factor of an inertia, from the last coordinate to the first: ``A = L'L``.

MuJoCo lists bodies before those that they carry. Eliminated in reverse, leaves first, a coordinate
concerns only those that carry it, so the factor of a tree has no entry where the inertia has none:
the legs of a robot do not know of each other (Featherstone, 2005). The same holds for the whitened
rows ``L^-T b``: a foot is a matter of its leg and of the trunk. Zeros are listed as they are met;
nothing has to know the tree, and a matrix that is not a tree's is factored as well.

A row is subtracted from others that do not depend on each other, rather than multiplied with those
that do: that keeps the processor busy where rows are short.

The diagonal of L holds the *reciprocals* of the diagonal entries.
"""

from __future__ import annotations

import numpy as np

from holdfast._jit import fast_kernel
from holdfast.linalg.cholesky import PIVOT
from holdfast.linalg.vectors import add, dot

POINT = 3  # rows of a contact with sliding friction: loops of this length are written out


@fast_kernel
def factor(A: np.ndarray, L_out: np.ndarray, below_out: np.ndarray) -> bool:
    """Fill the lower triangle of L_out with the factor, below_out with where its entries are.

    Args:
        A: (m, m); the lower triangle is read.
        L_out: (m, m).
        below_out: (m, m + 1) of each row how many entries are left of the diagonal, and where; if
            there is none, the first one is the diagonal.

    Returns:
        Whether A is positive definite to working precision; False if it holds NaN.
    """
    m = A.shape[0]
    rounding = m * PIVOT
    for i in range(m):
        for j in range(i + 1):
            L_out[i, j] = A[i, j]
    for k in range(m - 1, -1, -1):
        first, pivot = 0, L_out[k, k]
        while L_out[k, first] == 0.0 and first < k:
            first += 1
        if not pivot > rounding * A[k, k]:
            return False
        row, below, inverse, count = L_out[k, first:k], below_out[k], 1.0 / pivot, 0
        below[1] = first
        for i in range(first, k):
            t = L_out[k, i]
            if t != 0.0:
                count += 1
                below[count] = i
                # beyond the diagonal, too, where nobody reads: rows of one length are faster
                add(-t * inverse, row, L_out[i, first:k])
        below[0] = count
        scale = np.sqrt(inverse)  # now, because nobody waits for it
        for j in range(row.shape[0]):
            row[j] *= scale
        L_out[k, k] = scale
    return True


@fast_kernel
def to_white(L: np.ndarray, below: np.ndarray, a_inout: np.ndarray) -> None:
    """Overwrite a row, or an impulse, with ``L^-T a``."""
    for k in range(L.shape[0] - 1, -1, -1):
        row, t = L[k], a_inout[k] * L[k, k]
        a_inout[k] = t
        for e in range(1, below[k, 0] + 1):
            i = below[k, e]
            a_inout[i] -= t * row[i]


@fast_kernel
def rows_to_white(L: np.ndarray, below: np.ndarray, rows_inout: np.ndarray) -> None:
    """Do so with each of a few rows; those of a contact have most of their zeros in common."""
    if rows_inout.shape[0] == POINT:
        _point_to_white(L, below, rows_inout[0], rows_inout[1], rows_inout[2])
        return
    for k in range(L.shape[0] - 1, -1, -1):
        some, scale = False, L[k, k]
        for e in range(rows_inout.shape[0]):
            some = some or rows_inout[e, k] != 0.0
            rows_inout[e, k] *= scale
        if not some:
            continue
        for p in range(1, below[k, 0] + 1):
            i = below[k, p]
            t = L[k, i]
            for e in range(rows_inout.shape[0]):
                rows_inout[e, i] -= t * rows_inout[e, k]


@fast_kernel
def _point_to_white(L: np.ndarray, below: np.ndarray, x_inout: np.ndarray, y_inout: np.ndarray,
                    z_inout: np.ndarray) -> None:  # fmt: skip
    """Do so with three rows."""
    for k in range(L.shape[0] - 1, -1, -1):
        x, y, z = x_inout[k], y_inout[k], z_inout[k]
        if x == 0.0 and y == 0.0 and z == 0.0:
            continue
        row, places = L[k], below[k]
        x *= row[k]
        y *= row[k]
        z *= row[k]
        x_inout[k], y_inout[k], z_inout[k] = x, y, z
        for p in range(1, places[0] + 1):
            i = places[p]
            t = row[i]
            x_inout[i] -= t * x
            y_inout[i] -= t * y
            z_inout[i] -= t * z


@fast_kernel
def all_to_white(L: np.ndarray, below: np.ndarray, count: int, W_inout: np.ndarray) -> None:
    """Do so with the first columns of W."""
    for k in range(L.shape[0] - 1, -1, -1):
        row, w = L[k], W_inout[k, :count]
        for c in range(count):
            w[c] *= row[k]
        for e in range(1, below[k, 0] + 1):
            i = below[k, e]
            add(-row[i], w, W_inout[i, :count])


@fast_kernel
def from_white(L: np.ndarray, below: np.ndarray, a_inout: np.ndarray) -> None:
    """Overwrite a whitened impulse with the motion ``L^-1 a`` that it makes."""
    for k in range(L.shape[0]):
        row, t = L[k], a_inout[k]
        for e in range(1, below[k, 0] + 1):
            i = below[k, e]
            t -= row[i] * a_inout[i]
        a_inout[k] = t * row[k]


@fast_kernel
def motion_to_white(L: np.ndarray, below: np.ndarray, x: np.ndarray, y_out: np.ndarray) -> None:
    """Fill y_out with the whitened motion ``L x``; its length is that of x in the metric of A."""
    for k in range(L.shape[0]):
        first = below[k, 1]
        y_out[k] = x[k] / L[k, k] + dot(L[k, first:k], x[first:k])
