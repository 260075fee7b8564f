"""Dense linear complementarity problems ``w = F z + e``, with bounds on z if wanted.

    >>> import numpy as np
    >>> answer = solve(np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([-5.0, -6.0]))
    >>> answer.z.round(12).tolist()
    [1.333333333333, 2.333333333333]

Three methods, one certificate:

* ``"ppm"``: principal pivoting (Algorithm 1 of the paper, mended). Needs F symmetric positive
  semidefinite, refuses everything else.
* ``"qp"``: the same problems, handed to daqp's dual active-set method.
* ``"lemke"``: any square matrix, see `holdfast.lcp.lemke`.

Whichever is asked, the answer is judged here, on F and e as they were given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from holdfast.errors import (
    InfeasibleError,
    InputError,
    NotPositiveDefiniteError,
    RayTerminationError,
    SolveError,
    UncertifiedError,
)
from holdfast.lcp import _dense, _solve, checks
from holdfast.lcp._lemke import equilibrate
from holdfast.lcp.factored import bounds_or_none, solve_factored
from holdfast.lcp.lemke import SCALING_PASSES, lemke
from holdfast.lcp.options import Options, checked
from holdfast.lcp.result import LCPResult
from holdfast.lcp.status import Status


@dataclass(frozen=True, eq=False)
class DenseLCP:
    """``w = F z + e`` with ``lo <= z <= hi`` complementary to w, checked."""

    F: np.ndarray
    e: np.ndarray
    lo: np.ndarray
    hi: np.ndarray

    @cached_property
    def row_floor(self) -> np.ndarray:
        """(n,) size below which a row of w is rounding: the largest ``|e|`` in that row's units.

        Rows of a frictional contact that carries nothing consist of rounding alone, and cannot be
        measured by their own terms. Units come from equilibrating F.
        """
        return self._in_units_of_rows(np.abs(self.e))

    @cached_property
    def row_rounding(self) -> np.ndarray:
        """(n,) what rounding leaves of forces as large as the finite bounds: brakes at rest."""
        bounds = [np.where(np.isfinite(side), np.abs(side), 0.0) for side in (self.lo, self.hi)]
        return ROUNDING * self._in_units_of_rows(np.abs(self.F) @ np.maximum(*bounds))

    def _in_units_of_rows(self, size: np.ndarray) -> np.ndarray:
        """The largest of sizes of w, in the units of each row."""
        row, column = np.empty((2, size.size))
        equilibrate(self.F, np.empty((2, size.size)), row, column, SCALING_PASSES)
        return (size * row).max(initial=0.0) / row

    @property
    def plain(self) -> bool:
        """Whether the bounds are those of a plain LCP, 0 and inf."""
        return bool(np.all(self.lo == 0.0) and np.all(self.hi == np.inf))


ROUNDING = 1e-15  # of a force, relative: a few units in the last place
REGULAR = 1e10  # condition up to which free variables are eliminated before Lemke's method


class Found(NamedTuple):
    """What a method came to, before it is judged."""

    z: np.ndarray
    loaded: np.ndarray
    pivots: int
    regularization: float = 0.0
    fallback: str | None = None


def solve(
    F: Any,
    e: Any,
    method: str = "ppm",
    options: Options | None = None,
    *,
    lo: Any = None,
    hi: Any = None,
) -> LCPResult:
    """Solve ``w = F z + e`` with ``lo <= z <= hi`` complementary to w.

    Args:
        F: (n, n) matrix.
        e: (n,) vector.
        method: "ppm", "qp" or "lemke".
        options: tolerances.
        lo: (n,) lower bounds of z, or one number; None for 0. -inf is allowed.
        hi: (n,) upper bounds of z, or one number; None for inf.

    Returns:
        A certified result. Row i of its residuals is measured by ``|F_i| |z| + |e_i|``, or by
        the largest ``|e|`` in the units of row i if that is larger.

    Raises:
        InputError: an argument cannot be used. For "ppm" and "qp": `NotSymmetricError` or
            `NotPositiveDefiniteError` if F is not symmetric positive semidefinite.
        InfeasibleError: no z satisfies all rows (only for semidefinite F).
        RayTerminationError: Lemke's method ended on a ray.
        SolveError: no certified answer was found; carries the problem.
    """
    options = checked(options)
    if method not in _METHODS:
        raise InputError("method", f"is {method!r}; expected one of {', '.join(_METHODS)}")
    problem = _checked(F, e, lo, hi)
    found = _METHODS[method](problem, options)
    return _judged(problem, found, options)


def _checked(F: Any, e: Any, lo: Any, hi: Any) -> DenseLCP:
    F = checks.as_matrix("F", F)
    if F.shape[0] != F.shape[1]:
        raise InputError("F", f"is {F.shape[0]} x {F.shape[1]}; expected a square matrix")
    e = checks.as_vector("e", e, F.shape[0], of=("F", F))
    checks.check_finite("F", F)
    checks.check_finite("e", e)
    lo, hi = bounds_or_none(lo, hi, e.size, ("F", F))
    if lo.size == 0:
        lo, hi = np.zeros(e.size), np.full(e.size, np.inf)
    bad = np.flatnonzero(~((lo <= hi) & (lo < np.inf) & (hi > -np.inf)))
    if bad.size:
        i = int(bad[0])
        raise InputError("lo", f"is {lo[i]} at [{i}] while hi is {hi[i]}; expected lo <= hi")
    return DenseLCP(F, e, lo, hi)


class SemidefiniteFactor(NamedTuple):
    """F = D A A' D with unit rows A (n, r) and D = diag(d)."""

    A: np.ndarray
    d: np.ndarray


