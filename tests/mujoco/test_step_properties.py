"""Laws of whole steps, on random scenes: what holds whatever the scene is.

A scene has a floor, perhaps a wall, and a few bodies of random shape, place, velocity, friction
and condim; one of them may carry a second one on a hinge. Laws are checked on mjData and on the
rows of `build_problem`; none of the checks calls the contact solve.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import mujoco
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import holdfast as hf
from reference import on_cone

pytestmark = pytest.mark.jit  # thousands of steps: without compilation they take too long
FEW = settings(max_examples=min(settings.default.max_examples, 1000) // 3)
SHAPES = {
    "sphere": "{0:.3f}", "box": "{0:.3f} {1:.3f} {2:.3f}", "capsule": "{0:.3f} {1:.3f}",
    "ellipsoid": "{0:.3f} {1:.3f} {2:.3f}",
}  # fmt: skip
CONES = {"pyramidal": "", "elliptic": 'cone="elliptic"'}


@dataclass(frozen=True)
class Case:
    """A scene and a state of it."""

    xml: str
    seed: int
    speed: float

    def load(self) -> tuple[mujoco.MjModel, mujoco.MjData]:
        model = mujoco.MjModel.from_xml_string(self.xml)
        data = mujoco.MjData(model)
        data.qvel[:] = self.speed * np.random.default_rng(self.seed).normal(size=model.nv)
        return model, data


@st.composite
def scenes(draw: st.DrawFn, most: int = 4, shapes: tuple[str, ...] = tuple(SHAPES)) -> Case:
    """Bodies side by side, a little above the floor or touching it."""
    number = st.floats(0.05, 0.15)
    bodies = ""
    for k in range(draw(st.integers(1, most))):
        shape = draw(st.sampled_from(shapes))
        size = SHAPES[shape].format(*(draw(number) for _ in range(3)))
        mu, condim = draw(st.sampled_from((0.0, 0.1, 0.5, 1.0))), draw(st.sampled_from((1, 3, 4)))
        height, yaw = draw(st.sampled_from((0.35, 0.4))), draw(st.integers(0, 90))
        tilt = draw(st.sampled_from((0, 0, 30)))
        hinged = ""
        if draw(st.booleans()):
            hinged = ('<body pos="0 0 .2"><joint axis="0 1 0" range="-60 60" damping=".01"/>'
                      '<geom type="sphere" size=".04"/></body>')  # fmt: skip
        bodies += (
            f'<body pos="{0.35 * (k % 2):.2f} {0.35 * (k // 2):.2f} {height}" '
            f'euler="{tilt} 0 {yaw}"><freejoint/><geom type="{shape}" size="{size}" '
            f'friction="{mu} .005 .0001" condim="{condim}"/>{hinged}</body>'
        )
    wall = '<geom type="box" size=".05 2 1" pos="-.3 0 1"/>' if draw(st.booleans()) else ""
    cone = draw(st.sampled_from(tuple(CONES.values())))
    xml = (f'<mujoco><option timestep="0.002" {cone}/><worldbody><geom type="plane" size="5 5 1" '
           f'friction=".3"/>{wall}{bodies}</worldbody></mujoco>')  # fmt: skip
    return Case(xml, draw(st.integers(0, 1000)), draw(st.sampled_from((0.0, 0.3, 2.0))))


def settle(stepper: hf.Stepper, data: mujoco.MjData, count: int) -> None:
    """Let bodies fall until they touch and move on."""
    stepper.step(data, count)


def kinetic(M: np.ndarray, v: np.ndarray) -> float:
    return 0.5 * float(v @ M @ v)


@given(scenes(), st.integers(60, 200))
@FEW
def test_contact_adds_no_energy_and_balances_momentum(case: Case, count: int) -> None:
    """Contact impulses make the free motion slower, and are what mjData says they are."""
    model, data = case.load()
    stepper = hf.Stepper(model)
    settle(stepper, data, count)
    for _ in range(10):
        before = data.qvel.copy()
        stepper.step(data)
        solution = stepper.solution
        assert solution is not None
        p = solution.problem
        free = p.v + p.h * np.linalg.solve(p.M, p.f)
        most = max(kinetic(p.M, free), kinetic(p.M, p.v), 1e-9)
        assert kinetic(p.M, data.qvel) <= kinetic(p.M, free) + 1e-9 * most
        balance = p.M @ (solution.motion - free) / p.h - data.qfrc_constraint
        scale = max(np.abs(p.M @ (data.qvel - before)).max() / p.h, np.abs(p.f).max(), 1e-6)
        assert np.abs(balance).max() <= 1e-8 * scale


@given(scenes(), st.integers(60, 200))
@FEW
def test_surfaces_do_not_sink_in(case: Case, count: int) -> None:
    """By MuJoCo's own collision, on data that the stepper never sees."""
    model, data = case.load()
    stepper, seen = hf.Stepper(model), mujoco.MjData(model)
    for _ in range(count):
        stepper.step(data)
        seen.qpos[:] = data.qpos
        mujoco.mj_kinematics(model, seen)
        mujoco.mj_collision(model, seen)
        assert seen.contact.dist.min(initial=0.0) > -5e-4 * model.stat.meansize


