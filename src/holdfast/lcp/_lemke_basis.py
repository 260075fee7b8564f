r"""Linear algebra with a basis of Lemke's method; the symbols are those of `holdfast.lcp._lemke`.

``T`` holds ``B^-1`` transposed, ``T[j] = B^-1 e_j``, and a pivot on ``u_r``
is one elimination step: ``T[j, i] -= u_i T[j, r] / u_r``. Where ``w_j`` is basic, ``T[j]`` is a
unit vector and costs nothing: with k basic ``z`` a pivot costs O(n k). Products with an updated
inverse are not backward stable, which on rank-deficient contact problems loses the path. One
step of iterative refinement makes them so while the inverse has not drifted far; its residual
measures the drift and decides when to refactorise. The rows whose ``w`` is not basic give a
k x k matrix ``K`` of the columns of ``z`` and ``z0``, and the basic ``w`` are what ``K`` leaves
of the right-hand side. Refactorising is an LU factorisation of ``K`` with partial pivoting, also
done before a ray is believed, and for the answer.
"""

from __future__ import annotations

import math

from holdfast._jit import kernel

NONE = -1  # place of a variable that is not basic


@kernel
def copy(a, a_out):
    """Write a over another vector, without the temporary that slices would allocate."""
    for i in range(a.shape[0]):
        a_out[i] = a[i]


@kernel
def size_of(a):
    """Return the largest absolute entry, infinite if any entry is nan. Writes nothing."""
    largest = 0.0
    for i in range(a.shape[0]):
        if not abs(a[i]) <= largest:
            largest = abs(a[i]) if a[i] == a[i] else math.inf
    return largest


@kernel
def add_product(T, place, c, x_out):
    """Write x + B^-1 c over x."""
    n = c.shape[0]
    for j in range(n):
        if c[j] != 0.0:
            if place[j] != NONE:
                x_out[place[j]] += c[j]
            else:
                for i in range(n):
                    x_out[i] += c[j] * T[j, i]


@kernel
def refine(columns, T, basis, place, residual_work, x_out):
    """Write x + B^-1 (c - B x) over x, for a right-hand side c given in `residual_work`.

    Returns the size of that residual relative to x and c: how far the inverse has drifted.
    """
    n = x_out.shape[0]
    size = max(size_of(residual_work), size_of(x_out))
    for i in range(n):
        if basis[i] < n:
            residual_work[basis[i]] -= x_out[i]
        elif x_out[i] != 0.0:
            column = columns[basis[i] - n]
            for j in range(n):
                residual_work[j] -= x_out[i] * column[j]
    drift = size_of(residual_work) / size if size > 0.0 else 0.0
    add_product(T, place, residual_work, x_out)
    return drift


@kernel
def factorise(columns, basis, place, K_out, row_out, column_out):
    """Write the LU factors of K, its rows and the places of its columns; return k, or NONE."""
    n = basis.shape[0]
    k, k_rows = 0, 0
    for i in range(n):
        if basis[i] >= n:
            column_out[k] = i
            k += 1
        if place[i] == NONE:
            row_out[k_rows] = i
            k_rows += 1
    for b in range(k):
        column = columns[basis[column_out[b]] - n]
        for a in range(k):
            K_out[a, b] = column[row_out[a]]
    for b in range(k):
        best = b
        for a in range(b + 1, k):
            if abs(K_out[a, b]) > abs(K_out[best, b]):
                best = a
        if not abs(K_out[best, b]) > 0.0:
            return NONE
        row_out[b], row_out[best] = row_out[best], row_out[b]
        for c in range(k):
            K_out[b, c], K_out[best, c] = K_out[best, c], K_out[b, c]
        for a in range(b + 1, k):
            if K_out[a, b] != 0.0:
                K_out[a, b] /= K_out[b, b]
                for c in range(b + 1, k):
                    K_out[a, c] -= K_out[a, b] * K_out[b, c]
    return k


@kernel
def basic_values(columns, c, basis, K, row, column, k, y_work, residual_work, x_out):
    """Write x = B^-1 c from the factors of K, with one step of iterative refinement."""
    # What K leaves of c is the value of the basic w, and in K's own rows the residual.
    n = c.shape[0]
    copy(c, residual_work)
    x_out[:] = 0.0
    for _ in range(2):
        for a in range(k):
            y_work[a] = residual_work[row[a]]
            for b in range(a):
                y_work[a] -= K[a, b] * y_work[b]
        for a in range(k - 1, -1, -1):
            for b in range(a + 1, k):
                y_work[a] -= K[a, b] * y_work[b]
            y_work[a] /= K[a, a]
            x_out[column[a]] += y_work[a]
            entries = columns[basis[column[a]] - n]
            for i in range(n):
                residual_work[i] -= y_work[a] * entries[i]
    for i in range(n):
        if basis[i] < n:
            x_out[i] = residual_work[basis[i]]
