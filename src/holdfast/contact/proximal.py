r"""Proximal semismooth Newton method for an island, in the change of its motion.

Given impulses :math:`r^k` with motion :math:`y^k`, speeds :math:`u^k` and a compliance
:math:`\rho`, one proximal step solves

.. math:: R(d) = d - \sum_i G_i^T (r_i(d) - r_i^k) = 0, \qquad u = u^k + G d

for the change d of the motion, with the laws of `holdfast.contact.cone`. Its matrix is
:math:`I + \sum G^T C G`, however many constraints there are. Where :math:`r(0) = r^k` the impulses
obey their laws exactly, whatever :math:`\rho`, and because the unknown is the change of the motion
rounding is relative to that change: a small compliance costs no accuracy.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

import numpy as np

from holdfast._jit import kernel
from holdfast.contact.newton import (
    Island,
    Vectors,
    assemble,
    certify,
    combine,
    fill,
    norm,
    relative_speeds,
    residual,
)
from holdfast.contact.options import Numbers
from holdfast.contact.system import System
from holdfast.linalg import block_lu

TINY = 1e-14  # pivots of a Newton matrix, whose diagonal is at least about one
HALVINGS = 4  # of a Newton step, at most: shorter ones lead nowhere
DECREASE = 1e-4  # of |R| that a full Newton step must bring
NEAR_LEAST = 1e-5  # the least compliance of that step: rounding would decide with less
INNER = 6  # Newton steps of one proximal step
INEXACT = 0.1  # part of the residual of the law to which a proximal step is solved
FIRST = 30.0  # compliance of the first proximal step, over the root of the residual
NEAR_FIRST = 1e5  # the same over the residual itself, near an answer


@kernel
def newton_step(sy: System, isl: Island, size: int, v: Vectors, CG_work: np.ndarray) -> bool:
    """Fill v.step with the Newton step of the residual; False if the matrix is not definite."""
    assemble(sy, isl, size, CG_work)
    good = block_lu.factor(isl.pattern, isl.trees, isl.A, TINY)
    combine(isl, v.residual, 0.0, v.residual, v.step)
    block_lu.solve(isl.pattern, isl.trees, isl.A, v.step)
    return good


@kernel
def shifted_residual(sy: System, isl: Island, v: Vectors, d: np.ndarray, rho: float,
                     out: np.ndarray, shifts: bool) -> float:  # fmt: skip
    """Fill the residual, plus v.y if it shifts; return its length."""
    miss = residual(sy, isl, v, d, rho, out, False)
    if shifts:
        combine(isl, out, 1.0, v.y, out)
        miss = norm(isl, out)
    return miss


@kernel
def settle(sy: System, isl: Island, size: int, v: Vectors, CG_work: np.ndarray, rho: float,
           target: float, limit: int, shifts: bool) -> tuple[int, float]:  # fmt: skip
    """Solve one proximal step, from d = v.d on; return the Newton steps taken and |R|.

    A step may raise |R| above the last value, but not above the largest of the last three; where
    only tiny steps would, |R| is infinite.
    """
    miss = shifted_residual(sy, isl, v, v.d, rho, v.residual, shifts)
    h0 = h1 = h2 = miss
    count = 0
    while count < limit and miss > target:
        count += 1
        newton_step(sy, isl, size, v, CG_work)
        t, reference, trial = 1.0, max(h0, h1, h2), np.inf
        for _ in range(HALVINGS):
            combine(isl, v.d, -t, v.step, v.trial)
            trial = shifted_residual(sy, isl, v, v.trial, rho, v.trial_residual, shifts)
            if trial <= (1.0 - DECREASE * t) * reference:
                break
            t *= 0.5
        if not trial <= (1.0 - DECREASE * t) * reference:
            return count, np.inf
        old, miss = miss, trial
        combine(isl, v.trial, 0.0, v.trial, v.d)
        combine(isl, v.trial_residual, 0.0, v.trial_residual, v.residual)
        h0, h1, h2 = miss, h0, h1
        if miss <= 10.0 * target and miss > 0.5 * old:  # rounding
            break
    return count, miss


@kernel
def store(sy: System, isl: Island, source: np.ndarray, target: np.ndarray) -> None:
    """Copy the rows of an island."""
    for i in isl.member:
        for k in range(sy.row[i], sy.row[i + 1]):
            target[k] = source[k]


@kernel
def begin_at(sy: System, isl: Island, v: Vectors) -> None:
    """Begin a proximal step at the impulses v.r and their motion v.y, without a change."""
    relative_speeds(sy, isl, v.y, v.uk)
    fill(isl, v.d, 0.0)


@kernel
def approach(sy: System, isl: Island, size: int, v: Vectors, CG_work: np.ndarray, o: Numbers,
             sigma: float, tolerance: float, limit: int, inner: int,
             near: bool) -> tuple[float, int]:  # fmt: skip
    """Improve the impulses v.r by proximal steps, with the compliance that fits the distance.

    Newton's method settles in a few steps where the compliance is not small compared with the
    distance from an answer; where it does not, the compliance grows. Where steps settle at once
    and lead nowhere, impulses that cancel each other grow until one of them leaves its cone: the
    compliance shrinks, and they get there sooner. Where impulses are `near` an answer in all
    constraints, as those of the interior-point method are, much less compliance does.

    Returns:
        The relative residual of the best impulses, left in v.r, and the Newton steps taken.
    """
    miss = certify(sy, isl, v.r, v.y, v.u)
    store(sy, isl, v.r, v.best)
    least, total, fails = miss, 0, 0
    rho = min(max(FIRST * np.sqrt(miss), o.canonical_compliance), 1.0)
    if near:
        rho = min(max(NEAR_FIRST * miss, NEAR_LEAST), o.canonical_compliance)
    while total < limit and least > tolerance and fails < 4 + limit // 4:
        begin_at(sy, isl, v)
        target = INEXACT * max(tolerance, min(miss, 1.0)) * sigma
        count, left = settle(sy, isl, size, v, CG_work, rho, target, inner, False)
        total += max(count, 1)
        if not left <= 10.0 * target:
            if least <= o.certificate:
                break
            fails += 1
            rho = min(4.0 * rho, 10.0)
            continue
        store(sy, isl, v.new, v.r)
        before, miss = miss, certify(sy, isl, v.r, v.y, v.u)
        if least <= o.certificate and miss > 0.9 * least:  # rounding
            break
        if miss < least:
            least = miss
            store(sy, isl, v.r, v.best)
        if count <= 2 and miss > 0.8 * before:
            rho *= 0.01
        else:
            rho *= 0.1 if near else (0.3 if count <= 2 else (0.5 if count <= 4 else 0.7))
        rho = max(rho, o.least_compliance)
    store(sy, isl, v.best, v.r)
    return least, total
