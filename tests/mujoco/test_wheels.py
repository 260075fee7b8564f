"""Vehicles turn as they are commanded: the answers of kinematics, or of Coulomb's law by hand."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import holdfast as hf

pytestmark = pytest.mark.jit  # thousands of steps: without compilation they take too long

HEAD = '<mujoco><option timestep="0.002" integrator="implicitfast"/><worldbody>'
FLOOR = '<geom type="plane" size="50 50 1"/>'
RADIUS, WIDTH = 0.1, 0.04
POINT = f'type="ellipsoid" size="{RADIUS} {RADIUS} {WIDTH / 2}"'  # touches the floor at a point
LINE = f'type="cylinder" size="{RADIUS} {WIDTH / 2}"'  # touches it along a line


def wheel(name: str, x: float, y: float, shape: str = POINT, friction: float = 1.0) -> str:
    return (f'<body pos="{x} {y} 0"><joint name="{name}" axis="0 1 0" damping=".01"/>'
            f'<geom {shape} euler="90 0 0" mass=".3" friction="{friction}"/></body>')  # fmt: skip


def motors(*names: str, kv: float = 5.0) -> str:
    each = "".join(f'<velocity joint="{name}" kv="{kv}"/>' for name in names)
    return f"<actuator>{each}</actuator>"


def vehicle(
    parts: str, actuators: str, height: float = RADIUS
) -> tuple[mujoco.MjModel, hf.Stepper]:
    xml = f'{HEAD}{FLOOR}<body pos="0 0 {height}"><freejoint/>{parts}</body></worldbody>{actuators}'
    model = mujoco.MjModel.from_xml_string(xml + "</mujoco>")
    return model, hf.Stepper(model, warn=False)


def differential_drive(shape: str) -> tuple[mujoco.MjModel, hf.Stepper]:
    chassis = '<geom type="box" size=".2 .12 .04" mass="4"/>'
    # Without the priority the caster would have the floor's friction, which is larger.
    caster = (
        '<geom type="sphere" pos=".15 0 -.06" size=".04" friction="0" condim="1" priority="1" '
        'mass=".1"/>'
    )
    wheels = wheel("l", -0.1, 0.15, shape) + wheel("r", -0.1, -0.15, shape)
    return vehicle(chassis + caster + wheels, motors("l", "r"))


def mean_rates(
    stepper: hf.Stepper, data: mujoco.MjData, ctrl: list[float], settle: int = 500, count: int = 500
) -> np.ndarray:
    """Mean velocity in the vehicle's own frame, and of its joints, after it has settled."""
    data.ctrl[:] = ctrl
    stepper.step(data, settle)
    rates = np.zeros((count, len(data.qvel)))
    turn = np.zeros(9)
    for k in range(count):
        stepper.step(data)
        rates[k] = data.qvel
        mujoco.mju_quat2Mat(turn, data.qpos[3:7])
        rates[k, :3] = turn.reshape(3, 3).T @ data.qvel[:3]
    return rates.mean(axis=0)


def test_differential_drive_turns_as_commanded() -> None:
    """A wheel that touches at a point turns the vehicle by kinematics."""
    model, stepper = differential_drive(POINT)
    rates = mean_rates(stepper, mujoco.MjData(model), [3.0, 6.0])
    left, right = rates[6:]
    assert right - left > 2.5
    assert rates[5] == pytest.approx(RADIUS * (right - left) / 0.3, rel=0.01)
    assert rates[0] == pytest.approx(RADIUS * (right + left) / 2.0, rel=0.01)


def test_wheels_with_a_width_scrub() -> None:
    """Of a wheel that touches along a line one end rolls and the other one slides.

    Which one it is, depends on how the ends share the weight, about which a rigid body on more than
    three points says nothing; so the track that counts is wider or narrower by up to a width.
    """
    model, stepper = differential_drive(LINE)
    rates = mean_rates(stepper, mujoco.MjData(model), [3.0, 6.0])
    speed = RADIUS * (rates[7] - rates[6])
    assert 0.99 * speed / (0.3 + WIDTH) < rates[5] < 1.01 * speed / (0.3 - WIDTH)


