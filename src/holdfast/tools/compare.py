"""One scene under several settings of MuJoCo and laws of holdfast, measured in the same way.

Everything is measured on the states, by the same rows: at sampled times contacts are listed and
those whose surfaces touch are asked how fast they slide. Which solver made the state makes no
difference. Steps of all variants take turns, so that times are comparable on a busy machine.

Forces are those that a step has left in mjData. The friction of a pair of bodies, net over its
contacts, is held against what the model declares: a law without slip may hold what the declared
friction would not, and then its row is no answer to "does it hold?". Such rows are told apart.
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
from holdfast.models import ContactModel, Coulomb, NoSlip
from holdfast.mujoco._mj import mujoco
from holdfast.mujoco.contacts import name_of
from holdfast.mujoco.private_model import PrivateModel
from holdfast.mujoco.stepper import Stepper
from holdfast.tools.files import Control, step_count

SAMPLES = 200  # states that are measured in one run
EXCEEDED = 1e-3  # relative excess over the declared friction that counts
TOUCHING = 1e-6  # part of the mean size below which surfaces count as touching

ELLIPTIC = {"cone": mujoco.mjtCone.mjCONE_ELLIPTIC, "impratio": 10.0}
RECIPES: dict[str, dict[str, Any]] = {
    "MuJoCo": {},
    "elliptic": ELLIPTIC,
    "+ noslip 10": ELLIPTIC | {"noslip_iterations": 10},
    "+ noslip 100": ELLIPTIC | {"noslip_iterations": 100, "noslip_tolerance": 0.0},
}
"""MuJoCo as configured, and what its documentation advises against slip."""
OURS = "holdfast"  # the row of Coulomb friction; names of other laws follow it


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
    friction: float = 0.0  # that the pair nearest to its declared friction needed, net
    declared: float = 0.0  # by the model for that pair
    pair: str = ""  # its bodies
    problem: str = ""  # why the run ended early

    @property
    def exceeded(self) -> bool:
        """Whether a pair held more than its declared friction would."""
        return self.friction > self.declared * (1.0 + EXCEEDED)


class Comparison(list[Row]):
    """One row per variant; notebooks show it as a table."""

    def _repr_html_(self) -> str:
        headings = [each.replace("/\n", "/ ").replace("\n", ", ") for each in HEADINGS]
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
    """MuJoCo as configured, three recipes against slip, and holdfast with each law."""
    runs = []
    for name, settings in RECIPES.items():
        own = copy.copy(model)
        for key, value in settings.items():
            setattr(own.opt, key, value)
        runs.append(_Run(Row(name), own, copy.copy(data), _stepped_by_mujoco(own)))
    for name, law in _ours(contact).items():
        stepper = Stepper(model, law, warn=False)
        runs.append(_Run(Row(name), model, copy.copy(data), stepper.step))
    return runs


def _ours(contact: ContactModel | None) -> dict[str, ContactModel]:
    """Contact models of holdfast by the names of their rows."""
    ours: dict[str, ContactModel] = {OURS: Coulomb(), f"{OURS}, no slip": NoSlip()}
    if contact is not None and contact not in ours.values():
        ours[f"{OURS}, {type(contact).__name__}"] = contact
    return ours


def row_of(contact: ContactModel) -> str:
    """Name of the row of a contact model."""
    return next(name for name, each in _ours(contact).items() if each == contact)


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
        model: `mujoco.MjModel` of the scene.
        data: initial state.
        duration: time to simulate [s].
        contact: a further contact model, besides `Coulomb` and `NoSlip`, which have a row each.
        control: function of time that returns controls; None leaves them as they are.
        progress: called with the fraction that is done.
        watch: called after each step with the name of the variant, its model and its data.
    """
    steps = max(2, step_count(duration, model))
    runs = variants(model, data, contact)
    ruler = _Ruler(model)
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
        self._hold_against_declared(run)
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

    def _hold_against_declared(self, run: _Run) -> None:
        """Find the pair of bodies that is nearest to its declared friction, or beyond."""
        data, force, row = run.data, np.zeros(6), run.row
        sums: dict[tuple[int, int], np.ndarray] = {}
        for i in range(data.ncon):
            mujoco.mj_contactForce(run.model, data, i, force)
            along = data.contact.frame[i].reshape(3, 3).T @ [0.0, force[1], force[2]]
            bodies = run.model.geom_bodyid[data.contact.geom[i]]
            pair = (int(bodies.min()), int(bodies.max()))
            mu = data.contact.friction[i, :2].max() if data.contact.dim[i] >= 3 else 0.0
            both = sums.setdefault(pair, np.zeros(5))
            along *= 1.0 if bodies[0] <= bodies[1] else -1.0
            both += [*along, force[0], mu * force[0]]
        pressed = 1e-9 * max((both[3] for both in sums.values()), default=0.0)
        for pair, (x, y, z, press, holds) in sums.items():
            if press > pressed and holds > 0.0:
                needs, declared = float(np.sqrt(x * x + y * y + z * z) / press), holds / press
                if needs * row.declared >= row.friction * declared:
                    row.friction, row.declared = needs, float(declared)
                    row.pair = " and ".join(name_of(run.model, "body", body) for body in pair)


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
            f"{row.friction:.2f} / {row.declared:.2f}" + ("!" if row.exceeded else ""),
        )


def remarks(rows: list[Row]) -> list[str]:
    """What has to be said of rows: those that ended early, and those that held too much."""
    said = [f"{row.name}: {row.problem}" for row in rows if row.problem]
    return said + [
        f"{row.name} holds what the model's friction would not: {row.pair} need a coefficient of "
        f"{row.friction:.3g}, the model declares {row.declared:.3g}; with Coulomb's law they slide"
        for row in rows if row.exceeded
    ]  # fmt: skip


HEADINGS = ("setting", "creep\nµm/s", "drift\nmm", "sinks in\nµm", "time", "contacts",
            "needs /\ndeclared µ")  # fmt: skip
LEGEND = (
    "MuJoCo: as the scene configures it; elliptic: elliptic cones and impratio 10; + noslip: in "
    "addition that many noslip iterations, 100 with tolerance 0; holdfast: Coulomb friction. "
    "creep: sliding speed of the worst pair in contact, in the second half of the run; time: time "
    "of a step relative to the first row; needs / declared µ: friction that the motion requires, "
    "net per pair of bodies, and the coefficient of the model, for the pair that comes closest to "
    "it or exceeds it most (!)."
)
