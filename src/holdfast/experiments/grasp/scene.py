"""The paper's grasping experiment (its Table 1) in maximal coordinates.

Facts recovered from the public sources behind the paper: m = 24 for two boxes, 10 bilateral rows,
12 contacts per pair of faces and 36 in all, rank of N 9, rank of [J; S; T] 18.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from holdfast.experiments.maximal import (
    GRAVITY,
    Scene,
    X,
    Y,
    Z,
    contact_rows,
    inertia,
    point_row,
    rotation,
    spin_row,
)

REPEAT = 3  # how often the paper's simulator lists each corner
REACH = 1e-3  # part of the size up to which a gap is listed as a contact
HELD = 0.01  # part of the size that a box may move and still counts as held


def grasp(boxes: int = 2) -> Scene:
    """A row of boxes squeezed between two grippers: the paper's Table 1, its first step.

    Unit cubes of 1 kg in a row along x with their faces flush, at rest. The first and last
    cube are the grippers: a prismatic joint lets each slide along x only (five rows), and
    each is pushed inward with ten newtons per box. Gravity pulls on the boxes alone. Each of
    the four corners of a pair of faces is listed three times, with the normal along x.
    """
    return RowOfBoxes(boxes).scene()


@dataclass(frozen=True)
class Touching:
    """Contact points between neighbours, from left to right."""

    left: np.ndarray  # (n,) the body on the left of each
    point: np.ndarray  # (n, 3) in the world [m]
    axes: np.ndarray  # (n, 3, 3) normal, first and second tangent, as rows
    gap: np.ndarray  # (n,) along the normal [m]; negative is penetration


class RowOfBoxes:
    """The grasp in motion: poses and velocity of all cubes, contacts found anew in every step.

    Neighbours touch at the corners of the rectangle in which their faces overlap, with the normal
    and tangents of the left cube's face, three times each as in the paper's simulator. The gap to
    the right cube's face goes into the problem as the least separation speed, ``-gap / h``, which
    is zero for faces that are flush. Penetration is not corrected, so that it shows.

    Args:
        boxes: how many are held.
        size: edge of the cubes [m].
        mass: of each [kg].
        squeeze: force on each gripper [N]; ten newtons per box if None, as in the paper.
        h: step length [s].
    """

    def __init__(
        self,
        boxes: int = 2,
        *,
        size: float = 1.0,
        mass: float = 1.0,
        squeeze: float | None = None,
        h: float = 0.01,
    ) -> None:
        count = boxes + 2
        self.boxes, self.size, self.h = boxes, size, h
        self.centre = np.zeros((count, 3))
        self.centre[:, 0] = size * (np.arange(count) - (count - 1) / 2)
        self.turn = np.tile(np.eye(3), (count, 1, 1))
        self.velocity = np.zeros(6 * count)
        self.start = self.centre.copy()
        self.M = inertia(count, mass, mass * size**2 / 6.0)
        force = 10.0 * boxes if squeeze is None else squeeze
        f = np.zeros((count, 6))
        f[1:-1, 2] = -mass * GRAVITY
        f[0, 0], f[-1, 0] = force, -force
        self.f = f.ravel()
        self.J = np.array([row for gripper in (0, count - 1) for row in self._slide(gripper)])

    def _slide(self, gripper: int) -> list[np.ndarray]:
        """Rows of a prismatic joint along x. Its arms are zero, so they do not change."""
        bodies = self.centre
        return [
            point_row(bodies, None, gripper, bodies[gripper], Y),
            point_row(bodies, None, gripper, bodies[gripper], Z),
            *(spin_row(bodies, None, gripper, axis) for axis in (X, Y, Z)),
        ]

    def touching(self) -> Touching:
        """Contacts of the present poses."""
        half = self.size / 2
        left, right = self.turn[:-1], self.turn[1:]
        face = np.array([[-half, y, z] for y in (-half, half) for z in (-half, half)])
        # corners of the right cube's face, seen from the left cube
        world = self.centre[1:, None] + np.einsum("bij,cj->bci", right, face)
        seen = np.einsum("bji,bcj->bci", left, world - self.centre[:-1, None])
        low = np.maximum(seen.min(axis=1), -half)[:, 1:]
        high = np.minimum(seen.max(axis=1), half)[:, 1:]
        pick = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
        sides = np.stack([low, high], axis=1)  # (pairs, low or high, y or z)
        local = np.full((len(low), 4, 3), half)
        local[:, :, 1] = sides[:, pick[:, 0], 0]
        local[:, :, 2] = sides[:, pick[:, 1], 1]
        point = self.centre[:-1, None] + np.einsum("bij,bcj->bci", left, local)
        normal, facing = left[:, :, 0], right[:, :, 0]
        on_face = self.centre[1:] - half * facing
        gap = np.einsum("bci,bi->bc", on_face[:, None] - point, facing)
        gap /= np.einsum("bi,bi->b", normal, facing)[:, None]
        overlap = (high > low).all(axis=1)[:, None]
        pair, corner = np.nonzero((gap <= REACH * self.size) & overlap)
        pair, corner = np.repeat(pair, REPEAT), np.repeat(corner, REPEAT)
        axes = np.transpose(left, (0, 2, 1))[pair]
        return Touching(pair, point[pair, corner], axes, gap[pair, corner])

    def rows(self, touching: Touching) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Normals and tangents of the contacts."""
        left, point = touching.left, touching.point
        N, S, T = (
            contact_rows(self.centre, left, left + 1, point, touching.axes[:, k]) for k in range(3)
        )
        return N, S, T

    def scene(self) -> Scene:
        """The present step, as the paper has it: without gaps."""
        N, S, T = self.rows(self.touching())
        return Scene(
            M=self.M, N=N, S=S, T=T, J=self.J, v=self.velocity.copy(), f=self.f, h=self.h
        )  # fmt: skip

    def fields(self) -> dict[str, Any]:
        """Arguments of `holdfast.ContactProblem` for the present step."""
        touching = self.touching()
        N, S, T = self.rows(touching)
        return {
            "M": self.M, "N": N, "S": S, "T": T, "J": self.J, "v": self.velocity, "f": self.f,
            "h": self.h, "c_N": -np.maximum(touching.gap, 0.0) / self.h,
        }  # fmt: skip

    def advance(self, velocity: np.ndarray) -> None:
        """Move with the velocity after the step."""
        self.velocity = velocity
        parts = velocity.reshape(-1, 6)
        self.centre = self.centre + self.h * parts[:, :3]
        self.turn = rotation(self.h * parts[:, 3:]) @ self.turn

    def moved(self) -> np.ndarray:
        """(boxes,) how far each box is from where it was [m]."""
        return np.linalg.norm(self.centre - self.start, axis=1)[1:-1]

    def held(self) -> int:
        """How many boxes are where they were, but for `HELD` of their size."""
        return int(np.count_nonzero(self.moved() < HELD * self.size))

    def penetration(self) -> float:
        """Deepest overlap of two cubes [m]."""
        return -float(self.touching().gap.min(initial=0.0))
