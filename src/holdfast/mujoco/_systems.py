"""Systems of linear equations over rows that may depend on each other, solved by refinement.

    [K  B'] [p]   [q]
    [B  0 ] [s] = [c],        K = k A + sum over rows r of w r r'

The residuals are those of the system itself, the steps are those of

    [K + d A  B'] [dp]   [rest of q]
    [B       -e ] [ds] = [rest of c]

which is positive definite with ds eliminated, and as sparse as the rows are. What the steps reach
is an answer of the system, whatever d and e are; where rows are so nearly dependent that d and e
matter, the steps do not shrink, and `solve` says so.

Refinement begins where the last step of the simulation ended, and steps with the matrix of that
step. Where bodies rest, a look at the residuals is all that is left to do.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

import numpy as np

from holdfast._jit import fast_kernel, inlined, kernel
from holdfast.linalg.cholesky import cholesky, solve_lower, solve_upper
from holdfast.mujoco._forces import add, dot
from holdfast.mujoco._scene import Play, Scene, Work

REFINED = 2e-14  # relative residual at which refinement ends
ROUNDED = 1e-12  # and at which it may end because rounding keeps it from shrinking
SHRINKS = 0.1  # part of the residual that a step may leave
STALE = 1e-8  # relative residual beyond which the matrix of the last step is of no use
LEAST = 1e-4  # what a relative miss of c counts for beside q, where it costs no momentum
MAX_STEPS = 12


@fast_kernel
def measure_rows(rows: np.ndarray, A: np.ndarray, inverse_out: np.ndarray, play: Play) -> None:
    """Fill in the squared length of each row, by the diagonal of A."""
    m = A.shape[0]
    for j in range(m):
        inverse_out[j] = 1.0 / A[j, j]
    for r in range(rows.shape[0]):
        length2 = 0.0
        for j in range(m):
            x = rows[r, j]
            length2 += x * x * inverse_out[j]
        play.length2[r] = length2


@kernel
def take(play: Play, k: int, row: int, c: float, weight: float) -> int:
    """Make a row of the list row k of the system; return k + 1."""
    play.at[k] = row
    play.c[k], play.weight[k] = c, weight
    return k + 1


@fast_kernel
def assemble(
    rows: np.ndarray, A: np.ndarray, part: float, play: Play, count: int, H_out: np.ndarray
) -> None:
    """Fill the lower triangle of H_out with ``part A`` and the weighted squares of the rows."""
    m = A.shape[0]
    for i in range(m):
        for j in range(m):
            H_out[i, j] = part * A[i, j] if j <= i else 0.0
    for k in range(count):
        r = play.at[k]
        lo = play.lo[r]
        row = rows[r, lo : play.hi[r]]
        for i in range(row.shape[0]):
            t = play.weight[k] * row[i]
            if t != 0.0:
                H = H_out[lo + i, lo : lo + i + 1]
                for j in range(i + 1):
                    H[j] += t * row[j]


@fast_kernel
def residual(
    rows: np.ndarray, A: np.ndarray, first: np.ndarray, part: float, q: np.ndarray, p: np.ndarray,
    play: Play, equal: int, count: int, u_out: np.ndarray,
) -> tuple[float, float]:  # fmt: skip
    """Fill u_out with what is left of q, play.miss with what is left of c; return their sizes.

    Rows before `equal` are those of B, the others those of K; for these s is filled with w r'p.
    """
    m = A.shape[0]
    for j in range(m):
        u_out[j] = q[j]
    if part != 0.0:
        for i in range(m):
            row, before, u = A[i, first[i] : i], p[first[i] : i], u_out[first[i] : i]
            t, x = A[i, i] * p[i], part * p[i]
            for j in range(row.shape[0]):
                t += row[j] * before[j]
                u[j] -= x * row[j]
            u_out[i] -= part * t
    worst = 0.0
    for k in range(count):
        r = play.at[k]
        lo, hi = play.lo[r], play.hi[r]
        row = rows[r, lo:hi]
        t = dot(row, p[lo:hi])
        if k < equal:
            miss = play.c[k] - t
            play.miss[k] = miss
            worst = max(worst, miss * miss / play.length2[r])
        else:
            play.s[k] = play.weight[k] * t
        add(-play.s[k], row, u_out[lo:hi])
    return length(A, u_out), np.sqrt(worst)


@fast_kernel
def length(A: np.ndarray, u: np.ndarray) -> float:
    """Return the length of an impulse, by the diagonal of A."""
    length2 = 0.0
    for j in range(u.shape[0]):
        length2 += u[j] * u[j] / A[j, j]
    return np.sqrt(length2)


@fast_kernel
def aim(rows: np.ndarray, play: Play, equal: int, u_inout: np.ndarray) -> None:
    """Complete the right-hand side of a step: ds eliminated."""
    for k in range(equal):
        r = play.at[k]
        lo, hi = play.lo[r], play.hi[r]
        add(play.weight[k] * play.miss[k], rows[r, lo:hi], u_inout[lo:hi])


@fast_kernel
def move(
    rows: np.ndarray, A: np.ndarray, soft: float, u: np.ndarray, play: Play, equal: int,
    p_inout: np.ndarray,
) -> float:  # fmt: skip
    """Add the step u to p, and what follows from it to s; return what it leaves of q or c.

    A step with the matrix of the system itself leaves nothing of q but d A dp, and nothing of c
    but e ds.
    """
    length2 = left2 = 0.0
    for j in range(u.shape[0]):
        p_inout[j] += u[j]
        length2 += A[j, j] * u[j] * u[j]
    for k in range(equal):
        r = play.at[k]
        lo, hi = play.lo[r], play.hi[r]
        t = dot(rows[r, lo:hi], u[lo:hi]) - play.miss[k]
        play.s[k] += play.weight[k] * t
        left2 = max(left2, t * t / play.length2[r])
    return soft * np.sqrt(length2) if soft > 0.0 else np.sqrt(left2)


@inlined
def begin(stage: int, start: np.ndarray, equal: int, warm: bool, wk: Work) -> None:
    """Fill p and s with those of the last step, or with `start` and zeros."""
    p, play = wk.kept.p[stage], wk.play
    for k in range(equal):
        play.s[k] = wk.kept.s[stage, play.at[k]] if warm else 0.0
    if not warm:
        for j in range(p.shape[0]):
            p[j] = start[j]


@inlined
def factorise(sc: Scene, stage: int, part: float, count: int, wk: Work) -> bool:
    """Factor the matrix of a system's steps; return whether it could be."""
    H, L = wk.square[:1], wk.kept.L[stage : stage + 1]
    assemble(sc.rows, sc.A[0], part, wk.play, count, H[0])
    return cholesky(H, wk.kept.envelope[stage], L, np.inf) == 0


