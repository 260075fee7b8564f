"""Stage 1: kinematics, contacts within reach, smooth forces; inertia and free velocity.

MuJoCo's integrators treat damping implicitly: ``A (v+ - v) = h f`` with ``A = M + h D``. If contact
were solved with M and damping applied afterwards, the velocity that is integrated would not be the
one that was solved for, and feet would slip. Here contact impulses act through the same A:

    A (v+ - v_free) = (impulses),    v_free = v + h A^-1 f

What D is, the model's integrator says:

============  ==============================================================================
integrator    A
============  ==============================================================================
Euler, RK4    M + h (joint damping); M alone with the flag eulerdamp disabled
implicitfast  M - h (derivative of all smooth forces but Coriolis by velocity), symmetric part
implicit      the same with Coriolis, symmetric part; M where that is not positive definite
discrete      M + h D + h^2 K, with springs and position servos, too
============  ==============================================================================

A has one dense block for each kinematic tree.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast._jit import entry, kernel
from holdfast.contact.arrays import Factors
from holdfast.contact.system import FREE_BODY
from holdfast.errors import UnsupportedError
from holdfast.linalg import ltl
from holdfast.linalg.vectors import square
from holdfast.linalg.views import part, vector
from holdfast.mujoco import c_api, reach, structs
from holdfast.mujoco._mj import mujoco
from holdfast.mujoco.normals import correct_doubtful
from holdfast.mujoco.persistent import add_kept
from holdfast.mujoco.record import Inertia, Status, record_at
from holdfast.mujoco.sleep import NO_ISLANDS, SLEEP, any_asleep, wake
from holdfast.mujoco.structs import booleans, data_at, floats, integers, words

_DISABLED = mujoco.mjtDisableBit.mjDSBL_ISLAND | mujoco.mjtDisableBit.mjDSBL_EULERDAMP
_ENABLED = (
    mujoco.mjtEnableBit.mjENBL_SLEEP
    | mujoco.mjtEnableBit.mjENBL_SPECULATIVE
    | mujoco.mjtEnableBit.mjENBL_FWDINV
    | mujoco.mjtEnableBit.mjENBL_DIAGEXACT
    | mujoco.mjtEnableBit.mjENBL_INVDISCRETE
)
DISABLED, KEPT = int(_DISABLED), ~int(_ENABLED)  # flags that are set, and those left as they are
UNDAMPED = int(mujoco.mjtDisableBit.mjDSBL_EULERDAMP | mujoco.mjtDisableBit.mjDSBL_DAMPER)
UNCONSTRAINED = int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
NO_CONTACTS = int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
ELLIPTIC, PYRAMIDAL = int(mujoco.mjtCone.mjCONE_ELLIPTIC), int(mujoco.mjtCone.mjCONE_PYRAMIDAL)
SPARSE, AUTO = int(mujoco.mjtJacobian.mjJAC_SPARSE), int(mujoco.mjtJacobian.mjJAC_AUTO)
NEWTON = int(mujoco.mjtSolver.mjSOL_NEWTON)
EULER, RK4 = int(mujoco.mjtIntegrator.mjINT_EULER), int(mujoco.mjtIntegrator.mjINT_RK4)
IMPLICIT = int(mujoco.mjtIntegrator.mjINT_IMPLICIT)
IMPLICITFAST = int(mujoco.mjtIntegrator.mjINT_IMPLICITFAST)
DISCRETE = int(mujoco.mjtIntegrator.mjINT_DISCRETE)
_ENERGY = int(mujoco.mjtEnableBit.mjENBL_ENERGY)
STATE_KIND = int(mujoco.mjtState.mjSTATE_INTEGRATION)
_AFTER_VELOCITY = int(mujoco.mjtStage.mjSTAGE_VEL)

ALL = 1 << 40  # more than all contacts
LARGEST = float(mujoco.mjMAXVAL)  # beyond this a state has diverged, by MuJoCo's rule


@kernel
def _rest(numbers: np.ndarray) -> float:
    """Return 0 if all numbers are finite, else NaN.

    Four sums do not wait for each other. They must not be reassociated: all terms would cancel.
    """
    a = b = c = d = 0.0
    part = numbers.shape[0] // 4
    for k in range(part):
        p, q, r, s = numbers[4 * k], numbers[4 * k + 1], numbers[4 * k + 2], numbers[4 * k + 3]
        a += p - p
        b += q - q
        c += r - r
        d += s - s
    for k in range(4 * part, numbers.shape[0]):
        a += numbers[k] - numbers[k]
    return (a + b) + (c + d)


@entry
def is_finite(numbers: np.ndarray) -> bool:
    """Whether all numbers are finite."""
    return _rest(numbers) == 0.0


@kernel
def any_beyond(numbers: np.ndarray) -> bool:
    """Return whether a number is NaN or larger than MuJoCo allows."""
    count = 0
    for k in range(numbers.shape[0]):  # without a way out, so that it is vectorised
        count += not abs(numbers[k]) <= LARGEST
    return count > 0


@entry
def copy_segments(segments: np.ndarray) -> None:
    """Copy stretches of memory, (k, 3): target, source, size [bytes]."""
    for k in range(segments.shape[0]):
        structs.copy(segments[k, 0], segments[k, 1], segments[k, 2])


@kernel
def follow_user(s: Any) -> None:
    """Take over what changed in the user's model, and set what exact contact needs."""
    copy_segments(words(s.segments, s.nsegment, 3))
    opt = structs.option_at(s.opt)
    s.h, s.integrator, s.cone, s.disabled = (
        opt.timestep, opt.integrator, opt.cone, opt.disableflags,
    )  # fmt: skip
    sleeps = opt.enableflags & SLEEP if s.adhesive == 0 and s.integrator != RK4 else 0
    opt.disableflags |= DISABLED & ~NO_ISLANDS if sleeps else DISABLED
    opt.enableflags = (opt.enableflags & KEPT) | sleeps
    opt.solver = NEWTON
    opt.noslip_iterations = 0
    opt.ccd_tolerance = min(opt.ccd_tolerance, s.sunk * s.size)
    if s.integrator == RK4:
        opt.integrator = EULER
    s.sparse = opt.jacobian == SPARSE or (opt.jacobian == AUTO and s.chooses_sparse == 1)
    if lists_contacts(s):
        opt.cone = ELLIPTIC
    choose_inertia(s)


