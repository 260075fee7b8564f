"""The compiled step: one call, stage by stage, on dense and sparse lists of rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.mujoco._mj import mujoco
from holdfast.mujoco.record import Status
from holdfast.tools import scenes

TABLE = """<mujoco><option integrator="{integrator}"/><worldbody><geom type="plane" size="1 1 1"/>
  <body pos="0 0 .1"><freejoint/><geom type="box" size=".1 .1 .1" condim="{condim}"/>
    <body pos="0 0 .2"><joint damping=".1" axis="0 1 0" range="-1 1" frictionloss="{loss}"/>
      <geom type="capsule" size=".02 .05"/></body></body>
  </worldbody><sensor><touch site="s"/></sensor></mujoco>""".replace(
    '<geom type="capsule"', '<site name="s"/><geom type="capsule"'
)
DATA = Path(__file__).parents[1] / "data"
BOX_ABOVE = """<mujoco><worldbody><geom type="plane" size="1 1 1"/><body pos="0 0 {height}">
  <freejoint/><geom type="box" size=".1 .1 .1" mass="1"/></body></worldbody></mujoco>"""
STANDING = {
    "grasp": scenes.row_of_boxes(2),
    "row": scenes.row_of_boxes(8, size=0.05, mass=0.1, squeeze=40.0),
    "quadruped": scenes.quadruped(),
    "torsion": TABLE.format(integrator="Euler", condim=4, loss=0),
    "rolling": TABLE.format(integrator="implicitfast", condim=6, loss=0),
    "frictionless": TABLE.format(integrator="Euler", condim=1, loss=0),
    "brake": TABLE.format(integrator="implicitfast", condim=3, loss=1),
    "weld": """<mujoco><worldbody><geom type="plane" size="1 1 1"/>
      <body name="a" pos="0 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
      <body name="b" pos=".3 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
      </worldbody><equality><weld body1="a" body2="b"/></equality></mujoco>""",
}


def load(xml: str) -> tuple[Any, Any]:
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    if model.nkey:
        mujoco.mj_resetDataKeyframe(model, data, 0)
    return model, data


@pytest.mark.parametrize("contact", [None, hf.NoSlip()])
@pytest.mark.parametrize("name", STANDING)
def test_what_stands_is_certified_and_stays(name: str, contact: hf.ContactModel | None) -> None:
    model, data = load(STANDING[name])
    stepper = hf.Stepper(model, contact, warn=False, strict=True)
    stepper.step(data, 5)
    for _ in range(20):
        stepper.step(data)
        solution = stepper.solution
        assert solution is not None and solution.is_exact()
        assert solution.momentum_residual() < 1e-11
    assert stepper.uncertified_steps == stepper.inconsistent_steps == 0


SENSED = """<mujoco><option integrator="{}" cone="{}"><flag energy="enable"/></option><worldbody>
  <geom type="plane" size="1 1 1"/><body pos="0 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/>
  <site name="s"/><body pos="0 0 .2"><joint name="j" damping="1" stiffness="2"/>
  <geom size=".05" pos=".1 0 0"/></body></body></worldbody>
  <actuator><position joint="j" kp="3" dampratio="1"/></actuator>
  <sensor><accelerometer site="s"/><force site="s"/><touch site="s"/><jointpos joint="j"/>
  <jointvel joint="j"/></sensor></mujoco>"""
LIMITED = """<mujoco><worldbody><body><joint axis="0 1 0" range="-40 40" limited="true"/>
  <geom type="capsule" fromto="0 0 0 .3 0 0" size=".02"/><body pos=".3 0 0">
  <joint axis="0 1 0" range="-1 60" limited="true"/>
  <geom type="capsule" fromto="0 0 0 .3 0 0" size=".02"/></body></body></worldbody></mujoco>"""
CALLED = (
    STANDING
    | {"limits": LIMITED}
    | {
        f"{integrator}, {cone}": SENSED.format(integrator, cone)
        for integrator in ("Euler", "implicitfast", "implicit", "discrete")
        for cone in ("pyramidal", "elliptic")
    }
)


@pytest.mark.jit
@pytest.mark.parametrize("name", CALLED)
def test_one_call_does_what_the_stages_do(name: str) -> None:
    """A step in one call of compiled code gives the same bits as one stage by stage."""
    ends = []
    for staged in (False, True):
        model, data = load(CALLED[name])
        stepper = hf.Stepper(model, warn=False)
        data.ctrl[:] += 0.1
        for _ in range(100):
            if staged:
                stepper.smooth(data)
                stepper.solve(data)
                stepper.finish(data)
            else:
                stepper.step(data)
        size = mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_INTEGRATION)
        state = np.zeros(size)
        mujoco.mj_getState(model, data, state, mujoco.mjtState.mjSTATE_INTEGRATION)
        ends.append((state, data.qacc, data.qfrc_constraint, data.efc_force, data.sensordata,
                     data.energy, stepper.fastest_slip, stepper.largest_penetration))  # fmt: skip
    for ours, theirs in zip(*ends, strict=True):
        assert np.array_equal(ours, theirs)


@pytest.mark.parametrize("name", CALLED)
def test_callbacks_make_no_difference(name: str, request: pytest.FixtureRequest) -> None:
    """With a callback that does nothing, stages run from Python give the same motion."""
    request.addfinalizer(lambda: mujoco.set_mjcb_control(None))
    ends = []
    for called in (False, True):
        model, data = load(CALLED[name])
        mujoco.set_mjcb_control((lambda *_: None) if called else None)
        stepper = hf.Stepper(model, warn=False)
        data.ctrl[:] += 0.1
        stepper.step(data, 100)
        ends.append((data.qpos, data.qvel, data.qfrc_constraint, data.sensordata, data.energy))
    for ours, theirs in zip(*ends, strict=True):
        size = max(np.abs(theirs).max(initial=0.0), 1e-3)
        assert np.abs(ours - theirs).max(initial=0.0) < 1e-8 * size


def test_one_stepper_for_several_data() -> None:
    """What is kept from the last step is a place to begin, and never part of the answer."""
    model, first = load(scenes.quadruped())
    second = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, second, 0)
    second.qvel[0] = 0.1
    both, alone = hf.Stepper(model, warn=False), []
    for data in (first, second):
        copy = mujoco.MjData(model)
        mujoco.mj_copyData(copy, model, data)
        hf.Stepper(model, warn=False).step(copy, 30)
        alone.append(copy)
    for _ in range(30):
        both.step(first)
        both.step(second)
    for data, copy in zip((first, second), alone, strict=True):
        assert np.abs(data.qpos - copy.qpos).max() < 1e-10
        assert np.abs(data.qvel - copy.qvel).max() < 1e-9


def test_a_solution_stays_what_it_was() -> None:
    """Solutions are copies: later steps do not change them."""
    model, data = load(scenes.row_of_boxes(2))
    stepper = hf.Stepper(model, warn=False)
    stepper.step(data)
    solution, table = stepper.solution, stepper.contacts
    assert solution is not None
    normal, point = solution.normal.copy(), table.point.copy()
    data.ctrl[:] *= 2.0
    stepper.step(data, 3)
    assert np.array_equal(solution.normal, normal) and np.array_equal(table.point, point)
    assert stepper.solution is not None
    assert stepper.solution.normal.sum() == pytest.approx(2 * normal.sum(), rel=1e-6)


def test_many_contacts_come_and_go() -> None:
    """Work arrays grow with the contacts, and shrinking leaves nothing behind."""
    boxes = "".join(
        f'<body pos="{0.3 * i} 0 {0.1 + 0.05 * i}"><freejoint/><geom type="box" size=".1 .1 .1"/>'
        "</body>"
        for i in range(4)
    )
    model, data = load(f"""<mujoco><worldbody><geom type="plane" size="3 3 1"/>{boxes}
      </worldbody></mujoco>""")
    stepper = hf.Stepper(model, warn=False)
    counts = []
    for _ in range(150):
        stepper.step(data)
        counts.append(stepper.contact_count)
        assert counts[-1] == len(stepper._copy_outcome().contacts)
    assert max(counts) == 16 and counts[-1] == 16 and min(counts) <= 8
    assert data.qpos.reshape(4, 7)[:, 2] == pytest.approx(np.full(4, 0.1), abs=1e-9)
    data.qpos.reshape(4, 7)[1:, 2] += 1.0
    stepper.step(data)
    assert stepper.contact_count == 4


def test_a_pile_at_rest_stays_there() -> None:
    """Nothing moves; what is pushed or let go of does."""
    model, data = load(scenes.pile(8, 0, reach=0.05))
    stepper = hf.Stepper(model)
    stepper.step(data, 800)
    place, weight = np.array(data.qpos), float(model.body_mass.sum()) * 9.81
    for _ in range(20):
        stepper.step(data)
        solution = stepper.solution
        assert solution is not None and solution.momentum_residual() < 1e-9
        assert data.qfrc_constraint[2::6].sum() == pytest.approx(weight, rel=1e-6)
    assert data.qpos == pytest.approx(place, abs=1e-8)
    other = mujoco.MjData(model)
    mujoco.mj_copyState(model, data, other, mujoco.mjtState.mjSTATE_INTEGRATION)
    top = int(np.argmax(data.qpos[2::7]))
    data.qfrc_applied[6 * top + 2] = 20.0
    stepper.step(data)
    assert data.qvel[6 * top + 2] > 0.01
    model.opt.gravity[:] = 0.0  # and now nothing presses
    stepper.step(other)
    assert np.abs(other.qfrc_constraint).max() < 1e-6 * weight


LISTED = {**STANDING, "heap": scenes.pile(6), "pendulum": LIMITED}


@pytest.mark.parametrize("name", LISTED)
def test_how_rows_are_listed_makes_no_difference(name: str) -> None:
    """Dense or by their entries, as the model says; and so they stand in the data afterwards."""
    ends = []
    for listing in (mujoco.mjtJacobian.mjJAC_DENSE, mujoco.mjtJacobian.mjJAC_SPARSE):
        model, data = load(LISTED[name])
        model.opt.jacobian = listing
        stepper = hf.Stepper(model, warn=False)
        for _ in range(60):
            stepper.step(data)
            force = np.zeros(model.nv)
            mujoco.mj_mulJacTVec(model, data, force, data.efc_force)
            size = np.abs(data.qfrc_constraint).max(initial=1e-3)
            assert np.abs(force - data.qfrc_constraint).max() < 1e-9 * size
        solution = stepper.solution
        assert solution is not None and solution.is_exact()
        ends.append((data.qpos.copy(), data.qvel.copy(), solution.normal_impulse))
    for dense, sparse in zip(*ends, strict=True):
        size = max(np.abs(dense).max(initial=0.0), 1e-3)
        assert np.abs(dense - sparse).max(initial=0.0) < 1e-9 * size


@pytest.mark.jit
@pytest.mark.parametrize("xml", [scenes.quadruped(), scenes.row_of_boxes(2), scenes.pile(3)])
def test_scenes_are_stepped_in_one_call(xml: str) -> None:
    """Speed would show it, too: nothing that a usual model has leads off that path unnoticed."""
    model, data = load(xml)
    stepper = hf.Stepper(model, warn=False)
    stepper.step(data, 150)  # memory has grown as far as it needs to
    for _ in range(20):
        stepper._call()
        assert stepper._status[0] == Status.DONE


def test_points_that_mujoco_leaves_out_are_looked_for_once() -> None:
    """Boxes of this pile rest on points that MuJoCo's list does not have."""
    recorded = np.load(DATA / "resting_pile.npz")
    model = mujoco.MjModel.from_xml_string(str(recorded["xml"]))
    data, stepper = mujoco.MjData(model), hf.Stepper(model)
    data.qpos[:] = recorded["qpos"]
    stepper.step(data)
    assert stepper.resolved_steps == 1
    stepper.step(data, nstep=20)
    assert stepper.resolved_steps == 1
    assert np.abs(data.qvel).max() < 1e-10


def test_surfaces_that_touch_but_for_rounding_are_closed() -> None:
    """A gap of 1e-8 m under a box of 10 cm carries its weight, and is not closed."""
    model, data = load(BOX_ABOVE.format(height=0.1 + 1e-8))
    hf.step(model, data)
    assert abs(data.qvel[2]) < 1e-15 and data.qpos[2] == 0.1 + 1e-8
    np.testing.assert_allclose(data.qfrc_constraint[2], 9.81, rtol=1e-12)
    model, data = load(BOX_ABOVE.format(height=0.1 + 1e-6))
    hf.step(model, data)
    np.testing.assert_allclose(data.qpos[2], 0.1, atol=1e-12)
