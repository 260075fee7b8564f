"""How figures look, by day and by night."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.text import Text

COLORS = ("#2f7fd6", "#e0762f", "#2a9d6f", "#c8457a", "#8a63d2", "#b38a1e", "#4aa6b8", "#8a8f98")
"""Readable on white and on black."""

PAPER = "#ffffff"
NIGHT_INK, NIGHT_PAPER = "#e3e7ee", "#12161d"
GRID = "#8a93a040"
_INKS = {"#000000", "#1c2430", "#262626"}
_PAPERS = {"#ffffff"}


def new_figure(width: float = 9.0, height: float = 4.5) -> Figure:
    """An empty figure."""
    return Figure(figsize=(width, height), layout="constrained", facecolor=PAPER)


def tidy(axes: Axes) -> Axes:
    """No box around, a faint grid behind."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(True, color=GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    return axes


@contextmanager
def in_dark(figure: Figure) -> Iterator[None]:
    """Black turned to white and white to black in text, axes and lines; undone afterwards."""
    with ExitStack() as undo:
        for artist in figure.findobj():
            _turn(artist, undo)
        yield


def _turn(artist: Any, undo: ExitStack) -> None:
    names = ["color"] if isinstance(artist, Text) else ["color", "markeredgecolor"]
    if isinstance(artist, Patch):
        names = ["facecolor", "edgecolor"]
    for name in names:
        get, set_ = getattr(artist, f"get_{name}", None), getattr(artist, f"set_{name}", None)
        if get is None or set_ is None:
            continue
        before = get()
        after = _night(before)
        if after is not None:
            undo.callback(set_, before)
            set_(after)


def _night(color: Any) -> Any:
    """The colour by night; None if it stays as it is."""
    try:
        plain, alpha = to_hex(color), to_hex(color, keep_alpha=True)[7:]
    except (ValueError, TypeError):  # several colours, or none
        return None
    if alpha == "00":  # not drawn, and must stay so: an artist's own alpha would show it
        return None
    if plain in _INKS:
        return NIGHT_INK + alpha
    return NIGHT_PAPER + alpha if plain in _PAPERS else None
