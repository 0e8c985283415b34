"""Choice of columns, weights, partitions, encoding, missing values."""

from __future__ import annotations

import datetime
import decimal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partsketch import InputError
from partsketch.sources import Encoding, open_source
from partsketch.sources.arrow_values import as_texts
from tests.sources.kinds import delivered, matrix, read_table

DAY = datetime.date(2024, 3, 1)


def mixed() -> Any:
    return pa.table(
        {
            "age": [1.0, 2.0, None, 4.0, 5.0, float("nan")],
            "city": ["b", "a", "c", None, "b", "a"],
            "count": pa.array([1, 2, 3, 4, 5, 6], pa.uint8()),
            "flag": [True, False, True, False, True, False],
            "price": pa.array([decimal.Decimal("1.25")] * 6, pa.decimal128(8, 2)),
            "y": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
        }
    )


def writers(folder: Path) -> dict[str, Any]:
    """The same table in kinds that differ in how they say text and missing."""
    pq.write_table(mixed(), folder / "m.parquet", row_group_size=4)
    pyarrow.feather.write_feather(mixed(), str(folder / "m.feather"))
    pyarrow.csv.write_csv(mixed(), folder / "m.csv")
    plain = mixed().to_pandas()
    nullable = plain.assign(
        age=pd.array([1.0, 2.0, None, 4.0, 5.0, None], dtype="Float64"),
        count=plain["count"].astype("Int16"),
        flag=plain["flag"].astype("boolean"),
    )
    frame = pl.from_arrow(mixed())
    assert isinstance(frame, pl.DataFrame)
    return {
        "table": mixed(),
        "large text": mixed().set_column(1, "city", mixed()["city"].cast(pa.large_string())),
        "dictionary": mixed().set_column(1, "city", mixed()["city"].dictionary_encode()),
        "pandas": plain,
        "pandas categorical": nullable.assign(city=plain["city"].astype("category")),
        "polars": frame,
        "polars categorical": frame.with_columns(pl.col("city").cast(pl.Categorical)),
        "polars enum": frame.with_columns(pl.col("city").cast(pl.Enum(["z", "b", "c", "a"]))),
        "DuckDB": duckdb.connect().from_arrow(mixed()),
        "parquet": folder / "m.parquet",
        "feather": folder / "m.feather",
        "csv": folder / "m.csv",
    }


KINDS = [
    "table",
    "large text",
    "dictionary",
    "pandas",
    "pandas categorical",
    "polars",
    "polars categorical",
    "polars enum",
    "DuckDB",
    "parquet",
    "feather",
    "csv",
]


@pytest.mark.parametrize("kind", KINDS)
def test_text_is_encoded_and_incomplete_rows_are_dropped(kind: str, tmp_path: Path) -> None:
    data = writers(tmp_path)[kind]
    source = open_source(data, target="y", encode=True, missing="drop")
    # Level c occurs only in a row that is left out.
    assert source.encoding == Encoding((("city", ("a", "b")),), drop_first=True)
    assert source.feature_names == ("age", "city=b", "count", "flag", "price")
    expected = [[0, 1, 1, 1, 1, 1.25, 1], [1, 2, 0, 2, 0, 1.25, 2], [4, 5, 1, 5, 1, 1.25, 5]]
    np.testing.assert_array_equal(delivered(source), expected)
    blocks = list(source.read(block_rows=1))
    assert [len(block) for block in blocks] == [1, 1, 1, 0]
    assert [block.dropped for block in blocks] == [0, 0, 2, 1]
    assert sum(block.dropped for block in source.read(2, 4)) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_missing_values_are_reported_where_they_are(kind: str, tmp_path: Path) -> None:
    data = writers(tmp_path)[kind]
    file = f" ({data.name}, row 2)" if isinstance(data, Path) else ""
    message = f"Column 'age' has a missing value in row 2{file}: remove it or use missing='drop' (--missing drop)."
    with pytest.raises(InputError) as caught:
        read_table(data, target="y", encode=True)
    assert str(caught.value) == message
    with pytest.raises(InputError, match="Column 'city' has a missing value in row 3"):
        read_table(data, target="y", features=["city"], encode=True)


