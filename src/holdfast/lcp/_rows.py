"""Contact rows as the kernels see them: the original ones, and the whitened candidates.

Rows are `values` (n, width) with `offsets`: empty for dense rows (width m), else (n, K), the
coordinate at which each of the K blocks (bodies) that a row touches begins (width K s).

Whitening turns row N_i into a_i = L^-1 N_i' / d_i, of length 1, so that the LCP becomes a
projection in plain Euclidean space and all rows can be judged by one tolerance. Candidates are
stored like original rows: in blocks where the blocks are those of M, else dense.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

import numpy as np

from holdfast._jit import fast_kernel, kernel
from holdfast.linalg.cholesky import solve_lower_block

BODY = 6  # coordinates of a free rigid body: the block size with an unrolled loop


@fast_kernel
def rows_dot(
    values: np.ndarray,
    offsets: np.ndarray,
    x: np.ndarray,
    begin: int,
    end: int,
    stride: int,
    w_out: np.ndarray,
) -> None:
    """Fill w_out[0, 1, ...] with rows begin, begin + stride, ... (before end) times x."""
    r = 0
    i = begin
    if offsets.shape[0] == 0:
        while i + 3 * stride < end:  # four rows share each load of x
            p, q, s = i + stride, i + 2 * stride, i + 3 * stride
            t0, t1, t2, t3 = 0.0, 0.0, 0.0, 0.0
            for j in range(values.shape[1]):
                t0 += values[i, j] * x[j]
                t1 += values[p, j] * x[j]
                t2 += values[q, j] * x[j]
                t3 += values[s, j] * x[j]
            w_out[r], w_out[r + 1], w_out[r + 2], w_out[r + 3] = t0, t1, t2, t3
            r += 4
            i += 4 * stride
        while i < end:
            t0 = 0.0
            for j in range(values.shape[1]):
                t0 += values[i, j] * x[j]
            w_out[r] = t0
            r += 1
            i += stride
        return
    K = offsets.shape[1]
    s = values.shape[1] // K
    if s == BODY and K == 2:
        while i < end:
            a = x[offsets[i, 0] : offsets[i, 0] + BODY]
            b = x[offsets[i, 1] : offsets[i, 1] + BODY]
            n = values[i]
            w_out[r] = (
                (n[0] * a[0] + n[1] * a[1])
                + (n[2] * a[2] + n[3] * a[3])
                + (n[4] * a[4] + n[5] * a[5])
            ) + (
                (n[6] * b[0] + n[7] * b[1])
                + (n[8] * b[2] + n[9] * b[3])
                + (n[10] * b[4] + n[11] * b[5])
            )
            r += 1
            i += stride
        return
    while i < end:
        t0 = 0.0
        for k in range(K):
            o = offsets[i, k]
            for j in range(s):
                t0 += values[i, k * s + j] * x[o + j]
        w_out[r] = t0
        r += 1
        i += stride


@fast_kernel
def rows_length2(
    values: np.ndarray,
    offsets: np.ndarray,
    weight: np.ndarray,
    begin: int,
    end: int,
    stride: int,
    length2_out: np.ndarray,
) -> None:
    """Fill length2_out[0, 1, ...] with the squared lengths of rows begin, begin + stride, ...

    The length is in the metric of `weight`, 1 / diagonal of M: cheap, and never more than
    sqrt(m) times the true one.
    """
    r = 0
    i = begin
    if offsets.shape[0] == 0:
        while i + stride < end:  # two rows share each load of the weights
            p = i + stride
            t0, t1 = 0.0, 0.0
            for j in range(values.shape[1]):
                t0 += values[i, j] * values[i, j] * weight[j]
                t1 += values[p, j] * values[p, j] * weight[j]
            length2_out[r], length2_out[r + 1] = t0, t1
            r += 2
            i += 2 * stride
        if i < end:
            t0 = 0.0
            for j in range(values.shape[1]):
                t0 += values[i, j] * values[i, j] * weight[j]
            length2_out[r] = t0
        return
    K = offsets.shape[1]
    s = values.shape[1] // K
    if s == BODY and K == 2:
        while i < end:
            a = weight[offsets[i, 0] : offsets[i, 0] + BODY]
            b = weight[offsets[i, 1] : offsets[i, 1] + BODY]
            n = values[i]
            length2_out[r] = (
                (n[0] * n[0] * a[0] + n[1] * n[1] * a[1])
                + (n[2] * n[2] * a[2] + n[3] * n[3] * a[3])
                + (n[4] * n[4] * a[4] + n[5] * n[5] * a[5])
            ) + (
                (n[6] * n[6] * b[0] + n[7] * n[7] * b[1])
                + (n[8] * n[8] * b[2] + n[9] * n[9] * b[3])
                + (n[10] * n[10] * b[4] + n[11] * n[11] * b[5])
            )
            r += 1
            i += stride
        return
    while i < end:
        t0 = 0.0
        for k in range(K):
            o = offsets[i, k]
            for j in range(s):
                t0 += values[i, k * s + j] * values[i, k * s + j] * weight[o + j]
        length2_out[r] = t0
        r += 1
        i += stride


@kernel
def scatter(values: np.ndarray, offsets: np.ndarray, i: int, a_out: np.ndarray) -> None:
    """Fill a_out (m) with row i."""
    if offsets.shape[0] == 0:
        for j in range(a_out.shape[0]):
            a_out[j] = values[i, j]
        return
    for j in range(a_out.shape[0]):
        a_out[j] = 0.0
    K = offsets.shape[1]
    s = values.shape[1] // K
    for k in range(K):
        o = offsets[i, k]
        for j in range(s):
            a_out[o + j] += values[i, k * s + j]


@fast_kernel
def whitened_norm(
    values: np.ndarray,
    offsets: np.ndarray,
    i: int,
    L: np.ndarray,
    first: np.ndarray,
    a_work: np.ndarray,
) -> float:
    """Return d_i = |L^-1 N_i'|, the length of row i in the metric of M^-1."""
    scatter(values, offsets, i, a_work)
    s = L.shape[1]
    for k in range(L.shape[0]):
        for j in range(k * s, k * s + s):
            if a_work[j] != 0.0:
                solve_lower_block(L, first, k, k * s, a_work)
                break
    d = 0.0
    for j in range(a_work.shape[0]):
        d += a_work[j] * a_work[j]
    return np.sqrt(d)


