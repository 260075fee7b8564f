"""Contact solvers on the same problems: ours, Pinocchio's and Siconos'; and MuJoCo's on its own.

Every solver starts cold. Pinocchio and Siconos get the Delassus matrix, whose making is not
timed, and are asked for the accuracy that we certify; how far each answer is from the law is
measured by one function for all. MuJoCo's solver has a softer problem of the same scene.
"""

from __future__ import annotations

import copy
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.models import Coulomb
from holdfast.mujoco._mj import mujoco
from holdfast.mujoco.functions import build_problem
from holdfast.tools.bench import siconos_worker
from holdfast.tools.bench.delassus import Delassus, delassus, fits
from holdfast.tools.bench.scenes import Scene
from holdfast.tools.bench.steps import MissingPeer
from holdfast.tools.bench.timing import Call, Times, interleave

TARGET = 1e-10  # of an answer, relative to the free motion
MOST = 10_000  # iterations of a peer
PUSH = 0.02  # [m/s] of every coordinate, so that the problem is not that of rest
SINK = 20  # steps after which MuJoCo's contacts carry what they have to
OURS, MUJOCO, PINOCCHIO = "holdfast, Coulomb", "MuJoCo, its own problem", "Pinocchio, ADMM"

Answers = dict[str, float]  # residual of each solver's answer


def time_solvers(scene: Scene, seconds: float) -> tuple[Times | None, Answers, list[str]]:
    """Times of a solve, residuals of the answers, and what is left out and why."""
    data = mujoco.MjData(scene.model)
    mujoco.mj_copyData(data, scene.model, scene.data)
    data.qvel += PUSH * np.random.default_rng(0).normal(size=scene.model.nv)
    problem = build_problem(scene.model, data)
    if not fits(problem):
        return None, {}, ["solvers: the scene has limits or joints, which peers do not take"]
    form, answers, notes = delassus(problem), Answers(), []
    calls = {OURS: _ours(problem, form, answers)}
    makers: dict[str, Callable[[Delassus, Answers], Call]] = {
        MUJOCO: lambda form, answers: _mujoco(scene), PINOCCHIO: _pinocchio,
    }  # fmt: skip
    makers |= {f"Siconos, {name}": _siconos(name) for name in ("NSGS", "NSN_AC")}
    for name, make in makers.items():
        try:
            calls[name] = make(form, answers)
        except MissingPeer as missing:
            notes.append(f"{name}: {missing}")
    times = interleave(calls, seconds)
    return times, answers, notes


def _ours(problem: Any, form: Delassus, answers: Answers) -> Call:
    model = Coulomb()
    solution = model.solve(problem)
    r = np.column_stack([solution.normal, solution.tangent]) / form.scale[:, None]
    answers[OURS] = form.residual(r)
    fresh = [problem]

    def prepare() -> None:  # a problem remembers nothing of its solution; be sure of it
        fresh[0] = replace(problem)

    return Call(lambda: model.solve(fresh[0]), prepare)


def _mujoco(scene: Scene) -> Call:
    """MuJoCo's constraint solver alone, cold, where the scene has settled under MuJoCo."""
    model = copy.copy(scene.model)
    data = mujoco.MjData(model)
    mujoco.mj_copyData(data, model, scene.data)
    mujoco.mj_step(model, data, SINK)  # it sees contacts only once they have sunk in
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_WARMSTART)
    mujoco.mj_forward(model, data)
    if data.nefc == 0:
        raise MissingPeer("has no contact in this state")
    return Call(lambda: mujoco.mj_fwdConstraint(model, data))


