"""Rigid contact that does not slip, does not creep and does not sink in."""

from holdfast import lcp
from holdfast.lcp import find_indices

__version__ = "0.1.0"
__all__ = ["find_indices", "lcp"]
