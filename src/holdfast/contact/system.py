r"""The problem that is solved: whitened coordinates, scaled rows.

With :math:`M = L^T L` and :math:`y = L v` the inertia is the identity. A constraint with rows G and
impulses r changes the motion by :math:`G^T r`, and is measured by :math:`u = G y - c`. The rows of
a contact share one scale, so that its cone stays a cone, and the longest of them has length one;
tangents are scaled by their coefficients of friction relative to the largest, which makes the
elliptic cone round and none of them longer than it was. Motions then are square roots of energies,
and so are impulses: one tolerance serves both.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from holdfast._jit import fast_inlined, fast_kernel, inlined, kernel
from holdfast.contact.arrays import Arrays, Factors, LawKind
from holdfast.linalg import ltl
from holdfast.linalg.ltl import POINT
from holdfast.linalg.vectors import dot, square
from holdfast.linalg.views import part, vector

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
    before: np.ndarray  # (m,) motion before the step
    G: np.ndarray  # panels
    c: np.ndarray  # (rows,)
    R: np.ndarray  # (rows,) compliance
    normal: np.ndarray  # (n,) 1 if the first row is a normal
    tangent: np.ndarray  # (n,) NOTHING, DISC, HELD or LINEAR
    mu: np.ndarray  # (n,)
    bound: np.ndarray  # (n,) radius of the disc beside mu r_N
    scale: np.ndarray  # (rows,) length that a row was divided by


@fast_kernel
def invert_factor(L_inout: np.ndarray) -> None:
    """Overwrite the factor of a free body with its inverse, zeros included.

    A body with many contacts has many rows to whiten: with the inverse they need no recursion.
    """
    for k in range(FREE_BODY):
        t = L_inout[k, k]
        for j in range(k):
            total = 0.0
            for i in range(j, k):
                total += L_inout[k, i] * L_inout[i, j]
            L_inout[k, j] = -t * total
        for j in range(k + 1, FREE_BODY):
            L_inout[k, j] = 0.0


@fast_inlined
def whiten_panel(values: np.ndarray, at: int, dim: int, T: np.ndarray, G_out: np.ndarray,
                 length2_inout: np.ndarray, first: int) -> None:  # fmt: skip
    """Fill the panel of a free body, with its inverse factor T; add the squares of its lengths."""
    for e in range(dim):
        x = values[at + e * FREE_BODY : at + (e + 1) * FREE_BODY]
        g = G_out[at + e * FREE_BODY : at + (e + 1) * FREE_BODY]
        a, b, c, d, f, h = x[0], x[1], x[2], x[3], x[4], x[5]
        p = (a * T[0, 0] + b * T[1, 0] + c * T[2, 0]) + (d * T[3, 0] + f * T[4, 0] + h * T[5, 0])
        q = (b * T[1, 1] + c * T[2, 1]) + (d * T[3, 1] + f * T[4, 1] + h * T[5, 1])
        r = c * T[2, 2] + (d * T[3, 2] + f * T[4, 2] + h * T[5, 2])
        u = d * T[3, 3] + f * T[4, 3] + h * T[5, 3]
        v = f * T[4, 4] + h * T[5, 4]
        w = h * T[5, 5]
        g[0], g[1], g[2], g[3], g[4], g[5] = p, q, r, u, v, w
        length2_inout[first + e] += (p * p + q * q + r * r) + (u * u + v * v + w * w)


@inlined
def factor_of(a: Arrays, f: Factors, t: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the factor of tree t and where its entries are."""
    s = a.tree[t + 1] - a.tree[t]
    return part(f.L, a.block[t], s, s), part(f.below, a.block[t] + a.tree[t], s, s + 1)


