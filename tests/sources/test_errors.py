"""Every refusal is one sentence that names the culprit."""

from __future__ import annotations

import datetime
import errno
import gzip
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

from partsketch import InputError
from partsketch.common.errors import UnreadableError
from partsketch.sources import array_source, open_source
from partsketch.sources.files.filesystems import reading
from partsketch.sources.memory.matrices import NpyPart
from tests.sources.kinds import read_table

TABLE = pa.table({"age": [1.0, 2.0], "fare": [3.0, 4.0], "when": [datetime.date(2024, 1, 1)] * 2})
NAN, INF = float("nan"), float("inf")


def refused(message: str, data: Any, **options: Any) -> None:
    with pytest.raises(InputError) as caught:
        read_table(data, **options)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith((".", "?"))


@pytest.mark.parametrize(
    ("message", "options"),
    [
        ("There is no target column 'fair' in the data: did you mean 'fare'?", {"target": "fair"}),
        ("no target column 'zzz' in the data: the columns are 'age', 'fare' and 'when'.", {"target": "zzz"}),
        ("There is no feature column 'agee'", {"features": ["agee"]}),
        ("There is no weights column 'w'", {"weights": "w"}),
        ("There is no column 'w'", {"partition_column": "w"}),
        ("'fare' is listed more than once as target", {"target": ["fare", "fare"]}),
        ("'age' is listed more than once as feature", {"features": ["age", "age"]}),
        ("'fare' is both the target and a feature", {"target": "fare", "features": ["fare", "age"]}),
        ("'age' is both the weights and a feature", {"weights": "age", "features": ["age"]}),
        ("'fare' cannot be a target and the weights", {"target": "fare", "weights": "fare"}),
        (
            "Column 'when' (date) is not numeric: name numeric columns (--features",
            {"target": "fare", "features": ["age", "when"]},
        ),
        ("Column 'when' (date) is not numeric", {"target": "fare", "features": ["age", "when"], "encode": True}),
        ("Column 'when' (date) is not numeric", {"target": "when", "features": ["age"]}),
        ("list of features is empty", {"features": []}),
        ("No column is left for the features", {"target": ["age", "fare", "when"]}),
        ("missing is 'ignore'", {"missing": "ignore"}),
    ],
)
def test_names_and_types(message: str, options: dict[str, Any]) -> None:
    refused(message, TABLE, **options)


def test_all_columns_that_are_not_numeric_are_named() -> None:
    table = TABLE.append_column("city", pa.array(["a", "b"])).append_column("at", pa.array([0, 1], pa.timestamp("s")))
    names = ["age", "when", "city", "at"]
    refused("Columns 'when' (date), 'city' (text) and 'at' (timestamp)", table, target="fare", features=names)


@pytest.mark.parametrize(
    ("message", "data"),
    [
        ("The array has 1 dimension(s): it must have two", np.ones(3)),
        ("The array has 3 dimension(s)", np.ones((3, 1, 1))),
        ("is a masked array", np.ma.masked_invalid([[1.0, NAN]])),
        ("complex numbers", np.ones((3, 2), dtype=complex)),
        ("Python objects", np.array([[1, None]], dtype=object)),
        ("has the type <U1: only numbers", np.array([["a"]])),
        ("has no columns", np.ones((3, 0))),
        ("has no rows", np.ones((0, 3))),
        ("The sparse array has no rows", sparse.csr_array((0, 3))),
        ("has no rows", pa.table({"x": pa.array([], pa.float64())})),
        ("has no rows", pa.table({"x": pa.array([], pa.float64())}).to_reader()),
        ("has no columns", pa.table({})),
        ("more than one column named 'x'", pa.table([[1.0], [2.0]], names=["x", "x"])),
        ("cannot be opened", 3.5),
        ("cannot be opened", [[1.0, 2.0]]),
        ("is not a table", pd.Series([1.0])),
        ("cannot be read as a table", pd.DataFrame({"a": [1, "x"]})),
        ("cannot be read as a table", pl.Series([1.0])),
        ("list of files is empty", []),
    ],
)
def test_shapes_and_types_of_data(message: str, data: Any) -> None:
    refused(message, data)


