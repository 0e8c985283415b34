"""What the workers of a Dask cluster run, and how they notice that nobody waits for it any more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from partsketch.engines.bundles import Bundle, run_bundle
from partsketch.engines.worker import run_on_chunks, run_task
from partsketch.sources.base import Source
from partsketch.summaries.tasks import PassRequest, Task, TaskResult


class _StoppedError(Exception):
    """Raised between two blocks of rows when nobody waits for the result any more."""


def attempt(
    asked: tuple[Source, PassRequest],
    first: int,
    tasks: Sequence[Task],
    chunks: Sequence[Any] | None = None,
    part: Source | None = None,
) -> Bundle:
    """Run tasks, numbered from `first`, on the rows of the source, of its chunks, or of the part sent along."""
    source, request = asked
    stop = _stop_when_cancelled()

    def work(task: Task) -> TaskResult:
        if chunks is not None:
            return run_on_chunks(source, request, task, chunks, stop)  # type: ignore[arg-type]
        return run_task(part or source, request, task, stop)

    return run_bundle(request.merging, list(enumerate(tasks, first)), work)


def _stop_when_cancelled() -> Callable[[int], None]:
    """Return what is called after every block: Dask lets a running task run on when it is cancelled; this does not."""
    from distributed import get_worker

    worker = get_worker()
    tasks, key = worker.state.tasks, worker.get_current_task()

    def after_block(rows: int) -> None:
        known = tasks.get(key)
        if known is None or known.state == "cancelled":
            raise _StoppedError

    return after_block
