"""``make fuzz``: random scenes, interrupts and forgeries for so many seconds, as figures.

    python -m fuzz.run --seconds 600 [--first SEED]

Four fifths of the time are for steps of random scenes, the rest for random interrupts, for steps of
`EventDriven`, for honest recordings that `verify` must pass, and for forged ones.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

from fuzz.figures import Figures, run_scene
from fuzz.random_scenes import random_scene


def others(seconds: float, first: int) -> None:
    """Interrupts, `EventDriven` and forgeries, in processes of their own."""
    count = str(max(100, int(10 * seconds)))
    for name, arguments in (
        ("interrupts", ["fuzz.interrupts", "random", count, str(first)]),
        ("EventDriven", ["fuzz.teleports", "--first", str(first), "--seconds", f"{seconds / 3}"]),
        ("recordings", ["fuzz.recordings", "--first", str(first), "--seconds", f"{seconds / 3}"]),
        ("forgeries", ["fuzz.forgeries"]),
    ):
        done = subprocess.run([sys.executable, "-m", *arguments], capture_output=True, text=True,
                              check=False)  # fmt: skip
        print(f"{name}: {done.stdout.strip()}")
        if done.returncode:
            print(f"{name} ended with {done.returncode}: {done.stderr[-1000:]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--scenes", type=int, default=10**9, help="at most so many scenes")
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--probes", type=int, default=6, help="history probes of a scene")
    wanted = parser.parse_args()
    figures, end, seed = Figures(), time.monotonic() + 0.8 * wanted.seconds, wanted.first
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
    others(0.2 * wanted.seconds, wanted.first)
    print(f"history: scenes above 1e-12: {sorted(figures.history.scenes[0])[:40]}")


if __name__ == "__main__":
    main()
