"""Three things that one can see: a cube slides, a gripper holds, a robot stands.

Each is simulated by MuJoCo as it comes, by MuJoCo with what its documentation advises against slip,
and by holdfast, from the same state.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.mujoco._mj import mujoco
from holdfast.mujoco.stepper import Stepper
from holdfast.tools import scenes
from holdfast.tools.compare import RECIPES
from holdfast.tools.files import step_count
from holdfast.tools.video import HEIGHT, WIDTH, Act, Film, View, picture, write_pixels, write_video

SETTINGS: dict[str, dict[str, Any]] = {
    "MuJoCo": {}, "MuJoCo + noslip": RECIPES["+ noslip 10"], "holdfast": {},
}  # fmt: skip
SETTLE = 0.5  # [s] in which the robot's servos take up its weight
HELD = 1e-6  # [m] motion over a run that passes as none


@dataclass(frozen=True)
class Measure:
    """One column: what is measured of a state against the first one."""

    heading: str
    value: Callable[[Any, Any], float]
    format: str = ".3f"


@dataclass(frozen=True)
class Scene:
    """One scene and what to look at.

    Attributes:
        title: of the table.
        xml: the scene, which starts from its first keyframe.
        seconds: to simulate.
        start: time from which motion is measured [s].
        measures: columns of the table; the first one also stands in the pictures.
        exact: what the columns should be.
        view: where to look from.
        at: time of the picture [s]; None for the end.
        speed: seconds of the run per second of the video.
        ok: whether the values of holdfast are as they should be.
    """

    title: str
    xml: str
    seconds: float
    measures: tuple[Measure, ...]
    exact: str
    ok: Callable[[Sequence[float]], bool]
    view: View
    start: float = 0.0
    at: float | None = None
    speed: float = 1.0


@dataclass
class Shown:
    """One scene, simulated: its values by setting, and its films."""

    scene: Scene
    values: dict[str, list[float]] = field(default_factory=dict)
    films: list[Film] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether holdfast did what it should."""
        return self.scene.ok(self.values["holdfast"])


def showcase(seconds: float = 5.0) -> list[Scene]:
    """The three scenes; the gripper and the robot take so many seconds."""
    moved = Measure("moved, mm", lambda first, now: 1e3 * _farthest(first, now), ".6f")
    return [
        Scene(
            "A cube launched at 6 m/s slides on friction 0.5",
            scenes.sliding_cube(), 1.0,
            (
                Measure("slid, m", lambda first, now: float(now.qpos[0] - first.qpos[0]), ".6f"),
                Measure("lifted, mm", lambda first, now: 1e3 * float(now.qpos[2] - first.qpos[2])),
                Measure("tilted, deg", lambda first, now: _tilt(now)),
            ),
            "exact: 3.535238 m at this time step, without lifting or tilting",
            lambda v: abs(v[0] - 3.535238) < 1e-5 and v[1] < 1e-6 and v[2] < 1e-6,
            View(azimuth=110.0, elevation=-18.0, zoom=0.75, follow=True), at=0.2, speed=0.25,
        ),
        Scene(
            "A gripper holds a capsule of 45 g by friction",
            scenes.pinched_capsule(), seconds, (moved,),
            "exact: it does not move",
            lambda v: v[0] < 1e3 * HELD,
            View(azimuth=97.0, elevation=-12.0, bodies=("left", "right"), follow=False, zoom=1.5),
            at=2.0,
        ),
        Scene(
            "A quadruped stands on a slope of 10 degrees",
            scenes.quadruped(slope=10.0), SETTLE + 2.0 * seconds, (moved,),
            "exact: it does not move once its servos have taken up its weight",
            lambda v: v[0] < 1e3 * HELD,
            View(azimuth=75.0, elevation=-14.0, follow=False, zoom=1.2), start=SETTLE, speed=4.0,
        ),
    ]  # fmt: skip


def show(
    scene: Scene, *, fps: float = 30.0, progress: Callable[[float], None] = lambda _: None
) -> Shown:
    """Simulate and film a scene by all settings."""
    shown = Shown(scene)
    for i, (name, options) in enumerate(SETTINGS.items()):
        model = decorated(scene.xml)
        for key, value in options.items():
            setattr(model.opt, key, value)
        values, film = _run(
            scene, name, model, fps, lambda part, i=i: progress((i + part) / len(SETTINGS))
        )
        shown.values[name] = values
        shown.films.append(film)
    return shown


