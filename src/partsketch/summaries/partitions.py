"""How rows are cut into partitions: by order, by a seeded hash, by file, or by the values of a column."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.sketches.random import derive_key, random_words
from partsketch.sources.base import Block, Source

IntArray = NDArray[np.int64]

#: Bound of the last partition when only reading tells how many rows there are.
UNKNOWN_END = 2**62
#: Partitions that can be named before anything else is known of them: each takes a name and a summary in memory.
_MOST = 10_000_000


@dataclass(frozen=True)
class Partitioning:
    """Which partition each row belongs to.

    Attributes
    ----------
    names
        One name per partition, for messages and records.
    bounds
        For contiguous partitions: partition i holds the rows numbered bounds[i] to bounds[i + 1]. None otherwise.
    shuffle_seed
        For shuffled partitions: a row's partition is a hash of this seed and its number. None otherwise.
    """

    names: tuple[str, ...]
    bounds: tuple[int, ...] | None = None
    shuffle_seed: int | None = None

    @property
    def count(self) -> int:
        """Number of partitions, k."""
        return len(self.names)

    def assign(self, block: Block) -> IntArray:
        """Return the partition of each row of a block; only for partitions that are not contiguous."""
        if self.shuffle_seed is not None:
            words = random_words(_shuffle_key(self.shuffle_seed), 0, block.row_numbers)
            # The high half times k, shifted down, is uniform on 0..k-1 up to 2⁻³²: no slow division by k.
            return (((words >> np.uint64(32)) * np.uint64(self.count)) >> np.uint64(32)).astype(np.int64)
        if block.labels is None:
            raise ValueError("the source delivers no partition labels")
        return block.labels


@cache
def _shuffle_key(seed: int) -> tuple[np.uint64, np.uint64]:
    return derive_key(seed, "shuffle")


def single_partition(row_stop: int | None) -> Partitioning:
    """Return the partitioning into one part, of the rows before `row_stop` (None: all)."""
    return Partitioning(names=("all",), bounds=(0, UNKNOWN_END if row_stop is None else row_stop))


def order_partitions(row_count: int, count: int, remainder: str) -> Partitioning:
    """Cut rows in their order into `count` parts: sizes differ by at most one, or the last few rows are left out."""
    size, extra = divmod(row_count, count)
    if remainder == "drop":
        bounds = tuple(size * i for i in range(count + 1))
    else:
        bounds = tuple(size * i + min(i, extra) for i in range(count + 1))
    return Partitioning(names=tuple(str(i) for i in range(count)), bounds=bounds)


def make_partitioning(source: Source, partition_by: str, count: int, remainder: str, seed: int) -> Partitioning:
    """Return the partitioning that the options ask for; the source must know what the choice needs."""
    if partition_by in ("order", "shuffle"):
        _check_count(count, source.row_count if partition_by == "shuffle" else None)
    if partition_by == "order":
        assert source.row_count is not None
        return order_partitions(source.row_count, count, remainder)
    if remainder == "drop":
        raise InputError("remainder='drop' goes with partition_by='order' only: other partitions have no remainder.")
    if partition_by == "shuffle":
        return Partitioning(names=tuple(str(i) for i in range(count)), shuffle_seed=seed)
    if partition_by == "file":
        if not source.files:
            raise InputError("partition_by='file' needs files: this source has none; use 'order' or 'shuffle'.")
        starts = [part.start for part in source.files]
        stops = [part.stop for part in source.files]
        assert all(start is not None for start in starts)
        return Partitioning(
            names=tuple(part.name for part in source.files),
            bounds=(*(int(start or 0) for start in starts), int(stops[-1] or 0)),
        )
    return Partitioning(names=source.partition_values)


def _check_count(count: int, rows: int | None) -> None:
    """Refuse more partitions than there can be, before each gets a name."""
    if rows is not None and count > rows:
        raise InputError(f"n_partitions={count} is larger than the number of rows, {rows}: give fewer.")
    if count > _MOST:
        raise InputError(f"n_partitions={count} is too large: give at most {_MOST:,}.")


def check_partition_sizes(
    sizes: list[int], names: tuple[str, ...], columns: int, partition_by: str, total: int
) -> None:
    """Refuse partitions with fewer rows than columns + 2, and say what would be possible with all `total` rows."""
    least = columns + 2
    smallest = min(range(len(sizes)), key=lambda i: sizes[i])
    if sizes[smallest] >= least:
        return
    need = f"every partition must keep at least {least} rows ({columns} columns to estimate, plus 2)"
    if partition_by in ("order", "shuffle"):
        largest = total // least
        if largest < 1:
            raise InputError(f"Too few rows: {need}, but there are {total} rows in all; use method='exact'.")
        advice = "" if partition_by == "order" else " when partitions are even, fewer when shuffled"
        raise InputError(
            f"n_partitions={len(sizes)} is too large: {need}, and the smallest would have {sizes[smallest]} of "
            f"{total} rows; the largest possible number of partitions is {largest}{advice}."
        )
    raise InputError(
        f"Partition {names[smallest]!r} has {sizes[smallest]} rows: {need}; "
        "merge small partitions, or partition by order or shuffle."
    )
