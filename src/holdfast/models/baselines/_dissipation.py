r"""Maximum dissipation as a program over contact forces, with polygons or round cones.

Forces x of normals and limits A, of tangents S and T, and of dry joints D, together along rows B,
leave the motion :math:`x_1 + P B^T x` when the bilateral rows are eliminated. The objective is
:math:`\tfrac12 x^T H x + q^T x` with :math:`H = B P B^T`, :math:`q = B x_1 - c`. Where the targets
c are zero that is the kinetic energy after the step, up to a constant. The inequalities are those
of `DrumwrightShell`: on speeds, on friction, and the bound.

Friction along a fan of directions per contact makes this a quadratic program. The round cone is
the fan of all directions, but few of them carry force, and those are found one by one. At the
optimum over some directions let g be the gradient of the Lagrangian with respect to the friction
of a contact, and :math:`\lambda` the multiplier of its limit. A further direction d would help if
:math:`g \cdot d + \lambda < 0`, and :math:`d = -g / |g|` would help most. Where none would, the
optimum is that over the cone.

That brings the directions near, and Newton's method the rest of the way: around :math:`d` the limit
is taken as a line, with its curvature :math:`\lambda / |f_t|` across d added to H.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from holdfast.contact.problem import ContactProblem
from holdfast.contact.solution import ContactSolution
from holdfast.models._reduction import Reduction
from holdfast.models.baselines._pyramid import polygon
from holdfast.models.baselines._quadratic import minimise

START = 8  # directions that the search for those of the cone begins with
ROUNDS = 30  # of that search; 1 to 4 are usual
NEAR = 0.1  # residual from which on Newton's method is tried
NEWTON = 8  # steps of it; 3 to 5 are usual
ROUNDING = 1e-14  # of a sum, relative to its terms
SLIDES = 1e-6  # relative force and speed above which friction is on the curved part of its cone


class Fan(NamedTuple):
    """Directions of friction."""

    contact: np.ndarray  # (k,) position among the contacts with friction
    spans: np.ndarray  # (k, 2) along S and T
    share: np.ndarray  # (k,) how much a force along it takes of the limit

    def plus(self, contact: np.ndarray, spans: np.ndarray, share: float = 1.0) -> Fan:
        """With more directions."""
        return Fan(
            np.append(self.contact, contact), np.vstack([self.spans, spans]),
            np.append(self.share, np.full(len(contact), share)),
        )  # fmt: skip


class Answer(NamedTuple):
    """Forces of a program, and how optimal they are."""

    x: np.ndarray  # of A, S, T and D
    gradient: np.ndarray  # (c, 2) of the Lagrangian by friction, the friction limit left out
    multiplier: np.ndarray  # (c,) of the friction limit
    pivots: int
    residual: float


class Program:
    """One contact problem as a program.

    Args:
        problem: contacts and joints.
        mu: (n,) Coulomb coefficients.
        extra: (n,) part of the friction limit that does not come with the normal force.
        first: the solution without friction.
    """

    def __init__(
        self, problem: ContactProblem, mu: np.ndarray, extra: np.ndarray, first: ContactSolution
    ) -> None:
        p = self.problem = problem
        self.mu, self.extra, self.scale = mu, extra, first.scale
        self.contacts = np.flatnonzero((mu > 0.0) | (extra > 0.0))
        self.kappa = float(np.maximum(first.separation, 0.0).sum())
        self.reduction = Reduction(p, p.free_velocity, p.c_J)
        S = p.S[self.contacts] if len(p.S) else np.zeros((0, p.m))
        T = p.T[self.contacts] if len(p.T) else np.zeros_like(S)
        self.a, self.c, self.d = p.n + len(p.U), len(S), len(p.D)
        targets = np.concatenate([p.c_N, p.c_U, np.zeros(2 * self.c + self.d)])
        rows = self.reduction.rows(np.vstack([p.N, p.U, S, T, p.D]), targets)
        self.columns, self.H, self.q = rows.columns, rows.left.T @ rows.left, rows.speeds
        # S and T of a contact share their unit: directions mix them.
        size = np.sqrt(np.diagonal(self.H))
        self.pair(size)[:] = self.pair(size).max(axis=0, initial=0.0)
        self.unit = self.scale / np.where(size > 0.0, size, 1.0)

    def pair(self, x: np.ndarray) -> np.ndarray:
        """(2, c) what belongs to S and T: a view."""
        return x[self.a : self.a + 2 * self.c].reshape(2, -1)

    def fan(self, directions: int) -> Fan:
        """The same directions for each contact: a polygon, or +-S in the plane."""
        planar = len(self.problem.T) == 0
        spans = np.array([[1.0, 0.0], [-1.0, 0.0]]) if planar else polygon(directions)
        contact = np.repeat(np.arange(self.c), len(spans))
        return Fan(contact, np.tile(spans, (self.c, 1)), np.ones(len(contact)))

    def solve(
        self, fan: Fan, solver: str, certificate: float, bend: np.ndarray | float = 0.0
    ) -> Answer:
        """The optimum over a fan.

        Args:
            fan: directions of friction.
            solver: of the quadratic program.
            certificate: residual to reach.
            bend: (k, k) added to H.
        """
        p, a, c, k = self.problem, self.a, self.c, len(fan.contact)
        E = self._mix(fan)
        H, q = self.H + bend, self.q
        limits = np.zeros((c + self.d, E.shape[1]))
        limits[np.arange(c), self.contacts] = self.mu[self.contacts]
        limits[fan.contact, a + np.arange(k)] = -fan.share
        limits[c:, a + k :] = -np.abs(E[a + 2 * c :, a + k :])
        speeds, start = self.H[:a] @ E, q[:a]
        total = _sum(speeds[: p.n])
        spare = self.kappa - start[: p.n].sum() if total.any() else 0.0
        G = np.vstack([speeds, limits, -total])
        g = np.concatenate([start, self.extra[self.contacts], p.D_bound, [spare]])
        unit = np.abs(E).T @ self.unit / np.abs(E).sum(axis=0)
        best = minimise(E.T @ H @ E, E.T @ q, G, g, unit, self.scale, solver, certificate)
        x = E @ best.x
        held = x.copy()  # the multipliers of speeds act like forces
        held[:a] -= best.y[:a]
        held[: p.n] += best.y[-1]
        gradient = self.pair(self.H @ held + q).T
        return Answer(x, gradient, best.y[a : a + c], best.pivots, best.residual)

    def _mix(self, fan: Fan) -> np.ndarray:
        """The matrix that makes x of the variables: f_A, along directions, along +D and -D."""
        a, c, d, k = self.a, self.c, self.d, len(fan.contact)
        E = np.zeros((len(self.q), a + k + 2 * d))
        E[:a, :a] = np.eye(a)
        E[a + fan.contact, a + np.arange(k)] = fan.spans[:, 0]
        E[a + c + fan.contact, a + np.arange(k)] = fan.spans[:, 1]
        E[a + 2 * c :, a + k :] = np.hstack([np.eye(d), -np.eye(d)])
        return E

    def solve_cones(self, solver: str, certificate: float) -> Answer:
        """The optimum over round cones."""
        fan = self.fan(START)
        best = found = self._judged(self.solve(fan, solver, certificate))
        pivots = found.pivots
        for _ in range(ROUNDS):
            for _ in range(NEWTON):
                if not certificate < best.residual <= NEAR:
                    break
                directions, bend = self._bent(fan, best)
                best = self._judged(self.solve(directions, solver, certificate, bend))
                pivots += best.pivots
            if best.residual <= certificate:
                break
            fan = self._steepest(fan, found)
            best = found = self._judged(self.solve(fan, solver, certificate))
            pivots += found.pivots
        return best._replace(pivots=pivots)

    def _steepest(self, fan: Fan, found: Answer) -> Fan:
        """With the best direction of each contact, where the fan lacks it."""
        size = np.linalg.norm(found.gradient, axis=1)
        more = np.flatnonzero(size > found.multiplier)
        return fan.plus(more, -found.gradient[more] / size[more, None])

    def _bent(self, fan: Fan, found: Answer) -> tuple[Fan, np.ndarray]:
        """The fan and what to add to H for a step of Newton's method."""
        force, speed = (np.linalg.norm(u, axis=1) for u in (self.pair(found.x).T, found.gradient))
        unit = self.pair(self.unit)[0]
        slides = (force > SLIDES * unit) & (found.multiplier * unit > SLIDES * self.scale**2)
        on = np.flatnonzero(slides & (speed > 0.0))
        d = -found.gradient[on] / speed[on, None]
        across = d[:, ::-1] * [-1.0, 1.0]
        fan = self._steepest(fan, found)
        fan = Fan(*(part[~np.isin(fan.contact, on)] for part in fan)).plus(on, d)
        fan = fan.plus(on, across, 0.0).plus(on, -across, 0.0)
        bend = np.zeros_like(self.H)
        places = self.a + on[:, None] + np.array([0, self.c])
        curvature = (speed[on] / force[on])[:, None, None]
        blocks = curvature * across[:, :, None] * across[:, None, :]
        bend[places[:, :, None], places[:, None, :]] = blocks
        return fan, bend

    def _judged(self, found: Answer) -> Answer:
        """With the residual of what the cone asks for: how far a step down the gradient leads.

        Limit and friction lie in the cone, so do the multiplier and the gradient, and the two are
        orthogonal: just then the first, less the second, projected on the cone, is the first.
        """
        unit = self.pair(self.unit)[0]
        normal = found.x[self.contacts]
        limit = self.mu[self.contacts] * normal + self.extra[self.contacts]
        first = np.column_stack([limit, self.pair(found.x).T]) / unit[:, None]
        second = np.column_stack([found.multiplier, found.gradient])
        second = second * unit[:, None] / self.scale**2
        miss = np.abs(first - _on_cone(first - second)).max(axis=1, initial=0.0)
        miss = miss / np.maximum(1.0, np.linalg.norm(first[:, 1:], axis=1))
        return found._replace(residual=max(found.residual, float(miss.max(initial=0.0))))


def _sum(rows: np.ndarray) -> np.ndarray:
    """The sum of rows; nothing where they cancel to rounding, as those of two opposite faces do."""
    total = rows.sum(axis=0)
    return np.where(np.abs(total) > ROUNDING * np.abs(rows).sum(axis=0), total, 0.0)


def _on_cone(points: np.ndarray) -> np.ndarray:
    """(c, 3) points projected on the cone ``p_0 >= |(p_1, p_2)|``."""
    height, radius = points[:, 0], np.linalg.norm(points[:, 1:], axis=1)
    side = 0.5 * np.maximum(height + radius, 0.0)  # of the points beside the cone
    scale = np.where(radius > 0.0, side / np.where(radius > 0.0, radius, 1.0), 0.0)
    beside = np.column_stack([side, points[:, 1:] * scale[:, None]])
    return np.where((radius <= height)[:, None], points, beside)
