"""The stepper as a tool: same call shape, same state, same features as mj_step; no surprises."""

from __future__ import annotations

import gc
import warnings
import weakref
from dataclasses import replace
from functools import partial

import mujoco
import numpy as np
import pytest

import holdfast as hf
from holdfast.mujoco import FrictionWarning, UnsupportedError
from holdfast.mujoco.contacts import Contacts
from holdfast.tools import scenes

BOX = '<body name="box" pos="0 0 .1"><freejoint/><geom name="g" type="box" size=".1 .1 .1"/></body>'
FLOOR = '<geom name="floor" type="plane" size="5 5 1"/>'

ANOTHER_BOX = '<body pos="{} 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/></body>'


def load(world: str, extra: str = "", option: str = "") -> tuple[mujoco.MjModel, mujoco.MjData]:
    xml = f"<mujoco><option {option}/><worldbody>{world}</worldbody>{extra}</mujoco>"
    model = mujoco.MjModel.from_xml_string(xml)
    return model, mujoco.MjData(model)


def state(model: mujoco.MjModel, data: mujoco.MjData) -> np.ndarray:
    sig = mujoco.mjtState.mjSTATE_INTEGRATION
    values = np.empty(mujoco.mj_stateSize(model, sig))
    mujoco.mj_getState(model, data, values, sig)
    return values


# --- without contact, a step is MuJoCo's ---------------------------------------------------------

MACHINE = """
<body pos="0 0 3"><freejoint/><geom type="box" size=".1 .2 .05"/></body>
<body pos="1 0 3"><joint name="a" axis="0 1 0" damping="2 1" stiffness="3"/>
  <geom type="capsule" fromto="0 0 0 .3 0 0" size=".05"/>
  <body pos=".4 0 0" gravcomp=".5"><joint name="b" axis="0 1 0" damping=".2"/>
    <geom type="capsule" fromto="0 0 0 .3 0 0" size=".05"/>
    <site name="s" pos=".2 0 0"/></body></body>
<site name="t" pos="1.5 0 4"/>
"""
DRIVES = """
<tendon><spatial name="ten" damping="3" stiffness="20"><site site="s"/><site site="t"/></spatial>
</tendon>
<actuator><position joint="b" kp="30" kv="4"/><motor tendon="ten"/>
  <general joint="a" dyntype="filter" dynprm=".1" gainprm="2"/></actuator>
<sensor><jointpos joint="a"/><jointvel joint="b"/><gyro site="s"/></sensor>
"""


@pytest.mark.parametrize("integrator", ["Euler", "implicitfast", "implicit"])
def test_free_motion_is_mujocos(integrator: str) -> None:
    model, data = load(MACHINE, DRIVES, f'integrator="{integrator}" density="1.2" viscosity=".01"')
    data.qvel[:] = np.random.default_rng(0).normal(size=model.nv)
    data.ctrl[:] = [0.4, 0.2, 1.0]
    data.xfrc_applied[1, 0] = 0.3
    data.qfrc_applied[7] = 0.2
    other = mujoco.MjData(model)
    mujoco.mj_copyState(model, data, other, mujoco.mjtState.mjSTATE_INTEGRATION)
    stepper = hf.Stepper(model)
    for _ in range(50):
        stepper.step(data)
        mujoco.mj_step(model, other)
    for name in ("qpos", "qvel", "act", "sensordata", "actuator_force"):
        assert getattr(data, name) == pytest.approx(getattr(other, name), rel=1e-9, abs=1e-9), name
    assert data.time == other.time


@pytest.mark.parametrize("more", ["", '<body pos="3 0 3"><freejoint/><geom size=".1 .2 .3" '
                                      'type="box"/></body>'])  # fmt: skip
def test_a_robot_in_the_air_moves_as_under_mujoco(more: str) -> None:
    """With implicitfast, and with a free body beside it whose gyroscopic terms MuJoCo adds."""
    xml = scenes.quadruped().replace("</worldbody>", more + "</worldbody>")
    model = mujoco.MjModel.from_xml_string(xml)
    data, other = mujoco.MjData(model), mujoco.MjData(model)
    for each in (data, other):
        each.qpos[2] += 2.0
        each.qvel[:] = np.random.default_rng(1).normal(size=model.nv)
        each.ctrl[:] = 0.3
    stepper = hf.Stepper(model)
    assert stepper.private.spins == bool(more)
    for _ in range(50):
        stepper.step(data)
        mujoco.mj_step(model, other)
    assert data.qvel == pytest.approx(other.qvel, rel=1e-9, abs=1e-9)


IDLE = """
<tendon><fixed name="idle"><joint joint="a" coef="1"/></fixed></tendon>
<actuator><motor joint="a"/></actuator>
"""


@pytest.mark.parametrize("first", ["", IDLE])
def test_free_motion_of_the_discrete_integrator(first: str) -> None:
    """Up to the gyroscopic terms of free bodies, which MuJoCo treats apart."""
    model, data = load(MACHINE, first + DRIVES, 'integrator="discrete"')
    data.qvel[6:] = 1.0
    data.ctrl[-3:] = [0.4, 0.2, 1.0]
    other = mujoco.MjData(model)
    mujoco.mj_copyState(model, data, other, mujoco.mjtState.mjSTATE_INTEGRATION)
    stepper = hf.Stepper(model)
    for _ in range(50):
        stepper.step(data)
        mujoco.mj_step(model, other)
    assert data.qvel == pytest.approx(other.qvel, rel=1e-6, abs=1e-8)


def test_rk4_without_contact_is_mujocos_and_with_contact_it_says_what_it_does() -> None:
    model, data = load(MACHINE, DRIVES, 'integrator="RK4"')
    _, other = load(MACHINE, DRIVES, 'integrator="RK4"')
    hf.step(model, data, nstep=5)
    mujoco.mj_step(model, other, 5)
    assert np.array_equal(data.qpos, other.qpos) and np.array_equal(data.qvel, other.qvel)
    model, data = load(FLOOR + BOX, option='integrator="RK4"')
    with pytest.warns(hf.StepWarning, match="RK4") as caught:
        hf.step(model, data, nstep=5)
    assert len(caught) == 1
    assert data.qpos[2] == pytest.approx(0.1, abs=1e-12)


