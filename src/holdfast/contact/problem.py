"""The contact problem of one step, validated when it is created."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar
from zipfile import BadZipFile

import numpy as np

from holdfast import lcp
from holdfast.contact.stack import ORDER, Stack, stack_of
from holdfast.errors import InputError
from holdfast.lcp import checks
from holdfast.lcp.inertia import InertiaFactor

_VERSION = 1  # of the file format of `save`


@dataclass(frozen=True, eq=False, kw_only=True)
class ContactProblem:
    """One contact problem: inertia, motion, forces and the rows of contacts and joints.

    ============  ===========  ===========  ==============================================
    attribute     shape        unit         meaning (equation of the paper)
    ============  ===========  ===========  ==============================================
    M             m x m        kg, kg m^2   inertia, or its blocks (nb, s, s)
    v             m            m/s, rad/s   velocity before the step
    f             m            N, N m       all smooth forces: gravity, Coriolis, actuators
    h             1            s            step length
    N             n x m        1, m         normals: N v is the speed of separation
    S, T          n x m        1, m         first and second tangents
    J             j x m        1, m         bilateral rows, may be dependent: J v = c_J
    R             r x m        1, m         further friction rows (torsion, rolling)
    R_contact     r                         which contact each row of R belongs to
    U             u x m        1, m         unilateral rows without tangents (limits)
    D             d x m        1, m         rows with dry friction (joints)
    D_bound       d            N s, N m s   largest impulse of each row of D: h times loss
    c_N, c_U      n, u         m/s          least separation speed: N v+ >= c_N
    c_J           j            m/s          bilateral target: J v+ = c_J
    compliance_J  j            1/kg         compliant rows: J v+ + compliance_J f_J = c_J
    Jdot_v        j            m/s^2        rate of J times v (acceleration level)
    Ndot_v        n            m/s^2        rate of N times v (acceleration level)
    Udot_v        u            m/s^2        rate of U times v (acceleration level)
    mu            n or n x 2   1            Coulomb coefficient; of S and of T if they differ
    mu_R          r            1, m         Coulomb coefficient of each row of R
    mu_v          n            N s/m        viscous coefficient
    bodies        n x 2                     body numbers of each contact, for sums per pair
    ============  ===========  ===========  ==============================================

    Signs: rows give relative velocities, second body minus first. A contact separates where
    ``N v > 0``, and an impulse adds its row to the momentum: ``M (v+ - v) = h f + N' f_n +
    S' f_s + T' f_t + J' f_J``, so that f_n >= 0 pushes the bodies apart.

    Everything except M and v is optional. Without mu_R the rows of R carry no force under
    Coulomb's law; with no-slip contact they are held with their contact. A row of J is rigid
    where its compliance is 0 (the default). Arrays may have any real dtype and memory order; they
    are copied, checked once, and read-only afterwards.

    Example:
        A point of 2 kg falls on a floor:

        >>> import numpy as np
        >>> problem = ContactProblem(M=2 * np.eye(2), v=[1.0, -3.0], N=[[0.0, 1.0]], S=[[1.0, 0.0]])
        >>> problem.n, problem.m, problem.j
        (1, 2, 0)
    """

    M: Any
    v: Any
    N: Any = None
    S: Any = None
    T: Any = None
    J: Any = None
    f: Any = None
    h: float | None = None
    R: Any = None
    R_contact: Any = None
    U: Any = None
    D: Any = None
    D_bound: Any = None
    c_N: Any = None
    c_U: Any = None
    c_J: Any = None
    compliance_J: Any = None
    Jdot_v: Any = None
    Ndot_v: Any = None
    Udot_v: Any = None
    mu: Any = None
    mu_R: Any = None
    mu_v: Any = None
    bodies: Any = None
    stack: ClassVar[Stack]  # of each problem, but no field

    def __post_init__(self) -> None:
        set_ = self._set
        M = np.array(checks.as_array("M", self.M))
        blocks = M.view() if M.ndim == 3 else M[None]
        if M.ndim not in (2, 3) or M.shape[-1] != M.shape[-2]:
            raise InputError("M", f"has shape {M.shape}; expected (m, m) or blocks (nb, s, s)")
        m = blocks.shape[0] * blocks.shape[1]
        if self.v is None:
            raise InputError("v", f"is missing; expected the velocity, {m} entries")
        set_("M", M)
        set_("v", _vector("v", self.v, m, ("M", M)))
        set_("f", _vector("f", self.f, m, ("M", M)))
        for name in "NSTJRUD":  # not copied yet
            set_(name, _matrix(name, getattr(self, name), m, M))
        n = self.N.shape[0]
        for name in ("S", "T"):
            rows = getattr(self, name)
            if rows.shape[0] not in (0, n):
                raise InputError(
                    name, f"is {rows.shape[0]} x {m} but N is {n} x {m}; each contact has one row"
                )
        if self.T.shape[0] > 0 and self.S.shape[0] == 0 and n > 0:
            raise InputError("S", "is missing while T is given; a single tangent is S")
        sizes = {
            "c_N": "N", "c_U": "U", "c_J": "J", "Jdot_v": "J", "Ndot_v": "N", "Udot_v": "U",
            "D_bound": "D",
        }  # fmt: skip
        if self.D_bound is None and len(self.D):
            raise InputError(
                "D_bound", f"is missing while D has {len(self.D)} rows; give the largest impulse "
                "of each, h times its friction loss"
            )  # fmt: skip
        for name, of in sizes.items():
            array = getattr(self, of)
            set_(name, _vector(name, getattr(self, name), len(array), (of, array)))
        self._check_bounds(n)
        self._check_labels(n)
        self._check_step()
        for name in _NUMERIC:
            value = getattr(self, name)
            if value is not None:
                checks.check_finite(name, value)
        checks.check_symmetric("M", M)
        stack = stack_of(self, blocks)
        set_("stack", stack)
        for name, rows in zip(ORDER, stack.split(stack.arrays.values), strict=True):
            set_(name, rows)
        if not self.factor.definite:
            raise checks.not_positive_definite("M", blocks)
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                value.setflags(write=False)

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _check_bounds(self, n: int) -> None:
        for name, of in (("mu", "N"), ("mu_v", "N"), ("mu_R", "R"), ("compliance_J", "J")):
            if getattr(self, name) is not None:
                rows = (of, getattr(self, of))
                value = _coefficients(name, getattr(self, name), rows, by_tangent=name == "mu")
                self._set(name, value)
                _check_nonnegative(name, value)
        if self.compliance_J is None:
            self._set("compliance_J", np.zeros(len(self.J)))
        _check_nonnegative("D_bound", self.D_bound)

    def _check_labels(self, n: int) -> None:
        rows = len(self.R)
        contact = np.zeros(0) if self.R_contact is None else np.array(self.R_contact)
        if contact.shape != (rows,):
            raise InputError(
                "R_contact",
                f"has shape {contact.shape} but R has {rows} rows; name one contact per row",
            )
        if rows and (contact.dtype.kind not in "iu" or contact.min() < 0 or contact.max() >= n):
            raise InputError("R_contact", f"must be integers from 0 to {n - 1}, the contacts")
        self._set("R_contact", contact.astype(np.int64))
        if self.bodies is not None:
            bodies = np.array(self.bodies)
            if bodies.size == 0:
                bodies = np.zeros((0, 2), dtype=np.int64)
            if bodies.shape != (n, 2) or (n and bodies.dtype.kind not in "iu"):
                raise InputError(
                    "bodies",
                    f"has shape {bodies.shape} and dtype {bodies.dtype} but N has {n} rows; "
                    "expected (n, 2) integers",
                )
            self._set("bodies", bodies.astype(np.int64))

    def _check_step(self) -> None:
        if self.h is None:
            if np.any(self.f):
                raise InputError("h", "is missing while f is given; the step length turns f into "
                                      "an impulse")  # fmt: skip
        elif isinstance(self.h, bool) or not (
            isinstance(self.h, int | float | np.integer | np.floating) and 0 < self.h < np.inf
        ):
            raise InputError("h", f"is {self.h!r}; the step length must be positive and finite")
        else:
            self._set("h", float(self.h))

    @property
    def m(self) -> int:
        """Number of coordinates."""
        return self.v.shape[0]

    @property
    def n(self) -> int:
        """Number of contacts."""
        return self.N.shape[0]

    @property
    def j(self) -> int:
        """Number of bilateral rows."""
        return self.J.shape[0]

    @property
    def step(self) -> float:
        """The step length; an error if it was not given."""
        if self.h is None:
            raise InputError("h", "is missing; this model needs the step length")
        return self.h

    @cached_property
    def inertia(self) -> np.ndarray:
        """M as a dense (m, m) array."""
        if self.M.ndim == 2:
            return self.M
        nb, s, _ = self.M.shape
        dense = np.zeros((nb, s, nb, s))
        dense[np.arange(nb), :, np.arange(nb), :] = self.M
        return _frozen(dense.reshape(nb * s, nb * s))

    @cached_property
    def impulse(self) -> np.ndarray:
        """Momentum that a free step would end with, ``M v + h f``."""
        forced = self.f * self.h if self.h is not None else 0.0
        return _frozen(self.inertia @ self.v + forced)

    @cached_property
    def free_velocity(self) -> np.ndarray:
        """Velocity that a free step would end with, ``v + h M^-1 f``."""
        return self.v if self.h is None else _frozen(self.free_motion[:])

    @cached_property
    def free_motion(self) -> np.ndarray:
        """The same as a writable array, for kernels; it is never modified."""
        v, f = self.stack.arrays.v, self.stack.arrays.f
        return v if self.h is None else self.factor.drift(v, f, self.h)

    @cached_property
    def cholesky(self) -> np.ndarray:
        """Lower Cholesky factor of the dense inertia."""
        return _frozen(np.linalg.cholesky(self.inertia) if self.m else np.zeros((0, 0)))

    @cached_property
    def factor(self) -> InertiaFactor:
        """Cholesky factor of M."""
        return InertiaFactor(self.stack.arrays.M)

    @cached_property
    def whitened_rows(self) -> np.ndarray:
        """All rows of the stack in coordinates in which the inertia is the identity."""
        return self.factor.whiten(self.stack.arrays.values)

    @cached_property
    def whitened(self) -> dict[str, np.ndarray]:
        """The same as N, S, T, J, R, U and D."""
        return dict(zip(ORDER, self.stack.split(_frozen(self.whitened_rows[:])), strict=True))

    @cached_property
    def lengths(self) -> dict[str, np.ndarray]:
        """Lengths of the rows of N, S, T, J, R, U and D in the metric of M^-1.

        A row of zeros, or what cancellation left of one, is given the length of the longest row.
        """
        return {name: _frozen(_lengths(rows)) for name, rows in self.whitened.items()}

    def solve(self, rhs: np.ndarray) -> np.ndarray:
        """``M^-1 rhs`` for a vector, or for the columns of a matrix."""
        return self.factor.solve(rhs)

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything to one .npz file, to be attached to a report."""
        arrays = {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if getattr(self, field.name) is not None
        }
        np.savez_compressed(path, format_version=_VERSION, **arrays)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> ContactProblem:
        """Read what `save` wrote.

        Raises:
            InputError: the file is not a saved problem; the message says why.
        """
        file = Path(path)
        if not file.exists() and file.with_name(file.name + ".npz").exists():
            file = file.with_name(file.name + ".npz")  # `save` adds the ending where it is missing
        return cls.from_mapping(_read(file, str(path)), name=str(path))

    @classmethod
    def from_mapping(cls, arrays: Mapping[str, Any], name: str = "mapping") -> ContactProblem:
        """A problem from named arrays; names that are not attributes are refused."""
        known = {field.name for field in fields(cls)}
        _check_version(name, arrays.get("format_version", _VERSION))
        unknown = set(arrays) - known - {"format_version"}
        if unknown:
            raise InputError(
                name, f"holds {', '.join(sorted(unknown))}; known are {', '.join(sorted(known))}"
            )
        missing = sorted({"M", "v"} - set(arrays))
        if missing:
            raise InputError(name, f"holds no {' and no '.join(missing)}; a problem needs M and v")
        values = {key: arrays[key] for key in arrays if key != "format_version"}
        if isinstance(values.get("h"), np.ndarray) and values["h"].ndim == 0:
            values["h"] = values["h"].item()
        return cls(**values)

    def __repr__(self) -> str:
        return f"ContactProblem(m={self.m}, n={self.n}, j={self.j}, h={self.h})"


