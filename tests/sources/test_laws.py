"""Rows are the same whatever holds them and however they are read."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from partsketch import InputError
from partsketch.sources import Source, array_source, open_source
from tests.sources.kinds import KINDS, ROWS, delivered, matrix

EXPECTED = np.column_stack([np.arange(ROWS), matrix()[:, [0, 2, 3, 1]]])
_sources: dict[str, Source] = {}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kinds")


def opened(kind: str, folder: Path) -> Source:
    if kind == "reader":
        return open_source(KINDS[kind](folder), target="x1")
    if kind not in _sources:
        _sources[kind] = open_source(KINDS[kind](folder), target="x1")
    return _sources[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_same_values_in_every_kind(kind: str, folder: Path) -> None:
    source = opened(kind, folder)
    assert source.feature_names == ("x0", "x2", "x3")
    assert source.target_names == ("x1",)
    assert not source.has_weights
    assert source.partition_values == ()
    np.testing.assert_array_equal(delivered(source), EXPECTED)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=15, deadline=None)
@given(cuts=st.lists(st.integers(0, ROWS), max_size=4), block_rows=st.integers(1, ROWS + 5))
def test_any_ranges_and_block_sizes(kind: str, folder: Path, cuts: list[int], block_rows: int) -> None:
    edges = sorted([0, *cuts, ROWS])
    parts = [
        delivered(opened(kind, folder), start, stop, block_rows)
        for start, stop in zip(edges[:-1], [*edges[1:-1], None], strict=True)
    ]
    np.testing.assert_array_equal(np.concatenate(parts), EXPECTED)


@pytest.mark.parametrize("kind", KINDS)
def test_counting(kind: str, folder: Path) -> None:
    source = opened(kind, folder)
    if not source.replayable:
        assert source.row_count is None
        with pytest.raises(InputError, match="only once cannot be counted"):
            source.counted()
        return
    counted = source.counted()
    assert counted.row_count == ROWS
    if counted.files:
        starts = [part.start for part in counted.files]
        stops = [part.stop for part in counted.files]
        assert starts == [0, *stops[:-1]]
        assert stops[-1] == ROWS
    assert all(0 <= boundary < ROWS for boundary in counted.boundaries)
    np.testing.assert_array_equal(delivered(counted, 50, 60, 3), EXPECTED[50:60])
    # At the borders of files, which are passed over once their rows are counted.
    for border in {ROWS, *(part.stop or 0 for part in counted.files)}:
        for start in (border - 1, border):
            np.testing.assert_array_equal(delivered(counted, start, start + 1), EXPECTED[start : start + 1])


@pytest.mark.parametrize("kind", ["npy", "npy files", "parquet files", "csv", "csv files", "feather", "URI"])
def test_pickled_sources_read_the_same(kind: str, folder: Path) -> None:
    text = pickle.dumps(opened(kind, folder))
    assert len(text) < 10_000
    np.testing.assert_array_equal(delivered(pickle.loads(text)), EXPECTED)


@pytest.mark.parametrize("kind", ["array", "CSR", "pandas", "parquet groups", "csv"])
@settings(max_examples=20, deadline=None)
@given(positions=st.sets(st.integers(0, ROWS - 1)), begin=st.integers(0, ROWS), data=st.data())
def test_take_and_parts_of_blocks(kind: str, folder: Path, positions: set[int], begin: int, data: Any) -> None:
    (block,) = open_source(opened_data(kind, folder), target="x1", weights="x3", partition_column="x3").read()
    chosen = block.take(np.array(sorted(positions), dtype=np.int64))
    out = np.empty((3, len(chosen)))
    chosen.copy_into(out, 0, len(chosen))
    expected = matrix()[sorted(positions)]
    np.testing.assert_array_equal(out, expected[:, [0, 2, 1]].T)
    assert chosen.weights is not None
    assert chosen.labels is not None
    np.testing.assert_array_equal(chosen.weights, expected[:, 3])
    np.testing.assert_array_equal(chosen.labels, expected[:, 3])
    end = data.draw(st.integers(begin, ROWS))
    part = np.empty((3, end - begin))
    block.copy_into(part, begin, end)
    np.testing.assert_array_equal(part, matrix()[begin:end][:, [0, 2, 1]].T)


def opened_data(kind: str, folder: Path) -> Any:
    name = {"parquet groups": "groups-1000.parquet", "csv": "a.csv"}.get(kind)
    if name is None:
        return KINDS[kind](folder)
    KINDS["parquet" if kind == "parquet groups" else kind](folder)
    return folder / name


@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "?"])
@pytest.mark.parametrize("make", [np.ascontiguousarray, np.asfortranarray, sparse.csr_array, sparse.csc_matrix])
def test_array_source(make: Any, dtype: str) -> None:
    X = np.round(matrix() * 3).astype(dtype)
    y = matrix()[:, :2]
    source = array_source(make(X), y, sample_weight=np.arange(ROWS))
    assert source.target_names == ("y0", "y1")
    assert source.has_weights
    np.testing.assert_array_equal(delivered(source, 0, None, 7)[:, 1:], np.column_stack([X, y]))
    weights = [block.weights for block in source.read(3, 20, 5)]
    np.testing.assert_array_equal(np.concatenate(weights), np.arange(3, 20))  # type: ignore[arg-type]


def test_array_source_makes_views_and_does_not_check() -> None:
    X = matrix()
    X[3, 1] = np.nan
    block = next(iter(array_source(X, None).read(2, 8)))
    assert np.shares_memory(block.features, X)  # type: ignore[attr-defined]
    assert block.sparse_features is None


def test_sparse_blocks_offer_their_rows() -> None:
    block = next(iter(array_source(sparse.csr_array(matrix()), matrix()[:, 0]).read(10, 30)))
    rows = block.sparse_features
    dense = sparse.csr_array((rows.data, rows.indices, rows.indptr), shape=(20, rows.width)).toarray()
    np.testing.assert_array_equal(dense, matrix()[10:30])


def test_duplicate_sparse_entries_add_up() -> None:
    given_matrix = sparse.csr_array(([1.0, 2.0], [0, 0], [0, 2]), shape=(1, 1))
    assert delivered(array_source(given_matrix, None))[0, 1] == 3.0
    assert given_matrix.nnz == 2


def test_importing_sources_does_not_load_pyarrow() -> None:
    code = "import sys, partsketch.sources; sys.exit('pyarrow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
