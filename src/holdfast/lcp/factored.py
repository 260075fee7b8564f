"""The LCP of contact in factored form, the n x n matrix never formed.

    w = N M^-1 N' z + N v + b,      lo <= z <= hi,

with w_i >= 0 where z_i = lo_i, w_i <= 0 where z_i = hi_i, and w_i = 0 in between. Contacts have
lo = 0, hi = inf. Equality rows (joints, closed loops) have -inf and inf. Dry friction has -b and b.

    >>> import numpy as np
    >>> N = np.array([[0.0, 1.0]])              # a floor: speed upwards
    >>> M = np.eye(2)                           # a point of 1 kg in the plane
    >>> v = np.array([1.0, -3.0])               # on its way down
    >>> answer = solve_factored(N, M, v)
    >>> answer.z.tolist(), answer.motion.tolist()
    ([3.0], [1.0, 0.0])

Guarantees: an answer that is returned is certified on the original data (`LCPResult.residuals`
within `Options.certificate`), or an error is raised that carries the problem. Inputs are never
written. Same input, same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, NoReturn, TypeAlias

import numpy as np

from holdfast.errors import InfeasibleError, InputError, SolveError, UncertifiedError
from holdfast.lcp import _solve, checks
from holdfast.lcp.inertia import InertiaFactor
from holdfast.lcp.options import Options, checked
from holdfast.lcp.result import SCALARS, LCPResult
from holdfast.lcp.rows import BlockRows, dense_rows, split_rows
from holdfast.lcp.status import Status

Order: TypeAlias = tuple[int, int, int]

_NONE = np.empty(0)
_IDENTITY = np.empty((0, 0, 0))
NO_BLOCKS = np.empty((0, 0), dtype=np.int64)  # offsets of dense rows
_NO_ROWS = np.empty(0, dtype=np.int64)
_PAUSED, _SURVEY = _solve.PAUSED, _solve.SURVEY
_FOUND = (_solve.SOLVED, _solve.LEFT_OUT)
_LOST = (Status.PIVOT_LIMIT, Status.UNCERTIFIED)

COARSER_RANKS = (1e-10, 1e-8, 1e-6)
"""Rank tolerances to try where the default one led nowhere: rows so nearly dependent that
rounding decides which of them are loaded. The certificate stays what it is."""

_kernel = _solve.run
_survey = _solve.survey
_spare: list[np.ndarray] = []  # work arrays of solves that have ended, one per thread
_MOST_SPARED = 2**20  # numbers in one of them, 8 MB


@dataclass(frozen=True, eq=False)
class FactoredLCP:
    """The problem that an error carries: what was handed to `solve_factored`."""

    N: Any
    M: Any
    v: Any
    b: Any = None
    lo: Any = None
    hi: Any = None


class Arrays(NamedTuple):
    """The problem as the kernel takes it: float64, C order, and writable, though never written."""

    values: np.ndarray
    offsets: np.ndarray
    M: np.ndarray
    v: np.ndarray
    b: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    f: np.ndarray = _NONE  # if given, the free motion is v + h M^-1 f
    h: float = 0.0
    order: Order = (0, 0, 0)  # in which equality rows are taken; see `_candidates.row_at`

    def problem(self) -> FactoredLCP:
        """The same for people."""
        v = self.v + self.h * InertiaFactor(self.M).solve(self.f) if len(self.f) else self.v
        return FactoredLCP(self.values, self.M, v, self.b, self.lo, self.hi)

    @property
    def finite(self) -> bool:
        """Whether rows, inertia, motion and offsets are all finite."""
        given = (self.values, self.M, self.v, self.b, self.f)
        return all(np.isfinite(array).all() for array in given)


def solve_factored(
    N: Any,
    M: Any,
    v: Any,
    b: Any = None,
    warm_start: Any = None,
    options: Options | None = None,
    *,
    lo: Any = None,
    hi: Any = None,
) -> LCPResult:
    """Solve ``w = N M^-1 N' z + N v + b`` with ``lo <= z <= hi`` complementary to w.

    Algorithm 1 of the paper (modified principal pivoting) with the fixes described in
    `holdfast.lcp._pivoting`. Cost O(m^3 + m^2 n), in practice a few passes over N.

    Args:
        N: contact rows: dense (n, m), `BlockRows`, or a SciPy sparse matrix.
        M: inertia: dense (m, m), or its diagonal blocks (nb, s, s) with m = nb s. Symmetric
            positive definite. None stands for the identity.
        v: (m,) free motion: velocity after all other forces have acted, ``v + h M^-1 f``.
        b: (n,) offset of w; None for zeros. Minus the speed that a contact must reach.
        warm_start: rows expected to be loaded, or the result of an earlier, similar solve.
        options: tolerances; the default suits all problems known to us.
        lo: (n,) lower bounds of z, or one number; None for 0.
        hi: (n,) upper bounds of z, or one number; None for inf.

    Returns:
        A certified result.

    Raises:
        InputError: an argument cannot be used; the message says which and why.
        InfeasibleError: rows contradict each other; carries the Farkas certificate.
        SolveError: no certified answer was found; carries the problem.
    """
    options = checked(options)
    v_ = checks.as_vector("v", v)
    m = v_.shape[0]
    M_ = _blocks(M, m)
    values, offsets = split_rows(N, m, M_.shape[1], ("v", v_))
    n = values.shape[0]
    b_ = _NONE if b is None else checks.as_vector("b", b, n, of=("N", values))
    lo_, hi_ = bounds_or_none(lo, hi, n, ("N", values))
    warm = _NO_ROWS if warm_start is None else _warm_rows(warm_start)
    arrays = Arrays(values, offsets, M_, v_, b_, lo_, hi_)
    return solve_arrays(arrays, warm, options, lambda: FactoredLCP(N, M, v, b, lo, hi))


def solve_arrays(
    arrays: Arrays,
    warm: np.ndarray,
    options: Options,
    problem: Callable[[], FactoredLCP] | None,
    equality_rank: float = 0.0,
    pinned: int = -1,
) -> LCPResult:
    """`solve_factored` for arrays that are known to be in order.

    Args:
        arrays: see `Arrays`.
        warm: rows expected to be loaded.
        options: tolerances.
        problem: makes the problem that an error carries; None for these arrays.
        equality_rank: if positive, equality rows are cut down to an independent set first
            (Algorithm 2), with this as the rank tolerance; the others get no force and are
            not looked at again.
        pinned: how many rows have bounds other than those of a contact, equality rows that are
            cut down not counted; negative if not known.
    """
    if pinned < 0:
        pinned = _count_pinned(arrays.lo, arrays.hi) if len(arrays.lo) else 0
    status, out = run(arrays, warm, options, equality_rank, pinned)
    if status == _solve.SOLVED:
        return _found(arrays, options, out)
    return mend(status, out, arrays, warm, options, problem, equality_rank, pinned)


def _found(
    arrays: Arrays, options: Options, out: np.ndarray, fallback: str | None = None
) -> LCPResult:
    """The result of a solve that was certified."""
    unheld = partial(unheld_rows, arrays, options.certificate)
    return LCPResult(out, len(arrays.values), len(arrays.v), fallback=fallback, unheld=unheld)


def unheld_rows(arrays: Arrays, certificate: float, result: LCPResult) -> np.ndarray:
    """Rows that the solver ignored, and that the answer does not satisfy.

    They carry nothing, and their w is wrong by more than the certificate, by their own length.
    """
    values, offsets, M, v, _, lo, hi, f, h, _ = arrays
    z, w = result.z, result.w
    wrong = np.where(z < (hi if hi.size else np.inf), np.maximum(-w, 0.0), 0.0)
    wrong = np.where(z > (lo if lo.size else 0.0), np.maximum(w, wrong), wrong)
    wrong[result.loaded] = 0.0
    suspects = np.flatnonzero(wrong)
    rows = dense_rows(values[suspects], offsets[suspects] if offsets.size else offsets, len(v))
    largest = np.abs(rows).max(axis=1, initial=0.0)
    kept = largest > 0.0  # rows of zeros have no say
    suspects, rows, largest = suspects[kept], rows[kept], largest[kept]
    if not len(suspects):
        return suspects
    rows = rows / largest[:, None]  # lengths of any units have squares then
    if M.size:
        unit = _power(M)
        factor = InertiaFactor(M * unit)
        length = np.linalg.norm(factor.whiten(rows), axis=1)
        free = v + h * InertiaFactor(M).solve(f) if f.size else v
    else:
        factor, length, free = None, np.linalg.norm(rows, axis=1), v
    fast = min(_power(free), _power(result.motion))
    motions = [fast * x for x in (free, result.motion)]
    size = max(float(np.linalg.norm(x)) if factor is None else factor.size(x) for x in motions)
    return suspects[fast * (wrong[suspects] / largest) > certificate * length * size]


def mend(
    status: int,
    out: np.ndarray,
    arrays: Arrays,
    warm: np.ndarray,
    options: Options,
    problem: Callable[[], FactoredLCP] | None,
    equality_rank: float,
    pinned: int,
) -> LCPResult:
    """The result where `run` did not just solve it: other units, coarser ranks, or an error."""
    if status == _solve.LEFT_OUT:
        return _found(arrays, options, out)
    if status == _solve.NOT_FINITE and arrays.finite:
        status, out = _run_rescaled(arrays, warm, options, equality_rank, pinned)
        if status in _FOUND:
            return _found(arrays, options, out)
    if status in _LOST:
        for rank in COARSER_RANKS:
            coarser = replace(options, rank=rank)
            again, better = run(arrays, warm, coarser, equality_rank, pinned)
            if again in _FOUND:
                return _found(arrays, options, better, f"rank={rank:g}")
    _fail(status, arrays.problem() if problem is None else problem(), arrays, out, options)


def run(
    arrays: Arrays, warm: np.ndarray, options: Options, equality_rank: float, pinned: int
) -> tuple[int, np.ndarray]:
    """Status of the kernel and what it wrote."""
    values, offsets, M, v, b, lo, hi, f, h, order = arrays
    n, m = len(values), len(v)
    work = _spare.pop() if _spare else _NONE
    out = np.empty(2 * n + m + min(m, n) + SCALARS)
    fresh, tolerances = True, options.kernel_arguments
    while True:  # between two calls Ctrl-C gets through
        status = _kernel(values, offsets, M, v, f, b, lo, hi, warm, work, out, fresh, pinned, h,
                         tolerances, equality_rank, *order)  # fmt: skip
        if status == _SURVEY:
            state = work[m:]
            status = _survey(values, offsets, M, m, b, lo, hi, warm, state, state.view(np.int64),
                             out, pinned, options.feasibility, options.certificate,
                             *order[1:])  # fmt: skip
        if status == _solve.TOO_SMALL:
            work = np.empty(int(out[0]))
        elif status in (_PAUSED, _SURVEY):
            fresh = False
        else:
            if len(work) <= _MOST_SPARED:
                _spare.append(work)
            return status, out


def _blocks(M: Any, m: int) -> np.ndarray:
    """The inertia as blocks (nb, s, s); no blocks for the identity."""
    if M is None:
        return _IDENTITY
    array = checks.as_array("M", M)
    if array.ndim == 2:
        array = array[None]
    shape = array.shape
    if len(shape) != 3 or shape[1] != shape[2]:
        raise InputError(
            "M", f"has shape {np.shape(M)}; expected (m, m) or square blocks (nb, s, s)"
        )
    if shape[0] * shape[1] != m:
        checks.as_vector("v", np.empty(m), shape[0] * shape[1], of=("M", array))
    return array


def bounds_or_none(
    lo: Any, hi: Any, n: int, of: tuple[str, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Both bounds as vectors, empty for a plain LCP; a single number stands for all rows."""
    if lo is None and hi is None:
        return _NONE, _NONE
    bounds = []
    for name, value, default in (("lo", lo, 0.0), ("hi", hi, np.inf)):
        value = default if value is None else value
        if np.ndim(value) == 0:
            value = np.full(n, checks.as_array(name, value))
        bounds.append(checks.as_vector(name, value, n, of=of))
    return bounds[0], bounds[1]


