"""Problem families as data, and the generators that turn a line of data into a problem.

A `Family` names a generator, the parameters its cases share and the sizes of its cases; a
`Case` is one problem, reproducible from its fields alone. The scenes:

* ``box_stacks``: one tower of unit cubes; contact points scattered over every interface.
* ``mass_ratio``: the same tower, every second cube a million times heavier.
* ``tumbling``: bodies of random shape and orientation thrown up from a bowl, bumping into
  their neighbours.
* ``squeezed_rows``: boxes in a row along x, pressed between two pads, falling meanwhile.
  Contact points are the grid of a face, each listed three times with the same normal, as in
  the grasping experiment of the paper: rows repeat exactly and ties are everywhere.
* ``terrain_feet``: a legged robot with one dense, coupled inertia; foot pads on bumpy ground.

Velocities are in m/s and rad/s, masses in kg, lengths in m; a step is `STEP` long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from problem import Array, Problem

GRAVITY = 9.81
STEP = 0.01
WORLD = -1


@dataclass(frozen=True)
class Case:
    """One benchmark problem.

    Attributes:
        family: name of its family.
        generator: name of the generator in `GENERATORS`.
        bodies: number of free bodies (legs for ``terrain_feet``).
        contacts: number of contact points.
        parameters: further keyword arguments of the generator.
        seed: seed of the random generator.
        quick: whether ``--quick`` includes it.
    """

    family: str
    generator: str
    bodies: int
    contacts: int
    parameters: tuple[tuple[str, float], ...] = ()
    seed: int = 0
    quick: bool = False

    def generate(self) -> Problem:
        """The problem."""
        rng = np.random.default_rng([self.seed, self.bodies, self.contacts])
        return GENERATORS[self.generator](rng, self.bodies, self.contacts, **dict(self.parameters))


@dataclass(frozen=True)
class Family:
    """A family of problems that differ in size.

    Attributes:
        name: short name.
        generator: name of the generator in `GENERATORS`.
        sizes: pairs (bodies, contacts).
        quick: how many of the first sizes ``--quick`` takes.
        parameters: keyword arguments that the cases share.
    """

    name: str
    generator: str
    sizes: tuple[tuple[int, int], ...]
    quick: int
    parameters: dict[str, float] = field(default_factory=dict)

    def cases(self) -> Iterator[Case]:
        """The cases, smallest first."""
        for number, (bodies, contacts) in enumerate(self.sizes):
            yield Case(
                self.name,
                self.generator,
                bodies,
                contacts,
                tuple(self.parameters.items()),
                quick=number < self.quick,
            )


FAMILIES = [
    Family(
        "box_stacks",
        "stack",
        ((1, 8), (4, 36), (10, 36), (3, 1000), (20, 400), (4, 10**4), (20, 10**5), (4, 10**6)),
        quick=5,
    ),
    Family(
        "mass_ratio",
        "stack",
        ((2, 12), (4, 36), (10, 100), (6, 1000), (20, 400), (10, 10**4), (20, 10**5), (2, 10**6)),
        quick=5,
        parameters={"mass_ratio": 1e6},
    ),
    Family(
        "tumbling",
        "tumble",
        ((3, 24), (4, 40), (10, 100), (6, 1000), (20, 400), (10, 10**4), (20, 10**5), (5, 10**6)),
        quick=5,
    ),
    Family(
        "squeezed_rows",
        "squeeze",
        ((3, 24), (4, 36), (8, 84), (5, 1000), (20, 228), (8, 10**4), (20, 10**5), (4, 10**6)),
        quick=5,
    ),
    Family(
        "terrain_feet",
        "terrain",
        ((0, 8), (2, 16), (4, 40), (4, 400), (4, 1000), (4, 10**4), (2, 10**5), (4, 10**6)),
        quick=5,
    ),
]


@dataclass(frozen=True)
class Contacts:
    """Contact points between pairs of bodies.

    Attributes:
        first: body that the normal points away from, or `WORLD`.
        second: body that the normal points into.
        point: positions, (n, 3).
        normal: unit normals from first to second, (n, 3).
    """

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    point: Array
    normal: Array


def spatial_inertia(mass: Array, inertia: Array) -> Array:
    """Blocks diag(mass I, inertia) of free bodies, (nb, 6, 6)."""
    M = np.zeros((len(mass), 6, 6))
    M[:, :3, :3] = mass[:, None, None] * np.eye(3)
    M[:, 3:, 3:] = inertia
    return M


def normal_rows(centre: Array, contacts: Contacts) -> tuple[NDArray[np.int64], Array]:
    """Body numbers (n, 2) and normal Jacobians (n, 2, 6) of contacts between free bodies."""
    blocks = np.stack([contacts.first, contacts.second], axis=1)
    values = np.empty((len(blocks), 2, 6))
    for slot, sign in enumerate((-1.0, 1.0)):
        arm = contacts.point - centre[blocks[:, slot]]
        values[:, slot, :3] = sign * contacts.normal
        values[:, slot, 3:] = sign * np.cross(arm, contacts.normal)
    values[contacts.first == WORLD, 0] = 0.0
    blocks[:, 0] = np.where(contacts.first == WORLD, contacts.second, contacts.first)
    return blocks, values


def stack(rng: np.random.Generator, bodies: int, contacts: int, mass_ratio: float = 1.0) -> Problem:
    """A tower of unit cubes settling under gravity; contact i lies on interface i mod bodies."""
    level = np.arange(bodies)
    centre = np.stack([np.zeros(bodies), np.zeros(bodies), level + 0.5], axis=1)
    mass = np.where(level % 2 == 0, 1.0, mass_ratio)
    face = np.arange(contacts) % bodies
    spread = rng.uniform(-0.5, 0.5, (contacts, 2))
    point = np.column_stack([spread, face.astype(float)])
    normal = np.broadcast_to([0.0, 0.0, 1.0], (contacts, 3))
    below = np.where(face == 0, WORLD, face - 1)
    blocks, values = normal_rows(centre, Contacts(below, face, point, normal))
    v = 0.02 * rng.normal(size=(bodies, 6))
    v[:, 2] -= GRAVITY * STEP
    M = spatial_inertia(mass, mass[:, None, None] * np.eye(3) / 6)
    return Problem(M, values, v.ravel(), blocks)


def tumble(rng: np.random.Generator, bodies: int, contacts: int) -> Problem:
    """Random bodies thrown up from a bowl; contacts between near neighbours and the bowl.

    Normals are at most 30 degrees off the line of centres (60 off the vertical at the bowl),
    so moving apart is always possible: the cone of feasible motions has an interior.
    """
    centre = rng.uniform(-1, 1, (bodies, 3))
    mass = rng.uniform(0.5, 2.0, bodies)
    turn = random_rotations(rng, bodies)
    moments = mass[:, None] * rng.uniform(0.02, 0.06, (bodies, 3))
    inertia = np.einsum("bij,bj,bkj->bik", turn, moments, turn)
    first, second = neighbour_pairs(rng, centre, contacts)
    normal, point = touching_points(rng, centre, first, second)
    blocks, values = normal_rows(centre, Contacts(first, second, point, normal))
    # Thrown upwards and apart: without a motion along the cone the heap would stop dead.
    v = rng.normal(size=(bodies, 6))
    v[:, :3] += 0.3 * centre
    v[:, 2] += 0.3
    return Problem(spatial_inertia(mass, inertia), values, v.ravel(), blocks)


def neighbour_pairs(
    rng: np.random.Generator, centre: Array, contacts: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Random pairs of a body and the bowl (one in six) or one of its five nearest bodies."""
    distance = np.linalg.norm(centre[:, None] - centre[None], axis=2)
    nearest = np.argsort(distance, axis=1)[:, 1:6]
    second = rng.integers(len(centre), size=contacts)
    if nearest.shape[1] == 0:
        return np.full(contacts, WORLD), second
    choice = nearest[second, rng.integers(nearest.shape[1], size=contacts)]
    return np.where(rng.random(contacts) < 1 / 6, WORLD, choice), second