@kernel
def factor_inertia(a: Arrays, used: np.ndarray, f: Factors, velocity: np.ndarray,
                   y_out: np.ndarray, before_out: np.ndarray) -> bool:  # fmt: skip
    """Factor the inertia of the trees in use; whiten the free motion, and the velocity before.

    Returns:
        Whether it is definite.

    The factors of free bodies are left as their inverses, and made anew by each solve.
    """
    for t in range(a.tree.shape[0] - 1):
        first, s = a.tree[t], a.tree[t + 1] - a.tree[t]
        y, before = vector(y_out, first, s), vector(before_out, first, s)
        if used[t] == 0:
            for j in range(s):
                y[j] = before[j] = 0.0
            continue
        L, below = factor_of(a, f, t)
        if f.known[t] == 0 and not ltl.factor(part(a.inertia, a.block[t], s, s), L, below):
            return False
        ltl.motion_to_white(L, below, vector(a.free, first, s), y)
        ltl.motion_to_white(L, below, vector(velocity, first, s), before)
        if s == FREE_BODY:
            invert_factor(L)
        f.known[t] = s != FREE_BODY
    return True


@kernel
def recover_velocity(a: Arrays, used: np.ndarray, f: Factors, y: np.ndarray,
                     velocity_out: np.ndarray) -> None:  # fmt: skip
    """Fill the velocity of a whitened motion."""
    for t in range(a.tree.shape[0] - 1):
        first, s = a.tree[t], a.tree[t + 1] - a.tree[t]
        at, v = a.block[t], vector(velocity_out, first, s)
        if used[t] == 0:
            for j in range(s):
                v[j] = a.free[first + j]
        elif s == FREE_BODY:
            for k in range(s):
                total = 0.0
                for j in range(k + 1):
                    total += f.L[at + k * s + j] * y[first + j]
                v[k] = total
        else:
            L, below = factor_of(a, f, t)
            for j in range(s):
                v[j] = y[first + j]
            ltl.from_white(L, below, v)


@fast_inlined
def multiply_rows(sy: System, i: int, equal: bool) -> None:
    """Multiply the rows of constraint i by sy.scale, of which all are equal or not."""
    first, dim = sy.row[i], sy.row[i + 1] - sy.row[i]
    for p in range(sy.panel[i], sy.panel[i + 1]):
        t = sy.panel_tree[p]
        s, at = sy.tree[t + 1] - sy.tree[t], sy.panel_at[p]
        if equal:
            panel, factor = sy.G[at : at + dim * s], sy.scale[first]
            for j in range(dim * s):
                panel[j] *= factor
            continue
        for e in range(dim):
            row, factor = sy.G[at + e * s : at + e * s + s], sy.scale[first + e]
            for j in range(s):
                row[j] *= factor


@kernel
def whiten(a: Arrays, f: Factors, members: np.ndarray, sy: System) -> float:
    """Fill the panels of sy, whitened, and the squares of rows' lengths in sy.scale.

    Returns:
        The longest length.
    """
    longest = 0.0
    for i in members:
        first, dim = a.row[i], a.row[i + 1] - a.row[i]
        for k in range(first, first + dim):
            sy.scale[k] = 0.0
        for p in range(a.panel[i], a.panel[i + 1]):
            t = a.panel_tree[p]
            s, at = a.tree[t + 1] - a.tree[t], a.panel_at[p]
            L, below = factor_of(a, f, t)
            if s == FREE_BODY:
                whiten_panel(a.values, at, dim, L, sy.G, sy.scale, first)
                continue
            for j in range(at, at + dim * s):
                sy.G[j] = a.values[j]
            ltl.rows_to_white(L, below, part(sy.G, at, dim, s))
            for e in range(dim):
                row = vector(sy.G, at + e * s, s)
                sy.scale[first + e] += dot(row, row)
        for k in range(first, first + dim):
            longest = max(longest, sy.scale[k])
    return np.sqrt(longest)


