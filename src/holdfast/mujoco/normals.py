"""Normals of our own, for pairs of convex geoms whose contacts have wrong ones.

A normal of two convex geoms is a direction along which they are farther apart than along any
nearby: ``-support(a, n) - support(b, -n)`` is greatest. One geom is moved off along a direction, so
far that they are apart. Where they are nearest to each other then is the next direction, and so on
until it stays (where they do not overlap, it is the only one that does). MuJoCo finds nearest
points well, by the algorithm of Gilbert, Johnson and Keerthi, if it may look closely; it is where
geoms touch that its normals go wrong. However little they overlap, moved off they are far enough
apart for it. Where corners meet, a cone of directions stays; they separate equally well, but for as
much as the geoms overlap.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast._jit import kernel
from holdfast.linalg.vectors import dot
from holdfast.mujoco import c_api, structs
from holdfast.mujoco._mj import mujoco
from holdfast.mujoco.separation import has_support, support
from holdfast.mujoco.structs import data_at, floats, integers

NO_NATIVE = int(mujoco.mjtDisableBit.mjDSBL_NATIVECCD)  # nearest points are wrong without

OFF = 0.02  # part of a radius by which a geom is moved off at least
FARTHEST = 4.0  # the same at most
TURNS = 30  # directions
SETTLED = 1e-9  # change of a direction that has settled
ACCURATE = 1e-8  # part of a radius to which nearest points are found
ROUNDS = 35  # of the search for them, where the model allows fewer; so many are the default

NONE = 1e-6  # part of the shift, up to which two geoms are not apart

PLACE = 1024  # in the scratch of a step, behind what its other users need [bytes]


@kernel
def find_nearest(s: Any, api: Any, address: int, a: int, b: int, move: np.ndarray, shift: float,
                 segment_at: int) -> float:  # fmt: skip
    """Fill the nearest points of two geoms, of which b is moved; return how far apart they are.

    Args:
        s: the record of the step.
        api: addresses of MuJoCo's functions.
        address: of the data that the geoms stand in; they are left as they were.
        a: a geom.
        b: the other.
        move: (3,) direction in which b is moved off.
        shift: by how much.
        segment_at: address of (2, 3) numbers: a point of a, and one of b where it is moved to.
    """
    place = floats(data_at(address).geom_xpos + 24 * b, 1, 3)[0]
    x, y, z = place[0], place[1], place[2]
    for e in range(3):
        place[e] += shift * move[e]
    far = c_api.call_distance(
        api.mj_geomDistance, s.model, address, np.int32(a), np.int32(b), np.inf, segment_at
    )
    place[0], place[1], place[2] = x, y, z
    return far


@kernel
def apart_along(s: Any, d: Any, a: int, b: int, n: np.ndarray) -> float:
    """Return how far apart two geoms are along the direction n from a to b."""
    return -support(s, d, a, n[0], n[1], n[2]) - support(s, d, b, -n[0], -n[1], -n[2])


@kernel
def find_normal(s: Any, api: Any, address: int, a: int, b: int, segment_at: int,
                n_inout: np.ndarray, point_out: np.ndarray) -> float:  # fmt: skip
    """Fill a normal of two geoms, from a to b, and the middle of where they are nearest.

    Args:
        s: the record of the step.
        api: addresses of MuJoCo's functions.
        address: of the data that the geoms stand in.
        a: a geom.
        b: the other.
        segment_at: address of work for `find_nearest`.
        n_inout: (3,) direction to begin with; the normal.
        point_out: (3,).

    Returns:
        How far apart they are along it; -inf if none is found.
    """
    d, radius, segment = data_at(address), floats(s.radius, 1, s.ngeom)[0], floats(segment_at, 2, 3)
    small = min(radius[a], radius[b])
    shift, found = OFF * small, False
    for _ in range(TURNS):
        if not find_nearest(s, api, address, a, b, n_inout, shift, segment_at) > NONE * shift:
            shift *= 2.0
            if shift > FARTHEST * max(radius[a], radius[b]):
                break
            continue
        for e in range(3):
            point_out[e] = 0.5 * (segment[0, e] + segment[1, e] - shift * n_inout[e])
            segment[1, e] -= segment[0, e]
        length, change, found = np.sqrt(dot(segment[1], segment[1])), 0.0, True
        for e in range(3):
            n = segment[1, e] / length
            change, n_inout[e] = max(change, abs(n - n_inout[e])), n
        if change <= SETTLED:
            break
        shift = max(OFF * small, -2.0 * apart_along(s, d, a, b, n_inout))
    return apart_along(s, d, a, b, n_inout) if found else -np.inf


@kernel
def correct_normal(s: Any, api: Any, address: int, c: Any) -> None:
    """Give a contact of convex geoms in the data at an address a normal of our own.

    Its place and distance, too. MuJoCo looks closely meanwhile, whatever the model's options are.
    """
    kinds, radius = integers(s.geom_type, 1, s.ngeom)[0], floats(s.radius, 1, s.ngeom)[0]
    a, b, opt = np.int64(c.geom[0]), np.int64(c.geom[1]), structs.option_at(s.opt)
    if not has_support(kinds[a]) or not has_support(kinds[b]):
        return
    tolerance, rounds, disabled = opt.ccd_tolerance, opt.ccd_iterations, opt.disableflags
    opt.ccd_tolerance = ACCURATE * min(radius[a], radius[b])
    opt.ccd_iterations, opt.disableflags = max(rounds, ROUNDS), disabled & ~NO_NATIVE
    choose_normal(s, api, address, c)
    opt.ccd_tolerance, opt.ccd_iterations, opt.disableflags = tolerance, rounds, disabled


@kernel
def choose_normal(s: Any, api: Any, address: int, c: Any) -> None:
    """Fill the normal, place and distance of a contact.

    Of the normals that are found from its own and from the line between the centres, it is the one
    along which the geoms overlap least.
    """
    a, b = np.int64(c.geom[0]), np.int64(c.geom[1])
    center = floats(data_at(address).geom_xpos, s.ngeom, 3)
    vectors = floats(s.scratch + PLACE, 2, 3)
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
        apart = find_normal(s, api, address, a, b, s.scratch + PLACE + 48, n, point)
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
