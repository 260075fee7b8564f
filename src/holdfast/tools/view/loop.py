"""The loop that both viewers run: commands from the browser, time, pictures, plots.

Callbacks of the browser only put commands into a queue. The loop carries them out, so that one
thread alone touches a simulation.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np
import viser

from holdfast.errors import HoldfastError

FRAME = 1.0 / 30.0  # [s] between pictures
PLOT = 0.2  # [s] between updates of plots and texts
SPEEDS = ("1/16", "1/8", "1/4", "1/2", "1", "2", "4")


class Loop:
    """Runs a viewer until it is stopped.

    Attributes:
        paused: whether time stands still.
        speed: seconds shown per second.
        frame: [s] between pictures.
        rate: seconds shown per second, as measured lately.
        fps: pictures per second, likewise.
    """

    def __init__(self, server: viser.ViserServer) -> None:
        self.server = server
        self.paused, self.speed, self.frame = False, 1.0, FRAME
        self.rate = self.fps = 0.0
        self._commands: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._stopped = False
        self._behind = 0.0  # [s] to show
        self._shown, self._pictures = 0.0, 0  # since the last measurement
        self._changed = True

    # --- what viewers define ----------------------------------------------------------------------

    def advance(self, seconds: float) -> float:
        """Show so many seconds more, or a part of them; return how many were shown."""
        raise NotImplementedError

    def draw(self) -> None:
        """Show the present state."""
        raise NotImplementedError

    def refresh(self) -> None:
        """Update plots and texts."""
        raise NotImplementedError

    # --- the loop ---------------------------------------------------------------------------------

    def post(self, command: Callable[[], None]) -> None:
        """Have a command carried out by the loop."""
        self._commands.put(command)

    def on(self, handle: Any, command: Callable[[], None]) -> Any:
        """Post a command whenever a button is clicked or an input is changed."""
        event = handle.on_click if hasattr(handle, "on_click") else handle.on_update
        event(lambda _: self.post(command))
        return handle

    def stop(self) -> None:
        """End `run`; may be called from any thread."""
        self._stopped = True

    def changed(self) -> None:
        """Have the present state drawn."""
        self._changed = True

    def run(self) -> None:
        """Run until stopped."""
        last = next_frame = next_plot = measured = time.perf_counter()
        while not self._stopped:
            self._obey()
            now = time.perf_counter()
            if not self.paused:
                self._spend((now - last) * self.speed)
            last = now
            if now >= next_frame:
                next_frame = max(next_frame + self.frame, now)
                if self._changed:
                    self._changed = False
                    self._pictures += 1
                    if not self._guarded(self.draw):
                        self.set_paused(True)
            if now >= next_plot:
                next_plot = now + PLOT
                self._guarded(self.refresh)
            if now - measured >= 1.0:
                self.rate, self.fps = (
                    self._shown / (now - measured),
                    self._pictures / (now - measured),
                )
                self._shown, self._pictures, measured = 0.0, 0, now
            time.sleep(0.001)

    def _spend(self, seconds: float) -> None:
        """Show what time has passed; what cannot be made up for is dropped."""
        self._behind = min(self._behind + seconds, 0.1 * max(self.speed, 1.0))
        shown = self.advance(self._behind)
        self._behind -= shown
        self._shown += shown
        self._changed |= shown > 0.0

    def _obey(self) -> None:
        while True:
            try:
                command = self._commands.get_nowait()
            except Empty:
                return
            self._guarded(command)
            self._changed = True

    def _guarded(self, work: Callable[[], Any]) -> bool:
        """Do something; if that fails, show why and go on. Return whether it worked."""
        try:
            work()
        except HoldfastError as error:
            self.report(str(error))
        except Exception as error:  # whatever it is, the page stays
            self.report(f"{type(error).__name__}: {error}")
        else:
            return True
        return False

    def report(self, problem: str) -> None:
        """Show a problem in every browser."""
        for client in self.server.get_clients().values():
            client.add_notification("holdfast", problem, auto_close_seconds=20.0, color="red")

    # --- what both pages have ---------------------------------------------------------------------

    def add_playback(self, *, reset: Callable[[], None], step: Callable[[], None]) -> None:
        """Add pause, step, reset and speed to the page."""
        gui = self.server.gui
        self._pause = gui.add_button("Pause", icon=viser.Icon.PLAYER_PAUSE)
        self.on(self._pause, lambda: self.set_paused(not self.paused))
        self._step = gui.add_button("Single step", icon=viser.Icon.PLAYER_TRACK_NEXT)
        self.on(self._step, lambda: (self.set_paused(True), step())[1])
        self.on(gui.add_button("Reset", icon=viser.Icon.REFRESH), reset)
        speed = gui.add_dropdown("Speed", options=SPEEDS, initial_value="1")
        self.on(speed, lambda: self._set_speed(speed.value))

    def set_paused(self, paused: bool) -> None:
        """Pause or go on."""
        self.paused, self._behind = paused, 0.0
        self._pause.label = "Play" if paused else "Pause"
        self._pause.icon = viser.Icon.PLAYER_PLAY if paused else viser.Icon.PLAYER_PAUSE

    def _set_speed(self, text: str) -> None:
        over, _, under = text.partition("/")
        self.speed = float(over) / float(under or 1)


def aim_cameras(
    server: viser.ViserServer, model: Any, center: np.ndarray, size: float
) -> Callable[[np.ndarray, float], None]:
    """Aim the camera of every browser, now and when one connects; return how to aim again."""
    look = model.vis.global_
    azimuth, elevation = np.radians(look.azimuth), np.radians(look.elevation)
    back = -np.array([
        np.cos(elevation) * np.cos(azimuth), np.cos(elevation) * np.sin(azimuth), np.sin(elevation),
    ])  # fmt: skip
    aim = {"center": center, "size": size}

    def point(client: viser.ClientHandle) -> None:
        distance = 1.6 * aim["size"]
        client.camera.fov = np.radians(45.0)
        client.camera.near = float(0.01 * distance)
        client.camera.position = aim["center"] + distance * back
        client.camera.look_at = aim["center"]
        client.camera.up_direction = (0.0, 0.0, 1.0)

    server.on_client_connect(point)

    def again(center: np.ndarray, size: float) -> None:
        aim.update(center=center, size=size)
        for client in server.get_clients().values():
            point(client)

    return again
