"""Contact with exact Coulomb friction, the default."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from holdfast.contact.arrays import LawKind
from holdfast.contact.options import Options
from holdfast.contact.problem import ContactProblem
from holdfast.contact.solution import ContactSolution
from holdfast.errors import InputError
from holdfast.models._choices import check_problem, check_range, tangent_coefficients
from holdfast.models._newton import solve_newton
from holdfast.models.base import ContactModel


@dataclass(frozen=True)
class Coulomb(ContactModel):
    r"""Coulomb friction on the round cone, implicit, at velocity level.

    .. math::

        M (v^+ - v) = h f + N^T f_n + S^T f_s + T^T f_t + J^T f_J, \qquad J v^+ = c_J \\
        0 \le f_n \perp N v^+ - c_N \ge 0, \qquad |f_T| \le \mu f_n, \qquad
        u_T \ne 0 \Rightarrow f_T = -\mu f_n \frac{u_T}{|u_T|}

    with the tangential velocity :math:`u_T = (S v^+, T v^+)` of each contact. There is no pyramid,
    no compliance and no regularisation: a contact that sticks does not creep, and the friction of
    one that slides is exactly opposed to its motion.

    The cone is elliptic where the problem has separate coefficients for S and T (`mu` of shape
    (n, 2)) or coefficients for rows of R (`mu_R`):

    .. math:: (f_s / \mu_s)^2 + (f_t / \mu_t)^2 + \sum (f_R / \mu_R)^2 \le f_n^2

    Where several motions satisfy the law (a sliding patch can share its load in many ways), the
    answer is one in which all pressed contacts stick if there is one, then one in which contacts
    go on doing what they did before the step, and otherwise the limit of equal, vanishing
    compliance at all contacts. It does not depend on a warm start.

    A solution that is returned is certified: `ContactSolution.law_residual`, computed from the
    given problem, is at most `Options.certificate`. Otherwise an error is raised that carries
    the problem.

    Attributes:
        mu: coefficient of friction: one number, one per contact, or (n, 2) along S and T; None
            uses that of the problem.
        options: tolerances of the contact solve.

    Example:
        A point of 1 kg lands at 3 m/s and keeps sliding:

        >>> problem = ContactProblem(M=np.eye(2), v=[2.0, -3.0], N=[[0.0, 1.0]], S=[[1.0, 0.0]])
        >>> solution = Coulomb(mu=0.5).solve(problem)
        >>> solution.velocity.round(12).tolist(), solution.normal_impulse.round(12).tolist()
        ([0.5, 0.0], [3.0])
    """

    mu: Any = None
    options: Options | None = None

    def __post_init__(self) -> None:
        if self.options is not None and not isinstance(self.options, Options):
            raise InputError(
                "options", f"is {self.options!r}; expected holdfast.contact.Options or None"
            )
        check_range("mu", self.mu)

    def solve(self, problem: ContactProblem, warm_start: Any = None) -> ContactSolution:
        """Solve one problem; see `ContactModel.solve`."""
        check_problem(problem)
        mu = tangent_coefficients(self.mu, problem)
        law = np.full(problem.n, int(LawKind.COULOMB))
        return solve_newton(problem, law, mu, None, self.options, warm_start)
