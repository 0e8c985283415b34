"""Planning the tasks of a fit, having an engine run them, and merging what comes back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from partsketch.engines.base import Engine
from partsketch.fold import OrderedFold
from partsketch.partitions import UNKNOWN_END, Partitioning
from partsketch.sketches.base import get_sketch
from partsketch.sources.base import Source
from partsketch.summarise import INTERCEPT, SEGMENT_ROWS, Piece, SummaryRequest, Task
from partsketch.summary import Part, Summary

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Gathered:
    """What the tasks brought back, merged by partition.

    Attributes
    ----------
    summaries
        One per partition and sketch.
    row_counts, weight_sums
        Per partition.
    target_range
        Smallest and largest value of every target, shape (2, targets).
    rows_dropped
        Rows left out for missing values.
    """

    summaries: tuple[Summary, ...]
    row_counts: tuple[int, ...]
    weight_sums: tuple[float, ...]
    target_range: FloatArray
    rows_dropped: int


def make_tasks(source: Source, partitioning: Partitioning) -> list[Task]:
    """Cut the rows into tasks of whole segments; one task when the source can only be read from its beginning."""
    stop = partitioning.bounds[-1] if partitioning.bounds is not None else source.row_count
    if not source.random_access or stop is None or stop == UNKNOWN_END:
        return [Task(0, None if stop == UNKNOWN_END else stop)]
    bounds = partitioning.bounds if partitioning.bounds is not None else (0, stop)
    starts = [start for first, last in pairwise(bounds) for start in range(first, last, SEGMENT_ROWS)]
    # Starting inside a row group means decoding it from its beginning: take all segments that start in one together.
    if source.boundaries:
        group = np.searchsorted(np.asarray(source.boundaries), starts, side="right")
        starts = [start for i, start in enumerate(starts) if i == 0 or group[i] != group[i - 1]]
    return [Task(start, end) for start, end in pairwise([*starts, stop])]


class _Merger:
    """Folds the pieces of one partition."""

    def __init__(self, kind: str) -> None:
        sketch = get_sketch(kind)
        self._fold: OrderedFold[tuple[FloatArray, ...]] = OrderedFold(
            lambda first, second: tuple(sketch.merge(a, b) for a, b in zip(first, second, strict=True))
        )
        self.row_count = 0
        self.weight_sum = 0.0

    def add(self, piece: Piece) -> None:
        self._fold.push(piece.segment, piece.matrices)
        self.row_count += piece.row_count
        self.weight_sum += piece.weight_sum

    def matrices(self) -> tuple[FloatArray, ...]:
        return self._fold.result() or ()


def gather(source: Source, request: SummaryRequest, engine: Engine) -> Gathered:
    """Have all tasks run and merge their pieces in a fixed order."""
    mergers = [_Merger(request.specification.kind) for _ in range(request.partitioning.count)]
    target_range = np.array([[np.inf], [-np.inf]]) * np.ones(len(source.target_names))
    dropped = seen = 0
    for result in engine.run(source, request, make_tasks(source, request.partitioning)):
        for piece in result.pieces:
            mergers[piece.partition].add(piece)
            target_range[0] = np.minimum(target_range[0], piece.target_range[0])
            target_range[1] = np.maximum(target_range[1], piece.target_range[1])
        dropped += result.dropped
        seen += result.rows_seen
    columns = ((INTERCEPT,) if request.fit_intercept else ()) + source.feature_names + source.target_names
    return Gathered(
        summaries=_summaries(mergers, request, columns, seen),
        row_counts=tuple(merger.row_count for merger in mergers),
        weight_sums=tuple(merger.weight_sum for merger in mergers),
        target_range=target_range,
        rows_dropped=dropped,
    )


def _summaries(
    mergers: Sequence[_Merger], request: SummaryRequest, columns: tuple[str, ...], rows_seen: int
) -> tuple[Summary, ...]:
    bounds = request.partitioning.bounds
    summaries = []
    for partition, merger in enumerate(mergers):
        start, stop = (0, rows_seen) if bounds is None else (bounds[partition], bounds[partition + 1])
        for number, matrix in enumerate(merger.matrices()):
            part = Part(
                origin="",
                stream=partition * request.sketches_per_partition + number,
                start=start,
                stop=rows_seen if stop == UNKNOWN_END else stop,
                size=matrix.shape[0],
                seed=request.specification.seed,
                contiguous=bounds is not None,
            )
            summaries.append(
                Summary(
                    matrix=matrix,
                    columns=columns,
                    kind=request.specification.kind,
                    parts=(part,),
                    row_count=merger.row_count,
                    weight_sum=merger.weight_sum,
                )
            )
    return tuple(summaries)
