"""The quadruped that trots: its geometry, its gait, its ground, and the trials of the report."""

from __future__ import annotations

import json

import mujoco
import numpy as np
import pytest

from holdfast.experiments.locomotion import experiment as locomotion
from holdfast.experiments.locomotion import gait as g
from holdfast.experiments.locomotion import tables as locomotion_tables
from holdfast.experiments.locomotion.experiment import (
    GROUNDS,
    LABELS,
    LETTER,
    NO_SLIP,
    SHELL,
    Locomotion,
    course_of,
)
from holdfast.experiments.locomotion.methods import MujocoWalk, SteppedWalk, ViscousWalk
from holdfast.experiments.locomotion.terrain import PEAK, SAMPLES, SIDE, bumps, flat
from holdfast.experiments.locomotion.walk import Course, Walk, histogram, in_turns
from holdfast.experiments.locomotion.walker import KP, walker
from holdfast.experiments.parts import Section
from holdfast.models import NoSlip
from holdfast.tools.scenes import LEGS

# --- gait ----------------------------------------------------------------------------------------


def test_inverse_kinematics_is_exact() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        feet = g.FEET + rng.uniform(-0.03, 0.03, (4, 3))
        assert np.abs(g.foot_places(g.joint_angles(feet)) - feet).max() < 1e-15


def test_kinematics_are_those_of_the_model() -> None:
    model = mujoco.MjModel.from_xml_string(walker(flat(), start=(0.0, 0.0)))
    data = mujoco.MjData(model)
    rng = np.random.default_rng(1)
    for _ in range(20):
        feet = g.FEET + rng.uniform(-0.03, 0.03, (4, 3))
        data.qpos[:7] = [0, 0, 0, 1, 0, 0, 0]
        data.qpos[7:] = g.joint_angles(feet).ravel()
        mujoco.mj_kinematics(model, data)
        places = np.array([data.geom(f"{leg}_foot").xpos for leg in LEGS])
        assert np.abs(places - feet).max() < 1e-14


def test_knees_point_outward_as_published() -> None:
    roll, pitch, knee = g.joint_angles(g.FEET).T
    assert (np.sign(roll) == [1, -1, 1, -1]).all()
    assert (np.sign(knee) == [1, 1, -1, -1]).all() and (np.sign(pitch) == -np.sign(knee)).all()


def test_a_place_out_of_reach_stretches_the_leg() -> None:
    far = g.FEET * [1, 1, 3]
    angles = g.joint_angles(far)
    assert np.isfinite(angles).all() and np.abs(angles[:, 2]).max() == 0.0


def test_bezier_is_what_bernstein_says() -> None:
    points = np.random.default_rng(2).normal(size=(4, 3))
    for s in (0.0, 0.3, 1.0):
        weights = [(1 - s) ** 3, 3 * s * (1 - s) ** 2, 3 * s**2 * (1 - s), s**3]
        assert g.bezier(points, s) == pytest.approx(weights @ points, abs=1e-15)


def test_swing_leaves_and_meets_the_ground_at_its_velocity() -> None:
    gait = g.Gait()
    start, end, velocity = np.array([[-0.01, 0.1, 0.0], [0.01, 0.1, 0.004], [-0.05, 0.0, 0.0]])
    path = g.swing_path(start, end, velocity, gait)
    assert np.array_equal(g.bezier(path, 0.0), start) and np.array_equal(g.bezier(path, 1.0), end)
    ds = 1e-6
    for s, side in ((0.0, 1), (1.0, -1)):
        moved = side * (g.bezier(path, s + side * ds) - g.bezier(path, s)) / (ds * gait.swing)
        assert moved == pytest.approx(velocity, abs=1e-5)
    level = g.swing_path(start, start, velocity, gait)
    top = max(g.bezier(level, s)[2] for s in np.linspace(0, 1, 101))
    assert top == pytest.approx(gait.lift, rel=1e-12)


