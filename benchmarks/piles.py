"""Boxes that fall into a box with walls: steps of holdfast beside `mj_step`, by the hundred.

    python benchmarks/piles.py [--boxes 20 60 100] [--seeds 1 2] [--steps 900] [--half 0.26]
                               [--record DIR --every 10] [--out benchmarks/results]

Boxes of different size and pose, by seed, fall in layers between four walls (`--half 0`: onto a
floor without walls). Both steppers begin with the same state and go their own ways, one step each
in turns, and who comes first changes from step to step; MuJoCo has its default settings. Times are
those of the processor. Each hundred steps have a line:

ratio     time of our steps over that of `mj_step`
worst     our slowest step over the median of ours in the whole run
contacts  mean number of contacts that mattered
solves    mean number of contact solves of a step: looking ahead leads to further ones
factors   mean number of factorisations of a step, and the largest
rungs     steps by the farthest rung of the ladder, see `holdfast.contact.ladder`
force     largest normal force over what weight and momentum of the state explain
sinks     deepest penetration that a step begins with, over the smallest half edge
"""

# ruff: noqa: E402  (threads are limited before NumPy loads)

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import time
import warnings
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import mujoco
import numpy as np

import holdfast as hf
from corpus import random_pose
from holdfast.contact.ladder import Rung
from models import explained, largest_force

PART = 100  # steps of a line
SPACING = 0.17  # between boxes at the beginning, more than any diagonal [m]
SIZES = 0.025, 0.055  # half edges [m]


@dataclass
class Part:
    """A hundred steps; see above."""

    boxes: int
    seed: int
    half: float
    first: int
    ratio: float
    worst: float
    contacts: float
    solves: float
    factors: float
    most_factors: int
    rungs: dict[str, int]
    uncertified: int
    inconsistent: int
    force: float
    sinks: float


@dataclass
class Step:
    """One step of ours, and the time of MuJoCo's."""

    ours: float
    theirs: float
    contacts: int
    solves: int
    factors: int
    rung: int
    uncertified: int
    inconsistent: int
    force: float
    depth: float


def pile(count: int, seed: int, half: float) -> str:
    """Boxes in layers above a floor, between walls at this distance from the middle, if any."""
    rng = np.random.default_rng([seed, count])
    side = max(int(2.0 * (half or 0.26) / SPACING), 1)
    walls = "".join(
        f'<geom type="plane" size="2 2 1" pos="{-half * x} {-half * y} 0" zaxis="{x} {y} 0"/>'
        for x, y in ((1, 0), (-1, 0), (0, 1), (0, -1))
        if half
    )
    bodies = ""
    for i in range(count):
        layer, place = divmod(i, side * side)
        x, y = (np.array(divmod(place, side)) - 0.5 * (side - 1)) * (SPACING - 0.005)
        x, y = np.array([x, y]) + rng.uniform(-0.01, 0.01, 2)
        size = " ".join(f"{s:.9f}" for s in rng.uniform(*SIZES, 3))
        bodies += (
            f'<body pos="{x:.9f} {y:.9f} {0.12 + SPACING * layer:.9f}" quat="{random_pose(rng)}">'
            f'<freejoint/><geom type="box" size="{size}"/></body>'
        )
    return f"""<mujoco><size memory="400M"/><worldbody>
      <geom type="plane" size="5 5 1"/>{walls}{bodies}</worldbody></mujoco>"""


def timed(step: Any, data: Any) -> float:
    """Take a step; the processor's time [s]."""
    begin = time.thread_time()
    step(data)
    return time.thread_time() - begin


def run(model: Any, steps: int, record: Path | None, every: int) -> list[Step]:
    """Step a pile with both; save the contact problem of every so many steps."""
    stepper = hf.Stepper(model, warn=False)
    stepper.step(mujoco.MjData(model))  # memory grows, kernels are loaded
    stepper.reset()
    ours, theirs, taken = mujoco.MjData(model), mujoco.MjData(model), []
    before, counted = np.zeros(4), ("solves", "factorisations", "uncertified", "inconsistent")
    gc.disable()
    for k in range(steps):
        could = explained(model, ours)
        if k % 2:
            t, other = timed(stepper.step, ours), timed(lambda d: mujoco.mj_step(model, d), theirs)
        else:
            other, t = timed(lambda d: mujoco.mj_step(model, d), theirs), timed(stepper.step, ours)
        after = np.array([stepper._get(what) for what in counted], dtype=float)
        solves, factors, uncertified, inconsistent = (int(x) for x in after - before)
        before = after
        taken.append(
            Step(t, other, stepper.contact_count, solves, factors, int(stepper._get("rung")),
                 uncertified, inconsistent, largest_force(model, ours) / could,
                 stepper.largest_penetration)
        )  # fmt: skip
        stepper._set(deepest=0.0)
        if record is not None and k % every == 0 and stepper.contact_count:
            record.mkdir(parents=True, exist_ok=True)
            stepper._copy_outcome().problem().save(record / f"step_{k:04d}.npz")
    gc.enable()
    return taken


