"""From rows to pieces: the one function that every engine runs, wherever it runs it.

Rows are numbered. Each partition is cut into segments of a fixed number of rows, each segment into tiles; a segment's
piece depends on its rows alone, and pieces are merged in a fixed order. Block sizes, threads and engines therefore
cannot change a bit of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from partsketch.blas import padded_width, tile_rows_for
from partsketch.column_kernels import column_addresses
from partsketch.errors import InputError
from partsketch.merging import merge_in_order
from partsketch.partitions import UNKNOWN_END, Partitioning
from partsketch.sketches.base import Columns, FloatArray, IntArray, SketchSpecification, Stream, get_sketch
from partsketch.sources.base import Block, Source
from partsketch.sources.blocks import ColumnBlock
from partsketch.sources.in_place import add_in_order, rows_in_place

#: Rows of a segment: enough to amortise a merge, few enough to share one partition among threads.
SEGMENT_ROWS = 65536

INTERCEPT = "(intercept)"

_TOO_LARGE = "Values are too large: their squares overflow; divide the columns by a constant."


@dataclass(frozen=True)
class SummaryRequest:
    """What is asked of every row.

    Attributes
    ----------
    specification
        Which sketch.
    partitioning
        Which rows belong together.
    fit_intercept
        Whether a column of ones comes first.
    sketches_per_partition
        How many independent sketches of each partition are made: one, or k for the sketches of the whole.
    row_count
        Rows of the source, where a sketch needs to know it.
    guides
        What a first pass found, one per partition, for sketches that make two.
    segment_rows
        Row numbers of a segment.
    """

    specification: SketchSpecification
    partitioning: Partitioning
    fit_intercept: bool
    sketches_per_partition: int = 1
    row_count: int | None = None
    guides: tuple[FloatArray, ...] = ()
    segment_rows: int = SEGMENT_ROWS

    def stream(self, partition: int, number: int) -> Stream:
        """Return the rows of a partition's sketch of this number."""
        first, count = 0, self.row_count
        if self.partitioning.bounds is not None:
            first, stop = self.partitioning.bounds[partition : partition + 2]
            count = None if stop == UNKNOWN_END else stop - first
        guide = self.guides[partition] if self.guides else None
        return Stream(partition * self.sketches_per_partition + number, first, count, guide)

    def feeder(self, source: Source, partition: int, segment: int) -> Feeder:
        """Return what takes the rows of one segment of one partition."""
        return _Feeder(source, self, partition, segment)


@dataclass(frozen=True)
class Task:
    """Rows numbered start to stop (None: to the end), whole segments of them.

    `apart` says that its result is wanted by itself, as soon as it is there: to be kept, or without those that fail.
    """

    start: int
    stop: int | None
    apart: bool = False


@dataclass(frozen=True)
class Piece:
    """What one segment of one partition became, or several that have been merged.

    Attributes
    ----------
    partition, segment
        Where it belongs.
    matrices
        One per sketch.
    row_count, weight_sum
        Rows and weight that it holds.
    target_range
        Smallest and largest value of every target, shape (2, targets).
    level
        Height in the tree along which segments are merged: the piece holds the 2^level segments from
        segment · 2^level on; 0 is one segment.
    """

    partition: int
    segment: int
    matrices: tuple[FloatArray, ...]
    row_count: int
    weight_sum: float
    target_range: FloatArray
    level: int = 0


@dataclass(frozen=True)
class TaskResult:
    """The pieces of a task, merged as far as they go, and how many rows were left out for missing values."""

    pieces: tuple[Piece, ...]
    dropped: int
    rows_seen: int


class Feeder(Protocol):
    """Takes the rows of one segment of one partition, and gives the piece that they become."""

    def feed(self, block: Block, begin: int, end: int) -> None:
        """Take rows begin to end of a block."""
        ...

    def finish(self) -> Piece:
        """Return the piece."""
        ...


class NotFiniteError(InputError):
    """A value is missing or infinite."""

    def __init__(self, column: str, row: int, value: float) -> None:
        what = "NaN" if np.isnan(value) else "infinity"
        super().__init__(f"Input contains {what}: column {column!r}, row {row} (counted from 0); remove or replace it.")
        self.row = row
        self._told = (column, row, value)

    def __reduce__(self) -> tuple[type[NotFiniteError], tuple[str, int, float]]:
        # Errors travel from worker processes, and are made again from what their constructor was told.
        return type(self), self._told


