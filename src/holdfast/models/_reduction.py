"""Equality rows eliminated: what is left for contacts to move.

With ``M = L L'`` and whitened motion ``y = L' x``, independent equality rows G become
``Gw = G L^-T``. They have a factorisation ``Gw' = Q R`` with orthonormal Q, and forces z along
further rows B leave

    x = x1 + P B' z,   P = L^-T (I - Q Q') L^-1

where x1 is the free motion x0 moved to ``G x1 = c_G``. This is the reduction of the mixed
complementarity problem in the paper, with the square root of P instead of P: nothing is squared
before the LCP matrix itself, where the paper's ``K = G M^-1 G'`` squares the condition of G.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from holdfast import lcp
from holdfast.contact.problem import ContactProblem
from holdfast.contact.solution import ContactSolution
from holdfast.errors import InfeasibleError, InputError
from holdfast.lcp.find_indices import RANK_TOL
from holdfast.lcp.inertia import InertiaFactor
from holdfast.lcp.status import Status
from holdfast.models._choices import check_rigid

ZERO_ROW = lcp.Options().zero_row
SPANNED = 1e-10  # a row this much shorter after elimination lies in the span of what was eliminated
ROUNDING = 1e-14  # relative speed along a row that is rounding
SLIDES = 1e-6  # part of the speed of its body at which a contact slides that should be held
INCONSISTENT = 1e-5  # a redundant row that misses its target by more, relatively, contradicts


class Reduced(NamedTuple):
    """Rows as the equality rows leave them."""

    columns: np.ndarray  # (m, k) L^-1 B', for the effect of forces along the rows
    left: np.ndarray  # (m, k) their part outside the span of the equality rows
    speeds: np.ndarray  # (k,) B x1 - c


class Elimination:
    """Forces to motion, with independent equality rows eliminated.

    Args:
        factor: of the inertia.
        L: the same, dense.
        x0: (m,) free motion.
        G: (g, m) equality rows.
        c_G: (g,) their targets.

    Attributes:
        y1: (m,) whitened motion without further forces, on the equality rows.
    """

    def __init__(
        self,
        factor: InertiaFactor,
        L: np.ndarray,
        x0: np.ndarray,
        G: np.ndarray,
        c_G: np.ndarray,
    ) -> None:
        self.x0, self._factor = x0, factor
        self._inverse = factor.whiten(np.eye(len(x0)))  # L^-T
        self.Q, self.R = np.linalg.qr(self.whitened(G))
        self.y0 = L.T @ x0
        self.target = np.linalg.solve(self.R.T, c_G)
        self.y1 = self.y0 + self.Q @ (self.target - self.Q.T @ self.y0)

    def whitened(self, rows: np.ndarray) -> np.ndarray:
        """(m, k) rows in the metric of M^-1, as columns: ``L^-1 B'``."""
        return self._factor.whiten(rows).T

    def eliminate(self, columns: np.ndarray) -> np.ndarray:
        """The part of whitened columns that the equality rows leave."""
        return columns - self.Q @ (self.Q.T @ columns)

    def rows(self, B: np.ndarray, c: np.ndarray | float = 0.0) -> Reduced:
        """Rows B with the equality rows eliminated, and ``B x1 - c``.

        What is left of a row in the span of the equality rows is rounding, and so is its motion:
        both are set to zero. So is any speed that is rounding.
        """
        columns = self.whitened(B)
        left = self.eliminate(columns)
        speeds = columns.T @ self.y1 - c
        length = np.linalg.norm(columns, axis=0)
        spanned = np.linalg.norm(left, axis=0) <= SPANNED * length
        left[:, spanned] = 0.0
        size = max(np.linalg.norm(y) for y in (self.y0, self.y1))
        speeds[np.abs(speeds) <= np.where(spanned, SPANNED, ROUNDING) * length * size] = 0.0
        return Reduced(columns, left, speeds)

    def motion(self, effect: np.ndarray) -> np.ndarray:
        """(m,) motion for the whitened effect ``L^-1 B' z`` of the forces."""
        return self._inverse @ (self.y1 + self.eliminate(effect))

    def forces(self, effect: np.ndarray) -> np.ndarray:
        """(g,) forces of the equality rows."""
        return np.linalg.solve(self.R, self.target - self.Q.T @ (self.y0 + effect))


