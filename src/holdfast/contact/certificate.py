r"""How far a solution is from the law of each contact, from the given data alone.

Coulomb's law is the equation (De Saxcé)

.. math:: r = P_K\left(r - u - \mu |u_T| e_N\right)

with the projection P on the friction cone K, u the speed of a contact less its target and r its
impulse. What is left of it, the natural map, vanishes exactly where the contact is open, sticks or
slides as it should. It is measured in rows of unit length, which makes impulses and speeds square
roots of energies: the rows of a contact are divided by the longest of their lengths in the metric
of M^-1, and tangents whose coefficients differ are scaled so that the cone is round.

Nothing here is shared with the kernels of the solve.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from holdfast.contact.arrays import LawKind

if TYPE_CHECKING:
    from holdfast.contact.solution import ContactSolution


class Tangents(NamedTuple):
    """One row along S, T or R for each of some contacts, in unit length."""

    contact: np.ndarray
    u: np.ndarray
    r: np.ndarray
    softness: np.ndarray  # speed per impulse of viscous contacts


def law_residuals(solution: ContactSolution) -> np.ndarray:
    """(n,) residual of the law of each contact, relative to the motion (velocity level).

    Contacts that do not slip are judged by their normals here, and by `ContactSolution.slip`.
    """
    law = np.asarray(solution.law)
    length, ratios = _lengths(solution, law)
    tangents = _tangents(solution, law, length, ratios)
    u, r = solution.separation / length, solution.normal * length
    mu = np.where(law == int(LawKind.COULOMB), _largest_mu(solution), 0.0)
    speed2, pull2 = np.zeros((2, len(u)))
    for t in tangents:
        np.add.at(speed2, t.contact, t.u**2)
        np.add.at(pull2, t.contact, (t.r - t.u) ** 2)
    normal, share = _project(r - u - mu * np.sqrt(speed2), np.sqrt(pull2), mu)
    miss2 = (r - normal) ** 2
    for t in tangents:
        kind, miss = law[t.contact], t.r  # without friction: no force
        miss = np.where(kind == int(LawKind.COULOMB), t.r - share[t.contact] * (t.r - t.u), miss)
        drags = (t.u + t.softness * t.r) / np.maximum(1.0, t.softness)
        miss = np.where(kind == int(LawKind.VISCOUS), drags, miss)
        np.add.at(miss2, t.contact, np.where(kind == int(LawKind.NO_SLIP), 0.0, miss) ** 2)
    return np.sqrt(miss2) / solution.scale


def _project(x: np.ndarray, pull: np.ndarray, mu: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Project on the cones: normal parts, and by what to multiply the tangential ones."""
    inside = (x >= 0.0) & (pull <= mu * x)
    polar = mu * pull <= -x
    on_cone = (x + mu * pull) / (1.0 + mu**2)
    normal = np.where(inside, x, np.where(polar, 0.0, on_cone))
    safe = np.where(pull > 0.0, pull, 1.0)
    return normal, np.where(inside, 1.0, np.where(polar, 0.0, mu * on_cone / safe))


def _coefficients(solution: ContactSolution) -> list[tuple[str, np.ndarray, np.ndarray]]:
    """Rows S, T and R that there are: name, contact and coefficient of each."""
    p, n = solution.problem, solution.problem.n
    mu = np.zeros(n) if solution.mu is None else np.asarray(solution.mu)
    by_tangent = np.column_stack([mu, mu]) if mu.ndim == 1 else mu
    mu_R = np.zeros(len(p.R)) if p.mu_R is None else p.mu_R
    every = np.arange(n)
    given = [("S", every, by_tangent[:, 0]), ("T", every, by_tangent[:, 1]),
             ("R", p.R_contact, mu_R)]  # fmt: skip
    return [row for row in given if len(getattr(p, row[0]))]


def _largest_mu(solution: ContactSolution) -> np.ndarray:
    """(n,) the largest coefficient of each contact along S and T, or else along R."""
    most, others = np.zeros((2, solution.problem.n))
    for name, contact, mu in _coefficients(solution):
        np.maximum.at(others if name == "R" else most, contact, mu)
    return np.where(most > 0.0, most, others)


def _lengths(solution: ContactSolution, law: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
    """(n,) common length of the rows of each contact, and the ratio of each tangent."""
    longest, largest = np.array(solution.lengths("N")), _largest_mu(solution)
    ratios = []
    for name, contact, mu in _coefficients(solution):
        base, kind = largest[contact], law[contact]
        ratio = np.divide(mu, base, out=np.zeros_like(base), where=base > 0.0)
        ratio = np.where(kind == int(LawKind.COULOMB), ratio, 1.0)
        np.maximum.at(longest, contact, ratio * solution.lengths(name))
        ratios.append(ratio)
    return longest, ratios


def _tangents(
    solution: ContactSolution, law: np.ndarray, length: np.ndarray, ratios: list[np.ndarray]
) -> list[Tangents]:
    """The tangents of all contacts in unit length; where friction is zero, speeds do not matter."""
    p = solution.problem
    drag = np.zeros(p.n) if solution.mu_v is None else np.asarray(solution.mu_v) * (p.h or 0.0)
    forces = {"S": solution.tangent[:, 0], "T": solution.tangent[:, 1], "R": solution.extra}
    tangents = []
    for (name, contact, _), ratio in zip(_coefficients(solution), ratios, strict=True):
        size = length[contact]
        along = np.where(ratio > 0.0, ratio, 1.0)
        u = getattr(p, name) @ solution.motion * ratio / size
        soft = np.full(len(size), np.inf)
        dragged = (drag[contact] > 0.0) & (name != "R")
        soft[dragged] = 1.0 / (drag[contact][dragged] * size[dragged] ** 2)
        kind = law[contact]
        none = (kind == int(LawKind.VISCOUS)) & ~dragged  # carries nothing
        softness = np.where(none, 1.0, np.where(np.isfinite(soft), soft, 0.0))
        u = np.where(none, 0.0, u)
        tangents.append(Tangents(contact, u, forces[name] * size / along, softness))
    return tangents
