"""Jobs of a Spark session: run from threads, watched, and cancelled together."""

from __future__ import annotations

import gc
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache, reduce
from queue import Empty, SimpleQueue
from typing import Any, Protocol

from partsketch.engines.base import TaskOutcome
from partsketch.engines.bundles import Bundle, lost, merge_bundles, run_bundle, task_rows
from partsketch.engines.progress import RowProgress
from partsketch.engines.worker import run_task
from partsketch.sketches.base import Merging
from partsketch.sources.base import Source
from partsketch.sources.cluster.remote import part_of
from partsketch.summaries.tasks import PassRequest, Task

#: Jobs that run at the same time: while the last tasks of one end, those of the next begin.
_JOBS_AT_ONCE = 2

#: Bundles that the driver takes as they are; more are merged on the executors first.
_FEW_BUNDLES = 8

#: For how long jobs are cancelled again and again, in seconds, until their threads have ended.
_CANCEL_SECONDS = 15

#: How often the driver asks how far the jobs are, in seconds.
_WATCH_SECONDS = 0.25


class Jobs(Protocol):
    """Work cut into jobs.

    Attributes
    ----------
    tasks
        The tasks that the jobs do.
    waiting
        Jobs to come, each the indices of its tasks by bundle, the next one last.
    parts
        How many tasks of Spark all jobs begin with.
    divisible
        Whether some of the tasks of a job can be done by a job of their own.
    rows
        Spark's numbers of the collections that the jobs go through, by which the jobs are known.
    """

    tasks: Sequence[Task]
    waiting: list[list[range]]
    parts: int
    divisible: bool
    rows: set[int]

    def run(self, bundles: list[range]) -> list[Bundle]:
        """Run one job and return what became of its tasks, in few bundles."""
        ...

    def close(self) -> None:
        """Let go of what the jobs share."""
        ...


class FileJobs:
    """Tasks on files, or on rows that are sent along."""

    divisible = True

    def __init__(
        self,
        context: Any,
        source: Source,
        request: PassRequest,
        tasks: Sequence[Task],
        bundles: Sequence[range],
        sends_rows: bool,
    ) -> None:
        self.tasks = tasks
        self.parts = len(bundles)
        self.rows: set[int] = set()
        self._context = context
        self._source = source if sends_rows else None
        self._shared = context.broadcast((None if sends_rows else source, request, list(tasks)))
        self._merging = request.merging
        per_job = max(1, context.defaultParallelism) * (1 if sends_rows else 4)
        starts = range(0, len(bundles), per_job)
        self.waiting = [list(bundles[start : start + per_job]) for start in reversed(starts)]

    def run(self, bundles: list[range]) -> list[Bundle]:
        """Summarise bundle by bundle on the executors; many are merged there in a tree."""
        shared, merging = self._shared, self._merging
        items = [(list(bundle), self._part(bundle)) for bundle in bundles]

        def work(item: tuple[list[int], Source | None]) -> Bundle:
            source, request, tasks = shared.value
            indices, part = item
            chosen = [(index, tasks[index]) for index in indices]
            bundle = run_bundle(merging, chosen, lambda task: run_task(part or source, request, task))
            _spare_collector()
            return bundle

        sent = self._context.parallelize(items, len(items))
        self.rows.add(sent.id())
        return collect_bundles(sent.map(work), merging, len(items))

    def _part(self, bundle: range) -> Source | None:
        if self._source is None:
            return None
        return part_of(self._source, self.tasks[bundle[0]].start, self.tasks[bundle[-1]].stop)

    def close(self) -> None:
        """Remove the broadcast value from the executors."""
        self._shared.destroy()


@cache
def _spare_collector() -> None:
    """Take what has been imported out of the reach of the garbage collector, once per Python worker.

    Spark has every worker collect after every task. With our libraries loaded that takes longer than many a task.
    """
    gc.collect()
    gc.freeze()


def collect_bundles(bundles: Any, merging: Merging, parts: int) -> list[Bundle]:
    """Merge the bundles of an RDD by partition, and in a tree if it has many; bring what is left to the driver."""

    def merge(first: Bundle, second: Bundle) -> Bundle:
        return merge_bundles(merging, [first, second])

    merged = bundles.mapPartitions(lambda found: [reduce(merge, found, Bundle((), None))])
    return list(merged.collect()) if parts <= _FEW_BUNDLES else [merged.treeReduce(merge)]


