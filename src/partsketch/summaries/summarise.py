"""From rows to pieces: the one function that every engine runs, wherever it runs it.

Rows are numbered. Each partition is cut into segments of a fixed number of rows, each segment into tiles; a segment's
piece depends on its rows alone, and pieces are merged in a fixed order. Block sizes, threads and engines therefore
cannot change a bit of the result.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from partsketch.common.errors import InputError
from partsketch.sources.base import Block, Source
from partsketch.summaries.feeder import TOO_LARGE, NotFiniteError
from partsketch.summaries.merge import merge_in_order
from partsketch.summaries.scattered import scattered_pieces
from partsketch.summaries.tasks import Feeder, PassRequest, Piece, SummaryRequest, Task, TaskResult
from partsketch.summaries.together import pieces_together


def summarise_rows(
    source: Source,
    request: PassRequest,
    task: Task,
    block_rows: int,
    after_block: Callable[[int], None] = lambda rows: None,
    threads: int = 1,
) -> TaskResult:
    """Read the rows of a task once and return their pieces.

    `after_block` is called with the number of rows after every block: for progress, and to stop (by raising). Several
    threads hold the rows of a segment each.
    """
    tally = _Tally(after_block)
    # Sketches notice values that are not finite in their products, so the source need not look for them as well.
    try:
        blocks = tally.count(source.leaving_finiteness().read(task.start, task.stop, block_rows))
        if threads > 1:
            pieces = pieces_together(request, blocks, threads, lambda some: _pieces(source, request, some))
        else:
            pieces = merge_in_order(request.merging, _pieces(source, request, blocks))
    except NotFiniteError as error:
        # The source itself knows best where a value came from; and rows of scattered partitions meet the check out of
        # order, while the message should name the first of them all.
        if source.replayable:
            _raise_first(source, task.start, error.row + 1, block_rows)
            raise InputError(TOO_LARGE) from None
        raise
    return TaskResult(pieces, tally.dropped, tally.rows)


def _pieces(source: Source, request: PassRequest, blocks: Iterator[Block]) -> Iterator[Piece]:
    """Yield the pieces of all segments, in the way that suits the partitions."""
    if isinstance(request, SummaryRequest) and request.merging.by_group:
        from partsketch.summaries.group_walk import walk_groups

        return walk_groups(source, request, blocks)
    if request.partitioning.bounds is not None:
        return _contiguous(source, request, blocks)
    return scattered_pieces(source, request, blocks)


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
        """Count rows, and leave out those of weight zero: they say nothing, and are no observations."""
        for block in blocks:
            read, kept = len(block) + block.dropped, _weighing(block)
            self.dropped += read - len(kept)
            self.rows += read
            if len(kept):
                yield kept
            self.after_block(read)


def _weighing(block: Block) -> Block:
    """Return the rows of a block whose weight is not zero."""
    if block.weights is None or block.weights.all():
        return block
    return block.take(np.flatnonzero(block.weights))


def _contiguous(source: Source, request: PassRequest, blocks: Iterator[Block]) -> Iterator[Piece]:
    bounds = request.partitioning.bounds
    assert bounds is not None
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
                partition = bisect_right(bounds, row) - 1
                segment = (row - bounds[partition]) // request.segment_rows
                segment_stop = min(bounds[partition] + (segment + 1) * request.segment_rows, bounds[partition + 1])
                feeder = request.feeder(source, partition, segment, feeder)
            assert feeder is not None
            end = int(block.row_numbers.searchsorted(segment_stop))
            feeder.feed(block, begin, end)
            begin = end
    if feeder is not None:
        yield feeder.finish()