@pytest.mark.parametrize("kind", KINDS)
def test_text_is_refused_unless_asked_for(kind: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^Column 'city' \((text|categorical)\) is not numeric: name .*encode=True"):
        open_source(writers(tmp_path)[kind], target="y")
    assert read_table(writers(tmp_path)[kind], target="y", features=["count"]).shape == (6, 3)


@pytest.mark.parametrize("kind", KINDS)
def test_given_encoding_is_repeated(kind: str, tmp_path: Path) -> None:
    data = writers(tmp_path)[kind]
    encoding = Encoding((("city", ("a", "b", "c", "d")),), drop_first=False)
    source = open_source(data, features=["city"], encoding=encoding, missing="drop")
    assert source.feature_names == ("city=a", "city=b", "city=c", "city=d")
    np.testing.assert_array_equal(delivered(source)[:, 1:], np.eye(4)[[1, 0, 2, 1, 0]])
    with pytest.raises(InputError, match=r"Column 'city' has the level 'c' in row 2.* does not know"):
        read_table(data, features=["city"], encoding=Encoding((("city", ("a", "b")),)), missing="drop")
    with pytest.raises(InputError, match=r"Column 'city' .* is not numeric"):
        open_source(data, features=["city"], encoding=Encoding())


def write(table: Any, path: Path) -> Path:
    if path.suffix == ".parquet":
        pq.write_table(table, path)
    elif path.suffix == ".feather":
        pyarrow.feather.write_feather(table, str(path))
    else:
        pyarrow.csv.write_csv(table, path)
    return path


@pytest.mark.parametrize("extension", ["parquet", "feather", "csv"])
@pytest.mark.parametrize("empty_first", [True, False])
def test_a_file_without_values_in_a_text_column_says_nothing_of_its_type(
    extension: str, empty_first: bool, tmp_path: Path
) -> None:
    # pandas writes a column of nothing but None with the null type.
    empty = pa.table({"city": pa.nulls(3), "x": [1.0, 2.0, 3.0], "y": [4.0, 5.0, 6.0]})
    text = pa.table({"city": ["a", "b", "a"], "x": [7.0, 8.0, 9.0], "y": [1.0, 2.0, 3.0]})
    tables = [empty, text] if empty_first else [text, empty]
    paths = [write(table, tmp_path / f"{name}.{extension}") for name, table in zip("mn", tables, strict=True)]
    source = open_source(paths, target="y", encode=True, missing="drop")
    assert source.feature_names == ("city=b", "x")
    np.testing.assert_array_equal(delivered(source)[:, 1:], [[0, 7, 1], [1, 8, 2], [0, 9, 3]])
    row = 0 if empty_first else 3
    with pytest.raises(InputError, match=rf"Column 'city' has a missing value in row {row} "):
        read_table(paths, target="y", encode=True)
    with pytest.raises(InputError, match=r"^Column 'city' \(text\) is not numeric: name .*encode=True"):
        read_table(paths, target="y", missing="drop")
    by_city = open_source(paths, target="y", partition_column="city", missing="drop")
    assert by_city.partition_values == ("a", "b")
    assert delivered(by_city).shape == (3, 3)


@pytest.mark.parametrize("extension", ["parquet", "feather"])
def test_types_are_compared_with_the_first_file_that_declares_one(extension: str, tmp_path: Path) -> None:
    columns = [pa.nulls(2), pa.array([1.0, 2.0]), pa.array(["a", "b"])]
    paths = [
        write(pa.table({"x": column, "y": [1.0, 2.0]}), tmp_path / f"{name}.{extension}")
        for name, column in zip("mno", columns, strict=True)
    ]
    message = rf"^Column 'x' is text in o.{extension} but double in n.{extension}: give it the same type in all files.$"
    with pytest.raises(InputError, match=message):
        open_source(paths, target="y", missing="drop")


def test_encoding_knows_its_columns() -> None:
    encoding = Encoding((("city", ("a", "b", "c")),))
    assert encoding.source_columns(["age", "city=b", "city=c", "y"]) == ("age", "city", "y")
    assert encoding.indicator_names("city") == ("city=b", "city=c")


def test_encoding_covers_columns_that_now_look_like_numbers(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("zip,y\n07,1\n12,2\n")
    encoding = Encoding((("zip", ("07", "12", "x")),), drop_first=False)
    rows = read_table(tmp_path / "a.csv", features=["zip"], encoding=encoding)
    np.testing.assert_array_equal(rows[:, 1:], [[1, 0, 0], [0, 1, 0]])


@settings(max_examples=40, deadline=None)
@given(
    data=st.lists(st.tuples(st.sampled_from([1.0, None]), st.sampled_from("ab")), min_size=1), rows=st.integers(1, 9)
)
def test_no_row_is_lost_when_some_are_dropped(data: list[tuple[float | None, str]], rows: int) -> None:
    table = pa.table({"x": pa.array([x for x, _ in data], pa.float64()), "g": [g for _, g in data]})
    source = open_source(table, features=["x"], missing="drop")
    blocks = list(source.read(block_rows=rows))
    assert sum(len(block) + block.dropped for block in blocks) == len(data)
    kept = [i for i, (x, _) in enumerate(data) if x is not None]
    assert [number for block in blocks for number in block.row_numbers.tolist()] == kept


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        (pa.array([10, 9, 10, 9]), ("9", "10")),
        (pa.array([2**63 + 1, 2**63, 7, 7], pa.uint64()), ("7", str(2**63), str(2**63 + 1))),
        (pa.array([0.5, 2.0, 0.5, 2.0]), ("0.5", "2")),
        (pa.array(["10", "9", "9", "9"]), ("9", "10")),
        (pa.array(["b", "a", "b", "9"]), ("9", "a", "b")),
        (pa.array(["b", "a", "b", "a"]).dictionary_encode(), ("a", "b")),
        (pa.array([True, False, True, True]), ("false", "true")),
        (pa.array([DAY, DAY.replace(day=2), DAY, DAY]), ("2024-03-01", "2024-03-02")),
    ],
)
def test_partition_columns_of_any_type(values: Any, texts: tuple[str, ...], tmp_path: Path) -> None:
    table = pa.table({"x": np.arange(4.0), "site": values, "y": np.ones(4)})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=3)
    pyarrow.csv.write_csv(table.set_column(1, "site", values.cast(pa.string())), tmp_path / "a.csv")
    for data in (table, tmp_path / "a.parquet", tmp_path / "a.csv"):
        source = open_source(data, target="y", partition_column="site")
        assert source.feature_names == ("x",)
        assert source.partition_values == texts if data != tmp_path / "a.csv" else True
        labels = np.concatenate([block.labels for block in source.read(block_rows=3) if block.labels is not None])
        assert labels.dtype == np.int64
        found = [source.partition_values[label] for label in labels]
        expected = ["2" if text == "2.0" else text for text in values.cast(pa.string()).to_pylist()]
        assert [text.removesuffix(".0") for text in found] == expected


