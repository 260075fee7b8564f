"""States that the motion before a step suggests.

Where bodies rest, roll or slide, their contacts go on doing what they did: what was closed hardly
moves along its normal in the motion before the step, and what stuck hardly moves at all. So states
are read from the problem alone, and an answer does not depend on what was solved before.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

import numpy as np

from holdfast._jit import entry, kernel
from holdfast.contact.arrays import Arrays, ContactState, LawKind, row_speed
from holdfast.linalg.vectors import square

HELD = 0.5  # part of what the free motion would change of a speed, up to which a row holds

_COULOMB, _VISCOUS = int(LawKind.COULOMB), int(LawKind.VISCOUS)
_NO_SLIP, _DRY = int(LawKind.NO_SLIP), int(LawKind.DRY)
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
    for i in range(a.law.shape[0]):
        state_out[i] = predicted_state(a, i, before)


@kernel
def predicted_state(a: Arrays, i: int, before: np.ndarray) -> int:
    """Return the state of constraint i that a motion suggests."""
    first, law = a.row[i], a.law[i]
    if law > _DRY:
        return _STICK
    speed = row_speed(a, i, 0, before)
    change = abs(speed - row_speed(a, i, 0, a.free))
    speed -= a.target[first]
    if law == _DRY:
        return _SLIDE if abs(speed) > HELD * change else _STICK
    if speed > HELD * change:
        return _OPEN
    if law != _COULOMB:
        return _STICK if law == _NO_SLIP or a.row[i + 1] == first + 1 else _SLIDE
    sliding = changes = 0.0
    for e in range(1, a.row[i + 1] - first):
        along = row_speed(a, i, e, before)
        changes += square(along - row_speed(a, i, e, a.free))
        sliding += square(along - a.target[first + e])
    return _SLIDE if np.sqrt(sliding) > HELD * (change + np.sqrt(changes)) else _STICK
