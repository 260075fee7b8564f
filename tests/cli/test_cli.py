"""The commands, called as a user calls them."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

from command import holdfast

EXAMPLES = Path(__file__).parents[2] / "examples"


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


def test_unknown_command_is_refused() -> None:
    done = holdfast("dance")
    assert done.returncode != 0
    assert "dance" in done.stderr + done.stdout


@pytest.mark.parametrize("script", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_examples_run(script: Path) -> None:
    runpy.run_path(str(script), run_name="__main__")
