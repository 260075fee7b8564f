"""Scenes as MJCF text: boxes in a row, a pinched capsule, a sliding cube, a quadruped, a pile."""

from __future__ import annotations

import numpy as np

COLORS = (".85 .45 .2 1", ".9 .7 .35 1")  # of neighbours


def row_of_boxes(
    boxes: int = 2,
    *,
    size: float = 1.0,
    mass: float = 1.0,
    squeeze: float | None = None,
    timestep: float = 0.01,
) -> str:
    """Boxes in a row, held between two pads that are pushed inward: the paper's grasp.

    Args:
        boxes: how many are held.
        size: edge of the cubes [m].
        mass: of each [kg].
        squeeze: force on each pad [N]; ten newtons per box if None, as in the paper.
        timestep: [s].
    """
    half, end = size / 2, size * (boxes + 1) / 2
    force = 10.0 * boxes if squeeze is None else squeeze
    free = "".join(
        f'<body name="box{i}" pos="{size * (i - (boxes - 1) / 2)} 0 0"><freejoint/>'
        f'<geom type="box" size="{half} {half} {half}" mass="{mass}"'
        f' rgba="{COLORS[i % 2]}"/></body>'
        for i in range(boxes)
    )
    pads = "".join(
        f'<body name="{name}" pos="{-side * end} 0 0" gravcomp="1">'
        f'<joint name="{name}" type="slide" axis="{side} 0 0"/>'
        f'<geom type="box" size="{half} {half} {half}" mass="{mass}" rgba=".3 .4 .6 1"/></body>'
        for name, side in (("left", 1), ("right", -1))
    )
    return f"""<mujoco model="row of boxes">
      <option timestep="{timestep}"/>
      <worldbody><light pos="0 0 3"/>{pads}{free}</worldbody>
      <actuator><motor joint="left"/><motor joint="right"/></actuator>
      <keyframe><key name="squeeze" ctrl="{force} {force}"/></keyframe>
    </mujoco>"""


def pinched_capsule(*, squeeze: float = 8.0, timestep: float = 0.002, options: str = "") -> str:
    """A capsule of 45 g held between two flat pads, lying along them.

    Args:
        squeeze: force on each pad [N].
        timestep: [s].
        options: further attributes of the option element.
    """
    pads = "".join(
        f'<body name="{name}" pos="{-side * 0.009} 0 0" gravcomp="1">'
        f'<joint name="{name}" type="slide" axis="{side} 0 0" damping="1"/>'
        '<geom type="box" size="0.005 0.03 0.01" mass="0.05" rgba=".3 .4 .6 1"/></body>'
        for name, side in (("left", 1), ("right", -1))
    )
    return f"""<mujoco model="pinched capsule">
      <option timestep="{timestep}" {options}/>
      <default><geom condim="4" friction="0.7 0.005 0.0001"/></default>
      <worldbody><light pos="0 0 3"/>{pads}
        <body name="capsule"><freejoint/>
          <geom type="capsule" size="0.004 0.02" mass="0.045" euler="90 0 0" rgba=".8 .5 .2 1"/>
        </body>
      </worldbody>
      <actuator><motor joint="left"/><motor joint="right"/></actuator>
      <keyframe><key name="squeeze" ctrl="{squeeze} {squeeze}"/></keyframe>
    </mujoco>"""


def sliding_cube(*, speed: float = 6.0, friction: float = 0.5, timestep: float = 0.005) -> str:
    """A cube of 0.1 m on the ground, on its way along x.

    It slides `speed * t - friction * g * t**2 / 2` far and neither lifts nor turns, because its
    weight stays within its base: the edge in front would have to lift at a friction above 1.

    Args:
        speed: at the start [m/s].
        friction: coefficient.
        timestep: [s].
    """
    return f"""<mujoco model="sliding cube">
      <option timestep="{timestep}"/>
      <worldbody><light pos="0 0 3"/>
        <geom name="ground" type="plane" size="20 20 .1" friction="{friction}"/>
        <body name="cube" pos="0 0 0.05"><freejoint/>
          <geom name="cube" type="box" size=".05 .05 .05" mass="1" friction="{friction}"
                rgba=".9 .55 .2 1"/></body>
      </worldbody>
      <keyframe><key name="launch" qpos="0 0 .05 1 0 0 0" qvel="{speed} 0 0 0 0 0"/></keyframe>
    </mujoco>"""


def quadruped(
    *, slope: float = 10.0, timestep: float = 0.002, integrator: str = "implicitfast"
) -> str:
    """A quadruped of 1.34 kg with position servos, its feet on a slope.

    Args:
        slope: [degrees] about the y axis.
        timestep: [s].
        integrator: of the model.
    """
    return quadruped_on(
        f'<geom name="slope" type="plane" size="2 2 .1" euler="0 {slope} 0"/>',
        *_standing_pose(slope), timestep=timestep, integrator=integrator,
    )  # fmt: skip


LEGS = ("fl", "fr", "hl", "hr")  # front and hind, left and right


