"""A saved run, played back: time slider, events, and the verdict of `verify`."""

from __future__ import annotations

import html
import threading
from typing import Any

import numpy as np
import viser

from holdfast.errors import HoldfastError, InputError
from holdfast.mujoco._mj import mujoco
from holdfast.tools.observe import Forces, Observer
from holdfast.tools.trajectory import Trajectory, parse_trajectory
from holdfast.tools.verify import HEADINGS, Verdict, verify
from holdfast.tools.view.laws import OF_CONTACT, LawStepper
from holdfast.tools.view.live import LEGEND
from holdfast.tools.view.loop import Loop, aim_cameras
from holdfast.tools.view.plots import Plot, add_plots
from holdfast.tools.view.scene import SceneView

MEASURED = 400  # states of a run whose creep and penetration are plotted
MARKS = 40  # events marked on the slider
LISTED = 300  # events in the list
LARGEST_UPLOAD = 2**28  # bytes


class _NotWantedError(Exception):
    """Nobody looks at the verdict any more."""


class ReplayViewer(Loop):
    """Plays a run of a scene; other runs of the same scene can be opened from the page.

    Args:
        server: viser's.
        model: of the scene.
        run: what to play.
    """

    def __init__(self, server: viser.ViserServer, model: Any, run: Trajectory) -> None:
        super().__init__(server)
        run.check(model)
        self.model, self.data = model, mujoco.MjData(model)
        self.observer = Observer(model)
        self.plots = {
            "creep": Plot("Creep, µm/s", scale=1e6, window=np.inf),
            "penetration": Plot("Penetration, µm", scale=1e6, window=np.inf),
        }
        self.view = SceneView(server, model, "run")
        self.verdict: Verdict | None = None
        self.k = 0  # number of the state that is shown
        self._add_page()
        self.open(run)
        aim_cameras(server, model, self._middle(), self.view.size)

    def _middle(self) -> np.ndarray:
        moves = self.model.body_weldid[self.model.geom_bodyid] > 0
        at = self.data.geom_xpos[moves]
        return at.mean(axis=0) if len(at) else np.array(self.model.stat.center)

    # --- the page ---------------------------------------------------------------------------------

    def _add_page(self) -> None:
        gui = self.server.gui
        self._status = gui.add_html("")
        tabs = gui.add_tab_group()
        with tabs.add_tab("Replay", icon=viser.Icon.PLAYER_PLAY):
            self._folder = gui.add_folder("Time")
            self.add_playback(reset=lambda: self.seek(0), step=lambda: self.seek(self.k + 1))
            self._upload = gui.add_upload_button("Open another run", mime_type=".npz")
            self._upload.on_upload(lambda _: self.post(self._open_uploaded))
        with tabs.add_tab("Verdict", icon=viser.Icon.CHECKLIST):
            self._verdict_text = gui.add_markdown("")
        with tabs.add_tab("Show", icon=viser.Icon.EYE):
            gui.add_html(LEGEND)
        add_plots(self.server, list(self.plots.values()))
        for plot in self.plots.values():
            plot.set_lines(gui, ["so far", "to come"])
        self._slider: Any = None
        self._events: Any = None

    def _add_time(self) -> None:
        """Add the time slider with marks of the events, and their list."""
        gui, time = self.server.gui, self.run_shown.time
        for handle in (self._slider, self._events):
            if handle is not None:
                handle.remove()
        self._events = None
        events = [e for e in self.run_shown.events if time[0] <= e.time <= time[-1]]
        span = float(time[-1] - time[0])
        step = float(10.0 ** np.floor(np.log10(span / 500))) if span else 1e-3
        spread = events[:: max(1, len(events) // MARKS)]
        with self._folder:
            self._slider = gui.add_slider(
                "Time, s", min=float(time[0]), max=float(time[-1]), step=step,
                initial_value=float(time[0]), marks=tuple(e.time for e in spread) or None,
            )  # fmt: skip
            if events:
                texts = [f"{i}: {event}" for i, event in enumerate(events[:LISTED])]
                self._events = gui.add_dropdown("Event", options=("-", *texts), initial_value="-")
                self.on(self._events, lambda: self._go_to_event(events, self._events.value))
        self._sent = self._slider.value
        self.on(self._slider, self._slide)

    def _go_to_event(self, events: list[Any], text: str) -> None:
        if text != "-":
            self.set_paused(True)
            self.seek_time(events[int(text.partition(":")[0])].time)

    def _slide(self) -> None:
        """Go where the user has put the slider; updates of our own are not answered."""
        if self._slider.value != self._sent:
            self.set_paused(True)
            self.seek_time(self._slider.value)

    # --- commands ---------------------------------------------------------------------------------

    def _open_uploaded(self) -> None:
        file = self._upload.value
        if len(file.content) > LARGEST_UPLOAD:
            raise InputError("trajectory", f"{file.name} is larger than {LARGEST_UPLOAD} bytes")
        run = parse_trajectory(file.content, file.name)
        run.check(self.model)
        self.open(run)

    def open(self, run: Trajectory) -> None:
        """Play another run of the same scene; the scene that its file names is not opened."""
        self.run_shown = run
        contact = str(run.metadata.get("contact", ""))
        mu_v = run.metadata.get("mu_v", 0.1)
        self._stepper = None
        if contact in OF_CONTACT and isinstance(mu_v, int | float):
            self._stepper = LawStepper(self.model, OF_CONTACT[contact], max(float(mu_v), 0.0))
        self._now = float(run.time[0])
        self._add_time()
        self._measure_run()
        self.seek(0)
        self._judge(run)

    def _measure_run(self) -> None:
        """Measure states spread over the run."""
        count, self._measured = len(self.run_shown.time), []
        for k in np.unique(np.linspace(0, count - 1, min(count, MEASURED)).astype(int)):
            self._set_state(int(k))
            self._measured.append((float(self.data.time), self.observer.measure(self.data)))

    def _plot_run(self) -> None:
        """Draw what was measured, up to the present state in the colour of the first line."""
        now = self.run_shown.time[self.k]
        for name, plot in self.plots.items():
            plot.rows.clear()
            for time, seen in self._measured:
                value = getattr(seen, name)
                plot.add(time, (value, 0.0) if time <= now else (0.0, value))
            plot.show()

    def _judge(self, run: Trajectory) -> None:
        """Have `verify` look at the run, in a thread of its own.

        The thread ends with the viewer: one that is in MuJoCo when Python ends aborts the process.
        """
        self.verdict = None
        self._verdict_text.content = "verifying ..."

        def still_wanted(_: float) -> None:
            if self.stopped or run is not self.run_shown:
                raise _NotWantedError

        def work() -> None:
            get = run.arrays.get
            try:
                name, law = run.law()
                found = verify(self.model, run.arrays["time"], run.arrays["qpos"],
                               run.arrays["qvel"], get("ctrl"), no_slip=run.no_slip,
                               law=law, progress=still_wanted)  # fmt: skip
                found.notes.append(f"contacts are judged by the law {name!r}")
                self.post(lambda: self._say(run, found))
            except _NotWantedError:
                pass
            except (HoldfastError, mujoco.FatalError, np.linalg.LinAlgError) as error:
                text = f"not verified: {error}"
                self.post(lambda: self._say(run, None, text))

        threading.Thread(target=work).start()

    def _say(self, run: Trajectory, found: Verdict | None, text: str = "") -> None:
        if run is not self.run_shown:
            return
        self.verdict = found
        self._verdict_text.content = text if found is None else verdict_as_markdown(found)

    def seek(self, k: int) -> None:
        """Show a state by its number."""
        self.k = int(np.clip(k, 0, len(self.run_shown.time) - 1))
        self._now = float(self.run_shown.time[self.k])
        self._changed = True

    def seek_time(self, seconds: float) -> None:
        """Show the state nearest to a time [s]."""
        self.seek(int(np.abs(self.run_shown.time - seconds).argmin()))

    def _set_state(self, k: int) -> None:
        arrays, data = self.run_shown.arrays, self.data
        data.time = arrays["time"][k]
        data.qpos[:], data.qvel[:] = arrays["qpos"][k], arrays["qvel"][k]
        if "ctrl" in arrays:
            data.ctrl[:] = arrays["ctrl"][k]

    # --- the loop ---------------------------------------------------------------------------------

    def advance(self, seconds: float) -> float:
        """Go on by so many seconds of the run; pause at its end."""
        time = self.run_shown.time
        if self.k >= len(time) - 1:
            self.set_paused(True)
            return 0.0
        self._now += seconds
        self.k = min(int(np.searchsorted(time, self._now, side="right")) - 1, len(time) - 1)
        return seconds

    def draw(self) -> None:
        """Show the state, with the forces that the law of the run gives it."""
        self._set_state(self.k)
        self.view.update(self.data, self._forces())

    def _forces(self) -> Forces:
        try:
            if self._stepper is not None:
                self._stepper.forward(self.data)
                return Forces.of(self.model, self.data)
        except (HoldfastError, mujoco.FatalError):
            self._set_state(self.k)
        mujoco.mj_kinematics(self.model, self.data)
        mujoco.mj_comPos(self.model, self.data)
        return Forces.none()

    def refresh(self) -> None:
        """Update plots, the slider and the status."""
        time = self.run_shown.time
        self._plot_run()
        if not self.paused or abs(self._sent - time[self.k]) > 0.0:
            self._sent = float(time[self.k])
            self._slider.value = self._sent
        self._status.content = self._status_html()

    def _status_html(self) -> str:
        run, verdict = self.run_shown, self.verdict
        said = "verifying ..." if verdict is None else (
            '<b style="color:#2ea043">verify: pass</b>' if verdict.passed
            else '<b style="color:#d72828">verify: FAIL</b>'
        )  # fmt: skip
        contact = html.escape(str(run.metadata.get("contact", "unknown law")))
        name = html.escape(run.name.rpartition("/")[2])
        return (
            f'<div style="padding:0 1em 1em 1em;font-size:.85em"><b>{name}</b>, {contact}<br>'
            f"{run.time[self.k]:.3f} of {run.time[-1]:.3f} s, {len(run.events)} events<br>"
            f"{said}</div>"
        )


def verdict_as_markdown(verdict: Verdict) -> str:
    """A table of all checks."""
    rows = [HEADINGS, ("---",) * len(HEADINGS), *verdict.rows_as_text()]
    lines = ["| " + " | ".join(cells).replace("FAIL", "**FAIL**") + " |" for cells in rows]
    lines.append("")
    lines += [f"{note}\n" for note in verdict.notes]
    lines.append(f"**verdict: {'pass' if verdict.passed else 'FAIL'}**")
    return "\n".join(lines)