@kernel
def whiten(
    values: np.ndarray,
    offsets: np.ndarray,
    L: np.ndarray,
    first: np.ndarray,
    rows: np.ndarray,
    begin: int,
    end: int,
    A_out: np.ndarray,
    offset_out: np.ndarray,
    d_out: np.ndarray,
) -> None:
    """Fill candidates begin..end of A_out with the whitened unit rows, d_out with their lengths.

    `rows[r]` is the original row of candidate r. A row of zeros gets d = 0 and stays zero.
    """
    if offset_out.shape[0] > 0:
        _copy_blocks(values, offsets, rows, begin, end, A_out, offset_out)
        _whiten_blocks(L, first, begin, end, A_out, offset_out)
    else:
        for r in range(begin, end):
            scatter(values, offsets, rows[r], A_out[r])
        whiten_dense(L, first, begin, end, A_out)
    _normalise(begin, end, A_out, d_out)


@kernel
def _copy_blocks(
    values: np.ndarray,
    offsets: np.ndarray,
    rows: np.ndarray,
    begin: int,
    end: int,
    A_out: np.ndarray,
    offset_out: np.ndarray,
) -> None:
    """Copy rows in blocks; a body named twice is merged into its first block."""
    K = offsets.shape[1]
    s = values.shape[1] // K
    for r in range(begin, end):
        i = rows[r]
        for c in range(K * s):
            A_out[r, c] = values[i, c]
        for k in range(K):
            offset_out[r, k] = offsets[i, k]
            for e in range(k):
                if offsets[i, e] == offsets[i, k]:
                    for j in range(s):
                        A_out[r, e * s + j] += A_out[r, k * s + j]
                        A_out[r, k * s + j] = 0.0
                    break


@fast_kernel
def _whiten_blocks(
    L: np.ndarray,
    first: np.ndarray,
    begin: int,
    end: int,
    A_inout: np.ndarray,
    offset: np.ndarray,
) -> None:
    """Multiply the blocks of candidates begin..end by L^-1."""
    K = offset.shape[1]
    s = A_inout.shape[1] // K
    for r in range(begin, end if L.shape[0] > 0 else begin):
        for k in range(K):
            b = offset[r, k] // s
            for i in range(s):
                t = A_inout[r, k * s + i]
                for j in range(first[b * s + i], i):
                    t -= L[b, i, j] * A_inout[r, k * s + j]
                A_inout[r, k * s + i] = t * L[b, i, i]


@fast_kernel
def whiten_dense(
    L: np.ndarray, first: np.ndarray, begin: int, end: int, A_inout: np.ndarray
) -> None:
    """Multiply candidates begin..end by L^-1, four rows at a time."""
    s = L.shape[1]
    for k in range(L.shape[0]):
        o = k * s
        p = begin
        while p + 3 < end:
            for i in range(s):
                c = o + i
                t0, t1, t2, t3 = (
                    A_inout[p, c],
                    A_inout[p + 1, c],
                    A_inout[p + 2, c],
                    A_inout[p + 3, c],
                )
                for j in range(first[c], i):
                    f = L[k, i, j]
                    t0 -= f * A_inout[p, o + j]
                    t1 -= f * A_inout[p + 1, o + j]
                    t2 -= f * A_inout[p + 2, o + j]
                    t3 -= f * A_inout[p + 3, o + j]
                f = L[k, i, i]
                A_inout[p, c], A_inout[p + 1, c] = t0 * f, t1 * f
                A_inout[p + 2, c], A_inout[p + 3, c] = t2 * f, t3 * f
            p += 4
        while p < end:
            solve_lower_block(L, first, k, o, A_inout[p])
            p += 1


@fast_kernel
def _normalise(begin: int, end: int, A_inout: np.ndarray, d_out: np.ndarray) -> None:
    """Scale candidates begin..end to length 1; fill d_out with their lengths."""
    for r in range(begin, end):
        t = 0.0
        for j in range(A_inout.shape[1]):
            t += A_inout[r, j] * A_inout[r, j]
        d_out[r] = np.sqrt(t)
        scale = 1.0 / d_out[r] if t > 0.0 else 0.0
        for j in range(A_inout.shape[1]):
            A_inout[r, j] *= scale


@fast_kernel
def separation(
    A: np.ndarray,
    offset: np.ndarray,
    beta: np.ndarray,
    y: np.ndarray,
    w_out: np.ndarray,
    begin: int,
    end: int,
) -> None:
    """Fill w_out[begin:end] with A y + beta: the normalised separation speed of candidates."""
    rows_dot(A, offset, y, begin, end, np.int64(1), w_out[begin:end])  # one compiled version
    for r in range(begin, end):
        w_out[r] += beta[r]
