r"""Kernels of Lemke's complementary pivot method for dense LCPs.

The problem is ``w = F z + q``, ``w, z >= 0``, ``z'w = 0`` with any square ``F``.

**Scaling.** For positive diagonal ``R``, ``C`` the problem ``R F C``, ``R q`` has the solution
``C^-1 z``, ``R w``. Powers of two bring its rows and columns to a largest entry of about one:
no digit is lost, and tolerances are pure numbers. To scale rows is to choose another covering
vector, which Lemke's theorems leave free.

**The path.** A covering vector ``d > 0`` and one more variable ``z0`` make
``w = F z + q + d z0`` feasible for large ``z0``. As a linear system:

.. math:: A x = q, \quad A = [\, I, \; -F, \; -d \,], \quad x = (w, z, z_0) \ge 0

A basis ``B`` is n columns of ``A``; the other variables are zero. Starting with ``z0`` in place
of the most violated ``w_r``, each pivot lets the complement of the variable that just left
enter. Its column ``c`` moves the basic variables along ``-u``, ``u = B^-1 c``, and the first
one to reach zero leaves. When ``z0`` leaves, ``z'w = 0`` and the problem is solved. When no
entry of ``u`` is positive the path ends on a ray.

**Ties.** Contact problems are degenerate: many ratios ``x_i / u_i`` are equal. Among equal ones
the lexicographically smallest row of ``[B^-1 p, B^-1] / u_i`` leaves, the limit of adding
``eps p + (eps^2, eps^3, ...)`` to ``q``: no basis can come back. The textbook rule has no
``p``; its ratios tie again and again, until rounding picks a pivot that is nothing but rounding.
A generic ``p > 0`` separates them at once, with ratios that are large where ``u_i`` is small.

Variables are numbered 0..n-1 for ``w``, n..2n-1 for ``z`` and 2n for ``z0``; row ``v - n`` of
``columns`` is the column of variable v in ``A``. ``basis[i]`` is the variable at place i,
``place[j]`` the place of ``w_j`` or NONE; ``x[0] = B^-1 q`` and ``x[1] = B^-1 p``. What is done
with the inverse of a basis is in `holdfast.lcp._lemke_basis`.
"""

from __future__ import annotations

import math

from holdfast._jit import entry, kernel
from holdfast.lcp._lemke_basis import (
    NONE,
    add_product,
    basic_values,
    copy,
    factorise,
    refine,
    size_of,
)
from holdfast.lcp.status import Status

SOLVED = int(Status.SOLVED)
RAY = int(Status.RAY)
PIVOT_LIMIT = int(Status.PIVOT_LIMIT)
SINGULAR = int(Status.SINGULAR)
PAUSED = int(Status.PAUSED)

# Slots of the integer state that survives a pause.
ENTERING = 0
PIVOTS = 1
UPDATES = 2  # elimination steps since the last factorisation
STATE_SIZE = 3


@entry
def equilibrate(F, largest_work, row_scale_out, column_scale_out, max_passes):
    """Write powers of two that bring the rows and columns of F to a largest entry of about one.

    Each pass divides rows and columns by the square root of their largest entry, which keeps a
    symmetric F symmetric (Ruiz scaling). Zero rows and columns keep the scale one.
    """
    n = F.shape[0]
    row_scale_out[:] = 1.0
    column_scale_out[:] = 1.0
    for _ in range(max_passes):
        largest_work[:] = 0.0
        for i in range(n):
            for j in range(n):
                size = abs(F[i, j]) * row_scale_out[i] * column_scale_out[j]
                largest_work[0, i] = max(largest_work[0, i], size)
                largest_work[1, j] = max(largest_work[1, j], size)
        settled = True
        for i in range(n):
            row_exponent = math.frexp(largest_work[0, i])[1] // 2
            column_exponent = math.frexp(largest_work[1, i])[1] // 2
            row_scale_out[i] = math.ldexp(row_scale_out[i], -row_exponent)
            column_scale_out[i] = math.ldexp(column_scale_out[i], -column_exponent)
            settled = settled and row_exponent == 0 and column_exponent == 0
        if settled:
            break


