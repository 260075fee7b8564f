"""Coulomb's law: closed forms, and laws that hold for every problem."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import holdfast as hf
from contact_cases import (
    Fields,
    body_fields,
    contact_fields,
    in_units,
    motion_distance,
    pick,
    with_extras,
)
from holdfast import ContactProblem, ContactSolution, Coulomb
from reference import coulomb_fixed_point, coulomb_motions, inertia, solution_residual

GRAVITY = 9.81
CERTIFICATE = 1e-10
SLIDING = 1e-9  # the law holds to 1e-12 in each step; this is what adds up in 100 of them
X, Y, Z = np.eye(3)
OPEN, STICK, SLIDE = range(3)


def touching(points: Any, frame: Any = (Z, X, Y)) -> Fields:
    """Rows of a rigid body about its centre, in contact at these points."""
    return {
        name: np.array([np.concatenate([axis, np.cross(point, axis)]) for point in points])
        for name, axis in zip("NST", frame, strict=True)
    }


def slope(degrees: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Normal and tangents of a slope that falls towards X."""
    angle = np.radians(degrees)
    down = np.cos(angle) * X - np.sin(angle) * Z
    return np.cross(down, Y), down, Y


def corners(frame: Any = (Z, X, Y), half: float = 0.1) -> list[np.ndarray]:
    normal, first, second = frame
    signs = [(a, b) for a in (-1, 1) for b in (-1, 1)]
    return [half * (a * first + b * second - normal) for a, b in signs]


def box(mass: float = 1.0, half: float = 0.1) -> np.ndarray:
    moment = mass * (2.0 * half) ** 2 / 6.0
    return np.diag([mass] * 3 + [moment] * 3)


def linear(v: np.ndarray) -> np.ndarray:
    return np.concatenate([v, np.zeros(3)])


def march(fields: Fields, steps: int, model: Coulomb | None = None) -> list[ContactSolution]:
    """Steps with the same contacts, each certified by the solution itself."""
    model, solutions = model or Coulomb(), []
    for _ in range(steps):
        solution = model.solve(ContactProblem(**fields))
        assert solution.is_exact(CERTIFICATE)
        fields = fields | {"v": solution.velocity}
        solutions.append(solution)
    return solutions


# --- closed forms -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("degrees", "speed"),
    [(20.0, 0.0), (np.degrees(np.arctan(0.5)), 0.0), (30.0, 0.657145)],
)
def test_box_on_a_slope(degrees: float, speed: float) -> None:
    """It stays up to the friction angle, and above slides with g (sin - mu cos)."""
    frame = slope(degrees)
    fields = {"M": box(), "v": np.zeros(6), "f": linear(-GRAVITY * Z), "h": 0.01, "mu": 0.5,
              **touching(corners(frame), frame)}  # fmt: skip
    last = march(fields, 100)[-1]
    assert last.velocity[:3] @ frame[1] == pytest.approx(speed, abs=1e-6)
    angle = np.radians(degrees)
    exact = max(0.0, GRAVITY * (np.sin(angle) - 0.5 * np.cos(angle)))
    # exactly at the friction angle the motion is off by more than the residual
    at_limit = degrees == pytest.approx(26.565, abs=0.1)
    exact_to = 1e-8 if at_limit else SLIDING
    np.testing.assert_allclose(last.velocity, linear(exact * frame[1]), rtol=0, atol=exact_to)
    if not at_limit:
        assert (last.state[last.normal > 1e-9] == (SLIDE if speed else STICK)).all()


