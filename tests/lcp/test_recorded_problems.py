"""Problems recorded by others: every one is solved, certified, and to the known answer.

Data and origins: `tests/data`, tolerances in `tests/data/contact_problems/README.md`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.errors import (
    NotPositiveDefiniteError,
    NotSymmetricError,
    RayTerminationError,
)
from recorded_cases import CASES, DATA, assert_reference, load, recorded
from reference import Problem, kkt

CERTIFICATE = 1e-10  # what every answer promises
METHODS = ("ppm", "qp", "lemke")


def assert_solves(result: hf.lcp.LCPResult, p: Problem) -> None:
    """Certified by us, proven by an independent check, within the bound on pivots."""
    assert result.certified
    assert result.status is hf.lcp.Status.SOLVED
    rows = result.residuals
    assert max(rows.primal, rows.dual, rows.complementarity) <= CERTIFICATE
    # Forces that cancel: their rounding is part of it, and differs between processors.
    assert rows.stationarity <= 2e-9
    assert max(kkt(p, result.z, result.motion)) <= CERTIFICATE
    assert result.pivots <= 3 * sum(p.N.shape)


# --- contact problems ---------------------------------------------------------------------------


def test_every_recorded_contact_problem_has_a_tolerance() -> None:
    assert len(CASES) == 19
    assert set(CASES) == {path.stem for path in (DATA / "contact_problems").glob("*.npz")}


def with_equalities(data: dict[str, np.ndarray], G: np.ndarray, v: np.ndarray) -> Problem:
    """Minimise the change of motion subject to G x = 0 and N x >= 0."""
    lo = np.concatenate([np.full(len(G), -np.inf), np.zeros(len(data["N"]))])
    return Problem(np.vstack([G, data["N"]]), data["M"], v, lo=lo)


@pytest.mark.parametrize("case", CASES)
def test_frictionless(case: str) -> None:
    data = recorded(case)
    p = with_equalities(data, data["J"], data["v"])
    result = hf.lcp.solve_factored(**p.arguments)
    assert_solves(result, p)
    assert_reference(data, "frictionless", result.motion, CASES[case][0])


@pytest.mark.parametrize(
    "case",
    [case for case, (_, no_slip) in CASES.items() if no_slip],
)
def test_no_slip(case: str) -> None:
    data = recorded(case)
    M, J, S, T = (data[name] for name in "MJST")
    kept = hf.find_indices(M, J, S, T)
    G = np.vstack([rows[i] for rows, i in zip((J, S, T), kept, strict=True)])
    p = with_equalities(data, G, data["v"])
    result = hf.lcp.solve_factored(**p.arguments)
    assert_solves(result, p)
    assert_reference(data, "noslip", result.motion, CASES[case][1] or 0.0)


@pytest.mark.parametrize("case", [case for case, (_, no_slip) in CASES.items() if not no_slip])
def test_no_slip_says_where_the_answer_depends_on_the_rank(case: str) -> None:
    data = recorded(case)
    assert hf.find_indices(*(data[name] for name in "MJST")).ambiguous


@pytest.mark.parametrize("case", CASES)
def test_viscous(case: str) -> None:
    data = recorded(case)
    S, T, v = data["S"], data["T"], data["v"]
    force = -data["mu_v"] * (S.T @ (S @ v) + T.T @ (T @ v))
    p = with_equalities(data, data["J"], v + data["h"] * np.linalg.solve(data["M"], force))
    result = hf.lcp.solve_factored(**p.arguments)
    assert_solves(result, p)
    # the README lists no tolerance of its own: the same solve as the frictionless one
    assert_reference(data, "viscous", result.motion, CASES[case][0])


# --- cases on which Algorithm 1 as printed cycles or breaks -------------------------------------


@pytest.mark.parametrize(
    "path", sorted((DATA / "pivoting_counterexamples").glob("*.npz")), ids=lambda path: path.stem
)
def test_pivoting_counterexamples(path: Path) -> None:
    data = load(path)
    p = Problem(data["N"], data["M"], data["v0"], -data["h"] if "h" in data else None)
    result = hf.lcp.solve_factored(**p.arguments)
    assert_solves(result, p)
    if np.ndim(data.get("v_true", 0.0)):
        # solved in rational arithmetic with small integers: right to a few roundings
        np.testing.assert_allclose(result.motion, data["v_true"], rtol=0, atol=1e-14)


def test_the_smallest_cycle() -> None:
    N = np.array([[3, 2, -2], [5, 5, -1], [-5, 0, -2], [-5, -3, 4]])
    result = hf.lcp.solve_factored(N, np.eye(3), np.array([-4, 0, 2]))
    np.testing.assert_allclose(result.z, [16 / 17, 0, 0, 0], rtol=1e-15)
    assert result.pivots <= 3 * (4 + 3)


# --- small dense LCPs ---------------------------------------------------------------------------


SMALL: list[dict[str, Any]] = json.loads((DATA / "lcp_small.json").read_text())
SEMIDEFINITE = [lcp for lcp in SMALL if lcp["symmetric"] and lcp["psd"]]
REFUSED = [lcp for lcp in SMALL if not (lcp["symmetric"] and lcp["psd"])]
# Not in a class that Lemke's method is known to process, and it does end on a ray: two bimatrix
# games (zero diagonal, no negative entry) and two problems without a solution.
RAYS = {
    "drake_handbook_10_2_4",
    "drake_unsolvable",
    "siconos_CPS_3",
    "siconos_Pang_isolated_sol_perturbed",
}


def name(lcp: dict[str, Any]) -> str:
    return lcp["name"]


def arrays(lcp: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    return np.array(lcp["Q"], dtype=float), np.array(lcp["r"], dtype=float)


def assert_complementary(result: hf.lcp.LCPResult, F: np.ndarray, e: np.ndarray) -> None:
    """w = F z + e in extended precision, signs, and products, row by row; and few pivots."""
    z = result.z.astype(np.longdouble)
    size = np.abs(F) @ np.abs(z) + np.abs(e)
    w = F @ z + e
    assert result.certified
    assert (z >= 0).all()
    assert (w >= -CERTIFICATE * size).all()
    assert (np.abs(w[z > 0]) <= CERTIFICATE * size[z > 0]).all()
    # an LCP has as many rows as coordinates: n + m = 2 n
    assert result.pivots <= 3 * 2 * len(e)


def test_there_are_23_semidefinite_and_29_other_small_problems() -> None:
    assert (len(SEMIDEFINITE), len(REFUSED)) == (23, 29)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("lcp", SEMIDEFINITE, ids=name)
def test_small_semidefinite(lcp: dict[str, Any], method: str) -> None:
    F, e = arrays(lcp)
    result = hf.lcp.solve(F, e, method)
    assert_complementary(result, F, e)
    # w is unique; the recorded ones are exact or agree between three solvers to 3e-13
    w = np.array(lcp["w"], dtype=float)
    np.testing.assert_allclose(result.w, w, rtol=0, atol=1e-12 * max(1.0, np.abs(w).max()))


@pytest.mark.parametrize("method", ["ppm", "qp"])
@pytest.mark.parametrize("lcp", REFUSED, ids=name)
def test_small_others_are_refused_by_name(lcp: dict[str, Any], method: str) -> None:
    F, e = arrays(lcp)
    if not lcp["symmetric"]:
        with pytest.raises(NotSymmetricError, match=r"^F: not symmetric: entries \[\d+, \d+\]"):
            hf.lcp.solve(F, e, method)
        return
    with pytest.raises(NotPositiveDefiniteError, match=r"smallest eigenvalue -") as caught:
        hf.lcp.solve(F, e, method)
    assert "lemke" in str(caught.value)
    assert caught.value.smallest_eigenvalue == pytest.approx(lcp["min_eig"], rel=1e-6)


@pytest.mark.parametrize("lcp", REFUSED, ids=name)
def test_small_others_by_lemke(lcp: dict[str, Any]) -> None:
    F, e = arrays(lcp)
    if lcp["name"] in RAYS:
        with pytest.raises(RayTerminationError) as caught:
            hf.lcp.solve(F, e, "lemke")
        assert caught.value.problem.F is F
        ray = caught.value.ray
        assert (ray >= 0).all() and ray.max() == 1.0
        return
    result = hf.lcp.solve(F, e, "lemke")
    assert_complementary(result, F, e)
    # where all basic solutions are known it is one of them (other solutions may exist)
    if lcp["psd"] and lcp.get("basic_solutions"):
        w = np.array(lcp["w"], dtype=float)
        known = np.array(lcp["basic_solutions"])
        distance = np.abs(known - result.z).max(axis=1).min()
        assert distance <= 1e-10 * max(1.0, np.abs(known).max()) or np.allclose(result.w, w)


# --- a walking quadruped ------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_quadruped(method: str) -> None:
    data = load(DATA / "quadruped_noslip_lcps.npz")
    names = [key[:-2] for key in data if key.endswith("_F")]
    assert len(names) == 200
    for key in names:
        F, e = data[f"{key}_F"], data[f"{key}_e"]
        result = hf.lcp.solve(F, e, method)
        w = F.astype(np.longdouble) @ result.z + e
        # The matrices are semidefinite only to 1e-10, hence 1e-6 in the recording's README;
        # the certificate, row by row, is stricter.
        tol = 1e-6 * np.abs(e).max()
        assert result.certified, key
        assert result.z.min() >= 0.0, key
        assert w.min() >= -tol, key
        assert np.abs(w[result.z > 0.0]).max(initial=0.0) <= tol, key
        assert result.pivots <= 3 * 2 * len(e), key


# --- exponential for least-index rules and for Lemke's method as published ----------------------


def murty(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Murty 1978: 2^n pivots for Lemke. A P-matrix, not symmetric."""
    return fathi(n), 2.0 ** np.arange(1, n + 1) - 2.0 ** (n + 1)


