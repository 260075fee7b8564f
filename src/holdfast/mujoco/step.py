"""A step: the six stages of `docs/mujoco.rst`, in compiled code that calls MuJoCo's functions."""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

from types import FunctionType
from typing import Any

import numpy as np

from holdfast._jit import CEntry, entry, kernel
from holdfast.contact.arrays import Answer, Arrays, SolveStatus, row_speed
from holdfast.contact.giving import memory_if_giving, solve_giving
from holdfast.contact.ladder import FACTORISATIONS, JAMMED, RESIDUAL, RUNG
from holdfast.contact.near import memory_needed, solve_near
from holdfast.contact.options import DEFAULT, Numbers
from holdfast.contact.prediction import FROM_MOTION
from holdfast.mujoco import c_api, structs
from holdfast.mujoco.constraints import (
    CONTACT,
    NO_SLIP,
    Constraints,
    carve,
    choose_limits,
    closing_speed,
    is_free,
    read_constraints,
    revise_limits,
    take_gaps,
    takes_part,
)
from holdfast.mujoco.contact_rows import any_listed
from holdfast.mujoco.friction_watch import lacks_friction
from holdfast.mujoco.lookahead import (
    LISTED,
    NOTHING,
    closes_searched,
    limit_contacts,
    look_ahead,
    moves_far,
)
from holdfast.mujoco.loop import begin_step, end_step, must_pause, set_pause
from holdfast.mujoco.outcome import CLOSED
from holdfast.mujoco.record import Stage, Status, record_at
from holdfast.mujoco.sleep import SLEEP, find_islands, hold
from holdfast.mujoco.smooth import (
    DISCRETE,
    IMPLICIT,
    IMPLICITFAST,
    RK4,
    UNCONSTRAINED,
    accelerate,
    any_beyond,
    choose_inertia,
    copy_segments,
    factors,
    fill_inertia,
    is_finite,
    is_seen,
    keep_rows,
    list_reachable,
    list_rows,
    memory_warnings,
    smooth,
)
from holdfast.mujoco.stabilization import correction_size, stabilize, violations
from holdfast.mujoco.structs import data_at, floats, words
from holdfast.mujoco.warm_start import keep_added, kept_moves, recall, remember
from holdfast.mujoco.writeback import (
    integrate,
    list_as_user,
    mark_contacts,
    read_limit_sensors,
    read_sensors,
    write_back,
)

ROUGH_LOOKS = 2  # looks ahead from motions that are rough: then most of what is met is listed

_SOLVER = DEFAULT.numbers()
_SOLVED, _APPROXIMATE = int(SolveStatus.SOLVED), int(SolveStatus.APPROXIMATE)


@kernel
def has_room(s: Any, arrays: Arrays, answer: Answer, rest: int) -> bool:
    """Return whether memory suffices for the solves of a step and of a correction.

    Memory never decides what is solved: where it does not suffice, nothing is.
    """
    before = (rest - s.work) // 8
    s.work_needed = before + correction_size(s)
    if s.rigid_contacts == 1:
        s.work_needed += memory_needed(arrays)
    else:
        left = s.work_size - before
        work, integers = floats(rest, 1, left)[0], words(rest, 1, left)[0]
        s.work_needed += memory_if_giving(arrays, factors(s), answer, work, integers)
    s.capacity_needed = 0
    return s.work_needed <= s.work_size and s.constraints <= s.memo_size


@kernel
def tolerances(s: Any, rough: float, resumed: bool) -> Numbers:
    """Return the tolerances of the contact solve, some of which are options of the step."""
    return Numbers(
        s.certificate, _SOLVER.stop, s.approximate, _SOLVER.canonical_compliance,
        _SOLVER.active_compliance, _SOLVER.least_compliance, _SOLVER.little_compliance,
        _SOLVER.last_compliance, _SOLVER.on_path, _SOLVER.on_fold, _SOLVER.on_limit, _SOLVER.split,
        _SOLVER.settled, _SOLVER.contradicts, _SOLVER.zero_row, rough,
        resumed,
    )  # fmt: skip


