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
    product,
    relative_speeds,
    residual,
)
from holdfast.contact.options import Numbers
from holdfast.contact.system import DISC, System
from holdfast.linalg import block_lu

TINY = 1e-14  # pivots of a Newton matrix, whose diagonal is at least about one


@kernel
def newton_step(sy: System, isl: Island, size: int, v: Vectors, CG_work: np.ndarray) -> bool:
    """Fill v.step with the Newton step of the residual; False if the matrix is not definite."""
    assemble(sy, isl, size, CG_work)
    good = block_lu.factor(isl.pattern, isl.trees, isl.A, TINY)
    combine(isl, v.residual, 0.0, v.residual, v.step)
    block_lu.solve(isl.pattern, isl.trees, isl.A, v.step)
    return good


@kernel
def settle(sy: System, isl: Island, size: int, v: Vectors, CG_work: np.ndarray, rho: float,
           radius: np.ndarray, target: float, limit: int) -> tuple[int, float]:  # fmt: skip
    """Solve one proximal step, from d = v.d on; return the Newton steps taken and |R|.

    A step may raise |R| above the last value, but not above the largest of the last three.
    """
    miss = residual(sy, isl, v, v.d, rho, radius, False, v.residual)
    h0 = h1 = h2 = miss
    count = 0
    while count < limit and miss > target:
        count += 1
        newton_step(sy, isl, size, v, CG_work)
        t, best, best_t, reference = 1.0, np.inf, 1.0, max(h0, h1, h2)
        trial = miss
        accepted = False
        for _ in range(10):
            combine(isl, v.d, -t, v.step, v.trial)
            trial = residual(sy, isl, v, v.trial, rho, radius, False, v.trial_residual)
            if trial < best:
                best, best_t = trial, t
            if trial <= (1.0 - 1e-4 * t) * reference:
                accepted = True
                break
            t *= 0.5
        if not accepted and best_t != t:
            t = best_t
            combine(isl, v.d, -t, v.step, v.trial)
            trial = residual(sy, isl, v, v.trial, rho, radius, False, v.trial_residual)
        old, miss = miss, trial
        combine(isl, v.trial, 0.0, v.trial, v.d)
        combine(isl, v.trial_residual, 0.0, v.trial_residual, v.residual)
        h0, h1, h2 = miss, h0, h1
        if not accepted and best > 0.9999 * reference:
            return count, np.inf
        if miss <= 100.0 * target and miss > 0.5 * old:  # rounding
            break
    return count, miss