def _run(
    scene: Scene, name: str, model: Any, fps: float, progress: Callable[[float], None]
) -> tuple[list[float], Film]:
    """Values at the end, and the film; lifts and tilts are the largest of the run."""
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_kinematics(model, data)
    step = Stepper(model, warn=False).step if name == "holdfast" else _mj_step(model)
    first, look = copy.copy(data), mujoco.MjData(model)

    def measured(now: Any, which: Measure) -> float:
        look.qpos[:] = now.qpos
        mujoco.mj_kinematics(model, look)
        return which.value(first, look)

    def caption(now: Any) -> str:
        some = scene.measures[1:] or scene.measures
        return ", ".join(_in_words(each.heading, measured(now, each)) for each in some)

    film = Film(model, name, fps=fps, speed=scene.speed, caption=caption)
    steps = step_count(scene.seconds, model)
    values = [0.0] * len(scene.measures)
    for k in range(steps):
        step(data)
        if data.time <= scene.start + 1e-9:
            mujoco.mj_kinematics(model, data)
            first = copy.copy(data)
        film.watch(data)
        if k % 10 == 0 or k == steps - 1 or len(scene.measures) > 1:
            now = [measured(data, each) for each in scene.measures]
            values = [now[0], *map(max, values[1:], now[1:])]
            progress((k + 1) / steps)
    return values, film


def _in_words(heading: str, value: float) -> str:
    """A measure as a caption: "lifted 3.2 mm"."""
    word, _, unit = heading.partition(", ")
    if unit == "mm" and value > 1000.0:
        return f"{word} {1e-3 * value:.1f} m"
    return f"{word} {value if abs(value) >= 0.05 else 0.0:.1f} {unit}"


def _mj_step(model: Any) -> Callable[[Any], None]:
    return lambda data: mujoco.mj_step(model, data)


def _farthest(first: Any, now: Any) -> float:
    """How far the body that moved most is from where it was [m]."""
    return float(np.linalg.norm(now.xpos - first.xpos, axis=1).max())


def _tilt(now: Any) -> float:
    """Angle between the vertical and what was vertical [degrees]."""
    return float(np.degrees(np.arccos(np.clip(now.xmat[1].reshape(3, 3)[2, 2], -1.0, 1.0))))


def decorated(xml: str) -> Any:
    """The model of a scene with a checkered ground and colours; its motion is the same."""
    spec = mujoco.MjSpec.from_string(xml)
    spec.add_texture(
        name="checker", type=mujoco.mjtTexture.mjTEXTURE_2D, width=256, height=256,
        builtin=mujoco.mjtBuiltin.mjBUILTIN_CHECKER, rgb1=[0.93, 0.94, 0.95],
        rgb2=[0.80, 0.84, 0.88],
    )  # fmt: skip
    ground = spec.add_material(name="ground", texrepeat=[4, 4], texuniform=True)
    ground.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = "checker"
    for geom in spec.geoms:
        if geom.type == mujoco.mjtGeom.mjGEOM_PLANE:
            geom.material = "ground"
        elif np.allclose(geom.rgba, [0.5, 0.5, 0.5, 1.0]):
            geom.rgba = [0.35, 0.5, 0.72, 1.0]
    for light in list(spec.lights):
        spec.delete(light)
    moving = next(body for body in spec.bodies if body.joints)
    moving.add_light(
        mode=mujoco.mjtCamLight.mjCAMLIGHT_TRACKCOM, pos=[-0.6, -1.0, 4.0], dir=[0.15, 0.25, -1.0],
        type=mujoco.mjtLightType.mjLIGHT_DIRECTIONAL, diffuse=[0.4] * 3, ambient=[0.1] * 3,
    )  # fmt: skip
    if any(geom.type == mujoco.mjtGeom.mjGEOM_PLANE for geom in spec.geoms):
        spec.stat.extent = 2.0  # [m] in which shadows are drawn
    return spec.compile()


def draw_all(
    path: Path, shown: Sequence[Shown], *, width: int = WIDTH, height: int = HEIGHT,
    force: bool = True,
) -> Path:  # fmt: skip
    """One picture of all scenes, MuJoCo on the left and holdfast on the right; where it is."""
    rows = [
        picture(each.films, at=each.scene.at, view=each.scene.view, width=width, height=height)
        for each in shown
    ]
    return write_pixels(path, np.vstack(rows), force=force)


def film_all(
    path: Path, shown: Sequence[Shown], *, width: int = WIDTH, height: int = HEIGHT,
    colors: int = 128, force: bool = True, progress: Callable[[float], None] = lambda _: None,
) -> Path:  # fmt: skip
    """One video of all scenes, one after the other; where it is."""
    acts = [Act(each.films, each.scene.view) for each in shown]
    return write_video(path, acts, width=width, height=height, colors=colors, force=force,
                       progress=progress)  # fmt: skip
