"""Names are data in everything that is printed, and what was computed is not lost to Ctrl-C."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

from holdfast.cli import _common, _interrupt
from holdfast.cli.compare import Compare, print_rows
from holdfast.cli.demo import Demo
from holdfast.cli.reproduce import Reproduce
from holdfast.cli.simulate import Simulate
from holdfast.cli.verify import Verify
from holdfast.errors import InputError
from holdfast.tools import files
from holdfast.tools.compare import Row
from holdfast.tools.progress import progress_bar
from holdfast.tools.recording import Recording
from holdfast.tools.verify import Tolerances

EVIL = "[/]\x1b[31m:heart:\u202e\x07\r\n[link=x]"  # markup, colours, emoji, order, bell, lines
BOX = """<mujoco><worldbody><geom name="floor" type="plane" size="5 5 1"/>
  <body name="box" pos="0 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
  </worldbody></mujoco>"""
INF, NAN = float("inf"), float("nan")


@pytest.fixture
def box(tmp_path: Path) -> Path:
    scene = tmp_path / "box.xml"
    scene.write_text(BOX)
    return scene


def harmless(said: str) -> bool:
    return not any(mark in said for mark in ("\x1b", "\u202e", "\x07", "\r"))


def test_text_is_shown_as_it_is() -> None:
    said = _common.plain(EVIL)
    assert harmless(said) and "\n" not in said
    assert "[/]\\x1b[31m:heart:\\u202e\\x07" in said and "[link=x]" in said
    assert _common.plain("µ = 0.5, größer") == "µ = 0.5, größer"
    assert _common.plain("a\udcff") == "a\\udcff"  # of a file name that is no UTF-8
    assert _common.text(EVIL).plain == said


def test_names_in_the_table_of_compare(capsys: pytest.CaptureFixture[str]) -> None:
    """A remark names bodies: "[/]" ended the command, escape sequences went to the terminal."""
    rows = [Row("holdfast", friction=2.0, declared=1.0, pair=f"{EVIL} and world"),
            Row("MuJoCo", problem=f"StepError: {EVIL}")]  # fmt: skip
    print_rows(EVIL, rows)
    said = capsys.readouterr().out
    assert harmless(said) and said.count("[/]") == 3 and ":heart:" in said


def test_names_in_progress_bars(capsys: pytest.CaptureFixture[str]) -> None:
    """A video called "[/].gif" ended the command after the run."""
    with progress_bar("drawing [/].gif") as progress:
        progress(0.5)
    capsys.readouterr()


def test_errors_are_one_line_without_escapes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scene = tmp_path / "a\x1b[2Jb.xml"
    scene.write_text("<mujoco><worldbody><geom/></worldbody></mujoco>")
    assert Simulate(scene).run() == 2
    assert Simulate(tmp_path / "none\x1b[2J\n.xml").run() == 2
    said = capsys.readouterr().err
    assert harmless(said) and said.count("\n") == 2


@pytest.mark.parametrize("duration", [1e308, 1e14])
def test_durations_of_too_many_steps(
    box: Path, duration: float, capsys: pytest.CaptureFixture[str]
) -> None:
    assert Simulate(box, duration=duration).run() == 2
    assert Compare(box, duration=duration).run() == 2
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2 and all("duration" in line for line in said)


@pytest.mark.parametrize("value", [NAN, INF, -1.0])
def test_tolerances_and_coefficients(
    box: Path, value: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With "inf" everything passed; a coefficient that no law uses was not looked at."""
    run = tmp_path / "run.npz"
    pose = [0.0, 0.0, 0.1, 1.0, 0.0, 0.0, 0.0]
    np.savez(run, time=[0.0, 0.002], qpos=[pose, pose], qvel=np.zeros((2, 6)))
    for name in ("energy", "fall", "drift", "slip", "mu_v"):
        given: dict[str, Any] = {name: value}
        assert Verify(run, scene=box, **given).run() == 2
        assert name in capsys.readouterr().err
    assert Simulate(box, mu_v=value).run() == 2
    assert "mu_v" in capsys.readouterr().err
    with pytest.raises(InputError, match="complementarity"):
        Tolerances(complementarity=value)


