"""Event-driven simulation against closed forms, and its orders of convergence."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from event_scenes import BALL, INERTIA, LENGTH, SPOKES, G, box, load, rimless_wheel

pytestmark = [
    pytest.mark.filterwarnings("ignore::holdfast.mujoco.FrictionWarning"),
    pytest.mark.jit,  # thousands of solves: without compilation they take too long
]

VISCOUS = hf.Viscous(0.1, level="acceleration")
SLOPE = np.radians(6.0)
MODELS = [hf.NoSlip(), VISCOUS, hf.Frictionless(), hf.StewartTrinkle(0.5)]


def names(value: object) -> str:
    return type(value).__name__


# --- impact --------------------------------------------------------------------------------------


@pytest.mark.parametrize("timestep", [0.002, 0.01, 0.05])
@pytest.mark.parametrize("contact", MODELS, ids=names)
def test_dropped_ball_hits_in_time_and_stops_dead(
    contact: hf.ContactModel, timestep: float
) -> None:
    model, data = load(BALL, option=f'timestep="{timestep}"')
    simulation = hf.EventDriven(model, contact)
    heights = []
    for _ in range(round(1.0 / timestep)):
        simulation.step(data)
        heights.append(data.qpos[2])
        if data.time > 0.46:
            assert abs(data.qpos[2] - 0.1) < 1e-12  # it never bounces
            assert np.abs(data.qvel).max() < 1e-12
    (impact,) = simulation.events.impacts  # no impulse is applied twice
    assert impact.time == pytest.approx(np.sqrt(2 / G), abs=1e-10)
    assert impact.speed == pytest.approx(np.sqrt(2 * G), rel=1e-10)
    assert impact.impulse == pytest.approx(np.sqrt(2 * G), rel=1e-10)
    assert impact.energy_before - impact.energy_after == pytest.approx(G, rel=1e-10)
    assert [event.kind for event in simulation.events] == ["impact", "made"]
    assert simulation.smallest_gap > -1e-8


def test_ball_falls_the_same_with_symplectic_euler() -> None:
    """First order: the time of impact is off by the order of the step."""
    model, data = load(BALL, option='timestep="0.001"')
    simulation = hf.EventDriven(model, integrator="symplectic_euler")
    simulation.advance(data, 1.0)
    (impact,) = simulation.events.impacts
    assert impact.time == pytest.approx(np.sqrt(2 / G), abs=1e-3)
    assert np.abs(data.qvel).max() < 1e-12


@pytest.mark.parametrize("timestep", [0.001, 0.01, 0.02])
def test_bullet_does_not_tunnel(timestep: float) -> None:
    """A ball of 1 cm at 100 m/s against a wall of 1 mm: 2 m in one step, at most."""
    bullet = '<body name="bullet" pos="-1 0 0"><freejoint/><geom size=".005" mass=".01"/></body>'
    wall = '<geom name="wall" type="box" size=".0005 1 1"/>'
    model, data = load(bullet, floor=wall, option=f'gravity="0 0 0" timestep="{timestep}"')
    data.qvel[0] = 100.0
    simulation = hf.EventDriven(model)
    simulation.advance(data, 0.04)
    (impact,) = simulation.events.impacts
    assert impact.time == pytest.approx((1 - 0.005 - 0.0005) / 100, abs=1e-10)
    assert data.qpos[0] == pytest.approx(-0.0055, abs=1e-9)
    assert np.abs(data.qvel).max() < 1e-9


def test_two_balls_meet() -> None:
    """Inelastic, head on: both go on with the mean velocity, and momentum is kept."""
    balls = "".join(
        f'<body pos="{x} 0 0"><freejoint/><geom size=".1" mass="{m}"/></body>'
        for x, m in ((-1, 2), (1, 1))
    )
    model, data = load(balls, floor="", option='gravity="0 0 0"')
    data.qvel[[0, 6]] = [2.0, -1.0]
    simulation = hf.EventDriven(model)
    simulation.advance(data, 1.0)
    (impact,) = simulation.events.impacts
    assert impact.time == pytest.approx(1.8 / 3.0, abs=1e-10)
    assert data.qvel[[0, 6]] == pytest.approx([1.0, 1.0], rel=1e-9)
    assert impact.impulse == pytest.approx(2.0, rel=1e-9)


def test_joint_limit_is_an_event() -> None:
    arm = ('<body><joint name="j" axis="0 1 0" limited="true" range="-90 60"/>'
           '<geom type="capsule" fromto="0 0 0 .5 0 0" size=".02"/></body>')  # fmt: skip
    model, data = load(arm, floor="", option='gravity="0 0 0"')
    data.qvel[0] = 2.0
    simulation = hf.EventDriven(model)
    simulation.advance(data, 1.0)
    (impact,) = simulation.events.impacts
    assert impact.bodies == ("j", "limit")
    assert impact.time == pytest.approx(np.radians(60) / 2.0, abs=1e-9)
    assert data.qpos[0] == pytest.approx(np.radians(60), abs=1e-9) and abs(data.qvel[0]) < 1e-9


def test_a_pendulum_rests_on_its_limit() -> None:
    """Its speed shrinks with every step, down to numbers whose squares vanish: that is rest."""
    arm = ('<body><joint axis="0 1 0" limited="true" range="-40 60"/>'
           '<geom type="capsule" fromto="0 0 0 .5 0 0" size=".02"/></body>')  # fmt: skip
    model, data = load(arm, floor="", option='timestep=".002"')
    simulation = hf.EventDriven(model)
    simulation.step(data, 300)
    assert data.qpos[0] == pytest.approx(np.radians(60), abs=1e-9)
    assert abs(data.qvel[0]) < 1e-12 and data.time == pytest.approx(0.6)


# --- order ---------------------------------------------------------------------------------------


def order(errors: list[float]) -> float:
    """Slope of the errors at steps that halve."""
    return float(np.polyfit(-np.arange(len(errors)), np.log2(errors), 1)[0])


def test_free_flight_is_of_fourth_order() -> None:
    """A tumbling box: rotations in space need more than the sum of the stages' velocities."""

    def flown(timestep: float) -> np.ndarray:
        model, data = load(
            '<body pos="0 0 50"><freejoint/><geom type="box" size=".1 .2 .3"/></body>',
            option=f'timestep="{timestep}"',
        )
        data.qvel[:] = [1, 2, 3, 1, 5, 0.2]
        hf.EventDriven(model).advance(data, 1.2)
        return np.concatenate([data.qpos, data.qvel])

    exact = flown(0.002)
    errors = [float(np.abs(flown(h) - exact).max()) for h in (0.08, 0.04, 0.02)]
    assert order(errors) == pytest.approx(4.0, abs=0.25)