def test_car_follows_its_front_wheels() -> None:
    """Ackermann steering: the rear axle circles about its point with radius ``L / tan``."""
    length, track, steer = 0.6, 0.3, 0.3
    radius = length / np.tan(steer)
    inner = np.arctan(length / (radius - track / 2.0))
    outer = np.arctan(length / (radius + track / 2.0))
    chassis = '<geom type="box" size=".35 .1 .04" mass="5"/>'
    wheels = wheel("rl", -length / 2, track / 2) + wheel("rr", -length / 2, -track / 2)
    for name, y, angle in (("fl", track / 2, inner), ("fr", -track / 2, outer)):
        wheels += f'<body pos="{length / 2} {y} 0" euler="0 0 {np.degrees(angle)}">'
        wheels += wheel(name, 0.0, 0.0) + "</body>"
    model, stepper = vehicle(chassis + wheels, motors("rl", "rr", kv=0.5))
    data = mujoco.MjData(model)
    part = track / 2.0 / radius
    rates = mean_rates(stepper, data, [5.0 * (1 - part), 5.0 * (1 + part)])
    # The frame of the vehicle is halfway between the axles: the rear axle moves along x alone.
    assert rates[0] > 0.4
    assert rates[5] == pytest.approx(rates[0] / radius, rel=0.02)
    assert rates[1] == pytest.approx(rates[5] * length / 2.0, rel=0.05)


def test_skid_steer_turns_on_the_spot() -> None:
    """All four wheels slide; friction along the slip of each has no moment about the centre.

    With wheels at (±a, ±b) that run at ±w the slip is (r w - b W, a W), so the moment vanishes at
    ``W = b r w / (a^2 + b^2)``.
    """
    a, b = 0.15, 0.2
    chassis = '<geom type="box" size=".2 .15 .04" mass="6"/>'
    names = ("fl", "rl", "fr", "rr")
    wheels = "".join(
        wheel(name, x, y, friction=0.7)
        for name, x, y in zip(names, (a, -a, a, -a), (b, b, -b, -b), strict=True)
    )
    model, stepper = vehicle(chassis + wheels, motors(*names, kv=50.0))
    rates = mean_rates(stepper, mujoco.MjData(model), [-5.0, -5.0, 5.0, 5.0])
    speed = float(np.mean(np.abs(rates[6:])))
    assert speed > 4.0
    assert rates[5] == pytest.approx(b * RADIUS * speed / (a * a + b * b), rel=0.05)
    assert np.abs(rates[:2]).max() < 0.01


def omni_wheel(name: str, rollers: int = 12, radius: float = 0.05, thick: float = 0.012) -> str:
    """A wheel whose rim is of rollers that turn about the rim, its axis along x."""
    centre = radius - thick
    half = centre * np.tan(np.pi / rollers) * 1.05
    text = f'<joint name="{name}" axis="1 0 0" damping=".002"/>'
    text += f'<geom type="cylinder" size="{0.6 * radius} .005" euler="0 90 0" mass=".1" '
    text += 'contype="0" conaffinity="0"/>'
    for k in range(rollers):
        angle = 2.0 * np.pi * k / rollers
        y, z = centre * np.cos(angle), centre * np.sin(angle)
        axis = f"0 {-np.sin(angle)} {np.cos(angle)}"
        text += f'<body pos="0 {y} {z}"><joint axis="{axis}" damping="1e-5"/>'
        text += f'<geom type="ellipsoid" size="{thick} {thick} {half}" zaxis="{axis}" mass=".01" '
        text += 'friction="1" contype="2" conaffinity="1"/></body>'
    return text


@pytest.mark.parametrize(
    "ctrl", [[4.0, 4.0, 4.0], [0.0, 4.0, -4.0]], ids=["turns", "moves sideways"]
)
def test_omni_wheels_move_in_every_direction(ctrl: list[float]) -> None:
    """Three wheels at 120 degrees: each sets the speed along its rim, and none across."""
    arm, radius = 0.15, 0.05
    parts = '<geom type="cylinder" size=".12 .02" mass="3" contype="0" conaffinity="0"/>'
    for k in range(3):
        angle = 2.0 * np.pi * k / 3
        x, y = arm * np.cos(angle), arm * np.sin(angle)
        parts += f'<body pos="{x} {y} 0" euler="0 0 {np.degrees(angle)}">{omni_wheel(f"w{k}")}'
        parts += "</body>"
    model, stepper = vehicle(parts, motors("w0", "w1", "w2", kv=1.0), height=radius)
    data = mujoco.MjData(model)
    rates = mean_rates(stepper, data, ctrl, settle=300, count=600)
    spin = np.array([rates[model.joint(f"w{k}").dofadr[0]] for k in range(3)])
    angles = 2.0 * np.pi * np.arange(3) / 3
    # Rolling about its axis, which points outwards, a wheel moves its hub along -tangent.
    along = np.column_stack([np.sin(angles), -np.cos(angles), np.full(3, -arm)])
    expected = np.linalg.solve(along, radius * spin)
    found = rates[[0, 1, 5]]
    scale = np.abs(expected * [1.0, 1.0, arm]).max()
    assert np.abs((found - expected) * [1.0, 1.0, arm]).max() < 0.05 * scale
