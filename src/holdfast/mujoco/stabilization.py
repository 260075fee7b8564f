"""Stage 6: what is left of penetration and of drift, taken out of the position alone.

The smallest displacement, as the inertia measures it, that leaves no penetration and no drift to
first order:

    minimise 1/2 dq' A dq   subject to   N (h v+ + dq) >= -gap,   J dq = -error,
                                         S dq = T dq = R dq = 0 at contacts that touch

This is a contact problem, too, with displacements for velocities: contacts are frictionless, those
that touch drag so much that they do not move, and so does what holds an equality. No velocity is
added. Each island is corrected by itself: one that cannot be does not keep others from it.

Lifted out, a body gains potential energy; turned, it may gain kinetic energy at the same speeds.
Its island pays with what impulses have taken, and where that is not enough, as for a body that
rolls, with kinetic energy: all its velocities become smaller by the same part. Where that is not
enough either, as for bodies at rest, it pays with what impulses have taken out of the free motion,
so that contact and correction together add nothing to it. What is left waits; unless it was so deep
when the step began that no step can have led there: bodies that were placed in each other are
lifted out at once, and the drift of joints is free, too. Where violations are deep, the
surfaces are looked at where a correction leads, and it is made only if it helps: the overlap of
neighbouring links would push joints about for ever. Where it does not help, limits and equalities
are corrected alone. What is done depends on the state alone, not on how it came about.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from holdfast._jit import kernel
from holdfast.contact.arrays import Answer, Arrays, ContactState, SolveStatus, row_speed
from holdfast.contact.ladder import REPORT
from holdfast.contact.near import solve_near
from holdfast.contact.options import DEFAULT, asked
from holdfast.linalg.vectors import square
from holdfast.mujoco import c_api, structs
from holdfast.mujoco._mj import mujoco
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
from holdfast.mujoco.contact_rows import fill_panel
from holdfast.mujoco.lookahead import list_touching, move_trial, taken_back
from holdfast.mujoco.separation import smaller
from holdfast.mujoco.sleep import hold
from holdfast.mujoco.smooth import factors
from holdfast.mujoco.structs import CONTACT_SIZE, contact_at, data_at, floats, words

OPEN, STICK = int(ContactState.OPEN), int(ContactState.STICK)
LEFT_OUT = int(ContactState.LEFT_OUT)
OPTIONS = DEFAULT.numbers()  # of the contact solve
_SOLVED, _APPROXIMATE = int(SolveStatus.SOLVED), int(SolveStatus.APPROXIMATE)
WEIGHTLESS = int(mujoco.mjtDisableBit.mjDSBL_GRAVITY)
PAYMENTS = 6  # how often energy is measured, with ever shorter displacements; the last ones are 0


class Ends(NamedTuple):
    """Constraints as they are where the step ends, as far as they have been seen there."""

    rows: Arrays  # the contact problem with the rows of the end
    place: np.ndarray  # (n, 2, 3) where the points of contacts were before, as parts of both geoms
    seen: np.ndarray  # (n,) whether they have been seen there


@kernel
def violations(s: Any, arrays: Arrays, cs: Constraints, velocity: np.ndarray) -> None:
    """Find the deepest penetration before the step, and the worst violation left after it."""
    deepest = left = 0.0
    for i in range(cs.kind.shape[0]):
        left = max(left, violation(s, arrays, cs, i, velocity))
        if cs.kind[i] == CONTACT and not is_short(s, arrays, i):
            deepest = max(deepest, -cs.gap[i])
    s.left_over = left
    s.deepest = max(s.deepest, deepest)


@kernel
def violation(s: Any, arrays: Arrays, cs: Constraints, i: int, velocity: np.ndarray) -> float:
    """Return how far constraint i is violated after the step, if a correction may help."""
    if cs.kind[i] == CONTACT or cs.kind[i] == LIMIT:
        if is_soft(arrays, cs, i) or is_short(s, arrays, i):
            return 0.0
        return max(-end_gap(s, arrays, cs, i, velocity), 0.0)
    drifts = arrays.law[i] == RIGID and arrays.target[arrays.row[i]] == 0.0
    return abs(cs.gap[i]) if drifts else 0.0


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
            # without a bound DRY is without effect: limits that do not press, and contacts
            to.law[i] = COMPLIANT if arrays.law[i] == COMPLIANT else DRY
            to.compliance[first] = s.held_compliance * mobility(arrays, i, 0)
        elif cs.kind[i] == CONTACT or cs.kind[i] == LIMIT:
            gap = end_gap(s, arrays, cs, i, answer.velocity)
            to.law[i] = FRICTIONLESS
            to.target[first] = 0.0 if is_short(s, arrays, i) else max(-gap, -s.correction_step)
            if held and gap <= s.touching * s.size and arrays.row[i + 1] - first > 1:
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
    return s.entries + 9 * s.constraints + 5 * s.rows + 2 * s.nv + REPORT


@kernel
def island_of(arrays: Arrays, label: np.ndarray, i: int) -> int:
    """Return the island of constraint i, see `label_islands`; -1 if it touches no tree."""
    p = arrays.panel[i]
    return label[arrays.panel_tree[p]] if p < arrays.panel[i + 1] else -1


@kernel
def is_of_mechanism(s: Any, arrays: Arrays, i: int) -> bool:
    """Return whether constraint i moves one tree only, and this is no free body."""
    first = arrays.panel[i]
    if arrays.panel[i + 1] != first + 1:
        return False
    return words(s.linked, 1, s.ntree)[0, arrays.panel_tree[first]] == 1


@kernel
def is_turn(s: Any, period: int) -> bool:
    """Return whether this step is one of those that come once in so many.

    What is deep within a mechanism when a step begins stays because its links overlap for good:
    then every attempt is in vain. Which step it is follows from the time, which is part of the
    state, so that nothing depends on earlier steps.
    """
    return int(np.rint(data_at(s.data).time / s.h) - 1.0) % period == 0


@kernel
def rows_of_end(s: Any, arrays: Arrays, cs: Constraints, at: int) -> Ends:
    """Return the rows of the beginning of the step, which are to become those of its end."""
    n, values = s.constraints, floats(at, 1, s.entries)[0]
    place = floats(at + 8 * s.entries, 6, n).reshape(n, 2, 3)
    seen = words(at + 8 * (s.entries + 6 * n), 1, n)[0]
    for p in range(s.entries if s.correct == 1 else 0):
        values[p] = arrays.values[p]
    for k in range(n if s.correct == 1 else 0):
        seen[k] = 0
        for e in range(3):
            place[k, 0, e] = place[k, 1, e] = cs.place[k, e]
    rows = Arrays(
        arrays.tree, arrays.block, arrays.inertia, arrays.free, arrays.law, arrays.row,
        arrays.panel, arrays.panel_tree, arrays.panel_at, values, arrays.target, arrays.friction,
        arrays.bound, arrays.compliance,
    )  # fmt: skip
    return Ends(rows, place, seen)


@kernel
def displace(s: Any, arrays: Arrays, ends: Ends, cs: Constraints, answer: Answer,
             label: np.ndarray, rest: int) -> bool:  # fmt: skip
    """Fill the displacements of all islands that need one; False if some cannot be corrected.

    Args:
        s: the record of the step.
        arrays: the contact problem.
        ends: its rows where the step ends.
        cs: its constraints.
        answer: its solution.
        label: island of each tree.
        rest: address of what is left of the work array.
    """
    n, nr, nv = s.constraints, s.rows, s.nv
    at = rest
    law, state = words(at, 1, n)[0], words(at + 8 * n, 1, n)[0]
    at += 16 * n
    target, friction = floats(at, 1, nr)[0], floats(at + 8 * nr, 1, nr)[0]
    at += 16 * nr
    bound, compliance = floats(at, 1, nr)[0], floats(at + 8 * nr, 1, nr)[0]
    at += 16 * nr
    impulse, free = floats(at, 1, nr)[0], floats(at + 8 * nr, 1, nv)[0]
    at += 8 * (nr + nv)
    way = floats(at, 1, nv)[0]
    at += 8 * nv
    report = floats(at, 1, REPORT)[0]
    at += 8 * REPORT
    to = Arrays(
        arrays.tree, arrays.block, arrays.inertia, free, law, arrays.row, arrays.panel,
        arrays.panel_tree, arrays.panel_at, ends.rows.values, target, friction, bound, compliance,
    )  # fmt: skip
    found = Answer(way, impulse, state, report)
    dq = floats(s.displacement, 1, nv)[0]
    for j in range(nv):
        dq[j] = 0.0
    whole = True
    for island in range(s.ntree):
        if label[island] != island:
            continue
        left = before = linked = 0.0
        for i in range(n):
            if island_of(arrays, label, i) == island:
                left = max(left, violation(s, arrays, cs, i, answer.velocity))
                if cs.kind[i] in (CONTACT, LIMIT) and not is_soft(arrays, cs, i):
                    before = max(before, -cs.gap[i])
                    if is_of_mechanism(s, arrays, i):
                        linked = max(linked, -cs.gap[i])
        was_deep = before > s.slight * s.size
        if left <= s.uncorrected * s.size:
            continue
        if linked > s.slight * s.size and not is_turn(s, s.deep_period):
            continue
        holds = not was_deep
        if not displace_island(s, arrays, cs, answer, label, island, left, holds, to, found, at):
            whole = False
            if not leave_overlaps(s, arrays, cs, answer, label, island) or not displace_island(
                s, arrays, cs, answer, label, island, left, holds, to, found, at
            ):
                continue
        for t in range(s.ntree):
            if label[t] == island:
                for j in range(arrays.tree[t], arrays.tree[t + 1]):
                    dq[j] = way[j]
    return whole


@kernel
def displace_island(s: Any, arrays: Arrays, cs: Constraints, answer: Answer, label: np.ndarray,
                    island: int, left: float, holds: bool, to: Arrays, found: Answer,
                    at: int) -> bool:  # fmt: skip
    """Fill the displacement of one island; False if there is none.

    Args:
        s: the record of the step.
        arrays: the contact problem.
        cs: its constraints.
        answer: its solution.
        label: island of each tree.
        island: the one that is corrected.
        left: its worst violation.
        holds: whether the tangents of what touches hold, unless they are in the way.
        to: arrays of the problem of the displacement; are filled.
        found: its answer; is filled.
        at: address of what is left of the work array.
    """
    size = s.work_size - (at - s.work) // 8
    work, integers = floats(at, 1, size)[0], words(at, 1, size)[0]
    left = min(left, s.left_over)  # as it was first found, not what vain attempts have made of it
    fastest = 0.0
    for t in range(s.ntree):
        if label[t] == island:
            for j in range(arrays.tree[t], arrays.tree[t + 1]):
                fastest = max(fastest, abs(answer.velocity[j]))
    largest = max(s.correction_step, s.h * fastest)
    largest = min(largest, s.correction_lever * left / min(1.0, s.size))
    solved = False
    for held in (True, False):
        if held and not holds:
            continue
        correction_problem(s, arrays, cs, answer, held, to)
        for j in range(s.nv):
            found.velocity[j] = 0.0
        for r in range(s.rows):
            found.impulse[r] = 0.0
        for i in range(s.constraints):  # what touches will hold, the rest will not
            touches = to.target[arrays.row[i]] >= -s.touching * s.size
            found.state[i] = STICK if touches else OPEN
            if to.law[i] == DRY or island_of(arrays, label, i) != island:
                found.state[i] = LEFT_OUT  # dry friction without a limit carries nothing
        o = asked(OPTIONS, s.rough, False)
        status = solve_near(to, factors(s), found, work, integers, s.near * s.size, o)
        solved = status in (_SOLVED, _APPROXIMATE)
        if solved and widest(found.velocity) <= largest:
            return True
    longest = widest(found.velocity)
    if not solved or not longest < np.inf:
        return False
    for j in range(s.nv):
        found.velocity[j] *= largest / longest
    return True


@kernel
def measure_again(s: Any, api: Any, arrays: Arrays, ends: Ends, cs: Constraints,
                  velocity: np.ndarray, dq: np.ndarray) -> bool:  # fmt: skip
    """Look at the surfaces where displacements lead; note how deep contacts have sunk in.

    Rows are those of the beginning of the step: where bodies turn far, they are not right about its
    end. A contact that is deeper than it seemed gets the rows that it has where it is seen. Return
    whether there is any.
    """
    trial, found, points = data_at(s.trial), False, floats(s.scratch, 2, 3)
    if s.rigid_contacts == 0:  # nothing of them is corrected
        return False
    move_trial(s, api, s.displacement, 1.0)
    list_touching(s, api)
    for e in range(trial.ncon):
        seen = contact_at(trial.contact + e * CONTACT_SIZE)
        if not seen.dist < -s.uncorrected * s.size:
            continue
        taken_back(data_at(s.data), trial, np.int64(seen.geom[0]), seen, points[0])
        taken_back(data_at(s.data), trial, np.int64(seen.geom[1]), seen, points[1])
        k = most_alike(s, arrays, ends, cs, velocity, dq, seen, points)
        if k < 0:
            continue
        if seen.dist < end_gap(s, arrays, cs, k, velocity) + row_speed(ends.rows, k, 0, dq):
            if not found:
                c_api.call(api.mj_comPos, s.model, s.trial)
            found = True
            for p in range(arrays.panel[k], arrays.panel[k + 1]):
                fill_panel(s, trial, seen, arrays.panel_tree[p], arrays.row[k + 1] - arrays.row[k],
                           arrays.panel_at[p], ends.rows.values)  # fmt: skip
            ends.seen[k] = 1
            for side in range(2):
                for j in range(3):
                    ends.place[k, side, j] = points[side, j]
            cs.sunk[k] = 0.0
            gap = end_gap(s, arrays, cs, k, velocity)
            cs.sunk[k] = gap - seen.dist + row_speed(ends.rows, k, 0, dq)
    return found


@kernel
def most_alike(s: Any, arrays: Arrays, ends: Ends, cs: Constraints, velocity: np.ndarray,
               dq: np.ndarray, seen: Any, points: np.ndarray) -> int:  # fmt: skip
    """Return the contact that is to stand for one of the trial; -1 if there is none.

    It is the nearest of the same geoms and with a similar normal. But if that was seen elsewhere,
    it is the one of them that is farthest open: two ends of a body that turns would else take turns
    to be the same contact.

    Args:
        s: the record of the step.
        arrays: the contact problem.
        ends: its constraints where the step ends.
        cs: its constraints.
        velocity: its solution.
        dq: displacements that lead to the trial.
        seen: a contact of the trial.
        points: (2, 3) where its point was at the beginning of the step, as part of either geom.
    """
    best, least, widest_open, most = -1, np.inf, -1, -np.inf
    radius = floats(s.radius, 1, s.ngeom)[0]
    for k in range(cs.kind.shape[0]):
        if cs.kind[k] != CONTACT or cs.geom[k, 0] != seen.geom[0] or cs.geom[k, 1] != seen.geom[1]:
            continue
        cosine = one = other = 0.0
        for e in range(3):
            cosine += seen.frame[e] * cs.place[k, 3 + e]
            one += square(points[0, e] - ends.place[k, 0, e])
            other += square(points[1, e] - ends.place[k, 1, e])
        if cosine <= s.similar_normal or is_short(s, arrays, k):
            continue
        if min(one, other) < least:
            best, least = k, min(one, other)
        gap = end_gap(s, arrays, cs, k, velocity) + row_speed(ends.rows, k, 0, dq)
        if gap > most:
            widest_open, most = k, gap
    near = s.same_place * smaller(radius[seen.geom[0]], radius[seen.geom[1]])
    return widest_open if best >= 0 and ends.seen[best] == 1 and least > near * near else best


@kernel
def drop_useless(s: Any, api: Any, arrays: Arrays, cs: Constraints, answer: Answer,
                 label: np.ndarray, dq: np.ndarray, least: float) -> tuple[bool, bool]:  # fmt: skip
    """Leave violations as they are where a displacement does not help.

    The surfaces are looked at where the displacements lead, if something is deeper than `least`.

    Returns:
        Whether there are any, and whether limits or equalities are among them.
    """
    trial, useless, moved, joints = data_at(s.trial), False, False, False
    for island in range(s.ntree):
        if label[island] != island:
            continue
        left, displaced = 0.0, False
        for t in range(s.ntree):
            if label[t] == island:
                for j in range(arrays.tree[t], arrays.tree[t + 1]):
                    displaced = displaced or dq[j] != 0.0
        for i in range(cs.kind.shape[0]):
            if cs.kind[i] == CONTACT and island_of(arrays, label, i) == island:
                left = max(left, violation(s, arrays, cs, i, answer.velocity))
        if left <= least * s.size or not displaced:
            continue
        if not moved:
            move_trial(s, api, s.displacement, 1.0)
            list_touching(s, api)
            moved = True
        after = 0.0
        for i in range(cs.kind.shape[0]):
            if cs.kind[i] != CONTACT or island_of(arrays, label, i) != island:
                continue
            if violation(s, arrays, cs, i, answer.velocity) < 0.5 * left:
                continue
            for e in range(trial.ncon):
                seen = contact_at(trial.contact + e * CONTACT_SIZE)
                if seen.geom[0] == cs.geom[i, 0] and seen.geom[1] == cs.geom[i, 1]:
                    after = max(after, -seen.dist)
        if after > left - s.helpful * min(left, s.correction_step):
            useless = True
            scale_island(arrays, label, island, 0.0, dq)
            joints = leave_overlaps(s, arrays, cs, answer, label, island) or joints
    return useless, joints


@kernel
def leave_overlaps(s: Any, arrays: Arrays, cs: Constraints, answer: Answer, label: np.ndarray,
                   island: int) -> bool:  # fmt: skip
    """Leave the deep contacts of an island alone, whatever moves; whether anything else is left."""
    some = False
    for i in range(cs.kind.shape[0]):
        if island_of(arrays, label, i) != island:
            continue
        left = violation(s, arrays, cs, i, answer.velocity)
        if cs.kind[i] != CONTACT:
            some = some or left > s.uncorrected * s.size
        elif left > s.slight * s.size:
            cs.sunk[i] = -np.inf
    return some


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
def energies(s: Any, api: Any, part: float, total_out: np.ndarray, kinetic_out: np.ndarray) -> None:
    """Fill the energy of each tree where a part of the displacements leads; the kinetic one, too.

    Gravity and motion: in other places the same velocities are another kinetic energy.
    """
    trial, opt = data_at(s.trial), structs.option_at(s.opt)
    move_trial(s, api, s.displacement, part)
    structs.copy(trial.qvel, data_at(s.data).qvel, 8 * s.nv)
    c_api.call(api.mj_comPos, s.model, s.trial)
    c_api.call(api.mj_comVel, s.model, s.trial)
    g = floats(s.scratch, 1, 3)[0]
    for e in range(3):
        g[e] = 0.0 if s.disabled & WEIGHTLESS else opt.gravity[e]
    place, mass = floats(trial.xipos, s.nbody, 3), floats(s.body_mass, 1, s.nbody)[0]
    velocity, inertia = floats(trial.cvel, s.nbody, 6), floats(trial.cinert, s.nbody, 10)
    of_body, of_dof = words(s.tree_of_body, 1, s.nbody)[0], words(s.tree_of, 1, s.nv)[0]
    qvel, armature = floats(trial.qvel, 1, s.nv)[0], floats(s.dof_armature, 1, s.nv)[0]
    for t in range(s.ntree):
        total_out[t] = kinetic_out[t] = 0.0
    for b in range(s.nbody):
        t = of_body[b]
        if t >= 0:
            kinetic_out[t] += kinetic_energy(velocity[b], inertia[b])
            for e in range(3):
                total_out[t] -= mass[b] * g[e] * place[b, e]
    for j in range(s.nv):
        kinetic_out[of_dof[j]] += 0.5 * armature[j] * qvel[j] * qvel[j]
    for t in range(s.ntree):
        total_out[t] += kinetic_out[t]


@kernel
def kinetic_energy(v: np.ndarray, i: np.ndarray) -> float:
    """Return the kinetic energy of a body with the spatial velocity v and MuJoCo's `cinert` i."""
    turn = i[0] * v[0] * v[0] + i[1] * v[1] * v[1] + i[2] * v[2] * v[2]
    turn += 2.0 * (i[3] * v[0] * v[1] + i[4] * v[0] * v[2] + i[5] * v[1] * v[2])
    both = i[6] * (v[2] * v[4] - v[1] * v[5]) + i[7] * (v[0] * v[5] - v[2] * v[3])
    both += i[8] * (v[1] * v[3] - v[0] * v[4])
    shift = i[9] * (v[3] * v[3] + v[4] * v[4] + v[5] * v[5])
    return 0.5 * (turn + 2.0 * both + shift)


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
def budget(s: Any, arrays: Arrays, cs: Constraints, answer: Answer, label: np.ndarray,
           before: np.ndarray, island: int) -> tuple[float, float, bool]:  # fmt: skip
    """Return what pays for the displacement of an island before speed does, and after it.

    Impulses p take ``-1/2 p (v + v+)`` out of the motion; of that, what gravity has put in while
    they acted is not lost: a step takes out ``1/2 |v+ - v|^2 - p v+`` altogether. The lesser of the
    two pays, since the motion of bodies that spin changes without impulses, too; but never more
    than ``-1/2 p (v_free + v+)``, what impulses have taken out of the free motion. The rest of that
    pays where speed does not suffice: where it ends there is no more energy than without contact.

    Also whether bodies were placed in each other, which nobody pays for.
    """
    change = deep = first = last = fall = 0.0
    for t in range(s.ntree):
        if label[t] == island:
            begin, size = arrays.tree[t], arrays.tree[t + 1] - arrays.tree[t]
            for i in range(size):
                by = answer.velocity[begin + i] - before[begin + i]
                for j in range(size):
                    mass = 0.5 * arrays.inertia[arrays.block[t] + i * size + j]
                    change += mass * by * (answer.velocity[begin + j] - before[begin + j])
    for i in range(cs.kind.shape[0]):
        if island_of(arrays, label, i) == island:
            if (cs.kind[i] == CONTACT or cs.kind[i] == LIMIT) and not is_soft(arrays, cs, i):
                deep = max(deep, -cs.gap[i])
            for r in range(arrays.row[i], arrays.row[i + 1]):
                if answer.impulse[r] != 0.0:
                    e = r - arrays.row[i]
                    first += answer.impulse[r] * row_speed(arrays, i, e, before)
                    fall += answer.impulse[r] * row_speed(arrays, i, e, arrays.free)
                    last += answer.impulse[r] * row_speed(arrays, i, e, answer.velocity)
    taken = max(-0.5 * (fall + last), 0.0)
    lost = max(min(-0.5 * (first + last), change - last, taken), 0.0)
    return lost, taken - lost, deep > s.deep * s.size