def viscous_sphere(timestep: float) -> float:
    ball = '<body pos="0 0 .5"><freejoint/><geom size=".5" density="1"/></body>'
    model, data = load(ball, option=f'timestep="{timestep}"')
    data.qvel[0] = 1.0
    simulation = hf.EventDriven(model, VISCOUS)
    simulation.advance(data, 1.0)
    assert simulation.smallest_gap > -1e-8
    assert data.qpos[2] == pytest.approx(0.5, abs=1e-9)
    return float(data.qvel[0])


def test_viscous_sphere() -> None:
    """v0 (1 - 2/7 (1 - exp(-7/2 mu t / m))) = 0.86071, and fourth order on the way there."""
    exact = 1 - 2 / 7 * (1 - np.exp(-3.5 * 0.1 / (np.pi / 6)))
    assert exact == pytest.approx(0.86071, abs=1e-5)
    assert viscous_sphere(0.01) == pytest.approx(exact, abs=1e-10)
    errors = [abs(viscous_sphere(h) - exact) for h in (0.2, 0.1, 0.05)]
    assert order(errors) == pytest.approx(4.0, abs=0.25)


def test_sliding_in_a_bowl_is_of_fourth_order() -> None:
    """A small sphere inside the hull of a larger one has curvature: Ndot v is not zero there."""

    def slid(timestep: float) -> np.ndarray:
        hill = '<geom type="sphere" size="1" pos="0 0 -1"/>'
        ball = ('<body pos=".198669330795061 0 .0780731746321" ><freejoint/>'
                '<geom size=".1" mass="1"/></body>')  # fmt: skip
        model, data = load(ball, floor=hill, option=f'timestep="{timestep}"')
        data.qpos[:3] = 1.1 * np.array([np.sin(0.2), 0, np.cos(0.2)]) - [0, 0, 1]
        simulation = hf.EventDriven(model, hf.Viscous(0.5, level="acceleration"))
        simulation.advance(data, 0.4)
        assert not simulation.events.impacts
        away = np.linalg.norm(data.qpos[:3] + np.array([0, 0, 1]))
        assert away == pytest.approx(1.1, abs=1e-8)  # it stays on the surface
        return np.concatenate([data.qpos[:3], data.qvel])

    exact = slid(0.00125)
    errors = [float(np.abs(slid(h) - exact).max()) for h in (0.02, 0.01, 0.005)]
    assert order(errors) > 3.5


