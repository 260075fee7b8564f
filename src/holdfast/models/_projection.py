"""The one problem under all models: the motion nearest to the free one that the rows allow.

    minimise  1/2 (x - x0)' M (x - x0)   subject to   G x = c_G,  A x >= c_A

plus rows with dry friction, whose force is bounded. The models say what M, x0 and the rows are;
this module cuts the equality rows down to an independent set (Find-Indices), hands everything to
one complementarity solver, and sorts the forces out again.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from holdfast import lcp
from holdfast.errors import InfeasibleError, InputError, SolveError
from holdfast.lcp.factored import Arrays, FactoredLCP, solve_arrays
from holdfast.lcp.find_indices import Indices, check_rank_tol
from holdfast.lcp.inertia import InertiaFactor
from holdfast.lcp.options import checked
from holdfast.models._reduction import RANK_TOL, ROUNDING, Elimination, check_targets
from holdfast.solution import ContactSolution

_NO_ROWS = np.empty(0, dtype=np.int64)
_NO_BLOCKS = np.empty((0, 0), dtype=np.int64)

Parts: TypeAlias = tuple[
    np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray
]  # of J, S, T, R, A and D


class Rows(NamedTuple):
    """What the motion must satisfy. All arrays have m columns or one entry per row."""

    J: np.ndarray
    S: np.ndarray  # tangents that stick; S and T row by row belong together
    T: np.ndarray
    R: np.ndarray
    c_J: np.ndarray
    A: np.ndarray  # unilateral: contact normals, then limits
    c_A: np.ndarray
    D: np.ndarray
    D_bound: np.ndarray


class Projection(NamedTuple):
    """Motion, and the force of every row (zero at equality rows found redundant)."""

    motion: np.ndarray
    f_J: np.ndarray
    f_S: np.ndarray
    f_T: np.ndarray
    f_R: np.ndarray
    f_A: np.ndarray
    f_D: np.ndarray
    pivots: int
    indices: Indices
    rank: int  # of the equality rows
    active: np.ndarray  # (k, m) rows that hold with equality, first the kept equality rows

    @property
    def loaded(self) -> np.ndarray:
        """Rows of A that carry force."""
        return self.f_A.nonzero()[0]


def project(
    M: np.ndarray,
    x0: np.ndarray,
    rows: Rows,
    *,
    solver: str = "ppm",
    options: lcp.Options | None = None,
    rank_tol: float = RANK_TOL,
    warm_start: Any = None,
) -> Projection:
    """Project the free motion x0 on what the rows allow, in the metric of M.

    "qp" and "lemke" solve an LCP whose matrix is certified, not its rows. Where those miss the
    certificate (the matrix squares their condition), pivoting goes on from the loaded set.

    Raises:
        InfeasibleError: with one weight per row in `certificate`, in the order of `by_part`.
    """
    check_rank_tol(rank_tol)
    warm = warm_rows(warm_start, len(rows.A))
    pivot = partial(_project_pivoting, M, x0, rows, checked(options), rank_tol, warm)
    if solver == "ppm":
        return pivot()
    if solver not in ("lemke", "qp"):
        raise InputError("solver", f"is {solver!r}; expected one of ppm, lemke, qp")
    try:
        answer, miss = _project_dense(M, x0, rows, solver, options, rank_tol)
    except InfeasibleError:  # it knows nothing of the equality rows; pivoting has the whole proof
        return pivot()
    except SolveError as failure:  # a ray, or endless pivots: perhaps since there is no answer
        try:
            pivot()
        except InfeasibleError:
            raise
        except SolveError:
            pass
        raise failure
    if miss <= checked(options).certificate:
        return answer
    better = _project_pivoting(M, x0, rows, checked(options), rank_tol, answer.loaded)
    return better._replace(pivots=answer.pivots + better.pivots)


def _project_dense(
    M: np.ndarray,
    x0: np.ndarray,
    rows: Rows,
    solver: str,
    options: lcp.Options | None,
    rank_tol: float,
) -> tuple[Projection, float]:
    """The same with the equality rows cut down and eliminated first; how far the rows miss."""
    indices = lcp.find_indices(M, rows.J, rows.S, rows.T, rank_tol=rank_tol)
    kept = _kept(rows, indices)
    extra = _independent_extra(M, kept, rows.R, rank_tol)
    G = np.vstack([kept, rows.R[extra]])
    c_G = np.zeros(len(G))
    c_G[: len(indices.J_rows)] = rows.c_J[indices.J_rows]
    z, motion, pivots, miss = _solve_dense(M, x0, G, c_G, rows, solver, options)
    g, a = len(G), len(rows.A)
    f_J, f_S, f_T, f_R = forces = [np.zeros(len(part)) for part in (rows.J, rows.S, rows.T, rows.R)]
    start = 0
    for force, which in zip(forces, (*indices, extra), strict=True):
        force[which] = z[start : start + len(which)]
        start += len(which)
    check_targets(M, rows.J, rows.c_J, indices.J_rows, motion, x0)
    f_A, f_D = z[g : g + a], z[g + a :]
    active = np.concatenate([G, rows.A[f_A != 0.0], rows.D[np.abs(f_D) < rows.D_bound]])
    return Projection(motion, f_J, f_S, f_T, f_R, f_A, f_D, pivots, indices, g, active), miss


def _project_pivoting(
    M: np.ndarray,
    x0: np.ndarray,
    rows: Rows,
    options: lcp.Options,
    rank_tol: float,
    warm: np.ndarray,
) -> Projection:
    """The same in one go: the solver cuts the equality rows down as it loads them.

    Rows go in by the order of the paper's Algorithm 2: J, then S and T contact by contact; R
    after them. Unilateral rows and rows with dry friction follow.
    """
    J, S, T, R, c_J, A, _, D, D_bound = rows
    j, t, a = len(J), len(S) + len(T), len(A)
    g = j + t + len(R)  # equality rows
    values, b, lo, hi = _stack(rows)
    blocks = np.array(M if M.ndim == 3 else M[None])
    arrays = Arrays(values, _NO_BLOCKS, blocks, np.array(x0), b, lo, hi)
    answer = solve_arrays(
        arrays, warm + g, options, lambda: FactoredLCP(values, M, x0, b, lo, hi), rank_tol
    )
    z, equal = answer.z, answer.loaded
    equal = equal[equal < g]
    equal.sort()
    ends = equal.searchsorted((j, j + t))
    tangents, step = equal[ends[0] : ends[1]] - j, 2 if len(T) else 1
    second = tangents % step == 1
    indices = Indices(
        equal[: ends[0]], tangents[~second] // step, tangents[second] // step,
        *answer.equality_pivots, rank_tol,
    )  # fmt: skip
    motion = answer.motion
    check_targets(M, J, c_J, indices.J_rows, motion, x0)
    forces = by_part(z, rows)
    holding = [equal, g + forces[4].nonzero()[0]]
    if len(D):
        holding.append(g + a + np.flatnonzero(np.abs(forces[5]) < D_bound))
    active = values[np.concatenate(holding)]
    return Projection(motion, *forces, answer.pivots, indices, len(equal), active)


def _stack(rows: Rows) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows, offsets and bounds one below the other: J, S and T in turns, R, A, D."""
    J, S, T, R, c_J, A, c_A, D, D_bound = rows
    j, a = len(J), len(A)
    t = j + len(S) + len(T)
    g = t + len(R)
    values = np.empty((g + a + len(D), J.shape[1]))
    offsets, lo, hi = np.zeros((3, len(values)))
    lo[:g] = -np.inf
    hi.fill(np.inf)
    values[:j] = J
    offsets[:j] = -c_J
    if len(T):
        values[j:t:2], values[j + 1 : t : 2] = S, T
    else:
        values[j:t] = S
    values[t:g] = R
    values[g : g + a] = A
    offsets[g : g + a] = -c_A
    if len(D):
        values[g + a :] = D
        lo[g + a :], hi[g + a :] = -D_bound, D_bound
    return values, offsets, lo, hi


