r"""The answer for given states of the constraints: linear systems, and the states that follow.

When it is known which constraints are open, stick and slide, the law is linear but for the
direction of sliding. With :math:`p = r_T - u_T`, :math:`q = p/|p|` a contact that slides has, to
first order (Alart and Curnier),

.. math:: r_T = \mu r_N q - \kappa (I - q q^T) u_T, \qquad \kappa = \mu r_N / (|p| - \mu r_N)

and rows that hold get a small compliance :math:`\rho` about zero. One linear system

.. math:: (I + \sum G_i^T C_i G_i)\, d = -\sum G_i^T C_i u_i^0, \qquad y = y^0 + d

gives the motion, and impulses that share the load as equal springs do: of all impulses that make
this motion those of least squares. Steps with the same factors take the compliance out. Where the
law then asks for other states, these are tried next. The answer depends on nothing but the states,
so every way to find them leads to the same one.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

import numpy as np

from holdfast._jit import inlined, kernel
from holdfast.contact.cone import OPEN, SLIDE, STICK
from holdfast.contact.delassus import count_rows, memory, solve_rows
from holdfast.contact.newton import (
    Island,
    Vectors,
    assemble,
    fill,
    law_residual,
    rebuild,
)
from holdfast.contact.options import Numbers
from holdfast.contact.proximal import TINY, store
from holdfast.contact.system import DISC, HELD, LINEAR, System, add_impulse, speeds
from holdfast.linalg import block_lu
from holdfast.linalg.vectors import square

REFINE = 8  # steps with the same factors
ROUNDING = 1e-15  # of residuals, relative, for each constraint and ten more
IMPROVES = 0.1  # part of the residual up to which what a system leaves falls: another follows
PATIENCE = 3  # systems in a row that may be worse than those before
STIFFEN = 1e-3  # factor of the compliance where those do not suffice
FAINT = 10.0  # times rounding: slower sliding is not seen in the answer, only with compliance


@kernel
def read_states(sy: System, isl: Island, r: np.ndarray, u: np.ndarray, margin: float,
                state_out: np.ndarray) -> int:  # fmt: skip
    """Fill the states that the law asks for at these impulses and speeds; return what changed.

    What is within the margin of the limit of friction, relative to it, slides.
    """
    changed = 0
    for i in isl.member:
        first, end, kind = sy.row[i], sy.row[i + 1], sy.tangent[i]
        begin = first + sy.normal[i]
        state = STICK
        if sy.normal[i] == 1 and not r[first] > u[first]:
            state = OPEN
        elif kind == DISC:
            limit, pull = sy.bound[i], 0.0
            if sy.normal[i] == 1:
                limit += sy.mu[i] * max(r[first], 0.0)
            for k in range(begin, end):
                pull += square(r[k] - u[k])
            if pull > square(limit * (1.0 - margin)):
                state = SLIDE
        elif begin > first and kind != HELD and end > begin:
            state = SLIDE
        if state != state_out[i]:
            changed += 1
        state_out[i] = state
    return changed


@kernel
def derive(sy: System, isl: Island, state: np.ndarray, r: np.ndarray, u: np.ndarray,
           rho: float) -> None:  # fmt: skip
    """Fill the derivatives C of constraints in these states, at impulses r and speeds u."""
    stiff = 1.0 / rho
    for i in isl.member:
        first, end, at = sy.row[i], sy.row[i + 1], isl.C_at[i]
        dim, begin, kind = end - first, sy.normal[i], sy.tangent[i]
        for k in range(at, at + dim * dim):
            isl.C[k] = 0.0
        if begin == 1 and state[i] != OPEN:
            isl.C[at] = stiff
        if kind == DISC and begin == 1 and state[i] == SLIDE:
            size = 0.0
            for k in range(first + 1, end):
                size += square(r[k] - u[k])
            size = np.sqrt(size)
            limit = sy.mu[i] * max(r[first], 0.0)
            inverse = 1.0 / size if size > 0.0 else 0.0
            kappa = stiff if size <= limit * (1.0 + rho) else min(stiff, limit / (size - limit))
            for e in range(1, dim):
                q = (r[first + e] - u[first + e]) * inverse
                isl.C[at + e * dim] = sy.mu[i] * stiff * q
                for f in range(1, dim):
                    isl.C[at + e * dim + f] = -kappa * q * (r[first + f] - u[first + f]) * inverse
                isl.C[at + e * dim + e] += kappa
        elif kind == HELD or (kind == DISC and state[i] == STICK):
            for e in range(begin, dim):
                isl.C[at + e * dim + e] = stiff
        elif kind == LINEAR:
            for e in range(begin, dim):
                soft = sy.R[first + e]
                isl.C[at + e * dim + e] = 1.0 / soft if soft > 0.0 else stiff


@kernel
def linear_answer(sy: System, isl: Island, v: Vectors, state: np.ndarray, rho: float,
                  again: bool) -> None:  # fmt: skip
    """Fill the impulses v.new of the linear law, or add what compliance has taken from them.

    A holds its factors. The first time speeds are those of the free motion, v.uk. Again they are
    those that v.new leaves. They belong to the law of tangents that slide, of which only rounding
    is taken out.
    """
    fill(isl, v.d, 0.0)
    for i in isl.member:
        first, at = sy.row[i], isl.C_at[i]
        dim, kind = sy.row[i + 1] - first, sy.tangent[i]
        slides = kind == DISC and sy.normal[i] == 1 and state[i] == SLIDE
        for e in range(dim):
            total = 0.0
            for f in range(dim):
                miss = v.uk[first + f]
                if again and kind == LINEAR and f >= sy.normal[i]:
                    miss += sy.R[first + f] * v.new[first + f]
                total -= isl.C[at + e * dim + f] * miss
            if again and slides and e > 0:
                total += isl.C[at + e * dim] * rho * v.new[first] - v.new[first + e]
            v.best[first + e] = total
        if kind == DISC and sy.normal[i] == 0 and state[i] == SLIDE and not again:
            v.best[first] = sy.bound[i] if v.r[first] > v.u[first] else -sy.bound[i]
        add_impulse(sy, i, v.best, v.d)
    block_lu.solve(isl.pattern, isl.trees, isl.A, v.d)
    for i in isl.member:
        first, at = sy.row[i], isl.C_at[i]
        dim = sy.row[i + 1] - first
        if not again:
            for k in range(first, first + dim):
                v.u[k] = v.uk[k]
        speeds(sy, i, v.d, v.uk)
        for e in range(dim):
            total = v.best[first + e]
            for f in range(dim):
                total -= isl.C[at + e * dim + f] * v.uk[first + f]
            v.new[first + e] = v.new[first + e] + total if again else total
        if not again:
            keep_free_speeds(sy, i, state[i], v)


@inlined
def keep_free_speeds(sy: System, i: int, state: int, v: Vectors) -> None:
    """Leave impulse and speed of constraint i in v.r and v.u; held rows do not move.

    With compliance even a row at rest moves a little if it gives way, and shows where to: that
    decides whether it slides or sticks where several rows hold the same motion.
    """
    for k in range(sy.row[i], sy.row[i + 1]):
        v.r[k] = v.new[k]
        v.u[k] = 0.0 if is_held(sy, i, k, state) else v.u[k] + v.uk[k]


@inlined
def is_held(sy: System, i: int, k: int, state: int) -> bool:
    """Return whether row k, of constraint i, does not move in this state, or as its law says."""
    kind = sy.tangent[i]
    if k == sy.row[i] and sy.normal[i] == 1:
        return state != OPEN
    return kind in (HELD, LINEAR) or (kind == DISC and state == STICK)


@kernel
def held_speed(sy: System, isl: Island, state: np.ndarray, r: np.ndarray,
               u: np.ndarray) -> float:  # fmt: skip
    """Return the largest speed of a row that should be at rest."""
    worst = 0.0
    for i in isl.member:
        first, end, kind = sy.row[i], sy.row[i + 1], sy.tangent[i]
        if sy.normal[i] == 1 and state[i] != OPEN:
            worst = max(worst, abs(u[first]))
        if kind == LINEAR:
            for k in range(first + sy.normal[i], end):
                worst = max(worst, abs(u[k] + sy.R[k] * r[k]))
        if kind == HELD or (kind == DISC and state[i] == STICK):
            for k in range(first + sy.normal[i], end):
                worst = max(worst, abs(u[k]))
    return worst


@kernel
def linear_miss(sy: System, isl: Island, v: Vectors, state: np.ndarray, rho: float) -> float:
    """Return how far the impulses v.new are from the linear law, as a speed."""
    worst = held_speed(sy, isl, state, v.new, v.uk)
    for i in isl.member:
        if not (sy.normal[i] == 1 and sy.tangent[i] == DISC and state[i] == SLIDE):
            continue
        first, at = sy.row[i], isl.C_at[i]
        dim = sy.row[i + 1] - first
        stiff = 1.0  # or more, across the direction of sliding
        for e in range(1, dim):
            stiff += isl.C[at + e * dim + e]
        for e in range(1, dim):
            total = isl.C[at + e * dim] * rho * v.new[first] - v.new[first + e]
            for f in range(1, dim):
                total -= isl.C[at + e * dim + f] * v.uk[first + f]
            worst = max(worst, abs(total) / stiff)
    return worst


@kernel
def factor_states(sy: System, isl: Island, size: int, v: Vectors, CG_work: np.ndarray,
                  state: np.ndarray, rho: float) -> None:  # fmt: skip
    """Factor the matrix of the linear law."""
    derive(sy, isl, state, v.r, v.u, rho)
    assemble(sy, isl, size, CG_work)
    block_lu.factor(isl.pattern, isl.trees, isl.A, TINY)


@kernel
def rounding(isl: Island) -> float:
    """Return about what rounding leaves of a residual: sums have as many terms as constraints."""
    return ROUNDING * (10.0 + isl.member.shape[0])


@kernel
def solve_linear(sy: System, isl: Island, size: int, v: Vectors, CG_work: np.ndarray,
                 state: np.ndarray, rho: float, enough: float) -> None:  # fmt: skip
    """Fill the impulses v.new of given states, their motion and speeds in v.y and v.uk.

    Speeds of the free motion are in v.free.

    Before the compliance is taken out, impulses and speeds are left in v.r and v.u. Rows that
    should be at rest, and are not faster than `enough`, are.
    """
    factor_states(sy, isl, size, v, CG_work, state, rho)
    store(sy, isl, v.free, v.uk)
    linear_answer(sy, isl, v, state, rho, False)
    rebuild(sy, isl, v.new, v.y, v.uk)  # from the impulses, so that their rounding shows
    miss = linear_miss(sy, isl, v, state, rho)
    for _ in range(REFINE):
        if miss <= enough:
            break
        linear_answer(sy, isl, v, state, rho, True)
        rebuild(sy, isl, v.new, v.y, v.uk)
        before, miss = miss, linear_miss(sy, isl, v, state, rho)
        if not miss < 0.3 * before:
            break


@kernel
def show_speeds(sy: System, isl: Island, v: Vectors, state: np.ndarray) -> None:
    """Fill the speeds v.u of the impulses v.r; rows that hold do not move."""
    rebuild(sy, isl, v.r, v.d, v.u)
    for i in isl.member:
        for k in range(sy.row[i], sy.row[i + 1]):
            if is_held(sy, i, k, state[i]):
                v.u[k] = 0.0


@kernel
def show_sliding(sy: System, isl: Island, v: Vectors, state: np.ndarray, least: float) -> None:
    """Take over impulses and speeds of the answer where contacts slide faster than `least`.

    Compliance gives all contacts small speeds, which may be more than that of sliding.
    """
    for i in isl.member:
        if sy.normal[i] == 1 and sy.tangent[i] == DISC and state[i] == SLIDE:
            first, end, speed = sy.row[i], sy.row[i + 1], 0.0
            for k in range(first + 1, end):
                speed += square(v.uk[k])
            if speed > square(least):
                for k in range(first, end):
                    v.r[k] = v.new[k]
                    v.u[k] = v.uk[k] if k > first else 0.0


@kernel
def solve_states(sy: System, isl: Island, size: int, v: Vectors, CG_work: np.ndarray,
                 state: np.ndarray, o: Numbers, sigma: float, limit: int,
                 kept_work: np.ndarray) -> tuple[float, int]:  # fmt: skip
    """Solve for constraints in these states: `search_states` with the usual compliance."""
    return search_states(
        sy, isl, size, v, CG_work, state, o, sigma, o.active_compliance, limit, PATIENCE, kept_work
    )


@kernel
def search_states(sy: System, isl: Island, size: int, v: Vectors, CG_work: np.ndarray,
                  state: np.ndarray, o: Numbers, sigma: float, compliance: float, limit: int,
                  patience: int, kept_work: np.ndarray) -> tuple[float, int]:  # fmt: skip
    """Solve for constraints in these states, and go on with the states that the law asks for.

    Speeds of the free motion are in v.free; impulses v.r and speeds v.u say where contacts slide
    to. The system is one in the motion, or in the impulses where those are fewer. It begins with a
    compliance of rows that hold. There are at most `limit` systems, more only while each leaves a
    small part of the residual, and at most `patience` in a row that do not improve on those before.
    Where states stay, the residual is that of the direction of sliding, which falls from system to
    system, or that of rows which are nearly dependent, which only less compliance makes smaller.

    Returns:
        The relative residual of the impulses, left in v.r, their speeds in v.u, and how many
        factorisations it took. Infinite if there is no progress.
    """
    miss = least = kept = before = np.inf
    count, worse, rho, exact, same, again = 0, 0, compliance, rounding(isl), False, False
    while True:
        rows, enough = count_rows(sy, isl, state), 0.1 * exact * sigma
        by_rows = memory(rows) <= isl.rows.shape[0]
        if by_rows:
            solve_rows(sy, isl, v, state, rho, rows, enough, REFINE, TINY, again)
            rebuild(sy, isl, v.new, v.y, v.uk)
        else:
            solve_linear(sy, isl, size, v, CG_work, state, rho, enough)
        count, again = count + 1, by_rows
        miss = law_residual(sy, isl, v.new, v.y, v.uk)
        certified = miss <= o.certificate
        last = miss <= exact or (certified and miss > 0.1 * least) or not miss < np.inf
        last = last or (kept < np.inf and not certified)
        improves = count > 1 and miss < IMPROVES * before
        worse = worse + 1 if not miss < least else 0
        least, before = min(least, miss), miss
        if last or worse > patience or (count >= limit and not improves):
            break
        changed = 0
        if certified:  # the states are right: more digits
            store(sy, isl, v.new, v.r)
            store(sy, isl, v.uk, v.u)
            store(sy, isl, v.new, kept_work)
            kept = miss
        else:
            if by_rows:
                show_speeds(sy, isl, v, state)
            show_sliding(sy, isl, v, state, FAINT * exact * sigma)
            changed = read_states(sy, isl, v.r, v.u, 0.0, state)
        if changed > 0:
            rho = compliance
        elif not (same and improves) and held_speed(sy, isl, state, v.new, v.uk) > o.stop * sigma:
            rho = max(STIFFEN * rho, o.least_compliance)
            if not certified:  # what they missed says nothing about the states
                least, worse = np.inf, 0
        same = changed == 0
    if kept < miss:
        store(sy, isl, kept_work, v.new)
        rebuild(sy, isl, v.new, v.y, v.uk)
        miss = kept
    store(sy, isl, v.new, v.r)
    store(sy, isl, v.uk, v.u)
    return (miss if miss < 1e3 else np.inf), count
