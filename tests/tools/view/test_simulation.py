"""What the viewer simulates, without a browser."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import pytest

import holdfast as hf
from holdfast.tools import scenes
from holdfast.tools.view.laws import LAWS, LawStepper
from holdfast.tools.view.live import LiveViewer
from holdfast.tools.view.loop import Loop
from holdfast.tools.view.server import open_server
from holdfast.tools.view.simulation import Simulation, drift


def grasp() -> Any:
    return mujoco.MjModel.from_xml_string(scenes.row_of_boxes(1))


def test_each_law_goes_on_from_the_state_of_the_last_one() -> None:
    run = Simulation(grasp(), LAWS[0], 1.0, keyframe=0)
    for law in (*LAWS, *reversed(LAWS)):
        run.set_law(law, 1.0)
        before = run.data.time
        assert all(run.step() for _ in range(5))
        assert run.law == law and run.data.time == pytest.approx(before + 0.05)
    assert run.sample(0.0).step > 0.0


def test_coulomb_is_what_hf_step_does_and_mujoco_is_mj_step() -> None:
    model = grasp()
    for law, step in (("Coulomb", hf.step), ("MuJoCo", mujoco.mj_step)):
        run, data = Simulation(model, law, 1.0, keyframe=0), mujoco.MjData(model)
        mujoco.mj_resetDataKeyframe(model, data, 0)
        for _ in range(20):
            run.step()
            step(model, data)
        assert run.data.qpos == pytest.approx(data.qpos, abs=1e-12)


def test_unknown_laws_are_refused() -> None:
    with pytest.raises(hf.InputError, match="expected one of MuJoCo"):
        LawStepper(grasp(), "glue", 1.0)


def test_a_push_lasts_as_long_as_it_should() -> None:
    model = mujoco.MjModel.from_xml_string(
        "<mujoco><option gravity='0 0 0' timestep='0.01'/><worldbody><body><freejoint/>"
        "<geom size='.1' mass='2'/></body></worldbody></mujoco>"
    )
    run = Simulation(model, "Coulomb", 1.0)
    run.start_push(1, np.array([4.0, 0.0, 0.0]), 0.1)
    for _ in range(30):
        run.step()
    assert run.push is None and run.data.qvel[0] == pytest.approx(4.0 * 0.1 / 2.0)


def test_a_failure_stops_the_run_until_it_is_reset() -> None:
    run = Simulation(grasp(), "Coulomb", 1.0, keyframe=0)
    run.data.qpos[0] = np.nan
    assert not run.step() and "qpos" in run.problem
    assert not run.step()
    run.reset(0)
    assert run.problem == "" and run.step()


def test_drift_between_two_laws() -> None:
    model = grasp()
    left, right = (Simulation(model, law, 1.0, keyframe=0) for law in ("Coulomb", "MuJoCo"))
    assert drift(left, right) == 0.0
    for _ in range(100):
        left.step()
        right.step()
    assert drift(left, right) > 1e-3
    right.copy_state(left)
    assert drift(left, right) < 1e-12


@pytest.fixture
def server() -> Any:
    opened = open_server(port=8300)
    yield opened
    opened.stop()


def test_problems_pause_the_viewer_and_stand_on_the_page(server: Any) -> None:
    viewer = LiveViewer(server, grasp(), keyframe=0, beside="MuJoCo")
    assert viewer.advance(0.05) == pytest.approx(0.05)
    viewer.left.data.qpos[0] = np.nan
    assert viewer.advance(0.05) == 0.0 and viewer.paused
    viewer.refresh()
    assert "qpos" in viewer._status.content
    viewer.reset()
    viewer.set_paused(False)
    viewer.draw()
    assert viewer.advance(0.05) == pytest.approx(0.05)


def test_lost_time_is_dropped_not_made_up_for(server: Any) -> None:
    class Slow(Loop):
        asked: list[float] = []  # noqa: RUF012

        def advance(self, seconds: float) -> float:
            self.asked.append(seconds)
            return 0.0

    loop = Slow(server)
    loop._spend(60.0)
    loop._spend(60.0)
    assert loop.asked == [0.1, 0.1]


def test_commands_that_fail_are_reported_and_the_loop_goes_on(server: Any) -> None:
    def bad() -> None:
        raise hf.InputError("file", "is no file")

    loop, done = Loop(server), []
    loop.post(bad)
    loop.post(lambda: done.append(1))
    loop._obey()
    assert done == [1]