def semidefinite_factor(F: np.ndarray, options: Options) -> SemidefiniteFactor:
    """Factor a symmetric positive semidefinite matrix, or refuse it by name.

    The spectrum of the matrix scaled to unit diagonal decides. Eigenvalues below ten times the
    noise (how negative the smallest one is, or rounding) are noise, not rank.
    """
    checks.check_symmetric("F", F, options.symmetry)
    diagonal = np.diagonal(F)
    d = np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    scaled = F / d[:, None] / d
    scaled = 0.5 * (scaled + scaled.T)
    values, vectors = np.linalg.eigh(scaled)
    largest = max(values.max(initial=0.0), np.finfo(float).tiny)
    noise = max(-values.min(initial=0.0), values.size * np.finfo(float).eps * largest)
    if noise > options.semidefinite * largest:
        raise NotPositiveDefiniteError(
            "F",
            *checks.eigenvalue_range(0.5 * (F + F.T)),
            semidefinite=True,
            advice='this method needs a semidefinite matrix; method="lemke" takes any',
        )
    kept = values > 10.0 * noise
    A = vectors[:, kept] * np.sqrt(values[kept])
    A[diagonal <= 0.0] = 0.0  # rows of zeros, not of rounding
    return SemidefiniteFactor(A, d)


def _ppm(problem: DenseLCP, options: Options) -> Found:
    """Principal pivoting on the factor of F."""
    A, d = semidefinite_factor(problem.F, options)
    bounds = {} if problem.plain else {"lo": problem.lo * d, "hi": problem.hi * d}
    try:
        result = solve_factored(
            np.ascontiguousarray(A), None, np.zeros(A.shape[1]), problem.e / d,
            options=options, **bounds,
        )  # fmt: skip
    except InfeasibleError as error:
        raise InfeasibleError(
            str(error), status=error.status, problem=problem, certificate=error.certificate / d
        ) from None
    except SolveError as error:
        raise type(error)(
            str(error), status=error.status, problem=problem, result=error.result
        ) from None
    except InputError as error:  # all that is left to refuse are sizes that cannot be squared
        raise InputError("e", "its entries and those of F span too many decades to be squared in "
                              "double precision; choose other units") from error  # fmt: skip
    z = result.z / d
    if bounds:  # on a bound means exactly on it, whatever the scaling
        z = np.where(result.z == bounds["lo"], problem.lo, z)
        z = np.where(result.z == bounds["hi"], problem.hi, z)
    return Found(z, result.loaded, result.pivots, fallback=result.fallback)


