"""A solution judges itself: what it says of contacts, and that it sees what is wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from contact_generators import generate
from holdfast import ContactProblem, ContactSolution, Coulomb
from holdfast.contact import ContactState

X, Y, Z = np.eye(3)


def landing(mu: Any = 0.5, **more: Any) -> ContactProblem:
    """Three points of 1 kg: one lands and slides, one lands and sticks, one flies."""
    N, S, T = (np.zeros((3, 9)) for _ in range(3))
    for i in range(3):
        at = slice(3 * i, 3 * i + 3)
        N[i, at], S[i, at], T[i, at] = Z, X, Y
    v = [3.0, 4.0, -2.0, 0.5, 0.0, -2.0, 1.0, 0.0, 1.0]
    return ContactProblem(M=np.eye(9), v=v, N=N, S=S, T=T, mu=mu, **more)


def test_what_each_contact_does() -> None:
    solution = Coulomb().solve(landing())
    np.testing.assert_array_equal(
        solution.state, [ContactState.SLIDE, ContactState.STICK, ContactState.OPEN]
    )
    np.testing.assert_array_equal(solution.sticking, [False, True, False])
    np.testing.assert_allclose(solution.sliding[0], [2.4, 3.2], atol=1e-10)
    np.testing.assert_allclose(solution.required_friction(), [0.5, 0.25, 0.0], atol=1e-10)
    assert solution.is_exact(1e-10) and solution.law_residual() <= 1e-10


def test_dissipation() -> None:
    """Speeds before and after, times impulses: of normals, and of friction."""
    solution = Coulomb().solve(landing())
    impact, friction = solution.dissipation()
    np.testing.assert_allclose(impact, [2.0, 2.0, 0.0], atol=1e-10)
    np.testing.assert_allclose(friction, [0.5 * 25 - 0.5 * 16, 0.125, 0.0], atol=1e-10)
    v = solution.problem.v
    lost = 0.5 * v @ v - solution.kinetic_energy()
    assert float(np.sum(solution.dissipation())) == pytest.approx(lost, abs=1e-12)


def test_dissipation_belongs_to_the_velocity_level() -> None:
    problem = ContactProblem(M=np.eye(3), v=np.zeros(3), N=[Z], S=[X], T=[Y], h=0.1, mu_v=0.0)
    with pytest.raises(AttributeError, match="velocity level"):
        hf.Viscous(level="acceleration").solve(problem).dissipation()


def test_words() -> None:
    solution = Coulomb().solve(landing())
    assert repr(solution) == (
        "ContactSolution(velocity, 3 contacts: 1 open, 1 stick, 1 slide, exact)"
    )
    lines = str(solution).splitlines()
    assert lines[0] == "velocity, 3 contacts: 1 open, 1 stick, 1 slide, exact"
    assert [line.split()[1] for line in lines[2:]] == ["slides", "sticks", "open"]
    assert lines[2].split()[2:5] == ["2", "1", "0.5"]
    assert solution.table(most=1).splitlines()[-1] == "and 2 more"
    empty = Coulomb().solve(ContactProblem(M=np.eye(1), v=[1.0]))
    assert str(empty) == "velocity, 0 contacts: 0 open, 0 stick, 0 slide, exact"


WRONG = {
    "friction beyond its cone": {"tangent": np.array([[-0.9, -1.2], [-0.5, 0.0], [0.0, 0.0]])},
    "friction that is too small": {"tangent": np.array([[-0.3, -0.4], [-0.5, 0.0], [0.0, 0.0]])},
    "friction to one side": {"tangent": np.array([[-1.0, 0.0], [-0.5, 0.0], [0.0, 0.0]])},
    "a normal force that is missing": {"normal": np.array([0.0, 2.0, 0.0])},
    "a normal force that pulls": {"normal": np.array([2.0, 2.0, -1.0])},
    "a normal force where nothing touches": {"normal": np.array([2.0, 2.0, 1.0])},
}


def balanced(solution: ContactSolution) -> ContactSolution:
    """The same with the motion that its forces make."""
    p = solution.problem
    return replace(solution, motion=p.v + p.solve(solution.contact_momentum()))


@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG.keys())
def test_the_certificate_sees_what_is_wrong(change: Any) -> None:
    """Momentum is balanced, so that only the law can tell."""
    solution = balanced(replace(Coulomb().solve(landing()), **change))
    assert solution.momentum_residual() <= 1e-15
    assert solution.law_residual() > 0.01 and not solution.is_exact()
    assert repr(solution).endswith("not exact)")


def test_the_certificate_measures() -> None:
    """An impulse that is off by a millionth of the motion, is off by about that."""
    solution = Coulomb().solve(landing())
    tangent = solution.tangent.copy()
    tangent[0] *= 1.0 + 1e-6
    residual = balanced(replace(solution, tangent=tangent)).law_residual()
    assert 1e-8 < residual < 1e-6


@pytest.mark.parametrize("units", [1e-6, 1e6])
def test_the_certificate_does_not_depend_on_units(units: float) -> None:
    one = Coulomb().solve(landing())
    p = one.problem
    other = replace(
        one, problem=ContactProblem(M=units * p.M, v=p.v, N=p.N, S=p.S, T=p.T, mu=p.mu),
        normal=units * one.normal, tangent=units * 1.01 * one.tangent,
    )  # fmt: skip
    here = replace(one, tangent=1.01 * one.tangent)
    assert other.law_residual() == pytest.approx(here.law_residual(), rel=1e-9)
    assert here.law_residual() > 1e-4


def test_friction_that_differs_by_direction() -> None:
    """The cone is elliptic: the impulse obeys it, and dissipates as much as it can."""
    mu = np.array([[0.2, 0.6], [0.2, 0.6], [0.2, 0.6]])
    solution = Coulomb().solve(landing(mu))
    assert solution.is_exact(1e-10)
    u, f = solution.sliding[0], solution.tangent[0] / solution.normal[0]
    assert np.linalg.norm(f / mu[0]) == pytest.approx(1.0, abs=1e-10)
    assert f @ u == pytest.approx(-np.linalg.norm(mu[0] * u), abs=1e-10)
    assert f[0] / f[1] == pytest.approx(mu[0, 0] ** 2 * u[0] / (mu[0, 1] ** 2 * u[1]), rel=1e-9)
    assert solution.state[1] == ContactState.SLIDE  # 0.25 is more than 0.2
    straight = Coulomb(mu=mu[:, 1]).solve(landing(None))
    assert straight.state[1] == ContactState.STICK


@pytest.mark.parametrize("mu_R", [None, 0.0, 0.01, 1.0])
def test_torsion(mu_R: float | None) -> None:
    """A ball that spins on its foot is braked by mu_R times the pressure, and only then."""
    moment, foot = 0.01, np.array([0.0, 0.0, -0.1])
    rows = {
        name: [np.concatenate([axis, np.cross(foot, axis)])]
        for name, axis in zip("NST", (Z, X, Y), strict=True)
    }
    problem = ContactProblem(
        M=np.diag([1.0] * 3 + [moment] * 3), v=[0, 0, -1.0, 0, 0, 5.0], **rows, mu=0.5,
        R=[[0.0, 0.0, 0.0, 0.0, 0.0, 1.0]], R_contact=[0], mu_R=mu_R,
    )  # fmt: skip
    solution = Coulomb().solve(problem)
    assert solution.is_exact(1e-10)
    brake = min(5.0 * moment, 1.0 * (mu_R or 0.0))
    np.testing.assert_allclose(solution.extra, [-brake], atol=1e-11)
    np.testing.assert_allclose(solution.velocity, [0, 0, 0, 0, 0, 5.0 - brake / moment], atol=1e-9)
    assert solution.state[0] == (ContactState.SLIDE if mu_R == 0.01 else ContactState.STICK)


def test_compliant_joints() -> None:
    """J v+ + R p = c: a spring that is solved with the rest; is_exact knows it."""
    problem = ContactProblem(
        M=2.0 * np.eye(2), v=[1.0, 0.0], J=[[1.0, 0.0], [0.0, 1.0]], c_J=[0.0, 3.0],
        compliance_J=[0.5, 0.0],
    )  # fmt: skip
    for model in (Coulomb(), hf.Frictionless(), hf.NoSlip()):
        solution = model.solve(problem)
        np.testing.assert_allclose(solution.velocity, [0.5, 3.0], rtol=1e-12)
        np.testing.assert_allclose(solution.bilateral, [-1.0, 6.0], rtol=1e-12)
        assert solution.is_exact(1e-12)
        assert not replace(solution, bilateral=1.1 * solution.bilateral).is_exact()
    with pytest.raises(AttributeError, match="rigid joints"):
        solution.linear_map()
    for model in (hf.NoSlip(grip="all"), hf.Frictionless(solver="ppm"), hf.StewartTrinkle(0.5)):
        with pytest.raises(hf.InputError, match=r"^compliance_J: is not zero"):
            model.solve(problem)


def test_compliance_is_a_limit_of_rigid() -> None:
    rng = np.random.default_rng(5)
    N, S = rng.normal(size=(2, 1, 4))
    fields: Any = {"M": np.eye(4), "v": rng.normal(size=4), "J": rng.normal(size=(2, 4)),
                   "N": N, "S": S, "mu": 0.3}  # fmt: skip
    rigid = Coulomb().solve(ContactProblem(**fields))
    for compliance in (1e-4, 1e-8, 1e-12):
        soft = Coulomb().solve(ContactProblem(**fields, compliance_J=compliance))
        error = np.abs(soft.velocity - rigid.velocity).max()
        assert error <= 10.0 * compliance + 1e-10


def test_linear_map_of_contacts_that_stick() -> None:
    problem = landing(mu=3.0)
    solution = Coulomb().solve(problem)
    other = problem.v + 0.01 * np.sin(np.arange(9))
    again = Coulomb().solve(replace(problem, v=other))
    np.testing.assert_allclose(solution.linear_map()(other, problem.f), again.velocity, atol=1e-10)
    with pytest.raises(AttributeError, match="slides"):
        Coulomb().solve(landing()).linear_map()


def test_spread_keeps_coulomb_friction() -> None:
    solution = Coulomb().solve(landing())
    assert solution.spread() is solution


def test_short_rows_are_said_to_be_left_out() -> None:
    """Those that may be rounding: not rows of zeros, nor rows that are merely short."""
    N = np.zeros((4, 3))
    N[0, 0], N[1, 1], N[2, 2] = 1.0, 1e-17, 1e-8
    solution = hf.Frictionless().solve(
        hf.ContactProblem(M=np.eye(3), v=np.array([-1.0, -1.0, -1.0]), N=N)
    )
    assert {name: rows.tolist() for name, rows in solution.left_out.items()} == {"N": [1]}
    np.testing.assert_allclose(solution.velocity, [0.0, -1.0, 0.0], atol=1e-12)


def test_columns_of_the_table_stand_under_their_heads() -> None:
    """Numbers end where their heads end, also where a number is wider than its head."""
    v = [3.0, 4.0, -2.0, 0.5, 0.0, -2000.0, 1.0, 0.0, 1.0]
    _, head, *rows = str(Coulomb().solve(replace(landing(), v=v))).splitlines()
    assert len(rows) == 3 and {len(row) for row in rows} == {len(head)}
    ends = [len(head) - len(head.split(name)[1]) for name in ("contact", "does", "ratio")]
    for row, state in zip(rows, ("slides", "sticks", "open"), strict=True):
        assert row[: ends[1]].endswith(state) and row[ends[1]] == " "
        assert all(row[end - 1] != " " and row[end] == " " for end in ends)


@pytest.mark.parametrize("seed", [6758, 9307])
def test_an_answer_is_exact_where_friction_depends_much_on_the_direction(seed: int) -> None:
    """Coefficients of one contact differ by a factor of hundreds; normals count as others do."""
    assert hf.Coulomb().solve(generate(seed)).is_exact()
