"""The usual path of a step: `find_motion` with the arrays that it needs."""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast.lcp.factored import _work_size
from holdfast.lcp.options import DEFAULT
from holdfast.models import Frictionless, NoSlip
from holdfast.models._projection import RANK_TOL
from holdfast.mujoco._answer import Answer, solution_of
from holdfast.mujoco._scene import (
    CONSISTENT,
    EXCESS,
    REPORTED,
    SLIP,
    Found,
    Numbers,
    Play,
    Scene,
    Work,
)
from holdfast.mujoco._search import FOUND, find_motion
from holdfast.mujoco.assemble import Rows

_NOTHING = np.empty(0, dtype=bool)


class Quick:
    """Finds motions by the compiled search, for contacts that stick or are frictionless.

    Attributes:
        applies: whether the contact model is one that the search knows.
    """

    def __init__(self, contact: Any) -> None:
        known = isinstance(contact, (NoSlip, Frictionless)) and contact.solver == "ppm"
        self.applies = known and getattr(contact, "grip", "loaded") == "loaded"
        options = getattr(contact, "options", None) or DEFAULT
        self._arguments: Any = (*options.kernel_arguments, getattr(contact, "rank_tol", RANK_TOL))
        self._size = (-1, -1, -1, -1)
        self._work: Work | None = None
        self._loaded = _NOTHING  # in the last step; only a hint in this one

    def __call__(self, rows: Rows, sticks: np.ndarray, opened: float) -> Answer | None:
        """The answer, or None where it is in doubt.

        Args:
            rows: of this step.
            sticks: (n,) contacts whose law is to stick; the others are frictionless.
            opened: gaps beyond this are open [m].
        """
        m, n, size = len(rows.v), len(rows.gap), len(rows.efc_J)
        scene = Scene(
            rows.A.reshape(1, m, m), rows.v, rows.f, rows.efc_J, rows.target, rows.loss,
            rows.limit_gap, rows.first, rows.dim, rows.gap, rows.mu, sticks,
        )  # fmt: skip
        numbers = Numbers(rows.h, rows.touch, opened, *self._arguments)
        masks = np.empty((4, n), dtype=bool)
        found = Found(
            np.empty(m), np.empty(m), np.empty(size), masks[0], masks[1], masks[2], masks[3],
            np.empty(len(rows.limit_gap), dtype=bool), np.empty(size, dtype=bool),
            np.empty(REPORTED),
        )  # fmt: skip
        expected = self._loaded if len(self._loaded) == size else _NOTHING
        work = self._room(m, n, size, len(rows.limit_gap))
        if find_motion(scene, numbers, expected, work, found) != FOUND:
            return None
        self._loaded = found.loaded
        return Answer(
            rows=rows,
            velocity=found.motion,
            impulse=found.impulse,
            contacts=found.contacts,
            limits=found.limits,
            grips=found.grips,
            slip=float(found.numbers[SLIP]),
            excess=found.numbers[EXCESS] > 0.0,
            consistent=found.numbers[CONSISTENT] > 0.0,
            make=lambda: solution_of(rows, found),
        )

    def _room(self, m: int, n: int, size: int, limits: int) -> Work:
        """Work arrays for n contacts, m coordinates and so many rows and limits."""
        if self._work is None or self._size != (m, n, size, limits):
            self._size = (m, n, size, limits)
            self._work = make_room(m, n, size, limits)
        return self._work


def make_room(m: int, n: int, size: int, limits: int) -> Work:
    """Allocate work arrays, see `Work`."""
    integers, floats = np.empty((3, size), dtype=np.int64), np.empty((5, size))
    play = Play(
        lo=integers[0], hi=integers[1], length2=floats[0], at=integers[2], weight=floats[1],
        s=floats[2], c=floats[3], miss=floats[4], envelope=np.empty(m, dtype=np.int64),
    )  # fmt: skip
    solver = np.empty(_work_size(size, m, 0, m, 1, m, size, n + limits))
    return Work(
        L=np.zeros((1, m, m)),
        envelope=np.zeros(m, dtype=np.int64),
        x=np.empty((8, m)),
        values=np.empty((size, m)),
        bounds=np.empty(3 * size),
        at=np.empty(size, dtype=np.int64),
        offsets=np.empty((0, 0), dtype=np.int64),
        warm=np.empty(2 * n + limits, dtype=np.int64),
        solver=solver,
        solver_integers=solver.view(np.int64),
        out=np.empty(3 * size + 2 * m + 16),
        white=np.empty((size + n + m, m)),
        which=np.empty((1, n), dtype=np.int64),
        each=np.empty((5, n)),
        masks=np.zeros((7, n), dtype=bool),
        square=np.empty((4, m, m)),
        vector=np.empty((5, m)),
        columns=np.empty(4 * m * n),
        long=np.empty(4 * n),
        E=np.empty(2 * n * m),
        pivots=np.empty((2, m), dtype=np.int64),
        play=play,
    )
