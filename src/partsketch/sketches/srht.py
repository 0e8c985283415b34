"""Subsampled randomised Hadamard transform: S = √(P/m) · (m rows of the orthogonal H) · signs, P a power of two.

The entry of S at (sketch row, data row) is `± (−1)^popcount(h & position) / √m`: it depends on seed, stream and the
row's position in its stream alone. The m rows h are drawn without replacement from P, the next power of two of the
number of positions; rows that are padded, dropped, or of other partitions are zeros. `E[SᵀS] = I` exactly.
"""

from __future__ import annotations

import math
from functools import cache, lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from partsketch.common.errors import InputError
from partsketch.common.linalg.lanes import LANES
from partsketch.common.memory import aligned_zeros
from partsketch.common.sign_sums import SignSums
from partsketch.common.sketch_law import HADAMARD
from partsketch.sketches.accumulator import (
    Accumulator,
    Columns,
    DenseRows,
    FloatArray,
    IntArray,
    SparseRows,
    Stream,
    dense_rows,
)
from partsketch.sketches.base import Sketch, SketchSpecification
from partsketch.sketches.cost import SketchCost
from partsketch.sketches.kernels.hadamard import add_dense, add_sparse, add_tile, fill_signs, flush_block
from partsketch.sketches.random import derive_key, random_words
from partsketch.sketches.sparse_sign import in_public_order

#: Numbers in a block that is transformed: half a megabyte leaves room for the sketch in the second-level cache.
_BLOCK_NUMBERS = 2**16

#: Blocks may not straddle the segments of a partition, which have 2¹⁶ rows.
_MOST_BITS = 16

#: Numbers of the draws of sampled rows, far from the positions of data rows, whose words are the signs.
_FIRST_DRAW = 2**62


def padded_rows(row_count: int) -> int:
    """Return P, the smallest power of two that is not below the row count."""
    if row_count < 1:
        raise InputError(f"row_count is {row_count}: a Hadamard transform needs at least one row.")
    return 1 << (row_count - 1).bit_length()


@cache
def _key(seed: int) -> tuple[np.uint64, np.uint64]:
    if not 0 <= seed < 2**64:
        raise InputError(f"seed is {seed}: give a whole number from 0 to 2**64 - 1.")
    return derive_key(seed, "srht")


def srht_signs(row_count: int, seed: int, stream: int = 0) -> FloatArray:
    """Return the random sign of every row, ±1, a function of seed, stream and the row's position."""
    out = np.empty(row_count)
    numbers = np.arange(row_count, dtype=np.int64)
    fill_signs((*_key(seed), np.uint64(stream)), numbers, 0, np.empty(row_count + 6, np.uint64), out)
    return out


# Every segment of a partition asks for the same rows.
@lru_cache(maxsize=256)
def srht_sampled_rows(row_count: int, size: int, seed: int, stream: int = 0) -> NDArray[np.int64]:
    """Return which m of the P rows of the Hadamard matrix are kept, drawn without replacement, in order."""
    padded = padded_rows(row_count)
    if not 1 <= size <= padded:
        raise InputError(f"sketch_size is {size}: an SRHT of {row_count} rows has from 1 to {padded} rows.")
    # Numbers below P are drawn one after another, and those drawn before are passed over. P is a power of two, so
    # that the low bits of a word are exactly uniform.
    kept: NDArray[np.int64] = np.empty(0, dtype=np.int64)
    drawn = 0
    while kept.size < size:
        numbers = np.arange(drawn, drawn + 2 * size, dtype=np.int64) + _FIRST_DRAW
        words = (random_words(_key(seed), stream, numbers) & np.uint64(padded - 1)).astype(np.int64)
        everything = np.concatenate([kept, words])
        kept = everything[np.sort(np.unique(everything, return_index=True)[1])]
        drawn += 2 * size
    rows = np.sort(kept[:size])
    rows.flags.writeable = False
    return rows


