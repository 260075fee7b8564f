r"""The problem that is solved: whitened coordinates, scaled rows.

With :math:`M = L^T L` and :math:`y = L v` the inertia is the identity. A constraint with rows G and
impulses r changes the motion by :math:`G^T r`, and is measured by :math:`u = G y - c`. The rows of
a contact share one scale, so that its cone stays a cone, and the longest of them has length one;
tangents are scaled by their coefficients of friction relative to the first, which makes the
elliptic cone round. Motions then are square roots of energies, and so are impulses: one tolerance
serves both.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from holdfast._jit import fast_inlined, fast_kernel, kernel
from holdfast.contact.arrays import Arrays, LawKind
from holdfast.linalg import ltl

FRICTIONLESS, COULOMB, NO_SLIP = (
    int(LawKind.FRICTIONLESS),
    int(LawKind.COULOMB),
    int(LawKind.NO_SLIP),
)
VISCOUS, DRY, RIGID = int(LawKind.VISCOUS), int(LawKind.DRY), int(LawKind.RIGID)
COMPLIANT = int(LawKind.COMPLIANT)

FREE_BODY = 6  # coordinates: loops of this length are written out, for most trees have it

# What tangents do: nothing, stay within a disc, hold, or give way in proportion.
NOTHING, DISC, HELD, LINEAR = range(4)


class System(NamedTuple):
    """Whitened and scaled constraints; see `Arrays` for the indices."""

    tree: np.ndarray
    row: np.ndarray
    panel: np.ndarray
    panel_tree: np.ndarray
    panel_at: np.ndarray
    y0: np.ndarray  # (m,) free motion
    G: np.ndarray  # panels
    c: np.ndarray  # (rows,)
    R: np.ndarray  # (rows,) compliance
    normal: np.ndarray  # (n,) 1 if the first row is a normal
    tangent: np.ndarray  # (n,) NOTHING, DISC, HELD or LINEAR
    mu: np.ndarray  # (n,)
    bound: np.ndarray  # (n,) radius of the disc beside mu r_N
    scale: np.ndarray  # (rows,) length that a row was divided by


@fast_kernel
def whiten_row(L: np.ndarray, below: np.ndarray, values: np.ndarray, at: int, s: int,
               G_out: np.ndarray) -> None:  # fmt: skip
    """Fill s entries of G_out, from `at` on, with a row of the values, whitened."""
    g = G_out[at : at + s]
    for j in range(s):
        g[j] = values[at + j]
    ltl.to_white(L, below, g)


@kernel
def factor_inertia(a: Arrays, used: np.ndarray, L_out: np.ndarray, below_out: np.ndarray,
                   y_out: np.ndarray) -> bool:  # fmt: skip
    """Factor the inertia of the trees in use, and whiten the free motion; False if not definite."""
    skip = 0
    for t in range(a.tree.shape[0] - 1):
        first, s = a.tree[t], a.tree[t + 1] - a.tree[t]
        at = a.block[t]
        if used[t]:
            M = a.inertia[at : at + s * s].reshape(s, s)
            L = L_out[at : at + s * s].reshape(s, s)
            below = below_out[skip : skip + s * (s + 1)].reshape(s, s + 1)
            if not ltl.factor(M, L, below):
                return False
            ltl.motion_to_white(L, below, a.free[first : first + s], y_out[first : first + s])
        else:
            for j in range(first, first + s):
                y_out[j] = 0.0
        skip += s * (s + 1)
    return True


@kernel
def recover_velocity(a: Arrays, used: np.ndarray, L: np.ndarray, below: np.ndarray, y: np.ndarray,
                     velocity_out: np.ndarray) -> None:  # fmt: skip
    """Fill the velocity of a whitened motion."""
    skip = 0
    for t in range(a.tree.shape[0] - 1):
        first, s = a.tree[t], a.tree[t + 1] - a.tree[t]
        at = a.block[t]
        v = velocity_out[first : first + s]
        if used[t]:
            for j in range(s):
                v[j] = y[first + j]
            ltl.from_white(
                L[at : at + s * s].reshape(s, s),
                below[skip : skip + s * (s + 1)].reshape(s, s + 1), v,
            )  # fmt: skip
        else:
            for j in range(s):
                v[j] = a.free[first + j]
        skip += s * (s + 1)


@fast_kernel
def row_length2(sy: System, i: int, e: int) -> float:
    """Return the squared length of row e of constraint i."""
    total = 0.0
    for p in range(sy.panel[i], sy.panel[i + 1]):
        t = sy.panel_tree[p]
        s = sy.tree[t + 1] - sy.tree[t]
        at = sy.panel_at[p] + e * s
        for j in range(s):
            total += sy.G[at + j] * sy.G[at + j]
    return total


@kernel
def multiply_row(sy: System, i: int, e: int, factor: float) -> None:
    """Scale row e of constraint i."""
    for p in range(sy.panel[i], sy.panel[i + 1]):
        t = sy.panel_tree[p]
        s = sy.tree[t + 1] - sy.tree[t]
        at = sy.panel_at[p] + e * s
        for j in range(s):
            sy.G[at + j] *= factor


@kernel
def whiten(a: Arrays, L: np.ndarray, below: np.ndarray, below_at: np.ndarray, sy: System) -> None:
    """Fill the panels of sy, whitened."""
    for i in range(a.law.shape[0]):
        dim = a.row[i + 1] - a.row[i]
        for p in range(a.panel[i], a.panel[i + 1]):
            t = a.panel_tree[p]
            s, at = a.tree[t + 1] - a.tree[t], a.block[t]
            factor = L[at : at + s * s].reshape(s, s)
            entries = below[below_at[t] : below_at[t] + s * (s + 1)].reshape(s, s + 1)
            for e in range(dim):
                whiten_row(factor, entries, a.values, a.panel_at[p] + e * s, s, sy.G)


@kernel
def apply_laws(a: Arrays, sy: System, shortest: float) -> None:
    """Fill what sy says of the laws, and scale its rows.

    Rows shorter than `shortest` (relative to the longest of all) carry nothing.
    """
    longest = 0.0
    for i in range(a.law.shape[0]):
        for e in range(a.row[i + 1] - a.row[i]):
            length2 = row_length2(sy, i, e)
            sy.scale[a.row[i] + e] = np.sqrt(length2)
            longest = max(longest, length2)
    least = shortest * np.sqrt(longest)
    for i in range(a.law.shape[0]):
        law, first, end = a.law[i], a.row[i], a.row[i + 1]
        contact = law <= VISCOUS
        sy.normal[i] = 1 if contact else 0
        sy.bound[i] = sy.mu[i] = 0.0
        sy.tangent[i] = NOTHING
        if law == COULOMB:
            for k in range(first + 1, end):
                if sy.mu[i] == 0.0:
                    sy.mu[i] = a.friction[k]
            if sy.mu[i] > 0.0:
                sy.tangent[i] = DISC
        elif law in (NO_SLIP, RIGID):
            sy.tangent[i] = HELD
        elif law in (VISCOUS, COMPLIANT):
            sy.tangent[i] = LINEAR
        elif law == DRY:
            sy.tangent[i] = DISC
        if contact and end == first + 1:
            sy.tangent[i] = NOTHING
        common = 0.0  # one length for all rows of a contact
        for k in range(first, end):
            ratio = 1.0
            if law == COULOMB and k > first:
                ratio = a.friction[k] / sy.mu[i] if sy.mu[i] > 0.0 else 0.0
            if (contact and k > first and sy.tangent[i] == NOTHING) or sy.scale[k] <= least:
                ratio = 0.0
            sy.R[k] = ratio  # for now
            common = max(common, ratio * sy.scale[k])
        if contact and law != VISCOUS and sy.R[first] == 0.0:  # nothing presses it
            common = 0.0
        for k in range(first, end):
            ratio = sy.R[k]
            length = common if contact else ratio * sy.scale[k]
            if length == 0.0:
                ratio, length = 0.0, 1.0
            multiply_row(sy, i, k - first, ratio / length)
            sy.c[k] = a.target[k] * ratio / length
            # impulse along the given row = impulse here times this
            sy.scale[k] = ratio / length
            sy.R[k] = 0.0
            if sy.tangent[i] == LINEAR and not (contact and k == first):
                sy.R[k] = a.compliance[k] / (length * length)
        if law == DRY:
            sy.bound[i] = a.bound[first] / sy.scale[first] if sy.scale[first] > 0.0 else 0.0


@fast_inlined
def speeds(sy: System, i: int, y: np.ndarray, u_out: np.ndarray) -> None:
    """Fill the rows of constraint i in u_out with ``G y``."""
    first, dim = sy.row[i], sy.row[i + 1] - sy.row[i]
    for e in range(dim):
        u_out[first + e] = 0.0
    for p in range(sy.panel[i], sy.panel[i + 1]):
        t = sy.panel_tree[p]
        o = sy.tree[t]
        s, at = sy.tree[t + 1] - o, sy.panel_at[p]
        if s == FREE_BODY:
            a, b, c, d, f, g = y[o], y[o + 1], y[o + 2], y[o + 3], y[o + 4], y[o + 5]
            for e in range(dim):
                row = sy.G[at + e * FREE_BODY : at + (e + 1) * FREE_BODY]
                u_out[first + e] += (row[0] * a + row[1] * b + row[2] * c) + (
                    row[3] * d + row[4] * f + row[5] * g
                )
            continue
        for e in range(dim):
            total = 0.0
            for j in range(s):
                total += sy.G[at + e * s + j] * y[o + j]
            u_out[first + e] += total


@fast_inlined
def add_impulse(sy: System, i: int, r: np.ndarray, y_inout: np.ndarray) -> None:
    """Add ``G' r`` of constraint i to the motion."""
    first, dim = sy.row[i], sy.row[i + 1] - sy.row[i]
    for p in range(sy.panel[i], sy.panel[i + 1]):
        t = sy.panel_tree[p]
        o = sy.tree[t]
        s, at = sy.tree[t + 1] - o, sy.panel_at[p]
        for e in range(dim):
            f = r[first + e]
            if f == 0.0:
                continue
            row = sy.G[at + e * s : at + e * s + s]
            out = y_inout[o : o + s]
            if s == FREE_BODY:
                for j in range(FREE_BODY):
                    out[j] += row[j] * f
            else:
                for j in range(s):
                    out[j] += row[j] * f