def _pinocchio(form: Delassus, answers: Answers) -> Call:
    if find_spec("pinocchio") is None:
        raise MissingPeer("not installed (pip install pin)")
    pin: Any = import_module("pinocchio")
    if not hasattr(pin, "ADMMConstraintSolver"):
        raise MissingPeer(f"version {pin.__version__} is too old; 4 is needed")
    model, here = pin.Model(), pin.SE3.Identity()
    joint = model.addJoint(0, pin.JointModelFreeFlyer(), here, "free")
    model.appendBodyToJoint(joint, pin.Inertia.FromSphere(1.0, 1.0), here)
    body = model.createData()
    pin.forwardKinematics(model, body, pin.neutral(model))
    order = np.arange(len(form.q)).reshape(-1, 3)[:, [1, 2, 0]].ravel()  # the normal comes last
    W, q = np.asfortranarray(form.W[np.ix_(order, order)]), form.q[order]
    settings = pin.ADMMSolverSettings()
    settings.absolute_feasibility_tol = settings.absolute_complementarity_tol = TARGET / 10.0
    settings.relative_feasibility_tol = settings.relative_complementarity_tol = 0.0
    settings.max_iterations = MOST
    # the default factors W anew at every step, and estimates its spectrum too well
    settings.admm_update_rule = pin.ADMMUpdateRule.SPECTRAL
    settings.max_delassus_decomposition_updates, settings.lanczos_size = 100, 20
    given: list[Any] = []

    def prepare() -> None:
        models, datas = pin.StdVec_ConstraintModel(), pin.StdVec_ConstraintData()
        for mu in form.mu.tolist():
            contact = pin.PointContactConstraintModel(model, 1, pin.SE3.Identity())
            contact.setFriction(mu)
            contact.setCompliance(np.zeros(3))
            models.append(pin.ConstraintModel(contact))
            datas.append(models[-1].createData())
            models[-1].calc(model, body, datas[-1])
        given[:] = [models, datas]

    def solve() -> Any:
        result, solver = pin.ADMMSolverResult(), pin.ADMMConstraintSolver(len(q))
        solver.solve(pin.DelassusOperatorDense(W), q, *given, settings, result)
        return result

    prepare()
    r = np.empty(len(q))
    r[order] = solve().retrieveConstraintImpulses()
    answers[PINOCCHIO] = form.residual(r)
    return Call(solve, prepare)


@cache
def siconos_python() -> str:
    """An interpreter that can import Siconos; empty if there is none."""
    test = "import siconos.numerics, scipy.sparse"
    for python in (os.environ.get("SICONOS_PYTHON", ""), sys.executable, "/usr/bin/python3"):
        if python and Path(python).exists():
            done = subprocess.run(
                [python, "-c", test], capture_output=True, env=plain_environment()
            )
            if done.returncode == 0:
                return python
    return ""


def plain_environment() -> dict[str, str]:
    """The environment without this interpreter's paths, with one thread."""
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return kept | dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


def _siconos(method: str) -> Callable[[Delassus, Answers], Call]:
    """A method of Siconos, in a process of the interpreter that has it, which times itself."""

    def make(form: Delassus, answers: Answers) -> Call:
        if not siconos_python():
            raise MissingPeer("no interpreter imports siconos; name one in SICONOS_PYTHON")
        worker = subprocess.Popen(
            [siconos_python(), siconos_worker.__file__], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=plain_environment(),
        )  # fmt: skip
        tolerance = TARGET / (1.0 + float(np.linalg.norm(form.q)))  # it divides its error by that
        siconos_worker.send(worker.stdin, {
            "W": form.W, "q": form.q, "mu": form.mu, "method": method, "tolerance": tolerance,
            "iterations": MOST,
        })  # fmt: skip

        def ask() -> dict[str, Any]:
            assert worker.stdin is not None
            worker.stdin.write(b"\n")
            worker.stdin.flush()
            return siconos_worker.receive(worker.stdout)

        try:
            answers[f"Siconos, {method}"] = form.residual(ask()["r"])
        except (EOFError, OSError) as error:
            worker.kill()
            raise MissingPeer("crashed") from error
        return Call(lambda: float(ask()["seconds"]), inner=True)

    return make
