"""Who is in the middle of a step: a lock that an interrupt cannot leave locked.

A `threading.Lock` that is taken before ``try`` stays taken if Ctrl-C comes between the two, and one
that is released in ``finally`` stays taken if it comes there. Here the holder is the stack frame of
the call that steps: a frame that runs nowhere any more holds nothing.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from functools import wraps
from types import FrameType
from typing import Any

from holdfast.errors import HoldfastError

_takeover = threading.Lock()


class Claim:
    """At most one call at a time, known by its frame."""

    def __init__(self) -> None:
        self._holder: dict[int, FrameType] = {}

    def take(self, frame: FrameType) -> None:
        """Let the call with this frame be the one that steps.

        Raises:
            HoldfastError: another one is under way, in another thread or further up this stack.
        """
        holder = self._holder.setdefault(0, frame)  # one instruction: threads cannot both get it
        if holder is frame:
            return
        with _takeover:
            left = self._holder.get(0) is holder and not _runs(holder)
            if left:
                self._holder[0] = frame
        if not left:
            raise HoldfastError("the stepper is in the middle of a step; create one for each "
                                "thread, and another for callbacks")  # fmt: skip

    def leave(self, frame: FrameType) -> None:
        """The call with this frame has ended; does nothing if another one has the claim."""
        if self._holder.get(0) is frame:
            self._holder.pop(0, None)


def alone(method: Callable[..., Any]) -> Any:
    """Let a method of an object with a claim `_in_use` run only while no other one has it."""

    @wraps(method)
    def claimed(self: Any, *args: Any, **kwargs: Any) -> Any:
        frame = sys._getframe()
        try:
            self._in_use.take(frame)
            return method(self, *args, **kwargs)
        finally:
            self._in_use.leave(frame)

    return claimed


def _runs(frame: FrameType) -> bool:
    """Whether a frame is on the stack of any thread."""
    for top in sys._current_frames().values():
        each: FrameType | None = top
        while each is not None:
            if each is frame:
                return True
            each = each.f_back
    return False
