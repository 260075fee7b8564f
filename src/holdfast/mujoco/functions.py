"""`step` and `forward`, called like `mujoco.mj_step` and `mujoco.mj_forward`; `build_problem`."""

from __future__ import annotations

import threading
from typing import Any
from weakref import WeakKeyDictionary

from holdfast.contact.laws import Law
from holdfast.contact.problem import ContactProblem
from holdfast.errors import InputError
from holdfast.models import ContactModel
from holdfast.mujoco._mj import mujoco
from holdfast.mujoco.stepper import Stepper


class _Kept(threading.local):
    """Steppers that `step` keeps, by model and contact model; each thread has its own."""

    def __init__(self) -> None:
        self.steppers: WeakKeyDictionary[Any, dict[Any, Stepper]] = WeakKeyDictionary()


_kept = _Kept()


def step(
    model: Any, data: Any, nstep: int = 1, *, contact: ContactModel | Law | None = None
) -> None:
    """Advance `data` as `mujoco.mj_step(model, data, nstep)` does, with exact contact.

    One `Stepper` per thread, model and contact model is kept for as long as the model exists.
    Create a `Stepper` yourself to read its contacts and its solution, or to set laws per pair.

    Example:
        >>> import mujoco, holdfast as hf
        >>> model = mujoco.MjModel.from_xml_string('''<mujoco><worldbody>
        ...   <geom type="plane" size="1 1 1"/>
        ...   <body pos="0 0 0.3"><freejoint/><geom type="sphere" size="0.1"/></body>
        ... </worldbody></mujoco>''')
        >>> data = mujoco.MjData(model)
        >>> for _ in range(500):
        ...     hf.step(model, data)  # was: mujoco.mj_step(model, data)
        >>> float(round(data.qpos[2], 9))  # on the floor, not in it
        0.1
    """
    _with_kept(model, contact, lambda stepper: stepper.step(data, nstep))


def forward(model: Any, data: Any, *, contact: ContactModel | Law | None = None) -> None:
    """Compute contact forces and sensors at the present state, as `mujoco.mj_forward` does.

    Bodies at rest touch at distance zero, where MuJoCo lists no contact: after `mj_forward` their
    contact forces are gone. This function computes them by the law `contact`. No time passes.
    """
    _with_kept(model, contact, lambda stepper: stepper.forward(data))


def build_problem(model: Any, data: Any) -> ContactProblem:
    """Return the contact problem of the next step, without solving it.

    Runs MuJoCo's pipeline up to the smooth acceleration, as `mujoco.mj_forward` would; the state
    in `data` stays as it is. All contacts and limits that the step may reach are in the problem,
    including those that turn out not to matter. Equality constraints and limits are rigid.

    Args:
        model: `mujoco.MjModel`; not changed.
        data: `mujoco.MjData`.

    Example:
        >>> import mujoco, holdfast as hf
        >>> model = mujoco.MjModel.from_xml_string('''<mujoco><worldbody>
        ...   <geom type="plane" size="1 1 1"/>
        ...   <body pos="0 0 0.1"><freejoint/><geom type="box" size="0.1 0.1 0.1"/></body>
        ... </worldbody></mujoco>''')
        >>> problem = hf.build_problem(model, mujoco.MjData(model))
        >>> problem
        ContactProblem(m=6, n=4, j=0, h=0.002)
        >>> hf.NoSlip().solve(problem).is_exact()
        True
    """
    return Stepper(model, equalities="rigid", limits="rigid").constraints(data).problem()


def _with_kept(model: Any, contact: Any, action: Any) -> None:
    if not isinstance(model, mujoco.MjModel):
        raise InputError("model", f"is {type(model).__name__}; expected mujoco.MjModel")
    steppers = _kept.steppers.setdefault(model, {})
    try:
        hash(contact)
    except TypeError as error:  # it holds arrays
        raise InputError("contact", "is not hashable; create a Stepper with it") from error
    stepper = steppers.pop(contact, None)  # a callback that calls this gets another one
    if stepper is None:
        stepper = Stepper(model, contact)
    stepper.private.user = model
    try:
        action(stepper)
    finally:
        stepper.private.user = None  # or the stepper that is kept would keep its model alive
        steppers[contact] = stepper
