"""Plots over the time of a simulation."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import viser
from viser import uplot

WINDOW = 10.0  # [s] of the simulation
POINTS = 500
COLORS = ("#1f6fd0", "#e0701a")
NOTHING = 1e-12  # [m, m/s] what is smaller is not told apart from zero
PANEL_WIDTH = 340  # [pixels]


@dataclass
class Plot:
    """One plot, with a line for each simulation.

    Args:
        title: with the unit.
        scale: factor from SI units to what is drawn.
        window: [s] that are kept.
        points: that are kept.
    """

    title: str
    scale: float = 1.0
    window: float = WINDOW
    points: int = POINTS
    names: tuple[str, ...] = ("",)
    handle: Any = None
    place: Any = None  # tab that it is in
    order: float = 0.0
    rows: deque[tuple[float, ...]] = field(default_factory=deque)  # time, value of each line

    def add_to(self, gui: viser.GuiApi, place: Any, order: float) -> None:
        """Add the plot to a tab of the page."""
        self.place, self.order = place, order
        with place:
            self.handle = self._made(gui)

    def _made(self, gui: viser.GuiApi) -> Any:
        return gui.add_uplot(
            data=self._data(),
            series=self._series(),
            scales={"x": uplot.Scale(time=False, auto=True)},
            axes=(uplot.Axis(size=36), uplot.Axis(size=58)),
            title=self.title,
            legend=uplot.Legend(show=True, live=False),
            cursor=uplot.Cursor(show=False),
            height=145,
            order=self.order,
        )

    def _series(self) -> tuple[uplot.Series, ...]:
        both = zip(self.names, COLORS, strict=False)
        lines = (uplot.Series(label=name or " ", stroke=color, width=1.5) for name, color in both)
        return (uplot.Series(label="time, s"), *lines)

    def set_lines(self, gui: viser.GuiApi, names: Sequence[str]) -> None:
        """Name the lines; what was drawn is kept if there are as many as before."""
        if tuple(names) == self.names:
            return
        if len(names) != len(self.names):
            self.rows.clear()
        self.names = tuple(names)
        # A new plot: one whose lines are renamed goes on with the scales that it began with.
        visible, old = self.handle.visible, self.handle
        self.add_to(gui, self.place, self.order)
        self.handle.visible = visible
        old.remove()

    def add(self, time: float, values: Sequence[float]) -> None:
        """Add a point to each line; a time that was there already is replaced."""
        while self.rows and self.rows[-1][0] >= time:
            self.rows.pop()
        seen = (value if abs(value) > NOTHING else 0.0 for value in values)
        self.rows.append((time, *(self.scale * value for value in seen)))
        while len(self.rows) > self.points or self.rows[0][0] < time - self.window:
            self.rows.popleft()

    def show(self) -> None:
        """Send the points to the browser."""
        self.handle.data = self._data()

    def _data(self) -> tuple[np.ndarray, ...]:
        rows = self.rows or ((0.0, *(0.0 for _ in self.names)),)
        return tuple(np.array(rows, dtype=float).T.copy())


def add_plots(server: viser.ViserServer, plots: Sequence[Plot]) -> None:
    """Show plots in a panel on the left, and the controls on the right."""
    panel = server.gui.add_panel()
    tab = panel.add_tab("Plots", viser.Icon.CHART_LINE)
    for k, plot in enumerate(plots):
        plot.add_to(server.gui, tab, float(k))
    panel.dock_left()
    panel.set_width(PANEL_WIDTH)
    server.gui.main_panel.dock_right()
    server.gui.main_panel.set_width(PANEL_WIDTH)
