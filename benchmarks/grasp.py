"""One no-slip solve of the paper's grasp, from matrices to forces, beside its rivals.

    python benchmarks/grasp.py [--boxes 2] [--repeats 200] [--out benchmarks/results]

The same 36 contacts: no-slip as in the paper (`grip="all"`) and with forces only where contacts
are pressed (`grip="loaded"`), Stewart-Trinkle with Lemke's method (216 variables), and MuJoCo's
whole constraint solve (`mj_fwdConstraint`) on the same boxes, which brings its own contacts.
Times are medians of interleaved calls in one process with one BLAS thread.
"""

# ruff: noqa: E402  (threads are limited before NumPy loads)

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import mujoco
import numpy as np

import holdfast as hf
from holdfast.experiments.grasp.scene import grasp


def mujoco_grasp(boxes: int) -> tuple[mujoco.MjModel, mujoco.MjData]:
    """The same scene in MuJoCo: unit cubes in a row, squeezed with ten newtons per box."""
    spec = mujoco.MjSpec()
    spec.option.timestep = 0.01
    spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    for k in range(boxes + 2):
        gripper = k in (0, boxes + 1)
        body = spec.worldbody.add_body(pos=[k - (boxes + 1) / 2, 0, 0])
        if gripper:
            body.gravcomp = 1
            body.add_joint(type=mujoco.mjtJoint.mjJNT_SLIDE, axis=[1, 0, 0])
        else:
            body.add_freejoint()
        body.add_geom(
            type=mujoco.mjtGeom.mjGEOM_BOX, size=[0.5] * 3, mass=1, friction=[100, 0.005, 0.0001]
        )
    model = spec.compile()
    data = mujoco.MjData(model)
    data.qfrc_applied[0], data.qfrc_applied[-1] = 10.0 * boxes, -10.0 * boxes
    mujoco.mj_forward(model, data)
    return model, data


def interleaved(calls: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Median time of each call [s], taken in turns."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - start)
    return {name: float(np.median(samples)) for name, samples in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--boxes", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()

    problem = hf.ContactProblem(**grasp(options.boxes))
    model, data = mujoco_grasp(options.boxes)
    pyramid = hf.StewartTrinkle(mu=100.0)
    calls = {
        'no-slip, grip="all"': lambda: hf.NoSlip(grip="all").solve(problem),
        'no-slip, grip="loaded"': lambda: hf.NoSlip().solve(problem),
        "Stewart-Trinkle, Lemke": lambda: pyramid.solve(problem),
        f"MuJoCo constraint solve ({data.ncon} contacts)": lambda: mujoco.mj_fwdConstraint(
            model, data
        ),
    }
    for call in calls.values():
        call()
    medians = interleaved(calls, options.repeats)
    base = next(iter(medians.values()))
    lines = ["| solve | time | ratio to the first |", "| --- | ---: | ---: |"]
    lines += [f"| {name} | {1e6 * t:.0f} µs | {t / base:.2f} |" for name, t in medians.items()]
    title = f"**One solve of the grasp, {options.boxes} boxes, {problem.n} contacts**"
    text = "\n".join([title, "", *lines]) + "\n"
    print(text)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "grasp.md").write_text(text)
    (options.out / "grasp.json").write_text(json.dumps(medians, indent=1))


if __name__ == "__main__":
    main()
