"""Audits of saved runs: ours, MuJoCo's, and forged ones."""

from __future__ import annotations

import json
from pathlib import Path

import mujoco
import numpy as np
import pytest

import holdfast as hf
from event_scenes import BALL, box, load
from holdfast.cli.simulate import Simulate
from holdfast.cli.verify import Verify
from holdfast.tools.scenes import row_of_boxes
from holdfast.tools.verify import Tolerances, verify

pytestmark = pytest.mark.jit
SCENE = """<mujoco><option timestep="0.002"/><worldbody><geom type="plane" size="5 5 1"/>
<body name="box" pos="0 0 .3" euler="20 30 0"><freejoint/>
<geom type="box" size=".1 .1 .1" mass="1"/></body></worldbody></mujoco>"""


def fall(steps: int = 300) -> tuple[mujoco.MjModel, np.ndarray, np.ndarray, np.ndarray]:
    model, data = load(BALL)
    simulation = hf.EventDriven(model)
    states = [(data.time, data.qpos.copy(), data.qvel.copy())]
    for _ in range(steps):
        simulation.step(data)
        states.append((data.time, data.qpos.copy(), data.qvel.copy()))
    time, qpos, qvel = (np.array(column) for column in zip(*states, strict=True))
    return model, time, qpos, qvel


def test_honest_run_passes() -> None:
    model, time, qpos, qvel = fall()
    verdict = verify(model, time, qpos, qvel, no_slip=True)
    assert verdict.passed and verdict.samples == 301
    assert verdict["momentum"].worst < 1e-9
    assert verdict["energy"].worst < 1e-9
    assert verdict["slip"].judged


def failed(verdict: object) -> set[str]:
    return {check.name for check in verdict.checks if not check.passed}  # pyright: ignore


