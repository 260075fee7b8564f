"""Sweeps: one task on many cases, with results that survive whatever happens."""

from holdfast.batch.sweep import cases
from holdfast.batch.sweep.run import sweep
from holdfast.batch.sweep.table import SweepTable

__all__ = ["SweepTable", "cases", "sweep"]
