r"""Maximum dissipation as a quadratic program over contact forces, and the round friction cone.

Forces :math:`x \ge 0` (of normals, limits, friction along directions B) leave the motion
:math:`x_1 + P B^T x` when the bilateral rows are eliminated. The objective is
:math:`\tfrac12 x^T H x + q^T x` with :math:`H = B P B^T`, :math:`q = B x_1 - c`. Where the targets c
are zero that is the kinetic energy after the step, up to a constant.

The round cone :math:`|f_t| \le l` is kept by successive programs. Each has a polygon of 8 sides
around the cone, one more side at right angles to the friction force u found before, and across u
the cone's curvature :math:`|g| / l`, where g is the gradient that friction opposes. So friction may
turn in the next program at the price that it would have on the circle, and the directions settle
as Newton's method does. A polygon that is only refined halves its error each time, and its sides
become parallel to rounding long before that.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from holdfast.lcp import Status
from holdfast.models._pyramid import Friction, friction, polygon
from holdfast.models._quadratic import Optimum, minimise
from holdfast.models._reduction import Reduction
from holdfast.problem import ContactProblem
from holdfast.solution import ContactSolution

OUTLINE = 8  # sides of the polygon around the cone
NEAR=1e-6
MAX_ROUNDS = 40  # of programs; about 5 are usual
TINY = 1e-12  # forces below this part of the largest have no direction


class Sides(NamedTuple):
    """Friction forces along directions, and the sides of the polygons that they are kept in."""

    friction: Friction
    rows: np.ndarray  # (s, k) over the forces; not above the limit of their element
    element: np.ndarray  # (s,)
    curvature: np.ndarray  # (k, k)


def corner_sides(fr: Friction) -> Sides:
    """Polygons whose corners are the directions: the sum of an element's forces is limited."""
    e, k = len(fr.mu), len(fr.rows)
    rows = np.zeros((e, k))
    rows[fr.element, np.arange(k)] = 1.0
    return Sides(fr, rows, np.arange(e), np.zeros((k, k)))


class Answer(NamedTuple):
    """Solution of one program."""

    optimum: Optimum
    normal: np.ndarray  # (n,)
    unilateral: np.ndarray  # (u,)
    forces: np.ndarray  # (e, 2) friction of each element
    limit: np.ndarray  # (e,) of friction
    opposed: np.ndarray  # (m,) whitened motion that friction opposes
    effect: np.ndarray  # (m,) for `Reduction.motion`


class Program:
    """What the programs of one contact problem have in common.

    Args:
        problem: contacts and joints.
        bound: "speed", "impulse" or "none"; see `DrumwrightShell`.
        first: the solution without friction.
    """

    def __init__(self, problem: ContactProblem, bound: str, first: ContactSolution) -> None:
        p = self.problem = problem
        self.bound = bound
        self.first=first
        self.reduction = Reduction(p, p.free_velocity, p.c_J)
        self.A = np.vstack([p.N, p.U])
        self.c_A = np.concatenate([p.c_N, p.c_U])
        self.scale = first.scale
        speeds = np.maximum(first.separation, 0.0)
        self.kappa = float(speeds.sum() if bound == "speed" else first.normal.sum())

    def solve(
        self, sides: Sides, solver: str, certificate: float, near: np.ndarray | None = None
    ) -> Answer:
        """Minimise over the given polygons; with `near`, stay near those forces."""
        fr, r = sides.friction, self.reduction
        a, n = len(self.A), self.problem.n
        B = r.whitened(np.vstack([self.A, fr.rows]))
        PB = r.eliminate(B)
        H = PB.T @ PB
        q = B.T @ r.y1
        q[:a] -= self.c_A
        G, g = self._inequalities(H, q, sides)
        H[a:, a:] += sides.curvature
        if near is not None and NEAR>0:
            weight = NEAR * np.diagonal(H)
            H, q = H + np.diag(weight), q - weight * near
        best = minimise(H, q, G, g, self.scale, solver, certificate, near is not None and NEAR>0)
        forces, beta = best.x[:a], best.x[a:]
        limit = fr.bound + fr.mu * np.where(fr.normal >= 0, forces[fr.normal], 0.0)
        # The gradient is along the motion after the step and what the rows on speeds add to it.
        opposed = r.y1 + PB @ best.x - PB[:, :a] @ best.y[:a]
        if self.bound == "speed":
            opposed += PB[:, :n].sum(axis=1) * best.y[-1]
        return Answer(best, forces[:n], forces[n:], fr.forces(beta), limit, opposed, B @ best.x)

    def _inequalities(
        self, H: np.ndarray, q: np.ndarray, sides: Sides
    ) -> tuple[np.ndarray, np.ndarray]:
        """Rows on speeds, sides of the polygons, and the bound."""
        fr, a, n = sides.friction, len(self.A), self.problem.n
        on_friction = np.zeros((len(sides.rows), len(q)))
        on_friction[:, a:] = -sides.rows
        with_normal = np.flatnonzero(fr.normal[sides.element] >= 0)
        element = sides.element[with_normal]
        on_friction[with_normal, fr.normal[element]] = fr.mu[element]
        G, g = [H[:a], on_friction], [q[:a], fr.bound[sides.element]]
        if self.bound == "speed":
            G.append(-H[:n].sum(axis=0, keepdims=True))
            g.append([self.kappa - q[:n].sum()])
        elif self.bound == "impulse":
            G.append(-(np.arange(len(q)) < n)[None].astype(float))
            g.append([self.kappa])
        return np.vstack(G), np.concatenate(g)


