"""Solvers of contact with Coulomb friction behind one call: ours, our baselines, the field's.

Every solver starts cold and returns impulses and times. Solvers in Python run in forked children
under a time limit, Siconos in a process of its own with the interpreter that has it.
"""

from __future__ import annotations

import io
import math
import os
import select
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import holdfast as hf
from coulomb_residual import Array, Impulses
from delassus import Delassus, unfit
from holdfast.tools.bench.solvers import plain_environment, siconos_python
from isolation import Limits, run_isolated

TARGET = 5e-11  # asked of peers, relative to the size of the motion: half of what certifies
LEMKE_CONTACTS = 60  # the pyramid's dense problem has six variables per contact
ROUNDS = 15  # most samples of a solver on a problem
SPARSE = {"NSGS": 50, "NSN_AC": 50, "ADMM": 150}  # contacts from which sparse storage is faster
ITERATIONS = {"NSGS": 20_000, "NSN_AC": 1000, "ADMM": 10_000}
PINOCCHIO_ITERATIONS = 10_000


@dataclass(frozen=True)
class Case:
    """A problem, and its matrix form where it has one."""

    problem: hf.ContactProblem
    form: Delassus | None


@dataclass(frozen=True)
class Answer:
    """Impulses, if any, with the seconds of each solve and of what comes before it once."""

    impulses: Impulses | None
    seconds: list[float] = field(default_factory=list)
    build: float = 0.0
    note: str = ""


@dataclass(frozen=True)
class Solver:
    """A solver.

    Attributes:
        name: in tables.
        run: solves a case within limits.
        unfit: why it cannot take a problem; empty if it can.
        missing: why it is not there; empty if it is.
        wants_W: whether the Delassus matrix is formed for it.
        peer: whether it counts for "the fastest peer".
    """

    name: str
    run: Callable[[Case, Limits], Answer]
    unfit: Callable[[hf.ContactProblem], str] = lambda problem: ""
    missing: Callable[[], str] = lambda: ""
    wants_W: bool = False
    peer: bool = False


def sample(call: Callable[[Any], Any], fresh: Callable[[], Any], seconds: float = 0.1) -> Any:
    """Value of a call and the times of several, each on fresh input, whose making is not timed.

    The first one, which touches memory, does not count, unless it takes very long.
    """
    times: list[float] = []
    while True:
        given = fresh()
        start = time.perf_counter()
        value = call(given)
        times.append(time.perf_counter() - start)
        if times[0] > 10 * seconds or sum(times[1:]) > seconds or len(times) > ROUNDS:
            return value, times[1:] or times


# --- holdfast ---------------------------------------------------------------------------------


def _ours(model: Callable[[], Any], case: Case, limits: Limits) -> Answer:
    def call(problem: hf.ContactProblem) -> tuple[Any, str]:
        try:
            return model().solve(problem), ""
        except hf.SolveError as error:
            return error.result, f"{type(error).__name__}: {error}"

    def work(_: Any) -> Answer:
        (solution, note), times = sample(call, lambda: replace(case.problem))
        known = hasattr(solution, "normal")
        return Answer(Impulses.of(solution) if known else None, times, note=note)

    return _isolated(work, limits)


def _isolated(work: Callable[[Any], Answer], limits: Limits) -> Answer:
    (outcome,) = run_isolated(work, [None], limits)
    if outcome.value is not None:
        return outcome.value
    late = outcome.failure.startswith("more than")
    return Answer(None, [limits.seconds] if late else [], note=outcome.failure)


def _pyramid_unfit(problem: hf.ContactProblem) -> str:
    if problem.mu is not None and problem.mu.ndim == 2:
        return "elliptic cones"
    if len(problem.R):
        return "torsion or rolling"
    return "too many contacts" if problem.n > LEMKE_CONTACTS else ""


def _touching_unfit(problem: hf.ContactProblem) -> str:
    if problem.c_N.any() or problem.c_U.any():
        return "open gaps"
    return _pyramid_unfit(problem)


def holdfast(name: str, model: Callable[[], Any], **more: Any) -> Solver:
    """A model of holdfast as a solver."""
    return Solver(name, lambda case, limits: _ours(model, case, limits), **more)


# --- Siconos ----------------------------------------------------------------------------------


