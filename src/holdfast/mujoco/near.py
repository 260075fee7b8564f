"""Stage 3: the contact solve, with the constraints that the motion comes near.

Lists reach as far as bodies can move in a step. Much of what is listed is not touched: a chain that
swings has hundreds of contacts and limits within reach, and a few that matter. So the solve begins
with those that are closed, that carried something in the last step or that the free motion closes
by half, and with everything that has no open state; what its motion would exceed is added, until
nothing is. The rest carries nothing, and the answer is one of the whole problem.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

import numpy as np

from holdfast._jit import kernel
from holdfast.contact.arrays import Answer, Arrays, ContactState, LawKind, SolveStatus
from holdfast.contact.ladder import NEEDED
from holdfast.contact.options import Numbers
from holdfast.contact.reduce import solve_reduced
from holdfast.contact.solve import most_memory
from holdfast.mujoco.constraints import row_speed
from holdfast.mujoco.structs import floats, words

WORTH = 8  # constraints that are left out at least, or the whole problem is solved at once
HALF = 0.5  # part of a gap that the free motion closes, if a contact is to be in the first solve
ROUNDS = 20  # solves with more and more constraints, before the whole problem is solved
ROUNDING = 1e-12  # part of the speed of the motion by which a row may seem to be exceeded

_VISCOUS, _OPEN = int(LawKind.VISCOUS), int(ContactState.OPEN)
_SOLVED, _APPROXIMATE = int(SolveStatus.SOLVED), int(SolveStatus.APPROXIMATE)
_MORE_MEMORY = int(SolveStatus.MORE_MEMORY)


@kernel
def solve_near(a: Arrays, answer: Answer, memory: int, size: int, near: float, o: Numbers) -> int:
    """Solve a contact problem; return the status of the solve.

    Args:
        a: the problem.
        answer: impulses and states to begin with; is filled.
        memory: address of free memory.
        size: its length, in numbers of 8 bytes; where it does not suffice the report says by how
            much.
        near: speed with which a constraint would close that counts as closed.
        o: tolerances of the solve.
    """
    n = a.law.shape[0]
    if n <= WORTH or size <= n:
        return solve_whole(a, answer, memory, size, o)
    chosen = words(memory, 1, n)[0]
    left_out = n - choose_near(a, answer, near, chosen)
    status, rounds = _SOLVED, 0
    while left_out >= WORTH and rounds < ROUNDS:
        status = solve_part(a, answer, chosen, n - left_out, memory, size, o)
        if status != _SOLVED and status != _APPROXIMATE:
            break
        added = add_exceeded(a, answer, chosen)
        if added == 0:
            return status
        left_out -= added
        rounds += 1
    if status == _MORE_MEMORY:
        return status
    return solve_whole(a, answer, memory, size, o)


@kernel
def memory_needed(a: Arrays) -> int:
    """Return memory that suffices for a solve, whatever constraints are near."""
    n, m, panels = a.law.shape[0], a.free.shape[0], a.panel_tree.shape[0]
    part = 5 * n + 2 + 2 * panels + 5 * a.target.shape[0]
    reduced = 3 * a.tree.shape[0] + panels + a.values.shape[0] + 4 * a.inertia.shape[0] + 4 * m
    return part + reduced + most_memory(a)


@kernel
def solve_whole(a: Arrays, answer: Answer, memory: int, size: int, o: Numbers) -> int:
    """Solve with all constraints."""
    return solve_reduced(a, answer, floats(memory, 1, size)[0], words(memory, 1, size)[0], o)


@kernel
def choose_near(a: Arrays, answer: Answer, near: float, chosen_out: np.ndarray) -> int:
    """Mark the constraints of the first solve; return how many there are."""
    count = 0
    for i in range(a.law.shape[0]):
        first = a.row[i]
        target = a.target[first]
        chosen_out[i] = (
            a.law[i] > _VISCOUS
            or target > -near
            or answer.impulse[first] > 0.0
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
def solve_part(a: Arrays, answer: Answer, chosen: np.ndarray, count: int, memory: int,
               size: int, o: Numbers) -> int:  # fmt: skip
    """Solve with the constraints that are chosen; others carry nothing."""
    rows = panels = 0
    for i in range(a.law.shape[0]):
        if chosen[i] != 0:
            rows += a.row[i + 1] - a.row[i]
            panels += a.panel[i + 1] - a.panel[i]
    used = a.law.shape[0] + 4 * count + 2 + 2 * panels + 5 * rows
    if used >= size:
        answer.report[NEEDED] = used + 1
        return _MORE_MEMORY
    at = memory + 8 * a.law.shape[0]
    law, state = words(at, 1, count)[0], words(at + 8 * count, 1, count)[0]
    at += 16 * count
    row, panel = words(at, 1, count + 1)[0], words(at + 8 * (count + 1), 1, count + 1)[0]
    at += 16 * (count + 1)
    panel_tree, panel_at = words(at, 1, panels)[0], words(at + 8 * panels, 1, panels)[0]
    at += 16 * panels
    by_row = floats(at, 5, rows)
    at += 40 * rows
    part = Arrays(a.tree, a.block, a.inertia, a.free, law, row, panel, panel_tree, panel_at,
                  a.values, by_row[0], by_row[1], by_row[2], by_row[3])  # fmt: skip
    gather(a, answer, chosen, part, state, by_row[4])
    left = size - used
    of_part = Answer(answer.velocity, by_row[4], state, answer.report)
    status = solve_whole(part, of_part, at, left, o)
    answer.report[NEEDED] += used
    if status == _MORE_MEMORY:
        return status
    k = 0
    for i in range(a.law.shape[0]):
        if chosen[i] == 0:
            answer.state[i] = _OPEN
            for r in range(a.row[i], a.row[i + 1]):
                answer.impulse[r] = 0.0
            continue
        answer.state[i] = state[k]
        for e in range(a.row[i + 1] - a.row[i]):
            answer.impulse[a.row[i] + e] = by_row[4, row[k] + e]
        k += 1
    return status


@kernel
def gather(a: Arrays, answer: Answer, chosen: np.ndarray, part: Arrays, state_out: np.ndarray,
           impulse_out: np.ndarray) -> None:  # fmt: skip
    """Fill the problem of the constraints that are chosen, and where its solve begins."""
    k = 0
    part.row[0] = part.panel[0] = 0
    for i in range(a.law.shape[0]):
        if chosen[i] == 0:
            continue
        part.law[k], state_out[k] = a.law[i], answer.state[i]
        r, p = part.row[k], part.panel[k]
        for e in range(a.row[i], a.row[i + 1]):
            part.target[r], part.friction[r] = a.target[e], a.friction[e]
            part.bound[r], part.compliance[r] = a.bound[e], a.compliance[e]
            impulse_out[r] = answer.impulse[e]
            r += 1
        for q in range(a.panel[i], a.panel[i + 1]):
            part.panel_tree[p], part.panel_at[p] = a.panel_tree[q], a.panel_at[q]
            p += 1
        k += 1
        part.row[k], part.panel[k] = r, p
