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
from numba import types

from holdfast.lcp._kernel import CEntry, kernel
from holdfast.mujoco import _at_once as usual
from holdfast.mujoco import _memory as mem
from holdfast.mujoco import _shadow as shadow
from holdfast.mujoco._inertia import DAMPED, IMPLICIT, PLAIN, UNDAMPED
from holdfast.mujoco._mj import CALLBACKS, mujoco
from holdfast.mujoco._support import is_finite
from holdfast.mujoco._usual import FOUND

# What the step of the desk's status says beside what `at_once` does: all is done, or it is and
# something is to be looked at, or an error of MuJoCo, or nothing at all was done.
DONE, LOOK, FAILED, NOT_TRIED = 20, 21, 22, 23

# What to do: the stages before contact, and those after it.
FORWARD, FINISH = 1, 2

# Functions of MuJoCo and fields of its options, in the order of their addresses.
FUNCTIONS = (
    "mj_getState", "mj_setState", "mj_fwdKinematics", "mj_makeM", "mj_factorM", "mj_comVel",
    "mj_collision", "mj_makeConstraint", "mj_transmission", "mj_sensorPos", "mj_energyPos",
    "mj_fwdVelocity", "mj_sensorVel", "mj_energyVel", "mj_fwdActuation", "mj_fwdAcceleration",
    "mj_implicit", "mj_sensorAcc", "mj_Euler",
)  # fmt: skip
FIELDS = ("timestep", "o_margin", "integrator", "cone", "jacobian", "solver", "noslip_iterations",
          "disableflags", "enableflags")  # fmt: skip

# The desk: numbers, then addresses and lengths of arrays, then the addresses of those above.
MODE, STATUS, MODEL, DATA, PYRAMIDS, SENSORS = range(6)
(PLACES, CONTACT, ARRAYS, SETTINGS, OPTIONS, WORK, FLAGS, SIZES, REPORT, STATE, SEGMENTS, BEFORE,
 LEFT, WRITTEN, COUNTS, GEOM_BODY, ROOT, MOVING, RADIUS, JOINT_MARGIN, TENDON_MARGIN,
 _END) = range(6, 50, 2)  # fmt: skip
(GET_STATE, SET_STATE, FWD_KINEMATICS, MAKE_M, FACTOR_M, COM_VEL, COLLISION, MAKE_CONSTRAINT,
 TRANSMISSION, SENSOR_POS, ENERGY_POS, FWD_VELOCITY, SENSOR_VEL, ENERGY_VEL, FWD_ACTUATION,
 FWD_ACCELERATION, IMPLICIT_STEP, SENSOR_ACC, EULER, CALLBACK) = range(_END, _END + 20)  # fmt: skip
(TIMESTEP, MARGIN, INTEGRATOR, CONE, JACOBIAN, SOLVER, NOSLIP, DISABLE, ENABLE,
 DESK) = range(CALLBACK + len(CALLBACKS), CALLBACK + len(CALLBACKS) + 10)  # fmt: skip

STATE_KIND = int(mujoco.mjtState.mjSTATE_INTEGRATION)
_ENERGY = int(mujoco.mjtEnableBit.mjENBL_ENERGY)


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
    set_option(desk, JACOBIAN, shadow.DENSE)
    set_option(desk, SOLVER, shadow.NEWTON)
    set_option(desk, NOSLIP, 0)
    settings[usual.WANTED] = cone == shadow.PYRAMIDAL
    settings[usual.LISTED] = settings[usual.WANTED] == 1 and desk[PYRAMIDS] == 1
    if settings[usual.LISTED] == 0:
        set_option(desk, CONE, shadow.ELLIPTIC)
    options[0] = mem.floats(desk[TIMESTEP], 1, 1)[0, 0]
    if integrator == shadow.IMPLICITFAST:
        settings[usual.INERTIA] = IMPLICIT
    elif integrator in (shadow.EULER, shadow.RK4):
        set_option(desk, INTEGRATOR, shadow.EULER)
        settings[usual.INERTIA] = PLAIN if disabled & UNDAMPED else DAMPED
    else:
        return False
    return True


