"""``holdfast sweep``, called as a user calls it, and the plans that it reads."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import mujoco
import pytest

import holdfast as hf
from command import holdfast
from holdfast.tools.sweep.plan import load_plan
from holdfast.tools.sweep.run import journal_of
from holdfast.tools.sweep.targets import Target

SLIDER = """<mujoco><option timestep="0.01"/><worldbody>
  <geom name="floor" type="plane" size="5 5 1" friction="0.1"/>
  <body name="box" pos="0 0 0.1"><freejoint name="box"/>
    <geom name="box" type="box" size=".1 .1 .1" mass="1" friction=".5"/></body>
  <body name="cart" pos="0 3 0.5"><joint name="cart" type="slide" axis="1 0 0"/>
    <geom type="sphere" size=".1" mass="2"/></body>
</worldbody>
<actuator><motor name="push" joint="cart"/></actuator>
<sensor><jointpos name="travel" joint="cart"/><framepos name="place" objtype="body" objname="box"/>
</sensor></mujoco>"""

PLAN = """
scene = "slider.xml"
duration = 0.5

[targets]
push = "ctrl.push"
speed = ["qvel.box[0]"]

[grid]
speed = [0.0, 1.0]
push = [0.0, 4.0]
"geom.box.friction[0]" = [0.2, 0.4]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "slider.xml").write_text(SLIDER)
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path


def table(path: Path) -> list[dict[str, str]]:
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_a_plan_of_a_scene(folder: Path) -> None:
    """Sliding distance is v t - mu g t^2 / 2, travel of the cart F t^2 / (2 m)."""
    done = holdfast("sweep", str(folder / "plan.toml"), "--workers", "1", "--format", "json")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert (summary["cases"], summary["failed"]) == (8, 0)
    for row in table(folder / "plan.csv"):
        speed, push, mu = (float(row[key]) for key in ("speed", "push", "geom.box.friction[0]"))
        assert float(row["time"]) == pytest.approx(0.5) and row["ended"] == "false"
        assert float(row["sensor.travel"]) == pytest.approx(push * 0.5**2 / 4, rel=0.05)
        moves = min(0.5, speed / (mu * 9.81))  # [s]
        slid = speed * moves - mu * 9.81 * moves**2 / 2
        assert float(row["sensor.place[0]"]) == pytest.approx(slid, abs=0.01)
        assert row["error"] == ""
        if speed:
            assert float(row["required_friction"]) == pytest.approx(mu, rel=1e-6)


def test_plans_give_the_same_table_again_and_more_of_it(folder: Path) -> None:
    plan, out = folder / "plan.toml", folder / "plan.csv"
    assert holdfast("sweep", str(plan), "--workers", "1").returncode == 0
    first, before = out.read_bytes(), journal_of(out).read_bytes()
    plan.write_text(PLAN.replace("[0.0, 1.0]", "[0.0, 1.0, 2.0]"))
    done = holdfast("sweep", str(plan), "--workers", "1")
    assert "12 cases, 0 failed" in done.stdout
    assert journal_of(out).read_bytes().startswith(before)  # nothing was run again
    assert out.read_bytes().startswith(first)
    plan.write_text(PLAN.replace("duration = 0.5", "duration = 0.6"))
    done = holdfast("sweep", str(plan), "--workers", "1")
    assert done.returncode == 2 and "made otherwise" in done.stderr and "--fresh" in done.stderr


def test_noise_belongs_to_the_seed_and_runs_may_end_early(folder: Path) -> None:
    (folder / "plan.toml").write_text(
        'scene = "slider.xml"\nduration = 5.0\nrepeats = 3\nnoise = { qvel = 0.1 }\n'
        'until = { sensor = "travel", above = 0.5 }\n[grid]\n"ctrl.push" = [8.0]\n'
    )
    plan = load_plan(folder / "plan.toml")
    rows = hf.sweep(plan.task, plan.cases, workers=1, progress=False).rows
    again = hf.sweep(plan.task, plan.cases, workers=1, progress=False, backend="threads").rows
    assert rows == again
    times = [row["time"] for row in rows]
    assert len(set(times)) > 1 and all(row["ended"] and row["time"] < 1.0 for row in rows)


