"""What a sketch is: a specification, what it does to rows, and how pieces become one.

Three things are kept apart. A `SketchSpecification` is a small value: kind, size, seed. A `Sketch` says what the kind
needs and offers. An accumulator does the work on the rows of one stream. What it makes is a pure function of the
specification, the stream and the numbered rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cache

import numpy as np

from partsketch.common.errors import InputError
from partsketch.common.linalg.blas import padded_width
from partsketch.common.memory import fresh
from partsketch.common.registry import Registry
from partsketch.common.sign_sums import SignSums
from partsketch.common.sketch_law import SketchLaw
from partsketch.sketches.accumulator import Accumulator, Columns, FloatArray, Stream, dense_rows
from partsketch.sketches.cost import SketchCost

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
                    raise InputError(f"A {self.kind} sketch cannot be private: use a Gaussian or an orthogonal one.")
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
                raise sparsity_refused(self.sparsity, self.kind)
        elif self.sparsity is None:
            assert self.size is not None
            object.__setattr__(self, "sparsity", min(sketch.default_sparsity, self.size))
        elif self.size is None or not 1 <= self.sparsity <= self.size:
            raise InputError(
                f"sparsity is {self.sparsity}: each row of the data goes to at least 1 and at most all {self.size} "
                "rows of the sketch."
            )


class Merging:
    """How matrices of disjoint sets of rows become one: by adding them, unless a subclass says otherwise."""

    def merge(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """Return the matrix of two disjoint sets of rows of the same stream from the matrices of each.

        The sum is right for sketches in which each row acts by itself: S = [S₁ S₂].
        """
        return np.add(first, second, out=fresh(first.shape))

    def merge_all(self, first: tuple[FloatArray, ...], second: tuple[FloatArray, ...]) -> tuple[FloatArray, ...]:
        """Return the matrices of two disjoint sets of rows from those of each, one by one."""
        return tuple(self.merge(one, other) for one, other in zip(first, second, strict=True))

    def moved(self, matrix: FloatArray, shift: FloatArray) -> FloatArray:
        """Return the matrix of columns to which `shift` times the first one, a column of ones, was added."""
        return np.asarray(matrix + matrix[:, :1] * shift)


def usual_size(columns: int, per_column: int = 4) -> int:
    """Return the rows of a sketch that nobody asked for: four per column to estimate, and never only a few more."""
    return max(per_column * columns, columns + 16)


class Sketch(Merging, ABC):
    """A kind of compression: what it does to rows, and everything that others must know of it.

    Attributes
    ----------
    kind
        The name users give; random numbers of its own are those of this name.
    law
        What is known of its error; None when nothing is: then fits have no certificate, and say so.
    cost
        What it costs, for the planner.
    keeps_rows
        Whether rows of the data themselves are in the sketch.
    is_random
        Whether it has a size and a seed; False for the exact factor.
    can_be_private
        Whether it can take its random numbers from the operating system.
    needs_row_count
        Whether the number of rows of a stream must be known before the first one comes.
    shares_pass
        Whether one pass serves any number of sketches of the same rows, whose random numbers come after it.
    is_summable
        Whether sketches of consecutive rows, made apart from one another, sum to the sketch of all.
    default_sparsity
        Non-zeros per row of the data unless asked otherwise; None for kinds where it is not a choice.
    row_tiles_from
        From this many columns on a tile may be held by rows as well as by columns, with the same bits in the result.
    wants_rows_from
        From this many columns on tiles are always held by rows; None where they need not be.
    centres_itself
        Whether its accumulators decide what is taken off columns that are far from zero.
    takes_codes
        Whether columns that are held as codes are summed as such.
    by_group
        Whether all partitions are summed side by side, in one table; only the library itself asks for such kinds.
    sums_products
        Whether its pass sums all products exactly, so that noise is measured for nothing.
    summary_kind
        Kind of the summaries that it makes, if that is not its own.
    segment_rows
        Rows that are summed one after another, before sums are merged: part of what the sketch is, to the last bit.
    """

    kind: str
    is_random: bool = True
    law: SketchLaw | None = None
    cost: SketchCost = SketchCost()
    keeps_rows: bool = False
    row_tiles_from: int = 32
    wants_rows_from: int | None = None
    centres_itself: bool = False
    segment_rows: int = SEGMENT_ROWS
    can_be_private: bool = False
    needs_row_count: bool = False
    is_summable: bool = True
    shares_pass: bool = False
    default_sparsity: int | None = None
    takes_codes: bool = False
    by_group: bool = False
    sums_products: bool = False
    summary_kind: str = ""

    @abstractmethod
    def accumulator(self, specification: SketchSpecification, stream: Stream, columns: Columns) -> Accumulator:
        """Return an empty accumulator for the rows of one stream."""

    def prepare(self) -> None:
        """Load compiled code now, so that a clock started afterwards measures the work alone: take a row and a tile."""
        accumulator = self.accumulator(SketchSpecification(self.kind, 2, 0), Stream(row_count=2), Columns(1, 1, True))
        if accumulator.takes_rows:
            accumulator.add_rows(dense_rows(np.zeros((1, 2)), 1))
        accumulator.add(np.zeros((padded_width(3), 1)), np.ones(1, dtype=np.int64))
        accumulator.finish()

    def conclude(self, specification: SketchSpecification, matrix: FloatArray, row_count: int) -> FloatArray:
        """Return the sketch from the merged matrix of all `row_count` rows of a stream."""
        return matrix

    def concluded_rows(
        self, specification: SketchSpecification, matrix: FloatArray, row_count: int, stream: int = 0
    ) -> tuple[FloatArray, FloatArray | None]:
        """Return the sketch, and what its doubles leave out of it where that counts."""
        return self.conclude(specification, matrix, row_count), None

    def plain_rows(self, size: int, row_count: int) -> float:
        """Return how many of the rows are expected to stand in a sketch of this size as they are, but for a factor."""
        return float(min(size, row_count)) if self.keeps_rows else 0.0

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

    def chances(self, size: int, row_count: int, ones: FloatArray | None) -> FloatArray:
        """Return the chance of each sampled row to be in the sample, for kinds that keep rows.

        `ones` is what became of a column of ones; None without one, or when rows have weights.
        """
        raise NotImplementedError

    def sign_sums(self, size: int, sparsity: int | None, positions: int | None, row_count: int) -> SignSums | None:
        """Return what bounds the sum of squares of sketched ones, for kinds that add rows with random signs.

        `positions` is how many row numbers the stream may have, if told, and `row_count` how many rows it has at most.
        """
        return None


#: The exact sketch of many groups side by side; it is not for users, who ask for partitions.
GROUPS = "triangular_groups"

#: Where our own kinds of sketch are; other packages add theirs by an entry point of the group "partsketch.sketches".
SKETCHES: Registry[Sketch] = Registry(
    "sketch",
    {
        "gaussian": "partsketch.sketches.gaussian:GaussianSketch",
        "orthogonal": "partsketch.sketches.orthogonal:OrthogonalSketch",
        "srht": "partsketch.sketches.srht:HadamardSketch",
        "sparse_sign": "partsketch.sketches.sparse_sign:SparseSignSketch",
        "count_sketch": "partsketch.sketches.count_sketch:CountSketch",
        "row_sample": "partsketch.sketches.row_sample:RowSample",
        "leverage_sample": "partsketch.sketches.leverage_sample:LeverageSample",
        "triangular": "partsketch.sketches.triangular:TriangularSketch",
    },
    named_by="kind",
)


# Asked for every segment of every partition.
@cache
def get_sketch(kind: str, exact: bool = True, asked_as: str = "sketch") -> Sketch:
    """Return the sketch of this name; `exact` says whether the exact summary will do, `asked_as` who named it."""
    if kind == GROUPS:
        from partsketch.sketches.groups import GroupedTriangularSketch

        return GroupedTriangularSketch()
    found = SKETCHES.get(kind, Sketch)  # type: ignore[type-abstract]
    if found is None or not (exact or found.is_random):
        raise InputError(f"{asked_as} is {kind!r}: choose one of {', '.join(map(repr, sketch_kinds(exact)))}.")
    return found()


def is_kind(kind: str) -> bool:
    """Tell whether there is a sketch of this name here."""
    return SKETCHES.get(kind, Sketch) is not None  # type: ignore[type-abstract]


def sketch_kinds(exact: bool = False) -> list[str]:
    """Return the names of all random kinds, and of the exact summary if asked."""
    return [kind for kind in SKETCHES.names if exact or get_sketch(kind).is_random]


def law_of_kind(kind: str) -> SketchLaw:
    """Return what is known of the error of a kind of sketch; refuse where nothing is."""
    law = get_sketch(kind).law
    if law is None:
        raise InputError(f"nothing is known of the error that {kind!r} sketches make")
    return law


def sparsity_refused(sparsity: object, kind: str) -> InputError:
    """Return the error for a kind of sketch whose sparsity is not a choice."""
    open_kinds = " or ".join(repr(name) for name in sketch_kinds() if get_sketch(name).default_sparsity is not None)
    return InputError(f"sparsity={sparsity} goes with sketch={open_kinds}, not with {kind!r}.")
