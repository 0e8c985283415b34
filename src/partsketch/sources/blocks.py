"""Rows held column by column, as Arrow delivers them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from partsketch.common.linalg.column_kernels import copy_columns
from partsketch.sources.base import FloatArray, IntArray

_DOUBLE = np.dtype(np.float64)


@dataclass(frozen=True)
class Indicators:
    """The indicator columns of one encoded column: column i is 1 where `codes` equals first + i."""

    codes: IntArray
    first: int
    count: int

    def copy_into(self, out: FloatArray, begin: int, end: int) -> None:
        """Write rows begin to end of all indicators, one row of `out` each."""
        out[...] = 0.0
        indicator = self.codes[begin:end] - self.first
        (rows,) = np.nonzero(indicator >= 0)
        out[indicator[rows], rows] = 1.0


@dataclass(frozen=True)
class ColumnBlock:
    """Rows held as one-dimensional arrays of any numeric type, one per column: features, then targets."""

    row_numbers: IntArray
    columns: tuple[NDArray[np.generic] | Indicators, ...]
    weights: FloatArray | None = None
    labels: IntArray | None = None
    dropped: int = 0
    sparse_features: None = None

    def __len__(self) -> int:
        return int(self.row_numbers.shape[0])

    @cached_property
    def addresses(self) -> IntArray | None:
        """Where the columns lie in memory, if all of them are contiguous doubles."""
        addresses = np.empty(len(self.columns), dtype=np.int64)
        for index, column in enumerate(self.columns):
            if isinstance(column, Indicators) or column.dtype != _DOUBLE or column.strides != (8,):
                return None
            addresses[index] = column.__array_interface__["data"][0]
        return None if (addresses % 8).any() else addresses

    def copy_into(self, out: FloatArray, begin: int, end: int) -> None:
        """Write rows begin to end, one row of `out` per column."""
        if self.addresses is not None:
            copy_columns(self.addresses, begin, out)
            return
        position = 0
        for column in self.columns:
            if isinstance(column, Indicators):
                column.copy_into(out[position : position + column.count], begin, end)
                position += column.count
            else:
                out[position] = column[begin:end]
                position += 1

    def take(self, positions: IntArray) -> ColumnBlock:
        """Return the block of the rows at these positions."""
        return ColumnBlock(
            row_numbers=self.row_numbers[positions],
            columns=tuple(
                Indicators(column.codes[positions], column.first, column.count)
                if isinstance(column, Indicators)
                else column[positions]
                for column in self.columns
            ),
            weights=None if self.weights is None else self.weights[positions],
            labels=None if self.labels is None else self.labels[positions],
            dropped=self.dropped,
        )
