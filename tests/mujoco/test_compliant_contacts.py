"""Contacts: rigid by default, compliant as MuJoCo's by choice."""

from __future__ import annotations

import copy
from typing import Any

import mujoco
import numpy as np
import pytest

import holdfast as hf

EXACT = '<option timestep="0.002" cone="elliptic" tolerance="1e-15" iterations="200" {}>'
SLOPE = (
    "<mujoco>" + EXACT + '<flag eulerdamp="disable"/></option><worldbody>'
    '<geom type="plane" size="5 5 1" euler="0 10 0" friction="{} .05 .01" condim="{}" {}/>'
    '<body euler="0 10 0"><freejoint/><geom type="box" pos="0 0 .1" size=".1 .1 .1" mass="2"'
    ' friction=".1 .005 .0001" condim="{}" {}/></body></worldbody></mujoco>'
)  # fmt: skip
CROWD = (
    "<mujoco>" + EXACT.format("") + "</option>"
    '<default><geom friction=".6 .02 .002"/></default><worldbody>'
    '<geom type="plane" size="5 5 1" condim="1"/>'
    '<body pos="0 0 .1"><freejoint/><geom type="box" size=".2 .15 .1" condim="{0}"/></body>'
    '<body pos=".02 .01 .25" euler="10 20 30"><freejoint/>'
    '<geom type="box" size=".06 .05 .04" condim="{0}" solref=".01 .7" margin=".003"/></body>'
    '<body pos="-.1 0 .28"><freejoint/><geom size=".07" condim="{0}" solimp=".8 .9 .01"/></body>'
    '<body pos=".35 0 .1"><joint axis="0 1 0" damping=".1" limited="true" range="-60 60"/>'
    '<geom type="capsule" size=".03" fromto="0 0 0 0 0 .4"/><body pos="0 0 .4">'
    '<joint axis="0 1 0" damping=".1" frictionloss=".05"/>'
    '<geom type="capsule" size=".03" fromto="0 0 0 -.3 0 0" condim="{0}"/></body></body>'
    "</worldbody></mujoco>"
)  # fmt: skip
PUSHED = (
    "<mujoco>" + EXACT + "</option>"
    '<worldbody><body name="bat" mocap="true" pos="-.15 0 0"><geom type="box" size=".05 .2 .2"/>'
    '</body><body><joint type="slide" axis="1 0 0" damping="2"/><geom size=".1" mass="1"/></body>'
    "</worldbody></mujoco>"
)  # fmt: skip


def load(xml: str) -> tuple[mujoco.MjModel, mujoco.MjData, hf.Stepper]:
    model = mujoco.MjModel.from_xml_string(xml)
    stepper = hf.Stepper(model, contacts="compliant", warn=False, strict=True)
    return model, mujoco.MjData(model), stepper


def slope(option: str = "", mu: float = 1.0, dim: int = 3, floor: str = "", box: str = "") -> str:
    return SLOPE.format(option, mu, dim, floor, dim, box)


@pytest.mark.parametrize(
    "scene",
    [
        slope(),
        slope(dim=1),
        slope(dim=4),
        slope(dim=6),
        slope('impratio="20"'),
        slope('integrator="discrete"'),
        slope(box='solref=".05 .4" solimp=".5 .8 .02"'),
        slope(box='solref="-3000 -40"'),
        slope(floor='margin=".01"', box='margin=".02" gap=".01"'),
    ],
)
def test_what_sticks_or_has_no_friction_moves_as_in_mujoco(scene: str) -> None:
    model, ours, stepper = load(scene)
    ours.qpos[2] += model.geom_margin.sum() - 1e-3
    theirs, touches = mujoco.MjData(model), 0
    for _ in range(300):
        theirs.qpos[:], theirs.qvel[:] = ours.qpos, ours.qvel
        mujoco.mj_step(model, theirs)
        stepper.step(ours)
        assert np.abs(ours.qvel - theirs.qvel).max() <= 1e-10
        assert ours.nefc == theirs.nefc
        assert np.allclose(ours.efc_force, theirs.efc_force, rtol=1e-8, atol=1e-8)
        touches += ours.ncon > 0
    assert touches > 200


def test_contacts_begin_and_bodies_rest_where_they_do_in_mujoco() -> None:
    model, ours, stepper = load(slope(mu=0.0, dim=1, floor='margin=".03" gap=".01"'))
    model.geom_quat[0] = [1.0, 0.0, 0.0, 0.0]
    theirs = mujoco.MjData(model)
    for data in (ours, theirs):
        data.qpos[:] = [0, 0, 0.05, 1, 0, 0, 0]
    mujoco.mj_step(model, theirs, 1500)
    stepper.step(ours, 1500)
    assert 0.029 < ours.qpos[2] < 0.03  # above the floor, within the margin
    assert ours.qpos[2] == pytest.approx(theirs.qpos[2], abs=1e-9)


