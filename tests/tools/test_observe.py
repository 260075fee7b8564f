"""What the viewer and videos show of contact, against what can be computed by hand."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import holdfast as hf
from holdfast.tools import scenes
from holdfast.tools.observe import Forces, Observer, cone_colors


def cube(speed: float = 0.0, slope: float = 0.0, friction: float = 0.5) -> tuple[object, object]:
    model = mujoco.MjModel.from_xml_string(f"""<mujoco><option timestep="0.005"/><worldbody>
      <geom type="plane" size="9 9 1" euler="0 {slope} 0" friction="{friction}"/>
      <body euler="0 {slope} 0"><freejoint/>
        <geom pos="0 0 .05" type="box" size=".05 .05 .05" mass="1" friction="{friction}"/></body>
      </worldbody></mujoco>""")
    data = mujoco.MjData(model)
    data.qvel[0] = speed
    return model, data


def test_forces_of_a_cube_at_rest_on_a_slope() -> None:
    model, data = cube(slope=10.0)
    hf.step(model, data, nstep=20)
    forces = Forces.of(model, data)
    assert forces.force.sum(axis=0) == pytest.approx([0, 0, 9.81], abs=1e-9)
    assert forces.required == pytest.approx(np.tan(np.radians(10.0)))
    assert (forces.use < 0.9).all() and (forces.use > 0.0).all()
    seen = Observer(model).measure(data)
    assert seen.contacts == 4 and seen.creep < 1e-12 and seen.penetration < 1e-12


def test_a_sliding_cube_uses_all_of_its_cone_and_creeps_at_its_speed() -> None:
    model, data = cube(speed=2.0)
    hf.step(model, data, nstep=10)
    forces = Forces.of(model, data)
    assert forces.use == pytest.approx(1.0, abs=1e-9) and forces.required == pytest.approx(0.5)
    assert Observer(model).measure(data).creep == pytest.approx(data.qvel[0], rel=1e-9)


def test_no_slip_may_go_beyond_the_cone() -> None:
    model, data = cube(slope=40.0)
    hf.Stepper(model, hf.NoSlip(), warn=False).step(data, 5)
    forces = Forces.of(model, data)
    assert forces.required == pytest.approx(np.tan(np.radians(40.0)))
    assert forces.use.max() > 1.0
    assert (cone_colors(forces.use)[forces.use > 1.001] == cone_colors(np.array([9.0]))).all()


def test_mujoco_is_measured_in_the_same_way() -> None:
    model = mujoco.MjModel.from_xml_string(scenes.row_of_boxes(2))
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_step(model, data, 200)
    seen = Observer(model).measure(data)
    assert seen.creep > 1e-3 and seen.penetration > 1e-5
    before = data.qpos.copy()
    assert (before == data.qpos).all()  # looking changes nothing
    # pads press with 20 N, and two boxes of 1 kg hang between them
    assert Forces.of(model, data).required == pytest.approx(9.81 / 20.0, rel=0.02)


def test_nothing_touches() -> None:
    model, data = cube()
    data.qpos[2] = 1.0
    mujoco.mj_step(model, data)
    forces = Forces.of(model, data)
    assert forces.point.shape == forces.force.shape == (0, 3) and forces.required == 0.0
    assert Observer(model).measure(data).contacts == 0


def test_colors_go_from_green_to_red() -> None:
    colors = cone_colors(np.array([0.0, 0.5, 1.0, 1.5]))
    assert colors.shape == (4, 3) and (colors >= 0).all() and (colors <= 1).all()
    green, yellow, red, violet = colors
    assert green[1] > green[0] and red[0] > red[1] and yellow[0] > 0.8 and yellow[1] > 0.7
    assert violet[2] > violet[1]
