"""The usual path of a step: `at_once` with the arrays that it needs."""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast.lcp.factored import Arrays, _run
from holdfast.lcp.options import DEFAULT
from holdfast.models import Frictionless, NoSlip
from holdfast.models._projection import RANK_TOL
from holdfast.mujoco import _at_once as kernels
from holdfast.mujoco import _search as search
from holdfast.mujoco._answer import Answer, from_found
from holdfast.mujoco._inertia import GIVEN, quick_kind
from holdfast.mujoco._laws import Laws
from holdfast.mujoco._memory import STRIDE
from holdfast.mujoco._mj import mujoco
from holdfast.mujoco._parts import AT, COLUMNS, FLAGS_AT, SIZES, STATUS
from holdfast.mujoco._publish import show
from holdfast.mujoco._scene import (
    Found,
    Scene,
    Sizes,
    Work,
    carve,
    posed,
    room,
)
from holdfast.mujoco._shadow import Shadow
from holdfast.mujoco._usual import FOUND, NOT_SETTLED
from holdfast.mujoco.assemble import TOUCHING, Rows

NOT_TRIED = kernels.NARROW
_PYRAMIDAL = int(mujoco.mjtCone.mjCONE_PYRAMIDAL)
_carve: Any = getattr(carve, "py_func", carve)
_room: Any = getattr(room, "py_func", room)
OPEN = 1e-5  # part of the mean size beyond which a gap is open; below is a detector's noise


class Quick:
    """Finds motions by the compiled search, for contacts that stick or are frictionless.

    Attributes:
        applies: whether the contact model is one that the search knows.
        report: numbers about the last step, see `holdfast.mujoco._at_once`.
    """

    def __init__(self, contact: Any) -> None:
        known = isinstance(contact, (NoSlip, Frictionless)) and contact.solver == "ppm"
        self.applies = known and getattr(contact, "grip", "loaded") == "loaded"
        self._tolerances = getattr(contact, "options", None) or DEFAULT
        rank_tol = getattr(contact, "rank_tol", RANK_TOL)
        tolerances = (*self._tolerances.kernel_arguments, rank_tol)
        self._options = np.array([0.0, 0.0, 0.0, *tolerances, 0.0])
        self._settings = np.zeros(kernels.SETTINGS, dtype=np.int64)
        self._settings[kernels.INERTIA] = GIVEN
        self._contact = self._model = self._nowhere = np.array(STRIDE * [0] + [8])
        self._sizes = np.zeros(6, dtype=np.int64)
        self._table = np.zeros((1, COLUMNS), dtype=np.int64)
        self.report, self._state = np.zeros(kernels.REPORT), np.zeros((2, 0))
        self._grow(0, 0)

    def _grow(self, numbers: float, flags: float) -> None:
        """Make work arrays of these sizes, with some reserve; twice if there may be parts."""
        times = 3.0 if len(self._table) > 1 else 1.5
        self._work = np.zeros(int(times * numbers) + 1)
        self._words = self._work.view(np.int64)
        self._flags = np.zeros(int(times * flags) + 1, dtype=bool)
        self._table[:] = 0
        self._views: tuple[bytes, tuple[Scene, Work, Found]] | None = None  # for these sizes

    def _arrays(self, places: np.ndarray) -> tuple[np.ndarray, ...]:
        return (
            places, self._contact, self._model, self._settings, self._options, self._work,
            self._words, self._flags, self._sizes, self._table, self.report, self._state,
        )  # fmt: skip

    def _call(self, places: np.ndarray) -> int:
        while True:
            status = kernels.at_once(*self._arrays(places))
            if status != kernels.GROW:
                return status
            self._grow(self.report[kernels.NUMBERS], self.report[kernels.FLAGS])

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
        status = self._call(self._nowhere)
        if status == NOT_SETTLED:
            status = self._search(self._work, self._flags, self._sizes)
        return from_found(rows, self._found()) if status == FOUND else None

    def _search(self, work: np.ndarray, flags: np.ndarray, sizes: np.ndarray) -> int:
        """Go on where the case is not a usual one; FOUND, or what is in doubt.

        Where contacts jam, another search has no friction where surfaces only land; what it finds
        is used if nothing jams.
        """
        arrays = work, work.view(np.int64), flags, sizes, self._options
        status = self._rounds(arrays)
        if status != search.JAMS:
            return status
        numbers, booleans = _room(Sizes(*sizes.tolist()))
        kept = work[:numbers].copy(), flags[:booleans].copy()
        if not search.without_landing(*arrays) or self._rounds(arrays) != FOUND:
            work[:numbers], flags[:booleans] = kept
        return FOUND

    def _rounds(self, arrays: tuple[np.ndarray, ...]) -> int:
        """Pose, solve and weigh for as long as it takes."""
        work, words, _, sizes, _ = arrays
        status = search.AGAIN
        while status == search.AGAIN:
            k, warm, rank_tol = search.pose(*arrays)
            *problem, expected = posed(work, words, sizes, k, warm)
            solved, y = _run(Arrays(*problem), expected, self._tolerances, rank_tol)
            status = search.weigh(*arrays, y, k, solved)
        return status

    def _found(self) -> Found:
        """What was found, copied."""
        return Found(*map(np.copy, self._carved()[2]))

    def _carved(self) -> tuple[Scene, Work, Found]:
        """What the kernels work on, as views of the work arrays."""
        key = self._sizes.tobytes()
        if self._views is None or self._views[0] != key:
            sizes = Sizes(*self._sizes.tolist())
            self._views = key, _carve(self._work, self._words, self._flags, sizes)
        return self._views[1]


