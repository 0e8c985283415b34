"""The local engine: threads that read and compute, one per core."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Sequence
from queue import Empty, SimpleQueue

from partsketch.blas import one_thread_each
from partsketch.engines.base import TaskOutcome
from partsketch.engines.bundles import Bundle, run_bundle, shrinking_bundles
from partsketch.errors import InputError
from partsketch.pieces import SummaryRequest, Task
from partsketch.report.progress import RowProgress
from partsketch.sources.base import Source
from partsketch.summarise import summarise_rows


def usable_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


#: Most tasks that a worker reads in one go, so that a large file is still shared evenly.
_MOST_TASKS = 4


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
        self.threads = threads or usable_cores()
        self._block_rows = block_rows

    def run(
        self, source: Source, request: SummaryRequest, tasks: Sequence[Task], deadline: float | None = None
    ) -> Iterator[TaskOutcome]:
        """Yield outcomes as tasks end; tasks are begun in their order, at most two bundles per worker are under way."""
        if not tasks:
            return
        # Tasks that begin inside a row group cost the rows before them.
        apart = deadline is not None or any(task.apart for task in tasks) or not source.boundaries
        apart = apart or getattr(source, "one_by_one", False)
        bundles = shrinking_bundles(len(tasks), self.threads, 1 if apart else _MOST_TASKS)
        threads = min(self.threads, len(bundles))
        stop = threading.Event()
        waiting: SimpleQueue[int | None] = SimpleQueue()
        ended: SimpleQueue[Bundle] = SimpleQueue()
        total = None if tasks[-1].stop is None else sum((task.stop or 0) - task.start for task in tasks)

        def after_block(rows: int) -> None:
            if stop.is_set():
                raise _StoppedError
            progress.advance(rows)

        def work() -> None:
            while (number := waiting.get()) is not None and not stop.is_set():
                chosen = [(index, tasks[index]) for index in bundles[number]]
                bundle = run_bundle(
                    request.specification.kind,
                    chosen,
                    lambda task: summarise_rows(source, request, task, self._block_rows, after_block),
                )
                if stop.is_set():
                    return
                ended.put(bundle)

        # Daemons: a read that hangs past a deadline must not keep the process from ending.
        workers = [threading.Thread(target=work, daemon=True, name=f"partsketch-{i}") for i in range(threads)]
        with RowProgress(total) as progress, one_thread_each():
            try:
                for worker in workers:
                    worker.start()
                begun = min(2 * threads, len(bundles))
                for number in range(begun):
                    waiting.put(number)
                for _ in bundles:
                    bundle = _next(ended, deadline)
                    if bundle is None:
                        return
                    # The next one is begun before outcomes are handed over, so that no worker waits for their merging.
                    if begun < len(bundles):
                        waiting.put(begun)
                        begun += 1
                    yield from bundle.outcomes()
            finally:
                stop.set()
                for _ in workers:
                    waiting.put(None)
                if deadline is None:
                    for worker in workers:
                        if worker.ident is not None:
                            worker.join()


def _next(ended: SimpleQueue[Bundle], deadline: float | None) -> Bundle | None:
    """Return what ends next, or None when the deadline passes before that."""
    if deadline is None:
        return ended.get()
    try:
        return ended.get(timeout=max(0.0, deadline - time.monotonic()))
    except Empty:
        return None
