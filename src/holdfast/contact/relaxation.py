r"""Coulomb's law relaxed to a convex one: whether friction can hold what it is to hold.

With De Saxcé's shift :math:`s = \mu |u_T|` Coulomb's law is

.. math:: K^* \ni u + s\, e_N \perp r \in K, \qquad r = P_K\left(r - u - s\, e_N\right) .

If s is kept as it is, this is a convex problem: where targets do not contradict each other it has
one motion, and Newton's method with compliance about the last impulses finds it. It begins with
:math:`s = 0`. If nothing slides in the answer, it obeys Coulomb's law: of all motions it is the one
that friction takes most energy out of, and impulses may be anywhere in their cones. So are those
that hold a load by contacts that jam, which no path of compliance leads to. Where something slides,
s is taken from the answer, and the next problem is nearer to Coulomb's law.
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
    certify,
    combine,
    fill,
    norm,
    product,
    rebuild,
    residual,
)
from holdfast.contact.options import Numbers
from holdfast.contact.proximal import newton_step, store
from holdfast.contact.system import DISC, System
from holdfast.linalg.vectors import square

FIRST, LATER = 1.0, 1e-2  # compliance to begin with, from nothing and from the problem before
STIFFER = 0.1  # factor of it from step to step
PROXIMAL_STEPS, NEWTON_STEPS = 16, 40  # of one problem; of one of these
LINE_STEPS = 30  # trials of a line search
FLAT = 0.3  # part of the slope at which it ends
ROUNDING = 10.0 * EPS  # of speeds, relative to the change of the motion
INEXACT = 0.01  # part of what Coulomb's law is missed by to which a problem is solved
SETTLED = 1e-3  # part of the certificate to which each is solved


@kernel
def take_shifts(sy: System, isl: Island, u: np.ndarray, shift_out: np.ndarray) -> None:
    """Fill the shifts of speeds u."""
    for i in isl.member:
        total = 0.0
        for k in range(sy.row[i] + 1, sy.row[i + 1]):
            total += square(u[k])
        shift_out[i] = sy.mu[i] * np.sqrt(total)


@kernel
def minimise(sy: System, isl: Island, size: int, v: Vectors, CG_work: np.ndarray, rho: float,
             target: float) -> int:  # fmt: skip
    """Solve one proximal step, from no change v.d on; return the Newton steps taken.

    R is the gradient of a convex function. A Newton step ends where that is nearly flat along it.
    """
    fill(isl, v.d, 0.0)
    miss = residual(sy, isl, v, v.d, rho, v.residual, True)
    for count in range(NEWTON_STEPS):
        if not miss > max(target, ROUNDING * norm(isl, v.d) / rho):
            return count
        newton_step(sy, isl, size, v, CG_work)
        slope = product(isl, v.residual, v.step)
        low, high, t = 0.0, np.inf, 1.0
        for _ in range(LINE_STEPS):
            combine(isl, v.d, -t, v.step, v.trial)
            miss = residual(sy, isl, v, v.trial, rho, v.trial_residual, True)
            now = product(isl, v.trial_residual, v.step)
            if abs(now) <= FLAT * slope:
                break
            if now > 0.0:
                low = t
            else:
                high = t
            t = 0.5 * (low + high) if high < np.inf else 2.0 * t
        combine(isl, v.trial, 0.0, v.trial, v.d)
        combine(isl, v.trial_residual, 0.0, v.trial_residual, v.residual)
        if t * norm(isl, v.step) <= target:
            return count + 1
    return NEWTON_STEPS


@kernel
def solve_relaxed(sy: System, isl: Island, size: int, v: Vectors, CG_work: np.ndarray,
                  shift: np.ndarray, o: Numbers, sigma: float, begins: bool) -> int:  # fmt: skip
    """Solve the problem with these shifts from the impulses v.r on; return the factorisations.

    Its impulses are left in v.r, their motion and speeds in v.y and v.u.
    """
    rho, total = FIRST if begins else LATER, 0
    target = SETTLED * o.certificate * sigma
    rebuild(sy, isl, v.r, v.y, v.u)
    for _ in range(PROXIMAL_STEPS):
        store(sy, isl, v.u, v.uk)
        for i in isl.member:
            if sy.normal[i] == 1 and sy.tangent[i] == DISC:
                v.uk[sy.row[i]] += shift[i]
        total += max(minimise(sy, isl, size, v, CG_work, rho, target), 1)
        store(sy, isl, v.new, v.r)
        miss = certify(sy, isl, v.r, v.y, v.u)
        if norm(isl, v.d) <= max(target, INEXACT * miss * sigma):
            break
        rho = max(STIFFER * rho, o.little_compliance)
    return total
