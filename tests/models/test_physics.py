"""Textbook scenes with exact answers, step by step on matrices.

A step is a handful of sums of a handful of products, so its velocity is right to a few roundings
of the largest speed in it: ROUNDING. Over k steps these add up to at most k times that.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from contact_cases import NO_SLIP
from holdfast import (
    ContactModel,
    ContactProblem,
    ContactSolution,
    Frictionless,
    InfeasibleError,
    NoSlip,
    SolveError,
    Viscous,
    find_indices,
)
from holdfast.experiments.maximal import GRAVITY, X, Y, Z, inertia, point_row
from reference import Problem, is_farkas
from scenes import four_bar

ROUNDING = 1e-14  # 45 roundings of the largest number in the step
SOLVERS = ("newton", "ppm", "qp", "lemke")
GRIPS = ("loaded", "all")
each_no_slip = pytest.mark.parametrize("choice", NO_SLIP)


def incline(theta: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Normal, downhill and across for a plane that falls by theta towards x."""
    normal = np.array([np.sin(theta), 0.0, np.cos(theta)])
    downhill = np.array([np.cos(theta), 0.0, -np.sin(theta)])
    return normal, downhill, Y


def on_plane(
    points: Any, axes: tuple[np.ndarray, np.ndarray, np.ndarray] = (Z, X, Y)
) -> dict[str, np.ndarray]:
    """Contact rows of one body, whose centre is the origin, with the world."""
    centre = np.zeros((1, 3))
    return {
        name: np.array([point_row(centre, None, 0, np.asarray(p, dtype=float), along)
                        for p in points])
        for name, along in zip("NST", axes, strict=True)
    }  # fmt: skip


def weight(mass: float) -> np.ndarray:
    """Force of gravity on one body."""
    return np.concatenate([-mass * GRAVITY * Z, np.zeros(3)])


def linear(velocity: np.ndarray) -> np.ndarray:
    """Velocity of a body that does not spin."""
    return np.concatenate([velocity, np.zeros(3)])


def run(model: ContactModel, fields: dict[str, Any], steps: int) -> list[ContactSolution]:
    """Velocity steps with the rows held fixed: the body rolls or slides along a plane."""
    solutions = []
    for _ in range(steps):
        solutions.append(model.solve(ContactProblem(**fields)))
        fields = fields | {"v": solutions[-1].velocity}
    return solutions


def runge_kutta(model: Viscous, fields: dict[str, Any], steps: int) -> np.ndarray:
    """Velocity after `steps` steps of length h of the classical fourth-order method."""

    def a(v: np.ndarray) -> np.ndarray:
        return model.solve(ContactProblem(**fields | {"v": v})).acceleration

    v, h = fields["v"], fields["h"]
    for _ in range(steps):
        k1 = a(v)
        k2 = a(v + h / 2 * k1)
        k3 = a(v + h / 2 * k2)
        k4 = a(v + h * k3)
        v = v + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return v


def assert_velocity(
    actual: np.ndarray, exact: np.ndarray, size: float, tol: float = ROUNDING
) -> None:
    np.testing.assert_allclose(actual, exact, rtol=0, atol=tol * size)


# --- rolling ------------------------------------------------------------------------------------

ROUND_BODIES = {"solid sphere": 2 / 5, "spherical shell": 2 / 3, "cylinder": 1 / 2, "hoop": 1.0}
MASS, RADIUS = 0.7, 0.3
WIDTHS = {"point": [0.0], "line": [-0.4, 0.4], "listed three times": [0.0, 0.0, 0.0]}


def rolling_body(body: str, contact: str, theta: float) -> dict[str, Any]:
    """A round body on a plane that falls by theta; its axis lies across the slope."""
    axes = incline(theta)
    spin = ROUND_BODIES[body] * MASS * RADIUS**2
    other = spin if "sphe" in body else 0.6 * spin  # about the axes that it does not turn about
    points = [-RADIUS * axes[0] + width * Y for width in WIDTHS[contact]]
    M = np.diag([MASS] * 3 + [other, spin, other])
    return {"M": M, "v": np.zeros(6), "f": weight(MASS), "h": 0.01, **on_plane(points, axes)}


