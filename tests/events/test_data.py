"""What an event-driven step leaves in the user's data: the state, and what acted on the way."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import pytest

import holdfast as hf
from event_scenes import BALL, FLOOR, G, box, load
from holdfast.tools import scenes

pytestmark = pytest.mark.jit
VISCOUS = hf.Viscous(0.5, level="acceleration")
MODELS = [hf.NoSlip(), VISCOUS, hf.Frictionless(), hf.StewartTrinkle(0.5)]
INTEGRATORS = ["rk4", "symplectic_euler"]


def names(value: object) -> str:
    return value if isinstance(value, str) else type(value).__name__


def contact_force(model: mujoco.MjModel, data: mujoco.MjData) -> np.ndarray:
    """(3,) sum over all contacts, in the world; on the second body of each."""
    total, force = np.zeros(3), np.zeros(6)
    for i in range(data.ncon):
        mujoco.mj_contactForce(model, data, i, force)
        total += data.contact[i].frame.reshape(3, 3).T @ force[:3]
    return total


def unbalanced(model: mujoco.MjModel, data: mujoco.MjData) -> float:
    """What is left of ``M qacc = smooth forces + constraint forces``, with what MuJoCo stores."""
    left = np.zeros(model.nv)
    mujoco.mj_mulM(model, data, left, data.qacc)
    left -= data.qfrc_smooth + data.qfrc_constraint
    return float(np.abs(left).max() / np.abs(data.qfrc_smooth).max())


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("contact", MODELS, ids=names)
def test_box_at_rest_is_carried(contact: hf.ContactModel, integrator: Any, cone: str) -> None:
    touch = '<site name="all" type="box" size=".11 .11 .11"/>'
    model, data = load(
        box('pos="0 0 .1"').replace("</body>", touch + "</body>"), option=f'cone="{cone}"',
        extra='<sensor><touch site="all"/><accelerometer site="all"/></sensor>',
    )  # fmt: skip
    simulation = hf.EventDriven(model, contact, integrator=integrator)
    simulation.step(data, 3)
    assert data.ncon == 4 and np.abs(data.qacc).max() < 1e-9
    assert contact_force(model, data) == pytest.approx([0, 0, G], abs=1e-9)
    assert data.sensordata == pytest.approx([G, 0, 0, G], abs=1e-9)  # touch; what carries it
    assert unbalanced(model, data) < 1e-12


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_drag_is_shown(integrator: Any) -> None:
    """A sliding box on four viscous contacts: each drags with mu_v times its speed."""
    model, data = load(box('pos="0 0 .1"'), option='timestep="0.001"')
    data.qvel[0] = 1.0
    simulation = hf.EventDriven(model, hf.Viscous(0.1), integrator=integrator)
    simulation.step(data)
    assert data.qacc[0] == pytest.approx(-0.4, rel=1e-3)
    assert contact_force(model, data) == pytest.approx([-0.4, 0, G], rel=1e-3, abs=1e-9)
    assert unbalanced(model, data) < 1e-12


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_free_fall_shows_no_force(integrator: Any) -> None:
    model, data = load(BALL)
    simulation = hf.EventDriven(model, integrator=integrator)
    simulation.step(data)
    assert data.qacc == pytest.approx([0, 0, -G, 0, 0, 0], abs=1e-12)
    assert data.nefc == 0 and np.abs(data.qfrc_constraint).max() == 0.0


def test_limit_and_equality_forces() -> None:
    """An arm that hangs on its limit, and a body that hangs on a weld."""
    world = """<body><joint name="j" axis="0 1 0" limited="true" range="-90 0"/>
      <geom type="capsule" fromto="0 0 0 .5 0 0" size=".02" mass="1"/></body>
      <body name="hung" pos="0 0 2"><freejoint/><geom size=".1" mass="2"/></body>"""
    extra = '<equality><weld body1="hung"/></equality>'
    model, data = load(world, floor="", extra=extra)
    simulation = hf.EventDriven(model)
    simulation.step(data, 3)
    limit = data.efc_type == int(mujoco.mjtConstraint.mjCNSTR_LIMIT_JOINT)
    assert data.efc_force[limit] == pytest.approx([0.25 * G], rel=1e-9)
    assert data.qfrc_constraint[1:4] == pytest.approx([0, 0, 2 * G], abs=1e-9)
    assert unbalanced(model, data) < 1e-12


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("contact", [hf.NoSlip(), hf.Viscous(0.1)], ids=names)
def test_quadruped_is_in_balance(contact: hf.ContactModel, integrator: Any) -> None:
    """M qacc = smooth + constraint forces with MuJoCo's own numbers, while a controller squats.

    Symplectic Euler has the servos' damping in its inertia, so that this holds for M alone to the
    order of the step.
    """
    model = mujoco.MjModel.from_xml_string(scenes.quadruped(timestep=0.001, integrator="Euler"))
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    stand = data.ctrl.copy()
    simulation = hf.EventDriven(model, contact, integrator=integrator)
    for _ in range(20):
        data.ctrl[:] = scenes.squat(data.time, stand)
        simulation.step(data)
        assert unbalanced(model, data) < (1e-9 if integrator == "rk4" else 1e-2)
    weight = G * model.body_mass.sum()
    assert contact_force(model, data)[2] == pytest.approx(weight, rel=0.1)


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_late_times(integrator: Any) -> None:
    """Rounding of the time is no piece of its own, in which forces would be rounding, too."""
    model, data = load(box('pos="0 0 .1"'), option='timestep="0.0003"')
    data.time = 12345.678
    simulation = hf.EventDriven(model, integrator=integrator)
    for _ in range(50):
        simulation.step(data)
        assert np.abs(data.qacc).max() < 1e-8
        assert contact_force(model, data) == pytest.approx([0, 0, G], abs=1e-8)


def test_control_is_taken_step_by_step() -> None:
    """A motor pushes a slider; each step uses what data.ctrl holds when it is called."""
    slider = '<body><joint name="s" type="slide" axis="1 0 0"/><geom size=".1" mass="2"/></body>'
    model, data = load(
        slider, floor="", option='timestep="0.01" gravity="0 0 0"',
        extra='<actuator><motor joint="s"/></actuator>',
    )  # fmt: skip
    simulation = hf.EventDriven(model)
    v = 0.0
    for k in range(10):
        data.ctrl[0] = k
        simulation.step(data)
        v += 0.01 * k / 2
        assert data.qvel[0] == pytest.approx(v, abs=1e-14)
        assert data.qacc[0] == pytest.approx(k / 2, abs=1e-12)


def test_control_callback_sees_the_state() -> None:
    model, data = load(BALL + '<body name="m" mocap="true"/>')
    seen: list[float] = []

    def callback(model: Any, data: Any) -> None:
        seen.append(float(data.xpos[1, 2]))
        data.qfrc_applied[2] = 0.5 * G

    simulation = hf.EventDriven(model, integrator="rk4")
    mujoco.set_mjcb_control(callback)
    try:
        for _ in range(3):
            height = float(data.qpos[2])
            simulation.step(data)
            assert seen.pop() == pytest.approx(height, abs=1e-15) and not seen
            assert data.qacc[2] == pytest.approx(-0.5 * G, rel=1e-12)
    finally:
        mujoco.set_mjcb_control(None)


def test_impacts_are_in_the_log_and_not_in_the_forces() -> None:
    """In the step of an impact, data holds what acts after it: the weight."""
    model, data = load(BALL, option='timestep="0.01"')
    simulation = hf.EventDriven(model)
    while not simulation.events.impacts:
        simulation.step(data)
    assert contact_force(model, data) == pytest.approx([0, 0, G], abs=1e-9)
    assert simulation.events.impacts[0].impulse == pytest.approx(np.sqrt(2 * G), rel=1e-9)


def test_error_restores_the_state_and_controls() -> None:
    model, data = load(BALL.replace("1.1", "0.05"), floor=FLOOR + FLOOR.replace(
        'name="floor"', 'zaxis="0 0 -1" pos="0 0 .1"'))  # fmt: skip
    data.qvel[:3] = [1, 2, 3]
    data.xfrc_applied[1, 0] = 4.0
    kind = mujoco.mjtState.mjSTATE_INTEGRATION
    before, after = np.empty((2, mujoco.mj_stateSize(model, kind)))
    mujoco.mj_getState(model, data, before, kind)
    with pytest.raises(hf.EventError) as caught:
        hf.EventDriven(model).step(data)
    mujoco.mj_getState(model, data, after, kind)
    assert np.array_equal(before, after)
    assert np.isfinite(caught.value.qpos).all() and len(caught.value.qvel) == model.nv