class HadamardAccumulator(Accumulator):
    """Puts rows, with their signs, into a block and adds the block's transform to the sampled rows."""

    takes_rows = True

    def __init__(self, specification: SketchSpecification, stream: Stream, columns: Columns) -> None:
        assert specification.size is not None
        assert specification.seed is not None
        assert stream.row_count is not None
        self._columns, self._size = columns, specification.size
        random = (*_key(specification.seed), np.uint64(stream.number))
        kept = srht_sampled_rows(stream.row_count, self._size, specification.seed, stream.number)
        # An odd number of cache lines per row: powers of two of rows then do not compete for the same few places.
        self._stride = LANES * (-(-columns.width // LANES) | 1)
        bits = min(self._size.bit_length(), (_BLOCK_NUMBERS // self._stride).bit_length() - 1, _MOST_BITS)
        self._bits = max(0, min(bits, padded_rows(stream.row_count).bit_length() - 1))
        self._total = aligned_zeros((self._size * self._stride,))
        self._block = aligned_zeros((self._stride << self._bits,))
        self._state = np.array([-1, 0], dtype=np.int64)
        self._work = (self._total, kept, self._block, self._bits, self._stride)
        rows = 1 << self._bits
        self._taking = (self._state, np.empty(rows + 6, np.uint64), np.empty(rows), random, stream.first_row)

    def add(self, tile: FloatArray, row_numbers: IntArray) -> bool:
        """Take a tile."""
        width, intercept = self._columns.width, int(self._columns.intercept)
        add_tile(self._work, self._taking, row_numbers, tile, width, intercept)
        return bool(np.isfinite(tile[:width]).all())

    def add_rows(self, rows: DenseRows | SparseRows) -> None:
        """Take rows where they lie."""
        given = (rows.row_numbers, rows.roots, rows.features, rows.targets, self._columns.intercept)
        if isinstance(rows, DenseRows):
            add_dense(self._work, self._taking, *given)
        else:
            add_sparse(self._work, self._taking, *given, self._columns.features)

    def _flush(self) -> None:
        if self._state[0] >= 0:
            flush_block(self._work, self._state[0], self._state[1])
            self._state[0] = -1

    def is_finite(self) -> bool:
        """Tell whether all that was added is finite: every sampled row has a share in every row."""
        self._flush()
        return bool(np.isfinite(self._total).all())

    def finish(self) -> FloatArray:
        """Return S A."""
        self._flush()
        total = self._total.reshape(self._size, self._stride)
        return in_public_order(total, self._columns, 1.0 / np.sqrt(self._size))

    def restart(self) -> bool:
        """Begin with zeros again; what is left in the block is overwritten or cleared before it is used."""
        self._total.fill(0.0)
        return True


class HadamardSketch(Sketch):
    """Random signs, Hadamard transform, m rows sampled without replacement."""

    kind = "srht"
    law = HADAMARD
    cost = SketchCost(lambda m, q, p: q * math.log2(max(2, p)))
    needs_row_count = True
    is_summable = False

    def accumulator(self, specification: SketchSpecification, stream: Stream, columns: Columns) -> Accumulator:
        """Return an empty m×q accumulator."""
        return HadamardAccumulator(specification, stream, columns)

    def largest_size(self, row_count: int) -> int | None:
        """Return P: no more rows of the transform exist."""
        return padded_rows(row_count)

    def sign_sums(self, size: int, sparsity: int | None, positions: int | None, row_count: int) -> SignSums | None:
        """Return P/m as the share: the rows of the transform are orthogonal, of squared length P/m."""
        if positions is None:
            return None
        return SignSums(padded_rows(max(positions, row_count)) / size, row_count, 1.0)


def srht(matrix: ArrayLike, size: int, seed: int, stream: int = 0) -> FloatArray:
    """Return `S A` for rows in memory, S being that of `srht_matrix`.

    Parameters
    ----------
    matrix : array of shape (rows, columns)
        A.
    size : int
        Rows m of the sketch.
    seed, stream : int
        Which S.

    Returns
    -------
    array of shape (m, columns)
        The sketch.
    """
    rows = np.asarray(matrix, dtype=np.float64)
    if rows.ndim != 2:
        raise InputError(f"matrix has shape {rows.shape}: pass a table of rows and columns.")
    specification = SketchSpecification("srht", size, seed)
    columns = Columns(rows.shape[1], 0, False)
    accumulator = HadamardAccumulator(specification, Stream(stream, 0, rows.shape[0]), columns)
    accumulator.add_rows(dense_rows(rows))
    return accumulator.finish()
