"""Rollouts: MuJoCo's names and rules, the bits of a new stepper for each run, failures, Ctrl-C."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import weakref
from typing import Any

import mujoco
import mujoco.rollout
import numpy as np
import pytest

import holdfast as hf
from holdfast.mujoco import c_api
from holdfast.tools import scenes

FULL = int(mujoco.mjtState.mjSTATE_FULLPHYSICS)
BOXES = "".join(
    f'<body pos="0 {0.15 * i} {0.2 + 0.1 * i}" euler="10 20 {31 * i}"><freejoint/>'
    '<geom type="box" size=".1 .1 .1"/></body>'
    for i in range(3)
)
ARM = """<body pos="0.6 0 0.4"><joint name="j" axis="0 1 0" limited="true" range="-60 60"/>
  <geom type="capsule" size=".05" fromto="0 0 0 0 0 -.28"/></body>"""
MORE = """<actuator><motor joint="j" gear="2"/></actuator>
  <sensor><jointpos joint="j"/><jointvel joint="j"/><actuatorfrc actuator="a"/></sensor>"""


def load(bodies: str = BOXES + ARM, more: str = MORE, options: str = "") -> Any:
    more = more.replace("<motor ", '<motor name="a" ')
    return mujoco.MjModel.from_xml_string(
        f"<mujoco>{options}<worldbody><geom name='floor' type='plane' size='5 5 1'/>{bodies}"
        f"</worldbody>{more}</mujoco>"
    )


def states(model: Any, count: int, seed: int = 0) -> np.ndarray:
    """States that begin at the model's own position, with random velocities."""
    data, rng = mujoco.MjData(model), np.random.default_rng(seed)
    made = np.empty((count, mujoco.mj_stateSize(model, FULL)))
    for row in made:
        data.qvel[:] = 0.5 * rng.standard_normal(model.nv)
        mujoco.mj_getState(model, data, row, FULL)
    return made


def by_steppers(model: Any, initial: np.ndarray, control: Any, nstep: int, **options: Any) -> Any:
    """States and sensor readings by a new stepper for each run, step by step."""
    out = np.empty((len(initial), nstep, initial.shape[1]))
    sensors = np.empty((len(initial), nstep, model.nsensordata))
    for run, first in enumerate(initial):
        data, stepper = mujoco.MjData(model), hf.Stepper(model, warn=False, **options)
        mujoco.mj_setState(model, data, first, FULL)
        for k in range(nstep):
            if control is not None:
                data.ctrl[:] = control[run, k]
            stepper.step(data)
            mujoco.mj_getState(model, data, out[run, k], FULL)
            sensors[run, k] = data.sensordata
    return out, sensors


def test_bits_are_those_of_a_new_stepper_for_each_run_at_any_number_of_threads() -> None:
    model = load()
    initial = states(model, 9)
    control = np.random.default_rng(1).standard_normal((9, 120, 1))
    state, sensors = by_steppers(model, initial, control, 120)
    for nthread, chunk_size in ((1, None), (2, None), (4, 1), (3, 4), (1, 9)):
        found = hf.rollout(model, mujoco.MjData(model), initial, control, nthread=nthread,
                           chunk_size=chunk_size)  # fmt: skip
        assert np.array_equal(found.state, state)
        assert np.array_equal(found.sensordata, sensors)
        assert not found.status.any() and not found.failures


def test_runs_do_not_depend_on_what_was_stepped_before() -> None:
    """Memory grows with the number of contacts; a run with few must not notice."""
    model = load(bodies="".join(
        f'<body pos="{0.25 * (i % 5)} {0.25 * (i // 5)} {0.12 + 0.3 * (i // 25)}"><freejoint/>'
        '<geom type="box" size=".1 .1 .1"/></body>' for i in range(20)
    ), more="")  # fmt: skip
    initial = states(model, 4, seed=3)
    initial[::2, 3::7] += 0.5  # qpos begins after the time: these are up in the air for long
    state, _ = by_steppers(model, initial, None, 60)
    for order in ([0, 1, 2, 3], [3, 2, 1, 0]):
        found = hf.rollout(model, None, initial[order], nstep=60, nthread=1)
        assert np.array_equal(found.state, state[order])


