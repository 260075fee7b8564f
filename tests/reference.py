"""Dense, obvious references, and generators of contact problems.

Nothing here shares code with holdfast. There are two kinds of reference:

* `brute_force` and `nnls_motion` find the answer in another way;
* `kkt` proves an answer: the motion is the unique minimiser of a strictly convex problem, so an
  answer whose optimality conditions hold *is* the answer, whoever found it. Its sums are in
  extended precision.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import nnls

Long = np.longdouble


@dataclass(frozen=True, eq=False)
class Problem:
    """``w = N M^-1 N' z + N v + b``, ``lo <= z <= hi``, everything dense."""

    N: np.ndarray
    M: np.ndarray
    v: np.ndarray
    b: np.ndarray | None = None
    lo: np.ndarray | None = None
    hi: np.ndarray | None = None

    @property
    def arguments(self) -> dict[str, Any]:
        """What to hand to `solve_factored`."""
        given = {"b": self.b, "lo": self.lo, "hi": self.hi}
        return {"N": self.N, "M": self.M, "v": self.v} | {
            name: value for name, value in given.items() if value is not None
        }

    @property
    def offset(self) -> np.ndarray:
        return np.zeros(len(self.N)) if self.b is None else self.b

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        n = len(self.N)
        lo = np.zeros(n) if self.lo is None else self.lo
        return lo, np.full(n, np.inf) if self.hi is None else self.hi

    def but(self, **changes: Any) -> Problem:
        return replace(self, **changes)


# --- linear algebra in extended precision -------------------------------------------------------


def long_cholesky(M: np.ndarray) -> np.ndarray:
    L = np.zeros(M.shape, dtype=Long)
    for j in range(len(M)):
        L[j, j] = np.sqrt(Long(M[j, j]) - L[j, :j] @ L[j, :j])
        L[j + 1 :, j] = (M[j + 1 :, j].astype(Long) - L[j + 1 :, :j] @ L[j, :j]) / L[j, j]
    return L


def long_solve(L: np.ndarray, B: np.ndarray) -> np.ndarray:
    """``L^-1 B`` for a lower triangle."""
    X = np.array(B, dtype=Long)
    for j in range(len(L)):
        X[j] = (X[j] - L[j, :j] @ X[:j]) / L[j, j]
    return X


def size(v: np.ndarray) -> Long:
    """Euclidean length."""
    return np.sqrt((v * v).sum())


def energy_norm(M: np.ndarray, v: np.ndarray) -> float:
    """``(v' M v)^1/2``."""
    return float(size(long_cholesky(M).T @ v.astype(Long)))


def motion_error(p: Problem, x: np.ndarray, y: np.ndarray) -> float:
    """Distance of two motions in the metric of M, relative to the largest of them and of v."""
    LT = long_cholesky(p.M).T
    scale = max(size(LT @ np.asarray(u, dtype=Long)) for u in (x, y, p.v))
    return float(size(LT @ (np.asarray(x, dtype=Long) - y)) / scale) if scale > 0 else 0.0


# --- proof --------------------------------------------------------------------------------------


class KKT(NamedTuple):
    """Relative residuals, with the definitions of `holdfast.lcp.Residuals`."""

    primal: float
    dual: float
    complementarity: float
    stationarity: float


def kkt(p: Problem, z: np.ndarray, x: np.ndarray) -> KKT:
    """How far forces z and motion x are from solving p."""
    N, L = p.N.astype(Long), long_cholesky(p.M)
    lo, hi = p.bounds
    d = np.sqrt((long_solve(L, N.T) ** 2).sum(axis=0))
    # Shorter than this part of the longest, a row without offset is rounding: Options.zero_row
    ignored = (d <= 1e-14 * d.max(initial=0)) & (p.offset == 0)
    d = np.where(d > 0, d, 1)
    scale = max(size(L.T @ u.astype(Long)) for u in (p.v, x)) or Long(1)
    w = np.where(ignored, 0, N @ x.astype(Long) + p.offset) / d / scale
    impulse = N.T @ z.astype(Long)
    rest = p.M.astype(Long) @ (x.astype(Long) - p.v) - impulse
    ulp = 4 * np.finfo(float).eps * np.abs(z)  # how close to a bound is on it
    below, above = z < hi - ulp, z > lo + ulp  # the sides to which z could still move
    primal = np.maximum(np.where(below, -w, 0), np.where(above, w, 0))[~(below & above)]
    outside = np.maximum(np.maximum(lo - z, z - hi), 0) * d / scale
    # Forces that cancel are rounded themselves: no z in double precision balances better than this.
    rounding = 1e-14 * (np.abs(z) * d).sum()
    balance = max(size(long_solve(L, rest)) - rounding, Long(0))
    stationarity = balance / max(scale, size(long_solve(L, impulse)))
    return KKT(
        float(np.maximum(primal, 0).max(initial=0)),
        float(outside.max(initial=0)),
        float(np.abs(w[below & above]).max(initial=0)),
        float(stationarity),
    )


