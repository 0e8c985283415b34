"""From pieces to summaries: how many partitions are merged at a time, and what all rows of one become."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from partsketch.common.errors import InputError
from partsketch.common.linalg.double_double import DoubleDouble
from partsketch.sketches.accumulator import FloatArray
from partsketch.sketches.base import get_sketch
from partsketch.sketches.centre import is_needed
from partsketch.sources.base import Source
from partsketch.summaries.measured import measured_noise, with_noise
from partsketch.summaries.merge import PieceFold
from partsketch.summaries.partitions import UNKNOWN_END
from partsketch.summaries.provenance import About, Noise, Part
from partsketch.summaries.summary import Summary
from partsketch.summaries.tasks import Piece, SummaryRequest

#: Most bytes of pieces that wait to be merged. Partitions that lie all over the rows are all merged at once; when they
#: are too many for this, the rows are read several times, each time for a group of them.
MOST_WAITING = 2**28
#: Pieces of every partition that workers and what they handed in may hold, besides those in the tree.
_UNDER_WAY = 6
#: Rows that wait with every sketch of the same rows until there are enough for a product, two workers together.
_KEPT_ROWS = 512
#: Height of the tree when the number of rows is not known.
_UNKNOWN_LEVELS = 16


def _width(source: Source, request: SummaryRequest) -> int:
    return int(request.fit_intercept) + len(source.feature_names) + len(source.target_names)


def piece_bytes(source: Source, request: SummaryRequest) -> int:
    """Return the bytes of one piece: all sketches of a partition, in twice the digits where they are exact."""
    width, size = _width(source, request), request.specification.size
    numbers = 2 * width * width if size is None else size * width
    beside = 2 * width * width if request.sums_beside else 0
    return 8 * (numbers * len(request.sketches) + beside)


def waiting_bytes(source: Source, request: SummaryRequest) -> int:
    """Return the bytes of all pieces, and of rows kept for them, that may wait at once, if all is done in one pass."""
    levels = _UNKNOWN_LEVELS
    if source.row_count is not None:
        levels = (source.row_count // request.segment_rows).bit_length()
    kept = 0
    if request.sketches_per_partition > 1 and not get_sketch(request.specification.kind).shares_pass:
        kept = request.sketches_per_partition * _KEPT_ROWS * 8 * _width(source, request)
    return request.partitioning.count * (levels + _UNDER_WAY) * piece_bytes(source, request) + kept


def passes_over(source: Source, request: SummaryRequest) -> list[SummaryRequest]:
    """Return a request for each pass over the rows: for some partitions or sketches, where all are too many.

    Streams of random numbers belong to partition and sketch, so the number of passes has no effect on results.
    """
    sketch, count = get_sketch(request.specification.kind), request.partitioning.count
    # Groups that are summed side by side take a line of a table each, and no tiles.
    if not source.replayable or sketch.by_group:
        return [request]
    if request.sketches_per_partition > 1 and not sketch.shares_pass:
        groups = _cut(request.sketches_per_partition, waiting_bytes(source, request))
        return [replace(request, sketch_group=group) for group in groups]
    # Contiguous partitions come one after another, and what is merged of one is done with before the next.
    if request.partitioning.bounds is not None:
        return [request]
    # One feeder takes the rows of many partitions in turn, so that no rows are kept with each.
    groups = _cut(count, waiting_bytes(source, request))
    return [request] if len(groups) == 1 else [replace(request, group=group) for group in groups]


def _cut(count: int, bytes_of_all: int) -> list[range]:
    """Return the fewest runs of `count` things that do not take too much memory each."""
    passes = max(1, min(count, -(-bytes_of_all // MOST_WAITING)))
    return [range(count * i // passes, count * (i + 1) // passes) for i in range(passes)]


def of_groups(
    fold: PieceFold, count: int, columns: tuple[str, ...], rows_seen: int
) -> tuple[Sequence[Summary], tuple[int, ...], tuple[float, ...], FloatArray]:
    """Return summaries, rows, weights and the range of the targets of partitions that were summed side by side."""
    from partsketch.sketches.groups import factors_of, give_back_room
    from partsketch.summaries.group_summaries import GroupSummaries

    whole = fold.take(0)
    counts, weights = np.zeros(count, dtype=np.int64), np.zeros(count)
    summaries: Sequence[Summary] = ()
    target_range = np.empty((2, 0))
    if whole is not None:
        factors = factors_of(whole.matrices[0])
        counts[factors.groups], weights[factors.groups] = factors.counts, factors.weights
        summaries, target_range = GroupSummaries(factors, columns, rows_seen), whole.target_range
    give_back_room()
    return summaries, tuple(counts.tolist()), tuple(weights.tolist()), target_range


def _check_finite(rows: FloatArray, columns: tuple[str, ...]) -> None:
    """Refuse sums that are beyond doubles: of them a column would seem to be zero, or to depend on others."""
    # What is not finite cannot hide in a sum; of hundreds of sketches a look at every number takes longer.
    with np.errstate(all="ignore"):
        if np.isfinite(rows.sum()):
            return
    finite = np.isfinite(rows).all(axis=0)
    if not finite.all():
        name = columns[int(np.argmin(finite))]
        raise InputError(
            f"Column {name!r} has values so large that the root of their sum of squares is beyond what a double holds: "
            "divide the column by a constant, so that its values are near 1."
        )


def summaries_of(
    partition: int, whole: Piece, request: SummaryRequest, columns: tuple[str, ...], rows_seen: int
) -> Iterator[Summary]:
    """Yield the summaries of all rows of a partition, one per sketch."""
    bounds = request.partitioning.bounds
    sketch = get_sketch(request.specification.kind)
    start, stop = (0, rows_seen) if bounds is None else (bounds[partition], bounds[partition + 1])
    last = rows_seen if stop == UNKNOWN_END else stop
    dropped = 0 if bounds is None else last - start - whole.row_count
    about = About(weighted=whole.weight_sum != whole.row_count, rows_dropped=dropped)
    noise = noise_of(exact_of(partition, whole, request, columns, rows_seen), columns, whole)
    # One matrix, or one for every sketch.
    matrices = whole.matrices * (len(request.sketches) // request.accumulators_per_partition)
    for number, matrix in zip(request.sketches, matrices, strict=True):
        stream = partition * request.sketches_per_partition + number
        sketch_rows, low = sketch.concluded_rows(request.specification, matrix, whole.row_count, stream)
        centre = np.empty(0) if whole.centre is None else whole.centre
        if whole.centre is not None:
            needed = not sketch.is_random or is_needed(sketch_rows, centre)
            sketch_rows, low = DoubleDouble.of(sketch_rows, low).moved(centre)
            if not needed:
                low, centre = None, np.empty(0)
        _check_finite(sketch_rows, columns)
        part = Part(
            site="",
            stream=stream,
            start=start,
            stop=last,
            size=sketch_rows.shape[0],
            seed=request.specification.seed,
            sparsity=request.specification.sparsity,
            contiguous=bounds is not None,
        )
        made = Summary(
            matrix=sketch_rows,
            columns=columns,
            kind=sketch.summary_kind or request.specification.kind,
            parts=(part,),
            row_count=whole.row_count,
            weight_sum=whole.weight_sum,
            low=low,
            centre=centre,
            about=about,
        )
        yield with_noise(made, noise)


def exact_of(
    partition: int, whole: Piece, request: SummaryRequest, columns: tuple[str, ...], rows_seen: int
) -> Summary | None:
    """Return the exact summary from which the noise of a partition is measured; None where it is not."""
    if not request.measures_noise:
        return None
    sums = whole.beside if request.sums_beside else whole
    assert sums is not None
    return next(summaries_of(partition, sums, request.exact, columns, rows_seen))


def noise_of(exact: Summary | None, columns: tuple[str, ...], whole: Piece) -> tuple[Noise, ...]:
    """Return the noise of the targets of a partition, as measured on its rows."""
    return () if exact is None else measured_noise(exact, columns[len(columns) - whole.target_range.shape[1] :])
