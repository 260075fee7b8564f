"""Supports of geoms and slopes of height fields, beside dense references."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import mujoco
import numpy as np
import pytest

from holdfast.mujoco import separation
from plain_kernels import plain

RNG = np.random.default_rng(3)


def record(model: Any) -> Any:
    """What kernels read of a model."""
    names = ("geom_type", "geom_size", "geom_dataid", "mesh_vertadr", "mesh_vertnum", "mesh_vert",
             "mesh_graphadr", "mesh_graph", "hfield_size", "hfield_nrow", "hfield_ncol",
             "hfield_adr", "hfield_data")  # fmt: skip
    return SimpleNamespace(
        **{name: getattr(model, name).ctypes.data for name in names}, ngeom=model.ngeom,
        nmesh=model.nmesh, nhfield=model.nhfield,
    )  # fmt: skip


def surface(model: Any, g: int) -> np.ndarray:
    """Many points of the surface of a geom, in its own frame."""
    size, kind = model.geom_size[g], mujoco.mjtGeom(model.geom_type[g])
    ball = RNG.normal(size=(40_000, 3))
    ball /= np.linalg.norm(ball, axis=1, keepdims=True)
    corners = np.array([[i, j, k] for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)])
    circle = ball[:, :2] / np.linalg.norm(ball[:, :2], axis=1, keepdims=True)
    if kind == mujoco.mjtGeom.mjGEOM_MESH:
        return np.array(model.mesh_vert, dtype=float)
    return {
        "SPHERE": size[0] * ball, "ELLIPSOID": size * ball, "BOX": size * corners,
        "CAPSULE": size[0] * ball + np.sign(ball[:, 2:]) * [0.0, 0.0, size[1]],
        "CYLINDER": np.hstack([size[0] * circle, size[1] * np.sign(ball[:, 2:])]),
    }[kind.name[7:]]  # fmt: skip


@pytest.mark.parametrize("geom", [
    'type="sphere" size="0.3"', 'type="ellipsoid" size="0.1 0.2 0.4"',
    'type="box" size="0.1 0.3 0.2"', 'type="capsule" size="0.1 0.3"',
    'type="cylinder" size="0.3 0.1"', 'type="mesh" mesh="few"', 'type="mesh" mesh="many"',
])  # fmt: skip
def test_supports(geom: str) -> None:
    """Meshes of few vertices and of many, whose hull is climbed."""
    meshes = ""
    for name, count in (("few", 12), ("many", 200)):
        text = " ".join(f"{x:.5f}" for x in RNG.normal(size=3 * count))
        meshes += f'<mesh name="{name}" vertex="{text}"/>' if name in geom else ""
    model = mujoco.MjModel.from_xml_string(
        f"<mujoco><asset>{meshes}</asset><worldbody>"
        f'<geom {geom} pos="1 2 3" euler="10 20 30"/></worldbody></mujoco>'
    )
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    d = SimpleNamespace(geom_xmat=data.geom_xmat.ctypes.data, geom_xpos=data.geom_xpos.ctypes.data)
    points = surface(model, 0) @ data.geom_xmat.reshape(3, 3).T + data.geom_xpos
    s, support, farthest = record(model), plain(separation.support), plain(separation.farthest)
    for n in RNG.normal(size=(20, 3)):
        n /= np.linalg.norm(n)
        reach = float((points @ n).max())
        assert support(s, d, 0, *n) == pytest.approx(reach, abs=2e-3)  # points are not dense
        assert support(s, d, 0, *n) >= reach - 1e-12
        far = np.array(farthest(s, d, 0, *n))
        assert n @ far == pytest.approx(support(s, d, 0, *n), abs=1e-12)
        assert np.linalg.norm(points - far, axis=1).min() < 0.02  # it is on the surface


def test_slopes_of_height_fields() -> None:
    """The steepest of the triangles about a point; none at the border, where walls are."""
    heights = np.zeros((6, 5))
    heights[2, 3] = 1.0
    text = " ".join(f"{x}" for x in heights[::-1].ravel())
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><asset><hfield name="h" nrow="6" ncol="5" elevation="{text}" '
        'size="2 5 0.5 0.1"/></asset><worldbody><geom type="hfield" hfield="h"/></worldbody>'
        "</mujoco>"
    )
    s, steepest = record(model), plain(separation.steepest)
    stored = np.array(model.hfield_data).reshape(6, 5)
    i, j = (int(k[0]) for k in np.nonzero(stored))
    x, y = -2.0 + j * 1.0, -5.0 + i * 2.0
    peak = np.hypot(0.5 / 1.0, 0.5 / 2.0)
    assert steepest(s, 0, x + 0.1, y + 0.1) == pytest.approx(peak)
    far = -2.0 + 1.1 if j >= 3 else 2.0 - 1.1
    assert steepest(s, 0, far, 5.0 - 0.2 if i < 3 else -5.0 + 0.2) == 0.0
    assert steepest(s, 0, -2.0, 0.0) == np.inf and steepest(s, 0, 0.0, 5.1) == np.inf


def test_heights_of_height_fields() -> None:
    """They are where rays meet the field; below everything beyond its border."""
    text = " ".join(f"{x:.5f}" for x in RNG.random(35))
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><asset><hfield name="h" nrow="7" ncol="5" elevation="{text}" size="2 5 0.5 0.1"/>'
        '</asset><worldbody><geom type="hfield" hfield="h"/></worldbody></mujoco>'
    )
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    s, height, hit = record(model), plain(separation.height), np.zeros(1, dtype=np.int32)
    for x, y in RNG.uniform((-2.0, -5.0), (2.0, 5.0), size=(100, 2)):
        down = mujoco.mj_ray(model, data, np.array([x, y, 3.0]), np.array([0.0, 0.0, -1.0]), None,
                             1, -1, hit)  # fmt: skip
        assert height(s, 0, x, y) == pytest.approx(3.0 - down, abs=1e-6)
    for x, y in ((2.1, 0.0), (-2.1, 0.0), (0.0, 5.1), (0.0, -5.1)):
        assert height(s, 0, x, y) == -np.inf


def test_how_deep_a_geom_is_below_a_slope() -> None:
    """As measured across it, however the field stands."""
    rng = np.random.default_rng(8)
    rows = " ".join(f"{0.25 * i}" for i in range(5) for _ in range(5))
    for _ in range(20):
        turn, x, deep = rng.normal(size=4), rng.uniform(-0.5, 0.5, size=2), rng.uniform(-0.1, 0.1)
        model = mujoco.MjModel.from_xml_string(
            f'<mujoco><asset><hfield name="h" nrow="5" ncol="5" elevation="{rows}" '
            'size="2 2 1 0.1"/></asset><worldbody><geom type="hfield" hfield="h" pos="1 2 3" '
            f'quat="{turn[0]} {turn[1]} {turn[2]} {turn[3]}"/><geom size="0.2"/>'
            "</worldbody></mujoco>"
        )
        data = mujoco.MjData(model)
        mujoco.mj_kinematics(model, data)
        s, R = record(model), data.geom_xmat[0].reshape(3, 3)
        h = plain(separation.height)(s, 0, *x)
        slope = plain(separation.height)(s, 0, x[0], x[1] + 0.1) - h
        n = R @ np.array([0.0, -slope, 0.1])
        n /= np.linalg.norm(n)
        data.geom_xpos[1] = data.geom_xpos[0] + R @ [*x, h] + (0.2 - deep) * n
        d = SimpleNamespace(geom_xmat=data.geom_xmat.ctypes.data,
                            geom_xpos=data.geom_xpos.ctypes.data)  # fmt: skip
        contact = SimpleNamespace(geom=[0, 1], frame=n)
        found = plain(separation.below_field)(s, d, 0, 1, contact)
        assert abs(slope) > 0.01
        assert found == pytest.approx(deep, abs=1e-7)  # heights are single precision


@pytest.mark.parametrize("deep", [1e-3, 0.1])
def test_a_pair_is_doubtful_if_it_is_deeper_than_its_contacts(deep: float) -> None:
    """Along any direction, by more than rounding of the search, which grows with the depth."""
    for n in RNG.normal(size=(5, 3)):
        n /= np.linalg.norm(n)
        model = mujoco.MjModel.from_xml_string(
            '<mujoco><worldbody><geom size="0.2"/><geom size="0.3"/></worldbody></mujoco>'
        )
        data = mujoco.MjData(model)
        mujoco.mj_kinematics(model, data)
        data.geom_xpos[1] = data.geom_xpos[0] + (0.5 - deep) * n
        s = SimpleNamespace(**vars(record(model)), sunk=1e-6, size=0.3, touching=1e-6)
        d = SimpleNamespace(geom_xmat=data.geom_xmat.ctypes.data, contact=0,
                            geom_xpos=data.geom_xpos.ctypes.data)  # fmt: skip
        apart = plain(separation.apart_along)(s, d, 0, 1, n)
        assert apart == pytest.approx(-deep, abs=1e-12)
        for part, doubtful in ((1.0, False), (0.5, True)):
            one = SimpleNamespace(geom=[0, 1], dist=-part * deep, exclude=0, frame=n)
            are_doubtful = plain(separation.are_doubtful)
            are_doubtful.__globals__["contact_at"] = lambda _at, one=one: one
            assert are_doubtful(s, d, 0, 1) == doubtful