@pytest.mark.parametrize("shape, inertia", [("sphere", 2 / 5), ("cylinder", 1 / 2)])
def test_rolling_down_an_incline(shape: str, inertia: float) -> None:
    """a = g sin(t) / (1 + I / (m r^2)), without slip."""
    t = np.radians(20.0)
    size = "0.1" if shape == "sphere" else "0.1 0.1"
    body = (f'<body pos="{0.1 * np.sin(t)} 0 {0.1 * np.cos(t)}"><freejoint/>'
            f'<geom type="{shape}" size="{size}" euler="90 0 0"/></body>')  # fmt: skip
    model, data = load(body, floor='<geom type="plane" size="50 50 1" euler="0 20 0"/>')
    hf.EventDriven(model).advance(data, 0.2)
    down = np.array([np.cos(t), 0, -np.sin(t)])
    assert data.qvel[:3] @ down == pytest.approx(G * np.sin(t) / (1 + inertia) * 0.2, rel=1e-8)


def test_sphere_leaves_a_larger_one() -> None:
    """Frictionless, from rest near the top: contact ends where cos(angle) = 2/3 of its start."""
    ball = '<body name="ball" pos="0 0 1.1"><freejoint/><geom size=".1" mass="1"/></body>'
    model, data = load(ball, floor='<geom type="sphere" size="1"/>', option='timestep="0.001"')
    start = 0.3
    data.qpos[:3] = 1.1 * np.array([np.sin(start), 0, np.cos(start)])
    simulation = hf.EventDriven(model, hf.Frictionless())
    while not [event for event in simulation.events if event.kind == "broken"]:
        simulation.step(data)
        assert data.time < 2.0
    direction = data.qpos[:3] / np.linalg.norm(data.qpos[:3])
    assert direction[2] == pytest.approx(2 / 3 * np.cos(start), abs=5e-3)
    speed = np.linalg.norm(data.qvel[:3])
    fallen = 1.1 * np.cos(start) - data.qpos[2]
    assert speed == pytest.approx(np.sqrt(2 * G * fallen), rel=1e-7)


# --- rimless wheel -------------------------------------------------------------------------------