def test_a_plan_of_a_function(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("FACTOR = 3\n")
    (tmp_path / "mine.py").write_text(
        "from helper import FACTOR\n\ndef triple(x, seed):\n    return {'y': FACTOR * x}\n"
    )
    (tmp_path / "cases.csv").write_text("x\n1.5\n2.5\n")
    (tmp_path / "plan.toml").write_text('task = "mine.py:triple"\ncsv = "cases.csv"\nout = "r.csv"')
    done = holdfast("sweep", str(tmp_path / "plan.toml"), "--workers", "2")
    assert done.returncode == 0, done.stderr
    assert [row["y"] for row in table(tmp_path / "r.csv")] == ["4.5", "7.5"]


def test_dry_run_runs_nothing(folder: Path) -> None:
    done = holdfast("sweep", str(folder / "plan.toml"), "--dry-run")
    assert done.returncode == 0 and done.stdout.startswith("8 cases")
    assert not list(folder.glob("*.journal"))


def test_a_sweep_of_failures_says_so(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def bad(x):\n    raise OSError('no such luck')\n")
    (tmp_path / "plan.toml").write_text('task = "mine.py:bad"\n[grid]\nx = [1, 2]\n')
    done = holdfast("sweep", str(tmp_path / "plan.toml"), "--workers", "1")
    assert done.returncode == 1 and "2 failed" in done.stdout
    assert "2 × OSError: no such luck" in done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_interrupted_it_says_how_to_go_on(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import time\ndef wait(x):\n    time.sleep(0.05)\n    return {'y': x}\n"
    )
    plan, out = tmp_path / "plan.toml", tmp_path / "r.csv"
    plan.write_text(f'task = "mine.py:wait"\nout = "r.csv"\n[grid]\nx = {list(range(100))}\n')
    command = [sys.executable, "-m", "holdfast", "sweep", str(plan), "--workers", "1"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 60
    while not journal_of(out).exists() or journal_of(out).read_bytes().count(b"\n") < 4:
        assert time.monotonic() < end
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "the same command" in errors and "goes on" in errors and not out.exists()


# --- plans that cannot be run ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("scene = 3 3", "is not TOML"),
        ("[grid]\nx = [1]", "a task or a scene"),
        ('scene = "slider.xml"', "has no cases"),
        ('scene = "slider.xml"\ncolour = "red"\n[grid]\nx = [1]', "has 'colour'; known are"),
        ('scene = "slider.xml"\n[grid]\nx = 1', "list of values"),
        ('scene = "slider.xml"\n[grid]\nx = [1]', "x: is no place in a scene"),
        ('scene = "none.xml"\n[grid]\n"ctrl.push" = [1]', "none.xml cannot be compiled"),
        ('scene = "slider.xml"\n[grid]\n"ctrl.pull" = [1]', "has no actuator 'pull'; it has push"),
        ('scene = "slider.xml"\n[grid]\n"qpos.box" = [1]', r"has 7 values; say which one"),
        ('scene = "slider.xml"\n[grid]\n"qpos.box[7]" = [1]', "has only 7 values"),
        ('scene = "slider.xml"\n[grid]\n"geom.ball.mass" = [1]', "no geom 'ball'; it has floor"),
        ('scene = "slider.xml"\n[grid]\n"geom.box.heft" = [1]', "no field 'heft'"),
        ('scene = "slider.xml"\n[grid]\n"geom.box" = [1]', "names no field"),
        ('scene = "slider.xml"\n[grid]\n"body.box.mass" = [1]', r"set geom\.NAME\.mass"),
        ('scene = "slider.xml"\n[grid]\n"geom.box.mass" = ["x"]', "mass.*cannot be 'x'"),
        ('scene = "slider.xml"\ncontact = "glue"\n[grid]\n"ctrl.push" = [1]', "is 'glue'"),
        ('scene = "slider.xml"\nduration = -1\n[grid]\n"ctrl.push" = [1]', "duration: is -1"),
        ('scene = "slider.xml"\nuntil = {sensor = "a"}\n[grid]\n"ctrl.push" = [1]', "sensor 'a'"),
        ('scene = "slider.xml"\nnoise = {pos = 1}\n[grid]\n"ctrl.push" = [1]', "'pos' is none of"),
        ('task = "mine"\n[grid]\nx = [1]', "expected file.py:function"),
        ('task = "none.py:f"\n[grid]\nx = [1]', "none.py cannot be imported"),
        ('task = "math:nothing"\n[grid]\nx = [1]', "math has no function 'nothing'"),
        ('task = "math:sqrt"\nduration = 1\n[grid]\nx = [1]', "'duration' is for plans"),
        ('task = "math:sqrt"\n[sample]\ncount = 3', "expected count"),
        ('task = "math:sqrt"\nrepeats = -1\n[grid]\nx = [1]', "repeats: is -1"),
        ('task = "math:sqrt"\n[grid]\nx = [1]\n[sample]\ncount = 1\n[sample.parameters]\n'
         "x = { uniform = [0, 1] }", "more than one of"),
    ],
)  # fmt: skip
def test_plans_that_cannot_be_run_are_refused(folder: Path, text: str, word: str) -> None:
    (folder / "plan.toml").write_text(text)
    with pytest.raises(hf.InputError, match=word):
        load_plan(folder / "plan.toml")


def test_a_plan_that_is_not_there() -> None:
    done = holdfast("sweep", "nowhere.toml")
    assert done.returncode == 2 and "nowhere.toml cannot be read" in done.stderr


@pytest.mark.parametrize(
    ("text", "value", "read"),
    [
        ("geom.box.size[2]", 0.3, lambda m: m.geom("box").size[2]),
        ("geom.box.mass", 3.0, lambda m: m.body("box").mass[0]),
        ("option.timestep", 0.004, lambda m: m.opt.timestep),
        ("option.gravity[2]", -1.62, lambda m: m.opt.gravity[2]),
        ("joint.cart.damping[0]", 2.0, lambda m: m.joint("cart").damping[0]),
        ("actuator.push.gear[0]", 5.0, lambda m: m.actuator("push").gear[0]),
        ("body.cart.pos[1]", 2.0, lambda m: m.body("cart").pos[1]),
    ],
)
def test_targets_reach_the_compiled_model(text: str, value: float, read: Any) -> None:
    spec = mujoco.MjSpec.from_string(SLIDER)
    Target.parse(text).set_in_spec(spec, value)
    assert read(spec.compile()) == pytest.approx(value)
