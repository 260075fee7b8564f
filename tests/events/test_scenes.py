"""Event-driven simulation of whole scenes: nothing ever interpenetrates, nothing is lost."""

from __future__ import annotations

import copy
from typing import Any

import mujoco
import numpy as np
import pytest

import holdfast as hf
from event_scenes import BALL, FLOOR, G, bowl, box, energy, load, rimless_wheel
from holdfast.tools import scenes
from holdfast.tools.verify import verify

pytestmark = [
    pytest.mark.filterwarnings("ignore::holdfast.mujoco.FrictionWarning"),
    pytest.mark.jit,
]
VISCOUS = hf.Viscous(0.5, level="acceleration")
MODELS = [hf.NoSlip(), VISCOUS, hf.Frictionless(), hf.StewartTrinkle(0.5), hf.Coulomb()]
DEEPEST = 1e-8  # [m]


def names(value: object) -> str:
    return type(value).__name__


def recorded(
    simulation: hf.EventDriven, data: mujoco.MjData, steps: int, control: Any = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    time, qpos, qvel, ctrl = [data.time], [data.qpos.copy()], [data.qvel.copy()], []
    for _ in range(steps):
        if control is not None:
            data.ctrl[:] = control(data.time)
        ctrl.append(data.ctrl.copy())
        simulation.step(data)
        time.append(data.time)
        qpos.append(data.qpos.copy())
        qvel.append(data.qvel.copy())
    ctrl.append(data.ctrl.copy())
    return np.array(time), np.array(qpos), np.array(qvel), np.array(ctrl)


def check(model: mujoco.MjModel, run: tuple[np.ndarray, ...], *, energy_too: bool = True) -> None:
    """By code that did not make the run."""
    verdict = verify(model, *run)
    assert verdict["distance"].worst < DEEPEST
    assert verdict["complementarity"].passed
    assert verdict["momentum"].passed
    if energy_too:
        assert verdict["energy"].passed, verdict["energy"]


@pytest.mark.parametrize("integrator", ["rk4", "symplectic_euler"])
@pytest.mark.parametrize("contact", MODELS, ids=names)
def test_thrown_box(contact: hf.ContactModel, integrator: Any) -> None:
    model, data = load(box('pos="0 0 .3" euler="20 30 10"'))
    data.qvel[:] = [2, 1, 0, 3, -5, 2]
    simulation = hf.EventDriven(model, contact, integrator=integrator)
    run = recorded(simulation, data, 250)
    assert len(simulation.events.impacts) >= 3
    assert simulation.smallest_gap > -DEEPEST
    check(model, run, energy_too=integrator == "rk4")


@pytest.mark.parametrize("contact", MODELS[:3], ids=names)
def test_energy_never_grows(contact: hf.ContactModel) -> None:
    model, data = load(box('pos="0 0 .3" euler="20 30 10"'))
    data.qvel[:] = [0.5, 0.3, 0, 2, -3, 1]
    simulation = hf.EventDriven(model, contact)
    last = energy(model, data)
    for _ in range(200):
        simulation.step(data)
        now = energy(model, data)
        assert now <= last + 1e-9
        last = now
    for event in simulation.events.impacts:
        assert event.energy_after <= event.energy_before + 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("contact", MODELS[:3], ids=names)
def test_balls_in_a_bowl(contact: hf.ContactModel) -> None:
    model, data = bowl()
    simulation = hf.EventDriven(model, contact)
    run = recorded(simulation, data, 400)
    assert simulation.smallest_gap > -DEEPEST
    assert len(simulation.events.impacts) > 10
    check(model, run)


def test_balls_in_a_bowl_with_symplectic_euler() -> None:
    model, data = bowl()
    simulation = hf.EventDriven(model, integrator="symplectic_euler")
    run = recorded(simulation, data, 250)
    check(model, run, energy_too=False)


def test_rimless_wheel_does_not_sink_in() -> None:
    model, data = rimless_wheel(np.radians(6.0), 0.004)
    data.qvel[:] = [1.2, 0.0, 4.0]
    run = recorded(hf.EventDriven(model), data, 60)
    # the first sample is as single precision of the vertices has it
    check(model, tuple(array[1:] for array in run))


def terrain() -> tuple[mujoco.MjModel, mujoco.MjData]:
    """The quadruped over a height field of 250 x 250 samples with bumps of centimetres."""
    xml = scenes.quadruped(timestep=0.001, slope=0.0)
    flat = '<geom name="slope" type="plane" size="2 2 .1" euler="0 0.0 0"/>'
    assert flat in xml
    xml = xml.replace(flat, '<geom name="slope" type="hfield" hfield="terrain"/>')
    field = '<hfield name="terrain" nrow="250" ncol="250" size=".5 .5 .03 .1"/>'
    xml = xml.replace("<worldbody>", f"<asset>{field}</asset><worldbody>")
    model = mujoco.MjModel.from_xml_string(xml)
    x, y = np.meshgrid(*2 * [np.linspace(-0.5, 0.5, 250)])
    bumps = 0.25 * np.sin(11 * x + 1) * np.cos(13 * y) + 0.1 * np.sin(31 * x) * np.sin(29 * y)
    model.hfield_data[:] = (0.5 + bumps).ravel()
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    data.qpos[2] += 0.03
    return model, data


def test_quadruped_lands_on_terrain() -> None:
    model, data = terrain()
    stand = data.ctrl.copy()
    simulation = hf.EventDriven(model, integrator="symplectic_euler")
    run = recorded(simulation, data, 200, lambda time: scenes.squat(time, stand))
    assert len(simulation.events.impacts) >= 3
    assert simulation.smallest_gap > -DEEPEST
    assert verify(model, *run)["distance"].worst < DEEPEST


@pytest.mark.slow
@pytest.mark.parametrize("contact", [hf.NoSlip(), hf.Viscous(0.1, level="acceleration")], ids=names)
def test_quadruped_on_terrain_with_runge_kutta(contact: hf.ContactModel) -> None:
    model, data = terrain()
    stand = data.ctrl.copy()
    simulation = hf.EventDriven(model, contact)
    run = recorded(simulation, data, 150, lambda time: scenes.squat(time, stand))
    assert simulation.smallest_gap > -DEEPEST
    assert verify(model, *run)["distance"].worst < DEEPEST


# --- time stepping tends to it -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("contact", "euler"),
    [(VISCOUS, 'euler="0 15 0"'), (hf.NoSlip(), "")],
    ids=["viscous", "noslip"],
)
def test_time_stepping_tends_to_it(contact: hf.ContactModel, euler: str) -> None:
    """A ball that lands and goes on: the difference goes down with the step, to order one.

    How far an impact is from the next multiple of the step is chance: the mean of several drops
    is what has an order. `benchmarks/convergence.py` draws it.
    """
    floor, heights, steps = f'<geom type="plane" size="9 9 1" {euler}/>', (0.3, 0.311, 0.323), 5

    def after(way: Any, timestep: float, height: float) -> np.ndarray:
        model, data = load(BALL, floor=floor, option=f'timestep="{timestep}"')
        data.qpos[2] = height
        data.qvel[:] = [0.7, 0, 0, 0, 3, 1]
        if way is hf.Stepper:
            hf.Stepper(model, level(contact), warn=False).step(data, round(0.64 / timestep))
        else:
            hf.EventDriven(model, contact).advance(data, 0.64)
        return np.concatenate([data.qpos[:3], data.qvel])

    exact = [after(hf.EventDriven, 0.002, height) for height in heights]
    errors = [
        np.mean([np.abs(after(hf.Stepper, 8e-3 / 2**k, z) - e).max() for z, e in zip(
            heights, exact, strict=True)])
        for k in range(steps)
    ]  # fmt: skip
    assert np.polyfit(-np.arange(steps), np.log2(errors), 1)[0] == pytest.approx(1.0, abs=0.2)
    assert errors[-1] < 0.1 * errors[0]


