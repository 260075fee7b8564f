"""Steps per second of `hf.rollout` beside `mujoco.rollout`, with 1 thread and with 2.

    python benchmarks/rollout.py [--quick] [--threads 2] [--out benchmarks/results]

Every scene begins where holdfast's step has brought it to rest; each run adds a little velocity
of its own. In each round MuJoCo and holdfast take turns with one thread and with several; results
are medians over the rounds with their quartiles. In the same rounds two loops of plain C are
timed, one after the other and at once: how many cores they get is what threads can win at most.
With one thread everything runs in the thread that calls, whose processor time is taken, too: its
ratio says the same where other programs are busy.
Threads of BLAS are limited to one, in every process and for all.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
import os
import platform
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import mujoco
import mujoco.rollout
import numpy as np

import holdfast as hf
from holdfast.tools import scenes

_FULL = int(mujoco.mjtState.mjSTATE_FULLPHYSICS)
STILL = 1e-3  # [m/s, rad/s] velocities that runs begin with


@dataclass(frozen=True)
class Scene:
    """A scene and how to bring it to rest."""

    name: str
    model: Callable[[], Any]
    settle: int = 1500  # steps
    runs: int = 40
    steps: int = 100


def from_xml(xml: Callable[[], str]) -> Callable[[], Any]:
    return lambda: mujoco.MjModel.from_xml_string(xml())


def of_gymnasium(name: str) -> Callable[[], Any]:
    def load() -> Any:
        import gymnasium.envs.mujoco as environments

        folder = Path(environments.__file__).parent / "assets"
        return mujoco.MjModel.from_xml_path(str(folder / name))

    return load


SCENES = (
    Scene("grasp", from_xml(lambda: scenes.row_of_boxes(2)), settle=300),
    Scene("quadruped", from_xml(scenes.quadruped)),
    Scene("Gymnasium Ant", of_gymnasium("ant.xml")),
    Scene("Gymnasium Humanoid", of_gymnasium("humanoid.xml"), settle=3000, runs=20),
)


@dataclass
class Outcome:
    """Steps per second, each sample of a round: {"mujoco 1": [...], "holdfast 2": [...]}."""

    scene: str
    threads: int
    samples: dict[str, list[float]] = field(default_factory=dict)
    processor: dict[str, list[float]] = field(default_factory=dict)  # with one thread
    cores: list[float] = field(default_factory=list)  # that plain loops got
    failed: int = 0

    def rate(self, who: str, threads: int) -> tuple[float, float, float]:
        """Median and quartiles of steps per second."""
        low, middle, high = np.percentile(self.samples[f"{who} {threads}"], (25, 50, 75))
        return float(middle), float(low), float(high)

    def ratio(self, above: str, below: str) -> float:
        """Median over the rounds of the ratio of two rates."""
        return float(np.median(np.divide(self.samples[above], self.samples[below])))

    def processor_ratio(self) -> float:
        """The same of ours and MuJoCo's with one thread, in steps per second of processor time."""
        both = self.processor["holdfast 1"], self.processor["mujoco 1"]
        return float(np.median(np.divide(*both)))


def plain_loop(_: Any = None) -> None:
    """About 20 ms of C without Python's lock."""
    hashlib.pbkdf2_hmac("sha256", b"a", b"b", 40000)


def cores_of_plain_loops(threads: int, pool: ThreadPoolExecutor) -> float:
    """How many times the work of one loop several loops do in the same time."""
    begin = time.perf_counter()
    for _ in range(threads):
        plain_loop()
    middle = time.perf_counter()
    list(pool.map(plain_loop, range(threads)))
    return (middle - begin) / (time.perf_counter() - middle)


def start(scene: Scene, model: Any) -> tuple[np.ndarray, np.ndarray]:
    """States at rest, each with a velocity of its own, and the controls there."""
    data = mujoco.MjData(model)
    if model.nkey:
        mujoco.mj_resetDataKeyframe(model, data, 0)
    hf.Stepper(model, warn=False).step(data, scene.settle)
    rng, at_rest = np.random.default_rng(0), data.qvel.copy()
    states = np.empty((scene.runs, mujoco.mj_stateSize(model, _FULL)))
    for row in states:
        data.qvel[:] = at_rest + STILL * rng.standard_normal(model.nv)
        mujoco.mj_getState(model, data, row, _FULL)
    return states, data.ctrl.copy()


