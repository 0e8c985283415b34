"""A summary is the same, to the last bit, for any block size, number of threads, memory layout and storage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse

from partsketch import LocalEngine
from partsketch.fitting.fit import fit_source
from partsketch.fitting.options import FitOptions
from partsketch.sketches.base import SEGMENT_ROWS
from partsketch.sources import Source, array_source, open_source
from partsketch.sources.labelled import LabelledSource

FloatArray = NDArray[np.float64]

#: Two whole segments and a rest; with 7 columns a tile has 8192 rows, so there are tiles and rests of tiles too.
ROWS = 2 * SEGMENT_ROWS + 20_001

ENGINES = [LocalEngine(2, 32768), LocalEngine(3, 9_973), LocalEngine(1, 2**20), LocalEngine(2, SEGMENT_ROWS + 1)]


def options(method: str, partition_by: str, **other: Any) -> FitOptions:
    values: dict[str, Any] = {
        "method": method, "n_partitions": 3, "partition_by": partition_by, "remainder": "spread",
        "sketch": "gaussian", "sketch_size": 13, "fit_intercept": True, "seed": 2**40 + 9, **other,
    }  # fmt: skip
    return FitOptions(**values)


def bits(source: Source, wanted: FitOptions, engine: LocalEngine) -> bytes:
    """Everything that a fit depends on, as bytes: all summaries with their records, and the coefficients."""
    fit = fit_source(source, wanted, engine)
    return b"".join(summary.to_bytes() for summary in fit.summaries) + fit.combination.coefficients.tobytes()


def data(rows: int = ROWS, columns: int = 5, seed: int = 0) -> tuple[FloatArray, FloatArray, FloatArray]:
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(rows, columns)) * (generator.random((rows, columns)) < 0.6)
    if columns > 2:
        X[rows // 2 :, 1] *= 1e6  # the plain Gram matrix is left in the middle
        X[:, 2] = X[:, 0] + 1e-3 * X[:, 2]
    y = X.sum(axis=1) + generator.normal(size=rows)
    return X, y, generator.random(rows)


@pytest.fixture(scope="module")
def large() -> tuple[FloatArray, FloatArray, FloatArray]:
    return data()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("method", "partition_by"),
    [("exact", "order"), ("whole", "order")]
    + [(method, how) for method in ("average", "partition") for how in ("order", "shuffle", "site")],
)
def test_arrays(
    large: tuple[FloatArray, FloatArray, FloatArray], method: str, partition_by: str, weighted: bool
) -> None:
    X, y, weights = large
    wanted = options(method, partition_by)
    labels = np.arange(ROWS) // 7 % 3
    found = set()
    for layout in (X, np.asfortranarray(X), sparse.csr_array(X), sparse.csc_matrix(X)):
        source = array_source(layout, y, weights if weighted else None)
        if partition_by == "site":
            source = LabelledSource.from_values(source, labels)
        for engine in ENGINES[: 4 if layout is X else 2]:
            found.add(bits(source, wanted, engine))
    assert len(found) == 1


def test_the_bits_do_depend_on_what_they_should(large: tuple[FloatArray, FloatArray, FloatArray]) -> None:
    """The comparison above would be worth nothing if it could not see a difference."""
    X, y, weights = large
    other = y.copy()
    other[ROWS - 1] += 1e-6
    found = {
        bits(array_source(X, y), options("partition", "order"), ENGINES[0]),
        bits(array_source(X, other), options("partition", "order"), ENGINES[0]),
        bits(array_source(X, y, weights), options("partition", "order"), ENGINES[0]),
        bits(array_source(X, y), options("partition", "shuffle"), ENGINES[0]),
        bits(array_source(X, y), options("partition", "order", seed=1), ENGINES[0]),
    }
    assert len(found) == 5


@pytest.mark.parametrize("columns", [40, 90])
def test_wide_rows(columns: int) -> None:
    """From 32 columns on, tiles are padded and the symmetric product is used."""
    X, y, weights = data(70_001, columns)
    for method in ("exact", "partition"):
        wanted = options(method, "order", sketch_size=columns + 7, n_partitions=2)
        found = {
            bits(array_source(layout, y, weights), wanted, engine)
            for layout, engine in [
                (X, LocalEngine(2, 10_000)),
                (np.asfortranarray(X), LocalEngine(1, 65_537)),
                (sparse.csr_array(X), LocalEngine(3, 7_777)),
            ]
        }
        assert len(found) == 1


def test_products_that_threads_share() -> None:
    """Beyond 128 columns threads without rows of their own make halves of the products of others."""
    generator = np.random.default_rng(0)
    X, weights = generator.normal(size=(3_003, 300)), generator.random(3_003)
    y = X.sum(axis=1) + generator.normal(size=len(X))
    for weight in (None, weights):
        found = {
            bits(array_source(layout, y, weight), options("exact", "order"), engine)
            for layout, engine in [
                (X, LocalEngine(1, 10_000)),
                (X, LocalEngine(2, 1_000)),
                (np.asfortranarray(X), LocalEngine(4, 777)),
                (sparse.csr_array(X), LocalEngine(3, 10_000)),
            ]
        }
        assert len(found) == 1


@settings(max_examples=40)
@given(
    rows=st.integers(1, 60),
    columns=st.integers(1, 6),
    method=st.sampled_from(["exact", "whole", "average"]),
    partition_by=st.sampled_from(["order", "shuffle"]),
    weighted=st.booleans(),
    blocks=st.lists(st.integers(1, 70), min_size=2, max_size=3),
    dtype=st.sampled_from([np.float64, np.float32, np.int16]),
    seed=st.integers(0, 2**32),
)
def test_tiny_data(
    rows: int,
    columns: int,
    method: str,
    partition_by: str,
    weighted: bool,
    blocks: list[int],
    dtype: Any,
    seed: int,
) -> None:
    generator = np.random.default_rng(seed)
    X = (10 * generator.normal(size=(rows, columns))).astype(dtype)
    y = generator.normal(size=(rows, 2))
    source = array_source(X, y, generator.random(rows) + 0.1 if weighted else None)
    wanted = options(method, partition_by, n_partitions=1, sketch_size=columns + 5)
    found = {bits(source, wanted, LocalEngine(2, block_rows)) for block_rows in blocks}
    assert len(found) == 1
    # The same numbers in another type give the same bits: everything is computed in float64.
    assert bits(array_source(X.astype(np.float64), y, source.weights), wanted, LocalEngine(1)) in found  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory, large: tuple[FloatArray, FloatArray, FloatArray]) -> Path:
    """Three Parquet files of unlike sizes and row groups; some values are missing."""
    folder = tmp_path_factory.mktemp("parquet")
    X, y, weights = large
    table = pa.table({**{f"x{i}": X[:, i] for i in range(5)}, "y": y, "w": weights, "site": np.arange(ROWS) // 5 % 4})
    for number, (start, stop, group) in enumerate(
        [(0, 100_000, 30_000), (100_000, 100_500, 100), (100_500, ROWS, 1_000_000)]
    ):
        pq.write_table(table.slice(start, stop - start), folder / f"part-{number}.parquet", row_group_size=group)
    return folder


@pytest.mark.parametrize("method", ["average", "partition"])
@pytest.mark.parametrize("partition_by", ["order", "shuffle", "file", "site"])
def test_parquet_files(files: Path, method: str, partition_by: str) -> None:
    wanted = options(method, partition_by)
    found = set()
    for engine in (LocalEngine(2, 32768), LocalEngine(3, 9_973), LocalEngine(1, 2**20)):
        source = open_source(
            str(files),
            target="y",
            features=[f"x{i}" for i in range(5)],
            weights="w",
            partition_column="site" if partition_by == "site" else None,
        )
        found.add(bits(source, wanted, engine))
    assert len(found) == 1


def test_files_and_arrays_give_the_same_bits(files: Path, large: tuple[FloatArray, FloatArray, FloatArray]) -> None:
    X, y, weights = large
    source = open_source(str(files), target="y", features=[f"x{i}" for i in range(5)], weights="w")
    table = pa.concat_tables([pq.read_table(path) for path in sorted(files.iterdir())])
    stream = open_source(table.to_reader(max_chunksize=1234), target="y", features=source.feature_names, weights="w")
    for method, partition_by in [("exact", "order"), ("partition", "order"), ("partition", "shuffle")]:
        wanted = options(method, partition_by)
        expected = bits(array_source(X, y, weights), wanted, ENGINES[0])
        assert bits(source, wanted, ENGINES[1]) == expected
    wanted = options("partition", "shuffle")
    assert bits(stream, wanted, ENGINES[0]) == bits(source, wanted, ENGINES[0])


@pytest.mark.parametrize("partition_by", ["order", "shuffle", "site"])
def test_dropped_rows(large: tuple[FloatArray, FloatArray, FloatArray], partition_by: str) -> None:
    """Rows keep their numbers when others are dropped, whole blocks of them included."""
    X, y, _ = large
    holes = y.copy()
    holes[::7] = np.nan
    holes[50_000:90_000] = np.nan
    table = pa.table({**{f"x{i}": X[:, i] for i in range(5)}, "y": holes, "site": np.arange(ROWS) // 5 % 4})
    found = set()
    for engine in ENGINES:
        source = open_source(
            table,
            target="y",
            features=[f"x{i}" for i in range(5)],
            partition_column="site" if partition_by == "site" else None,
            missing="drop",
        )
        fit = fit_source(source, options("partition", partition_by), engine)
        assert fit.model.record.rows_dropped == np.isnan(holes).sum()
        assert fit.model.record.row_count == np.isfinite(holes).sum()
        found.add(b"".join(summary.to_bytes() for summary in fit.summaries))
    assert len(found) == 1


def test_one_partition_and_one_sketch_of_the_whole_are_the_same(
    large: tuple[FloatArray, FloatArray, FloatArray],
) -> None:
    """k = 1: the same random numbers meet the same rows in the same order."""
    X, y, weights = large
    for given_weights in (None, weights):
        source = array_source(X, y, given_weights)
        fits = [
            fit_source(source, options(method, "order", n_partitions=1), ENGINES[0])
            for method in ("partition", "whole", "stack")
        ]
        assert len({fit.summaries[0].to_bytes() for fit in fits}) == 1
        assert len({fit.combination.coefficients.tobytes() for fit in fits}) == 1


def test_summaries_hold_every_row_once(large: tuple[FloatArray, FloatArray, FloatArray]) -> None:
    X, y, weights = large
    for method, partition_by in [("average", "shuffle"), ("partition", "order"), ("average", "order")]:
        fit = fit_source(array_source(X, y, weights), options(method, partition_by), ENGINES[0])
        assert sum(summary.row_count for summary in fit.summaries) == ROWS
        assert sum(summary.weight_sum for summary in fit.summaries) == pytest.approx(weights.sum(), rel=1e-12)
    whole = fit_source(array_source(X, y, weights), options("whole", "order"), ENGINES[0])
    assert [summary.row_count for summary in whole.summaries] == [ROWS] * 3