def test_commands_are_continuous() -> None:
    """No jump at lift-off, touchdown or between cycles: not more than a swing moves in 1 ms."""
    trot, qpos = g.Trot(g.Gait(), bumps(3), lead=0.0), np.zeros(19)
    qpos[3] = 1.0
    air = np.zeros(4, dtype=bool)
    angles = np.array([trot(0.001 * k, qpos, air) for k in range(2000)])
    assert np.abs(np.diff(angles, axis=0)).max() < 0.02
    assert np.ptp(angles, axis=0).max() > 0.2  # and it does move


def test_legs_reach_down_by_what_servos_give_way() -> None:
    angles, give = g.joint_angles(g.FEET), np.zeros(4)
    for joint in range(3):
        moved = angles + 1e-6 * np.eye(3)[joint]
        lever = (g.foot_places(moved) - g.foot_places(angles))[:, 2] / 1e-6
        give += 0.5 * 1.34 * 9.81 * lever**2 / KP
    assert give == pytest.approx(g.GIVE, rel=0.2)


def test_a_foot_that_touches_ends_its_swing() -> None:
    """It goes on down no faster than it is asked to press, and is not lifted again."""
    gait = g.Gait()
    trot, qpos, touches = g.Trot(gait, flat(), lead=0.0), np.zeros(19), np.zeros(4, dtype=bool)
    qpos[3] = 1.0
    early = gait.rest + 0.8 * gait.swing  # 2 mm above the ground
    heights, t = [], 0.0
    while t < gait.rest + gait.stance:
        touches[0] = t >= early
        angles = trot(t, qpos, touches)
        heights.append(g.foot_places(angles.reshape(4, 3))[0, 2] - g.FEET[0, 2])
        if touches[0]:
            assert not trot.swings[0] and not trot.lands[0]
        t += 0.001
    down = np.array(heights[round(early / 0.001) :])
    assert down[0] > 0.001 and down[-1] == pytest.approx(-g.GIVE, abs=1e-6)
    assert (np.diff(down) <= 1e-12).all()
    assert trot.lands[3] and not trot.swings[3]  # that one has touched nothing yet


def test_diagonal_legs_swing_together() -> None:
    gait = g.Gait()
    cycles = np.array([gait.cycles(t) for t in np.arange(1.0, 4.0, 0.001)])
    air = (cycles % 1.0) < 1.0 - gait.duty
    assert np.array_equal(air[:, 0], air[:, 3]) and np.array_equal(air[:, 1], air[:, 2])
    assert not (air[:, 0] & air[:, 1]).any()
    assert air.mean() == pytest.approx(0.25, abs=0.02)


# --- ground --------------------------------------------------------------------------------------


def test_terrain_is_drawn_from_its_seed() -> None:
    one, again, other = bumps(5), bumps(5), bumps(6)
    assert np.array_equal(one.heights, again.heights)
    assert not np.array_equal(one.heights, other.heights)
    assert one.heights.shape == (SAMPLES, SAMPLES)
    assert one.heights.min() == 0.0 and one.heights.max() == pytest.approx(PEAK)
    assert one.steepness[1] < 0.5


def test_the_map_is_where_the_ground_is() -> None:
    """Rays from above meet the height field where the map says; rows are not mirrored."""
    terrain = bumps(0)
    model = mujoco.MjModel.from_xml_string(walker(terrain))
    data, hit = mujoco.MjData(model), np.zeros(1, dtype=np.int32)
    data.qpos[:] = model.key("stand").qpos
    mujoco.mj_forward(model, data)
    down, found = np.array([0.0, 0.0, -1.0]), 0
    for x, y in np.random.default_rng(0).uniform(-0.45, 0.45, (100, 2)):
        far = mujoco.mj_ray(model, data, np.array([x, y, 1.0]), down, None, 1, -1, hit, None)
        if model.geom(hit[0]).name == "ground":
            found += 1
            assert 1.0 - far == pytest.approx(terrain.height(x, y), abs=2e-5)
    assert found > 80


