"""A contact problem as the kernels read it: all of its rows one below the other."""

from __future__ import annotations

from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from holdfast.lcp.factored import NO_BLOCKS, Arrays

ORDER = "STRJNUD"  # friction first: without it the rest is still one piece


class Stack(NamedTuple):
    """Rows S, T, R, J, N, U and D of a problem."""

    arrays: Arrays  # with the bounds of impulses if all contacts stick
    everywhere: np.ndarray  # (n,) true: all contacts
    ends: tuple[int, int, int, int, int, int, int]  # where S, T, R, J, N, U and D end
    R_contact: np.ndarray  # (r,)
    compliant: bool  # whether some rows of J are
    driven: bool  # whether some rows of J have a target

    def split(self, each: np.ndarray) -> tuple[np.ndarray, ...]:
        """The entries of S, T, R, J, N, U and D, out of one per row."""
        s, t, r, j, n, u, k = self.ends
        return each[:s], each[s:t], each[t:r], each[r:j], each[j:n], each[n:u], each[u:k]


def stack_of(problem: Any, blocks: np.ndarray) -> Stack:
    """The stack of a checked problem with these blocks of inertia."""
    p = problem
    rows = [getattr(p, name) for name in ORDER]
    s, t, r, j, n, u, k = ends = _ends(rows)
    b, lo, hi = np.zeros((3, k))
    b[r:j], b[j:n], b[n:u] = -p.c_J, -p.c_N, -p.c_U
    lo[:j], lo[u:] = -np.inf, -p.D_bound
    hi[:u], hi[u:] = np.inf, p.D_bound
    everywhere = np.ones(p.n, dtype=bool)
    everywhere.setflags(write=False)
    order = (t - s, r, j)  # contacts with two tangents; the bilateral rows
    arrays = Arrays(
        np.concatenate(rows), NO_BLOCKS, blocks, p.v[:], b, lo, hi, p.f[:], p.h or 0.0, order
    )
    compliant, driven = bool(p.compliance_J.any()), bool(p.c_J.any())
    return Stack(arrays, everywhere, ends, p.R_contact[:], compliant, driven)


def _ends(rows: list[np.ndarray]) -> Any:
    return tuple(accumulate(map(len, rows)))
