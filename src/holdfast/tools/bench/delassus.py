r"""A contact problem as solvers of the field take it: Delassus matrix, free speeds, coefficients.

.. math::
    u = W r + q, \qquad K^*_\mu \ni u + \mu |u_T| e_N \perp r \in K_\mu

with three rows (N, S, T) per contact. Rows of a contact are divided by the length of the longest,
and speeds by that of the free motion, so that an absolute tolerance means the same to all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular


@dataclass(frozen=True)
class Delassus:
    """The matrix form.

    Attributes:
        W: (3n, 3n).
        q: (3n,) free speeds.
        mu: (n,) coefficients.
        scale: (n,) what turns impulses r of this form into those of the problem.
    """

    W: np.ndarray
    q: np.ndarray
    mu: np.ndarray
    scale: np.ndarray

    def residual(self, r: np.ndarray) -> float:
        """Largest entry of the natural map: 0 where r solves the problem."""
        r = r.reshape(-1, 3)
        u = (self.W @ r.ravel() + self.q).reshape(-1, 3)
        u[:, 0] += self.mu * np.linalg.norm(u[:, 1:], axis=1)
        return float(np.abs(r - project(r - u, self.mu)).max(initial=0.0))


def project(x: np.ndarray, mu: np.ndarray) -> np.ndarray:
    """Each row (normal, two tangents) onto its friction cone."""
    normal, size = x[:, 0], np.linalg.norm(x[:, 1:], axis=1)
    inside, polar = size <= mu * normal, mu * size <= -normal
    on_edge = (normal + mu * size) / (1.0 + mu**2)
    shrink = mu * on_edge / np.where(size > 0.0, size, 1.0)
    edge = np.column_stack([on_edge, x[:, 1:] * shrink[:, None]])
    return np.where(inside[:, None], x, np.where(polar[:, None], 0.0, edge))


def delassus(problem: Any) -> Delassus:
    """Form the matrix of a problem that has contacts with isotropic friction and nothing else."""
    p, n = problem, problem.n
    L = np.linalg.cholesky(p.inertia)
    G = np.stack([p.N, p.S, p.T], axis=1).reshape(3 * n, p.m)
    G = solve_triangular(L, G.T, lower=True).T
    free = L.T @ p.free_velocity
    d = np.linalg.norm(G, axis=1).reshape(n, 3).max(axis=1)
    G = G / np.repeat(d, 3)[:, None]
    c = np.zeros((n, 3))
    c[:, 0] = p.c_N / d
    sigma = max(float(np.linalg.norm(free)), float(np.abs(c).max(initial=0.0))) or 1.0
    return Delassus(G @ G.T, (G @ free - c.ravel()) / sigma, np.array(p.mu), sigma / d)


def fits(problem: Any) -> bool:
    """Whether a problem has contacts with isotropic friction and nothing else."""
    p = problem
    others = any(len(rows) for rows in (p.J, p.U, p.D, p.R))
    return p.n > 0 and not others and p.mu is not None and p.mu.ndim == 1
