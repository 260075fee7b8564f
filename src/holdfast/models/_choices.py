"""Checks of the options that models share."""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast import lcp
from holdfast.contact.options import Options
from holdfast.contact.problem import ContactProblem
from holdfast.errors import InputError
from holdfast.lcp import checks
from holdfast.lcp.checks import check_choice


def check_rigid(problem: ContactProblem) -> None:
    """Refuse compliant rows, which the solvers of `holdfast.lcp` do not know."""
    if problem.stack.compliant:
        raise InputError(
            "compliance_J", "is not zero, but this model takes joints to be rigid; use Coulomb, "
            "Frictionless, Viscous or Mixed with their own solver"
        )  # fmt: skip


def check_problem(problem: Any) -> None:
    """Refuse what is not a contact problem."""
    if not isinstance(problem, ContactProblem):
        raise InputError("problem", f"is {type(problem).__name__}; expected a ContactProblem")


def check_options(options: Any) -> None:
    """Refuse what is neither None nor a set of options."""
    if options is not None and not isinstance(options, lcp.Options):
        raise InputError("options", f"is {options!r}; expected holdfast.lcp.Options or None")


def check_solver(solver: Any, options: Any) -> None:
    """Refuse unknown solvers, and options of another one."""
    check_choice("solver", solver, ("newton", "ppm", "qp", "lemke"))
    if solver != "newton":
        check_options(options)
    elif options is not None and not isinstance(options, Options | lcp.Options):
        raise InputError(
            "options", f"is {options!r}; expected holdfast.contact.Options, holdfast.lcp.Options "
            "or None"
        )  # fmt: skip


def check_grip(grip: str, solver: str) -> None:
    """Refuse solvers of `holdfast.lcp` for contacts that stick only where they are pressed."""
    if grip == "loaded" and solver != "newton":
        raise InputError(
            "solver", f"is {solver!r}, but only the contact solve ('newton') knows contacts that "
            "stick where they are pressed; leave it out, or use grip='all'"
        )  # fmt: skip


def pivoting(solver: str) -> str:
    """The solver of `holdfast.lcp` that is meant."""
    return "ppm" if solver == "newton" else solver


def lcp_options(options: Any) -> lcp.Options | None:
    """Options of the solvers of `holdfast.lcp`, if that is what they are."""
    return options if isinstance(options, lcp.Options) else None


def coefficients(name: str, value: Any, problem: ContactProblem) -> np.ndarray:
    """(n,) coefficients from one number, an array, or the problem's own if None."""
    value = getattr(problem, name) if value is None else value
    if value is None:
        raise InputError(name, f"is missing: give it to the model or to ContactProblem.{name}")
    array = checks.as_array(name, value)
    if array.ndim > 0 and array.shape != (problem.n,):
        raise InputError(name, f"has shape {array.shape} but there are {problem.n} contacts")
    array = np.broadcast_to(array, (problem.n,)).copy()
    _check_coefficients(name, array)
    return array


def tangent_coefficients(value: Any, problem: ContactProblem) -> np.ndarray:
    """Coulomb coefficients, (n,) or (n, 2) along S and T; the problem's own if None."""
    if value is None and problem.mu is not None:
        return problem.mu  # checked
    if value is None and problem.n == 0:
        return np.zeros(0)
    given = None if value is None else checks.as_array("mu", value)
    if given is None or given.ndim != 2:
        return coefficients("mu", given, problem)
    array = np.array(checks.as_matrix("mu", given, problem.n, 2, of=("N", problem.N)))
    _check_coefficients("mu", array)
    return array


def check_range(name: str, value: Any) -> None:
    """Refuse coefficients of a model that are not finite numbers of at least 0; None is left."""
    if value is not None:
        _check_coefficients(name, checks.as_array(name, value))


def _check_coefficients(name: str, array: np.ndarray) -> None:
    bad = np.argwhere(~(np.isfinite(array) & (array >= 0)))
    if len(bad):
        where = f" at [{', '.join(map(str, bad[0]))}]" if array.ndim else ""
        raise InputError(
            name, f"is {array[tuple(bad[0])]}{where}; it must be finite and not negative"
        )
