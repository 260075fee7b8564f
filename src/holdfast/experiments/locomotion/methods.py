"""Who moves the walking quadruped: MuJoCo, `Stepper`, or `EventDriven`."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from holdfast.events import EventDriven
from holdfast.events.nearest_motion import nearest
from holdfast.experiments.locomotion.walk import Course, Press, Walk, clock, histogram, median
from holdfast.lcp import LCPResult, Status
from holdfast.lcp.lemke import LemkeOutcome, lemke
from holdfast.models import ContactModel, Viscous
from holdfast.mujoco._answer import Answer
from holdfast.mujoco._at_once import FOUND, LANDS
from holdfast.mujoco._mj import mujoco
from holdfast.mujoco.assemble import Rows
from holdfast.mujoco.stepper import Stepper

NEAR = 1e-7  # [m] feet closer to the ground than this stand on it, where forces are not known


class MujocoWalk(Walk):
    """Stepped by MuJoCo.

    Args:
        course: where to walk.
        options: of the model's `opt`, changed from its defaults.
    """

    def __init__(self, course: Course, options: dict[str, Any]) -> None:
        super().__init__(course)
        for name, value in options.items():
            setattr(self.model.opt, name, value)

    def _step(self) -> None:
        mujoco.mj_step(self.model, self.data)
        self.contacts.append(int(np.count_nonzero(self.data.contact.efc_address >= 0)))


class _TimedStepper(Stepper):
    """Keeps the times of its contact solves."""

    def __init__(self, model: Any, contact: ContactModel, walk: Walk) -> None:
        super().__init__(model, contact, warn=False)
        self._walk = walk
        self._direct.in_one_call = False  # there the solve could not be timed

    def _at_once(self, data: Any) -> int:
        begin = clock()
        status = super()._at_once(data)
        if status in (FOUND, LANDS):
            self._walk.solves.append(clock() - begin)
        return status

    def _solve(self, rows: Rows) -> Answer:
        begin = clock()
        answer = super()._solve(rows)
        self._walk.solves.append(clock() - begin)
        return answer

    def _solve_long(self, rows: Rows) -> Answer:
        self._walk.fallbacks += self._quick.applies
        return super()._solve_long(rows)


class SteppedWalk(Walk):
    """Stepped by `Stepper`, symplectic Euler.

    Args:
        course: where to walk.
        contact: the contact model.
    """

    def __init__(self, course: Course, contact: ContactModel) -> None:
        super().__init__(course)
        self.stepper = _TimedStepper(self.model, contact, self)

    def _step(self) -> None:
        self.stepper.step(self.data)
        self.contacts.append(self.stepper.count)
        self.jammed = self.stepper.inconsistent


class ViscousWalk(Walk):
    """Simulated by `EventDriven`, RK4 with viscous contact at acceleration level.

    Every LCP is solved twice, by modified PPM, which is used, and by Lemke's method, which is not;
    they take turns in going first. Times are of both alone: Lemke's is given the dense matrix, and
    what it takes to form that is kept apart.

    Attributes:
        lemke: times of Lemke's solves [s].
        forming: times to form the dense matrices [s].
        pivots: of modified PPM and of Lemke, summed up.
        lemke_failures: solves in which Lemke's method ended with an error.
        difference: largest between both accelerations, over the larger of the two.
    """

    def __init__(self, course: Course, mu_v: float) -> None:
        super().__init__(course)
        contact = Viscous(mu_v=mu_v, level="acceleration")
        self.simulation = EventDriven(self.model, contact, integrator="rk4")
        self.simulation.solve = self._solve
        self.lemke: list[float] = []
        self.forming: list[float] = []
        self.pivots = np.zeros(2, dtype=int)
        self.lemke_failures = 0
        self.difference = 0.0
        self._near = self.model.__copy__()
        self._near.geom_margin[:] = NEAR
        self._listed = mujoco.MjData(self._near)

    def _step(self) -> None:
        self._listed.qpos[:] = self.data.qpos
        self.simulation.step(self.data)

    def _pressed(self) -> list[Press]:
        data = self._listed
        mujoco.mj_kinematics(self._near, data)
        mujoco.mj_comPos(self._near, data)
        mujoco.mj_collision(self._near, data)
        found = []
        for i in range(data.ncon):
            foot = np.flatnonzero(self._feet == data.contact.geom[i].max())
            if foot.size and data.contact.dist[i] <= NEAR:
                found.append(Press.of(data.contact, i, int(foot[0])))
        return found

    def _slid(self, press: Press) -> float | None:
        return None  # by what it moved: the velocity changes within the step

    def _solve(self, M: Any, x0: Any, N: Any, b: Any, lo: Any, hi: Any) -> LCPResult:
        self.contacts.append(len(N))
        first = len(self.solves) % 2 == 0
        other = None if first else self._by_lemke(M, x0, N, b)
        begin = clock()
        answer = nearest(M, x0, N, b, lo, hi)
        self.solves.append(clock() - begin)
        self.fallbacks += bool(answer.fallback)
        other = self._by_lemke(M, x0, N, b) if first else other
        if other is not None:
            self.pivots += [answer.pivots, other.pivots]
            change = np.linalg.solve(M, N.T @ (other.z - answer.z))
            size = np.abs(answer.motion).max(initial=0.0) or 1.0
            self.difference = max(self.difference, float(np.abs(change).max()) / size)
        return answer

    def _by_lemke(self, M: Any, x0: Any, N: Any, b: Any) -> LemkeOutcome | None:
        """By the bare method, which certifies its answer, too; None if it fails."""
        begin = clock()
        half = solve_triangular(np.linalg.cholesky(M), N.T, lower=True, check_finite=False)
        F, e = half.T @ half, N @ x0 + b
        formed = clock()
        answer = lemke(F, e)
        self.lemke.append(clock() - formed)
        self.forming.append(formed - begin)
        solved = answer.status is Status.SOLVED
        self.lemke_failures += not solved
        return answer if solved else None

    def summary(self) -> dict[str, Any]:
        """As of every walk; times with either solver are what is left without the other."""
        found = super().summary()
        every, lemke, forming = found["running"], sum(self.lemke), sum(self.forming)
        return found | {
            "running": every - lemke - forming,
            "running_lemke": every - sum(self.solves),
            "lemke_solves": len(self.lemke),
            "mean_lemke": lemke / len(self.lemke) if self.lemke else None,
            "mean_forming": forming / len(self.forming) if self.forming else None,
            "median_lemke": median(self.lemke),
            "lemke_failures": self.lemke_failures,
            "pivots": [float(count) / max(len(self.lemke), 1) for count in self.pivots],
            "difference": self.difference,
            "settled": len(
                {event.time for event in self.simulation.events if event.kind == "settled"}
            ),
            "impacts": sum(event.kind == "impact" for event in self.simulation.events),
            "smallest_gap": float(self.simulation.smallest_gap),
            "lemke_times": histogram(self.lemke),
        }