def _warm_rows(warm_start: Any) -> np.ndarray:
    """Row numbers of a warm start; the kernel passes over those that do not exist."""
    rows = warm_start.loaded if isinstance(warm_start, LCPResult) else np.asarray(warm_start)
    if rows.size == 0:
        return _NO_ROWS
    if rows.ndim != 1 or rows.dtype.kind not in "iu":
        raise InputError(
            "warm_start",
            f"has dtype {rows.dtype} and shape {rows.shape}; expected row numbers or a result",
        )
    return rows if rows.dtype == np.int64 and rows.flags.carray else rows.astype(np.int64)


def _count_pinned(lo: np.ndarray, hi: np.ndarray) -> int:
    """How many rows have bounds other than those of a contact."""
    return int(np.count_nonzero((lo != 0.0) | (hi != np.inf)))


def _run_rescaled(
    arrays: Arrays, warm: np.ndarray, options: Options, equality_rank: float, pinned: int
) -> tuple[int, np.ndarray]:
    """As `run`, in units in which squares neither overflow nor vanish.

    Rows are multiplied by nu, the inertia by kappa and motions by alpha, powers of two, so that
    nothing is rounded: w becomes alpha nu w, and z becomes kappa alpha / nu z.
    """
    values, offsets, M, v, b, lo, hi, f, h, order = arrays
    n, m = len(values), len(v)
    if f.size:
        v = v + h * InertiaFactor(M).solve(f)
    nu, kappa = _power(values), _power(M)
    alpha = min(_power(v), _power(b) / (nu / np.sqrt(kappa))) if b.size else _power(v)
    force = kappa * alpha / nu
    with np.errstate(all="ignore"):
        rescaled = Arrays(
            values * nu, offsets, M * kappa, v * alpha, b * alpha * nu, lo * force, hi * force,
            order=order,
        )  # fmt: skip
        status, out = run(rescaled, warm, options, equality_rank, pinned)
        out[:n] /= force if status != _solve.INFEASIBLE else 1.0  # a certificate has no scale
        out[n : 2 * n] /= alpha * nu
        out[2 * n : 2 * n + m] /= alpha
    if status in _FOUND and not np.isfinite(out[: 2 * n + m]).all():
        status = _solve.NOT_FINITE
    return status, out


