"""Every tolerance of the solvers, with its reason, in one place."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from holdfast.errors import InputError


@dataclass(frozen=True)
class Options:
    """Tolerances and limits of the LCP solvers.

    All tolerances are pure numbers, relative to the problem's own scale: rows are compared
    with their own norm in the metric of `M^-1`, motions with the larger of the free and the
    constrained motion. Scaling masses, lengths or times changes none of them.

    Attributes:
        feasibility: a contact whose normalised separation speed is above minus this is not
            violated. Three decades above the rounding of a 100-dimensional dot product, two
            below `certificate`.
        rank: an entering row whose part outside the span of the loaded rows is below this
            (rows have length 1) counts as dependent on them.
        zero_row: a row with no offset, shorter than this part of the longest one, is what
            cancellation left of a row of zeros, and is ignored.
        certificate: largest relative residual of a certified answer.
        max_pivots: give up after this many pivots; None stands for 100 + 50 (n + m). Recorded
            and textbook problems take at most 3 (n + m).
        symmetry: entries i, j and j, i of a symmetric matrix may differ by this part of the
            square root of the diagonal entries i and j.
        semidefinite: a dense LCP matrix may have eigenvalues down to minus this part of
            its largest one before `ppm` refuses it. Matrices recorded from simulators are
            semidefinite only to about 1e-10.
        regularization: Tikhonov schedule (first, last) for Lemke: on failure solve again
            with `F + eps I`, eps doubling from first to last. None: no regularisation.
            The paper's choice is (1e-16, 1e-6).
    """

    feasibility: float = 1e-12
    rank: float = 1e-12
    zero_row: float = 1e-14
    certificate: float = 1e-10
    max_pivots: int | None = None
    symmetry: float = 1e-8
    semidefinite: float = 1e-9
    regularization: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        for name in ("feasibility", "rank", "zero_row", "certificate", "symmetry", "semidefinite"):
            number = _number(f"Options.{name}", getattr(self, name))
            if not 0.0 <= number < float("inf"):
                raise InputError(f"Options.{name}", f"is {number}; expected finite, at least 0")
            object.__setattr__(self, name, number)
        if self.rank >= 1.0:
            raise InputError(
                "Options.rank", f"is {self.rank}; expected below 1, rows have length 1"
            )
        if self.max_pivots is not None:
            object.__setattr__(self, "max_pivots", _count("Options.max_pivots", self.max_pivots))
        if self.regularization is not None:
            object.__setattr__(self, "regularization", _schedule(self.regularization))

    @cached_property
    def kernel_arguments(self) -> np.ndarray:
        """What the kernel of `solve_factored` wants to know, in its order."""
        limit = -1 if self.max_pivots is None else self.max_pivots
        return np.array([
            self.symmetry, self.feasibility, self.rank, self.zero_row, self.certificate, limit,
        ], dtype=float)  # fmt: skip


def checked(options: Any) -> Options:
    """The options to use; None stands for the default."""
    if options is None:
        return DEFAULT
    if not isinstance(options, Options):
        raise InputError("options", f"is {type(options).__name__}; expected holdfast.lcp.Options")
    return options


def _number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InputError(name, f"is {value!r}; expected a number") from None


def _count(name: str, value: Any) -> int:
    try:
        count = operator.index(value)
    except TypeError:
        count = -1
    if count < 0:
        raise InputError(name, f"is {value!r}; expected a whole number, at least 0")
    return count


def _schedule(value: Any) -> tuple[float, float]:
    name = "Options.regularization"
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise InputError(name, f"is {value!r}; expected (first, last) or None")
    first, last = (_number(name, number) for number in value)
    if not 0.0 < first <= last < float("inf"):
        raise InputError(name, f"is {value!r}; expected 0 < first <= last")
    return first, last


DEFAULT = Options()
