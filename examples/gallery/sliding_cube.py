"""A cube slides to a stop where Coulomb's law says it should; with soft contact it tips over.

python examples/gallery/sliding_cube.py
"""

import mujoco

import holdfast as hf

SCENE = """
<mujoco>
  <option timestep="0.002"/>
  <worldbody>
    <light pos="1 0 3"/>
    <geom name="floor" type="plane" size="4 1 .1" friction="0.7" rgba=".8 .8 .8 1"/>
    <body name="cube" pos="0 0 0.05"><freejoint/>
      <geom type="box" size=".05 .05 .05" mass="1" friction="0.7" rgba=".85 .45 .2 1"/></body>
  </worldbody>
</mujoco>
"""
CAMERA = {"azimuth": 110, "elevation": -15, "distance": 0.8, "lookat": (0.5, 0, 0.1)}


def slide(step, seconds: float = 1.5) -> tuple[mujoco.MjModel, mujoco.MjData]:
    """Push the cube at 3 m/s and simulate."""
    model = mujoco.MjModel.from_xml_string(SCENE)
    data = mujoco.MjData(model)
    data.qvel[0] = 3.0
    while data.time < seconds:
        step(model, data)
    return model, data


def main() -> tuple[mujoco.MjModel, mujoco.MjData]:
    for name, step in (("MuJoCo", mujoco.mj_step), ("holdfast", hf.step)):
        model, data = slide(step)
        upright = data.body("cube").xmat[8] > 0.999
        end = "upright" if upright else "tipped over"
        print(f"{name:9} stops after {data.qpos[0]:.3f} m, {end}")
    print(f"v^2 / (2 mu g) = {3.0**2 / (2 * 0.7 * 9.81):.3f} m")
    assert upright
    assert abs(data.qpos[0] - 3.0**2 / (2 * 0.7 * 9.81)) < 3.0 * model.opt.timestep
    return model, data


if __name__ == "__main__":
    main()
