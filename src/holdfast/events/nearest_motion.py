"""The motion nearest to a given one, as the inertia measures it, under equalities and bounds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from holdfast.lcp.factored import Arrays, FactoredLCP, solve_arrays
from holdfast.lcp.find_indices import RANK_TOL
from holdfast.lcp.options import DEFAULT
from holdfast.lcp.result import LCPResult

Solve = Callable[..., LCPResult]  # called as `nearest`
_NO_BLOCKS = np.empty((0, 0), dtype=np.int64)
_NO_ROWS = np.empty(0, dtype=np.int64)
_VANISHES = 1e-150  # a number whose square is none: what is left of a motion that has come to rest


def nearest(
    M: np.ndarray, x0: np.ndarray, rows: np.ndarray, b: np.ndarray, lo: np.ndarray, hi: np.ndarray
) -> LCPResult:
    """``x = x0 + M^-1 rows' z`` with ``lo <= z <= hi`` complementary to ``w = rows x + b``.

    Rows without bounds are equalities; those that depend on others are left out.

    Raises:
        InfeasibleError: rows contradict each other.
        SolveError: no certified answer was found.
    """
    x0, b = (np.where(np.abs(each) < _VANISHES, 0.0, each) for each in (x0, b))
    arrays = Arrays(rows, _NO_BLOCKS, M[None], x0, b, lo, hi)
    return solve_arrays(
        arrays, _NO_ROWS, DEFAULT, lambda: FactoredLCP(rows, M, x0, b, lo, hi), RANK_TOL
    )
