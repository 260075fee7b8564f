"""What a step does depends on the state alone."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import pytest

import holdfast as hf

STATE = mujoco.mjtState.mjSTATE_INTEGRATION


def twin(model: Any, data: Any) -> Any:
    """Other data in the same state."""
    other, state = mujoco.MjData(model), np.zeros(mujoco.mj_stateSize(model, STATE))
    mujoco.mj_getState(model, data, state, STATE)
    mujoco.mj_setState(model, other, state, STATE)
    return other


def boxes(integrator: str = "Euler") -> Any:
    """Two boxes that are thrown onto a floor, and one at rest that another one stands on."""
    box = '<geom type="box" size=".1 .1 .1" friction=".4"/>'
    bodies = "".join(
        f'<body pos="{x} 0 {z}"><freejoint/>{box}</body>'
        for x, z in ((0, 0.4), (0.05, 0.8), (1, 0.1), (1.03, 0.3))
    )
    return mujoco.MjModel.from_xml_string(
        f'<mujoco><option integrator="{integrator}"/><worldbody><geom type="plane" size="5 5 1"/>'
        f"{bodies}</worldbody></mujoco>"
    )


def test_a_new_stepper_takes_the_same_step() -> None:
    """While boxes fall, hit each other, slide and come to rest."""
    model = boxes()
    data, stepper = mujoco.MjData(model), hf.Stepper(model, warn=False)
    data.qvel[:2] = data.qvel[6:8] = 1.0, 0.3
    for k in range(400):
        other = twin(model, data)
        stepper.step(data)
        if k % 5 == 0:
            hf.Stepper(model, warn=False).step(other)
            np.testing.assert_allclose(other.qvel, data.qvel, rtol=0.0, atol=1e-12)
            np.testing.assert_allclose(other.qpos, data.qpos, rtol=0.0, atol=1e-12)
    assert np.abs(data.qvel).max() == 0.0


@pytest.mark.parametrize("integrator", ["Euler", "implicitfast", "discrete"])
@pytest.mark.parametrize("rolling", [1e-4, 0.1])
def test_equalities_have_the_compliance_of_the_model(integrator: str, rolling: float) -> None:
    """Also beside contacts whose friction pyramid is narrow."""
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><option integrator="{integrator}"/><worldbody><geom name="floor" type="plane" '
        'size="5 5 1"/><body name="a" pos="0 0 .1"><freejoint/><geom name="a" size=".1"/></body>'
        '<body name="b" pos="0 0 .4"><freejoint/><geom name="b" size=".1"/></body></worldbody>'
        f'<contact><pair geom1="floor" geom2="a" condim="6" friction="1 1 .1 {rolling} {rolling}"/>'
        '</contact><equality><weld body1="a" body2="b" relpose="0 0 .31 1 0 0 0"/></equality>'
        "</mujoco>"
    )
    data, given = mujoco.MjData(model), mujoco.MjData(model)
    mujoco.mj_forward(model, given)
    outcome = hf.Stepper(model, warn=False).constraints(data)
    assert given.ne == 6
    np.testing.assert_allclose(outcome.compliance[:6], given.efc_R[:6], rtol=1e-9)


def test_an_island_that_cannot_be_corrected_does_not_keep_others_from_it() -> None:
    """A ball in the floor, beside a box that is wider than its slot."""
    walls = "".join(f'<geom type="box" pos="{x} 0 2" size=".12 1 1"/>' for x in (-0.2, 0.2))
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><worldbody><geom type="plane" size="5 5 1"/>{walls}'
        '<body pos="0 0 2"><joint type="slide" axis="1 0 0"/><geom type="box" size=".1 .1 .1"/>'
        '</body><body pos="2 0 .095"><freejoint/><geom size=".1"/></body></worldbody></mujoco>'
    )
    data = mujoco.MjData(model)
    hf.Stepper(model, warn=False).step(data, 3)
    assert data.qpos[0] == 0.0
    assert data.qpos[3] == pytest.approx(0.1, abs=1e-9)
