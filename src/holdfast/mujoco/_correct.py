"""Position correction: what is left of penetration and of drift, taken out of the position alone.

The smallest displacement, as the inertia measures it, that leaves no penetration and no drift
to first order:

    minimise 1/2 dq' A dq   subject to   N (h v+ + dq) >= -gap,   J dq = -error,
                                         S dq = T dq = R dq = 0 at contacts that are pressed

Velocity is not touched, so no kinetic energy is added. Tangents are held where contacts are
pressed: a held object does not creep by being corrected.

Lifted out, a body gains potential energy. It gets no more than the step has taken out; where that
is not enough it is lifted by a part, and the rest waits. Nobody pays where bodies sank in before
the state was given to the stepper, nor for the drift of joints: these are corrected at once.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast import lcp
from holdfast._jit import entry
from holdfast.errors import InfeasibleError, SolveError
from holdfast.mujoco._answer import Answer
from holdfast.mujoco._mj import mujoco
from holdfast.mujoco.assemble import Rows

LARGEST_STEP = 0.1  # a correction moves no coordinate by more [m, rad]: rows are linear
GIVEN = 20  # corrections after a state was given that lift out what sank in, at any cost
LEVER = 20.0  # nor by more than this times the violation, over the mean size for angles


@entry
def violations(
    rows: np.ndarray,
    first: np.ndarray,
    gap: np.ndarray,
    sunk: np.ndarray,
    limit_gap: np.ndarray,
    error: np.ndarray,
    target: np.ndarray,
    velocity: np.ndarray,
    dry: int,
    h: float,
) -> tuple[float, float]:
    """Return the deepest penetration before the step, and the worst violation left after it.

    An empty `sunk` stands for zeros.
    """
    deepest = left = 0.0
    start = error.shape[0] + dry
    for i in range(gap.shape[0] + limit_gap.shape[0]):
        contact = i < gap.shape[0]
        row = first[i] if contact else start + i - gap.shape[0]
        before = gap[i] if contact else limit_gap[i - gap.shape[0]]
        after = 0.0
        for j in range(velocity.shape[0]):
            after += rows[row, j] * velocity[j]
        end = before + h * after
        if contact:
            deepest = max(deepest, -before)
            end -= sunk[i] if sunk.shape[0] > 0 else 0.0
        left = max(left, -end)
    for i in range(error.shape[0]):
        if target[i] == 0.0:  # a driven row is not drift
            left = max(left, abs(error[i]))
    return deepest, left


Wrong = list[tuple[Any, np.ndarray, Answer]]


def violated(answer: Answer) -> tuple[float, Wrong]:
    """Deepest penetration before a step, and what it leaves violated.

    Returns:
        The depth [m], and for each island that is to be corrected its coordinates, how far its
        contacts end below what their rows say, and its answer.
    """
    rows = answer.rows
    deepest, left = _violations(rows, rows.sunk, answer.velocity)
    if left <= rows.touch:
        return deepest, []
    wrong = []
    for dofs, contacts, part in answer.parts or [(slice(None), slice(None), answer)]:
        sunk = rows.sunk[contacts]
        if _violations(part.rows, sunk, part.velocity)[1] > rows.touch:
            wrong.append((dofs, sunk, part))
    return deepest, wrong


def _violations(rows: Rows, sunk: np.ndarray, velocity: np.ndarray) -> tuple[float, float]:
    return violations(
        rows.efc_J, rows.first, rows.gap, sunk, rows.limit_gap, rows.error, rows.target, velocity,
        len(rows.loss), rows.h,
    )  # fmt: skip


class Given:
    """Tells states that were given to the stepper from those that its last step left.

    Attributes:
        left: (nq,) the position that the last step left.
    """

    def __init__(self, nq: int) -> None:
        self.left, self._corrections = np.full(nq, np.nan), 0

    def is_new(self, qpos: np.ndarray) -> bool:
        """Whether a position, or one not long before it, was given; called per correction."""
        same = np.array_equal(qpos, self.left)
        self._corrections = max(0, self._corrections - 1) if same else GIVEN
        return self._corrections > 0


def correction(answer: Answer, sunk: np.ndarray, pull: np.ndarray | None) -> np.ndarray:
    """Displacement (nv,) to add to the position, as far as the step has paid for it.

    Args:
        answer: of the step.
        sunk: (n,) how far below what its row says each contact ends [m].
        pull: (nv,) force of the potential; None if what sank in came with the state: then nobody
            can pay.
    """
    rows = answer.rows
    dq = _displacement(rows, answer.velocity, answer.grips, sunk)
    drifts = np.abs(_drift(rows)).max(initial=0.0) > rows.touch
    cost = 0.0 if pull is None or drifts else -float(pull @ dq)
    if cost <= 0.0:
        return dq
    return dq * min(1.0, dissipated(rows, answer.velocity, answer.impulse) / cost)


def potential_force(own: Any, data: Any) -> np.ndarray:
    """(nv,) generalised force of gravity and springs where the step began.

    Recursive Newton-Euler without velocity leaves gravity alone; velocities are put back.
    """
    gravity, qvel, cvel = np.empty(own.nv), np.array(data.qvel), np.array(data.cvel)
    data.qvel[:], data.cvel[:] = 0.0, 0.0
    mujoco.mj_rne(own, data, 0, gravity)
    data.qvel[:], data.cvel[:] = qvel, cvel
    return data.qfrc_spring + data.qfrc_gravcomp - gravity


def _drift(rows: Rows) -> np.ndarray:
    """Violation of each equality row; a driven row is not drift."""
    return np.where(rows.target == 0.0, rows.error, 0.0)


def dissipated(rows: Rows, velocity: np.ndarray, impulse: np.ndarray) -> float:
    """Energy that a step takes out [J]: ``1/2 |v+ - v|^2 - p v+``, see `docs/mujoco.rst`."""
    change = velocity - rows.v
    power = impulse @ (rows.efc_J @ velocity)
    return max(0.0, 0.5 * float(change @ rows.A @ change) - float(power))


def _displacement(
    rows: Rows, velocity: np.ndarray, pressed: np.ndarray, sunk: np.ndarray
) -> np.ndarray:
    """Displacement that leaves nothing to correct; zero if there is nothing."""
    contacts = rows.gap + rows.h * (rows.N @ velocity) - sunk
    limits = rows.limit_gap + rows.h * (rows.U @ velocity)
    drift = _drift(rows)
    worst = max(
        (-contacts).max(initial=0.0), (-limits).max(initial=0.0), np.abs(drift).max(initial=0.0)
    )
    if worst <= rows.touch:
        return np.zeros(len(rows.v))
    gaps = np.concatenate([contacts, limits])
    near = gaps < LARGEST_STEP
    A = np.vstack([rows.N, rows.U])[near]
    J = rows.efc_J[rows.equality]
    largest = min(LARGEST_STEP, LEVER * worst / min(1.0, rows.size))
    dq = np.zeros(len(rows.v))
    for held in (pressed, np.zeros_like(pressed)):  # without the tangents if they are in the way
        try:
            dq = _project(rows, J, -drift, _tangents(rows, held), A, -gaps[near])
        except InfeasibleError:
            continue
        except SolveError:  # not certified: leave the position as it is, and report it
            return np.zeros(len(rows.v))
        if np.abs(dq).max(initial=0.0) <= largest:
            break
    return dq * min(1.0, largest / max(np.abs(dq).max(initial=0.0), largest))


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
