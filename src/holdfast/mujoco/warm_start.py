"""Warm starts: impulses of the last step, known by the identity of each constraint.

Contacts come and go, and stand elsewhere in the list of every step: rounding alone turns the order
of the corners of two faces. A contact is known by its two geoms and by its place, a limit by its
joint and side.

Rounding also decides how many points of two faces are listed. An impulse of the last step goes to
the contact that is nearest to its place, and to no other: points that have come beside those that
carry begin with nothing, and where the impulses are still an answer, they remain as they are.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast._jit import inlined, kernel
from holdfast.contact.arrays import Answer, Arrays
from holdfast.contact.prediction import FROM_MOTION
from holdfast.linalg.vectors import square
from holdfast.mujoco import structs
from holdfast.mujoco.constraints import COLUMNS, CONTACT, OPEN, Constraints, takes_part
from holdfast.mujoco.constraints import MOST as MOST_OF_PAIR
from holdfast.mujoco.structs import CONTACT_SIZE, data_at, floats, words

MOST = 64  # contacts of the look-ahead that are kept; further ones are found anew


@inlined
def place_of(s: Any, cs: Constraints, i: int) -> tuple[float, float, float]:
    """Return where a contact is, seen from the centre of its second geom."""
    x, y, z, g = cs.place[i, 0], cs.place[i, 1], cs.place[i, 2], cs.geom[i, 1]
    if cs.kind[i] != CONTACT or g < 0:
        return x, y, z
    centre = floats(data_at(s.data).geom_xpos, s.ngeom, 3)[g]
    return x - centre[0], y - centre[1], z - centre[2]


@inlined
def distance2(s: Any, cs: Constraints, i: int, place: np.ndarray) -> float:
    """Return the square of the distance of contact i from a place."""
    x, y, z = place_of(s, cs, i)
    return square(place[0] - x) + square(place[1] - y) + square(place[2] - z)


@kernel
def nearest(s: Any, cs: Constraints, i: int, first: int) -> int:
    """Return the contact of the last step, of the same geoms, that was nearest to contact i.

    Args:
        s: the record of the step.
        cs: its constraints.
        i: the contact.
        first: where those of the same geoms begin.
    """
    key, place = words(s.memo_key, 1, s.memo_count)[0], floats(s.memo_place, s.memo_count, 3)
    x, y, z = place_of(s, cs, i)
    pair, best, least, k = cs.key[i] // MOST_OF_PAIR, first, np.inf, first
    while k < s.memo_count and key[k] // MOST_OF_PAIR == pair:
        far = square(place[k, 0] - x) + square(place[k, 1] - y) + square(place[k, 2] - z)
        if far < least:
            best, least = k, far
        k += 1
    return best


@kernel
def is_nearest(s: Any, cs: Constraints, i: int, place: np.ndarray) -> bool:
    """Return whether no other contact of the same geoms is nearer to a place than contact i.

    Of several at the same distance it is the first.
    """
    pair, own, j = cs.key[i] // MOST_OF_PAIR, distance2(s, cs, i, place), i - 1
    while j >= 0 and cs.key[j] // MOST_OF_PAIR == pair:
        if distance2(s, cs, j, place) <= own:
            return False
        j -= 1
    j = i + 1
    while j < cs.key.shape[0] and cs.key[j] // MOST_OF_PAIR == pair:
        if distance2(s, cs, j, place) < own:
            return False
        j += 1
    return True


@kernel
def recall(s: Any, arrays: Arrays, cs: Constraints, answer: Answer) -> None:
    """Fill impulses of the last step, zero for what is new; states follow from the motion."""
    count = s.memo_count
    key = words(s.memo_key, 1, count)[0]
    impulse, place = floats(s.memo_impulse, count, COLUMNS), floats(s.memo_place, count, 3)
    next_ = 0
    for i in range(cs.key.shape[0]):
        first, dim = arrays.row[i], arrays.row[i + 1] - arrays.row[i]
        for e in range(dim):
            answer.impulse[first + e] = 0.0
        if not takes_part(arrays, i):
            answer.state[i] = OPEN
            continue
        answer.state[i] = FROM_MOTION
        contact = cs.kind[i] == CONTACT
        sought = cs.key[i] // MOST_OF_PAIR * MOST_OF_PAIR if contact else cs.key[i]
        for e in range(min(count, s.memo_window)):
            k = next_ + e
            if k >= count:
                k -= count
            if key[k] == sought:
                next_ = k
                if contact:
                    k = nearest(s, cs, i, k)
                if not contact or is_nearest(s, cs, i, place[k]):
                    for r in range(dim):
                        answer.impulse[first + r] = impulse[k, r]
                break


@kernel
def remember(s: Any, arrays: Arrays, cs: Constraints, answer: Answer) -> None:
    """Keep impulses for the next step."""
    count = min(cs.key.shape[0], s.memo_size)
    key = words(s.memo_key, 1, count)[0]
    impulse, place = floats(s.memo_impulse, count, COLUMNS), floats(s.memo_place, count, 3)
    for i in range(count):
        key[i] = cs.key[i]
        place[i, 0], place[i, 1], place[i, 2] = place_of(s, cs, i)
        first, dim = arrays.row[i], arrays.row[i + 1] - arrays.row[i]
        for e in range(COLUMNS):
            impulse[i, e] = answer.impulse[first + e] if e < dim else 0.0
    s.memo_count = count


@kernel
def rests(s: Any, arrays: Arrays, i: int, velocity: np.ndarray) -> bool:
    """Return whether the trees of constraint i neither moved nor move, nor were corrected."""
    before, dq = floats(s.before + 8 * (1 + s.nq), 1, s.nv)[0], floats(s.displacement, 1, s.nv)[0]
    for p in range(arrays.panel[i], arrays.panel[i + 1]):
        t = arrays.panel_tree[p]
        for j in range(arrays.tree[t], arrays.tree[t + 1]):
            if before[j] != 0.0 or velocity[j] != 0.0 or dq[j] != 0.0:
                return False
    return True


@kernel
def kept_moves(s: Any, arrays: Arrays, cs: Constraints, answer: Answer) -> bool:
    """Return whether anything moves in a step that begins with contacts that were kept.

    Then the step is taken without them, as if nothing had been kept: the look-ahead would see
    other motions on its way, and what it adds depends on them.
    """
    kept = moves = False
    for k in range(cs.kind.shape[0]):
        kept = kept or (cs.kind[k] == CONTACT and cs.source[k] >= s.collided)
        moves = moves or not rests(s, arrays, k, answer.velocity)
    return kept and moves


@kernel
def keep_added(s: Any, arrays: Arrays, cs: Constraints, answer: Answer) -> None:
    """Keep contacts that the look-ahead has added, if they press and their bodies rest.

    The next step begins with them, see `holdfast.mujoco.persistent`.
    """
    d = data_at(s.data)
    s.kept_count = 0
    for k in range(cs.kind.shape[0]):
        added = cs.kind[k] == CONTACT and cs.source[k] >= s.collided
        pressed = added and answer.impulse[arrays.row[k]] > 0.0
        if pressed and s.kept_count < MOST and rests(s, arrays, k, answer.velocity):
            place = s.kept_contacts + s.kept_count * CONTACT_SIZE
            structs.copy(place, d.contact + cs.source[k] * CONTACT_SIZE, CONTACT_SIZE)
            s.kept_count += 1