@pytest.mark.parametrize("grip", GRIPS)
@pytest.mark.parametrize("contact", WIDTHS)
@pytest.mark.parametrize("body", ROUND_BODIES)
def test_rolling_down_an_incline(body: str, contact: str, grip: Any) -> None:
    """a = g sin(theta) / (1 + I / (m r^2)) in every step; 5/7 g sin(theta) for a solid sphere."""
    theta, ratio = np.radians(25.0), ROUND_BODIES[body]
    fields = rolling_body(body, contact, theta)
    downhill = incline(theta)[1]
    a = GRAVITY * np.sin(theta) / (1.0 + ratio)
    for k, solution in enumerate(run(NoSlip(grip=grip), fields, 30), start=1):
        speed = k * fields["h"] * a
        exact = np.concatenate([speed * downhill, speed / RADIUS * Y])
        assert_velocity(solution.velocity, exact, speed / RADIUS, k * ROUNDING)
        assert solution.consistent and solution.rounds == 0 and solution.is_exact(ROUNDING)
        # the load is that of the slope; friction is what makes the body spin
        load = MASS * GRAVITY * np.cos(theta) * fields["h"]
        assert solution.normal_impulse.sum() == pytest.approx(load, rel=k * ROUNDING)
        needed = solution.spread().required_friction()
        # the impulse is the small difference of momenta that grow with k
        np.testing.assert_allclose(needed, ratio / (1 + ratio) * np.tan(theta), rtol=k * ROUNDING)


@each_no_slip
@pytest.mark.parametrize("body", ROUND_BODIES)
def test_thrown_on_a_no_slip_floor(body: str, choice: Any) -> None:
    """v0 / (1 + I / (m r^2)) after the first step, 5/7 v0 for a solid sphere; then constant."""
    fields = rolling_body(body, "point", 0.0) | {"v": linear(2.0 * X)}
    exact = 2.0 / (1.0 + ROUND_BODIES[body])
    for k, solution in enumerate(run(NoSlip(**choice), fields, 10), start=1):
        rolling = np.concatenate([exact * X, exact / RADIUS * Y])
        assert_velocity(solution.velocity, rolling, exact / RADIUS, k * ROUNDING)
    if body == "solid sphere":
        assert exact == pytest.approx(5 / 7 * 2.0, rel=1e-15)


def test_backspin_comes_back() -> None:
    """A ball with v0 and spin -w0 ends at (5 v0 - 2 r w0) / 7, which may be backwards."""
    v0, w0 = 1.0, -20.0
    fields = rolling_body("solid sphere", "point", 0.0)
    fields["v"] = np.concatenate([v0 * X, w0 * Y])
    exact = (5.0 * v0 + 2.0 * RADIUS * w0) / 7.0
    assert exact < 0.0
    velocity = NoSlip().solve(ContactProblem(**fields)).velocity
    assert_velocity(velocity, np.concatenate([exact * X, exact / RADIUS * Y]), abs(w0))


# --- rest ---------------------------------------------------------------------------------------


def feet(count: int, theta: float) -> list[np.ndarray]:
    """Points under a unit cube on a slope, around where the vertical through its centre goes.

    One point right there, two in line with it, more on a circle around it.
    """
    normal, downhill, across = incline(theta)
    middle = -0.5 * normal + 0.5 * np.tan(theta) * downhill
    if count == 1:
        return [middle]
    angles = np.arange(count) * 2.0 * np.pi / count + 0.3
    return [middle + 0.15 * (np.cos(a) * downhill + np.sin(a) * across) for a in angles]


def cube_on_slope(points: list[np.ndarray], theta: float) -> dict[str, Any]:
    fields = on_plane(points, incline(theta))
    return {"M": inertia(1), "v": np.zeros(6), "f": weight(1.0), "h": 0.01, **fields}


def corners(theta: float) -> list[np.ndarray]:
    normal, downhill, across = incline(theta)
    signs = [(a, b) for a in (-0.5, 0.5) for b in (-0.5, 0.5)]
    return [-0.5 * normal + a * downhill + b * across for a, b in signs]


