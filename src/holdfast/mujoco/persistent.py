"""Contacts that only the end of a step has shown, listed again while bodies rest.

Where edges or faces are nearly parallel, MuJoCo lists some points where two bodies touch and
not others; the look-ahead finds those when the bodies begin to sink in, and the step is solved
again. A pile at rest would go through this in every step. So a contact that was added, is pressed
and whose bodies do not move at all, is in the list of the next step from the beginning. If they
move in that step, it is taken without: what a step does depends on the state alone.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

from typing import Any

from holdfast._jit import kernel
from holdfast.mujoco import c_api
from holdfast.mujoco.sleep import pair_sleeps
from holdfast.mujoco.structs import CONTACT_SIZE, contact_at, data_at, floats


@kernel
def is_given(s: Any) -> bool:
    """Return whether the position at the start was not left there by the last step."""
    before, left = floats(s.before, 1, s.nstate)[0], floats(s.left, 1, s.nq)[0]
    given = False
    for k in range(s.nq):
        given = given or before[1 + k] != left[k]
    return given


@kernel
def add_kept(s: Any, api: Any) -> None:
    """List the contacts that were kept, if the state is what the last step left."""
    d = data_at(s.data)
    s.collided = d.ncon
    if s.kept_count == 0 or is_given(s):
        return
    for k in range(s.kept_count):
        place = s.kept_contacts + k * CONTACT_SIZE
        c = contact_at(place)
        if pair_sleeps(s, c):
            continue
        c.dist, c.includemargin = 0.0, 1.0
        c.exclude, c.efc_address = 0, -1
        c_api.call_pointer(api.mj_addContact, s.model, s.data, place)
