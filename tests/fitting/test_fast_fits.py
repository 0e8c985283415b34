"""Fits from the fast sketches: every method, every way rows are held, the same bits everywhere."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numba.core.dispatcher import Dispatcher
from numpy.typing import NDArray
from scipy import sparse

import partsketch as ps
from partsketch import InputError, LocalEngine, PartsketchWarning, Summary
from partsketch.sketches import random as counter_random
from partsketch.sketches.kernels import hadamard
from partsketch.sketches.kernels import scatter as scattering
from partsketch.summaries import rows_in_place as in_place

FloatArray = NDArray[np.float64]
KINDS = ("orthogonal", "srht", "sparse_sign", "count_sketch", "row_sample", "leverage_sample")


def data(rows: int = 3000, columns: int = 5) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(7)
    X = rng.normal(size=(rows, columns)) * (rng.random((rows, columns)) < 0.6)
    return X, X @ np.arange(1.0, columns + 1) + 2.0 + rng.normal(size=rows)


def fitted(X: Any, y: FloatArray, **options: Any) -> ps.SketchedRegression:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PartsketchWarning)
        return ps.SketchedRegression(**{"method": "partition", "random_state": 3, "n_partitions": 3, **options}).fit(
            X, y, options.pop("sample_weight", None)
        )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["partition", "stack", "whole"])
def test_every_sketched_method_is_close_to_least_squares(method: str, kind: str) -> None:
    """m = 300 of 1,000 rows, d = 6: an excess loss near 2% of the minimal one for one sketch; far below 10%."""
    X, y = data()
    exact = fitted(X, y, method="exact")
    model = fitted(X, y, method=method, sketch=kind, sketch_size=300)
    design = np.column_stack([np.ones(len(X)), X])
    gap = np.r_[model.intercept_, model.coef_] - np.r_[exact.intercept_, exact.coef_]
    loss = float(np.sum((y - exact.predict(X)) ** 2))
    assert 0 < float(np.sum((design @ gap) ** 2)) < 0.1 * loss
    # The law of orthogonal rows is known; that of the stacked fit is not. Rows with zeros weigh less evenly than
    # Gaussian ones: nothing is claimed of what a uniform sample of them left out.
    known = kind == "orthogonal" and method != "stack"
    expected = "unavailable" if kind == "row_sample" else "estimated" if known else "approximate"
    assert model.certificate_.kind == expected
    assert (model.certificate_.excess_loss is None) == (kind == "row_sample")
    assert model.conf_int().shape[0] == 6


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["exact", "average"])
def test_exact_methods_take_no_notice_of_the_sketch(method: str, kind: str) -> None:
    X, y = data()
    assert np.array_equal(fitted(X, y, method=method, sketch=kind).coef_, fitted(X, y, method=method).coef_)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("partition_by", ["order", "shuffle"])
def test_threads_and_blocks_change_no_bit(kind: str, partition_by: str) -> None:
    X, y = data(70_000, 3)
    weights = np.random.default_rng(1).exponential(size=len(X))
    fits = []
    for threads, rows in ((1, 65536), (2, 5000), (2, 1024)):
        engine = LocalEngine(threads=threads, block_rows=rows)
        model = ps.SketchedRegression(
            method="partition",
            sketch=kind,
            n_partitions=2,
            partition_by=partition_by,
            engine=engine,
            random_state=1,
            sketch_size=40,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PartsketchWarning)
            fits.append(model.fit(X, y, sample_weight=weights))
    for other in fits[1:]:
        assert np.array_equal(other.coef_, fits[0].coef_)
        assert other.model_.record.weight_sum == fits[0].model_.record.weight_sum


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("partition_by", ["order", "shuffle"])
def test_dense_sparse_and_column_rows_give_the_same_bits(kind: str, partition_by: str) -> None:
    X, y = data()
    options: dict[str, Any] = {"sketch": kind, "partition_by": partition_by, "sketch_size": 64}
    dense = fitted(X, y, **options).coef_
    for other in (sparse.csr_array(X), sparse.csc_array(X), np.asfortranarray(X)):
        assert np.array_equal(fitted(other, y, **options).coef_, dense)
    table = pa.table({**{f"x{i}": X[:, i] for i in range(X.shape[1])}, "y": y})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PartsketchWarning)
        from_table = ps.fit(table, target="y", method="partition", n_partitions=3, random_state=3, **options)
    assert np.array_equal(from_table.coefficients[:, 0], dense)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_values_that_are_not_finite_are_named(kind: str, bad: float) -> None:
    X, y = data()
    X[1234, 2] = bad
    with pytest.raises(InputError, match="column 'x2', row 1234"):
        fitted(X, y, sketch=kind)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_with_missing_values_are_dropped(kind: str) -> None:
    X, y = data()
    table = pa.table({"a": X[:, 0], "b": X[:, 1], "y": [None if i % 10 == 0 else v for i, v in enumerate(y)]})
    with pytest.warns(PartsketchWarning, match="300 rows with missing values"):
        model = ps.fit(
            table,
            target="y",
            method="partition",
            sketch=kind,
            sketch_size=40,
            n_partitions=2,
            missing="drop",
            random_state=1,
        )
    assert model.record.row_count == 2700


def stream_of(X: FloatArray, y: FloatArray) -> pa.RecordBatchReader:
    return pa.table({"a": X[:, 0], "y": y}).to_reader(max_chunksize=500)


def test_streams_that_are_read_once() -> None:
    X, y = data()
    options: dict[str, Any] = {
        "target": "y",
        "method": "partition",
        "partition_by": "shuffle",
        "n_partitions": 2,
        "random_state": 0,
    }
    for kind in ("sparse_sign", "row_sample"):
        assert ps.fit(stream_of(X, y), sketch=kind, **options).record.row_count == 3000
    with pytest.raises(InputError, match="needs to know the number of rows"):
        ps.fit(stream_of(X, y), sketch="srht", **options)
    with pytest.raises(InputError, match="reads the rows twice"):
        ps.fit(stream_of(X, y), sketch="leverage_sample", **options)


def test_refusals_and_choices_are_worded() -> None:
    X, y = data(200)
    with pytest.raises(InputError, match="sparsity=3 goes with sketch='sparse_sign'"):
        fitted(X, y, sketch="srht", sparsity=3)
    with pytest.raises(InputError, match="at least 1 and at most all 20"):
        fitted(X, y, sketch="sparse_sign", sketch_size=20, sparsity=21)
    with pytest.raises(InputError, match=r"sketch_size=300 is too large.* at most 200"):
        fitted(X, y, sketch="row_sample", sketch_size=300, n_partitions=1)
    with pytest.raises(InputError, match=r"sketch_size=300 is too large.* at most 256"):
        fitted(X, y, sketch="srht", sketch_size=300, n_partitions=1)
    with pytest.warns(PartsketchWarning, match=r"columns × \(columns \+ 1\) = 42"):
        ps.SketchedRegression("partition", sketch="count_sketch", sketch_size=30, n_partitions=2, random_state=0).fit(
            X, y
        )
    chosen = {kind: fitted(*data(), sketch=kind).model_.record for kind in KINDS}
    assert {kind: record.sketch_size for kind, record in chosen.items()} == {
        "orthogonal": 24,
        "srht": 24,
        "sparse_sign": 24,
        "count_sketch": 42,
        "row_sample": 60,
        "leverage_sample": 60,
    }
    assert "known bound" in chosen["count_sketch"].reasons["sketch_size"]


def test_summaries_that_cannot_be_summed_say_so() -> None:
    summary = Summary(np.ones((3, 2)), ("a", "b"), "srht", (), 3, 3.0)
    with pytest.raises(InputError, match="depends on how many rows"):
        summary.sum(summary)


def test_leverage_finds_the_rows_that_matter() -> None:
    """One row alone carries a column: uniform samples of 100 of 3,000 mostly miss it, leverage samples never do."""
    X, y = data()
    X[:, 4] = 0.0
    X[17, 4] = 1.0
    for seed in range(10):
        model = fitted(X, y, sketch="leverage_sample", n_partitions=1, sketch_size=100, random_state=seed)
        assert model.coef_[4] != 0.0


_TWICE = """
import numpy as np
from partsketch.sketches.kernels.scatter import draw_targets
draw_targets(np.uint64(1), np.uint64(2), np.uint64(0), np.arange(5), 9, np.empty((2, 5), np.int64), np.empty((2, 5)))
print(sum(draw_targets.stats.cache_hits.values()), sum(draw_targets.stats.cache_misses.values()))
"""


def test_a_second_process_does_not_compile_again(tmp_path: Path) -> None:
    """One kernel is seen to be loaded and not compiled; all others are decorated by the same function."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    found = []
    for _ in range(2):
        run = subprocess.run(
            [sys.executable, "-c", _TWICE], env=environment, capture_output=True, text=True, check=True, timeout=300
        )
        found.append(run.stdout.split())
    assert found == [["0", "1"], ["1", "0"]]


@pytest.mark.parametrize("module", [scattering, hadamard, counter_random, in_place])
def test_every_kernel_is_cached(module: Any) -> None:
    kernels = [value for value in vars(module).values() if isinstance(value, Dispatcher)]
    assert kernels
    assert all(kernel.stats.cache_path for kernel in kernels)
