"""Stage 4: contacts where the step ends, which the rows of its start do not show.

Rows are linear. A body that turns moves its corners along arcs, two boxes that meet at an edge have
other points in contact when the step is over, and a body that was hit meets others that were out of
its reach. So the surfaces are looked at where the motion leads:

1. move the bodies, as a trial; unless nothing may meet there (`meeting`), list the contacts: those
   that touch, and those within the margins of the step;
2. a contact that has sunk in and stands in the list of the step is given the gap that it really
   had to close; one that is new is added to the list, taken back to where its point was before, and
   so is one beside a contact that was closed, if its point was not;
3. solve again, until nothing sinks in or a bound is reached.

Where the trial motion v led to the distance d along the normal n, the row asks for

    d + h n (v+ - v) >= 0,    that is   n v+ >= -gap / h   with   gap = d - h n v

but never for surfaces that part: gap >= 0. Such rows take energy out and add none. Joint limits
that were out of reach and are exceeded are listed, too.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast._jit import kernel
from holdfast.contact.arrays import Arrays, row_speed
from holdfast.linalg.vectors import square
from holdfast.mujoco import c_api, reach, structs
from holdfast.mujoco._mj import mujoco
from holdfast.mujoco.constraints import CONTACT, NO_SLIP, Constraints, law_of, takes_part
from holdfast.mujoco.contact_rows import normal_speed
from holdfast.mujoco.meeting import DOUBTFUL, NONE, stays_within_margins, who_may_meet
from holdfast.mujoco.normals import drop_wrong, find_doubtful
from holdfast.mujoco.separation import is_checked, smaller
from holdfast.mujoco.sleep import collide_trial
from holdfast.mujoco.smooth import list_rows
from holdfast.mujoco.structs import CONTACT_SIZE, contact_at, data_at, floats

_UNLIMITED = int(mujoco.mjtDisableBit.mjDSBL_LIMIT | mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)

MORE, ADDED = 2, 256  # contacts of a step: so many times those that are found, and more
OVERLAP = 0.1  # part of the mean size: deeper than this are bodies that were placed in each other

# What a look ahead finds: nothing, gaps that are smaller than they seemed, or a longer list.
NOTHING, GAPS, LISTED = range(3)


@kernel
def moves_far(s: Any, velocity: np.ndarray) -> bool:
    """Return whether a motion is so fast that rows of its start may be wrong about its end."""
    d = data_at(s.data)
    qvel = floats(d.qvel, 1, s.nv)[0]
    fastest = change = 0.0
    for j in range(s.nv):
        fastest = max(fastest, abs(velocity[j]))
        change = max(change, abs(velocity[j] - qvel[j]))
    step = s.h * max(1.0, 1.0 / s.size)
    return square(step * fastest) > s.bend or step * change > s.size_reserve


@kernel
def closes_searched(s: Any, arrays: Arrays, cs: Constraints, velocity: np.ndarray) -> bool:
    """Return whether a motion closes a contact whose distance was found by a search.

    Such distances are not always right: the surfaces are looked at where they meet.
    """
    if s.convex == 0:
        return False
    d, touch = data_at(s.data), s.touching * s.size
    for k in range(cs.kind.shape[0]):
        if cs.kind[k] == CONTACT and cs.gap[k] > touch:
            end = cs.gap[k] + s.h * row_speed(arrays, k, 0, velocity)
            c = contact_at(d.contact + cs.source[k] * CONTACT_SIZE)
            if end <= touch and is_checked(s, c):
                return True
    return False


@kernel
def look_ahead(
    s: Any, api: Any, arrays: Arrays, cs: Constraints, velocity: np.ndarray, moved: bool
) -> int:
    """Look where a motion leads; correct gaps and list what is missing.

    Args:
        s: the record of the step.
        api: MuJoCo's functions.
        arrays: the contact problem.
        cs: its constraints.
        velocity: that was solved for.
        moved: whether the surfaces have to be looked at; limits always are.

    Returns:
        NOTHING, GAPS: targets have changed, or LISTED: constraints have to be read again.
    """
    if reach.widen_exceeded(s, velocity, _UNLIMITED, s.touching * s.size):
        list_rows(s, api)
        return LISTED
    for k in range(cs.kind.shape[0]):
        cs.sunk[k] = 0.0
    if not moved or s.ngeom == 0:
        return NOTHING
    d = data_at(s.data)
    before = known = np.int64(d.ncon)
    if before == 0 and stays_within_margins(s, velocity):
        return NOTHING
    found = NOTHING
    move_trial(s, api, s.velocity, s.h)
    meet = who_may_meet(s, api)
    if meet == NONE:
        return NOTHING
    if meet == DOUBTFUL:
        list_touching(s, api)
        if not any_deep(data_at(s.trial), -s.sunk * s.size):
            return NOTHING
        found = correct_gaps(s, api, arrays, cs, velocity, before, known)
        known = np.int64(d.ncon)
    collide_trial(s, api)
    drop_wrong(s, api, s.trial)
    found = max(found, correct_gaps(s, api, arrays, cs, velocity, before, known))
    if found == LISTED:
        list_rows(s, api)
        set_new_gaps(s, before, velocity)
    return found


@kernel
def move_trial(s: Any, api: Any, velocity: int, h: float) -> None:
    """Move the bodies as a trial, with the velocity at an address."""
    d, trial = data_at(s.data), data_at(s.trial)
    structs.copy(trial.qpos, d.qpos, 8 * s.nq)
    if s.nmocap > 0:
        structs.copy(trial.mocap_pos, d.mocap_pos, 24 * s.nmocap)
        structs.copy(trial.mocap_quat, d.mocap_quat, 32 * s.nmocap)
    c_api.call_integrate(api.mj_integratePos, s.model, trial.qpos, velocity, h)
    c_api.call(api.mj_kinematics, s.model, s.trial)


@kernel
def list_touching(s: Any, api: Any) -> None:
    """List the contacts of the trial that have sunk in, and no others.

    Within margins MuJoCo finds wrong distances and normals between meshes, capsules, cylinders
    and ellipsoids that have sunk in, and leaves out the nearest contacts of faces. Where what it
    finds without is doubtful, it is asked again with the smallest, and corrected.
    """
    reach.narrow_margins(s, 0.0)
    collide_trial(s, api)
    if find_doubtful(s, data_at(s.trial), 0) >= 0:
        reach.narrow_margins(s, s.touching * s.size)
        collide_trial(s, api)
        drop_wrong(s, api, s.trial)
    reach.widen_margins(s)


@kernel
def any_deep(trial: Any, deep: float) -> bool:
    """Return whether a contact of the trial is deeper than this distance."""
    found = False
    for i in range(trial.ncon):
        found = found or contact_at(trial.contact + i * CONTACT_SIZE).dist < deep
    return found


@kernel
def limit_contacts(s: Any) -> None:
    """Say how many contacts the step may have, with those that the look-ahead adds.

    That depends on nothing but the state, unlike the memory that earlier steps have asked for.
    """
    s.most_contacts = MORE * data_at(s.data).ncon + ADDED


@kernel
def correct_gaps(s: Any, api: Any, arrays: Arrays, cs: Constraints, velocity: np.ndarray,
                 before: int, known: int) -> int:  # fmt: skip
    """Let the list of the step know what the trial shows, if anything sinks in; see `look_ahead`.

    Contacts from `before` to `known` have been added by an earlier look at the same trial.
    """
    d, trial, deep = data_at(s.data), data_at(s.trial), -s.sunk * s.size
    if not any_deep(trial, deep):
        return NOTHING
    gaps = floats(s.gaps, 1, s.capacity)[0]
    found, full = NOTHING, False
    work = floats(s.scratch, 2, 3)
    for e in range(trial.ncon):
        at = trial.contact + e * CONTACT_SIZE
        seen = contact_at(at)
        if not pair_sinks(trial, seen, deep) or overlapped(s, arrays, cs, seen):
            continue
        taken_back(d, trial, np.int64(seen.geom[0]), seen, work[0])
        taken_back(d, trial, np.int64(seen.geom[1]), seen, work[1])
        k, likeness, among = find_listed(s, cs, seen, work)
        end = 0.0
        if k >= 0:
            end = cs.gap[k] + s.h * row_speed(arrays, k, 0, velocity)
        if likeness > s.similar_normal and cs.gap[k] > 0.0:
            gap = max(seen.dist - end + cs.gap[k], 0.0)
            if gap < gaps[cs.source[k]]:
                gaps[cs.source[k]] = gap
                found = max(found, GAPS)
        elif not full and (k < 0 or (seen.dist < deep and (
            likeness <= s.same_normal or was_apart(s, seen, work)
        ))):  # fmt: skip
            first = min(before, s.collided) if k >= 0 else before
            if not is_added(s, d, seen, work, first, known):
                full = d.ncon >= s.most_contacts or not add_contact(s, api, at, work, among)
                found = found if full else LISTED
        if likeness > s.similar_normal:
            cs.sunk[k] = max(cs.sunk[k], end - seen.dist)
    return found


@kernel
def was_apart(s: Any, seen: Any, points: np.ndarray) -> bool:
    """Return whether the surfaces were apart before where they have sunk in now.

    Then a contact beside it does not speak for it, however near: one body turns about the other.
    """
    gap = seen.dist
    for e in range(3):
        gap += seen.frame[e] * (points[1, e] - points[0, e])
    return gap > s.touching * s.size


@kernel
def pair_sinks(trial: Any, seen: Any, deep: float) -> bool:
    """Return whether a contact's pair of geoms has sunk in anywhere in the trial.

    Solved for one corner alone, a face would sink in at the next.
    """
    for i in range(trial.ncon):
        c = contact_at(trial.contact + i * CONTACT_SIZE)
        if c.dist < deep and c.geom[0] == seen.geom[0] and c.geom[1] == seen.geom[1]:
            return True
    return False


@kernel
def overlapped(s: Any, arrays: Arrays, cs: Constraints, seen: Any) -> bool:
    """Return whether a contact's pair of geoms was deep in each other before the step, or for good.

    Where surfaces overlap by much, normals turn quickly, and contacts that were added from step to
    step would squeeze the bodies. What was deep before is corrected, or left alone.
    """
    for k in range(cs.kind.shape[0]):
        same = cs.geom[k, 0] == seen.geom[0] and cs.geom[k, 1] == seen.geom[1]
        deep = cs.gap[k] < -OVERLAP * s.size or not takes_part(arrays, k)
        if same and deep and cs.kind[k] == CONTACT:
            return True
    return False


@kernel
def taken_back(d: Any, trial: Any, g: int, seen: Any, point_out: np.ndarray) -> None:
    """Fill where a point of the trial was before, as part of a geom."""
    there, here = floats(trial.geom_xmat + 72 * g, 3, 3), floats(d.geom_xmat + 72 * g, 3, 3)
    centre, old = floats(trial.geom_xpos + 24 * g, 1, 3)[0], floats(d.geom_xpos + 24 * g, 1, 3)[0]
    for e in range(3):
        point_out[e] = old[e]
    for j in range(3):
        local = 0.0
        for i in range(3):
            local += there[i, j] * (seen.pos[i] - centre[i])
        for e in range(3):
            point_out[e] += here[e, j] * local


@kernel
def is_added(s: Any, d: Any, seen: Any, points: np.ndarray, before: int, known: int) -> bool:
    """Return whether a contact of the trial is among those that were added, from `before` on."""
    radius = floats(s.radius, 1, s.ngeom)[0]
    for i in range(before, known):
        c = contact_at(d.contact + i * CONTACT_SIZE)
        if c.geom[0] != seen.geom[0] or c.geom[1] != seen.geom[1]:
            continue
        away = cosine = 0.0
        for e in range(3):
            away += square(0.5 * (points[0, e] + points[1, e]) - c.pos[e])
            cosine += seen.frame[e] * c.frame[e]
        near = s.same_place * smaller(radius[seen.geom[0]], radius[seen.geom[1]])
        if away <= near * near and cosine > s.same_normal:
            return True
    return False


@kernel
def find_listed(s: Any, cs: Constraints, seen: Any, points: np.ndarray) -> tuple[int, float, bool]:
    """Return the listed contact that is most like one of the trial; -1 if none is at this place.

    Of those with a similar normal it is the nearest, else the one with the most similar normal.
    Also the cosine between their normals, and whether the pair of geoms is listed at all.
    """
    best, likeness, among, least = -1, 0.0, False, np.inf
    radius = floats(s.radius, 1, s.ngeom)[0]
    for k in range(cs.kind.shape[0]):
        if cs.kind[k] != CONTACT or cs.geom[k, 0] != seen.geom[0] or cs.geom[k, 1] != seen.geom[1]:
            continue
        among = True
        near = s.same_place * smaller(radius[cs.geom[k, 0]], radius[cs.geom[k, 1]])
        near += max(cs.gap[k], 0.0)
        one = other = middle = 0.0  # a contact that was added stands in the middle
        for e in range(3):
            place = cs.place[k, e]
            one += square(points[0, e] - place)
            other += square(points[1, e] - place)
            middle += square(0.5 * (points[0, e] + points[1, e]) - place)
        away = np.sqrt(min(one, other, middle))
        if away <= near:
            cosine = 0.0
            for e in range(3):
                cosine += seen.frame[e] * cs.place[k, 3 + e]
            if min(cosine, likeness) > s.similar_normal:
                better = away < least
            else:
                better = best < 0 or cosine > likeness
            if better:
                best, likeness, least = k, cosine, away
    return best, likeness, among


@kernel
def add_contact(s: Any, api: Any, seen: int, points: np.ndarray, among: bool) -> bool:
    """Add the contact of the trial at an address to the list; False if the list is full.

    It stands where its point was before.

    Without a limit of friction, it has none where its pair has other contacts: a body that rolls is
    held fast where two points must not slip whose heights differ a little. Coulomb's law lets them
    slip: their forces have next to no lever. Its distance is kept for `set_new_gaps`.
    """
    d = data_at(s.data)
    before, place = np.int64(d.ncon), s.scratch + 48
    structs.copy(place, seen, CONTACT_SIZE)
    c = contact_at(place)
    for e in range(3):
        c.pos[e] = 0.5 * (points[0, e] + points[1, e])
    c.includemargin = 1.0
    c.exclude, c.efc_address = 0, -1
    if among and law_of(s, np.int64(c.geom[0]), np.int64(c.geom[1]))[0] == NO_SLIP:
        c.dim = 1
    c_api.call_pointer(api.mj_addContact, s.model, s.data, place)
    return d.ncon > before


@kernel
def set_new_gaps(s: Any, before: int, velocity: np.ndarray) -> None:
    """Give contacts that were added the gap that leads to their distance in the trial."""
    d, gaps = data_at(s.data), floats(s.gaps, 1, s.capacity)[0]
    for i in range(before, np.int64(d.ncon)):
        c = contact_at(d.contact + i * CONTACT_SIZE)
        gaps[i] = c.dist = max(c.dist - s.h * normal_speed(s, d, c, velocity), 0.0)