@kernel
def cost_of(s: Any, arrays: Arrays, label: np.ndarray, island: int, dq: np.ndarray,
            energy: np.ndarray) -> tuple[float, float]:  # fmt: skip
    """Return what the displacement of an island costs, and its kinetic energy after it.

    Args:
        s: the record of the step.
        arrays: the contact problem.
        label: island of each tree.
        island: the one that pays.
        dq: displacements.
        energy: (3, ntree) of each tree before and after them, and the kinetic part of the last.
    """
    d = data_at(s.data)
    spring, lift = floats(d.qfrc_spring, 1, s.nv)[0], floats(d.qfrc_gravcomp, 1, s.nv)[0]
    cost = kinetic = 0.0
    for t in range(s.ntree):
        if label[t] == island:
            cost += energy[1, t] - energy[0, t]
            kinetic += energy[2, t]
            for j in range(arrays.tree[t], arrays.tree[t + 1]):
                cost -= (spring[j] + lift[j]) * dq[j]
    return cost, kinetic


@kernel
def scale_island(arrays: Arrays, label: np.ndarray, island: int, by: float,
                 x_inout: np.ndarray) -> None:  # fmt: skip
    """Multiply the coordinates of an island."""
    for t in range(label.shape[0]):
        if label[t] == island:
            for j in range(arrays.tree[t], arrays.tree[t + 1]):
                x_inout[j] *= by


