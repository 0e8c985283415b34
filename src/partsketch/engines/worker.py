"""What a worker of a cluster does with a task: the same as the local engine, with the rows that were sent or are there.

The functions here are called on workers, so they are plain and their arguments are small, except for chunks of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from partsketch.common.linalg.blas import one_thread_each
from partsketch.sources.base import Source
from partsketch.sources.cluster.chunked import RemoteSource
from partsketch.summaries.summarise import summarise_rows
from partsketch.summaries.tasks import PassRequest, Task, TaskResult

#: Rows that a worker reads at once.
BLOCK_ROWS = 32768


def run_task(
    source: Source,
    request: PassRequest,
    task: Task,
    after_block: Callable[[int], None] = lambda rows: None,
) -> TaskResult:
    """Summarise rows of a source that a worker can read: files, or the part of a table that was sent to it."""
    with one_thread_each():
        return summarise_rows(source, request, task, BLOCK_ROWS, after_block)


def run_on_chunks(
    source: RemoteSource,
    request: PassRequest,
    task: Task,
    chunks: Sequence[Any],
    after_block: Callable[[int], None] = lambda rows: None,
) -> TaskResult:
    """Summarise rows of the chunks that `source.chunks.between(task.start, task.stop)` numbers.

    Parameters
    ----------
    source
        The source as `RemoteSource.sent` returns it.
    chunks
        Each an Arrow table, a pandas data frame or a two-dimensional array; for `ChunkedArrays` a tuple of arrays.
    """
    first = source.chunks.between(task.start, task.stop).start
    return run_task(source.hold(first, chunks), request, task, after_block)
