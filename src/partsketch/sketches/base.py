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

import numpy as np

from partsketch.common.errors import InputError
from partsketch.sketches.accumulator import Accumulator, Columns, FloatArray, Stream

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
    sketches = {sketch.kind: sketch for sketch in all_sketches()}
    if kind not in sketches:
        known = ", ".join(repr(name) for name in sketches)
        raise InputError(f"sketch is {kind!r}: choose one of {known}.")
    return sketches[kind]


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
