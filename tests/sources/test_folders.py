"""Columns in the names of folders, as in year=2024/month=01: the same as if they stood in one table."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import partsketch as ps
from partsketch.common.errors import InputError
from partsketch.sources import open_source
from partsketch.sources.opening import open_rows

ROWS = 40
FOLDERS = [(2023, "02", "north"), (2023, "10", "south"), (2024, "01", "north"), (2024, "02", "south")]


def _write(table: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=7)
    elif path.suffix == ".csv":
        pyarrow.csv.write_csv(table, path)
    else:
        pyarrow.feather.write_feather(table, str(path), chunksize=9)


def _piece(number: int) -> Any:
    generator = np.random.default_rng(number)
    x = generator.standard_normal(ROWS)
    return pa.table({"x": x, "y": 2 * x + number + generator.standard_normal(ROWS)})


def make(folder: Path, ending: str) -> tuple[str, Any]:
    """Write a folder of folders, and return it with the same rows as one table."""
    pieces = []
    for number, (year, month, zone) in enumerate(FOLDERS):
        piece = _piece(number)
        _write(piece, folder / f"trips/year={year}/month={month}/zone={zone}/part-0{ending}")
        columns = {"year": [year] * ROWS, "month": [int(month)] * ROWS, "zone": [zone] * ROWS}
        for name, values in columns.items():
            piece = piece.append_column(name, pa.array(values))
        pieces.append(piece)
    return str(folder / "trips"), pa.concat_tables(pieces)


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".feather"])
@pytest.mark.parametrize("options", [{}, {"partition_column": "zone"}, {"weights": "year"}], ids=str)
def test_rows_are_those_of_one_table(ending: str, options: dict[str, Any], tmp_path: Path) -> None:
    path, table = make(tmp_path, ending)
    found, expected = (open_source(data, target="y", encode=True, **options) for data in (path, table))
    assert found.feature_names == expected.feature_names
    assert found.partition_values == expected.partition_values
    for start, stop, block_rows in ((0, None, 1000), (5, 123, 11)):
        width = len(expected.feature_names) + 1
        both = []
        for source in (found, expected):
            rows = []
            for block in source.read(start, stop, block_rows):
                out = np.empty((width, len(block)))
                block.copy_into(out, 0, len(block))
                labels = [] if block.labels is None else [block.labels]
                rows.append(np.vstack([out, block.row_numbers, *labels]))
            both.append(np.hstack(rows))
        np.testing.assert_array_equal(both[0], both[1])


def test_every_front_takes_them(tmp_path: Path) -> None:
    path, table = make(tmp_path, ".parquet")
    formula = "y ~ x + C(zone) + C(year) + month"
    model, expected = ps.fit(path, formula), ps.fit(table, formula)
    np.testing.assert_array_equal(model.coefficients, expected.coefficients)
    np.testing.assert_array_equal(model.predict(path), expected.predict(table))
    # The folder of one year still says which year it is.
    np.testing.assert_array_equal(model.predict(f"{path}/year=2024"), expected.predict(table)[80:])
    found, wanted = (
        ps.summarise(data, columns=["x", "y"], partition_by="month").fit("y", vcov="CRV1") for data in (path, table)
    )
    np.testing.assert_array_equal(found.standard_errors, wanted.standard_errors)
    robust, judged = (ps.fit(data, "y", ["x", "year"], vcov={"CRV1": "zone"}) for data in (path, table))
    np.testing.assert_array_equal(robust.standard_errors, judged.standard_errors)


@pytest.mark.parametrize("ending", [".parquet", ".csv"])
def test_they_travel_to_other_processes(ending: str, tmp_path: Path) -> None:
    path, _ = make(tmp_path, ending)
    formula = "y ~ x + zone + C(month)"
    source = open_source(path, formula=formula, partition_column="year")
    sent = pickle.loads(pickle.dumps(source))
    assert sent.partition_values == ("2023", "2024")
    for found, expected in zip(sent.read(block_rows=33), source.read(block_rows=33), strict=True):
        np.testing.assert_array_equal(found.labels, expected.labels)
        np.testing.assert_array_equal(found.row_numbers, expected.row_numbers)


def test_a_folder_given_by_name_is_a_column_but_no_feature_unless_named(tmp_path: Path) -> None:
    path, _ = make(tmp_path, ".parquet")
    source = open_source(f"{path}/year=2024", target="y", encode=True)
    assert source.feature_names == ("x", "month", "zone=south")
    assert "'year' stands in the name of the folder alone and was left out" in source.notes[0]
    named = open_source(f"{path}/year=2024", target="y", features=["x", "year"])
    assert named.feature_names == ("x", "year")
    # What a shell makes of trips/* names the folders too, and they differ.
    both = open_source([f"{path}/year=2023", f"{path}/year=2024"], target="y", encode=True)
    assert both.feature_names == ("x", "year", "month", "zone=south")
    assert open_source(f"{path}/year=*/*/*/*", target="y", encode=True).feature_names == both.feature_names


def test_the_folder_one_works_in_is_no_column(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, ".parquet")
    monkeypatch.chdir(tmp_path / "trips/year=2024")
    assert open_source(".", target="y", encode=True).feature_names == ("x", "month", "zone=south")
    monkeypatch.chdir("month=01")
    assert open_source("zone=north/part-0.parquet", target="y", features=["x"]).row_count == ROWS


@pytest.mark.parametrize(
    ("values", "type_name", "kept"),
    [
        (("1", "2"), "int64", [1, 2]),
        (("01", "-10"), "int64", [1, -10]),
        (("0.5", "2"), "double", [0.5, 2.0]),
        (("a%20b", "1"), "text", ["a b", "1"]),
        (("2024-01-31", "2023-02-01"), "date", ["2024-01-31", "2023-02-01"]),
        (("2024-02-31", "2023-02-01"), "text", ["2024-02-31", "2023-02-01"]),
        (
            ("2024-01-31 05%3A00%3A00", "2023-02-01 00%3A00"),
            "timestamp",
            ["2024-01-31 05:00:00", "2023-02-01 00:00:00"],
        ),
        # A double would take these for one.
        (("90071992547409930001", "90071992547409930002"), "text", ["90071992547409930001", "90071992547409930002"]),
    ],
)
def test_types_of_values(values: tuple[str, str], type_name: str, kept: list[Any], tmp_path: Path) -> None:
    from partsketch.sources.files.folders import folder_columns
    from partsketch.sources.files.paths import find_files

    for value in values:
        _write(_piece(1), tmp_path / f"k={value}/a.parquet")
    columns = folder_columns(find_files(str(tmp_path)))
    assert [column.type_name for column in columns] == [type_name]
    found = dict(zip(sorted(values), columns[0].values, strict=True))
    assert [found[value] if isinstance(kept[0], int | float) else str(found[value]) for value in values] == kept


@pytest.mark.parametrize(("value", "row"), [("__HIVE_DEFAULT_PARTITION__", 80), ("", 0)])
def test_what_has_no_value_is_missing(value: str, row: int, tmp_path: Path) -> None:
    _write(_piece(0), tmp_path / f"t/k={value}/a.parquet")
    _write(_piece(1), tmp_path / "t/k=3/a.parquet")
    _write(_piece(2), tmp_path / "t/k=4/a.parquet")
    with pytest.raises(InputError, match=rf"'k' .*row {row} \(k={value}/a.parquet, row 0\)"):
        ps.fit(str(tmp_path / "t"), "y")
    with pytest.warns(ps.PartsketchWarning, match="40 rows with missing values or of weight zero were dropped"):
        model = ps.fit(str(tmp_path / "t"), "y", missing="drop")
    assert (model.record.rows_dropped, model.feature_names) == (ROWS, ("x", "k"))


def test_numbers_and_texts_in_one_column_are_text_and_said_so(tmp_path: Path) -> None:
    for value in ("01", "1", "north"):
        _write(_piece(len(value)), tmp_path / f"t/zone={value}/a.parquet")
    with pytest.raises(InputError, match="the folder 'zone=01' has a number, and 'zone=north' has none"):
        ps.fit(str(tmp_path / "t"), "y")
    model = ps.fit(str(tmp_path / "t"), "y", encode=True)
    assert model.feature_names == ("x", "zone=1", "zone=north")
    # A folder of one value that reads as a number is still the level it was.
    table = _piece(2).append_column("zone", pa.array(["01"] * ROWS))
    np.testing.assert_array_equal(model.predict(str(tmp_path / "t/zone=01")), model.predict(table))


@pytest.mark.parametrize("ending", [".parquet", ".csv"])
def test_a_column_of_folder_and_file_must_agree(ending: str, tmp_path: Path) -> None:
    for year in (2023, 2024):
        written = pa.array([year] * ROWS)
        _write(_piece(year).append_column("year", written), tmp_path / f"good/year={year}/a{ending}")
        wrong = pa.array([year] * (ROWS - 1) + [2023])
        _write(_piece(year).append_column("year", wrong), tmp_path / f"bad/year={year}/a{ending}")
    assert ps.fit(str(tmp_path / "good"), "y").feature_names == ("x", "year")
    with pytest.raises(
        InputError, match=r"'year' has '2023(\.0)?' in row 79 .*row 39\), but .* folder says 'year=2024'"
    ):
        ps.fit(str(tmp_path / "bad"), "y")
    # What is not read is not compared.
    assert ps.fit(str(tmp_path / "bad"), "y", ["x"]).feature_names == ("x",)
    none = pa.array([2024] * 9 + [None] * (ROWS - 9))
    _write(_piece(0).append_column("year", none), tmp_path / f"none/year=2024/a{ending}")
    with pytest.raises(InputError, match=r"'year' has no value in row 9 .* folder says 'year=2024'"):
        ps.fit(str(tmp_path / "none"), "y", ["x", "year"])


def test_columns_of_folders_alone_are_not_read(tmp_path: Path) -> None:
    """Their rows are made up from the numbers of rows, also where reading begins and ends within files."""
    path, table = make(tmp_path, ".parquet")
    rows = open_rows(path).choose(["month"], [])
    for start, stop, block_rows in ((0, None, 1000), (5, 123, 11), (50, 55, 3)):
        blocks = list(rows.raw_blocks(start, stop, block_rows))
        assert [block.start for block in blocks][:1] == [start]
        found = [value for block in blocks for value in block.columns[0].to_pylist()]
        assert found == table["month"].to_pylist()[start:stop]


def test_folders_that_do_not_go_together(tmp_path: Path) -> None:
    _write(_piece(0), tmp_path / "t/year=2023/a.parquet")
    _write(_piece(1), tmp_path / "t/b.parquet")
    with pytest.raises(InputError, match=r"^a.parquet lies in a folder 'year=…' and b.parquet does not"):
        ps.fit(str(tmp_path / "t"), "y")
    _write(_piece(0), tmp_path / "u/year=2023/year=2024/a.parquet")
    with pytest.raises(InputError, match="lies in two folders 'year=…'"):
        ps.fit(str(tmp_path / "u"), "y")


def test_arrays_take_them_too(tmp_path: Path) -> None:
    for year in (2023, 2024, 2026):
        (tmp_path / f"t/year={year}").mkdir(parents=True)
        np.save(tmp_path / f"t/year={year}/a.npy", np.random.default_rng(year).standard_normal((ROWS, 2)))
    model = ps.fit(str(tmp_path / "t"), "x1", checkpoint=str(tmp_path / "kept"), method="exact")
    assert model.feature_names == ("x0", "year")


@pytest.mark.parametrize(
    ("log", "sentence"),
    [
        ("_delta_log/0.json", r"holds a Delta table, .* pass deltalake\.DeltaTable\(…\)\.to_pyarrow_dataset\(\)\."),
        ("metadata/1.metadata.json", r"holds an Iceberg table, .* pass table\.scan\(\)\.to_arrow_batch_reader"),
        (".hoodie/1.commit", "holds a Hudi table"),
    ],
)
def test_a_folder_with_a_log_of_its_files_is_refused(tmp_path: Path, log: str, sentence: str) -> None:
    """Rows that were deleted or replaced are still in its files."""
    path = tmp_path / "table"
    (path / log).parent.mkdir(parents=True)
    (path / log).write_text("{}")
    pq.write_table(pa.table({"x": [1.0, 2.0, 4.0], "y": [1.0, 3.0, 2.0]}), path / "a.parquet")
    for folder in (path, tmp_path):
        with pytest.raises(ps.InputError, match=sentence):
            ps.fit(folder, "y")
    assert ps.fit(path / "a.parquet", "y").record.row_count == 3
