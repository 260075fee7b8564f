"""What the Newton methods of an island share: its matrix, its residual, its certificate."""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from holdfast._jit import fast_inlined, fast_kernel, inlined, kernel
from holdfast.contact import cone
from holdfast.contact.system import DISC, FREE_BODY, POINT, System, add_impulse, speeds
from holdfast.linalg.block_lu import Pattern
from holdfast.linalg.views import vector

EPS = np.finfo(np.float64).eps


class Island(NamedTuple):
    """One island of a system."""

    member: np.ndarray  # (k,) its constraints
    pattern: Pattern
    trees: int  # how many there are
    place: np.ndarray  # (trees,) place of a tree in the order of elimination
    A: np.ndarray  # values of its Newton matrix
    rows: np.ndarray  # memory of `holdfast.contact.delassus`
    C: np.ndarray  # derivatives of all constraints
    C_at: np.ndarray  # (n + 1,) where those of a constraint begin
    size: float  # length of its free motion


class Vectors(NamedTuple):
    """Work arrays: motions (m,), and rows."""

    y: np.ndarray  # motion
    d: np.ndarray  # its change in a proximal step
    trial: np.ndarray
    step: np.ndarray
    residual: np.ndarray
    trial_residual: np.ndarray
    u: np.ndarray  # rows: speeds at the trial
    uk: np.ndarray  # speeds that a proximal step begins with
    r: np.ndarray  # impulses that it begins with
    new: np.ndarray  # impulses of the trial
    best: np.ndarray  # impulses of least residual so far
    free: np.ndarray  # speeds of the free motion


@fast_inlined
def _add_point_product(G: np.ndarray, at: int, CG: np.ndarray, A_inout: np.ndarray,
                       block: int) -> None:  # fmt: skip
    """Add that product for a contact with sliding friction and a free body, row by row.

    A row is read before any of it is written, so that its entries may be computed at once.
    """
    p, q = vector(CG, 0, FREE_BODY), vector(CG, FREE_BODY, FREE_BODY)
    r = vector(CG, 2 * FREE_BODY, FREE_BODY)
    for i in range(FREE_BODY):
        a, b, c = G[at + i], G[at + FREE_BODY + i], G[at + 2 * FREE_BODY + i]
        out = vector(A_inout, block + i * FREE_BODY, FREE_BODY)
        s = out[0] + (a * p[0] + b * q[0] + c * r[0])
        t = out[1] + (a * p[1] + b * q[1] + c * r[1])
        u = out[2] + (a * p[2] + b * q[2] + c * r[2])
        v = out[3] + (a * p[3] + b * q[3] + c * r[3])
        w = out[4] + (a * p[4] + b * q[4] + c * r[4])
        x = out[5] + (a * p[5] + b * q[5] + c * r[5])
        out[0], out[1], out[2], out[3], out[4], out[5] = s, t, u, v, w, x


@fast_inlined
def _times_point(C: np.ndarray, c: int, G: np.ndarray, at: int, CG_out: np.ndarray) -> None:
    """Fill CG with the product of the derivative of a contact and its panel of a free body."""
    p, q = vector(G, at, FREE_BODY), vector(G, at + FREE_BODY, FREE_BODY)
    r = vector(G, at + 2 * FREE_BODY, FREE_BODY)
    for e in range(POINT):
        a, b, d = C[c + e * POINT], C[c + e * POINT + 1], C[c + e * POINT + 2]
        out = vector(CG_out, e * FREE_BODY, FREE_BODY)
        s = a * p[0] + b * q[0] + d * r[0]
        t = a * p[1] + b * q[1] + d * r[1]
        u = a * p[2] + b * q[2] + d * r[2]
        v = a * p[3] + b * q[3] + d * r[3]
        w = a * p[4] + b * q[4] + d * r[4]
        x = a * p[5] + b * q[5] + d * r[5]
        out[0], out[1], out[2], out[3], out[4], out[5] = s, t, u, v, w, x


@fast_inlined
def _times_point_of_tree(C: np.ndarray, c: int, G: np.ndarray, at: int, CG_out: np.ndarray,
                         size: int) -> None:  # fmt: skip
    """Fill CG with that product for a tree of any size."""
    p, q, r = vector(G, at, size), vector(G, at + size, size), vector(G, at + 2 * size, size)
    for e in range(POINT):
        a, b, d = C[c + e * POINT], C[c + e * POINT + 1], C[c + e * POINT + 2]
        out = vector(CG_out, e * size, size)
        for j in range(size):
            out[j] = a * p[j] + b * q[j] + d * r[j]


