"""Drift is taken out where MuJoCo lists one point of a face at a time."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import holdfast as hf
from event_scenes import load
from holdfast.events import projection

FACE = '<body pos=".3 -.4 .1"><freejoint/><geom type="mesh" mesh="pyramid"/></body>'
GROUND = '<geom type="hfield" hfield="flat"/>'
ASSETS = """<asset>
<hfield name="flat" nrow="2" ncol="2" size="1 1 .1 .1"/>
<mesh name="pyramid" vertex="-.1 -.1 -.1 .1 -.1 -.1 -.1 .1 -.1 .1 .1 -.1 0 0 .1"/>
</asset>"""
DEPTH = 1e-5  # [m]


@pytest.mark.parametrize("tilt", [1e-5, 1e-4])
def test_a_face_comes_to_lie_on_a_height_field(tilt: float) -> None:
    """Of the face that is a little inside, MuJoCo shows the corner that is the deepest.

    With one corner at a time the body rocks, and half of the depth is left after each round.
    """
    model, data = load(FACE, floor=GROUND, extra=ASSETS)
    simulation = hf.EventDriven(model)
    probe, touch = simulation._probe, simulation._touch
    for seed in range(20):
        mujoco.mj_resetData(model, data)
        turn = tilt * np.random.default_rng(seed).normal(size=3)
        mujoco.mj_integratePos(model, data.qpos, np.append(np.zeros(3), turn), 1.0)
        probe.follow(data)
        state = probe.state()
        probe.widen(state)
        sunk = state.qpos.copy()
        sunk[2] -= probe.list(state).gap.min() + DEPTH
        state = state._replace(qpos=sunk)
        listed = probe.list(state)
        assert len(listed) == 1 and -2.0 * DEPTH < listed.gap[0] < -0.5 * DEPTH
        after, there, *_ = projection.position(
            probe, state, listed, np.array([True]), np.array([False]), touch
        )
        assert np.abs(there.gap).max() <= touch, seed
        assert np.abs(after.qpos[:3] - state.qpos[:3]).max() <= 2.0 * DEPTH