@inlined
def solve(
    sc: Scene, stage: int, soft: float, q: np.ndarray, start: np.ndarray, equal: int, count: int,
    size: float, wk: Work,
) -> bool:  # fmt: skip
    """Solve a system; return whether refinement got there: to wk.kept.p[stage] and play.s.

    Args:
        stage: which system.
        soft: d; zero where k is 1, for motions.
        q, start: right-hand side, and where p begins.
        equal, count: rows of B, and with those of K.
        size: of the motion without d, of the impulse with it: residuals are relative to it.
    """
    rows, A, play, kept, u = sc.rows, sc.A[0], wk.play, wk.kept, wk.x[5]
    p, envelope, L = kept.p[stage], kept.envelope[stage], kept.L[stage : stage + 1]
    part = 1.0 if soft == 0.0 else 0.0
    warm = factored = kept.valid[stage] > 0.0
    kept.valid[stage] = 0.0
    begin(stage, start, equal, warm, wk)
    last, left, solved = np.inf, np.inf, False
    for _ in range(MAX_STEPS):
        left, miss = residual(rows, A, wk.below[:, 1], part, q, p, play, equal, count, u)
        if soft == 0.0:
            left = max(left, miss)
        elif miss > 0.0:  # the least of all impulses with this effect, though not to all digits
            motion = 0.0
            for j in range(p.shape[0]):
                motion += A[j, j] * p[j] * p[j]
            left = max(left, LEAST * size * miss / np.sqrt(motion))
        solved = left <= REFINED * size
        if solved:
            break
        if factored and not left <= (STALE * size if warm else SHRINKS * last):  # or not a number
            if not warm:
                break
            warm = factored = False
            if not left <= size:  # nor is the last step a place to begin
                begin(stage, start, equal, warm, wk)
                continue
        if not factored and not factorise(sc, stage, part + soft, count, wk):
            break
        factored = True
        last = left
        aim(rows, play, equal, u)
        solve_lower(L, envelope, u)
        solve_upper(L, envelope, u)
        left = move(rows, A, soft, u, play, equal, p)
        solved = not warm and left <= REFINED * size
        if solved:
            for k in range(equal, count):
                play.s[k] = play.weight[k] * dot(rows[play.at[k]], p)
            break
    solved = solved or left <= ROUNDED * size
    if solved:
        kept.valid[stage] = 1.0 if factored else 0.0
        for k in range(equal):
            kept.s[stage, play.at[k]] = play.s[k]
    return solved
