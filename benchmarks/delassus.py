r"""A contact problem as solvers of the field take it: Delassus matrix, free speeds, coefficients.

.. math::
    u = W r + q, \qquad K^*_\mu \ni u + \mu |u_T| e_N \perp r \in K_\mu

with three rows (N, S, T) per contact. Bilateral rows are eliminated. A limit is a contact without
friction, and where tangents are missing (a limit, a planar contact) an idle coordinate of its own
stands in: what it says, ``u = w r``, is solved by zero. Rows of a contact are divided by the length
of the longest, speeds by :math:`\sigma_0 = \max(|y_0|, |c|)`, so that absolute tolerances of a
solver mean what the judge means. Dry friction of joints, torsion and rolling do not fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import lstsq, solve_triangular

from coulomb_residual import NO_ROW, Array, Impulses


@dataclass(frozen=True)
class Delassus:
    """The matrix form.

    Attributes:
        W: (3k, 3k) Delassus matrix of contacts, then limits.
        q: (3k,) free speeds.
        mu: (k,) coefficients.
        scale: (k,) what turns impulses r of this form into those of the problem.
        contacts: how many of the k are contacts.
    """

    W: Array
    q: Array
    mu: Array
    scale: Array
    contacts: int

    def impulses(self, r: Array) -> Impulses:
        """Those of the problem; rows without effect carry nothing."""
        n = self.contacts
        r = r.reshape(-1, 3) * self.scale[:, None]
        return Impulses(r[:n, 0], r[:n, 1:], np.zeros(0), r[n:, 0], np.zeros(0))


def unfit(problem: Any) -> str:
    """Why a problem has no such form; empty if it has one."""
    if len(problem.D):
        return "dry friction of joints"
    if problem.compliance_J.any():
        return "compliance"
    if problem.mu is not None and problem.mu.ndim == 2:
        return "elliptic cones"
    return "torsion or rolling" if len(problem.R) else ""


def delassus(problem: Any) -> Delassus:
    """Form the matrix."""
    p = problem
    n, k, m = p.n, p.n + len(p.U), p.m
    G = np.zeros((k, 3, m))
    G[:n, 0], G[n:, 0] = p.N, p.U
    if len(p.S):
        G[:n, 1] = p.S
    if len(p.T):
        G[:n, 2] = p.T
    L = np.linalg.cholesky(p.inertia)
    G = _whiten(L, G.reshape(-1, m))
    y0 = L.T @ p.free_velocity
    c = np.zeros((k, 3))
    c[:n, 0], c[n:, 0] = p.c_N, p.c_U
    whole = np.linalg.norm(G, axis=1)
    size = np.linalg.norm(y0)
    if len(p.J):
        J = _whiten(L, p.J)
        y0 = y0 + lstsq(J, p.c_J - J @ y0, cond=NO_ROW)[0]
        _, values, V = np.linalg.svd(J, full_matrices=False)
        V = V[values > NO_ROW * values[0]]
        G = G - (G @ V.T) @ V
    length = np.linalg.norm(G, axis=1)
    idle = length <= 1e-10 * whole.max(initial=0.0)
    d = np.where(idle, 0.0, length).reshape(k, 3).max(axis=1)
    live = d > 0.0
    d[~live] = 1.0
    G[idle] = 0.0
    G /= np.repeat(d, 3)[:, None]
    q = G @ y0 - (c / d[:, None]).ravel()
    sigma = max(size, np.abs(c / d[:, None]).max(initial=0.0)) or 1.0
    W = G @ G.T
    W[idle, idle] = 1.0
    q[idle & (np.arange(3 * k) % 3 > 0)] = 0.0
    mu = np.concatenate([np.zeros(n) if p.mu is None else p.mu, np.zeros(k - n)])
    return Delassus(W, q / sigma, mu, np.where(live, sigma / d, 0.0), n)


def _whiten(L: Array, rows: Array) -> Array:
    return solve_triangular(L, rows.T, lower=True, check_finite=False).T