@kernel
def solve_contacts(s: Any, arrays: Arrays, answer: Answer, rest: int, rough: float,
                   resumed: bool) -> int:  # fmt: skip
    """Stage 3: find velocity and impulses; return DONE, DIVERGED or UNSOLVED.

    The answer begins with the velocity before the step, or of a solve with nearly the same rows. A
    residual of `rough` suffices where it is more than the certificate. Where a solve is resumed,
    islands stay as they are that the impulses at hand answer: others have changed. An inertia that
    is lost in rounding, because bodies are millions of sizes away, comes with accelerations beyond
    all bounds, or with bodies that are on the way there.
    """
    left = s.work_size - (rest - s.work) // 8
    work, integers = floats(rest, 1, left)[0], words(rest, 1, left)[0]
    near = s.near * s.size / s.h
    o = tolerances(s, rough, resumed)
    if s.rigid_contacts == 1:
        status = solve_near(arrays, factors(s), answer, work, integers, near, o)
    else:
        status = solve_giving(arrays, factors(s), answer, work, integers, near, o)
    s.solve_status, s.residual = status, answer.report[RESIDUAL]
    s.solves += 1
    s.factorisations += int(answer.report[FACTORISATIONS])
    s.rung = max(s.rung, int(answer.report[RUNG]))
    if status == _SOLVED:
        return Status.DONE
    if is_lost(s):
        return Status.DIVERGED
    if status == _APPROXIMATE and s.strict == 0:
        return Status.DONE
    accelerate(s, c_api.api_at(s.api))
    if any_beyond(floats(data_at(s.data).qacc_smooth, 1, s.nv)[0]):
        return Status.DIVERGED
    return Status.UNSOLVED


@kernel
def is_lost(s: Any) -> bool:
    """Return whether a coordinate moves so fast that nothing is known of where it meets others."""
    qvel, fastest = floats(data_at(s.data).qvel, 1, s.nv)[0], 0.0
    for j in range(s.nv):
        fastest = max(fastest, abs(qvel[j]))
    return s.h * max(1.0, 1.0 / s.size) * fastest > s.diverged


@kernel
def solve_limits(s: Any, arrays: Arrays, cs: Constraints, answer: Answer, rest: int,
                 rough: float, resumed: bool) -> int:  # fmt: skip
    """Stage 3 with compliant limits: solve until none pulls, and all that should press do.

    Where that takes too many rounds, the rest is loaded in the next step.
    """
    if s.rigid_limits == 1:
        return solve_contacts(s, arrays, answer, rest, rough, resumed)
    choose_limits(arrays, cs, floats(data_at(s.data).qvel, 1, s.nv)[0])
    status, left = solve_contacts(s, arrays, answer, rest, rough, resumed), s.limit_rounds
    while status == Status.DONE and revise_limits(arrays, cs, answer, left > 0):
        left -= 1
        status = solve_contacts(s, arrays, answer, rest, rough, resumed)
    return status


@kernel
def read_problem(s: Any) -> int:
    """Stage 2: fill the arrays of the solve; return DONE or MORE_MEMORY."""
    status = read_constraints(s)
    if status != Status.DONE:
        return status
    arrays, answer, _, rest = carve(s)
    return Status.DONE if has_room(s, arrays, answer, rest) else Status.MORE_MEMORY


@kernel
def find_motion(s: Any, api: Any) -> int:
    """Stages 2 to 4: rows, solve, look-ahead; return DONE, or why there is no motion."""
    free = floats(s.free, 1, s.nv)[0]
    if s.has_inertia == 0:
        status = fill_inertia(s, api, free)
        if status != Status.DONE:
            return status
        hold(s, free)
        if s.adhesive == 1 and s.rigid_contacts == 1:
            list_reachable(s, api)
            take_gaps(s)
        s.has_inertia = 1
    status = read_problem(s)
    if status != Status.DONE:
        return status
    arrays, answer, cs, rest = carve(s)
    rough = 0.0
    if s.only_read == 1:
        return Status.STOPPED
    if s.integrator != DISCRETE and is_free(s, arrays, cs):
        s.contact_free = 1
        for j in range(s.nv):
            answer.velocity[j] = free[j]
        for r in range(s.rows):
            answer.impulse[r] = 0.0
        for i in range(s.constraints):
            answer.state[i] = 0
    else:
        recall(s, arrays, cs, answer)
        if s.lookaheads == 0:  # else memory had to grow: there is a motion
            structs.copy(s.velocity, data_at(s.data).qvel, 8 * s.nv)
        rough = roughness(s)
        status = solve_limits(s, arrays, cs, answer, rest, rough, s.lookaheads > 0)
        if status == Status.DONE and s.lookaheads == 0 and kept_moves(s, arrays, cs, answer):
            data_at(s.data).ncon, s.kept_count = s.collided, 0
            limit_contacts(s)
            list_rows(s, api)
            status = read_problem(s)
            if status != Status.DONE:
                return status
            arrays, answer, cs, rest = carve(s)
            recall(s, arrays, cs, answer)
            structs.copy(s.velocity, data_at(s.data).qvel, 8 * s.nv)
            status = solve_limits(s, arrays, cs, answer, rest, rough, False)
    while status == Status.DONE and s.lookaheads < s.lookahead_rounds:
        if any_beyond(answer.velocity):
            return Status.DIVERGED
        v = answer.velocity
        far = s.rigid_contacts == 1 and (moves_far(s, v) or closes_searched(s, arrays, cs, v))
        found = look_ahead(s, api, arrays, cs, v, far)
        if found == NOTHING:
            if s.contact_free == 1 or s.residual <= s.certificate or rough == 0.0:
                break
            s.precise, rough = 1, 0.0
            status = solve_limits(s, arrays, cs, answer, rest, rough, True)
            continue
        s.lookaheads += 1  # also those before memory had to grow
        s.contact_free = 0
        s.redone += 1
        rough = roughness(s)
        remember(s, arrays, cs, answer)
        if found == LISTED:
            status = read_problem(s)
            if status != Status.DONE:
                return status
            arrays, answer, cs, rest = carve(s)
            recall(s, arrays, cs, answer)
        else:
            update_gaps(s, arrays, cs)
            forget_states(arrays, answer)
        status = solve_limits(s, arrays, cs, answer, rest, rough, True)
    if status == Status.DONE and s.contact_free == 1:  # what sinks in all the same is corrected
        violations(s, arrays, cs, answer.velocity)
        s.contact_free = s.left_over <= s.sunk * s.size
    return status


