"""Planning the tasks of a fit, having an engine run them, and merging what comes back."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.common.memory import give_back
from partsketch.engines.base import Engine, TaskOutcome
from partsketch.engines.run import run_tasks
from partsketch.engines.tolerance import Tolerance
from partsketch.engines.wholes import exact_of, of_groups, passes_over, summaries_of, waiting_bytes
from partsketch.sketches.base import SEGMENT_ROWS, get_sketch
from partsketch.sources.base import PartitionLeftOut, Source
from partsketch.summaries.merge import PieceFold
from partsketch.summaries.merge_tree import TreeFold
from partsketch.summaries.partitions import UNKNOWN_END, Partitioning
from partsketch.summaries.summary import Summary
from partsketch.summaries.tasks import INTERCEPT, PassRequest, SummaryRequest, Task
from partsketch.summaries.waiting_room import WaitingRoom

if TYPE_CHECKING:
    from partsketch.engines.checkpoint import Checkpoint

FloatArray = NDArray[np.float64]

#: Pieces of so many bytes in all leave freed memory behind that is worth asking for.
_MUCH_MEMORY = 2**26


@dataclass(frozen=True)
class Gathered:
    """What the tasks brought back, merged by partition.

    Attributes
    ----------
    summaries
        One per partition and sketch.
    names, row_counts, weight_sums
        Per partition.
    target_range
        Smallest and largest value of every target, shape (2, targets).
    rows_dropped
        Rows left out for missing values.
    left_out
        Partitions that failed or were late; nothing of them is in the rest.
    last_exact
        Exact summary of the last partition, where noise was measured: rows that are added to it need it.
    """

    summaries: Sequence[Summary]
    names: tuple[str, ...]
    row_counts: tuple[int, ...]
    weight_sums: tuple[float, ...]
    target_range: FloatArray
    rows_dropped: int
    left_out: tuple[PartitionLeftOut, ...] = ()
    last_exact: Summary | None = None


def make_tasks(
    source: Source, partitioning: Partitioning, at_borders: bool = False, segment_rows: int = SEGMENT_ROWS
) -> list[Task]:
    """Cut the rows into tasks of whole segments; one task when the source can only be read from its beginning.

    With `at_borders` no task has rows of two contiguous partitions, also where that means reading some rows twice, and
    each is reported by itself where that costs nothing else.
    """
    apart = at_borders
    stop = partitioning.bounds[-1] if partitioning.bounds is not None else source.row_count
    at_borders = at_borders and partitioning.bounds is not None and source.replayable
    if stop is None or stop == UNKNOWN_END or not (source.random_access or at_borders):
        return [Task(0, None if stop == UNKNOWN_END else stop, apart)]
    bounds = partitioning.bounds if partitioning.bounds is not None else (0, stop)
    starts = [start for first, last in pairwise(bounds) for start in range(first, last, segment_rows)]
    if not source.random_access:
        # What lies before a task in its file is read again, so files are begun once, or at the borders inside them.
        files = [part.start for part in source.files if part.start is not None]
        wanted = {bisect_left(starts, row) for row in (*bounds, *files)}
        starts = [start for i, start in enumerate(starts) if i in wanted]
    # Starting inside a row group means decoding it from its beginning: take all segments that start in one together.
    if source.boundaries:
        group = np.searchsorted(np.asarray(source.boundaries), starts, side="right")
        borders = set(bounds) if at_borders else ()
        starts = [start for i, start in enumerate(starts) if i == 0 or group[i] != group[i - 1] or start in borders]
    return [Task(start, end, apart) for start, end in pairwise([*starts, stop])]


class Collector:
    """Folds the results of tasks as they arrive."""

    def __init__(self, request: PassRequest, tasks: Sequence[Task]) -> None:
        self._tasks = tasks
        self._bounds = request.partitioning.bounds
        self._segment_rows = request.segment_rows
        self._seen: TreeFold[bool] = TreeFold(lambda first, second: True)
        self.fold = PieceFold(request.merging, self._seen.covers, WaitingRoom())
        self.missing = set(range(len(tasks)))
        self.failed: dict[int, Exception] = {}
        self.dropped = self.rows_seen = 0

    def add(self, outcome: TaskOutcome) -> None:
        """Take what became of a task."""
        if outcome.result is None:
            self.failed.update((number, outcome.error) for number in outcome.tasks if outcome.error is not None)
            return
        self.missing.difference_update(outcome.tasks)
        for piece in outcome.result.pieces:
            self.fold.add(piece)
        # Segments of contiguous partitions are all there, and are counted by partition. Others are known when all
        # pieces of the outcome have been added, not before: what is known and has not come is taken for empty.
        if self._bounds is None:
            for task in (self._tasks[number] for number in outcome.tasks):
                stop = task.start + outcome.result.rows_seen if task.stop is None else task.stop
                for segment in range(task.start // self._segment_rows, -(-stop // self._segment_rows)):
                    self._seen.push(0, segment, True)
        self.dropped += outcome.result.dropped
        self.rows_seen += outcome.result.rows_seen

    def incomplete(self) -> dict[int, Exception | None]:
        """Return the partitions of which tasks are missing, with the error of the earliest of those that failed."""
        found: dict[int, Exception | None] = {}
        for number in sorted(self.missing):
            assert self._bounds is not None
            partition = int(np.searchsorted(self._bounds, self._tasks[number].start, side="right")) - 1
            found[partition] = found.get(partition) or self.failed.get(number)
        return found


def gather(
    source: Source,
    request: SummaryRequest,
    engine: Engine,
    tolerance: Tolerance = Tolerance(),  # noqa: B008 (immutable)
    checkpoint: Checkpoint | None = None,
) -> Gathered:
    """Have all tasks run and merge their pieces in a fixed order.

    Partitions that may be missing are contiguous: tasks are then cut at their borders, and nothing of a partition is
    taken unless all of it came. A checkpoint has results of an earlier run, and is given those of this one.
    """
    partitioning = request.partitioning
    tasks = make_tasks(source, partitioning, tolerance.by_partition or checkpoint is not None, request.segment_rows)
    columns = ((INTERCEPT,) if request.fit_intercept else ()) + source.feature_names + source.target_names
    if request.merging.by_group:
        return _of_groups(_collected(source, request, engine, tolerance, checkpoint, tasks), partitioning, columns)
    target_range = np.array([[np.inf], [-np.inf]]) * np.ones(len(source.target_names))
    summaries: list[Summary] = []
    arrived: dict[int, tuple[int, float]] = {}
    last: Summary | None = None
    # What a checkpoint keeps is of all partitions.
    for asked in [request] if checkpoint is not None else passes_over(source, request):
        collected = _collected(source, asked, engine, tolerance, checkpoint, tasks)
        incomplete = collected.incomplete()
        if incomplete:
            _check_enough(collected, partitioning, tolerance)
        for partition in range(partitioning.count) if asked.group is None else asked.group:
            if partition in incomplete:
                continue
            arrived[partition] = (0, 0.0)
            whole = collected.fold.take(partition)
            if whole is not None:
                arrived[partition] = (whole.row_count, whole.weight_sum)
                if target_range.size:
                    target_range[0] = np.minimum(target_range[0], whole.target_range[0])
                    target_range[1] = np.maximum(target_range[1], whole.target_range[1])
                summaries += summaries_of(partition, whole, asked, columns, collected.rows_seen)
                if partition == partitioning.count - 1:
                    last = exact_of(partition, whole, asked, columns, collected.rows_seen)
        if waiting_bytes(source, request) > _MUCH_MEMORY:
            give_back()
    return Gathered(
        summaries=tuple(summaries),
        names=tuple(partitioning.names[partition] for partition in arrived),
        row_counts=tuple(rows for rows, _ in arrived.values()),
        weight_sums=tuple(weight for _, weight in arrived.values()),
        target_range=target_range,
        rows_dropped=_rows_dropped(arrived, partitioning) if incomplete else collected.dropped,
        left_out=tuple(
            PartitionLeftOut(partitioning.names[partition], _rows_of(partition, partitioning), _why(error, tolerance))
            for partition, error in incomplete.items()
        ),
        last_exact=last,
    )


def _of_groups(collected: Collector, partitioning: Partitioning, columns: tuple[str, ...]) -> Gathered:
    """Return what became of partitions that were summed side by side."""
    summaries, counts, weights, target_range = of_groups(
        collected.fold, partitioning.count, columns, collected.rows_seen
    )
    return Gathered(summaries, partitioning.names, counts, weights, target_range, collected.dropped)


def _collected(
    source: Source,
    request: SummaryRequest,
    engine: Engine,
    tolerance: Tolerance,
    checkpoint: Checkpoint | None,
    tasks: Sequence[Task],
) -> Collector:
    """Return the pieces of all tasks, merged as they came."""
    collected = Collector(request, tasks)
    if checkpoint is not None:
        for outcome in checkpoint.load(len(tasks)):
            collected.add(outcome)
    if collected.missing:
        for outcome in run_tasks(engine, source, request, tasks, sorted(collected.missing), tolerance):
            collected.add(outcome)
            if checkpoint is not None and outcome.result is not None:
                checkpoint.keep(outcome.tasks, outcome.result)
    return collected


def guided(
    source: Source,
    request: SummaryRequest,
    engine: Engine,
    tolerance: Tolerance = Tolerance(),  # noqa: B008 (immutable)
) -> SummaryRequest:
    """Make the first pass of a sketch that needs one, and return the request with what it found."""
    sketch = get_sketch(request.specification.kind)
    columns = int(request.fit_intercept) + len(source.feature_names)
    first = sketch.first_pass(request.specification, columns)
    if first is None:
        return request
    if not source.replayable:
        raise InputError(
            f"sketch={sketch.kind!r} reads the rows twice, and a {source.description} can be read only once: use "
            "'row_sample', or write the rows to a file first."
        )
    if tolerance.drop or tolerance.deadline is not None:
        raise InputError(
            f"sketch={sketch.kind!r} reads the rows twice, and what fails or is late the first time may not the second "
            "time: on_partition_error='drop' and deadline go with the other sketches."
        )
    first_request = replace(request, specification=first, sketches_per_partition=1, measures_noise=False)
    looked_at = gather(source, first_request, engine)
    found = {summary.parts[0].stream: summary for summary in looked_at.summaries}
    # A partition may turn out to have no rows.
    nothing = np.zeros((1, columns))
    guides = tuple(
        sketch.guide(request.specification, _centred(found[partition])[:, :columns], found[partition].row_count)
        if partition in found
        else sketch.guide(request.specification, nothing, 0)
        for partition in range(request.partitioning.count)
    )
    width = columns + len(source.target_names)
    centres = tuple(
        found[partition].centre if partition in found else np.zeros(width)
        for partition in range(request.partitioning.count)
    )
    return replace(request, guides=guides, centres=centres if any(centre.any() for centre in centres) else ())


def _centred(summary: Summary) -> FloatArray:
    return summary.rows.moved(-summary.centre).high


def _check_enough(collected: Collector, partitioning: Partitioning, tolerance: Tolerance) -> None:
    left_out = collected.incomplete()
    count = partitioning.count - len(left_out)
    if count >= max(1, tolerance.min_partitions):
        return
    if count == 0 and len(collected.failed) == len(collected.missing):
        raise collected.failed[min(collected.failed)]
    late = sum(error is None for error in left_out.values())
    when = f" within the deadline of {tolerance.deadline:g} s" if late else ""
    failed = len(left_out) - late
    raise InputError(
        f"Only {count} of {partitioning.count} partitions arrived{when}"
        + (f" ({failed} could not be read)" if failed else "")
        + f", fewer than min_partitions={tolerance.min_partitions}: "
        + ("allow more time, or ask for fewer." if late else "mend the others, or ask for fewer.")
    )


def _why(error: Exception | None, tolerance: Tolerance) -> str:
    if error is None:
        return f"it had not arrived at the deadline of {tolerance.deadline:g} s"
    return str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"


def _rows_of(partition: int, partitioning: Partitioning) -> int:
    assert partitioning.bounds is not None
    return partitioning.bounds[partition + 1] - partitioning.bounds[partition]


def _rows_dropped(arrived: Mapping[int, tuple[int, float]], partitioning: Partitioning) -> int:
    """Return how many rows of the partitions that remain had missing values."""
    return sum(_rows_of(partition, partitioning) - rows for partition, (rows, _) in arrived.items() if rows)
