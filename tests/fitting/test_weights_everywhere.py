"""Weights through every kind of storage and every way that rows reach the sketches, against the hand-written judge.

20,000 rows and few columns: two tiles of 8,192 rows and some rows more, so that every source enters the ways for whole
tiles in place, for rows that are copied into tiles, and for a tile that is not full.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from scipy import sparse

from partsketch import LocalEngine
from partsketch.fitting.fit import Fit, fit_source
from partsketch.fitting.options import FitOptions
from partsketch.sketches.base import sketch_kinds
from partsketch.sources import Source, array_source, open_source
from tests.by_hand import FloatArray, Judged, assert_exact, design_of, judged, satterthwaite

ROWS = 20_000
FEATURES, TARGETS = ("x0", "x1", "x2"), ("y", "z")


@cache
def data() -> tuple[FloatArray, FloatArray, FloatArray]:
    """Features are small whole numbers, which every type holds; targets have their extremes far apart."""
    draw = np.random.default_rng(20)
    X = draw.integers(-9, 10, size=(ROWS, 3)).astype(np.float64)
    Y = X @ [[1.0, -1.0], [2.0, 0.5], [0.0, 0.25]] + draw.normal(size=(ROWS, 2)) + [3.0, -5.0]
    # Inside whole tiles, among the last rows, at the very end: wherever ranges may be forgotten.
    Y[9_000, 0], Y[4_000, 0], Y[-1, 1], Y[19_990, 1] = 500.0, -400.0, 300.0, -200.0
    weights = draw.exponential(size=ROWS)
    weights[5:8] = 0.0
    return X, Y, weights


@cache
def judge(number: int, intercept: bool = True) -> Judged:
    X, Y, weights = data()
    return judged(X, Y[:, number], weights, intercept)


@cache
def table() -> pa.Table:
    X, Y, weights = data()
    return pa.table({**dict(zip(FEATURES, X.T, strict=True)), "w": weights, **dict(zip(TARGETS, Y.T, strict=True))})


def opened(data: Any, **options: Any) -> Source:
    values: dict[str, Any] = {"target": list(TARGETS), "features": list(FEATURES), "weights": "w", **options}
    return open_source(data, **values)


def in_memory(change: Callable[[FloatArray], Any]) -> Callable[[Path], Source]:
    def make(folder: Path) -> Source:
        X, Y, weights = data()
        return array_source(change(X), Y, weights, FEATURES, TARGETS)

    return make


def _parquet(folder: Path, rows: int, name: str) -> Source:
    pq.write_table(table().slice(0, 13_001), folder / f"{name}-1.parquet", row_group_size=rows)
    pq.write_table(table().slice(13_001), folder / f"{name}-2.parquet", row_group_size=rows)
    return opened(str(folder / f"{name}-*.parquet"))


def _csv(folder: Path) -> Source:
    pyarrow.csv.write_csv(table().slice(0, 9_000), folder / "1.csv")
    pyarrow.csv.write_csv(table().slice(9_000), folder / "2.csv")
    return opened([str(folder / "1.csv"), str(folder / "2.csv")])


def _feather(folder: Path) -> Source:
    pyarrow.feather.write_feather(table(), str(folder / "a.feather"), chunksize=12_000)
    return opened(str(folder / "a.feather"))


def _npy(folder: Path) -> Source:
    X, Y, weights = data()
    np.save(folder / "a.npy", np.column_stack([X, weights, Y]))
    return opened(str(folder / "a.npy"), features=["x0", "x1", "x2"], weights="x3", target=["x4", "x5"])


def _whole_numbers() -> pa.Table:
    """Columns of several types: they are copied, never used where they lie."""
    types = {"x0": pa.int8(), "x1": pa.float32(), "x2": pa.uint16()}
    shifted = table().set_column(2, "x2", pa.array(np.asarray(table()["x2"]) + 9))
    columns = {name: shifted[name].cast(types.get(name, pa.float64())) for name in shifted.column_names}
    return pa.table(columns)


KINDS: dict[str, Callable[[Path], Source]] = {
    "rows of doubles": in_memory(np.ascontiguousarray),
    "columns of doubles": in_memory(np.asfortranarray),
    "every other row": in_memory(lambda X: np.repeat(X, 2, axis=0)[::2]),
    "rows of singles": in_memory(lambda X: X.astype(np.float32)),
    "columns of singles": in_memory(lambda X: np.asfortranarray(X.astype(np.float32))),
    "whole numbers": in_memory(lambda X: X.astype(np.int16)),
    "CSR": in_memory(sparse.csr_array),
    "CSC": in_memory(sparse.csc_array),
    "sparse by column": lambda folder: opened(
        sparse.csr_array(np.column_stack([data()[0], data()[2], data()[1]])),
        features=["x0", "x1", "x2"], weights="x3", target=["x4", "x5"],
    ),
    "pandas": lambda folder: opened(table().to_pandas()),
    "polars": lambda folder: opened(pl.DataFrame(table().to_pandas())),
    "table": lambda folder: opened(table()),
    "chunked table": lambda folder: opened(pa.concat_tables([table().slice(0, 8_200), table().slice(8_200)])),
    "reader": lambda folder: opened(table().to_reader(max_chunksize=9_001)),
    "Parquet": lambda folder: _parquet(folder, 100_000, "one"),
    "Parquet groups": lambda folder: _parquet(folder, 3_000, "many"),
    "CSV": _csv,
    "Feather": _feather,
    "npy": _npy,
}  # fmt: skip


def fitted(source: Source, method: str = "exact", threads: int = 1, **options: Any) -> Fit:
    values: dict[str, Any] = {
        "n_partitions": 1, "partition_by": "order", "remainder": "spread", "sketch": "gaussian", "sketch_size": None,
        "fit_intercept": True, "seed": 3, **options,
    }  # fmt: skip
    return fit_source(source, FitOptions(method, **values), LocalEngine(threads))


@pytest.mark.parametrize("kind", KINDS)
def test_exact_fits_of_weighted_rows(kind: str, tmp_path: Path) -> None:
    """Every number of both targets; rounding of sums over 20,000 rows, well conditioned."""
    fit = fitted(KINDS[kind](tmp_path))
    assert_exact(fit.model, judge(0), 0)
    assert_exact(fit.model, judge(1), 1)
    assert fit.gathered is not None
    assert fit.gathered.target_range.tolist() == [[-400.0, -200.0], [500.0, 300.0]]


@pytest.mark.parametrize("kind", ["rows of doubles", "columns of singles", "CSR", "table", "Parquet groups", "CSV"])
def test_exact_fits_without_an_intercept(kind: str, tmp_path: Path) -> None:
    assert_exact(fitted(KINDS[kind](tmp_path), fit_intercept=False).model, judge(0, False))


@pytest.mark.parametrize("kind", ["rows of doubles", "CSR", "table", "Parquet", "CSV"])
def test_rows_that_count_once(kind: str, tmp_path: Path) -> None:
    """The same ways without weights, and that the weights of the other tests matter at all."""
    X, Y, _ = data()
    plain = judged(X, Y[:, 0])
    assert abs(plain.coefficients - judge(0).coefficients).max() > 1e-4
    pq.write_table(table(), tmp_path / "a.parquet")
    pyarrow.csv.write_csv(table(), tmp_path / "a.csv")
    arrays: dict[str, Any] = {"rows of doubles": X, "CSR": sparse.csr_array(X)}
    tables: dict[str, Any] = {
        "table": table(), "Parquet": str(tmp_path / "a.parquet"), "CSV": str(tmp_path / "a.csv")
    }  # fmt: skip
    source = array_source(arrays[kind], Y) if kind in arrays else opened(tables[kind], weights=None)
    fit = fitted(source)
    assert_exact(fit.model, plain)
    assert fit.gathered is not None
    assert fit.gathered.target_range.tolist() == [[-400.0, -200.0], [500.0, 300.0]]
    # Partitions that begin inside a block, at a row that is no multiple of a tile.
    halves = fitted(source, "average", n_partitions=2)
    for number, rows in enumerate((slice(0, 10_000), slice(10_000, ROWS))):
        got = np.r_[halves.model.partition_intercepts[number, 0], halves.model.partition_coefficients[number, :, 0]]
        np.testing.assert_allclose(got, judged(X[rows], Y[rows, 0]).coefficients, rtol=1e-9)


def test_columns_of_several_types_and_encoded_ones() -> None:
    X, Y, weights = data()
    source = opened(_whole_numbers())
    assert_exact(fitted(source).model, judged(X + np.array([0, 0, 9]), Y[:, 0], weights))
    level = np.random.default_rng(8).choice(["b", "a", "c", "d"], ROWS)
    text = table().append_column("level", pa.array(level))
    source = opened(text, features=["x0", "level", "x2"], encode=True)
    assert source.feature_names == ("x0", "level=b", "level=c", "level=d", "x2")
    indicators = (level[:, None] == ["b", "c", "d"]).astype(np.float64)
    assert_exact(fitted(source).model, judged(np.column_stack([X[:, 0], indicators, X[:, 2]]), Y[:, 0], weights))


def test_columns_of_long_whole_numbers_are_not_taken_for_doubles() -> None:
    """Eight bytes each, one after another: everything but the type is as for doubles."""
    X, Y, weights = data()
    columns = {name: column.astype(np.int64) for name, column in zip(FEATURES, X.T, strict=True)}
    whole = np.rint(Y[:, 0]).astype(np.int64)
    source = open_source(pa.table({**columns, "y": whole}), target="y")
    assert_exact(fitted(source).model, judged(X, whole))
    assert_exact(
        fitted(array_source(X.astype(np.uint8), whole, weights)).model, judged(X.astype(np.uint8), whole, weights)
    )


@pytest.mark.parametrize("kind", ["table", "Parquet", "CSV", "pandas", "sparse"])
def test_rows_with_missing_values_leave_with_their_weights(kind: str, tmp_path: Path) -> None:
    X, Y, weights = data()
    gone = np.zeros(ROWS, dtype=bool)
    gone[[0, 4, 8_191, 8_192, 15_000, ROWS - 1]] = True
    x1 = pa.array(X[:, 1], mask=gone)
    holes = table().set_column(1, "x1", x1)
    if kind == "sparse":
        X1 = np.where(gone, np.nan, X[:, 1])
        rows = sparse.csr_array(np.column_stack([X[:, 0], X1, X[:, 2], weights, Y[:, 0]]))
        source = open_source(rows, target="x4", features=["x0", "x1", "x2"], weights="x3", missing="drop")
    elif kind == "pandas":
        source = opened(holes.to_pandas(), missing="drop")
    elif kind == "table":
        source = opened(holes, missing="drop")
    elif kind == "Parquet":
        # Not a number, where the others have nulls.
        holes = holes.set_column(1, "x1", pa.array(np.where(gone, np.nan, X[:, 1])))
        pq.write_table(holes, tmp_path / "a.parquet")
        source = opened(str(tmp_path / "a.parquet"), missing="drop")
    else:
        pyarrow.csv.write_csv(holes, tmp_path / "a.csv")
        source = opened(str(tmp_path / "a.csv"), missing="drop")
    fit = fitted(source)
    assert fit.model.record.rows_dropped == np.count_nonzero(gone | (weights == 0)) > 6
    assert_exact(fit.model, judged(X[~gone], Y[~gone, 0], weights[~gone]))


PARTITIONS = ["order", "shuffle", "label"]


def assigned(partition_by: str) -> Any:
    from tests.sketches.plain_random import shuffled_partition

    if partition_by == "order":
        return np.repeat([0, 1, 2], [6667, 6667, 6666])
    if partition_by == "label":
        return np.arange(ROWS) * 13 % 3
    return np.array([shuffled_partition(3, row, 3) for row in range(ROWS)])


@pytest.mark.parametrize("partition_by", PARTITIONS)
@pytest.mark.parametrize("kind", ["rows of doubles", "columns of doubles", "CSR", "table"])
def test_partitions_of_weighted_rows(kind: str, partition_by: str, tmp_path: Path) -> None:
    """The fits of three partitions, their average, and everything that is said of it, by hand."""
    X, Y, weights = data()
    part = assigned(partition_by)
    if partition_by == "label":
        if kind == "table":
            source: Any = opened(table().append_column("part", pa.array(part)), partition_column="part")
        else:
            from partsketch.sources.labelled import LabelledSource

            source = LabelledSource.from_values(KINDS[kind](tmp_path), part)
    else:
        source = KINDS[kind](tmp_path)
    fit = fitted(source, "average", n_partitions=3, partition_by="part" if partition_by == "label" else partition_by)
    judges = [judged(X[part == i], Y[part == i, 0], weights[part == i]) for i in range(3)]
    model: Any = fit.model
    whole = judge(0)
    for number, one in enumerate(judges):
        got = np.r_[model.partition_intercepts[number, 0], model.partition_coefficients[number, :, 0]]
        np.testing.assert_allclose(got, one.coefficients, rtol=1e-9)
        assert model.record.partitions[number].row_count == one.rows
        assert fit.summaries[number].weight_sum == pytest.approx(one.weight_sum, rel=1e-12)
    mean = np.mean([one.coefficients for one in judges], axis=0)
    np.testing.assert_allclose(model.column_coefficients[:, 0], mean, rtol=1e-9)
    certificate, inference = model.certificates[0], model.inferences[0]
    gap = mean - whole.coefficients
    # The gap is a difference of numbers that agree in two digits or more.
    np.testing.assert_allclose(certificate.excess_loss, gap @ whole.gram @ gap, rtol=1e-7)
    np.testing.assert_allclose(certificate.minimal_loss, whole.loss, rtol=1e-9)
    np.testing.assert_allclose(certificate.relative_excess_loss, gap @ whole.gram @ gap / whole.loss, rtol=1e-7)
    traces = [np.trace(whole.gram @ one.inverse) for one in judges]
    np.testing.assert_allclose(certificate.divergence, np.sum(traces) / 9, rtol=1e-9)
    freedom = sum(one.freedom for one in judges)
    noise = sum(one.loss for one in judges) / freedom
    np.testing.assert_allclose(certificate.noise_variance, noise, rtol=1e-9)
    # Of this fit, whose loss is the minimum and what averaging adds.
    loss = whole.loss + gap @ whole.gram @ gap
    np.testing.assert_allclose(inference.noise_variance, loss / whole.freedom, rtol=1e-9)
    np.testing.assert_allclose(inference.r_squared, 1 - loss / whole.total, rtol=1e-9)
    terms = [one.noise * one.inverse / 9 for one in judges]
    np.testing.assert_allclose(inference.standard_errors, np.sqrt(np.diagonal(sum(terms))), rtol=1e-9)
    assert inference.degrees_of_freedom == pytest.approx(satterthwaite(terms, [one.freedom for one in judges]))
    fits = np.array([one.coefficients for one in judges])
    np.testing.assert_allclose(inference.spread_standard_errors, fits.std(axis=0, ddof=1) / np.sqrt(3), rtol=1e-7)
    assert inference.spread_degrees_of_freedom == 2
    assert model.record.weight_sum == pytest.approx(whole.weight_sum, rel=1e-12)


@pytest.mark.parametrize("sketch", sketch_kinds())
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "reader"])
def test_sketches_of_weighted_rows_are_those_of_an_array(kind: str, sketch: str, tmp_path: Path) -> None:
    """Bit by bit; the array's own are checked against matrices written out in plain Python elsewhere."""
    options: dict[str, Any] = {"sketch": sketch, "sketch_size": 24, "n_partitions": 2}
    got = fitted(KINDS[kind](tmp_path), "partition", **options).summaries
    for one, other in zip(got, _of_array(sketch), strict=True):
        assert np.array_equal(one.matrix, other.matrix)
        assert (one.row_count, one.weight_sum) == (other.row_count, other.weight_sum)