@kernel
def lists_contacts(s: Any) -> bool:
    """Return whether MuJoCo lists rows of contacts, too.

    It does for adhesion, whose transmission looks at them, and for their compliance.
    """
    return s.adhesive == 1 or s.rigid_contacts == 0


@kernel
def choose_inertia(s: Any) -> None:
    """Choose the implicit terms of the inertia by the integrator."""
    if s.integrator == IMPLICITFAST:
        s.inertia_kind = Inertia.MUJOCO if s.spins == 1 else Inertia.DERIVATIVE
    elif s.integrator == IMPLICIT:
        s.inertia_kind = Inertia.MUJOCO
    elif s.integrator == DISCRETE:
        s.inertia_kind = Inertia.DISCRETE
    else:
        s.inertia_kind = Inertia.PLAIN if s.disabled & UNDAMPED else Inertia.DAMPED


@kernel
def track_mocap(s: Any) -> None:
    """Find the velocities of mocap bodies from the change of their poses since the last step.

    A body has been placed, and has no velocity, if the data were not left by the last step, or if
    it has jumped by more than its size.
    """
    d = data_at(s.data)
    pos, quat = floats(d.mocap_pos, s.nmocap, 3), floats(d.mocap_quat, s.nmocap, 4)
    last, velocity = floats(s.mocap_pose, s.nmocap, 7), floats(s.mocap_velocity, s.nmocap, 6)
    size = floats(s.mocap_size, 1, s.nmocap)[0]
    known = d.time == s.left_time
    for k in range(s.nmocap):
        far = 0.0
        for e in range(3):
            velocity[k, e] = (pos[k, e] - last[k, e]) / s.h
            far += square(pos[k, e] - last[k, e])
        turn = rotation_between(last[k, 3:], quat[k], velocity[k, 3:])
        if not known or not far <= size[k] * size[k] or turn > s.mocap_turn:
            for e in range(6):
                velocity[k, e] = 0.0
        else:
            for e in range(3, 6):
                velocity[k, e] /= s.h