def run_jobs(context: Any, jobs: Jobs, progress: RowProgress, deadline: float | None) -> Iterator[TaskOutcome]:
    """Run all jobs, a bounded number at a time; cancel them when the iterator is closed or the deadline passes."""
    from pyspark import InheritableThread

    group = f"partsketch-{uuid.uuid4()}"
    stop = threading.Event()
    ended: SimpleQueue[tuple[list[range], list[Bundle] | Exception]] = SimpleQueue()

    def submit(bundles: list[range]) -> threading.Thread:
        def run() -> None:
            if stop.is_set():
                return
            context.setJobGroup(group, "partsketch", interruptOnCancel=True)
            try:
                ended.put((bundles, jobs.run(bundles)))
            except Exception as error:  # whatever Spark raises when it gives up a job
                ended.put((bundles, error))

        thread: threading.Thread = InheritableThread(target=run, daemon=True, name="partsketch-spark-job")
        thread.start()
        return thread

    threads: list[threading.Thread] = []
    under_way = 0
    watch = _Watch(context, group, jobs, progress)
    try:
        while True:
            while jobs.waiting and under_way < _JOBS_AT_ONCE:
                threads = [thread for thread in threads if thread.is_alive()]
                threads.append(submit(jobs.waiting.pop()))
                under_way += 1
            if not under_way:
                return
            found = _next(ended, deadline, watch)
            if found is None:
                return
            under_way -= 1
            bundles, bundle_results = found
            if isinstance(bundle_results, Exception):
                yield from _given_up(jobs, bundles, bundle_results)
            else:
                for bundle in bundle_results:
                    yield from bundle.outcomes()
    finally:
        stop.set()
        _cancel(context, group, jobs.rows, threads)
        jobs.close()


def _next(ended: SimpleQueue[Any], deadline: float | None, watch: _Watch) -> Any:
    """Return the next job that ended, or None when the deadline passes first."""
    while True:
        left = _WATCH_SECONDS if deadline is None else min(_WATCH_SECONDS, deadline - time.monotonic())
        with suppress(Empty):
            return ended.get(timeout=max(0.0, left))
        if deadline is not None and time.monotonic() >= deadline:
            return None
        watch.look()


def _given_up(jobs: Jobs, bundles: list[range], error: Exception) -> Iterator[TaskOutcome]:
    """Try the tasks of a job that Spark gave up one by one: perhaps only one of them is what kills workers."""
    indices = [index for bundle in bundles for index in bundle]
    if len(indices) > 1 and jobs.divisible:
        jobs.waiting.extend([range(index, index + 1)] for index in reversed(indices))
        return
    for index in indices:
        yield TaskOutcome((index,), None, lost("Spark", jobs.tasks[index], error))


def _cancel(context: Any, group: str, rows: set[int], threads: Sequence[threading.Thread]) -> None:
    """Cancel all jobs; a thread may have been about to submit one, so until all threads are gone.

    An interrupt may cost a thread its connection to Spark. What it submits by another one belongs to no group, so jobs
    are known by what they go through, too. What cannot be cancelled at all must not keep the caller waiting.
    """
    last = time.monotonic() + _CANCEL_SECONDS
    while any(thread.is_alive() for thread in threads) and time.monotonic() < last:
        context.cancelJobGroup(group)
        for job in _jobs_through(context, rows):
            context._jsc.sc().cancelJob(job)
        for thread in threads:
            thread.join(0.1)


def _jobs_through(context: Any, rows: set[int]) -> list[int]:
    """Return the jobs under way that go through one of the collections."""
    tracker, stages = context.statusTracker(), context._jsc.sc().statusStore()

    def through(job: int) -> bool:
        information = tracker.getJobInfo(job)
        numbers = [] if information is None else list(information.stageIds)
        with suppress(Exception):  # whatever Spark raises of a stage that it does not know any more
            return any(stages.lastStageAttempt(stage).rddIds().contains(row) for stage in numbers for row in rows)
        return False

    return [job for job in tracker.getActiveJobsIds() if through(job)]


class _Watch:
    """Asks Spark how many tasks have ended and reports their share of the rows."""

    def __init__(self, context: Any, group: str, jobs: Jobs, progress: RowProgress) -> None:
        self._tracker, self._group, self._progress = context.statusTracker(), group, progress
        self._rows = task_rows(jobs.tasks, range(len(jobs.tasks)))
        self._parts = max(1, jobs.parts)
        self._reported = 0

    def look(self) -> None:
        ended = 0
        for job in self._tracker.getJobIdsForGroup(self._group):
            information = self._tracker.getJobInfo(job)
            if information is not None and len(information.stageIds):
                stage = self._tracker.getStageInfo(min(information.stageIds))
                ended += 0 if stage is None else stage.numCompletedTasks
        rows = min(self._rows, self._rows * ended // self._parts)
        self._progress.advance(max(0, rows - self._reported))
        self._reported = max(rows, self._reported)
