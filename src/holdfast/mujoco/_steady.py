"""The usual case of a step: what touches goes on touching, and what wants to stick sticks.

Then there is nothing to search for: the motion, and the forces shared out as
`holdfast.models._spread` describes, follow from three linear systems of one form,

    [K  B'] [p]   [q]
    [B  0 ] [s] = [c],        K = k A + sum over rows r of w r r'

========  ===================  =============================  ===============================
find      K                    B                              answer
========  ===================  =============================  ===============================
motion    A                    all rows that hold             p: velocity, -s: impulses
normals   sum of n n'          equalities, held tangents      f = N p
tangents  sum of f t t'        equalities, torsion, rolling   f T p; s: impulses of B
========  ===================  =============================  ===============================

Rows may depend on each other: four contacts of a face have twelve rows and rank six. Each system
is solved by refinement: the residuals are those of the system itself, the steps are those of

    [K + d A  B'] [dp]   [rest of q]
    [B       -e ] [ds] = [rest of c]

which is positive definite with ds eliminated, and as sparse as the rows are. What the step
reaches is an answer of the system, whatever d and e are; where rows are so nearly dependent that
d and e matter, the steps do not shrink, and the search has to decide. So it has where a contact
turns out to pull, to part or to hold without being pressed: every condition of an answer is
looked at here, none is taken from the last step.

What is taken from the last step is where refinement begins and the matrix that it steps with.
Where bodies rest, a look at the residuals is all that is left to do.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

import numpy as np

from holdfast.lcp._envelope import cholesky, solve_lower, solve_upper
from holdfast.lcp._kernel import fast_kernel, kernel
from holdfast.models._sharing import PRESSED
from holdfast.mujoco._forces import add, balanced, closing, dot, judge, size_of
from holdfast.mujoco._scene import CONSISTENT, STAGES, Found, Numbers, Play, Scene, Work

SOFT = 1e-9  # e where there is no d, or d where there is no e, relative to the rows
SOFT_D, SOFT_E = 1e-8, 1e-5  # where there are both: the matrix has both scales
REFINED = 2e-14  # relative residual at which refinement ends
ROUNDED = 1e-12  # and at which it may end because rounding keeps it from shrinking
SHRINKS = 0.1  # part of the residual that a step may leave
STALE = 1e-8  # relative residual beyond which the matrix of the last step is of no use
LEAST = 1e-4  # what a relative miss of c counts for beside q, where it costs no momentum
MAX_STEPS = 12
MAX_CHANGES = 5  # of the contacts that are pressed

# The systems, by what they find; the last two with nothing held.
VELOCITY, NORMALS, TANGENTS, FREE_VELOCITY, FREE_NORMALS = range(STAGES)


@fast_kernel
def measure_rows(rows: np.ndarray, A: np.ndarray, inverse_out: np.ndarray, play: Play) -> None:
    """Fill in where each row begins and ends, and its squared length by the diagonal of A."""
    m = A.shape[0]
    for j in range(m):
        inverse_out[j] = 1.0 / A[j, j]
    for r in range(rows.shape[0]):
        lo, hi = m, 0
        length2 = 0.0
        for j in range(m):
            x = rows[r, j]
            length2 += x * x * inverse_out[j]
        for j in range(m):
            if rows[r, j] != 0.0:
                lo = j
                break
        for j in range(m - 1, lo - 1, -1):
            if rows[r, j] != 0.0:
                hi = j + 1
                break
        play.lo[r], play.hi[r], play.length2[r] = lo, hi, length2


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


@kernel
def begin(stage: int, start: np.ndarray, equal: int, warm: bool, wk: Work) -> None:
    """Fill p and s with those of the last step, or with `start` and zeros."""
    p, play = wk.kept.p[stage], wk.play
    for k in range(equal):
        play.s[k] = wk.kept.s[stage, play.at[k]] if warm else 0.0
    if not warm:
        for j in range(p.shape[0]):
            p[j] = start[j]


@kernel
def factorise(sc: Scene, stage: int, part: float, count: int, wk: Work) -> bool:
    """Factor the matrix of a system's steps; return whether it could be."""
    H, L = wk.square[:1], wk.kept.L[stage : stage + 1]
    assemble(sc.rows, sc.A[0], part, wk.play, count, H[0])
    return cholesky(H, wk.kept.envelope[stage], L, np.inf) == 0


