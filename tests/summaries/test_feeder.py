"""Pieces of segments: whatever memory is used again, they are those that new memory gives."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse

import partsketch as ps
from partsketch.sketches.base import SketchSpecification, get_sketch
from partsketch.sources import Source, array_source, open_source
from partsketch.sources.blocks import ColumnBlock
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


CODED = pd.DataFrame(
    {
        "zone": np.array(["a", "b", "c", "d"])[np.random.default_rng(1).integers(0, 4, 70_000)],
        "small": np.random.default_rng(2).normal(size=70_000).astype(np.float32),
        "x": np.random.default_rng(3).normal(size=70_000),
        "y": np.random.default_rng(4).normal(size=70_000),
    }
)
_FORMULA = "y ~ x + small + C(zone) * x"


def test_columns_held_as_codes_are_written_out_as_they_are_copied() -> None:
    source = open_source(CODED, formula=_FORMULA)
    (block,) = source.read(100, 5_100, 5_000)
    assert isinstance(block, ColumnBlock)
    assert block.coded
    known = np.empty((len(source.feature_names) + 1, 4_000))
    block.copy_into(known, 700, 4_700)
    written = block.written_out(700, 4_700)
    assert not written.coded
    assert written.addresses is not None
    np.testing.assert_array_equal(np.array(written.columns), known)
    np.testing.assert_array_equal(written.row_numbers, np.arange(800, 4_800))


@pytest.mark.parametrize("asked", [{"target": _FORMULA}, {"target": "y", "encode": True}])
def test_written_out_for_several_tiles_or_copied_for_each_the_bits_are_the_same(
    asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once = ps.fit(CODED, **asked)
    monkeypatch.setattr("partsketch.summaries.feeder.WRITTEN_OUT", 0)
    one_by_one = ps.fit(CODED, **asked)
    np.testing.assert_array_equal(at_once.coefficients, one_by_one.coefficients)
    np.testing.assert_array_equal(at_once.standard_errors, one_by_one.standard_errors)