def level(contact: hf.ContactModel) -> hf.ContactModel:
    """The same law, implicit in time."""
    return hf.Viscous(contact.mu_v) if isinstance(contact, hf.Viscous) else contact


# --- Zeno ----------------------------------------------------------------------------------------


def test_rocking_block_comes_to_rest() -> None:
    """Edge, other edge, edge: infinitely many impacts in finite time, finitely many here."""
    block = ('<body name="block" pos="0 0 .15"><freejoint/>'
             '<geom type="box" size=".1 .2 .15" mass="1"/></body>')  # fmt: skip
    model, data = load(block)
    lean = 0.05
    data.qpos[2] = 0.15 * np.cos(lean) + 0.1 * np.sin(lean)
    data.qpos[3:] = [np.cos(lean / 2), 0, np.sin(lean / 2), 0]
    simulation = hf.EventDriven(model)
    simulation.advance(data, 1.0)
    assert np.abs(data.qvel).max() < 1e-6
    assert data.qpos[2] == pytest.approx(0.15, abs=1e-8)
    assert simulation.smallest_gap > -DEEPEST
    assert 3 < len(simulation.events.impacts) < 200
    assert energy(model, data) == pytest.approx(9.81 * 0.15, rel=1e-8)


def test_ball_settles_between_walls() -> None:
    walls = ('<geom type="plane" size="5 5 1" zaxis="1 0 1"/>'
             '<geom type="plane" size="5 5 1" zaxis="-1 0 1"/>')  # fmt: skip
    model, data = load(BALL.replace("0 0 1.1", "0.05 0 0.6"), floor=walls)
    simulation = hf.EventDriven(model, hf.Frictionless())
    simulation.advance(data, 4.0)
    assert simulation.smallest_gap > -DEEPEST
    rest = 9.81 * 0.1 * np.sqrt(2)
    assert rest - 1e-8 <= energy(model, data) < rest + 0.2  # it may swing, it does not sink in


