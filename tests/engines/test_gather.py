"""From tasks to summaries: any order of arrival and any grouping of partial merges give the same bits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partsketch import InputError, LocalEngine
from partsketch.engines.base import Engine, Outcomes, TaskOutcome
from partsketch.engines.gather import Gathered, gather, make_tasks
from partsketch.sketches.base import SEGMENT_ROWS, SketchSpecification, get_sketch
from partsketch.sources.base import Source
from partsketch.sources.labelled import LabelledSource
from partsketch.sources.memory.arrays import array_source
from partsketch.summaries.merge import merge_results
from partsketch.summaries.partitions import Partitioning, order_partitions
from partsketch.summaries.summarise import summarise_rows
from partsketch.summaries.tasks import SummaryRequest, Task, TaskResult

ROWS = 11 * SEGMENT_ROWS + 1234
CASES = [(kind, layout) for kind in ("triangular", "gaussian") for layout in ("order", "shuffle", "rare")]


@cache
def problem(kind: str, layout: str) -> tuple[Source, SummaryRequest]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, 2))
    source = array_source(X, X @ [1.0, 2.0] + rng.normal(size=ROWS), rng.uniform(0.5, 2.0, ROWS))
    specification = SketchSpecification(kind) if kind == "triangular" else SketchSpecification(kind, 5, 3)
    partitioning = order_partitions(ROWS, 3, "spread")
    if layout == "shuffle":
        partitioning = Partitioning(("0", "1", "2"), shuffle_seed=1)
    if layout == "rare":
        # One value is in every other segment only, one in a single segment.
        labels = np.where(np.arange(ROWS) // SEGMENT_ROWS % 2 == 0, rng.integers(0, 2, ROWS), 0)
        labels[7 * SEGMENT_ROWS] = 2
        source = LabelledSource.from_values(source, labels)
        partitioning = Partitioning(source.partition_values)
    return source, SummaryRequest(specification, partitioning, True)


@cache
def results(kind: str, layout: str) -> tuple[list[Task], list[TaskResult]]:
    source, request = problem(kind, layout)
    tasks = make_tasks(source, request.partitioning)
    return tasks, [summarise_rows(source, request, task, 10_000) for task in tasks]


@cache
def expected(kind: str, layout: str) -> Gathered:
    return gather(*problem(kind, layout), LocalEngine(1))


class Replay(Engine):
    """Reports these outcomes."""

    name = "replay"

    def __init__(self, outcomes: Sequence[TaskOutcome]) -> None:
        self.outcomes = outcomes
        self.closed = False

    def run(self, *_: Any) -> Outcomes:
        try:
            yield from self.outcomes
        finally:
            self.closed = True


def assert_same(one: Gathered, other: Gathered) -> None:
    assert one.summaries == other.summaries
    assert one.row_counts == other.row_counts
    assert one.weight_sums == other.weight_sums
    assert np.array_equal(one.target_range, other.target_range)
    assert one.rows_dropped == other.rows_dropped


@pytest.mark.parametrize(("kind", "layout"), CASES)
@given(data=st.data())
@settings(max_examples=25)
def test_any_grouping_in_any_order_gives_the_same_bits(kind: str, layout: str, data: st.DataObject) -> None:
    """Results of tasks are dealt to workers, merged there, and merged again, up to three times over."""
    _, made = results(kind, layout)
    parts: list[tuple[tuple[int, ...], TaskResult]] = [((number,), result) for number, result in enumerate(made)]
    for _ in range(data.draw(st.integers(0, 3))):
        hands = data.draw(st.lists(st.integers(0, 3), min_size=len(parts), max_size=len(parts)))
        order = data.draw(st.permutations(range(len(parts))))
        groups = [[parts[i] for i in order if hands[i] == hand] for hand in range(4)]
        parts = [
            (
                tuple(task for numbers, _ in group for task in numbers),
                merge_results(get_sketch(kind), [part for _, part in group]),
            )
            for group in groups
            if group
        ]
    outcomes = [TaskOutcome(numbers, result) for numbers, result in data.draw(st.permutations(parts))]
    assert_same(gather(*problem(kind, layout), Replay(outcomes)), expected(kind, layout))
    assert sum(result.rows_seen for result in made) == ROWS


@pytest.mark.parametrize(("kind", "layout"), CASES)
def test_partial_merges_are_small(kind: str, layout: str) -> None:
    """All tasks merged leave few pieces, however many segments there were."""
    _, made = results(kind, layout)
    merged = merge_results(get_sketch(kind), made)
    assert len(merged.pieces) < sum(len(result.pieces) for result in made) / 1.9
    assert sum(piece.row_count for piece in merged.pieces) == ROWS
    assert merge_results(get_sketch(kind), [merged]).pieces == merged.pieces


def test_pieces_of_rare_partitions_do_not_pile_up() -> None:
    """A value in every second of 400 segments: its pieces have no siblings, and yet few are kept."""
    from partsketch.engines.gather import Collector
    from partsketch.sketches.gram import Products
    from partsketch.summaries.tasks import Piece

    request = SummaryRequest(SketchSpecification("triangular"), Partitioning(("a", "b")), True)
    tasks = [Task(i * SEGMENT_ROWS, (i + 1) * SEGMENT_ROWS) for i in range(400)]
    collected = Collector(request, tasks)
    products = Products(np.ones(2), np.eye(2)).written()
    most = 0
    for number in range(400):
        pieces = (Piece(0, number, (products,), 1, 1.0, np.zeros((2, 1))),) if number % 2 else ()
        collected.add(TaskOutcome((number,), TaskResult(pieces, 0, SEGMENT_ROWS)))
        most = max(most, len(collected.fold.pieces()))
    assert most <= 20
    whole = collected.fold.take(0)
    assert whole is not None
    assert whole.row_count == 200
    assert collected.fold.take(1) is None


def failing(number: int) -> TaskOutcome:
    return TaskOutcome((number,), None, InputError(f"task {number} failed"))


@given(st.permutations(range(12)), st.sets(st.integers(0, 11), min_size=1))
def test_the_error_of_the_earliest_task_is_raised(order: list[int], fails: set[int]) -> None:
    _, made = results("triangular", "shuffle")
    outcomes = [failing(number) if number in fails else TaskOutcome((number,), made[number]) for number in order]
    engine = Replay(outcomes)
    with pytest.raises(InputError, match=f"task {min(fails)} failed"):
        gather(*problem("triangular", "shuffle"), engine)
    assert engine.closed


def test_an_error_waits_for_earlier_tasks_only() -> None:
    _, made = results("triangular", "shuffle")
    good = [TaskOutcome((number,), result) for number, result in enumerate(made)]

    def outcomes() -> Iterator[TaskOutcome]:
        yield from (failing(2), good[1], good[7], good[0])
        raise AssertionError("asked for more than was needed")

    with pytest.raises(InputError, match="task 2 failed"):
        gather(*problem("triangular", "shuffle"), Replay(outcomes()))  # type: ignore[arg-type]


def test_an_engine_must_report_every_task_once() -> None:
    _, made = results("triangular", "shuffle")
    good = [TaskOutcome((number,), result) for number, result in enumerate(made)]
    for outcomes, what in ((good[:-1], "did not report 1 of 12"), ([good[0], good[0]], "twice")):
        with pytest.raises(RuntimeError, match=what):
            gather(*problem("triangular", "shuffle"), Replay(outcomes))
