"""The time-stepping model of Stewart and Trinkle: Coulomb friction on a pyramid."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.models.baselines._time_stepping import TimeStepping


@dataclass(frozen=True)
class StewartTrinkle(TimeStepping):
    r"""Coulomb friction with a friction pyramid, implicit, at velocity level.

    .. math::

        M (v^+ - v) &= h f + N^T f_n + D^T \beta + J^T f_J, \qquad J v^+ = c_J \\
        0 \le f_n &\perp N v^+ - c_N \ge 0 \\
        0 \le \beta &\perp D v^+ + E \lambda \ge 0 \\
        0 \le \lambda &\perp \mu f_n - E^T \beta \ge 0

    with directions :math:`D_k = \cos(2 \pi k / d) S + \sin(2 \pi k / d) T` for each contact
    (Stewart and Trinkle 1996). Eliminating the bilateral rows leaves an LCP in
    :math:`(f_n, \beta, \lambda)`, with 6 variables per contact for d = 4.

    The target c_N holds the gap of a contact that is still open, linearised at position level:
    ``N v+ >= -gap / h``. With such targets (none above zero, and c_J = 0) the LCP always has a
    solution, and Lemke's method finds one. With targets above zero, which push bodies apart,
    there may be none. Rows of U are unilateral without friction, rows of D have dry friction.

    Where contacts are redundant, neither the forces nor, unlike with `NoSlip`, the motion need be
    unique: friction follows the normal force, and the corners of a face can share that in many
    ways. The solver returns one of them, and a box may turn about a corner.

    The pyramid is not the cone: friction along the directions is right, but between them it pulls
    sideways by up to pi / d.

    Attributes:
        mu: Coulomb coefficient, one number or one per contact; None uses that of the problem.
        directions: number of directions of the pyramid, even and at least 4. Without T (a planar
            problem) there are the two directions +-S instead.
        solver: "lemke".
        regularization: Tikhonov schedule (first, last) of the paper: after a failure solve
            ``F + eps I`` with eps doubling. Answers are certified with F. None: not tried.
        tolerance: "tight", or "paper": the loose tolerances of the paper's own simulator (1e-5 for
            zero, 1e-4 for a pivot), with which answers are certified to 1e-4 only. The residual
            that was reached is `CoulombSolution.residual`.
        options: further tolerances of the solver.
    """
