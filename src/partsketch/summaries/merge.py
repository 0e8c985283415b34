"""Merging the pieces of many partitions, each partition along its own fixed tree."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from partsketch.sketches.base import Merging, get_sketch
from partsketch.summaries.merge_tree import TreeFold
from partsketch.summaries.tasks import Piece, TaskResult
from partsketch.summaries.waiting_room import WaitingRoom

#: Nodes of one partition that may wait for siblings before those that will never come are looked for.
_FEW_NODES = 16


class PieceFold:
    """Folds pieces by partition; they may come in any order, merged to any level.

    Parameters
    ----------
    merging
        How two matrices become one.
    is_known
        Tells of a node (level, segment) whether all its rows have been seen, so that what did not come is empty.
        Rows of a rare partition may be in few segments only; without it their pieces would wait for siblings that
        never come.
    room
        Where pieces go that wait long; without one all of them stay in memory.
    """

    def __init__(
        self,
        merging: Merging,
        is_known: Callable[[int, int], bool] = lambda level, segment: False,
        room: WaitingRoom | None = None,
    ) -> None:
        # Not a method of this fold: it and its trees would hold one another, and what was merged into others would stay
        # in memory until a collection of cycles.
        self._room = room
        self._merged = partial(_merged, merging) if room is None else partial(_merged_from, room, merging)
        self._is_known = is_known
        self._folds: dict[int, TreeFold[Piece]] = {}
        self._patience: dict[int, int] = {}

    def add(self, piece: Piece) -> None:
        """Add a piece of any partition."""
        partition = piece.partition
        if partition not in self._folds:
            self._folds[partition] = TreeFold(self._merged)
        fold = self._folds[partition]
        fold.push(piece.level, piece.segment, piece)
        # Looking costs as much as there are nodes, so it waits until they have doubled.
        if len(fold) > self._patience.get(partition, _FEW_NODES):
            fold.settle(self._is_known)
            self._patience[partition] = max(_FEW_NODES, 2 * len(fold))
        if self._room is not None and (staying := self._room.staying(len(fold), piece)) is not None:
            fold.change_first(len(fold) - staying, self._room.parked)

    def pieces(self) -> tuple[Piece, ...]:
        """Return what has been merged so far, by partition and in the order of segments."""
        return tuple(
            replace(piece if self._room is None else self._room.looked_at(piece), level=level, segment=segment)
            for partition in sorted(self._folds)
            for level, segment, piece in self._folds[partition].nodes()
        )

    def take(self, partition: int) -> Piece | None:
        """Return all of a partition in one piece, and keep nothing of it; None when nothing of it came."""
        found = self._folds.pop(partition).result() if partition in self._folds else None
        return found if found is None or self._room is None else self._room.fetched(found)


def _merged_from(room: WaitingRoom, merging: Merging, first: Piece, second: Piece) -> Piece:
    return _merged(merging, room.fetched(first), room.fetched(second))


def _merged(merging: Merging, first: Piece, second: Piece) -> Piece:
    first, second = _around_one_centre(merging, first, second)
    target_range = np.empty_like(first.target_range)
    np.minimum(first.target_range[0], second.target_range[0], out=target_range[0])
    np.maximum(first.target_range[1], second.target_range[1], out=target_range[1])
    return Piece(
        partition=first.partition,
        segment=first.segment,
        matrices=merging.merge_all(first.matrices, second.matrices),
        row_count=first.row_count + second.row_count,
        weight_sum=first.weight_sum + second.weight_sum,
        target_range=target_range,
        centre=first.centre,
        level=first.level,
        beside=_merged_beside(first.beside, second.beside),
    )


def _merged_beside(first: Piece | None, second: Piece | None) -> Piece | None:
    if first is None or second is None:
        return None
    return _merged(get_sketch("triangular"), first, second)


def _around_one_centre(merging: Merging, first: Piece, second: Piece) -> tuple[Piece, Piece]:
    """Return pieces from whose columns the same was taken off: what the first has, or the second where it has none."""
    if first.centre is None and second.centre is None:
        return first, second
    mine, theirs = (np.zeros(1) if piece.centre is None else piece.centre for piece in (first, second))
    centre = np.where(mine != 0, mine, theirs)
    moved = []
    for piece, taken_off in ((first, mine), (second, theirs)):
        matrices = piece.matrices
        if not np.array_equal(taken_off, centre):
            matrices = tuple(merging.moved(matrix, taken_off - centre) for matrix in matrices)
        moved.append(replace(piece, matrices=matrices, centre=centre))
    return moved[0], moved[1]


def merge_in_order(merging: Merging, pieces: Iterable[Piece]) -> tuple[Piece, ...]:
    """Merge the pieces of consecutive rows; those of each partition come in the order of their segments."""
    first: dict[int, int] = {}
    last = partition = -1

    def is_known(level: int, segment: int) -> bool:
        # Between two pieces of a partition there is nothing of it that has not come.
        return first[partition] <= segment << level and (segment + 1) << level <= last + 1

    fold = PieceFold(merging, is_known)
    for piece in pieces:
        partition, last = piece.partition, piece.segment
        first.setdefault(partition, last)
        fold.add(piece)
    return fold.pieces()


def merge_results(merging: Merging, results: Sequence[TaskResult]) -> TaskResult:
    """Merge what several tasks brought back into one result.

    Engines call this where the results are, so that few and small ones travel. Whatever is merged with what, and in
    whatever order, the bits at the end are the same.
    """
    fold = PieceFold(merging)
    for result in results:
        for piece in result.pieces:
            fold.add(piece)
    return TaskResult(
        pieces=fold.pieces(),
        dropped=sum(result.dropped for result in results),
        rows_seen=sum(result.rows_seen for result in results),
    )
