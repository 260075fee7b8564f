"""``holdfast simulate``: a scene with exact contact, recorded."""

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
    exit_code,
    plain,
    progress_bar,
    say,
    text,
    write_outputs,
)
from holdfast.cli._interrupt import INTERRUPTED, note_saved, saving, say_interrupted
from holdfast.errors import HoldfastError, InputError


@dataclass(frozen=True)
class Simulate:
    """Simulate an MJCF or URDF scene with exact rigid contact."""

    scene: Annotated[Path, tyro.conf.Positional]
    """MJCF or URDF file."""
    duration: float = 10.0
    """Seconds to simulate."""
    contact: ContactName = "coulomb"
    """Contact law of pairs for which the scene sets none; coulomb is with its coefficients."""
    mode: Literal["steps", "events"] = "steps"
    """Time stepping (fast), or event-driven simulation (no penetration, slower)."""
    integrator: Literal["rk4", "symplectic_euler"] = "rk4"
    """Integrator between events (--mode events)."""
    events: bool = False
    """Print the log of events (--mode events)."""
    mu_v: float = 0.1
    """Coefficient of the viscous law [N s/m]."""
    keyframe: str | None = None
    """Name or number of the initial keyframe; the first one by default."""
    control: Path | None = None
    """Controls over time: .npz (arrays ctrl and time) or .csv (time in the first column)."""
    out: Path | None = None
    """Trajectory to write (.npz). After Ctrl-C or an error it holds what was simulated so far."""
    force: bool = False
    """Overwrite the trajectory, the video and the picture if they exist."""
    every: int = 1
    """Record every n-th step."""
    video: Path | None = None
    """Video to write, .mp4 or .gif, with contact forces drawn."""
    picture: Path | None = None
    """Picture of the end of the run to write, .png."""
    camera: str | None = None
    """Camera of the model to draw with; by default one that shows everything that moves."""
    format: Literal["human", "json"] = "human"
    """Output format of the summary."""

    @exit_code
    def run(self) -> int:
        """Simulate, write, print; return the exit code."""
        from holdfast.events import EventDriven
        from holdfast.mujoco import Stepper
        from holdfast.mujoco._mj import mujoco
        from holdfast.tools import files
        from holdfast.tools.recording import Recording, run
        from holdfast.tools.video import Film

        if self.events and self.mode != "events":
            raise InputError(
                "events", "are logged in event-driven simulation only; add --mode events"
            )
        files.check_duration(self.duration)
        if self.every < 1:
            raise InputError("every", f"is {self.every}; expected a whole number of at least 1")
        read = (self.scene, self.control)
        contact = contact_model(self.contact, self.mu_v)
        out = None if self.out is None else files.check_output(
            self.out, force=self.force, inputs=read
        )  # fmt: skip
        video, picture = check_outputs(
            self.video, self.picture, force=self.force, others=(out,), inputs=read
        )

        model = files.load_scene(self.scene)
        camera = check_camera(model, self.camera)
        data = mujoco.MjData(model)
        files.set_keyframe(model, data, self.keyframe)
        control = files.load_control(self.control, model) if self.control else None
        recording = Recording(self._metadata(model))
        steps = files.step_count(self.duration, model)
        film = Film(model, f"holdfast, {self.contact}") if self.video or self.picture else None
        code = 0
        try:
            with progress_bar("simulating", quiet=self.format == "json") as progress:
                if self.mode == "events":
                    stepper = EventDriven(model, contact, integrator=self.integrator)
                else:
                    stepper = Stepper(model, contact, warn=False)
                for k in run(stepper, data, recording, duration=self.duration, control=control,
                             every=self.every):  # fmt: skip
                    progress(k / steps)
                    if film is not None:
                        film.watch(data)
        except KeyboardInterrupt:
            code = INTERRUPTED
        except HoldfastError as error:
            code = 1
            say(f"stopped at {data.time:.6g} s: {error}")
        if out is not None and recording.time:
            try:
                self._save(recording, out, quick=code == INTERRUPTED)
            except KeyboardInterrupt:
                code = INTERRUPTED
                if not recording.saved:  # it came a moment before
                    self._save(recording, out, quick=True)
        if code == INTERRUPTED:  # drawing takes longer than Ctrl-C may
            say_interrupted(f" at {recording.summary.simulated:.6g} s")
            if self.format == "human":
                return code
        elif film is not None:
            write_outputs([film], video, picture, force=self.force, camera=camera,
                          quiet=self.format == "json")  # fmt: skip
        self._print(recording)
        if self.events and self.format == "human":
            print("\n".join(map(plain, str(recording.log).splitlines())))
        return code

    def _save(self, recording: Any, out: Path, *, quick: bool) -> None:
        """Write the trajectory, and say where it is if that is elsewhere."""
        with saving():
            place = recording.save(out, force=self.force, quick=quick)
            where = self.out if place == out else place
            saved = f"{recording.count()} states are saved in {plain(where)}"
            note_saved(saved)
        if place != out:
            say(f"{self.out} could not be written; {saved}")

    def _metadata(self, model: Any) -> dict[str, Any]:
        import holdfast
        from holdfast.mujoco._mj import mujoco

        return {
            "scene": str(self.scene),
            "contact": self.contact,
            "mode": self.mode,
            "integrator": self.integrator if self.mode == "events" else None,
            "mu_v": self.mu_v,
            "timestep": model.opt.timestep,
            "every": self.every,
            "nq": model.nq,
            "nv": model.nv,
            "holdfast": holdfast.__version__,
            "mujoco": mujoco.__version__,
        }

    def _print(self, recording: Any) -> None:
        s = recording.summary
        if self.format == "json":
            result = asdict(s) | {"complete": recording.complete}
            if self.events:
                result["log"] = [asdict(event) for event in recording.log]
            json.dump(result, sys.stdout, indent=1)
            print()
            return
        from rich.console import Console
        from rich.table import Table

        title = text(f"{self.scene.name}, {s.simulated:g} s", "table.title")
        table = Table(title=title, show_header=False)
        table.add_row("steps", str(s.steps))
        table.add_row("time of a step", f"{1e6 * s.seconds_per_step:.0f} µs")
        table.add_row("largest penetration", f"{1e6 * s.largest_penetration:.3g} µm")
        if self.mode == "events":
            table.add_row("events", str(s.events))
            table.add_row("impacts", str(s.impacts))
            table.add_row("settled", str(s.settled))
            Console().print(table)
            return
        table.add_row("contacts in the solve, mean", f"{s.contacts:.1f}")
        table.add_row("largest slip where pressed", f"{1e3 * s.largest_slip:.3g} mm/s")
        table.add_row("momentum residual", f"{s.largest_residual:.1e}")
        table.add_row("steps with a jammed contact", str(s.inconsistent))
        for pair, (needs, declared) in sorted(s.required_friction.items()):
            over = "  exceeded" if needs > declared else ""
            table.add_row(
                text(f"friction, {pair}"), f"needs {needs:.3g}, declared {declared:.3g}{over}"
            )
        Console().print(table)
