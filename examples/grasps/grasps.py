"""2000 candidate grasps of a hammer, scored on all cores.

    python examples/grasps/grasps.py             # table and picture in the working directory
    holdfast sweep examples/grasps/plan.toml     # the table only, from the same function
    holdfast sweep examples/grasps/plan.toml --by time_held --video grasps.gif

A candidate says where along the hammer two fingers close, how the hammer is turned between them
and how hard they squeeze. Two numbers judge it:

- `required_friction`: the coefficient that holding it needs, from a run in which contacts do not
  slip whatever it takes, once the fingers have closed; infinite if the hammer is lost even so;
- `time_held`: from a run with the coefficient 0.6 of the scene, the time until the hammer's centre
  of mass has moved by 2 cm, at most one second.

Stop the sweep whenever you like: the same command goes on with what is missing.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from pathlib import Path

import mujoco
import numpy as np

import holdfast as hf

SCENE = Path(__file__).with_name("hammer.xml")
GRAVITY = -9.81  # [m/s^2]
CLOSING = 0.3  # [s] without gravity, until the fingers have come to rest
HOLD = 1.0  # [s]
SLIPPED = 0.02  # [m] that the centre of mass moves when the hammer is lost
STRIDE = 5  # steps between two looks at the hammer
LOOK = 25  # steps between two looks at the friction that is needed

CANDIDATES = {
    "along": {"uniform": [-0.1, 0.13]},  # [m] from the middle of the handle to the head
    "roll": {"uniform": [0.0, 360.0]},  # [degrees] about the handle
    "tilt": {"uniform": [0.0, 180.0]},  # [degrees] about the closing direction; 0 is head up
    "yaw": {"uniform": [-15.0, 15.0]},  # [degrees] off the closing direction
    "squeeze": {"uniform": [10.0, 60.0]},  # [N] of each finger
}


def close(
    scene: mujoco.MjModel, *, along: float, roll: float, tilt: float, yaw: float, squeeze: float
) -> mujoco.MjData:
    """The fingers closed on the hammer, which floats until they have."""
    data = mujoco.MjData(scene)
    turn = np.array([1.0, 0.0, 0.0, 0.0])
    for axis, angle in (((0, 1, 0), yaw), ((1, 0, 0), tilt), ((0, 0, 1), roll)):
        part, product = np.zeros(4), np.zeros(4)
        mujoco.mju_axisAngle2Quat(part, np.array(axis, dtype=float), math.radians(angle))
        mujoco.mju_mulQuat(product, turn, part)
        turn = product
    centre = np.zeros(3)
    mujoco.mju_rotVecQuat(centre, np.array([0.0, 0.0, -along]), turn)
    hammer = data.joint("hammer")
    hammer.qpos[:3], hammer.qpos[3:] = centre, turn
    data.ctrl[:] = squeeze
    scene.opt.gravity[2] = 0.0
    hf.Stepper(scene, warn=False).step(data, round(CLOSING / scene.opt.timestep))
    scene.opt.gravity[2] = GRAVITY
    return data


Watch = Callable[[mujoco.MjModel, mujoco.MjData], None]


def hold(
    scene: mujoco.MjModel, data: mujoco.MjData, contact: hf.ContactModel, watch: Watch | None = None
) -> tuple[float, float]:
    """Time that the hammer is held, and the most friction that it needed meanwhile."""
    stepper, needed = hf.Stepper(scene, contact, warn=False), 0.0
    mujoco.mj_forward(scene, data)
    hammer, begin = data.body("hammer"), data.time
    start = hammer.xipos.copy()
    for k in range(0, round(HOLD / scene.opt.timestep), STRIDE):
        for _ in range(STRIDE if watch else 1):
            stepper.step(data, 1 if watch else STRIDE)
            if watch:
                watch(scene, data)
        if np.linalg.norm(hammer.xipos - start) > SLIPPED:
            break
        if k % LOOK == 0:
            needed = max(needed, friction(stepper.contacts))
    return data.time - begin, needed


def friction(contacts: hf.Contacts) -> float:
    """The most friction that a pressed contact needs; infinite unless both fingers touch."""
    fingers = {name for pair in contacts.bodies if "hammer" in pair for name in pair}
    pressed = contacts.normal_force > 0.01 * contacts.normal_force.sum()
    return float(contacts.required[pressed].max()) if len(fingers) == 3 else math.inf


def score(
    along: float,
    roll: float,
    tilt: float,
    yaw: float,
    squeeze: float,
    watch: Watch | None = None,
) -> dict[str, object]:
    """Judge one candidate: the task of the sweep. `watch` sees the run with friction 0.6."""
    scene = mujoco.MjModel.from_xml_path(str(SCENE))
    first = close(scene, along=along, roll=roll, tilt=tilt, yaw=yaw, squeeze=squeeze)
    second = mujoco.MjData(scene)
    mujoco.mj_copyData(second, scene, first)
    held, needed = hold(scene, first, hf.NoSlip())
    if held < HOLD - 1e-9:  # it turns about its contacts: no friction can hold it
        needed = math.inf
    held, _ = hold(scene, second, hf.Coulomb(), watch)
    return {"required_friction": needed, "time_held": held}


def best_and_worst(table: hf.SweepTable) -> tuple[dict, dict]:
    """The candidate that needs least friction, and the first to be lost of those in the fingers."""
    rows = [row for row in table if row["error"] is None and row["required_friction"] < math.inf]
    best = min(rows, key=lambda row: row["required_friction"])
    worst = min(rows, key=lambda row: (row["time_held"], -row["required_friction"]))
    return best, worst


def picture(table: hf.SweepTable, path: Path) -> None:
    """All candidates in one plot, and the best and the worst as the fingers have them."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    chosen = dict(zip(("best", "worst"), best_and_worst(table), strict=True))
    figure, axes = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
    needed = table["required_friction"]
    finite = np.isfinite(needed)
    dots = axes[0].scatter(
        table["along"][finite] * 100, needed[finite], c=table["time_held"][finite], s=6,
        cmap="viridis", vmin=0.0, vmax=HOLD,
    )  # fmt: skip
    axes[0].axhline(0.6, color="0.5", linewidth=1)
    axes[0].set(xlabel="along the hammer [cm]", ylabel="required friction", yscale="log")
    figure.colorbar(dots, label="time held at 0.6 [s]")
    for axis, (name, row) in zip(axes[1:], chosen.items(), strict=True):
        axis.imshow(drawn({key: row[key] for key in CANDIDATES}))
        axis.set_axis_off()
        axis.set_title(f"{name}: needs {row['required_friction']:.2g}, "
                       f"held {row['time_held']:.2f} s")  # fmt: skip
    figure.savefig(path, dpi=150)
    plt.close(figure)


