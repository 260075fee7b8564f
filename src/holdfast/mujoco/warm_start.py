"""Warm starts: impulses of the last step, known by the identity of each constraint.

Contacts come and go, and stand elsewhere in the list of every step. A contact is known by its two
geoms and its order among those between them, a limit by its joint and side.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast._jit import kernel
from holdfast.contact.arrays import Answer, Arrays
from holdfast.mujoco import structs
from holdfast.mujoco.constraints import COLUMNS, CONTACT, Constraints
from holdfast.mujoco.structs import CONTACT_SIZE, data_at, floats, words

UNKNOWN = -1
MOST = 64  # contacts of the look-ahead that are kept; further ones are found anew


@kernel
def recall(s: Any, arrays: Arrays, cs: Constraints, answer: Answer) -> None:
    """Fill impulses and states of the last step; zero and UNKNOWN for what is new."""
    count = s.memo_count
    key, state = words(s.memo_key, 1, count)[0], words(s.memo_state, 1, count)[0]
    impulse = floats(s.memo_impulse, count, COLUMNS)
    next_ = 0
    for i in range(cs.key.shape[0]):
        answer.state[i] = UNKNOWN
        first, dim = arrays.row[i], arrays.row[i + 1] - arrays.row[i]
        for e in range(dim):
            answer.impulse[first + e] = 0.0
        for e in range(min(count, s.memo_window)):
            k = next_ + e
            if k >= count:
                k -= count
            if key[k] == cs.key[i]:
                answer.state[i] = state[k]
                for r in range(dim):
                    answer.impulse[first + r] = impulse[k, r]
                next_ = k + 1 if k + 1 < count else 0
                break


@kernel
def remember(s: Any, arrays: Arrays, cs: Constraints, answer: Answer) -> None:
    """Keep impulses and states for the next step."""
    count = min(cs.key.shape[0], s.memo_size)
    key, state = words(s.memo_key, 1, count)[0], words(s.memo_state, 1, count)[0]
    impulse = floats(s.memo_impulse, count, COLUMNS)
    for i in range(count):
        key[i], state[i] = cs.key[i], answer.state[i]
        first, dim = arrays.row[i], arrays.row[i + 1] - arrays.row[i]
        for e in range(COLUMNS):
            impulse[i, e] = answer.impulse[first + e] if e < dim else 0.0
    s.memo_count = count


@kernel
def rests(s: Any, arrays: Arrays, i: int, velocity: np.ndarray) -> bool:
    """Return whether the trees of constraint i hardly move in the step."""
    fastest = 0.0
    for p in range(arrays.panel[i], arrays.panel[i + 1]):
        t = arrays.panel_tree[p]
        for j in range(arrays.tree[t], arrays.tree[t + 1]):
            fastest = max(fastest, abs(velocity[j]))
    return s.h * fastest <= s.touching * min(1.0, s.size)


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
