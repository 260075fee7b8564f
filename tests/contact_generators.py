"""Random contact problems with Coulomb friction, by seed: `generate(4711)` is always the same one.

Families hold what makes contact hard: redundant contacts, wedges, stacks, masses that differ by a
million, joints with dependent or compliant rows, limits, dry friction, torsion and rolling, the
plane, coefficients that differ between S and T. Targets
are never above zero, so the law can be met as closely as one likes. Nothing is shared with
holdfast but the problem's class.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from holdfast import ContactProblem

Rng = np.random.Generator
WORLD = -1
GRAVITY = np.array([0.0, 0.0, -9.81])


@dataclass
class Scene:
    """Free bodies and the rows between them; a body has three linear and three angular speeds."""

    rng: Rng
    centre: np.ndarray  # (bodies, 3)
    blocks: np.ndarray  # (bodies, 6, 6)
    rows: dict[str, list[np.ndarray]] = field(default_factory=lambda: {k: [] for k in "NSTJRUD"})
    bodies: list[tuple[int, int]] = field(default_factory=list)
    R_contact: list[int] = field(default_factory=list)
    R_size: list[float] = field(default_factory=list)  # coefficient over that of the tangents [m]

    @property
    def m(self) -> int:
        """Number of coordinates."""
        return 6 * len(self.centre)

    def point_row(self, a: int, b: int, point: np.ndarray, axis: np.ndarray) -> np.ndarray:
        """Speed along an axis of a point of b, relative to a."""
        row = np.zeros((len(self.centre), 6))
        for body, sign in ((a, -1.0), (b, 1.0)):
            if body != WORLD:
                row[body, :3] += sign * axis
                row[body, 3:] += sign * np.cross(point - self.centre[body], axis)
        return row.ravel()

    def spin_row(self, a: int, b: int, axis: np.ndarray) -> np.ndarray:
        """Angular speed of b about an axis, relative to a."""
        row = np.zeros((len(self.centre), 6))
        for body, sign in ((a, -1.0), (b, 1.0)):
            if body != WORLD:
                row[body, 3:] += sign * axis
        return row.ravel()

    def touch(self, a: int, b: int, point: np.ndarray, axes: np.ndarray) -> None:
        """A contact that pushes b along the first of three axes."""
        for name, axis in zip("NST", axes, strict=True):
            self.rows[name].append(self.point_row(a, b, point, axis))
        self.bodies.append((a, b))

    def roll(self, contact: int, axes: np.ndarray, radii: np.ndarray) -> None:
        """Torsion, or torsion and rolling, of a contact."""
        a, b = self.bodies[contact]
        for axis, radius in zip(axes, radii, strict=False):
            self.rows["R"].append(self.spin_row(a, b, axis))
            self.R_contact.append(contact)
            self.R_size.append(float(radius))

    def hinge(self, a: int, b: int, point: np.ndarray, rows: int) -> None:
        """A ball joint (3 rows), a hinge (5), or a part of one."""
        axes = frame(self.rng)
        spins = [self.spin_row(a, b, axis) for axis in axes[1:]]
        every = [self.point_row(a, b, point, axis) for axis in np.eye(3)] + spins
        self.rows["J"] += every[:rows]

    def arrays(self, name: str) -> np.ndarray:
        """The rows of one kind."""
        return np.array(self.rows[name]).reshape(-1, self.m)


def frame(rng: Rng) -> np.ndarray:
    """Three orthonormal rows."""
    return np.linalg.qr(rng.normal(size=(3, 3)))[0].T


def upright(rng: Rng, normal: tuple[float, float, float] = (0.0, 0.0, 1.0)) -> np.ndarray:
    """Three orthonormal rows, the first given, the others turned at random."""
    rest = rng.normal(size=(2, 3))
    Q = np.linalg.qr(np.vstack([normal, rest]).T)[0].T
    return Q * np.sign(Q[0] @ np.array(normal))


def free_bodies(rng: Rng, count: int, decades: float = 1.0) -> Scene:
    """Boxes of random size, pose and mass."""
    blocks = np.zeros((count, 6, 6))
    for block in blocks:
        mass, (a, b, c) = 10.0 ** rng.uniform(-decades / 2, decades / 2), rng.uniform(0.2, 1.0, 3)
        axes = frame(rng)
        moments = mass / 3.0 * np.array([b * b + c * c, a * a + c * c, a * a + b * b])
        block[:3, :3] = mass * np.eye(3)
        block[3:, 3:] = axes.T @ np.diag(moments) @ axes
        block[3:, 3:] = (block[3:, 3:] + block[3:, 3:].T) / 2
    return Scene(rng, rng.normal(size=(count, 3)), blocks)


def random_pair(rng: Rng, count: int) -> tuple[int, int]:
    """Two bodies, or the world and a body."""
    b = int(rng.integers(count))
    a = int(rng.integers(-1, count))
    return (WORLD if a == b else a), b


def finish(scene: Scene, mu: np.ndarray | None = None, **more: np.ndarray) -> ContactProblem:
    """The problem of a scene: speeds, forces, gaps and coefficients at random."""
    rng, n, count = scene.rng, len(scene.bodies), len(scene.centre)
    v, f = motion(rng, scene)
    mu = coefficients(rng, n) if mu is None else mu
    contact = np.array(scene.R_contact, dtype=int)
    if len(contact):
        more["mu_R"] = np.reshape(mu, (n, -1)).max(axis=1)[contact] * scene.R_size
    return ContactProblem(
        M=scene.blocks if count > 1 else scene.blocks[0],
        v=v,
        f=f,
        h=0.01,
        **{name: scene.arrays(name) for name in "NSTJRUD"},
        R_contact=contact,
        c_N=gaps(rng, n),
        mu=mu,
        bodies=np.array(scene.bodies, dtype=int).reshape(-1, 2),
        **more,
    )


def motion(rng: Rng, scene: Scene) -> tuple[np.ndarray, np.ndarray]:
    """Speeds and forces: at rest under gravity, pushed along, or flying about."""
    m, kind = scene.m, rng.integers(4)
    v = np.zeros(m) if kind == 0 else rng.normal(size=m) * 10.0 ** rng.uniform(-3, 1)
    if kind == 1:
        v.reshape(-1, 6)[:] = np.r_[rng.normal(size=2), np.zeros(4)]
    weight = np.zeros((len(scene.centre), 6))
    weight[:, :3] = scene.blocks[:, :1, 0] * GRAVITY
    push = 0.0 if kind < 2 else weight[:, 2].mean() * rng.normal(size=weight.shape)
    return v, (weight + push).ravel()


def gaps(rng: Rng, n: int) -> np.ndarray:
    """Targets: all contacts touch, or some are open."""
    if rng.random() < 0.5:
        return np.zeros(n)
    return -rng.uniform(0.0, 0.3, n) * (rng.random(n) < 0.5)


def coefficients(rng: Rng, n: int) -> np.ndarray:
    """One coefficient for all, one for each, or one for each tangent; sometimes none."""
    kind = rng.integers(6)
    if kind == 0:
        shape = (n, 2) if rng.random() < 0.3 else n
        return rng.uniform(0.0, 1.5, shape) * (rng.random(shape) < 0.8)
    return np.full(n, (0.0, 0.05, 0.3, 0.7, 1.0, 2.0)[rng.integers(6) if kind == 1 else kind])


# --- families ---------------------------------------------------------------------------------


def scattered(rng: Rng, decades: float = 1.0) -> Scene:
    """Contacts anywhere, between any two."""
    count = int(rng.integers(1, 7))
    scene = free_bodies(rng, count, decades)
    for _ in range(int(rng.integers(1, 3 * count + 2))):
        scene.touch(*random_pair(rng, count), rng.normal(size=3), frame(rng))
    return scene


def free(rng: Rng) -> ContactProblem:
    """Free bodies."""
    return finish(scattered(rng))


def wedged(rng: Rng) -> ContactProblem:
    """Bodies between walls that face each other, or nearly, and in grooves."""
    count = int(rng.integers(1, 4))
    scene = free_bodies(rng, count)
    for body in range(count):
        tilt = rng.choice([0.0, 1e-6, 0.05, 0.3])
        for _ in range(int(rng.integers(1, 4))):
            normal, side = frame(rng)[0], rng.normal(size=3)
            other = -normal + tilt * side
            for axis in (normal, other / np.linalg.norm(other)):
                point = scene.centre[body] - axis * rng.uniform(0.2, 1.0) + 0.1 * rng.normal(size=3)
                against = WORLD if rng.random() < 0.7 or count == 1 else (body + 1) % count
                scene.touch(against, body, point, upright(rng, tuple(axis)))
    return finish(scene, mu=np.full(len(scene.bodies), rng.choice([0.1, 0.5, 1.0, 2.0])))


def duplicated(rng: Rng) -> ContactProblem:
    """Contacts listed several times, exactly or nearly, and faces with many points."""
    scene = scattered(rng)
    rows, pairs = scene.rows, scene.bodies
    first = len(pairs)
    for _ in range(int(rng.integers(1, 3))):
        noise = rng.choice([0.0, 0.0, 1e-12, 1e-7])
        for k in range(first):
            for name in "NST":
                rows[name].append(rows[name][k] * (1.0 + noise * rng.normal(size=scene.m)))
            pairs.append(pairs[k])
    a, b = random_pair(rng, len(scene.centre))
    axes, point = frame(rng), rng.normal(size=3)
    for _ in range(int(rng.integers(3, 9))):
        scene.touch(a, b, point + rng.uniform(-1, 1, 2) @ axes[1:], axes)
    return finish(scene)


def piled(rng: Rng, decades: float) -> Scene:
    """Boxes on top of each other, four points each."""
    count = int(rng.integers(2, 9))
    scene = free_bodies(rng, count, decades)
    scene.centre[:] = np.column_stack([0.1 * rng.normal(size=(count, 2)), np.arange(count) + 0.5])
    for body in range(count):
        turn = upright(rng)
        for x, y in ((-1, -1), (-1, 1), (1, -1), (1, 1)):
            middle = scene.centre[body] - np.array([0.0, 0.0, 0.5])
            corner = middle + 0.4 * (x * turn[1] + y * turn[2])
            scene.touch(body - 1, body, corner, upright(rng))
    return scene


def stacks(rng: Rng) -> ContactProblem:
    """Stacks, at rest, kicked or pushed."""
    return finish(piled(rng, 0.5))


def ratios(rng: Rng) -> ContactProblem:
    """Masses that differ by up to a million."""
    return finish(piled(rng, 6.0) if rng.random() < 0.5 else scattered(rng, 6.0))


def linked(rng: Rng) -> Scene:
    """A chain of bodies with joints, perhaps held at an end, rows perhaps dependent."""
    count = int(rng.integers(2, 7))
    scene = free_bodies(rng, count)
    scene.centre[:] = np.column_stack([np.arange(count), 0.2 * rng.normal(size=(count, 2))])
    rows = int(rng.choice([3, 5]))
    for body in range(0 if rng.random() < 0.4 else 1, count):
        middle = scene.centre[body] - np.array([0.5, 0.0, 0.0])
        scene.hinge(body - 1, body, middle, rows)
    if rng.random() < 0.3:  # closed to a ring
        scene.hinge(count - 1, 0, rng.normal(size=3), 3)
    J = scene.rows["J"]
    if J and rng.random() < 0.3:
        J += list(rng.normal(size=(2, len(J))) @ np.array(J))
    for body in range(count):
        for _ in range(int(rng.integers(0, 3))):
            point = scene.centre[body] + 0.3 * rng.normal(size=3)
            scene.touch(WORLD, body, point, upright(rng))
    if not scene.bodies:
        scene.touch(WORLD, 0, scene.centre[0], upright(rng))
    return scene


def chains(rng: Rng) -> ContactProblem:
    """Chains with joints, now and then compliant ones."""
    scene = linked(rng)
    j = len(scene.rows["J"])
    if rng.random() < 0.7:
        return finish(scene)
    soft = 10.0 ** rng.uniform(-6, 0, j) * (rng.random(j) < 0.7)
    return finish(scene, compliance_J=soft)


def add_limits(scene: Scene) -> np.ndarray:
    """Rows of limits between bodies that turn, and their targets."""
    rng, count = scene.rng, len(scene.centre)
    for _ in range(int(rng.integers(1, 5))):
        scene.rows["U"].append(scene.spin_row(*random_pair(rng, count), frame(rng)[0]))
    if rng.random() < 0.3:  # from both sides
        scene.rows["U"].append(-scene.rows["U"][0])
    u = len(scene.rows["U"])
    return -rng.uniform(0.0, 1.0, u) * (rng.random(u) < 0.5)


def add_dry(scene: Scene) -> np.ndarray:
    """Rows with dry friction, and their bounds."""
    rng, count = scene.rng, len(scene.centre)
    for _ in range(int(rng.integers(1, 6))):
        scene.rows["D"].append(scene.spin_row(*random_pair(rng, count), frame(rng)[0]))
    d = len(scene.rows["D"])
    return 10.0 ** rng.uniform(-4, 0, d) * (rng.random(d) < 0.9)


def add_rolling(scene: Scene) -> None:
    """Torsion at some contacts, rolling at others."""
    rng = scene.rng
    for contact in range(len(scene.bodies)):
        kind = rng.integers(3)
        if kind:
            normal = np.reshape(scene.rows["N"][contact], (-1, 6))[scene.bodies[contact][1], :3]
            radii = 10.0 ** rng.uniform((-2, -4, -4), (0, -1, -1))
            scene.roll(contact, upright(rng, tuple(normal))[: 1 if kind == 1 else 3], radii)


def limits(rng: Rng) -> ContactProblem:
    """Limits."""
    scene = linked(rng) if rng.random() < 0.5 else scattered(rng)
    target = add_limits(scene)
    return finish(scene, c_U=target)


def dry(rng: Rng) -> ContactProblem:
    """Dry friction of joints."""
    scene = linked(rng) if rng.random() < 0.5 else scattered(rng)
    bound = add_dry(scene)
    return finish(scene, D_bound=bound)


def rolling(rng: Rng) -> ContactProblem:
    """Torsion and rolling."""
    scene = piled(rng, 0.5) if rng.random() < 0.5 else scattered(rng)
    add_rolling(scene)
    return finish(scene)


def mixed(rng: Rng) -> ContactProblem:
    """Everything at once."""
    scene = linked(rng)
    target, bound = add_limits(scene), add_dry(scene)
    add_rolling(scene)
    return finish(scene, c_U=target, D_bound=bound)


def planar(rng: Rng) -> ContactProblem:
    """Bodies in the plane: two linear speeds and a spin each, one tangent."""
    count = int(rng.integers(1, 6))
    centre, m = rng.normal(size=(count, 2)), 3 * count
    mass = 10.0 ** rng.uniform(-1, 1, count)
    blocks = mass[:, None, None] * np.array(
        [np.diag([1.0, 1.0, x]) for x in 0.2 + rng.random(count)]
    )
    N, S = [], []
    for _ in range(int(rng.integers(1, 3 * count + 2))):
        a, b = random_pair(rng, count)
        angle, point = rng.uniform(0, 2 * np.pi), rng.normal(size=2)
        normal = np.array([np.cos(angle), np.sin(angle)])
        for rows, (x, y) in ((N, normal), (S, (-normal[1], normal[0]))):
            row = np.zeros((count, 3))
            for body, sign in ((a, -1.0), (b, 1.0)):
                if body != WORLD:
                    arm = point - centre[body]
                    row[body] += sign * np.array([x, y, arm[0] * y - arm[1] * x])
            rows.append(row.ravel())
    n = len(N)
    f = np.zeros((count, 3))
    f[:, 1] = -9.81 * mass
    return ContactProblem(
        M=blocks if count > 1 else blocks[0], v=rng.normal(size=m), f=f.ravel(), h=0.01, N=N, S=S,
        c_N=gaps(rng, n), mu=coefficients(rng, n),
    )  # fmt: skip


def generalized(rng: Rng) -> ContactProblem:
    """A robot in coordinates of its own: dense inertia, rows without structure, limits."""
    m = int(rng.integers(2, 25))
    A = rng.normal(size=(m, m)) * 10.0 ** rng.uniform(-1, 1, m)
    M = A @ A.T + 10.0 ** rng.uniform(-3, 0) * np.eye(m)
    n, u = int(rng.integers(1, m + 6)), int(rng.integers(0, m // 2 + 1))
    N, S, T = rng.normal(size=(3, n, m)) * (rng.random((n, m)) < rng.uniform(0.3, 1.0))
    sign = rng.choice([-1.0, 1.0], u)
    U = sign[:, None] * np.eye(m)[rng.choice(m, u, replace=False)]
    d = int(rng.integers(0, 4))
    D, bound = np.eye(m)[rng.integers(0, m, d)], 10.0 ** rng.uniform(-3, 0, d)
    return ContactProblem(
        M=(M + M.T) / 2, v=rng.normal(size=m), N=N, S=S, T=T, U=U, D=D, D_bound=bound,
        c_N=gaps(rng, n), c_U=gaps(rng, u), mu=coefficients(rng, n),
    )  # fmt: skip


FAMILIES: dict[str, Callable[[Rng], ContactProblem]] = {
    "free": free,
    "wedged": wedged,
    "duplicated": duplicated,
    "stacks": stacks,
    "mass ratios": ratios,
    "chains": chains,
    "limits": limits,
    "dry": dry,
    "rolling": rolling,
    "planar": planar,
    "generalized": generalized,
    "mixed": mixed,
}


def family(seed: int) -> str:
    """The family of a seed: they take turns."""
    return list(FAMILIES)[seed % len(FAMILIES)]


def generate(seed: int) -> ContactProblem:
    """The problem of a seed."""
    return FAMILIES[family(seed)](np.random.default_rng([seed, 2024]))
