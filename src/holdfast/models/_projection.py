"""The one problem under all models: the motion nearest to the free one that the rows allow.

    minimise  1/2 (x - x0)' M (x - x0)   subject to   G x = c_G,  A x >= c_A

plus rows with dry friction, whose force is bounded. The models say what M, x0, the targets and the
contacts that stick are; this module cuts the equality rows down to an independent set
(Find-Indices), hands everything to one complementarity solver, and puts the forces back in the
order of the problem's rows (`holdfast.contact.stack.Stack`).
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple, NoReturn

import numpy as np

from holdfast import lcp
from holdfast.contact.problem import ContactProblem
from holdfast.contact.solution import ContactSolution, Level
from holdfast.errors import InfeasibleError, InputError, SolveError
from holdfast.lcp._solve import SOLVED
from holdfast.lcp.factored import Arrays, mend, run
from holdfast.lcp.find_indices import RANK_TOL, ambiguous, gap
from holdfast.lcp.inertia import InertiaFactor
from holdfast.lcp.options import DEFAULT
from holdfast.lcp.result import after, among, data_of, first_loaded, scalars
from holdfast.models._choices import check_rigid
from holdfast.models._reduction import INCONSISTENT, ROUNDING, Elimination, check_targets

_NO_ROWS = np.empty(0, dtype=np.int64)


class Projection(NamedTuple):
    """The answer, with what a `ContactSolution` wants to know about it."""

    problem: ContactProblem
    sticking: np.ndarray
    arrays: Arrays
    data: np.ndarray  # of the answer, for all rows; those that take no part have no force
    rank_tol: float
    level: Level = "velocity"
    damping: np.ndarray | None = None  # (m, m) viscous drag
    viscous: np.ndarray | None = None  # (n, 2) its forces

    answer = property(lambda self: lcp.LCPResult(self.data, len(self.arrays.b), self.problem.m))
    motion = property(lambda self: self.answer.motion)
    pivots = property(lambda self: self.answer.pivots)
    extra = property(lambda self: self._part(2))
    bilateral = property(lambda self: self._part(3))
    normal = property(lambda self: self._part(4))
    unilateral = property(lambda self: self._part(5))
    dry = property(lambda self: self._part(6))
    rank = property(lambda self: int(scalars(self.answer)[9]))
    rank_gap = property(lambda self: gap(*self.answer.equality_pivots))

    @property
    def rank_ambiguous(self) -> bool:
        """Whether the motion may depend on the rank tolerance."""
        kept, rejected = self.answer.equality_pivots
        return ambiguous(kept, rejected, self.rank_tol)

    def _part(self, number: int) -> np.ndarray:
        return self.problem.stack.split(self.answer.z)[number]

    @property
    def tangent(self) -> np.ndarray:
        """(n, 2) along S and T."""
        tangent = np.zeros((self.problem.n, 2))
        for k in range(2):
            forces = self._part(k)
            tangent[: len(forces), k] = forces
        return tangent if self.viscous is None else tangent + self.viscous

    @property
    def loaded(self) -> np.ndarray:
        """Contacts, and from n on rows of U, that carry force."""
        _, _, _, j, _, u, _ = self.problem.stack.ends
        return self.answer.z[j:u].nonzero()[0]

    @property
    def equal(self) -> np.ndarray:
        """The equality rows found independent: those of J, then the others."""
        return first_loaded(self.answer, self.rank)

    @property
    def bilateral_rows(self) -> np.ndarray:
        """Rows of J found independent."""
        begin, equal = self.problem.stack.ends[2], self.equal
        return equal[equal >= begin] - begin

    @property
    def active(self) -> np.ndarray:
        """(k, m) rows that hold with equality, first the independent equality rows."""
        _, _, _, j, _, u, _ = self.problem.stack.ends
        stuck = np.flatnonzero(np.abs(self.dry) < self.arrays.hi[u:])
        return self.arrays.values[np.concatenate([self.equal, j + self.loaded, u + stuck])]

    @property
    def drag(self) -> np.ndarray:
        """(m, m) viscous drag."""
        m = self.problem.m
        return np.zeros((m, m)) if self.damping is None else self.damping


def project(
    problem: ContactProblem,
    sticking: np.ndarray,
    arrays: Arrays,
    solver: str = "ppm",
    options: lcp.Options | None = None,
    rank_tol: float = RANK_TOL,
    warm_start: Any = None,
) -> Projection:
    """Project the free motion on what the rows allow.

    "qp" and "lemke" solve an LCP whose matrix is certified, not its rows. Where those miss the
    certificate (the matrix squares their condition), pivoting goes on from the loaded set.

    Args:
        problem: whose rows these are.
        sticking: (n,) contacts whose tangents, and rows of R, are equality rows.
        arrays: metric, free motion, targets and bounds for all rows of the problem's stack.
        solver: "ppm", "qp" or "lemke".
        options: tolerances of the solver.
        rank_tol: of Find-Indices.
        warm_start: an earlier solution, or contacts (and rows of U) expected to be loaded.

    Raises:
        InfeasibleError: with the weights of all rows, and words that speak of contacts.
        SolveError: it carries the contact problem.
    """
    check_rigid(problem)
    options = DEFAULT if options is None else options
    warm = _NO_ROWS if warm_start is None else warm_rows(warm_start, problem)
    try:
        if solver == "ppm":
            return _pivot(problem, sticking, arrays, options, rank_tol, warm)
        return _solve_otherwise(problem, sticking, arrays, solver, options, rank_tol, warm)
    except InfeasibleError as error:
        _explain(problem, error)
    except SolveError as error:
        error.problem = problem
        raise


def _solve_otherwise(
    problem: ContactProblem,
    sticking: np.ndarray,
    arrays: Arrays,
    solver: str,
    options: lcp.Options,
    rank_tol: float,
    warm: np.ndarray,
) -> Projection:
    """With "lemke" or "qp", and "ppm" where those miss."""
    if solver not in ("lemke", "qp"):
        raise InputError("solver", f"is {solver!r}; expected one of ppm, lemke, qp")
    pivot = partial(_pivot, problem, sticking, arrays, options, rank_tol)
    try:
        found, miss = _project_dense(problem, sticking, arrays, solver, options, rank_tol)
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
        return found
    better = pivot(found.loaded)
    return better._replace(data=after(better.data, found.pivots))


def _pivot(
    problem: ContactProblem,
    sticking: np.ndarray,
    arrays: Arrays,
    options: lcp.Options,
    rank_tol: float,
    warm: np.ndarray,
) -> Projection:
    """The same in one go: the solver cuts the equality rows down as it loads them.

    They are taken by the order of the paper's Algorithm 2: J, then S and T contact by contact; R
    after them.
    """
    stack = problem.stack
    _, _, r, j, _, u, k = stack.ends
    part, which, out = arrays, None, 0
    if r > 0 and sticking is not stack.everywhere and not sticking.all():
        which, part = _taking_part(problem, sticking, arrays)
        out = k - len(part.b)  # rows that take no part
    if warm is not _NO_ROWS:
        warm = warm + (j - out)
    try:
        status, data = run(part, warm, options, rank_tol, k - u)
        if status != SOLVED:
            data = data_of(mend(status, data, part, warm, options, None, rank_tol, k - u))
    except InfeasibleError as error:
        if which is not None:
            certificate, error.certificate = error.certificate, np.zeros(k)
            error.certificate[which] = certificate
        raise
    if which is not None:
        data = among(lcp.LCPResult(data, k - out, problem.m), which, k)
    found = Projection(problem, sticking, arrays, data, rank_tol)
    if status != SOLVED and j > r:  # perhaps not all of J were kept
        _check_joints(found)
    return found


def _explain(problem: ContactProblem, error: InfeasibleError) -> NoReturn:
    """Raise the same with the weights of each kind of row."""
    S, T, R, J, N, U, _ = problem.stack.split(error.certificate)
    weights = {"J": J, "S": S, "T": T, "R": R}
    certificate = np.concatenate([N, U])
    raise InfeasibleError(
        _contradiction(problem, certificate, weights), status=error.status, problem=problem,
        certificate=certificate, equality_weights=weights,
    ) from error  # fmt: skip


def _contradiction(problem: ContactProblem, A: np.ndarray, weights: dict[str, np.ndarray]) -> str:
    """Which rows contradict each other, in words."""
    held = [np.flatnonzero(weights["S"]), np.flatnonzero(weights["T"])]
    held.append(problem.R_contact[weights["R"] != 0.0])
    contacts, joints, tangents = (
        which.tolist() for which in (np.flatnonzero(A), np.flatnonzero(weights["J"]),
                                     np.unique(np.concatenate(held)))
    )  # fmt: skip
    text = f"infeasible: no motion satisfies contacts {contacts}"
    text += f", bilateral rows J {joints}" if joints else ""
    text += f", no slip at contacts {tangents}" if tangents else ""
    text += f" at once (numbers from {problem.n} on are rows of U); see .certificate, their weights"
    return text + (", and .equality_weights" if joints or tangents else "")


def _taking_part(
    problem: ContactProblem, sticking: np.ndarray, arrays: Arrays
) -> tuple[slice | np.ndarray, Arrays]:
    """Rows that take part: not the friction rows of contacts that do not stick."""
    _, t, r, j, _, _, k = problem.stack.ends
    if sticking.any():
        tangents, others = np.concatenate([sticking, sticking])[:t], np.ones(k - r, dtype=bool)
        held = np.concatenate([tangents, sticking[problem.R_contact], others])
        which = np.flatnonzero(held)
    else:
        which = slice(r, k)
    b = arrays.b[which]
    out, pairs = k - len(b), int(np.count_nonzero(sticking)) if arrays.order[0] else 0
    return which, arrays._replace(
        values=arrays.values[which], b=b, lo=arrays.lo[which], hi=arrays.hi[which],
        order=(pairs, r - out, j - out),
    )  # fmt: skip


def _check_joints(found: Projection) -> None:
    """See `check_targets`."""
    p, arrays = found.problem, found.arrays
    _, _, _, target, *_ = p.stack.split(-arrays.b)
    check_targets(arrays.M, p.J, target, found.bilateral_rows, found.motion, free_motion(arrays))


def check_held(found: Projection) -> None:
    """Tangents that were left out as dependent must not slide: targets of J may make them.

    Raises:
        InfeasibleError: one does. Weights of its row, and of those that it depends on, prove it.
    """
    p, arrays = found.problem, found.arrays
    r = p.stack.ends[2]
    if not (p.stack.driven and r and found.sticking.any()):
        return
    S, T = (found.sticking[: len(rows)] for rows in (p.S, p.T))
    held = np.concatenate([S, T, found.sticking[p.R_contact]])
    rows, factor = arrays.values[:r], InertiaFactor(arrays.M)
    length = np.linalg.norm(factor.whiten(rows), axis=1)
    size = max(factor.size(found.motion), factor.size(free_motion(arrays)))
    slides = np.flatnonzero(held & (np.abs(rows @ found.motion) > INCONSISTENT * length * size))
    if not slides.size:
        return
    row, kept = slides[0], found.equal
    white = factor.whiten(arrays.values[np.append(kept, row)]).T
    weights = np.zeros(len(arrays.values))
    weights[row] = 1.0
    weights[kept] = -np.linalg.lstsq(white[:, :-1], white[:, -1], rcond=None)[0]
    weights *= -np.sign(arrays.b @ weights)
    _explain(p, InfeasibleError("", status=lcp.Status.INFEASIBLE, problem=p, certificate=weights))


def free_motion(arrays: Arrays) -> np.ndarray:
    """``v + h M^-1 f``."""
    if not len(arrays.f):
        return arrays.v
    return InertiaFactor(arrays.M).drift(arrays.v, arrays.f, arrays.h)


def _project_dense(
    problem: ContactProblem,
    sticking: np.ndarray,
    arrays: Arrays,
    solver: str,
    options: lcp.Options,
    rank_tol: float,
) -> tuple[Projection, float]:
    """The same with the equality rows cut down and eliminated first; how far the rows miss."""
    p, held, rows = problem, sticking, arrays.values
    M = arrays.M[0] if len(arrays.M) == 1 else p.inertia
    s, t, r, j, _, _, k = p.stack.ends
    numbers = [np.arange(r, j)]
    for begin, end, mask in ((0, s, held), (s, t, held), (t, r, held[p.R_contact])):
        numbers.append(begin + np.flatnonzero(mask) if end > begin else _NO_ROWS)
    J, S, T, R = (rows[which] for which in numbers)
    indices = lcp.find_indices(M, J, S, T, rank_tol=rank_tol)
    equal = np.concatenate([
        which[kept] for which, kept in zip(numbers, indices, strict=False)
    ])  # fmt: skip
    extra = numbers[3][_independent_extra(M, rows[equal], R, rank_tol)]
    equal = np.concatenate([equal, extra])
    forces, motion, pivots, miss = _solve_dense(p, arrays, M, equal, solver, options)
    z = np.zeros(k)
    z[equal], z[j:] = forces[: len(equal)], forces[len(equal) :]
    numbers = (
        pivots,
        len(equal),
        1,
        indices.smallest_kept,
        indices.largest_rejected,
        len(equal),
        0.0,
    )
    data = np.concatenate([z, np.zeros(k), motion, equal, np.zeros(4), numbers])
    found = Projection(p, sticking, arrays, data, rank_tol)
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
    problem: ContactProblem,
    arrays: Arrays,
    M: np.ndarray,
    equal: np.ndarray,
    solver: str,
    options: lcp.Options,
) -> tuple[np.ndarray, np.ndarray, int, float]:
    """The LCP of the other rows alone, as the paper has it, solved dense.

    Returns:
        Forces of the equality rows and of the others, motion, pivots, and the largest relative
        violation of a row by that motion.
    """
    _, _, _, j, _, u, k = problem.stack.ends
    rows, lo, hi = arrays.values, arrays.lo[j:], arrays.hi[j:]
    B, targets = rows[j:], -arrays.b[j:]
    reduction = Elimination(
        InertiaFactor(np.array(M[None])), np.linalg.cholesky(M), free_motion(arrays), rows[equal],
        -arrays.b[equal],
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
