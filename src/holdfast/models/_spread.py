"""Sharing contact forces out among redundant contacts.

Contact forces are not unique where contacts are redundant: only their net effect on the momentum
is. Out of all forces with the same effect and no contact pulling, these are chosen:

1. The normal forces of least sum of squares. They are bound only in what tangents and joints
   cannot take over: with E the whitened normals of the contacts that touch, made orthogonal to
   all equality rows, ``minimise 1/2 |f_n|^2 subject to E' f_n = q, f_n >= 0``. At the solution
   ``f_n = max(0, E mu)``, so only mu is unknown, and Newton's method on that piecewise linear
   equation settles in a few steps.
2. The tangential forces of least ``sum |f_t|^2 / f_n``: each contact takes tangential load in
   proportion to how hard it is pressed, and none where it is not pressed. There may be no such
   forces: then contacts stick that nothing presses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from holdfast import lcp

if TYPE_CHECKING:
    from holdfast.solution import ContactSolution

TOUCHING = 1e-9  # contacts that separate faster than this, relatively, cannot carry force
EXACT = 1e-9  # relative error of the net effect
PRESSED = 1e-9  # normal force, relative to the largest one, that counts as pressing
RANK = 1e-12  # eigenvalues of a Gram matrix below this part of the largest one are rounding
MAX_STEPS = 30


class Spread(NamedTuple):
    """Forces with the same effect as those of a solution, spread out."""

    normal: np.ndarray
    tangent: np.ndarray
    bilateral: np.ndarray
    extra: np.ndarray
    pressed: np.ndarray  # (n,) contacts with a normal force
    tied: bool  # whether tangential forces act at pressed contacts only


def spread_forces(solution: ContactSolution) -> Spread:
    """Spread the forces of a solution out; viscous drag stays where it is."""
    p, held = solution.problem, solution.sticking
    N, S, T, J, R = (p.whitened[name] for name in "NSTJR")
    kept = solution.bilateral_rows
    joints = J[kept]
    tangents = [rows * held[:, None] for rows in (S, T) if len(rows)]
    loads = [solution.tangent[:, k] * held for k, rows in enumerate((S, T)) if len(rows)]
    total = N.T @ solution.normal + J.T @ solution.bilateral + R.T @ solution.extra
    for rows, load in zip(tangents, loads, strict=True):
        total = total + rows.T @ load

    normal = _normals(solution, N, p.whiten(solution.active[: solution.rank]))
    pressed = normal > PRESSED * normal.max(initial=0.0)
    rest = total - N.T @ normal
    size = np.linalg.norm(total)
    turning = (held & pressed)[p.R_contact]  # further rows act where their contact is pressed
    free = np.vstack([joints, R[turning]])
    t = _tangents(tangents, free, rest, normal * pressed, size)
    tied = t is not None
    if t is None:
        turning = held[p.R_contact]
        free = np.vstack([joints, R[turning]])
        t = _tangents(tangents, free, rest, np.ones(p.n), size)
    if t is None:
        return _as_they_are(solution)
    rest = rest - sum((rows.T @ part for rows, part in zip(tangents, t, strict=True)), start=0.0)
    others = np.linalg.lstsq(free.T, rest, rcond=None)[0] if len(free) else np.zeros(0)

    tangent = solution.tangent * ~held[:, None]
    columns = [k for k, rows in enumerate((S, T)) if len(rows)]
    for k, part in zip(columns, t, strict=True):
        tangent[:, k] += part
    bilateral, extra = np.zeros(len(J)), np.zeros(len(R))
    bilateral[kept] = others[: len(kept)]
    extra[turning] = others[len(kept) :]
    return Spread(normal, tangent, bilateral, extra, pressed, tied)


def _as_they_are(solution: ContactSolution) -> Spread:
    """The solution's own forces: rows so nearly dependent that least squares would lose them."""
    normal = solution.normal
    largest = max(normal.max(initial=0.0), np.abs(solution.tangent).max(initial=0.0))
    pressed = normal > PRESSED * largest
    loose = solution.sticking & ~pressed
    tied = not (np.abs(solution.tangent[loose]) > PRESSED * largest).any()
    return Spread(normal, solution.tangent, solution.bilateral, solution.extra, pressed, bool(tied))


