"""What takes the rows of a sketch: how rows are given to it, and what comes of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Columns:
    """The columns of a sketch: [1, features, targets], the first only with an intercept."""

    features: int
    targets: int
    intercept: bool

    @property
    def width(self) -> int:
        """How many there are."""
        return int(self.intercept) + self.features + self.targets


@dataclass(frozen=True, eq=False)
class Stream:
    """The rows that one sketch is made of, and its stream of random numbers.

    Attributes
    ----------
    number
        Number of the stream.
    first_row
        Lowest row number that may come.
    row_count
        Row numbers that may come, counted from the first; None when only reading tells.
    guide
        What the first pass found, for the kinds that make two.
    """

    number: int = 0
    first_row: int = 0
    row_count: int | None = None
    guide: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class DenseRows:
    """Rows as they lie in memory: float64, features of a row one after another, weights not yet applied.

    Features that are given as whole tiles may be float32 as well. `roots` are the square roots of the weights; empty
    when every row counts once.
    """

    row_numbers: IntArray
    features: FloatArray
    targets: FloatArray
    roots: FloatArray


@dataclass(frozen=True, eq=False)
class SparseRows:
    """Rows whose features are (values, column indices, starts), as a CSR array holds them."""

    row_numbers: IntArray
    features: tuple[FloatArray, NDArray[np.integer[Any]], NDArray[np.integer[Any]]]
    targets: FloatArray
    roots: FloatArray


def dense_rows(matrix: FloatArray, targets: int = 0) -> DenseRows:
    """Return the rows of a matrix, numbered from zero, its last columns targets."""
    features = matrix.shape[1] - targets
    return DenseRows(
        np.arange(matrix.shape[0], dtype=np.int64),
        np.ascontiguousarray(matrix[:, :features], dtype=np.float64),
        np.ascontiguousarray(matrix[:, features:], dtype=np.float64),
        np.empty(0),
    )


class Accumulator(ABC):
    """Takes the rows of one stream in order and gives a small matrix Z.

    Attributes
    ----------
    takes_rows
        Whether `add_rows` may be used in place of `add`. The bits are the same however the rows are cut.
    takes_weights
        Whether `add_weighted` is used in place of `add`.
    centre
        What the accumulator itself took off each column; None when nothing.
    """

    takes_rows: bool = False
    takes_weights: bool = False
    centre: FloatArray | None = None

    @abstractmethod
    def add(self, tile: FloatArray, row_numbers: IntArray) -> bool:
        """Take one tile, held as its columns (columns × rows), weights applied.

        Returns False when the tile has values that are not finite; nothing may be added after that.
        """

    def expect_few_rows(self) -> None:  # noqa: B027 (most kinds do the same with few rows as with many)
        """Be told before the first tile that no other will come, and that it is small."""

    def add_weighted(self, tile: FloatArray, roots: FloatArray) -> bool:
        """Take one tile, weights not yet applied; `roots` are their square roots, empty when every row counts once."""
        raise NotImplementedError

    def add_columns(self, addresses: IntArray, steps: IntArray, tiles: int, tile_rows: int) -> int:
        """Take tiles whose columns of doubles lie at these addresses, and in each next tile `steps` bytes further on.

        Columns are padded like those of a tile. Returns how many tiles were taken; the next must be given as a tile.
        Saves a copy where rows arrive by column.
        """
        return 0

    def add_dense_tiles(self, rows: DenseRows, tile_rows: int) -> int:
        """Take tiles of rows as they are.

        Returns how many were taken; the next must be given as a tile. Saves a copy where rows arrive by row.
        """
        return 0

    def add_rows(self, rows: DenseRows | SparseRows) -> None:
        """Take rows as they are, of any number; `is_finite` tells of all of them later."""
        raise NotImplementedError

    def is_finite(self) -> bool:
        """Tell whether all that was added is finite."""
        return True

    @abstractmethod
    def finish(self) -> FloatArray:
        """Return the matrix of what has been added."""

    def restart(self) -> bool:
        """Forget what was added, the matrix being the caller's; returns False where a new accumulator must be made."""
        return False
