"""Residuals of a dense LCP in twice the working precision."""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

import numpy as np

from holdfast._jit import entry
from holdfast.linalg.compensated import add_product


@entry
def evaluate(
    F: np.ndarray, e: np.ndarray, z: np.ndarray, w_out: np.ndarray, size_out: np.ndarray
) -> None:
    """Fill w_out with F z + e, rounded once, and size_out with |F| |z| + |e|."""
    n = e.shape[0]
    for i in range(n):
        high, low = e[i], 0.0
        size = abs(e[i])
        for j in range(n):
            if z[j] != 0.0:
                high, low = add_product(high, low, F[i, j], z[j])
                size += abs(F[i, j] * z[j])
        w_out[i] = high + low
        size_out[i] = size
