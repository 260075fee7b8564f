"""Bad input to contact problems and models: one test per kind, with the message a person gets."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from holdfast import (
    AnitescuPotra,
    ContactModel,
    ContactProblem,
    Coulomb,
    CoulombAcceleration,
    DrumwrightShell,
    Frictionless,
    HoldfastError,
    InputError,
    Law,
    Mixed,
    NoSlip,
    NotPositiveDefiniteError,
    NotSymmetricError,
    StewartTrinkle,
    Viscous,
    coulomb,
    frictionless,
    stick,
    viscous,
)

GOOD: dict[str, Any] = {
    "M": np.diag([2.0, 3.0, 4.0]),
    "v": np.array([1.0, 0.5, -1.0]),
    "f": np.array([0.0, 0.0, -9.81]),
    "h": 0.01,
    "N": np.array([[0.0, 0.0, 1.0], [0.0, 0.1, 1.0]]),
    "S": np.array([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]),
    "T": np.array([[0.0, 1.0, 0.0], [0.0, 1.0, 0.1]]),
    "J": np.array([[1.0, 1.0, 0.0]]),
    "R": np.array([[0.0, 1.0, 1.0]]),
    "R_contact": np.array([1]),
    "U": np.array([[1.0, 0.0, 1.0]]),
    "D": np.array([[0.0, 1.0, 0.0]]),
    "D_bound": np.array([0.1]),
    "c_N": np.zeros(2),
    "c_U": np.zeros(1),
    "c_J": np.zeros(1),
    "Jdot_v": np.zeros(1),
    "Ndot_v": np.zeros(2),
    "Udot_v": np.zeros(1),
    "mu": np.array([0.5, 0.5]),
    "mu_R": np.array([0.01]),
    "compliance_J": np.array([0.0]),
    "mu_v": np.array([0.1, 0.2]),
    "bodies": np.array([[0, 1], [0, 1]]),
}
REAL = sorted(set(GOOD) - {"h", "R_contact", "bodies"})


def put(name: str, index: Any, value: float) -> np.ndarray:
    """A copy of a good array with one other entry."""
    array = np.array(GOOD[name], dtype=float)
    array[index] = value
    return array


def refused(argument: str, message: str, **changes: Any) -> InputError:
    """The problem with these changes is refused, the message names the argument and says this."""
    fields = {name: value for name, value in (GOOD | changes).items() if value is not None}
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        ContactProblem(**fields)
    assert caught.value.argument == argument
    assert str(caught.value).startswith(f"{argument}: ")
    assert isinstance(caught.value, ValueError) and isinstance(caught.value, HoldfastError)
    return caught.value


def test_the_good_problem_is_good() -> None:
    problem = ContactProblem(**GOOD)
    assert repr(problem) == "ContactProblem(m=3, n=2, j=1, h=0.01)"
    assert NoSlip().solve(problem).is_exact()


# --- not a number -------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", REAL)
def test_not_finite(name: str, value: float) -> None:
    """The message holds the value and the index of the first."""
    if name in ("mu", "mu_R", "mu_v", "D_bound", "compliance_J") and value == -np.inf:
        refused(name, "must not be negative", **{name: put(name, -1, value)})
        return
    last = tuple(size - 1 for size in GOOD[name].shape)
    index = [int(i) for i in last]
    message = f"contains {value} at {index}; every entry must be a finite number"
    refused(name, message, **{name: put(name, last, value)})


def test_not_finite_in_a_block_of_the_inertia() -> None:
    M = np.ones((3, 1, 1))
    M[1] = np.nan
    refused("M", "contains nan at [1, 0, 0]", M=M)


@pytest.mark.parametrize("name", REAL)
def test_complex(name: str) -> None:
    value = GOOD[name] + 1j
    refused(name, "has dtype complex128 (from ndarray); expected real numbers", **{name: value})


def test_ragged() -> None:
    refused("N", "is not a rectangular array of numbers", N=[[1.0, 0.0, 0.0], [1.0]])


# --- wrong shapes: the two that disagree are named ----------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("M", np.ones((3, 2)), "has shape (3, 2); expected (m, m) or blocks (nb, s, s)"),
        ("M", np.ones(3), "has shape (3,); expected (m, m)"),
        ("M", np.ones((3, 1, 2)), "has shape (3, 1, 2); expected (m, m)"),
        ("v", np.ones(4), "has 4 entries but M is 3 x 3"),
        ("v", np.ones((3, 1)), "is 3 x 1, but a vector has one dimension; v.ravel() is one"),
        ("f", np.ones(2), "has 2 entries but M is 3 x 3"),
        ("N", np.ones((2, 4)), "is 2 x 4 but M is 3 x 3"),
        ("N", np.ones(3), "has 3 entries, but a matrix has two dimensions; write N[None, :]"),
        ("S", np.ones((2, 2)), "is 2 x 2 but M is 3 x 3"),
        ("S", np.ones((3, 3)), "is 3 x 3 but N is 2 x 3; each contact has one row"),
        ("T", np.ones((1, 3)), "is 1 x 3 but N is 2 x 3; each contact has one row"),
        ("J", np.ones((1, 2)), "is 1 x 2 but M is 3 x 3"),
        ("R", np.ones((1, 2)), "is 1 x 2 but M is 3 x 3"),
        ("U", np.ones((1, 2)), "is 1 x 2 but M is 3 x 3"),
        ("D", np.ones((1, 2)), "is 1 x 2 but M is 3 x 3"),
        ("c_N", np.zeros(3), "has 3 entries but N is 2 x 3"),
        ("c_U", np.zeros(3), "has 3 entries but U is 1 x 3"),
        ("c_J", np.zeros(3), "has 3 entries but J is 1 x 3"),
        ("Jdot_v", np.zeros(2), "has 2 entries but J is 1 x 3"),
        ("Ndot_v", np.zeros(1), "has 1 entries but N is 2 x 3"),
        ("Udot_v", np.zeros(2), "has 2 entries but U is 1 x 3"),
        ("D_bound", np.zeros(2), "has 2 entries but D is 1 x 3"),
        ("mu", np.zeros(3), "has 3 entries but N is 2 x 3"),
        ("mu_v", np.zeros(1), "has 1 entries but N is 2 x 3"),
    ],
)
def test_wrong_shape(name: str, value: Any, message: str) -> None:
    refused(name, message, **{name: value})


def test_blocks_and_velocity_disagree() -> None:
    refused("v", "has 3 entries but M has 2 blocks of 2 x 2", M=np.ones((2, 2, 2)))


def test_tangents_without_contacts() -> None:
    with pytest.raises(InputError, match=r"^S: is 1 x 3 but N is 0 x 3; each contact has one row"):
        ContactProblem(M=np.eye(3), v=np.zeros(3), S=np.ones((1, 3)))


def test_second_tangent_without_the_first() -> None:
    refused("S", "is missing while T is given; a single tangent is S", S=None)
    one = {"N": np.ones((1, 3)), "T": np.ones((1, 3))}
    with pytest.raises(InputError, match=r"^S: is missing while T is given"):
        ContactProblem(M=np.eye(3), v=np.zeros(3), **one)


# --- inertia ------------------------------------------------------------------------------------


def test_asymmetric_inertia() -> None:
    error = refused("M", "not symmetric: entries [0, 1] and [1, 0] differ", M=put("M", (0, 1), 0.1))
    assert isinstance(error, NotSymmetricError)
    assert error.index == (0, 1)
    assert "(M + M.T) / 2" in str(error)


def test_indefinite_inertia() -> None:
    error = refused("M", "smallest eigenvalue -3, largest 4", M=put("M", (1, 1), -3.0))
    assert isinstance(error, NotPositiveDefiniteError)
    assert error.smallest_eigenvalue == -3.0


def test_massless_coordinate() -> None:
    refused("M", "look for massless bodies, or add armature", M=put("M", (1, 1), 0.0))


def test_indefinite_block() -> None:
    M = np.array([[[1.0]], [[-1.0]], [[1.0]]])
    assert isinstance(refused("M", "not positive definite", M=M), NotPositiveDefiniteError)


# --- signs --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["mu", "mu_v", "D_bound"])
def test_negative_coefficient(name: str) -> None:
    last = len(GOOD[name]) - 1
    refused(name, f"is -0.5 at [{last}]; it must not be negative", **{name: put(name, -1, -0.5)})


@pytest.mark.parametrize("name", ["mu", "mu_v"])
def test_negative_single_coefficient(name: str) -> None:
    refused(name, "is -0.5 at [0]; it must not be negative", **{name: -0.5})


@pytest.mark.parametrize("h", [0.0, -0.01, np.nan, np.inf, True])
def test_step_length(h: float) -> None:
    refused("h", f"is {h}; the step length must be positive and finite", h=h)


def test_dry_friction_without_its_bound() -> None:
    refused("D_bound", "is missing while D has 1 rows; give the largest impulse", D_bound=None)


def test_force_without_step_length() -> None:
    refused("h", "is missing while f is given; the step length turns f into an impulse", h=None)


# --- labels -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "has shape (0,) but R has 1 rows; name one contact per row"),
        ([0, 1], "has shape (2,) but R has 1 rows; name one contact per row"),
        ([[0]], "has shape (1, 1) but R has 1 rows; name one contact per row"),
        ([2], "must be integers from 0 to 1, the contacts"),
        ([-1], "must be integers from 0 to 1, the contacts"),
        ([0.0], "must be integers from 0 to 1, the contacts"),
    ],
)
def test_contact_of_an_extra_row(value: Any, message: str) -> None:
    refused("R_contact", message, R_contact=value)


def test_contact_of_no_extra_row() -> None:
    refused("R_contact", "has shape (1,) but R has 0 rows", R=None, mu_R=None)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([[0, 1]], "has shape (1, 2)"),
        ([0, 1], "has shape (2,)"),
        ([[0.0, 1.0], [0.0, 1.0]], "dtype float64"),
    ],
)
def test_bodies(value: Any, message: str) -> None:
    assert "but N has 2 rows; expected (n, 2) integers" in str(
        refused("bodies", message, bodies=value)
    )


def test_unknown_array() -> None:
    with pytest.raises(InputError, match=r"^mapping: holds Q, velocity; known are D, D_bound, J,"):
        ContactProblem.from_mapping(GOOD | {"Q": 1.0, "velocity": 2.0})


def test_file_with_an_unknown_array(tmp_path: Path) -> None:
    path = tmp_path / "other.npz"
    np.savez(path, F=np.eye(3))
    with pytest.raises(InputError, match=r"holds F; known are") as caught:
        ContactProblem.load(path)
    assert caught.value.argument == str(path)


def test_file_of_a_later_release(tmp_path: Path) -> None:
    path = tmp_path / "later.npz"
    np.savez(path, format_version=99, **GOOD)
    assert_not_loaded(path, "has format_version 99, but this release reads up to 1; it needs a")
    np.savez(path, format_version="new", **GOOD)
    assert_not_loaded(path, "has format_version ")


def test_file_of_another_kind(tmp_path: Path) -> None:
    text, array, empty, broken = (tmp_path / name for name in ("a.txt", "b.npy", "c", "d.npz"))
    text.write_text("M = 1\n")
    np.save(array, np.eye(2))
    empty.write_bytes(b"")
    ContactProblem(**GOOD).save(broken)
    broken.write_bytes(broken.read_bytes()[:500])
    for path in (text, empty, broken):
        assert_not_loaded(path, "is not an .npz file of ContactProblem.save, or is damaged (")
    assert_not_loaded(array, "holds a single array (.npy); expected an .npz file")


def test_file_without_what_a_problem_needs(tmp_path: Path) -> None:
    path = tmp_path / "less.npz"
    np.savez(path, N=GOOD["N"])
    assert_not_loaded(path, "holds no M and no v; a problem needs M and v")
    np.savez(path, v=GOOD["v"])
    assert_not_loaded(path, "holds no M; a problem needs M and v")


def assert_not_loaded(path: Path, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(f"{path}: {message}")) as caught:
        ContactProblem.load(path)
    assert caught.value.argument == str(path)


# --- contradictions -----------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["ppm", "qp", "lemke"])
def test_inconsistent_bilateral_targets(solver: str) -> None:
    J = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [2.0, 1.0, 0.0]])
    floor = {"N": [[0.0, 0.0, 1.0]], "S": [[0.0, 0.0, 0.0]], "h": 0.01}
    problem = ContactProblem(M=GOOD["M"], v=GOOD["v"], J=J, c_J=[1.0, 2.0, 3.0], **floor)
    message = "row 2 contradicts the rows before it: it depends on them, but they give 4 where"
    paper = NoSlip(grip="all", solver=solver)
    for model in (paper, Frictionless(solver=solver), Viscous(solver=solver)):
        with pytest.raises(InputError, match=rf"^J: {re.escape(message)}.*c_J is 3$"):
            model.solve(problem)


def test_consistent_bilateral_targets_are_taken() -> None:
    J = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [2.0, 1.0, 0.0]])
    problem = ContactProblem(M=np.eye(3), v=np.zeros(3), J=J, c_J=[1.0, 2.0, 4.0])
    np.testing.assert_allclose(Frictionless().solve(problem).velocity, [1.0, 2.0, 0.0], rtol=1e-15)


def test_row_of_zeros_with_a_target() -> None:
    problem = ContactProblem(M=np.eye(2), v=np.zeros(2), J=np.zeros((1, 2)), c_J=[1.0])
    with pytest.raises(InputError, match=r"^J: row 0 contradicts .* give 0 where .* c_J is 1$"):
        NoSlip().solve(problem)


def test_inconsistent_rates() -> None:
    problem = ContactProblem(M=np.eye(1), v=[0.0], J=[[1.0], [1.0]], Jdot_v=[1.0, 2.0], h=0.1)
    with pytest.raises(InputError, match=r"^J: row 1 contradicts the rows before it"):
        Viscous(level="acceleration").solve(problem)


# --- models -------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [NoSlip, lambda **options: Mixed(stick(), **options)])
def test_unknown_grip(model: Any) -> None:
    with pytest.raises(InputError, match=r"^grip: is 'some'; expected one of loaded, all$"):
        model(grip="some")


@pytest.mark.parametrize(
    "model", [NoSlip, Viscous, Frictionless, lambda **options: Mixed(stick(), **options)]
)
def test_unknown_solver(model: Any) -> None:
    message = r"^solver: is 'osqp'; expected one of (newton, )?ppm, qp, lemke$"
    with pytest.raises(InputError, match=message):
        model(solver="osqp")


@pytest.mark.parametrize("solver", ["ppm", "qp", "lemke"])
def test_only_the_contact_solve_finds_pressed_contacts(solver: str) -> None:
    message = rf"^solver: is '{solver}', but only the contact solve"
    with pytest.raises(InputError, match=message):
        NoSlip(solver=solver)
    with pytest.raises(InputError, match=message):
        Mixed(stick(), solver=solver).solve(ContactProblem(**GOOD))


def test_unknown_level() -> None:
    message = r"^level: is 'position'; expected one of velocity, acceleration$"
    with pytest.raises(InputError, match=message):
        Viscous(level="position")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("rank_tol", [0.0, 1.0, -1.0])
def test_rank_tolerance(rank_tol: float) -> None:
    with pytest.raises(InputError, match=r"^rank_tol: is .*; expected above 0 and below 1"):
        NoSlip(rank_tol=rank_tol).solve(ContactProblem(**GOOD))


@pytest.mark.parametrize("count", [0, 1, 3])
def test_wrong_number_of_laws(count: int) -> None:
    message = rf"^laws: has {count} entries but there are 2 contacts$"
    with pytest.raises(InputError, match=message):
        Mixed([stick()] * count).solve(ContactProblem(**GOOD))


@pytest.mark.parametrize("law", ["stick", 0.5, None])
def test_not_a_law(law: Any) -> None:
    message = r"^laws: entry 1 is .*; use coulomb\(\), stick\(\), viscous\(mu_v\) or frictionless"
    with pytest.raises(InputError, match=message):
        Mixed([frictionless(), law])


@pytest.mark.parametrize("mu_v", [-0.1, np.nan, np.inf, [0.1, 0.2]])
def test_coefficient_of_a_law(mu_v: Any) -> None:
    for make in (viscous, lambda mu_v: Law("viscous", mu_v)):
        with pytest.raises(InputError, match=r"^mu_v: is .*; it must be finite and not negative$"):
            make(mu_v)


def test_coefficient_of_a_law_that_is_no_number() -> None:
    with pytest.raises(InputError, match=r"^mu_v: .*expected real numbers"):
        viscous("a")  # pyright: ignore[reportArgumentType]


def test_unknown_law() -> None:
    with pytest.raises(InputError, match=r"^kind: is 'foo'; expected one of coulomb, stick"):
        Law("foo", 3.0)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match=r"^mu_v: is 3.0, but a stick contact has no drag$"):
        Law("stick", 3.0)


EVERY_MODEL: list[Any] = [
    Coulomb, NoSlip, Viscous, Frictionless, partial(Mixed, stick()), StewartTrinkle,
    AnitescuPotra, DrumwrightShell, CoulombAcceleration,
]  # fmt: skip


@pytest.mark.parametrize("model", EVERY_MODEL)
@pytest.mark.parametrize("problem", [None, GOOD])
def test_not_a_problem(model: Any, problem: Any) -> None:
    message = rf"^problem: is {type(problem).__name__}; expected a ContactProblem$"
    with pytest.raises(InputError, match=message):
        model().solve(problem)


@pytest.mark.parametrize("model", EVERY_MODEL)
def test_not_options(model: Any) -> None:
    message = r"^options: is 3; expected holdfast.(lcp|contact).Options,?.* or None$"
    with pytest.raises(InputError, match=message):
        model(options=3)


@pytest.mark.parametrize("solver", ["ppm", "qp", "lemke"])
@pytest.mark.parametrize(
    "warm", [[[0]], 5, [0.5], [True], "0", [[0], [1, 2]], [None], np.zeros((0, 2))]
)
def test_not_a_warm_start(warm: Any, solver: str) -> None:
    problem = ContactProblem(**GOOD)
    paper = NoSlip(grip="all", solver=solver)
    for model in (paper, Viscous(solver=solver, level="acceleration")):
        with pytest.raises(InputError, match=r"^warm_start: "):
            model.solve(problem, warm_start=warm)


@pytest.mark.parametrize("level", ["velocity", "acceleration"])
@pytest.mark.parametrize("mu_v", [-0.1, np.nan, np.inf])
def test_coefficient_of_a_model(mu_v: float, level: Any) -> None:
    message = rf"^mu_v: is {mu_v} at \[1\]; it must be finite and not negative$"
    with pytest.raises(InputError, match=message):
        Viscous(mu_v=[0.1, mu_v], level=level).solve(ContactProblem(**GOOD))


def test_number_of_coefficients_of_a_model() -> None:
    with pytest.raises(InputError, match=r"^mu_v: has shape \(3,\) but there are 2 contacts$"):
        Viscous(mu_v=[0.1] * 3).solve(ContactProblem(**GOOD))


def test_coefficient_of_neither_model_nor_problem() -> None:
    fields = {name: value for name, value in GOOD.items() if name != "mu_v"}
    message = r"^mu_v: is missing: give it to the model or to ContactProblem.mu_v$"
    with pytest.raises(InputError, match=message):
        Viscous(mu_v=None).solve(ContactProblem(**fields))


@pytest.mark.parametrize("model", [Viscous(), Mixed(viscous(0.1))])
def test_drag_without_step_length(model: ContactModel) -> None:
    fields = {name: value for name, value in GOOD.items() if name not in ("h", "f")}
    message = r"^h: is missing; this model needs the step length$"
    with pytest.raises(InputError, match=message):
        model.solve(ContactProblem(**fields))


def test_dry_friction_at_acceleration_level_without_step_length() -> None:
    """The bound is an impulse, so a force needs the step length."""
    problem = ContactProblem(M=np.eye(1), v=[1.0], D=[[1.0]], D_bound=[0.1])
    with pytest.raises(InputError, match=r"^h: is missing; this model needs the step length$"):
        Viscous(level="acceleration").solve(problem)


# --- asking for what is not there ---------------------------------------------------------------

NAMES = {
    "velocity": ["velocity", "normal_impulse", "tangent_impulse", "bilateral_impulse"],
    "acceleration": ["acceleration", "normal_force", "tangent_force", "bilateral_force"],
}


@pytest.mark.parametrize("level", NAMES)
def test_names_of_the_other_level(level: Any) -> None:
    solution = Viscous(level=level).solve(ContactProblem(**GOOD))
    other = "acceleration" if level == "velocity" else "velocity"
    for name in NAMES[level]:
        assert getattr(solution, name).dtype == float
    for name in NAMES[other]:
        message = rf"^{name} belongs to the {other} level; this is at {level}$"
        with pytest.raises(AttributeError, match=message):
            getattr(solution, name)


def test_energy_at_acceleration_level() -> None:
    solution = Viscous(level="acceleration").solve(ContactProblem(**GOOD))
    with pytest.raises(AttributeError, match=r"^velocity belongs to the velocity level"):
        solution.kinetic_energy()


def test_sums_per_pair_without_bodies() -> None:
    fields = {name: value for name, value in GOOD.items() if name != "bodies"}
    problem = ContactProblem(**fields)
    with pytest.raises(InputError, match=r"^bodies: is missing; per_pair needs the two bodies"):
        Viscous(per_pair=True).solve(problem)
    with pytest.raises(InputError, match=r"^bodies: is missing; pair_sums needs the two bodies"):
        NoSlip().solve(problem).pair_sums()


# --- not even numbers ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["mu", "mu_v"])
def test_coefficient_that_is_no_number(name: str) -> None:
    refused(name, "expected real numbers", **{name: "rough"})


def test_step_length_that_is_no_number() -> None:
    refused("h", "step length", h="0.01 s")


def test_no_bodies_of_no_contacts() -> None:
    ContactProblem(M=np.eye(2), v=np.zeros(2), N=[], bodies=[])


def test_missing_velocity() -> None:
    with pytest.raises(InputError, match=r"^v: "):
        ContactProblem(M=np.eye(2), v=None)


# --- Coulomb coefficients and compliance --------------------------------------------------------


SPINNING = {**GOOD, "R": np.ones((2, 3)), "R_contact": [0, 1], "mu_R": None}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"mu": [0.1, 0.2, 0.3]}, r"^mu: "),
        ({"mu": np.ones((2, 3))}, r"^mu: .* 2 columns"),
        ({"mu": np.ones((3, 2))}, r"^mu: .* 2 rows"),
        ({"mu": -0.1}, r"^mu: is -0.1 at \[0\]; it must not be negative$"),
        ({"mu": [[0.1, 0.2], [0.3, -0.4]]}, r"^mu: is -0.4 at \[1, 1\]; it must not be negative$"),
        ({"mu": [[0.1, np.nan], [0.3, 0.4]]}, r"^mu: "),
        ({"mu": "a"}, r"^mu: .*expected real numbers"),
        ({"mu_R": [0.1]}, r"^mu_R: "),
        ({"mu_R": -1.0}, r"^mu_R: is -1.0 at \[0\]"),
        ({"mu_R": np.ones((2, 2))}, r"^mu_R: "),
        ({"compliance_J": [0.1, 0.2]}, r"^compliance_J: "),
        ({"J": np.ones((1, 3)), "compliance_J": [-0.1]}, r"^compliance_J: is -0.1 at \[0\]"),
        ({"J": np.ones((1, 3)), "compliance_J": np.inf}, r"^compliance_J: "),
    ],
)
def test_coefficients_of_a_problem(fields: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ContactProblem(**{**SPINNING, **fields})


@pytest.mark.parametrize(
    ("mu", "message"),
    [
        (-0.1, r"^mu: is -0.1; it must be finite and not negative$"),
        ([0.1], r"^mu: has shape \(1,\) but there are 2 contacts$"),
        ([[0.1, 0.2], [np.inf, 0.1]], r"^mu: is inf at \[1, 0\]; it must be finite"),
        (np.ones((2, 3)), r"^mu: .* 2 columns"),
        ("a", r"^mu: .*expected real numbers"),
    ],
)
def test_coefficients_of_coulomb(mu: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Coulomb(mu=mu).solve(ContactProblem(**GOOD))


def test_baselines_know_one_coefficient_per_contact() -> None:
    problem = ContactProblem(**{**GOOD, "mu": np.full((2, 2), 0.5)})
    with pytest.raises(InputError, match=r"^mu: has shape \(2, 2\) but there are 2 contacts$"):
        StewartTrinkle().build(problem)


@pytest.mark.parametrize("mu", [-0.1, np.nan, np.inf, [0.1, 0.2]])
def test_coefficient_of_coulombs_law(mu: Any) -> None:
    with pytest.raises(InputError, match=r"^mu: is .*; it must be finite and not negative$"):
        coulomb(mu)


def test_a_coefficient_that_a_law_does_not_have() -> None:
    with pytest.raises(InputError, match=r"^mu: is 0.5, but a stick contact has no such limit$"):
        Law("stick", mu=0.5)


def test_new_fields_are_saved(tmp_path: Path) -> None:
    problem = ContactProblem(**{
        **SPINNING, "mu": [[0.1, 0.2], [0.3, 0.4]], "mu_R": [0.01, 0.02], "J": np.eye(3)[:1],
        "compliance_J": 0.5,
    })  # fmt: skip
    problem.save(tmp_path / "problem.npz")
    loaded = ContactProblem.load(tmp_path / "problem.npz")
    for name in ("mu", "mu_R", "compliance_J"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(problem, name))
        assert not getattr(loaded, name).flags.writeable
    assert loaded.compliance_J.tolist() == [0.5]
    plain = ContactProblem(**GOOD)
    assert plain.mu_R.tolist() == [0.01] and not plain.compliance_J.any()
    bare = ContactProblem(M=np.eye(1), v=[0.0], J=[[1.0]])
    assert bare.mu_R is None and bare.compliance_J.tolist() == [0.0]
