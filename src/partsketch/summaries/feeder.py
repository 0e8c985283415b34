"""Rows of one segment of one partition, given to the sketches where they lie or collected into tiles."""

from __future__ import annotations

from functools import partial

import numpy as np

from partsketch.common.errors import InputError
from partsketch.common.linalg.blas import WIDEST_KERNEL, padded_width, tile_rows_for
from partsketch.common.linalg.column_kernels import column_addresses
from partsketch.common.linalg.helpers import share
from partsketch.sketches.accumulator import Accumulator, Columns, DenseRows, FloatArray, IntArray
from partsketch.sketches.base import get_sketch
from partsketch.sketches.centre import middle_if_narrow, rows_to_look_at
from partsketch.sources.base import Block, Source
from partsketch.sources.blocks import ColumnBlock
from partsketch.summaries.rows_in_place import add_in_order, rows_in_place
from partsketch.summaries.tasks import Piece, SummaryRequest

#: Segments of no more numbers than this are small: sketches may take more trouble with them.
FEW_NUMBERS = 2**14

#: Rows of many columns that are copied by one thread at a time.
_COPIED_ROWS = 512

#: Numbers up to which columns that are held as codes are written out for several tiles at once: 8 MB.
WRITTEN_OUT = 2**20

TOO_LARGE = "Values are too large: their squares overflow; divide the columns by a constant."


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


