"""``holdfast verify``: a saved run, checked by code that did not make it."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from math import isnan
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from holdfast.cli._common import ContactName, exit_code, progress_bar, text


@dataclass(frozen=True)
class Verify:
    """Check a saved run: distances, motion, momentum, joint limits, equalities, energy and slip.

    Reads a file of `holdfast simulate --out`, or any .npz file with `time`, `qpos`, `qvel` and
    optionally `ctrl`, and a scene. The exit code is 0 if every check passes and 1 if one fails.

    Contacts are judged by Coulomb friction as the scene declares it, or by no slip if the file says
    so. Laws that allow more have to be named by --contact: a forged file could name them, too.
    """

    trajectory: Annotated[Path, tyro.conf.Positional]
    """.npz file with time, qpos, qvel."""
    scene: Path | None = None
    """MJCF or URDF file; by default the one that the trajectory names."""
    penetration: float = 1e-8
    """Tolerance of penetration [m]."""
    energy: float = 1e-6
    """Tolerance of the energy gain between two samples, relative to the largest kinetic energy."""
    fall: float = 1e-3
    """Tolerance of the unexplained part of a change of momentum, for bodies that touch nothing."""
    sustained: float = 1e-3
    """The same for bodies whose contacts last while forces stay as they are."""
    momentum: float = 0.02
    """The same for other bodies in contact."""
    limit: float = 1e-8
    """Largest distance of a joint or tendon beyond its limit [m or rad]."""
    equality: float = 0.05
    """Tolerance of the part of the motion along equalities that their law does not explain."""
    motion: float = 0.02
    """Tolerance of the part of a displacement that the velocities do not explain, relative."""
    drift: float = 1e-3
    """The same of the whole way while nothing happens: small parts add up."""
    slip: float = 1e-6
    """Tolerance of sliding where contacts must not slide [m/s]."""
    contact: ContactName | None = None
    """Contact law to judge the run by, for pairs for which the scene sets none."""
    mu_v: float = 0.1
    """Coefficient of the viscous law [N s/m]."""
    no_slip: bool | None = None
    """Require that loaded contacts do not slide; by default if the law is no slip."""
    format: Literal["human", "json"] = "human"
    """Output format of the verdict."""

    @exit_code
    def run(self) -> int:
        """Print the verdict; return the exit code."""
        from holdfast.tools import files
        from holdfast.tools.trajectory import read_trajectory
        from holdfast.tools.verify import Tolerances, verify

        run = read_trajectory(self.trajectory)
        arrays = run.arrays
        name, law = run.law(self.contact, self.mu_v)
        model = files.load_scene(self.scene or run.scene(self.trajectory.parent))
        no_slip = name.startswith("noslip") if self.no_slip is None else self.no_slip
        tolerances = Tolerances(
            distance=self.penetration,
            energy=self.energy,
            fall=self.fall,
            sustained=self.sustained,
            momentum=self.momentum,
            limit=self.limit,
            equality=self.equality,
            motion=self.motion,
            drift=self.drift,
            slip=self.slip,
        )
        with progress_bar("verifying", quiet=self.format == "json") as progress:
            verdict = verify(
                model, arrays["time"], arrays["qpos"], arrays["qvel"], arrays.get("ctrl"),
                no_slip=no_slip, law=law, tolerances=tolerances, progress=progress,
            )  # fmt: skip
        verdict.notes.append(f"contacts are judged by the law {name!r}")
        self._print(verdict)
        return 0 if verdict.passed else 1

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

        from holdfast.tools.verify import HEADINGS

        title = text(f"{self.trajectory.name}, {verdict.samples} samples", "table.title")
        table = Table(title=title)
        for heading in HEADINGS:
            table.add_column(heading, justify="left" if heading == "check" else "right")
        for cells in verdict.rows_as_text():
            table.add_row(*cells)
        console = Console()
        console.print(table)
        for note in verdict.notes:
            console.print(text(note))
        console.print("verdict: pass" if verdict.passed else "verdict: FAIL")
