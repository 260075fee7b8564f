"""Contact problems by the thousand, changes that must not matter, and an independent answer.

A problem is a dict of the arguments of `ContactProblem`, so that it can be changed before it is
made. Rows of bodies are built by `holdfast.experiments.maximal`; nothing else is shared with
holdfast.
"""

from __future__ import annotations

from typing import Any

import daqp
import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from holdfast.contact.problem import ContactProblem
from holdfast.contact.solution import ContactSolution
from holdfast.contact.system import DISC, System
from holdfast.experiments.maximal import point_row, spin_row
from reference import DEGENERACIES, Problem, block_diagonal, energy_norm, inertia

Fields = dict[str, Any]

PER_CONTACT = ("N", "S", "T", "c_N", "Ndot_v", "mu", "mu_v", "bodies")
ROWS = ("N", "S", "T", "J", "R", "U", "D")

NO_SLIP = (  # arguments of `NoSlip`: how contacts stick, and who solves for that
    {"grip": "loaded"}, {"grip": "all", "solver": "ppm"}, {"grip": "all", "solver": "qp"},
    {"grip": "all", "solver": "lemke"},
)  # fmt: skip


# --- random problems ----------------------------------------------------------------------------


def frame(rng: np.random.Generator) -> np.ndarray:
    """Three orthonormal rows: a normal and two tangents."""
    return np.linalg.qr(rng.normal(size=(3, 3)))[0]


