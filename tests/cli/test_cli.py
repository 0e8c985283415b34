"""The commands: what they print, what they write, and what bad input gets."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from partsketch import load
from partsketch.cli import COMMANDS, run

ROWS = 600


@pytest.fixture
def table() -> pa.Table:
    rng = np.random.default_rng(0)
    columns: dict[str, Any] = {f"x{i}": rng.normal(size=ROWS) for i in range(3)}
    columns["y"] = 1 + columns["x0"] - 2 * columns["x1"] + rng.normal(size=ROWS)
    columns["colour"] = np.array(["blue", "green", "red"])[np.arange(ROWS) % 3]
    return pa.table(columns)


@pytest.fixture
def data(table: pa.Table, tmp_path: Path) -> Path:
    path = tmp_path / "rows.parquet"
    pq.write_table(table.drop_columns(["colour"]), path)
    return path


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """Run a command that must fail with exit code 2 and one sentence; return the sentence."""
    assert run([str(argument) for argument in arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("Error: ")
    assert printed.err.count("\n") == 1
    return printed.err


def test_fit_prints_both_methods_and_the_loss(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["fit", str(data), "--target", "y", "--method", "partition", "--seed", "1"]) == 0
    output = capsys.readouterr().out
    for word in ("(intercept)", "x2", "partition", "exact", "difference", "excess loss measured", "time", "seed 1"):
        assert word in output


def test_summary_adds_standard_errors(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["fit", str(data), "--target", "y", "--method", "partition", "--seed", "1", "--summary"]) == 0
    output = capsys.readouterr().out
    for word in ("std err", "P>|t|", "R-squared", "to lose"):
        assert word in output


def test_nothing_is_printed_twice(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["fit", str(data), "--target", "y", "--summary"]) == 0
    output = capsys.readouterr().out
    for word in ("(intercept)", "P>|t|", "it loses nothing", "intervals are for the true coefficients"):
        assert output.count(word) == 1, word


def test_few_clusters_are_told_of_without_a_summary(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = pq.read_table(data)
    pq.write_table(rows.append_column("half", pa.array(np.arange(len(rows)) % 2)), data)
    assert run(["fit", str(data), "--target", "y", "--features", "x0", "--vcov", "CRV1:half"]) == 0
    assert "There are 2 clusters only: t has 1 degree of freedom" in " ".join(capsys.readouterr().out.split())


def test_fit_as_json_has_model_and_comparison(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["fit", str(data), "--target", "y", "--seed", "1", "--method", "stack", "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    matrix = pq.read_table(data)
    X = np.column_stack([np.ones(ROWS), *(matrix[f"x{i}"].to_numpy() for i in range(3))])
    y = matrix["y"].to_numpy()
    exact = np.linalg.lstsq(X, y, rcond=None)[0]
    comparison = values["comparison"]
    np.testing.assert_allclose(comparison["exact_coefficients"], exact[1:, None], rtol=1e-10)
    stacked = np.r_[values["model"]["intercept"], np.ravel(values["model"]["coefficients"])]
    np.testing.assert_allclose(comparison["excess_loss"], np.sum((X @ (stacked - exact)) ** 2), rtol=1e-9)
    np.testing.assert_allclose(comparison["minimal_loss"], np.sum((y - X @ exact) ** 2), rtol=1e-10)


def test_same_seed_same_model_file(data: Path, tmp_path: Path) -> None:
    for name in ("a.json", "b.json"):
        assert (
            run(["fit", str(data), "--target", "y", "--seed", "7", "--no-compare", "--model", str(tmp_path / name)])
            == 0
        )
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


def test_no_seed_is_a_fresh_seed_that_is_recorded(data: Path, tmp_path: Path) -> None:
    for name in ("a.json", "b.json"):
        assert run(["fit", str(data), "--target", "y", "--no-compare", "--model", str(tmp_path / name)]) == 0
    first, second = load(tmp_path / "a.json"), load(tmp_path / "b.json")
    assert first.record.seed != second.record.seed
    again = tmp_path / "again.json"
    seed = str(first.record.seed)
    assert run(["fit", str(data), "--target", "y", "--no-compare", "--seed", seed, "--model", str(again)]) == 0
    assert np.array_equal(load(again).coefficients, first.coefficients)


@pytest.mark.parametrize("ending", ["parquet", "csv", "feather"])
def test_predict_writes_every_format(data: Path, tmp_path: Path, ending: str) -> None:
    model, output = tmp_path / "model.json", tmp_path / f"predictions.{ending}"
    assert run(["fit", str(data), "--target", "y", "--method", "exact", "--model", str(model)]) == 0
    assert run(["predict", str(model), str(data), "--output", str(output)]) == 0
    readers = {"parquet": pq.read_table, "csv": pyarrow.csv.read_csv, "feather": pyarrow.feather.read_table}
    written = readers[ending](output)
    assert written.column_names == ["prediction"]
    np.testing.assert_allclose(written["prediction"].to_numpy(), load(model).predict(data), rtol=1e-12)


def test_predict_with_missing_rows_says_which_are_there(table: pa.Table, data: Path, tmp_path: Path) -> None:
    model, holes, output = tmp_path / "model.json", tmp_path / "holes.parquet", tmp_path / "predictions.parquet"
    assert run(["fit", str(data), "--target", "y", "--method", "exact", "--model", str(model)]) == 0
    values = table["x1"].to_numpy().copy()
    values[[3, 10]] = np.nan
    pq.write_table(table.set_column(1, "x1", pa.array(values)), holes)
    assert run(["predict", str(model), str(holes), "--output", str(output), "--missing", "drop"]) == 0
    written = pq.read_table(output)
    assert written["row"].to_pylist() == [row for row in range(ROWS) if row not in (3, 10)]


def test_encoded_text_columns_come_back_at_prediction(
    table: pa.Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, model, output = tmp_path / "text.parquet", tmp_path / "model.json", tmp_path / "predictions.parquet"
    pq.write_table(table, path)
    assert "colour" in refused(capsys, "fit", path, "--target", "y")
    arguments = ["fit", str(path), "--target", "y", "--encode", "--method", "exact", "--model", str(model)]
    assert run(arguments) == 0
    assert load(model).feature_names == ("x0", "x1", "x2", "colour=green", "colour=red")
    assert run(["predict", str(model), str(path), "--output", str(output)]) == 0
    capsys.readouterr()
    purple = table.set_column(4, "colour", pa.array(["purple"] * ROWS))
    pq.write_table(purple, tmp_path / "purple.parquet")
    output.unlink()
    message = refused(capsys, "predict", model, tmp_path / "purple.parquet", "--output", output)
    assert "colour" in message
    assert "purple" in message
    assert not output.exists()
    assert not list(tmp_path.glob(".*.part"))


def test_several_targets(table: pa.Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, model = tmp_path / "two.parquet", tmp_path / "model.json"
    pq.write_table(table.drop_columns(["colour"]), path)
    assert run(["fit", str(path), "-t", "y", "-t", "x2", "--model", str(model), "--seed", "0"]) == 0
    assert load(model).coefficients.shape == (2, 2)
    output = tmp_path / "predictions.parquet"
    assert run(["predict", str(model), str(path), "--output", str(output)]) == 0
    assert pq.read_table(output).column_names == ["prediction_y", "prediction_x2"]


def test_dropped_rows_are_reported(table: pa.Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = table["x0"].to_pylist()
    values[5] = values[7] = None
    path = tmp_path / "holes.parquet"
    pq.write_table(table.drop_columns(["colour"]).set_column(0, "x0", pa.array(values)), path)
    message = refused(capsys, "fit", path, "--target", "y")
    assert "'x0'" in message
    assert "row 5" in message
    assert run(["fit", str(path), "--target", "y", "--missing", "drop", "--method", "exact"]) == 0
    assert "2 rows with missing values or of weight zero were dropped" in capsys.readouterr().err


BAD_OPTIONS = {
    "sketch too small": (["--method", "whole", "--sketch-size", "5"], "sketch_size=5 is too small"),
    "too many partitions": (
        ["--method", "partition", "--partitions", "101"],
        "largest possible number of partitions is 100",
    ),
    "no partitions": (["--partitions", "0"], "n_partitions is 0"),
    "unknown target": (["--target", "nothing"], "nothing"),
    "target twice": (["--target", "y", "--target", "y"], "'y'"),
    "target among features": (["--features", "x0,y"], "'y'"),
    "unknown feature": (["--features", "x9"], "'x9'"),
    "unknown method": (["--method", "magic"], "magic"),
    "unknown sketch": (["--sketch", "magic"], "magic"),
    "unknown engine": (["--engine", "magic"], "magic"),
    "negative seed": (["--seed", "-1"], "-1"),
    "seed is text": (["--seed", "x"], "seed"),
    "unknown option": (["--magic"], "--magic"),
    "no folder for the model": (["--model", "nowhere/model.json"], "nowhere"),
    "drop and shuffle": (["--method", "stack", "--partition-by", "shuffle", "--remainder", "drop"], "remainder"),
    "partition column unknown": (["--partition-by", "region"], "region"),
}


@pytest.mark.parametrize("case", BAD_OPTIONS)
def test_bad_options(data: Path, case: str, capsys: pytest.CaptureFixture[str]) -> None:
    options, expected = BAD_OPTIONS[case]
    target = [] if options[0] == "--target" else ["--target", "y"]
    assert expected in refused(capsys, "fit", data, *target, *options)


def test_infinite_variance_is_a_warning(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["fit", str(data), "--target", "y", "--method", "whole", "--sketch-size", "6"]) == 0
    assert "infinite variance" in capsys.readouterr().err


BAD_FILES: dict[str, tuple[str, bytes, str]] = {
    "not there": ("nowhere.parquet", b"", "nowhere.parquet"),
    "cut short": ("cut.parquet", b"PAR1 and then nothing", "cut.parquet"),
    "no rows": ("none.csv", b"x0,y\n", "none.csv"),
    "no bytes": ("empty.csv", b"", "empty.csv"),
    "text in a number": ("text.csv", b"x0,y\n1,2\n2,3\nseven,4\n", "seven"),
    "a row too long": ("long.csv", b"x0,y\n1,2\n1,2,3\n", "long.csv"),
    "infinity": ("inf.csv", b"x0,y\n1,2\ninf,3\n", "x0"),
    "unknown format": ("rows.xyz", b"x0,y\n1,2\n", "rows.xyz"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_bad_files(tmp_path: Path, case: str, capsys: pytest.CaptureFixture[str]) -> None:
    name, contents, expected = BAD_FILES[case]
    path = tmp_path / name
    if case != "not there":
        path.write_bytes(contents)
    model = tmp_path / "model.json"
    message = refused(capsys, "fit", path, "--target", "y", "--method", "exact", "--model", model)
    assert expected in message
    assert not model.exists()
    assert not list(tmp_path.glob(".*.part"))


def test_truncated_parquet_is_named(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cut = tmp_path / "truncated.parquet"
    cut.write_bytes(data.read_bytes()[:-100])
    assert "truncated.parquet" in refused(capsys, "fit", cut, "--target", "y")


def test_columns_that_differ_between_files(table: pa.Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pq.write_table(table.select(["x0", "x1", "y"]), tmp_path / "a.parquet")
    pq.write_table(table.select(["x0", "x2", "y"]), tmp_path / "b.parquet")
    message = refused(capsys, "fit", tmp_path / "*.parquet", "--target", "y")
    assert "b.parquet" in message
    assert "x1" in message or "x2" in message


BAD_MODELS = {
    "not there": (None, "Cannot read"),
    "not JSON": (b"\x00\x01", "not a partsketch model"),
    "another JSON": (b'{"a": 1}', "not a partsketch model"),
    "newer": (b'{"format": "partsketch model", "version": 99}', "version 99"),
    "damaged": (b'{"format": "partsketch model", "version": 1}', "damaged"),
}


@pytest.mark.parametrize("case", BAD_MODELS)
def test_bad_models(data: Path, tmp_path: Path, case: str, capsys: pytest.CaptureFixture[str]) -> None:
    contents, expected = BAD_MODELS[case]
    model, output = tmp_path / "model.json", tmp_path / "predictions.parquet"
    if contents is not None:
        model.write_bytes(contents)
    message = refused(capsys, "predict", model, data, "--output", output)
    assert expected in message
    assert not output.exists()


def test_prediction_into_an_unknown_format(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "model.json"
    assert run(["fit", str(data), "--target", "y", "--method", "exact", "--model", str(model)]) == 0
    capsys.readouterr()
    assert "predictions.xlsx" in refused(capsys, "predict", model, data, "--output", tmp_path / "predictions.xlsx")


def test_a_coverage_without_intervals_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["predict", "no.json", "no.csv", "-o", "no.parquet", "--level", "0.9"]) == 2
    assert "--level is of intervals: give --interval" in capsys.readouterr().err


def test_a_new_process_is_silent_in_a_pipe_and_exits_with_two(data: Path, tmp_path: Path) -> None:
    good = subprocess.run(
        [sys.executable, "-m", "partsketch", "fit", str(data), "--target", "y", "--seed", "1"],
        capture_output=True,
        text=True,
    )
    assert good.returncode == 0
    assert good.stderr == ""
    assert "\x1b" not in good.stdout
    bad = subprocess.run(
        [sys.executable, "-m", "partsketch", "fit", str(data), "--target", "z"], capture_output=True, text=True
    )
    assert bad.returncode == 2
    assert bad.stderr.count("\n") == 1


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)], ids=str)
def test_help_has_an_example(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*command, "--help"]) == 0
    shown = capsys.readouterr().out
    assert "Example: partsketch " in " ".join(shown.split()) or not command
    assert ("--json" in shown) == bool(command)
