"""Margins that reach as far as bodies and joints can move in one step.

A contact or limit is listed if the step may reach it. One listed too late costs a position
correction in the next step, one listed in vain costs a row that carries nothing. Margins belong to
geoms, not to pairs, so they list more than can be reached; `leave_out_unreachable` looks again.

Two geoms approach each other no faster than both move relative to anything else. So speeds are
measured against a drift that all geoms have in common: of a robot that falls or drives as a whole,
few links are within reach of each other.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast._jit import entry, kernel
from holdfast.linalg.vectors import square
from holdfast.mujoco import c_api, structs
from holdfast.mujoco.meeting import are_apart
from holdfast.mujoco.normals import drop_wrong
from holdfast.mujoco.separation import NEAR_MARGINS, smaller
from holdfast.mujoco.sleep import collide_trial
from holdfast.mujoco.structs import (
    CONTACT_SIZE,
    booleans,
    contact_at,
    data_at,
    floats,
    integers,
    words,
)

LIMIT_REACH = 1e6  # margin of limits that are all listed [m, rad]
LINE, FACE = 2, 4  # contacts that MuJoCo keeps of a convex geom and a capsule, or a face
COMMON = 0.5  # part of all speeds that may be left where geoms move together
SIDEWAYS = 1.0 / 3.0  # part of the speed along a surface that may become one towards it


@kernel
def touches(contype: np.ndarray, conaffinity: np.ndarray, listed: bool, g: int) -> bool:
    """Return whether a geom may touch any other; with pairs that are listed any may."""
    return listed or contype[g] != 0 or conaffinity[g] != 0


@kernel
def speed_of_centre(cvel: np.ndarray, geom_xpos: np.ndarray, subtree_com: np.ndarray,
                    geom_body: np.ndarray, root: np.ndarray,
                    g: int) -> tuple[float, float, float]:  # fmt: skip
    """Return the velocity of the centre of a geom."""
    b, r = geom_body[g], root[g]
    x = geom_xpos[g, 0] - subtree_com[r, 0]
    y = geom_xpos[g, 1] - subtree_com[r, 1]
    z = geom_xpos[g, 2] - subtree_com[r, 2]
    p, q, s = cvel[b, 0], cvel[b, 1], cvel[b, 2]
    return cvel[b, 3] + q * z - s * y, cvel[b, 4] + s * x - p * z, cvel[b, 5] + p * y - q * x


@kernel
def find_drift(cvel: np.ndarray, geom_xpos: np.ndarray, subtree_com: np.ndarray,
               geom_body: np.ndarray, root: np.ndarray, moving: np.ndarray, contype: np.ndarray,
               conaffinity: np.ndarray, listed: bool, drift_out: np.ndarray) -> None:  # fmt: skip
    """Fill a velocity that geoms have in common.

    It is the mean of all that may touch others, those that do not move too, if the speeds against
    that are much less in sum than those against the world; else it is zero.
    """
    p = q = r = world = 0.0
    some = 0
    for g in moving:
        if touches(contype, conaffinity, listed, g):
            u, v, w = speed_of_centre(cvel, geom_xpos, subtree_com, geom_body, root, g)
            p, q, r = p + u, q + v, r + w
            world += np.sqrt(u * u + v * v + w * w)
            some += 1
    count = 0
    for g in range(geom_body.shape[0]):
        count += touches(contype, conaffinity, listed, g)
    share = 1.0 / max(count, 1)
    p, q, r = share * p, share * q, share * r
    common = (count - some) * np.sqrt(p * p + q * q + r * r)
    for g in moving:
        if touches(contype, conaffinity, listed, g):
            u, v, w = speed_of_centre(cvel, geom_xpos, subtree_com, geom_body, root, g)
            common += np.sqrt(square(u - p) + square(v - q) + square(w - r))
    good = common < COMMON * world
    drift_out[0] = p if good else 0.0
    drift_out[1] = q if good else 0.0
    drift_out[2] = r if good else 0.0


@entry
def set_margins(
    cvel: np.ndarray,
    geom_xpos: np.ndarray,
    subtree_com: np.ndarray,
    gravity: np.ndarray,
    geom_body: np.ndarray,
    root: np.ndarray,
    moving: np.ndarray,
    radius: np.ndarray,
    contype: np.ndarray,
    conaffinity: np.ndarray,
    pair_geom1: np.ndarray,
    pair_geom2: np.ndarray,
    geom_margin_out: np.ndarray,
    geom_gap_out: np.ndarray,
    body_margin_out: np.ndarray,
    pair_margin_out: np.ndarray,
    pair_gap_out: np.ndarray,
    user_margin: np.ndarray,
    user_pair_margin: np.ndarray,
    drift_out: np.ndarray,
    h: float,
    speed_reserve: float,
    gravity_reserve: float,
    size_reserve: float,
) -> float:
    """Fill margins with how far any point of a geom can get in this step [m]; return the largest.

    They are at least those of the user's model, whose contacts are listed in any case. How far is
    measured against the drift, which is filled, see `find_drift`: where there is one, geoms that do
    not move need margins, too.

    `moving` lists the geoms that can move at all, `radius` is that of a ball about each geom, 0 for
    one without end. Reserves are those of `StepOptions`. Geoms without contype and conaffinity
    touch nothing, unless pairs are listed.
    """
    geom_gap_out[:] = 0.0
    body_margin_out[:] = 0.0
    pair_gap_out[:] = 0.0
    listed = pair_geom1.shape[0] > 0
    find_drift(cvel, geom_xpos, subtree_com, geom_body, root, moving, contype, conaffinity, listed,
               drift_out)  # fmt: skip
    drift = np.sqrt(square(drift_out[0]) + square(drift_out[1]) + square(drift_out[2]))
    still = max(speed_reserve, 1.0) * h * drift
    fall = np.sqrt(square(gravity[0]) + square(gravity[1]) + square(gravity[2]))
    fall *= gravity_reserve * h * h
    largest = 0.0
    for g in range(geom_body.shape[0]):
        margin = user_margin[g]
        if still > margin and touches(contype, conaffinity, listed, g):
            margin = still
        geom_margin_out[g] = margin
        if margin > 0.0:
            body_margin_out[geom_body[g]] = max(body_margin_out[geom_body[g]], margin)
            largest = max(largest, margin)
    if still > 0.0:  # of bodies that do not move
        for g in moving:
            body_margin_out[geom_body[g]] = 0.0
    for g in moving:
        b = geom_body[g]
        if not touches(contype, conaffinity, listed, g):
            body_margin_out[b] = max(body_margin_out[b], user_margin[g])
            continue
        u, v, w = speed_of_centre(cvel, geom_xpos, subtree_com, geom_body, root, g)
        u, v, w = u - drift_out[0], v - drift_out[1], w - drift_out[2]
        turn = np.sqrt(square(cvel[b, 0]) + square(cvel[b, 1]) + square(cvel[b, 2]))
        speed = np.sqrt(u * u + v * v + w * w) + turn * radius[g]
        reach = speed_reserve * h * speed + fall + size_reserve * radius[g]
        reach = max(reach, user_margin[g])
        geom_margin_out[g] = reach
        body_margin_out[b] = max(body_margin_out[b], reach)
        largest = max(largest, reach)
    for k in range(pair_geom1.shape[0]):
        both = geom_margin_out[pair_geom1[k]] + geom_margin_out[pair_geom2[k]]
        pair_margin_out[k] = max(both, user_pair_margin[k])
    return 2.0 * largest


@kernel
def widen_margins(s: Any) -> None:
    """Set the margins of geoms, joints and tendons of the private model.

    What is compliant begins where the user's margin does.
    """
    if s.rigid_contacts == 1:
        widen_geoms(s)
    if s.rigid_limits == 0:
        return
    d = data_at(s.data)
    tendons, ranges = floats(s.tendon_margin, 1, s.ntendon)[0], floats(s.tendon_range, s.ntendon, 2)
    for i in range(s.ntendon):
        speed = tendon_speed(s, i, floats(d.qvel, 1, s.nv)[0])
        reserve = s.size_reserve * (ranges[i, 1] - ranges[i, 0])
        tendons[i] = max(s.speed_reserve * s.h * abs(speed) + reserve, tendons[i])  # or the user's
    margin, speeds = floats(s.jnt_margin, 1, s.njnt)[0], floats(d.qvel, 1, s.nv)[0]
    joints, bounds = words(s.joints, s.njnt, 3), floats(s.jnt_range, s.njnt, 2)
    for j in range(s.njnt):
        if joints[j, 0] == 0:  # a ball joint, whose limit is an angle
            margin[j] = LIMIT_REACH
            continue
        reserve = s.size_reserve * (bounds[j, 1] - bounds[j, 0])
        reach = s.speed_reserve * s.h * abs(speeds[joints[j, 2]]) + reserve
        margin[j] = max(reach, margin[j])  # or the user's


@kernel
def widen_geoms(s: Any) -> None:
    """Set the margins of geoms and of pairs."""
    d, opt = data_at(s.data), structs.option_at(s.opt)
    opt.o_margin = set_margins(
        floats(d.cvel, s.nbody, 6), floats(d.geom_xpos, s.ngeom, 3),
        floats(d.subtree_com, s.nbody, 3), opt.gravity, integers(s.geom_body, 1, s.ngeom)[0],
        integers(s.geom_root, 1, s.ngeom)[0], words(s.moving, 1, s.nmoving)[0],
        floats(s.radius, 1, s.ngeom)[0], integers(s.geom_contype, 1, s.ngeom)[0],
        integers(s.geom_conaffinity, 1, s.ngeom)[0], integers(s.pair_geom1, 1, s.npair)[0],
        integers(s.pair_geom2, 1, s.npair)[0], floats(s.geom_margin, 1, s.ngeom)[0],
        floats(s.geom_gap, 1, s.ngeom)[0], floats(s.body_margin, 1, s.nbody)[0],
        floats(s.pair_margin, 1, s.npair)[0], floats(s.pair_gap, 1, s.npair)[0],
        floats(s.user_geom_margin, 1, s.ngeom)[0], floats(s.user_pair_margin, 1, s.npair)[0],
        floats(s.drift, 1, 3)[0], s.h, s.speed_reserve, s.gravity_reserve, s.size_reserve,
    )  # fmt: skip
    if s.nmocap > 0:
        widen_for_mocap(s)


@kernel
def narrow_margins(s: Any, least: float) -> None:
    """Set margins of rounding alone, or none: what is listed then touches or has sunk in.

    Within margins, however small, MuJoCo may say of meshes, capsules and cylinders that have sunk
    in that they are just apart. Without any, it may find normals for surfaces that just touch that
    point anywhere, see `separation`.
    """
    structs.option_at(s.opt).o_margin = 2.0 * least
    for margin in (floats(s.geom_margin, 1, s.ngeom)[0], floats(s.body_margin, 1, s.nbody)[0],
                   floats(s.pair_margin, 1, s.npair)[0]):  # fmt: skip
        for k in range(margin.shape[0]):
            margin[k] = least


@kernel
def has_left_out(s: Any, api: Any, touch: float) -> bool:
    """Return whether MuJoCo may have left out contacts of the step that touch.

    Of the contacts between a face and a convex geom it keeps the four that span most, which are
    not the nearest ones if margins are wide; of a capsule on a mesh, two that may be those of
    another face.
    """
    d = data_at(s.data)
    curved = words(s.geom_curved, 1, s.ngeom)[0]
    count, near, apart, is_apart = 0, False, False, False
    for i in range(d.ncon):
        c = contact_at(d.contact + i * CONTACT_SIZE)
        same = False
        if i > 0:
            last = contact_at(d.contact + (i - 1) * CONTACT_SIZE)
            same = last.geom[0] == c.geom[0] and last.geom[1] == c.geom[1]
        if not same:
            count, near, apart, is_apart = 0, False, False, False
        if is_apart or c.geom[0] < 0 or c.geom[1] < 0:
            continue
        one, other = curved[c.geom[0]], curved[c.geom[1]]
        if max(one, other) < FACE:
            continue
        is_line = min(one, other) == LINE
        count += 1
        near = near or is_line or c.dist < NEAR_MARGINS * touch
        apart = apart or c.dist > touch
        if count >= (LINE if is_line else FACE) and near and apart:
            if not are_apart(s, api, s.data, np.int64(c.geom[0]), np.int64(c.geom[1])):
                return True
            is_apart = True
    return False


@kernel
def add_nearest(s: Any, api: Any) -> None:
    """Add the contacts that touch and that MuJoCo has left out of the list within wide margins.

    The trial data get a list within narrow margins; what is not in the list of the step is added.
    """
    touch = s.touching * s.size
    if s.curved == 0 or not has_left_out(s, api, touch):
        return
    d, trial = data_at(s.data), data_at(s.trial)
    structs.copy(trial.qpos, d.qpos, 8 * s.nq)
    if s.nmocap > 0:
        structs.copy(trial.mocap_pos, d.mocap_pos, 24 * s.nmocap)
        structs.copy(trial.mocap_quat, d.mocap_quat, 32 * s.nmocap)
    c_api.call(api.mj_kinematics, s.model, s.trial)
    narrow_margins(s, touch)
    collide_trial(s, api)
    drop_wrong(s, api, s.trial)
    widen_margins(s)
    known, place = np.int64(d.ncon), s.scratch + 48
    for e in range(trial.ncon):
        at = trial.contact + e * CONTACT_SIZE
        seen, found = contact_at(at), False
        for i in range(known):
            c = contact_at(d.contact + i * CONTACT_SIZE)
            if c.geom[0] == seen.geom[0] and c.geom[1] == seen.geom[1]:
                away = 0.0
                for k in range(3):
                    away = max(away, abs(c.pos[k] - seen.pos[k]))
                found = found or away <= touch
        if not found:
            structs.copy(place, at, CONTACT_SIZE)
            added = contact_at(place)
            added.includemargin, added.exclude, added.efc_address = 1.0, 0, -1
            c_api.call_pointer(api.mj_addContact, s.model, s.data, place)


@kernel
def pair_margin(s: Any, a: int, b: int) -> float:
    """Return the margin that the user's model gives to the contacts of two geoms."""
    one, other = integers(s.pair_geom1, 1, s.npair)[0], integers(s.pair_geom2, 1, s.npair)[0]
    for k in range(s.npair):
        if (one[k] == a and other[k] == b) or (one[k] == b and other[k] == a):
            return floats(s.user_pair_margin, 1, s.npair)[0, k]
    margin = floats(s.user_geom_margin, 1, s.ngeom)[0]
    return (margin[a] if a >= 0 else 0.0) + (margin[b] if b >= 0 else 0.0)


