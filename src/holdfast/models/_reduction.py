"""Bilateral rows eliminated: what is left for contacts to move.

With ``M = L L'`` and whitened motion ``y = L' x``, the bilateral rows J become ``Jw = J L^-T``. An
independent subset of them (Find-Indices) has a factorisation ``Jw' = Q R`` with orthonormal Q, and
forces z along further rows B leave

    x = x1 + P B' z,   P = L^-T (I - Q Q') L^-1

where x1 is the free motion x0 moved to ``J x1 = c_J``. This is the reduction of the mixed
complementarity problem in the paper, with the square root of P instead of P: nothing is squared
before the LCP matrix itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from holdfast import lcp
from holdfast.models._projection import RANK_TOL, SPANNED, Rows, check_targets
from holdfast.problem import ContactProblem


class Reduced(NamedTuple):
    """Rows as the bilateral rows leave them."""

    columns: np.ndarray  # (m, k) L^-1 B', for the effect of forces along the rows
    left: np.ndarray  # (m, k) their part outside the span of the bilateral rows
    speeds: np.ndarray  # (k,) B x1 - c


class Reduction:
    """Contact forces to motion, with the bilateral rows of a problem eliminated.

    Attributes:
        problem: whose inertia and bilateral rows these are.
        indices: the kept rows of J.
        y1: (m,) whitened motion without contact forces, on the bilateral rows.
    """

    def __init__(self, problem: ContactProblem, x0: np.ndarray, c_J: np.ndarray) -> None:
        from scipy.linalg import solve_triangular

        p = self.problem = problem
        self.x0, self.c_J = x0, c_J
        self.indices = lcp.find_indices(p.M, p.J, rank_tol=RANK_TOL)
        kept = self.indices.J_rows
        self.Q, self.R = np.linalg.qr(self.whitened(p.J[kept]))
        self.y0 = p.cholesky.T @ x0
        self.target = solve_triangular(self.R, c_J[kept], trans=1) if len(kept) else c_J[kept]
        self.y1 = self.y0 + self.Q @ (self.target - self.Q.T @ self.y0)

    def whitened(self, rows: np.ndarray) -> np.ndarray:
        """(m, k) rows in the metric of M^-1, as columns: ``L^-1 B'``."""
        from scipy.linalg import solve_triangular

        if rows.size == 0:
            return rows.T
        return solve_triangular(self.problem.cholesky, rows.T, lower=True)

    def eliminate(self, columns: np.ndarray) -> np.ndarray:
        """The part of whitened columns that the bilateral rows leave."""
        return columns - self.Q @ (self.Q.T @ columns)

    def rows(self, B: np.ndarray, c: np.ndarray | float = 0.0) -> Reduced:
        """Rows B with the bilateral rows eliminated, and ``B x1 - c``.

        What is left of a row in the span of the bilateral ones is rounding, and so is its motion:
        both are set to zero.
        """
        columns = self.whitened(B)
        left = self.eliminate(columns)
        speeds = columns.T @ self.y1 - c
        length = np.linalg.norm(columns, axis=0)
        spanned = np.linalg.norm(left, axis=0) <= SPANNED * length
        left[:, spanned] = 0.0
        size = max(np.linalg.norm(y) for y in (self.y0, self.y1))
        speeds[spanned & (np.abs(speeds) <= SPANNED * length * size)] = 0.0
        return Reduced(columns, left, speeds)

    def motion(self, effect: np.ndarray) -> np.ndarray:
        """(m,) motion for the whitened effect ``L^-1 B' z`` of the contact forces.

        Raises:
            InputError: a redundant bilateral row contradicts the rows that it depends on.
        """
        from scipy.linalg import solve_triangular

        p = self.problem
        if p.m == 0:
            return np.zeros(0)
        y = self.y1 + self.eliminate(effect)
        motion = solve_triangular(p.cholesky.T, y, lower=False)
        none, nothing = np.zeros((0, p.m)), np.zeros(0)
        rows = Rows(p.J, none, none, none, self.c_J, none, nothing, none, nothing)
        check_targets(p.M, rows, self.indices, motion, self.x0)
        return motion

    def bilateral(self, effect: np.ndarray) -> np.ndarray:
        """(j,) forces of the bilateral rows; zero at rows found redundant."""
        from scipy.linalg import solve_triangular

        forces = np.zeros(self.problem.j)
        kept = self.indices.J_rows
        if len(kept):
            missing = self.target - self.Q.T @ (self.y0 + effect)
            forces[kept] = solve_triangular(self.R, missing)
        return forces