def test_what_slides_obeys_coulomb_and_is_not_lifted() -> None:
    model, data, stepper = load(slope(mu=0.1))
    g, angle = 9.81, np.deg2rad(10.0)
    stepper.step(data, 600)  # until it has sunk in
    along, speed = np.array([np.cos(angle), 0.0, -np.sin(angle)]), []
    for _ in range(100):
        speed.append(data.qvel[:3] @ along)
        stepper.step(data)
        normal = sum(row["normal_force"] for row in stepper.contacts)
        assert normal == pytest.approx(2.0 * g * np.cos(angle), rel=1e-9)
    rate = (speed[-1] - speed[0]) / (99 * 0.002)
    assert rate == pytest.approx(g * (np.sin(angle) - 0.1 * np.cos(angle)), rel=1e-9)
    theirs = mujoco.MjData(model)  # MuJoCo's friction pushes the surfaces apart as well
    theirs.qpos[:], theirs.qvel[:] = data.qpos, data.qvel
    mujoco.mj_step(model, theirs)
    assert theirs.efc_force[theirs.contact.efc_address].sum() > 1.1 * normal


def law_miss(model: Any, data: Any) -> tuple[float, int, int]:
    """How far contacts are from the law that `giving` states, from mjData alone.

    Also how many stick and how many slide.
    """
    h, rows = model.opt.timestep, data.efc_J.reshape(-1, model.nv)
    p = h * data.efc_force
    u = rows @ data.qvel + data.efc_R * p - (data.efc_vel + h * data.efc_aref)
    worst, sticks, slides = 0.0, 0, 0
    size = 1e-3 + np.abs(data.qvel).max()
    for c in data.contact:
        if c.exclude:
            continue
        a, mu = c.efc_address, c.friction[: c.dim - 1]
        push, part = p[a] * data.efc_R[a], u[a]
        worst = max(worst, -push, -part, min(push, part))
        if c.dim > 1 and p[a] > 0.0:
            pull, along = p[a + 1 : a + c.dim] / mu, mu * u[a + 1 : a + c.dim]
            speed = np.linalg.norm(along)
            worst = max(worst, (np.linalg.norm(pull) / p[a] - 1.0) * size)
            worst = max(worst, (pull @ along) / p[a] + speed)  # as much against it as can be
            sticks, slides = sticks + (speed < 1e-9), slides + (speed > 1e-6)
    return worst / size, sticks, slides


@pytest.mark.parametrize("dim", [3, 4, 6])
def test_contacts_obey_their_law(dim: int) -> None:
    stuck, slid = 0, 0
    for seed in range(3):
        model, data, stepper = load(CROWD.format(dim))
        data.qvel[:] = np.random.default_rng(seed).normal(size=model.nv)
        for _ in range(250):
            stepper.step(data)
            miss, sticks, slides = law_miss(model, data)
            assert miss <= 1e-8
            stuck, slid = stuck + sticks, slid + slides
    assert stuck > 100
    assert slid > 100


def test_cones_of_the_model_make_no_difference() -> None:
    ends = []
    for cone in ("elliptic", "pyramidal"):
        model, data, stepper = load(CROWD.format(4).replace('cone="elliptic"', f'cone="{cone}"'))
        stepper.step(data, 200)
        force = np.zeros(6)
        total = np.zeros(6)
        for i in range(data.ncon):
            mujoco.mj_contactForce(model, data, i, force)
            total += force
        ends.append((data.qpos.copy(), total[:3].copy()))
    assert np.array_equal(ends[0][0], ends[1][0])
    assert np.allclose(ends[0][1], ends[1][1], rtol=1e-9)


def test_adhesion_is_that_of_mujoco() -> None:
    """A ball that hangs from a plate which attracts it, within the margin and in contact."""
    model, ours, stepper = load(
        "<mujoco>" + EXACT.format("") + '</option><worldbody><body name="plate" pos="0 0 1">'
        '<geom type="box" size=".3 .3 .05" margin=".02" gap=".01"/></body>'
        '<body pos="0 0 .84"><freejoint/><geom size=".1" mass="1"/></body></worldbody>'
        '<actuator><adhesion body="plate" ctrlrange="0 1" gain="30"/></actuator></mujoco>'
    )
    theirs = mujoco.MjData(model)
    ours.ctrl[0] = theirs.ctrl[0] = 1.0
    for _ in range(200):
        theirs.qpos[:], theirs.qvel[:] = ours.qpos, ours.qvel
        mujoco.mj_step(model, theirs)
        stepper.step(ours)
        assert np.abs(ours.qvel - theirs.qvel).max() <= 1e-10
    assert ours.qpos[2] > 0.82


