"""What executors of Spark do with the rows of a `DataFrame`, partition by partition and where rows of several meet."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from partsketch.common.errors import InputError
from partsketch.engines.bundles import Bundle, merge_bundles, run_bundle
from partsketch.engines.worker import run_task
from partsketch.sources.cluster.chunked import ChunkedRows, HeldRows
from partsketch.sources.cluster.remote import ChunkedColumns
from partsketch.sources.column_source import ColumnSource
from partsketch.sources.memory.tables import TableRows
from partsketch.summaries.tasks import PassRequest, Task, TaskResult

#: What a partition sends on: of tasks done there a bundle (`value`), of others rows and the number of their first.
PARTITION_OUTCOME = "task long, start long, value binary, rows binary"

#: What is left where rows of a task have met.
MEETING_OUTCOME = "value binary"

Shared = tuple[ChunkedColumns, PassRequest, list[Task]]


def partition_work(shared: Any) -> Callable[[Any], Any]:
    """Return the function that goes over the Arrow batches of a partition; `shared` is a broadcast value."""

    def work(batches: Any) -> Any:
        from pyspark import TaskContext

        yield from _Partition(shared.value, TaskContext.get().partitionId()).outcomes(batches)

    return work


def meeting_work(shared: Any) -> Callable[[Any], Any]:
    """Return the function that takes what partitions sent on for one task; `shared` is a broadcast value."""

    def work(table: Any) -> Any:
        import pyarrow as pa

        index = table["task"][0].as_py()
        values = [pickle.loads(value) for value in table["value"].to_pylist() if value is not None]
        if index >= 0 and not values:
            values = [_met(shared.value, index, table)]
        return pa.table({"value": [pickle.dumps(merge_bundles(shared.value[1].merging, values[:1]))]})

    return work


@dataclass
class _Partition:
    """One pass over the rows of a partition."""

    shared: Shared
    number: int
    bundle: Bundle = field(default_factory=lambda: Bundle((), None))

    def __post_init__(self) -> None:
        chunks = self.shared[0].chunks
        self.size = chunks.sizes[self.number] if self.number < len(chunks.sizes) else 0
        self.begin = chunks.ends[self.number] if self.size else chunks.row_count
        self.end = self.begin + self.size

    def outcomes(self, batches: Iterator[Any]) -> Iterator[Any]:
        here = [
            (index, task)
            for index, task in enumerate(self.shared[2])
            if task.start < self.end and self.begin < _stop(task)
        ]
        rows = _Numbered(batches, self.begin)
        for index, task in here:
            start, stop = max(task.start, self.begin), min(_stop(task), self.end)
            pieces = rows.take(start, stop)
            if rows.position < stop:
                break
            if task.start < self.begin or self.end < _stop(task):
                yield _answer(index, start, rows=_as_bytes(pieces))
            else:
                self._summarise(index, start, pieces)
        found = rows.position - self.begin + rows.left()
        if found != self.size:
            changed = self.shared[0].chunks.refuse_change(self.number, found) if self.size else _appeared(self.number)
            for index, task in here:
                crosses = task.start < self.begin or self.end < _stop(task)
                failure = Bundle((), None, ((index, changed),))
                if crosses:
                    yield _answer(index, task.start, value=failure)
            own = [index for index, task in here if self.begin <= task.start and _stop(task) <= self.end]
            self.bundle = Bundle((), None, tuple((index, changed) for index in own))
        yield _answer(-1 - self.number, self.begin, value=self.bundle)

    def _summarise(self, index: int, start: int, pieces: Sequence[Any]) -> None:
        merging = self.shared[1].merging
        task = self.shared[2][index]
        bundle = run_bundle(merging, [(index, task)], lambda _: _summarised(self.shared, index, start, pieces))
        self.bundle = merge_bundles(merging, [self.bundle, bundle])


class _Numbered:
    """A stream of batches whose rows are numbered; remembers how far it has been read."""

    def __init__(self, batches: Iterator[Any], position: int) -> None:
        self._batches = batches
        self._batch: Any = None
        self.position = position

    def take(self, start: int, stop: int) -> list[Any]:
        """Return rows start to stop, after those taken before; fewer when the stream ends."""
        taken = []
        while self.position < stop:
            if self._batch is None or self._batch.num_rows == 0:
                self._batch = next(self._batches, None)
                if self._batch is None:
                    break
                continue
            skip = self.position < start
            count = min((start if skip else stop) - self.position, self._batch.num_rows)
            if not skip:
                taken.append(self._batch.slice(0, count))
            self._batch = self._batch.slice(count)
            self.position += count
        return taken

    def left(self) -> int:
        """Run through what has not been taken and count it."""
        rest = 0 if self._batch is None else self._batch.num_rows
        return int(rest + sum(batch.num_rows for batch in self._batches))


def _met(shared: Shared, index: int, table: Any) -> Bundle:
    """Summarise the rows of a task, come from several partitions."""
    import pyarrow as pa

    _, request, tasks = shared
    order = sorted(range(table.num_rows), key=table["start"].to_pylist().__getitem__)
    streams = (pa.ipc.open_stream(table["rows"][position].as_buffer()) for position in order)
    pieces = [batch for stream in streams for batch in stream]
    task = tasks[index]
    return run_bundle(request.merging, [(index, task)], lambda _: _summarised(shared, index, task.start, pieces))


def _summarised(shared: Shared, index: int, start: int, pieces: Sequence[Any]) -> TaskResult:
    import pyarrow as pa

    source, request, tasks = shared
    rows = cast(ChunkedRows, source.rows)
    table = pa.Table.from_batches(pieces)
    if table.num_rows != _stop(tasks[index]) - start:
        raise InputError(
            f"The {source.chunks.noun} gave {table.num_rows} rows where {_stop(tasks[index]) - start} were expected: "
            "keep it on the cluster (persist), or make it the same every time."
        )
    held = HeldRows(((start, TableRows(table).choose(rows.chosen, rows.texts)),), rows.description)
    held_source = ColumnSource(held, source.selection, source.encoding, source.labels, source.missing)
    return run_task(held_source, request, tasks[index])


def _appeared(number: int) -> InputError:
    return InputError(
        f"Partition {number} of the Spark data frame has rows now, and had none when it was opened: "
        "keep it on the cluster (persist), or make it the same every time."
    )


def _stop(task: Task) -> int:
    assert task.stop is not None
    return task.stop


def _as_bytes(pieces: Sequence[Any]) -> bytes:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, pieces[0].schema) as writer:
        for piece in pieces:
            writer.write_batch(piece)
    return bytes(sink.getvalue().to_pybytes())


def _answer(index: int, start: int, value: Bundle | None = None, rows: Any = None) -> Any:
    import pyarrow as pa

    return pa.record_batch(
        {
            "task": pa.array([index], pa.int64()),
            "start": pa.array([start], pa.int64()),
            "value": pa.array([None if value is None else pickle.dumps(value)], pa.binary()),
            "rows": pa.array([rows], pa.binary()),
        }
    )