@kernel
def add_speed_of_point(s: Any, d: Any, g: int, c: Any, sign: float, v_inout: np.ndarray) -> None:
    """Add to v_inout the velocity, times a sign, of the point of geom g where a contact is."""
    w = floats(d.cvel, s.nbody, 6)[integers(s.geom_body, 1, s.ngeom)[0, g]]
    centre = floats(d.subtree_com, s.nbody, 3)[integers(s.geom_root, 1, s.ngeom)[0, g]]
    x, y, z = c.pos[0] - centre[0], c.pos[1] - centre[1], c.pos[2] - centre[2]
    v_inout[0] += sign * (w[3] + w[1] * z - w[2] * y)
    v_inout[1] += sign * (w[4] + w[2] * x - w[0] * z)
    v_inout[2] += sign * (w[5] + w[0] * y - w[1] * x)


@kernel
def relative_spin(s: Any, d: Any, a: int, b: int) -> float:
    """Return how fast two geoms turn relative to each other [rad/s]."""
    body, cvel = integers(s.geom_body, 1, s.ngeom)[0], floats(d.cvel, s.nbody, 6)
    total = 0.0
    for e in range(3):
        total += square(cvel[body[b], e] - cvel[body[a], e])
    return np.sqrt(total)


@kernel
def can_meet(s: Any, d: Any, c: Any, fall: float) -> bool:
    """Return whether the surfaces of a contact may meet in this step."""
    a, b = np.int64(c.geom[0]), np.int64(c.geom[1])
    mocap = words(s.geom_mocap, 1, s.ngeom)[0]
    if c.dist <= 0.0 or a < 0 or b < 0 or mocap[a] >= 0 or mocap[b] >= 0:
        return True
    v = floats(s.scratch, 1, 3)[0]
    v[0] = v[1] = v[2] = 0.0
    add_speed_of_point(s, d, b, c, 1.0, v)
    add_speed_of_point(s, d, a, c, -1.0, v)
    closing = -(c.frame[0] * v[0] + c.frame[1] * v[1] + c.frame[2] * v[2])
    speed = np.sqrt(square(v[0]) + square(v[1]) + square(v[2]))
    reach = s.speed_reserve * s.h * max(closing, SIDEWAYS * speed)
    body, tree = integers(s.geom_body, 1, s.ngeom)[0], integers(s.body_treeid, 1, s.nbody)[0]
    radius = floats(s.radius, 1, s.ngeom)[0]
    for k in (a, b):
        if tree[body[k]] >= 0:  # it moves
            reach += fall + s.size_reserve * radius[k]
    small = smaller(radius[a], radius[b])
    if small < np.inf:  # other points come round
        reach += s.speed_reserve * s.h * relative_spin(s, d, a, b) * small
    return c.dist <= reach or c.dist <= pair_margin(s, a, b)