@kernel
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
        left, miss = residual(rows, A, wk.envelope, part, q, p, play, equal, count, u)
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
        kept.valid[stage] = 1.0
        for k in range(equal):
            kept.s[stage, play.at[k]] = play.s[k]
    return solved


@kernel
def list_held(sc: Scene, ne: int, drive: float, scale: float, begin: int, held: np.ndarray,
              wk: Work) -> int:  # fmt: skip
    """Make equalities and friction rows of held contacts those of B; return how many it has.

    Args:
        drive: part of the target speed that equalities shall have, 1 or 0.
        scale: what a row of length 1 weighs.
        begin: 1 with tangents, 3 without.
    """
    play, k = wk.play, 0
    for r in range(ne):
        if play.length2[r] > 0.0:
            k = take(play, k, r, drive * sc.target[r], scale / play.length2[r])
    for i in range(sc.gap.shape[0]):
        if held[i]:
            for r in range(sc.first[i] + begin, sc.first[i] + sc.dim[i]):
                if play.length2[r] > 0.0:
                    k = take(play, k, r, 0.0, scale / play.length2[r])
    return k


@kernel
def find_velocity(sc: Scene, nr: Numbers, ne: int, stage: int, held: np.ndarray, wk: Work,
                  out: Found) -> bool:  # fmt: skip
    """Fill out.motion, if all rows can hold: of listed contacts, equalities and dry friction."""
    m, nf, play = sc.v.shape[0], sc.loss.shape[0], wk.play
    k = list_held(sc, ne, 1.0, 1.0 / SOFT, 1, held, wk)
    for i in range(nf):
        if play.length2[ne + i] > 0.0:
            k = take(play, k, ne + i, 0.0, 1.0 / (SOFT * play.length2[ne + i]))
    for i in range(sc.gap.shape[0]):
        if out.contacts[i]:
            length2 = play.length2[sc.first[i]]
            if length2 == 0.0:
                return False
            k = take(play, k, sc.first[i], -closing(sc, nr, i, out), 1.0 / (SOFT * length2))
    q = wk.x[3]
    for j in range(m):
        q[j] = dot(sc.A[0, j], out.v_free)
    size = max(size_of(wk, sc.v), size_of(wk, out.v_free))
    if not solve(sc, stage, 0.0, q, out.v_free, k, k, size, wk):
        return False
    for j in range(m):
        out.motion[j] = wk.kept.p[stage, j]
    for l in range(k):  # dry friction keeps its forces; the others are shared out
        r = play.at[l]
        out.loaded[r] = True
        if ne <= r < ne + nf:
            out.impulse[r] = -play.s[l]
            if abs(play.s[l]) > sc.loss[r - ne]:
                return False
    return True


@kernel
def find_effect(sc: Scene, ne: int, wk: Work, out: Found) -> float:
    """Fill wk.x[3] with the momentum that contacts and equalities have to make; return its size."""
    m, nf, q, change = sc.v.shape[0], sc.loss.shape[0], wk.x[3], wk.x[4]
    for j in range(m):
        change[j] = out.motion[j] - out.v_free[j]
    for j in range(m):
        q[j] = dot(sc.A[0, j], change)
    for r in range(ne, ne + nf):
        add(-out.impulse[r], sc.rows[r], q)
    return length(sc.A[0], q)


