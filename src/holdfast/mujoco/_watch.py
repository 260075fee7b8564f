"""A warning where bodies hold on to each other by more friction than the model declares."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from holdfast._jit import entry
from holdfast.errors import FrictionWarning
from holdfast.mujoco._answer import Answer
from holdfast.mujoco._lacking import Grip, friction_of_pair, lacks
from holdfast.mujoco.contacts import name_of

_PACKAGE = str(Path(__file__).parents[1])


_lacks: Any = entry(getattr(lacks, "py_func", lacks))  # the same for Python
_friction_of_pair: Any = entry(getattr(friction_of_pair, "py_func", friction_of_pair))


def grip_of(answer: Answer) -> Grip:
    """What holds what in an answer."""
    rows = answer.rows
    return Grip(
        np.ascontiguousarray(rows.bodies.T), rows.place, rows.first, rows.dim, rows.mu,
        answer.impulse, answer.contacts, answer.grips,
    )  # fmt: skip


class FrictionWatch:
    """Warns once per pair of bodies.

    Attributes:
        warned: (k, 2) pairs so far.
    """

    def __init__(self) -> None:
        self.warned = np.zeros((0, 2), dtype=np.int64)

    def __call__(self, model: Any, grip: Grip) -> None:
        """Warn about pairs whose contacts, taken together, need more than the model declares.

        Args:
            model: names the bodies.
            grip: of a step in which some contact needs more.
        """
        i = -1
        while (i := _lacks(*grip, self.warned, i + 1)) >= 0:
            need, declared = _friction_of_pair(*grip[:-1], i)
            pair = np.sort(grip.bodies[:, i])
            self.warned = np.vstack([self.warned, pair])
            names = [name_of(model, "body", int(body)) for body in pair]
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
