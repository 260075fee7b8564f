"""Runs of the grasp: one interface for maximal and reduced coordinates, and what is measured.

Times are processor time of the thread that calls: all methods run in it, with one thread of BLAS,
and a ratio of two does not depend on what else the machine does.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from holdfast.contact.problem import ContactProblem
from holdfast.contact.solution import ContactSolution
from holdfast.errors import SolveError
from holdfast.experiments.grasp.scene import HELD, RowOfBoxes
from holdfast.experiments.parts import Report
from holdfast.lcp import Options
from holdfast.models import ContactModel, DrumwrightShell, NoSlip, StewartTrinkle

MU = 100.0  # the paper's friction for models that need a coefficient
SAMPLE = 10  # steps between measurements of penetration and of the residual
LOST = 2.0  # a run ends when all boxes have moved by so many times their size

_BOUNDED = Options(max_pivots=1000)  # loose pivots can go round for ever
MODELS: dict[str, ContactModel] = {
    "Stewart-Trinkle, Lemke, the paper's tolerances": StewartTrinkle(
        MU, tolerance="paper", options=_BOUNDED
    ),
    "Stewart-Trinkle, Lemke, tight": StewartTrinkle(MU),
    "Drumwright-Shell": DrumwrightShell(MU),
    "no-slip, active-set QP": NoSlip(grip="all", solver="qp"),
    "no-slip, modified PPM": NoSlip(grip="all", solver="ppm"),
    "no-slip where pressed": NoSlip(),
}
LOOSE, TIGHT, SHELL, QP, PPM, PRESSED = MODELS


@dataclass(frozen=True)
class Scale:
    """Sizes of a row; the defaults are the paper's."""

    boxes: int = 2
    size: float = 1.0  # [m]
    mass: float = 1.0  # [kg]
    squeeze: float | None = None  # [N]; None is ten newtons per box

    def options(self) -> dict[str, Any]:
        """Keyword arguments of a row of boxes."""
        return {"size": self.size, "mass": self.mass, "squeeze": self.squeeze}


CONTROL = Scale(8, size=0.05, mass=0.1, squeeze=5.0)  # must open


class Run(Protocol):
    """A grasp that can be stepped and measured."""

    def step(self) -> None:
        """One step."""

    def timed_step(self) -> tuple[float, float]:
        """One step; processor time of its contact solve and of all of it [s]."""
        ...

    def moved(self) -> np.ndarray:
        """(boxes,) distance of each box from where it was [m]."""
        ...

    def state(self) -> list[float]:
        """Where everything is."""
        ...

    def penetration(self) -> float:
        """Deepest overlap at present [m]."""
        ...

    def complementarity(self) -> float:
        """Of the last step, relative; see `ContactSolution.complementarity`."""
        ...

    def pivots(self) -> int | None:
        """Of the last step's solver."""
        ...

    def variables(self) -> int | None:
        """Size of the last step's complementarity problem."""
        ...


class MaximalRun:
    """The grasp in maximal coordinates under one model."""

    def __init__(self, model: ContactModel, scale: Scale) -> None:
        self.model = model
        self.row = RowOfBoxes(scale.boxes, **scale.options())
        self.solution: ContactSolution | None = None

    def step(self) -> None:
        """One step."""
        self.timed_step()

    def timed_step(self) -> tuple[float, float]:
        """One step; processor time from problem to forces, and of all of it [s]."""
        begin = time.thread_time()
        problem = ContactProblem(**self.row.fields())
        start = time.thread_time()
        self.solution = self.model.solve(problem)
        end = time.thread_time()
        self.row.advance(self.solution.velocity)
        return end - start, time.thread_time() - begin

    @property
    def last(self) -> ContactSolution:
        """The last step's."""
        assert self.solution is not None
        return self.solution

    def moved(self) -> np.ndarray:
        """(boxes,) distance of each box from where it was [m]."""
        return self.row.moved()

    def state(self) -> list[float]:
        """Centres of all cubes [m]."""
        return self.row.centre.ravel().tolist()

    def penetration(self) -> float:
        """Deepest overlap at present [m]."""
        return self.row.penetration()

    def complementarity(self) -> float:
        """Of the last step."""
        return self.last.complementarity()

    def pivots(self) -> int:
        """Of the complementarity problem: loading the equality rows is not counted.

        Where the contact solve takes its place, these are factorisations.
        """
        model = self.model
        factored = isinstance(model, NoSlip) and model.grip == "all" and model.solver == "ppm"
        return self.last.pivots - (self.last.rank if factored else 0)

    def variables(self) -> int | None:
        """Of the complementarity problem; None where the model is a program."""
        problem = self.last.problem
        if isinstance(self.model, StewartTrinkle):
            return int(self.model.build(problem).e.size)
        return problem.n if isinstance(self.model, NoSlip) else None


def follow(
    run: Run, scale: Scale, marks: tuple[int, ...], seconds: float, report: Report
) -> dict[str, Any]:
    """Step until the last mark, until all boxes are lost, a solve fails or time is up.

    Returns:
        What JSON can hold: by mark the boxes held and the largest drift so far; over the run the
        largest penetration and residual, how often there were how many pivots, and why it ended.
    """
    held: dict[str, int] = {}
    drift: dict[str, float] = {}
    pivots: Counter[int] = Counter()
    worst = {"penetration": 0.0, "complementarity": 0.0}
    farthest, ended, k, variables = 0.0, "", 0, 0
    begin = time.perf_counter()
    for k in range(1, marks[-1] + 1):
        try:
            run.step()
        except SolveError as error:
            ended = f"the solver failed in step {k}: {error}"
            k -= 1
            break
        moved = run.moved()
        farthest = max(farthest, float(moved.max()))
        here = int(np.count_nonzero(moved < HELD * scale.size))
        if (count := run.pivots()) is not None:
            pivots[count] += 1
        lost = float(moved.min()) > LOST * scale.size
        if k % SAMPLE == 0 or k == 1 or lost:
            worst["penetration"] = max(worst["penetration"], run.penetration())
            worst["complementarity"] = max(worst["complementarity"], run.complementarity())
            report(k / marks[-1])
            variables = max(variables, run.variables() or 0)
        if k == 1:
            begin = time.perf_counter()  # compiled by now
        if k in marks:
            held[str(k)], drift[str(k)] = here, farthest
        if lost:
            held |= {str(mark): 0 for mark in marks if mark > k}
            ended = f"all boxes were lost after step {k}"
            break
        if time.perf_counter() - begin > seconds and k < marks[-1]:
            ended = f"stopped after step {k}: more than {seconds:g} s"
            break
    return {
        "steps": k, "ended": ended, "held": held, "drift": drift, "farthest": farthest,
        "pivots": {str(count): times for count, times in sorted(pivots.items())},
        "variables": variables or None, **worst,
    }  # fmt: skip


def time_in_turns(runs: Mapping[str, Run], steps: int) -> dict[str, dict[str, Any]]:
    """Seconds of the contact solve and of whole steps of each run, one run after the other.

    Each makes all of its steps in a row, as a simulation does: were they to alternate, each solve
    would find the processor's caches full of another method's data, which the fast ones feel most.

    A run whose solver fails is not stepped further; `failed` then says why.
    """
    times: dict[str, dict[str, Any]] = {name: {"solve": [], "step": []} for name in runs}
    for name, run in runs.items():
        kept = times[name]
        for k in range(1, steps + 1):
            try:
                solve, step = run.timed_step()
            except SolveError as error:
                kept["failed"] = f"the solver failed in step {k}: {error}"
                break
            kept["solve"].append(solve)
            kept["step"].append(step)
    return times