@kernel
def widen_margins(desk: np.ndarray, places: np.ndarray, h: float) -> None:
    """See `Shadow.widen_margins`."""
    mem.floats(desk[MARGIN], 1, 1)[0, 0] = shadow.set_margins_at(
        places, mem.words(desk[WRITTEN], 1, desk[WRITTEN + 1])[0],
        mem.words(desk[COUNTS], 1, desk[COUNTS + 1])[0],
        mem.integers(desk[GEOM_BODY], 1, desk[GEOM_BODY + 1])[0],
        mem.integers(desk[ROOT], 1, desk[ROOT + 1])[0],
        mem.words(desk[MOVING], 1, desk[MOVING + 1])[0],
        mem.floats(desk[RADIUS], 1, desk[RADIUS + 1])[0], h,
    )  # fmt: skip
    for field in (JOINT_MARGIN, TENDON_MARGIN):
        margin = mem.floats(desk[field], 1, desk[field + 1])[0]
        for i in range(margin.shape[0]):
            margin[i] = shadow.LIMIT_REACH


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
    if settings[usual.INERTIA] == IMPLICIT:
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
def finish(desk: np.ndarray, places: np.ndarray, state: np.ndarray) -> None:
    """Sensors of forces; then integrate with exactly the velocity that was solved for."""
    m, d = desk[MODEL], desk[DATA]
    if desk[SENSORS]:
        mem.call(desk[SENSOR_ACC], m, d)
    usual.hand_over(places, state)
    mem.call(desk[EULER], m, d)
    usual.take_back(places, state)
    left = mem.floats(desk[LEFT], 1, desk[LEFT + 1])[0]
    qpos = mem.floats(mem.word(places[mem.QPOS]), 1, left.shape[0])[0]
    for j in range(left.shape[0]):
        left[j] = qpos[j]


def _step_at(_model: int, _data: int, _simulation: int, address: int) -> None:
    """Take the step that is described at an address; for `Guard`, whose model is of no concern."""
    desk = mem.words(address, 1, DESK)[0]
    places = mem.words(desk[PLACES], 1, desk[PLACES + 1])[0]
    settings = mem.words(desk[SETTINGS], 1, desk[SETTINGS + 1])[0]
    options = mem.floats(desk[OPTIONS], 1, desk[OPTIONS + 1])[0]
    report = mem.floats(desk[REPORT], 1, desk[REPORT + 1])[0]
    state = mem.floats(desk[STATE], 2, desk[STATE + 1] // 2)
    desk[STATUS] = FAILED
    if desk[MODE] & FORWARD and not forward(desk, places, settings, options, state):
        desk[STATUS] = NOT_TRIED
        return
    status = usual.at_once(
        places, mem.words(desk[CONTACT], 1, desk[CONTACT + 1])[0],
        mem.words(desk[ARRAYS], 1, desk[ARRAYS + 1])[0], settings, options,
        mem.floats(desk[WORK], 1, desk[WORK + 1])[0], mem.words(desk[WORK], 1, desk[WORK + 1])[0],
        mem.booleans(desk[FLAGS], 1, desk[FLAGS + 1])[0],
        mem.words(desk[SIZES], 1, desk[SIZES + 1])[0], report, state,
    )  # fmt: skip
    if status == FOUND and desk[MODE] & FINISH and report[usual.PUBLISHED] > 0.0:
        finish(desk, places, state)
        report[usual.SLIPPED] = max(report[usual.SLIPPED], report[usual.WORST_SLIP])
        report[usual.SUNK] = max(report[usual.SUNK], report[usual.DEEPEST])
        looks = report[usual.LEFT] > options[1] or report[usual.LACKS] > 0.0
        status = LOOK if looks else DONE
    desk[STATUS] = status


step_at = CEntry(_step_at, types.void(types.intp, types.intp, types.int32, types.intp))
