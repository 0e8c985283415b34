"""Rows of one segment of one partition whose columns are mostly codes: collected, and summed all at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.sketches.accumulator import FloatArray
from partsketch.sketches.coded import CodedRows, coded_products
from partsketch.sources.base import Block, Source
from partsketch.sources.blocks import ColumnBlock, Indicators, Placed
from partsketch.summaries.feeder import TOO_LARGE, NotFiniteError
from partsketch.summaries.rows_in_place import add_in_order
from partsketch.summaries.tasks import Piece, SummaryRequest

#: Rows that there is room for at first.
_FIRST_ROOM = 1024


class CodedFeeder:
    """Collects the rows of one segment."""

    def __init__(self, source: Source, request: SummaryRequest, partition: int, segment: int) -> None:
        self._names = (*source.feature_names, *source.target_names)
        self._first = int(request.fit_intercept)
        self._targets = len(source.target_names)
        self._most = request.segment_rows
        if source.row_count is not None:
            self._most = max(1, min(self._most, source.row_count))
        # Rows of a partition that lie together fill its segments.
        self._least = _FIRST_ROOM if request.partitioning.bounds is None else self._most
        self._weighted = source.has_weights
        self._layout: _Layout | None = None
        self._room = 0
        self._dense = self._values = np.empty((0, 0))
        self._places = np.empty((0, 0), dtype=np.int32)
        self._numbers = np.empty(0, dtype=np.int64)
        self._weights = np.empty(0)
        self.begin(partition, segment)

    def begin(self, partition: int, segment: int) -> None:
        """Prepare for the rows of a segment."""
        self._partition, self._segment = partition, segment
        self._rows = 0
        self._weight = 0.0

    def feed(self, block: Block, begin: int, end: int) -> None:
        """Take rows begin to end of a block."""
        assert isinstance(block, ColumnBlock)
        if self._layout is None:
            self._layout = _Layout(block, self._first)
        layout, here = self._layout, slice(self._rows, self._rows + end - begin)
        if here.stop > self._room:
            self._grow(here.stop)
        self._numbers[here] = block.row_numbers[begin:end]
        if self._first:
            self._dense[0, here] = 1.0
        for number, column in enumerate(layout.dense, self._first):
            self._dense[number, here] = block.columns[column][begin:end]  # type: ignore[index]
        entry = 0
        for column, offset in layout.coded:
            for places, values in _entries(block.columns[column], begin, end):  # type: ignore[arg-type]
                self._places[entry, here] = np.where(places >= 0, places + offset, -1)
                if values is not None:
                    self._values[entry, here] = np.where(places >= 0, values, 0.0)
                entry += 1
        if block.weights is not None:
            self._weights[here] = block.weights[begin:end]
            self._weight = add_in_order(self._weight, block.weights[begin:end])
        self._rows = here.stop

    def _grow(self, needed: int) -> None:
        """Make room for more rows, in steps: of many partitions each has few rows in a segment."""
        assert self._layout is not None
        room = min(max(2 * self._room, needed, self._least), max(self._most, needed))
        layout, kept = self._layout, self._rows
        shapes = {
            "_dense": ((self._first + len(layout.dense), room), np.float64),
            "_places": ((len(layout.has_values), room), np.int32),
            "_values": ((len(layout.has_values) if any(layout.has_values) else 0, room), np.float64),
            "_numbers": ((room,), np.int64),
            "_weights": ((room if self._weighted else 0,), np.float64),
        }
        for name, (shape, kind) in shapes.items():
            grown = np.empty(shape, kind)
            if kept and grown.size:
                grown[..., :kept] = getattr(self, name)[..., :kept]
            setattr(self, name, grown)
        self._room = room

    def finish(self) -> Piece:
        """Return the piece."""
        layout, count = self._layout, self._rows
        assert layout is not None
        dense, weights = self._dense[:, :count], self._weights[:count]
        values = tuple(
            self._values[entry, :count] if present else None for entry, present in enumerate(layout.has_values)
        )
        self._check_finite(layout, dense, values)
        rows = CodedRows(
            dense,
            layout.dense_at,
            layout.width,
            self._targets,
            self._places[:, :count],
            values,
            np.sqrt(weights),
            bool(self._first),
        )
        with np.errstate(all="ignore"):
            matrix, centre = coded_products(rows)
        if not np.isfinite(matrix).all():
            raise InputError(TOO_LARGE)
        targets = dense[len(dense) - self._targets :]
        ends = np.array([targets.min(axis=1), targets.max(axis=1)])
        weight = self._weight if self._weighted else float(count)
        return Piece(self._partition, self._segment, (matrix,), count, weight, ends, centre)

    def _check_finite(self, layout: _Layout, dense: FloatArray, values: tuple[FloatArray | None, ...]) -> None:
        columns = [*dense, *(column for column in values if column is not None)]
        with np.errstate(all="ignore"):
            # One sum tells whether all values are finite, unless it overflows, and then a closer look does.
            suspects = [number for number, column in enumerate(columns) if not np.isfinite(np.add.reduce(column))]
        faults = [
            (int(np.argmin(finite)), number)
            for number in suspects
            if not (finite := np.isfinite(columns[number])).all()
        ]
        if not faults:
            return
        row, number = min(faults)
        if number < len(dense):
            place = int(layout.dense_at[number])
        else:
            entries = [entry for entry, column in enumerate(values) if column is not None]
            place = int(self._places[entries[number - len(dense)], row])
        raise NotFiniteError(self._names[place - self._first], int(self._numbers[row]), float(columns[number][row]))


class _Layout:
    """Which columns of a block are dense and which are codes, the same for all blocks of a source.

    Attributes
    ----------
    dense
        Numbers of the dense columns of the block.
    coded
        Numbers of the others, each with the first of its columns in the summary.
    has_values
        For every entry of a row whether other values than one stand there.
    dense_at, width
        Places of the dense columns in the summary, the ones first, and the columns that it has.
    """

    def __init__(self, block: ColumnBlock, first: int) -> None:
        self.dense: list[int] = []
        self.coded: list[tuple[int, int]] = []
        self.has_values: list[bool] = []
        dense_at = list(range(first))
        position = first
        for number, column in enumerate(block.columns):
            if isinstance(column, Indicators | Placed):
                self.coded.append((number, position))
                self.has_values += [values is not None for _, values in _entries(column, 0, 0)]
                position += column.width
            else:
                self.dense.append(number)
                dense_at.append(position)
                position += 1
        self.dense_at, self.width = np.array(dense_at, dtype=np.int64), position


def _entries(
    column: Indicators | Placed, begin: int, end: int
) -> list[tuple[NDArray[np.integer], NDArray[np.generic] | None]]:
    """Return, for every column of a row that is not zero, which of the coded columns it is, and what stands there."""
    if isinstance(column, Indicators):
        return [(column.codes[begin:end] - column.first, None)]
    places = column.places[begin:end]
    made = []
    for offset, values in column.values:
        here = np.where(places >= 0, places + offset, -1)
        if column.chosen is not None:
            here = np.where(here >= 0, column.chosen[here], -1)
        made.append((here, values if values is None or values.ndim == 0 else values[begin:end]))
    return made
