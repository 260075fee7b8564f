"""The table of the README: six scenes under `mj_step` and `hf.step`, creep and penetration of both.

    python benchmarks/overview.py [--quick] [--out benchmarks/results]

Every scene starts from one state and is run by MuJoCo as the scene configures it and by holdfast,
in turns, as `holdfast compare` does it. `publish.py` copies the table into README.md.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import mujoco

import holdfast as hf
from holdfast.tools import scenes
from holdfast.tools.compare import RECIPES, Row, compare

GALLERY = Path(__file__).resolve().parent.parent / "examples" / "gallery"


@dataclass(frozen=True)
class Scene:
    """A scene and how long to run it [s]; `settle` is simulated by holdfast first [s]."""

    name: str
    xml: Callable[[], str]
    duration: float = 2.0
    settle: float = 0.0


def of_gallery(name: str) -> str:
    """The MJCF of an example."""
    spec = importlib.util.spec_from_file_location(name, GALLERY / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.SCENE


SCENES = (
    Scene("cube in a gripper", lambda: of_gallery("gripper")),
    Scene("pinched capsule", scenes.pinched_capsule),
    Scene("grasp, row of 2 boxes", lambda: scenes.row_of_boxes(2)),
    Scene("quadruped on a 10° slope", scenes.quadruped),
    Scene("tower of 10 boxes", lambda: of_gallery("tower")),
    Scene("pile of 20 boxes at rest", lambda: scenes.pile(20), settle=4.0),
)


def measure(scene: Scene, part: int = 1) -> tuple[Row, Row]:
    """Rows of MuJoCo and of holdfast."""
    model = mujoco.MjModel.from_xml_string(scene.xml())
    data = mujoco.MjData(model)
    if model.nkey:
        mujoco.mj_resetDataKeyframe(model, data, 0)
    if scene.settle:
        hf.step(model, data, nstep=round(scene.settle / model.opt.timestep))
    rows = compare(model, data, duration=scene.duration / part)
    return rows[0], next(row for row in rows if row.name not in RECIPES)


def length(value: float) -> str:
    """A length or speed in micrometres, short."""
    micro = 1e6 * value
    return f"{micro:.1g}" if micro < 1 else f"{micro:.3g}" if micro < 1000 else f"{micro:.0f}"


HEADINGS = ("scene", "contacts", "time / `mj_step`", "creep, µm/s: MuJoCo", "holdfast",
            "penetration, µm: MuJoCo", "holdfast")  # fmt: skip


def cells(name: str, theirs: Any, ours: Any) -> tuple[str, ...]:
    """One line of the table."""
    return (name, f"{ours.contacts:.0f}", f"{ours.seconds / theirs.seconds:.1f}",
            *map(length, (theirs.creep, ours.creep, theirs.penetration, ours.penetration)),
            )  # fmt: skip


def main() -> None:
    """Measure, print the table, write it with all numbers to a folder."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the duration")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    lines, record = [HEADINGS, ("---", *["---:"] * (len(HEADINGS) - 1))], []
    for scene in SCENES:
        theirs, ours = measure(scene, 10 if given.quick else 1)
        lines.append(cells(scene.name, theirs, ours))
        record.append({"scene": scene.name, "mujoco": asdict(theirs), "holdfast": asdict(ours)})
        print("  ".join(lines[-1]), ours.problem, flush=True)
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "overview.json").write_text(json.dumps(record, indent=1) + "\n")
    text = "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"
    (given.out / "overview.md").write_text(text)


if __name__ == "__main__":
    main()
