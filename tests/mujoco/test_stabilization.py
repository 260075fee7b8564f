"""Corrections: when they are made, what counts as penetration, and the energy that pays."""

from __future__ import annotations

from types import SimpleNamespace

import mujoco
import numpy as np
import pytest

import holdfast as hf
from holdfast._jit import entry
from holdfast.mujoco import StepOptions
from holdfast.mujoco.stabilization import kinetic_energy, label_islands
from plain_kernels import plain

HINGE = """<mujoco><option gravity="0 0 0"/><worldbody><body><joint axis="0 1 0" limited="true"
  range="-10 10"/><geom size=".1" pos=".2 0 0"/></body></worldbody></mujoco>"""
BOX = """<mujoco><worldbody><geom type="plane" size="1 1 1"/><body pos="0 0 .05"><freejoint/>
  <geom type="box" size=".1 .1 .1"/></body></worldbody></mujoco>"""
ARM = """<mujoco><option gravity="0 0 0"/><worldbody><body pos=".1 .2 .3"><freejoint/>
  <geom type="box" size=".1 .2 .05" pos=".03 .02 .01" euler="10 20 30"/>
  <body pos=".2 .1 .3"><joint type="ball"/><geom type="capsule" size=".05" fromto="0 0 0 .1 .2 .3"/>
    <body pos=".1 .2 .3"><joint axis="1 2 3"/><geom type="ellipsoid" size=".1 .05 .07"/></body>
  </body></body></worldbody></mujoco>"""


@entry
def energy_of(velocity, inertia):
    total = 0.0
    for b in range(velocity.shape[0]):
        total += kinetic_energy(velocity[b], inertia[b])
    return total


@pytest.mark.parametrize("seed", range(3))
def test_kinetic_energy_is_that_of_mujoco(seed: int) -> None:
    model, rng = mujoco.MjModel.from_xml_string(ARM), np.random.default_rng(seed)
    data = mujoco.MjData(model)
    mujoco.mj_integratePos(model, data.qpos, rng.normal(size=model.nv), 1.0)
    data.qvel[:] = rng.normal(size=model.nv)
    mujoco.mj_forward(model, data)
    mujoco.mj_energyVel(model, data)
    found = energy_of(data.cvel.copy(), data.cinert.copy())
    assert found == pytest.approx(data.energy[1], rel=1e-12)


@pytest.mark.parametrize(("scene", "period"), [(HINGE, 4), (HINGE, 7), (BOX, 4)])
def test_deep_violations_of_a_mechanism_are_corrected_in_one_of_so_many_steps(
    scene: str, period: int
) -> None:
    """The first, and which one it is follows from the time alone. Free bodies do not wait."""
    model = mujoco.MjModel.from_xml_string(scene)
    options = StepOptions(deep_period=period)
    for k in range(2 * period + 1):
        stepper, data = hf.Stepper(model, warn=False, options=options), mujoco.MjData(model)
        data.time = k * model.opt.timestep
        if scene == HINGE:
            data.qpos[0] = 0.5
        before = data.qpos.copy()
        stepper.step(data)
        corrected = np.abs(data.qpos - before).max() > 1e-4
        assert corrected == (scene == BOX or k % period == 0)


def test_joints_beyond_their_limits_do_not_penetrate() -> None:
    model = mujoco.MjModel.from_xml_string(HINGE)
    stepper, data = hf.Stepper(model, warn=False), mujoco.MjData(model)
    data.qpos[0] = 0.5
    stepper.step(data)
    assert 0.0 < data.qpos[0] < 0.5
    assert stepper.largest_correction > 0.0
    assert stepper.largest_penetration == 0.0


@pytest.mark.parametrize("seed", range(5))
def test_an_island_is_what_constraints_connect(seed: int) -> None:
    """Each has the smallest tree that can be reached; constraints touch none, one or more trees."""
    rng, trees = np.random.default_rng(seed), 12
    touched = [rng.permutation(trees)[: rng.integers(0, 4)] for _ in range(6)]
    ends = np.cumsum([0, *map(len, touched)])
    arrays = SimpleNamespace(law=np.zeros(6), panel=ends, panel_tree=np.concatenate(touched))
    label = np.full(trees, -1)
    plain(label_islands)(arrays, label)
    expected = np.arange(trees)
    for _ in range(trees):
        for each in touched:
            for t in each:
                expected[t] = expected[each].min()
    assert np.array_equal(label, expected)
