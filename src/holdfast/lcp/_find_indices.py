"""Kernels of Find-Indices: whiten a row, orthogonalise it, keep it or not.

With ``M = L L'`` the matrix ``X' M^-1 X`` of the paper's Algorithm 2 is the Gram matrix of
the whitened rows ``a = L^-1 x``. It is singular exactly when the whitened rows are
dependent, and the last pivot of its Cholesky factor is the length of the part of the newest
row outside the span of the others. Orthogonalisation computes that length without forming
the Gram matrix, whose condition number is the square of that of the rows: a pivot of 1e-6
would be 1e-12 there, with rounding only four decades below it.
"""

from __future__ import annotations

import numpy as np

from holdfast._jit import entry, fast_kernel, kernel
from holdfast.linalg import qr_update as factor
from holdfast.linalg.cholesky import cholesky, solve_lower


@fast_kernel
def _row_size(row: np.ndarray, weight: np.ndarray) -> float:
    """Writes nothing; returns the largest entry of `row` in units of ``M_jj^(1/2)``.

    It costs one pass, where the length in the metric of M^-1 takes a whitening, and it is as
    free of the units of the coordinates.
    """
    size = 0.0
    for j in range(row.size):
        size = max(size, abs(row[j]) * weight[j])
    return size


@kernel
def _largest_size(rows: np.ndarray, weight: np.ndarray) -> float:
    """Writes nothing; returns the largest `_row_size`, 0 if there are no rows."""
    largest = 0.0
    for i in range(rows.shape[0]):
        largest = max(largest, _row_size(rows[i], weight))
    return largest


@fast_kernel
def _pivot(
    row: np.ndarray,
    L: np.ndarray,
    first: np.ndarray,
    Q: np.ndarray,
    coef_work: np.ndarray,
    rank: int,
) -> float:
    """Writes the remainder of the normalised, whitened `row` to ``Q[rank]``; returns its length.

    The row must not be zero.
    """
    a = Q[rank]
    m = a.size
    largest = 0.0
    for j in range(m):
        largest = max(largest, abs(row[j]))
    # Scaled first, so that squares neither overflow nor vanish in any unit.
    for j in range(m):
        a[j] = row[j] / largest
    solve_lower(L, first, a)
    total = 0.0
    for j in range(m):
        total += a[j] * a[j]
    scale = 1.0 / np.sqrt(total)
    for j in range(m):
        a[j] *= scale
    return np.sqrt(factor.project(Q, rank, a, coef_work[:m], coef_work[m:]))


@fast_kernel
def _keep_row(
    row: np.ndarray,
    L: np.ndarray,
    first: np.ndarray,
    Q_work: np.ndarray,
    coef_work: np.ndarray,
    weight_work: np.ndarray,
    pivots_out: np.ndarray,
    rank: int,
    rank_tol: float,
    zero: float,
) -> bool:
    """Writes a new orthonormal row to ``Q_work[rank]`` if `row` is independent; says whether.

    `pivots_out` holds the smallest kept and the largest rejected pivot so far; a row no
    larger than `zero` leaves no trace in it.
    """
    if _row_size(row, weight_work) <= zero:
        return False
    pivot = _pivot(row, L, first, Q_work, coef_work, rank)
    if pivot > rank_tol:
        pivots_out[0] = min(pivots_out[0], pivot)
        scale = 1.0 / pivot
        for j in range(Q_work.shape[1]):
            Q_work[rank, j] *= scale
        return True
    pivots_out[1] = max(pivots_out[1], pivot)
    return False


@entry
def select_rows(
    M: np.ndarray,
    J: np.ndarray,
    S: np.ndarray,
    T: np.ndarray,
    L_work: np.ndarray,
    first_work: np.ndarray,
    Q_work: np.ndarray,
    coef_work: np.ndarray,
    weight_work: np.ndarray,
    J_out: np.ndarray,
    S_out: np.ndarray,
    T_out: np.ndarray,
    pivots_out: np.ndarray,
    rank_tol: float,
    zero_tol: float,
) -> tuple[int, int, int]:
    """Writes the kept rows to `J_out`, `S_out`, `T_out` and both pivots to `pivots_out`.

    Algorithm 2 of the paper. Afterwards ``Q_work[:rank]`` is an orthonormal basis of the
    kept whitened rows.

    Args:
        M: (nb, s, s) diagonal blocks of the inertia.
        J: (j, m) bilateral rows.
        S: (n, m) first tangents, or (0, m).
        T: (n, m) second tangents, or (0, m).
        L_work: (nb, s, s).
        first_work: (m,) integers.
        Q_work: (m, m).
        coef_work: (2 m,).
        weight_work: (m,).
        J_out: (min(j, m),) kept rows of J, ascending.
        S_out: (min(n, m),) kept rows of S, ascending.
        T_out: (min(n, m),) kept rows of T, ascending.
        pivots_out: (2,) smallest kept (inf if none), largest rejected pivot (0 if none).
        rank_tol: a pivot must be larger than this.
        zero_tol: a row no larger than this part of the largest row is a row of zeros.

    Returns:
        How many entries of `J_out`, `S_out` and `T_out` were written; -1 for the first if M is
        not positive definite.
    """
    m, s = Q_work.shape[0], M.shape[1]
    L, first, Q, coef = L_work, first_work, Q_work, coef_work
    weight, pivots = weight_work, pivots_out
    if cholesky(M, first, L, np.inf) != 0:
        return -1, 0, 0
    for j in range(m):
        weight[j] = 1.0 / np.sqrt(M[j // s, j % s, j % s])
    zero = zero_tol * max(
        _largest_size(J, weight), _largest_size(S, weight), _largest_size(T, weight)
    )
    count_J, count_S, count_T, rank = 0, 0, 0, 0  # lines 1-3: the sets are empty
    pivots[0] = np.inf
    pivots[1] = 0.0
    for i in range(J.shape[0]):  # lines 4-10
        if rank == m:
            break
        if _keep_row(J[i], L, first, Q, coef, weight, pivots, rank, rank_tol, zero):
            J_out[count_J] = i
            count_J += 1
            rank += 1
    for i in range(max(S.shape[0], T.shape[0])):  # line 11
        if rank == m:
            break
        if i < S.shape[0] and _keep_row(  # lines 12-16
            S[i], L, first, Q, coef, weight, pivots, rank, rank_tol, zero
        ):
            S_out[count_S] = i
            count_S += 1
            rank += 1
        if (
            i < T.shape[0]
            and rank < m
            and _keep_row(  # lines 17-21
                T[i], L, first, Q, coef, weight, pivots, rank, rank_tol, zero
            )
        ):
            T_out[count_T] = i
            count_T += 1
            rank += 1
    return count_J, count_S, count_T
