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

Points are changes from the one before, with its impulses and speeds: rounding of these is an error
of the targets, the same for all that follows, and only that of the change is magnified by 1 / rho.

The sign of the determinant of A says where the path leads on: the compliance falls where it is
positive, and grows where it is negative. The same holds beyond the corners that the path has where
a contact opens, sticks or slides. Often several do at once, as where boxes that fall together are
hit: then the tangent beyond is that of a piece which it leads to itself. Where targets ask
for no speed, impulses take energy out of a motion, so that motions with compliance are bounded: the
path ends nowhere but at no compliance.
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
    norm,
    product,
    rebuild,
)
from holdfast.contact.options import Numbers
from holdfast.contact.proximal import TINY, newton_step, settle, shifted_residual, store
from holdfast.contact.system import DISC, LINEAR, System, add_impulse, speeds
from holdfast.linalg import block_lu
from holdfast.linalg.vectors import square

STIFFEST = 0.05  # least compliance that a path begins with, over the squared lengths of all rows
MORE = 10.0  # factor of it where Newton's method does not settle
FALL, MOST_FALL = 2.3, 9.2  # of log rho from a point of the path to the next: at first, at most
CUT = 0.35  # factor of it after a step that failed
FOLDS = 0.05  # fall below which there is a corner between points, or a fold
FIRST_STEPS = 30  # Newton steps to the first point
SETTLES = 0.7  # part of its residual that a Newton step may leave
FAR = 1e3  # times the motion: such residuals lead nowhere
PAST = 0.5  # part of the compliance before a fold at which it is behind
ROUNDING = 10.0 * EPS  # of speeds, relative to the motion
POINT_STEPS = 8  # Newton steps to a point of the path
CORRECTIONS, PATIENCE = 16, 8  # the same in pseudo-arclength continuation; before |F| must fall
LOG_WEIGHT = 0.25  # of squared changes of log rho in lengths, where those of the motion have one
FIRST_LENGTH, MOST_LENGTH, LEAST_LENGTH = 0.1, 1.0, 1e-8  # of steps along the path
SHORT = 1e-6  # length of a step that shows that there is a corner just ahead
SHORTER, LONGER = 0.25, 2.0  # factors of that length after a step that failed, and after a good one
QUICK = 3  # corrections of a good step
OFF = 0.5  # part of its length by which a step may be corrected: what is farther is another path
CORNERS = (10.0, 1e3, 1e5)  # times that of such a step: how far beyond pieces are read
PIECES = 2**61 - 1  # of a path, at most: a prime
TURNS = 10  # tangents, each of the piece that the one before leads to, until one is its own
AFTER_CORNER = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)  # lengths of the step after that


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
def clear_rounding(sy: System, isl: Island, v: Vectors, sigma: float) -> None:
    """Let constraints rest that nothing acts on, and that do not move, but for rounding."""
    for i in isl.member:
        still = True
        for k in range(sy.row[i], sy.row[i + 1]):
            still = still and max(abs(v.r[k]), abs(v.best[k])) <= ROUNDING * sigma
        for k in range(sy.row[i], sy.row[i + 1]):
            v.r[k] = 0.0 if still else v.r[k]
            v.best[k] = 0.0 if still else v.best[k]


@kernel
def begin_path(sy: System, isl: Island, v: Vectors, sigma: float) -> float:
    """Count changes of the motion from that of the impulses v.r; return their length.

    Where nothing acts and nothing moves, as between boxes that fall together, what rounding leaves
    of speeds would tell states, and those where a path leads on.
    """
    rebuild(sy, isl, v.r, v.d, v.best)
    fill(isl, v.y, 0.0)
    clear_rounding(sy, isl, v, sigma)
    return length_of(sy, isl, v.r)


