"""Contact models by the names that commands and plans use."""

from __future__ import annotations

from typing import Any, Literal, get_args

from holdfast.errors import InputError

ContactName = Literal["coulomb", "noslip", "noslip-all", "viscous", "frictionless"]


def contact_model(name: str, mu_v: float) -> Any:
    """The contact model of a name; `mu_v` is for the viscous one [N s/m]."""
    from holdfast.models import Coulomb, Frictionless, NoSlip, Viscous

    known = {
        "coulomb": lambda: Coulomb(),
        "noslip": lambda: NoSlip(),
        "noslip-all": lambda: NoSlip(grip="all"),
        "viscous": lambda: Viscous(mu_v),
        "frictionless": lambda: Frictionless(),
    }
    if name not in known:
        raise InputError("contact", f"is {name!r}; expected {', '.join(get_args(ContactName))}")
    return known[name]()