@pytest.mark.parametrize("heading", [0.0, 10.0, 45.0, 123.0, 270.0])
def test_box_that_slides_keeps_its_heading_and_stops(heading: float) -> None:
    """The speed falls by mu g h in each step, and then is zero."""
    along = np.cos(np.radians(heading)) * X + np.sin(np.radians(heading)) * Y
    fields = {"M": box(), "v": linear(along), "f": linear(-GRAVITY * Z), "h": 0.01, "mu": 0.3,
              **touching(corners())}  # fmt: skip
    solutions = march(fields, 36)
    for k, solution in enumerate(solutions, start=1):
        speed = max(0.0, 1.0 - 0.3 * GRAVITY * 0.01 * k)
        np.testing.assert_allclose(solution.velocity, linear(speed * along), rtol=0, atol=SLIDING)
        if speed:
            assert (solution.state[solution.normal > 1e-9] == SLIDE).all()
    assert (solutions[-1].state == STICK).all()
    lost = sum(np.sum(solution.dissipation()) for solution in solutions)
    assert lost == pytest.approx(0.5, rel=1e-12)  # all of its kinetic energy


@pytest.mark.parametrize("count", [3, 4, 7, 12])
def test_spinning_ring(count: int) -> None:
    """Friction at n points of a ring brakes its spin by mu m g R h / I."""
    mass, radius, moment, h, mu = 2.0, 0.3, 0.05, 0.01, 0.4
    angles = 2.0 * np.pi * np.arange(count) / count
    points = [radius * (np.cos(a) * X + np.sin(a) * Y) for a in angles]
    fields = {"M": np.diag([mass] * 3 + [moment] * 3), "v": 8.0 * np.eye(6)[5], "h": h, "mu": mu,
              "f": linear(-mass * GRAVITY * Z), **touching(points)}  # fmt: skip
    rate = mu * mass * GRAVITY * radius * h / moment
    for k, solution in enumerate(march(fields, 5), start=1):
        np.testing.assert_allclose(
            solution.velocity, (8.0 - k * rate) * np.eye(6)[5], rtol=0, atol=8.0 * SLIDING
        )


@pytest.mark.parametrize("spin", [(0.0, 0.0), (30.0, 0.0), (-20.0, 45.0)])
def test_billiard_ball(spin: tuple[float, float]) -> None:
    """It slides, then rolls with 5/7 v0 + 2/7 R (w_y, -w_x)."""
    mass, radius = 0.2, 0.03
    v = np.array([1.5, -0.7, 0.0, spin[0], spin[1], 0.0])
    fields = {"M": np.diag([mass] * 3 + [0.4 * mass * radius**2] * 3), "v": v, "h": 0.005,
              "f": linear(-mass * GRAVITY * Z), "mu": 0.2, **touching([-radius * Z])}  # fmt: skip
    solutions = march(fields, 250)
    exact = 5 / 7 * v[:2] + 2 / 7 * radius * np.array([spin[1], -spin[0]])
    np.testing.assert_allclose(solutions[-1].velocity[:2], exact, rtol=0, atol=1e-10)
    assert solutions[0].state[0] == SLIDE and solutions[-1].state[0] == STICK


@pytest.mark.parametrize(
    ("force", "height", "does"),
    [(0.4, 0.0, "stays"), (0.6, -0.05, "slides"), (0.45, 0.1, "tips"), (0.6, 0.1, "tips")],
)
def test_pushed_box(force: float, height: float, does: str) -> None:
    """Pushed with a part of its weight, at a height over its centre; mu = 0.5, half a side 0.1."""
    weight, half = GRAVITY, 0.1
    if does == "tips":
        half = 0.04  # a tower
    points = [np.array([x, y, -0.1]) for x in (-half, half) for y in (-half, half)]
    push = force * weight
    f = np.array([push, 0.0, -weight, 0.0, push * height, 0.0])
    fields = {"M": box(), "v": np.zeros(6), "f": f, "h": 0.01, "mu": 0.5, **touching(points)}
    solution = march(fields, 1)[0]
    v, turns = solution.velocity[0], solution.velocity[4]
    if does == "stays":
        np.testing.assert_allclose(solution.velocity, 0.0, atol=1e-10)
    elif does == "slides":
        assert v == pytest.approx((push - 0.5 * weight) * 0.01, abs=1e-12)
        assert abs(turns) <= 1e-10
    else:
        assert push * (height + 0.1) > weight * half  # the moment about the front edge
        assert turns > 1e-3 and (solution.normal[:2] == 0.0).all()


