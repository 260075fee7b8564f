"""Which surfaces may meet where a step ends: bounds, and what is not looked at has not sunk in."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import mujoco
import numpy as np
import pytest

import holdfast as hf
from holdfast.mujoco import meeting, structs
from holdfast.mujoco.meeting import DOUBTFUL, EXACT, NONE
from plain_kernels import plain

ROCK = '<mesh name="rock" vertex="0 0 .1 .12 0 -.06 -.06 .1 -.06 -.06 -.1 -.06 .03 .08 .07"/>'
# Arms of all kinds of geoms over a plane; a box and a rock lie on it.
ARMS = f"""<mujoco><option timestep="0.004"/><asset>{ROCK}</asset><worldbody>
  <geom type="plane" size="3 3 1"/>
  <body pos="0 0 .6"><joint axis="0 0 1"/><geom type="capsule" size=".05 .1"/>
    <body pos=".12 0 .12"><joint axis="0 1 0"/><geom type="box" size=".12 .04 .03"/>
      <body pos=".2 0 0"><joint axis="0 1 0"/><geom type="mesh" mesh="rock"/>
        <body pos=".2 0 0"><joint axis="1 0 0"/><geom type="cylinder" size=".04 .07"/></body>
  </body></body></body>
  <body pos=".1 .5 .4"><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .3 0 0" size=".04"/>
    <body pos=".35 0 0"><joint axis="0 1 0"/><geom size=".06"/></body></body>
  <body pos=".5 -.3 .07"><freejoint/><geom type="mesh" mesh="rock"/></body>
  <body pos="-.6 0 .05"><freejoint/><geom type="box" size=".05 .05 .05"/></body>
  <body pos="-.6 .01 .2"><freejoint/><geom type="box" size=".06 .04 .05"/></body>
  <body pos=".9 .9 .3" mocap="true"><geom type="capsule" size=".03 .05"/></body>