class RowFeeder:
    """Collects the rows of one segment of one partition into tiles and gives the tiles to the sketches."""

    def __init__(self, source: Source, request: SummaryRequest, partition: int, segment: int) -> None:
        self._request = request
        self._names = (*source.feature_names, *source.target_names)
        self._first = int(request.fit_intercept)
        self._width = self._first + len(self._names)
        self._columns = Columns(len(source.feature_names), len(source.target_names), request.fit_intercept)
        self._targets = slice(self._first + len(source.feature_names), self._width)
        self._replayable = source.replayable
        self._sketch = get_sketch(request.specification.kind)
        # Rows that lie one after another in memory are copied as they are where the sketch takes either: products of
        # the library have the same bits, unless columns or rows are few.
        padded, wanted_from = padded_width(self._width), self._sketch.wants_rows_from
        wanted = wanted_from is not None and padded >= wanted_from
        either = padded >= self._sketch.row_tiles_from and source.row_major
        self._tile_by_rows = either or wanted
        self._may_be_either = either and not wanted
        self._tile = np.empty((0, 0))
        self._tile_rows = tile_rows_for(padded_width(self._width))
        self._filled = 0
        self._places: IntArray | None = None
        self._partition = -1
        self._accumulators: list[Accumulator] = []
        self.begin(partition, segment)

    def begin(self, partition: int, segment: int) -> None:
        """Prepare for the rows of a segment; after `finish`, in the memory that is there.

        Fresh memory is cleared by the system first, page by page, which can take longer than the work on a segment.
        """
        if partition != self._partition or not all(accumulator.restart() for accumulator in self._accumulators):
            self._accumulators = [
                self._sketch.accumulator(
                    self._request.specification, self._request.stream(partition, number), self._columns
                )
                for number in range(self._request.accumulators_per_partition)
            ]
            # Only rows that can be read again are not looked at one tile at a time: the message names the culprit.
            self._takes_rows = self._replayable and all(accumulator.takes_rows for accumulator in self._accumulators)
        self._partition, self._segment = partition, segment
        # Until the sketch refuses a tile: what it then needs of the tile, it needs of all that follow.
        self._takes_tiles = len(self._accumulators) == 1
        self._centre: FloatArray | None = None
        if self._request.centres:
            self._centre = self._request.centres[partition]
        # Rows that wait until there are enough of them to tell what is taken off the columns.
        self._waiting: list[tuple[Block, int, int]] | None = []
        if self._request.centres or self._sketch.centres_itself or not self._first:
            self._waiting = None
        self._last_row = -1
        self._rows = 0
        self._weight = 0.0
        self._range = np.empty((2, self._columns.targets))
        self._lowest, self._highest = self._range
        self._lowest[:], self._highest[:] = np.inf, -np.inf

    def feed(self, block: Block, begin: int, end: int) -> None:
        """Take rows begin to end of a block."""
        if self._waiting is not None:
            self._wait(block, begin, end)
            return
        in_place = self._takes_rows and self._filled == 0 and self._centre is None
        rows = rows_in_place(block, begin, end) if in_place else None
        if rows is None:
            self._feed_tiles(block, begin, end)
            return
        for accumulator in self._accumulators:
            accumulator.add_rows(rows)
        self._see_rows(rows.targets)
        self._count(block, begin, end)
        self._last_row = int(rows.row_numbers[-1])

    def _wait(self, block: Block, begin: int, end: int) -> None:
        """Keep rows until there are enough to look at."""
        assert self._waiting is not None
        self._waiting.append((block, begin, end))
        if sum(stop - start for _, start, stop in self._waiting) >= rows_to_look_at(self._width):
            self._look()
        else:
            # The memory of a block is the source's, which may use it for the next one.
            self._waiting[-1] = (block.take(np.arange(begin, end)), 0, end - begin)

    def _look(self) -> None:
        """Decide by the first rows what is taken off the columns, and take the rows that waited for it."""
        assert self._waiting is not None
        waiting, self._waiting = self._waiting, None
        wanted = rows_to_look_at(self._width)
        parts = []
        for block, begin, end in waiting:
            count = min(wanted, end - begin)
            values = np.empty((len(self._names), count))
            block.copy_into(values, begin, begin + count)
            parts.append(values if block.weights is None else values[:, block.weights[begin : begin + count] > 0])
            wanted -= count
        if parts:
            middle = middle_if_narrow(np.hstack(parts))
            self._centre = None if middle is None else np.concatenate([[0.0], middle])
        for block, begin, end in waiting:
            self.feed(block, begin, end)

    def _count(self, block: Block, begin: int, end: int) -> None:
        self._rows += end - begin
        if block.weights is None:
            self._weight += float(end - begin)
        else:
            self._weight = add_in_order(self._weight, block.weights[begin:end])

    def _make_tile(self) -> None:
        """Make room for a tile: only now, because most sketches take rows where they lie."""
        padded, rows = padded_width(self._width), self._tile_rows
        self._tile = np.zeros((rows, padded)).T if self._tile_by_rows else np.zeros((padded, rows))
        self._row_numbers = np.empty(rows, dtype=np.int64)
        self._roots = np.ones(rows)
        self._weighted = False

    def _feed_tiles(self, block: Block, begin: int, end: int) -> None:
        capacity = self._tile_rows
        while begin < end:
            in_place = self._takes_tiles and self._filled == 0 and self._centre is None
            tiles = (end - begin) // capacity if in_place else 0
            if tiles and (taken := self._feed_in_place(block, begin, tiles)):
                begin += taken * capacity
                continue
            if not self._tile.size:
                self._make_tile()
            count = min(end - begin, capacity - self._filled)
            here = slice(self._filled, self._filled + count)
            self._copy(block, begin, count)
            if self._first:
                self._tile[0, here] = 1.0
            self._see_targets(self._tile[self._targets, here])
            if self._centre is not None:
                self._tile[: self._width, here] -= self._centre[:, None]
            self._weighted = self._weighted or block.weights is not None
            self._roots[here] = 1.0 if block.weights is None else np.sqrt(block.weights[begin : begin + count])
            self._count(block, begin, begin + count)
            self._row_numbers[here] = block.row_numbers[begin : begin + count]
            self._filled += count
            begin += count
            if self._filled == capacity:
                self._flush()

    def _copy(self, block: Block, begin: int, count: int) -> None:
        """Copy rows into the tile; of many columns that takes so long that those without rows of their own help."""
        columns = self._tile[self._first : self._width, self._filled : self._filled + count]
        step = count if self._width <= WIDEST_KERNEL else _COPIED_ROWS
        share(
            [
                partial(block.copy_into, columns[:, i : i + step], begin + i, min(begin + i + step, begin + count))
                for i in range(0, count, step)
            ]
        )

    def _feed_in_place(self, block: Block, begin: int, tiles: int) -> int:
        """Give whole tiles to the sketch where they lie, in doubles, and return how many it takes so."""
        if isinstance(block, ColumnBlock):
            columns, first = block, begin
            rows_here = tiles * self._tile_rows
            if block.coded and block.weights is None and self._width * rows_here <= WRITTEN_OUT:
                # One call for all tiles: of few columns the calls for each would take as long as the work.
                columns, first = block.written_out(begin, begin + rows_here), 0
            taken = self._feed_columns(columns, first, tiles)
            end = begin + taken * self._tile_rows
            if taken and self._columns.targets:
                targets = columns.columns[self._columns.features :]
                self._see_targets(np.array([np.asarray(column)[first : first + end - begin] for column in targets]))
        else:
            # Kernels that turn tiles into columns make doubles of single numbers on the way.
            rows = rows_in_place(block, begin, begin + tiles * self._tile_rows, single=True)
            if not isinstance(rows, DenseRows):
                return 0
            taken = self._accumulators[0].add_dense_tiles(rows, self._tile_rows)
            end = begin + taken * self._tile_rows
            self._see_rows(rows.targets[: end - begin])
            self._takes_tiles = taken == tiles
        self._count(block, begin, end)
        return taken

    def _feed_columns(self, block: ColumnBlock, begin: int, tiles: int) -> int:
        if block.addresses is None or block.weights is not None:
            return 0
        if self._places is None:
            if not self._tile.size:
                self._make_tile()
            # The intercept's ones and the padding's zeros are those of the tile, the same for every one.
            self._tile[: self._first] = 1.0
            self._places = column_addresses(self._tile)
            self._steps = np.zeros_like(self._places)
            self._steps[self._first : self._width] = 8 * self._tile_rows
        self._places[self._first : self._width] = block.addresses + 8 * begin
        taken = self._accumulators[0].add_columns(self._places, self._steps, tiles, self._tile_rows)
        self._takes_tiles = taken == tiles
        return taken

    def _see_rows(self, targets: FloatArray) -> None:
        if targets.size:
            np.fmin(self._lowest, targets.min(axis=0), out=self._lowest)
            np.fmax(self._highest, targets.max(axis=0), out=self._highest)

    def _see_targets(self, values: FloatArray) -> None:
        np.fmin(self._lowest, values.min(axis=1), out=self._lowest)
        np.fmax(self._highest, values.max(axis=1), out=self._highest)

    def _flush(self) -> None:
        if self._filled == 0:
            return
        tile, rows = self._tile[:, : self._filled], self._row_numbers[: self._filled]
        if self._may_be_either and self._filled < self._tile.shape[1]:
            partial = np.zeros(self._tile.shape)
            partial[:, : self._filled] = tile
            tile = partial[:, : self._filled]
        roots = self._roots[: self._filled] if self._weighted else np.empty(0)
        # Values that are not finite are looked for in the small product, where they cannot hide, not in every tile.
        with np.errstate(all="ignore"):
            if self._weighted and not self._accumulators[0].takes_weights:
                tile[: self._width] *= roots
            for accumulator in self._accumulators:
                taken = (
                    accumulator.add_weighted(tile, roots) if accumulator.takes_weights else accumulator.add(tile, rows)
                )
                if not taken:
                    self._refuse(tile, rows)
        self._filled = 0
        self._weighted = False

    def _refuse(self, tile: FloatArray, rows: IntArray) -> None:
        finite = np.isfinite(tile[self._first : self._width])
        if finite.all():
            raise InputError(TOO_LARGE)
        position = int(np.argmin(finite.all(axis=0)))
        column = int(np.argmin(finite[:, position]))
        raise NotFiniteError(self._names[column], int(rows[position]), float(tile[self._first + column, position]))

    def finish(self) -> Piece:
        """Return the piece."""
        if self._waiting is not None:
            self._look()
        if self._rows == self._filled and self._width * self._filled <= FEW_NUMBERS:
            for accumulator in self._accumulators:
                accumulator.expect_few_rows()
        self._flush()
        if self._last_row >= 0 and not all(accumulator.is_finite() for accumulator in self._accumulators):
            raise NotFiniteError("", self._last_row, float("nan"))
        matrices = tuple(accumulator.finish() for accumulator in self._accumulators)
        centre = self._accumulators[0].centre if self._centre is None else self._centre
        return Piece(self._partition, self._segment, matrices, self._rows, self._weight, self._range, centre)
