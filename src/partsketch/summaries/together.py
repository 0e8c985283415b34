"""One task summed by several threads: for rows that can be decoded in one place only, such as one large row group.

Whoever is free takes the rows of the next segments, while the others sum theirs. So nobody waits for a thread that only
reads, and what a segment becomes depends on its rows alone, whoever sums it.
"""

from __future__ import annotations

import sys
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from partsketch.sources.base import Block
from partsketch.sources.blocks import ColumnBlock
from partsketch.summaries.merge import PieceFold
from partsketch.summaries.merge_tree import TreeFold
from partsketch.summaries.partitions import UNKNOWN_END
from partsketch.summaries.tasks import PassRequest, Piece

#: Rows that a thread takes at least, where segments are short.
_LEAST_ROWS = 1 << 15


def pieces_together(
    request: PassRequest,
    blocks: Iterator[Block],
    threads: int,
    pieces_of: Callable[[Iterator[Block]], Iterator[Piece]],
) -> tuple[Piece, ...]:
    """Return the pieces of all blocks, merged as far as they go.

    Parameters
    ----------
    pieces_of
        Gives the pieces of blocks that hold whole segments.
    """
    seen: TreeFold[bool] = TreeFold(lambda first, second: True)
    fold = PieceFold(request.merging, seen.covers)
    portions = enumerate(whole_segments(request, blocks))
    reading, folding = threading.Lock(), threading.Lock()
    errors: list[tuple[int, BaseException]] = []

    def work() -> None:
        # An error of reading comes behind those of all rows that have been read.
        number = sys.maxsize
        try:
            while not errors:
                number = sys.maxsize
                with reading:
                    number, portion = next(portions, (number, ()))
                if not portion:
                    return
                pieces = list(pieces_of(iter(portion)))
                with folding:
                    for piece in pieces:
                        fold.add(piece)
                    if request.partitioning.bounds is None:
                        for segment in _segments(portion, request.segment_rows):
                            seen.push(0, segment, True)
        except BaseException as error:
            errors.append((number, error))

    # Daemons: a read that hangs must not keep the process from ending.
    others = [threading.Thread(target=work, daemon=True, name="partsketch-reader") for _ in range(threads - 1)]
    for thread in others:
        thread.start()
    work()
    for thread in others:
        thread.join()
    if errors:
        # Rows are taken in their order, so those before the first fault have all been summed.
        raise min(errors, key=lambda entry: entry[0])[1]
    return fold.pieces()


def _segments(portion: Sequence[Block], segment_rows: int) -> range:
    """Return the numbers of the segments of some blocks."""
    first, last = portion[0].row_numbers[0], portion[-1].row_numbers[-1]
    return range(int(first) // segment_rows, int(last) // segment_rows + 1)


def whole_segments(request: PassRequest, blocks: Iterator[Block], least: int = _LEAST_ROWS) -> Iterator[list[Block]]:
    """Yield the blocks of whole segments, `least` rows or more at once, cut where segments end."""
    portion: list[Block] = []
    rows = stop = 0
    for block in blocks:
        begin = 0
        while begin < len(block):
            row = int(block.row_numbers[begin])
            if row >= stop:
                if rows >= least:
                    yield portion
                    portion, rows = [], 0
                stop = _segment_stop(request, row)
            end = int(np.searchsorted(block.row_numbers, stop))
            portion.append(_between(block, begin, end))
            rows += end - begin
            # At once, not when the next block is there: its rows are another's.
            if int(block.row_numbers[end - 1]) == stop - 1 and rows >= least:
                yield portion
                portion, rows = [], 0
            begin = end
    if portion:
        yield portion


def _between(block: Block, begin: int, end: int) -> Block:
    """Return some rows of a block, which stay what they are while the next block is read."""
    if isinstance(block, ColumnBlock):
        return block.between(begin, end) if end - begin < len(block) else block
    # The memory of other blocks is the source's, which may use it for the next one.
    return block.take(np.arange(begin, end))


def _segment_stop(request: PassRequest, row: int) -> int:
    """Return the row number before which the segment of a row ends."""
    bounds, length = request.partitioning.bounds, request.segment_rows
    if bounds is None:
        return (row // length + 1) * length
    if row >= bounds[-1]:
        return UNKNOWN_END
    partition = bisect_right(bounds, row) - 1
    segment = (row - bounds[partition]) // length
    return min(bounds[partition] + (segment + 1) * length, bounds[partition + 1])
