"""Data, models and threads that come and go between steps."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from typing import Any

import mujoco
import numpy as np
import pytest

import holdfast as hf
from holdfast.mujoco import c_api, structs
from holdfast.mujoco.private_model import PrivateModel
from holdfast.tools import scenes

PILE = "".join(
    f'<body pos=".{i} 0 {0.15 + 0.1 * i}" euler="{13 * i} {31 * i} 0"><freejoint/>'
    '<geom type="box" size=".1 .1 .1"/></body>'
    for i in range(4)
)


def load(bodies: str = PILE, more: str = "") -> tuple[Any, Any]:
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><worldbody><geom type="plane" size="5 5 1"/>{bodies}</worldbody>{more}</mujoco>'
    )
    return model, mujoco.MjData(model)


@pytest.mark.filterwarnings("ignore::holdfast.FrictionWarning")
def test_threads_may_step_data_of_one_model() -> None:
    model, _ = load()
    alone, together = [], {}

    def run(results: Any, k: int) -> None:
        data = mujoco.MjData(model)
        for _ in range(150):
            hf.step(model, data)
        results[k] = data.qpos.copy()

    for count, results in ((1, {}), (4, together)):
        threads = [threading.Thread(target=run, args=(results, k)) for k in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        alone = alone or list(results.values())
    assert len(together) == 4
    for qpos in together.values():
        assert np.array_equal(qpos, alone[0])


def test_a_callback_may_step_other_data() -> None:
    model, data = load()
    ahead, expected = mujoco.MjData(model), mujoco.MjData(model)
    hf.Stepper(model, warn=False).step(expected, 3)

    def plan(model: Any, now: Any) -> None:
        if now is not ahead:
            mujoco.set_mjcb_control(None)
            hf.step(model, ahead)
            mujoco.set_mjcb_control(plan)

    mujoco.set_mjcb_control(plan)
    try:
        hf.step(model, data, nstep=3)
    finally:
        mujoco.set_mjcb_control(None)
    assert data.qpos == pytest.approx(expected.qpos, rel=1e-12)  # its rows are listed otherwise
    assert np.array_equal(ahead.qpos, expected.qpos)


def test_a_stepper_within_its_own_step_is_refused() -> None:
    model, data = load()
    stepper, other = hf.Stepper(model), mujoco.MjData(model)
    mujoco.set_mjcb_control(lambda _model, _data: stepper.step(other))
    try:
        with pytest.raises(hf.HoldfastError, match="in the middle of a step"):
            stepper.step(data)
    finally:
        mujoco.set_mjcb_control(None)
    stepper.step(data)
    assert data.time > 0.0 and other.time == 0.0


@pytest.mark.jit  # else the thread is mostly in MuJoCo's own binding, which crashes then
def test_a_process_may_end_in_the_middle_of_a_step() -> None:
    code = f"""
import threading
import mujoco
import holdfast as hf
model = mujoco.MjModel.from_xml_string('''<mujoco><worldbody>
  <geom type="plane" size="5 5 1"/>{PILE}</worldbody></mujoco>''')
begun = threading.Event()
def run():
    data, stepper = mujoco.MjData(model), hf.Stepper(model, warn=False)
    while True:
        stepper.step(data, 10)
        begun.set()
threading.Thread(target=run, daemon=True).start()
begun.wait()
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert ended.returncode == 0, ended.stderr.decode()


def test_the_copy_of_a_model_uses_its_arrays_and_leaves_them_there() -> None:
    model = mujoco.MjModel.from_xml_string(scenes.quadruped())
    private = PrivateModel(model)
    assert (
        private.segments[:, 2].sum() < 0.1 * private._shown[:, 2].sum()
    )  # hardly anything is copied
    data = mujoco.MjData(private.model)
    model.body_mass[2] += 1.0
    mujoco.mj_forward(private.model, data)
    expected = mujoco.MjData(model)
    mujoco.mj_forward(model, expected)
    assert np.array_equal(data.M, expected.M)
    masses = model.body_mass.copy()
    del private, data
    gc.collect()
    assert np.array_equal(model.body_mass, masses)


def test_what_is_taken_from_the_library_is_what_it_is_taken_for() -> None:
    assert c_api.derivative_function() != 0
    structs.verify()


def test_data_that_are_gone_are_not_stepped() -> None:
    model, data = load()
    stepper = hf.Stepper(model, warn=False)
    stepper.step(data)
    del data
    gc.collect()
    nothing: Any = None
    with pytest.raises(hf.InputError, match="data"):
        stepper.step(nothing)


def test_an_interrupted_step_has_no_solution(monkeypatch: pytest.MonkeyPatch) -> None:
    model, data = load()
    stepper = hf.Stepper(model, warn=False)
    stepper.step(data, 3)
    assert stepper.solution is not None

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(stepper, "_call", interrupted)
    with pytest.raises(KeyboardInterrupt):
        stepper.step(data)
    assert stepper.solution is None and stepper.contact_count == 0


ROLLING = """<body pos="0 0 .1"><freejoint/><geom size=".1" condim="6"/></body>
  <body pos="0 1 .5"><joint axis="0 1 0" {limits}/>
    <geom type="capsule" size=".02" fromto="0 0 0 .3 0 0" mass=".3"/>
    <body pos=".3 0 0"><joint axis="0 1 0" {limits}/>
      <geom type="capsule" size=".02" fromto="0 0 0 .3 0 0" mass=".3"/></body></body>"""


def test_rows_that_are_listed_again_keep_their_limits() -> None:
    """With either cone; friction against rolling makes a pyramid narrow."""
    speeds = []
    for cone in ("elliptic", "pyramidal"):
        limits = 'limited="true" range="-40 40"'
        model, data = load(ROLLING.format(limits=limits), f'<option cone="{cone}"/>')
        data.qvel[-1] = 2.0
        hf.Stepper(model, warn=False).step(data)
        assert np.abs(data.qfrc_constraint[6:]).max() == 0.0  # limits are far away
        speeds.append(data.qvel[6:].copy())
    np.testing.assert_allclose(speeds[1], speeds[0], rtol=1e-12)


def test_damping_is_followed_where_rows_are_listed_again() -> None:
    ends = []
    for edited_first in (True, False):
        model, data = load(ROLLING.format(limits=""), '<option cone="pyramidal"/>')
        data.qvel[-1] = 2.0
        if edited_first:
            model.dof_damping[6:] = 5.0
        stepper = hf.Stepper(model, warn=False)
        model.dof_damping[6:] = 5.0
        stepper.step(data)
        ends.append(data.qvel.copy())
    np.testing.assert_array_equal(ends[0], ends[1])


@pytest.mark.parametrize("jacobian", ["dense", "sparse"])
def test_rows_of_zeros_that_mujoco_leaves_out(jacobian: str) -> None:
    model = mujoco.MjModel.from_xml_string(
        f"""<mujoco><option integrator="implicit" jacobian="{jacobian}"/><worldbody>
        <geom type="plane" size="1 1 1"/><body name="a" pos="1 0 1"><geom size=".05"/></body>
        <body pos="0 0 .1"><joint type="slide" axis="0 0 1"/><geom type="box" size=".1 .1 .1"/>
        </body></worldbody><equality><connect body1="a" anchor="0 0 0"/></equality></mujoco>"""
    )
    data = mujoco.MjData(model)
    hf.Stepper(model).step(data, 3)
    assert abs(data.qvel[0]) < 1e-12
