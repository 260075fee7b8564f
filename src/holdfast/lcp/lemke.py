"""Lemke's method for a dense LCP with any square matrix.

`lemke` solves ``w = F z + q``, ``w, z >= 0``, ``z'w = 0``. In exact arithmetic the path reaches
a solution when ``F`` is a P-matrix, strictly copositive, or positive semidefinite (symmetric or
not) and the problem feasible; also for the Stewart-Trinkle problems of frictional contact. For
copositive-plus matrices, which include the semidefinite ones, ending on a ray proves that there
is no solution. For others it proves nothing: with a zero diagonal and no negative entry (a
bimatrix game) the path goes off after its first pivot although solutions exist.

The number of pivots is about n on problems from practice and 2^n at worst; Murty (1978) and
Fathi (1979) give families that reach it. The published ones take a handful of pivots here, since
scaling the rows changes the covering vector that they are made for.

Where the solution is not unique (friction), which one is found depends on the order of the
variables. It is always the same one for the same arrays, whatever the machine is doing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.lcp import _lemke as kernel
from holdfast.lcp.options import DEFAULT, Options
from holdfast.lcp.status import Status

Array = NDArray[np.float64]

ZERO_TOL = 1e-13
"""Values below this part of the largest one tie with zero in the ratio test: the rounding of a
refined solve with some hundred variables, and what may be missing from the answer in the end."""

PIVOT_TOLS = (1e-10, 1e-8, 1e-6)
"""Entries of a direction below this part of its largest one are rounding, not pivots. The path
is walked with the first; an answer that fails its certificate is dropped, and the next, which
keeps away from ill-conditioned bases, is tried. Recorded contact problems pass with the first;
contacts that coincide to within 1e-8 to 1e-4 of a body's size need the others."""

DRIFT_TOL = 1e-8
"""Refactorise when B u misses c by more. One step of refinement squares it, to rounding."""

REFINE_EVERY = 8
"""Pivots between refinements of the basic values, each of which adds one rounding error."""

PATIENCE = 10
"""Pivots per variable for an attempt that is not the last: solved problems needed at most 4."""

SCALING_PASSES = 12
"""Halvings of the exponents' spread: more than the range of double precision needs."""

WORK_PER_CALL = 5e7
"""Pivots times n^2 in one call of the kernel, about 0.2 s, so that Ctrl-C gets through."""


class LemkeOutcome(NamedTuple):
    """What Lemke's method came to.

    Attributes:
        z: the solution, or the last point of the path. Never negative.
        w: its complement, never negative and zero wherever z is not: only ``w = F z + q`` is
            inexact, by `residual`.
        status: SOLVED, RAY, PIVOT_LIMIT, SINGULAR, or UNCERTIFIED when the path found a
            solution but `residual` is above the certificate.
        pivots: of all attempts together.
        ray: direction in z of the ray that the path ended on, scaled to a largest entry of one;
            None unless status is RAY.
        regularization: the eps of ``F + eps I`` that gave this answer, 0.0 if none.
        residual: largest row of ``F z + q - w``, each relative to the sum of the absolute values
            of its own terms, or to the largest entry of q if that is larger (rows may consist of
            rounding alone), in the scaled problem.
    """

    z: Array
    w: Array
    status: Status
    pivots: int
    ray: Array | None
    regularization: float
    residual: float


def lemke(
    F: Array,
    q: Array,
    options: Options = DEFAULT,
    *,
    zero_tol: float | None = None,
    pivot_tol: float | None = None,
) -> LemkeOutcome:
    """Solve ``w = F z + q``, ``w, z >= 0``, ``z'w = 0`` by Lemke's method.

    As in the paper, a failed solve is repeated with ``F + eps I`` if the options say so, eps
    doubling, until the residual of the *original* problem is within the certificate. Unlike
    there, eps counts in units of F's largest diagonal entry (largest entry, if the diagonal is
    zero), so that it does not depend on the choice of units.

    Args:
        F: (n, n) matrix, C-contiguous and finite; not checked here.
        q: (n,) vector, likewise.
        options: `certificate`, `max_pivots` (of the last attempt; earlier ones give up sooner)
            and `regularization` are used.
        zero_tol: replaces `ZERO_TOL`.
        pivot_tol: replaces `PIVOT_TOLS`, by this one value. With the original's loose tolerances
            (1e-5 and 1e-4 there) this is its baseline.

    Returns:
        The first attempt within the certificate, else the one with the smallest residual.
    """
    path = _Path(F, q, ZERO_TOL if zero_tol is None else zero_tol)
    pivot_tols = PIVOT_TOLS if pivot_tol is None else (pivot_tol,)
    attempts = [(0.0, tol) for tol in pivot_tols]
    attempts += [(eps, pivot_tols[0]) for eps in _schedule(options)]
    best: LemkeOutcome | None = None
    pivots = 0
    for k, (eps, tol) in enumerate(attempts, 1):
        outcome = path.walk(eps, tol, _max_pivots(options, len(q), last=k == len(attempts)))
        pivots += outcome.pivots
        if best is None or outcome.residual < best.residual:
            best = outcome
        if outcome.residual <= options.certificate:
            return outcome._replace(status=Status.SOLVED, ray=None, pivots=pivots)
    assert best is not None
    if best.status is Status.SOLVED:
        best = best._replace(status=Status.UNCERTIFIED)
    return best._replace(pivots=pivots)