def test_array_source_refuses_what_cannot_be_used() -> None:
    X = np.ones((3, 2))
    cases: list[tuple[str, tuple[Any, ...]]] = [
        ("X is ragged", ([[1.0], [1.0, 2.0]], None)),
        ("X has 1 dimension", (np.ones(3), None)),
        ("X holds complex", (X * 1j, None)),
        ("y has 3 dimensions", (X, np.ones((3, 1, 1)))),
        ("X has 3 rows but y has 2", (X, np.ones(2))),
        ("sample_weight is -1.0 in row 1", (X, np.ones(3), [1, -1, 1])),
        ("sample_weight is nan in row 2", (X, np.ones(3), [1, 1, NAN])),
        ("sample_weight has the shape", (X, np.ones(3), [1, 1])),
        ("names for them", (X, np.ones(3), None, ["a"])),
        ("The sparse array holds complex", (sparse.csr_array(X * 1j), None)),
    ]
    for message, arguments in cases:
        with pytest.raises(InputError, match=message):
            array_source(*arguments)


@pytest.mark.parametrize(
    "convert", [np.asarray, sparse.csr_array, lambda x: pa.table(dict(zip("ab", x.T, strict=True)))]
)
def test_the_first_value_that_is_not_finite_is_named(convert: Any) -> None:
    def first(values: list[list[float]]) -> str:
        with pytest.raises(InputError) as caught:
            read_table(convert(np.array(values)), missing="error")
        return str(caught.value).replace("'a'", "'x0'").replace("'b'", "'x1'")

    assert first([[1, 2], [1, NAN], [INF, 2]]).startswith("Column 'x1' has a missing value in row 1:")
    assert first([[1, 2], [1, INF], [NAN, 2]]) == "Column 'x1' has an infinite value in row 1: remove or replace it."
    assert first([[1, 2], [1, -INF], [INF, 2]]).startswith("Column 'x1' has an infinite value in row 1:")
    assert first([[1, 2], [INF, NAN], [-INF, 2]]).startswith("Column 'x0' has an infinite value in row 1:")
    with pytest.raises(InputError, match="infinite value in row 2"):
        read_table(convert(np.array([[1, NAN], [1, 2], [1, INF]])), missing="drop")


def test_sparse_rows_with_missing_values_can_be_dropped() -> None:
    data = np.array([[1.0, NAN, 5], [2, 0, 5], [3, 1, 6], [NAN, 1, 7]])
    source = open_source(sparse.csr_array(data), target="x1", partition_column="x2", missing="drop")
    assert source.partition_values == ("5", "6")
    blocks = list(source.read(block_rows=1))
    assert [(len(block), block.dropped) for block in blocks] == [(1, 1), (1, 0), (0, 1)]


@pytest.mark.parametrize("value", [-1.0, NAN])
def test_bad_weights(value: float) -> None:
    data = np.array([[1.0, 1.0], [1.0, value]])
    refused("'x1' has " + ("a missing value" if value != value else "the value -1.0"), data, weights="x1")
    if value < 0:
        refused("in row 1: weights must not be negative", sparse.csr_array(data), weights="x1")


def test_streams_are_read_once() -> None:
    table = pa.table({"x": [1.0], "g": ["a"]})
    source = open_source(table.to_reader(), features=["x"])
    list(source.read())
    with pytest.raises(InputError, match="can be read only once"):
        list(source.read())
    refused("Encoding text needs a pass", table.to_reader(), encode=True)
    refused("A partition column needs a pass", table.to_reader(), partition_column="g")


