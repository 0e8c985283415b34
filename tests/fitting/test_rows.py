"""Rows that need care: values that are not finite, weights, empty input, constant targets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse

import partsketch as ps
from partsketch import InputError, LocalEngine, PartsketchWarning, SketchedRegression
from partsketch.fitting.fit import fit_source
from partsketch.fitting.options import FitOptions
from partsketch.sketches.base import SEGMENT_ROWS
from partsketch.sources import array_source
from tests.fitting.fits import METHODS, data, quiet


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("bad", "word"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
@pytest.mark.parametrize("block_rows", [1000, 70_000])
def test_the_first_bad_value_is_named(method: str, bad: float, word: str, block_rows: int) -> None:
    """Bad values in many rows and in later segments that other threads read first: the lowest row is named."""
    X, y = data(3 * SEGMENT_ROWS)
    X[[5001, 5003, 70_000, 140_000, 196_607], 1] = bad
    X[5002, 0] = bad
    engine = LocalEngine(3, block_rows)
    with pytest.raises(InputError, match=rf"{word}: column 'x1', row 5001 "):
        SketchedRegression(method, n_partitions=2, engine=engine).fit(X, y)


@pytest.mark.parametrize("block_rows", [64, 10_000])
def test_the_first_bad_value_is_named_when_shuffled(block_rows: int) -> None:
    X, y = data(1000)
    X[10:40, 1] = np.nan
    for seed in range(3):
        with pytest.raises(InputError, match="row 10 "):
            quiet(
                "average", n_partitions=3, partition_by="shuffle", random_state=seed, engine=LocalEngine(1, block_rows)
            )(X, y)


def test_bad_values_in_sparse_rows_targets_and_files(tmp_path: Path) -> None:
    X, y = data(500)
    X[:, 1] = 0.0
    X[300, 1] = np.nan
    with pytest.raises(InputError, match="'x1', row 300"):
        quiet("exact")(sparse.csr_array(X), y)
    table = pa.table({"a": y, "b": np.where(np.arange(500) == 77, np.inf, y)})
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"'?b'?.*77"):
        ps.fit(tmp_path / "a.parquet", target="b", method="exact")
    with pytest.raises(ValueError, match="NaN"):
        quiet("exact")(np.ones((3, 1)), [1.0, np.nan, 2.0])


def test_overflow_is_told_from_infinity() -> None:
    """Sums of numbers near the end of what a double holds are beyond it; their squares do no harm."""
    X, y = data()
    with pytest.raises(InputError, match="too large"):
        quiet("stack", random_state=0)(np.sign(X) * 1.7e308, y)
    quiet("exact")(X * 1e200, y)


@pytest.mark.parametrize("method", METHODS)
def test_weights_that_make_no_sense(method: str) -> None:
    X, y = data()
    weights = np.ones(300)
    with pytest.raises(ValueError, match="non-zero"):
        quiet(method, n_partitions=2)(X, y, 0 * weights)
    with pytest.raises(InputError, match="no rows to fit: all 300 rows have missing values or the weight zero"):
        ps.fit(np.column_stack([X, y, 0 * y]), target="x3", weights="x4", method=method, n_partitions=2)
    weights[[7, 9]] = -1.0
    with pytest.raises(InputError, match=r"-1\.0 in row 7"):
        quiet(method)(X, y, weights)
    weights[[7, 9]] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        quiet(method)(X, y, weights)
    with pytest.raises(ValueError, match="shape"):
        quiet(method)(X, y, np.ones(299))


@pytest.mark.parametrize("method", METHODS)
def test_weights_of_one_change_nothing_and_scale_does_not_matter(method: str) -> None:
    X, y = data()
    plain = quiet(method, n_partitions=2, random_state=0)(X, y)
    ones = quiet(method, n_partitions=2, random_state=0)(X, y, np.ones(300))
    assert np.array_equal(plain.coef_, ones.coef_)
    fours = quiet(method, n_partitions=2, random_state=0)(X, y, np.full(300, 4.0))
    np.testing.assert_allclose(fours.coef_, plain.coef_, rtol=1e-12)


@pytest.mark.parametrize("method", ["average", "partition"])
def test_a_partition_without_weight_is_refused(method: str) -> None:
    X, y = data()
    weights = np.ones(300)
    weights[:150] = 0.0
    with pytest.raises(InputError, match="weight"):
        quiet(method, n_partitions=2)(X, y, weights)


def test_empty_input(tmp_path: Path) -> None:
    for rows in (np.empty((0, 3)), pa.table({"a": pa.array([], pa.float64()), "x2": pa.array([], pa.float64())})):
        with pytest.raises(InputError, match="no rows"):
            ps.fit(rows, target="x2", method="exact")
    options = FitOptions("exact", 1, "order", "spread", "gaussian", None, True, 0)
    with pytest.raises(InputError, match="no rows"):
        fit_source(array_source(np.empty((0, 2)), np.empty(0)), options, LocalEngine())
    with pytest.raises(InputError, match="no target"):
        fit_source(array_source(np.ones((3, 2)), None), options, LocalEngine())
    nothing = FitOptions("exact", 1, "order", "spread", "gaussian", None, False, 0)
    with pytest.raises(InputError, match="nothing to fit"):
        fit_source(array_source(np.empty((3, 0)), np.ones(3)), nothing, LocalEngine())
    table = pa.table({"a": [None, None], "b": [1.0, 2.0]})
    with pytest.raises(InputError, match="2 rows have missing values"):
        ps.fit(table, target="b", method="exact", missing="drop")


@pytest.mark.parametrize("method", METHODS)
def test_a_constant_target_works_and_is_said(method: str) -> None:
    X, _ = data()
    with pytest.warns(PartsketchWarning, match="'y' is constant"):
        model = SketchedRegression(method, n_partitions=2, random_state=0).fit(X, np.full(300, 2.5))
    np.testing.assert_allclose(model.predict(X), 2.5, rtol=1e-12)
    np.testing.assert_allclose(model.coef_, 0.0, atol=1e-13)


def test_dropped_rows_are_counted_and_said() -> None:
    table = pa.table({"a": [1.0, None, 3.0, 4.0, 7.0], "b": [1.0, 2.0, None, 4.5, 7.0]})
    with pytest.warns(PartsketchWarning, match="2 rows with missing values"):
        model = ps.fit(table, target="b", method="exact", missing="drop")
    assert model.record.rows_dropped == 2
    assert model.record.row_count == 3
    with pytest.raises(InputError, match="missing"):
        ps.fit(table, target="b", method="exact")
