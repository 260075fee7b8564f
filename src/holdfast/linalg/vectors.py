"""Products and sums of vectors."""

from __future__ import annotations

import numpy as np

from holdfast._jit import fast_kernel, inlined


@inlined
def square(x: float) -> float:
    """Return x x; a power is a loop over the bits of its exponent in a kernel."""
    return x * x


@fast_kernel
def dot(a: np.ndarray, b: np.ndarray) -> float:
    """Return a . b."""
    t = 0.0
    for j in range(a.shape[0]):
        t += a[j] * b[j]
    return t


@fast_kernel
def norm(y: np.ndarray) -> float:
    """Return the Euclidean length of y."""
    return np.sqrt(dot(y, y))


@fast_kernel
def add(t: float, a: np.ndarray, y_inout: np.ndarray) -> None:
    """Add t a to y."""
    for j in range(a.shape[0]):
        y_inout[j] += t * a[j]
