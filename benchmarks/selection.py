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
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import holdfast as hf
from contact_generators import family, generate
from contact_variants import changed, differ, reordered, turned

SAME = 1e-7  # relative difference of motions up to which they are one
OTHER = 0.01  # relative change of the velocity of the problem that a warm start comes from
Rng = np.random.Generator


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
