"""Sweeps: one task on many cases, with results that survive whatever happens."""

from holdfast.tools.sweep import cases
from holdfast.tools.sweep.run import sweep
from holdfast.tools.sweep.table import SweepTable

__all__ = ["SweepTable", "cases", "sweep"]
