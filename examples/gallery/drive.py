"""Odometry of a wheeled robot: wheels that do not slip make its path predictable.

python examples/gallery/drive.py
"""

import math

import mujoco
import numpy as np

import holdfast as hf

RADIUS, TRACK = 0.1, 0.4  # of the wheels, and between them [m]
SPEED = 2.0  # of the right wheel [rad/s]
WHEEL = """<body name="{name}" pos="0 {y} 0"><joint name="{name}" axis="0 1 0"/>
  <geom name="{name}" type="ellipsoid" size=".1 .02 .1" mass=".5" rgba=".2 .2 .2 1"/></body>"""
SCENE = f"""
<mujoco>
  <option timestep="0.002" integrator="implicitfast"/>
  <worldbody><light pos="0 -1 3"/>
    <geom name="floor" type="plane" size="3 3 .1" rgba=".8 .8 .8 1"/>
    <body name="car" pos="0 0 {RADIUS}"><freejoint/>
      <geom type="box" size=".15 .15 .04" mass="4" pos="-.05 0 .02" rgba=".85 .45 .2 1"/>
      <geom name="caster" type="sphere" size=".04" pos="-.2 0 -.06" mass=".2"/>
      {WHEEL.format(name="left", y=TRACK / 2)}{WHEEL.format(name="right", y=-TRACK / 2)}
    </body>
  </worldbody>
  <actuator><velocity joint="left" kv="20"/><velocity joint="right" kv="20"/></actuator>
  <custom>
    <text name="holdfast:floor,caster" data="frictionless"/>
  </custom>
</mujoco>
"""
CAMERA = {"azimuth": 120, "elevation": -35, "distance": 1.9, "lookat": (0, 0.5, 0)}


def main() -> tuple[mujoco.MjModel, mujoco.MjData]:
    model = mujoco.MjModel.from_xml_string(SCENE)
    data = mujoco.MjData(model)
    stepper = hf.Stepper(model, contact=hf.NoSlip())
    while data.time < 1.0:  # get going
        data.ctrl[:] = data.time * SPEED * np.array([0.5, 1.0])
        stepper.step(data)
    stepper.reset()
    turned, angle = 0.0, heading(data)
    for _ in range(1000):
        stepper.step(data)
        now = heading(data)
        turned += math.remainder(now - angle, 2 * math.pi)
        angle = now
    left, right = data.joint("left").qvel[0], data.joint("right").qvel[0]
    rate, expected = turned / 2.0, RADIUS * (right - left) / TRACK
    print(f"turns at {rate:.6f} rad/s; radius * (right - left) / track = {expected:.6f} rad/s")
    print(f"fastest slip of a wheel: {stepper.fastest_slip:.1e} m/s")
    assert abs(rate - expected) < 1e-6
    assert stepper.fastest_slip < 1e-9
    return model, data


def heading(data: mujoco.MjData) -> float:
    """Yaw of the car [rad]."""
    return math.atan2(data.body("car").xmat[3], data.body("car").xmat[0])


if __name__ == "__main__":
    main()
