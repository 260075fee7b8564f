"""Which surfaces may meet where a step ends: what the look-ahead need not look at.

The bodies stand where the motion leads. No point of a geom is displaced by more than the shift of
its centre and the chord of its turn, and as seen from another geom by no more than what this is in
the other's frame. So

* two geoms that are not listed do not meet, if neither has been displaced by more than its margin
  against the drift that margins are measured against; but not all boxes within margins are listed,
  so each pair of them is looked at;
* where nothing is listed, velocities say so without a look, with a bound of what they leave out:
  with the turns of all joints before a geom in sum T, their shifts S, and L the farthest of their
  axes, constant rates accelerate its points by no more than ``T^2 L + 2 T S``;
* two that are listed do not meet, if one has been displaced as seen from the other by less than
  their distance, or by next to nothing, or if they are apart along their former normal.

Distances that MuJoCo's collision detection finds by a search are not always right: surfaces that
have sunk in may seem to be just apart. Such geoms have to be farther apart, if they move at all. Of
a few pairs for which this does not say enough MuJoCo is asked for the distance where they stand:
that of two geoms which are apart is right, and costs far less than another list of all contacts.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast._jit import kernel
from holdfast.linalg.vectors import square
from holdfast.mujoco import c_api
from holdfast.mujoco._mj import mujoco
from holdfast.mujoco.separation import (
    BOX,
    CAPSULE,
    ELLIPSOID,
    SPHERE,
    apart_along,
    has_support,
    is_checked,
    support,
)
from holdfast.mujoco.structs import (
    CONTACT_SIZE,
    contact_at,
    data_at,
    floats,
    integers,
    words,
)

# Which pairs may meet: none, some whose distances are exact, or some that a search has to find.
NONE, EXACT, DOUBTFUL = range(3)

PLANE = int(mujoco.mjtGeom.mjGEOM_PLANE)
ROUND = (SPHERE, CAPSULE)
TWICE = 2.0  # margins of a pair over those of its geoms, where these are equal
CLEARLY = 100.0  # the same for a pair whose distance has been asked for
QUESTIONS = 12  # pairs that are asked about at most: more take longer than a list of contacts


@kernel
def displaced(here: Any, there: Any, g: int, radius: float, drift: np.ndarray, h: float) -> float:
    """Return how far any point of a geom is at most from where the drift would have led it.

    Args:
        here: data of the beginning.
        there: data of the end.
        g: the geom.
        radius: of a ball about it.
        drift: a velocity.
        h: for how long.
    """
    old, new = floats(here.geom_xpos + 24 * g, 1, 3)[0], floats(there.geom_xpos + 24 * g, 1, 3)[0]
    R, S = floats(here.geom_xmat + 72 * g, 1, 9)[0], floats(there.geom_xmat + 72 * g, 1, 9)[0]
    shift = turn = 0.0
    for e in range(3):
        shift += square(new[e] - old[e] - h * drift[e])
    for e in range(9):
        turn += square(S[e] - R[e])
    return np.sqrt(shift) + radius * np.sqrt(0.5 * turn)


@kernel
def displaced_from(here: Any, there: Any, a: int, b: int, radius: float) -> float:
    """Return how far any point of geom b is displaced at most as seen from geom a."""
    old, new = floats(here.geom_xpos + 24 * a, 1, 3)[0], floats(there.geom_xpos + 24 * a, 1, 3)[0]
    x, y = floats(here.geom_xpos + 24 * b, 1, 3)[0], floats(there.geom_xpos + 24 * b, 1, 3)[0]
    R, S = floats(here.geom_xmat + 72 * a, 3, 3), floats(there.geom_xmat + 72 * a, 3, 3)
    P, Q = floats(here.geom_xmat + 72 * b, 3, 3), floats(there.geom_xmat + 72 * b, 3, 3)
    shift = turn = 0.0
    for i in range(3):
        change = 0.0
        for e in range(3):
            change += S[e, i] * (y[e] - new[e]) - R[e, i] * (x[e] - old[e])
        shift += square(change)
        for j in range(3):
            change = 0.0
            for e in range(3):
                change += S[e, i] * Q[e, j] - R[e, i] * P[e, j]
            turn += square(change)
    return np.sqrt(shift) + radius * np.sqrt(0.5 * turn)


@kernel
def any_beyond_margin(s: Any) -> bool:
    """Return whether a geom that can touch others has been displaced by more than its margin.

    The margins of geoms that do not move reach at least as far as the drift.
    """
    here, there = data_at(s.data), data_at(s.trial)
    radius, margin = floats(s.radius, 1, s.ngeom)[0], floats(s.geom_margin, 1, s.ngeom)[0]
    kinds = integers(s.geom_contype, 1, s.ngeom)[0]
    others = integers(s.geom_conaffinity, 1, s.ngeom)[0]
    drift = floats(s.drift, 1, 3)[0]
    for g in words(s.moving, 1, s.nmoving)[0]:
        if s.npair == 0 and kinds[g] == 0 and others[g] == 0:
            continue
        if not displaced(here, there, g, radius[g], drift, s.h) <= margin[g]:
            return True
    return False


@kernel
def follow_joints(s: Any, velocity: np.ndarray, twist_out: np.ndarray) -> None:
    """Fill what the joints up to each coordinate do together, (nv, 9).

    That is the motion of the body behind it as in `cvel`, the sums of turns and of shifts, and the
    distance of the farthest axis from the centre of the tree.
    """
    cdof = floats(data_at(s.data).cdof, s.nv, 6)
    parent = integers(s.dof_parentid, 1, s.nv)[0]
    for j in range(s.nv):
        i, out = np.int64(parent[j]), twist_out[j]
        for e in range(9):
            out[e] = twist_out[i, e] if i >= 0 else 0.0
        turn = lever = 0.0
        for e in range(3):
            turn += square(cdof[j, e])
            lever += square(cdof[j, 3 + e])
            out[e] += cdof[j, e] * velocity[j]
            out[3 + e] += cdof[j, 3 + e] * velocity[j]
        if turn > 0.0:
            out[6] += np.sqrt(turn) * abs(velocity[j])
            out[8] = max(out[8], np.sqrt(lever / turn))
        else:
            out[7] += np.sqrt(lever) * abs(velocity[j])


@kernel
def stays_within_margins(s: Any, velocity: np.ndarray) -> bool:
    """Return whether a motion surely displaces no geom by more than its margin.

    Bodies need not be moved for it. Nothing is known of boxes: see `any_boxes_meet`.
    """
    if s.nboxes > 0:
        return False
    d, twist, h = data_at(s.data), floats(s.twist, s.nv, 9), s.h
    follow_joints(s, velocity, twist)
    body, last = integers(s.geom_body, 1, s.ngeom)[0], words(s.last_dof, 1, s.nbody)[0]
    root, radius = integers(s.geom_root, 1, s.ngeom)[0], floats(s.radius, 1, s.ngeom)[0]
    place, centre = floats(d.geom_xpos, s.ngeom, 3), floats(d.subtree_com, s.nbody, 3)
    kinds = integers(s.geom_contype, 1, s.ngeom)[0]
    others = integers(s.geom_conaffinity, 1, s.ngeom)[0]
    drift, margin = floats(s.drift, 1, 3)[0], floats(s.geom_margin, 1, s.ngeom)[0]
    drifts = square(drift[0]) + square(drift[1]) + square(drift[2])
    for g in words(s.moving, 1, s.nmoving)[0]:
        if s.npair == 0 and kinds[g] == 0 and others[g] == 0:
            continue
        if last[body[g]] < 0:  # a mocap body, which stays where it was placed
            if not h * np.sqrt(drifts) <= margin[g]:
                return False
            continue
        w, c = twist[last[body[g]]], centre[root[g]]
        x, y, z = place[g, 0] - c[0], place[g, 1] - c[1], place[g, 2] - c[2]
        p = w[3] + w[1] * z - w[2] * y - drift[0]
        q = w[4] + w[2] * x - w[0] * z - drift[1]
        r = w[5] + w[0] * y - w[1] * x - drift[2]
        spin = np.sqrt(square(w[0]) + square(w[1]) + square(w[2]))
        turns, shifts = h * w[6], h * w[7]
        lever = np.sqrt(x * x + y * y + z * z) + radius[g] + w[8]
        lever += turns * lever + shifts  # where the step ends
        bends = 0.5 * turns * (turns * lever + 2.0 * shifts)
        if not h * (np.sqrt(p * p + q * q + r * r) + spin * radius[g]) + bends <= margin[g]:
            return False
    return True


@kernel
def distance(s: Any, api: Any, address: int, a: int, b: int, largest: float) -> float:
    """Return how far apart two convex geoms are in the data at an address, or the largest.

    One may be a plane.
    """
    if integers(s.geom_type, 1, s.ngeom)[0, a] == PLANE:
        d = data_at(address)
        R, c = floats(d.geom_xmat + 72 * a, 3, 3), floats(d.geom_xpos + 24 * a, 1, 3)[0]
        x, y, z = R[0, 2], R[1, 2], R[2, 2]
        return -support(s, d, b, -x, -y, -z) - (x * c[0] + y * c[1] + z * c[2])
    return c_api.call_distance(
        api.mj_geomDistance, s.model, address, np.int32(a), np.int32(b), largest, s.scratch
    )


@kernel
def are_apart(s: Any, api: Any, address: int, a: int, b: int) -> bool:
    """Return whether nothing of two geoms touches in the data at an address.

    That is not known of height fields. What a search finds has to be clearly more than nothing.
    """
    kinds = integers(s.geom_type, 1, s.ngeom)[0]
    if not (has_support(kinds[a]) or kinds[a] == PLANE) or not has_support(kinds[b]):
        return False
    least = (TWICE if kinds[a] == PLANE else CLEARLY) * s.touching * s.size
    return distance(s, api, address, a, b, 2.0 * least) > least


@kernel
def may_sink(s: Any, api: Any, a: int, b: int) -> bool:
    """Return whether two geoms may have sunk in where the trial stands.

    The distances of planes are exact, and those of spheres and capsules from each other or a box.
    """
    kinds = integers(s.geom_type, 1, s.ngeom)[0]
    one, other = kinds[a], kinds[b]
    exact = one == PLANE and has_support(other)
    exact = exact or (one in ROUND and (other in ROUND or other == BOX))
    if exact or (one == BOX and other in ROUND):
        return distance(s, api, s.trial, a, b, s.size) < -s.sunk * s.size
    return not are_apart(s, api, s.trial, a, b)


@kernel
def lists_nearest(one: int, other: int) -> bool:
    """Return whether of two such geoms the nearest points are listed, however wide margins are.

    Where faces or edges meet, MuJoCo lists some of the points that are within margins.
    """
    if one in (SPHERE, ELLIPSOID) or other in (SPHERE, ELLIPSOID):
        return True
    return (one == CAPSULE and other in (CAPSULE, BOX)) or (one == BOX and other == CAPSULE)


@kernel
def stays_apart(s: Any, c: Any, far: float, searched: bool) -> bool:
    """Return whether what is known of a listed contact says that its geoms have not met.

    That is their distance, if no search has found it, or that they are apart along their former
    normal.

    Args:
        s: the record of the step.
        c: the contact.
        far: how far the geoms are displaced at most as seen from each other.
        searched: whether a search has found the contact.
    """
    a, b = np.int64(c.geom[0]), np.int64(c.geom[1])
    kinds, touch = integers(s.geom_type, 1, s.ngeom)[0], s.touching * s.size
    if not searched and lists_nearest(kinds[a], kinds[b]):
        return c.dist > far
    if not has_support(kinds[a]) or not has_support(kinds[b]):
        return False
    return apart_along(s, data_at(s.trial), a, b, c.frame) > CLEARLY * touch


@kernel
def are_separated(d: Any, size: np.ndarray, a: int, b: int) -> bool:
    """Return whether two boxes are apart along an axis of one of them."""
    x, y = floats(d.geom_xpos + 24 * a, 1, 3)[0], floats(d.geom_xpos + 24 * b, 1, 3)[0]
    R, S = floats(d.geom_xmat + 72 * a, 3, 3), floats(d.geom_xmat + 72 * b, 3, 3)
    for i in range(3):
        along = across = 0.0  # of the way from one centre to the other
        reach, other = size[a, i], size[b, i]
        for e in range(3):
            along += R[e, i] * (y[e] - x[e])
            across += S[e, i] * (y[e] - x[e])
        for j in range(3):
            one = two = 0.0
            for e in range(3):
                one += R[e, i] * S[e, j]
                two += S[e, i] * R[e, j]
            reach += size[b, j] * abs(one)
            other += size[a, j] * abs(two)
        if abs(along) > reach or abs(across) > other:
            return True
    return False


@kernel
def any_boxes_meet(s: Any, api: Any, asked: int) -> bool:
    """Return whether two boxes may have sunk in where the trial stands.

    MuJoCo does not list all boxes that are within margins of each other: not where edges or faces
    are parallel.
    """
    d, touch = data_at(s.trial), s.touching * s.size
    pairs, radius = words(s.boxes, s.nboxes, 2), floats(s.radius, 1, s.ngeom)[0]
    kinds = integers(s.geom_contype, 1, s.ngeom)[0]
    others = integers(s.geom_conaffinity, 1, s.ngeom)[0]
    place, size = floats(d.geom_xpos, s.ngeom, 3), floats(s.geom_size, s.ngeom, 3)
    for k in range(s.nboxes):
        a, b, away = pairs[k, 0], pairs[k, 1], 0.0
        if s.npair == 0 and kinds[a] & others[b] == 0 and kinds[b] & others[a] == 0:
            continue
        for e in range(3):
            away += square(place[a, e] - place[b, e])
        if away > square(radius[a] + radius[b]) or are_separated(d, size, a, b):
            continue
        if displaced_between(s, a, b) <= touch:
            continue
        if asked >= QUESTIONS or not are_apart(s, api, s.trial, a, b):
            return True
        asked += 1
    return False


@kernel
def displaced_between(s: Any, a: int, b: int) -> float:
    """Return how far the points of one of two geoms are displaced at most as seen from the other.

    That is the smaller one, unless it has no end.
    """
    d, trial, radius = data_at(s.data), data_at(s.trial), floats(s.radius, 1, s.ngeom)[0]
    if radius[a] > 0.0 and (radius[a] < radius[b] or radius[b] == 0.0):
        return displaced_from(d, trial, b, a, radius[a])
    return displaced_from(d, trial, a, b, radius[b])


@kernel
def any_doubtful(s: Any) -> bool:
    """Return whether a pair that a search has found may touch, and moves at all."""
    d, near = data_at(s.data), CLEARLY * s.touching * s.size
    for i in range(d.ncon if s.convex == 1 else 0):
        c = contact_at(d.contact + i * CONTACT_SIZE)
        some = c.dist <= near and is_checked(s, c)
        if some and displaced_between(s, np.int64(c.geom[0]), np.int64(c.geom[1])) > 0.0:
            return True
    return False


@kernel
def who_may_meet(s: Any, api: Any) -> int:
    """Return which pairs may have sunk in where the trial stands: NONE, EXACT or DOUBTFUL.

    Contacts that collision detection has not found, but an earlier look, are of pairs that may.
    """
    if any_doubtful(s):
        return DOUBTFUL
    if any_beyond_margin(s):
        return DOUBTFUL if s.convex == 1 else EXACT
    d, touch = data_at(s.data), s.touching * s.size
    types = integers(s.geom_type, 1, s.ngeom)[0]
    found, asked, a, b, far, known = NONE, 0, -1, -1, 0.0, False
    for i in range(d.ncon):
        c = contact_at(d.contact + i * CONTACT_SIZE)
        if i >= s.collided or c.geom[0] < 0 or c.geom[1] < 0:
            return DOUBTFUL if s.convex == 1 else EXACT
        if c.geom[0] != a or c.geom[1] != b:
            a, b = np.int64(c.geom[0]), np.int64(c.geom[1])
            far, known = displaced_between(s, a, b), types[a] == BOX and types[b] == BOX
        searched = is_checked(s, c)
        if known or far == 0.0 or (far <= touch and not searched):
            continue
        if stays_apart(s, c, far, searched):
            known = not lists_nearest(types[a], types[b])
            continue
        known = True
        if asked < QUESTIONS:
            asked += 1
            if not may_sink(s, api, a, b):
                continue
        found = max(found, DOUBTFUL if searched else EXACT)
        if found == DOUBTFUL or s.convex == 0:
            return found
    if found == NONE and any_boxes_meet(s, api, asked):
        return EXACT
    return found