def test_blocks_of_coupled_trees_are_those_of_a_new_stepper() -> None:
    """The discrete integrator couples trees by tendons; the next run begins uncoupled."""
    bodies = "".join(
        f'<body pos="{x} 0 .2"><joint name="s{k}" type="slide" axis="0 0 1"/>'
        '<geom type="box" size=".1 .1 .1"/></body>'
        for k, x in enumerate((0, 0.5))
    )
    tendon = """<tendon><fixed name="t" damping="3" stiffness="40"><joint joint="s0" coef="1"/>
      <joint joint="s1" coef="-1"/></fixed></tendon>"""
    model = load(bodies, tendon, '<option integrator="discrete"/>')
    initial = states(model, 3)
    state, _ = by_steppers(model, initial, None, 200)
    for nthread in (1, 2):
        assert np.array_equal(
            hf.rollout(model, None, initial, nstep=200, nthread=nthread)[0], state
        )


def test_one_model_for_each_run() -> None:
    models = [load(options=f'<option gravity="0 0 {g}"/>') for g in (-9.81, -1.62, -3.7, 0.0)]
    initial = states(models[0], 1)
    expected = np.concatenate([by_steppers(m, initial, None, 50)[0] for m in models])
    for nthread in (1, 2):
        found = hf.rollout(models, mujoco.MjData(models[0]), initial, nstep=50, nthread=nthread)
        assert np.array_equal(found.state, expected)
    with pytest.raises(ValueError, match="list of 4 for 3 runs"):
        hf.rollout(models, None, np.repeat(initial, 3, axis=0), nstep=2)
    with pytest.raises(ValueError, match="not compatible"):
        hf.rollout([models[0], load(BOXES, "")], None, initial, nstep=2)


@pytest.mark.parametrize("contact", [hf.NoSlip(), hf.viscous(2.0), hf.StewartTrinkle()])
def test_contact_models(contact: Any) -> None:
    model = load()
    initial, nstep = states(model, 2), 15
    state, _ = by_steppers(model, initial, None, nstep, contact=contact)
    found = hf.rollout(model, None, initial, nstep=nstep, contact=contact, warn=False)
    assert np.array_equal(found.state, state)


# --- MuJoCo's rules --------------------------------------------------------------------------


def test_shapes_are_inferred_as_mujoco_does() -> None:
    """Without contact both are the same to the bit: so are the shapes, and what is repeated."""
    model = load(ARM, MORE, '<option gravity="0 0 -1"/>')
    data = mujoco.MjData(model)
    initial = states(model, 3)
    control = np.random.default_rng(0).standard_normal((3, 4, 1))
    cases: list[dict[str, Any]] = [
        {"initial_state": initial, "control": control},
        {"initial_state": initial[0], "control": control},
        {"initial_state": initial[0], "control": control[0]},
        {"initial_state": initial, "control": control[0, 0]},
        {"initial_state": initial, "control": control[0, :1], "nstep": 5},
        {"initial_state": initial, "nstep": 2},
        {"initial_state": initial[0]},
        {"initial_state": initial, "control": control[:, :1], "nstep": 3},
        {"initial_state": initial, "nstep": 0},
        {"initial_state": initial[:1], "state": np.zeros((4, 3, initial.shape[1]))},
        {"initial_state": initial, "nstep": 2, "initial_warmstart": np.ones(model.nv)},
    ]
    for case in cases:
        data.ctrl[:] = 0.3  # used where no controls are given
        theirs = mujoco.rollout.rollout(model, data, **copy.deepcopy(case))
        data.ctrl[:] = 0.3
        ours = hf.rollout(model, data, **copy.deepcopy(case))
        for a, b in zip(theirs, ours, strict=True):
            assert a.shape == b.shape
            assert np.array_equal(a, b)


def test_results_go_to_the_arrays_that_are_given() -> None:
    model = load()
    initial = states(model, 2)
    state, sensors = np.zeros((2, 6, initial.shape[1])), np.zeros((2, 6, model.nsensordata))
    found = hf.rollout(model, None, initial, state=state, sensordata=sensors)
    assert found.state is state and found.sensordata is sensors
    first, second = found
    assert first is state and second is sensors and state.any()


