"""A pass over the rows for what single rows and levels show: largest leverage, rows per level; for the site alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.engines.base import Engine
from partsketch.engines.gather import Collector, gather, make_tasks
from partsketch.engines.run import run_tasks
from partsketch.engines.tolerance import Tolerance
from partsketch.sketches.base import SEGMENT_ROWS, Merging, SketchSpecification
from partsketch.sketches.groups import group_segment_rows
from partsketch.sources.base import Block, IntArray, Source
from partsketch.summaries.feeder import TOO_LARGE
from partsketch.summaries.partitions import Partitioning
from partsketch.summaries.summary import Summary
from partsketch.summaries.tasks import Feeder, PassRequest, Piece, SummaryRequest

FloatArray = NDArray[np.float64]

_TILE_ROWS = 2048
#: Directions of the columns that are smaller than this part of the largest are rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Whitening:
    """What makes the Gram matrix of a partition the identity: columns less `centre`, multiplied with `root`."""

    centre: FloatArray
    root: FloatArray


@dataclass(frozen=True)
class Shown:
    """What single rows and levels of a partition show.

    Attributes
    ----------
    leverage, row
        Largest leverage of a row among all columns, and the number of the row.
    nonzero
        Rows in which each column is not zero, in the order of the columns, the ones left out.
    """

    leverage: float
    row: int
    nonzero: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class LeverageRequest(PassRequest):
    """Asks for the largest leverage and for counts, in each partition."""

    partitioning: Partitioning
    whitenings: tuple[Whitening, ...]
    targets: int
    fit_intercept: bool = True
    segment_rows: int = SEGMENT_ROWS

    @property
    def merging(self) -> Merging:
        """The larger leverage, and sums of counts."""
        return _LargerAndSums()

    def feeder(self, source: Source, partition: int, segment: int, done: Feeder | None = None) -> Feeder:
        """Return what takes the rows of one segment."""
        return _Leverages(self, partition, segment, done if isinstance(done, _Leverages) else None)


class _LargerAndSums(Merging):
    """The first line is a leverage and the number of its row; the second has counts."""

    def merge(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """Return what both are together."""
        merged = first + second
        merged[0] = first[0] if first[0, 0] >= second[0, 0] else second[0]
        return np.asarray(merged)


class _Leverages:
    """Collects rows into tiles, and looks for the largest leverage."""

    def __init__(self, request: LeverageRequest, partition: int, segment: int, done: _Leverages | None = None) -> None:
        self._place, self._first, self._targets = (partition, segment), int(request.fit_intercept), request.targets
        self._whitening = request.whitenings[partition]
        self._count = len(self._whitening.centre)
        # Of many partitions each has few rows: a tile for each would take longer to make than to fill.
        self._tile: FloatArray = np.ones((self._count, _TILE_ROWS)) if done is None else done._tile
        self._weights: FloatArray = np.ones(_TILE_ROWS) if done is None else done._weights
        self._numbers: IntArray = np.zeros(_TILE_ROWS, dtype=np.int64) if done is None else done._numbers
        self._filled = self._rows = 0
        self._found = np.zeros((2, max(self._count, 2)))

    def feed(self, block: Block, begin: int, end: int) -> None:
        """Take rows of a block."""
        while begin < end:
            count = min(end - begin, _TILE_ROWS - self._filled)
            here = slice(self._filled, self._filled + count)
            block.copy_into(self._tile[self._first :, here], begin, begin + count)
            self._weights[here] = 1.0 if block.weights is None else block.weights[begin : begin + count]
            self._numbers[here] = block.row_numbers[begin : begin + count]
            self._filled += count
            begin += count
            if self._filled == _TILE_ROWS:
                self._flush()

    def _flush(self) -> None:
        if not self._filled:
            return
        rows = self._tile[:, : self._filled]
        self._found[1, : self._count] += np.count_nonzero(rows, axis=1)
        moved = rows - self._whitening.centre[:, None]
        white = self._whitening.root.T @ moved
        leverages = np.einsum("ij,ij->j", white, white) * self._weights[: self._filled]
        largest = int(np.argmax(leverages))
        if leverages[largest] > self._found[0, 0]:
            self._found[0, :2] = leverages[largest], self._numbers[largest]
        self._rows += self._filled
        self._filled = 0

    def finish(self) -> Piece:
        """Return the piece."""
        self._flush()
        return Piece(*self._place, (self._found,), self._rows, float(self._rows), np.zeros((2, self._targets)))


def whitening_of(factor: Summary) -> Whitening:
    """Return what whitens the rows of an exact factor."""
    with np.errstate(over="ignore", invalid="ignore"):
        rows = factor.rows.moved(-factor.centre).high
    if not np.isfinite(rows).all():
        raise InputError(TOO_LARGE)
    sizes = np.abs(rows).max(axis=0)
    units = np.where(sizes > 0, sizes, 1.0)
    _, values, directions = np.linalg.svd(rows / units, full_matrices=False)
    kept = values > _ROUNDING * (values[0] if len(values) else 0.0)
    root = directions[kept].T / values[kept] / units[:, None]
    return Whitening(np.asarray(factor.centre), np.ascontiguousarray(root))


def look_at_rows(
    source: Source, partitioning: Partitioning, fit_intercept: bool, engine: Engine, factors: Sequence[Summary] | None
) -> list[Shown | None]:
    """Return what single rows of each partition show; None for partitions without rows.

    `factors` are the exact summaries of the partitions, where they are at hand; otherwise they are made first.
    """
    if factors is None:
        exact = SummaryRequest(SketchSpecification("triangular"), partitioning, fit_intercept)
        factors = gather(source, exact, engine).summaries
    whitenings = tuple(whitening_of(factor) for factor in factors)
    rows = group_segment_rows(len(whitenings[0].centre), partitioning.count)
    request = LeverageRequest(partitioning, whitenings, len(source.target_names), fit_intercept, rows)
    tasks = make_tasks(source, partitioning, segment_rows=request.segment_rows)
    collected = Collector(request, tasks)
    for outcome in run_tasks(engine, source, request, tasks, range(len(tasks)), Tolerance()):
        collected.add(outcome)
    shown: list[Shown | None] = []
    for number, whitening in enumerate(whitenings):
        piece = collected.fold.take(number)
        if piece is None:
            shown.append(None)
            continue
        (found,) = piece.matrices
        counts = found[1, int(fit_intercept) : len(whitening.centre)]
        shown.append(Shown(float(found[0, 0]), int(found[0, 1]), tuple(int(count) for count in counts)))
    return shown
