"""Draws what `render.py` orders: a script of its own, which imports NumPy and MuJoCo alone.

It reads a pickled order from its standard input, and writes pixels to its standard output.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np

mujoco: Any = import_module("mujoco")  # whose names type checkers do not know

SMOOTH = 2  # pixels drawn per pixel of the picture, along each axis
SKY = np.array([[0.80, 0.86, 0.93], [0.96, 0.97, 0.98]]) * 255.0  # top, bottom


def draw(order: dict[str, Any]) -> Iterator[np.ndarray]:
    """The pictures of an order."""
    model = order["model"] if "model" in order else mujoco.MjModel.from_xml_string(order["xml"])
    width, height = SMOOTH * order["width"], SMOOTH * order["height"]
    look = model.vis
    look.global_.offwidth, look.global_.offheight = width, height
    look.quality.offsamples = 0  # edges are smoothed by drawing larger
    look.quality.shadowsize = min(look.quality.shadowsize, 2048)  # they take long in software
    ambient, diffuse = (0.3, 0.4) if model.nlight else (0.45, 0.5)
    look.headlight.ambient[:] = np.maximum(look.headlight.ambient, ambient)
    look.headlight.diffuse[:] = np.maximum(look.headlight.diffuse, diffuse)
    _color(model)
    look.map.alpha = 0.6  # bodies that move, so that arrows in them can be seen
    data, option = mujoco.MjData(model), mujoco.MjvOption()
    has_sky = (model.tex_type == int(mujoco.mjtTexture.mjTEXTURE_SKYBOX)).any()
    sky = None if has_sky else _sky(width, height)
    with mujoco.Renderer(model, height, width) as renderer:
        for frame in order["frames"]:
            data.qpos[:] = frame["qpos"]
            if frame["mocap"] is not None:
                data.mocap_pos[:], data.mocap_quat[:] = frame["mocap"][:, :3], frame["mocap"][:, 3:]
            mujoco.mj_kinematics(model, data)
            mujoco.mj_comPos(model, data)
            mujoco.mj_camlight(model, data)
            mujoco.mj_flex(model, data)
            mujoco.mj_tendon(model, data)
            option.flags[mujoco.mjtVisFlag.mjVIS_TRANSPARENT] = frame["arrows"] is not None
            renderer.update_scene(data, _camera(frame["camera"]), option)
            if frame["arrows"] is not None:
                _add_arrows(renderer.scene, frame["arrows"])
            yield _finished(renderer.render(), sky)


def _color(model: Any) -> None:
    """Colour what has MuJoCo's default grey: the ground light, what moves blue."""
    plain = (model.geom_matid < 0) & (model.geom_rgba == [0.5, 0.5, 0.5, 1.0]).all(axis=1)
    moves = model.body_weldid[model.geom_bodyid] > 0
    model.geom_rgba[plain & ~moves] = [0.85, 0.87, 0.90, 1.0]
    model.geom_rgba[plain & moves] = [0.35, 0.50, 0.72, 1.0]


def _finished(pixels: np.ndarray, sky: np.ndarray | None) -> np.ndarray:
    """A picture with a sky where nothing was drawn, at its final size."""
    if sky is not None:
        pixels = np.where((pixels == 0).all(axis=2, keepdims=True), sky, pixels)
    h, w, _ = pixels.shape
    blocks = pixels.reshape(h // SMOOTH, SMOOTH, w // SMOOTH, SMOOTH, 3)
    return np.rint(blocks.mean(axis=(1, 3))).astype(np.uint8)


def _sky(width: int, height: int) -> np.ndarray:
    part = np.linspace(0.0, 1.0, height)[:, None]
    return np.repeat((SKY[0] + part * (SKY[1] - SKY[0]))[:, None], width, axis=1)


def _camera(given: dict[str, Any] | int) -> Any:
    if isinstance(given, int):
        return given
    camera = mujoco.MjvCamera()
    camera.lookat[:] = given["lookat"]
    for name in ("distance", "azimuth", "elevation"):
        setattr(camera, name, given[name])
    return camera


def _add_arrows(scene: Any, arrows: dict[str, Any]) -> None:
    for start, vector, color in zip(
        arrows["start"], arrows["vector"], arrows["color"], strict=True
    ):
        if scene.ngeom >= scene.maxgeom:
            return
        geom = scene.geoms[scene.ngeom]
        mujoco.mjv_initGeom(
            geom, mujoco.mjtGeom.mjGEOM_ARROW, np.zeros(3), np.zeros(3), np.eye(3).ravel(),
            np.append(color, 1.0).astype(np.float32),
        )  # fmt: skip
        mujoco.mjv_connector(
            geom, mujoco.mjtGeom.mjGEOM_ARROW, arrows["width"], start, start + vector
        )
        geom.category = mujoco.mjtCatBit.mjCAT_DECOR
        geom.emission = 0.4
        scene.ngeom += 1


if __name__ == "__main__":
    for pixels in draw(pickle.load(sys.stdin.buffer)):
        sys.stdout.buffer.write(pixels.tobytes())
    sys.stdout.buffer.flush()
