"""Validation of arrays at the edge of every solver.

Solves take microseconds, so a check of an array that is already what it should be costs a
few hundred nanoseconds: no copy, no temporary, one pass where a pass is needed at all.
Everything that a person reads is built only after a check has failed.

What comes out is float64, C-contiguous and writable: one type, so each kernel is compiled once.
An array that is so already is passed through, anything else (float32, strided, read-only) is
copied. Kernels never write to their inputs.

    M = as_inertia("M", M)                       # (nb, s, s); one block when M is dense
    N = as_matrix("N", N, cols=m, of=("M", M))   # "N: is 4 x 12 but M is 14 x 14; ..."
    v = as_vector("v", v, size=m, of=("M", M))
    check_finite("N", N)                         # or later, once a kernel has met a NaN
"""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast._jit import entry
from holdfast.errors import InputError, NotPositiveDefiniteError, NotSymmetricError
from holdfast.lcp.options import DEFAULT

_FLOAT = np.dtype(np.float64)
_LARGEST = float(np.finfo(np.float64).max)


def as_matrix(
    name: str,
    value: Any,
    rows: int | None = None,
    cols: int | None = None,
    *,
    of: tuple[str, np.ndarray] | None = None,
) -> np.ndarray:
    """A matrix as C-contiguous float64, copied only if it has to be.

    An empty one-dimensional value (``[]``) is taken for no rows. Entries are not scanned:
    see `check_finite`.

    Args:
        name: what the caller calls this argument.
        value: anything `numpy.asarray` turns into a real matrix.
        rows: number of rows it must have; None accepts any.
        cols: number of columns it must have; None accepts any.
        of: name and array that `rows` and `cols` come from, for the message.

    Raises:
        InputError: not real numbers, not two-dimensional, or of another shape.
    """
    array = as_array(name, value)
    if array.ndim == 1 and array.size == 0 and cols is not None:
        array = array.reshape(0, cols)
    if array.ndim != 2:
        advice = f"; write {name}[None, :] for a single row" if array.ndim == 1 else ""
        raise InputError(name, f"{_shape(array)}, but a matrix has two dimensions{advice}")
    if (rows is not None and array.shape[0] != rows) or (
        cols is not None and array.shape[1] != cols
    ):
        want = [f"{rows} rows"] * (rows is not None) + [f"{cols} columns"] * (cols is not None)
        raise InputError(name, _disagreement(array, of, " and ".join(want)))
    return array


def as_vector(
    name: str, value: Any, size: int | None = None, *, of: tuple[str, np.ndarray] | None = None
) -> np.ndarray:
    """A vector as C-contiguous float64; the arguments are as in `as_matrix`."""
    array = as_array(name, value)
    if array.ndim != 1:
        advice = f"; {name}.ravel() is one" if 1 in array.shape else ""
        raise InputError(name, f"{_shape(array)}, but a vector has one dimension{advice}")
    if size is not None and array.shape[0] != size:
        raise InputError(name, _disagreement(array, of, f"{size} entries"))
    return array


def as_inertia(name: str, value: Any, *, symmetry: float = DEFAULT.symmetry) -> np.ndarray:
    """An inertia as blocks (nb, s, s): finite and symmetric, m = nb s.

    Args:
        name: what the caller calls this argument.
        value: dense (m, m), which becomes one block, or equal diagonal blocks (nb, s, s).
        symmetry: largest asymmetry taken for rounding, relative to sqrt(M_ii M_jj).

    Raises:
        InputError: not real and finite numbers, or not square.
        NotSymmetricError: asymmetric above `symmetry`.
    """
    array = as_array(name, value)
    if array.ndim not in (2, 3) or array.shape[-1] != array.shape[-2]:
        raise InputError(
            name, f"{_shape(array)}; expected square (m, m) or square blocks (nb, s, s)"
        )
    check_finite(name, array)
    check_symmetric(name, array, symmetry)
    return array if array.ndim == 3 else array[None]


def check_finite(name: str, array: np.ndarray) -> None:
    """Raises an `InputError` with the index of the first entry that is NaN or infinite."""
    first = _first_nonfinite(array.ravel())
    if first >= 0:
        index = [int(i) for i in np.unravel_index(first, array.shape)]
        raise InputError(
            name, f"contains {array.flat[first]} at {index}; every entry must be a finite number"
        )


