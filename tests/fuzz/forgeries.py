"""Forged trajectories: honest runs, and fifty and more ways to lie about them.

A forgery keeps what a cheap check looks at (positions and velocities agree, nothing sinks in, no
energy is gained) wherever it can, and breaks one law.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import mujoco
import numpy as np

import holdfast as hf

FLOOR = '<geom name="floor" type="plane" size="20 20 1" friction=".5 .005 .0001"/>'
BALL = ('<body name="ball" pos="0 0 .6"><freejoint/><geom size=".1" mass="1"/></body>')  # fmt: skip
BOX = """<body name="box" pos="0 0 {z}" euler="{euler}"><freejoint/>
  <geom type="box" size=".1 .1 .1" mass="1" friction=".5 .005 .0001"/></body>"""
FLAT = BOX.format(z=0.1, euler="0 0 0")
TILTED = BOX.format(z=0.5, euler="20 30 0")
PAIR = """<body name="one" pos="-.5 0 5"><freejoint/><geom size=".1" mass="1"/></body>
  <body name="two" pos=".1 0 5"><freejoint/><geom size=".1" mass="1"/></body>"""
PENDULUM = """<body pos="0 0 2"><joint name="j" axis="0 1 0" limited="true" range="-40 200"/>
  <geom type="capsule" size=".02" fromto="0 0 0 .5 0 0" mass="1"/></body>"""
CART = """<body pos="0 0 .1"><joint name="x" type="slide" axis="1 0 0"/>
  <geom type="box" size=".1 .1 .1" mass="2" contype="0" conaffinity="0"/></body>"""
ROTOR = """<body pos="0 0 2"><joint name="j" axis="0 0 1" frictionloss="{loss}"/>
  <geom type="capsule" size=".02" fromto="0 0 0 .5 0 0" mass="1"/></body>"""
TOP = """<body pos="0 0 .1"><freejoint/><geom {shape} mass="1" condim="{condim}"
  friction=".5 .02 .0001"/></body>"""
ROUND, CUBE = 'size=".1"', 'type="box" size=".1 .1 .1"'
ROLLER = """<body pos="0 0 .1"><freejoint/><geom size=".1" mass="1" condim="{condim}"
  friction=".5 .005 .002"/></body>"""
JOINED = """<body name="a" pos="0 0 3"><freejoint/><geom size=".1" mass="1"/></body>
  <body name="b" pos=".5 0 3"><freejoint/><geom size=".1" mass="1"/></body>"""
CONNECT = '<equality><connect body1="a" body2="b" anchor=".25 0 0"/></equality>'
WELD = '<equality><weld body1="a" body2="b"/></equality>'
SWING = """<body pos="0 0 2"><joint name="j" axis="0 1 0" limited="{limited}" range="-40 60"/>
  <geom type="capsule" size=".02" fromto="0 0 0 .5 0 0" mass="1"/></body>"""
GRAZING = "".join(
    f'<body pos="{x} {y} 5"><freejoint/><geom size=".1" mass="1" condim="{{condim}}" friction="1"/>'
    "</body>" for x, y in ((-0.3, 0.0), (0.1, 0.1))
)  # fmt: skip
CEILING = """<geom type="box" size="1 1 .1" pos="0 0 1.1"/>
  <body pos="0 0 .9"><freejoint/><geom size=".1" mass="1"/></body>"""
PLATE = '<geom type="box" size="1 1 .005" pos="0 0 1"/>'
HIGH = '<body pos="0 0 1.5"><freejoint/><geom size=".1" mass="1"/></body>'


@dataclass(frozen=True)
class Run:
    """A trajectory and the law that it claims."""

    model: Any
    time: np.ndarray
    qpos: np.ndarray
    qvel: np.ndarray
    ctrl: np.ndarray | None
    law: hf.Law
    no_slip: bool = False


def _model(bodies: str, more: str = "", option: str = "") -> Any:
    return mujoco.MjModel.from_xml_string(
        f"<mujoco><option timestep='.002' {option}/><worldbody>{FLOOR}{bodies}</worldbody>"
        f"{more}</mujoco>"
    )


def _simulate(model: Any, steps: int, qvel: Any = None, *, law: hf.Law | None = None,
              every: int = 1, events: bool = False, ctrl: Any = None) -> Run:  # fmt: skip
    data = mujoco.MjData(model)
    if qvel is not None:
        data.qvel[: len(qvel)] = qvel
    if ctrl is not None:
        data.ctrl[:] = ctrl
    stepper: Any = hf.EventDriven(model) if events else hf.Stepper(model, law, warn=False)
    states = [(data.time, data.qpos.copy(), data.qvel.copy(), data.ctrl.copy())]
    for k in range(steps):
        stepper.step(data)
        if (k + 1) % every == 0:
            states.append((data.time, data.qpos.copy(), data.qvel.copy(), data.ctrl.copy()))
    time, q, v, u = (np.array(column) for column in zip(*states, strict=True))
    stick = events or (law is not None and law.kind == "stick")
    return Run(model, time, q, v, u if model.nu else None,
               hf.stick() if stick else law or hf.coulomb(), no_slip=stick)  # fmt: skip


HONEST: dict[str, Callable[[], Run]] = {
    "ball": lambda: _simulate(_model(BALL), 400, events=True),
    "ball coarse": lambda: _simulate(_model(BALL), 400, every=10),
    "tumble": lambda: _simulate(_model(TILTED), 500, [1, 0, 0, 2, 3, 1]),
    "slide": lambda: _simulate(_model(FLAT), 300, [2.0, 0.0]),
    "slide coarse": lambda: _simulate(_model(FLAT), 200, [3.0], every=5),
    "stick": lambda: _simulate(_model(BOX.format(z=0.3, euler="20 30 0")), 300, law=hf.stick()),
    "viscous": lambda: _simulate(_model(FLAT), 200, [1.0], law=hf.viscous(2.0)),
    "pair": lambda: _simulate(_model(PAIR), 300, [1.0]),
    "pendulum": lambda: _simulate(_model(PENDULUM), 500),
    "cart": lambda: _simulate(
        _model(CART, '<actuator><motor joint="x"/></actuator>'), 200, ctrl=[3.0]
    ),
    "rotor": lambda: _simulate(_model(ROTOR.format(loss=0.05)), 200, [3.0]),
    "rotor coarse": lambda: _simulate(_model(ROTOR.format(loss=0.05)), 200, [3.0], every=5),
    "spinning cube": lambda: _simulate(
        _model(TOP.format(shape=CUBE, condim=4)), 200, [0.0, 0.0, 0.0, 0.0, 0.0, 5.0]
    ),
    "spinning ball": lambda: _simulate(
        _model(TOP.format(shape=ROUND, condim=4)), 200, [0.0, 0.0, 0.0, 0.0, 0.0, 5.0]
    ),
    "roller": lambda: _simulate(
        _model(ROLLER.format(condim=6)), 200, [1.0, 0.0, 0.0, 0.0, 10.0, 0.0]
    ),
    "swing": lambda: _simulate(_model(SWING.format(limited="true")), 300),
    "swing coarse": lambda: _simulate(_model(SWING.format(limited="true")), 300, every=5),
    "connect": lambda: _simulate(_model(JOINED, CONNECT), 150, [1, 0, 0, 0, 2, 0, 0, 0.5]),
    "weld": lambda: _simulate(_model(JOINED, WELD), 150, [1, 0, 0, 0, 2, 0, 0, 0.5]),
    "slope holds": lambda: _simulate(_model(FLAT, option=_slope(0.3)), 150),
    "slope slides": lambda: _simulate(_model(FLAT, option=_slope(0.6)), 150),
    "slope slides, coarse": lambda: _simulate(_model(FLAT, option=_slope(0.6)), 150, every=5),
    "tumble coarse": lambda: _simulate(_model(TILTED), 500, [1, 0, 0, 2, 3, 1], every=5),
    "two": lambda: _simulate(_model(FLAT + BALL.replace("0 0 .6", "0 .05 .6")), 300),
}


@cache
def honest(name: str) -> Run:
    return HONEST[name]()


def _moved(run: Run, begin: int, v: Any, coordinates: slice | list[int]) -> Run:
    """The run with other velocities from a sample on, and positions that follow from them."""
    q, w = run.qpos.copy(), run.qvel.copy()
    w[begin:, coordinates] = v
    for k in range(begin, len(q)):
        mean = 0.5 * (w[k - 1] + w[k])
        q[k] = q[k - 1]
        mujoco.mj_integratePos(run.model, q[k], mean, run.time[k] - run.time[k - 1])
    return replace(run, qpos=q, qvel=w)


def _landing(run: Run, coordinate: int = 2) -> int:
    """The first sample after the fall."""
    return int(np.flatnonzero((run.qvel[1:, coordinate] - run.qvel[:-1, coordinate]) > 0.05)[0]) + 1


def _other_model(change: Callable[[Any], None], bodies: str, steps: int = 300, qvel: Any = None,
                 every: int = 1, **kwargs: Any) -> Run:  # fmt: skip
    """A run of a changed model that is given out for one of the model as it is."""
    model = _model(bodies)
    changed = copy.copy(model)
    change(changed)
    mujoco.mj_setConst(changed, mujoco.MjData(changed))
    return replace(_simulate(changed, steps, qvel, every=every, **kwargs), model=model)


def _gravity(factor: float) -> Callable[[Any], None]:
    def change(model: Any) -> None:
        model.opt.gravity[2] *= factor

    return change


def _mass(body: int, factor: float) -> Callable[[Any], None]:
    def change(model: Any) -> None:
        model.body_mass[body] *= factor
        model.body_inertia[body] *= factor

    return change


def _friction(mu: float) -> Callable[[Any], None]:
    def change(model: Any) -> None:
        model.geom_friction[:, 0] = mu

    return change


def _hover(height: float, name: str = "ball") -> Run:
    run = honest(name)
    k = _landing(run)
    q, v = run.qpos.copy(), run.qvel.copy()
    q[k:] = q[-1]
    q[k:, 2] = 0.1 + height
    v[k:] = 0.0
    # it stops in the air, at the height where it is: the sample before is put there, too
    before = int(np.flatnonzero(q[:k, 2] > 0.1 + height)[-1])
    q[before + 1 : k], v[before + 1 : k] = q[k], 0.0
    return replace(run, qpos=q, qvel=v)


def _bounce(restitution: float, name: str = "ball") -> Run:
    run = honest(name)
    h, g, z, w = 1e-4, 9.81, 0.6, 0.0
    q, v = run.qpos.copy(), run.qvel.copy()
    k, t = 0, 0.0
    for k, end in enumerate(run.time):
        while t < end - 1e-12:
            dt = min(h, end - t)
            z, w, t = z + dt * w - 0.5 * g * dt * dt, w - g * dt, t + dt
            if z <= 0.1 and w < 0.0:
                z, w = 0.1, -restitution * w
        q[k, 2], v[k, 2] = z, w
    return replace(run, qpos=q, qvel=v)


def _scaled_time(name: str, factor: float) -> Run:
    run = honest(name)
    return replace(run, time=run.time * factor, qvel=run.qvel / factor)


def _ghost_push(name: str, at: int, dv: float, coordinate: int = 0) -> Run:
    run = honest(name)
    v = run.qvel.copy()
    v[at:, coordinate] += dv
    return _moved(run, at, v[at:, [coordinate]], [coordinate])


def _sunk(depth: float) -> Run:
    run = honest("ball")
    k, q = _landing(run), run.qpos.copy()
    q[k:, 2] -= depth
    return replace(run, qpos=q)


def _stops_before_the_limit() -> Run:
    run = honest("pendulum")
    q, v = run.qpos.copy(), run.qvel.copy()
    k = int(np.flatnonzero(q[:, 0] > 1.0)[0])
    q[k:], v[k:] = q[k], 0.0
    return replace(run, qpos=q, qvel=v)


def _leap(name: str = "slide") -> Run:
    """A box at rest jumps off the floor by itself."""
    run = honest(name)
    q, v = run.qpos.copy(), run.qvel.copy()
    k = len(q) - 60
    t = run.time[k:] - run.time[k]
    v[k:, 2] = 1.0 - 9.81 * t
    q[k:, 2] = 0.1 + 1.0 * t - 0.5 * 9.81 * t**2
    return replace(run, qpos=q, qvel=v)


def _constant_slide(name: str, law: hf.Law | None = None) -> Run:
    run = honest(name)
    forged = _moved(run, 1, run.qvel[0, 0], [0])
    return forged if law is None else replace(forged, law=law, no_slip=False)


def _claimed(run: Run, law: hf.Law, *, no_slip: bool = False) -> Run:
    return replace(run, law=law, no_slip=no_slip)


FORGERIES: dict[str, Callable[[], Run]] = {
    "gravity 2 % less": lambda: _other_model(_gravity(0.98), BALL),
    "gravity 2 % more": lambda: _other_model(_gravity(1.02), BALL),
    "gravity 2 % less, coarse": lambda: _other_model(_gravity(0.98), BALL, every=10),
    "gravity 2 % less, tumbling": lambda: _other_model(
        _gravity(0.98), BOX.format(z=0.8, euler="20 30 0"), 150, [1, 0, 0, 2, 3, 1]
    ),
    "no gravity": lambda: _other_model(_gravity(0.0), BALL),
    "gravity upside down": lambda: _other_model(_gravity(-1.0), BALL),
    "time 1 % slower": lambda: _scaled_time("ball", 1.01),
    "time twice as fast": lambda: _scaled_time("tumble", 0.5),
    "time 1 % slower, coarse": lambda: _scaled_time("ball coarse", 1.01),
    "hovers 1 mm": lambda: _hover(1e-3),
    "hovers 5 cm": lambda: _hover(0.05),
    "hovers 1 mm, coarse": lambda: _hover(1e-3, "ball coarse"),
    "hovers 5 mm, coarse": lambda: _hover(5e-3, "ball coarse"),
    "bounces without loss": lambda: _bounce(1.0),
    "bounces with half its speed": lambda: _bounce(0.5),
    "bounces without loss, coarse": lambda: _bounce(1.0, "ball coarse"),
    "bounces with more speed": lambda: _bounce(1.1),
    "one mass doubled": lambda: _other_model(_mass(1, 2.0), PAIR, 300, [1.0]),
    "other mass doubled": lambda: _other_model(_mass(2, 2.0), PAIR, 300, [1.0]),
    "one mass a tenth more": lambda: _other_model(_mass(1, 1.1), PAIR, 300, [1.0]),
    "mass under a motor doubled": lambda: replace(
        _simulate(_heavy_cart(), 200, ctrl=[3.0]), model=honest("cart").model
    ),
    "half the friction": lambda: _other_model(_friction(0.25), FLAT, 300, [2.0]),
    "twice the friction": lambda: _other_model(_friction(1.0), FLAT, 150, [2.0]),
    "a tenth more friction": lambda: _other_model(_friction(0.55), FLAT, 150, [2.0]),
    "no friction": lambda: _constant_slide("slide"),
    "no friction, coarse": lambda: _constant_slide("slide coarse"),
    "slides and says viscous": lambda: _constant_slide("slide", hf.viscous(2.0)),
    "slides and says no slip": lambda: _claimed(honest("slide"), hf.stick(), no_slip=True),
    "drags and says Coulomb": lambda: _claimed(honest("viscous"), hf.coulomb()),
    "drag half as strong": lambda: _claimed(honest("viscous"), hf.viscous(4.0)),
    "a push from nobody": lambda: _ghost_push("ball", 50, 0.01),
    "a small push from nobody": lambda: _ghost_push("tumble", 50, 1e-3),
    "a spin from nobody": lambda: _ghost_push("ball", 50, 0.05, 4),
    "sunk by a micrometre": lambda: _sunk(1e-6),
    "stops before the limit": _stops_before_the_limit,
    "leaps by itself": _leap,
    "played backwards": lambda: _backwards("slide"),
    "played backwards, falling": lambda: _backwards("tumble"),
    "a teleport": lambda: _teleport(),
    "a forgotten body": lambda: _forgotten(),
    "ten times the dry friction": lambda: _other_scene(
        ROTOR.format(loss=0.05), ROTOR.format(loss=0.5), [3.0]
    ),
    "no dry friction": lambda: _other_scene(ROTOR.format(loss=0.05), ROTOR.format(loss=0.0), [3.0]),
    "no torsional friction": lambda: _other_scene(
        TOP.format(shape=ROUND, condim=4), TOP.format(shape=ROUND, condim=3), [0, 0, 0, 0, 0, 5]
    ),
    "no rolling friction": lambda: _other_scene(
        ROLLER.format(condim=6), ROLLER.format(condim=3), [1, 0, 0, 0, 10, 0]
    ),
    "a ball stops rolling": lambda: _stops("roller", 100),
    "a spin stops at once": lambda: _stops("spinning cube", 10),
    "swings through a limit": lambda: _other_scene(
        SWING.format(limited="true"), SWING.format(limited="false")
    ),
    "bounces off a limit": lambda: _bounces_off_a_limit(1.0),
    "bounces off a limit with half its speed": lambda: _bounces_off_a_limit(0.5),
    "connected, and drift apart": lambda: _other_scene(
        JOINED, JOINED, [-0.05, 0, 0, 0, 0, 0, 0.05], CONNECT
    ),
    "welded, and drift apart": lambda: _other_scene(
        JOINED, JOINED, [-0.05, 0, 0, 0, 0, 0, 0.05], WELD
    ),
    "creeps": lambda: _creep(0.01, 0.0),
    "creeps by a millimetre in a second": lambda: _creep(1e-3, 0.0),
    "creeps, coarse": lambda: _creep(0.05, 0.0, 0.02),
    "creeps down a slope": lambda: _creep(0.01, 0.3),
    "sticks to the ceiling": lambda: _still(CEILING, 0.9),
    "spun by a contact without friction": lambda: _other_scene(
        GRAZING.format(condim=1), GRAZING.format(condim=3), [1.0]
    ),
    "through a plate": lambda: _other_scene(PLATE + HIGH, HIGH, [0, 0, -5.0]),
    "through a plate, coarse": lambda: _other_scene(PLATE + HIGH, HIGH, [0, 0, -5.0], every=20),
    "friction sideways": lambda: _sideways(),
    "curves as it rolls": lambda: _curves(),
    "creeps, and says that it does not move": lambda: _drifts(_still(FLAT, 0.1), 0, 3e-4),
    "creeps down a slope, and says that it does not": lambda: _drifts(
        _still(FLAT, 0.1, _slope(0.3)), 0, 3e-4
    ),
    "creeps by micrometres, and says that it does not": lambda: _drifts(_still(FLAT, 0.1), 0, 5e-5),
    "turns, and says that it does not": lambda: _turns(1e-3),
    "drifts sideways in flight": lambda: _drifts(_flight(), 1, 0.01),
    "a hundredth farther than its velocity says": lambda: _drifts(_flight(), 0, 0.01),
    "says that it is faster than it is": lambda: _says_faster(1.02),
    "through a thin plate at high speed": lambda: _tunnels(0.002),
    "through a thin plate, coarse": lambda: _tunnels(0.004),
}


def _flight(option: str = "") -> Run:
    """A ball in free flight, exact."""
    time = 0.002 * np.arange(200)
    q = np.tile([0.0, 0.0, 5.0, 1.0, 0.0, 0.0, 0.0], (200, 1))
    v = np.tile([1.0, 0.5, 3.0, 0.0, 0.0, 0.0], (200, 1))
    v[:, 2] -= 9.81 * time
    q[:, :3] += np.outer(time, v[0, :3])
    q[:, 2] -= 0.5 * 9.81 * time**2
    return Run(_model(HIGH.replace("1.5", "5"), option=option), time, q, v, None, hf.coulomb())


def _drifts(run: Run, coordinate: int, speed: float) -> Run:
    """Positions go where velocities do not lead."""
    q = run.qpos.copy()
    q[:, coordinate] += speed * run.time
    return replace(run, qpos=q)


def _turns(speed: float) -> Run:
    run = _still(FLAT, 0.1)
    half = 0.5 * speed * run.time
    q = run.qpos.copy()
    q[:, 3], q[:, 6] = np.cos(half), np.sin(half)
    return replace(run, qpos=q)


def _says_faster(factor: float) -> Run:
    run = _flight()
    v = run.qvel.copy()
    v[:, :2] *= factor
    return replace(run, qvel=v)


def _tunnels(step: float) -> Run:
    """A small ball flies from one side of a plate to the other between two samples."""
    plate = '<geom type="box" size=".001 1 3" pos=".31 0 5"/>'
    ball = '<body pos="0 0 5"><freejoint/><geom size=".01" mass="1"/></body>'
    time = step * np.arange(50)
    q, v = np.tile([0.0, 0.0, 5.0, 1.0, 0.0, 0.0, 0.0], (50, 1)), np.zeros((50, 6))
    v[:, 0], v[:, 2] = 20.0, -9.81 * time
    q[:, 0] += 20.0 * time
    q[:, 2] -= 0.5 * 9.81 * time**2
    return Run(_model(plate + ball), time, q, v, None, hf.coulomb())


def _slope(angle: float) -> str:
    """Gravity as a slope has it."""
    return f'gravity="{9.81 * np.sin(angle)} 0 {-9.81 * np.cos(angle)}"'


def _other_scene(claimed: str, bodies: str, qvel: Any = None, more: str = "",
                 every: int = 1) -> Run:  # fmt: skip
    """A run of one scene that is given out for one of another."""
    return replace(_simulate(_model(bodies), 300, qvel, every=every), model=_model(claimed, more))


def _stops(name: str, k: int) -> Run:
    run = honest(name)
    q, v = run.qpos.copy(), run.qvel.copy()
    q[k:], v[k:] = q[k], 0.0
    return replace(run, qpos=q, qvel=v)


def _bounces_off_a_limit(restitution: float) -> Run:
    free, top = _model(SWING.format(limited="false")), float(np.deg2rad(60.0))
    free.opt.timestep, data, states = 2e-5, mujoco.MjData(free), []
    for k in range(400):
        states.append((0.002 * k, data.qpos.copy(), data.qvel.copy()))
        for _ in range(100):
            mujoco.mj_step(free, data)
            if data.qpos[0] > top and data.qvel[0] > 0.0:
                data.qpos[0], data.qvel[0] = 2.0 * top - data.qpos[0], -restitution * data.qvel[0]
    time, q, v = (np.array(column) for column in zip(*states, strict=True))
    return Run(_model(SWING.format(limited="true")), time, q, v, None, hf.coulomb())


def _still(bodies: str, height: float, option: str = "", step: float = 0.002) -> Run:
    """A body that stays where it is."""
    q = np.tile([0.0, 0.0, height, 1.0, 0.0, 0.0, 0.0], (200, 1))
    model = _model(bodies, option=option)
    return Run(model, step * np.arange(200), q, np.zeros((200, 6)), None, hf.coulomb())


def _creep(speed: float, slope: float, step: float = 0.002) -> Run:
    """A box that slides slowly, for ever, and without friction."""
    run = _still(FLAT, 0.1, _slope(slope), step)
    run.qpos[:, 0], run.qvel[:, 0] = speed * run.time, speed
    return run


def _sideways() -> Run:
    """What friction takes of the speed goes on in another direction."""
    run = honest("slide")
    v = run.qvel[1:, 0]
    return _moved(run, 1, np.stack([v, 0.3 * (run.qvel[0, 0] - v)], axis=1), [0, 1])


def _curves() -> Run:
    """A ball that rolls straight on turns aside, without sliding, within the bounds of friction."""
    run = honest("roller")
    aside = 0.02 * run.time[:, None]
    v = np.hstack([run.qvel[:, 1:2] + aside, run.qvel[:, 3:4] - 10.0 * aside])
    return _moved(run, 1, v[1:], [1, 3])


def _heavy_cart() -> Any:
    model = copy.copy(honest("cart").model)
    model.body_mass[1] *= 2.0
    mujoco.mj_setConst(model, mujoco.MjData(model))
    return model


def _backwards(name: str) -> Run:
    run = honest(name)
    return replace(run, qpos=run.qpos[::-1].copy(), qvel=-run.qvel[::-1])


def _teleport() -> Run:
    run = honest("tumble")
    q = run.qpos.copy()
    q[len(q) // 2 :, 0] += 0.05
    return replace(run, qpos=q)


def _forgotten() -> Run:
    """A light ball beside a heavy box that lies still: it stands in the air."""
    run = honest("two")
    q, v = run.qpos.copy(), run.qvel.copy()
    q[50:, 7:], v[50:, 6:] = q[50, 7:], 0.0
    return replace(run, qpos=q, qvel=v)


def main() -> None:
    from holdfast.tools.verify import verify

    passed = []
    for name, forge in FORGERIES.items():
        run = forge()
        verdict = verify(run.model, run.time, run.qpos, run.qvel, run.ctrl, law=run.law,
                         no_slip=run.no_slip)  # fmt: skip
        passed += [name] * verdict.passed
    print(f"{len(passed)} of {len(FORGERIES)} pass {passed}")


if __name__ == "__main__":
    main()