@pytest.mark.filterwarnings("ignore:the integrator RK4:holdfast.StepWarning")
@pytest.mark.parametrize("called", [False, True], ids=["compiled", "callbacks"])
def test_stages_of_rk4_are_not_pushed_within_margins(called: bool) -> None:
    """A ball falls to the floor as if its margin were not there, and comes to rest on it."""
    heights = []
    for margin in (0.0, 0.05):
        ball = f'<geom size=".1" margin="{margin}"/>'
        world = f'<geom type="plane" size="1 1 1"/><body pos="0 0 .2"><freejoint/>{ball}</body>'
        model, data = load(world, option='integrator="RK4"')
        stepper = hf.Stepper(model)
        try:
            if called:
                mujoco.set_mjcb_passive(lambda model, data: None)
            heights.append([])
            for _ in range(100):
                stepper.step(data)
                heights[-1].append(data.qpos[2])
        finally:
            mujoco.set_mjcb_passive(None)
    assert heights[0] == heights[1]
    assert heights[0][-1] == pytest.approx(0.1, abs=1e-9)


def test_control_callback_is_called_once_a_step() -> None:
    model, data = load(MACHINE, DRIVES)
    seen = []

    def control(model_: mujoco.MjModel, data_: mujoco.MjData) -> None:
        seen.append(data_.time)
        data_.ctrl[0] = 0.7

    mujoco.set_mjcb_control(control)
    try:
        hf.Stepper(model).step(data, 3)
    finally:
        mujoco.set_mjcb_control(None)
    assert len(seen) == 3 and data.ctrl[0] == 0.7
    assert data.actuator_force[0] != 0.0


# --- the model is followed, the user's objects are not touched -----------------------------------


def test_changes_of_the_model_take_effect() -> None:
    model, data = load('<body pos="0 0 1"><freejoint/><geom size=".1"/></body>')
    stepper = hf.Stepper(model)
    stepper.step(data)
    model.opt.gravity[2] = -1.0
    model.opt.timestep = 0.01
    before = data.qvel[2]
    stepper.step(data)
    assert data.qvel[2] - before == pytest.approx(-0.01, rel=1e-9)
    model.body_mass[1] *= 2
    data.xfrc_applied[1, 2] = model.body_mass[1]
    before = data.qvel[2]
    stepper.step(data)
    assert data.qvel[2] == pytest.approx(before, abs=1e-12)


def test_the_model_is_left_alone() -> None:
    model, data = load(FLOOR + BOX)
    fields = {n: np.array(getattr(model, n)) for n in dir(model)
              if isinstance(getattr(model, n), np.ndarray)}  # fmt: skip
    options = {n: np.array(getattr(model.opt, n)) for n in dir(model.opt) if n[0] != "_"}
    hf.step(model, data, nstep=5)
    for name, value in fields.items():
        assert np.array_equal(getattr(model, name), value), name
    for name, value in options.items():
        assert np.array_equal(getattr(model.opt, name), value), name


def test_steppers_of_hf_step_do_not_keep_models_alive() -> None:
    model, data = load(FLOOR + BOX)
    hf.step(model, data)
    gone = weakref.ref(model)
    del model, data
    gc.collect()
    assert gone() is None


def test_margin_and_gap_do_not_make_bodies_float() -> None:
    model, data = load(FLOOR + BOX.replace("type=", 'margin=".02" gap=".01" type='))
    hf.step(model, data, nstep=50)
    assert data.qpos[2] == pytest.approx(0.1, abs=1e-12)


def test_contacts_out_of_reach_are_inactive_for_the_user() -> None:
    model, data = load(FLOOR + BOX.replace("0 0 .1", "0 0 .1001"))
    hf.Stepper(model).step(data)
    assert (data.contact.exclude == 1).all() and data.nefc == 0


# --- errors --------------------------------------------------------------------------------------


