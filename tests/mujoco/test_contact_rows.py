"""Rows of contacts are MuJoCo's own, whatever the joints that move the bodies."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import holdfast as hf
from holdfast.mujoco.constraints import Kind
from holdfast.tools import scenes

FLOOR = '<geom type="plane" size="5 5 1"/>'
BOXES = FLOOR + "".join(
    f'<body pos="{x} 0 {z}" euler="{3 * x} 5 7"><freejoint/>'
    '<geom type="box" size=".1 .1 .1"/></body>'
    for x, z in ((0.0, 0.1), (0.02, 0.29), (-0.03, 0.48))
)
# A slide, a ball, a hinge and links that are welded; its ends touch the floor and each other.
CHAIN = (
    FLOOR
    + """
<body pos="0 0 .3"><joint type="slide" axis="1 0 1"/><geom size=".02"/>
  <body pos=".1 0 0"><joint type="ball"/><geom size=".03" pos="0 0 -.275"/>
    <body pos=".2 0 0"><geom size=".02"/>
      <body pos=".1 0 0"><joint axis="0 1 0"/><joint axis="1 0 0" pos="0 .1 0"/>
        <geom type="capsule" fromto="0 0 0 .01 0 -.29" size=".02"/></body></body></body>
  <body pos=".35 0 -.05"><joint axis="0 0 1" pos="-.3 0 0"/><geom size=".06"/></body></body>
<body mocap="true" pos=".1 .03 .02"><geom size=".03"/></body>"""
)


def rows_of_mujoco(model: mujoco.MjModel, data: mujoco.MjData) -> list[np.ndarray]:
    """Rows of the contacts, along the axes of their frames."""
    data.qvel[:] = np.linspace(-1e-3, 1e-3, model.nv)
    mujoco.mj_forward(model, data)
    J = np.zeros((data.nefc, model.nv))
    if mujoco.mj_isSparse(model):
        mujoco.mju_sparse2dense(J, data.efc_J, data.efc_J_rownnz, data.efc_J_rowadr,
                                data.efc_J_colind)  # fmt: skip
    else:
        J[:] = data.efc_J.reshape(data.nefc, model.nv)
    return [
        J[a : a + dim] for a, dim in zip(data.contact.efc_address, data.contact.dim, strict=True)
    ]


@pytest.mark.parametrize("jacobian", ["dense", "sparse"])
@pytest.mark.parametrize("condim", [1, 3, 4, 6])
@pytest.mark.parametrize("world", [BOXES, CHAIN, "quadruped"], ids=["boxes", "chain", "quadruped"])
def test_rows_are_those_of_mujoco(world: str, condim: int, jacobian: str) -> None:
    if world == "quadruped":
        spec = mujoco.MjSpec.from_string(scenes.quadruped())
    else:
        spec = mujoco.MjSpec.from_string(f"<mujoco><worldbody>{world}</worldbody></mujoco>")
    spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    spec.option.jacobian = getattr(mujoco.mjtJacobian, f"mjJAC_{jacobian.upper()}")
    for geom in spec.geoms:
        geom.condim, geom.friction = condim, [1.0, 0.1, 0.1]
    model = spec.compile()
    data = mujoco.MjData(model)
    if model.nkey:
        mujoco.mj_resetDataKeyframe(model, data, 0)
        data.qpos[2] -= 1e-3
    theirs = rows_of_mujoco(model, data)
    places, pairs = data.contact.pos.copy(), data.contact.geom.copy()
    outcome = hf.Stepper(model, warn=False).constraints(data)
    assert len(theirs) > 2
    found = 0
    for k in np.flatnonzero(outcome.kind == Kind.CONTACT):
        same = (pairs == outcome.geom[k]).all(axis=1)
        same &= (np.abs(places - outcome.place[k, :3]) < 1e-12).all(axis=1)
        for i in np.flatnonzero(same):
            rows = outcome.J[outcome.row[k] : outcome.row[k + 1]]
            np.testing.assert_allclose(rows, theirs[i], rtol=1e-12, atol=1e-14)
            found += 1
    assert found == len(theirs)