@fast_inlined
def _add_rows_of_point(G: np.ndarray, at: int, CG: np.ndarray, rows: int, columns: int,
                       A_inout: np.ndarray, block: int) -> None:  # fmt: skip
    """Add that product for three rows of a contact and a tree, two rows of the block at a time.

    Each number of the block is read and written once, not for every row of the contact.
    """
    p, q = vector(CG, 0, columns), vector(CG, columns, columns)
    r = vector(CG, 2 * columns, columns)
    for i in range(0, rows - 1, 2):
        a, b, c = G[at + i], G[at + rows + i], G[at + 2 * rows + i]
        d, e, f = G[at + i + 1], G[at + rows + i + 1], G[at + 2 * rows + i + 1]
        one = vector(A_inout, block + i * columns, columns)
        two = vector(A_inout, block + (i + 1) * columns, columns)
        for j in range(columns):
            x, y, z = p[j], q[j], r[j]
            one[j] += a * x + b * y + c * z
            two[j] += d * x + e * y + f * z
    if rows % 2 == 1:
        i = rows - 1
        a, b, c = G[at + i], G[at + rows + i], G[at + 2 * rows + i]
        one = vector(A_inout, block + i * columns, columns)
        for j in range(columns):
            one[j] += a * p[j] + b * q[j] + c * r[j]


@fast_kernel
def _add_product(G: np.ndarray, at: int, CG: np.ndarray, dim: int, rows: int, columns: int,
                 A_inout: np.ndarray, block: int) -> None:  # fmt: skip
    """Add the product of a panel, transposed, and CG to a block."""
    if dim == POINT and rows == FREE_BODY and columns == FREE_BODY:
        _add_point_product(G, at, CG, A_inout, block)
        return
    first = 0
    while first + POINT <= dim:
        _add_rows_of_point(
            G, at + first * rows, CG[first * columns :], rows, columns, A_inout, block
        )
        first += POINT
    for e in range(first, dim):
        right = CG[e * columns : e * columns + columns]
        for i in range(rows):
            t = G[at + e * rows + i]
            out = A_inout[block + i * columns : block + i * columns + columns]
            for j in range(columns):
                out[j] += t * right[j]


@kernel
def assemble(sy: System, isl: Island, size: int, CG_work: np.ndarray) -> None:
    """Fill the Newton matrix ``I + sum G' C G`` of an island."""
    A, pattern = isl.A, isl.pattern
    for k in range(size):
        A[k] = 0.0
    for k in range(isl.trees):
        at, s = pattern.at[k, k], pattern.size[k]
        for j in range(s):
            A[at + j * (s + 1)] = 1.0
    for i in isl.member:
        dim, c = sy.row[i + 1] - sy.row[i], isl.C_at[i]
        some = False
        for k in range(c, c + dim * dim):
            some = some or isl.C[k] != 0.0
        if not some:
            continue
        for q in range(sy.panel[i], sy.panel[i + 1]):
            t = sy.panel_tree[q]
            columns, at, place = sy.tree[t + 1] - sy.tree[t], sy.panel_at[q], isl.place[t]
            if dim == POINT and columns == FREE_BODY:
                _times_point(isl.C, c, sy.G, at, CG_work)
            elif dim == POINT:
                _times_point_of_tree(isl.C, c, sy.G, at, CG_work, columns)
            for e in range(0 if dim == POINT else dim):
                row = CG_work[e * columns : e * columns + columns]
                for j in range(columns):
                    row[j] = 0.0
                for f in range(dim):
                    w = isl.C[c + e * dim + f]
                    if w != 0.0:
                        for j in range(columns):
                            row[j] += w * sy.G[at + f * columns + j]
            for p in range(sy.panel[i], sy.panel[i + 1]):
                tree = sy.panel_tree[p]
                _add_product(
                    sy.G, sy.panel_at[p], CG_work, dim, sy.tree[tree + 1] - sy.tree[tree], columns,
                    A, pattern.at[isl.place[tree], place],
                )  # fmt: skip


@fast_kernel
def norm(isl: Island, x: np.ndarray) -> float:
    """Return the length of the coordinates of an island in x."""
    total = 0.0
    for k in range(isl.trees):
        for j in range(isl.pattern.first[k], isl.pattern.first[k] + isl.pattern.size[k]):
            total += x[j] * x[j]
    return np.sqrt(total)


@kernel
def fill(isl: Island, x_out: np.ndarray, value: float) -> None:
    """Set the coordinates of an island."""
    for k in range(isl.trees):
        for j in range(isl.pattern.first[k], isl.pattern.first[k] + isl.pattern.size[k]):
            x_out[j] = value


@kernel
def combine(isl: Island, a: np.ndarray, t: float, b: np.ndarray, out: np.ndarray) -> None:
    """Fill the coordinates of an island with ``a + t b``."""
    for k in range(isl.trees):
        for j in range(isl.pattern.first[k], isl.pattern.first[k] + isl.pattern.size[k]):
            out[j] = a[j] + t * b[j]


@fast_kernel
def product(isl: Island, a: np.ndarray, b: np.ndarray) -> float:
    """Return the inner product of two motions of an island."""
    total = 0.0
    for k in range(isl.trees):
        for j in range(isl.pattern.first[k], isl.pattern.first[k] + isl.pattern.size[k]):
            total += a[j] * b[j]
    return total


@kernel
def motion(sy: System, isl: Island, r: np.ndarray, y_out: np.ndarray) -> None:
    """Fill the motion ``y0 + sum G' r`` of an island."""
    combine(isl, sy.y0, 0.0, sy.y0, y_out)
    for i in isl.member:
        add_impulse(sy, i, r, y_out)