class Direct(Quick):
    """The same from MuJoCo's own arrays to MuJoCo's own arrays, for a whole step.

    Args:
        contact: the contact model.
        shadow: the model that is stepped, and where its data keep things.
        laws: of pairs.
    """

    def __init__(self, contact: Any, shadow: Shadow, laws: Laws) -> None:
        super().__init__(contact)
        own, user = shadow.model, shadow.user
        self._shadow, self._memory = shadow, shadow.memory
        driven = own.nmocap > 0 and own.neq > 0
        drags = laws.only not in ("stick", "frictionless")
        self.applies = self.applies and self._memory.known and not (
            shadow.adhesive or driven or drags
        )  # fmt: skip
        self._options[1:3] = TOUCHING * shadow.size, OPEN * shadow.size
        self._options[kernels.SIZE] = shadow.size
        self._settings[kernels.NGEOM] = own.ngeom
        self._settings[kernels.POLY] = own.dof_dampingpoly.shape[1]
        self._settings[kernels.STICK] = laws.only == "stick"
        self._settings[kernels.HAND_OVER] = not shadow.sensors
        self._settings[kernels.NBODY] = own.nbody
        self._table = np.zeros((max(1, own.ntree), COLUMNS), dtype=np.int64)
        arrays = (
            own.M_rownnz, own.M_colind, own.dof_damping, own.dof_dampingpoly, own.D_rownnz,
            own.D_colind, shadow.geom_body, user.geom_margin, own.dof_treeid, own.body_treeid,
        )  # fmt: skip
        self._model = np.array([array.ctypes.data for array in arrays])  # keeps no model alive
        self._contact, self._sizes[0] = self._memory.contact, own.nv
        self._state = np.zeros((2, own.nv))
        self._now: tuple[Any, ...] = ()  # what settings and options say

    def step(self, data: Any) -> int:
        """Solve and publish from MuJoCo's own arrays, and hand the velocity over for `mj_Euler`.

        Returns:
            FOUND; or LANDS if a motion was found and is yet to be looked at and published; or what
            is in doubt, or NOT_TRIED: then the rows have to be gathered first.
        """
        shadow, settings = self._shadow, self._settings
        if not self.applies:
            return NOT_TRIED
        kind = quick_kind(shadow, data, self._state[0])
        if kind is None:
            return NOT_TRIED
        now = (kind, shadow.pyramidal, shadow.cone == _PYRAMIDAL, shadow.h)
        if now != self._now:
            self._now = now
            settings[kernels.INERTIA], settings[kernels.LISTED], settings[kernels.WANTED] = now[:3]
            self._options[0] = shadow.h
        places = self._memory.places(data)
        status = self._call(places)
        return self._search_parts(places) if status == NOT_SETTLED else status

    def _search_parts(self, places: np.ndarray) -> int:
        """Search for the motion of the parts that are not usual; then as `step`."""
        for part in self._table[: int(self.report[kernels.PARTS])]:
            if part[STATUS] != FOUND:
                work, flags = self._work[part[AT] :], self._flags[part[FLAGS_AT] :]
                status = self._search(work, flags, part[SIZES:])
                if status != FOUND:
                    return status
        return self._resume(places, kernels.SEARCHED)

    def _resume(self, places: np.ndarray, where: int) -> int:
        self._settings[kernels.RESUME] = where
        try:
            return self._call(places)
        finally:
            self._settings[kernels.RESUME] = 0

    def publish(self, data: Any) -> int:
        """Publish what was found and has been looked at; FOUND."""
        return self._resume(self._memory.places(data), kernels.LOOKED)

    def publish_again(self, data: Any) -> None:
        """Do what is left of that, where MuJoCo's list is not as the user wants it."""
        scene, _, out = self._carved()
        _, _, _, ne, nf, nl = self._sizes.tolist()
        limits = np.arange(ne + nf, ne + nf + nl)
        contact, first = scene.listed[0], scene.first
        show(self._shadow, data, contact, first, limits, out.impulse, left_out=True)

    @property
    def velocity(self) -> np.ndarray:
        """After the step, as it was found."""
        return self._carved()[2].motion

    def finish(self, data: Any, *, published: bool) -> None:
        """Integrate with exactly the velocity that was solved for.

        Args:
            data: with the forces published.
            published: whether that was done with the solve.
        """
        places, shadow = self._memory.places(data), self._shadow
        if shadow.sensors or not published:
            kernels.hand_over(places, self._state)
        mujoco.mj_Euler(shadow.model, data)
        kernels.take_back(places, self._state)

    def found(self) -> list[Found]:
        """What the last step found, of each part, copied."""
        parts = self._table[: int(self.report[kernels.PARTS])]
        if len(parts) < 2:
            return [self._found()]
        found = []
        for part in parts:
            work, flags = self._work[part[AT] :], self._flags[part[FLAGS_AT] :]
            sizes = Sizes(*part[SIZES:].tolist())
            found.append(_carve(work, work.view(np.int64), flags, sizes)[2])
        return [Found(*map(np.copy, each)) for each in found]

    def rows(self) -> Rows:
        """The scene of the last step as rows, copied."""
        sc = Scene(*map(np.copy, self._carved()[0]))
        _, _, _, ne, nf, nl = self._sizes.tolist()
        return Rows(
            A=sc.A[0], f=sc.f, v=sc.v, h=float(self._options[0]), efc_J=sc.rows,
            equality=slice(0, ne), dry=slice(ne, ne + nf), limit=np.arange(ne + nf, ne + nf + nl),
            contact=sc.listed[0], first=sc.first, dim=sc.dim, gap=sc.gap, limit_gap=sc.limit_gap,
            error=sc.error, target=sc.target, loss=sc.loss, size=self._shadow.size, mu=sc.mu,
            geoms=sc.listed[3:5].T, bodies=sc.listed[5:7].T, place=sc.place,
            sunk=np.zeros(len(sc.gap)),
        )  # fmt: skip
