r"""Maximum dissipation as a program over contact forces, with polygons or round cones.

Forces x (of normals and limits A, of friction) along rows B leave the motion
:math:`x_1 + P B^T x` when the bilateral rows are eliminated. The objective is
:math:`\tfrac12 x^T H x + q^T x` with :math:`H = B P B^T`, :math:`q = B x_1 - c`. Where the targets c
are zero that is the kinetic energy after the step, up to a constant. The inequalities are those of
`DrumwrightShell`: on speeds, on friction, and the bound.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from holdfast.models._cone_program import solve_cone_program
from holdfast.models._pyramid import Friction, friction
from holdfast.models._quadratic import minimise
from holdfast.models._reduction import Reduction
from holdfast.problem import ContactProblem
from holdfast.solution import ContactSolution

TOUCHING = 1e-9  # relative speed or force that counts as none in the frictionless solution
RANK = 1e-10  # singular values below this part of the largest are rounding


class Answer(NamedTuple):
    """Forces of a program."""

    normal: np.ndarray  # (n,)
    unilateral: np.ndarray  # (u,)
    friction: np.ndarray  # (e, 2) along S and T of each contact with friction
    dry: np.ndarray  # (d,)
    effect: np.ndarray  # (m,) for `Reduction.motion`
    pivots: int
    residual: float


class Program:
    """One contact problem as a program.

    Args:
        problem: contacts and joints.
        mu: (n,) Coulomb coefficients.
        extra: (n,) part of the friction limit that does not come with the normal force.
        bound: "speed", "impulse" or "none"; see `DrumwrightShell`.
        first: the solution without friction.
    """

    def __init__(
        self,
        problem: ContactProblem,
        mu: np.ndarray,
        extra: np.ndarray,
        bound: str,
        first: ContactSolution,
    ) -> None:
        p = self.problem = problem
        self.mu, self.extra, self.bound, self.first = mu, extra, bound, first
        self.contacts = np.flatnonzero((mu > 0.0) | (extra > 0.0))
        self.reduction = Reduction(p, p.free_velocity, p.c_J)
        self.A = np.vstack([p.N, p.U])
        self.c_A = np.concatenate([p.c_N, p.c_U])
        self.scale = first.scale
        speeds = np.maximum(first.separation, 0.0)
        self.kappa = float(speeds.sum() if bound == "speed" else first.normal.sum())

    def along(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Columns B and P B (whitened), H and q for forces along A and some further rows."""
        r, a = self.reduction, len(self.A)
        B = r.whitened(np.vstack([self.A, rows]))
        PB = r.eliminate(B)
        q = B.T @ r.y1
        q[:a] -= self.c_A
        return B, PB, PB.T @ PB, q

    def on_speeds(self, H: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows ``G x + g >= 0``: A times the motion, then the bound.

        Without the bound there are none: at the minimum no contact closes anyway, since its force
        would lower the energy.
        """
        a, n = len(self.A), self.problem.n
        if self.bound == "none":
            return H[:0], q[:0]
        if self.bound == "speed":
            row, constant = -H[:n].sum(axis=0), self.kappa - q[:n].sum()
        else:
            row, constant = -(np.arange(len(q)) < n).astype(float), self.kappa
        return np.vstack([H[:a], row]), np.append(q[:a], constant)


def solve_polygons(
    program: Program, directions: int, solver: str, certificate: float
) -> Answer:
    """Friction polygons whose corners are the directions, as a quadratic program."""
    p, contacts, a = program.problem, program.contacts, len(program.A)
    fr = friction(p, contacts, program.mu, directions, p.D_bound)
    fr.bound[: len(contacts)] = program.extra[contacts]
    B, _, H, q = program.along(fr.rows)
    speeds, constant = program.on_speeds(H, q)
    G = np.vstack([speeds, _limits(fr, a)])
    g = np.concatenate([constant, fr.bound])
    best = minimise(H, q, G, g, program.scale, solver, certificate)
    forces = fr.forces(best.x[a:])
    return Answer(
        normal=best.x[: p.n],
        unilateral=best.x[p.n : a],
        friction=forces[: len(contacts)],
        dry=forces[len(contacts) :, 0],
        effect=B @ best.x,
        pivots=best.pivots,
        residual=best.residual,
    )


def _limits(fr: Friction, a: int) -> np.ndarray:
    """Rows that limit the sum of each element's forces."""
    rows = np.zeros((len(fr.mu), a + len(fr.rows)))
    rows[fr.element, a + np.arange(len(fr.rows))] = -1.0
    with_normal = np.flatnonzero(fr.normal >= 0)
    rows[with_normal, fr.normal[with_normal]] = fr.mu[with_normal]
    return rows


def solve_cones(program: Program, certificate: float) -> Answer:
    """Round friction cones, as a cone program in x = (f_A, f_s, f_t, f_D)."""
    p, contacts, first = program.problem, program.contacts, program.first
    a, c, n = len(program.A), len(contacts), p.n
    B, PB, H, q = program.along(np.vstack([p.S[contacts], p.T[contacts], p.D]))
    k = len(q)
    d = np.sqrt(np.diagonal(H))
    d = np.where(d > 0.0, d, 1.0)
    unit = program.scale / d  # of x

    # Cones mu f_n + extra >= |(f_s, f_t)|, divided by the force that all three rows are scaled to.
    s, t = a + np.arange(c), a + c + np.arange(c)
    size = np.minimum(unit[s], unit[t])
    cones, offset = np.zeros((c, 3, k)), np.zeros((c, 3))
    each = np.arange(c)
    cones[each, 0, contacts] = program.mu[contacts] * unit[contacts] / size
    cones[each, 1, s], cones[each, 2, t] = unit[s] / size, unit[t] / size
    offset[:, 0] = program.extra[contacts] / size

    # Half-lines: forces that push, dry friction within its bounds, speeds.
    free = np.setdiff1d(np.arange(a), contacts[program.extra[contacts] == 0.0])
    dry = a + 2 * c + np.arange(len(p.D))
    speeds, constant = program.on_speeds(H, q)
    lines = np.vstack([np.eye(k)[free], np.eye(k)[dry], -np.eye(k)[dry], speeds * unit])
    ends = np.concatenate([np.zeros(len(free)), p.D_bound / unit[dry], p.D_bound / unit[dry],
                           constant])  # fmt: skip
    norm = np.abs(lines).max(axis=1, initial=0.0)
    norm = np.where(norm > 0.0, norm, 1.0)
    lines, ends = lines / norm[:, None], ends / norm

    x = np.zeros(k)
    x[:n], x[n:a], x[dry] = first.normal, first.unilateral, first.dry
    x /= unit
    fixed_cones, fixed_lines = _implied(cones, offset, lines, ends, x)
    E = _orthonormal(np.vstack([lines[fixed_lines], cones[fixed_cones].reshape(-1, k)]))
    kept = ~fixed_cones
    answer = solve_cone_program(
        H * unit[:, None] * unit / program.scale**2, q * unit / program.scale**2,
        np.vstack([cones[kept].reshape(-1, k), lines[~fixed_lines]]),
        np.concatenate([offset[kept].ravel(), ends[~fixed_lines]]),
        int(kept.sum()), E, E @ x, certificate * 1e-3,
    )  # fmt: skip
    x = answer.x * unit
    return Answer(
        normal=np.maximum(x[:n], 0.0),
        unilateral=np.maximum(x[n:a], 0.0),
        friction=np.column_stack([x[s], x[t]]),
        dry=x[dry],
        effect=B @ x,
        pivots=answer.steps,
        residual=answer.residual,
    )


def _implied(
    cones: np.ndarray, offset: np.ndarray, lines: np.ndarray, ends: np.ndarray, x: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Which cones and lines no feasible x is inside of, seen from the feasible point x.

    What is on its boundary at x is moved inside as far as one linear program can do at once:
    directions y with ``G y >= t``, ``0 <= t <= 1``, and the largest sum of t. As directions can be
    scaled, every t is 0 or 1. Cones are replaced by the polygons inside them.
    """
    from scipy.optimize import linprog

    at_apex = cones[:, 0] @ x + offset[:, 0] <= TOUCHING
    at_end = lines @ x + ends <= TOUCHING
    k = len(x)
    signs = np.array([[1.0, a, b] for a in (1.0, -1.0) for b in (1.0, -1.0)])
    facets = np.einsum("fi,cik->cfk", signs, cones[at_apex]).reshape(-1, k)
    rows = np.vstack([facets, lines[at_end]])
    owner = np.concatenate([np.repeat(np.arange(at_apex.sum()), 4),
                            at_apex.sum() + np.arange(at_end.sum())])  # fmt: skip
    count = int(at_apex.sum() + at_end.sum())
    inside = np.ones(count)
    if count:
        slack = np.zeros((len(rows), count))
        slack[np.arange(len(rows)), owner] = 1.0
        result = linprog(
            np.concatenate([np.zeros(k), -np.ones(count)]), np.hstack([-rows, slack]),
            np.zeros(len(rows)), bounds=[(None, None)] * k + [(0.0, 1.0)] * count,
        )  # fmt: skip
        inside = result.x[k:] if result.x is not None else np.zeros(count)
    fixed_cones, fixed_lines = at_apex.copy(), at_end.copy()
    fixed_cones[at_apex] = inside[: at_apex.sum()] < 0.5
    fixed_lines[at_end] = inside[at_apex.sum() :] < 0.5
    return fixed_cones, fixed_lines


def _orthonormal(rows: np.ndarray) -> np.ndarray:
    """An orthonormal basis of the span of some rows."""
    if len(rows) == 0:
        return rows
    _, sizes, basis = np.linalg.svd(rows, full_matrices=False)
    return basis[sizes > RANK * sizes[0]]
