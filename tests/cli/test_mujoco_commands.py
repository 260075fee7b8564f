"""simulate, compare and demo, called as a user calls them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from command import holdfast
from holdfast.cli.compare import print_rows
from holdfast.cli.simulate import Simulate
from holdfast.mujoco.stepper import Stepper
from holdfast.tools import scenes
from holdfast.tools.compare import Row

pytestmark = pytest.mark.jit  # thousands of steps: without compilation they take too long

BOX = """<mujoco><worldbody><geom type="plane" size="5 5 1"/>
  <body name="box" pos="0 0 .1"><joint name="x" type="slide" axis="1 0 0"/>
    <joint name="z" type="slide" axis="0 0 1"/><geom type="box" size=".1 .1 .1" mass="1"/></body>
  </worldbody><actuator><motor joint="x"/><motor joint="z"/></actuator>
  <keyframe><key name="moving" qvel="0 0"/><key name="up" qpos="0 .5"/></keyframe></mujoco>"""


@pytest.fixture
def box(tmp_path: Path) -> Path:
    scene = tmp_path / "box.xml"
    scene.write_text(BOX)
    return scene


@pytest.fixture
def capsule(tmp_path: Path) -> Path:
    scene = tmp_path / "capsule.xml"
    scene.write_text(scenes.pinched_capsule())
    return scene


def test_simulate_writes_a_trajectory(box: Path, tmp_path: Path) -> None:
    out = tmp_path / "run.npz"
    done = holdfast("simulate", str(box), "--duration", "0.1", "--out", str(out), "--format",
                    "json", "--every", "5", "--keyframe", "up")  # fmt: skip
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["steps"] == 50 and summary["complete"]
    with np.load(out) as run:
        metadata = json.loads(str(run["metadata"]))
        assert metadata["complete"] and metadata["timestep"] == 0.002
        assert run["qpos"].shape == (11, 2) and run["time"][-1] == pytest.approx(0.1)
        assert run["qpos"][0, 1] == 0.5 and run["qpos"][-1, 1] < 0.5


@pytest.mark.parametrize("ending", ["npz", "csv"])
def test_simulate_with_controls(box: Path, tmp_path: Path, ending: str) -> None:
    """3 N upwards of 9.81: stays; from 0.05 s on 12 N: rises with 12 - 9.81."""
    control = tmp_path / f"control.{ending}"
    if ending == "npz":
        np.savez(control, ctrl=[[0, 3], [0, 12]], time=[0.0, 0.05])
    else:
        control.write_text("time,x,z\n0,0,3\n0.05,0,12\n")
    out = tmp_path / "run.npz"
    done = holdfast("simulate", str(box), "--duration", "0.1", "--out", str(out), "--control",
                    str(control))  # fmt: skip
    assert done.returncode == 0, done.stderr
    with np.load(out) as run:
        assert run["qvel"][25] == pytest.approx([0, 0], abs=1e-12)
        assert run["qvel"][-1, 1] == pytest.approx((12 - 9.81) * 0.05, rel=1e-9)


def test_simulate_reads_urdf(tmp_path: Path) -> None:
    scene = tmp_path / "arm.urdf"
    scene.write_text("""<robot name="arm"><link name="base"/><link name="rod"><inertial>
      <origin xyz="0.5 0 0"/><mass value="1"/><inertia ixx="0.01" iyy="0.1" izz="0.1" ixy="0"
      ixz="0" iyz="0"/></inertial></link><joint name="j" type="revolute"><parent link="base"/>
      <child link="rod"/><axis xyz="0 1 0"/><limit lower="-0.5" upper="0.5" effort="1"
      velocity="1"/></joint></robot>""")
    done = holdfast("simulate", str(scene), "--duration", "1", "--format", "json")
    assert done.returncode == 0, done.stderr


def test_interrupted_run_leaves_a_valid_file(
    box: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, count = tmp_path / "run.npz", 0
    step = Stepper.step

    def interrupted(self: Stepper, data: object, nstep: int = 1) -> None:
        nonlocal count
        count += 1
        if count == 20:  # in the middle of the 20th step
            raise KeyboardInterrupt
        step(self, data, nstep)

    monkeypatch.setattr(Stepper, "step", interrupted)
    assert Simulate(scene=box, duration=10.0, out=out, format="json").run() == 130
    check_partial(out, steps=19)


@pytest.mark.slow
def test_interrupted_process_leaves_a_valid_file(box: Path, tmp_path: Path) -> None:
    out = tmp_path / "run.npz"
    command = [sys.executable, "-m", "holdfast", "simulate", str(box), "--duration", "1000",
               "--out", str(out)]  # fmt: skip
    listen = partial(signal.signal, signal.SIGINT, signal.default_int_handler)
    # a job in the background of a shell starts deaf to Ctrl-C
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=listen
    ) as run:
        time.sleep(30)  # until it is under way, also where kernels are compiled first
        run.send_signal(signal.SIGINT)
        try:
            _, errors = run.communicate(timeout=60)
        finally:
            run.kill()
    assert run.returncode == 130, errors
    check_partial(out)


def check_partial(out: Path, steps: int | None = None) -> None:
    with np.load(out) as arrays:
        metadata = json.loads(str(arrays["metadata"]))
        assert not metadata["complete"]
        assert len(arrays["time"]) == metadata["summary"]["steps"] + 1 > 1
        assert steps is None or metadata["summary"]["steps"] == steps
        assert all(np.isfinite(arrays[name]).all() for name in ("qpos", "qvel"))
    assert not out.with_name(out.name + ".part").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("simulate", "nowhere.xml"), "does not exist"),
        (("compare", "nowhere.xml"), "does not exist"),
        (("simulate", "SCENE", "--keyframe", "sitting"), "moving"),
        (("simulate", "SCENE", "--control", "SCENE"), ".csv"),
        (("simulate", "BROKEN"), "cannot be read"),
    ],
)
def test_errors_are_one_line(box: Path, arguments: tuple[str, ...], says: str) -> None:
    broken = box.with_name("broken.xml")
    broken.write_text("<mujoco><worldbody>")
    names = {"SCENE": str(box), "BROKEN": str(broken)}
    done = holdfast(*(names.get(argument, argument) for argument in arguments))
    assert done.returncode == 2
    assert says in done.stderr and "Traceback" not in done.stderr


def test_compare_settles_the_pinched_capsule(capsule: Path) -> None:
    done = holdfast("compare", str(capsule), "--duration", "0.5", "--format", "json")
    assert done.returncode == 0, done.stderr
    rows = {row["name"]: row for row in json.loads(done.stdout)}
    assert len(rows) == 6
    assert rows["MuJoCo"]["creep"] > 1e-3 and rows["MuJoCo"]["penetration"] > 5e-4
    assert 1e-5 < rows["elliptic"]["creep"] < rows["MuJoCo"]["creep"]
    for law in ("holdfast", "holdfast, no slip"):
        assert rows[law]["creep"] < 1e-12 and rows[law]["penetration"] < 1e-9
        assert rows[law]["friction"] == pytest.approx(0.045 * 9.81 / 16, rel=1e-4)
        assert not rows[law]["exceeded"] and rows[law]["friction"] < rows[law]["declared"]


def test_compare_tells_what_the_declared_friction_would_not_hold(tmp_path: Path) -> None:
    """A box on 30 degrees with mu 0.3 slides; without slip it stays, and a warning says so."""
    path = tmp_path / "incline.xml"
    path.write_text("""<mujoco><worldbody><geom type="plane" size="9 9 1" euler="0 30 0"/>
      <body name="box" euler="0 30 0"><freejoint/><geom type="box" pos="0 0 .1" mass="1"
        size=".1 .1 .1" friction=".3"/></body></worldbody></mujoco>""".replace(
        'euler="0 30 0"/>', 'euler="0 30 0" friction=".3"/>'))  # fmt: skip
    done = holdfast("compare", str(path), "--duration", "0.2", "--format", "json")
    rows = {row["name"]: row for row in json.loads(done.stdout)}
    assert rows["holdfast, no slip"]["exceeded"] and rows["holdfast, no slip"]["creep"] < 1e-9
    assert rows["holdfast, no slip"]["friction"] == pytest.approx(np.tan(np.pi / 6), rel=1e-6)
    assert rows["holdfast, no slip"]["declared"] == pytest.approx(0.3)
    assert not rows["holdfast"]["exceeded"] and rows["holdfast"]["creep"] > 0.1
    assert rows["holdfast"]["friction"] == pytest.approx(0.3, rel=1e-6)
    told = holdfast("compare", str(path), "--duration", "0.1").stdout
    assert "no slip holds what the model's" in " ".join(told.split()) and "world and box" in told


def test_compare_for_people(box: Path) -> None:
    done = holdfast("compare", str(box), "--duration", "0.1")
    assert done.returncode == 0, done.stderr
    assert "holdfast, no slip" in done.stdout and "noslip 100" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80 and "…" not in done.stdout


@pytest.mark.parametrize("law", ["no slip", "Frictionless"])
def test_rows_of_a_comparison_fit_into_80_columns(
    law: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    widest = dict.fromkeys(("creep", "drift", "penetration"), 1.234e-17)
    print_rows("a scene", [Row(f"holdfast, {law}", **widest, ratio=9.9, contacts=123.4,
                               friction=0.58, declared=0.3)])  # fmt: skip
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80 and "…" not in shown
    assert "1.23e-11" in shown and "123.4" in shown and "0.58 / 0.30!" in shown


@pytest.mark.jit
def test_demo_shows_what_one_can_see(tmp_path: Path) -> None:
    picture = tmp_path / "demo.png"
    done = holdfast("demo", "--duration", "1", "--width", "80", "--picture", str(picture),
                    "--format", "json")  # fmt: skip
    assert done.returncode == 0, done.stderr
    cube, gripper, robot = json.loads(done.stdout)["scenes"]
    assert cube["values"]["holdfast"] == pytest.approx(
        {"slid, m": 3.535238, "lifted, mm": 0.0, "tilted, deg": 0.0}, abs=1e-5
    )
    assert cube["values"]["MuJoCo"]["lifted, mm"] > 50
    assert cube["values"]["MuJoCo + noslip"]["tilted, deg"] > 90  # it flips
    for scene in (gripper, robot):
        assert scene["values"]["holdfast"]["moved, mm"] < 1e-6
        assert scene["values"]["MuJoCo"]["moved, mm"] > 1
    assert picture.stat().st_size > 5_000 or "no OpenGL" in done.stderr
