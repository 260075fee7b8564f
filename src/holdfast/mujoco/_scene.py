"""What the search for a step's motion works on: rows, numbers, work arrays, and what it finds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

# Numbers that the search reports, by their place in `Found.numbers`.
SLIP, EXCESS, PIVOTS, RANK_TOL, ROUNDS, CONSISTENT, REPORTED = range(7)


class Scene(NamedTuple):
    """Rows of a step and what they shall do; see `holdfast.mujoco.assemble.Rows`."""

    A: np.ndarray  # (1, m, m)
    v: np.ndarray
    f: np.ndarray
    rows: np.ndarray  # (nefc, m): equalities, dry friction, limits, contacts
    target: np.ndarray
    loss: np.ndarray
    limit_gap: np.ndarray
    first: np.ndarray
    dim: np.ndarray
    gap: np.ndarray
    mu: np.ndarray
    sticks: np.ndarray


class Numbers(NamedTuple):
    """Step length, when surfaces touch and when a gap is open; tolerances of the solver."""

    h: float
    touch: float
    open: float
    symmetry: float
    feasibility: float
    rank: float
    zero_row: float
    certificate: float
    max_pivots: int
    rank_tol: float


class Play(NamedTuple):
    """Rows in play in a system of `holdfast.mujoco._steady`; by row of MuJoCo's list, or of it."""

    lo: np.ndarray  # (nefc,) integers, by row of the list: first entry that is not zero
    hi: np.ndarray  # and the end of these entries
    length2: np.ndarray  # (nefc,) squared length
    at: np.ndarray  # (nefc,) integers, by row of the system: which one it is
    weight: np.ndarray  # (nefc,)
    s: np.ndarray  # (nefc,) force
    c: np.ndarray  # (nefc,)
    miss: np.ndarray  # (nefc,)
    envelope: np.ndarray  # (m,) integers: of the system's matrix


class Work(NamedTuple):
    """Work arrays, for n contacts, m coordinates and nefc rows."""

    L: np.ndarray  # (1, m, m)
    envelope: np.ndarray  # (m,) integers
    x: np.ndarray  # (8, m)
    values: np.ndarray  # (nefc, m)
    bounds: np.ndarray  # (3 nefc,)
    at: np.ndarray  # (nefc,) integers
    offsets: np.ndarray  # none: rows are dense
    warm: np.ndarray  # (2 n + limits,) integers
    solver: np.ndarray
    solver_integers: np.ndarray
    out: np.ndarray
    white: np.ndarray  # (nefc + n + m, m)
    which: np.ndarray  # (1, n) integers
    each: np.ndarray  # (5, n)
    masks: np.ndarray  # (7, n) booleans: touching, pressed, none, and see `exchange`, `hold_new`
    square: np.ndarray  # the rest: see `share_normals` and `share_tangents`
    vector: np.ndarray
    columns: np.ndarray
    long: np.ndarray
    E: np.ndarray
    pivots: np.ndarray
    play: Play


class Found(NamedTuple):
    """What is found: impulses by row, and who takes part."""

    v_free: np.ndarray
    motion: np.ndarray
    impulse: np.ndarray  # (nefc,)
    contacts: np.ndarray  # (n,) contacts in the problem
    closed: np.ndarray  # (n,) contacts whose gap is taken for zero
    grips: np.ndarray  # (n,) contacts that are pressed and stick
    held: np.ndarray  # (n,) contacts whose tangents were equality rows
    limits: np.ndarray
    loaded: np.ndarray  # (nefc,) rows that hold with equality
    numbers: np.ndarray  # (REPORTED,)
