"""Rigid contact that does not slip, does not creep and does not sink in."""

from holdfast import errors, lcp
from holdfast.errors import (
    HoldfastError,
    InfeasibleError,
    InputError,
    NotPositiveDefiniteError,
    NotSymmetricError,
    RayTerminationError,
    SolveError,
    UncertifiedError,
)
from holdfast.lcp import find_indices

__version__ = "0.1.0"

__all__ = [
    "HoldfastError",
    "InfeasibleError",
    "InputError",
    "NotPositiveDefiniteError",
    "NotSymmetricError",
    "RayTerminationError",
    "SolveError",
    "UncertifiedError",
    "errors",
    "find_indices",
    "lcp",
]