def is_farkas(p: Problem, u: np.ndarray, tol: float = 1e-12) -> bool:
    """Whether u proves that no motion satisfies all rows.

    For every motion x the sum of ``u_i (N_i x + b_i)`` is ``b'u``. That is negative, while each
    term must not be: u_i > 0 needs a row that may not have w < 0 (hi = inf), u_i < 0 one that
    may not have w > 0 (lo = -inf).
    """
    lo, hi = p.bounds
    u = u.astype(Long)
    terms = u[:, None] * p.N.astype(Long)
    vanishes = np.abs(terms.sum(axis=0)) <= tol * np.abs(terms).sum(axis=0)
    signs = (hi[u > 0] == np.inf).all() and (lo[u < 0] == -np.inf).all()
    products = u * p.offset
    return bool(vanishes.all() and signs and products.sum() < -tol * np.abs(products).sum())


# --- other ways to the same answer --------------------------------------------------------------


def brute_force(p: Problem) -> np.ndarray:
    """The motion: of all 3^n ways to put each z on a bound or its w to zero, the best one."""
    lo, hi = p.bounds
    L = np.linalg.cholesky(p.M)
    A = np.linalg.solve(L, p.N.T).T
    start, best, answer = L.T @ p.v, np.inf, p.v
    pairs = zip(lo, hi, strict=True)
    choices = [[np.nan, *{bound for bound in pair if np.isfinite(bound)}] for pair in pairs]
    for choice in itertools.product(*choices):
        z = np.array(choice)
        free = np.isnan(z)
        z[free] = 0.0
        y = start + A.T @ z
        step = np.linalg.lstsq(A[free], -(A[free] @ y + p.offset[free]))[0]
        z[free] = np.linalg.lstsq(A[free].T, step)[0]
        y = start + A.T @ z
        w = A @ y + p.offset
        wrong = np.where(free, np.abs(w), np.where(z == lo, -w, np.where(z == hi, w, 0.0)))
        wrong[lo == hi] = 0.0
        worst = max(wrong.max(initial=0.0), (lo - z).max(initial=0.0), (z - hi).max(initial=0.0))
        if worst < best:
            best, answer = worst, np.linalg.solve(L.T, y)
    return answer


def nnls_motion(p: Problem) -> np.ndarray:
    """The motion by non-negative least squares: the nearest point of the dual cone, b = 0."""
    assert p.b is None and p.lo is None and p.hi is None
    L = np.linalg.cholesky(p.M)
    A = np.linalg.solve(L, p.N.T)
    z = nnls(A, -L.T @ p.v, maxiter=100 * max(A.shape))[0] if A.size else np.zeros(len(p.N))
    return np.linalg.solve(L.T, L.T @ p.v + A @ z)


# --- Coulomb friction ---------------------------------------------------------------------------


