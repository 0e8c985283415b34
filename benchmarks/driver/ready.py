"""Rows that nobody reads, and an engine that answers at once with ready results of the size of real ones."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from partsketch.engines.base import Engine, Outcomes, TaskOutcome
from partsketch.sketches.gram import Products
from partsketch.summaries.tasks import Piece, Task, TaskResult

#: Different results that are handed out in turn: together larger than the caches, as what comes from a network is.
_DIFFERENT = 48


@dataclass(frozen=True)
class ReadyRows:
    """What a driver asks of a source before and after its rows are summarised."""

    row_count: int
    features: int

    random_access = True
    replayable = True
    boundaries = ()
    files = ()
    target_names = ("y",)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features."""
        return tuple(f"x{number}" for number in range(self.features))


def ready_matrices(width: int, rows: int, seed: int = 0) -> list[np.ndarray[Any, np.dtype[np.float64]]]:
    """Return sums of products as `rows` rows of an intercept and normal columns leave them."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(_DIFFERENT):
        few = rng.normal(size=(4 * width, width))
        few[:, 0] = 1.0
        scale = np.full(width, 2.0**-8)
        made.append(Products(scale, (few.T @ few) * (rows / len(few)) * 2.0**-16).written())
    return made


class ReadyEngine(Engine):
    """Answers at once.

    Parameters
    ----------
    width
        Columns of the results, the intercept and the target among them.
    segment_rows
        Rows of a task.
    bounds
        First rows of the partitions, and the end of the last.
    late
        Numbers of tasks that come last, or never when there is a deadline.
    workers
        Workers that take the tasks in turn and end in any order: so many results are out of order.
    """

    name = "ready"

    def __init__(
        self, width: int, segment_rows: int, bounds: Sequence[int], late: frozenset[int], workers: int, seed: int = 0
    ) -> None:
        self._matrices = ready_matrices(width, segment_rows)
        self._segment_rows, self._bounds = segment_rows, np.asarray(bounds)
        self._late, self._workers, self._seed = late, workers, seed
        #: From the first result to the last: on the clock, and of the processor.
        self.seconds = self.processor_seconds = 0.0

    def run(self, source: Any, request: Any, tasks: Sequence[Task], deadline: float | None = None) -> Outcomes:
        """Yield the results in the order in which workers would end."""
        rng = np.random.default_rng(self._seed)
        punctual = np.array([number for number in range(len(tasks)) if number not in self._late])
        order = np.concatenate(
            [rng.permutation(punctual[i : i + self._workers]) for i in range(0, len(punctual), self._workers)]
        ).tolist()
        if deadline is None:
            order += sorted(self._late)
        partitions = (np.searchsorted(self._bounds, [task.start for task in tasks], side="right") - 1).tolist()
        target_range = np.array([[-4.0], [4.0]])
        begin, worked = time.perf_counter(), time.process_time()
        for number in order:
            task, partition = tasks[number], partitions[number]
            segment = (task.start - int(self._bounds[partition])) // self._segment_rows
            rows = (task.stop or 0) - task.start
            matrix = self._matrices[number % _DIFFERENT]
            piece = Piece(partition, segment, (matrix,), rows, float(rows), target_range)
            yield TaskOutcome((number,), TaskResult((piece,), 0, rows))
        self.seconds, self.processor_seconds = time.perf_counter() - begin, time.process_time() - worked
