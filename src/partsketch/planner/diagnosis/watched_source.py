"""A source that watches its rows go by: influential rows, and random partitions beside the real ones, in one pass.

A row is kept while its leverage among the rows of its partition seen so far is at least a threshold τ. Leverage only
falls as rows are added, so every row whose leverage in its whole partition is at least τ is kept to the end, whatever
the order, the blocks and the threads; and leverages sum to the rank, so at most d/τ rows are kept per partition.

Rows that are let go are added to a factor. What a partition is without some of the kept rows is then the factor of
those let go and the other kept ones: nothing is ever subtracted, so no digit is lost however much a row outweighs the
rest.
Beside a column of ones, columns are measured from values in their middle, for the same reason.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.common.linalg.blas import triangular_factor
from partsketch.sketches.groups import GroupedTriangularSketch, GroupFactors, factors_of, padded, summarise_groups
from partsketch.sources.base import Block, Source
from partsketch.sources.wrapper import SourceWrapper
from partsketch.summaries.feeder import TOO_LARGE
from partsketch.summaries.partitions import Partitioning
from partsketch.theory.moments import PartitionMoments

FloatArray = NDArray[np.float64]

#: Leverage in its own partition from which a row is named: ten rows may share a direction.
LEVERAGE = 0.1

#: Columns of which no one depends on those before it even nearly need no rank: this is the quick way.
_CLEARLY_APART = 1e-6

#: Rows per column that are looked at together.
_AT_ONCE = 16

#: Rows from which the middle of a column is taken.
_LOOKED_AT = 256


@dataclass
class Influential:
    """The rows of one partition that may be influential, and all others.

    Attributes
    ----------
    rest
        Triangular factor of the rows that were let go.
    rows, numbers
        The rows that are kept, and their numbers.
    waiting
        Rows that have not been looked at: it pays for some of them at once.
    """

    rest: FloatArray
    rows: FloatArray
    numbers: NDArray[np.int64]
    waiting: list[tuple[FloatArray, NDArray[np.int64]]] = field(default_factory=list)

    @classmethod
    def nothing(cls, width: int) -> Influential:
        """Return what is known before the first row."""
        return cls(np.zeros((width, width)), np.empty((0, width)), np.empty(0, dtype=np.int64))

    def put(self, rows: FloatArray, numbers: NDArray[np.int64]) -> None:
        """Take more rows, and look at them when there are enough."""
        self.waiting.append((rows, numbers))
        if sum(len(given) for given, _ in self.waiting) > _AT_ONCE * rows.shape[1]:
            self.settle()

    def settle(self) -> None:
        """Look at the rows that wait."""
        if self.waiting:
            waiting, self.waiting = self.waiting, []
            self.add(np.vstack([rows for rows, _ in waiting]), np.concatenate([numbers for _, numbers in waiting]))

    def join(self, other: Influential) -> None:
        """Take what was seen of other rows."""
        if len(other.rows) or other.rest.any():
            self.add(other.rows, other.numbers, other.rest)
        for rows, numbers in other.waiting:
            self.put(rows, numbers)

    def add(self, rows: FloatArray, numbers: NDArray[np.int64], rest: FloatArray | None = None) -> None:
        """Take more rows, and the factor of rows that were let go with them; let go of those that cannot matter."""
        factor = triangular_factor(rows) if len(rows) else rows
        others = self.rest if rest is None else triangular_factor(self.rest, rest)
        kept = _leverage(triangular_factor(others, self.rows, factor), np.vstack([self.rows, rows])) >= LEVERAGE
        old, new = kept[: len(self.rows)], kept[len(self.rows) :]
        # Mostly no new row is kept, and the factor of all of them is there already.
        self.rest = triangular_factor(others, self.rows[~old], rows[~new] if new.any() else factor)
        self.rows = np.vstack([self.rows[old], rows[new]])
        self.numbers = np.concatenate([self.numbers[old], numbers[new]])

    def moved(self, shift: FloatArray) -> Influential:
        """Return the same rows with `shift` times the column of ones, the first, added to the columns."""
        return Influential(
            self.rest + np.outer(self.rest[:, 0], shift),
            self.rows + np.outer(self.rows[:, 0], shift),
            self.numbers,
            [(rows + np.outer(rows[:, 0], shift), numbers) for rows, numbers in self.waiting],
        )

    def measured(self, units: FloatArray) -> Influential:
        """Return the same rows in units of the columns; all have been looked at."""
        return Influential(self.rest / units, self.rows / units, self.numbers)

    def factor(self, without: Collection[int] = ()) -> tuple[FloatArray, int]:
        """Return the factor of the features of all rows but those with some numbers, and how many these are.

        A column of zeros is behind it, for targets.
        """
        left = ~np.isin(self.numbers, list(without)) if without else np.ones(len(self.numbers), dtype=np.bool_)
        factor = triangular_factor(self.rest, self.rows[left])
        return np.column_stack([factor, np.zeros(len(factor))]), int(np.count_nonzero(~left))

    def moments(self, row_count: int, without: Collection[int]) -> PartitionMoments:
        """Return the moments of the features of all `row_count` rows but those with some numbers; targets are zero."""
        factor, fewer = self.factor(without)
        return PartitionMoments(factor, row_count - fewer)


def _leverage(factor: FloatArray, rows: FloatArray) -> FloatArray:
    if not np.isfinite(factor).all():
        raise InputError(TOO_LARGE)
    # Columns of one size: the least norm of a dependent column among far smaller ones would be their rounding.
    exponents = -np.frexp(np.abs(factor).max(axis=0, initial=0.0))[1]
    factor, rows = np.ldexp(factor, exponents), np.ldexp(rows, exponents)
    lengths, diagonal = np.linalg.norm(factor, axis=0), np.abs(np.diagonal(factor))
    if len(factor) == factor.shape[1] and (diagonal > _CLEARLY_APART * lengths).all():
        from scipy.linalg import solve_triangular

        return np.asarray(np.sum(solve_triangular(factor, rows.T, trans=1, check_finite=False) ** 2, axis=0))
    moments = PartitionMoments(np.column_stack([factor, np.zeros(len(factor))]), max(1, len(factor)))
    return np.asarray(np.sum((rows @ moments.inverse_root) ** 2, axis=1))


@dataclass
class _Watch:
    """What one worker has seen of one run of rows."""

    source: Source
    partitioning: Partitioning
    shuffled: Partitioning | None
    fit_intercept: bool
    centre: FloatArray | None = None
    influential: dict[int, Influential] = field(default_factory=dict)
    random: FloatArray | None = None

    def see(self, block: Block) -> None:
        if not len(block):
            return  # all of its rows were dropped
        first, targets = int(self.fit_intercept), len(self.source.target_names)
        width = first + len(self.source.feature_names) + targets
        columns = np.ones((width, len(block)))
        block.copy_into(columns[first:], 0, len(block))
        if not np.isfinite(columns).all():
            return  # the sketch refuses the block, and says where
        if self.centre is None:
            self.centre = _middle(columns, self.fit_intercept)
        columns -= self.centre[:, None]
        if block.weights is not None:
            columns *= np.sqrt(block.weights)
        for partition, here in _split(_assign(self.partitioning, block)):
            seen = self.influential.setdefault(partition, Influential.nothing(width - targets))
            seen.put(np.ascontiguousarray(columns[: width - targets, here].T), block.row_numbers[here])

    def see_random(self, block: Block) -> None:
        """Sum the rows of random partitions side by side."""
        if self.shuffled is None or not len(block):
            return
        width = 1 + len(self.source.feature_names) + len(self.source.target_names)
        rows = np.zeros((len(block), padded(width)))
        rows[:, 0] = 1.0 if block.weights is None else np.sqrt(block.weights)
        block.copy_into(rows[:, 1:width].T, 0, len(block))
        weights = np.empty(0) if block.weights is None else np.ascontiguousarray(block.weights, dtype=np.float64)
        self.random = _joined(self.random, summarise_groups(rows, weights, self.shuffled.assign(block), width).flat)


def _joined(first: FloatArray | None, second: FloatArray | None) -> FloatArray | None:
    if first is None or second is None:
        return second if first is None else first
    return GroupedTriangularSketch().merge(first, second)


def _middle(columns: FloatArray, fit_intercept: bool) -> FloatArray:
    """Return a value in the middle of each column; zero where nothing may be taken off: of ones, or without them."""
    centre = np.median(columns[:, :_LOOKED_AT], axis=1)
    centre[: int(fit_intercept)] = 0.0
    return centre if fit_intercept else np.zeros(len(columns))


def _assign(partitioning: Partitioning, block: Block) -> NDArray[np.int64]:
    if partitioning.bounds is None:
        return partitioning.assign(block)
    bounds = np.asarray(partitioning.bounds, dtype=np.int64)
    found = np.searchsorted(bounds, block.row_numbers, side="right") - 1
    return np.where(block.row_numbers < bounds[-1], found, -1)


def _split(partitions: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[np.intp]]]:
    """Yield each partition present with the positions of its rows; rows outside all partitions are left out."""
    if not len(partitions):
        return
    order = np.argsort(partitions, kind="stable")
    present, starts = np.unique(partitions[order], return_index=True)
    for partition, positions in zip(present.tolist(), np.split(order, starts[1:]), strict=True):
        if partition >= 0:
            yield partition, positions


class WatchedSource(SourceWrapper):
    """A source that passes blocks on as they are, having looked at them; only for workers of this process.

    What it has seen depends, in the last bits, on where reading begins: so each task is read by itself.
    """

    def __init__(
        self, source: Source, partitioning: Partitioning, shuffled: Partitioning | None, fit_intercept: bool
    ) -> None:
        super().__init__(source)
        self._partitioning, self._shuffled, self._fit_intercept = partitioning, shuffled, fit_intercept
        self._lock = threading.Lock()
        self._waiting: dict[int, tuple[int | None, _Watch]] = {}
        self._position: int | None = 0
        self.influential: dict[int, Influential] = {}
        self.centre: FloatArray | None = None
        self._random: FloatArray | None = None

    @property
    def one_by_one(self) -> bool:
        """Say so."""
        return True

    def counted(self) -> Source:
        """Return this source: rows are counted before they are watched."""
        return self

    def leaving_finiteness(self) -> Source:
        """Return this source: the sketch would otherwise read behind the watcher's back."""
        return self

    def leaving_labels(self) -> Source:
        """Return this source: the watcher goes by labels."""
        return self

    def decoded_by(self, threads: int) -> Source:
        """Return this source: others must read it with the same watcher."""
        return self

    def sliced(self, start: int, stop: int | None) -> None:
        """Refuse: what is watched stays in this process."""

    def read(self, start: int = 0, stop: int | None = None, block_rows: int = 65536) -> Iterator[Block]:
        """Yield the blocks of the source."""
        watch = _Watch(self.source, self._partitioning, self._shuffled, self._fit_intercept)
        for block in self.source.read(start, stop, block_rows):
            watch.see(block)
            watch.see_random(block)
            yield block
        with self._lock:
            self._waiting[start] = (stop, watch)
            # Runs are taken in the order of their rows, so that the same bits come of any number of threads.
            while self._position is not None and self._position in self._waiting:
                self._position, ready = self._waiting.pop(self._position)
                self._take(ready)

    def random_factors(self) -> GroupFactors | None:
        """Return the factors of the random partitions: of the ones, features and targets; None when there are none."""
        return None if self._random is None else factors_of(self._random)

    def _take(self, watch: _Watch) -> None:
        if self.centre is None:
            self.centre = watch.centre
        for partition, seen in watch.influential.items():
            assert watch.centre is not None
            assert self.centre is not None
            here = seen.moved((watch.centre - self.centre)[: seen.rows.shape[1]])
            if partition in self.influential:
                self.influential[partition].join(here)
            else:
                self.influential[partition] = here
        self._random = _joined(self._random, watch.random)