def contact_points(
    rng: np.random.Generator, bodies: int, n: int, kind: str
) -> list[tuple[int | None, int | None, np.ndarray, np.ndarray]]:
    """Contacts as (first body, second body, point, frame), with the degeneracies of real ones."""
    contacts = []
    pairs = [(a, b) for a in (None, *range(bodies)) for b in range(bodies) if a != b]
    for _ in range(n):
        first, second = pairs[rng.integers(len(pairs))]
        contacts.append((first, second, rng.normal(size=3), frame(rng)))
    if kind == "coplanar" and contacts:  # a face: one pair, one frame, all points in its plane
        first, second, point, axes = contacts[0]
        contacts = [
            (first, second, point + rng.normal(size=2) @ axes[1:], axes) for _ in range(2 * n)
        ]
    elif kind == "duplicates":
        contacts = contacts * 3
    elif kind == "opposite":  # the same point touched from both sides
        contacts += [(a, b, point, -axes) for a, b, point, axes in contacts[: max(1, n // 2)]]
    elif kind == "zero rows":  # the world touches itself
        contacts += [(None, None, np.zeros(3), np.eye(3))] * 2
    return [contacts[i] for i in rng.permutation(len(contacts))]


def dependent(rng: np.random.Generator, rows: np.ndarray) -> np.ndarray:
    """The same rows with two combinations of them added, as closed loops have."""
    return np.vstack([rows, rng.normal(size=(2, len(rows))) @ rows]) if len(rows) else rows


@st.composite
def body_fields(
    draw: st.DrawFn,
    *,
    decades: float = 6.0,
    forces: bool = True,
    targets: bool = False,
    joints: bool = True,
    max_contacts: int = 4,
    kinds: tuple[str, ...] = DEGENERACIES,
) -> Fields:
    """Free bodies in contact, masses spread over `decades`, J perhaps rank deficient."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    bodies, n = draw(st.integers(1, 3)), draw(st.integers(0, max_contacts))
    centres = rng.normal(size=(bodies, 3))
    masses = 10.0 ** rng.uniform(-decades / 2, decades / 2, bodies)
    blocks = np.zeros((bodies, 6, 6))
    for block, mass in zip(blocks, masses, strict=True):
        block[:3, :3], block[3:, 3:] = mass * np.eye(3), 0.1 * mass * inertia(rng, 3, 0.5)
    contacts = contact_points(rng, bodies, n, draw(st.sampled_from(kinds)))
    m = 6 * bodies
    rows = {
        name: np.array(
            [point_row(centres, a, b, point, axes[k]) for a, b, point, axes in contacts]
        ).reshape(-1, m)
        for k, name in enumerate("NST")
    }
    J = np.zeros((0, m))
    if joints and draw(st.booleans()):
        axes = frame(rng)
        hinge = [point_row(centres, None, 0, centres[0] + axes[1], axis) for axis in np.eye(3)]
        hinge += [spin_row(centres, None, 0, axis) for axis in axes[:2]]
        J = np.array(hinge)[: draw(st.integers(1, 5))]
        J = dependent(rng, J) if draw(st.booleans()) else J
    pairs = [[-1 if body is None else body for body in c[:2]] for c in contacts]
    fields = {
        "M": block_diagonal(blocks),
        "v": rng.normal(size=m),
        "J": J,
        "h": 0.01,
        "bodies": np.array(pairs, dtype=int).reshape(-1, 2),
        **rows,
    }
    if forces and draw(st.booleans()):
        fields["f"] = 10.0 * fields["M"] @ rng.normal(size=m)
    return with_targets(rng, fields) if targets else fields


def with_targets(rng: np.random.Generator, fields: Fields) -> Fields:
    """Targets that some motion reaches under every model, many without slack."""
    G = np.vstack([fields["S"], fields["T"]])
    x = null_space(G) @ rng.normal(size=null_space(G).shape[1])
    n = len(fields["N"])
    slack = rng.uniform(0.0, 1.0, n) * (rng.random(n) < 0.5)
    return fields | {"c_N": fields["N"] @ x - slack, "c_J": fields["J"] @ x}


@st.composite
def generalized_fields(draw: st.DrawFn, *, targets: bool = False) -> Fields:
    """Dense random inertia with condition number up to 1e6 and random rows."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    m, n, j = draw(st.integers(1, 9)), draw(st.integers(0, 4)), draw(st.integers(0, 2))
    N, S, T = rng.normal(size=(3, n, m))
    kind = draw(st.sampled_from(DEGENERACIES))
    if kind == "duplicates":
        N, S, T = (np.repeat(rows, 3, axis=0) for rows in (N, S, T))
    elif kind == "coplanar":
        low = rng.normal(size=(min(3, m), m))
        N, S, T = (rng.normal(size=(n, len(low))) @ low for _ in range(3))
    elif kind == "opposite":
        N, S, T = np.vstack([N, -N]), np.vstack([S, S]), np.vstack([T, -T])
    elif kind == "zero rows":
        N, S, T = (np.vstack([rows, np.zeros((2, m))]) for rows in (N, S, T))
    J = rng.normal(size=(j, m))
    J = dependent(rng, J) if draw(st.booleans()) else J
    M = inertia(rng, m, draw(st.sampled_from([0.0, 1.0, 3.0, 6.0])))
    fields = {"M": M, "v": rng.normal(size=m), "N": N, "S": S, "T": T, "J": J, "h": 0.1}
    return with_targets(rng, fields) if targets else fields


@st.composite
def integer_fields(draw: st.DrawFn, *, targets: bool = False) -> Fields:
    """Small integers: dependent rows, ties and zeros wherever one looks."""
    m, n, j = draw(st.integers(1, 5)), draw(st.integers(0, 5)), draw(st.integers(0, 2))
    small = st.integers(-2, 2)

    def draw_rows(count: int) -> np.ndarray:
        return draw(hnp.arrays(np.int64, (count, m), elements=small)).astype(float)

    v = draw(hnp.arrays(np.int64, m, elements=small)).astype(float)
    N, S, T, J = draw_rows(n), draw_rows(n), draw_rows(n), draw_rows(j)
    return {"M": np.eye(m), "v": v, "N": N, "S": S, "T": T, "J": J, "h": 1.0}


def contact_fields(*, targets: bool = False, decades: float = 6.0) -> st.SearchStrategy[Fields]:
    """Contact problems of every kind."""
    return st.one_of(
        body_fields(targets=targets, decades=decades),
        generalized_fields(targets=targets),
        integer_fields(targets=targets),
    )


def with_extras(rng: np.random.Generator, fields: Fields) -> Fields:
    """The problem with limits, dry friction and further friction rows added."""
    m, n = len(fields["v"]), len(fields["N"])
    extra = fields | {
        "U": rng.normal(size=(2, m)),
        "D": rng.normal(size=(2, m)),
        "D_bound": rng.uniform(0.0, 1.0, 2),
    }
    if n:
        extra |= {"R": rng.normal(size=(2, m)), "R_contact": rng.integers(0, n, 2)}
    return extra


# --- changes that must not matter ---------------------------------------------------------------


def pick(fields: Fields, order: np.ndarray) -> Fields:
    """The contacts in another order, or some of them several times."""
    picked = {name: fields[name][order] for name in PER_CONTACT if name in fields}
    if "R_contact" in fields:  # rows of R follow the first listing of their contact
        where = {int(contact): place for place, contact in reversed(list(enumerate(order)))}
        picked["R_contact"] = np.array([where[int(c)] for c in fields["R_contact"]], dtype=int)
    return fields | picked


def transformed(fields: Fields, Q: np.ndarray) -> Fields:
    """Other coordinates ``v' = Q v`` for the same problem."""
    inverse = np.linalg.inv(Q)
    change: Fields = {
        "M": inverse.T @ fields["M"] @ inverse,
        "v": Q @ fields["v"],
        **{name: fields[name] @ inverse for name in ROWS if name in fields},
    }
    if "f" in fields:
        change["f"] = inverse.T @ fields["f"]
    change["M"] = 0.5 * (change["M"] + change["M"].T)
    return fields | change


def in_units(fields: Fields, mass: float, length: float, time: float) -> tuple[Fields, np.ndarray]:
    """A problem of bodies with numbers for other units, and the factor of each velocity.

    Args:
        fields: in maximal coordinates, rows in m/s.
        mass: numbers of masses grow by this.
        length: likewise.
        time: likewise.
    """
    bodies = len(fields["v"]) // 6
    D = np.tile([length] * 3 + [1.0] * 3, bodies)
    speed = length / time
    change: Fields = {
        "M": mass * length**2 * fields["M"] / np.outer(D, D),
        "v": D * fields["v"] / time,
        "h": fields["h"] * time,
        **{name: length * fields[name] / D for name in "NSTJ"},
        **{name: speed * fields[name] for name in ("c_N", "c_J") if name in fields},
    }
    if "f" in fields:
        change["f"] = mass * length**2 / time**2 * fields["f"] / D
    if "mu_v" in fields:
        change["mu_v"] = mass / time * fields["mu_v"]
    return fields | change, D / time


# --- comparison ---------------------------------------------------------------------------------


def scale(problem: ContactProblem) -> float:
    """Size of the free motion in the metric of M."""
    return energy_norm(problem.inertia, problem.free_velocity) if problem.m else 0.0


def motion_distance(problem: ContactProblem, x: np.ndarray, y: np.ndarray) -> float:
    """Distance of two motions in the metric of M, relative to the largest of them and the free."""
    if problem.m == 0:
        return 0.0
    size = max(scale(problem), *(energy_norm(problem.inertia, u) for u in (x, y)))
    return energy_norm(problem.inertia, x - y) / size if size > 0.0 else 0.0


# --- proof and an independent answer ------------------------------------------------------------


def as_projection(solution: ContactSolution) -> tuple[Problem, np.ndarray, np.ndarray]:
    """What a velocity-level solution claims to solve, with its forces and its motion.

    Every row is there, also the redundant ones, so `reference.kkt` proves the whole answer.
    """
    p, held = solution.problem, solution.sticking
    M = p.inertia + (p.h or 0.0) * solution.drag
    tangents = [
        (rows[held], solution.tangent[held, k]) for k, rows in enumerate((p.S, p.T)) if len(rows)
    ]
    stuck = held[p.R_contact]
    equal = [(p.J, solution.bilateral), *tangents, (p.R[stuck], solution.extra[stuck])]
    above = [(p.N, solution.normal), (p.U, solution.unilateral)]
    G, A = (np.vstack([rows for rows, _ in parts]) for parts in (equal, above))
    z = np.concatenate([force for _, force in (*equal, *above)] + [solution.dry])
    lo = np.concatenate([np.full(len(G), -np.inf), np.zeros(len(A)), -p.D_bound])
    hi = np.concatenate([np.full(len(G) + len(A), np.inf), p.D_bound])
    b = np.zeros(len(z))
    b[: p.j] = -p.c_J
    b[len(G) : len(G) + len(A)] = -np.concatenate([p.c_N, p.c_U])
    free = np.linalg.solve(M, p.impulse)
    return Problem(np.vstack([G, A, p.D]), M, free, b, lo, hi), z, solution.motion


def null_space(rows: np.ndarray, tol: float = 1e-9) -> np.ndarray:
    """Orthonormal basis (as columns) of the complement of rows, each of which counts as one."""
    length = np.linalg.norm(rows, axis=1)
    rows = rows[length > 0.0] / length[length > 0.0, None]
    if len(rows) == 0:
        return np.eye(rows.shape[1])
    _, values, basis = np.linalg.svd(rows)
    return basis[int((values > tol * values[0]).sum()) :].T


def nearest_motion(
    M: np.ndarray, free: np.ndarray, G: np.ndarray, N: np.ndarray, c: np.ndarray
) -> np.ndarray:
    """argmin 1/2 (x - free)' M (x - free) subject to G x = 0 and N x >= c.

    Whitening, the null space of G by a singular value decomposition, and a dual active-set
    method on rows of length one.
    """
    L = np.linalg.cholesky(M)
    Z = null_space(np.linalg.solve(L, G.T).T)
    y0 = Z.T @ (L.T @ free)
    A = np.linalg.solve(L, N.T).T
    length = np.linalg.norm(A, axis=1)
    A, gap = (A @ Z), c - A @ Z @ y0  # A d >= gap for the change d of the motion
    real = np.linalg.norm(A, axis=1) > 1e-12 * np.where(length > 0.0, length, 1.0)
    A, gap = A[real], gap[real]
    length = np.linalg.norm(A, axis=1)
    A, gap = A / length[:, None], gap / length
    unit = np.abs(gap).max(initial=0.0)  # the tolerances of daqp are absolute
    if (gap <= 0.0).all():
        return np.linalg.solve(L.T, Z @ y0)
    p = Z.shape[1]
    # rows that are opposite up to rounding leave a gap of rounding, so the tolerance is above it
    tight = {"primal_tol": 1e-11 + 1e-13 * np.linalg.cond(L), "dual_tol": 1e-12}
    d, _, flag, _ = daqp.solve(
        np.eye(p), np.zeros(p), A, np.full(len(A), 1e30), gap / unit, **tight
    )
    assert flag == 1
    return np.linalg.solve(L.T, Z @ (y0 + unit * d))


def one_contact(dim: int, mu: float) -> System:
    """A contact of this many rows, without bodies."""
    none, no_index = np.zeros(0), np.zeros(0, dtype=np.int64)
    return System(
        no_index, np.array([0, dim]), np.zeros(2, dtype=np.int64), no_index, no_index, none, none,
        none, np.zeros(dim), np.zeros(dim), np.ones(1, dtype=np.int64),
        np.full(1, DISC), np.full(1, mu), np.zeros(1), np.ones(dim),
    )  # fmt: skip
