"""What a solver returns: an answer that carries its own evidence."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from holdfast.lcp.status import Status

# The data of a result are z (n), w (n), motion (m), loaded rows (min(m, n) or -1), then so many
# numbers: residuals primal, dual, complementarity, stationarity; pivots, rank, rounds; smallest
# kept and largest rejected pivot of the equality rows, how many of those are loaded; allowance.
SCALARS = 11


class Residuals(NamedTuple):
    """How far an answer is from satisfying the problem, relative to the problem's own scale.

    Every residual is computed from the original data in twice the working precision, none from
    the solver's own factors. Row i is measured by its length d_i in the metric of M^-1, and the
    motion by the larger of the free motion and the motion after contact, sigma, in the metric of
    M. For a dense LCP d_i sigma stands for ``|F_i| |z| + |e_i|``.
    """

    primal: float
    """Largest w_i of the wrong sign, over d_i sigma: speed of approach at a contact."""
    dual: float
    """Largest excess of z_i over its bounds, times d_i / sigma."""
    complementarity: float
    """Largest ``|w_i| / (d_i sigma)`` where z_i is strictly within its bounds."""
    stationarity: float
    """``|M (x - v) - N' z|`` in the metric of M^-1, over sigma or ``|N' z|`` if larger. Where
    forces are so large that they cancel, it may be larger than `Options.certificate` in a
    certified answer, by `LCPResult.allowance`."""

    @property
    def largest(self) -> float:
        """The largest of the four."""
        return max(self)


class LCPResult:
    """Answer of `solve_factored` and `solve`.

    Attributes:
        z: (n,) forces or impulses, within their bounds.
        w: (n,) separation speeds N x + b (or F z + e).
        motion: (m,) the motion x = v + M^-1 N' z; empty for a dense LCP.
        status: how the solve ended.
        certified: whether all residuals are within `Options.certificate`.
        residuals: the evidence.
        pivots: number of rows that entered or left the loaded set.
        allowance: part of `Residuals.stationarity` that is the rounding of forces that cancel,
            1e-14 of the sum of ``|z_i| d_i``, and that the certificate does not count.
        rank: number of loaded rows.
        loaded: (rank,) the loaded rows; a warm start for the next, similar problem.
        rounds: passes over all rows.
        equality_pivots: smallest kept and largest rejected pivot of the equality rows, which the
            contact models have cut down to an independent set; (inf, 0) if there are none.
        regularization: Tikhonov eps that Lemke's method needed; 0.0 for the problem as given.
        left_out: rows that were ignored and that the answer does not satisfy, see there.
        fallback: what had to be done differently to get a certified answer ("rank=1e-10": rows so
            nearly dependent that a coarser rank tolerance was needed; "ppm": another method);
            None if nothing.
    """

    __slots__ = ("_data", "_m", "_n", "_unheld", "fallback", "regularization", "status")

    def __init__(
        self,
        data: np.ndarray,
        n: int,
        m: int,
        status: Status = Status.SOLVED,
        regularization: float = 0.0,
        fallback: str | None = None,
        unheld: Callable[[LCPResult], np.ndarray] | None = None,
    ) -> None:
        data.setflags(write=False)
        self._data = data
        self._n = n
        self._m = m
        self.status = status
        self.regularization = regularization
        self.fallback = fallback
        self._unheld = unheld

    @property
    def left_out(self) -> np.ndarray:
        """Rows that were ignored and that the answer does not satisfy; looked for when asked.

        They are so short beside the longest one that they are taken for what cancellation left of
        a row of zeros (`Options.zero_row`), but may be rows in other units: the solver cannot
        know. All other rows hold, those that were ignored as well.
        """
        return np.zeros(0, dtype=int) if self._unheld is None else self._unheld(self)

    @property
    def certified(self) -> bool:
        """Whether all residuals are within `Options.certificate`."""
        return self.status is Status.SOLVED

    @property
    def z(self) -> np.ndarray:
        """(n,) forces or impulses."""
        return self._data[: self._n]

    @property
    def w(self) -> np.ndarray:
        """(n,) separation speeds."""
        return self._data[self._n : 2 * self._n]

    @property
    def motion(self) -> np.ndarray:
        """(m,) motion after contact, x = v + M^-1 N' z."""
        return self._data[2 * self._n : 2 * self._n + self._m]

    @property
    def loaded(self) -> np.ndarray:
        """The loaded rows, in the order in which they entered."""
        return first_loaded(self, self.rank)

    @property
    def residuals(self) -> Residuals:
        """Relative residuals on the original data."""
        return Residuals(*scalars(self)[:4])

    @property
    def allowance(self) -> float:
        """Part of the stationarity that is the rounding of forces that cancel; mostly 0."""
        return scalars(self)[10]

    @property
    def pivots(self) -> int:
        """Rows that entered or left the loaded set."""
        return int(scalars(self)[4])

    @property
    def rank(self) -> int:
        """Number of loaded rows."""
        return int(scalars(self)[5])

    @property
    def rounds(self) -> int:
        """Passes over all rows."""
        return int(scalars(self)[6])

    @property
    def equality_pivots(self) -> tuple[float, float]:
        """Smallest kept and largest rejected pivot of the equality rows."""
        return scalars(self)[7], scalars(self)[8]

    def __repr__(self) -> str:
        allowed = f", {self.allowance:.1e} allowed as rounding" if self.allowance > 0.0 else ""
        return (
            f"LCPResult({self.status.name}, n={self._n}, rank={self.rank}, pivots={self.pivots}, "
            f"largest residual {self.residuals.largest:.1e}{allowed})"
        )


def data_of(result: LCPResult) -> np.ndarray:
    """All numbers of a result in one array; see `SCALARS`."""
    return result._data


def scalars(result: LCPResult) -> list[float]:
    """The numbers at the end of the data; see `SCALARS`."""
    return result._data[-SCALARS:].tolist()


def first_loaded(result: LCPResult, count: int) -> np.ndarray:
    """The loaded rows that entered first."""
    start = 2 * result._n + result._m
    return result._data[start : start + count].astype(np.int64)


def after(data: np.ndarray, pivots: int) -> np.ndarray:
    """The data of the same result, reached with so many pivots before."""
    data = data.copy()
    data[4 - SCALARS] += pivots
    return data


def among(result: LCPResult, which: slice | np.ndarray, count: int) -> np.ndarray:
    """Data for `count` rows, of which these are some; the others have no force and no w."""
    n, m = result._n, result._m
    data = np.zeros(2 * count + len(result._data) - 2 * n)
    data[:count][which], data[count : 2 * count][which] = result.z, result.w
    data[2 * count :] = result._data[2 * n :]
    loaded = result.loaded
    data[2 * count + m : 2 * count + m + len(loaded)] = (
        which[loaded] if isinstance(which, np.ndarray) else loaded + which.start
    )
    return data
