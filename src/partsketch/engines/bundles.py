"""Several tasks in one go: a worker merges the results of those that succeed and keeps the failures apart."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar, cast

from partsketch.common.errors import InputError
from partsketch.engines.base import TaskOutcome
from partsketch.sketches.base import Merging
from partsketch.summaries.merge import merge_results
from partsketch.summaries.tasks import Task, TaskResult

T = TypeVar("T")

#: Most tasks that one worker takes at once: so much is done again when a worker dies.
MOST_TASKS = 16

#: Rounds of bundles from which on all are as large as they may be.
_MANY_ROUNDS = 32

_LAST_LINE = re.compile(r"^[\w.]+(?:Error|Exception)\b.*", re.MULTILINE)
_FIRST_LINE = re.compile(r"\S.*")


@dataclass(frozen=True)
class Bundle:
    """What became of several tasks.

    Attributes
    ----------
    done
        Indices of the tasks that succeeded.
    result
        Their results, merged; None when there are none.
    failed
        Index and error of every task that did not.
    """

    done: tuple[int, ...]
    result: TaskResult | None
    failed: tuple[tuple[int, Exception], ...] = ()

    def outcomes(self) -> Iterator[TaskOutcome]:
        """Yield one outcome for all that succeeded and one for each that failed."""
        if self.result is not None:
            yield TaskOutcome(self.done, self.result)
        for index, error in self.failed:
            yield TaskOutcome((index,), None, error)


def run_bundle(merging: Merging, tasks: Sequence[tuple[int, Task]], work: Callable[[Task], TaskResult]) -> Bundle:
    """Do the work of some numbered tasks; called on workers.

    Tasks that follow one another are read in one go: where one begins inside a row group or a file, the rows before it
    would be decoded again. When that fails, they are done one by one to see which of them does.
    """
    together = _joined([task for _, task in tasks])
    if together is not None:
        try:
            return Bundle(tuple(index for index, _ in tasks), work(together))
        except Exception:  # said again below, by the task that it belongs to
            pass
    done: list[int] = []
    merged: TaskResult | None = None
    failed: list[tuple[int, Exception]] = []
    for index, task in tasks:
        try:
            result = work(task)
        except Exception as error:
            failed.append((index, portable(error)))
        else:
            done.append(index)
            merged = result if merged is None else merge_results(merging, [merged, result])
    return Bundle(tuple(done), merged, tuple(failed))


def _joined(tasks: Sequence[Task]) -> Task | None:
    """Return one task of all rows of several, if each begins where the one before it ends."""
    if len(tasks) < 2 or any(first.stop != second.start for first, second in pairwise(tasks)):
        return None
    return Task(tasks[0].start, tasks[-1].stop)


def merge_bundles(merging: Merging, bundles: Sequence[Bundle]) -> Bundle:
    """Merge bundles; called on workers."""
    results = [bundle.result for bundle in bundles if bundle.result is not None]
    return Bundle(
        done=tuple(index for bundle in bundles for index in bundle.done),
        result=merge_results(merging, results) if results else None,
        failed=tuple(failure for bundle in bundles for failure in bundle.failed),
    )


def tried(work: Callable[[Any], T], chunk: Any) -> tuple[T | None, Exception | None]:
    """Call a function with a chunk; called on workers. An error is a value there: it concerns this chunk alone."""
    try:
        return work(chunk), None
    except Exception as error:
        return None, portable(error)


def taken(result: tuple[T | None, Exception | None]) -> T:
    """Return the value of what was tried, or raise its error."""
    value, error = result
    if error is not None:
        raise error
    return cast(T, value)


def portable(error: Exception) -> Exception:
    """Return an error that survives the journey to the driver, in the same words."""
    try:
        if str(pickle.loads(pickle.dumps(error))) == str(error):
            return error
    except Exception:  # whatever an error's own pickling may raise
        pass
    return InputError(str(error)) if isinstance(error, InputError) else RuntimeError(f"{type(error).__name__}: {error}")


def bundle_tasks(count: int, workers: int, most: int = MOST_TASKS, fewest_rounds: int = 4) -> list[range]:
    """Group consecutive tasks, some groups of nearly the same size for every worker, so that all end together.

    >>> bundle_tasks(9, 1)
    [range(0, 2), range(2, 4), range(4, 6), range(6, 9)]
    """
    rounds = max(fewest_rounds, -(-count // (most * workers)))
    if rounds >= _MANY_ROUNDS:
        # That the last of many rounds is not full costs little; whole bundles are nodes of the tree: one piece each.
        return [range(begin, min(begin + most, count)) for begin in range(0, count, most)]
    groups = min(count, rounds * workers)
    return [range(count * i // groups, count * (i + 1) // groups) for i in range(groups)]


def shrinking_bundles(count: int, workers: int, most: int) -> list[range]:
    """Group consecutive tasks, fewer and fewer: few groups in all, and small ones at the end, when workers get done.

    >>> shrinking_bundles(10, 2, 4)
    [range(0, 4), range(4, 6), range(6, 8), range(8, 9), range(9, 10)]
    """
    bundles: list[range] = []
    begin = 0
    while begin < count:
        size = min(most, -(-2 * (count - begin) // (3 * workers)))
        bundles.append(range(begin, begin + size))
        begin += size
    return bundles


def task_rows(tasks: Sequence[Task], indices: Iterable[int]) -> int:
    """Return how many rows some tasks have, as far as it is known."""
    chosen = (tasks[index] for index in indices)
    return sum(task.stop - task.start for task in chosen if task.stop is not None)


def lost(engine: str, task: Task, error: BaseException) -> Exception:
    """Say that a cluster gave up a task, with the last line of the worker's traceback if there is one."""
    text = str(error)
    found = _LAST_LINE.search(text) or _FIRST_LINE.search(text)
    rows = f"rows {task.start} to {'the last' if task.stop is None else task.stop - 1}"
    reason = type(error).__name__ if found is None else found.group().strip()
    return RuntimeError(f"{engine} gave up {rows} after several attempts: {reason}")