def test_control_spec() -> None:
    """Controls may be forces at joints; what no control sets is as after a reset."""
    model = load()
    data = mujoco.MjData(model)
    data.qfrc_applied[:] = 7.0
    force = np.zeros((2, 5, model.nv))
    force[1, :, -1] = 0.3
    spec = int(mujoco.mjtState.mjSTATE_QFRC_APPLIED)
    state, _ = hf.rollout(model, data, states(model, 1), force, control_spec=spec)
    still = hf.rollout(model, data, states(model, 1), nstep=5).state
    assert np.array_equal(state[0], still[0])
    assert not np.array_equal(state[1], still[0])


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"initial_state": np.zeros((2, 3))}, "initial_state: has 3 entries"),
        ({"control": np.zeros((2, 5, 2))}, "control: has 2 entries"),
        ({"control": np.zeros((3, 5, 1))}, "control: has 3 runs; others have 2"),
        ({"control": np.zeros((2, 5, 1)), "nstep": 3}, "control: has 5 steps; others have 3"),
        ({"control": np.zeros((1, 2, 5, 1))}, "control: has 4 dimensions"),
        ({"nstep": -1}, "nstep: is -1"),
        ({"nstep": 2.0}, "nstep: is 2.0"),
        ({"nstep": True}, "nstep: is True"),
        ({"chunk_size": 0}, "chunk_size: is 0"),
        ({"nthread": -1}, "nthread: is -1"),
        ({"nthread": 1.5}, "nthread: is 1.5"),
        ({"control_spec": int(mujoco.mjtState.mjSTATE_QPOS)}, "control_spec"),
        ({"state": np.zeros((2, 1, 3), dtype=np.float32)}, "state: must be an array of doubles"),
        ({"model": "ant"}, "model: is str"),
        ({"model": []}, "model: is an empty list"),
        ({"data": 3}, "data: has int"),
        ({"initial_state": "a"}, "initial_state: is not an array"),
        ({"initial_state": None}, "initial_state: is None"),
        ({"contact": 3}, "contact"),
    ],
)
def test_bad_arguments_are_refused_by_name(change: dict[str, Any], match: str) -> None:
    model = load()
    given = {"model": model, "data": None, "initial_state": states(model, 2), "nstep": 1}
    with pytest.raises(ValueError, match=match):
        hf.rollout(**(given | change))


def test_data_of_another_model_are_refused() -> None:
    model = load()
    with pytest.raises(hf.InputError, match="belong to another model"):
        hf.rollout(model, mujoco.MjData(load(BOXES, "")), states(model, 1), nstep=1)


# --- failures ------------------------------------------------------------------------------------


@pytest.mark.parametrize("nthread", [1, 2])
def test_a_run_that_fails_is_reported_and_disturbs_no_other(nthread: int) -> None:
    model = load()
    initial, nstep = states(model, 6), 40
    good = hf.rollout(model, None, initial, nstep=nstep, nthread=1).state
    control = np.zeros((6, nstep, 1))
    control[1, 0] = np.nan  # at once
    control[4, 25] = np.inf
    with pytest.warns(hf.StepWarning, match="2 of 6 runs failed.*run 1 failed at step 0"):
        found = hf.rollout(model, None, initial, control, nthread=nthread)
    assert found.status.tolist() == [0, 2, 0, 0, 2, 0]
    assert found.status[1] == hf.RunStatus.FAILED
    first, second = found.failures
    assert (first.run, first.step, second.run, second.step) == (1, 0, 4, 25)
    assert isinstance(second.error, hf.InputError) and second.error.argument == "data.ctrl"
    assert np.array_equal(first.state, initial[1])
    assert np.array_equal(second.state, good[4, 24])
    assert np.array_equal(found.state[1], np.repeat(initial[1:2], nstep, axis=0))
    assert np.array_equal(found.state[4, :25], good[4, :25])
    assert (found.state[4, 25:] == good[4, 24]).all()
    assert (found.sensordata[4, 25:] == found.sensordata[4, 24]).all()
    assert not found.sensordata[1].any()
    others = [0, 2, 3, 5]
    assert np.array_equal(found.state[others], good[others])
    assert "2 failed" in repr(found) and "run 4 failed at step 25" in str(second)
    again = pickle.loads(pickle.dumps(found))
    assert np.array_equal(again.state, found.state) and again.status.tolist() == [0, 2, 0, 0, 2, 0]


def test_a_state_that_diverges_fails_its_run() -> None:
    """Not reset, as a single stepper does: what follows would be another run."""
    model = load(BOXES, "")
    force = np.zeros((2, 30, model.nv))
    force[0, 10:] = 1e14
    spec = int(mujoco.mjtState.mjSTATE_QFRC_APPLIED)
    with pytest.warns(hf.StepWarning, match="run 0 failed at step 1.*diverged"):
        found = hf.rollout(model, None, states(model, 2), force, control_spec=spec)
    assert found.status.tolist() == [2, 0]
    assert np.isfinite(found.state).all()
    assert "diverged" in str(found.failures[0].error)


