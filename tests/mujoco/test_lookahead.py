"""Look-ahead: which listed contact one of the trial is, and how often a step is solved again."""

from __future__ import annotations

from types import SimpleNamespace

import mujoco
import numpy as np
import pytest

import holdfast as hf
from holdfast.mujoco import StepOptions
from holdfast.mujoco.constraints import CONTACT
from holdfast.mujoco.lookahead import find_listed
from plain_kernels import plain

X, Y, Z = np.eye(3)


def found(listed: list[tuple[np.ndarray, np.ndarray]], seen: tuple[np.ndarray, np.ndarray],
          radius: tuple[float, float] = (1.0, 2.0),
          other: np.ndarray | None = None) -> tuple[int, float, bool]:  # fmt: skip
    """`find_listed` as plain Python: contacts are a place and a normal.

    What is seen has a place on each body; one for both if no other is given.
    """
    n, radii = len(listed), np.array(radius)
    frames = [np.concatenate([normal, np.roll(normal, 1), np.roll(normal, 2)])
              for _, normal in [*listed, seen]]  # fmt: skip
    cs = SimpleNamespace(
        kind=np.full(n, int(CONTACT)), geom=np.tile([0, 1], (n, 1)), gap=np.zeros(n),
        place=np.array([[*at, *frame] for (at, _), frame in zip(listed, frames, strict=False)]),
    )  # fmt: skip
    s = SimpleNamespace(radius=radii.ctypes.data, ngeom=2, same_place=0.25, similar_normal=0.9)
    contact = SimpleNamespace(geom=[0, 1], frame=frames[-1])
    points = np.array([seen[0], seen[0] if other is None else other])
    return plain(find_listed, square=lambda x: x * x)(s, cs, contact, points)


def test_the_listed_contact_that_is_most_alike() -> None:
    """Of those at its place, the one whose normal is nearest."""
    tilted, steep = np.array([0.6, 0.0, 0.8]), np.array([0.8, 0.0, 0.6])
    for listed in ([steep, tilted, X], [X, steep, tilted], [tilted, X, steep]):
        k, likeness, among = found([(np.zeros(3), each) for each in listed], (np.zeros(3), Z))
        assert listed[k] is tilted and among
        assert likeness == pytest.approx(0.8, abs=1e-15)  # the cosine between the normals


def test_of_similar_normals_the_nearest_is_taken() -> None:
    """Its row is the one that says where this point of the body goes."""
    tilted = np.array([0.28, 0.0, 0.96])
    for listed in ([(0.2 * X, Z), (0.1 * X, tilted)], [(0.1 * X, tilted), (0.2 * X, Z)]):
        k, likeness, _ = found(listed, (np.zeros(3), Z))
        assert listed[k][1] is tilted and likeness == pytest.approx(0.96, abs=1e-15)


@pytest.mark.parametrize("swapped", [False, True])
def test_a_contact_is_where_either_body_has_it_or_between(swapped: bool) -> None:
    """What was there before the step moves with one body or the other, or was added between."""
    ends = [np.zeros(3), 4.0 * X][:: -1 if swapped else 1]
    for part, there in ((0.0, True), (0.5, True), (1.0, True), (0.25, False), (0.75, False)):
        k, _, among = found([(4.0 * part * X, Z)], (ends[0], Z), other=ends[1])
        assert (k == 0) is there and among


def test_a_place_is_as_wide_as_the_smaller_geom() -> None:
    """A quarter of its radius here; of the larger one's if the smaller has no end."""
    for radius, wide in (((0.4, 8.0), 0.1), ((8.0, 0.4), 0.1), ((0.0, 8.0), 2.0)):
        assert found([(np.zeros(3), Z)], (0.99 * wide * X, Z), radius)[0] == 0
        k, _, among = found([(np.zeros(3), Z)], (1.01 * wide * X, Z), radius)
        assert k == -1 and among
    assert found([(np.zeros(3), Z)], (1e3 * X, Z), (0.0, 0.0))[0] == 0


def test_no_more_rounds_than_allowed() -> None:
    """A step is solved again at most so often: here it would be more often."""
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><option timestep="0.01"/><worldbody><geom type="sphere" size="1"/>'
        '<body pos="0 0 1.101"><freejoint/><geom type="box" size="0.1 0.1 0.1"/></body>'
        "</worldbody></mujoco>"
    )
    for rounds in (1, 2):
        data, most = mujoco.MjData(model), 0
        data.qvel[:] = [3.0, 0.0, -1.0, 2.0, 20.0, 0.0]
        stepper = hf.Stepper(model, warn=False, options=StepOptions(lookahead_rounds=rounds))
        for _ in range(3):
            before = int(stepper.record["redone"][0])
            stepper.step(data)
            most = max(most, int(stepper.record["redone"][0]) - before)
        assert most == rounds


@pytest.mark.parametrize("size", [".2 .15 .1", ".15 .2 .1"])
def test_friction_acts_where_a_body_rolls_to(size: str) -> None:
    """A body that spins on the ground is driven by friction as in steps a tenth as long."""
    ends = []
    for timestep in (1e-3, 1e-4):
        model = mujoco.MjModel.from_xml_string(
            f'<mujoco><option timestep="{timestep}"/><worldbody><geom type="plane" size="5 5 1"/>'
            f'<body pos="0 0 .1"><freejoint/><geom type="ellipsoid" size="{size}"/></body>'
            "</worldbody></mujoco>"
        )
        data = mujoco.MjData(model)
        data.qvel[4] = 20.0
        hf.Stepper(model, warn=False).step(data, round(0.1 / timestep))
        ends.append(data.qvel[[0, 4]])
    np.testing.assert_allclose(ends[0], ends[1], rtol=0.05)
