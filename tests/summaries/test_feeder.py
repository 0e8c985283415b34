"""Pieces of segments: whatever memory is used again, they are those that new memory gives."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse

from partsketch.sketches.base import SketchSpecification, get_sketch
from partsketch.sources import Source, array_source, open_source
from partsketch.summaries.partitions import Partitioning
from partsketch.summaries.summarise import summarise_rows
from partsketch.summaries.tasks import Piece, SummaryRequest, Task

ROWS, SEGMENT = 9_000, 1_100
#: The middle one is shorter than a segment.
BOUNDS = (0, 4_000, 4_700, ROWS)

KINDS = ["triangular", "gaussian", "orthogonal", "srht", "sparse_sign", "count_sketch", "row_sample"]


def rows(held: str, columns: int) -> Source:
    """Rows of which a column grows, so that the plain Gram matrix is left in some segments and kept in others."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(ROWS, columns))
    X[2_000:3_000, 1] *= 1e7
    X[2_000:3_000, 0] = X[2_000:3_000, 1] * (1 + 1e-9 * X[2_000:3_000, 0])
    y = X.sum(axis=1) + rng.normal(size=ROWS)
    if held == "table":
        table = pa.table({**{f"x{i}": X[:, i] for i in range(columns)}, "y": y})
        return open_source(table, target="y")
    weights = rng.uniform(0, 2, ROWS) if held == "weighted" else None
    layouts: dict[str, Any] = {"sparse": sparse.csr_array, "by columns": np.asfortranarray}
    return array_source(layouts.get(held, np.asarray)(X), y, weights)


def pieces(source: Source, request: SummaryRequest, tasks: list[Task]) -> list[Piece]:
    return [piece for task in tasks for piece in summarise_rows(source, request, task, 700).pieces]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("held", ["by rows", "by columns", "weighted", "sparse", "table"])
@pytest.mark.parametrize("columns", [3, 11])
def test_segments_one_after_another_give_what_each_gives_alone(
    kind: str, held: str, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = rows(held, columns)
    specification = SketchSpecification(kind, 40, 3) if get_sketch(kind).is_random else SketchSpecification(kind)
    request = SummaryRequest(specification, Partitioning(("a", "b", "c"), BOUNDS), True, 1, ROWS, segment_rows=SEGMENT)
    # Nothing is merged: what is compared are the pieces themselves.
    monkeypatch.setattr("partsketch.summaries.summarise.merge_in_order", lambda merging, found: tuple(found))
    starts = [start for first, last in pairwise(BOUNDS) for start in range(first, last, SEGMENT)]
    tasks = [Task(start, stop) for start, stop in pairwise([*starts, ROWS])]
    alone, together = pieces(source, request, tasks), pieces(source, request, [Task(0, ROWS)])
    assert len(alone) == len(together) == len(tasks)
    for one, other in zip(alone, together, strict=True):
        assert (one.partition, one.segment, one.row_count) == (other.partition, other.segment, other.row_count)
        assert one.weight_sum == other.weight_sum
        assert np.array_equal(one.target_range, other.target_range)
        assert np.array_equal(one.matrices[0], other.matrices[0])
