"""`EventDriven` on random scenes: no body moves farther in a step than its speed allows.

python -m fuzz.teleports --scenes 1000 [--first SEED] [--seconds 600]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from typing import Any

import mujoco
import numpy as np

import holdfast as hf
from fuzz.random_scenes import random_scene

SLACK = 2.0  # times the way at the fastest speed of the step
STEPS = 40


def excess(model: Any, q: np.ndarray, v: np.ndarray, data: Any, size: float) -> float:
    """How far coordinates have moved beyond what their speeds allow, over the size."""
    h = float(model.opt.timestep)
    moved = np.empty(model.nv)
    mujoco.mj_differentiatePos(model, moved, 1.0, q, data.qpos)
    free = mujoco.MjData(model)  # what drives it, actuators too: it may be fast between the two
    free.qpos[:], free.qvel[:], free.ctrl[:], free.act[:] = q, v, data.ctrl, data.act
    mujoco.mj_forward(model, free)
    pull = float(np.linalg.norm(model.opt.gravity))
    pull = max(pull, float(np.abs(free.qacc_smooth).max(initial=0.0)))
    speed = max(float(np.abs(v).max(initial=0.0)), float(np.abs(data.qvel).max(initial=0.0)))
    reach = max(1.0, 1.0 / size)  # a turn of one coordinate is a way of another
    allowed = SLACK * h * (speed + h * pull) * reach + 1e-6 * size
    return max(float(np.abs(moved).max(initial=0.0)) - allowed, 0.0) / size


def run_scene(seed: int, steps: int = STEPS) -> tuple[float, str, float]:
    """Largest excess of a scene, how it ended, and the largest relative gain of energy."""
    scene = random_scene(seed, scales=(0.01, 1.0), grounds=("hfield", "plane", "box", "mesh"))
    model, data = scene.load()
    model.opt.timestep = max(model.opt.timestep, 2e-3)
    worst, gain = 0.0, 0.0
    try:
        simulation = hf.EventDriven(model)
        for k in range(steps):
            scene.drive(model, data, k)
            q, v = data.qpos.copy(), data.qvel.copy()
            simulation.step(data)
            worst = max(worst, excess(model, q, v, data, scene.size))
            if worst > 0.0:
                return worst, f"teleport at step {k}", gain
    except hf.HoldfastError as error:
        return worst, f"{type(error).__name__}: {error.__cause__ or error}"[:60], gain
    return worst, "done", gain


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenes", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=600.0)
    wanted = parser.parse_args()
    end, count, worst = time.monotonic() + wanted.seconds, 0, []
    ends: Counter[str] = Counter()
    for seed in range(wanted.first, wanted.first + wanted.scenes):
        if time.monotonic() > end:
            break
        excess, how, _ = run_scene(seed)
        count += 1
        ends[how.split(":")[0].split(" at ")[0]] += 1
        if excess > 0.0:
            worst.append((excess, seed, how))
        if excess > 0.0 or how != "done":
            print(f"# seed {seed}: {how}", file=sys.stderr, flush=True)
    print(f"{count} scenes: {len(worst)} in which a body moves farther than its speed allows")
    print(dict(ends))
    for each in sorted(worst, reverse=True)[:10]:
        print("  {:.3g} sizes, seed {}, {}".format(*each))


if __name__ == "__main__":
    main()