def test_numbers_that_are_none(
    tmp_path: Path, box: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert Simulate(box, keyframe="²").run() == 2  # a digit for `isdigit`, none for `int`
    assert Reproduce("grasp", out=tmp_path / "report", seed=-1).run() == 2
    assert Demo(duration=1e308).run() == 2
    said = capsys.readouterr().err
    assert "keyframe" in said and "seed" in said and "duration" in said


def test_what_a_run_reads_is_not_written(
    box: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    link = tmp_path / "link.xml"
    link.symlink_to(box)
    for out in (box, link):
        assert Simulate(box, out=out, force=True).run() == 2
        assert "is read by this run" in capsys.readouterr().err
    assert box.read_text() == BOX


@pytest.mark.parametrize("length", [240, 251])
def test_long_names(tmp_path: Path, length: int) -> None:
    """They passed the check; the file beside it had a longer name, and the run was lost."""
    path = tmp_path / ("x" * length + ".npz")
    assert files.check_output(path, force=False) == path
    assert files.write_somewhere(path, lambda stream: stream.write(b"run")) == path
    with pytest.raises(InputError, match="out"):
        files.check_output(tmp_path / ("x" * 300), force=False)


def test_permissions_stay(tmp_path: Path) -> None:
    path = tmp_path / "private.npz"
    path.write_text("old")
    path.chmod(0o600)
    files.write_whole(path, lambda stream: stream.write(b"new"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_that_came_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    """Two runs that begin together with the same --out: the one that ended first was lost."""
    path = tmp_path / "run.npz"
    assert files.write_somewhere(path, lambda s: s.write(b"first"), force=False) == path
    place = files.write_somewhere(path, lambda s: s.write(b"second"), force=False)
    assert path.read_bytes() == b"first" and place.read_bytes() == b"second"
    assert list(tmp_path.iterdir()) == [path]
    place.unlink()
    place.parent.rmdir()


def test_an_interrupted_recording_is_not_compressed(tmp_path: Path) -> None:
    model = mujoco.MjModel.from_xml_string(BOX)
    recording = Recording({})
    for _ in range(100):
        recording.add(mujoco.MjData(model))
    sizes = []
    for quick in (False, True):
        place = recording.save(tmp_path / f"{quick}.npz", quick=quick)
        assert recording.saved and np.load(place)["qpos"].shape == (100, 7)
        sizes.append(place.stat().st_size)
    assert sizes[1] > 5 * sizes[0]


COMMAND = """
import sys, time
from pathlib import Path
from holdfast.cli import _interrupt
from holdfast.tools.files import write_whole

def slow(stream):
    stream.write(b"half")
    print("writing", flush=True)
    end = time.monotonic() + {write}
    while time.monotonic() < end:
        time.sleep(0.01)
    stream.write(b", whole")

def command():
    {before}
    with _interrupt.saving():
        write_whole(Path(sys.argv[1]), slow)
        _interrupt.note_saved("the run is saved")
    while True:
        time.sleep(0.01)

_interrupt.run(command)
"""


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("write", [0.3, 1.5])
def test_ctrl_c_while_a_file_is_written(tmp_path: Path, times: int, write: float) -> None:
    """The run was lost with "nothing was saved", or a file was saved and nothing said so."""
    path = tmp_path / "run"
    code = COMMAND.format(write=write, before="pass")
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as run:  # fmt: skip
        assert run.stdout is not None
        run.stdout.readline()
        for _ in range(times):
            time.sleep(0.05)
            run.send_signal(signal.SIGINT)
        _, said = run.communicate(timeout=30)
    assert run.returncode == 130
    assert said == "holdfast: interrupted; the run is saved\n"
    assert path.read_text() == "half, whole" and os.listdir(tmp_path) == ["run"]


def test_a_command_that_was_interrupted_saves_before_it_is_ended(tmp_path: Path) -> None:
    """Saving may take longer than the patience; the line says what was saved, once."""
    path = tmp_path / "run"
    before = "try:\n        print('begin', flush=True)\n        time.sleep(60)\n"
    before += "    except KeyboardInterrupt:\n        pass"
    code = COMMAND.format(write=1.5, before=before)
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as run:  # fmt: skip
        assert run.stdout is not None
        run.stdout.readline()
        run.send_signal(signal.SIGINT)
        _, said = run.communicate(timeout=30)
    assert run.returncode == 130 and said == "holdfast: interrupted; the run is saved\n"
    assert path.read_text() == "half, whole"


def test_a_closed_pipe_is_no_error_of_a_command() -> None:
    """Commands said "[Errno 32] Broken pipe" and returned 2."""

    class Command:
        @_common.exit_code
        def run(self) -> int:
            raise BrokenPipeError(32, "Broken pipe")

    with pytest.raises(BrokenPipeError):
        Command().run()
    assert _interrupt.CLOSED_PIPE == 141
