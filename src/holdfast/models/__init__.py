"""Physics: contact models over the contact solve, and over `holdfast.lcp`."""

from holdfast.contact.laws import Law
from holdfast.models.base import ContactModel
from holdfast.models.baselines import (
    AnitescuPotra,
    CoulombAcceleration,
    CoulombSolution,
    DrumwrightShell,
    StewartTrinkle,
)
from holdfast.models.coulomb import Coulomb
from holdfast.models.frictionless import Frictionless
from holdfast.models.mixed import Mixed
from holdfast.models.no_slip import NoSlip
from holdfast.models.viscous import Viscous

__all__ = [
    "AnitescuPotra",
    "ContactModel",
    "Coulomb",
    "CoulombAcceleration",
    "CoulombSolution",
    "DrumwrightShell",
    "Frictionless",
    "Law",
    "Mixed",
    "NoSlip",
    "StewartTrinkle",
    "Viscous",
]
