"""Sums of many groups at once are those of each group alone, whatever the segments, units and places of columns are."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import partsketch as ps
from partsketch.common.errors import InputError
from partsketch.common.linalg.double_double import DoubleDouble
from partsketch.sketches.groups import GroupedTriangularSketch, GroupTable, group_segment_rows, summarise_groups

ROWS, WIDTH, GROUPS = 3000, 9, 7


def made(seed: int, places: float = 0.0, near: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    rows = np.ones((ROWS, WIDTH))
    rows[:, 1:] = rng.normal(size=(ROWS, WIDTH - 1)) + places * np.arange(1, WIDTH)
    if near:
        rows[:, 2] = rows[:, 1] + near * rng.normal(size=ROWS)
    return rows, rng.integers(0, GROUPS, ROWS) ** 2


def table_of(rows: np.ndarray, groups: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    given = np.ones(len(rows)) if weights is None else weights
    return summarise_groups(rows, np.empty(0) if weights is None else np.sqrt(weights), given, groups).table


@pytest.mark.parametrize(("places", "near"), [(0.0, 0.0), (1e6, 0.0), (0.0, 1e-7), (1e9, 1e-5)])
@pytest.mark.parametrize("weighted", [False, True])
def test_merged_tables_are_the_sums_of_all_rows(places: float, near: float, weighted: bool) -> None:
    rows, groups = made(0, places, near)
    weights = np.random.default_rng(1).uniform(0.5, 2, ROWS) if weighted else None
    sketch = GroupedTriangularSketch()
    cuts = [slice(0, 1100), slice(1100, 1101), slice(1101, ROWS)]
    tables = [table_of(rows[cut], groups[cut], None if weights is None else weights[cut]) for cut in cuts]
    merged = sketch.merge(sketch.merge(tables[0], tables[1]), tables[2])
    apart = GroupTable.read(merged, WIDTH)
    assert apart.groups.tolist() == sorted(set(groups.tolist()))
    assert int(apart.counts.sum()) == ROWS
    for place, group in enumerate(apart.groups):
        chosen = groups == group
        values = (rows[chosen] - apart.centre[place]).astype(np.longdouble)
        if weights is not None:
            values *= np.sqrt(weights[chosen])[:, None]
        expected = values.T @ values
        size = np.sqrt(np.outer(np.diagonal(expected), np.diagonal(expected)))
        found = apart.high[place].astype(np.longdouble)
        if apart.low is not None:
            found = found + apart.low[place]
        # Of 500 rows in doubles; with twice the digits only the long doubles here round, and the roots of weights.
        tolerance = 1e-13 if apart.low is None else 1e-15 if weighted else 5e-17
        assert float(np.abs((found - expected) / size).max()) < tolerance


def test_nearly_dependent_columns_keep_twice_the_digits() -> None:
    assert GroupTable.read(table_of(*made(0)), WIDTH).low is None
    assert GroupTable.read(table_of(*made(0, near=1e-5)), WIDTH).low is not None


def test_factors_are_those_of_the_rows() -> None:
    rows, groups = made(2, places=3.0)
    found = GroupedTriangularSketch().taken_apart(table_of(rows, groups))
    for group, (factor, centre, count, weight) in found.items():
        chosen = rows[groups == group] - centre
        assert (count, weight) == (len(chosen), float(len(chosen)))
        expected = np.linalg.qr(chosen, mode="r")
        np.testing.assert_allclose(factor, expected * np.sign(np.diagonal(expected))[:, None], rtol=1e-10, atol=1e-10)


def test_groups_with_fewer_rows_than_columns() -> None:
    rows, _ = made(3)
    found = GroupedTriangularSketch().taken_apart(table_of(rows[:8], np.array([0, 0, 0, 1, 2, 2, 2, 2])))
    for group, chosen in ((0, rows[:3]), (1, rows[3:4]), (2, rows[4:8])):
        factor, centre, _, _ = found[group]
        values = DoubleDouble.of(factor[:WIDTH], factor[WIDTH:]).moved(centre).high
        np.testing.assert_allclose(values.T @ values, chosen.T @ chosen, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("size", [1e200, 1e-200])
def test_numbers_whose_squares_get_lost_are_refused(size: float) -> None:
    table = pa.table({"x": [size, 2 * size, 3 * size], "y": [1.0, 2.0, 4.0], "g": [0, 0, 1]})
    with pytest.raises(InputError, match="squares"):
        ps.summarise(table, ["x", "y"], partition_by="g")


def test_segments_depend_on_columns_and_groups_alone() -> None:
    assert [group_segment_rows(22, groups) for groups in (2, 200, 1000, 20_000)] == [2**16, 2**16, 2**17, 2**18]
    assert group_segment_rows(2000, 2) == 2**12


@pytest.mark.parametrize("column", [np.arange(70_000) % 50 - 20, np.arange(70_000) % 50 * 1e6, np.arange(70_000) % 50])
def test_bits_do_not_depend_on_the_way_rows_come(column: np.ndarray) -> None:
    """Two segments, in one block or many, on one thread or two."""
    rng = np.random.default_rng(4)
    values = {name: rng.normal(size=70_000) + 5 for name in "abcdefghijk"}
    table = pa.table({**values, "g": column})
    first = ps.summarise(table, list(values), partition_by="g")
    cut = pa.Table.from_batches(table.to_batches(max_chunksize=777))
    assert ps.summarise(cut, list(values), partition_by="g") == first
    assert ps.summarise(table.to_pandas(), list(values), partition_by="g") == first
    assert ps.summarise(table, list(values), partition_by="g", engine=ps.LocalEngine(2, block_rows=1001)) == first
