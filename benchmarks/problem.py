r"""A contact problem as the benchmarks hold it: structured for us, dense for the peers.

Every problem is the projection

.. math::
    \min_x \tfrac12 (x - v)^T M (x - v) \quad \text{subject to} \quad N x + b \ge 0

whose multipliers z solve the LCP ``w = N M^-1 N' z + N v + b``. ``M`` is dense or a stack of
blocks; ``N`` is dense or lists, per contact, the blocks it touches and its values there.

Nothing here is timed. Whatever a solver wants as *input* (its memory order, bounds, the linear
term of a QP) is made once and kept, so that a timed call holds only the solver's own work.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class DenseForm:
    """The same problem in the dense layouts that QP solvers take.

    Attributes:
        M: inertia, (m, m).
        N: contact rows, (n, m), C order.
        v: free motion, (m,).
        b: offsets of the rows, (n,).
    """

    M: Array
    N: Array
    v: Array
    b: Array

    @cached_property
    def N_fortran(self) -> Array:
        """Contact rows in Fortran order."""
        return np.asfortranarray(self.N)

    @cached_property
    def M_fortran(self) -> Array:
        """Inertia in Fortran order."""
        return np.asfortranarray(self.M)

    @cached_property
    def q(self) -> Array:
        """Linear term of ``x' M x / 2 + q' x``: minus the free momentum."""
        return -(self.M @ self.v)

    @cached_property
    def momentum(self) -> Array:
        """Free momentum ``M v``."""
        return self.M @ self.v

    @cached_property
    def lower(self) -> Array:
        """Lower bounds of ``N x``."""
        return -self.b

    @cached_property
    def upper(self) -> Array:
        """Upper bounds of ``N x``: none."""
        return np.full(len(self.b), np.inf)

    @cached_property
    def addresses(self) -> tuple[int, ...]:
        """Addresses of M, q, N (Fortran order) and b, for a solver called through ctypes."""
        arrays = (self.M_fortran, self.q, self.N_fortran, self.b)
        return tuple(each.ctypes.data for each in arrays)

    @cached_property
    def centred(self) -> bool:
        """Whether all offsets are zero (the feasible set is a cone)."""
        return not self.b.any()


@dataclass(frozen=True)
class Problem:
    """One contact problem.

    Attributes:
        M: inertia, (m, m), or its diagonal blocks, (nb, s, s).
        values: rows (n, m) if `blocks` is None, else their non-zero parts (n, K, s).
        v: free motion, (m,).
        blocks: which blocks a row touches, (n, K) integers; a slot on the world's side
            repeats the body's number with zero values. None: dense rows.
        b: offsets, (n,); None stands for zero.
    """

    M: Array
    values: Array
    v: Array
    blocks: NDArray[np.int64] | None = None
    b: Array | None = None

    @property
    def n(self) -> int:
        """Number of contacts."""
        return len(self.values)

    @property
    def m(self) -> int:
        """Number of generalized coordinates."""
        return len(self.v)

    @cached_property
    def rows(self) -> Any:
        """The contact rows in the form that holdfast takes."""
        return self.values if self.blocks is None else self.wrap()

    def wrap(self) -> Any:
        """Make holdfast's `BlockRows` of the arrays."""
        from holdfast.lcp import BlockRows

        return BlockRows(self.blocks, self.values)

    @cached_property
    def _dense(self) -> DenseForm:
        b = np.zeros(self.n) if self.b is None else self.b
        return DenseForm(self._dense_inertia(), self._dense_rows(), self.v, b)

    def dense(self) -> DenseForm:
        """The problem in dense form, made at the first call."""
        return self._dense

    def with_motion(self, v: Array) -> Problem:
        """The same contacts with another free motion."""
        return Problem(self.M, self.values, v, self.blocks, self.b)

    def separation(self, x: Array) -> Array:
        """Separation speeds ``N x + b`` of a motion x."""
        if self.blocks is None:
            speed = self.values @ x
        else:
            parts = x.reshape(-1, self.values.shape[2])
            speed = np.zeros(self.n)
            for slot in range(self.blocks.shape[1]):
                speed += np.einsum("ns,ns->n", self.values[:, slot], parts[self.blocks[:, slot]])
        return speed if self.b is None else speed + self.b

    def impulse(self, z: Array) -> Array:
        """Generalized impulse ``N' z`` of contact impulses z."""
        if self.blocks is None:
            return self.values.T @ z
        loaded = np.flatnonzero(z)
        total = np.zeros((len(self.M), self.values.shape[2]))
        np.add.at(total, self.blocks[loaded], z[loaded, None, None] * self.values[loaded])
        return total.ravel()

    def momentum(self, x: Array) -> Array:
        """Momentum ``M x``."""
        if self.M.ndim == 2:
            return self.M @ x
        return np.einsum("bij,bj->bi", self.M, x.reshape(len(self.M), -1)).ravel()

    def motion(self, p: Array) -> Array:
        """Motion ``M^-1 p`` of a momentum p."""
        if self.M.ndim == 2:
            return np.linalg.solve(self.M, p)
        return np.linalg.solve(self.M, p.reshape(len(self.M), -1, 1)).ravel()

    def row_norms(self) -> Array:
        """Length of every row in the metric of ``M^-1``: a unit impulse's motion in energy."""
        if self.blocks is None:
            M = self.M if self.M.ndim == 2 else self._dense_inertia()
            whitener = np.linalg.inv(np.linalg.cholesky(M))
            return np.linalg.norm(self.values @ whitener.T, axis=1)
        whitener = np.linalg.inv(np.linalg.cholesky(self.M))
        square = np.zeros(self.n)
        for slot in range(self.blocks.shape[1]):
            row = self.values[:, slot, :]
            square += self._block_squares(whitener, row, self.blocks[:, slot])
        return np.sqrt(square)

    @staticmethod
    def _block_squares(whitener: Array, row: Array, block: NDArray[np.int64]) -> Array:
        """Squared lengths of row parts; parts of one row lie in different blocks or are zero."""
        square = np.empty(len(row))
        for number, W in enumerate(whitener):
            here = block == number
            square[here] = np.square(row[here] @ W.T).sum(axis=1)
        return square

    def _dense_inertia(self) -> Array:
        if self.M.ndim == 2:
            return self.M
        size = self.M.shape[1]
        M = np.zeros((self.m, self.m))
        for number, block in enumerate(self.M):
            part = slice(number * size, (number + 1) * size)
            M[part, part] = block
        return M

    def _dense_rows(self) -> Array:
        if self.blocks is None:
            return np.ascontiguousarray(self.values)
        N = np.zeros((self.n, len(self.M), self.values.shape[2]))
        row = np.arange(self.n)
        for slot in range(self.blocks.shape[1]):
            N[row, self.blocks[:, slot]] += self.values[:, slot]
        return N.reshape(self.n, self.m)
