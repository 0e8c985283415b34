"""Gaussian sketch: Z = S A with independent entries N(0, 1/m) in S, the one with an exact theory."""

from __future__ import annotations

from functools import cache

import numpy as np

from partsketch.blas import padded_width, tile_rows_for
from partsketch.sketches.base import Accumulator, Columns, FloatArray, IntArray, Sketch, SketchSpecification, Stream
from partsketch.sketches.counter_random import COLUMNS_PER_COUNTER, derive_key, fill_normals
from partsketch.sketches.system_random import fill_system_normals

#: Numbers of S that exist at once: 2 MB, which the product reads back from the cache.
_STRIP_NUMBERS = 2**18

#: Multiplications of one product, at most: below a million the library takes operands as they are, and is a third
#: quicker than when it packs them first. Sketch rows and data rows of one product are cut accordingly.
_PRODUCT_NUMBERS = 900_000
_MOST_STRIP_ROWS = 64
_MOST_PRODUCT_ROWS = 256


@cache
def _key(seed: int) -> tuple[np.uint64, np.uint64]:
    return derive_key(seed, "gaussian")


class GaussianAccumulator(Accumulator):
    """Adds S_tile A_tile to an m×q matrix, a strip of sketch rows at a time."""

    def __init__(self, specification: SketchSpecification, stream: int, width: int) -> None:
        assert specification.size is not None
        self._size = specification.size
        self._key = None if specification.seed is None else _key(specification.seed)
        self._stream = stream
        self._scale = 1.0 / np.sqrt(specification.size)
        self._width = width
        # The padding of a tile is zero; products of whole vector registers are quicker than narrower ones.
        padded = padded_width(width)
        self._total = np.zeros((specification.size, padded))
        tile_rows = tile_rows_for(padded)
        self._strip = _strip_rows(self._size, tile_rows)
        self._product_rows = _product_rows(self._strip, padded, tile_rows)
        self._normals = np.empty((self._strip, tile_rows))
        self._products = np.empty((tile_rows // self._product_rows, self._strip, padded))

    def add(self, tile: FloatArray, row_numbers: IntArray) -> bool:
        """Add the product of this tile."""
        rows = tile.shape[1]
        product = np.empty_like(self._total)
        for first in range(0, self._size, self._strip):
            count = min(self._strip, self._size - first)
            padded = -(-count // COLUMNS_PER_COUNTER) * COLUMNS_PER_COUNTER
            normals = self._normals[:padded, :rows]
            if self._key is None:
                fill_system_normals(self._scale, normals)
            else:
                fill_normals(self._key, self._stream, row_numbers, self._scale, normals, first_column=first)
            product[first : first + count] = self._product(normals[:count], tile.T)
        if not np.isfinite(product).all():
            return False
        self._total += product
        return True

    def _product(self, normals: FloatArray, tile: FloatArray) -> FloatArray:
        """Return S_strip A_tile, the sum of products of a few hundred rows each, in their order."""
        count, rows = normals.shape
        each = self._product_rows
        whole = rows // each
        left = normals[:, : whole * each].reshape(count, whole, each).transpose(1, 0, 2)
        products = self._products[:whole, :count]
        np.matmul(left, tile[: whole * each].reshape(whole, each, tile.shape[1]), out=products)
        total: FloatArray = products.sum(axis=0)
        if whole * each < rows:
            total += normals[:, whole * each :] @ tile[whole * each :]
        return total

    def finish(self) -> FloatArray:
        """Return S A."""
        return np.ascontiguousarray(self._total[:, : self._width])


def _strip_rows(size: int, tile_rows: int) -> int:
    """Return how many sketch rows are made at once: whole counters, few enough for the cache, strips nearly alike."""
    most = min(_MOST_STRIP_ROWS, _STRIP_NUMBERS // tile_rows)
    strips = -(-size // max(COLUMNS_PER_COUNTER, most))
    return -(-size // (strips * COLUMNS_PER_COUNTER)) * COLUMNS_PER_COUNTER


def _product_rows(strip: int, width: int, tile_rows: int) -> int:
    """Return how many data rows one product takes: a power of two that divides a tile."""
    rows = min(_MOST_PRODUCT_ROWS, tile_rows)
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
        fill_normals(_key(0), 0, np.zeros(1, dtype=np.int64), 1.0, np.empty((COLUMNS_PER_COUNTER, 1)))

    def merge(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """Add: S = [S₁ S₂] acts on disjoint rows."""
        return first + second
