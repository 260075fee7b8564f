"""The usual case tried: all that touches, or will, goes on touching and sticks."""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

import numpy as np

from holdfast._jit import inlined
from holdfast.linalg.ltl import factor, from_white, to_white
from holdfast.models._grip import SLIDING
from holdfast.mujoco._forces import add, closing, dot, size_of, whiten
from holdfast.mujoco._rest import rests
from holdfast.mujoco._scene import FREE, RANK_TOL, REPORTED, SCALE, Found, Numbers, Scene, Work
from holdfast.mujoco._steady import stay

# How a motion was found, or what is in doubt.
FOUND, NOT_SOLVED, NOT_BALANCED, NOT_SETTLED = 0, 1, 2, 3


@inlined
def list_closing(sc: Scene, nr: Numbers, ne: int, nf: int, x: np.ndarray, bound: float,
                 out: Found) -> bool:  # fmt: skip
    """Add contacts and limits that the motion x closes beyond `bound`; return if there are any."""
    added = False
    for i in range(sc.gap.shape[0]):
        if not out.contacts[i] and sc.gap[i] + nr.h * dot(sc.rows[sc.first[i]], x) <= bound:
            out.contacts[i] = True
            added = True
    for i in range(sc.limit_gap.shape[0]):
        if not out.limits[i] and sc.limit_gap[i] + nr.h * dot(sc.rows[ne + nf + i], x) <= bound:
            out.limits[i] = True
            added = True
    return added


@inlined
def prepare(sc: Scene, nr: Numbers, wk: Work, out: Found) -> bool:
    """Factor the inertia, find the free velocity and the contacts that it closes."""
    m, ne, nf = sc.v.shape[0], sc.target.shape[0], sc.loss.shape[0]
    for k in range(REPORTED):
        out.numbers[k] = 0.0
    out.numbers[RANK_TOL] = nr.rank_tol
    if not factor(sc.A[0], wk.L, wk.below):
        return False
    for j in range(m):
        out.v_free[j] = sc.f[j]
    to_white(wk.L, wk.below, out.v_free)
    before = size_of(wk, sc.v)
    add(nr.h, out.v_free, wk.x[7])  # where the whitened motion stands
    out.numbers[SCALE] = max(before, np.sqrt(dot(wk.x[7], wk.x[7])))
    from_white(wk.L, wk.below, out.v_free)
    for j in range(m):
        out.v_free[j] = sc.v[j] + nr.h * out.v_free[j]
    for i in range(sc.gap.shape[0]):
        out.contacts[i] = out.closed[i] = False
        for k in range(2, 7):
            wk.masks[k, i] = False
    for i in range(sc.limit_gap.shape[0]):
        out.limits[i] = False
    list_closing(sc, nr, ne, nf, out.v_free, nr.touch, out)
    return True


@inlined
def hold_all(sc: Scene, nr: Numbers, ne: int, wk: Work, out: Found) -> bool:
    """Hold all contacts that want to stick; return whether some might leave if they were free."""
    doubt = ne > 0
    scale = out.numbers[SCALE]
    for i in range(sc.gap.shape[0]):
        out.held[i] = out.contacts[i] and sc.sticks[i]
        wk.masks[7, i] = out.contacts[i]
        if out.held[i] and not doubt:
            away = dot(sc.rows[sc.first[i]], out.v_free) + closing(sc, nr, i, out)
            if away > 0.0:  # by more than rounding, and a detector's noise?
                doubt = away > SLIDING * scale * whiten(sc, wk, sc.first[i], wk.x[6])
    return doubt


@inlined
def hold_new(sc: Scene, wk: Work, out: Found) -> None:
    """Hold contacts that have just been listed."""
    for i in range(sc.gap.shape[0]):
        if out.contacts[i] and not wk.masks[7, i]:
            wk.masks[7, i] = True
            out.held[i] = sc.sticks[i]


@inlined
def find_usual(sc: Scene, nr: Numbers, wk: Work, out: Found) -> int:
    """Find the motion of a step and its forces, if it is a usual one; fill out.

    Returns:
        FOUND, or NOT_SETTLED: the search has to go on from what out says.
    """
    ne, nf = sc.target.shape[0], sc.loss.shape[0]
    if rests(sc, nr, wk.x[0], out):
        return FOUND
    if not prepare(sc, nr, wk, out):
        return NOT_SOLVED
    free = hold_all(sc, nr, ne, wk, out)  # first see who leaves when nothing is held
    if stay(sc, nr, ne, free, wk, out):
        if not list_closing(sc, nr, ne, nf, out.motion, -nr.touch, out):
            return FOUND
        hold_new(sc, wk, out)
    out.numbers[FREE] = 1.0 if free else 0.0
    return NOT_SETTLED