@kernel
def roughness(s: Any) -> float:
    """Return the residual that suffices for the next solve; 0 if it has to be certified."""
    looks = min(ROUGH_LOOKS, s.lookahead_rounds) if s.rigid_contacts == 1 else 0
    return s.rough if s.precise == 0 and s.lookaheads < looks else 0.0


@kernel
def forget_states(arrays: Arrays, answer: Answer) -> None:
    """Let states follow from the motion that was found last."""
    for i in range(arrays.law.shape[0]):
        if takes_part(arrays, i):
            answer.state[i] = FROM_MOTION


@kernel
def update_gaps(s: Any, arrays: Arrays, cs: Constraints) -> None:
    """Take over gaps that the look-ahead has corrected."""
    gaps = floats(s.gaps, 1, s.capacity)[0]
    for k in range(cs.kind.shape[0]):
        if cs.kind[k] == CONTACT and gaps[cs.source[k]] != cs.gap[k]:
            r, gap = arrays.row[k], gaps[cs.source[k]]
            arrays.target[r] += closing_speed(s, gap) - closing_speed(s, cs.gap[k])
            cs.gap[k] = gap


@kernel
def write_freely(s: Any, api: Any) -> None:
    """Write the acceleration of a step in which nothing touches, and no forces."""
    d, nv = data_at(s.data), s.nv
    accelerate(s, api)
    if not any_listed(s):
        if s.integrator != DISCRETE:
            c_api.call(api.mj_fwdConstraint, s.model, s.data)
        return
    qacc, smooth_qacc = floats(d.qacc, 1, nv)[0], floats(d.qacc_smooth, 1, nv)[0]
    warmstart, force = floats(d.qacc_warmstart, 1, nv)[0], floats(d.qfrc_constraint, 1, nv)[0]
    for j in range(nv):
        qacc[j] = warmstart[j] = smooth_qacc[j]
        force[j] = 0.0
    if is_seen(s):
        arrays, answer, cs, _ = carve(s)
        mark_contacts(s, arrays, cs, answer)
        list_as_user(s, api, arrays, cs, answer)
        efc_force = floats(d.efc_force, 1, d.nefc)[0]
        for r in range(d.nefc):
            efc_force[r] = 0.0


@kernel
def integrate_freely(s: Any, api: Any) -> None:
    """Advance the state as MuJoCo does, with its own integrator.

    The stages of RK4 are as free as the step: within margins MuJoCo's soft contacts would push.
    """
    opt, d = structs.option_at(s.opt), data_at(s.data)
    if s.integrator != DISCRETE:
        opt.disableflags = s.disabled
    if s.integrator == RK4:
        copy_segments(words(s.segments, s.nsegment, 3))
        opt.disableflags |= UNCONSTRAINED
        opt.enableflags &= ~SLEEP
        c_api.call_flag(api.mj_RungeKutta, s.model, s.data, np.int32(4))
    elif s.integrator == IMPLICIT or s.integrator == IMPLICITFAST:
        c_api.call(api.mj_implicit, s.model, s.data)
    else:
        c_api.call(api.mj_Euler, s.model, s.data)
    structs.copy(s.velocity, d.qvel, 8 * s.nv)


