"""The answer of a model with Coulomb friction, which judges its friction, too."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from holdfast.contact.solution import ContactSolution, LinearMap
from holdfast.models.baselines._pyramid import PyramidLCP

INSIDE = 1e-9  # friction below this part under its limit counts as inside: such a contact sticks


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class CoulombSolution(ContactSolution):
    """Motion and forces of a contact problem with Coulomb friction.

    A contact is `sticking` where its friction is strictly below its limit, so `slip` tests
    Coulomb's law: such contacts must not slide. `spread` keeps the motion but knows no limit of
    friction: `friction_excess` of what it returns says whether the forces still respect it.

    Attributes:
        mu: (n,) coefficient of each contact.
        bound: (n,) part of the friction limit that does not come with the normal force.
        viscous: (n, 2) part of `tangent` that is viscous drag, not Coulomb friction.
        directions: number of directions of the friction pyramid; 0 for the true cone.
        was_sliding: (n,) contacts whose friction opposes the velocity before (acceleration level).
        residual: largest relative residual of the complementarity or optimality conditions.
        certificate: what that residual was allowed to be.
        regularization: Tikhonov eps that the solver needed; 0.0 for the problem as given.
        lcp: the complementarity problem, if the model is one.
        z: its answer.
    """

    mu: Any = None
    bound: np.ndarray
    viscous: np.ndarray
    was_sliding: np.ndarray
    residual: float
    certificate: float
    directions: int = 0
    regularization: float = 0.0
    lcp: PyramidLCP | None = field(default=None, repr=False)
    z: np.ndarray = field(default_factory=lambda: np.zeros(0), repr=False)

    @cached_property
    def scale(self) -> float:
        """Sigma, see `ContactSolution.scale`; dry friction of joints counts, too."""
        p = self.problem
        dry = p.solve(p.D.T @ self.dry) if len(p.D) else np.zeros(p.m)
        brake = p.factor.size(dry)
        return max(brake, super().scale)

    @property
    def friction(self) -> np.ndarray:
        """(n, 2) Coulomb friction along S and T."""
        return self.tangent - self.viscous

    @property
    def friction_limit(self) -> np.ndarray:
        """(n,) largest friction that the normal force allows, ``mu f_n`` plus `bound`."""
        return self.mu * self.normal + self.bound

    def friction_excess(self) -> float:
        """Largest impulse by which friction leaves the pyramid, or the cone.

        Relative to the larger of sigma and the limit.
        """
        round_ = np.linalg.norm(self.friction, axis=1)
        size = np.where(self.was_sliding, round_, gauge(self.friction, self._corners))
        excess = (size - self.friction_limit) * self._tangent_length
        return float((excess / self._force_scale).max(initial=0.0))

    def dissipation_gap(self) -> float:
        """Largest relative power by which friction falls short of what its limit allows.

        Coulomb friction takes as much energy as the pyramid (or the cone) can: with tangential
        motion u it is ``f_t . u = -limit max_k D_k . u``. Relative to the larger of sigma and the
        limit, times the scale of u.
        """
        before = self.problem.factor.size(self.problem.v)
        scale = np.where(self.was_sliding, before, self.scale) * self._force_scale
        motion = np.where(self.was_sliding[:, None], self._before, self.sliding)
        speed = np.linalg.norm(motion, axis=1)
        speed = np.where(self.was_sliding, speed, support(motion, self._corners))
        gap = (self.friction * motion).sum(axis=1) + self.friction_limit * speed
        return float(np.abs(gap / scale).max(initial=0.0))

    @property
    def _force_scale(self) -> np.ndarray:
        """(n,) the larger of sigma and the limit of friction."""
        return np.maximum(self.scale, self.friction_limit * self._tangent_length)

    @property
    def _before(self) -> np.ndarray:
        """(n, 2) sliding velocity before the step."""
        p = self.problem
        return np.column_stack([
            rows @ p.v if len(rows) else np.zeros(p.n) for rows in (p.S, p.T)
        ])  # fmt: skip

    @property
    def _corners(self) -> int:
        return 2 if len(self.problem.T) == 0 else self.directions

    @property
    def _tangent_length(self) -> np.ndarray:
        """(n,) the longer tangent of each contact in the metric of M^-1."""
        lengths = [self.lengths(name) for name in ("S", "T") if len(getattr(self.problem, name))]
        return np.max(lengths, axis=0) if lengths else np.ones(self.problem.n)

    def is_exact(self, tol: float = 1e-9) -> bool:
        """Whether every residual is within tol, those of friction included, and none pulls."""
        worst = max(self.friction_excess(), self.dissipation_gap())
        return worst <= tol and super().is_exact(tol)

    def linear_map(self) -> LinearMap:
        """How the motion depends on v and f while the same contacts stick and slide: exact there.

        Raises:
            AttributeError: the model is not a complementarity problem (Drumwright-Shell), or a
                loaded contact slid before (acceleration level): then the direction of friction
                turns with v, and the motion is not linear in it.
        """
        if self.lcp is None:
            raise AttributeError("linear_map needs the complementarity problem of the model")
        pressed = self.normal > 0.0
        if not (pressed & ~self.sticking & (self.mu > 0.0)).any():
            return super().linear_map()
        if (pressed & self.was_sliding).any():
            raise AttributeError("linear_map needs contacts that stick; a loaded one slides")
        p, L = self.problem, self.problem.cholesky
        inverse = np.linalg.solve(L, np.eye(p.m))  # L^-1
        G = inverse.T @ self.lcp.response(self.z)
        if self.level == "velocity":
            A_v, A_f = G @ L.T, (p.h or 0.0) * G @ inverse
        else:
            A_v, A_f = -G @ inverse @ self.drag, G @ inverse
        return LinearMap(A_v, A_f, self.motion - A_v @ p.v - A_f @ p.f)


def gauge(forces: np.ndarray, corners: int) -> np.ndarray:
    """(n,) size of tangential forces: the least sum along the directions, or the length."""
    if corners == 0:
        return np.linalg.norm(forces, axis=1)
    if corners == 2:
        return np.abs(forces[:, 0])
    angle = 2.0 * np.pi * (np.arange(corners) + 0.5) / corners
    facets = np.column_stack([np.cos(angle), np.sin(angle)]) / np.cos(np.pi / corners)
    return (forces @ facets.T).max(axis=1, initial=0.0)


def support(motion: np.ndarray, corners: int) -> np.ndarray:
    """(n,) largest speed along any of the directions, or the speed itself."""
    if corners == 0:
        return np.linalg.norm(motion, axis=1)
    if corners == 2:
        return np.abs(motion[:, 0])
    angle = 2.0 * np.pi * np.arange(corners) / corners
    return (motion @ np.vstack([np.cos(angle), np.sin(angle)])).max(axis=1, initial=0.0)
