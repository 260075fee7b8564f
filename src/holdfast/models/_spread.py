"""Sharing contact forces out among redundant contacts.

Contact forces are not unique where contacts are redundant: only their net effect on the momentum
is. Out of all forces with the same effect and no contact pulling, these are chosen:

1. The normal forces of least sum of squares. They are bound only in what tangents and joints
   cannot take over: with E the whitened normals of the contacts that touch, made orthogonal to
   all equality rows, ``minimise 1/2 |f_n|^2 subject to E' f_n = q, f_n >= 0``.
2. The tangential forces of least ``sum |f_t|^2 / f_n``: each contact takes tangential load in
   proportion to how hard it is pressed, and none where it is not pressed. There may be no such
   forces: then contacts stick that nothing presses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from holdfast import lcp
from holdfast.models._sharing import PRESSED, SHARED, share_normals, share_tangents

if TYPE_CHECKING:
    from holdfast.contact.solution import ContactSolution

TOUCHING = 1e-9  # contacts that separate faster than this, relatively, cannot carry force
RANK = 1e-12  # eigenvalues of a Gram matrix below this part of the largest one are rounding


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
    N, J, R = (p.whitened[name] for name in "NJR")
    kept = solution.bilateral_rows
    joints = J[kept]
    count = p.stack.ends[1]  # tangents, first those along S
    rows = p.whitened_rows[:count]
    contact = np.arange(count) % max(p.n, 1)
    if not held.all():
        rows = rows * held[contact, None]
    load = (solution.tangent.T * held).ravel()[:count]
    total = N.T @ solution.normal + J.T @ solution.bilateral + R.T @ solution.extra + rows.T @ load

    work = Work(p.n, p.m)
    normal = _normals(solution, N, p.factor.whiten(solution.active[: solution.rank]), work)
    pressed = normal > PRESSED * normal.max(initial=0.0)
    rest = total - N.T @ normal
    size = float(np.linalg.norm(total))
    for tied in (True, False):  # where they must, tangential forces act where nothing presses
        turning = (held & pressed if tied else held)[p.R_contact]
        weight = normal * pressed if tied else np.ones(p.n)
        t, others = work.tangents(rows, contact, np.concatenate([joints, R[turning]]), weight,
                                  rest, size)  # fmt: skip
        if t is not None:
            break
    else:
        return _as_they_are(solution)

    tangent = solution.tangent * ~held[:, None]
    for k in range(count // max(p.n, 1)):
        tangent[:, k] += t[k * p.n : (k + 1) * p.n]
    bilateral, extra = np.zeros(len(J)), np.zeros(len(R))
    bilateral[kept] = others[: len(kept)]
    extra[turning] = others[len(kept) :]
    return Spread(normal, tangent, bilateral, extra, pressed, tied)


class Work:
    """Work arrays of the kernels, for n contacts and m coordinates."""

    def __init__(self, n: int, m: int) -> None:
        self.n, self.m = n, m
        self.square, self.vector = np.empty((4, m, m)), np.empty((5, m))
        self.which = np.empty((2, m), dtype=np.int64)

    def _rows(self, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return np.empty((2, self.m, k)), np.empty((2, k)), np.empty((k, self.m))

    def normals(
        self, N: np.ndarray, G: np.ndarray, touching: np.ndarray, normal: np.ndarray
    ) -> np.ndarray | None:
        """See `share_normals`; None if it failed."""
        f = np.empty(self.n)
        status = share_normals(
            N, G, touching, normal, self.square, self.vector, *self._rows(self.n), self.which, f
        )  # fmt: skip
        return f if status == SHARED else None

    def tangents(
        self,
        rows: np.ndarray,
        contact: np.ndarray,
        free: np.ndarray,
        weight: np.ndarray,
        rest: np.ndarray,
        size: float,
    ) -> tuple[np.ndarray | None, np.ndarray]:
        """See `share_tangents`; None if there are no such forces."""
        t, others = np.empty(len(rows)), np.empty(len(free))
        status = share_tangents(
            rows, contact, free, weight, rest, size, self.square, self.vector,
            *self._rows(len(rows)), np.empty(free.shape), self.which, t, others,
        )  # fmt: skip
        return (t if status == SHARED else None), others


def _as_they_are(solution: ContactSolution) -> Spread:
    """The solution's own forces: rows so nearly dependent that least squares would lose them."""
    normal = solution.normal
    largest = max(normal.max(initial=0.0), np.abs(solution.tangent).max(initial=0.0))
    pressed = normal > PRESSED * largest
    loose = solution.sticking & ~pressed
    tied = not (np.abs(solution.tangent[loose]) > PRESSED * largest).any()
    return Spread(normal, solution.tangent, solution.bilateral, solution.extra, pressed, bool(tied))


def _normals(solution: ContactSolution, N: np.ndarray, G: np.ndarray, work: Work) -> np.ndarray:
    """Normal forces of least norm with the effect of the known ones beside the rows of G."""
    gap = np.abs(solution.separation) / (solution.lengths("N") * solution.scale)
    touching = gap <= TOUCHING
    f = work.normals(N, G, touching, np.array(solution.normal))
    return _normals_by_pivoting(N, G, solution.normal, touching) if f is None else f


def _normals_by_pivoting(
    N: np.ndarray, G: np.ndarray, normal: np.ndarray, touching: np.ndarray
) -> np.ndarray:
    """The same as what it is, the projection of the origin on a polyhedron."""
    E = N * touching[:, None]
    if len(G):
        Q = np.linalg.qr(G.T)[0]
        E = E - (E @ Q) @ Q.T
    q = E.T @ normal
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
