"""The Cholesky factor of an inertia, as the kernels keep it: in blocks, with its envelope."""

from __future__ import annotations

import numpy as np

from holdfast._jit import entry
from holdfast.lcp._rows import whiten_dense
from holdfast.linalg import cholesky as envelope


class InertiaFactor:
    """L of ``M = L L'`` for a block-diagonal M, and what is done with it.

    Args:
        M: (nb, s, s) symmetric blocks, float64 in C order.

    Attributes:
        definite: whether M is positive definite to working precision; if not, nothing else works.
    """

    def __init__(self, M: np.ndarray) -> None:
        nb, s, _ = M.shape
        self._L, self._first = np.empty((nb, s, s)), np.empty(nb * s, dtype=np.int64)
        self.definite = bool(_factorise(M, self._first, self._L) == 0)

    def whiten(self, rows: np.ndarray) -> np.ndarray:
        """``rows L^-T``: the rows in coordinates in which the inertia is the identity."""
        rows = np.array(rows, order="C")
        _whiten(self._L, self._first, rows)
        return rows

    def solve(self, rhs: np.ndarray) -> np.ndarray:
        """``M^-1 rhs`` for a vector, or for the columns of a matrix."""
        columns = np.array(rhs[None] if rhs.ndim == 1 else rhs.T, order="C")
        _solve(self._L, self._first, columns)
        return columns[0] if rhs.ndim == 1 else columns.T

    def drift(self, v: np.ndarray, f: np.ndarray, h: float) -> np.ndarray:
        """``v + h M^-1 f``."""
        x = np.array(f)
        _drift(self._L, self._first, v, h, x)
        return x

    def size(self, x: np.ndarray) -> float:
        """``(x' M x)^1/2``, the size of a motion."""
        y = np.empty(len(x))
        _multiply(self._L, self._first, np.array(x), y)
        return float(np.sqrt(y @ y))


@entry
def _factorise(M: np.ndarray, first_out: np.ndarray, L_out: np.ndarray) -> int:
    return envelope.cholesky(M, first_out, L_out, np.inf)


@entry
def _whiten(L: np.ndarray, first: np.ndarray, rows_inout: np.ndarray) -> None:
    whiten_dense(L, first, np.int64(0), rows_inout.shape[0], rows_inout)


@entry
def _solve(L: np.ndarray, first: np.ndarray, columns_inout: np.ndarray) -> None:
    for i in range(columns_inout.shape[0]):
        envelope.solve_lower(L, first, columns_inout[i])
        envelope.solve_upper(L, first, columns_inout[i])


@entry
def _drift(L: np.ndarray, first: np.ndarray, v: np.ndarray, h: float, x_inout: np.ndarray) -> None:
    envelope.solve_lower(L, first, x_inout)
    envelope.solve_upper(L, first, x_inout)
    for j in range(x_inout.shape[0]):
        x_inout[j] = v[j] + h * x_inout[j]


@entry
def _multiply(L: np.ndarray, first: np.ndarray, x: np.ndarray, y_out: np.ndarray) -> None:
    envelope.multiply_upper(L, first, x, y_out)
