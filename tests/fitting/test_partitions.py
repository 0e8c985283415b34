"""Numbers and sizes of partitions, and what they may be made of."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import partsketch as ps
from partsketch import InputError, PartsketchWarning, SketchedRegression
from tests.fitting.fits import data, quiet


def largest_named(error: pytest.ExceptionInfo[InputError]) -> int | None:
    found = re.search(r"largest possible number of partitions is (\d+)|give at most (\d+)", str(error.value))
    return None if found is None else int(found.group(1) or found.group(2))


def check_largest(rows: int, columns: int, k: int, method: str, remainder: str) -> None:
    """If k is refused, the number that the message names works, and one more does not."""
    X, y = data(rows, columns)
    fit = quiet(method, n_partitions=k, remainder=remainder, random_state=0)
    if rows // k >= columns + 3:
        fit(X, y)
        return
    with pytest.raises(InputError) as refusal:
        fit(X, y)
    largest = largest_named(refusal)
    if largest is None:
        assert rows < columns + 3
        assert "Too few rows" in str(refusal.value)
        return
    quiet(method, n_partitions=largest, remainder=remainder, random_state=0)(X, y)
    with pytest.raises(InputError):
        quiet(method, n_partitions=largest + 1, remainder=remainder, random_state=0)(X, y)


@settings(max_examples=20)
@given(data=st.data(), rows=st.integers(2, 60), columns=st.integers(1, 6))
def test_the_largest_number_of_partitions(data: st.DataObject, rows: int, columns: int) -> None:
    check_largest(rows, columns, data.draw(st.integers(1, rows)), "partition", "spread")


@settings(max_examples=10)
@given(draw=st.data(), rows=st.integers(2, 60), columns=st.integers(1, 6))
def test_stacks_take_any_number_of_partitions(draw: st.DataObject, rows: int, columns: int) -> None:
    """Only all rows together must be enough."""
    X, y = data(rows, columns)
    fit = quiet("stack", n_partitions=draw.draw(st.integers(1, rows)), random_state=0)
    if rows >= columns + 3:
        fit(X, y)
        return
    with pytest.raises(InputError, match=rf"Too few rows: {columns + 1} columns .* need at least {columns + 3}"):
        fit(X, y)


def test_the_largest_number_of_partitions_when_dropping() -> None:
    """29 rows, least 5 per partition: 5 partitions of 5 rows work, the message says 4."""
    check_largest(29, 2, 10, "partition", "drop")


def test_the_largest_number_of_partitions_with_more_partitions_than_rows() -> None:
    check_largest(29, 2, 50, "partition", "spread")


@pytest.mark.parametrize("method", ["exact", "whole"])
def test_dropping_everything_is_refused_in_words(method: str) -> None:
    """Fewer rows than partitions with remainder='drop': no row is left."""
    X, y = data(5)
    with pytest.raises(InputError):
        quiet(method, n_partitions=8, remainder="drop")(X, y)


def test_shuffled_partitions_that_are_too_small_are_refused() -> None:
    X, y = data(60, 3)
    with pytest.raises(InputError, match="fewer when shuffled"):
        quiet(n_partitions=12, partition_by="shuffle", random_state=0)(X, y)


def test_too_few_rows_for_a_sketch_point_to_the_exact_method() -> None:
    X, y = data(4, 3)
    with pytest.raises(InputError, match="method='exact'"):
        quiet(n_partitions=1)(X, y)


@pytest.mark.parametrize(("rows", "k"), [(100, 3), (101, 3), (102, 3), (200, 7)])
@pytest.mark.parametrize("method", ["average", "partition", "stack"])
def test_sizes_and_remainders(rows: int, k: int, method: str) -> None:
    X, y = data(rows)
    spread = quiet(method, n_partitions=k, random_state=0)(X, y).model_.record
    sizes = [entry.row_count for entry in spread.partitions]
    assert sum(sizes) == rows
    assert max(sizes) - min(sizes) <= 1
    assert spread.rows_left_out == 0
    drop = quiet(method, n_partitions=k, remainder="drop", random_state=0)(X, y)
    assert {entry.row_count for entry in drop.model_.record.partitions} == {rows // k}
    assert drop.model_.record.rows_left_out == rows % k
    shorter = quiet(method, n_partitions=k, random_state=0)(X[: rows - rows % k], y[: rows - rows % k])
    assert np.array_equal(drop.coef_, shorter.coef_)
    if rows % k:
        with pytest.warns(PartsketchWarning, match=f"last {rows % k} rows were left out"):
            SketchedRegression(method, n_partitions=k, remainder="drop", sketch_size=12).fit(X, y)


def test_rows_left_out_are_not_looked_at() -> None:
    X, y = data(101)
    X[100] = np.nan
    assert np.isfinite(quiet("average", n_partitions=2, remainder="drop")(X, y).coef_).all()


def test_shuffle_is_seeded_and_about_even() -> None:
    X, y = data(4000)
    fits = [quiet("average", partition_by="shuffle", random_state=seed)(X, y) for seed in (0, 0, 1)]
    assert np.array_equal(fits[0].partition_coef_, fits[1].partition_coef_)
    assert not np.array_equal(fits[0].partition_coef_, fits[2].partition_coef_)
    # Binomial with p = 1/8: five standard deviations.
    sizes = np.array([entry.row_count for entry in fits[0].model_.record.partitions])
    assert sizes.sum() == 4000
    assert np.abs(sizes - 500).max() < 5 * np.sqrt(4000 / 8 * 7 / 8)


def test_partitions_by_file(tmp_path: Path) -> None:
    X, y = data(300)
    for name, rows in [("b", slice(100, 300)), ("a", slice(0, 100))]:
        pq.write_table(pa.table({"u": X[rows, 0], "v": X[rows, 1], "y": y[rows]}), tmp_path / f"{name}.parquet")
    model = ps.fit(str(tmp_path / "*.parquet"), target="y", method="average", partition_by="file")
    assert [entry.row_count for entry in model.record.partitions] == [100, 200]
    for number, rows in enumerate([slice(0, 100), slice(100, 300)]):
        alone = SketchedRegression("exact").fit(X[rows, :2], y[rows])
        np.testing.assert_allclose(model.partition_coefficients[number, :, 0], alone.coef_, rtol=1e-12)


def test_partitions_by_column(tmp_path: Path) -> None:
    X, y = data(300)
    site = np.array(["south", "north", "east"])[np.arange(300) % 3]
    pq.write_table(pa.table({"u": X[:, 0], "v": X[:, 1], "site": site, "y": y}), tmp_path / "a.parquet")
    model = ps.fit(tmp_path / "a.parquet", target="y", method="average", partition_by="site")
    assert [entry.name for entry in model.record.partitions] == ["east", "north", "south"]
    assert model.feature_names == ("u", "v")
    alone = SketchedRegression("exact").fit(X[site == "north", :2], y[site == "north"])
    np.testing.assert_allclose(model.partition_coefficients[1, :, 0], alone.coef_, rtol=1e-12)


def test_the_smallest_file_decides_the_size_of_sketches(tmp_path: Path) -> None:
    """Three columns to estimate: nineteen rows as a rule, but no more than the smallest partition has."""
    draw = np.random.default_rng(0)
    table = pa.table({name: draw.normal(size=235) for name in ("a", "b", "y")})
    pq.write_table(table.slice(0, 220), tmp_path / "1.parquet")
    pq.write_table(table.slice(220), tmp_path / "2.parquet")
    model = ps.fit(str(tmp_path / "*.parquet"), "y", method="stack", partition_by="file", random_state=0)
    assert model.record.sketch_size == 15
    model = ps.fit(str(tmp_path / "*.parquet"), "y", method="stack", n_partitions=2, random_state=0)
    assert model.record.sketch_size == 19
