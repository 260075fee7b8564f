"""Tasks of sweeps: in a module of their own, so that workers can import them."""

from __future__ import annotations

import math
import os
import signal
import time

import numpy as np


def spin(x: float, n: int, seed: int) -> dict[str, object]:
    """Results of every type, with noise of the case's own seed, and of BLAS."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(200, 200))
    return {
        "root": math.sqrt(x) * n, "noise": rng.normal(), "norm": float(np.linalg.norm(A @ A)),
        "even": n % 2 == 0, "text": f"n={n}", "count": n * 10,
    }  # fmt: skip


def slow(x: float, n: int, seed: int) -> dict[str, object]:
    """The same, taking a moment."""
    time.sleep(0.03)
    return spin(x, n, seed)


def wordy(x: float, n: int, seed: int) -> dict[str, object]:
    """The same, with a long text."""
    return spin(x, n, seed) | {"story": "once upon a time " * 30}


def picky(n: int) -> dict[str, float]:
    """Refuses some."""
    if n % 3 == 0:
        raise ValueError(f"{n} is not\nto my taste")
    return {"half": n / 2}


def deadly(n: int) -> dict[str, int]:
    """Takes its worker along."""
    if n == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return {"twice": 2 * n}


def drop(height: float, seed: int) -> dict[str, float]:
    """A ball on the floor, stepped; compiled kernels in workers."""
    import mujoco

    import holdfast as hf

    model = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><geom type='plane' size='1 1 1'/><body><freejoint/>"
        "<geom size='.1'/></body></worldbody></mujoco>"
    )
    data = mujoco.MjData(model)
    data.qpos[2] = 0.1 + height
    data.qvel[0] = np.random.default_rng(seed).normal()
    hf.Stepper(model).step(data, 200)
    return {"x": data.qpos[0], "z": data.qpos[2]}