class _Feeder:
    """Collects the rows of one segment of one partition into tiles and gives the tiles to the sketches."""

    def __init__(self, source: Source, request: SummaryRequest, partition: int, segment: int) -> None:
        self._names = (*source.feature_names, *source.target_names)
        self._first = int(request.fit_intercept)
        self._width = self._first + len(self._names)
        self._partition, self._segment = partition, segment
        sketch = get_sketch(request.specification.kind)
        # Rows that lie one after another in memory are copied as they are where the sketch takes either: products of
        # the library have the same bits, unless columns or rows are few.
        either = padded_width(self._width) >= sketch.row_tiles_from and getattr(source, "row_major", False)
        self._tile_by_rows = either or sketch.wants_rows
        self._may_be_either = either and not sketch.wants_rows
        self._tile = np.empty((0, 0))
        self._filled = 0
        self._places: IntArray | None = None
        columns = Columns(len(source.feature_names), len(source.target_names), request.fit_intercept)
        self._accumulators = [
            sketch.accumulator(request.specification, request.stream(partition, number), columns)
            for number in range(request.sketches_per_partition)
        ]
        # Only rows that can be read again are not looked at one tile at a time: the message names the culprit.
        self._takes_rows = source.replayable and all(accumulator.takes_rows for accumulator in self._accumulators)
        self._last_row = -1
        self._rows = 0
        self._weight = 0.0
        self._targets = slice(self._first + len(source.feature_names), self._width)
        self._lowest = np.full(len(source.target_names), np.inf)
        self._highest = -self._lowest

    def feed(self, block: Block, begin: int, end: int) -> None:
        """Take rows begin to end of a block."""
        rows = rows_in_place(block, begin, end) if self._takes_rows and self._filled == 0 else None
        if rows is None:
            self._feed_tiles(block, begin, end)
            return
        for accumulator in self._accumulators:
            accumulator.add_rows(rows)
        if rows.targets.size:
            np.fmin(self._lowest, rows.targets.min(axis=0), out=self._lowest)
            np.fmax(self._highest, rows.targets.max(axis=0), out=self._highest)
        self._count(block, begin, end)
        self._last_row = int(rows.row_numbers[-1])

    def _count(self, block: Block, begin: int, end: int) -> None:
        self._rows += end - begin
        if block.weights is None:
            self._weight += float(end - begin)
        else:
            self._weight = add_in_order(self._weight, block.weights[begin:end])

    def _make_tile(self) -> None:
        """Make room for a tile: only now, because most sketches take rows where they lie."""
        padded = padded_width(self._width)
        tile_rows = tile_rows_for(padded)
        self._tile = np.zeros((tile_rows, padded)).T if self._tile_by_rows else np.zeros((padded, tile_rows))
        self._row_numbers = np.empty(tile_rows, dtype=np.int64)

    def _feed_tiles(self, block: Block, begin: int, end: int) -> None:
        if not self._tile.size:
            self._make_tile()
        capacity = self._tile.shape[1]
        while begin < end:
            if self._filled == 0 and end - begin >= capacity and self._feed_in_place(block, begin):
                begin += capacity
                continue
            count = min(end - begin, capacity - self._filled)
            here = slice(self._filled, self._filled + count)
            block.copy_into(self._tile[self._first : self._width, here], begin, begin + count)
            if self._first:
                self._tile[0, here] = 1.0
            self._see_targets(self._tile[self._targets, here])
            if block.weights is not None:
                self._tile[: self._width, here] *= np.sqrt(block.weights[begin : begin + count])
            self._count(block, begin, begin + count)
            self._row_numbers[here] = block.row_numbers[begin : begin + count]
            self._filled += count
            begin += count
            if self._filled == capacity:
                self._flush()

    def _feed_in_place(self, block: Block, begin: int) -> bool:
        """Give a whole tile to the sketch where it lies, if it lies there in doubles and the sketch takes it so."""
        if not isinstance(block, ColumnBlock) or block.weights is not None or len(self._accumulators) > 1:
            return False
        if block.addresses is None:
            return False
        count = self._tile.shape[1]
        if self._places is None:
            # The intercept's ones and the padding's zeros are those of the tile.
            self._tile[: self._first] = 1.0
            self._places = column_addresses(self._tile)
        self._places[self._first : self._width] = block.addresses + 8 * begin
        with np.errstate(all="ignore"):
            if not self._accumulators[0].add_columns(self._places, count):
                return False
        targets = block.columns[self._targets.start - self._first :]
        self._see_targets(np.array([np.asarray(column)[begin : begin + count] for column in targets]))
        self._count(block, begin, begin + count)
        return True

    def _see_targets(self, values: FloatArray) -> None:
        np.fmin(self._lowest, values.min(axis=1), out=self._lowest)
        np.fmax(self._highest, values.max(axis=1), out=self._highest)

    def _flush(self) -> None:
        if self._filled == 0:
            return
        if self._may_be_either and self._filled < self._tile.shape[1]:
            partial = np.zeros(self._tile.shape)
            partial[:, : self._filled] = self._tile[:, : self._filled]
            self._tile = partial
        tile, rows = self._tile[:, : self._filled], self._row_numbers[: self._filled]
        # Values that are not finite are looked for in the small product, where they cannot hide, not in every tile.
        with np.errstate(all="ignore"):
            for accumulator in self._accumulators:
                if not accumulator.add(tile, rows):
                    self._refuse(tile, rows)
        self._filled = 0

    def _refuse(self, tile: FloatArray, rows: IntArray) -> None:
        finite = np.isfinite(tile[self._first : self._width])
        if finite.all():
            raise InputError(_TOO_LARGE)
        position = int(np.argmin(finite.all(axis=0)))
        column = int(np.argmin(finite[:, position]))
        raise NotFiniteError(self._names[column], int(rows[position]), float(tile[self._first + column, position]))

    def finish(self) -> Piece:
        self._flush()
        with np.errstate(all="ignore"):
            if self._last_row >= 0 and not all(accumulator.is_finite() for accumulator in self._accumulators):
                raise NotFiniteError("", self._last_row, float("nan"))
        matrices = tuple(accumulator.finish() for accumulator in self._accumulators)
        target_range = np.stack([self._lowest, self._highest])
        return Piece(self._partition, self._segment, matrices, self._rows, self._weight, target_range)


