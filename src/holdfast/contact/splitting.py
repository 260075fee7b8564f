r"""Douglas-Rachford splitting with Anderson acceleration: many cheap iterations, one factorisation.

The fixed point is sought in :math:`z = r - \beta w`, with the impulses r and, for a contact with
Coulomb friction, De Saxcé's shifted speed :math:`w = u + \mu |u_T| e_N`. The law of a constraint
alone decides how z splits,

.. math:: r = P_K(z), \qquad w = (r - z) / \beta, \qquad s = \mu |w_T|

and the motion couples the constraints:

.. math::

    (I + \beta G^T G)\, y = y^0 + G^T (r + \beta (w + c - s e_N)), \qquad
    z^+ = r - \beta (G y - c + s e_N)

The matrix never changes. With frozen s this is the alternating direction method of multipliers for
a convex problem; with s that follows w nothing is proved, but it comes near an answer from
anywhere, and Newton's method (`holdfast.contact.proximal`) does not. Anderson's acceleration
combines the last iterates so that their residuals cancel as far as possible.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from holdfast._jit import fast_kernel, inlined, kernel
from holdfast.contact.cone import project
from holdfast.contact.newton import Island, Vectors, assemble, combine, rebuild
from holdfast.contact.proximal import TINY
from holdfast.contact.system import DISC, LINEAR, NOTHING, System, add_impulse, speeds
from holdfast.linalg import block_lu
from holdfast.linalg.vectors import square

MEMORY = 10  # iterates that Anderson's acceleration combines
ROWS = 4 + 2 * MEMORY  # arrays of rows in `Splitting`
SMALL = MEMORY * (2 * MEMORY + 1)  # numbers in its small arrays
RIDGE = 1e-10  # of the least squares, relative: iterates are nearly dependent near a fixed point
GROWTH = 2.0  # of the residual, after which the acceleration starts afresh


class Splitting(NamedTuple):
    """Work arrays; rows of an island stand one after the other."""

    z: np.ndarray  # (rows,)
    residual: np.ndarray  # (rows,) z+ - z
    last_z: np.ndarray
    last_residual: np.ndarray
    dz: np.ndarray  # (MEMORY, rows) differences of consecutive iterates
    dr: np.ndarray  # (MEMORY, rows) differences of their residuals
    gram: np.ndarray  # (MEMORY, MEMORY) products of dr
    factor: np.ndarray  # (MEMORY, MEMORY)
    weight: np.ndarray  # (MEMORY,)


@inlined
def split(sy: System, i: int, z: np.ndarray, at: int, beta: float, r_out: np.ndarray,
          w_out: np.ndarray) -> float:  # fmt: skip
    """Fill impulses and shifted speeds of constraint i; return the shift s of its normal speed.

    z begins at `at`.
    """
    first, end, kind = sy.row[i], sy.row[i + 1], sy.tangent[i]
    begin = first + sy.normal[i]
    shift = at - first
    pull = 0.0
    for k in range(begin, end):
        pull += square(z[k + shift])
    pull = np.sqrt(pull)
    share = 1.0
    if sy.normal[i] == 1:
        x = z[at]
        if kind == DISC:
            x, share = project(x, pull, sy.mu[i])
        r_out[first] = max(x, 0.0)
        w_out[first] = (r_out[first] - z[at]) / beta
    elif kind == DISC and pull > sy.bound[i]:
        share = sy.bound[i] / pull
    speed = 0.0
    for k in range(begin, end):
        x = z[k + shift]
        if kind == NOTHING:
            r_out[k] = w_out[k] = 0.0
            continue
        r_out[k] = x / (1.0 + beta * sy.R[k]) if kind == LINEAR else share * x
        w_out[k] = (r_out[k] - x) / beta
        speed += square(w_out[k])
    return sy.mu[i] * np.sqrt(speed) if sy.normal[i] == 1 and kind == DISC else 0.0


@kernel
def factor_coupling(sy: System, isl: Island, size: int, CG_work: np.ndarray, beta: float) -> None:
    """Factor ``I + beta G' G`` over the rows that carry impulses."""
    for i in isl.member:
        dim, at = sy.row[i + 1] - sy.row[i], isl.C_at[i]
        for k in range(at, at + dim * dim):
            isl.C[k] = 0.0
        for e in range(dim):
            if sy.tangent[i] != NOTHING or e < sy.normal[i]:
                isl.C[at + e * dim + e] = beta
    assemble(sy, isl, size, CG_work)
    block_lu.factor(isl.pattern, isl.trees, isl.A, TINY)


