"""``make mutate``: every mutant of mutants.json against the tests that reach it.

    python -m mutate.score [--area lcp] [--file NAME] [--seconds 3600] [--again survived]

A mutant is killed if a test fails, or if its tests take many times as long as they should. Tests
that reach its line (mutate.reach) are run one after the other until one fails or their time is used
up: first those that have killed other mutants of the same file, then the quickest. Outside of
kernels nothing is compiled again. Kernels run as plain Python, which is quicker than to compile
them anew for each mutant; but tests of `events` take thousands of solves, and no other kernels call
those of its files: there, the kernels of the mutant's own file are compiled anew, and no others.
The same holds for the guarded call of `c_api`, which plain Python does without. Mutants are taken
from all folders in turn, and results are kept in MUTATE_DIR, so that a run that was stopped goes
on.
Survivors stand with their reasons in survivors.json.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import signal
import time
from collections import Counter
from collections.abc import Iterator
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

import pytest

from mutate import child, reach
from mutate.make import AREAS
from mutate.mutant import LIST, PACKAGE, Mutant, changes_kernel, key, line_of, mutated
from mutate.reach import PLACE

SURVIVORS = Path(__file__).with_name("survivors.json")
RESULTS = PLACE / "results.json"
BUDGET = 15.0  # [s] of the tests of one mutant, as long as they take without it
START = {True: 20.0, False: 4.0}  # [s] that a test may take longer, if kernels are compiled and not
PATIENCE = 3.0  # times as long, too: a mutant that takes longer goes round in circles
COMPILED = ("events/", "mujoco/c_api.py")  # kernels of these are compiled: no others call them
LIVING = ("survived", "unreached")

Results = dict[str, dict[str, Any]]


class Killer:
    """The plugin that notes the test that fails, and ends the process at one that does not end."""

    def __init__(self, out: Path, usual: dict[str, float], start: float) -> None:
        self._out, self._usual, self._start = out, usual, start

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Limit the time of a test, inside of kernels, too."""
        limit = PATIENCE * self._usual.get(item.nodeid, 0.0) + self._start
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, limit)
        return (yield)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """What pytest tells of a test."""
        if report.failed:
            self._out.write_text(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """What pytest tells of a file: it may not be possible to import it."""
        if report.failed and report.nodeid:
            self._out.write_text(report.nodeid)


def candidates(mutant: Mutant) -> list[tuple[str, float]]:
    """Tests that may see a mutant, and their times."""
    known, area = reach.load(), area_of(mutant)
    if is_compiled(mutant) and changes_kernel(mutant):  # no marks in it: all tests of its folder
        files = [each for name, each in known.items() if name.split("/")[1] == area]
        return [pair for each in files for pair in each["times"].items()]
    return [(test, seconds) for each in known.values()
            for test, seconds in each["reached"].get(key(mutant), [])]  # fmt: skip


def tests_of(mutant: Mutant, results: Results, budget: float) -> dict[str, float]:
    """Tests of a mutant and their times, the most likely killers first, within the budget."""
    kills = Counter(
        each["killer"] for name, each in results.items() if name.startswith(mutant["file"] + ":")
    )
    chosen, total = {}, 0.0
    every = sorted(candidates(mutant), key=lambda pair: (-kills[pair[0]], pair[1]))
    for test, seconds in every:
        if not chosen or total + seconds <= budget:
            total += seconds
            chosen[test] = seconds
    return chosen


def area_of(mutant: Mutant) -> str:
    """The folder."""
    return mutant["file"].split("/")[0]


def is_compiled(mutant: Mutant) -> bool:
    """Whether kernels of the mutant's file are compiled anew, instead of run as plain Python."""
    return mutant["file"].startswith(COMPILED)


def run(mutant: Mutant, results: Results, budget: float) -> tuple[str, str]:
    """Killed, survived, timeout, unreached or stale; and the test that killed it."""
    if line_of(mutant) is None:
        return "stale", ""
    tests = tests_of(mutant, results, budget)
    if not tests:
        return "unreached", ""
    inside, killer = changes_kernel(mutant), PLACE / "killer.txt"
    compiled = not inside or is_compiled(mutant)
    killer.write_text("")
    status = child.run(
        ["-x", *tests], {mutant["file"]: lambda: mutated(mutant)}, 
        Killer(killer, tests, START[compiled]), PLACE / "output.txt", compiled=compiled,
        afresh=mutant["file"] if inside else "",
    )  # fmt: skip
    if status == -signal.SIGPROF:
        return "timeout", ""
    found = killer.read_text() or (f"signal {-status}" if status < 0 else "")
    if status != 0 and not found:
        raise SystemExit(f"no test has run, see {PLACE / 'output.txt'}: {key(mutant)}")
    return ("killed", found) if found else ("survived", "")


def in_turn(mutants: list[Mutant]) -> list[Mutant]:
    """One mutant of each folder, then a second one, and so on."""
    folders = [[each for each in mutants if area_of(each) == area] for area in AREAS]
    return [each for each in chain(*zip_longest(*folders)) if each]


def sources() -> str:
    """A digest of what results depend on: a result of other sources is kept, but told."""
    digest = hashlib.sha256()
    for file in sorted(PACKAGE.rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--area", choices=AREAS)
    parser.add_argument("--file", default="", help="only mutants whose file has this in its name")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--budget", type=float, default=BUDGET, help="[s] of the tests of a mutant")
    parser.add_argument(
        "--again", nargs="*", default=[], help="verdicts that are tried again, without a reason"
    )
    parser.add_argument("--known", action="store_true", help="run no test file to see its reach")
    parser.add_argument("--report", action="store_true", help="run nothing")
    wanted = parser.parse_args()
    mutants = [
        each
        for each in in_turn(json.loads(LIST.read_text()))
        if area_of(each) == (wanted.area or area_of(each)) and wanted.file in each["file"]
    ]
    results: Results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    end, stamp = time.monotonic() + wanted.seconds, sources()
    reasons = json.loads(SURVIVORS.read_text())
    if not wanted.report:
        PLACE.mkdir(parents=True, exist_ok=True)
        child.prepare()
        if not wanted.known:
            reach.collect([])
    for mutant in [] if wanted.report else mutants:
        name = key(mutant)
        known = name in results and (
            results[name]["verdict"] not in wanted.again or name in reasons
        )
        if known:
            continue
        if time.monotonic() > end:
            break
        begin = time.monotonic()
        verdict, killer = run(mutant, results, wanted.budget)
        seconds = round(time.monotonic() - begin, 1)
        results[name] = {"verdict": verdict, "killer": killer, "seconds": seconds, "sources": stamp}
        RESULTS.write_text(json.dumps(results, indent=1))
        print(f"{verdict:9s} {seconds:6.1f} s  {name}  {killer}", flush=True)
    report({key(each): results[key(each)] for each in mutants if key(each) in results},
           len(mutants), stamp)  # fmt: skip


def report(results: Results, total: int, stamp: str) -> None:
    """The score, folder by folder, and the survivors with their reasons."""
    known = json.loads(SURVIVORS.read_text())
    other = sum(each["sources"] != stamp for each in results.values())
    print(f"\n{len(results)} of {total} mutants run, {other} of them on other sources")
    for area in (*AREAS, ""):
        tried = {name: each["verdict"] for name, each in results.items()
                 if name.startswith(area) and each["verdict"] != "stale"}  # fmt: skip
        dead = sum(each in ("killed", "timeout") for each in tried.values())
        same = sum(name in known for name, each in tried.items() if each in LIVING)
        if len(tried) > same:
            print(f"{area or 'all':8s} {dead} of {len(tried) - same} killed, {same} more change "
                  f"no behaviour: {100 * dead / (len(tried) - same):.1f} %")  # fmt: skip
    for name, each in results.items():
        if each["verdict"] in LIVING:
            print(f"  {each['verdict']}: {name}")
            print(f"    {known.get(name, 'no reason is known: write a test')}")


if __name__ == "__main__":
    main()
