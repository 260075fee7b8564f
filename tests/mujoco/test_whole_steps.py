"""Steps that take another way through the stages: with callbacks, other integrators and models."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import pytest

import holdfast as hf
from holdfast.models.baselines import AnitescuPotra, StewartTrinkle

ARM = """<body pos="0 0 0.6"><joint axis="0 1 0" damping="0.3" stiffness="2"/>
    <geom type="capsule" size="0.03" fromto="0 0 0 0.4 0 0"/>
    <body pos="0.4 0 0"><joint axis="0 1 0" damping="0.2"/>
      <geom type="capsule" size="0.03" fromto="0 0 0 0.3 0 0"/><site name="tip" pos="0.3 0 0"/>
    </body></body>"""
SENSORS = '<sensor><accelerometer site="tip"/><velocimeter site="tip"/></sensor>'
FLOOR = '<geom type="plane" size="9 9 1"/>'


def load(world: str, option: str = "", more: str = "") -> tuple[Any, Any]:
    model = mujoco.MjModel.from_xml_string(
        f"<mujoco><option {option}/><worldbody>{world}</worldbody>{more}</mujoco>"
    )
    return model, mujoco.MjData(model)


@pytest.mark.parametrize("integrator", ["Euler", "implicitfast", "implicit", "discrete"])
@pytest.mark.parametrize("height", [0.0, 0.55], ids=["free", "touching"])
def test_a_callback_that_does_nothing_changes_nothing(integrator: str, height: float) -> None:
    """State and sensors, free and with contact; joints are damped, which the integrators mind."""
    option = f'timestep="0.005" integrator="{integrator}"'
    world = ARM + f'<geom type="plane" size="9 9 1" pos="0 0 {height}"/>'
    model, data = load(world, option, SENSORS)
    other, data.qvel[:] = mujoco.MjData(model), [1.0, -2.0]
    other.qvel[:] = data.qvel
    one, two = hf.Stepper(model, warn=False), hf.Stepper(model, warn=False)
    for _ in range(6):
        one.step(data)
        mujoco.set_mjcb_control(lambda _model, _data: None)
        try:
            two.step(other)
        finally:
            mujoco.set_mjcb_control(None)
        np.testing.assert_allclose(other.qpos, data.qpos, rtol=0.0, atol=1e-13)
        np.testing.assert_allclose(other.qvel, data.qvel, rtol=0.0, atol=1e-12)
        np.testing.assert_allclose(other.sensordata, data.sensordata, rtol=0.0, atol=1e-9)
    assert np.abs(data.sensordata[:3]).max() > 1.0


@pytest.mark.parametrize("integrator", ["Euler", "implicitfast", "discrete"])
def test_free_motion_in_a_fluid_is_that_of_mujoco(integrator: str) -> None:
    """With its energy, which is that of the state before the step. A box stands beside it."""
    option = f'timestep="0.005" integrator="{integrator}" density="500" viscosity="2"'
    box = '<body pos="0 2 0.1"><freejoint/><geom type="box" size="0.1 0.1 0.1"/></body>'
    model, data = load(FLOOR + box + ARM, option + ' gravity="0 0 -3"')
    model.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_ENERGY
    other, data.qvel[6:] = mujoco.MjData(model), [3.0, -5.0]
    other.qvel[:] = data.qvel
    stepper = hf.Stepper(model, warn=False)
    for k in range(3):
        stepper.step(data)
        mujoco.mj_step(model, other)
        np.testing.assert_allclose(data.qvel[6:], other.qvel[6:], rtol=1e-9)
        if k == 0:  # later, MuJoCo's box has sunk in
            np.testing.assert_allclose(data.energy, other.energy, rtol=1e-9)
            assert other.energy.min() > 0.0


@pytest.mark.parametrize("axis", [0, 1])
def test_a_turning_plate_lifts_a_ball(axis: int) -> None:
    """The surface at the contact moves as omega x r; the ball moves along."""
    at = [[0.0, 0.3], [-0.3, 0.0]][axis]
    model, data = load(
        '<body mocap="true"><geom type="box" size="0.5 0.5 0.05" condim="1"/></body>'
        f'<body pos="{at[0]} {at[1]} 0.1"><freejoint/><geom size="0.05" condim="1"/></body>',
        'timestep="0.001" gravity="0 0 0"',
    )
    stepper = hf.Stepper(model, warn=False)
    stepper.step(data)
    data.mocap_quat[0, 0], data.mocap_quat[0, 1 + axis] = np.cos(0.001), np.sin(0.001)  # 2 rad/s
    stepper.step(data)
    assert data.qvel[2] == pytest.approx(2.0 * 0.3, rel=0.02)


def test_what_lands_in_the_step_is_not_yet_in_the_model_of_anitescu_and_potra() -> None:
    """Their model knows no gaps: a ball that does not touch goes on, and lands in the next step."""
    model, data = load(FLOOR + '<body pos="0 0 0.101"><freejoint/><geom size="0.1"/></body>',
                       'timestep="0.01" gravity="0 0 0"')  # fmt: skip
    stepper = hf.Stepper(model, contact=AnitescuPotra(0.5), warn=False)
    data.qvel[2] = -0.15
    stepper.step(data)
    assert data.qvel[2] == -0.15
    data.qpos[2] = 0.1
    stepper.step(data)
    assert abs(data.qvel[2]) < 1e-12


def test_steps_of_other_models_are_not_solved_again() -> None:
    """They get the contacts of the list; look-ahead belongs to the solve of the stepper."""
    box = '<body pos="0 0 1.101"><freejoint/><geom type="box" size="0.1 0.1 0.1"/></body>'
    model, data = load('<geom type="sphere" size="1"/>' + box, 'timestep="0.01"')
    for contact, again in ((hf.Coulomb(), True), (StewartTrinkle(0.5), False)):
        mujoco.mj_resetData(model, data)
        data.qvel[:] = [3.0, 0.0, -1.0, 2.0, 20.0, 0.0]
        stepper = hf.Stepper(model, contact=contact, warn=False)
        stepper.step(data)
        assert (stepper.resolved_steps > 0) == again


def test_stages_leave_the_next_step_whole() -> None:
    """`constraints` and `solve` stop after their stage; the step after them does not."""
    model, data = load(FLOOR + '<body pos="0 0 0.1"><freejoint/><geom size="0.1"/></body>')
    other = mujoco.MjData(model)
    one, two = hf.Stepper(model, warn=False), hf.Stepper(model, warn=False)
    data.qvel[0] = other.qvel[0] = 1.0
    for _ in range(3):
        one.constraints(data)
        one.step(data)
        two.step(other)
    one.smooth(data)
    one.solve(data)
    one.finish(data)
    one.step(data)
    for _ in range(2):
        two.step(other)
    np.testing.assert_array_equal(data.qpos, other.qpos)
    assert data.time == other.time == pytest.approx(5 * model.opt.timestep)


def test_a_reset_forgets_all_figures() -> None:
    model, data = load(FLOOR + '<body pos="0 0 0.08"><freejoint/><geom size="0.1"/></body>')
    stepper = hf.Stepper(model, warn=False)
    fresh = {name: stepper.record[name][0] for name in FIGURES}
    assert not any(fresh.values())
    for _ in range(3):
        stepper.step(data)
    assert stepper.largest_penetration == pytest.approx(0.02) and stepper.largest_correction > 0.0
    stepper.reset()
    assert stepper.largest_penetration == stepper.largest_correction == 0.0
    assert {name: stepper.record[name][0] for name in FIGURES} == fresh


FIGURES = ("deepest", "fastest", "corrected", "redone", "uncertified", "inconsistent", "told_rk4",
           "told_overlap", "told_uncertified", "nwarned")  # fmt: skip


@pytest.mark.parametrize("last", ["body", "geom"])
def test_a_law_of_a_geom_goes_before_that_of_its_body(last: str) -> None:
    """Whichever is named last."""
    model, data = load(FLOOR + '<body name="box" pos="0 0 0.1"><freejoint/>'
                       '<geom name="skin" type="box" size="0.1 0.1 0.1"/></body>')  # fmt: skip
    laws = {("skin", "*"): hf.frictionless(), ("box", "*"): hf.stick()}
    if last == "geom":
        laws = dict(reversed(laws.items()))
    data.qvel[0] = 1.0
    hf.Stepper(model, laws=laws, warn=False).step(data)
    assert data.qvel[0] == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize(("speed", "jams"), [(-5.0, True), (5.0, False)])
def test_a_rod_that_jams_is_counted(speed: float, jams: bool) -> None:
    """Painleve's rod, its foot dragged behind or pushed ahead, with friction without a limit.

    Dragged behind, the foot is pressed if it slides; if it sticks, it lifts.
    """
    model, data = load(FLOOR + '<body pos="0 0 0.5"><freejoint/>'
                       '<inertial pos="0 0 0" mass="1" diaginertia="0.05 0.05 0.05"/>'
                       '<geom size="0.01" pos="0.4 0 -0.49"/></body>',
                       'timestep="0.001"')  # fmt: skip
    stepper = hf.Stepper(model, contact=hf.NoSlip(), warn=False)
    data.qvel[0] = speed
    stepper.step(data)
    solution = stepper.solution
    assert solution is not None and solution.is_exact()
    assert solution.consistent != jams
    assert stepper.inconsistent_steps == int(jams)