@each_no_slip
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 8, 36, 200])
def test_block_rests_on_an_incline(count: int, choice: Any) -> None:
    theta = np.radians(30.0)
    problem = ContactProblem(**cube_on_slope(feet(count, theta), theta))
    solution = NoSlip(**choice).solve(problem)
    # relative to the speed of a free fall; the dense solvers form K = G M^-1 G' and square its
    # condition number, (0.15 m / 0.5 m)^-2
    assert_velocity(solution.velocity, np.zeros(6), GRAVITY * problem.step, 10 * ROUNDING)
    load = GRAVITY * problem.step
    wrench = load * np.concatenate([Z, np.zeros(3)])
    np.testing.assert_allclose(solution.contact_momentum(), wrench, rtol=0, atol=1e-13 * load)
    assert solution.consistent


@pytest.mark.parametrize("repeat", [1, 3])
@pytest.mark.parametrize("degrees", [0.0, 1.0, 30.0, 44.9])
def test_block_rests_on_its_corners(degrees: float, repeat: int) -> None:
    theta = np.radians(degrees)
    problem = ContactProblem(**cube_on_slope(corners(theta) * repeat, theta))
    solution = NoSlip().solve(problem)
    assert_velocity(solution.velocity, np.zeros(6), GRAVITY * problem.step, 10 * ROUNDING)
    assert solution.consistent and solution.is_exact(1e-12)


@pytest.mark.parametrize("degrees", [46.0, 60.0, 80.0])
def test_block_tips_over_on_a_steep_incline(degrees: float) -> None:
    """About its lower edge, with alpha = m g d (sin - cos) / (I + m (d^2 + d^2)), d = 1/2."""
    theta = np.radians(degrees)
    problem = ContactProblem(**cube_on_slope(corners(theta), theta))
    solution = NoSlip().solve(problem)
    alpha = GRAVITY * 0.5 * (np.sin(theta) - np.cos(theta)) / (1 / 6 + 0.5)
    _, downhill, _ = incline(theta)
    edge = 0.5 * downhill - 0.5 * incline(theta)[0]
    spin = alpha * problem.step * Y
    exact = np.concatenate([np.cross(spin, -edge), spin])
    assert_velocity(solution.velocity, exact, GRAVITY * problem.step)
    assert solution.consistent


@pytest.mark.parametrize("degrees", [1.0, 10.0, 30.0, 44.0])
def test_required_friction_of_a_block_is_the_slope(degrees: float) -> None:
    """|f_t| / f_n of the net force is tan(theta), and so it is of each foot once they share."""
    theta = np.radians(degrees)
    problem = ContactProblem(**cube_on_slope(feet(6, theta), theta))
    needed = NoSlip().solve(problem).spread().required_friction()
    np.testing.assert_allclose(needed, np.tan(theta), rtol=1e-12)


# --- impact -------------------------------------------------------------------------------------


@each_no_slip
def test_dropped_ball_stops_dead(choice: Any) -> None:
    fields = rolling_body("solid sphere", "point", 0.0) | {"v": linear(-3.0 * Z)}
    first, second = run(NoSlip(**choice), fields, 2)
    assert_velocity(first.velocity, np.zeros(6), 3.0)
    assert_velocity(second.velocity, np.zeros(6), 3.0)
    assert first.normal_impulse == pytest.approx(MASS * (3.0 + GRAVITY * 0.01), rel=ROUNDING)


@pytest.mark.parametrize("model", [NoSlip(), Frictionless(), Viscous(mu_v=5.0)])
def test_no_model_bounces(model: ContactModel) -> None:
    fields = rolling_body("hoop", "line", 0.0) | {"v": linear(X - 3.0 * Z)}
    solution = model.solve(ContactProblem(**fields))
    assert abs(solution.velocity[2]) <= 3.0 * ROUNDING


def rimless_wheel(alpha: float, moment: float) -> dict[str, Any]:
    """A wheel of 1 kg with spokes of 1 m, turning at 1 rad/s about a foot as the next one lands.

    Both feet are listed. Two alpha is the angle between spokes.
    """
    back, front = (np.array([side * np.sin(alpha), 0.0, -np.cos(alpha)]) for side in (-1.0, 1.0))
    M = np.diag([1.0, 1.0, 1.0, 0.5 * moment + 0.1, moment, 0.5 * moment + 0.1])
    v = np.concatenate([np.cross(Y, -back), Y])
    return {"M": M, "v": v, **on_plane([back, front])}


