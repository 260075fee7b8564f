"""``make mutate``: every mutant of mutants.json against the tests that reach it.

    python -m mutate.score [--area mujoco] [--seconds 3600] [--again survived]

A mutant is killed if a test fails, or if its tests take many times as long as they should. Tests
that reach its line (mutate.reach) are run one after the other, the quickest first, until one fails
or their time is used up. Kernels run as plain Python, which is quicker than to compile them anew
for each mutant; but tests of `events` take thousands of solves, and no other kernels call those of
its files: there, the kernels of the mutant's own file are compiled anew, and no others. Mutants are
taken from all folders in turn, and results are kept beside the copy of the sources, so that a run
that was stopped goes on. Survivors stand with their reasons in survivors.json.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import shutil
import signal
import subprocess
import time
from functools import cache, partial
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

from mutate import reach
from mutate.make import AREAS, LIST, PACKAGE, ROOT
from mutate.reach import COMMAND, PLACE, key, line_of

SURVIVORS = Path(__file__).with_name("survivors.json")
RESULTS = PLACE / "results.json"
BUDGET = 15.0  # [s] of the tests of one mutant, as long as they take without it
COMPILED = {"events": ["tests/events/test_data.py", "tests/events/test_events.py",
                       "tests/events/test_scenes.py"]}  # fmt: skip
PATIENCE = 3.0  # times that: a mutant that takes longer goes round in circles


def mutated(mutant: dict[str, Any]) -> str | None:
    """The text of the file with the change; None if its line is gone."""
    lines = (PACKAGE / mutant["file"]).read_text().split("\n")
    at, line = line_of(mutant, lines), mutant["line"]
    if at is None:
        return None
    lines[at] = line[: mutant["begin"]] + mutant["new"] + line[mutant["end"] :]
    return "\n".join(lines)


def tests_of(name: str) -> list[str]:
    """Tests that reach a mutant, the quickest first, as many as the budget allows."""
    every = [each for found in reach.load().values() for each in found.get(name, [])]
    chosen, total = [], 0.0
    for test, seconds in sorted(every, key=lambda pair: pair[1]):
        total += seconds
        if chosen and total > BUDGET:
            break
        chosen.append(test)
    return chosen


def stamp_by_file(cache: Path) -> None:
    """Let an edit in a folder of COMPILED compile the kernels of that file alone."""
    text = cache.read_text()
    own = "stamp() + hashlib.sha256(Path(self._py_file).read_bytes()).hexdigest()"
    for old, new in ((', "events")', ")"), ("return stamp()", f"return {own}")):
        if text.count(old) != 1:
            raise SystemExit(f"{cache}: {old!r} is not there once")
        text = text.replace(old, new)
    cache.write_text(text)


def attempt(area: str, file: str, text: str | None, tests: list[str], limit: float | None) -> bool:
    """Whether tests pass with another text of a file; None for the sources as they are.

    Raises:
        subprocess.TimeoutExpired: they take more time of the processor than the limit.
    """
    compiled = area in COMPILED
    source, command = PLACE / ("compiled" if compiled else "mutated"), [*COMMAND, "-x", *tests]
    environment = reach.environment(source)
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(PACKAGE, source / "holdfast", ignore=shutil.ignore_patterns("__pycache__"))
    if text is not None:
        (source / "holdfast" / file).write_text(text)
    if compiled:
        stamp_by_file(source / "holdfast" / "_cache.py")
        environment |= {"NUMBA_DISABLE_JIT": "0", "NUMBA_CACHE_DIR": str(PLACE / "cache")}
        command[command.index("not slow and not jit")] = "not slow"
    done = subprocess.run(command, cwd=ROOT, capture_output=True, env=environment, check=False,
                          preexec_fn=partial(_limit_time, limit))  # fmt: skip
    if done.returncode == -signal.SIGXCPU:
        raise subprocess.TimeoutExpired(command, limit or 0.0)
    return done.returncode == 0


def _limit_time(seconds: float | None) -> None:
    """Let the system end this process after so much time of the processor."""
    if seconds is not None:
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), resource.RLIM_INFINITY))


@cache
def usual_time(area: str) -> float:
    """How long the tests of a compiled folder take, without a mutant and with kernels compiled."""
    seconds = 0.0
    for _ in range(2):  # the first time kernels are compiled
        begin = time.monotonic()
        if not attempt(area, "", None, COMPILED[area], None):
            raise SystemExit(f"tests of {area} fail without any mutant")
        seconds = time.monotonic() - begin
    return seconds


def run(mutant: dict[str, Any]) -> tuple[str, float]:
    """Killed, survived, timeout, unreached or stale; and the time it took."""
    text, area = mutated(mutant), mutant["file"].split("/")[0]
    if text is None:
        return "stale", 0.0
    tests, usual = (COMPILED[area], usual_time(area)) if area in COMPILED else (
        tests_of(key(mutant)), BUDGET)  # fmt: skip
    if not tests:
        return "unreached", 0.0
    begin = time.monotonic()
    try:
        passed = attempt(area, mutant["file"], text, tests, PATIENCE * usual)
    except subprocess.TimeoutExpired:
        return "timeout", time.monotonic() - begin
    return "survived" if passed else "killed", time.monotonic() - begin


def in_turn(mutants: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One mutant of each folder, then a second one, and so on."""
    folders = [[each for each in mutants if each["file"].startswith(f"{area}/")] for area in AREAS]
    return [each for each in chain(*zip_longest(*folders)) if each]


