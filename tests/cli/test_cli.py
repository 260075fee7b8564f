"""The commands, called as a user calls them."""

from __future__ import annotations

import ast
import itertools
import json
import runpy
from pathlib import Path

import pytest

from command import holdfast

EXAMPLES = Path(__file__).parents[2] / "examples"
COMMANDS = Path(__file__).parents[2] / "src" / "holdfast" / "cli"


def test_demo_as_json() -> None:
    done = holdfast("demo", "--boxes", "2", "--duration", "0", "--format", "json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["solvers"]
    assert [row["variables"] for row in rows] == [54, 36, 36, 36]
    assert all(row["speed"] < 1e-12 and row["residual"] < 1e-10 for row in rows)


def test_demo_for_people() -> None:
    done = holdfast("demo", "--boxes", "2", "--duration", "0")
    assert done.returncode == 0, done.stderr
    assert "Held" in done.stdout and "Lemke" in done.stdout


@pytest.mark.parametrize("file", sorted(COMMANDS.glob("[a-z]*.py")), ids=lambda path: path.stem)
def test_help_texts_are_not_broken_into_lines(file: Path) -> None:
    """tyro keeps a line break before anything but a letter, and that is an indented line, too."""
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if not isinstance(node, ast.ClassDef):
            continue
        for line in (ast.get_docstring(node) or "").splitlines():
            assert not line or line[0].isalpha(), line
        for field, after in itertools.pairwise(node.body):
            if isinstance(field, ast.AnnAssign) and isinstance(after, ast.Expr):
                text = ast.literal_eval(after.value)
                assert "\n" not in text, text


def test_unknown_command_is_refused() -> None:
    done = holdfast("dance")
    assert done.returncode != 0
    assert "dance" in done.stderr + done.stdout


@pytest.mark.parametrize("script", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_examples_run(script: Path) -> None:
    runpy.run_path(str(script), run_name="__main__")
