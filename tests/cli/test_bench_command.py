"""``holdfast bench``: numbers that mean what they say."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_info

import holdfast as hf
from command import holdfast
from holdfast.experiments import runner
from holdfast.experiments.parts import Trial
from holdfast.tools.bench import machine, run, scenes, solvers, steps
from holdfast.tools.bench.delassus import delassus, fits, project
from holdfast.tools.bench.timing import Call, interleave


def test_the_command_as_json(tmp_path: Path) -> None:
    out = tmp_path / "bench.json"
    done = holdfast("bench", "--scenes", "grasp", "--seconds", "0.2", "--format", "json",
                    "--out", str(out))  # fmt: skip
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert json.loads(out.read_text()) == result
    assert result["cores"] >= 1 and 0 < result["core_share"] <= 1
    assert ("the machine is busy" in done.stderr) == (result["core_share"] < run.BUSY)
    tables = {each["part"]: each for each in result["tables"]}
    assert list(tables) == ["step", "rollout", "solve"]
    rows = {row["who"]: row for row in tables["step"]["rows"]}
    assert {steps.OURS, steps.DEFAULT, steps.NOSLIP} <= rows.keys()
    assert rows[steps.OURS]["ratio"] == {"median": 1.0, "low": 1.0, "high": 1.0}
    for row in rows.values():
        assert row["ratio"]["low"] <= row["ratio"]["median"] <= row["ratio"]["high"]
        assert 1e-7 < row["seconds"]["median"] < 1.0
    peers = [row["who"] for row in tables["solve"]["rows"]]
    notes = " ".join(tables["solve"]["notes"])
    assert all(any(name in text for text in (*peers, notes)) for name in ("Pinocchio", "Siconos"))


@pytest.mark.slow
def test_the_command_for_people() -> None:
    done = holdfast("bench", "--quick", "--scenes", "grasp", "--parts", "step")
    assert done.returncode == 0, done.stderr
    assert "One step from Python" in done.stdout and "BLAS thread each" in done.stdout
    done = holdfast("bench", "--seconds", "0")
    assert done.returncode == 2 and "positive number of seconds" in done.stderr


def test_ratios_are_those_of_the_calls() -> None:
    seen: set[int] = set()

    def spend(seconds: float) -> None:
        seen.update(each["num_threads"] for each in threadpool_info())
        time.sleep(seconds)

    calls = {"first": Call(lambda: spend(0.01)), "second": Call(lambda: spend(0.03), unit=2)}
    times = interleave(calls, 0.2)
    assert times.ratios["second"].median == pytest.approx(1.5, rel=0.35)
    assert times.share < 0.9  # sleeping is not work
    assert seen <= {1}


def test_calls_that_time_themselves() -> None:
    times = interleave({"a": Call(lambda: 0.5, inner=True), "b": Call(lambda: 2.0, inner=True)}, 0)
    assert times.ratios["b"].median == 4.0


def test_warnings_of_a_busy_machine() -> None:
    assert run._warnings(1.0, 2.0, 2, 0.1) == []
    busy, scaling = run._warnings(0.5, 1.1, 2, 3.0)
    assert "50 % of a core" in busy and "load was 3.0" in busy
    assert "1.10 times the work" in scaling
    assert 0.0 < machine.core_share(0.02) <= 1.0
    assert machine.parallel_speedup(1, 0.02) == pytest.approx(1.0, abs=0.9)


def test_one_judge_for_all_solvers() -> None:
    """Our answer solves the Delassus form; another one does not."""
    scene = scenes.load("grasp")
    problem = hf.build_problem(scene.model, scene.data)
    assert fits(problem)
    form = delassus(problem)
    solution = hf.Coulomb().solve(problem)
    r = np.column_stack([solution.normal, solution.tangent]) / form.scale[:, None]
    assert form.residual(r) < 1e-9
    assert form.residual(1.01 * r) > 1e-4
    times, answers, _ = solvers.time_solvers(scene, 0.0)
    assert times is not None and set(answers) <= set(times.seconds)
    assert max(answers.values()) < 1e-8


def test_projection_onto_the_cone() -> None:
    mu = np.array([0.5, 0.5, 0.5, 0.0])
    x = np.array([[2.0, 0.5, 0.0], [-2.0, 0.1, 0.1], [0.0, 3.0, 4.0], [1.0, 1.0, 0.0]])
    y = project(x, mu)
    assert y[0] == pytest.approx(x[0]) and y[1] == pytest.approx(0.0)
    assert np.linalg.norm(y[2, 1:]) == pytest.approx(0.5 * y[2, 0])
    assert (x[2] - y[2]) @ y[2] == pytest.approx(0.0)
    assert y[3] == pytest.approx([1.0, 0.0, 0.0])


def test_trials_of_experiments_have_one_blas_thread(tmp_path: Path) -> None:
    """So that ``holdfast reproduce`` prints the same ratios whoever starts it."""

    class Counts:
        name = "counts"

        def trials(self, *, quick: bool) -> list[Trial]:
            return [Trial("threads", lambda report: {
                "threads": [each["num_threads"] for each in threadpool_info()]})]  # fmt: skip

        def sections(self, results: object) -> list[object]:
            return []

    results = runner.run([Counts()], runner.Folder(tmp_path / "r", {}), quick=True)  # type: ignore[list-item]
    assert set(results["counts"]["threads"]["threads"]) == {1}
