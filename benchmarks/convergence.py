"""Time stepping against event-driven simulation as the step goes to zero, and orders of both.

    python benchmarks/convergence.py [--out docs/_generated]

Writes a picture and a table for the page on event-driven simulation. Errors are differences to an
event-driven run with Runge-Kutta and a step of its own that is far smaller than needed; where a
body lands, they are means over drops from several heights, because how far an impact lies from the
next multiple of the step is chance.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import mujoco
import numpy as np
from matplotlib.ticker import NullLocator

import holdfast as hf

DROPS = 5
FLOOR = '<geom type="plane" size="9 9 1"/>'
SLOPE = '<geom type="plane" size="9 9 1" euler="0 15 0"/>'
HILL = '<geom type="sphere" size="1" pos="0 0 -1"/>'


def ball(density: str = 'mass="1"') -> str:
    """A body to throw."""
    return f'<body pos="0 0 1"><freejoint/><geom size=".1" {density}/></body>'


BOX = '<body pos="0 0 1"><freejoint/><geom type="box" size=".1 .2 .3" mass="1"/></body>'


@dataclass(frozen=True)
class Case:
    """A motion that all settings can make.

    Attributes:
        name: what happens.
        world: MJCF of the scene.
        contact: contact model of steps and of events.
        start: sets the state of drop number i.
        duration: [s], a multiple of all steps.
        drops: how many starts.
        fine: step of the reference [s].
        steps: of the runs that are compared [s].
        ways: "steps" (`hf.Stepper`) or an integrator of `hf.EventDriven`.
    """

    name: str
    world: str
    contact: hf.ContactModel
    start: Callable[[Any, int], None]
    duration: float
    drops: int
    fine: float
    steps: tuple[float, ...]
    ways: tuple[str, ...]


def dropped(height: float) -> Callable[[Any, int], None]:
    """Starts above the floor, a little higher each."""

    def start(data: Any, i: int) -> None:
        data.qpos[2] = height * (1.0 + 0.037 * i)
        data.qvel[:] = [0.7, 0.0, 0.0, 0.0, 3.0, 1.0]

    return start


def on_the_hill(data: Any, i: int) -> None:
    """At rest on the hill, away from its top."""
    data.qpos[:3] = 1.1 * np.array([np.sin(0.2), 0.0, np.cos(0.2)]) - [0.0, 0.0, 1.0]


def tumbling(data: Any, i: int) -> None:
    """High above everything."""
    data.qpos[2] = 50.0
    data.qvel[:] = [1, 2, 3, 1, 5, 0.2]


def leaning(data: Any, i: int) -> None:
    """On an edge, leaning."""
    lean = np.radians(50.0 + i)
    data.qpos[2] = 0.1 * np.sin(lean) + 0.3 * np.cos(lean)
    data.qpos[3:7] = [np.cos(lean / 2), 0.0, np.sin(lean / 2), 0.0]


MILLISECONDS = (8e-3, 4e-3, 2e-3, 1e-3, 5e-4)
LONG = (8e-2, 4e-2, 2e-2, 1e-2)
CASES = (
    Case("ball dropped on a viscous slope", SLOPE + ball(), hf.Viscous(0.5), dropped(0.3), 0.64,
         DROPS, 1e-3, MILLISECONDS, ("steps", "symplectic_euler")),
    Case("ball thrown on a no-slip floor", FLOOR + ball(), hf.NoSlip(), dropped(0.3), 0.64,
         DROPS, 1e-3, MILLISECONDS, ("steps", "symplectic_euler")),
    Case("box tips over its edge, no slip", FLOOR + BOX, hf.NoSlip(), leaning, 0.16,
         DROPS, 1.25e-4, MILLISECONDS, ("steps", "symplectic_euler", "rk4")),
    Case("ball rolls down a viscous hill", HILL + ball(), hf.Viscous(0.5), on_the_hill, 0.4,
         1, 6.25e-4, (2e-2, 1e-2, 5e-3, 2.5e-3), ("steps", "symplectic_euler", "rk4")),
    Case("box tumbles freely", FLOOR + BOX, hf.NoSlip(), tumbling, 1.2,
         1, 2e-3, LONG, ("steps", "rk4")),
)  # fmt: skip


def final(case: Case, way: str, step: float, i: int) -> np.ndarray:
    """Position and velocity at the end of drop number i."""
    xml = f'<mujoco><option timestep="{step}"/><worldbody>{case.world}</worldbody></mujoco>'
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    case.start(data, i)
    if way == "steps":
        hf.Stepper(model, case.contact, warn=False).step(data, round(case.duration / step))
    else:
        hf.EventDriven(model, case.contact, integrator=way).advance(data, case.duration)
    return np.concatenate([data.qpos, data.qvel])


def errors(case: Case) -> dict[str, np.ndarray]:
    """Of each way, the mean error at each step."""
    exact = [final(case, "rk4", case.fine, i) for i in range(case.drops)]
    return {
        way: np.array([
            np.mean([np.abs(final(case, way, step, i) - exact[i]).max() for i in range(case.drops)])
            for step in case.steps
        ])
        for way in case.ways
    }  # fmt: skip


def order(steps: tuple[float, ...], error: np.ndarray) -> float:
    """Slope of the errors over the steps, both as logarithms."""
    return float(np.polyfit(np.log(steps), np.log(error), 1)[0])


LABELS = {"steps": "time stepping", "symplectic_euler": "events, symplectic Euler",
          "rk4": "events, Runge-Kutta"}  # fmt: skip
MARKS = {"steps": "o-C0", "symplectic_euler": "^--C1", "rk4": "s-C2"}


def draw(results: list[tuple[Case, dict[str, np.ndarray]]], path: Path) -> None:
    """One panel per case."""
    figure, axes = plt.subplots(2, 3, figsize=(11, 6.4))
    for axis in axes.flat[len(results) :]:
        axis.set_visible(False)
    for axis, (case, found) in zip(axes.flat, results, strict=False):
        for way, error in found.items():
            label = f"{LABELS[way]}: order {order(case.steps, error):.2f}"
            axis.loglog(case.steps, error, MARKS[way], label=label, ms=4)
        axis.set_title(case.name, fontsize=9)
        axis.set_xticks(case.steps, [f"{1e3 * step:g}" for step in case.steps])
        axis.xaxis.set_minor_locator(NullLocator())
        axis.set_xlabel("step [ms]")
        axis.legend(fontsize=7)
        axis.grid(alpha=0.3)
    for axis in axes[:, 0]:
        axis.set_ylabel("error at the end [m, m/s, rad/s]")
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def table(results: list[tuple[Case, dict[str, np.ndarray]]]) -> str:
    """The orders, and the smallest errors, as reStructuredText."""
    lines = [".. list-table::", "   :header-rows: 1", "", "   * - motion", "     - by",
             "     - order", "     - error at the smallest step"]  # fmt: skip
    for case, found in results:
        for way, error in found.items():
            lines += [f"   * - {case.name}", f"     - {LABELS[way]}",
                      f"     - {order(case.steps, error):.2f}",
                      f"     - {error[-1]:.1e} at {1e3 * case.steps[-1]:g} ms"]  # fmt: skip
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print, draw."""
    root = Path(__file__).parents[1]
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--out", type=Path, default=root / "docs" / "_generated")
    out = parser.parse_args().out
    warnings.simplefilter("ignore")
    results = []
    for case in CASES:
        found = errors(case)
        results.append((case, found))
        for way, error in found.items():
            numbers = "  ".join(f"{e:.2e}" for e in error)
            print(f"{case.name:34} {LABELS[way]:26} {order(case.steps, error):5.2f}   {numbers}",
                  flush=True)  # fmt: skip
    out.mkdir(parents=True, exist_ok=True)
    draw(results, out / "convergence.png")
    (out / "convergence.inc").write_text(table(results))


if __name__ == "__main__":
    main()
