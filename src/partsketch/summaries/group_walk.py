"""Rows of many groups: collected a segment at a time, and summed group by group."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np

from partsketch.common.errors import InputError
from partsketch.sketches.groups import check_sizes, padded, summarise_groups
from partsketch.sources.base import Block, Source
from partsketch.summaries.feeder import TOO_LARGE, NotFiniteError
from partsketch.summaries.tasks import Piece, SummaryRequest

#: Room that a task of this thread has left: fresh memory is cleared by the system first, which takes as long as a copy.
_kept = threading.local()


def _room(rows: int, width: int) -> np.ndarray:
    """Return room for rows: ones first, zeros behind the columns. What the last task of this thread had, if it fits."""
    kept: tuple[int, np.ndarray] | None = _kept.__dict__.pop("rows", None)
    if kept is not None and (kept[0], kept[1].shape) == (width, (rows, padded(width))):
        return kept[1]
    room = np.empty((rows, padded(width)))
    room[:, 0] = 1.0
    room[:, width:] = 0.0
    return room


class GroupFeeder:
    """Collects the rows of one segment, of whatever groups."""

    def __init__(self, source: Source, request: SummaryRequest, rows: int) -> None:
        self._request = request
        self._names = (*source.feature_names, *source.target_names)
        self._targets = len(source.target_names)
        self._width = 1 + len(self._names)
        self._rows = _room(rows, self._width)
        self._numbers = np.empty(rows, dtype=np.int64)
        self._groups = np.empty(rows, dtype=np.int64)
        self._weights = np.ones(rows if source.has_weights else 0)
        self._filled = 0

    def feed(self, block: Block, begin: int, end: int) -> None:
        """Take rows begin to end of a block."""
        here = slice(self._filled, self._filled + end - begin)
        self._groups[here] = self._request.partitioning.assign(block)[begin:end]
        self._numbers[here] = block.row_numbers[begin:end]
        if self._weights.size:
            self._weights[here] = 1.0 if block.weights is None else block.weights[begin:end]
        block.copy_into(self._rows[here, 1 : self._width].T, begin, end)
        self._filled += end - begin

    def finish(self, segment: int) -> Piece:
        """Return the piece of the segment, and begin with nothing again."""
        rows, groups = self._rows[: self._filled], self._groups[: self._filled]
        weights = self._weights[: self._filled]
        if weights.size:
            rows[:, 0] = np.sqrt(weights)
        flat, ends, finite = summarise_groups(rows, weights, groups, self._width)
        if not finite:
            self._refuse(rows[:, 1 : self._width])
        check_sizes(ends, self._names)
        weight = float(weights.sum()) if weights.size else float(self._filled)
        count, self._filled = self._filled, 0
        return Piece(0, segment, (flat,), count, weight, ends[:, ends.shape[1] - self._targets :])

    def give_back(self) -> None:
        """Leave the room for rows to the next task of this thread: nothing of them is needed any more."""
        if not self._weights.size:
            _kept.rows = (self._width, self._rows)

    def _refuse(self, values: np.ndarray) -> None:
        finite = np.isfinite(values)
        if finite.all():
            raise InputError(TOO_LARGE)
        position = int(np.argmin(finite.all(axis=1)))
        column = int(np.argmin(finite[position]))
        raise NotFiniteError(self._names[column], int(self._numbers[position]), float(values[position, column]))


def walk_groups(source: Source, request: SummaryRequest, blocks: Iterator[Block]) -> Iterator[Piece]:
    """Yield a piece of all groups for every segment."""
    feeder: GroupFeeder | None = None
    current = -1
    for block in blocks:
        begin = 0
        while begin < len(block):
            segment = int(block.row_numbers[begin]) // request.segment_rows
            if feeder is None:
                most = request.segment_rows
                if source.row_count is not None:
                    most = max(1, min(most, source.row_count))
                feeder = GroupFeeder(source, request, most)
            elif segment != current:
                yield feeder.finish(current)
            current = segment
            end = int(np.searchsorted(block.row_numbers, (segment + 1) * request.segment_rows))
            feeder.feed(block, begin, end)
            begin = end
    if feeder is not None:
        yield feeder.finish(current)
        feeder.give_back()
