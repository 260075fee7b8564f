"""Contacts without slip that need more friction than the model declares."""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast._jit import kernel
from holdfast.contact.arrays import Answer, Arrays
from holdfast.linalg.vectors import square
from holdfast.mujoco.constraints import NO_SLIP, Constraints
from holdfast.mujoco.structs import integers, words


@kernel
def sliding_friction(arrays: Arrays, answer: Answer, i: int) -> float:
    """Return the size of the friction impulse of contact i."""
    r = arrays.row[i]
    if arrays.row[i + 1] - r < 3:
        return 0.0
    return np.sqrt(square(answer.impulse[r + 1]) + square(answer.impulse[r + 2]))


@kernel
def lacks_friction(s: Any, arrays: Arrays, cs: Constraints, answer: Answer) -> bool:
    """Return whether a pair of bodies, of which nobody was warned, needs more than is declared.

    Forces of single contacts are not unique where contacts are redundant; those of all contacts of
    a pair of bodies, added up, are what counts.
    """
    largest = 0.0
    for i in range(cs.kind.shape[0]):
        if arrays.law[i] == NO_SLIP:
            largest = max(largest, answer.impulse[arrays.row[i]])
    if largest == 0.0:
        return False
    body, warned = integers(s.geom_body, 1, s.ngeom)[0], words(s.warned, s.nwarned, 2)
    for i in range(cs.kind.shape[0]):
        if arrays.law[i] != NO_SLIP:
            continue
        friction = sliding_friction(arrays, answer, i)
        enough = answer.impulse[arrays.row[i]] * cs.mu[i] * (1.0 + s.friction_excess)
        if friction <= max(enough, s.no_force * largest):
            continue
        a, b = np.int64(body[cs.geom[i, 0]]), np.int64(body[cs.geom[i, 1]])
        known = False
        for k in range(s.nwarned):
            known = known or (warned[k, 0] == min(a, b) and warned[k, 1] == max(a, b))
        if not known and pair_lacks(s, arrays, cs, answer, a, b):
            return True
    return False


@kernel
def pair_lacks(s: Any, arrays: Arrays, cs: Constraints, answer: Answer, a: int, b: int) -> bool:
    """Return whether the contacts of two bodies, together, need more than is declared."""
    body = integers(s.geom_body, 1, s.ngeom)[0]
    press = x = y = z = 0.0
    declared = np.inf
    for i in range(cs.kind.shape[0]):
        if arrays.law[i] != NO_SLIP:
            continue
        p, q = body[cs.geom[i, 0]], body[cs.geom[i, 1]]
        turned = p == b and q == a
        if not (turned or (p == a and q == b)):
            continue
        r, place = arrays.row[i], cs.place[i]
        declared = min(declared, cs.mu[i])
        press += answer.impulse[r]
        if arrays.row[i + 1] - r >= 3:
            f, g = answer.impulse[r + 1], answer.impulse[r + 2]
            sign = -1.0 if turned else 1.0
            x += sign * (f * place[6] + g * place[9])
            y += sign * (f * place[7] + g * place[10])
            z += sign * (f * place[8] + g * place[11])
    return np.sqrt(x * x + y * y + z * z) > declared * (1.0 + s.friction_excess) * press