@kernel
def leave_out_unreachable(s: Any) -> None:
    """Exclude the contacts of pairs whose surfaces do not approach each other fast enough to meet.

    Margins know the speed of each geom, whatever its direction: the limbs of a robot that moves as
    a whole have many contacts within their margins. How fast the two surfaces of a contact approach
    each other says more. A pair keeps all its contacts or none: a body that turns about one corner
    comes down on the next. Contacts within the user's margins stay, and those of mocap bodies.
    """
    d, g = data_at(s.data), structs.option_at(s.opt).gravity
    fall = s.gravity_reserve * s.h * s.h * np.sqrt(square(g[0]) + square(g[1]) + square(g[2]))
    begin, count = 0, np.int64(d.ncon)
    while begin < count:
        first = contact_at(d.contact + begin * CONTACT_SIZE)
        end, some = begin, False
        while end < count:
            c = contact_at(d.contact + end * CONTACT_SIZE)
            if c.geom[0] != first.geom[0] or c.geom[1] != first.geom[1]:
                break
            some = some or can_meet(s, d, c, fall)
            end += 1
        if not some:
            margin = pair_margin(s, first.geom[0], first.geom[1])
            for i in range(begin, end):
                c = contact_at(d.contact + i * CONTACT_SIZE)
                if c.exclude == 0:
                    c.includemargin, c.exclude, c.efc_address = margin, 1, -1
        begin = end


