"""Every exception of holdfast, each carrying what it is about.

Two families:

* `InputError`: an argument that cannot be used (wrong shape, NaN, an indefinite
  inertia). The message names the argument, what was found, what was expected and
  what to do.
* `SolveError`: the problem is well posed but no certified answer exists or was
  found. It carries the problem, so that it can be saved and attached to a report,
  and the last iterate of the solver.

And one warning, `FrictionWarning`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


class HoldfastError(Exception):
    """Base of every exception raised on purpose by holdfast. All of them can be pickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _made_again, (type(self), self.args, self.__dict__)


def _made_again(kind: type[HoldfastError], args: Any, fields: dict[str, Any]) -> HoldfastError:
    """An error of another process: its message and attributes, whatever its constructor wants."""
    error = kind.__new__(kind, *args)
    error.__dict__.update(fields)
    return error


class InputError(HoldfastError, ValueError):
    """An argument that cannot be used.

    Attributes:
        argument: name of the offending argument.
    """

    def __init__(self, argument: str, message: str) -> None:
        super().__init__(f"{argument}: {message}")
        self.argument = argument


class UnsupportedError(InputError):
    """A model with an element that is not supported; `argument` names it."""


class NotSymmetricError(InputError):
    """A matrix that must be symmetric is not.

    Attributes:
        index: row and column of the largest difference.
        asymmetry: that difference, relative to the square root of the diagonal entries.
    """

    def __init__(self, argument: str, index: tuple[int, int], asymmetry: float, tol: float) -> None:
        i, j = index
        super().__init__(
            argument,
            f"not symmetric: entries [{i}, {j}] and [{j}, {i}] differ by {asymmetry:.3g} of their "
            f"diagonal entries (at most {tol:.0e} is taken for rounding); "
            f"pass ({argument} + {argument}.T) / 2 if the difference is noise",
        )
        self.index = index
        self.asymmetry = asymmetry


class NotPositiveDefiniteError(InputError):
    """A matrix that must be positive (semi)definite is not.

    Attributes:
        smallest_eigenvalue: the eigenvalue that shows it.
        largest_eigenvalue: for comparison.
    """

    def __init__(
        self,
        argument: str,
        smallest_eigenvalue: float,
        largest_eigenvalue: float,
        *,
        semidefinite: bool = False,
        advice: str = "",
    ) -> None:
        kind = "positive semidefinite" if semidefinite else "positive definite"
        super().__init__(
            argument,
            f"not {kind}: smallest eigenvalue {smallest_eigenvalue:.6g}, largest "
            f"{largest_eigenvalue:.6g}" + (f"; {advice}" if advice else ""),
        )
        self.smallest_eigenvalue = smallest_eigenvalue
        self.largest_eigenvalue = largest_eigenvalue


class SolveError(HoldfastError, ArithmeticError):
    """A solver ended without a certified answer.

    Attributes:
        status: the solver's `Status`.
        problem: the problem as it was given.
        result: the uncertified result, for inspection only; None where there is none.
    """

    def __init__(self, message: str, *, status: Any, problem: Any, result: Any = None) -> None:
        super().__init__(message)
        self.status = status
        self.problem = problem
        self.result = result


class InfeasibleError(SolveError):
    """No motion satisfies all rows: a body between two closing walls.

    From a solver of `holdfast.lcp`, `certificate` has an entry for every row, and is the whole
    proof: ``N' u = 0`` and ``b' u < 0``, u of the sign that the bounds allow.

    From a contact model, `certificate` holds the weights u >= 0 of the rows of N and U, and
    `equality_weights` those of the rows that must hold with equality. Together they cancel, and
    what they ask for does not::

        N' u_N + U' u_U + J' w_J + S' w_S + T' w_T + R' w_R = 0
        c_N' u_N + c_U' u_U + c_J' w_J > 0

    (at acceleration level the targets are ``-Ndot_v``, ``-Udot_v`` and ``-Jdot_v``).

    Attributes:
        certificate: Farkas vector. Its non-zero entries are rows that contradict each other.
        equality_weights: by the name of the rows, "J", "S", "T" and "R", one weight of any sign
            for each row of the problem; zero at tangents that are not held. Empty if the error
            comes from a solver.
    """

    def __init__(
        self,
        message: str,
        *,
        status: Any,
        problem: Any,
        certificate: np.ndarray,
        equality_weights: Mapping[str, np.ndarray] | None = None,
        result: Any = None,
    ) -> None:
        super().__init__(message, status=status, problem=problem, result=result)
        self.certificate = certificate
        self.equality_weights = dict(equality_weights or {})


class UncertifiedError(SolveError):
    """The residuals of the solution, computed from the original data, exceed the tolerance."""


class RayTerminationError(SolveError):
    """Lemke's method ended on a secondary ray.

    For the matrix classes that it can process, this means that the LCP has no solution.

    Attributes:
        ray: direction of the ray in z.
    """

    def __init__(
        self, message: str, *, status: Any, problem: Any, ray: np.ndarray, result: Any = None
    ) -> None:
        super().__init__(message, status=status, problem=problem, result=result)
        self.ray = ray


class InconsistentConfigurationError(SolveError):
    """No forces exist that satisfy rigid contact and Coulomb friction: Painlevé's paradox.

    Attributes:
        contacts: sliding contacts that friction pulls together more than their normal force
            pushes them apart: where ``N P (N - mu Q)'`` has a diagonal that is not positive.
        proven: whether it is certain that there are none, by the certificate or because all sets
            of loaded rows were tried. If not, Lemke's method found none, which for this class of
            matrices is not quite a proof.
        certificate: Farkas vector u >= 0 of the LCP ``F z + e``, with ``F' u <= 0`` and
            ``e' u < 0``: not even its inequalities have a solution. None if they do.
    """

    def __init__(
        self,
        message: str,
        *,
        status: Any,
        problem: Any,
        contacts: np.ndarray,
        proven: bool,
        certificate: np.ndarray | None,
        result: Any = None,
    ) -> None:
        super().__init__(message, status=status, problem=problem, result=result)
        self.contacts = contacts
        self.proven = proven
        self.certificate = certificate


class EventError(HoldfastError):
    """A step of an event-driven simulation that could not be completed; nothing was changed.

    Attributes:
        time: time that the step had reached [s].
        qpos, qvel: position and velocity at that time.
    """

    def __init__(self, message: str, *, time: float, qpos: np.ndarray, qvel: np.ndarray) -> None:
        super().__init__(message)
        self.time = time
        self.qpos = qpos
        self.qvel = qvel


class SweepError(HoldfastError):
    """A sweep that could not continue or be written; finished cases are saved.

    The message says what happened, where finished cases are, and what to do.
    """


class FrictionWarning(UserWarning):
    """A no-slip contact needs more friction than the model declares."""


class StepWarning(UserWarning):
    """A step was taken differently than requested; issued once per cause."""