@kernel
def settle_convex(sy: System, isl: Island, size: int, v: Vectors, CG_work: np.ndarray, rho: float,
                  radius: np.ndarray, target: float, limit: int) -> tuple[int, float]:  # fmt: skip
    """The same with given radii of the friction discs: a convex problem, line search on its slope.

    This always converges: it is the way out where friction keeps `settle` from doing so.
    """
    miss = residual(sy, isl, v, v.d, rho, radius, True, v.residual)
    count = 0
    while count < limit and miss > target:
        count += 1
        newton_step(sy, isl, size, v, CG_work)
        slope = -product(isl, v.residual, v.step)
        low, low_slope, high, high_slope, t = 0.0, slope, -1.0, 0.0, 1.0
        old = miss
        for _ in range(30):
            combine(isl, v.d, -t, v.step, v.trial)
            miss = residual(sy, isl, v, v.trial, rho, radius, True, v.trial_residual)
            now = -product(isl, v.trial_residual, v.step)
            if abs(now) <= 0.3 * abs(slope):
                break
            if now < 0.0:
                low, low_slope = t, now
                if high < 0.0:
                    t *= 2.0
                    if t > 4.0:
                        break
                    continue
            else:
                high, high_slope = t, now
            part = 0.5 if high_slope == low_slope else -low_slope / (high_slope - low_slope)
            t = low + (high - low) * min(max(part, 0.1), 0.9)
        combine(isl, v.trial, 0.0, v.trial, v.d)
        combine(isl, v.trial_residual, 0.0, v.trial_residual, v.residual)
        if miss <= 100.0 * target and miss > 0.5 * old:
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
def refine(sy: System, isl: Island, size: int, v: Vectors, CG_work: np.ndarray,
           radius_work: np.ndarray, rho: float, o: Numbers, sigma: float,
           limit: int) -> tuple[float, int]:  # fmt: skip
    """Improve the impulses v.r by proximal steps of falling compliance.

    Where Newton's method does not settle, a step with the friction discs of the last impulses is
    taken in its place.

    Args:
        sy, isl, size, v, CG_work, radius_work: the island and work arrays.
        rho: compliance to begin with.
        o: tolerances.
        sigma: scale of motions.
        limit: Newton steps in all.

    Returns:
        The relative residual of the best impulses, left in v.r, and the Newton steps taken.
    """
    miss = certify(sy, isl, v.r, v.y, v.u)
    store(sy, isl, v.r, v.best)
    least = miss
    total, fails, stalled, convex = 0, 0, 0, 0
    while total < limit and least > o.stop:
        begin_at(sy, isl, v)
        target = max(1e-3 * o.stop, 1e-4 * min(miss, 1.0)) * sigma
        count, left = settle(sy, isl, size, v, CG_work, rho, radius_work, target, 25)
        total += max(count, 1)
        settled = left <= max(1e-8 * sigma, target)
        if not settled:
            fails += 1
            if fails > 25:
                break
            for i in isl.member:
                radius_work[i] = sy.bound[i]
                if sy.tangent[i] == DISC and sy.normal[i] == 1:
                    radius_work[i] += sy.mu[i] * max(v.r[sy.row[i]], 0.0)
            fill(isl, v.d, 0.0)
            count, left = settle_convex(
                sy, isl, size, v, CG_work, rho, radius_work, 1e-3 * o.stop * sigma, 40
            )
            total += count
            convex += 1
            if not left <= 1e-6 * sigma or convex % 3 == 0:
                rho = min(5.0 * rho, 10.0)
            if not left <= 1e-6 * sigma:
                continue
        store(sy, isl, v.new, v.r)
        miss = certify(sy, isl, v.r, v.y, v.u)
        stalled = 0 if miss < 0.9 * least else stalled + 1
        if miss < least:
            least = miss
            store(sy, isl, v.r, v.best)
        if stalled > 15:
            break
        if settled:
            rho *= 1e-2 if count <= 2 else (0.1 if count <= 8 else 0.4)
            rho = max(rho, o.least_compliance)
            if count <= 8:
                fails = max(fails - 1, 0)
    store(sy, isl, v.best, v.r)
    return least, total


@kernel
def approach(sy: System, isl: Island, size: int, v: Vectors, CG_work: np.ndarray,
             radius_work: np.ndarray, o: Numbers, sigma: float, tolerance: float,
             limit: int) -> tuple[float, int]:  # fmt: skip
    """Improve impulses v.r that are near an answer, with the compliance that fits the distance.

    Newton's method settles in a few steps where the compliance is not small compared with the
    distance from the answer; where it does not, the compliance grows.

    Returns:
        The relative residual of the best impulses, left in v.r, and the Newton steps taken.
    """
    miss = certify(sy, isl, v.r, v.y, v.u)
    store(sy, isl, v.r, v.best)
    least, total, fails = miss, 0, 0
    rho = min(max(3.0 * np.sqrt(miss), 1e-3), 0.3)
    while total < limit and least > tolerance and fails < 4 + limit // 8:
        begin_at(sy, isl, v)
        target = max(0.1 * tolerance, 1e-2 * min(miss, 1.0) * rho) * sigma
        count, left = settle(sy, isl, size, v, CG_work, rho, radius_work, target, 6)
        total += max(count, 1)
        if not left <= 100.0 * target:
            fails += 1
            rho = min(3.0 * rho, 1.0)
            continue
        store(sy, isl, v.new, v.r)
        before, miss = least, certify(sy, isl, v.r, v.y, v.u)
        if miss < least:
            least = miss
            store(sy, isl, v.r, v.best)
        if least <= o.certificate and miss > 0.9 * before:  # rounding
            break
        rho = max(rho * (0.1 if count <= 1 else 0.3 if count <= 2 else 0.7), 1e-7)
    store(sy, isl, v.best, v.r)
    return least, total
