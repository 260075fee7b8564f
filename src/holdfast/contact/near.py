"""The contact solve with the constraints that the motion comes near.

Lists reach as far as bodies can move in a step. Much of what is listed is not touched: a chain that
swings has hundreds of contacts and limits within reach, and a few that matter. So the solve begins
with those that are closed, that the motion before or the free motion closes by half, and with
everything that has no open state, if that is less than half of all; what its motion would exceed is
added, until nothing is. Islands that this does not change keep their answers. The rest carries
nothing, and the answer is one of the whole problem.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

import numpy as np

from holdfast._jit import kernel
from holdfast.contact.arrays import (
    Answer,
    Arrays,
    ContactState,
    Factors,
    LawKind,
    SolveStatus,
    row_speed,
)
from holdfast.contact.ladder import NEEDED
from holdfast.contact.options import Numbers, asked
from holdfast.contact.reduce import solve_reduced
from holdfast.contact.solve import begin_report, most_memory

WORTH = 8  # constraints that are left out at least, or the whole problem is solved at once
PART = 0.5  # the same as a part of all: where bodies crowd, what is near is touched at last
HALF = 0.5  # part of a gap that the free motion closes, if a contact is to be in the first solve
ROUNDS = 20  # solves with more and more constraints, before the whole problem is solved
ROUNDING = 1e-12  # part of the speed of the motion by which a row may seem to be exceeded

_VISCOUS = int(LawKind.VISCOUS)
_OPEN, _LEFT_OUT = int(ContactState.OPEN), int(ContactState.LEFT_OUT)
_SOLVED, _APPROXIMATE = int(SolveStatus.SOLVED), int(SolveStatus.APPROXIMATE)
_MORE_MEMORY = int(SolveStatus.MORE_MEMORY)


@kernel
def solve_near(a: Arrays, f: Factors, answer: Answer, work: np.ndarray, words: np.ndarray,
               near: float, o: Numbers) -> int:  # fmt: skip
    """Solve a contact problem; return the status of the solve.

    Args:
        a: the problem.
        f: factors of its inertia.
        answer: impulses and states to begin with; is filled.
        work, words: the same memory as numbers and as integers; where it does not suffice the
            report says how much does.
        near: speed with which a constraint would close that counts as closed.
        o: tolerances.
    """
    n = a.law.shape[0]
    begin_report(answer)
    if n <= WORTH or work.shape[0] <= n:
        return solve_reduced(a, f, answer, work, words, o)
    chosen = words[:n]
    left_out = n - choose_near(a, answer, near, chosen)
    status, rounds = _SOLVED, 0
    while left_out >= max(WORTH, PART * n) and rounds < ROUNDS:
        status = solve_chosen(a, f, answer, chosen, work[n:], words[n:], o)
        answer.report[NEEDED] += n
        o = asked(o, o.rough, True)  # it goes on from an answer of a part of its problem
        if status != _SOLVED and status != _APPROXIMATE:
            break
        added = add_exceeded(a, answer, chosen)
        if added == 0:
            return status
        left_out -= added
        rounds += 1
    if status == _MORE_MEMORY:
        return status
    return solve_reduced(a, f, answer, work, words, o)


@kernel
def memory_needed(a: Arrays) -> int:
    """Return memory that suffices for a solve, whatever constraints are near."""
    m, trees, entries = a.free.shape[0], a.tree.shape[0], a.panel_tree.shape[0] + a.values.shape[0]
    reduced = 3 * trees + entries + 2 * a.inertia.shape[0] + 4 * m
    return a.law.shape[0] + reduced + most_memory(a)


@kernel
def choose_near(a: Arrays, answer: Answer, near: float, chosen_out: np.ndarray) -> int:
    """Mark the constraints of the first solve; return how many there are."""
    count = 0
    for i in range(a.law.shape[0]):
        first = a.row[i]
        target = a.target[first]
        chosen_out[i] = (
            a.law[i] > _VISCOUS
            or answer.state[i] == _LEFT_OUT  # as it was given
            or target > -near
            or row_speed(a, i, 0, answer.velocity) < HALF * target
            or row_speed(a, i, 0, a.free) < HALF * target
        )
        count += chosen_out[i]
    return count


@kernel
def add_exceeded(a: Arrays, answer: Answer, chosen: np.ndarray) -> int:
    """Mark further constraints that the motion exceeds; return how many."""
    fastest, added = 0.0, 0
    for x in answer.velocity:
        fastest = max(fastest, abs(x))
    for i in range(a.law.shape[0]):
        if chosen[i] == 0:
            target = a.target[a.row[i]]
            if row_speed(a, i, 0, answer.velocity) < target - ROUNDING * (fastest - target):
                chosen[i] = 1
                added += 1
    return added


@kernel
def solve_chosen(a: Arrays, f: Factors, answer: Answer, chosen: np.ndarray, work: np.ndarray,
                 words: np.ndarray, o: Numbers) -> int:  # fmt: skip
    """Solve with the constraints that are chosen; others carry nothing."""
    for i in range(a.law.shape[0]):
        if chosen[i] == 0:
            answer.state[i] = _LEFT_OUT
    status = solve_reduced(a, f, answer, work, words, o)
    for i in range(a.law.shape[0]):
        if chosen[i] == 0:
            answer.state[i] = _OPEN
            for r in range(a.row[i], a.row[i + 1]):
                answer.impulse[r] = 0.0
    return status
