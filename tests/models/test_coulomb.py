"""Coulomb's law: closed forms, and laws that hold for every problem."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import holdfast as hf
from contact_cases import Fields
from holdfast import ContactProblem, ContactSolution, Coulomb

GRAVITY = 9.81
CERTIFICATE = 1e-10
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
    np.testing.assert_allclose(last.velocity, linear(exact * frame[1]), rtol=0, atol=1e-9)
    if degrees != pytest.approx(26.565, abs=0.1):
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
        np.testing.assert_allclose(solution.velocity, linear(speed * along), rtol=0, atol=1e-10)
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
            solution.velocity, (8.0 - k * rate) * np.eye(6)[5], rtol=0, atol=1e-10
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
        np.testing.assert_allclose(solution.velocity, 0.0, atol=1e-12)
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
    """A point in a groove with sides at beta slides with g (sin gamma - mu cos gamma / cos beta)."""
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
