"""holdfast and its peers behind one call: ``solver(problem) -> (motion, impulses)``.

Cold start, matrices in, forces out. Every peer runs at its default settings; names ending in
``-tight`` ask for 1e-9 and are shown for accuracy. What a peer wants as input is
made beforehand, in its favourite memory order (see `problem.DenseForm`); what it does with that
input, and reading the answer, is timed. A peer that says it failed raises `PeerError`.

quadprog is GPL: it is used here to compare with and is never imported by the package.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module, metadata

import numpy as np

import eiquadprog_binding
from holdfast.experiments.robustness.algorithm1 import Algorithm1Error, algorithm1
from problem import Array, Problem

Answer = tuple[Array, Array]
TIGHT = 1e-9
DENSE_LCP_ROWS = 300
"""Methods that form the n x n matrix are tried up to this many contacts."""


class PeerError(ArithmeticError):
    """A peer reports that it has not solved the problem."""


@dataclass(frozen=True)
class Solver:
    """A solver as the benchmarks know it.

    Attributes:
        name: short name.
        solve: the uniform call.
        distribution: its package, for the version.
        rival: whether it counts for "the best peer" in the speed tables.
        copies: how many arrays of the size of the dense N a solve holds, for the memory limit.
        most_rows: largest number of contacts it is tried with.
        needs: a module to import for it, if any.
        solve_lcp: impulses of a dense LCP (F, e), for solvers that do better on it as it is
            than on a factor of F.
    """

    name: str
    solve: Callable[[Problem], Answer]
    distribution: str
    rival: bool = False
    copies: int = 3
    most_rows: int | None = None
    needs: str | None = None
    solve_lcp: Callable[[Array, Array], Array] | None = None

    def version(self) -> str:
        """Version of its package."""
        return metadata.version(self.distribution)

    def missing(self) -> str | None:
        """Why it cannot be used here; None if it can."""
        try:
            if self.name == "eiquadprog":
                _eiquadprog_solver()
            elif self.needs:
                import_module(self.needs)
        except ImportError as error:
            return str(error)
        return None

    def too_large(self, problem: Problem, most_bytes: float) -> str | None:
        """Why it is not tried on a problem; None if it is."""
        if self.most_rows is not None and problem.n > self.most_rows:
            return f"n > {self.most_rows}"
        if 8.0 * self.copies * problem.n * problem.m > most_bytes:
            return "memory"
        return None


def solve_holdfast(problem: Problem) -> Answer:
    """Ours: structured input, the answer certified."""
    from holdfast.lcp import solve_factored

    result = solve_factored(problem.rows, problem.M, problem.v, problem.b)
    if not result.certified:
        raise PeerError(f"not certified: {result.status}")
    return result.motion, result.z


def solve_holdfast_lcp(F: Array, e: Array) -> Array:
    """Ours on a dense LCP: principal pivoting, the answer certified."""
    from holdfast.lcp import solve

    return solve(F, e, method="ppm").z


def _solve_daqp(problem: Problem, **settings: float) -> Answer:
    import daqp

    p = problem.dense()
    x, _, flag, info = daqp.solve(p.M, p.q, p.N, p.upper, p.lower, **settings)
    if flag != 1:
        raise PeerError(f"exit flag {flag}")
    return x, -info["lam"]


def solve_daqp(problem: Problem) -> Answer:
    """Dual active set, default tolerances (1e-6)."""
    return _solve_daqp(problem)


def solve_daqp_tight(problem: Problem) -> Answer:
    """Dual active set, tolerances 1e-9."""
    return _solve_daqp(problem, primal_tol=TIGHT, dual_tol=TIGHT)


def _solve_proxqp(
    problem: Problem, tolerance: float | None = None, linear: Array | None = None
) -> Answer:
    from proxsuite import proxqp

    p = problem.dense()
    qp = proxqp.dense.QP(problem.m, 0, problem.n)
    if tolerance is not None:
        qp.settings.eps_abs = tolerance
    qp.init(p.M, p.q if linear is None else linear, None, None, p.N, p.lower, p.upper)
    qp.solve()
    if qp.results.info.status != proxqp.QPSolverOutput.PROXQP_SOLVED:
        raise PeerError(qp.results.info.status.name)
    return qp.results.x, -qp.results.z


def _solve_proxqp_lcp(F: Array, e: Array, tolerance: float | None = None) -> Array:
    """The dense LCP as ``min z' F z / 2 + e' z`` over z >= 0."""
    n = len(e)
    return _solve_proxqp(Problem(F, np.eye(n), np.zeros(n)), tolerance, linear=e)[0]


def solve_proxqp_lcp(F: Array, e: Array) -> Array:
    """Dense LCP, default tolerance."""
    return _solve_proxqp_lcp(F, e)


def solve_proxqp_lcp_tight(F: Array, e: Array) -> Array:
    """Dense LCP, tolerance 1e-9."""
    return _solve_proxqp_lcp(F, e, TIGHT)


def solve_proxqp(problem: Problem) -> Answer:
    """Proximal augmented Lagrangian, default tolerance (1e-5)."""
    return _solve_proxqp(problem)


def solve_proxqp_tight(problem: Problem) -> Answer:
    """Proximal augmented Lagrangian, tolerance 1e-9."""
    return _solve_proxqp(problem, TIGHT)


def solve_piqp(problem: Problem) -> Answer:
    """Proximal interior point, default tolerance (1e-8)."""
    import piqp

    p = problem.dense()
    solver = piqp.DenseSolver()
    solver.setup(p.M_fortran, p.q, None, None, p.N_fortran, p.lower, None)
    status = solver.solve()
    if status != piqp.PIQP_SOLVED:
        raise PeerError(status.name)
    return np.array(solver.result.x), np.array(solver.result.z_l)


def solve_piqp_lcp(F: Array, e: Array) -> Array:
    """Dense LCP as ``min z' F z / 2 + e' z`` over z >= 0, default tolerance."""
    import piqp

    solver = piqp.DenseSolver()
    solver.setup(np.asfortranarray(F), e, x_l=np.zeros(len(e)))
    status = solver.solve()
    if status != piqp.PIQP_SOLVED:
        raise PeerError(status.name)
    return np.array(solver.result.x)


def solve_quadprog(problem: Problem) -> Answer:
    """Goldfarb-Idnani dual active set."""
    import quadprog

    p = problem.dense()
    try:
        x, _, _, _, z, _ = quadprog.solve_qp(p.M_fortran, p.momentum, p.N.T, p.lower)
    except ValueError as error:
        raise PeerError(str(error)) from error
    return x, z


def _eiquadprog_solver() -> Callable:
    """The compiled binding, made at the first call."""
    if not hasattr(_eiquadprog_solver, "solver"):
        _eiquadprog_solver.solver = eiquadprog_binding.load()  # type: ignore[attr-defined]
    return _eiquadprog_solver.solver  # type: ignore[attr-defined]


def solve_eiquadprog(problem: Problem) -> Answer:
    """Goldfarb-Idnani dual active set on Eigen."""
    status, x, z = _eiquadprog_solver()(problem.dense())
    if status != 0:
        raise PeerError(eiquadprog_binding.STATUS[status])
    return x, z


def solve_nnls(problem: Problem) -> Answer:
    """Lawson-Hanson non-negative least squares on whitened rows; the whitening is timed.

    With offsets the problem is a least-distance one: NNLS on the rows with their right-hand
    sides below (Lawson and Hanson, chapter 23).
    """
    from scipy.linalg import cholesky, solve_triangular
    from scipy.optimize import nnls

    p = problem.dense()
    L = cholesky(p.M, lower=True)
    A = solve_triangular(L, p.N.T, lower=True)
    free = L.T @ p.v
    try:
        if p.centred:
            z, _ = nnls(A, -free)
        else:
            z = _least_distance(A, -(A.T @ free + p.b), nnls)
    except RuntimeError as error:
        raise PeerError(str(error)) from error
    return solve_triangular(L, free + A @ z, lower=True, trans=1), z


def _least_distance(A: Array, h: Array, nnls: Callable) -> Array:
    """Multipliers of: minimise ``|u|`` subject to ``A' u >= h``."""
    target = np.zeros(len(A) + 1)
    target[-1] = 1.0
    E = np.vstack([A, h])
    y, _ = nnls(E, target)
    gap = 1.0 - h @ y
    if gap <= 0.0:
        raise PeerError("infeasible")
    return y / gap


