"""Ten seconds of the quadruped at 1 ms from event to event, against the original simulator.

    python benchmarks/quadruped.py [--seconds 10]

The original simulator took 42.9 s of CPU for its no-slip run on a machine of the kind that the
figures of this project come from; CPU seconds of this process are compared with that.
"""

from __future__ import annotations

import argparse
import time

import mujoco

import holdfast as hf
from holdfast.tools import scenes

ORIGINAL = 42.9  # [s] of CPU, for 10 s without slip
RUNS: tuple[tuple[str, hf.ContactModel, str], ...] = (
    ("no slip, symplectic Euler", hf.NoSlip(), "symplectic_euler"),
    ("viscous, Runge-Kutta", hf.Viscous(0.1), "rk4"),
    ("no slip, Runge-Kutta", hf.NoSlip(), "rk4"),
)


def walk(contact: hf.ContactModel, integrator: str, seconds: float) -> tuple[float, float]:
    """CPU time [s] of a squatting quadruped, compiled code loaded before; and the smallest gap."""
    model = mujoco.MjModel.from_xml_string(scenes.quadruped(timestep=0.001))
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    stand = data.ctrl.copy()
    simulation = hf.EventDriven(model, contact, integrator=integrator)  # pyright: ignore
    start = 0.0
    while data.time < seconds - 1e-9:
        if start == 0.0 and data.time > 0.02:
            start = time.process_time()
        data.ctrl[:] = scenes.squat(data.time, stand)
        simulation.step(data)
    spent = (time.process_time() - start) * seconds / (seconds - 0.02)
    return spent, simulation.smallest_gap


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seconds", type=float, default=10.0)
    seconds = parser.parse_args().seconds
    for name, contact, integrator in RUNS:
        spent, gap = walk(contact, integrator, seconds)
        faster = ORIGINAL * seconds / 10.0 / spent
        print(f"{name:26}  {spent:6.2f} s of CPU for {seconds:g} s, {faster:5.1f} times as fast as "
              f"the original without slip; smallest gap {gap:.1e} m", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