@kernel
def rotation_between(a: np.ndarray, b: np.ndarray, turn_out: np.ndarray) -> float:
    """Fill the rotation vector, in the world frame, that turns quaternion a into b; its angle."""
    w = a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3]
    # b a*, vector part
    x = -b[0] * a[1] + b[1] * a[0] - b[2] * a[3] + b[3] * a[2]
    y = -b[0] * a[2] + b[2] * a[0] - b[3] * a[1] + b[1] * a[3]
    z = -b[0] * a[3] + b[3] * a[0] - b[1] * a[2] + b[2] * a[1]
    length = np.sqrt(x * x + y * y + z * z)
    if length == 0.0:
        turn_out[0] = turn_out[1] = turn_out[2] = 0.0
        return 0.0
    angle = 2.0 * np.arctan2(length, abs(w))
    scale = angle / length if w >= 0.0 else -angle / length
    turn_out[0], turn_out[1], turn_out[2] = x * scale, y * scale, z * scale
    return angle


@kernel
def check_state(s: Any, api: Any) -> int:
    """Keep the state before the step; return DONE, or what is wrong with it."""
    d = data_at(s.data)
    s.collided = ALL  # until contacts are listed that collision detection has not found
    c_api.call_state(api.mj_getState, s.model, s.data, s.before, np.int32(s.state_kind))
    if not (s.h > 0.0 and s.h < np.inf):
        return Status.BAD_TIMESTEP
    if not is_finite(floats(s.before, 1, s.nstate)[0]):
        return Status.NOT_FINITE
    if any_beyond(floats(d.qpos, 1, s.nq)[0]) or any_beyond(floats(d.qvel, 1, s.nv)[0]):
        return Status.DIVERGED
    return Status.DONE


@entry
def begin_at(address: int) -> int:
    """Begin the step of the record at an address, before MuJoCo's pipeline; return a `Status`."""
    s = record_at(address)
    follow_user(s)
    status = check_state(s, c_api.api_at(s.api))
    s.accelerated = 1  # when Python is through with MuJoCo's pipeline
    if status == Status.DONE and s.nmocap > 0:
        track_mocap(s)
    return status


@entry
def widen_at(address: int) -> None:
    """Set the margins of the step of the record at an address; velocities of bodies are known."""
    s = record_at(address)
    if s.adhesive == 1 and s.rigid_contacts == 1:
        use_touching_margins(s)
    else:
        reach.widen_margins(s)
        wake(s, c_api.api_at(s.api))


@kernel
def complete_contacts(s: Any, api: Any) -> None:
    """Add the contacts that MuJoCo's collision detection leaves out; exclude unreachable ones.

    Compliant contacts are those of MuJoCo.
    """
    if s.rigid_contacts == 0:
        s.collided = data_at(s.data).ncon
        return
    if s.adhesive == 0:
        correct_doubtful(s, api, s.data)
        reach.add_nearest(s, api)
    add_kept(s, api)
    if s.adhesive == 0 and structs.option_at(s.opt).enableflags & SLEEP == 0:
        reach.leave_out_unreachable(s)


@entry
def complete_contacts_at(address: int) -> None:
    """Complete the list of contacts of the step of the record at an address."""
    s = record_at(address)
    complete_contacts(s, c_api.api_at(s.api))


@kernel
def has_callbacks(api: Any) -> bool:
    """Return whether the user has set any function that MuJoCo calls."""
    return (
        words(api.mjcb_passive, 1, 1)[0, 0] != 0
        or words(api.mjcb_control, 1, 1)[0, 0] != 0
        or words(api.mjcb_contactfilter, 1, 1)[0, 0] != 0
        or words(api.mjcb_sensor, 1, 1)[0, 0] != 0
        or words(api.mjcb_act_dyn, 1, 1)[0, 0] != 0
        or words(api.mjcb_act_gain, 1, 1)[0, 0] != 0
        or words(api.mjcb_act_bias, 1, 1)[0, 0] != 0
    )


@kernel
def memory_warnings(s: Any) -> int:
    """Return how often memory did not suffice for contacts or rows."""
    total = 0
    for kind in structs.FULL:  # each warning has two numbers: what it was about, and how often
        total += integers(s.data + structs.WARNING_AT + 8 * kind + 4, 1, 1)[0, 0]
    return total


