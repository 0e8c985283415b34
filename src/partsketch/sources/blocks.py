"""Rows held column by column, as Arrow delivers them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from partsketch.common.linalg.column_kernels import copy_columns
from partsketch.sources.base import FloatArray, IntArray
from partsketch.sources.code_kernels import write_indicators, write_placed

_DOUBLE = np.dtype(np.float64)
#: So few columns are copied one by one: a kernel saves microseconds there, and takes a tenth of a second to compile.
_FEW_COLUMNS = 32
#: No values, which stand for ones, and no choice of columns, which stands for all.
_ONES, _ALL = np.empty(0), np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class Indicators:
    """The indicator columns of one encoded column: column i is 1 where `codes` equals first + i."""

    codes: IntArray
    first: int
    count: int

    @property
    def width(self) -> int:
        """Number of columns."""
        return self.count

    def copy_into(self, out: FloatArray, begin: int, end: int) -> None:
        """Write rows begin to end of all indicators, one row of `out` each."""
        out[...] = 0.0
        write_indicators(self.codes[begin:end], self.first, out)

    def take(self, positions: IntArray | slice) -> Indicators:
        """Return the rows at these positions."""
        return Indicators(self.codes[positions], self.first, self.count)


@dataclass(frozen=True)
class Placed:
    """Columns of which each row has few that are not zero: a product of categories with other columns.

    Attributes
    ----------
    places
        Where the columns of each row begin; -1 for rows that have none.
    count
        Number of columns.
    values
        What stands at which distance from there; None stands for ones.
    chosen
        Where each column goes, -1 for those that are not wanted; None for all in order.
    """

    places: IntArray
    count: int
    values: tuple[tuple[int, NDArray[np.generic] | None], ...]
    chosen: IntArray | None = None

    @property
    def width(self) -> int:
        """Number of columns that are wanted."""
        return self.count if self.chosen is None else int((self.chosen >= 0).sum())

    def copy_into(self, out: FloatArray, begin: int, end: int) -> None:
        """Write rows begin to end of all columns, one row of `out` each."""
        out[...] = 0.0
        chosen = _ALL if self.chosen is None else self.chosen
        for offset, values in self.values:
            at = _ONES
            if values is not None:
                some = np.full(end - begin, values) if values.ndim == 0 else values[begin:end]
                at = np.ascontiguousarray(some, dtype=np.float64)
            write_placed(self.places[begin:end], offset, at, chosen, out)

    def take(self, positions: IntArray | slice) -> Placed:
        """Return the rows at these positions."""
        taken = tuple(
            (offset, values if values is None or values.ndim == 0 else values[positions])
            for offset, values in self.values
        )
        return Placed(self.places[positions], self.count, taken, self.chosen)


@dataclass(frozen=True)
class ColumnBlock:
    """Rows held as one-dimensional arrays of any numeric type, one per column: features, then targets."""

    row_numbers: IntArray
    columns: tuple[NDArray[np.generic] | Indicators | Placed, ...]
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
            if isinstance(column, Indicators | Placed) or column.dtype != _DOUBLE or column.strides != (8,):
                return None
            addresses[index] = column.__array_interface__["data"][0]
        return None if (addresses % 8).any() else addresses

    def copy_into(self, out: FloatArray, begin: int, end: int) -> None:
        """Write rows begin to end, one row of `out` per column."""
        if self.addresses is not None and (len(self.columns) > _FEW_COLUMNS or out.strides[1] != 8):
            copy_columns(self.addresses, begin, out)
            return
        position = 0
        for column in self.columns:
            if isinstance(column, Indicators | Placed):
                column.copy_into(out[position : position + column.width], begin, end)
                position += column.width
            else:
                out[position] = column[begin:end]
                position += 1

    @property
    def coded(self) -> bool:
        """Whether some columns are held as codes."""
        return any(isinstance(column, Indicators | Placed) for column in self.columns)

    def written_out(self, begin: int, end: int) -> ColumnBlock:
        """Return rows begin to end with all columns as contiguous doubles; none of the rows before were left out."""
        columns: list[NDArray[np.generic]] = []
        for column in self.columns:
            if isinstance(column, Indicators | Placed):
                out = np.empty((column.width, end - begin))
                column.copy_into(out, begin, end)
                columns.extend(out)
            else:
                columns.append(np.ascontiguousarray(column[begin:end], dtype=np.float64))
        return replace(self.between(begin, end), columns=tuple(columns))

    def take(self, positions: IntArray) -> ColumnBlock:
        """Return the block of the rows at these positions."""
        return self._taken(positions)

    def between(self, begin: int, end: int) -> ColumnBlock:
        """Return the block of rows begin to end, where they lie; none of the rows before them were left out."""
        return replace(self._taken(slice(begin, end)), dropped=0)

    def _taken(self, positions: IntArray | slice) -> ColumnBlock:
        return ColumnBlock(
            row_numbers=self.row_numbers[positions],
            columns=tuple(
                column.take(positions) if isinstance(column, Indicators | Placed) else column[positions]
                for column in self.columns
            ),
            weights=None if self.weights is None else self.weights[positions],
            labels=None if self.labels is None else self.labels[positions],
            dropped=self.dropped,
        )
