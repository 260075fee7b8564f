"""The vocabulary of contact: problems, solutions that judge themselves, and laws."""

from holdfast.contact.arrays import ContactState, LawKind
from holdfast.contact.laws import Law, coulomb, frictionless, stick, viscous
from holdfast.contact.options import Options
from holdfast.contact.problem import ContactProblem
from holdfast.contact.solution import ContactSolution

__all__ = [
    "ContactProblem",
    "ContactSolution",
    "ContactState",
    "Law",
    "LawKind",
    "Options",
    "coulomb",
    "frictionless",
    "stick",
    "viscous",
]
