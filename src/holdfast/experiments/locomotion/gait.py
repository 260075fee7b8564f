"""A trot: Bezier foot paths, inverse kinematics, and a step-by-step controller.

All in the frame of the base, x forward, y to the left, z up; legs in the order of
`holdfast.tools.scenes.LEGS`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from holdfast.experiments.locomotion.terrain import Terrain

HIPS = np.array([[0.10, 0.06], [0.10, -0.06], [-0.10, 0.06], [-0.10, -0.06]])  # roll axes [m]
REACH = 0.05  # from the roll axis to the pitch axis, outward [m]
LINK = 0.1  # length of thigh and of shank [m]
OUTWARD = np.sign(HIPS[:, 0])  # knees point away from the middle
FEET = np.array([[0.12, 0.10, -0.14], [0.12, -0.10, -0.14], [-0.12, 0.10, -0.14],
                 [-0.12, -0.10, -0.14]])  # targets of the original [m]  # fmt: skip
RADIUS = 0.01  # of the feet [m]
GIVE = 0.0012  # [m] about what the servos give way by, under half of the weight
SETTLE = 0.015  # [s] in which a foot that has come down is asked to carry weight
OFFSETS = np.array([0.0, 0.5, 0.5, 0.0])  # of the phase: diagonal legs swing together


def joint_angles(feet: np.ndarray) -> np.ndarray:
    """(4, 3) roll, pitch and knee angles that put the centres of the feet at (4, 3) places.

    Places out of reach are drawn in towards the pitch axis, along the leg.
    """
    x = feet[:, 0] - HIPS[:, 0] - REACH * OUTWARD
    y, z = feet[:, 1] - HIPS[:, 1], feet[:, 2]
    roll = np.arctan2(y, -z)
    down = np.hypot(y, z)
    length = np.minimum(np.hypot(x, down), 2 * LINK)
    knee = OUTWARD * 2.0 * np.arccos(0.5 * length / LINK)
    pitch = np.arctan2(-x, down) - 0.5 * knee
    return np.column_stack([roll, pitch, knee])


def foot_places(angles: np.ndarray) -> np.ndarray:
    """(4, 3) centres of the feet at (4, 3) joint angles: the inverse of `joint_angles`."""
    roll, pitch, knee = angles.T
    x = HIPS[:, 0] + REACH * OUTWARD - LINK * (np.sin(pitch) + np.sin(pitch + knee))
    down = LINK * (np.cos(pitch) + np.cos(pitch + knee))
    return np.column_stack([x, HIPS[:, 1] + np.sin(roll) * down, -np.cos(roll) * down])


def bezier(points: np.ndarray, s: float) -> np.ndarray:
    """The Bezier curve of (k, d) control points at s in [0, 1], by de Casteljau's scheme."""
    points = np.asarray(points, dtype=float)
    while len(points) > 1:
        points = (1.0 - s) * points[:-1] + s * points[1:]
    return points[0]


@dataclass(frozen=True)
class Gait:
    """How to walk; the defaults are the published ones.

    Attributes:
        speed: commanded, forward [m/s].
        period: of a cycle [s].
        duty: part of the cycle that a foot is on the ground.
        lift: height of a step above the higher of its ends [m].
        rest: time [s] to stand before the first step.
        turn, sidestep: feedback of heading and of the distance from the line [1/s].
    """

    speed: float = 0.05
    period: float = 0.7
    duty: float = 0.75
    lift: float = 0.015
    rest: float = 0.1
    turn: float = 1.0
    sidestep: float = 0.5

    @property
    def stance(self) -> float:
        """Time on the ground in a cycle [s]."""
        return self.duty * self.period

    @property
    def swing(self) -> float:
        """Time in the air in a cycle [s]."""
        return self.period - self.stance

    def cycles(self, time: float) -> np.ndarray:
        """(4,) cycles so far, whole ones and parts; a cycle begins with the swing."""
        started = (time - self.rest) / self.period - OFFSETS
        return np.maximum(started, 0.0)


def swing_path(start: np.ndarray, end: np.ndarray, velocity: np.ndarray, gait: Gait) -> np.ndarray:
    """(8, 3) control points of a swing that leaves and meets the ground at the ground's velocity.

    Args:
        start: place (3,) of the foot [m].
        end: likewise.
        velocity: (3,) of the ground [m/s].
        gait: gives time and height.
    """
    ahead = velocity * gait.swing / 7.0  # the derivative at an end is 7 times the edge there
    first, last = start + ahead, end - ahead
    above_first, above_last = first.copy(), last.copy()
    # in the middle, the four control points in the air weigh 112 of 128
    above_first[2] = above_last[2] = max(start[2], end[2]) + gait.lift * 128 / 112
    return np.array([start, first, above_first, above_first, above_last, above_last, last, end])