@kernel
def list_constraints(s: Any, api: Any) -> None:
    """List contacts and limits within the present margins, and the rows of all but contacts.

    Actuators that attract bodies look for the rows of contacts, too.
    """
    c_api.call(api.mj_collision, s.model, s.data)
    complete_contacts(s, api)
    if s.adhesive == 1:
        make_rows(s, api, True)
    else:
        list_rows(s, api)


@kernel
def has_others(s: Any) -> bool:
    """Return whether the model has equalities, dry friction or limits."""
    some = np.int64(s.neq)
    for limited in (booleans(s.jnt_limited, 1, s.njnt)[0],
                    booleans(s.tendon_limited, 1, s.ntendon)[0]):  # fmt: skip
        for k in range(limited.shape[0]):
            some += limited[k]
    for loss in (floats(s.dof_frictionloss, 1, s.nv)[0],
                 floats(s.tendon_frictionloss, 1, s.ntendon)[0]):  # fmt: skip
        for k in range(loss.shape[0]):
            some += loss[k] != 0.0
    return some > 0


@kernel
def make_rows(s: Any, api: Any, contacts: bool) -> None:
    """Let MuJoCo make the rows of equalities, dry friction and limits, and of contacts if asked."""
    opt = structs.option_at(s.opt)
    given = opt.disableflags
    if not contacts:
        if data_at(s.data).nefc == 0 and not has_others(s):
            return
        opt.disableflags = given | NO_CONTACTS
    c_api.call(api.mj_makeConstraint, s.model, s.data)
    opt.disableflags = given


@kernel
def keep_rows(s: Any) -> None:
    """Keep compliance and reference of equalities, friction and limits for `list_rows`.

    With the discrete integrator MuJoCo finds them at the end of its pipeline only.
    """
    d = data_at(s.data)
    if s.integrator == DISCRETE:
        s.kept_limits = np.int64(d.nl)
        s.kept_rows = np.int64(d.ne) + np.int64(d.nf) + s.kept_limits
        structs.copy(s.row_numbers, d.efc_R, 8 * s.kept_rows)
        structs.copy(s.row_numbers + 8 * s.kept_rows, d.efc_aref, 8 * s.kept_rows)


@kernel
def list_rows(s: Any, api: Any) -> None:
    """List rows again, after contacts or margins have changed; of contacts if they give way."""
    d = data_at(s.data)
    make_rows(s, api, s.rigid_contacts == 0)
    if d.nefc > 0:
        c_api.call(api.mj_referenceConstraint, s.model, s.data)
    if s.integrator == DISCRETE:
        same = s.kept_rows if d.nl == s.kept_limits else s.kept_rows - s.kept_limits
        structs.copy(d.efc_R, s.row_numbers, 8 * same)
        structs.copy(d.efc_aref, s.row_numbers + 8 * s.kept_rows, 8 * same)


@kernel
def list_nearest(s: Any, api: Any) -> None:
    """Add the contacts that MuJoCo's collision detection leaves out to the list of all rows."""
    d = data_at(s.data)
    known = np.int64(d.ncon)
    keep_rows(s)
    wrong = False
    if s.adhesive == 0 and s.rigid_contacts == 1:
        wrong = correct_doubtful(s, api, s.data)
        reach.add_nearest(s, api)
    s.collided = d.ncon
    if wrong or s.collided > known:
        list_rows(s, api)


@kernel
def use_touching_margins(s: Any) -> None:
    """Widen the user's margins by a hair: bodies that touch without sinking in do attract."""
    hair = s.adhesion_margin * s.size
    for margin in (floats(s.geom_margin, 1, s.ngeom)[0], floats(s.body_margin, 1, s.nbody)[0],
                   floats(s.pair_margin, 1, s.npair)[0]):  # fmt: skip
        for k in range(margin.shape[0]):
            margin[k] += hair


