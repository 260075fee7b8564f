"""``holdfast sweep``, called as a user calls it, and the plans that it reads."""

from __future__ import annotations

import csv
import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from PIL import Image

import holdfast as hf
from command import holdfast
from holdfast.batch.sweep.run import journal_of
from holdfast.tools.sweep.film import lowest_and_highest
from holdfast.tools.sweep.plan import load_plan
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
    assert done.returncode == 2 and "another sweep" in done.stderr and "--fresh" in done.stderr


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


def test_what_no_sweep_has_written_is_not_overwritten(folder: Path) -> None:
    thesis, pipe, link = folder / "thesis.csv", folder / "pipe.csv", folder / "link.csv"
    thesis.write_text("years of work")
    os.mkfifo(pipe)
    link.symlink_to("/dev/null")
    for out, says in ((thesis, "--fresh"), (pipe, "pipe"), (link, "name ending in")):
        done = holdfast("sweep", str(folder / "plan.toml"), "--out", str(out))
        assert done.returncode == 2 and says in done.stderr, done.stderr
    assert thesis.read_text() == "years of work" and link.is_symlink() and pipe.is_fifo()
    link.unlink()
    link.symlink_to(folder / "table.csv")
    done = holdfast("sweep", str(folder / "plan.toml"), "--out", str(link), "--workers", "1")
    assert done.returncode == 0, done.stderr
    assert link.is_symlink() and (folder / "table.csv.journal").exists()  # it was followed


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
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # bg jobs ignore it
    )  # fmt: skip
    end = time.monotonic() + 60
    while not journal_of(out).exists() or journal_of(out).read_bytes().count(b"\n") < 4:
        assert time.monotonic() < end
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "run the same command again to continue" in errors and not out.exists()


# --- videos and pictures --------------------------------------------------------------------------


def drawn(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    done = holdfast("sweep", str(folder / "plan.toml"), "--workers", "1", *options)
    if "no OpenGL to draw with" in done.stderr and os.environ.get("CI") != "true":
        pytest.skip(done.stderr)
    return done


def test_the_lowest_and_the_highest_case_are_drawn(folder: Path) -> None:
    gif, png = folder / "ends.gif", folder / "ends.png"
    options = ("--by", "sensor.place[0]", "--video", str(gif), "--picture", str(png))
    done = drawn(folder, *options)
    assert done.returncode == 0, done.stderr
    # the box slides furthest at 1 m/s with friction 0.2: case 4 (and 6, with the other push)
    assert f"{gif}, {png}: cases 0 and 4" in done.stdout
    with Image.open(gif) as video, Image.open(png) as image:
        assert video.size == image.size == (1280, 480)
        assert getattr(video, "n_frames", 1) == 15  # half a second
        halves = np.split(np.asarray(image.convert("RGB"), dtype=int), 2, axis=1)
    assert np.abs(halves[0] - halves[1]).max() > 50
    again = drawn(folder, *options)
    assert again.returncode == 2 and "ends.gif exists" in again.stderr
    assert drawn(folder, *options, "--force").returncode == 0


def test_forces_of_a_case_are_drawn(folder: Path) -> None:
    png = folder / "slide.png"
    done = drawn(folder, "--case", "4", "--picture", str(png), "--format", "json")
    assert done.returncode == 0, done.stderr
    with Image.open(png) as image:
        assert image.size == (640, 480)
        pixels = np.asarray(image.convert("RGB"), dtype=int)
    red = (pixels[..., 0] > 150) & (pixels[..., 1] < 90) & (pixels[..., 2] < 90)
    assert red.sum() > 10  # it still slides: forces on the friction cone


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (("--video", "run.avi"), "expected a name ending in .mp4 or .gif"),
        (("--picture", "a.png", "--case", "8"), "case: is 8; expected 0 to 7"),
        (("--picture", "a.png", "--case", "1", "--by", "push"), "give one of them"),
        (("--picture", "a.png", "--camera", "top"), "the model has none"),
        (("--by", "push"), "add --video or --picture"),
    ],
)
def test_what_cannot_be_drawn_is_refused_before_the_sweep(
    folder: Path, options: tuple[str, ...], word: str
) -> None:
    done = drawn(folder, *options)
    assert done.returncode == 2 and word in done.stderr, done.stderr
    assert not journal_of(folder / "plan.csv").exists()