@given(scenes(), st.integers(60, 200))
@FEW
def test_forces_push_and_stay_in_their_cones(case: Case, count: int) -> None:
    model, data = case.load()
    stepper = hf.Stepper(model)
    settle(stepper, data, count)
    for _ in range(10):
        stepper.step(data)
        force, forces = np.zeros(6), []
        for i in range(data.ncon):
            mujoco.mj_contactForce(model, data, i, force)
            forces.append(force.copy())
        largest = max((f[0] for f in forces), default=0.0)
        for i, f in enumerate(forces):
            dim, mu = int(data.contact.dim[i]), data.contact.friction[i]
            assert f[0] >= -1e-9 * largest
            tangents = np.where(mu[: dim - 1] > 1e-5, mu[: dim - 1], np.inf)
            inside = np.linalg.norm(f[1:dim] / tangents)
            assert inside <= f[0] + 1e-8 * largest


@given(scenes(), st.integers(20, 150))
@FEW
def test_runs_are_the_same_bits(case: Case, count: int) -> None:
    """Twice by steppers of their own, once in calls of several steps."""
    model, data = case.load()
    others = [copy.copy(data), copy.copy(data)]
    hf.Stepper(model).step(data, count)
    one = hf.Stepper(model)
    for _ in range(count):
        one.step(others[0])
    for part in (count // 2, count - count // 2):
        hf.step(model, others[1], part)
    for other in others:
        assert np.array_equal(data.qpos, other.qpos) and np.array_equal(data.qvel, other.qvel)
        assert np.array_equal(data.qacc, other.qacc) and data.time == other.time


@given(scenes(), st.integers(60, 150), st.sampled_from(("force", "time step", "memory")))
@FEW
def test_a_step_that_fails_changes_nothing(case: Case, count: int, how: str) -> None:
    """NaN among the forces, no time step, and too little memory for the contacts."""
    xml = case.xml
    if how == "memory":
        xml = xml.replace("<worldbody>", '<size memory="3K"/><worldbody>', 1)
    model, data = Case(xml, case.seed, case.speed).load()
    stepper = hf.Stepper(model)
    kind = mujoco.mjtState.mjSTATE_INTEGRATION
    state = np.zeros((2, mujoco.mj_stateSize(model, kind)))
    failed = False
    for k in range(count):
        if k == count - 1 and how == "force":
            data.qfrc_applied[0] = np.nan
        elif k == count - 1 and how == "time step":
            model.opt.timestep = 0.0
        mujoco.mj_getState(model, data, state[0], kind)
        try:
            stepper.step(data)
        except (hf.InputError, hf.UnsupportedError, mujoco.FatalError):
            failed = True
            break
    mujoco.mj_getState(model, data, state[1], kind)
    assert np.array_equal(state[0], state[1], equal_nan=True) == failed
    assert failed or how == "memory"  # which may suffice


def projected_motion(p: hf.ContactProblem, steps: int = 40_000) -> np.ndarray | None:
    """The motion of Coulomb's law by the obvious iteration; None if that takes too long."""
    rows = np.stack([p.N, p.S, p.T], axis=1)
    G, c = rows.reshape(-1, len(p.v)), np.zeros((len(rows), 3))
    c[:, 0] = p.c_N
    free = p.v + p.h * np.linalg.solve(p.M, p.f)
    W, u0, mu = G @ np.linalg.solve(p.M, G.T), G @ free - c.ravel(), np.asarray(p.mu)
    r, rho = np.zeros(len(G)), 0.9 / np.linalg.eigvalsh(W)[-1]
    for _ in range(steps):
        u = (W @ r + u0).reshape(-1, 3)
        x = r.reshape(-1, 3) - rho * u
        x[:, 0] -= rho * mu * np.linalg.norm(u[:, 1:], axis=1)
        new = np.array([on_cone(y, m) for y, m in zip(x, mu, strict=True)]).ravel()
        if np.abs(new - r).max() <= 1e-13 * max(1e-3, np.abs(r).max()):
            return free + np.linalg.solve(p.M, G.T @ new)
        r = new
    return None


@given(scenes(most=2, shapes=("sphere", "capsule", "ellipsoid")), st.integers(100, 200))
@settings(max_examples=10)
def test_a_step_is_what_its_problem_asks_for(case: Case, count: int) -> None:
    """`build_problem`, solved by another method, gives the velocity of the step."""
    model, data = Case(case.xml.replace('condim="4"', 'condim="3"'), case.seed, 0.3).load()
    assume("hinge" not in case.xml and "range" not in case.xml)
    stepper = hf.Stepper(model)
    settle(stepper, data, count)
    problem = hf.build_problem(model, data)
    assume(0 < len(problem.N) <= 6 and len(problem.R) == 0 and np.ndim(problem.mu) == 1)
    redone = stepper.resolved_steps
    stepper.step(data)
    assume(stepper.resolved_steps == redone)
    expected = projected_motion(problem)
    assume(expected is not None)
    assert expected is not None
    scale = max(np.abs(expected).max(), 9.81 * problem.h)
    assert stepper.solution is not None
    assert np.abs(stepper.solution.motion - expected).max() <= 1e-6 * scale