@kernel
def begin_from(sy: System, isl: Island, v: Vectors, d: np.ndarray, sigma: float) -> float:
    """Count changes of the motion from the point at d, whose impulses are in v.new.

    They are left in v.r, the speeds of the point in v.best, and in v.y what is left of F there. So
    rounding of the point is the same for all changes: targets that are off by so much, and no noise
    that a small compliance would magnify. Return the length of the impulses.
    """
    for i in isl.member:
        speeds(sy, i, d, v.u)
        for k in range(sy.row[i], sy.row[i + 1]):
            v.best[k] += v.u[k]
    store(sy, isl, v.new, v.r)
    clear_rounding(sy, isl, v, sigma)
    combine(isl, v.residual, 0.0, v.residual, v.y)
    return length_of(sy, isl, v.r)


@kernel
def length_of(sy: System, isl: Island, r: np.ndarray) -> float:
    """Return the length of all impulses."""
    total = 0.0
    for i in isl.member:
        for k in range(sy.row[i], sy.row[i + 1]):
            total += square(r[k])
    return np.sqrt(total)


@kernel
def point_residual(sy: System, isl: Island, v: Vectors, d: np.ndarray, rho: float,
                   out: np.ndarray) -> float:  # fmt: skip
    """Fill F at a change d from the point that changes are counted from; return its length.

    Compliance acts about zero: about the impulses v.r it does so with speeds that are larger by
    what it gives way under them.
    """
    for i in isl.member:
        begin = sy.row[i] + sy.normal[i]
        for k in range(sy.row[i], sy.row[i + 1]):
            own = k >= begin and sy.tangent[i] == LINEAR and sy.R[k] > 0.0
            v.uk[k] = v.best[k] if own else v.best[k] + rho * v.r[k]
    return shifted_residual(sy, isl, v, d, rho, out, True)


@kernel
def noise(isl: Island, d: np.ndarray, rho: float, load: float) -> float:
    """Return about what rounding leaves of F: of speeds over the compliance, and of impulses."""
    return ROUNDING * (norm(isl, d) / rho + load)


@kernel
def find_tangent(sy: System, isl: Island, size: int, v: Vectors, CG_work: np.ndarray, d: np.ndarray,
                 s: float, sigma: float, out: np.ndarray) -> float:  # fmt: skip
    """Fill the unit tangent of the path at d, in the direction that leads on; return its part in s.

    F is left in v.residual, its derivative by s, over A, in v.trial_residual.
    """
    point_residual(sy, isl, v, d, np.exp(s), v.residual)
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
               s: float, tangent: np.ndarray, part: float, length: float, load: float,
               sigma: float) -> tuple[float, int]:  # fmt: skip
    """Go a step along a tangent, and back to the path across it.

    Returns:
        log rho of the new point, whose change of motion is left in v.d, or NaN if there is none
        nearby; and the factorisations.
    """
    fill(isl, v.d, 0.0)
    combine(isl, v.d, length, tangent, v.d)
    s += length * part
    moved, moved_s, last = 0.0, 0.0, np.inf
    for count in range(CORRECTIONS):
        rho = np.exp(s)
        miss = point_residual(sy, isl, v, v.d, rho, v.residual)
        if miss <= max(o.on_fold * sigma, noise(isl, v.d, rho, load)):
            return s, count
        if count > PATIENCE and not miss < last:
            break
        damped = 0.5 if miss > SETTLES * last else 1.0  # directions of sliding go to and fro
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
        combine(isl, v.d, -damped, v.residual, v.d)
        combine(isl, v.d, -damped * change, v.trial_residual, v.d)
        s += damped * change
        moved_s += damped * change
        combine(isl, v.d, -length, tangent, v.residual)
        moved = norm(isl, v.residual) / sigma
        if not moved * moved + LOG_WEIGHT * moved_s * moved_s <= OFF * OFF * length * length:
            break
    return np.nan, CORRECTIONS


@kernel
def piece_of(sy: System, isl: Island) -> int:
    """Return a number that tells pieces of the path apart: where derivatives of impulses vanish."""
    code = 0
    for i in isl.member:
        dim = sy.row[i + 1] - sy.row[i]
        for k in range(isl.C_at[i], isl.C_at[i] + dim * dim):
            code = (3 * code + (1 if isl.C[k] != 0.0 else 0)) % PIECES
    return code