@kernel
def list_before_velocities(s: Any, api: Any) -> None:
    """List contacts where actuators look for those that they attract, or in one whole stage.

    The metric of the discrete integrator is built by that stage only.
    """
    if s.adhesive == 1 and s.rigid_contacts == 1:
        use_touching_margins(s)
    else:
        c_api.call(api.mj_comVel, s.model, s.data)
        reach.widen_margins(s)
        wake(s, api)
    if s.integrator == DISCRETE:
        c_api.call(api.mj_fwdPosition, s.model, s.data)
        return
    c_api.call(api.mj_makeM, s.model, s.data)
    list_constraints(s, api)
    c_api.call(api.mj_transmission, s.model, s.data)


@kernel
def is_seen(s: Any) -> bool:
    """Return whether anybody may look at more than the state before the next step.

    That is the user after the last step of a call, sensors and plugins, and trees that may fall
    asleep.
    """
    sleeps = structs.option_at(s.opt).enableflags & SLEEP
    return s.last == 1 or s.watched == 1 or sleeps != 0


@kernel
def needs_acceleration(s: Any, api: Any) -> bool:
    """Return whether the smooth acceleration is needed before anything else is known.

    Where the inertia of the step is not M, but has factors of its own for each tree, those of M are
    of use to the user alone, and in steps without contact.
    """
    xfrc = floats(data_at(s.data).xfrc_applied, 1, 6 * s.nbody)[0]
    if is_seen(s) or s.adhesive == 1 or api.sums == 0 or _any(xfrc):
        return True
    if s.inertia_kind != Inertia.DAMPED:
        return s.inertia_kind != Inertia.DERIVATIVE
    damping, tree = floats(s.dof_damping, 1, s.nv)[0], words(s.tree, 1, s.ntree + 1)[0]
    damped = True
    for t in range(s.ntree):
        some = False
        for j in range(tree[t], tree[t + 1]):
            some = some or damping[j] > 0.0
        damped = damped and some
    return not damped


@kernel
def _any(numbers: np.ndarray) -> bool:
    """Return whether a number is not zero."""
    count = 0
    for k in range(numbers.shape[0]):
        count += numbers[k] != 0.0
    return count > 0


@kernel
def accelerate(s: Any, api: Any) -> None:
    """Find the smooth forces and the acceleration that they make, if that has not been done."""
    if s.accelerated == 0:
        c_api.call(api.mj_factorM, s.model, s.data)
        c_api.call(api.mj_fwdAcceleration, s.model, s.data)
        s.accelerated = 1


@kernel
def sum_forces(s: Any) -> None:
    """Find the smooth forces alone; nothing is applied to bodies."""
    d, nv = data_at(s.data), s.nv
    total, passive = floats(d.qfrc_smooth, 1, nv)[0], floats(d.qfrc_passive, 1, nv)[0]
    bias, applied = floats(d.qfrc_bias, 1, nv)[0], floats(d.qfrc_applied, 1, nv)[0]
    actuator = floats(d.qfrc_actuator, 1, nv)[0]
    for j in range(nv):
        total[j] = passive[j] - bias[j] + applied[j] + actuator[j]


@kernel
def forward(s: Any, api: Any) -> None:
    """MuJoCo's pipeline up to the smooth acceleration, with margins that reach far enough."""
    d, opt, m = data_at(s.data), structs.option_at(s.opt), s.model
    energy = opt.enableflags & _ENERGY
    d.flg_energypos = d.flg_energyvel = d.flg_subtreevel = d.flg_rnepost = False
    c_api.call(api.mj_fwdKinematics, m, s.data)
    if s.adhesive == 1 or s.integrator == DISCRETE:
        list_before_velocities(s, api)
        c_api.call(api.mj_fwdVelocity, m, s.data)
    else:
        if any_asleep(s):
            c_api.call(api.mj_comVel, m, s.data)
            reach.widen_margins(s)
            wake(s, api)
        c_api.call(api.mj_makeM, m, s.data)
        c_api.call(api.mj_transmission, m, s.data)
        d.nefc = 0  # rows of the last step have no velocities now
        c_api.call(api.mj_fwdVelocity, m, s.data)
        reach.widen_margins(s)
        list_constraints(s, api)
    if s.nsensor > 0:
        c_api.call(api.mj_sensorPos, m, s.data)
        c_api.call(api.mj_sensorVel, m, s.data)
    if energy:
        c_api.call(api.mj_energyPos, m, s.data)
        c_api.call(api.mj_energyVel, m, s.data)
    if s.integrator == DISCRETE:
        c_api.call_flags(api.mj_forwardSkip, m, s.data, np.int32(_AFTER_VELOCITY), np.int32(1))
        list_nearest(s, api)
        s.accelerated = 1
        return
    c_api.call(api.mj_fwdActuation, m, s.data)
    s.accelerated = 0
    if needs_acceleration(s, api):
        accelerate(s, api)
    else:
        sum_forces(s)


