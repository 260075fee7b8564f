"""Many steps in one call: what only the last of them leaves is what single steps leave."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import holdfast as hf
from holdfast.mujoco.record import Status
from holdfast.tools import scenes

FLOOR = '<geom type="plane" size="5 5 1"/>'
# A box that lies, a ball that flies and comes down, a link with damping and a limit, and a weld.
MIXED = (
    FLOOR + '<body pos="0 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/></body>'
    '<body name="ball" pos="1 0 .12"><freejoint/><geom size=".1"/></body>'
    '<body name="link" pos="2 0 1"><joint axis="0 1 0" damping="{damping}" limited="true" '
    'range="-30 30"/><geom type="capsule" fromto="0 0 0 .3 0 0" size=".05"/></body>'
)
FLYING = '<body pos="0 0 {}"><freejoint/><geom size=".1"/></body>'
WRITTEN = ("qpos", "qvel", "qacc", "qacc_warmstart", "qacc_smooth", "qfrc_smooth",
           "qfrc_constraint", "qLD", "qLDiagInv", "M", "cvel", "sensordata", "ne", "nf", "nl",
           "nefc", "ncon", "efc_J", "efc_pos", "efc_aref", "efc_force", "efc_type")  # fmt: skip
OF_CONTACTS = ("dist", "pos", "frame", "includemargin", "friction", "dim", "geom", "exclude",
               "efc_address")  # fmt: skip


def load(xml: str) -> tuple[mujoco.MjModel, mujoco.MjData]:
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    if model.nkey:
        mujoco.mj_resetDataKeyframe(model, data, 0)
    data.qvel[:] = 0.01 * np.random.default_rng(1).standard_normal(model.nv)
    return model, data


def world(bodies: str, option: str = "", extra: str = "") -> str:
    return f"<mujoco><option {option}/><worldbody>{bodies}</worldbody>{extra}</mujoco>"


CASES = {
    "grasp": scenes.row_of_boxes(2),
    "quadruped": scenes.quadruped(),
    **{f"mixed, {integrator}, {damping}": world(MIXED.format(damping=damping),
                                                f'integrator="{integrator}"')
       for integrator in ("Euler", "RK4", "implicit", "implicitfast", "discrete")
       for damping in (0, 1)},
    "elliptic": world(MIXED.format(damping=1), 'cone="elliptic"'),
    "sensors": world(MIXED.format(damping=1), "", '<sensor><framelinacc objtype="body" '
                     'objname="ball"/></sensor>'),
    "sleep": world(MIXED.format(damping=1), "").replace(
        "<option ", '<option><flag sleep="enable"/></option><option '),
    "weld": world(MIXED.format(damping=1), "", '<equality><weld body1="ball" body2="link"/>'
                  "</equality>"),
    "flying": world(FLYING.format(9)),
    "landing": world(FLOOR + FLYING.format(0.12)),
}  # fmt: skip


def assert_same(one: mujoco.MjData, other: mujoco.MjData) -> None:
    for name in WRITTEN:
        mine, others = getattr(one, name), getattr(other, name)
        np.testing.assert_array_equal(mine, others, err_msg=name)
    for name in OF_CONTACTS:
        mine, others = getattr(one.contact, name), getattr(other.contact, name)
        np.testing.assert_array_equal(mine, others, err_msg=name)


@pytest.mark.parametrize("name", CASES)
def test_the_last_step_of_a_call_leaves_what_a_single_one_does(name: str) -> None:
    model, data = load(CASES[name])
    other = load(CASES[name])[1]
    one, by_one = hf.Stepper(model, warn=False), hf.Stepper(model, warn=False)
    for count in (1, 7, 40, 2, 30):
        one.step(data, count)
        for _ in range(count):
            by_one.step(other)
        assert_same(data, other)


def test_what_ctrl_c_leaves_is_a_whole_step() -> None:
    """Between steps Python may raise: what has been written by then is complete."""
    model, data = load(CASES["quadruped"])
    stepper = hf.Stepper(model, warn=False)
    call = stepper._call

    def interrupted() -> object:
        call()
        if stepper._status[0] == Status.PAUSED:
            raise KeyboardInterrupt
        return None

    stepper._call = interrupted
    with pytest.raises(KeyboardInterrupt):
        stepper.step(data, 10**7)
    taken = round(data.time / model.opt.timestep)
    assert taken > 1
    other = load(CASES["quadruped"])[1]
    hf.Stepper(model, warn=False).step(other, taken)
    assert_same(data, other)
