"""Pictures of MuJoCo scenes, made without a screen, in a process of their own.

Whether and how a machine can draw without a screen shows only when one tries, and a driver that
fails may take the process along. So a child process tries, one way after the other: EGL, OSMesa,
GLFW; the environment variable `MUJOCO_GL` chooses one.
"""

from __future__ import annotations

import io
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from holdfast.errors import HoldfastError
from holdfast.mujoco._mj import mujoco

WAYS = ("egl", "osmesa", "glfw")
HOW_TO = (
    "install EGL (Debian: apt-get install libegl1 libgl1-mesa-dri) "
    "or OSMesa (apt-get install libosmesa6)"
)
SMOOTH = 2  # pixels drawn per pixel of the picture, along each axis
SKY = np.array([[0.80, 0.86, 0.93], [0.96, 0.97, 0.98]]) * 255.0  # top, bottom


class NoPictureError(HoldfastError):
    """This machine cannot draw."""


@dataclass
class Arrows:
    """Arrows to draw in a frame.

    Attributes:
        start, vector: (n, 3) [m].
        color: (n, 3) between 0 and 1.
        width: radius of the shafts [m].
    """

    start: np.ndarray
    vector: np.ndarray
    color: np.ndarray
    width: float


@dataclass
class Frame:
    """One picture to draw: a state, where to look from, and arrows.

    Attributes:
        qpos: (nq,) positions.
        camera: number of a camera of the model, or `lookat`, `distance`, `azimuth` and `elevation`
            of a free camera.
        mocap: (nmocap, 7) poses of mocap bodies; None leaves them.
        arrows: None for none.
    """

    qpos: np.ndarray
    camera: dict[str, Any] | int
    mocap: np.ndarray | None = None
    arrows: Arrows | None = None


@dataclass
class _Order:
    frames: Sequence[Frame]
    width: int
    height: int
    model: Any = None
    xml: str = ""


def render(
    xml: str,
    states: Sequence[Sequence[float]],
    *,
    camera: dict[str, Any],
    width: int = 800,
    height: int = 450,
) -> list[np.ndarray]:
    """Pictures (height, width, 3) of a scene in several states.

    Args:
        xml: the scene.
        states: positions `qpos`.
        camera: `lookat`, `distance`, `azimuth`, `elevation` of a free camera.
        width: of a picture [pixels].
        height: likewise.

    Raises:
        NoPictureError: no way to draw works here; says what each came to.
    """
    frames = [Frame(np.asarray(state, dtype=float), camera) for state in states]
    return list(_drawn(_Order(frames, width, height, xml=xml)))


def render_frames(
    model: Any, frames: Sequence[Frame], *, width: int = 640, height: int = 480
) -> Iterator[np.ndarray]:
    """Pictures (height, width, 3) of a compiled model, one after the other.

    Args:
        model: `mujoco.MjModel`.
        frames: what to draw.
        width: of a picture [pixels].
        height: likewise.

    Raises:
        NoPictureError: no way to draw works here; says what each came to, and what to install.
    """
    return _drawn(_Order(frames, width, height, model=model))


def check_renderer() -> None:
    """Raise `NoPictureError` if this machine cannot draw."""
    xml = "<mujoco><worldbody><geom size='1'/></worldbody></mujoco>"
    camera = {"lookat": [0.0, 0.0, 0.0], "distance": 3.0, "azimuth": 0.0, "elevation": 0.0}
    render(xml, [[]], camera=camera, width=16, height=16)


def _drawn(order: _Order) -> Iterator[np.ndarray]:
    """What a child process draws, by the first way that works."""
    chosen = os.environ.get("MUJOCO_GL")
    sent = pickle.dumps(order)
    size = 3 * order.width * order.height
    failures = []
    for way in (chosen,) if chosen else WAYS:
        with subprocess.Popen(
            [sys.executable, "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env=os.environ | {"MUJOCO_GL": way},
        ) as child:  # fmt: skip
            assert child.stdin and child.stdout and child.stderr
            try:
                child.stdin.write(sent)
                child.stdin.close()
                count = 0
                while len(pixels := child.stdout.read(size)) == size:
                    count += 1
                    yield np.frombuffer(pixels, np.uint8).reshape(order.height, order.width, 3)
            except BrokenPipeError:
                count = 0
            finally:
                child.stdout.close()
            said = child.stderr.read().decode(errors="replace").strip().splitlines()
            if child.wait() == 0:
                return
        failures.append(f"{way}: {(said[-1:] or ['no message'])[0]}")
        if count:
            break
    raise NoPictureError(f"no OpenGL to draw with ({'; '.join(failures)}); {HOW_TO}")


def _draw(order: _Order) -> Iterator[np.ndarray]:
    """The pictures of an order, in this process."""
    model = order.model if order.model is not None else mujoco.MjModel.from_xml_string(order.xml)
    width, height = SMOOTH * order.width, SMOOTH * order.height
    look = model.vis
    look.global_.offwidth, look.global_.offheight = width, height
    look.quality.offsamples = 0  # edges are smoothed by drawing larger
    look.quality.shadowsize = min(look.quality.shadowsize, 1024)  # most of the time of software
    if not model.nlight:
        look.headlight.ambient[:] = np.maximum(look.headlight.ambient, 0.45)
        look.headlight.diffuse[:] = np.maximum(look.headlight.diffuse, 0.5)
    look.map.alpha = 0.6  # bodies that move, so that arrows in them can be seen
    data, option = mujoco.MjData(model), mujoco.MjvOption()
    has_sky = (model.tex_type == int(mujoco.mjtTexture.mjTEXTURE_SKYBOX)).any()
    sky = None if has_sky else _sky(width, height)
    with mujoco.Renderer(model, height, width) as renderer:
        for frame in order.frames:
            data.qpos[:] = frame.qpos
            if frame.mocap is not None:
                data.mocap_pos[:], data.mocap_quat[:] = frame.mocap[:, :3], frame.mocap[:, 3:]
            mujoco.mj_kinematics(model, data)
            mujoco.mj_comPos(model, data)
            mujoco.mj_camlight(model, data)
            mujoco.mj_flex(model, data)
            mujoco.mj_tendon(model, data)
            option.flags[mujoco.mjtVisFlag.mjVIS_TRANSPARENT] = frame.arrows is not None
            renderer.update_scene(data, _camera(frame.camera), option)
            if frame.arrows is not None:
                _add_arrows(renderer.scene, frame.arrows)
            yield _finished(renderer.render(), sky)


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


def _add_arrows(scene: Any, arrows: Arrows) -> None:
    for start, vector, color in zip(arrows.start, arrows.vector, arrows.color, strict=True):
        if scene.ngeom >= scene.maxgeom:
            return
        geom = scene.geoms[scene.ngeom]
        mujoco.mjv_initGeom(
            geom, mujoco.mjtGeom.mjGEOM_ARROW, np.zeros(3), np.zeros(3), np.eye(3).ravel(),
            np.append(color, 1.0).astype(np.float32),
        )  # fmt: skip
        mujoco.mjv_connector(geom, mujoco.mjtGeom.mjGEOM_ARROW, arrows.width, start, start + vector)
        geom.category = mujoco.mjtCatBit.mjCAT_DECOR
        geom.emission = 0.4
        scene.ngeom += 1


def _main() -> None:
    out, order = sys.stdout.buffer, pickle.load(io.BytesIO(sys.stdin.buffer.read()))
    for picture in _draw(order):
        out.write(picture.tobytes())
    out.flush()


if __name__ == "__main__":
    _main()
