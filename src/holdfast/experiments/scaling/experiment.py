"""Time of a solve against the number of contacts n and of coordinates m.

The paper claims a cost linear in n for both of its models. The scene: a tower of unit cubes that
settles, contact points scattered over every interface, as many as one likes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from holdfast import lcp
from holdfast.contact.problem import ContactProblem
from holdfast.experiments.maximal import GRAVITY, WORLD, X, Y, Z, contact_rows, inertia
from holdfast.experiments.parts import Report, Section, Trial
from holdfast.models import NoSlip, StewartTrinkle, Viscous

Solve = Callable[[ContactProblem], int]  # returns the number of pivots

BODIES = 2  # of the sweep over n: m = 12
CONTACTS = 200  # of the sweep over m
SIZES = (10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
QUICK_SIZES = (10, 100, 300, 1000, 3000, 10_000, 100_000)
TOWERS = (1, 2, 4, 8, 16, 32)
QUICK_TOWERS = (1, 2, 4, 8)
SEEDS, QUICK_SEEDS = 3, 1
CAP, QUICK_CAP = 5.0, 0.4  # [s] methods with dense matrices go no further than this
REPEATS, SECONDS = 15, 0.5  # of one measurement: at most so many calls, in about so much time
BYTES = 4e9  # a method that needs more for its dense matrix is not asked


@dataclass(frozen=True)
class Method:
    """One line of the plot.

    Attributes:
        label: for people.
        solve: from the problem to forces.
        ours: whether it is what the paper proposes, as we do it.
        rows: rows of the dense matrix that it forms per contact; 0 if none.
    """

    label: str
    solve: Solve
    ours: bool = False
    rows: int = 0


def _by(model: Any) -> Solve:
    return lambda problem: model.solve(problem).pivots


def dense_ppm(problem: ContactProblem) -> int:
    """The no-slip LCP formed as the paper prints it, F = N P N', then pivoting on F."""
    p = problem
    kept = lcp.find_indices(p.M, p.J, p.S, p.T)
    G = np.vstack([rows[which] for rows, which in zip((p.J, p.S, p.T), kept, strict=True)])
    # whitened: P = L^-T (I - Q Q') L^-1 with Q an orthonormal basis of the rows of G L^-T
    L = np.linalg.cholesky(p.inertia)
    Q = np.linalg.qr(np.linalg.solve(L, G.T))[0]
    rows, free = np.linalg.solve(L, p.N.T), L.T @ p.free_velocity
    rows = rows - Q @ (Q.T @ rows)
    return lcp.solve(rows.T @ rows, rows.T @ free - p.c_N, "ppm").pivots


METHODS = {
    "noslip": Method("no-slip", _by(NoSlip(grip="all", solver="ppm")), ours=True),
    "noslip-pressed": Method("no-slip where pressed", _by(NoSlip()), ours=True),
    "viscous": Method("viscous", _by(Viscous(0.1, solver="ppm")), ours=True),
    "noslip-ppm-dense": Method("no-slip, dense PPM", dense_ppm, rows=1),
    "noslip-qp": Method("no-slip, active-set QP", _by(NoSlip(grip="all", solver="qp")), rows=1),
    "noslip-lemke": Method("no-slip, Lemke", _by(NoSlip(grip="all", solver="lemke")), rows=1),
    "viscous-lemke": Method("viscous, Lemke", _by(Viscous(0.1, solver="lemke")), rows=1),
    "stewart-trinkle": Method("Stewart-Trinkle, Lemke", _by(StewartTrinkle(100.0)), rows=6),
}


def tower(bodies: int, contacts: int, seed: int) -> ContactProblem:
    """Unit cubes of 1 kg on top of each other, settling; contact i is on interface i mod bodies."""
    rng = np.random.default_rng([seed, bodies, contacts])
    level = np.arange(bodies)
    centre = np.column_stack([np.zeros((bodies, 2)), level + 0.5])
    face = np.arange(contacts) % bodies
    below = np.where(face == 0, WORLD, face - 1)
    point = np.column_stack([rng.uniform(-0.5, 0.5, (contacts, 2)), face])
    N, S, T = (
        contact_rows(centre, below, face, point, np.broadcast_to(along, point.shape))
        for along in (Z, X, Y)
    )
    f = np.zeros((bodies, 6))
    f[:, 2] = -GRAVITY
    v = 0.02 * rng.normal(size=6 * bodies)
    return ContactProblem(M=inertia(bodies), N=N, S=S, T=T, v=v, f=f.ravel(), h=0.01)


@dataclass(frozen=True)
class Scaling:
    """Sweeps over n and over m.

    Attributes:
        seed: of the first of several scenes of each size.
    """

    name: str = "scaling"
    seed: int = 0

    def trials(self, *, quick: bool) -> list[Trial]:
        """One per method and sweep."""
        over_n = [(BODIES, n) for n in (QUICK_SIZES if quick else SIZES)]
        over_m = [(bodies, CONTACTS) for bodies in (QUICK_TOWERS if quick else TOWERS)]
        seeds = range(self.seed, self.seed + (QUICK_SEEDS if quick else SEEDS))
        cap = QUICK_CAP if quick else CAP
        return [
            Trial(f"{sweep}-{key}", _sweep(method, sizes, seeds, cap))
            for sweep, sizes in (("n", over_n), ("m", over_m))
            for key, method in METHODS.items()
        ]

    def sections(self, results: Mapping[str, dict[str, Any]]) -> list[Section]:
        """See the module `report` beside this one."""
        from holdfast.experiments.scaling.report import sections

        return sections(results)


def _sweep(
    method: Method, sizes: list[tuple[int, int]], seeds: range, cap: float
) -> Callable[[Report], dict[str, Any]]:
    def run(report: Report) -> dict[str, Any]:
        points, stopped = [], ""
        for k, (bodies, contacts) in enumerate(sizes):
            needs = 8.0 * (method.rows * contacts) ** 2
            if needs > BYTES:
                stopped = f"a dense matrix of {needs / 1e9:.0f} GB at n = {contacts}"
                break
            expected = _expected(points, bodies * contacts)
            if expected > cap and not method.ours:
                stopped = f"about {expected:.0f} s expected at n = {contacts}, m = {6 * bodies}"
                break
            times, pivots = zip(
                *(measure(method.solve, tower(bodies, contacts, seed)) for seed in seeds),
                strict=True,
            )
            points.append({
                "n": contacts, "m": 6 * bodies, "seconds": list(times), "pivots": list(pivots),
            })  # fmt: skip
            report((k + 1) / len(sizes))
        return {"points": points, "stopped": stopped}

    return run


def _expected(points: list[dict[str, Any]], size: int) -> float:
    """Seconds of the next size, if they go on growing as they did; 0 if nothing is known."""
    if len(points) < 2:
        return 0.0
    before, last = ((p["n"] * p["m"] / 6, float(np.median(p["seconds"]))) for p in points[-2:])
    slope = np.log(last[1] / before[1]) / np.log(last[0] / before[0])
    return last[1] * (size / last[0]) ** max(1.0, float(slope))


def measure(solve: Solve, problem: ContactProblem) -> tuple[float, int]:
    """Median seconds of a solve, and its pivots; the first call, which may compile, not counted."""
    pivots, times = solve(problem), []
    while not times or (len(times) < REPEATS and sum(times) < SECONDS):
        begin = time.thread_time()
        pivots = solve(problem)
        times.append(time.thread_time() - begin)
    return float(np.median(times)), int(pivots)