@pytest.mark.parametrize("contact", MODELS[1:3], ids=names)
def test_cylinder_that_falls_flat(contact: hf.ContactModel) -> None:
    """Its point of contact races around the rim: steps as long as the model's would add energy."""
    can = ('<body name="can" pos="0 0 .12" euler="8 3 0"><freejoint/>'
           '<geom type="cylinder" size=".06 .05"/></body>')  # fmt: skip
    model, data = load(can)
    data.qvel[3:] = [1.0, -0.5, 2.0]
    simulation = hf.EventDriven(model, contact)
    check(model, recorded(simulation, data, 150))
    assert simulation.smallest_gap > -DEEPEST


# --- the tool ------------------------------------------------------------------------------------


def test_steps_and_advance_agree() -> None:
    states = []
    for way in ("steps", "one", "advance"):
        model, data = load(BALL)
        simulation = hf.EventDriven(model)
        if way == "steps":
            simulation.step(data, 300)
        elif way == "one":
            for _ in range(300):
                simulation.step(data)
        else:
            simulation.advance(data, 0.6)
        assert data.time == pytest.approx(0.6, abs=1e-12)
        states.append(np.concatenate([data.qpos, data.qvel]))
    assert np.abs(states[1] - states[0]).max() < 1e-12
    assert np.abs(states[2] - states[0]).max() < 1e-9


def test_parts_of_a_step() -> None:
    model, data = load(BALL, option='timestep="0.01"')
    simulation = hf.EventDriven(model)
    simulation.advance(data, 0.1234)
    assert data.time == pytest.approx(0.1234, abs=1e-15)
    assert data.qpos[2] == pytest.approx(1.1 - 0.5 * 9.81 * 0.1234**2, abs=1e-12)
    simulation.advance(data, 0.0)
    assert data.time == pytest.approx(0.1234, abs=1e-15)


def test_failed_step_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    model, data = load(BALL)
    simulation = hf.EventDriven(model)
    simulation.advance(data, 0.45)
    before = data.qpos.copy(), data.qvel.copy(), data.time

    def broken(*_: object) -> None:
        raise hf.HoldfastError("no answer today")

    monkeypatch.setattr(simulation._level, "impact", broken)
    with pytest.raises(hf.EventError, match=r"no answer today") as caught:
        simulation.step(data)
    assert caught.value.time == pytest.approx(np.sqrt(2 / 9.81), abs=1e-9)
    assert caught.value.qpos[2] == pytest.approx(0.1, abs=1e-9)
    assert np.array_equal(data.qpos, before[0]) and np.array_equal(data.qvel, before[1])
    assert data.time == before[2] and len(simulation.events) == 0
    monkeypatch.undo()
    simulation.advance(data, 0.2)  # and on it goes
    assert len(simulation.events.impacts) == 1