def test_state_survives_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors and Ctrl-C in what Python does of a step."""
    model, data = load(FLOOR + BOX)
    stepper = hf.Stepper(model)
    stepper.step(data, 3)
    before = state(model, data)
    mujoco.set_mjcb_control(lambda *_: None)  # stage by stage
    try:
        for error in (RuntimeError("broken"), KeyboardInterrupt()):
            for stage in ("stages.forward_in_python", "smooth.begin_at"):

                def fail(*_: object, error: BaseException = error, **__: object) -> None:
                    raise error

                with monkeypatch.context() as patch:
                    patch.setattr(f"holdfast.mujoco.{stage}", fail)
                    with pytest.raises(type(error)):
                        stepper.step(data)
                assert np.array_equal(state(model, data), before)
                assert stepper.solution is None
    finally:
        mujoco.set_mjcb_control(None)
    stepper.step(data)  # goes on as if nothing had been


def test_memory_that_does_not_suffice_is_an_error() -> None:
    """MuJoCo warns and leaves contacts out; bodies would sink in."""
    boxes = "".join(ANOTHER_BOX.format(i) for i in range(60))
    model, data = load(FLOOR + boxes, '<size memory="100K"/>')
    before = state(model, data)
    for _ in range(2):
        with pytest.raises(UnsupportedError, match="size/memory"):
            hf.step(model, data)
        assert np.array_equal(state(model, data), before)


@pytest.mark.jit  # outside of compiled kernels nobody catches them
def test_state_survives_an_error_of_mujoco() -> None:
    """MuJoCo ends the process where nobody catches its errors."""
    model, data = load(FLOOR + 60 * ANOTHER_BOX.format(0), '<size memory="60K"/>')
    before = state(model, data)
    for _ in range(2):
        with pytest.raises(mujoco.FatalError, match="out of memory"):
            hf.step(model, data)
        assert np.array_equal(state(model, data), before)


@pytest.mark.parametrize("contact", [hf.NoSlip(), hf.Viscous(0.1)])
@pytest.mark.parametrize("integrator", ["Euler", "implicit"])
def test_data_of_another_model_are_refused(contact: hf.ContactModel, integrator: str) -> None:
    _, other = load(FLOOR + BOX)
    model, _ = load(FLOOR + BOX + ANOTHER_BOX.format(1), option=f'integrator="{integrator}"')
    stepper = hf.Stepper(model, contact)
    for step in (stepper.step, hf.EventDriven(model).step, partial(hf.build_problem, model)):
        with pytest.raises(hf.InputError, match="another model"):
            step(other)
        for wrong in (model, None):
            with pytest.raises(hf.InputError, match="expected mujoco"):
                step(wrong)


@pytest.mark.parametrize("name", ["qpos", "qvel", "qfrc_applied", "mocap_pos", "mocap_quat"])
def test_nan_is_refused_and_not_spread(name: str) -> None:
    model, data = load(FLOOR + BOX + '<body mocap="true" pos="1 0 1"><geom size=".1"/></body>')
    getattr(data, name).flat[2] = np.nan
    before = state(model, data)
    with pytest.raises(hf.InputError, match=name):
        hf.step(model, data)
    assert np.array_equal(state(model, data), before, equal_nan=True)


def test_divergence_is_a_warning_and_a_reset_or_an_error() -> None:
    model, data = load(FLOOR + BOX)
    data.qfrc_applied[2] = 1e308
    before = state(model, data)
    with pytest.raises(hf.HoldfastError, match="diverged"):
        hf.Stepper(model, strict=True).step(data)
    assert np.array_equal(state(model, data), before)
    with pytest.warns(hf.StepWarning, match="diverged"):
        hf.step(model, data)
    assert data.qpos[2] == pytest.approx(0.1, abs=1e-12) and data.qfrc_applied[2] == 0.0
    assert data.warning[mujoco.mjtWarning.mjWARN_BADQACC].number == 1
    data.qvel[0] = 1e11
    with pytest.warns(hf.StepWarning, match=r"qvel\[0\]"):
        hf.step(model, data)


@pytest.mark.parametrize("timestep", [0.0, -0.01, np.nan, np.inf])
def test_a_bad_time_step_is_refused_by_name(timestep: float) -> None:
    model, data = load(FLOOR + BOX)
    stepper = hf.Stepper(model)
    stepper.step(data)
    model.opt.timestep = timestep
    before = state(model, data)
    for contact in (None, hf.NoSlip(), hf.StewartTrinkle(mu=1.0)):
        with pytest.raises(hf.InputError, match="timestep"):
            hf.Stepper(model, contact).step(data)
    with pytest.raises(hf.InputError, match="timestep"):
        stepper.step(data)
    assert np.array_equal(state(model, data), before)


def test_flexes_are_refused_by_name() -> None:
    xml = """<mujoco><worldbody><flexcomp name="cloth" type="grid" count="3 3 1" spacing=".1 .1 .1"
      dim="2" radius=".01" mass="1"/></worldbody></mujoco>"""
    model = mujoco.MjModel.from_xml_string(xml)
    with pytest.raises(UnsupportedError, match="cloth"):
        hf.Stepper(model)


def test_surface_velocity_is_refused_by_name() -> None:
    model, _ = load('<geom name="belt" type="box" size="1 1 .1" surfacevel="1 0 0 0 0 0"/>' + BOX)
    with pytest.raises(UnsupportedError, match="belt"):
        hf.Stepper(model)


def test_wrong_arguments_are_explained() -> None:
    model, _ = load(FLOOR + BOX)
    with pytest.raises(hf.InputError, match="MjModel"):
        hf.Stepper("scene.xml")
    with pytest.raises(hf.InputError, match="contact"):
        hf.Stepper(model, contact="noslip")  # pyright: ignore[reportArgumentType]
    with pytest.raises(hf.InputError, match="fingr"):
        hf.Stepper(model, laws={("fingr", "box"): hf.stick()})


# --- everything in the constraint list -----------------------------------------------------------


def test_weld_and_connect_hold_and_do_not_drift() -> None:
    world = "".join(
        f'<body name="{n}" pos="{x} 0 2"><freejoint/>'
        '<geom type="box" size=".1 .1 .1" mass="1"/></body>'
        for n, x in (("a", 0.0), ("b", 0.3), ("c", 0.6))
    )
    extra = ('<equality><weld body1="a"/><weld body1="b" body2="a"/>'
             '<connect body1="c" body2="b" anchor="-.15 0 0"/></equality>')  # fmt: skip
    model, data = load(world, extra)
    stepper = hf.Stepper(model, equalities="rigid")
    for _ in range(500):
        stepper.step(data)
        assert np.abs(data.qpos[:3] - [0, 0, 2]).max() < 1e-9
        assert np.abs(data.qpos[7:10] - [0.3, 0, 2]).max() < 1e-9
    mujoco.mj_kinematics(model, data)
    anchor = data.body("c").xpos + data.body("c").xmat.reshape(3, 3) @ [-0.15, 0, 0]
    assert anchor == pytest.approx([0.45, 0, 2], abs=1e-4)
    assert data.body("c").xpos[2] < 1.99  # c swings


def test_coupled_joints_keep_their_ratio() -> None:
    world = "".join(
        f'<body pos="{i} 0 1"><joint name="j{i}" axis="0 1 0"/>'
        '<geom pos=".1 0 0" size=".05"/></body>'
        for i in range(2)
    )
    extra = '<equality><joint joint1="j1" joint2="j0" polycoef="0 2 0 0 0"/></equality>'
    model, data = load(world, extra)
    hf.Stepper(model, equalities="rigid").step(data, nstep=200)
    assert abs(data.qpos[0]) > 0.1
    assert data.qpos[1] == pytest.approx(2 * data.qpos[0], abs=1e-9)


def test_tendon_limit_and_tendon_friction() -> None:
    world = (
        '<body pos="0 0 2"><joint name="j" type="slide" axis="0 0 1"/>'
        '<geom size=".1" mass="1"/></body>'
    )
    tendon = '<tendon><fixed {}><joint joint="j" coef="2"/></fixed></tendon>'
    model, data = load(world, tendon.format('limited="true" range="-.1 1"'))
    hf.step(model, data, nstep=300)
    assert data.qpos[0] == pytest.approx(-0.05, abs=1e-12)
    model, data = load(world, tendon.format('frictionloss="2"'))
    hf.step(model, data, nstep=100)  # 2 N along a length that moves twice as fast: 4 N
    assert data.qvel[0] == pytest.approx(-(9.81 - 4.0) * 0.2, rel=1e-9)


@pytest.mark.parametrize("equalities", ["compliant", "rigid"])
def test_body_follows_a_mocap_body(equalities: str) -> None:
    world = (
        '<body name="hand" mocap="true" pos="0 0 1"/>'
        '<body name="box" pos="0 0 1"><freejoint/><geom type="box" size=".1 .1 .1"/></body>'
    )
    model, data = load(world, '<equality><weld body1="box" body2="hand"/></equality>')
    other = mujoco.MjData(model)
    stepper = hf.Stepper(model, equalities=equalities)
    for i in range(500):
        data.mocap_pos[0, 0] = other.mocap_pos[0, 0] = 0.1 * min(i * 0.002, 0.5)
        stepper.step(data)
        mujoco.mj_step(model, other)
    assert data.qpos[:2] == pytest.approx([0.05, 0.0], abs=1e-6)
    height = 1.0 if equalities == "rigid" else other.qpos[2]
    assert data.qpos[2] == pytest.approx(height, abs=1e-6)


def test_compliant_equalities_are_those_of_mujoco() -> None:
    """A closed loop, in the air: the same motion as MuJoCo's own."""
    world = """<body pos="0 0 1"><joint name="a" axis="0 1 0"/>
        <geom type="capsule" size=".02" fromto="0 0 0 .3 0 0"/>
        <body name="p" pos=".3 0 0"><joint name="b" axis="0 1 0"/>
          <geom type="capsule" size=".02" fromto="0 0 0 0 0 -.3" contype="0"/></body></body>
      <body name="q" pos=".3 0 .4"><joint name="c" axis="0 1 0"/>
        <geom type="capsule" size=".02" fromto="0 0 0 0 0 .3" contype="0"/></body>"""
    extra = """<equality><connect body1="p" body2="q" anchor="0 0 -.3" solref=".02 1"/>
      <joint joint1="c" joint2="a" polycoef="0 .5 0 0 0"/></equality>"""
    model, data = load(world, extra, 'tolerance="1e-14" iterations="300"')
    other, stepper = mujoco.MjData(model), hf.Stepper(model)
    for _ in range(300):
        stepper.step(data)
        mujoco.mj_step(model, other)
    assert np.abs(data.qpos).max() > 0.001
    assert data.qpos == pytest.approx(other.qpos, abs=1e-7)