class Trot:
    """Servo angles for each step, from the time and the pose of the base.

    Feet on the ground move back as the base is to move forward, and press it by `GIVE`; a foot in
    the air follows a Bezier curve to where it will be half a stride ahead. How high it has to come
    down is looked up in the map; when it touches, its swing ends, so that it neither pushes the
    base up nor bounces. The base is to stay level, at the published height above the mean of its
    feet. Strides are steered back to the line y = 0 and to heading 0.

    Args:
        gait: how to walk.
        terrain: the map.
        lead: [s] by which angles are led, damping over stiffness of the servos: so that their
            damping acts on the error of the speed.

    Attributes:
        cycle: (4,) which cycle each leg is in; a cycle begins with the swing.
        swings: (4,) legs whose foot is in the air, by plan.
        lands: (4,) feet that come down and have not touched yet.
    """

    def __init__(self, gait: Gait, terrain: Terrain, lead: float) -> None:
        self.gait, self.terrain, self.lead = gait, terrain, lead
        self.cycle = np.zeros(4, dtype=int)
        self.swings, self.lands = np.zeros(4, dtype=bool), np.zeros(4, dtype=bool)
        self._place = FEET[:, :2].copy()
        self._time: float | None = None
        self._ends = np.zeros((4, 2))  # height of the ground where a swing starts, and ends
        self._ground = np.zeros(4)  # height of the ground under each foot
        self._foot = np.zeros(4)  # height of each foot above the lowest ground
        self._above = np.zeros(4)  # the same above where it is to press the ground
        self._path = np.zeros((4, 8, 3))
        self._angles = np.zeros((4, 3))

    def __call__(self, time: float, qpos: np.ndarray, touches: np.ndarray) -> np.ndarray:
        """(12,) angles to ask of the servos until the next call.

        Args:
            time: [s].
            qpos: of the robot.
            touches: (4,) feet that are pressed on the ground.
        """
        gait = self.gait
        if self._time is None:
            self._stand(qpos)
        dt = 0.0 if self._time is None else time - self._time
        self._time = time
        forward, spin = self._command(time, qpos)
        drift = np.column_stack([-forward[0] + spin * self._place[:, 1],
                                 -forward[1] - spin * self._place[:, 0]])  # fmt: skip
        for leg, cycles in enumerate(gait.cycles(time)):
            part = (cycles % 1.0) * gait.period / gait.swing
            if cycles > 0.0 and self.cycle[leg] <= int(cycles):
                self.cycle[leg] = int(cycles) + 1
                self._lift(leg, qpos, drift[leg], forward)
            swings = self.swings[leg]
            self.lands[leg] = (self.lands[leg] or (swings and part > 0.5)) and not touches[leg]
            self._ground[leg] = ease(self._ends[leg, 0], self._ends[leg, 1], min(part, 1.0))
            if swings and (part <= 0.5 or (part < 1.0 and self.lands[leg])):
                place = bezier(self._path[leg], part)
                self._place[leg], self._foot[leg] = place[:2], place[2]
            else:
                self._press(leg, dt, drift[leg])
        height = self._ground.mean() - FEET[0, 2]
        feet = np.column_stack([self._place, self._foot - height])
        angles = joint_angles(feet)
        rate = (angles - self._angles) / dt if dt > 0.0 else np.zeros((4, 3))
        self._angles = angles
        return (angles + self.lead * rate).ravel()

    def _stand(self, qpos: np.ndarray) -> None:
        for leg, (x, y) in enumerate(in_world(qpos[:2], heading(qpos), FEET[:, :2])):
            self._ends[leg] = self.terrain.height(x, y)

    def _command(self, time: float, qpos: np.ndarray) -> tuple[np.ndarray, float]:
        """Velocity of the base in its own frame [m/s], and its turning speed [rad/s]."""
        gait = self.gait
        if time < gait.rest:
            return np.zeros(2), 0.0
        yaw = heading(qpos)
        back = -gait.sidestep * qpos[1]
        side = float(np.clip(back, -0.5 * gait.speed, 0.5 * gait.speed))
        return np.array([gait.speed, side]), float(np.clip(-gait.turn * yaw, -0.3, 0.3))

    def _lift(self, leg: int, qpos: np.ndarray, drift: np.ndarray, forward: np.ndarray) -> None:
        """Plan a swing."""
        gait = self.gait
        end = FEET[leg, :2] - 0.5 * gait.stance * drift
        x, y = in_world(qpos[:2], heading(qpos), end + gait.swing * forward)
        landing = self.terrain.height(x, y)
        self._path[leg] = swing_path(
            np.append(self._place[leg], self._foot[leg]), np.append(end, landing),
            np.append(drift, 0.0), gait,
        )  # fmt: skip
        self._ends[leg] = self._ends[leg, 1], landing
        self.swings[leg], self.lands[leg] = True, False

    def _press(self, leg: int, dt: float, drift: np.ndarray) -> None:
        """Move a foot on the ground; one that has just come down takes its time to press it."""
        pressing = self._ground[leg] - GIVE
        if self.swings[leg]:
            self.swings[leg] = False
            self._above[leg] = self._foot[leg] - pressing
        self._above[leg] *= np.exp(-dt / SETTLE)
        self._place[leg] += dt * drift
        self._foot[leg] = pressing + self._above[leg]


def ease(start: float, end: float, part: float) -> float:
    """From start to end, as part goes from 0 to 1, beginning and ending at rest."""
    return start + part * part * (3.0 - 2.0 * part) * (end - start)


def heading(qpos: np.ndarray) -> float:
    """Angle of the base about the vertical [rad]."""
    w, x, y, z = qpos[3:7]
    return float(np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z)))


def in_world(base: np.ndarray, yaw: float, places: np.ndarray) -> np.ndarray:
    """Places (..., 2) in the plane of a base at (2,) that is turned by `yaw`, in the world."""
    c, s = np.cos(yaw), np.sin(yaw)
    return base + places @ np.array([[c, s], [-s, c]])