def test_partition_column_may_be_a_feature_too() -> None:
    X = matrix()
    source = open_source(X, target=1, features=["x0", "x3"], partition_column="x3")
    assert source.partition_values == ("0", "1", "2", "3", "4")
    (block,) = source.read()
    assert block.labels is not None
    np.testing.assert_array_equal(block.labels, X[:, 3])
    np.testing.assert_array_equal(delivered(source)[:, 2], X[:, 3])


def test_missing_partition_is_a_missing_value() -> None:
    table = pa.table({"x": [1.0, 2.0], "site": ["a", None]})
    with pytest.raises(InputError, match="Column 'site' has a missing value in row 1"):
        read_table(table, partition_column="site")
    source = open_source(table, partition_column="site", missing="drop")
    assert delivered(source).shape == (1, 2)


def test_several_targets_weights_and_positions() -> None:
    X = matrix()
    source = open_source(X, target=[-1, "x0"])
    assert source.target_names == ("x3", "x0")
    np.testing.assert_array_equal(delivered(source)[:, 1:], X[:, [1, 2, 3, 0]])
    weighted = open_source(np.abs(X), target="x0", weights="x3")
    (block,) = weighted.read()
    assert weighted.has_weights
    assert weighted.feature_names == ("x1", "x2")
    np.testing.assert_array_equal(block.weights, X[:, 3])


