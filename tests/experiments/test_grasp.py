"""The grasp in motion: geometry, time stepping, and what is measured."""

from __future__ import annotations

import math
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.experiments.grasp.runs import (
    CONTROL,
    LOOSE,
    MODELS,
    PPM,
    PRESSED,
    TIGHT,
    MaximalRun,
    Scale,
    follow,
    time_in_turns,
)
from holdfast.experiments.grasp.scene import RowOfBoxes, grasp
from holdfast.experiments.maximal import WORLD, X, Z, contact_rows, point_row, rotation


def nothing(_: float) -> None:
    pass


def test_first_step_is_the_papers() -> None:
    scene = grasp(2)
    assert scene["M"].shape == (24, 24) and scene["N"].shape == (36, 24)
    assert np.linalg.matrix_rank(scene["N"]) == 9
    assert np.linalg.matrix_rank(np.vstack([scene["J"], scene["S"], scene["T"]])) == 18
    assert len(scene["J"]) == 10
    fields = RowOfBoxes(2).fields()
    assert not fields["c_N"].any() and np.array_equal(fields["N"], scene["N"])


def test_rows_at_once_are_the_rows_one_by_one() -> None:
    rng = np.random.default_rng(0)
    bodies, point, along = rng.normal(size=(4, 3)), rng.normal(size=(5, 3)), rng.normal(size=(5, 3))
    first, second = np.array([0, 1, WORLD, 2, 3]), np.array([1, 3, 2, WORLD, 0])
    rows = contact_rows(bodies, first, second, point, along)
    for k in range(5):
        a, b = (None if i == WORLD else int(i) for i in (first[k], second[k]))
        np.testing.assert_allclose(rows[k], point_row(bodies, a, b, point[k], along[k]), rtol=1e-15)


def test_rotations() -> None:
    turns = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, np.pi / 2], [1e-9, 0.0, 0.0], [0.3, -2.0, 1.0]])
    R = rotation(turns)
    np.testing.assert_array_equal(R[0], np.eye(3))
    np.testing.assert_allclose(R[1] @ X, [0, 1, 0], atol=1e-15)
    np.testing.assert_allclose(R[2] @ [0, 1, 0], [0, 1, 1e-9], rtol=1e-15)
    np.testing.assert_allclose(R @ np.transpose(R, (0, 2, 1)), np.tile(np.eye(3), (4, 1, 1)),
                               atol=1e-15)  # fmt: skip
    np.testing.assert_allclose(R[3] @ turns[3], turns[3], rtol=1e-14)  # the axis stays


def test_contacts_follow_the_poses() -> None:
    row = RowOfBoxes(2)
    row.centre[2] += [1e-4, 0.0, -0.2]  # the right box, lower and a hair to the right
    touching = row.touching()
    middle = touching.left == 1
    assert middle.sum() == 12 and np.allclose(touching.gap[middle], 1e-4)
    np.testing.assert_allclose(np.unique(touching.point[middle, 2]), [-0.5, 0.3])
    # it now overlaps the right gripper by as much
    assert row.penetration() == pytest.approx(1e-4) and row.held() == 1
    row.centre[2] += [0.0, 0.0, -1.0]
    assert not (row.touching().left == 1).any()  # faces no longer meet


def test_gap_of_a_turned_box_is_the_distance_of_the_faces() -> None:
    row, angle = RowOfBoxes(2), 1e-4
    row.turn[2] = rotation(np.array([[0.0, angle, 0.0]]))[0]
    touching = row.touching()
    middle = touching.left == 1
    # about y: the face's upper edge moves left, into its neighbour... and the lower one away
    expected = -0.5 * (1 - 1 / np.cos(angle)) + np.tan(angle) * -touching.point[middle, 2]
    np.testing.assert_allclose(np.abs(touching.gap[middle]), np.abs(expected), atol=1e-8)
    assert (touching.gap[middle] < 0).sum() == 6


