"""Scenes of the tests of event-driven simulation."""

from __future__ import annotations

import mujoco
import numpy as np

G = 9.81
BALL = '<body name="ball" pos="0 0 1.1"><freejoint/><geom size="0.1" mass="1"/></body>'
FLOOR = '<geom name="floor" type="plane" size="9 9 1"/>'


def load(
    world: str, *, option: str = "", floor: str = FLOOR, extra: str = ""
) -> tuple[mujoco.MjModel, mujoco.MjData]:
    xml = f"<mujoco><option {option}/>{extra}<worldbody>{floor}{world}</worldbody></mujoco>"
    model = mujoco.MjModel.from_xml_string(xml)
    return model, mujoco.MjData(model)


def box(pose: str) -> str:
    return (f'<body name="box" {pose}><freejoint/>'
            '<geom type="box" size=".1 .1 .1" mass="1"/></body>')  # fmt: skip


def bowl(walls: int = 8) -> tuple[mujoco.MjModel, mujoco.MjData]:
    """Four balls over a ring of boxes that lean outwards."""
    ring = "".join(
        f'<geom type="box" size=".3 .25 .02" pos="{0.3 * np.cos(a)} {0.3 * np.sin(a)} .12" '
        f'zaxis="{-np.sin(0.7) * np.cos(a)} {-np.sin(0.7) * np.sin(a)} {np.cos(0.7)}"/>'
        for a in 2 * np.pi * np.arange(walls) / walls
    )
    places = [(0.1, 0.05, 0.5, 0.05), (-0.12, 0.02, 0.55, 0.04), (0.02, -0.13, 0.6, 0.06)]
    balls = "".join(
        f'<body name="b{i}" pos="{x} {y} {z}"><freejoint/><geom size="{r}"/></body>'
        for i, (x, y, z, r) in enumerate(places)
    )
    return load(ring + balls)


SPOKES, LENGTH, INERTIA = 8, 0.3, 0.02  # of the rimless wheel of 1 kg; [m], [kg m^2]


def rimless_wheel(slope: float, timestep: float) -> tuple[mujoco.MjModel, mujoco.MjData]:
    """A prism whose edges are the tips of spokes; the floor is level and gravity leans."""
    angles = 2 * np.pi * np.arange(SPOKES) / SPOKES
    vertices = " ".join(
        f"{LENGTH * np.sin(a):.17g} {y} {-LENGTH * np.cos(a):.17g}"
        for a in angles for y in (-0.1, 0.1)
    )  # fmt: skip
    joints = "".join(
        f'<joint type="{kind}" axis="{axis}"/>'
        for kind, axis in (("slide", "1 0 0"), ("slide", "0 0 1"), ("hinge", "0 1 0"))
    )
    wheel = (
        f'<body name="wheel" pos="0 0 {LENGTH}">{joints}<geom type="mesh" mesh="wheel"/>'
        f'<inertial pos="0 0 0" mass="1" diaginertia="{INERTIA} {INERTIA} {INERTIA}"/></body>'
    )
    pull = f"{G * np.sin(slope)} 0 {-G * np.cos(slope)}"
    return load(
        wheel, option=f'timestep="{timestep}" gravity="{pull}"',
        extra=f'<asset><mesh name="wheel" vertex="{vertices}"/></asset>',
    )  # fmt: skip


def energy(model: mujoco.MjModel, data: mujoco.MjData) -> float:
    copy = mujoco.MjData(model)
    copy.qpos[:], copy.qvel[:] = data.qpos, data.qvel
    mujoco.mj_fwdPosition(model, copy)
    mujoco.mj_fwdVelocity(model, copy)
    mujoco.mj_energyPos(model, copy)
    mujoco.mj_energyVel(model, copy)
    return float(copy.energy.sum())
