"""What a source of rows offers: numbered rows in blocks, with the columns a regression needs."""

# The docstring of a protocol describes its attributes, all in one place.
# ruff: noqa: D102

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from partsketch.sources.encoding import Encoding

if TYPE_CHECKING:
    from partsketch.sources.files.paths import DataFiles

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class Block(Protocol):
    """A run of rows, at most as many as were asked for.

    Attributes
    ----------
    row_numbers
        Number of each row in its source, counted from zero before any row was dropped, strictly increasing. The
        random numbers of a sketch and the partition of a row depend on it, so it may not depend on block sizes.
    weights
        Sample weights, or None when every row counts once.
    labels
        Index of each row's value of the partition column in `Source.partition_values`, or None.
    dropped
        Rows with missing values that were left out just before or among these rows.
    sparse_features
        The features as compressed rows, one per row of the block, or None when they are held densely.
    """

    @property
    def row_numbers(self) -> IntArray: ...

    @property
    def weights(self) -> FloatArray | None: ...

    @property
    def labels(self) -> IntArray | None: ...

    @property
    def dropped(self) -> int: ...

    @property
    def sparse_features(self) -> Any: ...

    def __len__(self) -> int: ...

    def copy_into(self, out: FloatArray, begin: int, end: int) -> None:
        """Write rows begin to end as float64 into `out`, one row of `out` per column: features, then targets.

        `out` has shape (features + targets, end - begin) and unit stride along one of its axes.
        """
        ...

    def take(self, positions: IntArray) -> Block:
        """Return the block of the rows at these positions (increasing)."""
        ...


@dataclass(frozen=True)
class FilePart:
    """The rows that one file holds: numbers start to stop; `stop` is None while it is not known."""

    name: str
    start: int | None
    stop: int | None


@dataclass(frozen=True)
class PartitionLeftOut:
    """A partition that the model does not know: its name, its rows if they are known, and why it was left out."""

    name: str
    row_count: int | None
    reason: str


#: Fewer columns held as codes than this, for every one that a row touches, are as quick as dense ones.
_LEAST_COLUMNS_PER_ENTRY = 16


class Codes(NamedTuple):
    """Features that blocks hold as codes: how many there are, and how many of them a row has that are not zero."""

    columns: int
    entries: int

    @property
    def pay_off(self) -> bool:
        """Whether codes are worth keeping: a row touches few of many columns."""
        return self.columns > 0 and self.columns >= _LEAST_COLUMNS_PER_ENTRY * self.entries


NO_CODES = Codes(0, 0)


class Capabilities(Protocol):
    """What a source may be able to do beyond delivering rows.

    Sources are subclasses of this: one that can do more says so, the others inherit that they cannot. A wrapper is a
    `SourceWrapper`, which passes everything on, so that it cannot lose a capability by not knowing of it.

    Attributes
    ----------
    row_major
        Whether the features of a row lie one after another in memory.
    one_by_one
        Whether each task must be read by itself.
    features_in_memory
        The features as one array, dense or in compressed rows, where they are held so.
    stored_entries
        Number of stored entries of compressed rows.
    opened_files
        The files that are read, where rows come from files.
    unreadable
        Files that were asked for and are not among the rows, because they could not be opened.
    on_cluster
        Whether the rows lie on a cluster, as those of a `RemoteSource` do.
    partition_count
        How many values the partition column has: their texts need not be made for that.
    cluster_count
        How many values a second column of labels has; labels are then partition + partition_count · cluster.
    codes
        How many of the features are held as codes.
    notes
        Sentences on how the columns were made that a reader of the model should know.
    """

    @property
    def row_major(self) -> bool:
        return False

    @property
    def one_by_one(self) -> bool:
        return False

    @property
    def features_in_memory(self) -> Any:
        return None

    @property
    def stored_entries(self) -> int | None:
        return None

    @property
    def opened_files(self) -> DataFiles | None:
        return None

    @property
    def unreadable(self) -> tuple[PartitionLeftOut, ...]:
        return ()

    @property
    def on_cluster(self) -> bool:
        return False

    @property
    def partition_count(self) -> int:
        return len(cast(Source, self).partition_values)

    @property
    def cluster_count(self) -> int:
        return 0

    @property
    def codes(self) -> Codes:
        return NO_CODES

    @property
    def notes(self) -> tuple[str, ...]:
        return ()

    def leaving_finiteness(self) -> Source:
        """Return this source without its check for NaN and infinity, for a reader that checks what it makes of them."""
        return cast(Source, self)

    def leaving_labels(self) -> Source:
        """Return this source without labels of rows, for a pass that needs none; rows that have none stay left out."""
        return cast(Source, self)

    def decoded_by(self, threads: int) -> Source:
        """Return this source, rows that lie in one piece being decoded by several threads, where that can be done."""
        return cast(Source, self)

    def sliced(self, start: int, stop: int | None) -> Source | None:
        """Return the source of rows start to stop, numbered from zero, where rows are held; None where they are not."""
        return None


@runtime_checkable
class Source(Capabilities, Protocol):
    """Numbered rows with chosen columns.

    A source is a small value: it can be pickled and opened again on another machine, unless it holds the rows
    themselves. Nothing is read before `read` is iterated, except what was needed to learn the schema.

    Attributes
    ----------
    feature_names, target_names
        Names of the numeric columns that blocks deliver (after one-hot encoding).
    row_count
        Number of rows before any are dropped, or None when only reading tells.
    replayable
        Whether `read` can be called more than once.
    random_access
        Whether `read(start, stop)` costs about stop - start rows, so that several workers may share one source.
    boundaries
        Increasing row numbers, 0 first, at which reading may start without decoding rows before it; empty when any row
        will do. Workers that share a source read fastest when their ranges start there.
    files
        The files behind the rows, in order; empty when there are none.
    partition_values
        Distinct values of the partition column in increasing order, as text; empty without such a column.
    has_weights
        Whether blocks carry weights.
    encoding
        One-hot levels per encoded column (empty when nothing is encoded): what `predict` needs to repeat the encoding.
    description
        One short phrase for people: "array of 100 rows", "3 Parquet files".
    """

    @property
    def feature_names(self) -> tuple[str, ...]: ...

    @property
    def target_names(self) -> tuple[str, ...]: ...

    @property
    def row_count(self) -> int | None: ...

    @property
    def replayable(self) -> bool: ...

    @property
    def random_access(self) -> bool: ...

    @property
    def boundaries(self) -> tuple[int, ...]: ...

    @property
    def files(self) -> tuple[FilePart, ...]: ...

    @property
    def partition_values(self) -> tuple[str, ...]: ...

    @property
    def has_weights(self) -> bool: ...

    @property
    def encoding(self) -> Encoding: ...

    @property
    def description(self) -> str: ...

    def read(self, start: int = 0, stop: int | None = None, block_rows: int = 65536) -> Iterator[Block]:
        """Yield the rows numbered start (included) to stop (excluded) in order, in blocks of at most block_rows."""
        ...

    def counted(self) -> Source:
        """Return this source with `row_count` and every file's rows known, reading the rows once if need be."""
        ...
