"""What a contact does along its tangents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from holdfast.errors import InputError


@dataclass(frozen=True)
class Law:
    """What a contact does along its tangents; made by `stick`, `viscous` and `frictionless`."""

    kind: Literal["stick", "viscous", "frictionless"]
    mu_v: float = 0.0


def stick() -> Law:
    """The contact does not slip."""
    return Law("stick")


def viscous(mu_v: float) -> Law:
    """The contact drags with mu_v [N s/m]."""
    if not (np.isfinite(mu_v) and mu_v >= 0):
        raise InputError("mu_v", f"is {mu_v}; it must be finite and not negative")
    return Law("viscous", float(mu_v))


def frictionless() -> Law:
    """The contact slides freely."""
    return Law("frictionless")
