"""Models that nobody here wrote, stepped by holdfast beside `mj_step`, as a table.

    python benchmarks/models.py [WORD ...] [--steps 250] [--record DIR] [--out benchmarks/results]

Needs the extra `models`; a package that is not installed is left out. Every model runs in a process
of its own with a limit of time, in two phases from the same state: still (no control) and driven
(smooth random control). The two steppers take turns, one step each, and who comes first changes
from step to step; times are medians, of the processor's time: on a busy machine the longer of two
steps would be interrupted more often. A model counts once in the summary, with its worse phase.

force    the largest normal force of a contact over what could explain it: weight, actuators and
         the momentum of the state before the step, divided by h; with ours and with MuJoCo
sinks    deepest penetration that a step begins with, beyond that of the first one [m]
"""

from __future__ import annotations

import argparse
import copy
import gc
import io
import json
import logging
import os
import platform
import time
import warnings
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("MUJOCO_GL", "disable")

import mujoco
import numpy as np

import holdfast as hf
import isolation
import model_sources

WARM_UP = 5  # steps that do not count
MEMORY = 40e9  # addresses that a model may take; arenas of a few GB are hardly used
SLOW = 3.0  # times mj_step: such a phase keeps its slowest problem with --record
_STATE = int(mujoco.mjtState.mjSTATE_INTEGRATION)
_BAD = (mujoco.mjtWarning.mjWARN_BADQPOS, mujoco.mjtWarning.mjWARN_BADQVEL,
        mujoco.mjtWarning.mjWARN_BADQACC)  # fmt: skip


@dataclass
class Phase:
    """What became of one phase of one model.

    Attributes:
        ours, theirs: median step times [s].
        slowest: of our steps [s].
        contacts: mean number of contacts that mattered to ours.
        force, force_theirs: see above.
        sinks: deepest penetration of ours beyond the first [m].
        failure: exception of ours, "diverged" if ours was reset.
        failure_theirs: the same of `mj_step`.
    """

    ours: float = 0.0
    theirs: float = 0.0
    slowest: float = 0.0
    contacts: float = 0.0
    force: float = 0.0
    force_theirs: float = 0.0
    sinks: float = 0.0
    inconsistent: int = 0
    uncertified: int = 0
    failure: str = ""
    failure_theirs: str = ""

    @property
    def ratio(self) -> float:
        """Our time over that of `mj_step`."""
        return self.ours / self.theirs if self.theirs else 0.0


@dataclass
class Result:
    """One model: its size, both phases, or why there are none."""

    source: str
    nv: int = 0
    refused: str = ""
    unloadable: str = ""
    phases: dict[str, Phase] = field(default_factory=dict)

    @property
    def ratio(self) -> float:
        """Of the slower phase."""
        return max((phase.ratio for phase in self.phases.values()), default=0.0)


def smooth_noise(rng: np.random.Generator, model: Any, steps: int) -> np.ndarray:
    """(steps, nu) controls: noise of a correlation time of 50 steps, within the control range."""
    low, high = -np.ones(model.nu), np.ones(model.nu)
    limited = model.actuator_ctrllimited.astype(bool)
    low[limited], high[limited] = model.actuator_ctrlrange[limited].T
    noise, result = np.zeros(model.nu), np.zeros((steps, model.nu))
    for k in range(steps):
        noise += -noise / 50.0 + np.sqrt(2.0 / 50.0) * rng.normal(size=model.nu)
        result[k] = 0.5 * (low + high) + 0.5 * (high - low) * np.tanh(noise)
    return result


def explained(model: Any, data: Any) -> float:
    """Force that weight, actuators and the momentum of the present state explain [N]."""
    mass = float(model.body_mass.sum())
    momentum = np.zeros(model.nv)
    mujoco.mj_mulM(model, data, momentum, data.qvel)
    energy = max(float(data.qvel @ momentum), 0.0)
    hinged = ~np.isin(model.jnt_type[model.dof_jntid], [int(mujoco.mjtJoint.mjJNT_SLIDE)])
    pull = np.abs(data.qfrc_actuator) + np.abs(data.qfrc_spring) + np.abs(data.qfrc_applied)
    lever = np.where(hinged, max(float(model.stat.meansize), 1e-6), 1.0)
    weight = mass * float(np.linalg.norm(model.opt.gravity))
    return weight + float((pull / lever).sum()) + np.sqrt(energy * mass) / model.opt.timestep


