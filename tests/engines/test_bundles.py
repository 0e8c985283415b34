"""Several tasks in one go: read once, the same bits, and errors where they belong."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partsketch import InputError, LocalEngine
from partsketch.engines.bundles import Bundle, bundle_tasks, merge_bundles, portable, run_bundle, shrinking_bundles
from partsketch.engines.gather import make_tasks
from partsketch.fitting.fit import fit_source
from partsketch.sketches.base import SEGMENT_ROWS, Merging
from partsketch.summaries.partitions import single_partition
from partsketch.summaries.summarise import summarise_rows
from partsketch.summaries.tasks import Task, TaskResult
from tests.engines.made_up import EXACT
from tests.engines.test_local import MadeUpRows, options


@dataclass(frozen=True)
class Counted(MadeUpRows):
    """Rows in row groups of a third of a segment; remembers which were asked for."""

    asked: list[tuple[int, int | None]] = field(default_factory=list)

    def read(self, start: int = 0, stop: int | None = None, block_rows: int = 65536) -> Any:
        self.asked.append((start, stop))
        return super().read(start, stop, block_rows)


def in_groups(rows: int, **more: Any) -> Counted:
    return Counted(rows, boundaries=tuple(range(0, rows, SEGMENT_ROWS // 3)), **more)


@given(st.integers(0, 300), st.integers(1, 9), st.integers(1, 20))
def test_shrinking_bundles_hold_every_task_once_and_end_with_small_ones(count: int, workers: int, most: int) -> None:
    bundles = shrinking_bundles(count, workers, most)
    sizes = [len(bundle) for bundle in bundles]
    assert [index for bundle in bundles for index in bundle] == list(range(count))
    assert sizes == sorted(sizes, reverse=True)
    assert all(0 < size <= most for size in sizes)
    # With two or more workers the last one begun is a single task: nobody waits for more than that.
    assert not sizes or workers == 1 or sizes[-1] == 1


def test_bundles_are_even_and_hold_every_task_once() -> None:
    for count in range(1, 200):
        for workers in (1, 2, 7):
            for most in (2, 16):
                sizes = [len(bundle) for bundle in bundle_tasks(count, workers, most)]
                assert [i for bundle in bundle_tasks(count, workers, most) for i in bundle] == list(range(count))
                assert max(sizes) <= most
                if count > 31 * most * workers:
                    # Many: whole ones, which are nodes of the tree, and a rest.
                    assert set(sizes[:-1]) == {most}
                    continue
                assert max(sizes) - min(sizes) <= 1
                assert len(sizes) == count or len(sizes) % workers == 0
    assert bundle_tasks(0, 2) == []


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_local_workers_read_neighbouring_tasks_in_one_go_and_find_the_same_bits(threads: int) -> None:
    source = in_groups(10 * SEGMENT_ROWS)
    tasks = make_tasks(source, single_partition(source.row_count))
    assert len(tasks) == 10
    outcomes = list(LocalEngine(threads).run(source, EXACT, tasks))
    assert sorted(index for outcome in outcomes for index in outcome.tasks) == list(range(10))
    assert len(source.asked) == len(outcomes) == len(shrinking_bundles(10, threads, 4)) < 10
    expected = fit_source(MadeUpRows(source.row_count), options(), LocalEngine(1)).summaries
    assert fit_source(source, options(), LocalEngine(threads)).summaries == expected


def test_tasks_that_are_wanted_apart_are_reported_apart() -> None:
    source = in_groups(6 * SEGMENT_ROWS)
    tasks = make_tasks(source, single_partition(source.row_count), at_borders=True)
    outcomes = list(LocalEngine(2).run(source, EXACT, tasks))
    assert sorted(outcome.tasks for outcome in outcomes) == [(index,) for index in range(len(tasks))]


def test_a_task_that_fails_does_not_take_its_neighbours_with_it() -> None:
    source = in_groups(4 * SEGMENT_ROWS, fail_from=(SEGMENT_ROWS + 5,))
    tasks = make_tasks(source, single_partition(source.row_count))
    calls: list[Task] = []

    def work(task: Task) -> TaskResult:
        calls.append(task)
        return summarise_rows(source, EXACT, task, 32768)

    bundle = run_bundle(EXACT.merging, list(enumerate(tasks)), work)
    assert calls[0] == Task(0, source.row_count)
    assert calls[1:] == tasks
    assert bundle.done == (0, 2, 3)
    assert [(index, str(error)) for index, error in bundle.failed] == [(1, f"row {SEGMENT_ROWS + 5} cannot be read")]


def test_tasks_with_a_gap_between_them_are_not_joined() -> None:
    source = in_groups(4 * SEGMENT_ROWS)
    tasks = make_tasks(source, single_partition(source.row_count))
    bundle = run_bundle(
        EXACT.merging, [(0, tasks[0]), (2, tasks[2])], lambda task: summarise_rows(source, EXACT, task, 32768)
    )
    assert bundle.done == (0, 2)
    assert bundle.result is not None
    assert bundle.result.rows_seen == 2 * SEGMENT_ROWS
    assert source.asked == [(task.start, task.stop) for task in (tasks[0], tasks[2])]
    assert np.isfinite(bundle.result.pieces[0].matrices[0]).all()


def test_merged_bundles_keep_what_failed() -> None:
    first, second = ValueError("one"), ValueError("two")
    nothing = TaskResult((), 1, 2)
    merged = merge_bundles(Merging(), [Bundle((0, 1), nothing, ((2, first),)), Bundle((), None, ((3, second),))])
    assert (merged.done, merged.failed) == ((0, 1), ((2, first), (3, second)))
    assert merged.result is not None
    assert (merged.result.dropped, merged.result.rows_seen) == (1, 2)
    assert merge_bundles(Merging(), [Bundle((), None, ((3, second),))]).result is None


class UnportableError(InputError):
    """An error that cannot be pickled, whatever other libraries teach pickle about errors: it keeps a function."""

    def __init__(self, column: str, row: int) -> None:
        super().__init__(f"column {column}, row {row}")
        self.kept = lambda: row


def test_errors_of_users_stay_errors_of_users_on_their_journey() -> None:
    kept = portable(UnportableError("a", 3))
    assert type(kept) is InputError
    assert str(kept) == "column a, row 3"
    assert isinstance(portable(ValueError("x")), ValueError)