@kernel
def turn_corner(sy: System, isl: Island, size: int, v: Vectors, CG_work: np.ndarray, o: Numbers,
                s: float, part: float, short: float, load: float,
                sigma: float) -> tuple[float, float, float, int]:  # fmt: skip
    """Go on beyond a corner just ahead, nearer than `short`, with v.trial the tangent here.

    Returns:
        log rho, the tangent's part and the length of the step, and the factorisations. The new
        point is left in v.d, its tangent in v.trial. NaN if none is found.
    """
    fill(isl, v.d, 0.0)
    point_residual(sy, isl, v, v.d, np.exp(s), v.residual)
    total, here = 0, piece_of(sy, isl)
    for far in CORNERS:
        ahead = far * short
        combine(isl, v.trial, 0.0, v.trial, v.step)
        beyond, corner, piece = part, False, here
        for turn in range(TURNS):
            fill(isl, v.d, 0.0)
            combine(isl, v.d, ahead, v.step, v.d)
            last = beyond
            beyond = find_tangent(sy, isl, size, v, CG_work, v.d, s + ahead * last, sigma, v.step)
            total += 1
            before, piece = piece, piece_of(sy, isl)
            if piece == before:
                corner = turn > 0
                break
        if not corner:  # none in between, or it is not clear where it leads
            continue
        for length in AFTER_CORNER:
            new, count = step_along(
                sy, isl, size, v, CG_work, o, s, v.step, beyond, length, load, sigma
            )
            total += count
            if not np.isfinite(new):
                continue
            combine(isl, v.step, 0.0, v.step, v.trial)
            now = find_tangent(sy, isl, size, v, CG_work, v.d, new, sigma, v.step)
            total += 1
            if cosine(isl, v.step, now, v.trial, beyond, sigma) > 0.0:
                combine(isl, v.step, 0.0, v.step, v.trial)
                return new, now, length, total
            combine(isl, v.trial, 0.0, v.trial, v.step)
        return np.nan, part, 0.0, total
    return np.nan, part, 0.0, total


@kernel
def pass_fold(sy: System, isl: Island, size: int, v: Vectors, CG_work: np.ndarray, o: Numbers,
              first: float, last: float, load: float, sigma: float,
              limit: int) -> tuple[bool, float, int]:  # fmt: skip
    """Follow the path from the first compliance on, until it is past the last one.

    Returns:
        Whether it is, the compliance that was reached, and the factorisations. Changes are counted
        from the last point.
    """
    fill(isl, v.d, 0.0)
    good, total = correct(sy, isl, size, v, CG_work, first, o.on_fold * sigma, load, FAR * sigma)
    if good:
        load = begin_from(sy, isl, v, v.d, sigma)
    s, length = np.log(first), FIRST_LENGTH
    fill(isl, v.d, 0.0)
    part = find_tangent(sy, isl, size, v, CG_work, v.d, s, sigma, v.trial)
    total += 1
    while total < limit:
        new, count = step_along(sy, isl, size, v, CG_work, o, s, v.trial, part, length, load, sigma)
        total += max(count, 1)
        good, now = np.isfinite(new), part
        if good:
            now = find_tangent(sy, isl, size, v, CG_work, v.d, new, sigma, v.step)
            total += 1
            good = cosine(isl, v.step, now, v.trial, part, sigma) > 0.0
        if good:
            s, part = new, now
            load = begin_from(sy, isl, v, v.d, sigma)
            combine(isl, v.step, 0.0, v.step, v.trial)
            if count <= QUICK:
                length = min(LONGER * length, MOST_LENGTH)
        else:
            length *= SHORTER
            if length < SHORT:
                short = length
                new, now, length, count = turn_corner(
                    sy, isl, size, v, CG_work, o, s, part, short, load, sigma
                )
                total += count
                if not np.isfinite(new):
                    length = short
                    if length < LEAST_LENGTH:
                        break
                    fill(isl, v.d, 0.0)
                    part = find_tangent(sy, isl, size, v, CG_work, v.d, s, sigma, v.trial)
                    continue
                s, part = new, now
                load = begin_from(sy, isl, v, v.d, sigma)
        if part < 0.0 and s <= np.log(last):
            return True, np.exp(s), total
    return False, np.exp(s), total