def drawn(candidate: dict[str, float]) -> np.ndarray:
    """The grasp as MuJoCo draws it; an empty picture where there is no OpenGL."""
    from holdfast.tools.render import NoPictureError, render

    camera = {"lookat": [0, 0, 0], "distance": 0.8, "azimuth": 65, "elevation": -15}
    try:
        state = close(mujoco.MjModel.from_xml_path(str(SCENE)), **candidate).qpos
        return render(SCENE.read_text(), [state], camera=camera, width=640, height=480)[0]
    except NoPictureError as error:
        print(error)
        return np.full((480, 640, 3), 255, dtype=np.uint8)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--count", type=int, default=2000, help="candidates")
    parser.add_argument("--workers", type=int, help="all cores by default")
    parser.add_argument("--out", type=Path, default=Path("grasps.csv"), help=".csv or .parquet")
    given = parser.parse_args(arguments)
    cases = hf.cases.sample(given.count, CANDIDATES, method="sobol")
    table = hf.sweep(score, cases, given.out, workers=given.workers)
    held = table["time_held"] >= HOLD - 1e-9
    print(f"{len(table)} candidates, {len(table.failed)} failed, {int(np.nansum(held))} held")
    for name, row in zip(("best", "worst"), best_and_worst(table), strict=True):
        print(name, {key: round(row[key], 3) for key in (*CANDIDATES, "required_friction",
                                                         "time_held")})  # fmt: skip
    picture(table, given.out.with_suffix(".png"))
    print(given.out.with_suffix(".png"))


if __name__ == "__main__":
    main()
