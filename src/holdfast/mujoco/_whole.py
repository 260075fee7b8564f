"""A whole usual step in one call, with MuJoCo's own functions called from compiled code.

Each call of a function from Python costs a quarter of a microsecond, and a step takes twenty of
them, which is as long as a small step takes in MuJoCo. Here Python calls once. All that a step
needs is told by one array of addresses and numbers, the desk. What is not usual is left to Python:
callbacks, integrators that need more than one matrix, and contacts that have to be searched for.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

import numpy as np

from holdfast._jit import CEntry, kernel
from holdfast.mujoco import _at_once as usual
from holdfast.mujoco import _memory as mem
from holdfast.mujoco import _shadow as shadow
from holdfast.mujoco._inertia import DAMPED, GIVEN, IMPLICIT, PLAIN, SPINNING, UNDAMPED
from holdfast.mujoco._landing import SUNK
from holdfast.mujoco._mj import CALLBACKS, mujoco
from holdfast.mujoco._parts import COLUMNS
from holdfast.mujoco._recall import COLUMNS as KNOWN
from holdfast.mujoco._support import is_finite
from holdfast.mujoco._usual import FOUND

# What the step of the desk's status says beside what `at_once` does: all is done, or it is and
# something is to be looked at, or an error of MuJoCo, or nothing at all was done.
DONE, LOOK, FAILED, NOT_TRIED = 20, 21, 22, 23

# Where to begin: with the stages before contact; with the rows; where motions have been searched
# for, or looked at.
FORWARD, ROWS, SEARCHED, LOOKED = range(4)

# Functions of MuJoCo and fields of its options, in the order of their addresses.
FUNCTIONS = (
    "mj_getState", "mj_setState", "mj_fwdKinematics", "mj_makeM", "mj_factorM", "mj_comVel",
    "mj_collision", "mj_makeConstraint", "mj_transmission", "mj_sensorPos", "mj_energyPos",
    "mj_fwdVelocity", "mj_sensorVel", "mj_energyVel", "mj_fwdActuation", "mj_fwdAcceleration",
    "mj_implicit", "mj_sensorAcc", "mj_Euler", "mj_integratePos", "mj_kinematics",
    "mj_referenceConstraint",
)  # fmt: skip
FIELDS = ("timestep", "o_margin", "integrator", "cone", "jacobian", "solver", "noslip_iterations",
          "disableflags", "enableflags")  # fmt: skip

# The desk: numbers, then addresses and lengths of arrays, then the addresses of those above.
BEGIN, GUARDED, STATUS, MODEL, DATA, PYRAMIDS, SENSORS, TRIAL, SPINS, DERIVATIVE = range(10)
(PLACES, CONTACT, ARRAYS, SETTINGS, OPTIONS, WORK, FLAGS, SIZES, TABLE, REPORT, STATE, SEGMENTS,
 BEFORE,
 LEFT, WRITTEN, COUNTS, GEOM_BODY, ROOT, MOVING, RADIUS, JOINTS, LIMITED, RANGE, JOINT_MARGIN,
 TENDON_MARGIN, THERE, MEMO, WARNED, _END) = range(10, 68, 2)  # fmt: skip
(GET_STATE, SET_STATE, FWD_KINEMATICS, MAKE_M, FACTOR_M, COM_VEL, COLLISION, MAKE_CONSTRAINT,
 TRANSMISSION, SENSOR_POS, ENERGY_POS, FWD_VELOCITY, SENSOR_VEL, ENERGY_VEL, FWD_ACTUATION,
 FWD_ACCELERATION, IMPLICIT_STEP, SENSOR_ACC, EULER, INTEGRATE, KINEMATICS,
 REFERENCE, CALLBACK) = range(_END, _END + 23)  # fmt: skip
(TIMESTEP, MARGIN, INTEGRATOR, CONE, JACOBIAN, SOLVER, NOSLIP, DISABLE, ENABLE,
 DESK) = range(CALLBACK + len(CALLBACKS), CALLBACK + len(CALLBACKS) + 10)  # fmt: skip

STATE_KIND = int(mujoco.mjtState.mjSTATE_INTEGRATION)
_ENERGY = int(mujoco.mjtEnableBit.mjENBL_ENERGY)
_UNLIMITED = int(mujoco.mjtDisableBit.mjDSBL_LIMIT | mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)


@kernel
def option(desk: np.ndarray, field: int) -> int:
    """Return an option that is an integer."""
    return np.int64(mem.integers(desk[field], 1, 1)[0, 0])


@kernel
def set_option(desk: np.ndarray, field: int, value: int) -> None:
    """Set it."""
    mem.integers(desk[field], 1, 1)[0, 0] = value


@kernel
def keep_up(desk: np.ndarray, settings: np.ndarray, options: np.ndarray) -> bool:
    """Take over what changed in the user's model, and set what exact contact needs.

    See `Shadow.follow`.

    Returns:
        Whether the integrator is a usual one.
    """
    mem.copy_segments(mem.words(desk[SEGMENTS], desk[SEGMENTS + 1] // 3, 3))
    disabled, cone, integrator = (
        option(desk, DISABLE), option(desk, CONE), option(desk, INTEGRATOR),
    )  # fmt: skip
    set_option(desk, DISABLE, disabled | shadow.DISABLED)
    set_option(desk, ENABLE, option(desk, ENABLE) & shadow.KEPT)
    listing = option(desk, JACOBIAN)
    settings[usual.SPARSE] = listing == shadow.SPARSE or (
        listing == shadow.AUTO and settings[usual.AUTO] == 1
    )
    set_option(desk, SOLVER, shadow.NEWTON)
    set_option(desk, NOSLIP, 0)
    settings[usual.WANTED] = cone == shadow.PYRAMIDAL
    settings[usual.LISTED] = settings[usual.WANTED] == 1 and desk[PYRAMIDS] == 1
    if settings[usual.LISTED] == 0:
        set_option(desk, CONE, shadow.ELLIPTIC)
    options[0] = mem.floats(desk[TIMESTEP], 1, 1)[0, 0]
    if integrator == shadow.IMPLICITFAST:
        settings[usual.INERTIA] = SPINNING if desk[SPINS] == 1 else IMPLICIT
    elif integrator in (shadow.EULER, shadow.RK4):
        set_option(desk, INTEGRATOR, shadow.EULER)
        settings[usual.INERTIA] = PLAIN if disabled & UNDAMPED else DAMPED
    else:
        return False
    return True


@kernel
def widen_margins(desk: np.ndarray, places: np.ndarray, h: float) -> None:
    """See `Shadow.widen_margins`; of limits of joints only those are listed that are near.

    `exceeds_limit` sees to the others.
    """
    mem.floats(desk[MARGIN], 1, 1)[0, 0] = shadow.set_margins_at(
        places, mem.words(desk[WRITTEN], 1, desk[WRITTEN + 1])[0],
        mem.words(desk[COUNTS], 1, desk[COUNTS + 1])[0],
        mem.integers(desk[GEOM_BODY], 1, desk[GEOM_BODY + 1])[0],
        mem.integers(desk[ROOT], 1, desk[ROOT + 1])[0],
        mem.words(desk[MOVING], 1, desk[MOVING + 1])[0],
        mem.floats(desk[RADIUS], 1, desk[RADIUS + 1])[0], h,
    )  # fmt: skip
    margin = mem.floats(desk[TENDON_MARGIN], 1, desk[TENDON_MARGIN + 1])[0]
    for i in range(margin.shape[0]):
        margin[i] = shadow.LIMIT_REACH
    margin = mem.floats(desk[JOINT_MARGIN], 1, desk[JOINT_MARGIN + 1])[0]
    joints = mem.words(desk[JOINTS], desk[JOINTS + 1] // 3, 3)
    bounds = mem.floats(desk[RANGE], desk[RANGE + 1] // 2, 2)
    k = 0
    for j in range(margin.shape[0]):
        if k == joints.shape[0] or joints[k, 0] != j:
            margin[j] = shadow.LIMIT_REACH
            continue
        speed = abs(mem.floats(mem.word(places[mem.QVEL]) + 8 * joints[k, 2], 1, 1)[0, 0])
        reserve = shadow.SIZE_RESERVE * (bounds[j, 1] - bounds[j, 0])
        margin[j] = max(margin[j], shadow.SPEED_RESERVE * h * speed + reserve)  # or the user's
        k += 1


@kernel
def exceeds_limit(desk: np.ndarray, places: np.ndarray, velocity: np.ndarray, h: float,
                  touch: float) -> bool:  # fmt: skip
    """Return whether a motion carries a joint beyond a limit, be it listed or not."""
    if option(desk, DISABLE) & _UNLIMITED:
        return False
    joints = mem.words(desk[JOINTS], desk[JOINTS + 1] // 3, 3)
    limited = mem.booleans(desk[LIMITED], 1, desk[LIMITED + 1])[0]
    bounds = mem.floats(desk[RANGE], desk[RANGE + 1] // 2, 2)
    for k in range(joints.shape[0]):
        j = joints[k, 0]
        if limited[j]:
            q = mem.floats(mem.word(places[mem.QPOS]) + 8 * joints[k, 1], 1, 1)[0, 0]
            after = q + h * velocity[joints[k, 2]]
            if after < min(q, bounds[j, 0]) - touch or after > max(q, bounds[j, 1]) + touch:
                return True
    return False


@kernel
def forward(desk: np.ndarray, places: np.ndarray, settings: np.ndarray, options: np.ndarray,
            state: np.ndarray) -> bool:  # fmt: skip
    """The stages up to the smooth forces, see `holdfast.mujoco._pipeline`; False if not usual."""
    m, d = desk[MODEL], desk[DATA]
    for k in range(CALLBACK, TIMESTEP):
        if mem.word(desk[k]) != 0:
            return False
    mem.call_state(desk[GET_STATE], m, d, desk[BEFORE], STATE_KIND)
    if not is_finite(mem.floats(desk[BEFORE], 1, desk[BEFORE + 1])[0]):
        return False
    if not keep_up(desk, settings, options):
        return False
    mem.forget(places)
    for k in range(FWD_KINEMATICS, COLLISION):
        mem.call(desk[k], m, d)
    widen_margins(desk, places, options[0])
    energy, sensors = option(desk, ENABLE) & _ENERGY, desk[SENSORS]
    full = mem.warnings_of(places)
    for k in range(COLLISION, IMPLICIT_STEP):
        if k in (SENSOR_POS, SENSOR_VEL) and not sensors:
            continue
        if k in (ENERGY_POS, ENERGY_VEL) and not energy:
            continue
        mem.call(desk[k], m, d)
    if mem.warnings_of(places) != full:
        return False
    if settings[usual.INERTIA] == IMPLICIT and desk[DERIVATIVE] != 0:
        mem.call_flag(desk[DERIVATIVE], m, d, 0)
    elif settings[usual.INERTIA] in (IMPLICIT, SPINNING):
        nv = state.shape[1]
        force = mem.floats(mem.word(places[mem.CONSTRAINT]), 1, nv)[0]
        for j in range(nv):
            force[j] = 0.0
        mem.call(desk[IMPLICIT_STEP], m, d)
        qvel = mem.floats(mem.word(places[mem.QVEL]), 1, nv)[0]
        for j in range(nv):
            state[0, j] = qvel[j]
        mem.call_state(desk[SET_STATE], m, d, desk[BEFORE], STATE_KIND)
    return True


@kernel
def sinks_in(desk: np.ndarray, contact: np.ndarray, places: np.ndarray, h: float,
             size: float) -> bool:  # fmt: skip
    """Return whether surfaces have sunk in where the motion leads, see `Landing.look`."""
    m, trial, there = desk[MODEL], desk[TRIAL], mem.words(desk[THERE], 1, desk[THERE + 1])[0]
    qpos = mem.word(there[mem.QPOS])
    mem.copy(qpos, mem.word(places[mem.QPOS]), 8 * desk[LEFT + 1])
    mem.call_integrate(desk[INTEGRATE], m, qpos, desk[STATE], h)
    mem.call(desk[KINEMATICS], m, trial)
    mem.call(desk[COLLISION], m, trial)
    ncon, width = mem.count(there, mem.NCON), contact[mem.STRIDE] // 8
    dist = mem.floats(mem.word(there[mem.CONTACT]), ncon, width)[:, contact[mem.DIST] // 8]
    deepest = 0.0
    for i in range(ncon):
        deepest = min(deepest, dist[i])
    return deepest < -SUNK * size


@kernel
def list_again(desk: np.ndarray, settings: np.ndarray) -> None:
    """List the constraints as the user's model has them, see `holdfast.mujoco._publish`."""
    m, d = desk[MODEL], desk[DATA]
    if settings[usual.WANTED] == 1:
        set_option(desk, CONE, shadow.PYRAMIDAL)
    mem.call(desk[MAKE_CONSTRAINT], m, d)
    mem.call(desk[REFERENCE], m, d)