def check_symmetric(name: str, array: np.ndarray, tol: float = DEFAULT.symmetry) -> None:
    """Raises a `NotSymmetricError` if a square matrix, or a diagonal block, is not symmetric.

    Indices of blocks are reported as rows and columns of the whole matrix.
    """
    i, j, asymmetry = _largest_asymmetry(array if array.ndim == 3 else array[None])
    if asymmetry > tol:
        raise NotSymmetricError(name, (i, j), asymmetry, tol)


def eigenvalue_range(array: np.ndarray) -> tuple[float, float]:
    """The smallest and largest eigenvalue of a symmetric matrix or of symmetric blocks."""
    values = np.linalg.eigvalsh(array)
    return float(values.min(initial=np.inf)), float(values.max(initial=-np.inf))


def not_positive_definite(name: str, array: np.ndarray) -> NotPositiveDefiniteError:
    """The error to raise once a factorisation of an inertia (or of its blocks) has failed."""
    return NotPositiveDefiniteError(
        name,
        *eigenvalue_range(array),
        advice="every coordinate needs inertia: look for massless bodies, or add armature",
    )


def check_choice(name: str, value: Any, known: tuple[str, ...]) -> None:
    """Refuse a value that is not among the known ones, and list those."""
    if value not in known:
        raise InputError(name, f"is {value!r}; expected one of {', '.join(known)}")


def as_array(name: str, value: Any) -> np.ndarray:
    """An array as C-contiguous float64 of any shape, copied only if it has to be.

    Raises:
        InputError: not real numbers.
    """
    if type(value) is np.ndarray and value.dtype is _FLOAT and value.flags.carray:
        return value
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise InputError(name, f"is not a rectangular array of numbers ({error})") from error
    if array.dtype.kind not in "biuf":
        raise InputError(
            name,
            f"has dtype {array.dtype} (from {type(value).__name__}); expected real numbers in a "
            f"dense array",
        )
    return np.require(array, _FLOAT, ["C", "A", "W"])


def _shape(array: np.ndarray) -> str:
    if array.ndim == 3 and array.shape[0] == 1:  # a dense inertia, kept as one block
        array = array[0]
    if array.ndim == 0:
        return "is a single number"
    if array.ndim == 1:
        return f"has {array.size} entries"
    if array.ndim == 3:
        count, rows, cols = array.shape
        return f"has {count} blocks of {rows} x {cols}"
    return "is " + " x ".join(map(str, array.shape))


def _disagreement(array: np.ndarray, of: tuple[str, np.ndarray] | None, want: str) -> str:
    if of is None:
        return f"{_shape(array)}; expected {want}"
    return f"{_shape(array)} but {of[0]} {_shape(of[1])}; they must agree (expected {want})"


@entry
def _first_nonfinite(flat: np.ndarray) -> int:
    """Writes nothing; returns the index of the first NaN or infinity, -1 if there is none."""
    # Counting without a branch lets the compiler test several entries at a time; comparing
    # with the largest number is false for NaN and raises no floating-point flag.
    bad = 0
    for i in range(flat.size):
        bad += not (abs(flat[i]) <= _LARGEST)
    if bad > 0:
        for i in range(flat.size):
            if not (abs(flat[i]) <= _LARGEST):
                return i
    return -1


@entry
def _largest_asymmetry(blocks: np.ndarray) -> tuple[int, int, float]:
    """Writes nothing; returns where ``blocks`` differ most from their transposes.

    The difference of entries i, j is relative to sqrt(M_ii M_jj), which no choice of units
    changes, or to the entries themselves where that is zero.
    """
    s = blocks.shape[1]
    worst, row, col = 0.0, 0, 0
    for b in range(blocks.shape[0]):
        for i in range(s):
            for j in range(i):
                lower, upper = blocks[b, i, j], blocks[b, j, i]
                if lower == upper:
                    continue
                size = np.sqrt(abs(blocks[b, i, i])) * np.sqrt(abs(blocks[b, j, j]))
                if size == 0.0:
                    size = max(abs(lower), abs(upper))
                # Halved so that entries of opposite sign near the largest number do not
                # overflow.
                relative = 2.0 * (abs(0.5 * lower - 0.5 * upper) / size)
                if relative > worst:
                    worst, row, col = relative, b * s + j, b * s + i
    return row, col, worst
