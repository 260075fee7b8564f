"""Which tests reach which mutants, and how long they take: what `mutate.score` chooses by.

    python -m mutate.reach [tests ...]

Sources are copied with a mark before the statement of each mutant. Kernels run as plain Python, so
that marks inside them are met, too. Results are kept beside the copy, test file by test file; a
file that was seen before is not run again unless it is named.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings

from mutate.make import LIST, PACKAGE, ROOT

PLACE = Path(os.environ.get("MUTATE_DIR", Path(tempfile.gettempdir(), "holdfast-mutate")))
REACH = PLACE / "reach.json"  # {test file: {mutant: [[test, seconds], ...]}}
MARK = "_reached_mutant"
TOO_LONG = 8.0  # [s] a test that takes longer without compilation kills nothing
FOLDERS = ("tests/contact", "tests/lcp", "tests/models", "tests/mujoco")

# A test that fails is enough: no examples are made smaller.
settings.register_profile(
    "mutate",
    derandomize=True,
    deadline=None,
    max_examples=15,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def key(mutant: dict[str, Any]) -> str:
    """The mutant as text: its file, its line with the change, and which of equal lines it is."""
    line, which = mutant["line"], mutant["which"]
    changed = line[: mutant["begin"]] + "{" + line[mutant["begin"] : mutant["end"]] + " -> "
    text = (changed + mutant["new"] + "}" + line[mutant["end"] :]).strip()
    return f"{mutant['file']}: {text}" + (f" (#{which + 1})" if which else "")


def line_of(mutant: dict[str, Any], lines: list[str]) -> int | None:
    """Number of the mutant's line, from 0; None if it is gone."""
    same = [k for k, line in enumerate(lines) if line == mutant["line"]]
    return same[mutant["which"]] if len(same) > mutant["which"] else None


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


def mark_sources(target: Path) -> None:
    """Copy the package with marks."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(PACKAGE, target, ignore=shutil.ignore_patterns("__pycache__"))
    files: dict[str, dict[int, list[str]]] = {}
    for mutant in json.loads(LIST.read_text()):
        at = line_of(mutant, (PACKAGE / mutant["file"]).read_text().split("\n"))
        if at is not None:
            files.setdefault(mutant["file"], {}).setdefault(at + 1, []).append(key(mutant))
    for file, names in files.items():
        tree = _Marker(names).visit(ast.parse((PACKAGE / file).read_text()))
        (target / file).write_text(ast.unparse(ast.fix_missing_locations(tree)) + "\n")


class TooLongError(BaseException):
    """A test has taken too long; no test catches it."""


class Watch:
    """The plugin: what each test reaches, its time, and an end to those that take too long."""

    def __init__(self) -> None:
        self.met: set[str] = set()
        self.reached: dict[str, list[tuple[str, float]]] = {}
        self.out = Path(os.environ["MUTATE_REACHED"])
        setattr(builtins, MARK, self.met.add)
        signal.signal(signal.SIGALRM, self._stop)

    def _stop(self, _number: int, _frame: Any) -> None:
        raise TooLongError

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.met.clear()
        self.passed, begin = True, time.monotonic()
        signal.setitimer(signal.ITIMER_REAL, TOO_LONG)
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            seconds = time.monotonic() - begin
            for name in self.met if self.passed else ():
                self.reached.setdefault(name, []).append((item.nodeid, round(seconds, 2)))
            self.out.write_text(json.dumps(self.reached))  # at once: a test may end the process

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.passed &= report.outcome == "passed"


def pytest_configure(config: pytest.Config) -> None:
    if "MUTATE_REACHED" in os.environ:
        config.pluginmanager.register(Watch())


def environment(source: Path) -> dict[str, str]:
    """Plain Python, few examples, one thread."""
    return os.environ | {
        "PYTHONPATH": os.pathsep.join([str(source), str(ROOT / "tests")]),
        "NUMBA_DISABLE_JIT": "1", "OPENBLAS_NUM_THREADS": "1", "HYPOTHESIS_PROFILE": "mutate",
        "PYTHONDONTWRITEBYTECODE": "1",
    }  # fmt: skip


COMMAND = [sys.executable, "-m", "pytest", "-q", "-p", "mutate.reach", "-p", "no:cacheprovider",
           "-p", "no:benchmark", "-m", "not slow and not jit"]  # fmt: skip


def load() -> dict[str, dict[str, list[tuple[str, float]]]]:
    return json.loads(REACH.read_text()) if REACH.exists() else {}


def collect(wanted: list[str]) -> None:
    """Run test files and keep what they reach; those that are not known if none is named."""
    every = [str(file.relative_to(ROOT)) for folder in FOLDERS
             for file in sorted((ROOT / folder).glob("test_*.py"))]  # fmt: skip
    known, source, out = load(), PLACE / "marked", PLACE / "reached.json"
    files = wanted or [file for file in every if file not in known]
    if files:
        mark_sources(source / "holdfast")
    for file in files:
        out.write_text("{}")
        begin = time.monotonic()
        done = subprocess.run([*COMMAND, file], cwd=ROOT, capture_output=True, text=True,
                              env=environment(source) | {"MUTATE_REACHED": str(out)},
                              check=False)  # fmt: skip
        known[file] = json.loads(out.read_text())
        REACH.write_text(json.dumps(known))
        last = (done.stdout.strip() or done.stderr.strip()).splitlines()[-1:]
        seconds = time.monotonic() - begin
        print(f"{file}: {len(known[file])} mutants reached, {seconds:.0f} s {last}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tests", nargs="*", help="test files that are run again")
    collect(parser.parse_args().tests)


if __name__ == "__main__":
    main()
