"""Envelope Cholesky factor of a block-diagonal inertia, and triangular solves with it.

`M` and its factor `L` are stored as blocks (nb, s, s): a dense inertia is one block of size m.
Inside a block the *envelope* is used: row i of `L` is zero wherever row i of `M` is zero to the
left of its first non-zero entry, so a dense matrix that happens to be block diagonal (bodies
listed one after the other) costs hardly more than its blocks.

The diagonal of `L` holds the *reciprocals* of the diagonal entries: they are only divided by.
"""

from __future__ import annotations

import numpy as np

from holdfast._jit import fast_kernel

PIVOT = 2.3e-16  # times the size: a pivot below this part of its diagonal is rounding alone


@fast_kernel
def cholesky(M: np.ndarray, first_out: np.ndarray, L_out: np.ndarray, symmetry: float) -> int:
    """Fill L_out with the lower Cholesky factor of each block of M, first_out with the envelope.

    Returns:
        0, or 1 if M is not symmetric to the given relative tolerance, or 2 if it is not
        positive definite to working precision. NaN anywhere in M gives 1 or 2.
    """
    nb, s, _ = M.shape
    rounding = s * PIVOT
    for k in range(nb):
        for i in range(s):
            first = i
            for j in range(i):
                if M[k, i, j] != 0.0 or M[k, j, i] != 0.0:
                    if first == i:
                        first = j
                    d = M[k, i, j] - M[k, j, i]
                    if not d * d <= symmetry * symmetry * abs(M[k, i, i] * M[k, j, j]):
                        return 1
            first_out[k * s + i] = first
            for j in range(first, i):
                t = M[k, i, j]
                for c in range(max(first, first_out[k * s + j]), j):
                    t -= L_out[k, i, c] * L_out[k, j, c]
                L_out[k, i, j] = t * L_out[k, j, j]
            t = M[k, i, i]
            for c in range(first, i):
                t -= L_out[k, i, c] * L_out[k, i, c]
            if not t > rounding * M[k, i, i]:
                return 2
            L_out[k, i, i] = 1.0 / np.sqrt(t)
    return 0


@fast_kernel
def solve_lower_block(L: np.ndarray, first: np.ndarray, k: int, offset: int, a: np.ndarray) -> None:
    """Overwrite a[offset:offset + s] with L_k^-1 times itself, for block k."""
    s = L.shape[1]
    for i in range(s):
        t = a[offset + i]
        for j in range(first[k * s + i], i):
            t -= L[k, i, j] * a[offset + j]
        a[offset + i] = t * L[k, i, i]


@fast_kernel
def solve_lower(L: np.ndarray, first: np.ndarray, a: np.ndarray) -> None:
    """Overwrite a with L^-1 a."""
    for k in range(L.shape[0]):
        solve_lower_block(L, first, k, k * L.shape[1], a)


@fast_kernel
def solve_upper(L: np.ndarray, first: np.ndarray, a: np.ndarray) -> None:
    """Overwrite a with L^-T a."""
    nb, s, _ = L.shape
    for k in range(nb):
        o = k * s
        for i in range(s - 1, -1, -1):
            t = a[o + i] * L[k, i, i]
            a[o + i] = t
            for j in range(first[o + i], i):
                a[o + j] -= t * L[k, i, j]


@fast_kernel
def multiply_upper(L: np.ndarray, first: np.ndarray, x: np.ndarray, y_out: np.ndarray) -> None:
    """Fill y_out with L' x, the whitened motion; no blocks at all stand for the identity."""
    nb, s, _ = L.shape
    if nb == 0:
        for i in range(x.shape[0]):
            y_out[i] = x[i]
    for k in range(nb):
        o = k * s
        for i in range(s):
            y_out[o + i] = 0.0
        for i in range(s):
            for j in range(first[o + i], i):
                y_out[o + j] += L[k, i, j] * x[o + i]
            y_out[o + i] += x[o + i] / L[k, i, i]
