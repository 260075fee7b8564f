"""What cannot be stepped is refused by name on every path, and what diverges is said."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import mujoco
import numpy as np
import pytest

import holdfast as hf
from holdfast.mujoco.pair_laws import parse
from holdfast.mujoco.support import belongs

BOX = """<body name="box" pos="0 0 {z}"><freejoint name="free"/>
  <geom type="box" size=".1 .1 .1"/></body>"""
STATE = mujoco.mjtState.mjSTATE_INTEGRATION


def load(z: float = 0.1, option: str = "", more: str = "") -> tuple[Any, Any]:
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><option {option}/><worldbody><geom type="plane" size="1 1 1"/>'
        f"{BOX.format(z=z)}</worldbody>{more}</mujoco>"
    )
    return model, mujoco.MjData(model)


def state(model: Any, data: Any) -> np.ndarray:
    found = np.zeros(mujoco.mj_stateSize(model, STATE))
    mujoco.mj_getState(model, data, found, STATE)
    return found


@contextmanager
def callback() -> Iterator[None]:
    mujoco.set_mjcb_control(lambda _model, _data: None)
    try:
        yield
    finally:
        mujoco.set_mjcb_control(None)


PATHS: dict[str, Callable[[Any, Any], None]] = {
    "step": lambda model, data: hf.step(model, data),
    "stepper": lambda model, data: hf.Stepper(model).step(data),
    "forward": lambda model, data: hf.forward(model, data),
    "own way": lambda model, data: hf.Stepper(model, hf.AnitescuPotra(mu=0.5)).step(data),
    "build_problem": lambda model, data: hf.build_problem(model, data) and None,
    "smooth": lambda model, data: hf.Stepper(model).smooth(data),
    "events": lambda model, data: hf.EventDriven(model).step(data),
    "advance": lambda model, data: hf.EventDriven(model).advance(data, 0.01),
}


@pytest.mark.parametrize("called", [False, True])
@pytest.mark.parametrize("timestep", [0.0, -0.002, np.nan, np.inf])
@pytest.mark.parametrize("path", PATHS)
def test_time_steps_are_checked_on_every_path(path: str, timestep: float, called: bool) -> None:
    model, data = load()
    before = state(model, data)
    model.opt.timestep = timestep
    with pytest.raises(hf.InputError, match=r"model\.opt\.timestep"):
        if called:
            with callback():
                PATHS[path](model, data)
        else:
            PATHS[path](model, data)
    assert np.array_equal(state(model, data), before)


@pytest.mark.parametrize("nstep", [-1, 1.0, 1.5, np.nan, True, "3", None, [1]])
def test_nstep_is_a_whole_number(nstep: Any) -> None:
    model, data = load()
    for step in (hf.Stepper(model).step, hf.EventDriven(model).step,
                 lambda data, nstep: hf.step(model, data, nstep)):  # fmt: skip
        with pytest.raises(hf.InputError, match="nstep"):
            step(data, nstep)
        step(data, 0)
        assert data.time == 0.0
    hf.step(model, data, np.int64(2))
    assert data.time == pytest.approx(2 * model.opt.timestep)


@pytest.mark.parametrize("nstep", [2**63, 10**30, np.uint64(2**64 - 1)])
def test_more_steps_than_can_be_counted(nstep: Any) -> None:
    """They were errors of memory views and of NumPy."""
    model, data = load()
    ways: list[Callable[[Any, Any], Any]] = [
        hf.Stepper(model).step, hf.EventDriven(model).step,
        lambda data, nstep: hf.step(model, data, nstep),
        lambda data, nstep: hf.rollout(model, data, state_of(model), nstep=nstep),
    ]  # fmt: skip
    for step in ways:
        with pytest.raises(hf.InputError, match="nstep"):
            step(data, nstep)
    with pytest.raises(hf.InputError, match="no memory"):
        hf.rollout(model, data, state_of(model), nstep=10**13)
    with pytest.raises(hf.InputError, match="duration"):
        hf.EventDriven(model).advance(data, 1e308)


def state_of(model: Any) -> np.ndarray:
    return np.concatenate([[0.0], model.qpos0, np.zeros(model.nv)])


def test_data_of_another_model_that_was_pickled() -> None:
    """MuJoCo gives both the signature 0: memory beyond the arrays was read and written."""
    models = [pickle.loads(pickle.dumps(load(more=more)[0])) for more in ("", DRIVEN)]
    for path in ("step", "forward", "events", "smooth", "build_problem"):
        for model, other in (models, models[::-1]):
            with pytest.raises(hf.InputError, match="another model"):
                PATHS[path](model, mujoco.MjData(other))
            PATHS[path](model, mujoco.MjData(model))
    for model, other in (models, models[::-1]):
        assert belongs(model, mujoco.MjData(model)) and not belongs(model, mujoco.MjData(other))
        with pytest.raises(hf.InputError, match="another model"):
            hf.rollout(model, mujoco.MjData(other), state_of(model), nstep=2)


@pytest.mark.parametrize("spec", ["x", None, -1, 1.5])
def test_rollouts_refuse_by_name(spec: Any) -> None:
    model, data = load()
    with pytest.raises(hf.InputError, match="control_spec"):
        hf.rollout(model, data, state_of(model), nstep=1, control_spec=spec)
    with pytest.raises(hf.InputError, match="initial_state"):
        hf.rollout(model, data, state_of(model) * 1j, nstep=1)


@pytest.mark.parametrize("name", ["correct", "warn", "strict"])
@pytest.mark.parametrize("choice", [np.nan, "no", None, 1])
def test_what_is_true_or_false_is_one_of_them(name: str, choice: Any) -> None:
    """NaN was an error of NumPy, and "no" meant yes."""
    model, _ = load()
    with pytest.raises(hf.InputError, match=f"{name}: is .*; expected True or False"):
        hf.Stepper(model, **{name: choice})


@pytest.mark.parametrize("laws", [[1], "abc", 3])
def test_laws_are_a_mapping(laws: Any) -> None:
    model, _ = load()
    for make in (hf.Stepper, hf.EventDriven):
        with pytest.raises(hf.InputError, match="laws"):
            make(model, laws=laws)


ACTIONS: dict[str, Callable[[Any, Any], None]] = {
    "reset": lambda stepper, model: stepper.reset(),
    "step": lambda stepper, model: stepper.step(mujoco.MjData(model)),
    "detach": lambda stepper, model: stepper.detach(),
    "smooth": lambda stepper, model: stepper.smooth(mujoco.MjData(model)),
    "constraints": lambda stepper, model: stepper.constraints(mujoco.MjData(model)) and None,
    "solve": lambda stepper, model: stepper.solve(mujoco.MjData(model)),
    "finish": lambda stepper, model: stepper.finish(mujoco.MjData(model)),
}


def test_stages_follow_each_other() -> None:
    """A stage that did not go on from the one before it ended in "DIVERGED", or in other data."""
    model, data = load(0.3)
    other, expected = mujoco.MjData(model), mujoco.MjData(model)
    stepper = hf.Stepper(model)
    for stage, before in (("solve", "smooth"), ("finish", "solve")):
        with pytest.raises(hf.HoldfastError, match=f"call {before} first"):
            getattr(stepper, stage)(data)
    stepper.smooth(data)
    with pytest.raises(hf.HoldfastError, match="call solve first"):
        stepper.finish(data)
    with pytest.raises(hf.InputError, match="data: is not what smooth was called with"):
        stepper.solve(other)
    stepper.solve(data)
    with pytest.raises(hf.InputError, match="data: is not what solve was called with"):
        stepper.finish(other)
    stepper.finish(data)
    with pytest.raises(hf.HoldfastError, match="call solve first"):
        stepper.finish(data)
    hf.Stepper(model).step(expected)
    assert np.array_equal(data.qpos, expected.qpos) and other.time == 0.0
    stepper.smooth(data)
    stepper.step(data)  # it begins anew
    with pytest.raises(hf.HoldfastError, match="call smooth first"):
        stepper.solve(data)
    hf.Stepper(model).step(expected)
    assert np.array_equal(data.qpos, expected.qpos)


@pytest.mark.parametrize("make", [hf.Stepper, hf.EventDriven])
@pytest.mark.parametrize("action", ACTIONS)
def test_callbacks_cannot_touch_the_stepper_that_calls_them(make: Any, action: str) -> None:
    """`reset` in a callback left a step that never ended; others changed its data."""
    if not hasattr(make, action):
        pytest.skip("has no such method")
    model, data = load(0.3)
    stepper, refused = make(model), []

    def called(_model: Any, _data: Any) -> None:
        try:
            ACTIONS[action](stepper, model)
        except hf.HoldfastError as error:
            refused.append(str(error))

    mujoco.set_mjcb_control(called)
    try:
        stepper.step(data, 3)
    finally:
        mujoco.set_mjcb_control(None)
    assert len(refused) == 3 and all("in the middle of a step" in text for text in refused)
    other = mujoco.MjData(model)
    make(model).step(other, 3)
    assert np.array_equal(data.qpos, other.qpos) and np.array_equal(data.qvel, other.qvel)


@pytest.mark.parametrize("where", ["qpos", "qvel", "act"])
def test_event_driven_states_beyond_the_bounds(where: str) -> None:
    """They ended in an error of MuJoCo about frames, or of NumPy about an index."""
    more = '<actuator><general joint="free" dyntype="integrator" gear="0 0 1 0 0 0"/></actuator>'
    model, data = load(more=more)
    getattr(data, where)[0] = 1e200
    before = state(model, data)
    with pytest.raises(hf.EventError, match=f"diverged: {where}"):
        hf.EventDriven(model).step(data)
    assert np.array_equal(state(model, data), before)


def test_a_body_is_torn_off_beyond_the_reach_of_its_contacts() -> None:
    """Where a loaded contact was not even listed any more, NumPy had no entry 0."""
    model, data = load(more=DRIVEN)
    data.ctrl[0] = 10.0  # 1e9 N on 8 kg: 250 m in a step
    simulation = hf.EventDriven(model)
    simulation.step(data)
    assert 100.0 < data.qpos[2] < 1000.0


@pytest.mark.parametrize("duration", [np.nan, np.inf, -1.0, "1"])
def test_durations_are_numbers(duration: Any) -> None:
    model, data = load()
    with pytest.raises(hf.InputError, match="duration"):
        hf.EventDriven(model).advance(data, duration)


@pytest.mark.parametrize("value", [-0.1, np.nan, np.inf])
def test_coefficients_are_checked_where_they_are_given(value: float) -> None:
    for make in (hf.coulomb, hf.viscous, lambda mu: hf.Coulomb(mu=mu), lambda mu: hf.Viscous(mu),
                 lambda mu: hf.Coulomb(mu=[0.5, mu])):  # fmt: skip
        with pytest.raises(hf.InputError, match="mu"):
            make(value)
    with pytest.raises(hf.InputError, match="holdfast:a,b"):
        parse(f"coulomb {value}", "holdfast:a,b")


DRIVEN = '<actuator><motor joint="free" gear="0 0 1e8 0 0 0"/></actuator>'


@pytest.mark.parametrize("called", [False, True])
@pytest.mark.parametrize("integrator", ["Euler", "RK4", "implicit", "implicitfast"])
@pytest.mark.parametrize("z", [0.1, 5.0])
def test_a_step_that_leaves_the_bounds_says_so(integrator: str, z: float, called: bool) -> None:
    """Touching or in the air, with every integrator: no NaN, no 1e87, and a name."""
    model, data = load(z, f'integrator="{integrator}"', DRIVEN)
    data.ctrl[0] = 1e9  # MuJoCo itself drops controls above 1e10
    before = state(model, data)

    def step(strict: bool) -> None:
        stepper = hf.Stepper(model, strict=strict)
        if called:
            with callback():
                stepper.step(data)
        else:
            stepper.step(data)

    with pytest.raises(hf.HoldfastError, match=r"diverged.*free.*box"):
        step(True)
    assert np.array_equal(state(model, data), before)  # restored
    with pytest.warns(hf.StepWarning, match=r"diverged.*free.*box"):
        step(False)
    assert np.isfinite(state(model, data)).all() and np.abs(data.qvel).max() < 1.0  # reset


@pytest.mark.jit
def test_cylinders_do_not_sink_in_where_mujoco_leaves_contacts_out() -> None:
    """Of a face MuJoCo keeps four contacts that span most; with wide margins not the nearest."""
    model = mujoco.MjModel.from_xml_string("""<mujoco><option timestep=".005"/><worldbody>
      <geom type="box" size="5 5 1" pos="0 0 -1"/><body pos="0 0 .12" euler="80 10 0"><freejoint/>
      <geom type="cylinder" size=".1 .05" mass="1"/></body></worldbody></mujoco>""")
    data, stepper = mujoco.MjData(model), hf.Stepper(model)
    data.qvel[:] = 0.5, 0.0, 0.0, 3.0, 0.0, 0.0
    deepest = 0.0
    own = mujoco.MjData(model)
    for _ in range(400):
        stepper.step(data)
        own.qpos[:] = data.qpos
        mujoco.mj_kinematics(model, own)
        mujoco.mj_collision(model, own)
        deepest = max(deepest, -float(own.contact.dist.min(initial=0.0)))
    assert deepest < 1e-5


def test_a_rolling_ellipsoid_stays_on_the_plane() -> None:
    model = mujoco.MjModel.from_xml_string("""<mujoco><worldbody><geom type="plane" size="9 9 1"/>
      <body pos="0 0 .1"><freejoint/><geom type="ellipsoid" size=".2 .15 .1" mass="1"/></body>
      </worldbody></mujoco>""")
    data, stepper = mujoco.MjData(model), hf.Stepper(model)
    data.qvel[:] = 0.5, 0.0, 0.0, 0.0, 5.0, 0.0
    own, deep = mujoco.MjData(model), []
    for _ in range(500):
        stepper.step(data)
        own.qpos[:] = data.qpos
        mujoco.mj_kinematics(model, own)
        mujoco.mj_collision(model, own)
        deep.append(-float(own.contact.dist.min(initial=0.0)) / model.stat.meansize)
    assert np.max(deep) < 1e-4
    assert np.mean(np.array(deep) > 1e-5) <= 0.01


@pytest.mark.parametrize("k", [0, 1, 2])
def test_the_joint_that_leaves_the_bounds_is_named(k: int) -> None:
    """Its position alone: its speed and its acceleration stay within them."""
    joints = ("first", "second", "third")
    slide = '<body name="b{0}"><joint name="{0}" type="slide"/><geom size=".1"/></body>'
    slides = "".join(slide.format(name) for name in joints)
    model = mujoco.MjModel.from_xml_string(
        f"""<mujoco><option timestep="10" gravity="0 0 0"/><worldbody>{slides}</worldbody>
          <contact><exclude body1="bfirst" body2="bsecond"/><exclude body1="bfirst" body2="bthird"/>
          <exclude body1="bsecond" body2="bthird"/></contact></mujoco>"""
    )
    data = mujoco.MjData(model)
    data.qvel[k] = 5e9
    with pytest.raises(hf.HoldfastError, match=f"diverged.*joint {joints[k]} of body b{joints[k]}"):
        hf.Stepper(model, strict=True).step(data)
