"""The solve with what is near finds what the solve with all that is listed finds."""

from __future__ import annotations

import mujoco
import numpy as np

import holdfast as hf
from holdfast.mujoco import StepOptions

LINK = ('<body pos="0.15 0 0"><joint axis="0 1 0" limited="true" range="-70 70" damping="0.01"/>'
        '<joint axis="0 0 1" limited="true" range="-50 50" damping="0.01"/>'
        '<geom type="capsule" size="0.04" fromto="0.03 0 0 0.12 0 0"/>')  # fmt: skip


def chains(count: int, links: int) -> mujoco.MjModel:
    bodies = "".join(
        f'<body pos="0 {0.1 * k} 0.5"><freejoint/><geom type="sphere" size="0.06"/>'
        + LINK * links + "</body>" * links + "</body>"
        for k in range(count)
    )  # fmt: skip
    return mujoco.MjModel.from_xml_string(
        '<mujoco><option timestep="0.005"/><worldbody><geom type="plane" size="9 9 1"/>'
        f"{bodies}</worldbody></mujoco>"
    )


def test_what_is_left_out_of_a_solve_is_not_exceeded_and_changes_nothing() -> None:
    model = chains(3, 6)
    near = hf.Stepper(model, warn=False)
    whole = hf.Stepper(model, warn=False, options=StepOptions(near=1e6))
    data, rng, listed, loaded = mujoco.MjData(model), np.random.default_rng(0), 0, 0
    data.qvel[:] = 3.0 * rng.normal(size=model.nv)
    for _ in range(90):
        other = mujoco.MjData(model)
        other.qpos[:], other.qvel[:] = data.qpos, data.qvel
        near.reset()
        whole.reset()
        near.step(data)
        whole.step(other)
        one, two = near.solution, whole.solution
        assert one is not None and two is not None
        assert one.is_exact() and two.is_exact()
        speed = 1.0 + np.abs(one.motion).max()
        assert np.abs(one.motion - two.motion).max() <= 1e-7 * speed
        outcome = near.constraints(other)
        listed += len(outcome.law)
        loaded += np.count_nonzero(one.normal) + np.count_nonzero(one.unilateral)
    assert 0 < loaded < 0.7 * listed


def test_a_chain_of_impacts_within_one_step() -> None:
    """Only the first ball moves: the others are reached by what it hits, one after the other."""
    balls = "".join(
        f'<body pos="{0.2 * k + 0.001 * k} 0 0"><joint type="slide" axis="1 0 0"/>'
        '<geom size="0.1" mass="1" margin="0.05"/></body>' for k in range(24)
    )  # fmt: skip
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><option timestep="0.1" gravity="0 0 0"/><worldbody>{balls}</worldbody></mujoco>'
    )
    data = mujoco.MjData(model)
    data.qvel[0] = 10.0
    hf.Stepper(model).step(data)
    gaps = np.diff(data.qpos) + 0.001
    assert gaps.min() >= -1e-9  # nobody has passed the next one
    assert abs(data.qvel.sum() - 10.0) < 1e-9