@kernel
def leave(s: Any) -> None:
    """Remember what the next step of the same data has to know."""
    d = data_at(s.data)
    structs.copy(s.left, d.qpos, 8 * s.nq)
    s.left_time = d.time
    if s.nmocap > 0:
        pose = floats(s.mocap_pose, s.nmocap, 7)
        pos, quat = floats(d.mocap_pos, s.nmocap, 3), floats(d.mocap_quat, s.nmocap, 4)
        for k in range(s.nmocap):
            for e in range(3):
                pose[k, e] = pos[k, e]
            for e in range(4):
                pose[k, 3 + e] = quat[k, e]


@kernel
def sliding_speed(s: Any, arrays: Arrays, cs: Constraints, answer: Answer) -> float:
    """Return the fastest sliding of a pressed contact whose law is not to slip."""
    fastest = largest = 0.0
    for i in range(cs.kind.shape[0]):
        if arrays.law[i] == NO_SLIP:
            largest = max(largest, answer.impulse[arrays.row[i]])
    for i in range(cs.kind.shape[0]):
        first = arrays.row[i]
        if arrays.law[i] != NO_SLIP or answer.impulse[first] <= s.no_force * largest:
            continue
        square = 0.0
        for e in range(1, min(3, arrays.row[i + 1] - first)):
            u = row_speed(arrays, i, e, answer.velocity) - arrays.target[first + e]
            square += u * u
        fastest = max(fastest, np.sqrt(square))
    return fastest


@kernel
def finish(s: Any, api: Any) -> int:
    """Stages 5 and 6 after the forces are written: integrate, correct the position, report."""
    arrays, answer, cs, rest = carve(s)
    integrate(s, api)
    violations(s, arrays, cs, answer.velocity)
    stabilize(s, api, arrays, cs, answer, rest)
    remember(s, arrays, cs, answer)
    keep_added(s, arrays, cs, answer)
    leave(s)
    s.fastest = max(s.fastest, sliding_speed(s, arrays, cs, answer))
    s.lacks = s.quiet == 0 and lacks_friction(s, arrays, cs, answer)
    approximate = s.solve_status == _APPROXIMATE
    s.uncertified += approximate
    s.inconsistent += answer.report[JAMMED] > 0.0
    told = not must_tell_overlap(s)
    told = told and (s.told_rk4 == 1 or s.integrator != RK4)
    told = told and (s.told_uncertified == 1 or not approximate)
    return Status.DONE if told and s.lacks == 0 else Status.REPORT


@kernel
def must_tell_overlap(s: Any) -> bool:
    """Return whether there is an overlap that no motion removes, and nobody has said so."""
    return s.told_overlap == 0 and (s.overlaps > 0 or s.stuck >= s.hopeless_after)


@kernel
def speeds_up(s: Any, api: Any) -> bool:
    """Return whether forces change the motion so much that it may lead beyond all margins."""
    accelerate(s, api)
    qacc, fastest = floats(data_at(s.data).qacc_smooth, 1, s.nv)[0], 0.0
    for j in range(s.nv):
        fastest = max(fastest, abs(qacc[j]))
    return s.h * s.h * fastest * max(1.0, 1.0 / s.size) > s.size_reserve


@kernel
def prepare_motion(s: Any, api: Any) -> int:
    """Stages 2 to 4; nothing is solved if nothing is within reach."""
    if not (any_listed(s) or s.adhesive == 1 or s.only_read == 1 or speeds_up(s, api)):
        s.contact_free = 1
        return Status.DONE
    if s.has_gaps == 0:
        limit_contacts(s)
        if s.most_contacts > s.capacity:
            s.work_needed, s.capacity_needed = 0, s.most_contacts
            return Status.MORE_MEMORY
        take_gaps(s)
        keep_rows(s)
        s.has_gaps = 1
    return find_motion(s, api)


@kernel
def write(s: Any, api: Any) -> int:
    """Stage 5; return DONE or FULL, or FREE or WRITTEN if the rest is left to Python."""
    full = memory_warnings(s)
    if is_seen(s):
        accelerate(s, api)
    if s.contact_free == 1:
        write_freely(s, api)
        s.left_over = 0.0
        s.memo_count = s.kept_count = 0
    else:
        arrays, answer, cs, _ = carve(s)
        write_back(s, api, arrays, cs, answer)
    if memory_warnings(s) != full:
        return Status.FULL
    find_islands(s, api)
    if s.callbacks == 1:
        return Status.FREE if s.contact_free == 1 else Status.WRITTEN
    read_sensors(s, api)
    return Status.DONE


