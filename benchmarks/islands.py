"""Piles of boxes: one exact solve beside MuJoCo's own constraint solve, and how both grow.

    python benchmarks/islands.py [--quick] [--boxes 20 60 100] [--out benchmarks/results]

Boxes fall into a pit with four walls, stepped by `mj_step`. At states on the way down and at rest,
the same state is solved in turns by `hf.Coulomb` (a problem in, motion and forces out, cold) and by
`mj_fwdConstraint`: with the pyramids and settings that are MuJoCo's defaults, and with the
elliptic cone; from the last step's answer, as in a simulation, and cold. MuJoCo's list holds the
contacts that touch, ours all within reach of the step. A time is the median over a few calls at a
state, a result the median over states.
"""

# ruff: noqa: E402  (threads are limited before NumPy loads)

from __future__ import annotations

import argparse
import copy
import json
import os
import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import mujoco
import numpy as np

import holdfast as hf
from corpus import next_problem, pile
from coulomb_residual import CERTIFIED, Impulses, Judge

MU = 1.0
STATES = 30  # of the fall; a third of them at rest
SETTLED = 1500  # steps after which piles rest
CALLS = 5  # of each solver at a state
LONG = 1.0  # a solve that takes longer is not repeated [s]
SETTINGS = {
    "default": {"cone": mujoco.mjtCone.mjCONE_PYRAMIDAL, "impratio": 1.0, "iterations": 100},
    "elliptic": {"cone": mujoco.mjtCone.mjCONE_ELLIPTIC, "impratio": 10.0, "iterations": 100},
}
MUJOCO = [f"MuJoCo {setting}{start}" for setting in SETTINGS for start in ("", ", cold")]
OURS = "holdfast"


@dataclass(frozen=True)
class State:
    """One state, solved by everybody.

    Attributes:
        boxes: of the pile.
        part: "falling" or "at rest".
        step: of the simulation.
        contacts: within reach of the step.
        islands: that MuJoCo finds.
        residual: of our answer; nan where there is none.
        seconds: solver -> median time.
    """

    boxes: int
    part: str
    step: int
    contacts: int
    islands: int
    residual: float
    seconds: dict[str, float]


def constraint_solve(model: Any, data: Any, cold: bool) -> Callable[[], float]:
    """MuJoCo's constraint solve at a state; the call returns its time."""
    data = copy.copy(data)
    start = np.zeros(model.nv) if cold else data.qacc_warmstart.copy()
    mujoco.mj_forward(model, data)

    def call() -> float:
        data.qacc_warmstart[:] = start
        begin = time.perf_counter()
        mujoco.mj_fwdConstraint(model, data)
        return time.perf_counter() - begin

    return call


class Exact:
    """Our solve of one problem, and what came of it."""

    def __init__(self, problem: hf.ContactProblem) -> None:
        self.problem, self.solution = problem, None

    def __call__(self) -> float:
        """Solve a fresh copy, which holds nothing that was computed before; the time it took."""
        problem, model = replace(self.problem), hf.Coulomb()
        begin = time.perf_counter()
        try:
            self.solution = model.solve(problem)
        except hf.SolveError as error:
            self.solution = error.result
        return time.perf_counter() - begin

    @property
    def residual(self) -> float:
        """Of the last answer."""
        if not hasattr(self.solution, "normal"):
            return np.nan
        return Judge(self.problem).residual(Impulses.of(self.solution))


def measure(
    models: dict[str, Any], data: Any, boxes: int, part: str, step: int, hard: Path | None
) -> State:
    """Solve one state in turns; save a problem that we do not solve, if there is a folder."""
    problem, _, _ = next_problem(models["elliptic"], data)
    exact = Exact(problem)
    calls: dict[str, Callable[[], float]] = {OURS: exact}
    for setting, model in models.items():
        for cold in (False, True):
            name = f"MuJoCo {setting}{', cold' if cold else ''}"
            calls[name] = constraint_solve(model, data, cold)
    times: dict[str, list[float]] = {name: [] for name in calls}
    names = list(calls)
    for turn in range(CALLS + 1):  # who comes first changes, because caches are cold then
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            if not times[name] or times[name][0] < LONG:
                times[name].append(calls[name]())
    seconds = {name: float(np.median(each[1:] or each)) for name, each in times.items()}
    seen = copy.copy(data)
    mujoco.mj_forward(models["elliptic"], seen)
    if hard is not None and not exact.residual <= CERTIFIED:
        hard.mkdir(parents=True, exist_ok=True)
        problem.save(hard / f"pile_{boxes:03d}_step{step:04d}.npz")
    return State(boxes, part, step, problem.n, int(seen.nisland), exact.residual, seconds)


