"""The pass over rows of few columns: tiles are worked on where they lie, or copied if they lie in several blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from partsketch.common.linalg.blas import padded_width
from partsketch.common.linalg.column_kernels import column_addresses
from partsketch.common.linalg.lanes import LANES
from partsketch.common.memory import in_large_pages
from partsketch.fitting.robust.keeping_kernels import keep_rows, keep_scores
from partsketch.fitting.robust.kept_lanes import HALF
from partsketch.fitting.robust.strip_kernels import (
    GROUP_BITS,
    STRIP_ROWS,
    Room,
    Turn,
    add_clusters,
    add_squares,
)
from partsketch.fitting.robust.vcov import row_alone
from partsketch.sources.base import Block
from partsketch.sources.blocks import ColumnBlock
from partsketch.summaries.tasks import Piece

if TYPE_CHECKING:
    from partsketch.fitting.robust.scores import ScoreRequest

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

#: Most columns, targets included, for which strips are quicker than the products of a library.
MOST_COLUMNS = 32
#: Rows of a tile; of clusters each should have several of them.
_TILE_ROWS, CLUSTER_ROWS = 4096, 16384
#: Rows that clusters have in a tile on average, from which on those of each are summed together, and most sums of all.
_ROWS_EACH, _MOST_SUMS = 4, 1 << 20

_NO_LABELS, _NO_WEIGHTS = np.empty(0, dtype=np.int64), np.empty(0)


class _Strips:
    """Gives rows to a kernel, a tile of a fixed height at a time."""

    def __init__(
        self,
        request: ScoreRequest,
        partition: int,
        segment: int,
        height: int,
        lines_behind: int = 0,
        scores: int = 0,
    ) -> None:
        self.request, self._place, self._height = request, (partition, segment), height
        columns, self._targets = request.coefficients.shape
        self._read = columns + self._targets - int(request.fit_intercept)
        self._labelled = bool(request.clusters)
        root = np.diag(1.0 / request.units) if request.root is None else np.ascontiguousarray(request.root.T)
        self._turn = Turn(
            int(request.fit_intercept),
            request.centre,
            np.hstack([-request.coefficients.T, np.diag(1.0 / request.target_units)]),
            root,
            np.array([[*np.flatnonzero(line)[[0, -1]] + [0, 1]] for line in root], dtype=np.int64),
            int(request.root is None),
        )
        width = request.width
        turned = np.zeros((-(-(width + self._targets + lines_behind) // LANES) * LANES, STRIP_ROWS))
        scaled = np.zeros((max(padded_width(width), scores), STRIP_ROWS))
        self._room = Room(
            np.zeros((columns + self._targets, STRIP_ROWS)),
            np.empty(STRIP_ROWS),
            turned,
            scaled,
            column_addresses(turned),
            column_addresses(scaled),
        )
        self._tile = np.empty((0, 0))
        self._filled = self._rows = 0
        self._weight = 0.0

    def feed(self, block: Block, begin: int, end: int) -> None:
        """Take rows of a block."""
        addresses = block.addresses if isinstance(block, ColumnBlock) else None
        while begin < end:
            if addresses is not None and not self._filled and end - begin >= self._height:
                here = slice(begin, begin + self._height)
                weights = (
                    _NO_WEIGHTS if block.weights is None else np.ascontiguousarray(block.weights[here], np.float64)
                )
                labels = _NO_LABELS if block.labels is None or not self._labelled else block.labels[here]
                self._take(addresses + 8 * begin, self._height, labels, weights, block.row_numbers[here])
                begin = here.stop
                continue
            begin += self._copy(block, begin, end)
            if self._filled == self._height:
                self._flush()

    def _copy(self, block: Block, begin: int, end: int) -> int:
        """Copy rows into the tile, and return how many."""
        if not self._tile.size:
            self._tile = np.empty((self._read, self._height))
            self._tile_weights = np.empty(self._height)
            self._tile_labels, self._tile_numbers = np.empty((2, self._height), dtype=np.int64)
        count = min(end - begin, self._height - self._filled)
        here, there = slice(self._filled, self._filled + count), slice(begin, begin + count)
        block.copy_into(self._tile[:, here], begin, begin + count)
        self._tile_weights[here] = 1.0 if block.weights is None else block.weights[there]
        self._tile_numbers[here] = block.row_numbers[there]
        if self._labelled:
            assert block.labels is not None
            self._tile_labels[here] = block.labels[there]
        self._filled += count
        return count

    def _flush(self) -> None:
        if self._filled:
            count, self._filled = self._filled, 0
            labels = self._tile_labels[:count] if self._labelled else _NO_LABELS
            weights = self._tile_weights[:count]
            self._take(column_addresses(self._tile), count, labels, weights, self._tile_numbers[:count])

    def _take(self, addresses: IntArray, count: int, labels: IntArray, weights: FloatArray, numbers: IntArray) -> None:
        self._rows += count
        self._weight += float(weights.sum()) if weights.size else float(count)
        self._sum(addresses, count, labels, weights, numbers)

    def _sum(self, addresses: IntArray, count: int, labels: IntArray, weights: FloatArray, numbers: IntArray) -> None:
        raise NotImplementedError

    def _matrices(self) -> tuple[FloatArray, ...]:
        raise NotImplementedError

    def finish(self) -> Piece:
        """Return the piece."""
        self._flush()
        nothing = np.zeros((2, self._targets))
        return Piece(*self._place, self._matrices(), self._rows, self._weight, nothing)


class StripSquares(_Strips):
    """Sums squares of scores, one matrix per target."""

    def __init__(self, request: ScoreRequest, partition: int, segment: int) -> None:
        super().__init__(request, partition, segment, _TILE_ROWS)
        padded = len(self._room.scaled)
        self._sums = np.zeros((self._targets, padded, padded))
        self._power = {"HC2": 1, "HC3": 2}.get(request.kind, 0)

    def _sum(self, addresses: IntArray, count: int, labels: IntArray, weights: FloatArray, numbers: IntArray) -> None:
        least, where = add_squares(addresses, count, weights, self._turn, self._power, self._room, self._sums)
        row_alone(self.request.kind, least, int(numbers[where]))

    def _matrices(self) -> tuple[FloatArray, ...]:
        width = self.request.width
        upper = np.triu(self._sums[:, :width, :width])
        return tuple(upper + np.triu(upper, 1).transpose(0, 2, 1))


class StripClusters(_Strips):
    """Sums scores, and for the jackknife products of columns, by cluster."""

    def __init__(self, request: ScoreRequest, partition: int, segment: int) -> None:
        super().__init__(request, partition, segment, CLUSTER_ROWS)
        step = len(self._room.turned)
        self._near = np.empty((0, step))
        self._squares = np.zeros((request.clusters, step, step))
        self._seen = np.zeros(request.clusters, dtype=bool)

    def _sum(self, addresses: IntArray, count: int, labels: IntArray, weights: FloatArray, numbers: IntArray) -> None:
        if not self._near.size:
            self._near = np.empty((self._height, self._near.shape[1]))
        self._seen[labels] = True
        add_clusters(addresses, count, labels, weights, self._turn, self._room, self._near, self._squares)

    def _matrices(self) -> tuple[FloatArray, ...]:
        """Return a line for each cluster: scores, lower triangle of the products of columns, and its number."""
        clusters, width = np.flatnonzero(self._seen), self.request.width
        squares = self._squares if self._seen.all() else self._squares[clusters]
        scores = squares[:, :width, width : width + self._targets].transpose(0, 2, 1)
        parts = [scores.reshape(len(clusters), -1), clusters[:, None]]
        if self.request.kind == "CRV3":
            rows, columns = np.tril_indices(width)
            parts.insert(1, squares[:, columns, rows])
        return (np.hstack(parts),)


class StripRows(_Strips):
    """Keeps the scores of rows, or for the jackknife the rows as the fit sees them, and the numbers of their clusters.

    Rows of a tile lie in the order of groups of clusters, those of a group in their own order.
    """

    def __init__(self, request: ScoreRequest, partition: int, segment: int) -> None:
        step = kept_numbers(request.kind, request.width, request.coefficients.shape[1])
        # The jackknife asks for the squares of rows, and who asks for rows for their clusters.
        super().__init__(request, partition, segment, CLUSTER_ROWS, 2, step)
        self._keep = keep_scores if request.kind == "CRV1" else keep_rows
        self._kept = in_large_pages((request.segment_rows, step))
        self._places = np.empty((2, CLUSTER_ROWS), dtype=np.int64)
        self._groups = -(-request.clusters >> GROUP_BITS)
        self._starts: list[FloatArray] = []

    def _sum(self, addresses: IntArray, count: int, labels: IntArray, weights: FloatArray, numbers: IntArray) -> None:
        first, starts = self._rows - count, np.empty(self._groups + 1)
        kept, labels = self._kept[first : self._rows], np.ascontiguousarray(labels)
        self._keep(addresses, count, labels, weights, self._turn, self._room, self._places, kept, starts)
        self._starts.append(first + starts)

    def _matrices(self) -> tuple[FloatArray, ...]:
        """Return rows, and where each group begins in each tile."""
        return self._kept[: self._rows], np.array(self._starts)


def kept_numbers(kind: str, width: int, targets: int) -> int:
    """Return how many numbers a row has that is kept."""
    if kind == "CRV1":
        return -(-(targets * width + 1) // HALF) * HALF
    return -(-(width + targets + 2) // LANES) * LANES


def takes_clusters(coefficients: FloatArray, clusters: int) -> bool:
    """Tell whether clusters have several rows in a tile, and their sums stay in the cache."""
    columns = sum(coefficients.shape)
    step = -(-columns // LANES) * LANES
    return columns <= MOST_COLUMNS and _ROWS_EACH * clusters <= CLUSTER_ROWS and clusters * step * step <= _MOST_SUMS
