"""Margins: how far bodies and joints reach in a step, and what is added to the list."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import pytest

import holdfast as hf
from holdfast.mujoco.step import carve_in_python


def load(world: str, option: str = 'timestep="0.01"') -> tuple[Any, Any, hf.Stepper]:
    model = mujoco.MjModel.from_xml_string(
        f"<mujoco><option {option}/><worldbody>{world}</worldbody></mujoco>"
    )
    return model, mujoco.MjData(model), hf.Stepper(model, warn=False)


@pytest.mark.parametrize("offset", [(5.0, 0.0, 0.0), (0.0, 5.0, 0.0), (0.0, 0.0, 5.0)])
def test_margins_are_the_same_everywhere(offset: tuple[float, float, float]) -> None:
    """A spinning arm with two geoms: the outer one gets farther, wherever the arm is."""
    margins = []
    for at in (np.zeros(3), np.array(offset)):
        _, data, stepper = load(
            f'<body pos="{at[0]} {at[1]} {at[2]}"><freejoint/><geom size="0.1"/>'
            '<geom size="0.1" pos="1 0 0"/><geom size="0.1" pos="0 2 0"/></body>'
        )
        data.qvel[3:] = [1.0, 2.0, 3.0]
        stepper.constraints(data)
        margins.append(stepper.private.model.geom_margin.copy())
    np.testing.assert_allclose(margins[1], margins[0], rtol=1e-12)
    assert (np.diff(margins[0]) > 0.0).all()


def test_margins_are_measured_against_the_drift() -> None:
    """A ladder falls past a wall: its rungs hardly reach each other, both reach the wall."""
    rungs = "".join(f'<geom size="0.1" pos="0 0 {0.21 * k}"/>' for k in range(6))
    model, data, stepper = load(
        f'<geom type="box" size="0.1 1 1" pos="5 0 0"/><body><freejoint/>{rungs}</body>'
    )
    velocity = np.array([3.0, -2.0, -10.0])
    data.qvel[:3] = velocity
    stepper.constraints(data)
    wall, *rung = stepper.private.model.geom_margin
    far = model.opt.timestep * float(np.linalg.norm(velocity))
    assert wall + min(rung) >= far
    assert wall <= 1.5 * far
    assert 2.0 * max(rung) < far
    for geom in range(1, model.ngeom):
        assert stepper.private.model.body_margin[1] >= stepper.private.model.geom_margin[geom]
    assert stepper.private.model.body_margin[0] == wall


def test_a_limit_that_an_impact_leads_beyond() -> None:
    """The limit of the last of three joints is far from reach until the others hit its body."""
    slides = "".join(
        f'<body pos="{0.3 * k} 0 0"><joint type="slide" axis="1 0 0" {limit}/>'
        '<geom size="0.1" mass="1"/></body>'
        for k, limit in enumerate(("", "", 'limited="true" range="-1 0.004"'))
    )
    _, data, stepper = load(slides, 'timestep="0.01" gravity="0 0 0"')
    data.qpos[:] = [0.1999, 0.0999, 0.0]  # the three touch, almost
    data.qvel[0] = 3.0
    for _ in range(3):
        stepper.step(data)
        assert data.qpos[2] <= 0.004 + 1e-9
        gaps = np.diff(data.qpos) + 0.1
        assert gaps.min() >= -1e-9
    np.testing.assert_allclose(data.qvel, 0.0, atol=1e-12)  # all stand at the limit


@pytest.mark.parametrize("axis", [0, 1])
def test_contacts_that_mujoco_left_out(axis: int) -> None:
    """A disc stands on its rim: the contact there is listed, and none is listed twice."""
    model, data, stepper = load(
        '<geom type="box" size="1 1 0.1" pos="0 0 -0.1"/><body><freejoint/>'
        '<geom type="cylinder" size="0.5 0.02"/></body>'
    )
    data.qpos[2] = 0.5 * np.sin(0.02) + 0.02 * np.cos(0.02) - 1e-8
    data.qpos[3], data.qpos[4 + axis] = np.cos(0.01), np.sin(0.01)
    data.qvel[2] = -1.0
    for _ in range(3):
        stepper.step(data)
        place = carve_in_python(stepper.record)[2].place[:, :3]
        apart = np.linalg.norm(place[:, None] - place, axis=2) + np.eye(len(place))
        assert len(place) >= 4 and apart.min() > 1e-3
        mujoco.mj_kinematics(model, data)
        tilt = min(data.geom_xmat[1].reshape(3, 3)[2, 2], 1.0)
        height = data.qpos[2] - 0.5 * np.sqrt(1.0 - tilt**2) - 0.02 * tilt
        assert height >= -1e-5 * 0.5
