"""Pictures of MuJoCo scenes, made without a screen, in a process of their own.

Whether and how a machine can draw without a screen shows only when one tries, and a driver that
fails may take the process along. So a child process (`_draw.py`) tries, one way after the other:
EGL, OSMesa, GLFW; the environment variable `MUJOCO_GL` chooses one.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.errors import HoldfastError

WAYS = ("egl", "osmesa", "glfw")
HOW_TO = (
    "install EGL (Debian: apt-get install libegl1 libgl1-mesa-dri) "
    "or OSMesa (apt-get install libosmesa6)"
)
_CHILD = Path(__file__).with_name("_draw.py")


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
    order = {"xml": xml, "frames": _plain(frames), "width": width, "height": height}
    return list(_drawn(order))


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
    order = {"model": model, "frames": _plain(frames), "width": width, "height": height}
    return _drawn(order)


def _plain(frames: Sequence[Frame]) -> list[dict[str, Any]]:
    """Frames as the child process reads them, without this package."""
    return [asdict(frame) for frame in frames]


def check_renderer() -> None:
    """Raise `NoPictureError` if this machine cannot draw."""
    xml = "<mujoco><worldbody><geom size='1'/></worldbody></mujoco>"
    camera = {"lookat": [0.0, 0.0, 0.0], "distance": 3.0, "azimuth": 0.0, "elevation": 0.0}
    render(xml, [[]], camera=camera, width=16, height=16)


def _drawn(order: dict[str, Any]) -> Iterator[np.ndarray]:
    """What a child process draws, by the first way that works."""
    chosen = os.environ.get("MUJOCO_GL")
    sent = pickle.dumps(order)
    width, height = order["width"], order["height"]
    size = 3 * width * height
    failures = []
    for way in (chosen,) if chosen else WAYS:
        with subprocess.Popen(
            [sys.executable, "-P", str(_CHILD)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env=os.environ | {"MUJOCO_GL": way},
        ) as child:  # fmt: skip
            assert child.stdin and child.stdout and child.stderr
            try:
                child.stdin.write(sent)
                child.stdin.close()
                count = 0
                while len(pixels := child.stdout.read(size)) == size:
                    count += 1
                    yield np.frombuffer(pixels, np.uint8).reshape(height, width, 3)
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
