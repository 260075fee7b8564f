"""The border to MuJoCo: its library, sizes of mocap bodies, forces as it encodes them."""

from __future__ import annotations

import ctypes
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mujoco
import numpy as np
import pytest

import holdfast as hf
from holdfast.errors import UnsupportedError
from holdfast.mujoco import c_api
from holdfast.mujoco.private_model import PrivateModel

FLOOR = '<geom type="plane" size="9 9 1"/>'


def load(world: str, option: str = "") -> tuple[Any, Any]:
    model = mujoco.MjModel.from_xml_string(
        f"<mujoco><option {option}/><worldbody>{world}</worldbody></mujoco>"
    )
    return model, mujoco.MjData(model)


def test_the_library_is_that_of_the_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """One of another version, or one without batches, is not taken, though it lies beside it."""
    now, libraries = mujoco.mj_version(), {}
    for name, version, batches in (("1", now, False), ("2", now + 1, True), ("3", now, True)):
        path = tmp_path / f"libmujoco.so.{name}"
        path.touch()
        libraries[str(path)] = SimpleNamespace(mj_version=lambda version=version: version)
        if batches:
            libraries[str(path)].mjb_apply = None
    monkeypatch.setattr(mujoco, "__file__", str(tmp_path / "__init__.py"))
    monkeypatch.setattr(ctypes, "CDLL", libraries.get)
    find: Any = c_api.library.__wrapped__
    assert find() is libraries[str(tmp_path / "libmujoco.so.3")]
    (tmp_path / "libmujoco.so.3").unlink()
    with pytest.raises(UnsupportedError, match="no library with mjb_apply"):
        find()


@pytest.mark.parametrize("which", [0, 1])
def test_a_mocap_body_may_jump_by_its_size(which: int) -> None:
    """A long bat moves by less than its length in a step: it hits the ball with its speed."""
    bats = "".join(
        f'<body mocap="true" pos="0 {5 * k} 0"><geom type="box" size="0.05 0.05 0.5"/></body>'
        for k in range(2)
    )
    ball = f'<body pos="0.7 {5 * which} 0"><freejoint/><geom size="0.1"/></body>'
    model, data = load(bats + ball, 'timestep="0.01" gravity="0 0 0"/><statistic meansize="0.01"')
    stepper = hf.Stepper(model, warn=False)
    stepper.step(data)
    data.mocap_pos[which, 0] = 0.5  # at 50 m/s, and the gap to the ball is 0.05
    stepper.step(data)
    assert data.qvel[0] == pytest.approx(50.0 - 0.05 / 0.01, rel=1e-9)


@pytest.mark.parametrize("cone", ["elliptic", "pyramidal"])
def test_forces_as_mujoco_reads_them(cone: str) -> None:
    """A box that slides: normal forces bear its weight, friction is mu times that."""
    model, data = load(FLOOR + '<body pos="0 0 0.1"><freejoint/>'
                       '<geom type="box" size="0.1 0.1 0.1" mass="2" friction="0.5"/></body>',
                       f'cone="{cone}"')  # fmt: skip
    model.geom_friction[:, 0] = 0.5
    data.qvel[0] = 1.0
    hf.Stepper(model, warn=False).step(data)
    total, wrench = np.zeros(3), np.zeros(6)
    assert data.ncon == 4
    for i in range(data.ncon):
        mujoco.mj_contactForce(model, data, i, wrench)
        total += data.contact[i].frame.reshape(3, 3).T @ wrench[:3]
    weight = 2.0 * 9.81
    np.testing.assert_allclose(total, [-0.5 * weight, 0.0, weight], atol=1e-8 * weight)
    np.testing.assert_allclose(data.qfrc_constraint[:3], total, atol=1e-8 * weight)


@pytest.mark.parametrize("gap", [-1e-5, 1e-9])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_contact_whose_normal_meets_the_axis_far_from_the_origin(axis: int, gap: float) -> None:
    """Its row is the rounding of its place: nothing blocks the joint, however far it is away."""
    far, normal = np.array([0.1, 0.2, 0.3]), np.array([np.sin(0.5), 0.0, np.cos(0.5)])
    far[axis] = 3e4
    under = far - (0.2 + gap) * normal
    # a wheel turns about y in front of a slope, which it slides on without friction
    model, data = load(
        f'<body pos="{far[0]} {far[1]} {far[2]}"><joint axis="0 1 0"/>'
        '<geom type="sphere" size="0.1" condim="1" mass="1"/></body>'
        f'<geom type="box" size="1 1 0.1" condim="1" pos="{under[0]} {under[1]} {under[2]}" '
        f'euler="0 {np.degrees(0.5)} 0"/>',
        'timestep="0.01"',
    )
    for speed in (1.0, -1.0):
        mujoco.mj_resetData(model, data)
        data.qvel[0] = speed
        stepper = hf.Stepper(model, warn=False)
        for _ in range(3):
            stepper.step(data)
            assert np.abs(data.efc_force).max(initial=0.0) < 1e3
        assert data.qvel[0] == pytest.approx(speed, abs=1e-6)
        assert data.qpos[0] == pytest.approx(0.03 * speed, abs=1e-6)


@pytest.mark.parametrize("integrator", ["Euler", "implicit", "discrete"])
@pytest.mark.parametrize("adhesion", [0.0, 20.0])
def test_positions_contacts_and_rows_from_python(integrator: str, adhesion: float) -> None:
    """What `PrivateModel.collide` lists is what MuJoCo does, with margins that are as wide."""
    model, data = load(FLOOR + '<body pos="0 0 0.1"><freejoint/><geom type="box" '
                       f'size="0.1 0.1 0.1" adhesion="{adhesion}"/></body>'
                       '<body pos="1 0 1"><joint damping="2"/><geom size="0.1" pos="0.3 0 0"/>'
                       "</body>", f'integrator="{integrator}"')  # fmt: skip
    private = PrivateModel(model)
    assert private.discrete == (integrator == "discrete")
    assert private.adhesive == (adhesion > 0.0)
    private.collide(data)
    assert data.ncon == 4 and data.nefc == 12
    assert (data.efc_type == mujoco.mjtConstraint.mjCNSTR_CONTACT_ELLIPTIC).all()
    other = mujoco.MjData(model)
    mujoco.mj_fwdPosition(private.model, other)
    assert other.nefc == data.nefc
    for name in ("xpos", "M", "qLD", "efc_J", "efc_pos", "actuator_length"):
        np.testing.assert_array_equal(getattr(data, name), getattr(other, name), err_msg=name)
