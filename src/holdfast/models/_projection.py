"""The one problem under all models: the motion nearest to the free one that the rows allow.

    minimise  1/2 (x - x0)' M (x - x0)   subject to   G x = c_G,  A x >= c_A

plus rows with dry friction, whose force is bounded. The models say what M, x0, the targets and the
contacts that stick are; this module cuts the equality rows down to an independent set
(Find-Indices), hands everything to one complementarity solver, and puts the forces back in the
order of the problem's rows (`holdfast.problem.Stack`).
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from holdfast import lcp
from holdfast.errors import InfeasibleError, InputError, SolveError
from holdfast.lcp.factored import Arrays, FactoredLCP, solve_arrays
from holdfast.lcp.find_indices import ambiguous, check_rank_tol, gap
from holdfast.lcp.inertia import InertiaFactor
from holdfast.lcp.options import checked
from holdfast.models._reduction import RANK_TOL, ROUNDING, Elimination, check_targets
from holdfast.problem import ContactProblem
from holdfast.solution import ContactSolution, Level

_NO_ROWS = np.empty(0, dtype=np.int64)
_NO_BLOCKS = np.empty((0, 0), dtype=np.int64)


class Task(NamedTuple):
    """What is projected on what. Arrays as `holdfast.lcp.factored.Arrays` has them."""

    problem: ContactProblem  # whose rows these are
    sticking: np.ndarray  # (n,) contacts whose tangents, and rows of R, are equality rows
    M: np.ndarray  # (nb, s, s) the metric
    v: np.ndarray  # (m,) the free motion is v + h M^-1 f
    f: np.ndarray  # (m,) or empty
    h: float
    b: np.ndarray  # (k,) minus the targets of all rows, in the order of the problem's stack
    lo: np.ndarray  # (k,) bounds of their forces
    hi: np.ndarray

    @property
    def free(self) -> np.ndarray:
        """(m,) the free motion."""
        return self.problem.free_velocity if len(self.f) else self.v


class Projection(NamedTuple):
    """The answer to a task, with what a `ContactSolution` wants to know about it."""

    task: Task
    motion: np.ndarray
    z: np.ndarray  # (k,) forces in the order of the stack, zero where a row takes no part
    equal: np.ndarray  # the equality rows found independent: those of J, then the others
    pivots: int
    kept: float  # smallest pivot of Find-Indices kept, and largest rejected
    rejected: float
    rank_tol: float
    level: Level = "velocity"
    damping: np.ndarray | None = None  # (m, m) viscous drag
    viscous: np.ndarray | None = None  # (n, 2) its forces

    problem = property(lambda self: self.task.problem)
    sticking = property(lambda self: self.task.sticking)
    extra = property(lambda self: self._part(2))
    bilateral = property(lambda self: self._part(3))
    normal = property(lambda self: self._part(4))
    unilateral = property(lambda self: self._part(5))
    dry = property(lambda self: self._part(6))
    rank = property(lambda self: len(self.equal))
    rank_gap = property(lambda self: gap(self.kept, self.rejected))
    rank_ambiguous = property(lambda self: ambiguous(self.kept, self.rejected, self.rank_tol))

    def _part(self, number: int) -> np.ndarray:
        return self.task.problem.stack.split(self.z)[number]

    @property
    def tangent(self) -> np.ndarray:
        """(n, 2) along S and T."""
        tangent = np.zeros((self.task.problem.n, 2))
        for k in range(2):
            forces = self._part(k)
            tangent[: len(forces), k] = forces
        return tangent if self.viscous is None else tangent + self.viscous

    @property
    def loaded(self) -> np.ndarray:
        """Contacts, and from n on rows of U, that carry force."""
        _, _, _, j, _, u, _ = self.task.problem.stack.ends
        return self.z[j:u].nonzero()[0]

    @property
    def bilateral_rows(self) -> np.ndarray:
        """Rows of J found independent."""
        begin = self.task.problem.stack.ends[2]
        return self.equal[self.equal >= begin] - begin

    @property
    def active(self) -> np.ndarray:
        """(k, m) rows that hold with equality, first the independent equality rows."""
        stack = self.task.problem.stack
        _, _, _, j, _, u, _ = stack.ends
        stuck = np.flatnonzero(np.abs(self.z[u:]) < self.task.hi[u:])
        return stack.rows[np.concatenate([self.equal, j + self.loaded, u + stuck])]

    @property
    def drag(self) -> np.ndarray:
        """(m, m) viscous drag."""
        m = self.task.problem.m
        return np.zeros((m, m)) if self.damping is None else self.damping


def project(
    task: Task,
    solver: str = "ppm",
    options: lcp.Options | None = None,
    rank_tol: float = RANK_TOL,
    warm_start: Any = None,
) -> Projection:
    """Project the free motion on what the rows allow.

    "qp" and "lemke" solve an LCP whose matrix is certified, not its rows. Where those miss the
    certificate (the matrix squares their condition), pivoting goes on from the loaded set.

    Raises:
        InfeasibleError: with one weight per row in `certificate`, in the order of the stack.
    """
    check_rank_tol(rank_tol)
    options = checked(options)
    warm = warm_rows(warm_start, task.problem)
    if solver == "ppm":
        return _project_pivoting(task, options, rank_tol, warm)
    if solver not in ("lemke", "qp"):
        raise InputError("solver", f"is {solver!r}; expected one of ppm, lemke, qp")
    pivot = partial(_project_pivoting, task, options, rank_tol)
    try:
        answer, miss = _project_dense(task, solver, options, rank_tol)
    except InfeasibleError:  # it knows nothing of the equality rows; pivoting has the whole proof
        return pivot(warm)
    except SolveError as failure:  # a ray, or endless pivots: perhaps since there is no answer
        try:
            pivot(warm)
        except InfeasibleError:
            raise
        except SolveError:
            pass
        raise failure
    if miss <= options.certificate:
        return answer
    better = pivot(answer.loaded)
    return better._replace(pivots=answer.pivots + better.pivots)


def _project_pivoting(
    task: Task, options: lcp.Options, rank_tol: float, warm: np.ndarray
) -> Projection:
    """The same in one go: the solver cuts the equality rows down as it loads them.

    They are taken by the order of the paper's Algorithm 2: J, then S and T contact by contact; R
    after them.
    """
    problem, sticking, M, v, f, h, b, lo, hi = task
    stack = problem.stack
    s, t, r, j, _, u, k = stack.ends
    rows, which, out, pairs = stack.rows, None, 0, t - s  # contacts with two tangents
    if sticking is not stack.everywhere and r > 0:
        which = _taking_part(problem, sticking)
        rows, b, lo, hi = rows[which], b[which], lo[which], hi[which]
        out = k - len(b)
        pairs = int(np.count_nonzero(sticking)) if pairs else 0
    order = (pairs, r - out, j - out)
    arrays = Arrays(rows, _NO_BLOCKS, M, v, b, lo, hi, f, h, order)
    try:
        answer = solve_arrays(
            arrays, warm + (j - out) if len(warm) else warm, options,
            lambda: FactoredLCP(rows, M, task.free, b, lo, hi), rank_tol, j - out + k - u,
        )  # fmt: skip
    except InfeasibleError as error:
        if which is not None:
            error.certificate = _placed(error.certificate, which, k)
        raise
    z, (*_, pivots, _, _, kept, rejected, equalities) = answer.z, answer.scalars
    equal = answer.first_loaded(int(equalities))
    if which is not None:
        equal = which[equal] if isinstance(which, np.ndarray) else equal + out
        z = _placed(z, which, k)
    found = Projection(task, answer.motion, z, equal, int(pivots), kept, rejected, rank_tol)
    if j > r and not (len(equal) >= j - r and equal[j - r - 1] >= r):  # not all of J were kept
        _check_joints(found)
    return found


def _check_joints(found: Projection) -> None:
    """See `check_targets`."""
    task = found.task
    _, _, r, j, _, _, _ = task.problem.stack.ends
    J, rows = task.problem.J, found.bilateral_rows
    check_targets(task.M, J, -task.b[r:j], rows, found.motion, task.free)


def _taking_part(problem: ContactProblem, sticking: np.ndarray) -> slice | np.ndarray:
    """Which rows of the stack take part: not the friction rows of contacts that do not stick."""
    _, t, r, _, _, _, k = problem.stack.ends
    if not sticking.any():
        return slice(r, None)
    held = np.concatenate([sticking, sticking])[:t]
    return np.flatnonzero(np.concatenate([held, sticking[problem.R_contact], np.ones(k - r, bool)]))


def _placed(part: np.ndarray, which: slice | np.ndarray, count: int) -> np.ndarray:
    """Entries of some rows in their places among all, zeros elsewhere."""
    whole = np.zeros(count)
    whole[which] = part
    return whole


def _project_dense(
    task: Task, solver: str, options: lcp.Options, rank_tol: float
) -> tuple[Projection, float]:
    """The same with the equality rows cut down and eliminated first; how far the rows miss."""
    p, held = task.problem, task.sticking
    stack, M = p.stack, task.M[0] if len(task.M) == 1 else p.inertia
    s, t, r, j, _, _, _ = stack.ends
    numbers = [np.arange(r, j)]
    for begin, end, mask in ((0, s, held), (s, t, held), (t, r, held[p.R_contact])):
        numbers.append(begin + np.flatnonzero(mask) if end > begin else _NO_ROWS)
    J, S, T, R = (stack.rows[which] for which in numbers)
    indices = lcp.find_indices(M, J, S, T, rank_tol=rank_tol)
    equal = np.concatenate([
        which[kept] for which, kept in zip(numbers, indices, strict=False)
    ])  # fmt: skip
    extra = numbers[3][_independent_extra(M, stack.rows[equal], R, rank_tol)]
    equal = np.concatenate([equal, extra])
    forces, motion, pivots, miss = _solve_dense(task, M, equal, solver, options)
    z = np.zeros(len(stack.rows))
    z[equal], z[j:] = forces[: len(equal)], forces[len(equal) :]
    pivot = (indices.smallest_kept, indices.largest_rejected)
    found = Projection(task, motion, z, equal, pivots, *pivot, rank_tol)
    _check_joints(found)
    return found, miss


def _independent_extra(
    M: np.ndarray, kept: np.ndarray, R: np.ndarray, rank_tol: float
) -> np.ndarray:
    """Rows of R that are independent of the kept rows and of each other."""
    if len(R) == 0:
        return _NO_ROWS
    both = lcp.find_indices(M, np.vstack([kept, R]), rank_tol=rank_tol).J_rows
    return both[both >= len(kept)] - len(kept)


def _solve_dense(
    task: Task, M: np.ndarray, equal: np.ndarray, solver: str, options: lcp.Options
) -> tuple[np.ndarray, np.ndarray, int, float]:
    """The LCP of the other rows alone, as the paper has it, solved dense.

    Returns:
        Forces of the equality rows and of the others, motion, pivots, and the largest relative
        violation of a row by that motion.
    """
    stack = task.problem.stack
    _, _, _, j, _, u, k = stack.ends
    B, targets, lo, hi = stack.rows[j:], -task.b[j:], task.lo[j:], task.hi[j:]
    reduction = Elimination(
        InertiaFactor(np.array(M[None])), np.linalg.cholesky(M), task.free, stack.rows[equal],
        -task.b[equal],
    )  # fmt: skip
    columns, left, e = reduction.rows(B, targets)
    bounds = {"lo": lo, "hi": hi} if k > u else {}
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


def warm_rows(warm_start: Any, problem: ContactProblem) -> np.ndarray:
    """Row numbers of a warm start, those of contacts and, from n on, of rows of U."""
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
    count = problem.n + len(problem.U)
    return rows[(rows >= 0) & (rows < count)].astype(np.int64)