def by_part(z: np.ndarray, rows: Rows) -> Parts:
    """Entries of J, S, T, R, A and D, out of one vector in the order of `_stack`."""
    j = len(rows.J)
    t = j + len(rows.S) + len(rows.T)
    r = t + len(rows.R)
    a = r + len(rows.A)
    S, T = (z[j:t:2], z[j + 1 : t : 2]) if len(rows.T) else (z[j:t], z[:0])
    return z[:j], S, T, z[t:r], z[r:a], z[a:]


def _kept(rows: Rows, indices: Indices) -> np.ndarray:
    return np.vstack([rows.J[indices.J_rows], rows.S[indices.S_rows], rows.T[indices.T_rows]])


def _independent_extra(
    M: np.ndarray, kept: np.ndarray, R: np.ndarray, rank_tol: float
) -> np.ndarray:
    """Rows of R that are independent of the kept rows and of each other."""
    if len(R) == 0:
        return np.zeros(0, dtype=np.int64)
    both = lcp.find_indices(M, np.vstack([kept, R]), rank_tol=rank_tol).J_rows
    return both[both >= len(kept)] - len(kept)


def _solve_dense(
    M: np.ndarray,
    x0: np.ndarray,
    G: np.ndarray,
    c_G: np.ndarray,
    rows: Rows,
    solver: str,
    options: lcp.Options | None,
) -> tuple[np.ndarray, np.ndarray, int, float]:
    """The LCP of the unilateral rows alone, as the paper has it, solved dense.

    Returns:
        Forces, motion, pivots, and the largest relative violation of a row by that motion.
    """
    reduction = Elimination(InertiaFactor(np.array(M[None])), np.linalg.cholesky(M), x0, G, c_G)
    B, targets = np.vstack([rows.A, rows.D]), np.concatenate([rows.c_A, np.zeros(len(rows.D))])
    columns, left, e = reduction.rows(B, targets)
    lo = np.concatenate([np.zeros(len(rows.A)), -rows.D_bound])
    hi = np.concatenate([np.full(len(rows.A), np.inf), rows.D_bound])
    bounds = {"lo": lo, "hi": hi} if len(rows.D) else {}
    answer = lcp.solve(left.T @ left, e, solver, options, **bounds)
    length, free = np.linalg.norm(columns, axis=0), np.linalg.norm(reduction.y0)
    z = np.where(np.abs(answer.z) * length > ROUNDING * free, answer.z, 0.0)  # or nothing presses
    effect = columns @ z
    motion = reduction.motion(effect)
    w = B @ motion - targets
    wrong = np.where(z <= lo, np.maximum(-w, 0.0), np.where(z >= hi, np.maximum(w, 0.0), np.abs(w)))
    after = np.linalg.norm(reduction.y1 + reduction.eliminate(effect))
    size = length * max(free, after)
    miss = np.divide(wrong, size, out=np.zeros_like(wrong), where=size > 0.0)
    forces = np.concatenate([reduction.forces(effect), z])
    return forces, motion, answer.pivots, float(miss.max(initial=0.0))


def warm_rows(warm_start: Any, count: int) -> np.ndarray:
    """Row numbers of a warm start, those from 0 to count - 1."""
    if warm_start is None:
        return _NO_ROWS
    given = warm_start.loaded if isinstance(warm_start, ContactSolution) else warm_start
    try:
        rows = np.asarray(given)
    except ValueError as error:
        raise InputError("warm_start", f"is not an array of row numbers ({error})") from error
    if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu"):
        raise InputError(
            "warm_start", f"has dtype {rows.dtype} and shape {rows.shape}; expected the numbers "
            "of contacts (and, from n on, of rows of U), or an earlier solution"
        )  # fmt: skip
    return rows[(rows >= 0) & (rows < count)].astype(np.int64)
