"""Sparse sign sketch: every row of the data is added, with random signs and divided by √s, to s rows of the sketch."""

from __future__ import annotations

import numpy as np

from partsketch.common.linalg.lanes import LANES
from partsketch.common.memory import aligned_zeros, fresh
from partsketch.common.sign_sums import SignSums, most_in_one_place
from partsketch.common.sketch_law import LIKE_GAUSSIAN
from partsketch.sketches.accumulator import (
    Accumulator,
    Columns,
    DenseRows,
    FloatArray,
    IntArray,
    SparseRows,
    Stream,
)
from partsketch.sketches.base import Sketch, SketchSpecification
from partsketch.sketches.cost import SketchCost
from partsketch.sketches.kernels.scatter import (
    scatter_dense,
    scatter_dense_once,
    scatter_sparse,
    scatter_tile,
)
from partsketch.sketches.random import derive_key

#: Non-zeros per row of the data: the customary number, at which the sketch is hardly told from a Gaussian one.
DEFAULT_SPARSITY = 8
#: The part of all sketches that may have a fuller row than is reckoned with.
_FULLER = 1e-13


def random_numbers(specification: SketchSpecification, stream: int) -> tuple[np.uint64, np.uint64, np.uint64]:
    """Return key and stream of the random numbers of a sketch."""
    assert specification.seed is not None
    return (*derive_key(specification.seed, specification.kind), np.uint64(stream))


class ScatterAccumulator(Accumulator):
    """Adds each row to a few rows of the sketch; the columns are held in the order [features, targets, 1]."""

    takes_rows = True

    def __init__(self, specification: SketchSpecification, sparsity: int, stream: Stream, columns: Columns) -> None:
        assert specification.size is not None
        self._columns = columns
        self._size, self._sparsity = specification.size, sparsity
        self._groups = -(-columns.width // LANES)
        # Several targets per row: one group of columns at a time, which stays in the cache; one target: row by row.
        strides = (LANES * self._size, LANES) if sparsity > 1 else (LANES, LANES * self._groups)
        self._total = aligned_zeros((self._groups * LANES * self._size,))
        self._held = (self._total, *strides, self._groups)
        self._random = random_numbers(specification, stream.number)

    def add(self, tile: FloatArray, row_numbers: IntArray) -> bool:
        """Add a tile."""
        kind = (self._held, self._random, self._size, self._sparsity)
        scatter_tile(*kind, row_numbers, tile, self._columns.width, int(self._columns.intercept))
        return self.is_finite()

    def add_rows(self, rows: DenseRows | SparseRows) -> None:
        """Add rows where they lie."""
        kind = (self._held, self._random, self._size)
        given = (rows.row_numbers, rows.features, rows.targets, rows.roots, self._columns.intercept)
        if isinstance(rows, DenseRows) and self._sparsity == 1:
            scatter_dense_once(*kind, *given)
        elif isinstance(rows, DenseRows):
            scatter_dense(*kind, self._sparsity, *given)
        else:
            scatter_sparse(*kind, self._sparsity, *given, self._columns.features)

    def is_finite(self) -> bool:
        """Tell whether all that was added is finite: what is not cannot hide in a sum."""
        return bool(np.isfinite(self._total).all())

    def finish(self) -> FloatArray:
        """Return S A."""
        if self._sparsity == 1:
            matrix = self._total.reshape(self._size, -1)
        else:
            matrix = self._total.reshape(self._groups, self._size, LANES).swapaxes(0, 1).reshape(self._size, -1)
        return in_public_order(matrix, self._columns, 1.0 / np.sqrt(self._sparsity))

    def restart(self) -> bool:
        """Begin with zeros again."""
        self._total.fill(0.0)
        return True


def in_public_order(matrix: FloatArray, columns: Columns, scale: float) -> FloatArray:
    """Return scale · [features, targets, 1, padding] as [1, features, targets]."""
    first, width = int(columns.intercept), columns.width
    out = fresh((matrix.shape[0], width))
    np.multiply(matrix[:, : width - first], scale, out=out[:, first:])
    np.multiply(matrix[:, width - first : width], scale, out=out[:, :first])
    return out


def scattered_ones(size: int, sparsity: int, row_count: int) -> SignSums:
    """Return what bounds the sum of squares of ones that were added to `sparsity` of `size` rows each."""
    fullest = most_in_one_place(row_count, min(1.0, sparsity / size), size, _FULLER)
    return SignSums(fullest / sparsity, size, 1.0 / np.sqrt(sparsity))


def alone(size: int, places: int, row_count: int) -> float:
    """Return how many rows, each in so many places of a sketch, are expected to have one for themselves, at most."""
    return row_count * min(1.0, places * (1 - places / size) ** max(row_count - 1, 0))


class SparseSignSketch(Sketch):
    """S with s entries ±1/√s in every column, at distinct rows; all a function of seed, stream and row number."""

    kind = "sparse_sign"
    law = LIKE_GAUSSIAN
    cost = SketchCost(lambda m, q, p: 2 * DEFAULT_SPARSITY * q)
    default_sparsity = DEFAULT_SPARSITY

    def accumulator(self, specification: SketchSpecification, stream: Stream, columns: Columns) -> Accumulator:
        """Return an empty m×q accumulator."""
        assert specification.sparsity is not None
        return ScatterAccumulator(specification, specification.sparsity, stream, columns)

    def plain_rows(self, size: int, row_count: int) -> float:
        """Return how many rows are expected to have at least one row of the sketch for themselves, from above."""
        return alone(size, min(DEFAULT_SPARSITY, size), row_count)

    def sign_sums(self, size: int, sparsity: int | None, positions: int | None, row_count: int) -> SignSums:
        """Return the share of the fullest row of the sketch."""
        return scattered_ones(size, sparsity or DEFAULT_SPARSITY, row_count)