def largest_force(model: Any, data: Any) -> float:
    """Largest normal force of a contact [N]."""
    force, largest = np.zeros(6), 0.0
    for i in range(data.ncon):
        mujoco.mj_contactForce(model, data, i, force)
        largest = max(largest, float(force[0]))
    return largest


class Side:
    """One stepper with its data, times and largest force."""

    def __init__(self, model: Any, data: Any, step: Any) -> None:
        self.model, self.data, self.step = model, copy.copy(data), step
        mujoco.mj_fwdPosition(model, self.data)  # the inertia, for `explained`
        self.times: list[float] = []
        self.failure, self.force = "", 0.0
        self.problem: Any = None  # that could not be solved

    def tick(self, control: np.ndarray) -> None:
        """Take one step, time it, and look at its forces."""
        if self.failure:
            return
        self.data.ctrl[:] = control
        could = explained(self.model, self.data)
        begin = time.thread_time()
        try:
            self.step(self.data)
        except Exception as error:
            self.failure = f"{type(error).__name__}: {error}"[:300]
            self.problem = getattr(error, "problem", None)
            return
        self.times.append(time.thread_time() - begin)
        if any(self.data.warning[int(kind)].number for kind in _BAD):
            self.failure = "diverged"
            return
        force = largest_force(self.model, self.data)
        self.force = max(self.force, force / could) if could > 0.0 else self.force

    @property
    def median(self) -> float:
        """Median time of the steps that count [s]."""
        return float(np.median(self.times[WARM_UP:] or self.times or [0.0]))


def run_phase(model: Any, data: Any, controls: np.ndarray, record: Path | None) -> Phase:
    """Both steppers in turns, from one state."""
    stepper = hf.Stepper(model, warn=False)
    stepper.step(copy.copy(data))  # memory grows, kernels are loaded
    stepper.reset()
    ours = Side(model, data, stepper.step)
    theirs = Side(model, data, partial(mujoco.mj_step, model))
    counts, depth, worst = [], 0.0, 0.0
    for k, control in enumerate(controls):
        for side in (ours, theirs) if k % 2 else (theirs, ours):
            side.tick(control)
        if ours.failure:
            if record and ours.problem is not None:
                _write(ours.problem, record.with_name(f"failed_{record.name}"))
            break
        counts.append(stepper.contact_count)
        if k == 0:
            depth = stepper.largest_penetration
        if record and k >= WARM_UP and ours.times[-1] > max(worst, 10.0 * theirs.median, 1e-3):
            worst = ours.times[-1]
            _save(stepper, record)
    if record and worst == 0.0 and theirs.median and ours.median > SLOW * theirs.median:
        _save(stepper, record)
    return Phase(
        ours.median, theirs.median, max(ours.times[WARM_UP:], default=0.0),
        float(np.mean(counts)) if counts else 0.0, ours.force, theirs.force,
        max(stepper.largest_penetration - depth, 0.0), stepper.inconsistent_steps,
        stepper.uncertified_steps, ours.failure, theirs.failure,
    )  # fmt: skip


def _save(stepper: Any, path: Path) -> None:
    """Write the contact problem of the last step."""
    solution = stepper.solution
    if solution is not None:
        _write(solution.problem, path)