def test_an_error_in_a_callback_fails_its_run() -> None:
    model = load()
    initial = states(model, 4)
    mujoco.set_mjcb_control(lambda _model, _data: None)
    try:
        good = hf.rollout(model, None, initial, nstep=10).state
    finally:
        mujoco.set_mjcb_control(None)

    def control(_model: Any, data: Any) -> None:
        if abs(data.qpos[0] - good[2, 4, 1]) < 1e-12:
            raise ZeroDivisionError("seen")

    mujoco.set_mjcb_control(control)
    try:
        with pytest.warns(hf.StepWarning, match="run 2 failed at step 5: seen"):
            found = hf.rollout(model, None, initial, nstep=10, nthread=2)
    finally:
        mujoco.set_mjcb_control(None)
    assert found.status.tolist() == [0, 0, 2, 0]
    assert isinstance(found.failures[0].error, ZeroDivisionError)
    assert np.array_equal(found.state[3], good[3])


def test_warnings_are_said_once_and_by_the_first_run() -> None:
    """Which thread comes first does not matter."""
    model = load(
        '<body name="b" pos="0 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/></body>',
        "",
        '<option integrator="RK4" gravity="4.9 0 -9.81"/>'
        '<default><geom friction=".1"/></default>',
    )  # fmt: skip
    texts = []
    for nthread in (1, 3):
        with pytest.warns() as said:
            hf.rollout(model, None, states(model, 12), nstep=30, nthread=nthread,
                       contact=hf.NoSlip(), chunk_size=1)  # fmt: skip
        texts.append([str(each.message) for each in said])
    assert texts[0] == texts[1]
    assert len(texts[0]) == 2
    assert any("RK4" in text for text in texts[0]) and any("coefficient" in t for t in texts[0])


# --- threads and memory ----------------------------------------------------------------------


def test_rollouts_in_several_threads_at_the_same_time() -> None:
    model = load()
    initial = states(model, 4)
    good = hf.rollout(model, None, initial, nstep=50, nthread=1).state
    found: list[np.ndarray] = []

    def run() -> None:
        found.append(hf.rollout(model, None, initial, nstep=50, nthread=2).state)

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 3
    assert all(np.array_equal(each, good) for each in found)