@each_no_slip
@pytest.mark.parametrize("moment", [1e-6, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("spokes", [5, 6, 8, 20])
def test_rimless_wheel(spokes: int, moment: float, choice: Any) -> None:
    """omega+ / omega- = (I_c + m l^2 cos(2 alpha)) / (I_c + m l^2)."""
    alpha = np.pi / spokes
    solution = NoSlip(**choice).solve(ContactProblem(**rimless_wheel(alpha, moment)))
    ratio = (moment + np.cos(2 * alpha)) / (moment + 1.0)
    front = np.array([np.sin(alpha), 0.0, -np.cos(alpha)])
    exact = ratio * np.concatenate([np.cross(Y, -front), Y])
    # rounding is of the size of the motion in the metric of M: a small moment spins up more
    root = np.sqrt(np.diag(solution.problem.M))
    # whitened rows lie within sqrt(moment) of each other; the dense solvers form K = G M^-1 G' of
    # them, which squares that
    angle = np.sqrt(moment) if choice.get("solver") == "ppm" else moment
    tol = max(ROUNDING, np.finfo(float).eps / angle)
    assert_velocity(root * solution.velocity, root * exact, 1.0, tol)
    assert solution.normal_impulse[0] == 0.0 and solution.normal_impulse[1] > 0.0
    assert solution.separation[0] > 0.0


@pytest.mark.parametrize("grip", GRIPS)
def test_rimless_wheel_of_three_spokes_stands_still(grip: Any) -> None:
    """Where the formula turns negative the back foot cannot leave: the wheel stops on two feet."""
    solution = NoSlip(grip=grip).solve(ContactProblem(**rimless_wheel(np.pi / 3, 0.2)))
    assert_velocity(solution.velocity, np.zeros(6), 1.0)
    assert (solution.normal_impulse > 0.0).all()


# --- grazing ------------------------------------------------------------------------------------


@pytest.mark.parametrize("away", [0.0, 0.5])
def test_ball_grazing_a_wall_is_untouched(away: float) -> None:
    """Nothing presses, so with grip="loaded" nothing holds; bit by bit the same velocity."""
    velocity = np.array([away, 2.0, -1.0, 0.3, 0.2, 0.1])
    fields = {"M": np.diag([MASS] * 3 + [0.02] * 3), "v": velocity}
    wall = on_plane([-RADIUS * X], (X, Y, Z))
    solution = NoSlip().solve(ContactProblem(**fields, **wall))
    np.testing.assert_array_equal(solution.velocity, velocity)
    assert solution.consistent and not solution.sticking.any()
    assert not solution.normal.any() and not solution.tangent.any()


@pytest.mark.parametrize("solver", SOLVERS)
def test_ball_grazing_a_wall_is_stopped_by_the_model_of_the_paper(solver: str) -> None:
    """The point that touches stops: a point mass altogether, a solid sphere to 5/7 with a spin."""
    wall = on_plane([-RADIUS * X], (X, Y, Z))
    fields = {"M": MASS * np.diag([1.0] * 3 + [0.4 * RADIUS**2] * 3), "v": linear(2.0 * Y)}
    model = NoSlip(grip="all", solver=solver)
    rolling = model.solve(ContactProblem(**fields, **wall))
    exact = np.concatenate([10 / 7 * Y, 10 / 7 / RADIUS * Z])
    assert_velocity(rolling.velocity, exact, 10 / 7 / RADIUS)
    point = model.solve(ContactProblem(M=MASS * np.eye(3), v=2.0 * Y, N=[X], S=[Y], T=[Z]))
    assert_velocity(point.velocity, np.zeros(3), 2.0)
    assert point.required_friction() == np.inf  # held by nothing that presses


# --- viscous ------------------------------------------------------------------------------------

BALL, DRAG = np.pi / 6, 0.1  # [kg], [N s/m]: a ball of 1 m and 1000 kg/m^3, scaled down


def viscous_ball(h: float) -> dict[str, Any]:
    M = BALL * np.diag([1.0] * 3 + [0.4 * 0.25] * 3)
    fields = on_plane([-0.5 * Z])
    return {"M": M, "v": linear(X), "f": weight(BALL), "h": h, **fields}


def ball_speed(decay: float) -> float:
    """v = v0 (1 - 2/7 (1 - decay)), where the slip has come down to decay v0."""
    return 1.0 - 2.0 / 7.0 * (1.0 - decay)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("h", [0.001, 0.1, 10.0, 1e6])
def test_ball_on_a_viscous_floor_steps_by_the_closed_form(h: float, solver: str) -> None:
    """Implicit drag divides the slip by 1 + 7/2 h mu / m in each step, for any h."""
    model = Viscous(mu_v=DRAG, solver=solver)
    for k, solution in enumerate(run(model, viscous_ball(h), 10), start=1):
        decay = (1.0 + 3.5 * h * DRAG / BALL) ** -k
        speed = ball_speed(decay)
        exact = np.concatenate([speed * X, (speed - decay) / 0.5 * Y])
        # gravity changes momentum by g h before the floor takes it back
        assert_velocity(solution.velocity, exact, max(1.0, GRAVITY * h), k * ROUNDING)
        drag = -h * DRAG * decay
        assert solution.tangent_impulse[0, 0] == pytest.approx(
            drag, rel=1e-12, abs=k * ROUNDING * h * DRAG * max(1.0, GRAVITY * h)
        )


def test_ball_on_a_viscous_floor_tends_to_the_exponential() -> None:
    """v(1) = 0.86071; the error of implicit Euler halves with h: v'' h / 2 in its first term."""
    exact = ball_speed(np.exp(-3.5 * DRAG / BALL))
    assert exact == pytest.approx(0.86071, abs=5e-6)
    errors = [
        run(Viscous(mu_v=DRAG), viscous_ball(1.0 / n), n)[-1].velocity[0] - exact
        for n in (50, 100, 200)
    ]
    rate = 3.5 * DRAG / BALL
    leading = 2.0 / 7.0 * np.exp(-rate) * rate**2 / 2.0 / 200
    assert errors[-1] == pytest.approx(leading, rel=0.01)
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    np.testing.assert_allclose(orders, 1.0, atol=0.02)


@pytest.mark.parametrize("solver", SOLVERS)
def test_ball_on_a_viscous_floor_at_acceleration_level(solver: str) -> None:
    """v(1) = 0.86071 by fourth-order Runge-Kutta, whose error here is (0.67 h)^5 / 120 a step."""
    model = Viscous(mu_v=DRAG, level="acceleration", solver=solver)
    v = runge_kutta(model, viscous_ball(0.02), 50)
    exact = ball_speed(np.exp(-3.5 * DRAG / BALL))
    assert v[0] == pytest.approx(exact, abs=1e-9)
    assert v[0] == pytest.approx(0.86071, abs=5e-6)
    np.testing.assert_allclose(v[[1, 2, 3, 5]], 0.0, atol=1e-13)


def sliding_box(points: list[np.ndarray], theta: float, h: float) -> dict[str, Any]:
    """A cube of 1 m and 1 kg that slides downhill at 0.5 m/s."""
    return cube_on_slope(points, theta) | {"v": linear(0.5 * incline(theta)[1]), "h": h}


FLOOR_POINTS = {
    "corners": corners(0.0),
    "corners three times": corners(0.0) * 3,
    "seven": feet(7, 0.0),
}


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("points", FLOOR_POINTS)
def test_box_on_a_viscous_floor(points: str, solver: str) -> None:
    """Every point drags alike, whatever presses on it: v is divided by 1 + k h mu / m a step."""
    where = FLOOR_POINTS[points]
    k, mu = len(where), 0.2
    model = Viscous(mu_v=mu, solver=solver)
    for i, solution in enumerate(run(model, sliding_box(where, 0.0, 0.01), 20), start=1):
        speed = 0.5 / (1.0 + k * 0.01 * mu) ** i
        assert_velocity(solution.velocity, linear(speed * X), 0.5, i * ROUNDING)
        np.testing.assert_allclose(
            solution.tangent_impulse[:, 0], -0.01 * mu * speed, rtol=0, atol=i * 1e-14 * 0.01 * mu
        )


@pytest.mark.parametrize("points", FLOOR_POINTS)
def test_box_on_a_viscous_floor_at_acceleration_level(points: str) -> None:
    """v0 exp(-k mu t / m), and the load shifts forward by k mu v times the height of the centre."""
    where, mu, h, steps = FLOOR_POINTS[points], 0.2, 0.02, 25
    k = len(where)
    model = Viscous(mu_v=mu, level="acceleration")
    fields = sliding_box(where, 0.0, h)
    # Runge-Kutta: (k mu h)^5 / 120 of the speed in each step
    tol = 0.5 * steps * (k * mu * h) ** 5 / 120 + 1e-13
    exact = linear(0.5 * np.exp(-k * mu * steps * h) * X)
    np.testing.assert_allclose(runge_kutta(model, fields, steps), exact, rtol=0, atol=tol)
    solution = model.solve(ContactProblem(**fields))
    assert_velocity(solution.acceleration, linear(-k * mu * 0.5 * X), GRAVITY)
    assert solution.normal_force.sum() == pytest.approx(GRAVITY, rel=1e-13)
    shift = solution.normal_force @ np.array(where)[:, 0]
    assert shift == pytest.approx(k * mu * 0.5 * 0.5, rel=1e-12)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("degrees", [5.0, 30.0])
@pytest.mark.parametrize("count", [3, 4, 9])
def test_box_on_a_viscous_incline(count: int, degrees: float, solver: str) -> None:
    """Terminal speed m g sin(theta) / (k mu): reached from rest, and kept once reached."""
    theta, mu = np.radians(degrees), 0.7
    terminal = GRAVITY * np.sin(theta) / (count * mu)
    exact = linear(terminal * incline(theta)[1])
    fields = sliding_box(feet(count, theta), theta, 10.0) | {"v": np.zeros(6)}
    # each step divides the distance by 1 + k h mu / m >= 22; gravity adds g h = 98 m/s each time
    last = run(Viscous(mu_v=mu, solver=solver), fields, 14)[-1]
    # four feet end up balanced on two: a third one that enters the floor at less than 1e-12 of the
    # motion (Options.feasibility) need not be loaded, and its lever is 0.15 m
    assert_velocity(last.velocity, exact, GRAVITY * 10.0, 1e-12 / 0.15)
    steady = Viscous(mu_v=mu, level="acceleration", solver=solver)
    solution = steady.solve(ContactProblem(**fields | {"v": exact}))
    assert_velocity(solution.acceleration, np.zeros(6), GRAVITY, 10 * ROUNDING)


# --- curved paths at acceleration level ---------------------------------------------------------


def on_a_circle(
    angle: float, speed: float, mass: float
) -> tuple[dict[str, Any], np.ndarray, np.ndarray]:
    """A point at `angle` from the bottom of a circle of 2 m; outward and along the circle."""
    outward = np.array([np.sin(angle), 0.0, -np.cos(angle)])
    along = np.array([np.cos(angle), 0.0, np.sin(angle)])
    f = -mass * GRAVITY * Z
    return {"M": mass * np.eye(3), "v": speed * along, "f": f, "h": 0.01}, outward, along


@pytest.mark.parametrize("angle", [0.0, 1.0, np.pi / 2, 3.0])
def test_pendulum(angle: float) -> None:
    """Jdot v is the centripetal acceleration; the rod pulls with m v^2 / r + m g cos(angle)."""
    fields, outward, along = on_a_circle(angle, 1.5, 0.8)
    problem = ContactProblem(**fields, J=[outward, Y], Jdot_v=[1.5**2 / 2.0, 0.0])
    solution = Viscous(level="acceleration").solve(problem)
    exact = -(1.5**2) / 2.0 * outward - GRAVITY * np.sin(angle) * along
    assert_velocity(solution.acceleration, exact, GRAVITY)
    tension = 0.8 * (1.5**2 / 2.0 + GRAVITY * np.cos(angle))
    assert solution.bilateral_force[0] == pytest.approx(-tension, rel=ROUNDING)


@pytest.mark.parametrize(("speed", "pressed"), [(5.0, True), (4.0, False)])
def test_loop_the_loop(speed: float, pressed: bool) -> None:
    """At the top of a loop a point stays on the track if v^2 > g r, else it falls freely."""
    fields, outward, _ = on_a_circle(np.pi, speed, 0.8)
    problem = ContactProblem(**fields, N=[-outward], S=[X], T=[Y], Ndot_v=[-(speed**2) / 2.0])
    solution = Viscous(mu_v=0.0, level="acceleration").solve(problem)
    exact = -(speed**2) / 2.0 * outward if pressed else -GRAVITY * Z
    assert_velocity(solution.acceleration, exact, GRAVITY)
    force = max(0.0, 0.8 * (speed**2 / 2.0 - GRAVITY))
    assert solution.normal_force[0] == pytest.approx(force, rel=ROUNDING, abs=0.0)


# --- no answer, and too many rows ---------------------------------------------------------------


def closing_walls() -> dict[str, Any]:
    """A ball between two walls that both come nearer at 0.1 m/s."""
    rows = {name: [] for name in "NST"}
    for side in (X, -X):
        for name, part in on_plane([-RADIUS * side], (side, Y, Z)).items():
            rows[name].append(part[0])
    return {"M": np.diag([MASS] * 3 + [0.02] * 3), "v": linear(Y), "c_N": [0.1, 0.1], **rows}


@pytest.mark.parametrize("model", [NoSlip(), NoSlip(grip="all"), Frictionless(), Viscous()])
def test_closing_walls_are_infeasible(model: ContactModel) -> None:
    fields = closing_walls() | {"h": 0.01}
    problem = ContactProblem(**fields)
    message = r"^infeasible: no motion satisfies contacts \[0, 1\] at once"
    with pytest.raises(InfeasibleError, match=message) as caught:
        model.solve(problem)
    assert caught.value.problem is problem
    u = caught.value.certificate
    assert is_farkas(Problem(problem.N, problem.M, problem.v, -problem.c_N), u)
    assert u[0] == pytest.approx(u[1], rel=1e-12)  # both walls are equally at fault


@pytest.mark.parametrize("solver", ["qp", "lemke"])
def test_closing_walls_end_the_other_solvers_too(solver: str) -> None:
    with pytest.raises(SolveError):
        NoSlip(grip="all", solver=solver).solve(ContactProblem(**closing_walls()))


def test_closing_walls_at_acceleration_level() -> None:
    fields = closing_walls() | {"h": 0.01, "Ndot_v": [-0.1, -0.1]}
    with pytest.raises(InfeasibleError):
        Viscous(level="acceleration").solve(ContactProblem(**fields))


@pytest.mark.parametrize("speed", [0.0, 1e-3])
def test_walls_that_keep_their_distance_are_feasible(speed: float) -> None:
    """One wall follows the other: the ball is carried along."""
    problem = ContactProblem(**closing_walls() | {"v": np.zeros(6), "c_N": [speed, -speed]})
    solution = NoSlip().solve(problem)
    assert_velocity(solution.velocity, linear(speed * X), max(speed, 1e-3))


@pytest.mark.parametrize(
    "model", [NoSlip(), Frictionless(solver="qp"), NoSlip(grip="all", solver="lemke")]
)
def test_four_bar_with_redundant_rows(model: ContactModel) -> None:
    """20 rows of rank 17: the motion is that of an independent subset, and of the one freedom."""
    scene = four_bar()
    v = np.linalg.svd(scene["J"])[2][-1]  # the linkage is moving
    fields = {**scene, "v": v}
    every = model.solve(ContactProblem(**fields))
    assert every.rank == 17
    kept = find_indices(scene["M"], scene["J"]).J_rows
    assert np.linalg.matrix_rank(scene["J"][kept]) == len(kept) == 17
    some = model.solve(ContactProblem(**{**fields, "J": scene["J"][kept]}))
    other = model.solve(ContactProblem(**{**fields, "J": scene["J"][::-1]}))
    freedom = scene["M"] @ v
    exact = v * (freedom @ v + scene["h"] * scene["f"] @ v) / (freedom @ v)
    # J has a condition number of about 10 on its row space, squared by the dense solvers
    for solution in (every, some, other):
        assert_velocity(solution.velocity, exact, np.abs(exact).max(), 1e-13)
        assert solution.bilateral_residual() <= 1e-13
    if every.law is None:  # pivoting leaves redundant rows out, the contact solve shares
        assert not every.bilateral_impulse[np.setdiff1d(np.arange(20), kept)].any()
