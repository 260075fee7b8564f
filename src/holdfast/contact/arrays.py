"""A contact problem as the kernels see it: inertia by tree, constraints with a law each.

Velocities are those of the coordinates, impulses act along the rows as given. What the solve works
on, whitened and scaled, is `holdfast.contact.system.System`.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from holdfast._jit import fast_kernel


class LawKind(IntEnum):
    """What a constraint does; u is the speed along its rows less its target, r the impulse."""

    FRICTIONLESS = 0  # first row: 0 <= r, u >= 0, one of them zero; further rows carry nothing
    COULOMB = 1  # first row as above, others within the friction cone
    NO_SLIP = 2  # first row as above; where it presses, u = 0 along the others
    VISCOUS = 3  # first row as above; r = -u / compliance along the others
    DRY = 4  # |r| <= bound, and r = -bound sign(u) where it moves
    RIGID = 5  # u = 0
    COMPLIANT = 6  # r = -u / compliance


class ContactState(IntEnum):
    """What a constraint was found to do."""

    FROM_MOTION = -3  # as the motion before suggests, see `holdfast.contact.prediction`
    LEFT_OUT = -2  # not part of the problem: it carries nothing, whatever the motion
    UNKNOWN = -1
    OPEN = 0
    STICK = 1
    SLIDE = 2


class SolveStatus(IntEnum):
    """How a solve ended."""

    SOLVED = 0  # certified
    APPROXIMATE = 1  # the law holds within `Options.approximate`, not within the certificate
    FAILED = 2  # it does not
    NOT_DEFINITE = 3  # an inertia is not positive definite
    NOT_FINITE = 4  # NaN or infinity in what was given
    MORE_MEMORY = 5  # work arrays must be as long as is reported


class Arrays(NamedTuple):
    """One contact problem: m coordinates in trees, n constraints with rows and panels.

    A tree is a set of consecutive coordinates whose inertia is one dense block. The rows of a
    constraint are stored by panel: for each tree that it touches a dense matrix (rows x size of
    the tree).
    """

    tree: np.ndarray  # (trees + 1,) coordinates of tree t: tree[t] to tree[t + 1]
    block: np.ndarray  # (trees + 1,) where its inertia, row by row, begins
    inertia: np.ndarray  # all blocks
    free: np.ndarray  # (m,) velocity without constraints
    law: np.ndarray  # (n,) LawKind
    row: np.ndarray  # (n + 1,) rows of constraint i: row[i] to row[i + 1]
    panel: np.ndarray  # (n + 1,) its panels
    panel_tree: np.ndarray  # the tree of each panel
    panel_at: np.ndarray  # where its values, row by row, begin
    values: np.ndarray  # all panels
    target: np.ndarray  # (rows,) u = J v - target
    friction: np.ndarray  # (rows,) COULOMB: coefficient along each tangent
    bound: np.ndarray  # (rows,) DRY: largest impulse
    compliance: np.ndarray  # (rows,) COMPLIANT, and tangents of VISCOUS


class Factors(NamedTuple):
    """Factors of the inertia, see `holdfast.linalg.ltl`; of several solves that share it."""

    L: np.ndarray  # blocks as in `Arrays.inertia`
    below: np.ndarray  # for each tree a block of one column more
    known: np.ndarray  # (trees,) 1 where the two are filled


class Answer(NamedTuple):
    """What a solve fills in.

    It begins with the impulses and states of the last step, if they are known, and with the
    velocity before this one, or of a solve with nearly the same rows: impulses that would change it
    are not taken as they are.
    """

    velocity: np.ndarray  # (m,)
    impulse: np.ndarray  # (rows,)
    state: np.ndarray  # (n,) ContactState
    report: np.ndarray  # (REPORT,) see `holdfast.contact.solve`


@fast_kernel
def row_speed(a: Arrays, i: int, e: int, v: np.ndarray) -> float:
    """Return the speed along row e of constraint i."""
    speed = 0.0
    for p in range(a.panel[i], a.panel[i + 1]):
        t = a.panel_tree[p]
        begin, size = a.tree[t], a.tree[t + 1] - a.tree[t]
        at = a.panel_at[p] + e * size
        for j in range(size):
            speed += a.values[at + j] * v[begin + j]
    return speed