@kernel
def leaves_bounds(s: Any) -> bool:
    """Return whether the step has led to a state that MuJoCo's bounds exclude."""
    d = data_at(s.data)
    return (
        any_beyond(floats(d.qpos, 1, s.nq)[0])
        or any_beyond(floats(d.qvel, 1, s.nv)[0])
        or not is_finite(floats(d.act, 1, s.na)[0])
    )


@kernel
def take_step(s: Any) -> int:
    """Advance mjData by one step; stages as in docs/mujoco.rst. Return a `Status`."""
    api, status = c_api.api_at(s.api), Status.DONE
    if s.begun == 0:
        s.has_inertia = s.has_gaps = s.contact_free = s.constraints = s.rows = 0
        s.panels = s.entries = s.solve_status = s.lookaheads = s.overlaps = s.rung = 0
        s.precise = 0
        s.begun = 1
    if s.stage == Stage.SMOOTH:
        status = smooth(s, api)
        if status == Status.DONE and s.stop == Stage.SMOOTH:
            status = Status.STOPPED
    if status == Status.DONE and s.stage <= Stage.CONSTRAINTS:
        if s.callbacks == 1:
            choose_inertia(s)
        status = prepare_motion(s, api)
        if status == Status.DONE and s.stop == Stage.CONSTRAINTS:
            status = Status.STOPPED
    if status == Status.DONE and s.stage <= Stage.WRITE:
        status = write(s, api)
    if status != Status.DONE:
        return status
    if s.stage >= Stage.INTEGRATE:
        read_limit_sensors(s)
    if s.integrate == 0:
        return Status.DONE
    if s.contact_free == 0:
        status = finish(s, api)
    else:
        if s.stage != Stage.LEAVE:
            integrate_freely(s, api)
        leave(s)
        if must_tell_overlap(s):
            status = Status.REPORT
    if leaves_bounds(s):
        s.memo_count = s.kept_count = 0
        return Status.DIVERGED
    return status


def _step_at(_model: int, _data: int, _simulation: int, address: int) -> None:
    """Take the steps that a record at an address describes; `guarded` has an empty model."""
    s = record_at(address)
    api, status, steps = c_api.api_at(s.api), Status.DONE, 0
    s.status = Status.MUJOCO_ERROR
    if s.more > 0:
        set_pause(s, api)
    while True:
        pauses = s.more > 0 and must_pause(s, api, steps + 1)
        s.last = s.runs == 0 and (s.more == 0 or pauses)
        if s.runs != 0:
            status = begin_step(s, api)
        if status == Status.DONE:
            status = take_step(s)
        if status != Status.DONE:
            break
        s.begun = s.stage = 0
        if s.runs != 0:
            end_step(s, api)
        if s.more == 0:
            break
        s.more -= 1
        steps += 1
        if pauses:
            status = Status.PAUSED
            break
    s.status = status


step_at = CEntry(_step_at, "the step", 18.0)


@entry
def count_contacts_at(address: int) -> int:
    """Count the contacts that the last motion of the record at an address has closed, or that act.

    See `Outcome.contacts`, which copies all arrays for it.
    """
    arrays, answer, cs, _ = carve(record_at(address))
    count = 0
    for i in range(cs.kind.shape[0]):
        if cs.kind[i] != CONTACT or arrays.row[i + 1] == arrays.row[i]:
            continue
        first, acts = arrays.row[i], False
        for r in range(first, arrays.row[i + 1]):
            acts = acts or answer.impulse[r] != 0.0
        target = arrays.target[first] - arrays.compliance[first] * answer.impulse[first]
        miss, scale = row_speed(arrays, i, 0, answer.velocity) - target, abs(target)
        for p in range(arrays.panel[i], arrays.panel[i + 1]):
            begin = arrays.tree[arrays.panel_tree[p]]
            size = arrays.tree[arrays.panel_tree[p] + 1] - begin
            for j in range(size):
                scale += abs(arrays.values[arrays.panel_at[p] + j] * answer.velocity[begin + j])
        count += acts or miss <= CLOSED * scale
    return count


def carve_in_python(record: np.ndarray) -> tuple[Arrays, Answer, Constraints, int]:
    """The arrays of the last step as views, see `carve`."""
    plain = getattr(carve, "py_func", carve)
    scope = {**plain.__globals__, "floats": structs.plain_floats, "words": structs.plain_words}
    return FunctionType(plain.__code__, scope)(structs.Fields(record[0]))
