"""The motion of a step, found in compiled code: the usual case, or a search."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from holdfast.lcp.find_indices import RANK_TOL
from holdfast.lcp.options import DEFAULT
from holdfast.models import Frictionless, NoSlip
from holdfast.mujoco import _at_once as kernels
from holdfast.mujoco import _rounds as rounds
from holdfast.mujoco import _whole as whole
from holdfast.mujoco._answer import Answer, from_found
from holdfast.mujoco._inertia import GIVEN
from holdfast.mujoco._memory import STRIDE
from holdfast.mujoco._parts import COLUMNS
from holdfast.mujoco._recall import COLUMNS as KNOWN
from holdfast.mujoco._recall import FEW
from holdfast.mujoco._scene import (
    MASKS,
    Found,
    Scene,
    Sizes,
    Work,
    carve,
    room,
)
from holdfast.mujoco._usual import FOUND, NOT_SETTLED
from holdfast.mujoco.assemble import TOUCHING, Rows

carve_plain: Any = getattr(carve, "py_func", carve)
_room: Any = getattr(room, "py_func", room)
OPEN = 1e-5  # part of the mean size beyond which a gap is open; below is a detector's noise


def _no_guard() -> None:
    """Stands for a guarded call where there is none."""
    raise RuntimeError("MuJoCo's library cannot be called")


class Quick:
    """Finds motions by the compiled search, for contacts that stick or are frictionless.

    Attributes:
        applies: whether the contact model is one that the search knows.
        report: numbers about the last step, see `holdfast.mujoco._at_once`.
    """

    def __init__(self, contact: Any, trees: int = 1) -> None:
        known = isinstance(contact, (NoSlip, Frictionless)) and contact.solver == "ppm"
        self.applies = known and getattr(contact, "grip", "loaded") == "loaded"
        tolerances = getattr(contact, "options", None) or DEFAULT
        rank_tol = getattr(contact, "rank_tol", RANK_TOL)
        tolerances = (*tolerances.kernel_arguments, rank_tol)
        self._options = np.array([0.0, 0.0, 0.0, *tolerances, 0.0])
        self._settings = np.zeros(kernels.SETTINGS, dtype=np.int64)
        self._settings[kernels.INERTIA] = GIVEN
        self._sizes = np.zeros(6, dtype=np.int64)
        self._table = np.zeros((trees, COLUMNS), dtype=np.int64)
        self.report = np.zeros(kernels.REPORT)
        self._desk, self._on_desk = np.zeros(whole.DESK, dtype=np.int64), {}
        self._view = self._desk.data  # whose entries Python reads and writes faster
        self._view[whole.GUARDED] = 1
        self._guarded: Callable[[], object] = _no_guard
        self._plain = partial(whole.step_at.call, self._desk.ctypes.data)
        for field, array in (
            (whole.SETTINGS, self._settings), (whole.OPTIONS, self._options),
            (whole.SIZES, self._sizes), (whole.TABLE, self._table), (whole.REPORT, self.report),
            (whole.CONTACT, np.array(STRIDE * [0] + [8])),
            (whole.WARNED, np.zeros((0, 2), dtype=np.int64)),
        ):  # fmt: skip
            self._put(field, array)
        self._memory_of_search = np.zeros(0)
        self._grow(0, 0)

    def _put(self, field: int, array: np.ndarray) -> None:
        """Tell the kernels where an array is."""
        self._desk[field : field + 2] = array.ctypes.data, array.size
        self._on_desk[field] = array  # keeps it alive

    def _grow(self, numbers: float, flags: float) -> None:
        """Make work arrays of these sizes, with some reserve; twice if there may be parts."""
        times = 3.0 if len(self._table) > 1 else 1.5
        self._work = np.zeros(int(times * numbers) + 1)
        self._words = self._work.view(np.int64)
        self._flags = np.zeros(int(times * flags) + 1, dtype=bool)
        self._table[:] = 0
        self._put(whole.WORK, self._work)
        self._put(whole.FLAGS, self._flags)
        contacts = len(self._flags) // MASKS if len(self._table) > FEW else 0
        self._put(whole.MEMO, np.zeros((1 + contacts, KNOWN)))
        self._views: tuple[bytes, tuple[Scene, Work, Found]] | None = None  # for these sizes

    def _run(self, begin: int, *, guarded: bool = False) -> int:
        """Run the kernels from a stage on, see `holdfast.mujoco._whole`; return their status."""
        desk = self._view
        desk[whole.BEGIN], desk[whole.GUARDED] = begin, guarded
        call = self._guarded if guarded else self._plain
        try:
            call()
        finally:  # as a whole step begins
            desk[whole.BEGIN], desk[whole.GUARDED] = whole.FORWARD, 1
        status = desk[whole.STATUS]
        return self._run_on(guarded=guarded) if status == kernels.GROW else status

    def _run_on(self, *, guarded: bool) -> int:
        """Go on from the rows, with work arrays that are large enough."""
        self._grow(self.report[kernels.NUMBERS], self.report[kernels.FLAGS])
        return self._run(whole.ROWS, guarded=guarded)

    def __call__(self, rows: Rows, sticks: np.ndarray) -> Answer | None:
        """The answer, or None where it is in doubt.

        Args:
            rows: of this step.
            sticks: (n,) contacts whose law is to stick; the others are frictionless.
        """
        sizes = Sizes(
            len(rows.v), len(rows.gap), len(rows.efc_J), len(rows.error), len(rows.loss),
            len(rows.limit_gap),
        )  # fmt: skip
        numbers, flags = _room(sizes)
        if numbers > len(self._work) or flags > len(self._flags):
            self._grow(numbers, flags)
        if tuple(self._sizes) != sizes:
            self._sizes[:] = sizes
            self._flags[:] = False  # nothing is expected of these rows
            self._carved()[1].kept.valid[:] = 0.0
            self._carved()[2].numbers[:] = 0.0
        scene = self._carved()[0]
        for ours, theirs in (
            (scene.A[0], rows.A), (scene.v, rows.v), (scene.f, rows.f), (scene.rows, rows.efc_J),
            (scene.target, rows.target), (scene.error, rows.error), (scene.loss, rows.loss),
            (scene.limit_gap, rows.limit_gap), (scene.first, rows.first), (scene.dim, rows.dim),
            (scene.gap, rows.gap), (scene.mu, rows.mu), (scene.sticks, sticks),
        ):  # fmt: skip
            ours[...] = theirs
        self._options[:3] = rows.h, TOUCHING * rows.size, OPEN * rows.size
        status = self._run(whole.ROWS)
        if status == NOT_SETTLED:
            status = self._search()
        return from_found(lambda: rows, self._found()) if status == FOUND else None

    def _search(self) -> int:
        """Search for the motion of the parts that are not usual; FOUND, or what is in doubt."""
        progress, parts = np.zeros(rounds.PROGRESS, dtype=np.int64), int(self.report[kernels.PARTS])
        status = rounds.STOPPED
        while status in (rounds.STOPPED, rounds.SMALL):  # between two calls Ctrl-C gets through
            memory = self._memory_of_search
            status = rounds.search(
                self._work, self._words, self._flags, self._options, memory, memory.view(np.int64),
                self._table, progress, parts,
            )  # fmt: skip
            if status == rounds.SMALL:
                longer = np.zeros(3 * int(progress[rounds.NEEDED]) // 2)
                longer[: len(memory)] = memory
                self._memory_of_search = longer
        return status

    def _found(self) -> Found:
        """What was found, copied."""
        return Found(*map(np.copy, self._carved()[2]))

    def _carved(self) -> tuple[Scene, Work, Found]:
        """What the kernels work on, as views of the work arrays."""
        key = self._sizes.tobytes()
        if self._views is None or self._views[0] != key:
            sizes = Sizes(*self._sizes.tolist())
            self._views = key, carve_plain(self._work, self._words, self._flags, sizes)
        return self._views[1]