@kernel
def widen_for_mocap(s: Any) -> None:
    """Add the way that mocap bodies will go if they go on as they came."""
    d, opt = data_at(s.data), structs.option_at(s.opt)
    velocity = floats(s.mocap_velocity, s.nmocap, 6)
    of_geom, body = words(s.geom_mocap, 1, s.ngeom)[0], words(s.mocap_body, 1, s.nmocap)[0]
    bodies = integers(s.geom_body, 1, s.ngeom)[0]
    margin, of_body = floats(s.geom_margin, 1, s.ngeom)[0], floats(s.body_margin, 1, s.nbody)[0]
    pos, xpos = floats(d.geom_xpos, s.ngeom, 3), floats(d.xpos, s.nbody, 3)
    radius = floats(s.radius, 1, s.ngeom)[0]
    largest = 0.0
    for g in range(s.ngeom):
        k = of_geom[g]
        if k < 0:
            continue
        v = velocity[k]
        arm = radius[g]
        for e in range(3):
            arm += abs(pos[g, e] - xpos[body[k], e])
        speed = np.sqrt(square(v[0]) + square(v[1]) + square(v[2]))
        speed += arm * np.sqrt(square(v[3]) + square(v[4]) + square(v[5]))
        margin[g] += s.speed_reserve * s.h * speed
        of_body[bodies[g]] = max(of_body[bodies[g]], margin[g])
        largest = max(largest, margin[g])
    opt.o_margin = max(opt.o_margin, 2.0 * largest)
    pairs, one, other = (
        floats(s.pair_margin, 1, s.npair)[0], integers(s.pair_geom1, 1, s.npair)[0],
        integers(s.pair_geom2, 1, s.npair)[0],
    )  # fmt: skip
    for k in range(s.npair):
        pairs[k] = max(pairs[k], margin[one[k]] + margin[other[k]])


