"""Gaussian sketch: Z = S A with independent entries N(0, 1/m) in S, the one with an exact theory."""

from __future__ import annotations

from functools import cache

import numpy as np

from partsketch.blas import padded_width
from partsketch.sketches.base import Accumulator, Columns, FloatArray, IntArray, Sketch, SketchSpecification, Stream
from partsketch.sketches.counter_random import COLUMNS_PER_COUNTER, derive_key
from partsketch.sketches.multiplying import add_gaussian, add_product, product_address
from partsketch.sketches.system_random import fill_system_normals

#: Multiplications of one product, at most: below a million the library takes operands as they are, and is a third
#: quicker than when it packs them first. Sketch rows and data rows of one product are cut accordingly; they stay in the
#: second-level cache from being made to being used.
_PRODUCT_NUMBERS = 900_000
_MOST_STRIP_ROWS = 64
_MOST_PRODUCT_ROWS = 256


@cache
def _key(seed: int) -> tuple[np.uint64, np.uint64]:
    return derive_key(seed, "gaussian")


class GaussianAccumulator(Accumulator):
    """Adds S_tile A_tile to an m×q matrix."""

    def __init__(self, specification: SketchSpecification, stream: int, width: int) -> None:
        assert specification.size is not None
        self._size = specification.size
        self._key = None if specification.seed is None else _key(specification.seed)
        self._stream = stream
        self._scale = 1.0 / np.sqrt(specification.size)
        self._width = width
        # The padding of a tile is zero; products of whole vector registers are quicker than narrower ones.
        self._padded = padded_width(width)
        self._total = np.zeros(specification.size * self._padded)
        self._strip = _strip_rows(self._size)
        self._each = _product_rows(self._strip, self._padded)
        self._numbers = np.empty(self._strip * self._each)

    def add(self, tile: FloatArray, row_numbers: IntArray) -> bool:
        """Add the product of this tile."""
        flat = tile.T.reshape(-1)
        if self._key is None:
            self._add_private(flat, row_numbers.size)
        else:
            add_gaussian(
                product_address(),
                *self._key,
                np.uint64(self._stream),
                row_numbers,
                self._scale,
                self._size,
                self._strip,
                self._each,
                flat,
                self._padded,
                self._numbers,
                self._total,
            )
        return bool(np.isfinite(self._total).all())

    def _add_private(self, tile: FloatArray, rows: int) -> None:
        """Add the product with numbers that come from the operating system and are forgotten."""
        for begin in range(0, rows, self._each):
            taken = min(self._each, rows - begin)
            for first in range(0, self._size, self._strip):
                count = min(self._strip, self._size - first)
                padded = -(-count // COLUMNS_PER_COUNTER) * COLUMNS_PER_COUNTER
                numbers = self._numbers[: padded * taken]
                fill_system_normals(self._scale, numbers.reshape(padded, taken))
                places = (tile, begin * self._padded, self._padded, numbers, self._total, first * self._padded)
                add_product(product_address(), count, taken, *places)

    def finish(self) -> FloatArray:
        """Return S A."""
        return np.ascontiguousarray(self._total.reshape(self._size, self._padded)[:, : self._width])


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
    is_random = True
    has_exact_theory = True
    can_be_private = True
    # Products of few rows have other bits for another layout, so there is one.
    wants_rows = True

    def accumulator(self, specification: SketchSpecification, stream: Stream, columns: Columns) -> Accumulator:
        """Return an empty m×q accumulator."""
        return GaussianAccumulator(specification, stream.number, columns.width)

    def prepare(self) -> None:
        """Load the generator."""
        GaussianAccumulator(SketchSpecification(self.kind, 2, 0), 0, 1).add(
            np.zeros((COLUMNS_PER_COUNTER, 1)), np.zeros(1, dtype=np.int64)
        )

    def merge(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """Add: S = [S₁ S₂] acts on disjoint rows."""
        return first + second
