"""Pick a cube, turn it by 90 degrees, place it: with friction alone, no weld.

python examples/gallery/pick_turn_place.py
"""

import mujoco
import numpy as np

import holdfast as hf

SCENE = """
<mujoco>
  <option timestep="0.002" integrator="implicitfast"/>
  <worldbody>
    <light pos="0 -1 2"/><geom name="table" type="plane" size="1 1 .1" rgba=".8 .8 .8 1"/>
    <body name="cube" pos="0 0 0.03"><freejoint/>
      <geom name="cube" type="box" size="0.03 0.03 0.03" mass="0.2" friction="1"
            rgba=".85 .45 .2 1"/></body>
    <body name="hand" pos="0 0 0.2" gravcomp="1">
      <joint name="x" type="slide" axis="1 0 0"/>
      <joint name="y" type="slide" axis="0 1 0"/>
      <joint name="z" type="slide" axis="0 0 1"/>
      <joint name="yaw" type="hinge" axis="0 0 1"/>
      <geom type="box" size="0.06 0.02 0.01" pos="0 0 0.06" mass="1" rgba=".3 .4 .6 1"/>
      <body name="left" pos="-0.05 0 0" gravcomp="1">
        <joint name="left" type="slide" axis="1 0 0"/>
        <geom type="box" size="0.01 0.015 0.04" mass="0.1" friction="1" rgba=".3 .4 .6 1"/></body>
      <body name="right" pos="0.05 0 0" gravcomp="1">
        <joint name="right" type="slide" axis="-1 0 0"/>
        <geom type="box" size="0.01 0.015 0.04" mass="0.1" friction="1" rgba=".3 .4 .6 1"/></body>
    </body>
  </worldbody>
  <actuator>
    <position joint="x" kp="2000" kv="120"/><position joint="y" kp="2000" kv="120"/>
    <position joint="z" kp="2000" kv="120"/><position joint="yaw" kp="20" kv="1.5"/>
    <position joint="left" kp="1000" kv="30"/><position joint="right" kp="1000" kv="30"/>
  </actuator>
</mujoco>
"""
CAMERA = {"azimuth": 130, "elevation": -20, "distance": 0.9, "lookat": (0.1, 0.05, 0.1)}
OPEN, CLOSED = 0.0, 0.02  # where the fingers are told to go; the cube is in the way at 0.01
#            x    y     z     yaw        fingers  seconds
WAYPOINTS = [
    (0.0, 0.0, -0.16, 0.0, OPEN, 0.5),  # go down to the cube
    (0.0, 0.0, -0.16, 0.0, CLOSED, 0.3),  # close
    (0.0, 0.0, 0.0, 0.0, CLOSED, 0.5),  # lift
    (0.2, 0.1, 0.0, np.pi / 2, CLOSED, 1.0),  # carry and turn
    (0.2, 0.1, -0.16, np.pi / 2, CLOSED, 0.7),  # put down
    (0.2, 0.1, -0.16, np.pi / 2, OPEN, 0.3),  # let go
    (0.2, 0.1, 0.0, np.pi / 2, OPEN, 0.4),  # go away
]


def main() -> tuple[mujoco.MjModel, mujoco.MjData]:
    model = mujoco.MjModel.from_xml_string(SCENE)
    data = mujoco.MjData(model)
    stepper = hf.Stepper(model)  # the only line that knows holdfast
    last = np.zeros(6)
    in_hand = None
    for x, y, z, yaw, fingers, seconds in WAYPOINTS:
        goal = np.array([x, y, z, yaw, fingers, fingers])
        steps = round(seconds / model.opt.timestep)
        for k in range(steps):
            part = min(1.0, 1.25 * (k + 1) / steps)
            data.ctrl[:] = last + (goal - last) * part * part * (3 - 2 * part)
            stepper.step(data)
        last = goal
        seen = in_the_hand(data)
        print(f"{data.time:4.1f} s  cube at {np.round(data.body('cube').xpos, 4)}  "
              f"in the hand at {np.round(1e3 * seen, 6)} mm")  # fmt: skip
        if (fingers, z) == (CLOSED, 0.0):
            if in_hand is not None:
                slid = np.abs(seen - in_hand).max()
                print(
                    f"        it slid by {slid:.1e} m in the hand while it was carried and turned"
                )
                assert slid < 1e-5  # contact velocities agree; arcs are followed to first order
            in_hand = seen
    turned = 2 * np.degrees(np.arctan2(data.body("cube").xquat[3], data.body("cube").xquat[0]))
    print(f"turned by {turned:.6f} degrees; sank in by at most {stepper.largest_penetration:.1e} m")
    assert abs(turned - 90) < 1.0
    assert abs(data.body("cube").xpos[2] - 0.03) < 1e-8
    return model, data


def in_the_hand(data: mujoco.MjData) -> np.ndarray:
    """Where the cube is in the frame of the left finger [m]."""
    finger = data.body("left")
    return finger.xmat.reshape(3, 3).T @ (data.body("cube").xpos - finger.xpos)


if __name__ == "__main__":
    main()
