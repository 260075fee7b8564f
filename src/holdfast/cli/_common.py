"""What commands share."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from holdfast.errors import HoldfastError, SolveError
from holdfast.tools.contact_names import ContactName, contact_model

__all__ = ["ContactName", "contact_model", "exit_code", "progress_bar"]


def exit_code(run: Callable[[Any], int]) -> Callable[[Any], int]:
    """Let a command print an error of ours as one line, without a traceback, and return a code."""

    @wraps(run)
    def guarded(command: Any) -> int:
        try:
            return run(command)
        except HoldfastError as error:
            print(f"holdfast: {error}", file=sys.stderr)
            return 1 if isinstance(error, SolveError) else 2
        except OSError as error:
            print(f"holdfast: {error}", file=sys.stderr)
            return 2

    return guarded


@contextmanager
def progress_bar(what: str, *, quiet: bool = False) -> Iterator[Callable[[float], None]]:
    """A bar on stderr that is told the part that is done."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True, quiet=quiet)
    with Progress(console=console, transient=True, disable=quiet) as progress:
        task = progress.add_task(what, total=1.0)
        yield lambda part: progress.update(task, completed=part)