def sources() -> str:
    """A digest of what results depend on: a result of other sources or tests is kept, but told."""
    digest = hashlib.sha256()
    for file in sorted(PACKAGE.rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--area", choices=AREAS)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--again", nargs="*", default=[], help="verdicts that are tried again")
    parser.add_argument("--report", action="store_true", help="run nothing")
    wanted = parser.parse_args()
    mutants = [each for each in in_turn(json.loads(LIST.read_text()))
               if each["file"].startswith(wanted.area or "")]  # fmt: skip
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    end, stamp = time.monotonic() + wanted.seconds, sources()
    if not wanted.report and wanted.area not in COMPILED:
        reach.collect([])
    for mutant in [] if wanted.report else mutants:
        name = key(mutant)
        if name in results and results[name]["verdict"] not in wanted.again:
            continue
        if time.monotonic() > end:
            break
        verdict, seconds = run(mutant)
        results[name] = {"verdict": verdict, "seconds": round(seconds, 1), "sources": stamp}
        RESULTS.write_text(json.dumps(results, indent=1))
        print(f"{verdict:9s} {seconds:6.1f} s  {name}", flush=True)
    report({key(each): results[key(each)] for each in mutants if key(each) in results},
           len(mutants), stamp)  # fmt: skip


def report(results: dict[str, Any], total: int, stamp: str) -> None:
    """The score, folder by folder, and the survivors with their reasons."""
    known = json.loads(SURVIVORS.read_text()) if SURVIVORS.exists() else {}
    other = sum(each["sources"] != stamp for each in results.values())
    print(f"\n{len(results)} of {total} mutants run, {other} of them on other sources")
    for area in (*AREAS, ""):
        verdicts = [each["verdict"] for name, each in results.items() if name.startswith(area)]
        tried = [each for each in verdicts if each != "stale"]
        dead = sum(each in ("killed", "timeout") for each in tried)
        if tried:
            print(
                f"{area or 'all':8s} {dead} of {len(tried)} killed: {100 * dead / len(tried):.1f} %"
            )
    for name, each in results.items():
        if each["verdict"] in ("survived", "unreached"):
            print(f"  {each['verdict']}: {name}")
            print(f"    {known.get(name, 'no reason is known: write a test')}")


if __name__ == "__main__":
    main()