_NUMERIC = (
    "M", "v", "f", "N", "S", "T", "J", "R", "U", "D", "D_bound", "c_N", "c_U", "c_J", "Jdot_v",
    "Ndot_v", "Udot_v", "mu", "mu_R", "mu_v", "compliance_J",
)  # fmt: skip


def _read(file: Path, name: str) -> dict[str, np.ndarray]:
    """The arrays of an .npz file."""
    try:
        loaded = np.load(file, allow_pickle=False)
        if not isinstance(loaded, np.ndarray):
            with loaded as arrays:
                return {key: arrays[key] for key in arrays}
    except (ValueError, EOFError, BadZipFile, zlib.error) as error:
        raise InputError(
            name, f"is not an .npz file of ContactProblem.save, or is damaged ({error})"
        ) from error
    raise InputError(
        name, "holds a single array (.npy); expected an .npz file of ContactProblem.save"
    )


def _check_version(name: str, version: Any) -> None:
    """Refuse a file that a later release wrote."""
    number = np.asarray(version)
    if number.ndim or number.dtype.kind not in "iu" or number < 1:
        raise InputError(name, f"has format_version {version!r}; expected a positive integer")
    if number > _VERSION:
        raise InputError(
            name, f"has format_version {number}, but this release reads up to {_VERSION}; "
            "it needs a newer holdfast"
        )  # fmt: skip