def test_rounding_of_what_rests_is_no_gain_of_energy() -> None:
    """Kinetic energies of 1e-30 J are no scale for gains of 1e-15 J."""
    model = mujoco.MjModel.from_xml_string(row_of_boxes(2))
    data, stepper = mujoco.MjData(model), hf.Stepper(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    states = []
    for _ in range(50):
        stepper.step(data)
        states.append((data.time, data.qpos.copy(), data.qvel.copy(), data.ctrl.copy()))
    verdict = verify(model, *map(np.array, zip(*states, strict=True)))
    assert verdict.passed and verdict["energy"].judged


def test_forged_runs_are_found_out_and_timed() -> None:
    model, time, qpos, qvel = fall()
    sunk = qpos.copy()
    sunk[250:, 2] -= 1e-6
    verdict = verify(model, time, sunk, qvel)
    assert failed(verdict) == {"distance", "motion"}  # and it got there without velocity
    assert verdict["distance"].worst == pytest.approx(1e-6, rel=1e-6)
    assert verdict["distance"].time >= time[250]

    pushed = qvel.copy()
    pushed[100:200, 0] += 0.01  # a push in the air, from nobody
    verdict = verify(model, time, qpos, pushed)
    assert {"fall"} <= failed(verdict)
    assert verdict["fall"].time in (time[100], time[200])

    bounced = qvel.copy()
    bounced[260:, 2] = 0.5  # up, without leaving the floor
    verdict = verify(model, time, qpos, bounced)
    assert {"complementarity", "energy"} <= failed(verdict)

    slid = qvel.copy()
    slid[260:, 1] = 0.01
    verdict = verify(model, time, qpos, slid, no_slip=True)
    assert "slip" in failed(verdict)
    assert verdict["slip"].worst == pytest.approx(0.01, rel=1e-6)


def test_positions_that_velocities_do_not_explain_are_found_out() -> None:
    model, time, qpos, qvel = fall()
    moved = qpos.copy()
    moved[100:, 0] += 1e-3  # sideways, in the air
    verdict = verify(model, time, moved, qvel)
    assert failed(verdict) == {"motion", "drift"} and verdict["motion"].time == time[100]
    crept = qpos.copy()
    crept[260:, 1] += 1e-5 * np.arange(len(qpos) - 260)  # at rest by its velocities
    assert failed(verify(model, time, crept, qvel, no_slip=True)) == {"motion", "drift"}
    with pytest.raises(hf.InputError, match="must increase"):
        verify(model, np.zeros_like(time), qpos, qvel)  # all at one time


def test_a_contact_that_opens_slowly_does_not_slip() -> None:
    """Within reach of the floor, but in flight: rounding errors are no push."""
    model, data = load(box('pos="0 0 .10000001"'))
    data.qvel[:] = 0.3, 0.0, 1e-5, 0.0, 0.0, 0.0
    model.opt.gravity[:] = 0.0
    states = []
    for k in range(10):
        states.append((k * 1e-3, data.qpos.copy(), data.qvel.copy()))
        mujoco.mj_integratePos(model, data.qpos, data.qvel, 1e-3)
        data.qvel[1] += 1e-17
    time, qpos, qvel = (np.array(column) for column in zip(*states, strict=True))
    assert verify(model, time, qpos, qvel, no_slip=True).passed


def test_mujocos_own_run_is_audited() -> None:
    model, data = load(box('pos="0 0 .1"'))
    states = []
    for _ in range(200):
        states.append((data.time, data.qpos.copy(), data.qvel.copy()))
        mujoco.mj_step(model, data)
    time, qpos, qvel = (np.array(column) for column in zip(*states, strict=True))
    verdict = verify(model, time, qpos, qvel)
    assert "distance" in failed(verdict)  # soft contact sinks in
    assert 1e-6 < verdict["distance"].worst < 1e-2
    assert verdict["momentum"].passed
    assert verify(model, time, qpos, qvel, tolerances=Tolerances(distance=1e-2))["distance"].passed


def test_bad_arrays_are_refused() -> None:
    model, time, qpos, qvel = fall(5)
    with pytest.raises(hf.InputError, match="qpos"):
        verify(model, time, qpos[:, :6], qvel)
    with pytest.raises(hf.InputError, match="time"):
        verify(model, time[::-1], qpos, qvel)
    with pytest.raises(hf.InputError, match="time"):
        verify(model, time[:, None], qpos, qvel)
    with pytest.raises(hf.InputError, match="qpos: holds"):
        verify(model, time, qpos.astype(str), qvel)
    qvel[3, 0] = np.nan
    with pytest.raises(hf.InputError, match="qvel"):
        verify(model, time, qpos, qvel)


# --- the commands --------------------------------------------------------------------------------


@pytest.fixture
def scene(tmp_path: Path) -> Path:
    path = tmp_path / "scene.xml"
    path.write_text(SCENE)
    return path


def test_simulate_events_and_verify(
    scene: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run.npz"
    run = Simulate(scene=scene, duration=0.5, mode="events", events=True, out=out)
    assert run.run() == 0
    printed = capsys.readouterr().out
    assert "impact" in printed and "world / box" in printed and "J lost" in printed
    with np.load(out) as arrays:
        assert json.loads(str(arrays["metadata"]))["mode"] == "events"
        count = len(arrays["event_time"])
        assert count >= 3 and (np.diff(arrays["event_time"]) >= 0).all()
        for name in ("kind", "bodies", "impulse", "speed", "energy_before", "energy_after"):
            assert len(arrays[f"event_{name}"]) == count
        assert (arrays["event_impulse"][arrays["event_kind"] == "impact"] > 0).all()
    assert Verify(trajectory=out).run() == 0
    assert "verdict: pass" in capsys.readouterr().out
    assert Verify(trajectory=out, format="json").run() == 0
    result = json.loads(capsys.readouterr().out)
    assert result["passed"] and {c["name"] for c in result["checks"]} >= {"distance", "slip"}


def test_events_in_json(scene: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = Simulate(scene=scene, duration=0.3, mode="events", events=True, format="json")
    assert run.run() == 0
    result = json.loads(capsys.readouterr().out)
    assert result["log"][0]["kind"] == "impact" and result["complete"]
    assert result["events"] == len(result["log"]) > result["impacts"] > 0
    assert result["largest_penetration"] < 1e-8


def test_events_need_their_mode(scene: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert Simulate(scene=scene, events=True).run() == 2
    assert "--mode events" in capsys.readouterr().err


def test_plain_trajectory(scene: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = mujoco.MjModel.from_xml_path(str(scene))
    data, states = mujoco.MjData(model), []
    for _ in range(200):
        states.append((data.time, data.qpos.copy(), data.qvel.copy()))
        mujoco.mj_step(model, data)
    time, qpos, qvel = zip(*states, strict=True)
    plain = tmp_path / "plain.npz"
    np.savez(plain, time=time, qpos=qpos, qvel=qvel)
    assert Verify(trajectory=plain).run() == 2
    assert "--scene" in capsys.readouterr().err
    assert Verify(trajectory=plain, scene=scene).run() == 1
    assert "verdict: FAIL" in capsys.readouterr().out
    np.savez(plain, time=time, qpos=qpos, qvel=qvel, model="scene.xml")  # beside the file
    assert Verify(trajectory=plain).run() == 1


@pytest.mark.parametrize("arrays", [{}, {"time": [0.0]}])
def test_what_is_no_trajectory(
    tmp_path: Path, arrays: dict[str, list[float]], capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "no.npz"
    if arrays:
        np.savez(path, **arrays)  # pyright: ignore[reportArgumentType]
    assert Verify(trajectory=path).run() == 2
    said = capsys.readouterr().err
    assert ("lacks" if arrays else "does not exist") in said


@pytest.mark.parametrize("metadata", ["{no", "[1]"])
def test_metadata_that_is_none(
    tmp_path: Path, metadata: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.npz"
    np.savez(path, time=[0.0], qpos=[[0.0]], qvel=[[0.0]], metadata=metadata)
    assert Verify(trajectory=path).run() == 2
    assert "metadata" in capsys.readouterr().err


def test_round_bodies_that_meet_between_two_samples() -> None:
    """They touched in between, and are apart by what they curve away from each other since.

    That was called a push by something that does not touch.
    """
    model = mujoco.MjModel.from_xml_string("""<mujoco><option timestep=".001"/><worldbody>
      <body pos="0 0 1"><freejoint/><geom size=".03" mass="1"/></body>
      <body pos=".1 .04 1"><freejoint/><geom size=".03" mass="1"/></body></worldbody></mujoco>""")
    data, stepper, states = mujoco.MjData(model), hf.Stepper(model), []
    data.qvel[0], data.qvel[6] = 2.0, -1.0
    for _ in range(60):
        states.append((data.time, data.qpos.copy(), data.qvel.copy()))
        stepper.step(data)
    time, qpos, qvel = (np.array(column) for column in zip(*states, strict=True))
    assert qvel[-1, 1] < -0.1  # they have met
    verdict = verify(model, time, qpos, qvel, law=hf.coulomb())
    assert failed(verdict) <= {"energy"}, verdict.checks
