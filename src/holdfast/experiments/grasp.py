"""The paper's grasping experiment (its Table 1) in maximal coordinates.

Facts recovered from the public sources behind the paper: m = 24 for two boxes, 10 bilateral rows,
12 contacts per pair of faces and 36 in all, rank of N 9, rank of [J; S; T] 18.
"""

from __future__ import annotations

import numpy as np

from holdfast.experiments.maximal import GRAVITY, Scene, X, Y, Z, inertia, point_row, spin_row


def grasp(boxes: int = 2) -> Scene:
    """A row of boxes squeezed between two grippers: the paper's Table 1.

    Unit cubes of 1 kg in a row along x with their faces flush, at rest. The first and last
    cube are the grippers: a prismatic joint lets each slide along x only (five rows), and
    each is pushed inward with ten newtons per box. Gravity pulls on the boxes alone. Each of
    the four corners of a pair of faces is listed three times, with the normal along x.
    """
    count = boxes + 2
    bodies = np.zeros((count, 3))
    bodies[:, 0] = np.arange(count) - (count - 1) / 2
    contacts = [
        (left, bodies[left] + [0.5, y, z])
        for left in range(count - 1)
        for y in (-0.5, 0.5)
        for z in (-0.5, 0.5)
        for _ in range(3)
    ]
    N, S, T = (
        np.array([point_row(bodies, left, left + 1, point, along) for left, point in contacts])
        for along in (X, Y, Z)
    )
    J = np.array(
        [
            row
            for gripper in (0, count - 1)
            for row in (
                point_row(bodies, None, gripper, bodies[gripper], Y),
                point_row(bodies, None, gripper, bodies[gripper], Z),
                spin_row(bodies, None, gripper, X),
                spin_row(bodies, None, gripper, Y),
                spin_row(bodies, None, gripper, Z),
            )
        ]
    )
    f = np.zeros((count, 6))
    f[1:-1, 2] = -GRAVITY
    f[0, 0], f[-1, 0] = 10.0 * boxes, -10.0 * boxes
    return Scene(M=inertia(count), N=N, S=S, T=T, J=J, v=np.zeros(6 * count), f=f.ravel(), h=0.01)
