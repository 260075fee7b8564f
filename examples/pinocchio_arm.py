"""Your own dynamics: an arm simulated with Pinocchio, its contact with a table by holdfast.

pip install pin
python examples/pinocchio_arm.py
"""

import numpy as np

try:
    import pinocchio as pin
except ImportError:
    pin = None

import holdfast as hf

H, TABLE, MU = 0.001, 0.2, 0.8  # step [s], height of the table [m], friction


def main() -> None:
    if pin is None:
        print("this example needs Pinocchio: pip install pin")
        return
    model = pin.buildSampleModelManipulator()
    data = model.createData()
    hand = model.getFrameId("effector_body")
    q = np.array([0.0, 0.6, 0.0, 0.9, 0.0, 0.0])
    v = np.zeros(model.nv)
    heights = []
    for _ in range(3000):
        tau = -2.0 * v  # joint damping; gravity lets the arm fall on the table
        pin.computeAllTerms(model, data, q, v)
        pin.updateFramePlacements(model, data)
        point = data.oMf[hand].translation
        J = pin.getFrameJacobian(model, data, hand, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED)[:3]
        gap = point[2] - TABLE
        heights.append(gap)
        problem = hf.ContactProblem(
            M=np.triu(data.M) + np.triu(data.M, 1).T,
            v=v,
            f=tau - data.nle,
            h=H,
            N=J[2:3],
            S=J[0:1],
            T=J[1:2],
            mu=MU,
            c_N=[-gap / H],  # may close the gap in this step, not more
        )
        solution = hf.Coulomb().solve(problem)
        v = solution.velocity
        q = pin.integrate(model, q, H * v)
    state = ("open", "sticks", "slides")[solution.state[0]]
    print(f"the hand presses on the table with {solution.normal_impulse[0] / H:.3f} N and {state}")
    print(f"friction in use: {solution.required_friction()[0]:.3f} of {MU}; "
          f"lowest point {min(heights):.1e} m above the table")  # fmt: skip
    assert min(heights) > -1e-6 and solution.is_exact()


if __name__ == "__main__":
    main()
