"""Arguments and files of the commands: refused by name before the work begins, never lost after."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
import tracemalloc
import zipfile
from functools import partial
from pathlib import Path

import mujoco
import numpy as np
import pytest

from command import holdfast
from holdfast.cli.bench import Bench
from holdfast.cli.demo import Demo
from holdfast.cli.simulate import Simulate
from holdfast.errors import InputError
from holdfast.tools import files

pytestmark = pytest.mark.jit

BOX = """<mujoco><worldbody><geom name="[red]floor" type="plane" size="5 5 1"/>
  <body name="[/]box [link=x]" pos="0 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
  </worldbody></mujoco>"""


@pytest.fixture
def box(tmp_path: Path) -> Path:
    scene = tmp_path / "box[b].xml"
    scene.write_text(BOX)
    return scene


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ({"duration": float("nan")}, "duration"),
        ({"duration": 0.0}, "duration"),
        ({"duration": -1.0}, "duration"),
        ({"duration": float("inf")}, "duration"),
        ({"every": 0}, "every"),
        ({"every": -3}, "every"),
        ({"contact": "viscous", "mu_v": -1.0}, "mu_v"),
        ({"contact": "viscous", "mu_v": float("nan")}, "mu_v"),
    ],
)
@pytest.mark.parametrize("mode", ["steps", "events"])
def test_simulate_refuses_by_name(
    box: Path, capsys: pytest.CaptureFixture[str], arguments: dict, names: str, mode: str
) -> None:
    given = {"duration": 0.1, "mode": mode} | arguments
    assert Simulate(scene=box, **given).run() == 2
    printed = capsys.readouterr().err.splitlines()
    assert len(printed) == 1 and printed[0].startswith(f"holdfast: {names}:")


@pytest.mark.parametrize("timestep", ["0", "-1"])
def test_scenes_without_a_time_step_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], timestep: str
) -> None:
    scene = tmp_path / "scene.xml"
    scene.write_text(BOX.replace("<mujoco>", f'<mujoco><option timestep="{timestep}"/>'))
    assert Simulate(scene=scene, duration=0.1).run() == 2
    assert "timestep" in capsys.readouterr().err


def test_demo_refuses_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert Demo(duration=float("nan")).run() == 2
    assert Demo(boxes=(0,), duration=0.0).run() == 2
    taken = tmp_path / "thesis.png"
    taken.write_text("years of work")
    assert Demo(boxes=(2,), duration=0.1, picture=taken).run() == 2
    said = capsys.readouterr().err
    assert "duration" in said and "boxes" in said and "--force" in said
    assert taken.read_text() == "years of work"


def test_names_from_scenes_are_no_markup(box: Path) -> None:
    done = holdfast("simulate", str(box), "--duration", "0.02")
    assert done.returncode == 0, done.stderr
    assert "[/]box [link=x]" in done.stdout and "box[b].xml" in done.stdout
    done = holdfast("compare", str(box), "--duration", "0.02")
    assert done.returncode == 0, done.stderr
    assert "box[b].xml" in done.stdout


def test_output_is_looked_at_before_the_run(box: Path, tmp_path: Path) -> None:
    taken, pipe, link = tmp_path / "taken.npz", tmp_path / "pipe", tmp_path / "link.npz"
    taken.write_text("old")
    os.mkfifo(pipe)
    for out, says in (
        (taken, "--force"), (pipe, "device or a pipe"), (tmp_path, "folder"),
        (Path("/dev/null"), "device"), (tmp_path / "none" / "run.npz", "does not exist"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=says):
            files.check_output(out, force=False)
    assert files.check_output(taken, force=True) == taken.resolve()
    link.symlink_to(taken)
    with pytest.raises(InputError, match="exists"):
        files.check_output(link, force=False)
    assert Simulate(scene=box, duration=0.02, out=link, force=True).run() == 0
    assert link.is_symlink()  # it was followed
    with np.load(taken) as run:
        assert json.loads(str(run["metadata"]))["complete"]
    link.unlink()
    link.symlink_to("/dev/null")
    with pytest.raises(InputError, match="device"):
        files.check_output(link, force=True)


def test_links_that_lead_to_themselves_are_refused(tmp_path: Path) -> None:
    one, other = tmp_path / "one.npz", tmp_path / "other.npz"
    one.symlink_to(other)
    other.symlink_to(one)
    for force in (False, True):
        with pytest.raises(InputError, match="leads to itself"):
            files.check_output(one, force=force)
    assert one.is_symlink()


def test_two_files_of_a_run_are_not_one(
    box: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The picture was written over the trajectory."""
    out = tmp_path / "run.png"
    assert Simulate(scene=box, duration=0.02, out=out, picture=out).run() == 2
    assert "written already" in capsys.readouterr().err
    assert not out.exists()


