"""Scenes built from first principles, in maximal coordinates.

Each body has six velocity coordinates, the velocity of its centre of mass and its angular
velocity, both in the world frame: ``[vx, vy, vz, wx, wy, wz]``. A row acts on the relative
velocity *second body minus first body*, so that a force along it pushes the second body
forward and the first one back by the same amount (Newton's third law).
"""

from __future__ import annotations

from typing import TypedDict

import numpy as np

X, Y, Z = np.eye(3)
GRAVITY = 9.81  # [m/s^2]


class Problem(TypedDict):
    """One step: inertia, Jacobians, velocity [m/s, rad/s], force [N, N m], step length [s]."""

    M: np.ndarray
    N: np.ndarray
    S: np.ndarray
    T: np.ndarray
    J: np.ndarray
    v: np.ndarray
    f: np.ndarray
    h: float


def point_row(
    bodies: np.ndarray, first: int | None, second: int | None, point: np.ndarray, along: np.ndarray
) -> np.ndarray:
    """Velocity of `second` relative to `first` at a world point, along a direction.

    Args:
        bodies: (nb, 3) centres of mass.
        first: body index; None is the world at rest.
        second: likewise.
        point: where, in the world frame.
        along: unit vector, in the world frame.
    """
    row = np.zeros((len(bodies), 6))
    for body, sign in ((first, -1.0), (second, 1.0)):
        if body is not None:
            row[body, :3] += sign * along
            row[body, 3:] += sign * np.cross(point - bodies[body], along)
    return row.ravel()


def spin_row(
    bodies: np.ndarray, first: int | None, second: int | None, along: np.ndarray
) -> np.ndarray:
    """Angular velocity of `second` relative to `first` along a direction."""
    row = np.zeros((len(bodies), 6))
    for body, sign in ((first, -1.0), (second, 1.0)):
        if body is not None:
            row[body, 3:] += sign * along
    return row.ravel()


def inertia(bodies: int, mass: float = 1.0, moment: float = 1.0 / 6.0) -> np.ndarray:
    """Inertia of equal bodies with a spherical inertia tensor; the defaults are a unit cube."""
    return np.diag(np.tile([mass] * 3 + [moment] * 3, bodies))


def grasp(boxes: int = 2) -> Problem:
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
    return Problem(M=inertia(count), N=N, S=S, T=T, J=J, v=np.zeros(6 * count), f=f.ravel(), h=0.01)


def cube_on_floor(heights: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)) -> Problem:
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
    return Problem(M=inertia(1), N=N, S=S, T=T, J=np.zeros((0, 6)), v=v, f=np.zeros(6), h=0.01)


def four_bar() -> Problem:
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
    return Problem(
        M=inertia(3, moment=0.1), N=none, S=none, T=none, J=J, v=np.zeros(18), f=f, h=0.01
    )
