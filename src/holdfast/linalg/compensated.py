"""Dot products in twice the working precision, for residuals that can be trusted.

A residual is a small difference of large numbers. Computed in working precision it shows
mostly its own rounding, and a solver that checks itself that way certifies noise. Here every
product is split exactly into a rounded value and its error, and every sum into a rounded sum
and its error (Ogita, Rump and Oishi, "Accurate sum and dot product", 2005), so that a residual
is as good as if it had been computed with 106 bits and rounded once.
"""

# pyright: reportAttributeAccessIssue=false, reportRedeclaration=false, reportCallIssue=false
# (Numba's configuration and intrinsics have no types.)

from __future__ import annotations

from typing import Any

from numba import config, types
from numba.extending import intrinsic

from holdfast._jit import kernel

if config.DISABLE_JIT:

    def product_error(a: float, b: float, p: float) -> float:
        """Return a b - p exactly, for p the rounded product (Veltkamp's splitting)."""
        s = 134217729.0 * a  # 2^27 + 1 splits 53 bits into halves whose products are exact
        a_high = s - (s - a)
        a_low = a - a_high
        s = 134217729.0 * b
        b_high = s - (s - b)
        b_low = b - b_high
        return a_low * b_low - (((p - a_high * b_high) - a_low * b_high) - a_high * b_low)

else:

    @intrinsic
    def product_error(typingctx: Any, a: Any, b: Any, p: Any) -> Any:
        """Return a b - p exactly, for p the rounded product (one fused multiply-add)."""
        signature = types.float64(types.float64, types.float64, types.float64)

        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            x, y, z = args
            return builder.fma(x, y, builder.fneg(z))

        return signature, codegen


@kernel
def add_product(high: float, low: float, a: float, b: float) -> tuple[float, float]:
    """Return the unevaluated sum high + low with the exact product a b added to it."""
    p = a * b
    e = product_error(a, b, p)
    s = high + p
    t = s - high
    return s, low + (e + ((high - (s - t)) + (p - t)))
