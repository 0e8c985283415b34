"""The commands `sketch` and `combine`: what they print and write, and what bad input gets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from partsketch import Summary, load
from partsketch.cli import run


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    draw = np.random.default_rng(0)
    for name, count in (("north", 300), ("south", 400), ("west", 500)):
        x = draw.normal(size=(count, 2))
        columns: dict[str, Any] = {"a": x[:, 0], "b": x[:, 1], "y": x @ [1.0, 2.0] + draw.normal(size=count)}
        columns["region"] = np.array(["u/p", "down"])[np.arange(count) % 2]
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
    monkeypatch.chdir(tmp_path)
    # Tables are as wide as a pipe says: names are not cut.
    monkeypatch.setenv("COLUMNS", "140")
    return tmp_path


def ran(*arguments: str) -> int:
    return run(list(arguments))


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    before = sorted(Path().iterdir())
    assert ran(*arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("Error: ")
    assert captured.err.count("\n") == 1
    assert sorted(Path().iterdir()) == before
    return captured.err


def sketched(*names: str) -> None:
    for name in names:
        assert ran("sketch", f"{name}.parquet", "-t", "y", "-f", "a,b", "--seed", "1", "-o", f"{name}.psk") == 0


def test_three_sites_make_a_model(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sketched("north", "south", "west")
    printed = capsys.readouterr()
    assert printed.err == ""
    assert "north.psk" in printed.out
    assert "meant as target: y" in printed.out
    assert ran("combine", "north.psk", "south.psk", "west.psk", "--model", "model.json", "--summary") == 0
    printed = capsys.readouterr()
    assert "to lose" in printed.out
    assert "[0.025" in printed.out
    assert "seed" not in printed.out
    model = load(folder / "model.json")
    assert [entry.name for entry in model.record.partitions] == ["north", "south", "west"]
    assert model.record.row_count == 1200
    assert ran("predict", "model.json", "north.parquet", "-o", "out.csv") == 0


def test_the_order_of_files_and_globs_change_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sketched("north", "south", "west")
    capsys.readouterr()
    models = []
    for files in (["north.psk", "south.psk", "west.psk"], ["west.psk", "north.psk", "south.psk"], ["*.psk"]):
        assert ran("combine", *files, "--method", "stack", "--json") == 0
        models.append(json.loads(capsys.readouterr().out)["model"])
    assert models[0] == models[1] == models[2]


def test_any_column_may_be_the_target(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sketched("north", "south")
    assert ran("combine", "*.psk", "--target", "a", "--features", "b,y", "--json", "--method", "stack") == 0
    values = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert values["model"]["target_names"] == ["a"]
    assert values["model"]["feature_names"] == ["b", "y"]
    assert [entry["sites"] for entry in values["files"]] == [["north"], ["south"]]


def test_one_file_for_each_partition(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    common = ["sketch", "north.parquet", "-t", "y", "-f", "a,b", "--seed", "1"]
    assert ran(*common, "-k", "3", "-o", "part-{partition}.psk") == 0
    assert sorted(path.name for path in folder.glob("part-*")) == ["part-0.psk", "part-1.psk", "part-2.psk"]
    assert Summary.load("part-1.psk").parts[0].name == "part 1"
    assert ran("combine", "part-*.psk") == 0
    (folder / "out").mkdir()
    assert ran(*common, "--partition-by", "region", "--output-directory", "out", "--site", "north") == 0
    assert sorted(path.name for path in (folder / "out").iterdir()) == ["north-down.psk", "north-u_p.psk"]
    assert ran("combine", "out/*.psk") == 0
    assert ran("sketch", "north.parquet", "south.parquet", "-t", "y", "-f", "a,b", "--partition-by", "file",
               "-o", "file-{partition}.psk") == 0  # fmt: skip
    assert sorted(path.name for path in folder.glob("file-*")) == ["file-north.parquet.psk", "file-south.parquet.psk"]
    capsys.readouterr()


def test_inspecting_shows_every_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sketched("north")
    assert ran("sketch", "south.parquet", "-f", "a,b,y", "--private", "--round-rows", "100", "-o", "south.psk") == 0
    made = capsys.readouterr().out
    assert "bits per entry" in made
    assert "not differential privacy" in made
    assert ran("combine", "north.psk", "south.psk", "--inspect") == 0
    shown = capsys.readouterr().out
    assert "about 400" in shown
    assert "bits per entry" in shown
    assert ran("combine", "*.psk", "--inspect", "--json") == 0
    north, south = json.loads(capsys.readouterr().out)["files"]
    assert (north["private"], north["information_bits_per_entry"]) == (False, None)
    assert south["private"] is True
    # m = 20 of 400 rows, log₂(2πe)/2 bits for each of 4 columns, shared by 3 columns of data.
    assert south["information_bits_per_entry"] == pytest.approx(20 * 4 / (400 * 3) * 2.0471, rel=1e-3)
    assert "seed" not in json.dumps([north, south])


def test_a_private_sketch_says_so_when_nothing_is_compressed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        ran(
            "sketch", "north.parquet", "-f", "a,b,y", "--private", "-m", "300", "--allow", "large-sketch", "-o", "n.psk"
        )
        == 0
    )
    assert "nothing is compressed" in capsys.readouterr().out


def test_any_sketch_with_as_many_rows_as_the_data_says_so(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    common = ["sketch", "north.parquet", "-t", "y", "-f", "a,b", "--seed", "1", "-o", "n.psk", "-m"]
    allowed = ["--allow", "large-sketch", "--allow", "plain-rows"]
    for kind in ("gaussian", "sparse_sign", "count_sketch"):
        assert ran(*common, "300", "--sketch", kind, "--json", *allowed) == 0
        printed = capsys.readouterr()
        assert printed.err.startswith("Warning: The sketch has 300 rows and the data have 300: nothing is compressed")
        assert json.loads(printed.out)["files"]
    assert ran(*common, "299") == 0
    assert capsys.readouterr().err == ""


def test_the_command_stacks_sketches_unless_asked_otherwise(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sketched("north", "south")
    capsys.readouterr()
    models = []
    for method in ([], ["--method", "stack"], ["--method", "partition"]):
        assert ran("combine", "*.psk", *method, "--json") == 0
        models.append(json.loads(capsys.readouterr().out)["model"])
    assert models[0] == models[1] != models[2]
    assert models[0]["record"]["options"]["method"] == "stack"


def test_levels_from_a_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "levels.json").write_text('{"region": ["down", "left", "u/p"]}')
    common = ["sketch", "north.parquet", "-t", "y", "-o", "n.psk", "--levels"]
    assert ran(*common, "levels.json") == 0
    assert Summary.load("n.psk").columns == ("(intercept)", "a", "b", "region=left", "region=u/p", "y")
    capsys.readouterr()
    (folder / "levels.json").write_text("{region")
    assert "is not JSON" in refused(capsys, *common, "levels.json")
    assert "Cannot read" in refused(capsys, *common, "nowhere.json")


def test_exact_files_can_do_exact_and_average(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("north", "south"):
        assert (
            ran("sketch", f"{name}.parquet", "-t", "y", "-f", "a,b", "--sketch", "triangular", "-o", f"{name}.psk") == 0
        )
    assert ran("combine", "*.psk") == 0
    assert "it loses nothing" in capsys.readouterr().out
    assert ran("combine", "*.psk", "--method", "average") == 0
    assert "choose 'exact' or 'average'" in refused_after(capsys, "combine", "*.psk", "--method", "stack")


def refused_after(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    return refused(capsys, *arguments)


def test_bad_input_gets_one_sentence_and_leaves_no_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sketched("north", "south")
    (folder / "bad.psk").write_bytes(Path("north.psk").read_bytes()[:-1])
    (folder / "other.txt").write_text("hello")
    ran("sketch", "west.parquet", "-t", "y", "-f", "a,b", "-m", "17", "-o", "west.psk")
    capsys.readouterr()
    common = ["sketch", "north.parquet", "-t", "y", "-f", "a,b"]
    assert "either --output" in refused(capsys, *common)
    assert "either --output" in refused(capsys, *common, "-o", "a.psk", "--output-directory", ".")
    assert "no folder" in refused(capsys, *common, "-o", "nowhere/a.psk")
    assert "no folder" in refused(capsys, *common, "--output-directory", "nowhere")
    assert "{partition}" in refused(capsys, *common, "-k", "2", "-o", "a.psk")
    assert "takes no seed (--seed)" in refused(capsys, *common, "--private", "--seed", "1", "-o", "a.psk")
    assert "cannot be private" in refused(capsys, *common, "--private", "--sketch", "triangular", "-o", "a.psk")
    assert "sketch is 'cubist': choose one of 'gaussian'" in refused(
        capsys, *common, "--sketch", "cubist", "-o", "a.psk"
    )
    assert "no target column 'q'" in refused(capsys, "sketch", "north.parquet", "-t", "q", "-o", "a.psk")
    assert "bad.psk is damaged" in refused(capsys, "combine", "bad.psk", "south.psk", "--model", "model.json")
    assert "other.txt is not a partsketch" in refused(capsys, "combine", "other.txt")
    assert "Cannot read none.psk" in refused(capsys, "combine", "none.psk")
    assert "is in twice" in refused(capsys, "combine", "north.psk", "north.psk", "--model", "model.json")
    assert "sketch rows (19, 17)" in refused(capsys, "combine", "north.psk", "west.psk")
    assert "no folder" in refused(capsys, "combine", "north.psk", "--model", "nowhere/model.json")


def test_a_write_that_fails_leaves_none_of_the_files(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "part-2.psk").mkdir()
    message = refused(
        capsys, "sketch", "north.parquet", "-t", "y", "-f", "a,b", "-k", "3", "-o", "part-{partition}.psk"
    )
    assert "is a folder" in message


@pytest.mark.parametrize("command", ["sketch", "combine"])
def test_help_has_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ran(command, "--help") == 0
    shown = capsys.readouterr().out
    assert f"Example: partsketch {command}" in shown
    assert "--json" in shown
