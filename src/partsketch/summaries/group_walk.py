"""Rows of many groups: collected a segment at a time, put in the order of their groups, and summed group by group."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from partsketch.common.errors import InputError
from partsketch.sketches.groups import GroupOrder, check_sizes, order_groups, padded, summarise_in_order
from partsketch.sketches.kernels.group_rows import place_past_cache, place_rows
from partsketch.sources.base import Block, FloatArray, IntArray, Source
from partsketch.sources.blocks import ColumnBlock
from partsketch.summaries.feeder import TOO_LARGE, NotFiniteError
from partsketch.summaries.tasks import Piece, SummaryRequest

#: Room that a task of this thread has left: fresh memory is cleared by the system first, which takes as long as a copy.
_kept = threading.local()

#: Numbers of a line of the cache, at the beginning of which rows begin; and the fewest rows that are placed as columns.
_LINE = 8


def room_for_rows(rows: int, width: int) -> FloatArray:
    """Return room for rows; what the last task of this thread had, if it fits."""
    step = padded(width)
    kept: FloatArray | None = _kept.__dict__.pop("rows", None)
    if kept is not None and kept.shape == (rows, step):
        return kept
    numbers = np.empty(rows * step + _LINE)
    first = -numbers.__array_interface__["data"][0] // 8 % _LINE
    return numbers[first : first + rows * step].reshape(rows, step)


class _Held(NamedTuple):
    """Rows of a segment that wait until all are there: columns where they lie, or a copy of the rows."""

    groups: IntArray
    numbers: IntArray
    weights: FloatArray
    addresses: IntArray
    owner: object


class GroupFeeder:
    """Collects the rows of one segment, of whatever groups."""

    def __init__(self, source: Source, request: SummaryRequest, rows: int) -> None:
        self._request = request
        self._names = (*source.feature_names, *source.target_names)
        self._targets = len(source.target_names)
        self._width = 1 + len(self._names)
        self._rows = room_for_rows(rows, self._width)
        self._weighted = source.has_weights
        self._held: list[_Held] = []
        # What stands in the first column where rows have no weights, and behind the last one.
        self._ones, self._zeros = np.ones(_LINE), np.zeros(_LINE)

    def feed(self, block: Block, begin: int, end: int) -> None:
        """Take rows begin to end of a block."""
        groups = self._request.partitioning.assign(block)[begin:end]
        weights = np.empty(0)
        if self._weighted:
            weights = np.ones(end - begin) if block.weights is None else block.weights[begin:end]
        held = _Held(groups, block.row_numbers[begin:end], weights, np.empty(0, dtype=np.int64), block)
        if isinstance(block, ColumnBlock) and block.addresses is not None and end - begin >= _LINE:
            # Columns of such a block are its own: they stay where they are.
            self._held.append(held._replace(addresses=block.addresses + 8 * begin))
            return
        rows = np.zeros((end - begin, self._rows.shape[1]))
        rows[:, 0] = np.sqrt(weights) if self._weighted else 1.0
        block.copy_into(rows[:, 1 : self._width].T, begin, end)
        self._held.append(held._replace(owner=rows))

    def finish(self, segment: int) -> Piece:
        """Return the piece of the segment, and begin with nothing again."""
        groups = np.concatenate([held.groups for held in self._held])
        weights = np.concatenate([held.weights for held in self._held])
        order = order_groups(groups)
        rows = self._rows[: len(groups)]
        self._place(order)
        flat, ends, finite = summarise_in_order(rows, weights, order, self._width)
        if not finite:
            self._refuse(rows[order.places, 1 : self._width])
        check_sizes(ends, self._names)
        weight = float(weights.sum()) if weights.size else float(len(groups))
        self._held = []
        return Piece(0, segment, (flat,), len(groups), weight, ends[:, ends.shape[1] - self._targets :])

    def _place(self, order: GroupOrder) -> None:
        """Put all rows in the order of their groups."""
        first = 0
        for held in self._held:
            count = len(held.groups)
            places = order.places[first : first + count]
            first += count
            if isinstance(held.owner, np.ndarray):
                place_rows(held.owner, places, self._rows)
                continue
            if count > len(self._ones):
                self._ones, self._zeros = np.ones(count), np.zeros(count)
            roots = np.sqrt(held.weights) if self._weighted else self._ones
            addresses = np.full(self._rows.shape[1], _address(self._zeros))
            addresses[0] = _address(roots)
            addresses[1 : self._width] = held.addresses
            place_past_cache(addresses, count, places, self._rows)

    def give_back(self) -> None:
        """Leave the room for rows to the next task of this thread: nothing of them is needed any more."""
        _kept.rows = self._rows

    def _refuse(self, values: FloatArray) -> None:
        finite = np.isfinite(values)
        if finite.all():
            raise InputError(TOO_LARGE)
        position = int(np.argmin(finite.all(axis=1)))
        column = int(np.argmin(finite[position]))
        numbers = np.concatenate([held.numbers for held in self._held])
        raise NotFiniteError(self._names[column], int(numbers[position]), float(values[position, column]))


def _address(values: FloatArray) -> int:
    return int(values.__array_interface__["data"][0])


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
