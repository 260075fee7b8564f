"""Parts of an array as arrays, at no cost in kernels.

Numba's slices mind negative and too large bounds, and `reshape` looks at strides and sizes at run
time, fifty times longer than this takes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import type_callable

from holdfast._lowering import Parts, in_parts, take_apart


def vector(array: np.ndarray, begin: int, size: int) -> np.ndarray:
    """Return so many entries of an array, from one on."""
    return array[begin : begin + size]


def part(array: np.ndarray, begin: int, rows: int, columns: int) -> np.ndarray:
    """Return so many rows and columns of an array, from an entry on."""
    return array[begin : begin + rows * columns].reshape(rows, columns)


def blocks(array: np.ndarray, begin: int, count: int, rows: int, columns: int) -> np.ndarray:
    """Return so many blocks of rows and columns of an array, from an entry on."""
    return array[begin : begin + count * rows * columns].reshape(count, rows, columns)


@type_callable(vector)
def _type_of_vector(context: Any) -> Any:
    return lambda array, begin, size: types.Array(array.dtype, 1, "C")


@type_callable(part)
def _type_of_part(context: Any) -> Any:
    return lambda array, begin, rows, columns: types.Array(array.dtype, 2, "C")


@type_callable(blocks)
def _type_of_blocks(context: Any) -> Any:
    return lambda array, begin, count, rows, columns: types.Array(array.dtype, 3, "C")


@in_parts(vector)
@in_parts(part)
@in_parts(blocks)
def _view(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Write all three: an array is an address and a shape."""
    begin, *shape = (
        context.cast(builder, each, kind, types.int64)
        for each, kind in zip(args[1:], signature.args[1:], strict=True)
    )
    data = take_apart(builder, signature.args[0], args[0]).parts[0]
    return Parts(signature.return_type, [builder.gep(data, [begin]), *shape])
