r"""The laws of constraints: impulses with compliance, their derivatives, and the natural map.

With compliance :math:`\rho` about impulses :math:`r^k` a constraint answers a speed u by

.. math::

    r_N = \max(0, r_N^k - u_N/\rho), \qquad p = r_T^k - u_T/\rho, \qquad
    r_T = p \min(1, (\mu r_N + b) / |p|)

:math:`r(u) = r^k` at the law itself, whatever the compliance. The derivative
:math:`C = -\partial r/\partial u` is symmetric but for the column :math:`\mu q/\rho` of a contact
that slides, :math:`q = p/|p|`: more pressure, more friction.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

import numpy as np

from holdfast._jit import inlined
from holdfast.contact.arrays import ContactState
from holdfast.contact.system import DISC, HELD, LINEAR, System
from holdfast.linalg.vectors import square

OPEN, STICK, SLIDE = int(ContactState.OPEN), int(ContactState.STICK), int(ContactState.SLIDE)


@inlined
def answer(sy: System, i: int, u: np.ndarray, rk: np.ndarray, rho: float, r_out: np.ndarray,
           C_out: np.ndarray, at: int) -> int:  # fmt: skip
    """Fill impulses and derivative of constraint i; return its state.

    Args:
        sy, i: the constraint.
        u, rk: (rows,) speeds; impulses that the compliance is about.
        rho: compliance of rigid rows.
        r_out: (rows,).
        C_out, at: (dim, dim) from `at` on, row by row.
    """
    first, end = sy.row[i], sy.row[i + 1]
    dim, stiff = end - first, 1.0 / rho
    for k in range(at, at + dim * dim):
        C_out[k] = 0.0
    state, begin, push = OPEN, first, False
    if sy.normal[i] == 1:
        begin = first + 1
        pressure = rk[first] - u[first] * stiff
        push = pressure > 0.0
        r_out[first] = 0.0
        if push:
            r_out[first] = pressure
            C_out[at] = stiff
            state = SLIDE
    kind = sy.tangent[i]
    if kind == DISC:
        radius = sy.bound[i]
        if push:
            radius += sy.mu[i] * r_out[first]
        size = 0.0
        for k in range(begin, end):
            p = rk[k] - u[k] * stiff
            r_out[k] = p
            size += p * p
        size = np.sqrt(size)
        if radius <= 0.0:
            for k in range(begin, end):
                r_out[k] = 0.0
        elif size <= radius:
            state = STICK
            for e in range(begin - first, dim):
                C_out[at + e * dim + e] = stiff
        else:
            state = SLIDE
            for k in range(begin, end):
                r_out[k] /= size  # q, for now
            k = radius / size * stiff
            for e in range(begin - first, dim):
                for f in range(begin - first, dim):
                    C_out[at + e * dim + f] = -k * r_out[first + e] * r_out[first + f]
                C_out[at + e * dim + e] += k
                if push:
                    C_out[at + e * dim] = sy.mu[i] * r_out[first + e] * stiff
            for k in range(begin, end):
                r_out[k] *= radius
    elif kind == HELD:
        state = STICK
        for k in range(begin, end):
            r_out[k] = rk[k] - u[k] * stiff
            C_out[at + (k - first) * (dim + 1)] = stiff
    elif kind == LINEAR:
        if sy.normal[i] == 0:
            state = STICK
        for k in range(begin, end):
            soft = 1.0 / sy.R[k] if sy.R[k] > 0.0 else stiff
            r_out[k] = -u[k] * soft if sy.R[k] > 0.0 else rk[k] - u[k] * soft
            C_out[at + (k - first) * (dim + 1)] = soft
    else:
        for k in range(begin, end):
            r_out[k] = 0.0
    return state


@inlined
def project(x: float, pull: float, mu: float) -> tuple[float, float]:
    """Project a point of normal x and tangential length `pull` on the cone.

    Returns:
        Its normal part, and what to multiply the tangential part by.
    """
    if x >= 0.0 and pull <= mu * x:
        return x, 1.0
    if mu * pull <= -x:
        return 0.0, 0.0
    x = (x + mu * pull) / (1.0 + mu * mu)
    return x, mu * x / pull


@inlined
def relaxed_answer(sy: System, i: int, u: np.ndarray, rk: np.ndarray, rho: float,
                   r_out: np.ndarray, C_out: np.ndarray, at: int) -> None:  # fmt: skip
    """Fill impulses and derivative of a contact with Coulomb friction under the relaxed law.

    This is ``r = P(r^k - u / rho)``, P the projection on its cone: the derivative of a convex
    function. Arguments are those of `answer`.
    """
    first, end, mu = sy.row[i], sy.row[i + 1], sy.mu[i]
    dim, stiff, pull = end - first, 1.0 / rho, 0.0
    for k in range(at, at + dim * dim):
        C_out[k] = 0.0
    for k in range(first, end):
        r_out[k] = rk[k] - u[k] * stiff
        pull += square(r_out[k]) if k > first else 0.0
    pull = np.sqrt(pull)
    x, share = project(r_out[first], pull, mu)
    r_out[first] = x
    if share == 1.0:
        for e in range(dim):
            C_out[at + e * (dim + 1)] = stiff
    elif share > 0.0:
        along = stiff / (1.0 + mu * mu)
        across = share * stiff
        C_out[at] = along
        for e in range(1, dim):
            q = r_out[first + e] / pull
            C_out[at + e] = C_out[at + e * dim] = along * mu * q
            for f in range(1, dim):
                C_out[at + e * dim + f] = (along * mu * mu - across) * q * r_out[first + f] / pull
            C_out[at + e * (dim + 1)] += across
    for k in range(first + 1, end):
        r_out[k] *= share


@inlined
def natural_map(sy: System, i: int, u: np.ndarray, r: np.ndarray) -> float:
    """Return how far r is from the law at speed u: the residual of De Saxcé's projection equation.

    A contact with Coulomb friction is solved where ``r = P(r - u - mu |u_T| e_N)``, P the
    projection on its cone.
    """
    first, end = sy.row[i], sy.row[i + 1]
    begin, miss, kind = first, 0.0, sy.tangent[i]
    speed = pull = 0.0
    if sy.normal[i] == 1:
        begin = first + 1
        x = r[first] - u[first]
        if kind == DISC:
            mu = sy.mu[i]
            for k in range(begin, end):
                speed += u[k] * u[k]
                pull += square(r[k] - u[k])
            x -= mu * np.sqrt(speed)
            pull = np.sqrt(pull)
            x, share = project(x, pull, mu)
            miss = square(r[first] - x)
            for k in range(begin, end):
                miss += square(r[k] - share * (r[k] - u[k]))
            return np.sqrt(miss)
        miss = square(r[first] - max(x, 0.0))
    if kind == DISC:
        for k in range(begin, end):
            pull += square(r[k] - u[k])
        pull = np.sqrt(pull)
        share = 1.0 if pull <= sy.bound[i] else sy.bound[i] / pull
        for k in range(begin, end):
            miss += square(r[k] - share * (r[k] - u[k]))
    elif kind == HELD:
        for k in range(begin, end):
            miss += u[k] * u[k]
    elif kind == LINEAR:
        for k in range(begin, end):
            miss += square((u[k] + sy.R[k] * r[k]) / max(1.0, sy.R[k]))
    else:
        for k in range(begin, end):
            miss += r[k] * r[k]
    return np.sqrt(miss)
