"""Contact models by the names that commands and plans use."""

from __future__ import annotations

from typing import Any, Literal, get_args

from holdfast.contact.laws import viscous
from holdfast.errors import InputError

ContactName = Literal["coulomb", "noslip", "noslip-all", "viscous", "frictionless"]


def contact_model(name: str, mu_v: float) -> Any:
    """The contact model of a name; `mu_v` is for the viscous one [N s/m]."""
    from holdfast.models import Coulomb, Frictionless, NoSlip, Viscous

    known = {
        "coulomb": lambda: Coulomb(),
        "noslip": lambda: NoSlip(),
        "noslip-all": lambda: NoSlip(grip="all"),
        "viscous": lambda: Viscous(checked),
        "frictionless": lambda: Frictionless(),
    }
    checked = viscous(mu_v).mu_v  # whatever the law: a coefficient that is given is one
    if name not in known:
        raise InputError("contact", f"is {name!r}; expected {', '.join(get_args(ContactName))}")
    return known[name]()
