"""What drives bodies between events: actuators, the user's forces, mocap bodies, dry friction."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import pytest

import holdfast as hf
from event_scenes import BALL, G, load

SLIDER = ('<body pos="{x} 0 0"><joint name="{name}" type="slide" axis="{axis}" {joint}/>'
          '<geom size=".1" mass="{mass}"/></body>')  # fmt: skip


def slider(
    name: str, x: float = 0.0, axis: str = "0 1 0", mass: float = 1.0, joint: str = ""
) -> str:
    return SLIDER.format(name=name, x=x, axis=axis, mass=mass, joint=joint)


def run(model: mujoco.MjModel, data: mujoco.MjData, duration: float, **more: Any) -> hf.EventDriven:
    simulation = hf.EventDriven(model, hf.NoSlip(), **more)
    simulation.advance(data, duration)
    return simulation


def test_a_filter_is_of_fourth_order() -> None:
    """``act' = (ctrl - act) / T`` and ``x'' = act``: the motion is known."""
    errors = []
    for h in (0.1, 0.05):
        model, data = load(
            slider("a"), option=f'timestep="{h}" gravity="0 0 0"', floor="",
            extra='<actuator><general joint="a" dyntype="filter" dynprm=".3"/></actuator>',
        )  # fmt: skip
        data.ctrl[0] = 2.0
        run(model, data, 1.0)
        T, t = 0.3, 1.0
        decay = np.exp(-t / T)
        assert data.act[0] == pytest.approx(2.0 * (1.0 - decay), abs=1e-3)
        x = 2.0 * (0.5 * t**2 - T * t + T**2 * (1.0 - decay))
        errors.append([abs(data.act[0] - 2.0 * (1.0 - decay)), abs(data.qpos[0] - x)])
    assert (np.log2(np.divide(*errors)) > 3.5).all()


@pytest.mark.parametrize("integrator", ["rk4", "symplectic_euler"])
def test_activations_stay_in_their_ranges(integrator: Any) -> None:
    names = "abc"
    model, data = load(
        "".join(slider(name, k) for k, name in enumerate(names)),
        option='gravity="0 0 0"', floor="",
        extra="<actuator>" + "".join(
            f'<general joint="{name}" dyntype="integrator" actlimited="true" '
            f'actrange="{-0.1 * k - 0.1} {0.2 * k + 0.3}"/>' for k, name in enumerate(names)
        ) + "</actuator>",
    )  # fmt: skip
    data.ctrl[:] = [1.0, -1.0, 0.25]
    run(model, data, 1.0, integrator=integrator)
    np.testing.assert_allclose(data.act, [0.3, -0.2, 0.25], rtol=1e-9)


def test_forces_of_the_user_at_the_time_of_each_stage() -> None:
    """``x'' = cos 3 t``, by a callback that asks for the time."""
    errors = []

    def push(_model: Any, data: Any) -> None:
        data.qfrc_passive[0] += np.cos(3.0 * data.time)

    for h in (0.1, 0.05):
        model, data = load(slider("a"), option=f'timestep="{h}" gravity="0 0 0"', floor="")
        mujoco.set_mjcb_passive(push)
        try:
            run(model, data, 1.0)
        finally:
            mujoco.set_mjcb_passive(None)
        errors.append([abs(data.qpos[0] - (1.0 - np.cos(3.0)) / 9.0),
                       abs(data.qvel[0] - np.sin(3.0) / 3.0)])  # fmt: skip
    assert (np.log2(np.divide(*errors)) > 3.5).all()


def test_a_body_follows_its_mocap_body_critically_damped() -> None:
    T = 0.05
    model, data = load(
        '<body name="goal" mocap="true"/><body name="tool"><freejoint/><geom size=".1"/></body>',
        option='gravity="0 0 0"', floor="",
        extra=f'<equality><weld body1="tool" body2="goal" solref="{T} 1"/></equality>',
    )  # fmt: skip
    data.mocap_pos[0] = [0.02, 0.0, -0.01]
    simulation = hf.EventDriven(model, hf.NoSlip())
    for _ in range(5):
        simulation.advance(data, 0.02)
        t = data.time / T
        left = (1.0 + t) * np.exp(-t)
        np.testing.assert_allclose(data.qpos[:3], data.mocap_pos[0] * (1.0 - left), atol=2e-4)


def test_dry_friction_of_joints_beside_others_that_are_tied() -> None:
    """Each slows down by its own friction, and stops, to what friction changes in one step."""
    model, data = load(
        slider("a", 0, mass=2.0, joint='frictionloss="1"')
        + slider("b", 1, joint='frictionloss="3"') + slider("c", 2) + slider("d", 3),
        option='gravity="0 0 0"', floor="",
        extra='<equality><joint joint1="c" joint2="d"/></equality>',
    )  # fmt: skip
    data.qvel[:] = [1.0, -0.6, 0.5, 0.5]
    simulation = run(model, data, 0.1)
    np.testing.assert_allclose(data.qvel, [0.95, -0.3, 0.5, 0.5], atol=1e-9)
    simulation.advance(data, 0.4)
    assert data.qvel[0] == pytest.approx(0.75, abs=1e-9)
    assert abs(data.qvel[1]) <= 3.0 * model.opt.timestep
    assert data.qpos[1] == pytest.approx(-0.06, abs=1e-3)  # v^2 / (2 a)


