"""``holdfast compare``: MuJoCo's settings against ours, on the user's own scene."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from holdfast.cli._common import (
    ContactName,
    check_camera,
    check_outputs,
    contact_model,
    creep_caption,
    exit_code,
    progress_bar,
    write_outputs,
)


@dataclass(frozen=True)
class Compare:
    """Run a scene with MuJoCo as configured, with three recipes against slip, and with holdfast.

    One table: how fast contacts creep, how far they drift, how deep they sink in, the time of a
    step, and the friction that the motion needs.
    """

    scene: Annotated[Path, tyro.conf.Positional]
    """MJCF or URDF file."""
    duration: float = 2.0
    """Seconds to simulate."""
    contact: ContactName = "coulomb"
    """Our contact model."""
    mu_v: float = 0.1
    """Coefficient of the viscous model [N s/m]."""
    keyframe: str | None = None
    """Name or number of the keyframe to start from; the first one by default."""
    control: Path | None = None
    """Controls over time, .npz or .csv."""
    video: Path | None = None
    """Video to write, .mp4 or .gif: MuJoCo and holdfast side by side, contact forces drawn."""
    picture: Path | None = None
    """Picture of the end of both runs to write, .png."""
    camera: str | None = None
    """Camera of the model to draw with; by default one that shows all that moves."""
    format: Literal["human", "json"] = "human"
    """How to print the result."""

    @exit_code
    def run(self) -> int:
        """Print the table; return the exit code, 1 if our run failed."""
        rows = self._rows()
        if self.format == "json":
            json.dump([asdict(row) for row in rows], sys.stdout, indent=1)
            print()
        else:
            print_rows(f"{self.scene.name}, {self.duration:g} s", rows)
        return 1 if rows[-1].problem else 0

    def _rows(self) -> list[Any]:
        from holdfast.mujoco._mj import mujoco
        from holdfast.tools import files
        from holdfast.tools.compare import compare

        files.check_duration(self.duration)
        contact = contact_model(self.contact, self.mu_v)
        check_outputs(self.video, self.picture)
        model = files.load_scene(self.scene)
        camera = check_camera(model, self.camera)
        data = mujoco.MjData(model)
        files.set_keyframe(model, data, self.keyframe)
        control = files.load_control(self.control, model) if self.control else None
        films = self._films(model) if self.video or self.picture else {}

        def watch(name: str, model: Any, data: Any) -> None:
            if name in films:
                films[name].watch(data)

        with progress_bar("comparing", quiet=self.format == "json") as progress:
            rows = compare(
                model, data, duration=self.duration, control=control, progress=progress,
                contact=contact, watch=watch if films else None,
            )  # fmt: skip
        if films:
            write_outputs(list(films.values()), self.video, self.picture, camera=camera,
                          quiet=self.format == "json")  # fmt: skip
        return rows

    def _films(self, model: Any) -> dict[str, Any]:
        """One film of MuJoCo as the scene configures it, one of ours."""
        from holdfast.tools.video import Film

        caption = creep_caption(model)
        return {name: Film(model, name, caption=caption) for name in ("MuJoCo", "holdfast")}


def print_rows(title: str, rows: list[Any]) -> None:
    """One table for people."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from holdfast.tools.compare import HEADINGS, LEGEND, rows_as_text

    table = Table(title=escape(title))  # names are data, not markup
    for i, heading in enumerate(HEADINGS):
        table.add_column(heading, justify="left" if i == 0 else "right", no_wrap=True)
    for cells in rows_as_text(rows):
        table.add_row(*map(escape, cells))
    console = Console()
    console.print(table)
    console.print(LEGEND, style="dim")
