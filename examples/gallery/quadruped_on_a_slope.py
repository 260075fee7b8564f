"""A quadruped stands on a slope, then squats and sways: its feet stay where they are.

python examples/gallery/quadruped_on_a_slope.py
"""

import mujoco
import numpy as np

import holdfast as hf
from holdfast.tools import scenes

CAMERA = {"azimuth": 120, "elevation": -15, "distance": 0.8, "lookat": (0, 0, 0.1)}
FEET = ("fl_foot", "fr_foot", "hl_foot", "hr_foot")


def feet(model: mujoco.MjModel, data: mujoco.MjData) -> np.ndarray:
    mujoco.mj_kinematics(model, data)
    return np.array([data.geom(name).xpos for name in FEET])


def main() -> tuple[mujoco.MjModel, mujoco.MjData]:
    model = mujoco.MjModel.from_xml_string(scenes.quadruped(slope=10.0))
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    stand = data.ctrl.copy()
    stepper = hf.Stepper(model)
    stepper.step(data, 250)
    before = feet(model, data)
    stepper.step(data, 250)
    moved = np.abs(feet(model, data) - before).max()
    print(f"standing for 0.5 s: feet moved {moved:.1e} m")
    assert moved < 1e-9

    fastest = 0.0
    for _ in range(500):
        data.ctrl[:] = scenes.squat(data.time - 1.0, stand)
        stepper.step(data)
        solution = stepper.solution
        assert solution is not None
        pressed = solution.normal > 0.0
        speeds = np.linalg.norm(solution.sliding[pressed], axis=1)
        fastest = max(fastest, float(speeds.max(initial=0.0)))
    print(f"squatting for 1 s: loaded feet slip at most {fastest:.1e} m/s")
    assert fastest < 1e-12
    print(stepper.contacts)
    return model, data


if __name__ == "__main__":
    main()
