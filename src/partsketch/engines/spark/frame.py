"""The partitions of a Spark `DataFrame` as chunks of rows.

Rows of a `DataFrame` have no numbers. They are counted by partition first, and numbered by partition and position from
then on. A task whose rows are all in one partition is done where they are, from a stream of Arrow batches; rows of a
task that crosses partitions meet on one executor, through a shuffle.
"""

from __future__ import annotations

import io
import pickle
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from partsketch.common.errors import InputError
from partsketch.engines.bundles import Bundle, taken, tried
from partsketch.engines.spark.jobs import collect_bundles
from partsketch.engines.spark.partition import MEETING_OUTCOME, PARTITION_OUTCOME, meeting_work, partition_work
from partsketch.sources.cluster.chunked import ChunkedRows
from partsketch.sources.cluster.chunks import Chunks, Collection
from partsketch.sources.cluster.remote import ChunkedColumns
from partsketch.sources.identity import joint_digest, stream_digest
from partsketch.sources.storage import schema_columns
from partsketch.summaries.tasks import PassRequest, Task

T = TypeVar("T")

#: Name of an operator in a physical plan, and those that make the same partitions whatever columns are asked for.
_OPERATOR = re.compile(r"^[ :+-]*(?:\*\(\d+\) )?([A-Za-z]\w*)", re.MULTILINE)
_KEEP_PARTITIONS = {"FileScan", "BatchScan", "ColumnarToRow", "Project", "Filter", "Range"}

#: Answers of partitions: the number of the partition, and a value only Python understands.
_ANSWER = "number int, value binary"


@dataclass
class SparkPartitions(Collection):
    """The partitions of a `DataFrame`."""

    frame: Any
    engine: str = "spark"
    noun: str = "Spark data frame"

    @cached_property
    def token(self) -> str:
        """A digest of all rows, made where they lie: a plan does not tell what it will find."""
        return joint_digest(self.map(_digest))

    def map(self, work: Callable[[Any], T]) -> Iterator[T]:
        """Call `work` with the Arrow batches of every partition; yield the small results by partition."""
        schema = _arrow_schema(self.frame)

        def on_partition(batches: Iterator[Any]) -> Iterator[Any]:
            import pyarrow as pa
            from pyspark import TaskContext

            value = tried(work, pa.RecordBatchReader.from_batches(schema, batches))
            number = pa.array([TaskContext.get().partitionId()], pa.int32())
            yield pa.record_batch({"number": number, "value": [pickle.dumps(value)]})

        with quietly():
            rows = self.frame.mapInArrow(on_partition, _ANSWER).collect()
        for row in sorted(rows, key=lambda row: row.number):
            yield taken(pickle.loads(row.value))


@dataclass(frozen=True)
class FrameRows(ChunkedRows):
    """Rows of a `DataFrame`; any row number will do as a border of tasks, for rows are streamed."""

    @property
    def boundaries(self) -> tuple[int, ...]:
        """No border is better than another, so tasks are single segments."""
        return ()


def frame_rows(frame: Any) -> FrameRows:
    """Return the rows of a data frame, counted by partition."""
    if not hasattr(frame, "mapInArrow"):
        raise InputError(f"A {type(frame).__name__} of Spark cannot be opened: pass a pyspark.sql.DataFrame.")
    if getattr(frame, "isStreaming", False):
        raise InputError("A streaming data frame of Spark has no end: write it to files, or pass a batch data frame.")
    columns = schema_columns(_arrow_schema(frame))
    collection = SparkPartitions(frame)
    sizes = _quick_sizes(frame) if _has_fixed_partitions(frame) else list(collection.map(_count))
    return FrameRows(Chunks.of(collection, sizes), columns)


def _arrow_schema(frame: Any) -> Any:
    from pyspark.sql.pandas.types import to_arrow_schema

    with quietly():
        return to_arrow_schema(frame.schema)


@contextmanager
def quietly() -> Iterator[None]:
    """Silence what PySpark says of new versions of pandas, which is not used here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas", category=FutureWarning)
        yield


def _digest(batches: Any) -> str:
    import pyarrow as pa

    return stream_digest(batches.schema, (pa.Table.from_batches([batch]) for batch in batches))


def _count(batches: Any) -> int:
    return sum(batch.num_rows for batch in batches)


def _has_fixed_partitions(frame: Any) -> bool:
    """Tell whether asking for fewer columns leaves the partitions as they are: nothing is shuffled on the way."""
    if frame.is_cached:
        return True
    plan = io.StringIO()
    with redirect_stdout(plan):
        frame.explain()
    return set(_OPERATOR.findall(plan.getvalue())) <= _KEEP_PARTITIONS


def _quick_sizes(frame: Any) -> list[int]:
    """Count the rows by partition without reading columns."""
    from pyspark.sql import functions

    counted = frame.select(functions.spark_partition_id().alias("number")).groupBy("number").count().collect()
    sizes = [0] * (1 + max((row["number"] for row in counted), default=-1))
    for row in counted:
        sizes[row["number"]] = row["count"]
    return sizes


class FrameJob:
    """All tasks on a data frame in one job, since Spark would make the rows anew for every other."""

    divisible = False

    def __init__(self, context: Any, source: ChunkedColumns, request: PassRequest, tasks: Sequence[Task]) -> None:
        self.tasks = tasks
        self.waiting = [[range(len(tasks))]]
        chunks = source.chunks
        self.parts = len(chunks.sizes)
        self.rows: set[int] = set()
        self._crossing = sum(len(chunks.between(task.start, task.stop)) > 1 for task in tasks)
        collection: Any = chunks.collection
        self._frame = collection.frame.select(*[f"`{name.replace('`', '``')}`" for name in source.selection.used])
        self._shared = context.broadcast((source.sent(), request, list(tasks)))
        self._merging = request.merging
        self._workers = max(1, context.defaultParallelism)

    def run(self, bundles: list[range]) -> list[Bundle]:
        """Do what can be done in place, send the other rows to where they meet, and merge in a tree."""
        with quietly():
            outcomes = self._frame.mapInArrow(partition_work(self._shared), PARTITION_OUTCOME)
            parts = self.parts
            if self._crossing:
                # A number of our own: Spark's default of 200 costs seconds where a few would do.
                parts = min(parts + self._crossing, 4 * self._workers)
                met = outcomes.repartition(parts, "task").groupBy("task")
                outcomes = met.applyInArrow(meeting_work(self._shared), MEETING_OUTCOME)
            values = outcomes.select("value").rdd
            self.rows.add(values.id())
            found = values.map(lambda row: pickle.loads(row.value))
        return collect_bundles(found, self._merging, parts)

    def close(self) -> None:
        """Remove the broadcast value from the executors."""
        self._shared.destroy()
