"""The laws that a viewer can step a scene by."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from holdfast.contact.laws import coulomb, stick, viscous
from holdfast.errors import InputError
from holdfast.mujoco._mj import mujoco
from holdfast.mujoco.stepper import Stepper
from holdfast.tools.compare import RECIPES

MUJOCO, NOSLIP, COULOMB, NO_SLIP, VISCOUS = LAWS = (
    "MuJoCo", "MuJoCo + noslip", "Coulomb", "No slip", "Viscous",
)  # fmt: skip
"""MuJoCo as the scene configures it, MuJoCo with what its documentation advises against slip, and
three laws of holdfast."""

OF_CONTACT = {"coulomb": COULOMB, "noslip": NO_SLIP, "noslip-all": NO_SLIP, "viscous": VISCOUS}
"""Laws by the names that the command line gives them."""


class LawStepper:
    """Steps data of a model by one of the laws.

    Attributes:
        law: one of `LAWS`.
        model: whose options the steps follow.
    """

    def __init__(self, model: Any, law: str, mu_v: float) -> None:
        if law not in LAWS:
            raise InputError("law", f"is {law!r}; expected one of {', '.join(LAWS)}")
        self.law = law
        self.model = model
        if law == NOSLIP:
            self.model = copy.copy(model)
            for name, value in RECIPES["+ noslip 10"].items():
                setattr(self.model.opt, name, value)
        self._stepper: Stepper | None = None
        if law not in (MUJOCO, NOSLIP):
            of_law = {COULOMB: coulomb, NO_SLIP: stick, VISCOUS: lambda: viscous(mu_v)}[law]
            self._stepper = Stepper(model, of_law(), warn=False)

    def step(self, data: Any) -> None:
        """Advance the data by one step."""
        self._call(mujoco.mj_step, "step", data)

    def forward(self, data: Any) -> None:
        """Contact forces at the present state; no time passes."""
        self._call(mujoco.mj_forward, "forward", data)

    def _call(self, of_mujoco: Callable[[Any, Any], None], ours: str, data: Any) -> None:
        if self._stepper is None:
            of_mujoco(self.model, data)
        else:
            getattr(self._stepper, ours)(data)