class TestFiles:
    def test_paths(self, tmp_path: Path) -> None:
        refused("nowhere.parquet does not exist.", tmp_path / "nowhere.parquet")
        refused("does not exist.", (tmp_path / "nowhere.parquet").as_uri())
        refused("No file matches", str(tmp_path / "*.parquet"))
        refused("No file matches", tmp_path.as_uri() + "/none/*.parquet")
        (tmp_path / "_hidden.csv").write_text("x\n1\n")
        (tmp_path / "README.md").write_text("x")
        refused("has no data files", tmp_path)
        refused("README.md has an unknown extension", tmp_path / "README.md")
        (tmp_path / "a.csv").write_text("x\n1\n")
        (tmp_path / "b.csv").touch()
        refused("b.csv is empty", tmp_path / "b.csv")
        refused("b.csv is empty", tmp_path)
        refused("listed more than once", [tmp_path / "a.csv", tmp_path / "a.csv"])
        pq.write_table(pa.table({"x": [1.0]}), tmp_path / "c.parquet")
        refused("a.csv is CSV, c.parquet is Parquet", [tmp_path / "a.csv", tmp_path / "c.parquet"])
        refused("different file systems", [tmp_path / "a.csv", (tmp_path / "c.parquet").as_uri()])
        refused("cannot be read: give a path, or an address that begins with s3://", "nonsense://bucket/a.parquet")
        np.save(tmp_path / "o.npy", np.ones(3))
        refused("o.npy has 1 dimension", tmp_path / "o.npy")
        np.save(tmp_path / "p.npy", np.array([[None]]), allow_pickle=True)
        refused("p.npy cannot be read as a .npy file", tmp_path / "p.npy")

    def test_names_tell_files_apart(self, tmp_path: Path) -> None:
        for site in ("a", "b"):
            (tmp_path / site).mkdir()
            pq.write_table(pa.table({"x": [1.0, NAN if site == "b" else 2.0]}), tmp_path / site / "p.parquet")
        refused("in row 3 (b/p.parquet, row 1)", tmp_path)
        refused("in row 3 (b/p.parquet, row 1)", str(tmp_path / "*" / "*.parquet"))
        refused("in row 3 (b/p.parquet, row 1)", tmp_path.as_uri() + "/**/*.parquet")

    @pytest.mark.parametrize("extension", ["parquet", "feather", "csv"])
    def test_columns_that_differ(self, extension: str, tmp_path: Path) -> None:
        write(pa.table({"x": [1.0], "z": [1.0]}), tmp_path / f"1.{extension}")
        write(pa.table({"z": [1.0], "w": [1.0]}), tmp_path / f"2.{extension}")
        refused(f"2.{extension} lacks 'x' and has 'w' besides, unlike 1.{extension}", tmp_path)

    @pytest.mark.parametrize("extension", ["parquet", "feather", "csv"])
    def test_text_after_numbers(self, extension: str, tmp_path: Path) -> None:
        write(pa.table({"x": [1.0, 2.0], "z": [1.0, 2.0]}), tmp_path / f"1.{extension}")
        write(pa.table({"x": [1.0, 2.0], "z": ["1", "abc"]}), tmp_path / f"2.{extension}")
        message = f"Column 'z' is text in 2.{extension} but double in 1.{extension}"
        if extension == "csv":
            message = "Column 'z' has the text 'abc' in row 3 (2.csv, row 1) where a number belongs"
        refused(message, tmp_path)
        assert read_table(tmp_path, features=["x"]).shape == (4, 2)

    @pytest.mark.parametrize("extension", ["parquet", "feather"])
    def test_damaged_files(self, extension: str, tmp_path: Path) -> None:
        path = tmp_path / f"a.{extension}"
        write(pa.table({"x": np.random.default_rng(0).random(50_000)}), path)
        whole = path.read_bytes()
        path.write_bytes(whole[:-100])
        refused(f"a.{extension} cannot be read as", path)
        path.write_bytes(whole[:2000] + bytes(len(whole) - 4000) + whole[-2000:])
        if extension == "parquet":
            refused("a.parquet cannot be read as Parquet, it may be truncated or damaged", path)

    def test_a_file_under_two_names_would_count_twice(self, tmp_path: Path) -> None:
        (tmp_path / "2024").mkdir()
        pq.write_table(TABLE, tmp_path / "2024" / "a.parquet")
        assert len(read_table(tmp_path, features=["age"])) == 2
        (tmp_path / "latest").symlink_to("2024")
        refused("2024/a.parquet and latest/a.parquet are the same file, whose rows would count twice", tmp_path)
        (tmp_path / "b.parquet").hardlink_to(tmp_path / "2024" / "a.parquet")
        refused("are the same file", [tmp_path / "2024" / "a.parquet", tmp_path / "b.parquet"])
        (tmp_path / "2024" / "loop").symlink_to(".")
        refused("a.parquet and loop/a.parquet are the same file", tmp_path / "2024")

    @pytest.mark.parametrize("extension", ["parquet", "feather", "csv", "npy"])
    def test_what_the_system_refuses_is_not_called_damaged(self, extension: str, tmp_path: Path) -> None:
        refused("cannot be read: File name too long.", tmp_path / ("x" * 300 + f".{extension}"))

    def test_somebody_elses_files(self, tmp_path: Path) -> None:
        # As root, who runs some test machines, may read everything, the refusal itself is made up.
        said = r"^a\.parquet cannot be read: Permission denied\.$"
        with pytest.raises(UnreadableError, match=said), reading("a.parquet", "Parquet"):
            raise PermissionError(errno.EACCES, "Failed to open local file")
        with pytest.raises(UnreadableError, match=r"^a\.npy cannot be read: Is a directory\.$"):
            NpyPart(str(tmp_path), "a.npy").load()

    def test_what_is_called_csv_and_is_none(self, tmp_path: Path) -> None:
        pq.write_table(TABLE, tmp_path / "a.parquet")
        parquet = (tmp_path / "a.parquet").read_bytes()
        rows = "x,y\n" + "".join(f"{i},{i * i % 7}\n" for i in range(60))
        for content, said in (
            (rows.encode("utf-16"), "a.csv is UTF-16, as spreadsheets write it: save it as UTF-8."),
            (rows.replace(",", "\t").encode("utf-16"), "a.csv is UTF-16, as spreadsheets write it: save it as UTF-8."),
            (parquet, "a.csv is a Parquet file: give it the ending .parquet."),
            (b"PK\x03\x04" + bytes(range(256)), "a.csv is a zip archive or a spreadsheet: save its table as CSV."),
            (gzip.compress(rows.encode()), "a.csv is compressed: give it the ending .csv.gz."),
        ):
            (tmp_path / "a.csv").write_bytes(content)
            refused(said, tmp_path / "a.csv", target="y")

    def test_csv_faults(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("partsketch.sources.files.csv_stream.BLOCK_BYTES", 256)
        path = tmp_path / "a.csv"
        top = "".join(f"{i},1.5,true\n" for i in range(200))
        path.write_text("a,b,c\n" + top + "3,x y,false\n4,z,1\n")
        refused("Column 'b' has the text 'x y' in row 200 (a.csv, row 200) where a number belongs", path)
        path.write_text("a,b,c\n" + top + "3,1,maybe\n")
        refused("Column 'c' has the text 'maybe' in row 200", path)
        path.write_text("a,b,c\n" + top + "3,1\n")
        refused("a.csv has 2 values instead of 3 in line 202: give every row one value per column.", path)
        path.write_text("a,b,c\n1,2\n")
        refused("a.csv has 2 values instead of 3 in line 2", path)
        path.write_text("a,b\n1,2\n2,?\n3,4\n")
        refused("Column 'b' (text) is not numeric ('b' has numbers, but '?' in row 1 of a.csv is not one)", path)
        path.write_text("a,b\n1,u\n2,v\n")
        refused("Column 'b' (text) is not numeric: name", path)
        for no_rows in ("a,b\n", "a,b", "\n\n"):
            path.write_text(no_rows)
            refused("a.csv has no rows", path)
        path.write_text("a,a\n1,2\n")
        refused("more than one column named 'a'", path)
        path.write_text("a,b\n1,\n")
        refused("Column 'b' has a missing value in row 0 (a.csv, row 0)", path)
        path.write_text("a,b\n1,inf\n")
        refused("Column 'b' has an infinite value in row 0 (a.csv, row 0)", path)

    @pytest.mark.parametrize("extension", ["parquet", "feather", "csv", "csv.gz", "npy"])
    def test_noise(self, extension: str, tmp_path: Path) -> None:
        path = tmp_path / f"a.{extension}"
        path.write_bytes(np.random.default_rng(5).bytes(5000))
        refused("a." + extension, path, target="y")

    def test_text_that_is_not_utf8(self, tmp_path: Path) -> None:
        (tmp_path / "a.csv").write_bytes("x,t\n1,é\n".encode("latin-1"))
        refused("Column 't' (text that is not UTF-8) is not numeric", tmp_path, encode=True)
        assert read_table(tmp_path, features=["x"]).shape == (1, 2)

    def test_truncated_gzip(self, tmp_path: Path) -> None:
        whole = gzip.compress(b"a,b\n" + b"".join(b"%d,%d\n" % (i, i * i) for i in range(100_000)))
        (tmp_path / "a.csv.gz").write_bytes(whole[: len(whole) // 2])
        refused("a.csv.gz cannot be read as CSV, it may be truncated or damaged", tmp_path)


def write(table: Any, path: Path) -> None:
    if path.suffix == ".csv":
        pa.csv.write_csv(table, path)
    elif path.suffix == ".feather":
        pyarrow.feather.write_feather(table, str(path))
    else:
        pq.write_table(table, path)


STRANGE = {
    "bytes": pa.array([b"\xff"] * 4),
    "lists": pa.array([[1.0]] * 4),
    "fixed lists": pa.array([[1.0, 2.0]] * 4, pa.list_(pa.float64(), 2)),
    "structures": pa.array([{"x": 1}] * 4),
    "maps": pa.array([[("k", 1)]] * 4, pa.map_(pa.string(), pa.int8())),
    "intervals": pa.array([pa.MonthDayNano([1, 2, 3])] * 4),
    "unions": pa.UnionArray.from_sparse(pa.array([0] * 4, pa.int8()), [pa.array([1, 2, 3, 4]), pa.array(["a"] * 4)]),
    "runs": pa.RunEndEncodedArray.from_arrays(pa.array([2, 4], pa.int32()), pa.array([1.5, 2.5])),
    "lists behind codes": pa.DictionaryArray.from_arrays(pa.array([0] * 4, pa.int8()), pa.array([[1]])),
}


@pytest.mark.parametrize("kind", STRANGE)
def test_a_partition_column_of_neither_numbers_nor_text(kind: str) -> None:
    table = pa.table({"x": [1.0, 2, 3, 5], "y": [1.0, 2, 2, 1], "g": STRANGE[kind]})
    with pytest.raises(InputError, match=r"Column 'g' has values of type .* neither numbers nor text: name another"):
        open_source(table, target="y", features=["x"], partition_column="g")


@pytest.mark.parametrize("target", [np.arange(3.0), 1.5, [0.5, 1.5, 2.5]])
def test_values_are_no_names_of_columns(target: object) -> None:
    """As in `fit(X, y)`, which scikit-learn's estimators have and this function has not."""
    with pytest.raises(
        InputError, match=r"names or positions of columns, not values: .* SketchedRegression\(\)\.fit\(X, y\)"
    ):
        open_source(np.zeros((3, 2)), target=target)  # type: ignore[arg-type]
