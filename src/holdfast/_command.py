"""Ctrl-C while a command is loading ends it with one line, as later on.

Nothing but a command is concerned: programs that import the package keep what they have.
"""

from __future__ import annotations

import sys
from pathlib import PurePath
from types import TracebackType

LOADING = "-m"  # what stands for the name of a module until Python knows where it is

_before = sys.excepthook


def _tell(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        print("holdfast: interrupted; nothing was saved", file=sys.stderr, flush=True)
    else:
        _before(kind, error, trace)


def is_command() -> bool:
    """Whether this process is the command, and not another program that imports the package."""
    name = next(iter(getattr(sys, "argv", ())), "")
    if name != LOADING:
        return PurePath(name).stem == "holdfast"
    words = sys.orig_argv
    module = words[words.index(LOADING) + 1 :][:1] if LOADING in words else []
    return module == ["holdfast"]


if is_command():
    sys.excepthook = _tell
