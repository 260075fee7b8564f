"""Forces that balance the motion, checked before anybody sees them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from holdfast.solution import ContactSolution

BALANCED = 1e-9  # relative momentum residual of forces that may be published


def balanced(solution: ContactSolution) -> ContactSolution | None:
    """The solution, with friction and joint forces found anew where they do not add up.

    The motion is certified by the solver. How forces are shared out among redundant rows is
    decided afterwards, and where friction rows of torsion depend on each other that can go
    wrong. Then the normal forces are kept and the others are those of least squares; None if
    those do not add up either.
    """
    if solution.momentum_residual() <= BALANCED:
        return solution
    p, held = solution.problem, np.flatnonzero(solution.sticking)
    turning = np.flatnonzero(solution.sticking[p.R_contact])
    parts = [p.S[held], p.T[held], p.R[turning], p.J]
    made = p.N.T @ solution.normal + p.U.T @ solution.unilateral + p.D.T @ solution.dry
    drag = solution.tangent.copy()
    drag[held] = 0.0
    made = made + p.S.T @ drag[:, 0] + p.T.T @ drag[:, 1]
    rest = p.inertia @ solution.velocity - p.impulse - made
    L = p.cholesky
    found = np.linalg.lstsq(
        np.linalg.solve(L, np.vstack(parts).T), np.linalg.solve(L, rest), rcond=1e-12
    )[0]
    f_S, f_T, f_R, f_J = np.split(found, np.cumsum([len(part) for part in parts])[:-1])
    tangent, extra = drag, np.zeros(len(p.R))
    tangent[held, 0], tangent[held, 1], extra[turning] = f_S, f_T, f_R
    mended = replace(solution, tangent=tangent, extra=extra, bilateral=f_J)
    return mended if mended.momentum_residual() <= BALANCED else None