@kernel
def list_reachable(s: Any, api: Any) -> None:
    """List what can be reached in this step; adhesion needed the user's margins before."""
    c_api.call(api.mj_comVel, s.model, s.data)
    reach.widen_margins(s)
    c_api.call(api.mj_collision, s.model, s.data)
    complete_contacts(s, api)
    list_rows(s, api)


@kernel
def smooth(s: Any, api: Any) -> int:
    """Stage 1 in compiled code; return DONE, or why the step cannot be taken."""
    if has_callbacks(api):
        return Status.CALLBACKS
    follow_user(s)
    status = check_state(s, api)
    if status != Status.DONE:
        return status
    if s.nmocap > 0:
        track_mocap(s)
    full = memory_warnings(s)
    forward(s, api)
    return Status.FULL if memory_warnings(s) != full else Status.DONE


@kernel
def factors(s: Any) -> Factors:
    """Return the factors of the inertia that this step has found so far."""
    return Factors(
        floats(s.factor, 1, s.nblock)[0], words(s.below, 1, s.nblock + s.nv)[0],
        words(s.factored, 1, s.ntree)[0],
    )  # fmt: skip


@kernel
def fill_inertia(s: Any, api: Any, free: np.ndarray) -> int:
    """Fill the inertia of each tree and the free velocity; return DONE or MORE_BLOCKS.

    Factors that this takes are kept for the contact solve.
    """
    d, nv, h, kind, f = data_at(s.data), s.nv, s.h, s.inertia_kind, factors(s)
    inertia, qvel = floats(s.inertia, 1, s.nblock)[0], floats(d.qvel, 1, nv)[0]
    rate, force = floats(d.qacc_smooth, 1, nv)[0], floats(d.qfrc_smooth, 1, nv)[0]
    for t in range(s.ntree):
        f.known[t] = 0
    if s.accelerated == 1:
        for j in range(nv):
            free[j] = qvel[j] + h * rate[j]
    if kind == Inertia.DERIVATIVE and api.mjd_smooth_vel != 0:
        c_api.call_flag(api.mjd_smooth_vel, s.model, s.data, np.int32(0))
    elif kind == Inertia.DERIVATIVE or kind == Inertia.MUJOCO:
        step_implicitly(s, api, d, free)
    if kind == Inertia.DERIVATIVE or kind == Inertia.MUJOCO:
        fill_implicit(s, d, inertia, h)
    else:
        fill_mass(s, d, 0, s.nblock, inertia)
    if kind == Inertia.PLAIN:
        return Status.DONE
    if kind == Inertia.DISCRETE and d.efm_active != 0 and not add_discrete(s, d, inertia):
        return Status.MORE_BLOCKS
    tree, block = words(s.tree, 1, s.ntree + 1)[0], words(s.block, 1, s.ntree + 1)[0]
    for t in range(s.ntree):
        begin, end = tree[t], tree[t + 1]
        size = end - begin
        A = part(inertia, block[t], size, size)
        damped = kind != Inertia.DAMPED or add_damping(s, qvel, A, begin, h)
        if not damped:
            continue
        L, below = part(f.L, block[t], size, size), part(f.below, block[t] + begin, size, size + 1)
        if not ltl.factor(A, L, below):  # as with feedback that accelerates: the mass alone
            fill_mass(s, d, block[t], block[t + 1], inertia)
            accelerate(s, api)
            for j in range(begin, end if kind != Inertia.MUJOCO else begin):
                free[j] = qvel[j] + h * rate[j]
            continue
        f.known[t] = size != FREE_BODY  # whose factors the solve inverts
        if kind == Inertia.MUJOCO:
            continue
        x = vector(free, begin, size)
        for j in range(size):
            x[j] = force[begin + j]
        if kind == Inertia.DISCRETE and d.efm_active != 0:
            for shift in (d.efm_c, d.efm_ca):  # null if MuJoCo has not needed them
                if shift != 0:
                    more = floats(shift, 1, nv)[0]
                    for j in range(size):
                        x[j] += more[begin + j]
        ltl.to_white(L, below, x)
        ltl.from_white(L, below, x)
        for j in range(size):
            x[j] = qvel[begin + j] + h * x[j]
    return Status.DONE