def coulomb_motions(
    M: np.ndarray, v: np.ndarray, N: np.ndarray, S: np.ndarray, mu: np.ndarray, tol: float = 1e-10
) -> list[np.ndarray]:
    """All motions of a problem in the plane, by trying every state of every contact.

    A contact is open, sticks, or slides to either side: 4^n linear systems.
    """
    found = []
    for states in itertools.product(("open", "stick", 1.0, -1.0), repeat=len(N)):
        rows, columns = np.zeros((0, len(v))), np.zeros((0, len(v)))
        for state, n, s, m in zip(states, N, S, mu, strict=True):
            if state == "stick":
                rows, columns = np.vstack([rows, n, s]), np.vstack([columns, n, s])
            elif state != "open":
                rows, columns = np.vstack([rows, n]), np.vstack([columns, n - m * state * s])
        r = np.linalg.lstsq(rows @ np.linalg.solve(M, columns.T), -rows @ v)[0]
        x = v + np.linalg.solve(M, columns.T @ r)
        k, good = 0, np.abs(rows @ x).max(initial=0.0) <= tol
        for state, n, s, m in zip(states, N, S, mu, strict=True):
            if state == "stick":
                good &= r[k] >= -tol and abs(r[k + 1]) <= m * r[k] + tol
                k += 2
            elif state == "open":
                good &= n @ x >= -tol
            else:
                good &= r[k] >= -tol and state * (s @ x) >= -tol
                k += 1
        if good and not any(np.allclose(x, other, atol=1e-8) for other in found):
            found.append(x)
    return found


def coulomb_fixed_point(
    M: np.ndarray, v: np.ndarray, rows: np.ndarray, mu: np.ndarray, steps: int = 200_000
) -> np.ndarray:
    """The motion by the obvious iteration: project impulses on their cones until they stay.

    Args:
        M, v: inertia and free motion.
        rows: (n, 3, m) normal and two tangents of each contact.
        mu: (n,) coefficients.
    """
    G = rows.reshape(-1, len(v))
    W, u0 = G @ np.linalg.solve(M, G.T), G @ v
    r, rho = np.zeros(len(G)), 0.5 / np.linalg.eigvalsh(W)[-1]
    for _ in range(steps):
        u = (W @ r + u0).reshape(-1, 3)
        x = r.reshape(-1, 3) - rho * u
        x[:, 0] -= rho * mu * np.linalg.norm(u[:, 1:], axis=1)
        new = np.array([on_cone(y, m) for y, m in zip(x, mu, strict=True)]).ravel()
        if np.abs(new - r).max() <= 1e-15 * max(1.0, np.abs(r).max()):
            break
        r = new
    return v + np.linalg.solve(M, G.T @ r)


def on_cone(x: np.ndarray, mu: float) -> np.ndarray:
    """The nearest point of the friction cone."""
    pull = np.sqrt((x[1:] ** 2).sum())
    if pull <= mu * x[0]:
        return x
    if mu * pull <= -x[0]:
        return 0.0 * x
    normal = (x[0] + mu * pull) / (1.0 + mu**2)
    return np.concatenate([[normal], mu * normal * x[1:] / pull])


def coulomb_residual(
    M: np.ndarray, y0: np.ndarray, contacts: list[tuple[np.ndarray, np.ndarray, np.ndarray, float]],
    others: np.ndarray,
) -> float:  # fmt: skip
    """How far impulses are from Coulomb's law, in extended precision.

    Args:
        M, y0: inertia and free motion.
        contacts: rows, impulses, targets and coefficient of each contact.
        others: (m,) momentum of all other rows.
    """
    L = long_cholesky(M)
    y = L.T @ y0.astype(Long) + long_solve(L, others.astype(Long))
    scale = size(y)
    whitened = [long_solve(L, rows.T.astype(Long)).T for rows, _, _, _ in contacts]
    for G, (_, r, _, _) in zip(whitened, contacts, strict=True):
        y = y + G.T @ r.astype(Long)
    worst, scale = Long(0), max(scale, size(L.T @ y0.astype(Long)), size(y)) or Long(1)
    for G, (_, r, c, mu) in zip(whitened, contacts, strict=True):
        length = max(size(row) for row in G)
        if length == 0:
            continue
        u, impulse = (G @ y - c) / length, r.astype(Long) * length
        x = impulse - u
        x[0] -= mu * size(u[1:])
        worst = max(worst, size(impulse - on_cone(x, mu)))
    return float(worst / scale)