def solve_lemke(problem: Problem) -> Answer:
    """Our own Lemke on the dense n x n matrix, whose forming is timed."""
    p = problem.dense()
    P = np.linalg.solve(p.M, p.N.T)
    z = solve_lemke_lcp(p.N @ P, p.N @ p.v + p.b)
    return p.v + P @ z, z


def solve_lemke_lcp(F: Array, e: Array) -> Array:
    """Our own Lemke on a dense LCP."""
    from holdfast.errors import HoldfastError
    from holdfast.lcp import solve

    try:
        return solve(F, e, method="lemke").z
    except HoldfastError as error:
        raise PeerError(str(error)) from error


def _solve_algorithm1(problem: Problem, *, charitable: bool) -> Answer:
    p = problem.dense()
    try:
        x, z, _ = algorithm1(p.N, p.M, p.v, p.b, charitable=charitable)
    except Algorithm1Error as error:
        raise PeerError(str(error)) from error
    return x, z


def solve_algorithm1(problem: Problem) -> Answer:
    """The paper's Algorithm 1, charitable reading."""
    return _solve_algorithm1(problem, charitable=True)


def solve_algorithm1_printed(problem: Problem) -> Answer:
    """The paper's Algorithm 1, to the letter."""
    return _solve_algorithm1(problem, charitable=False)


OURS = Solver("holdfast", solve_holdfast, "holdfast", copies=0, solve_lcp=solve_holdfast_lcp)

PEERS = [
    Solver("daqp", solve_daqp, "daqp", rival=True, needs="daqp"),
    Solver("quadprog", solve_quadprog, "quadprog", rival=True, needs="quadprog"),
    Solver("eiquadprog", solve_eiquadprog, "eiquadprog", rival=True, copies=2),
    Solver(
        "proxqp",
        solve_proxqp,
        "proxsuite",
        rival=True,
        copies=4,
        needs="proxsuite",
        solve_lcp=solve_proxqp_lcp,
    ),
    Solver("nnls", solve_nnls, "scipy", rival=True, needs="scipy.optimize"),
    Solver(
        "piqp",
        solve_piqp,
        "piqp",
        rival=True,
        copies=4,
        needs="piqp",
        solve_lcp=solve_piqp_lcp,
    ),
    Solver(
        "lemke",
        solve_lemke,
        "holdfast",
        most_rows=DENSE_LCP_ROWS,
        needs="holdfast.lcp",
        solve_lcp=solve_lemke_lcp,
    ),
    Solver("algorithm1", solve_algorithm1, "holdfast"),
]

ACCURACY_ONLY = [
    Solver("daqp-tight", solve_daqp_tight, "daqp", needs="daqp"),
    Solver(
        "proxqp-tight",
        solve_proxqp_tight,
        "proxsuite",
        copies=4,
        needs="proxsuite",
        solve_lcp=solve_proxqp_lcp_tight,
    ),
    Solver("algorithm1-printed", solve_algorithm1_printed, "holdfast"),
]