def summarise_rows(
    source: Source,
    request: SummaryRequest,
    task: Task,
    block_rows: int,
    after_block: Callable[[int], None] = lambda rows: None,
) -> TaskResult:
    """Read the rows of a task once and return their pieces.

    `after_block` is called with the number of rows after every block: for progress, and to stop (by raising).
    """
    walk = _contiguous if request.partitioning.bounds is not None else _scattered
    tally = _Tally(after_block)
    # Sketches notice values that are not finite in their products, so the source need not look for them as well.
    lenient = getattr(source, "leaving_finiteness", None)
    reader = source if lenient is None else lenient()
    try:
        blocks = tally.count(reader.read(task.start, task.stop, block_rows))
        pieces = merge_in_order(request.specification.kind, walk(source, request, blocks))
    except NotFiniteError as error:
        # The source itself knows best where a value came from; and rows of scattered partitions meet the check out of
        # order, while the message should name the first of them all.
        if source.replayable:
            _raise_first(source, task.start, error.row + 1, block_rows)
            raise InputError(_TOO_LARGE) from None
        raise
    return TaskResult(pieces, tally.dropped, tally.rows)


def _raise_first(source: Source, start: int, stop: int, block_rows: int) -> None:
    """Read rows in order and raise at the first value that is not finite."""
    names = (*source.feature_names, *source.target_names)
    for block in source.read(start, stop, block_rows):
        values = np.empty((len(names), len(block)))
        block.copy_into(values, 0, len(block))
        finite = np.isfinite(values)
        if not finite.all():
            position = int(np.argmin(finite.all(axis=0)))
            column = int(np.argmin(finite[:, position]))
            raise NotFiniteError(names[column], int(block.row_numbers[position]), float(values[column, position]))


@dataclass
class _Tally:
    after_block: Callable[[int], None]
    dropped: int = field(default=0)
    rows: int = field(default=0)

    def count(self, blocks: Iterator[Block]) -> Iterator[Block]:
        for block in blocks:
            self.dropped += block.dropped
            self.rows += len(block) + block.dropped
            yield block
            self.after_block(len(block) + block.dropped)


def _contiguous(source: Source, request: SummaryRequest, blocks: Iterator[Block]) -> Iterator[Piece]:
    bounds = np.asarray(request.partitioning.bounds, dtype=np.int64)
    feeder: Feeder | None = None
    segment_stop = -1
    for block in blocks:
        begin = 0
        while begin < len(block):
            row = int(block.row_numbers[begin])
            if row >= segment_stop:
                if feeder is not None:
                    yield feeder.finish()
                if row >= bounds[-1]:
                    return
                partition = int(np.searchsorted(bounds, row, side="right")) - 1
                segment = (row - int(bounds[partition])) // request.segment_rows
                segment_stop = int(min(bounds[partition] + (segment + 1) * request.segment_rows, bounds[partition + 1]))
                feeder = request.feeder(source, partition, segment)
            assert feeder is not None
            end = int(np.searchsorted(block.row_numbers, segment_stop))
            feeder.feed(block, begin, end)
            begin = end
    if feeder is not None:
        yield feeder.finish()


def _scattered(source: Source, request: SummaryRequest, blocks: Iterator[Block]) -> Iterator[Piece]:
    feeders: dict[int, Feeder] = {}
    current = -1
    for block in blocks:
        begin = 0
        while begin < len(block):
            segment = int(block.row_numbers[begin]) // request.segment_rows
            if segment != current:
                yield from (feeders[partition].finish() for partition in sorted(feeders))
                feeders, current = {}, segment
            end = int(np.searchsorted(block.row_numbers, (segment + 1) * request.segment_rows))
            rows = block.take(np.arange(begin, end)) if end - begin < len(block) else block
            partitions = request.partitioning.assign(rows)
            order = np.argsort(partitions, kind="stable")
            present, starts = np.unique(partitions[order], return_index=True)
            for partition, positions in zip(present.tolist(), np.split(order, starts[1:]), strict=True):
                if partition not in feeders:
                    feeders[partition] = request.feeder(source, partition, segment)
                feeders[partition].feed(rows.take(positions), 0, len(positions))
            begin = end
    yield from (feeders[partition].finish() for partition in sorted(feeders))