</worldbody></mujoco>"""


def at(dtype: np.dtype) -> Any:
    """A function that returns the record at an address."""
    return lambda address: structs.Fields(
        np.ndarray(
            (1,), dtype=dtype, buffer=(ctypes.c_char * dtype.itemsize).from_address(int(address))
        )[0]
    )


def kernel(name: str, model: Any, **data: Any) -> Any:
    """A kernel of `meeting` as plain Python, with the data that it may read by address."""
    found = {each._address: each for each in data.values()}
    c_api = SimpleNamespace(
        call_distance=lambda _f, _m, address, a, b, most, _s: mujoco.mj_geomDistance(
            model, found[int(address)], int(a), int(b), most, None
        )
    )
    return plain(getattr(meeting, name), c_api=c_api, data_at=at(structs.DATA),
                 contact_at=at(structs.CONTACT), square=lambda x: x * x)  # fmt: skip


def moved(model: Any, data: Any, rng: np.random.Generator, far: float) -> Any:
    """Data in which all coordinates are displaced."""
    there = mujoco.MjData(model)
    there.qpos[:] = data.qpos
    mujoco.mj_integratePos(model, there.qpos, rng.normal(size=model.nv), far)
    mujoco.mj_kinematics(model, there)
    return there


@pytest.mark.parametrize("far", [1e-3, 0.1, 3.0])
def test_no_point_is_displaced_by_more_than_the_bounds(far: float) -> None:
    """Seen from where it drifts, and from another geom; and points on the ball come near them."""
    model, rng = mujoco.MjModel.from_xml_string(ARMS), np.random.default_rng(5)
    here = mujoco.MjData(model)
    mujoco.mj_kinematics(model, here)
    there = moved(model, here, rng, far)
    points = rng.normal(size=(2000, 3))
    points /= np.linalg.norm(points, axis=1)[:, None]
    one, two = at(structs.DATA)(here._address), at(structs.DATA)(there._address)
    displaced, seen = kernel("displaced", model), kernel("displaced_from", model)
    drift = rng.normal(size=3)
    for b in range(1, model.ngeom):
        radius = float(model.geom_rbound[b])

        def places(data: Any, b: int = b, radius: float = radius) -> np.ndarray:
            return data.geom_xpos[b] + radius * points @ data.geom_xmat[b].reshape(3, 3).T

        way = places(there) - places(here) - 0.5 * far * drift
        most = np.linalg.norm(way, axis=1).max()
        bound = displaced(one, two, b, radius, drift, 0.5 * far)
        assert most <= bound * (1.0 + 1e-12) <= 2.5 * most + 1e-12
        for a in range(1, model.ngeom):
            x, y = (
                (places(data) - data.geom_xpos[a]) @ data.geom_xmat[a].reshape(3, 3)
                for data in (here, there)
            )
            assert np.linalg.norm(y - x, axis=1).max() <= seen(one, two, a, b, radius) + 1e-12


def test_velocities_bound_what_a_motion_displaces() -> None:
    """No geom is beyond its margin where velocities say so; of slow motions they do."""
    model = mujoco.MjModel.from_xml_string(ARMS)
    rng, said = np.random.default_rng(8), 0
    for _ in range(200):
        data, stepper = mujoco.MjData(model), hf.Stepper(model, warn=False)
        mujoco.mj_integratePos(model, data.qpos, rng.normal(size=model.nv), 1.0)
        data.qvel[:] = rng.normal(size=model.nv) * rng.choice([0.1, 2.0, 50.0])
        data.qvel[rng.integers(model.nv)] *= 20.0
        stepper.smooth(data)
        s, trial = structs.Fields(stepper.record[0]), stepper._trial
        s.nboxes = 0
        velocity = data.qvel * rng.uniform(0.5, 1.5)
        trial.qpos[:] = data.qpos
        mujoco.mj_integratePos(model, trial.qpos, velocity, model.opt.timestep)
        mujoco.mj_kinematics(model, trial)
        own = stepper.private.model
        stays = kernel("stays_within_margins", own, data=data, trial=trial)(s, velocity)
        beyond = kernel("any_beyond_margin", own, data=data, trial=trial)(s)
        assert not (stays and beyond)
        said += stays
    assert said > 60


def test_what_is_not_looked_at_has_not_sunk_in() -> None:
    """Collision without margins where the motion leads finds nothing then, and does so else."""
    model = mujoco.MjModel.from_xml_string(ARMS)
    data, stepper = mujoco.MjData(model), hf.Stepper(model, warn=False)
    api = SimpleNamespace(mj_geomDistance=0)
    rng, counts = np.random.default_rng(6), np.zeros((3, 2), dtype=int)
    listed = 0
    for k in range(400):
        if k % 40 == 0:
            mujoco.mj_resetData(model, data)
            data.qvel[:] = rng.normal(size=model.nv) * rng.choice([0.5, 5.0])
        stepper.smooth(data)
        s, trial = structs.Fields(stepper.record[0]), stepper._trial
        velocity = data.qvel + rng.normal(size=model.nv) * rng.choice([0.0, 0.1])
        trial.qpos[:] = data.qpos
        mujoco.mj_integratePos(model, trial.qpos, velocity, model.opt.timestep)
        mujoco.mj_kinematics(model, trial)
        own = stepper.private.model
        who = kernel("who_may_meet", own, data=data, trial=trial)(s, api)
        there = mujoco.MjData(model)
        there.qpos[:] = trial.qpos
        mujoco.mj_fwdPosition(model, there)
        sinks = any(there.contact.dist < -float(s.sunk) * float(s.size))
        counts[who, int(sinks)] += 1
        listed += who == NONE and data.ncon > 0
        stepper.step(data)
    assert counts[NONE, 1] == 0
    assert counts[NONE, 0] > 40 and listed > 20  # it does leave out looks, beside contacts, too
    assert counts[EXACT].sum() > 10 and counts[DOUBTFUL].sum() > 10
