"""The walking quadruped as MJCF, on flat ground or on a terrain map."""

from __future__ import annotations

import numpy as np

from holdfast.experiments.locomotion.gait import FEET, RADIUS, in_world, joint_angles
from holdfast.experiments.locomotion.terrain import Terrain
from holdfast.tools.scenes import quadruped_on

KP, KV = 40.0, 0.5  # of the servos [N m/rad], [N m s/rad]
START = -0.27  # [m] where the base starts, so that ten seconds of walking are centred on the map
BASE = 0.05  # thickness of the ground below its lowest place [m]


def walker(
    terrain: Terrain,
    *,
    timestep: float = 0.001,
    start: tuple[float, float] = (START, 0.0),
    heading: float = 0.0,
) -> str:
    """The quadruped of the published figures, about to come down on its feet.

    Args:
        terrain: the ground; without bumps it is a plane.
        timestep: [s].
        start: where the base is [m].
        heading: of the base [rad].
    """
    bumpy = terrain.heights.max() > 0.0
    angles = joint_angles(FEET)
    feet = in_world(np.array(start), heading, FEET[:, :2])
    under = max(terrain.height(x, y) for x, y in feet)
    above = RADIUS * np.hypot(1.0, terrain.steepness[1])  # a ball on the steepest slope
    base = [*start, under + above - FEET[0, 2]]
    turn = [np.cos(heading / 2), 0.0, 0.0, np.sin(heading / 2)]
    return quadruped_on(
        _field_geom() if bumpy else _plane(), np.concatenate([base, turn, angles.ravel()]),
        angles.ravel(), timestep=timestep, integrator="Euler", kp=KP, kv=KV,
        assets=_assets(terrain if bumpy else None),
    )  # fmt: skip


def _plane() -> str:
    return '<geom name="ground" type="plane" size="2 2 .1" material="ground"/>'


def _field_geom() -> str:
    return '<geom name="ground" type="hfield" hfield="ground" material="ground"/>'


def _assets(terrain: Terrain | None) -> str:
    field = ""
    if terrain is not None:
        rows, columns = terrain.heights.shape
        half, peak = terrain.side / 2, terrain.heights.max()
        from_behind = terrain.heights[::-1] / peak  # MJCF begins with the row of the largest y
        numbers = " ".join(f"{z:.7g}" for z in from_behind.ravel())
        field = (f'<hfield name="ground" nrow="{rows}" ncol="{columns}" '
                 f'size="{half} {half} {peak:.17g} {BASE}" elevation="{numbers}"/>')  # fmt: skip
    return f"""<visual><headlight ambient=".3 .3 .3" diffuse=".5 .5 .5"/></visual>
      <asset>{field}
        <texture name="sky" type="skybox" builtin="gradient" rgb1="1 1 1" rgb2=".8 .87 .95"
                 width="64" height="64"/>
        <texture name="squares" type="2d" builtin="checker" rgb1=".72 .75 .7" rgb2=".6 .64 .6"
                 width="256" height="256"/>
        <material name="ground" texture="squares" texrepeat="10 10" texuniform="false"/>
      </asset>"""