def test_body_in_the_floor_is_an_error_that_says_so() -> None:
    model, data = load(BALL.replace("1.1", "0.05"), floor=FLOOR + FLOOR.replace(
        'name="floor"', 'zaxis="0 0 -1" pos="0 0 .1"'))  # fmt: skip
    with pytest.raises(hf.EventError, match="deep in each other"):
        hf.EventDriven(model).step(data)
    assert data.time == 0.0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"integrator": "euler"}, "rk4, symplectic_euler"),
        ({"contact": "noslip"}, "contact model"),
        ({"contact": hf.Viscous([0.1, 0.2])}, "mu_v"),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], says: str) -> None:
    model, _ = load(BALL)
    with pytest.raises(hf.InputError, match=says):
        hf.EventDriven(model, **arguments)


def test_bad_state_and_duration() -> None:
    model, data = load(BALL)
    simulation = hf.EventDriven(model)
    with pytest.raises(hf.InputError, match="duration"):
        simulation.advance(data, -1.0)
    data.qvel[0] = np.nan
    with pytest.raises(hf.InputError, match=r"data\.qvel"):
        simulation.step(data)


def test_lifted_box_breaks_contact() -> None:
    model, data = load(box('pos="0 0 .1"'))
    simulation = hf.EventDriven(model)
    simulation.step(data, 5)
    data.xfrc_applied[1, 2] = 3 * 9.81
    simulation.step(data, 50)
    assert data.qvel[2] == pytest.approx(2 * 9.81 * 0.1, rel=1e-9)
    (broken,) = simulation.events
    assert broken.kind == "broken" and broken.bodies == ("world", "box")
    assert broken.time == pytest.approx(0.01, abs=2 * model.opt.timestep)


def test_coulomb_is_the_default() -> None:
    """A cube at 2 m/s on mu 0.5 slides ``v^2 / (2 mu g)`` and stays."""
    model, data = load(
        '<geom type="plane" size="9 9 1" friction=".5"/><body pos="0 0 .1"><freejoint/>'
        '<geom type="box" size=".1 .1 .1" friction=".5"/></body>',
        floor="",
    )
    data.qvel[0] = 2.0
    simulation = hf.EventDriven(model)
    assert isinstance(simulation.contact, hf.Coulomb)
    simulation.advance(data, 0.6)
    # Pieces that slide are of first order: half a step of the first speed
    assert data.qpos[0] == pytest.approx(4.0 / 9.81, abs=1.1 * model.opt.timestep)
    assert np.abs(data.qvel).max() < 1e-9
    assert abs(data.qpos[2] - 0.1) < 1e-9


def test_a_ball_that_sticks_rolls_with_fourth_order() -> None:
    """Down an incline that its friction can hold: 5/7 g sin, to rounding; else mu decides."""
    for friction, order in ((1.0, True), (0.05, False)):
        model, data = load(
            f'<geom type="plane" size="50 50 1" euler="0 20 0" friction="{friction}"/>'
            f'<body euler="0 20 0"><freejoint/><geom pos="0 0 .1" size=".1" '
            f'friction="{friction}"/></body>',
            floor="",
        )
        hf.EventDriven(model).advance(data, 0.5)
        slope = np.radians(20.0)
        down = np.array([np.cos(slope), 0.0, -np.sin(slope)])
        way = float(_centre(model, data) @ down)
        start = float(np.array([0.1 * np.sin(slope), 0.0, 0.1 * np.cos(slope)]) @ down)
        rolls = 5.0 / 7.0 * 9.81 * np.sin(slope)
        slides = 9.81 * (np.sin(slope) - friction * np.cos(slope))
        expected = 0.125 * (rolls if order else slides)
        tolerance = 1e-9 if order else 2.0 * model.opt.timestep * 0.5 * slides
        assert way - start == pytest.approx(expected, abs=tolerance)


def _centre(model: mujoco.MjModel, data: mujoco.MjData) -> np.ndarray:
    mujoco.mj_kinematics(model, data)
    return data.geom_xpos[1].copy()


