"""Physics: contact models over `holdfast.lcp`."""

from holdfast.contact.laws import Law
from holdfast.models._coulomb import CoulombSolution
from holdfast.models.anitescu_potra import AnitescuPotra
from holdfast.models.base import ContactModel
from holdfast.models.coulomb_acceleration import CoulombAcceleration
from holdfast.models.drumwright_shell import DrumwrightShell
from holdfast.models.frictionless import Frictionless
from holdfast.models.mixed import Mixed
from holdfast.models.no_slip import NoSlip
from holdfast.models.stewart_trinkle import StewartTrinkle
from holdfast.models.viscous import Viscous

__all__ = [
    "AnitescuPotra",
    "ContactModel",
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
