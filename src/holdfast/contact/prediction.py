"""States that the motion before a step suggests.

Where bodies rest, roll or slide, their contacts go on doing what they did: what was closed hardly
moves along its normal in the motion before the step, and what stuck hardly moves at all. So states
are read from the problem alone, and an answer does not depend on what was solved before.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

import numpy as np

from holdfast._jit import entry, fast_kernel, kernel
from holdfast.contact.arrays import Arrays, ContactState, LawKind
from holdfast.linalg.views import vector

HELD = 0.5  # part of what the free motion would change of a motion, up to which a row holds
ROUNDING = 1e-9  # the same of the largest change of any constraint: what is less is no motion

_COULOMB, _NO_SLIP, _DRY = int(LawKind.COULOMB), int(LawKind.NO_SLIP), int(LawKind.DRY)
_OPEN, _STICK = int(ContactState.OPEN), int(ContactState.STICK)
_SLIDE = int(ContactState.SLIDE)


@entry
def predict_states(a: Arrays, before: np.ndarray, state_out: np.ndarray) -> None:
    """Fill the states of all constraints that a motion suggests.

    Args:
        a: the problem.
        before: (m,) motion before the step, or of a solve with nearly the same rows.
        state_out: filled.
    """
    least = -1.0
    for i in range(a.law.shape[0]):
        law = a.law[i]
        if law > _DRY:
            state_out[i] = _STICK
            continue
        normal, sliding, change = motion_of(a, i, before)
        held = HELD * change
        if least < 0.0 and (abs(normal) > held or sliding > held):
            least = ROUNDING * largest_change(a, before)
        held = max(held, least)
        if law == _DRY:
            state_out[i] = _SLIDE if abs(normal) > held else _STICK
        elif normal > held:
            state_out[i] = _OPEN
        elif law != _COULOMB:
            one = law == _NO_SLIP or a.row[i + 1] == a.row[i] + 1
            state_out[i] = _STICK if one else _SLIDE
        else:
            state_out[i] = _SLIDE if sliding > held else _STICK


@kernel
def largest_change(a: Arrays, before: np.ndarray) -> float:
    """Return the most that the free motion would change at any constraint."""
    largest = 0.0
    for i in range(a.law.shape[0]):
        largest = max(largest, motion_of(a, i, before)[2])
    return largest


@fast_kernel
def motion_of(a: Arrays, i: int, before: np.ndarray) -> tuple[float, float, float]:
    """Return how a motion moves constraint i: along its first row, along others, and the change.

    The change is what the free motion would change of the motions of its bodies there, whatever
    their directions: where two bodies fall together, others may press them against each other. It
    bounds the sum of the changes of all bodies, and does not depend on how tangents are turned.
    """
    first = a.row[i]
    normal = sliding = change = 0.0
    for e in range(a.row[i + 1] - first):
        speed = -a.target[first + e]
        for p in range(a.panel[i], a.panel[i + 1]):
            t = a.panel_tree[p]
            begin, size = a.tree[t], a.tree[t + 1] - a.tree[t]
            row = vector(a.values, a.panel_at[p] + e * size, size)
            x, y = vector(before, begin, size), vector(a.free, begin, size)
            now = then = 0.0
            for j in range(size):
                now += row[j] * x[j]
                then += row[j] * y[j]
            speed += now
            change += (now - then) * (now - then)
        if e == 0:
            normal = speed
        else:
            sliding += speed * speed
    change *= a.panel[i + 1] - a.panel[i]
    return normal, np.sqrt(sliding), np.sqrt(change)
