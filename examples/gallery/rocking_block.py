"""A block rocks from edge to edge: every impact at its own time, by event-driven simulation.

python examples/gallery/rocking_block.py
"""

import mujoco
import numpy as np

import holdfast as hf

SCENE = """
<mujoco>
  <option timestep="0.005"/>
  <worldbody><light pos="0 -1 3"/>
    <geom name="floor" type="plane" size="1 1 .1" rgba=".8 .8 .8 1"/>
    <body name="block"><freejoint/>
      <geom type="box" size=".05 .1 .2" mass="1" rgba=".85 .45 .2 1"/></body>
  </worldbody>
</mujoco>
"""
CAMERA = {"azimuth": 100, "elevation": -10, "distance": 1.0, "lookat": (0, 0, 0.2)}
TILT = 0.15  # [rad] about a bottom edge


def main() -> tuple[mujoco.MjModel, mujoco.MjData]:
    model = mujoco.MjModel.from_xml_string(SCENE)
    data = mujoco.MjData(model)
    c, s = np.cos(TILT), np.sin(TILT)
    data.qpos[:3] = [0.05 * c + 0.2 * s - 0.05, 0.0, -0.05 * -s + 0.2 * c]
    data.qpos[3:] = [np.cos(TILT / 2), 0.0, np.sin(TILT / 2), 0.0]
    simulation = hf.EventDriven(model, contact=hf.NoSlip())
    simulation.advance(data, 2.0)
    impacts = [event for event in simulation.events if event.kind == "impact"]
    print("impacts at", *(f"{event.time:.4f}" for event in impacts[:6]), "s")
    print(f"smallest distance between block and floor so far: {simulation.smallest_gap:.1e} m")
    assert simulation.smallest_gap > -1e-8
    return model, data


if __name__ == "__main__":
    main()
