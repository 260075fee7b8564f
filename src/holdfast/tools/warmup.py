"""All kernels compiled at once, so that nobody waits for them later."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from holdfast import _jit, lcp
from holdfast.contact.problem import ContactProblem
from holdfast.errors import HoldfastError
from holdfast.lcp.inertia import InertiaFactor

KERNELS = 440  # that are compiled on the way, about: what a progress bar counts

_SCENE = """<mujoco><worldbody><geom type="plane" size="1 1 1"/>
  <body pos="0 0 0.1"><freejoint/><geom type="box" size="0.1 0.1 0.1"/></body>
  <body pos="1 0 0.5"><joint name="hinge" limited="true" range="-10 10" frictionloss="0.1"/>
    <geom type="capsule" size="0.05 0.2"/></body></worldbody>
  <equality><joint joint1="hinge" polycoef="0 0 0 0 0" active="false"/></equality></mujoco>"""


def warm_up(progress: Callable[[float], None] = lambda part: None) -> int:
    """Compile all kernels that are not cached yet.

    Args:
        progress: is told the part that is done.

    Returns:
        How many kernels were compiled, those within others included.
    """
    from numba.core.event import Listener, register, unregister

    class Count(Listener):
        done = 0

        def on_start(self, event: Any) -> None:
            pass

        def on_end(self, event: Any) -> None:
            self.done += 1
            progress(min(0.99, self.done / KERNELS))

    count = Count()
    register("numba:compile", count)
    try:
        for task in (_steps, _models, _complementarity, _events):
            task()
    finally:
        unregister("numba:compile", count)
    progress(1.0)
    return count.done


def not_compiled() -> list[str]:
    """Names of kernels that Python or C calls and that are not compiled in this process."""
    return sorted(
        f"{function.__module__}.{function.__name__}"
        for made in _jit.ENTRIES
        for function in [made.kernel if isinstance(made, _jit.CEntry) else made.py_func]
        if not (made.is_compiled if isinstance(made, _jit.CEntry) else made.signatures)
    )


def _steps() -> None:
    from holdfast.mujoco import Stepper
    from holdfast.mujoco._mj import CALLBACKS, mujoco
    from holdfast.mujoco.private_model import PrivateModel

    model = mujoco.MjModel.from_xml_string(_SCENE)
    data = mujoco.MjData(model)
    stepper = Stepper(model, warn=False)
    stepper.step(data, 2)
    _ = stepper.contact_count
    PrivateModel(model).narrow_margins(data)
    for name in CALLBACKS:  # steps with callbacks are taken in parts; not with the user's own
        if getattr(mujoco, f"get_mjcb_{name}")() is not None:
            return
    mujoco.set_mjcb_control(lambda _model, _data: None)
    try:
        Stepper(model, warn=False).step(data)
    finally:
        mujoco.set_mjcb_control(None)


def _problem() -> ContactProblem:
    """A point of 1 kg on a floor, pushed."""
    return ContactProblem(M=np.eye(3), v=[1.0, 0.0, -1.0], N=[[0.0, 0.0, 1.0]],
                          S=[[1.0, 0.0, 0.0]], T=[[0.0, 1.0, 0.0]], mu=[0.5], h=0.01)  # fmt: skip


def _models() -> None:
    from holdfast import models

    problem = _problem()
    for model in (models.Coulomb(), models.NoSlip(), models.NoSlip(grip="all"),
                  models.Viscous(0.1), models.StewartTrinkle()):  # fmt: skip
        solution = model.solve(problem)
        _quietly(lambda solution=solution: solution.is_exact())


def _complementarity() -> None:
    A, b = np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([-1.0, -1.0])
    for method in ("lemke", "ppm"):
        _quietly(lambda method=method: lcp.solve(A, b, method=method))
    lcp.find_indices(np.eye(3), np.eye(3)[:2])
    many = np.random.default_rng(0).standard_normal((2000, 6))  # so many that not all are priced
    many[:, 0] = 2.0 + np.abs(many[:, 0])
    _quietly(lambda: lcp.solve_factored(many, np.eye(6), np.array([-1.0, 0, 0, 0, 0, 0])))
    InertiaFactor(np.eye(2)[None]).solve(np.ones(2))


def _events() -> None:
    from holdfast.events import EventDriven
    from holdfast.models import NoSlip, Viscous
    from holdfast.mujoco._mj import mujoco

    model = mujoco.MjModel.from_xml_string(_SCENE)
    for contact in (NoSlip(), Viscous(0.1)):
        for integrator in ("rk4", "symplectic_euler"):
            data = mujoco.MjData(model)
            EventDriven(model, contact, integrator=integrator).step(data, 3)
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    simulation = EventDriven(model, integrator="symplectic_euler")
    simulation.step(mujoco.MjData(model))


def _quietly(task: Callable[[], object]) -> None:
    """Do something for the kernels that it needs; what it finds does not matter."""
    with suppress(HoldfastError):
        task()