@kernel
def relative_speeds(sy: System, isl: Island, y: np.ndarray, u_out: np.ndarray) -> None:
    """Fill u = G y - c for the constraints of an island."""
    for i in isl.member:
        constraint_speeds(sy, i, y, u_out)


@inlined
def constraint_speeds(sy: System, i: int, y: np.ndarray, u_out: np.ndarray) -> None:
    """Fill the rows of constraint i."""
    speeds(sy, i, y, u_out)
    for k in range(sy.row[i], sy.row[i + 1]):
        u_out[k] -= sy.c[k]


@kernel
def scale_of(sy: System, isl: Island, y: np.ndarray, r: np.ndarray) -> float:
    """Return sigma: the largest of the motions before and after, and of targets that matter."""
    sigma = max(isl.size, norm(isl, y))
    for i in isl.member:
        for k in range(sy.row[i], sy.row[i + 1]):
            if sy.normal[i] == 0 or sy.c[k] > 0.0 or r[k] != 0.0:
                sigma = max(sigma, abs(sy.c[k]))
    return max(sigma, 1e-300)


@kernel
def rebuild(sy: System, isl: Island, r: np.ndarray, y_out: np.ndarray, u_out: np.ndarray) -> None:
    """Fill the motion that impulses make, and the speeds of constraints in it."""
    motion(sy, isl, r, y_out)
    relative_speeds(sy, isl, y_out, u_out)


@kernel
def law_residual(sy: System, isl: Island, r: np.ndarray, y: np.ndarray, u: np.ndarray) -> float:
    """Return the largest residual of any law, relative to sigma; y and u are those of r.

    It is never less than the rounding of the motion: impulses that cancel each other may be so
    large that their sum says nothing.
    """
    worst = 0.0
    for i in isl.member:
        miss = constraint_miss(sy, i, r, u)
        if not miss <= worst:  # NaN, too
            worst = miss
    worst /= scale_of(sy, isl, y, r)
    return worst if worst >= 0.0 else np.inf


@inlined
def constraint_miss(sy: System, i: int, r: np.ndarray, u: np.ndarray) -> float:
    """Return the residual of the law of constraint i, or the rounding of its impulses if larger."""
    miss = cone.natural_map(sy, i, u, r)
    for k in range(sy.row[i], sy.row[i + 1]):
        miss = max(miss, EPS * abs(r[k]))
    return miss


@kernel
def certify(sy: System, isl: Island, r: np.ndarray, y_out: np.ndarray, u_out: np.ndarray) -> float:
    """Return the same for impulses alone; y and u are rebuilt."""
    rebuild(sy, isl, r, y_out, u_out)
    return law_residual(sy, isl, r, y_out, u_out)


@kernel
def certify_within(sy: System, isl: Island, r: np.ndarray, y_out: np.ndarray, u_out: np.ndarray,
                   limit: float) -> float:  # fmt: skip
    """Return the same where it is not above a limit; else infinity, as soon as that is known.

    Then u is not filled.
    """
    motion(sy, isl, r, y_out)
    sigma, worst = scale_of(sy, isl, y_out, r), 0.0
    for i in isl.member:
        constraint_speeds(sy, i, y_out, u_out)
        miss = constraint_miss(sy, i, r, u_out)
        if not miss <= limit * sigma:  # NaN, too
            return np.inf
        worst = max(worst, miss)
    return worst / sigma


@kernel
def residual_within(sy: System, isl: Island, r: np.ndarray, u: np.ndarray, sigma: float,
                    limit: float) -> float:  # fmt: skip
    """Return the same of impulses whose speeds are known."""
    worst = 0.0
    for i in isl.member:
        miss = constraint_miss(sy, i, r, u)
        if not miss <= limit * sigma:
            return np.inf
        worst = max(worst, miss)
    return worst / sigma


@kernel
def residual(sy: System, isl: Island, v: Vectors, d: np.ndarray, rho: float, out: np.ndarray,
             relaxed: bool) -> float:  # fmt: skip
    """Fill ``R = d - sum G' (r(d) - r^k)`` and return its length; r(d) is in v.new, C in isl.C.

    Coulomb's law may be relaxed to a convex one: see `holdfast.contact.relaxation`.
    """
    combine(isl, d, 0.0, d, out)
    for i in isl.member:
        speeds(sy, i, d, v.u)
        first, end = sy.row[i], sy.row[i + 1]
        for k in range(first, end):
            v.u[k] += v.uk[k]
        if relaxed and sy.normal[i] == 1 and sy.tangent[i] == DISC:
            cone.relaxed_answer(sy, i, v.u, v.r, rho, v.new, isl.C, isl.C_at[i])
        else:
            cone.answer(sy, i, v.u, v.r, rho, v.new, isl.C, isl.C_at[i])
        some = False
        for k in range(first, end):
            v.u[k] = v.r[k] - v.new[k]
            some = some or v.u[k] != 0.0
        if some:
            add_impulse(sy, i, v.u, out)
    return norm(isl, out)