def test_laws_of_pairs_beside_coulomb() -> None:
    """Two cubes side by side, one on a law of its own: it slides for ever, the other one stops."""
    body = ('<body name="{0}" pos="0 {1} .1"><freejoint/><geom type="box" size=".1 .1 .1" '
            'friction=".5"/></body>')  # fmt: skip
    model, data = load(
        '<geom name="floor" type="plane" size="9 9 1" friction=".5"/>'
        + body.format("ice", 0) + body.format("stone", 1), floor="",
    )  # fmt: skip
    data.qvel[0] = data.qvel[6] = 0.5
    hf.EventDriven(model, laws={("ice", "floor"): hf.frictionless()}).advance(data, 0.3)
    assert data.qvel[0] == pytest.approx(0.5, abs=1e-9)
    assert abs(data.qvel[6]) < 1e-9


ROUND = """<mujoco><option timestep=".002"/><worldbody><geom type="plane" size="5 5 1"/>
  <body pos="0 0 {z}" euler="0 {tilt} 0"><freejoint/>
  <geom {shape} condim="{condim}" friction=".5 .02 .002" mass="1"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize("integrator", ["rk4", "symplectic_euler"])
@pytest.mark.parametrize(
    ("shape", "z", "tilt", "condim", "qvel"),
    [
        ('type="ellipsoid" size=".3 .2 .5"', 0.6, 30, 6, [0.0] * 6),
        ('type="box" size=".1 .1 .1"', 0.1, 0, 4, [0, 0, 0, 0, 0, 5.0]),
        ('size=".1"', 0.1, 0, 4, [0, 0, 0, 0, 0, 5.0]),
        ('size=".1"', 0.1, 0, 6, [1.0, 0, 0, 0, 10.0, 0]),
    ],
)
def test_torsion_and_rolling_have_limits(
    integrator: Any, shape: str, z: float, tilt: float, condim: int, qvel: list[float]
) -> None:
    """A tilted ellipsoid stood still for ever, with a moment that no friction has."""
    model = mujoco.MjModel.from_xml_string(ROUND.format(shape=shape, z=z, tilt=tilt, condim=condim))
    first, second = mujoco.MjData(model), mujoco.MjData(model)
    first.qvel[:] = second.qvel[:] = qvel
    hf.EventDriven(model, integrator=integrator).step(first, 100)
    fine = copy.copy(model)
    fine.opt.timestep = 2e-4
    hf.Stepper(fine, warn=False).step(second, 1000)
    assert np.abs(first.qpos - second.qpos).max() < 5e-3
    assert np.abs(first.qvel - second.qvel).max() < 0.05
    assert np.abs(first.qvel - qvel).max() > 0.02  # friction, or its limit, has done something


@pytest.mark.parametrize("speed", [0.5, 3.0])
def test_each_pair_has_its_law_in_an_impact(speed: float) -> None:
    """Drag gives no impulse in no time; friction gives mu times that of the impact, or stops it."""
    ball = '<body pos="{x} 0 .3"><freejoint/><geom name="{name}" size=".1" mass="1"/></body>'
    model, data = load(ball.format(x=0, name="oiled") + ball.format(x=1, name="rough")
                       + ball.format(x=2, name="iced"))  # fmt: skip
    laws = {("oiled", "*"): hf.viscous(2.0), ("rough", "*"): hf.coulomb(0.2),
            ("iced", "*"): hf.frictionless()}  # fmt: skip
    data.qvel[[0, 6, 12]] = speed
    simulation = hf.EventDriven(model, laws=laws)
    while not simulation.events:
        simulation.step(data)
    landed = float(np.sqrt(2.0 * G * 0.2))
    # A ball stops to slide when friction has taken 2/7 of its speed.
    rough = speed - min(0.2 * landed, 2.0 / 7.0 * speed)
    assert data.qvel[12] == pytest.approx(speed, rel=1e-9)
    assert data.qvel[6] == pytest.approx(rough, abs=0.2 * G * 2e-3 + 1e-6)
    assert speed - 2.0 * 2e-3 * speed <= data.qvel[0] <= speed