def test_adhesion_holds_a_box_under_a_ceiling_and_no_further() -> None:
    world = ('<geom type="box" size="1 1 .1" pos="0 0 1.1"/><body pos="0 0 {z}"><freejoint/>'
             '<geom type="box" size=".1 .1 .1" mass="1" adhesion="20"/></body>')  # fmt: skip
    model, data = load(world.format(z=0.9))
    hf.step(model, data, nstep=200)
    assert data.qpos[2] == pytest.approx(0.9, abs=1e-9)
    model, data = load(world.format(z=0.89))  # out of reach of its margin: it falls
    hf.step(model, data, nstep=100)
    assert data.qvel[2] == pytest.approx(-9.81 * 0.2, rel=1e-9)


@pytest.mark.parametrize(("condim", "spins"), [(3, True), (4, False), (6, False)])
def test_torsion(condim: int, spins: bool) -> None:
    """A ball spinning on its point: condim 3 lets it spin, 4 and 6 stop it."""
    ball = f'<body pos="0 0 .1"><freejoint/><geom size=".1" condim="{condim}"/></body>'
    model, data = load(FLOOR + ball)
    data.qvel[5] = 3.0
    hf.step(model, data, nstep=5, contact=hf.NoSlip())
    assert data.qvel[5] == pytest.approx(3.0 if spins else 0.0, abs=1e-12)


@pytest.mark.parametrize(("condim", "rolls"), [(3, True), (4, True), (6, False)])
def test_rolling_friction(condim: int, rolls: bool) -> None:
    ball = f'<body pos="0 0 .1"><freejoint/><geom size=".1" condim="{condim}"/></body>'
    model, data = load(FLOOR + ball)
    data.qvel[[0, 4]] = [1.0, 10.0]
    hf.step(model, data, nstep=5, contact=hf.NoSlip())
    assert data.qvel[0] == pytest.approx(1.0 if rolls else 0.0, abs=1e-9)


def test_a_ball_with_rolling_friction_rolls_and_slows_down() -> None:
    """Coulomb, condim 6: the torque of rolling friction is mu_r times the load."""
    ball = '<body pos="0 0 .1"><freejoint/><geom size=".1" condim="6" mass="1"/></body>'
    model, data = load(FLOOR + ball)
    mu = model.geom_friction[1, 2]
    data.qvel[[0, 4]] = [1.0, 10.0]
    hf.step(model, data, nstep=100)
    loss = mu * 9.81 / (0.1 * (1 + 0.4)) * 0.2  # dv = mu_r g t / (R (1 + 2/5))
    assert data.qvel[0] == pytest.approx(1.0 - loss, rel=1e-6)


def test_a_box_on_a_slope_slides_by_the_closed_form() -> None:
    t = np.radians(30)
    world = ('<geom type="plane" size="50 50 1" euler="0 30 0" friction=".1"/>'
             f'<body pos="{0.1 * np.sin(t)} 0 {0.1 * np.cos(t)}" euler="0 30 0">'
             '<freejoint/><geom type="box" size=".1 .1 .1" friction=".1"/></body>')  # fmt: skip
    model, data = load(world)
    hf.step(model, data, nstep=500)
    speed = 9.81 * (np.sin(t) - 0.1 * np.cos(t)) * 500 * 0.002
    assert np.linalg.norm(data.qvel[:3]) == pytest.approx(speed, rel=1e-9)
    assert np.abs(data.qvel[3:]).max() < 1e-9


def test_a_cube_at_six_metres_per_second_slides_and_neither_lifts_nor_turns() -> None:
    world = ('<geom type="plane" size="50 50 1" friction=".5"/><body pos="0 0 .05"><freejoint/>'
             '<geom type="box" size=".05 .05 .05" friction=".5"/></body>')  # fmt: skip
    model, data = load(world, option='timestep=".005"')
    data.qvel[0] = 6.0
    hf.step(model, data, nstep=200)
    assert data.qpos[0] == pytest.approx(3.5352375, abs=1e-9)
    assert data.qvel[0] == pytest.approx(1.095, abs=1e-9)
    assert data.qpos[1:] == pytest.approx([0, 0.05, 1, 0, 0, 0], abs=1e-9)


def test_a_moving_mocap_body_gives_its_velocity() -> None:
    world = ('<body name="bat" mocap="true"><geom type="box" size=".05 .2 .2"/></body>'
             '<body name="ball" pos=".16 0 0"><freejoint/><geom size=".1"/></body>')  # fmt: skip
    model, data = load(world, option='gravity="0 0 0"')
    stepper = hf.Stepper(model)
    for i in range(30):
        data.mocap_pos[0, 0] = 0.002 * i  # 1 m/s
        stepper.step(data)
    assert data.qvel[0] == pytest.approx(1.0, rel=1e-9)
    other = mujoco.MjData(model)
    stepper.step(other)
    other.mocap_pos[0, 0] = 1.0  # beyond its own size: placed, not moved
    stepper.step(other)
    assert np.abs(other.qvel).max() == 0.0


def test_a_mocap_body_that_a_reset_has_placed_has_no_velocity() -> None:
    """The bat moves towards the ball, which is reset with it: in the next step it only stands."""
    world = ('<body name="bat" mocap="true"><geom type="box" size=".05 .2 .2"/></body>'
             '<body name="ball" pos=".15 0 0"><freejoint/><geom size=".1"/></body>')  # fmt: skip
    model, data = load(world, option='gravity="0 0 0"')
    stepper = hf.Stepper(model)
    data.mocap_pos[0, 0] = -0.05
    stepper.step(data)
    mujoco.mj_resetData(model, data)  # the bat is back, by less than its size
    stepper.step(data)
    assert np.abs(data.qvel).max() == 0.0
    data.mocap_pos[0, 0] = 0.001
    stepper.step(data)
    assert data.qvel[0] == pytest.approx(0.5, rel=1e-9)  # from here on it moves


