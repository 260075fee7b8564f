"""Contact forces distributed among redundant contacts.

Contact forces are not unique where contacts are redundant: only their net effect on the momentum
is. Out of all forces with the same effect and no contact pulling, these are chosen:

1. The normal forces of least sum of squares. They are bound only in what tangents and joints
   cannot take over: with E the whitened normals of the contacts that touch, made orthogonal to
   all equality rows, ``minimise 1/2 |f_n|^2 subject to E' f_n = q, f_n >= 0``.
2. The tangential forces of least ``sum |f_t|^2 / f_n``: each contact takes tangential load in
   proportion to how hard it is pressed, and none where it is not pressed. There may be no such
   forces: then contacts stick that nothing presses, and all take part alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from holdfast import lcp

if TYPE_CHECKING:
    from holdfast.contact.solution import ContactSolution

TOUCHING = 1e-9  # contacts that separate faster than this, relatively, cannot carry force
EXACT = 1e-9  # relative error of the net effect
PRESSED = 1e-9  # normal force, relative to the largest one, that counts as pressing
DEPENDENT = 1e-9  # what is left of rows outside the span of others that is rounding, relatively
NOISE = 1e-6  # the same where a collision detector placed the points
SHORTEST = (
    1e-12  # directions down to here are used if need be: forces are as large as they are short
)
MAX_STEPS = 30


class Distribution(NamedTuple):
    """Forces with the same effect as those of a solution."""

    normal: np.ndarray
    tangent: np.ndarray
    bilateral: np.ndarray
    extra: np.ndarray


def distribute_forces(solution: ContactSolution) -> Distribution:
    """Distribute the forces of a solution; viscous drag stays where it is."""
    p, held = solution.problem, solution.sticking
    N, J, R = (p.whitened[name] for name in "NJR")
    kept = solution.bilateral_rows
    count = p.stack.ends[1]  # tangents, first those along S
    contact = np.arange(count) % max(p.n, 1)
    rows = p.whitened_rows[:count] * held[contact, None]
    load = (solution.tangent.T * held).ravel()[:count]
    total = N.T @ solution.normal + J.T @ solution.bilateral + R.T @ solution.extra + rows.T @ load

    normal = _normals(solution, N, p.factor.whiten(solution.active[: solution.rank]))
    pressed = normal > PRESSED * normal.max(initial=0.0)
    rest, size = total - N.T @ normal, float(np.linalg.norm(total))
    for weight, turns in ((normal * pressed, held & pressed), (np.ones(p.n), held)):
        turning = turns[p.R_contact]
        free = np.concatenate([J[kept], R[turning]])
        t = _tangents(rows, weight[contact], free, rest, size)
        if t is not None:
            break
    else:  # rows so nearly dependent that least squares would lose them
        return Distribution(solution.normal, solution.tangent, solution.bilateral, solution.extra)

    tangent = solution.tangent * ~held[:, None]
    for k in range(count // max(p.n, 1)):
        tangent[:, k] += t[k * p.n : (k + 1) * p.n]
    others = _least_squares(free, np.ones(len(free)), rest - rows.T @ t, size)
    bilateral, extra = np.zeros(len(J)), np.zeros(len(R))
    bilateral[kept], extra[turning] = others[: len(kept)], others[len(kept) :]
    return Distribution(normal, tangent, bilateral, extra)


def _least_squares(A: np.ndarray, weight: np.ndarray, q: np.ndarray, size: float) -> np.ndarray:
    """Forces f of least ``sum f^2 / weight`` with ``A' f = q``, as nearly as that is possible."""
    root = np.sqrt(weight)
    columns = (root[:, None] * A).T
    f = np.zeros(len(A))
    for shortest in (NOISE, SHORTEST):
        f = root * np.linalg.lstsq(columns, q, rcond=shortest)[0]
        f += root * np.linalg.lstsq(columns, q - A.T @ f, rcond=shortest)[0]  # what rounding left
        if np.linalg.norm(q - A.T @ f) <= EXACT * size:
            break
    return f


def _outside(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """What is left of rows outside the span of others."""
    length = np.linalg.norm(others, axis=1, keepdims=True)
    U, values, _ = np.linalg.svd((others / np.where(length > 0.0, length, 1.0)).T, False)
    Q = U[:, values > DEPENDENT]
    rows = rows - (rows @ Q) @ Q.T
    return rows - (rows @ Q) @ Q.T  # twice is enough


def _tangents(
    rows: np.ndarray, weight: np.ndarray, free: np.ndarray, rest: np.ndarray, size: float
) -> np.ndarray | None:
    """Tangential forces that make `rest` beside rows whose force costs nothing; None if none do."""
    left, q = (_outside(rows, free), _outside(rest[None], free)[0]) if len(free) else (rows, rest)
    if np.linalg.norm(q) <= EXACT * size:
        return np.zeros(len(rows))
    t = _least_squares(left, weight, q, size)
    return t if np.linalg.norm(q - left.T @ t) <= EXACT * size else None


def _normals(solution: ContactSolution, N: np.ndarray, G: np.ndarray) -> np.ndarray:
    """Normal forces of least squares with the effect of the known ones beside the rows of G.

    At the solution ``f = max(0, E mu)``, and Newton's method on that piecewise linear equation
    settles in a few steps. Where it does not, the forces are found as what they are, the
    projection of the origin on a polyhedron.
    """
    gap = np.abs(solution.separation) / (solution.lengths("N") * solution.scale)
    touching = np.flatnonzero(gap <= TOUCHING)
    E = _outside(N[touching], G) if len(G) else N[touching]
    q = E.T @ solution.normal[touching]
    size, force = float(np.linalg.norm(q)), np.zeros(len(N))
    acts = np.ones(len(touching), dtype=bool)
    for _ in range(MAX_STEPS):
        f = _least_squares(E, acts.astype(float), q, size)
        if np.linalg.norm(q - E.T @ f) > EXACT * size:
            break
        mu = np.linalg.lstsq(E[acts], f[acts], rcond=SHORTEST)[0]
        f = np.where(acts, f, E @ mu)  # what the others would carry if they could
        noise = PRESSED * np.abs(f).max(initial=0.0)
        settled = not np.where(acts, f < -noise, f > noise).any()
        if settled:
            force[touching] = np.where(acts, np.maximum(f, 0.0), 0.0)
            return force
        acts = f > noise
    values, vectors = np.linalg.eigh(E.T @ E)
    basis = vectors[:, values > SHORTEST * values.max(initial=0.0)]
    count, rank = len(E), basis.shape[1]
    answer = lcp.solve_factored(
        np.vstack([(E @ basis).T, np.eye(count)]), None, np.zeros(count),
        np.concatenate([-(basis.T @ q), np.zeros(count)]),
        lo=np.concatenate([np.full(rank, -np.inf), np.zeros(count)]),
    )  # fmt: skip
    force[touching] = np.maximum(answer.motion, 0.0)
    return force
