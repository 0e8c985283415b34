"""Having an engine run tasks, of which some may fail or be late."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from partsketch.engines.base import Engine, TaskOutcome
from partsketch.engines.tolerance import Tolerance
from partsketch.sources.base import Source
from partsketch.summaries.tasks import PassRequest, Task

#: A deadline that is further away never comes, and clocks of the operating system need not reach it.
_LONGEST_SECONDS = 1e9


def run_tasks(
    engine: Engine,
    source: Source,
    request: PassRequest,
    tasks: Sequence[Task],
    wanted: Sequence[int],
    tolerance: Tolerance,
) -> Iterator[TaskOutcome]:
    """Yield what became of the wanted tasks, in any order, until all are done or the deadline has passed.

    Failures are yielded when they are tolerated. Otherwise the first one makes the others wait only until all tasks
    before it are done: the error raised is that of the earliest failing task, whichever failed first.
    """
    deadline = None if tolerance.deadline is None else time.monotonic() + min(tolerance.deadline, _LONGEST_SECONDS)
    missing = set(wanted)
    earliest: TaskOutcome | None = None
    running = engine.run(source, request, [tasks[number] for number in wanted], deadline)
    try:
        for reported in running:
            numbers = tuple(wanted[index] for index in reported.tasks)
            outcome = TaskOutcome(numbers, reported.result, reported.error)
            if not missing.issuperset(outcome.tasks):
                raise RuntimeError(f"the engine reported tasks {outcome.tasks} that it was not asked for, or twice")
            missing.difference_update(outcome.tasks)
            if outcome.error is not None and not tolerance.drop:
                if earliest is None or min(outcome.tasks) < min(earliest.tasks):
                    earliest = outcome
            else:
                yield outcome
            if earliest is not None and all(number > min(earliest.tasks) for number in missing):
                break
    finally:
        # Stops the work that is under way, when an error or an interrupt leaves some.
        running.close()
    if earliest is not None and earliest.error is not None:
        raise earliest.error
    if missing and deadline is None:
        raise RuntimeError(f"the engine did not report {len(missing)} of {len(wanted)} tasks")
