"""Tasks of a fit, and the record of the model."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import cast

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import partsketch as ps
from partsketch import Model, PartsketchWarning, SketchedRegression
from partsketch.engines.gather import make_tasks
from partsketch.sketches.base import SEGMENT_ROWS
from partsketch.sources.base import FilePart
from partsketch.summaries.partitions import order_partitions
from tests.fitting.fits import METHODS, data


@dataclass
class Shape:
    """As much of a source as tasks are planned from."""

    row_count: int
    boundaries: tuple[int, ...]
    random_access: bool
    files: tuple[FilePart, ...]
    replayable: bool = True


@given(
    rows=st.integers(1, 10 * SEGMENT_ROWS),
    k=st.integers(1, 5),
    groups=st.sets(st.integers(1, 10 * SEGMENT_ROWS), max_size=6),
    random_access=st.booleans(),
    at_borders=st.booleans(),
)
def test_tasks_cover_every_row_once(rows: int, k: int, groups: set[int], random_access: bool, at_borders: bool) -> None:
    """They begin with a segment of a partition; with `at_borders` they have rows of one partition only."""
    inside = (0, *sorted(group for group in groups if group < rows))
    boundaries = inside if random_access and groups else ()
    files = () if random_access else tuple(FilePart("a", *ends) for ends in pairwise((*inside, rows)))
    partitioning = order_partitions(rows, min(k, rows), "spread")
    bounds = partitioning.bounds or ()
    tasks = make_tasks(Shape(rows, boundaries, random_access, files), partitioning, at_borders)  # type: ignore[arg-type]
    assert tasks[0].start == 0
    assert tasks[-1].stop == rows
    assert all(before.stop == after.start for before, after in pairwise(tasks))
    starts = [task.start for task in tasks]
    assert all((start - max(b for b in bounds if b <= start)) % SEGMENT_ROWS == 0 for start in starts)
    if at_borders or (random_access and not boundaries):
        assert set(bounds[:-1]) <= set(starts)
    if not random_access and not at_borders:
        assert len(tasks) == 1
    if not random_access and at_borders:
        # Beside the borders, one task begins in each file: with its first whole segment.
        assert len(tasks) <= len(bounds) - 1 + len(files)
        others = set(starts) - set(bounds)
        assert all(any(first <= start < first + SEGMENT_ROWS for first in inside) for start in others)


@pytest.mark.parametrize("method", METHODS)
def test_the_record_repeats_the_fit(method: str) -> None:
    X, y = data()
    table = pa.table({"a": X[:, 0], "b": X[:, 1], "y": y})
    model = ps.fit(table, target="y", method=method, n_partitions=3)
    assert isinstance(model, Model)
    record = model.record
    options = {name: value for name, value in record.options.items() if name != "seed"}
    again = ps.fit(table, target="y", random_state=record.seed, **options)
    assert np.array_equal(model.coefficients, again.coefficients)
    assert record.row_count == 300
    assert record.reasons["method"]
    assert record.versions["numpy"] == np.__version__
    assert len(record.partitions) == {"exact": 1}.get(method, 3)


def test_rank_and_dependent_columns_of_partitions_are_recorded() -> None:
    X, y = data(400)
    X[:200, 1] = X[:200, 0]
    with pytest.warns(PartsketchWarning, match=r"1 of 2 fits have dependent columns \(rank 3 of 4\): 'x1'"):
        model = SketchedRegression("average", n_partitions=2).fit(X, y)
    assert [entry.rank for entry in model.model_.record.partitions] == [3, 4]
    assert model.rank_ == 3
    assert model.model_.record.aliased == (), "not aliased in every partition"


def test_condition_number_of_the_worst_fit() -> None:
    X, y = data(400)
    X[200:, 2] = X[200:, 1] + 1e-4 * X[200:, 2]
    model = SketchedRegression("average", n_partitions=2).fit(X, y)
    conditions = []
    for half in (X[:200], X[200:]):
        # Where columns lie has no part in it.
        matrix = half - half.mean(axis=0)
        conditions.append(float(np.linalg.cond(matrix / np.linalg.norm(matrix, axis=0))))
    assert model.model_.record.condition == pytest.approx(max(conditions), rel=1e-6)


def test_a_target_by_its_position() -> None:
    rows = np.random.default_rng(0).normal(size=(50, 3))
    by_name, by_position = (
        ps.fit(rows, target, method="exact", random_state=0) for target in cast("list[str]", ["x2", -1])
    )
    assert by_position.to_dict() == by_name.to_dict()
    assert by_position.record.asked is not None
    assert by_position.record.asked["targets"] == ["x2"]
