"""A gripper holds a cube by friction alone: how far does the cube slide?

python examples/gallery/gripper.py
"""

import mujoco

import holdfast as hf

SCENE = """
<mujoco>
  <option timestep="0.002" integrator="implicitfast"/>
  <default><geom friction="0.8" rgba=".3 .4 .6 1"/></default>
  <worldbody>
    <light pos="0 -1 2"/>
    <body name="palm" pos="0 0 0.3">
      <geom type="box" size=".07 .02 .01" contype="0" conaffinity="0"/>
      <body name="left" pos="-.04 0 -.05" gravcomp="1">
        <joint name="left" type="slide" axis="1 0 0"/>
        <geom type="box" size=".01 .015 .04" mass=".1"/></body>
      <body name="right" pos=".04 0 -.05" gravcomp="1">
        <joint name="right" type="slide" axis="-1 0 0"/>
        <geom type="box" size=".01 .015 .04" mass=".1"/></body>
    </body>
    <body name="cube" pos="0 0 0.23"><freejoint/>
      <geom name="cube" type="box" size=".03 .03 .03" mass=".5" rgba=".85 .45 .2 1"/></body>
  </worldbody>
  <actuator>
    <motor name="left" joint="left"/><motor name="right" joint="right"/>
  </actuator>
  <keyframe><key name="hold" ctrl="10 10"/></keyframe>
</mujoco>
"""
CAMERA = {"azimuth": 110, "elevation": -15, "distance": 0.38, "lookat": (0, 0, 0.255)}


SECONDS = 4.0
NOSLIP = {"cone": mujoco.mjtCone.mjCONE_ELLIPTIC, "impratio": 10.0, "noslip_iterations": 10}


def main() -> tuple[mujoco.MjModel, mujoco.MjData]:
    for name, step, options in (
        ("MuJoCo", mujoco.mj_step, {}),
        ("MuJoCo, elliptic cone and noslip", mujoco.mj_step, NOSLIP),
        ("holdfast", hf.step, {}),
    ):
        model = mujoco.MjModel.from_xml_string(SCENE)
        for option, value in options.items():
            setattr(model.opt, option, value)
        data = mujoco.MjData(model)
        mujoco.mj_resetDataKeyframe(model, data, 0)
        while data.time < SECONDS:
            step(model, data)
        slid = 0.23 - data.body("cube").xpos[2]
        print(f"{name:33} the cube slides down by {1e3 * slid:.3g} mm in {SECONDS:g} s")
    assert abs(slid) < 1e-12
    return model, data


if __name__ == "__main__":
    main()
