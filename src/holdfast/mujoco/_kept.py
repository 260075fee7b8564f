"""`step`, and the steppers that it keeps."""

from __future__ import annotations

import threading
from typing import Any
from weakref import WeakKeyDictionary

from holdfast.errors import InputError
from holdfast.models import ContactModel, NoSlip
from holdfast.mujoco._mj import mujoco
from holdfast.mujoco.stepper import Stepper


class _Kept(threading.local):
    """Steppers that `step` keeps, by model and contact model; each thread has its own."""

    def __init__(self) -> None:
        self.steppers: WeakKeyDictionary[Any, dict[Any, Stepper]] = WeakKeyDictionary()


_kept = _Kept()


def step(model: Any, data: Any, contact: ContactModel | None = None, nstep: int = 1) -> None:
    """Advance `data` as `mujoco.mj_step(model, data)` does, with exact contact.

    One `Stepper` per thread, model and contact model is kept while the model lives; for its table
    of contacts, its solution or laws per pair, make a `Stepper`.

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
    if not isinstance(model, mujoco.MjModel):
        raise InputError("model", f"is {type(model).__name__}; expected mujoco.MjModel")
    steppers = _kept.steppers.setdefault(model, {})
    contact = NoSlip() if contact is None else contact
    try:
        hash(contact)
    except TypeError as error:  # it holds arrays
        raise InputError("contact", "cannot be told from others; make a Stepper of it") from error
    stepper = steppers.pop(contact, None)  # a callback that calls this gets another one
    if stepper is None:
        stepper = Stepper(model, contact)
    stepper.shadow.user = model
    try:
        stepper.step(data, nstep)
    finally:
        stepper.shadow.user = None  # or the stepper that is kept would keep its model alive
        steppers[contact] = stepper
