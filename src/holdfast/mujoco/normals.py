"""Contacts of our own, for pairs of geoms whose contacts are doubtful; see `separation`.

A normal of two convex geoms is a direction along which they are farther apart than along any
nearby: ``-support(a, n) - support(b, -n)`` is greatest. One geom is moved off along a direction, so
far that they are apart. Where they are nearest to each other then is the next direction, and so on
until it stays (where they do not overlap, it is the only one that does). MuJoCo finds nearest
points well, by the algorithm of Gilbert, Johnson and Keerthi, if it may look closely; it is where
geoms touch that its normals go wrong. However little they overlap, moved off they are far enough
apart for it. Where corners meet, a cone of directions stays; they separate equally well, but for as
much as the geoms overlap. A convex geom on a height field is moved off in the same way; there it is
the nearest of several normals that stays.

Such a contact is added to those of its pair, if these are less deep. Contacts are left out whose
normals separate the geoms by less, or cannot be those of a height field.
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
from holdfast.mujoco.separation import (
    HFIELD,
    apart_along,
    are_doubtful,
    is_checked,
    is_near,
    is_steep,
    reaches_through,
    smaller,
)
from holdfast.mujoco.structs import CONTACT_SIZE, contact_at, data_at, floats, integers

NO_NATIVE = int(mujoco.mjtDisableBit.mjDSBL_NATIVECCD)  # nearest points are wrong without

OFF = 0.02  # part of a radius by which a geom is moved off at least
FARTHEST = 4.0  # the same at most
TURNS = 30  # directions
SETTLED = 1e-9  # change of a direction that has settled
ACCURATE = 1e-8  # part of a radius to which nearest points are found
ROUNDS = 35  # of the search for them, where the model allows fewer; so many are the default

NOT_APART = 1e-6  # part of the shift, up to which two geoms are not apart
WITHIN = 3.0  # times the shift: no farther are nearest points of a height field looked for
STAYS = 1e-3  # change of a direction on a height field up to which it counts as settled
AS_GOOD = 1e-3  # part of a radius by which a normal may separate two geoms by less than the best

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
    x, y, z, most = place[0], place[1], place[2], np.inf
    if integers(s.geom_type, 1, s.ngeom)[0, a] == HFIELD:
        most = WITHIN * shift
    for e in range(3):
        place[e] += shift * move[e]
    far = c_api.call_distance(
        api.mj_geomDistance, s.model, address, np.int32(a), np.int32(b), most, segment_at
    )
    place[0], place[1], place[2] = x, y, z
    return far if far < most else -1.0


@kernel
def find_normal(s: Any, api: Any, address: int, a: int, b: int, deep: float, segment_at: int,
                n_inout: np.ndarray, point_out: np.ndarray) -> float:  # fmt: skip
    """Fill a normal of two geoms, from a to b, and the middle of where they are nearest.

    Args:
        s: the record of the step.
        api: addresses of MuJoCo's functions.
        address: of the data that the geoms stand in.
        a: a geom.
        b: the other.
        deep: how far in or off each other they may be.
        segment_at: address of work for `find_nearest`.
        n_inout: (3,) direction to begin with; the normal.
        point_out: (3,).

    Returns:
        How far apart they are along it; -inf if none is found.
    """
    d, radius, segment = data_at(address), floats(s.radius, 1, s.ngeom)[0], floats(segment_at, 2, 3)
    field = integers(s.geom_type, 1, s.ngeom)[0, a] == HFIELD
    small, large = min(radius[a], radius[b]), max(radius[a], radius[b])
    if field:
        small = large = radius[b]
    shift, change, apart = max(OFF * small, 2.0 * deep), np.inf, -np.inf
    for _ in range(TURNS):
        far = find_nearest(s, api, address, a, b, n_inout, shift, segment_at)
        if not far > NOT_APART * shift:
            shift *= 2.0
            if shift > FARTHEST * large:
                break
            continue
        for e in range(3):
            point_out[e] = 0.5 * (segment[0, e] + segment[1, e] - shift * n_inout[e])
            segment[1, e] -= segment[0, e]
        length, change = np.sqrt(dot(segment[1], segment[1])), 0.0
        for e in range(3):
            n = segment[1, e] / length
            change, n_inout[e] = max(change, abs(n - n_inout[e])), n
        apart = far - shift if field else apart_along(s, d, a, b, n_inout)
        if change <= SETTLED:
            break
        shift = max(OFF * small, -2.0 * apart)
    return apart if change <= STAYS or not field else -np.inf


@kernel
def correct_normal(s: Any, api: Any, address: int, c: Any) -> bool:
    """Give a contact in the data at an address a normal of our own; return whether there is one.

    Its place and distance, too. MuJoCo looks closely meanwhile, whatever the model's options are.
    """
    radius, opt = floats(s.radius, 1, s.ngeom)[0], structs.option_at(s.opt)
    small = smaller(radius[c.geom[0]], radius[c.geom[1]])
    tolerance, rounds, disabled = opt.ccd_tolerance, opt.ccd_iterations, opt.disableflags
    opt.ccd_tolerance = ACCURATE * small
    opt.ccd_iterations, opt.disableflags = max(rounds, ROUNDS), disabled & ~NO_NATIVE
    found = choose_normal(s, api, address, c)
    opt.ccd_tolerance, opt.ccd_iterations, opt.disableflags = tolerance, rounds, disabled
    return found


@kernel
def choose_normal(s: Any, api: Any, address: int, c: Any) -> bool:
    """Fill the normal, place and distance of a contact; return whether there is one.

    Of the normals that are found from its own and from the line between the centres, or from
    straight up on a height field, it is the one along which the geoms overlap least.
    """
    a, b, d = np.int64(c.geom[0]), np.int64(c.geom[1]), data_at(address)
    center, axes = floats(d.geom_xpos, s.ngeom, 3), floats(d.geom_xmat + 72 * a, 3, 3)
    field = integers(s.geom_type, 1, s.ngeom)[0, a] == HFIELD
    vectors = floats(s.scratch + PLACE, 2, 3)
    n, point, best = vectors[0], vectors[1], -np.inf
    first, second, third, deep = c.frame[0], c.frame[1], c.frame[2], abs(c.dist)
    for attempt in range(2):
        n[0], n[1], n[2] = first, second, third
        if attempt == 1:
            for e in range(3):
                n[e] = axes[e, 2] if field else center[b, e] - center[a, e]
            length = np.sqrt(dot(n, n))
            if not length > 0.0:
                continue
            for e in range(3):
                n[e] /= length
        apart = find_normal(s, api, address, a, b, deep, s.scratch + PLACE + 48, n, point)
        if apart > best:
            best, c.dist = apart, apart
            for e in range(3):
                c.frame[e], c.pos[e] = n[e], point[e]
    if best > -np.inf:
        fill_tangents(c)
    return best > -np.inf


@kernel
def is_wrong(s: Any, d: Any, c: Any, apart: float) -> bool:
    """Return whether a contact cannot be one of its geoms.

    Args:
        s: the record of the step.
        d: data that the contact stands in.
        c: the contact.
        apart: how far apart its geoms are along the best normal; -inf if there is none.
    """
    radius, a, b = floats(s.radius, 1, s.ngeom)[0], np.int64(c.geom[0]), np.int64(c.geom[1])
    if integers(s.geom_type, 1, s.ngeom)[0, a] == HFIELD:
        return is_steep(s, d, c) or reaches_through(s, d, c) > s.wrong_normal * radius[b]
    less = AS_GOOD * min(radius[a], radius[b])
    return apart_along(s, d, a, b, c.frame) < apart - less


@kernel
def end_of_pair(d: Any, begin: int) -> int:
    """Return where the contacts end that have the same geoms as the one at `begin`."""
    first, end = contact_at(d.contact + begin * CONTACT_SIZE), begin + 1
    while end < d.ncon:
        c = contact_at(d.contact + end * CONTACT_SIZE)
        if c.geom[0] != first.geom[0] or c.geom[1] != first.geom[1]:
            break
        end += 1
    return end


@kernel
def find_doubtful(s: Any, d: Any, begin: int) -> int:
    """Return where the contacts of the first doubtful pair stand, from `begin` on; -1 if none is.

    Contacts of a pair stand together.
    """
    while s.convex == 1 and begin < d.ncon:
        end = end_of_pair(d, begin)
        first = contact_at(d.contact + begin * CONTACT_SIZE)
        if is_checked(s, first) and are_doubtful(s, d, begin, end):
            return begin
        begin = end
    return -1


@kernel
def correct_doubtful(s: Any, api: Any, address: int) -> bool:
    """Correct the contacts of doubtful pairs in the data at an address; return whether any are.

    What cannot be a contact is excluded.
    """
    d, count = data_at(address), np.int64(data_at(address).ncon)
    begin = find_doubtful(s, d, 0)
    some = begin >= 0
    while 0 <= begin < count:  # what is added stands behind
        end = end_of_pair(d, begin)
        correct_pair(s, api, address, begin, min(end, count))
        begin = find_doubtful(s, d, end)
    return some


@kernel
def correct_pair(s: Any, api: Any, address: int, begin: int, end: int) -> None:
    """Correct the contacts of a pair, which stand from `begin` to `end` in the data."""
    d, place, least = data_at(address), s.scratch + 48, np.inf
    for i in range(begin, end):  # begin with the deepest that may be right, if there is one
        c = contact_at(d.contact + i * CONTACT_SIZE)
        if is_near(s, c) and (least == np.inf or (c.dist < least and not is_steep(s, d, c))):
            structs.copy(place, d.contact + i * CONTACT_SIZE, CONTACT_SIZE)
            least = np.inf if is_steep(s, d, c) else c.dist
    own = contact_at(place)
    found = correct_normal(s, api, address, own) and not is_steep(s, d, own)
    deepest = np.inf
    for i in range(begin, end):
        c = contact_at(d.contact + i * CONTACT_SIZE)
        if not is_near(s, c):
            continue
        if is_wrong(s, d, c, own.dist if found else -np.inf):
            c.includemargin, c.exclude, c.efc_address = 0.0, 1, -1
        else:
            deepest = min(deepest, c.dist)
    if found and own.dist < deepest - s.sunk * s.size:
        own.includemargin, own.exclude, own.efc_address = 1.0, 0, -1
        c_api.call_pointer(api.mj_addContact, s.model, address, place)


@kernel
def drop_wrong(s: Any, api: Any, address: int) -> bool:
    """Correct a list that no rows are made of: what is excluded is taken from it."""
    d, kept = data_at(address), 0
    some = correct_doubtful(s, api, address)
    for i in range(d.ncon if some else 0):
        at = d.contact + i * CONTACT_SIZE
        if contact_at(at).exclude == 0:
            structs.copy(d.contact + kept * CONTACT_SIZE, at, CONTACT_SIZE)
            kept += 1
    d.ncon = kept if some else d.ncon
    return some


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
