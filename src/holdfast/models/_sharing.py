"""Kernels that share forces out: least squares over rows that may depend on each other.

Forces ``f = W A mu`` with ``A' f = q`` have that effect at the least cost ``f' W^-1 f``. With the
columns of ``W^1/2 A`` as ``Q R`` they are ``f = W^1/2 Q y`` where ``R' y = q``: columns that depend
on those before them are passed over, what they lack q lacks, too.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

import numpy as np

from holdfast.lcp import _factor as factor
from holdfast.lcp._kernel import entry, fast_kernel, kernel

EXACT = 1e-9  # relative error of the net effect
PRESSED = 1e-9  # normal force, relative to the largest one, that counts as pressing
RANK = 1e-14
DEPENDENT = 1e-9  # part of a row outside the span of others that is rounding, relative to it
MAX_STEPS = 30

SHARED, UNTIED, FAILED = 0, 1, 2  # what the kernels return


@fast_kernel
def _length(y: np.ndarray) -> float:
    t = 0.0
    for j in range(y.shape[0]):
        t += y[j] * y[j]
    return np.sqrt(t)


@kernel
def _basis(
    rows: np.ndarray,
    floor: float,
    Q: np.ndarray,
    R: np.ndarray,
    which_out: np.ndarray,
    work: np.ndarray,
) -> int:
    """Fill Q and R with factors of the rows that are independent; return how many.

    What is left of a row outside the span of those before it must be longer than `floor`.
    """
    k = 0
    m = rows.shape[1]
    for i in range(rows.shape[0]):
        d = _length(rows[i])
        if d <= floor or k == m:
            continue
        for j in range(m):
            work[0, j] = rows[i, j] / d
        rho = np.sqrt(factor.project(Q, k, work[0], work[1], work[2]))
        if rho > DEPENDENT and rho * d > floor:
            factor.append(work[0], work[2], rho, Q, R, k)
            for l in range(k + 1):
                R[k, l] *= d
            which_out[k] = i
            k += 1
    return k


@fast_kernel
def _outside(Q: np.ndarray, k: int, y_inout: np.ndarray) -> None:
    """Take out of y its part in the span of Q[:k]."""
    for l in range(k):
        t = 0.0
        for j in range(y_inout.shape[0]):
            t += Q[l, j] * y_inout[j]
        for j in range(y_inout.shape[0]):
            y_inout[j] -= t * Q[l, j]


@kernel
def _least(
    A: np.ndarray,
    weight: np.ndarray,
    q: np.ndarray,
    columns_work: np.ndarray,
    R_work: np.ndarray,
    long_work: np.ndarray,
    vector_work: np.ndarray,
    which_work: np.ndarray,
    mu_out: np.ndarray,
    f_out: np.ndarray,
) -> float:
    """Fill f_out = W A mu_out with ``A' f = q`` at least cost; return how much of q is missed."""
    n, m = A.shape
    C, Q, R, which = columns_work[0], columns_work[1], R_work, which_work
    rest, y = vector_work[0], vector_work[1]
    for i in range(n):
        root = np.sqrt(weight[i])
        f_out[i] = 0.0
        for j in range(m):
            C[j, i] = root * A[i, j]
    longest = 0.0
    for j in range(m):
        longest = max(longest, _length(C[j]))
    rank = _basis(C, DEPENDENT * longest, Q, R, which, long_work)
    for j in range(m):
        mu_out[j] = 0.0
        rest[j] = q[j]
    for _ in range(2):  # the second time for what rounding left
        for l in range(rank):
            y[l] = rest[which[l]]
        factor.solve_lower_factor(R, rank, y)
        for l in range(rank):
            for i in range(n):
                f_out[i] += np.sqrt(weight[i]) * y[l] * Q[l, i]
        factor.solve_upper_factor(R, rank, y)
        for l in range(rank):
            mu_out[which[l]] += y[l]
        for j in range(m):
            rest[j] = q[j]
        for i in range(n):
            for j in range(m):
                rest[j] -= f_out[i] * A[i, j]
    return _length(rest)


@entry
def share_normals(
    N: np.ndarray,
    G: np.ndarray,
    touching: np.ndarray,
    normal: np.ndarray,
    square_work: np.ndarray,
    vector_work: np.ndarray,
    columns_work: np.ndarray,
    long_work: np.ndarray,
    E_work: np.ndarray,
    which_work: np.ndarray,
    f_out: np.ndarray,
) -> int:
    """Fill f_out with normal forces of least squares and the effect of `normal` beside G.

    At the solution ``f = max(0, E mu)`` for E the rows of N outside the span of G, and Newton's
    method on that piecewise linear equation settles in a few steps.

    Args:
        N: (n, m) whitened normals.
        G: (k, m) whitened rows whose forces take over what they can.
        touching: (n,) contacts that may carry force.
        normal: (n,) known forces.
        square_work, vector_work: (3, m, m), (5, m).
        columns_work, long_work, E_work: (2, m, n), (5, n), (n, m).
        which_work: (2, m) integers.
        f_out: (n,).

    Returns:
        SHARED, or FAILED if Newton's method did not settle.
    """
    n, m = N.shape
    Q, E = square_work[0], E_work
    q, mu = vector_work[3], vector_work[4]
    weight, f = long_work[3], long_work[4]
    k = _basis(G, 0.0, Q, square_work[1], which_work[0], vector_work)
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
    size = _length(q)
    for _ in range(MAX_STEPS):
        missed = _least(E, weight, q, columns_work, square_work[1], long_work, vector_work,
                        which_work[0], mu, f)  # fmt: skip
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
    free: np.ndarray,
    weight: np.ndarray,
    rest: np.ndarray,
    size: float,
    square_work: np.ndarray,
    vector_work: np.ndarray,
    columns_work: np.ndarray,
    long_work: np.ndarray,
    A_work: np.ndarray,
    which_work: np.ndarray,
    t_out: np.ndarray,
    free_out: np.ndarray,
) -> int:
    """Fill t_out with the tangential forces of least ``sum |t|^2 / weight`` that make `rest`.

    Args:
        rows: (k, m) whitened tangents.
        contact: (k,) the contact of each.
        free: (r, m) whitened rows whose force costs nothing.
        weight: (n,) how willingly each contact takes tangential force.
        rest: (m,) the effect to be made.
        size: of the whole effect, to which errors are compared.
        square_work, vector_work: (3, m, m), (5, m).
        columns_work, long_work, A_work: (2, m, k), (5, k), (k, m).
        which_work: (2, m) integers.
        t_out: (k,).
        free_out: (r,) forces of the free rows.

    Returns:
        SHARED, or UNTIED if there are no such forces.
    """
    k, m = rows.shape
    Q, R = square_work[0], square_work[1]
    A, each, q, force = A_work, long_work[3], vector_work[3], vector_work[4]
    known = _basis(free, 0.0, Q, R, which_work[0], vector_work)
    for i in range(k):
        t_out[i] = 0.0
        each[i] = weight[contact[i]]
        for j in range(m):
            A[i, j] = rows[i, j]
        if each[i] > 0.0:
            _outside(Q, known, A[i])
            _outside(Q, known, A[i])
    for j in range(m):
        q[j] = rest[j]
    _outside(Q, known, q)
    _outside(Q, known, q)
    if _length(q) > EXACT * size:
        missed = _least(A, each, q, columns_work, square_work[2], long_work,
                        vector_work, which_work[1], vector_work[2], t_out)  # fmt: skip
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
    for i in range(free.shape[0]):
        free_out[i] = 0.0
    for l in range(known):
        free_out[which_work[0, l]] = force[l]
    return SHARED