def solution_residual(solution: Any) -> float:
    """The same of a `ContactSolution` with isotropic friction at points."""
    p = solution.problem
    contacts = []
    for i in range(p.n):
        rows = [p.N[i]] + [tangents[i] for tangents in (p.S, p.T) if len(tangents)]
        r = np.concatenate([[solution.normal[i]], solution.tangent[i]])[: len(rows)]
        c = np.zeros(len(rows))
        c[0] = p.c_N[i]
        contacts.append((np.array(rows), r, c, float(solution.mu[i])))
    others = p.J.T @ solution.bilateral + p.U.T @ solution.unilateral + p.D.T @ solution.dry
    return coulomb_residual(p.inertia, p.free_velocity, contacts, others)


# --- problems -----------------------------------------------------------------------------------


def inertia(rng: np.random.Generator, m: int, decades: float = 1.0) -> np.ndarray:
    """A dense symmetric positive definite matrix with condition number ``10 ** decades``."""
    Q = np.linalg.qr(rng.normal(size=(m, m)))[0]
    M = Q * np.logspace(0.0, decades, m) @ Q.T
    return 0.5 * (M + M.T)


def block_inertia(rng: np.random.Generator, bodies: int, s: int, decades: float = 0.0) -> Any:
    """Blocks of random bodies, their masses spread over this many decades."""
    masses = 10.0 ** rng.uniform(-decades / 2.0, decades / 2.0, bodies)
    return np.array([mass * inertia(rng, s) for mass in masses]).reshape(bodies, s, s)


def block_diagonal(blocks: np.ndarray) -> np.ndarray:
    bodies, s, _ = blocks.shape
    M = np.zeros((bodies, s, bodies, s))
    M[np.arange(bodies), :, np.arange(bodies)] = blocks
    return M.reshape(bodies * s, bodies * s)


def feasible_offset(rng: np.random.Generator, N: np.ndarray) -> np.ndarray:
    """b such that some motion satisfies ``N x + b >= 0``, many rows with no slack at all."""
    slack = rng.uniform(0.0, 1.0, len(N)) * (rng.random(len(N)) < 0.5)
    return slack - N @ rng.normal(size=N.shape[1])


