"""Position correction: what is left of penetration and of drift, taken out of the position alone.

The smallest displacement, as the inertia measures it, that leaves no penetration and no drift
to first order:

    minimise 1/2 dq' A dq   subject to   N (h v+ + dq) >= -gap,   J dq = -error,
                                         S dq = T dq = R dq = 0 at contacts that are pressed

Velocity is not touched, so no kinetic energy is added. Tangents are held where contacts are
pressed: a held object does not creep by being corrected.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

import numpy as np

from holdfast import lcp
from holdfast.errors import InfeasibleError, SolveError
from holdfast.lcp._kernel import entry
from holdfast.mujoco.assemble import Rows

LARGEST_STEP = 0.1  # a correction moves no coordinate by more [m, rad]: rows are linear
LEVER = 20.0  # nor by more than this times the violation, over the mean size for angles


@entry
def violations(
    rows: np.ndarray,
    first: np.ndarray,
    gap: np.ndarray,
    limit_gap: np.ndarray,
    error: np.ndarray,
    target: np.ndarray,
    velocity: np.ndarray,
    dry: int,
    h: float,
) -> tuple[float, float]:
    """Return the deepest penetration before the step, and the worst violation left after it."""
    deepest = left = 0.0
    start = error.shape[0] + dry
    for i in range(gap.shape[0] + limit_gap.shape[0]):
        contact = i < gap.shape[0]
        row = first[i] if contact else start + i - gap.shape[0]
        before = gap[i] if contact else limit_gap[i - gap.shape[0]]
        after = 0.0
        for j in range(velocity.shape[0]):
            after += rows[row, j] * velocity[j]
        left = max(left, -(before + h * after))
        if contact:
            deepest = max(deepest, -before)
    for i in range(error.shape[0]):
        if target[i] == 0.0:  # a driven row is not drift
            left = max(left, abs(error[i]))
    return deepest, left


def correction(rows: Rows, velocity: np.ndarray, pressed: np.ndarray) -> np.ndarray | None:
    """Displacement (nv,) to add to the position, or None if there is nothing to correct.

    Args:
        rows: of this step.
        velocity: after the step.
        pressed: (n,) contacts whose tangents are held.
    """
    contacts = rows.gap + rows.h * (rows.N @ velocity)
    limits = rows.limit_gap + rows.h * (rows.U @ velocity)
    drift = np.where(rows.target == 0.0, rows.error, 0.0)  # a driven row is not drift
    worst = max(
        (-contacts).max(initial=0.0), (-limits).max(initial=0.0), np.abs(drift).max(initial=0.0)
    )
    if worst <= rows.touch:
        return None
    gaps = np.concatenate([contacts, limits])
    near = gaps < LARGEST_STEP
    A = np.vstack([rows.N, rows.U])[near]
    J = rows.efc_J[rows.equality]
    largest = min(LARGEST_STEP, LEVER * worst / min(1.0, rows.size))
    dq = None
    for held in (pressed, np.zeros_like(pressed)):  # without the tangents if they are in the way
        try:
            dq = _project(rows, J, -drift, _tangents(rows, held), A, -gaps[near])
        except InfeasibleError:
            continue
        except SolveError:  # not certified: leave the position as it is, and report it
            return None
        if np.abs(dq).max() <= largest:
            return dq
    return None if dq is None else dq * (largest / np.abs(dq).max())


def _tangents(rows: Rows, held: np.ndarray) -> np.ndarray:
    """All friction rows of the contacts that are held."""
    first, dim = rows.first[held], rows.dim[held]
    count = np.maximum(dim - 1, 0)
    start = np.repeat(np.cumsum(count) - count, count)
    return rows.efc_J[np.repeat(first, count) + 1 + np.arange(count.sum()) - start]


def _project(
    rows: Rows, J: np.ndarray, c_J: np.ndarray, held: np.ndarray, A: np.ndarray, c_A: np.ndarray
) -> np.ndarray:
    """Least motion with ``J x = c_J``, ``held x = 0`` and ``A x >= c_A``."""
    G = np.vstack([J, held])
    kept = lcp.find_indices(rows.A, G).J_rows
    c_G = np.concatenate([c_J, np.zeros(len(held))])[kept]
    answer = lcp.solve_factored(
        np.vstack([G[kept], A]),
        rows.A,
        np.zeros(len(rows.v)),
        -np.concatenate([c_G, c_A]),
        lo=np.concatenate([np.full(len(kept), -np.inf), np.zeros(len(A))]),
    )
    return np.array(answer.motion)
