"""Drift is taken out where MuJoCo lists one point of a face at a time."""

from __future__ import annotations

from types import SimpleNamespace

import mujoco
import numpy as np
import pytest

import holdfast as hf
from event_scenes import load
from holdfast.events import projection
from holdfast.events.simulation import TooDeep

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


def test_points_that_are_listed_no_more_stay_known_where_they_were_near() -> None:
    """Those whose gap is not what their row has predicted are others, of the same bodies."""
    rng, worst, dq = np.random.default_rng(2), 1e-5, np.array([1e-5, 0.0])
    gap = np.concatenate([worst * rng.uniform(-1.0, 9.0, 20), worst * rng.uniform(11.0, 99.0, 20)])
    rows = rng.normal(size=(40, 2))
    predicted = gap + rows @ dq
    where = np.arange(40)
    where[::4] = -1  # gone from the list
    after = predicted.copy()
    after[1::4] += 3.0 * projection.OTHER * worst  # another point of the same bodies
    after[2::4] += 0.3 * projection.OTHER * worst
    known = projection.Points(np.array([[0.0, 2.0]]), np.array([1e-6])).moved(
        dq, SimpleNamespace(gap=gap, N=rows), SimpleNamespace(gap=after), where, worst
    )  # fmt: skip
    kept = [k for k in range(20) if k % 4 in (0, 1)]  # near, and gone or another one
    assert np.array_equal(known.rows, np.vstack([[[0.0, 2.0]], rows[kept]]))
    assert np.allclose(known.gap, np.concatenate([[1e-6], predicted[kept]]), atol=1e-18)


@pytest.mark.parametrize("longest", [1.0, 0.3, 0.011])
def test_the_rest_of_a_step_is_taken_in_pieces_that_end_with_it(
    longest: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each as long as can be: half of one that failed, twice that of one that did not."""
    model, _ = load('<body pos="0 0 1"><freejoint/><geom size=".1"/></body>')
    simulation, end = hf.EventDriven(model), 0.7
    pieces = []

    def settle(state: SimpleNamespace, h: float) -> tuple[SimpleNamespace, None]:
        if h > longest:
            raise TooDeep("too long")
        pieces.append(h)
        return SimpleNamespace(time=state.time + h), None

    monkeypatch.setattr(simulation, "_settle_for", settle)
    state, _ = simulation._settle(SimpleNamespace(time=0.1), end, end - 1e-12)
    assert state.time == pytest.approx(end, abs=1e-12)
    assert sum(pieces) == pytest.approx(0.6, abs=1e-12) and max(pieces) <= longest
    assert all(0.5 * longest < h for h in pieces[:-1])