def test_results_of_bench_are_looked_at_before_it_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They were written over anything, into devices, and lost where the folder was missing."""
    taken = tmp_path / "thesis.json"
    taken.write_text("years of work")
    for out, says in ((taken, "--force"), (Path("/dev/null"), "device"),
                      (tmp_path / "none" / "a.json", "does not exist")):  # fmt: skip
        assert Bench(out=out).run() == 2
        assert says in capsys.readouterr().err
    assert taken.read_text() == "years of work"


def test_controls_that_are_a_bomb_are_not_read(tmp_path: Path) -> None:
    """Two gigabytes from two megabytes; other arrays of the file are not read at all."""
    bomb, header = tmp_path / "bomb.npz", io.BytesIO()
    many = {"descr": "<f8", "fortran_order": False, "shape": (3 * 10**8, 1)}
    np.lib.format.write_array_header_1_0(header, many)
    for name, refused in (("ctrl.npy", True), ("other.npy", False)):
        with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
            with archive.open(name, "w", force_zip64=True) as stream:
                stream.write(header.getvalue())
                for _ in range(2400):
                    stream.write(bytes(10**6))
            if not refused:
                with archive.open("ctrl.npy", "w") as stream:
                    np.save(stream, np.zeros((3, 0)))
        model = mujoco.MjModel.from_xml_string("<mujoco/>")
        tracemalloc.start()
        if refused:
            with pytest.raises(InputError, match="at most"):
                files.load_control(bomb, model)
        else:
            assert files.load_control(bomb, model)(0.0).shape == (0,)
        assert tracemalloc.get_traced_memory()[1] < 10**7
        tracemalloc.stop()


def test_a_folder_that_may_not_be_written(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write anywhere")
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    with pytest.raises(InputError, match="cannot be written"):
        files.check_output(locked / "run.npz", force=False)


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    path.write_text("old")

    def fails(stream) -> None:
        stream.write(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        files.write_whole(path, fails)
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]
    files.write_whole(path, lambda stream: stream.write(b"new"))
    assert path.read_text() == "new" and list(tmp_path.iterdir()) == [path]


def test_a_finished_run_is_not_lost_with_its_folder(tmp_path: Path) -> None:
    place = files.write_somewhere(tmp_path / "gone" / "run.npz", lambda file: file.write(b"run"))
    assert place.name == "run.npz" and place.read_bytes() == b"run"
    place.unlink()
    place.parent.rmdir()


def test_a_kill_at_any_moment_leaves_a_whole_file(tmp_path: Path) -> None:
    """A process that writes again and again is killed; the file is one of those it has written."""
    code = f"""
import sys
from pathlib import Path
from holdfast.tools.files import write_whole
k = 0
while True:
    k += 1
    write_whole(Path({str(tmp_path / "file")!r}), lambda s: s.write(str(k).encode() * 300_000))
    print(k, flush=True)
