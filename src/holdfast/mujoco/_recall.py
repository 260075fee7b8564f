"""Forces of the last step, known by contact: what lies at rest is held by them, see `_rest`.

Parts come and go, and their rows stand elsewhere in every step. So a contact is known by its two
geoms and its order among those between them.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

import numpy as np

from holdfast._jit import inlined, kernel
from holdfast.mujoco._scene import CONSISTENT, RANK_TOL, Found, Scene, Work

# Columns of the table of contacts: two geoms, the order among their contacts, the rank tolerance of
# its part's answer if that was consistent, else 0, whether it was in the problem, gripped and was
# held, its impulses, and which of its rows were loaded. Line 0 has the number of lines.
FIRST, SECOND, ORDER, TIED, LISTED, GRIPS, HELD = range(7)
IMPULSE, LOADED, COLUMNS = 7, 13, 19
FEW = 6  # trees up to which parts hardly come and go, and it costs more than it saves
WINDOW = 64  # lines that are looked at for a contact


@inlined
def renew(same: bool, wk: Work, out: Found) -> None:
    """Make what was found in the last step, with rows of the same sizes or not, hints for this."""
    for r in range(out.loaded.shape[0]):
        out.expected[r] = same and out.loaded[r]
    for j in range(wk.nothing.shape[0]):
        wk.nothing[j] = 0.0
    if not same:
        out.numbers[CONSISTENT] = 0.0
        for k in range(wk.kept.valid.shape[0]):
            wk.kept.valid[k] = 0.0


@kernel
def order_of(sc: Scene, i: int) -> int:
    """Return how many contacts of the same geoms stand right before contact i."""
    order = 0
    while order < i and (
        sc.listed[3, i - 1 - order] == sc.listed[3, i]
        and sc.listed[4, i - 1 - order] == sc.listed[4, i]
    ):
        order += 1
    return order


@kernel
def note(sc: Scene, numbers: np.ndarray, part: Scene, found: Found, memo_out: np.ndarray) -> None:
    """Fill in the forces of a part's contacts, which have these numbers in the whole scene."""
    for c in range(numbers.shape[0]):
        i = numbers[c]
        line = memo_out[1 + i]
        line[FIRST], line[SECOND] = sc.listed[3, i], sc.listed[4, i]
        line[ORDER], line[TIED] = order_of(sc, i), 0.0
        if found.numbers[CONSISTENT] > 0.0:
            line[TIED] = found.numbers[RANK_TOL]
        line[LISTED], line[GRIPS], line[HELD] = found.contacts[c], found.grips[c], found.held[c]
        for e in range(LOADED - IMPULSE):
            there = e < part.dim[c]
            line[IMPULSE + e] = found.impulse[part.first[c] + e] if there else 0.0
            line[LOADED + e] = there and found.loaded[part.first[c] + e]


@kernel
def find_lines(sc: Scene, memo: np.ndarray, lines_out: np.ndarray) -> None:
    """Fill in the line of each contact, or 0."""
    lines, next_ = int(memo[0, 0]), 0
    for i in range(sc.gap.shape[0]):
        order = order_of(sc, i)
        lines_out[i] = 0
        for e in range(min(lines, WINDOW)):  # the list has about the same order
            k = (next_ + e) % lines
            line = memo[1 + k]
            same = line[FIRST] == sc.listed[3, i] and line[SECOND] == sc.listed[4, i]
            if same and line[ORDER] == order:
                lines_out[i], next_ = 1 + k, (k + 1) % lines
                break


@kernel
def recall(
    part: Scene, numbers: np.ndarray, lines: np.ndarray, memo: np.ndarray, found: Found
) -> None:
    """Fill in what was found in the last step for a part, if it has contacts alone and knows any.

    Args:
        part: its scene.
        numbers: of its contacts in the whole scene.
        lines: of all contacts, see `find_lines`.
        memo: the table.
        found: filled.
    """
    known, tied, rank_tol = False, numbers.shape[0] > 0 and part.first[0] == 0, 0.0
    for r in range(found.impulse.shape[0]):
        found.impulse[r], found.loaded[r] = 0.0, False
    for j in range(found.v_free.shape[0]):
        found.v_free[j] = 0.0
    for c in range(numbers.shape[0]):
        line, there = memo[lines[numbers[c]]], lines[numbers[c]] > 0
        found.closed[c] = False
        found.contacts[c] = there and line[LISTED] > 0.0
        found.grips[c], found.held[c] = there and line[GRIPS] > 0.0, there and line[HELD] > 0.0
        if there:
            known, tied = True, tied and line[TIED] > 0.0
            rank_tol = max(rank_tol, line[TIED])
            for e in range(part.dim[c]):
                found.impulse[part.first[c] + e] = line[IMPULSE + e]
                found.loaded[part.first[c] + e] = line[LOADED + e] > 0.0
    found.numbers[CONSISTENT], found.numbers[RANK_TOL] = 1.0 if known and tied else 0.0, rank_tol
