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
    """What a contact does along its tangents.

    Made by `coulomb`, `stick`, `viscous` and `frictionless`.
    """

    kind: Literal["coulomb", "stick", "viscous", "frictionless"]
    mu_v: float = 0.0
    mu: float | None = None

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, ("coulomb", "stick", "viscous", "frictionless"))
        self._check_mu()
        value = checks.as_array("mu_v", self.mu_v)
        if value.ndim or not (np.isfinite(value) and value >= 0.0):
            raise InputError("mu_v", f"is {self.mu_v}; it must be finite and not negative")
        if value > 0.0 and self.kind != "viscous":
            raise InputError("mu_v", f"is {self.mu_v}, but a {self.kind} contact has no drag")
        object.__setattr__(self, "mu_v", float(value))

    def _check_mu(self) -> None:
        if self.mu is None:
            return
        value = checks.as_array("mu", self.mu)
        if value.ndim or not (np.isfinite(value) and value >= 0.0):
            raise InputError("mu", f"is {self.mu}; it must be finite and not negative")
        if self.kind != "coulomb":
            raise InputError("mu", f"is {self.mu}, but a {self.kind} contact has no such limit")
        object.__setattr__(self, "mu", float(value))


def coulomb(mu: float | None = None) -> Law:
    """The contact sticks within its friction cone and slides on it.

    Args:
        mu: coefficient of friction; None uses that of the problem.
    """
    return Law("coulomb", mu=mu)


def stick() -> Law:
    """The contact does not slip."""
    return Law("stick")


def viscous(mu_v: float) -> Law:
    """The contact has viscous friction with the coefficient mu_v [N s/m]."""
    return Law("viscous", mu_v)


def frictionless() -> Law:
    """The contact slides freely."""
    return Law("frictionless")