def test_two_data_in_turn_keep_their_histories() -> None:
    """What one stepper does with one data does not depend on what it does with another."""
    model, one = load(FLOOR + BOX + '<body mocap="true" pos="0 0 3"><geom size=".1"/></body>')
    alone, two = mujoco.MjData(model), mujoco.MjData(model)
    both, single = hf.Stepper(model), hf.Stepper(model)
    two.qpos[0] += 0.3
    for i in range(20):
        for each in (one, alone, two):
            each.mocap_pos[0, 0] = 0.001 * i
        both.step(one)
        both.step(two)
        single.step(alone)
    assert np.array_equal(state(model, one), state(model, alone))


def test_forward_finds_forces_where_mujoco_sees_none() -> None:
    model, data = load(FLOOR + BOX)
    hf.step(model, data, nstep=20)
    before = state(model, data)
    hf.forward(model, data)
    assert np.array_equal(
        state(model, data)[1 : model.nq + model.nv], before[1 : model.nq + model.nv]
    )
    force, total = np.zeros(6), 0.0
    for i in range(data.ncon):
        mujoco.mj_contactForce(model, data, i, force)
        total += force[0]
    assert total == pytest.approx(8 * 9.81, rel=1e-9)


def test_a_normal_through_a_joint_axis_carries_nothing() -> None:
    """The row of such a contact is rounding; taken for real it would ask for 1e16 N."""
    world = ('<geom type="sphere" size=".1" pos="0 0 -.3"/><body><joint axis="0 1 0"/>'
             '<geom type="capsule" size=".1" fromto="0 0 0 0 0 -.15"/>'
             '<geom size=".05" pos=".3 0 0"/></body>')  # fmt: skip
    model, data = load(world)
    stepper = hf.Stepper(model)
    stepper.step(data, 5)
    assert np.abs(data.efc_force).max(initial=0.0) < 100.0
    assert stepper.largest_correction < 1e-6


def test_pair_margins_are_honoured() -> None:
    world = FLOOR + '<body pos="0 0 .12"><freejoint/><geom name="g" size=".1"/></body>'
    model, data = load(world, '<contact><pair geom1="floor" geom2="g" margin=".05"/></contact>')
    other = mujoco.MjData(model)
    hf.step(model, data)
    mujoco.mj_forward(model, other)
    assert data.contact.includemargin[0] == other.contact.includemargin[0] == 0.05
    assert data.contact.exclude[0] == 0


# --- laws, contacts, warnings --------------------------------------------------------------------


@pytest.mark.parametrize("where", ["python geoms", "python bodies", "mjcf", "anything"])
def test_law_of_a_pair(where: str) -> None:
    text = {
        "mjcf": '<custom><text name="holdfast:floor,box" data="frictionless"/></custom>',
        "anything": '<custom><text name="holdfast:*,*" data="frictionless"/></custom>',
    }
    laws = {"python geoms": {("g", "floor"): hf.frictionless()},
            "python bodies": {("box", "world"): hf.frictionless()}}  # fmt: skip
    model, data = load(FLOOR + BOX, text.get(where, ""))
    data.qvel[0] = 1.0
    stepper = hf.Stepper(model, laws=laws.get(where))
    stepper.step(data, 10)
    assert data.qvel[0] == pytest.approx(1.0, rel=1e-12)
    assert {law.kind for law in stepper.contacts.law} == {"frictionless"}


def test_python_goes_before_mjcf_and_names_before_anything() -> None:
    text = ('<custom><text name="holdfast:*,*" data="frictionless"/>'
            '<text name="holdfast:floor,g" data="viscous 0.25"/></custom>')  # fmt: skip
    model, data = load(FLOOR + BOX, text)
    stepper = hf.Stepper(model)
    stepper.step(data, 2)
    assert {law.mu_v for law in stepper.contacts.law} == {0.25}
    stepper = hf.Stepper(model, laws={("*", "*"): hf.stick()})
    stepper.step(data, 2)
    assert {law.kind for law in stepper.contacts.law} == {"stick"}


@pytest.mark.parametrize("data", ["sticky", "viscous", "viscous much"])
def test_bad_law_in_the_mjcf_is_explained(data: str) -> None:
    model, _ = load(FLOOR + BOX, f'<custom><text name="holdfast:floor,g" data="{data}"/></custom>')
    with pytest.raises(hf.InputError, match="holdfast:floor,g"):
        hf.Stepper(model)


def test_table_of_contacts() -> None:
    model, data = load(FLOOR + BOX)
    stepper = hf.Stepper(model)
    assert len(stepper.contacts) == 0
    stepper.step(data, 5)
    table = stepper.contacts
    assert len(table) == 4
    assert set(table.bodies) == {("world", "box")} and set(table.geoms) == {("floor", "g")}
    assert table.normal_force.sum() == pytest.approx(8 * 9.81, rel=1e-9)
    assert table.force.sum(axis=0) == pytest.approx([0, 0, 8 * 9.81], abs=1e-9)
    assert np.allclose(table.declared, 1.0) and not table.exceeded.any()
    assert table.rows()[0]["law"] == "coulomb" and "box" in str(table)
    assert [row["geoms"] for row in table] == table.geoms


def test_warning_once_per_pair_where_friction_is_exceeded() -> None:
    t = np.radians(30)
    world = ('<geom type="plane" size="5 5 1" euler="0 30 0" friction=".3"/>'
             f'<body name="box" pos="{0.1 * np.sin(t)} 0 {0.1 * np.cos(t)}" euler="0 30 0">'
             '<freejoint/><geom type="box" size=".1 .1 .1" friction=".3"/></body>')  # fmt: skip
    model, data = load(world)
    stepper = hf.Stepper(model, hf.NoSlip())
    with pytest.warns(FrictionWarning, match=r"0\.577.*0\.3") as caught:
        stepper.step(data, 20)
    assert len(caught) == 1
    assert stepper.contacts.exceeded.all()
    assert [need for need, _ in stepper.contacts.pairs().values()] == [pytest.approx(np.tan(t))]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hf.Stepper(model, hf.NoSlip(), warn=False).step(data, 2)


def test_what_a_pair_of_bodies_needs_is_told_as_the_table_has_it() -> None:
    """Boxes of a pile, whose redundant contacts need more than their pairs do."""
    model = mujoco.MjModel.from_xml_string(scenes.pile(5))
    data, stepper = mujoco.MjData(model), hf.Stepper(model, hf.NoSlip())
    told: dict[str, float] = {}
    for _ in range(150):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            stepper.step(data)
        table = stepper.contacts
        over = {f"{a} and {b} hold": need for (a, b), (need, declared) in table.pairs().items()
                if need > declared and table.exceeded.any()}  # fmt: skip
        for warning in caught:
            if warning.category is hf.StepWarning:
                continue
            text = str(warning.message)
            name = text.split(" on ")[0]
            assert name not in told  # once
            assert f"coefficient of {over[name]:.3g}," in text
            told[name] = over[name]
    assert told