"""
    for wait in (0.05, 0.11, 0.02):
        with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as run:
            assert run.stdout is not None
            run.stdout.readline()
            time.sleep(wait)
            run.kill()
        text = (tmp_path / "file").read_text()
        first = text[: len(text) // 300_000]
        assert text == first * 300_000
        shown = [path for path in tmp_path.iterdir() if not path.name.startswith(".")]
        assert len(shown) == 1  # what is left of a part is hidden, and not taken for a result


COMMANDS = {
    "simulate": ("simulate", "SCENE", "--duration", "1000", "--out", "OUT"),
    "events": ("simulate", "SCENE", "--duration", "1000", "--mode", "events"),
    "compare": ("compare", "SCENE", "--duration", "1000"),
    "demo": ("demo", "--duration", "1000", "--boxes", "2", "--picture", "PNG"),
    "reproduce": ("reproduce", "scaling", "--out", "OUT"),
    "verify": ("verify", "RUN", "--scene", "SCENE"),
    "sweep": ("sweep", "PLAN", "--workers", "1"),
    "bench": ("bench", "--seconds", "1000"),
    "warmup": ("warmup",),
    "view": ("view", "SCENE", "--port", "18080"),
}
PLAN = """scene = "{scene}"
out = "{out}"
duration = 1000.0
[grid]
"option.timestep" = [1e-3, 2e-3]
"""


def interrupted_files(box: Path, folder: Path) -> dict[str, str]:
    """What commands read and write: a scene, a long run, a plan, outputs."""
    model = mujoco.MjModel.from_xml_path(str(box))
    data = mujoco.MjData(model)
    count = 100_000
    np.savez(folder / "run.npz", time=1e-3 * np.arange(count), qpos=np.tile(data.qpos, (count, 1)),
             qvel=np.zeros((count, model.nv)))  # fmt: skip
    (folder / "plan.toml").write_text(PLAN.format(scene=box, out=folder / "table.csv"))
    files = {"OUT": "out.npz", "PNG": "out.png", "RUN": "run.npz", "PLAN": "plan.toml"}
    return {"SCENE": str(box), **{word: str(folder / file) for word, file in files.items()}}


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("wait", [10.0, 16.0])  # first Python imports the package
def test_an_interrupt_ends_a_command_within_a_second(
    box: Path, tmp_path: Path, name: str, wait: float
) -> None:
    if name == "view":
        pytest.importorskip("viser")
    names = interrupted_files(box, tmp_path)
    cache = {"NUMBA_CACHE_DIR": str(tmp_path)} if name == "warmup" else {}  # there is work to do
    command = [names.get(word, word) for word in COMMANDS[name]]
    listen = partial(signal.signal, signal.SIGINT, signal.default_int_handler)
    with subprocess.Popen(
        [sys.executable, "-m", "holdfast", *command], stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL, text=True, preexec_fn=listen, env=os.environ | cache,
    ) as run:  # fmt: skip
        time.sleep(wait)
        begin = time.monotonic()
        run.send_signal(signal.SIGINT)
        try:
            _, errors = run.communicate(timeout=20)
        finally:
            run.kill()
        took = time.monotonic() - begin
    lines = [line for line in errors.splitlines() if "holdfast:" in line]
    lines = [line for line in lines if "compiling" not in line]
    if name == "view":  # that is how it ends, and nothing is lost
        assert run.returncode == 0 and len(lines) <= 1, errors
    else:
        assert run.returncode == 130, errors
        assert len(lines) == 1 and "interrupted" in lines[0], errors
    assert "Traceback" not in errors and took < 1.5, took  # of which a busy machine takes a part


INTERRUPTED_IMPORT = """
import runpy, sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupt())
sys.argv[:] = {argv}
sys.orig_argv[:] = ["python", *{original}]
{load}
"""
AS_MODULE = "runpy.run_module('holdfast', run_name='__main__', alter_sys=True)"


@pytest.mark.parametrize("module", ["numba", "holdfast.models", "tyro"])
@pytest.mark.parametrize(
    ("argv", "original", "load", "command"),
    [(["-m", "verify"], ["-m", "holdfast", "verify"], AS_MODULE, True),
     (["/bin/holdfast", "demo"], ["/bin/holdfast", "demo"], "import holdfast.cli", True),
     (["-m", "holdfast"], ["-m", "mine.train", "holdfast"], "import holdfast.cli", False),
     (["mine.py"], ["mine.py"], "import holdfast.cli", False)],
)  # fmt: skip
def test_an_interrupt_while_a_command_loads_is_one_line(
    module: str, argv: list[str], original: list[str], load: str, command: bool
) -> None:
    """It was a traceback of imports; programs that import the package keep theirs."""
    code = INTERRUPTED_IMPORT.format(module=module, argv=argv, original=original, load=load)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    if command:
        assert done.stderr.strip() == "holdfast: interrupted; nothing was saved"
    else:
        assert "Traceback" in done.stderr and "holdfast: interrupted" not in done.stderr


def test_a_reader_may_close_the_pipe() -> None:
    """As `head` does after the lines that it wants."""
    with subprocess.Popen(
        [sys.executable, "-c", "from holdfast.cli._interrupt import run\n"
         "def command():\n    while True:\n        print('a line', flush=True)\nrun(command)"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline() == b"a line\n"
        process.stdout.close()
        assert process.wait(60) == 141
        assert process.stderr.read() == b""
