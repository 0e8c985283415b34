"""Gaussian sketch: Z = S A with independent entries N(0, 1/m) in S, the one with an exact theory."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from partsketch.common.linalg.blas import padded_width
from partsketch.common.sketch_law import GAUSSIAN
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
from partsketch.sketches.kernels.products import (
    add_dense_rows,
    add_product,
    add_sparse_rows,
    multiply_kept,
    product_address,
)
from partsketch.sketches.random import COLUMNS_PER_COUNTER, derive_key
from partsketch.sketches.system_random import fill_system_normals

#: Multiplications of one product, at most: below a million the library takes operands as they are, and is a third
#: quicker than when it packs them first. Sketch rows and data rows of one product are cut accordingly; they stay in the
#: second-level cache from being made to being used.
_PRODUCT_NUMBERS = 900_000
_MOST_STRIP_ROWS = 64
_MOST_PRODUCT_ROWS = 256

_OF_THREAD = threading.local()


def _scratch(count: int) -> FloatArray:
    """Return room for the random numbers of one product, the same for all sketches that a thread makes."""
    held: FloatArray | None = getattr(_OF_THREAD, "numbers", None)
    if held is None or held.size < count:
        held = _OF_THREAD.numbers = np.empty(count)
    return held[:count]


class GaussianAccumulator(Accumulator):
    """Adds S A to an m×q matrix, a few hundred rows of A at a time, always the same ones however rows arrive."""

    def __init__(self, specification: SketchSpecification, stream: int, columns: Columns) -> None:
        assert specification.size is not None
        self._size = specification.size
        self._scale = 1.0 / np.sqrt(specification.size)
        self._columns = columns
        # The padding of a tile is zero; products of whole vector registers are quicker than narrower ones.
        self._padded = padded_width(columns.width)
        self._total = np.zeros(specification.size * self._padded)
        self._strip = _strip_rows(self._size)
        self._each = _product_rows(self._strip, self._padded)
        self._filled = 0
        self.takes_rows = specification.seed is not None
        if specification.seed is not None:
            self._given = (
                product_address(),
                *derive_key(specification.seed, specification.kind),
                np.uint64(stream),
                self._scale,
                self._size,
                self._strip,
                self._padded,
            )
            self._kept = (self._total, np.zeros(self._each * self._padded), np.empty(self._each, dtype=np.int64))

    @property
    def _work(self) -> tuple[Any, ...]:
        return (*self._given, _scratch(self._strip * self._each), *self._kept)

    def add(self, tile: FloatArray, row_numbers: IntArray) -> bool:
        """Take a tile."""
        rows = np.ascontiguousarray(tile.T)
        if self.takes_rows:
            nothing = np.empty((row_numbers.size, 0))
            self._filled = add_dense_rows(self._work, self._filled, row_numbers, rows, nothing, np.empty(0), 0)
        else:
            self._add_private(rows.reshape(-1), row_numbers.size)
        kept = rows[row_numbers.size - min(self._filled, row_numbers.size) :]
        return self._is_finite_so_far() and bool(np.isfinite(kept).all())

    def add_rows(self, rows: DenseRows | SparseRows) -> None:
        """Take rows where they lie."""
        given = (self._work, self._filled, rows.row_numbers, rows.features, rows.targets, rows.roots)
        if isinstance(rows, DenseRows):
            self._filled = add_dense_rows(*given, int(self._columns.intercept))
        else:
            self._filled = add_sparse_rows(*given, int(self._columns.intercept), self._columns.features)

    def _is_finite_so_far(self) -> bool:
        return bool(np.isfinite(self._total).all())

    def _flush(self) -> None:
        if self._filled:
            multiply_kept(self._work, self._filled)
            self._filled = 0

    def is_finite(self) -> bool:
        """Tell whether all that was added is finite: every row has a share in every row of the sketch."""
        self._flush()
        return self._is_finite_so_far()

    def _add_private(self, tile: FloatArray, rows: int) -> None:
        """Add the product with numbers that come from the operating system and are forgotten."""
        scratch = _scratch(self._strip * self._each)
        for begin in range(0, rows, self._each):
            taken = min(self._each, rows - begin)
            for first in range(0, self._size, self._strip):
                count = min(self._strip, self._size - first)
                padded = -(-count // COLUMNS_PER_COUNTER) * COLUMNS_PER_COUNTER
                numbers = scratch[: padded * taken]
                fill_system_normals(self._scale, numbers.reshape(padded, taken))
                places = (tile, begin * self._padded, self._padded, numbers, self._total, first * self._padded)
                add_product(product_address(), count, taken, *places)
        scratch.fill(0.0)

    def finish(self) -> FloatArray:
        """Return S A."""
        self._flush()
        return self._total.reshape(self._size, self._padded)[:, : self._columns.width].copy()

    def restart(self) -> bool:
        """Begin with zeros again."""
        self._total.fill(0.0)
        return True


def _strip_rows(size: int) -> int:
    """Return how many sketch rows are made at once: whole counters, strips nearly alike."""
    strips = -(-size // _MOST_STRIP_ROWS)
    return -(-size // (strips * COLUMNS_PER_COUNTER)) * COLUMNS_PER_COUNTER


def _product_rows(strip: int, width: int) -> int:
    """Return how many data rows one product takes."""
    rows = _MOST_PRODUCT_ROWS
    while rows > 32 and rows * strip * width > _PRODUCT_NUMBERS:
        rows //= 2
    return rows


class GaussianSketch(Sketch):
    """Dense Gaussian projection; the number at (sketch row, data row) depends on seed, stream and the two numbers."""

    kind = "gaussian"
    law = GAUSSIAN
    cost = SketchCost(lambda m, q, p: 2 * m * q + m, is_dense=True, buffer_numbers=2**14)
    can_be_private = True
    # Products of few rows have other bits for another layout, so there is one.
    wants_rows_from = 0

    def accumulator(self, specification: SketchSpecification, stream: Stream, columns: Columns) -> Accumulator:
        """Return an empty m×q accumulator."""
        return GaussianAccumulator(specification, stream.number, columns)
