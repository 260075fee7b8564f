"""What a contact does along its tangents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from holdfast.errors import InputError
from holdfast.lcp import checks
from holdfast.lcp.checks import check_choice


@dataclass(frozen=True)
class Law:
    """What a contact does along its tangents; made by `stick`, `viscous` and `frictionless`."""

    kind: Literal["stick", "viscous", "frictionless"]
    mu_v: float = 0.0

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, ("stick", "viscous", "frictionless"))
        value = checks.as_array("mu_v", self.mu_v)
        if value.ndim or not (np.isfinite(value) and value >= 0.0):
            raise InputError("mu_v", f"is {self.mu_v}; it must be finite and not negative")
        if value > 0.0 and self.kind != "viscous":
            raise InputError("mu_v", f"is {self.mu_v}, but a {self.kind} contact has no drag")
        object.__setattr__(self, "mu_v", float(value))


def stick() -> Law:
    """The contact does not slip."""
    return Law("stick")


def viscous(mu_v: float) -> Law:
    """The contact drags with mu_v [N s/m]."""
    return Law("viscous", mu_v)


def frictionless() -> Law:
    """The contact slides freely."""
    return Law("frictionless")
