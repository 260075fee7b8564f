"""Contact models: laws over random and degenerate problems, closed forms, and agreement.

The motion is unique and forces are not, so motions are compared. An answer is proven by its
optimality conditions in extended precision (`reference.kkt`): whatever satisfies them is the
minimiser of the quadratic objective.
"""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import holdfast as hf
from contact_cases import (
    NO_SLIP,
    Fields,
    as_projection,
    body_fields,
    contact_fields,
    in_units,
    motion_distance,
    nearest_motion,
    null_space,
    pick,
    transformed,
    with_extras,
)
from holdfast import (
    ContactModel,
    ContactProblem,
    ContactSolution,
    Frictionless,
    Mixed,
    NoSlip,
    Viscous,
    find_indices,
    frictionless,
    stick,
    viscous,
)
from holdfast.contact import Options as ContactOptions
from holdfast.experiments.maximal import GRAVITY, X, Y, Z, inertia, point_row, spin_row
from recorded_cases import CASES, assert_reference, recorded
from reference import Problem, kkt
from scenes import grasp

CERTIFICATE = 1e-10  # what every answer of the solver promises
SAME = 1e-9  # two solves of one problem in different words, see test_factored_laws
SOLVERS = ("newton", "ppm", "qp", "lemke")

VELOCITY_MODELS: dict[str, ContactModel] = {
    "no slip, all": NoSlip(grip="all"),
    "no slip, loaded": NoSlip(),
    "viscous": Viscous(mu_v=0.7),
    "frictionless": Frictionless(),
}
each_model = pytest.mark.parametrize("model", VELOCITY_MODELS.values(), ids=VELOCITY_MODELS.keys())
each_solver = pytest.mark.parametrize("solver", SOLVERS)
each_no_slip = pytest.mark.parametrize("choice", NO_SLIP)
seeds = st.integers(0, 2**32 - 1)


def solve(model: ContactModel, given_fields: Fields) -> ContactSolution:
    """The answer; problems whose rank is a matter of taste are left out."""
    solution = model.solve(ContactProblem(**given_fields))
    assume(not solution.rank_ambiguous)
    return solution


def assert_same_motion(
    problem: ContactProblem, x: np.ndarray, y: np.ndarray, tol: float = SAME
) -> None:
    assert motion_distance(problem, x, y) <= tol


def assert_proven(solution: ContactSolution, tol: float = CERTIFICATE) -> None:
    """Feasible, complementary and balanced, by an independent check over every row."""
    assert max(kkt(*as_projection(solution))) <= tol
    assert (solution.normal >= 0.0).all() and (solution.unilateral >= 0.0).all()
    assert (np.abs(solution.dry) <= solution.problem.D_bound).all()


# --- the answer ---------------------------------------------------------------------------------


@each_model
@given(contact_fields(targets=True))
def test_complementary_balanced_and_the_minimiser(
    model: ContactModel, given_fields: Fields
) -> None:
    solution = solve(model, given_fields)
    assert solution.is_exact(CERTIFICATE)
    assert_proven(solution, CERTIFICATE)


@each_model
@given(contact_fields(), seeds)
def test_with_limits_dry_friction_and_torsion(
    model: ContactModel, given_fields: Fields, seed: int
) -> None:
    solution = solve(model, with_extras(np.random.default_rng(seed), given_fields))
    assert solution.is_exact(CERTIFICATE)
    assert_proven(solution, CERTIFICATE)


@each_model
@given(contact_fields(decades=12.0))
def test_mass_ratios_up_to_a_million_squared(model: ContactModel, given_fields: Fields) -> None:
    solution = solve(model, given_fields)
    assert solution.is_exact(CERTIFICATE)
    assert_proven(solution, CERTIFICATE)


@each_model
@given(contact_fields())
def test_agrees_with_an_independent_quadratic_program(
    model: ContactModel, given_fields: Fields
) -> None:
    solution = solve(model, given_fields)
    p, held = solution.problem, solution.sticking
    M = p.inertia + p.step * solution.drag
    G = np.vstack([p.J, p.S[held], p.T[held]])
    x = nearest_motion(M, np.linalg.solve(M, p.impulse), G, p.N, p.c_N)
    assert_same_motion(p, solution.velocity, x)


@each_model
@given(contact_fields())
def test_kinetic_energy_never_grows(model: ContactModel, given_fields: Fields) -> None:
    without = {name: value for name, value in given_fields.items() if name != "f"}
    solution = solve(model, without)
    p = solution.problem
    before = 0.5 * p.v @ p.inertia @ p.v
    assert solution.kinetic_energy() <= before * (1.0 + 1e-12)


@given(contact_fields(targets=True), seeds)
def test_acceleration_level(given_fields: Fields, seed: int) -> None:
    """M a = f - C v + N' f_n + J' f_J, J a = -Jdot v, 0 <= f_n complementary to N a + Ndot v."""
    rng = np.random.default_rng(seed)
    rates = {"Ndot_v": -given_fields.get("c_N", 0.0 * given_fields["N"][:, 0]),
             "Jdot_v": -given_fields.get("c_J", 0.0 * given_fields["J"][:, 0])}  # fmt: skip
    mu_v = rng.uniform(0.0, 1.0, len(given_fields["N"]))
    solution = solve(Viscous(mu_v=mu_v, level="acceleration"), given_fields | rates)
    p = solution.problem
    C = p.S.T @ (mu_v[:, None] * p.S) + p.T.T @ (mu_v[:, None] * p.T)
    np.testing.assert_array_equal(solution.tangent_force[:, 0], -mu_v * (p.S @ p.v))
    claim = Problem(
        np.vstack([p.J, p.N]),
        p.inertia,
        np.linalg.solve(p.inertia, p.f - C @ p.v),
        np.concatenate([p.Jdot_v, p.Ndot_v]),
        np.concatenate([np.full(p.j, -np.inf), np.zeros(p.n)]),
    )
    forces = np.concatenate([solution.bilateral_force, solution.normal_force])
    assert max(kkt(claim, forces, solution.acceleration)) <= CERTIFICATE


# --- a solution judges itself -------------------------------------------------------------------


def slope_problem(**more: Any) -> ContactProblem:
    """A block of two contacts that is thrown on a slope, with a joint, a limit and a brake."""
    centre = np.zeros((1, 3))
    points = [np.array([x, 0.1, -0.5]) for x in (-0.5, 0.5)]
    rows = {
        name: [point_row(centre, None, 0, point, along) for point in points]
        for name, along in zip("NST", (Z, X, Y), strict=True)
    }
    return ContactProblem(
        M=inertia(1), v=np.array([1.0, -0.4, -2.0, 0.3, 0.2, 0.1]), h=0.01, **rows,
        f=[0.0, 0.0, -GRAVITY, 0.0, 0.0, 0.0], J=[spin_row(centre, None, 0, X)], **more,
    )  # fmt: skip


def test_is_exact_sees_what_is_wrong() -> None:
    solution = NoSlip(grip="all").solve(slope_problem())
    assert solution.is_exact(1e-14)
    up, along, spin = np.eye(6)[2], np.eye(6)[0], np.eye(6)[3]
    wrong = {
        "penetration_speed": replace(solution, motion=solution.motion - 1e-6 * up),
        "slip": replace(solution, motion=solution.motion + 1e-6 * along),
        "bilateral_residual": replace(solution, motion=solution.motion + 1e-6 * spin),
        "momentum_residual": replace(solution, normal=solution.normal * 1.00001),
        "complementarity": replace(solution, motion=solution.motion + 1e-6 * up),
    }
    for name, other in wrong.items():
        residual = getattr(other, name)()
        assert 1e-8 < residual < 1e-4, name
        assert not other.is_exact() and other.is_exact(1e-4)
    assert not replace(solution, normal=-solution.normal).is_exact(10.0)
    assert not replace(solution, motion=np.nan * solution.motion).is_exact(10.0)


@pytest.mark.parametrize(("motion", "dry"), [(0.0, -1.0), (0.9, -0.1), (1.25, 0.25), (1.0, 0.0)])
def test_is_exact_sees_wrong_dry_friction(motion: float, dry: float) -> None:
    """Beyond the bound; below it though the joint moves; along the motion."""
    problem = ContactProblem(M=np.eye(1), v=[1.0], D=[[1.0]], D_bound=[0.25], h=0.1)
    solution = Frictionless().solve(problem)
    assert solution.is_exact(1e-14)
    wrong = replace(solution, motion=np.array([motion]), dry=np.array([dry]))
    assert wrong.momentum_residual() < 1e-14
    assert wrong.dry_residual() > 0.01 and not wrong.is_exact()


@pytest.mark.parametrize(("v", "f"), [(1.0, 0.0), (-1.0, 3.0), (0.0, 3.0), (0.0, 2.0)])
def test_is_exact_sees_wrong_dry_friction_at_acceleration_level(v: float, f: float) -> None:
    """A joint that moves is braked by all of the bound, whichever way it accelerates."""
    problem = ContactProblem(M=np.eye(1), v=[v], f=[f], D=[[1.0]], D_bound=[0.25], h=0.1)
    solution = Viscous(level="acceleration").solve(problem)
    assert solution.is_exact(1e-14)
    for change in (-0.5, 0.5) if abs(f) >= 2.5 or v else (1.0, 0.6):
        wrong = replace(solution, motion=solution.motion + change, dry=solution.dry + change)
        assert wrong.momentum_residual() < 1e-14
        assert wrong.dry_residual() > 0.01 and not wrong.is_exact()


def test_is_exact_sees_a_limit_that_pushes_what_leaves() -> None:
    solution = Frictionless().solve(ContactProblem(M=np.eye(1), v=[1.0], U=[[1.0]]))
    assert solution.is_exact(1e-14)
    wrong = replace(solution, motion=np.array([1.5]), unilateral=np.array([0.5]))
    assert wrong.momentum_residual() < 1e-14
    assert wrong.complementarity() > 0.1 and not wrong.is_exact()


def test_is_exact_sees_spin_of_a_contact_that_is_held() -> None:
    problem = ContactProblem(
        M=np.eye(2), v=[-1.0, 1.0], N=[[1.0, 0.0]], R=[[0.0, 1.0]], R_contact=[0]
    )
    solution = NoSlip().solve(problem)
    assert solution.is_exact(1e-14)
    wrong = replace(solution, motion=np.array([0.0, 1.0]), extra=np.zeros(1))
    assert wrong.momentum_residual() < 1e-14
    assert wrong.slip() > 0.1 and not wrong.is_exact()


