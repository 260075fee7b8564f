"""Ctrl-C ends a command within a second, with one line.

The first Ctrl-C raises KeyboardInterrupt in the command, which may save what there is. What does
not come to an end by that, because it is in the middle of a long call of C, is ended from another
thread; but never while a file is being written.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

INTERRUPTED = 130
CLOSED_PIPE = (
    141  # what a shell reports of a process that SIGPIPE ended  # what shells expect after Ctrl-C
)
PATIENCE = 0.8  # [s] until a command is ended that does not end by itself

_saving = threading.Lock()


@contextmanager
def saving() -> Iterator[None]:
    """Work that is not ended from outside: a file is written."""
    with _saving:
        yield


def _end() -> None:
    with _saving:
        print("holdfast: interrupted", file=sys.stderr, flush=True)
        os._exit(INTERRUPTED)


def _interrupt(_number: int, _frame: Any) -> None:
    timer = threading.Timer(PATIENCE, _end)
    timer.daemon = True
    timer.start()
    raise KeyboardInterrupt


def run(command: Callable[[], int | None]) -> NoReturn:
    """Run a command and end the process with its exit code; 130 and one line after Ctrl-C.

    A reader that closes the pipe, as `head` does, ends it without a word, as other programs do.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)
    try:
        code = command() or 0
    except KeyboardInterrupt:
        print("holdfast: interrupted; nothing was saved", file=sys.stderr)
        code = INTERRUPTED
    except BrokenPipeError:
        os._exit(CLOSED_PIPE)  # the interpreter would try to flush, and complain
    except SystemExit as error:  # of the parser of arguments
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    if code == INTERRUPTED:  # kernels may be compiling in another thread: do not wait for them
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)
    raise SystemExit(code)
