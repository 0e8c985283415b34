"""Rows of partitions that lie all over the source, shuffled or by the values of a column: pieces of every segment.

Of many partitions each has few rows in a segment. Tiles for all of them at once would be mostly empty and take
gigabytes, so the rows of a segment are put in the order of their partitions first, and fed one partition after another
through the same tile. Where partitions are few or rows are wide, rows are fed as they come. The bits are the same: what
a partition's rows become does not depend on what else is fed, or when.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from partsketch.common.linalg.blas import padded_width, tile_rows_for
from partsketch.sources.base import Block, IntArray, Source
from partsketch.summaries.tasks import Feeder, PassRequest, Piece


def scattered_pieces(source: Source, request: PassRequest, blocks: Iterator[Block]) -> Iterator[Piece]:
    """Yield the pieces of all partitions, segment by segment."""
    segment = _Sorted(source, request) if _are_many(source, request) else _AsTheyCome(source, request)
    current = -1
    for block in blocks:
        begin = 0
        while begin < len(block):
            number = int(block.row_numbers[begin]) // request.segment_rows
            if number != current:
                yield from segment.finish()
                current = number
            end = int(np.searchsorted(block.row_numbers, (number + 1) * request.segment_rows))
            rows = block.take(np.arange(begin, end)) if end - begin < len(block) else block
            segment.feed(rows, request.partitioning.assign(rows), number)
            begin = end
    yield from segment.finish()


def _are_many(source: Source, request: PassRequest) -> bool:
    """Whether a tile for every partition takes more memory than all rows of a segment."""
    width = int(request.fit_intercept) + len(source.feature_names) + len(source.target_names)
    partitions = request.partitioning.count if request.group is None else len(request.group)
    return partitions * tile_rows_for(padded_width(width)) > request.segment_rows


def _by_partition(partitions: IntArray, group: range | None) -> tuple[IntArray, list[tuple[int, int, int]]]:
    """Return the positions of rows by partition, and of each partition that has rows where they begin and end."""
    order = np.argsort(partitions, kind="stable")
    found = partitions[order]
    if group is not None:
        first, last = np.searchsorted(found, [group.start, group.stop])
        order, found = order[first:last], found[first:last]
    if not len(found):
        # Of a sorted file most blocks have no rows of a group.
        return order, []
    present, starts = np.unique(found, return_index=True)
    stops = np.append(starts[1:], len(found))
    return order, list(zip(present.tolist(), starts.tolist(), stops.tolist(), strict=True))


class _AsTheyCome:
    """A feeder for every partition."""

    def __init__(self, source: Source, request: PassRequest) -> None:
        self._source, self._request = source, request
        self._feeders: dict[int, Feeder] = {}

    def feed(self, rows: Block, partitions: IntArray, number: int) -> None:
        """Give each partition its rows."""
        order, runs = _by_partition(partitions, self._request.group)
        for partition, start, stop in runs:
            if partition not in self._feeders:
                self._feeders[partition] = self._request.feeder(self._source, partition, number)
            self._feeders[partition].feed(rows.take(order[start:stop]), 0, stop - start)

    def finish(self) -> Iterator[Piece]:
        """Yield what each partition's rows became."""
        feeders, self._feeders = self._feeders, {}
        yield from (feeders[partition].finish() for partition in sorted(feeders))


class _Sorted:
    """The rows of a segment in the order of their partitions, and one feeder."""

    def __init__(self, source: Source, request: PassRequest) -> None:
        self._source, self._request = source, request
        self._runs: dict[int, list[tuple[Block, int, int]]] = defaultdict(list)
        self._number = -1
        self._feeder: Feeder | None = None

    def feed(self, rows: Block, partitions: IntArray, number: int) -> None:
        """Keep a copy of the rows, those of a partition one after another."""
        self._number = number
        order, runs = _by_partition(partitions, self._request.group)
        if runs:
            rows = rows.take(order)
        for partition, start, stop in runs:
            self._runs[partition].append((rows, start, stop))

    def finish(self) -> Iterator[Piece]:
        """Feed one partition after another."""
        runs, self._runs = self._runs, defaultdict(list)
        for partition in sorted(runs):
            self._feeder = self._request.feeder(self._source, partition, self._number, self._feeder)
            for rows, start, stop in runs[partition]:
                self._feeder.feed(rows, start, stop)
            yield self._feeder.finish()
