"""The exact summary: the triangular factor R of a QR decomposition, RᵀR = AᵀA, at the speed of a Gram matrix.

Householder QR is stable but slow on tall blocks, and it knows a column only to the rounding of its largest entries; the
Gram matrix is fast but squares the condition number. The accumulator takes three ways, one after another, each only
when the one before cannot be trusted; a tile is still in memory when the decision about it falls, so one pass over the
rows is enough in every case.

1. The plain Gram matrix of the rows where they lie, while no column is badly explained by the others (variance
   inflation factors up to 10⁴, so that at most four of sixteen digits are lost).
2. The same of columns from which a value in their middle was taken off, if there is an intercept. A year, an identity
   number or a time stamp then is a column like any other: its location does not reach the sums of products.
3. Sums of products without rounding (`gram_slices.py`), kept with twice the digits of a double.

What travels is the Gram matrix, in units that are powers of two, with the values taken off; merging is adding. The
factor is made once, at the end, with twice the digits where the Gram matrix needs them.
"""

from __future__ import annotations

import numpy as np

from partsketch.common.linalg.blas import WIDEST_KERNEL
from partsketch.common.linalg.column_kernels import column_addresses
from partsketch.sketches.accumulator import Accumulator, Columns, FloatArray, Stream, dense_rows
from partsketch.sketches.base import Sketch, SketchSpecification
from partsketch.sketches.cost import SketchCost
from partsketch.sketches.first_tiles import ask_for_kernels
from partsketch.sketches.gram import Products
from partsketch.sketches.triangular_accumulator import TriangularAccumulator


class TriangularSketch(Sketch):
    """The factor R of all rows: a sketch of q rows without distortion."""

    kind = "triangular"
    is_random = False
    cost = SketchCost(lambda m, q, p: q * (q + 1))
    # The kernel for few columns wants columns, that for many wants rows.
    row_tiles_from = wants_rows_from = WIDEST_KERNEL + 1
    # It takes off values only where they matter, and knows them itself.
    centres_itself = True
    takes_codes = True

    def accumulator(self, specification: SketchSpecification, stream: Stream, columns: Columns) -> Accumulator:
        """Return an empty accumulator; rows of every stream are treated alike."""
        return TriangularAccumulator(columns.width, columns.targets, columns.intercept)

    def prepare(self) -> None:
        """Load the compiled code."""
        ask_for_kernels()
        rows = np.random.default_rng(0).normal(size=(12, 4))
        accumulator = TriangularAccumulator(4)
        accumulator.add_dense_tiles(dense_rows(rows, 1), 6)
        columns = np.ascontiguousarray(rows.T)
        accumulator.add_columns(column_addresses(columns), np.zeros(4, dtype=np.int64), 1, 12)
        accumulator.add(columns, np.arange(12))

    def merge(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """Add."""
        if first.shape == second.shape and len(first) == first.shape[1] + 1 and (first[0] == second[0]).all():
            # Nearly every time: the same units, and doubles are enough. One pass over what may come by the thousand.
            total = first + second
            total[0] = first[0]
            if (np.diagonal(total, -1) > 0).all():
                return total
        return Products.read(first).plus(Products.read(second)).written()

    def moved(self, matrix: FloatArray, shift: FloatArray) -> FloatArray:
        """Return the sums of products of columns to which multiples of the ones were added."""
        return Products.read(matrix).moved(shift).written()

    def conclude(self, specification: SketchSpecification, matrix: FloatArray, row_count: int) -> FloatArray:
        """Factor the sums of products."""
        return Products.read(matrix).factor(matrix.shape[1])[0]

    def concluded_rows(
        self, specification: SketchSpecification, matrix: FloatArray, row_count: int, stream: int = 0
    ) -> tuple[FloatArray, FloatArray | None]:
        """Factor the sums of products, with all digits."""
        return Products.read(matrix).factor(matrix.shape[1])
