"""Sharing contact forces out among redundant contacts.

Given the net effect p of the contact forces on the momentum, the forces of least sum of squares
with the same effect and no contact pulling:

    minimise  |f|^2   subject to   B' f = p,   f_n >= 0

where the rows of B are the normals of the contacts that touch and the tangents of those that
stick. Without the sign condition this is a least-squares problem; contacts that would pull are
set to zero and the rest solved again. That settles in a few rounds, and almost always in one. If
it does not, the problem is handed to the complementarity solver as what it is: the projection of
the origin on a polyhedron.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from holdfast import lcp

if TYPE_CHECKING:
    from holdfast.solution import ContactSolution

TOUCHING = 1e-9  # contacts that separate faster than this, relatively, cannot carry force
EXACT = 1e-10  # relative error of the net effect
MAX_ROUNDS = 20


def spread_forces(solution: ContactSolution) -> tuple[np.ndarray, np.ndarray]:
    """Normal (n,) and tangential (n, 2) forces, spread out; viscous drag stays where it is."""
    p = solution.problem
    n = p.n
    held = solution.sticking
    viscous = solution.tangent * ~held[:, None]
    separation = np.abs(solution.separation) / (solution._length(p.N) * solution.scale)
    touching = separation <= TOUCHING
    tangents = [rows[held] for rows in (p.S, p.T) if len(rows)]
    B = np.vstack([p.N[touching], *tangents])
    loads = [solution.tangent[held, k] for k, rows in enumerate((p.S, p.T)) if len(rows)]
    known = np.concatenate([solution.normal[touching], *loads])
    f = _least_squares(B, known, int(touching.sum()))

    normal, tangent = np.zeros(n), viscous
    normal[touching] = f[: touching.sum()]
    start = int(touching.sum())
    for k, rows in enumerate((p.S, p.T)):
        if len(rows):
            tangent[held, k] = f[start : start + held.sum()]
            start += int(held.sum())
    return normal, tangent


def _least_squares(B: np.ndarray, known: np.ndarray, normals: int) -> np.ndarray:
    """Forces of least norm with the effect of the known ones, the first `normals` not negative."""
    # Rows are orthonormalised once: only their span matters, and units drop out.
    effect = B.T @ known
    size = np.abs(B.T) @ np.abs(known)
    scale = np.where(size > 0.0, 1.0 / np.where(size > 0.0, size, 1.0), 0.0)
    used = size > 0.0
    E, q = (B * scale)[:, used].T, (effect * scale)[used]  # E f = q, each row of size one
    allowed = np.ones(len(known), dtype=bool)
    for _ in range(MAX_ROUNDS):
        f = np.zeros(len(known))
        f[allowed] = np.linalg.lstsq(E[:, allowed], q, rcond=1e-13)[0]
        if np.abs(E @ f - q).max(initial=0.0) > EXACT:
            break
        pulling = np.flatnonzero(f[:normals] < 0.0)
        if pulling.size == 0:
            return f
        allowed[pulling] = False
    answer = lcp.solve_factored(
        np.vstack([E, np.eye(normals, len(known))]),
        None,
        np.zeros(len(known)),
        np.concatenate([-q, np.zeros(normals)]),
        lo=np.concatenate([np.full(len(q), -np.inf), np.zeros(normals)]),
        hi=np.full(len(q) + normals, np.inf),
    )
    f = answer.motion.copy()
    f[:normals] = np.maximum(f[:normals], 0.0)
    return f
