"""Limits of joints and tendons: rigid by default, compliant as MuJoCo's by choice."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import holdfast as hf

CHAIN = """
<mujoco>
  <option timestep="0.004" tolerance="1e-15" iterations="200">
    <flag eulerdamp="disable"/></option>
  <default><joint axis="0 1 0" limited="true" range="-0.3 0.4" damping="0.02"/>
    <geom type="capsule" size="0.03" fromto="0 0 0 0.2 0 0" contype="0" conaffinity="0"/></default>
  <worldbody>
    <body><joint/><geom/>
      <body pos="0.2 0 0"><joint margin="0.05"/><geom/>
        <body pos="0.2 0 0"><joint solreflimit="0.05 0.7" solimplimit="0.8 0.9 0.01"/><geom/>
          <body pos="0.2 0 0"><joint axis="0 0 1"/><geom/>
            <body pos="0.2 0 0"><joint type="ball" range="0 0.5"/><geom/></body>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
</mujoco>
"""
TENDON = """
<mujoco>
  <option timestep="0.004" tolerance="1e-15" iterations="200"/>
  <worldbody>
    <body><joint name="a" axis="0 1 0"/><geom type="capsule" size="0.03" fromto="0 0 0 0.3 0 0"/>
      <body pos="0.3 0 0"><joint name="b" axis="0 1 0"/>
        <geom type="capsule" size="0.03" fromto="0 0 0 0.3 0 0"/></body></body>
  </worldbody>
  <tendon><fixed limited="true" range="-0.4 0.4"><joint joint="a" coef="1"/>
    <joint joint="b" coef="-0.5"/></fixed></tendon>
</mujoco>
"""
SLIDER = """
<mujoco>
  <option timestep="0.002" gravity="0 0 0"/>
  <worldbody>
    <body><joint type="slide" axis="1 0 0" limited="true" range="-1 0.1"/>
      <geom type="box" size="0.1 0.1 0.1" mass="2"/></body>
    <body pos="-0.2 0 0"><joint type="slide" axis="1 0 0"/>
      <geom type="box" size="0.1 0.1 0.1" mass="1"/></body>
  </worldbody>
  <actuator><motor joint="push"/></actuator>
</mujoco>
""".replace('<joint type="slide" axis="1 0 0"/>', '<joint name="push" type="slide" axis="1 0 0"/>')


@pytest.mark.parametrize("scene", [CHAIN, TENDON])
def test_compliant_limits_move_as_in_mujoco(scene: str) -> None:
    model = mujoco.MjModel.from_xml_string(scene)
    ours, theirs = mujoco.MjData(model), mujoco.MjData(model)
    stepper = hf.Stepper(model, limits="compliant")
    loaded = 0
    for _ in range(500):
        theirs.qpos[:], theirs.qvel[:] = ours.qpos, ours.qvel
        mujoco.mj_step(model, theirs)
        stepper.step(ours)
        speed = 1.0 + np.abs(ours.qvel).max()
        assert np.abs(ours.qvel - theirs.qvel).max() <= 1e-9 * speed
        assert np.allclose(ours.efc_force, theirs.efc_force, rtol=1e-6, atol=1e-6)
        loaded += int(np.count_nonzero(ours.efc_force))
        assert (ours.efc_force >= 0.0).all()
    assert loaded > 100


def test_many_compliant_limits_at_once_press_and_never_pull() -> None:
    model = mujoco.MjModel.from_xml_string(CHAIN)
    data, theirs = mujoco.MjData(model), mujoco.MjData(model)
    stepper, rng = hf.Stepper(model, limits="compliant"), np.random.default_rng(3)
    several = 0
    for _ in range(200):
        stepper.reset()
        data.qpos[:4] = rng.uniform(-0.6, 0.6, 4)
        data.qvel[:] = rng.normal(size=model.nv) * 5.0
        theirs.qpos[:], theirs.qvel[:] = data.qpos, data.qvel
        stepper.step(data)
        mujoco.mj_step(model, theirs)
        solution = stepper.solution
        assert solution is not None and solution.is_exact()
        assert (data.efc_force >= 0.0).all()
        assert np.abs(data.qvel - theirs.qvel).max() <= 1e-8 * (1.0 + np.abs(data.qvel).max())
        several += np.count_nonzero(data.efc_force) >= 2
    assert several > 20


def test_contact_pushes_into_a_compliant_limit_and_does_not_sink_in() -> None:
    model = mujoco.MjModel.from_xml_string(SLIDER)
    for limits, beyond in (("rigid", 0.0), ("compliant", None)):
        data, stepper = mujoco.MjData(model), hf.Stepper(model, limits=limits)  # type: ignore[arg-type]
        data.ctrl[:] = 50.0
        stepper.step(data, nstep=2000)
        apart = data.qpos[0] - data.qpos[1]
        assert abs(apart) <= 1e-9  # the boxes touch: no penetration
        if beyond is None:  # MuJoCo's static answer for 50 N on a limit
            theirs = mujoco.MjData(model)
            theirs.qpos[:], theirs.ctrl[:] = data.qpos, 50.0
            mujoco.mj_forward(model, theirs)
            row = np.flatnonzero(theirs.efc_type == mujoco.mjtConstraint.mjCNSTR_LIMIT_JOINT)
            assert data.qpos[0] > 0.1 + 1e-5
            held = theirs.efc_aref[row] / theirs.efc_R[row]  # at rest: R f = a_ref
            assert held == pytest.approx(50.0, rel=1e-6)
        else:
            assert data.qpos[0] == pytest.approx(0.1 + beyond, abs=1e-12)


def test_rollouts_and_copies_keep_the_choice() -> None:
    model = mujoco.MjModel.from_xml_string(CHAIN)
    data = mujoco.MjData(model)
    stepper = hf.Stepper(model, limits="compliant")
    start = np.zeros(mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS))
    mujoco.mj_getState(model, data, start, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    state, _ = hf.rollout(model, None, start, nstep=100, limits="compliant")
    stepper.step(data, nstep=100)
    assert np.array_equal(state[0, -1, 1 : 1 + model.nq], data.qpos)
    rigid, _ = hf.rollout(model, None, start, nstep=100)
    assert np.abs(rigid[0, -1] - state[0, -1]).max() > 1e-3


def test_unknown_choice_is_refused_by_name() -> None:
    model = mujoco.MjModel.from_xml_string(CHAIN)
    with pytest.raises(hf.InputError, match="limits: is 'soft'; expected 'compliant' or 'rigid'"):
        hf.Stepper(model, limits="soft")  # type: ignore[arg-type]
