"""A warning where bodies hold on to each other by more friction than the model declares."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from holdfast.errors import FrictionWarning
from holdfast.mujoco._answer import Answer
from holdfast.mujoco._forces import EXCEEDED
from holdfast.mujoco.contacts import Contacts, name_of

_PACKAGE = str(Path(__file__).parents[1])


class FrictionWatch:
    """Warns once per pair of bodies."""

    def __init__(self) -> None:
        self._warned: set[tuple[int, ...]] = set()

    def __call__(self, model: Any, answer: Answer, table: Callable[[], Contacts]) -> None:
        """Warn about pairs whose contacts, taken together, need more than the model declares.

        Args:
            model: names the bodies.
            answer: of a step in which some contact needs more.
            table: makes the table of contacts of that step.
        """
        rows, contacts, solution = answer.rows, answer.contacts, answer.solution
        over = solution.required_friction() > rows.mu[contacts] * (1 + EXCEEDED)
        over &= solution.sticking
        pairs = {tuple(sorted(pair)) for pair in rows.bodies[contacts][over].tolist()}
        if not pairs - self._warned:
            return
        whole = {frozenset(names): both for names, both in table().pairs().items()}
        for pair in sorted(pairs - self._warned):
            names = [name_of(model, "body", i) for i in pair]
            need, declared = whole[frozenset(names)]
            if need > declared * (1 + EXCEEDED):
                self._warned.add(pair)
                warnings.warn(
                    f"{names[0]} and {names[1]} hold on unlimited friction: they need a "
                    f"coefficient of {need:.3g}, the model declares {declared:.3g}",
                    FrictionWarning,
                    stacklevel=_frames_of_ours(),
                )


def _frames_of_ours() -> int:
    """How far up the stack the user's own code is, from whoever asks."""
    frame, count = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, count = frame.f_back, count + 1
    return count