def test_a_pair_of_bodies_is_one_pair_whichever_geom_comes_first() -> None:
    """Friction at one contact undoes that at the other, as they are listed the other way round."""
    flat = {"bodies": [("a", "b"), ("b", "a")], "normal_force": np.array([2.0, 2.0]),
            "normal": np.array([[0.0, 0.0, 1.0], [0.0, 0.0, -1.0]]),
            "force": np.array([[1.0, 0.0, 2.0], [1.0, 0.0, -2.0]]),
            "declared": np.array([0.5, 0.3]), "law": [hf.stick(), hf.stick()]}  # fmt: skip
    assert replace(Contacts.none(), **flat).pairs() == {("a", "b"): (0.0, 0.3)}


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_what_a_pair_needs_does_not_depend_on_the_unit_of_force(unit: float) -> None:
    light = {"bodies": [("a", "b")], "normal_force": unit * np.array([2.0]),
             "normal": np.array([[0.0, 0.0, 1.0]]), "force": unit * np.array([[1.0, 0.0, 2.0]]),
             "declared": np.array([0.3]), "law": [hf.stick()]}  # fmt: skip
    ((need, declared),) = replace(Contacts.none(), **light).pairs().values()
    assert need == pytest.approx(0.5) and declared == 0.3
    unloaded = light | {"normal_force": np.zeros(1), "force": np.zeros((1, 3))}
    assert replace(Contacts.none(), **unloaded).pairs() == {("a", "b"): (0.0, 0.3)}


def test_columns_of_the_table_stand_below_their_headings() -> None:
    model, data = load(FLOOR + BOX)
    stepper = hf.Stepper(model)
    stepper.step(data, 2)
    heading, *lines = str(stepper.contacts).splitlines()
    at = heading.index("law")
    assert len(lines) == 4 and all(line[at:] == "coulomb" for line in lines)


@pytest.mark.parametrize("contact", [hf.NoSlip(grip="all"), hf.Viscous(0.1), hf.Frictionless()])
def test_other_contact_models(contact: hf.ContactModel) -> None:
    model, data = load(FLOOR + BOX)
    hf.step(model, data, contact=contact, nstep=20)
    assert data.qpos[2] == pytest.approx(0.1, abs=1e-12)


def test_models_with_arrays_need_a_stepper() -> None:
    model, data = load(FLOOR + BOX)
    contact = hf.Viscous(np.full(4, 0.1))
    with pytest.raises(hf.InputError, match="Stepper"):
        hf.step(model, data, contact=contact)
    hf.Stepper(model, contact=contact).step(data)
    assert data.qpos[2] == pytest.approx(0.1, abs=1e-12)


def test_build_problem_is_what_is_solved() -> None:
    model, data = load(FLOOR + BOX)
    before = state(model, data)
    problem = hf.build_problem(model, data)
    assert np.array_equal(state(model, data), before)
    solution = hf.NoSlip().solve(problem)
    hf.step(model, data)
    assert data.qvel == pytest.approx(solution.velocity, abs=1e-12)


@pytest.mark.filterwarnings("ignore::holdfast.mujoco.FrictionWarning")
def test_penetration_is_taken_out_without_adding_speed() -> None:
    model, data = load(FLOOR + BOX.replace("0 0 .1", "0 0 .095"))
    stepper = hf.Stepper(model)
    stepper.step(data)
    assert stepper.largest_penetration == pytest.approx(0.005)
    assert np.abs(data.qvel).max() < 1e-12
    stepper.step(data, 3)
    assert data.qpos[2] == pytest.approx(0.1, abs=1e-9)
    assert np.abs(data.qpos[:2]).max() < 1e-12


def test_a_correction_is_capped_in_each_step() -> None:
    """A box deep in the floor comes out by 10 cm in a step, and stands still when it is out."""
    model, data = load(FLOOR + BOX.replace("0 0 .1", "0 0 -.05"))
    stepper = hf.Stepper(model)
    heights = [data.qpos[2]]
    for _ in range(4 * stepper.options.deep_period):
        stepper.step(data)
        heights.append(data.qpos[2])
        assert np.abs(data.qvel).max() < 1e-12
    cap = stepper.options.correction_step
    assert np.diff(heights).max() == pytest.approx(cap, rel=1e-9)
    assert stepper.largest_correction == pytest.approx(cap, rel=1e-9)
    assert heights[-1] == pytest.approx(0.1, abs=1e-9)


def test_overlap_that_no_motion_removes_is_left_and_said_once() -> None:
    """A box that is wider than the slot it slides in: it neither moves nor is pushed about."""
    walls = "".join(
        f'<geom name="{name}" type="box" pos="{x} 0 0" size=".12 1 9" friction="0"/>'
        for name, x in (("left", -0.2), ("right", 0.2))
    )
    body = ('<body name="box"><joint type="slide" axis="1 0 0"/>'
            '<joint type="slide" axis="0 0 1"/>'
            '<geom type="box" size=".1 .1 .1" mass="1" friction="0"/></body>')  # fmt: skip
    model, data = load(walls + body)
    stepper = hf.Stepper(model)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(200):
            stepper.step(data)
    said = [str(w.message) for w in caught if issubclass(w.category, hf.StepWarning)]
    assert len(said) == 1 and "overlap, and no motion removes it" in said[0]
    assert data.qpos[0] == data.qvel[0] == 0.0  # held in the middle
    h = model.opt.timestep
    assert data.qvel[1] == pytest.approx(-9.81 * 200 * h, rel=1e-9)  # and falls along the slot


@pytest.mark.parametrize("further", [1, 4])
def test_a_vain_correction_is_tried_now_and_then_whatever_the_number_of_joints(
    further: int,
) -> None:
    """Six joints are no free body: overlap of a mechanism is not attempted in every step."""
    walls = "".join(
        f'<geom type="box" pos="{x} 0 0" size=".12 1 9" friction="0"/>' for x in (-0.2, 0.2)
    )
    links = '<body pos="0 0 -.3"><joint axis="0 1 0"/><geom size=".02" mass=".1"/>' * further
    body = ('<body><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/>'
            f'<geom type="box" size=".1 .1 .1" mass="1" friction="0"/>{links}'
            f'{"</body>" * (further + 1)}')  # fmt: skip
    model, data = load(walls + body)
    stepper = hf.Stepper(model, warn=False)
    stepper.step(data, 2 * stepper.options.deep_period)
    assert stepper._get("stuck") == 2  # attempts that did not help


