"""The acceleration-level model with Coulomb and viscous friction, which may have no solution."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from holdfast import lcp
from holdfast.contact.problem import ContactProblem
from holdfast.contact.solution import ContactSolution
from holdfast.errors import InconsistentConfigurationError, RayTerminationError
from holdfast.models._acceleration import integrated, with_rates
from holdfast.models._choices import check_options, check_problem, coefficients
from holdfast.models._reduction import Reduction
from holdfast.models._velocity import drag_matrix
from holdfast.models.base import ContactModel
from holdfast.models.baselines._coulomb import CoulombSolution
from holdfast.models.baselines._pyramid import (
    PyramidLCP,
    assemble,
    check_directions,
    check_friction_rows,
    friction,
)
from holdfast.models.baselines._time_stepping import Found, coulomb_solution, solve_lcp
from holdfast.models.viscous import dry_forces

CERTIFIED = 1e-9  # a Farkas vector must contradict the rows by this much, with entries up to one
SMALL = 10  # with up to so many variables all sets of positive ones are tried
_TINY = float(np.finfo(np.float64).tiny)


class Sliding(NamedTuple):
    """Contacts that slide, and where to."""

    now: np.ndarray  # (n,) bool
    direction: np.ndarray  # (n, 2) unit vectors along S and T; zero for the others


@dataclass(frozen=True)
class CoulombAcceleration(ContactModel):
    r"""Coulomb and viscous friction by forces, not impulses (the paper's section on this level).

    .. math::

        M a &= f + J^T f_J + N^T f_n + D_k^T \beta - Q^T \mu f_n - (S^T \mu_v S + T^T \mu_v T) v \\
        J a &= -\dot J v, \qquad 0 \le f_n \perp N a + \dot N v \ge 0

    The friction of a contact that slides is :math:`\mu f_n` against its sliding velocity; Q holds
    the rows along those velocities. A contact that does not slide sticks or begins to slide
    within a friction pyramid, with the conditions of `StewartTrinkle` on accelerations.

    Listed contacts are assumed to be sustained: ``N v = 0``. Sticking contacts are held by
    ``S a = T a = 0``, so S and T are assumed not to turn (those of a contact with a plane do not).

    With sliding contacts the matrix of this problem is in general neither symmetric nor
    semidefinite, and there may be no solution, as for a rod that is pushed tip first over a rough
    floor. This raises an `InconsistentConfigurationError`; models at velocity level have a solution
    there.
    There may also be several. Where the contact would separate by itself, the solution without
    force is returned.

    Attributes:
        mu: Coulomb coefficient, one number or one per contact; None uses that of the problem.
        mu_v: viscous coefficient [N s/m], likewise.
        directions: number of directions of the friction pyramid of contacts that do not slide.
        sliding_speed: a contact slides if its tangential speed is above this part of the largest
            that the motion could give it: its row's length times the larger of the velocity and
            one step of free acceleration, in the metric of M.
        options: tolerances of the solver.
    """

    mu: Any = None
    mu_v: Any = 0.0
    directions: int = 4
    sliding_speed: float = 1e-9
    options: lcp.Options | None = None

    def __post_init__(self) -> None:
        check_directions(self.directions)
        check_options(self.options)

    def sliding(self, problem: ContactProblem) -> Sliding:
        """Which contacts slide before the step, and where to."""
        check_problem(problem)
        p = problem
        velocity, length = np.zeros((p.n, 2)), np.zeros(p.n)
        for k, rows in enumerate((p.S, p.T)):
            if len(rows):
                velocity[:, k] = rows @ p.v
                squares = rows * p.solve(rows.T).T
                length = np.maximum(length, np.sqrt(squares.sum(axis=1)))
        sizes = [p.factor.size(v) for v in (p.v, p.free_velocity - p.v)]
        speed = np.linalg.norm(velocity, axis=1)
        now = speed > self.sliding_speed * length * max(sizes)
        direction = velocity / np.where(now, speed, 1.0)[:, None]
        return Sliding(now, np.where(now[:, None], direction, 0.0))

    def build(self, problem: ContactProblem) -> PyramidLCP:
        """The complementarity problem, to look at or to hand to another solver."""
        check_problem(problem)
        p = problem
        mu, mu_v = coefficients("mu", self.mu, p), coefficients("mu_v", self.mu_v, p)
        check_friction_rows(p, np.maximum(mu, mu_v), type(self).__name__)
        sliding = self.sliding(p)
        Q = np.zeros((p.n, p.m))
        for k, rows in enumerate((p.S, p.T)):
            if len(rows):
                Q += sliding.direction[:, k : k + 1] * rows
        dry, bound = dry_forces(p)
        fr = friction(p, np.flatnonzero((mu > 0.0) & ~sliding.now), mu, self.directions, bound)
        free = p.solve(p.f - drag_matrix(p, mu_v) @ p.v + p.D.T @ dry)
        A = np.vstack([p.N, p.U])
        A_force = np.vstack([p.N - mu[:, None] * Q, p.U]) if (sliding.now & (mu > 0)).any() else A
        c_A = -np.concatenate([p.Ndot_v, p.Udot_v])
        return assemble(Reduction(p, free, -p.Jdot_v), A, A_force, c_A, fr)

    def advance(self, problem: ContactProblem, warm_start: Any = None) -> ContactSolution:
        """Solve one step; see `ContactModel.advance`."""
        check_problem(problem)
        return integrated(self.solve(with_rates(problem), warm_start), problem)

    def solve(self, problem: ContactProblem, warm_start: Any = None) -> CoulombSolution:
        """Solve one problem; see `ContactModel.solve`. Lemke's method has no warm start.

        Raises:
            InconsistentConfigurationError: there are no such forces.
        """
        p = problem
        built = self.build(p)
        mu, mu_v = coefficients("mu", self.mu, p), coefficients("mu_v", self.mu_v, p)
        sliding = self.sliding(p)
        options = replace(self.options or lcp.Options(), regularization=None)
        on_ray = partial(_after_ray, built, p, sliding, options.certificate)
        found = solve_lcp(built, p, options, "tight", on_ray)
        normal = built.split(found.z)[0][: p.n]
        viscous = np.zeros((p.n, 2))
        for k, rows in enumerate((p.S, p.T)):
            if len(rows):
                viscous[:, k] = -mu_v * (rows @ p.v)
        return coulomb_solution(
            built, found, "acceleration", mu, self.directions,
            tangent=viscous - (mu * normal)[:, None] * sliding.direction, viscous=viscous,
            was_sliding=sliding.now, drag=drag_matrix(p, mu_v), dry=dry_forces(p)[0],
        )  # fmt: skip


def _after_ray(
    built: PyramidLCP,
    problem: ContactProblem,
    sliding: Sliding,
    certificate: float,
    error: RayTerminationError,
) -> Found:
    """Another answer, for Lemke's method is not sure to find one here; else what it means."""
    farkas = _farkas(built)
    small = len(built.e) <= SMALL
    if farkas is not None:
        proof = "not even its inequalities can be satisfied, see the certificate"
    elif small:
        z, residual = _try_all(built.F, built.e)
        if residual <= certificate:
            return Found(z, 0, residual, certificate, 0.0)
        proof = "no set of loaded contacts gives any"
    else:
        proof = "Lemke's method found none (which is not quite a proof)"
    contacts = np.flatnonzero(sliding.now & (np.diagonal(built.F)[: problem.n] <= 0.0))
    which = ", ".join(map(str, contacts)) if contacts.size else "none"
    raise InconsistentConfigurationError(
        "inconsistent configuration (Painlevé): no finite forces keep the contacts from "
        f"accelerating into each other with Coulomb friction at {int(sliding.now.sum())} sliding "
        f"contact(s); {proof}. Contacts that their own friction pulls in more than their normal "
        f"force pushes out: {which}. Use a model at velocity level (StewartTrinkle, NoSlip), which "
        "allows for impulses, or lower mu",
        status=error.status, problem=problem, contacts=contacts,
        proven=farkas is not None or small, certificate=farkas,
    ) from error  # fmt: skip


def _farkas(built: PyramidLCP) -> np.ndarray | None:
    """A vector u >= 0 with F' u <= 0 and e' u < 0, if there is one."""
    from scipy.optimize import linprog

    size = np.abs(built.F).max(axis=1, initial=0.0)
    row = 1.0 / np.where(size > 0.0, size, 1.0)
    F, e = built.F * row[:, None], built.e * row
    e = e / (np.abs(e).max(initial=0.0) or 1.0)
    result = linprog(e, F.T, np.zeros(len(e)), bounds=(0.0, 1.0))
    if result.x is None or not result.fun < -CERTIFIED:
        return None
    return result.x * row


def _try_all(F: np.ndarray, e: np.ndarray) -> tuple[np.ndarray, float]:
    """The best answer to a small LCP over all sets of positive z, and its relative residual."""
    n = len(e)
    best, least = np.zeros(n), np.inf
    for chosen in product((False, True), repeat=n):
        on = np.array(chosen, dtype=bool)
        z = np.zeros(n)
        z[on] = np.linalg.lstsq(F[np.ix_(on, on)], -e[on], rcond=None)[0]
        z = np.maximum(z, 0.0)
        w, size = F @ z + e, np.abs(F) @ z + np.abs(e)
        miss = np.where(on, np.abs(w), np.maximum(-w, 0.0)) / np.maximum(size, _TINY)
        residual = float(miss.max(initial=0.0))
        if residual < least:
            best, least = z, residual
    return best, least
