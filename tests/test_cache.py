"""Compiled kernels: where they are kept, who compiles them, and what is said meanwhile."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import _cache

pytestmark = pytest.mark.jit

# One kernel that takes a second, as the step takes a minute.
KERNEL = """
import os, sys, time
import numba
from holdfast import _cache, _jit
from numba.core.event import Listener, register

class Count(Listener):
    compiled = 0
    def on_start(self, event): pass
    def on_end(self, event): Count.compiled += 1

register("numba:compile", Count())

@_jit.kernel
def inner(x):
    return x + 1.0

@_jit.entry
def outer(x):
    total = 0.0
    for k in range(3):
        total += inner(x) * k
    return total

start = time.perf_counter()
assert outer(1.0) == 6.0
print(Count.compiled, outer._cache.cache_path)
"""


def environment(**changes: Any) -> dict[str, str]:
    changed = os.environ | {"PYTHONPATH": str(Path(holdfast.__file__).parents[1])} | changes
    return {name: str(value) for name, value in changed.items() if value is not None}


def run(code: str, **changes: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], env=environment(**changes),
                          capture_output=True, text=True, timeout=1800)  # fmt: skip


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """A module with a kernel, in a directory of its own."""
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "kernels.py").write_text(KERNEL)
    return folder / "kernels.py"


def start(script: Path, **changes: Any) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, str(script)], env=environment(**changes),
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # fmt: skip


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Kernels compiled, where they are kept, and what was said."""
    out, said = process.communicate(timeout=300)
    assert process.returncode == 0, said
    count, _, path = out.strip().partition(" ")
    return int(count), path, said


def test_kernels_are_kept_beside_their_source(script: Path) -> None:
    assert finish(start(script, NUMBA_CACHE_DIR=None))[:2] == (
        2,
        str(script.parent / "__pycache__"),
    )
    assert finish(start(script, NUMBA_CACHE_DIR=None))[0] == 0


def test_the_directory_of_the_environment_comes_first(script: Path, tmp_path: Path) -> None:
    count, path, said = finish(start(script, NUMBA_CACHE_DIR=tmp_path / "mine"))
    assert count == 2 and path.startswith(str(tmp_path / "mine")) and not said


def read_only(folder: Path) -> None:
    """Take away the right to write; root may write all the same, so a file stands in the way."""
    shutil.rmtree(folder / "__pycache__", ignore_errors=True)
    (folder / "__pycache__").write_text("not a directory")


def test_without_a_home_kernels_are_kept_among_temporary_files(
    script: Path, tmp_path: Path
) -> None:
    read_only(script.parent)
    (tmp_path / "tmp").mkdir()
    blocked = tmp_path / "home"
    blocked.write_text("not a directory")
    changes = {"NUMBA_CACHE_DIR": None, "HOME": blocked, "XDG_CACHE_HOME": blocked / "x",
               "TMPDIR": tmp_path / "tmp"}  # fmt: skip
    count, path, said = finish(start(script, **changes))
    assert count == 2 and path.startswith(str(tmp_path / "tmp" / "holdfast-"))
    assert "compiled kernels are kept in" in said and "NUMBA_CACHE_DIR" in said
    count, _, said = finish(start(script, **changes))
    assert count == 0 and not said


def test_where_nothing_can_be_written_kernels_work_and_it_is_said(
    script: Path, tmp_path: Path
) -> None:
    read_only(script.parent)
    blocked = tmp_path / "home"
    blocked.write_text("not a directory")
    code = script.read_text()
    # tempfile finds a directory even if TMPDIR is of no use: it has to be blocked, too
    script.write_text("import tempfile\ntempfile.tempdir = '/nonexistent/tmp'\n" + code.replace(
        "outer._cache.cache_path", "getattr(outer._cache, 'cache_path', None)"))  # fmt: skip
    changes = {"NUMBA_CACHE_DIR": blocked / "c", "HOME": blocked, "XDG_CACHE_HOME": blocked / "x"}
    count, path, said = finish(start(script, **changes))
    assert (count, path) == (2, "None")
    assert said.count("compiled again in every process") == 1 and "Set NUMBA_CACHE_DIR" in said