def test_a_limit_is_corrected_beside_an_overlap_that_cannot_be() -> None:
    """A box that is wider than its slot, and a link on it that begins beyond its limit."""
    walls = "".join(
        f'<geom type="box" pos="{x} 0 0" size=".12 1 9" friction="0"/>' for x in (-0.2, 0.2)
    )
    body = ('<body><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/>'
            '<geom type="box" size=".1 .1 .1" mass="1" friction="0"/><body pos="0 0 -.3">'
            '<joint axis="0 1 0" limited="true" range="20 60"/><geom size=".02" mass=".1"/>'
            '</body></body>')  # fmt: skip
    model, data = load(walls + body)
    stepper = hf.Stepper(model, warn=False)
    low = np.deg2rad(20.0)
    most = int(np.ceil(low / stepper.options.correction_step)) * stepper.options.deep_period
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stepper.step(data, most + 1)
    assert data.qpos[2] == pytest.approx(low, abs=1e-6)
    assert np.abs(data.qvel[[0, 2]]).max() <= 1e-9
    assert abs(data.qpos[0]) <= 1e-9  # the box stays in the middle


def test_links_that_overlap_at_their_joint_are_left_alone() -> None:
    """Deep in each other, with a normal that passes 2 mm from the axis: no contact, said once.

    Kept as a contact, friction would block the joint, with forces as large as it takes.
    """
    world = ('<geom name="base" pos="0 0 .002" size=".1"/><body name="arm">'
             '<joint axis="0 1 0"/><geom name="arm" pos=".05 0 0" size=".1"/>'
             '<geom pos=".4 0 0" size=".05"/></body>')  # fmt: skip
    model, data = load(world)
    apart, other = load(world, '<contact><exclude body1="world" body2="arm"/></contact>')
    stepper = hf.Stepper(model)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        stepper.step(data, 100)
    said = [str(w.message) for w in caught if issubclass(w.category, hf.StepWarning)]
    assert len(said) == 1 and "base and arm overlap" in said[0]
    hf.step(apart, other, 100)
    assert abs(other.qvel[0]) > 1.0
    np.testing.assert_allclose(data.qpos, other.qpos, rtol=1e-9)
    np.testing.assert_allclose(data.qvel, other.qvel, rtol=1e-9)


@pytest.mark.parametrize(
    ("speed", "margin", "rows"),
    [((0.0, 10.0), 0.0, 0), ((3.0, 10.0), 0.0, 3), ((0.0, 10.0), 0.01, 3)],
    ids=["side by side", "approaching", "within the user's margin"],
)
def test_only_surfaces_that_may_meet_have_rows(
    speed: tuple[float, float], margin: float, rows: int
) -> None:
    """Two balls, 5 mm apart, that fly 2 cm in a step: the margins of both reach farther.

    A third one flies the other way, so that there is no drift.
    """
    ball = '<body pos="{} 0 0"><freejoint/><geom size=".1" margin="{}"/></body>'
    balls = ball.format(0, margin) + ball.format(0.205, 0.0) + ball.format(5.0, 0.0)
    model, data = load(balls, option='cone="elliptic"')
    data.qvel[:2], data.qvel[6:8] = speed, (0.0, 10.0)
    data.qvel[12:14] = -speed[0], -20.0
    stepper = hf.Stepper(model)
    stepper.smooth(data)
    assert data.ncon == 1 and data.contact.dist[0] == pytest.approx(0.005, rel=1e-9)
    assert len(stepper.constraints(data).target) == rows
    stepper.smooth(data)
    stepper.solve(data)
    stepper.finish(data)
    far = np.linalg.norm(data.qpos[7:10] - data.qpos[:3])
    assert far == pytest.approx(0.205 - min(speed[0] * model.opt.timestep, 0.005), rel=1e-9)


def test_squeezed_between_a_wall_and_a_driven_wall_is_an_error() -> None:
    """A box between two walls, one of them driven through it: no motion, and a proof."""
    world = (
        '<geom type="box" size=".1 1 1" pos=".2 0 0"/>'
        '<body name="box"><freejoint/><geom type="box" size=".1 .1 .1"/></body>'
        '<body name="hand" mocap="true" pos="-.2 0 0"/>'
        '<body name="wall" pos="-.2 0 0"><freejoint/><geom type="box" size=".1 .1 .1"/></body>'
    )
    model, data = load(world, '<equality><weld body1="wall" body2="hand"/></equality>')
    hf.Stepper(model).step(data, 3)  # a compliant weld gives way
    data = mujoco.MjData(model)
    stepper = hf.Stepper(model, equalities="rigid")
    stepper.step(data)
    data.mocap_pos[0, 0] = -0.15
    before = state(model, data)
    with pytest.raises(hf.SolveError):
        stepper.step(data)
    assert np.array_equal(state(model, data), before)


def test_quadruped_scene_is_what_it_says() -> None:
    model = mujoco.MjModel.from_xml_string(scenes.quadruped())
    assert model.nv == 18 and model.nu == 12
    assert model.body_mass.sum() == pytest.approx(1.34)


# --- the compiled path ---------------------------------------------------------------------------

HELD = {
    "grasp": scenes.row_of_boxes(2),
    "quadruped": scenes.quadruped(),
    "capsule": scenes.pinched_capsule(),
    "weld": """<mujoco><worldbody><geom type="plane" size="1 1 1"/>
      <body name="a" pos="0 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
      <body name="b" pos=".3 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
      </worldbody><equality><weld body1="a" body2="b"/></equality></mujoco>""",
    "limit and loss": """<mujoco><worldbody><geom type="plane" size="1 1 1"/>
      <body pos="0 0 .5"><joint axis="0 1 0" range="-10 10" limited="true" frictionloss=".1"/>
        <geom type="capsule" size=".02" fromto="0 0 0 .3 0 0"/></body></worldbody></mujoco>""",
}


@pytest.mark.parametrize("name", HELD)
def test_the_step_finds_what_an_independent_solve_of_its_problem_finds(name: str) -> None:
    model = mujoco.MjModel.from_xml_string(HELD[name])
    data = mujoco.MjData(model)
    if model.nkey:
        mujoco.mj_resetDataKeyframe(model, data, 0)
    stepper = hf.Stepper(model, hf.NoSlip(), warn=False, equalities="rigid")
    for _ in range(5):
        stepper.step(data, 9)
        problem = hf.build_problem(model, data)
        other = hf.NoSlip().solve(problem)
        stepper.step(data)
        assert stepper.solution is not None and stepper.solution.is_exact()
        size = np.abs(problem.free_velocity).max() + 1e-6
        assert np.abs(stepper.solution.velocity - other.velocity).max() < 1e-9 * size


