"""Numbers measured several times."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Spread:
    """Median and extremes of several measurements."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        """Of at least one value."""
        each = np.array(list(values), dtype=float)
        return cls(float(np.median(each)), float(each.min()), float(each.max()))

    def range(self, unit: float = 1.0) -> str:
        """The extremes, in a unit."""
        low, high = (
            f"{x:.0f}" if x >= 100 else f"{x:.3g}" for x in (self.low / unit, self.high / unit)
        )
        return f"{low} to {high}"