def walk(strikes: int, timestep: float, speed: float) -> list[tuple[float, float, float]]:
    """Of each heel strike: angular velocity before and after, and their ratio in closed form.

    MuJoCo keeps the vertices of a mesh in single precision, so the ratio is that of the two tips
    r1 and r2 as they are: (I + m r1.r2) / (I + m r2.r2). With tips of length l, 2 alpha apart,
    that is (I + m l^2 cos(2 alpha)) / (I + m l^2).
    """
    model, data = rimless_wheel(SLOPE, timestep)
    data.qvel[:] = [speed * LENGTH, 0.0, speed]
    simulation = hf.EventDriven(model)
    seen: list[tuple[float, float, float]] = []
    land = simulation._land

    def watched(state: Any, listed: Any, touching: Any) -> Any:
        after = land(state, listed, touching)
        if after[2]:
            hub = np.array([state.qpos[0], LENGTH + state.qpos[1]])
            tips = listed.place[listed.gap < 1e-8][:, [0, 2]] - hub
            one, two = tips[tips[:, 0].argmin()], tips[tips[:, 0].argmax()]
            ratio = (INERTIA + one @ two) / (INERTIA + two @ two)
            seen.append((state.qvel[2], after[0].qvel[2], ratio))
        return after

    simulation._land = watched  # pyright: ignore[reportAttributeAccessIssue]
    while len(seen) < strikes:
        simulation.step(data)
        assert data.time < 30.0
    assert simulation.smallest_gap > -1e-8
    return seen


def check_walk(seen: list[tuple[float, float, float]]) -> float:
    """The map from strike to strike; returns the speed of its limit cycle before a strike."""
    alpha = np.pi / SPOKES
    about_tip = INERTIA + LENGTH**2
    eta = (INERTIA + LENGTH**2 * np.cos(2 * alpha)) / about_tip
    gain = 4 * G * LENGTH * np.sin(alpha) * np.sin(SLOPE) / about_tip  # of omega^2 in a swing
    for before, after, ratio in seen:
        assert after / before == pytest.approx(ratio, abs=1e-9)
        assert ratio == pytest.approx(eta, abs=1e-6)
    for (_, after, _), (before, _, _) in pairwise(seen):
        assert before**2 - after**2 == pytest.approx(gain, rel=1e-6)
    return float(np.sqrt(gain / (1 - eta**2)))


def test_rimless_wheel_loses_speed_as_it_must() -> None:
    check_walk(walk(2, 0.004, 4.0))


@pytest.mark.slow
def test_rimless_wheel_comes_to_its_limit_cycle() -> None:
    seen = walk(25, 0.004, 4.0)
    limit = check_walk(seen)
    assert abs(seen[0][0] / limit - 1) > 1e-2
    assert seen[-1][0] == pytest.approx(limit, rel=1e-5)


def test_tipping_box_falls_as_a_pendulum() -> None:
    """A box on its edge, no slip: energy about the edge is kept to fourth order."""
    model, data = load(box('pos="0 0 .5"'), option='timestep="0.002"')
    lean = np.radians(60.0)
    edge = np.hypot(0.1, 0.1)
    data.qpos[:3] = [edge * np.sin(lean - np.pi / 4), 0, edge * np.cos(lean - np.pi / 4)]
    data.qpos[3:] = [np.cos(lean / 2), 0, np.sin(lean / 2), 0]
    simulation = hf.EventDriven(model)
    simulation.advance(data, 0.05)
    assert not simulation.events.impacts
    angle = 2 * np.arccos(data.qpos[3]) - np.pi / 4
    inertia = 0.04 / 6 + edge**2
    speed = np.sqrt(2 * G * edge * (np.cos(lean - np.pi / 4) - np.cos(angle)) / inertia)
    assert data.qvel[4] == pytest.approx(speed, rel=1e-9)


def test_a_body_that_spins_fast_gains_no_energy() -> None:
    """Several radians in a step: pieces are halved in flight, too."""
    geom = '<geom type="box" size=".02 .04 .06" mass="1"/>'
    model, data = load(f'<body pos="0 0 1"><freejoint/>{geom}</body>')
    model.opt.gravity[:] = 0.0
    model.opt.timestep = 0.002
    data.qvel[3:] = 500.0, 1000.0, 800.0
    x, y, z = np.array([0.02, 0.04, 0.06]) ** 2
    inertia = np.array([y + z, z + x, x + y]) / 3.0
    before = 0.5 * float(inertia @ data.qvel[3:] ** 2)
    hf.EventDriven(model, integrator="rk4").step(data, 5)
    after = 0.5 * float(inertia @ data.qvel[3:] ** 2)
    assert 0.99 * before < after < 1.0001 * before
