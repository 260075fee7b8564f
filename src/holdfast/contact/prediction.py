"""States that the motion before a step suggests.

Where bodies rest, roll or slide, their contacts go on doing what they did: what was closed hardly
moves along its normal in the motion before the step, and what stuck hardly moves at all. A joint
with dry friction sticks if it was at rest: many creep for long under a load that friction nearly
balances. So states are read from the problem alone, and an answer does not depend on what was
solved before.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

import numpy as np

from holdfast._jit import kernel
from holdfast.contact.arrays import ContactState
from holdfast.contact.cone import OPEN, SLIDE, STICK
from holdfast.contact.newton import Island, combine, relative_speeds
from holdfast.contact.system import DISC, HELD, System
from holdfast.linalg.vectors import dot, square
from holdfast.linalg.views import vector

HOLDS = 0.5  # part of what the free motion would change of a motion, up to which a row holds
ROUNDING = 1e-9  # the same of the largest change of any constraint: what is less is no motion

FROM_MOTION = int(ContactState.FROM_MOTION)


@kernel
def asks_motion(isl: Island, state: np.ndarray) -> bool:
    """Return whether a state of an island is to be read from the motion."""
    some = False
    for i in isl.member:
        some = some or state[i] == FROM_MOTION
    return some


@kernel
def predict_states(sy: System, isl: Island, free: np.ndarray, change_work: np.ndarray,
                   u_work: np.ndarray, state_inout: np.ndarray) -> None:  # fmt: skip
    """Fill the states that are FROM_MOTION.

    Args:
        sy, isl: the island; its motion before the step, or that of a solve with nearly the same
            rows, is in sy.before.
        free: (rows,) speeds of the free motion.
        change_work: (m,).
        u_work: (rows,).
        state_inout: filled where it asks for it.
    """
    if not asks_motion(isl, state_inout):
        return
    relative_speeds(sy, isl, sy.before, u_work)
    combine(isl, sy.before, -1.0, sy.y0, change_work)
    least = -1.0
    for i in isl.member:
        if state_inout[i] != FROM_MOTION:
            continue
        kind, first = sy.tangent[i], sy.row[i]
        if sy.normal[i] == 0 and kind != DISC:
            state_inout[i] = STICK
            continue
        if sy.normal[i] == 0:  # a joint with dry friction goes on if it moves
            moves = u_work[first] != 0.0
            if moves and least < 0.0:
                least = ROUNDING * largest_change(sy, isl, free, u_work, change_work)
            state_inout[i] = SLIDE if moves and abs(u_work[first]) > least else STICK
            continue
        normal, sliding = u_work[first], 0.0
        for k in range(first + 1, sy.row[i + 1]):
            sliding += square(u_work[k])
        sliding = np.sqrt(sliding)
        held = HOLDS * change_of(sy, i, free, u_work, change_work)
        if least < 0.0 and (abs(normal) > held or sliding > held):
            least = ROUNDING * largest_change(sy, isl, free, u_work, change_work)
        held = max(held, least)
        if normal > held:
            state_inout[i] = OPEN
        elif kind == DISC:
            state_inout[i] = SLIDE if sliding > held else STICK
        else:
            one = kind == HELD or sy.row[i + 1] == first + 1
            state_inout[i] = STICK if one else SLIDE


@kernel
def largest_change(sy: System, isl: Island, free: np.ndarray, u: np.ndarray,
                   change: np.ndarray) -> float:  # fmt: skip
    """Return the most that the free motion would change at any constraint."""
    largest = 0.0
    for i in isl.member:
        largest = max(largest, change_of(sy, i, free, u, change))
    return largest


@kernel
def change_of(sy: System, i: int, free: np.ndarray, u: np.ndarray, change: np.ndarray) -> float:
    """Return what the free motion would change of the motions of its bodies at constraint i.

    Of each body by itself: where two fall together, others may press them against each other. It
    bounds the sum of the changes of all bodies, and does not depend on how tangents are turned.
    """
    first, total = sy.row[i], 0.0
    panels = sy.panel[i + 1] - sy.panel[i]
    for k in range(first, sy.row[i + 1]):
        if panels == 1:
            total += square(u[k] - free[k])
            continue
        for p in range(sy.panel[i], sy.panel[i + 1]):
            t = sy.panel_tree[p]
            begin, size = sy.tree[t], sy.tree[t + 1] - sy.tree[t]
            row = vector(sy.G, sy.panel_at[p] + (k - first) * size, size)
            total += square(dot(row, vector(change, begin, size)))
    return np.sqrt(panels * total)
