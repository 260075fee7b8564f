"""How a solve ended."""

from __future__ import annotations

from enum import IntEnum


class Status(IntEnum):
    """How a solve ended. The integer values are what the kernels return."""

    SOLVED = 0
    INFEASIBLE = 1
    RAY = 2
    PIVOT_LIMIT = 3
    UNCERTIFIED = 4
    SINGULAR = 5
    PAUSED = 6  # internal: the kernel wants to be called again (so that Ctrl-C gets through)

    @property
    def message(self) -> str:
        """A readable sentence."""
        return _MESSAGES[self]


_MESSAGES = {
    Status.SOLVED: "solved, and certified on the original data",
    Status.INFEASIBLE: "infeasible: rows contradict each other, see the certificate",
    Status.RAY: "ended on a secondary ray: no complementary solution was reached",
    Status.PIVOT_LIMIT: "stopped at the pivot limit",
    Status.UNCERTIFIED: "residuals on the original data exceed the certificate tolerance",
    Status.SINGULAR: "the basis matrix became singular to working precision",
    Status.PAUSED: "paused between pivots",
}