def solve_round(
    program: Program, contacts: np.ndarray, mu: np.ndarray, extra: np.ndarray, solver: str,
    certificate: float,
) -> Answer:  # fmt: skip
    """Programs with the round cone for contacts; dry rows keep their two directions."""
    p = program.problem
    fr = friction(p, contacts, mu, 4, p.D_bound)
    fr.bound[: len(contacts)] = extra[contacts]
    outline = _outline(fr, len(contacts))
    tangents = [program.reduction.whitened(rows[contacts]).T for rows in (p.S, p.T)]
    sides, pivots = outline, 0
    near=np.zeros(len(program.A)+len(fr.rows))
    near[:p.n]=program.first.normal; near[p.n:len(program.A)]=program.first.unilateral
    for _ in range(MAX_ROUNDS):
        answer = program.solve(sides, solver, certificate, near)
        pivots += answer.optimum.pivots
        gradient = np.column_stack([rows @ answer.opposed for rows in tangents])
        residual = max(answer.optimum.residual, _miss(answer, gradient, program.scale))
        if near is not None: residual=max(residual, NEAR*np.abs((answer.optimum.x-near)).max()/program.scale)
        near=answer.optimum.x
        if not np.isfinite(residual) or residual <= certificate:
            break
        sides = _turned(outline, answer, gradient, program.scale)
    status = Status.SOLVED if residual <= certificate else Status.UNCERTIFIED
    optimum = answer.optimum._replace(pivots=pivots, residual=residual, status=status)
    return answer._replace(optimum=optimum)


def _outline(fr: Friction, count: int) -> Sides:
    """Regular polygons around the cones of the first `count` elements."""
    plain = corner_sides(fr)
    around = polygon(OUTLINE)
    rows = np.zeros((count, OUTLINE, len(fr.rows)))
    for i in range(count):
        own = fr.element == i
        rows[i][:, own] = around @ fr.spans[own].T
    element = np.repeat(np.arange(count), OUTLINE)
    return Sides(
        fr, np.vstack([rows.reshape(-1, len(fr.rows)), plain.rows[count:]]),
        np.concatenate([element, plain.element[count:]]), plain.curvature,
    )  # fmt: skip


def _turned(sides: Sides, answer: Answer, gradient: np.ndarray, scale: float) -> Sides:
    """The outline with a side across each friction force found, and the cone's curvature."""
    fr = sides.friction
    curvature = np.zeros_like(sides.curvature)
    rows, element = [sides.rows], [sides.element]
    floor = 1e-9 * answer.limit.max(initial=0.0)
    for i, g in enumerate(gradient):
        own = np.flatnonzero(fr.element == i)
        size, speed = np.linalg.norm(answer.forces[i]), np.linalg.norm(g)
        if answer.limit[i] > floor and size > 1e-3 * answer.limit[i]:
            u = answer.forces[i] / size
            across = fr.spans[own] @ np.array([-u[1], u[0]])
            weight = speed / answer.limit[i]
            curvature[np.ix_(own, own)] = weight * np.outer(across, across)
        elif speed > 1e-9 * scale:
            u = -g / speed
        else:
            continue
        side = np.zeros(len(fr.rows))
        side[own] = fr.spans[own] @ u
        rows.append(side[None])
        element.append(np.array([i]))
    return Sides(fr, np.vstack(rows), np.concatenate(element), curvature)


def _miss(answer: Answer, gradient: np.ndarray, scale: float) -> float:
    """How far friction is from opposing its gradient at the limit of the round cone, relatively."""
    f, limit = answer.forces[: len(gradient)], answer.limit[: len(gradient)]
    speed = np.linalg.norm(gradient, axis=1)
    turn = np.linalg.norm(f * speed[:, None] + limit[:, None] * gradient, axis=1) / scale**2
    excess = (np.linalg.norm(f, axis=1) - limit) / (limit.max(initial=0.0) or 1.0)
    return float(max(turn.max(initial=0.0), excess.max(initial=0.0)))
