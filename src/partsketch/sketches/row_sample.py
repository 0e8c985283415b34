"""Uniform sample of m rows without replacement, as they stream by: those whose random words are the smallest.

The word of a row depends on seed, stream and row number, so the sample does not depend on the order or the grouping of
the rows, and the sample of a union is found among the samples of its parts. Multiplied by √(n/m) the m rows are an
unbiased sketch: `E[SᵀS] = I`.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from partsketch.common.errors import InputError
from partsketch.common.sketch_law import EVEN_SAMPLE
from partsketch.sketches.accumulator import Accumulator, Columns, FloatArray, IntArray, Stream
from partsketch.sketches.base import Sketch, SketchSpecification, usual_size
from partsketch.sketches.cost import SketchCost
from partsketch.sketches.random import derive_key, random_words

#: Sketch rows per column: how unevenly leverage is spread is not known before the rows are.
ROWS_PER_COLUMN = 10

#: Columns before those of the data: what rows are kept by, and what the sample needs to know of each.
ORDER_COLUMNS = 2


def smallest_rows(rows: FloatArray, count: int) -> FloatArray:
    """Return the rows that come first by their first two columns, in that order."""
    order = np.lexsort((rows[:, 1], rows[:, 0]))[:count]
    return np.ascontiguousarray(rows[order])


class SampleAccumulator(Accumulator):
    """Keeps the rows whose order columns are smallest."""

    def __init__(self, count: int, columns: Columns) -> None:
        self._count, self._columns = count, columns
        # Places that no row has taken come last, so that all matrices have the same shape.
        self._kept = np.zeros((count, ORDER_COLUMNS + columns.width))
        self._kept[:, 0] = np.inf

    @abstractmethod
    def order(self, tile: FloatArray, row_numbers: IntArray) -> FloatArray:
        """Return the order columns of the rows of a tile, 2 × rows."""

    def add(self, tile: FloatArray, row_numbers: IntArray) -> bool:
        """Keep those of a tile that are among the smallest so far."""
        values = tile[: self._columns.width]
        # Rows that are not kept must be looked at as well: a fit may not depend on chance for refusing them.
        if not np.isfinite(values).all():
            return False
        order = self.order(values, row_numbers)
        candidates = np.flatnonzero(order[0] <= self._kept[-1, 0])
        if candidates.size:
            found = np.concatenate([order[:, candidates], values[:, candidates]]).T
            self._kept = smallest_rows(np.concatenate([self._kept, found]), self._count)
        return True

    def finish(self) -> FloatArray:
        """Return order columns and rows."""
        return self._kept


class UniformAccumulator(SampleAccumulator):
    """Orders rows by a random word, held as two whole numbers that a double represents exactly."""

    def __init__(self, specification: SketchSpecification, stream: Stream, columns: Columns) -> None:
        assert specification.size is not None
        assert specification.seed is not None
        super().__init__(specification.size, columns)
        self._key, self._stream = derive_key(specification.seed, specification.kind), stream.number

    def order(self, tile: FloatArray, row_numbers: IntArray) -> FloatArray:
        """Return upper and lower half of each row's word."""
        words = random_words(self._key, self._stream, row_numbers)
        return np.stack(
            [(words >> np.uint64(32)).astype(np.float64), (words & np.uint64(2**32 - 1)).astype(np.float64)]
        )


class SampleSketch(Sketch):
    """What the two ways of sampling share."""

    keeps_rows = True
    is_summable = False

    @abstractmethod
    def scaled(self, specification: SketchSpecification, kept: FloatArray, row_count: int) -> FloatArray:
        """Return the sampled rows times the square roots of their weights."""

    def prepare(self) -> None:
        """Do nothing: samples have no compiled code of their own."""

    def merge(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """Keep the smallest of both."""
        return smallest_rows(np.concatenate([first, second]), first.shape[0])

    def moved(self, matrix: FloatArray, shift: FloatArray) -> FloatArray:
        """Move the columns of the data; what rows are kept by stays."""
        order, rows = matrix[:, :ORDER_COLUMNS], matrix[:, ORDER_COLUMNS:]
        return np.hstack([order, super().moved(rows, shift)])

    def conclude(self, specification: SketchSpecification, matrix: FloatArray, row_count: int) -> FloatArray:
        """Return the sample, scaled so that it is unbiased."""
        assert specification.size is not None
        if row_count < specification.size:
            raise InputError(
                f"sketch_size is {specification.size}, but a partition has only {row_count} rows to sample from: "
                "give a smaller sketch_size or use fewer partitions."
            )
        return self.scaled(specification, matrix, row_count)

    def default_size(self, columns: int) -> tuple[int, str]:
        """Return ten rows per column."""
        return (
            usual_size(columns, ROWS_PER_COLUMN),
            f"ten rows per column to estimate ({columns}): samples of rows depend on how leverage is spread",
        )

    def largest_size(self, row_count: int) -> int | None:
        """Return all rows."""
        return row_count


class RowSample(SampleSketch):
    """m rows, every set of m equally likely, times √(n/m)."""

    kind = "row_sample"
    law = EVEN_SAMPLE
    cost = SketchCost(lambda m, q, p: 0.0, by_tile=True)

    def accumulator(self, specification: SketchSpecification, stream: Stream, columns: Columns) -> Accumulator:
        """Return an accumulator that keeps m rows."""
        return UniformAccumulator(specification, stream, columns)

    def scaled(self, specification: SketchSpecification, kept: FloatArray, row_count: int) -> FloatArray:
        """Multiply by √(n/m)."""
        return np.asarray(np.ascontiguousarray(kept[:, ORDER_COLUMNS:]) * np.sqrt(row_count / kept.shape[0]))

    def chances(self, size: int, row_count: int, ones: FloatArray | None) -> FloatArray:
        """Return m/n for all."""
        return np.full(size, min(1.0, size / row_count))
