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
        return f"{self.low / unit:.3g} to {self.high / unit:.3g}"
