"""Bodies that turn by radians in a step: no energy from nowhere, no jumps, divergence by name."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import pytest

import holdfast as hf
from event_scenes import BALL, load
from fuzz import teleports
from fuzz.random_scenes import random_scene
from holdfast.events import projection

pytestmark = pytest.mark.jit

BOX = '<geom type="box" size=".1 .05 .02" mass="1"/>'
LINK = ('<body pos=".2 0 0"><joint axis="0 1 0" pos="-.1 0 0"/>'
        '<geom type="box" size=".1 .02 .03" mass=".5"/></body>')  # fmt: skip
BODIES = {
    "centred": BOX,
    "armature": BOX,
    "beside its origin": BOX.replace("/>", ' pos=".2 .1 0"/>'),
    "with a link": BOX + LINK,
}


def free(name: str, h: float) -> tuple[mujoco.MjModel, mujoco.MjData]:
    """A body that turns freely."""
    joint = '<joint type="free" armature=".01"/>' if name == "armature" else "<freejoint/>"
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><option gravity="0 0 0" timestep="{h}"/><worldbody>'
        f'<body name="body">{joint}{BODIES[name]}</body></worldbody></mujoco>'
    )
    return model, mujoco.MjData(model)


def kinetic(model: Any, data: Any) -> float:
    M = np.empty((model.nv, model.nv))
    mujoco.mj_forward(model, data)
    mujoco.mj_fullM(model, data, M)
    return 0.5 * float(data.qvel @ M @ data.qvel)


@pytest.mark.parametrize("name", ["centred", "armature"])
@pytest.mark.parametrize("spin", [10.0, 1e3, 1e6])
def test_free_rotation_at_velocity_level_keeps_its_energy(name: str, spin: float) -> None:
    model, data = free(name, 0.01)
    data.qvel[3:6] = spin * np.array([0.3, 1.0, 0.2])
    simulation = hf.EventDriven(model, integrator="symplectic_euler")
    before = kinetic(model, data)
    simulation.step(data, 40)
    assert kinetic(model, data) == pytest.approx(before, rel=1e-11)


@pytest.mark.parametrize("name", ["beside its origin", "with a link"])
@pytest.mark.parametrize("spin", [1e3, 1e5])
def test_fast_rotation_of_other_bodies_gains_no_energy(name: str, spin: float) -> None:
    model, data = free(name, 0.01)
    data.qvel[3:6] = spin * np.array([0.3, 1.0, 0.2])
    simulation = hf.EventDriven(model, integrator="symplectic_euler")
    before = kinetic(model, data)
    simulation.step(data, 20)
    assert kinetic(model, data) <= 1.001 * before


@pytest.mark.parametrize("name", list(BODIES))
def test_rotation_at_velocity_level_is_of_first_order(name: str) -> None:
    ends = []
    ways: Any = (("rk4", 2e-3), ("symplectic_euler", 2e-3), ("symplectic_euler", 1e-3))
    for integrator, h in ways:
        model, data = free(name, h)
        data.qvel[3:6] = [1.0, 3.0, 0.5]
        hf.EventDriven(model, integrator=integrator).advance(data, 0.2)
        ends.append(np.concatenate([data.qpos, data.qvel]))
    coarse, fine = (np.abs(end - ends[0]).max() for end in ends[1:])
    assert 1e-6 < fine < 0.6 * coarse


def test_divergence_is_said_by_name_and_nothing_is_changed() -> None:
    model, data = load(BALL)
    data.xfrc_applied[1, 0] = 1e13
    before = data.qpos.copy(), data.qvel.copy(), data.time
    with pytest.raises(hf.EventError, match=r"diverged: qvel\[0\] is 2e\+10 \(body ball\)"):
        hf.EventDriven(model).step(data)
    assert np.array_equal(data.qpos, before[0]) and np.array_equal(data.qvel, before[1])
    assert data.time == before[2]


def jump(monkeypatch: pytest.MonkeyPatch, times: float) -> None:
    """Let the first corrections of a step lead a body away."""
    correct, calls = projection.position, []

    def jumping(probe: Any, state: Any, *rest: Any) -> Any:
        moved, *others = correct(probe, state, *rest)
        calls.append(state)
        if len(calls) <= times:
            moved = moved._replace(qpos=moved.qpos + np.eye(7)[0])
        return moved, *others

    monkeypatch.setattr(projection, "position", jumping)


def test_piece_that_leads_too_far_is_taken_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    model, data = load(BALL)
    jump(monkeypatch, 1)
    hf.EventDriven(model).step(data)
    assert abs(data.qpos[0]) < 1e-12
    assert data.qpos[2] == pytest.approx(1.1, abs=1e-4)


def test_step_that_leads_too_far_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    model, data = load(BALL)
    jump(monkeypatch, np.inf)
    with pytest.raises(hf.EventError, match="farther than its speed allows"):
        hf.EventDriven(model).step(data)
    assert data.qpos[0] == 0.0 and data.time == 0.0


def test_small_bodies_that_turn_by_radians_do_not_end_in_each_other() -> None:
    _, how, _ = teleports.run_scene(888, steps=20)
    assert how == "done"


@pytest.mark.slow
def test_sliding_bodies_do_not_spin_up() -> None:
    scene = random_scene(915, scales=(0.01, 1.0), grounds=("hfield", "plane", "box", "mesh"))
    model, data = scene.load()
    simulation = hf.EventDriven(model)
    fastest = 0.0
    for k in range(teleports.STEPS):
        scene.drive(model, data, k)
        simulation.step(data)
        fastest = max(fastest, float(np.abs(data.qvel).max()))
    assert fastest < 2e3  # one light body is hit by a heavy one, and turns at 1e3 rad/s