@kernel
def is_rounding_row(a: Arrays, members: np.ndarray, sy: System, i: int, e: int,
                    part: float) -> bool:  # fmt: skip
    """Return whether row e of constraint i is what cancellation left of a row of zeros.

    It is if its numbers are that small beside others, or if it moves no tree by more than this part
    of what another row does. A heavy body has short rows beside a light one, but they move it.
    """
    own = widest = 0.0
    for j in members:
        for p in range(a.panel[j], a.panel[j + 1]):
            s = a.tree[a.panel_tree[p] + 1] - a.tree[a.panel_tree[p]]
            for k in range(a.panel_at[p], a.panel_at[p] + (a.row[j + 1] - a.row[j]) * s):
                widest = max(widest, abs(a.values[k]))
    for p in range(a.panel[i], a.panel[i + 1]):
        s = a.tree[a.panel_tree[p] + 1] - a.tree[a.panel_tree[p]]
        for k in range(a.panel_at[p] + e * s, a.panel_at[p] + (e + 1) * s):
            own = max(own, abs(a.values[k]))
    if own <= part * widest:
        return True
    for p in range(a.panel[i], a.panel[i + 1]):
        t = a.panel_tree[p]
        s, longest2 = a.tree[t + 1] - a.tree[t], 0.0
        for j in members:
            for q in range(a.panel[j], a.panel[j + 1]):
                for f in range(a.row[j + 1] - a.row[j] if a.panel_tree[q] == t else 0):
                    row = vector(sy.G, a.panel_at[q] + f * s, s)
                    longest2 = max(longest2, dot(row, row))
        row = vector(sy.G, a.panel_at[p] + e * s, s)
        if dot(row, row) > part * part * longest2:
            return False
    return True


@kernel
def drop_rounding(a: Arrays, members: np.ndarray, sy: System, part: float,
                  longest: float) -> None:  # fmt: skip
    """Take rows for zeros, in sy.scale, that are rounding; `longest` is the length of a row."""
    least2 = square(part * longest)
    for i in members:
        for k in range(a.row[i], a.row[i + 1]):
            if 0.0 < sy.scale[k] <= least2 and is_rounding_row(
                a, members, sy, i, k - a.row[i], part
            ):
                sy.scale[k] = 0.0


@inlined
def tangent_kind(law: int, rows: int, mu: float) -> int:
    """What the rows after the first, or all rows of what is not a contact, do."""
    if rows == 1 and law <= VISCOUS:
        return NOTHING
    if law == DRY or (law == COULOMB and mu > 0.0):
        return DISC
    if law in (NO_SLIP, RIGID):
        return HELD
    return LINEAR if law in (VISCOUS, COMPLIANT) else NOTHING


@kernel
def apply_laws(a: Arrays, members: np.ndarray, sy: System) -> None:
    """Fill what sy says of the laws, and scale its rows, whose squared lengths are in sy.scale.

    Rows of zeros carry nothing. All rows of a contact are divided by one length,
    which does not depend on how its tangents are turned; other rows have their own.
    """
    for i in members:
        law, first, end = a.law[i], a.row[i], a.row[i + 1]
        if end == first:  # left out
            sy.normal[i], sy.tangent[i] = 0, NOTHING
            continue
        contact = law <= VISCOUS
        mu = 0.0
        if law == COULOMB:
            for k in range(first + 1, end):
                mu = max(mu, a.friction[k])
        kind = tangent_kind(law, end - first, mu)
        sy.normal[i], sy.tangent[i] = 1 if contact else 0, kind
        sy.mu[i], sy.bound[i] = mu, 0.0
        common, tangents = 0.0, 0
        if contact:
            for k in range(first + 1, end):
                if kind == NOTHING or sy.scale[k] == 0.0:
                    sy.scale[k] = 0.0
                    continue
                ratio2 = 1.0 if law != COULOMB else square(a.friction[k] / mu)
                if ratio2 > 0.0:
                    common += ratio2 * sy.scale[k]
                    tangents += 1
            common /= max(tangents, 1)
            if sy.scale[first] != 0.0:  # NaN must not get lost
                common = common if sy.scale[first] <= common else sy.scale[first]
            elif law != VISCOUS:  # nothing presses it
                common = 0.0
            common = 1.0 / np.sqrt(common) if common != 0.0 else 0.0
        equal = True
        for k in range(first, end):
            # impulse along the given row = impulse here times this
            factor = 0.0
            if sy.scale[k] != 0.0:
                factor = common if contact else 1.0 / np.sqrt(sy.scale[k])
                if law == COULOMB and k > first and a.friction[k] != mu:
                    factor *= a.friction[k] / mu
            sy.scale[k] = factor
            equal = equal and factor == sy.scale[first]
            sy.c[k] = a.target[k] * factor
            sy.R[k] = 0.0
            if kind == LINEAR and not (contact and k == first):
                sy.R[k] = a.compliance[k] * factor * factor
        multiply_rows(sy, i, equal)
        if law == DRY and sy.scale[first] > 0.0:
            sy.bound[i] = a.bound[first] / sy.scale[first]


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
        if dim == POINT:
            a, b, c = point_speeds(sy.G, at, s, vector(y, o, s))
            u_out[first] += a
            u_out[first + 1] += b
            u_out[first + 2] += c
            continue
        for e in range(dim):
            total = 0.0
            for j in range(s):
                total += sy.G[at + e * s + j] * y[o + j]
            u_out[first + e] += total


