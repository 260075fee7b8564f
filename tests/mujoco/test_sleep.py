"""Trees that sleep, by MuJoCo's rules."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import pytest

import holdfast as hf

SIZE = 0.1
SCENE = """<mujoco><option integrator="{integrator}"><flag sleep="{sleep}"/></option><worldbody>
  <geom type="plane" size="5 5 1"/>
  <body name="low" pos="0 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
  <body name="high" pos="0 0 .3"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
  <body name="beside" pos=".3 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
  <body name="away" pos="2 0 .1"><freejoint/><geom type="cylinder" size=".1 .1"/></body>
  <body name="ball" pos=".03 .02 1.2"><freejoint/><geom size=".05"/></body>
</worldbody></mujoco>"""
LOW, HIGH, BESIDE, AWAY, BALL = range(5)  # trees


def scene(sleep: str = "enable", integrator: str = "Euler") -> Any:
    return mujoco.MjModel.from_xml_string(SCENE.format(sleep=sleep, integrator=integrator))


def asleep(data: Any) -> list[int]:
    return np.flatnonzero(data.tree_asleep >= 0).tolist()


@pytest.mark.parametrize("integrator", ["Euler", "implicitfast", "implicit", "discrete"])
def test_resting_bodies_fall_asleep_and_wake_when_hit(integrator: str) -> None:
    """A ball falls on a stack: who sleeps stays where it is, bit for bit, until it is reached."""
    model = scene(integrator=integrator)
    data, stepper = mujoco.MjData(model), hf.Stepper(model)
    stepper.step(data, 30)
    assert asleep(data) == [LOW, HIGH, BESIDE, AWAY]
    assert data.tree_asleep[LOW] == HIGH and data.tree_asleep[HIGH] == LOW  # one island
    resting = data.qpos[:28].copy()
    while data.nv_awake == 6:
        assert np.array_equal(data.qpos[:28], resting) and not data.qvel[:24].any()
        stepper.step(data)
    height = data.qpos[5 * 7 - 5]
    assert 0.45 < height < 0.46  # woken where the ball touches, not before
    assert not {LOW, HIGH} & set(asleep(data)) and AWAY in asleep(data)
    stepper.step(data, 400)
    assert asleep(data) == [LOW, HIGH, BESIDE, AWAY, BALL]
    assert data.qpos[5 * 7 - 5] == pytest.approx(0.45, abs=1e-6)


def test_the_motion_is_that_without_sleep() -> None:
    """As long as what sleeps is at rest; the ball rolls off in neither."""
    ends = []
    for sleep in ("enable", "disable"):
        model = scene(sleep)
        data = mujoco.MjData(model)
        hf.Stepper(model).step(data, 600)
        ends.append(data.qpos.copy())
    assert np.abs(ends[0] - ends[1]).max() < 1e-5 * SIZE


def test_those_behind_the_woken_are_woken() -> None:
    """Boxes with hair gaps between them sleep each alone; a push on the first one moves all."""
    boxes = "".join(f'<body pos="{0.20002 * k} 0 .1"><freejoint/><geom type="box" size=".1 .1 .1" '
                    'friction=".1"/></body>' for k in range(4))  # fmt: skip
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><option><flag sleep="enable"/></option><worldbody><geom type="plane" '
        f'size="5 5 1" friction=".1"/>{boxes}</worldbody></mujoco>'
    )
    data, stepper = mujoco.MjData(model), hf.Stepper(model)
    stepper.step(data, 20)
    assert data.tree_asleep.tolist() == [0, 1, 2, 3]
    data.qvel[0] = 1.0
    stepper.step(data)
    assert asleep(data) == []
    assert np.diff(data.qpos[::7]) == pytest.approx(2 * SIZE, abs=1e-6 * SIZE)  # no gaps
    assert stepper.largest_penetration < 1e-5 * SIZE


@pytest.mark.parametrize("what", ["qfrc_applied", "xfrc_applied", "qvel", "qpos"])
def test_what_the_user_does_to_a_tree_wakes_it(what: str) -> None:
    model = scene()
    data, stepper = mujoco.MjData(model), hf.Stepper(model)
    stepper.step(data, 30)
    getattr(data, what).reshape(-1)[
        {"xfrc_applied": 6 * 4 + 2, "qpos": 7 * 3 + 2}.get(what, 20)
    ] = 1.0
    stepper.step(data)
    assert AWAY not in asleep(data) and {LOW, HIGH, BESIDE} <= set(asleep(data))


def test_bodies_that_begin_asleep_stay_in_mid_air() -> None:
    """`sleep="init"`: until something touches them, also in rollouts of one stepper."""
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><option><flag sleep="enable"/></option><worldbody>'
        '<geom type="plane" size="1 1 1"/>'
        '<body pos="0 0 1" sleep="init"><freejoint/><geom size=".1"/></body>'
        '<body pos="0 0 1.5"><freejoint/><geom size=".1"/></body></worldbody></mujoco>'
    )  # fmt: skip
    data, stepper = mujoco.MjData(model), hf.Stepper(model)
    stepper.step(data, 50)
    assert data.qpos[2] == 1.0 and data.qpos[9] < 1.5 and asleep(data) == [0]
    stepper.step(data, 150)
    assert data.qpos[2] < 0.9 and asleep(data) == []
    first = np.zeros((2, mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS)))
    mujoco.mj_getState(model, mujoco.MjData(model), first[0], mujoco.mjtState.mjSTATE_FULLPHYSICS)
    first[1] = first[0]
    states, _ = hf.rollout(model, mujoco.MjData(model), first, nstep=50, nthread=1)
    assert np.array_equal(states[0], states[1]) and states[0, -1, 3] == 1.0


def test_switching_the_flag_off_wakes_all() -> None:
    model = scene()
    data, stepper = mujoco.MjData(model), hf.Stepper(model)
    stepper.step(data, 30)
    model.opt.enableflags = 0
    stepper.step(data)
    assert asleep(data) == [] and data.ncon > 0


@pytest.mark.filterwarnings("ignore:the integrator RK4:holdfast.StepWarning")
@pytest.mark.parametrize("change", ["RK4", "adhesion"])
def test_where_nothing_sleeps(change: str) -> None:
    text = SCENE.format(sleep="enable", integrator="RK4" if change == "RK4" else "Euler")
    if change == "adhesion":
        text = text.replace("</worldbody>", '</worldbody><actuator><adhesion body="ball" '
                            'ctrlrange="0 1"/></actuator>')  # fmt: skip
    model = mujoco.MjModel.from_xml_string(text)
    data, stepper = mujoco.MjData(model), hf.Stepper(model, warn=False)
    stepper.step(data, 60)
    assert asleep(data) == [] and data.nv_awake == model.nv


def test_callbacks_see_the_same_steps() -> None:
    model = scene()
    data, other = mujoco.MjData(model), mujoco.MjData(model)
    hf.Stepper(model).step(data, 300)
    try:
        mujoco.set_mjcb_passive(lambda model, data: None)
        hf.Stepper(model).step(other, 300)
    finally:
        mujoco.set_mjcb_passive(None)
    assert np.array_equal(data.qpos, other.qpos)
    assert np.array_equal(data.tree_asleep, other.tree_asleep) and asleep(data)


def test_equality_constraints_wake_whom_they_tie() -> None:
    """A lamp hangs on a sleeping box that stands next to a third one: the push wakes all three."""
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><option><flag sleep="enable"/></option><worldbody>'
        '<geom type="plane" size="5 5 1"/>'
        '<body name="a" pos="0 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/></body>'
        '<body name="b" pos="1 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/></body>'
        '<body name="c" pos="1.20002 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/></body>'
        '</worldbody><equality><weld body1="a" body2="b"/></equality></mujoco>'
    )  # fmt: skip
    data, stepper = mujoco.MjData(model), hf.Stepper(model)
    stepper.step(data, 60)
    assert data.tree_asleep.tolist() == [1, 0, 2]
    data.qfrc_applied[0] = 1000.0
    stepper.step(data)
    assert asleep(data) == [] and data.ncon >= 12