@entry
def start(
    F, q, d, p, row_scale, column_scale,
    p_out, columns_out, rhs_out, T_out, x_out, basis_out, place_out, state_out,
):  # fmt: skip
    """Write the scaled problem and its first basis: z0 in place of the most violated w.

    Returns SOLVED when q is non-negative, so that z = 0 is the answer, and PAUSED otherwise.
    """
    n = q.shape[0]
    state_out[:] = 0
    T_out[:] = 0.0
    for i in range(n):
        for j in range(n):
            columns_out[j, i] = -F[i, j] * row_scale[i] * column_scale[j]
        columns_out[n, i] = -d[i]
        rhs_out[i] = q[i] * row_scale[i]
        p_out[i] = p[i]
        x_out[0, i], x_out[1, i] = rhs_out[i], p[i]
        basis_out[i] = place_out[i] = i
        T_out[i, i] = 1.0
    r = NONE
    for i in range(n):
        if rhs_out[i] < 0.0:
            lead = 0.0 if r == NONE else rhs_out[r] / d[r] - rhs_out[i] / d[i]
            if r == NONE or lead > 0.0 or (lead == 0.0 and p[i] / d[i] < p[r] / d[r]):
                r = i
    if r == NONE:
        return SOLVED
    state_out[ENTERING] = 2 * n
    _pivot(columns_out[n], r, T_out, x_out, basis_out, place_out, state_out)
    return PAUSED


@kernel
def _pivot(u, r, T_out, x_out, basis_out, place_out, state_out):
    """Write T, x and the bookkeeping after the variable at place r left, and which enters next."""
    n = u.shape[0]
    for j in range(n):
        if T_out[j, r] != 0.0:
            factor = T_out[j, r] / u[r]
            for i in range(n):
                T_out[j, i] -= factor * u[i]
            T_out[j, r] = factor
    for side in range(2):
        step = x_out[side, r] / u[r]
        for i in range(n):
            x_out[side, i] -= step * u[i]
        x_out[side, r] = step
    leaving, entering = basis_out[r], state_out[ENTERING]
    basis_out[r] = entering
    if entering < n:
        place_out[entering] = r
    if leaving < n:
        place_out[leaving] = NONE
    state_out[ENTERING] = leaving + n if leaving < n else leaving - n
    state_out[PIVOTS] += 1
    state_out[UPDATES] += 1


@kernel
def _direction(columns, T, basis, place, entering, residual_work, u_out):
    """Write u = B^-1 c for the column c of the entering variable; return the drift found."""
    n = u_out.shape[0]
    u_out[:] = 0.0
    if entering < n:
        residual_work[:] = 0.0
        residual_work[entering] = 1.0
    else:
        copy(columns[entering - n], residual_work)
    add_product(T, place, residual_work, u_out)
    return refine(columns, T, basis, place, residual_work, u_out)


@kernel
def _keep_order(columns, basis, x_out, p_out, zero_tol):
    """Write a p that turns lexicographically negative rows positive again.

    There are none in exact arithmetic. A tie that rounding hid can leave one, and with it the
    proof against cycling is gone. Changing p changes the order of ties, never the problem.
    """
    n = p_out.shape[0]
    slack, order_slack = zero_tol * size_of(x_out[0]), zero_tol * size_of(x_out[1])
    for i in range(n):
        if x_out[0, i] <= slack and x_out[1, i] < -order_slack:
            flip = -2.0 * x_out[1, i]
            x_out[1, i] += flip
            if basis[i] < n:
                p_out[basis[i]] += flip
            else:
                column = columns[basis[i] - n]
                for j in range(n):
                    p_out[j] += flip * column[j]


@kernel
def _leaving(T, x, u, basis, tied_work, zero_tol, pivot_tol):
    """Write the tied places to `tied_work`; return the place that leaves, or NONE on a ray.

    A place ties when it reaches zero before any other falls below minus `zero_tol` of the
    largest value (Harris' bound). z0 leaves when it can: the problem is then solved. Entries
    of u below `pivot_tol` of the largest are taken for rounding.
    """
    n = u.shape[0]
    smallest_pivot = pivot_tol * size_of(u)
    slack = zero_tol * size_of(x[0])
    bound = math.inf
    for i in range(n):
        if u[i] > smallest_pivot:
            bound = min(bound, (max(x[0, i], 0.0) + slack) / u[i])
    count = 0
    for i in range(n):
        if u[i] > smallest_pivot and x[0, i] <= bound * u[i]:
            if basis[i] == 2 * n:
                return i
            tied_work[count] = i
            count += 1
    for j in range(-1, n):
        if count > 1:
            count = _keep_smallest(x[1] if j < 0 else T[j], u, tied_work, count, zero_tol)
    return tied_work[0] if count > 0 else NONE