def test_height_beyond_the_edge_is_that_of_the_edge() -> None:
    terrain = bumps(0)
    assert terrain.height(9.0, 0.1) == terrain.height(SIDE / 2, 0.1)
    assert flat().height(0.3, -0.2) == 0.0


@pytest.mark.parametrize("ground", GROUNDS)
def test_the_robot_starts_above_the_ground(ground: str) -> None:
    course = course_of(ground, 1)
    model = course.model()
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_forward(model, data)
    assert data.contact.dist.min(initial=0.0) > -1e-6
    assert model.body_mass.sum() == pytest.approx(1.34)
    assert model.nv == 18 and model.nu == 12


# --- walks ---------------------------------------------------------------------------------------


def walk_for(walk: Walk, seconds: float) -> Walk:
    in_turns([walk], seconds, 20, lambda _: None)
    return walk


@pytest.mark.jit  # thousands of solves
@pytest.mark.parametrize("ground", GROUNDS)
def test_trot_goes_forward_without_slip(ground: str) -> None:
    walk = walk_for(SteppedWalk(course_of(ground, 0), NoSlip()), 1.5)
    found = walk.summary()
    assert not found["problem"] and found["falls"] == 0
    assert found["distance"] > 0.06
    assert abs(found["heading"]) < 3.0
    assert found["stances"] >= 8
    assert found["slip_most"] < 1e-9 and found["drift_most"] < 1e-5
    assert found["touchdown_most"] < 1e-9 and found["aloft"] == 0
    assert found["failures"] == found["fallbacks"] == 0
    assert found["solves"] == found["steps"] == 1500
    assert 0.0 < found["work"] < 2.0


@pytest.mark.jit
def test_contacts_of_one_foot_do_not_strain_against_each_other() -> None:
    """On a terrain map a foot has contacts close by each other, whose tangents hardly differ."""
    walk = SteppedWalk(course_of("terrain", 0), NoSlip())
    largest = 0.0
    for _ in range(250):
        walk.advance()
        largest = max(largest, np.abs(walk.data.efc_force).max(initial=0.0))
    assert 10.0 < largest < 200.0  # [N], and not meganewtons; the robot weighs 13


def test_slip_is_seen_where_there_is_some() -> None:
    """The same measure on MuJoCo's soft contacts, and on ice."""
    course = course_of("flat", 0)
    soft = walk_for(MujocoWalk(course, {}), 1.0).summary()
    assert soft["slip_most"] > 1e-4 and soft["drift_most"] > 1e-5
    ice = MujocoWalk(course, {})
    ice.model.geom_friction[:, 0] = 0.01
    slippery = walk_for(ice, 1.0).summary()
    assert slippery["slip_most"] > 5 * soft["slip_most"]
    assert slippery["distance"] < 0.7 * soft["distance"]


def test_a_fall_is_seen() -> None:
    walk = MujocoWalk(course_of("flat", 0), {})
    walk.data.qpos[3:7] = [0.0, 1.0, 0.0, 0.0]  # on its back
    walk_for(walk, 0.3)
    assert walk.falls >= 1


def test_steering_brings_the_robot_back() -> None:
    course = Course(flat(), g.Gait(), (0.0, 0.01), np.radians(10.0))
    walk = walk_for(MujocoWalk(course, {}), 3.0)
    assert abs(g.heading(walk.data.qpos)) < np.radians(3.0)


@pytest.mark.jit
def test_both_solvers_agree_on_viscous_lcps() -> None:
    walk = ViscousWalk(course_of("flat", 0), 0.1)
    walk_for(walk, 0.15)
    found = walk.summary()
    assert not found["problem"]
    assert found["solves"] == found["lemke_solves"] > 100
    assert found["lemke_failures"] == found["failures"] == found["fallbacks"] == 0
    assert found["difference"] < 1e-8
    assert found["smallest_gap"] > -1e-8


