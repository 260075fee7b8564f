"""One scene under several settings of MuJoCo and under ours, measured in the same way.

Everything is measured on the states, by the same rows: at sampled times contacts are listed and
those whose surfaces touch are asked how fast they slide. Which solver made the state makes no
difference. Steps of all variants take turns, so that times are comparable on a busy machine.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from holdfast import _html
from holdfast.errors import HoldfastError
from holdfast.events.rows import dense_rows
from holdfast.models import ContactModel
from holdfast.mujoco._mj import mujoco
from holdfast.mujoco.private_model import PrivateModel
from holdfast.mujoco.stepper import Stepper
from holdfast.mujoco.support import check_timestep
from holdfast.tools.files import Control, check_duration

SAMPLES = 200  # states that are measured in one run
TOUCHING = 1e-6  # part of the mean size below which surfaces count as touching

ELLIPTIC = {"cone": mujoco.mjtCone.mjCONE_ELLIPTIC, "impratio": 10.0}
RECIPES: dict[str, dict[str, Any]] = {
    "MuJoCo": {},
    "elliptic": ELLIPTIC,
    "+ noslip 10": ELLIPTIC | {"noslip_iterations": 10},
    "+ noslip 100": ELLIPTIC | {"noslip_iterations": 100, "noslip_tolerance": 0.0},
}
"""MuJoCo as configured, and what its documentation advises against slip."""


Watch = Callable[[str, Any, Any], None]


@dataclass
class Row:
    """One variant: what it is and how it fared."""

    name: str
    creep: float = 0.0  # mean sliding speed of the worst pair in the second half [m/s]
    drift: float = 0.0  # path that the worst pair slid over the whole run [m]
    penetration: float = 0.0  # largest [m]
    seconds: float = 0.0  # median time of a step
    ratio: float = 1.0  # to the first row
    contacts: float = 0.0  # mean number that touch
    friction: float = 0.0  # largest that a pair of bodies needed, net over the pair
    problem: str = ""  # why the run ended early


class Comparison(list[Row]):
    """One row per variant; notebooks show it as a table."""

    def _repr_html_(self) -> str:
        headings = [heading.replace("\n", ", ") for heading in HEADINGS]
        return _html.table(headings, rows_as_text(self), note=LEGEND)


@dataclass
class _Run:
    row: Row
    model: Any
    data: Any
    step: Callable[[Any], None]
    times: list[float] = field(default_factory=list)
    slid: dict[tuple[int, int], float] = field(default_factory=dict)
    late: dict[tuple[int, int], float] = field(default_factory=dict)
    counts: list[int] = field(default_factory=list)


def variants(model: Any, data: Any, contact: ContactModel | None) -> list[_Run]:
    """MuJoCo as configured, three recipes against slip, and ours."""
    runs = []
    for name, settings in RECIPES.items():
        own = copy.copy(model)
        for key, value in settings.items():
            setattr(own.opt, key, value)
        runs.append(_Run(Row(name), own, copy.copy(data), _stepped_by_mujoco(own)))
    stepper = Stepper(model, contact, warn=False)
    runs.append(_Run(Row("holdfast"), model, copy.copy(data), stepper.step))
    return runs


def compare(
    model: Any,
    data: Any,
    *,
    duration: float,
    contact: ContactModel | None = None,
    control: Control | None = None,
    progress: Callable[[float], None] = lambda _: None,
    watch: Watch | None = None,
) -> Comparison:
    """Run all variants from the state in `data`, which stays as it is.

    Args:
        model: of the scene.
        data: state to start from.
        duration: [s] to simulate.
        contact: our contact model; `NoSlip` if None.
        control: controls by time.
        progress: told the part that is done.
        watch: called after each step with the name of the variant, its model and its data.
    """
    check_duration(duration)
    check_timestep(model)
    runs = variants(model, data, contact)
    ruler = _Ruler(model)
    steps = max(2, round(duration / model.opt.timestep))
    block = max(1, steps // SAMPLES)
    for start in range(0, steps, block):
        count = min(block, steps - start)
        for run in runs:
            if not run.row.problem:
                _advance(run, count, control, watch)
                ruler.measure(run, count * model.opt.timestep, late=2 * start >= steps)
        progress(min(1.0, (start + count) / steps))
    half = model.opt.timestep * (steps - (steps + 1) // 2) or 1.0
    return Comparison(_finished(run, half, runs[0]) for run in runs)


def _stepped_by_mujoco(model: Any) -> Callable[[Any], None]:
    return lambda data: mujoco.mj_step(model, data)


def _advance(run: _Run, count: int, control: Control | None, watch: Watch | None) -> None:
    for _ in range(count):
        if control is not None:
            run.data.ctrl[:] = control(run.data.time)
        begin = time.perf_counter()
        try:
            run.step(run.data)
        except HoldfastError as error:
            run.row.problem = f"{type(error).__name__}: {error}"
            return
        run.times.append(time.perf_counter() - begin)
        if watch is not None:
            watch(run.row.name, run.model, run.data)
    bad = run.data.warning[mujoco.mjtWarning.mjWARN_BADQACC].number
    if bad or not np.isfinite(run.data.qpos).all():
        run.row.problem = "diverged"


class _Ruler:
    """Measures states on data of its own."""

    def __init__(self, model: Any) -> None:
        self.private = PrivateModel(model)
        self.data = mujoco.MjData(model)
        self.touch = TOUCHING * model.stat.meansize

    def measure(self, run: _Run, span: float, *, late: bool) -> None:
        """Add what the present state shows; `span` is the time [s] that it stands for."""
        row, data = run.row, self.data
        _, net = self._friction(run)
        row.friction = max(row.friction, net)
        mujoco.mj_copyState(self.private.model, run.data, data, mujoco.mjtState.mjSTATE_INTEGRATION)
        self.private.follow()
        self.private.collide(data)
        touching = [
            i for i in range(data.ncon)
            if data.contact.efc_address[i] >= 0 and data.contact.dist[i] <= self.touch
        ]  # fmt: skip
        run.counts.append(len(touching))
        row.penetration = max(row.penetration, -float(data.contact.dist.min(initial=0.0)))
        J = dense_rows(self.private.model, data)
        speeds: dict[tuple[int, int], list[float]] = {}
        for i in touching:
            first = data.contact.efc_address[i]
            if data.contact.dim[i] >= 3:
                speed = float(np.linalg.norm(J[first + 1 : first + 3] @ data.qvel))
                speeds.setdefault(tuple(data.contact.geom[i].tolist()), []).append(speed)
        for pair, each in speeds.items():
            path = span * float(np.mean(each))
            run.slid[pair] = run.slid.get(pair, 0.0) + path
            if late:
                run.late[pair] = run.late.get(pair, 0.0) + path

    def _friction(self, run: _Run) -> tuple[int, float]:
        """Contacts with force, and the largest net friction over net normal force of a pair."""
        data, force = run.data, np.zeros(6)
        sums: dict[tuple[int, int], np.ndarray] = {}
        for i in range(data.ncon):
            mujoco.mj_contactForce(run.model, data, i, force)
            along = data.contact.frame[i].reshape(3, 3).T @ [0.0, force[1], force[2]]
            bodies = run.model.geom_bodyid[data.contact.geom[i]]
            pair = (int(bodies.min()), int(bodies.max()))
            both = sums.setdefault(pair, np.zeros(4))
            both += np.append(along * (1 if bodies[0] <= bodies[1] else -1), force[0])
        needs = [float(np.linalg.norm(s[:3]) / s[3]) for s in sums.values() if s[3] > 1e-9]
        return len(sums), max(needs, default=0.0)


def _finished(run: _Run, half: float, first: _Run) -> Row:
    row = run.row
    row.drift = max(run.slid.values(), default=0.0)
    row.creep = max(run.late.values(), default=0.0) / half
    row.seconds = float(np.median(run.times)) if run.times else float("nan")
    row.ratio = row.seconds / float(np.median(first.times)) if first.times else float("nan")
    row.contacts = float(np.mean(run.counts)) if run.counts else 0.0
    return row


def rows_as_text(rows: list[Row]) -> Iterator[tuple[str, ...]]:
    """Cells of a table: name, creep, drift, penetration, time ratio, contacts, friction."""
    for row in rows:
        yield (
            row.name,
            f"{1e6 * row.creep:.3g}",
            f"{1e3 * row.drift:.3g}",
            f"{1e6 * row.penetration:.3g}",
            f"{row.ratio:.1f}",
            f"{row.contacts:.1f}",
            f"{row.friction:.2f}" + (f"  ({row.problem})" if row.problem else ""),
        )


HEADINGS = ("setting", "creep\nµm/s", "drift\nmm", "sinks in\nµm", "time", "contacts", "needs µ")
LEGEND = (
    "MuJoCo: as the scene configures it; elliptic: that cone with impratio 10; noslip: and so many "
    "iterations, the last with tolerance 0. creep: sliding speed of the worst pair that touches, "
    "in the second half; time: of a step, in units of the first row's; needs µ: friction that the "
    "motion asks of a pair of bodies."
)
