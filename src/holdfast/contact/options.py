"""Tolerances of the contact solve, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np

from holdfast._jit import kernel
from holdfast.errors import InputError


@dataclass(frozen=True)
class Options:
    """Tolerances of the contact solve. All are relative: rows have length one, motions size one.

    Attributes:
        certificate: residual of the law, relative to the motion, up to which an answer is
            certified.
        stop: residual up to which the impulses of the last step are taken as they are, if they
            leave the motion as it was: far below the certificate, because exactly at the friction
            angle motions are off by more than the residual.
        approximate: residual up to which a step may take an answer that misses the certificate.
        canonical_compliance: compliance that Newton's method starts with near an answer; it starts
            with more farther away. Large enough that it settles in a few iterations.
        active_compliance: compliance of the rows that hold, when it is known which contacts stick
            and slide: what is left of it is taken out by refinement. Much smaller, and rounding
            would make the impulses inaccurate; much larger, and refinement would take longer.
        least_compliance: compliance is never reduced below this.
        little_compliance: compliance to which the path of vanishing compliance is followed where
            that of active rows does not show the states: between bodies of very different masses
            light ones move less than it lets heavy ones. The interior-point method has it, too, in
            each step, about the impulses at hand.
        last_compliance: the same, at last: contacts whose rows differ in the seventh digit then
            share no load, unless they jam with impulses of more than ten thousand times the motion.
        on_path: residual of points on that path, relative to the motion, times the compliance if
            that is less than one. Between light bodies impulses are small, and a larger one would
            hide what they do.
        on_fold: the same where the path turns back, and steps along it may be short.
        on_limit: part of the limit of friction: a contact that is nearer to it, and does not move,
            was found sliding.
        split: relative change of the iterates of splitting at which Newton's method is faster.
        settled: residual of convex problems with compliance, relative to what they are to take
            out: the next of them take out what it leaves.
        contradicts: the motion at hand over the least one that meets all targets, below which they
            contradict each other: answers that are so long are none.
        zero_row: rows shorter than this part of the longest one are what cancellation left of a
            row of zeros, unless they move a tree by more than this part of what its other rows do:
            those of a heavy body are short beside a light one's.
    """

    certificate: float = 1e-10
    stop: float = 1e-13
    approximate: float = 1e-6
    canonical_compliance: float = 1e-3
    active_compliance: float = 1e-6
    least_compliance: float = 1e-12
    little_compliance: float = 1e-8
    last_compliance: float = 1e-12
    on_path: float = 1e-8
    on_fold: float = 1e-11
    on_limit: float = 1e-12
    split: float = 1e-7
    settled: float = 1e-9
    contradicts: float = 1e-5
    zero_row: float = 1e-13

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not (isinstance(value, int | float | np.number) and 0.0 < value < 1.0):
                raise InputError(field.name, f"is {value!r}; expected a number between 0 and 1")

    def numbers(self) -> Numbers:
        """The same for kernels."""
        values = (float(getattr(self, field.name)) for field in fields(self))
        return Numbers(*values, rough=0.0, resumed=False)


class Numbers(NamedTuple):
    """The fields of `Options`, for kernels, and what is asked of a solve."""

    certificate: float
    stop: float
    approximate: float
    canonical_compliance: float
    active_compliance: float
    least_compliance: float
    little_compliance: float
    last_compliance: float
    on_path: float
    on_fold: float
    on_limit: float
    split: float
    settled: float
    contradicts: float
    zero_row: float
    rough: float  # residual that suffices this once, if it is more than the certificate
    resumed: bool  # whether the impulses to begin with answer nearly the same problem, in this step


@kernel
def asked(o: Numbers, rough: float, resumed: bool) -> Numbers:
    """Return the same, for a solve of which this is asked; see `Numbers`."""
    return Numbers(
        o.certificate, o.stop, o.approximate, o.canonical_compliance, o.active_compliance,
        o.least_compliance, o.little_compliance, o.last_compliance, o.on_path, o.on_fold,
        o.on_limit, o.split, o.settled, o.contradicts, o.zero_row, rough, resumed,
    )  # fmt: skip


DEFAULT = Options()
