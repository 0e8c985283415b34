"""The pass over the rows: sums of products of rows that were bounded, measured and rounded to whole numbers.

Every number is a whole number below 2⁵³, so that sums are exact: neither their order nor the machine can change them,
and what one row changes is what the norm of its whole numbers says.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.engines.base import Engine
from partsketch.engines.gather import Collector, make_tasks
from partsketch.engines.run import run_tasks
from partsketch.engines.tolerance import Tolerance
from partsketch.sites.noisy.bounds import Measures
from partsketch.sketches.base import SEGMENT_ROWS, Merging
from partsketch.sources.base import Block, Source
from partsketch.summaries.feeder import NotFiniteError
from partsketch.summaries.noisy_summary import STEPS, unit_of_steps
from partsketch.summaries.partitions import Partitioning, single_partition
from partsketch.summaries.tasks import Feeder, PassRequest, Piece

FloatArray = NDArray[np.float64]

#: Rows of a tile: 2¹² squares of 2²⁰ steps are 2⁵², which a double holds exactly.
_TILE_ROWS = 1 << 12
#: Sums are kept in two doubles, multiples of this and the rest: 2²⁶ tiles of them are still exact.
_HIGH = float(1 << 26)


@dataclass(frozen=True, eq=False)
class ProductsRequest(PassRequest):
    """Asks for sums of products of whole numbers, and, for the site alone, for ends and moments of its columns."""

    partitioning: Partitioning
    measures: Measures
    targets: int
    fit_intercept: bool = True
    segment_rows: int = SEGMENT_ROWS

    @property
    def merging(self) -> Merging:
        """Adding sums, and taking the further of two ends."""
        return _SumsAndEnds()

    def feeder(self, source: Source, partition: int, segment: int, done: Feeder | None = None) -> Feeder:
        """Return what takes the rows of one segment."""
        return _Products(self, (*source.feature_names, *source.target_names), partition, segment)


class _SumsAndEnds(Merging):
    """The last two lines are the smallest values and minus the largest ones; the others are sums."""

    def merge(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """Return what both are together."""
        merged = first + second
        merged[-2:] = np.minimum(first[-2:], second[-2:])
        return np.asarray(merged)


class _Products:
    """Collects rows into tiles, and sums their products."""

    def __init__(self, request: ProductsRequest, names: tuple[str, ...], partition: int, segment: int) -> None:
        self._place, self._targets, self._names = (partition, segment), request.targets, names
        measures = request.measures
        self._measures, self._count = measures, len(measures.bounds) + 1
        self._lower, self._upper, self._centre, self._spread, self._factor = (
            np.array([getattr(known, name) for known in measures.bounds])[:, None]
            for name in ("lower", "upper", "centre", "spread", "factor")
        )
        self._tile, self._numbers = np.empty((self._count - 1, _TILE_ROWS)), np.zeros(_TILE_ROWS, dtype=np.int64)
        self._filled = self._rows = 0
        self._high, self._low = np.zeros((2, self._count, self._count))
        self._ends = np.full((2, self._count), np.inf)
        self._moments = np.zeros((2, self._count))

    def feed(self, block: Block, begin: int, end: int) -> None:
        """Take rows of a block."""
        while begin < end:
            count = min(end - begin, _TILE_ROWS - self._filled)
            here = slice(self._filled, self._filled + count)
            block.copy_into(self._tile[:, here], begin, begin + count)
            self._numbers[here] = block.row_numbers[begin : begin + count]
            self._filled += count
            begin += count
            if self._filled == _TILE_ROWS:
                self._flush()

    def _flush(self) -> None:
        if not self._filled:
            return
        values = self._tile[:, : self._filled]
        ends = np.stack([values.min(axis=1), -values.max(axis=1)])
        if not np.isfinite(ends).all():
            self._refuse(values)
        self._ends[:, 1:] = np.minimum(self._ends[:, 1:], ends)
        with np.errstate(over="ignore"):
            away = values - self._centre
            self._moments[:, 1:] += np.stack([away.sum(axis=1), np.square(away).sum(axis=1)])
        steps = self._steps(values)
        sums = steps @ steps.T
        high = np.floor(sums / _HIGH)
        self._high += high
        self._low += sums - high * _HIGH
        self._rows += self._filled
        self._filled = 0

    def _refuse(self, values: FloatArray) -> None:
        """Name the first value that is missing or infinite: bounds would move it, and sources leave it to us."""
        finite = np.isfinite(values)
        row = int(np.argmin(finite.all(axis=0)))
        column = int(np.argmin(finite[:, row]))
        raise NotFiniteError(self._names[column], int(self._numbers[row]), float(values[column, row]))

    def _steps(self, values: FloatArray) -> FloatArray:
        """Return rows as whole numbers of steps, whose squares add up to at most the square of `STEPS`."""
        rows = np.ones((self._count, values.shape[1]))
        inside = np.clip(values, self._lower, self._upper)
        rows[1:] = (inside - self._centre) / self._spread * self._factor
        features = self._count - self._targets
        rows *= np.minimum(1.0, self._measures.clip / norms_of(rows[:features]))
        steps = np.rint(rows / unit_of_steps(self._measures.norm, self._count))
        # The promise rests on this line, in whole numbers, and not on the roundings above.
        steps[:, ~(np.einsum("ij,ij->j", steps, steps) <= float(STEPS) ** 2)] = 0.0
        return steps

    def finish(self) -> Piece:
        """Return the piece."""
        self._flush()
        matrix = np.vstack([self._high, self._low, self._moments, self._ends])
        return Piece(*self._place, (matrix,), self._rows, float(self._rows), np.zeros((2, self._targets)))


def norms_of(rows: FloatArray) -> FloatArray:
    """Return the norm of every column, whose bits depend on its own numbers alone.

    Products of a library add up in another order where a tile ends: a row that is removed would move others.
    """
    squares = rows[0] * rows[0]
    for line in rows[1:]:
        squares += line * line
    return np.asarray(np.sqrt(squares))


@dataclass(frozen=True, eq=False)
class Products:
    """Sums of products in steps, as whole numbers of any size.

    Besides, for the site alone: ends of the columns, their means and deviations, and how many rows there are.
    """

    sums: list[list[int]]
    smallest: FloatArray
    largest: FloatArray
    mean: FloatArray
    deviation: FloatArray
    row_count: int


def sum_products(source: Source, measures: Measures, engine: Engine) -> Products:
    """Return the sums of products of all rows."""
    request = ProductsRequest(single_partition(source.row_count), measures, len(source.target_names))
    tasks = make_tasks(source, request.partitioning, segment_rows=request.segment_rows)
    collected = Collector(request, tasks)
    for outcome in run_tasks(engine, source, request, tasks, range(len(tasks)), Tolerance()):
        collected.add(outcome)
    whole = collected.fold.take(0)
    if whole is None:
        raise InputError(f"There are no rows in {source.description}.")
    count = len(measures.bounds) + 1
    (matrix,) = whole.matrices
    high, low, (first, second, *ends) = matrix[:count], matrix[count : 2 * count], matrix[2 * count :, 1:]
    sums = [[int(high[i, j]) * int(_HIGH) + int(low[i, j]) for j in range(count)] for i in range(count)]
    centre = np.array([known.centre for known in measures.bounds])
    with np.errstate(over="ignore", invalid="ignore"):
        away = first / whole.row_count
        deviation = np.sqrt(second / whole.row_count - away**2)
    return Products(sums, ends[0], -ends[1], centre + away, deviation, whole.row_count)
