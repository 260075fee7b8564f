"""Ctrl-C ends a command within a second, with one line that says what was saved.

The first Ctrl-C raises KeyboardInterrupt in the command, which may save what there is. What does
not come to an end by that, because it is in the middle of a long call of C, is ended from another
thread; but never while a file is being written. Ctrl-C in the middle of that is answered when the
file is whole: what took long to compute is not lost.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

INTERRUPTED = 130  # what shells expect after Ctrl-C
CLOSED_PIPE = 141  # what a shell reports of a process that SIGPIPE ended
PATIENCE = 0.8  # [s] until a command is ended that does not end by itself


class _Ending:
    """How the command of this process ends.

    Attributes:
        saved: what the line says that is printed after Ctrl-C.
        said: whether that line was printed.
        saving: whether a file is being written.
        pressed: whether Ctrl-C came meanwhile.
        lock: of printing the line; the process is ended by who has it.
    """

    def __init__(self) -> None:
        self.saved, self.said = "nothing was saved", False
        self.saving = self.pressed = False
        self.lock = threading.RLock()
        self._timer: threading.Timer | None = None

    def wait(self) -> None:
        """End the process from another thread, if it does not end by itself."""
        self._timer = threading.Timer(PATIENCE, self._end)
        self._timer.daemon = True
        self._timer.start()

    def hold(self) -> bool:
        """Do not end the process for now; return whether it was about to end."""
        with self.lock:
            timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
        return timer is not None

    def say(self, where: str = "") -> None:
        """Print the line, once."""
        with self.lock:
            if not self.said:
                self.said = True
                print(f"holdfast: interrupted{where}; {self.saved}", file=sys.stderr, flush=True)

    def _end(self) -> None:
        with self.lock:
            if self._timer is threading.current_thread():  # else it was held
                self.say()
                os._exit(INTERRUPTED)


_ending = _Ending()


def note_saved(text: str) -> None:
    """Let the line after Ctrl-C say what was saved."""
    _ending.saved = text


def say_interrupted(where: str = "") -> None:
    """Print the line after Ctrl-C, unless it was printed already."""
    _ending.say(where)


@contextmanager
def saving() -> Iterator[None]:
    """A file is written: neither is the process ended meanwhile, nor is Ctrl-C answered."""
    _ending.saving, ends = True, False
    try:
        ends = _ending.hold()
        yield
    finally:
        _ending.saving = False
        pressed, _ending.pressed = _ending.pressed, False
        if ends or pressed:
            _ending.wait()
    if pressed and not ends:
        raise KeyboardInterrupt


def _interrupt(_number: int, _frame: Any) -> None:
    if _ending.saving:
        _ending.pressed = True
        return
    _ending.wait()
    raise KeyboardInterrupt


def run(command: Callable[[], int | None]) -> NoReturn:
    """Run a command and end the process with its exit code; 130 and one line after Ctrl-C.

    A reader that closes the pipe, as `head` does, ends it without a word, as other programs do.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)
    try:
        code = command() or 0
        sys.stdout.flush()  # or a closed pipe is met when nobody can handle it
    except KeyboardInterrupt:
        say_interrupted()
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