class Siconos:
    """A process that solves with Siconos; a new one after each mishap."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None

    def ask(self, limits: Limits, **arrays: Any) -> dict[str, Any]:
        """The answer to a question; raises where there is none in time."""
        if self.process is None:
            worker = str(Path(__file__).with_name("siconos_worker.py"))
            self.process = subprocess.Popen(
                [siconos_python(), worker],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=plain_environment(),
                bufsize=0,
            )
        buffer = io.BytesIO()
        np.savez(buffer, **arrays)
        data = buffer.getvalue()
        try:
            self._write(len(data).to_bytes(8, "little") + data)
            end = time.monotonic() + limits.seconds
            size = int.from_bytes(self._read(8, end), "little")
            with np.load(io.BytesIO(self._read(size, end))) as answer:
                return dict(answer)
        except (OSError, TimeoutError, EOFError):
            self.close()
            raise

    def _write(self, data: bytes) -> None:
        pipe = self.process.stdin.fileno()
        view = memoryview(data)
        while view:
            view = view[os.write(pipe, view) :]

    def _read(self, size: int, end: float) -> bytes:
        pipe, data = self.process.stdout.fileno(), b""
        while len(data) < size:
            left = end - time.monotonic()
            if left <= 0 or not select.select([pipe], [], [], left)[0]:
                raise TimeoutError("too long")
            part = os.read(pipe, size - len(data))
            if not part:
                raise EOFError("crashed")
            data += part
        return data

    def close(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


_SICONOS = Siconos()


def _siconos(method: str, case: Case, limits: Limits) -> Answer:
    form = case.form
    asked = TARGET / (1.0 + np.linalg.norm(form.q))  # it divides its error by that
    try:
        found = _SICONOS.ask(
            limits,
            method=method,
            W=form.W,
            q=form.q,
            mu=form.mu,
            sparse=len(form.mu) >= SPARSE[method],
            tolerance=asked,
            iterations=ITERATIONS[method],
            seconds=0.1,
            rounds=ROUNDS,
        )
    except TimeoutError:
        return Answer(None, [limits.seconds], note=f"more than {limits.seconds:g} s")
    except (OSError, EOFError):
        return Answer(None, note="crashed")
    times = found["seconds"].tolist()
    note = "" if int(found["info"]) == 0 else f"not converged, info {int(found['info'])}"
    return Answer(form.impulses(found["r"]), times[1:] or times, float(found["build"]), note)


def siconos(method: str) -> Solver:
    """A method of Siconos as a solver."""
    return Solver(
        f"Siconos {method}",
        lambda case, limits: _siconos(method, case, limits),
        unfit,
        lambda: "" if siconos_python() else "no interpreter imports siconos; see SICONOS_PYTHON",
        wants_W=True,
        peer=True,
    )


# --- Pinocchio --------------------------------------------------------------------------------


@cache
def _body() -> Any:
    """A free body, to which contacts may belong: the solver looks at their cones alone."""
    import pinocchio as pin

    model, here = pin.Model(), pin.SE3.Identity()
    joint = model.addJoint(0, pin.JointModelFreeFlyer(), here, "free")
    model.appendBodyToJoint(joint, pin.Inertia.FromSphere(1.0, 1.0), here)
    data = model.createData()
    pin.forwardKinematics(model, data, pin.neutral(model))
    return model, data


def _pinocchio(tuned: bool, case: Case, limits: Limits) -> Answer:
    import pinocchio as pin

    form, (model, data) = case.form, _body()
    order = np.arange(len(form.q)).reshape(-1, 3)[:, [1, 2, 0]].ravel()  # the normal comes last

    def settings() -> Any:
        chosen = pin.ADMMSolverSettings()
        chosen.absolute_feasibility_tol = chosen.absolute_complementarity_tol = TARGET / 5.0
        chosen.relative_feasibility_tol = chosen.relative_complementarity_tol = 0.0
        chosen.max_iterations = PINOCCHIO_ITERATIONS
        if tuned:  # the default factors W anew at every step, and estimates its spectrum too well
            chosen.admm_update_rule = pin.ADMMUpdateRule.SPECTRAL
            chosen.max_delassus_decomposition_updates, chosen.lanczos_size = 100, 20
        return chosen

    def fresh() -> tuple[Any, ...]:
        models, datas = pin.StdVec_ConstraintModel(), pin.StdVec_ConstraintData()
        for mu in form.mu.tolist():
            contact = pin.PointContactConstraintModel(model, 1, pin.SE3.Identity())
            contact.setFriction(mu)
            contact.setCompliance(np.zeros(3))
            each = pin.ConstraintModel(contact)
            models.append(each)
            datas.append(each.createData())
            each.calc(model, data, datas[-1])
        return models, datas, np.asfortranarray(form.W[np.ix_(order, order)]), form.q[order]

    def call(given: tuple[Any, ...]) -> tuple[Array, bool]:
        models, datas, W, q = given
        result, solver = pin.ADMMSolverResult(), pin.ADMMConstraintSolver(len(q))
        operator = pin.DelassusOperatorDense(W)
        done = solver.solve(operator, q, models, datas, settings(), result)
        return result.retrieveConstraintImpulses(), done

    def work(_: Any) -> Answer:
        (x, done), times = sample(call, fresh)
        r = np.empty(len(x))
        r[order] = x
        return Answer(form.impulses(r), times, note="" if done else "not converged")

    return _isolated(work, limits)


def pinocchio(name: str, tuned: bool) -> Solver:
    """Pinocchio's ADMM as a solver."""
    return Solver(
        name,
        lambda case, limits: _pinocchio(tuned, case, limits),
        unfit,
        lambda: "" if find_spec("pinocchio") else "pinocchio is not installed (pip install pin)",
        wants_W=True,
        peer=True,
    )


OURS = holdfast(
    "holdfast",
    lambda: hf.Coulomb(),
    missing=lambda: "" if hasattr(hf, "Coulomb") else "this holdfast has no Coulomb",
)
SOLVERS = [
    OURS,
    siconos("NSGS"),
    siconos("NSN_AC"),
    siconos("ADMM"),
    pinocchio("Pinocchio ADMM", tuned=True),
    pinocchio("Pinocchio ADMM, defaults", tuned=False),
    holdfast("Stewart-Trinkle", lambda: hf.StewartTrinkle(), unfit=_pyramid_unfit),
    holdfast("Anitescu-Potra", lambda: hf.AnitescuPotra(), unfit=_touching_unfit),
    holdfast("Drumwright-Shell", lambda: hf.DrumwrightShell(cone="true"), unfit=_pyramid_unfit),
]


def median(times: list[float]) -> float:
    """Of a list that may be empty."""
    return float(np.median(times)) if times else math.nan
