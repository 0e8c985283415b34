"""Planning the tasks of a fit, having an engine run them, and merging what comes back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from partsketch.engines.base import Engine, TaskOutcome
from partsketch.fold import TreeFold
from partsketch.merging import PieceFold
from partsketch.partitions import UNKNOWN_END, Partitioning
from partsketch.sources.base import Source
from partsketch.summarise import INTERCEPT, SEGMENT_ROWS, Piece, SummaryRequest, Task, TaskResult
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


def merge_results(kind: str, results: Sequence[TaskResult]) -> TaskResult:
    """Merge what several tasks brought back into one result.

    Engines call this where the results are, so that few and small ones travel. Whatever is merged with what, and in
    whatever order, the bits at the end are the same.
    """
    fold = PieceFold(kind)
    for result in results:
        for piece in result.pieces:
            fold.add(piece)
    return TaskResult(
        pieces=fold.pieces(),
        dropped=sum(result.dropped for result in results),
        rows_seen=sum(result.rows_seen for result in results),
    )


class _Collector:
    """Folds the results of tasks as they arrive."""

    def __init__(self, request: SummaryRequest, tasks: Sequence[Task]) -> None:
        self._tasks = tasks
        self._scattered = request.partitioning.bounds is None
        self._seen: TreeFold[bool] = TreeFold(lambda first, second: True)
        self.fold = PieceFold(request.specification.kind, self._seen.covers)
        self.dropped = self.rows_seen = 0

    def add(self, outcome: TaskOutcome) -> None:
        assert outcome.result is not None
        # Segments of contiguous partitions are all there, and are counted by partition.
        if self._scattered:
            for task in (self._tasks[index] for index in outcome.tasks):
                stop = task.start + outcome.result.rows_seen if task.stop is None else task.stop
                for segment in range(task.start // SEGMENT_ROWS, -(-stop // SEGMENT_ROWS)):
                    self._seen.push(0, segment, True)
        for piece in outcome.result.pieces:
            self.fold.add(piece)
        self.dropped += outcome.result.dropped
        self.rows_seen += outcome.result.rows_seen


def gather(source: Source, request: SummaryRequest, engine: Engine) -> Gathered:
    """Have all tasks run and merge their pieces in a fixed order."""
    tasks = make_tasks(source, request.partitioning)
    collected = _Collector(request, tasks)
    for outcome in _succeeding(engine.run(source, request, tasks), len(tasks)):
        collected.add(outcome)
    wholes = [collected.fold.result(partition) for partition in range(request.partitioning.count)]
    target_range = np.array([[np.inf], [-np.inf]]) * np.ones(len(source.target_names))
    for whole in wholes:
        if whole is not None:
            target_range[0] = np.minimum(target_range[0], whole.target_range[0])
            target_range[1] = np.maximum(target_range[1], whole.target_range[1])
    columns = ((INTERCEPT,) if request.fit_intercept else ()) + source.feature_names + source.target_names
    return Gathered(
        summaries=_summaries(wholes, request, columns, collected.rows_seen),
        row_counts=tuple(0 if whole is None else whole.row_count for whole in wholes),
        weight_sums=tuple(0.0 if whole is None else whole.weight_sum for whole in wholes),
        target_range=target_range,
        rows_dropped=collected.dropped,
    )


def _succeeding(outcomes: Iterator[TaskOutcome], count: int) -> Iterator[TaskOutcome]:
    """Yield outcomes until one fails; then wait for the tasks before it and raise the error of the earliest."""
    missing = set(range(count))
    earliest, error = count, None
    try:
        for outcome in outcomes:
            if not missing.issuperset(outcome.tasks):
                raise RuntimeError(f"the engine reported tasks {outcome.tasks} that it was not asked for, or twice")
            missing.difference_update(outcome.tasks)
            if outcome.error is not None and min(outcome.tasks) < earliest:
                earliest, error = min(outcome.tasks), outcome.error
            if error is None:
                yield outcome
            elif all(task > earliest for task in missing):
                raise error
    finally:
        # Stops the work that is under way, when an error or an interrupt leaves some.
        close = getattr(outcomes, "close", None)
        if close is not None:
            close()
    if error is not None:
        raise error
    if missing:
        raise RuntimeError(f"the engine did not report {len(missing)} of {count} tasks")


def _summaries(
    wholes: Sequence[Piece | None], request: SummaryRequest, columns: tuple[str, ...], rows_seen: int
) -> tuple[Summary, ...]:
    bounds = request.partitioning.bounds
    summaries = []
    for partition, whole in enumerate(wholes):
        if whole is None:
            continue
        start, stop = (0, rows_seen) if bounds is None else (bounds[partition], bounds[partition + 1])
        for number, matrix in enumerate(whole.matrices):
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
                    row_count=whole.row_count,
                    weight_sum=whole.weight_sum,
                )
            )
    return tuple(summaries)