def test_mocap_bodies_push_with_their_velocity() -> None:
    """What a bat carries along sinks into it by what the force takes; in MuJoCo, by speed as well.

    There the damping of the contact brakes it, because mocap bodies have no velocity.
    """
    model, ours, stepper = load(PUSHED.format('gravity="0 0 0"'))
    theirs, depth = mujoco.MjData(model), []
    for data in (ours, theirs):
        for _ in range(1500):
            data.mocap_pos[0, 0] += 0.2 * model.opt.timestep
            stepper.step(data) if data is ours else mujoco.mj_step(model, data)
        assert data.qvel[0] == pytest.approx(0.2, abs=1e-6)
        depth.append(data.contact.dist[0])
    assert ours.efc_force[0] == pytest.approx(0.4, rel=1e-6)
    still = mujoco.MjData(model)  # what carries that force at rest
    still.mocap_pos[0, 0] = -0.15 - depth[0]
    mujoco.mj_forward(model, still)
    assert still.efc_aref[0] / still.efc_R[0] == pytest.approx(0.4, rel=1e-3)
    assert depth[1] < 1.5 * depth[0] < 0.0


def test_contacts_that_must_not_slip_are_not_compliant() -> None:
    model = mujoco.MjModel.from_xml_string(slope())
    with pytest.raises(hf.InputError, match="contacts: cannot be compliant where they must not"):
        hf.Stepper(model, hf.NoSlip(), contacts="compliant")
    with pytest.raises(hf.InputError, match="contacts: cannot be compliant where they must not"):
        hf.Stepper(model, laws={("*", "*"): hf.stick()}, contacts="compliant")
    text = '<custom><text name="holdfast:*,*" data="stick"/></custom></mujoco>'
    sticky = mujoco.MjModel.from_xml_string(slope().replace("</mujoco>", text))
    with pytest.raises(hf.InputError, match="contacts: cannot be compliant where they must not"):
        hf.Stepper(sticky, contacts="compliant")
    for name in ("contacts", "limits"):  # limits were rigid, and it was not said
        with pytest.raises(hf.InputError, match=f"{name}: cannot be compliant with AnitescuPotra"):
            hf.Stepper(model, hf.AnitescuPotra(mu=0.5), **{name: "compliant"})


def test_viscous_and_frictionless_contacts_give_way_along_the_normal() -> None:
    """Down a slope without friction, and against a drag that stays as it is for rigid contact."""
    model = mujoco.MjModel.from_xml_string(slope())
    for law, drag in ((hf.Frictionless(), 0.0), (hf.Viscous(3.0), 4 * 3.0)):
        stepper, data = hf.Stepper(model, law, contacts="compliant"), mujoco.MjData(model)
        stepper.step(data, 500)
        before = data.qvel[0] / np.cos(np.deg2rad(10.0))
        stepper.step(data)
        after = data.qvel[0] / np.cos(np.deg2rad(10.0))
        rate = 9.81 * np.sin(np.deg2rad(10.0)) - drag * after / 2.0
        assert after - before == pytest.approx(0.002 * rate, abs=1e-7)
        assert stepper.largest_penetration > 1e-5


def test_sensors_and_callbacks(request: pytest.FixtureRequest) -> None:
    request.addfinalizer(lambda: mujoco.set_mjcb_control(None))
    scene = CROWD.format(3).replace(
        "</worldbody>",
        '<site name="s" type="box" size="5 5 .01"/></worldbody><sensor><touch site="s"/></sensor>',
    )
    ends = []
    for called in (False, True):
        _, data, stepper = load(scene)
        mujoco.set_mjcb_control((lambda *_: None) if called else None)
        stepper.step(data, 300)
        ends.append((data.qpos.copy(), data.sensordata.copy(), data.qfrc_constraint.copy()))
    for ours, theirs in zip(*ends, strict=True):
        assert np.allclose(ours, theirs, rtol=1e-8, atol=1e-9)


def test_one_call_and_single_steps_give_the_same_bits() -> None:
    model, data, stepper = load(CROWD.format(4))
    other, second = mujoco.MjData(model), copy.copy(stepper)
    stepper.step(data, 200)
    for _ in range(200):
        second.step(other)
    assert np.array_equal(data.qpos, other.qpos)
    assert np.array_equal(data.qvel, other.qvel)


