"""What a sketch is: a specification, what it does to rows, and how pieces become one.

Three things are kept apart. A `SketchSpecification` is a small value: kind, size, seed. A `Sketch` says what the kind
needs and offers. An accumulator does the work on the rows of one stream. What it makes is a pure function of the
specification, the stream and the numbered rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.common.memory import fresh

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

#: Rows of a segment: enough to amortise a merge, few enough to share one partition among threads.
SEGMENT_ROWS = 65536


@dataclass(frozen=True)
class SketchSpecification:
    """Which random compression.

    Attributes
    ----------
    kind
        Name of the kind.
    size, seed
        Number of sketch rows m and seed; both None for the exact factor.
    sparsity
        Non-zeros per row of the data, for the kinds that leave it open; None takes the kind's own.
    private
        A private sketch has no seed: its random numbers come from the operating system, and nobody can draw them again.
    """

    kind: str
    size: int | None = None
    seed: int | None = None
    sparsity: int | None = None
    private: bool = False

    def __post_init__(self) -> None:
        sketch = get_sketch(self.kind)
        if sketch.is_random:
            if self.size is None or self.size < 1:
                raise InputError(f"sketch_size is {self.size}: a {self.kind} sketch needs at least one row.")
            if self.private:
                if not sketch.can_be_private:
                    raise InputError(f"A {self.kind} sketch cannot be private: use the Gaussian one.")
                if self.seed is not None:
                    raise InputError("A private sketch takes no seed: its random numbers must not be drawn again.")
            elif self.seed is None or not 0 <= self.seed < 2**64:
                raise InputError(f"seed is {self.seed}: give a whole number from 0 to 2**64 - 1.")
        elif self.private:
            raise InputError(f"A {self.kind} summary is exact and tells all sums of products: it cannot be private.")
        elif self.size is not None or self.seed is not None:
            raise InputError(f"A {self.kind} summary is exact: it takes neither a size nor a seed.")
        if sketch.default_sparsity is None:
            if self.sparsity is not None:
                raise InputError(f"sparsity={self.sparsity} goes with sketch='sparse_sign', not with {self.kind!r}.")
        elif self.sparsity is None:
            assert self.size is not None
            object.__setattr__(self, "sparsity", min(sketch.default_sparsity, self.size))
        elif self.size is None or not 1 <= self.sparsity <= self.size:
            raise InputError(
                f"sparsity is {self.sparsity}: each row of the data goes to at least 1 and at most all {self.size} "
                "rows of the sketch."
            )


@dataclass(frozen=True)
class Columns:
    """The columns of a sketch: [1, features, targets], the first only with an intercept."""

    features: int
    targets: int
    intercept: bool

    @property
    def width(self) -> int:
        """How many there are."""
        return int(self.intercept) + self.features + self.targets


@dataclass(frozen=True, eq=False)
class Stream:
    """The rows that one sketch is made of, and its stream of random numbers.

    Attributes
    ----------
    number
        Number of the stream.
    first_row
        Lowest row number that may come.
    row_count
        Row numbers that may come, counted from the first; None when only reading tells.
    guide
        What the first pass found, for the kinds that make two.
    """

    number: int = 0
    first_row: int = 0
    row_count: int | None = None
    guide: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class DenseRows:
    """Rows as they lie in memory: float64, features of a row one after another, weights not yet applied.

    `roots` are the square roots of the weights; empty when every row counts once.
    """

    row_numbers: IntArray
    features: FloatArray
    targets: FloatArray
    roots: FloatArray


@dataclass(frozen=True, eq=False)
class SparseRows:
    """Rows whose features are (values, column indices, starts), as a CSR array holds them."""

    row_numbers: IntArray
    features: tuple[FloatArray, NDArray[np.integer[Any]], NDArray[np.integer[Any]]]
    targets: FloatArray
    roots: FloatArray


def dense_rows(matrix: FloatArray, targets: int = 0) -> DenseRows:
    """Return the rows of a matrix, numbered from zero, its last columns targets."""
    features = matrix.shape[1] - targets
    return DenseRows(
        np.arange(matrix.shape[0], dtype=np.int64),
        np.ascontiguousarray(matrix[:, :features], dtype=np.float64),
        np.ascontiguousarray(matrix[:, features:], dtype=np.float64),
        np.empty(0),
    )


def sum_of(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return the sketch of two disjoint sets of rows, S = [S₁ S₂], where each row acts by itself."""
    return np.add(first, second, out=fresh(first.shape))