@kernel
def finish(desk: np.ndarray, places: np.ndarray, state: np.ndarray) -> None:
    """Sensors of forces; then integrate with exactly the velocity that was solved for."""
    m, d = desk[MODEL], desk[DATA]
    if desk[SENSORS]:
        mem.call(desk[SENSOR_ACC], m, d)
    usual.hand_over(places, state)
    mem.call(desk[EULER], m, d)
    usual.take_back(places, state)


def _step_at(_model: int, _data: int, _simulation: int, address: int) -> None:
    """Take the step that is described at an address; `guarded` has a model of nothing."""
    desk = mem.words(address, 1, DESK)[0]
    places = mem.words(desk[PLACES], 1, desk[PLACES + 1])[0]
    settings = mem.words(desk[SETTINGS], 1, desk[SETTINGS + 1])[0]
    options = mem.floats(desk[OPTIONS], 1, desk[OPTIONS + 1])[0]
    report = mem.floats(desk[REPORT], 1, desk[REPORT + 1])[0]
    state = mem.floats(desk[STATE], 2, desk[STATE + 1] // 2)
    desk[STATUS] = FAILED
    if desk[BEGIN] == FORWARD and not forward(desk, places, settings, options, state):
        desk[STATUS] = NOT_TRIED
        return
    contact = mem.words(desk[CONTACT], 1, desk[CONTACT + 1])[0]
    arrays = mem.words(desk[ARRAYS], 1, desk[ARRAYS + 1])[0]
    work = mem.floats(desk[WORK], 1, desk[WORK + 1])[0]
    words = mem.words(desk[WORK], 1, desk[WORK + 1])[0]
    flags = mem.booleans(desk[FLAGS], 1, desk[FLAGS + 1])[0]
    sizes = mem.words(desk[SIZES], 1, desk[SIZES + 1])[0]
    table = mem.words(desk[TABLE], desk[TABLE + 1] // COLUMNS, COLUMNS)
    memo = mem.floats(desk[MEMO], desk[MEMO + 1] // KNOWN, KNOWN)
    warned = mem.words(desk[WARNED], desk[WARNED + 1] // 2, 2)
    status, h, guarded = FOUND, options[0], desk[GUARDED] == 1
    if desk[BEGIN] <= ROWS:
        status = usual.take_over(
            places, contact, arrays, settings, options, work, words, flags, sizes, table, memo,
            report, state,
        )  # fmt: skip
    if status != FOUND or settings[usual.INERTIA] == GIVEN:
        desk[STATUS] = status
        return
    if desk[BEGIN] <= SEARCHED:
        status = usual.conclude(options, work, words, flags, sizes, table, memo, report, state)
    looks = status == usual.LANDS and guarded and desk[TRIAL] != 0
    if looks and not sinks_in(desk, contact, places, h, options[usual.SIZE]):
        status = FOUND
    if status == FOUND and guarded and exceeds_limit(desk, places, state[0], h, options[1]):
        status = NOT_TRIED
    if status == FOUND:
        listed = usual.put_motion(
            places, contact, arrays, settings, h, work, words, flags, sizes, table, report, state
        )
        if listed == usual.AGAIN and guarded:
            list_again(desk, settings)
            listed = usual.AS_WANTED
        report[usual.PUBLISHED] = listed == usual.AS_WANTED
        if listed == usual.AS_WANTED:
            usual.put_forces(places, contact, settings, h, work, words, flags, sizes)
        if guarded and listed == usual.AS_WANTED:
            finish(desk, places, state)
            report[usual.SLIPPED] = max(report[usual.SLIPPED], report[usual.WORST_SLIP])
            report[usual.SUNK] = max(report[usual.SUNK], report[usual.DEEPEST])
            told = report[usual.LACKS] == 0.0 or settings[usual.QUIET] == 1
            told = told or usual.suffices(work, words, flags, sizes, warned)
            clean = report[usual.LEFT] <= options[1] and told
            status = DONE if clean and report[usual.TIED] > 0.0 else LOOK
        if status == DONE:  # else it is Python that leaves the position
            mem.copy(desk[LEFT], mem.word(places[mem.QPOS]), 8 * desk[LEFT + 1])
    desk[STATUS] = status


step_at = CEntry(_step_at)