@cache
def _of_array(sketch: str) -> Any:
    X, Y, weights = data()
    source = array_source(X, Y, weights, FEATURES, TARGETS)
    return fitted(source, "partition", sketch=sketch, sketch_size=24, n_partitions=2).summaries


def test_a_sketch_of_all_directions_has_the_weighted_gram_matrix() -> None:
    """An orthogonal sketch of as many rows as there are positions keeps AᵀA: weights enter as square roots."""
    X, Y, weights = data()
    rows = slice(0, 256)
    source = array_source(X[rows], Y[rows], weights[rows])
    (summary,) = fitted(source, "stack", sketch="srht", sketch_size=256).summaries
    A = np.column_stack([design_of(X[rows], True), Y[rows]])
    np.testing.assert_allclose(summary.matrix.T @ summary.matrix, (A.T * weights[rows]) @ A, rtol=1e-10, atol=1e-8)


def test_pandas_weights_may_be_whole_numbers() -> None:
    X, Y, weights = data()
    counts = np.ceil(weights).astype(np.int64)
    frame = pd.DataFrame({"x0": X[:, 0], "x1": X[:, 1], "n": counts, "y": Y[:, 0]})
    fit = fitted(open_source(frame, target="y", weights="n"))
    assert_exact(fit.model, judged(X[:, :2], Y[:, 0], counts))
