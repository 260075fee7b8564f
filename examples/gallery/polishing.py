"""Force control: a tool presses on a table with the force it is asked for, and slides over it.

python examples/gallery/polishing.py
"""

import mujoco
import numpy as np

import holdfast as hf

SCENE = """
<mujoco>
  <option timestep="0.001" integrator="implicitfast"/>
  <worldbody><light pos="0 -1 3"/>
    <geom name="table" type="box" size=".5 .3 .05" pos="0 0 -.05" friction="0.3" rgba=".8 .8 .8 1"/>
    <body name="tool" pos="-.2 0 .05" gravcomp="1">
      <joint name="x" type="slide" axis="1 0 0"/><joint name="z" type="slide" axis="0 0 1"/>
      <geom name="tool" type="sphere" size=".03" mass="1" friction="0.3" rgba=".85 .45 .2 .4"/>
      <geom type="cylinder" size=".008 .06" pos="0 0 .09" mass="0" contype="0" conaffinity="0"
            rgba=".3 .4 .6 1"/>
    </body>
  </worldbody>
  <actuator><velocity name="x" joint="x" kv="500"/><motor name="z" joint="z"/></actuator>
</mujoco>
"""
CAMERA = {"azimuth": 110, "elevation": -15, "distance": 0.33, "lookat": (0.2, 0, 0.06)}
WANTED = 10.0  # [N]


def main() -> tuple[mujoco.MjModel, mujoco.MjData]:
    model = mujoco.MjModel.from_xml_string(SCENE)
    data = mujoco.MjData(model)
    stepper = hf.Stepper(model)
    push, forces, drags = 0.0, [], []
    while data.time < 2.0:
        measured = stepper.contacts.normal_force.sum()
        push += 0.05 * (WANTED - measured) if measured > 0 else 0.0
        approach = -2.0 * (data.joint("z").qvel[0] + 0.1)  # go down at 0.1 m/s
        data.ctrl[:] = [0.2, -push if measured > 0 else 10 * approach]
        stepper.step(data)
        if data.time > 1.5:
            forces.append(measured)
            drags.append(stepper.contacts.tangent_force.sum())
    error = np.abs(np.array(forces) - WANTED).max()
    print(f"pressing with {np.mean(forces):.6f} N, off by at most {error:.1e} N")
    print(f"friction {np.mean(drags):.6f} N; mu times the normal force is {0.3 * WANTED:g} N")
    assert error < 1e-9
    assert abs(np.mean(drags) - 0.3 * WANTED) < 1e-9
    return model, data


if __name__ == "__main__":
    main()
