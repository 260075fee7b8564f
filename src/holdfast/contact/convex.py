r"""Islands without Coulomb friction: convex problems, solved or shown to have no answer.

Normals, limits, dry friction, held and compliant rows are laws :math:`r(u)` of a convex problem.
With compliance :math:`\rho` about impulses :math:`r^k` its motion minimises a piecewise quadratic
function, and Newton's method with a line search on the slope finds it from anywhere. The matrix
depends on nothing but which constraints act, so its factors are kept until others do.

The first compliance is about zero: impulses then share a load as equal springs do. Steps about the
last impulses, augmented Lagrangian ones, take the compliance out. If their changes
:math:`\delta = r^{k+1} - r^k` come to move nothing and yet :math:`c^T \delta > 0`, the targets c
contradict each other: every motion that meets them is at least
:math:`c^T \delta / |G^T \delta|` long.

Most limits and equalities go on doing what they did. So the states that are likely come first:
where they are right, one system in the few rows that carry gives the answer.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

import numpy as np

from holdfast._jit import inlined, kernel
from holdfast.contact import cone
from holdfast.contact.active_set import derive, read_states, rounding, search_states
from holdfast.contact.cone import OPEN, SLIDE, STICK
from holdfast.contact.newton import (
    Island,
    Vectors,
    assemble,
    certify,
    combine,
    fill,
    norm,
    product,
    relative_speeds,
    scale_of,
)
from holdfast.contact.options import Numbers
from holdfast.contact.proximal import TINY, store
from holdfast.contact.system import DISC, HELD, LINEAR, System, add_impulse, speeds
from holdfast.linalg import block_lu

SYSTEMS = 2  # of likely states, before the search for others
NEWTON_STEPS = 100  # of one compliance; a few suffice, or some tens in large islands
LAGRANGIAN_STEPS = 16  # of falling compliance
LINE_STEPS = 60  # trials of a line search; two suffice where no friction is dry
FLAT = 0.3  # part of the slope at which a line search ends
STALLED = 4  # Lagrangian steps in a row without progress that end the solve
SLOW = 0.03  # progress of a Lagrangian step that calls for a smaller compliance
SOFTEN = 1e-2  # factor of the compliance then


@inlined
def activity(sy: System, isl: Island, i: int, r: np.ndarray) -> float:
    """Return what tells which linear piece of its law a constraint is on.

    This is the derivative along its first row, or a negative number, by its direction, where dry
    friction slides.
    """
    stiff = isl.C[isl.C_at[i]]
    if stiff == 0.0 and sy.tangent[i] == DISC:
        return -1.0 if r[sy.row[i]] > 0.0 else -2.0
    return stiff


@kernel
def evaluate(sy: System, isl: Island, v: Vectors, d: np.ndarray, rho: float, acts: np.ndarray,
             out: np.ndarray) -> tuple[float, int]:  # fmt: skip
    """Fill ``R = d - sum G' (r(d) - r^k)``; impulses r(d) are left in v.new, derivatives in isl.C.

    Returns:
        Its length, and how many constraints act otherwise than when the matrix was factored.
    """
    combine(isl, d, 0.0, d, out)
    changed = 0
    for i in isl.member:
        first, end, at = sy.row[i], sy.row[i + 1], isl.C_at[i]
        speeds(sy, i, d, v.u)
        for k in range(first, end):
            v.u[k] += v.uk[k]
        cone.answer(sy, i, v.u, v.r, rho, v.new, isl.C, at)
        if activity(sy, isl, i, v.new) != acts[i]:
            changed += 1
        for k in range(first, end):
            v.u[k] = v.r[k] - v.new[k]
        add_impulse(sy, i, v.u, out)
    return norm(isl, out), changed


@kernel
def factor(sy: System, isl: Island, size: int, CG_work: np.ndarray, r: np.ndarray,
           acts_out: np.ndarray) -> None:  # fmt: skip
    """Factor the Newton matrix with the derivatives isl.C at impulses r; note what acts."""
    assemble(sy, isl, size, CG_work)
    block_lu.factor(isl.pattern, isl.trees, isl.A, TINY)
    for i in isl.member:
        acts_out[i] = activity(sy, isl, i, r)


@kernel
def pieces_of_states(sy: System, isl: Island, state: np.ndarray, speed: np.ndarray,
                     r_inout: np.ndarray) -> None:  # fmt: skip
    """Let dry friction that slides have its limit, in the direction that it had or that it opposes.

    Constraints whose states are not known hold if they close, or cannot open.
    """
    for i in isl.member:
        k = sy.row[i]
        if state[i] < 0:
            closes = sy.normal[i] == 0 or speed[k] <= 0.0
            state[i] = STICK if closes else OPEN
        if sy.tangent[i] == DISC and state[i] == SLIDE:
            along = r_inout[k] if r_inout[k] != 0.0 else -speed[k]
            r_inout[k] = sy.bound[i] if along > 0.0 else -sy.bound[i]


@kernel
def states_of_pieces(sy: System, isl: Island, state_out: np.ndarray) -> None:
    """Fill the states that the derivatives isl.C belong to."""
    for i in isl.member:
        state_out[i] = STICK
        if isl.C[isl.C_at[i]] == 0.0 and sy.normal[i] == 1:
            state_out[i] = OPEN
        elif isl.C[isl.C_at[i]] == 0.0 and sy.tangent[i] == DISC:
            state_out[i] = SLIDE


@kernel
def stay_on_pieces(sy: System, isl: Island, v: Vectors) -> None:
    """Fill v.d with the change of motion if no constraint leaves the linear piece it is on.

    The matrix holds its factors, isl.C the derivatives, v.uk the speeds at the impulses v.r, and
    v.new impulses on these pieces.
    """
    fill(isl, v.d, 0.0)
    for i in isl.member:
        first, at = sy.row[i], isl.C_at[i]
        dim = sy.row[i + 1] - first
        for e in range(dim):
            k, stiff = first + e, isl.C[at + e * (dim + 1)]
            change = -stiff * v.uk[k]
            if stiff == 0.0:
                slides = sy.tangent[i] == DISC and sy.normal[i] == 0
                change = (v.new[k] if slides else 0.0) - v.r[k]
            elif sy.tangent[i] == LINEAR and e >= sy.normal[i] and sy.R[k] > 0.0:
                change -= v.r[k]
            v.u[k] = change
        add_impulse(sy, i, v.u, v.d)
    block_lu.solve(isl.pattern, isl.trees, isl.A, v.d)


@kernel
def minimise(sy: System, isl: Island, size: int, v: Vectors, CG_work: np.ndarray,
             acts: np.ndarray, rho: float, target: float) -> tuple[int, int]:  # fmt: skip
    """Solve for one compliance, from the change of motion v.d on; impulses are left in v.new.

    Returns:
        How many constraints act otherwise than when the matrix was last factored, and how often
        it was.
    """
    miss, changed = evaluate(sy, isl, v, v.d, rho, acts, v.residual)
    count = 0
    for _ in range(NEWTON_STEPS):
        if not miss > target:
            break
        if changed > 0:
            factor(sy, isl, size, CG_work, v.new, acts)
            count += 1
        combine(isl, v.residual, 0.0, v.residual, v.step)
        block_lu.solve(isl.pattern, isl.trees, isl.A, v.step)
        slope, old = -product(isl, v.residual, v.step), miss
        low, low_slope, high, high_slope, t = 0.0, slope, np.inf, 0.0, 1.0
        least, best, accepted = old, 0.0, False
        for trial in range(LINE_STEPS):
            combine(isl, v.d, -t, v.step, v.trial)
            miss, changed = evaluate(sy, isl, v, v.trial, rho, acts, v.trial_residual)
            if changed == 0 and t == 1.0:  # exact on these pieces: what is left is rounding
                accepted = miss <= old
                break
            now = -product(isl, v.trial_residual, v.step)
            if abs(now) <= FLAT * abs(slope):
                accepted = True
                break
            if miss < least:
                least, best = miss, t
            if now < 0.0:
                low, low_slope, high_slope = t, now, 0.5 * high_slope
            else:
                high, high_slope, low_slope = t, now, 0.5 * low_slope
            if high == np.inf:
                t *= 2.0
            elif trial % 4 == 3:
                t = 0.5 * (low + high)
            else:  # regula falsi, where a side that stays counts half (Illinois)
                t = low - low_slope * (high - low) / (high_slope - low_slope)
        if not accepted:  # rounding decides: the best of the trials, if any is better
            t = best
            combine(isl, v.d, -t, v.step, v.trial)
            miss, changed = evaluate(sy, isl, v, v.trial, rho, acts, v.trial_residual)
        combine(isl, v.trial, 0.0, v.trial, v.d)
        combine(isl, v.trial_residual, 0.0, v.trial_residual, v.residual)
        if t == 0.0 or (changed == 0 and t == 1.0 and miss > 0.1 * old):
            break
    return changed, count


@kernel
def contradiction(sy: System, isl: Island, v: Vectors, o: Numbers, sigma: float) -> bool:
    """Return whether the change of impulses from v.r to v.new proves that there is no answer.

    Only rows that must be met take part: normals, held and rigid ones. What is missed by less than
    the certificate, relatively, is rounding.
    """
    gap = size = 0.0
    fill(isl, v.trial, 0.0)
    for i in isl.member:
        for k in range(sy.row[i], sy.row[i + 1]):
            v.u[k] = 0.0
            change = v.new[k] - v.r[k]
            if k == sy.row[i] and sy.normal[i] == 1:
                v.u[k] = max(change, 0.0)
            elif sy.tangent[i] == HELD or (sy.tangent[i] == LINEAR and sy.R[k] == 0.0):
                v.u[k] = change
            gap += sy.c[k] * v.u[k]
            size += v.u[k] * v.u[k]
        add_impulse(sy, i, v.u, v.trial)
    return gap > o.certificate * sigma * np.sqrt(size) and (
        o.contradicts * gap > sigma * norm(isl, v.trial)
    )


@kernel
def try_states(sy: System, isl: Island, size: int, v: Vectors, CG_work: np.ndarray,
               acts_work: np.ndarray, kept_work: np.ndarray, state: np.ndarray, o: Numbers,
               sigma: float) -> tuple[float, int]:  # fmt: skip
    """Solve for likely states; where that is no answer, restore them and begin without impulses.

    Dry friction then opposes the free motion.

    Returns:
        The relative residual, infinite if that is no answer, and the factorisations.
    """
    for i in isl.member:
        acts_work[i] = state[i]
    relative_speeds(sy, isl, sy.before, v.u)  # dry friction goes on as it did
    miss, count = search_states(
        sy, isl, size, v, CG_work, state, o, sigma, o.active_compliance, SYSTEMS, 0, kept_work
    )
    if miss <= o.certificate:
        return miss, count
    for i in isl.member:
        state[i] = int(acts_work[i])
        for k in range(sy.row[i], sy.row[i + 1]):
            v.r[k] = v.new[k] = 0.0
    certify(sy, isl, v.r, v.y, v.uk)
    pieces_of_states(sy, isl, state, v.uk, v.new)
    return np.inf, count


@kernel
def solve_convex(sy: System, isl: Island, size: int, v: Vectors, CG_work: np.ndarray,
                 acts: np.ndarray, kept_work: np.ndarray, state: np.ndarray, likely: bool,
                 o: Numbers) -> tuple[float, int]:  # fmt: skip
    """Solve an island without Coulomb friction, from the states that are likely.

    Args:
        sy, isl, size, v, CG_work: the island and work arrays.
        acts: (n,) work: which linear piece of its law each constraint is on.
        kept_work: (rows,) work.
        state: (n,) states; those that are not known are guessed. Filled.
        likely: whether to try these states as they are. Where contacts jam, the impulses of the
            search say more about who does: it shares loads even where there is no answer.
        o: tolerances.

    Returns:
        The relative residual of the impulses, left in v.r with their motion and speeds in v.y and
        v.u, and the factorisations it took.
    """
    store(sy, isl, v.r, v.new)
    for i in isl.member:
        for k in range(sy.row[i], sy.row[i + 1]):
            v.r[k] = 0.0
    rho, exact = o.active_compliance, rounding(isl)
    least = certify(sy, isl, v.r, v.y, v.uk)
    if least <= 0.1 * exact:  # the free motion obeys all laws
        store(sy, isl, v.uk, v.u)
        read_states(sy, isl, v.r, v.u, 0.0, state)
        return least, 0
    pieces_of_states(sy, isl, state, v.uk, v.new)
    sigma = scale_of(sy, isl, sy.y0, v.r)
    total = 0
    least = np.inf
    if likely:
        least, total = try_states(sy, isl, size, v, CG_work, acts, kept_work, state, o, sigma)
    if least <= o.certificate:
        read_states(sy, isl, v.r, v.u, 0.0, state)
        return least, total
    stalled, slow, least, miss, changed = 0, 0, np.inf, 1.0, 1
    for _ in range(LAGRANGIAN_STEPS):
        if changed > 0:
            derive(sy, isl, state, v.r, v.uk, rho)
            factor(sy, isl, size, CG_work, v.new, acts)
            total += 1
        stay_on_pieces(sy, isl, v)
        target = max(0.01 * exact, o.settled * min(miss, 1.0)) * sigma
        changed, count = minimise(sy, isl, size, v, CG_work, acts, rho, target)
        total += count
        states_of_pieces(sy, isl, state)
        before, miss = miss, certify(sy, isl, v.new, v.y, v.uk)
        stalled = 0 if miss < 0.5 * least else stalled + 1
        if miss < least:
            store(sy, isl, v.new, v.best)
            least = miss
        certified = least <= o.certificate
        if least <= 0.1 * exact or not miss < np.inf or stalled == (1 if certified else STALLED):
            break
        if not certified and contradiction(sy, isl, v, o, sigma):
            break
        slow = slow + 1 if miss > SLOW * before else 0
        if slow > 0 and (slow % 2 == 0 or rho == o.active_compliance):
            rho = max(SOFTEN * rho, o.least_compliance)
            changed += 1
        store(sy, isl, v.new, v.r)
    store(sy, isl, v.best, v.r)
    if least < miss or not miss < np.inf:
        least = certify(sy, isl, v.r, v.y, v.uk)
    store(sy, isl, v.uk, v.u)
    read_states(sy, isl, v.r, v.u, 0.0, state)
    return least, total
