"""The tasks of one fit on their way through a Dask cluster: few at a time, merged there, stopped together."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterator, Sequence
from queue import Empty, SimpleQueue
from typing import Any, cast
from uuid import uuid4

from partsketch.engines import dask_work
from partsketch.engines.base import TaskOutcome
from partsketch.engines.bundles import merge_bundles
from partsketch.errors import InputError
from partsketch.sources.base import Source
from partsketch.sources.chunked import RemoteSource, is_remote
from partsketch.sources.remote import holds_rows, part_of
from partsketch.summarise import SummaryRequest, Task

#: Most tasks whose results are merged on the cluster before they come to the driver.
MOST_MERGED = 16

#: Seconds that finished results may take to arrive after the deadline.
_GRACE_SECONDS = 2.0

#: How often waiting is broken off, so that an interrupt is heard whichever thread the system gives it to.
_AWAKE_SECONDS = 0.5


class Flight:
    """Submits tasks as others end, so that neither the scheduler nor the driver holds more than a few of them."""

    def __init__(self, client: Any, source: Source, request: SummaryRequest, tasks: Sequence[Task]) -> None:
        import cloudpickle

        self._client, self._source, self._tasks = client, source, tasks
        self._kind = request.specification.kind
        self._name = f"partsketch-{uuid4().hex[:12]}"
        self._ended: SimpleQueue[tuple[str, int]] = SimpleQueue()
        self._attempts: dict[int, Any] = {}
        self._merges: dict[int, tuple[tuple[int, ...], Any]] = {}
        self._chunks: dict[int, Any] = {}
        self._remote = cast(RemoteSource, source) if is_remote(source) else None
        self._holds_rows = self._remote is None and holds_rows(source)
        threads = max(1, sum(client.nthreads().values()))
        self._most_running = 3 * threads + 1
        self._bundle = min(MOST_MERGED, -(-len(tasks) // (2 * threads)))
        # As a task, not as scattered data: what a lost worker held can be made again.
        sent = self._remote.sent() if self._remote else (None if self._holds_rows else source)
        skeleton = part_of(source, 0, 0) if sent is None else sent
        self._asked = client.submit(
            pickle.loads, cloudpickle.dumps((skeleton, request)), key=f"{self._name}-request", pure=False
        )

    def outcomes(self, deadline: float | None, progress: Callable[[int], None]) -> Iterator[TaskOutcome]:
        """Yield outcomes as bundles of tasks end; tell the progress of every task."""
        begun = done = 0
        unmerged: set[int] = set()
        while done < len(self._tasks):
            while len(unmerged) < self._most_running and begun < len(self._tasks):
                unmerged.add(begun)
                self._begin(begun)
                begun += 1
                if begun % self._bundle == 0 or begun == len(self._tasks):
                    self._merge(tuple(range((begun - 1) // self._bundle * self._bundle, begun)))
            event = self._next_event(deadline)
            if event is None:
                yield from self._finished()
                return
            what, number = event
            if what == "task":
                unmerged.discard(number)
                self._release_chunks(number)
                task = self._tasks[number]
                progress((task.stop or task.start) - task.start)
                continue
            for outcome in self._landed(number):
                done += len(outcome.tasks)
                yield outcome

    def _begin(self, index: int) -> None:
        task = self._tasks[index]
        chunks = part = None
        if self._remote is not None:
            needed = self._remote.chunks.between(task.start, task.stop)
            chunks = [self._chunk(number) for number in needed]
        elif self._holds_rows:
            part = part_of(self._source, task.start, task.stop)
        key = f"{self._name}-task-{index}"
        with _large_arguments():
            future = self._client.submit(dask_work.attempt, self._asked, index, task, chunks, part, key=key, pure=False)
        self._attempts[index] = future
        future.add_done_callback(lambda _: self._ended.put(("task", index)))

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
        next_task = max(self._attempts, default=done) + 1
        waiting += [next_task] if next_task < len(self._tasks) else []
        starts = [self._remote.chunks.between(self._tasks[index].start, None).start for index in waiting]
        for number in [number for number in self._chunks if not starts or number < min(starts)]:
            del self._chunks[number]

    def _merge(self, indices: tuple[int, ...]) -> None:
        number = indices[0]
        key = f"{self._name}-merge-{number}-{uuid4().hex[:6]}"
        attempts = [self._attempts[index] for index in indices]
        # First, so that summaries do not pile up behind rows.
        future = self._client.submit(merge_bundles, self._kind, attempts, key=key, pure=False, priority=10)
        self._merges[number] = (indices, future)
        future.add_done_callback(lambda _: self._ended.put(("merge", number)))

    def _landed(self, number: int) -> Iterator[TaskOutcome]:
        """Yield the outcomes of a merge; when it could not be made, find the tasks that are to blame."""
        indices, future = self._merges.pop(number)
        if future.status == "finished":
            yield from future.result().outcomes()
            for index in indices:
                del self._attempts[index]
            return
        blamed = [index for index in indices if self._attempts[index].status in ("error", "cancelled", "lost")]
        for index in blamed or indices:
            yield TaskOutcome((index,), None, _reason(self._attempts.pop(index) if blamed else future))
        if blamed and len(blamed) < len(indices):
            self._merge(tuple(index for index in indices if index not in blamed))

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
