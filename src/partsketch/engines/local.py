"""The local engine: threads that read and compute, one per core."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from partsketch.blas import one_thread_each
from partsketch.errors import InputError
from partsketch.report.progress import RowProgress
from partsketch.sources.base import Source
from partsketch.summarise import SummaryRequest, Task, TaskResult, summarise_rows


def usable_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _StoppedError(Exception):
    """Raised inside a worker when its result is not wanted any more."""


class LocalEngine:
    """Worker threads on this machine.

    Parameters
    ----------
    threads
        Number of workers; None means one per core that this process may use.
    block_rows
        Rows that a worker reads at once.
    """

    name = "local"

    def __init__(self, threads: int | None = None, block_rows: int = 32768) -> None:
        if threads is not None and (not isinstance(threads, int) or threads < 1):
            raise InputError(f"threads is {threads}: give a whole number, at least 1.")
        if not isinstance(block_rows, int) or block_rows < 1:
            raise InputError(f"block_rows is {block_rows}: give a whole number, at least 1.")
        self._threads = threads or usable_cores()
        self._block_rows = block_rows

    def run(self, source: Source, request: SummaryRequest, tasks: Sequence[Task]) -> Iterator[TaskResult]:
        """Yield results in the order of the tasks; at most two tasks per worker are under way."""
        stop = threading.Event()
        threads = max(1, min(self._threads, len(tasks)))
        total = sum(task.stop - task.start for task in tasks if task.stop is not None) if tasks[-1].stop else None

        def work(task: Task) -> TaskResult:
            def after_block(rows: int) -> None:
                if stop.is_set():
                    raise _StoppedError
                progress.advance(rows)

            if stop.is_set():
                raise _StoppedError
            return summarise_rows(source, request, task, self._block_rows, after_block)

        with RowProgress(total) as progress, one_thread_each(), ThreadPoolExecutor(threads) as pool:
            waiting: deque[Future[TaskResult]] = deque()
            remaining = iter(tasks)
            try:
                while True:
                    while len(waiting) < 2 * threads and (task := next(remaining, None)) is not None:
                        waiting.append(pool.submit(work, task))
                    if not waiting:
                        return
                    # Results are awaited in order, so the error that surfaces is that of the earliest rows.
                    yield waiting.popleft().result()
            finally:
                stop.set()
                for future in waiting:
                    future.cancel()
