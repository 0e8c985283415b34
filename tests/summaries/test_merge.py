"""Merging pieces of many partitions: the tree is the same however many nodes wait, and few are kept waiting."""

from __future__ import annotations

import gc
import weakref
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partsketch import LocalEngine
from partsketch.engines.gather import gather
from partsketch.sketches.base import SketchSpecification
from partsketch.sources import array_source
from partsketch.sources.labelled import LabelledSource
from partsketch.summaries.merge import PieceFold, merge_in_order
from partsketch.summaries.partitions import Partitioning, order_partitions
from partsketch.summaries.tasks import Piece, SummaryRequest
from tests.sketches import plain_random as plain
from tests.summaries.test_merge_tree import complete_tree, join

#: Pieces hold words here, so that the tree can be read off them.
WORDS: Any = SimpleNamespace(merge_all=lambda first, second: tuple(map(join, first, second)))


def piece(partition: int, segment: int) -> Piece:
    word: Any = f"{segment} "
    return Piece(partition, segment, (word,), 1, 0.5 + partition, np.array([[-1.0 * segment], [2.0 * segment]]))


def whole(pieces: tuple[Piece, ...], partition: int) -> Piece | None:
    fold = PieceFold(WORDS)
    for one in pieces:
        fold.add(one)
    return fold.take(partition)


@given(
    st.sets(st.integers(0, 255), min_size=1),
    st.sets(st.integers(0, 255)),
    st.integers(0, 40),
)
def test_rows_in_order_with_partitions_that_are_rare(first: set[int], second: set[int], start: int) -> None:
    """Of one partition up to 256 segments, any of them empty: what waits never grows beyond twice what it must."""
    present = {0: {start + segment for segment in first}, 1: {start + segment for segment in second}}
    in_order = [piece(p, s) for s in range(start, start + 256) for p in (0, 1) if s in present[p]]
    merged = merge_in_order(WORDS, in_order)
    for partition in (0, 1):
        found = whole(merged, partition)
        expected = complete_tree(present[partition], 9, 0)
        assert (None if found is None else found.matrices[0]) == expected
        if found is not None:
            segments = present[partition]
            assert (found.row_count, found.weight_sum) == (len(segments), (0.5 + partition) * len(segments))
            assert found.target_range.tolist() == [[-max(segments)], [2 * max(segments)]]
        # Between its ends everything is known: only what hangs over at the two sides may be left, 2 · log₂ 256 or so,
        # or what was too little to be looked at.
        assert sum(one.partition == partition for one in merged) <= 32


def test_pieces_are_settled_when_more_than_sixteen_wait() -> None:
    """Every other segment is empty: no piece ever meets its sibling, and seventeen are the sign to look."""
    merged = merge_in_order(WORDS, [piece(0, 2 * number) for number in range(16)])
    assert len(merged) == 16
    merged = merge_in_order(WORDS, [piece(0, 2 * number) for number in range(17)])
    assert len(merged) == 2
    assert [(one.level, one.segment) for one in merged] == [(5, 0), (0, 32)]
    assert merged[0].matrices[0] == complete_tree(set(range(0, 32, 2)), 5, 0)


def test_nothing_is_taken_for_empty_that_may_still_come() -> None:
    """A task that begins in the middle of the tree, between the rows of two others."""
    early = merge_in_order(WORDS, [piece(0, segment) for segment in range(5)])
    middle = merge_in_order(WORDS, [piece(0, segment) for segment in range(5, 60, 2)])
    late = merge_in_order(WORDS, [piece(0, segment) for segment in range(60, 120)])
    found = whole((*late, *middle, *early), 0)
    assert found is not None
    assert found.matrices[0] == complete_tree({*range(5), *range(5, 60, 2), *range(60, 120)}, 7, 0)
    assert found.row_count == 5 + 28 + 60


@pytest.mark.parametrize("layout", ["order", "rare", "shuffle"])
@pytest.mark.parametrize("threads", [1, 2])
def test_forty_segments_and_rows_at_every_border(layout: str, threads: int) -> None:
    """Segments of 50 rows, short ones at the ends of partitions: sums over rows are those of the rows, none twice.

    A count sketch of exact binary numbers: additions have no rounding, so that sums are equal however they are made.
    """
    draw = np.random.default_rng(3)
    rows = 2_021
    X = draw.integers(-8, 9, size=(rows, 2)).astype(np.float64)
    weights = draw.integers(1, 3, size=rows).astype(np.float64) ** 2
    source: Any = array_source(X, X[:, 0] * 2 + 1, weights)
    part = np.zeros(rows, dtype=np.int64)
    if layout == "order":
        partitioning = order_partitions(rows, 3, "spread")
        part = np.repeat([0, 1, 2], [674, 674, 673])
    elif layout == "shuffle":
        partitioning = Partitioning(("0", "1", "2"), shuffle_seed=8)
        part = np.array([plain.shuffled_partition(8, row, 3) for row in range(rows)])
    else:
        # One value in every other segment only, one in a single row.
        part = np.where(np.arange(rows) // 50 % 2 == 0, draw.integers(0, 2, rows), 0)
        part[777] = 2
        source = LabelledSource.from_values(source, part)
        partitioning = Partitioning(source.partition_values)
    request = SummaryRequest(SketchSpecification("count_sketch", 7, 11), partitioning, True, segment_rows=50)
    gathered = gather(source, request, LocalEngine(threads, block_rows=37))
    A = np.column_stack([np.ones(rows), X, X[:, 0] * 2 + 1]) * np.sqrt(weights)[:, None]
    for number, summary in enumerate(gathered.summaries):
        here = np.flatnonzero(part == number)
        S = plain.count_sketch(7, 11, number, here.tolist())
        assert np.array_equal(summary.matrix, S @ A[here])
        assert (summary.row_count, summary.weight_sum) == (here.size, weights[here].sum())
    assert gathered.row_counts == tuple(np.bincount(part).tolist())
    target = X[:, 0] * 2 + 1
    assert gathered.target_range.tolist() == [[target.min()], [target.max()]]


@pytest.mark.parametrize("layout", ["order", "shuffle"])
@pytest.mark.parametrize("kind", ["gaussian", "triangular"])
def test_borders_of_blocks_are_not_borders_of_segments(kind: str, layout: str) -> None:
    """The same bits for blocks that end at segments, before and behind them: a row is in the segment of its number."""
    draw = np.random.default_rng(5)
    X = draw.normal(size=(1_000, 2))
    source = array_source(X, X.sum(axis=1) + draw.normal(size=1_000), draw.uniform(0.1, 2.0, 1_000))
    partitioning = order_partitions(1_000, 3, "spread")
    if layout == "shuffle":
        partitioning = Partitioning(("0", "1", "2"), shuffle_seed=8)
    specification = SketchSpecification(kind, 5, 11) if kind == "gaussian" else SketchSpecification(kind)
    request = SummaryRequest(specification, partitioning, True, segment_rows=50)
    found = [gather(source, request, LocalEngine(1, block_rows=rows)).summaries for rows in (50, 49, 51, 1_000, 7)]
    for other in found[1:]:
        assert other == found[0]


def test_what_waited_in_a_fold_is_gone_with_it() -> None:
    """Of thousands of partitions it is hundreds of megabytes: it must not wait for a collection of cycles."""
    gc.disable()
    try:
        fold = PieceFold(WORDS)
        lonely = piece(0, 2)
        fold.add(lonely)
        held = weakref.ref(lonely)
        del fold, lonely
        assert held() is None
    finally:
        gc.enable()
