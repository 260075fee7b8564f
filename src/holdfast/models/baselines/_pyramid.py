r"""The friction pyramid as a linear complementarity problem.

Friction is a set of elements. An element has directions :math:`D_k` (rows), forces
:math:`\beta_k \ge 0` along them, and a limit on their sum: :math:`\mu f_n` plus a constant. A
contact is an element with d directions, evenly spread, and a normal force; a row of dry joint
friction is one with two directions and a constant limit. With the bilateral rows eliminated
(`holdfast.models._reduction`), unilateral rows A, whose forces act along :math:`\hat A` (A itself,
but for sliding contacts at acceleration level), and a speed :math:`\lambda` per element:

.. math::

    0 \le \begin{bmatrix} f \\ \beta \\ \lambda \end{bmatrix} \perp
    \begin{bmatrix}
        A P \hat A^T & A P D^T & 0 \\
        D P \hat A^T & D P D^T & E \\
        \mu & -E^T & 0
    \end{bmatrix}
    \begin{bmatrix} f \\ \beta \\ \lambda \end{bmatrix} +
    \begin{bmatrix} A x_1 - c \\ D x_1 \\ b \end{bmatrix} \ge 0

The rows say: what is pressed does not separate; friction acts along the directions that oppose
the motion most; and where its sum is below the limit there is no motion.

With :math:`\hat A = A` the matrix is copositive, and Lemke's method finds a solution whenever
:math:`c \le 0` and the bilateral targets are zero.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from holdfast.contact.problem import ContactProblem
from holdfast.errors import InputError
from holdfast.models._reduction import Reduced, Reduction


def polygon(directions: int) -> np.ndarray:
    """(directions, 2) unit vectors at the angles 2 pi k / directions; opposite ones exactly so."""
    angle = 2.0 * np.pi * np.arange(directions // 2) / directions
    half = np.column_stack([np.cos(angle), np.sin(angle)])
    half[np.abs(half) < 1e-15] = 0.0
    return np.vstack([half, -half])


def check_directions(directions: int) -> None:
    """Refuse a number of directions that makes no pyramid."""
    whole = isinstance(directions, int | np.integer) and not isinstance(directions, bool)
    if not whole or directions < 4 or directions % 2:
        raise InputError(
            "directions", f"is {directions!r}; expected an even number of at least 4, as every "
            "direction of a friction pyramid has an opposite"
        )  # fmt: skip


def check_friction_rows(problem: ContactProblem, mu: np.ndarray, model: str) -> None:
    """Refuse what a Coulomb model would have to drop."""
    if len(problem.R):
        raise InputError(
            "R", f"has {len(problem.R)} rows, but {model} has no torsional or rolling friction; "
            "leave R out, or use NoSlip"
        )  # fmt: skip
    if mu.any() and len(problem.S) == 0:
        raise InputError(
            "S", f"is missing, but mu is not zero; {model} needs the tangents S and, in space, T "
            "(or use Frictionless)"
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Friction:
    """Friction elements.

    Attributes:
        rows: (k, m) directions of all elements, element by element.
        spans: (k, 2) each direction along the element's own two axes.
        element: (k,) which element a direction belongs to.
        normal: (e,) row of A whose force the limit goes with; -1 for none.
        mu: (e,) coefficient of that force.
        bound: (e,) constant part of the limit.
    """

    rows: np.ndarray
    spans: np.ndarray
    element: np.ndarray
    normal: np.ndarray
    mu: np.ndarray
    bound: np.ndarray

    def forces(self, beta: np.ndarray) -> np.ndarray:
        """(e, 2) friction force of each element along its axes."""
        total = np.zeros((len(self.mu), 2))
        np.add.at(total, self.element, self.spans * beta[:, None])
        return total


def friction(
    problem: ContactProblem,
    contacts: np.ndarray,
    mu: np.ndarray,
    directions: int,
    dry_bound: np.ndarray,
) -> Friction:
    """Elements of some contacts, then of the rows with dry friction.

    Args:
        problem: with the tangents and the dry rows.
        contacts: (e,) which contacts; a planar problem (no T) has the two directions +-S.
        mu: (n,) coefficient of each contact of the problem.
        directions: of each contact.
        dry_bound: (d,) largest force of each dry row.
    """
    p = problem
    planar = len(p.T) == 0
    fan = np.array([[1.0, 0.0], [-1.0, 0.0]]) if planar else polygon(directions)
    pair = np.array([[1.0, 0.0], [-1.0, 0.0]])
    S = p.S[contacts] if len(contacts) else np.zeros((0, p.m))
    T = np.zeros_like(S) if planar else p.T[contacts]
    axes = np.stack([S, T], axis=1)
    n, d = len(contacts), len(p.D)
    return Friction(
        rows=np.vstack([
            np.einsum("ka,nam->nkm", fan, axes).reshape(n * len(fan), p.m),
            np.einsum("k,dm->dkm", pair[:, 0], p.D).reshape(2 * d, p.m),
        ]),
        spans=np.vstack([np.tile(fan, (n, 1)), np.tile(pair, (d, 1))]),
        element=np.repeat(np.arange(n + d), np.repeat([len(fan), 2], [n, d])),
        normal=np.concatenate([contacts, np.full(d, -1)]).astype(np.int64),
        mu=np.concatenate([mu[contacts], np.zeros(d)]),
        bound=np.concatenate([np.zeros(n), dry_bound]),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class PyramidLCP:
    """The complementarity problem ``w = F z + e``, z = (f, beta, lambda), and the way back.

    Attributes:
        F: matrix.
        e: vector.
        friction: the elements.
        count: number of unilateral rows, the first variables.
        reduction: bilateral rows and free motion.
    """

    F: np.ndarray
    e: np.ndarray
    friction: Friction
    count: int
    reduction: Reduction = field(repr=False)
    _rows: Reduced = field(repr=False)  # of f and beta
    _along: Reduced = field(repr=False)  # what their forces act along

    def split(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Forces of the unilateral rows, of the directions, and speeds of the elements."""
        a, k = self.count, len(self.friction.rows)
        return z[:a], z[a : a + k], z[a + k :]

    def effect(self, z: np.ndarray) -> np.ndarray:
        """(m,) whitened effect of the forces, for `Reduction.motion`."""
        return self._along.columns @ z[: self._along.columns.shape[1]]

    def response(self, z: np.ndarray) -> np.ndarray:
        """(m, m) change of the whitened motion with the free one while the same z are positive."""
        r, size = self.reduction, self.count + len(self.friction.rows)
        basic = np.flatnonzero(z > 0.0)
        forces = np.flatnonzero(basic < size)
        change = np.zeros((len(basic), r.problem.m))  # of e
        change[forces] = self._rows.left[:, basic[forces]].T
        z_change = np.linalg.lstsq(self.F[np.ix_(basic, basic)], -change, rcond=None)[0]
        free = r.eliminate(np.eye(r.problem.m))
        return free + self._along.left[:, basic[forces]] @ z_change[forces]

    def slack(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(e,) how far friction is below its limit, and that limit."""
        forces, beta, _ = self.split(z)
        fr = self.friction
        limit = fr.bound.copy()
        pressed = fr.normal >= 0
        limit[pressed] += fr.mu[pressed] * forces[fr.normal[pressed]]
        return limit - np.bincount(fr.element, beta, minlength=len(limit)), limit


def assemble(
    reduction: Reduction, A: np.ndarray, A_force: np.ndarray, c_A: np.ndarray, fr: Friction
) -> PyramidLCP:
    """Build the LCP.

    Args:
        reduction: bilateral rows and free motion.
        A: (a, m) unilateral rows.
        A_force: (a, m) rows along which their forces act.
        c_A: (a,) least values of A times the motion.
        fr: friction elements.
    """
    a, k, count = len(A), len(fr.rows), len(fr.mu)
    c = np.concatenate([c_A, np.zeros(k)])
    rows = reduction.rows(np.vstack([A, fr.rows]), c)
    along = rows if A_force is A else reduction.rows(np.vstack([A_force, fr.rows]))
    F = np.zeros((a + k + count, a + k + count))
    F[: a + k, : a + k] = rows.left.T @ along.left
    F[a + np.arange(k), a + k + fr.element] = 1.0
    F[a + k + fr.element, a + np.arange(k)] = -1.0
    with_normal = np.flatnonzero(fr.normal >= 0)
    F[a + k + with_normal, fr.normal[with_normal]] = fr.mu[with_normal]
    e = np.concatenate([rows.speeds, fr.bound])
    return PyramidLCP(F, e, fr, a, reduction, rows, along)