def test_a_model_is_not_kept_alive() -> None:
    model = load()
    hf.rollout(model, mujoco.MjData(model), states(model, 3), nstep=3, nthread=2)
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_process_has_threads_of_its_own() -> None:
    model = load()
    initial = states(model, 4)
    good = hf.rollout(model, None, initial, nstep=20, nthread=2).state
    child = os.fork()
    if child == 0:
        try:
            found = hf.rollout(model, None, initial, nstep=20, nthread=2).state
            os._exit(0 if np.array_equal(found, good) else 1)
        finally:
            os._exit(2)
    deadline = time.monotonic() + 30
    while (done := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < deadline:
        time.sleep(0.02)
    if done == (0, 0):
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert done == (child, 0)


INTERRUPTED = """
import os, signal, sys, threading, time
import mujoco, numpy as np, holdfast as hf
from holdfast.tools import scenes
model = mujoco.MjModel.from_xml_string(scenes.pinched_capsule())
initial = np.zeros((4, 1 + model.nq + model.nv))
initial[:, 1:1 + model.nq] = model.qpos0
data = mujoco.MjData(model)
stepper = hf.Stepper(model)
stepper.step(data)
sent = []
def interrupt():
    time.sleep(0.5)
    sent.append(time.monotonic())
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt).start()
try:
    if sys.argv[1] == "step":
        stepper.step(data, 10**9)
    else:
        hf.rollout(model, None, initial, nstep=10**6, nthread=int(sys.argv[1]))
except KeyboardInterrupt:
    print(time.monotonic() - sent[0])
again = hf.rollout(model, None, initial, nstep=5).state
assert (again == hf.rollout(model, None, initial, nstep=5, nthread=1).state).all()
other = mujoco.MjData(model)
stepper.step(data, 3)
"""


@pytest.mark.jit
@pytest.mark.parametrize("what", ["step", "1", "2"])
def test_ctrl_c_is_noticed_within_a_second(what: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, what], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 1.0


@pytest.mark.jit
@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc")
def test_memory_does_not_grow_over_200_000_steps() -> None:
    """Resident memory after the first of five equal parts is that after the last."""
    model = mujoco.MjModel.from_xml_string(scenes.pinched_capsule())
    initial, resident = states(model, 20, seed=1), []
    initial[:, 1 + model.nq :] *= 0.01
    state = np.zeros((20, 2000, initial.shape[1]))
    for _ in range(5):
        hf.rollout(model, None, initial, state=state, nthread=2, warn=False)
        gc.collect()
        with open("/proc/self/statm") as file:
            resident.append(int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE"))
    assert resident[-1] - resident[0] < 1 << 20


# --- steps and copies --------------------------------------------------------------------------


def test_many_steps_in_one_call_are_those_of_many_calls() -> None:
    model = load()
    one, many = mujoco.MjData(model), mujoco.MjData(model)
    first, second = hf.Stepper(model), hf.Stepper(model)
    first.step(one, 150)
    for _ in range(150):
        second.step(many)
    assert np.array_equal(one.qpos, many.qpos) and one.time == many.time
    assert np.array_equal(one.sensordata, many.sensordata)
    assert first.contact_count == second.contact_count > 0
    assert np.array_equal(first.contacts.normal_force, second.contacts.normal_force)


def test_a_failing_step_of_many_leaves_the_steps_before_it() -> None:
    model = load()
    data = mujoco.MjData(model)
    stepper = hf.Stepper(model)
    calls = []

    def control(_model: Any, _data: Any) -> None:
        calls.append(1)
        if len(calls) == 8:
            raise ZeroDivisionError

    mujoco.set_mjcb_control(control)
    try:
        with pytest.raises(ZeroDivisionError):
            stepper.step(data, 20)
    finally:
        mujoco.set_mjcb_control(None)
    expected = mujoco.MjData(model)
    mujoco.set_mjcb_control(lambda _model, _data: None)
    try:
        hf.Stepper(model).step(expected, 7)
        assert data.time == pytest.approx(7 * model.opt.timestep)
        assert np.array_equal(data.qpos, expected.qpos)
        stepper.step(data, 3)
    finally:
        mujoco.set_mjcb_control(None)
    assert data.time == pytest.approx(10 * model.opt.timestep)


def test_without_a_clock_the_loop_pauses_by_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Windows."""
    model = load()
    expected, data = mujoco.MjData(model), mujoco.MjData(model)
    hf.Stepper(model).step(expected, 250)
    api = c_api.functions()
    kept = api["clock_gettime"].copy()
    api["clock_gettime"] = 0
    try:
        stepper = hf.Stepper(model)
        calls = []
        call = stepper._call
        stepper._call = lambda: (calls.append(1), call())[1]
        stepper.step(data, 250)
    finally:
        api["clock_gettime"] = kept
    assert np.array_equal(data.qpos, expected.qpos)
    assert len(calls) >= 3


@pytest.mark.parametrize(
    "duplicate", [copy.copy, copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))]
)
def test_steppers_are_copied_and_pickled(duplicate: Any) -> None:
    model = load()
    original = hf.Stepper(model, hf.stick(), {("floor", "*"): hf.coulomb(0.3)}, correct=False,
                          warn=False, strict=True, equalities="rigid")  # fmt: skip
    original.step(mujoco.MjData(model), 5)
    made = duplicate(original)
    assert made is not original and made.contact == original.contact and not made.warn
    assert made._laws.laws == original._laws.laws
    for name in ("correct", "strict", "rigid_equalities", "quiet"):
        assert made._get(name) == original._get(name)
    assert made.solution is None
    data, again = mujoco.MjData(model), mujoco.MjData(made.model)
    original.reset()
    original.step(data, 60)
    made.step(again, 60)
    assert np.array_equal(data.qpos, again.qpos)


def test_reset_makes_a_stepper_as_new() -> None:
    model = load()
    stepper = hf.Stepper(model, hf.NoSlip(), warn=False)
    first, second = mujoco.MjData(model), mujoco.MjData(model)
    stepper.step(first, 100)
    assert stepper.solution is not None
    stepper.reset()
    assert stepper.solution is None and stepper.largest_correction == 0.0
    assert stepper.resolved_steps == 0
    stepper.step(second, 100)
    assert np.array_equal(first.qpos, second.qpos)


@pytest.mark.parametrize(
    "duplicate", [copy.copy, copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))]
)
def test_event_driven_simulations_are_copied_pickled_and_reset(duplicate: Any) -> None:
    ball = '<body name="ball" pos="0 0 .2"><freejoint/><geom size=".1"/></body>'
    model = load(ball, "")
    original = hf.EventDriven(model, hf.Viscous(0.2), integrator="symplectic_euler")
    data = mujoco.MjData(model)
    original.step(data, 100)
    assert original.events and original.smallest_gap < np.inf
    made = duplicate(original)
    assert not len(made.events) and made.integrator == "symplectic_euler"
    assert made.contact == original.contact
    again = mujoco.MjData(made.model)
    made.step(again, 100)
    assert np.array_equal(data.qpos, again.qpos)
    count = len(original.events)
    original.reset()
    assert not len(original.events) and original.smallest_gap == np.inf
    third = mujoco.MjData(model)
    original.step(third, 100)
    assert np.array_equal(third.qpos, data.qpos) and len(original.events) == count
