"""Stage 6: what is left of penetration and of drift, taken out of the position alone.

The smallest displacement, as the inertia measures it, that leaves no penetration and no drift to
first order:

    minimise 1/2 dq' A dq   subject to   N (h v+ + dq) >= -gap,   J dq = -error,
                                         S dq = T dq = R dq = 0 at contacts that are pressed

This is a contact problem, too, with displacements for velocities: contacts are frictionless,
pressed ones drag so much that they do not move, and so does what holds an equality. No velocity is
added.

Lifted out, a body gains potential energy. Its island pays with what it has lost in the step, and
where that is not enough, as for a body that rolls, with kinetic energy: all its velocities become
smaller by the same small part. Where that is not enough either, the body is lifted by a part, and
the rest waits; unless it is so deep that no step can have led there: bodies that were placed in
each other are lifted out at once, and the drift of joints is free, too. What is done depends on the
state alone, not on how it came about; but what no displacement can remove, as the overlap of
neighbouring links, is tried seldom.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast._jit import kernel
from holdfast.contact.arrays import Answer, Arrays, ContactState, SolveStatus, row_speed
from holdfast.contact.ladder import REPORT
from holdfast.contact.near import solve_near
from holdfast.contact.options import DEFAULT
from holdfast.mujoco import c_api, structs
from holdfast.mujoco.constraints import (
    COMPLIANT,
    CONTACT,
    DRY,
    EQUALITY,
    FRICTIONLESS,
    LIMIT,
    RIGID,
    VISCOUS,
    Constraints,
    is_longer,
    is_soft,
)
from holdfast.mujoco.sleep import hold
from holdfast.mujoco.smooth import factors
from holdfast.mujoco.structs import data_at, floats, words

OPTIONS = DEFAULT.numbers()  # of the contact solve
LEFT_OUT = int(ContactState.LEFT_OUT)
_SOLVED, _APPROXIMATE = int(SolveStatus.SOLVED), int(SolveStatus.APPROXIMATE)


@kernel
def violations(s: Any, arrays: Arrays, cs: Constraints, velocity: np.ndarray) -> None:
    """Find the deepest penetration before the step, and the worst violation left after it."""
    deepest = left = depth = 0.0
    for i in range(cs.kind.shape[0]):
        if cs.kind[i] == CONTACT or cs.kind[i] == LIMIT:
            if is_soft(arrays, cs, i) or is_short(s, arrays, i):
                continue
            left = max(left, -end_gap(s, arrays, cs, i, velocity))
            depth = max(depth, -cs.gap[i])
            if cs.kind[i] == CONTACT:
                deepest = max(deepest, -cs.gap[i])
        elif arrays.law[i] == RIGID and arrays.target[arrays.row[i]] == 0.0:
            left, depth = max(left, abs(cs.gap[i])), max(depth, abs(cs.gap[i]))
    s.left_over, s.depth = left, depth
    s.deepest = max(s.deepest, deepest)


@kernel
def is_short(s: Any, arrays: Arrays, i: int) -> bool:
    """Return whether the first row of a constraint is so short that no displacement helps.

    A contact whose normal passes near a joint axis would turn the joint far to be moved a little.
    """
    return not is_longer(arrays, i, 0, min(1.0, s.size) / s.correction_lever)


@kernel
def end_gap(s: Any, arrays: Arrays, cs: Constraints, i: int, velocity: np.ndarray) -> float:
    """Return the gap of a contact or limit after the step."""
    return cs.gap[i] + s.h * row_speed(arrays, i, 0, velocity) - cs.sunk[i]


@kernel
def mobility(arrays: Arrays, i: int, e: int) -> float:
    """Return about how much an impulse along row e of constraint i moves it."""
    total = 0.0
    for p in range(arrays.panel[i], arrays.panel[i + 1]):
        t = arrays.panel_tree[p]
        size = arrays.tree[t + 1] - arrays.tree[t]
        at = arrays.panel_at[p] + e * size
        for j in range(size):
            x = arrays.values[at + j]
            total += x * x / arrays.inertia[arrays.block[t] + j * (size + 1)]
    return total


@kernel
def correction_problem(s: Any, arrays: Arrays, cs: Constraints, answer: Answer, held: bool,
                       to: Arrays) -> None:  # fmt: skip
    """Fill laws and targets of the displacement that leaves nothing to correct."""
    for j in range(s.nv):
        to.free[j] = 0.0
    for i in range(cs.kind.shape[0]):
        first = arrays.row[i]
        for r in range(first, arrays.row[i + 1]):
            to.target[r] = to.friction[r] = to.bound[r] = to.compliance[r] = 0.0
        if is_soft(arrays, cs, i):
            to.law[i] = COMPLIANT if arrays.law[i] == COMPLIANT else DRY
            to.compliance[first] = s.held_compliance * mobility(arrays, i, 0)
        elif cs.kind[i] == CONTACT or cs.kind[i] == LIMIT:
            gap = end_gap(s, arrays, cs, i, answer.velocity)
            to.law[i] = FRICTIONLESS
            to.target[first] = 0.0 if is_short(s, arrays, i) else max(-gap, -s.correction_step)
            if held and answer.impulse[first] > 0.0 and arrays.row[i + 1] - first > 1:
                to.law[i] = VISCOUS
                for r in range(first + 1, arrays.row[i + 1]):
                    to.compliance[r] = s.held_compliance * mobility(arrays, i, r - first)
        elif cs.kind[i] == EQUALITY:
            rigid = arrays.law[i] == RIGID
            to.law[i] = RIGID if rigid else COMPLIANT
            to.compliance[first] = 0.0 if rigid else s.held_compliance * mobility(arrays, i, 0)
            drifts = rigid and arrays.target[first] == 0.0
            to.target[first] = -cs.gap[i] if drifts else 0.0
        else:
            to.law[i] = DRY


@kernel
def correction_size(s: Any) -> int:
    """Return the length of the arrays of a correction, without what its solve needs."""
    return 2 * s.constraints + 5 * s.rows + s.nv + REPORT


@kernel
def displace(s: Any, arrays: Arrays, cs: Constraints, answer: Answer, rest: int) -> bool:
    """Find the displacement; False if there is none, or not enough memory to look for it."""
    n, nr, nv = s.constraints, s.rows, s.nv
    size = s.work_size - (rest - s.work) // 8
    if correction_size(s) > size:
        return False
    at = rest
    law, state = words(at, 1, n)[0], words(at + 8 * n, 1, n)[0]
    at += 16 * n
    target, friction = floats(at, 1, nr)[0], floats(at + 8 * nr, 1, nr)[0]
    at += 16 * nr
    bound, compliance = floats(at, 1, nr)[0], floats(at + 8 * nr, 1, nr)[0]
    at += 16 * nr
    impulse, free = floats(at, 1, nr)[0], floats(at + 8 * nr, 1, nv)[0]
    at += 8 * (nr + nv)
    report = floats(at, 1, REPORT)[0]
    at += 8 * REPORT
    to = Arrays(
        arrays.tree, arrays.block, arrays.inertia, free, law, arrays.row, arrays.panel,
        arrays.panel_tree, arrays.panel_at, arrays.values, target, friction, bound, compliance,
    )  # fmt: skip
    dq = floats(s.displacement, 1, nv)[0]
    found = Answer(dq, impulse, state, report)
    left = s.work_size - (at - s.work) // 8
    work, integers = floats(at, 1, left)[0], words(at, 1, left)[0]
    for held in (True, False):  # without the tangents if they are in the way
        correction_problem(s, arrays, cs, answer, held, to)
        for j in range(nv):
            dq[j] = 0.0
        for r in range(nr):
            impulse[r] = 0.0
        for i in range(n):  # what is pressed or violated will hold, the rest will not
            pressed = answer.impulse[arrays.row[i]] != 0.0 or target[arrays.row[i]] > 0.0
            state[i] = 1 if pressed else 0
            if law[i] == DRY:  # without a limit it carries nothing
                state[i] = LEFT_OUT
        near = s.near * s.size
        status = solve_near(to, factors(s), found, work, integers, near, OPTIONS)
        if status != _SOLVED and status != _APPROXIMATE:
            continue
        largest = min(s.correction_step, s.correction_lever * s.left_over / min(1.0, s.size))
        if widest(dq) <= largest:
            return True
    status_ok = status in (_SOLVED, _APPROXIMATE)
    if not status_ok or not widest(dq) < np.inf:
        return False
    scale = largest / max(widest(dq), largest)
    for j in range(nv):
        dq[j] *= scale
    return True


@kernel
def widest(dq: np.ndarray) -> float:
    """Return the largest displacement of a coordinate; infinite if one is NaN."""
    largest = 0.0
    for x in dq:
        if not abs(x) < np.inf:
            return np.inf
        largest = max(largest, abs(x))
    return largest


@kernel
def potential_force(s: Any, api: Any) -> None:
    """Fill the generalised force of gravity and springs where the step began.

    Recursive Newton-Euler without velocity leaves gravity alone; velocities are put back.
    """
    d, nv, nb = data_at(s.data), s.nv, s.nbody
    force = floats(s.potential, 1, nv)[0]
    kept, at = s.potential + 8 * nv, s.potential + 16 * nv
    structs.copy(kept, d.qvel, 8 * nv)
    structs.copy(at, d.cvel, 48 * nb)
    qvel, cvel = floats(d.qvel, 1, nv)[0], floats(d.cvel, 1, 6 * nb)[0]
    for j in range(nv):
        qvel[j] = 0.0
    for j in range(6 * nb):
        cvel[j] = 0.0
    c_api.call_rne(api.mj_rne, s.model, s.data, np.int32(0), s.potential)
    structs.copy(d.qvel, kept, 8 * nv)
    structs.copy(d.cvel, at, 48 * nb)
    spring, lift = floats(d.qfrc_spring, 1, nv)[0], floats(d.qfrc_gravcomp, 1, nv)[0]
    for j in range(nv):
        force[j] = spring[j] + lift[j] - force[j]


@kernel
def label_islands(arrays: Arrays, label: np.ndarray) -> None:
    """Fill the smallest tree of the island of each tree."""
    for t in range(label.shape[0]):
        label[t] = t
    changed = True
    while changed:
        changed = False
        for i in range(arrays.law.shape[0]):
            least = label.shape[0]
            for p in range(arrays.panel[i], arrays.panel[i + 1]):
                least = min(least, label[arrays.panel_tree[p]])
            for p in range(arrays.panel[i], arrays.panel[i + 1]):
                if label[arrays.panel_tree[p]] != least:
                    label[arrays.panel_tree[p]] = least
                    changed = True


@kernel
def pay(s: Any, arrays: Arrays, cs: Constraints, answer: Answer, before: np.ndarray,
        dq: np.ndarray) -> bool:  # fmt: skip
    """Let each island pay for its displacement: with what the step has taken out, then with speed.

    A step takes out ``1/2 |v+ - v|^2 - p v+``. Return whether the correction of the worst violation
    was made shorter.
    """
    d, trees = data_at(s.data), s.ntree
    label = words(s.scratch, 1, trees)[0]
    pull = floats(s.potential, 1, s.nv)[0]
    qvel, qacc = floats(d.qvel, 1, s.nv)[0], floats(d.qacc, 1, s.nv)[0]
    warmstart = floats(d.qacc_warmstart, 1, s.nv)[0]
    label_islands(arrays, label)
    shortened = False
    for island in range(trees):
        if label[island] != island:
            continue
        cost = lost = kinetic = deep = 0.0
        for t in range(trees):
            if label[t] == island:
                begin, size = arrays.tree[t], arrays.tree[t + 1] - arrays.tree[t]
                for i in range(size):
                    cost -= pull[begin + i] * dq[begin + i]
                    change = answer.velocity[begin + i] - before[begin + i]
                    for j in range(size):
                        other = answer.velocity[begin + j] - before[begin + j]
                        mass = 0.5 * arrays.inertia[arrays.block[t] + i * size + j]
                        lost += mass * change * other
                        kinetic += mass * qvel[begin + i] * qvel[begin + j]
        if cost <= 0.0:
            continue
        for i in range(cs.kind.shape[0]):
            if arrays.panel[i] < arrays.panel[i + 1] and (
                label[arrays.panel_tree[arrays.panel[i]]] == island
            ):
                if (cs.kind[i] == CONTACT or cs.kind[i] == LIMIT) and not is_soft(arrays, cs, i):
                    deep = max(deep, -end_gap(s, arrays, cs, i, answer.velocity))
                for r in range(arrays.row[i], arrays.row[i + 1]):
                    if answer.impulse[r] != 0.0:
                        speed = row_speed(arrays, i, r - arrays.row[i], answer.velocity)
                        lost -= answer.impulse[r] * speed
        owed = cost - max(lost, 0.0)
        if not owed > 0.0:
            continue
        paid = min(owed, s.paid * kinetic)
        part = 1.0
        if paid < owed and deep <= s.deep * s.size:
            part = (max(lost, 0.0) + paid) / cost
            shortened = shortened or deep >= s.left_over
        slower = np.sqrt(1.0 - paid / kinetic) if paid > 0.0 else 1.0
        for t in range(trees):
            if label[t] == island:
                for j in range(arrays.tree[t], arrays.tree[t + 1]):
                    dq[j] *= part
                    qvel[j] *= slower
                    qacc[j] = warmstart[j] = (qvel[j] - before[j]) / s.h
    return shortened


@kernel
def stabilize(s: Any, api: Any, arrays: Arrays, cs: Constraints, answer: Answer, rest: int,
              given: bool) -> None:  # fmt: skip
    """Correct the position after the step, if there is anything to correct.

    Args:
        s: the record of the step, already integrated.
        api: MuJoCo's functions.
        arrays: the contact problem.
        cs: its constraints.
        answer: its solution.
        rest: address of what is left of the work array.
        given: whether the position at its start was not left there by the last step.
    """
    if s.correct == 0 or s.left_over <= s.uncorrected * s.size:
        s.stuck = s.retry = 0
        s.last_left_over = 0.0
        return
    if given:
        s.stuck = s.retry = 0
        s.last_left_over = 0.0
    judge_last(s)
    if s.retry > 0:
        s.retry -= 1
        return
    if not displace(s, arrays, cs, answer, rest):
        s.stuck += 1
        wait_longer(s)
        return
    d, dq = data_at(s.data), floats(s.displacement, 1, s.nv)[0]
    drifts = False
    for i in range(cs.kind.shape[0]):
        drifts = drifts or (arrays.law[i] == RIGID and abs(cs.gap[i]) > s.touching * s.size)
    waits = False
    if not drifts:
        potential_force(s, api)
        waits = pay(s, arrays, cs, answer, floats(s.before + 8 * (1 + s.nq), 1, s.nv)[0], dq)
    hold(s, dq)
    c_api.call_integrate(api.mj_integratePos, s.model, d.qpos, s.displacement, 1.0)
    s.corrected = max(s.corrected, widest(dq))
    s.last_left_over = 0.0 if waits else s.left_over  # more is to come: nothing to judge


@kernel
def judge_last(s: Any) -> None:
    """See whether the correction of the last step, if there was one, has helped."""
    last = s.last_left_over
    if last == 0.0:
        return
    s.last_left_over = 0.0
    if last <= s.slight * s.size:
        return
    if s.depth > last - s.helpful * min(last, s.correction_step):
        s.stuck += 1
        wait_longer(s)
    else:
        s.stuck = s.retry = 0


@kernel
def wait_longer(s: Any) -> None:
    """Let more and more steps pass between corrections that do not help."""
    if s.stuck >= s.hopeless_after:
        s.retry = s.seldom
    elif s.stuck >= s.stuck_after:
        s.retry = 1 << (s.stuck - s.stuck_after + 1)