@kernel
def correct(sy: System, isl: Island, size: int, v: Vectors, CG_work: np.ndarray, rho: float,
            target: float, load: float, far: float) -> tuple[bool, int]:  # fmt: skip
    """Take Newton steps from a prediction v.d to the path; give up as soon as they do not settle.

    Where they do not, a shorter step along the path costs less than a line search.

    Returns:
        Whether v.d is on the path, and the factorisations.
    """
    miss = point_residual(sy, isl, v, v.d, rho, v.residual)
    for count in range(POINT_STEPS):
        if miss <= max(target, noise(isl, v.d, rho, load)):
            return True, count
        newton_step(sy, isl, size, v, CG_work)
        combine(isl, v.d, -1.0, v.step, v.d)
        last, miss = miss, point_residual(sy, isl, v, v.d, rho, v.residual)
        if (count > 0 and not miss <= SETTLES * last) or not miss <= far:
            return False, count + 1
    return miss <= max(target, noise(isl, v.d, rho, load)), POINT_STEPS


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
    load = begin_path(sy, isl, v, sigma)
    total, fall, reached, fresh = 0, FALL, first, False
    fill(isl, v.trial, 0.0)
    target = o.on_path * sigma
    while begins and total < limit:
        fill(isl, v.d, 0.0)
        point_residual(sy, isl, v, v.d, reached, v.residual)
        count, left = settle(sy, isl, size, v, CG_work, reached, target, FIRST_STEPS, False)
        total += max(count, 1)
        if left <= target:
            load = begin_from(sy, isl, v, v.d, sigma)
            predict(sy, isl, v)
            break
        reached *= MORE
    while total < limit and reached > last:
        rho = max(np.exp(-fall) * reached, last)
        target = o.on_path * min(rho, 1.0) * sigma
        fill(isl, v.d, 0.0)
        combine(isl, v.d, rho / reached - 1.0, v.trial, v.d)
        good, count = correct(sy, isl, size, v, CG_work, rho, target, load, FAR * sigma)
        total += max(count, 1)
        if good:
            reached, fresh = rho, False
            load = begin_from(sy, isl, v, v.d, sigma)
            predict(sy, isl, v)
            if count <= QUICK:
                fall = min(fall * 2.0 * QUICK / max(count, 1), MOST_FALL)
            continue
        fill(isl, v.d, 0.0)
        if not fresh:  # the factors may be those of other states
            point_residual(sy, isl, v, v.d, reached, v.residual)
            assemble(sy, isl, size, CG_work)
            block_lu.factor(isl.pattern, isl.trees, isl.A, TINY)
            predict(sy, isl, v)
            fresh, total = True, total + 1
        fall *= CUT
        if fall < FOLDS:
            rho = max(np.exp(-FOLDS) * reached, last)  # beyond a corner, perhaps
            target = max(o.on_path * min(rho, 1.0) * sigma, ROUNDING * load)
            fill(isl, v.d, 0.0)
            point_residual(sy, isl, v, v.d, rho, v.residual)
            count, left = settle(sy, isl, size, v, CG_work, rho, target, FIRST_STEPS, True)
            total += count
            if left <= target and norm(isl, v.d) <= FOLDS * sigma:
                reached, fall, fresh = rho, FALL, False
                load = begin_from(sy, isl, v, v.d, sigma)
                predict(sy, isl, v)
                continue
            past = max(PAST * reached, last)
            passed, reached, count = pass_fold(
                sy, isl, size, v, CG_work, o, reached, past, load, sigma, limit - total
            )
            total += count
            fill(isl, v.d, 0.0)
            point_residual(sy, isl, v, v.d, reached, v.residual)
            load = begin_from(sy, isl, v, v.d, sigma)
            predict(sy, isl, v)
            fall, fresh = FALL, False
            if not passed:
                break
    return reached, total