def test_free_boxes_fall_exactly() -> None:
    """Symplectic Euler: after k steps z = -g h^2 k (k + 1) / 2."""
    row = RowOfBoxes(1, squeeze=0.0)
    row.centre[1, 0] += 0.0
    for _ in range(10):
        free = row.velocity + row.h * np.linalg.solve(row.M, row.f)
        row.advance(free)
    assert row.centre[1, 2] == pytest.approx(-9.81 * 1e-4 * 55, rel=1e-14)
    assert row.held() == 0


@pytest.mark.jit  # many steps: without compilation they take too long
@pytest.mark.parametrize("name", [PPM, PRESSED])
@pytest.mark.parametrize("boxes", [2, 3, 8])
def test_rows_are_held(name: str, boxes: int) -> None:
    scale = Scale(boxes)
    result = follow(MaximalRun(MODELS[name], scale), scale, (10, 30), math.inf, nothing)
    assert result["held"] == {"10": boxes, "30": boxes} and result["ended"] == ""
    assert result["farthest"] < 1e-12 and result["penetration"] < 1e-12
    assert result["complementarity"] < 1e-12
    assert result["variables"] == 12 * (boxes + 1)


def test_pivots_are_those_of_the_complementarity_problem() -> None:
    """About 5 on average and 7 at most in the paper; the 18 equality rows are not counted."""
    run = MaximalRun(MODELS[PPM], Scale(2))
    for _ in range(10):
        run.step()
        assert run.last.rank == 18
        assert 1 <= run.pivots() <= 7


def test_variables_of_stewart_and_trinkle() -> None:
    run = MaximalRun(MODELS[TIGHT], Scale(2))
    run.step()
    assert run.variables() == 216 and run.complementarity() < 1e-12


@pytest.mark.jit
@pytest.mark.parametrize("name", [PPM, PRESSED])
def test_the_negative_control_opens(name: str) -> None:
    result = follow(MaximalRun(MODELS[name], CONTROL), CONTROL, (10, 100), math.inf, nothing)
    assert "lost" in result["ended"] and result["held"]["100"] == 0
    assert result["farthest"] > CONTROL.size


class Failing(hf.NoSlip):
    def solve(self, problem: hf.ContactProblem, warm_start: Any = None) -> Any:
        raise hf.SolveError("no luck", status=hf.lcp.Status.RAY, problem=problem)


def test_a_failing_solver_ends_the_run() -> None:
    result = follow(MaximalRun(Failing(), Scale(2)), Scale(2), (10,), math.inf, nothing)
    assert result["steps"] == 0 and "failed in step 1: no luck" in result["ended"]
    assert result["held"] == {}


def test_time_is_up() -> None:
    result = follow(MaximalRun(MODELS[PPM], Scale(2)), Scale(2), (2, 1000), 0.0, nothing)
    assert "more than 0 s" in result["ended"] and result["steps"] < 1000


def test_methods_take_turns() -> None:
    order = []

    class Turn:
        def __init__(self, name: str) -> None:
            self.name = name

        def timed_step(self) -> tuple[float, float]:
            order.append(self.name)
            return 1.0, 2.0

    times = time_in_turns({name: Turn(name) for name in "ab"}, 3)  # type: ignore[dict-item]
    assert order == list("aaabbb") and times["a"] == {"solve": [1.0] * 3, "step": [2.0] * 3}