@given(contact_fields(targets=True))
def test_residuals_do_not_depend_on_units(given_fields: Fields) -> None:
    """Made wrong in the same way, problem and scaled problem are equally wrong."""
    solution = solve(Frictionless(), given_fields)
    p = solution.problem
    wrong = replace(solution, motion=solution.motion + 0.01 * p.v)
    scaled = ContactProblem(
        **given_fields | {"M": 1e6 * given_fields["M"], "f": 1e6 * given_fields.get("f", 0.0 * p.v)}
    )
    same = replace(wrong, problem=scaled, normal=1e6 * wrong.normal,
                   bilateral=1e6 * wrong.bilateral)  # fmt: skip
    names = ("penetration_speed", "complementarity", "bilateral_residual", "momentum_residual")
    for name in names:
        assert getattr(same, name)() == pytest.approx(getattr(wrong, name)(), rel=1e-6, abs=1e-13)


def test_is_exact_where_the_free_motion_cancels() -> None:
    """Thrown up just as fast as gravity brakes: the free velocity is rounding, and so is |v+|."""
    problem = ContactProblem(M=[[0.7]], v=[0.0981], f=[-0.7 * 9.81], h=0.01, N=[[0.3]])
    solution = Frictionless().solve(problem)
    np.testing.assert_allclose(solution.velocity, 0.0, atol=1e-16)
    assert solution.is_exact()


def test_is_exact_where_drag_alone_presses() -> None:
    """A limit holds a body against the drag of a floor: a = 0, f = 0."""
    problem = ContactProblem(
        M=np.diag([3.0, 0.7]), v=[0.3, 0.1], h=0.1, N=[[0.0, 1.0]], S=[[1.0, 0.1]],
        U=[[1.0, 0.2], [0.0, -1.0]],
    )  # fmt: skip
    solution = Viscous(mu_v=0.7, level="acceleration").solve(problem)
    np.testing.assert_allclose(solution.acceleration, 0.0, atol=1e-16)
    assert solution.is_exact()


# --- invariance ---------------------------------------------------------------------------------


@each_model
@given(contact_fields(targets=True), seeds)
def test_permuting_contacts(model: ContactModel, given_fields: Fields, seed: int) -> None:
    order = np.random.default_rng(seed).permutation(len(given_fields["N"]))
    solution = solve(model, given_fields)
    other = solve(model, pick(given_fields, order))
    assert_same_motion(solution.problem, solution.velocity, other.velocity)


@pytest.mark.parametrize("model", [NoSlip(grip="all"), NoSlip(), Frictionless()])
@given(contact_fields(targets=True), seeds)
def test_duplicating_contacts(model: ContactModel, given_fields: Fields, seed: int) -> None:
    n = len(given_fields["N"])
    rng = np.random.default_rng(seed)
    order = rng.permutation(np.concatenate([np.arange(n), rng.integers(0, max(n, 1), min(n, 3))]))
    solution = solve(model, given_fields)
    other = solve(model, pick(given_fields, order.astype(int)))
    assert_same_motion(solution.problem, solution.velocity, other.velocity)


@given(body_fields(targets=True), st.integers(2, 4))
def test_duplicating_viscous_contacts_shares_the_pair(given_fields: Fields, times: int) -> None:
    """Each point drags, so k copies drag k times; per pair they drag as one set."""
    order = np.repeat(np.arange(len(given_fields["N"])), times)
    once, many = given_fields, pick(given_fields, order)
    single = solve(Viscous(mu_v=0.7), once)
    other = solve(Viscous(mu_v=0.7 / times), many)
    assert_same_motion(single.problem, single.velocity, other.velocity)
    by_pair = solve(Viscous(mu_v=0.7, per_pair=True), once)
    same = solve(Viscous(mu_v=0.7, per_pair=True), many)
    assert_same_motion(single.problem, by_pair.velocity, same.velocity)


