"""Kernels that share forces out: least squares over rows that may depend on each other.

Forces ``f = W A mu`` with ``A' f = q`` have that effect at the least cost ``f' W^-1 f``. With the
columns of ``W^1/2 A`` as ``Q R`` they are ``f = W^1/2 Q y`` where ``R' y = q``. The column with the
longest remainder comes first; where the rest is rounding, what the columns lack q lacks, too.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

import numpy as np

from holdfast._jit import entry, fast_kernel, kernel
from holdfast.linalg import qr_update as factor
from holdfast.linalg.vectors import dot, norm

EXACT = 1e-9  # relative error of the net effect
PRESSED = 1e-9  # normal force, relative to the largest one, that counts as pressing
RANK = 1e-14
DEPENDENT = 1e-9  # what is left of rows outside the span of others that is rounding, relatively
NOISE = 1e-6  # the same where a collision detector placed the points; used only if need be
SHORTEST = 1e-12  # and then down to here
MAX_STEPS = 30
TALL = 16  # rows per coordinate from which on they are compressed first, so many at a time

SHARED, UNTIED, FAILED = 0, 1, 2  # what the kernels return


@fast_kernel
def _basis(
    A_inout: np.ndarray,
    floor: float,
    F_work: np.ndarray,
    Q_out: np.ndarray,
    R_out: np.ndarray,
    which_out: np.ndarray,
) -> int:
    """Fill Q_out and R_out with factors of the most independent rows of A; return how many.

    The longest remainder comes next, until none is longer than `floor`. A_inout is used up.
    """
    count, m = A_inout.shape
    k = 0
    while k < min(count, m):
        best, longest2 = -1, floor * floor
        for i in range(count):
            t = 0.0
            for j in range(m):
                t += A_inout[i, j] * A_inout[i, j]
            if t > longest2:
                best, longest2 = i, t
        if best < 0:
            break
        for l in range(k):  # once more, for what rounding left
            t = 0.0
            for j in range(m):
                t += Q_out[l, j] * A_inout[best, j]
            F_work[best, l] += t
            for j in range(m):
                A_inout[best, j] -= t * Q_out[l, j]
        length = norm(A_inout[best])
        for j in range(m):
            Q_out[k, j] = A_inout[best, j] / length
        for i in range(count):
            t = 0.0
            for j in range(m):
                t += Q_out[k, j] * A_inout[i, j]
            F_work[i, k] = t
            for j in range(m):
                A_inout[i, j] -= t * Q_out[k, j]
        for j in range(m):
            A_inout[best, j] = 0.0
        which_out[k] = best
        k += 1
    for a in range(k):
        for l in range(a + 1):
            R_out[a, l] = F_work[which_out[a], l]
    return k


@kernel
def _normalise(rows_inout: np.ndarray, length_out: np.ndarray) -> None:
    """Scale rows to length 1; rows of zeros stay."""
    for i in range(rows_inout.shape[0]):
        length_out[i] = norm(rows_inout[i])
        scale = 1.0 / length_out[i] if length_out[i] > 0.0 else 0.0
        for j in range(rows_inout.shape[1]):
            rows_inout[i, j] *= scale


@fast_kernel
def _outside(Q: np.ndarray, k: int, y_inout: np.ndarray) -> None:
    """Take out of y its part in the span of Q[:k]."""
    for l in range(k):
        t = 0.0
        for j in range(y_inout.shape[0]):
            t += Q[l, j] * y_inout[j]
        for j in range(y_inout.shape[0]):
            y_inout[j] -= t * Q[l, j]


@fast_kernel
def _compress(A: np.ndarray, weight: np.ndarray, C_work: np.ndarray, R_out: np.ndarray) -> None:
    """Fill the rows of R_out with m entries each that have the products of ``W^1/2 A``'s columns.

    A is read once, some rows at a time that stay in the cache: the columns found so far and the
    new entries below them are made triangular again, by Gram-Schmidt.
    """
    n, m = A.shape
    size = C_work.shape[1] - m
    for l in range(m):
        for j in range(m):
            R_out[l, j] = 0.0
    begin = 0
    while begin < n:
        count = min(size, n - begin)
        for l in range(m):
            for j in range(m):
                C_work[l, j] = R_out[l, j]
        for i in range(count):
            root = np.sqrt(weight[begin + i])
            for l in range(m):
                C_work[l, m + i] = root * A[begin + i, l]
        for j in range(m):
            q = C_work[j, : m + count]
            length = norm(q)
            if length == 0.0:
                continue  # and R_out is still zero here
            scale = 1.0 / length
            for i in range(m + count):
                q[i] *= scale
            R_out[j, j] = length
            for l in range(j + 1, m):
                c = C_work[l, : m + count]
                t = dot(q, c)
                for i in range(m + count):
                    c[i] -= t * q[i]
                R_out[l, j] = t
        begin += count


@kernel
def _least(
    A: np.ndarray,
    weight: np.ndarray,
    q: np.ndarray,
    columns_work: np.ndarray,
    square_work: np.ndarray,
    vector_work: np.ndarray,
    which_work: np.ndarray,
    mu_out: np.ndarray,
    f_out: np.ndarray,
) -> float:
    """Fill f_out = W A mu_out with ``A' f = q`` at least cost; return how much of q is missed.

    Directions that are there only because points are not placed exactly are used where q cannot
    be made without them: their factors are as large as they are short.
    """
    missed = _least_beyond(
        A, weight, q, columns_work, square_work, vector_work, which_work, mu_out, f_out, NOISE
    )
    if missed <= EXACT * norm(q):
        return missed
    return _least_beyond(
        A, weight, q, columns_work, square_work, vector_work, which_work, mu_out, f_out, SHORTEST
    )


@kernel
def _least_beyond(
    A: np.ndarray,
    weight: np.ndarray,
    q: np.ndarray,
    columns_work: np.ndarray,
    square_work: np.ndarray,
    vector_work: np.ndarray,
    which_work: np.ndarray,
    mu_out: np.ndarray,
    f_out: np.ndarray,
    dependent: float,
) -> float:
    """Do what `_least` says with columns that are longer than `dependent`, relatively."""
    n, m = A.shape
    C, Q, R, which = columns_work[0], columns_work[1], square_work[2], which_work
    rest, y = vector_work[0], vector_work[1]
    tall = dependent >= NOISE and n > (TALL + 1) * m > 0
    if tall:
        width = m + TALL * m
        _compress(A, weight, Q.reshape(m * n)[: m * width].reshape(m, width), square_work[3])
        C = C.reshape(m * n)[: m * m].reshape(m, m)
        for j in range(m):
            for l in range(m):
                C[j, l] = square_work[3, j, l]
    for i in range(n):
        f_out[i] = 0.0
        if not tall:
            root = np.sqrt(weight[i])
            for j in range(m):
                C[j, i] = root * A[i, j]
    longest = 0.0
    for j in range(m):
        longest = max(longest, norm(C[j]))
    rank = _basis(C, dependent * longest, square_work[3], Q, R, which)
    for j in range(m):
        mu_out[j] = 0.0
        rest[j] = q[j]
    for _ in range(2):  # the second time for what rounding left
        for l in range(rank):
            y[l] = rest[which[l]]
        factor.solve_lower_factor(R, rank, y)
        for l in range(rank if not tall else 0):
            for i in range(n):
                f_out[i] += np.sqrt(weight[i]) * y[l] * Q[l, i]
        factor.solve_upper_factor(R, rank, y)
        for l in range(rank):
            mu_out[which[l]] += y[l]
        for i in range(n if tall else 0):
            f_out[i] = weight[i] * dot(A[i], mu_out)
        for j in range(m):
            rest[j] = q[j]
        for i in range(n):
            for j in range(m):
                rest[j] -= f_out[i] * A[i, j]
    return norm(rest)


@entry
def share_normals(
    N: np.ndarray,
    G_inout: np.ndarray,
    touching: np.ndarray,
    normal: np.ndarray,
    square_work: np.ndarray,
    vector_work: np.ndarray,
    columns_work: np.ndarray,
    each_work: np.ndarray,
    E_work: np.ndarray,
    which_work: np.ndarray,
    f_out: np.ndarray,
) -> int:
    """Fill f_out with normal forces of least squares and the effect of `normal` beside G.

    At the solution ``f = max(0, E mu)`` for E the rows of N outside the span of G, and Newton's
    method on that piecewise linear equation settles in a few steps.

    Args:
        N: (n, m) whitened normals.
        G_inout: (k, m) whitened rows whose forces take over what they can, k <= m; used up.
        touching: (n,) contacts that may carry force.
        normal: (n,) known forces.
        square_work, vector_work: (4, m, m), (5, m).
        columns_work, each_work, E_work: (2, m, n), (2, n), (n, m).
        which_work: (2, m) integers.
        f_out: (n,).

    Returns:
        SHARED, or FAILED if Newton's method did not settle.
    """
    n, m = N.shape
    Q, E = square_work[0], E_work
    q, mu = vector_work[3], vector_work[4]
    weight, f = each_work[0], each_work[1]
    _normalise(G_inout, vector_work[0])
    k = _basis(G_inout, DEPENDENT, square_work[3], Q, square_work[1], which_work[0])
    for j in range(m):
        q[j] = 0.0
    for i in range(n):
        weight[i] = 1.0 if touching[i] else 0.0
        f[i] = 0.0
        for j in range(m):
            E[i, j] = N[i, j] if touching[i] else 0.0
        if touching[i]:
            _outside(Q, k, E[i])
            _outside(Q, k, E[i])  # twice is enough
            for j in range(m):
                q[j] += normal[i] * E[i, j]
    size = norm(q)
    for _ in range(MAX_STEPS):
        missed = _least(E, weight, q, columns_work, square_work, vector_work, which_work[0], mu, f)
        if missed > EXACT * size:
            return FAILED
        largest = 0.0
        for i in range(n):
            if touching[i] and weight[i] == 0.0:  # what it would carry if it could
                for j in range(m):
                    f[i] += E[i, j] * mu[j]
            largest = max(largest, abs(f[i]))
        settled = True
        for i in range(n):
            acts = touching[i] and f[i] > PRESSED * largest
            wrong = f[i] < -PRESSED * largest if weight[i] > 0.0 else acts
            settled = settled and not wrong
        for i in range(n):
            f_out[i] = max(f[i], 0.0) if weight[i] > 0.0 else 0.0
            weight[i] = 1.0 if touching[i] and f[i] > PRESSED * largest else 0.0
        if settled:
            return SHARED
    return FAILED


@entry
def share_tangents(
    rows: np.ndarray,
    contact: np.ndarray,
    free_inout: np.ndarray,
    weight: np.ndarray,
    rest: np.ndarray,
    size: float,
    square_work: np.ndarray,
    vector_work: np.ndarray,
    columns_work: np.ndarray,
    each_work: np.ndarray,
    A_work: np.ndarray,
    free_work: np.ndarray,
    which_work: np.ndarray,
    t_out: np.ndarray,
    free_out: np.ndarray,
) -> int:
    """Fill t_out with the tangential forces of least ``sum |t|^2 / weight`` that make `rest`.

    Args:
        rows: (k, m) whitened tangents.
        contact: (k,) the contact of each.
        free_inout: (r, m) whitened rows whose force costs nothing; used up.
        weight: (n,) how willingly each contact takes tangential force.
        rest: (m,) the effect to be made.
        size: of the whole effect, to which errors are compared.
        square_work, vector_work: (4, m, m), (5, m).
        columns_work, each_work, A_work: (2, m, k), (2, k), (k, m).
        free_work: (r, m).
        which_work: (2, m) integers.
        t_out: (k,).
        free_out: (r,) forces of the free rows.

    Returns:
        SHARED, or UNTIED if there are no such forces.
    """
    k, m = rows.shape
    Q, R = square_work[0], square_work[1]
    each, q, force = each_work[0], vector_work[3], vector_work[4]
    _normalise(free_inout, free_out)
    known = _basis(free_inout, DEPENDENT, free_work, Q, R, which_work[0])
    A = rows if known == 0 else A_work
    for i in range(k):
        t_out[i] = 0.0
        each[i] = weight[contact[i]]
        for j in range(m if known > 0 else 0):
            A[i, j] = rows[i, j]
        if known > 0 and each[i] > 0.0:
            _outside(Q, known, A[i])
            _outside(Q, known, A[i])
    for j in range(m):
        q[j] = rest[j]
    _outside(Q, known, q)
    _outside(Q, known, q)
    if norm(q) > EXACT * size:
        missed = _least(A, each, q, columns_work, square_work, vector_work, which_work[1],
                        vector_work[2], t_out)  # fmt: skip
        if missed > EXACT * size:
            return UNTIED
    for j in range(m):
        q[j] = rest[j]
    for i in range(k):
        for j in range(m):
            q[j] -= t_out[i] * rows[i, j]
    for l in range(known):
        force[l] = 0.0
        for j in range(m):
            force[l] += Q[l, j] * q[j]
    factor.solve_upper_factor(R, known, force)
    for l in range(known):
        force[l] /= free_out[which_work[0, l]]
    for i in range(free_inout.shape[0]):
        free_out[i] = 0.0
    for l in range(known):
        free_out[which_work[0, l]] = force[l]
    return SHARED
