r"""One judge for every answer to a problem with Coulomb friction, in plain NumPy.

Impulses r in, one number out. With ``M = L L'`` and ``y = L' v`` the motion is rebuilt from the
impulses, :math:`y = y_0 + \sum G_i^T r_i`, rows of a contact are divided by the length of the
longest of them, and each contact is judged by the natural map of De Saxcé's law,

.. math::
    F_i = r_i - P_K (r_i - u_i - \mu |u_T| e_N), \qquad u_i = G_i y - c_i

K the friction cone. Limits are cones without tangents, dry friction is an interval, bilateral
rows shall move as their targets say. The residual is the largest of all, relative to
:math:`\sigma = \max(|y_0|, |y|, |c|)`: units drop out. It shares no code with any solver.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

CERTIFIED = 1e-10
NO_ROW = 1e-12  # rows shorter than this part of the longest do nothing


@dataclass(frozen=True)
class Impulses:
    """What an answer consists of, along the rows as given [N s].

    Attributes:
        normal: (n,) along N.
        tangent: (n, 2) along S and T.
        extra: (r,) along R.
        unilateral: (u,) along U.
        dry: (d,) along D.
        bilateral: (j,) along J; None where a solver eliminates these rows: then the best there are.
        velocity: (m,) that the solver says follows, if it does; then it is judged, too.
    """

    normal: Array
    tangent: Array
    extra: Array
    unilateral: Array
    dry: Array
    bilateral: Array | None = None
    velocity: Array | None = None

    @classmethod
    def of(cls, solution: Any) -> Impulses:
        """Those of a `ContactSolution`."""
        s = solution
        return cls(s.normal, s.tangent, s.extra, s.unilateral, s.dry, s.bilateral, s.motion)


class Judge:
    """A problem in coordinates in which its inertia is the identity.

    The cone of a contact is ``|(r_S / mu_S, r_T / mu_T, r_R / mu_R)| <= r_N``. Tangents whose
    coefficients differ are scaled by them, relative to the larger one of S and T, which makes the
    cone round; a tangent with coefficient zero carries nothing.
    """

    def __init__(self, problem: Any) -> None:
        p = self.problem = problem
        self.blocks = np.linalg.cholesky(p.M if p.M.ndim == 3 else p.M[None])
        self.y0 = self._transposed(p.v)
        if p.h is not None:
            self.y0 = self.y0 + p.h * self.whiten(p.f[None])[0]
        none = np.zeros((p.n, p.m))
        S, T = (rows if len(rows) else none for rows in (p.S, p.T))
        self.tangents, c = np.stack([self.whiten(S), self.whiten(T)], axis=1), p.c_N
        self.N, self.R, self.U, self.D, self.J = map(self.whiten, (p.N, p.R, p.U, p.D, p.J))
        self._friction()
        squares = np.column_stack([_squares(self.N), (self.tangents**2).sum(axis=2)])
        squares[:, 1:] *= self.ratio**2
        longest = squares.max(axis=1, initial=0.0)
        np.maximum.at(longest, p.R_contact, _squares(self.R) * self.ratio_R**2)
        self.length = _lengths(longest)
        self.others = {name: _lengths(_squares(getattr(self, name))) for name in "UDJ"}
        targets = (c / self.length, p.c_U / self.others["U"], p.c_J / self.others["J"])
        self.target = max(np.abs(each).max(initial=0.0) for each in targets)

    def _friction(self) -> None:
        """One coefficient for each contact, and those of its tangents relative to it."""
        p = self.problem
        given = np.zeros(p.n) if p.mu is None else p.mu
        each = given if given.ndim == 2 else np.column_stack([given, given])
        rolling = np.zeros(len(p.R)) if p.mu_R is None else p.mu_R
        most = np.zeros(p.n)
        np.maximum.at(most, p.R_contact, rolling)
        sliding = each.max(axis=1, initial=0.0)
        self.mu = np.where(sliding > 0.0, sliding, most)
        divisor = np.where(self.mu > 0.0, self.mu, 1.0)
        self.ratio, self.ratio_R = each / divisor[:, None], rolling / divisor[p.R_contact]

    def whiten(self, rows: Array) -> Array:
        """``rows L^-T``."""
        count, s, _ = self.blocks.shape
        if not rows.size:
            return np.zeros(rows.shape)
        parts = np.ascontiguousarray(rows.reshape(len(rows), count, s).transpose(1, 2, 0))
        return np.linalg.solve(self.blocks, parts).transpose(2, 0, 1).reshape(rows.shape)

    def _transposed(self, v: Array) -> Array:
        """``L' v``."""
        return np.einsum("bji,bj->bi", self.blocks, v.reshape(self.blocks.shape[:2])).ravel()

    def motion(self, r: Impulses) -> Array:
        """y after the impulses."""
        y = self.y0 + self.N.T @ r.normal + np.einsum("nkm,nk->m", self.tangents, r.tangent)
        y = y + self.R.T @ r.extra + self.U.T @ r.unilateral + self.D.T @ r.dry
        if len(self.J) == 0:
            return y
        if r.bilateral is not None:
            return y + self.J.T @ r.bilateral
        miss = self.problem.c_J - self.J @ y
        return y + np.linalg.lstsq(self.J, miss, rcond=NO_ROW)[0]

    def residual(self, r: Impulses) -> float:
        """The largest residual; inf where an answer is not finite."""
        arrays = [a for a in vars(r).values() if a is not None]
        if not all(np.isfinite(a).all() for a in arrays):
            return np.inf
        y = self.motion(r)
        sigma = max(np.linalg.norm(self.y0), np.linalg.norm(y), self.target) or 1.0
        p, d = self.problem, self.others
        parts = [self._contacts(r, y)]
        u, force = (self.U @ y - p.c_U) / d["U"], r.unilateral * d["U"]
        parts.append(force - np.maximum(force - u, 0.0))
        u, force, most = self.D @ y / d["D"], r.dry * d["D"], p.D_bound * d["D"]
        parts.append(force - np.clip(force - u, -most, most))
        parts.append(self._bilateral(r, y))
        if r.velocity is not None:
            parts.append(np.array([np.linalg.norm(self._transposed(r.velocity) - y)]))
        return float(max(np.abs(part).max(initial=0.0) for part in parts) / sigma)

    def _bilateral(self, r: Impulses, y: Array) -> Array:
        """(j,) miss of ``J v + R p = c``, R the compliance; as an impulse where R is large."""
        p, d = self.problem, self.others["J"]
        soft = p.compliance_J / d**2
        pull = 0.0 if r.bilateral is None else soft * (r.bilateral * d)
        return ((self.J @ y - p.c_J) / d + pull) / np.maximum(1.0, soft)

    def _contacts(self, r: Impulses, y: Array) -> Array:
        """(n,) size of the natural map of each contact."""
        p, d = self.problem, self.length
        contact, width = p.R_contact, 3
        order = np.argsort(contact, kind="stable")
        place = np.empty(len(contact), dtype=int)  # of each row of R among those of its contact
        place[order] = np.arange(len(order)) - np.searchsorted(contact[order], contact[order])
        if len(contact):
            width += int(place.max()) + 1
        u, force, ratio = np.zeros((3, p.n, width))
        u[:, 0], u[:, 1:3] = self.N @ y - p.c_N, self.tangents @ y
        force[:, 0], force[:, 1:3] = r.normal, r.tangent
        u[contact, 3 + place], force[contact, 3 + place] = self.R @ y, r.extra
        ratio[:, 0], ratio[:, 1:3], ratio[contact, 3 + place] = 1.0, self.ratio, self.ratio_R
        nothing = np.where(ratio > 0.0, 0.0, force) * d[:, None]
        force = np.where(ratio > 0.0, force / np.where(ratio > 0.0, ratio, 1.0), 0.0) * d[:, None]
        u = ratio * u / d[:, None]
        x = force - u
        x[:, 0] -= self.mu * np.linalg.norm(u[:, 1:], axis=1)
        return np.linalg.norm(force - project(x, self.mu) + nothing, axis=1)


def project(x: Array, mu: Array) -> Array:
    """Nearest points of the cones |x_T| <= mu x_N, row by row."""
    tangent = np.linalg.norm(x[:, 1:], axis=1)
    inside = (tangent <= mu * x[:, 0]) & (x[:, 0] >= 0.0)
    polar = (mu * tangent <= -x[:, 0]) & ~inside
    height = (x[:, 0] + mu * tangent) / (1.0 + mu * mu)
    out = np.empty_like(x)
    out[:, 0] = height
    out[:, 1:] = x[:, 1:] * (mu * height / np.where(tangent > 0.0, tangent, 1.0))[:, None]
    out[inside] = x[inside]
    out[polar] = 0.0
    return out


def _squares(rows: Array) -> Array:
    return (rows**2).sum(axis=1)


def _lengths(squares: Array) -> Array:
    """Lengths of rows; those that do nothing get that of the longest."""
    length = np.sqrt(squares)
    longest = length.max(initial=0.0)
    return np.where(length > NO_ROW * longest, length, longest or 1.0)
