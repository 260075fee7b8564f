"""Which motion holdfast takes where several obey Coulomb's law: it must not depend on the way.

    python benchmarks/selection.py [--count 3000] [--first 0] [--seeds 17 4711]

Each random problem (`tests/contact_generators.py`, by seed) is solved again with

- order: contacts, limits, dry rows and joints listed in another order;
- frames: tangents turned about the normals where friction is the same in all directions, and each
  body's coordinates turned;
- warm starts: from its own answer, from that of a problem whose velocity differs, from that with
  half the friction, and from that with twice.

Counted are problems whose motion then differs by more than 1e-7 of its size. What only one of two
solves certifies is counted apart.
"""

# ruff: noqa: E402  (threads are limited before NumPy loads)

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import holdfast as hf
from contact_generators import family, generate

SAME = 1e-7  # relative difference of motions up to which they are one
OTHER = 0.01  # relative change of the velocity of the problem that a warm start comes from
Rng = np.random.Generator


def changed(problem: hf.ContactProblem, **new: object) -> hf.ContactProblem:
    """The problem with other fields."""
    given = {f.name: getattr(problem, f.name) for f in fields(problem) if f.init}
    return hf.ContactProblem(**(given | new))


def reordered(p: hf.ContactProblem, rng: Rng) -> hf.ContactProblem:
    """Rows in another order."""
    n = rng.permutation(p.n)
    place = np.argsort(n)
    new = {name: getattr(p, name)[n] for name in "NST" if len(getattr(p, name))}
    new |= {"c_N": p.c_N[n], "mu": p.mu[n]}
    if p.bodies is not None:
        new["bodies"] = p.bodies[n]
    if len(p.R):
        new["R_contact"] = place[p.R_contact]
    u, d, j = (rng.permutation(len(getattr(p, name))) for name in "UDJ")
    new |= {"U": p.U[u], "c_U": p.c_U[u], "D": p.D[d], "D_bound": p.D_bound[d]}
    new |= {"J": p.J[j], "c_J": p.c_J[j], "compliance_J": p.compliance_J[j]}
    return changed(p, **new)


def turned(p: hf.ContactProblem, rng: Rng) -> tuple[hf.ContactProblem, np.ndarray]:
    """Tangents turned, and coordinates w with v = Q w; also Q, body by body."""
    blocks = p.M if p.M.ndim == 3 else p.M[None]
    size = blocks.shape[1]
    Q = np.array([np.linalg.qr(rng.normal(size=(size, size)))[0] for _ in blocks])
    M = Q.transpose(0, 2, 1) @ blocks @ Q
    M = (M + M.transpose(0, 2, 1)) / 2

    def rows(A: np.ndarray) -> np.ndarray:
        parts = A.reshape(len(A), len(Q), size)
        return np.einsum("kbi,bij->kbj", parts, Q).reshape(A.shape)

    new: dict[str, object] = {name: rows(getattr(p, name)) for name in "NSTRUDJ"}
    if p.mu.ndim == 1 and len(p.S) and len(p.T):
        angle = rng.uniform(0.0, 2.0 * np.pi, p.n)[:, None]
        c, s, S, T = np.cos(angle), np.sin(angle), new["S"], new["T"]
        new |= {"S": c * S + s * T, "T": c * T - s * S}
    new |= {"M": M if p.M.ndim == 3 else M[0], "v": rows(p.v[None])[0]}
    if p.f is not None:
        new["f"] = rows(p.f[None])[0]
    return changed(p, **new), Q


def solve(problem: hf.ContactProblem, warm: object = None) -> hf.ContactSolution | None:
    """A certified answer, or None."""
    try:
        return hf.Coulomb().solve(problem, warm_start=warm)
    except hf.HoldfastError:
        return None


def warm_starts(p: hf.ContactProblem, own: hf.ContactSolution,
                rng: Rng) -> Iterator[hf.ContactSolution]:  # fmt: skip
    """Answers to begin with."""
    yield own
    other = rng.normal(size=p.m) * OTHER * np.linalg.norm(p.free_velocity) / np.sqrt(p.m)
    for near in (changed(p, v=p.v + other), changed(p, mu=0.5 * p.mu), changed(p, mu=2.0 * p.mu)):
        answer = solve(near)
        if answer is not None:
            yield answer


def differ(p: hf.ContactProblem, one: np.ndarray, other: np.ndarray) -> float:
    """Difference of two motions, relative to the size of all, in the norm of the inertia."""
    blocks = np.linalg.cholesky(p.M if p.M.ndim == 3 else p.M[None])

    def size(v: np.ndarray) -> float:
        return float(np.linalg.norm(np.einsum("bji,bj->bi", blocks, v.reshape(len(blocks), -1))))

    return size(one - other) / max(size(p.free_velocity), size(one), size(p.v), 1e-300)


def run(seed: int) -> dict[str, float]:
    """Differences of motions by what was changed; nan where there is no certified answer."""
    p, rng = generate(seed), np.random.default_rng([seed, 77])
    own = solve(p)
    if own is None:
        return {}
    found = {}
    other = solve(reordered(p, rng))
    found["order"] = np.nan if other is None else differ(p, own.velocity, other.velocity)
    q, Q = turned(p, rng)
    other = solve(q)
    found["frames"] = np.nan
    if other is not None:
        back = np.einsum("bij,bj->bi", Q, other.velocity.reshape(len(Q), -1)).ravel()
        found["frames"] = differ(p, own.velocity, back)
    worst = 0.0
    for warm in warm_starts(p, own, rng):
        other = solve(p, warm)
        miss = np.nan if other is None else differ(p, own.velocity, other.velocity)
        worst = miss if not miss <= worst else worst
    found["warm starts"] = worst
    return found


def main() -> None:
    """Run, print problems whose motions differ, and how many there are."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--count", type=int, default=3000)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--seeds", type=int, nargs="*", help="only these")
    given = parser.parse_args()
    seeds = given.seeds or range(given.first, given.first + given.count)
    count: Counter[str] = Counter()
    for seed in seeds:
        found = run(seed)
        count["uncertified"] += not found
        for name, miss in found.items():
            count[name] += bool(miss > SAME)
            count[f"{name}, uncertified"] += bool(np.isnan(miss))
        if any(not miss <= SAME for miss in found.values()):
            said = ", ".join(f"{name} {miss:.1e}" for name, miss in found.items())
            print(f"seed {seed} ({family(seed)}): {said}", flush=True)
    print(f"of {len(seeds)} problems, motions that differ by more than {SAME:.0e}:")
    for name, found in count.items():
        print(f"  {name}: {found}")


if __name__ == "__main__":
    main()