@fast_inlined
def point_speeds(G: np.ndarray, at: int, s: int, y: np.ndarray) -> tuple[float, float, float]:
    """Return the products of three rows with a motion."""
    p, q, r = vector(G, at, s), vector(G, at + s, s), vector(G, at + 2 * s, s)
    a = b = c = 0.0
    for j in range(s):
        a += p[j] * y[j]
        b += q[j] * y[j]
        c += r[j] * y[j]
    return a, b, c


@fast_inlined
def add_impulse(sy: System, i: int, r: np.ndarray, y_inout: np.ndarray) -> None:
    """Add ``G' r`` of constraint i to the motion."""
    first, dim = sy.row[i], sy.row[i + 1] - sy.row[i]
    for p in range(sy.panel[i], sy.panel[i + 1]):
        t = sy.panel_tree[p]
        o = sy.tree[t]
        s, at = sy.tree[t + 1] - o, sy.panel_at[p]
        if dim == POINT:
            add_point(sy.G, at, s, r[first], r[first + 1], r[first + 2], y_inout, o)
            continue
        for e in range(dim):
            f = r[first + e]
            if f == 0.0:
                continue
            row, out = vector(sy.G, at + e * s, s), vector(y_inout, o, s)
            for j in range(s):
                out[j] += row[j] * f


@fast_inlined
def add_point(G: np.ndarray, at: int, s: int, x: float, y: float, z: float, y_inout: np.ndarray,
              o: int) -> None:  # fmt: skip
    """Add three rows times impulses to the coordinates from o on."""
    if x == 0.0 and y == 0.0 and z == 0.0:
        return
    out = vector(y_inout, o, s)
    a, b, c = vector(G, at, s), vector(G, at + s, s), vector(G, at + 2 * s, s)
    if s == FREE_BODY:  # all is read before any is written: entries may be computed at once
        p = out[0] + (a[0] * x + b[0] * y + c[0] * z)
        q = out[1] + (a[1] * x + b[1] * y + c[1] * z)
        r = out[2] + (a[2] * x + b[2] * y + c[2] * z)
        u = out[3] + (a[3] * x + b[3] * y + c[3] * z)
        v = out[4] + (a[4] * x + b[4] * y + c[4] * z)
        w = out[5] + (a[5] * x + b[5] * y + c[5] * z)
        out[0], out[1], out[2], out[3], out[4], out[5] = p, q, r, u, v, w
    else:
        for j in range(s):
            out[j] += a[j] * x + b[j] * y + c[j] * z


@fast_inlined
def add_sizes(sy: System, i: int, r: np.ndarray, size_inout: np.ndarray) -> None:
    """Add the sizes of all terms of ``G' r`` of constraint i."""
    first, dim = sy.row[i], sy.row[i + 1] - sy.row[i]
    for p in range(sy.panel[i], sy.panel[i + 1]):
        t = sy.panel_tree[p]
        o, at = sy.tree[t], sy.panel_at[p]
        s = sy.tree[t + 1] - o
        for e in range(dim):
            f = abs(r[first + e])
            if f != 0.0:
                for j in range(s):
                    size_inout[o + j] += f * abs(sy.G[at + e * s + j])