@pytest.mark.parametrize("mu", [0.0, 0.2, 0.5, 1.0, 5.0])
def test_oblique_impact(mu: float) -> None:
    """A point that lands at v_N keeps max(0, v_T - mu v_N)."""
    v = np.array([1.2, -0.9, -2.0])
    problem = ContactProblem(M=3.0 * np.eye(3), v=v, N=[Z], S=[X], T=[Y], mu=mu)
    solution = Coulomb().solve(problem)
    speed = max(0.0, 1.5 - mu * 2.0)
    np.testing.assert_allclose(solution.velocity, [0.8 * speed, -0.6 * speed, 0.0], atol=1e-11)
    assert solution.normal_impulse[0] == pytest.approx(6.0, rel=1e-11)
    assert solution.state[0] == (SLIDE if speed else STICK)


@pytest.mark.parametrize("beta", [20.0, 45.0])
@pytest.mark.parametrize("gamma", [25.0, 40.0, 60.0])
def test_v_groove(beta: float, gamma: float) -> None:
    """With sides at beta a point slides with g (sin gamma - mu cos gamma / cos beta)."""
    mu, b, c = 0.4, np.radians(beta), np.radians(gamma)
    sides = [np.array([0.0, s * np.sin(b), np.cos(b)]) for s in (-1.0, 1.0)]
    across = [np.array([0.0, np.cos(b), -s * np.sin(b)]) for s in (-1.0, 1.0)]
    g = GRAVITY * np.array([np.sin(c), 0.0, -np.cos(c)])
    problem = ContactProblem(
        M=0.7 * np.eye(3), v=np.zeros(3), f=0.7 * g, h=0.1, N=sides, S=[X, X], T=across, mu=mu
    )
    solution = Coulomb().solve(problem)
    speed = 0.1 * max(0.0, GRAVITY * (np.sin(c) - mu * np.cos(c) / np.cos(b)))
    np.testing.assert_allclose(solution.velocity, [speed, 0.0, 0.0], atol=1e-11)


def rope(mu: float, wrap: float, nodes: int, pull: float) -> ContactProblem:
    """A rope around a drum, pulled with 1 N at one end and with `pull` at the other."""
    step = wrap / nodes
    at = step * (np.arange(nodes) + 0.5)
    outward = np.column_stack([np.sin(at), np.cos(at)])
    along = np.column_stack([np.cos(at), -np.sin(at)])
    m = 2 * nodes
    N, S, J = np.zeros((nodes, m)), np.zeros((nodes, m)), np.zeros((nodes - 1, m))
    for i in range(nodes):
        N[i, 2 * i : 2 * i + 2], S[i, 2 * i : 2 * i + 2] = outward[i], along[i]
    chord = [np.array([np.cos(a), -np.sin(a)]) for a in step * np.arange(nodes + 1)]
    for i in range(nodes - 1):
        J[i, 2 * i : 2 * i + 2], J[i, 2 * i + 2 : 2 * i + 4] = -chord[i + 1], chord[i + 1]
    f = np.zeros(m)
    f[:2] -= chord[0]
    f[-2:] += pull * chord[-1]
    return ContactProblem(M=0.01 * np.eye(m), v=np.zeros(m), f=f, h=0.01, N=N, S=S, J=J, mu=mu)