LIMITED = 'limited="true" range="0 1" margin=".01"'


def test_limits_beside_dry_friction() -> None:
    """Two sliders rest on their limits, each with its own weight; a third one has dry friction."""
    model, data = load(
        slider("a", 0, "0 0 1", 2.0, LIMITED) + slider("b", 1, "0 0 1", 3.0, LIMITED)
        + slider("c", 2, joint='frictionloss="1"'),
        floor="",
        extra='<sensor><jointlimitfrc joint="a"/><jointlimitfrc joint="b"/></sensor>',
    )  # fmt: skip
    data.qvel[2] = 1.0
    run(model, data, 0.1)
    np.testing.assert_allclose(data.qpos[:2], 0.0, atol=1e-9)
    np.testing.assert_allclose(data.sensordata, [2.0 * G, 3.0 * G], rtol=1e-9)
    np.testing.assert_allclose(data.qfrc_constraint, [2.0 * G, 3.0 * G, -1.0], rtol=1e-9)


def test_sensors_of_limits_show_what_mujoco_shows() -> None:
    """Before a limit, within the margin and not; both sides; with and without a cutoff."""
    joints = [("a", 0.004), ("b", 0.5), ("c", 0.993)]
    model, data = load(
        "".join(slider(name, k, joint=LIMITED) for k, (name, _) in enumerate(joints)),
        option='gravity="0 0 0" timestep="1e-3"', floor="",
        extra="<sensor>" + "".join(
            f'<jointlimitpos joint="{name}"/><jointlimitvel joint="{name}"/>'
            f'<jointlimitpos joint="{name}" cutoff="1e-3"/>' for name, _ in joints
        ) + "</sensor>",
    )  # fmt: skip
    data.qpos[:], data.qvel[:] = [x for _, x in joints], [-0.1, 0.2, 0.3]
    shown = mujoco.MjData(model)
    shown.qpos[:], shown.qvel[:] = data.qpos, data.qvel
    mujoco.mj_forward(model, shown)
    assert np.count_nonzero(shown.sensordata) == 6
    run(model, data, 1e-3)
    np.testing.assert_allclose(data.sensordata, shown.sensordata, rtol=1e-12, atol=1e-15)


def test_margins_of_the_user_are_shown() -> None:
    """Also of the first geom of the model, which is the second one of its contact."""
    model, data = load(
        '<body pos="0 0 .204"><freejoint/><geom size=".1" margin=".002"/></body>',
        floor='<geom type="box" size="1 1 .1" margin=".01"/>',
        option='gravity="0 0 0"',
    )
    shown = mujoco.MjData(model)
    shown.qpos[:] = data.qpos
    mujoco.mj_forward(model, shown)
    run(model, data, model.opt.timestep)
    assert data.ncon == shown.ncon == 1 and tuple(data.contact.geom[0]) == (1, 0)
    assert data.contact.includemargin[0] == shown.contact.includemargin[0]
    assert data.contact.exclude[0] == shown.contact.exclude[0]


def test_reset_forgets_what_has_happened() -> None:
    model, data = load(BALL)
    simulation = run(model, data, 0.5)
    first = [str(event) for event in simulation.events]
    assert first
    simulation.reset()
    assert len(simulation.events) == 0 and simulation.smallest_gap == np.inf
    mujoco.mj_resetData(model, data)
    simulation.advance(data, 0.5)
    assert [str(event) for event in simulation.events] == first


def tumbling(seed: int) -> tuple[Any, float, np.ndarray]:
    """A body of some kind over a plane with some friction, and how it moves."""
    rng = np.random.default_rng(seed)
    mu, kind = rng.uniform(0.05, 0.6), ("ellipsoid", "capsule", "cylinder", "box")[seed % 4]
    size = " ".join(map(str, rng.uniform(0.05, 0.2, 3)))
    turn = " ".join(map(str, rng.normal(size=4)))
    body = (f'<body pos="0 0 .3" quat="{turn}"><freejoint/>'
            f'<geom type="{kind}" size="{size}" mass="1" friction="{mu}"/></body>')  # fmt: skip
    model = mujoco.MjModel.from_xml_string(
        f"""<mujoco><option timestep="0.004"/><worldbody>
        <geom type="plane" size="9 9 1" friction="{mu}"/>{body}</worldbody></mujoco>"""
    )
    return model, mu, rng.normal(size=6) * [1, 1, 0, 4, 4, 4]


@pytest.mark.jit
@pytest.mark.parametrize("seed", [10, 19, 21, 43])
def test_what_rolls_needs_no_more_friction_than_there_is(seed: int) -> None:
    """The mean force of a step is in the cone, as the forces in it are.

    Contacts stuck with up to 15 times that where a body turned: at velocity level its load is not
    known to less than what its surface curves away in a step.
    """
    model, mu, speed = tumbling(seed)
    data, simulation = mujoco.MjData(model), hf.EventDriven(model)
    data.qvel[:] = speed
    touched = 0
    for _ in range(200):
        before, events = data.qvel.copy(), len(simulation.events)
        simulation.step(data)
        force = (data.qvel - before)[:3] / model.opt.timestep - model.opt.gravity
        if len(simulation.events) == events and force[2] > 1e-3:
            touched += 1
            assert np.hypot(*force[:2]) <= (1.0 + 1e-3) * mu * force[2]
    assert touched > 50