@kernel
def pay(s: Any, api: Any, arrays: Arrays, cs: Constraints, answer: Answer, label: np.ndarray,
        before: np.ndarray, dq: np.ndarray) -> None:  # fmt: skip
    """Let each island pay for its displacement: with what impulses have taken, then with speed.

    Displacements that cannot be paid for become shorter.
    """
    d, energy = data_at(s.data), floats(s.energy, 3, s.ntree)
    energies(s, api, 0.0, energy[0], energy[2])
    for turn in range(PAYMENTS):
        energies(s, api, 1.0, energy[1], energy[2])
        shorter = False
        for island in range(s.ntree):
            if label[island] != island:
                continue
            cost, kinetic = cost_of(s, arrays, label, island, dq, energy)
            if not cost > 0.0:
                continue
            lost, spare, placed = budget(s, arrays, cs, answer, label, before, island)
            means = lost + spare + s.paid * kinetic
            if cost > means and not placed:
                part = means / cost if turn < PAYMENTS - 2 else 0.0
                scale_island(arrays, label, island, part, dq)
                shorter = True
        if not shorter:
            break
    qvel, qacc = floats(d.qvel, 1, s.nv)[0], floats(d.qacc, 1, s.nv)[0]
    warmstart = floats(d.qacc_warmstart, 1, s.nv)[0]
    for island in range(s.ntree):
        if label[island] != island:
            continue
        cost, kinetic = cost_of(s, arrays, label, island, dq, energy)
        if not cost > 0.0:
            continue
        owed = cost - budget(s, arrays, cs, answer, label, before, island)[0]
        paid = min(owed, s.paid * kinetic)
        if not paid > 0.0:
            continue
        scale_island(arrays, label, island, np.sqrt(1.0 - paid / kinetic), qvel)
        for t in range(s.ntree):
            if label[t] == island:
                for j in range(arrays.tree[t], arrays.tree[t + 1]):
                    qacc[j] = warmstart[j] = (qvel[j] - before[j]) / s.h