def _max_pivots(options: Options, n: int, *, last: bool) -> int:
    """Return the pivot limit of one attempt; a dense LCP has as many rows as columns."""
    limit = 100 + 50 * (n + n) if options.max_pivots is None else options.max_pivots
    return limit if last else min(limit, 100 + PATIENCE * n)


def _schedule(options: Options) -> Iterator[float]:
    """Yield the eps of the paper's Tikhonov schedule."""
    if options.regularization is not None:
        eps, last = options.regularization
        while eps <= last:
            yield eps
            eps *= 2.0


class _Path:
    """One problem with its scales and the work arrays, which all attempts share."""

    def __init__(self, F: Array, q: Array, zero_tol: float) -> None:
        n = len(q)
        self.F, self.q, self.zero_tol = F, q, zero_tol
        diagonal = np.abs(np.diagonal(F)).max(initial=0.0)
        self.unit = diagonal if diagonal > 0.0 else np.abs(F).max(initial=0.0)
        self.row_scale, self.column_scale = np.empty(n), np.empty(n)
        kernel.equilibrate(F, np.empty((2, n)), self.row_scale, self.column_scale, SCALING_PASSES)
        self.columns, self.rhs = np.empty((n + 1, n)), np.empty(n)
        self.T, self.K, self.x = np.empty((n, n)), np.empty((n, n)), np.empty((2, n))
        self.y, self.u, self.residual, self.p_work = np.empty((4, n))
        self.basis, self.place, self.row, self.column, self.tied = np.empty((5, n), dtype=np.int64)
        self.state = np.empty(kernel.STATE_SIZE, dtype=np.int64)
        self.d = np.ones(n)
        # Decreasing, as the powers of eps in the textbook rule are: of the several solutions of
        # the paper's grasp with friction that finds the one that holds. And generic: fractions
        # of squares times an irrational number have no equal differences.
        order = np.arange(n)
        self.p = 2.0 - (order + order**2 * _GOLDEN % 1.0) / max(n, 1)

    def walk(self, eps: float, pivot_tol: float, max_pivots: int) -> LemkeOutcome:
        """Walk the path of ``F + eps I`` to its end and judge what is there by F."""
        F = self.F + eps * self.unit * np.eye(len(self.q)) if eps > 0.0 else self.F
        status = kernel.start(
            F, self.q, self.d, self.p, self.row_scale, self.column_scale,
            self.p_work, self.columns, self.rhs, self.T, self.x, self.basis, self.place, self.state,
        )  # fmt: skip
        budget = max(1, int(WORK_PER_CALL / max(len(self.q), 1) ** 2))
        while status == kernel.PAUSED:
            status = kernel.walk(
                self.columns, self.rhs, self.p_work, self.T, self.K, self.y, self.x, self.u,
                self.residual, self.basis, self.place, self.row, self.column, self.tied, self.state,
                self.zero_tol, pivot_tol, DRIFT_TOL, REFINE_EVERY, max_pivots, budget,
            )  # fmt: skip
        z, w, ray = np.empty((3, len(self.q)))
        status = kernel.finish(
            self.columns, self.rhs, self.row_scale, self.column_scale, self.u, self.basis,
            self.place, self.state, self.K, self.y, self.x, self.residual, self.row, self.column,
            z, w, ray, status,
        )  # fmt: skip
        return LemkeOutcome(
            z=z,
            w=w,
            status=Status(status),
            pivots=int(self.state[kernel.PIVOTS]),
            ray=ray / max(ray.max(initial=0.0), _TINY) if status == kernel.RAY else None,
            regularization=eps,
            residual=self._relative_residual(z, w),
        )

    def _relative_residual(self, z: Array, w: Array) -> float:
        """Return how far z and w are from ``w = F z + q``; inf if they are not finite."""
        miss = np.abs(self.F @ z + self.q - w) * self.row_scale
        terms = (np.abs(self.F) @ z + np.abs(self.q)) * self.row_scale
        floor = max(float(np.abs(self.q * self.row_scale).max(initial=0.0)), _TINY)
        residual = (miss / np.maximum(terms, floor)).max(initial=0.0)
        return float(residual) if np.isfinite(residual) else np.inf


_GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0
_TINY = float(np.finfo(np.float64).tiny)