def test_overlaps_that_have_no_compliance_do_not_block_a_joint() -> None:
    """A wheel in its bearing, for which MuJoCo finds no weight: its centre is on the axis."""
    model, data, stepper = load(
        "<mujoco>" + EXACT.format('gravity="0 0 0"') + "</option><worldbody>"
        '<geom type="box" size=".2 .2 .05" pos="0 0 -.075"/><body><joint axis="0 1 0"/>'
        '<geom type="cylinder" size=".03 .05" euler="90 0 0"/></body></worldbody></mujoco>'
    )
    data.qvel[0] = 1.0
    theirs = copy.copy(data)
    mujoco.mj_forward(model, theirs)
    assert theirs.ncon > 0
    assert theirs.efc_R.min() <= mujoco.mjMINVAL
    with pytest.warns(hf.StepWarning, match="overlap"):
        stepper.step(data)
    stepper.step(data, 99)
    assert data.qvel[0] == 1.0
    assert data.qpos[0] == pytest.approx(0.2)


@pytest.mark.parametrize("scene", [slope(), slope(mu=0.1), CROWD.format(3), CROWD.format(6)])
def test_a_step_does_not_depend_on_earlier_ones(scene: str) -> None:
    model, data, stepper = load(scene)
    fresh, other = copy.copy(stepper), mujoco.MjData(model)
    data.qvel[:] = 0.3 * np.random.default_rng(5).normal(size=model.nv)
    for _ in range(200):
        other.qpos[:], other.qvel[:] = data.qpos, data.qvel
        fresh.reset()
        fresh.step(other)
        stepper.step(data)
        assert np.array_equal(data.qvel, other.qvel)
        assert np.array_equal(data.qpos, other.qpos)


def test_forces_without_a_step_are_those_of_the_step() -> None:
    model, data, stepper = load(CROWD.format(3))
    stepper.step(data, 100)
    stepper.forward(data)
    rate, force, speed = data.qacc.copy(), data.qfrc_constraint.copy(), data.qvel.copy()
    stepper.step(data)
    assert np.allclose(data.qfrc_constraint, force, rtol=1e-9, atol=1e-9)
    assert np.allclose(data.qvel, speed + model.opt.timestep * rate, rtol=1e-9, atol=1e-9)


def test_contacts_that_give_way_are_not_corrected() -> None:
    """A body that begins deep in the floor is pushed out by MuJoCo's spring, not put elsewhere."""
    model, ours, stepper = load(slope())
    theirs = mujoco.MjData(model)
    for data in (ours, theirs):
        data.qpos[2] = -0.05
    mujoco.mj_step(model, theirs)
    stepper.step(ours)
    assert np.abs(ours.qpos - theirs.qpos).max() < 1e-9
    assert stepper.largest_correction == 0.0
    assert stepper.largest_penetration > 0.04


def test_rollouts_and_copies_keep_the_choice() -> None:
    model, data, stepper = load(CROWD.format(3))
    start = np.zeros(mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS))
    mujoco.mj_getState(model, data, start, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    state, _ = hf.rollout(model, None, start, nstep=50, contacts="compliant")
    rigid, _ = hf.rollout(model, None, start, nstep=50)
    stepper.step(data, 50)
    assert np.array_equal(state[0, -1, 1 : 1 + model.nq], data.qpos)
    assert np.abs(rigid[0, -1] - state[0, -1]).max() > 1e-5
    assert copy.copy(stepper)._get("rigid_contacts") == 0


@pytest.mark.parametrize("name", ["contacts", "limits", "equalities"])
@pytest.mark.parametrize(
    "choice", ["soft", "", None, True, 1.0, ["rigid"], np.array(["compliant", "rigid"])]
)
def test_unknown_choices_are_refused_by_name(name: str, choice: Any) -> None:
    """By steppers and rollouts."""
    model = mujoco.MjModel.from_xml_string(slope())
    start = np.zeros(mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS))
    expected = rf"{name}: is (?s:.*); expected 'compliant' or 'rigid'"
    with pytest.raises(hf.InputError, match=expected):
        hf.Stepper(model, **{name: choice})
    with pytest.raises(hf.InputError, match=expected):
        hf.rollout(model, None, start, nstep=2, **{name: choice})


def test_a_problem_of_a_step_is_the_rigid_one_with_the_same_answer() -> None:
    _, data, stepper = load(slope())
    stepper.step(data, 100)
    solution = stepper.solution
    assert solution is not None
    closed = solution.problem.N @ solution.motion - solution.problem.c_N
    assert (solution.normal > 0.0).all()
    assert np.abs(closed).max() < 1e-12  # where the normals are pressed
    assert solution.momentum_residual() < 1e-10