def _write(problem: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    problem.save(path)


def run(source: str, steps: int, record: Path | None) -> Result:
    """Load a model and step it."""
    result = Result(source)
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            model, data = model_sources.load(source)
    except Exception as error:
        result.unloadable = f"{type(error).__name__}: {error}".replace("\n", " ")[:200]
        return result
    result.nv = model.nv
    if model.nv == 0:
        result.unloadable = "nothing moves"
        return result
    gc.disable()
    name = source.replace("/", "_").replace(":", "_").removesuffix(".xml")
    controls = {"still": np.zeros((steps, model.nu)),
                "driven": smooth_noise(np.random.default_rng(0), model, steps)}  # fmt: skip
    for phase, control in controls.items():
        where = record / f"{name}_{phase}.npz" if record else None
        gc.collect()  # data of the last phase, whose arena may be large
        try:
            result.phases[phase] = run_phase(model, data, control, where)
        except hf.UnsupportedError as error:
            result.refused = str(error)[:200]
            break
        except hf.HoldfastError as error:  # in the first step
            result.phases[phase] = Phase(failure=f"{type(error).__name__}: {error}"[:300])
    return result


def summary(results: list[Result]) -> list[str]:
    """What the table says as a whole."""
    loaded = [r for r in results if not r.unloadable]
    ran = [r for r in loaded if r.phases and r.ratio > 0.0]
    ratios = np.array([r.ratio for r in ran]) if ran else np.zeros(1)
    phases = [phase for r in loaded for phase in r.phases.values()]
    alone = [p for p in phases if p.failure and not p.failure_theirs]
    hung = sum("more than" in p.failure for p in phases)
    return [
        f"{len(loaded)} models ({len(results) - len(loaded)} files are no models or do not load)",
        f"refused {sum(bool(r.refused) for r in loaded)}, over time {hung}, "
        f"failures that mj_step has not {len(alone) - hung} of {len(phases)} phases",
        f"ratio of the slower phase: median {np.median(ratios):.2f}, p90 "
        f"{np.percentile(ratios, 90):.2f}, largest {ratios.max():.1f}, above 3: "
        f"{np.sum(ratios > 3)}, above 10: {np.sum(ratios > 10)}",
        f"force over what explains it: largest {max((p.force for p in phases), default=0):.1f} "
        f"(MuJoCo {max((p.force_theirs for p in phases), default=0):.1f}); inconsistent steps "
        f"{sum(p.inconsistent for p in phases)}, uncertified {sum(p.uncertified for p in phases)}",
    ]


HEADINGS = ("model", "phase", "nv", "contacts", "mj_step, µs", "ours, µs", "ratio", "slowest",
            "force", "MuJoCo's", "sinks, m", "inconsistent", "uncertified",
            "remarks")  # fmt: skip


def lines(result: Result) -> list[tuple[str, ...]]:
    """Lines of the table for one model."""
    if result.unloadable:
        return []
    if result.refused:
        return [(result.source, "", str(result.nv), *[""] * 10, f"refused: {result.refused}")]
    found = []
    for name, p in result.phases.items():
        remark = p.failure + (f" (mj_step: {p.failure_theirs})" if p.failure_theirs else "")
        found.append((
            result.source, name, str(result.nv), f"{p.contacts:.1f}", f"{1e6 * p.theirs:.1f}",
            f"{1e6 * p.ours:.1f}", f"{p.ratio:.2f}", f"{1e6 * p.slowest:.0f}", f"{p.force:.2g}",
            f"{p.force_theirs:.2g}", f"{p.sinks:.1e}", str(p.inconsistent), str(p.uncertified),
            remark.replace("\n", " "),
        ))  # fmt: skip
    return found


def table(results: list[Result]) -> str:
    """All lines as Markdown, after the summary."""
    rows = [HEADINGS, ("---",) * len(HEADINGS), *(line for r in results for line in lines(r))]
    text = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    return "\n".join(f"- {line}" for line in summary(results)) + "\n\n" + text + "\n"


def main() -> None:
    """Run all models, print a line each, write the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("words", nargs="*", help="only sources that contain one of these")
    parser.add_argument("--steps", type=int, default=250, help="per phase")
    parser.add_argument("--seconds", type=float, default=60.0, help="limit of a model")
    parser.add_argument("--record", type=Path, help="folder for contact problems of slow steps")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    given = parser.parse_args()
    warmed = mujoco.MjModel.from_xml_string(
        '<mujoco><worldbody><geom type="plane" size="1 1 1"/><body pos="0 0 .1"><freejoint/>'
        '<geom type="box" size=".1 .1 .1"/></body></worldbody></mujoco>'
    )
    stepper = hf.Stepper(warmed)
    stepper.step(mujoco.MjData(warmed), 10)  # compiled here, children are forked
    assert stepper.contact_count >= 0
    results = []
    for source in model_sources.all_sources():
        if given.words and not any(word in source for word in given.words):
            continue
        limits = isolation.Limits(seconds=given.seconds, bytes=MEMORY)
        work = partial(run, steps=given.steps, record=given.record)
        (outcome,) = isolation.run_isolated(work, [source], limits)
        result = outcome.value or Result(source, phases={"": Phase(failure=outcome.failure)})
        results.append(result)
        for line in lines(result):
            print("  ".join(line), flush=True)
    print("\n".join(summary(results)))
    given.out.mkdir(parents=True, exist_ok=True)
    versions = {"mujoco": mujoco.__version__, "numpy": np.__version__,
                "python": platform.python_version(), "machine": platform.machine()}  # fmt: skip
    record = {"versions": versions, "steps": given.steps, "models": [asdict(r) for r in results]}
    (given.out / "models.json").write_text(json.dumps(record, indent=1) + "\n")
    (given.out / "models.md").write_text(table(results))


if __name__ == "__main__":
    main()