def degenerate(rng: np.random.Generator, N: np.ndarray, kind: str) -> np.ndarray:
    """Rows with the degeneracies of real contact sets, in random order."""
    n, m = N.shape
    if kind == "duplicates":  # collision detectors list the same point several times
        N = np.repeat(N, 3, axis=0)
    elif kind == "coplanar":  # many points of one face: all rows in a space of three
        N = rng.normal(size=(n, min(3, m))) @ rng.normal(size=(min(3, m), m))
    elif kind == "opposite":  # a body between two walls
        N = np.vstack([N, -N[: max(1, n // 2)]])
    elif kind == "zero rows":  # a contact between bodies that cannot move
        N = np.vstack([N, np.zeros((2, m))])
    return N[rng.permutation(len(N))]


DEGENERACIES = ("none", "duplicates", "coplanar", "opposite", "zero rows")


@st.composite
def dense_problems(
    draw: st.DrawFn, *, offsets: bool = True, max_rows: int = 10, max_size: int = 8
) -> Problem:
    """Random rows, one of the degeneracies, an inertia with condition number up to 1e6."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    m, n = draw(st.integers(1, max_size)), draw(st.integers(0, max_rows))
    N = degenerate(rng, rng.normal(size=(n, m)), draw(st.sampled_from(DEGENERACIES)))
    M = inertia(rng, m, draw(st.sampled_from([0.0, 1.0, 3.0, 6.0])))
    b = feasible_offset(rng, N) if offsets and draw(st.booleans()) else None
    return Problem(N, M, rng.normal(size=m), b)


@st.composite
def nearly_degenerate_problems(draw: st.DrawFn, *, max_size: int = 12) -> Problem:
    """Degenerate up to noise of 1e-12 to 1e-3, as collision detectors make them; half joints."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    m, n = draw(st.integers(2, max_size)), draw(st.integers(1, 9))
    N = degenerate(rng, rng.normal(size=(n, m)), draw(st.sampled_from(DEGENERACIES[1:4])))
    N += 10.0 ** draw(st.integers(-12, -3)) * rng.normal(size=N.shape)
    lo, slack = np.zeros(len(N)), rng.uniform(0.0, 1.0, len(N)) * rng.integers(0, 2, len(N))
    if draw(st.booleans()):
        joints = rng.permutation(len(N))[: len(N) // 2]
        lo[joints], slack[joints] = -np.inf, 0.0
    b = slack - N @ rng.normal(size=m) if draw(st.booleans()) else None
    return Problem(N, inertia(rng, m), rng.normal(size=m), b, lo)


KINDS = {
    "contact": lambda c: (0.0, np.inf),
    "equality": lambda c: (-np.inf, np.inf),
    "friction": lambda c: (-abs(c), abs(c)),
    "fixed": lambda c: (c, c),
    "below": lambda c: (-np.inf, c),
    "above": lambda c: (c, np.inf),
    "loaded box": lambda c: (abs(c), 2.0 * abs(c) + 1.0),
}


@st.composite
def bounded_problems(draw: st.DrawFn, *, max_rows: int = 6, max_size: int = 5) -> Problem:
    """Rows with bounds of every kind: dry friction, joints, motors with a limit, given forces."""
    p = draw(dense_problems(max_rows=max_rows, max_size=max_size))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kinds = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1))
    pairs = [KINDS[kinds[i % len(kinds)]](rng.normal()) for i in range(len(p.N))]
    lo, hi = np.array(pairs).reshape(-1, 2).T
    b = None
    if draw(st.booleans()):
        # w may have either sign where both bounds are finite, else only the one that z allows
        slack = rng.uniform(0.0, 1.0, len(lo)) * rng.integers(0, 2, len(lo))
        slack *= (hi == np.inf) * 1.0 - (lo == -np.inf)
        b = slack - p.N @ rng.normal(size=len(p.v))
    return p.but(b=b, lo=lo, hi=hi)


@st.composite
def integer_problems(
    draw: st.DrawFn, *, offsets: bool = True, max_rows: int = 8, max_size: int = 4
) -> Problem:
    """Small integers: ties, dependent rows and zero velocities wherever one looks, M = I."""
    shape = draw(st.tuples(st.integers(0, max_rows), st.integers(1, max_size)))
    small = st.integers(-3, 3)
    N = draw(hnp.arrays(np.int64, shape, elements=small)).astype(float)
    v = draw(hnp.arrays(np.int64, shape[1], elements=small)).astype(float)
    b = None
    if offsets and draw(st.booleans()):
        target = draw(hnp.arrays(np.int64, shape[1], elements=small))
        b = draw(hnp.arrays(np.int64, shape[0], elements=st.integers(0, 1))) - N @ target
    return Problem(N, np.eye(shape[1]), v, b)


@st.composite
def body_problems(
    draw: st.DrawFn,
    *,
    max_decades: float = 12.0,
    min_bodies: int = 1,
    max_bodies: int = 4,
    max_rows: int = 10,
    sizes: tuple[int, ...] = (1, 3, 6),
) -> tuple[Problem, np.ndarray, np.ndarray, np.ndarray]:
    """Bodies in contact by pairs, masses 1e-6..1e6: dense problem, blocks of M, rows' blocks."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    bodies, n = draw(st.integers(min_bodies, max_bodies)), draw(st.integers(0, max_rows))
    s = draw(st.sampled_from(sizes))
    decades = draw(st.sampled_from([0.0, max_decades / 2.0, max_decades]))
    blocks = block_inertia(rng, bodies, s, decades)
    which = rng.integers(0, bodies, (n, 2))
    values = rng.normal(size=(n, 2, s))
    values[rng.random(n) < 0.3, 1] = 0.0  # contacts with the world
    N = np.zeros((n, bodies, s))
    np.add.at(N, (np.arange(n)[:, None], which), values)
    N = N.reshape(n, bodies * s)
    p = Problem(N, block_diagonal(blocks), rng.normal(size=bodies * s))
    return p, blocks, which, values


def problems(*, offsets: bool = True, max_decades: float = 12.0) -> st.SearchStrategy[Problem]:
    """Contact problems of every kind that fit into a dense reference."""
    bodies = body_problems(max_decades=max_decades).map(lambda drawn: drawn[0])
    return st.one_of(dense_problems(offsets=offsets), integer_problems(offsets=offsets), bodies)