def test_histogram_counts_everything() -> None:
    assert sum(histogram([0.0, 1e-7, 1e-4, 0.5, 3.0])) == 5
    assert sum(histogram([])) == 0


# --- trials and report ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stored() -> str:
    """All quick trials, shorter still, as they are kept on disk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(locomotion, "QUICK_SECONDS", {"walk": 0.12, "viscous": 0.04})
        patch.setattr(locomotion, "WARM_UP", 2)
        trials = Locomotion().trials(quick=True)
        assert len({trial.name for trial in trials}) == len(trials)
        told: list[float] = []
        found = {trial.name: trial.run(told.append) for trial in trials}
    assert told[-1] == 1.0 and min(told) == 0.0
    return json.dumps(found, allow_nan=False)


@pytest.fixture
def results(stored: str) -> dict[str, dict]:
    """What the trials gave."""
    return json.loads(stored)


@pytest.mark.jit
def test_quick_trials_make_all_sections(results: dict[str, dict]) -> None:
    sections: list[Section] = Locomotion().sections(results)
    tables = {table.name: table for section in sections for table in section.tables}
    asked = {
        "locomotion_times": ("running time [s]", "ratio", "contact solves", "contacts, least",
                             "mean time of a solve [µs]", "mean", "most", "failures", "fallbacks"),
        "locomotion_motion": ("slip per stance, mean [m]", "slip per stance, most [m]",
                              "distance [m]", "energy [J/m]", "falls", "heading [°]"),
        "locomotion_viscous": ("running time [s]", "ratio", "LCPs", "mean time of a solve [µs]",
                               "failures", "fallbacks"),
    }  # fmt: skip
    for name, columns in asked.items():
        assert tables[name].rows
        for row in tables[name].rows:
            assert set(columns) <= set(row)
    methods = {row["method"] for row in tables["locomotion_times"].rows}
    assert methods == set(LABELS.values())
    figures = {figure.name for section in sections for figure in section.figures}
    assert {
        "locomotion_paths_flat",
        "locomotion_paths_terrain",
        "locomotion_solve_times",
    } <= figures
    told = [line for section in sections for line in section.text]
    assert "locomotion_robot" in figures or any("No pictures" in line for line in told)


@pytest.mark.jit
def test_targets_are_judged(results: dict[str, dict]) -> None:
    """The verdicts follow the numbers: spoil a trial, and the table says no."""

    def verdicts() -> dict[str, str]:
        rows = locomotion_tables.target_table(results).rows
        return {str(row["target"]): str(row["met"]) for row in rows}

    name = next(key for key in verdicts() if key.startswith("Drumwright") and "flat" in key)
    ours = results["flat-0"]["walks"]
    ours[NO_SLIP]["running"], ours[SHELL]["running"] = 1.0, 5.0
    assert verdicts()[name] == "yes"
    ours[SHELL]["running"] = 1.5
    assert verdicts()[name] == "**no**"
    assert verdicts()["distance walked without slip in 10 s, flat [m]"] == "not tested"
    ours[NO_SLIP]["failures"] = 1
    assert verdicts()["solver failures and fallbacks, no-slip, flat"] == "**no**"
    assert LETTER in ours


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("ground", GROUNDS)
def test_ten_seconds_without_slip(ground: str, seed: int) -> None:
    found = walk_for(SteppedWalk(course_of(ground, seed), NoSlip()), 10.0).summary()
    assert found["distance"] > 0.3 and found["falls"] == 0 and not found["problem"]
    assert found["slip_most"] < 1e-6
    assert found["failures"] == found["fallbacks"] == 0


@pytest.mark.slow
def test_a_walk_repeats_bit_for_bit() -> None:
    ends = [
        walk_for(SteppedWalk(course_of("terrain", 0), NoSlip()), 1.0).data.qpos for _ in range(2)
    ]
    assert np.array_equal(*ends)