@pytest.mark.parametrize("nodes", [4, 16, 40])
@pytest.mark.parametrize("mu", [0.2, 0.5])
def test_capstan(mu: float, nodes: int) -> None:
    """A rope slips where its tensions differ by more than exp(mu phi), for many nodes."""
    wrap = 0.5 * np.pi
    tangent = mu * np.tan(0.5 * wrap / nodes)
    ratio = ((1.0 + tangent) / (1.0 - tangent)) ** nodes
    assert ratio == pytest.approx(np.exp(mu * wrap), rel=1.0 / nodes**2)
    holds, slips = (Coulomb().solve(rope(mu, wrap, nodes, x * ratio)) for x in (0.999, 1.001))
    np.testing.assert_allclose(holds.velocity, 0.0, atol=1e-11)
    assert (slips.sliding[:, 0] > 0.0).all() and (slips.state == SLIDE).all()
    assert holds.is_exact(CERTIFICATE) and slips.is_exact(CERTIFICATE)


def test_names() -> None:
    assert Coulomb().mu is None
    assert hf.coulomb(0.6).mu == 0.6 and hf.coulomb().mu is None


# --- against other ways to the answer -----------------------------------------------------------


def rod(angle: float, v: Any) -> Fields:
    """Painlevé's rod: 1 m, 1 kg, its lower tip on the floor."""
    tip = -0.5 * np.array([np.cos(angle), np.sin(angle)])
    return {"M": np.diag([1.0, 1.0, 1.0 / 12.0]), "v": np.array(v, dtype=float),
            "N": np.array([[0.0, 1.0, tip[0]]]), "S": np.array([[1.0, 0.0, -tip[1]]])}  # fmt: skip


@pytest.mark.parametrize("mu", [0.3, 1.0, 4.0 / 3.0, 2.0, 3.0])
@pytest.mark.parametrize("angle", [20.0, 45.0, 63.0, 85.0, 120.0])
@pytest.mark.parametrize("v", [(-1.0, 0.0, 0.0), (-1.0, -0.5, 0.0), (1.0, -0.1, 2.0), (-3.0, 0, 1)])
def test_painleve_rod(angle: float, mu: float, v: Any) -> None:
    """Impulses exist for every coefficient, and are among those that enumeration finds."""
    fields = rod(np.radians(angle), v)
    fields["v"] = fields["v"] - np.array([0.0, 9.81e-3, 0.0])
    solution = Coulomb(mu=mu).solve(ContactProblem(**fields))
    assert solution.is_exact(CERTIFICATE)
    motions = coulomb_motions(**fields, mu=np.array([mu]))
    assert min(np.abs(solution.velocity - x).max() for x in motions) <= 1e-9


@given(st.integers(0, 2**32 - 1), st.integers(1, 3), st.sampled_from([0.1, 0.5, 1.0]))
def test_agrees_with_enumeration_in_the_plane(seed: int, n: int, mu: float) -> None:
    rng = np.random.default_rng(seed)
    m = int(rng.integers(n, 6) + 1)
    N, S = rng.normal(size=(2, n, m))
    fields: Fields = {"M": inertia(rng, m, 1.0), "v": rng.normal(size=m), "N": N, "S": S}
    motions = coulomb_motions(**fields, mu=np.full(n, mu))
    solution = Coulomb(mu=mu).solve(ContactProblem(**fields))
    assert solution.is_exact(CERTIFICATE)
    assert min(np.abs(solution.velocity - x).max() for x in motions) <= 1e-7


@pytest.mark.parametrize("seed", range(12))
def test_agrees_with_the_obvious_iteration(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 4)), 7
    rows, mu = rng.normal(size=(n, 3, m)), rng.uniform(0.1, 0.5, n)
    M, v = inertia(rng, m, 0.5), rng.normal(size=m)
    N, S, T = rows.transpose(1, 0, 2)
    solution = Coulomb().solve(ContactProblem(M=M, v=v, N=N, S=S, T=T, mu=mu))
    assert_same(solution, coulomb_fixed_point(M, v, rows, mu), 1e-9)


# --- laws ---------------------------------------------------------------------------------------