@kernel
def tendon_speed(s: Any, i: int, velocity: np.ndarray) -> float:
    """Return the rate of a tendon's length."""
    d = data_at(s.data)
    begin = np.int64(integers(s.ten_J_rowadr, 1, s.ntendon)[0, i])
    count = np.int64(integers(s.ten_J_rownnz, 1, s.ntendon)[0, i])
    column, value = (
        integers(s.ten_J_colind + 4 * begin, 1, count)[0],
        floats(d.ten_J + 8 * begin, 1, count)[0],
    )
    speed = 0.0
    for p in range(count):
        speed += value[p] * velocity[column[p]]
    return speed


@kernel
def leaves(now: float, after: float, low: float, high: float, margin: float, touch: float) -> bool:
    """Return whether a motion leads beyond a limit that was not listed."""
    below = after < low - touch and now - low > margin
    return below or (after > high + touch and high - now > margin)


@kernel
def widen_exceeded(s: Any, velocity: np.ndarray, unlimited: int, touch: float) -> bool:
    """Widen the margins of limits that a motion exceeds and that were not listed; whether any."""
    if s.disabled & unlimited or s.rigid_limits == 0:
        return False
    d, found = data_at(s.data), False
    joints, limited = words(s.joints, s.njnt, 3), booleans(s.jnt_limited, 1, s.njnt)[0]
    bounds, qpos = floats(s.jnt_range, s.njnt, 2), floats(d.qpos, 1, s.nq)[0]
    margin = floats(s.jnt_margin, 1, s.njnt)[0]
    for j in range(s.njnt):
        if limited[j] and joints[j, 0] == 1:
            q = qpos[joints[j, 1]]
            after = q + s.h * velocity[joints[j, 2]]
            if leaves(q, after, bounds[j, 0], bounds[j, 1], margin[j], touch):
                margin[j] = LIMIT_REACH
                found = True
    limited, bounds = (
        booleans(s.tendon_limited, 1, s.ntendon)[0],
        floats(s.tendon_range, s.ntendon, 2),
    )
    margin, length = floats(s.tendon_margin, 1, s.ntendon)[0], floats(d.ten_length, 1, s.ntendon)[0]
    for i in range(s.ntendon):
        if limited[i]:
            after = length[i] + s.h * tendon_speed(s, i, velocity)
            if leaves(length[i], after, bounds[i, 0], bounds[i, 1], margin[i], touch):
                margin[i] = LIMIT_REACH
                found = True
    return found
