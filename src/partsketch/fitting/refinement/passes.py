"""One pass over the rows: residuals of given coefficients, multiplied with the columns, summed by segment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.engines.base import Engine
from partsketch.engines.gather import Collector, make_tasks
from partsketch.engines.run import run_tasks
from partsketch.engines.tolerance import Tolerance
from partsketch.fitting.refinement import kernels
from partsketch.sketches.base import Merging
from partsketch.sources.base import Block, Source
from partsketch.sources.dense_block import DenseBlock
from partsketch.summaries.feeder import NotFiniteError
from partsketch.summaries.partitions import Partitioning
from partsketch.summaries.tasks import Feeder, PassRequest, Piece

FloatArray = NDArray[np.float64]

#: Rows of a segment: passes are short and should occupy all workers to their end. Narrow and sparse rows are quicker.
_SEGMENT_NUMBERS, _LEAST_SEGMENT_ROWS, _SPARSE_SEGMENT_ROWS = 4_000_000, 2048, 32768

#: Rows that are converted at once when they do not lie in memory as they are needed.
_CONVERTED_ROWS = 512

_NO_WEIGHTS = np.empty(0)


@dataclass(frozen=True, eq=False)
class ProductRequest(PassRequest):
    """Asks for products; those of different rows are added.

    Attributes
    ----------
    coefficients
        B, one row per column (the intercept first) and one column per target or direction.
    with_targets
        Whether residuals are Y − A B; otherwise they are −A B.
    with_scales
        Whether sums and sums of squares of the columns of sparse rows are wanted too.
    """

    partitioning: Partitioning
    fit_intercept: bool
    segment_rows: int
    coefficients: FloatArray
    with_targets: bool = True
    with_scales: bool = False

    @property
    def merging(self) -> Merging:
        """Adding."""
        return Merging()

    def feeder(self, source: Source, partition: int, segment: int, done: Feeder | None = None) -> Feeder:
        """Return what multiplies the rows of one segment."""
        return _Multiplier(source, self, partition, segment)


@dataclass(frozen=True, eq=False)
class Products:
    """What a pass brought back.

    Attributes
    ----------
    gradients
        Aᵀ W (Y − A B), shape (columns, targets).
    residual_sums
        Weighted sums of squared residuals, one per target.
    scales
        Weighted sums and sums of squares of the columns, shape (columns, 2); empty unless asked for.
    target_sums
        Weighted sums and sums of squares of the targets, shape (2, targets), if they were asked for.
    whole
        Rows and weight, and the range of the targets if they were asked for.
    rows_dropped
        Rows left out for missing values.
    """

    gradients: FloatArray
    residual_sums: FloatArray
    scales: FloatArray
    target_sums: FloatArray
    whole: Piece
    rows_dropped: int


class RowPasses:
    """Rows of a source that can be passed over again and again, on any engine."""

    def __init__(
        self, source: Source, partitioning: Partitioning, fit_intercept: bool, engine: Engine, sparse: bool
    ) -> None:
        self._source, self._partitioning, self._engine = source, partitioning, engine
        dense_rows = max(_LEAST_SEGMENT_ROWS, _SEGMENT_NUMBERS // (1 + len(source.feature_names)))
        self._segment_rows = _SPARSE_SEGMENT_ROWS if sparse else dense_rows
        self._fit_intercept = fit_intercept
        self.passes = 0

    def multiply(self, coefficients: FloatArray, with_targets: bool, with_scales: bool = False) -> Products:
        """Make one pass."""
        self.passes += 1
        request = ProductRequest(
            self._partitioning,
            self._fit_intercept,
            segment_rows=self._segment_rows,
            coefficients=np.ascontiguousarray(coefficients),
            with_targets=with_targets,
            with_scales=with_scales,
        )
        tasks = make_tasks(self._source, self._partitioning, segment_rows=self._segment_rows)
        collected = Collector(request, tasks)
        for outcome in run_tasks(self._engine, self._source, request, tasks, range(len(tasks)), Tolerance()):
            collected.add(outcome)
        whole = collected.fold.take(0)
        if whole is None:
            raise InputError(f"There are no rows to fit in {self._source.description}.")
        matrix, (columns, count) = whole.matrices[0], coefficients.shape
        return Products(
            gradients=matrix[:columns, :count],
            residual_sums=matrix[columns, :count],
            scales=matrix[:columns, count:],
            target_sums=whole.matrices[1],
            whole=whole,
            rows_dropped=collected.dropped,
        )


class _Multiplier:
    """Multiplies the rows of one segment."""

    def __init__(self, source: Source, request: ProductRequest, partition: int, segment: int) -> None:
        self._request, self._place = request, (partition, segment)
        self._first = int(request.fit_intercept)
        columns, self._count = request.coefficients.shape
        self._features, self._targets = columns - self._first, len(source.target_names)
        self._state = np.zeros(1, dtype=np.int64)
        self._by_target = np.ascontiguousarray(request.coefficients.T)
        self._sums = np.zeros((2, self._count, columns + 1))
        self._groups: list[FloatArray] = []
        self._group_sums: list[FloatArray] = []
        self._group_states: list[NDArray[np.int64]] = []
        self._scales = np.zeros((columns, 2))
        self._rows = 0
        self._weight = 0.0
        self._range = np.array([[np.inf], [-np.inf]]) * np.ones(self._targets)
        self._target_sums = np.zeros((2, self._targets))
        self._buffer = np.empty((0, 0))
        self._last_row = -1

    def feed(self, block: Block, begin: int, end: int) -> None:
        if begin >= end:
            return
        weights = _NO_WEIGHTS if block.weights is None else np.ascontiguousarray(block.weights[begin:end])
        with np.errstate(all="ignore"):
            if block.sparse_features is not None:
                self._feed_sparse(block, begin, end, weights)
            else:
                self._feed_dense(block, begin, end, weights)
        self._rows += end - begin
        self._weight = kernels.add_weights(weights, self._weight) if weights.size else self._weight + end - begin
        self._last_row = int(block.row_numbers[end - 1])

    def _targets_of(self, values: NDArray[Any], weights: FloatArray) -> FloatArray:
        """Return the targets of some rows, without columns if they are not asked for; note their range and sums."""
        if not self._request.with_targets:
            return np.empty((len(values), 0))
        kernels.add_target_sums(values, weights, self._target_sums)
        np.minimum(self._range[0], values.min(axis=0), out=self._range[0])
        np.maximum(self._range[1], values.max(axis=0), out=self._range[1])
        return np.asarray(values, dtype=np.float64)

    def _make_groups(self) -> None:
        """Sparse rows are multiplied by two vectors at a time, which are kept side by side, and by one that is left."""
        groups = np.split(self._request.coefficients, range(2, self._count, 2), axis=1)
        self._groups = [np.ascontiguousarray(group) for group in groups]
        self._group_sums = [np.zeros((2, len(group) + 1, group.shape[1])) for group in groups]
        self._group_states = [np.zeros(1, dtype=np.int64) for _ in groups]

    def _feed_sparse(self, block: Block, begin: int, end: int, weights: FloatArray) -> None:
        if not self._groups:
            self._make_groups()
        matrix, targets = block.sparse_features, self._targets_of(block.targets[begin:end], weights)  # type: ignore[attr-defined]
        entries = np.asarray(matrix.data, dtype=np.float64), matrix.indices, matrix.indptr[begin : end + 1]
        for number, coefficients in enumerate(self._groups):
            here = np.ascontiguousarray(targets[:, 2 * number : 2 * number + 2])
            add = kernels.add_sparse_single if coefficients.shape[1] == 1 else kernels.add_sparse
            state, (partial, total) = self._group_states[number], self._group_sums[number]
            add(*entries, here, weights, coefficients, self._first, state, partial, total)
        if self._request.with_scales:
            kernels.add_sparse_scales(*entries, weights, self._first, self._scales)

    def _feed_dense(self, block: Block, begin: int, end: int, weights: FloatArray) -> None:
        if isinstance(block, DenseBlock) and block.features.dtype == np.float64 and block.features.flags.c_contiguous:
            self._add(cast(FloatArray, block.features[begin:end]), block.targets[begin:end], weights)
            return
        width = self._features + self._targets
        if not self._buffer.size:
            self._buffer = np.empty((width, _CONVERTED_ROWS))
        for start in range(begin, end, _CONVERTED_ROWS):
            stop = min(end, start + _CONVERTED_ROWS)
            columns = self._buffer[:, : stop - start]
            block.copy_into(columns, start, stop)
            rows = np.ascontiguousarray(columns.T)
            these = weights[start - begin : stop - begin] if weights.size else weights
            self._add(np.ascontiguousarray(rows[:, : self._features]), rows[:, self._features :], these)

    def _add(self, features: FloatArray, targets: NDArray[Any], weights: FloatArray) -> None:
        given = self._targets_of(targets, weights)
        sides = np.zeros((len(given), self._count))
        sides[:, : given.shape[1]] = given
        kernels.add_dense(
            features,
            sides,
            weights,
            self._by_target,
            self._first,
            self._state,
            *self._sums,
        )

    def finish(self) -> Piece:
        total = (self._sums[1] + self._sums[0]).T
        if self._groups:
            total = np.hstack([total + partial for partial, total in self._group_sums])
        if not np.isfinite(total).all():
            # The caller reads these rows again and finds the first value that is not finite, or that none is.
            raise NotFiniteError("", self._last_row, np.nan)
        matrix = np.hstack([total, np.vstack([self._scales, np.zeros((1, 2))])]) if self._request.with_scales else total
        return Piece(*self._place, (matrix, self._target_sums), self._rows, self._weight, self._range)