@each_model
@given(body_fields(targets=True), seeds)
def test_rotating_the_world(model: ContactModel, given_fields: Fields, seed: int) -> None:
    R = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))[0]
    Q = np.kron(np.eye(len(given_fields["v"]) // 3), R)
    solution = solve(model, given_fields)
    other = solve(model, transformed(given_fields, Q))
    assert_same_motion(solution.problem, solution.velocity, Q.T @ other.velocity)


@each_model
@given(body_fields(targets=True), seeds)
def test_turning_the_tangents(model: ContactModel, given_fields: Fields, seed: int) -> None:
    """Any two orthonormal tangents will do."""
    angle = np.random.default_rng(seed).uniform(0.0, 2.0 * np.pi, (len(given_fields["N"]), 1))
    S, T = given_fields["S"], given_fields["T"]
    turned = {
        "S": np.cos(angle) * S + np.sin(angle) * T,
        "T": np.cos(angle) * T - np.sin(angle) * S,
    }
    solution = solve(model, given_fields)
    other = solve(model, given_fields | turned)
    assert_same_motion(solution.problem, solution.velocity, other.velocity)


UNITS = {
    "mass": (1e6, 1.0, 1.0), "length": (1.0, 1e6, 1.0), "time": (1.0, 1.0, 1e6),
    "small mass": (1e-6, 1.0, 1.0), "small length": (1.0, 1e-6, 1.0),
    "small time": (1.0, 1.0, 1e-6), "all": (1e6, 1e-6, 1e6),
}  # fmt: skip


@pytest.mark.parametrize("units", UNITS.values(), ids=UNITS.keys())
@given(body_fields(targets=True))
def test_units(units: tuple[float, float, float], given_fields: Fields) -> None:
    given_fields = given_fields | {"mu_v": np.full(len(given_fields["N"]), 0.7)}
    other_fields, factor = in_units(given_fields, *units)
    models = {**VELOCITY_MODELS, "viscous": Viscous(mu_v=None)}
    for model in models.values():
        solution, other = solve(model, given_fields), solve(model, other_fields)
        assert_same_motion(solution.problem, solution.velocity, other.velocity / factor)
        assert other.is_exact()
    level = Viscous(mu_v=None, level="acceleration")
    solution, other = solve(level, given_fields), solve(level, other_fields)
    back = other.acceleration / factor * units[2]
    assert acceleration_distance(solution, back) <= SAME


def acceleration_distance(solution: ContactSolution, a: np.ndarray) -> float:
    """How far another acceleration is, relative to that of the free body with its drag."""
    p = solution.problem
    free = p.solve(p.f - solution.drag @ p.v)
    size = max(np.linalg.norm(p.cholesky.T @ x) for x in (free, a, solution.acceleration))
    error = np.linalg.norm(p.cholesky.T @ (solution.acceleration - a))
    return float(error / size) if size > 0.0 else 0.0


@each_model
@given(contact_fields(targets=True))
def test_general_coordinates(model: ContactModel, given_fields: Fields) -> None:
    """Any linear change of coordinates, here a shear that couples all of them."""
    m = len(given_fields["v"])
    Q = np.eye(m) + 0.5 * np.tri(m, k=-1) / max(m, 1)
    solution = solve(model, given_fields)
    other = solve(model, transformed(given_fields, Q))
    assert_same_motion(solution.problem, solution.velocity, np.linalg.solve(Q, other.velocity))


# --- solvers ------------------------------------------------------------------------------------


def suits_dense_solvers(solution: ContactSolution) -> bool:
    """Whether squares of angles between rows can be told from rounding, and something moves.

    The dense solvers form K = G M^-1 G' and F = N P N', so rows must be dependent or clearly not,
    and the motion that equality rows leave must not be rounding.
    """
    p = solution.problem
    velocity = solution.level == "velocity"
    L = np.linalg.cholesky(p.inertia + (p.h or 0.0) * solution.drag * velocity)
    G = np.linalg.solve(L, solution.active[: solution.rank].T).T
    B = np.linalg.solve(L, np.vstack([p.N, p.U, p.D]).T).T
    force = p.impulse if velocity else p.f - solution.drag @ p.v
    free = np.linalg.solve(L, force)
    basis = null_space(G)
    if np.linalg.norm(basis.T @ free) <= 1e-6 * np.linalg.norm(free):
        return False
    left, length = np.linalg.norm(B @ basis, axis=1), np.linalg.norm(B, axis=1)
    if ((left > 1e-11 * length) & (left < 1e-2 * length)).any():
        return False
    for rows in (G, (B @ basis)[left > 1e-11 * length]):
        if rows.size:
            unit = rows / np.linalg.norm(rows, axis=1)[:, None]
            values = np.linalg.svd(unit, compute_uv=False)
            if ((values > 1e-12) & (values < 1e-2)).any():
                return False
    return True


SOLVER_MODELS: dict[str, Any] = {
    "no slip, all": lambda s: NoSlip(grip="all", solver=s),
    "viscous": lambda s: Viscous(mu_v=0.7, solver=s),
    "frictionless": lambda s: Frictionless(solver=s),
    "acceleration": lambda s: Viscous(mu_v=0.7, solver=s, level="acceleration"),
}


def steepness(solution: ContactSolution) -> float:
    """The smallest singular value, but for zeros, of the active rows, each of length one."""
    p = solution.problem
    velocity = solution.level == "velocity"
    L = np.linalg.cholesky(p.inertia + (p.h or 0.0) * solution.drag * velocity)
    rows = np.linalg.solve(L, solution.active.T).T
    if not rows.size:
        return 1.0
    values = np.linalg.svd(rows / np.linalg.norm(rows, axis=1)[:, None], compute_uv=False)
    return float(values[values > 1e-12].min(initial=1.0))


@pytest.mark.parametrize("make", SOLVER_MODELS.values(), ids=SOLVER_MODELS.keys())
@given(st.one_of(contact_fields(targets=True), contact_fields()), seeds)
def test_solvers_agree(make: Any, given_fields: Fields, seed: int) -> None:
    # limits and brakes can share a load with contacts in many ways, and then other sets grip
    if "c_N" not in given_fields:
        given_fields = with_extras(np.random.default_rng(seed), given_fields)
    first = solve(make("ppm"), given_fields)
    assume(suits_dense_solvers(first))
    for solver in ("qp", "lemke"):
        other = solve(make(solver), given_fields)
        p = first.problem
        brake = np.linalg.solve(p.cholesky, np.abs(p.D.T) @ p.D_bound)
        free = p.cholesky.T @ p.solve(first.drag @ p.v) if first.level == "acceleration" else 0.0
        size = max(first.scale, np.linalg.norm(brake), np.linalg.norm(free))
        error = p.cholesky.T @ (first.motion - other.motion)
        # what is certified is the speed along the rows, which the motion follows the less, the
        # nearer to each other the rows are
        assert np.linalg.norm(error) <= 10.0 * CERTIFICATE / steepness(first) * size


@pytest.mark.parametrize("copies", [1, 3])
def test_forces_of_rounding_hold_nothing(copies: int) -> None:
    """Contacts that graze: held they come to rest, and then nothing but rounding presses them."""
    v = np.array([-1.0, -1.0, 1.0, -1.0, 1.0])
    N = np.array([[0.0, -1.0, -1.0, -1.0, -1.0], [-1.0, -1.0, -1.0, 0.0, -1.0]])
    T = np.array([[1.0, 1.0, 0.0, 1.0, 0.0], [1.0, 1.0, 1.0, 1.0, 1.0]])
    rows = {"N": np.vstack([N] * copies), "T": np.vstack([T] * copies)}
    problem = ContactProblem(M=np.eye(5), v=v, S=0.0 * rows["T"], h=1.0, **rows)
    solution = NoSlip().solve(problem)
    assert solution.consistent and not solution.normal.any()
    np.testing.assert_array_equal(solution.velocity, v)


@pytest.mark.parametrize("solver", ["qp", "lemke"])
class TestDenseSolversWhereJointsLeaveNoFreedom:
    def test_feasible(self, solver: str) -> None:
        problem = ContactProblem(M=[[1.0]], v=[0.36], N=[[0.13]], J=[[0.11]])
        np.testing.assert_allclose(Frictionless().solve(problem).velocity, 0.0, atol=1e-15)
        solution = Frictionless(solver=solver).solve(problem)
        np.testing.assert_allclose(solution.velocity, 0.0, atol=1e-15)

    def test_infeasible(self, solver: str) -> None:
        problem = ContactProblem(M=[[2.0]], v=[1.0], N=[[-0.7]], S=[[0.3]], c_N=[1.0])
        with pytest.raises(hf.InfeasibleError):
            NoSlip(grip="all").solve(problem)
        with pytest.raises(hf.InfeasibleError):
            NoSlip(grip="all", solver=solver).solve(problem)


def assert_contradiction(error: hf.InfeasibleError) -> None:
    """The weighted rows cancel, the weighted targets do not."""
    p, u, weights = error.problem, error.certificate, error.equality_weights
    assert (u >= 0.0).all() and list(weights) == ["J", "S", "T", "R"]
    parts = [(p.N, u[: p.n]), (p.U, u[p.n :]), *((getattr(p, k), w) for k, w in weights.items())]
    size = max(np.abs(rows * weight[:, None]).max(initial=0.0) for rows, weight in parts)
    assert np.abs(sum(rows.T @ weight for rows, weight in parts)).max() <= 1e-9 * size
    assert p.c_N @ u[: p.n] + p.c_U @ u[p.n :] + p.c_J @ weights["J"] > 0.0


@each_solver
def test_proof_of_infeasibility_with_held_tangents(solver: str) -> None:
    problem = ContactProblem(
        M=np.eye(3), v=np.zeros(3), N=[[1, 0, 0], [-1, 0, 0], [0, 0, 1]], S=[[0, 1, 0]] * 3,
        T=[[0, 0, 1], [0, 0, 1], [1, 0, 0]], c_N=[1, 1, 0], J=[[0.0, 1.0, 0.0]],
    )  # fmt: skip
    with pytest.raises(hf.InfeasibleError, match=r"contacts \[\d\], no slip at contacts") as caught:
        NoSlip(grip="all", solver=solver).solve(problem)
    assert_contradiction(caught.value)
    assert caught.value.equality_weights["T"][2] != 0.0


@each_solver
def test_proof_of_infeasibility_with_joints(solver: str) -> None:
    """Two drives push a slider into a wall; the brake has no part in it."""
    problem = ContactProblem(
        M=np.eye(2), v=[0.0, 1.0], N=[[0.0, 1.0], [1.0, 0.0]], J=[[0.0, 1.0], [1.0, 0.5]],
        c_J=[0.0, -2.0], D=[[1.0, 1.0]], D_bound=[0.1],
    )  # fmt: skip
    with pytest.raises(hf.InfeasibleError, match=r"contacts \[1\], bilateral rows J \[0, 1\]") as e:
        Frictionless(solver=solver).solve(problem)
    assert_contradiction(e.value)


@each_solver
@pytest.mark.parametrize("seed", range(8))
def test_proof_of_infeasibility_with_rows_of_every_kind(seed: int, solver: str) -> None:
    rng = np.random.default_rng(seed)
    N, S, T = rng.normal(size=(3, 2, 4))
    problem = ContactProblem(
        M=np.eye(4) + 0.1, v=rng.normal(size=4), N=N, S=S, T=T, J=rng.normal(size=(1, 4)),
        U=rng.normal(size=(1, 4)), D=rng.normal(size=(1, 4)), D_bound=[0.1], c_N=[1.0, 2.0],
        c_J=[1.0], c_U=[1.0], R=rng.normal(size=(1, 4)), R_contact=[1], h=0.1,
    )  # fmt: skip
    for laws in ([stick(), stick()], [frictionless(), stick()]):
        with pytest.raises(hf.InfeasibleError) as caught:
            Mixed(laws, grip="all", solver=solver).solve(problem)
        assert_contradiction(caught.value)


def test_lemke_with_brakes_at_rest() -> None:
    problem = ContactProblem(
        M=np.eye(2), v=[0.0, 0.0], D=[[0.6, 0.8], [-0.3, 0.7]], D_bound=[0.3, 0.7]
    )
    solution = Frictionless(solver="lemke").solve(problem)
    np.testing.assert_allclose(solution.velocity, 0.0, atol=1e-15)


def test_lemke_with_brakes_and_a_joint_at_rest() -> None:
    problem = ContactProblem(
        M=np.eye(3), v=np.zeros(3), J=[[0.0, 1.0, 1.0]],
        D=[[-0.2, 0.5, 0.2], [0.4, -0.7, -0.1]], D_bound=[0.9, 0.4],
    )  # fmt: skip
    solution = Frictionless(solver="lemke").solve(problem)
    np.testing.assert_allclose(solution.velocity, 0.0, atol=1e-15)


@pytest.mark.parametrize("solver", ["qp", "lemke"])
def test_nearly_parallel_tangents(solver: str) -> None:
    """Two tangents in the plane hold everything, though they differ by little."""
    problem = ContactProblem(
        M=np.diag([1.0, 2.0]), v=[1.0, -0.7], S=[[0.6, 0.8], [0.6, 0.8001]],
        N=[[0.3, 0.7], [0.1, -0.2]],
    )  # fmt: skip
    for one in ("ppm", solver):
        solution = NoSlip(grip="all", solver=one).solve(problem)
        assert not solution.rank_ambiguous
        np.testing.assert_allclose(solution.velocity, 0.0, atol=1e-9)


@each_model
@given(contact_fields(targets=True), seeds)
def test_warm_start(model: ContactModel, given_fields: Fields, seed: int) -> None:
    """From the loaded set of the same problem, or from any other, to the same motion."""
    solution = solve(model, given_fields)
    p = solution.problem
    again = model.solve(p, warm_start=solution.loaded)
    assert_same_motion(p, solution.velocity, again.velocity)
    rng = np.random.default_rng(seed)
    random = rng.permutation(p.n)[: rng.integers(0, p.n + 1)]
    assert_same_motion(p, solution.velocity, model.solve(p, warm_start=random).velocity)


@each_no_slip
def test_warm_start_from_a_solution_or_from_rows_that_are_not_there(choice: Any) -> None:
    problem, solver = slope_problem(), choice.get("solver", "newton")
    for model in (NoSlip(**choice), Viscous(solver=solver, level="acceleration")):
        solution = model.solve(problem)
        for warm in (solution, [], [-3, 99], np.array([0, 2**63], dtype=np.uint64), (1, 0)):
            again = model.solve(problem, warm_start=warm)
            np.testing.assert_allclose(again.motion, solution.motion, atol=1e-13)


# --- grip only where a contact is pressed -------------------------------------------------------


def tied(solution: ContactSolution) -> bool:
    """Whether tangential force, and that of further friction rows, acts at pressed contacts only.

    Forces of 1e-9 of the largest one count as none, as in the model.
    """
    p = solution.problem
    tangential = np.linalg.norm(solution.tangent, axis=1)
    if len(p.R):
        np.maximum.at(tangential, p.R_contact, np.abs(solution.extra))
    largest = max(solution.normal.max(initial=0.0), tangential.max(initial=0.0))
    return not (tangential > 1e-8 * largest)[solution.normal <= 1e-9 * largest].any()


@given(contact_fields(targets=True), seeds)
def test_loaded_with_mixed_laws(given_fields: Fields, seed: int) -> None:
    """Only contacts that are to stick are released and taken back; the others keep their law."""
    rng = np.random.default_rng(seed)
    laws = [(stick(), viscous(0.5), frictionless())[k] for k in
            rng.integers(0, 3, len(given_fields["N"]))]  # fmt: skip
    solution = solve(Mixed(laws), given_fields)
    wants = np.array([law.kind == "stick" for law in laws], dtype=bool)
    assert not solution.sticking[~wants].any()
    if solution.consistent:
        only = replace(solution, tangent=solution.tangent * wants[:, None])
        assert tied(only)
    assert_proven(solution, 1e-8)  # forces are spread out, to 1e-9 of their effect


@given(contact_fields(targets=True))
def test_loaded_grips_only_where_pressed_or_says_so(given_fields: Fields) -> None:
    solution = solve(NoSlip(), given_fields)
    p = solution.problem
    if solution.consistent:
        assert tied(solution)
        # what is pressed does not slide, whether it was held from the start or not
        pressed = solution.normal > 1e-8 * solution.normal.max(initial=0.0)
        speed = np.abs(solution.sliding) / np.column_stack([p.lengths["S"], p.lengths["T"]])
        assert speed[pressed].max(initial=0.0) <= 1e-8 * solution.scale
    else:  # some contacts jam
        assert solution.is_exact(1e-8)


@given(contact_fields())
def test_loaded_is_the_model_of_the_paper_where_that_is_consistent(given_fields: Fields) -> None:
    """And where no contact leaves by itself: then the answer without force comes first."""
    paper, free = solve(NoSlip(grip="all"), given_fields), solve(Frictionless(), given_fields)
    assume(tied(paper))
    assume((free.separation <= 1e-9 * free.lengths("N") * free.scale).all())
    solution = solve(NoSlip(), given_fields)
    assert solution.consistent
    assert_same_motion(solution.problem, solution.velocity, paper.velocity)


def floor_and_wall(**more: Any) -> ContactProblem:
    """A point in a corner: floor along x, wall along z."""
    return ContactProblem(
        M=np.eye(2), N=[[0.0, 1.0], [1.0, 0.0]], S=[[1.0, 0.0], [0.0, 1.0]], **more
    )


def test_corner() -> None:
    """Leaving the wall and falling on the floor: the wall is released."""
    model = NoSlip()
    falling = model.solve(floor_and_wall(v=[0.0, -1.0]))
    np.testing.assert_allclose(falling.velocity, 0.0, atol=1e-16)
    # the wall holds what presses on the floor only if the floor does not
    assert falling.consistent
    leaving = model.solve(floor_and_wall(v=[2.0, 1.0]))
    np.testing.assert_array_equal(leaving.velocity, [2.0, 1.0])
    assert leaving.consistent and not leaving.sticking.any()


def test_loaded_leaves_a_frictionless_fall_along_a_wall_alone() -> None:
    """Sliding down a wall that is only touched; below, a floor that is pressed holds."""
    wall = {"N": [[1.0, 0.0]], "S": [[0.0, 1.0]]}
    solution = NoSlip().solve(ContactProblem(M=np.eye(2), v=[0.0, -1.0], **wall))
    np.testing.assert_array_equal(solution.velocity, [0.0, -1.0])
    pressed = NoSlip().solve(ContactProblem(M=np.eye(2), v=[-1e-3, -1.0], **wall))
    np.testing.assert_allclose(pressed.velocity, 0.0, atol=1e-15)


def test_loaded_lets_a_rod_leave_the_floor() -> None:
    """Its foot slides and lifts off, so nothing presses.

    Held from the start, the foot would turn the rod into the floor, press, and so justify itself:
    the equations allow that too, as Coulomb friction does from a coefficient of 1.25 on. But no
    force at all is needed for a body that leaves.
    """
    foot = np.array([0.5, -0.5])
    problem = ContactProblem(
        M=np.diag([1.0, 1.0, 0.05]), v=[1.0, 0.1, 0.0], N=[[0.0, 1.0, foot[0]]],
        S=[[1.0, 0.0, -foot[1]]],
    )  # fmt: skip
    assert problem.N @ problem.v > 0.0
    solution = NoSlip().solve(problem)
    np.testing.assert_array_equal(solution.velocity, problem.v)


def test_loaded_is_feasible_where_the_model_of_the_paper_is_not() -> None:
    """A wall moves in from the side; the floor touches but does not press, so it cannot hold."""
    solution = NoSlip().solve(floor_and_wall(v=[0.0, 0.0], c_N=[0.0, 0.1]))
    np.testing.assert_allclose(solution.velocity, [0.1, 0.0], atol=1e-15)


def test_loaded_searches_from_other_starts() -> None:
    """Random contacts, where the first two starts alone found a consistent set for 25 of 60."""
    found = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        N, S, T = rng.normal(size=(3, 4, 5))
        solution = NoSlip().solve(ContactProblem(M=np.eye(5), v=rng.normal(size=5), N=N, S=S, T=T))
        assert tied(solution) or not solution.consistent
        found += solution.consistent
    assert found >= 45


def test_loaded_with_a_joint_listed_twice() -> None:
    """A slider that turns freely lands on a floor: momentum is balanced."""
    joint = [[0.0, 1.0, 0.0], [0.0, 1.0, 0.0]]
    problem = ContactProblem(
        M=np.eye(3), v=[1.0, 0.0, -1.0], J=joint, N=[[0.0, 0.0, 1.0]], S=[[1.0, 0.0, 0.0]]
    )
    solution = NoSlip().solve(problem)
    np.testing.assert_allclose(solution.velocity, 0.0, atol=1e-15)
    np.testing.assert_allclose(solution.tangent_impulse, [[-1.0, 0.0]], atol=1e-15)
    assert solution.is_exact()


# --- mixed laws ---------------------------------------------------------------------------------


@pytest.mark.parametrize("grip", ["loaded", "all"])
@given(contact_fields(targets=True))
def test_mixed_with_one_law_is_that_model(grip: Any, given_fields: Fields) -> None:
    problem = ContactProblem(**given_fields)
    pairs = [
        (stick(), NoSlip(grip=grip)), (viscous(0.7), Viscous(mu_v=0.7)),
        (frictionless(), Frictionless()), (viscous(0.0), Frictionless()),
    ]  # fmt: skip
    for law, model in pairs:
        alone = model.solve(problem)
        for laws in (law, [law] * problem.n):
            mixed = Mixed(laws, grip=grip).solve(problem)
            assert_same_motion(problem, mixed.velocity, alone.velocity, 1e-14)
            np.testing.assert_array_equal(mixed.sticking, alone.sticking)


@given(contact_fields(targets=True), seeds)
def test_mixed_laws(given_fields: Fields, seed: int) -> None:
    """Each contact by its own law, and the whole the minimiser in the metric of M + h C."""
    rng = np.random.default_rng(seed)
    kinds = rng.integers(0, 3, len(given_fields["N"]))
    mu_v = rng.uniform(0.1, 2.0, len(kinds))
    laws = [(stick(), viscous(mu), frictionless())[k] for k, mu in zip(kinds, mu_v, strict=True)]
    solution = solve(Mixed(laws, grip="all"), given_fields)
    p = solution.problem
    np.testing.assert_array_equal(solution.sticking, kinds == 0)
    assert_proven(solution)
    assert not solution.tangent[kinds == 2].any()
    drag = -p.step * mu_v[:, None] * solution.sliding
    np.testing.assert_allclose(solution.tangent[kinds == 1], drag[kinds == 1], rtol=1e-12)


def test_mixed_wheel_and_slider() -> None:
    """A plank on a sticking foot and a viscous one turns about the first."""
    centre = np.zeros((1, 3))
    feet = [np.array([x, 0.0, -0.1]) for x in (-1.0, 1.0)]
    rows = {
        name: [point_row(centre, None, 0, foot, along) for foot in feet]
        for name, along in zip("NST", (Z, X, Y), strict=True)
    }
    moment, mu, h = 1 / 3, 2.0, 0.05
    problem = ContactProblem(
        M=np.diag([1.0, 1.0, 1.0, 0.01, 0.3, moment]),
        v=[0.0, 1.0, -0.2, 0.0, 0.0, 0.0],
        h=h,
        **rows,
    )
    solution = Mixed([stick(), viscous(mu)]).solve(problem)
    # about the foot that sticks: (I + m l^2) w+ = m v l - h mu (2 l)^2 w+, with the roll about x
    # free, whose foot is 0.1 m below the centre: m and its 0.01 kg m^2 act like a larger mass
    spin = solution.velocity[5]
    np.testing.assert_allclose(solution.sliding[0], 0.0, atol=1e-15)
    drag = [0.0, -h * mu * 2.0 * spin]
    np.testing.assert_allclose(solution.tangent[1], drag, rtol=1e-13, atol=1e-17)
    turned = (moment + 1.0) * spin + 4.0 * h * mu * spin
    side = solution.velocity[3] * 0.1  # v_y = spin - 0.1 w_x at the foot
    assert solution.velocity[1] == pytest.approx(spin - side, rel=1e-13)
    assert turned - side == pytest.approx(1.0, rel=1e-13)


# --- further friction rows, limits, dry friction ------------------------------------------------

BALL_M = np.diag([0.7] * 3 + [0.0252] * 3)  # 0.7 kg, 0.3 m


def ball(v: Any, contacts: int = 1, **more: Any) -> ContactProblem:
    """A solid ball on a floor, the contact listed once or more often."""
    centre = np.zeros((1, 3))
    rows = {
        name: [point_row(centre, None, 0, -0.3 * Z, along)] * contacts
        for name, along in zip("NST", (Z, X, Y), strict=True)
    }
    return ContactProblem(M=BALL_M, v=v, **rows, **more)


SPIN_ROWS = [spin_row(np.zeros((1, 3)), None, 0, along) for along in (Z, X, Y)]


@each_no_slip
def test_torsion_sticks(choice: Any) -> None:
    """A spinning top with a patch of contact stops; without the row it spins on."""
    model = NoSlip(**choice)
    v = [0.0, 0.0, -1.0, 0.0, 0.0, 5.0]
    spinning = model.solve(ball(v))
    np.testing.assert_allclose(spinning.velocity, [0, 0, 0, 0, 0, 5.0], atol=1e-14)
    stopped = model.solve(ball(v, R=SPIN_ROWS[:1], R_contact=[0]))
    np.testing.assert_allclose(stopped.velocity, 0.0, atol=1e-14)
    np.testing.assert_allclose(stopped.extra, [-0.0252 * 5.0], rtol=1e-13)
    assert stopped.is_exact(1e-13)


@each_no_slip
def test_rolling_friction_sticks(choice: Any) -> None:
    """With torsion and both rolling rows the ball stops dead instead of rolling on with 5/7."""
    model = NoSlip(**choice)
    v = [1.0, 0.5, -1.0, 2.0, 3.0, 5.0]
    solution = model.solve(ball(v, contacts=2, R=SPIN_ROWS, R_contact=[1, 1, 1]))
    np.testing.assert_allclose(solution.velocity, 0.0, atol=1e-14)
    assert solution.rank == 5 and solution.is_exact(1e-13)


def test_torsion_is_released_with_its_contact() -> None:
    """A ball that leaves the floor keeps its spin; the paper's model stops it."""
    v = [0.0, 0.0, 1.0, 0.0, 0.0, 5.0]
    problem = ball(v, R=SPIN_ROWS[:1], R_contact=[0])
    free = NoSlip().solve(problem)
    np.testing.assert_array_equal(free.velocity, v)
    assert not free.extra.any() and free.consistent
    held = NoSlip(grip="all").solve(problem)
    np.testing.assert_allclose(held.velocity, [0, 0, 1.0, 0, 0, 0], atol=1e-15)


def test_torsion_belongs_to_sticking_contacts_only() -> None:
    v = [0.0, 0.0, -1.0, 0.0, 0.0, 5.0]
    problem = ball(v, R=SPIN_ROWS[:1], R_contact=[0], h=0.01)
    for model in (Frictionless(), Viscous(), Mixed(frictionless())):
        np.testing.assert_allclose(model.solve(problem).velocity[5], 5.0, rtol=1e-15)


@each_no_slip
@pytest.mark.parametrize(("v", "c", "exact"), [(-1.0, 0.0, 0.0), (1.0, 0.0, 1.0), (1.0, 2.0, 2.0)])
def test_joint_limit(v: float, c: float, exact: float, choice: Any) -> None:
    problem = ContactProblem(M=[[2.0]], v=[v], U=[[0.5]], c_U=[0.5 * c])
    solver = choice.get("solver", "newton")
    for model in (NoSlip(**choice), Viscous(solver=solver), Frictionless(solver=solver)):
        solution = model.solve(replace_h(problem))
        np.testing.assert_allclose(solution.velocity, [exact], atol=1e-15)
        np.testing.assert_allclose(solution.unilateral, [2.0 * (exact - v) / 0.5], atol=1e-14)
        np.testing.assert_array_equal(solution.loaded, [0] if exact != v else [])
        assert solution.is_exact()


def replace_h(problem: ContactProblem, h: float = 0.01) -> ContactProblem:
    return replace(problem, h=h)


def test_limit_and_contact_meet() -> None:
    """A floor at 45 degrees sends a falling point sideways, where a limit stops it."""
    problem = ContactProblem(
        M=np.eye(2), v=[0.0, -1.0], N=[[np.sqrt(0.5), np.sqrt(0.5)]], U=[[-1.0, 0.0]]
    )
    solution = Frictionless().solve(problem)
    np.testing.assert_allclose(solution.velocity, 0.0, atol=1e-15)
    np.testing.assert_allclose(solution.normal, [np.sqrt(2.0)], rtol=1e-14)
    np.testing.assert_allclose(solution.unilateral, [1.0], rtol=1e-14)
    np.testing.assert_array_equal(solution.loaded, [0, 1])
    away = Frictionless().solve(replace(problem, v=np.array([-2.0, -1.0])))
    np.testing.assert_allclose(away.velocity, [-0.5, 0.5], rtol=1e-14)
    np.testing.assert_array_equal(away.loaded, [0])


@each_no_slip
@pytest.mark.parametrize("momentum", [0.0, 0.3, -0.3, 0.5, 0.7, -2.0, 1e6])
def test_dry_friction(momentum: float, choice: Any) -> None:
    """Sticks up to its bound, 0.5 N s, and slides above with p - sign(p) bound."""
    mass, gear, bound = 2.0, 4.0, 0.5 / 4.0
    problem = ContactProblem(M=[[mass]], v=[momentum / mass], D=[[gear]], D_bound=[bound], h=0.01)
    exact = np.sign(momentum) * max(0.0, abs(momentum) - 0.5) / mass
    solver = choice.get("solver", "newton")
    for model in (NoSlip(**choice), Viscous(solver=solver), Frictionless(solver=solver)):
        solution = model.solve(problem)
        rounding = 1e-15 * max(abs(momentum), 0.5)
        assert solution.velocity[0] == pytest.approx(exact, abs=rounding / mass)
        assert abs(solution.dry[0]) <= bound
        assert solution.dry[0] * gear == pytest.approx(mass * exact - momentum, abs=rounding)
        assert solution.is_exact()


@pytest.mark.parametrize("speed", [0.0, 1.0, -1.0])
@pytest.mark.parametrize("force", [0.2, -0.2, 3.0])
def test_dry_friction_at_acceleration_level(force: float, speed: float) -> None:
    """A moving joint is braked by the whole loss; one at rest holds up to it."""
    mass, loss, h = 2.0, 0.5, 0.01
    problem = ContactProblem(M=[[mass]], v=[speed], f=[force], h=h, D=[[1.0]], D_bound=[h * loss])
    solution = Viscous(level="acceleration").solve(problem)
    if speed:
        exact = (force - np.sign(speed) * loss) / mass
    else:
        exact = np.sign(force) * max(0.0, abs(force) - loss) / mass
    np.testing.assert_allclose(solution.acceleration, [exact], rtol=1e-14, atol=1e-17)
    assert abs(solution.dry[0]) <= loss * (1.0 + 1e-15)
    assert solution.momentum_residual() <= 1e-15


def test_brake_and_floor_together() -> None:
    """A cart of 1 kg whose brake gives 0.3 N s lands on a floor that does not hold it."""
    problem = ContactProblem(
        M=np.eye(2), v=[1.0, -1.0], N=[[0.0, 1.0]], S=[[1.0, 0.0]], D=[[1.0, 0.0]], D_bound=[0.3]
    )
    np.testing.assert_allclose(Frictionless().solve(problem).velocity, [0.7, 0.0], atol=1e-15)
    stuck = NoSlip().solve(problem)
    np.testing.assert_allclose(stuck.velocity, 0.0, atol=1e-15)
    assert stuck.is_exact() and abs(stuck.dry[0]) <= 0.3


# --- viscous ------------------------------------------------------------------------------------


def sustained(seed: int) -> tuple[Fields, float]:
    """A problem whose contacts and joints are not approached: they stay, with a drag of order 1."""
    rng = np.random.default_rng(seed)
    m, n, j = 8, 3, 1
    N, S, T = rng.normal(size=(3, n, m))
    J = rng.normal(size=(j, m))
    basis = null_space(np.vstack([N, J]))
    A = rng.normal(size=(m, m))
    given_fields = {
        "M": A @ A.T + np.eye(m), "v": basis @ rng.normal(size=basis.shape[1]),
        "f": rng.normal(size=m) - 5.0 * N.sum(axis=0), "N": N, "S": S, "T": T, "J": J,
    }  # fmt: skip
    return given_fields, 0.5


@pytest.mark.parametrize("seed", range(8))
def test_velocity_level_tends_to_acceleration_level_at_first_order(seed: int) -> None:
    """(v+ - v) / h - a = O(h): the measured order, with the rows held."""
    given_fields, mu_v = sustained(seed)
    level = Viscous(mu_v=mu_v, level="acceleration")
    a = level.solve(ContactProblem(**given_fields, h=1.0)).acceleration
    errors = []
    for h in (2e-4, 1e-4, 5e-5):
        problem = ContactProblem(**given_fields, h=h)
        solution = Viscous(mu_v=mu_v).solve(problem)
        errors.append(np.linalg.norm((solution.velocity - problem.v) / h - a))
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert ((orders >= 0.9) & (orders <= 1.1)).all()
    assert errors[-1] < 1e-2 * np.linalg.norm(a)


@each_solver
def test_implicit_drag_is_stable_for_any_step(solver: str) -> None:
    """h mu / m = 1e6: the slip is divided by 1 + 1e6 in each step, never turned around."""
    h, mu, mass = 10.0, 2e5, 2.0
    v = np.array([1.0, -3.0, 0.0])
    rows = {"N": [Z], "S": [X], "T": [Y]}
    model = Viscous(mu_v=mu, solver=solver)
    for _ in range(3):
        problem = ContactProblem(M=mass * np.eye(3), v=v, h=h, **rows)
        after = model.solve(problem).velocity
        rounding = 1e-15 * np.abs(v).max() if solver == "newton" else 0.0  # of the motion before
        np.testing.assert_allclose(after, v / (1.0 + 1e6), rtol=1e-13, atol=rounding)
        v = after


@given(body_fields(forces=False), st.sampled_from([1e-6, 1.0, 1e6]))
def test_implicit_drag_never_adds_energy(given_fields: Fields, stiffness: float) -> None:
    """Whatever the step: h mu / m from 1e-6 to 1e6 of the lightest coordinate."""
    lightest = np.diag(given_fields["M"]).min()
    mu_v = stiffness * lightest / given_fields["h"]
    p = ContactProblem(**given_fields)
    solution = Viscous(mu_v=mu_v).solve(p)
    before = 0.5 * p.v @ p.inertia @ p.v
    assert solution.kinetic_energy() <= before * (1.0 + 1e-12)
    # the drag itself takes energy at every contact
    assert ((solution.tangent * solution.sliding).sum(axis=1) <= 1e-15 * before).all()


def test_drag_per_pair_of_bodies() -> None:
    """Four corners share what one point would have had; each pair has its own."""
    rows = {"N": [Z] * 5, "S": [X] * 5, "T": [Y] * 5}
    problem = ContactProblem(M=np.eye(3), v=X, h=0.1, **rows, bodies=[[0, 1]] * 4 + [[0, 2]])
    model = Viscous(mu_v=3.0, per_pair=True)
    solution = model.solve(problem)
    np.testing.assert_allclose(solution.velocity, X / (1.0 + 0.1 * 2 * 3.0), rtol=1e-15)
    np.testing.assert_allclose(solution.tangent[:4, 0].sum(), solution.tangent[4, 0], rtol=1e-15)


def test_drag_per_pair_whichever_body_comes_first() -> None:
    rows = {"N": [Z] * 2, "S": [X] * 2, "T": [Y] * 2}
    problem = ContactProblem(M=np.eye(3), v=X, h=0.1, **rows, bodies=[[0, 1], [1, 0]])
    solution = Viscous(mu_v=3.0, per_pair=True).solve(problem)
    np.testing.assert_allclose(solution.velocity, X / 1.3, rtol=1e-15)


# --- the linear map -----------------------------------------------------------------------------


def at_bound(solution: ContactSolution) -> np.ndarray:
    """Which brakes slide, and to which side; a joint that moves brakes with all it has."""
    slides = np.abs(solution.dry) >= solution.problem.D_bound
    return np.where(slides, np.sign(solution.dry), 0.0)


LINEAR_MODELS = {**VELOCITY_MODELS, "acceleration": Viscous(mu_v=0.7, level="acceleration")}


@pytest.mark.parametrize(
    ("model", "solver"),
    [
        pytest.param(model, solver, id=f"{name}-{solver}")
        for name, model in LINEAR_MODELS.items()
        for solver in (("newton",) if "loaded" in name else ("ppm", "qp"))
    ],
)
@given(contact_fields(), seeds)
def test_linear_map_is_exact(
    solver: str, model: ContactModel, given_fields: Fields, seed: int
) -> None:
    """The motion for other v and f, as long as the same rows stay loaded, held and braking."""
    model = replace(model, solver=solver)  # pyright: ignore
    rng = np.random.default_rng(seed)
    given_fields = {"f": np.zeros(len(given_fields["v"]))} | given_fields
    given_fields = with_extras(rng, given_fields)
    first = model if solver == "newton" else replace(model, solver="ppm")  # pyright: ignore
    solution = solve(first, given_fields)
    if solver == "qp":
        assume(suits_dense_solvers(solution))
        solution = solve(model, given_fields)
    p, change = solution.problem, solution.linear_map()
    np.testing.assert_allclose(
        change(p.v, p.f),
        solution.motion,
        rtol=0,
        atol=1e-12 * np.abs(solution.motion).max(initial=1),
    )
    dv = 1e-2 * rng.normal(size=p.m)
    df = 1e-2 * p.inertia @ rng.normal(size=p.m)
    other = solve(model, given_fields | {"v": p.v + dv, "f": p.f + df})
    assume(np.array_equal(solution.loaded, other.loaded))
    assume(np.array_equal(solution.sticking, other.sticking))
    assume(np.array_equal(at_bound(solution), at_bound(other)))
    assume(solution.consistent and other.consistent)  # held contacts that jam are not among these
    motions = (p.v, p.solve(p.f), dv, p.solve(df), solution.motion)
    size = max(np.linalg.norm(p.cholesky.T @ x) for x in motions)
    error = np.linalg.norm(p.cholesky.T @ (change(p.v + dv, p.f + df) - other.motion))
    assert error <= SAME * size


def test_linear_map_of_a_brake() -> None:
    """Sticking, the velocity does not depend on v; sliding, it does one to one."""
    problem = ContactProblem(M=[[2.0]], v=[0.1], D=[[1.0]], D_bound=[0.5], f=[0.0], h=0.1)
    sticking = Frictionless().solve(problem).linear_map()
    np.testing.assert_allclose(sticking.A_v, 0.0, atol=1e-16)
    sliding = Frictionless().solve(replace(problem, v=np.array([1.0]))).linear_map()
    np.testing.assert_allclose(sliding.A_v, 1.0, rtol=1e-15)
    np.testing.assert_allclose(sliding.A_f, 0.05, rtol=1e-15)
    np.testing.assert_allclose(sliding.offset, -0.25, rtol=1e-15)


def test_linear_map_of_a_rolling_ball() -> None:
    """d v+ / d v = 5/7, d v+ / d f = 5/7 h / m."""
    problem = ball([1.0, 0.0, -1.0, 0.0, 0.0, 0.0], contacts=3, h=0.01)
    change = NoSlip().solve(problem).linear_map()
    assert change.A_v[0, 0] == pytest.approx(5 / 7, rel=1e-14)
    assert change.A_f[0, 0] == pytest.approx(5 / 7 * 0.01 / 0.7, rel=1e-14)
    np.testing.assert_allclose(change.A_v[2], 0.0, atol=1e-15)


def test_linear_map_of_a_brake_on_a_joint_that_is_held() -> None:
    problem = ContactProblem(
        M=np.eye(2), v=[1.0, 1.0], J=[[1.0, 0.0]], D=[[1.0, 0.0]], D_bound=[1.0]
    )
    np.testing.assert_allclose(
        Frictionless().solve(problem).linear_map().A_v, np.diag([0.0, 1.0]), atol=1e-15
    )


def test_linear_map_does_not_hold_what_is_not_pressed() -> None:
    """At rest beside a wall: pushed along it, the point moves."""
    wall = {"M": np.eye(2), "N": [[0.0, 1.0]], "S": [[1.0, 0.0]]}
    moved = NoSlip().solve(ContactProblem(v=[1e-3, 0.0], **wall)).velocity
    np.testing.assert_array_equal(moved, [1e-3, 0.0])
    change = NoSlip().solve(ContactProblem(v=[0.0, 0.0], **wall)).linear_map()
    np.testing.assert_allclose(change(np.array([1e-3, 0.0]), np.zeros(2)), moved, rtol=1e-12)


# --- forces -------------------------------------------------------------------------------------


def all_rows(solution: ContactSolution) -> np.ndarray:
    """Momentum from every row."""
    p = solution.problem
    total = solution.contact_momentum() + p.J.T @ solution.bilateral
    return total + p.U.T @ solution.unilateral + p.D.T @ solution.dry


@each_model
@given(contact_fields(targets=True))
def test_spread_has_the_same_effect(model: ContactModel, given_fields: Fields) -> None:
    solution = solve(model, given_fields)
    spread = solution.spread()
    p = solution.problem
    np.testing.assert_array_equal(spread.velocity, solution.velocity)
    assert (spread.normal >= 0.0).all()
    assert (
        spread.normal[solution.separation > 1e-6 * p.lengths["N"] * solution.scale] == 0.0
    ).all()
    size = np.linalg.norm(np.linalg.solve(p.cholesky, all_rows(solution)))
    error = np.linalg.norm(np.linalg.solve(p.cholesky, all_rows(spread) - all_rows(solution)))
    # the documented accuracy of the net effect, relative to it
    assert error <= 1e-8 * max(size, solution.scale)
    assert spread.is_exact(1e-8)


@given(contact_fields())
def test_spread_at_acceleration_level(given_fields: Fields) -> None:
    solution = solve(Viscous(mu_v=0.7, level="acceleration"), given_fields)
    spread = solution.spread()
    np.testing.assert_array_equal(spread.acceleration, solution.acceleration)
    np.testing.assert_array_equal(spread.tangent_force, solution.tangent_force)  # drag stays
    assert (spread.normal_force >= 0.0).all()
    assert spread.is_exact(1e-8)


@pytest.mark.parametrize("repeat", [1, 3])
@pytest.mark.parametrize("model", [NoSlip(), NoSlip(grip="all"), Frictionless(), Viscous()])
def test_four_legs_of_a_table_share_equally(model: ContactModel, repeat: int) -> None:
    """A pivoting solver loads two or three of them; spread out, each carries its part."""
    centre = np.zeros((1, 3))
    legs = [np.array([x, y, -0.7]) for x in (-0.6, 0.6) for y in (-0.4, 0.4)] * repeat
    rows = {
        name: [point_row(centre, None, 0, leg, along) for leg in legs]
        for name, along in zip("NST", (Z, X, Y), strict=True)
    }
    problem = ContactProblem(
        M=inertia(1, mass=8.0), v=np.zeros(6), h=0.01, f=[0, 0, -8.0 * GRAVITY, 0, 0, 0], **rows
    )
    spread = model.solve(problem).spread()
    share = 8.0 * GRAVITY * 0.01 / (4 * repeat)
    np.testing.assert_allclose(spread.normal_impulse, share, rtol=1e-13)
    np.testing.assert_allclose(spread.tangent_impulse, 0.0, atol=1e-14 * share)


def test_a_leg_that_would_pull_is_left_out() -> None:
    """The load stands outside the middle of five feet in a row: least squares would pull one."""
    places = np.array([0.0, 1.0, 2.0, 3.0, 4.0])
    N = np.column_stack([np.ones(5), places])
    load = np.array([-1.0, -0.5])  # at x = 0.5
    problem = ContactProblem(M=np.eye(2), v=load, N=N)
    plain = np.linalg.lstsq(N.T, -load)[0]
    assert plain.min() < 0.0
    spread = Frictionless().solve(problem).spread()
    assert (spread.normal >= 0.0).all()
    np.testing.assert_allclose(N.T @ spread.normal, -load, rtol=1e-12)
    # minimum norm subject to signs: three feet act, and the solution is linear in their place
    np.testing.assert_allclose(spread.normal, [7 / 12, 4 / 12, 1 / 12, 0.0, 0.0], atol=1e-12)


@given(body_fields())
def test_pair_sums_add_up(given_fields: Fields) -> None:
    """To all that the contacts do; and only the two bodies of a pair are touched by it."""
    for model in (NoSlip(grip="all"), Viscous(mu_v=0.7)):
        solution = solve(model, given_fields)
        pairs, impulses = solution.pair_sums()
        p = solution.problem
        total = solution.contact_momentum()
        each = np.abs(p.N).T @ solution.normal + sum(
            np.abs(rows).T @ np.abs(solution.tangent[:, k]) for k, rows in enumerate((p.S, p.T))
        )
        assert (np.abs(impulses.sum(axis=0) - total) <= 1e-14 * each).all()
        for pair, impulse in zip(pairs, impulses, strict=True):
            others = [b for b in range(p.m // 6) if b not in pair]
            assert not impulse.reshape(-1, 6)[others].any()
            # Newton's third law: what one gets, the other gives
            if (pair >= 0).all():
                linear = impulse.reshape(-1, 6)[:, :3]
                np.testing.assert_allclose(linear.sum(axis=0), 0.0, atol=1e-14 * each.max())
        spread = solution.spread()
        if p.j == 0:  # joints can take over what contacts carry
            size = np.linalg.norm(np.linalg.solve(p.cholesky, total))
            error = np.linalg.solve(p.cholesky, spread.contact_momentum() - total)
            assert np.linalg.norm(error) <= 1e-8 * max(size, solution.scale)


def test_pair_sums_whichever_body_comes_first() -> None:
    """Rows already hold both bodies, so the sum needs no sign."""
    problem = ContactProblem(
        M=np.eye(2), v=[-1.0, -1.0], N=np.eye(2), bodies=[[3, 1], [1, 3]], h=0.1
    )
    pairs, impulses = Frictionless().solve(problem).pair_sums()
    np.testing.assert_array_equal(pairs, [[1, 3]])
    np.testing.assert_array_equal(impulses, [[1.0, 1.0]])


def test_required_friction() -> None:
    """|f_t| / f_n; zero without tangential force, inf where nothing presses."""
    N, S, T = np.eye(3)[[2, 2]], np.eye(3)[[0, 0]], np.eye(3)[[1, 1]]
    solution = NoSlip(grip="all").solve(ContactProblem(M=np.eye(3), v=-np.ones(3), N=N, S=S, T=T))
    forces = {"normal": np.array([2.0, 0.0]), "tangent": np.array([[3.0, 4.0], [0.0, 0.0]])}
    np.testing.assert_allclose(replace(solution, **forces).required_friction(), [2.5, 0.0])
    forces = {"normal": np.array([2.0, 0.0]), "tangent": np.array([[0.0, 0.0], [3.0, 4.0]])}
    np.testing.assert_array_equal(replace(solution, **forces).required_friction(), [0.0, np.inf])


# --- the grasp of the paper ---------------------------------------------------------------------


def test_ranks_of_the_grasp() -> None:
    scene = grasp(2)
    solution = NoSlip(grip="all").solve(ContactProblem(**scene))
    assert (solution.problem.m, solution.problem.n, solution.problem.j) == (24, 36, 10)
    assert np.linalg.matrix_rank(scene["N"]) == 9
    assert np.linalg.matrix_rank(np.vstack([scene["S"], scene["T"]])) == 9
    assert np.linalg.matrix_rank(np.vstack([scene["J"], scene["S"], scene["T"]])) == 18
    assert solution.rank == find_indices(*(scene[name] for name in "MJST")).rank == 18
    assert not solution.rank_ambiguous


@each_no_slip
@pytest.mark.parametrize("boxes", [2, 3, 4, 8])
def test_grasp_is_held(boxes: int, choice: Any) -> None:
    """For ten steps the boxes do not move, but by rounding of the speed that gravity gives."""
    scene = grasp(boxes)
    model = NoSlip(**choice)
    v, speed, tol = scene["v"], GRAVITY * scene["h"], 1e-12
    for _ in range(10):
        solution = model.solve(ContactProblem(**{**scene, "v": v}))
        v = solution.velocity
        np.testing.assert_allclose(v, 0.0, atol=tol * speed)
        assert solution.consistent and solution.is_exact(tol)
    # the grippers' rails carry the boxes, and the squeeze goes through every face
    weight = boxes * speed
    spread = solution.spread()
    np.testing.assert_allclose(spread.bilateral[[1, 6]].sum(), weight, rtol=1e-10)
    for face in range(boxes + 1):
        squeeze = spread.normal[12 * face : 12 * (face + 1)].sum()
        assert squeeze == pytest.approx(10.0 * boxes * scene["h"], rel=1e-10)


@pytest.mark.parametrize("grip", ["loaded", "all"])
def test_nine_boxes_are_one_too_many(grip: Any) -> None:
    """Clamped ends: the moment W L / 16 = 0.61 K^2 exceeds the squeeze 10 K / 2 beyond K = 8."""
    solution = NoSlip(grip=grip).solve(ContactProblem(**grasp(9)))
    assert np.abs(solution.velocity).max() > 0.1 * GRAVITY * 0.01
    assert solution.is_exact()


@pytest.mark.parametrize("grip", ["loaded", "all"])
def test_a_row_that_statics_does_not_allow_opens(grip: Any) -> None:
    """8 boxes of 0.1 kg and 5 cm under 5 N: W L / 16 = 0.20 N m against 5 N times 2.5 cm."""
    scene: dict[str, Any] = {**grasp(8)}
    size, mass = 0.05, 0.1
    lever = np.tile([1.0] * 3 + [size] * 3, 10)
    for name in "NSTJ":
        scene[name] = scene[name] * lever
    scene["M"] = scene["M"] * mass * lever**2
    f = scene["f"].reshape(10, 6) * mass
    f[0, 0], f[-1, 0] = 5.0, -5.0
    opened = NoSlip(grip=grip).solve(ContactProblem(**scene | {"f": f.ravel()}))
    assert np.abs(opened.velocity).max() > 0.1 * GRAVITY * scene["h"]
    assert opened.is_exact()
    f[0, 0], f[-1, 0] = 8.0, -8.0  # 0.2 N m: just enough
    held = NoSlip(grip=grip).solve(ContactProblem(**scene | {"f": f.ravel()}))
    np.testing.assert_allclose(held.velocity * lever, 0.0, atol=1e-12)


# --- recorded problems --------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES)
def test_recorded_problem(case: str) -> None:
    """The 19 recorded problems through the models, to the tolerances that were recorded."""
    data = recorded(case)
    rows = {name: data[name] for name in ("M", "v", "N", "S", "T", "J")}
    tol, tol_no_slip = CASES[case]
    problem = ContactProblem(**rows)
    free = Frictionless().solve(problem)
    assert_reference(data, "frictionless", free.velocity, tol)
    assert free.is_exact()
    held = NoSlip(grip="all").solve(problem)
    if tol_no_slip is None:
        assert held.rank_ambiguous
    else:
        assert_reference(data, "noslip", held.velocity, tol_no_slip)
    # explicit drag: the acceleration that keeps N v + h N a >= 0 and J v + h J a = 0
    h = float(data["h"])
    rates = {name: data[name] @ data["v"] / h for name in "NJ"}
    p = ContactProblem(**rows, h=h, Ndot_v=rates["N"], Jdot_v=rates["J"])
    drag = Viscous(mu_v=float(data["mu_v"]), level="acceleration").solve(p)
    assert_reference(data, "viscous", data["v"] + h * drag.acceleration, tol)


def test_a_row_of_rounding_does_not_contradict() -> None:
    """Cancellation leaves 1e-18 of a row of zeros, and 1e-17 of its rate: robotiq 2f85."""
    problem = ContactProblem(
        M=np.eye(2), v=[1.0, 1.0], J=[[1.0, 0.0], [1e-18, 2e-18]], c_J=[0.5, 1e-17], h=0.01
    )
    np.testing.assert_allclose(NoSlip().solve(problem).velocity, [0.5, 1.0], rtol=1e-15)


@pytest.mark.parametrize("case", CASES)
def test_recorded_problem_with_grip_where_pressed(case: str) -> None:
    data = recorded(case)
    problem = ContactProblem(**{name: data[name] for name in ("M", "v", "N", "S", "T", "J")})
    solution = NoSlip().solve(problem)
    assert solution.momentum_residual() <= 1e-8
    assert solution.penetration_speed() <= 1e-8 and solution.complementarity() <= 1e-8
    if solution.consistent:
        assert tied(solution)


# --- nothing there ------------------------------------------------------------------------------

EMPTY: dict[str, Fields] = {
    "nothing": {"M": np.zeros((0, 0)), "v": []},
    "no coordinates": {"M": np.zeros((0, 0)), "v": [], "N": np.zeros((3, 0)),
                       "S": np.zeros((3, 0)), "T": np.zeros((3, 0)), "J": np.zeros((2, 0))},
    "no contacts": {"M": np.eye(2), "v": [1.0, 2.0], "J": [[1.0, 1.0]]},
    "no joints": {"M": np.eye(2), "v": [1.0, -2.0], "N": [[0.0, 1.0]], "S": [[1.0, 0.0]]},
    "normals only": {"M": np.eye(2), "v": [1.0, -2.0], "N": [[0.0, 1.0]]},
    "free": {"M": np.eye(2), "v": [1.0, 2.0]},
    "empty lists": {"M": np.eye(2), "v": [1.0, 2.0], "N": [], "S": [], "T": [], "J": []},
    "rows of zeros": {"M": np.eye(2), "v": [1.0, 2.0], "N": np.zeros((2, 2)),
                      "S": np.zeros((2, 2)), "T": np.zeros((2, 2)), "J": np.zeros((2, 2))},
    "at rest": {"M": np.eye(2), "v": [0.0, 0.0], "N": [[0.0, 1.0]], "S": [[1.0, 0.0]]},
}  # fmt: skip


@each_solver
@pytest.mark.parametrize("case", EMPTY)
def test_nothing_there(case: str, solver: str) -> None:
    problem = ContactProblem(**EMPTY[case], h=0.1)
    n, m, j = problem.n, problem.m, problem.j
    models: list[ContactModel] = [
        NoSlip(), NoSlip(grip="all", solver=solver), Frictionless(solver=solver),
        Viscous(solver=solver), Viscous(level="acceleration", solver=solver), Mixed([stick()] * n),
        Mixed([stick()] * n, grip="all", solver=solver), Mixed(viscous(0.5), solver=solver),
    ]  # fmt: skip
    for model in models:
        solution = model.solve(problem)
        assert solution.is_exact() and solution.consistent
        assert solution.motion.shape == (m,)
        assert solution.normal.shape == (n,) and solution.tangent.shape == (n, 2)
        assert solution.bilateral.shape == (j,)
        assert solution.sliding.shape == (n, 2) and solution.separation.shape == (n,)
        assert solution.required_friction().shape == (n,)
        assert solution.spread().normal.shape == (n,)
        assert solution.linear_map().A_v.shape == (m, m)
        labelled = replace(problem, bodies=np.zeros((n, 2), dtype=int))
        sums = model.solve(labelled).pair_sums()
        assert sums.impulses.shape == (len(sums.pairs), m) and len(sums.pairs) == min(n, 1)


# --- arrays -------------------------------------------------------------------------------------


def strided(array: np.ndarray) -> np.ndarray:
    big = np.zeros(tuple(2 * size for size in array.shape), dtype=array.dtype)
    view = big[tuple(slice(None, None, 2) for _ in array.shape)]
    view[...] = array
    return view


def read_only(array: np.ndarray) -> np.ndarray:
    array = array.copy()
    array.setflags(write=False)
    return array


LAYOUTS: dict[str, Any] = {
    "float32": lambda a: a.astype(np.float32) if a.dtype.kind == "f" else a.astype(np.int32),
    "Fortran": np.asfortranarray,
    "strided": strided,
    "read-only": read_only,
    "reversed": lambda a: a[::-1].copy()[::-1],
    "list": lambda a: a.tolist(),
}


@each_model
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_give_the_same_answer(layout: str, model: ContactModel) -> None:
    """Bit by bit; the numbers are short enough for float32."""
    rng = np.random.default_rng(3)
    m, n = 6, 4

    def short(*shape: int) -> np.ndarray:
        return rng.integers(-8, 9, shape) / 8.0

    A = short(m, m)
    plain: Fields = {
        "M": A @ A.T + np.eye(m), "v": short(m), "f": short(m), "N": short(n, m),
        "S": short(n, m), "T": short(n, m), "J": short(1, m), "R": short(1, m),
        "R_contact": np.array([2]), "U": short(1, m), "D": short(1, m),
        "D_bound": np.array([0.125]), "mu_v": np.full(n, 0.5),
        "bodies": np.zeros((n, 2), dtype=int),
    }  # fmt: skip
    expected = model.solve(ContactProblem(**plain, h=0.125))
    change = LAYOUTS[layout]
    other = model.solve(
        ContactProblem(
            **{name: change(array) for name, array in plain.items()}, h=np.float32(0.125)
        )
    )
    for name in ("motion", "normal", "tangent", "bilateral", "extra", "unilateral", "dry"):
        array = getattr(other, name)
        assert array.dtype == np.float64
        np.testing.assert_array_equal(array, getattr(expected, name))


@each_model
@given(body_fields())
def test_blocks_of_inertia_are_the_dense_one(model: ContactModel, given_fields: Fields) -> None:
    dense = solve(model, given_fields)
    bodies = dense.problem.m // 6
    index = np.arange(bodies)
    blocks = given_fields["M"].reshape(bodies, 6, bodies, 6)[index, :, index]
    other = solve(model, given_fields | {"M": blocks})
    np.testing.assert_array_equal(other.problem.inertia, dense.problem.inertia)
    assert_same_motion(dense.problem, dense.velocity, other.velocity)
    assert other.is_exact()


# --- files and immutability ---------------------------------------------------------------------


def full_problem() -> ContactProblem:
    rng = np.random.default_rng(5)
    return ContactProblem(
        M=np.array([np.eye(3), 2.0 * np.eye(3)]), v=rng.normal(size=6), f=rng.normal(size=6),
        h=0.01,
        N=rng.normal(size=(2, 6)), S=rng.normal(size=(2, 6)), T=rng.normal(size=(2, 6)),
        J=rng.normal(size=(1, 6)), R=rng.normal(size=(1, 6)), R_contact=[1],
        U=rng.normal(size=(1, 6)), D=rng.normal(size=(1, 6)), D_bound=[0.5], c_N=[-0.5, -0.25],
        c_U=[-0.5], c_J=[0.0], Jdot_v=[0.5], Ndot_v=[1.0, 2.0], Udot_v=[3.0], mu=0.5,
        mu_v=[1.0, 2.0], bodies=[[0, 1], [-1, 1]],
    )  # fmt: skip


@pytest.mark.parametrize("make", [full_problem, lambda: ContactProblem(M=np.eye(2), v=[1.0, 2.0])])
def test_save_and_load(make: Any, tmp_path: Path) -> None:
    problem = make()
    path = tmp_path / "problem.npz"
    problem.save(path)
    for again in (ContactProblem.load(path), ContactProblem.load(str(path))):
        for field in fields(ContactProblem):
            before, after = getattr(problem, field.name), getattr(again, field.name)
            if isinstance(before, np.ndarray):
                np.testing.assert_array_equal(before, after)
                assert before.dtype == after.dtype
            else:
                assert before == after and type(before) is type(after)
        solution, other = NoSlip().solve(problem), NoSlip().solve(again)
        np.testing.assert_array_equal(solution.velocity, other.velocity)


def test_save_and_load_without_a_suffix(tmp_path: Path) -> None:
    full_problem().save(tmp_path / "problem")
    ContactProblem.load(tmp_path / "problem")


def test_from_mapping() -> None:
    problem = full_problem()
    mapping = {field.name: getattr(problem, field.name) for field in fields(ContactProblem)}
    again = ContactProblem.from_mapping(mapping)
    np.testing.assert_array_equal(again.N, problem.N)
    assert again.h == problem.h


def test_problem_cannot_be_written_to() -> None:
    problem = full_problem()
    for field in fields(ContactProblem):
        value = getattr(problem, field.name)
        with pytest.raises(FrozenInstanceError):
            setattr(problem, field.name, value)
        if isinstance(value, np.ndarray):
            with pytest.raises(ValueError, match="read-only"):
                value[...] = 0


def test_problem_is_not_the_callers_array() -> None:
    arrays: Fields = {
        name: np.array(value)
        for name in (field.name for field in fields(ContactProblem))
        if isinstance(value := getattr(full_problem(), name), np.ndarray)
    }
    problem = ContactProblem(**arrays, h=0.01)
    before = NoSlip().solve(problem).velocity.copy()
    kept = {name: getattr(problem, name).copy() for name in arrays}
    for array in arrays.values():
        assert array.flags.writeable  # the caller's arrays are left as they were
        array[...] = 1
    for name, value in kept.items():
        np.testing.assert_array_equal(getattr(problem, name), value)
    np.testing.assert_array_equal(NoSlip().solve(problem).velocity, before)


def test_solving_twice_gives_the_same() -> None:
    """And what is done to the first answer does not reach the second."""
    problem = full_problem()
    for model in VELOCITY_MODELS.values():
        first = model.solve(problem)
        velocity = first.velocity.copy()
        for name in ("motion", "normal", "tangent"):
            if getattr(first, name).flags.writeable:
                getattr(first, name)[...] = 7.0
        np.testing.assert_array_equal(model.solve(problem).velocity, velocity)


@pytest.mark.parametrize("name", ["inertia", "impulse", "free_velocity", "cholesky"])
def test_derived_arrays_cannot_be_written_to(name: str) -> None:
    with pytest.raises(ValueError, match="read-only"):
        getattr(full_problem(), name)[...] = 0


@pytest.mark.parametrize("name", ["whitened", "lengths"])
@pytest.mark.parametrize("rows", ["N", "S", "T", "J", "R", "U", "D"])
def test_derived_rows_cannot_be_written_to(name: str, rows: str) -> None:
    with pytest.raises(ValueError, match="read-only"):
        getattr(full_problem(), name)[rows][...] = 0


def test_laws_can_be_made_from_the_package() -> None:
    assert [law().kind for law in (hf.stick, hf.frictionless)] == ["stick", "frictionless"]
    assert callable(hf.viscous) and hf.viscous(0.5).mu_v == 0.5


@each_no_slip
def test_joints_that_drive_a_held_contact_are_infeasible_with_a_proof(choice: Any) -> None:
    """A slider is driven at 1 m/s along the tangent of a contact that is pressed."""
    problem = hf.ContactProblem(
        M=np.eye(2), v=[0.0, -1.0], N=[[0.0, 1.0]], S=[[1.0, 0.0]], J=[[1.0, 0.0]], c_J=[1.0]
    )
    with pytest.raises(hf.InfeasibleError) as caught:
        hf.NoSlip(**choice).solve(problem)
    weights = caught.value.equality_weights
    rows = sum(getattr(problem, name).T @ weights[name] for name in ("J", "S", "T", "R"))
    assert np.abs(rows).max() < 1e-12 and problem.c_J @ weights["J"] > 0.1
    still = hf.ContactProblem(
        M=np.eye(2), v=[0.0, -1.0], N=[[0.0, 1.0]], S=[[1.0, 0.0]], J=[[1.0, 0.0]], c_J=[0.0]
    )
    assert hf.NoSlip(**choice).solve(still).is_exact()


@pytest.mark.parametrize("solver", ["newton", "ppm"])
def test_rows_that_are_taken_for_rounding_are_said(solver: str) -> None:
    """A row may be that short because of its units, or because nothing is left of it: we say so."""
    short = 1e-15
    problem = ContactProblem(
        M=np.eye(2), v=[-1.0, -1.0], N=[[1.0, 0.0], [0.0, short]], S=[[0.0, short], [1.0, 0.0]]
    )
    solution = Frictionless(solver=solver).solve(problem)
    # Not the row of S, which carries nothing here anyway.
    assert {name: rows.tolist() for name, rows in solution.left_out.items()} == {"N": [1]}
    assert solution.velocity[1] == -1.0  # it was ignored
    assert "left out" in repr(solution) and "N [1]" in repr(solution)
    long = ContactProblem(M=np.eye(2), v=[-1.0, -1.0], N=np.eye(2), S=[[0.0, 1.0], [1.0, 0.0]])
    whole = Frictionless(solver=solver).solve(long)
    assert not whole.left_out and "left out" not in repr(whole)
    np.testing.assert_allclose(whole.velocity, 0.0, atol=1e-15)


def test_residuals_pass_over_what_was_left_out_and_nothing_else() -> None:
    """The solve and the residuals had two bounds: rows between them were left out, and counted."""
    N = np.array([[1.0, 0.0], [0.0, 5e-14]])
    solution = Frictionless().solve(ContactProblem(M=np.eye(2), v=[-1.0, -1.0], N=N))
    assert solution.is_exact() and solution.left_out["N"].tolist() == [1]
    leaving = Frictionless().solve(ContactProblem(M=np.eye(2), v=[-1.0, 1.0], N=N))
    assert leaving.is_exact() and not leaving.left_out  # the answer satisfies it


def test_friction_along_rows_that_are_rounding_can_do_nothing() -> None:
    """Its force has a bound: such a row is not said to be left out, whatever the speed along it."""
    problem = ContactProblem(
        M=np.eye(2), v=[-1.0, 1.0], N=[[1.0, 0.0]], S=[[0.0, 1e-15]], D=[[0.0, 1e-15]],
        D_bound=[1.0],
    )  # fmt: skip
    solution = hf.Coulomb(0.5).solve(problem)
    assert solution.is_exact() and not solution.left_out
    assert hf.NoSlip(grip="all").solve(problem).left_out["S"].tolist() == [0]


def test_zero_row_of_the_options_decides_what_is_left_out() -> None:
    problem = ContactProblem(M=np.eye(2), v=[-1.0, -1.0], N=[[1.0, 0.0], [0.0, 1e-10]])
    assert not Frictionless().solve(problem).left_out
    coarse = Frictionless(options=ContactOptions(zero_row=1e-9)).solve(problem)
    assert coarse.left_out["N"].tolist() == [1] and coarse.velocity[1] == -1.0


def test_tangents_that_targets_of_joints_move_are_infeasible() -> None:
    """All tangents of three contacts cannot be held while a joint moves: said, with the proof."""
    rng = np.random.default_rng(1)
    N, S, T = rng.normal(size=(3, 3, 4))
    v, J = rng.normal(size=4), rng.normal(size=(1, 4))
    problem = ContactProblem(M=np.eye(4), v=v, N=N, S=S, T=T, J=J, c_J=[1.0])
    with pytest.raises(hf.errors.InfeasibleError) as caught:
        NoSlip(grip="all", solver="ppm").solve(problem)
    u, w = caught.value.certificate, caught.value.equality_weights
    rows = N.T @ u[:3] + problem.J.T @ w["J"] + S.T @ w["S"] + T.T @ w["T"]
    assert np.abs(rows).max() <= 1e-10 and problem.c_J @ w["J"] > 0.0 and (u >= 0.0).all()
