"""Parts of the event-driven simulation against dense, obvious references."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import holdfast as hf
from event_scenes import BALL, load
from holdfast.events.contact_set import STEADY, Listing, sort_contacts
from holdfast.events.state import Probe
from holdfast.events.sustained import difference_quotients
from holdfast.events.time_of_impact import TURN, apart

TREE = """
<body pos="0 0 2"><freejoint/><geom size=".1"/>
  <body pos=".3 0 0"><joint axis="0 1 0"/><geom type="capsule" size=".05 .2" pos=".1 0 .2"/>
    <body pos="0 .4 0"><joint type="ball"/><geom type="box" size=".1 .2 .1" pos="0 .2 .1"/></body>
  </body>
</body>
<body pos="3 0 2"><joint type="slide" axis="1 0 1"/><geom size=".1"/></body>"""


def probe_of(model: mujoco.MjModel, data: mujoco.MjData) -> Probe:
    probe = hf.EventDriven(model)._probe
    probe.follow(data)
    return probe


def test_speeds_of_geoms() -> None:
    model, data = load(TREE)
    rng = np.random.default_rng(0)
    mujoco.mj_integratePos(model, data.qpos, rng.normal(size=model.nv), 1.0)
    data.qvel[:] = rng.normal(size=model.nv)
    mujoco.mj_forward(model, data)
    probe = probe_of(model, data)
    velocity, spin = probe.geom_speeds(probe.state())
    both = np.empty(6)
    for g in range(model.ngeom):
        mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_GEOM, g, both, 0)
        np.testing.assert_allclose(spin[g], both[:3], atol=1e-13)
        np.testing.assert_allclose(velocity[g], both[3:], atol=1e-13)


@pytest.mark.parametrize("integrator", ["Euler", "implicitfast"])
def test_damping_is_taken_implicitly(integrator: str) -> None:
    """The matrix of a step is ``M - h df/dv``, symmetric; here by differences."""
    coupled = ('<tendon><fixed damping="2"><joint joint="a" coef="1"/><joint joint="b" coef="-.5"/>'
               "</fixed></tendon>") if integrator == "implicitfast" else ""  # fmt: skip
    model, data = load(
        '<body><joint name="a" type="slide" damping=".5"/><geom size=".1" mass="2"/>'
        '<body pos="1 0 0"><joint name="b" type="slide" axis="1 0 0" damping=".3"/>'
        '<geom size=".1" mass="1"/></body></body>',
        option=f'gravity="0 0 0" integrator="{integrator}"', floor="", extra=coupled,
    )  # fmt: skip
    if integrator == "Euler":
        model.dof_dampingpoly[:] = [[0.7, 0.2], [0.0, 0.4]]
    data.qvel[:] = [0.8, -1.3]
    probe, h, step = probe_of(model, data), 0.01, 1e-5
    state = probe.state()
    probe.look(state)
    found = probe.implicit(h)
    forces = []
    for k in range(4):
        shift = step * (-1) ** k * np.eye(2)[k // 2]
        probe.look(state._replace(qvel=state.qvel + shift))
        forces.append(probe.smooth().f)
    slope = np.column_stack([forces[0] - forces[1], forces[2] - forces[3]]) / (2.0 * step)
    probe.look(state)
    np.testing.assert_allclose(found.A, probe.smooth().M - h * slope, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(found.f, probe.smooth().f, rtol=1e-12)


def circle_approach(radius: float, depth: float) -> float:
    """Slope of a circle where it is so high above its lowest point."""
    x = np.sqrt(2.0 * radius * depth - depth**2)
    return x / (radius - depth)


def test_grazing_is_no_impact() -> None:
    """A ball that slides past an edge approaches it by its own curvature, the faster the smaller.

    That is no impact while the gap is below the touching distance.
    """
    model, data = load(BALL.replace("1.1", ".1000001"))
    data.qvel[:2] = [3.0, 4.0]
    simulation = hf.EventDriven(model)
    simulation._probe.follow(data)
    state = simulation._probe.state()
    simulation._probe.widen(state)
    listed = simulation._probe.list(state)
    slow, still = simulation._slow(listed, state.qvel), simulation._slow(listed, 0.0 * state.qvel)
    assert len(slow) == 1 and still[0] > 0.0
    graze = 5.0 * circle_approach(0.1, simulation._touch)
    assert slow[0] - still[0] == pytest.approx(graze, rel=1e-6)


def listing_of(
    points: np.ndarray, normals: np.ndarray, pair: np.ndarray, gap: np.ndarray
) -> Listing:
    n = len(points)
    numbers = np.zeros((7, n), dtype=np.int64)
    numbers[1], numbers[3], numbers[4] = np.arange(n), pair, pair + 10
    nothing = np.zeros(0)
    lengths = np.array([gap, *np.zeros((4, n))])
    place = np.column_stack([points, normals])
    return Listing(np.zeros((n, 1)), 0, nothing, nothing, nothing, numbers, lengths, place, 1.0)


def matched(one: Listing, other: Listing) -> np.ndarray:
    """The nearest contact of the same pair that is not taken, smallest gaps first."""
    where, extent = np.full(len(one), -1), np.ptp(one.place[:, :3], axis=0).max()
    for i in np.argsort(one.gap, kind="stable"):
        far = np.abs(one.place[i, :3] - other.place[:, :3]).max(axis=1)
        far += extent * np.abs(one.place[i, 3:] - other.place[:, 3:]).max(axis=1)
        far[(one.geoms[i] != other.geoms).any(axis=1)] = np.inf
        far[where[where >= 0]] = np.inf
        if len(far) and far.min() < np.inf:
            where[i] = far.argmin()
    return where


@pytest.mark.parametrize("kind", ["a little", "one of them far", "in a cluster", "far", "others"])
def test_contacts_are_found_again(kind: str) -> None:
    for seed in range(400):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 6))
        pair = np.sort(rng.integers(0, 2, n))
        points, gap = rng.normal(size=(n, 3)), rng.random(n)
        if kind == "in a cluster":
            points *= rng.choice([0.03, 1.0], n)[:, None]
        normals = np.tile([0.0, 0.0, 1.0], (n, 1))
        one = listing_of(points, normals, pair, gap)
        moved = points + 0.01 * STEADY * rng.normal(size=(n, 3))
        if kind == "one of them far":
            k = int(rng.integers(n))
            moved[k] += 3.0 * rng.normal(size=3)
        elif kind == "in a cluster":
            moved = points + 1e-4 * rng.normal(size=(n, 3))
            moved[int(rng.integers(n))] += 0.1 * rng.normal(size=3)
        elif kind == "far":
            moved = rng.normal(size=(n, 3))
        elif kind == "others":
            some = rng.random(n) < 0.7
            moved, normals, pair = moved[some], normals[some], pair[some]
        other = listing_of(moved, normals, pair, np.zeros(len(moved)))
        np.testing.assert_array_equal(one.match(other), matched(one, other), err_msg=str(seed))


def test_each_contact_is_listed_once() -> None:
    """Points of a pair at one place with one normal are one contact: the nearest of them."""
    for seed in range(100):
        rng = np.random.default_rng(seed)
        n, limits = int(rng.integers(1, 8)), int(rng.integers(0, 3))
        found = np.zeros((7, n), dtype=np.int64)
        found[0], found[3] = rng.permutation(n), np.sort(rng.integers(0, 2, n))
        found[4], distances = found[3] + 5, rng.random((5, n))
        pos = rng.integers(0, 2, (n, 3)) + 1e-6 * rng.random((n, 3))
        frame = np.zeros((n, 9))
        frame[np.arange(n), rng.integers(0, 2, n)] = 1.0
        kind, which = np.zeros((2, 2 + limits), dtype=np.int32)
        which[2:] = [4, 4, 7][:limits]
        where = np.arange(2.0 + limits)
        numbers, lengths = np.full((7, n + limits), -9), np.full((5, n + limits), np.nan)
        place = np.full((n + limits, 6), np.nan)
        count = sort_contacts(found, distances, pos, frame, kind, which, where, numbers, lengths,
                              place, n, 2, limits, 1e-4)  # fmt: skip
        best: dict[tuple[int, ...], int] = {}  # contacts at one place
        for i in range(n):
            at = found[0, i]
            name = (*found[3:5, i], *np.round(pos[at]).astype(int), *frame[at, :3].astype(int))
            if name not in best or distances[0, i] < distances[0, best[name]]:
                best[name] = i
        kept = list(best.values())
        assert count == len(kept) + limits
        np.testing.assert_array_equal(numbers[:, : len(kept)], found[:, kept])
        np.testing.assert_array_equal(lengths[:, : len(kept)], distances[:, kept])
        np.testing.assert_array_equal(place[: len(kept), :3], pos[found[0, kept]])
        np.testing.assert_array_equal(numbers[1, len(kept) : count], 2 + np.arange(limits))
        np.testing.assert_array_equal(numbers[4, len(kept) : count], -1 - which[2:])
        np.testing.assert_array_equal(lengths[0, len(kept) : count], where[2:])
        assert not lengths[1:, len(kept) : count].any()
        np.testing.assert_array_equal(place[len(kept) : count, 0], [0.0, 1.0, 0.0][:limits])


def stay_apart(starts: np.ndarray, ends: np.ndarray, where: list[int], h: float = 0.1) -> bool:
    """`apart` for gaps and speeds at both ends, (n, 2) each; all contacts are free."""
    places = [np.tile([0.0, 0.0, 0.0, 0.0, 0.0, 1.0], (len(x), 1)) for x in (starts, ends)]
    free = [np.ones(len(x), dtype=bool) for x in (starts, ends)]
    a, b = (np.ascontiguousarray(x.reshape(-1, 2).T) for x in (starts, ends))
    return apart(a[0], a[1], places[0], free[0], b[0], b[1], places[1], free[1],
                 np.array(where, dtype=np.int64), h, 1e-10)  # fmt: skip


NONE = np.zeros((0, 2))


def test_a_gap_that_bends_one_way_is_never_overlooked() -> None:
    """Constant acceleration: what dips below the surface on the way is not taken for open."""
    seen = set()
    for seed in range(400):
        rng = np.random.default_rng(seed)
        h, n = 0.1, int(rng.integers(1, 4))
        gap, speed, a = rng.random(n), 20.0 * rng.normal(size=n), 200.0 * rng.normal(size=n)
        t = np.linspace(0.0, h, 2001)[:, None]
        lowest = (gap + speed * t + 0.5 * a * t**2).min()
        order = rng.permutation(n)
        ends = np.column_stack([gap + speed * h + 0.5 * a * h**2, speed + a * h])[order]
        answer = stay_apart(np.column_stack([gap, speed]), ends, np.argsort(order).tolist(), h)
        assert not (answer and lowest < -1e-6), seed
        if (speed >= 0.0).all() and (a >= 0.0).all():
            assert answer  # all of them leave all the way
        seen.add((answer, bool(lowest < 0.0)))
    assert seen >= {(True, False), (False, True)}


@pytest.mark.parametrize(
    ("starts", "ends", "stays"),
    [
        ([[0.1, 1.0]], NONE, True),  # it has left
        ([[0.1, -1.0]], NONE, False),  # it was coming, and is not there: who knows
        (NONE, [[0.1, -1.0]], True),  # it is still coming
        (NONE, [[0.1, 1.0]], False),  # it came and leaves again: who knows how near it was
        (NONE, [[-0.1, -1.0]], False),
        (NONE, NONE, True),
    ],
)
def test_contacts_that_are_listed_at_one_end_alone(
    starts: object, ends: object, stays: bool
) -> None:
    a, b = np.array(starts, dtype=float), np.array(ends, dtype=float)
    assert stay_apart(a, b, [-1] * len(a)) == stays


def test_other_features_are_not_compared() -> None:
    """A normal that has turned belongs to another face."""
    place = np.array([[0.0, 0.0, 0.0, 0.0, 0.0, 1.0]])
    turned = np.array([[0.0, 0.0, 0.0, 2.0 * TURN, 0.0, 1.0]])
    one, free, where = np.array([0.1]), np.array([True]), np.array([0])
    for there, stays in ((place, True), (turned, False)):
        assert apart(one, one, place, free, one, one, there, free, where, 0.1, 1e-10) == stays


def test_rates_by_differences() -> None:
    """Both sides if they agree; the smaller one at a jump; the one that is there; else nothing."""
    span, here = 1e-3, np.zeros(5)
    forward, backward = np.array([1.0, 1.0, 2.0, 3.0, 5.0]), np.array([3.0, 1e6, 7.0, 4.0, 6.0])
    found = np.array([[True, True, True, False, False], [True, True, False, True, False]])
    rates = np.full(5, np.nan)
    difference_quotients(
        here, np.array([span * forward, -span * backward]), found, rates, span, 1.0
    )
    np.testing.assert_allclose(rates, [2.0, 1.0, 2.0, 4.0, 0.0], rtol=1e-12)