class Accumulator(ABC):
    """Takes the rows of one stream in order and gives a small matrix Z.

    Attributes
    ----------
    takes_rows
        Whether `add_rows` may be used in place of `add`. The bits are the same however the rows are cut.
    takes_weights
        Whether `add_weighted` is used in place of `add`.
    centre
        What the accumulator itself took off each column; None when nothing.
    """

    takes_rows: bool = False
    takes_weights: bool = False
    centre: FloatArray | None = None

    @abstractmethod
    def add(self, tile: FloatArray, row_numbers: IntArray) -> bool:
        """Take one tile, held as its columns (columns × rows), weights applied.

        Returns False when the tile has values that are not finite; nothing may be added after that.
        """

    def expect_few_rows(self) -> None:  # noqa: B027 (most kinds do the same with few rows as with many)
        """Be told before the first tile that no other will come, and that it is small."""

    def add_weighted(self, tile: FloatArray, roots: FloatArray) -> bool:
        """Take one tile, weights not yet applied; `roots` are their square roots, empty when every row counts once."""
        raise NotImplementedError

    def add_columns(self, addresses: IntArray, steps: IntArray, tiles: int, tile_rows: int) -> int:
        """Take tiles whose columns of doubles lie at these addresses, and in each next tile `steps` bytes further on.

        Columns are padded like those of a tile. Returns how many tiles were taken; the next must be given as a tile.
        Saves a copy where rows arrive by column.
        """
        return 0

    def add_dense_tiles(self, rows: DenseRows, tile_rows: int) -> int:
        """Take tiles of rows as they are.

        Returns how many were taken; the next must be given as a tile. Saves a copy where rows arrive by row.
        """
        return 0

    def add_rows(self, rows: DenseRows | SparseRows) -> None:
        """Take rows as they are, of any number; `is_finite` tells of all of them later."""
        raise NotImplementedError

    def is_finite(self) -> bool:
        """Tell whether all that was added is finite."""
        return True

    @abstractmethod
    def finish(self) -> FloatArray:
        """Return the matrix of what has been added."""

    def restart(self) -> bool:
        """Forget what was added, the matrix being the caller's; returns False where a new accumulator must be made."""
        return False


def usual_size(columns: int, per_column: int = 4) -> int:
    """Return the rows of a sketch that nobody asked for: four per column to estimate, and never only a few more."""
    return max(per_column * columns, columns + 16)


