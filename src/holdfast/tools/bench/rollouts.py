"""Many runs at once: `holdfast.rollout` beside `mujoco.rollout`, on one thread and on all cores."""

from __future__ import annotations

from typing import Any

import numpy as np

import holdfast
from holdfast.mujoco._mj import mujoco
from holdfast.tools.bench.machine import usable_cores
from holdfast.tools.bench.scenes import Scene
from holdfast.tools.bench.timing import Call, Times, interleave

STEPS = 50  # of each run
RUNS = 8  # for each thread


def time_rollouts(scene: Scene, seconds: float) -> tuple[Times | None, list[str]]:
    """Times of a step, and what is left out and why."""
    from mujoco import rollout as theirs

    ours: Any = getattr(holdfast, "rollout", None)
    if ours is None:
        return None, ["rollout: this version of holdfast has none"]
    model, cores = scene.model, usable_cores()
    full = mujoco.mjtState.mjSTATE_FULLPHYSICS
    state = np.zeros(mujoco.mj_stateSize(model, full))
    mujoco.mj_getState(model, scene.data, state, full)
    runs = RUNS * cores
    states = np.tile(state, (runs, 1))
    control = np.tile(scene.data.ctrl, (runs, STEPS, 1)) if model.nu else None
    calls, pools = {}, []
    try:
        for count in sorted({1, cores}):
            datas = [mujoco.MjData(model) for _ in range(count)]
            pool = theirs.Rollout(nthread=count if count > 1 else 0)
            pools.append(pool)
            name = f"{count} thread" + "s" * (count > 1)
            calls[f"holdfast, {name}"] = _call(
                lambda datas=datas, count=count: ours(
                    model, datas, states, control, nstep=STEPS, nthread=count, warn=False
                ),
                runs,
            )
            calls[f"MuJoCo, {name}"] = _call(
                lambda pool=pool, datas=datas: pool.rollout(
                    model, datas, states, control, nstep=STEPS
                ),
                runs,
            )
        return interleave(calls, seconds), []
    finally:
        for pool in pools:
            pool.close()


def _call(run: Any, runs: int) -> Call:
    return Call(run, unit=runs * STEPS)