def touching_points(
    rng: np.random.Generator,
    centre: Array,
    first: NDArray[np.int64],
    second: NDArray[np.int64],
) -> tuple[Array, Array]:
    """Normals and points of contacts between bodies, or between a body and the bowl below it."""
    world = (first == WORLD)[:, None]
    noise = rng.normal(size=(len(first), 3))
    noise /= np.linalg.norm(noise, axis=1, keepdims=True)
    upward = np.array([0.0, 0.0, 1.0])
    apart = np.where(world, upward, centre[second] - centre[first])
    reach = np.linalg.norm(apart, axis=1, keepdims=True)
    normal = apart / reach + np.where(world, 0.85, 0.5) * noise
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    arm = np.where(world, 0.4 * normal, 0.5 * apart)
    return normal, centre[second] - arm + 0.1 * rng.normal(size=noise.shape)


def random_rotations(rng: np.random.Generator, count: int) -> Array:
    """Uniformly distributed rotation matrices, (count, 3, 3), from unit quaternions."""
    q = rng.normal(size=(count, 4))
    w, x, y, z = (q / np.linalg.norm(q, axis=1, keepdims=True)).T
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.moveaxis(np.array(rows), 2, 0)


def squeeze(rng: np.random.Generator, bodies: int, contacts: int) -> Problem:
    """Two pads (first and last body) press a row of unit cubes along x; gravity pulls the cubes.

    A pad sits on a carriage: light along x, a hundred times heavier in every other direction.
    It pushes with ten newtons per cube, a little off centre.
    """
    cubes = bodies - 2
    centre = np.zeros((bodies, 3))
    centre[:, 0] = np.arange(bodies)
    face = np.arange(contacts) % (bodies - 1)
    point = np.column_stack([face + 0.5, face_grid(np.arange(contacts) // (bodies - 1))])
    normal = np.broadcast_to([1.0, 0.0, 0.0], (contacts, 3))
    blocks, values = normal_rows(centre, Contacts(face, face + 1, point, normal))
    M = spatial_inertia(np.ones(bodies), np.broadcast_to(np.eye(3) / 6, (bodies, 3, 3)))
    M[[0, -1]] *= np.diag([1.0, 100, 100, 100, 100, 100])
    v = 0.01 * rng.normal(size=(bodies, 6))
    v[1:-1, 2] -= GRAVITY * STEP
    v[[0, -1], 0] += np.array([1.0, -1.0]) * 10 * cubes * STEP
    v[[0, -1], 4] += rng.normal(size=2) * 0.05
    return Problem(M, values, v.ravel(), blocks)


def face_grid(number: NDArray[np.int64]) -> Array:
    """Points of a regular grid over the unit square, each three times; 12 give the corners."""
    distinct = number // 3
    side = max(2, int(np.ceil(np.sqrt(distinct.max(initial=0) + 1))))
    return np.column_stack([distinct % side, distinct // side]) / (side - 1) - 0.5


@dataclass(frozen=True)
class Leg:
    """A leg of three revolute joints: positions in the world, axes x, y, y."""

    joints: Array
    foot: Array

    def axes(self) -> Array:
        """Joint axes, (3, 3)."""
        return np.array([[1.0, 0, 0], [0, 1.0, 0], [0, 1.0, 0]])

    def centres(self) -> Array:
        """Centres of mass of the three links, (3, 3)."""
        return (self.joints + np.vstack([self.joints[1:], self.foot])) / 2


TRUNK = np.array([0.0, 0.0, 0.15])
TRUNK_MASS, LINK_MASSES, ARMATURE = 0.34, (0.10, 0.10, 0.05), 1e-4
FOOT_RADIUS = 0.02


def leg(side_x: float, side_y: float) -> Leg:
    """The leg at a corner of the trunk, bent, its foot on the ground."""
    mirror = np.array([side_x, side_y, 1.0])
    joints = mirror * [[0.10, 0.06, 0.15], [0.15, 0.07, 0.15], [0.19, 0.09, 0.08]]
    return Leg(joints, mirror * [0.12, 0.10, 0.01])


LEGS = (leg(1, 1), leg(-1, -1), leg(1, -1), leg(-1, 1))


def terrain(rng: np.random.Generator, bodies: int, contacts: int) -> Problem:
    """A robot with `bodies` legs steps onto bumpy ground; 0 legs: its trunk lands.

    The offsets are gaps over the step length: points not yet touching may still close in.
    """
    m = 6 + 3 * bodies
    limb = np.arange(contacts) % max(bodies, 1)
    reach = FOOT_RADIUS if bodies else 0.1
    patch = rng.uniform(-reach, reach, (contacts, 2))
    feet = np.array([each.foot for each in LEGS[:bodies]] or [TRUNK * [1, 1, 0]])
    point = feet[limb] + np.column_stack([patch, np.zeros(contacts)])
    normal = ground_normals(rng, point[:, :2], wavelength=2 * reach)
    N = np.zeros((contacts, m))
    N[:, :3], N[:, 3:6] = normal, np.cross(point - TRUNK, normal)
    for number, each in enumerate(LEGS[:bodies]):
        here = limb == number
        N[here, 6 + 3 * number : 9 + 3 * number] = joint_rows(each, point[here], normal[here])
    v = 0.2 * rng.normal(size=m)
    v[2] -= 0.4
    v[6:] *= 5
    gap = np.maximum(0.0, 5e-4 * rng.normal(size=contacts))
    return Problem(robot_inertia(LEGS[:bodies]), N, v, b=gap / STEP)


def joint_rows(leg: Leg, point: Array, normal: Array) -> Array:
    """Columns of the leg's joints in the rows of contacts at its foot, (n, 3)."""
    arm = point[:, None] - leg.joints
    return np.einsum("jk,njk->nj", leg.axes(), np.cross(arm, normal[:, None]))


def robot_inertia(legs: tuple[Leg, ...]) -> Array:
    """Joint-space inertia of a trunk with legs of point masses and geared motors."""
    m = 6 + 3 * len(legs)
    M = np.zeros((m, m))
    M[:3, :3] = TRUNK_MASS * np.eye(3)
    M[3:6, 3:6] = TRUNK_MASS * np.diag([0.0017, 0.0034, 0.0048])
    M[range(6, m), range(6, m)] += ARMATURE
    for number, each in enumerate(legs):
        for link, (mass, centre) in enumerate(zip(LINK_MASSES, each.centres(), strict=True)):
            J = np.zeros((3, m))
            J[:, :3], J[:, 3:6] = np.eye(3), -skew(centre - TRUNK)
            moving = slice(6 + 3 * number, 7 + 3 * number + link)
            J[:, moving] = np.cross(each.axes(), centre - each.joints)[: link + 1].T
            M += mass * J.T @ J
    return M


def skew(r: Array) -> Array:
    """Matrix of the cross product ``r x``."""
    return np.array([[0, -r[2], r[1]], [r[2], 0, -r[0]], [-r[1], r[0], 0]])


def ground_normals(rng: np.random.Generator, place: Array, wavelength: float) -> Array:
    """Normals of a height field of eight sine waves with slopes of about one third."""
    slope = np.zeros((len(place), 2))
    for _ in range(8):
        angle, phase = rng.uniform(0, 2 * np.pi, 2)
        wave = np.array([np.cos(angle), np.sin(angle)]) * rng.uniform(0.5, 1.5)
        slope += np.outer(np.cos(2 * np.pi / wavelength * place @ wave + phase), 0.15 * wave)
    normal = np.column_stack([-slope, np.ones(len(place))])
    return normal / np.linalg.norm(normal, axis=1, keepdims=True)


GENERATORS: dict[str, Callable[..., Problem]] = {
    "stack": stack,
    "tumble": tumble,
    "squeeze": squeeze,
    "terrain": terrain,
}