def _normals(solution: ContactSolution, N: np.ndarray, G: np.ndarray) -> np.ndarray:
    """Normal forces of least norm with the effect of the known ones beside the rows of G."""
    gap = np.abs(solution.separation) / (solution.lengths("N") * solution.scale)
    touching = gap <= TOUCHING
    E = N * touching[:, None]
    if len(G):
        Q = np.linalg.qr(G.T)[0]
        E = E - (E @ Q) @ Q.T
    q = E.T @ solution.normal
    acting = touching.copy()
    seen: set[bytes] = set()
    for _ in range(MAX_STEPS):
        mu = _least_norm(E[acting], q)
        push = E @ mu
        floor = PRESSED * np.abs(push).max(initial=0.0)
        f = np.where(acting, push, 0.0)
        miss = np.linalg.norm(E.T @ f - q)
        if miss > EXACT * np.linalg.norm(q) or acting.tobytes() in seen:
            return _normals_by_pivoting(E, q, touching)
        if not (f < -floor).any() and not (push[touching & ~acting] > floor).any():
            # where the equality rows take over everything, zero would do; keep what presses
            return np.maximum(f, 0.0)
        seen.add(acting.tobytes())
        acting = touching & (push > floor)
    return _normals_by_pivoting(E, q, touching)


def _normals_by_pivoting(E: np.ndarray, q: np.ndarray, touching: np.ndarray) -> np.ndarray:
    """The same as what it is, the projection of the origin on a polyhedron."""
    rows = E[touching]
    values, vectors = np.linalg.eigh(rows.T @ rows)
    basis = vectors[:, values > RANK * values.max(initial=0.0)]
    count = len(rows)
    answer = lcp.solve_factored(
        np.vstack([(rows @ basis).T, np.eye(count)]),
        None,
        np.zeros(count),
        np.concatenate([-(basis.T @ q), np.zeros(count)]),
        lo=np.concatenate([np.full(basis.shape[1], -np.inf), np.zeros(count)]),
    )
    f = np.zeros(len(E))
    f[touching] = np.maximum(answer.motion, 0.0)
    return f


def _tangents(
    tangents: list[np.ndarray],
    free: np.ndarray,
    rest: np.ndarray,
    weight: np.ndarray,
    size: np.floating,
) -> list[np.ndarray] | None:
    """Tangential forces of least ``sum |f_t|^2 / weight`` that, with the free rows, give `rest`.

    Args:
        tangents: whitened rows S and T, zero where a contact does not stick.
        free: whitened rows whose force costs nothing.
        rest: effect to be made.
        weight: (n,) how willingly each contact takes tangential force.
        size: of the whole effect, to which errors are compared.

    Returns:
        None if there are none.
    """
    if len(free):
        Q = np.linalg.qr(free.T)[0]
        rest = rest - Q @ (Q.T @ rest)
        tangents = [rows - (rows @ Q) @ Q.T for rows in tangents]
    if np.linalg.norm(rest) <= EXACT * size:
        return [np.zeros(len(rows)) for rows in tangents]
    if not tangents:
        return None
    root = np.sqrt(weight)
    scaled = np.vstack([rows * root[:, None] for rows in tangents])
    mu = _least_norm(scaled, rest)
    t = [weight * (rows @ mu) for rows in tangents]
    made = sum((rows.T @ part for rows, part in zip(tangents, t, strict=True)), start=0.0)
    return t if np.linalg.norm(made - rest) <= EXACT * size else None


def _least_norm(E: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Mu with ``E' E mu = q``, of least norm where E has not full rank."""
    values, vectors = np.linalg.eigh(E.T @ E)
    kept = values > RANK * values.max(initial=0.0)
    return vectors[:, kept] @ ((vectors[:, kept].T @ q) / values[kept])