@kernel
def iterate(sy: System, isl: Island, v: Vectors, sp: Splitting, shift_work: np.ndarray,
            beta: float) -> int:  # fmt: skip
    """Fill sp.residual at sp.z; impulses are left in v.r. Return how many rows there are."""
    combine(isl, sy.y0, 0.0, sy.y0, v.y)
    at = 0
    for i in isl.member:
        first, end = sy.row[i], sy.row[i + 1]
        s = split(sy, i, sp.z, at, beta, v.r, v.new)
        shift_work[i] = s
        for k in range(first, end):
            v.u[k] = v.r[k] + beta * (sy.c[k] + v.new[k])
            if sy.tangent[i] == NOTHING and k >= first + sy.normal[i]:
                v.u[k] = 0.0
        if sy.normal[i] == 1:
            v.u[first] -= beta * s
        add_impulse(sy, i, v.u, v.y)
        at += end - first
    block_lu.solve(isl.pattern, isl.trees, isl.A, v.y)
    at = 0
    for i in isl.member:
        first, end = sy.row[i], sy.row[i + 1]
        speeds(sy, i, v.y, v.u)
        for k in range(first, end):
            q = at + k - first
            u = v.u[k] - sy.c[k]
            if k == first and sy.normal[i] == 1:
                u += shift_work[i]
            sp.residual[q] = v.r[k] - beta * u - sp.z[q]
            if sy.tangent[i] == NOTHING and k >= first + sy.normal[i]:
                sp.residual[q] = 0.0
        at += end - first
    return at


@fast_kernel
def dot(a: np.ndarray, b: np.ndarray, count: int) -> float:
    """Return the product of the first entries of two vectors."""
    total = 0.0
    for k in range(count):
        total += a[k] * b[k]
    return total


@fast_kernel
def remember_difference(sp: Splitting, slot: int, count: int) -> None:
    """Keep how iterate and residual have changed."""
    dz, dr = sp.dz[slot], sp.dr[slot]
    for k in range(count):
        dz[k] = sp.z[k] - sp.last_z[k]
        dr[k] = sp.residual[k] - sp.last_residual[k]


@kernel
def solve_weights(sp: Splitting, n: int) -> bool:
    """Overwrite the first weights with the solution of the normal equations; False if singular."""
    ridge = 0.0
    for j in range(n):
        ridge += sp.gram[j, j]
    ridge *= RIDGE / n
    L, x = sp.factor, sp.weight
    for j in range(n):
        for k in range(j + 1):
            t = sp.gram[j, k]
            if j == k:
                t += ridge
            for e in range(k):
                t -= L[j, e] * L[k, e]
            if j > k:
                L[j, k] = t / L[k, k]
            elif t > 0.0:
                L[j, j] = np.sqrt(t)
            else:
                return False
    for j in range(n):
        for e in range(j):
            x[j] -= L[j, e] * x[e]
        x[j] /= L[j, j]
    for j in range(n - 1, -1, -1):
        for e in range(j + 1, n):
            x[j] -= L[e, j] * x[e]
        x[j] /= L[j, j]
    return True


@fast_kernel
def take_step(sp: Splitting, n: int, count: int) -> None:
    """Move z to the next iterate, with the weights of the first n differences."""
    for k in range(count):
        sp.last_z[k], sp.last_residual[k] = sp.z[k], sp.residual[k]
        sp.z[k] += sp.residual[k]
    for j in range(n):
        w, dz, dr = sp.weight[j], sp.dz[j], sp.dr[j]
        for k in range(count):
            sp.z[k] -= w * (dz[k] + dr[k])


@kernel
def iterate_splitting(sy: System, isl: Island, size: int, v: Vectors, CG_work: np.ndarray,
                      shift_work: np.ndarray, sp: Splitting, beta: float, tolerance: float,
                      limit: int) -> None:  # fmt: skip
    """Improve the impulses v.r by so many iterations, fewer if z changes by less than a tolerance.

    Args:
        sy, isl, size, v, CG_work: the island and work arrays.
        shift_work: (n,).
        sp: work arrays.
        beta: weight of the coupling.
        tolerance: of |z+ - z|.
        limit: iterations.
    """
    factor_coupling(sy, isl, size, CG_work, beta)
    rebuild(sy, isl, v.r, v.y, v.u)
    at = 0
    for i in isl.member:
        first, end = sy.row[i], sy.row[i + 1]
        speed = 0.0
        for k in range(first, end):
            sp.z[at + k - first] = v.r[k] - beta * v.u[k]
            if k >= first + sy.normal[i]:
                speed += square(v.u[k])
                if sy.tangent[i] == NOTHING:
                    sp.z[at + k - first] = 0.0
        if sy.normal[i] == 1 and sy.tangent[i] == DISC:
            sp.z[at] -= beta * sy.mu[i] * np.sqrt(speed)
        at += end - first
    last, slot, n = np.inf, 0, 0
    for step in range(limit):
        count = iterate(sy, isl, v, sp, shift_work, beta)
        size2 = dot(sp.residual, sp.residual, count)
        if not size2 > tolerance * tolerance:
            break
        if step > 0 and size2 <= GROWTH * GROWTH * last:
            remember_difference(sp, slot, count)
            n = max(n, slot + 1)
            for j in range(n):
                sp.gram[slot, j] = sp.gram[j, slot] = dot(sp.dr[slot], sp.dr[j], count)
            for j in range(n):
                sp.weight[j] = dot(sp.dr[j], sp.residual, count)
            slot = slot + 1 if slot + 1 < MEMORY else 0
            if not solve_weights(sp, n):
                slot = n = 0
        else:
            slot = n = 0
        last = size2
        take_step(sp, n, count)
    at = 0
    for i in isl.member:
        split(sy, i, sp.z, at, beta, v.r, v.new)
        at += sy.row[i + 1] - sy.row[i]
