"""A source that watches its rows go by: influential rows, and random partitions beside the real ones, in one pass.

A row is kept while its leverage among the rows of its partition seen so far is at least a threshold τ. Leverage only
falls as rows are added, so every row whose leverage in its whole partition is at least τ is kept to the end, whatever
the order, the blocks and the threads; and leverages sum to the rank, so at most d/τ rows are kept per partition.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partsketch.blas import triangular_factor
from partsketch.partitions import Partitioning
from partsketch.sketches.base import Accumulator, Columns, SketchSpecification, Stream, get_sketch
from partsketch.sources.base import Block, Source
from partsketch.theory.moments import PartitionMoments

FloatArray = NDArray[np.float64]

#: Leverage in its own partition from which a row is named: ten rows may share a direction.
LEVERAGE = 0.1


@dataclass
class Influential:
    """The rows of one partition that may be influential, with the factor of all its rows so far."""

    factor: FloatArray
    rows: FloatArray
    numbers: NDArray[np.int64]

    def add(self, factor: FloatArray, rows: FloatArray, numbers: NDArray[np.int64]) -> None:
        """Take more rows, and the factor of all rows that they were chosen from; drop those that cannot matter."""
        self.factor = triangular_factor(self.factor, factor)
        rows, numbers = np.vstack([self.rows, rows]), np.concatenate([self.numbers, numbers])
        kept = _leverage(self.factor, rows) >= LEVERAGE
        self.rows, self.numbers = rows[kept], numbers[kept]


def _leverage(factor: FloatArray, rows: FloatArray) -> FloatArray:
    moments = PartitionMoments(np.column_stack([factor, np.zeros(len(factor))]), max(1, len(factor)))
    return np.asarray(np.sum((rows @ moments.inverse_root) ** 2, axis=1))


@dataclass
class _Watch:
    """What one worker has seen of one run of rows."""

    source: Source
    partitioning: Partitioning
    shuffled: Partitioning | None
    fit_intercept: bool
    influential: dict[int, Influential] = field(default_factory=dict)
    accumulators: dict[int, Accumulator] = field(default_factory=dict)
    counts: dict[int, int] = field(default_factory=dict)

    def see(self, block: Block) -> None:
        first, targets = int(self.fit_intercept), len(self.source.target_names)
        width = first + len(self.source.feature_names) + targets
        columns = np.ones((width, len(block)))
        block.copy_into(columns[first:], 0, len(block))
        if not np.isfinite(columns).all():
            return  # the sketch refuses the block, and says where
        if block.weights is not None:
            columns *= np.sqrt(block.weights)
        for partition, here in _split(_assign(self.partitioning, block)):
            rows = np.ascontiguousarray(columns[: width - targets, here].T)
            if partition not in self.influential:
                empty = np.zeros((width - targets, width - targets))
                self.influential[partition] = Influential(empty, rows[:0], block.row_numbers[:0])
            self.influential[partition].add(triangular_factor(rows), rows, block.row_numbers[here])
        if self.shuffled is not None:
            for partition, here in _split(self.shuffled.assign(block)):
                if partition not in self.accumulators:
                    sketch = get_sketch("triangular")
                    self.accumulators[partition] = sketch.accumulator(
                        SketchSpecification("triangular"), Stream(partition), Columns(width - targets, targets, False)
                    )
                self.accumulators[partition].add(np.ascontiguousarray(columns[:, here]), block.row_numbers[here])
                self.counts[partition] = self.counts.get(partition, 0) + len(here)


def _assign(partitioning: Partitioning, block: Block) -> NDArray[np.int64]:
    if partitioning.bounds is None:
        return partitioning.assign(block)
    bounds = np.asarray(partitioning.bounds, dtype=np.int64)
    found = np.searchsorted(bounds, block.row_numbers, side="right") - 1
    return np.where(block.row_numbers < bounds[-1], found, -1)


def _split(partitions: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[np.intp]]]:
    """Yield each partition present with the positions of its rows; rows outside all partitions are left out."""
    order = np.argsort(partitions, kind="stable")
    present, starts = np.unique(partitions[order], return_index=True)
    for partition, positions in zip(present.tolist(), np.split(order, starts[1:]), strict=True):
        if partition >= 0:
            yield partition, positions


class WatchedSource:
    """A source that passes blocks on as they are, having looked at them; only for workers of this process.

    What it has seen depends, in the last bits, on where reading begins: so each task is read by itself.
    """

    one_by_one = True

    def __init__(
        self, source: Source, partitioning: Partitioning, shuffled: Partitioning | None, fit_intercept: bool
    ) -> None:
        self._source = source
        self._partitioning, self._shuffled, self._fit_intercept = partitioning, shuffled, fit_intercept
        self._lock = threading.Lock()
        self._waiting: dict[int, tuple[int | None, _Watch]] = {}
        self._position: int | None = 0
        self.influential: dict[int, Influential] = {}
        self.shuffled_factors: dict[int, FloatArray] = {}
        self.shuffled_counts: dict[int, int] = {}

    def __getattr__(self, name: str) -> Any:
        # Without this exception the sketch would read behind the watcher's back, through the source's own method.
        if name.startswith("_") or name == "leaving_finiteness":
            raise AttributeError(name)
        return getattr(self._source, name)

    def read(self, start: int = 0, stop: int | None = None, block_rows: int = 65536) -> Iterator[Block]:
        """Yield the blocks of the source."""
        watch = _Watch(self._source, self._partitioning, self._shuffled, self._fit_intercept)
        for block in self._source.read(start, stop, block_rows):
            watch.see(block)
            yield block
        with self._lock:
            self._waiting[start] = (stop, watch)
            # Runs are taken in the order of their rows, so that the same bits come of any number of threads.
            while self._position is not None and self._position in self._waiting:
                self._position, ready = self._waiting.pop(self._position)
                self._take(ready)

    def _take(self, watch: _Watch) -> None:
        for partition, seen in watch.influential.items():
            if partition in self.influential:
                self.influential[partition].add(seen.factor, seen.rows, seen.numbers)
            else:
                self.influential[partition] = seen
        sketch = get_sketch("triangular")
        for partition, accumulator in watch.accumulators.items():
            factor = accumulator.finish()
            if partition in self.shuffled_factors:
                factor = sketch.merge(self.shuffled_factors[partition], factor)
            self.shuffled_factors[partition] = factor
            self.shuffled_counts[partition] = self.shuffled_counts.get(partition, 0) + watch.counts[partition]
