"""A tower of ten boxes, each lighter than the one above it: how deep do they sink in?

python examples/gallery/tower.py
"""

import mujoco

import holdfast as hf

BOXES = "".join(
    f'<body name="box{i}" pos="0 0 {0.05 + 0.1 * i}"><freejoint/>'
    f'<geom type="box" size=".05 .05 .05" mass="{1.5**i:.4f}" rgba=".{9 - i} .5 .{i} 1"/></body>'
    for i in range(10)
)
SCENE = f"""
<mujoco>
  <option timestep="0.002"/>
  <worldbody><light pos="0 -1 3"/>
    <geom name="floor" type="plane" size="1 1 .1" rgba=".8 .8 .8 1"/>{BOXES}</worldbody>
</mujoco>
"""
CAMERA = {"azimuth": 130, "elevation": -10, "distance": 2.0, "lookat": (0, 0, 0.5)}


def main() -> tuple[mujoco.MjModel, mujoco.MjData]:
    for name, step in (("MuJoCo", mujoco.mj_step), ("holdfast", hf.step)):
        model = mujoco.MjModel.from_xml_string(SCENE)
        data = mujoco.MjData(model)
        while data.time < 5.0:
            step(model, data)
        sunk = 0.95 - data.body("box9").xpos[2]
        print(f"{name:9} after 5 s the top is {1e3 * sunk:.3g} mm lower")
    assert abs(sunk) < 1e-9
    return model, data


if __name__ == "__main__":
    main()
