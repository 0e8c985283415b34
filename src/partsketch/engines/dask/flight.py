"""The tasks of one fit on their way through a Dask cluster: few at a time, merged there, stopped together."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any
from uuid import uuid4

from partsketch.common.errors import InputError
from partsketch.engines.base import TaskOutcome
from partsketch.engines.bundles import bundle_tasks, merge_bundles, task_rows
from partsketch.engines.dask import work as dask_work
from partsketch.sources.base import Source
from partsketch.sources.cluster.chunked import is_remote
from partsketch.sources.cluster.remote import holds_rows, part_of
from partsketch.summaries.tasks import PassRequest, Task

#: Most tasks whose results are merged on the cluster before they come to the driver.
MOST_MERGED = 16

#: Patience until every worker has the request; without it the fit goes on more slowly.
_REPLICATION_SECONDS = 5.0

#: Seconds that finished results may take to arrive after the deadline.
_GRACE_SECONDS = 2.0

#: How often waiting is broken off, so that an interrupt is heard whichever thread the system gives it to.
_AWAKE_SECONDS = 0.5


class Flight:
    """Submits tasks as others end, so that neither the scheduler nor the driver holds more than a few of them."""

    def __init__(
        self, client: Any, source: Source, request: PassRequest, tasks: Sequence[Task], one_by_one: bool
    ) -> None:
        import cloudpickle

        self._client, self._source, self._tasks = client, source, tasks
        self._merging = request.merging
        self._name = f"partsketch-{uuid4().hex[:12]}"
        self._ended: SimpleQueue[tuple[str, int]] = SimpleQueue()
        self._attempts: dict[int, Any] = {}
        self._merges: dict[int, tuple[tuple[int, ...], Any]] = {}
        self._chunks: dict[int, Any] = {}
        self._remote = source if is_remote(source) else None
        self._holds_rows = self._remote is None and holds_rows(source)
        threads = max(1, sum(client.nthreads().values()))
        self._most_running = 3 * threads + 1
        # Every task that the scheduler knows costs milliseconds of a core: rows that workers read for themselves are
        # asked for several tasks at a time. Rows that lie on the cluster or here are moved for one task at a time.
        alone = one_by_one or self._remote is not None or self._holds_rows
        # Dask's workers share unevenly: with few bundles each, one is often left with the last while the other waits.
        self._units = (
            [range(i, i + 1) for i in range(len(tasks))]
            if alone
            else bundle_tasks(len(tasks), threads, fewest_rounds=8)
        )
        self._merged = min(MOST_MERGED, -(-len(self._units) // (2 * threads)))
        # As a task, not as scattered data: what a lost worker held can be made again.
        sent = self._remote.sent() if self._remote else (None if self._holds_rows else source)
        skeleton = part_of(source, 0, 0) if sent is None else sent
        self._asked = client.submit(
            pickle.loads, cloudpickle.dumps((skeleton, request)), key=f"{self._name}-request", pure=False
        )

    def outcomes(self, deadline: float | None, progress: Callable[[int], None]) -> Iterator[TaskOutcome]:
        """Yield outcomes as bundles of tasks end; tell the progress of every task."""
        self._replicate_request(deadline)
        begun = done = 0
        unmerged: set[int] = set()
        while done < len(self._tasks):
            while len(unmerged) < self._most_running and begun < len(self._units):
                unmerged.add(begun)
                self._begin(begun)
                begun += 1
                if begun % self._merged == 0 or begun == len(self._units):
                    self._merge(tuple(range((begun - 1) // self._merged * self._merged, begun)))
            event = self._next_event(deadline)
            if event is None:
                yield from self._finished()
                return
            what, number = event
            if what == "unit":
                unmerged.discard(number)
                self._release_chunks(number)
                progress(task_rows(self._tasks, self._units[number]))
                continue
            for outcome in self._landed(number):
                done += len(outcome.tasks)
                yield outcome

    def _replicate_request(self, deadline: float | None) -> None:
        """Give every worker the request: the scheduler looks for one among those that hold what a task needs.

        Otherwise one worker gets all first tasks, and the others wait until some are taken from it.
        """
        patience = _REPLICATION_SECONDS if deadline is None else min(_REPLICATION_SECONDS, deadline - time.monotonic())
        with suppress(TimeoutError):
            self._client.replicate(self._asked, callback_timeout=max(0.0, patience))

    def _begin(self, number: int) -> None:
        unit = self._units[number]
        tasks = self._tasks[unit.start : unit.stop]
        chunks = part = None
        if self._remote is not None:
            needed = self._remote.chunks.between(tasks[0].start, tasks[0].stop)
            chunks = [self._chunk(chunk) for chunk in needed]
        elif self._holds_rows:
            part = part_of(self._source, tasks[0].start, tasks[0].stop)
        key = f"{self._name}-task-{number}"
        with _large_arguments():
            future = self._client.submit(
                dask_work.attempt, self._asked, unit.start, tasks, chunks, part, key=key, pure=False
            )
        self._attempts[number] = future
        future.add_done_callback(lambda _: self._ended.put(("unit", number)))

    def _chunk(self, number: int) -> Any:
        if number not in self._chunks:
            assert self._remote is not None
            collection: Any = self._remote.chunks.collection
            self._chunks[number] = collection.futures(number)
        return self._chunks[number]

    def _release_chunks(self, done: int) -> None:
        """Let go of the chunks that no task needs any more."""
        if self._remote is None:
            return
        waiting = [index for index, future in self._attempts.items() if index != done and not future.done()]
        following = max(self._attempts, default=done) + 1
        waiting += [following] if following < len(self._units) else []
        starts = [self._remote.chunks.between(self._tasks[index].start, None).start for index in waiting]
        for number in [number for number in self._chunks if not starts or number < min(starts)]:
            del self._chunks[number]

    def _merge(self, units: tuple[int, ...]) -> None:
        first = units[0]
        key = f"{self._name}-merge-{first}-{uuid4().hex[:6]}"
        attempts = [self._attempts[unit] for unit in units]
        # First, so that summaries do not pile up behind rows.
        future = self._client.submit(merge_bundles, self._merging, attempts, key=key, pure=False, priority=10)
        self._merges[first] = (units, future)
        future.add_done_callback(lambda _: self._ended.put(("merge", first)))

    def _landed(self, first: int) -> Iterator[TaskOutcome]:
        """Yield the outcomes of a merge; when it could not be made, find the units that are to blame."""
        units, future = self._merges.pop(first)
        if future.status == "finished":
            yield from future.result().outcomes()
            for unit in units:
                del self._attempts[unit]
            return
        blamed = [unit for unit in units if self._attempts[unit].status in ("error", "cancelled", "lost")]
        for unit in blamed or units:
            reason = _reason(self._attempts.pop(unit) if blamed else future)
            for index in self._units[unit]:
                yield TaskOutcome((index,), None, reason)
        if blamed and len(blamed) < len(units):
            self._merge(tuple(unit for unit in units if unit not in blamed))

    def _next_event(self, deadline: float | None) -> tuple[str, int] | None:
        """Return what ended next, or None when the deadline passes first."""
        while deadline is None or time.monotonic() < deadline:
            seconds = _AWAKE_SECONDS if deadline is None else min(_AWAKE_SECONDS, deadline - time.monotonic())
            try:
                return self._ended.get(timeout=max(0.0, seconds))
            except Empty:
                continue
        return None

    def _finished(self) -> Iterator[TaskOutcome]:
        """Yield what has been finished but not merged when the deadline passes."""
        last = time.monotonic() + _GRACE_SECONDS
        for future in list(self._attempts.values()):
            if future.status != "finished":
                continue
            try:
                found = future.result(timeout=max(0.01, last - time.monotonic()))
            except Exception:  # whatever it was, the result did not come in time
                continue
            yield from found.outcomes()

    def stop(self) -> None:
        """Cancel what is under way and let go of everything."""
        futures = [*self._attempts.values(), *(future for _, future in self._merges.values())]
        running = [future for future in futures if not future.done()]
        if running and self._client.status == "running":
            self._client.cancel(running, force=True)
        self._attempts.clear()
        self._merges.clear()
        self._chunks.clear()
        self._asked = None


def _large_arguments() -> Any:
    """Rows that are in memory here have to be sent: no warning that a task brings large arguments."""
    import dask

    return dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TiB"})


def _reason(future: Any) -> Exception:
    """Return why Dask gave up on a task."""
    if future.status != "error":
        return InputError("The Dask cluster dropped a task: the scheduler was restarted or the task cancelled there.")
    error = future.exception()
    if isinstance(error, ModuleNotFoundError) and "partsketch" in str(error):
        return InputError("The workers of the Dask cluster have no partsketch: install the same version there.")
    if type(error).__name__ == "KilledWorker":
        return InputError(
            f"The Dask workers that ran a task died each time ({error.task}): they may lack memory for it; "
            "use smaller chunks or row groups, or workers with more memory."
        )
    return error if isinstance(error, Exception) else RuntimeError(str(error))