COEFFICIENTS = (0.0, 0.05, 0.3, 1.0, 2.0)
seeds = st.integers(0, 2**32 - 1)


@st.composite
def frictional_fields(
    draw: st.DrawFn, kind: Any = contact_fields, alike: bool = False, **options: Any
) -> Fields:
    """A contact problem with a coefficient for each contact, or one for all."""
    fields = draw(kind(**options))
    n, rng = len(fields["N"]), np.random.default_rng(draw(seeds))
    mu = (
        np.full(n, draw(st.sampled_from(COEFFICIENTS[:3])))
        if alike
        else rng.choice(COEFFICIENTS, n)
    )
    return fields | {"mu": mu}


def assert_same(solution: ContactSolution, velocity: np.ndarray, tol: float = 1e-9) -> None:
    assert motion_distance(solution.problem, solution.velocity, velocity) <= tol


@given(frictional_fields(targets=True))
def test_law_in_extended_precision(fields: Fields) -> None:
    solution = Coulomb().solve(ContactProblem(**fields))
    assert solution.is_exact(CERTIFICATE)
    assert solution_residual(solution) <= CERTIFICATE


@given(frictional_fields(), seeds)
def test_with_limits_brakes_and_torsion(fields: Fields, seed: int) -> None:
    rng = np.random.default_rng(seed)
    fields = with_extras(rng, fields)
    if len(fields.get("R", ())):
        fields["mu_R"] = rng.choice([0.0, 0.01, 0.1], len(fields["R"]))
    solution = Coulomb().solve(ContactProblem(**fields))
    assert solution.is_exact(CERTIFICATE)
    assert (np.abs(solution.dry) <= solution.problem.D_bound).all()


@given(frictional_fields(decades=12.0))
def test_mass_ratios(fields: Fields) -> None:
    assert Coulomb().solve(ContactProblem(**fields)).is_exact(CERTIFICATE)


@given(frictional_fields())
def test_energy_never_grows(fields: Fields) -> None:
    fields = {name: value for name, value in fields.items() if name != "f"}
    solution = Coulomb().solve(ContactProblem(**fields))
    p = solution.problem
    before = 0.5 * p.v @ p.inertia @ p.v
    assert solution.kinetic_energy() <= before * (1.0 + 1e-10)
    # the ledger: what contacts take is what is lost, with what the joints take
    mean = 0.5 * (p.v + solution.velocity)
    joints = -solution.bilateral @ (p.J @ mean)
    lost = float(np.sum(solution.dissipation())) + joints
    assert lost == pytest.approx(before - solution.kinetic_energy(), abs=1e-9 * before)


@given(frictional_fields(targets=True))
def test_power_of_friction(fields: Fields) -> None:
    """Friction takes mu f_n |u_T| and nothing else."""
    solution = Coulomb().solve(ContactProblem(**fields))
    power = (solution.tangent * solution.sliding).sum(axis=1)
    speed = np.linalg.norm(solution.sliding, axis=1)
    exact = -solution.mu * solution.normal * speed
    np.testing.assert_allclose(power, exact, rtol=0, atol=1e-8 * solution.scale**2)


@given(contact_fields(targets=True))
def test_without_friction_it_is_frictionless(fields: Fields) -> None:
    problem = ContactProblem(**fields)
    solution, free = Coulomb(mu=0.0).solve(problem), hf.Frictionless(solver="ppm").solve(problem)
    assert_same(solution, free.velocity)
    assert not solution.tangent.any()


@given(contact_fields(targets=True))
def test_large_coefficients_do_not_slip_where_that_is_consistent(fields: Fields) -> None:
    problem = ContactProblem(**fields)
    held = hf.NoSlip(grip="all", solver="ppm").solve(problem).spread()
    needed = held.required_friction().max(initial=0.0)
    assume(needed < 50.0)
    solution = Coulomb(mu=2.0 * needed + 1.0).solve(problem)
    assert solution.is_exact(CERTIFICATE)
    assert_same(solution, held.velocity, 1e-8)