def _qp(problem: DenseLCP, options: Options) -> Found:
    """The dual problem, min 1/2 |y|^2 subject to A y + e >= 0, by daqp; z are its multipliers."""
    import daqp

    A, d = semidefinite_factor(problem.F, options)
    n, r = A.shape
    limit = 100 + 100 * n if options.max_pivots is None else options.max_pivots
    settings = {"primal_tol": 1e-12, "dual_tol": 1e-12, "iter_limit": limit}
    unit = np.abs(problem.e / d).max(initial=0.0) or 1.0  # daqp's tolerances are absolute
    e, scale = problem.e / d / unit, unit / d  # so z = scale times what daqp finds
    if problem.plain:
        H, f, rows = np.eye(r), np.zeros(r), np.ascontiguousarray(A)
        lower, upper = -e, np.full(n, 1e30)
    else:
        H, f, rows = A @ A.T, e, np.zeros((0, n))
        lower = np.maximum(problem.lo / scale, -1e30)
        upper = np.minimum(problem.hi / scale, 1e30)
    x, _, flag, info = daqp.solve(H, f, rows, upper, lower, **settings)
    if flag == -1:  # "infeasible", without a proof: principal pivoting has one, or an answer
        return _ppm(problem, options)._replace(fallback="ppm")
    if flag != 1:
        message = f"daqp gave up (exit flag {flag})"
        if flag == -4:
            message = f"{Status.PIVOT_LIMIT.message} ({info['iterations']} in daqp)"
        raise SolveError(message, status=Status.PIVOT_LIMIT, problem=problem)
    multiplier = np.asarray(info["lam"])
    if problem.plain:
        z = np.abs(multiplier) * scale
    else:  # a multiplier says which bound is active, more reliably than the value does
        z = np.where(multiplier < 0.0, problem.lo, x * scale)
        z = np.where(multiplier > 0.0, problem.hi, z)
    z = np.clip(z, problem.lo, problem.hi)
    loaded = np.flatnonzero((z > problem.lo) & (z < problem.hi))
    return Found(z, loaded, int(info["iterations"]))


def _lemke(problem: DenseLCP, options: Options) -> Found:
    """Lemke's method; free variables are eliminated where they can be, bounds become rows."""
    free = np.isinf(problem.lo) & np.isinf(problem.hi)
    A = problem.F[np.ix_(free, free)]
    if free.any() and np.linalg.cond(A) < REGULAR:
        return _lemke_eliminating(problem, free, options)
    F, e = _without_bounds(problem)
    outcome = lemke(F, e, options)
    if outcome.status is Status.RAY:
        assert outcome.ray is not None
        raise RayTerminationError(
            Status.RAY.message, status=Status.RAY, problem=problem, ray=outcome.ray
        )
    if outcome.status not in (Status.SOLVED, Status.UNCERTIFIED):
        raise SolveError(outcome.status.message, status=outcome.status, problem=problem)
    z = _with_bounds(problem, outcome.z)
    loaded = np.flatnonzero((z > problem.lo) & (z < problem.hi))
    return Found(z, loaded, outcome.pivots, outcome.regularization)


_METHODS: dict[str, Callable[[DenseLCP, Options], Found]] = {
    "ppm": _ppm,
    "qp": _qp,
    "lemke": _lemke,
}


def _lemke_eliminating(problem: DenseLCP, free: np.ndarray, options: Options) -> Found:
    """The same after ``z_free = -A^-1 (C z + e_free)``, for A the block of the free variables."""
    F, e, rest = problem.F, problem.e, ~free
    X = np.linalg.solve(F[np.ix_(free, free)], np.column_stack([F[np.ix_(free, rest)], e[free]]))
    D = F[np.ix_(rest, free)]
    reduced = DenseLCP(
        F[np.ix_(rest, rest)] - D @ X[:, :-1], e[rest] - D @ X[:, -1],
        problem.lo[rest], problem.hi[rest],
    )  # fmt: skip
    found = _lemke(reduced, options)
    z = np.empty(len(e))
    z[rest] = found.z
    z[free] = -(X[:, :-1] @ found.z + X[:, -1])
    loaded = np.union1d(np.flatnonzero(free), np.flatnonzero(rest)[found.loaded])
    return found._replace(z=z, loaded=loaded)


def _without_bounds(problem: DenseLCP) -> tuple[np.ndarray, np.ndarray]:
    """A plain LCP for the bounded one.

    A variable with a lower bound is shifted, one with only an upper bound is mirrored, a free one
    is split into two parts, and an upper bound besides a lower one becomes a row of its own whose
    multiplier u enters as w + u.
    """
    if problem.plain:
        return problem.F, problem.e
    P, shift, upper = _substitution(problem)
    F = P.T @ problem.F @ P
    e = P.T @ (problem.F @ shift + problem.e)
    k = upper.size
    E = np.zeros((F.shape[0], k))
    E[upper, np.arange(k)] = 1.0
    span = (problem.hi - problem.lo)[np.isfinite(problem.lo) & np.isfinite(problem.hi)]
    return np.block([[F, E], [-E.T, np.zeros((k, k))]]), np.concatenate([e, span])


