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

PROXIMAL = (1e-2, 1e-4, 1.0)  # weights of daqp's proximal term to try; H has a diagonal of one
TIGHT = {"primal_tol": 1e-12, "dual_tol": 1e-12, "eta_prox": 1e-13}
UNBOUNDED = 1e30  # what daqp takes for infinite


class Optimum(NamedTuple):
    """Variables x, multipliers y of ``G x + g >= 0``, and how far they are from being optimal."""

    x: np.ndarray
    y: np.ndarray
    pivots: int
    residual: float


class _Scaled(NamedTuple):
    """A program in pure numbers."""

    H: np.ndarray
    q: np.ndarray
    G: np.ndarray
    g: np.ndarray

    def judge(self, x: np.ndarray, y: np.ndarray, pivots: int) -> Optimum:
        """How far x and multipliers y are from complementing gradient and slack; inf for NaN."""
        H, q, G, g = self
        w = np.concatenate([H @ x + q - G.T @ y, G @ x + g])
        sizes = np.concatenate([
            np.abs(H) @ x + np.abs(q) + np.abs(G).T @ y, np.abs(G) @ x + np.abs(g)
        ])  # fmt: skip
        z = np.concatenate([x / max(x.max(initial=0.0), 1.0), y / max(y.max(initial=0.0), 1.0)])
        worst = float(np.abs(np.minimum(z, w / np.maximum(sizes, 1.0))).max(initial=0.0))
        return Optimum(x, y, pivots, worst if np.isfinite(worst) else np.inf)


def minimise(
    H: np.ndarray,
    q: np.ndarray,
    G: np.ndarray,
    g: np.ndarray,
    unit: np.ndarray,
    scale: float,
    solver: str,
    certificate: float,
) -> Optimum:
    """Solve the quadratic program.

    Args:
        H: (k, k) symmetric positive semidefinite.
        q: (k,) linear part.
        G: (r, k) rows of the inequalities.
        g: (r,) their constant part.
        unit: (k,) what x is measured in.
        scale: square root of the size of the objective.
        solver: "qp" or "lemke".
        certificate: residual to reach.
    """
    G_, size = G * unit, scale**2
    row = np.abs(G_).max(axis=1, initial=0.0)
    row = np.where(row > 0.0, row, 1.0)
    program = _Scaled(H * unit[:, None] * unit / size, q * unit / size, G_ / row[:, None], g / row)
    if solver == "lemke":
        best = _lemke(program, certificate)
    else:
        best = _daqp(program, PROXIMAL[0])
        for eps in PROXIMAL[1:]:
            if best.residual > certificate:
                best = min(best, _daqp(program, eps), key=lambda optimum: optimum.residual)
    return best._replace(x=best.x * unit, y=best.y * size / row)


def _daqp(program: _Scaled, eps: float) -> Optimum:
    import daqp

    k, r = len(program.q), len(program.g)
    lower = np.concatenate([np.zeros(k), -program.g])
    x, _, _, info = daqp.solve(
        program.H, program.q, program.G, np.full(k + r, UNBOUNDED), lower, eps_prox=eps, **TIGHT
    )
    y = np.maximum(-info["lam"][k:], 0.0)
    return program.judge(np.maximum(x, 0.0), y, int(info["iterations"]))


def _lemke(program: _Scaled, certificate: float) -> Optimum:
    H, q, G, g = program
    F = np.block([[H, -G.T], [G, np.zeros((len(g), len(g)))]])
    outcome = lemke(F, np.concatenate([q, g]), lcp.Options(certificate=certificate))
    return program.judge(outcome.z[: len(q)], outcome.z[len(q) :], outcome.pivots)
