"""Honest recordings: random scenes, simulated and sampled, that `verify` must pass.

    python -m fuzz.recordings [--first SEED] [--count 300] [--seconds 600]

A seed is a scene, a law, a stepper and a sampling. Runs that cannot be judged are passed over: in
which a body moves by more than its size between two samples, or a step is not certified.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

import holdfast as hf
from fuzz.random_scenes import Scene, random_scene
from holdfast.tools.verify import Tolerances, Verdict, verify

SAMPLES = 100
DEEP = 1e-4  # overlap that steps may leave, over the mean size; verify's own bound is for events
FARTHEST = 0.5  # mean sizes or radians that a body may move between two samples
EVERY = (1, 1, 1, 2, 5)  # steps from one sample to the next
LAWS = ("coulomb", "coulomb", "coulomb", "stick", "viscous", "frictionless")


@dataclass(frozen=True)
class Recording:
    """A run as a file has it, and how it came about."""

    seed: int
    scene: Scene
    model: Any
    time: np.ndarray
    qpos: np.ndarray
    qvel: np.ndarray
    ctrl: np.ndarray | None
    law: hf.Law
    how: str  # "steps" or "events", law and steps per sample

    @property
    def no_slip(self) -> bool:
        return self.law.kind == "stick"


WINDOWS = Path(__file__).parent.parent / "data" / "honest_windows.npz"


def windows() -> dict[str, Recording]:
    """A few samples each of runs in which `verify` failed wrongly once, by seed and sample."""
    with np.load(WINDOWS) as saved:
        arrays = dict(saved)
    found = {}
    for name in sorted({key.rsplit("_", 1)[0] for key in arrays}):
        seed = int(name.split("_")[0])
        scene = _scene(seed)
        kind, mu_v = arrays[f"{name}_law"]
        time, qpos, qvel = (arrays[f"{name}_{part}"] for part in ("time", "qpos", "qvel"))
        model, law = scene.load()[0], _law(kind, float(mu_v))
        ctrl = arrays.get(f"{name}_ctrl")
        found[name] = Recording(seed, scene, model, time, qpos, qvel, ctrl, law, "saved")
    return found


def _scene(seed: int) -> Scene:
    return random_scene(seed, scales=(0.01, 10.0))


def _law(kind: str, drag: float) -> hf.Law:
    return {"coulomb": hf.coulomb, "stick": hf.stick, "frictionless": hf.frictionless,
            "viscous": lambda: hf.viscous(drag)}[kind]()  # fmt: skip


def record(seed: int, samples: int = SAMPLES) -> Recording | None:
    """The recording of a seed; None if it cannot be judged."""
    rng = np.random.default_rng([seed, 4])
    scene = _scene(seed)
    if "mocap" in scene.kinds:  # poses of mocap bodies are not in a file
        return None
    model, data = scene.load()
    kind, every = str(rng.choice(LAWS)), int(rng.choice(EVERY))
    drag = 10.0 ** rng.uniform(-2.0, 1.0) * float(model.body_mass.sum())
    law = _law(kind, drag)
    events = bool(rng.random() < 0.3)
    try:
        states = _run(scene, model, data, law, events, every, samples)
    except hf.HoldfastError:
        return None
    if states is None:
        return None
    columns = [np.array(column) for column in zip(*states, strict=True)]
    return Recording(seed, scene, model, columns[0], columns[1], columns[2],
                     columns[3] if model.nu else None, law,
                     f"{'events' if events else 'steps'}, {kind}, every {every}")  # fmt: skip


def _run(scene: Scene, model: Any, data: Any, law: hf.Law, events: bool, every: int,
         samples: int) -> list[tuple[Any, ...]] | None:  # fmt: skip
    """Samples of a run; None if it is too fast, diverges or is not certified."""
    if events:
        of_law = {"coulomb": hf.Coulomb, "stick": hf.NoSlip, "frictionless": hf.Frictionless,
                  "viscous": lambda: hf.Viscous(law.mu_v)}  # fmt: skip
        stepper: Any = hf.EventDriven(model, of_law[law.kind]())
    else:
        stepper = hf.Stepper(model, law, warn=False)
    most, moved = FARTHEST * float(model.stat.meansize), np.empty(model.nv)
    states = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hf.StepWarning)
        for k in range(samples):
            scene.drive(model, data, k)
            states.append((data.time, data.qpos.copy(), data.qvel.copy(), data.ctrl.copy()))
            for _ in range(every):
                stepper.step(data)
            mujoco.mj_differentiatePos(model, moved, 1.0, states[-1][1], data.qpos)
            if data.time <= states[-1][0] or np.abs(moved).max(initial=0.0) > min(most, FARTHEST):
                return None
    if not events and stepper.uncertified_steps:
        return None
    return states


def audit(run: Recording) -> Verdict:
    """What `verify` says of it, with the overlap that steps may leave."""
    deep = DEEP * float(run.model.stat.meansize)
    return verify(run.model, run.time, run.qpos, run.qvel, run.ctrl, law=run.law,
                  no_slip=run.no_slip,
                  tolerances=Tolerances(distance=deep, limit=deep))  # fmt: skip


def false_alarms(verdict: Verdict) -> list[str]:
    """Checks that fail, but for the energy that a scheme of first order gains: that is told."""
    told = any(note.startswith("energy: no gain") for note in verdict.notes)
    return [f"{c.name} {c.worst:.3g} at {c.time:.4g}" for c in verdict.checks
            if not c.passed and not (c.name == "energy" and told)]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=300, help="recordings that are judged")
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--samples", type=int, default=SAMPLES)
    wanted = parser.parse_args()
    seed, judged, failed = wanted.first, 0, 0
    kinds: Counter[str] = Counter()
    end = time.monotonic() + wanted.seconds
    while judged < wanted.count and time.monotonic() < end:
        run = record(seed, wanted.samples)
        seed += 1
        if run is None:
            continue
        judged += 1
        wrong = false_alarms(audit(run))
        failed += bool(wrong)
        kinds.update(each.split()[0] for each in wrong)
        if wrong:
            print(f"# seed {run.seed} ({run.how}): {'; '.join(wrong)}", file=sys.stderr, flush=True)
    print(f"seeds {wanted.first} to {seed - 1}: {judged} honest runs, {failed} fail: {dict(kinds)}")


if __name__ == "__main__":
    main()
