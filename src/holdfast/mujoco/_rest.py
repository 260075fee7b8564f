"""What lies at rest goes on doing so, if the forces of the last step can hold it there.

A pile that has come to rest has contacts that carry nothing, and contacts that would leave if
nothing were held; to find out who they are takes a search. But there is nothing to find out. Forces
of a consistent answer press, rub only where they press, and keep to their bounds; if they are what
bodies at rest need now, they are an answer again, and nothing moves.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

import numpy as np

from holdfast._jit import inlined
from holdfast.mujoco._forces import add, dot, judge
from holdfast.mujoco._scene import CONSISTENT, PIVOTS, ROUNDS, SOLVES, Found, Numbers, Scene
from holdfast.mujoco._systems import length

REST = 1e-9  # speed, relative to what a step without contact would make of it
HELD = 1e-10  # momentum that forces may leave, relatively: what a certificate allows


@inlined
def may_act(sc: Scene, nr: Numbers, out: Found) -> bool:
    """Return whether all forces of the last step may act on what does not move."""
    ne, nf = sc.target.shape[0], sc.loss.shape[0]
    for i in range(ne):
        if sc.target[i] != 0.0:
            return False
    for i in range(nf):
        if abs(out.impulse[ne + i]) > sc.loss[i]:
            return False
    for i in range(sc.limit_gap.shape[0]):
        if sc.limit_gap[i] > nr.touch and out.impulse[ne + nf + i] != 0.0:
            return False
    for i in range(sc.gap.shape[0]):
        touches = sc.gap[i] <= (nr.open if out.closed[i] else nr.touch)
        for e in range(sc.dim[i]):
            may = touches and (e == 0 or sc.sticks[i])
            if out.impulse[sc.first[i] + e] != 0.0 and not may:
                return False
    return True


@inlined
def rests(sc: Scene, nr: Numbers, rest_work: np.ndarray, out: Found) -> bool:
    """Return whether bodies at rest stay there by the forces of the last step; fill out."""
    if out.numbers[CONSISTENT] == 0.0:
        return False
    A, motion = sc.A[0], 0.0
    for j in range(sc.v.shape[0]):
        rest_work[j] = nr.h * sc.f[j]
        motion += A[j, j] * sc.v[j] * sc.v[j]
    size = length(A, rest_work)
    if not np.sqrt(motion) <= REST * size or not may_act(sc, nr, out):
        return False
    for j in range(sc.v.shape[0]):
        rest_work[j] += dot(A[j], sc.v)
    for r in range(out.impulse.shape[0]):
        if out.impulse[r] != 0.0:
            add(out.impulse[r], sc.rows[r], rest_work)
    if not length(A, rest_work) <= HELD * size:
        return False
    for j in range(sc.v.shape[0]):
        out.motion[j] = 0.0
    out.numbers[PIVOTS] = out.numbers[ROUNDS] = out.numbers[SOLVES] = 0.0
    judge(sc, nr, out)
    return True
