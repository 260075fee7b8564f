"""Step time of holdfast from Python against `mj_step`, on the same scenes, as ratios.

    python benchmarks/step.py [--quick] [--out benchmarks/results] [--scenes grasp pile]

Every scene starts from one state and is stepped under three settings that take turns, one step
each: MuJoCo as the scene has it (its defaults), MuJoCo with its recipe against slip (elliptic
cone, impratio 10, noslip), and holdfast; who comes first changes from step to step, because caches
are cold then. A busy moment of the machine hits them all. Results are medians over the steps;
the first steps, which compile and touch memory, do not count.
"""

from __future__ import annotations

import argparse
import copy
import gc
import json
import platform
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

import holdfast as hf
from holdfast.tools import scenes

NOSLIP = {"cone": mujoco.mjtCone.mjCONE_ELLIPTIC, "impratio": 10.0, "noslip_iterations": 50}
_STATE = int(mujoco.mjtState.mjSTATE_INTEGRATION)
WARM_UP = 10  # steps that do not count


@dataclass(frozen=True)
class Scene:
    """A scene, and how long to step it.

    Attributes:
        restart: steps after which all settings start again: MuJoCo drops a row, and what has
            fallen has no contacts any more; 0 for never.
        before: steps that holdfast takes first, so that all begin where it has come to rest.
    """

    name: str
    xml: Callable[[], str]
    steps: int = 400
    seconds: float = 20.0
    restart: int = 0
    before: int = 0


@dataclass
class Outcome:
    """Median step times [s] of one scene, and what ours did meanwhile."""

    scene: str
    contacts: float  # mean number in our problem
    steps: int
    default: float
    noslip: float
    ours: float
    slowest: float  # of our steps, 99th percentile
    inconsistent: int
    slipped: float  # [m/s]
    penetration: float  # [m]
    problem: str = ""

    @property
    def ratios(self) -> tuple[float, float]:
        """Our time over MuJoCo's default and over its noslip."""
        return self.ours / self.default, self.ours / self.noslip


def plate(points: int) -> str:
    """A plate of 1 kg on n small spheres in a grid, on the floor."""
    side = np.linspace(-0.5, 0.5, round(points**0.5))
    feet = "".join(
        f'<geom type="sphere" size=".01" pos="{x} {y} -.02"/>' for x in side for y in side
    )
    return f"""<mujoco><size memory="200M"/><worldbody>
      <geom type="plane" size="5 5 1"/>
      <body pos="0 0 .03"><freejoint/>
        <geom type="box" size=".5 .5 .01" mass="1" contype="0" conaffinity="0"/>{feet}
      </body></worldbody></mujoco>"""


def _row() -> str:
    return scenes.row_of_boxes(20, size=0.1, squeeze=20 * 20 * 9.81)


SCENES = (
    Scene("grasp", lambda: scenes.row_of_boxes(2)),
    Scene("quadruped", scenes.quadruped),
    Scene("row of 20", _row, restart=20),
    Scene("pile of 20, falling", lambda: scenes.pile(20), seconds=60.0),
    Scene("pile of 20, at rest", lambda: scenes.pile(20), seconds=60.0, before=800),
    Scene("plate 16", lambda: plate(16)),
    Scene("plate 64", lambda: plate(64)),
    Scene("plate 256", lambda: plate(256)),
    Scene("plate 1024", lambda: plate(1024)),
)


class Clock:
    """One setting: its data, its step, its times."""

    def __init__(self, data: Any, step: Callable[[Any], None]) -> None:
        self.data, self.step = data, step
        self.times: list[float] = []

    def tick(self) -> None:
        """Take one step and time it."""
        begin = time.perf_counter()
        self.step(self.data)
        self.times.append(time.perf_counter() - begin)

    @property
    def median(self) -> float:
        """Median time of the steps that count [s]."""
        return float(np.median(self.times[WARM_UP:] or self.times))


