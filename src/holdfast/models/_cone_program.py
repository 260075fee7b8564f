r"""Convex quadratic programs over half-lines and round cones, by an interior-point method.

.. math::

    \min \; \tfrac12 x^T H x + q^T x \quad \text{subject to} \quad
    s = G x + g \in K, \quad E x = r

K is a product of half-lines and of cones :math:`s_0 \ge |(s_1, s_2)|`. The method is the standard
one: Newton steps on the perturbed optimality conditions

.. math::

    H x + q = G^T z + E^T y, \quad s = G x + g, \quad E x = r, \quad s \circ z = \mu e

in the scaling of Nesterov and Todd, with Mehrotra's predictor and corrector. It needs a point with
s inside K; `DrumwrightShell` turns rows that have none into rows of E first.

Vectors in K are arrays (c, 3) for the cones and (l,) for the half-lines, in this order one behind
the other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

STEPS = 80  # 10 to 25 are usual
BACK = 0.99  # part of the way to the boundary that a step may go
DEBUG=False
STALL = 8  # steps without progress after which the best point is taken


class Interior(NamedTuple):
    """Where the method ended: variables, and multipliers of G and E."""

    x: np.ndarray
    z: np.ndarray
    y: np.ndarray
    steps: int
    residual: float


def solve_cone_program(
    H: np.ndarray,
    q: np.ndarray,
    G: np.ndarray,
    g: np.ndarray,
    cones: int,
    E: np.ndarray,
    r: np.ndarray,
    goal: float,
) -> Interior:
    """Solve the program; all numbers should be of the size of one.

    Args:
        H: (k, k) symmetric positive semidefinite; ``H + G' G`` must be definite.
        q: (k,) linear part.
        G: (3 cones + l, k) rows, first those of the cones.
        g: their constant part.
        cones: how many round cones.
        E: (e, k) orthonormal rows.
        r: (e,) their values.
        goal: residual to stop at.
    """
    K = _Cones(cones, len(g))
    x, s, z, y = _start(H, q, G, g, K, E, r)
    best, since = Interior(x, z, y, 0, np.inf), 0
    for step in range(STEPS):
        r_x = H @ x + q - G.T @ z - E.T @ y
        r_s, r_y = G @ x + g - s, E @ x - r
        gap = s @ z / K.degree
        residual = max(_largest(r_x), _largest(r_s), _largest(r_y), abs(gap))
        if not np.isfinite(residual):
            break
        if DEBUG: print(step,'%.1e %.1e %.1e gap %.1e'%tuple(map(_largest,(r_x,r_s,r_y,np.array([gap])))),K.inside(s),K.inside(z))
        best, since = (Interior(x, z, y, step, residual), 0) if residual < best.residual else (
            best, since + 1)  # fmt: skip
        if residual <= goal or since > STALL or min(K.inside(s), K.inside(z)) <= 0.0:
            break
        W = _Scaling(K, s, z)
        newton = _Newton(H, G, E, W, r_x, r_s, r_y)
        lam = W.inverse(s)
        square = K.product(lam, lam)
        ahead = newton.step(K.divide(lam, -square), 1.0)
        if ahead is None:
            break
        reach = min(K.reach(s, ahead.s), K.reach(z, ahead.z), 1.0)
        centre = (1.0 - reach) ** 3
        cross = K.product(W.inverse(ahead.s), W.apply(ahead.z))
        move = newton.step(K.divide(lam, centre * gap * K.unit - square - cross), 1.0 - centre)
        if move is None:
            break
        length = min(1.0, BACK * min(K.reach(s, move.s), K.reach(z, move.z)))
        x, y = x + length * move.x, y + length * move.y
        s, z = s + length * move.s, z + length * move.z
    return best


def _largest(a: np.ndarray) -> float:
    return float(np.abs(a).max(initial=0.0))


class _Cones:
    """Algebra of K: products, division, and how far it is to the boundary."""

    def __init__(self, cones: int, size: int) -> None:
        self.cones, self.size = cones, size
        self.degree = max(cones + size - 3 * cones, 1)
        self.unit = np.ones(size)
        self.split(self.unit)[0][:, 1:] = 0.0

    def split(self, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The cones (c, 3) and the half-lines of a vector: views."""
        return u[: 3 * self.cones].reshape(-1, 3), u[3 * self.cones :]

    def product(self, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Jordan product."""
        out = np.empty(self.size)
        (uc, ul), (vc, vl), (oc, ol) = self.split(u), self.split(v), self.split(out)
        oc[:, 0] = (uc * vc).sum(axis=1)
        oc[:, 1:] = uc[:, :1] * vc[:, 1:] + vc[:, :1] * uc[:, 1:]
        ol[:] = ul * vl
        return out

    def divide(self, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        """The w with product(u, w) = v."""
        out = np.empty(self.size)
        (uc, ul), (vc, vl), (oc, ol) = self.split(u), self.split(v), self.split(out)
        dot = (uc[:, 1:] * vc[:, 1:]).sum(axis=1)
        oc[:, 0] = (uc[:, 0] * vc[:, 0] - dot) / self.depth(uc)
        oc[:, 1:] = (vc[:, 1:] - oc[:, :1] * uc[:, 1:]) / uc[:, :1]
        ol[:] = vl / ul
        return out

    @staticmethod
    def depth(uc: np.ndarray) -> np.ndarray:
        """(c,) ``u_0^2 - |u_1|^2``, as a product so that no digits are lost."""
        radius = np.hypot(uc[:, 1], uc[:, 2])
        return (uc[:, 0] - radius) * (uc[:, 0] + radius)

    def reach(self, u: np.ndarray, d: np.ndarray) -> float:
        """Largest t with ``u + t d`` in K, for u inside; inf if there is no end."""
        (uc, ul), (dc, dl) = self.split(u), self.split(d)
        ends = [np.inf]
        if dl.size and dl.min() < 0.0:
            ends.append(float((-ul[dl < 0.0] / dl[dl < 0.0]).min()))
        if len(uc):
            # In coordinates where u is the unit: the smallest eigenvalue of d.
            root = np.sqrt(self.depth(uc))
            w = uc / root[:, None]
            first = (w[:, 0] * dc[:, 0] - (w[:, 1:] * dc[:, 1:]).sum(axis=1)) / root
            along = (first + dc[:, 0] / root) / (1.0 + w[:, 0])
            rest = dc[:, 1:] / root[:, None] - along[:, None] * w[:, 1:]
            least = first - np.hypot(rest[:, 0], rest[:, 1])
            if least.min() < 0.0:
                ends.append(float((-1.0 / least[least < 0.0]).min()))
        return min(ends)

    def inside(self, u: np.ndarray) -> float:
        """How deep u lies inside K, in units of the unit vector; negative outside."""
        uc, ul = self.split(u)
        depths = [uc[:, 0] - np.hypot(uc[:, 1], uc[:, 2]), ul]
        return float(min(part.min(initial=np.inf) for part in depths))


class _Scaling:
    """The symmetric W of Nesterov and Todd: ``W^-1 s = W z``."""

    def __init__(self, K: _Cones, s: np.ndarray, z: np.ndarray) -> None:
        (sc, sl), (zc, zl) = K.split(s), K.split(z)
        self.K = K
        self.lines = np.sqrt(sl / zl)
        ds, dz = np.sqrt(K.depth(sc)), np.sqrt(K.depth(zc))
        s_, z_ = sc / ds[:, None], zc / dz[:, None]
        mirror = z_ * np.array([1.0, -1.0, -1.0])
        gamma = np.sqrt((1.0 + (s_ * z_).sum(axis=1)) / 2.0)
        self.w = (s_ + mirror) / (2.0 * gamma[:, None])
        self.eta = np.sqrt(ds / dz)

    def _cones(self, u: np.ndarray, sign: float) -> np.ndarray:
        """Rows (c, 3, ...) times the hyperbolic reflection of w, or of its mirror image."""
        w0, w1 = self.w[:, 0], sign * self.w[:, 1:]
        shape = (-1, *([1] * (u.ndim - 2)))
        w0 = w0.reshape(shape)
        dot = np.einsum("ci,ci...->c...", w1, u[:, 1:])
        out = np.empty_like(u)
        out[:, 0] = w0 * u[:, 0] + dot
        factor = u[:, 0] + dot / (1.0 + w0)
        out[:, 1:] = u[:, 1:] + np.einsum("ci,c...->ci...", w1, factor)
        return out

    def apply(self, u: np.ndarray) -> np.ndarray:
        """``W u`` for a vector, or for the columns of a matrix."""
        return self._times(u, 1.0, self.eta, self.lines)

    def inverse(self, u: np.ndarray) -> np.ndarray:
        """``W^-1 u``."""
        return self._times(u, -1.0, 1.0 / self.eta, 1.0 / self.lines)

    def _times(
        self, u: np.ndarray, sign: float, eta: np.ndarray, lines: np.ndarray
    ) -> np.ndarray:
        c = 3 * self.K.cones
        out = np.empty_like(u)
        rest = (1,) * (u.ndim - 1)
        cones = self._cones(u[:c].reshape(self.K.cones, 3, *u.shape[1:]), sign)
        out[:c] = (eta.reshape(-1, 1, *rest) * cones).reshape(c, *u.shape[1:])
        out[c:] = lines.reshape(-1, *rest) * u[c:]
        return out


class _Step(NamedTuple):
    x: np.ndarray
    y: np.ndarray
    s: np.ndarray
    z: np.ndarray


class _Newton:
    """Newton's equations at one point, factorised once for predictor and corrector."""

    def __init__(
        self, H: np.ndarray, G: np.ndarray, E: np.ndarray, W: _Scaling,
        r_x: np.ndarray, r_s: np.ndarray, r_y: np.ndarray,
    ) -> None:  # fmt: skip
        from scipy.linalg import cho_factor, cho_solve

        self.W, self.G, self.E, self.residuals = W, G, E, (r_x, r_s, r_y)
        self.scaled = W.inverse(G)
        self.factor = None
        try:
            factor = cho_factor(H + self.scaled.T @ self.scaled)
            self.across = cho_solve(factor, E.T)
            self.schur = cho_factor(E @ self.across) if len(E) else None
            self.factor = factor
        except np.linalg.LinAlgError:
            pass

    def step(self, target: np.ndarray, part: float) -> _Step | None:
        """Directions that remove `part` of the residuals; None if the equations are singular."""
        from scipy.linalg import cho_solve

        if self.factor is None:
            return None
        r_x, r_s, r_y = (part * residual for residual in self.residuals)
        right = target - self.W.inverse(r_s)
        d_x = cho_solve(self.factor, self.scaled.T @ right - r_x)
        d_y = np.zeros(len(self.E))
        if self.schur is not None:
            d_y = cho_solve(self.schur, -r_y - self.E @ d_x)
            d_x = d_x + self.across @ d_y
        d_s = self.G @ d_x + r_s
        return _Step(d_x, d_y, d_s, self.W.inverse(target - self.W.inverse(d_s)))


def _start(
    H: np.ndarray, q: np.ndarray, G: np.ndarray, g: np.ndarray, K: _Cones, E: np.ndarray,
    r: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """Least-squares point, with s and z moved inside."""
    k, e = len(q), len(r)
    system = np.block([[H + G.T @ G, -E.T], [E, np.zeros((e, e))]])
    solution = np.linalg.lstsq(system, np.concatenate([-q - G.T @ g, r]), rcond=None)[0]
    x, y = solution[:k], solution[k:]
    s = G @ x + g
    z = -s
    s, z = (u + max(0.0, 1.0 - K.inside(u)) * K.unit for u in (s, z))
    return x, s, z, y
