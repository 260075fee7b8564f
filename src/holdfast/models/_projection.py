"""The one problem under all models: the motion nearest to the free one that the rows allow.

    minimise  1/2 (x - x0)' M (x - x0)   subject to   G x = c_G,  A x >= c_A

plus rows with dry friction, whose force is bounded. The models say what M, x0 and the rows are;
this module cuts the equality rows down to an independent set (Find-Indices), hands everything to
one complementarity solver, and sorts the forces out again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from holdfast import lcp
from holdfast.errors import InputError
from holdfast.lcp.factored import Arrays, FactoredLCP, solve_arrays
from holdfast.lcp.find_indices import Indices, check_rank_tol

RANK_TOL = 1e-6  # see `holdfast.find_indices`
ZERO_ROW = lcp.Options().zero_row
SPANNED = 1e-10  # a row this much shorter after elimination lies in the span of what was eliminated
INCONSISTENT = 1e-5  # a redundant row that misses its target by more, relatively, contradicts

_NONE = np.empty(0)
_NO_ROWS = np.empty(0, dtype=np.int64)
_NO_BLOCKS = np.empty((0, 0), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Rows:
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


@dataclass(frozen=True, eq=False)
class Projection:
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
    G: np.ndarray  # (rank, m) the equality rows that were kept
    rows: Rows
    residuals: lcp.Residuals

    @property
    def loaded(self) -> np.ndarray:
        """Rows of A that carry force."""
        return np.flatnonzero(self.f_A)

    @property
    def active(self) -> np.ndarray:
        """(k, m) rows that hold with equality, those of G first: for the linear map."""
        rows = self.rows
        stuck = np.abs(self.f_D) < rows.D_bound
        return np.concatenate([self.G, rows.A[self.loaded], rows.D[stuck]])


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
    """Project the free motion x0 on what the rows allow, in the metric of M."""
    check_rank_tol(rank_tol)
    if solver == "ppm":
        return _project_pivoting(M, x0, rows, options or lcp.Options(), rank_tol, warm_start)
    if solver not in ("lemke", "qp"):
        raise InputError("solver", f"is {solver!r}; expected one of ppm, lemke, qp")
    indices = lcp.find_indices(M, rows.J, rows.S, rows.T, rank_tol=rank_tol)
    kept = _kept(rows, indices)
    extra = _independent_extra(M, kept, rows.R, rank_tol)
    G = np.vstack([kept, rows.R[extra]])
    c_G = np.zeros(len(G))
    c_G[: len(indices.J_rows)] = rows.c_J[indices.J_rows]
    z, motion, pivots, residuals = _solve_dense(M, x0, G, c_G, rows, solver, options)
    g, a = len(G), len(rows.A)
    f_J, f_S, f_T, f_R = forces = [np.zeros(len(part)) for part in (rows.J, rows.S, rows.T, rows.R)]
    start = 0
    for force, which in zip(forces, (*indices, extra), strict=True):
        force[which] = z[start : start + len(which)]
        start += len(which)
    check_targets(M, rows, indices, motion, x0)
    return Projection(
        motion, f_J, f_S, f_T, f_R, z[g : g + a], z[g + a :], pivots, indices, G, rows, residuals
    )


def _project_pivoting(
    M: np.ndarray,
    x0: np.ndarray,
    rows: Rows,
    options: lcp.Options,
    rank_tol: float,
    warm_start: Any,
) -> Projection:
    """The same in one go: the solver cuts the equality rows down as it loads them.

    Rows go in by the order of the paper's Algorithm 2: J, then S and T contact by contact; R
    after them. Unilateral rows and rows with dry friction follow.
    """
    parts = (rows.J, _interleaved(rows.S, rows.T), rows.R, rows.A, rows.D)
    values = np.concatenate(parts)
    j, t, r, a = map(len, parts[:4])
    g = j + t + r  # equality rows
    b = _NONE
    if rows.c_J.any() or rows.c_A.any():
        b = np.zeros(len(values))
        b[:j] = -rows.c_J
        b[g : g + a] = -rows.c_A
    lo, hi = np.zeros(len(values)), np.full(len(values), np.inf)
    lo[:g] = -np.inf
    lo[g + a :] = -rows.D_bound
    hi[g + a :] = rows.D_bound
    blocks = np.array(M if M.ndim == 3 else M[None])
    arrays = Arrays(values, _NO_BLOCKS, blocks, np.array(x0), b, lo, hi)
    warm = _NO_ROWS if warm_start is None else np.asarray(warm_start, dtype=np.int64) + g
    answer = solve_arrays(
        arrays, warm, options, lambda: FactoredLCP(values, M, x0, b, lo, hi), rank_tol
    )
    z, loaded = answer.z, np.sort(answer.loaded)
    kept = loaded[: np.searchsorted(loaded, g)]
    tangents = kept[np.searchsorted(kept, j) : np.searchsorted(kept, j + t)] - j
    step = 2 if len(rows.T) else 1
    indices = Indices(
        kept[: np.searchsorted(kept, j)],
        tangents[tangents % step == 0] // step,
        tangents[tangents % step == 1] // step,
        *answer.equality_pivots,
        rank_tol,
    )
    check_targets(M, rows, indices, answer.motion, x0)
    along = z[j : j + t]
    return Projection(
        answer.motion, z[:j], along[::step], along[1::step] if step == 2 else along[:0],
        z[j + t : g], z[g : g + a], z[g + a :], answer.pivots, indices, values[kept], rows,
        answer.residuals,
    )  # fmt: skip


def _interleaved(S: np.ndarray, T: np.ndarray) -> np.ndarray:
    """Rows S_0, T_0, S_1, T_1, ...; S alone where there are no second tangents."""
    if len(T) == 0:
        return S
    both = np.empty((2 * len(S), S.shape[1]))
    both[::2], both[1::2] = S, T
    return both


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
) -> tuple[np.ndarray, np.ndarray, int, lcp.Residuals]:
    """The LCP of the unilateral rows alone, as the paper has it, solved dense.

    The equality rows leave ``x = x1 + P A' f`` where ``P = L^-T (I - Q Q') L^-1``, Q an orthonormal
    basis of the whitened rows G, and x1 is x0 moved to ``G x1 = c_G``. The paper's
    ``K = G M^-1 G'`` would square the condition of G.
    """
    from scipy.linalg import solve_triangular

    L = np.linalg.cholesky(M) if len(x0) else np.zeros((0, 0))
    Gw = solve_triangular(L, G.T, lower=True) if len(x0) else G.T  # whitened rows, as columns
    Bw = solve_triangular(L, np.vstack([rows.A, rows.D]).T, lower=True)
    Q, R = np.linalg.qr(Gw)
    target = solve_triangular(R, c_G, trans=1) if len(G) else c_G
    y0 = L.T @ x0
    y1 = y0 - Q @ (Q.T @ y0) + Q @ target
    Pw = Bw - Q @ (Q.T @ Bw)
    e = Bw.T @ y1 - np.concatenate([rows.c_A, np.zeros(len(rows.D))])
    # What elimination leaves of a row in the span of G is rounding, and so is its motion.
    length = np.linalg.norm(Bw, axis=0)
    spanned = np.linalg.norm(Pw, axis=0) <= SPANNED * length
    Pw[:, spanned] = 0.0
    e[spanned & (np.abs(e) <= SPANNED * length * max(map(np.linalg.norm, (y0, y1))))] = 0.0
    F = Pw.T @ Pw
    lo = hi = None
    if len(rows.D):
        lo = np.concatenate([np.zeros(len(rows.A)), -rows.D_bound])
        hi = np.concatenate([np.full(len(rows.A), np.inf), rows.D_bound])
    answer = lcp.solve(F, e, solver, options, lo=lo, hi=hi)
    y = y1 + Pw @ answer.z
    missing = target - Q.T @ (y0 + Bw @ answer.z)
    f_G = solve_triangular(R, missing) if len(G) else np.zeros(0)
    motion = solve_triangular(L.T, y, lower=False)
    return np.concatenate([f_G, answer.z]), motion, answer.pivots, answer.residuals


def check_targets(
    M: np.ndarray, rows: Rows, indices: Indices, motion: np.ndarray, x0: np.ndarray
) -> None:
    """Redundant bilateral rows must agree with the others."""
    if len(rows.J) == len(indices.J_rows):
        return
    miss = np.abs(rows.J @ motion - rows.c_J)
    diagonal = np.diagonal(M, axis1=-2, axis2=-1).ravel()
    speed = max(np.linalg.norm(np.sqrt(diagonal) * x) for x in (motion, x0))
    length = np.linalg.norm(rows.J / np.sqrt(diagonal), axis=1)
    size = length * speed + np.abs(rows.c_J).max(initial=0.0)
    real = (length > ZERO_ROW * length.max()) | (rows.c_J != 0.0)  # not left over by cancellation
    bad = np.flatnonzero(real & (miss > INCONSISTENT * size))
    if bad.size:
        i = int(bad[0])
        raise InputError(
            "J",
            f"row {i} contradicts the rows before it: it depends on them, but they give "
            f"{rows.J[i] @ motion:.6g} where its target c_J is {rows.c_J[i]:.6g}",
        )