def test_a_directory_that_others_can_write_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    path = Path(_cache._temporary() or "")
    assert path.parent == tmp_path and path.stat().st_mode & 0o777 == 0o700
    path.chmod(0o777)
    assert _cache._temporary() is None
    path.rmdir()
    (tmp_path / "elsewhere").mkdir()
    path.symlink_to(tmp_path / "elsewhere")
    assert _cache._temporary() is None


def test_a_warm_directory_may_be_read_only(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    finish(start(script, NUMBA_CACHE_DIR=None))
    code = script.read_text()
    assert code.startswith("\nimport os, sys, time\nimport numba\n")
    # The same lines, so that the cached kernel is that of this source; nothing can be written.
    script.write_text(code.replace("import numba\n", "import numba, holdfast._cache as c; "
                                   "c.can_write = lambda path: False\n", 1))  # fmt: skip
    count, path, said = finish(start(script, NUMBA_CACHE_DIR=None))
    assert count == 0 and path == str(script.parent / "__pycache__") and not said


def test_two_processes_that_start_together_compile_once(script: Path) -> None:
    slow = script.read_text().replace("for k in range(3)", "for k in range(3)  ").replace(
        "register(", "import holdfast._jit as j\nold = j._PartCompiler.__init__\n"
        "def slow(self, *a):\n    time.sleep(1.0)\n    old(self, *a)\n"
        "j._PartCompiler.__init__ = slow\nregister(", 1)  # fmt: skip
    script.write_text(slow)
    processes = [start(script, NUMBA_CACHE_DIR=None) for _ in range(3)]
    done = [finish(process) for process in processes]
    assert sorted(count for count, *_ in done) == [0, 0, 2]
    assert sum("another process is compiling" in said for *_, said in done) >= 1


def test_a_process_that_is_killed_leaves_no_lock(script: Path) -> None:
    endless = script.read_text().replace(
        "register(",
        "import holdfast._jit as j\n"
        "def slow(self, *a):\n    time.sleep(60)\n"
        "j._PartCompiler.__init__ = slow\nregister(",
        1,
    )
    (script.parent / "endless.py").write_text(endless.replace("kernels", "endless"))
    process = start(script.parent / "endless.py", NUMBA_CACHE_DIR=None)
    lock = script.parent / "__pycache__" / "holdfast.lock"
    for _ in range(600):
        if lock.exists():
            break
        time.sleep(0.05)
    assert lock.exists()
    process.kill()
    process.communicate()
    assert finish(start(script, NUMBA_CACHE_DIR=None))[0] == 2


def test_a_damaged_file_is_compiled_again(script: Path) -> None:
    finish(start(script, NUMBA_CACHE_DIR=None))
    kept = list((script.parent / "__pycache__").glob("*.nbc"))
    assert kept
    for file in kept:
        file.write_bytes(b"damaged")
    assert finish(start(script, NUMBA_CACHE_DIR=None))[0] == 2


def test_a_full_disk_is_said_and_the_kernel_works(script: Path) -> None:
    full = script.read_text().replace(
        "import numba\n",
        "import numba, numba.core.caching as n, errno\n"
        "def full(self, *a): raise OSError(errno.ENOSPC, 'No space left on device')\n"
        "n.IndexDataCacheFile.save = full\n",
        1,
    )
    script.write_text(full)
    count, _, said = finish(start(script, NUMBA_CACHE_DIR=None))
    assert count == 2 and "No space left on device" in said


def test_the_stamp_is_of_contents_not_of_dates(tmp_path: Path) -> None:
    """Copies of the package agree; an edit anywhere is seen, also in kernels of other files."""
    source = Path(holdfast.__file__).parent
    code = "from holdfast import _cache; print(_cache.stamp())"
    stamps = []
    for name in ("one", "two"):
        shutil.copytree(
            source, tmp_path / name / "holdfast", ignore=shutil.ignore_patterns("__pycache__")
        )
        if name == "two":
            for file in (tmp_path / name).rglob("*.py"):
                os.utime(file, (1, 1))
        stamps.append(run(code, PYTHONPATH=tmp_path / name).stdout)
    assert len(stamps[0]) == 65 and stamps[0] == stamps[1]
    with (tmp_path / "two" / "holdfast" / "linalg" / "vectors.py").open("a") as file:
        file.write("# edited\n")
    assert run(code, PYTHONPATH=tmp_path / "two").stdout != stamps[0]


@pytest.mark.slow
def test_import_and_step_with_a_read_only_installation_and_no_home(tmp_path: Path) -> None:
    """Compiles the step once: it takes a minute. So does what is said within a second."""
    source = Path(holdfast.__file__).parent
    copy = tmp_path / "site" / "holdfast"
    shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [copy, *(path for path in copy.rglob("*") if path.is_dir())]:
        read_only(folder)
    blocked = tmp_path / "home"
    blocked.write_text("not a directory")
    (tmp_path / "tmp").mkdir()
    code = """
import time, sys
import mujoco, holdfast as hf
model = mujoco.MjModel.from_xml_string('<mujoco><worldbody><geom type="plane" size="1 1 1"/>'
    '<body pos="0 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/></body></worldbody></mujoco>')
data = mujoco.MjData(model)
print(time.time(), flush=True)
hf.step(model, data, 50)
assert abs(data.qpos[2] - 0.1) < 1e-6
"""
    changes = {"NUMBA_CACHE_DIR": None, "HOME": blocked, "XDG_CACHE_HOME": blocked / "x",
               "TMPDIR": tmp_path / "tmp", "PYTHONPATH": copy.parent,
               "PYTHONDONTWRITEBYTECODE": "1"}  # fmt: skip
    pipe = subprocess.PIPE
    process = subprocess.Popen([sys.executable, "-c", code], env=environment(**changes),
                               stdout=pipe, stderr=pipe, text=True)  # fmt: skip
    assert process.stdout is not None and process.stderr is not None
    begun = float(process.stdout.readline())
    said = process.stderr.readline() + process.stderr.readline()
    waited = time.time() - begun
    assert "compiling the step, once after installation; about" in said
    assert "compiled kernels are kept in" in said
    assert waited < 1.0 * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    process.communicate()
    assert process.returncode == 0
    second = subprocess.run([sys.executable, "-c", code], env=environment(**changes),
                            capture_output=True, text=True, timeout=300)  # fmt: skip
    assert second.returncode == 0 and not second.stderr


@pytest.mark.slow
def test_warmup_compiles_every_kernel(tmp_path: Path) -> None:
    code = """
import sys
from holdfast.tools import warmup
parts = []
count = warmup.warm_up(parts.append)
left = warmup.not_compiled()
assert parts == sorted(parts) and parts[-1] == 1.0
print(count, *left)
"""
    changes = {"NUMBA_CACHE_DIR": tmp_path}
    first = run(code, **changes)
    assert first.returncode == 0, first.stderr
    count, *left = first.stdout.split()
    assert int(count) > 100
    assert left == ["holdfast.contact.build.write_arrays"]  # which nothing but tests calls
    second = run(code, **changes)
    assert second.stdout.split()[0] == "0"


def test_a_forked_child_compiles_what_its_parent_has_not(script: Path) -> None:
    """Locks are not inherited: they are made anew in the child."""
    code = (
        KERNEL
        + """
@_jit.entry
def other(x):
    return inner(x) + 1.0

child = os.fork()
if child == 0:
    os._exit(0 if other(1.0) == 3.0 else 1)
assert os.waitpid(child, 0)[1] == 0
"""
    )
    script.write_text(code)
    finish(start(script, NUMBA_CACHE_DIR=str(script.parent / "cache")))
