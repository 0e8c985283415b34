"""Values of a partition column: numbers, texts and missing ones, in every kind of storage."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from scipy import sparse

from partsketch import InputError, SketchedRegression, summarise
from partsketch.sources import Source, open_source
from partsketch.sources.arrow_values import as_texts, distinct_texts
from partsketch.sources.column_source import ColumnSource
from partsketch.sources.keys import distinct
from partsketch.sources.levels import PartitionColumn, distinct_keys, sorted_keys
from partsketch.sources.memory.tables import table_rows

KEYS = [3.0, float("nan"), 1.0, 3.0, 10.0, float("nan"), 1.0, 10.0]
ROWS = len(KEYS)


def table() -> pa.Table:
    return pa.table({"a": np.arange(ROWS, dtype=float), "key": KEYS, "y": np.arange(ROWS, dtype=float) * 2})


def stored(kind: str, folder: Path) -> Any:
    if kind == "parquet":
        pq.write_table(table(), folder / "a.parquet")
        return str(folder / "a.parquet")
    if kind == "csv":
        pyarrow.csv.write_csv(table(), folder / "a.csv")
        return str(folder / "a.csv")
    nulls = pa.array([None if np.isnan(key) else key for key in KEYS])
    return {
        "table": table(),
        "nulls": table().set_column(1, "key", nulls),
        "pandas": table().to_pandas(),
        "polars": pl.DataFrame(table().to_pandas()),
        "array": np.column_stack([table()[name].to_numpy() for name in ("a", "key", "y")]),
        "sparse": sparse.csr_array(np.column_stack([table()[name].to_numpy() for name in ("a", "key", "y")])),
    }[kind]


@pytest.mark.parametrize("kind", ["table", "nulls", "pandas", "polars", "array", "sparse", "parquet", "csv"])
def test_not_a_number_is_no_partition(kind: str, tmp_path: Path) -> None:
    """It is a missing value: an error that names its row, or a row that is dropped."""
    positional = kind in ("array", "sparse")
    names: dict[str, Any] = {
        "target": "x2" if positional else "y",
        "features": ["x0" if positional else "a"],
        "partition_column": "x1" if positional else "key",
    }
    with pytest.raises(InputError, match="missing value in row 1"):
        for _ in open_source(stored(kind, tmp_path), **names).read():
            pass
    source = open_source(stored(kind, tmp_path), **names, missing="drop")
    assert source.partition_values == ("1", "3", "10")
    assert_dropped(source, 65536)
    # Blocks of three rows: what belongs to later rows is not that of the first.
    assert_dropped(source, 3)


def assert_dropped(source: Source, block_rows: int) -> None:
    blocks = list(source.read(0, None, block_rows))
    labels = np.concatenate([block.labels for block in blocks if block.labels is not None])
    numbers = np.concatenate([block.row_numbers for block in blocks])
    assert labels.tolist() == [1, 0, 1, 2, 0, 2]
    assert numbers.tolist() == [0, 2, 3, 4, 6, 7]
    assert sum(block.dropped for block in blocks) == 2


def test_keys_that_are_not_there_are_not_among_the_values() -> None:
    values = np.array([2.0, np.nan, 1.0])
    assert distinct_keys(values, None) == {1.0, 2.0}
    assert distinct_keys(values, np.array([True, True, False])) == {2.0}
    labels, missing = PartitionColumn("key", (1.0, 2.0)).labels(values)
    assert missing is not None
    assert missing.tolist() == [False, True, False]
    assert labels[[0, 2]].tolist() == [1, 0]
    assert sorted_keys({"10", "9", "1"}) == ("1", "9", "10")
    assert sorted_keys({"b", "10", "9"}) == ("10", "9", "b")
    assert sorted_keys({"nan", "2", "10"}) == ("10", "2", "nan")


def test_keys_at_both_ends_of_whole_numbers() -> None:
    for keys in (np.array([2**63 - 3, 2**63 - 1]), np.array([-(2**63), 5 - 2**63])):
        column = PartitionColumn("key", keys)
        np.testing.assert_array_equal(column.labels(keys[[1, 0, 1]])[0], [1, 0, 1])
        for other in (0, int(keys[0]) + 1, -int(keys[0] // 2)):
            with pytest.raises(InputError, match=f"'{other}' that was not there"):
                column.labels(np.array([keys[1], other]))


def test_large_whole_numbers_are_not_confused() -> None:
    """2⁶³ + 1 and 2⁶³ are one double, and two partitions."""
    big = np.array([2**63 + 1, 2**63, 2**63 + 1, 5], dtype=np.uint64)
    keys = sorted_keys(distinct_keys(big, None))
    assert keys == (5, 2**63, 2**63 + 1)
    labels, missing = PartitionColumn("key", keys).labels(big)
    assert labels.tolist() == [2, 1, 2, 0]
    assert missing is None
    array = np.column_stack([np.arange(4), [2**62 + 1, 2**62, 2**62 + 1, 5], np.arange(4)])
    source = open_source(array, target="x2", features=["x0"], partition_column="x1")
    (block,) = source.read()
    assert block.labels is not None
    assert block.labels.tolist() == [2, 1, 2, 0]
    with pytest.raises(InputError, match="'7' that was not there"):
        PartitionColumn("key", (5, 6)).labels(np.array([5, 7]))
    with pytest.raises(InputError, match="'4' that was not there"):
        PartitionColumn("key", (5, 6)).labels(np.array([4, 6]))


def test_missing_among_the_categories_of_a_column() -> None:
    """A dictionary may hold a null itself: rows that point to it have no value, whatever their code."""
    column = pa.DictionaryArray.from_arrays(pa.array([1, 0, 2, None]), pa.array(["a", None, "b"]))
    codes, texts = as_texts(column)
    assert [texts[code] if code >= 0 else None for code in codes.tolist()] == [None, "a", "b", None]
    assert distinct_texts(column, None) == {"a", "b"}


def test_an_estimator_names_the_row_of_a_missing_partition() -> None:
    frame = pd.DataFrame({"a": np.arange(40.0), "site": ["n", "s"] * 20})
    frame.loc[23, "site"] = None
    with pytest.raises(InputError, match="row 23"):
        SketchedRegression("average", partition_by="site").fit(frame, np.arange(40.0))
    numbers = pd.DataFrame({"a": np.arange(40.0), "site": [1.0, 2.0] * 20})
    numbers.loc[31, "site"] = np.nan
    with pytest.raises(InputError, match="row 31"):
        SketchedRegression("average", partition_by="site").fit(numbers, np.arange(40.0))


def test_numbers_close_together_and_far_apart_are_found_alike() -> None:
    """By a table or by sorting; the range of the least and largest number does not overflow."""
    rng = np.random.default_rng(5)
    for numbers in (
        rng.integers(-50, 50, 1000),
        rng.integers(-(2**62), 2**62, 1000),
        np.array([-(2**63), 2**63 - 1, 0, 0]),
        np.array([2**63 - 1, 2**63 - 2]),
    ):
        np.testing.assert_array_equal(distinct(numbers), np.unique(numbers))
        # Of several parts, the largest in the last, and none in one of them.
        parts = np.split(np.sort(numbers), [len(numbers) // 3, len(numbers) // 3])
        np.testing.assert_array_equal(distinct(*parts, numbers[:1]), np.unique(numbers))
    assert distinct().dtype == distinct(np.empty(0, np.int64)).dtype == np.int64


@pytest.mark.parametrize("reach", [1, 63, 64, 65, 1000])
def test_labels_count_the_values_below(reach: int) -> None:
    """Values lie in words of 64 bits; numbers between them, or outside, are none."""
    rng = np.random.default_rng(reach)
    values = np.unique(np.concatenate([[-7, reach - 7], rng.integers(-7, reach - 6, reach // 2)]))
    column, rows = PartitionColumn("key", values), rng.permutation(np.repeat(values, 2))
    labels, missing = column.labels(rows)
    np.testing.assert_array_equal(labels, np.searchsorted(values, rows))
    assert missing is None
    for other in {-8, reach - 6, *range(-7, reach - 6)} - set(values.tolist()):
        with pytest.raises(InputError, match=f"the value '{other}' that was not there"):
            column.labels(np.append(rows, other))


def test_texts_of_a_table_become_codes_once() -> None:
    """Of few values; those of many stay as they are. Missing ones stay missing, and a slice has codes of its own."""
    few = ["b", None, "a"] * 2000
    rows: Any = table_rows(pa.table({"few": few, "many": [str(i) for i in range(6000)], "x": range(6000)}))
    chosen = rows.choose(["x", "few", "many"], ["few", "many"])
    types = {name: chosen.table.schema.field(name).type for name in ("few", "many", "x")}
    assert pa.types.is_dictionary(types["few"])
    assert (types["many"], types["x"]) == (pa.string(), pa.int64())
    assert chosen.table["few"].to_pylist() == few
    assert rows.choose(["few"], ["few", "many"]).table["few"].chunk(0).equals(chosen.table["few"].chunk(0))
    assert rows.sliced(1, 4).choose(["few"], ["few"]).table["few"].to_pylist() == [None, "a", "b"]


@pytest.mark.parametrize("keys", [[1, 1, 2, 2, 2, 3], [*"aabbbc"], [1.5, 1.5, 2.0, 2.0, 2.0, 3.0]])
def test_a_value_of_dropped_rows_alone_is_no_partition(keys: list[Any]) -> None:
    table = pa.table({"x": [1.0, 2.0, 3.0, 4.0, 6.0, None], "y": [1.0, 3.0, 2.0, 5.0, 4.0, 1.0], "key": keys})
    made = summarise(table, ["x", "y"], partition_by="key", missing="drop")
    assert [summary.row_count for summary in made.factors] == [2, 3]


def test_rows_that_are_taken_keep_their_partitions() -> None:
    source = open_source(table(), target="y", features=["a"], partition_column="key", missing="drop")
    (block,) = source.read()
    assert block.labels is not None
    positions = np.array([3, 1])
    taken = block.take(positions).labels
    assert taken is not None
    np.testing.assert_array_equal(taken, block.labels[positions])
    assert len(set(taken)) == 2


@pytest.mark.parametrize("kind", ["numbers", "texts", "whole", "feature"])
def test_labels_that_every_row_has_need_not_be_read_again(kind: str, tmp_path: Path) -> None:
    """A column of labels alone is left in the file by who wants none of them, unless a value may be missing."""
    kinds: dict[str, list[Any]] = {"numbers": [1.5, 2.5] * 4, "texts": ["a", "b"] * 4}
    labels = kinds.get(kind, [1, 2] * 4)
    names: dict[str, Any] = {"target": "y", "features": ["key", "a"] if kind == "feature" else ["a"]}
    for first in (labels[0], None):
        keys = pa.array([first, *labels[1:]])
        pq.write_table(table().set_column(1, "key", keys), tmp_path / "a.parquet")
        source = open_source(tmp_path / "a.parquet", partition_column="key", missing="drop", **names)
        without = source.leaving_labels()
        assert isinstance(without, ColumnSource)
        assert ("key" in without.selection.used) == (kind == "feature" or first is None)
        blocks = list(without.read())
        assert all(block.labels is None for block in blocks)
        assert sum(len(block) for block in blocks) == ROWS - int(first is None)
        assert sum(block.dropped for block in blocks) == int(first is None)


@pytest.mark.parametrize("kind", ["numbers", "whole", "texts"])
@pytest.mark.parametrize("missing", ["error", "drop"])
def test_labels_that_were_held_are_those_of_the_file(kind: str, missing: str, tmp_path: Path) -> None:
    """Numbers that were looked through at opening are not decoded again, in whatever blocks; they do not travel."""
    rng = np.random.default_rng(0)
    count = 5000
    kinds = {"numbers": rng.integers(0, 50, count) / 2, "whole": rng.integers(-(2**60), 2**60, count)}
    keys = kinds.get(kind, np.array(["a", "bb", "ccc"])[rng.integers(0, 3, count)])
    gone = rng.uniform(size=count) < (0.1 if missing == "drop" else 0.0)
    rows = pa.table({"a": pa.array(rng.normal(size=count), mask=gone), "key": keys, "y": rng.normal(size=count)})
    pq.write_table(rows, tmp_path / "a.parquet", row_group_size=700)
    names: dict[str, Any] = {"target": "y", "features": ["a"], "partition_column": "key", "missing": missing}
    source = open_source(tmp_path / "a.parquet", **names)
    assert isinstance(source, ColumnSource)
    assert (source.labels[0].held is None) == (kind == "texts")
    travelled = pickle.loads(pickle.dumps(source))
    assert travelled.labels[0].held is None
    for start, stop, block_rows in ((0, None, 311), (650, 2900, 1000), (4999, 5000, 7)):
        known = np.searchsorted(np.unique(keys[~gone]), keys[start:stop][~gone[start:stop]])
        for each in (source, travelled):
            labels: list[Any] = [block.labels for block in each.read(start, stop, block_rows)]
            np.testing.assert_array_equal(np.concatenate(labels), known)