@kernel
def find_normals(sc: Scene, ne: int, stage: int, held: np.ndarray, size: float, wk: Work,
                 out: Found) -> bool:  # fmt: skip
    """Fill in normal impulses and wk.masks[1] (pressed), if none has to pull."""
    play, pressed, q = wk.play, wk.masks[1], wk.x[3]
    longest = 0.0
    for i in range(sc.gap.shape[0]):
        pressed[i] = out.contacts[i]
        if out.contacts[i]:
            longest = max(longest, play.length2[sc.first[i]])
    for _ in range(MAX_CHANGES):
        equal = list_held(sc, ne, 0.0, longest / SOFT_E, 1, held, wk)
        k = equal
        for i in range(sc.gap.shape[0]):
            if pressed[i]:
                k = take(play, k, sc.first[i], 0.0, 1.0)
        if not solve(sc, stage, SOFT_D * longest, q, wk.nothing, equal, k, size, wk):
            return False
        largest = 0.0
        for i in range(sc.gap.shape[0]):
            if out.contacts[i]:
                out.impulse[sc.first[i]] = dot(sc.rows[sc.first[i]], wk.kept.p[stage])
                largest = max(largest, abs(out.impulse[sc.first[i]]))
        settled = True
        for i in range(sc.gap.shape[0]):
            if not out.contacts[i]:
                continue
            f = out.impulse[sc.first[i]]
            acts = f > PRESSED * largest
            settled = settled and not (f < -PRESSED * largest if pressed[i] else acts)
            out.impulse[sc.first[i]] = f if pressed[i] and f > 0.0 else 0.0
            pressed[i] = acts
        if settled:
            return True
    return False


@kernel
def find_tangents(sc: Scene, ne: int, size: float, wk: Work, out: Found) -> bool:
    """Fill in the impulses of equalities and of contacts that grip, if they suffice."""
    play, q = wk.play, wk.x[3]
    largest = 0.0
    for i in range(sc.gap.shape[0]):
        if out.contacts[i]:
            add(-out.impulse[sc.first[i]], sc.rows[sc.first[i]], q)
        if out.grips[i]:
            for r in range(sc.first[i] + 1, sc.first[i] + 3):
                largest = max(largest, out.impulse[sc.first[i]] * play.length2[r])
    if largest == 0.0:
        largest = 1.0
    equal = list_held(sc, ne, 0.0, largest / SOFT_E, 3, out.grips, wk)
    k = equal
    for i in range(sc.gap.shape[0]):
        if out.grips[i]:
            for r in range(sc.first[i] + 1, sc.first[i] + 3):
                k = take(play, k, r, 0.0, out.impulse[sc.first[i]])
    soft = (SOFT if equal == 0 else SOFT_D) * largest
    if k > 0 and not solve(sc, TANGENTS, soft, q, wk.nothing, equal, k, size, wk):
        return False
    for l in range(k):
        out.impulse[play.at[l]] = play.s[l]
    return True


@kernel
def stay(sc: Scene, nr: Numbers, ne: int, free: bool, wk: Work, out: Found) -> bool:
    """Try whether all listed contacts go on touching, and stick if they want to; fill out.

    Args:
        free: whether to see first that none of them leaves when nothing is held.

    Returns:
        Whether that is the answer. If not, the search has to begin, and what it needs of out is
        as it was.
    """
    for i in range(sc.limit_gap.shape[0]):
        if out.limits[i]:
            return False
    for r in range(out.impulse.shape[0]):
        out.impulse[r] = 0.0
        out.loaded[r] = False
    measure_rows(sc.rows, sc.A[0], wk.x[6], wk.play)
    size = 0.0
    for held_now in range(0 if free else 1, 2):
        held = wk.masks[2] if held_now == 0 else out.held
        stage = FREE_VELOCITY if held_now == 0 else VELOCITY
        if not find_velocity(sc, nr, ne, stage, held, wk, out):
            return False
        size = find_effect(sc, ne, wk, out)
        stage = FREE_NORMALS if held_now == 0 else NORMALS
        if not find_normals(sc, ne, stage, held, size, wk, out):
            return False
    for i in range(sc.gap.shape[0]):
        out.grips[i] = out.held[i] and wk.masks[1, i]
    if not find_tangents(sc, ne, size, wk, out) or not balanced(sc, wk, out):
        return False
    out.numbers[CONSISTENT] = 1.0
    judge(sc, nr, out)
    return True