@kernel
def stabilize(s: Any, api: Any, arrays: Arrays, cs: Constraints, answer: Answer,
              rest: int) -> None:  # fmt: skip
    """Correct the position after the step, if there is anything to correct.

    Args:
        s: the record of the step, already integrated.
        api: MuJoCo's functions.
        arrays: the contact problem.
        cs: its constraints.
        answer: its solution.
        rest: address of what is left of the work array.
    """
    dq = floats(s.displacement, 1, s.nv)[0]
    for j in range(s.nv):
        dq[j] = 0.0
    ends = rows_of_end(s, arrays, cs, rest)
    rest += 8 * (s.entries + 7 * s.constraints)
    if s.correct == 1 and s.lookaheads >= s.lookahead_rounds:  # nobody has looked at this motion
        for i in range(cs.kind.shape[0]):
            cs.sunk[i] = 0.0
        measure_again(s, api, arrays, ends, cs, answer.velocity, dq)
        violations(s, arrays, cs, answer.velocity)
    if s.correct == 0 or s.left_over <= s.uncorrected * s.size:
        s.stuck = 0
        return
    d, label = data_at(s.data), words(s.island, 1, s.ntree)[0]
    label_islands(arrays, label)
    whole, doubtful = displace(s, arrays, ends, cs, answer, label, rest), False
    for k in range(1, s.corrections):
        sunk = s.left_over > s.sunk * s.size and widest(dq) > 0.0
        if not sunk or not measure_again(s, api, arrays, ends, cs, answer.velocity, dq):
            break
        whole, doubtful = displace(s, arrays, ends, cs, answer, label, rest), k == s.corrections - 1
    least = s.uncorrected if doubtful else s.slight
    useless, joints = drop_useless(s, api, arrays, cs, answer, label, dq, least)
    if joints:
        displace(s, arrays, ends, cs, answer, label, rest)
    if not whole or useless:
        s.stuck += 1
    elif widest(dq) > 0.0:
        s.stuck = 0
    if widest(dq) == 0.0:
        return
    drifts = False
    for i in range(cs.kind.shape[0]):
        drifts = drifts or (arrays.law[i] == RIGID and abs(cs.gap[i]) > s.touching * s.size)
    if not drifts:
        before = floats(s.before + 8 * (1 + s.nq), 1, s.nv)[0]
        pay(s, api, arrays, cs, answer, label, before, dq)
    hold(s, dq)
    c_api.call_integrate(api.mj_integratePos, s.model, d.qpos, s.displacement, 1.0)
    s.corrected = max(s.corrected, widest(dq))
