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
from holdfast.lcp.find_indices import check_rank_tol
from holdfast.lcp.inertia import InertiaFactor
from holdfast.lcp.options import checked
from holdfast.models._reduction import RANK_TOL, ROUNDING, Elimination, check_targets
from holdfast.problem import ContactProblem
from holdfast.solution import ContactSolution

_NO_ROWS = np.empty(0, dtype=np.int64)
_NO_BLOCKS = np.empty((0, 0), dtype=np.int64)


class Task(NamedTuple):
    """What is projected on what."""

    problem: ContactProblem  # whose rows these are
    M: np.ndarray  # (nb, s, s) the metric
    x0: np.ndarray  # (m,) the free motion
    targets: np.ndarray  # (k,) of all rows in the order of the problem's stack
    bound: np.ndarray  # (d,) of the force of each row of D
    sticking: np.ndarray  # (n,) contacts whose tangents, and rows of R, are equality rows


class Projection(NamedTuple):
    """Motion and forces, in the order of the problem's stack (zero where a row takes no part)."""

    motion: np.ndarray
    z: np.ndarray
    equal: np.ndarray  # the equality rows found independent: those of J, then the others
    pivots: int
    kept: float  # smallest pivot of Find-Indices kept, and largest rejected
    rejected: float

    def loaded(self, problem: ContactProblem) -> np.ndarray:
        """Contacts, and from n on rows of U, that carry force."""
        _, _, _, j, _, u, _ = problem.stack.ends
        return self.z[j:u].nonzero()[0]

    def joints(self, problem: ContactProblem) -> np.ndarray:
        """Rows of J found independent."""
        begin = problem.stack.ends[2]
        return self.equal[self.equal >= begin] - begin

    def active(self, task: Task) -> np.ndarray:
        """(k, m) rows that hold with equality, first the independent equality rows."""
        stack = task.problem.stack
        _, _, _, j, _, u, _ = stack.ends
        stuck = np.flatnonzero(np.abs(self.z[u:]) < task.bound)
        return stack.rows[np.concatenate([self.equal, j + self.loaded(task.problem), u + stuck])]


def project(
    task: Task,
    *,
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
    better = pivot(answer.loaded(task.problem))
    return better._replace(pivots=answer.pivots + better.pivots)


def _project_pivoting(
    task: Task, options: lcp.Options, rank_tol: float, warm: np.ndarray
) -> Projection:
    """The same in one go: the solver cuts the equality rows down as it loads them.

    They are taken by the order of the paper's Algorithm 2: J, then S and T contact by contact; R
    after them.
    """
    problem, M, x0, targets, bound, sticking = task
    stack = problem.stack
    s, t, r, j, _, u, _ = stack.ends
    which = slice(None)  # rows that take part
    pairs, out = t - s, 0  # contacts with two tangents; rows before J that take no part
    if r > 0 and not sticking.all():
        if sticking.any():
            held = np.concatenate([np.tile(sticking, 2)[:t], sticking[problem.R_contact]])
            which = np.concatenate([np.flatnonzero(held), np.arange(r, len(targets))])
            pairs, out = np.count_nonzero(sticking) if t > s else 0, r - np.count_nonzero(held)
        else:
            which, pairs, out = slice(r, None), 0, r
    values, b = stack.rows[which], -targets[which]
    bounds = np.empty((2, len(b)))
    lo, hi = bounds
    lo.fill(0.0)
    lo[: j - out] = -np.inf
    hi.fill(np.inf)
    if len(bound):
        lo[u - out :], hi[u - out :] = -bound, bound
    arrays = Arrays(values, _NO_BLOCKS, M, x0, b, lo, hi)
    try:
        answer = solve_arrays(
            arrays, warm + (j - out), options, lambda: FactoredLCP(values, M, x0, b, lo, hi),
            rank_tol, (pairs, r - out, j - out),
        )  # fmt: skip
    except InfeasibleError as error:
        error.certificate = _placed(error.certificate, which, len(targets))
        raise
    _, _, _, _, pivots, _, _, kept, rejected, equalities = answer.scalars
    equal = answer.loaded[: int(equalities)]
    z = answer.z
    if out:
        equal = which[equal] if isinstance(which, np.ndarray) else equal + out
        z = _placed(z, which, len(targets))
    found = Projection(answer.motion, z, equal, int(pivots), kept, rejected)
    if j > r and not (len(equal) >= j - r and equal[j - r - 1] >= r):  # not all of J were kept
        check_targets(M, problem.J, targets[r:j], found.joints(problem), found.motion, x0)
    return found


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
    check_targets(M, p.J, task.targets[r:j], indices.J_rows, motion, task.x0)
    pivot = (indices.smallest_kept, indices.largest_rejected)
    return Projection(motion, z, equal, pivots, *pivot), miss


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
    _, _, _, j, _, u, d = stack.ends
    B, targets = stack.rows[j:], task.targets[j:]
    reduction = Elimination(
        InertiaFactor(np.array(M[None])), np.linalg.cholesky(M), task.x0, stack.rows[equal],
        task.targets[equal],
    )  # fmt: skip
    columns, left, e = reduction.rows(B, targets)
    lo = np.concatenate([np.zeros(u - j), -task.bound])
    hi = np.concatenate([np.full(u - j, np.inf), task.bound])
    bounds = {"lo": lo, "hi": hi} if d > u else {}
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
