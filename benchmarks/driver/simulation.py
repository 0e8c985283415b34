"""From the measured cost of a task and of a result: time and bytes of a fit on many workers, and what limits it.

Workers take bundles of tasks in turn; what they send passes the link of the driver and then the driver, each one at a
time. Up to `MOST_EVENTS` results every one of them is followed; of more, the busiest of the three sets the pace.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from partsketch.engines.bundles import MOST_TASKS, bundle_tasks

FloatArray = NDArray[np.float64]

SEGMENT_ROWS = 65_536

#: Results of which each is followed; beyond, what workers, link and driver have to do is added up.
MOST_EVENTS = 50_000


@dataclass(frozen=True)
class Assumptions:
    """What a fit of rows with so many columns costs.

    Attributes
    ----------
    columns
        All of a summary: ones, features and target.
    task_seconds
        Of one core of a worker for 65,536 rows, reading included.
    piece_seconds
        Of the driver for one piece: taking it in and merging it.
    bundle_seconds
        Of the scheduler for a bundle, on the machine of the driver.
    link_bytes
        Bytes per second that reach the driver.
    unevenness
        A bundle takes up to this share longer or shorter than others.
    """

    columns: int
    task_seconds: float
    piece_seconds: float
    bundle_seconds: float = 1e-3
    link_bytes: float = 1.25e9
    unevenness: float = 0.2

    @property
    def piece_bytes(self) -> int:
        """Bytes of one piece: sums of products, and the units of the columns."""
        return 8 * self.columns * (self.columns + 1)


@dataclass(frozen=True)
class Fit:
    """What a fit takes: seconds, results, bytes to the driver, and the seconds of work of each of the three."""

    seconds: float
    results: int
    sent_bytes: float
    work: dict[str, float]

    @property
    def limit(self) -> str:
        """What has the most to do."""
        return max(self.work, key=lambda name: self.work[name])


def pieces_of(begin: int, end: int) -> int:
    """Return how many nodes of the tree the segments from begin to end make: what a bundle sends.

    >>> pieces_of(16, 32), pieces_of(15, 31), pieces_of(0, 3)
    (1, 5, 2)
    """
    count = 0
    while begin < end:
        step = (begin & -begin) or 1 << (end - 1).bit_length()
        while begin + step > end:
            step //= 2
        begin, count = begin + step, count + 1
    return count


def simulate(rows: float, workers: int, cost: Assumptions, seed: int = 0) -> Fit:
    """Return what a fit of so many rows takes on so many workers of one core each."""
    tasks = max(1, round(rows / SEGMENT_ROWS))
    # Of very many bundles, which are alike, some stand for all.
    followed = min(tasks, MOST_EVENTS * MOST_TASKS)
    share = tasks / followed
    bundles = bundle_tasks(followed, workers)
    sizes = np.array([len(bundle) for bundle in bundles], dtype=float)
    pieces = np.array([pieces_of(bundle.start, bundle.stop) for bundle in bundles], dtype=float)
    compute, sent = sizes * cost.task_seconds, pieces * cost.piece_bytes
    at_driver = pieces * cost.piece_seconds + cost.bundle_seconds
    work = {
        "workers": share * float(compute.sum()) / workers,
        "network": share * float(sent.sum()) / cost.link_bytes,
        "driver": share * float(at_driver.sum()),
    }
    if share > 1:
        # The pace of the busiest, and at the end the bundle that was begun last.
        seconds = max(work.values()) + float(compute.mean()) * (1 + cost.unevenness)
    else:
        seconds = _followed(compute, sent / cost.link_bytes, at_driver, workers, cost.unevenness, seed)
    return Fit(seconds, round(share * len(bundles)), share * float(sent.sum()), work)


def _followed(
    compute: FloatArray, travel: FloatArray, handle: FloatArray, workers: int, unevenness: float, seed: int
) -> float:
    """Follow every result: from the worker that is free first over the link to the driver."""
    rng = np.random.default_rng(seed)
    durations = compute * rng.uniform(1 - unevenness, 1 + unevenness, len(compute))
    free = [0.0] * workers
    ended = []
    for number, duration in enumerate(durations):
        end = heapq.heappop(free) + duration
        heapq.heappush(free, end)
        ended.append((end, number))
    link = driver = 0.0
    for end, number in sorted(ended):
        link = max(link, end) + travel[number]
        driver = max(driver, link) + handle[number]
    return driver


def tree_aggregate_bytes(rows: float, row_bytes: float, columns: int, split_bytes: float = 128 * 2**20) -> float:
    """Return the bytes of the packed triangles of all splits that Spark's treeAggregate of depth 2 moves."""
    splits = max(1, round(rows * row_bytes / split_bytes))
    scale = max(int(np.ceil(np.sqrt(splits))), 2)
    moved, left = 0, splits
    while left > scale + -(-left // scale):
        moved += left
        left = -(-left // scale)
    return float(moved + left) * 8 * (columns * (columns + 1) / 2)
