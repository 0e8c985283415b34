"""What is asked of rows, and what they become: requests, tasks, and the pieces that tasks return."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from partsketch.sketches.accumulator import FloatArray, Stream
from partsketch.sketches.base import Merging, Sketch, SketchSpecification, get_sketch
from partsketch.summaries.partitions import UNKNOWN_END, Partitioning

if TYPE_CHECKING:
    from partsketch.sources.base import Block, Source

INTERCEPT = "(intercept)"


class PassRequest(ABC):
    """What one pass over the rows is made for.

    Attributes
    ----------
    partitioning
        Which rows belong together.
    fit_intercept
        Whether a column of ones comes first.
    segment_rows
        Row numbers of a segment.
    merging
        How what two segments became is merged.
    group
        Partitions that this pass is for, where they are too many for one; None means all.
    """

    partitioning: Partitioning
    fit_intercept: bool
    segment_rows: int
    group: range | None = None

    @property
    @abstractmethod
    def merging(self) -> Merging: ...  # noqa: D102 (the docstring of the class describes it)

    @abstractmethod
    def feeder(self, source: Source, partition: int, segment: int, done: Feeder | None = None) -> Feeder:
        """Return what takes the rows of one segment of one partition: `done`, which has finished another, if given."""


@dataclass(frozen=True)
class SummaryRequest(PassRequest):
    """Asks for sketches of all rows.

    Attributes
    ----------
    specification
        Which sketch.
    sketches_per_partition
        How many independent sketches of each partition are made: one, or k for the sketches of the whole.
    row_count
        Rows of the source, where a sketch needs to know it.
    guides, centres
        What a first pass found, one per partition, for sketches that make two; and what it took off the columns.
    segment_rows
        Row numbers of a segment; 0 takes as many as the kind of sketch should have.
    sketch_group
        Sketches of every partition that this pass makes, where they are too many for one; None means all.
    measures_noise
        Whether the residual variance of the exact fit to each partition is found in the same pass.
    """

    specification: SketchSpecification
    partitioning: Partitioning
    fit_intercept: bool
    sketches_per_partition: int = 1
    row_count: int | None = None
    guides: tuple[FloatArray, ...] = ()
    centres: tuple[FloatArray, ...] = ()
    segment_rows: int = 0
    group: range | None = None
    sketch_group: range | None = None
    measures_noise: bool = False

    def __post_init__(self) -> None:
        if not self.segment_rows:
            object.__setattr__(self, "segment_rows", self.merging.segment_rows)

    @property
    def merging(self) -> Sketch:
        """The kind of sketch, which says how two of them are merged."""
        return get_sketch(self.specification.kind)

    @property
    def exact(self) -> SummaryRequest:
        """The request for exact summaries of the same partitions, in the same pieces."""
        one = SketchSpecification("triangular")
        return SummaryRequest(
            one, self.partitioning, self.fit_intercept, 1, self.row_count, segment_rows=self.segment_rows
        )

    @property
    def sums_beside(self) -> bool:
        """Whether noise is measured, and takes sums of products that the sketch does not make anyway."""
        return self.measures_noise and not self.merging.sums_products

    @property
    def sketches(self) -> range:
        """The numbers of the sketches that this pass makes of each partition."""
        return range(self.sketches_per_partition) if self.sketch_group is None else self.sketch_group

    @property
    def accumulators_per_partition(self) -> int:
        """How many matrices a pass makes of each partition: one for all sketches where they share it."""
        return 1 if get_sketch(self.specification.kind).shares_pass else len(self.sketches)

    def stream(self, partition: int, number: int) -> Stream:
        """Return the rows of a partition's sketch of this number, counted from the first of this pass."""
        first, count = 0, self.row_count
        if self.partitioning.bounds is not None:
            first, stop = self.partitioning.bounds[partition : partition + 2]
            count = None if stop == UNKNOWN_END else stop - first
        guide = self.guides[partition] if self.guides else None
        return Stream(partition * self.sketches_per_partition + self.sketches[number], first, count, guide)

    def feeder(self, source: Source, partition: int, segment: int, done: Feeder | None = None) -> Feeder:
        """Return a feeder of sketches."""
        if self.sums_beside:
            from partsketch.summaries.measured import MeasuringFeeder

            beside = done if isinstance(done, MeasuringFeeder) else None
            return MeasuringFeeder(source, self, partition, segment, beside)
        if self.merging.takes_codes and source.codes.pay_off:
            from partsketch.summaries.coded_feeder import CodedFeeder as Kind
        else:
            from partsketch.summaries.feeder import RowFeeder as Kind  # type: ignore[assignment]
        if not isinstance(done, Kind):
            return Kind(source, self, partition, segment)
        done.begin(partition, segment)
        return done


@dataclass(frozen=True)
class Task:
    """Rows numbered start to stop (None: to the end), whole segments of them.

    `apart` says that its result is wanted by itself, as soon as it is there: to be kept, or without those that fail.
    """

    start: int
    stop: int | None
    apart: bool = False


@dataclass(frozen=True)
class Piece:
    """What one segment of one partition became, or several that have been merged.

    Attributes
    ----------
    partition, segment
        Where it belongs.
    matrices
        One per sketch.
    row_count, weight_sum
        Rows and weight that it holds.
    target_range
        Smallest and largest value of every target, shape (2, targets).
    centre
        What was taken off each column, the ones included (from them nothing); None when nothing was.
    level
        Height in the tree along which segments are merged: the piece holds the 2^level segments from
        segment · 2^level on; 0 is one segment.
    beside
        Exact sums of products of the same rows, where noise is measured beside a sketch.
    """

    partition: int
    segment: int
    matrices: tuple[FloatArray, ...]
    row_count: int
    weight_sum: float
    target_range: FloatArray
    centre: FloatArray | None = None
    level: int = 0
    beside: Piece | None = None


@dataclass(frozen=True)
class TaskResult:
    """The pieces of a task, merged as far as they go, and how many rows were left out for missing values."""

    pieces: tuple[Piece, ...]
    dropped: int
    rows_seen: int


class Feeder(Protocol):
    """Takes the rows of one segment of one partition, and gives the piece that they become."""

    def feed(self, block: Block, begin: int, end: int) -> None:
        """Take rows begin to end of a block."""
        ...

    def finish(self) -> Piece:
        """Return the piece."""
        ...
