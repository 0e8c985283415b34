"""The local engine: threads that read and compute, one per core."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from queue import Empty, SimpleQueue

from partsketch.common.errors import InputError
from partsketch.common.linalg.blas import WIDEST_KERNEL, one_thread_each
from partsketch.common.linalg.helpers import Helpers, helped_by
from partsketch.engines.base import Engine, Outcomes, TaskOutcome
from partsketch.engines.bundles import Bundle, run_bundle, shrinking_bundles
from partsketch.engines.progress import RowProgress
from partsketch.sources.base import Source
from partsketch.sources.memory.arrays import ArraySource
from partsketch.sources.read_ahead import ReadAhead
from partsketch.summaries.summarise import summarise_rows
from partsketch.summaries.tasks import PassRequest, Task


def usable_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


#: Most tasks that a worker reads in one go, so that a large file is still shared evenly.
_MOST_TASKS = 4
#: Most numbers of a segment that several threads share: each holds those of one or two.
_MOST_NUMBERS = 2**22
#: Most threads that decode one row group; each holds two blocks of its columns.
_MOST_READERS = 4


class _StoppedError(Exception):
    """Raised inside a worker when its result is not wanted any more."""


class LocalEngine(Engine):
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
        self, source: Source, request: PassRequest, tasks: Sequence[Task], deadline: float | None = None
    ) -> Outcomes:
        """Yield outcomes as tasks end; tasks are begun in their order."""
        if not tasks:
            return
        # Tasks that begin inside a row group cost the rows before them; of rows in memory tasks are so short that
        # handing them out one by one would be a good part of the work.
        apart = deadline is not None or any(task.apart for task in tasks) or source.one_by_one
        in_memory = source.features_in_memory is not None and source.stored_entries is None
        apart = apart or not (source.boundaries or in_memory)
        bundles = shrinking_bundles(len(tasks), self.threads, 1 if apart else _MOST_TASKS)
        # Large products are shared with those who have no rows of their own.
        shared = len(source.feature_names) > WIDEST_KERNEL
        threads = self.threads if shared else min(self.threads, len(bundles))
        # A large row group is decoded in one place, by whoever sums the next rows of it; where these would take too
        # much memory, by a thread that does nothing else. Other threads decode some of its columns ahead: to decode
        # takes as long as to sum, and who sums must not wait.
        together = self.threads // threads if source.boundaries else 1
        width = len(source.feature_names) + len(source.target_names)
        if together > 1:
            source = source.decoded_by(min(together, _MOST_READERS))
        if together > 1 and width * request.segment_rows > _MOST_NUMBERS:
            source, together = ReadAhead(source), 1
        # Who holds the rows of a segment may as well read them at once; views of rows in memory take none.
        at_once = together > 1 or (isinstance(source, ArraySource) and source.has_rows_of_doubles)
        block_rows = max(self._block_rows, request.segment_rows) if at_once else self._block_rows
        stop = threading.Event()
        total = None if tasks[-1].stop is None else sum((task.stop or 0) - task.start for task in tasks)

        def after_block(rows: int) -> None:
            if stop.is_set():
                raise _StoppedError
            progress.advance(rows)

        def done(number: int) -> Bundle:
            return run_bundle(
                request.merging,
                [(index, tasks[index]) for index in bundles[number]],
                lambda task: summarise_rows(source, request, task, block_rows, after_block, together),
            )

        with RowProgress(total) as progress, one_thread_each():
            if threads == 1 and deadline is None:
                # A worker that nobody works beside would only cost the time to start it.
                for number in range(len(bundles)):
                    yield from done(number).outcomes()
            else:
                yield from _in_threads(threads, len(bundles), done, stop, deadline)


def _in_threads(
    threads: int, count: int, done: Callable[[int], Bundle], stop: threading.Event, deadline: float | None
) -> Iterator[TaskOutcome]:
    """Yield what becomes of bundles 0 to count − 1, at most two per worker being under way."""
    waiting: SimpleQueue[int | None] = SimpleQueue()
    ended: SimpleQueue[tuple[float, Bundle | BaseException]] = SimpleQueue()
    helpers = Helpers()

    def work() -> None:
        try:
            with helped_by(helpers):
                while (number := waiting.get()) is not None and not stop.is_set():
                    bundle = done(number)
                    if stop.is_set():
                        return
                    ended.put((time.monotonic(), bundle))
            helpers.help()
        except BaseException as error:
            # Who waits for this worker must hear of its end, whatever ended it.
            ended.put((time.monotonic(), error))

    # Work lies ready before workers start, and word of its end behind the last of it: nobody waits for this thread,
    # which starts workers, merges and ends while they work.
    queued = iter([*range(count), *[None] * threads])
    for number in islice(queued, 2 * threads):
        waiting.put(number)
    # Daemons: a read that hangs past a deadline must not keep the process from ending.
    workers = [threading.Thread(target=work, daemon=True, name=f"partsketch-{i}") for i in range(threads)]
    try:
        for worker in workers:
            worker.start()
        for _ in range(count):
            bundle = _next(ended, deadline)
            if bundle is None:
                return
            if isinstance(bundle, BaseException):
                raise bundle
            for number in islice(queued, 1):
                waiting.put(number)
            yield from bundle.outcomes()
    finally:
        stop.set()
        helpers.close()
        for _ in workers:
            waiting.put(None)
        if deadline is None:
            for worker in workers:
                if worker.ident is not None:
                    worker.join()


def _next(
    ended: SimpleQueue[tuple[float, Bundle | BaseException]], deadline: float | None
) -> Bundle | BaseException | None:
    """Return what ends next, or None when the deadline passes before that, however late this is asked."""
    if deadline is None:
        return ended.get()[1]
    try:
        moment, bundle = ended.get(timeout=max(0.0, deadline - time.monotonic()))
    except Empty:
        return None
    return bundle if moment <= deadline else None
