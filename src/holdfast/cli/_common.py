"""What commands share."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

from holdfast.errors import HoldfastError, SolveError

INTERRUPTED = 130  # what shells expect after Ctrl-C

ContactName = Literal["noslip", "noslip-all", "viscous", "frictionless"]


def contact_model(name: str, mu_v: float) -> Any:
    """The contact model of a name."""
    from holdfast.models import Frictionless, NoSlip, Viscous

    return {
        "noslip": lambda: NoSlip(),
        "noslip-all": lambda: NoSlip(grip="all"),
        "viscous": lambda: Viscous(mu_v),
        "frictionless": lambda: Frictionless(),
    }[name]()


class Failure:
    """Exit code of a command that failed."""

    code = 2


@contextmanager
def errors_to_exit_code() -> Iterator[Failure]:
    """Print an error of ours as one line, without a traceback."""
    failure = Failure()
    try:
        yield failure
    except HoldfastError as error:
        failure.code = 1 if isinstance(error, SolveError) else 2
        print(f"holdfast: {error}", file=sys.stderr)


@contextmanager
def progress_bar(what: str, *, quiet: bool = False) -> Iterator[Callable[[float], None]]:
    """A bar on stderr that is told the part that is done."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True, quiet=quiet)
    with Progress(console=console, transient=True, disable=quiet) as progress:
        task = progress.add_task(what, total=1.0)
        yield lambda part: progress.update(task, completed=part)
