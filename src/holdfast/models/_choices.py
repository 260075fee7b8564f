"""Checks of the options that models share."""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast import lcp
from holdfast.contact.problem import ContactProblem
from holdfast.errors import InputError
from holdfast.lcp import checks


def check_problem(problem: Any) -> None:
    """Refuse what is not a contact problem."""
    if not isinstance(problem, ContactProblem):
        raise InputError("problem", f"is {type(problem).__name__}; expected a ContactProblem")


def check_options(options: Any) -> None:
    """Refuse what is neither None nor a set of options."""
    if options is not None and not isinstance(options, lcp.Options):
        raise InputError("options", f"is {options!r}; expected holdfast.lcp.Options or None")


def coefficients(name: str, value: Any, problem: ContactProblem) -> np.ndarray:
    """(n,) coefficients from one number, an array, or the problem's own if None."""
    value = getattr(problem, name) if value is None else value
    if value is None:
        raise InputError(name, f"is missing: give it to the model or to ContactProblem.{name}")
    array = checks.as_array(name, value)
    if array.ndim > 0 and array.shape != (problem.n,):
        raise InputError(name, f"has shape {array.shape} but there are {problem.n} contacts")
    array = np.broadcast_to(array, (problem.n,)).copy()
    bad = np.flatnonzero(~(np.isfinite(array) & (array >= 0)))
    if bad.size:
        raise InputError(
            name, f"is {array[bad[0]]} at [{bad[0]}]; it must be finite and not negative"
        )
    return array
