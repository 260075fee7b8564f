r"""Gauss-Seidel sweeps: each constraint in turn is solved exactly, with the others as they are.

One contact with Coulomb friction, of which the others leave the speed b, has :math:`u = b + W r`.
Where it slides :math:`u_T = -\lambda r_T` with a positive number :math:`\lambda`, and where it
sticks that number is zero, so that

.. math:: (W + \lambda\, \mathrm{diag}(0, 1, \dots, 1))\, r = -b, \qquad |r_T| \le \mu r_N

with equality where :math:`\lambda > 0`. The matrix is positive definite for every :math:`\lambda`.
If b closes the contact, :math:`|r_T| - \mu r_N` is negative for large :math:`\lambda`: either
:math:`\lambda = 0` is the answer, or there is a zero between. One equation for one number, whatever
the dimension of the cone.

Sweeps are slow, but they neither cycle nor jump: they come near an answer where methods that solve
all constraints at once do not.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

import numpy as np

from holdfast._jit import kernel
from holdfast.contact.newton import Island, Vectors, motion
from holdfast.contact.splitting import MEMORY, Splitting
from holdfast.contact.system import DISC, HELD, LINEAR, System, add_impulse, speeds

DEPENDENT = 1e-13  # added to the diagonal of W, relative to its trace: rows may be dependent
BRACKETS = 60  # factors of ten that the search for a large enough number goes through
HALVINGS = 80  # iterations on it
CONVERGED = 1e-15  # of |r_T| - mu r_N, relative to the impulse


@kernel
def local_matrices(sy: System, isl: Island) -> None:
    """Fill isl.C with ``W = G G'`` of each constraint."""
    for i in isl.member:
        dim, at = sy.row[i + 1] - sy.row[i], isl.C_at[i]
        for k in range(at, at + dim * dim):
            isl.C[k] = 0.0
        for p in range(sy.panel[i], sy.panel[i + 1]):
            t = sy.panel_tree[p]
            s, g = sy.tree[t + 1] - sy.tree[t], sy.panel_at[p]
            for e in range(dim):
                for f in range(dim):
                    total = 0.0
                    for j in range(s):
                        total += sy.G[g + e * s + j] * sy.G[g + f * s + j]
                    isl.C[at + e * dim + f] += total


@kernel
def solve_sliding(W: np.ndarray, dim: int, b: np.ndarray, more: float, mu: float,
                  L_work: np.ndarray, r_out: np.ndarray) -> float:  # fmt: skip
    """Solve ``(W + more diag(0, 1, ..)) r = -b``; return ``|r_T| - mu r_N``."""
    trace = 0.0
    for e in range(dim):
        trace += W[e * dim + e]
    for j in range(dim):
        for k in range(j + 1):
            t = W[j * dim + k]
            if j == k:
                t += DEPENDENT * trace + (more if j > 0 else 0.0)
            for e in range(k):
                t -= L_work[j, e] * L_work[k, e]
            L_work[j, k] = np.sqrt(max(t, DEPENDENT * trace)) if j == k else t / L_work[k, k]
        t = -b[j]
        for e in range(j):
            t -= L_work[j, e] * r_out[e]
        r_out[j] = t / L_work[j, j]
    for j in range(dim - 1, -1, -1):
        t = r_out[j]
        for e in range(j + 1, dim):
            t -= L_work[e, j] * r_out[e]
        r_out[j] = t / L_work[j, j]
    pull = 0.0
    for e in range(1, dim):
        pull += r_out[e] * r_out[e]
    return np.sqrt(pull) - mu * r_out[0]


@kernel
def solve_contact(W: np.ndarray, dim: int, b: np.ndarray, mu: float, L_work: np.ndarray,
                  r_out: np.ndarray) -> None:  # fmt: skip
    """Fill the impulses of one contact with Coulomb friction that others leave the speed b."""
    if not b[0] < 0.0:
        for e in range(dim):
            r_out[e] = 0.0
        return
    low, high = 0.0, W[0]
    at_low = solve_sliding(W, dim, b, low, mu, L_work, r_out)
    if at_low <= 0.0:
        return
    at_high = solve_sliding(W, dim, b, high, mu, L_work, r_out)
    for _ in range(BRACKETS):
        if at_high <= 0.0:
            break
        low, at_low, high = high, at_high, 10.0 * high
        at_high = solve_sliding(W, dim, b, high, mu, L_work, r_out)
    for k in range(HALVINGS):
        part = at_low / (at_low - at_high) if k % 3 < 2 else 0.5  # secants, and never stuck
        middle = low + min(max(part, 0.01), 0.99) * (high - low)
        value = solve_sliding(W, dim, b, middle, mu, L_work, r_out)
        if abs(value) <= CONVERGED * abs(r_out[0]) or high - low <= CONVERGED * high:
            break
        if value > 0.0:
            low, at_low = middle, value
        else:
            high, at_high = middle, value


@kernel
def solve_rows(sy: System, i: int, W: np.ndarray, u: np.ndarray, r: np.ndarray,
               change_out: np.ndarray) -> None:  # fmt: skip
    """Fill the changes of impulses of a constraint without Coulomb friction, row by row."""
    first, dim, kind = sy.row[i], sy.row[i + 1] - sy.row[i], sy.tangent[i]
    for e in range(dim):
        k, weight = first + e, W[e * dim + e]
        change_out[k] = 0.0
        if weight <= 0.0:
            continue
        speed = u[k]
        for f in range(e):
            speed += W[e * dim + f] * change_out[first + f]
        new = r[k] - speed / weight
        if e < sy.normal[i]:
            new = max(new, 0.0)
        elif kind == DISC:
            new = min(max(new, -sy.bound[i]), sy.bound[i])
        elif kind == LINEAR:
            new = (weight * r[k] - speed) / (weight + sy.R[k])
        elif kind != HELD:
            new = 0.0
        change_out[k] = new - r[k]


@kernel
def sweep(sy: System, isl: Island, v: Vectors, sp: Splitting) -> float:
    """Solve each constraint once; impulses are v.r, motion v.y. Return the largest change."""
    largest, b, new = 0.0, sp.gram[0], sp.gram[1]
    for i in isl.member:
        first, dim, at = sy.row[i], sy.row[i + 1] - sy.row[i], isl.C_at[i]
        W = isl.C[at : at + dim * dim]
        speeds(sy, i, v.y, v.u)
        for k in range(first, first + dim):
            v.u[k] -= sy.c[k]
        if sy.normal[i] == 1 and sy.tangent[i] == DISC and dim <= MEMORY:
            for e in range(dim):
                b[e] = v.u[first + e]
                for f in range(dim):
                    b[e] -= W[e * dim + f] * v.r[first + f]
            solve_contact(W, dim, b, sy.mu[i], sp.factor, new)
            for e in range(dim):
                v.new[first + e] = new[e] - v.r[first + e]
        else:
            solve_rows(sy, i, W, v.u, v.r, v.new)
        for k in range(first, first + dim):
            v.r[k] += v.new[k]
            largest = max(largest, abs(v.new[k]))
        add_impulse(sy, i, v.new, v.y)
    return largest


@kernel
def iterate_sweeps(sy: System, isl: Island, v: Vectors, sp: Splitting, tolerance: float,
                   limit: int) -> None:  # fmt: skip
    """Improve the impulses v.r by so many sweeps, fewer if they change by less than a tolerance."""
    local_matrices(sy, isl)
    motion(sy, isl, v.r, v.y)
    for _ in range(limit):
        if sweep(sy, isl, v, sp) <= tolerance:
            return
