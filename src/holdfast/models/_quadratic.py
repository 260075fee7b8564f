r"""Convex quadratic programs over non-negative variables, with a singular Hessian.

.. math:: \min_{x \ge 0} \; \tfrac12 x^T H x + q^T x \quad \text{subject to} \quad G x + g \ge 0

H is singular as soon as contacts are redundant. Two solvers can do with that: daqp with proximal
steps, which makes H definite and takes the change back step by step, and Lemke's method on the
optimality conditions, a complementarity problem with the semidefinite matrix [H, -G'; G, 0]. Both
see the problem scaled to pure numbers, and both are judged by the same residual.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from holdfast import lcp
from holdfast.lcp.lemke import lemke

PROXIMAL = (1e-2, 1e-4, 1.0)  # weight of daqp's proximal term; H is scaled to unit diagonal
TIGHT = {"primal_tol": 1e-12, "dual_tol": 1e-12, "eta_prox": 1e-13}
UNBOUNDED = 1e30  # what daqp takes for infinite


class Optimum(NamedTuple):
    """Variables x, multipliers y of ``G x + g >= 0``, and how far they are from being optimal."""

    x: np.ndarray
    y: np.ndarray
    pivots: int
    residual: float
    status: lcp.Status


def minimise(
    H: np.ndarray,
    q: np.ndarray,
    G: np.ndarray,
    g: np.ndarray,
    scale: float,
    solver: str,
    certificate: float,
    definite: bool = False,
) -> Optimum:
    """Solve the quadratic program.

    Args:
        H: (k, k) symmetric positive semidefinite.
        q: (k,) linear part.
        G: (r, k) rows of the inequalities.
        g: (r,) their constant part.
        scale: square root of the size of the objective; makes x and y pure numbers.
        solver: "qp" or "lemke".
        certificate: residual to reach.
        definite: whether H is, so that daqp needs no proximal steps.
    """
    d = np.sqrt(np.diagonal(H))
    d = np.where(d > 0.0, d, 1.0)
    H_, q_, G_ = H / d[:, None] / d, q / d / scale, G / d
    r = np.abs(G_).max(axis=1, initial=0.0)
    r = np.where(r > 0.0, r, 1.0)
    G_, g_ = G_ / r[:, None], g / r / scale
    if solver == "lemke":
        best = _lemke(H_, q_, G_, g_, certificate)
    else:
        weights = (0.0,) if definite else PROXIMAL
        best = _daqp(H_, q_, G_, g_, weights[0])
        for eps in weights[1:]:
            if best.residual <= certificate:
                break
            other = _daqp(H_, q_, G_, g_, eps)
            best = other if other.residual < best.residual else best
    status = lcp.Status.SOLVED if best.residual <= certificate else lcp.Status.UNCERTIFIED
    return best._replace(x=best.x * scale / d, y=best.y * scale / r, status=status)


def _daqp(H: np.ndarray, q: np.ndarray, G: np.ndarray, g: np.ndarray, eps: float) -> Optimum:
    import daqp

    k, r = len(q), len(g)
    lower = np.concatenate([np.zeros(k), -g])
    x, _, _, info = daqp.solve(
        H, q, G, np.full(k + r, UNBOUNDED), lower, eps_prox=eps, **TIGHT
    )  # fmt: skip
    x, y = np.maximum(x, 0.0), np.maximum(-info["lam"][k:], 0.0)
    return Optimum(x, y, int(info["iterations"]), _residual(H, q, G, g, x, y), lcp.Status.SOLVED)


def _lemke(
    H: np.ndarray, q: np.ndarray, G: np.ndarray, g: np.ndarray, certificate: float
) -> Optimum:
    F = np.block([[H, -G.T], [G, np.zeros((len(g), len(g)))]])
    outcome = lemke(F, np.concatenate([q, g]), lcp.Options(certificate=certificate))
    x, y = outcome.z[: len(q)], outcome.z[len(q) :]
    return Optimum(x, y, outcome.pivots, _residual(H, q, G, g, x, y), outcome.status)


def _residual(
    H: np.ndarray, q: np.ndarray, G: np.ndarray, g: np.ndarray, x: np.ndarray, y: np.ndarray
) -> float:
    """How far x and y are from complementing the gradient and the slack; inf if not finite."""
    gradient, slack = H @ x + q - G.T @ y, G @ x + g
    sizes = np.concatenate([
        np.abs(H) @ x + np.abs(q) + np.abs(G).T @ y, np.abs(G) @ x + np.abs(g)
    ])  # fmt: skip
    w = np.concatenate([gradient, slack]) / np.maximum(sizes, 1.0)
    z = np.concatenate([x / max(x.max(initial=0.0), 1.0), y / max(y.max(initial=0.0), 1.0)])
    worst = float(np.abs(np.minimum(z, w)).max(initial=0.0))
    return worst if np.isfinite(worst) else np.inf