@kernel
def fill_mass(s: Any, d: Any, low: int, high: int, inertia: np.ndarray) -> None:
    """Fill entries `low` to `high` of the blocks with M, of which MuJoCo stores the lower part."""
    for k in range(low, high):
        inertia[k] = 0.0
    M, at = floats(d.M, 1, s.nM)[0], words(s.M_at, s.nM, 2)
    for k in range(s.nM):
        if low <= at[k, 0] < high:
            inertia[at[k, 0]] = inertia[at[k, 1]] = M[k]


@kernel
def add_damping(s: Any, qvel: np.ndarray, A: np.ndarray, begin: int, h: float) -> bool:
    """Add h times the slope of the damping ``a v + b v |v| + c v^3``; whether there is any."""
    damping = floats(s.dof_damping, 1, s.nv)[0]
    poly = floats(s.dof_dampingpoly, s.nv, s.poly)
    some = False
    for j in range(A.shape[0]):
        i = begin + j
        slope, speed = damping[i], 1.0
        for k in range(s.poly):
            speed *= abs(qvel[i])
            slope += (k + 2) * poly[i, k] * speed
        if slope > 0.0:
            some = True
            A[j, j] += h * slope
    return some


@kernel
def fill_implicit(s: Any, d: Any, inertia: np.ndarray, h: float) -> None:
    """Fill the blocks with M less h times the symmetric part of qDeriv."""
    at, D = words(s.D_at, s.nD, 5), floats(d.qDeriv, 1, s.entries_of_D)[0]
    M = floats(d.M, 1, s.nM)[0]
    for k in range(s.nblock):
        inertia[k] = 0.0
    for k in range(s.nD):
        mass = M[at[k, 4]] if at[k, 4] >= 0 else 0.0
        x = mass - 0.5 * h * D[at[k, 2]] - 0.5 * h * D[at[k, 3]]
        inertia[at[k, 0]] = inertia[at[k, 1]] = x


@kernel
def step_implicitly(s: Any, api: Any, d: Any, free: np.ndarray) -> None:
    """Fill in the velocity that `mj_implicit` finds without constraints; qDeriv is filled, too.

    The function advances the state as a side effect; the state is put back.
    """
    force, qvel = floats(d.qfrc_constraint, 1, s.nv)[0], floats(d.qvel, 1, s.nv)[0]
    opt = structs.option_at(s.opt)
    flags = opt.enableflags
    for j in range(s.nv):
        force[j] = 0.0
    opt.enableflags &= ~SLEEP  # nothing falls asleep twice in a step
    c_api.call(api.mj_implicit, s.model, s.data)
    opt.enableflags = flags
    for j in range(s.nv):
        free[j] = qvel[j]
    c_api.call_state(api.mj_setState, s.model, s.data, s.before, np.int32(s.state_kind))


