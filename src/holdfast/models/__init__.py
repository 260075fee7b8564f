"""Physics: contact models over `holdfast.lcp`."""

from holdfast.models.base import ContactModel
from holdfast.models.frictionless import Frictionless
from holdfast.models.mixed import Law, Mixed, frictionless, stick, viscous
from holdfast.models.no_slip import NoSlip
from holdfast.models.viscous import Viscous

__all__ = [
    "ContactModel",
    "Frictionless",
    "Law",
    "Mixed",
    "NoSlip",
    "Viscous",
    "frictionless",
    "stick",
    "viscous",
]
