"""CSV as people have it: other separators, decimal commas, no header, compressed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import partsketch as ps
from partsketch.common.errors import InputError

ROWS = 50


def table() -> Any:
    generator = np.random.default_rng(3)
    x = generator.standard_normal(ROWS).round(3)
    flag = generator.random(ROWS) < 0.5
    return pa.table({"x": x, "flag": flag, "y": (2 * x + flag + generator.standard_normal(ROWS)).round(3)})


def written(folder: Path, separator: str = ",", decimal: str = ".", header: bool = True, name: str = "a.csv") -> Path:
    path = folder / name
    lines = [separator.join(table().column_names)] if header else []
    for row in zip(*table().to_pydict().values(), strict=True):
        lines.append(separator.join(str(value).replace(".", decimal) for value in row))
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("separator", [";", "\t", "tab", "|", " "])
@pytest.mark.parametrize("decimal", [".", ","])
@pytest.mark.parametrize("header", [True, False])
def test_the_same_model_however_it_is_written(separator: str, decimal: str, header: bool, tmp_path: Path) -> None:
    path = written(tmp_path, {"tab": "\t"}.get(separator, separator), decimal, header)
    files = ps.CsvFiles(path, separator=separator, decimal=decimal, header=header)
    expected = ps.fit(table(), "y")
    model = ps.fit(files, "y" if header else "c2")
    np.testing.assert_array_equal(model.coefficients, expected.coefficients)
    np.testing.assert_array_equal(model.predict(files), expected.predict(table()))
    assert model.feature_names == (("x", "flag") if header else ("c0", "c1"))
    assert model.record.asked is not None
    assert model.record.asked["paths"] == [str(path)]
    assert "separator" in model.record.data


@pytest.mark.parametrize(("ending", "codec"), [("gz", "gzip"), ("zst", "zstd"), ("bz2", "bz2")])
def test_compressed_files_are_streamed(ending: str, codec: str, tmp_path: Path) -> None:
    expected = ps.fit(table(), "y").coefficients
    for kind, options in (("csv", ","), ("tsv", "\t")):
        with pa.CompressedOutputStream(str(tmp_path / f"a.{kind}.{ending}"), codec) as out:
            pyarrow.csv.write_csv(table(), out, pyarrow.csv.WriteOptions(delimiter=options))
        np.testing.assert_array_equal(ps.fit(str(tmp_path / f"a.{kind}.{ending}"), "y").coefficients, expected)
    recommended = ps.plan(str(tmp_path / f"a.csv.{ending}"), "y").recommended
    assert recommended is not None
    assert recommended.method == "exact"


@pytest.mark.parametrize("decimal", [".", ","])
def test_another_separator_is_found_out(decimal: str, tmp_path: Path) -> None:
    path = written(tmp_path, ";", decimal)
    with pytest.raises(
        InputError, match=r"^The first line of a.csv has no ',' but ';': .*separator=';'\) \(--separator"
    ):
        ps.fit(str(path), "y")
    with pytest.raises(InputError, match=r"has no '\\t' but ','.*--separator ,"):
        ps.fit(ps.CsvFiles(written(tmp_path), separator="tab"), "y")


def test_another_decimal_mark_is_found_out(tmp_path: Path) -> None:
    path = written(tmp_path, ";", ",")
    with pytest.raises(
        InputError, match=r"'x' has '2,041' in row 0 of a.csv; if ',' is its decimal mark, .*--decimal ','"
    ):
        ps.fit(ps.CsvFiles(path, separator=";"), "y")
    # No number becomes a category of its own.
    told = r"^Column 'x' is text \('x' has '2,041'; if ',' is its decimal mark, .*write C\(x\) in a formula\.$"
    for formula in ("y ~ x", "y ~ .", "zone ~ log(x)"):
        with pytest.raises(InputError, match="if ',' is its decimal mark"):
            ps.fit(ps.CsvFiles(path, separator=";"), formula)
    (tmp_path / "whole.csv").write_text("x;y;code\n2,041;1;1,5\n3;2;2,5\n,5;3;1,5\n7,25;5;2,5\n")
    files = ps.CsvFiles(tmp_path / "whole.csv", separator=";")
    for target, features in (("y ~ x", None), ("y", ["x"])):
        with pytest.raises(InputError, match=told):
            ps.fit(files, target, features, encode=features is not None)
    assert ps.fit(files, "y ~ C(code)").feature_names == ("C(code)[T.2,5]",)
    # Numbers first, and a comma far below: found when the rows are read.
    rows = "".join(f"{number};{number}.5\n" for number in range(200_000))
    (tmp_path / "late.csv").write_text(f"x;y\n{rows}3;1,5\n")
    with pytest.raises(InputError, match=r"text '1,5' in row 200000 \(late.csv, row 200000\).*--decimal ','"):
        ps.fit(ps.CsvFiles(tmp_path / "late.csv", separator=";"), "y")
    # With a decimal comma a point is none.
    with pytest.raises(InputError, match=r"'x' has '2.041' in row 0 .*--decimal '.'"):
        ps.fit(ps.CsvFiles(written(tmp_path, ";"), separator=";", decimal=","), "y")


def test_a_header_where_none_was_said_to_be(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"'c0' has numbers, but 'x' in row 0 of a.csv is not one"):
        ps.fit(ps.CsvFiles(written(tmp_path), header=False), "c2")
    written(tmp_path, header=False)
    (tmp_path / "b.csv").write_text("1,2\n")
    with pytest.raises(InputError, match=r"b.csv has 2 values instead of 3 in line 1"):
        ps.fit(ps.CsvFiles(tmp_path, header=False), "c2")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"separator": ";;"}, "separator .* is ';;': it must be one character"),
        ({"separator": '"'}, "it must be one character"),
        ({"decimal": "x"}, "decimal .* is 'x': it must be one mark"),
        ({"decimal": ","}, "',', which separates the values too"),
        ({"decimal": ";", "separator": ";"}, "';', which separates the values too"),
    ],
)
def test_formats_that_cannot_be(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ps.CsvFiles("a.csv", **options)


def test_formats_are_for_csv_alone(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.ones((3, 2)))
    with pytest.raises(InputError, match=r"a\.npy is NumPy, and separator, decimal and header"):
        ps.fit(ps.CsvFiles(tmp_path / "a.npy", separator=";"), "x0")


def test_a_first_row_of_numbers_is_no_line_of_names(tmp_path: Path) -> None:
    path = written(tmp_path, header=False)
    path.write_text("".join(f"{i}.5,{i},{2 * i + 1}\n" for i in range(10)))
    with pytest.raises(ps.InputError, match=r"There is no target column 'y'.*say --no-header"):
        ps.fit(path, "y")
    for work in (lambda: ps.fit(path, "1", ["0.5"]), lambda: ps.summarise(path)):
        with pytest.warns(ps.PartsketchWarning, match=r"All names of columns are numbers: .*say --no-header"):
            work()
    path.write_text("north,0.5,1\nsouth,1.5,2\n")
    with pytest.raises(ps.InputError, match=r"A column is called '0.5': .*say --no-header"):
        ps.fit(path, "y")
    path.write_text("5,25;1,7\n6,75;2,5\n")
    with pytest.raises(ps.InputError, match=r"A column is called '25;1': .*say --separator ';'"):
        ps.fit(path, "c1")
    with pytest.raises(ps.InputError, match=r"All names of columns are numbers: .*say --no-header"):
        ps.fit(ps.CsvFiles(path, separator=";", decimal=","), "c1")
    path.write_text("2021,2022,2023\n0.5,1,3\n1.5,2,2\n")
    assert not ps.fit(path, "2023", ["2021"]).record.warnings
    with pytest.raises(ps.InputError) as error:
        ps.fit(np.ones((5, 3)), "y")
    assert "--no-header" not in str(error.value)