def test_huge_values_are_not_infinite() -> None:
    X = np.full((10, 2), 1e308)
    np.testing.assert_array_equal(read_table(X)[:, 1:], X)


def test_csv_columns_whose_first_rows_mislead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("partsketch.sources.files.csv_stream.BLOCK_BYTES", 64)
    top = "".join(f"{i},,true,1\n" for i in range(50))
    (tmp_path / "a.csv").write_text("whole,empty,flag,y\n" + top + "1.5,2.5,0.25,1\n7,3,false,1\n")
    source = open_source(tmp_path / "a.csv", target="y", missing="drop")
    np.testing.assert_array_equal(delivered(source)[:, 1:], [[1.5, 2.5, 0.25, 1], [7, 3, 0, 1]])
    assert sum(block.dropped for block in source.read()) == 50


def test_integers_and_decimals_may_mix_between_files(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1, 2], "y": [1.0, 2.0]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"x": [1.5], "y": [1]}), tmp_path / "b.parquet")
    np.testing.assert_array_equal(read_table(tmp_path, target="y")[:, 1], [1, 2, 1.5])


def test_structured_arrays_with_text() -> None:
    rows = np.array([(1.0, "a", 2), (2.0, "b", 3)], dtype=[("x", "f8"), ("g", "U1"), ("y", "i4")])
    source = open_source(rows, target="y", encode=True)
    assert source.feature_names == ("x", "g=b")
    np.testing.assert_array_equal(delivered(source)[:, 1:], [[1, 0, 2], [2, 1, 3]])


def test_columns_of_a_data_frame_may_be_numbers() -> None:
    frame = pd.DataFrame(matrix())
    np.testing.assert_array_equal(read_table(frame, target=1)[:, 1:], matrix()[:, [0, 2, 3, 1]])


def test_features_may_be_a_range() -> None:
    np.testing.assert_array_equal(read_table(matrix(), target=3, features=range(2))[:, 1:], matrix()[:, [0, 1, 3]])


def test_too_many_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("partsketch.sources.levels.MOST_LEVELS", 2)
    with pytest.raises(InputError, match="Column 'id' has more than 2 distinct values, too many to encode"):
        open_source(pa.table({"id": ["a", "b", "c"]}), encode=True)


@pytest.mark.parametrize(
    "path", ["file://{}/a%20b.csv", "file://{}/*%20b.csv", "file://{}", "{}/[a] b.csv", "{}/**/a*.csv"]
)
def test_paths_with_spaces_and_brackets(path: str, tmp_path: Path) -> None:
    (tmp_path / ("[a] b.csv" if "[" in path else "a b.csv")).write_text("x\n1\n")
    assert read_table(path.format(tmp_path)).shape == (1, 2)


def test_parts_read_by_threads_agree(tmp_path: Path) -> None:
    table = pa.table({f"c{i}": np.random.default_rng(i).random(20_000) for i in range(5)})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=3_000)
    source = open_source(tmp_path / "a.parquet", target="c0")
    assert source.boundaries == tuple(range(0, 20_000, 3_000))
    edges = [*source.boundaries, 20_000]
    with ThreadPoolExecutor(4) as pool:
        parts = list(pool.map(lambda i: delivered(source, edges[i], edges[i + 1], 1_000), range(len(edges) - 1)))
    np.testing.assert_array_equal(np.concatenate(parts), delivered(source))


def test_a_category_that_is_itself_missing_is_missing() -> None:
    """Arrow allows a null among the categories, beside nulls among the codes: both are missing values."""
    column = pa.DictionaryArray.from_arrays(pa.array([1, 0, None, 2, 1]), pa.array(["a", None, "b"]))
    codes, texts = as_texts(column)
    assert [None if code < 0 else texts[code] for code in codes.tolist()] == [None, "a", None, "b", None]
