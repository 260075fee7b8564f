"""Projected Gauss-Seidel sweeps: a cheap guess of the states, never an answer.

One constraint after the other is given the impulses that its law asks for while all others stay as
they are, first along the normal, then along the tangents. Sweeps converge slowly and share loads
unevenly, but soon tell which contacts stick and slide.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

import numpy as np

from holdfast._jit import inlined, kernel
from holdfast.contact.newton import Island, motion
from holdfast.contact.system import DISC, HELD, LINEAR, System, add_impulse, row_length2, speeds


@inlined
def relax(sy: System, i: int, w: float, u: np.ndarray, r_inout: np.ndarray) -> None:
    """Overwrite the tangents of constraint i in u with the change of their impulses."""
    begin, end, kind = sy.row[i] + sy.normal[i], sy.row[i + 1], sy.tangent[i]
    size = 0.0
    for k in range(begin, end):
        speed = u[k] - sy.c[k]
        before = r_inout[k]
        if kind == LINEAR:
            r_inout[k] -= (speed + sy.R[k] * before) / (w + sy.R[k])
        else:
            r_inout[k] -= speed / w
        u[k] = before
        size += r_inout[k] ** 2
    if kind == DISC:
        limit = sy.bound[i]
        if sy.normal[i] == 1:
            limit += sy.mu[i] * r_inout[sy.row[i]]
        size = np.sqrt(size)
        share = limit / size if size > limit else 1.0
        for k in range(begin, end):
            r_inout[k] *= share
    for k in range(begin, end):
        u[k] = r_inout[k] - u[k]


@kernel
def sweep(sy: System, isl: Island, r: np.ndarray, y: np.ndarray, u_work: np.ndarray,
          weight_work: np.ndarray, count: int) -> None:  # fmt: skip
    """Improve the impulses r of an island by so many sweeps; y is their motion."""
    motion(sy, isl, r, y)
    for i in isl.member:  # of tangents the longest counts, so that discs stay discs
        first, end = sy.row[i], sy.row[i + 1]
        weight_work[i] = 0.0
        for k in range(first + sy.normal[i], end):
            weight_work[i] = max(weight_work[i], row_length2(sy, i, k - first))
    for _ in range(count):
        for i in isl.member:
            first, end = sy.row[i], sy.row[i + 1]
            if sy.normal[i] == 1:
                speeds(sy, i, y, u_work)
                w = row_length2(sy, i, 0)
                change = 0.0
                if w > 0.0:
                    new = max(0.0, r[first] - (u_work[first] - sy.c[first]) / w)
                    change = new - r[first]
                    r[first] = new
                for k in range(first, end):
                    u_work[k] = 0.0
                if change != 0.0:
                    u_work[first] = change
                    add_impulse(sy, i, u_work, y)
            kind = sy.tangent[i]
            if kind in (DISC, HELD, LINEAR) and weight_work[i] > 0.0:
                speeds(sy, i, y, u_work)
                relax(sy, i, weight_work[i], u_work, r)
                if sy.normal[i] == 1:
                    u_work[first] = 0.0
                add_impulse(sy, i, u_work, y)
