"""Accelerated projected gradient steps: a cheap guess of the states, never an answer.

All constraints at once are given the impulses that their laws ask for, along the gradient of the
energy, with Nesterov's momentum. That converges slowly, but soon tells which contacts stick and
slide, and unlike Gauss-Seidel sweeps it does not depend on the order of the constraints.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

import numpy as np

from holdfast._jit import inlined, kernel
from holdfast.contact.newton import Island, Vectors, motion, relative_speeds
from holdfast.contact.system import DISC, HELD, LINEAR, System


@kernel
def weigh(sy: System, isl: Island, tree_work: np.ndarray, weight_out: np.ndarray) -> None:
    """Fill a bound of the stiffness that each constraint sees: squares of the rows of its trees."""
    for k in range(isl.trees):
        tree_work[isl.pattern.first[k]] = 0.0
    for i in isl.member:
        dim = sy.row[i + 1] - sy.row[i]
        for p in range(sy.panel[i], sy.panel[i + 1]):
            t = sy.panel_tree[p]
            at, total = sy.panel_at[p], 0.0
            for k in range(at, at + dim * (sy.tree[t + 1] - sy.tree[t])):
                total += sy.G[k] * sy.G[k]
            tree_work[sy.tree[t]] += total
    for i in isl.member:
        weight_out[i] = 0.0
        for p in range(sy.panel[i], sy.panel[i + 1]):
            weight_out[i] += tree_work[sy.tree[sy.panel_tree[p]]]


@inlined
def project(sy: System, i: int, w: float, u: np.ndarray, z: np.ndarray, r_out: np.ndarray) -> None:
    """Fill the impulses that the law of constraint i asks for at impulses z and speeds u."""
    first, end, kind = sy.row[i], sy.row[i + 1], sy.tangent[i]
    begin = first + sy.normal[i]
    if sy.normal[i] == 1:
        r_out[first] = max(0.0, z[first] - u[first] / w)
    size = 0.0
    for k in range(begin, end):
        if kind == LINEAR:
            r_out[k] = z[k] - (u[k] + sy.R[k] * z[k]) / (w + sy.R[k])
        elif kind in (DISC, HELD):
            r_out[k] = z[k] - u[k] / w
        else:
            r_out[k] = 0.0
        size += r_out[k] ** 2
    if kind == DISC:
        limit = sy.bound[i]
        if sy.normal[i] == 1:
            limit += sy.mu[i] * r_out[first]
        size = np.sqrt(size)
        if size > limit:
            for k in range(begin, end):
                r_out[k] *= limit / size


@kernel
def descend(sy: System, isl: Island, v: Vectors, weight_work: np.ndarray, steps: int) -> None:
    """Improve the impulses v.r of an island by so many steps."""
    weigh(sy, isl, v.d, weight_work)
    for i in isl.member:
        for k in range(sy.row[i], sy.row[i + 1]):
            v.new[k] = v.r[k]
    age = 0
    for _ in range(steps):
        motion(sy, isl, v.new, v.y)
        relative_speeds(sy, isl, v.y, v.u)
        uphill = 0.0
        for i in isl.member:
            if weight_work[i] > 0.0:
                project(sy, i, weight_work[i], v.u, v.new, v.best)
                for k in range(sy.row[i], sy.row[i + 1]):
                    uphill += (v.new[k] - v.best[k]) * (v.best[k] - v.r[k])
        age = 0 if uphill > 0.0 else age + 1
        momentum = age / (age + 3.0)
        for i in isl.member:
            if weight_work[i] > 0.0:
                for k in range(sy.row[i], sy.row[i + 1]):
                    v.new[k] = v.best[k] + momentum * (v.best[k] - v.r[k])
                    v.r[k] = v.best[k]