class Reduction(Elimination):
    """Contact forces to motion, with the bilateral rows of a problem eliminated.

    Attributes:
        problem: whose inertia and bilateral rows these are.
        indices: the kept rows of J.
    """

    def __init__(self, problem: ContactProblem, x0: np.ndarray, c_J: np.ndarray) -> None:
        check_rigid(problem)
        p = self.problem = problem
        self.indices = lcp.find_indices(p.M, p.J, rank_tol=RANK_TOL)
        kept = self.indices.J_rows
        super().__init__(p.factor, p.cholesky, x0, p.J[kept], c_J[kept])
        self.c_J = c_J

    def motion(self, effect: np.ndarray) -> np.ndarray:
        """(m,) motion for the whitened effect ``L^-1 B' z`` of the contact forces.

        Raises:
            InputError: a redundant bilateral row contradicts the rows that it depends on.
        """
        motion = super().motion(effect)
        p = self.problem
        check_targets(p.M, p.J, self.c_J, self.indices.J_rows, motion, self.x0)
        return motion

    def bilateral(self, effect: np.ndarray) -> np.ndarray:
        """(j,) forces of the bilateral rows; zero at rows found redundant."""
        forces = np.zeros(self.problem.j)
        forces[self.indices.J_rows] = self.forces(effect)
        return forces


def check_targets(
    M: np.ndarray,
    J: np.ndarray,
    c_J: np.ndarray,
    kept: np.ndarray,
    motion: np.ndarray,
    x0: np.ndarray,
) -> None:
    """Redundant bilateral rows must agree with the ones that were kept."""
    if len(J) == len(kept):
        return
    miss = np.abs(J @ motion - c_J)
    diagonal = np.diagonal(M, axis1=-2, axis2=-1).ravel()
    speed = max(np.linalg.norm(np.sqrt(diagonal) * x) for x in (motion, x0))
    length = np.linalg.norm(J / np.sqrt(diagonal), axis=1)
    size = length * speed + np.abs(c_J).max(initial=0.0)
    real = (length > ZERO_ROW * length.max()) | (c_J != 0.0)  # not left over by cancellation
    bad = np.flatnonzero(real & (miss > INCONSISTENT * size))
    if bad.size:
        i = int(bad[0])
        raise InputError(
            "J",
            f"row {i} contradicts the rows before it: it depends on them, but they give "
            f"{J[i] @ motion:.6g} where its target c_J is {c_J[i]:.6g}",
        )


def check_held(solution: ContactSolution, held: np.ndarray) -> None:
    """Refuse an answer in which a contact slides that must be held, because joints drive it.

    Tangents that depend on rows of J cannot be held where these have other targets. Then the
    residual r of ``(J, S, T) v = (c_J, 0, 0)`` proves it: it cancels the rows and not the targets.

    Raises:
        InfeasibleError: joints and held contacts contradict each other; carries the proof.
    """
    problem, held = solution.problem, np.flatnonzero(held)
    if not held.size or not len(problem.J) or not np.any(problem.c_J):
        return
    S, T = (each if len(each) else np.zeros_like(problem.N) for each in (problem.S, problem.T))
    sides = np.vstack([S[held], T[held]])
    scale = np.abs(sides) @ np.abs(solution.velocity)
    if not (np.abs(sides @ solution.velocity) > SLIDES * scale).any():
        return
    rows = np.vstack([problem.J, sides])
    target = np.concatenate([problem.c_J, np.zeros(len(sides))])
    length = np.linalg.norm(rows, axis=1)
    length[length == 0.0] = 1.0
    v = np.linalg.lstsq(rows / length[:, None], target / length, rcond=None)[0]
    left = target / length - rows / length[:, None] @ v
    if not np.linalg.norm(left) > SLIDES * np.linalg.norm(target / length):
        return
    weight = left / length
    j, k = len(problem.J), len(held)
    weights = {name: np.zeros(len(getattr(problem, name))) for name in ("J", "S", "T", "R")}
    weights["J"] = weight[:j]
    for name, part in (("S", weight[j : j + k]), ("T", weight[j + k :])):
        if len(weights[name]):
            weights[name][held] = part
    raise InfeasibleError(
        f"infeasible: joints drive contacts {', '.join(map(str, held[:8]))} sideways, which are "
        "pressed and must not slip; see .equality_weights",
        status=Status.INFEASIBLE, problem=problem,
        certificate=np.zeros(problem.n + len(problem.U)), equality_weights=weights,
    )  # fmt: skip
