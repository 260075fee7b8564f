r"""Mixed linear complementarity problems, and the LCP that is left when the free part is gone.

A mixed problem has free variables x, fixed by equations, beside the complementary ones y:

.. math::

    A x + C y + g = 0, \qquad 0 \le y \;\perp\; D x + B y + h \ge 0

With A invertible, ``x = -A^-1 (C y + g)``, and what is left is an LCP in y:

.. math::

    0 \le y \;\perp\; F y + e \ge 0, \qquad F = B - D A^{-1} C, \quad e = h - D A^{-1} g

The contact models of the paper are mixed problems with x the motion and the equality forces and
``A = [M, -G'; G, 0]``, which is invertible when the rows of G are independent. (The last line of
the paper's definition reads ``C x + D y + h``; this is what is meant.)

    >>> import numpy as np
    >>> mass, weight = np.array([[2.0]]), np.array([19.62])    # a body on a floor, for 1 s
    >>> problem = MLCP(A=mass, C=[[-1.0]], D=[[1.0]], B=[[0.0]], g=weight, h=[0.0])
    >>> lcp = problem.reduce()
    >>> lcp.F.tolist(), lcp.e.tolist()
    ([[0.5]], [-9.81])
    >>> lcp.free(np.array([19.62])).tolist()                   # the floor carries it: at rest
    [0.0]
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from holdfast.errors import InputError
from holdfast.lcp import checks

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class MLCP:
    """``A x + C y + g = 0``, ``0 <= y`` complementary to ``D x + B y + h >= 0``.

    Arrays are checked when the problem is made, and trusted afterwards.

    Attributes:
        A: (n, n) matrix of the free variables in the equations.
        C: (n, m) matrix of the complementary variables in the equations.
        D: (m, n) matrix of the free variables in the inequalities.
        B: (m, m) matrix of the complementary variables in the inequalities.
        g: (n,) constant part of the equations.
        h: (m,) constant part of the inequalities.

    Raises:
        InputError: shapes disagree, or an entry is not a finite number.
    """

    A: np.ndarray
    C: np.ndarray
    D: np.ndarray
    B: np.ndarray
    g: np.ndarray
    h: np.ndarray

    def __post_init__(self) -> None:
        A = _square("A", self.A)
        B = _square("B", self.B)
        n, m = len(A), len(B)
        C = checks.as_matrix("C", self.C, rows=n, of=("A", A))
        C = checks.as_matrix("C", C, cols=m, of=("B", B))
        D = checks.as_matrix("D", self.D, cols=n, of=("A", A))
        D = checks.as_matrix("D", D, rows=m, of=("B", B))
        g = checks.as_vector("g", self.g, n, of=("A", A))
        h = checks.as_vector("h", self.h, m, of=("B", B))
        for name, array in zip("ACDBgh", (A, C, D, B, g, h), strict=True):
            checks.check_finite(name, array)
            object.__setattr__(self, name, array)

    def reduce(self) -> ReducedMLCP:
        """Eliminate the free variables.

        Raises:
            InputError: A is singular to working precision.
        """
        factors = _Factors(self.A)
        X = factors.solve(np.column_stack([self.C, self.g]))
        return ReducedMLCP(
            F=self.B - self.D @ X[:, :-1], e=self.h - self.D @ X[:, -1], problem=self, _lu=factors
        )

    def equations(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return ``A x + C y + g``, zero at a solution."""
        return self.A @ x + self.C @ y + self.g

    def slack(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return ``D x + B y + h``, at a solution not negative, and zero where y is not."""
        return self.D @ x + self.B @ y + self.h


@dataclass(frozen=True, eq=False)
class ReducedMLCP:
    """The LCP ``0 <= y`` complementary to ``F y + e >= 0``, and the way back to x.

    Attributes:
        F: (m, m) matrix.
        e: (m,) vector.
        problem: the mixed problem that it came from.
    """

    F: np.ndarray
    e: np.ndarray
    problem: MLCP
    _lu: _Factors = field(repr=False)

    def free(self, y: np.ndarray) -> np.ndarray:
        """Return the free variables ``x = -A^-1 (C y + g)``; A is not factorised again."""
        return self._lu.solve(-(self.problem.C @ y) - self.problem.g)


def reduce_mlcp(A: Any, C: Any, D: Any, B: Any, g: Any, h: Any) -> ReducedMLCP:
    """The LCP that is left of a mixed problem: ``MLCP(A, C, D, B, g, h).reduce()``."""
    return MLCP(A, C, D, B, g, h).reduce()


class _Factors:
    """LU factors of A, its rows and columns scaled by powers of two.

    Rows of A have different units (forces and speeds). Unscaled, the reciprocal condition
    would measure those, and pivoting would go by them.
    """

    def __init__(self, A: np.ndarray) -> None:
        from scipy.linalg import get_lapack_funcs

        self.A = A
        if not A.size:
            return
        geequb, getrf, gecon, self.getrs = get_lapack_funcs(
            ("geequb", "getrf", "gecon", "getrs"), (A,)
        )
        rows, columns, *_, zero_line = geequb(A)
        if zero_line:
            raise _singular(A, 0.0)
        self.rows, self.columns = rows, columns
        scaled = rows[:, None] * A * columns
        self.lu, self.order, zero_pivot = getrf(scaled)
        rcond, _ = gecon(self.lu, np.abs(scaled).sum(axis=0).max())
        if zero_pivot or not rcond > len(A) * _EPS:
            raise _singular(A, 0.0 if zero_pivot else rcond)

    def solve(self, b: np.ndarray) -> np.ndarray:
        """Return ``A^-1 b``, with one step of iterative refinement."""
        x = self._solve(b)
        return x + self._solve(b - self.A @ x)

    def _solve(self, b: np.ndarray) -> np.ndarray:
        if not b.size or not self.A.size:
            return np.zeros_like(b)
        x, _ = self.getrs(self.lu, self.order, (self.rows * b.T).T)
        return (self.columns * x.reshape(b.shape).T).T


def _square(name: str, value: Any) -> np.ndarray:
    array = checks.as_matrix(name, value)
    if array.shape[0] != array.shape[1]:
        raise InputError(name, f"is {array.shape[0]} x {array.shape[1]}; expected a square matrix")
    return array


def _singular(A: np.ndarray, rcond: float) -> InputError:
    return InputError(
        "A",
        f"is singular to working precision: reciprocal condition {rcond:.1e}, expected more than "
        f"{len(A) * _EPS:.1e}; redundant equality rows are the usual cause; "
        "holdfast.find_indices selects independent ones",
    )
