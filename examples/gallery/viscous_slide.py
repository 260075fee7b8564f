"""A block slides down an oily slope at the speed where drag balances gravity.

python examples/gallery/viscous_slide.py
"""

import math

import mujoco

import holdfast as hf

SLOPE, MASS, DRAG = 15.0, 2.0, 5.0  # [degrees], [kg], [N s/m] at each of four contact points
SCENE = f"""
<mujoco>
  <option timestep="0.002"/>
  <worldbody><light pos="0 -1 3"/>
    <body euler="0 {SLOPE} 0">
      <geom name="slope" type="plane" size="3 1 .1" rgba=".8 .8 .8 1"/></body>
    <body name="block" euler="0 {SLOPE} 0"><freejoint/>
      <geom type="box" pos="0 0 .05" size=".1 .1 .05" mass="{MASS}" rgba=".85 .45 .2 1"/></body>
  </worldbody>
  <custom><text name="holdfast:slope,block" data="viscous {DRAG}"/></custom>
</mujoco>
"""
CAMERA = {"azimuth": 110, "elevation": -15, "distance": 1.0, "lookat": (0.6, 0, -0.1)}


def main() -> tuple[mujoco.MjModel, mujoco.MjData]:
    model = mujoco.MjModel.from_xml_string(SCENE)
    data = mujoco.MjData(model)
    hf.step(model, data, nstep=1000)
    speed = math.hypot(data.qvel[0], data.qvel[2])
    expected = MASS * 9.81 * math.sin(math.radians(SLOPE)) / (4 * DRAG)
    print(f"slides at {speed:.6f} m/s; m g sin(slope) / drag is {expected:.6f} m/s")
    assert abs(speed - expected) < 1e-6
    return model, data


if __name__ == "__main__":
    main()