@kernel
def _keep_smallest(column, u, tied_out, count, zero_tol):
    """Write those tied places whose column[i] / u[i] is smallest; return how many they are."""
    slack = zero_tol * size_of(column)
    bound = math.inf
    for k in range(count):
        bound = min(bound, (column[tied_out[k]] + slack) / u[tied_out[k]])
    kept = 0
    for k in range(count):
        if column[tied_out[k]] <= bound * u[tied_out[k]]:
            tied_out[kept] = tied_out[k]
            kept += 1
    return kept


@kernel
def _refactorise(
    columns, rhs, p, basis, place, K_work, y_work, row_work, column_work, residual_work, unit_work,
    T_out, x_out, state_out,
):  # fmt: skip
    """Write T and x afresh from an LU factorisation of the basis; return False if singular."""
    k = factorise(columns, basis, place, K_work, row_work, column_work)
    if k == NONE:
        return False
    factors = (K_work, row_work, column_work, k, y_work, residual_work)
    basic_values(columns, rhs, basis, *factors, x_out[0])
    basic_values(columns, p, basis, *factors, x_out[1])
    unit_work[:] = 0.0
    for a in range(k):
        j = row_work[a]
        unit_work[j] = 1.0
        basic_values(columns, unit_work, basis, *factors, T_out[j])
        unit_work[j] = 0.0
    state_out[UPDATES] = 0
    return True


@entry
def walk(
    columns, rhs, p_work, T_work, K_work, y_work, x_work, u_work, residual_work, basis_work,
    place_work, row_work, column_work, tied_work, state_work,
    zero_tol, pivot_tol, drift_tol, refine_every, max_pivots, budget,
):  # fmt: skip
    """Write the bases along the path into the work arrays, for at most `budget` pivots.

    The work arrays are the whole state: after PAUSED another call goes on as if there had been
    no pause. After RAY, `u_work` belongs to the entering variable of the state.
    """
    for _ in range(budget):
        if state_work[PIVOTS] >= max_pivots:
            return PIVOT_LIMIT
        drift = _direction(
            columns, T_work, basis_work, place_work, state_work[ENTERING], residual_work, u_work
        )
        if state_work[PIVOTS] % refine_every == 0:
            copy(rhs, residual_work)
            refine(columns, T_work, basis_work, place_work, residual_work, x_work[0])
        _keep_order(columns, basis_work, x_work, p_work, zero_tol)
        r = _leaving(T_work, x_work, u_work, basis_work, tied_work, zero_tol, pivot_tol)
        if state_work[UPDATES] > 0 and (r == NONE or not drift <= drift_tol):
            if not _refactorise(
                columns, rhs, p_work, basis_work, place_work, K_work, y_work, row_work, column_work,
                residual_work, u_work, T_work, x_work, state_work,
            ):  # fmt: skip
                return SINGULAR
        elif not drift < 1.0:
            # Refinement with a fresh inverse diverges: the basis has no correct digit.
            return SINGULAR
        elif r == NONE:
            return RAY
        else:
            solved = basis_work[r] == 2 * rhs.shape[0]
            _pivot(u_work, r, T_work, x_work, basis_work, place_work, state_work)
            if solved:
                return SOLVED
    return PAUSED


@entry
def finish(
    columns, rhs, row_scale, column_scale, u, basis, place, state,
    K_work, y_work, x_work, residual_work, row_work, column_work, z_out, w_out, ray_out, status,
):  # fmt: skip
    """Write z, w and, after RAY, the direction of the ray in z, in the units of F and q.

    The values are recomputed from a fresh factorisation. Negative ones are rounding and become
    zero, so that z, w >= 0 and z'w = 0 hold exactly and only w = F z + q is left to be checked.
    Returns the status, or SINGULAR if the basis cannot be factorised.
    """
    n = rhs.shape[0]
    z_out[:], w_out[:], ray_out[:] = 0.0, 0.0, 0.0
    k = factorise(columns, basis, place, K_work, row_work, column_work)
    if k == NONE:
        return SINGULAR
    factors = (K_work, row_work, column_work, k, y_work, residual_work)
    basic_values(columns, rhs, basis, *factors, x_work[0])
    entering = state[ENTERING]
    if status == RAY and n <= entering < 2 * n:
        ray_out[entering - n] = column_scale[entering - n]
    for i in range(n):
        v = basis[i]
        if v < n:
            w_out[v] = max(x_work[0, i], 0.0) / row_scale[v]
        elif v < 2 * n:
            z_out[v - n] = max(x_work[0, i], 0.0) * column_scale[v - n]
            if status == RAY:
                ray_out[v - n] = max(-u[i], 0.0) * column_scale[v - n]
    return status
