"""Algorithm 1 of the paper (modified PPM I), dense, as printed: the baseline to improve on.

Two readings:

* *printed*: every comparison is with zero, and the entering index is sought among all rows, as
  in lines 15 and 16. Rounding leaves loaded rows at -1e-17, so a row may enter twice and the
  small matrix turns singular.
* *charitable*: comparisons have a relative tolerance, and only rows that are not loaded enter.
  It still has no safeguard against cycling and none against dependent rows.

Corrections without which nothing works are made in both: the argument is the unconstrained
*motion* (``f*`` of the listing), offsets ``b`` are added, and w is returned for all rows. Work
that the listing does afresh at each pivot (A, its solution) is done afresh here. A loaded set
that returns proves a cycle, since the next set depends on the present one alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

CHARITABLE_TOLERANCE = 1e-10
"""Relative to the largest free separation speed, and to the largest impulse."""


class Algorithm1Error(ArithmeticError):
    """The algorithm cycles, or its small matrix is singular."""


@dataclass
class _Trail:
    """Remembers the loaded sets, to tell a cycle."""

    seen: set[frozenset[int]]

    def visit(self, loaded: list[int], pivots: int) -> None:
        """Note a loaded set.

        Raises:
            Algorithm1Error: the set has been here before.
        """
        key = frozenset(loaded)
        if key in self.seen and len(key) == len(loaded):
            raise Algorithm1Error(f"cycles: after {pivots} pivots a loaded set has returned")
        self.seen.add(key)


def algorithm1(
    N: np.ndarray,
    M: np.ndarray,
    v: np.ndarray,
    b: np.ndarray,
    *,
    charitable: bool,
    max_pivots: int | None = None,
) -> tuple[np.ndarray, np.ndarray, int]:
    """Solve ``0 <= z _|_ N M^-1 N' z + N v + b >= 0`` with the printed algorithm.

    Args:
        N: contact rows, (n, m).
        M: inertia, (m, m).
        v: unconstrained motion, (m,).
        b: offsets, (n,).
        charitable: which reading, see the module.
        max_pivots: give up after this many pivots; 100 + 20 (n + m) if None.

    Returns:
        The constrained motion, the impulses, and the number of pivots.

    Raises:
        Algorithm1Error: the algorithm cycles, meets a singular matrix or the pivot limit.
    """
    limit = 100 + 20 * sum(N.shape) if max_pivots is None else max_pivots
    q = N @ v + b  # line 2
    z = np.zeros(len(q))
    tol_w = CHARITABLE_TOLERANCE * np.abs(q).max(initial=0.0) if charitable else 0.0
    if len(q) == 0 or q.min() >= -tol_w:  # lines 3-6
        return v.copy(), z, 0
    Minv = np.linalg.inv(M)
    loaded = [int(q.argmin())]  # line 7
    trail = _Trail(set())
    for pivots in range(1, limit):  # line 9
        trail.visit(loaded, pivots)
        z_loaded, a = _solve_loaded(N[loaded], Minv, v, b[loaded])  # lines 10-13
        w = N @ a + b  # line 14
        if charitable:
            w[loaded] = 0.0
        tol_z = CHARITABLE_TOLERANCE * np.abs(z_loaded).max(initial=0.0) if charitable else 0.0
        leaving = int(z_loaded.argmin()) if loaded else -1  # lines 17 and 32
        leaves = bool(loaded) and z_loaded[leaving] < -tol_z
        if w.min() >= -tol_w and not leaves:  # lines 24-29
            z[loaded] = z_loaded
            return a, z, pivots
        if w.min() < -tol_w:  # lines 30, 31
            loaded.append(int(w.argmin()))
        if leaves:  # lines 19-22 and 34-36
            del loaded[leaving]
    raise Algorithm1Error(f"no answer within {limit} pivots")


def _solve_loaded(
    N: np.ndarray, Minv: np.ndarray, v: np.ndarray, b: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Impulses of the loaded contacts, and the motion they give (lines 10 to 13)."""
    P = Minv @ N.T
    try:
        z = np.linalg.solve(N @ P, -(N @ v + b))
    except np.linalg.LinAlgError as error:
        raise Algorithm1Error(f"singular matrix with {len(b)} loaded contacts") from error
    if not np.all(np.isfinite(z)):
        raise Algorithm1Error(f"matrix not finite with {len(b)} loaded contacts")
    return z, P @ z + v
