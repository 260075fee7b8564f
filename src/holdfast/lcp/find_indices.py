"""Which equality rows to keep: Algorithm 2 (Find-Indices) of the paper.

The no-slip model asks for ``J v = 0``, ``S v = 0`` and ``T v = 0``. These rows are dependent
in every scene with more contact points than freedom, and the system can only be solved on an
independent subset of them, which spans the same constraints:

    J_rows, S_rows, T_rows = find_indices(M, J, S, T)
    G = np.vstack([J[J_rows], S[S_rows], T[T_rows]])       # full row rank

Rows are taken in the order of the paper: all of J, then S_i and T_i contact by contact. The
first independent rows win, so *which* rows are kept, and thus which rows report a force,
depends on the order of the contacts; the motion does not.

The paper tests whether a Cholesky factorisation succeeds. In floating point that is no rank
test, so this one compares each pivot with a threshold and reports how clear the decision
was: see `Indices`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from holdfast.errors import InputError
from holdfast.lcp._find_indices import select_rows
from holdfast.lcp.checks import as_inertia, as_matrix, check_finite, not_positive_definite
from holdfast.lcp.options import DEFAULT

# A rejected pivot this close to the threshold is a near miss: not rounding of a dependent row,
# which is decades smaller, but geometry that a slightly stricter threshold would have kept.
_NEAR_MISS = 100.0
_NEAR_HIT = 10.0  # a kept pivot this close above the threshold might as well have been rejected

RANK_TOL = 1e-6  # see `find_indices`
AMBIGUITY = 1e3  # see `Indices`


def gap(kept: float, rejected: float) -> float:
    """See `Indices.gap`."""
    return kept / rejected if rejected > 0.0 else np.inf


def ambiguous(kept: float, rejected: float, rank_tol: float, ambiguity: float = AMBIGUITY) -> bool:
    """See `Indices.ambiguous`."""
    near_miss = rejected * _NEAR_MISS > rank_tol
    near_hit = kept < _NEAR_HIT * rank_tol
    return gap(kept, rejected) < ambiguity or near_miss or near_hit


@dataclass(frozen=True, eq=False, slots=True)
class Indices:
    """The rows kept by `find_indices`; unpacks into ``J_rows, S_rows, T_rows``.

    A row's *pivot* is the length of the part of it that lies outside the span of the rows
    kept before it, after it was whitened (``L^-1 row`` with ``M = L L'``) and scaled to
    length 1: 1 if it is orthogonal to all of them, 0 if it depends on them.

    Attributes:
        J_rows: kept rows of J, ascending, int64, read-only.
        S_rows: kept rows of S.
        T_rows: kept rows of T.
        smallest_kept: smallest pivot of a kept row; inf if none was kept.
        largest_rejected: largest pivot of a rejected row; 0 if none was rejected. Rows of
            zeros (to rounding) do not count, nor do rows that were never looked at because
            m rows had been kept before them.
        rank_tol: the threshold between them.
        ambiguity: a `gap` below this makes the choice `ambiguous`. Pivots that come from
            one source, such as the errors of a collision detector, scatter over three
            decades and more (from 1e-8 to 2e-4 in a recorded step of a walking robot). A
            kept and a rejected pivot closer than that may both be errors or both be
            geometry, and a slightly different threshold gives another rank and motion.
    """

    J_rows: np.ndarray
    S_rows: np.ndarray
    T_rows: np.ndarray
    smallest_kept: float
    largest_rejected: float
    rank_tol: float
    ambiguity: float = AMBIGUITY

    @property
    def rank(self) -> int:
        """How many rows were kept."""
        return self.J_rows.size + self.S_rows.size + self.T_rows.size

    @property
    def gap(self) -> float:
        """Smallest kept over largest rejected pivot; inf if nothing (or only 0) was rejected."""
        return gap(self.smallest_kept, self.largest_rejected)

    @property
    def ambiguous(self) -> bool:
        """Whether a slightly different threshold gives another rank, and perhaps another motion.

        Either the kept and rejected pivots are closer than `ambiguity`, or a kept pivot lies within
        one decade, or a rejected one within two decades of the threshold: a cube whose four
        contact heights differ by 1e-8 keeps 39 % of its energy at a threshold of 1e-7 and none
        at 1e-9.
        """
        return ambiguous(self.smallest_kept, self.largest_rejected, self.rank_tol, self.ambiguity)

    def __iter__(self) -> Iterator[np.ndarray]:
        return iter((self.J_rows, self.S_rows, self.T_rows))

    def __len__(self) -> int:
        return 3

    def __getitem__(self, item: int) -> np.ndarray:
        return (self.J_rows, self.S_rows, self.T_rows)[item]


def find_indices(
    M: Any, J: Any = None, S: Any = None, T: Any = None, *, rank_tol: float = RANK_TOL
) -> Indices:
    """Choose rows of J, S and T that are independent in the metric of ``M^-1``.

    Algorithm 2 of the paper by incremental orthogonalisation, O(m^3 + m^2 n). Units do not
    matter: every row is compared with its own length.

    Args:
        M: inertia, symmetric positive definite: dense (m, m), or (nb, s, s) for the equal
            blocks of a block-diagonal one, m = nb s.
        J: (j, m) bilateral rows; None stands for no rows, here and below.
        S: (n, m) first tangents.
        T: (n, m) second tangents. Where both S and T have rows they have equally many.
        rank_tol: rows whose pivot is not above this count as dependent. The default is two
            decades above the rounding of the worst M that has a Cholesky factor (about
            ``eps cond(M)^(1/2)``, so 1e-8), and stands for contact points out of line by a
            micrometre on a body of a metre. The motion of the no-slip model can depend on
            it: see `Indices.ambiguous`.

    Returns:
        The kept rows, with the pivots that show how clear the choice was. Once m rows are
        kept, the remaining ones are not examined.

    Raises:
        InputError: not finite real numbers, or shapes that disagree.
        NotSymmetricError: M is not symmetric.
        NotPositiveDefiniteError: M has no Cholesky factor.
    """
    check_rank_tol(rank_tol)
    M = as_inertia("M", M)
    m = M.shape[0] * M.shape[1]
    J, S, T = _rows("J", J, M, m), _rows("S", S, M, m), _rows("T", T, M, m)
    if len(S) != len(T) and len(S) > 0 and len(T) > 0:
        raise InputError(
            "T",
            f"is {len(T)} x {m} but S is {len(S)} x {m}; each contact has one row in both "
            "(a planar problem leaves T out)",
        )
    J_out, S_out, T_out = (np.empty(min(len(rows), m), dtype=np.int64) for rows in (J, S, T))
    pivots = np.empty(2)
    count_J, count_S, count_T = select_rows(
        M, J, S, T, np.empty_like(M), np.empty(m, dtype=np.int64), np.empty((m, m)),
        np.empty(2 * m), np.empty(m), J_out, S_out, T_out, pivots, rank_tol, DEFAULT.zero_row,
    )  # fmt: skip
    if count_J < 0:
        raise not_positive_definite("M", M)
    return Indices(
        _frozen(J_out[:count_J]),
        _frozen(S_out[:count_S]),
        _frozen(T_out[:count_T]),
        float(pivots[0]),
        float(pivots[1]),
        rank_tol,
    )


def check_rank_tol(rank_tol: float) -> None:
    """Refuse a tolerance that keeps all rows or none."""
    if not 0.0 < rank_tol < 1.0:
        raise InputError(
            "rank_tol",
            f"is {rank_tol}; expected above 0 and below 1, as whitened rows have length 1",
        )


def _frozen(rows: np.ndarray) -> np.ndarray:
    rows = rows.copy()
    rows.setflags(write=False)
    return rows


def _rows(name: str, value: Any, M: np.ndarray, m: int) -> np.ndarray:
    if value is None:
        value = np.empty((0, m))
    array = as_matrix(name, value, cols=m, of=("M", M))
    check_finite(name, array)
    return array