def states(boxes: int, count: int, hard: Path | None) -> Iterator[State]:
    """Step a pile and measure on the way."""
    model = mujoco.MjModel.from_xml_string(pile(boxes, MU))
    models = {name: _with(model, chosen) for name, chosen in SETTINGS.items()}
    data = mujoco.MjData(model)
    landed = 60 + 4 * boxes  # the last boxes are down
    falling = set(np.linspace(60, landed, count, dtype=int).tolist())
    rest = set(range(SETTLED, SETTLED + 10 * max(count // 3, 1), 10))
    for step in range(max(rest) + 1):
        if step in falling or step in rest:
            part = "falling" if step in falling else "at rest"
            yield measure(models, data, boxes, part, step, hard)
        mujoco.mj_step(model, data)


def _with(model: Any, chosen: dict[str, Any]) -> Any:
    model = copy.copy(model)
    for name, value in chosen.items():
        setattr(model.opt, name, value)
    return model


# --- tables -----------------------------------------------------------------------------------

HEADINGS = ("pile", "contacts", "islands", "certified", "holdfast, ms", "its 90 %",
            *(f"{name}, ms" for name in MUJOCO), "ratio to default", "to elliptic")  # fmt: skip


def cells(name: str, some: list[State]) -> tuple[str, ...]:
    """One line of the table."""
    medians = {s: float(np.median([x.seconds[s] for x in some])) for s in (OURS, *MUJOCO)}
    most = float(np.percentile([x.seconds[OURS] for x in some], 90))
    certified = sum(x.residual <= CERTIFIED for x in some)
    ratio = [np.median([x.seconds[OURS] / x.seconds[f"MuJoCo {s}"] for x in some])
             for s in SETTINGS]  # fmt: skip
    return (name, f"{np.median([x.contacts for x in some]):.0f}",
            f"{np.median([x.islands for x in some]):.0f}", f"{certified}/{len(some)}",
            f"{1e3 * medians[OURS]:.3g}", f"{1e3 * most:.3g}",
            *(f"{1e3 * medians[s]:.3g}" for s in MUJOCO), *(f"{r:.2f}" for r in ratio),
            )  # fmt: skip


def exponent(some: list[State], solver: str) -> float:
    """Growth of the median time with the number of boxes: time ~ boxes^exponent."""
    boxes = sorted({x.boxes for x in some})
    if len(boxes) < 2:
        return np.nan
    middle = [np.median([x.seconds[solver] for x in some if x.boxes == b]) for b in boxes]
    return float(np.polyfit(np.log(boxes), np.log(middle), 1)[0])


def report(measured: list[State]) -> str:
    """Times, ratios, and exponents."""
    lines = [HEADINGS, ("---", *["---:"] * (len(HEADINGS) - 1))]
    parts = [part for part in ("falling", "at rest") if any(x.part == part for x in measured)]
    for part in parts:
        for boxes in sorted({x.boxes for x in measured}):
            some = [x for x in measured if x.part == part and x.boxes == boxes]
            if some:
                lines.append(cells(f"{boxes} boxes, {part}", some))
    growth = [("growth with boxes", OURS, *MUJOCO), ("---", *["---:"] * (1 + len(MUJOCO)))]
    for part in parts:
        some = [x for x in measured if x.part == part]
        growth.append((part, *(f"{exponent(some, s):.2f}" for s in (OURS, *MUJOCO))))
    title = "**One contact solve of a pile beside MuJoCo's**"
    text = [title, "", *_rows(lines), "", "Exponents of time over the number of boxes:", ""]
    return "\n".join([*text, *_rows(growth)]) + "\n"


def _rows(lines: list[tuple[str, ...]]) -> list[str]:
    return ["| " + " | ".join(line) + " |" for line in lines]


def main() -> None:
    """Measure, print a line per state, write tables and numbers."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--quick", action="store_true", help="a fifth of the states")
    parser.add_argument("--hard", type=Path, help="folder for problems that are not solved")
    parser.add_argument("--boxes", type=int, nargs="*", default=[20, 60, 100])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    given = parser.parse_args()
    if not hasattr(hf, "Coulomb"):
        print("left out: this holdfast has no Coulomb")
        return
    measured: list[State] = []
    for boxes in given.boxes:
        for state in states(boxes, STATES // 5 if given.quick else STATES, given.hard):
            measured.append(state)
            times = "  ".join(f"{name} {1e3 * t:.3g}" for name, t in state.seconds.items())
            print(f"{boxes} boxes, {state.part}, step {state.step}: {state.contacts} contacts, "
                  f"{state.islands} islands, {state.residual:.0e}, ms: {times}",
                  flush=True)  # fmt: skip
    text = report(measured)
    print("\n" + text)
    given.out.mkdir(parents=True, exist_ok=True)
    versions = {"mujoco": mujoco.__version__, "machine": platform.machine()}
    numbers = {"versions": versions, "states": [asdict(x) for x in measured]}
    (given.out / "islands.md").write_text(text)
    (given.out / "islands.json").write_text(json.dumps(numbers, indent=1))


if __name__ == "__main__":
    main()