def test_columns_that_choose_no_case(folder: Path) -> None:
    plan = load_plan(folder / "plan.toml")
    swept = hf.sweep(plan.task, plan.cases, workers=1, progress=False)
    with pytest.raises(hf.InputError, match="'drift'; the columns are speed, push"):
        lowest_and_highest(swept, "drift")
    with pytest.raises(hf.InputError, match="without numbers"):
        lowest_and_highest(swept, "error")
    assert [each.number for each in lowest_and_highest(swept, "time")] == [0]  # all the same
    failed = {"push": None, "error": "lost"}
    rows = [failed, {"push": 2.0, "error": None}, {"push": math.nan, "error": None},
            {"push": math.inf, "error": None}, {"push": 2.0, "error": None}]  # fmt: skip
    chosen = lowest_and_highest(hf.SweepTable(["push", "error"], rows), "push")
    assert [each.number for each in chosen] == [1, 3]


TASK = """
import mujoco, holdfast as hf

def slide(speed, watch=None):
    model = mujoco.MjModel.from_xml_path({scene!r})
    data = mujoco.MjData(model)
    data.joint("box").qvel[0] = speed
    for _ in range(10):
        hf.step(model, data)
        if watch:
            watch(model, data)
        if speed > 2:
            raise ArithmeticError("too fast")
    return {{"place": data.body("box").xpos[0]}}

def unseen(speed):
    return {{"place": speed}}

def blind(speed, watch=None):
    return {{"place": speed}}

calls = []
def random(speed, watch=None):
    calls.append(speed)
    slide(min(speed, 1.0), watch)
    return {{"place": float(len(calls))}}
"""


def test_functions_are_watched(folder: Path) -> None:
    (folder / "mine.py").write_text(TASK.format(scene=str(folder / "slider.xml")))
    plan, png = folder / "plan.toml", folder / "a.png"
    plan.write_text('task = "mine.py:slide"\n[grid]\nspeed = [0.0, 1.0, 3.0]\n')
    done = drawn(folder, "--picture", str(png), "--by", "place")
    assert done.returncode == 0 and "a.png: cases 0 and 1" in done.stdout, done.stderr
    png.unlink()
    done = drawn(folder, "--picture", str(png), "--case", "2")  # failed after one step
    assert done.returncode == 0 and png.exists(), done.stderr
    png.unlink()
    for name, reason in (
        ("unseen", "it has no argument `watch`"),
        ("blind", "0 has nothing to draw: the task did not call `watch`"),
        ("random", "make its randomness depend on the argument `seed`"),
    ):
        plan.write_text(f'task = "mine.py:{name}"\nout = "{name}.csv"\n[grid]\nspeed = [0, 1]\n')
        done = drawn(folder, "--picture", str(png), "--by", "place", "--backend", "threads")
        assert done.returncode == 2 and reason in done.stderr, done.stderr
        assert not png.exists()


# --- plans that cannot be run ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("scene = 3 3", "is not TOML"),
        ("[grid]\nx = [1]", "a task or a scene"),
        ('scene = "slider.xml"', "has no cases"),
        ('scene = "slider.xml"\ncolour = "red"\n[grid]\nx = [1]', "has 'colour'; known are"),
        ('scene = "slider.xml"\n[grid]\nx = 1', "list of values"),
        ('scene = "slider.xml"\n[grid]\nx = [1]', "x: is not a place in a scene"),
        ('scene = "none.xml"\n[grid]\n"ctrl.push" = [1]', "none.xml cannot be compiled"),
        ('scene = "slider.xml"\n[grid]\n"ctrl.pull" = [1]', "has no actuator 'pull'; it has push"),
        ('scene = "slider.xml"\n[grid]\n"qpos.box" = [1]', r"has 7 values; choose one"),
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
        ('task = "math:sqrt"\nduration = 1\n[grid]\nx = [1]', "'duration' applies only to plans"),
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
