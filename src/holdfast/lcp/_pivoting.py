"""Algorithm 1 of the paper (modified principal pivoting method I), mended.

The LCP in factored form is, with whitened unit rows a_i (see `_rows`),

    w_i = a_i . y + beta_i,    y = y0 + sum_i z_i a_i,    lo_i <= z_i <= hi_i,

each w_i zero unless z_i is at a bound (w_i >= 0 at lo, w_i <= 0 at hi). For a contact lo = 0 and
hi = inf; lo = -inf and hi = inf make an equality row; dry friction has -b and b. `y` is the
motion after contact: the point nearest to y0 that the rows allow.

As in the paper the n x n matrix is never formed. The index set called "nonbasic" there is called
*loaded* here: the rows with w_i = 0, whose z_i is found from a small system. A round of the paper
finds the most negative w_i (line 15) and lets i enter; it finds a z_j that turned negative
(lines 17, 32) and lets j leave. What is different:

* Progress. Rows enter and leave along a path on which every z stays within its bounds: z_i grows
  until w_i = 0 (a full step: i is loaded) or until some loaded z_j meets its bound (a ratio test:
  j leaves, and z_i goes on growing). The objective 1/2 |y|^2 + beta'z falls strictly whenever a
  round ends, so no loaded set comes back and the method is finite. Without this the printed
  algorithm cycles.
* Dependent rows. When a_i lies in the span of the loaded rows, y cannot move: z_i grows along the
  null direction until a loaded row leaves. If none does, the rows contradict each other and the
  direction is a Farkas certificate, unless its value is rounding: then w_i is, too, and the row
  rests. How small a part outside the span is rounding depends on how nearly dependent the loaded
  rows are themselves: their small pivots amplify it.
* Factors. The loaded rows are kept as Q R and updated (`qr_update`), where the paper solves with
  A = N_B M^-1 N_B' afresh (lines 10-12).
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from holdfast._jit import kernel
from holdfast.lcp._rows import scatter, separation
from holdfast.linalg import qr_update as factor
from holdfast.linalg.vectors import norm

# Status codes of `pivot`; values as in `holdfast.lcp.Status`.
SOLVED, INFEASIBLE, PIVOT_LIMIT, PAUSED = 0, 1, 3, 6

FREE = -1  # position of a candidate that is not loaded
RESTING = -2  # not loaded, and w is zero to rounding because the row depends on the loaded ones

# Rounding of a product of unit rows with the motion, relative to the motion: some tens of eps.
ROUNDING = 1e-14

# Rounding of the part of a unit row outside the span of others, before pivots amplify it.
SPAN_ROUNDING = 5e-16

FAR = 1e3  # motions up to this multiple of ours must be ruled out to call a problem infeasible
STIFF = 1e-4  # a pivot of the loaded rows below which forces are solved for afresh at the end


class Candidates(NamedTuple):
    """Whitened candidate rows and their variables; the first `count` entries are in use."""

    A: np.ndarray  # unit rows, laid out as `_rows` says
    offset: np.ndarray
    rows: np.ndarray  # which original row
    d: np.ndarray  # length of the original row: w = d w_hat, z = z_hat / d
    beta: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    z: np.ndarray
    w: np.ndarray
    place: np.ndarray  # position among the loaded rows, or FREE


class Loaded(NamedTuple):
    """The loaded rows: candidate numbers, and factors of their rows."""

    which: np.ndarray
    Q: np.ndarray
    R: np.ndarray


@kernel
def first_open(cand: Candidates, count: int) -> int:
    """Return the first candidate whose force may come to or leave a bound.

    Those before it, in a contact problem all equality rows, are loaded for good or carry nothing.
    """
    for r in range(count):
        loaded = cand.place[r] >= 0 and cand.lo[r] == -np.inf and cand.hi[r] == np.inf
        if not (loaded or cand.lo[r] == cand.hi[r]):
            return r
    return count


@kernel
def worst(cand: Candidates, begin: int, count: int, tol: float) -> int:
    """Return the candidate that violates its complementarity most, or -1 (lines 3 and 15)."""
    best = tol
    i = -1
    for r in range(begin, count):
        w = cand.w[r]
        if w < 0.0:
            if -w > best and cand.place[r] == FREE and cand.z[r] < cand.hi[r]:
                best = -w
                i = r
        elif w > best and cand.place[r] == FREE and cand.z[r] > cand.lo[r]:
            best = w
            i = r
    return i


@kernel
def blocking(
    cand: Candidates, loaded: Loaded, k: int, c: np.ndarray, sign: float, tiny: float
) -> tuple[int, float, float]:
    """Ratio test: which loaded row meets which bound first when z_i moves by sign * t.

    Returns:
        Position among the loaded rows (-1 if none), step t, and the bound it meets.
    """
    p = np.int64(-1)
    step = np.inf
    bound = 0.0
    for l in range(k):
        rate = -sign * c[l]
        r = loaded.which[l]
        if rate < -tiny:
            limit = cand.lo[r]
        elif rate > tiny:
            limit = cand.hi[r]
        else:
            continue
        t = (limit - cand.z[r]) / rate
        if t < step:
            p = l
            step = max(t, 0.0)
            bound = limit
    return p, step, bound


@kernel
def contradiction(
    cand: Candidates,
    loaded: Loaded,
    k: int,
    c: np.ndarray,
    i: int,
    sign: float,
    tiny: float,
    feasibility: float,
    reach: float,
) -> bool:
    """Write to cand.w the weights with which rows i and the loaded ones cancel; is it a proof?

    The weighted sum of w is the same sum of beta, whatever the motion. Negative, and not by
    rounding, it proves that not all w can have the right sign. Where the rows cancel only nearly,
    it must also exceed `reach`, what a motion far larger than ours could make of the rest.
    """
    value = sign * cand.beta[i]
    size = abs(value)
    for l in range(k):
        if abs(c[l]) > tiny:
            term = -sign * c[l] * cand.beta[loaded.which[l]]
            value += term
            size += abs(term)
    if not value < -max(feasibility * size, reach):
        return False
    for r in range(cand.w.shape[0]):
        cand.w[r] = 0.0
    for l in range(k):
        if abs(c[l]) > tiny:
            cand.w[loaded.which[l]] = -sign * c[l]
    cand.w[i] = sign
    return True


@kernel
def unload(cand: Candidates, loaded: Loaded, p: int, k: int) -> int:
    """Take loaded row p out of the loaded set; return the new number of loaded rows."""
    cand.place[loaded.which[p]] = FREE
    factor.remove(loaded.Q, loaded.R, p, k)
    for l in range(p, k - 1):
        loaded.which[l] = loaded.which[l + 1]
        cand.place[loaded.which[l]] = l
    return k - 1


@kernel
def pivot(
    cand: Candidates,
    loaded: Loaded,
    counters: np.ndarray,
    y: np.ndarray,
    a_work: np.ndarray,
    g_work: np.ndarray,
    scale: float,
    feasibility: float,
    rank: float,
    max_pivots: int,
    budget: int,
) -> int:
    """Pivot until no candidate is violated; y, cand.z and the loaded set hold the answer.

    `counters` is (number of candidates, loaded rows k, pivots so far); the last two are updated.
    On INFEASIBLE the certificate is in cand.w: entry r is the weight of unit row r.

    Args:
        scale: size of the free motion; tolerances are relative to it or to |y| if larger.
        budget: return PAUSED after this many pivots; the state is consistent then.
    """
    count, k, pivots = counters[0], counters[1], counters[2]
    last = pivots + budget
    status = SOLVED
    resting = False
    begin = first_open(cand, count)
    while True:
        # lines 13-15: motion, separation of all rows, the most violated one
        separation(cand.A, cand.offset, cand.beta, y, cand.w, begin, count)
        i = worst(cand, begin, count, feasibility * max(scale, norm(y)))
        if i < 0:
            break
        if pivots >= max_pivots:
            status = PIVOT_LIMIT
            break
        if pivots >= last:
            status = PAUSED
            break
        w = cand.w[i]
        sign = 1.0 if w < 0.0 else -1.0
        while True:
            pivots += 1
            # how the loaded forces answer: a_i = sum_l c_l a_l + (part outside their span)
            scatter(cand.A, cand.offset, i, a_work)
            c = g_work[k : 2 * k]
            rho2 = factor.project(loaded.Q, k, a_work, c, g_work)
            rho = np.sqrt(rho2)
            for l in range(k):
                c[l] = g_work[l]
            factor.solve_upper_factor(loaded.R, k, c)
            total, largest, amplified = 1.0, 1.0, 1.0
            for l in range(k):
                total += abs(c[l])
                largest = max(largest, abs(c[l]))
                amplified += abs(g_work[l]) / loaded.R[l, l]
            independent = rho > max(rank, SPAN_ROUNDING * amplified)
            if not independent and abs(w) <= ROUNDING * total * max(scale, norm(y)):
                cand.place[i] = RESTING
                resting = True
                break

            full = abs(w) / rho2 if independent else np.inf
            own = (cand.hi[i] - cand.z[i]) if sign > 0.0 else (cand.z[i] - cand.lo[i])
            p, step, bound = blocking(cand, loaded, k, c, sign, rank * largest)
            t = min(full, own, step)
            if t == np.inf:
                reach = FAR * rho * max(scale, norm(y))
                if not contradiction(
                    cand, loaded, k, c, i, sign, rank * largest, feasibility, reach
                ):
                    cand.place[i] = RESTING
                    resting = True
                    break
                status = INFEASIBLE
                break

            for l in range(k):
                cand.z[loaded.which[l]] -= sign * t * c[l]
            cand.z[i] += sign * t
            if independent:
                for j in range(y.shape[0]):
                    y[j] += sign * t * a_work[j]
                w += sign * t * rho2
            if resting:
                resting = False
                for r in range(count):
                    if cand.place[r] == RESTING:
                        cand.place[r] = FREE
            if t == full:  # lines 29-31: i becomes loaded
                factor.append(a_work, g_work, rho, loaded.Q, loaded.R, k)
                loaded.which[k] = i
                cand.place[i] = k
                k += 1
                break
            if t == own:  # i rests on its other bound
                cand.z[i] = cand.hi[i] if sign > 0.0 else cand.lo[i]
                break
            cand.z[loaded.which[p]] = bound  # lines 18-21, 33-36: j leaves
            k = unload(cand, loaded, p, k)
        if status == INFEASIBLE:
            break
    for r in range(count if resting else 0):
        if cand.place[r] == RESTING:
            cand.place[r] = FREE
    counters[1] = k
    counters[2] = pivots
    return status