@kernel
def add_discrete(s: Any, d: Any, inertia: np.ndarray) -> bool:
    """Add ``h D + h^2 K`` of the discrete integrator; False if it couples trees."""
    nv = s.nv
    tree, block = words(s.tree, 1, s.ntree + 1)[0], words(s.block, 1, s.ntree + 1)[0]
    if d.efm_fluid != 0:
        fluid, at = floats(d.efm_fluid, 1, s.nM)[0], words(s.M_at, s.nM, 2)
        for k in range(s.nM):
            inertia[at[k, 0]] += fluid[k]
            if at[k, 1] != at[k, 0]:
                inertia[at[k, 1]] += fluid[k]
    diagonal = floats(d.efm_diag, 1, nv)[0]
    for t in range(s.ntree if d.efm_diag != 0 else 0):
        size = tree[t + 1] - tree[t]
        for j in range(size):
            inertia[block[t] + j * (size + 1)] += diagonal[tree[t] + j]
    whole = True
    if d.nefmT > 0:
        which, scale = integers(d.efm_tid, 1, d.nefmT)[0], floats(d.efm_ts, 1, d.nefmT)[0]
        for k in range(d.nefmT):
            i = which[k]
            begin = np.int64(integers(s.ten_J_rowadr, 1, s.ntendon)[0, i])
            count = np.int64(integers(s.ten_J_rownnz, 1, s.ntendon)[0, i])
            column = integers(s.ten_J_colind + 4 * begin, 1, count)[0]
            value = floats(d.ten_J + 8 * begin, 1, count)[0]
            whole = add_outer(tree, block, column, value, scale[k], inertia) and whole
    if d.nefmA > 0:
        which, scale = integers(d.efm_aid, 1, d.nefmA)[0], floats(d.efm_as, 1, d.nefmA)[0]
        for k in range(d.nefmA):
            i = np.int64(which[k])
            begin = np.int64(integers(d.moment_rowadr + 4 * i, 1, 1)[0, 0])
            count = np.int64(integers(d.moment_rownnz + 4 * i, 1, 1)[0, 0])
            column = integers(d.moment_colind + 4 * begin, 1, count)[0]
            value = floats(d.actuator_moment + 8 * begin, 1, count)[0]
            whole = add_outer(tree, block, column, value, scale[k], inertia) and whole
    return whole


@kernel
def add_outer(
    tree: np.ndarray, block: np.ndarray, column: np.ndarray, value: np.ndarray, scale: float,
    inertia: np.ndarray,
) -> bool:  # fmt: skip
    """Add ``scale j j'`` of a sparse row j; False if its coordinates are in several trees."""
    if column.shape[0] == 0:
        return True
    t = 0
    while tree[t + 1] <= column[0]:
        t += 1
    begin, size = tree[t], tree[t + 1] - tree[t]
    for p in range(column.shape[0]):
        if column[p] < begin or column[p] >= begin + size:
            return False
    for p in range(column.shape[0]):
        for q in range(column.shape[0]):
            at = block[t] + (column[p] - begin) * size + column[q] - begin
            inertia[at] += scale * value[p] * value[q]
    return True


def places_of_entries(model: Any, tree: np.ndarray, block: np.ndarray) -> tuple[Any, Any]:
    """Where the entries of M (nM, 2) and of its derivative (pairs, 5) are in the blocks.

    M holds entries at or left of the diagonal, each of which stands twice in a block; the
    derivative holds those on the right, too: the next two columns are where MuJoCo has the two. The
    last one is where the pair is in M, or -1; all of M are among them.
    """
    part = np.searchsorted(tree, np.arange(model.nv), side="right") - 1
    size = np.diff(tree)

    def at(i: np.ndarray, j: np.ndarray) -> np.ndarray:
        t = part[i]
        return block[t] + (i - tree[t]) * size[t] + (j - tree[t])

    i, j = np.repeat(np.arange(model.nv), model.M_rownnz), model.M_colind.astype(np.int64)
    in_M = np.stack([at(i, j), at(j, i)], axis=1)
    mass = {pair: k for k, pair in enumerate(zip(i.tolist(), j.tolist(), strict=True))}
    i, j = np.repeat(np.arange(model.nv), model.D_rownnz), model.D_colind.astype(np.int64)
    where = {pair: k for k, pair in enumerate(zip(i.tolist(), j.tolist(), strict=True))}
    lower = j <= i
    i, j = i[lower], j[lower]
    pairs = list(zip(i.tolist(), j.tolist(), strict=True))
    here = np.array([where[b, a] for a, b in pairs], dtype=np.int64)
    there = np.array([where[a, b] for a, b in pairs], dtype=np.int64)
    if not mass.keys() <= set(pairs):
        raise UnsupportedError("mujoco", f"{mujoco.__version__} has a derivative of forces without "
                               "all entries of the inertia; install mujoco 4.0")  # fmt: skip
    of_mass = np.array([mass.get(pair, -1) for pair in pairs], dtype=np.int64)
    return in_M, np.stack([at(i, j), at(j, i), here, there, of_mass], axis=1)