def _substitution(problem: DenseLCP) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Z = P x + shift with x >= 0; and which entries of x have an upper bound."""
    n = problem.e.size
    below, above = np.isfinite(problem.lo), np.isfinite(problem.hi)
    free = np.flatnonzero(~below & ~above)
    sign = np.where(~below & above, -1.0, 1.0)
    P = np.zeros((n, n + free.size))
    P[np.arange(n), np.arange(n)] = sign
    P[free, n + np.arange(free.size)] = -1.0
    shift = np.where(below, problem.lo, np.where(above, problem.hi, 0.0))
    return P, shift, np.flatnonzero(below & above)


def _with_bounds(problem: DenseLCP, x: np.ndarray) -> np.ndarray:
    """The bounded variables of a solution of `_without_bounds`."""
    if problem.plain:
        return x
    P, shift, _ = _substitution(problem)
    return np.clip(P @ x[: P.shape[1]] + shift, problem.lo, problem.hi)


def _judged(problem: DenseLCP, found: Found, options: Options) -> LCPResult:
    """Polish z on the original F and e, measure the residuals, return or raise."""
    n = problem.e.size
    z = _on_bounds(problem, found.z)
    w, worst = _residuals(problem, z)
    for _ in range(3):
        if max(worst) <= 1e-15:
            break
        better = _polished(problem, z, w, found.loaded)
        w_better, worst_better = _residuals(problem, better)
        if not max(worst_better) < max(worst):
            break
        z, w, worst = better, w_better, worst_better
    rank = found.loaded.size
    data = np.zeros(2 * n + max(rank, 0) + _solve.SCALARS)
    data[:n], data[n : 2 * n], data[2 * n : 2 * n + rank] = z, w, found.loaded
    data[-_solve.SCALARS :] = *worst, 0.0, found.pivots, rank, 1, np.inf, 0.0, 0.0, 0.0
    certified = max(worst) <= options.certificate
    status = Status.SOLVED if certified else Status.UNCERTIFIED
    w, size = _evaluated(problem, z)
    wrong = _wrong(problem, z, w / size) > options.certificate
    result = LCPResult(
        data, n, 0, status, found.regularization, found.fallback,
        unheld=lambda _: np.flatnonzero(wrong),
    )  # fmt: skip
    if not certified:
        raise UncertifiedError(
            f"{status.message}: {result.residuals.largest:.1e} > {options.certificate:.1e}",
            status=status,
            problem=problem,
            result=result,
        )
    return result


def _on_bounds(problem: DenseLCP, z: np.ndarray) -> np.ndarray:
    """Put a z that misses a bound by rounding on that bound."""
    for bound in (problem.lo, problem.hi):
        finite = np.where(np.isfinite(bound), bound, 0.0)
        near = np.isfinite(bound) & (np.abs(z - finite) <= 1e-14 * np.abs(finite))
        z = np.where(near, finite, z)
    return z


def _residuals(problem: DenseLCP, z: np.ndarray) -> tuple[np.ndarray, tuple[float, float, float]]:
    """W = F z + e in twice the working precision; primal, dual and complementarity residuals.

    What may be the rounding of forces at their bounds does not count.
    """
    w, size = _evaluated(problem, z)
    more = np.sign(w) * np.maximum(np.abs(w) - problem.row_rounding, 0.0) / size
    wrong, inside = _wrong(problem, z, more), (z > problem.lo) & (z < problem.hi)
    with np.errstate(invalid="ignore"):
        outside = np.nan_to_num(np.maximum(problem.lo - z, z - problem.hi), nan=np.inf, neginf=0.0)
    scale = np.abs(z).max(initial=0.0) or 1.0
    return w, (
        float(wrong[~inside].max(initial=0.0)),
        float(outside.max(initial=0.0) / scale),
        float(wrong[inside].max(initial=0.0)),
    )


def _evaluated(problem: DenseLCP, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """W, and what it is measured by: the terms of its row, or `DenseLCP.row_floor`."""
    w, size = np.empty_like(z), np.empty_like(z)
    _dense.evaluate(problem.F, problem.e, z, w, size)
    size = np.maximum(size, problem.row_floor)
    return w, np.where(size > 0.0, size, 1.0)


def _wrong(problem: DenseLCP, z: np.ndarray, w: np.ndarray) -> np.ndarray:
    """(n,) by how much w is wrong: of the wrong sign at a bound, or not zero between them."""
    above = np.where(z > problem.lo, np.maximum(w, 0.0), 0.0)
    return np.where(z < problem.hi, np.maximum(-w, above), above)


def _polished(problem: DenseLCP, z: np.ndarray, w: np.ndarray, loaded: np.ndarray) -> np.ndarray:
    """One Newton step on the loaded rows of the original F."""
    better = z.copy()
    if loaded.size:
        block = problem.F[np.ix_(loaded, loaded)]
        better[loaded] -= np.linalg.lstsq(block, w[loaded], rcond=None)[0]
    return np.clip(better, problem.lo, problem.hi)
