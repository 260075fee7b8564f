"""Baselines: models of Coulomb friction to compare with."""

from holdfast.models.baselines._coulomb import CoulombSolution
from holdfast.models.baselines.anitescu_potra import AnitescuPotra
from holdfast.models.baselines.coulomb_acceleration import CoulombAcceleration
from holdfast.models.baselines.drumwright_shell import DrumwrightShell
from holdfast.models.baselines.stewart_trinkle import StewartTrinkle

__all__ = [
    "AnitescuPotra",
    "CoulombAcceleration",
    "CoulombSolution",
    "DrumwrightShell",
    "StewartTrinkle",
]