def measure(scene: Scene, steps: int, seconds: float) -> Outcome:
    """Step one scene under all settings in turns."""
    model = mujoco.MjModel.from_xml_string(scene.xml())
    data = mujoco.MjData(model)
    if model.nkey:
        mujoco.mj_resetDataKeyframe(model, data, 0)
    noslip = copy.copy(model)
    for name, value in NOSLIP.items():
        setattr(noslip.opt, name, value)
    hf.Stepper(model).step(copy.copy(data), WARM_UP)  # compiles kernels
    if scene.before:
        hf.Stepper(model).step(data, scene.before)
    stepper = hf.Stepper(model)
    default = Clock(copy.copy(data), lambda d: mujoco.mj_step(model, d))
    recipe = Clock(copy.copy(data), lambda d: mujoco.mj_step(noslip, d))
    ours = Clock(copy.copy(data), stepper.step)
    counts, problem, end = [], "", time.monotonic() + seconds
    gc.disable()
    try:
        for k in range(steps):
            if scene.restart and k % scene.restart == 0:
                for clock in (default, recipe, ours):
                    mujoco.mj_copyState(model, data, clock.data, _STATE)
            turns = [default, recipe, ours]
            if k >= 3 * WARM_UP and recipe.times[-1] > 0.02:  # 106 ms a step at 1024 points
                turns.remove(recipe)
            for i in range(len(turns)):
                turns[(i + k) % len(turns)].tick()
            counts.append(stepper.count)
            if time.monotonic() > end:
                break
    except hf.HoldfastError as error:
        problem = f"{type(error).__name__}: {error}"
    finally:
        gc.enable()
    return Outcome(
        scene=scene.name,
        contacts=float(np.mean(counts[WARM_UP:] or counts or [0])),
        steps=len(ours.times),
        default=default.median,
        noslip=recipe.median,
        ours=ours.median,
        slowest=float(np.percentile(ours.times[WARM_UP:] or ours.times or [0.0], 99)),
        inconsistent=stepper.inconsistent,
        slipped=stepper.slipped,
        penetration=stepper.largest_penetration,
        problem=problem,
    )


HEADINGS = ("scene", "contacts", "default, µs", "noslip, µs", "ours, µs", "its p99", "/ default",
            "/ noslip", "inconsistent", "slip, m/s", "sinks in, m")  # fmt: skip
WIDTHS = (20, *[12] * (len(HEADINGS) - 1))


def cells(outcome: Outcome) -> tuple[str, ...]:
    """One line of the table."""
    o, (default, noslip) = outcome, outcome.ratios
    times = (f"{1e6 * t:.1f}" for t in (o.default, o.noslip, o.ours, o.slowest))
    return (o.scene, f"{o.contacts:.0f}", *times, f"{default:.2f}", f"{noslip:.2f}",
            f"{o.inconsistent}/{o.steps}", f"{o.slipped:.0e}", f"{o.penetration:.0e}",
            )  # fmt: skip


def table(outcomes: list[Outcome]) -> str:
    """The same as Markdown, for `publish.py`."""
    lines = [HEADINGS, ("---", *["---:"] * (len(HEADINGS) - 1)), *map(cells, outcomes)]
    title = "**One step from Python beside MuJoCo's**"
    return "\n".join([title, "", *("| " + " | ".join(line) + " |" for line in lines)]) + "\n"


def main() -> None:
    """Measure, print a table, write it with all numbers to a folder."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--quick", action="store_true", help="a quarter of the steps")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--scenes", nargs="*", help="only scenes whose name contains one of these")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    part = 4 if given.quick else 1
    outcomes = []
    print("  ".join(cell.rjust(width) for cell, width in zip(HEADINGS, WIDTHS, strict=True)))
    for scene in SCENES:
        if given.scenes and not any(word in scene.name for word in given.scenes):
            continue
        outcome = measure(scene, scene.steps // part, scene.seconds / part)
        outcomes.append(outcome)
        line = zip(cells(outcome), WIDTHS, strict=True)
        print("  ".join(cell.rjust(width) for cell, width in line), outcome.problem, flush=True)
    versions = {"mujoco": mujoco.__version__, "numpy": np.__version__,
                "python": platform.python_version(), "machine": platform.machine()}  # fmt: skip
    record = [{**asdict(o), "ratios": o.ratios} for o in outcomes]
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "step.json").write_text(
        json.dumps({"versions": versions, "scenes": record}, indent=1) + "\n"
    )
    (given.out / "step.md").write_text(table(outcomes))


if __name__ == "__main__":
    main()
