"""Progress bars, in terminals and in notebooks."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from typing import Any

BETWEEN = 0.1  # [s] between updates in a notebook


@contextmanager
def progress_bar(what: str, *, quiet: bool = False) -> Iterator[Callable[[float], None]]:
    """A bar that is told the part that is done: on stderr, or below the cell of a notebook.

    Args:
        what: is done.
        quiet: show nothing.

    Example:
        >>> with progress_bar("comparing", quiet=True) as progress:
        ...     progress(0.5)
    """
    if quiet:
        yield lambda _: None
    elif in_notebook():
        yield from _in_notebook(what)
    else:
        yield from _in_terminal(what)


def in_notebook() -> bool:
    """Whether this runs in a kernel that shows HTML, as of Jupyter."""
    if "IPython" not in sys.modules:
        return False
    shell: Any = sys.modules["IPython"].get_ipython()
    return type(shell).__name__ == "ZMQInteractiveShell"


def _in_terminal(what: str) -> Iterator[Callable[[float], None]]:
    from rich.console import Console
    from rich.markup import escape as as_data
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(as_data(what), total=1.0)
        yield lambda part: progress.update(task, completed=part)


def _in_notebook(what: str) -> Iterator[Callable[[float], None]]:
    from IPython.display import HTML, display  # type: ignore[import-not-found]

    begin = last = time.monotonic()

    def bar(part: float) -> Any:
        left = (time.monotonic() - begin) * (1 / part - 1) if part > 0.02 else None
        wait = "" if left is None or part >= 1.0 else f", about {left:.0f} s left"
        return HTML(
            f'<div>{escape(what)} <progress value="{part:.4f}" max="1"></progress> '
            f"{100 * part:.0f} %{wait}</div>"
        )

    shown: Any = display(bar(0.0), display_id=True)

    def update(part: float) -> None:
        nonlocal last
        if time.monotonic() - last >= BETWEEN or part >= 1.0:
            last = time.monotonic()
            shown.update(bar(min(part, 1.0)))

    yield update
