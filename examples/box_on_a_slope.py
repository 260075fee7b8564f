"""From four matrices to a force: a box on a slope, and what else a contact can do.

The tutorial (docs/tutorial.rst) is made of the pieces of this file and of what they print. Run it:

    python examples/box_on_a_slope.py
"""

import tempfile
from pathlib import Path

import numpy as np

import holdfast as hf


def show(values: object) -> np.ndarray:
    """Four decimals, and no minus sign at a zero."""
    return np.round(np.asarray(values), 4) + 0.0


def section(name: str) -> None:
    """Print a heading; the tutorial cuts the code and the output at these."""
    print(f"\n== {name} ==")


section("matrices")
mass, g, slope = 2.0, 9.81, np.radians(20.0)  # [kg], [m/s^2], [rad]
length, width, height = 0.4, 0.3, 0.2  # of the box along x, y, z [m]
inertia = mass / 12 * np.array([width**2 + height**2, length**2 + height**2, length**2 + width**2])
M = np.diag([mass, mass, mass, *inertia])

# The corners that touch, seen from the centre of mass. x points down the slope, z away from it.
corners = np.array([[x, y, -height / 2] for x in (-length / 2, length / 2)
                    for y in (-width / 2, width / 2)])  # fmt: skip


def rows(along: list[float]) -> np.ndarray:
    """One row per corner: its velocity along a direction is row @ [vx, vy, vz, wx, wy, wz]."""
    return np.array([[*along, *np.cross(corner, along)] for corner in corners])


N, S, T = rows([0, 0, 1]), rows([1, 0, 0]), rows([0, 1, 0])
print(show(N))

section("problem")
gravity = mass * g * np.array([np.sin(slope), 0, -np.cos(slope), 0, 0, 0])
h = 0.01  # [s]
problem = hf.ContactProblem(M=M, v=np.zeros(6), f=gravity, h=h, N=N, S=S, T=T)
print(problem)
print("without contacts:", show(problem.free_velocity), "m/s")

section("solve")
solution = hf.NoSlip().solve(problem)
print("velocity:        ", show(solution.velocity), "m/s")
print("normal force:    ", show(solution.normal_impulse / h), "N")
print("friction along S:", show(solution.tangent_impulse[:, 0] / h), "N")

section("balance")
pressed = solution.normal_impulse.sum() / h
held = -solution.tangent_impulse[:, 0].sum() / h
print("pressed with", show(pressed), "N; m g cos(slope) =", show(mass * g * np.cos(slope)), "N")
print("held with", show(held), "N; m g sin(slope) =", show(mass * g * np.sin(slope)), "N")

section("judgement")
print("exact:", solution.is_exact())
for residual in ("slip", "penetration_speed", "complementarity", "momentum_residual"):
    print(f"  {residual} below 1e-12: {getattr(solution, residual)() < 1e-12}")
needed = solution.required_friction()
print("friction needed:", show(needed), "tan(slope):", show(np.tan(slope)))

section("redundant")
paper = hf.NoSlip(grip="all").solve(problem)
shared = paper.spread()
print("as pivoting left it:", show(paper.normal_impulse / h), "N")
print("spread:             ", show(shared.normal_impulse / h), "N")
print("same motion:", np.array_equal(paper.velocity, shared.velocity), "exact:", shared.is_exact())

section("pairs")
pair = [[0, 1]] * 4  # each contact is between body 0, the slope, and body 1, the box
labelled = hf.ContactProblem(M=M, v=np.zeros(6), f=gravity, h=h, N=N, S=S, T=T, bodies=pair)
for grip in ("all", "loaded"):
    sums = hf.NoSlip(grip=grip).solve(labelled).pair_sums()
    print("slope on box:", show(sums.impulses[0] / h), "N, N m")

section("wall")
ball = hf.ContactProblem(
    M=0.5 * np.eye(3), v=[0.0, 3.0, 0.0],  # along a wall, neither to it nor away from it
    N=[[1.0, 0.0, 0.0]], S=[[0.0, 1.0, 0.0]], T=[[0.0, 0.0, 1.0]],
)  # fmt: skip
print('grip="all":   ', show(hf.NoSlip(grip="all").solve(ball).velocity))
free = hf.NoSlip().solve(ball)
print('grip="loaded":', show(free.velocity), "consistent:", free.consistent, "rounds:", free.rounds)

section("viscous velocity")
mu_v = 5.0  # [N s/m] at each corner
drag = 4 * mu_v  # of all corners together
step = hf.Viscous(mu_v).solve(problem)
expected = h * g * np.sin(slope) / (1 + h * drag / mass)
print("velocity:", show(step.velocity[0]), "expected:", show(expected), "m/s")

section("viscous acceleration")
speed = 0.2  # [m/s]
sliding = hf.ContactProblem(M=M, v=[speed, 0, 0, 0, 0, 0], f=gravity, h=h, N=N, S=S, T=T)
now = hf.Viscous(mu_v, level="acceleration").solve(sliding)
expected = g * np.sin(slope) - drag / mass * speed
print("acceleration:", show(now.acceleration[0]), "expected:", show(expected), "m/s^2")
print("normal force:", show(now.spread().normal_force), "N")

section("mixed")
laws = [hf.stick(), hf.viscous(mu_v), hf.frictionless(), hf.frictionless()]
mixed = hf.Mixed(laws).solve(problem)
print("corners, along S:", show(S @ mixed.velocity), "m/s")
print("corners, along T:", show(T @ mixed.velocity), "m/s")
print("friction along S:", show(mixed.tangent_impulse[:, 0] / h), "N")

section("limits")
loss = 0.5  # dry friction of joint 1 [N m]
arm = hf.ContactProblem(
    M=[[1.0, 0.3], [0.3, 0.5]], v=[0.2, 0.1], f=[1.0, 0.0], h=h,
    U=[[-1.0, 0.0]],  # joint 0 is at its upper limit: it may only turn back
    D=[[0.0, 1.0]], D_bound=[h * loss],  # joint 1 has dry friction
)  # fmt: skip
stopped = hf.Frictionless().solve(arm)
print("velocity:", show(stopped.velocity), "rad/s")
print("limit:", show(stopped.unilateral), "dry friction:", show(stopped.dry), "N m s")

section("squeeze")
squeezed = hf.ContactProblem(M=[[1.0]], v=[0.0], N=[[1.0], [-1.0]], c_N=[0.5, 0.5])
try:
    hf.NoSlip().solve(squeezed)
except hf.InfeasibleError as error:
    u = error.certificate
    print(type(error).__name__, "with certificate", show(u / u.max()))
    print("u' N =", show(u @ squeezed.N), "and u' c_N > 0:", bool(u @ squeezed.c_N > 0))

section("linear map")
push = gravity + np.array([3.0, 1.0, 0, 0, 0, 0])  # [N]
predicted = step.linear_map()(problem.v, push)
pushed = hf.ContactProblem(M=M, v=np.zeros(6), f=push, h=h, N=N, S=S, T=T)
print("predicted:", show(predicted))
print("solved:   ", show(hf.Viscous(mu_v).solve(pushed).velocity))

section("save")
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "box.npz"
    problem.save(path)
    again = hf.ContactProblem.load(path)
same = np.array_equal(hf.NoSlip().solve(again).velocity, solution.velocity)
print(again, "gives the same bits:", same)
