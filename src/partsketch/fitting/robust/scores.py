"""The pass over the rows: residuals of the fit, times the columns, squared and summed, or summed by cluster.

Rows are in the coordinates of the fit: columns measured from a centre, in units of their spread. Where columns are
nearly dependent, and where leverages are needed, they are also multiplied with a root of the inverse Gram matrix, so
that their own Gram matrix is the identity.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from partsketch.common.linalg.lanes import LANES
from partsketch.fitting.robust import kernels
from partsketch.fitting.robust.cluster_lines import ClusterLines, added_lines
from partsketch.fitting.robust.strips import MOST_COLUMNS, StripClusters, StripRows, StripSquares, takes_clusters
from partsketch.fitting.robust.tiles import LEAST_ROWS, TILE_NUMBERS, TileFeeder
from partsketch.fitting.robust.two_ways import TwoWays
from partsketch.fitting.robust.vcov import row_alone
from partsketch.fitting.robust.within import Absorbed, WithinRows
from partsketch.sketches.base import SEGMENT_ROWS, Merging
from partsketch.sources.base import Block, Source
from partsketch.summaries.partitions import Partitioning
from partsketch.summaries.tasks import Feeder, PassRequest, Piece

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

#: Most rows of a segment.
_LONGEST_SEGMENT = 1 << 22


@dataclass(frozen=True, eq=False)
class ScoreRequest(PassRequest):
    """Asks for what the noise does to the coefficients.

    Attributes
    ----------
    kind
        "HC0" to "HC3", "CRV1" or "CRV3".
    centre
        What is taken off the columns, the intercept first, then features and targets.
    target_units
        What targets are then divided by.
    coefficients
        Of columns less their centre, shape (columns, targets).
    root
        What columns less their centre are multiplied with, shape (columns, rank); None divides them by `units` alone.
    units
        Of the features.
    clusters
        How many values the column of the clusters has.
    absorbed
        Levels that have intercepts of their own, if there are any.
    keeps_rows
        Whether the rows, as the fit sees them, are kept until all of a cluster are there.
    both_ways
        Whether there are clusters of two columns; labels are then first + clusters · second.
    """

    partitioning: Partitioning
    fit_intercept: bool
    kind: str
    centre: FloatArray
    target_units: FloatArray
    coefficients: FloatArray
    root: FloatArray | None
    units: FloatArray
    clusters: int = 0
    segment_rows: int = SEGMENT_ROWS
    absorbed: Absorbed | None = None
    keeps_rows: bool = False
    both_ways: bool = False

    @property
    def merging(self) -> Merging:
        """Adding, cluster by cluster where there are some."""
        if self.keeps_rows:
            return Listing()
        return ByCluster() if self.clusters else Merging()

    @property
    def row_by_row(self) -> bool:
        """Whether each row goes to the sums of its cluster as it is: nothing but scores is asked for."""
        return self.kind == "CRV1" and self.root is None and not self.both_ways and not self.keeps_rows

    @property
    def stride(self) -> int:
        """Numbers that a target has in the sums of a cluster."""
        columns, targets = self.coefficients.shape
        # Whole vectors, with place for the number of the cluster.
        return -(-(columns + targets + 1) // LANES) * LANES if self.row_by_row else self.width

    @property
    def width(self) -> int:
        """Number of columns after the multiplication."""
        return len(self.coefficients) if self.root is None else int(self.root.shape[1])

    def feeder(self, source: Source, partition: int, segment: int, done: Feeder | None = None) -> Feeder:
        """Return what takes the rows of one segment."""
        inner = self._inner(partition, segment)
        return inner if self.absorbed is None else WithinRows(self.absorbed, inner, self.both_ways)

    def _inner(self, partition: int, segment: int) -> Feeder:
        if self.both_ways:
            return TwoWays(self, partition, segment)
        if self.keeps_rows:
            return StripRows(self, partition, segment)
        if self.row_by_row:
            return _RowScores(self, partition, segment)
        if not self.clusters:
            narrow = sum(self.coefficients.shape) <= MOST_COLUMNS
            return (StripSquares if narrow else _Squares)(self, partition, segment)
        few = takes_clusters(self.coefficients, self.clusters)
        return (StripClusters if few else _Clusters)(self, partition, segment)


def segment_rows_for(clusters: int) -> int:
    """Return a length of segments with which their sums are no more numbers than their rows."""
    rows = SEGMENT_ROWS
    while rows < 2 * clusters and rows < _LONGEST_SEGMENT:
        rows *= 2
    return rows


class Listing(Merging):
    """Lists what segments kept, in the order of their rows."""

    def merge_all(self, first: tuple[FloatArray, ...], second: tuple[FloatArray, ...]) -> tuple[FloatArray, ...]:
        """Return both, nothing copied."""
        return first + second


class ByCluster(Merging):
    """Adds lines of the same cluster, whose number comes last; lines are in the order of these numbers."""

    def merge(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """Return the sums of both."""
        if len(first) == len(second) and np.array_equal(first[:, -1], second[:, -1]):
            merged = first + second
            merged[:, -1] = first[:, -1]
            return np.asarray(merged)
        return added_lines(np.vstack([first, second]))


class _Squares(TileFeeder):
    """Sums squares of scores, one matrix per target."""

    def __init__(self, request: ScoreRequest, partition: int, segment: int) -> None:
        super().__init__(request, partition, segment)
        self._sums = np.zeros((self._targets, request.width, request.width))

    def _sum(self, rows: FloatArray, scores: FloatArray, weights: FloatArray, count: int) -> None:
        kind = self.request.kind
        if kind in ("HC2", "HC3"):
            left = 1.0 - np.einsum("ij,ij->j", rows, rows) * weights
            row_alone(kind, float(left.min()), int(self._numbers[int(np.argmin(left))]))
            scores = scores / (left if kind == "HC3" else np.sqrt(left))
        for target in range(self._targets):
            scaled = rows * scores[target]
            self._sums[target] += scaled @ scaled.T

    def _matrices(self) -> tuple[FloatArray, ...]:
        return tuple(self._sums)


class _Clusters(TileFeeder):
    """Sums scores, and for the jackknife products of columns, by cluster."""

    def __init__(self, request: ScoreRequest, partition: int, segment: int) -> None:
        super().__init__(request, partition, segment)
        width = request.width
        self._products = self._targets * width
        self._lines = ClusterLines(
            request.clusters,
            request.segment_rows,
            self._products + (width * (width + 1) // 2 if request.kind == "CRV3" else 0) + 1,
        )

    def _turned(self, rows: FloatArray) -> FloatArray:
        """Return rows in the coordinates of the fit, one line each."""
        return self._lines_of(rows)

    def _sum(self, rows: FloatArray, scores: FloatArray, weights: FloatArray, count: int) -> None:
        labels, lines = self._labels[:count], self._lines
        lines.prepare(labels)
        lines.used = kernels.add_scores(labels, rows, scores, lines.slots, lines.used, lines.sums)
        if self.request.kind == "CRV3":
            kernels.add_products(labels, rows, weights, lines.slots, self._products, lines.sums)

    def _matrices(self) -> tuple[FloatArray, ...]:
        return self._lines.found()


class _RowScores:
    """Sums scores by cluster, of rows as they come: a row at a time needs no tiles of a fixed height."""

    def __init__(self, request: ScoreRequest, partition: int, segment: int) -> None:
        self._place = (partition, segment)
        self._columns, self._targets = request.coefficients.shape
        self._first, step = int(request.fit_intercept), request.stride
        self._rows = np.zeros((max(LEAST_ROWS, TILE_NUMBERS // step), step))
        self._rows[:, : self._first] = 1.0
        self._centre, self._coefficients = np.zeros(step), np.zeros((self._targets, step))
        self._centre[: len(request.centre)] = request.centre
        self._centre[: self._first] = 0.0
        self._coefficients[:, : self._columns] = -request.coefficients.T
        of_target = np.arange(self._targets)
        self._coefficients[of_target, self._columns + of_target] = 1.0 / request.target_units
        self._lines = ClusterLines(request.clusters, request.segment_rows, self._targets * step)
        self._count, self._weight = 0, 0.0

    def feed(self, block: Block, begin: int, end: int) -> None:
        """Take rows of a block."""
        assert block.labels is not None
        for start in range(begin, end, len(self._rows)):
            stop = min(start + len(self._rows), end)
            rows, labels = self._rows[: stop - start], block.labels[start:stop]
            block.copy_into(rows[:, self._first : self._columns + self._targets].T, start, stop)
            weights = np.empty(0) if block.weights is None else block.weights[start:stop]
            self._weight += float(weights.sum()) if weights.size else stop - start
            lines = self._lines
            lines.prepare(labels)
            lines.used = kernels.add_row_scores(
                labels, rows, weights, self._centre, self._coefficients, lines.slots, lines.used, lines.sums
            )
        self._count += end - begin

    def finish(self) -> Piece:
        """Return the piece."""
        return Piece(*self._place, self._lines.found(), self._count, self._weight, np.zeros((2, self._targets)))
