"""``make fuzz``: random scenes for so many seconds, and what was measured.

python -m fuzz.run --seconds 600 [--first SEED] [--only history]
"""

from __future__ import annotations

import argparse
import time

from fuzz.figures import Figures, run_scene
from fuzz.scenes import random_scene


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--scenes", type=int, default=10**9, help="at most so many scenes")
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--probes", type=int, default=6, help="history probes of a scene")
    wanted = parser.parse_args()
    figures, end, seed = Figures(), time.monotonic() + wanted.seconds, wanted.first
    while time.monotonic() < end and seed < wanted.first + wanted.scenes:
        run_scene(random_scene(seed), figures, wanted.steps, wanted.probes)
        seed += 1
    print(f"seeds {wanted.first} to {seed - 1}")
    print(figures)
    for name, text in figures.first.items():
        print(f"\nfirst {name}: {text}")
        print("seeds:", figures.seeds[name][:20])
    for name in ("penetration", "force", "energy", "history"):
        spread = getattr(figures, name)
        print(f"{name}: scenes above the last bound: {sorted(spread.scenes[-1])[:20]}")
    print(f"history: scenes above 1e-12: {sorted(figures.history.scenes[0])[:40]}")


if __name__ == "__main__":
    main()
