"""The simulation of many workers agrees with what can be reckoned by hand; the measured driver is the real one."""

from __future__ import annotations

import json

import pytest
from benchmarks.driver import results
from benchmarks.driver.running import Setting, measure
from benchmarks.driver.simulation import SEGMENT_ROWS, Assumptions, pieces_of, simulate, tree_aggregate_bytes

from partsketch.summaries.merge_tree import TreeFold

COST = Assumptions(columns=102, task_seconds=0.1, piece_seconds=5e-5)


@pytest.mark.parametrize(("begin", "end"), [(0, 1), (5, 21), (16, 32), (15, 31), (3, 1000)])
def test_pieces_are_the_nodes_that_a_tree_keeps(begin: int, end: int) -> None:
    fold: TreeFold[int] = TreeFold(lambda first, second: first + second)
    for number in range(begin, end):
        fold.push(0, number, 1)
    assert pieces_of(begin, end) == len(fold)


def test_one_worker_takes_the_time_of_all_tasks() -> None:
    fit = simulate(1000 * SEGMENT_ROWS, 1, COST)
    # Bundles are up to a fifth longer or shorter: of 63, the sum by about a fifth / √3 / √63 = 1.5%.
    assert fit.seconds == pytest.approx(1000 * 0.1, rel=0.05)
    assert fit.limit == "workers"


def test_what_is_followed_and_what_is_added_up_agree() -> None:
    # The last size of which every result is followed, and a size twice as large.
    largest = 50_000 * 16 * SEGMENT_ROWS
    followed, added = simulate(largest, 100, COST), simulate(2 * largest, 100, COST)
    assert added.seconds == pytest.approx(2 * followed.seconds, rel=0.02)
    assert added.sent_bytes == pytest.approx(2 * followed.sent_bytes, rel=1e-3)


def test_a_slow_driver_is_the_limit() -> None:
    slow = Assumptions(columns=102, task_seconds=0.1, piece_seconds=5e-5, bundle_seconds=1.0)
    fit = simulate(1e9, 1000, slow)
    assert fit.limit == "driver"
    assert fit.seconds >= fit.work["driver"]


def test_tree_aggregate_moves_a_triangle_of_every_split() -> None:
    # 100 splits: each of them to one of 10 groups, and these to the driver.
    assert tree_aggregate_bytes(100, 128 * 2**20, 3) == (100 + 10) * 8 * 6


def test_the_driver_is_measured_and_told() -> None:
    few = [
        Setting("few", 40, 5),
        Setting("more", 160, 5, least_rate=1.0),
        Setting("for the simulation", 40, 100),
        Setting("partitions", 80, 5, 8, 2),
        Setting("kept", 40, 5, late=4, checkpoint=True, least_rate=1e12),
    ]
    lines = [json.loads(json.dumps(measure(setting))) for setting in few]
    assert [line["reported"] for line in lines] == [40, 160, 40, 78, 40]
    task = {"memory": 0.02, "parquet": 0.1, "parquet_bytes_per_row": 800.0}
    machine = {"processor": "some", "cores": 2}
    told = results.parts(
        {"lines": lines, "task": task, "date": "2026-01-01", "command": "run", "revision": "r", "machine": machine}
    )
    assert "| 1 | reached" in told["driver"]
    assert "**not reached**" in told["driver"]
    assert told["scale"].count("| 1e13 |") == 3