def measure(scene: Scene, threads: int, rounds: int) -> Outcome:
    """All settings in turns."""
    model = scene.model()
    states, control = start(scene, model)
    control = control.reshape(1, 1, -1) if control.size else None
    work = [mujoco.MjData(model) for _ in range(threads)]
    out = {
        who: np.empty((scene.runs, scene.steps, states.shape[1])) for who in ("mujoco", "holdfast")
    }
    outcome, count = Outcome(scene.name, threads), scene.runs * scene.steps

    def theirs(n: int) -> None:
        mujoco.rollout.rollout(model, work[:n], states, control, nstep=scene.steps,
                               state=out["mujoco"], persistent_pool=True)  # fmt: skip

    def ours(n: int) -> None:
        found = hf.rollout(model, work[:n], states, control, nstep=scene.steps,
                           state=out["holdfast"], nthread=n, warn=False)  # fmt: skip
        outcome.failed = len(found.failures)

    calls = [(f"{who} {n}", call, n) for n in (1, threads)
             for who, call in (("mujoco", theirs), ("holdfast", ours))]  # fmt: skip
    for _, call, n in calls:
        call(n)
    gc.disable()
    with ThreadPoolExecutor(threads) as pool:
        for k in range(rounds):
            outcome.cores.append(cores_of_plain_loops(threads, pool))
            for i in range(len(calls)):
                name, call, n = calls[(i + k) % len(calls)]
                begin, used = time.perf_counter(), time.thread_time()
                call(n)
                rate = count / (time.perf_counter() - begin)
                outcome.samples.setdefault(name, []).append(rate)
                if n == 1:
                    rate = count / (time.thread_time() - used)
                    outcome.processor.setdefault(name, []).append(rate)
    gc.enable()
    return outcome


def cells(o: Outcome) -> tuple[str, ...]:
    """One line of the table."""
    rates = []
    for who in ("mujoco", "holdfast"):
        for n in (1, o.threads):
            middle, low, high = o.rate(who, n)
            rates.append(f"{middle:,.0f} ({low:,.0f}-{high:,.0f})")
    n = o.threads
    return (o.scene, *rates, f"{o.ratio('holdfast 1', 'mujoco 1'):.2f}",
            f"{o.processor_ratio():.2f}",
            f"{o.ratio(f'holdfast {n}', f'mujoco {n}'):.2f}",
            f"{o.ratio(f'holdfast {n}', 'holdfast 1'):.2f}",
            f"{o.ratio(f'mujoco {n}', 'mujoco 1'):.2f}",
            f"{np.median(o.cores):.2f}")  # fmt: skip


def headings(n: int) -> tuple[str, ...]:
    """Of the table."""
    return ("scene, steps per second", "MuJoCo, 1 thread", f"MuJoCo, {n}", "ours, 1 thread",
            f"ours, {n}", "ours / MuJoCo, 1", "the same, processor", f"ours / MuJoCo, {n}",
            f"ours, {n} / 1",
            f"MuJoCo, {n} / 1", "plain loops")  # fmt: skip


def main() -> None:
    """Measure, print a table, write it with all numbers to a folder."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--scenes", nargs="*", help="only scenes whose name contains one of these")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    outcomes = []
    for scene in SCENES:
        if given.scenes and not any(word in scene.name for word in given.scenes):
            continue
        outcome = measure(scene, given.threads, 5 if given.quick else 25)
        outcomes.append(outcome)
        for heading, cell in zip(headings(given.threads), cells(outcome), strict=True):
            print(f"{heading:>24}  {cell}")
        print(f"{'runs that failed':>24}  {outcome.failed}\n", flush=True)
    cores = float(np.median([each for o in outcomes for each in o.cores]))
    busy = "" if cores > 0.9 * given.threads else ": the machine is busy"
    print(f"{given.threads} plain loops at once get {cores:.2f} cores{busy}")
    versions = {"mujoco": mujoco.__version__, "numpy": np.__version__,
                "python": platform.python_version(), "machine": platform.machine(),
                "cores": os.cpu_count()}  # fmt: skip
    given.out.mkdir(parents=True, exist_ok=True)
    record = {"versions": versions, "scenes": [asdict(o) for o in outcomes]}
    (given.out / "rollout.json").write_text(json.dumps(record, indent=1) + "\n")
    lines = [headings(given.threads), ("---", *["---:"] * 10), *map(cells, outcomes)]
    text = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    (given.out / "rollout.md").write_text(f"**Rollouts beside MuJoCo's**\n\n{text}\n")


if __name__ == "__main__":
    main()
