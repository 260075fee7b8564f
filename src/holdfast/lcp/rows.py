"""Sparse contact rows: a contact touches two bodies, however many there are."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from holdfast.errors import InputError
from holdfast.lcp.checks import as_array, as_matrix

_DENSE = np.empty((0, 0), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class BlockRows:
    """Rows that are zero outside a few blocks of coordinates.

    Row i has the entries ``values[i, k]`` in the s coordinates of block ``blocks[i, k]``, that is
    in columns ``s * blocks[i, k] .. s * blocks[i, k] + s - 1``. A contact between two free rigid
    bodies has K = 2 blocks of s = 6. A contact with the world has one body: give its second block
    zeros as values and any body number. A block named twice counts twice (its entries add up).

    Attributes:
        blocks: (n, K) block numbers.
        values: (n, K, s) entries.

    Example:
        Two bodies; contact 0 between them, contact 1 between body 1 and the world:

        >>> import numpy as np
        >>> rows = BlockRows(blocks=[[0, 1], [1, 0]], values=np.ones((2, 2, 6)))
        >>> rows.values[1, 1] = 0.0
        >>> rows.dense(12).shape
        (2, 12)
    """

    blocks: np.ndarray
    values: np.ndarray
    offsets: np.ndarray = field(init=False, repr=False)  # first coordinate of each block
    width: int = field(init=False, repr=False)  # coordinates that the rows need at least

    def __post_init__(self) -> None:
        values = as_array("values", self.values)
        blocks = np.asarray(self.blocks)
        if values.ndim != 3:
            raise InputError("values", f"has shape {values.shape}; expected (n, K, s)")
        if blocks.size == 0:
            blocks = blocks.reshape(values.shape[:2]).astype(np.int64)
        if blocks.shape != values.shape[:2]:
            raise InputError(
                "blocks",
                f"has shape {blocks.shape} but values has shape {values.shape}; "
                "the first two dimensions must agree",
            )
        if blocks.dtype.kind not in "iu":
            raise InputError("blocks", f"has dtype {blocks.dtype}; expected integers")
        if blocks.size and blocks.min() < 0:
            i, k = np.argwhere(blocks < 0)[0]
            raise InputError(
                "blocks",
                f"is {blocks[i, k]} at [{i}, {k}]; block numbers start at 0 (for a contact with "
                "the world name any block and give it zeros as values)",
            )
        s = values.shape[2]
        offsets = np.ascontiguousarray(blocks, dtype=np.int64) * s
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "blocks", blocks)
        object.__setattr__(self, "offsets", offsets)
        object.__setattr__(self, "width", int(offsets.max(initial=-s)) + s)

    @property
    def shape(self) -> tuple[int, int, int]:
        """(n, K, s)."""
        return self.values.shape

    def dense(self, m: int) -> np.ndarray:
        """The rows as a dense (n, m) array."""
        n, K, s = self.values.shape
        return dense_rows(self.values.reshape(n, K * s), self.offsets, m)

    @classmethod
    def from_sparse(cls, rows: Any, s: int) -> BlockRows:
        """The blocks of size s that a SciPy sparse matrix touches."""
        if rows.dtype.kind not in "biuf":
            raise InputError("N", f"has dtype {rows.dtype}; expected real numbers")
        csr = rows.tocsr().copy()
        csr.sum_duplicates()  # also sorts the columns of each row
        n = csr.shape[0]
        row = np.repeat(np.arange(n), np.diff(csr.indptr))
        block = csr.indices // s
        new = np.ones(row.size, dtype=bool)
        new[1:] = (np.diff(row) != 0) | (np.diff(block) != 0)
        count = np.cumsum(new)  # blocks begun so far, over all rows
        begun = np.concatenate([[0], count])[csr.indptr[:-1]]
        slot = count - 1 - begun[row]
        K = int(slot.max(initial=0)) + 1
        blocks = np.zeros((n, K), dtype=np.int64)
        values = np.zeros((n, K, s))
        blocks[row, slot] = block
        values[row, slot, csr.indices % s] = csr.data
        return cls(blocks, values)


def dense_rows(values: np.ndarray, offsets: np.ndarray, m: int) -> np.ndarray:
    """Rows as the kernels take them, see `split_rows`, as a dense (n, m) array."""
    if not offsets.size and values.shape[1] == m:
        return values
    n, K = offsets.shape
    rows = np.zeros((n, m))
    if not offsets.size:
        return rows
    columns = offsets[:, :, None] + np.arange(values.shape[1] // K)
    np.add.at(rows, (np.arange(n)[:, None, None], columns), values.reshape(columns.shape))
    return rows


def split_rows(
    N: Any, m: int, s: int, of: tuple[str, np.ndarray] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Rows as the kernels take them: values (n, width) and offsets, empty for dense rows.

    Args:
        N: dense (n, m) array, `BlockRows`, or a SciPy sparse matrix.
        m: number of coordinates.
        s: block size of M.
        of: name and array that m comes from, for messages.
    """
    if not isinstance(N, BlockRows):
        if type(N) is np.ndarray or not hasattr(N, "tocsr"):
            return as_matrix("N", N, cols=m, of=of), _DENSE
        if N.shape[1] != m:
            raise InputError(
                "N", f"is {N.shape[0]} x {N.shape[1]} but v has {m} entries; they must agree"
            )
        N = BlockRows.from_sparse(N, s if 0 < s < m else 1)
    n, K, width = N.shape
    if N.width > m:
        raise InputError(
            "N",
            f"has blocks of {width} coordinates up to number {N.width // width - 1} "
            f"but v has {m} entries; they must agree",
        )
    if n == 0 or K == 0:
        return np.zeros((n, m)), _DENSE
    return N.values.reshape(n, K * width), N.offsets
