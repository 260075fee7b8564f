"""Rigid bodies in maximal coordinates: the inertia and Jacobian rows of scenes built by hand.

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
WORLD = -1  # in place of a body number


class Scene(TypedDict):
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


def contact_rows(
    bodies: np.ndarray, first: np.ndarray, second: np.ndarray, point: np.ndarray, along: np.ndarray
) -> np.ndarray:
    """The rows of `point_row` for many contacts at once.

    Args:
        bodies: (nb, 3) centres of mass.
        first: (n,) body numbers; `WORLD` is the world at rest.
        second: likewise.
        point: (n, 3) in the world frame.
        along: (n, 3) unit vectors, in the world frame.
    """
    rows, each = np.zeros((len(point), len(bodies), 6)), np.arange(len(point))
    for body, sign in ((first, -1.0), (second, 1.0)):
        moves = np.flatnonzero(body != WORLD)
        at = each[moves], body[moves]
        rows[*at, :3] += sign * along[moves]
        rows[*at, 3:] += sign * np.cross(point[moves] - bodies[at[1]], along[moves])
    return rows.reshape(len(point), -1)


def rotation(turns: np.ndarray) -> np.ndarray:
    """(k, 3, 3) matrices of the rotation vectors (k, 3) [rad]."""
    angle = np.linalg.norm(turns, axis=1)[:, None, None]
    x, y, z = turns.T
    zero = np.zeros_like(x)
    skew = np.stack([zero, -z, y, z, zero, -x, -y, x, zero], axis=1).reshape(-1, 3, 3)
    # sin(a) / a and (1 - cos(a)) / a^2, without cancellation
    first, second = np.sinc(angle / np.pi), 0.5 * np.sinc(angle / (2 * np.pi)) ** 2
    return np.eye(3) + first * skew + second * (skew @ skew)