def test_times_are_those_of_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that is busy with something else makes no method slower."""
    run = MaximalRun(MODELS[PPM], Scale(2))
    run.step()  # compiled by now
    solve = MODELS[PPM].solve

    def waits(problem: hf.ContactProblem) -> hf.ContactSolution:
        time.sleep(0.5)
        return solve(problem)

    monkeypatch.setattr(run, "model", SimpleNamespace(solve=waits))
    inner, whole = run.timed_step()
    assert 0.0 < inner <= whole < 0.4


def test_a_method_that_fails_is_left_out_of_the_turns() -> None:
    runs = {"good": MaximalRun(MODELS[PPM], Scale(2)), "bad": MaximalRun(Failing(), Scale(2))}
    times = time_in_turns(runs, 2)
    assert len(times["good"]["step"]) == 2 and "failed" not in times["good"]
    assert times["bad"]["step"] == [] and "step 1: no luck" in times["bad"]["failed"]


@pytest.mark.jit
def test_reduced_rows() -> None:
    from holdfast.experiments.grasp.mujoco_runs import SETTINGS, HoldfastRow, MujocoRow

    scale = Scale(2)
    ours = HoldfastRow(MODELS[PRESSED], 2, scale.options())
    result = follow(ours, scale, (10, 50), math.inf, nothing)
    assert result["held"] == {"10": 2, "50": 2} and result["farthest"] < 1e-12
    solve, step = ours.timed_step()
    assert solve > 0 and step > 0
    soft = {}
    for name in SETTINGS:
        run = MujocoRow(name, 2, scale.options())
        soft[name] = follow(run, scale, (10, 50), math.inf, nothing)
        before = run.data.qpos.copy()
        run._seconds_of_solve()  # on scratch data: the run itself is not disturbed
        assert np.array_equal(run.data.qpos, before)
    assert all(each["penetration"] > 1e-4 for each in soft.values())
    assert soft["MuJoCo, default"]["farthest"] > 1e-3
    # soft contacts move while they push: that is what the residual measures
    assert all(1e-6 < each["complementarity"] < 1.0 for each in soft.values())


@pytest.mark.jit
def test_the_section_on_the_grasp(monkeypatch: pytest.MonkeyPatch) -> None:
    """From trials to tables, without a way to draw pictures of the scene."""
    from holdfast.experiments.grasp import experiment as grasp_experiment
    from holdfast.experiments.grasp.experiment import Grasp

    monkeypatch.setenv("MUJOCO_GL", "none such")
    for name, value in {"QUICK_MARKS": (5, 10), "QUICK_TRIALS": 1, "TIMED_STEPS": 2,
                        "QUICK_SECONDS": 0.3}.items():  # fmt: skip
        monkeypatch.setattr(grasp_experiment, name, value)
    experiment = Grasp()
    results = {each.name: each.run(nothing) for each in experiment.trials(quick=True)}
    sections = experiment.sections(results)
    tables = {table.name: table for section in sections for table in section.tables}
    assert any("No pictures" in text for text in sections[1].text)
    targets = {row["target"]: row for row in tables["grasp_targets"].rows}
    assert targets["pivots of the modified PPM, most"]["met"] == "yes"
    maximal = {row["method"]: row for row in tables["grasp_maximal"].rows}
    assert maximal[PPM]["ratio"] == 1.0 and maximal[PPM]["LCP variables"] == 36
    assert maximal[LOOSE]["LCP variables"] == 216
    beside = {row["quantity"]: row for row in tables["grasp_paper"].rows}
    ratio = beside["ratio of whole simulations, Stewart-Trinkle over modified PPM"]
    assert ratio["paper"] == pytest.approx(10.9681 / 1.6680)
    assert all(row["source"] for row in beside.values())
    assert {row["opens"] for row in tables["grasp_control"].rows} <= {"yes", "no"}


@pytest.mark.jit
def test_pictures_or_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    from holdfast.tools.render import NoPictureError, render
    from holdfast.tools.scenes import row_of_boxes

    camera = {"lookat": [0, 0, 0], "distance": 4.0, "azimuth": 90, "elevation": -10}
    state = [[0.0] * 2 + [-0.5, 0, 0, 1, 0, 0, 0] + [0.5, 0, 0, 1, 0, 0, 0]]
    try:
        (picture,) = render(row_of_boxes(2), state, camera=camera, width=160, height=90)
    except NoPictureError as error:
        assert "OpenGL" in str(error)
    else:
        assert picture.shape == (90, 160, 3) and picture.std() > 1
    monkeypatch.setenv("MUJOCO_GL", "none such")
    with pytest.raises(NoPictureError, match="none such"):
        render(row_of_boxes(2), state, camera=camera)


def test_gravity_is_along_z() -> None:
    assert RowOfBoxes(1).f.reshape(-1, 6)[1] @ np.concatenate([Z, np.zeros(3)]) == -9.81
