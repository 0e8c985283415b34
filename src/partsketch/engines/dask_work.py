"""What the workers of a Dask cluster run. Failures are returned as values: they concern one task and stop nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from partsketch.engines.base import TaskOutcome
from partsketch.engines.remote_task import run_on_chunks, run_task
from partsketch.gathering import merge_results
from partsketch.sources.base import Source
from partsketch.summarise import SummaryRequest, Task, TaskResult


@dataclass(frozen=True)
class Failure:
    """Why a task brought back nothing."""

    error: Exception


class _StoppedError(Exception):
    """Raised between two blocks of rows when nobody waits for the result any more."""


def attempt(
    asked: tuple[Source, SummaryRequest], task: Task, chunks: Sequence[Any] | None = None, part: Source | None = None
) -> TaskResult | Failure:
    """Run a task on the rows of the source, of its chunks, or of the part that was sent along."""
    source, request = asked
    try:
        if chunks is not None:
            return run_on_chunks(source, request, task, chunks, _stop_when_cancelled())  # type: ignore[arg-type]
        return run_task(part or source, request, task, _stop_when_cancelled())
    except Exception as error:
        return Failure(error)


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


def merge(kind: str, indices: Sequence[int], attempts: Sequence[TaskResult | Failure]) -> tuple[TaskOutcome, ...]:
    """Merge the results of several tasks into one outcome; each failure stays an outcome of its own."""
    good = [(index, one) for index, one in zip(indices, attempts, strict=True) if isinstance(one, TaskResult)]
    failed = [(index, one) for index, one in zip(indices, attempts, strict=True) if isinstance(one, Failure)]
    outcomes = [TaskOutcome((index,), None, failure.error) for index, failure in failed]
    if good:
        merged = merge_results(kind, [result for _, result in good])
        outcomes.insert(0, TaskOutcome(tuple(index for index, _ in good), merged))
    return tuple(outcomes)


def apply(work: Callable[[Any], Any], chunk: Any) -> Any:
    """Call a function with a chunk."""
    try:
        return work(chunk)
    except Exception as error:
        return Failure(error)