def _vector(name: str, value: Any, size: int, of: tuple[str, np.ndarray]) -> np.ndarray:
    """A copy of a vector; zeros for None."""
    if value is None:
        return np.zeros(size)
    return np.array(checks.as_vector(name, value, size, of=of))


def _coefficients(
    name: str, value: Any, of: tuple[str, np.ndarray], *, by_tangent: bool
) -> np.ndarray:
    """One number for each row, from one for all of them; a column for S and one for T, perhaps."""
    array, count = checks.as_array(name, value), len(of[1])
    if array.ndim == 0:
        return np.full(count, array)
    if by_tangent and array.ndim == 2:
        return np.array(checks.as_matrix(name, array, count, 2, of=of))
    return _vector(name, array, count, of)


def _matrix(name: str, value: Any, m: int, M: np.ndarray) -> np.ndarray:
    """A matrix; no rows for None."""
    if value is None:
        return np.zeros((0, m))
    return checks.as_matrix(name, value, cols=m, of=("M", M))


def _lengths(rows: np.ndarray) -> np.ndarray:
    length = np.linalg.norm(rows, axis=1)
    longest = length.max(initial=0.0)
    length[length <= lcp.Options().zero_row * longest] = longest or 1.0
    return length


def _frozen(array: np.ndarray) -> np.ndarray:
    array.setflags(write=False)
    return array


def _check_nonnegative(name: str, value: np.ndarray) -> None:
    bad = np.argwhere(value < 0)
    if len(bad):
        where = ", ".join(map(str, bad[0]))
        raise InputError(name, f"is {value[tuple(bad[0])]} at [{where}]; it must not be negative")
