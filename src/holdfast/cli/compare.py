"""``holdfast compare``: settings of MuJoCo and laws of holdfast on a scene of the user."""

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
    text,
    write_outputs,
)


@dataclass(frozen=True)
class Compare:
    """Run a scene with MuJoCo as configured, with its remedies for slip, and with holdfast.

    The table lists how fast contacts creep, how far they drift, how deep they sink in, the time of
    a step, and the friction that the motion needs against what the model declares. Coulomb friction
    and no-slip contact have a row each; a warning is printed if no-slip contact holds something
    that the model's friction would not.
    """

    scene: Annotated[Path, tyro.conf.Positional]
    """MJCF or URDF file."""
    duration: float = 2.0
    """Seconds to simulate."""
    contact: ContactName = "coulomb"
    """A further contact law to compare, besides Coulomb friction and no slip."""
    mu_v: float = 0.1
    """Coefficient of the viscous law [N s/m]."""
    keyframe: str | None = None
    """Name or number of the initial keyframe; the first one by default."""
    control: Path | None = None
    """Controls over time: .npz (arrays ctrl and time) or .csv (time in the first column)."""
    video: Path | None = None
    """Video to write, .mp4 or .gif: MuJoCo and holdfast side by side, contact forces drawn."""
    picture: Path | None = None
    """Picture of the end of both runs to write, .png."""
    force: bool = False
    """Overwrite the video and the picture if they exist."""
    camera: str | None = None
    """Camera of the model to draw with; by default one that shows everything that moves."""
    format: Literal["human", "json"] = "human"
    """Output format of the table."""

    @exit_code
    def run(self) -> int:
        """Print the table; return the exit code, 1 if a run of holdfast failed."""
        from holdfast.tools.compare import OURS

        rows = self._rows()
        if self.format == "json":
            told = [{**asdict(row), "exceeded": row.exceeded} for row in rows]
            json.dump(told, sys.stdout, indent=1)
            print()
        else:
            print_rows(f"{self.scene.name}, {self.duration:g} s", rows)
        return 1 if any(row.problem for row in rows if row.name.startswith(OURS)) else 0

    def _rows(self) -> list[Any]:
        from holdfast.mujoco._mj import mujoco
        from holdfast.tools import files
        from holdfast.tools.compare import compare

        files.check_duration(self.duration)
        contact = contact_model(self.contact, self.mu_v)
        video, picture = check_outputs(
            self.video, self.picture, force=self.force, inputs=(self.scene, self.control)
        )
        model = files.load_scene(self.scene)
        files.step_count(self.duration, model)
        camera = check_camera(model, self.camera)
        data = mujoco.MjData(model)
        files.set_keyframe(model, data, self.keyframe)
        control = files.load_control(self.control, model) if self.control else None
        films = self._films(model, contact) if self.video or self.picture else {}

        def watch(name: str, model: Any, data: Any) -> None:
            if name in films:
                films[name].watch(data)

        with progress_bar("comparing", quiet=self.format == "json") as progress:
            rows = compare(
                model, data, duration=self.duration, control=control, progress=progress,
                contact=contact, watch=watch if films else None,
            )  # fmt: skip
        if films:
            write_outputs(
                list(films.values()), video, picture, force=self.force, camera=camera,
                quiet=self.format == "json",
            )  # fmt: skip
        return rows

    def _films(self, model: Any, contact: Any) -> dict[str, Any]:
        """One film of MuJoCo as the scene configures it, one of holdfast, by the names of rows."""
        from holdfast.tools.compare import row_of
        from holdfast.tools.video import Film

        caption = creep_caption(model)
        return {
            "MuJoCo": Film(model, "MuJoCo", caption=caption),
            row_of(contact): Film(model, f"holdfast, {self.contact}", caption=caption),
        }


def print_rows(title: str, rows: list[Any]) -> None:
    """Print a table that fits into 80 columns."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from holdfast.tools.compare import HEADINGS, LEGEND, remarks, rows_as_text

    table = Table(
        title=text(title, "table.title"),
        box=box.SIMPLE_HEAD, collapse_padding=True, pad_edge=False, show_edge=False,
    )  # fmt: skip
    for i, heading in enumerate(HEADINGS):
        table.add_column(heading, justify="left" if i == 0 else "right", no_wrap=i > 0)
    for cells in rows_as_text(rows):
        table.add_row(*map(text, cells))
    console = Console()
    console.print(table)
    for remark in remarks(rows):
        console.print(text(remark, "yellow"))
    console.print(LEGEND, style="dim")