def murty_upper(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Murty 1988: 2^n - 1 pivots for least-index principal pivoting."""
    return fathi(n).T.copy(), -np.ones(n)


def fathi(n: int) -> np.ndarray:
    """Fathi 1979: as rows N of a contact problem with M = I, 2^n pivots for Lemke."""
    return np.eye(n) + 2.0 * np.tril(np.ones((n, n)), -1)


@pytest.mark.parametrize("n", [8, 16, 24, 32])
@pytest.mark.parametrize("reverse", [False, True])
def test_fathi(n: int, reverse: bool) -> None:
    """Reversed, least-index principal pivoting needs exactly 2^n - 1 pivots."""
    N = fathi(n)
    v = -np.linalg.solve(N, np.ones(n))
    if reverse:
        N, v = N[::-1, ::-1].copy(), v[::-1].copy()
    p = Problem(N, np.eye(n), v)
    result = hf.lcp.solve_factored(**p.arguments)
    assert_solves(result, p)
    for method in METHODS:
        assert_complementary(hf.lcp.solve(N @ N.T, -np.ones(n), method), N @ N.T, -np.ones(n))


@pytest.mark.parametrize("n", [8, 16, 24])
@pytest.mark.parametrize("family", [murty, murty_upper])
@pytest.mark.parametrize("reverse", [False, True])
def test_murty(n: int, family: Any, reverse: bool) -> None:
    F, e = family(n)
    if reverse:
        F, e = F[::-1, ::-1].copy(), e[::-1].copy()
    assert_complementary(hf.lcp.solve(F, e, "lemke"), F, e)


@pytest.mark.parametrize(
    ("recorded_name", "family"), [("murty1978_n8", murty), ("murty_upper_n8", murty_upper)]
)
def test_the_families_are_the_recorded_ones(recorded_name: str, family: Any) -> None:
    (lcp,) = [lcp for lcp in SMALL if lcp["name"] == recorded_name]
    for ours, theirs in zip(family(8), arrays(lcp), strict=True):
        np.testing.assert_array_equal(ours, theirs)
