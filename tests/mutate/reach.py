"""Which tests reach which mutants, and how long they take: what `mutate.score` chooses by.

    python -m mutate.reach [tests ...]

Each test file is run twice, with a mark before the statement of each mutant: with compiled
kernels, where mutants outside of kernels are marked, and as plain Python, where those inside are.
So a test is timed in the way in which it is run against the mutant. Results are kept, test file by
test file; a file is run again if it has changed, or for mutants that are new in the list.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import hashlib
import json
import os
import signal
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mutate import child
from mutate.mutant import LIST, PACKAGE, ROOT, Mutant, changes_kernel, key, line_of

PLACE = Path(os.environ.get("MUTATE_DIR", Path(tempfile.gettempdir(), "holdfast-mutate")))
REACH = PLACE / "reach.json"  # {test file: {"stamp", "asked", "times", "reached"}}
MARK = "_reached_mutant"
# [s] of the processor, compiled and not: a test that takes longer kills nothing, and tests of a
# file beyond its time are not known.
TOO_LONG, AT_MOST = {True: 8.0, False: 4.0}, {True: 60, False: 30}
FOLDERS = ("contact", "lcp", "linalg", "models", "mujoco", "events", "fuzz")
COMPILED_ONLY = ("events", "fuzz")  # tests of thousands of solves


Reached = dict[str, list[tuple[str, float]]]  # tests and their times, by mutant


class _Marker(ast.NodeTransformer):
    """Puts a call before each statement that holds a line."""

    def __init__(self, names: dict[int, list[str]]) -> None:
        self.names = names

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        for field in ("body", "orelse", "finalbody"):
            statements = getattr(node, field, None)
            if isinstance(statements, list) and statements:
                setattr(node, field, list(self._marked(statements)))
        return node

    def _marked(self, statements: list[Any]) -> Iterator[Any]:
        for each in statements:
            inside = [x.lineno for x in getattr(each, "body", []) if hasattr(x, "lineno")]
            end = min(inside) if inside else (each.end_lineno or each.lineno) + 1
            for number in range(each.lineno, end):
                for name in self.names.get(number, ()):
                    call = ast.parse(f"{MARK}({name!r})").body[0]
                    yield ast.copy_location(call, each)
            yield each


def marked(file: str, names: dict[int, list[str]]) -> ast.AST:
    """The syntax tree of a module with marks; its lines keep their numbers."""
    tree = _Marker(names).visit(ast.parse((PACKAGE / file).read_text()))
    return ast.fix_missing_locations(tree)


def all_marked(mutants: list[Mutant]) -> dict[str, child.Code]:
    """Modules with marks, by file."""
    files: dict[str, dict[int, list[str]]] = {}
    for mutant in mutants:
        at = line_of(mutant)
        if at is not None:
            files.setdefault(mutant["file"], {}).setdefault(at, []).append(key(mutant))
    return {file: partial(marked, file, names) for file, names in files.items()}


class TooLongError(BaseException):
    """A test has taken too long; no test catches it."""


class Watch:
    """The plugin: what each test reaches, its time, and an end to those that take too long."""

    def __init__(self, out: Path, limit: float) -> None:
        self.limit = limit
        self.met: set[str] = set()
        self.reached: Reached = {}
        self.times: dict[str, float] = {}
        self.out, self.passed = out, True

    def pytest_configure(self) -> None:
        """Begin."""
        setattr(builtins, MARK, self.met.add)
        signal.signal(signal.SIGPROF, self._stop)

    def _stop(self, _number: int, _frame: Any) -> None:
        raise TooLongError

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Time a test."""
        self.met.clear()
        self.passed, begin = True, time.process_time()
        signal.setitimer(signal.ITIMER_PROF, self.limit)
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0.0)
            seconds = time.process_time() - begin
            if self.passed:
                self.times[item.nodeid] = round(seconds, 2)
            for name in self.met if self.passed else ():
                self.reached.setdefault(name, []).append((item.nodeid, round(seconds, 2)))
            self.out.write_text(json.dumps([self.times, self.reached]))  # a test may end all

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """What pytest tells of a test."""
        self.passed &= report.outcome == "passed"


def load() -> dict[str, dict[str, Any]]:
    """What is known, by test file."""
    return json.loads(REACH.read_text()) if REACH.exists() else {}


def reached_by(
    file: str, mutants: list[Mutant], times: dict[str, float]
) -> tuple[dict[str, float], Reached]:
    """Run a test file in both ways: times of its tests, compiled, and what they reach.

    A way that no mutant asks for is left out, unless times are not known yet.
    """
    found: Reached = {}
    out, output = PLACE / "reached.json", PLACE / "output.txt"
    for compiled in (True, False):
        if not compiled and file.split("/")[1] in COMPILED_ONLY:
            continue
        out.write_text("[{}, {}]")
        some = [each for each in mutants if changes_kernel(each) != compiled]
        if not some and (times or not compiled):
            continue
        watch = Watch(out, TOO_LONG[compiled])
        child.run(
            [file], all_marked(some), watch, output, compiled=compiled, limit=AT_MOST[compiled]
        )
        seconds, reached = json.loads(out.read_text())
        times |= seconds if compiled else {}
        found |= reached
    return times, found


def collect(wanted: list[str]) -> None:
    """Run test files that have changed, or those that are named, and keep what they reach."""
    mutants: list[Mutant] = json.loads(LIST.read_text())
    every = [str(file.relative_to(ROOT)) for folder in FOLDERS
             for file in sorted((ROOT / "tests" / folder).glob("test_*.py"))]  # fmt: skip
    known = load()
    for file in wanted or every:
        stamp = hashlib.sha256((ROOT / file).read_bytes()).hexdigest()
        same = not wanted and known.get(file, {}).get("stamp") == stamp
        asked: list[str] = known[file]["asked"] if same else []
        new = [each for each in mutants if key(each) not in asked]
        if same and not new:
            continue
        begin = time.monotonic()
        times, reached = reached_by(file, new, known[file]["times"] if same else {})
        if same:
            reached = known[file]["reached"] | reached
        asked = asked + [key(each) for each in new]
        known[file] = {"stamp": stamp, "asked": asked, "times": times, "reached": reached}
        REACH.write_text(json.dumps(known))
        seconds = time.monotonic() - begin
        print(f"{file}: {len(reached)} mutants reached, {seconds:.0f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tests", nargs="*", help="test files that are run again")
    PLACE.mkdir(parents=True, exist_ok=True)
    child.prepare()
    collect(parser.parse_args().tests)


if __name__ == "__main__":
    main()