class Sketch(ABC):
    """A kind of compression.

    Attributes
    ----------
    kind
        The name users give.
    is_random
        Whether it has a size and a seed; False for the exact factor.
    can_be_private
        Whether it can take its random numbers from the operating system.
    needs_row_count
        Whether the number of rows of a stream must be known before the first one comes.
    is_summable
        Whether sketches of consecutive rows, made apart from one another, sum to the sketch of all.
    default_sparsity
        Non-zeros per row of the data unless asked otherwise; None for kinds where it is not a choice.
    row_tiles_from
        From this many columns on a tile may be held by rows as well as by columns, with the same bits in the result.
    wants_rows
        Whether tiles are always held by rows.
    centres_itself
        Whether its accumulators decide what is taken off columns that are far from zero.
    by_group
        Whether all partitions are summed side by side, in one table; only the library itself asks for such kinds.
    summary_kind
        Kind of the summaries that it makes, if that is not its own.
    segment_rows
        Rows that are summed one after another, before sums are merged: part of what the sketch is, to the last bit.
    """

    kind: str
    is_random: bool
    row_tiles_from: int = 32
    wants_rows: bool = False
    centres_itself: bool = False
    segment_rows: int = SEGMENT_ROWS
    can_be_private: bool = False
    needs_row_count: bool = False
    is_summable: bool = True
    default_sparsity: int | None = None
    by_group: bool = False
    summary_kind: str = ""

    @abstractmethod
    def accumulator(self, specification: SketchSpecification, stream: Stream, columns: Columns) -> Accumulator:
        """Return an empty accumulator for the rows of one stream."""

    def prepare(self) -> None:  # noqa: B027 (most kinds have nothing to prepare)
        """Load compiled code now, so that a clock started afterwards measures the work alone."""

    @abstractmethod
    def merge(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """Return the matrix of two disjoint sets of rows of the same stream from the matrices of each."""

    def moved(self, matrix: FloatArray, shift: FloatArray) -> FloatArray:
        """Return the matrix of columns to which `shift` times the first one, a column of ones, was added."""
        return np.asarray(matrix + matrix[:, :1] * shift)

    def conclude(self, specification: SketchSpecification, matrix: FloatArray, row_count: int) -> FloatArray:
        """Return the sketch from the merged matrix of all `row_count` rows of a stream."""
        return matrix

    def concluded_rows(
        self, specification: SketchSpecification, matrix: FloatArray, row_count: int
    ) -> tuple[FloatArray, FloatArray | None]:
        """Return the sketch, and what its doubles leave out of it where that counts."""
        return self.conclude(specification, matrix, row_count), None

    def default_size(self, columns: int) -> tuple[int, str]:
        """Return a number of sketch rows for so many columns to estimate, and the reason in words."""
        size = usual_size(columns)
        return (
            size,
            f"four rows per column to estimate ({columns}), far from the sizes at which errors have heavy tails",
        )

    def size_warnings(self, size: int, columns: int) -> tuple[str, ...]:
        """Return what should be known about this number of sketch rows."""
        return ()

    def largest_size(self, row_count: int) -> int | None:
        """Return the most sketch rows that so many rows allow; None when any number will do."""
        return None

    def first_pass(self, specification: SketchSpecification, columns: int) -> SketchSpecification | None:
        """Return the sketch to be made of all rows before this one; None for kinds that pass over the rows once."""
        return None

    def guide(self, specification: SketchSpecification, features: FloatArray, row_count: int) -> FloatArray:
        """Return what the first pass found, from the feature columns of its sketch of `row_count` rows."""
        raise NotImplementedError


def get_sketch(kind: str) -> Sketch:
    """Return the sketch of this name."""
    if kind == GROUPS:
        return _grouped()
    sketches = {sketch.kind: sketch for sketch in all_sketches()}
    if kind not in sketches:
        known = ", ".join(repr(name) for name in sketches)
        raise InputError(f"sketch is {kind!r}: choose one of {known}.")
    return sketches[kind]


#: The exact sketch of many groups side by side; it is not for users, who ask for partitions.
GROUPS = "triangular_groups"


@cache
def _grouped() -> Sketch:
    from partsketch.sketches.groups import GroupedTriangularSketch

    return GroupedTriangularSketch()


#: Where every kind of sketch is defined. A new one is a file of its own and a line here.
SKETCHES = (
    "partsketch.sketches.gaussian:GaussianSketch",
    "partsketch.sketches.srht:HadamardSketch",
    "partsketch.sketches.sparse_sign:SparseSignSketch",
    "partsketch.sketches.count_sketch:CountSketch",
    "partsketch.sketches.row_sample:RowSample",
    "partsketch.sketches.leverage_sample:LeverageSample",
    "partsketch.sketches.triangular:TriangularSketch",
)


# Asked for every segment of every partition.
@cache
def all_sketches() -> Sequence[Sketch]:
    """Return every kind of sketch."""
    places = [place.split(":") for place in SKETCHES]
    return tuple(getattr(import_module(module), name)() for module, name in places)
