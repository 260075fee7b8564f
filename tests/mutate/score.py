"""``make mutate``: every mutant of mutants.json against the tests of its folder.

    python -m mutate.score [--area mujoco] [--seconds 3600] [--first 0] [--every 1]

A mutant is killed if a test fails, or if its tests take longer than the limit. Kernels of `lcp`
and `contact` run as plain Python, which is quicker than to compile them anew for each mutant. What
is known to survive stands with its reason in survivors.json.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from mutate.make import AREAS, LIST, PACKAGE, ROOT

# One place, so that kernels that do not change stay cached.
PLACE = Path(tempfile.gettempdir(), "holdfast-mutate")
SURVIVORS = Path(__file__).with_name("survivors.json")
TESTS: dict[str, tuple[list[str], bool, float]] = {  # files, whether compiled, time limit [s]
    "lcp": (["tests/lcp"], False, 400.0),
    "contact": (["tests/contact", "tests/models/test_coulomb.py", "tests/models/test_models.py"],
                False, 600.0),
    "mujoco": (["tests/mujoco/test_stepper.py", "tests/mujoco/test_step.py",
                "tests/mujoco/test_step_physics.py", "tests/mujoco/test_energy.py",
                "tests/fuzz"], True, 900.0),
    "events": (["tests/events"], True, 400.0),
}  # fmt: skip

# The stamp of cached kernels covers all sources. Here it covers those with kernels, so that a
# mutant of a file without any does not compile all of them again.
STAMP = """
import pathlib
_every = pathlib.Path.rglob
def rglob(self, pattern, *others, **named):
    found = list(_every(self, pattern, *others, **named))
    if self.name == "holdfast" and pattern == "*.py":
        found = [file for file in found if "@kernel" in file.read_text()
                 or "@fast_kernel" in file.read_text() or "@entry" in file.read_text()]
    return found
pathlib.Path.rglob = rglob
"""


def mutated(mutant: dict[str, Any]) -> str | None:
    """The text of the file with the change; None if its line is gone."""
    text = (PACKAGE / mutant["file"]).read_text()
    lines = text.split("\n")
    same = [k for k, line in enumerate(lines) if line == mutant["line"]]
    if len(same) <= mutant["which"]:
        return None
    line = mutant["line"]
    changed = line[: mutant["begin"]] + mutant["new"] + line[mutant["end"] :]
    lines[same[mutant["which"]]] = changed
    return "\n".join(lines)


def run(mutant: dict[str, Any]) -> tuple[str, float]:
    """Killed, survived, timeout, stale or broken; and the time it took."""
    text = mutated(mutant)
    if text is None:
        return "stale", 0.0
    area = mutant["file"].split("/")[0]
    files, compiled, limit = TESTS[area]
    shutil.rmtree(PLACE / "src", ignore_errors=True)
    shutil.copytree(PACKAGE, PLACE / "src" / "holdfast")  # times of files are kept
    (PLACE / "src" / "sitecustomize.py").write_text(STAMP)
    (PLACE / "src" / "holdfast" / mutant["file"]).write_text(text)
    environment = os.environ | {
        "PYTHONPATH": str(PLACE / "src"), "NUMBA_CACHE_DIR": str(PLACE / "cache"),
        "NUMBA_DISABLE_JIT": "0" if compiled else "1", "OPENBLAS_NUM_THREADS": "1",
    }  # fmt: skip
    begin = time.monotonic()
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m",
               "not slow" if compiled else "not slow and not jit", *files]  # fmt: skip
    try:
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True,
                              timeout=limit, check=False)  # fmt: skip
    except subprocess.TimeoutExpired:
        return "timeout", time.monotonic() - begin
    verdict = {0: "survived", 1: "killed", 2: "killed"}.get(done.returncode, "killed")
    return verdict, time.monotonic() - begin


def key(mutant: dict[str, Any]) -> str:
    line = mutant["line"]
    changed = line[: mutant["begin"]] + "{" + line[mutant["begin"] : mutant["end"]] + " -> "
    return f"{mutant['file']}: " + (changed + mutant["new"] + "}" + line[mutant["end"] :]).strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--area", choices=AREAS)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--out", type=Path, default=None, help="JSON lines, one per mutant")
    wanted = parser.parse_args()
    mutants = json.loads(LIST.read_text())
    if wanted.area:
        mutants = [each for each in mutants if each["file"].startswith(wanted.area + "/")]
    known = json.loads(SURVIVORS.read_text()) if SURVIVORS.exists() else {}
    count: dict[str, int] = {}
    survivors, end = [], time.monotonic() + wanted.seconds
    for mutant in mutants[wanted.first :: wanted.every]:
        if time.monotonic() > end:
            break
        verdict, seconds = run(mutant)
        count[verdict] = count.get(verdict, 0) + 1
        print(f"{verdict:9s} {seconds:6.1f} s  {key(mutant)}", flush=True)
        if verdict == "survived":
            survivors.append(key(mutant))
        if wanted.out:
            with wanted.out.open("a") as file:
                file.write(json.dumps({"mutant": key(mutant), "verdict": verdict}) + "\n")
    tried = sum(count.values()) - count.get("stale", 0)
    dead = count.get("killed", 0) + count.get("timeout", 0)
    print(f"\n{tried} of {len(mutants)} mutants run: {count}")
    if tried:
        print(f"score {100.0 * dead / tried:.1f} %")
    for each in survivors:
        print(f"  survived: {each}\n    {known.get(each, 'no reason is known: write a test')}")


if __name__ == "__main__":
    main()