def _power(array: np.ndarray) -> float:
    """The power of two that brings the largest entry to about one; at most 2^500 either way."""
    largest = float(np.abs(array).max(initial=0.0))
    return 2.0 ** -float(np.clip(np.frexp(largest)[1], -500, 500)) if largest > 0.0 else 1.0


def _scale_error() -> InputError:
    return InputError(
        "N",
        "lengths overflow: entries of N, v and M span too many decades to be squared in "
        "double precision; choose other units",
    )


def _fail(
    status: int, problem: FactoredLCP, arrays: Arrays, out: np.ndarray, options: Options
) -> NoReturn:
    """Turn a status of the kernel into the exception that explains it."""
    values, _, M, v, b, lo, hi, *_ = arrays
    n, m = values.shape[0], v.shape[0]
    if status >= _solve.NOT_SYMMETRIC:
        for name, array in (("M", M), ("v", v), ("N", _as_given(problem.N, values)), ("b", b)):
            checks.check_finite(name, array if name != "M" or len(array) != 1 else array[0])
        checks.check_symmetric("M", M, options.symmetry)
        if status == _solve.NOT_DEFINITE:
            raise checks.not_positive_definite("M", M)
        if status == _solve.BAD_BOUNDS:
            bad = ~((lo <= hi) & (lo < np.inf) & (hi > -np.inf))
            i = int(np.flatnonzero(bad)[0])
            raise InputError(
                "lo",
                f"is {lo[i]} at [{i}] while hi is {hi[i]}; expected lo <= hi, lo below inf and hi "
                "above -inf",
            )
        raise _scale_error()
    result = LCPResult(out, n, m, Status(status))
    if status == _solve.INFEASIBLE:
        u = out[:n].copy()
        rows = np.flatnonzero(u)
        raise InfeasibleError(
            f"infeasible: {_listed(rows)} "
            f"(weighted sum of their w is {_farkas_value(u, b):.3g} < 0 whatever the motion); "
            "see .certificate",
            status=Status.INFEASIBLE,
            problem=problem,
            certificate=u,
        )
    if status == Status.UNCERTIFIED:
        raise UncertifiedError(
            f"{Status.UNCERTIFIED.message}: {result.residuals.largest:.1e} > "
            f"{options.certificate:.1e} ({result.residuals}, {result.allowance:.1e} of the "
            "stationarity allowed); the problem is worse conditioned than double precision can "
            "certify: check units and masses, or loosen Options.certificate",
            status=Status.UNCERTIFIED,
            problem=problem,
            result=result,
        )
    raise SolveError(
        f"{Status(status).message} ({result.pivots})",
        status=Status(status),
        problem=problem,
        result=result,
    )


def _as_given(N: Any, values: np.ndarray) -> np.ndarray:
    """Rows in the shape that their owner knows, for the index of an entry."""
    if isinstance(N, BlockRows):
        return N.values
    return N.toarray() if hasattr(N, "toarray") else values


def _farkas_value(u: np.ndarray, b: np.ndarray) -> float:
    return float(u @ b) if b.shape[0] else 0.0


def _listed(rows: np.ndarray, most: int = 8) -> str:
    if rows.size == 1:
        return f"row {rows[0]} cannot hold"
    text = ", ".join(str(i) for i in rows[:most])
    more = f", ... ({rows.size} in all)" if rows.size > most else ""
    return f"rows {text}{more} contradict each other"
