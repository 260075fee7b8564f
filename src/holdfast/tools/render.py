"""Pictures of MuJoCo scenes, made in a process of their own.

Whether and how a machine can draw without a screen shows only when one tries, and a driver that
fails may take the process along. So a child process tries, one way after the other.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from holdfast.errors import HoldfastError
from holdfast.mujoco._mj import mujoco

WAYS = ("egl", "osmesa", "glfw")


class NoPictureError(HoldfastError):
    """This machine cannot draw."""


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
    order = json.dumps({
        "xml": xml, "states": [list(map(float, each)) for each in states], "camera": camera,
        "width": width, "height": height,
    })  # fmt: skip
    chosen = os.environ.get("MUJOCO_GL")
    failures = []
    for way in (chosen,) if chosen else WAYS:
        done = subprocess.run(
            [sys.executable, "-m", __name__], input=order.encode(), capture_output=True,
            env=os.environ | {"MUJOCO_GL": way}, timeout=120,
        )  # fmt: skip
        if done.returncode == 0:
            return list(np.load(io.BytesIO(done.stdout), allow_pickle=False))
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["no message"]
        failures.append(f"{way}: {last[0]}")
    raise NoPictureError("no OpenGL to draw with (" + "; ".join(failures) + ")")


def _draw(order: dict[str, Any]) -> np.ndarray:
    """The pictures of an order, in this process."""
    spec = mujoco.MjSpec.from_string(order["xml"])
    spec.visual.global_.offwidth = order["width"]
    spec.visual.global_.offheight = order["height"]
    spec.visual.headlight.ambient = [0.45] * 3
    spec.visual.headlight.diffuse = [0.5] * 3
    spec.add_texture(
        type=mujoco.mjtTexture.mjTEXTURE_SKYBOX, builtin=mujoco.mjtBuiltin.mjBUILTIN_GRADIENT,
        rgb1=[0.86, 0.9, 0.95], rgb2=[0.62, 0.69, 0.78], width=256, height=1536,
    )  # fmt: skip
    model = spec.compile()
    data, camera = mujoco.MjData(model), mujoco.MjvCamera()
    camera.lookat[:] = order["camera"]["lookat"]
    for name in ("distance", "azimuth", "elevation"):
        setattr(camera, name, order["camera"][name])
    pictures = []
    with mujoco.Renderer(model, order["height"], order["width"]) as renderer:
        for state in order["states"]:
            data.qpos[:] = state
            mujoco.mj_forward(model, data)
            renderer.update_scene(data, camera)
            pictures.append(renderer.render().copy())
    return np.array(pictures)


if __name__ == "__main__":
    answer = io.BytesIO()
    np.save(answer, _draw(json.loads(sys.stdin.read())))
    sys.stdout.buffer.write(answer.getvalue())
