"""The grasp in reduced coordinates: MuJoCo with several settings, and ours, in one interface."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from holdfast.models import ContactModel
from holdfast.mujoco._mj import mujoco
from holdfast.mujoco.stepper import Stepper
from holdfast.tools.compare import RECIPES
from holdfast.tools.scenes import row_of_boxes

FRICTION = "friction"  # besides options: the coefficient of all geoms
SETTINGS: dict[str, dict[str, Any]] = {
    "MuJoCo, default": RECIPES["MuJoCo"],
    "MuJoCo, default, friction 100": RECIPES["MuJoCo"] | {FRICTION: 100.0},
    "MuJoCo, elliptic, impratio 10, noslip 10": RECIPES["+ noslip 10"],
    "MuJoCo, the same, noslip converged": RECIPES["+ noslip 100"] | {"noslip_iterations": 1000},
}


def _scene(boxes: int, options: Mapping[str, Any]) -> tuple[Any, Any]:
    model = mujoco.MjModel.from_xml_string(row_of_boxes(boxes, **options))
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    return model, data


class _Row:
    """What both share: where the boxes are, and how deep they overlap."""

    def __init__(self, boxes: int, options: Mapping[str, Any]) -> None:
        self.model, self.data = _scene(boxes, options)
        self.scratch = mujoco.MjData(self.model)
        joints = [self.model.body(f"box{i}").jntadr[0] for i in range(boxes)]
        first = self.model.jnt_qposadr[joints]
        self.places = first[:, None] + np.arange(3)
        self.start = self.data.qpos[self.places].copy()

    def moved(self) -> np.ndarray:
        """(boxes,) distance of each box from where it was [m]."""
        return np.linalg.norm(self.data.qpos[self.places] - self.start, axis=1)

    def state(self) -> list[float]:
        """Positions `qpos`."""
        return self.data.qpos.tolist()

    def penetration(self) -> float:
        """Deepest overlap at present [m]."""
        self.scratch.qpos[:] = self.data.qpos
        mujoco.mj_fwdPosition(self.model, self.scratch)
        return -float(self.scratch.contact.dist.min(initial=0.0))

    def step(self) -> None:
        """One step."""
        raise NotImplementedError

    def solve(self) -> None:
        """The contact solve of the present state, once more."""
        raise NotImplementedError

    def timed_step(self) -> tuple[float, float]:
        """One step; seconds of the contact solve from there, and of the step."""
        begin = time.thread_time()
        self.step()
        seconds = time.thread_time() - begin
        return self._seconds_of_solve(), seconds

    def _seconds_of_solve(self) -> float:
        begin = time.thread_time()
        self.solve()
        return time.thread_time() - begin


class MujocoRow(_Row):
    """Stepped by MuJoCo."""

    def __init__(self, setting: str, boxes: int, options: Mapping[str, Any]) -> None:
        super().__init__(boxes, options)
        for name, value in SETTINGS[setting].items():
            if name == FRICTION:
                self.model.geom_friction[:, 0] = value
            else:
                setattr(self.model.opt, name, value)
        self.before = np.zeros(self.model.nv)

    def step(self) -> None:
        """One step."""
        self.before = self.data.qvel.copy()
        mujoco.mj_step(self.model, self.data)

    def _seconds_of_solve(self) -> float:
        """All forces of the new state are computed on the scratch data; constraints are timed."""
        data = self.scratch
        mujoco.mj_copyState(self.model, self.data, data, mujoco.mjtState.mjSTATE_INTEGRATION)
        mujoco.mj_forward(self.model, data)
        return super()._seconds_of_solve()

    def solve(self) -> None:
        """MuJoCo's constraint solver."""
        mujoco.mj_fwdConstraint(self.model, self.scratch)

    def pivots(self) -> None:
        """It does not pivot."""
        return None

    def variables(self) -> int:
        """Constraint rows."""
        return int(self.data.nefc)

    def complementarity(self) -> float:
        """Of the last step: the smaller of relative impulse and separation speed, as for ours."""
        model, data = self.model, self.data
        M = np.zeros((model.nv, model.nv))
        mujoco.mj_fullM(model, data, M)
        L, h = np.linalg.cholesky(M), model.opt.timestep
        J = data.efc_J.reshape(data.nefc, model.nv)
        pyramidal = model.opt.cone == mujoco.mjtCone.mjCONE_PYRAMIDAL
        force, worst = np.zeros(6), 0.0
        free = self.before + h * data.qacc_smooth
        scale = max(float(np.linalg.norm(L.T @ x)) for x in (self.before, free, data.qvel)) or 1.0
        for i in range(data.ncon):
            first = data.contact.efc_address[i]
            if first < 0:
                continue
            row = (J[first] + J[first + 1]) / 2 if pyramidal else J[first]
            length = float(np.linalg.norm(np.linalg.solve(L, row))) or 1.0
            mujoco.mj_contactForce(model, data, i, force)
            impulse, speed = h * force[0] * length / scale, abs(row @ data.qvel) / length / scale
            worst = max(worst, min(impulse, float(speed)))
        return worst


class HoldfastRow(_Row):
    """Stepped by `Stepper`."""

    def __init__(self, contact: ContactModel, boxes: int, options: Mapping[str, Any]) -> None:
        super().__init__(boxes, options)
        self.stepper = Stepper(self.model, contact, warn=False)

    def step(self) -> None:
        """One step."""
        self.stepper.step(self.data)

    def timed_step(self) -> tuple[float, float]:
        """One step, stage by stage; seconds of its contact solve, and of the step."""
        begin = time.thread_time()
        self.stepper.smooth(self.data)
        solve = time.thread_time()
        self.solve()
        seconds = time.thread_time() - solve
        self.stepper.finish(self.data)
        return seconds, time.thread_time() - begin

    def solve(self) -> None:
        """From MuJoCo's rows to forces, as a step does it."""
        self.stepper.solve(self.data)

    def pivots(self) -> int:
        """Of the last step."""
        assert self.stepper.solution is not None
        return self.stepper.solution.pivots

    def variables(self) -> int:
        """Rows of contacts: normals and tangents."""
        assert self.stepper.solution is not None
        return 3 * self.stepper.solution.problem.n

    def complementarity(self) -> float:
        """Of the last step."""
        assert self.stepper.solution is not None
        return self.stepper.solution.complementarity()