@pytest.mark.parametrize("friction", ["1 .005 .0001", ".8 .00002 .00002"])
def test_rows_are_the_same_in_both_cones(friction: str) -> None:
    """Also where pyramids are so narrow that their edges do not tell their axes."""
    motions = []
    for cone in ("pyramidal", "elliptic"):
        xml = f"""<mujoco><option cone="{cone}"/>
          <default><geom condim="6" friction="{friction}"/></default>
          <worldbody><geom type="plane" size="1 1 1" euler="0 5 0"/>
          <body pos="0 0 .12" euler="0 5 0"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
          </worldbody></mujoco>"""
        model = mujoco.MjModel.from_xml_string(xml)
        data = mujoco.MjData(model)
        stepper = hf.Stepper(model, hf.NoSlip(), warn=False)
        stepper.step(data, 200)
        force, total = np.zeros(6), np.zeros(3)
        for i in range(data.ncon):
            mujoco.mj_contactForce(model, data, i, force)
            total += data.contact.frame[i].reshape(3, 3).T @ force[:3]
        assert total == pytest.approx([0.0, 0.0, 9.81 * model.body_mass[1]], rel=1e-6, abs=1e-8)
        motions.append(np.array(data.qpos))
    assert motions[0] == pytest.approx(motions[1], abs=1e-9)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_heap_comes_to_rest(seed: int) -> None:
    model = mujoco.MjModel.from_xml_string(scenes.pile(6, seed, reach=0.1))
    data = mujoco.MjData(model)
    stepper = hf.Stepper(model, warn=False)
    stepper.step(data, 400)
    assert np.abs(data.qvel).max() < 1e-6
    assert stepper.solution is not None
    assert stepper.solution.momentum_residual() < 1e-9
    weight = 6 * 0.5 * 9.81
    floor = [i for i, pair in enumerate(stepper.contacts.bodies) if "world" in pair]
    assert stepper.contacts.force[floor].sum(axis=0) == pytest.approx([0, 0, weight], abs=1e-4)


@pytest.mark.parametrize("energy", ["enable", "disable"])
@pytest.mark.parametrize("whole", [True, False])
def test_sensors_show_the_state_of_the_step_and_no_earlier_one(
    energy: str, whole: bool, request: pytest.FixtureRequest
) -> None:
    model = mujoco.MjModel.from_xml_string(f"""<mujoco><option><flag energy="{energy}"/></option>
      <worldbody><body pos="0 0 3"><freejoint/><geom type="box" size=".1 .2 .1"/><site name="s"/>
        <body name="b" pos=".3 0 0"><joint/><geom size=".1"/></body></body></worldbody>
      <sensor><e_kinetic/><e_potential/><subtreelinvel body="b"/><subtreeangmom body="b"/>
        <accelerometer site="s"/><force site="s"/><framelinacc objtype="body" objname="b"/>
      </sensor></mujoco>""")
    data, stepper = mujoco.MjData(model), hf.Stepper(model)
    data.qvel[:] = np.arange(model.nv)
    if not whole:
        mujoco.set_mjcb_control(lambda *_: None)
        request.addfinalizer(lambda: mujoco.set_mjcb_control(None))
    for _ in range(5):
        fresh = mujoco.MjData(model)
        fresh.qpos[:], fresh.qvel[:] = data.qpos, data.qvel
        mujoco.mj_forward(model, fresh)
        stepper.step(data)
        assert data.sensordata == pytest.approx(fresh.sensordata, rel=1e-9, abs=1e-9)
        assert data.energy == pytest.approx(fresh.energy, rel=1e-12)


def test_sensors_of_limits_show_what_the_users_margins_say() -> None:
    """Within the margin and on its way to the limit, out of the margin, and beyond the limit."""
    model, data = load(
        """<body pos="0 0 3"><joint name="a" limited="true" range="-30 30" margin="10"/>
             <geom size=".1"/></body>
           <body pos="1 0 3"><joint name="b" axis="1 0 0" limited="true" range="-10 10"/>
             <geom size=".1" pos="0 .1 0"/></body>""",
        """<tendon><fixed name="t" limited="true" range="-.1 .1"><joint joint="b" coef="1"/></fixed>
           </tendon><sensor><jointlimitpos joint="a"/><jointlimitvel joint="a"/>
             <jointlimitpos joint="b"/><jointlimitvel joint="b" cutoff=".5"/>
             <tendonlimitpos tendon="t"/><tendonlimitvel tendon="t"/></sensor>""",
        'gravity="0 0 0"',
    )
    stepper = hf.Stepper(model)
    for a, b in ((0.4, 0.0), (0.0, 0.05), (-0.4, 0.15), (0.3, -0.2)):
        other = mujoco.MjData(model)
        for each in (data, other):
            each.qpos[:], each.qvel[:] = (a, b), (0.2, -1.0)
        mujoco.mj_forward(model, other)
        stepper.step(data)
        assert data.sensordata == pytest.approx(other.sensordata, rel=1e-12, abs=1e-15)
    assert np.abs(data.sensordata).min() > 0.0


def test_a_model_without_bodies_is_stepped() -> None:
    model = mujoco.MjModel.from_xml_string("<mujoco/>")
    data = mujoco.MjData(model)
    hf.step(model, data, 3)
    assert data.time == pytest.approx(3 * model.opt.timestep)


def test_tolerances_are_options() -> None:
    """A step that looks ahead only where surfaces sink in by half a body sees nothing to redo."""
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><option timestep="0.01"/><worldbody><geom type="plane" size="9 9 1"/>'
        '<body pos="0 0 .3" euler="20 30 0"><freejoint/><geom type="box" size=".1 .1 .1"/></body>'
        "</worldbody></mujoco>"
    )
    found = {}
    for name, options in (("usual", hf.mujoco.StepOptions()), ("blind", _BLIND)):
        data, stepper = mujoco.MjData(model), hf.Stepper(model, options=options)
        data.qvel[3:] = 15.0
        stepper.step(data, 60)
        found[name] = stepper.resolved_steps, stepper.largest_penetration
    assert found["usual"][0] > 0 and found["blind"][0] == 0
    assert found["blind"][1] > found["usual"][1]


_BLIND = hf.mujoco.StepOptions(sunk=0.5)


@pytest.mark.parametrize(
    "given", [{"sunk": -1.0}, {"hopeless_after": 1.5}, {"touching": float("nan")}]
)
def test_tolerances_are_checked(given: dict[str, float]) -> None:
    with pytest.raises(hf.InputError, match=next(iter(given))):
        hf.mujoco.StepOptions(**given)  # pyright: ignore[reportArgumentType]
