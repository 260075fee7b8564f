r"""The answer for given states of the contacts: one linear system, and its refinement.

When it is known which constraints are open, stick and slide, the law is linear but for the
direction of sliding. With a small compliance about zero,

.. math:: (I + \sum G_i^T C_i G_i)\, d = -\sum G_i^T C_i u_i^0, \qquad y = y^0 + d

gives the motion, and impulses that share the load in the way of equal springs: of all impulses
that make this motion the ones of least squares. Proximal steps with the same factors then take the
compliance out. The answer depends on nothing but the states, so every way to find those leads to
the same one.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

import numpy as np

from holdfast._jit import kernel
from holdfast.contact import cone
from holdfast.contact.cone import OPEN, SLIDE, STICK
from holdfast.contact.newton import (
    Island,
    Vectors,
    assemble,
    certify,
    combine,
    fill,
    relative_speeds,
    residual,
)
from holdfast.contact.options import Numbers
from holdfast.contact.proximal import TINY, begin_at, newton_step, store
from holdfast.contact.system import DISC, HELD, LINEAR, System, add_impulse
from holdfast.linalg import block_lu

NEWTON = 6  # steps of Newton's method with given states; more means that the states are wrong
REFINE = 12  # proximal steps with the same factors


@kernel
def derive(sy: System, isl: Island, state: np.ndarray, r: np.ndarray, rho: float) -> None:
    """Fill the derivatives C of constraints in these states; friction slides against r."""
    stiff = 1.0 / rho
    for i in isl.member:
        first, end, at = sy.row[i], sy.row[i + 1], isl.C_at[i]
        dim = end - first
        for k in range(at, at + dim * dim):
            isl.C[k] = 0.0
        begin = 0
        if sy.normal[i] == 1:
            begin = 1
            if state[i] != OPEN:
                isl.C[at] = stiff
        kind = sy.tangent[i]
        if kind == DISC and state[i] == SLIDE and sy.normal[i] == 1:
            size = 0.0
            for k in range(first + 1, end):
                size += r[k] * r[k]
            if size > 0.0:
                size = sy.mu[i] * stiff / np.sqrt(size)
            for e in range(1, dim):
                isl.C[at + e * dim] = size * r[first + e]
        elif kind == HELD or (kind == DISC and state[i] == STICK):
            for e in range(begin, dim):
                isl.C[at + e * dim + e] = stiff
        elif kind == LINEAR:
            for e in range(begin, dim):
                soft = sy.R[first + e]
                isl.C[at + e * dim + e] = 1.0 / soft if soft > 0.0 else stiff


@kernel
def linear_motion(sy: System, isl: Island, size: int, v: Vectors, CG_work: np.ndarray,
                  state: np.ndarray) -> None:  # fmt: skip
    """Fill v.d with the change of motion for the derivatives in isl.C, about zero impulses.

    Dry friction that slides is a given impulse.
    """
    assemble(sy, isl, size, CG_work)
    block_lu.factor(isl.pattern, isl.count, isl.A, TINY)
    fill(isl, v.d, 0.0)
    for i in isl.member:
        first, at = sy.row[i], isl.C_at[i]
        dim = sy.row[i + 1] - first
        for e in range(dim):
            total = 0.0
            for f in range(dim):
                total -= isl.C[at + e * dim + f] * v.uk[first + f]
            v.new[first + e] = total
        if sy.normal[i] == 0 and sy.tangent[i] == DISC and state[i] == SLIDE:
            v.new[first] = sy.bound[i] if v.r[first] > 0.0 else -sy.bound[i]
        add_impulse(sy, i, v.new, v.d)
    block_lu.solve(isl.pattern, isl.count, isl.A, v.d)


@kernel
def solve_states(sy: System, isl: Island, size: int, v: Vectors, CG_work: np.ndarray,
                 radius_work: np.ndarray, state: np.ndarray, o: Numbers,
                 sigma: float) -> tuple[float, int]:  # fmt: skip
    """Solve for constraints in these states, with friction about against v.r; see the module.

    Returns:
        The relative residual of the impulses, left in v.r, and how many factorisations it took.
    """
    rho = o.active_compliance
    derive(sy, isl, state, v.r, rho)
    relative_speeds(sy, isl, sy.y0, v.uk)
    linear_motion(sy, isl, size, v, CG_work, state)
    for i in isl.member:
        for k in range(sy.row[i], sy.row[i + 1]):
            v.r[k] = 0.0
    count = 1
    miss = residual(sy, isl, v, v.d, rho, radius_work, False, v.residual)
    rough = 1e-9 * sigma  # what compliance leaves is more than that
    while miss > rough and count < NEWTON:
        if not miss < 1e3 * sigma:
            return np.inf, count
        newton_step(sy, isl, size, v, CG_work)
        count += 1
        combine(isl, v.d, -1.0, v.step, v.d)
        old = miss
        miss = residual(sy, isl, v, v.d, rho, radius_work, False, v.residual)
        if miss > 10.0 * old:
            return np.inf, count
    if miss > 1e-6 * sigma:
        return np.inf, count
    store(sy, isl, v.new, v.r)
    least = certify(sy, isl, v.r, v.y, v.u)
    for _ in range(REFINE):
        if least <= o.stop:
            break
        begin_at(sy, isl, v)
        miss = residual(sy, isl, v, v.d, rho, radius_work, False, v.residual)
        combine(isl, v.residual, 0.0, v.residual, v.step)
        block_lu.solve(isl.pattern, isl.count, isl.A, v.step)
        combine(isl, v.d, -1.0, v.step, v.d)
        now = residual(sy, isl, v, v.d, rho, radius_work, False, v.residual)
        if now > 0.1 * miss and now > 1e-3 * o.stop * sigma:  # other factors
            newton_step(sy, isl, size, v, CG_work)
            count += 1
            combine(isl, v.d, -1.0, v.step, v.d)
            now = residual(sy, isl, v, v.d, rho, radius_work, False, v.residual)
        store(sy, isl, v.new, v.best)
        miss = certify(sy, isl, v.best, v.y, v.u)
        if not miss < 0.7 * least:
            if miss < least:
                store(sy, isl, v.best, v.r)
                least = miss
            break
        store(sy, isl, v.best, v.r)
        least = miss
    return least, count


@kernel
def read_states(sy: System, isl: Island, r: np.ndarray, u: np.ndarray, state_out: np.ndarray,
                ) -> None:  # fmt: skip
    """Fill the states that impulses and speeds are in."""
    for i in isl.member:
        first, end = sy.row[i], sy.row[i + 1]
        kind = sy.tangent[i]
        state_out[i] = STICK
        if sy.normal[i] == 1 and not r[first] > 0.0:
            state_out[i] = OPEN
        elif kind == DISC:
            begin = first + sy.normal[i]
            limit, size, pull = sy.bound[i], 0.0, 0.0
            if sy.normal[i] == 1:
                limit += sy.mu[i] * r[first]
            for k in range(begin, end):
                size += r[k] * r[k]
                pull += (r[k] - u[k]) ** 2
            if limit <= 0.0 or max(size, pull) >= limit * limit * (1.0 - 1e-13):
                state_out[i] = SLIDE
        elif sy.normal[i] == 1 and kind != HELD and end > first + 1:
            state_out[i] = SLIDE


__all__ = ["cone", "read_states", "solve_states"]
