r"""Numerical continuation in the compliance: the answer that equal, vanishing compliance leads to.

With one compliance :math:`\rho` about zero for all rigid rows the change d of the motion solves

.. math:: F(d, \rho) = d - \sum_i G_i^T r_i(u^0 + G d;\, \rho) = 0 .

If there is much of it, there is one solution, and it is followed as the compliance falls: the
tangent of the path predicts the solution for less of it, and Newton's method corrects that, with
steps that become longer where it settles and shorter where it does not. Nothing in this depends on
the order of constraints, on their frames, or on an earlier answer.

Friction may turn the path back: at some compliance two solutions meet, and below it there is
neither. Pseudo-arclength continuation goes round such a fold. Its unknowns are d and
:math:`s = \log \rho`; a step along the tangent of the path is corrected by Newton's method in the
plane across it,

.. math:: A\, \Delta d + F_s\, \Delta s = -F, \qquad t_d^T \Delta d + t_s \Delta s = 0,
          \qquad A = \partial F / \partial d .

The sign of the determinant of A says where the path leads on: the compliance falls where it is
positive, and grows where it is negative. The same holds beyond the corners that the path has where
a contact opens, sticks or slides. Where targets ask for no speed, impulses take energy out of a
motion, so that motions with compliance are bounded: the path ends nowhere but at no compliance.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

import numpy as np

from holdfast._jit import kernel
from holdfast.contact.newton import (
    EPS,
    Island,
    Vectors,
    assemble,
    combine,
    fill,
    motion,
    norm,
    product,
    relative_speeds,
    residual,
)
from holdfast.contact.options import Numbers
from holdfast.contact.proximal import TINY, newton_step, settle, store
from holdfast.contact.system import DISC, LINEAR, System, add_impulse
from holdfast.linalg import block_lu

STIFFEST = 0.05  # least compliance that a path begins with, over the squared lengths of all rows
MORE = 10.0  # factor of it where Newton's method does not settle
FALL, MOST_FALL = 2.3, 9.2  # of log rho from a point of the path to the next: at first, at most
CUT = 0.35  # factor of it after a step that failed
FOLDS = 0.05  # fall below which a fold is taken to be between points
FIRST_STEPS = 30  # Newton steps to the first point
SETTLES = 0.7  # part of its residual that a Newton step may leave
FAR = 1e3  # times the motion: such residuals lead nowhere
PAST = 0.5  # part of the compliance before a fold at which it is behind
ROUNDING = 10.0 * EPS  # of speeds, relative to the motion
POINT_STEPS = 8  # Newton steps to a point of the path
CORRECTIONS = 8  # the same in pseudo-arclength continuation
LOG_WEIGHT = 0.25  # of squared changes of log rho in lengths, where those of the motion have one
FIRST_LENGTH, MOST_LENGTH, LEAST_LENGTH = 0.1, 1.0, 1e-6  # of steps along the path
SHORTER, LONGER = 0.25, 2.0  # factors of that length after a step that failed, and after a good one
QUICK = 3  # corrections of a good step
OFF = 0.5  # part of its length by which a step may be corrected: what is farther is another path
CORNERS = (10.0, 100.0, 1000.0)  # times the least length: how far beyond a corner pieces are read
AFTER_CORNER = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)  # lengths of the first step after a corner


@kernel
def add_scaled(sy: System, isl: Island, v: Vectors, out: np.ndarray) -> None:
    """Fill the derivative of F by log rho: impulses v.new that compliance scales, as a motion.

    Rows with a compliance of their own, and dry friction that slides, do not depend on it.
    """
    fill(isl, out, 0.0)
    for i in isl.member:
        first, end, kind = sy.row[i], sy.row[i + 1], sy.tangent[i]
        begin = first + sy.normal[i]
        for k in range(first, end):
            v.u[k] = v.new[k]
            own = k >= begin and kind == LINEAR and sy.R[k] > 0.0
            if own or (kind == DISC and begin == first and isl.C[isl.C_at[i]] == 0.0):
                v.u[k] = 0.0
        add_impulse(sy, i, v.u, out)


@kernel
def find_tangent(sy: System, isl: Island, size: int, v: Vectors, CG_work: np.ndarray, d: np.ndarray,
                 s: float, sigma: float, out: np.ndarray) -> float:  # fmt: skip
    """Fill the unit tangent of the path at d, in the direction that leads on; return its part in s.

    F is left in v.residual, its derivative by s, over A, in v.trial_residual.
    """
    residual(sy, isl, v, d, np.exp(s), v.residual)
    add_scaled(sy, isl, v, v.trial_residual)
    assemble(sy, isl, size, CG_work)
    block_lu.factor(isl.pattern, isl.trees, isl.A, TINY)
    block_lu.solve(isl.pattern, isl.trees, isl.A, v.trial_residual)
    falls = -block_lu.determinant_sign(isl.pattern, isl.trees, isl.A)
    length = norm(isl, v.trial_residual) / sigma
    part = falls / np.sqrt(length * length + LOG_WEIGHT)
    fill(isl, out, 0.0)
    combine(isl, out, -part, v.trial_residual, out)
    return part


@kernel
def cosine(isl: Island, a: np.ndarray, a_s: float, b: np.ndarray, b_s: float,
           sigma: float) -> float:  # fmt: skip
    """Return the inner product of two directions in motions and log rho."""
    return product(isl, a, b) / (sigma * sigma) + LOG_WEIGHT * a_s * b_s


@kernel
def step_along(sy: System, isl: Island, size: int, v: Vectors, CG_work: np.ndarray, o: Numbers,
               s: float, tangent: np.ndarray, part: float, length: float,
               sigma: float) -> tuple[float, int]:  # fmt: skip
    """Go from the point v.y a step along a tangent, and back to the path across it.

    Returns:
        log rho of the new point, whose change of motion is left in v.d, or NaN if there is none
        nearby; and the factorisations.
    """
    combine(isl, v.y, length, tangent, v.d)
    s += length * part
    moved, moved_s, last = 0.0, 0.0, np.inf
    for count in range(CORRECTIONS):
        rho = np.exp(s)
        miss = residual(sy, isl, v, v.d, rho, v.residual) / sigma
        if miss <= max(o.on_fold, ROUNDING / rho):
            return s, count
        if count > CORRECTIONS // 2 and not miss < last:
            break
        last = miss
        add_scaled(sy, isl, v, v.trial_residual)
        assemble(sy, isl, size, CG_work)
        block_lu.factor(isl.pattern, isl.trees, isl.A, TINY)
        block_lu.solve(isl.pattern, isl.trees, isl.A, v.residual)
        block_lu.solve(isl.pattern, isl.trees, isl.A, v.trial_residual)
        across = LOG_WEIGHT * part - product(isl, tangent, v.trial_residual) / (sigma * sigma)
        if across == 0.0:
            break
        change = product(isl, tangent, v.residual) / (sigma * sigma * across)
        combine(isl, v.d, -1.0, v.residual, v.d)
        combine(isl, v.d, -change, v.trial_residual, v.d)
        s += change
        moved_s += change
        combine(isl, v.d, -1.0, v.y, v.residual)
        combine(isl, v.residual, -length, tangent, v.residual)
        moved = norm(isl, v.residual) / sigma
        if not moved * moved + LOG_WEIGHT * moved_s * moved_s <= OFF * OFF * length * length:
            break
    return np.nan, CORRECTIONS


@kernel
def turn_corner(sy: System, isl: Island, size: int, v: Vectors, CG_work: np.ndarray, o: Numbers,
                s: float, part: float,
                sigma: float) -> tuple[float, float, float, int]:  # fmt: skip
    """Go on beyond a corner just ahead of the point v.y, with v.trial the tangent there.

    Returns:
        log rho, the tangent's part and the length of the step, and the factorisations. The new
        point is left in v.y, its tangent in v.trial. NaN if none is found.
    """
    total = 0
    for far in CORNERS:
        ahead = far * LEAST_LENGTH
        combine(isl, v.y, ahead, v.trial, v.d)
        beyond = find_tangent(sy, isl, size, v, CG_work, v.d, s + ahead * part, sigma, v.step)
        total += 1
        if cosine(isl, v.step, beyond, v.trial, part, sigma) > 0.999:  # no corner in between
            continue
        for length in AFTER_CORNER:
            new, count = step_along(sy, isl, size, v, CG_work, o, s, v.step, beyond, length, sigma)
            total += count
            if not np.isfinite(new):
                continue
            combine(isl, v.step, 0.0, v.step, v.trial)
            now = find_tangent(sy, isl, size, v, CG_work, v.d, new, sigma, v.step)
            total += 1
            if cosine(isl, v.step, now, v.trial, beyond, sigma) > 0.0:
                combine(isl, v.d, 0.0, v.d, v.y)
                combine(isl, v.step, 0.0, v.step, v.trial)
                return new, now, length, total
            combine(isl, v.trial, 0.0, v.trial, v.step)
        return np.nan, part, 0.0, total
    return np.nan, part, 0.0, total


@kernel
def pass_fold(sy: System, isl: Island, size: int, v: Vectors, CG_work: np.ndarray, o: Numbers,
              first: float, last: float, sigma: float,
              limit: int) -> tuple[bool, float, int]:  # fmt: skip
    """Follow the path from the point v.y, with the first compliance, until it is past the last one.

    Returns:
        Whether it is, the compliance of the point left in v.y, and the factorisations.
    """
    target = max(o.on_fold, ROUNDING / first) * sigma
    combine(isl, v.y, 0.0, v.y, v.d)
    total, left = settle(sy, isl, size, v, CG_work, first, target, FIRST_STEPS)
    if left <= target:
        combine(isl, v.d, 0.0, v.d, v.y)
    s, length = np.log(first), FIRST_LENGTH
    part = find_tangent(sy, isl, size, v, CG_work, v.y, s, sigma, v.trial)
    total += 1
    while total < limit:
        new, count = step_along(sy, isl, size, v, CG_work, o, s, v.trial, part, length, sigma)
        total += max(count, 1)
        good, now = np.isfinite(new), part
        if good:
            now = find_tangent(sy, isl, size, v, CG_work, v.d, new, sigma, v.step)
            total += 1
            good = cosine(isl, v.step, now, v.trial, part, sigma) > 0.0
        if good:
            s, part = new, now
            combine(isl, v.d, 0.0, v.d, v.y)
            combine(isl, v.step, 0.0, v.step, v.trial)
            if count <= QUICK:
                length = min(LONGER * length, MOST_LENGTH)
        else:
            length *= SHORTER
            if length < LEAST_LENGTH:
                new, now, length, count = turn_corner(sy, isl, size, v, CG_work, o, s, part, sigma)
                total += count
                if not np.isfinite(new):
                    break
                s, part = new, now
        if part < 0.0 and s <= np.log(last):
            return True, np.exp(s), total
    return False, np.exp(s), total


@kernel
def correct(sy: System, isl: Island, size: int, v: Vectors, CG_work: np.ndarray, rho: float,
            target: float, far: float) -> tuple[bool, int]:  # fmt: skip
    """Take Newton steps from a prediction v.d to the path; give up as soon as they do not settle.

    Where they do not, a shorter step along the path costs less than a line search.

    Returns:
        Whether v.d is on the path, and the factorisations.
    """
    miss = residual(sy, isl, v, v.d, rho, v.residual)
    for count in range(POINT_STEPS):
        if miss <= target:
            return True, count
        newton_step(sy, isl, size, v, CG_work)
        combine(isl, v.d, -1.0, v.step, v.d)
        last, miss = miss, residual(sy, isl, v, v.d, rho, v.residual)
        if (count > 0 and not miss <= SETTLES * last) or not miss <= far:
            return False, count + 1
    return miss <= target, POINT_STEPS


@kernel
def predict(sy: System, isl: Island, v: Vectors) -> None:
    """Fill v.trial with the derivative of the motion by log rho, with the factors that A holds.

    Its impulses are in v.new, their derivatives in isl.C. The factors may be those of a point
    nearby: it is a prediction.
    """
    add_scaled(sy, isl, v, v.trial)
    block_lu.solve(isl.pattern, isl.trees, isl.A, v.trial)
    combine(isl, v.trial, -2.0, v.trial, v.trial)


@kernel
def first_compliance(sy: System, isl: Island) -> float:
    r"""Return a compliance with which there is one answer.

    The residual is strongly monotone for :math:`\rho > \lambda (\sqrt{1 + \mu^2} - 1) / 2` with the
    largest eigenvalue :math:`\lambda` of :math:`G^T G`, which is at most the squared length of all
    rows. Contacts that are listed twice have twice that, and the same path.
    """
    lengths = mu = 0.0
    for i in isl.member:
        dim = sy.row[i + 1] - sy.row[i]
        if sy.normal[i] == 1:
            mu = max(mu, sy.mu[i])
        for p in range(sy.panel[i], sy.panel[i + 1]):
            t = sy.panel_tree[p]
            s, at = sy.tree[t + 1] - sy.tree[t], sy.panel_at[p]
            for k in range(at, at + dim * s):
                lengths += sy.G[k] * sy.G[k]
    return lengths * max(STIFFEST, 0.5 * (np.sqrt(1.0 + mu * mu) - 1.0))


@kernel
def follow_compliance(sy: System, isl: Island, size: int, v: Vectors, CG_work: np.ndarray,
                      o: Numbers, sigma: float, begins: bool, first: float, last: float,
                      limit: int) -> tuple[float, int]:  # fmt: skip
    """Improve v.r, impulses with compliance about zero, until only little of it is left.

    Args:
        sy, isl, size, v, CG_work: the island; v.r are impulses of the path, or zero.
        o, sigma: tolerances, size of the motion.
        begins: whether the path begins here; v.r are zero then.
        first, last: compliance of v.r, and that is wanted.
        limit: factorisations.

    Returns:
        The compliance that was reached, that of the impulses v.r, and the factorisations.
    """
    motion(sy, isl, v.r, v.y)
    combine(isl, v.y, -1.0, sy.y0, v.y)
    store(sy, isl, v.r, v.best)
    for i in isl.member:
        for k in range(sy.row[i], sy.row[i + 1]):
            v.r[k] = 0.0
    relative_speeds(sy, isl, sy.y0, v.uk)
    total, fall, reached, fresh = 0, FALL, first, False
    fill(isl, v.trial, 0.0)
    while begins and total < limit:
        fill(isl, v.d, 0.0)
        target = o.on_path * sigma
        count, left = settle(sy, isl, size, v, CG_work, reached, target, FIRST_STEPS)
        total += max(count, 1)
        if left <= target:
            store(sy, isl, v.new, v.best)
            combine(isl, v.d, 0.0, v.d, v.y)
            predict(sy, isl, v)
            break
        reached *= MORE
    while total < limit and reached > last:
        rho = max(np.exp(-fall) * reached, last)
        target = max(o.on_path, ROUNDING / rho) * sigma
        combine(isl, v.y, rho / reached - 1.0, v.trial, v.d)
        good, count = correct(sy, isl, size, v, CG_work, rho, target, FAR * sigma)
        total += max(count, 1)
        if good:
            reached, fresh = rho, False
            store(sy, isl, v.new, v.best)
            combine(isl, v.d, 0.0, v.d, v.y)
            predict(sy, isl, v)
            if count <= QUICK:
                fall = min(fall * 2.0 * QUICK / max(count, 1), MOST_FALL)
            continue
        if not fresh:  # the factors may be those of other states
            residual(sy, isl, v, v.y, reached, v.residual)
            assemble(sy, isl, size, CG_work)
            block_lu.factor(isl.pattern, isl.trees, isl.A, TINY)
            predict(sy, isl, v)
            fresh, total = True, total + 1
        fall *= CUT
        if fall < FOLDS:
            past = max(PAST * reached, last)
            passed, reached, count = pass_fold(
                sy, isl, size, v, CG_work, o, reached, past, sigma, limit - total
            )
            total += count
            residual(sy, isl, v, v.y, reached, v.residual)
            store(sy, isl, v.new, v.best)
            predict(sy, isl, v)
            fall, fresh = FALL, False
            if not passed:
                break
    store(sy, isl, v.best, v.r)
    return reached, total
