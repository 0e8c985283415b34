"""The pass over the rows that finds sums by level."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.sketches.absorbed import LevelMerging, clusters_of_levels, level_products
from partsketch.sketches.base import SEGMENT_ROWS, Merging
from partsketch.sketches.coded import CodedRows
from partsketch.sources.base import Block, Source
from partsketch.summaries.feeder import TOO_LARGE, NotFiniteError
from partsketch.summaries.partitions import Partitioning
from partsketch.summaries.rows_in_place import add_in_order
from partsketch.summaries.tasks import Feeder, PassRequest, Piece

FloatArray = NDArray[np.float64]

#: Most rows of a segment, and most numbers of one.
_LONGEST_SEGMENT, _MOST_NUMBERS = 1 << 22, 1 << 25


@dataclass(frozen=True, eq=False)
class LevelRequest(PassRequest):
    """Asks for sums of products of all columns, and for their sums by level.

    Attributes
    ----------
    levels
        How many values the absorbed column has; labels of rows are their numbers.
    width
        Columns, the ones included.
    clustered
        Whether labels tell a cluster too, level + levels · cluster, and it is asked whether levels have one each.
    """

    partitioning: Partitioning
    levels: int
    width: int
    segment_rows: int = SEGMENT_ROWS
    clustered: bool = False
    fit_intercept: bool = True

    @property
    def merging(self) -> Merging:
        """Adding, level by level."""
        return LevelMerging(self.width, self.levels)

    def feeder(self, source: Source, partition: int, segment: int, done: Feeder | None = None) -> Feeder:
        """Return what takes the rows of one segment."""
        return _LevelFeeder(self, source, partition, segment)


def segment_rows_for(levels: int, width: int) -> int:
    """Return a length of segments with which their sums are no more numbers than their rows, within bounds."""
    rows = SEGMENT_ROWS
    while rows < 2 * levels and rows < _LONGEST_SEGMENT and 2 * rows * width <= _MOST_NUMBERS:
        rows *= 2
    return rows


class _LevelFeeder:
    """Collects the rows of one segment."""

    def __init__(self, request: LevelRequest, source: Source, partition: int, segment: int) -> None:
        self._request, self._place = request, (partition, segment)
        self._names = (*source.feature_names, *source.target_names)
        self._targets = len(source.target_names)
        self._weighted = source.has_weights
        self._dense: list[FloatArray] = []
        self._labels: list[NDArray[np.int64]] = []
        self._numbers: list[NDArray[np.int64]] = []
        self._weights: list[FloatArray] = []
        self._weight = 0.0

    def feed(self, block: Block, begin: int, end: int) -> None:
        """Take rows of a block."""
        assert block.labels is not None
        dense = np.ones((self._request.width, end - begin))
        block.copy_into(dense[1:], begin, end)
        self._dense.append(dense)
        self._labels.append(block.labels[begin:end].copy())
        self._numbers.append(block.row_numbers[begin:end].copy())
        if block.weights is not None:
            self._weights.append(block.weights[begin:end].copy())
            self._weight = add_in_order(self._weight, block.weights[begin:end])

    def finish(self) -> Piece:
        """Return the piece."""
        dense = np.hstack(self._dense)
        self._dense.clear()
        with np.errstate(all="ignore"):
            if not np.isfinite(dense.sum()):
                self._check(dense)
            weights = np.concatenate(self._weights) if self._weighted else np.empty(0)
            rows = CodedRows(
                dense,
                np.arange(len(dense)),
                len(dense),
                self._targets,
                np.empty((0, dense.shape[1]), dtype=np.int32),
                (),
                np.sqrt(weights),
                True,
            )
            labels, levels = np.concatenate(self._labels), self._request.levels
            clusters: tuple[FloatArray, ...] = ()
            if self._request.clustered:
                clusters, labels = (clusters_of_levels(labels, levels),), labels % levels
            matrix, lines, centre = level_products(rows, labels, levels)
        if not (np.isfinite(matrix).all() and np.isfinite(lines).all()):
            raise InputError(TOO_LARGE)
        targets = dense[len(dense) - self._targets :]
        ends = np.array([targets.min(axis=1), targets.max(axis=1)])
        count = dense.shape[1]
        weight = self._weight if self._weighted else float(count)
        return Piece(*self._place, (matrix, lines, *clusters), count, weight, ends, centre)

    def _check(self, dense: FloatArray) -> None:
        finite = np.isfinite(dense)
        if finite.all():
            return
        row = int(np.argmin(finite.all(axis=0)))
        column = int(np.argmin(finite[:, row]))
        number = int(np.concatenate(self._numbers)[row])
        raise NotFiniteError(self._names[column - 1], number, float(dense[column, row]))