def summary(taken: list[Step], boxes: int, seed: int, half: float) -> list[Part]:
    """A line for each hundred steps."""
    median, parts = float(np.median([s.ours for s in taken])), []
    for first in range(0, len(taken), PART):
        some = taken[first : first + PART]
        rungs = Counter(Rung(s.rung).name.lower() for s in some if s.solves)
        parts.append(
            Part(boxes, seed, half, first,
                 sum(s.ours for s in some) / sum(s.theirs for s in some),
                 max(s.ours for s in some) / median,
                 float(np.mean([s.contacts for s in some])),
                 float(np.mean([s.solves for s in some])),
                 float(np.mean([s.factors for s in some])), max(s.factors for s in some),
                 dict(rungs), sum(s.uncertified for s in some),
                 sum(s.inconsistent for s in some), max(s.force for s in some),
                 max(s.depth for s in some) / SIZES[0])
        )  # fmt: skip
    return parts


HEADINGS = ("boxes", "seed", "half", "steps", "ratio", "worst", "contacts", "solves", "factors",
            "rungs", "uncertified", "inconsistent", "force", "sinks")  # fmt: skip


def cells(p: Part) -> tuple[str, ...]:
    """One line of the table."""
    rungs = " ".join(f"{name} {count}" for name, count in sorted(p.rungs.items()))
    return (str(p.boxes), str(p.seed), f"{p.half:g}", f"{p.first}-{p.first + PART}",
            f"{p.ratio:.2f}", f"{p.worst:.1f}", f"{p.contacts:.0f}", f"{p.solves:.2f}",
            f"{p.factors:.1f} ({p.most_factors})", rungs, str(p.uncertified), str(p.inconsistent),
            f"{p.force:.2f}", f"{p.sinks:.0e}")  # fmt: skip


def _line(entries: tuple[str, ...]) -> str:
    return "| " + " | ".join(entries) + " |"


def main() -> None:
    """Step the piles, print a line per hundred steps, write tables and numbers."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--boxes", type=int, nargs="*", default=[20, 60, 100])
    parser.add_argument("--seeds", type=int, nargs="*", default=[1])
    parser.add_argument("--half", type=float, nargs="*", default=[0.26], help="0: no walls")
    parser.add_argument("--steps", type=int, default=900)
    parser.add_argument("--record", type=Path, help="folder for contact problems")
    parser.add_argument("--every", type=int, default=10, help="steps from one to the next")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    given = parser.parse_args()
    warnings.simplefilter("ignore", hf.StepWarning)
    lines = [_line(HEADINGS), _line(("---:",) * len(HEADINGS))]
    print("\n".join(lines), flush=True)
    measured: list[Part] = []
    for boxes in given.boxes:
        for seed in given.seeds:
            for half in given.half:
                model = mujoco.MjModel.from_xml_string(pile(boxes, seed, half))
                folder = given.record and given.record / f"{boxes}_seed{seed}_half{half:g}"
                taken = run(model, given.steps, folder, given.every)
                parts = summary(taken, boxes, seed, half)
                measured += parts
                lines += [_line(cells(p)) for p in parts]
                print("\n".join(lines[-len(parts) :]), flush=True)
    given.out.mkdir(parents=True, exist_ok=True)
    versions = {"mujoco": mujoco.__version__, "machine": platform.machine()}
    numbers = {"versions": versions, "parts": [asdict(p) for p in measured]}
    (given.out / "piles.md").write_text("\n".join(lines) + "\n")
    (given.out / "piles.json").write_text(json.dumps(numbers, indent=1))


if __name__ == "__main__":
    main()
