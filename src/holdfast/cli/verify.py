"""``holdfast verify``: a saved run, checked by code that did not make it."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from math import isnan
from pathlib import Path
from typing import Annotated, Any, Literal
from zipfile import BadZipFile

import numpy as np
import tyro

from holdfast.cli._common import exit_code, progress_bar
from holdfast.errors import InputError


@dataclass(frozen=True)
class Verify:
    """Audit a trajectory: distances, motion, momentum, complementarity, energy, slip.

    Reads what `holdfast simulate --out` wrote, or any .npz with `time`, `qpos` and `qvel` (and
    perhaps `ctrl`) and a scene. The exit code is 0 if every check passes and 1 if one fails.
    """

    trajectory: Annotated[Path, tyro.conf.Positional]
    """.npz file with time, qpos, qvel."""
    scene: Path | None = None
    """MJCF or URDF file; by default the one that the trajectory names."""
    penetration: float = 1e-8
    """Deepest penetration that passes [m]."""
    energy: float = 1e-6
    """Gain of energy between two samples that passes, part of the largest kinetic energy."""
    momentum: float = 0.02
    """Unexplained part of a change of momentum that passes."""
    motion: float = 0.02
    """Part of a displacement that passes which the velocities do not explain."""
    slip: float = 1e-6
    """Sliding that passes where there shall be none [m/s]."""
    no_slip: bool | None = None
    """Whether contacts that push shall not slide; by default what the trajectory says."""
    format: Literal["human", "json"] = "human"
    """How to print the verdict."""

    @exit_code
    def run(self) -> int:
        """Print the verdict; return the exit code."""
        from holdfast.tools import files
        from holdfast.tools.verify import Tolerances, verify

        arrays, metadata = read(self.trajectory)
        model = files.load_scene(self._scene(metadata))
        no_slip = self.no_slip
        if no_slip is None:
            no_slip = str(metadata.get("contact", "")).startswith("noslip")
        tolerances = Tolerances(
            distance=self.penetration,
            energy=self.energy,
            momentum=self.momentum,
            motion=self.motion,
            slip=self.slip,
        )
        with progress_bar("verifying", quiet=self.format == "json") as progress:
            verdict = verify(
                model, arrays["time"], arrays["qpos"], arrays["qvel"], arrays.get("ctrl"),
                no_slip=no_slip, tolerances=tolerances, progress=progress,
            )  # fmt: skip
        self._print(verdict)
        return 0 if verdict.passed else 1

    def _scene(self, metadata: dict[str, Any]) -> Path:
        if self.scene is not None:
            return self.scene
        named = metadata.get("scene")
        if not named:
            raise InputError("scene", f"{self.trajectory} names none; give --scene")
        beside = self.trajectory.parent / str(named)
        return beside if beside.exists() and not Path(named).exists() else Path(named)

    def _print(self, verdict: Any) -> None:
        if self.format == "json":
            result = {
                "passed": verdict.passed,
                "samples": verdict.samples,
                "checks": [
                    asdict(c) | {"passed": c.passed, "time": None if isnan(c.time) else c.time}
                    for c in verdict.checks
                ],
                "notes": verdict.notes,
            }
            json.dump(result, sys.stdout, indent=1)
            print()
            return
        from rich.console import Console
        from rich.table import Table

        table = Table(title=f"{self.trajectory.name}, {verdict.samples} samples")
        for heading in ("check", "worst", "at, s", "passes below", "verdict"):
            table.add_column(heading, justify="left" if heading == "check" else "right")
        for c in verdict.checks:
            said = ("pass" if c.passed else "FAIL") if c.judged else "not judged"
            table.add_row(
                c.name, f"{c.worst:.3g} {c.unit}", f"{c.time:.6g}", f"{c.tolerance:.3g}", said
            )
        console = Console()
        console.print(table)
        for note in verdict.notes:
            console.print(note)
        console.print("verdict: pass" if verdict.passed else "verdict: FAIL")


def read(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays of a trajectory, and what it says of itself."""
    if not path.exists():
        raise InputError("trajectory", f"{path} does not exist")
    try:
        with open(path, "rb") as stream, np.lib.npyio.NpzFile(stream) as file:
            arrays = {name: file[name] for name in file}
    except (ValueError, OSError, BadZipFile) as error:
        raise InputError("trajectory", f"{path} cannot be read as .npz: {error}") from error
    missing = {"time", "qpos", "qvel"} - set(arrays)
    if missing:
        raise InputError("trajectory", f"{path} holds {', '.join(arrays)}; it lacks "
                         f"{', '.join(sorted(missing))}")  # fmt: skip
    try:
        metadata = json.loads(str(arrays["metadata"])) if "metadata" in arrays else {}
    except ValueError as error:
        raise InputError("trajectory", f"{path}: metadata is no JSON: {error}") from error
    if not isinstance(metadata, dict):
        raise InputError("trajectory", f"{path}: metadata is no table of names and values")
    for name in ("scene", "model"):
        if name in arrays:
            metadata.setdefault("scene", str(arrays[name]))
    if "ctrl" in arrays and arrays["ctrl"].size == 0:
        del arrays["ctrl"]
    return arrays, metadata
