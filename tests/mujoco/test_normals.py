"""Normals of convex geoms that nearly touch, beside the best of many directions."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import mujoco
import numpy as np
import pytest

from holdfast.mujoco import c_api, normals, separation
from plain_kernels import plain

KINDS = ("sphere", "ellipsoid", "box", "capsule", "cylinder", "mesh")
SIZES = {
    "sphere": "0.3", "ellipsoid": "0.1 0.2 0.4", "box": "0.1 0.3 0.2", "capsule": "0.1 0.3",
    "cylinder": "0.3 0.1",
}  # fmt: skip

ROUGH = '<option ccd_tolerance="1e-3" ccd_iterations="5"><flag nativeccd="disable"/></option>'


def kernels(model: Any, d: Any) -> Any:
    """Kernels of both modules as plain Python, with the options of a model and its data d."""
    number, whole, word = ctypes.c_double, ctypes.c_int, ctypes.c_void_p
    distance = ctypes.CFUNCTYPE(number, word, word, whole, whole, number, word)
    instead = {
        "data_at": lambda _: d, "structs": SimpleNamespace(option_at=lambda _: model.opt),
        "c_api": SimpleNamespace(call_distance=lambda at, *given: distance(at)(*given)),
    }  # fmt: skip
    return SimpleNamespace(
        apart_along=plain(separation.apart_along, **instead),
        support=plain(separation.support, **instead),
        correct_normal=plain(normals.correct_normal, **instead),
    )


def record(model: Any, radius: np.ndarray, work: np.ndarray) -> Any:
    """What kernels read of a model of two geoms."""
    names = ("geom_type", "geom_size", "geom_dataid", "mesh_vertadr", "mesh_vertnum", "mesh_vert",
             "mesh_graphadr", "mesh_graph")  # fmt: skip
    return SimpleNamespace(
        **{name: getattr(model, name).ctypes.data for name in names}, ngeom=2, nmesh=model.nmesh,
        radius=radius.ctypes.data, scratch=work.ctypes.data, model=model._address, opt=0,
    )  # fmt: skip


def geom(kind: str, place: str, rng: np.random.Generator) -> tuple[str, str]:
    """The asset and the body of a geom."""
    asset, shape = "", f'type="{kind}" size="{SIZES.get(kind)}"'
    if kind == "mesh":
        text = " ".join(f"{x:.5f}" for x in 0.3 * rng.normal(size=36))
        asset, shape = f'<mesh name="{place}" vertex="{text}"/>', f'type="mesh" mesh="{place}"'
    return asset, f'<body name="{place}"><freejoint/><geom {shape}/></body>'


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kinds", [(a, b) for a in KINDS for b in KINDS if a <= b])
def test_no_direction_separates_by_more(kinds: tuple[str, str], seed: int) -> None:
    """Geoms a little apart have one normal; where they overlap by as little, it is still one.

    That the model lets MuJoCo look less closely makes no difference.
    """
    rng = np.random.default_rng([seed, *map(ord, kinds[0] + kinds[1])])
    parts = [geom(kind, name, rng) for kind, name in zip(kinds, "ab", strict=True)]
    model = mujoco.MjModel.from_xml_string(
        f"<mujoco>{ROUGH}<asset>{parts[0][0]}{parts[1][0]}</asset>"
        f"<worldbody>{parts[0][1]}{parts[1][1]}</worldbody></mujoco>"
    )
    data = mujoco.MjData(model)
    data.qpos[:] = rng.normal(size=14)
    data.qpos[7:10] = data.qpos[:3] + 2.0 * rng.normal(size=3)
    mujoco.mj_kinematics(model, data)
    radius, work = np.array(model.geom_rbound), np.zeros(256)
    s, place = record(model, radius, work), data.geom_xpos
    d = SimpleNamespace(geom_xmat=data.geom_xmat.ctypes.data, geom_xpos=place.ctypes.data)
    api = SimpleNamespace(mj_geomDistance=c_api.address("mj_geomDistance"))
    plainly = kernels(model, d)

    def apart(n: np.ndarray) -> float:
        return plainly.apart_along(s, d, 0, 1, n)

    def corrected(n: np.ndarray) -> Any:
        contact = SimpleNamespace(geom=[0, 1], dist=0.0, pos=np.zeros(3),
                                  frame=np.append(n, np.zeros(6)))  # fmt: skip
        assert plainly.correct_normal(s, api, data._address, contact)
        return contact

    n = place[1] - place[0]
    first = corrected(n / np.linalg.norm(n))
    n = first.frame[:3]
    place[1] -= (first.dist + 1e-6) * n  # from here on they overlap by a little
    before = place.copy()
    n = n + 0.5 * rng.normal(size=3)
    contact = corrected(n / np.linalg.norm(n))
    assert np.array_equal(place, before)
    opt, flag = model.opt, mujoco.mjtDisableBit.mjDSBL_NATIVECCD
    assert (opt.ccd_tolerance, opt.ccd_iterations, opt.disableflags) == (1e-3, 5, flag)
    found = contact.frame[:3]
    assert -2e-6 <= contact.dist <= 1e-9  # where corners meet, all of a cone are as good but for it
    assert contact.dist == pytest.approx(apart(found), abs=1e-12)
    others = found + np.geomspace(1e-4, 10.0, 200)[:, None] * rng.normal(size=(200, 3))
    others /= np.linalg.norm(others, axis=1)[:, None]
    assert max(apart(other) for other in others) <= contact.dist + 1e-6
    axes = contact.frame.reshape(3, 3)
    assert np.allclose(axes @ axes.T, np.eye(3), atol=1e-12) and np.linalg.det(axes) > 0.0
    for g, sign in ((0, 1.0), (1, -1.0)):  # the point is on the surfaces of both
        reach = plainly.support(s, d, g, *(sign * found))
        assert sign * found @ contact.pos == pytest.approx(reach, abs=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_geoms_on_height_fields_get_normals_that_part_them(kind: str) -> None:
    """By as much as they overlap, and no less; also where they are in it by half their size."""
    rng, found = np.random.default_rng([5, *map(ord, kind)]), 0
    asset, body = geom(kind, "a", rng)
    text = " ".join(f"{x:.5f}" for x in rng.random(64))
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><option ccd_tolerance="1e-9"/><asset>{asset}<hfield name="h" nrow="8" ncol="8" '
        f'elevation="{text}" size="4 4 0.5 0.1"/></asset><worldbody>'
        f'<geom type="hfield" hfield="h"/>{body}</worldbody></mujoco>'
    )
    data, segment = mujoco.MjData(model), np.zeros(6)
    radius, work = np.array(model.geom_rbound), np.zeros(256)
    s = record(model, radius, work)
    place = data.geom_xpos
    d = SimpleNamespace(geom_xmat=data.geom_xmat.ctypes.data, geom_xpos=place.ctypes.data)
    api = SimpleNamespace(mj_geomDistance=c_api.address("mj_geomDistance"))
    plainly = kernels(model, d)
    for deep in (1e-6, 1e-3, 0.05, 0.15):
        data.qpos[:3], data.qpos[3:] = rng.uniform(-2.0, 2.0, size=3), rng.normal(size=4)
        data.qpos[2] = 1.5
        mujoco.mj_kinematics(model, data)
        far = mujoco.mj_geomDistance(model, data, 0, 1, 3.0, segment)
        n = segment[3:] - segment[:3]
        place[1] -= (far + deep) * n / np.linalg.norm(n)
        up = np.array([0.0, 0.0, 1.0])
        contact = SimpleNamespace(geom=[0, 1], dist=-deep, pos=np.zeros(3),
                                  frame=np.append(up, np.zeros(6)))  # fmt: skip
        if not plainly.correct_normal(s, api, data._address, contact):
            continue  # in a valley several normals are as near as each other
        found += 1
        assert contact.dist < 0.0
        before = place[1].copy()
        for more, apart in ((1e-6, True), (-1e-6, False)):
            place[1] = before + (more - contact.dist) * contact.frame[:3]
            assert (mujoco.mj_geomDistance(model, data, 0, 1, 1.0, segment) > 0.0) == apart
    assert found >= 3
