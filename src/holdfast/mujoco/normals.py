"""Normals of our own, for pairs of convex geoms whose contacts have wrong ones.

A normal of two convex geoms is a direction along which they are farther apart than along any
nearby: ``-support(a, n) - support(b, -n)`` is greatest. One geom is moved off along a direction, so
far that they are apart. Where they are nearest to each other then is the next direction, and so on
until it stays (where they do not overlap, it is the only one that does). Nearest points are those
of the algorithm of Gilbert, Johnson and Keerthi: of all differences between points of the two, the
one nearest to the origin is sought in tetrahedra of ever nearer ones. However little they overlap,
moved off they are far enough apart for it. Where corners meet, a cone of directions stays; they
separate equally well, but for as much as the geoms overlap.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from holdfast._jit import kernel
from holdfast.linalg.vectors import dot
from holdfast.mujoco.separation import has_support, support, support_point
from holdfast.mujoco.structs import floats, integers

OFF = 0.02  # part of a radius by which a geom is moved off at least
FARTHEST = 4.0  # the same at most
TURNS = 30  # directions
SETTLED = 1e-9  # change of a direction that has settled
ROUNDS = 100  # tetrahedra
NEAREST = 1e-13  # part of a squared distance by which no point is nearer
SINGULAR = 1e-14  # pivot of points, relative to their squared distances, that nearly coincide

NONE = 1e-12  # squared distance over that of the shift, up to which two geoms are not apart

CORNERS = 4
PLACE = 1024  # in the scratch of a step, behind what its other users need [bytes]


class Search(NamedTuple):
    """Work arrays: corners of a tetrahedron of differences, and the nearest point in it."""

    C: np.ndarray  # (4, 3) differences
    A: np.ndarray  # (4, 3) points of one geom
    B: np.ndarray  # (4, 3) and of the other
    weight: np.ndarray  # (4,) of the corners in the nearest point
    trial: np.ndarray  # (4,) the same of other points
    nearest: np.ndarray  # (3,)
    point: np.ndarray  # (3,)
    K: np.ndarray  # (5, 6) a linear system


@kernel
def search_at(at: int) -> Search:
    """Return the work arrays at an address."""
    C, A, B = floats(at, 4, 3), floats(at + 96, 4, 3), floats(at + 192, 4, 3)
    return Search(
        C, A, B, floats(at + 288, 1, 4)[0], floats(at + 320, 1, 4)[0], floats(at + 352, 1, 3)[0],
        floats(at + 376, 1, 3)[0], floats(at + 400, 5, 6),
    )  # fmt: skip


@kernel
def weights_of(C: np.ndarray, chosen: int, K_work: np.ndarray, w_out: np.ndarray) -> bool:
    """Fill the weights of the point nearest to the origin of the plane through chosen points.

    Args:
        C: (4, 3) the points.
        chosen: which of them, as bits.
        K_work: (5, 6) conditions of the least square; by the last one weights add up to one.
        w_out: (4,) filled.

    Returns:
        Whether the points span a plane, or a line, and no weight is negative.
    """
    n, largest = CORNERS + 1, 0.0
    for i in range(CORNERS):
        if (chosen >> i) & 1 == 1:
            largest = max(largest, dot(C[i], C[i]))
    for i in range(n):
        of_i = i == CORNERS or (chosen >> i) & 1 == 1
        for j in range(n):
            of_j = j == CORNERS or (chosen >> j) & 1 == 1
            K_work[i, j] = 1.0 if i == j and not of_i else 0.0
            if of_i and of_j and i != j and (i == CORNERS or j == CORNERS):
                K_work[i, j] = 1.0
            elif of_i and of_j and i < CORNERS and j < CORNERS:
                K_work[i, j] = dot(C[i], C[j]) / largest
        K_work[i, n] = 1.0 if i == CORNERS else 0.0
    for k in range(n):
        best = k
        for i in range(k + 1, n):
            if abs(K_work[i, k]) > abs(K_work[best, k]):
                best = i
        if not abs(K_work[best, k]) > SINGULAR:
            return False
        for j in range(n + 1):
            x = K_work[k, j]
            K_work[k, j] = K_work[best, j]
            K_work[best, j] = x
        for i in range(n):
            if i != k:
                t = K_work[i, k] / K_work[k, k]
                for j in range(k, n + 1):
                    K_work[i, j] -= t * K_work[k, j]
    for i in range(CORNERS):
        w_out[i] = K_work[i, n] / K_work[i, i]
        if w_out[i] < 0.0:
            return False
    return True


@kernel
def nearest_of_corners(w: Search, known: int) -> int:
    """Fill the point nearest to the origin of the hull of known corners, and its weights.

    Return the corners it lies between, as bits; 0 if there is none but for rounding.
    """
    least, best = np.inf, 0
    for chosen in range(1, 1 << CORNERS):
        if chosen & known != chosen or not weights_of(w.C, chosen, w.K, w.trial):
            continue
        for e in range(3):
            w.point[e] = 0.0
            for i in range(CORNERS):
                w.point[e] += w.trial[i] * w.C[i, e]
        far = dot(w.point, w.point)
        if far < least:
            least, best = far, chosen
            for e in range(3):
                w.nearest[e] = w.point[e]
            for i in range(CORNERS):
                w.weight[i] = w.trial[i]
    return best


@kernel
def set_corner(s: Any, d: Any, a: int, b: int, x: float, y: float, z: float, move: np.ndarray,
               shift: float, w: Search, k: int) -> float:  # fmt: skip
    """Fill corner k, the farthest difference along -(x, y, z); return how far it is along that."""
    p0, p1, p2 = support_point(s, d, a, -x, -y, -z)
    q0, q1, q2 = support_point(s, d, b, x, y, z)
    w.A[k, 0], w.A[k, 1], w.A[k, 2] = p0, p1, p2
    w.B[k, 0], w.B[k, 1], w.B[k, 2] = q0, q1, q2
    for e in range(3):
        w.C[k, e] = w.A[k, e] - w.B[k, e] - shift * move[e]
    return x * w.C[k, 0] + y * w.C[k, 1] + z * w.C[k, 2]


@kernel
def find_nearest(s: Any, d: Any, a: int, b: int, move: np.ndarray, shift: float,
                 w: Search) -> bool:  # fmt: skip
    """Fill the least difference between two geoms, of which b is moved; whether they are apart.

    Args:
        s: the record of the step.
        d: data that the geoms stand in.
        a: a geom.
        b: the other.
        move: (3,) direction in which b is moved off.
        shift: by how much.
        w: work arrays; the least difference is w.nearest.
    """
    set_corner(s, d, a, b, -move[0], -move[1], -move[2], move, shift, w, 0)
    known = nearest_of_corners(w, 1)
    for _ in range(ROUNDS):
        far = dot(w.nearest, w.nearest)
        if known == 0 or known == (1 << CORNERS) - 1 or not far > NONE * shift * shift:
            return False
        k = 0
        while (known >> k) & 1 == 1:
            k += 1
        x, y, z = w.nearest[0], w.nearest[1], w.nearest[2]
        if far - set_corner(s, d, a, b, x, y, z, move, shift, w, k) <= NEAREST * far:
            break
        found = nearest_of_corners(w, known | (1 << k))
        if found == 0 or found & (1 << k) == 0 or not dot(w.nearest, w.nearest) < far:
            break
        known = found
    return True


@kernel
def apart_along(s: Any, d: Any, a: int, b: int, n: np.ndarray) -> float:
    """Return how far apart two geoms are along the direction n from a to b."""
    return -support(s, d, a, n[0], n[1], n[2]) - support(s, d, b, -n[0], -n[1], -n[2])


@kernel
def find_normal(s: Any, d: Any, a: int, b: int, n_inout: np.ndarray, point_out: np.ndarray,
                w: Search) -> float:  # fmt: skip
    """Fill a normal of two geoms, from a to b, and the middle of where they are nearest.

    Args:
        s: the record of the step.
        d: data that the geoms stand in.
        a: a geom.
        b: the other.
        n_inout: (3,) direction to begin with; the normal.
        point_out: (3,).
        w: work arrays.

    Returns:
        How far apart they are along it; -inf if none is found.
    """
    radius = floats(s.radius, 1, s.ngeom)[0]
    small = min(radius[a], radius[b])
    shift, found = OFF * small, False
    for _ in range(TURNS):
        if not find_nearest(s, d, a, b, n_inout, shift, w):
            shift *= 2.0
            if shift > FARTHEST * max(radius[a], radius[b]):
                break
            continue
        length, change, found = np.sqrt(dot(w.nearest, w.nearest)), 0.0, True
        for e in range(3):
            n = -w.nearest[e] / length
            change = max(change, abs(n - n_inout[e]))
            middle = 0.0
            for i in range(CORNERS):
                middle += 0.5 * w.weight[i] * (w.A[i, e] + w.B[i, e])
            n_inout[e], point_out[e] = n, middle
        if change <= SETTLED:
            break
        shift = max(OFF * small, -2.0 * apart_along(s, d, a, b, n_inout))
    return apart_along(s, d, a, b, n_inout) if found else -np.inf


@kernel
def correct_normal(s: Any, d: Any, c: Any) -> None:
    """Give a contact of convex geoms a normal, place and distance of our own.

    Of those that are found from its own normal and from the line between the centres, it is the one
    along which the geoms overlap least.
    """
    a, b = np.int64(c.geom[0]), np.int64(c.geom[1])
    kinds, w = integers(s.geom_type, 1, s.ngeom)[0], search_at(s.scratch + PLACE)
    if not has_support(kinds[a]) or not has_support(kinds[b]):
        return
    center, vectors = floats(d.geom_xpos, s.ngeom, 3), floats(s.scratch + PLACE + 640, 2, 3)
    n, point, best = vectors[0], vectors[1], -np.inf
    first, second, third = c.frame[0], c.frame[1], c.frame[2]
    for attempt in range(2):
        n[0], n[1], n[2] = first, second, third
        if attempt == 1:
            for e in range(3):
                n[e] = center[b, e] - center[a, e]
            length = np.sqrt(dot(n, n))
            if not length > 0.0:
                continue
            for e in range(3):
                n[e] /= length
        apart = find_normal(s, d, a, b, n, point, w)
        if apart > best:
            best, c.dist = apart, apart
            for e in range(3):
                c.frame[e], c.pos[e] = n[e], point[e]
    if best > -np.inf:
        fill_tangents(c)


@kernel
def fill_tangents(c: Any) -> None:
    """Fill the tangents of a contact, as MuJoCo does: from the y axis, or z if that is near."""
    y, z = 1.0, 0.0
    if abs(c.frame[1]) >= 0.5:
        y, z = 0.0, 1.0
    along = c.frame[1] * y + c.frame[2] * z
    t0, t1, t2 = -along * c.frame[0], y - along * c.frame[1], z - along * c.frame[2]
    length = np.sqrt(t0 * t0 + t1 * t1 + t2 * t2)
    t0, t1, t2 = t0 / length, t1 / length, t2 / length
    c.frame[3], c.frame[4], c.frame[5] = t0, t1, t2
    c.frame[6] = c.frame[1] * t2 - c.frame[2] * t1
    c.frame[7] = c.frame[2] * t0 - c.frame[0] * t2
    c.frame[8] = c.frame[0] * t1 - c.frame[1] * t0
