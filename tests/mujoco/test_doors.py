"""What cannot be stepped is refused by name on every path, and what diverges is said."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import mujoco
import numpy as np
import pytest

import holdfast as hf
from holdfast.mujoco.pair_laws import parse

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