def quadruped_on(
    ground: str,
    qpos: np.ndarray,
    ctrl: np.ndarray,
    *,
    timestep: float,
    integrator: str,
    kp: float = 40.0,
    kv: float = 1.0,
    assets: str = "",
) -> str:
    """The quadruped on a ground, with servos of at most 4 N m at its twelve joints.

    Legs hang down where all joints are zero. Feet and trunk collide, legs do not.

    Args:
        ground: geoms, as MJCF.
        qpos: (19,) pose of the keyframe "stand".
        ctrl: (12,) its joint angles asked for, `LEGS` in order, each roll, pitch, knee.
        timestep: [s].
        integrator: of the model.
        kp: stiffness of the servos [N m/rad].
        kv: damping of the servos [N m s/rad].
        assets: what the ground is made of, as MJCF.
    """
    legs, servos = [], []
    for leg in LEGS:
        x, y = (1 if leg[0] == "f" else -1), (1 if leg[1] == "l" else -1)
        legs.append(f"""
            <body name="{leg}_hip" pos="{0.10 * x} {0.06 * y} 0">
              <joint name="{leg}_roll" axis="1 0 0"/>
              <geom type="sphere" size="0.015" mass="0.1" contype="0" conaffinity="0"/>
              <body name="{leg}_thigh" pos="{0.05 * x} 0 0">
                <joint name="{leg}_pitch" axis="0 1 0"/>
                <geom type="capsule" size="0.008" mass="0.1" fromto="0 0 0 0 0 -0.1"
                      contype="0" conaffinity="0"/>
                <body name="{leg}_shank" pos="0 0 -0.1">
                  <joint name="{leg}_knee" axis="0 1 0"/>
                  <geom type="capsule" size="0.006" mass="0.04" fromto="0 0 0 0 0 -0.1"
                        contype="0" conaffinity="0"/>
                  <geom name="{leg}_foot" type="sphere" pos="0 0 -0.1" size="0.01" mass="0.01"/>
                </body>
              </body>
            </body>""")
        for joint in ("roll", "pitch", "knee"):
            servos.append(f'<position name="{leg}_{joint}" joint="{leg}_{joint}" kp="{kp}"'
                          f' kv="{kv}" forcerange="-4 4"/>')  # fmt: skip
    numbers = " ".join(f"{x:.17g}" for x in qpos)
    return f"""<mujoco model="quadruped">
      <option timestep="{timestep}" integrator="{integrator}"/>
      <default><joint damping="0.01" armature="0.0005"/></default>
      {assets}
      <worldbody><light pos="0 0 3"/>
        {ground}
        <body name="trunk" pos="0 0 0.2"><freejoint/>
          <geom type="box" size="0.05 0.07 0.01" mass="0.1"/>
          <geom type="box" size="0.025 0.08 0.02" pos="0.075 0 0" mass="0.05"/>
          <geom type="box" size="0.025 0.08 0.02" pos="-0.075 0 0" mass="0.05"/>
          <geom type="box" size="0.03 0.03 0.02" pos="0 0 0.03" mass="0.14"/>
          {"".join(legs)}
        </body>
      </worldbody>
      <actuator>{"".join(servos)}</actuator>
      <keyframe><key name="stand" qpos="{numbers}" ctrl="{" ".join(map(str, ctrl))}"/></keyframe>
    </mujoco>"""


BEND = 0.6  # of the thighs in the standing pose [rad]; knees bend twice as much


def _standing_pose(slope: float) -> tuple[np.ndarray, np.ndarray]:
    """Legs bent so that feet stand below the hips, all four touching the slope."""
    height = 0.2 * np.cos(BEND) + 0.01  # of the hips above the slope
    t = np.radians(slope)
    legs = np.tile([0.0, BEND, -2 * BEND], 4)
    base = [height * np.sin(t), 0.0, height * np.cos(t), np.cos(t / 2), 0.0, np.sin(t / 2), 0.0]
    return np.concatenate([base, legs]), legs


def squat(time: float, ctrl: np.ndarray) -> np.ndarray:
    """Controls of a quadruped that squats and sways with its feet planted."""
    bend = 0.15 * (1 - np.cos(2 * np.pi * time))
    sway = 0.08 * np.sin(2 * np.pi * 0.7 * time)
    legs = ctrl.reshape(4, 3) + np.array([sway, bend, -2 * bend])
    return legs.ravel()


def pile(boxes: int, seed: int = 0, reach: float = 0.2) -> str:
    """Boxes that fall on a heap, from within `reach` [m] of its middle."""
    rng = np.random.default_rng(seed)
    bodies = "".join(
        f'<body pos="{rng.uniform(-reach, reach)} {rng.uniform(-reach, reach)} {0.1 + 0.13 * i}"'
        f' euler="{rng.uniform(0, 90)} {rng.uniform(0, 90)} 0"><freejoint/>'
        '<geom type="box" size=".06 .05 .04" mass=".5"/></body>'
        for i in range(boxes)
    )
    return f"""<mujoco><option timestep="0.005"/><worldbody>
      <geom type="plane" size="5 5 1"/>{bodies}</worldbody></mujoco>"""
