"""One yardstick for every answer, ours and the peers': residuals on the original data.

All of them are pure numbers. The scale is the larger of the free and the constrained motion in
the energy norm ``|x|_M = sqrt(x' M x)``; rows are measured in the dual norm, so that units, row
scaling and mass ratios do not matter.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from problem import Array, Problem

ACCURATE = 1e-6
"""An answer said to be solved with a larger residual than this is silently wrong."""


@dataclass(frozen=True)
class Residuals:
    """How far an answer is from solving its problem.

    Attributes:
        primal: largest approach speed left, as a distance in motion space.
        dual: largest pulling impulse, as the motion it causes.
        complementarity: work done by the contacts, ``sum |z_i w_i|``, over the energy scale.
        stationarity: ``M (x - v) - N' z``, as the motion it causes.
    """

    primal: float
    dual: float
    complementarity: float
    stationarity: float

    @property
    def worst(self) -> float:
        """The largest of the four; infinite if any of them is not a number."""
        values = (self.primal, self.dual, self.complementarity, self.stationarity)
        return max(values) if np.all(np.isfinite(values)) else np.inf


@dataclass(frozen=True)
class Yardstick:
    """A problem with what is needed to judge answers to it, computed once.

    Attributes:
        problem: the problem.
        norms: lengths of its rows in the metric of ``M^-1``; 1 for zero rows.
    """

    problem: Problem
    norms: Array

    @classmethod
    def of(cls, problem: Problem) -> Yardstick:
        """Prepare to judge answers to a problem."""
        norms = problem.row_norms()
        return cls(problem, np.where(norms > 0, norms, 1.0))

    def energy_norm(self, x: Array) -> float:
        """``sqrt(x' M x)``."""
        return float(np.sqrt(max(x @ self.problem.momentum(x), 0.0)))

    def scale(self, x: Array) -> float:
        """Size of the larger motion; 1 if nothing moves at all."""
        return max(self.energy_norm(self.problem.v), self.energy_norm(x)) or 1.0

    def residuals(self, x: Array, z: Array) -> Residuals:
        """Judge the motion x and the impulses z."""
        if not (np.all(np.isfinite(x)) and np.all(np.isfinite(z))):
            return Residuals(np.inf, np.inf, np.inf, np.inf)
        w = self.problem.separation(x)
        force = self.problem.momentum(x - self.problem.v) - self.problem.impulse(z)
        scale = self.scale(x)
        return Residuals(
            primal=float(np.max(-w / self.norms, initial=0.0)) / scale,
            dual=float(np.max(-z * self.norms, initial=0.0)) / scale,
            complementarity=float(np.abs(z) @ np.abs(w)) / scale**2,
            stationarity=float(np.sqrt(abs(force @ self.problem.motion(force)))) / scale,
        )

    def distance(self, x: Array, y: Array) -> float:
        """Relative difference of two motions in the energy norm."""
        return self.energy_norm(x - y) / self.scale(x)