# Where contacts oppose each other at one point, copies of one have different coefficients, many lie
# in one plane, or coefficients are large, several motions may obey the law. Here are problems that
# have one.
UNIQUE: Any = {"kind": body_fields, "kinds": ("none", "duplicates", "zero rows"), "alike": True}
SAME = 1e-8


def assert_same_motions(first: Fields, second: Fields, tol: float = SAME) -> None:
    one, other = (Coulomb().solve(ContactProblem(**fields)) for fields in (first, second))
    assert_same(one, other.velocity, tol)


def turned(fields: Fields, seed: int) -> Fields:
    """The same with other directions of S and T at each contact."""
    angle = np.random.default_rng(seed).uniform(0.0, 2.0 * np.pi, len(fields["N"]))[:, None]
    c, s, S, T = np.cos(angle), np.sin(angle), fields["S"], fields["T"]
    return fields | {"S": c * S + s * T, "T": c * T - s * S}


@given(frictional_fields(**UNIQUE), seeds)
def test_order_of_contacts(fields: Fields, seed: int) -> None:
    order = np.random.default_rng(seed).permutation(len(fields["N"]))
    assert_same_motions(fields, pick(fields, order))


@given(frictional_fields(**UNIQUE))
def test_contacts_listed_twice(fields: Fields) -> None:
    twice = np.repeat(np.arange(len(fields["N"])), 2)
    assert_same_motions(fields, pick(fields, twice))


@given(frictional_fields(**UNIQUE), st.tuples(*[st.sampled_from([1e-3, 1.0, 1e3])] * 3))
def test_units(fields: Fields, units: tuple[float, float, float]) -> None:
    """Mass, length and time in other units: the same motion."""
    changed, velocity = in_units(fields, *units)
    one, other = (Coulomb().solve(ContactProblem(**f)) for f in (fields, changed))
    assert_same(one, other.velocity / velocity, SAME)


@given(frictional_fields(**UNIQUE), seeds)
def test_turned_tangents(fields: Fields, seed: int) -> None:
    """The directions of S and T do not matter."""
    assert_same_motions(fields, turned(fields, seed))


def kicked_patch(seed: int, mu: float) -> Fields:
    """A body that slides and turns on points of a plane: the load may be shared in many ways."""
    rng = np.random.default_rng(seed)
    points = np.column_stack([0.1 * rng.normal(size=(4, 2)), np.full(4, -0.05)])
    v = np.concatenate([rng.normal(size=2), [0.0, 0.0, 0.0], 5.0 * rng.normal(size=1)])
    return {"M": box(), "v": v, "f": linear(-GRAVITY * Z), "h": 0.01, "mu": np.full(4, mu),
            **touching(points)}  # fmt: skip


CHANGES: dict[str, Any] = {
    "order": lambda fields, _: pick(fields, np.array([2, 0, 3, 1])),
    "copies": lambda fields, _: pick(fields, np.repeat(np.arange(4), 2)),
    "frames": turned,
}


@pytest.mark.parametrize("mu", [0.1, 0.5, 1.0])
@pytest.mark.parametrize(
    "change",
    [pytest.param(change, id=name) for name, change in CHANGES.items()],
)
def test_one_motion_out_of_many(change: Any, mu: float) -> None:
    """Order, copies and frames of contacts do not decide which motion it is."""
    for seed in range(20):
        fields = kicked_patch(seed, mu)
        assert_same_motions(fields, change(fields, seed), 1e-7)


@given(frictional_fields())
def test_warm_starts(fields: Fields) -> None:
    problem = ContactProblem(**fields)
    cold = Coulomb().solve(problem)
    warm = Coulomb().solve(problem, warm_start=cold)
    assert warm.is_exact(CERTIFICATE)
    assert_same(cold, warm.velocity, 1e-9)
