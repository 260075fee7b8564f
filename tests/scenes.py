"""Scenes with known answers, in maximal coordinates (see `holdfast.experiments.maximal`)."""

from __future__ import annotations

import numpy as np

from holdfast.experiments.grasp.scene import grasp
from holdfast.experiments.maximal import GRAVITY, Scene, X, Y, Z, inertia, point_row, spin_row

__all__ = ["cube_on_floor", "four_bar", "grasp"]


def cube_on_floor(heights: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)) -> Scene:
    """A unit cube of 1 kg sliding at 1 m/s along x over a floor, without gravity.

    Args:
        heights: how far above the lower face each of the four corner contacts lies [m].
    """
    bodies = np.zeros((1, 3))
    corners = [(x, y) for x in (-0.5, 0.5) for y in (-0.5, 0.5)]
    points = [np.array([x, y, z - 0.5]) for (x, y), z in zip(corners, heights, strict=True)]
    N, S, T = (
        np.array([point_row(bodies, None, 0, point, along) for point in points])
        for along in (Z, X, Y)
    )
    v = np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    return Scene(M=inertia(1), N=N, S=S, T=T, J=np.zeros((0, 6)), v=v, f=np.zeros(6), h=0.01)


def four_bar() -> Scene:
    """A closed four-bar linkage: three links and the ground, four hinges about z.

    In space each hinge takes five rows, 20 in all for 18 coordinates, yet the linkage moves:
    a planar loop repeats three rows (one along z, two about x and y), so their rank is 17.
    """
    joints = np.array([[0.0, 0.0, 0.0], [0.2, 0.9, 0.0], [1.4, 1.1, 0.0], [1.5, 0.0, 0.0]])
    bodies = (joints[:-1] + joints[1:]) / 2
    pairs = [(None, 0), (0, 1), (1, 2), (2, None)]
    J = np.array(
        [
            row
            for (first, second), point in zip(pairs, joints, strict=True)
            for row in (
                *(point_row(bodies, first, second, point, along) for along in (X, Y, Z)),
                *(spin_row(bodies, first, second, along) for along in (X, Y)),
            )
        ]
    )
    none = np.zeros((0, 18))
    f = np.tile([0.0, -GRAVITY, 0.0, 0.0, 0.0, 0.0], 3)
    return Scene(M=inertia(3, moment=0.1), N=none, S=none, T=none, J=J, v=np.zeros(18), f=f, h=0.01)
